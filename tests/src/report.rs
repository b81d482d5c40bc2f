//! What is held against what: requests that servers saw, headers, texts; and the account of all that differs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cases::Case;
use crate::config::{BOSS, SHOP};
use crate::matching::{faults, side_by_side};
use crate::scenario::Seen;
use crate::server::Received;
use crate::wire::Head;

/// All that differs.
#[derive(Default)]
pub(crate) struct Report {
    text: String,
    faults: usize,
}

impl Report {
    /// Everything in which what was seen differs from what was expected is a fault.
    pub(crate) fn check(&mut self, what: &str, expected: &Value, seen: &Value) {
        let faults = faults(expected, seen);
        if faults.is_empty() {
            return;
        }
        self.fault(format!("{what}{}", faults.join(&format!("\n{what}"))));
        if expected.is_object() || expected.is_array() {
            self.text += &side_by_side(expected, seen);
        }
    }

    /// This is one.
    pub(crate) fn fault(&mut self, what: String) {
        self.faults += 1;
        let _ = writeln!(self.text, "✗ {what}");
    }

    /// This is one, if so.
    pub(crate) fn fault_if(&mut self, wrong: bool, what: impl FnOnce() -> String) {
        if wrong {
            self.fault(what());
        }
    }

    /// There is none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.faults == 0
    }

    /// The faults of another are this one's too.
    pub(crate) fn take_over(&mut self, other: Self) {
        self.faults += other.faults;
        self.text += &other.text;
    }

    /// The whole account; no faults are told as none.
    pub(crate) fn told(self, case: &Case, title: &str, log: &str) -> Result<(), String> {
        if self.faults == 0 {
            return Ok(());
        }
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(15)..].join("\n");
        Err(format!("{title}\n{}\n\n{}\nthe end of the gateway's log:\n{tail}\n", case.file.display(), self.text))
    }
}

/// The requests that a server saw, one by one.
pub(crate) fn check_requests(report: &mut Report, who: &str, expected: &[Seen], received: &[Received]) {
    if expected.len() != received.len() {
        let seen: Vec<_> = received.iter().map(|request| format!("{} {}", request.method, request.target)).collect();
        report.fault(format!("{who}: expected {} requests, seen {}: {seen:?}", expected.len(), received.len()));
    }
    for (at, (expected, seen)) in expected.iter().zip(received).enumerate() {
        check_request(report, &format!("{who}: request {at}"), expected, seen);
    }
}

fn check_request(report: &mut Report, who: &str, expected: &Seen, seen: &Received) {
    if let Some(method) = &expected.method {
        report.check(&format!("{who}: method"), &json!(method), &json!(seen.method));
    }
    if let Some(path) = &expected.path {
        report.check(&format!("{who}: path"), path, &json!(seen.target));
    }
    for (name, expected) in &expected.headers {
        check_header(report, who, name, expected, &seen.head);
    }
    let json = &seen.heard;
    let text = String::from_utf8_lossy(&seen.body);
    if let Some(sent) = &expected.sent {
        report.check(&format!("{who}: the body as it was sent"), sent, &seen.json());
    }
    if let Some(body) = &expected.body {
        report.check(&format!("{who}: body"), body, &if json.is_null() { json!(text) } else { json.clone() });
    }
    for name in expected.lacks.iter().filter(|name| json.get(name.as_str()).is_some()) {
        report.fault(format!("{who}: expected no member {name}, seen {}", json[name]));
    }
    if let Some(messages) = &expected.messages {
        report.check(&format!("{who}: messages"), &json!(messages), &json["messages"]);
    }
    if let Some(offers) = &expected.offers {
        let offered: Vec<&Value> = json["tools"].as_array().into_iter().flatten().map(|tool| &tool["function"]["name"]).collect();
        report.check(&format!("{who}: offered tools"), &json!(offers), &json!(offered));
    }
    check_texts(report, who, &expected.text, &expected.text_not, &text);
}

/// What no server may ever see: a caller's key, or a header of the gateway's own.
pub(crate) fn check_clean(report: &mut Report, who: &str, request: &Received) {
    let whole = format!("{} {:?} {}", request.target, request.head.headers, String::from_utf8_lossy(&request.body));
    report.fault_if(whole.contains(SHOP) || whole.contains(BOSS), || format!("{who}: saw a caller's key: {whole}"));
    let own = request.head.headers.iter().find(|(name, _)| name.starts_with("x-toolgate-"));
    report.fault_if(own.is_some(), || format!("{who}: saw the header {own:?}"));
}

/// One header; `$absent`: there is none.
pub(crate) fn check_header(report: &mut Report, who: &str, name: &str, expected: &Value, head: &Head) {
    let seen = head.header(&name.to_ascii_lowercase()).map_or(Value::Null, Value::String);
    let expected = match expected {
        Value::Number(number) => json!(number.to_string()),
        Value::String(word) if word == "$absent" => Value::Null,
        other => other.clone(),
    };
    report.check(&format!("{who}: header {name}"), &expected, &seen);
}

/// Texts that must be there, and texts that must not.
pub(crate) fn check_texts(report: &mut Report, who: &str, has: &[String], has_not: &[String], text: &str) {
    for expected in has.iter().filter(|expected| !text.contains(expected.as_str())) {
        report.fault(format!("{who}: expected the text {expected:?} in:\n{text}"));
    }
    for unexpected in has_not.iter().filter(|unexpected| text.contains(unexpected.as_str())) {
        report.fault(format!("{who}: expected no text {unexpected:?} in:\n{text}"));
    }
}
