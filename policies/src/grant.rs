//! What a model, a key and a request say about a tool. The configuration is the grant; the request can only narrow it.

use toolgate_config::Config;
use toolgate_config::key::Key;
use toolgate_config::tool::Tool;

use crate::facts::{Caller, RunFacts};

/// The caller's key as the file in force has it; `None` for the anonymous, and for a key that is gone.
pub fn key_of<'a>(config: &'a Config, caller: &Caller) -> Option<&'a Key> {
    caller.key.as_ref().and_then(|name| config.keys.by_name(name)).map(AsRef::as_ref)
}

/// Whether the caller is an admin.
pub fn is_admin(config: &Config, caller: &Caller) -> bool {
    key_of(config, caller).is_some_and(|key| key.admin)
}

/// Whether the caller holds every right that the tool asks for.
pub fn has_scopes(config: &Config, caller: &Caller, tool: &Tool) -> bool {
    tool.rule.scopes.is_empty() || key_of(config, caller).is_some_and(|key| tool.rule.scopes.is_subset(&key.scopes))
}

/// Whether the model of the run grants the tool.
pub fn model_grants(config: &Config, run: &RunFacts, tool: &Tool) -> bool {
    let model = config.models.named.get(&run.model).or(config.models.any.as_ref());
    model.and_then(|model| model.grant.as_ref()).is_some_and(|grant| grant.covers(&tool.name, &tool.group.name))
}

/// Whether the caller's key leaves the tool in the grant. A key that is gone leaves nothing.
pub fn key_grants(config: &Config, caller: &Caller, tool: &Tool) -> bool {
    if caller.key.is_none() {
        return true;
    }
    let Some(key) = key_of(config, caller) else { return false };
    key.tools.as_ref().is_none_or(|grant| grant.covers(&tool.name, &tool.group.name))
}
