//! A packed body: what `content-encoding` says was done to it is undone as it comes, in bounded pieces, so that a small body that would
//! unpack to a huge one is found out long before it is huge. Pure: bytes in, bytes out.
//!
//! Nothing asks for a packed answer (no `accept-encoding` is ever sent); some servers pack all the same.

mod brotli;
mod deflate;
mod gzip;
#[cfg(test)]
mod tests;
mod zstd;

use std::fmt;

use bytes::{Buf, Bytes};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue};
use smallvec::SmallVec;

use self::brotli::Brotli;
use self::deflate::Deflate;
use self::gzip::Gzip;
use self::zstd::Zstd;
use super::error::NetError;

/// How much comes out at once at most, in bytes.
const PIECE: usize = 32 * 1024;

/// How many codings may lie one upon another.
const MOST_LAYERS: usize = 3;

/// The most that one body may unpack to, in bytes.
const MOST_UNPACKED: u64 = 256 * 1024 * 1024;

/// How many times as long as its packed form a body may be, once it is longer than [`GRACE`]. Streams of JSON reach 20, a plain answer 5.
const MOST_TIMES: u64 = 200;

/// How much may come in, or out, before the one is compared with the other, in bytes.
const GRACE: u64 = 1024 * 1024;

/// What unpacks one body.
pub(super) struct Unpacker {
    /// The coding that was put on last comes first.
    layers: SmallVec<[Layer; 1]>,
    scratch: Box<[u8]>,
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unpacker")
    }
}

/// The body was packed in a way that nobody here knows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown;

impl Unpacker {
    /// What unpacks the body of an answer with these headers; `None`: it is not packed.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, Unknown> {
        let values = headers.get_all(CONTENT_ENCODING).iter().map(HeaderValue::as_bytes);
        let words = values.flat_map(|value| value.split(|&byte| byte == b',')).map(<[u8]>::trim_ascii);
        let mut layers = SmallVec::new();
        for word in words.filter(|word| !word.is_empty() && !word.eq_ignore_ascii_case(b"identity")) {
            layers.push(Layer::new(Codec::of(word).ok_or(Unknown)?));
        }
        layers.reverse();
        match layers.len() {
            0 => Ok(None),
            1..=MOST_LAYERS => Ok(Some(Self { layers, scratch: vec![0; PIECE].into() })),
            _ => Err(Unknown),
        }
    }

    /// Takes the next packed bytes. [`Unpacker::next`] has given all that was in those before.
    pub(super) fn feed(&mut self, packed: Bytes) -> Result<(), NetError> {
        self.layers.first_mut().map_or(Ok(()), |first| first.feed(packed))
    }

    /// The next unpacked bytes, never none; `None`: more has to be fed.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, NetError> {
        pull(&mut self.layers, &mut self.scratch)
    }

    /// Nothing more is fed. Whether what came was whole.
    pub(super) fn is_whole(&self) -> bool {
        self.layers.iter().all(|layer| layer.codec.is_whole())
    }
}

/// What is true of an unpacked body: neither its coding nor its length is what the head said.
pub(super) fn relabel(headers: &mut HeaderMap) {
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
}

/// What the last of these layers gives, which it makes from what the others give.
fn pull(layers: &mut [Layer], scratch: &mut [u8]) -> Result<Option<Bytes>, NetError> {
    let Some((last, others)) = layers.split_last_mut() else { return Ok(None) };
    loop {
        if let Some(piece) = last.step(scratch)? {
            return Ok(Some(piece));
        }
        let Some(packed) = pull(others, scratch)? else { return Ok(None) };
        last.feed(packed)?;
    }
}

/// One coding of a body, and how much went in and came out.
struct Layer {
    codec: Codec,
    input: Bytes,
    /// The last piece was full: there may be more without more input.
    has_more: bool,
    packed: u64,
    unpacked: u64,
}

impl Layer {
    fn new(codec: Codec) -> Self {
        Self { codec, input: Bytes::new(), has_more: false, packed: 0, unpacked: 0 }
    }

    fn feed(&mut self, packed: Bytes) -> Result<(), NetError> {
        debug_assert!(self.input.is_empty(), "not everything was unpacked");
        self.packed += packed.len() as u64;
        self.input = packed;
        // What is packed well is shorter; what goes on without ever saying anything is a flood.
        if self.packed > self.unpacked + GRACE { Err(NetError::TooLarge) } else { Ok(()) }
    }

    fn step(&mut self, scratch: &mut [u8]) -> Result<Option<Bytes>, NetError> {
        while self.has_more || !self.input.is_empty() {
            let Step { read, written } = self.codec.step(&self.input, scratch).map_err(|Broken| NetError::Packing)?;
            self.input.advance(read);
            self.has_more = written == scratch.len();
            if written > 0 {
                self.unpacked += written as u64;
                return if self.is_bomb() {
                    Err(NetError::TooLarge)
                } else {
                    Ok(Some(Bytes::copy_from_slice(&scratch[..written])))
                };
            }
            if read == 0 && !self.input.is_empty() {
                return Err(NetError::Packing);
            }
        }
        Ok(None)
    }

    fn is_bomb(&self) -> bool {
        self.unpacked > MOST_UNPACKED || self.unpacked > GRACE + self.packed * MOST_TIMES
    }
}

/// How far a codec came in one step.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Bytes of the input that are used up.
    read: usize,
    /// Bytes of the output that are filled.
    written: usize,
}

/// The body is not what its coding says.
#[derive(Debug)]
struct Broken;

/// The codings that are known; boxed, for each holds its window.
enum Codec {
    Gzip(Box<Gzip>),
    Deflate(Box<Deflate>),
    Brotli(Box<Brotli>),
    Zstd(Box<Zstd>),
}

impl Codec {
    fn of(word: &[u8]) -> Option<Self> {
        match word.to_ascii_lowercase().as_slice() {
            b"gzip" | b"x-gzip" => Some(Self::Gzip(Box::default())),
            b"deflate" => Some(Self::Deflate(Box::default())),
            b"br" => Some(Self::Brotli(Box::default())),
            b"zstd" => Zstd::new().map(|zstd| Self::Zstd(Box::new(zstd))),
            _ => None,
        }
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        match self {
            Self::Gzip(gzip) => gzip.step(input, output),
            Self::Deflate(deflate) => deflate.step(input, output),
            Self::Brotli(brotli) => brotli.step(input, output),
            Self::Zstd(zstd) => zstd.step(input, output),
        }
    }

    /// Whether the body may end here. One without a byte is whole.
    fn is_whole(&self) -> bool {
        match self {
            Self::Gzip(gzip) => gzip.is_whole(),
            Self::Deflate(deflate) => deflate.is_whole(),
            Self::Brotli(brotli) => brotli.is_whole(),
            Self::Zstd(zstd) => zstd.is_whole(),
        }
    }
}
