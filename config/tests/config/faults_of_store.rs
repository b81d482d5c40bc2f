//! Faults of `store:`.

use super::{accepted, refused};

const STORES: &str = "allowed: sqlite:PATH, postgres://USER@HOST/DATABASE, none";
const COUNTERS: &str = "allowed: memory, redis://HOST:PORT, rediss://HOST:PORT, redis+unix:///PATH";

/// Each case is the value of a key of `store:` and its fault, without the place.
#[track_caller]
fn refused_values<const N: usize>(key: &str, cases: [(&str, String); N]) {
    for (value, fault) in cases {
        refused([(&format!("store:\n  {key}:\n    '{value}'\n"), &format!("3:5: store.{key}: {fault}"))]);
    }
}

#[test]
fn a_store_is_a_file_a_server_or_none() {
    refused_values(
        "url",
        [
            ("", format!("this is no store; {STORES}")),
            ("sqlite", format!("this is no store; {STORES}; nearest: sqlite:")),
            ("non", format!("this is no store; {STORES}; nearest: none")),
            ("mysql://u:s3cret@h/d", format!("this is no store; {STORES}")),
            ("toolgate.db", format!("this is no store; {STORES}")),
            ("sqlite:", format!("`sqlite:` without the path of a file; {STORES}")),
            ("sqlite://", format!("`sqlite:` without the path of a file; {STORES}")),
            ("sqlite::memory:", format!("a ledger in memory is lost with the process; {STORES}")),
            ("sqlite:x.db?mode=rwc", format!("`sqlite:` is followed by a path, and there are no options; {STORES}")),
            ("postgres://u:${BAD}@h:port/d", "this is no URL of a PostgreSQL server".to_owned()),
            ("${BAD}", format!("this is no store; {STORES}")),
        ],
    );
}

#[test]
fn counters_are_in_memory_or_in_a_server() {
    refused_values(
        "counters",
        [
            ("memroy", format!("this is no place for counters; {COUNTERS}; nearest: memory")),
            ("redis", format!("this is no place for counters; {COUNTERS}; nearest: redis://")),
            ("redis:6379", format!("this is no place for counters; {COUNTERS}; nearest: redis://")),
            ("memcached://h", format!("this is no place for counters; {COUNTERS}")),
            ("redis://", "this is no URL of a Redis server".to_owned()),
            ("redis:///0", "this is no URL of a Redis server".to_owned()),
            ("redis://h/counters", "this is no URL of a Redis server".to_owned()),
            ("redis://h:99999", "this is no URL of a Redis server".to_owned()),
            ("redis+unix://", "this is no URL of a Redis server".to_owned()),
            ("redis+unix://run/redis.sock", "this is no URL of a Redis server".to_owned()),
        ],
    );
}

#[test]
fn a_password_in_clear_is_for_loopback_only() {
    let postgres =
        || "a password in clear for a PostgreSQL server that is not on loopback; allowed: ${NAME}, ${file:PATH}".to_owned();
    refused_values(
        "url",
        [
            ("postgres://u:s3cret@db.internal/d", postgres()),
            ("postgresql://u:s3cret@10.0.0.1:5432/d", postgres()),
            ("postgres://u@db.internal/d?password=s3cret", postgres()),
            ("postgres://u:s3cret@localhost/d?host=db.internal", postgres()),
            ("postgres://u:s3cret@${HOST}:${NUMBER}/d", postgres()),
        ],
    );
    let redis = || "a password in clear for a Redis server that is not on loopback; allowed: ${NAME}, ${file:PATH}".to_owned();
    refused_values(
        "counters",
        [("redis://:s3cret@redis.internal", redis()), ("rediss://u:s3cret@[2001:db8::1]:6380/1", redis())],
    );
    for (key, value) in [
        ("url", "postgres://u:s3cret@127.0.0.1/d"),
        ("url", "postgres://u:s3cret@[::1]:5433/d"),
        ("url", "postgres://u:s3cret@localhost/d"),
        ("url", "postgres:///d?host=/run/postgresql&user=u&password=s3cret"),
        ("url", "postgres://u:s3cret@%2Frun%2Fpostgresql/d"),
        ("url", "postgres://u:s3cret@db.internal/d?hostaddr=::1"),
        ("url", "postgres://u:${SECRET}@db.internal/d"),
        ("url", "postgres://db.internal/d?user=u&password=${SECRET}"),
        ("url", "postgres://u@db.internal/d"),
        ("counters", "redis://:s3cret@127.0.0.1:6379/1"),
        ("counters", "redis+unix:///run/redis.sock?pass=s3cret"),
        ("counters", "redis://:${SECRET}@redis.internal"),
        ("counters", "rediss://redis.internal"),
    ] {
        let config = accepted(&format!("store: {{ {key}: '{value}' }}\n"));
        assert!(!format!("{config:?}").contains("s3cret"), "{value}");
    }
}

#[test]
fn words_and_times_of_the_store() {
    refused([(
        "store:\n  on_counter_failure: allow\n  keep: { traces: 30, ledger: 0d, runs: 1d }\n  privacy: some\n  path: x\n",
        "2:23: store.on_counter_failure: unknown word `allow`; allowed: refuse, local\n\
             3:19: store.keep.traces: wrong type: a number; allowed: a duration longer than zero: 250ms, 10s, 5m, 1h, 30d\n\
             3:31: store.keep.ledger: `0d` is not a duration longer than zero: 250ms, 10s, 5m, 1h, 30d\n\
             3:35: store.keep.runs: unknown key; allowed: traces, ledger\n\
             4:12: store.privacy: unknown word `some`; allowed: none, metadata, redacted, full; nearest: none\n\
             5:3: store.path: unknown key; allowed: url, counters, on_counter_failure, privacy, keep",
    )]);
}

#[test]
fn a_budget_needs_a_ledger() {
    const NEEDS: &str = "a budget needs a ledger to start from, and `store.url` is none; allowed there: sqlite:PATH, postgres://USER@HOST/DATABASE";
    let text = "store: { url: none }\n\
        limits: { budgets: [ { per: day, requests: 1 } ], rate: { requests_per_minute: 1 } }\n\
        models: { m: { provider: p, price: free, budgets: [ { per: day, usd: 1 }, { per: day, tokens: 1 } ], rate: { concurrent: 1 } } }\n\
        keys: [ { name: a, hash: 'sha256:00000000000000000000000000000000000000000000000000000000000000aa', budgets: [ { per: day, tokens: 1 } ] } ]\n\
        providers: { p: { kind: openai } }\n";
    let places =
        ["2:22: limits.budgets[0]", "3:53: models.m.budgets[0]", "3:75: models.m.budgets[1]", "4:112: keys[0].budgets[0]"];
    refused([(text, &places.map(|place| format!("{place}: {NEEDS}")).join("\n"))]);
    accepted("store: { url: none }\nlimits: { rate: { requests_per_minute: 1 } }\n");
}
