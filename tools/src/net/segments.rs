//! A request body in pieces: each is sent as it is by one vectored write, so that a long transcript is never copied to be extended.

use std::convert::Infallible;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};

/// Pieces of bytes that make one body, in order. A clone copies no bytes. Small by itself: hyper sets aside room for 32 requests a
/// connection, their bodies included.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    pieces: Vec<Bytes>,
    /// Pieces before this one are used up; they stay until the end, as shifting the others would cost more.
    next: usize,
    remaining: usize,
}

impl Segments {
    /// No body.
    pub fn none() -> Self {
        Self::default()
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.remaining
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.remaining == 0
    }

    /// What is left of them, piece by piece.
    pub fn pieces(&self) -> &[Bytes] {
        self.live()
    }

    fn live(&self) -> &[Bytes] {
        self.pieces.get(self.next..).unwrap_or_default()
    }
}

impl FromIterator<Bytes> for Segments {
    fn from_iter<I: IntoIterator<Item = Bytes>>(pieces: I) -> Self {
        Self::from(pieces.into_iter().collect::<Vec<_>>())
    }
}

impl From<Bytes> for Segments {
    fn from(piece: Bytes) -> Self {
        Self::from(vec![piece])
    }
}

impl From<Vec<Bytes>> for Segments {
    fn from(mut pieces: Vec<Bytes>) -> Self {
        pieces.retain(|piece| !piece.is_empty());
        let remaining = pieces.iter().map(Bytes::len).sum();
        Self { pieces, next: 0, remaining }
    }
}

impl Buf for Segments {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.live().first().map_or(&[], |piece| piece.as_ref())
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        let pairs = into.iter_mut().zip(self.live());
        pairs.map(|(slot, piece)| *slot = IoSlice::new(piece)).count()
    }

    fn advance(&mut self, mut count: usize) {
        self.remaining -= count;
        while let Some(piece) = self.pieces.get_mut(self.next) {
            let step = count.min(piece.len());
            piece.advance(step);
            count -= step;
            if !piece.is_empty() {
                break;
            }
            self.next += 1;
        }
    }
}

// The whole body is one frame: the codec then writes head and body with one system call, and knows that nothing follows.
impl Body for Segments {
    type Data = Self;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Self>, Infallible>>> {
        let all = std::mem::take(&mut *self);
        Poll::Ready((!all.is_empty()).then(|| Ok(Frame::data(all))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(pieces: &[&'static str]) -> Segments {
        pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect()
    }

    #[test]
    fn pieces_are_read_in_order_whatever_the_steps() {
        for step in 1..=12 {
            let mut body = segments(&["", "ab", "", "cdefg", "h", ""]);
            let mut read = Vec::new();
            while body.has_remaining() {
                let take = step.min(body.remaining());
                read.extend_from_slice(&body.copy_to_bytes(take));
            }
            assert_eq!(read, b"abcdefgh", "in steps of {step}");
        }
    }

    #[test]
    fn a_vectored_write_sees_each_piece_once() {
        let mut body = segments(&["ab", "cd", "ef"]);
        body.advance(3);
        let mut slots = [IoSlice::new(&[]); 8];
        let used = body.chunks_vectored(&mut slots);
        let seen: Vec<&[u8]> = slots.iter().take(used).map(|slot| slot.as_ref()).collect();
        assert_eq!(seen, [b"d".as_slice(), b"ef"]);
        assert_eq!((body.len(), body.remaining()), (3, 3));
    }
}
