//! A stream of events, byte by byte, wherever it is cut: the grammar of `text/event-stream`, with a bound on one event.

use std::time::Duration;

/// The longest id of an event that is remembered, in bytes. It comes back to the server as a header.
const LONGEST_ID: usize = 1024;

/// The shortest and the longest time that a server may ask us to wait for before we come back.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Its data, lines joined; `None`: it has none, and only what follows counts.
    pub(super) data: Option<String>,
    /// It is called something else than `message`.
    pub(super) other: bool,
    /// What to name when the stream is taken up again.
    pub(super) id: Option<String>,
    /// How long to wait before.
    pub(super) retry: Option<Duration>,
}

/// An event is longer than is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// The reader of a stream.
#[derive(Debug)]
pub(super) struct Reader {
    limit: usize,
    line: Vec<u8>,
    /// The line is a comment, of which nothing is kept.
    comment: bool,
    after_cr: bool,
    first_line: bool,
    data: Option<Vec<u8>>,
    rest: Event,
}

impl Reader {
    /// A reader that holds at most `limit` bytes of one event.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, line: Vec::new(), comment: false, after_cr: false, first_line: true, data: None, rest: Event::default() }
    }

    /// Reads on to the end of an event or of `bytes`, of which what was read is taken off.
    pub(super) fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, TooLarge> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                *bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.take(part)?;
            *bytes = rest;
            if let Some((&end, rest)) = rest.split_first() {
                self.after_cr = end == b'\r';
                *bytes = rest;
                if let Some(event) = self.end_line() {
                    return Ok(Some(event));
                }
            }
        }
        Ok(None)
    }

    fn take(&mut self, part: &[u8]) -> Result<(), TooLarge> {
        if self.line.is_empty() && part.first() == Some(&b':') {
            self.comment = true;
        }
        if self.comment {
            return Ok(());
        }
        if self.line.len() + part.len() + self.data.as_ref().map_or(0, Vec::len) > self.limit {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self) -> Option<Event> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.first_line) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if std::mem::take(&mut self.comment) || line.starts_with(b":") {
            return None;
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (name, value) = match line.iter().position(|&byte| byte == b':') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (&line[..], &line[..0]),
        };
        self.field(name, value.strip_prefix(b" ").unwrap_or(value));
        None
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"event" => self.rest.other = !matches!(value, b"" | b"message"),
            b"id" if value.len() <= LONGEST_ID && !value.iter().any(u8::is_ascii_control) => {
                self.rest.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => self.rest.retry = milliseconds(value).or(self.rest.retry),
            _ => {}
        }
    }

    /// What the event was; an event without data still says where to go on, and when.
    fn end_event(&mut self) -> Option<Event> {
        let data = self.data.take().map(into_text);
        let event = Event { data, ..std::mem::take(&mut self.rest) };
        (event != Event::default()).then_some(event)
    }
}

fn milliseconds(value: &[u8]) -> Option<Duration> {
    let all_digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| all_digits)?;
    Some(Duration::from_millis(text.parse().unwrap_or(u64::MAX)).clamp(RETRY.0, RETRY.1))
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], cut: usize) -> Vec<Event> {
        let mut reader = Reader::new(1024);
        let mut events = Vec::new();
        for mut piece in text.chunks(cut) {
            while let Some(event) = reader.read(&mut piece).unwrap() {
                events.push(event);
            }
        }
        events
    }

    fn data(text: &str) -> Event {
        Event { data: Some(text.to_owned()), ..Event::default() }
    }

    #[test]
    fn a_stream_is_read_alike_wherever_it_is_cut() {
        let ms = |ms| Some(Duration::from_millis(ms));
        let table: [(&[u8], Vec<Event>); 14] = [
            (b"data: a\n\ndata:b\n\n", vec![data("a"), data("b")]),
            (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", vec![data("a"), data("b"), data("c")]),
            (b"\xef\xbb\xbfdata: a\n\n", vec![data("a")]),
            (b"\xef\xbb\xbf: hello\n\xef\xbb\xbfdata: a\n\n", vec![]),
            (b": only a comment\n\n:\n\n", vec![]),
            (b"data: {\"a\":\ndata: 1}\n\n", vec![data("{\"a\":\n1}")]),
            (b"data\n\n", vec![data("")]),
            (b"id: 7\ndata:\n\n", vec![Event { id: Some("7".into()), ..data("") }]),
            (b"id: 7\nretry: 500\n\n", vec![Event { id: Some("7".into()), retry: ms(500), ..Event::default() }]),
            (
                b"retry: 0\n\nretry: 99999999999999999999999\n\nretry: soon\n\n",
                vec![Event { retry: ms(100), ..Event::default() }, Event { retry: ms(60_000), ..Event::default() }],
            ),
            (b"event: message\ndata: a\n\nevent: ping\ndata: b\n\n", vec![data("a"), Event { other: true, ..data("b") }]),
            (b"other: x\ndata:  a\n\n", vec![data(" a")]),
            (b"id: a\x00b\ndata: a\n\n", vec![data("a")]),
            (b"data: \xff\n\ndata: not ended", vec![data("\u{fffd}")]),
        ];
        for (text, expected) in table {
            for cut in 1..=text.len() {
                assert_eq!(read(text, cut), expected, "{} in pieces of {cut}", String::from_utf8_lossy(text));
            }
        }
    }

    #[test]
    fn one_event_is_bounded_and_a_comment_takes_no_room() {
        let table = [
            ("data: 123456789\n", Ok(())),
            ("data: 1234567890\n", Err(TooLarge)),
            ("data: 12345\ndata: 12345\n", Err(TooLarge)),
            ("unknown-and-long", Err(TooLarge)),
            (": a comment that is longer than any event may be\ndata: 1\n", Ok(())),
            ("data: 12345678\n\ndata: 12345678\n\n", Ok(())),
        ];
        for (text, expected) in table {
            for cut in [1, 7, text.len()] {
                let mut reader = Reader::new(15);
                let outcome = text.as_bytes().chunks(cut).try_for_each(|mut piece| {
                    while reader.read(&mut piece)?.is_some() {}
                    Ok(())
                });
                assert_eq!(outcome, expected, "{text} in pieces of {cut}");
            }
        }
    }
}
