//! Which calls give the same result over and over.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use toolgate_tools::toolbox::Call;

/// A call whose last this many runs gave the same result is not run again.
const ENOUGH: u32 = 2;

/// Every call of a run by tool and arguments, with its last result and how often in a row it gave that.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Repeats(Vec<Seen>);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Seen {
    call: u64,
    result: u64,
    times: u32,
}

impl Repeats {
    /// Whether running this call would most likely give its last result once more.
    pub(super) fn would_repeat(&self, call: &Call) -> bool {
        !self.0.is_empty() && {
            let fingerprint = fingerprint(call);
            self.0.iter().any(|seen| seen.call == fingerprint && seen.times >= ENOUGH)
        }
    }

    /// Takes what a call gave, failures included.
    pub(super) fn note(&mut self, call: &Call, result: &str) {
        let (call, result) = (fingerprint(call), hash(&result));
        match self.0.iter_mut().find(|seen| seen.call == call) {
            Some(seen) if seen.result == result => seen.times += 1,
            Some(seen) => (seen.result, seen.times) = (result, 1),
            None => self.0.push(Seen { call, result, times: 1 }),
        }
    }
}

/// Equal for calls that differ in the order of keys or in white space only.
fn fingerprint(call: &Call) -> u64 {
    let arguments = call.arguments.as_ref().map(|arguments| arguments.canonical()).map_err(ToString::to_string);
    hash(&(&call.name, arguments))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
