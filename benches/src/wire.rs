//! HTTP/1.1 on one connection, as little of it as the two doubles need. It is no client for the world: heads fit in memory, trailers are
//! not expected.

use std::io::{Error, ErrorKind, Result};
use std::time::Instant;

use bytes::{Buf, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection and what has been read from it but not used.
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: BytesMut,
    /// When bytes came last.
    pub(crate) read_at: Instant,
}

/// How the end of a body is known.
#[derive(Clone, Copy)]
enum Framing {
    Length(usize),
    Chunked,
}

/// What a head says, as far as it is of interest here.
pub(crate) struct Head {
    /// Of a request; empty in a response.
    pub(crate) path: String,
    /// Of a response; 0 in a request.
    pub(crate) status: u16,
    framing: Framing,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: BytesMut::with_capacity(16 << 10), read_at: Instant::now() })
    }

    /// Writes it all at once.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The next request; `None` where the peer has closed between two.
    pub(crate) async fn request(&mut self) -> Result<Option<Head>> {
        if self.buffer.is_empty() && !self.more().await? {
            return Ok(None);
        }
        let end = self.head_end().await?;
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        request.parse(&self.buffer[..end]).map_err(invalid)?;
        let path = request.path.unwrap_or_default().to_owned();
        let framing = framing(request.headers)?;
        self.buffer.advance(end);
        Ok(Some(Head { path, status: 0, framing }))
    }

    /// The head of the next response.
    pub(crate) async fn response(&mut self) -> Result<Head> {
        let end = self.head_end().await?;
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        response.parse(&self.buffer[..end]).map_err(invalid)?;
        let status = response.code.unwrap_or_default();
        let framing = framing(response.headers)?;
        self.buffer.advance(end);
        Ok(Head { path: String::new(), status, framing })
    }

    /// The whole body that belongs to a head.
    pub(crate) async fn body(&mut self, head: &Head) -> Result<BytesMut> {
        match head.framing {
            Framing::Length(length) => {
                self.fill(length).await?;
                Ok(self.buffer.split_to(length))
            }
            Framing::Chunked => {
                let mut body = BytesMut::new();
                while let Some(chunk) = self.chunk().await? {
                    body.extend_from_slice(&chunk);
                }
                Ok(body)
            }
        }
    }

    /// The next chunk of a chunked body; `None` after the last one.
    pub(crate) async fn chunk(&mut self) -> Result<Option<BytesMut>> {
        let end = self.find(b"\r\n").await?;
        let line = std::str::from_utf8(&self.buffer[..end]).map_err(invalid)?;
        let size = usize::from_str_radix(line, 16).map_err(invalid)?;
        self.buffer.advance(end + 2);
        self.fill(size + 2).await?;
        let chunk = self.buffer.split_to(size);
        self.buffer.advance(2);
        Ok((size > 0).then_some(chunk))
    }

    async fn head_end(&mut self) -> Result<usize> {
        Ok(self.find(b"\r\n\r\n").await? + 4)
    }

    async fn find(&mut self, needle: &[u8]) -> Result<usize> {
        loop {
            if let Some(at) = memmem::find(&self.buffer, needle) {
                return Ok(at);
            }
            self.fill(self.buffer.len() + 1).await?;
        }
    }

    async fn fill(&mut self, length: usize) -> Result<()> {
        self.buffer.reserve(length.saturating_sub(self.buffer.len()));
        while self.buffer.len() < length {
            if !self.more().await? {
                return Err(Error::new(ErrorKind::UnexpectedEof, "the connection was closed in the middle of a message"));
            }
        }
        Ok(())
    }

    async fn more(&mut self) -> Result<bool> {
        self.buffer.reserve(4 << 10);
        let read = self.stream.read_buf(&mut self.buffer).await?;
        self.read_at = Instant::now();
        Ok(read > 0)
    }
}

fn framing(headers: &[httparse::Header<'_>]) -> Result<Framing> {
    let value = |name: &str| headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value);
    if value("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case(b"chunked")) {
        return Ok(Framing::Chunked);
    }
    let Some(length) = value("content-length") else { return Ok(Framing::Length(0)) };
    let length = std::str::from_utf8(length).map_err(invalid)?;
    Ok(Framing::Length(length.trim().parse().map_err(invalid)?))
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::InvalidData, error)
}
