//! What strangers say is redacted before it is logged.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use toolgate_config::redaction::Redaction;
use toolgate_policies::redact::{Counts, Redactor};

/// The redaction in force, for texts that belong to no call.
#[derive(Clone, Debug, Default)]
pub(super) struct Cleaner(Arc<Inside>);

#[derive(Debug, Default)]
struct Inside {
    in_force: RwLock<Option<Arc<Redactor>>>,
    /// Until something is in force; made when it is first needed.
    otherwise: OnceLock<Redactor>,
}

impl Cleaner {
    /// From now on this one.
    pub(super) fn put(&self, redactor: Arc<Redactor>) {
        *self.0.in_force.write().unwrap_or_else(PoisonError::into_inner) = Some(redactor);
    }

    /// The text without what nobody may read.
    pub(super) fn clean(&self, text: &str) -> String {
        let in_force = self.0.in_force.read().unwrap_or_else(PoisonError::into_inner).clone();
        let redactor = match &in_force {
            Some(redactor) => redactor,
            None => self.0.otherwise.get_or_init(|| Redactor::new(&Redaction::default().tool_results)),
        };
        redactor.text(text, &mut Counts::default()).into_owned()
    }
}
