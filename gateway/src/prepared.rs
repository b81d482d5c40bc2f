//! What of a configuration goes onto the wire, written once when it comes into force.

use std::collections::HashMap;

use bytes::Bytes;
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

    /// The system message of a model, by its name in the file.
    pub fn system(&self, model: &str) -> Option<&Bytes> {
        self.systems.get(model)
    }
}
