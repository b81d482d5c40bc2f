//! Server-sent events: out of a byte stream, wherever the network cut it, and onto one. An event's data are a slice of the bytes that came, unless a cut or
//! several `data` lines force a copy.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr2;

/// The data of the event that says that a stream is complete.
pub const END_MARK: &[u8] = b"[DONE]";

/// A comment: nothing to anybody but a middle box that waits for bytes.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// The longest event that is read, in bytes. A provider's pictures come in one event.
pub const LONGEST_EVENT: usize = 16 * 1024 * 1024;

/// How much may come between two events, in bytes: more than the longest event, and more comments than anybody sends in good faith.
pub const LONGEST_SILENCE: usize = 2 * LONGEST_EVENT;

/// An event that carries data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The data lines, joined by LF.
    pub data: Bytes,
    /// Its `event:` field is `error`.
    pub is_error: bool,
}

impl Event {
    /// Whether it says that the stream is complete.
    pub fn is_end_mark(&self) -> bool {
        &self.data[..] == END_MARK
    }
}

/// Writes an event. Its data, which `write_data` appends, must hold no line end.
pub fn write(out: &mut BytesMut, write_data: impl FnOnce(&mut BytesMut)) {
    out.extend_from_slice(b"data: ");
    write_data(out);
    out.extend_from_slice(b"\n\n");
}

/// An event is longer than [`LONGEST_EVENT`], or more than [`LONGEST_SILENCE`] has come without one.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

/// Cuts a byte stream into events, in one pass whatever the cuts. Comments, empty events and unknown fields are dropped.
#[derive(Default)]
pub struct Decoder {
    /// Bytes that are not yet read as lines.
    rest: Bytes,
    /// The beginning of a line whose end has not come.
    begun: BytesMut,
    data: Data,
    is_error: bool,
    /// The line before ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    started: bool,
    /// How much has come since the last event.
    silent: usize,
}

/// The data of the event under way.
#[derive(Default)]
enum Data {
    #[default]
    None,
    One(Bytes),
    Several(BytesMut),
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(line) => line.len(),
            Self::Several(lines) => lines.len(),
        }
    }

    fn add(&mut self, line: Bytes) {
        match std::mem::take(self) {
            Self::None => *self = Self::One(line),
            Self::One(first) => *self = Self::Several(joined(BytesMut::from(&first[..]), &line)),
            Self::Several(lines) => *self = Self::Several(joined(lines, &line)),
        }
    }

    fn take(&mut self) -> Option<Bytes> {
        match std::mem::take(self) {
            Self::None => None,
            Self::One(line) => Some(line),
            Self::Several(lines) => Some(lines.freeze()),
        }
    }
}

fn joined(mut lines: BytesMut, line: &[u8]) -> BytesMut {
    lines.extend_from_slice(b"\n");
    lines.extend_from_slice(line);
    lines
}

impl Decoder {
    /// Takes the next bytes of the stream. The events before them have been taken out.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn feed(&mut self, bytes: Bytes) -> Result<(), TooLong> {
        debug_assert!(self.rest.is_empty(), "events are left");
        self.rest = bytes;
        if !self.started && !self.rest.is_empty() {
            self.skip_mark();
        }
        self.silent += self.rest.len();
        let held = self.rest.len() + self.begun.len() + self.data.len();
        if held > LONGEST_EVENT || self.silent > LONGEST_SILENCE { Err(TooLong) } else { Ok(()) }
    }

    /// The next whole event, if there is one.
    pub fn next_event(&mut self) -> Option<Event> {
        while let Some(line) = self.line() {
            if let Some(event) = self.take_line(line) {
                return Some(event);
            }
        }
        None
    }

    /// What is left when the stream has ended: the last event, where its sender left out the blank line.
    pub fn end(&mut self) -> Option<Event> {
        let line = self.begun.split().freeze();
        self.take_line(line).or_else(|| self.dispatch())
    }

    /// A byte order mark may stand at the very beginning. It comes whole or, from no sender that was ever seen, in pieces.
    fn skip_mark(&mut self) {
        self.started = true;
        if self.rest.starts_with(b"\xef\xbb\xbf") {
            self.rest.advance(3);
        }
    }

    fn line(&mut self) -> Option<Bytes> {
        if self.after_cr && !self.rest.is_empty() {
            if self.rest[0] == b'\n' {
                self.rest.advance(1);
            }
            self.after_cr = false;
        }
        let Some(end) = memchr2(b'\n', b'\r', &self.rest) else {
            self.begun.extend_from_slice(&std::mem::take(&mut self.rest));
            return None;
        };
        self.after_cr = self.rest[end] == b'\r';
        let line = self.rest.split_to(end);
        self.rest.advance(1);
        if self.begun.is_empty() {
            return Some(line);
        }
        self.begun.extend_from_slice(&line);
        Some(self.begun.split().freeze())
    }

    fn take_line(&mut self, line: Bytes) -> Option<Event> {
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = memchr::memchr(b':', &line).unwrap_or(line.len());
        let mut value = line.slice((colon + 1).min(line.len())..);
        if value.first() == Some(&b' ') {
            value = value.slice(1..);
        }
        match &line[..colon] {
            b"data" => self.data.add(value),
            b"event" => self.is_error = &value[..] == b"error",
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let is_error = std::mem::take(&mut self.is_error);
        let data = self.data.take()?;
        // Some gateways wrap their heartbeats into data; no JSON begins with a colon.
        let says_something = data.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|first| *first != b':');
        says_something.then(|| {
            self.silent = 0;
            Event { data, is_error }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<(String, bool)> {
        let mut decoder = Decoder::default();
        let mut seen = Vec::new();
        for piece in pieces {
            decoder.feed(Bytes::copy_from_slice(piece)).unwrap();
            while let Some(event) = decoder.next_event() {
                seen.push(event);
            }
        }
        seen.extend(decoder.end());
        seen.into_iter().map(|event| (String::from_utf8(event.data.to_vec()).unwrap(), event.is_error)).collect()
    }

    const RECORDED: &str = concat!(
        "\u{feff}: hello\n\ndata: {\"a\":\"日本\"}\n\n",
        "data:{\"b\":1}\r\n\r\ndata: x\rdata: y\r\rid: 7\nretry: 3\ndata\n\n",
        ": ping\n\ndata:\n\ndata: : keepalive\n\nevent: error\ndata: {\"error\":1}\n\nevent: message\ndata: z\n\ndata: [DONE]\n\n",
    );

    #[test]
    fn only_what_says_something_is_an_event() {
        let expected = ["{\"a\":\"日本\"}", "{\"b\":1}", "x\ny", "{\"error\":1}", "z", "[DONE]"];
        let seen = events(&[RECORDED.as_bytes()]);
        assert_eq!(seen.iter().map(|(data, _)| data.as_str()).collect::<Vec<_>>(), expected);
        assert_eq!(seen.iter().filter(|(_, is_error)| *is_error).count(), 1);
    }

    #[test]
    fn case_07_every_cut_gives_the_same_events() {
        let whole = events(&[RECORDED.as_bytes()]);
        // The byte order mark is not cut: nobody sends it in pieces.
        for first in 3..RECORDED.len() {
            let (head, tail) = RECORDED.as_bytes().split_at(first);
            assert_eq!(events(&[head, tail]), whole, "cut at {first}");
        }
        let bytes: Vec<&[u8]> = RECORDED.as_bytes()[3..].chunks(1).collect();
        assert_eq!(events(&bytes), whole);
    }

    #[test]
    fn a_last_event_without_its_blank_line_counts() {
        assert_eq!(events(&[b"data: [DONE]"]), [("[DONE]".to_owned(), false)]);
        assert_eq!(events(&[b"data: [DONE]\n"]), [("[DONE]".to_owned(), false)]);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut decoder = Decoder::default();
        let piece = Bytes::from(vec![b'x'; LONGEST_EVENT / 2 + 1]);
        assert_eq!(decoder.feed(piece.clone()), Ok(()));
        assert_eq!(decoder.next_event(), None);
        assert_eq!(decoder.feed(piece), Err(TooLong));
    }

    #[test]
    fn comments_without_end_are_refused_and_a_few_are_not() {
        let comments = Bytes::from(": working\n\n".repeat(100_000));
        let (mut decoder, mut fed) = (Decoder::default(), 0);
        while decoder.feed(comments.clone()).is_ok() {
            assert_eq!(decoder.next_event(), None);
            fed += comments.len();
            assert!(fed <= LONGEST_SILENCE, "{fed} bytes of nothing");
        }
        let (mut decoder, mut fed) = (Decoder::default(), 0);
        while fed < 2 * LONGEST_SILENCE {
            decoder.feed([&comments[..], b"data: x\n\n"].concat().into()).unwrap();
            assert!(decoder.next_event().is_some() && decoder.next_event().is_none());
            fed += comments.len();
        }
    }
}
