//! What things are called in the server. All names hold one tag in braces, so that a cluster keeps them together and a script can use them at
//! once.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest};
use toolgate_policies::limits::{CounterId, Scope, What};

/// The gateways, and until when each is alive.
pub(super) const GATEWAYS: &str = "{toolgate}:gateways";

/// How many messages of a gateway were counted.
pub(super) fn counted(gateway: &str) -> String {
    format!("{{toolgate}}:counted:{gateway}")
}

/// What was used of a budget, as far as a life of the server knows: after a restart it may have forgotten the newest, and all budgets are read
/// from the ledger anew.
pub(super) fn used(id: &CounterId, life: &str) -> String {
    named(&format!("used:{life}"), id)
}

/// What is held of a budget, or how many places are taken: by each gateway.
pub(super) fn held(id: &CounterId) -> String {
    named("held", id)
}

/// What was taken of a rate.
pub(super) fn rate(id: &CounterId) -> String {
    named("rate", id)
}

fn named(kind: &str, id: &CounterId) -> String {
    let mut name = String::with_capacity(96);
    name.push_str("{toolgate}:");
    name.push_str(kind);
    match &id.scope {
        Scope::Everybody => push(&mut name, "everybody"),
        Scope::Model(model) => push_both(&mut name, "model", model.as_str()),
        Scope::Key(key) => push_both(&mut name, "key", key.as_str()),
        Scope::User(key, user) => {
            push_both(&mut name, "user", key.as_str());
            push(&mut name, &pseudonym(user));
        }
    }
    match &id.what {
        What::Budget(unit, per, zone) => {
            push_both(&mut name, unit.as_str(), per.as_str());
            push(&mut name, zone.name());
        }
        What::RequestRate => push(&mut name, "requests"),
        What::TokenRate => push(&mut name, "tokens"),
        What::Concurrent => push(&mut name, "concurrent"),
    }
    name
}

fn push_both(name: &mut String, word: &str, part: &str) {
    push(name, word);
    push(name, part);
}

/// One more part; what parts are told apart by cannot come from inside of one.
fn push(name: &mut String, part: &str) {
    name.push(':');
    for letter in part.chars() {
        match letter {
            ':' => name.push_str("%3A"),
            '%' => name.push_str("%25"),
            letter => name.push(letter),
        }
    }
}

/// End users are often named by their addresses: those are nobody's business who looks at the server.
fn pseudonym(user: &str) -> String {
    let mut hex = String::with_capacity(32);
    for byte in &digest(&SHA256, user.as_bytes()).as_ref()[..16] {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use toolgate_config::limit::{Per, Unit, Zone};
    use toolgate_config::names::{KeyName, ModelName};

    use super::*;

    #[test]
    fn no_two_counters_have_one_name() {
        let scopes = [
            Scope::Everybody,
            Scope::Key(KeyName::new("everybody")),
            Scope::Key(KeyName::new("a")),
            Scope::Key(KeyName::new("a:usd")),
            Scope::Key(KeyName::new("a%3Ausd")),
            Scope::Model(ModelName::new("a")),
            Scope::User(KeyName::new("a"), "b".into()),
            Scope::User(KeyName::new("a:b"), "c".into()),
            Scope::User(KeyName::new("a"), "b:c".into()),
        ];
        let whats = [
            What::Budget(Unit::Usd, Per::Day, Zone::utc()),
            What::Budget(Unit::Tokens, Per::Day, Zone::utc()),
            What::Budget(Unit::Usd, Per::Week, Zone::utc()),
            What::Budget(Unit::Usd, Per::Day, Zone::find("Europe/Berlin").unwrap()),
            What::RequestRate,
            What::TokenRate,
            What::Concurrent,
        ];
        let ids: Vec<_> = scopes.iter().flat_map(|scope| whats.iter().map(|what| (scope.clone(), what.clone()))).collect();
        let names: HashSet<_> =
            ids.iter().map(|(scope, what)| held(&CounterId { scope: scope.clone(), what: what.clone() })).collect();
        assert_eq!(names.len(), ids.len());
    }

    #[test]
    fn an_end_user_cannot_be_read() {
        let id = CounterId { scope: Scope::User(KeyName::new("shop"), "ann@example.org".into()), what: What::RequestRate };
        assert_eq!(rate(&id), "{toolgate}:rate:user:shop:438c4c7afe600cdf1e455c369bec76dc:requests");
    }
}
