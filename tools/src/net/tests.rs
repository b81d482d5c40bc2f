//! The client against servers that say exactly what a test has them say, byte for byte.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use toolgate_config::address::{HostPort, Origin, Scheme};

use super::*;
use crate::scripted::{Event, Script, Server, Step, Step::*, answer};

pub(super) const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(60);
pub(super) const PATIENT: Patience = Patience { connect: LONG, first_byte: LONG };

fn request(method: Method, body: &'static str) -> Request<Segments> {
    let mut request = Request::new(Segments::from(Bytes::from_static(body.as_bytes())));
    *request.method_mut() = method;
    *request.uri_mut() = "/v1/x?y=z".parse().unwrap();
    request
}

/// The status and the body of an answer that was read to its end.
type Whole = Result<(u16, String), NetError>;

/// Asks and reads the answer to its end.
async fn ask(net: &Net, to: &Origin, method: Method) -> Whole {
    let answer = net.send(to, request(method, ""), PATIENT).await?;
    let status = answer.head.status.as_u16();
    let body = answer.body.whole(1 << 20, LONG).await?;
    Ok((status, String::from_utf8(body.to_vec()).unwrap()))
}

async fn get(net: &Net, to: &Origin) -> Whole {
    ask(net, to, Method::GET).await
}

fn ok(body: &str) -> Whole {
    Ok((200, body.to_owned()))
}

#[tokio::test]
async fn what_is_sent_is_the_request_and_nothing_else() {
    let mut server = Server::start([vec![Hear, answer("done"), Hear, answer("done")]]).await;
    let net = Net::new();
    let mut post = request(Method::POST, "");
    *post.body_mut() = ["{", "", "\"a\":1", "}"].map(|piece| Bytes::from_static(piece.as_bytes())).into_iter().collect();
    post.headers_mut().insert("host", "evil.example".parse().unwrap());
    net.send(&server.origin, post, PATIENT).await.unwrap().body.whole(10, LONG).await.unwrap();
    get(&net, &server.origin).await.unwrap();
    let host = server.origin.authority();
    assert_eq!(server.heard().await, format!("POST /v1/x?y=z HTTP/1.1\r\nhost: {host}\r\ncontent-length: 7\r\n\r\n{{\"a\":1}}"));
    assert_eq!(server.heard().await, format!("GET /v1/x?y=z HTTP/1.1\r\nhost: {host}\r\n\r\n"));
}

#[tokio::test]
async fn a_long_body_in_many_pieces_arrives_whole() {
    let mut server = Server::start([vec![Hear, answer("done")]]).await;
    let pieces: Vec<Bytes> = (0..200).map(|at| Bytes::from(format!("{at:05}").repeat(1000))).collect();
    let expected: String = pieces.iter().map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    let mut post = request(Method::POST, "");
    *post.body_mut() = pieces.into();
    Net::new().send(&server.origin, post, PATIENT).await.unwrap();
    assert!(server.heard().await.ends_with(&expected));
}

/// Each way to frame an answer: what it is read as, and whether its connection serves a second request.
#[tokio::test]
async fn answers_are_read_as_they_are_framed() {
    let head = "HTTP/1.1 200 OK\r\n";
    let long_header = format!("{head}x: {}\r\ncontent-length: 0\r\n\r\n", "x".repeat(40_000));
    let fitting_header = format!("{head}x: {}\r\ncontent-length: 0\r\n\r\n", "x".repeat(30_000));
    let table: Vec<(&str, String, Whole, bool)> = vec![
        ("length", format!("{head}content-length: 2\r\n\r\nok"), ok("ok"), true),
        ("no body", format!("{head}content-length: 0\r\n\r\n"), ok(""), true),
        ("204", "HTTP/1.1 204 No Content\r\n\r\n".to_owned(), Ok((204, String::new())), true),
        (
            "304 with a length",
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n".to_owned(),
            Ok((304, String::new())),
            true,
        ),
        ("close", format!("{head}connection: close\r\ncontent-length: 2\r\n\r\nok"), ok("ok"), false),
        ("chunked", format!("{head}transfer-encoding: Chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\n\r\n"), ok("ok"), true),
        (
            "trailers",
            format!("{head}transfer-encoding: chunked\r\ntrailer: x\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n"),
            ok("ok"),
            true,
        ),
        ("100 first", format!("HTTP/1.1 100 Continue\r\n\r\n{head}content-length: 2\r\n\r\nok"), ok("ok"), true),
        ("103 first", format!("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n{head}content-length: 2\r\n\r\nok"), ok("ok"), true),
        ("HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nuntil the end".to_owned(), ok("until the end"), false),
        ("HTTP/1.0, kept", "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok".to_owned(), ok("ok"), true),
        ("until the end", format!("{head}\r\nuntil the end"), ok("until the end"), false),
        ("30 kB of header", fitting_header, ok(""), true),
        ("40 kB of header", long_header, Err(NetError::Protocol), false),
        ("cut", format!("{head}content-length: 9\r\n\r\nok"), Err(NetError::Cut), false),
        ("cut chunk", format!("{head}transfer-encoding: chunked\r\n\r\n5\r\nok"), Err(NetError::Cut), false),
        ("no last chunk", format!("{head}transfer-encoding: chunked\r\n\r\n2\r\nok\r\n"), Err(NetError::Cut), false),
        ("bad chunk size", format!("{head}transfer-encoding: chunked\r\n\r\nx\r\nok\r\n0\r\n\r\n"), Err(NetError::Cut), false),
        (
            "huge chunk size",
            format!("{head}transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nok"),
            Err(NetError::Cut),
            false,
        ),
        (
            "length and chunks",
            format!("{head}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
            Err(NetError::Protocol),
            false,
        ),
        (
            "chunks and length",
            format!("{head}transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
            Err(NetError::Protocol),
            false,
        ),
        ("two lengths", format!("{head}content-length: 2\r\ncontent-length: 3\r\n\r\nok!"), Err(NetError::Protocol), false),
        ("signed length", format!("{head}content-length: +2\r\n\r\nok"), Err(NetError::Protocol), false),
        ("no number", format!("{head}content-length: x\r\n\r\nok"), Err(NetError::Protocol), false),
        (
            "other coding",
            format!("{head}transfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
            Err(NetError::Protocol),
            false,
        ),
        ("chunked, not last", format!("{head}transfer-encoding: chunked, gzip\r\n\r\nok"), Err(NetError::Protocol), false),
        (
            "coding twice",
            format!("{head}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
            Err(NetError::Protocol),
            false,
        ),
        (
            "chunks in HTTP/1.0",
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n".to_owned(),
            Err(NetError::Protocol),
            false,
        ),
        ("another protocol", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n".to_owned(), Err(NetError::Protocol), false),
        ("folded header", format!("{head}x: a\r\n b\r\ncontent-length: 0\r\n\r\n"), Err(NetError::Protocol), false),
        ("blank before colon", format!("{head}content-length : 2\r\n\r\nok"), Err(NetError::Protocol), false),
        ("no HTTP", "SSH-2.0-OpenSSH_9.2\r\n".to_owned(), Err(NetError::Protocol), false),
        ("no head", "<html>\r\n\r\n".to_owned(), Err(NetError::Protocol), false),
        ("nothing", String::new(), Err(NetError::Closed), false),
        ("half a head", "HTTP/1.1 200".to_owned(), Err(NetError::Closed), false),
    ];
    for (name, said, expected, kept) in table {
        let first = if kept { vec![Hear, Say(said.into()), Hear, answer("again")] } else { vec![Hear, Say(said.into())] };
        let server = Server::start([first, vec![Hear, answer("again")]]).await;
        let net = Net::new();
        assert_eq!(get(&net, &server.origin).await, expected, "{name}");
        assert_eq!(get(&net, &server.origin).await, ok("again"), "{name}: the next request");
        assert_eq!(server.connections(), if kept { 1 } else { 2 }, "{name}: connections");
    }
}

#[tokio::test]
async fn a_head_request_has_no_body_whatever_its_length() {
    let said = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
    let server = Server::start([vec![Hear, Say(said.into()), Hear, answer("again")]]).await;
    let net = Net::new();
    assert_eq!(ask(&net, &server.origin, Method::HEAD).await, ok(""));
    assert_eq!(get(&net, &server.origin).await, ok("again"));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_answers_nobody() {
    let forged = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    for late in [false, true] {
        let fair = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfair";
        let first = if late {
            vec![Hear, Say(fair.into()), Say(forged.into()), Stay]
        } else {
            vec![Hear, Say(format!("{fair}{forged}").into()), Stay]
        };
        let server = Server::start([first, vec![Hear, answer("own")]]).await;
        let net = Net::new();
        assert_eq!(get(&net, &server.origin).await, ok("fair"));
        tokio::time::sleep(SHORT).await;
        assert_eq!(get(&net, &server.origin).await, ok("own"), "late: {late}");
    }
}

#[tokio::test]
async fn an_idle_connection_that_the_server_closed_costs_nothing() {
    let server = Server::start([vec![Hear, answer("one")], vec![Hear, answer("two")]]).await;
    let net = Net::new();
    assert_eq!(get(&net, &server.origin).await, ok("one"));
    // Until the runtime has seen the end of the connection.
    tokio::time::sleep(SHORT).await;
    assert_eq!(ask(&net, &server.origin, Method::POST).await, ok("two"));
}

#[tokio::test]
async fn a_request_that_may_have_been_read_is_not_sent_twice() {
    let mut server = Server::start([vec![Hear, answer("one"), Hear], vec![Hear, answer("three")]]).await;
    let net = Net::new();
    assert_eq!(get(&net, &server.origin).await, ok("one"));
    assert_eq!(ask(&net, &server.origin, Method::POST).await, Err(NetError::Closed));
    assert_eq!(get(&net, &server.origin).await, ok("three"));
    let methods = [server.heard().await, server.heard().await, server.heard().await];
    assert_eq!(methods.map(|heard| heard.split(' ').next().unwrap().to_owned()), ["GET", "POST", "GET"]);
}

#[tokio::test]
async fn a_connection_is_used_again_and_two_at_once_are_two() {
    let busy: Script = vec![Hear, answer("a"), Hear, answer("b"), Hear, answer("c")];
    let server = Server::start([busy.clone(), busy]).await;
    let net = Net::new();
    let (one, two) = tokio::join!(get(&net, &server.origin), get(&net, &server.origin));
    assert_eq!((one, two), (ok("a"), ok("a")));
    assert_eq!(get(&net, &server.origin).await, ok("b"));
    assert_eq!(get(&net, &server.origin).await, ok("c"));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_silent_server_is_left() {
    let mut server = Server::start([vec![Hear, Stay]]).await;
    let impatient = Patience { connect: LONG, first_byte: SHORT };
    let outcome = Net::new().send(&server.origin, request(Method::POST, "x"), impatient).await;
    assert_eq!(outcome.map(|_| ()), Err(NetError::FirstByteTimeout));
    server.heard().await;
    assert_eq!(server.event().await, Event::Left);
}

#[tokio::test]
async fn an_answer_that_stands_still_is_left() {
    let begun = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
    let mut server = Server::start([vec![Hear, Say(begun.into()), Say("ok".into()), Stay]]).await;
    let mut body = Net::new().send(&server.origin, request(Method::GET, ""), PATIENT).await.unwrap().body;
    assert_eq!(body.expected(), Some(9));
    assert_eq!(body.chunk(LONG).await, Ok(Some(Bytes::from_static(b"ok"))));
    assert_eq!(body.chunk(SHORT).await, Err(NetError::IdleTimeout));
    server.heard().await;
    assert_eq!(server.event().await, Event::Left);
}

#[tokio::test]
async fn looking_in_between_gives_a_silent_server_no_more_time() {
    let begun = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
    let server = Server::start([vec![Hear, Say(begun.into()), Stay]]).await;
    let mut body = Net::new().send(&server.origin, request(Method::GET, ""), PATIENT).await.unwrap().body;
    // Each look is shorter than the patience, so without a memory this would never end.
    let looks = async {
        loop {
            if let Ok(outcome) = tokio::time::timeout(SHORT / 4, body.chunk(SHORT)).await {
                break outcome;
            }
        }
    };
    assert_eq!(tokio::time::timeout(LONG, looks).await, Ok(Err(NetError::IdleTimeout)));
}

#[tokio::test]
async fn time_starts_anew_with_every_chunk() {
    let begun = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut script = vec![Hear, Say(begun.into())];
    for _ in 0..8 {
        script.extend([Wait(SHORT), Say("1\r\nx\r\n".into())]);
    }
    script.push(Say("0\r\n\r\n".into()));
    let server = Server::start([script]).await;
    let body = Net::new().send(&server.origin, request(Method::GET, ""), PATIENT).await.unwrap().body;
    // In all it takes longer than the patience for one chunk.
    assert_eq!(body.whole(100, SHORT * 5).await.as_deref(), Ok(b"xxxxxxxx".as_slice()));
}

#[tokio::test]
async fn what_has_come_is_taken_without_waiting() {
    let said = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n1\r\nc\r\n";
    let server = Server::start([vec![Hear, Say(said.into()), Stay]]).await;
    let mut body = Net::new().send(&server.origin, request(Method::GET, ""), PATIENT).await.unwrap().body;
    let mut seen = vec![body.chunk(LONG).await.unwrap().unwrap()];
    std::future::poll_fn(|cx| {
        while let std::task::Poll::Ready(chunk) = body.poll_chunk(cx) {
            seen.push(chunk.unwrap().unwrap());
        }
        std::task::Poll::Ready(())
    })
    .await;
    assert_eq!(seen, ["a", "b", "c"]);
}

#[tokio::test]
async fn dropping_an_answer_closes_its_connection() {
    let begun = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n";
    let mut server = Server::start([vec![Hear, Say(begun.into()), Stay]]).await;
    let mut body = Net::new().send(&server.origin, request(Method::GET, ""), PATIENT).await.unwrap().body;
    assert!(body.chunk(LONG).await.unwrap().is_some());
    drop(body);
    server.heard().await;
    assert_eq!(server.event().await, Event::Left);
}

#[tokio::test]
async fn dropping_a_request_closes_its_connection() {
    let mut server = Server::start([vec![Hear, Stay]]).await;
    let net = Net::new();
    let asking = net.send(&server.origin, request(Method::GET, ""), PATIENT);
    assert!(tokio::time::timeout(SHORT, asking).await.is_err());
    server.heard().await;
    assert_eq!(server.event().await, Event::Left);
}

#[tokio::test]
async fn a_body_is_as_long_as_its_reader_takes_or_too_large() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n";
    let sized = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nabcdef";
    for said in [chunked, sized] {
        for (limit, expected) in [(5, Err(NetError::TooLarge)), (6, Ok("abcdef")), (7, Ok("abcdef"))] {
            let server = Server::start([vec![Hear, Say(said.into())]]).await;
            let body = Net::new().send(&server.origin, request(Method::GET, ""), PATIENT).await.unwrap().body;
            assert_eq!(body.whole(limit, LONG).await, expected.map(Bytes::from), "{limit}");
        }
    }
}

#[tokio::test]
async fn where_nobody_listens_there_is_no_connection() {
    let origin = |host: &str, port| Origin { scheme: Scheme::Http, address: HostPort { host: host.to_owned(), port } };
    // Port 1 of this machine is taken by nobody; the name cannot exist.
    let table = [
        (origin("127.0.0.1", 1), NetError::Connect(std::io::ErrorKind::ConnectionRefused)),
        (origin("does-not-exist.invalid", 80), NetError::Resolve),
    ];
    for (origin, expected) in table {
        let outcome = get(&Net::new(), &origin).await;
        assert_eq!(outcome, Err(expected));
        assert!(expected.is_connect());
    }
}

#[tokio::test]
async fn an_address_in_brackets_is_dialled_without_them() {
    let Ok(server) = Server::try_start("[::1]:0", [vec![Hear, answer("six")]]).await else { return };
    assert_eq!(get(&Net::new(), &server.origin).await, ok("six"));
}

#[tokio::test]
async fn an_early_answer_to_a_long_request_is_an_answer() {
    let said = "HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno";
    let server = Server::start([vec![HearHead, Say(said.into()), Stay]]).await;
    let mut post = request(Method::POST, "");
    *post.body_mut() = Bytes::from(vec![b'x'; 32 << 20]).into();
    let answer = Net::new().send(&server.origin, post, PATIENT).await.unwrap();
    assert_eq!(answer.head.status, 413);
    assert_eq!(answer.body.whole(10, LONG).await.as_deref(), Ok(b"no".as_slice()));
}

/// `hello ` and `again`, each flushed, as zlib packs them: three pieces, the last of which ends the stream.
const HELLO: [&[u8]; 3] = [
    &[0x78, 0x9c, 0xca, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff],
    &[0x4a, 0x4c, 0x4f, 0xcc, 0xcc, 0x03, 0x00, 0x00, 0x00, 0xff, 0xff],
    &[0x03, 0x00, 0x19, 0x4e, 0x04, 0x35],
];

fn chunk(bytes: &[u8]) -> Step {
    SayBytes([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
}

#[tokio::test]
async fn a_packed_answer_is_unpacked_as_it_comes_and_labelled_as_what_it_is() {
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n";
    // The rest is not sent before what was flushed has been read.
    let script = vec![
        Hear,
        Say(head.into()),
        chunk(HELLO[0]),
        Wait(SHORT),
        chunk(HELLO[1]),
        Wait(SHORT),
        chunk(HELLO[2]),
        Say("0\r\n\r\n".into()),
    ];
    let server = Server::start([[script, vec![Hear, answer("again")]].concat()]).await;
    let net = Net::new();
    let Answer { head, mut body } = net.send(&server.origin, request(Method::GET, ""), PATIENT).await.unwrap();
    assert_eq!((head.headers.get("content-encoding"), body.expected()), (None, None));
    assert_eq!(head.headers["content-type"], "text/plain");
    for piece in ["hello ", "again"] {
        assert_eq!(body.chunk(LONG).await, Ok(Some(Bytes::from(piece))));
    }
    assert_eq!(body.chunk(LONG).await, Ok(None));
    assert_eq!(get(&net, &server.origin).await, ok("again"));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_packed_answer_with_a_length_has_another_one_unpacked() {
    let packed = HELLO.concat();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\ncontent-length: {}\r\n\r\n", packed.len());
    let said = SayBytes([head.as_bytes(), &packed].concat());
    let server = Server::start([vec![Hear, said.clone(), Hear, said]]).await;
    let net = Net::new();
    assert_eq!(get(&net, &server.origin).await, ok("hello again"));
    let Answer { head, body } = net.send(&server.origin, request(Method::GET, ""), PATIENT).await.unwrap();
    assert!(head.headers.is_empty(), "{:?}", head.headers);
    assert_eq!(body.whole(10, LONG).await, Err(NetError::TooLarge));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn what_cannot_be_unpacked_still_has_its_status() {
    let table = [
        ("compress", "2\r\nok\r\n0\r\n\r\n", NetError::Packing),
        ("gzip", "2\r\nok\r\n0\r\n\r\n", NetError::Packing),
        ("gzip", "1\r\n\u{1f}\r\n0\r\n\r\n", NetError::Cut),
    ];
    for (coding, said, expected) in table {
        let head = format!("HTTP/1.1 429 No\r\ncontent-encoding: {coding}\r\ntransfer-encoding: chunked\r\n\r\n{said}");
        let server = Server::start([vec![Hear, Say(head.into())]]).await;
        let answer = Net::new().send(&server.origin, request(Method::GET, ""), PATIENT).await.unwrap();
        assert_eq!(answer.head.status, 429);
        assert_eq!(answer.body.whole(100, LONG).await, Err(expected), "{coding}");
    }
}

pub(super) fn authority() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(include_bytes!("testdata/authority.der").as_slice())).unwrap();
    roots
}

/// A TLS server whose certificate is for `localhost`.
pub(super) fn acceptor() -> TlsAcceptor {
    let chain = vec![CertificateDer::from(include_bytes!("testdata/server.der").as_slice())];
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(include_bytes!("testdata/server-key.der").as_slice()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = versions.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn tls_trusts_a_known_authority_for_the_very_name() {
    let trusting = || Net { dialer: Dialer::trusting(authority()), pool: Pool::default() };
    let distrusting = || Net { dialer: Dialer::trusting(RootCertStore::empty()), pool: Pool::default() };
    let table = [
        ("localhost", trusting(), ok("safe")),
        ("127.0.0.1", trusting(), Err(NetError::Tls)),
        ("localhost", distrusting(), Err(NetError::Tls)),
    ];
    for (host, net, expected) in table {
        let script: Script = vec![Hear, answer("safe"), Hear, answer("safe")];
        let server = Server::start_tls(acceptor(), [script.clone(), script]).await;
        let address = HostPort { host: host.to_owned(), port: server.origin.address.port };
        let origin = Origin { scheme: Scheme::Https, address };
        assert_eq!(get(&net, &origin).await, expected, "{host}");
        assert_eq!(get(&net, &origin).await, expected, "{host}, again");
        if expected.is_ok() {
            assert_eq!(server.connections(), 1, "{host}");
        }
    }
}

#[tokio::test]
async fn a_plain_server_is_no_tls_server() {
    let server = Server::start([vec![HearHead, answer("plain")]]).await;
    let origin = Origin { scheme: Scheme::Https, ..server.origin.clone() };
    let net = Net { dialer: Dialer::trusting(authority()), pool: Pool::default() };
    let patience = Patience { connect: SHORT, first_byte: LONG };
    let outcome = net.send(&origin, request(Method::GET, ""), patience).await.map(|_| ());
    assert!(matches!(outcome, Err(NetError::Tls | NetError::ConnectTimeout)), "{outcome:?}");
}

#[test]
fn errors_say_what_may_be_done_about_them() {
    use NetError as E;
    let refused = E::Connect(std::io::ErrorKind::ConnectionRefused);
    // Columns: timeout, never connected.
    let table = [
        (E::Resolve, false, true),
        (E::Refused(toolgate_policies::egress::EgressRefusal::Unresolved), false, true),
        (refused, false, true),
        (E::Tls, false, true),
        (E::ConnectTimeout, true, true),
        (E::FirstByteTimeout, true, false),
        (E::IdleTimeout, true, false),
        (E::Closed, false, false),
        (E::Cut, false, false),
        (E::TooLarge, false, false),
        (E::Protocol, false, false),
        (E::Packing, false, false),
    ];
    for (error, timeout, connect) in table {
        assert_eq!((error.is_timeout(), error.is_connect()), (timeout, connect), "{error}");
    }
}

#[test]
fn a_request_can_be_sent_from_any_thread() {
    fn is_send<T: Send>(_: T) {}
    let (net, origin) = (Net::new(), Origin { scheme: Scheme::Http, address: HostPort { host: "h".to_owned(), port: 1 } });
    is_send(net.send(&origin, request(Method::GET, ""), PATIENT));
    is_send(async |mut body: AnswerBody| body.chunk(LONG).await);
}

#[tokio::test]
async fn a_chunk_costs_one_wake_up() {
    let mut script = vec![Hear, Say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".into())];
    for _ in 0..20 {
        script.extend([Wait(Duration::from_millis(3)), Say("1\r\nx\r\n".into())]);
    }
    script.push(Say("0\r\n\r\n".into()));
    let server = Server::start([script]).await;
    let mut body = Net::new().send(&server.origin, request(Method::GET, ""), PATIENT).await.unwrap().body;
    let mut polls = 0;
    let mut reading = std::pin::pin!(async { while body.chunk(LONG).await.unwrap().is_some() {} });
    std::future::poll_fn(|cx| {
        polls += 1;
        reading.as_mut().poll(cx)
    })
    .await;
    assert!(polls <= 22, "{polls} polls for 20 chunks and the end");
}
