//! What hyper says by itself. A head that it cannot read it answers with a bare status; here the answer is put into the words of the
//! listener, so that each of its answers has a body that says what was wrong, and whatever else all of them have.

use std::fmt::Write;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use bytes::{Buf, Bytes};
use http::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::line::{Shared, Transport};

/// The listener's answer to a head that cannot be read, by hyper's status. It is the last of its connection.
pub(super) type Words = fn(StatusCode) -> Response<Bytes>;

/// A line whose bare refusals are reworded.
pub(super) struct Worded<S: Transport> {
    line: Shared<S>,
    words: Words,
    /// What is still to be sent in the place of hyper's own.
    owed: Bytes,
}

impl<S: Transport> Worded<S> {
    pub(super) fn new(line: Shared<S>, words: Words) -> Self {
        Self { line, words, owed: Bytes::new() }
    }

    fn poll_owed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.owed.is_empty() {
            let sent = ready!(Pin::new(&mut self.line).poll_write(cx, &self.owed))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.owed.advance(sent);
        }
        Poll::Ready(Ok(()))
    }

    /// Takes a bare refusal; its length, as if it had been sent.
    fn reword(&mut self, bytes: &[u8]) -> Option<usize> {
        self.owed = written(&(self.words)(bare_refusal(bytes)?));
        Some(bytes.len())
    }
}

/// The status of an answer that hyper made of nothing. None of the process's own refusals is without a body.
fn bare_refusal(bytes: &[u8]) -> Option<StatusCode> {
    let head = std::str::from_utf8(bytes.strip_prefix(b"HTTP/1.1 4")?).ok()?;
    let (status, rest) = (head.get(..2)?, head.get(2..)?);
    let is_bare = rest.split_once("\r\n")?.1.starts_with("connection: close\r\ncontent-length: 0\r\n");
    is_bare.then(|| format!("4{status}").parse().ok()).flatten()
}

fn written(response: &Response<Bytes>) -> Bytes {
    let (status, body) = (response.status(), response.body());
    let mut text = format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or_default());
    for (name, value) in response.headers() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{name}: {}\r\n", value.to_str().unwrap_or_default());
    }
    let date = httpdate::fmt_http_date(SystemTime::now());
    let _ = write!(text, "connection: close\r\ncontent-length: {}\r\ndate: {date}\r\n\r\n", body.len());
    let mut whole = text.into_bytes();
    whole.extend_from_slice(body);
    whole.into()
}

impl<S: Transport> AsyncRead for Worded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.line).poll_read(cx, into)
    }
}

impl<S: Transport> AsyncWrite for Worded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_owed(cx))?;
        match self.reword(bytes) {
            Some(length) => Poll::Ready(Ok(length)),
            None => Pin::new(&mut self.line).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        ready!(self.poll_owed(cx))?;
        match slices.first().and_then(|first| self.reword(first)) {
            Some(length) => Poll::Ready(Ok(length)),
            None => Pin::new(&mut self.line).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.line.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_owed(cx))?;
        Pin::new(&mut self.line).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_owed(cx))?;
        Pin::new(&mut self.line).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refusals_without_a_body_are_reworded() {
        let table = [
            ("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: x\r\n\r\n", Some(400)),
            ("HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", Some(431)),
            ("HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n", None),
            ("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 109\r\n\r\n", None),
            ("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", None),
            ("HTTP/1.1 4", None),
            ("data: HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", None),
        ];
        for (head, expected) in table {
            assert_eq!(bare_refusal(head.as_bytes()).map(|status| status.as_u16()), expected, "{head}");
        }
    }
}
