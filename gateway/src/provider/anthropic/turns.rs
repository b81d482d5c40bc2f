//! The transcript: what OpenAI has as a list of messages is here a system text and turns that alternate. Neighbours of one role are one
//! turn, the results of tools stand first in theirs, and only thoughts that this provider signed are in it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::Unsupported;
use super::super::chunks::NAMELESS;
use super::super::ids::{self, Form};
use super::super::thoughts::{self, Thought};
use super::parts::{self, Of, push, unsupported};
use crate::wire::object::{as_str, push_quoted};

/// What the user is made to have said before a model that speaks first, and beside nothing but a system text: the API wants the user to begin,
/// and to say something.
const BEGINNING: &str = r#"{"role":"user","content":[{"type":"text","text":"."}]}"#;

/// What the messages come to.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    /// The system blocks, as a list without its brackets.
    pub(super) system: String,
    turns: Vec<Turn>,
    /// The tools that its calls name, each once.
    pub(super) called: Vec<String>,
    ids: Vec<Id>,
}

/// A call's id, and what is sent for it.
#[derive(Debug)]
struct Id {
    of: String,
    sent: String,
    is_answered: bool,
}

/// Which thoughts stay in a transcript.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay<'s> {
    /// By this provider, and from when on.
    pub(super) whose: Whose<'s>,
    /// Those without a text as well: the model keeps its thoughts to itself, and signs them all the same.
    pub(super) hidden: bool,
}

/// Whose thoughts, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose<'s> {
    /// Nobody's: the model shall not think.
    Nobodys,
    /// Those since the user spoke last. What stood before earlier ones may have changed: a run's own rounds are not in its caller's history.
    OfThisTurn(&'s str),
    /// All.
    All(&'s str),
}

#[derive(Debug)]
struct Turn {
    role: Role,
    /// What tools returned, which must stand before anything else.
    results: String,
    blocks: String,
    /// A model's turn that calls tools.
    has_calls: bool,
    /// It begins with a thought.
    has_thoughts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

#[derive(Deserialize)]
struct Message<'m> {
    #[serde(borrow, default)]
    role: Cow<'m, str>,
    #[serde(borrow, default)]
    content: Option<&'m RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'m RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Call<'m>>>,
    #[serde(borrow, default)]
    tool_call_id: Option<Cow<'m, str>>,
    #[serde(borrow, default)]
    function_call: Option<&'m RawValue>,
    #[serde(borrow, default)]
    reasoning_details: Option<&'m RawValue>,
    #[serde(borrow, default)]
    cache_control: Option<&'m RawValue>,
}

#[derive(Deserialize)]
struct Call<'m> {
    #[serde(borrow, default)]
    id: Option<Cow<'m, str>>,
    #[serde(borrow, default)]
    function: Option<Function<'m>>,
}

#[derive(Deserialize)]
struct Function<'m> {
    #[serde(borrow, default)]
    name: Cow<'m, str>,
    #[serde(borrow, default)]
    arguments: Option<&'m RawValue>,
}

/// How the text of a result that is an error begins, as JSON: ours do, and callers' own that do are none the less.
const OF_AN_ERROR: &str = "\"Error: ";

impl Transcript {
    /// Reads the list of messages.
    pub(super) fn read(messages: &RawValue, stay: Stay<'_>) -> Result<Self, Unsupported> {
        let messages: Vec<Message<'_>> = serde_json::from_str(messages.get())
            .map_err(|_| unsupported("messages", "must be a list of messages in the form of the API"))?;
        let mut transcript = Self::default();
        let asked = messages.iter().rposition(|message| message.role == "user").unwrap_or(0);
        for (at, message) in messages.iter().enumerate() {
            let signer = match stay.whose {
                Whose::Nobodys => None,
                Whose::OfThisTurn(signer) => Some(signer).filter(|_| at > asked),
                Whose::All(signer) => Some(signer),
            };
            transcript.take(message, &own(message, signer, stay.hidden))?;
        }
        Ok(transcript)
    }

    /// Whether the model is to go on with what it began without a thought: since the user's last words it has called tools, and the first of
    /// those turns does not begin with a thought of its own. What it says between its later calls needs none.
    pub(super) fn began_without_thoughts(&self) -> bool {
        let has_words = |turn: &Turn| turn.role == Role::User && turn.results.is_empty();
        let own = self.turns.iter().rposition(has_words).map_or(0, |at| at + 1);
        let first = self.turns[own..].iter().find(|turn| turn.role == Role::Assistant);
        first.is_some_and(|turn| turn.has_calls && !turn.has_thoughts)
    }

    /// The turns, as a list without its brackets.
    pub(super) fn render(&self) -> String {
        let length = |turn: &Turn| turn.results.len() + turn.blocks.len() + 48;
        let mut out = String::with_capacity(self.turns.iter().map(length).sum::<usize>() + BEGINNING.len());
        if self.turns.first().is_none_or(|turn| turn.role != Role::User) {
            out.push_str(BEGINNING);
        }
        for turn in &self.turns {
            push(&mut out, turn.role.opening());
            out.push_str(&turn.results);
            if !turn.results.is_empty() && !turn.blocks.is_empty() {
                out.push(',');
            }
            out.push_str(&turn.blocks);
            out.push_str("]}");
        }
        out
    }

    fn take(&mut self, message: &Message<'_>, thoughts: &[(Option<u64>, String)]) -> Result<(), Unsupported> {
        if message.function_call.is_some_and(|call| call.get() != "null") {
            return Err(unsupported("function_call", "is of old: send `tool_calls`"));
        }
        match &*message.role {
            "system" | "developer" => parts::blocks(message.content, Of::System, message.cache_control, &mut self.system),
            "user" => self.said(message),
            "tool" => self.returned(message),
            "assistant" => self.answered(message, thoughts),
            _ => Err(unsupported("messages", "hold a role that this model's provider does not have")),
        }
    }

    fn said(&mut self, message: &Message<'_>) -> Result<(), Unsupported> {
        let mut blocks = String::new();
        parts::blocks(message.content, Of::User, message.cache_control, &mut blocks)?;
        if !blocks.is_empty() {
            push(&mut self.turn(Role::User).blocks, &blocks);
        }
        Ok(())
    }

    fn returned(&mut self, message: &Message<'_>) -> Result<(), Unsupported> {
        let mut content = String::new();
        parts::blocks(message.content, Of::User, None, &mut content)?;
        let id = self.answered_id(message.tool_call_id.as_deref().unwrap_or_default());
        let results = &mut self.turn(Role::User).results;
        push(results, r#"{"type":"tool_result","tool_use_id":"#);
        push_quoted(results, &id);
        if !content.is_empty() {
            results.push_str(r#","content":"#);
            match message.content.filter(|content| content.get().starts_with('"')) {
                Some(text) => results.push_str(text.get()),
                None => results.extend(["[", content.as_str(), "]"]),
            }
        }
        if message.content.is_some_and(|content| content.get().starts_with(OF_AN_ERROR)) {
            results.push_str(r#","is_error":true"#);
        }
        parts::close(message.cache_control, results);
        Ok(())
    }

    fn answered(&mut self, message: &Message<'_>, thoughts: &[(Option<u64>, String)]) -> Result<(), Unsupported> {
        let mut rest = Vec::with_capacity(2);
        let (calls, mut text) = (message.tool_calls.as_deref().unwrap_or_default(), String::new());
        let cache = message.cache_control.filter(|_| calls.is_empty());
        parts::blocks(message.content, Of::Assistant, cache, &mut text)?;
        if let Some(refusal) = message.refusal.filter(|_| text.is_empty()) {
            parts::text(refusal, cache, &mut text);
        }
        rest.extend(Some(text).filter(|text| !text.is_empty()));
        for (at, call) in calls.iter().enumerate() {
            let cache = message.cache_control.filter(|_| at + 1 == calls.len());
            rest.push(self.call(call, cache));
        }
        // A turn of thoughts alone is refused, and says nothing.
        if !rest.is_empty() {
            self.turn(Role::Assistant).add(thoughts, rest, !calls.is_empty());
        }
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>, cache: Option<&RawValue>) -> String {
        let name = call.function.as_ref().map(|function| &*function.name).filter(|name| !name.is_empty()).unwrap_or(NAMELESS);
        if !self.called.iter().any(|called| called == name) {
            self.called.push(name.to_owned());
        }
        let mut block = r#"{"type":"tool_use","id":"#.to_owned();
        push_quoted(&mut block, &self.new_id(call.id.as_deref().unwrap_or_default()));
        block.push_str(r#","name":"#);
        push_quoted(&mut block, name);
        block.push_str(r#","input":"#);
        block.push_str(&input(call.function.as_ref().and_then(|function| function.arguments)));
        parts::close(cache, &mut block);
        block
    }

    /// What is sent for the id of a call. No two may be alike; some providers, whose history this may be, begin anew with each answer.
    fn new_id(&mut self, id: &str) -> String {
        let before = self.ids.iter().filter(|before| before.of == id).count();
        let sent = match before {
            0 => ids::fit(id, Form::Word).into_owned(),
            // What no form takes becomes a hash.
            _ => ids::fit(&format!("{id}\n{before}"), Form::Word).into_owned(),
        };
        self.ids.push(Id { of: id.to_owned(), sent: sent.clone(), is_answered: false });
        sent
    }

    /// What was sent for the id of the call that this is the result of.
    fn answered_id(&mut self, id: &str) -> String {
        let Some(call) = self.ids.iter_mut().find(|call| call.of == id && !call.is_answered) else {
            return ids::fit(id, Form::Word).into_owned();
        };
        call.is_answered = true;
        call.sent.clone()
    }

    /// The turn under way, which is a new one where the role changes.
    fn turn(&mut self, role: Role) -> &mut Turn {
        if self.turns.last().is_none_or(|turn| turn.role != role) {
            self.turns.push(Turn::new(role));
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }
}

impl Turn {
    fn new(role: Role) -> Self {
        Self { role, results: String::new(), blocks: String::new(), has_calls: false, has_thoughts: false }
    }

    /// Adds what a model said: its thoughts, each where it stood among the other blocks as far as that is known, or before them.
    fn add(&mut self, thoughts: &[(Option<u64>, String)], rest: Vec<String>, has_calls: bool) {
        self.has_thoughts |= self.blocks.is_empty() && !thoughts.is_empty();
        self.has_calls |= has_calls;
        let first = thoughts.first().and_then(|(index, _)| *index).unwrap_or(0);
        let (mut rest, mut at) = (rest.into_iter(), 0);
        for (index, thought) in thoughts {
            while index.is_some_and(|index| index.saturating_sub(first) > at) {
                let Some(block) = rest.next() else { break };
                push(&mut self.blocks, &block);
                at += 1;
            }
            push(&mut self.blocks, thought);
            at += 1;
        }
        rest.for_each(|block| push(&mut self.blocks, &block));
    }
}

impl Role {
    fn opening(self) -> &'static str {
        match self {
            Self::User => r#"{"role":"user","content":["#,
            Self::Assistant => r#"{"role":"assistant","content":["#,
        }
    }
}

/// The thoughts of a message that this provider signed, as blocks, and where each stood.
fn own(message: &Message<'_>, signer: Option<&str>, hidden: bool) -> Vec<(Option<u64>, String)> {
    let Some(signer) = signer else { return Vec::new() };
    let thoughts = thoughts::signed_by(signer, message.reasoning_details);
    thoughts.iter().filter_map(|thought| Some((thought.index, block_of(thought, hidden)?))).collect()
}

/// A thought as the block that it was. One without a signature was never whole, nor, of a model that shows its thoughts, one without a text.
fn block_of(thought: &Thought<'_>, hidden: bool) -> Option<String> {
    let is_there = |raw: &&RawValue| raw.get().starts_with('"') && raw.get().len() > 2;
    match &*thought.kind {
        "reasoning.text" => {
            let signature = thought.signature.filter(is_there)?.get();
            let text = thought.text.filter(is_there).map(RawValue::get).or(hidden.then_some("\"\""))?;
            Some(format!(r#"{{"type":"thinking","thinking":{text},"signature":{signature}}}"#))
        }
        "reasoning.encrypted" => {
            Some(format!(r#"{{"type":"redacted_thinking","data":{}}}"#, thought.data.filter(is_there)?.get()))
        }
        _ => None,
    }
}

/// The arguments of a call as the object that they spell. What spells none is an empty one: the model has been told that it was wrong.
fn input(arguments: Option<&RawValue>) -> Cow<'_, str> {
    let is_object = |text: &str| text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok();
    let text = match arguments {
        Some(raw) if raw.get().starts_with('{') => Cow::Borrowed(raw.get()),
        Some(raw) => as_str(raw).unwrap_or_default(),
        None => Cow::Borrowed(""),
    };
    if is_object(&text) { text } else { Cow::Borrowed("{}") }
}
