//! What a call came to, in pieces: text that a model can read, and files that it may be able to look at. Each piece is as the server wrote
//! it, and whole, so that whoever hands it on can clean each before anything is cut.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolgate_config::class::DataClass;
use toolgate_policies::zone::{self, Mark};

use crate::bound;
use crate::media::{self, Media};
use crate::said::NO_CONTENT;

/// What stands for the text of an answer that is nothing but media.
const NO_TEXT: &str = "(no text)";

/// How many files one result may hold, and how much of them, in bytes of their base64 text.
const MOST_FILES: usize = 20;
const MOST_MEDIA: usize = 10 * 1024 * 1024;

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What a model can read, in order; a line break belongs between two. Never empty.
    pub pieces: Vec<Piece>,
    /// What it may be able to look at.
    pub media: Vec<Media>,
    /// The server says that it went wrong.
    pub is_error: bool,
    /// How sensitive the result says that it is.
    pub mark: Mark,
    /// How many bytes came.
    pub bytes: usize,
}

/// A part of an answer's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The server's words.
    Text(String),
    /// The server's data: JSON, as it came.
    Json(String),
    /// Our own words: nothing of the server's is in them.
    Note(String),
}

impl Piece {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Json(text) | Self::Note(text) => text,
        }
    }
}

impl Answer {
    /// Reads the result of a call.
    ///
    /// # Errors
    /// It is no such result.
    pub(super) fn read(json: &str) -> Result<Self, serde_json::Error> {
        let result: CallResult<'_> = serde_json::from_str(json)?;
        let mut reading = Reading::default();
        result.content.iter().flatten().for_each(|block| reading.block(block));
        // Where there is text, it is the data once more, in the form that the server chose for a model.
        if let Some(data) = result.structured.filter(|data| !reading.has_text && data.get() != "null") {
            reading.pieces.insert(0, Piece::Json(data.get().to_owned()));
        }
        if reading.left_out > 0 {
            reading.pieces.push(note(&format!("[{} more files: not shown]", reading.left_out)));
        }
        if result.wants_more() {
            reading.pieces = vec![note("the tool asks for something that it cannot be given here")];
        } else if reading.pieces.is_empty() {
            reading.pieces = vec![note(if reading.media.is_empty() { NO_CONTENT } else { NO_TEXT })];
        }
        Ok(Self {
            pieces: reading.pieces,
            media: reading.media,
            is_error: result.wants_more() || result.is_error.as_ref().is_some_and(|word| *word != Value::Bool(false)),
            mark: result.meta.as_ref().map_or(Mark::CLEAN, mark),
            bytes: json.len(),
        })
    }

    /// A call that the server answered with an error of the protocol.
    pub(super) fn refused(text: &str) -> Self {
        let piece = if text.trim().is_empty() { note(NO_CONTENT) } else { Piece::Text(text.to_owned()) };
        Self { bytes: text.len(), pieces: vec![piece], media: Vec::new(), is_error: true, mark: Mark::CLEAN }
    }
}

#[derive(Deserialize)]
struct CallResult<'t> {
    #[serde(borrow)]
    content: Option<Vec<&'t RawValue>>,
    #[serde(rename = "structuredContent", borrow)]
    structured: Option<&'t RawValue>,
    #[serde(rename = "isError")]
    is_error: Option<Value>,
    #[serde(rename = "resultType")]
    result_type: Option<Value>,
    #[serde(rename = "_meta")]
    meta: Option<Value>,
}

impl CallResult<'_> {
    /// It is not a result, but a question or a promise.
    fn wants_more(&self) -> bool {
        self.result_type.as_ref().is_some_and(|word| !word.is_null() && word != "complete")
    }
}

/// What the result says of itself. An unknown word is the worst that it could mean.
fn mark(meta: &Value) -> Mark {
    let class = match meta.get("data_class") {
        None => DataClass::Public,
        Some(Value::String(word)) => zone::declared(word),
        Some(_) => DataClass::Secret,
    };
    let personal = meta.get("personal").is_some_and(|word| *word != Value::Bool(false) && !word.is_null());
    Mark { class, personal }
}

#[derive(Default)]
struct Reading {
    pieces: Vec<Piece>,
    media: Vec<Media>,
    has_text: bool,
    media_bytes: usize,
    left_out: usize,
}

impl Reading {
    fn block(&mut self, block: &RawValue) {
        let Ok(Value::Object(block)) = serde_json::from_str(block.get()) else {
            return self.pieces.push(note("[something that cannot be read]"));
        };
        match word(&block, "type").unwrap_or_default() {
            "text" => self.text(word(&block, "text").unwrap_or_default()),
            "image" | "audio" => self.file(&block, "data"),
            "resource" => self.resource(&block),
            "resource_link" => self.link(&block),
            _ => self.pieces.push(note("[something of a kind that is not known here]")),
        }
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.has_text = true;
            self.pieces.push(Piece::Text(text.to_owned()));
        }
    }

    fn file(&mut self, block: &Map<String, Value>, data: &str) {
        if self.media.len() == MOST_FILES {
            self.left_out += 1;
            return;
        }
        let data = word(block, data).unwrap_or_default();
        let kind = word(block, "mimeType").unwrap_or("application/octet-stream");
        let fits = self.media_bytes + data.len() <= MOST_MEDIA;
        match fits.then(|| Media::new(kind, data.to_owned())).flatten() {
            Some(media) => {
                self.media_bytes += data.len();
                self.media.push(media);
            }
            None => self.pieces.push(Piece::Text(media::note(kind, data.len() / 4 * 3))),
        }
    }

    fn resource(&mut self, block: &Map<String, Value>) {
        let Some(Value::Object(resource)) = block.get("resource") else {
            return self.pieces.push(note("[something that cannot be read]"));
        };
        let address = one_line(word(resource, "uri").unwrap_or_default());
        match word(resource, "text") {
            Some(text) => {
                self.pieces.push(Piece::Text(format!("[resource: {address}]\n{text}")));
            }
            None => {
                self.pieces.push(Piece::Text(format!("[resource: {address}]")));
                self.file(resource, "blob");
            }
        }
    }

    fn link(&mut self, block: &Map<String, Value>) {
        let words = ["name", "uri", "mimeType"].into_iter().filter_map(|name| word(block, name));
        let words: Vec<String> = words.map(one_line).collect();
        self.pieces.push(Piece::Text(format!("[link: {}]", words.join(" "))));
    }
}

fn word<'b>(block: &'b Map<String, Value>, name: &str) -> Option<&'b str> {
    block.get(name).and_then(Value::as_str)
}

/// A text as one line of words.
fn one_line(text: &str) -> String {
    bound::word(text, text.len())
}

fn note(text: &str) -> Piece {
    Piece::Note(text.to_owned())
}
