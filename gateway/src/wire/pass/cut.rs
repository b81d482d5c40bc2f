//! A stream of events that passes through as it came, event by whole event: what is in between would be torn by a comment or an error.

use bytes::{Bytes, BytesMut};
use memchr::memmem;

use crate::wire::sse::{LONGEST_EVENT, TooLong};

/// Cuts a stream behind its blank lines.
#[derive(Default)]
pub struct Events {
    begun: BytesMut,
}

impl Events {
    /// Takes the next bytes of the stream, and gives all events that are whole by now.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Bytes, TooLong> {
        // The end of an event may have begun with the bytes before.
        let from = self.begun.len().saturating_sub(2);
        self.begun.extend_from_slice(bytes);
        let end = last_end(&self.begun[from..]).map_or(0, |end| from + end);
        let whole = self.begun.split_to(end).freeze();
        if self.begun.len() > LONGEST_EVENT { Err(TooLong) } else { Ok(whole) }
    }

    /// What is left when the stream has ended: the last event, where its sender left out the blank line.
    pub fn end(self) -> Bytes {
        self.begun.freeze()
    }
}

fn last_end(bytes: &[u8]) -> Option<usize> {
    let ends = [&b"\n\n"[..], b"\n\r\n"];
    ends.into_iter().filter_map(|end| Some(memmem::rfind(bytes, end)? + end.len())).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_events_are_given_and_nothing_is_lost() {
        for text in ["event: a\ndata: 1\n\n: c\n\ndata: 2\n\nrest", "data: 1\r\n\r\ndata: 2\r\n\r\n", "\n\n\n", "", "data"] {
            for size in 1..=text.len().max(1) {
                let (mut events, mut all) = (Events::default(), Vec::new());
                for piece in text.as_bytes().chunks(size) {
                    let whole = events.feed(piece).unwrap();
                    assert!(whole.is_empty() || whole.ends_with(b"\n"), "{text} {size}");
                    all.extend_from_slice(&whole);
                }
                let whole = all.len();
                all.extend_from_slice(&events.end());
                assert_eq!(all, text.as_bytes());
                assert!(!text[whole..].contains("\n\n"), "{text} {size}");
            }
        }
    }
}
