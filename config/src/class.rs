//! How sensitive data is, how far a receiver is trusted, and which receiver may see what. Of whom that is asked is the business of
//! `policies::zone`.

use std::fmt;

/// How sensitive what a tool returns is, from harmless to secret. A later variant is more sensitive.
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

    /// The word of files, traces and metrics.
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

    /// The word of files, traces and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExternalGlobal => "external_global",
            Self::ExternalEu => "external_eu",
            Self::Private => "private",
            Self::Local => "local",
        }
    }

    /// Whether data of this class, about people or not, may go to a receiver in this zone.
    pub fn may_see(self, class: DataClass, personal: bool) -> bool {
        let (highest, sees_personal) = match self {
            Self::Local => (DataClass::Secret, true),
            Self::Private => (DataClass::Diagnostics, true),
            Self::ExternalEu => (DataClass::Configuration, true),
            Self::ExternalGlobal => (DataClass::Internal, false),
        };
        class <= highest && (!personal || sees_personal)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_zone_sees_up_to_its_highest_class_and_no_further() {
        // Columns: public internal source_code configuration diagnostics secret, then personal.
        let table = [
            (TrustZone::Local, [true; 6], true),
            (TrustZone::Private, [true, true, true, true, true, false], true),
            (TrustZone::ExternalEu, [true, true, true, true, false, false], true),
            (TrustZone::ExternalGlobal, [true, true, false, false, false, false], false),
        ];
        for (zone, classes, personal) in table {
            for (class, allowed) in DataClass::ALL.into_iter().zip(classes) {
                assert_eq!(zone.may_see(class, false), allowed, "{zone} {class}");
                assert_eq!(zone.may_see(class, true), allowed && personal, "{zone} {class} personal");
            }
        }
    }
}
