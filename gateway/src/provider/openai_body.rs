//! A canonical request in the form of a provider that speaks OpenAI's dialect with an accent: some members under other names or not at all,
//! some turns written otherwise. Everything is spliced; what is not named stays as it was written, digit for digit.

use std::borrow::Cow;

use bytes::Bytes;
use memchr::memmem;
use serde_json::value::RawValue;
use toolgate_tools::net::Segments;

use super::Unsupported;
use super::ids::{Form, fit};
use crate::wire::object::{self, Edit, Members, as_str};

/// What becomes of a member of a request.
pub(super) enum Fate<'a> {
    /// It goes on as it is.
    Stays,
    /// It does not go on.
    Goes,
    /// It goes on with another value.
    Is(Cow<'a, str>),
    /// It goes on under another name.
    Named(&'static str),
}

/// A request with `member` asked about each of its members, by all of them, its name and its raw value, and its list of messages written by
/// `messages`. What is no request goes on as it is.
pub(super) fn rewritten<'b>(
    body: &Segments,
    member: impl Fn(&Members<'_>, &str, &str) -> Result<Fate<'b>, Unsupported>,
    messages: impl FnOnce(&str) -> Option<String>,
) -> Result<Segments, Unsupported> {
    let whole = body.pieces().concat();
    let Ok(members) = Members::parse(&whole) else { return Ok(body.clone()) };
    let (mut out, mut messages) = (String::with_capacity(whole.len() + 64), Some(messages));
    for (key, value) in &members.0 {
        let name = as_str(key).unwrap_or_default();
        if name == "messages"
            && let Some(list) = messages.take().and_then(|write| write(value.get()))
        {
            put(&mut out, key.get(), &list);
            continue;
        }
        match member(&members, &name, value.get())? {
            Fate::Stays => put(&mut out, key.get(), value.get()),
            Fate::Goes => {}
            Fate::Is(other) => put(&mut out, key.get(), &other),
            Fate::Named(other) => put(&mut out, &object::quoted(other), value.get()),
        }
    }
    out.push(if out.is_empty() { '{' } else { '}' });
    Ok(Segments::from(Bytes::from(out)))
}

fn put(out: &mut String, key: &str, value: &str) {
    out.push(if out.is_empty() { '{' } else { ',' });
    out.push_str(key);
    out.push(':');
    out.push_str(value);
}

/// The request with one more member, which it does not have: its last byte is the brace that closes it.
pub(super) fn with_member(body: &Segments, member: &'static str) -> Segments {
    let mut pieces = body.pieces().to_vec();
    if let Some(last) = pieces.last_mut() {
        last.truncate(last.len() - 1);
        pieces.push(Bytes::from_static(member.as_bytes()));
    }
    Segments::from(pieces)
}

/// Whether a member whose name begins like this, or a value, stands anywhere in a request. Inside of a text the quote before it is escaped.
pub(super) fn has(body: &Segments, quoted: &str) -> bool {
    let finder = memmem::Finder::new(quoted);
    let is_one = |piece: &[u8], at: usize| at == 0 || piece[at - 1] != b'\\';
    body.pieces().iter().any(|piece| finder.find_iter(piece).any(|at| is_one(piece, at)))
}

/// Whether a result names a call by an id that this form does not take. Each call has a result, so that the calls need not be looked at; an
/// id is taken for one that does not fit where it is not seen at once that it does.
pub(super) fn has_ids_unfit_for(body: &Segments, form: Form) -> bool {
    let finder = memmem::Finder::new("\"tool_call_id\"");
    let unfit = |piece: &[u8], at: usize| {
        let id = id_at(&piece[at + finder.needle().len()..]);
        id.is_none_or(|id| matches!(fit(id, form), Cow::Owned(_)))
    };
    body.pieces().iter().any(|piece| finder.find_iter(piece).any(|at| unfit(piece, at)))
}

/// The id behind the name of its member, if it is a short one without escapes.
fn id_at(text: &[u8]) -> Option<&str> {
    let id = text.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
    let end = memchr::memchr2(b'"', b'\\', &id[..id.len().min(65)])?;
    std::str::from_utf8(&id[..end]).ok().filter(|_| id[end] == b'"')
}

/// How a provider wants the turns of a transcript.
#[derive(Clone, Copy)]
pub(super) struct Turns {
    /// Whether it knows the role `developer`; to the others that is `system`.
    pub(super) knows_developer: bool,
    /// The form of its call ids, where it has one.
    pub(super) ids: Option<Form>,
    /// Members of a turn that it refuses, and that it loses nothing by: labels, and what only their maker can read.
    pub(super) without: &'static [&'static str],
    /// Whether it refuses members of a turn that are `null`.
    pub(super) without_nulls: bool,
}

/// A turn of a transcript.
pub(super) struct Turn<'t> {
    text: &'t str,
    members: Members<'t>,
    /// Who speaks.
    pub(super) role: Cow<'t, str>,
}

/// The turns of a list of messages; `None` where it is not one.
pub(super) fn turns(list: &str) -> Option<Vec<Turn<'_>>> {
    let turns: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    turns.into_iter().map(|turn| Turn::parse(turn.get())).collect()
}

/// The list with each turn as the provider wants it.
pub(super) fn list(list: &str, wants: Turns) -> Option<String> {
    let turns = turns(list)?;
    let turns: Vec<Cow<'_, str>> = turns.iter().map(|turn| turn.written(wants, &[])).collect();
    Some(format!("[{}]", turns.join(",")))
}

/// The inside of a list of messages without any thoughts that are to be sent back.
pub(super) fn without_thoughts(messages: &[Bytes]) -> Cow<'_, [Bytes]> {
    const WANTS: Turns = Turns { knows_developer: true, ids: None, without: &["reasoning_details"], without_nulls: false };
    if !messages.iter().any(|piece| memmem::find(piece, b"\"reasoning_details\"").is_some()) {
        return Cow::Borrowed(messages);
    }
    let whole = [b"[", &messages.concat()[..], b"]"].concat();
    let written = std::str::from_utf8(&whole).ok().and_then(|whole| list(whole, WANTS));
    written.map_or(Cow::Borrowed(messages), |list| Cow::Owned(vec![Bytes::from(list[1..list.len() - 1].to_owned())]))
}

impl<'t> Turn<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        let members = Members::parse(text.as_bytes()).ok()?;
        let role = members.get("role").and_then(as_str).unwrap_or_default();
        Some(Self { text, members, role })
    }

    /// The raw value of a member.
    pub(super) fn get(&self, name: &str) -> Option<&'t str> {
        self.members.get(name).map(RawValue::get)
    }

    /// The turn as the provider wants it, with these edits made as well.
    pub(super) fn written(&self, wants: Turns, also: &[(&'static str, String)]) -> Cow<'t, str> {
        // Of two edits of one member the first is made.
        let mut edits: Vec<(Cow<'_, str>, Option<String>)> = Vec::new();
        edits.extend(also.iter().map(|(name, value)| (Cow::Borrowed(*name), Some(value.clone()))));
        if self.role == "developer" && !wants.knows_developer {
            edits.push(("role".into(), Some("\"system\"".to_owned())));
        }
        if let Some(form) = wants.ids {
            edits.extend(self.fitted_ids(form).map(|(name, value)| (name.into(), value)));
        }
        edits.extend(wants.without.iter().filter(|name| self.get(name).is_some()).map(|name| (Cow::Borrowed(*name), None)));
        edits.extend(self.unsigned().map(|details| ("reasoning_details".into(), details)));
        if wants.without_nulls {
            edits.extend(self.nulls().map(|name| (name, None)));
        }
        if edits.is_empty() {
            return Cow::Borrowed(self.text);
        }
        let edits = edits.iter().map(|(name, value)| value.as_deref().map_or(Edit::Remove(name), |value| Edit::Set(name, value)));
        let edits: Vec<Edit<'_>> = edits.collect();
        object::edited(self.text.as_bytes(), &edits).map_or(Cow::Borrowed(self.text), Cow::Owned)
    }

    /// A call's id and that of its result, where they have to change.
    fn fitted_ids(&self, form: Form) -> impl Iterator<Item = (&'static str, Option<String>)> {
        let fitted = |raw: &RawValue| match fit(&as_str(raw)?, form) {
            Cow::Borrowed(_) => None,
            Cow::Owned(id) => Some(object::quoted(&id)),
        };
        let result = self.members.get("tool_call_id").and_then(fitted).map(|id| ("tool_call_id", Some(id)));
        let calls = self.members.get("tool_calls").and_then(|calls| {
            let calls: Vec<&RawValue> = serde_json::from_str(calls.get()).ok()?;
            let mut changed = false;
            let mut call = |call: &RawValue| {
                let id = Members::parse(call.get().as_bytes()).ok().and_then(|call| fitted(call.get("id")?));
                let edited = id.and_then(|id| object::edited(call.get().as_bytes(), &[Edit::Set("id", &id)]).ok());
                changed |= edited.is_some();
                edited.unwrap_or_else(|| call.get().to_owned())
            };
            let calls = calls.into_iter().map(&mut call).collect::<Vec<_>>().join(",");
            changed.then(|| ("tool_calls", Some(format!("[{calls}]"))))
        });
        result.into_iter().chain(calls)
    }

    /// The thoughts without those that another provider signed, where there are any: `None` inside means that none is left.
    fn unsigned(&self) -> Option<Option<String>> {
        let details: Vec<&RawValue> = serde_json::from_str(self.get("reasoning_details")?).ok()?;
        let is_signed =
            |entry: &&RawValue| Members::parse(entry.get().as_bytes()).is_ok_and(|entry| entry.get("signer").is_some());
        let kept: Vec<&str> = details.iter().filter(|entry| !is_signed(entry)).map(|entry| entry.get()).collect();
        if kept.len() == details.len() {
            return None;
        }
        Some((!kept.is_empty()).then(|| format!("[{}]", kept.join(","))))
    }

    /// The members that are `null`; a content may be.
    fn nulls(&self) -> impl Iterator<Item = Cow<'t, str>> {
        let nulls = self.members.0.iter().filter(|(_, value)| value.get() == "null");
        nulls.filter_map(|(key, _)| as_str(key)).filter(|key| key != "content")
    }
}

/// For a member that asks for what a provider cannot do: nothing is lost by leaving it out where it is `null`, or one of these values.
pub(super) fn neutral(field: &'static str, value: &str, values: &[&str]) -> Result<Fate<'static>, Unsupported> {
    if value == "null" || values.contains(&value) {
        return Ok(Fate::Goes);
    }
    let why = "asks for what the provider of this model cannot do: leave it out, or use another model";
    Err(Unsupported { field, why: why.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Turns = Turns { knows_developer: false, ids: None, without: &[], without_nulls: false };

    fn body(text: &str) -> Segments {
        Segments::from(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn of_a_transcript_that_was_cut_the_thoughts_go() {
        let pieces = [
            r#"{"role":"user","content":"reasoning_details"}"#,
            r#",{"role":"assistant","reasoning_details":[{"text":"T"}],"content":1.10}"#,
        ];
        let pieces = pieces.map(|piece| Bytes::from_static(piece.as_bytes()));
        let expected = r#"{"role":"user","content":"reasoning_details"},{"role":"assistant","content":1.10}"#;
        assert_eq!(without_thoughts(&pieces).concat(), expected.as_bytes());
        assert!(matches!(without_thoughts(&[Bytes::from_static(b"{\"role\":\"user\"}")]), Cow::Borrowed(_)));
    }

    #[test]
    fn members_stay_go_and_change_and_the_rest_is_as_it_was_written() {
        let member = |_: &Members<'_>, name: &str, _: &str| match name {
            "a" => Ok(Fate::Goes),
            "b" => Ok(Fate::Is("2".into())),
            "c" => Ok(Fate::Named("d")),
            "e" => neutral("e", "1", &[]),
            _ => Ok(Fate::Stays),
        };
        let table = [
            (r#"{"a":1,"b":1, "x": 1e400 ,"c":1.10}"#, r#"{"b":2,"x":1e400,"d":1.10}"#),
            (r#"{"x":1,"messages":[1],"a":0}"#, r#"{"x":1,"messages":[1]}"#),
            ("no object", "no object"),
        ];
        for (text, expected) in table {
            let sent = rewritten(&body(text), member, |_| None).unwrap();
            assert_eq!(sent.pieces().concat(), expected.as_bytes(), "{text}");
        }
        let refused = rewritten(&body(r#"{"e":1}"#), member, |_| None);
        assert_eq!(refused.err().map(|unsupported| unsupported.field), Some("e"));
    }

    #[test]
    fn one_more_member_is_behind_all_others() {
        let pieces = [Bytes::from_static(b"{\"a\":1"), Bytes::from_static(b",\"b\":[]}")];
        assert_eq!(with_member(&pieces.into_iter().collect(), ",\"c\":2}").pieces().concat(), br#"{"a":1,"b":[],"c":2}"#);
    }

    #[test]
    fn an_id_that_does_not_fit_is_found_without_reading_the_rest() {
        let long = "x".repeat(41);
        let table = [
            (format!(r#"{{"tool_call_id":"{long}"}}"#), true),
            (format!(r#"{{"tool_call_id" : "{}"}}"#, &long[1..]), false),
            (r#"{"tool_call_id":"a"},{"tool_call_id":""}"#.to_owned(), true),
            (r#"{"tool_call_id":"a\u0062"}"#.to_owned(), true),
            (r#"{"tool_call_id":7}"#.to_owned(), true),
            (format!(r#"{{"content":"\"tool_call_id\":\"{long}\""}}"#), false),
            (r#"{"content":"x"}"#.to_owned(), false),
        ];
        for (text, expected) in table {
            assert_eq!(has_ids_unfit_for(&body(&text), Form::UpTo40), expected, "{text}");
        }
    }

    #[test]
    fn case_19_developer_is_system_where_it_is_not_known() {
        let turns = r#"[{"role":"developer","content":"D"},{"role":"user","content":"developer","x":1.10}]"#;
        let expected = turns.replacen("developer", "system", 1);
        assert_eq!(list(turns, PLAIN).as_deref(), Some(expected.as_str()));
        assert_eq!(list(turns, Turns { knows_developer: true, ..PLAIN }).as_deref(), Some(turns));
    }

    #[test]
    fn signed_thoughts_leave_nowhere_and_the_others_stay() {
        let table = [
            (r#"[{"signer":"ab","text":"t"}]"#, None),
            (r#"[{"signer":"ab"},{"data":"d"}]"#, Some(r#"[{"data":"d"}]"#)),
            (r#"[{"data":"d","id":null}]"#, Some(r#"[{"data":"d","id":null}]"#)),
            ("[]", Some("[]")),
            ("null", Some("null")),
        ];
        for (details, left) in table {
            let sent = list(&format!(r#"[{{"role":"assistant","reasoning_details":{details}}}]"#), PLAIN).unwrap();
            let expected = left.map_or_else(String::new, |left| format!(r#","reasoning_details":{left}"#));
            assert_eq!(sent, format!(r#"[{{"role":"assistant"{expected}}}]"#), "{details}");
        }
    }
}
