//! A ledger on a PostgreSQL server.

use std::time::Duration;

use jiff::Timestamp;
use toolgate_config::secret::Secret;

use super::database::{Asked, Numbered, Trouble};
use super::{Sum, Unusable};

/// The writer's connection.
pub(super) enum Postgres {}

impl Postgres {
    pub(super) fn open(_url: &Secret, _patience: Duration) -> Result<Self, Unusable> {
        Err(Unusable("a PostgreSQL store cannot be used yet: use a `sqlite:` store".to_owned()))
    }

    pub(super) fn name(&self) -> &str {
        match *self {}
    }

    pub(super) fn append(&mut self, _rows: &[Numbered<'_>]) -> Result<(), Trouble> {
        match *self {}
    }

    pub(super) fn carry(&mut self, _before: Timestamp, _most: usize) -> Result<usize, Trouble> {
        match *self {}
    }

    pub(super) fn close(self) {
        match self {}
    }
}

/// A connection that only reads.
pub(super) enum Reading {}

impl Reading {
    pub(super) fn open(_url: &Secret, _patience: Duration) -> Result<Self, Unusable> {
        Err(Unusable("a PostgreSQL store cannot be used yet: use a `sqlite:` store".to_owned()))
    }

    pub(super) fn sums(&mut self, _asked: &Asked) -> Result<Vec<Sum>, Trouble> {
        match *self {}
    }
}
