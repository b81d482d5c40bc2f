//! What the automaton looks for, what is asked where it is found, and what must be held back until it can be.

use super::checks::name::{Name, WORDS, Word};
use super::checks::{bot, card, dsn, email, field, header, iban, ip, jwt, pem, phone, url};
use super::engine::{Engine, Verdict};
use super::hit::Hit;
use super::kind::Kind;
use super::shapes::{self, SHAPES};
use super::sought::Sought;
use super::view::{Found, MASK, View, lower_hex};

/// What a literal that was found may be part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// A mask that is there already.
    Mask,
    /// A row of the catalogue.
    Shape(usize),
    Jwt,
    Pem,
    Userinfo,
    Field(Word),
    Authorization,
    Bearer,
    Basic,
    Cookies,
    NextCookie,
    Mailchimp,
    /// `@`: an e-mail address.
    At,
    /// `@tcp(`: a login before it.
    Network,
    /// `.`, as in a bot's token.
    Dot,
    /// A digit.
    Digit,
    /// `+` or `(` before digits.
    Plus,
    Bracket,
    /// `:`, as in an address.
    Colon,
}

/// The literals, and what each may be part of.
pub(super) fn table(sought: Sought) -> Vec<(&'static [u8], Trigger)> {
    let mut table: Vec<(&'static [u8], Trigger)> = vec![(MASK, Trigger::Mask)];
    if sought.secrets {
        table.extend(SHAPES.iter().enumerate().map(|(row, shape)| (shape.prefix.as_bytes(), Trigger::Shape(row))));
        table.extend(WORDS.iter().map(|(word, meant)| (word.as_bytes(), Trigger::Field(*meant))));
        table.extend(OTHERS.iter().map(|(literal, trigger)| (literal.as_bytes(), *trigger)));
    }
    if sought.email {
        table.push((b"@", Trigger::At));
    }
    if sought.phone {
        table.extend([(&b"+"[..], Trigger::Plus), (b"(", Trigger::Bracket)]);
    }
    if sought.ip {
        table.push((b":", Trigger::Colon));
    }
    if sought.has_digits() {
        table.extend([&b"0"[..], b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9"].map(|digit| (digit, Trigger::Digit)));
    }
    table
}

const OTHERS: &[(&str, Trigger)] = &[
    ("eyJ", Trigger::Jwt),
    ("-----BEGIN ", Trigger::Pem),
    ("---- BEGIN ", Trigger::Pem),
    ("://", Trigger::Userinfo),
    ("authorization", Trigger::Authorization),
    ("bearer", Trigger::Bearer),
    ("basic", Trigger::Basic),
    ("cookie", Trigger::Cookies),
    ("-us", Trigger::Mailchimp),
    ("@tcp(", Trigger::Network),
    ("@unix(", Trigger::Network),
    (".", Trigger::Dot),
];

impl Trigger {
    /// Asks what is to be masked here. The literal stands from `start` to `end`.
    pub(super) fn ask(self, view: &View<'_>, start: usize, end: usize) -> Verdict {
        match self {
            Self::Mask => match view.mask(start) {
                Ok(Some(to)) => Verdict::Skip(to),
                Ok(None) => Verdict::No,
                Err(_) => Verdict::Wait(end),
            },
            Self::Shape(row) => verdict(SHAPES.get(row).map_or(Ok(None), |shape| shape.find(view, start, end)), start),
            Self::Jwt => verdict(jwt::find(view, start, end), start),
            Self::Pem => verdict(pem::find(view, start, end), start),
            Self::Userinfo => verdict(url::userinfo(view, start, end), end),
            Self::Field(word) => verdict(field::find(word, view, start, end), end),
            Self::Authorization => verdict(header::authorization(view, start, end), end),
            Self::Bearer => verdict(header::bearer_token(view, start, end), end),
            Self::Basic => verdict(header::basic(view, start, end), end),
            Self::Cookies => verdict(header::cookies(view, start, end), end),
            Self::NextCookie => verdict(header::next_cookie(view, end), end),
            Self::Mailchimp => verdict(shapes::mailchimp(view, start, end), start.saturating_sub(shapes::MAILCHIMP)),
            Self::Network => verdict(dsn::find(view, start), dsn::begins(view, start)),
            Self::Dot => verdict(bot::discord(view, start, end), bot::begins(view, start)),
            Self::Digit => number(view, start),
            Self::Plus => verdict(phone::international(view, start, end), start),
            Self::Bracket => verdict(phone::national(view, start), start),
            Self::Colon => verdict(ip::six(view, start), ip::may_begin(view, start)),
            Self::At => verdict(email::find(view, start, end), email::begins(view, start)),
        }
    }

    /// What the value of a name is that ends with this literal, if that says that it is secret.
    pub(super) fn names(self, view: &View<'_>, start: usize, end: usize) -> Option<Kind> {
        match self {
            Self::Field(word) => Name::read(word, view, start, end)
                .ok()?
                .filter(|name| name.to == view.len() && !name.is_vague())
                .map(|name| name.kind()),
            Self::Authorization if end == view.len() => Some(Kind::Credential),
            Self::Cookies if end == view.len() => Some(Kind::Cookie),
            _ => None,
        }
    }

    /// Whether the mask begins where the literal does, or before it: then a part of the literal must not leave.
    pub(super) fn masks_itself(self) -> bool {
        matches!(self, Self::Shape(_) | Self::Jwt | Self::Pem)
    }
}

/// A check of what begins at a place.
type Check = fn(&View<'_>, usize) -> Found<Option<Hit>>;

/// What begins with a digit, or with letters before it.
fn number(view: &View<'_>, start: usize) -> Verdict {
    let sought = view.sought();
    match view.before(start) {
        Some(byte) if byte.is_ascii_digit() || byte == b'_' => return Verdict::No,
        Some(byte) if byte.is_ascii_alphabetic() => {
            let begins = if sought.iban { iban::begins(view, start) } else { None };
            return begins.map_or(Verdict::No, |begins| verdict(iban::find(view, start), begins));
        }
        _ => {}
    }
    let checks: [(bool, Check); 4] =
        [(sought.ip, ip::four), (sought.card, card::find), (sought.phone, phone::national), (sought.secrets, bot::telegram)];
    for (_, check) in checks.into_iter().filter(|(sought, _)| *sought) {
        match check(view, start) {
            Ok(None) => {}
            found => return verdict(found, start),
        }
    }
    Verdict::No
}

/// `hold`: where the mask would begin at the earliest.
fn verdict(found: Found<Option<Hit>>, hold: usize) -> Verdict {
    match found {
        Ok(Some(hit)) => Verdict::Hit(hit),
        Ok(None) => Verdict::No,
        Err(_) => Verdict::Wait(hold),
    }
}

/// From where on the text up to a place must be held back, for what may become of it there.
pub(super) fn held(engine: &Engine, view: &View<'_>, place: usize) -> usize {
    let mut held = beginning(engine, view, place);
    if engine.sought.secrets {
        let hex = view.run_back(place, shapes::MAILCHIMP + 1, lower_hex);
        if place - hex <= shapes::MAILCHIMP && view.word_begins(hex) {
            held = held.min(hex);
        }
    }
    if engine.sought.secrets {
        held = held.min(dsn::begins(view, place)).min(bot::begins(view, place));
    }
    if engine.sought.iban {
        held = held.min(iban::may_begin(view, place));
    }
    if engine.sought.ip {
        held = held.min(ip::may_begin(view, place));
    }
    if engine.sought.email {
        held = held.min(email::begins(view, place));
    }
    held
}

/// Where the longest beginning of a literal begins that ends at a place.
fn beginning(engine: &Engine, view: &View<'_>, place: usize) -> usize {
    let longest = engine.beginnings().iter().map(|literal| literal.len() - 1).max().unwrap_or_default();
    let left = view.left(place, longest);
    let may = |from: &usize| {
        let text = view.slice(*from, place);
        view.word_begins(*from)
            && engine.beginnings().iter().any(|literal| literal.len() > text.len() && literal.starts_with(text))
    };
    (place - left.len()..place).find(may).unwrap_or(place)
}
