//! What the rules are asked about: the caller and the run. Frozen at the door; nothing downstream looks anywhere else.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolgate_config::names::{KeyName, ModelName, ProviderName};
use toolgate_config::secret::Secret;

use crate::zone::Mark;

/// Who sends a request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The key that it holds; `None`: it is anonymous, without scopes, not an admin.
    pub key: Option<KeyName>,
    /// The end user that it acts for.
    pub user: Option<Arc<str>>,
    /// Its own credential for the provider (`auth: passthrough`).
    pub bearer: Option<Secret>,
}

impl Caller {
    /// The label of logs and metrics: the key's name, never an end user.
    pub fn label(&self) -> &str {
        self.key.as_ref().map_or("anonymous", KeyName::as_str)
    }

    /// The same, for whoever keeps it.
    pub fn shared_label(&self) -> Arc<str> {
        self.key.clone().map_or_else(|| self.label().into(), Arc::from)
    }
}

/// Which of its tools a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requested {
    /// All that it may have.
    All,
    /// No more than these; none of them: no tools.
    Only(BTreeSet<String>),
}

impl Requested {
    /// The meaning of `x-toolgate-tools`: `none`, or names with commas between. Empty is `none`.
    pub fn from_header(value: &str) -> Self {
        let names = value.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "none");
        Self::Only(names.map(str::to_owned).collect())
    }

    /// No tools at all.
    pub fn nothing() -> Self {
        Self::Only(BTreeSet::new())
    }

    /// Whether a tool of this name is asked for.
    pub fn includes(&self, tool: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(tool),
        }
    }
}

/// What is known of a run when a rule is asked. Provider and model stay those of its start, whatever the file says later.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Who asked for it.
    pub caller: Caller,
    /// What it asked for by name.
    pub model: ModelName,
    /// Whoever may come to read its transcript: the model's provider and those of its fallbacks.
    pub providers: Vec<ProviderName>,
    /// Which tools it asks for.
    pub requested: Requested,
    /// The most sensitive data that it has read so far.
    pub mark: Mark,
}
