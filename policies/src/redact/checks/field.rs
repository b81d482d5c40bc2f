//! The value behind a name that says that it is secret: in JSON, YAML, ini files, environments, URLs, XML, code, command lines, sentences.

use super::judge::{is_expression, is_no_word, is_placeholder, is_reference, is_sentence, is_token_like, trimmed};
use super::name::{Name, Word};
use super::value::Close;
use crate::redact::hit::{Hit, Tail};
use crate::redact::view::{Found, LOOK, View, blank};

/// A field whose name's word stands from `start` to `end`.
pub(in crate::redact) fn find(word: Word, view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
    let Some(name) = Name::read(word, view, start, end)? else { return Ok(None) };
    let Some(sign) = Sign::read(view, &name)? else { return Ok(None) };
    if name.is_key_of_query() && sign.join != Join::Query {
        return Ok(None);
    }
    let Some(value) = Value::read(view, &sign, end + LOOK)? else { return Ok(None) };
    if !is_secret(view, &name, &sign, &value)? {
        return Ok(None);
    }
    let tail = if value.long { Tail::Value(value.close) } else { Tail::Over };
    let to = if sign.join == Join::Is && !value.long { value.from + trimmed(value.text).len() } else { value.to };
    Ok(Some(Hit::new(value.from, to, name.kind()).with(tail)))
}

/// How name and value are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Join {
    /// `=`, `:=`, `=>`.
    Equals,
    /// `=` in the query of a URL.
    Query,
    /// `:`.
    Colon,
    /// `<name>`.
    Tag,
    /// `--name value`.
    Flag,
    /// `name is value`.
    Is,
    /// `name: NAME` and then `value: …`.
    Apart,
}

#[derive(Clone, Copy, Debug)]
struct Sign {
    join: Join,
    /// The name stands in quotes, as in JSON.
    quoted: bool,
    /// Where the value may begin.
    to: usize,
}

/// How many blanks may stand beside a sign.
const BLANKS: usize = 24;

impl Sign {
    fn read(view: &View<'_>, name: &Name<'_>) -> Found<Option<Self>> {
        let quoted_to = closing_quote(view, name.to)?;
        let quoted = quoted_to > name.to;
        let close = if quoted && view.at(quoted_to)? == Some(b']') { quoted_to + 1 } else { quoted_to };
        let place = view.run(close, BLANKS, blank)?;
        let spaced = place > close;
        let sign = |join, to| Ok(Some(Self { join, quoted, to }));
        match view.at(place)? {
            Some(b'=') => match view.at(place + 1)? {
                Some(b'=' | b'~') => Ok(None),
                Some(b'>') => sign(Join::Equals, place + 2),
                _ if !spaced && name.in_query => sign(Join::Query, place + 1),
                _ => sign(Join::Equals, place + 1),
            },
            Some(b':') => match view.at(place + 1)? {
                Some(b':' | b'/') => Ok(None),
                Some(b'=') => sign(Join::Equals, place + 2),
                _ => sign(Join::Colon, place + 1),
            },
            Some(b'%') if view.goes_on(place, b"%3d")? => sign(Join::Query, place + 3),
            Some(b'>') if !spaced && !quoted && matches!(view.before(name.from), Some(b'<' | b':')) => sign(Join::Tag, place + 1),
            _ if spaced && name.prefix.starts_with(b"--") => sign(Join::Flag, place),
            Some(b',' | b'\n' | b'\r' | b'v' | b'V') if spaced || quoted || place == name.to => {
                apart(view, place).map(|to| to.map(|to| Self { join: Join::Apart, quoted, to }))
            }
            Some(b'i' | b'l') if spaced => is(view, place).map(|to| to.map(|to| Self { join: Join::Is, quoted, to })),
            _ => Ok(None),
        }
    }
}

/// Behind the quote that closes a name, if there is one.
fn closing_quote(view: &View<'_>, place: usize) -> Found<usize> {
    Ok(match view.at(place)? {
        Some(b'"' | b'\'' | b'`') => place + 1,
        Some(b'\\') if matches!(view.at(place + 1)?, Some(b'"' | b'\'')) => place + 2,
        _ => place,
    })
}

/// Behind `value:` or `value=`, where that is what follows, as in lists of variables and of settings.
fn apart(view: &View<'_>, place: usize) -> Found<Option<usize>> {
    let word = view.run(place, BLANKS, |byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b'"' | b'\''))?;
    if !view.goes_on(word, b"value")? {
        return Ok(None);
    }
    let close = closing_quote(view, word + 5)?;
    let sign = view.run(close, 2, blank)?;
    Ok(matches!(view.at(sign)?, Some(b':' | b'=')).then_some(sign + 1))
}

/// Behind ` is ` or ` lautet `, and a colon.
fn is(view: &View<'_>, place: usize) -> Found<Option<usize>> {
    for verb in [&b"is"[..], b"ist", b"lautet"] {
        let to = place + verb.len();
        if view.goes_on(place, verb)? && matches!(view.at(to)?, Some(b' ' | b':')) {
            return view.run(to, 2, |byte| byte == b':' || byte == b' ').map(Some);
        }
    }
    Ok(None)
}

#[derive(Clone, Copy, Debug)]
struct Value<'t> {
    text: &'t [u8],
    from: usize,
    to: usize,
    close: Close,
    /// It stands in quotes.
    quoted: bool,
    /// It goes on behind what was looked at.
    long: bool,
}

impl<'t> Value<'t> {
    fn read(view: &View<'t>, sign: &Sign, until: usize) -> Found<Option<Self>> {
        let mut from = match sign.join {
            Join::Query | Join::Tag => sign.to,
            // In JSON the value may stand on the next line.
            Join::Colon if sign.quoted => view.run(sign.to, BLANKS, |byte| byte.is_ascii_whitespace())?,
            _ => view.run(sign.to, BLANKS, blank)?,
        };
        if view.mask(from)?.is_some() {
            return Ok(None);
        }
        let (close, open) = match sign.join {
            Join::Query => (Close::Query, from),
            Join::Tag => (Close::Tag, from),
            _ => open(view, from)?,
        };
        let quoted = open > from;
        from = open;
        if view.mask(from)?.is_some() || view.goes_on(from, b"-----BEGIN")? {
            return Ok(None);
        }
        let to = close.end(view, from, until.saturating_sub(from))?;
        let long = to >= until;
        // What stands before a mask was no secret while there was none.
        if view.mask(to)?.is_some() {
            return Ok(None);
        }
        Ok((to > from).then_some(Self { text: view.slice(from, to), from, to, close, quoted, long }))
    }
}

/// Behind the quote that opens a value, if there is one, and what closes it.
fn open(view: &View<'_>, from: usize) -> Found<(Close, usize)> {
    let first = view.at(from)?;
    let second = match first {
        Some(b'\\' | b'b' | b'r' | b'u' | b'f' | b'@' | b'$') => view.at(from + 1)?,
        _ => None,
    };
    Ok(match (first, second) {
        (Some(quote @ (b'"' | b'\'' | b'`')), _) => (Close::Quote(quote), from + 1),
        (Some(b'\\'), Some(quote @ (b'"' | b'\''))) => (Close::Escaped(quote), from + 2),
        (Some(_), Some(quote @ (b'"' | b'\''))) => (Close::Quote(quote), from + 2),
        _ => (Close::Bare, from),
    })
}

fn is_secret(view: &View<'_>, name: &Name<'_>, sign: &Sign, value: &Value<'_>) -> Found<bool> {
    let json = sign.join == Join::Colon && sign.quoted && value.quoted;
    if if json || sign.join == Join::Query { is_reference(value.text) } else { is_placeholder(value.text) } {
        return Ok(false);
    }
    let password = matches!(name.word, Word::Password | Word::Pass);
    let vague = matches!(name.word, Word::Auth | Word::Signature | Word::Pass | Word::Credential | Word::Session);
    Ok(match sign.join {
        Join::Query => true,
        Join::Is => is_no_word(value.text) && (password || is_token_like(value.text)),
        _ if matches!(name.word, Word::Signature) => false,
        // As in JSON.
        _ if json => !vague || is_token_like(value.text) || (name.word == Word::Pass && is_no_word(value.text)),
        Join::Tag => !is_sentence(value.text) && (password || is_token_like(value.text)),
        _ if value.quoted => {
            !is_sentence(value.text) && (password || is_token_like(value.text) || (is_no_word(value.text) && !vague))
        }
        Join::Flag => {
            value.text.first() != Some(&b'-')
                && !is_expression(value.text)
                && (password || is_token_like(value.text))
                && (is_no_word(value.text) || !goes_on_as_sentence(view, value)?)
        }
        Join::Colon | Join::Apart => behind_colon(view, password, value)?,
        Join::Equals => behind_equals(view, name, password, value)?,
    })
}

/// `password: hunter2` as in YAML, and not `password: forgotten?` as in a sentence.
fn behind_colon(view: &View<'_>, password: bool, value: &Value<'_>) -> Found<bool> {
    if is_expression(value.text) && !value.long {
        return Ok(false);
    }
    if !password {
        return Ok(is_token_like(value.text));
    }
    if is_no_word(value.text) {
        return Ok(true);
    }
    let question = trimmed(value.text) != value.text;
    Ok(value.text.len() >= 3 && !question && !goes_on_as_sentence(view, value)?)
}

fn behind_equals(view: &View<'_>, name: &Name<'_>, password: bool, value: &Value<'_>) -> Found<bool> {
    if is_expression(value.text) && !value.long && !is_token_like(value.text) {
        return Ok(false);
    }
    if !password {
        return Ok(
            is_token_like(value.text) || (name.prefix.iter().all(|byte| !byte.is_ascii_lowercase()) && is_no_word(value.text))
        );
    }
    Ok(is_no_word(value.text) || (value.text.len() >= 3 && !goes_on_as_sentence(view, value)?))
}

/// Whether a word follows on the same line.
fn goes_on_as_sentence(view: &View<'_>, value: &Value<'_>) -> Found<bool> {
    if value.long {
        return Ok(false);
    }
    let next = view.run(value.to, 2, |byte| blank(byte) || matches!(byte, b'.' | b',' | b')'))?;
    let masked = view.at(next)? == Some(b'[') && view.mask(next)?.is_some();
    Ok(next > value.to
        && (masked || view.at(next)?.is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'(' | b'+'))))
}
