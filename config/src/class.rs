//! The words for how sensitive data is and how far a receiver is trusted. The rule that joins them is `policies::zone`.

use std::fmt;

/// How sensitive what a tool returns is, from harmless to secret. The order is the order of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataClass {
    /// Anyone may read it.
    Public,
    /// For people of the house.
    Internal,
    /// Source code.
    SourceCode,
    /// Configuration without its secrets.
    Configuration,
    /// Logs, environments, states of machines.
    Diagnostics,
    /// Credentials and what stands next to them.
    Secret,
}

impl DataClass {
    /// Every class, lowest first.
    pub const ALL: [Self; 6] =
        [Self::Public, Self::Internal, Self::SourceCode, Self::Configuration, Self::Diagnostics, Self::Secret];

    /// The word of the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::SourceCode => "source_code",
            Self::Configuration => "configuration",
            Self::Diagnostics => "diagnostics",
            Self::Secret => "secret",
        }
    }

    /// The class that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }
}

impl fmt::Display for DataClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far a receiver of data is trusted, from least to most: `a < b` means that `a` may see less than `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum TrustZone {
    /// Somewhere in the world. The default, and the strictest.
    #[default]
    ExternalGlobal,
    /// Outside the house, under European law.
    ExternalEu,
    /// A machine of the operator's.
    Private,
    /// This machine.
    Local,
}

impl TrustZone {
    /// Every zone, least trusted first.
    pub const ALL: [Self; 4] = [Self::ExternalGlobal, Self::ExternalEu, Self::Private, Self::Local];

    /// The word of the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExternalGlobal => "external_global",
            Self::ExternalEu => "external_eu",
            Self::Private => "private",
            Self::Local => "local",
        }
    }

    /// The zone that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|zone| zone.as_str() == word)
    }
}

impl fmt::Display for TrustZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
