//! Data classes and trust zones: what may go to whom, and the mark that makes data flow one way.

use toolgate_config::Config;
use toolgate_config::class::{DataClass, TrustZone};
use toolgate_config::names::ProviderName;

/// The highest class that a zone may see.
pub const fn ceiling(zone: TrustZone) -> DataClass {
    match zone {
        TrustZone::Local => DataClass::Secret,
        TrustZone::Private => DataClass::Diagnostics,
        TrustZone::ExternalEu => DataClass::Configuration,
        TrustZone::ExternalGlobal => DataClass::Internal,
    }
}

/// Whether a zone may see personal data.
pub const fn sees_personal(zone: TrustZone) -> bool {
    !matches!(zone, TrustZone::ExternalGlobal)
}

/// Whether data of this mark may go to a zone.
pub fn permits(zone: TrustZone, mark: Mark) -> bool {
    mark.class <= ceiling(zone) && (!mark.personal || sees_personal(zone))
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
    fn each_zone_sees_up_to_its_ceiling_and_no_further() {
        // Columns: public internal source_code configuration diagnostics secret, then personal.
        let table = [
            (TrustZone::Local, [true; 6], true),
            (TrustZone::Private, [true, true, true, true, true, false], true),
            (TrustZone::ExternalEu, [true, true, true, true, false, false], true),
            (TrustZone::ExternalGlobal, [true, true, false, false, false, false], false),
        ];
        for (zone, classes, personal) in table {
            for (class, allowed) in DataClass::ALL.into_iter().zip(classes) {
                assert_eq!(permits(zone, Mark { class, personal: false }), allowed, "{zone} {class}");
                assert_eq!(permits(zone, Mark { class, personal: true }), allowed && personal, "{zone} {class} personal");
            }
        }
    }

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
