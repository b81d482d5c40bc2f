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
    ]
    .map(|text| text.replace('~', ""))
    .to_vec()
}

#[test]
fn every_cut_gives_the_same() {
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
