//! The texts of an answer that a model wrote token by token: what it says, what it thinks aloud, what it will not say, and the call of old.
//! Calls of tools are read by [`super::call`].

use serde::Deserialize;
use serde_json::value::RawValue;

/// The members of a message, or of a delta, that hold such texts.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Texts<'t> {
    #[serde(borrow, default)]
    pub(super) content: Option<&'t RawValue>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<&'t RawValue>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<&'t RawValue>,
    #[serde(borrow, default)]
    pub(super) reasoning: Option<&'t RawValue>,
    #[serde(borrow, default)]
    pub(super) function_call: Option<&'t RawValue>,
}

impl Texts<'_> {
    /// Gives the inside of each JSON string to `said`.
    pub(super) fn each(&self, said: &mut impl FnMut(&str)) {
        // Those who send thoughts under both names send the same ones.
        let thoughts = self.reasoning_content.filter(|thoughts| thoughts.get() != "null").or(self.reasoning);
        for text in [self.content, self.refusal, thoughts].into_iter().flatten() {
            each_of(text, said);
        }
        if let Some(call) = self.function_call.and_then(|call| serde_json::from_str::<Function<'_>>(call.get()).ok()) {
            [call.name, call.arguments].into_iter().flatten().for_each(|text| each_of(text, said));
        }
    }
}

/// A string, or the texts in a list of parts.
fn each_of(raw: &RawValue, said: &mut impl FnMut(&str)) {
    if let Some(inner) = raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return said(inner);
    }
    if raw.get().starts_with('[') {
        let parts: Vec<Part<'_>> = serde_json::from_str(raw.get()).unwrap_or_default();
        parts.iter().filter_map(|part| part.text).for_each(|text| each_of(text, said));
    }
}

#[derive(Deserialize)]
struct Part<'p> {
    #[serde(borrow, default)]
    text: Option<&'p RawValue>,
}

#[derive(Deserialize)]
struct Function<'f> {
    #[serde(borrow, default)]
    name: Option<&'f RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'f RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_given_once() {
        let table: [(&str, &[&str]); 8] = [
            (r#"{"role":"assistant","content":"a\n"}"#, &[r"a\n"]),
            (r#"{"content":null,"refusal":null,"reasoning":null}"#, &[]),
            (r#"{"content":"a","refusal":"no","reasoning_content":"hm"}"#, &["a", "no", "hm"]),
            (r#"{"reasoning_content":"hm","reasoning":"hm"}"#, &["hm"]),
            (r#"{"reasoning_content":null,"reasoning":"hm"}"#, &["hm"]),
            (r#"{"content":[{"type":"text","text":"a"},{"type":"thinking"},{"text":"b"}]}"#, &["a", "b"]),
            (r#"{"function_call":{"name":"f","arguments":"{}"}}"#, &["f", "{}"]),
            (r#"{"content":{"odd":1},"function_call":null}"#, &[]),
        ];
        for (message, expected) in table {
            let mut seen = Vec::new();
            serde_json::from_str::<Texts<'_>>(message).unwrap().each(&mut |text| seen.push(text.to_owned()));
            assert_eq!(seen, expected, "{message}");
        }
    }
}
