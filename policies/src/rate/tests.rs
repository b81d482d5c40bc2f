//! What holds of the sliding window, beside a list of all that was taken.

use proptest::prelude::*;

use super::*;

fn ms(at: i64) -> Timestamp {
    Timestamp::from_millisecond(1_790_000_000_000 + at).unwrap()
}

fn after(ms: u64) -> Again {
    Again::After(Duration::from_millis(ms))
}

#[test]
fn all_of_it_can_be_taken_at_once_and_is_there_again_60_seconds_later() {
    let mut rate = Rate::new(ms(0));
    assert!(rate.fits(40, 40, ms(700)));
    rate.take(40, ms(700));
    assert_eq!((rate.remaining(40, ms(700)), rate.reset(ms(700))), (0, Duration::from_secs(60)));
    assert_eq!(rate.wait(1, 40, ms(700)), after(60_000));
    assert!(!rate.fits(1, 40, ms(60_699)));
    assert!(rate.fits(40, 40, ms(60_700)));
    assert!(rate.is_empty(ms(60_700)));
}

#[test]
fn case_35_no_edge_lets_twice_the_limit_through() {
    let mut rate = Rate::new(ms(0));
    let mut admitted = |at| {
        let fits = rate.fits(1, 40, ms(at));
        if fits {
            rate.take(1, ms(at));
        }
        fits
    };
    assert_eq!((0..40).filter(|n| admitted(59_500 + n)).count(), 40);
    assert_eq!((0..40).filter(|n| admitted(60_500 + n)).count(), 0);
    assert_eq!((0..40).filter(|n| admitted(119_499 + n)).count(), 0);
    assert_eq!((0..40).filter(|_| admitted(119_539)).count(), 40);
}

#[test]
fn what_never_fits_is_told_so() {
    let mut rate = Rate::new(ms(0));
    assert_eq!(rate.wait(1001, 1000, ms(0)), Again::Never);
    assert_eq!(rate.wait(1000, 1000, ms(0)), after(0));
    assert_eq!(rate.wait(1, 0, ms(0)), Again::Never);
    assert!(rate.fits(0, 0, ms(0)), "nothing is never too much");
}

#[test]
fn what_is_taken_by_force_makes_others_wait() {
    let mut rate = Rate::new(ms(0));
    rate.take(900, ms(0));
    rate.take(900, ms(30_000));
    assert_eq!(rate.remaining(1000, ms(30_000)), 0);
    assert_eq!(rate.wait(100, 1000, ms(30_000)), after(30_000));
    assert_eq!(rate.wait(101, 1000, ms(30_000)), after(60_000));
}

#[test]
fn an_estimate_is_corrected_where_it_was_made() {
    let mut rate = Rate::new(ms(0));
    rate.take(100, ms(500));
    rate.correct(ms(500), 100, 40, ms(20_000));
    assert_eq!(rate.remaining(1000, ms(20_000)), 960);
    rate.correct(ms(500), 0, 60, ms(20_000));
    assert_eq!(rate.remaining(1000, ms(60_499)), 900);
    assert_eq!(rate.remaining(1000, ms(60_500)), 1000);
}

#[test]
fn what_was_used_beyond_an_estimate_that_counts_no_longer_counts_now() {
    let mut rate = Rate::new(ms(0));
    rate.take(100, ms(0));
    rate.correct(ms(0), 100, 250, ms(90_000));
    assert_eq!(rate.remaining(1000, ms(90_000)), 850);
    assert_eq!(rate.reset(ms(90_000)), Duration::from_secs(60));
    // What was taken too much counts no longer anyway.
    rate.correct(ms(0), 100, 0, ms(90_000));
    assert_eq!(rate.remaining(1000, ms(90_000)), 850);
}

#[test]
fn a_clock_that_goes_back_stands_still() {
    let mut rate = Rate::new(ms(0));
    rate.take(10, ms(100_000));
    rate.take(10, ms(5_000));
    assert_eq!(rate.remaining(100, ms(159_999)), 80);
    assert_eq!(rate.remaining(100, ms(160_000)), 100);
    assert_eq!(rate.remaining(100, ms(-1_000_000)), 100);
}

#[test]
fn nothing_overflows() {
    let mut rate = Rate::new(Timestamp::MIN);
    for at in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
        for _ in 0..3 {
            rate.take(u64::MAX, at);
        }
        assert!(!rate.fits(u64::MAX, u64::from(u32::MAX), at));
        assert_eq!(rate.wait(1, 1, at), after(60_000));
        rate.correct(at, u64::MAX, u64::MAX - 1, at);
        rate.correct(at, u64::MAX, 0, at);
        assert!(rate.is_empty(at));
    }
}

#[test]
fn it_is_small() {
    assert!(size_of::<Rate>() <= 384);
}

/// What a test does, some time after the last thing.
#[derive(Clone, Debug)]
enum Does {
    Ask(u64),
    Force(u64),
    /// The taking of this number was really so much.
    Correct(prop::sample::Index, u64),
}

fn doings() -> impl Strategy<Value = Vec<(i64, Does)>> {
    let pause = prop_oneof![3 => 0..50_i64, 3 => 0..3000_i64, 1 => 0..130_000_i64, 1 => (-3..3_i64).prop_map(|off| 60_000 + off)];
    let does = prop_oneof![
        6 => (0..130_u64).prop_map(Does::Ask),
        1 => (0..130_u64).prop_map(Does::Force),
        3 => (any::<prop::sample::Index>(), 0..150_u64).prop_map(|(which, to)| Does::Correct(which, to)),
    ];
    prop::collection::vec((pause, does), 1..120)
}

/// All that was taken, and when.
#[derive(Default)]
struct Log(Vec<(i64, u64)>);

impl Log {
    /// How much was taken after this moment.
    fn since(&self, at: i64) -> u64 {
        self.0.iter().filter(|(taken, _)| *taken > at).map(|(_, amount)| amount).sum()
    }

    fn correct(&mut self, which: usize, to: u64, now: i64) {
        let (at, from) = self.0[which];
        if to > from && at + SPAN <= now {
            self.0.push((now, to - from));
        } else {
            self.0[which].1 = to;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn in_no_60_seconds_is_more_taken_than_allowed_and_no_wait_is_a_lie(doings in doings(), most in 100..200_u64) {
        let (mut rate, mut log, mut now) = (Rate::new(ms(0)), Log::default(), 0);
        for (pause, does) in doings {
            now += pause;
            match does {
                Does::Ask(amount) => {
                    let fits = rate.fits(amount, most, ms(now));
                    prop_assert!(!fits || amount == 0 || log.since(now - SPAN) + amount <= most);
                    prop_assert!(fits || log.since(now - SPAN - 1000) + amount > most, "a second too late at most");
                    told_the_truth(&rate, amount, most, now)?;
                    if fits {
                        rate.take(amount, ms(now));
                        log.0.push((now, amount));
                    }
                }
                Does::Force(amount) => {
                    rate.take(amount, ms(now));
                    log.0.push((now, amount));
                }
                Does::Correct(which, to) if !log.0.is_empty() => {
                    let which = which.index(log.0.len());
                    let (at, from) = log.0[which];
                    rate.correct(ms(at), from, to, ms(now));
                    log.correct(which, to, now);
                }
                Does::Correct(..) => {}
            }
            prop_assert!(rate.remaining(most, ms(now)) <= most.saturating_sub(log.since(now - SPAN)));
            let reset = i64::try_from(rate.reset(ms(now)).as_millis()).unwrap();
            prop_assert!(reset <= SPAN && rate.clone().is_empty(ms(now + reset)));
            prop_assert!(reset == 0 || !rate.clone().is_empty(ms(now + reset - 1)));
        }
    }
}

/// Who waits as long as told gets in, and not a millisecond sooner.
fn told_the_truth(rate: &Rate, amount: u64, most: u64, now: i64) -> Result<(), TestCaseError> {
    let Again::After(wait) = rate.clone().wait(amount, most, ms(now)) else {
        prop_assert!(amount > most);
        return Ok(());
    };
    let wait = i64::try_from(wait.as_millis()).unwrap();
    prop_assert!(wait <= SPAN);
    prop_assert!(rate.clone().fits(amount, most, ms(now + wait)));
    prop_assert!(wait == 0 || !rate.clone().fits(amount, most, ms(now + wait - 1)));
    Ok(())
}
