//! What windows are, zone by zone, and what holds of all of them.

use std::str::FromStr;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

/// Zones whose clocks do what clocks should not.
const ZONES: [&str; 26] = [
    "UTC",
    "Africa/Cairo",        // set at midnight, with years of pause
    "Africa/Casablanca",   // set back for Ramadan
    "Africa/Monrovia",     // 44 minutes and 30 seconds until 1972
    "America/Asuncion",    // set at midnight
    "America/Caracas",     // half an hour, and back
    "America/Havana",      // midnight comes twice
    "America/New_York",    //
    "America/Nuuk",        // set on the evening before
    "America/Sao_Paulo",   // midnight left out
    "America/St_Johns",    // set back over midnight, at one minute past
    "Antarctica/Casey",    // three hours at once
    "Antarctica/Troll",    // summer time of two hours
    "Asia/Amman",          //
    "Asia/Beirut",         // midnight left out
    "Asia/Kathmandu",      // 45 minutes
    "Asia/Kolkata",        // 30 minutes
    "Asia/Pyongyang",      // half an hour, and back
    "Asia/Tehran",         // 30 minutes, midnight left out
    "Australia/Lord_Howe", // summer time of half an hour
    "Europe/Berlin",       //
    "Europe/Dublin",       // summer time is the standard one
    "Pacific/Apia",        // a day left out
    "Pacific/Chatham",     // 45 minutes and summer time
    "Pacific/Kiritimati",  // 14 hours ahead
    "Pacific/Kwajalein",   // a day left out
];

fn zone(name: &str) -> Zone {
    Zone::find(name).unwrap_or_else(|| panic!("no zone {name}"))
}

fn at(text: &str) -> Timestamp {
    Timestamp::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_window_is_that_of_the_zones_calendar() {
    use Per::*;
    let cases = [
        (Minute, "UTC", "2026-10-08T12:34:56.7Z", "2026-10-08T12:34Z", "2026-10-08T12:35Z"),
        (Hour, "UTC", "2026-10-08T12:00Z", "2026-10-08T12:00Z", "2026-10-08T13:00Z"),
        (Day, "UTC", "2026-10-08T23:59:59.999999999Z", "2026-10-08T00:00Z", "2026-10-09T00:00Z"),
        (Week, "UTC", "2026-10-11T23:00Z", "2026-10-05T00:00Z", "2026-10-12T00:00Z"),
        (Week, "UTC", "2026-10-12T00:00Z", "2026-10-12T00:00Z", "2026-10-19T00:00Z"),
        (Week, "UTC", "2027-01-01T12:00Z", "2026-12-28T00:00Z", "2027-01-04T00:00Z"),
        (Month, "UTC", "2024-02-29T12:00Z", "2024-02-01T00:00Z", "2024-03-01T00:00Z"),
        (Month, "UTC", "2026-02-28T23:00Z", "2026-02-01T00:00Z", "2026-03-01T00:00Z"),
        (Month, "UTC", "2100-02-28T23:00Z", "2100-02-01T00:00Z", "2100-03-01T00:00Z"),
        (Month, "UTC", "2026-12-31T23:59Z", "2026-12-01T00:00Z", "2027-01-01T00:00Z"),
        (Minute, "UTC", "1969-12-31T23:59:59.5Z", "1969-12-31T23:59Z", "1970-01-01T00:00Z"),
        // The zone's day is not that of UTC.
        (Day, "Europe/Berlin", "2026-01-31T23:30Z", "2026-01-31T23:00Z", "2026-02-01T23:00Z"),
        (Month, "Europe/Berlin", "2026-01-31T23:30Z", "2026-01-31T23:00Z", "2026-02-28T23:00Z"),
        // Days of 23 and 25 hours, and the weeks and months around them.
        (Day, "Europe/Berlin", "2026-03-29T12:00Z", "2026-03-28T23:00Z", "2026-03-29T22:00Z"),
        (Day, "Europe/Berlin", "2026-10-25T12:00Z", "2026-10-24T22:00Z", "2026-10-25T23:00Z"),
        (Week, "Europe/Berlin", "2026-10-25T12:00Z", "2026-10-18T22:00Z", "2026-10-25T23:00Z"),
        (Month, "America/New_York", "2026-03-15T12:00Z", "2026-03-01T05:00Z", "2026-04-01T04:00Z"),
        // The hour that comes twice, and the one that is left out.
        (Hour, "Europe/Berlin", "2026-10-25T00:30Z", "2026-10-25T00:00Z", "2026-10-25T01:00Z"),
        (Hour, "Europe/Berlin", "2026-10-25T01:30Z", "2026-10-25T01:00Z", "2026-10-25T02:00Z"),
        (Hour, "Europe/Berlin", "2026-03-29T00:59Z", "2026-03-29T00:00Z", "2026-03-29T01:00Z"),
        (Hour, "Europe/Berlin", "2026-03-29T01:00Z", "2026-03-29T01:00Z", "2026-03-29T02:00Z"),
        // Offsets that are no whole hours.
        (Hour, "Asia/Kolkata", "2026-01-01T00:00Z", "2025-12-31T23:30Z", "2026-01-01T00:30Z"),
        (Hour, "Asia/Kathmandu", "2026-01-01T00:00Z", "2025-12-31T23:15Z", "2026-01-01T00:15Z"),
        (Minute, "Africa/Monrovia", "1971-06-01T00:00:10Z", "1971-05-31T23:59:30Z", "1971-06-01T00:00:30Z"),
        // A midnight that is left out: the day begins when it was.
        (Day, "America/Sao_Paulo", "2018-11-04T12:00Z", "2018-11-04T03:00Z", "2018-11-05T02:00Z"),
        (Day, "America/Sao_Paulo", "2018-11-04T02:59Z", "2018-11-03T03:00Z", "2018-11-04T03:00Z"),
        (Day, "Africa/Cairo", "2024-04-26T12:00Z", "2024-04-25T22:00Z", "2024-04-26T21:00Z"),
        // A midnight that comes twice: the day begins with the first.
        (Day, "America/Havana", "2024-11-03T05:30Z", "2024-11-03T04:00Z", "2024-11-04T05:00Z"),
        // Clocks that are set back over midnight: the day has begun, and goes on.
        (Day, "America/St_Johns", "2010-11-07T02:30:30Z", "2010-11-07T02:30Z", "2010-11-08T03:30Z"),
        (Day, "America/St_Johns", "2010-11-07T03:00Z", "2010-11-07T02:30Z", "2010-11-08T03:30Z"),
        (Day, "America/St_Johns", "2010-11-07T04:00Z", "2010-11-07T02:30Z", "2010-11-08T03:30Z"),
        // Half an hour that comes twice, or is left out.
        (Hour, "Australia/Lord_Howe", "2026-04-04T14:59Z", "2026-04-04T14:00Z", "2026-04-04T15:00Z"),
        (Hour, "Australia/Lord_Howe", "2026-04-04T15:10Z", "2026-04-04T15:00Z", "2026-04-04T15:30Z"),
        (Hour, "Australia/Lord_Howe", "2026-04-04T15:40Z", "2026-04-04T15:30Z", "2026-04-04T16:30Z"),
        (Hour, "Australia/Lord_Howe", "2026-10-03T15:45Z", "2026-10-03T15:30Z", "2026-10-03T16:00Z"),
        // A day that is left out.
        (Day, "Pacific/Apia", "2011-12-30T09:59Z", "2011-12-29T10:00Z", "2011-12-30T10:00Z"),
        (Day, "Pacific/Apia", "2011-12-30T10:00Z", "2011-12-30T10:00Z", "2011-12-31T10:00Z"),
        // Longer than the tables of zones go: by the zone's rule.
        (Day, "Europe/Berlin", "2090-07-01T12:00Z", "2090-06-30T22:00Z", "2090-07-01T22:00Z"),
    ];
    for (per, name, now, start, end) in cases {
        let right = Window { start: at(start), end: Some(at(end)) };
        assert_eq!(window(per, &zone(name), at(now)), right, "the {} of {now} in {name}", per.as_str());
    }
}

#[test]
fn the_total_has_no_bounds() {
    assert_eq!(window(Per::Total, &Zone::utc(), at("2026-10-08T12:00Z")), Window { start: Timestamp::MIN, end: None });
}

#[test]
fn at_both_ends_of_time_there_is_a_window() {
    for per in Per::ALL {
        for name in ZONES {
            for now in [Timestamp::MIN, Timestamp::MAX] {
                let Window { start, end } = window(per, &zone(name), now);
                assert!(start <= now && end.is_none_or(|end| now < end), "{} in {name}", per.as_str());
            }
        }
    }
}

/// Moments between 1970 and 2100, every second one close to one at which the zone's clocks are set.
fn moments() -> impl Strategy<Value = (Per, Zone, Timestamp)> {
    let random =
        (0..6_usize, any::<prop::sample::Index>(), 0..4_102_444_800_i64, any::<bool>(), -7200..7200_i64, 0..1_000_000_000);
    random.prop_map(|(per, name, second, near, close, nanosecond)| {
        let zone = zone(ZONES[name.index(ZONES.len())]);
        let now = Timestamp::new(second, nanosecond).unwrap();
        let set = zone.rules().following(now).next().filter(|_| near).map(|set| set.timestamp());
        // Exactly then, seconds around it, and up to two hours.
        let close = [0, close / 1000, close][close.unsigned_abs() as usize % 3];
        (Per::ALL[per], zone, set.map_or(now, |set| set + SignedDuration::from_secs(close)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_window_holds_the_moment_and_is_the_same_for_every_other_in_it((per, zone, now) in moments(), within in 0.0..1.0_f64) {
        let it = window(per, &zone, now);
        prop_assert!(it.start <= now && !it.is_over(now), "{it:?}");
        prop_assert_eq!(window(per, &zone, it.start), it);
        let Some(end) = it.end else { return Ok(()) };
        prop_assert_eq!(window(per, &zone, end - 1.nanosecond()), it);
        let other = it.start + (end.duration_since(it.start)).mul_f64(within);
        prop_assert_eq!(window(per, &zone, other.min(end - 1.nanosecond())), it);
    }

    #[test]
    fn windows_tile((per, zone, now) in moments()) {
        let it = window(per, &zone, now);
        let Some(end) = it.end else { return Ok(()) };
        let next = window(per, &zone, end);
        prop_assert_eq!(next.start, end);
        prop_assert!(it.is_over(end) && next.end > it.end);
        prop_assert_eq!(window(per, &zone, it.start - 1.nanosecond()).end, Some(it.start));
    }

    #[test]
    fn a_day_begins_when_its_date_is_first_seen((_, zone, now) in moments()) {
        let date = |at| zone.rules().to_datetime(at).date();
        let it = window(Per::Day, &zone, now);
        let before = it.start - 1.nanosecond();
        prop_assert!(date(before) < date(it.start));
        let hours = it.end.unwrap().duration_since(it.start).as_hours();
        prop_assert!((20..=28).contains(&hours), "{} hours", hours);
    }

    #[test]
    fn longer_windows_begin_and_end_with_shorter_ones((_, zone, now) in moments()) {
        for (long, short) in [(Per::Hour, Per::Minute), (Per::Day, Per::Minute), (Per::Week, Per::Day), (Per::Month, Per::Day)] {
            let it = window(long, &zone, now);
            prop_assert_eq!(window(short, &zone, it.start).start, it.start);
            prop_assert_eq!(window(short, &zone, it.end.unwrap()).start, it.end.unwrap());
        }
    }

    #[test]
    fn an_hour_of_the_clock_is_no_longer_than_an_hour((_, zone, now) in moments()) {
        let it = window(Per::Hour, &zone, now);
        let length = it.end.unwrap().duration_since(it.start);
        prop_assert!(length <= SignedDuration::from_hours(1), "{length:?}");
        prop_assert_eq!(zone.rules().to_datetime(it.start).hour(), zone.rules().to_datetime(now).hour());
    }
}
