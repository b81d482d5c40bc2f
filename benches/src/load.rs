//! The load: so many callers, each waiting for its answer before it asks again, for so long; and what was seen in that time.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use crate::caller::{Caller, Route, Seen};
use crate::machine::Busy;
use crate::process::Group;
use crate::scenario::Scenario;

/// How long a load runs.
#[derive(Clone, Copy)]
pub(crate) struct Length {
    /// Before anything counts.
    pub(crate) warm_up: Duration,
    /// What counts.
    pub(crate) measured: Duration,
}

/// The processes whose time is read beside the load.
pub(crate) struct Watched<'a> {
    pub(crate) gateway: Option<&'a Group>,
    pub(crate) upstream: &'a Group,
}

/// What one run of one scenario on one target gave.
#[derive(Clone)]
pub(crate) struct Sample {
    /// Requests a second.
    pub(crate) rate: f64,
    /// Milliseconds from the first byte sent to the last received.
    pub(crate) p50: f64,
    /// As `p50`.
    pub(crate) p99: f64,
    /// Milliseconds to the first byte of the answer's body, at the median.
    pub(crate) first_byte: f64,
    /// Milliseconds from the making of a chunk to its arrival: median and 99th percentile; 0 where there are no chunks.
    pub(crate) chunk: (f64, f64),
    /// CPU microseconds of the gateway's processes for each request.
    pub(crate) cpu: Option<f64>,
    /// Resident memory of the gateway's processes at the end, in MiB.
    pub(crate) resident: Option<f64>,
    /// Cores that the rest of the machine used meanwhile.
    pub(crate) foreign: f64,
}

/// Runs a load.
///
/// # Errors
/// The first answer that was not as expected, or callers that did not come to an end.
pub(crate) async fn run(scenario: Scenario, route: Route, length: Length, watched: Watched<'_>) -> crate::Result<Sample> {
    let from = Instant::now() + length.warm_up;
    let to = from + length.measured;
    let mut callers = JoinSet::new();
    for _ in 0..scenario.connections() {
        callers.spawn(async move { call_until(to, Caller::connect(scenario, route).await?).await });
    }
    sleep_until(from.into()).await;
    let before = Reading::take(&watched)?;
    sleep_until(to.into()).await;
    let after = Reading::take(&watched)?;
    let mut seen = Vec::new();
    // A paced stream that began at the last moment takes less than a second; what takes this long hangs.
    timeout(Duration::from_secs(20), async {
        while let Some(joined) = callers.join_next().await {
            seen.extend(joined??.into_iter().filter(|seen| seen.done >= from && seen.done < to));
        }
        crate::Result::Ok(())
    })
    .await
    .map_err(|_| "callers still waited for an answer 20 s after the end")??;
    let resident = watched.gateway.map(|group| group.resident_mib());
    Ok(sample(&seen, &before, &after, resident))
}

async fn call_until(end: Instant, mut caller: Caller) -> crate::Result<Vec<Seen>> {
    let mut all = Vec::new();
    while Instant::now() < end {
        all.push(caller.ask().await?);
    }
    Ok(all)
}

/// The clocks of the machine and of the processes, at one moment.
struct Reading {
    at: Instant,
    gateway: Option<Duration>,
    ours: Duration,
    busy: Busy,
}

impl Reading {
    fn take(watched: &Watched<'_>) -> crate::Result<Self> {
        let gateway = watched.gateway.map(Group::cpu_time);
        let ours = gateway.unwrap_or_default() + watched.upstream.cpu_time() + crate::process::own_cpu_time();
        Ok(Self { at: Instant::now(), gateway, ours, busy: Busy::read()? })
    }
}

fn sample(seen: &[Seen], before: &Reading, after: &Reading, resident: Option<f64>) -> Sample {
    let seconds = (after.at - before.at).as_secs_f64();
    let count = seen.len().max(1) as f64;
    let latencies = sorted(seen.iter().map(|seen| milliseconds(seen.done - seen.asked)));
    let first_bytes = sorted(seen.iter().map(|seen| milliseconds(seen.first_byte - seen.asked)));
    let delays = sorted(seen.iter().flat_map(|seen| &seen.delays).map(|&delay| delay as f64 / 1e6));
    let spent = after.gateway.zip(before.gateway).map(|(after, before)| after.saturating_sub(before));
    Sample {
        rate: seen.len() as f64 / seconds,
        p50: percentile(&latencies, 0.5),
        p99: percentile(&latencies, 0.99),
        first_byte: percentile(&first_bytes, 0.5),
        chunk: (percentile(&delays, 0.5), percentile(&delays, 0.99)),
        cpu: spent.map(|spent| spent.as_secs_f64() * 1e6 / count),
        resident,
        foreign: after.busy.since(before.busy, after.ours.saturating_sub(before.ours)) / seconds,
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The value below which a part of the sorted values lies; 0 where there are none.
pub(crate) fn percentile(sorted: &[f64], part: f64) -> f64 {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// The middle value.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    percentile(&sorted(values), 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        for (part, expected) in [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
            assert!((percentile(&hundred, part) - expected).abs() < 1e-9, "{part}");
        }
        assert!(percentile(&[], 0.5).abs() < 1e-9);
        assert!((median([3.0, 1.0, 2.0].into_iter()) - 2.0).abs() < 1e-9);
    }
}
