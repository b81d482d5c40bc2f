//! The rule of a circuit breaker, for one model at one provider: after several failed calls in a row nobody asks for a while, then one call
//! tries, and decides for all. Pure: the time is an argument, and who keeps the breakers is `breakers`.

use std::time::Duration;

use tokio::time::Instant;

use crate::trace::Outcome;

/// How many calls in a row have to fail.
pub(super) const MOST_FAILURES: u32 = 5;

/// How long nobody asks.
pub(super) const COOLDOWN: Duration = Duration::from_secs(30);

/// After how long without news what is known is worth nothing any more.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// When to come again while somebody else tries: nobody knows how long that takes.
const WHILE_TRIED: Duration = Duration::from_secs(1);

/// What is known of one model at one provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaker {
    /// Calls go through; so many have failed since one worked, the last of them then.
    Closed { failures: u32, last: Instant },
    /// Nobody asks until then.
    Open { until: Instant },
    /// One call is on its way to see.
    Probed,
}

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may.
    Go,
    /// It may, and it is the one that decides.
    Probe,
    /// It may not; to come again after this is worth a try.
    Rest(Duration),
}

/// What a call has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The provider works.
    Works,
    /// It does not.
    Fails,
    /// Nothing: the fault was the request's or the caller's own, or it is a matter of how much was asked.
    Nothing,
}

impl Shown {
    /// What an outcome says of a provider. One that says 429 works, and has said itself when to come again.
    pub(super) fn by(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::Works,
            Outcome::ServerError | Outcome::Timeout | Outcome::ConnectError | Outcome::Cut => Self::Fails,
            Outcome::ClientError | Outcome::RateLimited | Outcome::Cancelled => Self::Nothing,
        }
    }
}

/// What a call has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// From now on nobody asks for a while.
    Opened,
    /// Calls go through again.
    Closed,
}

impl Breaker {
    /// Of a provider that nothing is known of.
    pub(super) fn new(now: Instant) -> Self {
        Self::Closed { failures: 0, last: now }
    }

    /// May a call be made now?
    pub(super) fn ask(&mut self, now: Instant) -> Verdict {
        match *self {
            _ if self.is_forgotten(now) => Verdict::Go,
            Self::Closed { .. } => Verdict::Go,
            Self::Open { until } if now < until => Verdict::Rest(until - now),
            Self::Open { .. } => {
                *self = Self::Probed;
                Verdict::Probe
            }
            Self::Probed => Verdict::Rest(WHILE_TRIED),
        }
    }

    /// The call that decides has shown this; one that was dropped has shown nothing, and the next one decides.
    pub(super) fn probed(&mut self, shown: Shown, now: Instant) -> Option<Change> {
        let (next, change) = match shown {
            Shown::Works => (Self::new(now), Some(Change::Closed)),
            Shown::Fails => (Self::Open { until: now + COOLDOWN }, Some(Change::Opened)),
            Shown::Nothing => (Self::Open { until: now }, None),
        };
        *self = next;
        change
    }

    /// Any other call has shown this. One that began before nobody asked any more decides nothing: it is news of then.
    pub(super) fn heard(&mut self, shown: Shown, now: Instant) -> Option<Change> {
        if self.is_forgotten(now) {
            *self = Self::new(now);
        }
        let Self::Closed { failures, .. } = *self else { return None };
        match shown {
            Shown::Nothing => None,
            Shown::Works => {
                *self = Self::new(now);
                None
            }
            Shown::Fails if failures + 1 < MOST_FAILURES => {
                *self = Self::Closed { failures: failures + 1, last: now };
                None
            }
            Shown::Fails => {
                *self = Self::Open { until: now + COOLDOWN };
                Some(Change::Opened)
            }
        }
    }

    /// Whether nobody asks, but for the one who tries.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        !matches!(self, Self::Closed { .. }) && !self.is_forgotten(now)
    }

    /// Whether it is as if nothing were known.
    pub(super) fn is_forgotten(&self, now: Instant) -> bool {
        match *self {
            Self::Closed { failures, last } => failures == 0 || now >= last + FORGOTTEN,
            Self::Open { until } => now >= until + FORGOTTEN,
            Self::Probed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LITTLE: Duration = Duration::from_millis(1);

    /// A breaker after so many failures in a row.
    fn failed(times: u32, now: Instant) -> (Breaker, Option<Change>) {
        let mut breaker = Breaker::new(now);
        let change = (0..times).map(|_| breaker.heard(Shown::Fails, now)).last().flatten();
        (breaker, change)
    }

    #[test]
    fn it_opens_with_the_last_failure_in_a_row_and_no_sooner() {
        let now = Instant::now();
        let (mut almost, change) = failed(MOST_FAILURES - 1, now);
        assert_eq!((almost.ask(now), change), (Verdict::Go, None));
        let (mut open, change) = failed(MOST_FAILURES, now);
        assert_eq!((open.ask(now), change), (Verdict::Rest(COOLDOWN), Some(Change::Opened)));
        almost.heard(Shown::Nothing, now);
        assert_eq!(almost.heard(Shown::Fails, now), Some(Change::Opened), "what shows nothing is not in the row");
    }

    #[test]
    fn a_call_that_works_ends_the_row() {
        let now = Instant::now();
        let (mut breaker, _) = failed(MOST_FAILURES - 1, now);
        breaker.heard(Shown::Works, now);
        assert_eq!(breaker.heard(Shown::Fails, now), None);
    }

    #[test]
    fn what_failed_long_ago_is_forgotten() {
        let now = Instant::now();
        let (mut breaker, _) = failed(MOST_FAILURES - 1, now);
        assert_eq!(breaker.heard(Shown::Fails, now + FORGOTTEN), None);
        let (mut breaker, _) = failed(MOST_FAILURES, now);
        assert!(breaker.is_open(now + COOLDOWN));
        assert!(!breaker.is_open(now + COOLDOWN + FORGOTTEN));
        assert_eq!(breaker.ask(now + COOLDOWN + FORGOTTEN), Verdict::Go);
    }

    #[test]
    fn after_the_pause_one_call_decides() {
        let now = Instant::now();
        let later = now + COOLDOWN;
        let table = [
            (Shown::Works, Verdict::Go, Some(Change::Closed)),
            (Shown::Fails, Verdict::Rest(COOLDOWN), Some(Change::Opened)),
            (Shown::Nothing, Verdict::Probe, None),
        ];
        for (shown, next, change) in table {
            let (mut breaker, _) = failed(MOST_FAILURES, now);
            assert_eq!(breaker.ask(later - LITTLE), Verdict::Rest(LITTLE));
            assert_eq!(breaker.ask(later), Verdict::Probe);
            assert_eq!(breaker.ask(later), Verdict::Rest(WHILE_TRIED), "only one");
            for old in [Shown::Works, Shown::Fails, Shown::Nothing] {
                assert_eq!(breaker.heard(old, later), None, "news of before");
            }
            assert_eq!(breaker.probed(shown, later), change, "{shown:?}");
            assert_eq!(breaker.ask(later), next, "{shown:?}");
        }
    }

    #[test]
    fn only_what_is_the_providers_fault_counts() {
        let fails = [Outcome::ServerError, Outcome::Timeout, Outcome::ConnectError, Outcome::Cut];
        assert!(fails.into_iter().all(|outcome| Shown::by(outcome) == Shown::Fails));
        let nothing = [Outcome::ClientError, Outcome::RateLimited, Outcome::Cancelled];
        assert!(nothing.into_iter().all(|outcome| Shown::by(outcome) == Shown::Nothing));
        assert_eq!(Shown::by(Outcome::Ok), Shown::Works);
    }

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Ask,
        Heard(Shown),
        Probed(Shown),
        Wait(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        let shown = || prop_oneof![Just(Shown::Works), Just(Shown::Fails), Just(Shown::Nothing)];
        prop_oneof![
            Just(Event::Ask),
            shown().prop_map(Event::Heard),
            shown().prop_map(Event::Probed),
            (0u64..40).prop_map(Event::Wait)
        ]
    }

    proptest! {
        /// Whatever happens: no two calls try at the same time, and nobody has to wait for longer than the pause.
        #[test]
        fn at_most_one_call_tries_and_nobody_is_shut_out_for_good(events in proptest::collection::vec(event(), 0..60)) {
            let mut now = Instant::now();
            let (mut breaker, mut probing) = (Breaker::new(now), false);
            for event in events {
                match event {
                    Event::Ask => match breaker.ask(now) {
                        Verdict::Probe => {
                            prop_assert!(!probing);
                            probing = true;
                        }
                        Verdict::Go => prop_assert!(!probing),
                        Verdict::Rest(wait) => prop_assert!(wait <= COOLDOWN),
                    },
                    Event::Heard(shown) => drop(breaker.heard(shown, now)),
                    Event::Probed(shown) if probing => {
                        breaker.probed(shown, now);
                        probing = false;
                    }
                    Event::Probed(_) => {}
                    Event::Wait(seconds) => now += Duration::from_secs(seconds),
                }
            }
            if probing {
                breaker.probed(Shown::Nothing, now);
            }
            prop_assert!(!matches!(breaker.ask(now + COOLDOWN), Verdict::Rest(_)));
        }
    }
}
