//! Claude's thoughts as entries of `reasoning_details`. What was signed is copied as it was escaped.

use super::THOUGHTS;

/// A thought that may be read: its text and its signature as JSON strings, and where its block stood.
pub(super) fn said(text: &str, signature: &str, index: u64, signer: &str) -> String {
    format!(
        r#"{{"type":"reasoning.text","text":{text},"signature":{signature},"format":"{THOUGHTS}","index":{index},"signer":"{signer}"}}"#
    )
}

/// One that may not: its data as a JSON string.
pub(super) fn hidden(data: &str, index: u64, signer: &str) -> String {
    format!(r#"{{"type":"reasoning.encrypted","data":{data},"format":"{THOUGHTS}","index":{index},"signer":"{signer}"}}"#)
}
