//! Compares what was seen in a case with what was expected: of each response, and in the end of the servers, the metrics, the log and the ledger.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::caller::{Response, send};
use crate::config::{BOSS, PROVIDER, SHOP};
use crate::gateway::Gateway;
use crate::ledger;
use crate::matching::faults;
use crate::metrics;
use crate::report::{Report, check_clean, check_header, check_requests, check_texts};
use crate::run::House;
use crate::scenario::{Ask, Expect, Got, Mode};
use crate::services::REDIS_PASSWORD;
use crate::stage::{PATIENCE, Stage};
use crate::stream::{Stream, answer};

impl House {
    pub(crate) async fn judge_response(
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
        // What passes through has no rules of ours.
        let is_chat = ask.path.as_ref().is_none_or(|path| path.contains("chat"));
        for fault in stream.iter().filter(|_| is_chat).flat_map(|stream| &stream.faults) {
            report.fault(format!("{who}: the stream: {fault}\n{text}"));
        }
        let broken = seen.broken.as_ref().filter(|_| stream.as_ref().is_none_or(|stream| stream.error.is_none()));
        report.fault_if(broken.is_some() != expected.broken, || format!("{who}: the response broke off ({broken:?}):\n{text}"));
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

    pub(crate) async fn matching_trace(&self, gateway: &Gateway, ask: &Ask, response: &Response, expected: &Value) -> Value {
        self.trace(gateway, ask, response, |seen| faults(expected, seen).is_empty()).await
    }

    /// The trace of a response, as its caller may read it: asked for until it is `enough`, or patience ends.
    async fn trace(&self, gateway: &Gateway, ask: &Ask, response: &Response, enough: impl Fn(&Value) -> bool) -> Value {
        let Some(id) = response.trace() else { return Value::Null };
        let ask = Ask { get: Some(format!("/toolgate/traces/{id}")), key: ask.key.clone(), ..Ask::default() };
        get_until(gateway, ask, enough).await
    }

    /// Everything that is asked when all requests are over. `costs`: what callers were told, by trace.
    pub(crate) async fn judge_in_the_end(
        &self,
        gateway: &Gateway,
        key: Option<String>,
        costs: &BTreeMap<String, String>,
        report: &mut Report,
    ) {
        let expect = &self.scenario.expect;
        self.judge_servers(expect, report);
        self.judge_metrics(gateway, expect, report).await;
        self.judge_spend(gateway, expect, key, report).await;
        self.judge_ledger(gateway, expect, costs, report).await;
        self.judge_log(&gateway.log(), expect, report);
    }

    /// What the key of the last request may still spend.
    async fn judge_spend(&self, gateway: &Gateway, expect: &Expect, key: Option<String>, report: &mut Report) {
        let Some(expected) = &expect.spend else { return };
        let ask = Ask { get: Some("/toolgate/spend".to_owned()), key, ..Ask::default() };
        let seen = get_until(gateway, ask, |seen| faults(expected, seen).is_empty()).await;
        report.check("what may still be spent", expected, &seen);
    }

    /// The rows; and whatever they are, they come to what the metrics say, and each run's to what its caller was told.
    async fn judge_ledger(&self, gateway: &Gateway, expect: &Expect, costs: &BTreeMap<String, String>, report: &mut Report) {
        let keeps_nothing = self.shared.is_none() && !self.own_ledger().is_file();
        if keeps_nothing && expect.ledger.is_none() {
            return;
        }
        let mut wrong = Report::default();
        for _ in 0..40 {
            wrong = Report::default();
            match self.rows().await {
                Ok(rows) => {
                    if let Some(expected) = &expect.ledger {
                        wrong.check("the ledger", &json!(expected), &json!(rows));
                    }
                    let metrics = gateway.admin("/metrics").await.text();
                    ledger::adds_up(&rows, &metrics, costs).unwrap_or_else(|fault| wrong.fault(fault));
                }
                Err(fault) => wrong.fault(format!("the ledger: {fault}")),
            }
            if wrong.is_empty() {
                return;
            }
            tokio::time::sleep(PATIENCE / 200).await;
        }
        report.take_over(wrong);
    }

    async fn rows(&self) -> Result<Vec<Value>, String> {
        match &self.shared {
            Some((database, _)) => ledger::rows_of_database(database).await,
            None => ledger::rows_of_file(&self.own_ledger()),
        }
    }

    fn own_ledger(&self) -> PathBuf {
        self.stand.folder.path().join("toolgate.db")
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
        let secrets = [PROVIDER, SHOP, BOSS, REDIS_PASSWORD].into_iter().chain(expect.nowhere.iter().map(String::as_str));
        for text in secrets.filter(|text| log.contains(text)) {
            report.fault(format!("the log holds {text:?}"));
        }
    }
}

/// Reads a path until what is read is `enough`, or patience ends.
async fn get_until(gateway: &Gateway, ask: Ask, enough: impl Fn(&Value) -> bool) -> Value {
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

fn summary_of(trace: &Value) -> Value {
    let rounds = trace["rounds"].as_array().cloned().unwrap_or_default();
    let calls = rounds.iter().flat_map(|round| round["tool_calls"].as_array().cloned().unwrap_or_default());
    let run = calls.filter(|call| ["ok", "error", "timeout"].iter().any(|outcome| call["outcome"] == *outcome)).count();
    let mut summary = json!({"status": trace["status"], "rounds": rounds.len(), "tool_calls": run});
    if trace["reason"].is_string() {
        summary["reason"] = trace["reason"].clone();
    }
    if let Some(cost) = trace["cost_usd"].as_f64() {
        summary["cost_usd"] = json!(ledger::decimal(ledger::nano_usd(cost)));
    }
    summary
}

fn near(series: &str, expected: &Value, seen: f64, text: &str) -> String {
    let name = series.split('{').next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(name)).take(12).collect();
    format!("the metrics: {series}: expected {expected}, seen {seen}; there is:\n    {}", lines.join("\n    "))
}
