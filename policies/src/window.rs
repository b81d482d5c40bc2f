//! Calendar windows: when the one began that holds a moment, and when it ends.
//!
//! The windows of a kind tile time: each ends where the next begins, whatever the clocks of the zone do. It is some work to find one, so
//! whoever counts keeps it until it [is over](Window::is_over).

use jiff::civil::{Date, Time};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Timestamp, ToSpan};
use toolgate_config::limit::{Per, Zone};

/// A window of time: from its start up to, not including, its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment of the next one; `None`: there is no next one.
    pub end: Option<Timestamp>,
}

impl Window {
    /// Whether a later one has begun.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.end.is_some_and(|end| end <= now)
    }
}

/// The window that holds a moment.
pub fn window(per: Per, zone: &Zone, now: Timestamp) -> Window {
    match per {
        Per::Minute => of_clock(60, zone.rules(), now),
        Per::Hour => of_clock(3600, zone.rules(), now),
        Per::Day | Per::Week | Per::Month => of_calendar(per, zone.rules(), now),
        Per::Total => Window { start: Timestamp::MIN, end: None },
    }
}

/// A minute or an hour as the zone's clocks show it. It is cut short where they are set: an hour that comes twice is two.
fn of_clock(seconds: i64, rules: &TimeZone, now: Timestamp) -> Window {
    let offset = rules.to_offset(now);
    let shift = i64::from(offset.seconds());
    let start = (whole_seconds(now) + shift).div_euclid(seconds) * seconds - shift;
    let first = Timestamp::from_second(start).unwrap_or(Timestamp::MIN);
    let end = Timestamp::from_second(start + seconds).ok();
    Window { start: set_before(rules, offset, first, now), end: end.map(|end| set_after(rules, offset, now, end)) }
}

/// The seconds since 1970, rounded down also before it.
fn whole_seconds(at: Timestamp) -> i64 {
    at.as_second() - i64::from(at.subsec_nanosecond() < 0)
}

/// When the clocks were set to the offset that they have now, if that was later than `first`.
fn set_before(rules: &TimeZone, offset: Offset, first: Timestamp, now: Timestamp) -> Timestamp {
    if rules.to_offset(first) == offset {
        return first;
    }
    // What precedes a moment does not hold what happens in it.
    let just_after = now.checked_add(1.nanosecond()).unwrap_or(now);
    rules.preceding(just_after).take_while(|set| set.offset() == offset).last().map_or(first, |set| set.timestamp())
}

/// When the clocks will be set to another offset than they have now, if that is before `end`.
fn set_after(rules: &TimeZone, offset: Offset, now: Timestamp, end: Timestamp) -> Timestamp {
    if rules.to_offset(end) == offset {
        return end;
    }
    rules.following(now).find(|set| set.offset() != offset).map_or(end, |set| set.timestamp().min(end))
}

/// A day, week or month of the zone's calendar. It begins with the first moment that has its first date, or a later one: where clocks are
/// set back over midnight, the new day goes on though the date is once more the old one's.
fn of_calendar(per: Per, rules: &TimeZone, now: Timestamp) -> Window {
    let mut first = Some(first_date(per, rules.to_datetime(now).date()));
    let mut start = Timestamp::MIN;
    while let Some(date) = first {
        let Some(begins) = midnight(rules, date) else { break };
        if begins > now {
            return Window { start, end: Some(begins) };
        }
        (start, first) = (begins, next_date(per, date));
    }
    Window { start, end: None }
}

/// The first date of the window that a date is in.
fn first_date(per: Per, date: Date) -> Date {
    match per {
        Per::Week => date.checked_sub(date.weekday().to_monday_zero_offset().days()).unwrap_or(Date::MIN),
        Per::Month => date.first_of_month(),
        Per::Minute | Per::Hour | Per::Day | Per::Total => date,
    }
}

/// The first date of the next window; `None`: the calendar ends.
fn next_date(per: Per, first: Date) -> Option<Date> {
    match per {
        Per::Week => first.checked_add(7.days()).ok(),
        Per::Month => first.last_of_month().tomorrow().ok(),
        Per::Minute | Per::Hour | Per::Day | Per::Total => first.tomorrow().ok(),
    }
}

/// The first moment of a date; of one that the zone left out, or whose midnight it left out, the moment when it did so.
fn midnight(rules: &TimeZone, date: Date) -> Option<Timestamp> {
    let midnight = date.to_datetime(Time::midnight());
    match rules.to_ambiguous_timestamp(midnight).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(midnight).ok()
        }
        AmbiguousOffset::Gap { after, .. } => {
            let shortly_before = after.to_timestamp(midnight).ok()?;
            rules.following(shortly_before).find(|set| set.offset() == after).map(|set| set.timestamp())
        }
    }
}

#[cfg(test)]
mod tests;
