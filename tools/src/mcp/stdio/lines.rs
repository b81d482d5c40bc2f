//! Messages as lines over a process's standard input and output.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage, ServerNotification};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::super::flag::Flag;
use super::super::wire::{self, Ticket, Unsendable};
use super::stderr::Log;

/// The longest line, in bytes: a longer one ends the session.
const LONGEST: usize = 16 * 1024 * 1024;

/// How many requests of a server's own may wait for our reply.
const MOST_ASKED: usize = 32;

/// How much room a buffer keeps between two lines, in bytes.
const KEPT_ROOM: usize = 64 * 1024;

/// Both directions.
pub(in crate::mcp) struct Lines {
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
    pen: Arc<Mutex<Option<ChildStdin>>>,
    stall: Duration,
    over: Flag,
    log: Log,
    asked: Arc<AtomicUsize>,
}

impl Lines {
    /// A server that takes not one byte for as long as `stall` is taken for dead.
    pub(super) fn new(stdout: ChildStdout, stdin: ChildStdin, stall: Duration, over: Flag, log: Log) -> Self {
        let pen = Arc::new(Mutex::new(Some(stdin)));
        Self { stdout: BufReader::new(stdout), line: Vec::new(), pen, stall, over, log, asked: Arc::default() }
    }

    /// The next line is in `self.line`; `false`: there is none. Dropped half-way, it goes on where it was.
    async fn next(&mut self) -> bool {
        loop {
            let Ok(bytes) = self.stdout.fill_buf().await else { return false };
            if bytes.is_empty() {
                return false;
            }
            let end = line_end(bytes);
            let taken = end.map_or(bytes.len(), |end| end + 1);
            if self.line.len() + taken > LONGEST {
                self.log.say("standard output", "a line that is too long; the session ends");
                return false;
            }
            self.line.extend_from_slice(bytes.get(..taken).unwrap_or(bytes));
            self.stdout.consume(taken);
            if end.is_some() {
                return true;
            }
        }
    }

    /// The message in the line, if it is one.
    fn message(&mut self) -> Option<ServerJsonRpcMessage> {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_start_matches('\u{feff}').trim();
        let message = if text.is_empty() { None } else { self.decoded(text) };
        if line.capacity() <= KEPT_ROOM {
            self.line = line;
            self.line.clear();
        }
        message
    }

    /// We declare nothing, so little of what a server says by itself is meant for us, and none of it may pile up.
    fn is_heard(&self, message: &ServerJsonRpcMessage) -> bool {
        match message {
            JsonRpcMessage::Notification(news) => !matches!(
                news.notification,
                ServerNotification::ProgressNotification(_)
                    | ServerNotification::LoggingMessageNotification(_)
                    | ServerNotification::ResourceUpdatedNotification(_)
                    | ServerNotification::CustomNotification(_)
            ),
            JsonRpcMessage::Request(_) => {
                let free = |asked| (asked < MOST_ASKED).then_some(asked + 1);
                self.asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).is_ok()
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => true,
        }
    }

    fn decoded(&self, text: &str) -> Option<ServerJsonRpcMessage> {
        match wire::decode(text) {
            Ok(message) => Some(message).filter(|message| self.is_heard(message)),
            Err(_) => {
                self.log.say("standard output, not the protocol", text.get(..text.floor_char_boundary(4096)).unwrap_or(text));
                None
            }
        }
    }
}

/// Whether it is a reply to a request of the server's.
fn is_reply(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

impl Transport<RoleClient> for Lines {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let (pen, stall, over) = (Arc::clone(&self.pen), self.stall, self.over.clone());
        let reply = is_reply(&message).then(|| Arc::clone(&self.asked));
        async move {
            let mut pen = pen.lock().await;
            if over.is_up() {
                return Err(io::ErrorKind::NotConnected.into());
            }
            let Some(stdin) = pen.as_mut() else { return Err(io::ErrorKind::NotConnected.into()) };
            let mut line = match wire::encode(&message) {
                Ok(line) => line,
                Err(Unsendable::Abandoned) => return Err(io::ErrorKind::TimedOut.into()),
                Err(Unsendable::Encoding) => return Err(io::ErrorKind::InvalidData.into()),
            };
            line.push(b'\n');
            let mut writing = Writing { ticket: wire::ticket(&message).cloned(), whole: line.len(), taken: 0 };
            drop(message);
            let written = tokio::select! {
                written = written(stdin, &line, &mut writing.taken, stall) => written,
                () = over.raised() => Err(io::ErrorKind::BrokenPipe.into()),
            };
            if written.is_err() {
                over.raise();
            }
            if let Some(asked) = reply {
                asked.fetch_sub(1, Ordering::Relaxed);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let over = self.over.clone();
        loop {
            let more = tokio::select! {
                biased;
                more = self.next() => more,
                () = over.raised() => false,
            };
            if !more {
                over.raise();
                return None;
            }
            if let Some(message) = self.message() {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.over.raise();
        drop(self.pen.lock().await.take());
        Ok(())
    }
}

/// A message on its way. Without its end it is none, so a server that got no more of it has not taken it.
struct Writing {
    ticket: Option<Ticket>,
    whole: usize,
    taken: usize,
}

impl Drop for Writing {
    fn drop(&mut self) {
        // Only the line break could be done without.
        if let Some(ticket) = self.ticket.take()
            && self.taken + 1 < self.whole
        {
            ticket.untaken();
        }
    }
}

/// Writes the line, and counts the bytes that were taken; each step of it may last as long as `stall`, the whole of it as long as it makes
/// steps.
async fn written(stdin: &mut ChildStdin, line: &[u8], taken: &mut usize, stall: Duration) -> io::Result<()> {
    while let Some(rest) = line.get(*taken..).filter(|rest| !rest.is_empty()) {
        let step = timeout(stall, stdin.write(rest)).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        if step == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        *taken += step;
    }
    stdin.flush().await
}
