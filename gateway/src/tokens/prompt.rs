//! How many tokens a request is: its texts, and a figure for each thing that is no text. The figures are OpenAI's published ones where it
//! has any; they stand in `docs/counting.md` too.

use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;

use super::encoding::Encoding;
use super::estimate::{self, Estimate};
use crate::wire::prompt::{self, Line, Part, Tool, spelt};

/// What frames each message.
const A_MESSAGE: u64 = 3;

/// What a name adds to its message.
const A_NAME: u64 = 1;

/// What frames a call in the history.
const A_CALL: u64 = 3;

/// With what the answer is begun.
const THE_REPLY: u64 = 3;

/// A picture of usual size, looked at in full detail.
pub(super) const IMAGE: u64 = 765;

/// A picture that is looked at in low detail, whatever its size.
const IMAGE_IN_LOW_DETAIL: u64 = 85;

/// A recording: ten tokens a second, at the 20 KB of base64 that a second of usual quality takes, and never less than a few seconds.
const SOUND: (usize, u64) = (2000, 50);

/// A file: a page is seen and read, and takes some 30 KB of base64.
const FILE: (usize, u64) = (20, IMAGE);

/// Whatever else there may be: as long as its JSON, but no more than a large picture.
const UNKNOWN: (usize, u64) = (4, 1500);

/// What OpenAI's rule adds for the parts of its tools: a function's beginning (by the older vocabularies and since), its parameters, each of
/// them, each word of a choice but the first, and the end of them all.
const A_FUNCTION: (u64, u64) = (10, 7);
const PROPERTIES: u64 = 3;
const A_PROPERTY: u64 = 3;
const A_WORD: u64 = 3;
const THE_TOOLS: u64 = 12;

/// What frames a tool for whoever reads it as JSON.
const A_TOOL: u64 = 8;

/// What the body of a request was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    /// How many tokens.
    pub tokens: u64,
    /// There is nothing in it but text.
    pub is_text: bool,
}

/// A count from the length alone, for where nobody looks at the text: two bytes a token is what numbers and signs come to, and prose in any
/// script has three and more. Only pictures by their address are more than that, by up to 35 times.
pub(super) fn rough(bytes: usize) -> u64 {
    bytes as u64 / 2 + THE_REPLY
}

/// What pictures, recordings and files add to a [`rough`] count at most: they take more tokens than their addresses have bytes.
pub(super) fn most_for_things(pieces: &[Bytes]) -> u64 {
    static KINDS: LazyLock<[Finder<'_>; 3]> = LazyLock::new(|| ["\"image", "\"input_audio", "\"file"].map(Finder::new));
    let count = |segment: &[u8]| KINDS.iter().map(|kind| kind.find_iter(segment).count() as u64).sum::<u64>();
    pieces.iter().map(|segment| count(segment)).sum::<u64>() * UNKNOWN.1
}

/// The tokens of the body of a request: exactly by a vocabulary, or estimated. Whatever cannot be read is estimated as it stands.
pub(super) fn count(body: &[u8], by: Option<Encoding>) -> Count {
    let mut sum = Sum::new(by);
    match prompt::read(body, |part| sum.part(part)) {
        Ok(()) => Count { tokens: sum.tokens() + sum.reply, is_text: sum.is_text },
        Err(_) => Count { tokens: estimate::tokens(body), is_text: false },
    }
}

/// The tokens of one message of a request, likewise.
pub(super) fn count_message(message: &[u8], by: Option<Encoding>) -> u64 {
    let mut sum = Sum::new(by);
    match prompt::read_message(message, |part| sum.part(part)) {
        Ok(()) => sum.tokens(),
        Err(_) => estimate::tokens(message),
    }
}

struct Sum {
    by: Option<Encoding>,
    counted: u64,
    /// Of what is not counted by a vocabulary.
    estimate: Estimate,
    /// With what the answer is begun.
    reply: u64,
    has_tools: bool,
    is_text: bool,
}

impl Sum {
    fn new(by: Option<Encoding>) -> Self {
        Self { by, counted: 0, estimate: Estimate::default(), reply: THE_REPLY, has_tools: false, is_text: true }
    }

    fn part(&mut self, part: Part<'_>) {
        match part {
            Part::Message => self.counted += A_MESSAGE,
            Part::Bare => self.reply = 0,
            Part::Tokens(tokens) => self.thing(tokens),
            Part::Name => self.counted += A_NAME,
            Part::Call => self.counted += A_CALL,
            Part::Text(text) | Part::Schema(text) => self.json(text),
            Part::Image { is_low: true } => self.thing(IMAGE_IN_LOW_DETAIL),
            Part::Image { is_low: false } => self.thing(IMAGE),
            Part::Sound(bytes) => self.thing((bytes / SOUND.0) as u64 + SOUND.1),
            Part::File(bytes) => self.thing(((bytes / FILE.0) as u64).max(FILE.1)),
            Part::Unknown(bytes) => self.thing(((bytes / UNKNOWN.0) as u64).min(UNKNOWN.1)),
            Part::Tool(tool) => self.tool(tool),
        }
    }

    fn tokens(&self) -> u64 {
        let the_tools = if self.has_tools && self.by.is_some() { THE_TOOLS } else { 0 };
        self.counted + self.estimate.tokens() + the_tools
    }

    fn thing(&mut self, tokens: u64) {
        self.counted += tokens;
        self.is_text = false;
    }

    fn json(&mut self, raw: &str) {
        match self.by {
            Some(encoding) => self.counted += encoding.count(&spelt(raw)),
            None => {
                self.estimate.begin();
                self.estimate.json(raw.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(raw));
            }
        }
    }

    fn tool(&mut self, tool: Tool<'_>) {
        self.has_tools = true;
        match self.by.and_then(|encoding| Some((encoding, tool.lines()?))) {
            Some((encoding, lines)) => self.counted += lines.iter().fold(0, |sum, line| add_line(sum, line, encoding)),
            None => {
                self.counted += A_TOOL;
                self.json(tool.text());
            }
        }
    }
}

fn add_line(sum: u64, line: &Line, encoding: Encoding) -> u64 {
    match line {
        Line::Function(text) => {
            sum + encoding.count(text) + if encoding == Encoding::O200k { A_FUNCTION.1 } else { A_FUNCTION.0 }
        }
        Line::Properties => sum + PROPERTIES,
        Line::Property(text) => sum + encoding.count(text) + A_PROPERTY,
        Line::Choice => sum.saturating_sub(A_WORD),
        Line::Word(text) => sum + encoding.count(text) + A_WORD,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The conversation of OpenAI's published description of the count, and what its API said that it is.
    fn published() -> serde_json::Value {
        let said = [
            (
                "system",
                None,
                "You are a helpful, pattern-following assistant that translates corporate jargon into plain English.",
            ),
            ("system", Some("example_user"), "New synergies will help drive top-line growth."),
            ("system", Some("example_assistant"), "Things working well together will increase revenue."),
            (
                "system",
                Some("example_user"),
                "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
            ),
            ("system", Some("example_assistant"), "Let's talk later when we're less busy about how to do better."),
            ("user", None, "This late pivot means we don't have time to boil the ocean for the client deliverable."),
        ];
        let message = |(role, name, content): (&str, Option<&str>, &str)| match name {
            Some(name) => json!({ "role": role, "name": name, "content": content }),
            None => json!({ "role": role, "content": content }),
        };
        json!({ "model": "m", "messages": said.map(message) })
    }

    fn published_with_tools() -> serde_json::Value {
        let parameters = json!({
            "type": "object",
            "properties": {
                "location": { "type": "string", "description": "The city and state, e.g. San Francisco, CA" },
                "unit": { "type": "string", "description": "The unit of temperature to return", "enum": ["celsius", "fahrenheit"] },
            },
            "required": ["location"],
        });
        let description = "Get the current weather in a given location";
        let function = json!({ "name": "get_current_weather", "description": description, "parameters": parameters });
        json!({
            "messages": [
                { "role": "system", "content": "You are a helpful assistant that can answer to questions about the weather." },
                { "role": "user", "content": "What's the weather like in San Francisco?" },
            ],
            "tools": [{ "type": "function", "function": function }],
        })
    }

    fn counted(body: &serde_json::Value, by: Option<Encoding>) -> u64 {
        count(body.to_string().as_bytes(), by).tokens
    }

    #[test]
    fn the_count_is_the_published_one() {
        let table = [
            (published(), Encoding::O200k, 124),
            (published(), Encoding::Cl100k, 129),
            (published_with_tools(), Encoding::O200k, 101),
            (published_with_tools(), Encoding::Cl100k, 105),
        ];
        for (body, encoding, expected) in table {
            assert_eq!(counted(&body, Some(encoding)), expected, "{encoding:?}");
        }
    }

    #[test]
    fn the_estimate_of_a_conversation_is_near_its_count() {
        for (body, count) in [(published(), 124), (published_with_tools(), 101)] {
            let estimated = counted(&body, None);
            assert!(estimated.abs_diff(count) * 100 <= count * 35, "{estimated}, not {count}");
            assert!(rough(body.to_string().len()) >= count);
        }
    }

    #[test]
    fn what_is_no_text_has_its_figure_and_its_bytes_are_not_text() {
        let bytes = "QUJD".repeat(10_000);
        let image = |detail: &str| json!({ "image_url": { "url": format!("data:image/png;base64,{bytes}"), "detail": detail } });
        let table = [
            (json!("a"), 1),
            (json!([{ "type": "text", "text": "a" }]), 1),
            (json!([image("high")]), 765),
            (json!([image("auto"), image("low")]), 850),
            (json!([{ "type": "image_url", "image_url": { "url": "https://example.org/a.png" } }]), 765),
            (json!([{ "input_audio": { "data": bytes, "format": "mp3" } }]), 70),
            (json!([{ "file": { "file_data": bytes } }]), 2000),
            (json!([{ "file": { "file_id": "file-1" } }]), 765),
            (json!([{ "type": "of another time", "data": bytes }]), 1500),
        ];
        for (content, expected) in table {
            let body = json!({ "messages": [{ "content": content }] });
            for by in [None, Some(Encoding::O200k)] {
                assert_eq!(counted(&body, by), A_MESSAGE + THE_REPLY + expected, "{by:?} {:.60}", content.to_string());
            }
        }
    }

    #[test]
    fn messages_one_by_one_come_to_what_they_are_together() {
        for body in [published(), published_with_tools()] {
            let mut frame = body.clone();
            frame["messages"] = json!([]);
            let messages: Vec<String> = body["messages"].as_array().unwrap().iter().map(ToString::to_string).collect();
            for by in [None, Some(Encoding::O200k)] {
                let one_by_one: u64 = messages.iter().map(|message| count_message(message.as_bytes(), by)).sum();
                let rounded = if by.is_none() { messages.len() as u64 } else { 0 };
                assert!((one_by_one + counted(&frame, by)).abs_diff(counted(&body, by)) <= rounded, "{by:?}");
            }
        }
        assert!((1..9).contains(&count_message(b"no message", None)));
    }

    #[test]
    fn escapes_are_what_they_spell() {
        let plain = r#"{"messages":[{"role":"user","content":"日本の港 says \"ahoy\"\n"}]}"#;
        let escaped = r#"{"messages":[{"role":"\u0075ser","content":"\u65e5\u672c\u306e\u6e2f says \"ahoy\"\u000a"}]}"#;
        for by in [None, Some(Encoding::O200k)] {
            assert_eq!(count(plain.as_bytes(), by), count(escaped.as_bytes(), by));
        }
    }

    #[test]
    fn what_cannot_be_read_is_estimated() {
        let table = [
            "{\"messages\":[{\"content\":\"\\ud83c\"}]}",
            "{\"messages\":[1,2,3]}",
            "no JSON at all",
            "{\"messages\":[{\"role\":7}]}",
        ];
        for body in table {
            for by in [None, Some(Encoding::O200k)] {
                assert!((1..40).contains(&count(body.as_bytes(), by).tokens), "{body}");
            }
        }
    }
}
