//! The transcript as `contents` and `systemInstruction`: the roles `user` and `model`, neighbours of one role in one content, and of each
//! turn of calls exactly as many results, in the order of the calls, in a content of their own.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::super::Unsupported;
use super::super::canon::{Call, Message, Part, Parts, Role, is_object, says_something, text, unreadable};
use super::super::ids::is_made;
use super::super::thoughts::Thought;
use super::media;
use super::model::Model;
use super::tools::sent_name;
use crate::wire::object::push_quoted;

/// Stands where a model of the third generation wants a signature for a call that it did not make. It is what the API itself documents for
/// histories of other models.
const NO_SIGNATURE: &str = r#""skip_thought_signature_validator""#;

/// The API wants a turn of the user's first, and text in it.
const OPENING: &str = r#"{"role":"user","parts":[{"text":" "}]}"#;

/// Writes a transcript: the inside of the list of contents behind `out`. Returned is the inside of the list of the system text's parts; empty:
/// there is none. `signer` is who gets its own signatures back.
///
/// # Errors
/// Something that this model cannot be sent, or a result that answers no call.
pub(super) fn write(messages: &[Message<'_>], model: &Model<'_>, signer: &str, out: &mut String) -> Result<String, Unsupported> {
    let mut writer = Writer { start: out.len(), turns: out, system: String::new(), open: None, model, signer };
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        at += 1;
        match message.role {
            Role::System => writer.system(message)?,
            Role::User => writer.say("user", &message.parts()?)?,
            Role::Assistant => {
                writer.assistant(message)?;
                if !message.calls().is_empty() {
                    let results = results(&messages[at..]);
                    writer.answer(message.calls(), &results)?;
                    at += skipped(&messages[at..]);
                }
            }
            Role::Tool => return Err(unreadable("hold a tool message that answers no call of the turn before it")),
        }
    }
    Ok(writer.end())
}

/// The raw signature of a call, or of the text where there is no id.
fn signature<'t>(thoughts: &[Thought<'t>], id: &str) -> Option<&'t str> {
    let own = thoughts.iter().filter(|thought| text(thought.id) == id);
    own.filter_map(|thought| thought.data).rfind(|data| says_something(data)).map(RawValue::get)
}

/// The results of a turn: the tool messages before the next turn of the model's.
fn results<'m, 'a>(rest: &'m [Message<'a>]) -> Vec<&'m Message<'a>> {
    rest.iter().take_while(|message| message.role == Role::Tool).collect()
}

fn skipped(rest: &[Message<'_>]) -> usize {
    rest.iter().take_while(|message| message.role == Role::Tool).count()
}

struct Writer<'w> {
    turns: &'w mut String,
    /// Where they begin.
    start: usize,
    system: String,
    /// The role of the content that may still be added to.
    open: Option<&'static str>,
    model: &'w Model<'w>,
    signer: &'w str,
}

impl Writer<'_> {
    fn system(&mut self, message: &Message<'_>) -> Result<(), Unsupported> {
        for part in message.parts()? {
            if media::is_media(&part) {
                return Err(unreadable("hold a system message with something else than text"));
            }
            separate(&mut self.system);
            media::write(&part, self.model, &mut self.system)?;
        }
        Ok(())
    }

    fn say(&mut self, role: &'static str, parts: &Parts<'_>) -> Result<(), Unsupported> {
        for part in parts {
            self.begin(role);
            media::write(part, self.model, self.turns)?;
        }
        Ok(())
    }

    fn assistant(&mut self, message: &Message<'_>) -> Result<(), Unsupported> {
        let parts = message.parts()?;
        let thoughts = message.thoughts(self.signer);
        self.say("model", &parts)?;
        if let Some(signature) = signature(&thoughts, "") {
            self.sign_text(parts.is_empty(), signature);
        }
        for (place, call) in message.calls().iter().enumerate() {
            let stands_in = (place == 0 && self.model.wants_signatures()).then_some(NO_SIGNATURE);
            self.call(call, signature(&thoughts, &call.id()).or(stands_in))?;
        }
        Ok(())
    }

    /// Puts a signature onto the last text, or onto an empty one, as the API itself sends it.
    fn sign_text(&mut self, is_silent: bool, signature: &str) {
        if is_silent {
            self.begin("model");
            self.turns.push_str(r#"{"text":""}"#);
        }
        let turns = &mut *self.turns;
        turns.pop();
        turns.push_str(r#","thoughtSignature":"#);
        turns.push_str(signature);
        turns.push('}');
    }

    fn call(&mut self, call: &Call<'_>, signature: Option<&str>) -> Result<(), Unsupported> {
        let name = call.name();
        if name.is_empty() {
            return Err(unreadable("hold a call without a name"));
        }
        self.begin("model");
        let out = &mut *self.turns;
        out.push_str(r#"{"functionCall":{"#);
        identify(&call.id(), out);
        out.push_str(r#""name":"#);
        push_quoted(out, &sent_name(&name));
        out.push_str(r#","args":"#);
        out.push_str(&call.arguments());
        out.push('}');
        if let Some(signature) = signature {
            out.push_str(r#","thoughtSignature":"#);
            out.push_str(signature);
        }
        out.push('}');
        Ok(())
    }

    /// All results of a turn, in the order of its calls, whatever the order of the answers.
    fn answer(&mut self, calls: &[Call<'_>], results: &[&Message<'_>]) -> Result<(), Unsupported> {
        let mut left: Vec<Option<&Message<'_>>> = results.iter().copied().map(Some).collect();
        let mut beside = Vec::new();
        self.close();
        for call in calls {
            let id = call.id();
            let answers = |result: &&mut Option<&Message<'_>>| result.is_some_and(|result| result.answers() == id);
            let Some(result) = left.iter_mut().find(answers).and_then(Option::take) else { continue };
            let parts = result.parts()?;
            let (pictures, texts): (Parts<'_>, Parts<'_>) = parts.into_iter().partition(media::is_media);
            self.begin("user");
            self.result(call, &texts, if self.model.takes_media_in_results() { &pictures[..] } else { &[] })?;
            if !self.model.takes_media_in_results() && !pictures.is_empty() {
                beside.push((call.name(), pictures));
            }
        }
        if left.iter().any(Option::is_some) {
            return Err(unreadable("hold a tool message that answers no call of the turn before it"));
        }
        self.close();
        for (name, pictures) in beside {
            self.begin("user");
            self.turns.push_str(r#"{"text":"#);
            push_quoted(self.turns, &format!("Returned by the tool {name}:"));
            self.turns.push('}');
            self.say("user", &pictures)?;
        }
        Ok(())
    }

    fn result(&mut self, call: &Call<'_>, texts: &Parts<'_>, media: &[Part<'_>]) -> Result<(), Unsupported> {
        let out = &mut *self.turns;
        out.push_str(r#"{"functionResponse":{"#);
        identify(&call.id(), out);
        out.push_str(r#""name":"#);
        push_quoted(out, &sent_name(&call.name()));
        out.push_str(r#","response":"#);
        response(texts, out);
        if !media.is_empty() {
            out.push_str(r#","parts":["#);
            for part in media {
                separate(out);
                media::write(part, self.model, out)?;
            }
            out.push(']');
        }
        out.push_str("}}");
        Ok(())
    }

    /// Goes on with a content of this role, or begins one.
    fn begin(&mut self, role: &'static str) {
        if self.open == Some(role) {
            self.turns.push(',');
            return;
        }
        self.close();
        let out = &mut *self.turns;
        if out.len() == self.start && role == "model" {
            out.push_str(OPENING);
        }
        separate(out);
        out.push_str(r#"{"role":""#);
        out.push_str(role);
        out.push_str(r#"","parts":["#);
        self.open = Some(role);
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.turns.push_str("]}");
        }
    }

    fn end(mut self) -> String {
        self.close();
        if self.turns.len() == self.start {
            self.turns.push_str(OPENING);
        }
        self.system
    }
}

/// The response of a tool: its own object where its text is one, else its text as `result`.
fn response(texts: &Parts<'_>, out: &mut String) {
    let text = match &texts[..] {
        [] => Cow::Borrowed(""),
        [only] => media::said(only).unwrap_or_default().into(),
        several => several.iter().filter_map(media::said).collect::<String>().into(),
    };
    if is_object(&text) {
        out.push_str(&text);
    } else {
        out.push_str(r#"{"result":"#);
        push_quoted(out, &text);
        out.push('}');
    }
}

/// An id that the API itself gave, or that it may learn of another's call. It never heard of those that were made here.
fn identify(id: &str, out: &mut String) {
    if !id.is_empty() && !is_made(id) {
        out.push_str(r#""id":"#);
        push_quoted(out, id);
        out.push(',');
    }
}

fn separate(out: &mut String) {
    if matches!(out.as_bytes().last(), Some(b'}')) {
        out.push(',');
    }
}
