//! The contents of messages, as Anthropic's blocks: texts, pictures, documents. Texts of nothing but white space are left out, for the API
//! refuses them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::Unsupported;
use crate::wire::object::{self, as_str, push_quoted};

/// What a content comes from, and so what may stand in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// System and developer messages: texts only.
    System,
    /// Anything.
    User,
    /// A model's own words.
    Assistant,
}

/// Appends the blocks of a content to a list without its brackets. `cache` is the message's own `cache_control`, for its last block.
pub(super) fn blocks(content: Option<&RawValue>, of: Of, cache: Option<&RawValue>, out: &mut String) -> Result<(), Unsupported> {
    let Some(content) = content.filter(|content| content.get() != "null") else { return Ok(()) };
    if content.get().starts_with('"') {
        text(content, cache, out);
        return Ok(());
    }
    let list: Result<Vec<&RawValue>, _> = serde_json::from_str(content.get());
    let list = list.map_err(|_| unsupported("messages", "hold a content that is neither a string nor a list of parts"))?;
    let last = list.len().saturating_sub(1);
    for (at, part) in list.into_iter().enumerate() {
        block(part, of, cache.filter(|_| at == last), out)?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct Part<'p> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'p, str>,
    #[serde(borrow, default)]
    text: Option<&'p RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'p RawValue>,
    #[serde(borrow, default)]
    image_url: Option<&'p RawValue>,
    #[serde(borrow, default)]
    file: Option<File<'p>>,
    #[serde(borrow, default)]
    cache_control: Option<&'p RawValue>,
}

#[derive(Deserialize)]
struct File<'p> {
    #[serde(borrow, default)]
    file_data: Option<&'p RawValue>,
    #[serde(borrow, default)]
    filename: Option<&'p RawValue>,
}

#[derive(Deserialize)]
struct Url<'p> {
    #[serde(borrow)]
    url: &'p RawValue,
}

fn block(raw: &RawValue, of: Of, cache: Option<&RawValue>, out: &mut String) -> Result<(), Unsupported> {
    let part: Part<'_> =
        serde_json::from_str(raw.get()).map_err(|_| unsupported("messages", "hold a part of a content that is none"))?;
    let cache = part.cache_control.or(cache);
    match (&*part.kind, of) {
        ("text" | "input_text" | "output_text", _) => part.text.into_iter().for_each(|part| text(part, cache, out)),
        ("refusal", _) => part.refusal.into_iter().for_each(|part| text(part, cache, out)),
        // Thoughts go back as `reasoning_details`, which tell whose they are.
        ("thinking" | "redacted_thinking", _) => {}
        (_, Of::System) => return Err(unsupported("messages", "hold a system message with more than text in it")),
        ("image_url", _) => image(part.image_url, cache, out)?,
        ("file", _) => document(part.file, cache, out)?,
        ("input_audio", _) => return Err(unsupported("input_audio", "is sound, which this model's provider does not take")),
        // A block of the API's own, or one that is not known here: the provider judges it.
        _ => push(out, raw.get()),
    }
    Ok(())
}

fn image(raw: Option<&RawValue>, cache: Option<&RawValue>, out: &mut String) -> Result<(), Unsupported> {
    let is = |why| unsupported("image_url", why);
    let raw = raw.ok_or_else(|| is("is missing in a part of that type"))?;
    let address = serde_json::from_str::<Url<'_>>(raw.get()).map_or(raw, |image| image.url);
    let address = as_str(address).ok_or_else(|| is("must hold a `url`"))?;
    if let Some((media_type, data)) = inline(&address) {
        source(out, "image", "base64", &[("media_type", media_type), ("data", data)]);
    } else if address.starts_with("https://") || address.starts_with("http://") {
        source(out, "image", "url", &[("url", &address)]);
    } else {
        return Err(is("must be an `http` or `https` address, or a `data:` one in base64"));
    }
    close(cache, out);
    Ok(())
}

fn document(file: Option<File<'_>>, cache: Option<&RawValue>, out: &mut String) -> Result<(), Unsupported> {
    let data = file.as_ref().and_then(|file| file.file_data).and_then(as_str);
    let Some(data) = data else {
        return Err(unsupported("file_id", "names a file that this model's provider does not have: send it as `file_data`"));
    };
    match inline(&data) {
        Some(("application/pdf", data)) => {
            source(out, "document", "base64", &[("media_type", "application/pdf"), ("data", data)])
        }
        Some((media_type, data)) if media_type.starts_with("image/") => {
            source(out, "image", "base64", &[("media_type", media_type), ("data", data)]);
            close(cache, out);
            return Ok(());
        }
        None if !data.contains(':') => source(out, "document", "base64", &[("media_type", "application/pdf"), ("data", &data)]),
        _ => {
            return Err(unsupported(
                "file_data",
                "must be a PDF or a picture in base64: this model's provider takes no other file",
            ));
        }
    }
    if let Some(name) = file.and_then(|file| file.filename).filter(|name| name.get().len() > 2 && name.get().starts_with('"')) {
        out.push_str(r#","title":"#);
        out.push_str(name.get());
    }
    close(cache, out);
    Ok(())
}

/// The media type and the data of a `data:` address in base64.
fn inline(address: &str) -> Option<(&str, &str)> {
    let (head, data) = address.strip_prefix("data:")?.split_once(',')?;
    let head = head.strip_suffix(";base64")?;
    Some((head.split_once(';').map_or(head, |(media_type, _)| media_type), data))
}

/// Opens a block with a source.
fn source(out: &mut String, kind: &str, of: &str, members: &[(&str, &str)]) {
    push(out, r#"{"type":"#);
    push_quoted(out, kind);
    out.push_str(r#","source":{"type":"#);
    push_quoted(out, of);
    for (name, value) in members {
        out.push(',');
        push_quoted(out, name);
        out.push(':');
        push_quoted(out, value);
    }
    out.push('}');
}

/// A text as a block, unless it says nothing.
pub(super) fn text(raw: &RawValue, cache: Option<&RawValue>, out: &mut String) {
    if is_blank(raw) {
        return;
    }
    push(out, r#"{"type":"text","text":"#);
    out.push_str(raw.get());
    close(cache, out);
}

pub(super) fn close(cache: Option<&RawValue>, out: &mut String) {
    if let Some(cache) = cache.filter(|cache| cache.get() != "null") {
        out.push_str(r#","cache_control":"#);
        out.push_str(cache.get());
    }
    out.push('}');
}

/// Appends an item to a list without its brackets.
pub(super) fn push(out: &mut String, item: &str) {
    if !out.is_empty() {
        out.push(',');
    }
    out.push_str(item);
}

/// Whether it is no text, or one of white space only. A long text is not read to its end for that.
pub(super) fn is_blank(raw: &RawValue) -> bool {
    let Some(inner) = raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"')) else { return true };
    let plain = inner.trim_start();
    match plain.as_bytes() {
        [] => true,
        [b'\\', ..] => object::string(raw.get()).is_some_and(|text| text.trim().is_empty()),
        _ => false,
    }
}

pub(super) fn unsupported(field: &'static str, why: &str) -> Unsupported {
    Unsupported { field, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(content: &str, of: Of) -> Result<String, &'static str> {
        let mut out = String::new();
        let content: &RawValue = serde_json::from_str(content).unwrap();
        blocks(Some(content), of, None, &mut out).map(|()| out).map_err(|unsupported| unsupported.field)
    }

    #[test]
    fn contents_become_blocks() {
        let pdf = r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}"#;
        let table = [
            (r#""a\u0062""#, r#"{"type":"text","text":"a\u0062"}"#.to_owned()),
            (r#""""#, String::new()),
            (r#"" \n\t\u3000""#, String::new()),
            (r#""\n x""#, r#"{"type":"text","text":"\n x"}"#.to_owned()),
            ("null", String::new()),
            ("[]", String::new()),
            (r#"[{"type":"text","text":""},{"type":"text","text":"b"}]"#, r#"{"type":"text","text":"b"}"#.to_owned()),
            (
                r#"[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]"#,
                r#"{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}"#.to_owned(),
            ),
            (r#"[{"type":"refusal","refusal":"no"}]"#, r#"{"type":"text","text":"no"}"#.to_owned()),
            (
                r#"[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO","detail":"low"}}]"#,
                r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}"#.to_owned(),
            ),
            (
                r#"[{"type":"image_url","image_url":"https://x.test/a.png"}]"#,
                r#"{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}"#.to_owned(),
            ),
            (
                r#"[{"type":"file","file":{"file_data":"data:application/pdf;name=a;base64,JVBERi0=","filename":"a.pdf"}}]"#,
                format!(r#"{pdf},"title":"a.pdf"}}"#),
            ),
            (r#"[{"type":"file","file":{"file_data":"JVBERi0="}}]"#, format!("{pdf}}}")),
            (r#"[{"type":"document","source":{"x":1.10}}]"#, r#"{"type":"document","source":{"x":1.10}}"#.to_owned()),
            (r#"[{"type":"thinking","thinking":"T","signature":"S"}]"#, String::new()),
        ];
        for (content, expected) in table {
            assert_eq!(written(content, Of::User), Ok(expected), "{content}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_named() {
        let table = [
            (r#"[{"type":"input_audio","input_audio":{"data":"x"}}]"#, Of::User, "input_audio"),
            (r#"[{"type":"file","file":{"file_id":"file-1"}}]"#, Of::User, "file_id"),
            (r#"[{"type":"file","file":{"file_data":"data:text/csv;base64,YQ=="}}]"#, Of::User, "file_data"),
            (r#"[{"type":"image_url","image_url":{"url":"data:image/svg+xml,<svg>"}}]"#, Of::User, "image_url"),
            (r#"[{"type":"image_url","image_url":{"url":"file:///etc/hosts"}}]"#, Of::User, "image_url"),
            (r#"[{"type":"image_url"}]"#, Of::User, "image_url"),
            (r#"[{"type":"image_url","image_url":{"url":"https://x.test"}}]"#, Of::System, "messages"),
            ("7", Of::User, "messages"),
            ("[7]", Of::User, "messages"),
        ];
        for (content, of, field) in table {
            assert_eq!(written(content, of), Err(field), "{content}");
        }
    }
}
