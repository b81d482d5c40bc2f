//! What of a configuration goes onto the wire, written once when it comes into force.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_config::Config;
use toolgate_config::names::ModelName;
use toolgate_policies::gate::Judged;

use crate::wire::message;

/// The texts of one configuration.
#[derive(Debug, Default)]
pub struct Prepared {
    /// Each tool as models are offered it, in the order of the configuration.
    tools: Vec<String>,
    /// The system message of each model that has one.
    systems: HashMap<ModelName, Bytes>,
}

impl Prepared {
    /// The texts of this configuration.
    pub fn of(config: &Config) -> Self {
        let offered =
            config.tools.iter().map(|tool| message::offered(tool.name.as_str(), &tool.description, tool.parameters.text()));
        let system = |name: &ModelName, text: &str| (name.clone(), Bytes::from(message::system(text)));
        let systems = config.models.named.values().chain(&config.models.any);
        Self {
            tools: offered.collect(),
            systems: systems.filter_map(|model| model.system_prompt.as_deref().map(|text| system(&model.name, text))).collect(),
        }
    }

    /// The JSON list of the tools that the gate allows; empty when it allows none. `judged` is in the order of the same configuration.
    pub fn offer(&self, judged: &[Judged]) -> Bytes {
        let allowed = || self.tools.iter().zip(judged).filter(|(_, (_, verdict))| verdict.allows()).map(|(text, _)| text);
        let room: usize = allowed().map(|text| text.len() + 1).sum();
        if room == 0 {
            return Bytes::new();
        }
        let mut list = String::with_capacity(room + 1);
        for text in allowed() {
            list.push(if list.is_empty() { '[' } else { ',' });
            list.push_str(text);
        }
        list.push(']');
        Bytes::from(list)
    }

    /// A list of offered tools without some, by their names; empty when none is left.
    pub fn without(offer: &Bytes, gone: impl Fn(&str) -> bool) -> Bytes {
        let tools: Vec<&RawValue> = serde_json::from_slice(offer).unwrap_or_default();
        let is_gone = |tool: &&RawValue| serde_json::from_str(tool.get()).is_ok_and(|Offered { function }| gone(&function.name));
        let left: Vec<&str> = tools.into_iter().filter(|tool| !is_gone(tool)).map(RawValue::get).collect();
        if left.is_empty() { Bytes::new() } else { Bytes::from(format!("[{}]", left.join(","))) }
    }

    /// The system message of a model, by its name in the file.
    pub fn system(&self, model: &str) -> Option<&Bytes> {
        self.systems.get(model)
    }
}

#[derive(Deserialize)]
struct Offered<'t> {
    #[serde(borrow)]
    function: Named<'t>,
}

#[derive(Deserialize)]
struct Named<'t> {
    #[serde(borrow)]
    name: Cow<'t, str>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use toolgate_config::check::{Source, read};
    use toolgate_policies::gate::{Reason, Verdict};

    use super::*;

    const FILE: &str = r#"
providers: { p: { kind: openai_compatible, base_url: "http://127.0.0.1:1" } }
models:
  m: { provider: p, system_prompt: "Be \"brief\"." }
  plain: { provider: p }
groups: { g: { data_class: public, egress: ["127.0.0.1:9"] } }
tools:
  - { name: one, group: g, description: First, parameters: { type: object }, http: { url: "http://127.0.0.1:9/" } }
  - { name: two, group: g, description: Second, parameters: { type: object }, http: { url: "http://127.0.0.1:9/" } }
"#;

    #[test]
    fn what_is_offered_is_what_the_gate_allows_in_the_order_of_the_file() {
        let config = read(&Source { path: Path::new("toolgate.yaml"), text: FILE, env: &|_| None }).unwrap();
        let prepared = Prepared::of(&config);
        let (yes, observed, no) = (Verdict::Allow, Verdict::Observed(Reason::TrustZone), Verdict::Deny(Reason::NotGranted));
        for (verdicts, names) in [([yes, observed], &["one", "two"][..]), ([no, yes], &["two"]), ([no, no], &[])] {
            let judged: Vec<Judged> = config.tools.iter().map(Arc::clone).zip(verdicts).collect();
            let offer = prepared.offer(&judged);
            let list: Vec<serde_json::Value> = serde_json::from_slice(&offer).unwrap_or_default();
            let offered: Vec<&str> = list.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
            assert_eq!((offered.as_slice(), offer.is_empty()), (names, names.is_empty()));
            assert_eq!(Prepared::without(&offer, |_| false), offer);
            assert!(Prepared::without(&offer, |_| true).is_empty());
            let second = Prepared::without(&offer, |name| name == "one");
            assert_eq!(
                second,
                prepared.offer(
                    &[judged[..1].iter().map(|(tool, _)| (Arc::clone(tool), no)).collect::<Vec<_>>(), judged[1..].to_vec()]
                        .concat()
                )
            );
        }
    }

    #[test]
    fn a_system_message_is_there_for_models_that_have_a_prompt() {
        let config = read(&Source { path: Path::new("toolgate.yaml"), text: FILE, env: &|_| None }).unwrap();
        let prepared = Prepared::of(&config);
        let message: serde_json::Value = serde_json::from_slice(prepared.system("m").unwrap()).unwrap();
        assert_eq!(message, serde_json::json!({ "role": "system", "content": "Be \"brief\"." }));
        assert!(prepared.system("plain").is_none());
    }
}
