//! How long rows are gathered before they are written together.
//!
//! Each write to the disk costs the same, however many rows are in it. A row that comes alone is written at once. Where rows come side by
//! side, the next ones are waited for as long as they keep coming: not longer than their usual distance lets expect, since callers who all
//! wait for their rows send no more.

use std::time::{Duration, Instant};

/// As many rows share the cost of a write well enough.
pub(super) const ENOUGH: usize = 24;
/// The longest that a row waits for others.
const LONGEST: Duration = Duration::from_millis(10);
/// After this many times the usual distance nobody comes any more.
const SILENCE: u32 = 8;
/// To look more often costs more than it saves.
const SHORTEST: Duration = Duration::from_micros(100);

/// Rows that wait to be written together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gathered {
    /// How many.
    pub(super) rows: usize,
    /// When the first one came.
    pub(super) first: Instant,
    /// When the last one came.
    pub(super) last: Instant,
}

/// What the last rows tell about the next ones.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// How far apart rows came that were written together; `None`: the last one came alone.
    distance: Option<Duration>,
}

impl Pace {
    /// Until when more rows are waited for, if no other comes. `None`: no longer.
    pub(super) fn until(&self, gathered: &Gathered) -> Option<Instant> {
        let distance = self.distance.filter(|_| gathered.rows < ENOUGH)?;
        let silence = (distance * SILENCE).clamp(SHORTEST, LONGEST);
        Some((gathered.last + silence).min(gathered.first + LONGEST))
    }

    /// These were written together.
    pub(super) fn learn(&mut self, gathered: &Gathered) {
        let gaps = u32::try_from(gathered.rows).unwrap_or(u32::MAX).saturating_sub(1);
        self.distance = (gathered.last - gathered.first).checked_div(gaps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn rows_that_come_side_by_side_are_waited_for_and_a_row_alone_is_not() {
        let first = Instant::now();
        let gathered = |rows, last: u32| Gathered { rows, first, last: first + MS * last };
        // What was written together before, what waits now, and until how many milliseconds after its first row it waits.
        let table = [
            (None, gathered(1, 0), None),
            (Some(gathered(1, 0)), gathered(1, 0), None),
            (Some(gathered(2, 1)), gathered(1, 0), Some(8)),
            (Some(gathered(11, 1)), gathered(3, 2), Some(2)),
            (Some(gathered(5, 4)), gathered(4, 6), Some(10)),
            (Some(gathered(2, 9)), gathered(1, 0), Some(10)),
            (Some(gathered(5, 4)), gathered(ENOUGH, 1), None),
        ];
        for (before, now, expected) in table {
            let mut pace = Pace::default();
            before.iter().for_each(|gathered| pace.learn(gathered));
            let until = pace.until(&now).map(|until| (until - first).as_millis());
            assert_eq!(until, expected, "{before:?} {now:?}");
        }
    }
}
