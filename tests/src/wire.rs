//! HTTP/1.1 read byte by byte, for both ends. It accepts little and hides nothing: header names keep their order, and how a body ended is told.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// A start line and its headers.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The request line or the status line.
    pub start: String,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// The value of a header; several of one name are joined by a comma.
    pub fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> = self.headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        Self { start, headers }
    }
}

/// How the length of a body is known.
enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

/// A connection that is read from.
pub struct Reader<R> {
    inner: R,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Nothing has been read yet.
    pub fn new(inner: R) -> Self {
        Self { inner, buffer: Vec::new() }
    }

    /// The next head; `None` where the other end closed before it began one.
    ///
    /// # Errors
    /// The connection broke inside a head.
    pub async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = Head::parse(&self.buffer[..end]);
                self.buffer.drain(..end + 4);
                return Ok(Some(head));
            }
            if self.fill().await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// The body of a request.
    ///
    /// # Errors
    /// It broke off.
    pub async fn request_body(&mut self, head: &Head) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        self.body(framing(head, Framing::Length(0)), |piece| whole.extend_from_slice(piece)).await?;
        Ok(whole)
    }

    /// The body of a response, each piece given to `each` as it comes.
    ///
    /// # Errors
    /// It broke off.
    pub async fn response_body(&mut self, head: &Head, each: impl FnMut(&[u8])) -> io::Result<()> {
        let status = head.start.split(' ').nth(1).unwrap_or_default();
        if status == "204" || status == "304" {
            return Ok(());
        }
        self.body(framing(head, Framing::UntilClose), each).await
    }

    /// The connection itself; what was read ahead is dropped.
    pub fn into_inner(self) -> R {
        self.inner
    }

    /// Returns when the other end has closed its side or broken the connection.
    pub async fn closed(&mut self) {
        while matches!(self.fill().await, Ok(1..)) {}
    }

    async fn body(&mut self, framing: Framing, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        match framing {
            Framing::Length(length) => self.exactly(length, &mut each).await,
            Framing::Chunked => self.chunks(&mut each).await,
            Framing::UntilClose => loop {
                each(&std::mem::take(&mut self.buffer));
                if self.fill().await? == 0 {
                    return Ok(());
                }
            },
        }
    }

    async fn exactly(&mut self, mut left: usize, each: &mut impl FnMut(&[u8])) -> io::Result<()> {
        while left > 0 {
            if self.buffer.is_empty() && self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let piece: Vec<u8> = self.buffer.drain(..left.min(self.buffer.len())).collect();
            left -= piece.len();
            each(&piece);
        }
        Ok(())
    }

    async fn chunks(&mut self, each: &mut impl FnMut(&[u8])) -> io::Result<()> {
        loop {
            let line = self.line().await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| io::Error::other(format!("chunk size {size:?}")))?;
            if size == 0 {
                while !self.line().await?.is_empty() {}
                return Ok(());
            }
            self.exactly(size, each).await?;
            self.line().await?;
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.buffer.drain(..end + 2);
                return Ok(line);
            }
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        let mut piece = [0; 16 * 1024];
        let read = self.inner.read(&mut piece).await?;
        self.buffer.extend_from_slice(&piece[..read]);
        Ok(read)
    }
}

fn framing(head: &Head, otherwise: Framing) -> Framing {
    if head.header("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().contains("chunked")) {
        return Framing::Chunked;
    }
    head.header("content-length").and_then(|value| value.parse().ok()).map_or(otherwise, Framing::Length)
}
