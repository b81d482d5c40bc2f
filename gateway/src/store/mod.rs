//! What must outlive the process: the ledger. Where it is kept is the store's business, a file of one gateway or a server that many share.

mod row;

use std::time::Duration;

use jiff::Timestamp;
use toolgate_config::store::StoreUrl;
use toolgate_policies::counters::Unseeded;

pub use self::row::{Row, Sum, What};

/// The ledger: one row a model call, and one a tool call that has a price.
pub struct Ledger {}

/// A row that was handed over, and is on its way to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Why the store cannot be used: for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable(pub String);

impl Ledger {
    /// Opens the store: its tables are made or brought up to date.
    ///
    /// # Errors
    /// It is not there, cannot be written, is full, or is of a newer version; nothing is half done.
    pub fn open(_url: &StoreUrl, _keep: Duration) -> Result<Self, Unusable> {
        Ok(Self {})
    }

    /// Hands a row over. It takes no time; [`Ledger::written`] tells when the row is safe.
    pub fn write(&self, _row: Row) -> Ticket {
        Ticket(0)
    }

    /// Waits until the row of this ticket, and with it every earlier one, is on the disk.
    ///
    /// # Errors
    /// The store did not take it in time.
    pub async fn written(&self, _ticket: Ticket) -> Result<(), Unusable> {
        Ok(())
    }

    /// Whether the store takes rows at the moment: nobody is let in to spend what could not be written down.
    ///
    /// # Errors
    /// Why not.
    pub fn is_well(&self) -> Result<(), Unusable> {
        Ok(())
    }

    /// What the ledger knows of a budget's window, in the budget's unit.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn used(&self, _of: &Unseeded) -> Result<u64, Unusable> {
        Ok(0)
    }

    /// The sums of all rows since then, dropped ones included where `since` is `None`: by provider, model, key and tool.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn sums(&self, _since: Option<Timestamp>) -> Result<Vec<Sum>, Unusable> {
        Ok(Vec::new())
    }

    /// Writes what is still waiting, and closes the store.
    pub async fn close(&self) {}
}
