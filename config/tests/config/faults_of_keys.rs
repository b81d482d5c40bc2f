//! Faults of `keys:`.

use super::refused;

#[test]
fn a_key_is_a_name_and_a_hash() {
    refused([
        (
            "keys:\n  - {}\n",
            "2:5: keys[0]: `name` is missing\n\
             2:5: keys[0]: `hash` is missing; allowed: `hash: \"sha256:…\"`, which `toolgate key new --name NAME` prints, or for a secret you have: printf %s SECRET | sha256sum",
        ),
        (
            "keys: [ { name: '', hash: 'sha256:00000000000000000000000000000000000000000000000000000000000000aa' } ]\n",
            "1:17: keys[0].name: the name is empty",
        ),
        (
            "keys: [ { name: a, hash: 'sha256:00000000000000000000000000000000000000000000000000000000000000AA' } ]\n",
            "1:26: keys[0].hash: this is no hash: `sha256:` and 64 lower-case hex digits; allowed: `hash: \"sha256:…\"`, which `toolgate key new --name NAME` prints, or for a secret you have: printf %s SECRET | sha256sum",
        ),
        (
            "keys: [ { name: a, hash: 'sha256:00' }, { name: b, hash: '00000000000000000000000000000000000000000000000000000000000000aa' } ]\n",
            "1:26: keys[0].hash: this is no hash: `sha256:` and 64 lower-case hex digits; allowed: `hash: \"sha256:…\"`, which `toolgate key new --name NAME` prints, or for a secret you have: printf %s SECRET | sha256sum\n\
             1:58: keys[1].hash: this is no hash: `sha256:` and 64 lower-case hex digits; allowed: `hash: \"sha256:…\"`, which `toolgate key new --name NAME` prints, or for a secret you have: printf %s SECRET | sha256sum",
        ),
    ]);
}

#[test]
fn a_secret_in_clear_is_refused_and_not_printed() {
    refused([
        (
            "keys: [ { name: a, hash: tg-s3cret } ]\n",
            "1:26: keys[0].hash: a secret in clear; allowed: `hash: \"sha256:…\"`, which `toolgate key new --name NAME` prints, or for a secret you have: printf %s SECRET | sha256sum",
        ),
        (
            "keys: [ { name: a, key: tg-s3cret } ]\n",
            "1:25: keys[0].key: a secret in clear; allowed: `hash: \"sha256:…\"`, which `toolgate key new --name NAME` prints, or for a secret you have: printf %s SECRET | sha256sum",
        ),
        (
            "keys: [ { name: a, secret: [s3cret] } ]\n",
            "1:28: keys[0].secret: a secret in clear; allowed: `hash: \"sha256:…\"`, which `toolgate key new --name NAME` prints, or for a secret you have: printf %s SECRET | sha256sum",
        ),
    ]);
}

#[test]
fn two_keys_of_one_name_or_one_hash_are_refused() {
    refused([(
        "keys:\n  - { name: a, hash: 'sha256:00000000000000000000000000000000000000000000000000000000000000aa' }\n  - { name: a, hash: 'sha256:00000000000000000000000000000000000000000000000000000000000000aa' }\n",
        "3:13: keys[1].name: two keys of one name, `a`; the first is `keys[0].name` at line 2, column 13\n\
             3:22: keys[1].hash: two keys of one hash; the first is `keys[0].hash` at line 2, column 22",
    )]);
}

#[test]
fn what_a_key_names_exists() {
    refused([
        (
            "keys:\n  - name: a\n    hash: 'sha256:00000000000000000000000000000000000000000000000000000000000000aa'\n    models: [suport, '*']\n    tools: { groups: [g], names: [t] }\nproviders: { p: { kind: openai } }\nmodels: { support: { provider: p } }\n",
            "4:14: keys[0].models[0]: no model is named `suport`; allowed: support; nearest: support\n\
             4:22: keys[0].models[1]: `\"*\"` is no name that a caller sends; without `models` a key may name all of them\n\
             5:23: keys[0].tools.groups[0]: no group is named `g`; there are none\n\
             5:35: keys[0].tools.names[0]: no tool is named `t`; there are none",
        ),
        (
            "keys:\n  - name: a\n    hash: 'sha256:00000000000000000000000000000000000000000000000000000000000000aa'\n    act_for: yes\n    expires: 30d\n",
            "4:14: keys[0].act_for: wrong type: text; allowed: true, false\n\
             5:5: keys[0].expires: unknown key; allowed: name, hash, admin, scopes, models, tools, act_for, budgets, rate",
        ),
    ]);
}
