//! How long a server that cannot be reached is left alone. Pure: time is an argument.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::time::Instant;

/// After the first failure.
const FIRST: Duration = Duration::from_millis(250);

/// Never longer.
const LONGEST: Duration = Duration::from_secs(30);

/// A session that lasted so long was a good one: its end is not counted as a failure.
const LASTING: Duration = Duration::from_secs(10);

/// A call does not wait longer for the next try of a server that is down, and brings it about itself where the last is that old.
pub(super) const CALLS_WAIT: Duration = Duration::from_secs(1);

/// Counts failures in a row.
#[derive(Debug, Default)]
pub(super) struct Patience {
    failures: u32,
}

impl Patience {
    /// A session ended after it had lasted so long. How long to wait before the next: not at all, unless this happens again and again.
    pub(super) fn lost(&mut self, lasted: Duration) -> Duration {
        if lasted >= LASTING {
            self.failures = 0;
        }
        let pause = if self.failures == 0 { Duration::ZERO } else { pause(self.failures - 1) };
        self.failures += 1;
        pause
    }

    /// There was no session. How long to wait before the next try.
    pub(super) fn failed(&mut self) -> Duration {
        let pause = pause(self.failures);
        self.failures += 1;
        pause
    }
}

/// Up to a quarter more than the doubled time, so that many servers that went together do not come back together.
fn pause(failures: u32) -> Duration {
    let whole = FIRST.saturating_mul(1 << failures.min(10)).min(LONGEST);
    let quarter = u64::try_from(whole.as_millis() / 4).unwrap_or(0);
    let more = RandomState::new().hash_one(failures) % (quarter + 1);
    whole + Duration::from_millis(more)
}

/// When a call may count on the next try: now or soon, else not at all.
pub(super) fn worth_waiting(now: Instant, tried: Instant, next: Instant) -> bool {
    next.saturating_duration_since(now) <= CALLS_WAIT || now.saturating_duration_since(tried) >= CALLS_WAIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_loss_is_mended_at_once_and_later_ones_ever_later() {
        let mut patience = Patience::default();
        assert_eq!(patience.lost(Duration::from_secs(1)), Duration::ZERO);
        let mut before = Duration::ZERO;
        for wanted in [250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000] {
            let pause = patience.failed();
            // One failure was counted already, so the first pause here is the second of the row.
            let wanted = Duration::from_millis((wanted * 2).min(30000));
            assert!(pause >= wanted && pause <= wanted + wanted / 4 + Duration::from_millis(1), "{pause:?} {wanted:?}");
            assert!(pause >= before || pause >= LONGEST, "{pause:?}");
            before = pause;
        }
        assert_eq!(patience.lost(LASTING), Duration::ZERO, "a good session wipes the slate");
        assert!(patience.lost(Duration::from_secs(1)) >= FIRST);
    }

    #[test]
    fn a_call_waits_for_what_is_near_and_brings_about_what_is_late() {
        let now = Instant::now() + Duration::from_secs(100);
        let table =
            [(0, 250, true), (0, 1000, true), (0, 4000, false), (900, 4000, false), (1000, 4000, true), (3000, 100, true)];
        for (since, until, expected) in table {
            let (tried, next) = (now - Duration::from_millis(since), now + Duration::from_millis(until));
            assert_eq!(worth_waiting(now, tried, next), expected, "{since} {until}");
        }
    }
}
