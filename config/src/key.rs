//! `keys:`: the callers.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::limit::Limits;
use crate::model::Grant;
use crate::names::{KeyName, ModelName, Scope};

/// SHA-256 of a whole secret.
pub type KeyHash = [u8; 32];

/// A caller: what it may use, and whether it may speak for end users.
#[derive(Debug)]
pub struct Key {
    /// Its name; the label in metrics.
    pub name: KeyName,
    /// SHA-256 of its secret; the secret itself is nowhere.
    pub hash: KeyHash,
    /// May use tools that ask for an admin, and read every trace.
    pub admin: bool,
    /// The rights that it holds.
    pub scopes: BTreeSet<Scope>,
    /// The models that it may name; `None`: all.
    pub models: Option<BTreeSet<ModelName>>,
    /// Narrows the model's grant; `None`: no narrowing.
    pub tools: Option<Grant>,
    /// May name an end user in `x-toolgate-user`.
    pub act_for: bool,
    /// What it may spend, and how fast.
    pub limits: Limits,
}

/// The keys of the file, by the hash of their secret and by name. Looking one up by its hash tells an attacker nothing by its timing:
/// what is compared is the digest of what was guessed.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    by_hash: HashMap<KeyHash, Arc<Key>>,
    by_name: HashMap<KeyName, Arc<Key>>,
}

impl Keys {
    /// The key whose secret has this digest.
    pub fn by_hash(&self, hash: &KeyHash) -> Option<&Arc<Key>> {
        self.by_hash.get(hash)
    }

    /// The key of this name.
    pub fn by_name(&self, name: &KeyName) -> Option<&Arc<Key>> {
        self.by_name.get(name)
    }

    /// Every key, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.by_name.values()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

impl FromIterator<Key> for Keys {
    fn from_iter<I: IntoIterator<Item = Key>>(keys: I) -> Self {
        let mut all = Self::default();
        for key in keys {
            let key = Arc::new(key);
            all.by_hash.insert(key.hash, Arc::clone(&key));
            all.by_name.insert(key.name.clone(), key);
        }
        all
    }
}
