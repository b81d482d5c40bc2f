//! Payment cards: an issuer's range, a length that it has, and the checksum of Luhn.

use crate::redact::hit::Hit;
use crate::redact::kind::Kind;
use crate::redact::view::{Found, View, digit};

/// The most digits that a card has.
const LONGEST: usize = 19;
/// How cards are written in groups.
const GROUPS: [&[usize]; 7] = [&[4, 4, 4, 4], &[4, 6, 5], &[4, 6, 4], &[4, 4, 4, 4, 3], &[4, 4, 4, 3], &[4, 4, 4, 1], &[8, 8]];

/// A card whose first digit stands at `start`.
pub(in crate::redact) fn find(view: &View<'_>, start: usize) -> Found<Option<Hit>> {
    let run = view.run(start, LONGEST + 1, digit)? - start;
    let grouped = (run == 4 || run == 8) && matches!(view.at(start + run)?, Some(b' ' | b'-'));
    if !(grouped || (12..=LONGEST).contains(&run)) || !matches!(view.slice(start, start + 1), [b'2'..=b'6' | b'8' | b'9']) {
        return Ok(None);
    }
    let card = if grouped { groups(view, start)? } else { Some(Digits::of(view.slice(start, start + run), start + run)) };
    let Some(card) = card else { return Ok(None) };
    if grouped && (follows_digits(view, start) || goes_on_in_fours(view, card.end)?) {
        return Ok(None);
    }
    let goes_on = view.word_goes_on(card.end)? || view.is_decimal(card.end)?;
    Ok((!goes_on && card.is_issued() && card.passes_luhn()).then(|| Hit::new(start, card.end, Kind::Card)))
}

/// Whether it is the middle of a longer number: of an IBAN, whose first group is letters and two digits, or of fours.
fn follows_digits(view: &View<'_>, start: usize) -> bool {
    match view.left(start, 5) {
        [a, b, c, d, b' ' | b'-'] => {
            c.is_ascii_digit() && d.is_ascii_digit() && a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric()
        }
        _ => false,
    }
}

/// Whether two more groups follow; one may be a card's check number.
fn goes_on_in_fours(view: &View<'_>, end: usize) -> Found<bool> {
    let next = view.run(end, 1, |byte| matches!(byte, b' ' | b'-'))?;
    let group = view.run(next, 5, digit)?;
    if next == end || group != next + 4 {
        return Ok(false);
    }
    Ok(matches!(view.at(group)?, Some(b' ' | b'-')) && view.is_digit_or_mask(group + 1)?)
}

#[derive(Clone, Copy, Default)]
struct Digits {
    digits: [u8; LONGEST],
    count: usize,
    /// Where the last one ends.
    end: usize,
}

/// The longest way of writing a card in groups, one and the same separator between them; `None`: not as cards are written.
fn groups(view: &View<'_>, start: usize) -> Found<Option<Digits>> {
    let (mut card, mut card_end) = (Digits::default(), start);
    let (mut lengths, mut count) = ([0; 5], 0);
    let mut longest = None;
    while let Some(length) = lengths.get_mut(count) {
        let from = card_end + usize::from(count > 0);
        card_end = view.run(from, 9, digit)?;
        *length = card_end - from;
        count += 1;
        let written = lengths.get(..count).unwrap_or_default();
        if !GROUPS.iter().any(|groups| groups.starts_with(written)) {
            break;
        }
        card.add(view.slice(from, card_end));
        card.end = card_end;
        if GROUPS.contains(&written) {
            longest = Some(card);
        }
        let separator = view.at(card_end)?;
        let first = view.slice(start + lengths[0], start + lengths[0] + 1).first().copied();
        if !matches!(separator, Some(b' ' | b'-')) || (count > 1 && separator != first) {
            break;
        }
    }
    Ok(longest)
}

impl Digits {
    fn of(digits: &[u8], end: usize) -> Self {
        let mut card = Self { end, ..Self::default() };
        card.add(digits);
        card
    }

    fn add(&mut self, digits: &[u8]) {
        for (slot, digit) in self.digits.iter_mut().skip(self.count).zip(digits) {
            *slot = digit - b'0';
            self.count += 1;
        }
    }

    fn first(&self, count: usize) -> u32 {
        self.digits.iter().take(count).fold(0, |number, &digit| number * 10 + u32::from(digit))
    }

    /// Whether some issuer has cards that begin so and are so long.
    fn is_issued(&self) -> bool {
        match (self.first(4), self.count) {
            // Visa.
            (4000..=4999, 13 | 16 | 19)
            // Mastercard.
            | (5100..=5599 | 2221..=2720, 16)
            // American Express.
            | (3400..=3499 | 3700..=3799, 15)
            // Diners Club.
            | (3000..=3059 | 3095 | 3600..=3699 | 3800..=3999, 14 | 16 | 19)
            // Discover, RuPay.
            | (6011 | 6440..=6599 | 6000..=6099 | 8100..=8299 | 5080..=5089, 16 | 19)
            // JCB, UnionPay.
            | (3528..=3589 | 6200..=6299, 16..=19)
            // Mir, Troy.
            | (2200..=2204 | 9792, 16..=19)
            // Maestro.
            | (5018 | 5020 | 5038 | 5893 | 6304 | 6759 | 6761..=6763, 12..=19) => true,
            _ => false,
        }
    }

    fn passes_luhn(&self) -> bool {
        let digits = self.digits.iter().take(self.count).rev().enumerate();
        let sum: u32 = digits
            .map(|(at, &digit)| match (at % 2, u32::from(digit) * 2) {
                (0, _) => u32::from(digit),
                (_, double) if double > 9 => double - 9,
                (_, double) => double,
            })
            .sum();
        sum.is_multiple_of(10) && self.digits.iter().take(self.count).any(|&digit| digit != 0)
    }
}
