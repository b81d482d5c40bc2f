//! A run that was put aside, and how it is known again when its caller comes back: by the ids of the calls that were returned to it, and by
//! what stands before them in its history.
//!
//! Ids alone do not tell runs apart: some providers count them from 0 in every answer. So a pause has a [`Place`]: a digest of the ids, and
//! one of the conversation up to them, made of what clients keep when they write a history anew: whose messages they are, the texts of users
//! and models, the calls. Instructions, and what the caller's tools returned, are not in it, for clients change those. What each agreement
//! means is [`recognise`]'s.

use std::fmt;

use bytes::Bytes;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolgate_policies::zone::{self, Mark};
use toolgate_tools::arguments::Arguments;

use super::{Hidden, Talk};
use crate::wire::history::{Asked, Entry, History, Id, Role, segments};
use crate::wire::object::string;

/// Enough to tell everything apart that one caller says within an hour.
pub type Digest = [u8; 16];

/// How what stands in place of a secret begins.
const HIDDEN: &str = "[redacted:";

/// What a pause is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Of the ids of the calls that were returned, in whichever order.
    pub calls: Digest,
    /// Of the conversation before them, as the caller has it.
    pub before: Digest,
}

/// A message with calls in a caller's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which message.
    pub at: usize,
    /// Where its pause would be.
    pub place: Place,
}

/// A pause, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where it is found.
    pub place: Place,
    /// A [`Paused`] as JSON. `None`: nothing was hidden from the caller, and its history is whole.
    pub state: Option<String>,
}

/// A run that was put aside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Paused {
    /// How far it came.
    pub talk: Talk,
    class: String,
    personal: bool,
    /// The trace of the request that it was put aside in.
    pub trace: String,
}

impl Paused {
    /// A run that pauses, with the mark of what it has read.
    pub fn new(talk: Talk, mark: Mark, trace: String) -> Self {
        Self { talk, class: mark.class.as_str().to_owned(), personal: mark.personal, trace }
    }

    /// As it is kept. One that cannot be written is found to be unreadable, and never taken for nothing.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The most sensitive data that it had read.
    pub fn mark(&self) -> Mark {
        Mark { class: zone::declared(&self.class), personal: self.personal }
    }
}

/// Where the next pause of this conversation will be found, when these ids go back to the caller.
pub fn place<'i>(history: &History, ids: impl Iterator<Item = &'i str>) -> Place {
    let mut before = Prefix::default();
    history.entries.iter().for_each(|entry| before.add(entry));
    Place { calls: of_ids(ids), before: before.digest() }
}

/// The messages with calls of a history.
pub fn seen(history: &History) -> Vec<Seen> {
    let mut before = Prefix::default();
    let mut seen = Vec::new();
    for (at, entry) in history.entries.iter().enumerate() {
        if !entry.calls.is_empty() {
            let calls = of_ids(entry.calls.iter().map(|call| call.id.as_str()));
            seen.push(Seen { at, place: Place { calls, before: before.digest() } });
        }
        before.add(entry);
    }
    seen
}

/// What is hidden, for telling two pauses of one place apart: by what it says, and not by the mark that is around it, which no two runs share.
pub fn content(talk: &Talk) -> Digest {
    let mut context = Context::new(&SHA256);
    talk.added().iter().for_each(|message| put(&mut context, talk.seal.taken_off(message).as_bytes()));
    digest(context)
}

/// A history that is not the one that its calls were returned in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    at: usize,
    how: How,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum How {
    /// A call has another name, or other arguments.
    Call(String),
    /// The message has fewer calls, or more.
    Calls(String),
    /// The messages before are others.
    Before,
    /// What was hidden was written by another version, and cannot be read: also how far the run had come, and what it had seen.
    Unreadable,
}

/// The pause that a message with calls comes from, among those that are kept at a place like its own. `None`: none; the history goes on as the
/// caller sent it.
///
/// The same ids and the same conversation: it is that pause. The same ids in another conversation: where they were made at random it is that
/// pause all the same, and the caller has shortened its history; where they were not, it is nobody's when the calls differ, and cannot be
/// told when they do not. `all` are the messages with calls of the same history. The same conversation with only some of the ids: calls were dropped.
///
/// # Errors
/// [`Edited`]: what is hidden belongs to another history than this, or it cannot be told.
pub fn recognise(entry: &Entry, seen: &Seen, all: &[Seen], kept: &[Kept]) -> Result<Option<Paused>, Edited> {
    let edited = |how| Edited { at: seen.at, how };
    let read = |kept: &Kept| kept.state.as_deref().map(serde_json::from_str::<Paused>);
    if let Some(kept) = kept.iter().find(|kept| kept.place == seen.place) {
        let Some(paused) = read(kept) else { return Ok(None) };
        let paused = paused.map_err(|_| edited(How::Unreadable))?;
        let other = other_call(entry, &paused.talk).map(|call| How::Call(call.id.clone()));
        return other.map_or(Ok(Some(paused)), |how| Err(edited(how)));
    }
    // What is found at its own place in this history is not what is looked for.
    let kept: Vec<&Kept> = kept.iter().filter(|kept| all.iter().all(|seen| seen.place != kept.place)).collect();
    for paused in kept.iter().filter(|kept| kept.place.calls == seen.place.calls).filter_map(|kept| read(kept)) {
        let paused = paused.map_err(|_| edited(How::Unreadable))?;
        let other = other_call(entry, &paused.talk);
        match (entry.calls.iter().all(|call| is_made_at_random(&call.id, &call.name)), other) {
            (true, None) => return Ok(Some(paused)),
            (true, Some(call)) => return Err(edited(How::Call(call.id.clone()))),
            (false, None) => return Err(edited(How::Before)),
            (false, Some(_)) => {}
        }
    }
    for paused in kept.iter().filter(|kept| kept.place.before == seen.place.before).filter_map(|kept| read(kept)?.ok()) {
        let has = |id: &str| entry.calls.iter().any(|call| call.id == id);
        let ids: Vec<&str> = paused.talk.returned().map(|(_, call)| call.id.as_str()).collect();
        let missing = ids.iter().find(|id| !has(id)).copied();
        if let Some(id) = missing.or(entry.calls.first().map(|call| call.id.as_str())).filter(|_| ids.iter().any(|id| has(id))) {
            return Err(edited(How::Calls(id.to_owned())));
        }
    }
    Ok(None)
}

/// The transcript with what was hidden in its place: the caller's message with its calls and their results becomes what the model has said
/// and read.
pub fn restore(history: &History, paused: &[(Seen, Paused)]) -> Vec<Bytes> {
    let mut messages: Vec<Bytes> = Vec::with_capacity(history.entries.len() + 4 * paused.len());
    let mut at = 0;
    while let Some(entry) = history.entries.get(at) {
        let known = paused.iter().find(|(seen, _)| seen.at == at);
        let Some(hidden) = known.and_then(|(_, paused)| paused.talk.hidden()) else {
            messages.push(entry.bytes.clone());
            at += 1;
            continue;
        };
        let answers = history.answers(at);
        at = answers.end;
        put_hidden(&hidden, &history.entries[answers], &mut messages);
    }
    segments(&messages)
}

fn put_hidden(hidden: &Hidden<'_>, answers: &[Entry], messages: &mut Vec<Bytes>) {
    let owned = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    messages.extend(hidden.before.iter().map(|message| owned(message)));
    messages.push(owned(hidden.turn));
    for (id, result) in &hidden.calls {
        let own = || answers.iter().find(|answer| answer.answers.as_deref() == Some(id)).map(|answer| answer.bytes.clone());
        messages.extend(result.map(owned).or_else(own));
    }
}

/// Whether the last thing that a model said in this history is this message: then a run that paused there goes on.
pub fn is_last(history: &History, seen: &Seen) -> bool {
    history.entries.iter().rposition(|entry| entry.role == Role::Assistant) == Some(seen.at)
}

/// A call of the message that is not what was returned under its id.
fn other_call<'e>(entry: &'e Entry, talk: &Talk) -> Option<&'e Asked> {
    entry.calls.iter().find(|asked| {
        let returned = talk.returned().find(|(_, call)| call.id == asked.id);
        !returned.is_some_and(|(_, call)| {
            // What is no JSON goes through clients in many ways; and what was hidden from the caller cannot be told from what it changed.
            let alike = match (arguments(entry, asked), &call.arguments) {
                (Some(theirs), Ok(ours)) => theirs.contains(HIDDEN) || theirs == ours.canonical(),
                _ => true,
            };
            call.name == asked.name && alike
        })
    })
}

/// The arguments of a call in a history, so that two that mean the same are equal. `None`: they are no arguments.
fn arguments(entry: &Entry, call: &Asked) -> Option<String> {
    let raw = entry.arguments(call).unwrap_or("null");
    let text = string(raw);
    Arguments::parse(text.as_deref().unwrap_or(raw)).ok().map(|arguments| arguments.canonical())
}

/// Whether nobody gives the id of a call twice: a part of it has letters and digits, eight at least, or it is of Mistral's form, nine of
/// them. What stands in the name of the function is not of chance: some servers make ids of names.
pub fn is_made_at_random(id: &str, name: &str) -> bool {
    let is_of_chance = |part: &str| {
        let has = |kind: fn(&u8) -> bool| part.as_bytes().iter().any(kind);
        let is_mixed = part.len() >= 8 && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
        (is_mixed || (part.len() == 9 && part == id)) && !name.contains(part)
    };
    id.split(|character: char| !character.is_ascii_alphanumeric()).any(is_of_chance)
}

/// The digest of a conversation while it is read.
struct Prefix(Context);

impl Default for Prefix {
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

#[derive(Deserialize)]
struct Content<'c> {
    #[serde(borrow, default)]
    content: Option<&'c RawValue>,
}

#[derive(Deserialize)]
struct Part<'p> {
    #[serde(borrow, default)]
    text: Option<&'p RawValue>,
}

impl Prefix {
    fn add(&mut self, entry: &Entry) {
        let context = &mut self.0;
        match entry.role {
            Role::System => {}
            Role::Tool => {
                put(context, b"tool");
                put(context, entry.answers.as_deref().unwrap_or_default().as_bytes());
            }
            Role::User | Role::Assistant | Role::Other => {
                put(context, if entry.role == Role::Assistant { b"assistant" } else { b"user" });
                put(context, text(entry).trim().as_bytes());
                for call in &entry.calls {
                    put(context, call.id.as_bytes());
                    put(context, call.name.as_bytes());
                    put(context, arguments(entry, call).unwrap_or_default().as_bytes());
                }
            }
        }
    }

    fn digest(&self) -> Digest {
        digest(self.0.clone())
    }
}

/// What a message says, whether as one text or in parts.
fn text(entry: &Entry) -> String {
    let content = serde_json::from_slice::<Content<'_>>(&entry.bytes).ok().and_then(|message| message.content);
    let Some(raw) = content.map(RawValue::get) else { return String::new() };
    let spelt = |raw: &str| string(raw).map_or_else(|| raw.to_owned(), std::borrow::Cow::into_owned);
    match serde_json::from_str::<Vec<Part<'_>>>(raw) {
        Ok(parts) => parts.iter().filter_map(|part| part.text).map(|text| spelt(text.get())).collect(),
        Err(_) => spelt(raw),
    }
}

fn of_ids<'i>(ids: impl Iterator<Item = &'i str>) -> Digest {
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_unstable();
    let mut context = Context::new(&SHA256);
    ids.iter().for_each(|id| put(&mut context, id.as_bytes()));
    digest(context)
}

fn put(context: &mut Context, part: &[u8]) {
    context.update(&(part.len() as u64).to_le_bytes());
    context.update(part);
}

fn digest(context: Context) -> Digest {
    let mut digest = Digest::default();
    let whole = context.finish();
    digest.iter_mut().zip(whole.as_ref()).for_each(|(to, from)| *to = *from);
    digest
}

/// The sentence for the caller, without its full stop.
impl fmt::Display for Edited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match &self.how {
            How::Call(id) => write!(
                f,
                "messages[{at}] asks for the call {} with another name or other arguments than it was returned with",
                Id(id)
            ),
            How::Calls(id) => write!(f, "messages[{at}] has not the calls that were returned together: see the call {}", Id(id)),
            How::Unreadable => write!(
                f,
                "messages[{at}] has calls of a run that this version cannot take up: begin the conversation anew before this message"
            ),
            How::Before => write!(
                f,
                "messages[{at}] has calls that were returned in another conversation: what stands before it is not what stood there then"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
