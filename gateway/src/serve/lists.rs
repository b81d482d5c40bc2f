//! What a caller may look up: the models that it may use, and the traces of its own runs.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_config::Config;
use toolgate_config::limit::Unit;
use toolgate_config::money::NanoUsd;
use toolgate_config::names::ModelName;
use toolgate_config::server::Auth;
use toolgate_policies::counters::BudgetReading;
use toolgate_policies::facts::Caller;
use toolgate_policies::limits::{Limit, What};
use toolgate_policies::{gate, grant};

use crate::failure::Failure;
use crate::gateway::Gateway;
use crate::money::Closed;
use crate::provider::listing::Listed;
use crate::reply::Whole;
use crate::trace::{Run, TraceId, usd};

/// `GET /v1/models`: every model of the file that the caller may use and, where it may use others, those that their provider lists. Each is
/// there once; the file has the first word.
pub(super) async fn models(gateway: &Gateway, config: &Config, caller: &Caller) -> Whole {
    let names = config.models.named.keys().map(|name| name.as_str());
    let allowed = names.filter(|name| gate::admit(config, caller, name).is_ok());
    let mut data: Vec<Value> = allowed.map(model_json).collect();
    let others = others(gateway, config, caller).await;
    let mut seen = HashSet::new();
    let others = others.iter().filter(|model| is_another(config, caller, &model.id) && seen.insert(model.id.as_str()));
    data.extend(others.map(listed_json));
    Whole::json(json!({ "object": "list", "data": data }).to_string())
}

/// `GET /v1/models/{id}`: one of them; whatever else is not there.
pub(super) async fn model(gateway: &Gateway, config: &Config, caller: &Caller, id: &str) -> Result<Whole, Failure> {
    let id: Cow<'_, str> = percent_encoding::percent_decode_str(id).decode_utf8().map_err(|_| not_found())?;
    if config.models.named.contains_key(&*id) && gate::admit(config, caller, &id).is_ok() {
        return Ok(Whole::json(model_json(&id).to_string()));
    }
    let others = if is_another(config, caller, &id) { others(gateway, config, caller).await } else { Arc::default() };
    let listed = others.iter().find(|model| model.id == *id).ok_or_else(not_found)?;
    Ok(Whole::json(listed_json(listed).to_string()))
}

/// What the provider behind `"*"` lists, where the caller may use anything of it.
async fn others(gateway: &Gateway, config: &Config, caller: &Caller) -> Arc<[Listed]> {
    let Some(any) = &config.models.any else { return Arc::default() };
    let named = |models: &BTreeSet<ModelName>| models.iter().all(|model| config.models.named.contains_key(model));
    if grant::key_of(config, caller).and_then(|key| key.models.as_ref()).is_some_and(named) {
        return Arc::default();
    }
    let key = match config.auth {
        Auth::Passthrough => caller.bearer.as_ref(),
        Auth::Keys | Auth::None => any.provider.api_key.as_ref(),
    };
    gateway.listings.of(&gateway.net, &any.provider, key, caller.bearer.is_some()).await
}

/// Whether it is a name that stands for itself, and for this caller.
fn is_another(config: &Config, caller: &Caller, name: &str) -> bool {
    !config.models.named.contains_key(name) && gate::admit(config, caller, name).is_ok()
}

fn not_found() -> Failure {
    Failure::Refused(gate::Refused::ModelNotFound)
}

fn model_json(name: &str) -> Value {
    json!({ "id": name, "object": "model", "created": 0, "owned_by": "toolgate" })
}

fn listed_json(model: &Listed) -> Value {
    let owner = model.owner.as_deref().unwrap_or("provider");
    json!({ "id": model.id, "object": "model", "created": model.created, "owned_by": owner })
}

/// `GET /toolgate/traces/{id}`: for the caller that made the run, and for admins; for everybody else it does not exist.
pub(super) fn trace(gateway: &Gateway, config: &Config, caller: &Caller, id: &str) -> Result<Whole, Failure> {
    let is_admin = grant::is_admin(config, caller);
    let may_see = |run: &Run| is_admin || run.caller.as_ref().is_some_and(|owner| is_own(owner, caller));
    let run = TraceId::from_hex(id).and_then(|id| gateway.traces.find(id, &config.store, may_see)).ok_or(Failure::NotFound)?;
    Ok(Whole::json(run.to_json().to_string()))
}

/// `GET /toolgate/spend`: how the caller's own budgets stand; those of its end user too, where it names one.
pub(super) async fn spend(gateway: &Gateway, caller: &Caller) -> Result<Whole, Failure> {
    let in_force = gateway.in_force();
    let own = in_force.limits.own(&in_force.config, caller);
    let readings = gateway.money.read(&own).await.map_err(|Closed(why)| Failure::Closed(why))?;
    let budgets: Vec<Value> = readings.iter().map(budget_json).collect();
    Ok(Whole::json(json!({ "object": "toolgate.spend", "budgets": budgets }).to_string()))
}

fn budget_json(reading: &BudgetReading) -> Value {
    let Limit { id, most, .. } = &*reading.limit;
    let What::Budget(unit, per, _) = &id.what else { return Value::Null };
    let amount = |count: u64| match unit {
        Unit::Usd => usd(NanoUsd(count)),
        Unit::Tokens | Unit::Requests => count.into(),
    };
    json!({
        "scope": id.scope.as_str(),
        "name": id.scope.name(),
        "per": per.as_str(),
        "unit": unit.as_str(),
        "limit": amount(*most),
        "used": amount(reading.used),
        "held": amount(reading.held),
        "left": amount(most.saturating_sub(reading.used).saturating_sub(reading.held)),
        "reset": reading.resets.map(|moment| moment.to_string()),
    })
}

/// A key that names an end user sees what that one did; a key by itself sees whatever was done with it.
fn is_own(owner: &Caller, caller: &Caller) -> bool {
    is_the_same(owner, caller) && (caller.user.is_none() || caller.user == owner.user)
}

/// Whether two requests come from one caller: by its key or, where there are none, by the bearer that it brings for the provider.
fn is_the_same(one: &Caller, other: &Caller) -> bool {
    let bearer = |caller: &Caller| caller.bearer.as_ref().map(|bearer| gate::hash_of(bearer.expose()));
    one.key == other.key && bearer(one) == bearer(other)
}

#[cfg(test)]
mod tests {
    use toolgate_config::names::KeyName;
    use toolgate_config::secret::Secret;

    use super::*;

    #[test]
    fn callers_are_told_apart_by_what_they_show() {
        let caller = |key: Option<&str>, bearer: Option<&str>| Caller {
            key: key.map(KeyName::new),
            user: None,
            bearer: bearer.map(Secret::new),
        };
        let table = [
            (caller(Some("a"), None), caller(Some("a"), None), true),
            (caller(Some("a"), None), caller(Some("b"), None), false),
            (caller(None, Some("x")), caller(None, Some("x")), true),
            (caller(None, Some("x")), caller(None, Some("y")), false),
            (caller(None, Some("x")), caller(None, None), false),
            (caller(None, None), caller(None, None), true),
        ];
        for (one, other, same) in table {
            assert_eq!(is_the_same(&one, &other), same, "{one:?} {other:?}");
        }
    }
}
