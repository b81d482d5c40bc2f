//! `tools`: the effective policy, judged by the gate itself.

use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use toolgate_config::Config;
use toolgate_config::key::Key;
use toolgate_config::model::Model;
use toolgate_config::names::{KeyName, ModelName};
use toolgate_config::server::Auth;
use toolgate_config::tool::{Tool, Work};
use toolgate_policies::facts::{Caller, Requested, RunFacts};
use toolgate_policies::gate::{self, Verdict};
use toolgate_policies::zone::Mark;
use toolgate_tools::definitions::visible;

use super::servers::{self, Asked};
use super::{Failure, File, accept, load, print, remark};
use crate::found::Listed;

/// Without `--model` every model is judged, without `--key` every key that may use the model (with `auth: none` and `passthrough`: the
/// anonymous caller). A run is judged as it begins: nothing read yet, all tools asked for.
#[derive(Debug, Args)]
pub(super) struct Tools {
    #[command(flatten)]
    file: File,
    /// Only this model.
    #[arg(long)]
    model: Option<String>,
    /// Only for this key.
    #[arg(long)]
    key: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Accept what the server of this tool says of it now; may be given more than once.
    #[arg(long, value_name = "NAME", num_args = 1.., conflicts_with_all = ["model", "key", "json"])]
    accept: Vec<String>,
}

pub(super) fn run(command: Tools) -> Result<(), Failure> {
    let config = load(&command.file.config)?;
    if !command.accept.is_empty() {
        return accept::run(config, &command.accept);
    }
    let Asked { config, listed, remarks } = servers::ask(config)?;
    let rows = judge(&config, command.model.as_deref(), command.key.as_deref()).map_err(Failure::Input)?;
    print(&if command.json { json(&rows)? } else { table(&rows) + &hints(&config, &listed) });
    remarks.iter().for_each(|text| remark(text));
    Ok(())
}

/// One verdict.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Row {
    model: String,
    key: String,
    tool: String,
    group: String,
    source: &'static str,
    effect: &'static str,
    data_class: &'static str,
    verdict: &'static str,
    reason: Option<&'static str>,
}

fn judge(config: &Config, model: Option<&str>, key: Option<&str>) -> Result<Vec<Row>, String> {
    let models = match model {
        Some(name) => vec![config.model(name).ok_or_else(|| format!("there is no model `{name}`"))?],
        None => config.models.named.values().chain(&config.models.any).map(Arc::clone).collect(),
    };
    let keys = keys_of(config, key)?;
    let mut rows = Vec::new();
    for model in &models {
        for key in keys.iter().filter(|key| may_use(key.as_deref(), model)) {
            let run = run_of(config, model, key.as_deref());
            rows.extend(gate::offer(config, &run).map(|(tool, verdict)| row(&run, &tool, verdict)));
        }
    }
    let refused = key.filter(|_| rows.is_empty() && !config.tools.is_empty());
    match refused {
        Some(key) => {
            Err(format!("the key `{key}` may not use {}", model.map_or("any model".to_owned(), |name| format!("`{name}`"))))
        }
        None => Ok(rows),
    }
}

/// For whom: `None` is the anonymous caller.
fn keys_of(config: &Config, name: Option<&str>) -> Result<Vec<Option<Arc<Key>>>, String> {
    if let Some(name) = name {
        let key = config.keys.by_name(&KeyName::new(name)).ok_or_else(|| format!("there is no key `{name}`"))?;
        return Ok(vec![Some(Arc::clone(key))]);
    }
    if config.auth != Auth::Keys {
        return Ok(vec![None]);
    }
    let mut keys: Vec<_> = config.keys.iter().cloned().collect();
    keys.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(keys.into_iter().map(Some).collect())
}

fn may_use(key: Option<&Key>, model: &Model) -> bool {
    key.and_then(|key| key.models.as_ref()).is_none_or(|models| models.contains(&model.name))
}

/// A run as it begins.
fn run_of(config: &Config, model: &Model, key: Option<&Key>) -> RunFacts {
    let fallbacks = config.fallbacks(model).map(|model| model.provider.name.clone());
    RunFacts {
        caller: Caller { key: key.map(|key| key.name.clone()), user: None, bearer: None },
        model: ModelName::clone(&model.name),
        providers: std::iter::once(model.provider.name.clone()).chain(fallbacks).collect(),
        requested: Requested::All,
        mark: Mark::CLEAN,
    }
}

fn row(run: &RunFacts, tool: &Tool, verdict: Verdict) -> Row {
    Row {
        model: run.model.to_string(),
        key: run.caller.label().to_owned(),
        tool: tool.name.to_string(),
        group: tool.group.name.to_string(),
        source: tool.source.as_str(),
        effect: tool.rule.effect.as_str(),
        data_class: tool.rule.data_class.as_str(),
        verdict: if verdict.allows() { "allow" } else { "deny" },
        reason: verdict.reason().map(|reason| reason.as_str()),
    }
}

/// What servers themselves say of their tools. It is shown, and nothing follows from it.
fn hints(config: &Config, listed: &Listed) -> String {
    let mut lines = Vec::new();
    for tool in config.tools.iter() {
        let Work::Mcp(work) = &tool.work else { continue };
        let listing = listed.listings().iter().find(|listing| listing.server.name == work.server.name);
        let Some(told) = listing.and_then(|listing| listing.tools.iter().find(|told| told.name == work.tool)) else { continue };
        let hints = [
            ("read-only", told.hints.read_only),
            ("destructive", told.hints.destructive),
            ("idempotent", told.hints.idempotent),
            ("open-world", told.hints.open_world),
        ];
        let hints =
            hints.iter().filter_map(|(word, hint)| hint.map(|hint| format!("{word}: {}", if hint { "yes" } else { "no" })));
        let title = told.title.as_deref().map(|title| format!("{:?}", visible(title)));
        let said: Vec<_> = title.into_iter().chain(hints).collect();
        if !said.is_empty() {
            lines.push(format!("  {}: {}\n", tool.name, said.join(", ")));
        }
    }
    if lines.is_empty() {
        String::new()
    } else {
        format!("\nWhat the servers say of their tools, which nothing follows from:\n{}", lines.concat())
    }
}

fn json(rows: &[Row]) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(rows).map_err(|error| Failure::Input(error.to_string()))?;
    Ok(text + "\n")
}

/// Columns as wide as their widest cell.
fn table(rows: &[Row]) -> String {
    let head = ["MODEL", "KEY", "TOOL", "GROUP", "SOURCE", "EFFECT", "DATA CLASS", "VERDICT", "REASON"];
    let cells = rows.iter().map(|row| {
        let reason = row.reason.unwrap_or_default();
        [&row.model, &row.key, &row.tool, &row.group, row.source, row.effect, row.data_class, row.verdict, reason]
    });
    let lines: Vec<[&str; 9]> = std::iter::once(head).chain(cells).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 9] = std::array::from_fn(width);
    lines.iter().map(|line| padded(line, &widths)).collect()
}

fn padded(line: &[&str; 9], widths: &[usize; 9]) -> String {
    let cells: Vec<String> = line.iter().zip(widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
    cells.join("  ").trim_end().to_owned() + "\n"
}
