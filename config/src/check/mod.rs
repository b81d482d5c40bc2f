//! Raw to meant: every fault of a file, with its place. A file a section; each function here takes what was written and gives what it
//! means, or `None` where a fault is already noted. None of them stops at the first fault.

mod auth;
mod groups;
mod headers;
mod http;
mod keys;
mod limits;
mod mcp;
mod models;
mod openapi;
mod prices;
mod providers;
mod redaction;
mod rule;
mod server;
mod store;
mod template;
mod tls;
mod tools;
mod url;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::path::Path;

use self::limits::Users;
use crate::Config;
use crate::names::Scope;
use crate::place::{Fault, Faults, Place};
use crate::raw::shape::Shape;
use crate::raw::text::Surroundings;
use crate::raw::yaml::{self, Spot};
use crate::raw::{At, File, Given, Text, advice};
use crate::server::Telemetry;

/// A configuration file and what it may refer to.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The file as the operator named it: faults carry it, and relative paths begin in its folder.
    pub path: &'a Path,
    /// Its content.
    pub text: &'a str,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

/// Reads and checks a configuration file, with the environment of the process.
///
/// # Errors
/// Every fault at once, in the order of the file.
pub fn load(path: &Path) -> Result<Config, Vec<Fault>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let mut faults = Faults::default();
        faults.add(&START, format!("the file cannot be read: {error}"));
        faults.of_file(path)
    })?;
    read(&Source { path, text: &text, env: &|name| std::env::var(name).ok() })
}

/// Reads and checks a configuration.
///
/// # Errors
/// Every fault at once, in the order of the file.
pub fn read(source: &Source<'_>) -> Result<Config, Vec<Fault>> {
    let mut faults = Faults::default();
    match written_to_meant(source, &mut faults) {
        Some(config) if faults.is_empty() => Ok(config),
        _ => Err(faults.of_file(source.path)),
    }
}

const START: Place = Place { file: std::path::PathBuf::new(), line: 1, column: 1, path: String::new() };

fn written_to_meant(source: &Source<'_>, faults: &mut Faults) -> Option<Config> {
    let tree = yaml::parse(source.text).map_err(|(spot, message)| faults.add(&Place::at(spot, ""), message)).ok()?;
    let folder = source.path.parent().unwrap_or(Path::new(""));
    let mut surroundings = Surroundings { env: source.env, folder, watched: Vec::new() };
    let tree = surroundings.fill(tree, "", faults);
    let file = File::read(&tree, &Place::at(Spot { line: 1, column: 1 }, ""), faults)?;
    let mut config = meant(&file, folder, faults)?;
    config.watched.extend(surroundings.watched);
    Some(config)
}

fn meant(file: &File, folder: &Path, faults: &mut Faults) -> Option<Config> {
    let server = file.server.value().and_then(|server| server::server(server, folder, faults));
    let auth = auth::auth(file, server.as_ref().map(|server| &server.listen), faults);
    let providers = providers::providers(file, faults);
    let groups = groups::groups(file, faults);
    names_are_free(file, faults);
    let tools = tools::tools(file, &groups, faults);
    let openapi = openapi::tools(file, &groups, folder, faults);
    let mcp_servers = mcp::servers(file, &groups, folder, faults);
    let models = models::models(file, &providers, server.as_ref().map(|server| server.request_timeout), faults);
    let keys = keys::keys(file, faults);
    let limits = file.limits.value().and_then(|raw| limits::limits(&raw.budgets, &raw.rate, Users::OfKeysOnly, faults));
    prices::priced(file, &models, faults);
    let store = file.store.value().and_then(|raw| store::store(raw, folder, faults));
    let store = store.inspect(|store| store::budgets_have_a_ledger(file, &store.url, faults));
    let redaction = file.redaction.value().and_then(|raw| redaction::redaction(raw, faults));
    let server = server?;
    Some(Config {
        watched: server.tls.iter().flat_map(tls::files).cloned().chain(openapi.files).collect(),
        server,
        auth: auth?,
        providers,
        models,
        keys,
        groups,
        tools: tools.into_iter().chain(openapi.tools).collect(),
        mcp_servers,
        redaction: redaction?,
        enforcement: *file.enforcement.value()?.trust_zone.value()?,
        limits: limits?,
        store: store?,
        telemetry: Telemetry { log: *file.telemetry.value()?.log.value()? },
    })
}

/// Two tools of one name, from whatever sources.
fn names_are_free(file: &File, faults: &mut Faults) {
    let all: Vec<_> = tools::offered(file).chain(openapi::offered(file)).chain(mcp::offered(file)).collect();
    unique(all.iter().map(|(name, place)| (name, place)), |name| format!("two tools of one name, `{name}`"), faults);
}

/// A name that must be among those that the file declares; the name of another thing is a fault.
fn declared<'a>(name: &At<Text>, what: &str, known: impl IntoIterator<Item = &'a str>, faults: &mut Faults) -> Option<String> {
    let known: Vec<_> = known.into_iter().collect();
    let word = name.value.whole();
    if known.contains(&word.as_ref()) {
        return Some(word.into_owned());
    }
    faults.add(&name.place, format!("no {what} is named `{}`; {}", name.value.written, advice(&name.value.written, known)));
    None
}

/// Reports whatever occurs a second time, with the place of the first. `what` is said of the value that is there twice.
fn unique<'a, T: Eq + Hash>(all: impl IntoIterator<Item = (T, &'a Place)>, what: impl Fn(&T) -> String, faults: &mut Faults) {
    let mut first: HashMap<T, &Place> = HashMap::new();
    for (value, place) in all {
        match first.entry(value) {
            Entry::Vacant(slot) => {
                slot.insert(place);
            }
            Entry::Occupied(other) => {
                let (what, other) = (what(other.key()), other.get());
                faults.add(place, format!("{what}; the first is `{}` at {}", other.path, other.short()));
            }
        }
    }
}

fn scopes(written: &Given<Vec<At<Text>>>) -> BTreeSet<Scope> {
    written.value().into_iter().flatten().map(|scope| Scope::new(scope.value.whole())).collect()
}
