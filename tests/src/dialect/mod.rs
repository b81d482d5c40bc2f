//! The dialects that the scripted model speaks. A reply is written once, in OpenAI's words; here it is said as each API really says it, plain and
//! streamed, and what was asked is told in OpenAI's words again. What is written here comes from the APIs' own descriptions and from nothing of
//! the gateway's: two who read independently find each other's faults.

mod anthropic;
mod gemini;
mod heard;
mod mistral;
mod ollama;
mod openai;
mod told;

use serde::Deserialize;
use serde_json::{Map, Value, json};

pub(crate) use self::openai::call_of;
pub use self::told::{Told, ToldCall};
use crate::scenario::Reply;

/// A dialect of the scripted model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Chat completions.
    #[default]
    OpenAi,
    /// Messages.
    Anthropic,
    /// `generateContent`.
    Gemini,
    /// `/api/chat`.
    Ollama,
    /// Chat completions, with Mistral's own rules.
    Mistral,
}

impl Dialect {
    /// The word in a test's name, in the list `dialects`, and of the member that is merged in this dialect.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Mistral => "mistral",
        }
    }

    /// Whether its requests and answers have another form than OpenAI's.
    pub const fn is_translated(self) -> bool {
        matches!(self, Self::Anthropic | Self::Gemini | Self::Ollama)
    }

    /// What is merged over the default configuration's `providers.mock`.
    pub fn provider(self) -> Value {
        match self {
            Self::OpenAi => json!({}),
            Self::Anthropic => json!({"kind": "anthropic", "base_url": "{{upstream}}/anthropic/v1"}),
            Self::Gemini => json!({"kind": "gemini", "base_url": "{{upstream}}/gemini/v1beta"}),
            Self::Ollama => json!({"kind": "ollama", "base_url": "{{upstream}}/ollama"}),
            Self::Mistral => json!({"kind": "mistral", "base_url": "{{upstream}}/mistral/v1"}),
        }
    }

    /// In which dialect a request to this path is made.
    pub fn of(target: &str) -> Self {
        let path = target.split('?').next().unwrap_or_default();
        if path.ends_with("/messages") {
            Self::Anthropic
        } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
            Self::Gemini
        } else if path.ends_with("/api/chat") {
            Self::Ollama
        } else if path.starts_with("/mistral/") {
            Self::Mistral
        } else {
            Self::OpenAi
        }
    }

    /// Whether this is asked to be answered as a stream.
    pub fn is_streamed(self, target: &str, body: &Value) -> bool {
        match self {
            Self::Gemini => target.contains(":streamGenerateContent"),
            // Ollama streams unless it is told not to.
            Self::Ollama => body["stream"] != false,
            Self::OpenAi | Self::Anthropic | Self::Mistral => body["stream"] == true,
        }
    }

    /// The content type of a stream.
    pub const fn stream_type(self) -> &'static str {
        match self {
            Self::Ollama => "application/x-ndjson",
            Self::Gemini => "text/event-stream",
            Self::OpenAi | Self::Anthropic | Self::Mistral => "text/event-stream; charset=utf-8",
        }
    }

    /// A plain answer.
    pub fn whole(self, reply: &Reply) -> Value {
        let mut whole = match self {
            Self::OpenAi => openai::whole(reply),
            Self::Anthropic => anthropic::whole(reply),
            Self::Gemini => gemini::whole(reply),
            Self::Ollama => ollama::whole(reply),
            Self::Mistral => mistral::whole(reply),
        };
        extend(&mut whole, &reply.extra);
        whole
    }

    /// Who tells a streamed answer, delta by delta. `with_usage`: the request asked for it.
    pub fn teller(self, reply: &Reply, with_usage: bool) -> Teller {
        match self {
            Self::OpenAi => Teller::OpenAi(openai::Teller::new(reply, with_usage)),
            Self::Anthropic => Teller::Anthropic(Box::new(anthropic::Teller::new(reply))),
            Self::Gemini => Teller::Gemini(Box::new(gemini::Teller::new(reply))),
            Self::Ollama => Teller::Ollama(Box::new(ollama::Teller::new(reply))),
            Self::Mistral => Teller::Mistral(Box::new(mistral::Teller::new(reply))),
        }
    }

    /// The body of an error.
    pub fn error(self, status: u16, message: &str) -> Value {
        match self {
            Self::OpenAi => openai::error(status, message),
            Self::Anthropic => anthropic::error(status, message),
            Self::Gemini => gemini::error(status, message),
            Self::Ollama => json!({"error": message}),
            Self::Mistral => mistral::error(status, message),
        }
    }

    /// The reply number `at`, where this API never gives one id twice, with ids of its own for the calls that have none.
    pub(crate) fn with_ids(self, mut reply: Reply, at: usize) -> Reply {
        if at > 0 && matches!(self, Self::Anthropic | Self::Mistral) {
            reply.calls = reply.each_call();
            for (number, call) in reply.calls.iter_mut().enumerate() {
                call.times = None;
                call.id.get_or_insert_with(|| format!("r{at}c{}", number + 1));
            }
        }
        reply
    }

    /// The id of a call as this API would make it of the scripted one.
    pub fn id(self, scripted: &str) -> String {
        match self {
            Self::Mistral => mistral::id(scripted),
            Self::OpenAi | Self::Anthropic | Self::Gemini | Self::Ollama => scripted.to_owned(),
        }
    }

    /// A request to this path in OpenAI's words; ids that are no longer the scripted ones are found again by what was `told` before.
    pub fn heard(self, target: &str, body: &Value, told: &Told) -> Value {
        match self {
            Self::OpenAi => body.clone(),
            Self::Anthropic => heard::anthropic(body),
            Self::Gemini => told.with_ids(heard::gemini(target, body)),
            Self::Ollama => told.with_ids(heard::ollama(body)),
            Self::Mistral => told.with_ids(heard::mistral(body)),
        }
    }
}

/// Tells a streamed answer in a dialect: each verb gives the bytes that are sent then, perhaps none.
pub enum Teller {
    /// Chunks.
    OpenAi(openai::Teller),
    /// Typed events about blocks.
    Anthropic(Box<anthropic::Teller>),
    /// Pieces of an answer.
    Gemini(Box<gemini::Teller>),
    /// Lines.
    Ollama(Box<ollama::Teller>),
    /// Chunks with whole calls.
    Mistral(Box<mistral::Teller>),
}

impl Teller {
    /// What OpenAI says as a choice with this delta.
    pub fn delta(&mut self, delta: &Value) -> String {
        match self {
            Self::OpenAi(teller) => teller.delta(delta),
            Self::Anthropic(teller) => teller.delta(delta),
            Self::Gemini(teller) => teller.delta(delta),
            Self::Ollama(teller) => teller.delta(delta),
            Self::Mistral(teller) => teller.delta(delta),
        }
    }

    /// What OpenAI says as a choice with this finish reason.
    pub fn finish(&mut self, reason: &Value) -> String {
        match self {
            Self::OpenAi(teller) => teller.finish(reason),
            Self::Anthropic(teller) => teller.finish(reason),
            Self::Gemini(teller) => teller.finish(reason),
            Self::Ollama(teller) => teller.finish(reason),
            Self::Mistral(teller) => teller.finish(reason),
        }
    }

    /// What follows the finish reason: usage, and the mark of the end.
    pub fn done(&mut self) -> String {
        match self {
            Self::OpenAi(teller) => teller.done(),
            Self::Anthropic(teller) => teller.done(),
            Self::Gemini(_) | Self::Ollama(_) => String::new(),
            Self::Mistral(_) => "data: [DONE]\n\n".to_owned(),
        }
    }

    /// An error in the middle of the stream.
    pub fn error(&self, status: u16, message: &str) -> String {
        match self {
            Self::OpenAi(_) => format!("data: {}\n\n", openai::error(status, message)),
            Self::Anthropic(_) => format!("event: error\ndata: {}\n\n", anthropic::error(status, message)),
            Self::Gemini(_) => format!("data: {}\r\n\r\n", gemini::error(status, message)),
            Self::Ollama(_) => format!("{}\n", json!({"error": message})),
            Self::Mistral(_) => format!("data: {}\n\n", mistral::error(status, message)),
        }
    }
}

/// The calls of a stream, put together again for the dialects that send each whole.
#[derive(Default)]
struct Gathered(Vec<(u64, Value, String)>);

impl Gathered {
    /// Takes in the parts of a delta.
    fn add(&mut self, delta: &Value) {
        for part in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = part["index"].as_u64().unwrap_or(0);
            if self.0.iter().all(|(at, ..)| *at != index) {
                self.0.push((index, part.clone(), String::new()));
            }
            let arguments = &part["function"]["arguments"];
            if let Some((_, _, text)) = self.0.iter_mut().find(|(at, ..)| *at == index) {
                *text += arguments.as_str().unwrap_or_default();
                if arguments.is_object() {
                    *text = arguments.to_string();
                }
            }
        }
    }

    /// Each call: what its first part said, and its arguments as text.
    fn take(&mut self) -> Vec<(Value, String)> {
        std::mem::take(&mut self.0).into_iter().map(|(_, first, text)| (first, text)).collect()
    }
}

/// Arguments as the object that most dialects want; what is none stays what it is, for the tests of that.
fn object_of(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

fn extend(object: &mut Value, over: &Map<String, Value>) {
    if let Value::Object(object) = object {
        object.extend(over.clone());
    }
}

/// What an answer used, of OpenAI's object; `None` where nothing is told.
#[derive(Clone, Copy)]
struct Counted {
    prompt: u64,
    cached: u64,
    written: u64,
    completion: u64,
    reasoning: u64,
}

impl Counted {
    fn of(reply: &Reply) -> Option<Self> {
        let usage = reply.usage_object()?;
        let number = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        Some(Self {
            prompt: number("/prompt_tokens"),
            cached: number("/prompt_tokens_details/cached_tokens"),
            written: number("/prompt_tokens_details/cache_write_tokens"),
            completion: number("/completion_tokens"),
            reasoning: number("/completion_tokens_details/reasoning_tokens"),
        })
    }
}

#[cfg(test)]
mod tests;
