//! The results, and the markdown made of them: medians over the rounds, ratios to nginx in the same round.

use std::fmt::Write;

use clap::ValueEnum;

use crate::load::{Sample, median};
use crate::machine::processors;
use crate::memory::Memory;
use crate::scenario::{Exchange, Scenario};
use crate::target::Kind;
use crate::{Fault, Result};

/// Everything that was measured.
#[derive(Default)]
pub(crate) struct Results {
    rows: Vec<(Scenario, Kind, Result<Sample>)>,
    memory: Vec<(Kind, Result<Memory>)>,
}

/// What a column shows of a sample.
struct Column {
    heading: &'static str,
    digits: usize,
    value: fn(&Sample) -> Option<f64>,
    /// Whether the ratio to nginx stands beside it.
    ratio: bool,
}

impl Results {
    pub(crate) fn add(&mut self, scenario: Scenario, kind: Kind, outcome: Result<Sample>) {
        self.rows.push((scenario, kind, outcome));
    }

    pub(crate) fn add_memory(&mut self, kind: Kind, outcome: Result<Memory>) {
        self.memory.push((kind, outcome));
    }

    /// How many measurements failed.
    pub(crate) fn faults(&self) -> usize {
        self.rows.iter().filter(|(.., outcome)| outcome.is_err()).count()
            + self.memory.iter().filter(|(_, outcome)| outcome.is_err()).count()
    }

    /// The markdown.
    pub(crate) fn table(&self) -> String {
        let mut text = self.preface();
        for &scenario in Scenario::value_variants() {
            text.push_str(&self.section(scenario));
        }
        text.push_str(&self.memory_section());
        text
    }

    fn preface(&self) -> String {
        let foreign = self.rows.iter().filter_map(|(.., outcome)| outcome.as_ref().ok()).map(|sample| sample.foreign);
        let (usual, most) = (median(foreign.clone()), foreign.fold(0.0, f64::max));
        format!(
            "{}: the last for the gateway, the first for load and upstream. Other processes used {usual:.2} cores at the median, \
             {most:.2} at most.\n",
            processors()
        )
    }

    fn section(&self, scenario: Scenario) -> String {
        let kinds: Vec<_> = Kind::ALL.into_iter().filter(|&kind| self.outcomes(scenario, kind).next().is_some()).collect();
        if kinds.is_empty() {
            return String::new();
        }
        let columns = columns(scenario);
        let headings =
            columns.iter().map(|column| format!(" {} |{}", column.heading, if column.ratio { " of nginx |" } else { "" }));
        let count: usize = columns.iter().map(|column| if column.ratio { 2 } else { 1 }).sum();
        let mut text = format!("\n### {}\n\n| target |{}\n", scenario.title(), headings.collect::<String>());
        let _ = writeln!(text, "|---|{}", "--:|".repeat(count));
        for kind in kinds {
            let _ = writeln!(text, "| {} |{}", kind.name(), self.cells(scenario, kind, &columns, count));
        }
        text
    }

    fn cells(&self, scenario: Scenario, kind: Kind, columns: &[Column], count: usize) -> String {
        if let Some(error) = self.outcomes(scenario, kind).find_map(|outcome| outcome.as_ref().err()) {
            return format!(" {} |{}", failure(error), " |".repeat(count - 1));
        }
        let cell = |column: &Column| {
            let own = self.values(scenario, kind, column.value);
            let nginx = self.values(scenario, Kind::Nginx, column.value);
            let ratios: Vec<_> = own.iter().zip(&nginx).map(|(own, nginx)| own / nginx).collect();
            let ratio = if column.ratio { format!(" {} |", middle(&ratios, 2, "x")) } else { String::new() };
            format!(" {} |{ratio}", middle(&own, column.digits, ""))
        };
        columns.iter().map(cell).collect()
    }

    fn outcomes(&self, scenario: Scenario, kind: Kind) -> impl Iterator<Item = &Result<Sample>> {
        let rows = self.rows.iter().filter(move |row| row.0 == scenario && row.1 == kind);
        rows.map(|(.., outcome)| outcome)
    }

    /// One value a round.
    fn values(&self, scenario: Scenario, kind: Kind, value: fn(&Sample) -> Option<f64>) -> Vec<f64> {
        self.outcomes(scenario, kind).filter_map(|outcome| value(outcome.as_ref().ok()?)).collect()
    }

    fn memory_section(&self) -> String {
        if self.memory.is_empty() {
            return String::new();
        }
        let mut text = format!("\n### {}\n\n", Scenario::Memory.title());
        text.push_str("| target | first answer after ms | idle MiB | 1,000 streams MiB | KiB a stream | afterwards MiB |\n|---|--:|--:|--:|--:|--:|\n");
        for (kind, outcome) in &self.memory {
            let cells = match outcome {
                Ok(memory) => format!(
                    "{:.0} | {:.1} | {:.1} | {:.1} | {:.1}",
                    memory.ready,
                    memory.idle,
                    memory.open,
                    memory.per_stream(),
                    memory.after
                ),
                Err(error) => format!("{} | | | |", failure(error)),
            };
            let _ = writeln!(text, "| {} | {cells} |", kind.name());
        }
        text
    }
}

fn columns(scenario: Scenario) -> Vec<Column> {
    let plain = |heading, digits, value| Column { heading, digits, value, ratio: false };
    let ratio = |heading, digits, value| Column { heading, digits, value, ratio: true };
    let mut columns = vec![ratio("a second", 0, |sample| Some(sample.rate))];
    match (scenario, scenario.exchange()) {
        (Scenario::Paced, _) => {
            columns.push(plain("chunk p50 ms", 3, |sample| Some(sample.chunk.0)));
            columns.push(plain("chunk p99 ms", 3, |sample| Some(sample.chunk.1)));
            columns.push(plain("first byte p50 ms", 2, |sample| Some(sample.first_byte)));
        }
        (_, exchange) => {
            columns.push(plain("p50 ms", 2, |sample| Some(sample.p50)));
            columns.push(plain("p99 ms", 2, |sample| Some(sample.p99)));
            if exchange == Exchange::Stream {
                columns.push(plain("first byte p50 ms", 2, |sample| Some(sample.first_byte)));
            }
        }
    }
    columns.push(ratio("CPU µs", 1, |sample| sample.cpu));
    columns.push(plain("RSS MiB", 1, |sample| sample.resident));
    columns
}

fn middle(values: &[f64], digits: usize, unit: &str) -> String {
    if values.is_empty() { String::new() } else { format!("{:.digits$}{unit}", median(values.iter().copied())) }
}

fn failure(error: &Fault) -> String {
    let line: String = error.to_string().chars().filter(|letter| !matches!(letter, '|' | '\n')).take(120).collect();
    format!("failed: {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rate: f64, cpu: f64) -> Result<Sample> {
        let cpu = Some(cpu);
        Ok(Sample { rate, p50: 1.0, p99: 2.0, first_byte: 0.5, chunk: (0.1, 0.2), cpu, resident: Some(9.0), foreign: 0.0 })
    }

    #[test]
    fn a_ratio_is_the_median_of_the_rounds_ratios_and_a_failure_is_named() {
        let mut results = Results::default();
        for (nginx, toolgate) in [(10.0, 12.0), (20.0, 30.0), (10.0, 18.0)] {
            results.add(Scenario::Plain, Kind::Nginx, sample(100.0, nginx));
            results.add(Scenario::Plain, Kind::Toolgate, sample(50.0, toolgate));
        }
        results.add(Scenario::Loop, Kind::Toolgate, Err("status 502".into()));
        let table = results.table();
        assert!(table.contains("| toolgate | 50 | 0.50x | 1.00 | 2.00 | 18.0 | 1.50x | 9.0 |"), "{table}");
        assert!(table.contains("| toolgate | failed: status 502 |"), "{table}");
        assert_eq!(results.faults(), 1);
    }
}
