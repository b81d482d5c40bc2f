//! The thoughts of one round that its provider must get back: the entries of `reasoning_details`, out of the pieces in which they come. Who gets
//! them back is not decided here.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::object::{self, Edit};

/// Entries while they come in.
#[derive(Debug, Default)]
pub struct Thoughts {
    entries: Vec<Entry>,
    /// What was thought aloud: the inside of a JSON string.
    aloud: String,
    bytes: usize,
}

/// An entry as its first piece was, and what later ones added.
#[derive(Debug)]
struct Entry {
    raw: String,
    /// What kind of entry it is and which one; only where more of it may come.
    open: Option<(String, u64)>,
    /// The inside of its text's JSON string, where pieces added to it: by the name of the member.
    added: Option<(&'static str, String)>,
    /// A signature that came later, raw.
    signature: Option<String>,
}

/// A piece, which may be a whole entry.
#[derive(Deserialize)]
struct Piece<'p> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'p, str>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    text: Option<&'p RawValue>,
    #[serde(borrow, default)]
    summary: Option<&'p RawValue>,
    #[serde(borrow, default)]
    signature: Option<&'p RawValue>,
    #[serde(borrow, default)]
    signer: Option<&'p RawValue>,
}

impl Thoughts {
    /// Takes a raw list of entries. What is no list, or no entry, adds nothing.
    pub fn add(&mut self, list: &str) {
        let pieces: Vec<&RawValue> = serde_json::from_str(list).unwrap_or_default();
        for raw in pieces {
            let Ok(piece) = serde_json::from_str::<Piece<'_>>(raw.get()) else { continue };
            self.bytes += raw.get().len();
            match self.entries.last_mut().filter(|entry| entry.goes_on_with(&piece)) {
                Some(entry) => entry.take(&piece),
                None => self.entries.push(Entry::new(raw.get(), &piece)),
            }
        }
    }

    /// Takes a piece of what the model thinks aloud: a raw JSON string. Anything else adds nothing.
    pub fn add_aloud(&mut self, text: &str) {
        self.aloud.push_str(text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default());
    }

    /// What was thought aloud, as a raw JSON string. `None`: nothing.
    pub fn aloud(&self) -> Option<String> {
        (!self.aloud.is_empty()).then(|| format!("\"{}\"", self.aloud))
    }

    /// How much is kept, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes + self.aloud.len() + self.entries.len() * size_of::<Entry>()
    }

    /// The list as JSON. `None`: there are none.
    pub fn finish(self) -> Option<String> {
        if self.entries.is_empty() {
            return None;
        }
        let entries: Vec<String> = self.entries.into_iter().map(Entry::finish).collect();
        Some(format!("[{}]", entries.join(",")))
    }
}

impl Entry {
    fn new(raw: &str, piece: &Piece<'_>) -> Self {
        // What this gateway signed is whole, and what is encrypted has no pieces.
        let may_go_on = piece.signer.is_none() && (piece.text.is_some() || piece.summary.is_some());
        let open = piece.index.filter(|_| may_go_on).map(|index| (piece.kind.clone().into_owned(), index));
        Self { raw: raw.to_owned(), open, added: None, signature: None }
    }

    fn goes_on_with(&self, piece: &Piece<'_>) -> bool {
        let is_same = |(kind, index): &(String, u64)| *kind == piece.kind && piece.index == Some(*index);
        piece.signer.is_none() && self.open.as_ref().is_some_and(is_same)
    }

    fn take(&mut self, piece: &Piece<'_>) {
        let (name, more) = if piece.summary.is_some() { ("summary", piece.summary) } else { ("text", piece.text) };
        if let Some(more) = more.and_then(inner) {
            let first = || object::Members::parse(self.raw.as_bytes()).ok()?.get(name).and_then(inner).map(str::to_owned);
            let (_, text) = self.added.get_or_insert_with(|| (name, first().unwrap_or_default()));
            text.push_str(more);
        }
        if let Some(signature) = piece.signature.filter(|signature| inner(signature).is_some_and(|text| !text.is_empty())) {
            self.signature = Some(signature.get().to_owned());
        }
    }

    fn finish(self) -> String {
        let text = self.added.map(|(name, inner)| (name, format!("\"{inner}\"")));
        let mut edits = Vec::with_capacity(2);
        edits.extend(text.as_ref().map(|(name, text)| Edit::Set(name, text)));
        edits.extend(self.signature.as_ref().map(|signature| Edit::Set("signature", signature)));
        if edits.is_empty() {
            return self.raw;
        }
        object::edited(self.raw.as_bytes(), &edits).unwrap_or(self.raw)
    }
}

fn inner(raw: &RawValue) -> Option<&str> {
    raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_entry_become_one_and_whole_ones_stay_as_they_were() {
        let text = |index: u64, text: &str| format!(r#"[{{"type":"reasoning.text","text":"{text}","index":{index},"x":1.10}}]"#);
        let whole = r#"{"type":"reasoning.text","text":"T","signature":"S","index":0,"signer":"aa"}"#;
        let hidden = r#"{"type":"reasoning.encrypted","data":"R","index":0}"#;
        let table: [(&[String], Option<String>); 7] = [
            (&[], None),
            (&["7".to_owned(), "[7]".to_owned(), "[]".to_owned()], None),
            (&[text(0, r"a\n"), text(0, "b")], Some(text(0, r"a\nb"))),
            (&[text(0, "a"), text(1, "b")], Some(text(0, "a").replace(']', ",") + &text(1, "b")[1..])),
            (
                &[text(0, "a"), r#"[{"type":"reasoning.text","signature":"S","index":0}]"#.to_owned()],
                Some(r#"[{"type":"reasoning.text","text":"a","index":0,"x":1.10,"signature":"S"}]"#.to_owned()),
            ),
            (&[format!("[{whole}]"), format!("[{whole}]")], Some(format!("[{whole},{whole}]"))),
            (&[format!("[{hidden}]"), format!("[{hidden}]")], Some(format!("[{hidden},{hidden}]"))),
        ];
        for (lists, expected) in table {
            let mut thoughts = Thoughts::default();
            lists.iter().for_each(|list| thoughts.add(list));
            assert_eq!(thoughts.finish(), expected, "{lists:?}");
        }
    }
}
