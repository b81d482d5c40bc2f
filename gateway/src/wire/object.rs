//! JSON objects that are changed without being rebuilt: members are raw text, and what is not named stays as it was, digit for digit.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::BytesMut;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object in their order, keys and values as they were written.
pub struct Members<'a>(pub Vec<(&'a RawValue, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads one level of an object.
    ///
    /// # Errors
    /// Not JSON, or not an object.
    pub fn parse(text: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text)
    }

    /// The value of a member.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(name, _)| key_is(name, key)).map(|(_, value)| *value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(12);
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Whether a raw key, quotes and escapes included, spells this name.
pub fn key_is(raw: &RawValue, name: &str) -> bool {
    spells(raw.get().as_bytes(), name)
}

/// The same of a raw key's bytes.
pub fn spells(key: &[u8], name: &str) -> bool {
    let inner = &key[1..key.len() - 1];
    if inner.contains(&b'\\') {
        serde_json::from_slice::<String>(key).is_ok_and(|key| key == name)
    } else {
        inner == name.as_bytes()
    }
}

/// Which of these names a raw key is but for the size of its letters: some providers do not tell them apart.
pub fn alike(key: &str, names: &[&'static str]) -> Option<&'static str> {
    let key = string(key)?;
    names.iter().copied().find(|name| key.len() == name.len() && key.eq_ignore_ascii_case(name))
}

/// The text of a raw value, where it is a string.
pub fn as_str(raw: &RawValue) -> Option<Cow<'_, str>> {
    string(raw.get())
}

/// The same of a value's text.
pub fn string(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str::<String>(text).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// Whether an answer's `object` says that it is an error: so do Mistral and vLLM, where others have a member of that name.
pub fn is_error(object: &RawValue) -> bool {
    object.get() == "\"error\""
}

/// For members whose `null` is something else than their absence: plain `Option` takes the two for one.
///
/// # Errors
/// Not JSON.
pub fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Text as a JSON string, quotes included.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(&mut out, text);
    out
}

/// Appends text as a JSON string, quotes included. Names and most sentences need no escapes, and are only copied.
pub fn push_quoted(out: &mut String, text: &str) {
    if text.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        out.push_str(&serde_json::Value::from(text).to_string());
    } else {
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
}

/// What happens to one member.
pub enum Edit<'e> {
    /// Its value becomes this JSON text; a member that is not there is put at the end.
    Set(&'e str, &'e str),
    /// It goes.
    Remove(&'e str),
}

/// The object with some members changed and all others as they were.
///
/// # Errors
/// Not JSON, or not an object.
pub fn edited(object: &[u8], edits: &[Edit<'_>]) -> serde_json::Result<String> {
    let members = Members::parse(object)?;
    let mut out = String::with_capacity(object.len() + 64);
    out.push('{');
    for (key, value) in &members.0 {
        let edit = edits.iter().find(|edit| match edit {
            Edit::Set(name, _) | Edit::Remove(name) => key_is(key, name),
        });
        match edit {
            None => member(&mut out, key.get(), value.get()),
            Some(Edit::Set(_, new)) => member(&mut out, key.get(), new),
            Some(Edit::Remove(_)) => {}
        }
    }
    for edit in edits {
        if let Edit::Set(name, new) = edit
            && members.get(name).is_none()
        {
            member(&mut out, &quoted(name), new);
        }
    }
    out.push('}');
    Ok(out)
}

fn member(out: &mut String, key: &str, value: &str) {
    if out.len() > 1 {
        out.push(',');
    }
    out.push_str(key);
    out.push(':');
    out.push_str(value);
}

/// Where `part` stands in `whole`, of which it is a slice.
pub fn range_of(whole: &[u8], part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    debug_assert!(start + part.len() <= whole.len(), "a part of another whole");
    start..start + part.len()
}

/// Where a value stands in `whole`, of which it is a slice. One that is missing or `null` stands nowhere.
pub fn place(whole: &[u8], value: Option<&RawValue>) -> Option<Range<usize>> {
    value.filter(|value| value.get() != "null").map(|value| range_of(whole, value.get()))
}

/// The text at a place.
pub fn text_at<'w>(whole: &'w [u8], place: Option<&Range<usize>>) -> Option<&'w str> {
    std::str::from_utf8(&whole[place?.clone()]).ok()
}

/// The place of a whole member, its key and one comma included, from the place of its value: what must go for the member to be gone.
pub fn member_around(whole: &[u8], value: Range<usize>) -> Range<usize> {
    let back = |mut at: usize, stop: fn(u8) -> bool| {
        while at > 0 && !stop(whole[at - 1]) {
            at -= 1;
        }
        at
    };
    let solid = |byte: u8| !byte.is_ascii_whitespace();
    let colon = back(value.start, |byte| byte == b':').saturating_sub(1);
    let key_end = back(colon, solid).saturating_sub(1);
    let key = back(key_end, |byte| byte == b'"').saturating_sub(1);
    let before = back(key, solid);
    if before > 0 && whole[before - 1] == b',' {
        return before - 1..value.end;
    }
    let mut end = value.end;
    while end < whole.len() && whole[end].is_ascii_whitespace() {
        end += 1;
    }
    if whole.get(end) == Some(&b',') { key..end + 1 } else { key..value.end }
}

/// Replacements in a text, in the order of their places.
#[derive(Default)]
pub struct Patches<'p>(smallvec::SmallVec<[(Range<usize>, Cow<'p, str>); 4]>);

impl<'p> Patches<'p> {
    /// Puts `text` in the place of a range. Ranges must not overlap.
    pub fn replace(&mut self, range: Range<usize>, text: impl Into<Cow<'p, str>>) {
        self.0.push((range, text.into()));
    }

    /// Gives the object `whole` the model's name, a JSON string, in the place that it has for that, or as its first member. `gone`: a member
    /// that is taken away, as [`member_around`] tells it.
    pub fn name_model(&mut self, whole: &[u8], place: Option<&Range<usize>>, name: &'p str, gone: Option<&Range<usize>>) {
        match place {
            Some(place) if whole[place.clone()] == *name.as_bytes() => {}
            Some(place) => self.replace(place.clone(), name),
            None => {
                let inside = whole.iter().position(|&byte| byte == b'{').map_or(0, |brace| brace + 1);
                let comma = if is_alone(whole, inside, gone) { "" } else { "," };
                self.replace(inside..inside, format!("\"model\":{name}{comma}"));
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes `whole` with the replacements made.
    pub fn apply(mut self, whole: &[u8], out: &mut BytesMut) {
        self.0.sort_by_key(|(range, _)| range.start);
        let mut at = 0;
        for (range, text) in &self.0 {
            out.extend_from_slice(&whole[at..range.start]);
            out.extend_from_slice(text.as_bytes());
            at = range.end;
        }
        out.extend_from_slice(&whole[at..]);
    }
}

/// Whether nothing follows in the object whose inside begins there, once a member is gone.
fn is_alone(whole: &[u8], inside: usize, gone: Option<&Range<usize>>) -> bool {
    let blanks = |at: usize| whole[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let mut at = inside + blanks(inside);
    if let Some(gone) = gone.filter(|gone| gone.start == at) {
        at = gone.end + blanks(gone.end);
    }
    whole.get(at) == Some(&b'}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_leave_the_other_members_as_they_were_written() {
        let table: [(&str, &[Edit<'_>], &str); 5] = [
            (r#"{"a": 1.10, "b":2}"#, &[Edit::Set("b", "3")], r#"{"a":1.10,"b":3}"#),
            (r#"{"a":1e400,"b":2}"#, &[Edit::Remove("b")], r#"{"a":1e400}"#),
            (r#"{"a":1}"#, &[Edit::Set("c", "\"x\"")], r#"{"a":1,"c":"x"}"#),
            (r#"{"\u0061":1}"#, &[Edit::Set("a", "2")], r#"{"\u0061":2}"#),
            ("{}", &[Edit::Set("a", "1"), Edit::Remove("b")], r#"{"a":1}"#),
        ];
        for (object, edits, expected) in table {
            assert_eq!(edited(object.as_bytes(), edits).unwrap(), expected);
        }
    }

    #[test]
    fn a_member_goes_with_its_key_and_one_comma() {
        let table = [
            (r#"{"a":1,"usage":null}"#, r#"{"a":1}"#),
            (r#"{"usage" : null , "a":1}"#, r#"{ "a":1}"#),
            (r#"{"usage":null}"#, "{}"),
            (r#"{"a":{"b":2} , "usage":  null,"c":3}"#, r#"{"a":{"b":2} ,"c":3}"#),
        ];
        for (object, expected) in table {
            let members = Members::parse(object.as_bytes()).unwrap();
            let value = range_of(object.as_bytes(), members.get("usage").unwrap().get());
            let mut patches = Patches::default();
            patches.replace(member_around(object.as_bytes(), value), "");
            let mut out = BytesMut::new();
            patches.apply(object.as_bytes(), &mut out);
            assert_eq!(out, expected, "{object}");
        }
    }
}
