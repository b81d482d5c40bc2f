//! What the scripted model has said so far: the calls whose ids a dialect loses or changes, and the thoughts that must come back as they were.

use serde_json::{Map, Value, json};

use super::Dialect;
use crate::scenario::Reply;

/// All that was said.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The calls, in order.
    pub calls: Vec<ToldCall>,
    /// Signatures of thoughts, each with what it signs.
    pub signatures: Vec<(String, String)>,
    /// The data of thoughts that were not shown.
    pub redacted: Vec<String>,
}

/// A call that was made.
#[derive(Clone, Debug)]
pub struct ToldCall {
    /// As the script has it.
    pub id: String,
    /// As it was sent.
    pub sent: String,
    /// The tool.
    pub name: String,
    /// What was to be done.
    pub arguments: Value,
    /// What must come back with it.
    pub signature: Option<String>,
}

impl Told {
    /// This reply is said now.
    pub fn say(&mut self, dialect: Dialect, reply: &Reply) {
        for (at, call) in reply.each_call().iter().enumerate() {
            let id = call.id_at(at);
            let arguments = super::object_of(&call.arguments_text().unwrap_or_default());
            let sent = dialect.id(&id);
            self.calls.push(ToldCall { id, sent, name: call.name.clone(), arguments, signature: call.signature.clone() });
        }
        for thought in reply.thoughts() {
            if let Some(signature) = thought["signature"].as_str() {
                self.signatures.push((signature.to_owned(), thought["text"].as_str().unwrap_or_default().to_owned()));
            }
            self.redacted.extend(thought["redacted"].as_str().map(str::to_owned));
        }
    }

    /// The canonical request with the scripted ids in the place of those that were sent, and of those that are missing.
    pub(super) fn with_ids(&self, mut heard: Value) -> Value {
        let mut free: Vec<&ToldCall> = self.calls.iter().collect();
        let mut open: Vec<(String, String, String)> = Vec::new();
        for message in heard["messages"].as_array_mut().into_iter().flatten() {
            if message["role"] == "tool" {
                let (id, name) = (text(&message["tool_call_id"]), text(&message["name"]));
                let answers = |(sent, _, of): &(String, String, String)| if id.is_empty() { *of == name } else { *sent == id };
                if let Some(at) = open.iter().position(answers) {
                    message["tool_call_id"] = json!(open.remove(at).1);
                }
                continue;
            }
            let mut number = 0;
            for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
                number += 1;
                let (sent, name) = (text(&call["id"]), text(&call["function"]["name"]));
                let arguments = super::object_of(&text(&call["function"]["arguments"]));
                let is_it = |told: &&ToldCall| {
                    if sent.is_empty() { told.name == name && told.arguments == arguments } else { told.sent == sent }
                };
                let id = match free.iter().position(is_it) {
                    Some(at) => free.remove(at).id.clone(),
                    None if sent.is_empty() => format!("unnamed{number}"),
                    None => sent.clone(),
                };
                call["id"] = json!(id);
                open.push((sent, id, name));
            }
        }
        heard
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Reply {
    /// What the model thought: each `{text, signature}` or `{redacted}`.
    pub(crate) fn thoughts(&self) -> Vec<Value> {
        let plain = self.reasoning.iter().map(|text| json!({"text": text, "signature": "U0lHTkVE"}));
        plain.chain(self.thoughts.iter().cloned()).collect()
    }

    /// The same in the form of OpenAI's relatives, for its message.
    pub(super) fn reasoning_members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        let texts: String = self.thoughts().iter().filter_map(|thought| thought["text"].as_str()).collect();
        if !texts.is_empty() {
            members.insert("reasoning_content".to_owned(), json!(texts));
        }
        members
    }
}
