//! A request that passes through.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::Path;
use crate::wire::object::{self, Edit, Members, Patches, as_str, key_is, range_of, spells};
use crate::wire::request::BadRequest;

/// A request as its caller sent it.
#[derive(Debug)]
pub struct Request {
    body: Bytes,
    /// What the caller calls the model.
    pub model: String,
    model_at: Range<usize>,
    /// Whether a stream of completions is wanted. Whether sound or pictures come as one shows in the answer.
    pub stream: bool,
    /// Whether that stream shall end with its usage.
    pub include_usage: bool,
    options_at: Option<Range<usize>>,
    limit_at: Option<Range<usize>>,
    /// What is asked for.
    pub demand: Demand,
}

/// What its cost depends on, beside the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// What the answer is.
    pub made: Made,
    /// How many are asked for at once.
    pub answers: u64,
}

/// What an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// Nothing that is paid for.
    Nothing,
    /// Text, of so many tokens at most, where the request says so.
    Text(Option<u64>),
    /// A picture: how well it is drawn.
    Picture(Quality),
    /// Speech, from so many characters.
    Speech(u64),
}

/// How well a picture is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// A sketch.
    Low,
    /// As usual.
    Medium,
    /// As well as can be; so may be whatever is left to the model.
    High,
}

/// The members that are read.
const KNOWN: [&str; 10] =
    ["model", "stream", "stream_options", "max_tokens", "n", "best_of", "prompt", "input", "quality", "messages"];

/// A request may be read one way here and another way by its provider where a name that matters is there twice.
struct Known<'b>(Vec<(&'static str, &'b RawValue)>);

impl<'b> Known<'b> {
    fn read(body: &'b [u8]) -> Result<Self, BadRequest> {
        let members = Members::parse(body).map_err(|error| match error.is_data() {
            true => BadRequest::NotAnObject,
            false => BadRequest::Json(error.to_string()),
        })?;
        let mut known: Vec<(&'static str, &RawValue)> = Vec::with_capacity(KNOWN.len());
        for (key, value) in members.0 {
            let Some(name) = KNOWN.into_iter().find(|name| key_is(key, name)) else {
                if let Some(name) = object::alike(key.get(), &KNOWN) {
                    return Err(BadRequest::Member(name, "must be written in small letters: its provider might read it in any"));
                }
                continue;
            };
            if known.iter().any(|(other, _)| *other == name) {
                return Err(BadRequest::Member(name, "is there twice"));
            }
            if !spells(key.get().as_bytes(), name) || key.get().contains('\\') {
                return Err(BadRequest::Member(name, "must be written without escapes in its name"));
            }
            known.push((name, value));
        }
        Ok(Self(known))
    }

    /// A member that is there and not `null`.
    fn get(&self, name: &str) -> Option<&'b RawValue> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).filter(|value| value.get() != "null")
    }

    fn model(&self) -> Result<(String, &'b RawValue), BadRequest> {
        let value = self.get("model").ok_or(BadRequest::Member("model", "is required: the name of a model"))?;
        let name = as_str(value).filter(|name| (1..=256).contains(&name.len()));
        Ok((name.ok_or(BadRequest::Member("model", "must be a string of 1 to 256 bytes"))?.into_owned(), value))
    }

    fn flag(&self, name: &'static str) -> Result<bool, BadRequest> {
        match self.get(name).map(RawValue::get) {
            Some("true") => Ok(true),
            Some("false") | None => Ok(false),
            Some(_) => Err(BadRequest::Member(name, "must be true or false")),
        }
    }

    /// A number from 1, as callers really write it.
    fn count(&self, name: &'static str) -> Result<u64, BadRequest> {
        let Some(value) = self.get(name) else { return Ok(1) };
        let number = value.get().parse::<f64>().ok().filter(|number| *number >= 1.0);
        number.map(|number| number.ceil() as u64).ok_or(BadRequest::Member(name, "must be a whole number from 1"))
    }

    fn quality(&self) -> Quality {
        match self.get("quality").map(RawValue::get) {
            Some("\"low\"") => Quality::Low,
            Some("\"medium\"" | "\"standard\"") => Quality::Medium,
            _ => Quality::High,
        }
    }

    /// How many prompts there are: a list of texts, or of lists of tokens, is one for each.
    fn prompts(&self) -> u64 {
        let items = self.get("prompt").and_then(|prompt| serde_json::from_str::<Vec<&RawValue>>(prompt.get()).ok());
        let are_prompts = |items: &Vec<&RawValue>| items.iter().all(|item| item.get().starts_with(['"', '[']));
        items.filter(are_prompts).map_or(1, |items| items.len().max(1) as u64)
    }

    fn demand(&self, path: Path) -> Result<Demand, BadRequest> {
        let limit = || self.get("max_tokens").and_then(|limit| limit.get().parse::<f64>().ok()).filter(|limit| *limit > 0.0);
        let (made, answers) = match path {
            Path::Embeddings | Path::Moderations | Path::Transcriptions | Path::Translations => (Made::Nothing, 1),
            Path::Completions => {
                let answers = self.count("n")?.max(self.count("best_of")?).saturating_mul(self.prompts());
                (Made::Text(limit().map(|limit| limit.ceil() as u64)), answers)
            }
            Path::Images => (Made::Picture(self.quality()), self.count("n")?),
            Path::Speech => {
                let text = self.get("input").and_then(as_str);
                (Made::Speech(text.map_or(0, |text| text.chars().count() as u64)), 1)
            }
        };
        Ok(Demand { made, answers })
    }
}

impl Request {
    /// Reads a body.
    ///
    /// # Errors
    /// [`BadRequest`], which names the member.
    pub fn parse(path: Path, body: &Bytes) -> Result<Self, BadRequest> {
        let known = Known::read(body)?;
        let (model, value) = known.model()?;
        let place = |name| known.0.iter().find(|(known, _)| *known == name).map(|(_, value)| range_of(body, value.get()));
        let is_completion = path == Path::Completions;
        Ok(Self {
            model,
            model_at: range_of(body, value.get()),
            stream: is_completion && known.flag("stream")?,
            include_usage: is_completion && known.get("stream_options").map(wants_usage).transpose()?.unwrap_or(false),
            options_at: place("stream_options"),
            limit_at: place("max_tokens"),
            demand: known.demand(path)?,
            body: body.clone(),
        })
    }

    /// The request as its provider is sent it: with the provider's own name for the model, the lowered limit of its output where there is
    /// one, and the wish for the usage of a stream. Everything else is as it came.
    pub fn compose(&self, upstream_model: &str, lowered: Option<u64>) -> Bytes {
        let mut patches = Patches::default();
        if upstream_model != self.model {
            patches.replace(self.model_at.clone(), object::quoted(upstream_model));
        }
        let mut more = String::new();
        if let Some(tokens) = lowered {
            match &self.limit_at {
                Some(place) => patches.replace(place.clone(), tokens.to_string()),
                None => more.push_str(&format!(",\"max_tokens\":{tokens}")),
            }
        }
        if self.stream && !self.include_usage {
            match &self.options_at {
                Some(place) => patches.replace(place.clone(), asking(&self.body[place.clone()])),
                None => more.push_str(",\"stream_options\":{\"include_usage\":true}"),
            }
        }
        if !more.is_empty() {
            let end = self.body.iter().rposition(|&byte| byte == b'}').unwrap_or_default();
            patches.replace(end..end, more);
        }
        if patches.is_empty() {
            return self.body.clone();
        }
        let mut out = BytesMut::with_capacity(self.body.len() + 128);
        patches.apply(&self.body, &mut out);
        out.freeze()
    }
}

fn wants_usage(options: &RawValue) -> Result<bool, BadRequest> {
    let options =
        Members::parse(options.get().as_bytes()).map_err(|_| BadRequest::Member("stream_options", "must be an object"))?;
    Ok(options.get("include_usage").is_some_and(|value| value.get() == "true"))
}

/// The options of a stream with the wish for its usage among them; `null` is none.
fn asking(options: &[u8]) -> String {
    let edits = [Edit::Set("include_usage", "true")];
    object::edited(options, &edits).unwrap_or_else(|_| "{\"include_usage\":true}".to_owned())
}

/// How many items a list has; nothing where it is none.
pub(super) fn length(list: &RawValue) -> Option<u64> {
    serde_json::from_str::<Vec<IgnoredAny>>(list.get()).ok().map(|items| items.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: Path, body: &str) -> Result<Request, BadRequest> {
        Request::parse(path, &Bytes::copy_from_slice(body.as_bytes()))
    }

    #[test]
    fn only_what_must_be_is_changed() {
        let plain = Path::Embeddings;
        let table = [
            (
                plain,
                r#"{ "model" : "m" , "x":1.10,"input":"é\u00e9"}"#,
                None,
                r#"{ "model" : "up" , "x":1.10,"input":"é\u00e9"}"#,
            ),
            (plain, r#"{"stream":true,"model":"m"}"#, None, r#"{"stream":true,"model":"up"}"#),
            (plain, r#"{"model":"up", "x":1}"#, None, r#"{"model":"up", "x":1}"#),
            (
                Path::Completions,
                r#"{"model":"m","stream":true} "#,
                None,
                r#"{"model":"up","stream":true,"stream_options":{"include_usage":true}} "#,
            ),
            (
                Path::Completions,
                r#"{"model":"m","stream_options":{"x":1},"stream":true}"#,
                None,
                r#"{"model":"up","stream_options":{"x":1,"include_usage":true},"stream":true}"#,
            ),
            (
                Path::Completions,
                r#"{"model":"m","stream_options":null,"stream":true}"#,
                None,
                r#"{"model":"up","stream_options":{"include_usage":true},"stream":true}"#,
            ),
            (
                Path::Completions,
                r#"{"model":"m","stream_options": {"include_usage": true},"stream":true}"#,
                None,
                r#"{"model":"up","stream_options": {"include_usage": true},"stream":true}"#,
            ),
            (Path::Completions, r#"{"model":"m"}"#, Some(7), r#"{"model":"up","max_tokens":7}"#),
            (Path::Completions, r#"{"model":"m","max_tokens":null}"#, Some(7), r#"{"model":"up","max_tokens":7}"#),
        ];
        for (path, body, lowered, expected) in table {
            assert_eq!(parse(path, body).unwrap().compose("up", lowered), expected);
        }
    }

    #[test]
    fn what_its_cost_depends_on_is_read() {
        let table = [
            (Path::Embeddings, r#""input":["a","b"],"n":"x""#, Made::Nothing, 1),
            (Path::Moderations, r#""input":"a""#, Made::Nothing, 1),
            (Path::Completions, r#""prompt":"a""#, Made::Text(None), 1),
            (Path::Completions, r#""prompt":["a","b"],"n":2,"max_tokens":5"#, Made::Text(Some(5)), 4),
            (Path::Completions, r#""prompt":[1,2,3],"best_of":3,"n":2,"max_tokens":1e1"#, Made::Text(Some(10)), 3),
            (Path::Completions, r#""prompt":[[1],[2,3]],"max_tokens":-1"#, Made::Text(None), 2),
            (Path::Images, r#""prompt":"a","quality":"low","n":3"#, Made::Picture(Quality::Low), 3),
            (Path::Images, r#""quality":"auto""#, Made::Picture(Quality::High), 1),
            (Path::Speech, r#""input":"h\u00e9 \"x\"""#, Made::Speech(6), 1),
        ];
        for (path, members, made, answers) in table {
            let request = parse(path, &format!(r#"{{"model":"m",{members}}}"#)).unwrap();
            assert_eq!(request.demand, Demand { made, answers }, "{members}");
        }
    }

    #[test]
    fn what_cannot_be_read_in_one_way_is_refused() {
        let table = [
            ("", BadRequest::Json("EOF while parsing a value at line 1 column 0".to_owned())),
            ("[1]", BadRequest::NotAnObject),
            ("{}", BadRequest::Member("model", "is required: the name of a model")),
            (r#"{"model":1}"#, BadRequest::Member("model", "must be a string of 1 to 256 bytes")),
            (r#"{"model":""}"#, BadRequest::Member("model", "must be a string of 1 to 256 bytes")),
            (r#"{"model":"a","model":"b"}"#, BadRequest::Member("model", "is there twice")),
            (r#"{"mod\u0065l":"a"}"#, BadRequest::Member("model", "must be written without escapes in its name")),
            (r#"{"model":"a","stream":1}"#, BadRequest::Member("stream", "must be true or false")),
            (r#"{"model":"a","n":0}"#, BadRequest::Member("n", "must be a whole number from 1")),
            (r#"{"model":"a","stream_options":1}"#, BadRequest::Member("stream_options", "must be an object")),
        ];
        for (body, expected) in table {
            assert_eq!(parse(Path::Completions, body).err(), Some(expected), "{body}");
        }
    }
}
