//! The metrics: one method a fact. Only what exists is registered, and every label takes its values from the configuration or from a
//! closed set, so that no caller can make the number of series grow.

use std::collections::HashMap;
use std::time::Duration;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, MetricFamily};
use prometheus::{
    Encoder, GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use toolgate_config::Config;
use toolgate_config::money::NanoUsd;
use toolgate_config::price::Billed;
use toolgate_policies::counters::BudgetReading;
use toolgate_policies::limits::{Limit, What};
use toolgate_policies::redact::Counts;
use toolgate_tools::toolbox::Outcome;

use crate::store::Sum;
use crate::upstream::Labels;

/// The media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Every counter and histogram of the process.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    request_seconds: HistogramVec,
    first_byte_seconds: HistogramVec,
    rounds: HistogramVec,
    upstream_requests: IntCounterVec,
    upstream_seconds: HistogramVec,
    breaker_open: IntGaugeVec,
    tokens: IntCounterVec,
    spend: Dollars,
    unpriced: IntCounterVec,
    budget_used: GaugeVec,
    budget_denied: IntCounterVec,
    rate_limited: IntCounterVec,
    counted_alone: IntCounter,
    tool_calls: IntCounterVec,
    tool_seconds: HistogramVec,
    withheld: IntCounterVec,
    denied: IntCounterVec,
    egress_denied: IntCounterVec,
    redactions: IntCounterVec,
    truncated: IntCounterVec,
    in_flight: IntGauge,
    reloads: IntCounterVec,
}

/// The tokens of one answer. Reasoning tokens are part of the output ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Input that was not in the provider's cache.
    pub fresh: u64,
    /// Input that was.
    pub cached: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// The part of the output that was reasoning.
    pub reasoning: u64,
}

/// Who spends, on what: the labels of spend.
#[derive(Clone, Copy, Debug)]
pub struct Spender<'s> {
    /// The provider; empty for a tool.
    pub provider: &'s str,
    /// The model's entry that answered; for a tool, the one that was asked for.
    pub model: &'s str,
    /// The key.
    pub key: &'s str,
}

/// A counter of money: counted in nano-dollars, told in dollars. A sum of many small fractions would drift.
#[derive(Clone)]
struct Dollars(IntCounterVec);

impl Dollars {
    fn new(name: &str, help: &str, labels: &[&str]) -> Result<Self, prometheus::Error> {
        Ok(Self(IntCounterVec::new(Opts::new(name, help), labels)?))
    }
}

impl Collector for Dollars {
    fn desc(&self) -> Vec<&Desc> {
        self.0.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = self.0.collect();
        for metric in families.iter_mut().flat_map(|family| family.mut_metric().iter_mut()) {
            let nano = metric.get_counter().get_value();
            let mut counter = Counter::default();
            counter.set_value(nano / 1e9);
            metric.set_counter(counter);
        }
        families
    }
}

/// What became of a reload; the words of `toolgate_config_reloads_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// The new file is in force.
    Ok,
    /// The new file has faults; the old one stays.
    Refused,
}

impl ReloadOutcome {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
        }
    }
}

/// The label for the model that a caller named. Names that only `"*"` covers share the label `*`, and those that nothing covers share
/// `unknown`: a caller can name what it likes.
pub fn model_label<'a>(config: &'a Config, asked: &'a str) -> &'a str {
    match config.models.named.get_key_value(asked) {
        Some((name, _)) => name.as_str(),
        None if config.models.any.is_some() => "*",
        None => "unknown",
    }
}

/// From a cached tool result to a run of ten minutes.
const SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
/// A run has up to 20 rounds and a closing call.
const ROUNDS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 21.0];

impl Metrics {
    /// Registers every metric.
    ///
    /// # Errors
    /// Two metrics of one name, or a malformed name: a mistake in this file.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let add = Registering(&registry);
        let metrics = Self {
            requests: add.counter("toolgate_requests_total", "Requests by HTTP status.", &["model", "key", "status"])?,
            request_seconds: add.seconds("toolgate_request_seconds", "From a request's head to its last byte.", &["model"])?,
            first_byte_seconds: add.seconds(
                "toolgate_first_byte_seconds",
                "From a request's head to the answer's first byte.",
                &["model"],
            )?,
            rounds: add.histogram("toolgate_rounds", "Upstream calls in one run.", &["model"], ROUNDS)?,
            upstream_requests: add.counter(
                "toolgate_upstream_requests_total",
                "Calls to providers, retries included.",
                &["provider", "model", "outcome"],
            )?,
            upstream_seconds: add.seconds(
                "toolgate_upstream_seconds",
                "From a provider call's start to its last byte.",
                &["provider", "model"],
            )?,
            breaker_open: add.register(IntGaugeVec::new(
                Opts::new("toolgate_breaker_open", "Upstream models that are not asked for a while, because they kept failing."),
                &["provider", "model"],
            )?)?,
            tokens: add.counter("toolgate_tokens_total", "Tokens by kind.", &["provider", "model", "key", "kind"])?,
            spend: add.register(Dollars::new("toolgate_spend_usd_total", "What was spent.", &["provider", "model", "key"])?)?,
            unpriced: add.counter(
                "toolgate_spend_unknown_total",
                "Calls of which nobody knows the cost.",
                &["provider", "model", "key"],
            )?,
            budget_used: add.register(GaugeVec::new(
                Opts::new("toolgate_budget_used_ratio", "What is used of a budget, as a part of it."),
                &["scope", "name", "per", "unit"],
            )?)?,
            budget_denied: add.counter(
                "toolgate_budget_denied_total",
                "Calls that a budget had no room for.",
                &["scope", "name"],
            )?,
            rate_limited: add.counter(
                "toolgate_rate_limited_total",
                "Requests that came too fast, or too many at once.",
                &["scope", "name", "kind"],
            )?,
            counted_alone: add.register(IntCounter::new(
                "toolgate_counters_local_total",
                "Times that a request was counted by this gateway alone, because the counters' server was away.",
            )?)?,
            tool_calls: add.counter("toolgate_tool_calls_total", "Tool calls.", &["tool", "group", "outcome"])?,
            tool_seconds: add.seconds("toolgate_tool_seconds", "How long tools ran.", &["tool"])?,
            withheld: add.counter("toolgate_gate_withheld_total", "Tools that were not offered.", &["reason"])?,
            denied: add.counter("toolgate_gate_denied_total", "Tools that were asked for and refused.", &["reason"])?,
            egress_denied: add.counter(
                "toolgate_egress_denied_total",
                "Connections that a tool was not allowed to make.",
                &["group", "reason"],
            )?,
            redactions: add.counter("toolgate_redactions_total", "What was taken out of texts.", &["kind"])?,
            truncated: add.counter("toolgate_truncated_total", "Runs that were cut short.", &["reason"])?,
            in_flight: add.gauge("toolgate_in_flight", "Requests in flight.")?,
            reloads: add.counter("toolgate_config_reloads_total", "Configurations that were read again.", &["outcome"])?,
            registry: registry.clone(),
        };
        add.build_info()?;
        for outcome in [ReloadOutcome::Ok, ReloadOutcome::Refused] {
            metrics.reloads.with_label_values(&[outcome.as_str()]);
        }
        Ok(metrics)
    }

    /// A caller's request was answered.
    pub fn request(&self, model: &str, key: &str, status: u16, took: Duration) {
        self.requests.with_label_values(&[model, key, status_label(status)]).inc();
        self.request_seconds.with_label_values(&[model]).observe(took.as_secs_f64());
    }

    /// The first byte of an answer went out.
    pub fn first_byte(&self, model: &str, after: Duration) {
        self.first_byte_seconds.with_label_values(&[model]).observe(after.as_secs_f64());
    }

    /// A run ended after this many upstream calls.
    pub fn rounds(&self, model: &str, rounds: u32) {
        self.rounds.with_label_values(&[model]).observe(f64::from(rounds));
    }

    /// A call to a provider ended; one that was not made took no time.
    pub fn upstream(&self, provider: &str, model: &str, outcome: &'static str, took: Duration) {
        self.upstream_requests.with_label_values(&[provider, model, outcome]).inc();
        if !took.is_zero() {
            self.upstream_seconds.with_label_values(&[provider, model]).observe(took.as_secs_f64());
        }
    }

    /// A provider told, or we counted, what an answer used.
    pub fn tokens(&self, provider: &str, model: &str, key: &str, used: Tokens) {
        let Tokens { fresh, cached, output, reasoning } = used;
        for (kind, count) in [("input", fresh), ("cached_input", cached), ("output", output), ("reasoning", reasoning)] {
            if count > 0 {
                self.tokens.with_label_values(&[provider, model, key, kind]).inc_by(count);
            }
        }
    }

    /// A call was paid for; `None`: nobody knows how much.
    pub fn spend(&self, spender: Spender<'_>, cost: Option<NanoUsd>) {
        let labels = [spender.provider, spender.model, spender.key];
        match cost {
            Some(cost) => self.spend.0.with_label_values(&labels).inc_by(cost.0),
            None => self.unpriced.with_label_values(&labels).inc(),
        }
    }

    /// What the ledger knows from before this process.
    pub fn resume(&self, sum: &Sum) {
        let spender = Spender { provider: &sum.provider, model: &sum.served, key: &sum.key };
        self.spend(spender, Some(sum.cost));
        if sum.unknown > 0 {
            self.unpriced.with_label_values(&[spender.provider, spender.model, spender.key]).inc_by(sum.unknown);
        }
        let Billed { fresh, cached, cache_write, output } = sum.tokens;
        let tokens = Tokens { fresh: fresh.saturating_add(cache_write), cached, output, reasoning: sum.reasoning };
        self.tokens(&sum.provider, &sum.served, &sum.key, tokens);
    }

    /// How often this gateway has counted alone so far.
    pub fn counted_alone(&self, times: u64) {
        self.counted_alone.inc_by(times.saturating_sub(self.counted_alone.get()));
    }

    /// How the budgets stand. Two of one kind that differ in their time zone alone are one line: the one that is used more.
    pub fn budgets(&self, readings: &[BudgetReading]) {
        self.budget_used.reset();
        for reading in readings {
            let id = &reading.limit.id;
            let What::Budget(unit, per, _) = &id.what else { continue };
            let gauge = self.budget_used.with_label_values(&[id.scope.as_str(), id.scope.name(), per.as_str(), unit.as_str()]);
            gauge.set(gauge.get().max(reading.used as f64 / reading.limit.most as f64));
        }
    }

    /// How many upstream models of a provider and an entry are not asked at the moment: of all entries, so that each has its line.
    pub fn breakers<'e>(&self, entries: impl Iterator<Item = (&'e str, &'e str)>, open: &HashMap<Labels, u64>) {
        self.breaker_open.reset();
        for (provider, model) in entries {
            self.breaker_open.with_label_values(&[provider, model]).set(0);
        }
        for ((provider, model), count) in open {
            self.breaker_open.with_label_values(&[provider, model]).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
    }

    /// A limit refused a call.
    pub fn denied_by(&self, limit: &Limit) {
        let (scope, name) = (limit.id.scope.as_str(), limit.id.scope.name());
        let kind = match limit.id.what {
            What::Budget(..) => return self.budget_denied.with_label_values(&[scope, name]).inc(),
            What::RequestRate => "requests",
            What::TokenRate => "tokens",
            What::Concurrent => "concurrent",
        };
        self.rate_limited.with_label_values(&[scope, name, kind]).inc();
    }

    /// A tool call ended; one that was not run took no time. A call of a tool that is not registered has `unknown` for its tool and group.
    pub fn tool_call(&self, tool: &str, group: &str, outcome: Outcome, took: Duration) {
        self.tool_calls.with_label_values(&[tool, group, outcome.as_str()]).inc();
        if outcome.was_run() {
            self.tool_seconds.with_label_values(&[tool]).observe(took.as_secs_f64());
        }
    }

    /// Tools were not offered.
    pub fn withheld(&self, reason: &'static str, tools: u64) {
        self.withheld.with_label_values(&[reason]).inc_by(tools);
    }

    /// A tool that a model asked for was refused.
    pub fn denied(&self, reason: &'static str) {
        self.denied.with_label_values(&[reason]).inc();
    }

    /// A tool was not allowed to connect.
    pub fn egress_denied(&self, group: &str, reason: &'static str) {
        self.egress_denied.with_label_values(&[group, reason]).inc();
    }

    /// Things of a kind were taken out of texts.
    pub fn redactions(&self, counts: &Counts) {
        counts.iter().for_each(|(kind, times)| self.redactions.with_label_values(&[kind.as_str()]).inc_by(times.into()));
    }

    /// A run was cut short.
    pub fn truncated(&self, reason: &'static str) {
        self.truncated.with_label_values(&[reason]).inc();
    }

    /// A configuration was read again.
    pub fn reload(&self, outcome: ReloadOutcome) {
        self.reloads.with_label_values(&[outcome.as_str()]).inc();
    }

    /// Everything, as Prometheus text. The number of requests in flight is kept elsewhere, so it is told here.
    ///
    /// # Errors
    /// A metric that cannot be written as text: a mistake in this file.
    pub fn render(&self, in_flight: usize) -> Result<String, prometheus::Error> {
        self.in_flight.set(i64::try_from(in_flight).unwrap_or(i64::MAX));
        let mut text = Vec::with_capacity(16 * 1024);
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// The statuses that the gateway answers with; one that is not among them is named by its class.
fn status_label(status: u16) -> &'static str {
    match status {
        200 => "200",
        400 => "400",
        401 => "401",
        403 => "403",
        404 => "404",
        405 => "405",
        408 => "408",
        413 => "413",
        422 => "422",
        429 => "429",
        499 => "499",
        500 => "500",
        502 => "502",
        503 => "503",
        504 => "504",
        other if other < 300 => "2xx",
        other if other < 400 => "3xx",
        other if other < 500 => "4xx",
        _ => "5xx",
    }
}

/// Makes a metric and registers it in one go.
struct Registering<'a>(&'a Registry);

impl Registering<'_> {
    fn counter(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
        self.register(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    fn seconds(&self, name: &str, help: &str, labels: &[&str]) -> Result<HistogramVec, prometheus::Error> {
        self.histogram(name, help, labels, SECONDS)
    }

    fn histogram(&self, name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> Result<HistogramVec, prometheus::Error> {
        self.register(HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels)?)
    }

    fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
        self.register(IntGauge::new(name, help)?)
    }

    fn build_info(&self) -> Result<(), prometheus::Error> {
        let info = IntGaugeVec::new(Opts::new("toolgate_build_info", "The version that runs; always 1."), &["version"])?;
        self.register(info)?.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        Ok(())
    }

    fn register<M: Collector + Clone + 'static>(&self, metric: M) -> Result<M, prometheus::Error> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }
}

#[cfg(test)]
mod tests {
    use toolgate_policies::redact::Kind;

    use super::*;

    fn rendered(tell: impl FnOnce(&Metrics)) -> String {
        let metrics = Metrics::new().unwrap();
        tell(&metrics);
        metrics.render(3).unwrap()
    }

    #[test]
    fn each_fact_has_its_line() {
        let second = Duration::from_secs(1);
        let text = rendered(|metrics| {
            metrics.request("m", "k", 200, second);
            metrics.request("m", "k", 418, second);
            metrics.first_byte("m", second);
            metrics.rounds("m", 3);
            metrics.upstream("p", "m", "ok", second);
            metrics.upstream("p", "m", "connect_error", Duration::ZERO);
            metrics.breakers([("p", "old")].into_iter(), &HashMap::new());
            metrics.breakers([("p", "m"), ("p", "n")].into_iter(), &HashMap::from([(("p".to_owned(), "m".to_owned()), 1)]));
            metrics.tokens("p", "m", "k", Tokens { fresh: 1, cached: 2, output: 3, reasoning: 0 });
            metrics.tool_call("t", "g", Outcome::Error, second);
            metrics.withheld("flow", 2);
            metrics.denied("flow");
            metrics.egress_denied("g", "no_egress");
            let mut counts = Counts::default();
            counts.add(&Kind::Jwt);
            metrics.redactions(&counts);
            metrics.truncated("max_rounds");
            metrics.reload(ReloadOutcome::Refused);
        });
        let expected = [
            r#"toolgate_requests_total{key="k",model="m",status="200"} 1"#,
            r#"toolgate_requests_total{key="k",model="m",status="4xx"} 1"#,
            r#"toolgate_request_seconds_bucket{model="m",le="0.5"} 0"#,
            r#"toolgate_request_seconds_bucket{model="m",le="1"} 2"#,
            r#"toolgate_first_byte_seconds_count{model="m"} 1"#,
            r#"toolgate_rounds_bucket{model="m",le="2"} 0"#,
            r#"toolgate_rounds_bucket{model="m",le="3"} 1"#,
            r#"toolgate_upstream_requests_total{model="m",outcome="ok",provider="p"} 1"#,
            r#"toolgate_upstream_requests_total{model="m",outcome="connect_error",provider="p"} 1"#,
            r#"toolgate_upstream_seconds_count{model="m",provider="p"} 1"#,
            r#"toolgate_breaker_open{model="m",provider="p"} 1"#,
            r#"toolgate_breaker_open{model="n",provider="p"} 0"#,
            r#"toolgate_tokens_total{key="k",kind="cached_input",model="m",provider="p"} 2"#,
            r#"toolgate_tokens_total{key="k",kind="input",model="m",provider="p"} 1"#,
            r#"toolgate_tokens_total{key="k",kind="output",model="m",provider="p"} 3"#,
            r#"toolgate_tool_calls_total{group="g",outcome="error",tool="t"} 1"#,
            r#"toolgate_tool_seconds_count{tool="t"} 1"#,
            r#"toolgate_gate_withheld_total{reason="flow"} 2"#,
            r#"toolgate_gate_denied_total{reason="flow"} 1"#,
            r#"toolgate_egress_denied_total{group="g",reason="no_egress"} 1"#,
            r#"toolgate_redactions_total{kind="jwt"} 1"#,
            r#"toolgate_truncated_total{reason="max_rounds"} 1"#,
            r#"toolgate_config_reloads_total{outcome="ok"} 0"#,
            r#"toolgate_config_reloads_total{outcome="refused"} 1"#,
            "toolgate_in_flight 3",
            concat!(r#"toolgate_build_info{version=""#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
        ];
        for line in expected {
            assert!(text.lines().any(|seen| seen == line), "no line {line} in\n{text}");
        }
        assert!(!text.contains("\"old\""), "what is in the file no more has no line");
    }

    #[test]
    fn every_metric_explains_itself() {
        let text = rendered(|metrics| metrics.denied("flow"));
        let named = |mark: &str| text.lines().filter_map(|line| line.strip_prefix(mark)).count();
        assert_eq!(named("# HELP "), named("# TYPE "));
        assert!(!text.lines().any(|line| line.starts_with("# HELP ") && line.split(' ').count() < 4));
    }
}
