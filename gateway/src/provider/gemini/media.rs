//! Pictures, files and sound as parts of a content: in the request itself, or where the model can fetch them.

use toolgate_tools::media::Media;

use super::super::Unsupported;
use super::super::canon::{Part, data_url, text, unreadable};
use super::model::Model;
use crate::wire::object::push_quoted;

/// The types of pictures and sound that the API takes.
const TAKEN: [&str; 18] = [
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "image/gif",
    "application/pdf",
    "audio/wav",
    "audio/x-wav",
    "audio/mp3",
    "audio/mpeg",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
    "audio/aiff",
    "video/mp4",
    "video/webm",
    "video/quicktime",
];

/// Addresses that every model reads: the API's own files, and YouTube.
const READ_BY_ALL: [&str; 5] = [
    "https://generativelanguage.googleapis.com/",
    "https://www.youtube.com/",
    "https://youtube.com/",
    "https://youtu.be/",
    "gs://",
];

/// Writes a part as the API has it.
///
/// # Errors
/// It cannot be sent to this model.
pub(super) fn write(part: &Part<'_>, model: &Model<'_>, out: &mut String) -> Result<(), Unsupported> {
    match part {
        Part::Text(raw) => {
            out.push_str(r#"{"text":"#);
            out.push_str(raw.get());
            out.push('}');
            Ok(())
        }
        Part::Image(url) if url.starts_with("data:") => inline_url(url, out),
        Part::Image(url) => by_address(url, model, out),
        Part::File(url) if url.starts_with("data:") => inline_url(url, out),
        Part::File(url) if url.contains("://") => by_address(url, model, out),
        Part::File(_) => Err(unreadable("hold a file whose `file_data` is no `data:` URL in base64")),
        Part::Audio(data, format) if matches!(&**format, "wav" | "mp3") => {
            inline(&format!("audio/{format}"), data, out);
            Ok(())
        }
        Part::Audio(_, format) => {
            Err(unreadable(&format!("hold sound in the format `{format}`; this provider takes `wav` and `mp3`")))
        }
    }
}

/// Whether a tool's result may hold this.
pub(in super::super) fn takes(media: &Media) -> bool {
    TAKEN.contains(&media.kind()) && media.bytes() <= LARGEST
}

/// The largest thing that goes into a request, which may have 20 MB altogether, in bytes.
const LARGEST: usize = 7 * 1024 * 1024;

/// Whether a part is something else than text.
pub(super) fn is_media(part: &Part<'_>) -> bool {
    !matches!(part, Part::Text(_))
}

/// The text of a part, unescaped.
pub(super) fn said(part: &Part<'_>) -> Option<String> {
    match part {
        Part::Text(raw) => Some(text(Some(raw)).into_owned()),
        _ => None,
    }
}

fn inline_url(url: &str, out: &mut String) -> Result<(), Unsupported> {
    let (kind, data) = data_url(url).ok_or_else(|| unreadable("hold a `data:` URL that is not in base64"))?;
    let kind = if kind.eq_ignore_ascii_case("image/jpg") { "image/jpeg" } else { kind };
    // Whatever is text is taken as text.
    if !kind.starts_with("text/") && !TAKEN.iter().any(|taken| taken.eq_ignore_ascii_case(kind)) {
        return Err(unreadable(&format!("hold data of type `{kind}`, which this provider does not take")));
    }
    inline(kind, data, out);
    Ok(())
}

fn inline(kind: &str, data: &str, out: &mut String) {
    out.push_str(r#"{"inlineData":{"mimeType":"#);
    push_quoted(out, kind);
    out.push_str(r#","data":"#);
    push_quoted(out, data);
    out.push_str("}}");
}

fn by_address(url: &str, model: &Model<'_>, out: &mut String) -> Result<(), Unsupported> {
    let is_read = READ_BY_ALL.iter().any(|start| url.starts_with(start)) || (model.fetches() && url.starts_with("https://"));
    if !is_read {
        return Err(unreadable(
            "hold a picture or file by its address, which this model does not fetch: send it as a `data:` URL",
        ));
    }
    out.push_str(r#"{"fileData":{"#);
    if let Some(kind) = kind_of(url) {
        out.push_str(&format!(r#""mimeType":"{kind}","#));
    }
    out.push_str(r#""fileUri":"#);
    push_quoted(out, url);
    out.push_str("}}");
    Ok(())
}

/// The type that an address's ending stands for.
fn kind_of(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let ending = path.rsplit('/').next()?.rsplit_once('.')?.1.to_ascii_lowercase();
    Some(match &*ending {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "pdf" => "application/pdf",
        "mp4" => "video/mp4",
        "mp3" => "audio/mp3",
        "wav" => "audio/wav",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_go_as_the_model_takes_them() {
        let png = r#"{"inlineData":{"mimeType":"image/png","data":"AAAA"}}"#;
        let table = [
            (Part::Image("data:image/png;base64,AAAA".into()), "gemini-2.5-flash", Some(png)),
            (Part::Image("data:image/bmp;base64,AAAA".into()), "gemini-2.5-flash", None),
            (Part::Image("data:image/png,AAAA".into()), "gemini-2.5-flash", None),
            (
                Part::Image("data:image/jpg;base64,AA".into()),
                "gemini-3-pro",
                Some(r#"{"inlineData":{"mimeType":"image/jpeg","data":"AA"}}"#),
            ),
            (
                Part::Image("https://a.test/b.png?x=1".into()),
                "gemini-2.5-flash",
                Some(r#"{"fileData":{"mimeType":"image/png","fileUri":"https://a.test/b.png?x=1"}}"#),
            ),
            (Part::Image("https://a.test/b.png".into()), "gemini-2.0-flash", None),
            (Part::Image("http://a.test/b.png".into()), "gemini-2.5-flash", None),
            (
                Part::File("https://youtu.be/x".into()),
                "gemini-2.0-flash",
                Some(r#"{"fileData":{"fileUri":"https://youtu.be/x"}}"#),
            ),
            (
                Part::Audio("UklG".into(), "wav".into()),
                "gemini-2.0-flash",
                Some(r#"{"inlineData":{"mimeType":"audio/wav","data":"UklG"}}"#),
            ),
            (Part::Audio("UklG".into(), "opus".into()), "gemini-2.0-flash", None),
            (Part::File("JVBE".into()), "gemini-2.0-flash", None),
            (
                Part::File("data:application/pdf;base64,JVBE".into()),
                "gemini-2.0-flash",
                Some(r#"{"inlineData":{"mimeType":"application/pdf","data":"JVBE"}}"#),
            ),
        ];
        for (part, model, expected) in table {
            let mut out = String::new();
            let written = write(&part, &Model::of(model).unwrap(), &mut out);
            assert_eq!(written.map(|()| out.as_str()).ok(), expected, "{part:?} to {model}");
        }
    }
}
