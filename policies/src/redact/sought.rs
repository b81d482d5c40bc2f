//! Which kinds are looked for, as switches: the rules of a configuration as the checks ask them.

use toolgate_config::redaction::{Personal, Rules};

/// Which kinds are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sought {
    pub(super) secrets: bool,
    pub(super) email: bool,
    pub(super) phone: bool,
    pub(super) iban: bool,
    pub(super) card: bool,
    pub(super) ip: bool,
}

impl Sought {
    pub(super) fn of(rules: &Rules) -> Self {
        let has = |kind| rules.personal.contains(&kind);
        Self {
            secrets: rules.secrets,
            email: has(Personal::Email),
            phone: has(Personal::Phone),
            iban: has(Personal::Iban),
            card: has(Personal::Card),
            ip: has(Personal::Ip),
        }
    }

    /// Whether something is looked for that begins with a digit.
    pub(super) fn has_digits(self) -> bool {
        self.secrets || self.phone || self.iban || self.card || self.ip
    }

    /// Whether nothing is.
    pub(super) fn nothing(self) -> bool {
        let Self { secrets, email, phone, iban, card, ip } = self;
        !(secrets || email || phone || iban || card || ip)
    }
}
