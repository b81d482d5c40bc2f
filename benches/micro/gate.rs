//! The gate over a file of 64 tools.

use std::path::Path;

use divan::{Bencher, black_box};
use toolgate_config::Config;
use toolgate_config::check::{Source, read};
use toolgate_config::names::{KeyName, ModelName, ProviderName};
use toolgate_policies::facts::{Caller, Requested, RunFacts};
use toolgate_policies::gate::{self, Shown};
use toolgate_policies::zone::Mark;

/// Tools in the file.
const TOOLS: usize = 64;
const SECRET: &str = "tg-comparison-on-loopback-only";

/// A configuration in which every tool passes every rule.
fn config() -> Config {
    let tool = |at| {
        format!(
            "  - {{ name: tool_{at}, group: shop, description: Looks something up., scopes: [shop.read], \
             parameters: {{ type: object }}, http: {{ url: \"http://127.0.0.1:9/{at}\" }} }}\n"
        )
    };
    let text = format!(
        "providers:
  local: {{ kind: openai_compatible, base_url: \"http://127.0.0.1:8/v1\", api_key: sk-none, trust_zone: local }}
models:
  support: {{ provider: local, tools: {{ groups: [shop] }} }}
keys:
  - {{ name: shop, hash: \"sha256:{}\", scopes: [shop.read], models: [support], tools: {{ groups: [shop] }} }}
groups:
  shop: {{ data_class: internal, trust_zone: local, egress: [ {{ host: \"127.0.0.1:9\", private: true }} ] }}
tools:
{}",
        gate::hash_of(SECRET).iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        (0..TOOLS).map(tool).collect::<String>()
    );
    let source = Source { path: Path::new("toolgate.yaml"), text: &text, env: &|_| None };
    read(&source).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn run_facts() -> RunFacts {
    RunFacts {
        caller: Caller { key: Some(KeyName::new("shop")), user: None, bearer: None },
        model: ModelName::new("support"),
        providers: vec![ProviderName::new("local")],
        requested: Requested::All,
        mark: Mark::CLEAN,
    }
}

/// Who is calling, and may they use the model: the digest of the secret is most of it.
#[divan::bench]
fn recognise_and_admit(bencher: Bencher) {
    let config = config();
    bencher.bench(|| {
        let caller = gate::recognise(&config, Shown { secret: Some(black_box(SECRET)), user: None });
        caller.and_then(|caller| gate::admit(&config, &caller, black_box("support")))
    });
}

/// Which tools a run is offered.
#[divan::bench]
fn offer_64_tools(bencher: Bencher) {
    let (config, run) = (config(), run_facts());
    let offered = gate::offer(&config, &run).filter(|(_, verdict)| verdict.allows()).count();
    assert_eq!(offered, TOOLS);
    bencher.bench(|| gate::offer(black_box(&config), black_box(&run)).collect::<Vec<_>>());
}
