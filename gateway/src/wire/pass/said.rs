//! What a provider says of a request that passed through: a whole document, or the data of one event.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::request::length;
use crate::wire::mend;
use crate::wire::object::{self, Edit, Patches, member_around, place, range_of, text_at};
use crate::wire::reply::{NoReply, document};
use crate::wire::spoken::{Change, Field, Notes, Text, Texts, number};
use crate::wire::usage::Usage;

/// A document, and where in it the things stand that matter here.
#[derive(Clone, Debug)]
pub struct Said {
    body: Bytes,
    model: Option<Range<usize>>,
    usage: Option<Range<usize>>,
    choices: Option<Range<usize>>,
    /// It has a list of choices with nothing in it: a usage chunk.
    pub is_bare: bool,
    /// How many things it lists: pictures, vectors.
    pub items: u64,
    /// How much sound it holds, as base64.
    pub sound: usize,
    finish: Option<Range<usize>>,
    /// Where the texts of completions stand.
    texts: Texts,
}

#[derive(Deserialize)]
struct Raw<'r> {
    #[serde(borrow, default, deserialize_with = "object::present")]
    model: Option<&'r RawValue>,
    #[serde(borrow, default, deserialize_with = "object::present")]
    usage: Option<&'r RawValue>,
    #[serde(borrow, default)]
    choices: Option<&'r RawValue>,
    #[serde(borrow, default)]
    data: Option<&'r RawValue>,
    #[serde(borrow, default)]
    audio: Option<&'r RawValue>,
    #[serde(borrow, default)]
    error: Option<&'r RawValue>,
}

#[derive(Deserialize)]
struct Choice<'c> {
    #[serde(borrow, default)]
    index: Option<&'c RawValue>,
    #[serde(borrow, default)]
    text: Option<&'c RawValue>,
    #[serde(borrow, default)]
    finish_reason: Option<&'c RawValue>,
}

/// The words of a transcription, whole or as they come.
#[derive(Deserialize)]
struct Words<'w> {
    #[serde(borrow, default)]
    text: Option<&'w RawValue>,
    #[serde(borrow, default)]
    delta: Option<&'w RawValue>,
    #[serde(borrow, default)]
    r#type: Option<&'w str>,
}

impl Said {
    /// Reads a document.
    ///
    /// # Errors
    /// [`NoReply`].
    pub fn parse(body: Bytes) -> Result<Self, NoReply> {
        let text = document(&body)?;
        let raw: Raw<'_> = match serde_json::from_str(text) {
            Ok(raw) => raw,
            Err(_) => return Self::parse(mend::numbers(text).ok_or(NoReply::Garbage)?.into()),
        };
        if raw.error.is_some_and(|error| error.get() != "null") {
            return Err(NoReply::Error);
        }
        let choices = choices(raw.choices);
        let finish = choices.iter().find_map(|choice| choice.finish_reason);
        let mut texts = Texts::new();
        for (at, choice) in choices.iter().enumerate() {
            let mut notes = Notes { whole: &body, choice: number(choice.index, at), texts: &mut texts };
            notes.string(Field::Content, choice.text);
        }
        Ok(Self {
            model: raw.model.map(|model| range_of(&body, model.get())),
            usage: raw.usage.map(|usage| range_of(&body, usage.get())),
            is_bare: raw.choices.is_some() && choices.is_empty(),
            choices: place(&body, raw.choices),
            items: raw.data.and_then(length).unwrap_or(0),
            sound: raw.audio.map_or(0, |audio| audio.get().len().saturating_sub(2)),
            finish: place(&body, finish),
            texts,
            body,
        })
    }

    /// What the provider says was used, in either spelling of its API.
    pub fn usage(&self) -> Option<Usage> {
        text_at(&self.body, self.usage.as_ref()).and_then(|text| Usage::parse_in_and_out(text).or_else(|| Usage::parse(text)))
    }

    /// The document as it came.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Where in it the texts of completions stand.
    pub fn spoken(&self) -> &[Text] {
        &self.texts
    }

    /// Why the model stopped, raw and with its quotes.
    pub fn finish(&self) -> Option<&str> {
        text_at(&self.body, self.finish.as_ref())
    }

    /// Gives each text that the model wrote to `say`, as the inside of a JSON string.
    pub fn texts(&self, say: &mut impl FnMut(&str)) {
        let mut say = |raw: &RawValue| {
            if let Some(inner) = raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
                say(inner);
            }
        };
        let list = text_at(&self.body, self.choices.as_ref()).and_then(|text| serde_json::from_str(text).ok());
        choices(list).iter().filter_map(|choice| choice.text).for_each(&mut say);
        if self.choices.is_none() && self.items == 0 && self.sound == 0 {
            let Ok(words) = serde_json::from_slice::<Words<'_>>(&self.body) else { return };
            // The last event says once more what all others have said.
            let repeats = words.r#type.is_some_and(|kind| kind.ends_with(".done"));
            words.delta.or(words.text.filter(|_| !repeats)).into_iter().for_each(&mut say);
        }
    }

    /// The document with the caller's name for the model, a JSON string, where it names one, and with changes in its texts; on one line, if it
    /// is for an event.
    pub fn render(&self, model: &str, with_usage: bool, on_one_line: bool, changes: &[Change]) -> Bytes {
        let mut patches = Patches::default();
        changes.iter().for_each(|change| patches.replace(change.place.clone(), &*change.text));
        if let Some(place) = self.model.as_ref().filter(|place| self.body[(*place).clone()] != *model.as_bytes()) {
            patches.replace(place.clone(), model);
        }
        if let Some(usage) = self.usage.clone().filter(|_| !with_usage) {
            patches.replace(member_around(&self.body, usage), "");
        }
        let body = if patches.is_empty() {
            self.body.clone()
        } else {
            let mut out = BytesMut::with_capacity(self.body.len() + 64);
            patches.apply(&self.body, &mut out);
            out.freeze()
        };
        if on_one_line { one_line(body) } else { body }
    }

    /// A chunk that tells a usage, after the likeness of this one.
    pub fn as_usage(&self, model: &str, usage: &Usage) -> Bytes {
        let (usage, body) = (usage.render(), self.render(model, true, true, &[]));
        let edits = [Edit::Set("choices", "[]"), Edit::Set("usage", &usage)];
        object::edited(&body, &edits).map_or(body, Bytes::from)
    }
}

fn choices(list: Option<&RawValue>) -> Vec<Choice<'_>> {
    list.and_then(|list| serde_json::from_str(list.get()).ok()).unwrap_or_default()
}

/// Line ends in JSON are blanks between its parts, and would end the line of an event.
fn one_line(body: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &body).is_none() {
        return body;
    }
    body.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Said {
        Said::parse(Bytes::copy_from_slice(body.as_bytes())).unwrap()
    }

    #[test]
    fn only_the_name_of_the_model_is_changed() {
        let table = [
            (r#"{"object":"list", "model":"up","kept":1.10}"#, true, r#"{"object":"list", "model":"m","kept":1.10}"#),
            (r#"{"data":[{"model":"up"}]}"#, true, r#"{"data":[{"model":"up"}]}"#),
            (r#"{"model":"m","usage":null}"#, true, r#"{"model":"m","usage":null}"#),
            (r#"{"model":"up","usage":{"total_tokens":1},"x":1}"#, false, r#"{"model":"m","x":1}"#),
        ];
        for (body, with_usage, expected) in table {
            assert_eq!(parse(body).render("\"m\"", with_usage, false, &[]), expected);
        }
        assert_eq!(parse("{\n\"a\":\r\n1}").render("\"m\"", true, true, &[]), "{ \"a\":  1}");
    }

    #[test]
    fn usage_is_read_in_both_spellings() {
        let table = [
            (r#"{"prompt_tokens":7,"total_tokens":7}"#, Some((7, 0))),
            (r#"{"input_tokens":5,"output_tokens":9,"total_tokens":14}"#, Some((5, 9))),
            (r#"{"type":"tokens","input_tokens":14,"input_token_details":{"audio_tokens":14},"output_tokens":3}"#, Some((14, 3))),
            (r#"{"type":"duration","seconds":3}"#, None),
            ("null", None),
            ("7", None),
        ];
        for (usage, expected) in table {
            let usage = parse(&format!(r#"{{"usage":{usage}}}"#)).usage();
            assert_eq!(usage.map(|usage| (usage.prompt, usage.completion)), expected);
        }
    }

    #[test]
    fn what_was_made_is_known() {
        let table = [
            (r#"{"choices":[{"text":"a","finish_reason":"stop"},{"text":"b\n"}]}"#, vec!["a", "b\\n"], 0, 0),
            (r#"{"choices":[{"text":null}]}"#, vec![], 0, 0),
            (r#"{"text":"heard","duration":3}"#, vec!["heard"], 0, 0),
            (r#"{"type":"transcript.text.delta","delta":"he"}"#, vec!["he"], 0, 0),
            (r#"{"type":"transcript.text.done","text":"heard"}"#, vec![], 0, 0),
            (r#"{"type":"speech.audio.delta","audio":"AAAA"}"#, vec![], 0, 4),
            (r#"{"data":[{"b64_json":"x"},{"b64_json":"y"}]}"#, vec![], 2, 0),
        ];
        for (body, texts, items, sound) in table {
            let (said, mut seen) = (parse(body), Vec::new());
            said.texts(&mut |text| seen.push(text.to_owned()));
            assert_eq!(
                (seen.iter().map(String::as_str).collect::<Vec<_>>(), said.items, said.sound),
                (texts, items, sound),
                "{body}"
            );
        }
        assert_eq!(parse(r#"{"choices":[{"text":"a"},{"finish_reason":"stop"}]}"#).finish(), Some("\"stop\""));
        assert!(parse(r#"{"choices":[]}"#).is_bare && !parse("{}").is_bare);
    }

    #[test]
    fn an_error_and_what_is_no_document_are_told_apart() {
        for (body, expected) in [
            (r#"{"error":{"message":"x"}}"#, NoReply::Error),
            ("[]", NoReply::Garbage),
            ("<html>", NoReply::Garbage),
            ("", NoReply::Garbage),
            ("{\"a\":", NoReply::Garbage),
        ] {
            assert_eq!(Said::parse(Bytes::copy_from_slice(body.as_bytes())).err(), Some(expected), "{body}");
        }
        assert!(
            Said::parse(Bytes::from_static(br#"{"error":null,"x":NaN}"#)).is_ok(),
            "some servers write numbers that JSON lacks"
        );
    }

    #[test]
    fn a_usage_is_told_after_the_likeness_of_a_chunk() {
        let chunk = parse(r#"{"id":"c","model":"up","choices":[{"text":"a"}]}"#);
        let told = String::from_utf8(chunk.as_usage("\"m\"", &Usage::counted(3, 4)).to_vec()).unwrap();
        assert!(
            told.starts_with(r#"{"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4"#),
            "{told}"
        );
    }
}
