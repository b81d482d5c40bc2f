//! Who may answer a run, and under what names: the model's provider, then those of its fallbacks.

use std::sync::Arc;

use toolgate_config::Config;
use toolgate_config::model::Model;
use toolgate_config::price::Price;
use toolgate_config::provider::Provider;

use crate::telemetry::metrics::model_label;

/// Who may answer a run: the model's provider, then those of its fallbacks. Fixed when the run begins.
#[derive(Debug)]
pub struct Targets {
    all: Vec<Arc<Target>>,
    /// The one that answered last, or is to be asked first.
    current: usize,
}

/// A provider, and what it calls the model.
#[derive(Debug)]
pub struct Target {
    /// The account.
    pub provider: Arc<Provider>,
    /// Its name for the model.
    pub upstream_model: String,
    /// What its tokens cost there.
    pub price: Option<Price>,
    /// How many tokens it can answer with, as far as that is known.
    pub max_output: Option<u32>,
    /// How many tokens fit into it.
    pub window: u32,
    /// Nobody knows the window: it is what any model has.
    pub is_window_guessed: bool,
    /// The name of its entry for metrics: `*` where callers name what they like.
    pub label: String,
}

impl Target {
    /// The most tokens that it can answer with: no more than fit into it.
    pub fn most_output(&self) -> u64 {
        u64::from(self.max_output.unwrap_or(self.window))
    }
}

impl Targets {
    /// Those of a model.
    pub fn of(config: &Config, model: &Model) -> Self {
        let target = |model: &Model| {
            Arc::new(Target {
                provider: Arc::clone(&model.provider),
                upstream_model: model.upstream_model.clone(),
                price: model.price,
                max_output: model.max_output,
                window: model.window(),
                is_window_guessed: model.context_window.is_none(),
                label: model_label(config, model.name.as_str()).to_owned(),
            })
        };
        let all = std::iter::once(target(model)).chain(config.fallbacks(model).map(|fallback| target(fallback))).collect();
        Self { all, current: 0 }
    }

    /// The one that is asked next.
    pub fn current(&self) -> &Arc<Target> {
        &self.all[self.current]
    }

    /// Goes on to the next one. `false`: there is none, and this one stays.
    pub fn advance(&mut self) -> bool {
        let has_next = self.current + 1 < self.all.len();
        self.current += usize::from(has_next);
        has_next
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Target>> {
        self.all.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolgate_config::check::{Source, read};

    use super::*;

    #[test]
    fn a_model_then_its_fallbacks_and_callers_names_share_one_label() {
        let file = r#"
providers: { p: { kind: openai_compatible, base_url: "http://127.0.0.1:1" } }
models:
  m: { provider: p, upstream_model: up, fallback: [n] }
  n: { provider: p }
  "*": { provider: p, fallback: [n] }
"#;
        let config = read(&Source { path: Path::new("toolgate.yaml"), text: file, env: &|_| None }).unwrap();
        for (name, expected) in [("m", ["up m", "n n"]), ("x", ["x *", "n n"])] {
            let mut targets = Targets::of(&config, &config.model(name).unwrap());
            let shown = |target: &Target| format!("{} {}", target.upstream_model, target.label);
            assert_eq!(targets.iter().map(|target| shown(target)).collect::<Vec<_>>(), expected);
            assert_eq!(shown(targets.current()), expected[0]);
            assert!(targets.advance());
            assert_eq!((shown(targets.current()), targets.advance()), (expected[1].to_owned(), false));
            assert_eq!(shown(targets.current()), expected[1], "the last one stays");
        }
    }
}
