//! A row as the file has it, column by column: of a call that has just ended, or out of a journal.

use std::borrow::Cow;

use rusqlite::{CachedStatement, params_from_iter};
use serde::Deserialize;
use toolgate_config::money::NanoUsd;
use toolgate_config::price::Billed;

use super::column::Column::{self, Number, Text};
use crate::store::Sum;
use crate::store::database::{Numbered, signed, unsigned};
use crate::store::tally::Group;
use crate::store::text::fitted;

/// The columns of a row, by their names in the table and in its order.
#[derive(Debug, Deserialize)]
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

    /// What stands in its columns.
    fn columns(&self) -> [Column<'_>; 22] {
        [
            Number(self.at),
            Number(self.id),
            Text(&self.trace),
            Number(self.round.into()),
            self.attempt.map(i64::from).into(),
            Text(&self.key),
            self.end_user.as_deref().into(),
            Text(&self.model),
            Text(&self.served),
            self.provider.as_deref().into(),
            self.upstream_model.as_deref().into(),
            self.tool.as_deref().into(),
            Number(self.input_tokens),
            Number(self.cached_tokens),
            Number(self.cache_write_tokens),
            Number(self.output_tokens),
            Number(self.reasoning_tokens),
            Number(self.estimated.into()),
            self.cost_nano_usd.into(),
            self.reported_nano_usd.into(),
            Text(&self.outcome),
            Number(self.requests.into()),
        ]
    }

    /// Puts it into the table, by a statement with all columns.
    pub(super) fn insert(&self, insert: &mut CachedStatement<'_>) -> rusqlite::Result<()> {
        insert.execute(params_from_iter(self.columns())).map(drop)
    }

    /// Writes its columns behind those of other rows.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        self.columns().into_iter().for_each(|column| column.put(out));
    }

    /// Reads the next row. `None`: what stands there is none.
    pub(super) fn take(bytes: &mut &'r [u8]) -> Option<Self> {
        let mut next = || Column::take(bytes);
        Some(Self {
            at: next()?.number()?,
            id: next()?.number()?,
            trace: next()?.text()?.into(),
            round: next()?.number()?,
            attempt: next()?.if_any(Column::number)?,
            key: next()?.text()?.into(),
            end_user: next()?.if_any(Column::text)?.map(Cow::from),
            model: next()?.text()?.into(),
            served: next()?.text()?.into(),
            provider: next()?.if_any(Column::text)?.map(Cow::from),
            upstream_model: next()?.if_any(Column::text)?.map(Cow::from),
            tool: next()?.if_any(Column::text)?.map(Cow::from),
            input_tokens: next()?.number()?,
            cached_tokens: next()?.number()?,
            cache_write_tokens: next()?.number()?,
            output_tokens: next()?.number()?,
            reasoning_tokens: next()?.number()?,
            estimated: next()?.number::<i64>()? != 0,
            cost_nano_usd: next()?.if_any(Column::number)?,
            reported_nano_usd: next()?.if_any(Column::number)?,
            outcome: next()?.text()?.into(),
            requests: next()?.number()?,
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Row;
    use crate::store::tests::house::{row, tool_row};

    #[test]
    fn rows_are_read_as_they_were_written() {
        let known = Row { user: Some("ann".into()), estimated: true, cost: None, reported: Some(NanoUsd(u64::MAX)), ..row() };
        let rows = [row(), tool_row(), known];
        let lines: Vec<_> = rows.iter().zip(1..).map(|(row, id)| Line::of(&Numbered { id, row })).collect();
        let mut bytes = Vec::new();
        lines.iter().for_each(|line| line.put(&mut bytes));
        let mut left = &bytes[..];
        for line in &lines {
            assert_eq!(Line::take(&mut left).map(|read| format!("{read:?}")), Some(format!("{line:?}")));
        }
        assert!(left.is_empty() && Line::take(&mut left).is_none());
    }
}
