//! The end of a run that is not streamed: the caller's one completion and the headers that say how it came about.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use toolgate_config::money::NanoUsd;

use crate::reply::Whole;
use crate::talk::{Ending, Talk, Words};
use crate::trace::Run;
use crate::wire::{Reply, finish, object};

const STATUS: HeaderName = HeaderName::from_static("x-toolgate-status");
const REASON: HeaderName = HeaderName::from_static("x-toolgate-reason");
const ROUNDS: HeaderName = HeaderName::from_static("x-toolgate-rounds");
const TOOL_CALLS: HeaderName = HeaderName::from_static("x-toolgate-tool-calls");

const COST: HeaderName = HeaderName::from_static("x-toolgate-cost-usd");

/// What is told of a run.
pub(super) struct Told<'t> {
    /// How it went.
    pub(super) talk: &'t Talk,
    /// What it cost; `None`: of a part of it nobody knows.
    pub(super) cost: Option<NanoUsd>,
}

/// The completion that the caller gets.
pub(super) fn completion(reply: &Reply, ending: Ending, told: &Told<'_>, model: &str) -> Whole {
    let talk = told.talk;
    // Of a single round the provider's own usage stands as it came, if it is whole.
    let usage = (talk.asked() > 1 || reply.lacks_prompt()).then(|| talk.usage().render());
    let body = match ending.words {
        Words::AsTheyAre => reply.render(model, usage.as_deref()),
        Words::OwnCalls => {
            let calls = talk.returned().map(|(at, call)| (at, call.id.as_str()));
            reply.returning(calls).render(model, usage.as_deref())
        }
        Words::WithoutCalls => reply.ending(reply.content().unwrap_or("null"), finish::LENGTH).render(model, usage.as_deref()),
        Words::Instead(sentence) => reply.ending(&object::quoted(sentence), finish::LENGTH).render(model, usage.as_deref()),
    };
    let mut whole = Whole::json(body);
    tell(ending, told, whole.response.headers_mut());
    whole
}

/// Tells how a request that passed through went.
pub(super) fn tell_of_passage(run: &Run, headers: &mut HeaderMap) {
    headers.insert(STATUS, HeaderValue::from_static("completed"));
    headers.insert(ROUNDS, HeaderValue::from(run.asked));
    headers.insert(TOOL_CALLS, HeaderValue::from(0));
    tell_cost(run.cost(), headers);
}

fn tell_cost(cost: Option<NanoUsd>, headers: &mut HeaderMap) {
    if let Some(cost) = cost.and_then(|cost| HeaderValue::try_from(cost.to_string()).ok()) {
        headers.insert(COST, cost);
    }
}

/// Tells how the run went, in headers that are sent when it is over.
fn tell(ending: Ending, told: &Told<'_>, headers: &mut HeaderMap) {
    let talk = told.talk;
    let status = if ending.truncated.is_some() { "truncated" } else { "completed" };
    headers.insert(STATUS, HeaderValue::from_static(status));
    if let Some(reason) = ending.truncated {
        headers.insert(REASON, HeaderValue::from_static(reason.as_str()));
    }
    headers.insert(ROUNDS, HeaderValue::from(talk.asked()));
    headers.insert(TOOL_CALLS, HeaderValue::from(talk.executed()));
    tell_cost(told.cost, headers);
}
