//! A stream is redacted as its whole is, wherever it is cut.

use super::*;

/// Texts with something of every kind.
pub(super) fn texts() -> Vec<String> {
    [
        "mail jo.doe@example.com. password: hunter2 and more; sk-~abcdefghijklmnopqrstuv, done",
        "Cookie: sid=abc123; theme=dark\nAuthorization: Bearer abc.def-1\nx",
        "-----BEGIN PRIV~ATE KEY-----\\nMIIEowIBAAKCAQEA7bq\\nabc=\\n-----END PRIVATE KEY-----\\nthen",
        "postgres://shop:hunter2@db/x?password=abc&x=1 ey~JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln é",
        "{\"password\": \"hun\\\"ter2\", \"n\": [1]} 0123456789abcdef0123456789abcdef-us12",
        "call +49 30 1234567, 4111 1111 1111 1111, DE89 3704 0044 0532 0130 00, 10.1.2.3, 2001:db8::1, (415) 555-2671.",
        "u:pass@tcp(db:3306)/x SECRET-CANARY-12 TCK-1234567 and TCK-12 1234567890:AAabcdefghijklmnopqrstuvwxyz0123456 z",
    ]
    .map(|text| text.replace('~', ""))
    .to_vec()
}

#[test]
fn long_secrets_and_long_harmless_text_are_not_kept() {
    let redactor = Arc::new(redactor());
    for (text, expected) in [
        ("word ".repeat(50_000), "word ".repeat(50_000)),
        ("A".repeat(200_000), "A".repeat(200_000)),
        (format!("sk-{} x", "a1".repeat(100_000)), "[redacted:api_key] x".to_owned()),
        (format!("SECRET-CANARY-{} x", "1".repeat(100_000)), "[redacted:canary] x".to_owned()),
        (
            format!("-----BEGIN PRIV{}ATE KEY-----\n{}\nend of it", "", "MIIEowIBAAKCAQEA\n".repeat(10_000)),
            "[redacted:private_key]\n\nend of it".to_owned(),
        ),
    ] {
        let (mut window, mut counts, mut out) = (Window::new(redactor.clone()), Counts::default(), String::new());
        for piece in text.as_bytes().chunks(7) {
            out.push_str(&window.push(std::str::from_utf8(piece).unwrap(), &mut counts));
            assert!(window.held() <= 128, "{} wait", window.held());
        }
        out.push_str(&window.finish(&mut counts));
        assert!(out == expected, "{} bytes became {}: {:?}", text.len(), out.len(), out.get(..100));
        assert_eq!(redactor.text(&text, &mut counts), expected);
    }
}

#[test]
fn case_49_every_cut_gives_the_same() {
    let redactor = Arc::new(redactor());
    for text in texts() {
        let mut counts = Counts::default();
        let whole = redactor.text(&text, &mut counts).into_owned();
        for cut in (0..=text.len()).filter(|&cut| text.is_char_boundary(cut)) {
            let (left, right) = text.split_at(cut);
            assert_eq!(streamed(&redactor, [left, right]), (whole.clone(), counts.clone()), "cut at {cut}: {left:?}");
        }
        let single: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(streamed(&redactor, single.iter().map(String::as_str)), (whole, counts));
    }
}
