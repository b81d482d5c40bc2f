//! Plays one case: starts the servers and the gateway, lets the callers ask, and compares what was seen with what was expected.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::caller::{Response, send};
use crate::cases::Case;
use crate::config::{BOSS, PROVIDER, SHOP, configuration};
use crate::gateway::{Gateway, command};
use crate::matching::{faults, side_by_side};
use crate::metrics;
use crate::scenario::{Ask, Expect, Got, Mode, Run, Scenario, Seen};
use crate::server::Received;
use crate::stage::{PATIENCE, Stage};
use crate::stand::{Scripts, Stand};
use crate::stream::{Stream, answer};

/// Plays a case to its end.
///
/// # Errors
/// All that differs, expected and seen side by side, and the end of the gateway's log.
pub async fn play(case: &Case) -> Result<(), String> {
    // A port that was free may be taken by the time the gateway listens: exit 3. Then with other ports.
    for _ in 0..2 {
        match play_once(case).await {
            Err(fault) if fault.contains("the gateway ended with exit status: 3") => {}
            played => return played,
        }
    }
    play_once(case).await
}

async fn play_once(case: &Case) -> Result<(), String> {
    let house = House::open(case).await?;
    let mut report = Report::default();
    for run in &house.scenario.commands {
        house.run(run, &mut report).await?;
    }
    let mut log = String::new();
    if !house.scenario.requests.is_empty() {
        let gateway = house.gateway().await?;
        house.ask(&gateway, &mut report).await;
        log = gateway.log();
    }
    report.told(case, &house.scenario.title, &log)
}

/// A scenario, and where it is played.
struct House {
    scenario: Scenario,
    mode: Mode,
    stand: Stand,
}

impl House {
    async fn open(case: &Case) -> Result<Self, String> {
        let stand = Stand::open(|placeholders| {
            let scenario = case.scenario(placeholders)?;
            let tools = scenario.tools.iter().map(|(path, replies)| (path.clone(), replies.to_vec())).collect();
            Ok(Scripts { upstream: scenario.upstream, tools, strict: scenario.strict })
        })
        .await?;
        let house = Self { scenario: case.scenario(&stand.placeholders)?, mode: case.mode, stand };
        house.write_files()?;
        Ok(house)
    }

    fn write_files(&self) -> Result<(), String> {
        let text = match &self.scenario.config_text {
            Some(text) => text.clone(),
            None => configuration(self.scenario.config.clone(), &self.stand.placeholders)?,
        };
        self.stand.folder.write("toolgate.yaml", &text);
        for (name, text) in &self.scenario.files {
            self.stand.folder.write(name, text);
        }
        Ok(())
    }

    fn env(&self) -> Vec<(String, String)> {
        self.scenario.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    async fn gateway(&self) -> Result<Gateway, String> {
        Gateway::start(&self.stand.folder, self.stand.addresses.clone(), &self.env()).await
    }

    async fn run(&self, run: &Run, report: &mut Report) -> Result<(), String> {
        let output = command(&self.stand.folder, &run.args, &self.env()).await?;
        let printed = format!("{}{}", output.stdout, output.stderr);
        let what = format!("toolgate {}", run.args.join(" "));
        report.check(&format!("{what}: exit code"), &json!(run.exit), &json!(output.exit));
        let mut rest = printed.as_str();
        for text in &run.prints {
            match rest.find(text.as_str()) {
                Some(at) => rest = &rest[at + text.len()..],
                None => report.fault(format!(
                    "{what}: expected to print {text:?} (after what stands before it in the list), printed:\n{printed}"
                )),
            }
        }
        for text in run.prints_not.iter().filter(|text| printed.contains(text.as_str())) {
            report.fault(format!("{what}: expected not to print {text:?}, printed:\n{printed}"));
        }
        if let Some(expected) = &run.json {
            let seen = serde_json::from_str(&output.stdout).unwrap_or_else(|_| json!(output.stdout));
            report.check(&what, expected, &seen);
        }
        Ok(())
    }

    async fn ask(&self, gateway: &Gateway, report: &mut Report) {
        let scenario = &self.scenario;
        let last = scenario.requests.len() - 1;
        for (at, ask) in scenario.requests.iter().enumerate() {
            let address = if ask.admin { &gateway.admin } else { &gateway.address };
            let response = send(address, ask.steps(self.mode), &self.stand.stage).await;
            let expected = ask.expect.as_ref().or(scenario.expect.caller.as_ref().filter(|_| at == last));
            let expected = expected.cloned().unwrap_or_default();
            self.judge_response(gateway, ask, at, &expected, &response, report).await;
            if at == last
                && let Some(expected) = &scenario.expect.trace
            {
                report.check(
                    "the trace",
                    expected,
                    &self.trace(gateway, ask, &response, |seen| faults(expected, seen).is_empty()).await,
                );
            }
        }
        self.judge_servers(&scenario.expect, report);
        self.judge_metrics(gateway, &scenario.expect, report).await;
        self.judge_log(&gateway.log(), &scenario.expect, report);
    }

    async fn judge_response(
        &self,
        gateway: &Gateway,
        ask: &Ask,
        at: usize,
        expected: &Got,
        seen: &Response,
        report: &mut Report,
    ) {
        let who = format!("the caller of request {at}");
        report.check(&format!("{who}: status"), &expected.status.clone().unwrap_or(json!(200)), &json!(seen.status));
        let text = seen.text();
        if seen.status != 0 && !ask.admin {
            let trace = seen.trace().unwrap_or_default();
            let fine = trace.len() == 32 && trace.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            report.fault_if(!fine, || format!("{who}: x-toolgate-trace is {trace:?}, expected 32 hexadecimal digits"));
        }
        for (name, expected) in &expected.headers {
            check_header(report, &who, name, expected, &seen.head);
        }
        let stream = seen.is_stream().then(|| Stream::parse(&seen.body));
        for fault in stream.iter().flat_map(|stream| &stream.faults) {
            report.fault(format!("{who}: the stream: {fault}\n{text}"));
        }
        let broken = seen.broken.as_ref().filter(|_| stream.as_ref().is_none_or(|stream| stream.error.is_none()));
        report.fault_if(broken.is_some(), || format!("{who}: the response broke off ({broken:?}):\n{text}"));
        let json = seen.json();
        let error = stream.as_ref().map_or_else(|| json.get("error").cloned(), |stream| stream.error.clone());
        match &expected.error {
            Some(expected) => report.check(&format!("{who}: the error"), expected, &error.unwrap_or_default()),
            None => report.fault_if(error.is_some() && expected.body.is_none(), || {
                format!("{who}: an error that was not expected: {text}")
            }),
        }
        if let Some(expected) = &expected.answer {
            report.check(&format!("{who}: the answer"), expected, &stream.as_ref().map_or_else(|| answer(&json), Stream::answer));
        }
        if let Some(expected) = &expected.body {
            report.check(&format!("{who}: the body"), expected, &if json.is_null() { json!(text) } else { json });
        }
        if let (Some(comments), Some(stream)) = (expected.comments, &stream) {
            report.fault_if(stream.comments < comments, || {
                format!("{who}: expected {comments} comments, seen {}", stream.comments)
            });
        }
        if let Some(expected) = &expected.summary {
            report.check(&format!("{who}: how the run ended"), expected, &self.summary(gateway, ask, seen, expected).await);
        }
        check_texts(report, &who, &expected.text, &expected.text_not, &text);
        report.fault_if(!ask.admin && text.contains(PROVIDER), || format!("{who}: the provider's key: {text}"));
    }

    /// How the run ended, from the headers of a plain answer, else from the trace.
    async fn summary(&self, gateway: &Gateway, ask: &Ask, seen: &Response, expected: &Value) -> Value {
        if !seen.is_stream() {
            let mut summary = Map::new();
            for name in ["status", "reason", "rounds", "tool-calls", "cost-usd"] {
                if let Some(value) = seen.head.header(&format!("x-toolgate-{name}")) {
                    let number = value.parse::<u64>().ok().filter(|_| matches!(name, "rounds" | "tool-calls"));
                    summary.insert(name.replace('-', "_"), number.map_or_else(|| json!(value), |number| json!(number)));
                }
            }
            return Value::Object(summary);
        }
        summary_of(&self.trace(gateway, ask, seen, |trace| faults(expected, &summary_of(trace)).is_empty()).await)
    }

    /// The trace of a response, as its caller may read it: asked for until it is `enough`, or patience ends.
    async fn trace(&self, gateway: &Gateway, ask: &Ask, response: &Response, enough: impl Fn(&Value) -> bool) -> Value {
        let Some(id) = response.trace() else { return Value::Null };
        let ask = Ask { get: Some(format!("/toolgate/traces/{id}")), key: ask.key.clone(), ..Ask::default() };
        let mut seen = Value::Null;
        for _ in 0..40 {
            seen = send(&gateway.address, ask.steps(Mode::Plain), &Stage::default()).await.json();
            if enough(&seen) {
                break;
            }
            tokio::time::sleep(PATIENCE / 200).await;
        }
        seen
    }

    fn judge_servers(&self, expect: &Expect, report: &mut Report) {
        for (name, server, expected) in
            [("the upstream", &self.stand.upstream, &expect.upstream), ("the tool server", &self.stand.tools, &expect.tools)]
        {
            let received = server.received();
            for complaint in server.complaints() {
                report.fault(format!("{name}: {complaint}"));
            }
            if let Some(expected) = expected {
                check_requests(report, name, expected, &received);
            }
            for request in &received {
                check_clean(report, name, request);
            }
        }
        let strays = self.stand.other.received().len();
        report.fault_if(strays > 0, || format!("the other server: expected no request, seen {strays}"));
        if let Some(expected) = expect.tools_side_by_side {
            report.check("tools side by side", &json!(expected), &json!(self.stand.tools.most_in_hand()));
        }
    }

    async fn judge_metrics(&self, gateway: &Gateway, expect: &Expect, report: &mut Report) {
        if expect.metrics.is_empty() {
            return;
        }
        let mut wrong = Vec::new();
        for _ in 0..40 {
            let text = gateway.admin("/metrics").await.text();
            let seen = metrics::parse(&text);
            let value = |series: &str| seen.get(&metrics::sorted(series)).copied().unwrap_or(0.0);
            let differs = |(series, expected): &(&String, &Value)| !faults(expected, &json!(value(series))).is_empty();
            wrong = expect
                .metrics
                .iter()
                .filter(differs)
                .map(|(series, expected)| near(series, expected, value(series), &text))
                .collect();
            if wrong.is_empty() {
                return;
            }
            tokio::time::sleep(PATIENCE / 200).await;
        }
        wrong.into_iter().for_each(|fault| report.fault(fault));
    }

    fn judge_log(&self, log: &str, expect: &Expect, report: &mut Report) {
        for text in expect.log.iter().filter(|text| !log.contains(text.as_str())) {
            report.fault(format!("the log: expected {text:?}"));
        }
        let secrets = [PROVIDER, SHOP, BOSS].into_iter().chain(expect.nowhere.iter().map(String::as_str));
        for text in secrets.filter(|text| log.contains(text)) {
            report.fault(format!("the log holds {text:?}"));
        }
    }
}

fn summary_of(trace: &Value) -> Value {
    let rounds = trace["rounds"].as_array().cloned().unwrap_or_default();
    let calls = rounds.iter().flat_map(|round| round["tool_calls"].as_array().cloned().unwrap_or_default());
    let run = calls.filter(|call| ["ok", "error", "timeout"].iter().any(|outcome| call["outcome"] == *outcome)).count();
    let mut summary = json!({"status": trace["status"], "rounds": rounds.len(), "tool_calls": run});
    if trace["reason"].is_string() {
        summary["reason"] = trace["reason"].clone();
    }
    summary
}

fn near(series: &str, expected: &Value, seen: f64, text: &str) -> String {
    let name = series.split('{').next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(name)).take(12).collect();
    format!("the metrics: {series}: expected {expected}, seen {seen}; there is:\n    {}", lines.join("\n    "))
}

fn check_requests(report: &mut Report, who: &str, expected: &[Seen], received: &[Received]) {
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
    let json = seen.json();
    let text = String::from_utf8_lossy(&seen.body);
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
fn check_clean(report: &mut Report, who: &str, request: &Received) {
    let whole = format!("{} {:?} {}", request.target, request.head.headers, String::from_utf8_lossy(&request.body));
    report.fault_if(whole.contains(SHOP) || whole.contains(BOSS), || format!("{who}: saw a caller's key: {whole}"));
    let own = request.head.headers.iter().find(|(name, _)| name.starts_with("x-toolgate-"));
    report.fault_if(own.is_some(), || format!("{who}: saw the header {own:?}"));
}

fn check_header(report: &mut Report, who: &str, name: &str, expected: &Value, head: &crate::wire::Head) {
    let seen = head.header(&name.to_ascii_lowercase()).map_or(Value::Null, Value::String);
    let expected = match expected {
        Value::Number(number) => json!(number.to_string()),
        Value::String(word) if word == "$absent" => Value::Null,
        other => other.clone(),
    };
    report.check(&format!("{who}: header {name}"), &expected, &seen);
}

fn check_texts(report: &mut Report, who: &str, has: &[String], has_not: &[String], text: &str) {
    for expected in has.iter().filter(|expected| !text.contains(expected.as_str())) {
        report.fault(format!("{who}: expected the text {expected:?} in:\n{text}"));
    }
    for unexpected in has_not.iter().filter(|unexpected| text.contains(unexpected.as_str())) {
        report.fault(format!("{who}: expected no text {unexpected:?} in:\n{text}"));
    }
}

/// All that differs.
#[derive(Default)]
struct Report {
    text: String,
    faults: usize,
}

impl Report {
    fn check(&mut self, what: &str, expected: &Value, seen: &Value) {
        let faults = faults(expected, seen);
        if faults.is_empty() {
            return;
        }
        self.fault(format!("{what}{}", faults.join(&format!("\n{what}"))));
        if expected.is_object() || expected.is_array() {
            self.text += &side_by_side(expected, seen);
        }
    }

    fn fault(&mut self, what: String) {
        self.faults += 1;
        let _ = writeln!(self.text, "✗ {what}");
    }

    fn fault_if(&mut self, wrong: bool, what: impl FnOnce() -> String) {
        if wrong {
            self.fault(what());
        }
    }

    fn told(self, case: &Case, title: &str, log: &str) -> Result<(), String> {
        if self.faults == 0 {
            return Ok(());
        }
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(15)..].join("\n");
        Err(format!("{title}\n{}\n\n{}\nthe end of the gateway's log:\n{tail}\n", case.file.display(), self.text))
    }
}
