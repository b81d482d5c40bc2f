//! Thoughts that their provider must get back as they came: the `reasoning_details` of a message. Each entry that this gateway made of another
//! dialect's carries its `signer`, and goes to that provider alone. Entries without one were made by a provider that has this form itself.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::object;

/// One entry of the list. Its texts stay raw: what was signed goes back byte for byte.
#[derive(Debug, Deserialize)]
pub(super) struct Thought<'t> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'t, str>,
    /// The call that it belongs to, where it belongs to one.
    #[serde(borrow, default)]
    pub(super) id: Option<&'t RawValue>,
    #[serde(borrow, default)]
    pub(super) text: Option<&'t RawValue>,
    #[serde(borrow, default)]
    pub(super) signature: Option<&'t RawValue>,
    #[serde(borrow, default)]
    pub(super) data: Option<&'t RawValue>,
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    signer: Option<&'t RawValue>,
}

/// The entries of a message that this provider signed, in their order. What is no entry is none.
pub(super) fn signed_by<'t>(signer: &str, details: Option<&'t RawValue>) -> Vec<Thought<'t>> {
    let list: Vec<&RawValue> = details.and_then(|details| serde_json::from_str(details.get()).ok()).unwrap_or_default();
    let thoughts = list.into_iter().filter_map(|entry| serde_json::from_str::<Thought<'_>>(entry.get()).ok());
    thoughts.filter(|thought| thought.is_signed_by(signer)).collect()
}

impl Thought<'_> {
    fn is_signed_by(&self, signer: &str) -> bool {
        self.signer.and_then(object::as_str).is_some_and(|name| name == signer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn only_a_providers_own_entries_are_its_own() {
        let list = r#"[{"type":"reasoning.text","text":"T","signature":"S","signer":"aa","index":0},
            {"type":"reasoning.text","text":"other","signer":"bb"},{"type":"reasoning.text","text":"none"},7,
            {"type":"reasoning.encrypted","data":"R","signer":"\u0061a"}]"#;
        let own = signed_by("aa", Some(raw(list)));
        let seen: Vec<_> = own.iter().map(|thought| (thought.kind.as_ref(), thought.text.map(RawValue::get))).collect();
        assert_eq!(seen, [("reasoning.text", Some("\"T\"")), ("reasoning.encrypted", None)]);
        for nothing in [None, Some(raw("null")), Some(raw("{}")), Some(raw("[]"))] {
            assert!(signed_by("aa", nothing).is_empty());
        }
    }
}
