//! Whose limits a request meets on its path: everybody's, its model's, its key's, its end user's.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

use toolgate_config::Config;
use toolgate_config::limit::{Budget, Limits as Written, Per, Rate, Unit, Zone};
use toolgate_config::money::NanoUsd;
use toolgate_config::names::{KeyName, ModelName};

use crate::facts::Caller;

/// Whose limit it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// All callers together.
    Everybody,
    /// All callers of one model, by its name in the file: `*` for those without an entry.
    Model(ModelName),
    /// A key.
    Key(KeyName),
    /// An end user of a key.
    User(KeyName, Arc<str>),
}

impl Scope {
    /// The word of metrics and reports.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Everybody => "everybody",
            Self::Model(_) => "model",
            Self::Key(_) => "key",
            Self::User(..) => "user",
        }
    }

    /// The name that goes with the word: the model's, or the key's, also for its end users, who are in no metric. Empty for everybody.
    pub fn name(&self) -> &str {
        match self {
            Self::Everybody => "",
            Self::Model(model) => model.as_str(),
            Self::Key(key) | Self::User(key, _) => key.as_str(),
        }
    }

    fn described(&self) -> String {
        match self {
            Self::Everybody => "everybody".to_owned(),
            Self::Model(model) => format!("the model \"{model}\""),
            Self::Key(key) => format!("the key \"{key}\""),
            Self::User(key, _) => format!("a user of the key \"{key}\""),
        }
    }
}

/// What a limit counts. Two limits that count the same of the same scope share one counter, so a limit that is changed keeps what was
/// used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// What is used in a calendar window.
    Budget(Unit, Per, Zone),
    /// Requests in any 60 seconds.
    RequestRate,
    /// Tokens in any 60 seconds.
    TokenRate,
    /// Requests at the same time.
    Concurrent,
}

/// The identity of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterId {
    /// Whose.
    pub scope: Scope,
    /// Of what.
    pub what: What,
}

/// The limits of end users are made with every request, so what tells most counters apart is hashed in few pieces, and the zone is not.
impl Hash for CounterId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (scope, name, user) = match &self.scope {
            Scope::Everybody => (0, "", ""),
            Scope::Model(model) => (1, model.as_str(), ""),
            Scope::Key(key) => (2, key.as_str(), ""),
            Scope::User(key, user) => (3, key.as_str(), &**user),
        };
        let (what, unit, per) = match &self.what {
            What::Budget(unit, per, _) => (0, *unit as u8, *per as u8),
            What::RequestRate => (1, 0, 0),
            What::TokenRate => (2, 0, 0),
            What::Concurrent => (3, 0, 0),
        };
        state.write_u32(u32::from_le_bytes([scope, what, unit, per]));
        state.write(name.as_bytes());
        state.write(user.as_bytes());
    }
}

/// A counter, and how far it may go: nano-dollars, tokens or requests.
#[derive(Debug, PartialEq, Eq)]
pub struct Limit {
    /// The counter.
    pub id: CounterId,
    /// How far.
    pub most: u64,
    /// Of the identity: most limits are made once, and looked up with every request.
    hash: u64,
}

impl Limit {
    /// A limit of this counter.
    pub fn new(id: CounterId, most: u64) -> Self {
        static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self { hash: HASHER.hash_one(&id), id, most }
    }

    /// The same with this hash.
    #[cfg(test)]
    pub(crate) fn hashed(self, hash: u64) -> Self {
        Self { hash, ..self }
    }

    /// A hash of the counter's identity: in one process the same for all of its limits, and of chance.
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// What it is, for people: `20 USD per day of the key "shop"`.
    pub fn described(&self) -> String {
        format!("{} of {}", self.allowed(), self.id.scope.described())
    }

    fn allowed(&self) -> String {
        let (most, s) = (self.most, if self.most == 1 { "" } else { "s" });
        match &self.id.what {
            What::Budget(unit, per, _) => {
                let amount = match unit {
                    Unit::Usd => format!("{} USD", NanoUsd(most)),
                    Unit::Tokens => format!("{most} token{s}"),
                    Unit::Requests => format!("{most} request{s}"),
                };
                if *per == Per::Total { format!("{amount} in total") } else { format!("{amount} per {}", per.as_str()) }
            }
            What::RequestRate => format!("{most} request{s} per minute"),
            What::TokenRate => format!("{most} token{s} per minute"),
            What::Concurrent => format!("{most} request{s} at the same time"),
        }
    }
}

/// The limits of a configuration, ready for requests.
#[derive(Debug, Default)]
pub struct Limits {
    everybody: Vec<Arc<Limit>>,
    models: HashMap<ModelName, Vec<Arc<Limit>>>,
    keys: HashMap<KeyName, Vec<Arc<Limit>>>,
}

impl Limits {
    /// Those of this configuration.
    pub fn of(config: &Config) -> Self {
        let models = config.models.named.values().chain(&config.models.any);
        let models = models.map(|model| (model.name.clone(), shared(&Scope::Model(model.name.clone()), &model.limits)));
        let keys = config.keys.iter().map(|key| (key.name.clone(), shared(&Scope::Key(key.name.clone()), &key.limits)));
        Self { everybody: shared(&Scope::Everybody, &config.limits), models: models.collect(), keys: keys.collect() }
    }

    /// Those on the path of a request: everybody's first, its end user's last. `model` is the model's name in the file.
    pub fn path(&self, config: &Config, caller: &Caller, model: &str) -> Vec<Arc<Limit>> {
        let of_model = self.models.get(model).map_or(&[][..], Vec::as_slice);
        let of_key = caller.key.as_ref().and_then(|key| self.keys.get(key)).map_or(&[][..], Vec::as_slice);
        let mut path = Vec::with_capacity(self.everybody.len() + of_model.len() + of_key.len());
        path.extend([&self.everybody[..], of_model, of_key].into_iter().flatten().cloned());
        path.extend(of_user(config, caller));
        path
    }

    /// The caller's own: those of its key, and of its end user.
    pub fn own(&self, config: &Config, caller: &Caller) -> Vec<Arc<Limit>> {
        let of_key = caller.key.as_ref().and_then(|key| self.keys.get(key)).into_iter().flatten().cloned();
        of_key.chain(of_user(config, caller)).collect()
    }

    /// Every limit but those of end users.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Limit>> {
        self.everybody.iter().chain(self.models.values().flatten()).chain(self.keys.values().flatten())
    }
}

fn shared(scope: &Scope, written: &Written) -> Vec<Arc<Limit>> {
    limits(scope, written, false)
}

fn of_user(config: &Config, caller: &Caller) -> Vec<Arc<Limit>> {
    let (Some(name), Some(user)) = (&caller.key, &caller.user) else { return Vec::new() };
    let Some(key) = config.keys.by_name(name) else { return Vec::new() };
    limits(&Scope::User(name.clone(), Arc::clone(user)), &key.limits, true)
}

fn limits(scope: &Scope, written: &Written, per_user: bool) -> Vec<Arc<Limit>> {
    let budgets = written.budgets.iter().filter(|budget| budget.per_user == per_user).map(budget);
    let rates = written.rates.iter().filter(|rate| rate.per_user == per_user).flat_map(rate);
    let limit = |(what, most)| Arc::new(Limit::new(CounterId { scope: scope.clone(), what }, most));
    budgets.chain(rates).map(limit).collect()
}

fn budget(budget: &Budget) -> (What, u64) {
    (What::Budget(budget.limit.unit(), budget.per, budget.timezone.clone()), budget.limit.count())
}

fn rate(rate: &Rate) -> impl Iterator<Item = (What, u64)> {
    let of = |what, most: Option<u32>| most.map(|most| (what, u64::from(most)));
    [
        of(What::RequestRate, rate.requests_per_minute),
        of(What::TokenRate, rate.tokens_per_minute),
        of(What::Concurrent, rate.concurrent),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_described_as_an_operator_wrote_it() {
        let budget = |unit, per| What::Budget(unit, per, Zone::utc());
        let key = || Scope::Key(KeyName::new("shop"));
        let table = [
            (key(), budget(Unit::Usd, Per::Day), 20_000_000_000, r#"20 USD per day of the key "shop""#),
            (Scope::Everybody, budget(Unit::Tokens, Per::Week), 200, "200 tokens per week of everybody"),
            (key(), budget(Unit::Requests, Per::Total), 1, r#"1 request in total of the key "shop""#),
            (Scope::Model(ModelName::new("m")), What::RequestRate, 2, r#"2 requests per minute of the model "m""#),
            (
                Scope::User(KeyName::new("shop"), "ann".into()),
                What::Concurrent,
                2,
                r#"2 requests at the same time of a user of the key "shop""#,
            ),
        ];
        for (scope, what, most, expected) in table {
            assert_eq!(Limit::new(CounterId { scope, what }, most).described(), expected);
        }
    }
}
