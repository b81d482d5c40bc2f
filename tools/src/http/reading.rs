//! Reading an answer: as much as can matter, and no more, so that a flood is never held in memory.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;
use toolgate_config::tool::{HttpWork, Tool};
use toolgate_policies::redact::Redactor;

use crate::net::{AnswerBody, NetError};
use crate::result::{Readable, Sent};

/// What is always read, so that the mark of a cut can say how much there was.
const LEAST: usize = 1024 * 1024;

/// The most that is read where the answer has to be seen whole.
const MOST: usize = 16 * 1024 * 1024;

/// How much of an answer is read, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    limit: usize,
}

/// What was read.
#[derive(Debug)]
pub(super) struct Read {
    /// The body, or its beginning.
    pub(super) bytes: Bytes,
    complete: bool,
}

impl Reading {
    /// How much of this tool's answers is read.
    pub(super) fn of(tool: &Tool, work: &HttpWork) -> Self {
        let enough = tool.rule.max_result.saturating_mul(4).clamp(LEAST, MOST).max(tool.rule.max_result);
        Self { limit: if work.select.is_some() { enough.max(MOST) } else { enough } }
    }

    /// Reads up to the limit. What is longer stays unread, and its connection is closed.
    pub(super) async fn read(self, mut body: AnswerBody, due: Instant) -> Result<Read, NetError> {
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        while let Some(piece) = body.chunk(left(due)).await? {
            let read = first.len() + rest.len();
            if read + piece.len() > self.limit {
                let fits = piece.slice(..self.limit - read);
                return Ok(Read { bytes: joined(first, rest, &fits), complete: false });
            }
            if read == 0 {
                first = piece;
            } else {
                rest.extend_from_slice(&piece);
            }
        }
        Ok(Read { bytes: joined(first, rest, &[]), complete: true })
    }
}

/// The time that is left; the whole of it may pass between two chunks.
fn left(due: Instant) -> Duration {
    due.saturating_duration_since(Instant::now())
}

/// Most answers come in one piece, which is then not copied.
fn joined(first: Bytes, rest: BytesMut, last: &[u8]) -> Bytes {
    if rest.is_empty() && last.is_empty() {
        return first;
    }
    let mut all = BytesMut::with_capacity(first.len() + rest.len() + last.len());
    all.extend_from_slice(&first);
    all.extend_from_slice(&rest);
    all.extend_from_slice(last);
    all.freeze()
}

impl Read {
    /// What may be read of it: all, or the part that this points to. `None`: it points nowhere, or into something that was not read whole.
    pub(super) fn readable(&self, select: Option<&str>, tool: &Tool, redactor: &Redactor) -> Option<Readable> {
        Sent { bytes: &self.bytes, is_whole: self.complete, select }.readable(tool, redactor)
    }
}
