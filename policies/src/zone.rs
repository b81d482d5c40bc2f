//! The zone of a run, and the mark that makes data flow one way. Which zone may see which class is a table beside the words themselves:
//! [`TrustZone::may_see`].

use toolgate_config::Config;
use toolgate_config::class::{DataClass, TrustZone};
use toolgate_config::names::ProviderName;

/// Whether data of this mark may go to a zone.
pub fn permits(zone: TrustZone, mark: Mark) -> bool {
    zone.may_see(mark.class, mark.personal)
}

/// The zone of a run: the least trusted among those who may read its transcript. One that the file no longer knows is a stranger.
pub fn of_run(config: &Config, providers: &[ProviderName]) -> TrustZone {
    let zone = |name| config.providers.get(name).map_or(TrustZone::ExternalGlobal, |provider| provider.trust_zone);
    providers.iter().map(zone).min().unwrap_or_default()
}

/// How sensitive something is: a step of the ladder, and whether it is about people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The step.
    pub class: DataClass,
    /// Beside the ladder.
    pub personal: bool,
}

impl Mark {
    /// The mark of a run that has read nothing yet.
    pub const CLEAN: Self = Self { class: DataClass::Public, personal: false };

    /// The mark after something of another mark was read: it only ever rises.
    #[must_use]
    pub fn raised(self, by: Self) -> Self {
        Self { class: self.class.max(by.class), personal: self.personal || by.personal }
    }
}

/// The class that a result declares for itself. An unknown word is the worst that it could mean.
pub fn declared(word: &str) -> DataClass {
    DataClass::from_word(word.trim()).unwrap_or(DataClass::Secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_only_rises() {
        for class in DataClass::ALL {
            for other in DataClass::ALL {
                let mark = Mark { class, personal: true }.raised(Mark { class: other, personal: false });
                assert_eq!(mark, Mark { class: class.max(other), personal: true });
            }
        }
    }

    #[test]
    fn an_unknown_declaration_is_a_secret() {
        assert_eq!(declared(" internal "), DataClass::Internal);
        assert_eq!(declared("Internal"), DataClass::Secret);
        assert_eq!(declared(""), DataClass::Secret);
    }
}
