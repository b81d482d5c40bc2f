//! What the automaton looks for, what is asked where it is found, and what must be held back until it can be.

use super::checks::name::{Name, WORDS, Word};
use super::checks::{bot, card, dsn, email, field, header, iban, ip, jwt, pem, phone, url};
use super::engine::{Engine, Verdict};
use super::hit::Hit;
use super::kind::Kind;
use super::shapes::{self, SHAPES};
use super::sought::Sought;
use super::view::{self, Class, LOOK, MASK, More, View, digit, hex, lower_hex, token};

/// What a literal that was found may be part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// A mask that is there already.
    Mask,
    /// A row of the catalogue.
    Shape(usize),
    /// The whole text.
    Whole,
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
    /// The address of a webhook.
    Webhook,
    /// What comes before a login of Oracle's.
    Oracle,
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
    ("oracle:thin:", Trigger::Oracle),
    ("oracle:oci:", Trigger::Oracle),
    ("sqlplus ", Trigger::Oracle),
    ("hooks.slack.com/services/", Trigger::Webhook),
    ("hooks.slack.com/workflows/", Trigger::Webhook),
    ("discord.com/api/webhooks/", Trigger::Webhook),
    ("discordapp.com/api/webhooks/", Trigger::Webhook),
    (".office.com/webhookb2/", Trigger::Webhook),
    ("api.telegram.org/bot", Trigger::Webhook),
    ("@tcp(", Trigger::Network),
    ("@unix(", Trigger::Network),
    (".", Trigger::Dot),
];

impl Trigger {
    /// Asks what is to be masked here. The literal stands from `start` to `end`.
    pub(super) fn ask(self, view: &View<'_>, start: usize, end: usize) -> Verdict {
        if self.is_out_of_place(view, start, end) {
            return Verdict::No;
        }
        let hold = self.hold(view, start, end);
        match self.find(&view.up_to(hold + LOOK), start, end) {
            Ok(Some(Found::Hit(hit))) => Verdict::Hit(hit),
            Ok(Some(Found::Mask(to))) => Verdict::Skip(to),
            Ok(None) => Verdict::No,
            Err(More) => Verdict::Wait(hold),
        }
    }

    /// What can be said at a glance, of triggers that are in every line.
    fn is_out_of_place(self, view: &View<'_>, start: usize, end: usize) -> bool {
        let next = view.slice(end, end + 1).first();
        match self {
            Self::Digit => view.before(start).is_some_and(|byte| byte.is_ascii_digit() || byte == b'_'),
            Self::Colon => next.is_some_and(|&byte| !hex(byte) && byte != b':'),
            Self::Plus | Self::Bracket => next.is_some_and(|&byte| !digit(byte) && byte != b'('),
            Self::Dot => {
                next.is_some_and(|&byte| !token(byte))
                    || view.slice(end, end + 7).last().is_some_and(|&byte| byte != b'.' && view.len() >= end + 7)
            }
            Self::Field(_) => {
                view.before(start).is_some_and(|byte| byte.is_ascii_lowercase()) && next.is_some_and(u8::is_ascii_lowercase)
            }
            _ => false,
        }
    }

    /// Where the mask would begin at the earliest, so that nothing from there on may leave while it is not known.
    fn hold(self, view: &View<'_>, start: usize, end: usize) -> usize {
        match self {
            Self::Shape(_) | Self::Whole | Self::Jwt | Self::Pem | Self::Plus | Self::Bracket => start,
            Self::Mask
            | Self::Userinfo
            | Self::Webhook
            | Self::Oracle
            | Self::Field(_)
            | Self::Authorization
            | Self::Bearer
            | Self::Basic => end,
            Self::Cookies | Self::NextCookie => end,
            Self::Mailchimp => start.saturating_sub(shapes::MAILCHIMP),
            Self::Network => dsn::begins(view, start),
            Self::Dot => bot::begins(view, start),
            Self::Digit if view.before(start).is_some_and(|byte| byte.is_ascii_alphabetic()) => {
                iban::begins(view, start).unwrap_or(start)
            }
            Self::Digit => start,
            Self::Colon => ip::may_begin(view, start),
            Self::At => email::begins(view, start),
        }
    }

    fn find(self, view: &View<'_>, start: usize, end: usize) -> view::Found<Option<Found>> {
        let hit = match self {
            Self::Mask => return view.mask(start).map(|to| to.map(Found::Mask)),
            Self::Shape(row) => SHAPES.get(row).map_or(Ok(None), |shape| shape.find(view, start, end)),
            Self::Whole => shapes::whole(view, start),
            Self::Jwt => jwt::find(view, start, end),
            Self::Pem => pem::find(view, start, end),
            Self::Userinfo => url::userinfo(view, start, end),
            Self::Field(word) => field::find(word, view, start, end),
            Self::Authorization => header::authorization(view, start, end),
            Self::Bearer => header::bearer_token(view, start, end),
            Self::Basic => header::basic(view, start, end),
            Self::Cookies => header::cookies(view, start, end),
            Self::NextCookie => header::next_cookie(view, end),
            Self::Mailchimp => shapes::mailchimp(view, start, end),
            Self::Webhook => url::webhook(view, end),
            Self::Oracle => dsn::oracle(view, end),
            Self::Network => dsn::find(view, start),
            Self::Dot => bot::discord(view, start, end),
            Self::Digit => number(view, start),
            Self::Plus => phone::international(view, start, end),
            Self::Bracket => phone::national(view, start),
            Self::Colon => ip::six(view, start),
            Self::At => email::find(view, start, end),
        };
        hit.map(|hit| hit.map(Found::Hit))
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

/// What an asked trigger found.
enum Found {
    /// Something to mask.
    Hit(Hit),
    /// A mask that is there already, and where it ends.
    Mask(usize),
}

/// A check of what begins at a place.
type Check = fn(&View<'_>, usize) -> view::Found<Option<Hit>>;

/// What begins with a digit, or with letters before it.
fn number(view: &View<'_>, start: usize) -> view::Found<Option<Hit>> {
    let sought = view.sought();
    let checks: [(bool, Check); 4] = match view.before(start) {
        Some(byte) if byte.is_ascii_digit() || byte == b'_' => return Ok(None),
        Some(byte) if byte.is_ascii_alphabetic() => return if sought.iban { iban::find(view, start) } else { Ok(None) },
        _ => [(sought.ip, ip::four), (sought.card, card::find), (sought.phone, phone::national), (sought.secrets, bot::telegram)],
    };
    for (_, check) in checks.into_iter().filter(|(sought, _)| *sought) {
        if let Some(hit) = check(view, start)? {
            return Ok(Some(hit));
        }
    }
    Ok(None)
}

/// From where on the text up to a place must be held back, for what may become of it there.
pub(super) fn held(engine: &Engine, view: &View<'_>, place: usize) -> usize {
    let sought = engine.sought;
    let mut held = beginning(engine, view, place);
    let mut hold = |sought: bool, from: usize, longest: usize, class: Class, end: Class| {
        if sought && from < place && may_still(view, place, (from + longest).saturating_sub(place), class, end) {
            held = held.min(from);
        }
    };
    let key = view.run_back(place, shapes::MAILCHIMP + 1, lower_hex);
    hold(sought.secrets && view.word_begins(key), key, shapes::MAILCHIMP, lower_hex, |byte| byte == b'-');
    hold(sought.secrets, dsn::begins(view, place), dsn::PASSWORD, dsn::in_login, |byte| byte == b'@');
    hold(sought.secrets, bot::begins(view, place), *bot::FIRST.end(), token, |byte| byte == b'.');
    hold(sought.iban, iban::may_begin(view, place), 2, |byte| byte.is_ascii_alphabetic(), digit);
    hold(sought.ip, ip::may_begin(view, place), 4, hex, |byte| byte == b':');
    hold(sought.email, email::begins(view, place), email::LOCAL, email::local, |byte| byte == b'@');
    held
}

/// Whether what has come behind a place, if something has, still allows that a run of a class goes on to what ends it, at most so many bytes
/// further.
fn may_still(view: &View<'_>, place: usize, further: usize, class: Class, end: Class) -> bool {
    match view.run(place, further, class) {
        Ok(to) => view.at(to).map_or(true, |byte| byte.is_some_and(end)),
        Err(_) => true,
    }
}

/// Where the longest beginning of a literal begins that ends at a place.
fn beginning(engine: &Engine, view: &View<'_>, place: usize) -> usize {
    let left = view.left(place, engine.longest_beginning());
    let may = |from: &usize| {
        let text = view.slice(*from, place);
        let Some(&first) = text.first() else { return false };
        let apart = view.word_begins(*from) || !first.is_ascii_alphanumeric();
        // What has come behind the place already must go on as the literal does.
        let goes_on = |literal: &&[u8]| literal.starts_with(view.slice(*from, (from + literal.len()).min(view.len())));
        apart && engine.beginnings(first).iter().any(|literal| literal.len() > text.len() && goes_on(literal))
    };
    (place - left.len()..place).find(may).unwrap_or(place)
}
