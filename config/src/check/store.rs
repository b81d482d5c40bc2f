//! `store:`: where what must not be lost is kept.

use std::path::Path;
use std::time::Duration;

use crate::raw;
use crate::store::{CountersUrl, OnCounterFailure, Store, StoreUrl};

pub(super) fn store(raw: &raw::Store, folder: &Path) -> Option<Store> {
    Some(Store {
        url: StoreUrl::Sqlite(folder.join("toolgate.db")),
        counters: CountersUrl::Memory,
        on_counter_failure: OnCounterFailure::Refuse,
        privacy: *raw.privacy.value()?,
        keep_traces: Duration::from_secs(30 * 24 * 60 * 60),
        keep_ledger: Duration::from_secs(400 * 24 * 60 * 60),
    })
}
