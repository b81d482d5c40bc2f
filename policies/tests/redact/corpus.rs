//! The corpus: how many of the secrets in it go, and how many look-alikes stay. `corpus/make.py` says what is in it.

use super::*;

/// A line of the corpus with something that must go.
struct Positive {
    kind: &'static str,
    /// The text, and it with a mask where each secret was.
    text: String,
    expected: String,
    secrets: Vec<String>,
}

fn read(line: &'static str) -> Positive {
    let (kind, marked) = line.split_once('\t').unwrap();
    let marked = unescaped(&marked.replace('~', ""));
    let (mut expected, mut secrets) = (String::new(), Vec::new());
    for (at, part) in marked.split(['⟦', '⟧']).enumerate() {
        if at % 2 == 0 {
            expected.push_str(part);
        } else {
            expected += &format!("[redacted:{kind}]");
            secrets.push(part.to_owned());
        }
    }
    Positive { kind, text: marked.replace(['⟦', '⟧'], ""), expected, secrets }
}

fn unescaped(text: &str) -> String {
    text.replace("\\\\", "\u{1}").replace("\\n", "\n").replace("\\t", "\t").replace('\u{1}', "\\")
}

/// What is found: whether nothing of what must go is left and it is told what it was, and whether nothing else has changed.
fn judged(redactor: &Redactor, positive: &Positive) -> (bool, bool, String) {
    let out = redacted(redactor, &positive.text);
    let gone = positive.secrets.iter().all(|secret| !out.contains(secret.as_str()) || secret.len() < 4);
    let told = out.contains(&format!("[redacted:{}]", positive.kind));
    (gone && told, out == positive.expected, out)
}

fn positives(lines: &'static str, least_exact: usize) {
    let redactor = redactor();
    let all: Vec<Positive> = lines.lines().map(read).collect();
    let (mut missed, mut inexact) = (Vec::new(), Vec::new());
    for positive in &all {
        let (found, exact, out) = judged(&redactor, positive);
        if !found {
            missed.push(format!("{}: {}\n      -> {out}", positive.kind, positive.text));
        } else if !exact {
            inexact.push(format!("{}: {}\n      -> {out}", positive.kind, positive.text));
        }
    }
    assert!(all.len() >= 300, "{}", all.len());
    assert!(
        missed.is_empty(),
        "{} of {} are missed:\n{}\n and otherwise: {}",
        missed.len(),
        all.len(),
        missed.join("\n"),
        inexact.join("\n")
    );
    let exact = (all.len() - inexact.len()) * 100 / all.len();
    assert!(exact >= least_exact, "{exact} % exactly; otherwise:\n{}", inexact.join("\n"));
}

fn lookalikes(lines: &str, least: usize) {
    let redactor = redactor();
    let taken: Vec<String> = lines
        .lines()
        .map(|line| line.replace("\\n", "\n"))
        .filter_map(|line| match redactor.text(&line, &mut Counts::default()) {
            Cow::Borrowed(_) => None,
            Cow::Owned(out) => Some(format!("{line} -> {out}")),
        })
        .collect();
    assert!(lines.lines().count() >= least);
    assert!(taken.is_empty(), "{} of {} are taken for secrets:\n{}", taken.len(), lines.lines().count(), taken.join("\n"));
}

#[test]
fn every_secret_of_the_corpus_goes() {
    positives(include_str!("corpus/positives.tsv"), 100);
}

#[test]
fn every_look_alike_of_the_corpus_stays() {
    lookalikes(include_str!("corpus/lookalikes.txt"), 300);
}

#[test]
fn every_secret_of_the_held_out_part_goes() {
    positives(include_str!("corpus/held_out_positives.tsv"), 100);
}

#[test]
fn every_look_alike_of_the_held_out_part_stays() {
    lookalikes(include_str!("corpus/held_out_lookalikes.txt"), 150);
}
