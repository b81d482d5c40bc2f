//! What the whole machine does: its cores, and the time that processes of nobody here take from a measurement.

use std::fs;
use std::time::Duration;

/// Kernel ticks a second, as `/proc` counts them on every Linux that this runs on.
const TICKS: f64 = 100.0;

/// The core of the gateway, and the one of load and upstream: the last and the first.
#[derive(Clone, Copy)]
pub(crate) struct Cores {
    pub(crate) gateway: usize,
    pub(crate) load: usize,
}

impl Cores {
    pub(crate) fn of_this_machine() -> Self {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        Self { gateway: count - 1, load: 0 }
    }
}

/// Seconds that all cores together were busy since the machine started.
#[derive(Clone, Copy)]
pub(crate) struct Busy(f64);

impl Busy {
    pub(crate) fn read() -> crate::Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        let line = text.lines().next().unwrap_or_default();
        // user nice system idle iowait irq softirq steal
        let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|&at| ticks.get(at)).sum::<f64>();
        Ok(Self(busy / TICKS))
    }

    /// Seconds busy since an earlier reading that are not `ours`.
    pub(crate) fn since(self, earlier: Self, ours: Duration) -> f64 {
        (self.0 - earlier.0 - ours.as_secs_f64()).max(0.0)
    }
}

/// The processors, as the kernel calls and counts them.
pub(crate) fn processors() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let count = text.lines().filter(|line| line.starts_with("processor")).count();
    format!("{}, {count} cores", name.unwrap_or("an unnamed processor"))
}
