//! The server's clock, by which everything is counted. Those of the gateways may say what they like.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use toolgate_config::limit::{Per, Zone};
use toolgate_policies::window::{Window, window};

/// What a gateway knows of the server's clock. Times are in microseconds since 1970.
pub(super) struct Clock {
    /// How far the server's is ahead of this gateway's.
    ahead: AtomicI64,
    /// The latest that the server has told.
    latest: AtomicI64,
    /// The server goes by what this gateway is told: in a test.
    led: Option<AtomicI64>,
}

impl Clock {
    /// The server's own.
    pub(super) const fn of_server() -> Self {
        Self { ahead: AtomicI64::new(0), latest: AtomicI64::new(0), led: None }
    }

    /// One that says what this gateway was told last.
    #[cfg(test)]
    pub(super) const fn led(now: i64) -> Self {
        Self { ahead: AtomicI64::new(0), latest: AtomicI64::new(0), led: Some(AtomicI64::new(now)) }
    }

    /// The server's time at a moment of this gateway's. A clock that goes back stands still.
    pub(super) fn there(&self, here: Timestamp) -> Timestamp {
        if let Some(led) = &self.led {
            led.fetch_max(here.as_microsecond(), Ordering::Relaxed);
        }
        let there = here.saturating_add(SignedDuration::from_micros(self.ahead.load(Ordering::Relaxed)));
        there.unwrap_or(here).max(Timestamp::from_microsecond(self.latest()).unwrap_or(here))
    }

    /// The server said `there` between these two moments; at `since` it was `here`.
    pub(super) fn learn(&self, here: Timestamp, since: Instant, between: [Instant; 2], there: i64) {
        if self.led.is_none() {
            let middle = between[0] + (between[1] - between[0]) / 2;
            let passed = i64::try_from(middle.saturating_duration_since(since).as_micros()).unwrap_or(0);
            self.ahead.store(there - here.as_microsecond() - passed, Ordering::Relaxed);
        }
    }

    /// The server has told its time.
    pub(super) fn hear(&self, there: i64) {
        self.latest.fetch_max(there, Ordering::Relaxed);
    }

    /// The same, from a server whose clock may have been set back.
    pub(super) fn hear_anew(&self, there: i64) {
        self.latest.store(there, Ordering::Relaxed);
    }

    /// The latest time that was heard.
    pub(super) fn latest(&self) -> i64 {
        self.latest.load(Ordering::Relaxed)
    }

    /// The time that a script shall go by; 0: the server's.
    pub(super) fn dictated(&self) -> i64 {
        self.led.as_ref().map_or(0, |led| led.load(Ordering::Relaxed))
    }

    /// How long ago something was, in milliseconds.
    pub(super) fn ago(&self, then: Instant) -> i64 {
        if self.led.is_some() { 0 } else { i64::try_from(then.elapsed().as_millis()).unwrap_or(i64::MAX) }
    }
}

/// The windows that were last asked for: it is some work to find one.
#[derive(Default)]
pub(super) struct Windows(Vec<(Per, Zone, Window)>);

/// More kinds of windows than anybody has.
const KINDS: usize = 64;

impl Windows {
    /// The window that holds a moment.
    pub(super) fn at(&mut self, per: Per, zone: &Zone, now: Timestamp) -> Window {
        if let Some((_, _, kept)) = self.0.iter_mut().find(|(of, at, _)| *of == per && at == zone) {
            if now < kept.start || kept.is_over(now) {
                *kept = window(per, zone, now);
            }
            return *kept;
        }
        let found = window(per, zone, now);
        self.0.truncate(KINDS - 1);
        self.0.push((per, zone.clone(), found));
        found
    }
}
