//! A row as the file has it, column by column: of a call that has just ended, or out of a journal.

use std::borrow::Cow;

use rusqlite::{CachedStatement, params};
use serde::{Deserialize, Serialize};
use toolgate_config::money::NanoUsd;
use toolgate_config::price::Billed;

use crate::store::Sum;
use crate::store::database::{Numbered, signed, unsigned};
use crate::store::tally::Group;
use crate::store::text::fitted;

/// The columns of a row, by their names in the table and in its order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Line<'r> {
    pub(super) at: i64,
    pub(super) id: i64,
    trace: Cow<'r, str>,
    round: u32,
    attempt: Option<u32>,
    pub(super) key: Cow<'r, str>,
    pub(super) end_user: Option<Cow<'r, str>>,
    model: Cow<'r, str>,
    served: Cow<'r, str>,
    provider: Option<Cow<'r, str>>,
    upstream_model: Option<Cow<'r, str>>,
    tool: Option<Cow<'r, str>>,
    input_tokens: i64,
    cached_tokens: i64,
    cache_write_tokens: i64,
    output_tokens: i64,
    reasoning_tokens: i64,
    estimated: bool,
    cost_nano_usd: Option<i64>,
    reported_nano_usd: Option<i64>,
    outcome: Cow<'r, str>,
    requests: u32,
}

impl<'r> Line<'r> {
    /// The columns of a row.
    pub(super) fn of(&Numbered { id, row }: &Numbered<'r>) -> Self {
        let called = row.called();
        Self {
            at: row.at.as_microsecond(),
            id,
            trace: row.trace.to_string().into(),
            round: row.round,
            attempt: called.attempt,
            key: fitted(&row.key),
            end_user: row.user.as_deref().map(fitted),
            model: fitted(&row.model),
            served: fitted(called.served),
            provider: called.provider.map(fitted),
            upstream_model: called.upstream_model.map(fitted),
            tool: called.tool.map(fitted),
            input_tokens: signed(row.tokens.fresh),
            cached_tokens: signed(row.tokens.cached),
            cache_write_tokens: signed(row.tokens.cache_write),
            output_tokens: signed(row.tokens.output),
            reasoning_tokens: signed(row.reasoning),
            estimated: row.estimated,
            cost_nano_usd: row.cost.map(|cost| signed(cost.0)),
            reported_nano_usd: row.reported.map(|cost| signed(cost.0)),
            outcome: row.outcome.into(),
            requests: row.requests,
        }
    }

    /// Puts it into the table, by a statement with all columns.
    pub(super) fn insert(&self, insert: &mut CachedStatement<'_>) -> rusqlite::Result<()> {
        insert.execute(params![
            self.at,
            self.id,
            self.trace,
            self.round,
            self.attempt,
            self.key,
            self.end_user,
            self.model,
            self.served,
            self.provider,
            self.upstream_model,
            self.tool,
            self.input_tokens,
            self.cached_tokens,
            self.cache_write_tokens,
            self.output_tokens,
            self.reasoning_tokens,
            self.estimated,
            self.cost_nano_usd,
            self.reported_nano_usd,
            self.outcome,
            self.requests,
        ])?;
        Ok(())
    }

    /// Whose it is.
    pub(super) fn group(&self) -> Group<'_> {
        let provider = self.provider.as_deref().unwrap_or_default();
        [provider, &self.model, &self.served, &self.key, self.tool.as_deref().unwrap_or_default()]
    }

    /// What it adds to the sum of its group.
    pub(super) fn amounts(&self) -> Sum {
        Sum {
            calls: 1,
            requests: self.requests.into(),
            tokens: Billed {
                fresh: unsigned(self.input_tokens),
                cached: unsigned(self.cached_tokens),
                cache_write: unsigned(self.cache_write_tokens),
                output: unsigned(self.output_tokens),
            },
            reasoning: unsigned(self.reasoning_tokens),
            cost: NanoUsd(self.cost_nano_usd.map_or(0, unsigned)),
            unknown: self.cost_nano_usd.is_none().into(),
            estimated: self.estimated.into(),
            ..Sum::default()
        }
    }
}
