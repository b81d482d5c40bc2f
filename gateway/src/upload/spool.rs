//! What waits on the disk: a file that has no name any more once it is open, so that nothing of it stays, whatever becomes of the process.

use std::fs::{File, OpenOptions, remove_file};
use std::io::{Error, Result, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::trace::TraceId;

/// How much is read at once, in bytes.
const READ: u64 = 128 * 1024;

/// Bytes that are written first and then read once.
pub(super) struct Spool {
    file: Arc<File>,
    length: u64,
    read: u64,
    reading: Option<JoinHandle<Result<Bytes>>>,
}

impl Spool {
    /// Writes behind what is there already; with nothing there, into a new file.
    pub(super) async fn append(spool: Option<Self>, pieces: Vec<Bytes>) -> Result<Self> {
        on_the_disk(move || {
            let mut spool = match spool {
                Some(spool) => spool,
                None => Self { file: Arc::new(unnamed()?), length: 0, read: 0, reading: None },
            };
            for piece in pieces {
                (&*spool.file).write_all(&piece)?;
                spool.length += piece.len() as u64;
            }
            Ok(spool)
        })
        .await
        .unwrap_or_else(|gone| Err(Error::other(gone)))
    }

    /// The next of it; `None`: that was all.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>>> {
        let left = (self.length - self.read).min(READ);
        if left == 0 {
            return Poll::Ready(Ok(None));
        }
        let (file, at) = (&self.file, self.read);
        let reading = self.reading.get_or_insert_with(|| {
            let file = Arc::clone(file);
            on_the_disk(move || {
                let mut bytes = vec![0; left as usize];
                file.read_exact_at(&mut bytes, at)?;
                Ok(bytes.into())
            })
        });
        let read = ready!(Pin::new(reading).poll(cx)).unwrap_or_else(|gone| Err(Error::other(gone)));
        (self.reading, self.read) = (None, at + left);
        Poll::Ready(read.map(Some))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "each is waited for by the request it is for, and ends soon where its caller has gone"
)]
fn on_the_disk<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> JoinHandle<Result<T>> {
    spawn_blocking(work)
}

/// A file that nobody else can open.
fn unnamed() -> Result<File> {
    let path = std::env::temp_dir().join(format!("toolgate-form-{}", TraceId::random()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn what_is_kept_is_read_in_order_and_once() {
        let pieces = |byte: u8| vec![Bytes::from(vec![byte; 100_000]), Bytes::from(vec![byte + 1; 50_000])];
        let first = Spool::append(None, pieces(1)).await.unwrap();
        let mut spool = Spool::append(Some(first), pieces(3)).await.unwrap();
        let mut read = Vec::new();
        while let Some(bytes) = poll_fn(|cx| spool.poll_read(cx)).await.unwrap() {
            read.extend_from_slice(&bytes);
        }
        assert!(read == [pieces(1), pieces(3)].concat().concat());
        assert!(poll_fn(|cx| spool.poll_read(cx)).await.unwrap().is_none());
    }
}
