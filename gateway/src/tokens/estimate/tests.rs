//! How far the estimate is off, in texts that it was not made from, and that it does not matter how a text comes in.

use proptest::prelude::*;
use proptest::sample::Index;

use super::super::encoding::Encoding;
use super::*;

/// A text for each kind that is told of in `docs/counting.md`, and by how many per cent the estimate may be off.
fn samples() -> Vec<(&'static str, String, f64)> {
    let own = |text: &str| text.to_owned();
    vec![
        ("English", own(include_str!("../samples/english.txt")), 8.0),
        ("German", own(include_str!("../samples/german.txt")), 18.0),
        ("French", own(include_str!("../samples/french.txt")), 10.0),
        ("Spanish", own(include_str!("../samples/spanish.txt")), 10.0),
        ("Russian", own(include_str!("../samples/russian.txt")), 12.0),
        ("Arabic", own(include_str!("../samples/arabic.txt")), 15.0),
        ("Hebrew", own(include_str!("../samples/hebrew.txt")), 15.0),
        ("Hindi", own(include_str!("../samples/hindi.txt")), 25.0),
        ("Thai", own(include_str!("../samples/thai.txt")), 15.0),
        ("Chinese", own(include_str!("../samples/chinese.txt")), 18.0),
        ("Japanese", own(include_str!("../samples/japanese.txt")), 20.0),
        ("Korean", own(include_str!("../samples/korean.txt")), 15.0),
        ("Rust", own(include_str!("../estimate.rs")), 10.0),
        ("Markdown", own(include_str!("../../../../README.md")), 12.0),
        ("CSV", include_str!("../../../../config/data/models.csv").lines().take(60).collect::<Vec<_>>().join("\n"), 12.0),
        ("JSON", json_text(), 12.0),
        ("base64", drawn(3000, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"), 8.0),
        ("hexadecimal", drawn(3000, b"0123456789abcdef"), 5.0),
        ("digits", drawn(3000, b"0123456789"), 5.0),
        ("numbers", drawn(3000, b"0123456789 ,.0123456789"), 15.0),
    ]
}

/// Characters drawn by a plain generator: always the same ones.
fn drawn(count: usize, from: &[u8]) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    (0..count).map(|_| char::from(from[next() % from.len()])).collect()
}

fn json_text() -> String {
    let item = |at: usize| {
        let (id, name) = (drawn(8 + at % 5, b"0123456789abcdef"), ["pears", "a lamp", "rope, 20 m", "chart of the bay"][at % 4]);
        serde_json::json!({ "id": id, "name": name, "price_usd": at as f64 * 1.25, "in_stock": at.is_multiple_of(3), "tags": ["a", "harbour"] })
    };
    serde_json::Value::from((0..40).map(item).collect::<Vec<_>>()).to_string()
}

#[test]
fn the_estimate_is_near_the_count() {
    let mut far = Vec::new();
    for (name, text, most) in samples() {
        let counted = Encoding::O200k.count(&text) as f64;
        let off = (tokens(text.as_bytes()) as f64 / counted - 1.0) * 100.0;
        println!("{name:12} {counted:6} tokens, {off:+.1} %");
        if off.abs() > most {
            far.push(format!("{name}: {off:+.1} %"));
        }
    }
    assert!(far.is_empty(), "{far:?}");
}

#[test]
fn short_texts_come_to_few_tokens_and_never_to_none() {
    let table = [("", 0, 0), (" ", 1, 1), ("a", 1, 1), ("Hello", 1, 2), ("Hello, world!", 3, 6), ("日", 1, 2), ("{}", 1, 2)];
    assert!((35..=45).contains(&tokens("word ".repeat(40).as_bytes())), "{}", tokens("word ".repeat(40).as_bytes()));
    for (text, least, most) in table {
        let seen = tokens(text.as_bytes());
        assert!((least..=most).contains(&seen), "{text:?}: {seen}");
    }
    assert!(tokens(" ".repeat(12_800).as_bytes()) >= 100, "no token is longer than 128 bytes");
}

#[test]
fn escapes_are_what_they_spell() {
    let table = [
        (r"a\nb\tc", "a\nb\tc"),
        (r#"say \"no\" \\ \/"#, "say \"no\" \\ /"),
        (r"\u65e5\u672C", "日本"),
        (r"caf\u00e9", "café"),
        (r"\ud83c\udfbb and \ud83d\ude00", "🎻 and 😀"),
        (r"\u001b[0m", "\u{1b}[0m"),
    ];
    for (inner, spelt) in table {
        let (mut json, mut text) = (Estimate::default(), Estimate::default());
        json.json(inner);
        text.text(spelt.as_bytes());
        assert_eq!(json, text, "{inner}");
    }
    // What JSON does not allow is taken all the same.
    for odd in [r"\", r"\u", r"\u12", r"\uzzzz", r"\ud83c", r"\udfbb", r"\x"] {
        Estimate::default().json(odd);
    }
}

#[test]
fn the_table_has_a_row_and_a_column_for_each_class() {
    let mut rows = include_str!("weights.csv").lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = rows.next().unwrap();
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), names[1..]);
    assert!(rows.iter().all(|row| row.len() == names.len()));
    let classes = CLASSES.iter().max().map(|class| usize::from(*class) + 1);
    assert_eq!(classes, Some(rows.len()));
    for (row, line) in rows.iter().enumerate() {
        let seen: Vec<String> = WEIGHTS[row * ROW..][..rows.len()].iter().map(u16::to_string).collect();
        assert_eq!(seen, line[1..], "{}", line[0]);
    }
}

proptest! {
    #[test]
    fn a_text_in_pieces_is_the_same_text(text in "[a-zA-Z0-9 ,.\\n日本é🎻{}\"]{0,60}", cuts in prop::collection::vec(any::<Index>(), 0..6)) {
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        let mut pieces = Estimate::default();
        cuts.windows(2).for_each(|ends| pieces.text(&bytes[ends[0]..ends[1]]));
        let mut whole = Estimate::default();
        whole.text(bytes);
        prop_assert_eq!(pieces, whole);
        let mut json = Estimate::default();
        json.json(serde_json::to_string(&text).unwrap().trim_matches('"'));
        // Trimmed quotes may have been escaped ones at the end.
        prop_assert!(json == whole || text.ends_with('"') || text.starts_with('"'));
    }
}
