//! What the file says of tools that it does not write out: in the entry of their source, and in that of one of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::class::DataClass;
use crate::group::Group;
use crate::names::Scope;
use crate::place::{Faults, Place};
use crate::raw::shape::Size;
use crate::raw::words::Redact;
use crate::raw::{self, At, Given, Text};
use crate::tool::{Effect, ToolRule};

/// What the file says of tools, in the entry of a server and in that of one tool alike.
pub(super) struct Said<'a> {
    pub(super) enabled: &'a Given<bool>,
    pub(super) effect: &'a Given<Effect>,
    pub(super) requires_admin: &'a Given<bool>,
    pub(super) scopes: &'a Given<Vec<At<Text>>>,
    pub(super) requires_approval: &'a Given<bool>,
    pub(super) data_class: &'a Given<DataClass>,
    pub(super) personal: &'a Given<bool>,
    pub(super) timeout: &'a Given<Duration>,
    pub(super) max_result: &'a Given<Size>,
    pub(super) cache: &'a Given<Duration>,
    pub(super) price: &'a Given<raw::money::Usd<0>>,
    pub(super) redact: &'a Given<Redact>,
}

/// What is said in such an entry.
macro_rules! said {
    ($raw:expr) => {
        Said {
            enabled: &$raw.enabled,
            effect: &$raw.effect,
            requires_admin: &$raw.requires_admin,
            scopes: &$raw.scopes,
            requires_approval: &$raw.requires_approval,
            data_class: &$raw.data_class,
            personal: &$raw.personal,
            timeout: &$raw.timeout,
            max_result: &$raw.max_result,
            cache: &$raw.cache,
            price: &$raw.price,
            redact: &$raw.redact,
        }
    };
}

pub(super) use said;

impl Said<'_> {
    /// The rule of one for whom this is said, where nothing else is said of it.
    pub(super) fn over(&self, general: &ToolRule, faults: &mut Faults) -> Option<ToolRule> {
        let effect = self.effect.or(general.effect)?;
        Some(ToolRule {
            enabled: self.enabled.or(general.enabled)?,
            effect,
            requires_admin: self.requires_admin.or(general.requires_admin)?,
            scopes: self.scopes.optional()?.map_or_else(|| general.scopes.clone(), |at| scopes(&at.value)),
            requires_approval: self.requires_approval.or(general.requires_approval)?,
            data_class: self.data_class.or(general.data_class)?,
            personal: self.personal.or(general.personal)?,
            timeout: self.timeout.or(general.timeout)?,
            max_result: self.max_result.optional()?.map_or(general.max_result, |at| at.value.0),
            cache: cached(self.cache, effect, general.cache, faults)?,
            price: self.price.optional()?.map_or(general.price, |at| Some(at.value.0).filter(|price| price.0 > 0)),
            redacted: redacted(self.redact, self.enabled, faults)?.unwrap_or(general.redacted),
        })
    }
}

/// How long an answer holds, if something is said of it. What is said of many tools at once holds only for those that only read.
pub(super) fn cached(
    written: &Given<Duration>,
    effect: Effect,
    general: Option<Duration>,
    faults: &mut Faults,
) -> Option<Option<Duration>> {
    match written.optional()? {
        None => Some(general.filter(|_| effect == Effect::ReadOnly)),
        Some(at) if effect == Effect::ReadOnly => Some(Some(at.value)),
        Some(at) => {
            let word = effect.as_str();
            faults.add(
                &at.place,
                format!("a write is never answered from memory, and the effect is {word}; allowed: with `effect: read_only`"),
            );
            None
        }
    }
}

/// What is said of redaction, if something is. A tool whose results go on as they are is switched on, or off, by somebody who says so.
pub(super) fn redacted(written: &Given<Redact>, enabled: &Given<bool>, faults: &mut Faults) -> Option<Option<bool>> {
    let Some(At { value, place }) = written.optional()? else { return Some(None) };
    if *value == Redact::Off && enabled.is_absent() {
        let message =
            "what is not redacted is enabled or disabled in so many words; allowed: with `enabled: true`, `enabled: false`";
        faults.add(place, message);
        return None;
    }
    Some(Some(*value == Redact::Default))
}

fn scopes(written: &[At<Text>]) -> BTreeSet<Scope> {
    written.iter().map(|scope| Scope::new(scope.value.whole())).collect()
}

/// The tool's own class, else its group's. A group that does not exist is reported already.
pub(super) fn class_of(
    own: &Given<DataClass>,
    place: &Place,
    group: Option<&Arc<Group>>,
    faults: &mut Faults,
) -> Option<DataClass> {
    if let Some(own) = own.optional()? {
        return Some(own.value);
    }
    let group = group?;
    if group.data_class.is_none() {
        let words: Vec<_> = DataClass::ALL.iter().map(|class| class.as_str()).collect();
        let message = format!("no `data_class`, neither here nor in the group `{}`; allowed: {}", group.name, words.join(", "));
        faults.add(place, message);
    }
    group.data_class
}
