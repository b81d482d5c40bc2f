//! The tokens of bots, which have no beginning of their own: Discord's three parts, Telegram's number and what follows it.

use crate::redact::hit::{Hit, Tail};
use crate::redact::kind::Kind;
use crate::redact::view::{Found, View, digit, token};

/// The first part of Discord's tokens is the base64 of a number: so long, in bytes.
pub(in crate::redact) const FIRST: std::ops::RangeInclusive<usize> = 23..=28;

/// A token of Discord's whose first dot stands at `start`.
pub(in crate::redact) fn discord(view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
    let from = begins(view, start);
    if !FIRST.contains(&(start - from)) {
        return Ok(None);
    }
    let second = view.run(end, 8, token)?;
    if second - end != 6 || view.at(second)? != Some(b'.') {
        return Ok(None);
    }
    let third = view.run(second + 1, 27, token)?;
    Ok((third == second + 28).then(|| Hit::new(from, third, Kind::BotToken).with(Tail::Run(token))))
}

/// Where a token of Discord's would begin whose first part ends at a place; the place itself, where there is none.
pub(in crate::redact) fn begins(view: &View<'_>, place: usize) -> usize {
    let from = view.run_back(place, *FIRST.end() + 1, token);
    let first = view.slice(from, place).first().copied();
    if matches!(first, Some(b'M' | b'N' | b'O')) && FIRST.end() >= &(place - from) && view.word_begins(from) {
        from
    } else {
        place
    }
}

/// A token of Telegram's whose number begins at `start`.
pub(in crate::redact) fn telegram(view: &View<'_>, start: usize) -> Found<Option<Hit>> {
    let colon = view.run(start, 11, digit)?;
    if !(8..=10).contains(&(colon - start)) || view.at(colon)? != Some(b':') {
        return Ok(None);
    }
    let end = view.run(colon + 1, 36, token)?;
    let is = end == colon + 36 && view.is(colon + 1, b"AA") && !view.word_goes_on(end)?;
    Ok(is.then(|| Hit::new(start, end, Kind::BotToken)))
}
