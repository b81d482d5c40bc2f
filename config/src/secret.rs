//! Values that never print.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// A credential. Its `Debug` is a mask, it has no `Display`, and its memory is wiped when it goes.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes the credential in clear.
    pub fn new(clear: impl Into<String>) -> Self {
        Self(SecretString::from(clear.into()))
    }

    /// The credential in clear: for the one place that sends it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

/// Whether a reload changes it: both are the operator's own, so there is nobody from whom the time that this takes must be hidden.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
