//! What tools that only read have answered, for as long as their `cache` says: the same tool, asked the same by the same caller, is asked once.
//! Nothing that went wrong is kept, and whoever is answered from here has been let through by the gate as if the tool were asked.

use std::future::Future;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Moment};

use moka::Expiry;
use moka::future::Cache as Kept;
use tokio::time::{Instant, timeout_at};
use toolgate_config::key::KeyHash;
use toolgate_config::names::KeyName;
use toolgate_config::tool::Tool;
use toolgate_policies::facts::Caller;
use toolgate_policies::gate;

use crate::arguments::Arguments;
use crate::said::Said;
use crate::toolbox::{Outcome, Output};

/// How much is kept in all, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;

/// What an answer takes beside its own bytes, rather too much: so there are never more than 65 536 of them.
const OVERHEAD: usize = 1024;

/// How much later a caller that waits for another one's answer gives up than the tool's own time is over, so that the tool says it first.
const SLACK: Duration = Duration::from_millis(50);

/// The answers of one process.
pub(crate) struct Cache(Kept<Key, Answer>);

impl Default for Cache {
    fn default() -> Self {
        let weight = |key: &Key, answer: &Answer| {
            let bytes = OVERHEAD + key.arguments.len() + size(&answer.output);
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        Self(Kept::builder().max_capacity(LARGEST).weigher(weight).expire_after(AsLongAsItHolds).build())
    }
}

/// A call that may be answered from memory.
pub(crate) struct Ask<'c> {
    /// The tool, as the configuration in force defines it.
    pub(crate) tool: &'c Arc<Tool>,
    /// How long its answer holds.
    pub(crate) holds: Duration,
    /// What it is sent.
    pub(crate) arguments: &'c Arguments,
    /// Who asks.
    pub(crate) caller: &'c Caller,
    /// When the time of the call is over.
    pub(crate) due: Instant,
}

impl Cache {
    /// The answer to a call: the one that is kept, or that another caller of the same is waiting for, else what `run` gives. Whoever leaves
    /// while others wait leaves the asking to one of them.
    pub(crate) async fn answer<R: Future<Output = Output> + Send>(&self, ask: Ask<'_>, run: impl Fn() -> R + Sync) -> Output {
        let key = Key::of(&ask);
        let own = AtomicBool::new(false);
        loop {
            let asking = self.0.try_get_with(key.clone(), async {
                own.store(true, Ordering::Relaxed);
                keep(run().await, ask.holds)
            });
            let ended = timeout_at(ask.due + SLACK, asking).await;
            let ran = own.load(Ordering::Relaxed);
            match ended {
                Ok(Ok(answer)) if ran => return (*answer.output).clone(),
                Ok(Ok(answer)) => return Output { reached: false, cached: true, ..(*answer.output).clone() },
                Ok(Err(failed)) if ran => return (**failed).clone(),
                // The other one's time was over, and ours is not.
                Ok(Err(failed)) if failed.outcome == Outcome::Timeout && Instant::now() < ask.due => {}
                Ok(Err(failed)) => return Output { reached: false, ..(**failed).clone() },
                Err(_) => {
                    let late = Output::said(Outcome::Timeout, &Said::TimedOut, ask.tool.name.as_str());
                    return Output { reached: ran, ..late };
                }
            }
        }
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cache")
    }
}

/// Only what has a result is kept.
fn keep(output: Output, holds: Duration) -> Result<Answer, Box<Output>> {
    if output.outcome == Outcome::Ok { Ok(Answer { output: Arc::new(output), holds }) } else { Err(Box::new(output)) }
}

/// What makes two calls the same.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    tool: Identity,
    arguments: Arc<str>,
    whose: Whose,
}

impl Key {
    fn of(ask: &Ask<'_>) -> Self {
        Self { tool: Identity(Arc::clone(ask.tool)), arguments: ask.arguments.canonical().into(), whose: Whose::of(ask.caller) }
    }
}

/// A tool of one configuration. After a reload it is another one, whatever its name: everything that has a say in its answer may have changed.
#[derive(Clone)]
struct Identity(Arc<Tool>);

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Identity {}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// Who may see an answer again: the key together with the end user, or whoever has the same credential for the provider. Callers without
/// either are one caller to all rules.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Whose {
    Key(KeyName, Option<Arc<str>>),
    Bearer(KeyHash),
    Anonymous,
}

impl Whose {
    fn of(caller: &Caller) -> Self {
        match (&caller.key, &caller.bearer) {
            (Some(key), _) => Self::Key(key.clone(), caller.user.clone()),
            (None, Some(bearer)) => Self::Bearer(gate::hash_of(bearer.expose())),
            (None, None) => Self::Anonymous,
        }
    }
}

/// A result, and how long it holds.
#[derive(Clone)]
struct Answer {
    output: Arc<Output>,
    holds: Duration,
}

/// What a result takes, in bytes.
fn size(output: &Output) -> usize {
    output.text.len() + output.media.iter().map(|media| media.base64().len()).sum::<usize>()
}

struct AsLongAsItHolds;

impl Expiry<Key, Answer> for AsLongAsItHolds {
    fn expire_after_create(&self, _: &Key, answer: &Answer, _: Moment) -> Option<Duration> {
        Some(answer.holds)
    }
}

#[cfg(test)]
mod tests;
