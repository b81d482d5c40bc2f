//! The same for tools: whatever one does, the run goes on. The model reads one sentence of ours, or a result within its bounds, and the gateway
//! holds no more of a flood than that.

use serde_json::{Value, json};
use toolgate_tests::scenario::Mode;
use toolgate_tests::stage::eventually;
use toolgate_tests::stand::Stand;

use crate::faulty::Act::{self, Close, Drip, Flood, Hang, Read, Reset, Send};
use crate::faulty::{Faulty, Play, chunk, whole};
use crate::peak_of;

/// The most memory that the gateway may have held when the drill is over, in KiB. A flood of a gibibyte is four times that.
const MOST: u64 = 256 * 1024;

/// How long a result may be, in bytes.
const MAX_RESULT: usize = 2000;

/// What a model reads of a call.
enum Seen {
    /// That it failed.
    Failed,
    /// That it took too long.
    Late,
    /// A result that holds this.
    Result(&'static str),
}

/// What a tool does, and what becomes of it.
type Row = (&'static str, Play, Seen);

const GIBIBYTE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

fn says(bytes: impl AsRef<[u8]>) -> Play {
    vec![Read, Send(bytes.as_ref().to_vec())]
}

fn then(bytes: impl AsRef<[u8]>, act: Act) -> Play {
    [says(bytes), vec![act]].concat()
}

/// With this said of the length of these bytes.
fn length(said: &str, body: &[u8]) -> Play {
    then([format!("HTTP/1.1 200 OK\r\n{said}\r\n\r\n").as_bytes(), body].concat(), Close)
}

/// What unpacks to 64 MiB of the same letter.
fn bomb() -> Play {
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(&vec![b'x'; 64 * 1024 * 1024], 1);
    says(whole("200 OK", &[("content-encoding", "deflate")], packed))
}

fn rows() -> Vec<Row> {
    use Seen::{Failed, Late, Result};
    const CUT: Seen = Result("bytes shown]");
    let mega = |start: &str, letter: &str| [start, &letter.repeat(1 << 20), "\r\ncontent-length: 2\r\n\r\nok"].concat();
    vec![
        ("a gibibyte", then(GIBIBYTE, Flood(b"x".repeat(1024))), CUT),
        ("a gibibyte without a character", then(GIBIBYTE, Flood(vec![0xff; 1024])), CUT),
        ("chunks without end", then(CHUNKED, Flood(chunk("x".repeat(64 * 1024)))), CUT),
        ("a chunk without end", then([CHUNKED, "ffffffff\r\n"].concat(), Flood(b"x".repeat(1024))), CUT),
        ("extensions of a chunk without end", then([CHUNKED, "1;"].concat(), Flood(b"x".to_vec())), Failed),
        ("a body that ends with its connection, and does not", then("HTTP/1.1 200 OK\r\n\r\n", Flood(b"x".repeat(1024))), CUT),
        ("a bomb", bomb(), CUT),
        ("a body that drips without end", then(CHUNKED, Drip(chunk("x"))), Late),
        ("a head of a mebibyte", says(mega("HTTP/1.1 200 OK\r\nx: ", "y")), Failed),
        ("a head without end", then("HTTP/1.1 200 OK\r\n", Flood(b"x-a: b\r\n".to_vec())), Failed),
        ("preliminaries without end", vec![Read, Flood(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec())], Late),
        ("nothing", vec![Read, Hang], Late),
        ("half a head, and nothing", then("HTTP/1.1 200 OK\r\ncontent-le", Hang), Late),
        ("half a body, and nothing", then("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", Hang), Late),
        ("dead in its head, and asked again", then("HTTP/1.1 200 OK\r\ncontent-le", Reset), Result("done")),
        ("dead in its body", then("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", Reset), Failed),
        ("dead in a chunk", then([CHUNKED, "9\r\nhalf"].concat(), Close), Failed),
        ("dead between two chunks", then([CHUNKED, "4\r\nhalf\r\n"].concat(), Close), Failed),
        ("shorter than it says", length("content-length: 100", b"short"), Failed),
        ("longer than it says", length("content-length: 2", b"ok, and more"), Result("ok")),
        ("a length below zero", length("content-length: -1", b"x"), Failed),
        ("a length that is none", length("content-length: many", b"x"), Failed),
        ("a length beyond all", length("content-length: 99999999999999999999999", b"x"), Failed),
        ("two lengths", length("content-length: 2\r\ncontent-length: 3", b"ok!"), Failed),
        ("a length and chunks", length("content-length: 2\r\ntransfer-encoding: chunked", b"2\r\nok\r\n0\r\n\r\n"), Failed),
        ("no UTF-8", says(whole("200 OK", &[], b"a\xff\xfe\xc3(z")), Result("\u{fffd}")),
        ("zeros", says(whole("200 OK", &[], b"a\0\0z")), Result("z")),
        ("a cut inside a character", says(whole("200 OK", &[], &"né".as_bytes()[..2])), Result("n\u{fffd}")),
        ("another protocol", says("SSH-2.0-OpenSSH_9.2\r\n\r\n"), Failed),
        ("a change of protocol", says("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"), Failed),
    ]
}

/// A run in which the model asks for the tool so many times at once.
fn round(times: usize) -> [Value; 2] {
    [json!({"calls": [{"name": "faulty", "arguments": {"n": "#"}, "times": times}]}), json!({"content": "done"})]
}

struct Drill {
    stand: Stand,
    faulty: Faulty,
    gateway: toolgate_tests::gateway::Gateway,
}

impl Drill {
    async fn with(rounds: impl IntoIterator<Item = [Value; 2]>) -> Self {
        let replies: Vec<Value> = rounds.into_iter().flatten().collect();
        let (stand, faulty) = (Stand::with(json!(replies), json!({})).await, Faulty::start().await);
        let url = format!("http://{}/", faulty.address);
        let tool = json!({
            "name": "faulty", "group": "wild", "description": "D", "timeout": "2s", "max_result": MAX_RESULT,
            "parameters": {"type": "object", "properties": {"n": {"type": "string"}}},
            "http": {"url": url, "query": {"n": "{n}"}},
        });
        let gateway = stand
            .serve(json!({
                "models": {"m": {"tools": {"groups": ["lab", "wild"], "max_calls": 300}}},
                "groups": {"wild": {"data_class": "public", "egress": [faulty.address]}},
                "tools": [tool],
            }))
            .await;
        Self { stand, faulty, gateway }
    }

    /// One run, and what its model has read of its calls.
    async fn run(&self, about: &str) -> Vec<String> {
        let response = self.stand.ask(Mode::Plain, json!({})).await;
        assert_eq!(response.status, 200, "{about}: {}", response.text());
        assert_eq!(response.json()["choices"][0]["message"]["content"], json!("done"), "{about}: {}", response.text());
        let received = self.stand.upstream.received();
        let messages = received.last().expect("a request").heard["messages"].as_array().cloned().unwrap_or_default();
        let read = messages.iter().filter(|message| message["role"] == "tool");
        read.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
    }

    async fn is_quiet(&self, about: &str) {
        assert!(self.faulty.until_idle().await, "{about}: {} connections stay busy", self.faulty.busy());
        eventually(&format!("nothing is in flight after: {about}"), || async {
            self.gateway.metric("toolgate_in_flight").await == 0.0
        })
        .await;
    }

    fn end(&self) {
        let peak = peak_of(&self.gateway);
        assert!(peak > 0 && peak <= MOST, "the gateway held {peak} KiB");
        assert!(!self.gateway.log().contains("panicked"), "{}", self.gateway.log());
    }
}

#[tokio::test]
async fn whatever_a_tool_does_its_run_goes_on() {
    let _turn = crate::TURNS.acquire().await;
    let rows = rows();
    let drill = Drill::with(rows.iter().map(|_| round(1))).await;
    for (name, play, seen) in rows {
        drill.faulty.will([play]);
        let read = drill.run(name).await;
        let [text] = read.as_slice() else { panic!("{name}: {read:?}") };
        match seen {
            Seen::Failed => assert_eq!(text, "Error: tool \"faulty\" failed.", "{name}"),
            Seen::Late => assert_eq!(text, "Error: tool \"faulty\" timed out.", "{name}"),
            Seen::Result(part) => assert!(text.contains(part) && !text.starts_with("Error"), "{name}: {text}"),
        }
        // What it is wrapped in comes on top.
        assert!(text.len() <= MAX_RESULT + 1000, "{name}: {} bytes", text.len());
        assert_eq!(drill.faulty.left(), 0, "{name}: the tool was not asked");
        drill.is_quiet(name).await;
    }
    drill.end();
}

#[tokio::test]
async fn two_hundred_calls_that_flood_hold_no_more_than_their_results() {
    let _turn = crate::TURNS.acquire().await;
    let drill = Drill::with([round(200)]).await;
    drill.faulty.will((0..200).map(|_| then(GIBIBYTE, Flood(b"x".repeat(1024)))));
    let read = drill.run("200 floods").await;
    assert_eq!(read.len(), 200);
    assert!(read.iter().all(|text| text.contains("bytes shown]") && text.len() <= MAX_RESULT + 1000));
    drill.is_quiet("200 floods").await;
    drill.end();
}
