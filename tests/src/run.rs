//! Plays one case: starts the servers and the gateway, and lets the callers ask, one after another or side by side. What was seen is compared
//! with what was expected in [`crate::judge`].

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::caller::{Response, send};
use crate::cases::{Case, Stores};
use crate::config::{configuration, fill, merge};
use crate::dialect::Dialect;
use crate::gateway::{Gateway, command};
use crate::report::Report;
use crate::scenario::{Ask, Change, Got, Mode, Run, Scenario, each};
use crate::services::{Database, Redis};
use crate::stand::{Scripts, Stand};

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
    let mut house = House::open(case).await?;
    let mut report = Report::default();
    for run in &house.scenario.commands {
        house.run(run, &mut report).await?;
    }
    let mut log = String::new();
    if !house.scenario.requests.is_empty() {
        let mut gateway = house.gateway().await?;
        let played = house.play(&mut gateway, &mut report).await;
        log = gateway.log();
        played.map_err(|fault| format!("{fault}\nthe gateway's log:\n{log}"))?;
    }
    report.told(case, &house.scenario.title, &log)
}

/// A scenario, and where it is played.
pub(crate) struct House {
    pub(crate) scenario: Scenario,
    pub(crate) mode: Mode,
    dialect: Dialect,
    pub(crate) stand: Stand,
    /// In place of the store and the counters that a gateway has to itself.
    pub(crate) shared: Option<(Database, Redis)>,
    /// What is merged over the default configuration by now.
    config: Value,
}

/// What came of a request, and what was expected of it.
struct Asked<'a> {
    ask: &'a Ask,
    /// Which of the scenario's requests it was.
    at: usize,
    expected: Got,
    responses: Vec<Response>,
}

impl House {
    async fn open(case: &Case) -> Result<Self, String> {
        let stand = Stand::open(|placeholders| {
            let scenario = case.scenario(placeholders)?;
            let tools = scenario.tools.iter().map(|(path, replies)| (path.clone(), each(&replies.to_vec()))).collect();
            Ok(Scripts { upstream: each(&scenario.upstream), tools, strict: scenario.strict })
        })
        .await?;
        let shared = match case.stores {
            Stores::Own => None,
            Stores::Shared => Database::make().await.zip(Redis::start().await),
        };
        let scenario = case.scenario(&stand.placeholders)?;
        let config = scenario.config.clone();
        let house = Self { scenario, mode: case.mode, dialect: case.dialect, stand, shared, config };
        house.write_files()?;
        Ok(house)
    }

    fn write_files(&self) -> Result<(), String> {
        let text = match &self.scenario.config_text {
            Some(text) => text.clone(),
            None => configuration(self.whole_config(), &self.stand.placeholders)?,
        };
        self.stand.folder.write("toolgate.yaml", &text);
        for (name, text) in &self.scenario.files {
            self.stand.folder.write(name, text);
        }
        Ok(())
    }

    fn whole_config(&self) -> Value {
        let provider = fill(&self.dialect.provider().to_string(), &self.stand.placeholders);
        let mut whole = json!({"providers": {"mock": serde_json::from_str::<Value>(&provider).unwrap_or_default()}});
        if let Some((database, redis)) = &self.shared {
            whole["store"] = json!({"url": database.url(), "counters": redis.url()});
        }
        if !self.config.is_null() {
            merge(&mut whole, self.config.clone());
        }
        whole
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

    async fn play(&mut self, gateway: &mut Gateway, report: &mut Report) -> Result<(), String> {
        let asks = self.scenario.requests.clone();
        let last = asks.iter().rposition(Ask::is_request);
        let mut costs = BTreeMap::new();
        for (at, ask) in asks.iter().enumerate() {
            if let Some(change) = ask.gateway {
                self.change(change, ask, gateway).await?;
                continue;
            }
            if let Some(run) = &ask.command {
                self.run(run, report).await?;
                continue;
            }
            let is_last = Some(at) == last;
            let asked = self.ask(ask, at, is_last, gateway).await;
            for response in &asked.responses {
                costs.extend(response.trace().zip(response.head.header("x-toolgate-cost-usd")));
            }
            self.judge_asked(gateway, &asked, is_last, report).await;
        }
        let key = last.and_then(|last| asks[last].key.clone());
        self.judge_in_the_end(gateway, key, &costs, report).await;
        Ok(())
    }

    async fn change(&mut self, change: Change, ask: &Ask, gateway: &mut Gateway) -> Result<(), String> {
        if !ask.config.is_null() {
            merge(&mut self.config, ask.config.clone());
            self.write_files()?;
        }
        match change {
            Change::Reload => {
                let response = gateway.reload().await;
                return if response.status == 200 { Ok(()) } else { Err(format!("the reload: {}", response.text())) };
            }
            Change::Kill => gateway.process.kill().await.map_err(|error| error.to_string())?,
            Change::Restart => gateway.stop().await?,
        }
        *gateway = self.gateway().await?;
        Ok(())
    }

    async fn ask<'a>(&self, ask: &'a Ask, at: usize, is_last: bool, gateway: &Gateway) -> Asked<'a> {
        let address = if ask.admin { &gateway.admin } else { &gateway.address };
        let once = || send(address, ask.steps(self.mode), &self.stand.stage);
        let times = ask.times.unwrap_or(1);
        let mut responses = Vec::new();
        if ask.at_once {
            responses = futures_util::future::join_all((0..times).map(|_| once())).await;
        } else {
            for _ in 0..times {
                responses.push(once().await);
            }
        }
        let expected = ask.expect.as_ref().or(self.scenario.expect.caller.as_ref().filter(|_| is_last));
        Asked { ask, at, expected: expected.cloned().unwrap_or_default(), responses }
    }

    async fn judge_asked(&self, gateway: &Gateway, asked: &Asked<'_>, is_last: bool, report: &mut Report) {
        let mut expected = asked.expected.clone();
        if !expected.statuses.is_empty() {
            let mut seen: BTreeMap<String, u64> = BTreeMap::new();
            asked.responses.iter().for_each(|response| *seen.entry(response.status.to_string()).or_default() += 1);
            let statuses = json!(seen);
            report.check(&format!("the statuses of request {}", asked.at), &json!({"$exactly": expected.statuses}), &statuses);
        }
        for response in &asked.responses {
            if !asked.expected.statuses.is_empty() {
                expected = asked.expected.for_one_of_many(response.status);
            }
            self.judge_response(gateway, asked.ask, asked.at, &expected, response, report).await;
        }
        if let (true, Some(expected), Some(response)) = (is_last, &self.scenario.expect.trace, asked.responses.last()) {
            report.check("the trace", expected, &self.matching_trace(gateway, asked.ask, response, expected).await);
        }
    }
}

impl Got {
    /// What is expected of one response of many, when only their statuses are told: an error where its status is one.
    fn for_one_of_many(&self, status: u16) -> Self {
        let is_error = status >= 400;
        Self {
            status: Some(json!(status)),
            statuses: BTreeMap::new(),
            error: is_error.then(|| self.error.clone().unwrap_or(json!("$any"))),
            answer: self.answer.clone().filter(|_| !is_error),
            ..Self::default()
        }
    }
}
