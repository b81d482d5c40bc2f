//! Telephone numbers: the international form by the country's code and length, national forms by how countries write them. A row of digits
//! that nothing marks as a telephone number is none, unless a word before it says so.

use crate::redact::hit::Hit;
use crate::redact::kind::Kind;
use crate::redact::view::{Found, View, digit};

/// Country codes, and how many digits follow at least and at most. Zones 1 and 7 have rules of their own.
#[rustfmt::skip]
const COUNTRIES: &[(u16, u8, u8)] = &[
    (1, 10, 10), (7, 10, 10), (20, 8, 10), (211, 9, 9), (212, 9, 9), (213, 8, 9), (216, 8, 8), (218, 8, 9), (220, 7, 7),
    (221, 9, 9), (222, 8, 8), (223, 8, 8), (224, 8, 9), (225, 8, 10), (226, 8, 8), (227, 8, 8), (228, 8, 8), (229, 8, 10),
    (230, 7, 8), (231, 7, 9), (232, 8, 8), (233, 9, 9), (234, 7, 10), (235, 8, 8), (236, 8, 8), (237, 8, 9), (238, 7, 7),
    (239, 7, 7), (240, 9, 9), (241, 7, 8), (242, 9, 9), (243, 7, 9), (244, 9, 9), (245, 7, 9), (246, 7, 7), (248, 7, 7),
    (249, 9, 9), (250, 9, 9), (251, 9, 9), (252, 7, 9), (253, 8, 8), (254, 7, 10), (255, 9, 9), (256, 9, 9), (257, 8, 8),
    (258, 8, 9), (260, 9, 9), (261, 9, 10), (262, 9, 9), (263, 8, 10), (264, 8, 9), (265, 7, 9), (266, 8, 8), (267, 7, 8),
    (268, 8, 8), (269, 7, 7), (27, 9, 9), (290, 5, 5), (291, 7, 7), (297, 7, 7), (298, 6, 6), (299, 6, 6), (30, 10, 10),
    (31, 9, 9), (32, 8, 9), (33, 9, 9), (34, 9, 9), (350, 8, 8), (351, 9, 9), (352, 6, 11), (353, 7, 9), (354, 7, 9),
    (355, 7, 9), (356, 8, 8), (357, 8, 8), (358, 6, 11), (359, 7, 9), (36, 8, 9), (370, 8, 8), (371, 8, 8), (372, 7, 8),
    (373, 8, 8), (374, 8, 8), (375, 9, 9), (376, 6, 9), (377, 8, 9), (378, 6, 10), (380, 9, 9), (381, 7, 9), (382, 8, 8),
    (383, 8, 9), (385, 8, 9), (386, 8, 8), (387, 8, 8), (389, 8, 8), (39, 6, 11), (40, 9, 9), (41, 9, 9), (420, 9, 9),
    (421, 9, 9), (423, 7, 9), (43, 6, 13), (44, 9, 10), (45, 8, 8), (46, 7, 10), (47, 8, 8), (48, 9, 9), (49, 6, 12),
    (500, 5, 5), (501, 7, 7), (502, 8, 8), (503, 8, 8), (504, 8, 8), (505, 8, 8), (506, 8, 8), (507, 7, 8), (508, 6, 6),
    (509, 8, 8), (51, 8, 9), (52, 10, 11), (53, 8, 8), (54, 10, 11), (55, 10, 11), (56, 9, 9), (57, 10, 10), (58, 10, 10),
    (590, 9, 9), (591, 8, 8), (592, 7, 7), (593, 8, 9), (594, 9, 9), (595, 9, 9), (596, 9, 9), (597, 6, 7), (598, 8, 8),
    (599, 7, 8), (60, 8, 10), (61, 9, 9), (62, 8, 12), (63, 8, 10), (64, 8, 10), (65, 8, 8), (66, 8, 9), (670, 7, 8),
    (673, 7, 7), (675, 7, 8), (676, 5, 7), (677, 5, 7), (678, 5, 7), (679, 7, 7), (685, 5, 7), (687, 6, 6), (689, 8, 8),
    (81, 9, 10), (82, 8, 10), (84, 9, 10), (850, 8, 10), (852, 8, 8), (853, 8, 8), (855, 8, 9), (856, 8, 10), (86, 10, 11),
    (880, 8, 10), (886, 8, 9), (90, 10, 10), (91, 10, 10), (92, 9, 10), (93, 9, 9), (94, 9, 9), (95, 7, 10), (960, 7, 7),
    (961, 7, 8), (962, 8, 9), (963, 8, 9), (964, 8, 10), (965, 8, 8), (966, 9, 9), (967, 7, 9), (968, 8, 8), (970, 8, 9),
    (971, 8, 9), (972, 8, 9), (973, 8, 8), (974, 8, 8), (975, 7, 8), (976, 8, 8), (977, 8, 10), (98, 10, 10), (992, 9, 9),
    (993, 8, 8), (994, 9, 9), (995, 9, 9), (996, 9, 9), (998, 9, 9), (800, 8, 8), (808, 8, 8), (870, 9, 9), (881, 8, 11),
    (883, 9, 12),
];

/// The most digits of a number, its country's code included.
const LONGEST: usize = 15;
/// The most groups that a number is written in.
const GROUPS: usize = 8;

/// A number that begins with the `+` at `start`.
pub(in crate::redact) fn international(view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
    if view.before(start).is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+')) {
        return Ok(None);
    }
    let number = Written::read(view, end)?;
    let is = number.ends && number.is_of_a_country(0) && !number.is_loose();
    Ok(is.then(|| Hit::new(start, number.end, Kind::Phone)))
}

/// A number in a national form, or behind `00`, whose first digit or bracket stands at `start`.
pub(in crate::redact) fn national(view: &View<'_>, start: usize) -> Found<Option<Hit>> {
    // In the midst of a longer row nothing begins.
    if view.before(start) == Some(b'+') || matches!(view.left(start, 2), [digit, b' ' | b'-'] if digit.is_ascii_digit()) {
        return Ok(None);
    }
    if !is_long(view, start)? {
        return Ok(None);
    }
    let number = Written::read(view, start)?;
    if !number.ends || number.count < LEAST {
        return Ok(None);
    }
    let by_form = !part_of_another(view, start) && (number.is_north_american() || number.has_trunk() || number.is_behind_zeros());
    let is = by_form || (number.may_be() && is_told(view, start));
    Ok(is.then(|| Hit::new(start, number.end, Kind::Phone)))
}

/// The fewest digits of a number.
const LEAST: usize = 7;

/// Whether what begins here can have enough digits: most numbers in texts have not, and this is asked of all of them.
fn is_long(view: &View<'_>, start: usize) -> Found<bool> {
    let bracket = usize::from(view.at(start)? == Some(b'('));
    let end = view.run(start + bracket, LONGEST + 1, digit)?;
    let length = end - start - bracket;
    if length == 0 || length > LONGEST || (bracket == 1 && view.at(end)? != Some(b')')) {
        return Ok(false);
    }
    let goes_on = matches!(view.at(end)?, Some(b' ' | b'-' | b'.' | b'/' | b')' | b'('));
    Ok(length >= LEAST
        || (goes_on && view.at(end + 1)?.is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b' ' | b'(' | b'-' | b'/'))))
}

/// Whether what stands before makes it a part of something else, unless a word says that it is a telephone number.
fn part_of_another(view: &View<'_>, start: usize) -> bool {
    let joins = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'.' | b',' | b'$' | b'#' | b'=' | b':' | b'/' | b'%' | b'@' | b'&' | b'\\')
    };
    view.before(start).is_some_and(joins)
}

/// A row of digits with what stands between them.
#[derive(Debug)]
struct Written {
    digits: [u8; LONGEST],
    count: usize,
    groups: [usize; GROUPS],
    group_count: usize,
    /// What stands between the groups; the first, and whether all others are the same.
    separator: Option<u8>,
    same: bool,
    /// The first group stands in brackets.
    bracket: bool,
    end: usize,
    /// Nothing that a number does not end with follows.
    ends: bool,
}

impl Written {
    fn read(view: &View<'_>, start: usize) -> Found<Self> {
        let mut number = Self {
            digits: [0; LONGEST],
            count: 0,
            groups: [0; GROUPS],
            group_count: 0,
            separator: None,
            same: true,
            bracket: false,
            end: start,
            ends: false,
        };
        let mut place = start;
        loop {
            let opened = view.at(place)? == Some(b'(');
            let from = place + usize::from(opened);
            let to = view.run(from, LONGEST + 1 - number.count, digit)?;
            let closed = view.at(to)? == Some(b')');
            if to == from
                || opened != closed && (opened || number.group_count == 0)
                || number.group_count == GROUPS
                || number.count + (to - from) > LONGEST
            {
                break;
            }
            number.add(view.slice(from, to));
            number.bracket |= opened && number.group_count == 1;
            number.end = to + usize::from(opened && closed);
            let gap = view.run(number.end, 3, |byte| matches!(byte, b' ' | b'-' | b'.' | b'/'))?;
            let text = view.slice(number.end, gap);
            let next = view.at(gap)?;
            let joins = gap == number.end && opened && closed || is_separator(text) || (gap == number.end && next == Some(b'('));
            if !joins || !next.is_some_and(|byte| byte.is_ascii_digit() || byte == b'(') {
                break;
            }
            number.separated_by(text);
            place = gap;
        }
        let next = view.at(number.end)?;
        let behind = match next {
            Some(b'-' | b'.' | b':' | b'/' | b',') => view.is_digit_or_mask(number.end + 1)?,
            Some(b'%') => true,
            _ => view.word_goes_on(number.end)?,
        };
        // A mask behind a separator stands where another group may have stood.
        let gap = view.run(number.end, 3, |byte| matches!(byte, b' ' | b'-' | b'.' | b'/'))?;
        let masked = gap > number.end && view.is_mask(gap)?;
        number.ends = number.count > 0 && !behind && !masked;
        Ok(number)
    }

    fn add(&mut self, digits: &[u8]) {
        for (slot, digit) in self.digits.iter_mut().skip(self.count).zip(digits) {
            *slot = digit - b'0';
        }
        self.count += digits.len();
        if let Some(group) = self.groups.get_mut(self.group_count) {
            *group = digits.len();
            self.group_count += 1;
        }
    }

    fn separated_by(&mut self, text: &[u8]) {
        let sign = text.iter().copied().find(|&byte| byte != b' ').or(text.first().copied());
        self.same &= self.separator.is_none() || self.separator == sign || sign.is_none();
        self.separator = self.separator.or(sign);
    }

    fn number(&self, from: usize, count: usize) -> u16 {
        self.digits.iter().skip(from).take(count).fold(0, |number, &digit| number * 10 + u16::from(digit))
    }

    fn groups(&self) -> &[usize] {
        self.groups.get(..self.group_count).unwrap_or_default()
    }

    /// Whether a country's code stands at a digit, and as many digits behind it as that country's numbers have.
    fn is_of_a_country(&self, from: usize) -> bool {
        let country = (1..=3).find_map(|length| {
            COUNTRIES
                .iter()
                .find(|(code, ..)| self.number(from, length) == *code && self.digits.get(from) != Some(&0))
                .map(|country| (length, country))
        });
        let Some((length, &(code, least, most))) = country else { return false };
        let rest = self.count.saturating_sub(from + length);
        // `+49 (0)30 …` has a digit that is not dialled.
        let trunk = usize::from(self.digits.get(from + length) == Some(&0) && code != 39 && code != 1);
        let fits = |count: usize| (usize::from(least)..=usize::from(most)).contains(&count);
        (fits(rest) || (trunk == 1 && fits(rest.saturating_sub(1)))) && (code != 1 || self.has_area(from + 1))
    }

    /// Whether an area code and an exchange of North America stand at a digit.
    fn has_area(&self, from: usize) -> bool {
        let (area, exchange) = (self.number(from, 3), self.number(from + 3, 3));
        (200..=999).contains(&area) && area % 100 != 11 && (100..=999).contains(&exchange)
    }

    /// Whether it is written as nobody writes a number: a digit a group.
    fn is_loose(&self) -> bool {
        self.groups().iter().filter(|&&group| group == 1).count() > 2
    }

    /// `(415) 555-2671`, `415-555-2671`, `415.555.2671`, and the same behind `1-`.
    fn is_north_american(&self) -> bool {
        let (from, groups) = match self.groups() {
            [1, rest @ ..] if self.digits.first() == Some(&1) => (1, rest),
            all => (0, all),
        };
        let marked = self.bracket || (self.same && matches!(self.separator, Some(b'-' | b'.')));
        groups == [3, 3, 4] && marked && self.has_area(from)
    }

    /// A national form with its leading `0`: `030 1234567`, `(030) 123 45 67`, `0171/1234567`, `01 23 45 67 89`.
    fn has_trunk(&self) -> bool {
        let zero = self.digits.first() == Some(&0) && self.digits.get(1).is_some_and(|&digit| digit != 0);
        let groups = self.groups();
        let written = self.group_count >= 2
            && (2..=6).contains(&groups.first().copied().unwrap_or_default())
            && groups.iter().skip(1).all(|&group| group >= 2);
        // Groups of two are dates and bytes as well; five of them are a number of France.
        let pairs = groups.iter().all(|&group| group == 2);
        // The end of an IBAN is written like that.
        let fours = groups == [4, 4, 2];
        let date = groups.first() == Some(&2) && matches!(groups.get(1), Some(1 | 2)) && !pairs;
        zero && written
            && (9..=12).contains(&self.count)
            && (!pairs || (self.group_count == 5 && self.same && self.separator != Some(b'/')))
            && !date
            && !fours
            && (self.separator != Some(b'.') || pairs)
    }

    fn is_behind_zeros(&self) -> bool {
        let zeros = self.digits.starts_with(&[0, 0]) && self.digits.get(2) != Some(&0);
        zeros && self.is_of_a_country(2) && self.group_count >= 2 && !self.is_loose()
    }

    /// Whether it can be a number where a word says that it is one.
    fn may_be(&self) -> bool {
        let date = matches!(self.groups(), [4, 2, 2] | [2, 2, 4]);
        self.count <= LONGEST && !date && !self.is_loose()
    }
}

fn is_separator(text: &[u8]) -> bool {
    matches!(text, b" " | b"-" | b"." | b"/" | b" - " | b" / " | b"- " | b"/ ")
}

/// Whether a word before a place says that a telephone number follows.
fn is_told(view: &View<'_>, start: usize) -> bool {
    if view.is_of_phone() {
        return true;
    }
    let left = view.left(start, 28);
    let line = left.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut words = line.rsplit(|byte| !byte.is_ascii_alphabetic() && byte.is_ascii()).filter(|word| !word.is_empty()).take(3);
    !line.is_empty()
        && line.iter().rev().take_while(|byte| !byte.is_ascii_alphabetic()).all(|byte| !byte.is_ascii_digit())
        && words.any(is_word)
}

/// Whether a word, or the name of a field, speaks of a telephone.
pub(in crate::redact) fn is_word(word: &[u8]) -> bool {
    WORDS.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

const WORDS: &[&str] = &[
    "phone",
    "phones",
    "telephone",
    "tel",
    "telefon",
    "telefonnummer",
    "mobile",
    "mobil",
    "mobilfunk",
    "cell",
    "cellphone",
    "handy",
    "fon",
    "fax",
    "telefax",
    "call",
    "dial",
    "whatsapp",
    "sms",
    "rufnummer",
    "durchwahl",
    "anruf",
    "telefono",
    "movil",
    "celular",
    "portable",
    "landline",
    "hotline",
    "ph",
    "phonenumber",
];
