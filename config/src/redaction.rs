//! `redaction:`: what is taken out of tool results and of answers.

use std::collections::BTreeSet;
use std::sync::Arc;

/// What is taken out, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction {
    /// Of what tools return, before anybody reads, keeps or logs it.
    pub tool_results: Rules,
    /// Of what models answer.
    pub answers: Rules,
}

/// What is taken out of one kind of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Credentials of every known shape.
    pub secrets: bool,
    /// Kinds of personal data.
    pub personal: BTreeSet<Personal>,
    /// The operator's own patterns, in the order of the file.
    pub patterns: Arc<[Pattern]>,
}

/// A kind of personal data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Personal {
    /// An e-mail address.
    Email,
    /// A telephone number.
    Phone,
    /// An international bank account number whose checksum is right.
    Iban,
    /// A payment card's number whose checksum is right.
    Card,
    /// An IP address.
    Ip,
}

impl Personal {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Email, Self::Phone, Self::Iban, Self::Card, Self::Ip];

    /// The word of files and of `[redacted:kind]`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Iban => "iban",
            Self::Card => "card",
            Self::Ip => "ip",
        }
    }
}

/// A pattern of the operator's own; `check` has seen to it that it compiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The kind that stands in `[redacted:kind]`.
    pub name: Arc<str>,
    /// A regular expression as the `regex` crate has it: linear in the length of the text.
    pub regex: Arc<str>,
}

impl Default for Redaction {
    /// What holds where the file says nothing: credentials everywhere, personal data in what tools return.
    fn default() -> Self {
        let rules = |personal: &[Personal]| Rules {
            secrets: true,
            personal: personal.iter().copied().collect(),
            patterns: Arc::default(),
        };
        Self { tool_results: rules(&Personal::ALL), answers: rules(&[]) }
    }
}

/// The kinds of secrets, as they stand in `[redacted:kind]`; no pattern has such a name.
pub const KINDS_OF_SECRETS: [&str; 19] = [
    "password",
    "secret",
    "token",
    "api_key",
    "private_key",
    "credential",
    "cookie",
    "jwt",
    "signature",
    "webhook",
    "aws_key",
    "azure_key",
    "google_key",
    "github_token",
    "gitlab_token",
    "slack_token",
    "bot_token",
    "stripe_key",
    "registry_token",
];
