//! What holds of any text: redacting twice is redacting once, a stream is what its whole is, little of it waits, and the counts are those of
//! the masks.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Pieces of which texts are made: shapes, their beginnings, names, signs, numbers, and what stands between them. `~` is left out.
const PIECES: &[&str] = &[
    "sk-",
    "sk-~abcdefghijklmnop",
    "AKIA",
    "AKIA~IOSFODNN7EXAMPLE",
    "ghp_~abcdefghij0123456789",
    "xoxb-~1234567890",
    "SG.",
    "eyJ",
    "eyJhbGciOiJIUzI1NiJ9",
    ".eyJzdWIiOiIxIn0",
    ".c2ln",
    "-----BEGIN PRIV~ATE KEY-----",
    "-----END PRIV~ATE KEY-----",
    "-----BEGIN ",
    "MIIEowIBAAKCAQEA7bq",
    "abc=",
    "://",
    "http://",
    "postgres://",
    "user",
    ":",
    "@",
    "host",
    "/",
    "?",
    "&",
    "=",
    "password",
    "Password",
    "passwd",
    "pwd",
    "token",
    "secret",
    "api_key",
    "apiKey",
    "DB_PASS",
    "key",
    "auth",
    "authorization",
    "Authorization",
    "Bearer",
    "Basic",
    "dXNlcjpwYXNz",
    "Cookie",
    "Set-Cookie",
    "sid=abc123",
    ";",
    "; ",
    ": ",
    " = ",
    "\"",
    "\\\"",
    "'",
    "hunter2",
    "s3cr3t!",
    "forgotten?",
    "${X}",
    "<",
    ">",
    "</",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    " ",
    "\n",
    "\\n",
    "\t",
    "-",
    "_",
    ".",
    "+",
    "+49",
    "+1",
    "(415)",
    "555",
    "2671",
    "030",
    "1234567",
    "4111",
    "1111",
    "41111111",
    "DE89",
    "3704",
    "0044",
    "0532",
    "0130",
    "00",
    "GB82WEST12345698765432",
    "10.1.2.3",
    "1.2",
    "2001:db8::1",
    "::1",
    "::",
    "fe80",
    "jo",
    "jo.doe",
    "example.com",
    ".com",
    "@tcp(",
    "-us12",
    "0123456789abcdef0123456789abcdef",
    "MTIzNDU2Nzg5MDEyMzQ1Njc4",
    "1234567890:AAabcdefghijklmnopqrstuvwxyz0123456",
    "[redacted:",
    "[redacted:email]",
    "[redacted:ticket]",
    "[redacted:none]",
    "TCK-",
    "TCK-123456",
    "SECRET-CANARY-",
    "SECRET-CANARY-7",
    "é",
    "ü",
    "请",
    "\u{1F600}",
    "a",
    "Z",
    "9",
    "word",
    "the",
    "%3D",
    "%",
    "#",
    "|",
    "*",
    "$",
    "\\",
    "`",
    "--password",
    "version",
    "v",
    "tel",
    "Pwd=x1y2z3;",
    "hooks.slack.com/services/T0/B0/abc",
    "E",
    "\r\n",
];

fn soup() -> impl Strategy<Value = String> {
    let piece =
        prop_oneof![12 => select(PIECES).prop_map(|piece| piece.replace('~', "")), 1 => "[ -~]{1,6}", 1 => "[a-z0-9]{20,150}"];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// A text cut in pieces.
fn cut<'t>(text: &'t str, at: &[prop::sample::Index]) -> Vec<&'t str> {
    let mut places: Vec<usize> =
        at.iter().map(|index| index.index(text.len() + 1)).filter(|&at| text.is_char_boundary(at)).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_is_what_its_whole_is(text in soup(), at in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let redactor = shared();
        let mut counts = Counts::default();
        let whole = redactor.text(&text, &mut counts).into_owned();
        prop_assert_eq!(streamed(&redactor, cut(&text, &at)), (whole.clone(), counts.clone()));
        let single: Vec<String> = text.chars().map(String::from).collect();
        prop_assert_eq!(streamed(&redactor, single.iter().map(String::as_str)), (whole, counts));
    }

    #[test]
    fn twice_is_once(text in soup()) {
        let redactor = shared();
        let once = redactor.text(&text, &mut Counts::default()).into_owned();
        let mut counts = Counts::default();
        let twice = redactor.text(&once, &mut counts);
        prop_assert!(counts.is_empty() && matches!(twice, Cow::Borrowed(_)), "{:?}\n becomes {:?}\n and that {:?}", text, once, twice);
    }

    #[test]
    fn little_waits(text in soup()) {
        let redactor = shared();
        let (mut window, mut counts) = (Window::new(redactor.clone()), Counts::default());
        for character in text.chars() {
            window.push(&character.to_string(), &mut counts);
            prop_assert!(window.held() <= 128, "{} wait", window.held());
        }
    }

    #[test]
    fn json_stays_json_and_changes_once(texts in proptest::collection::vec(soup(), 1..4)) {
        let redactor = shared();
        let document = serde_json::json!({ texts[0].clone(): texts.clone(), "n": [1, null] }).to_string();
        let once = redactor.json(&document, &mut Counts::default()).into_owned();
        prop_assert!(serde_json::from_str::<serde_json::Value>(&once).is_ok(), "{document}\n becomes {once}");
        let mut counts = Counts::default();
        let twice = redactor.json(&once, &mut counts);
        prop_assert!(counts.is_empty(), "{document}\n becomes {once}\n and that {twice}");
    }
}
