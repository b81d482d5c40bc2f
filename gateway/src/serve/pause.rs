//! Runs that wait for their callers: taken up where the caller's history comes back to one, put aside where calls of the caller's own tools
//! go out.

use bytes::Bytes;
use jiff::Timestamp;
use toolgate_config::Config;
use toolgate_policies::facts::Caller;
use toolgate_policies::gate;
use toolgate_policies::zone::Mark;

use crate::failure::Failure;
use crate::gateway::Gateway;
use crate::provider::ids::hex;
use crate::store::Unusable;
use crate::store::pauses::{LONGEST, Owner, Pause};
use crate::talk::Talk;
use crate::talk::paused::{self, Kept, Paused};
use crate::wire::{History, Request};

/// How often a place is looked for that is free.
const TRIES: usize = 4;

/// What a request goes on from.
pub(super) struct TakenUp {
    /// The transcript, with what was hidden in its place.
    pub(super) messages: Vec<Bytes>,
    /// The run that paused with the last thing that the model said.
    pub(super) paused: Option<Paused>,
    /// The most sensitive data that is in the transcript by our own doing.
    pub(super) mark: Mark,
}

/// The history as the caller sent it, with nothing that was hidden of it.
///
/// # Errors
/// It does not hold together.
pub(super) fn as_it_came(request: &Request) -> Result<TakenUp, Failure> {
    request.history().map_or(Ok(()), History::check)?;
    Ok(TakenUp { messages: request.transcript().to_vec(), paused: None, mark: Mark::CLEAN })
}

/// Looks for what was hidden of this history. One without calls costs nothing here.
///
/// # Errors
/// The history does not hold together, or is not the one that its calls were returned in; or the store cannot be read.
pub(super) async fn take_up(gateway: &Gateway, config: &Config, caller: &Caller, request: &Request) -> Result<TakenUp, Failure> {
    let as_it_came = as_it_came(request)?;
    let Some(history) = request.history() else { return Ok(as_it_came) };
    let all = paused::seen(history);
    // Nothing is hidden where there is no tool to hide anything of.
    if all.is_empty() || config.tools.iter().next().is_none() {
        return Ok(as_it_came);
    }
    let places = all.iter().map(|seen| seen.place).collect();
    let kept = gateway.pauses.find(owner(caller), places, Timestamp::now()).await.map_err(closed)?;
    let mut known = Vec::new();
    for seen in &all {
        let found = paused::recognise(&history.entries[seen.at], seen, &all, &kept);
        known.extend(found?.map(|paused| (*seen, paused)));
    }
    if known.is_empty() {
        return Ok(as_it_came);
    }
    let messages = paused::restore(history, &known);
    let mark = known.iter().fold(Mark::CLEAN, |mark, (_, paused)| mark.raised(paused.mark()));
    let last = known.pop().filter(|(seen, paused)| paused.talk.goes_on() && paused::is_last(history, seen));
    let paused = last.map(|(_, paused)| paused);
    Ok(TakenUp { messages, paused, mark })
}

/// Puts a run aside whose calls go back to the caller, on the disk when this returns. Where somebody else of the same owner waits at its
/// place, the calls get other ids.
///
/// # Errors
/// The store cannot be written.
pub(super) async fn put_aside(
    gateway: &Gateway,
    caller: &Caller,
    request: &Request,
    talk: &mut Talk,
    mark: Mark,
    trace: &str,
) -> Result<(), Failure> {
    let hides_anything = talk.hides_anything();
    // Ids that no other answer has need no note that nothing is hidden behind them.
    if !hides_anything && talk.returned().all(|(_, call)| paused::is_made_at_random(&call.id, &call.name)) {
        return Ok(());
    }
    let read = |_| Failure::InvalidRequest("messages", "must be objects, as the API has them".to_owned());
    let history =
        request.history().map_or_else(|| History::read(request.transcript()).map_err(read), |history| Ok(history.clone()))?;
    for _ in 0..TRIES {
        let place = paused::place(&history, talk.returned().map(|(_, call)| call.id.as_str()));
        let state = hides_anything.then(|| Paused::new(talk.clone(), mark, trace.to_owned()).to_json());
        if state.as_ref().is_some_and(|state| state.len() > LONGEST) {
            return Err(Failure::Internal("a run that is too long to be put aside"));
        }
        let content = if hides_anything { paused::content(talk) } else { Default::default() };
        let pause = Pause { owner: owner(caller), at: Timestamp::now(), content, kept: Kept { place, state } };
        if gateway.pauses.keep(pause).await.map_err(closed)? {
            return Ok(());
        }
        talk.rename_returned(|id| format!("{id}_{:08x}", rand()));
    }
    Err(Failure::Internal("a place for a run that pauses"))
}

/// Whose pauses these are. Who comes with a provider's own key is known by that.
fn owner(caller: &Caller) -> Owner {
    let bearer = caller.bearer.as_ref().map(|bearer| format!("bearer {}", hex(&gate::hash_of(bearer.expose()))));
    Owner::new(bearer.as_deref().unwrap_or(caller.label()), caller.user.as_deref())
}

fn rand() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one("id") as u32
}

fn closed(Unusable(why): Unusable) -> Failure {
    Failure::Closed(format!("runs that wait: {why}"))
}

impl From<paused::Edited> for Failure {
    fn from(edited: paused::Edited) -> Self {
        Self::InvalidRequest("messages", format!("cannot be sent on: {edited}"))
    }
}
