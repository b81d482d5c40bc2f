//! Every way in which a provider can fail, one row each, and what its caller is told.

use serde_json::{Value, json};

use crate::faulty::{Act, Play, STREAM, chunk, completed, completion, event, json_of, said, stream, whole};

/// What becomes of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen {
    /// It is answered as if nothing had been.
    Answered,
    /// It fails: the status and code for the caller, and the word for the call.
    Failed(u16, &'static str, &'static str),
    /// It fails, and says when to come again.
    Later(&'static str),
    /// This row is not played in this mode.
    NotPlayed,
}

use Act::{Close, Deaf, Drip, Flood, HalfClose, Hang, Part, Read, Reset, Send};
use Seen::{Answered, Failed, Later, NotPlayed};

/// One way to fail.
pub(crate) struct Fault {
    /// Its name.
    pub(crate) name: &'static str,
    /// The model that is asked; each has a provider that can fail so.
    pub(crate) model: &'static str,
    /// Whether the request is so long that it does not fit into the network's buffers.
    pub(crate) is_long: bool,
    /// Whether it is the same in every dialect.
    pub(crate) is_for_all: bool,
    /// What the provider does when it is asked for a plain answer, and what is seen of that.
    pub(crate) plain: (Play, Seen),
    /// The same where it is asked for a stream.
    pub(crate) streamed: (Play, Seen),
}

/// The provider can fail as it likes.
const FAULTY: &str = "m";

const TIMEOUT: Seen = Failed(504, "upstream_timeout", "timeout");
const CUT: Seen = Failed(502, "upstream_error", "cut");
const NONSENSE: Seen = Failed(502, "upstream_error", "server_error");
const NOT_REACHED: Seen = Failed(502, "upstream_error", "connect_error");
const OTHER: Seen = Failed(502, "upstream_error", "client_error");

fn fault(name: &'static str, plain: (Play, Seen), streamed: (Play, Seen)) -> Fault {
    Fault { name, model: FAULTY, is_long: false, is_for_all: false, plain, streamed }
}

/// The same whatever is asked for.
fn alike(name: &'static str, play: Play, seen: Seen) -> Fault {
    fault(name, (play.clone(), seen), (play, seen))
}

/// The same whatever is asked for, in every dialect.
fn everywhere(name: &'static str, play: Play, seen: Seen) -> Fault {
    Fault { is_for_all: true, ..alike(name, play, seen) }
}

/// After a request was read, these bytes, then the rest.
fn after(bytes: impl Into<Vec<u8>>, rest: &[Act]) -> Play {
    [vec![Read, Send(bytes.into())], rest.to_vec()].concat()
}

/// After a request was read, this response and nothing else.
fn says(bytes: impl Into<Vec<u8>>) -> Play {
    after(bytes, &[])
}

/// The head of a plain answer whose body is longer than what follows.
const PLAIN: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n";

/// Half of a plain answer, and a stream that has said something and is inside its next event.
fn half_told() -> (Vec<u8>, Vec<u8>) {
    let begun = event(&json!({"role": "assistant", "content": "one"}), &Value::Null);
    let half = &event(&json!({"content": "two"}), &Value::Null)[..30];
    (format!("{PLAIN}{{\"choices\":[{{").into_bytes(), [STREAM.as_bytes(), &chunk(begun), &chunk(half)].concat())
}

/// Every row.
pub(crate) fn all() -> Vec<Fault> {
    [unreachable(), silent(), broken_off(), nonsense(), refusals(), floods(), odd_but_whole()].into_iter().flatten().collect()
}

/// Nobody there.
fn unreachable() -> Vec<Fault> {
    let of = |name, model, seen| Fault { model, ..alike(name, vec![], seen) };
    vec![
        of("a closed port", "closed", NOT_REACHED),
        of("a name that nobody has", "unknown", NOT_REACHED),
        of("a connection that is never taken", "full", TIMEOUT),
    ]
}

/// It hangs, at each stage.
fn silent() -> Vec<Fault> {
    let (plain, streamed) = half_told();
    vec![
        everywhere("reads nothing", vec![Deaf], TIMEOUT),
        Fault { is_long: true, ..alike("reads nothing of a long request", vec![Deaf], TIMEOUT) },
        everywhere("says nothing", vec![Read, Hang], TIMEOUT),
        everywhere("stops inside its head", after("HTTP/1.1 200 OK\r\ncontent-ty", &[Hang]), TIMEOUT),
        everywhere("drips a head", after("HTTP/1.1 200 OK\r\n", &[Drip(b"x-a: b\r\n".to_vec())]), TIMEOUT),
        everywhere("stops in the middle of its answer", vec![Read, Part(55), Hang], TIMEOUT),
        fault("stops after its head", (after(PLAIN, &[Hang]), TIMEOUT), (after(STREAM, &[Hang]), TIMEOUT)),
        fault("stops inside its body", (after(plain, &[Hang]), TIMEOUT), (after(streamed, &[Hang]), TIMEOUT)),
        Fault {
            model: "bare",
            ..fault(
                "drips and says nothing",
                (after(STREAM, &[Drip(chunk(" "))]), TIMEOUT),
                (after(STREAM, &[Drip(chunk(": working\n\n"))]), TIMEOUT),
            )
        },
    ]
}

/// It breaks off, at each stage and in each way.
fn broken_off() -> Vec<Fault> {
    let (plain, streamed) = half_told();
    let half_a_head = "HTTP/1.1 200 OK\r\ncontent-ty";
    let half_a_chunk = |bytes: &[u8]| [bytes, b"ff\r\nabc"].concat();
    let mut rows = vec![
        everywhere("resets at once", vec![Reset], CUT),
        everywhere("closes at once", vec![Close], CUT),
        everywhere("ends its side before it says anything", vec![Read, HalfClose, Hang], CUT),
        fault(
            "half a chunk",
            (after(half_a_chunk(STREAM.as_bytes()), &[Close]), CUT),
            (after(half_a_chunk(&streamed), &[Close]), CUT),
        ),
        fault(
            "ends its side inside its body",
            (after(plain.clone(), &[HalfClose, Hang]), CUT),
            (after(streamed.clone(), &[HalfClose, Hang]), CUT),
        ),
    ];
    for (how, act) in [("closes", Close), ("resets", Reset)] {
        let rest = [act];
        let name = |stage: &str| -> &'static str { Box::leak(format!("{how} {stage}").into_boxed_str()) };
        rows.extend([
            everywhere(name("after it has read"), [&[Read][..], &rest].concat(), CUT),
            everywhere(name("inside its head"), after(half_a_head, &rest), CUT),
            fault(name("after its head"), (after(PLAIN, &rest), CUT), (after(STREAM, &rest), CUT)),
            everywhere(name("after a third of its answer"), [&[Read, Part(30)][..], &rest].concat(), CUT),
            everywhere(name("in the middle of its answer"), [&[Read, Part(55)][..], &rest].concat(), CUT),
            fault(name("inside its body"), (after(plain.clone(), &rest), CUT), (after(streamed.clone(), &rest), CUT)),
        ]);
    }
    let told: Vec<u8> = [STREAM.as_bytes(), &chunk(&said("half")[0]), b"0\r\n\r\n"].concat();
    rows.push(fault("a stream that ends before its answer does", (vec![], NotPlayed), (says(told), CUT)));
    rows
}

/// It says what cannot be read.
fn nonsense() -> Vec<Fault> {
    let binary: Vec<u8> = (0..4096u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8 | 0x80).collect();
    let events = |data: &str| [STREAM.as_bytes(), &chunk(data), b"0\r\n\r\n"].concat();
    let of = |body: &[u8]| whole("200 OK", &[("content-type", "application/json")], body);
    vec![
        everywhere("no HTTP", says("SSH-2.0-OpenSSH_9.2\r\n\r\n"), NONSENSE),
        everywhere("binary in place of a head", after(binary.clone(), &[Close]), NONSENSE),
        alike(
            "two lengths",
            says("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
            NONSENSE,
        ),
        alike("a chunk of no length", after([STREAM.as_bytes(), b"xyz\r\n"].concat(), &[Hang]), CUT),
        alike("no JSON", says(of(b"{\"choices\":[{")), NONSENSE),
        everywhere("another JSON", says(of(b"[]")), NONSENSE),
        alike("no choices", says(of(b"{\"choices\":[]}")), NONSENSE),
        everywhere("nothing under a success", says(of(b"")), NONSENSE),
        everywhere("binary under a success", says(of(&binary)), NONSENSE),
        alike(
            "a page",
            says(whole("200 OK", &[("content-type", "text/html")], "<html><body>Hello</body></html>")),
            plain_or_cut(),
        ),
        fault("events that are no chunks", (says(events("data: {}\n\n")), NONSENSE), (says(events("data: {no\n\n")), NONSENSE)),
        fault("binary in place of events", (vec![], NotPlayed), (says(events(&String::from_utf8_lossy(&binary))), CUT)),
        fault("events where a plain answer was asked for", (says(stream(&said("done"))), NONSENSE), (vec![], NotPlayed)),
        alike(
            "packed, and not as it says",
            says(whole("200 OK", &[("content-type", "text/event-stream"), ("content-encoding", "gzip")], "data: {}\n\n")),
            NONSENSE,
        ),
        everywhere("packed as nobody knows", says(whole("200 OK", &[("content-encoding", "lzma")], "{}")), NONSENSE),
        fault(
            "an error under a success",
            (says(of(br#"{"error":{"message":"overloaded"}}"#)), NONSENSE),
            (says(events("data: {\"error\":{\"message\":\"overloaded\"}}\n\n")), NONSENSE),
        ),
    ]
}

/// A page is no stream either: it ends, and has said nothing.
const fn plain_or_cut() -> Seen {
    Failed(502, "upstream_error", "")
}

/// It refuses, in its words or in nobody's.
fn refusals() -> Vec<Fault> {
    let no = |status: &str, headers: &[(&str, &str)], body: &str| says(whole(status, headers, body));
    let bad = |code| Failed(400, code, "client_error");
    let mut rows = vec![
        everywhere("500", no("500 Oops", &[], "<html>secret</html>"), NONSENSE),
        everywhere("503 for a minute", no("503 Busy", &[("retry-after", "60")], ""), NONSENSE),
        alike("529", no("529 Overloaded", &[], r#"{"type":"error","error":{"type":"overloaded_error"}}"#), NONSENSE),
        everywhere("401", no("401 No", &[], r#"{"error":{"message":"key"}}"#), OTHER),
        everywhere("404", no("404 No", &[], "nothing"), OTHER),
        alike("418", no("418 Teapot", &[], ""), OTHER),
        everywhere("302", no("302 Found", &[("location", "http://127.0.0.1:9/")], ""), OTHER),
        alike("307", no("307 Elsewhere", &[("location", "/v1/other")], ""), OTHER),
        alike("400 in its words", no("400 No", &[], r#"{"error":{"message":"no","code":"odd"}}"#), bad("odd")),
        everywhere("400 as a page", no("400 No", &[("content-type", "text/html")], "<html>"), bad("upstream_invalid_request")),
        everywhere("400 without a word", no("400 No", &[], ""), bad("upstream_invalid_request")),
        alike("400 in a list", no("400 No", &[], r#"[{"error":{"message":"no","code":"odd"}}]"#), bad("odd")),
        alike("400 as a string", no("400 No", &[], r#"{"error":"no"}"#), bad("upstream_invalid_request")),
        alike(
            "400 whose reason never ends",
            after("HTTP/1.1 400 No\r\n\r\n", &[Flood(b"no ".to_vec())]),
            bad("upstream_invalid_request"),
        ),
        alike(
            "400 whose reason hangs",
            after("HTTP/1.1 400 No\r\ncontent-length: 9\r\n\r\n{", &[Hang]),
            bad("upstream_invalid_request"),
        ),
        alike("422", no("422 No", &[], r#"{"detail":"no"}"#), Failed(422, "upstream_invalid_request", "client_error")),
    ];
    const FUTURE: &str = "Fri, 01 Jan 2100 00:00:00 GMT";
    const PAST: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    let limits = [
        ("429 for half a minute", &[("retry-after", "30")][..], "30"),
        ("429 until a day", &[("retry-after", FUTURE)], FUTURE),
        ("429 until long ago", &[("retry-after", PAST)], PAST),
        ("429 until nonsense", &[("retry-after", "soon")], ""),
        ("429 without a time", &[], ""),
        ("429 in milliseconds", &[("retry-after-ms", "7200")], "8"),
        ("429 for more than a number holds", &[("retry-after", "99999999999999999999")], "3200000000"),
    ];
    let limits = limits.into_iter();
    rows.extend(limits.map(|(name, headers, after)| everywhere(name, no("429 Slow", headers, "{}"), Later(after))));
    let inside =
        [STREAM.as_bytes(), &chunk("data: {\"error\":{\"code\":429,\"message\":\"slow down\"}}\n\n"), b"0\r\n\r\n"].concat();
    rows.push(fault("429 inside a stream", (vec![], NotPlayed), (says(inside), Later(""))));
    rows
}

/// It never ends.
fn floods() -> Vec<Fault> {
    let chunked = |bytes: &[u8]| chunk(bytes.repeat(1000));
    let json = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{\"choices\":\"";
    let json =
        [json.split_once("\r\n\r\n").map_or("", |(head, _)| head).as_bytes(), b"\r\n\r\n", &chunk("{\"choices\":\"")].concat();
    let bomb = |beginning: &str| {
        let plain = [beginning.as_bytes(), &b"x".repeat(32 * 1024 * 1024)].concat();
        let packed = miniz_oxide::deflate::compress_to_vec_zlib(&plain, 1);
        let kind = if beginning.starts_with("data") { "text/event-stream" } else { "application/json" };
        says(whole("200 OK", &[("content-type", kind), ("content-encoding", "deflate")], packed))
    };
    let stream_of = |bytes: &[u8]| (after(STREAM, &[Flood(chunked(bytes))]), NONSENSE);
    vec![
        everywhere("an endless head", after("HTTP/1.1 200 OK\r\n", &[Flood(b"x-a: b\r\n".to_vec())]), NONSENSE),
        everywhere("an endless line of a head", after("HTTP/1.1 200 OK\r\nx: ", &[Flood(b"x".to_vec())]), NONSENSE),
        alike("preliminaries without end", vec![Read, Flood(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec())], TIMEOUT),
        Fault { is_for_all: true, ..fault("an endless line", (after(json, &[Flood(chunked(b"x"))]), NONSENSE), stream_of(b"x")) },
        fault("an endless event", (vec![], NotPlayed), stream_of(b"data: x\n")),
        fault("endless comments", (vec![], NotPlayed), stream_of(b": working\n\n")),
        // Each word is the answer's, so it is told; but what a round comes to is kept, and has its bound.
        fault("an endless answer", (vec![], NotPlayed), (after(STREAM, &[Flood(chunk(long_event("content")))]), NONSENSE)),
        fault("a call that never ends", (vec![], NotPlayed), (after(STREAM, &[Flood(chunk(long_event("arguments")))]), NONSENSE)),
        fault("a bomb", (bomb("{\"choices\":\""), NONSENSE), (bomb("data: "), NONSENSE)),
    ]
}

/// An event with a mebibyte of text, or of a call's arguments.
fn long_event(of: &str) -> String {
    let text = "long ".repeat(200 * 1024);
    let call = json!([{"index": 0, "id": "c1", "type": "function", "function": {"name": "lookup", "arguments": text}}]);
    event(&if of == "content" { json!({"content": text}) } else { json!({"tool_calls": call}) }, &Value::Null)
}

/// What is odd, and whole all the same.
fn odd_but_whole() -> Vec<Fault> {
    let message = json!({"role": "assistant", "content": "done"});
    let without_end = [STREAM.as_bytes(), &chunk(said("done").concat()), b"0\r\n\r\n"].concat();
    let closed = [STREAM.as_bytes(), &chunk(said("done").concat())].concat();
    let only_finished = closed.clone();
    let left_open = [closed.as_slice(), &chunk("data: [DONE]\n\n")].concat();
    let odd_kind = |body: &str| whole("200 OK", &[("content-type", "text/plain")], body);
    let zlib = |body: &[u8]| miniz_oxide::deflate::compress_to_vec_zlib(body, 6);
    let packed = |kind, body: &[u8]| whole("200 OK", &[("content-type", kind), ("content-encoding", "deflate")], zlib(body));
    let events = format!("{}data: [DONE]\n\n", said("done").concat());
    let plain = completed(&message).to_string();
    vec![
        fault("only the end mark is missing", (vec![], NotPlayed), (says(without_end), Answered)),
        fault("closed after its finish reason", (vec![], NotPlayed), (after(closed, &[Close]), Answered)),
        fault("left open after its finish reason", (vec![], NotPlayed), (after(only_finished, &[Hang]), Answered)),
        fault("left open after its end mark", (vec![], NotPlayed), (after(left_open, &[Hang]), Answered)),
        fault("of another content type", (says(odd_kind(&plain)), Answered), (says(odd_kind(&events)), Answered)),
        fault("a plain answer to a stream", (says(completion(&message)), Answered), (says(completion(&message)), Answered)),
        fault(
            "packed",
            (says(packed("application/json", plain.as_bytes())), Answered),
            (says(packed("text/event-stream", events.as_bytes())), Answered),
        ),
        alike("created", says(json_of("201 Created", &completed(&message))), Answered),
    ]
}
