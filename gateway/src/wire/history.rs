//! The index of a transcript: which message stands where, whose it is, which calls it asks for and which one it answers; made in one pass,
//! where somebody needs it. Only what tools have to do with is read, no text.
//!
//! A transcript is the inside of the list of messages, in segments, each of whole messages; the comma between two of them may stand at the
//! end of the one or at the beginning of the other. For whoever changes a transcript: [`History::read`] it, choose among [`History::turns`]
//! (a call and its results go or stay together, see [`Turn`]), change or drop the [`Entry`]s, and write what is left with [`segments`].

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use super::object::{spells, string};
use super::scan;

/// How much of an id is repeated in a sentence, in bytes.
const LONGEST_ID: usize = 64;

/// A transcript, message by message.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In their order.
    pub entries: Vec<Entry>,
}

/// A message.
#[derive(Clone, Debug)]
pub struct Entry {
    /// It, without the commas around it: a part of the segment that it came in.
    pub bytes: Bytes,
    /// Whose it is.
    pub role: Role,
    /// The calls that it asks for.
    pub calls: Vec<Asked>,
    /// The id of the call that it answers; of tool messages only.
    pub answers: Option<String>,
}

/// A call in a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its id; empty where it has none.
    pub id: String,
    /// Of the function.
    pub name: String,
    /// Where its arguments stand in the message, raw: a string, but for callers that send something else.
    pub arguments: Option<Range<usize>>,
}

/// Whose a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The operator's or the caller's instructions: `system` and `developer`.
    System,
    /// The user's.
    User,
    /// The model's.
    Assistant,
    /// A tool's result.
    Tool,
    /// Another one, or none.
    Other,
}

/// Messages that go or stay together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// What they are.
    pub kind: TurnKind,
    /// Which entries of the history.
    pub entries: Range<usize>,
}

/// What a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnKind {
    /// Instructions.
    System,
    /// The user's words.
    User,
    /// The model's words, without calls.
    Words,
    /// The model's calls with all their results.
    Calls,
    /// A message of another kind.
    Other,
}

/// The text is no transcript: a message that is no object, or whose calls are not as the API has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// Why a history would be refused by a provider: a call and its result do not stand as they must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    /// The message at fault.
    pub at: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It answers a call that no message asks for.
    AnswersNothing(String),
    /// It answers a call of an assistant's message that comes later.
    TooEarly(String, usize),
    /// It answers a call that has an answer.
    AnswersAgain(String),
    /// It asks for two calls of one id.
    AsksTwice(String),
    /// It asks for a call that has no answer before this message; where it is the last, before the end.
    Unanswered(String, Option<usize>),
}

impl History {
    /// Reads a transcript.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn read(segments: &[Bytes]) -> Result<Self, Unreadable> {
        let mut entries = Vec::new();
        for segment in segments {
            let text = std::str::from_utf8(segment).map_err(|_| Unreadable)?.trim_ascii();
            let text = text.strip_prefix(',').unwrap_or(text);
            let text = text.strip_suffix(',').unwrap_or(text);
            for place in scan::values(text).ok_or(Unreadable)? {
                entries.push(Entry::read(segment.slice_ref(text[place].as_bytes()))?);
            }
        }
        Ok(Self { entries })
    }

    /// Whether every result follows its call and every call has one result, in the messages right behind it, as providers want it.
    ///
    /// # Errors
    /// The first [`Break`].
    pub fn check(&self) -> Result<(), Break> {
        let mut at = 0;
        while let Some(entry) = self.entries.get(at) {
            at = match &entry.answers {
                Some(id) => return Err(self.orphan(at, id)),
                None if entry.calls.is_empty() => at + 1,
                None => self.check_turn(at)?,
            };
        }
        Ok(())
    }

    /// The turns, in their order; all entries are in one.
    pub fn turns(&self) -> Vec<Turn> {
        let mut turns = Vec::new();
        let mut at = 0;
        while let Some(entry) = self.entries.get(at) {
            let kind = match entry.role {
                _ if !entry.calls.is_empty() => TurnKind::Calls,
                Role::System => TurnKind::System,
                Role::User => TurnKind::User,
                Role::Assistant => TurnKind::Words,
                Role::Tool | Role::Other => TurnKind::Other,
            };
            let end = if kind == TurnKind::Calls { self.answers(at).end } else { at + 1 };
            turns.push(Turn { kind, entries: at..end });
            at = end;
        }
        turns
    }

    /// The results that stand right behind a message.
    pub fn answers(&self, of: usize) -> Range<usize> {
        let after = of + 1;
        let count = self.entries[after..].iter().take_while(|entry| entry.answers.is_some()).count();
        after..after + count
    }

    /// Checks a message with calls, and its results. Gives what comes after them.
    fn check_turn(&self, at: usize) -> Result<usize, Break> {
        let (calls, places) = (&self.entries[at].calls, self.answers(at));
        // Sets, for whoever wrote the history may have put any number of calls into it.
        let mut asked: HashSet<&str> = HashSet::with_capacity(calls.len());
        for call in calls {
            if !asked.insert(&call.id) {
                return Err(Break { at, fault: Fault::AsksTwice(call.id.clone()) });
            }
        }
        let mut answered: HashSet<&str> = HashSet::with_capacity(calls.len());
        for place in places.clone() {
            let id = self.entries[place].answers.as_deref().unwrap_or_default();
            if !asked.contains(id) {
                return Err(self.orphan(place, id));
            }
            if !answered.insert(id) {
                return Err(Break { at: place, fault: Fault::AnswersAgain(id.to_owned()) });
            }
        }
        let Some(call) = calls.iter().find(|call| !answered.contains(call.id.as_str())) else { return Ok(places.end) };
        let next = (places.end < self.entries.len()).then_some(places.end);
        Err(Break { at, fault: Fault::Unanswered(call.id.clone(), next) })
    }

    fn orphan(&self, at: usize, id: &str) -> Break {
        let asks = |entries: &[Entry]| entries.iter().position(|entry| entry.calls.iter().any(|call| call.id == id));
        let fault = match (asks(&self.entries[..at]), asks(&self.entries[at..])) {
            (None, Some(later)) => Fault::TooEarly(id.to_owned(), at + later),
            _ => Fault::AnswersNothing(id.to_owned()),
        };
        Break { at, fault }
    }
}

/// The messages with commas between, to be sent or read again.
pub fn segments<'e>(entries: impl IntoIterator<Item = &'e Bytes>) -> Vec<Bytes> {
    let mut segments = Vec::new();
    for message in entries {
        if !segments.is_empty() {
            segments.push(Bytes::from_static(b","));
        }
        segments.push(message.clone());
    }
    segments
}

impl Entry {
    /// Reads a message.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn read(bytes: Bytes) -> Result<Self, Unreadable> {
        let text = std::str::from_utf8(&bytes).map_err(|_| Unreadable)?;
        let (mut role, mut calls, mut answers) = (None, None, None);
        for (key, value) in scan::members(text).ok_or(Unreadable)? {
            let place = match key {
                _ if spells(key.as_bytes(), "role") => &mut role,
                _ if spells(key.as_bytes(), "tool_calls") => &mut calls,
                _ if spells(key.as_bytes(), "tool_call_id") => &mut answers,
                _ => continue,
            };
            // Two members of one name are read differently by different parsers.
            if place.replace(value).is_some() {
                return Err(Unreadable);
            }
        }
        let role = Role::of(role);
        let calls = read_calls(text, calls.unwrap_or("null"))?;
        let answers = (role == Role::Tool).then(|| answers.and_then(string).unwrap_or_default().into_owned());
        Ok(Self { role, calls, answers, bytes })
    }

    /// The raw arguments of one of its calls.
    pub fn arguments(&self, call: &Asked) -> Option<&str> {
        std::str::from_utf8(&self.bytes[call.arguments.clone()?]).ok()
    }
}

impl Role {
    fn of(raw: Option<&str>) -> Self {
        match raw.and_then(string).as_deref() {
            Some("system" | "developer") => Self::System,
            Some("user") => Self::User,
            Some("assistant") => Self::Assistant,
            Some("tool") => Self::Tool,
            _ => Self::Other,
        }
    }
}

fn read_calls(message: &str, list: &str) -> Result<Vec<Asked>, Unreadable> {
    if list == "null" {
        return Ok(Vec::new());
    }
    let inside = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).ok_or(Unreadable)?;
    let places = scan::values(inside).ok_or(Unreadable)?;
    places.into_iter().map(|place| read_call(message, &inside[place])).collect()
}

fn read_call(message: &str, call: &str) -> Result<Asked, Unreadable> {
    let members = scan::members(call).ok_or(Unreadable)?;
    let member = |name| find(&members, name);
    // A custom tool has a text in place of the arguments.
    let function = match member("function").or_else(|| member("custom")).unwrap_or("null") {
        "null" => Vec::new(),
        function => scan::members(function).ok_or(Unreadable)?,
    };
    let text = |raw: Option<&str>| raw.and_then(string).unwrap_or_default().into_owned();
    let arguments = find(&function, "arguments").or_else(|| find(&function, "input"));
    Ok(Asked {
        id: text(member("id")),
        name: text(find(&function, "name")),
        arguments: arguments.map(|arguments| super::object::range_of(message.as_bytes(), arguments)),
    })
}

fn find<'m>(members: &[(&'m str, &'m str)], name: &str) -> Option<&'m str> {
    members.iter().find(|(key, _)| spells(key.as_bytes(), name)).map(|(_, value)| *value)
}

/// The sentence for the caller, without its full stop.
impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match &self.fault {
            Fault::AnswersNothing(id) => {
                write!(f, "messages[{at}] answers the call {}, and no assistant message right before it asks for that", Id(id))
            }
            Fault::TooEarly(id, later) => {
                write!(f, "messages[{at}] answers the call {}, and only messages[{later}] asks for that", Id(id))
            }
            Fault::AnswersAgain(id) => write!(f, "messages[{at}] answers the call {}, which is answered already", Id(id)),
            Fault::AsksTwice(id) => write!(f, "messages[{at}] asks for two calls with the id {}", Id(id)),
            Fault::Unanswered(id, Some(next)) => {
                write!(f, "messages[{at}] asks for the call {}, and no tool message answers it before messages[{next}]", Id(id))
            }
            Fault::Unanswered(id, None) => {
                write!(f, "messages[{at}] asks for the call {}, and no tool message after it answers it", Id(id))
            }
        }
    }
}

/// An id as a caller wrote it, so short that a sentence can hold it.
pub struct Id<'i>(pub &'i str);

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = toolgate_tools::bound::word(self.0, LONGEST_ID);
        write!(f, "\"{head}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(segments: &[&str]) -> Result<History, Unreadable> {
        let segments: Vec<Bytes> = segments.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect();
        History::read(&segments)
    }

    /// A transcript in short: `u` and `s` are messages of the user and the system, `w` the model's words, `a:x,y` asks, `t:x` answers.
    fn transcript(short: &str) -> String {
        let message = |word: &str| match word.split_once(':').unwrap_or((word, "")) {
            ("u", _) => r#"{"role":"user","content":"x"}"#.to_owned(),
            ("s", _) => r#"{"content":"x","role":"developer"}"#.to_owned(),
            ("w", _) => r#"{"role":"assistant","content":"x","tool_calls":[]}"#.to_owned(),
            ("t", id) => format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"\"tool_calls\""}}"#),
            (_, ids) => {
                let call =
                    |id: &str| format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#);
                let calls = ids.split(',').map(call).collect::<Vec<_>>().join(" , ");
                format!(r#"{{"role":"assistant","content":null,"tool_calls":[ {calls} ]}}"#)
            }
        };
        short.split(' ').map(message).collect::<Vec<_>>().join(",\n")
    }

    #[test]
    fn every_message_is_found_however_the_transcript_is_cut() {
        let one = r#"{"role":"user"}"#;
        let tables: [&[&str]; 5] = [
            &[r#"{"role":"user"},{"role":"user"}"#],
            &[r#" {"role":"user"} , {"role":"user"} "#],
            &[r#"{"role":"user"},"#, one],
            &[one, r#",{"role":"user"}"#],
            &[one, ",", one],
        ];
        for segments in tables {
            let history = read(segments).unwrap();
            assert_eq!(
                history.entries.iter().map(|entry| &*entry.bytes).collect::<Vec<_>>(),
                [one.as_bytes(); 2],
                "{segments:?}"
            );
        }
    }

    #[test]
    fn what_is_read_of_a_message() {
        let history = read(&[&transcript("s u a:c1,c2 t:c2 w")]).unwrap();
        let roles: Vec<Role> = history.entries.iter().map(|entry| entry.role).collect();
        assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
        let asks = &history.entries[2];
        assert_eq!(asks.calls.iter().map(|call| (&*call.id, &*call.name)).collect::<Vec<_>>(), [("c1", "f"), ("c2", "f")]);
        assert_eq!(asks.arguments(&asks.calls[1]), Some("\"{}\""));
        assert_eq!(history.entries[3].answers.as_deref(), Some("c2"));
        let custom = r#"{"role":"assistant","tool_calls":[{"id":"x","type":"custom","custom":{"name":"n","input":"i"}},{}]}"#;
        let calls = &read(&[custom]).unwrap().entries[0].calls;
        assert_eq!((&*calls[0].name, &*calls[1].id, calls[1].arguments.is_none()), ("n", "", true));
    }

    #[test]
    fn what_is_no_transcript() {
        for text in [
            "1",
            "{",
            r#"{"role":"assistant","tool_calls":{}}"#,
            r#"{"role":"assistant","tool_calls":["c"]}"#,
            r#"{"role":"assistant","tool_calls":[{"function":"f"}]}"#,
            r#"{"tool_calls":null,"tool_calls":[]}"#,
            r#"{"role":"tool","tool_call_id":"a","tool\u005fcall_id":"b"}"#,
        ] {
            assert_eq!(read(&[text]).err(), Some(Unreadable), "{text}");
        }
    }

    #[test]
    fn case_25_a_break_names_its_message() {
        let table = [
            ("s u w u", None),
            ("u a:c1 t:c1", None),
            ("u a:c1,c2 t:c2 t:c1 u a:c1 t:c1", None),
            ("u t:c9 u", Some("messages[1] answers the call \"c9\", and no assistant message right before it asks for that")),
            ("u a:c1,c2 t:c1 u", Some("messages[1] asks for the call \"c2\", and no tool message answers it before messages[3]")),
            ("u t:c1 a:c1 u", Some("messages[1] answers the call \"c1\", and only messages[2] asks for that")),
            ("u a:c1", Some("messages[1] asks for the call \"c1\", and no tool message after it answers it")),
            ("u a:c1 t:c1 t:c1", Some("messages[3] answers the call \"c1\", which is answered already")),
            ("u a:c1,c1 t:c1 t:c1", Some("messages[1] asks for two calls with the id \"c1\"")),
            (
                "u a:c1 t:c1 t:c2",
                Some("messages[3] answers the call \"c2\", and no assistant message right before it asks for that"),
            ),
            ("u a:c1 u t:c1", Some("messages[1] asks for the call \"c1\", and no tool message answers it before messages[2]")),
            (
                "a:c1 t:c1 u t:c1",
                Some("messages[3] answers the call \"c1\", and no assistant message right before it asks for that"),
            ),
        ];
        for (short, expected) in table {
            let checked = read(&[&transcript(short)]).unwrap().check();
            assert_eq!(checked.err().map(|fault| fault.to_string()).as_deref(), expected, "{short}");
        }
    }

    #[test]
    fn a_call_and_its_results_are_one_turn() {
        let turns = |short: &str| {
            let history = read(&[&transcript(short)]).unwrap();
            history.turns().iter().map(|turn| format!("{:?} {:?}", turn.kind, turn.entries)).collect::<Vec<_>>()
        };
        assert_eq!(turns("s u w"), ["System 0..1", "User 1..2", "Words 2..3"]);
        assert_eq!(turns("u a:c1,c2 t:c1 t:c2 a:c3 t:c3 u"), ["User 0..1", "Calls 1..4", "Calls 4..6", "User 6..7"]);
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        let history = read(&[&transcript("u a:c1 t:c1")]).unwrap();
        let written = segments(history.entries.iter().map(|entry| &entry.bytes));
        let again = History::read(&written).unwrap();
        assert_eq!(again.entries.len(), 3);
        assert_eq!(written.concat(), transcript("u a:c1 t:c1").replace(",\n", ",").into_bytes());
    }

    /// What a strict provider checks, said in another way: the calls that are open must all be answered before anything else comes.
    fn holds_together(messages: &[String]) -> bool {
        let mut open: Vec<&str> = Vec::new();
        for message in messages {
            match message.split_once(':') {
                Some(("t", id)) => match open.iter().position(|call| *call == id) {
                    Some(found) => drop(open.remove(found)),
                    None => return false,
                },
                _ if !open.is_empty() => return false,
                Some((_, ids)) => open = ids.split(',').collect(),
                None => {}
            }
            if open.iter().enumerate().any(|(at, id)| open[..at].contains(id)) {
                return false;
            }
        }
        open.is_empty()
    }

    proptest::proptest! {
        #[test]
        fn a_history_that_passes_is_one_that_a_strict_provider_takes(
            messages in proptest::collection::vec("s|u|w|a:c1|a:c1,c2|a:c1,c1|t:c1|t:c2|t:c3", 1..9),
        ) {
            let history = read(&[&transcript(&messages.join(" "))]).unwrap();
            proptest::prop_assert_eq!(history.check().is_ok(), holds_together(&messages), "{:?}", messages);
            // Every message is in one turn, in its order.
            let places: Vec<usize> = history.turns().into_iter().flat_map(|turn| turn.entries).collect();
            proptest::prop_assert_eq!(places, (0..messages.len()).collect::<Vec<_>>());
        }
    }
}
