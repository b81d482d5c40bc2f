//! `keys:`: names, hashes, and what they narrow.

use super::limits::{Users, limits};
use super::models::{ANY, grant, names};
use super::{declared, scopes, unique};
use crate::key::{Key, KeyHash, Keys};
use crate::names::{KeyName, ModelName};
use crate::place::Faults;
use crate::raw::shape::HOW_TO_HASH;
use crate::raw::{self, At, File, Text};

pub(super) fn keys(file: &File, faults: &mut Faults) -> Keys {
    let all: Vec<&raw::Key> = file.keys.value().into_iter().flatten().map(|at| &at.value).collect();
    let named = all.iter().filter_map(|raw| raw.name.get()).map(|at| (at.value.whole(), &at.place));
    unique(named, |name| format!("two keys of one name, `{name}`"), faults);
    let hashed = all.iter().filter_map(|raw| raw.hash.get()).map(|at| (at.value.whole(), &at.place));
    unique(hashed, |_| "two keys of one hash".to_owned(), faults);
    all.into_iter().filter_map(|raw| key(raw, file, faults)).collect()
}

fn key(raw: &raw::Key, file: &File, faults: &mut Faults) -> Option<Key> {
    let hash = hash(raw, faults);
    let models = raw
        .models
        .optional()
        .map(|given| given.map(|models| models.value.iter().filter_map(|name| model(name, file, faults)).collect()));
    let tools = raw.tools.optional().map(|given| given.map(|tools| grant(&tools.value.groups, &tools.value.names, file, faults)));
    let users = if raw.act_for.value() == Some(&false) { Users::NotNamed } else { Users::Named };
    let limits = limits(&raw.budgets, &raw.rate, users, faults);
    let name = raw.name.get()?;
    if name.value.whole().is_empty() {
        faults.add(&name.place, "the name is empty");
    }
    Some(Key {
        name: KeyName::new(name.value.whole()),
        hash: hash?,
        admin: *raw.admin.value()?,
        scopes: scopes(&raw.scopes),
        models: models?,
        tools: tools?,
        act_for: *raw.act_for.value()?,
        limits: limits?,
    })
}

/// Where `"*"` stands for every other name, any name exists.
fn model(name: &At<Text>, file: &File, faults: &mut Faults) -> Option<ModelName> {
    let word = name.value.whole();
    if word == ANY {
        faults.add(&name.place, "`\"*\"` is no name that a caller sends; without `models` a key may name all of them");
        return None;
    }
    if names(&file.models).any(|known| known == ANY) {
        return Some(ModelName::new(word));
    }
    declared(name, "model", names(&file.models), faults).map(ModelName::new)
}

fn hash(raw: &raw::Key, faults: &mut Faults) -> Option<KeyHash> {
    let Some(At { value, place }) = raw.hash.optional()? else {
        // A secret in clear is reported already, and in better words.
        if raw.key.is_absent() && raw.secret.is_absent() {
            faults.add(&raw.place, format!("`hash` is missing; {HOW_TO_HASH}"));
        }
        return None;
    };
    let written = value.whole();
    let parsed = written.strip_prefix("sha256:").and_then(digest);
    if parsed.is_none() {
        let what = if written.starts_with("tg-") {
            "a secret in clear"
        } else {
            "this is no hash: `sha256:` and 64 lower-case hex digits"
        };
        faults.add(place, format!("{what}; {HOW_TO_HASH}"));
    }
    parsed
}

fn digest(hex: &str) -> Option<KeyHash> {
    let nibble = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = hex.as_bytes().chunks(2).map(|pair| match *pair {
        [high, low] => Some(nibble(high)? << 4 | nibble(low)?),
        _ => None,
    });
    pairs.collect::<Option<Vec<u8>>>()?.try_into().ok()
}
