//! A form with files (`multipart/form-data`) as it comes: which of its bytes are the value of the field `model`, and nothing else of it. All
//! other bytes go on as they came, so a form of any length takes a few kilobytes here.
//!
//! The field decides what a caller may do and what it costs, and its provider reads the same bytes with a reader of its own. So a form that two
//! readers could take for two different things is refused, however harmless: a boundary anywhere but behind a CR LF, headers on several lines,
//! `model` twice. Clients make their boundaries of random letters, so none of that is ever sent by one.

mod head;

use bytes::{Bytes, BytesMut};
use memchr::memmem::Finder;

use self::head::Head;
pub use self::head::boundary;

/// The longest name of a model, in bytes.
const LONGEST_MODEL: usize = 256;

/// The longest head of a field, in bytes.
const LONGEST_HEAD: usize = 8 * 1024;

/// The most that may follow a boundary on its line, in bytes.
const LONGEST_PADDING: usize = 64;

/// A part of the form, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes that are not interpreted.
    Bytes(Bytes),
    /// The value of `model`.
    Model(String),
}

/// Why a form is refused: the rest of a sentence that begins with the name of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str, pub &'static str);

const fn of_body(why: &'static str) -> Malformed {
    Malformed("body", why)
}

const fn of_model(why: &'static str) -> Malformed {
    Malformed("model", why)
}

const CUT: Malformed = of_body("is a form that ends before its last boundary");
const AMBIGUOUS: Malformed = of_body("is a form with a boundary where none can be");

/// Reads a form as it comes.
#[derive(Debug)]
pub struct Form {
    /// What stands for a boundary wherever it stands, and begins its line where it may stand.
    delimiter: Finder<'static>,
    state: State,
    /// Bytes that cannot be told yet from the beginning of a boundary.
    carry: Bytes,
    has_model: bool,
}

#[derive(Debug)]
enum State {
    /// Before the first boundary.
    Beginning,
    /// Behind a boundary, on its line.
    Boundary,
    Head,
    /// A field that is not interpreted.
    Field,
    /// The field `model`; its bytes so far.
    Model(BytesMut),
    /// Behind the last boundary.
    Epilogue,
}

/// Whether more can be read from what is there.
enum Step {
    Again,
    Wait,
}

impl Form {
    /// One with this boundary.
    pub fn new(boundary: &str) -> Self {
        Self {
            delimiter: Finder::new(format!("--{boundary}").as_bytes()).into_owned(),
            state: State::Beginning,
            carry: Bytes::new(),
            has_model: false,
        }
    }

    /// Takes the next bytes of the form.
    ///
    /// # Errors
    /// [`Malformed`]; then nothing more can be read.
    pub fn feed(&mut self, bytes: Bytes, out: &mut impl FnMut(Piece)) -> Result<(), Malformed> {
        let mut rest = if self.carry.is_empty() { bytes } else { joined(&std::mem::take(&mut self.carry), &bytes) };
        while matches!(self.step(&mut rest, out)?, Step::Again) {}
        self.carry = rest;
        Ok(())
    }

    /// The form is over.
    ///
    /// # Errors
    /// It was not whole, or has no `model`.
    pub fn end(&self) -> Result<(), Malformed> {
        match self.state {
            State::Epilogue if self.has_model => Ok(()),
            State::Epilogue => Err(of_model("is required: the name of a model")),
            _ => Err(CUT),
        }
    }

    fn step(&mut self, rest: &mut Bytes, out: &mut impl FnMut(Piece)) -> Result<Step, Malformed> {
        match &mut self.state {
            State::Beginning => self.begin(rest, out),
            State::Field => self.content(rest, out),
            State::Boundary => self.boundary(rest, out),
            State::Head => self.head(rest, out),
            State::Model(_) => self.model(rest, out),
            State::Epilogue => epilogue(rest, out),
        }
    }

    /// Before the first boundary there may be line ends; a text there could be a form to somebody.
    fn begin(&mut self, rest: &mut Bytes, out: &mut impl FnMut(Piece)) -> Result<Step, Malformed> {
        let line = self.delimiter.needle();
        if rest.starts_with(b"\r\n") {
            give(rest.split_to(2), out);
        } else if rest.starts_with(line) {
            self.state = State::Boundary;
        } else if line.starts_with(rest) || b"\r\n".starts_with(rest) {
            return Ok(Step::Wait);
        } else {
            return Err(of_body("is a form that does not begin with its boundary"));
        }
        Ok(Step::Again)
    }

    fn content(&mut self, rest: &mut Bytes, out: &mut impl FnMut(Piece)) -> Result<Step, Malformed> {
        let found = self.find_end(rest)?;
        let content = rest.split_to(found.unwrap_or_else(|| self.safe(rest)));
        give(content, out);
        self.ended(found)
    }

    fn ended(&mut self, found: Option<usize>) -> Result<Step, Malformed> {
        if found.is_none() {
            return Ok(Step::Wait);
        }
        self.state = State::Boundary;
        Ok(Step::Again)
    }

    /// Where the content ends: before the line end that belongs to its boundary.
    fn find_end(&self, rest: &Bytes) -> Result<Option<usize>, Malformed> {
        match self.delimiter.find(rest) {
            None => Ok(None),
            Some(at) if rest[..at].ends_with(b"\r\n") => Ok(Some(at - 2)),
            Some(_) => Err(AMBIGUOUS),
        }
    }

    /// How much from the beginning can be told apart from a boundary, and from the line end before one.
    fn safe(&self, rest: &[u8]) -> usize {
        let needle = self.delimiter.needle();
        let longest = rest.len().min(needle.len() - 1);
        let tail = (1..=longest).rev().find(|length| rest.ends_with(&needle[..*length])).unwrap_or(0);
        let line_end = match &rest[..rest.len() - tail] {
            [.., b'\r', b'\n'] => 2,
            [.., b'\r'] if tail == 0 => 1,
            _ => 0,
        };
        rest.len() - tail - line_end
    }

    /// Behind a boundary: the end of the form, or the head of a field.
    fn boundary(&mut self, rest: &mut Bytes, out: &mut impl FnMut(Piece)) -> Result<Step, Malformed> {
        let line = self.delimiter.needle();
        let start = if rest.starts_with(b"\r\n") { 2 } else { 0 } + line.len();
        let behind = rest.get(start..).unwrap_or_default();
        let padding = behind.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let behind = &behind[padding..];
        if padding > LONGEST_PADDING {
            return Err(AMBIGUOUS);
        }
        if behind.len() < 2 {
            return Ok(Step::Wait);
        }
        let (length, state) = match &behind[..2] {
            b"--" if padding == 0 => (start + 2, State::Epilogue),
            b"\r\n" => (start + padding + 2, State::Head),
            _ => return Err(AMBIGUOUS),
        };
        self.state = state;
        give(rest.split_to(length), out);
        Ok(Step::Again)
    }

    fn head(&mut self, rest: &mut Bytes, out: &mut impl FnMut(Piece)) -> Result<Step, Malformed> {
        let too_long = of_body("is a form with a field whose head is too long");
        let Some(end) = memchr::memmem::find(rest, b"\r\n\r\n") else {
            return if rest.len() > LONGEST_HEAD { Err(too_long) } else { Ok(Step::Wait) };
        };
        if end > LONGEST_HEAD {
            return Err(too_long);
        }
        if self.delimiter.find(&rest[..end]).is_some() {
            return Err(AMBIGUOUS);
        }
        self.state = match Head::parse(&rest[..end])? {
            Head::Model if self.has_model => return Err(of_model("is there twice")),
            Head::Model => State::Model(BytesMut::new()),
            Head::Other => State::Field,
        };
        give(rest.split_to(end + 4), out);
        Ok(Step::Again)
    }

    /// The value of `model` is kept until its end has come.
    fn model(&mut self, rest: &mut Bytes, out: &mut impl FnMut(Piece)) -> Result<Step, Malformed> {
        let end = self.find_end(rest)?;
        let bytes = rest.split_to(end.unwrap_or_else(|| self.safe(rest)));
        let State::Model(value) = &mut self.state else { return Ok(Step::Wait) };
        value.extend_from_slice(&bytes);
        let bad = of_model("must be 1 to 256 bytes of text");
        if value.len() > LONGEST_MODEL {
            return Err(bad);
        }
        if end.is_some() {
            let name =
                std::str::from_utf8(value).ok().filter(|name| !name.is_empty() && !name.contains(char::is_control)).ok_or(bad)?;
            out(Piece::Model(name.to_owned()));
            self.has_model = true;
        }
        self.ended(end)
    }
}

/// Behind the last boundary there may be line ends; whatever else stood there could be a form to somebody.
fn epilogue(rest: &mut Bytes, out: &mut impl FnMut(Piece)) -> Result<Step, Malformed> {
    if !rest.iter().all(u8::is_ascii_whitespace) {
        return Err(AMBIGUOUS);
    }
    give(std::mem::take(rest), out);
    Ok(Step::Wait)
}

fn give(bytes: Bytes, out: &mut impl FnMut(Piece)) {
    if !bytes.is_empty() {
        out(Piece::Bytes(bytes));
    }
}

fn joined(first: &[u8], second: &[u8]) -> Bytes {
    let mut both = BytesMut::with_capacity(first.len() + second.len());
    both.extend_from_slice(first);
    both.extend_from_slice(second);
    both.freeze()
}

#[cfg(test)]
mod tests;
