//! Redaction: how fast clean and dirty text, JSON and streams pass, and that hostile texts cost no more a byte than others.

use std::sync::Arc;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use toolgate_config::redaction::{Pattern, Personal, Rules};
use toolgate_policies::redact::{Counts, Redactor, Window};

fn rules(personal: bool, patterns: bool) -> Rules {
    let pattern = Pattern { name: "ticket".into(), regex: "TCK-[0-9]{6}".into() };
    Rules {
        secrets: true,
        personal: Personal::ALL.into_iter().filter(|_| personal).collect(),
        patterns: Some(pattern).into_iter().filter(|_| patterns).collect(),
    }
}

/// Prose of 1 MB.
fn prose() -> String {
    "The depot has counted what is on its shelves, and what remains is ready to be sent; please ask again when the \
     next van has left. Nobody knows how long that takes, but it is never as long as people think.\n"
        .repeat(5000)
}

/// A log of 1 MB: a secret, a name or a number a line.
fn dirty() -> String {
    "2026-01-02T03:04:05Z INFO user=jo.doe@example.com ip=203.0.113.7 took 12 ms\n\
     GET https://api.example.com/v1/orders?access_token=abcdef123456&page=2 200\n\
     Authorization: Bearer abcdefghijklmnop1234 from 10.0.12.5\n\
     db postgres://shop:hunter2@db.internal:5432/shop password=s3cret!\n\
     card 4111 1111 1111 1111 of DE89 3704 0044 0532 0130 00, call +49 30 1234567\n"
        .repeat(2800)
}

/// A result of 50 KB as tools return it.
fn document() -> String {
    let row =
        r#"{"id":4815162342,"name":"Ann \"A\" Other","status":"sent","tags":["a","b"],"note":"left at the door","total":12.50},"#;
    format!("[{}{{\"email\":\"ann@example.com\",\"apiKey\":\"abc\"}}]", row.repeat(420))
}

fn passes(bencher: Bencher, rules: &Rules, text: &str) {
    let redactor = Redactor::new(rules);
    bencher.counter(BytesCount::new(text.len())).bench(|| redactor.text(black_box(text), &mut Counts::default()).len());
}

/// Clean text, secrets alone: what answers are asked by default.
#[divan::bench]
fn clean_secrets(bencher: Bencher) {
    passes(bencher, &rules(false, false), &prose());
}

/// Clean text, everything: what tool results are asked by default.
#[divan::bench]
fn clean_everything(bencher: Bencher) {
    passes(bencher, &rules(true, false), &prose());
}

/// The same with a pattern of the operator's own.
#[divan::bench]
fn clean_with_a_pattern(bencher: Bencher) {
    passes(bencher, &rules(true, true), &prose());
}

/// Something to take out in every line.
#[divan::bench]
fn dirty_everything(bencher: Bencher) {
    passes(bencher, &rules(true, false), &dirty());
}

/// A document of 50 KB.
#[divan::bench]
fn json_50_kb(bencher: Bencher) {
    let (redactor, document) = (Redactor::new(&rules(true, false)), document());
    bencher.counter(BytesCount::new(document.len())).bench(|| redactor.json(black_box(&document), &mut Counts::default()).len());
}

/// A stream of words.
#[divan::bench]
fn stream_of_words(bencher: Bencher) {
    let (redactor, text) = (Arc::new(Redactor::new(&rules(false, false))), prose());
    let words: Vec<&str> = text.split_inclusive(' ').take(10_000).collect();
    let bytes: usize = words.iter().map(|word| word.len()).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        let (mut window, mut counts) = (Window::new(redactor.clone()), Counts::default());
        let sent: usize = black_box(&words).iter().map(|word| window.push(word, &mut counts).len()).sum();
        sent + window.finish(&mut counts).len()
    });
}

/// Texts that are nothing but beginnings, in three sizes: the time a byte is that of the smallest.
#[divan::bench(args = [
    ("://", 1), ("://", 4), ("sk-", 1), ("sk-", 4), ("eyJ", 1), ("eyJ", 4), ("eyJ.", 4), ("a@", 1), ("a@", 4), ("1 ", 1), ("1 ", 4), ("0 1", 4), ("key:", 4),
    ("password", 4), ("password ", 4), ("token=", 4), ("::", 4), ("a:", 4), ("-----BEGIN ", 4), ("[redacted:", 4), ("AKIA", 4), ("a.", 4), ("M.", 4), ("+1", 4), ("(1)", 4),
    ("Bearer ", 4), ("cookie: a=", 4), ("x:y@tcp", 4), ("\\", 4), ("0123456789abcdef", 4), ("DE89 ", 4),
])]
fn hostile(bencher: Bencher, (unit, size): (&str, usize)) {
    let text = unit.repeat(size * 250_000 / unit.len());
    passes(bencher, &rules(true, true), &text);
}
