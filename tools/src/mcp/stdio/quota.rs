//! How many lines of a talkative server are logged. Pure: time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// A stretch of time, and how many lines are logged in it.
const STRETCH: Duration = Duration::from_secs(10);
const LINES: u32 = 20;

/// Counts the lines of the stretch.
#[derive(Debug, Default)]
pub(super) struct Quota {
    began: Option<Instant>,
    said: u32,
    kept_back: u64,
}

impl Quota {
    /// Whether this line may be logged, and how many were not since the last that was.
    pub(super) fn take(&mut self, now: Instant) -> Option<u64> {
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= STRETCH) {
            self.began = Some(now);
            self.said = 0;
        }
        if self.said >= LINES {
            self.kept_back += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.kept_back))
    }

    /// How many were not logged since the last that was.
    pub(super) fn kept_back(&self) -> u64 {
        self.kept_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_twenty_lines_a_stretch_and_a_number() {
        let (mut quota, start) = (Quota::default(), Instant::now());
        let said = (0..1000).filter(|_| quota.take(start).is_some()).count();
        assert_eq!((said, quota.kept_back()), (20, 980));
        assert_eq!(quota.take(start + STRETCH - Duration::from_millis(1)), None);
        assert_eq!(quota.take(start + STRETCH), Some(981));
        assert_eq!(quota.take(start + STRETCH), Some(0));
    }
}
