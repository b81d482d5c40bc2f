//! The account of a run, for whoever watches the demo: what was sent, what the gate let through, what the model asked for, what came of it,
//! and what the application gets. Everything in it is what a user can see as well: the file, the answer, the trace. Text in, text out.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;
use toolgate_config::money::NanoUsd;

use super::client::{Client, Reply};
use super::paint::{Ink, Paint, WIDTH, clean, wrapped};

/// The left margin.
const MARGIN: &str = "   ";
/// The most lines of an answer that are shown.
const ANSWER_LINES: usize = 8;
/// The longest call that others are lined up with.
const CALL_WIDTH: usize = 46;

/// What it all is.
pub(super) fn opening(paint: Paint, model: Option<(&str, &str)>) -> String {
    let title = paint.ink(Ink::Heading, "toolgate demo");
    match model {
        None => format!("{title}: an application asks one question, and the gateway runs the tools. No key, no network.\n"),
        Some((model, url)) => {
            let place = clean(&format!("{model} at {url}"), WIDTH - 20);
            format!("{title}: an application asks one question, and the gateway runs the tools.\nThe model is {place}\n")
        }
    }
}

/// The configuration.
pub(super) fn configuration(paint: Paint, path: &Path, text: &str) -> String {
    let note = paint.ink(Ink::Quiet, &format!("({})", path.display()));
    let lines: String = text.lines().map(|line| format!("{MARGIN}{line}\n")).collect();
    format!("{}\n{lines}", heading(paint, 1, "The file that you would write", &note))
}

/// What the application sends.
pub(super) fn request(paint: Paint, client: &Client<'_>, body: &str) -> String {
    let heading = heading(
        paint,
        2,
        "The application asks",
        &paint.ink(Ink::Quiet, "(it knows an address and a key, and nothing of tools)"),
    );
    format!(
        "{heading}\n{MARGIN}POST http://{}/v1/chat/completions\n{MARGIN}authorization: Bearer {}\n{MARGIN}{}\n",
        client.address,
        client.key,
        folded(body)
    )
}

/// The gate's verdicts, the rounds, and the answer.
pub(super) fn story(paint: Paint, reply: &Reply, trace: &Value) -> String {
    [gate(paint, trace), rounds(paint, trace), answer(paint, reply)].concat()
}

/// What else there is to look at.
pub(super) struct Around<'a> {
    /// Where operators come in.
    pub(super) admin: SocketAddr,
    /// The trace of the run that was told.
    pub(super) trace: &'a str,
    /// The configuration.
    pub(super) file: &'a Path,
}

/// How to go on.
pub(super) fn invitation(paint: Paint, client: &Client<'_>, around: &Around<'_>, body: &str) -> String {
    let Around { admin, trace, file } = around;
    let base = format!("http://{}/v1", client.address);
    let key = format!("-H 'authorization: Bearer {}'", client.key);
    // The body stands in single quotes; what is in it was quoted by JSON alone.
    let body = folded(body).replace('\'', r"'\''");
    let title = paint.ink(Ink::Heading, &format!("Now serving at {base} — try:"));
    format!(
        "\n{title}\n{MARGIN}curl -N {base}/chat/completions \\\n{MARGIN}  {key} -H 'content-type: application/json' \\\n\
         {MARGIN}  -d '{body}'\n\
         The trace of the run above:\n{MARGIN}curl http://{}/toolgate/traces/{trace} \\\n{MARGIN}  {key}\n\
         Change trust_zone in the file to external_eu and ask again: the tool that was withheld is offered then.\n\
         {MARGIN}{}\nMetrics: http://{admin}/metrics   {}\n",
        client.address,
        file.display(),
        paint.ink(Ink::Quiet, "Ctrl-C ends it.")
    )
}

/// A long request in two lines, which is still JSON.
fn folded(body: &str) -> String {
    if body.chars().count() <= WIDTH - MARGIN.len() {
        return body.to_owned();
    }
    body.replacen(",\"messages\"", &format!(",\n{MARGIN}   \"messages\""), 1)
}

fn heading(paint: Paint, number: usize, title: &str, note: &str) -> String {
    let title = paint.ink(Ink::Heading, &format!("{number}  {title}"));
    if note.is_empty() { format!("\n{title}") } else { format!("\n{title}  {note}") }
}

fn gate(paint: Paint, trace: &Value) -> String {
    let mut text = heading(paint, 3, "The gate decides what the model is offered", "") + "\n";
    for verdict in list(&trace["gate"]) {
        let tool = clean(str_of(&verdict["tool"]), 64);
        let line = match verdict["reason"].as_str() {
            None => format!("{}   {tool}", paint.ink(Ink::Good, "offered")),
            Some(reason) => format!("{}  {tool:18}  {reason}{}", paint.ink(Ink::Bad, "withheld"), meaning(reason)),
        };
        let _ = writeln!(text, "{MARGIN}{line}");
    }
    text
}

/// What a reason of the gate's means, where the demo can bring it about.
fn meaning(reason: &str) -> &'static str {
    match reason {
        "trust_zone" => ": its data may not go to where the model runs",
        _ => "",
    }
}

fn rounds(paint: Paint, trace: &Value) -> String {
    let rounds = list(&trace["rounds"]);
    let calls = rounds.iter().flat_map(|round| list(&round["tool_calls"])).map(call_text);
    let width = calls.map(|call| call.chars().count()).max().unwrap_or(0).min(CALL_WIDTH);
    let mut text = heading(paint, 4, "The loop", "") + "\n";
    let mut number = 0;
    for round in rounds {
        number += usize::from(round["attempt"] == 1);
        let _ = writeln!(text, "{MARGIN}round {number}   {}", round_text(paint, round));
        for call in list(&round["tool_calls"]) {
            let _ = writeln!(text, "{MARGIN}  {:width$}  {}", call_text(call), outcome_of(paint, call));
        }
    }
    text
}

fn round_text(paint: Paint, round: &Value) -> String {
    let ms = millis(&round["ms"]);
    if round["outcome"] != "ok" {
        let attempt = round["attempt"].as_u64().unwrap_or(1);
        let failed = paint.ink(Ink::Bad, &clean(str_of(&round["outcome"]), 40));
        return format!("attempt {attempt}: {failed} after {ms}");
    }
    let does = match list(&round["tool_calls"]).len() {
        0 => "the model answers".to_owned(),
        1 => "the model asks for a tool".to_owned(),
        count => format!("the model asks for {count} tools"),
    };
    let tokens = tokens(&round["usage"])
        .map_or_else(|| ", tokens not told".to_owned(), |(read, wrote)| format!(", {read} tokens in, {wrote} out"));
    does + &paint.ink(Ink::Quiet, &format!("{tokens}, {ms}"))
}

fn call_text(call: &Value) -> String {
    let arguments = match serde_json::from_str::<Value>(str_of(&call["arguments"])) {
        Ok(arguments) => arguments.to_string(),
        Err(_) => str_of(&call["arguments"]).to_owned(),
    };
    clean(&format!("{} {arguments}", str_of(&call["tool"])), CALL_WIDTH + 10)
}

fn outcome_of(paint: Paint, call: &Value) -> String {
    let ms = millis(&call["ms"]);
    match (str_of(&call["outcome"]), call["reason"].as_str()) {
        ("ok", _) => {
            let class = call["data_class"].as_str().unwrap_or("unclassified");
            format!("{}: {} bytes, {class}, {ms}", paint.ink(Ink::Good, "ran"), call["bytes"])
        }
        ("refused", Some(reason)) => format!("{}: {reason}; the model hears \"not available\"", paint.ink(Ink::Bad, "refused")),
        (outcome, _) => format!("{}, {} bytes, {ms}", paint.ink(Ink::Bad, &clean(outcome, 40)), call["bytes"]),
    }
}

fn answer(paint: Paint, reply: &Reply) -> String {
    let note = paint.ink(Ink::Quiet, "(one ordinary completion)");
    let note = if reply.status == 200 { note } else { String::new() };
    let mut text = heading(paint, 5, "The application gets", &note) + "\n";
    let _ = writeln!(text, "{MARGIN}{}", reply.status);
    let (trace_id, run): (Vec<_>, Vec<_>) = headers(reply).into_iter().partition(|header| header.starts_with("x-toolgate-trace"));
    for line in [&trace_id[..]].into_iter().chain(run.chunks(3)).filter(|line| !line.is_empty()) {
        let _ = writeln!(text, "{MARGIN}{}", line.join("   "));
    }
    let said = reply.body["choices"][0]["message"]["content"].as_str().or(reply.body["error"]["message"].as_str());
    text.push_str(&words(paint, if reply.status == 200 { Ink::Heading } else { Ink::Bad }, said.unwrap_or("(no text)")));
    text
}

/// What the run cost, and how the application's budgets stand now.
pub(super) fn spend(paint: Paint, trace: &Value, spend: &Value) -> String {
    let mut text = heading(paint, 6, "What it cost", "") + "\n";
    if let Some((read, wrote)) = tokens(&trace["usage"]) {
        let _ = writeln!(text, "{MARGIN}tokens of all rounds: {read} in, {wrote} out");
    }
    let unknown = || "not known: the file has no price for this model, and nothing is guessed".to_owned();
    let cost = trace["cost_usd"].as_f64().map_or_else(unknown, |usd| paint.ink(Ink::Heading, &format!("{} USD", dollars(usd))));
    let _ = writeln!(text, "{MARGIN}cost: {cost}");
    for budget in list(&spend["budgets"]) {
        let amount = |name: &str| match budget["unit"].as_str() {
            Some("usd") => dollars(budget[name].as_f64().unwrap_or_default()),
            _ => budget[name].to_string(),
        };
        let unit = if budget["unit"] == "usd" { "USD" } else { str_of(&budget["unit"]) };
        let (limit, used, left) = (amount("limit"), amount("used"), amount("left"));
        let _ = writeln!(text, "{MARGIN}budget: {limit} {unit} per {}: {used} used, {left} left", str_of(&budget["per"]));
        let _ = writeln!(text, "{MARGIN}  {}", paint.ink(Ink::Quiet, &format!("it resets at {}", str_of(&budget["reset"]))));
    }
    text
}

/// As the ledger has it: nine digits after the point, without the zeros.
fn dollars(usd: f64) -> String {
    NanoUsd((usd * 1e9).round() as u64).to_string()
}

/// The gateway's own headers.
fn headers(reply: &Reply) -> Vec<String> {
    let own = reply.headers.iter().filter(|(name, _)| name.as_str().starts_with("x-toolgate-"));
    own.map(|(name, value)| format!("{name}: {}", clean(&String::from_utf8_lossy(value.as_bytes()), 40))).collect()
}

fn words(paint: Paint, ink: Ink, said: &str) -> String {
    let lines = wrapped(&clean(said, 10_000), WIDTH - MARGIN.len());
    let more = lines.len().saturating_sub(ANSWER_LINES);
    let shown = lines.iter().take(ANSWER_LINES).map(|line| format!("{MARGIN}{}\n", paint.ink(ink, line)));
    let mut text: String = shown.collect();
    if more > 0 {
        let _ = writeln!(text, "{MARGIN}{}", paint.ink(Ink::Quiet, &format!("… ({more} more lines)")));
    }
    text
}

fn tokens(usage: &Value) -> Option<(u64, u64)> {
    Some((usage["prompt_tokens"].as_u64()?, usage["completion_tokens"].as_u64()?))
}

fn millis(value: &Value) -> String {
    let ms = value.as_f64().unwrap_or_default();
    if ms < 100.0 { format!("{ms:.1} ms") } else { format!("{:.1} s", ms / 1000.0) }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn str_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};
    use serde_json::json;

    use super::*;

    fn reply(status: u16, body: Value) -> Reply {
        let mut headers = HeaderMap::new();
        headers.insert("x-toolgate-trace", HeaderValue::from_static("abc"));
        headers.insert("date", HeaderValue::from_static("today"));
        if status == 200 {
            headers.insert("x-toolgate-status", HeaderValue::from_static("completed"));
            headers.insert("x-toolgate-rounds", HeaderValue::from_static("2"));
        }
        Reply { status: StatusCode::from_u16(status).unwrap(), headers, body }
    }

    fn answered(text: &str) -> Reply {
        reply(200, json!({ "choices": [{ "message": { "role": "assistant", "content": text } }] }))
    }

    #[test]
    fn a_run_reads_from_top_to_bottom() {
        let call = |tool: &str, outcome: &str, reason: Option<&str>| json!({ "tool": tool, "arguments": r#"{ "a": 1 }"#, "outcome": outcome, "reason": reason, "ms": 0.5, "bytes": 120, "data_class": "internal" });
        let round = |calls: &[Value]| json!({ "attempt": 1, "outcome": "ok", "ms": 1.0, "tool_calls": calls, "usage": { "prompt_tokens": 7, "completion_tokens": 3 } });
        let trace = json!({
            "gate": [{ "tool": "one", "verdict": "allow", "reason": null }, { "tool": "two", "verdict": "deny", "reason": "trust_zone" }],
            "rounds": [round(&[call("one", "ok", None), call("two", "refused", Some("trust_zone"))]), round(&[])],
            "usage": { "prompt_tokens": 14, "completion_tokens": 6 },
        });
        let expected = "
3  The gate decides what the model is offered
   offered   one
   withheld  two                 trust_zone: its data may not go to where the model runs

4  The loop
   round 1   the model asks for 2 tools, 7 tokens in, 3 out, 1.0 ms
     one {\"a\":1}  ran: 120 bytes, internal, 0.5 ms
     two {\"a\":1}  refused: trust_zone; the model hears \"not available\"
   round 2   the model answers, 7 tokens in, 3 out, 1.0 ms

5  The application gets  (one ordinary completion)
   200 OK
   x-toolgate-trace: abc
   x-toolgate-status: completed   x-toolgate-rounds: 2
   It is on its way.
";
        assert_eq!(story(Paint::plain(), &answered("It is on its way."), &trace), expected);
    }

    #[test]
    fn what_it_cost_is_told_to_the_last_digit_or_not_guessed() {
        let spent = json!({ "budgets": [{ "scope": "key", "name": "app", "per": "day", "unit": "usd", "limit": 1, "used": 0.0000057, "held": 0, "left": 0.9999943, "reset": "2026-12-01T00:00:00Z" }] });
        let trace = |cost: Value| json!({ "usage": { "prompt_tokens": 14, "completion_tokens": 6 }, "cost_usd": cost });
        let expected = "
6  What it cost
   tokens of all rounds: 14 in, 6 out
   cost: 0.0000057 USD
   budget: 1 USD per day: 0.0000057 used, 0.9999943 left
     it resets at 2026-12-01T00:00:00Z
";
        assert_eq!(spend(Paint::plain(), &trace(json!(0.0000057)), &spent), expected);
        assert!(spend(Paint::plain(), &trace(Value::Null), &json!({})).contains("cost: not known: "));
    }

    #[test]
    fn a_failed_run_shows_its_attempts_and_the_error() {
        let attempt = |number: u64| json!({ "attempt": number, "outcome": "connect_error", "ms": 250.0, "tool_calls": [] });
        let trace = json!({ "rounds": [attempt(1), attempt(2)] });
        let error = reply(502, json!({ "error": { "message": "The provider failed.", "code": "upstream_error" } }));
        let told = story(Paint::plain(), &error, &trace);
        assert!(told.contains("round 1   attempt 1: connect_error after 0.2 s\n"), "{told}");
        assert!(told.contains("round 1   attempt 2: connect_error after 0.2 s\n"), "{told}");
        assert!(told.ends_with("502 Bad Gateway\n   x-toolgate-trace: abc\n   The provider failed.\n"), "{told}");
    }

    #[test]
    fn a_long_answer_is_cut_and_says_so() {
        let told = story(Paint::plain(), &answered(&"word ".repeat(400)), &Value::Null);
        assert!(told.ends_with("… (14 more lines)\n"), "{told}");
        assert!(told.lines().all(|line| line.chars().count() <= WIDTH), "{told}");
    }

    #[test]
    fn the_command_to_try_survives_the_shell() {
        let client = Client { address: ([127, 0, 0, 1], 80).into(), key: "tg-x" };
        let around = Around { admin: ([127, 0, 0, 1], 81).into(), trace: "abc", file: Path::new("toolgate.yaml") };
        let told = invitation(Paint::plain(), &client, &around, r#"{"q":"what's it"}"#);
        assert!(told.contains(r#"-d '{"q":"what'\''s it"}'"#), "{told}");
    }
}
