//! Whose limits a request meets, and in which order.

use std::sync::Arc;

use toolgate_config::names::KeyName;
use toolgate_policies::facts::Caller;
use toolgate_policies::limits::{Limit, Limits, What};

const FILE: &str = r#"
providers:
  local: { kind: openai_compatible, base_url: "http://127.0.0.1:1", trust_zone: local }
models:
  m: { provider: local, price: free, budgets: [ { per: month, usd: 0.000000002 } ], rate: { concurrent: 3 } }
  plain: { provider: local }
  "*": { provider: local, budgets: [ { per: total, requests: 4 } ] }
keys:
  - name: k
    hash: "sha256:HASH"
    act_for: true
    budgets: [ { per: day, tokens: 5 }, { per: hour, requests: 6, per_user: true } ]
    rate: [ { requests_per_minute: 7, tokens_per_minute: 8 }, { concurrent: 9, per_user: true } ]
  - { name: free, hash: "sha256:OTHER" }
limits: { rate: { requests_per_minute: 1 } }
"#;

fn on_path(key: Option<&str>, user: Option<&str>, model: &str) -> Vec<Arc<Limit>> {
    let text = FILE.replace("HASH", &crate::hash("tg-of-k")).replace("OTHER", &crate::hash("tg-of-free"));
    let config = crate::config(&text);
    let caller = Caller { key: key.map(KeyName::new), user: user.map(Arc::from), bearer: None };
    Limits::of(&config).path(&config, &caller, model)
}

/// Whose it is, and what it counts.
fn said(limit: &Limit) -> String {
    let what = match &limit.id.what {
        What::Budget(unit, per, _) => format!("{} {}", unit.as_str(), per.as_str()),
        other => format!("{other:?}"),
    };
    format!("{} {}: {what}", limit.id.scope.as_str(), limit.id.scope.name())
}

#[test]
fn a_request_meets_everybodys_limits_its_models_its_keys_and_its_end_users() {
    let everybody = "everybody : RequestRate";
    let model = ["model m: usd month", "model m: Concurrent"];
    let key = ["key k: tokens day", "key k: RequestRate", "key k: TokenRate"];
    let user = ["user k: requests hour", "user k: Concurrent"];
    let cases = [
        (None, None, "plain", vec![everybody]),
        (None, None, "m", vec![everybody, model[0], model[1]]),
        (Some("free"), Some("ann"), "*", vec![everybody, "model *: requests total"]),
        (Some("k"), None, "plain", vec![everybody, key[0], key[1], key[2]]),
        (Some("k"), Some("ann"), "m", [&[everybody], &model[..], &key, &user].concat()),
    ];
    for (key, user, model, right) in cases {
        let path: Vec<_> = on_path(key, user, model).iter().map(|limit| said(limit)).collect();
        assert_eq!(path, right, "{key:?} {user:?} {model}");
    }
    let most: Vec<_> = on_path(Some("k"), Some("ann"), "m").iter().map(|limit| limit.most).collect();
    assert_eq!(most, [1, 2, 3, 5, 7, 8, 6, 9]);
}

#[test]
fn each_end_user_has_counters_of_its_own_and_shares_those_of_the_key() {
    let (ann, bob) = (on_path(Some("k"), Some("ann"), "m"), on_path(Some("k"), Some("bob"), "m"));
    let shared: Vec<_> = ann.iter().zip(&bob).map(|(ann, bob)| ann.id == bob.id).collect();
    assert_eq!(shared, [true, true, true, true, true, true, false, false]);
    assert!(ann.iter().zip(on_path(Some("k"), Some("ann"), "m")).all(|(one, other)| one.id == other.id));
}
