//! `redaction:`: what is taken out of texts, and the operator's own patterns, each of which compiles.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::unique;
use crate::pattern::Automaton;
use crate::place::Faults;
use crate::raw::redaction as raw;
use crate::raw::{At, Text};
use crate::redaction::{KINDS_OF_SECRETS, Pattern, Personal, Redaction, Rules};

pub(super) fn redaction(written: &raw::Redaction, faults: &mut Faults) -> Option<Redaction> {
    let patterns = patterns(written, faults);
    let default = Redaction::default();
    Some(Redaction {
        tool_results: rules(written.tool_results.value()?, &default.tool_results, &patterns)?,
        answers: rules(written.answers.value()?, &default.answers, &patterns)?,
    })
}

fn rules(written: &raw::Rules, default: &Rules, patterns: &Arc<[Pattern]>) -> Option<Rules> {
    let personal = written.personal.optional()?.map(|all| all.value.iter().map(|kind| kind.value).collect());
    let personal = personal.unwrap_or_else(|| default.personal.clone());
    Some(Rules { secrets: *written.secrets.value()?, personal, patterns: patterns.clone() })
}

fn patterns(written: &raw::Redaction, faults: &mut Faults) -> Arc<[Pattern]> {
    let all: Vec<_> = written.patterns.value().into_iter().flatten().map(|at| &at.value).collect();
    let named = all.iter().filter_map(|raw| raw.name.get()).map(|at| (at.value.whole(), &at.place));
    unique(named, |name| format!("two patterns of one name, `{name}`"), faults);
    all.into_iter().filter_map(|raw| pattern(raw, faults)).collect()
}

fn pattern(written: &raw::Pattern, faults: &mut Faults) -> Option<Pattern> {
    let name = written.name.get().and_then(|name| self::name(name, faults));
    let At { value, place } = written.regex.get()?;
    let regex = value.whole();
    faults.take(place, Automaton::new(&regex).map_err(|why| format!("this pattern cannot be used: {why}")))?;
    Some(Pattern { name: name?, regex: regex.as_ref().into() })
}

fn name(written: &At<Text>, faults: &mut Faults) -> Option<Arc<str>> {
    let name = written.value.whole();
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !(1..=64).contains(&name.len()) || !name.bytes().all(legal) {
        let wanted = "allowed: 1 to 64 letters, digits, `_`, `-`";
        faults.add(&written.place, format!("`{}` is no name of a pattern; {wanted}", written.value.written));
        return None;
    }
    if taken().contains(name.as_ref()) {
        faults.add(&written.place, format!("`{name}` is a kind that is built in; allowed: any other name"));
        return None;
    }
    Some(name.as_ref().into())
}

/// The kinds that are built in.
fn taken() -> BTreeSet<&'static str> {
    Personal::ALL.iter().map(|kind| kind.as_str()).chain(KINDS_OF_SECRETS).collect()
}
