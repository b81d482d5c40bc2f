//! How long rows are gathered before they are written together.
//!
//! Each write to the disk costs the same, however many rows are in it. A row that comes alone is written at once. Where rows come side by
//! side, the next ones are waited for as long as they keep coming, and not much longer: callers who all wait for their rows send no more.
//! As many as came the last time are expected, so that whoever writes sleeps once a batch: each look whether they have come costs two changes
//! of threads, which is more than all else that is done for them.

use std::time::{Duration, Instant};

/// As many rows share the cost of a write well enough.
pub(super) const ENOUGH: usize = 24;
/// The longest that a row waits for others.
const LONGEST: Duration = Duration::from_millis(10);
/// After this many times the usual distance nobody comes any more.
const SILENCE: u32 = 6;
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
    /// How far apart rows come that are written together. The time that somebody waited for the disk is not in it.
    distance: Duration,
    /// How many were written together the last time.
    together: usize,
    /// When they were written.
    written: Option<Instant>,
}

impl Pace {
    /// Until when more rows are waited for, if no other comes. `None`: no longer.
    pub(super) fn until(&self, gathered: &Gathered) -> Option<Instant> {
        // Whoever sends row after row, each when the one before is written, is never seen with two.
        let came_meanwhile = self.written.is_some_and(|written| gathered.first < written);
        let is_alone = gathered.rows < 2 && self.together < 2 && !came_meanwhile;
        if is_alone || gathered.rows >= ENOUGH {
            return None;
        }
        let missing = u32::try_from(self.together.saturating_sub(gathered.rows)).unwrap_or(u32::MAX);
        let silence = self.distance.saturating_mul(SILENCE.saturating_add(missing)).clamp(SHORTEST, LONGEST);
        Some((gathered.last + silence).min(gathered.first + LONGEST))
    }

    /// These are written together now.
    pub(super) fn taken(&mut self, gathered: &Gathered) {
        self.together = gathered.rows;
        let gaps = u32::try_from(gathered.rows).unwrap_or(u32::MAX).saturating_sub(1);
        if let Some(distance) = (gathered.last - gathered.first).checked_div(gaps) {
            let is_first = self.distance.is_zero();
            self.distance = if is_first { distance } else { (self.distance * 3 + distance) / 4 };
        }
    }

    /// They are written.
    pub(super) fn written(&mut self, now: Instant) {
        self.written = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn rows_that_come_side_by_side_are_waited_for_and_a_row_alone_is_not() {
        let begin = Instant::now();
        let at = |ms: u32| begin + MS * ms;
        let gathered = |rows, first, last| Gathered { rows, first: at(first), last: at(last) };
        // What was written together before, when it was written, what waits now, and until when it waits.
        let table = [
            (vec![], 0, gathered(1, 5, 5), None),
            (vec![gathered(1, 0, 0)], 1, gathered(1, 5, 5), None),
            (vec![gathered(2, 0, 1)], 2, gathered(1, 5, 5), Some(12)),
            (vec![gathered(5, 0, 4)], 4, gathered(5, 5, 5), Some(11)),
            (vec![gathered(2, 0, 1), gathered(1, 3, 3)], 4, gathered(1, 5, 5), None),
            (vec![gathered(2, 0, 1), gathered(1, 3, 3)], 6, gathered(1, 5, 5), Some(11)),
            (vec![gathered(2, 0, 1), gathered(3, 0, 10)], 10, gathered(1, 12, 12), Some(22)),
            (vec![gathered(5, 0, 4)], 4, gathered(4, 5, 11), Some(15)),
            (vec![gathered(5, 0, 4)], 4, gathered(ENOUGH, 5, 6), None),
        ];
        for (before, written, now, expected) in table {
            let mut pace = Pace::default();
            before.iter().for_each(|gathered| pace.taken(gathered));
            pace.written(at(written));
            let until = pace.until(&now).map(|until| (until - begin).as_millis());
            assert_eq!(until, expected, "{before:?} {now:?}");
        }
    }

    #[test]
    fn who_comes_while_others_are_written_is_waited_with_but_shortly() {
        let begin = Instant::now();
        let mut pace = Pace::default();
        pace.taken(&Gathered { rows: 1, first: begin, last: begin });
        pace.written(begin + MS * 2);
        let came = begin + MS;
        assert_eq!(pace.until(&Gathered { rows: 1, first: came, last: came }), Some(came + SHORTEST));
    }
}
