//! The checks: each says what, at a place where its trigger was found, is to be masked. A kind of thing a file.

pub(super) mod bot;
pub(super) mod card;
pub(super) mod dsn;
pub(super) mod email;
pub(super) mod field;
pub(super) mod header;
pub(super) mod iban;
pub(super) mod ip;
pub(super) mod judge;
pub(super) mod jwt;
pub(super) mod name;
pub(super) mod pem;
pub(super) mod phone;
pub(super) mod url;
pub(super) mod value;
