//! The scripted upstream: a model whose answer follows from the request's `model` and from what is in its transcript, and the tools.
//!
//! It checks what a gateway sends: a transcript in which a call has not exactly one result is answered with 400, so that a run over a
//! wrong one cannot count.

use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;
use tokio::net::{TcpListener, TcpStream};

use crate::payload::{self, CHUNKS, OPEN_CHUNKS, ROUNDS, TOOLS};
use crate::wire::Wire;

/// Serves until it is ended. Its first line on standard output is its address.
pub(crate) fn run() -> crate::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
        let script = Arc::new(Script::new());
        loop {
            let (stream, _) = listener.accept().await?;
            let script = Arc::clone(&script);
            // A connection that breaks is the peer's affair; the load sees what it got.
            tokio::spawn(async move { serve(stream, &script).await.ok() });
        }
    })
}

/// The answers that are the same each time, ready to be written.
struct Script {
    answer: Vec<u8>,
    calls: [Vec<u8>; ROUNDS],
    closing: [Vec<Vec<u8>>; 2],
}

impl Script {
    fn new() -> Self {
        let closing = |usage: bool| payload::closing(usage).iter().map(|event| chunk(event)).collect();
        Self {
            answer: json(200, &payload::answer()),
            calls: std::array::from_fn(|round| json(200, &payload::calls(round))),
            closing: [closing(false), closing(true)],
        }
    }
}

async fn serve(stream: TcpStream, script: &Script) -> std::io::Result<()> {
    let mut wire = Wire::new(stream)?;
    while let Some(head) = wire.request().await? {
        let body = wire.body(&head).await?;
        match (head.path.as_str(), member(&body, b"\"model\":\"")) {
            (path, _) if path.starts_with("/tools/") => wire.send(&json(200, &payload::tool_answer(path))).await?,
            ("/v1/chat/completions", Some(b"plain")) => wire.send(&script.answer).await?,
            ("/v1/chat/completions", Some(b"loop")) => match round(&body) {
                Some(ROUNDS) => wire.send(&script.answer).await?,
                Some(round) => wire.send(&script.calls[round]).await?,
                None => wire.send(&fault("the transcript is wrong")).await?,
            },
            ("/v1/chat/completions", Some(b"stream")) => relay(&mut wire, script, &body, CHUNKS, None).await?,
            ("/v1/chat/completions", Some(b"paced")) => {
                relay(&mut wire, script, &body, CHUNKS, Some(Duration::from_millis(10))).await?;
            }
            ("/v1/chat/completions", Some(b"open")) => {
                relay(&mut wire, script, &body, OPEN_CHUNKS, Some(Duration::from_millis(500))).await?;
            }
            _ => wire.send(&fault("not in the script")).await?,
        }
    }
    Ok(())
}

/// How many rounds the transcript has behind it; `None` where a call is not followed by exactly one result.
fn round(body: &[u8]) -> Option<usize> {
    let results = count(body, b"\"tool_call_id\"");
    let round = results / TOOLS.len();
    let whole = round <= ROUNDS && results == round * TOOLS.len();
    let ids = (0..round).flat_map(|round| [payload::call_id(round, 0), payload::call_id(round, 1)]);
    // Once where the model called, once where the result stands.
    (whole && ids.into_iter().all(|id| count(body, id.as_bytes()) == 2)).then_some(round)
}

fn count(body: &[u8], needle: &[u8]) -> usize {
    memmem::find_iter(body, needle).count()
}

/// The text after `start`, up to the next quotation mark. The model's name holds `scripted-` in front where a gateway maps it.
fn member<'a>(body: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    let rest = &body[memmem::find(body, start)? + start.len()..];
    let name = &rest[..memchr::memchr(b'"', rest)?];
    Some(name.strip_prefix(b"scripted-").unwrap_or(name))
}

async fn relay(wire: &mut Wire, script: &Script, body: &[u8], ticks: usize, pause: Option<Duration>) -> std::io::Result<()> {
    if memmem::find(body, b"\"stream\":true").is_none() {
        return wire.send(&fault("not asked for a stream")).await;
    }
    wire.send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
    )
    .await?;
    wire.send(&chunk(&payload::opening())).await?;
    for _ in 0..ticks {
        match pause {
            Some(pause) => tokio::time::sleep(pause).await,
            // Streams take turns, as those of a real model do: what is written back to back is one packet to the reader.
            None => tokio::task::yield_now().await,
        }
        wire.send(&chunk(&payload::tick())).await?;
    }
    let usage = memmem::find(body, b"\"include_usage\":true").is_some();
    for event in &script.closing[usize::from(usage)] {
        wire.send(event).await?;
    }
    wire.send(b"0\r\n\r\n").await
}

fn chunk(event: &str) -> Vec<u8> {
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

fn json(status: u16, body: &str) -> Vec<u8> {
    let reason = if status == 200 { "OK" } else { "Bad Request" };
    let length = body.len();
    format!("HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

fn fault(message: &str) -> Vec<u8> {
    json(400, &format!(r#"{{"error":{{"message":"{message}","type":"invalid_request_error","param":null,"code":"script"}}}}"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_counts_its_rounds_only_when_each_call_has_one_result() {
        let result = |round, at| format!(r#"{{"role":"tool","tool_call_id":"{}"}}"#, payload::call_id(round, at));
        let table = [
            (String::new(), Some(0)),
            (payload::calls(0) + &result(0, 0) + &result(0, 1), Some(1)),
            (payload::calls(0) + &result(0, 0), None),
            (payload::calls(0) + &result(0, 0) + &result(0, 0), None),
            (payload::calls(0) + &result(0, 1) + &result(0, 0) + &payload::calls(1) + &result(1, 0) + &result(1, 1), Some(2)),
        ];
        for (transcript, expected) in table {
            assert_eq!(round(transcript.as_bytes()), expected, "{transcript}");
        }
    }
}
