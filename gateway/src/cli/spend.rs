//! `spend`: the ledger in sums. It is only read, with or without a gateway beside it; one that is not there is not made.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::json;
use serde_json::value::RawValue;
use toolgate_config::money::NanoUsd;
use toolgate_config::raw::duration;

use super::{Failure, File, load, print};
use crate::store::{self, Spent, Sum};

/// Dollars are exact. Calls whose price nobody knows are told apart: they are in no sum of dollars.
#[derive(Debug, Args)]
pub(super) struct Spend {
    #[command(flatten)]
    file: File,
    /// One line for each.
    #[arg(long, value_enum, default_value_t = By::Key)]
    by: By,
    /// Only from then on: so long ago (24h, 30d), a date (2026-11-01, in UTC) or a time (2026-11-01T12:00:00Z).
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<Timestamp>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What a line is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// A caller.
    Key,
    /// The model that was asked for.
    Model,
    /// A tool with a price.
    Tool,
}

pub(super) fn run(command: &Spend) -> Result<(), Failure> {
    let config = load(&command.file.config)?;
    let spent = store::look(&config.store.url, command.since).map_err(|unusable| Failure::Dependency(unusable.0))?;
    let spent = spent.ok_or_else(|| Failure::Input("`store.url` is none: no ledger is kept".to_owned()))?;
    let report = Report::new(command.by, command.since, &spent);
    print(&if command.json { report.json()? } else { report.text() });
    Ok(())
}

/// A moment as it is asked for.
fn moment(text: &str) -> Result<Timestamp, String> {
    let ago = || Timestamp::from_second(Timestamp::now().checked_sub(duration(text)?).ok()?.as_second()).ok();
    // What begins with a date and goes on is a time, and says of which zone.
    let day = || format!("{text}T00:00:00Z").parse().ok();
    ago()
        .or_else(day)
        .or_else(|| text.parse().ok())
        .ok_or_else(|| "a duration (24h, 30d), a date (2026-11-01) or a time (2026-11-01T12:00:00Z) is meant".to_owned())
}

/// What is printed.
struct Report {
    by: By,
    since: Option<Timestamp>,
    /// The dearest first.
    rows: Vec<(String, Sum)>,
    total: Sum,
    /// Up to here rows were dropped that are not counted.
    missing_until: Option<Timestamp>,
}

impl Report {
    fn new(by: By, since: Option<Timestamp>, spent: &Spent) -> Self {
        let (mut rows, mut total) = (BTreeMap::<&str, Sum>::new(), Sum::default());
        for sum in spent.sums.iter().filter(|sum| by != By::Tool || !sum.tool.is_empty()) {
            rows.entry(by.name_of(sum)).or_default().add(sum);
            total.add(sum);
        }
        let mut rows: Vec<_> = rows.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
        rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.cost));
        let missing_until = spent.dropped_until.filter(|dropped| since.is_some_and(|since| since <= *dropped));
        Self { by, since, rows, total, missing_until }
    }

    fn text(&self) -> String {
        let mut text = if self.rows.is_empty() { self.nothing() } else { table(self) };
        if let Some(until) = self.missing_until {
            let note = "have been dropped from the ledger; they are only in the sums without --since.";
            text += &format!("\nCalls up to {} {note}\n", until);
        }
        text
    }

    fn nothing(&self) -> String {
        let what = if self.by == By::Tool { "no call of a tool with a price" } else { "no call" };
        match self.since {
            Some(since) => format!("The ledger has {what} since {since}.\n"),
            None if self.by == By::Tool => format!("The ledger has {what}.\n"),
            None => "The ledger is empty.\n".to_owned(),
        }
    }

    fn json(&self) -> Result<String, Failure> {
        let text = serde_json::to_string_pretty(self).map_err(|error| Failure::Input(error.to_string()))?;
        Ok(text + "\n")
    }
}

impl By {
    const fn word(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Model => "model",
            Self::Tool => "tool",
        }
    }

    fn name_of(self, sum: &Sum) -> &str {
        match self {
            Self::Key => &sum.key,
            Self::Model => &sum.model,
            Self::Tool => &sum.tool,
        }
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows: Vec<Line<'_>> = self.rows.iter().map(|(name, sum)| Line { name: Some((self.by, name)), sum }).collect();
        let mut report = serializer.serialize_map(None)?;
        report.serialize_entry("by", self.by.word())?;
        report.serialize_entry("since", &self.since.map(|since| since.to_string()))?;
        report.serialize_entry("complete", &self.missing_until.is_none())?;
        report.serialize_entry("rows", &rows)?;
        report.serialize_entry("total", &Line { name: None, sum: &self.total })?;
        report.end()
    }
}

/// A sum as JSON: that of something, or of all.
struct Line<'r> {
    name: Option<(By, &'r str)>,
    sum: &'r Sum,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sum = self.sum;
        // A number, digit for digit: it is never a float in between.
        let cost = known(sum).map(|cost| RawValue::from_string(cost.to_string())).transpose().map_err(S::Error::custom)?;
        let mut line = serializer.serialize_map(None)?;
        if let Some((by, name)) = self.name {
            line.serialize_entry(by.word(), name)?;
        }
        line.serialize_entry("requests", &sum.requests)?;
        line.serialize_entry("calls", &sum.calls)?;
        line.serialize_entry("estimated_calls", &sum.estimated)?;
        line.serialize_entry("unknown_calls", &sum.unknown)?;
        line.serialize_entry("tokens", &tokens(sum))?;
        line.serialize_entry("cost_usd", &cost)?;
        line.end()
    }
}

fn tokens(sum: &Sum) -> serde_json::Value {
    json!({
        "input": sum.tokens.fresh,
        "cached_input": sum.tokens.cached,
        "cache_write": sum.tokens.cache_write,
        "output": sum.tokens.output,
        "reasoning": sum.reasoning,
    })
}

/// What is known of a cost: where that of no call is, nothing is, which is not zero.
fn known(sum: &Sum) -> Option<NanoUsd> {
    Some(sum.cost).filter(|_| sum.unknown == 0 || sum.unknown < sum.calls)
}

/// The report as a table, with the total below.
fn table(report: &Report) -> String {
    let (by, places) = (report.by, report.rows.iter().map(|(_, sum)| places(sum.cost)).chain([places(report.total.cost)]).max());
    let head = match by {
        By::Tool => ["TOOL", "CALLS", "USD"].map(str::to_owned).to_vec(),
        By::Key | By::Model => {
            let name = by.word().to_uppercase();
            let others = ["REQUESTS", "CALLS", "INPUT", "CACHED", "CACHE WRITE", "OUTPUT", "ESTIMATED", "USD"];
            std::iter::once(name).chain(others.map(str::to_owned)).collect()
        }
    };
    let rows = report.rows.iter().map(|(name, sum)| (name.as_str(), sum)).chain([("total", &report.total)]);
    let lines =
        std::iter::once(head).chain(rows.map(|(name, sum)| cells(by, name, sum, places.unwrap_or(0)))).collect::<Vec<_>>();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    lines.iter().map(|line| aligned(line, &widths)).collect()
}

fn cells(by: By, name: &str, sum: &Sum, places: usize) -> Vec<String> {
    let tokens = &sum.tokens;
    let numbers = match by {
        By::Tool => vec![sum.calls],
        By::Key | By::Model => {
            vec![sum.requests, sum.calls, tokens.fresh, tokens.cached, tokens.cache_write, tokens.output, sum.estimated]
        }
    };
    let numbers = numbers.iter().map(u64::to_string);
    std::iter::once(name.to_owned()).chain(numbers).chain([dollars(sum, places)]).collect()
}

/// As many places behind the point as the longest amount has, and at least those of a cent.
fn places(cost: NanoUsd) -> usize {
    cost.to_string().split_once('.').map_or(0, |(_, part)| part.len()).max(2)
}

fn dollars(sum: &Sum, places: usize) -> String {
    let Some(cost) = known(sum) else { return "unknown".to_owned() };
    let text = cost.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let unknown = if sum.unknown > 0 { format!(" + {} unknown", sum.unknown) } else { String::new() };
    format!("{whole}.{part:0<places$}{unknown}")
}

/// Names to the left, numbers to the right; the last column has words behind its numbers.
fn aligned(line: &[String], widths: &[usize]) -> String {
    let last = line.len() - 1;
    let cells = line.iter().zip(widths).enumerate().map(|(column, (cell, &width))| match column {
        0 => format!("{cell:width$}"),
        _ if column == last => cell.clone(),
        _ => format!("{cell:>width$}"),
    });
    cells.collect::<Vec<_>>().join("  ") + "\n"
}

#[cfg(test)]
mod tests;
