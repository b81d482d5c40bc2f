//! The heads in a form: its own boundary, and what each field's head says of its name.

use super::{Malformed, of_body, of_model};

/// The longest boundary, by the standard.
const LONGEST_BOUNDARY: usize = 70;

const BAD_HEAD: Malformed = of_body("is a form with a field whose head cannot be read");

/// What a field's head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// The field is `model`.
    Model,
    /// It is another.
    Other,
}

/// The boundary that a form's media type names. `None`: it is not the media type of a form, or names none that can be one.
pub fn boundary(content_type: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(content_type).ok()?;
    let (kind, parameters) = text.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let mut boundaries =
        Parameters(parameters).filter(|parameter| !matches!(parameter, Ok((name, _)) if !name.eq_ignore_ascii_case("boundary")));
    let (_, boundary) = boundaries.next()?.ok()?;
    let fits = (1..=LONGEST_BOUNDARY).contains(&boundary.len()) && !boundary.ends_with(' ');
    let is_one = boundary.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !matches!(byte, b'"' | b'\\'));
    (fits && is_one && boundaries.next().is_none()).then_some(boundary)
}

impl Head {
    /// Reads the lines of a head, without the blank one at its end.
    pub(super) fn parse(head: &[u8]) -> Result<Self, Malformed> {
        let head = std::str::from_utf8(head).map_err(|_| BAD_HEAD)?;
        let (mut disposition, mut is_coded) = (None, false);
        for line in head.split("\r\n") {
            let (name, value) = field(line)?;
            if name.eq_ignore_ascii_case("content-disposition") && disposition.replace(value).is_some() {
                return Err(BAD_HEAD);
            }
            let coding = name.eq_ignore_ascii_case("content-transfer-encoding");
            is_coded |= coding && !["7bit", "8bit", "binary"].iter().any(|plain| value.trim().eq_ignore_ascii_case(plain));
        }
        let (name, is_file) = named(disposition.ok_or(BAD_HEAD)?)?;
        if seen_by_the_careless(head) != usize::from(name == "model") {
            return Err(BAD_HEAD);
        }
        match name {
            "model" if is_file || is_coded => Err(of_model("must be a plain field of the form")),
            "model" => Ok(Self::Model),
            _ => Ok(Self::Other),
        }
    }
}

/// How often a reader that knows nothing of quotes and headers would find the name `model`.
fn seen_by_the_careless(head: &str) -> usize {
    let head = head.to_ascii_lowercase();
    ["name=\"model\"", "name=model"].into_iter().map(|name| head.matches(name).count()).sum()
}

/// A header's name and value. What continues the line before is none, and neither is what holds a line end of another kind.
fn field(line: &str) -> Result<(&str, &str), Malformed> {
    let (name, value) = line.split_once(':').ok_or(BAD_HEAD)?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_value = value.bytes().all(|byte| byte >= b' ' || byte == b'\t');
    if is_name && is_value { Ok((name, value)) } else { Err(BAD_HEAD) }
}

/// The name that a disposition gives its field, and whether it is a file.
fn named(disposition: &str) -> Result<(&str, bool), Malformed> {
    let (kind, parameters) = disposition.split_once(';').ok_or(BAD_HEAD)?;
    if !kind.trim().eq_ignore_ascii_case("form-data") {
        return Err(BAD_HEAD);
    }
    let (mut name, mut is_file) = (None, false);
    for parameter in Parameters(parameters) {
        let (key, value) = parameter.map_err(|NoParameter| BAD_HEAD)?;
        match key {
            _ if key.eq_ignore_ascii_case("name") && (value.contains('\\') || name.replace(value).is_some()) => {
                return Err(BAD_HEAD);
            }
            _ if key.eq_ignore_ascii_case("name*") => return Err(BAD_HEAD),
            _ => is_file |= ["filename", "filename*"].iter().any(|file| key.eq_ignore_ascii_case(file)),
        }
    }
    Ok((name.ok_or(BAD_HEAD)?, is_file))
}

/// `name=value` and `name="value"`, with `;` between them. A value in quotes keeps its escapes.
struct Parameters<'p>(&'p str);

struct NoParameter;

impl<'p> Iterator for Parameters<'p> {
    type Item = Result<(&'p str, &'p str), NoParameter>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0 = self.0.trim_start();
        if self.0.is_empty() {
            return None;
        }
        let read = self.parameter();
        if read.is_none() {
            self.0 = "";
        }
        Some(read.ok_or(NoParameter))
    }
}

impl<'p> Parameters<'p> {
    fn parameter(&mut self) -> Option<(&'p str, &'p str)> {
        let (name, rest) = self.0.split_once('=')?;
        let name = name.trim_end();
        let (value, rest) = match rest.trim_start().strip_prefix('"') {
            Some(quoted) => {
                let end = end_of_quoted(quoted)?;
                (&quoted[..end], &quoted[end + 1..])
            }
            None => {
                let end = rest.find(';').unwrap_or(rest.len());
                (rest[..end].trim(), &rest[end..])
            }
        };
        let rest = rest.trim_start();
        self.0 = if rest.is_empty() { rest } else { rest.strip_prefix(';')? };
        let is_name = !name.is_empty() && !name.bytes().any(|byte| matches!(byte, b'"' | b';' | b' ' | b'\\'));
        is_name.then_some((name, value))
    }
}

/// Where the quotes close.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}
