//! The arguments of a call: a JSON object as the model wrote it. Two readers of one text must not see two things, so a key that stands
//! twice is an error, and digits are handed on as they are.

mod strict;
mod unwrap;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use self::strict::{DEEPEST, strict};

/// The longest text of arguments, in bytes.
const LONGEST: usize = 1024 * 1024;

/// A JSON object as the model wrote it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Arguments {
    text: Box<str>,
    value: Value,
    members: Vec<(String, Box<RawValue>)>,
}

/// Why a text is no set of arguments. Its text is for the model, and repeats no more of what was written than a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BadArguments {
    /// It is not JSON.
    NotJson,
    /// It is JSON, but no object.
    NotAnObject,
    /// An object in it has this key twice.
    Twice(String),
    /// Its objects and arrays stand too deep in each other.
    TooDeep,
    /// It is too long.
    TooLong,
}

impl Arguments {
    /// Reads what a model wrote. Nothing, blanks and `null` are `{}`.
    ///
    /// # Errors
    /// What is wrong, for the model.
    pub fn parse(text: &str) -> Result<Self, BadArguments> {
        let text = match text.trim_ascii() {
            "" | "null" => "{}",
            text if text.len() > LONGEST => return Err(BadArguments::TooLong),
            text => text,
        };
        let value = strict(text)?;
        if !value.is_object() {
            return Err(BadArguments::NotAnObject);
        }
        let members = serde_json::from_str::<Members<'_>>(text).map_err(|_| BadArguments::NotJson)?.0;
        let members = members.into_iter().map(|(name, raw)| (name.into_owned(), raw.to_owned())).collect();
        Ok(Self { text: text.into(), value, members })
    }

    /// The text, as it goes upstream and into traces; `{}` where there were none.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The object, for a schema. Numbers beyond 64 bits have lost digits here.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// One member, as written.
    pub fn member(&self, name: &str) -> Option<&RawValue> {
        self.members().find(|(key, _)| *key == name).map(|(_, raw)| raw)
    }

    /// Every member as written, in the order of the text.
    pub fn members(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.members.iter().map(|(key, raw)| (key.as_str(), raw.as_ref()))
    }

    /// The object with its keys in order and without blanks: two calls that mean the same are equal here. Numbers are compared as written.
    pub fn canonical(&self) -> String {
        let mut out = String::with_capacity(self.text.len());
        canonical(&self.text, &mut out);
        out
    }
}

impl From<Arguments> for String {
    fn from(arguments: Arguments) -> Self {
        arguments.text.into()
    }
}

impl TryFrom<String> for Arguments {
    type Error = BadArguments;

    fn try_from(text: String) -> Result<Self, BadArguments> {
        Self::parse(&text)
    }
}

impl PartialEq for Arguments {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Arguments {}

impl fmt::Display for BadArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson => f.write_str("not valid JSON"),
            Self::NotAnObject => f.write_str("must be a JSON object"),
            Self::Twice(key) => write!(f, "has the key `{key}` twice"),
            Self::TooDeep => write!(f, "is nested more than {DEEPEST} levels deep"),
            Self::TooLong => write!(f, "is longer than {LONGEST} bytes"),
        }
    }
}

impl std::error::Error for BadArguments {}

/// A value as the text of a template: a string is its characters, everything else its JSON without blanks. `None`: `null`.
pub(crate) fn as_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let json = raw.get();
    match json.as_bytes().first() {
        Some(b'n') => None,
        Some(b'"') => serde_json::from_str::<String>(json).ok().map(Cow::Owned),
        Some(b'{' | b'[') => Some(Cow::Owned(compact(json))),
        _ => Some(Cow::Borrowed(json)),
    }
}

/// JSON without the blanks between its tokens.
pub(crate) fn compact(json: &str) -> String {
    let (mut quoted, mut escaped) = (false, false);
    let keep = |character: &char| {
        let blank = !quoted && character.is_ascii_whitespace();
        quoted ^= *character == '"' && !escaped;
        escaped = quoted && *character == '\\' && !escaped;
        !blank
    };
    json.chars().filter(keep).collect()
}

/// The members of one object, in order, values unread.
struct Members<'t>(Vec<(Cow<'t, str>, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(member) = members.next_entry::<String, &RawValue>()? {
                    all.push((Cow::Owned(member.0), member.1));
                }
                Ok(Members(all))
            }
        }

        from.deserialize_map(InOrder).map_err(D::Error::custom)
    }
}

/// Writes a value that has been read strictly before, so that nothing in here can fail.
fn canonical(json: &str, out: &mut String) {
    match json.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(json).unwrap_or_default();
            let write = |out: &mut String, (key, raw): (String, &RawValue)| {
                out.push_str(&Value::String(key).to_string());
                out.push(':');
                canonical(raw.get(), out);
            };
            listed(out, ['{', '}'], members, write);
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            listed(out, ['[', ']'], items, |out, raw| canonical(raw.get(), out));
        }
        // A string may be escaped in more than one way.
        Some(b'"') => out.push_str(&serde_json::from_str::<Value>(json).unwrap_or_default().to_string()),
        _ => out.push_str(json),
    }
}

fn listed<T>(out: &mut String, [open, close]: [char; 2], items: impl IntoIterator<Item = T>, write: impl Fn(&mut String, T)) {
    out.push(open);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, BadArguments> {
        Arguments::parse(text).map(|arguments| arguments.text().to_owned())
    }

    #[test]
    fn nothing_is_an_empty_object() {
        for text in ["", "  ", "\n\t", "null", " null ", "{}", " {} "] {
            assert_eq!(parse(text).unwrap(), "{}", "{text:?}");
        }
    }

    #[test]
    fn what_is_no_unambiguous_object_is_refused() {
        let twice = |key: &str| BadArguments::Twice(key.to_owned());
        let table = [
            ("{", BadArguments::NotJson),
            (r#"{"q":"a"#, BadArguments::NotJson),
            (r#"{"q":1}{"q":2}"#, BadArguments::NotJson),
            (r#"{"q":1} x"#, BadArguments::NotJson),
            ("{'q':1}", BadArguments::NotJson),
            (r#"{"q":NaN}"#, BadArguments::NotJson),
            (r#"{"q":01}"#, BadArguments::NotJson),
            (r#"{"q":1,}"#, BadArguments::NotJson),
            (r#"{"q":"\ud800"}"#, BadArguments::NotJson),
            ("[]", BadArguments::NotAnObject),
            ("7", BadArguments::NotAnObject),
            (r#""{}""#, BadArguments::NotAnObject),
            ("true", BadArguments::NotAnObject),
            (r#"{"path":"ok.txt","path":"../secret"}"#, twice("path")),
            (r#"{"path":1,"p\u0061th":2}"#, twice("path")),
            (r#"{"a":{"b":[{"c":1,"c":1}]}}"#, twice("c")),
            (r#"{"":1,"":1}"#, twice("")),
            ("{\"a\\nb\":1,\"a\\nb\":1}", twice("ab")),
        ];
        for (text, fault) in table {
            assert_eq!(parse(text).unwrap_err(), fault, "{text}");
        }
    }

    #[test]
    fn depth_and_length_have_an_end() {
        let nested = |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert!(parse(&nested(DEEPEST)).is_ok());
        assert_eq!(parse(&nested(DEEPEST + 1)), Err(BadArguments::TooDeep));
        let long = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
        assert_eq!(parse(&long(LONGEST)).map(|text| text.len()), Ok(LONGEST));
        assert_eq!(parse(&long(LONGEST + 1)), Err(BadArguments::TooLong));
    }

    #[test]
    fn a_fault_repeats_a_key_and_no_more() {
        let text = format!(r#"{{"{0}":"secret","{0}":"secret"}}"#, "k".repeat(500));
        let said = parse(&text).unwrap_err().to_string();
        assert!(said.len() < 100 && !said.contains("secret"), "{said}");
    }

    #[test]
    fn digits_and_blanks_stay_as_written() {
        let text = r#"{ "n": 12345678901234567890123.4500, "e": 1E5, "o": { "x": 1.0 } }"#;
        let arguments = Arguments::parse(text).unwrap();
        assert_eq!(arguments.text(), text);
        assert_eq!(arguments.member("n").unwrap().get(), "12345678901234567890123.4500");
        assert_eq!(arguments.member("e").unwrap().get(), "1E5");
        assert_eq!(arguments.member("o").unwrap().get(), r#"{ "x": 1.0 }"#);
        assert!(arguments.member("x").is_none());
        assert_eq!(arguments.members().map(|(name, _)| name).collect::<Vec<_>>(), ["n", "e", "o"]);
        assert_eq!(arguments.value()["o"]["x"], 1.0);
    }

    #[test]
    fn calls_that_mean_the_same_are_equal_in_canonical_form() {
        let table = [
            (r#"{"b":1,"a":{"d":[1, 2],"c":null}}"#, r#"{"a":{"c":null,"d":[1,2]},"b":1}"#),
            (r#"{"a":"\u0062 c","b":""}"#, r#"{"a":"b c","b":""}"#),
            (r#"{"a":10000000000000000000001}"#, r#"{"a":10000000000000000000001}"#),
            ("{ }", "{}"),
            ("", "{}"),
        ];
        for (text, expected) in table {
            assert_eq!(Arguments::parse(text).unwrap().canonical(), expected, "{text}");
        }
    }

    #[test]
    fn values_become_text_without_losing_a_digit() {
        let table = [
            (r#""a\n\"b\"""#, Some("a\n\"b\"")),
            ("1.50", Some("1.50")),
            ("true", Some("true")),
            (r#"{ "a b" : [ 1 , "x \" y\\" ] }"#, Some(r#"{"a b":[1,"x \" y\\"]}"#)),
            ("null", None),
        ];
        for (json, expected) in table {
            let raw = RawValue::from_string(json.to_owned()).unwrap();
            assert_eq!(as_text(&raw).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn stored_arguments_come_back_as_they_were() {
        let arguments = Arguments::parse(r#"{"a": 1.0}"#).unwrap();
        let stored = serde_json::to_string(&arguments).unwrap();
        assert_eq!(stored, r#""{\"a\": 1.0}""#);
        assert_eq!(serde_json::from_str::<Arguments>(&stored).unwrap(), arguments);
    }
}
