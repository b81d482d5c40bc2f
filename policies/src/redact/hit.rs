//! What a check has found: a place to mask, and how to tell where it ends when it is long.

use super::checks::email;
use super::checks::pem::Pem;
use super::checks::value::Close;
use super::kind::Kind;
use super::patterns::Growth;
use super::trigger::Trigger;
use super::view::{Class, View};

/// Something to mask.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    /// Where the mask begins: never before the last mask.
    pub(super) start: usize,
    /// How far it is sure to go.
    pub(super) end: usize,
    /// What stands in the mask.
    pub(super) kind: Kind,
    /// How it goes on from `end`.
    pub(super) tail: Tail,
    /// What is looked for right behind it.
    pub(super) then: Option<Trigger>,
}

impl Hit {
    /// A mask from one place to another.
    pub(super) fn new(start: usize, end: usize, kind: Kind) -> Self {
        Self { start, end, kind, tail: Tail::Over, then: None }
    }

    /// The same, and it goes on.
    pub(super) fn with(self, tail: Tail) -> Self {
        Self { tail, ..self }
    }
}

/// How a mask goes on. None of these needs to know what it has swallowed so far: that is what keeps a long secret from being held.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tail {
    /// It does not.
    Over,
    /// As long as bytes are of a class.
    Run(Class),
    /// To the end of a value.
    Value(Close),
    /// As long as it is a domain's name.
    Domain,
    /// As long as it looks like the body of a PEM block, and its last line.
    Pem(Pem),
    /// As long as a pattern matches more.
    Pattern(Growth),
}

impl Tail {
    /// Swallows what belongs to the mask: how far it goes, and how it may go on from there.
    pub(super) fn swallow(self, view: &View<'_>, from: usize) -> (usize, Self) {
        let mut to = from;
        let mut tail = self;
        loop {
            let step = match tail {
                Self::Over => return (to, tail),
                Self::Run(class) => view.at(to).map(|byte| byte.is_some_and(class).then_some((to + 1, tail))),
                Self::Value(close) => close.step(view, to).map(|next| next.map(|to| (to, tail))),
                Self::Domain => email::domain_step(view, to).map(|next| next.map(|to| (to, tail))),
                Self::Pattern(growth) => growth.step(view, to).map(|next| next.map(|(to, growth)| (to, Self::Pattern(growth)))),
                Self::Pem(pem) => pem.step(view, to).map(|next| next.map(|(to, pem)| (to, pem.map_or(Self::Over, Self::Pem)))),
            };
            match step {
                Ok(Some((further, next))) => (to, tail) = (further, next),
                Ok(None) => return (to, Self::Over),
                Err(_) => return (to, tail),
            }
        }
    }
}
