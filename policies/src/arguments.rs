//! What is taken out of the arguments of a call on their way to a tool that is trusted less than the run.
//!
//! Whoever answers the run has read what the arguments hold, so a tool that is trusted as much, or more, gets them as they are: a login's tool
//! needs its password. One that is trusted less gets nothing of what its zone may not see: no credentials where that is no class for it, no
//! personal data where it may not see any.

use std::sync::OnceLock;

use toolgate_config::class::{DataClass, TrustZone};
use toolgate_config::redaction::Rules;

use crate::redact::Redactor;

/// What is taken out of arguments, compiled when it is needed first.
#[derive(Debug)]
pub struct Downhill {
    rules: Rules,
    secrets: OnceLock<Redactor>,
    everything: OnceLock<Redactor>,
}

impl Downhill {
    /// By these rules, those of what tools return.
    pub fn of(rules: Rules) -> Self {
        Self { rules, secrets: OnceLock::new(), everything: OnceLock::new() }
    }

    /// What is taken out on the way from one zone to another; `None`: nothing, it does not lead downhill.
    pub fn between(&self, run: TrustZone, tool: TrustZone) -> Option<&Redactor> {
        let redactor = match (tool.may_see(DataClass::Secret, false), tool.may_see(DataClass::Public, true)) {
            _ if tool >= run => return None,
            (true, _) => return None,
            (false, true) => self.secrets.get_or_init(|| Redactor::new(&self.without_personal())),
            (false, false) => self.everything.get_or_init(|| Redactor::new(&self.rules)),
        };
        Some(redactor).filter(|redactor| !redactor.is_off())
    }

    fn without_personal(&self) -> Rules {
        Rules { personal: Default::default(), ..self.rules.clone() }
    }
}

#[cfg(test)]
mod tests {
    use toolgate_config::redaction::Redaction;

    use super::*;
    use crate::redact::Counts;

    #[test]
    fn only_what_leads_downhill_loses_what_the_zone_may_not_see() {
        use TrustZone::{ExternalEu, ExternalGlobal, Local, Private};
        let arguments = r#"{"to":"ann@example.org","text":"AKIAIOSFODNN7EXAMPLQ"}"#;
        let (both, secret) = (
            r#"{"to":"[redacted:email]","text":"[redacted:aws_key]"}"#,
            r#"{"to":"ann@example.org","text":"[redacted:aws_key]"}"#,
        );
        let downhill = Downhill::of(Redaction::default().tool_results);
        for run in TrustZone::ALL {
            for tool in TrustZone::ALL {
                let expected = match (run, tool) {
                    _ if tool >= run => arguments,
                    (_, ExternalGlobal) => both,
                    (_, ExternalEu | Private) => secret,
                    (_, Local) => arguments,
                };
                let mut counts = Counts::default();
                let seen = downhill.between(run, tool).map_or(arguments.into(), |redactor| redactor.json(arguments, &mut counts));
                assert_eq!(seen, expected, "{run} {tool}");
                assert_eq!(counts.is_empty(), expected == arguments);
            }
        }
    }

    #[test]
    fn rules_that_take_nothing_out_take_nothing_out_of_arguments() {
        let off = Rules { secrets: false, personal: Default::default(), patterns: Default::default() };
        assert!(Downhill::of(off).between(TrustZone::Local, TrustZone::ExternalGlobal).is_none());
    }
}
