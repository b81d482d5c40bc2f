//! Tool calls out of the pieces in which models send them, by rules that fit every provider that was seen.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_tools::arguments::Arguments;
use toolgate_tools::toolbox::Call;

use super::object::quoted;

/// What is said before each call, as the inside of a JSON string: for the model too a call is no part of the text before it.
const BREAK: &str = "\\n";

/// The most calls that one answer may ask for: each new one is compared with all before it.
const MOST_CALLS: usize = 4096;

/// A piece of a call as it stands in a delta, or a whole one as it stands in a message. `null` means "nothing new" at every level.
#[derive(Debug, Default, Deserialize)]
pub struct Piece<'a> {
    #[serde(default)]
    index: Option<u32>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    function: Option<FunctionPiece<'a>>,
    #[serde(borrow, default)]
    custom: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct FunctionPiece<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// What a call of a tool that takes no JSON says.
#[derive(Debug, Default, Deserialize)]
struct CustomPiece<'a> {
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

impl<'a> Piece<'a> {
    /// Its arguments, raw.
    pub(super) fn arguments(&self) -> Option<&'a RawValue> {
        self.function.as_ref()?.arguments
    }

    /// What it gives a tool that takes no JSON, raw.
    pub(super) fn input(&self) -> Option<&'a RawValue> {
        serde_json::from_str::<CustomPiece<'a>>(self.custom?.get()).ok()?.input
    }

    /// The number that it gives its call.
    pub(super) fn index(&self) -> Option<u32> {
        self.index
    }

    /// Gives its name and its arguments to `said`, each as the inside of a JSON string.
    pub fn each(&self, said: &mut impl FnMut(&str)) {
        let Some(function) = &self.function else { return };
        said(BREAK);
        function.name.iter().for_each(|name| said(name));
        function.arguments.iter().for_each(|arguments| said(&inner(arguments)));
    }
}

/// The calls of one round while they come in.
#[derive(Debug, Default)]
pub struct CallParts(Vec<Slot>);

#[derive(Debug, Default)]
struct Slot {
    /// The choice that it belongs to.
    choice: u32,
    index: Option<u32>,
    id: String,
    name: String,
    /// The inside of a JSON string, still escaped: a character may be cut between its two surrogates.
    arguments: String,
}

impl CallParts {
    /// Whether any call has begun.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether these are more calls than any model means.
    pub fn are_too_many(&self) -> bool {
        self.0.len() > MOST_CALLS
    }

    /// What they take in memory, roughly, in bytes.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|slot| size_of::<Slot>() + slot.id.len() + slot.name.len() + slot.arguments.len()).sum()
    }

    /// Takes a piece of a call of a choice. `is_tool` tells a whole name from the beginning of one; `said` is given what the piece adds, as
    /// the inside of a JSON string. The place of its call among all; `None`: it adds nothing.
    pub fn add(
        &mut self,
        choice: u32,
        piece: &Piece<'_>,
        is_tool: impl Fn(&str) -> bool,
        said: &mut impl FnMut(&str),
    ) -> Option<usize> {
        let id = piece.id.as_deref().filter(|id| !id.is_empty());
        let function = piece.function.as_ref();
        let name = function.and_then(|function| function.name.as_deref()).filter(|name| !name.is_empty());
        let arguments = function.and_then(|function| function.arguments).map(inner).filter(|text| !text.is_empty());
        if id.is_none() && name.is_none() && arguments.is_none() {
            return None;
        }
        let at = self.slot(choice, piece.index, id, name);
        let slot = &mut self.0[at];
        if slot.id.is_empty() && slot.name.is_empty() && slot.arguments.is_empty() {
            said(BREAK);
        }
        if let Some(id) = id
            && slot.id.is_empty()
        {
            id.clone_into(&mut slot.id);
        }
        if let Some(name) = name
            && slot.name != name
            && !is_tool(&slot.name)
        {
            slot.name.push_str(name);
            said(name);
        }
        if let Some(arguments) = arguments
            && !is_copy(&slot.arguments, &arguments)
        {
            slot.arguments.push_str(&arguments);
            said(&arguments);
        }
        Some(at)
    }

    /// Takes a whole call.
    pub fn add_whole(&mut self, piece: &Piece<'_>) {
        let function = piece.function.as_ref();
        self.0.push(Slot {
            choice: 0,
            index: None,
            id: piece.id.as_deref().unwrap_or_default().to_owned(),
            name: function.and_then(|function| function.name.as_deref()).unwrap_or_default().to_owned(),
            arguments: function.and_then(|function| function.arguments).map(inner).unwrap_or_default().into_owned(),
        });
    }

    /// Index given: that slot, except that a new id together with a name opens a new call. No index but a new id: a new call. Neither: the
    /// call opened last goes on, unless it is complete and a name begins another. Each choice has calls of its own.
    fn slot(&mut self, choice: u32, index: Option<u32>, id: Option<&str>, name: Option<&str>) -> usize {
        let last = |is_it: &dyn Fn(&Slot) -> bool| self.0.iter().rposition(|slot| slot.choice == choice && is_it(slot));
        let found = match (index, id) {
            (Some(_), _) => last(&|slot| slot.index == index).filter(|&at| {
                let other_id = id.is_some_and(|id| !self.0[at].id.is_empty() && self.0[at].id != id);
                !(other_id && name.is_some())
            }),
            (None, Some(id)) => last(&|slot| slot.id == id),
            (None, None) => last(&|_| true).filter(|&at| name.is_none() || !is_complete(&self.0[at].arguments)),
        };
        found.unwrap_or_else(|| {
            self.0.push(Slot { choice, index, ..Slot::default() });
            self.0.len() - 1
        })
    }

    /// Whether the last call's arguments stop in the middle: nothing at all, or no whole JSON.
    pub fn is_cut(&self) -> bool {
        self.0.last().is_some_and(|slot| !is_complete(&slot.arguments))
    }

    /// The arguments of each call as they were written, `{}` where there are none: raw JSON strings.
    pub fn arguments(&self) -> Vec<String> {
        let written = |slot: &Slot| if slot.arguments.trim().is_empty() { "{}".to_owned() } else { slot.arguments.clone() };
        self.0.iter().map(|slot| format!("\"{}\"", written(slot))).collect()
    }

    /// The calls, each with an id of its own. Ids that are missing or double are made from the round and the place.
    pub fn finish(self, round: u32) -> Vec<Call> {
        let mut calls: Vec<Call> = Vec::with_capacity(self.0.len());
        for (at, slot) in self.0.into_iter().enumerate() {
            let taken = slot.id.is_empty() || calls.iter().any(|call| call.id == slot.id);
            let id = if taken { format!("call_{round}_{at}") } else { slot.id };
            calls.push(Call { id, name: slot.name, arguments: Arguments::parse(&text(&slot.arguments)) });
        }
        calls
    }
}

/// The inside of the JSON string that these arguments are, or would be: some providers send the object itself.
fn inner(raw: &RawValue) -> Cow<'_, str> {
    match raw.get() {
        "null" => Cow::Borrowed(""),
        text if text.starts_with('"') => Cow::Borrowed(&text[1..text.len() - 1]),
        object => {
            let quoted = quoted(object);
            Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
        }
    }
}

/// The text that the inside of a JSON string spells. What is no string stays as it is, and is found to be no JSON afterwards.
fn text(inner: &str) -> Cow<'_, str> {
    if inner.contains('\\') {
        serde_json::from_str::<String>(&format!("\"{inner}\"")).map_or(Cow::Borrowed(inner), Cow::Owned)
    } else {
        Cow::Borrowed(inner)
    }
}

/// Whether a piece says a second time what is whole already. Something else behind whole arguments makes them invalid instead.
fn is_copy(stored: &str, piece: &str) -> bool {
    let parsed = |inner: &str| serde_json::from_str::<serde_json::Value>(&text(inner)).ok();
    // The work is in proportion to the piece, however long what it is compared with.
    let alike = !stored.is_empty() && stored.len() <= 2 * piece.len();
    piece.starts_with('{') && alike && parsed(piece).is_some_and(|again| parsed(stored) == Some(again))
}

fn is_complete(inner: &str) -> bool {
    !inner.is_empty() && serde_json::from_str::<serde::de::IgnoredAny>(&text(inner)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds deltas, each a list of pieces, and shows the calls as `id name arguments`.
    fn calls(deltas: &[&str]) -> Vec<String> {
        let mut parts = CallParts::default();
        for delta in deltas {
            for piece in serde_json::from_str::<Vec<Piece<'_>>>(delta).unwrap() {
                parts.add(0, &piece, |name| ["lookup", "clock"].contains(&name), &mut |_| ());
            }
        }
        shown(parts)
    }

    fn shown(parts: CallParts) -> Vec<String> {
        let show = |call: Call| {
            let arguments = call.arguments.map_or_else(|_| "INVALID".to_owned(), |arguments| arguments.text().to_owned());
            format!("{} {} {arguments}", call.id, call.name)
        };
        parts.finish(1).into_iter().map(show).collect()
    }

    #[test]
    fn case_01_parallel_calls_do_not_run_together() {
        let both = ["c1 lookup {\"q\":\"a\"}", "c2 clock {}"];
        let first = r#"{"id":"c1","type":"function","function":{"name":"lookup","arguments":"{\"q\":\"a\"}"}}"#;
        let second = r#"{"id":"c2","type":"function","function":{"name":"clock","arguments":"{}"}}"#;
        assert_eq!(calls(&[&format!("[{first},{second}]")]), both);
        let indexed = |piece: &str| format!("[{}]", piece.replacen('{', "{\"index\":0,", 1));
        assert_eq!(calls(&[&indexed(first), &indexed(second)]), both);
        let split =
            [r#"[{"id":"c1","function":{"name":"lookup","arguments":"{\"q\":"}}]"#, r#"[{"function":{"arguments":"\"a\"}"}}]"#];
        assert_eq!(calls(&split), ["c1 lookup {\"q\":\"a\"}"]);
    }

    #[test]
    fn case_02_repeated_ids_names_and_arguments_add_nothing() {
        let expected = ["c1 lookup {\"q\":\"a\"}"];
        let piece =
            |arguments: &str| format!(r#"[{{"index":0,"id":"c1","function":{{"name":"lookup","arguments":"{arguments}"}}}}]"#);
        assert_eq!(calls(&[&piece(r#"{\"q\""#), &piece(r#":\"a\""#), &piece("}")]), expected);
        let arguments = |text: &str| format!(r#"[{{"index":0,"function":{{"arguments":"{text}"}}}}]"#);
        let whole = piece(r#"{\"q\":\"a\"}"#);
        assert_eq!(calls(&[&piece(""), &arguments(r#"{\"q\":"#), &arguments(r#"\"a\"}"#), &whole]), expected);
        let name = |part: &str, more: &str| format!(r#"[{{"index":0,{more}"function":{{"name":"{part}"}}}}]"#);
        assert_eq!(calls(&[&name("look", r#""id":"c1","#), &name("up", ""), &arguments(r#"{\"q\":\"a\"}"#)]), expected);
    }

    #[test]
    fn case_04_null_means_nothing_new() {
        let deltas = [
            r#"[{"index":0,"id":"c1","function":{"name":"lookup","arguments":null}},{"index":1,"id":"c2","function":{"name":"clock","arguments":null}}]"#,
            r#"[{"index":0,"function":{"arguments":"{\"q\":\"a\"}"}}]"#,
            r#"[{"index":0,"function":null}]"#,
        ];
        assert_eq!(calls(&deltas), ["c1 lookup {\"q\":\"a\"}", "c2 clock {}"]);
    }

    #[test]
    fn case_07_a_character_may_be_cut_anywhere() {
        let outer = [
            r#"[{"index":0,"id":"c","function":{"name":"lookup","arguments":"{\"q\":\"\ud83c"}}]"#,
            r#"[{"index":0,"function":{"arguments":"\udfbb\"}"}}]"#,
        ];
        assert_eq!(calls(&outer), ["c lookup {\"q\":\"🎻\"}"]);
        let inner = [
            r#"[{"index":0,"id":"c","function":{"name":"lookup","arguments":"{\"q\":\"\\ud83c"}}]"#,
            r#"[{"index":0,"function":{"arguments":"\\udfbb\"}"}}]"#,
        ];
        assert_eq!(calls(&inner), [r#"c lookup {"q":"\ud83c\udfbb"}"#]);
        let backslash = [
            r#"[{"index":0,"id":"c","function":{"name":"lookup","arguments":"{\"q\":\"a\\"}}]"#,
            r#"[{"index":0,"function":{"arguments":"\"b\"}"}}]"#,
        ];
        assert_eq!(calls(&backslash), [r#"c lookup {"q":"a\"b"}"#]);
    }

    #[test]
    fn case_13_an_object_is_read_as_the_text_it_should_have_been() {
        assert_eq!(
            calls(&[r#"[{"index":0,"id":"c","function":{"name":"lookup","arguments":{"q":"a"}}}]"#]),
            ["c lookup {\"q\":\"a\"}"]
        );
        let twice = r#"[{"index":0,"id":"c","function":{"name":"lookup","arguments":"{\"p\":1,\"p\":2}"}}]"#;
        assert_eq!(calls(&[twice]), ["c lookup INVALID"]);
    }

    #[test]
    fn what_a_call_adds_is_said_once() {
        let (mut parts, mut said) = (CallParts::default(), Vec::new());
        let deltas = [
            r#"{"index":0,"id":"c","function":{"name":"look","arguments":""}}"#,
            r#"{"index":0,"id":"c","function":{"name":"up","arguments":null}}"#,
            r#"{"index":0,"function":{"arguments":"{\"q\":1}"}}"#,
            r#"{"index":0,"id":"c","function":{"name":"lookup","arguments":"{\"q\":1}"}}"#,
            r#"{"index":1,"id":"d","function":{"name":"clock","arguments":{}}}"#,
        ];
        for delta in deltas {
            let piece = serde_json::from_str(delta).unwrap();
            parts.add(0, &piece, |name| name == "lookup", &mut |text| said.push(text.to_owned()));
        }
        assert_eq!(said, [BREAK, "look", "up", r#"{\"q\":1}"#, BREAK, "clock", "{}"]);
    }

    #[test]
    fn ids_that_are_missing_or_double_are_made() {
        let mut parts = CallParts::default();
        for text in [
            r#"{"function":{"name":"clock"}}"#,
            r#"{"id":"x","function":{"name":"clock"}}"#,
            r#"{"id":"x","function":{"name":"clock"}}"#,
        ] {
            parts.add_whole(&serde_json::from_str(text).unwrap());
        }
        assert_eq!(shown(parts), ["call_1_0 clock {}", "x clock {}", "call_1_2 clock {}"]);
    }

    #[test]
    fn a_cut_call_is_known_as_one() {
        for (arguments, cut) in [(r#"{\"q\":\"a"#, true), ("", true), (r#"{\"q\":\"a\"}"#, false)] {
            let mut parts = CallParts::default();
            let text = format!(r#"{{"index":0,"id":"c","function":{{"name":"lookup","arguments":"{arguments}"}}}}"#);
            parts.add(0, &serde_json::from_str(&text).unwrap(), |_| true, &mut |_| ());
            assert_eq!(parts.is_cut(), cut, "{arguments}");
        }
    }
}
