//! `gzip`: one member or several, each a head, a bare deflate stream, and a tail that says what came out.

use crc32fast::Hasher;
use miniz_oxide::DataFormat;

use super::deflate::Inflate;
use super::{Broken, Step};

/// The bits of a head's flags, but for the one that says that it is text.
const HAS_SUM: u8 = 0x02;
const HAS_EXTRA: u8 = 0x04;
const HAS_NAME: u8 = 0x08;
const HAS_COMMENT: u8 = 0x10;
const UNKNOWN: u8 = 0xe0;

/// The coding `gzip`.
#[derive(Default)]
pub(super) struct Gzip {
    part: Part,
}

/// Where in a member the stream is.
#[derive(Default)]
enum Part {
    /// Before a member.
    #[default]
    Between,
    Head(Head),
    Body(Box<Body>),
    Tail(Tail),
}

impl Gzip {
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        let mut read = 0;
        loop {
            match &mut self.part {
                Part::Between if read == input.len() => break,
                Part::Between => self.part = Part::Head(Head::default()),
                Part::Head(head) => {
                    let Some(byte) = input.get(read) else { break };
                    read += 1;
                    if head.take(*byte)? {
                        self.part = Part::Body(Box::new(Body::new()));
                    }
                }
                Part::Body(body) => {
                    let step = body.step(&input[read..], output)?;
                    if let Some(tail) = body.tail() {
                        self.part = Part::Tail(tail);
                    }
                    if step.written > 0 || step.read == 0 && matches!(self.part, Part::Body(_)) {
                        return Ok(Step { read: read + step.read, written: step.written });
                    }
                    read += step.read;
                }
                Part::Tail(tail) => {
                    let Some(byte) = input.get(read) else { break };
                    read += 1;
                    if tail.take(*byte)? {
                        self.part = Part::Between;
                    }
                }
            }
        }
        Ok(Step { read, written: 0 })
    }

    pub(super) fn is_whole(&self) -> bool {
        matches!(self.part, Part::Between)
    }
}

/// A member's head, byte by byte: none of it is kept but what says how long it is.
#[derive(Default)]
struct Head {
    /// Which of its ten fixed bytes is next.
    at: usize,
    /// The optional fields that are still to come.
    flags: u8,
    field: Field,
}

/// What is left of the optional field under way.
#[derive(Default)]
enum Field {
    #[default]
    None,
    /// The second byte of a length, after this first one.
    Length(u8),
    Bytes(u16),
    /// Up to a zero.
    Text,
}

impl Head {
    /// Takes a byte. Whether it was the head's last.
    fn take(&mut self, byte: u8) -> Result<bool, Broken> {
        if self.at < 10 {
            self.fixed(byte)?;
        } else {
            self.optional(byte);
        }
        Ok(self.at == 10 && self.flags == 0 && matches!(self.field, Field::None))
    }

    fn fixed(&mut self, byte: u8) -> Result<(), Broken> {
        let is_right = match self.at {
            0 => byte == 0x1f,
            1 => byte == 0x8b,
            2 => byte == 8,
            3 => byte & UNKNOWN == 0,
            _ => true,
        };
        if self.at == 3 {
            self.flags = byte & (HAS_SUM | HAS_EXTRA | HAS_NAME | HAS_COMMENT);
        }
        self.at += 1;
        if is_right { Ok(()) } else { Err(Broken) }
    }

    fn optional(&mut self, byte: u8) {
        self.field = match std::mem::take(&mut self.field) {
            Field::None => self.begin(byte),
            Field::Length(low) => bytes(u16::from_le_bytes([low, byte])),
            Field::Bytes(left) => bytes(left - 1),
            Field::Text if byte == 0 => Field::None,
            Field::Text => Field::Text,
        };
    }

    /// The first byte of the next field.
    fn begin(&mut self, byte: u8) -> Field {
        let next = [HAS_EXTRA, HAS_NAME, HAS_COMMENT, HAS_SUM].into_iter().find(|flag| self.flags & flag != 0).unwrap_or(HAS_SUM);
        self.flags &= !next;
        match next {
            HAS_EXTRA => Field::Length(byte),
            HAS_SUM => Field::Bytes(1),
            _ if byte == 0 => Field::None,
            _ => Field::Text,
        }
    }
}

fn bytes(left: u16) -> Field {
    if left == 0 { Field::None } else { Field::Bytes(left) }
}

/// A member's deflate stream, and what its tail has to say of it.
struct Body {
    inflate: Inflate,
    sum: Hasher,
    length: u32,
}

impl Body {
    fn new() -> Self {
        Self { inflate: Inflate::new(DataFormat::Raw), sum: Hasher::new(), length: 0 }
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        let step = self.inflate.step(input, output)?;
        self.sum.update(&output[..step.written]);
        self.length = self.length.wrapping_add(u32::try_from(step.written).map_err(|_| Broken)?);
        Ok(step)
    }

    /// The tail that has to follow, once the stream is over.
    fn tail(&self) -> Option<Tail> {
        let [a, b, c, d] = self.sum.clone().finalize().to_le_bytes();
        let [e, f, g, h] = self.length.to_le_bytes();
        self.inflate.is_over().then_some(Tail { expected: [a, b, c, d, e, f, g, h], at: 0 })
    }
}

/// A member's tail: the sum and the length of what came out.
struct Tail {
    expected: [u8; 8],
    at: usize,
}

impl Tail {
    /// Takes a byte. Whether it was the last.
    fn take(&mut self, byte: u8) -> Result<bool, Broken> {
        let is_right = self.expected.get(self.at) == Some(&byte);
        self.at += 1;
        if is_right { Ok(self.at == self.expected.len()) } else { Err(Broken) }
    }
}
