//! `store:`: where what must not be lost is kept.

use std::borrow::Cow;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use url::Url;

use super::limits::all_budgets;
use crate::address::HostPort;
use crate::place::Faults;
use crate::raw::text::Piece;
use crate::raw::{self, At, File, Given, Text, nearest};
use crate::secret::Secret;
use crate::store::{CountersUrl, Store, StoreUrl};

pub(super) fn store(raw: &raw::Store, folder: &Path, faults: &mut Faults) -> Option<Store> {
    let url = url(&raw.url, folder, faults);
    let counters = counters(&raw.counters, faults);
    let keep = raw.keep.value()?;
    Some(Store {
        url: url?,
        counters: counters?,
        on_counter_failure: *raw.on_counter_failure.value()?,
        privacy: *raw.privacy.value()?,
        keep_traces: *keep.traces.value()?,
        keep_ledger: *keep.ledger.value()?,
    })
}

/// A budget begins with what the ledger says was used.
pub(super) fn budgets_have_a_ledger(file: &File, url: &StoreUrl, faults: &mut Faults) {
    if matches!(url, StoreUrl::None) {
        for budget in all_budgets(file) {
            faults.add(&budget.place, "a budget needs a ledger to start from, and `store.url` is none; allowed there: sqlite:PATH, postgres://USER@HOST/DATABASE");
        }
    }
}

const STORES: &str = "sqlite:PATH, postgres://USER@HOST/DATABASE, none";

fn url(raw: &Given<raw::store::Url>, folder: &Path, faults: &mut Faults) -> Option<StoreUrl> {
    let At { value: raw::store::Url(text), place } = raw.get()?;
    let whole = text.whole();
    if whole == "none" {
        return Some(StoreUrl::None);
    }
    if let Some(path) = whole.strip_prefix("sqlite:") {
        return faults.take(place, sqlite(path, folder).map(StoreUrl::Sqlite));
    }
    if whole.starts_with("postgres://") || whole.starts_with("postgresql://") {
        return faults.take(place, server(text, "a PostgreSQL server", |_| true).map(StoreUrl::Postgres));
    }
    faults.add(place, format!("this is no store; allowed: {STORES}{}", near(text, &["none", "sqlite:", "postgres://"])));
    None
}

/// The word that was meant, where what is written is not far from one. It prints nothing of what is written, which may hold a password.
fn near(text: &Text, known: &[&'static str]) -> String {
    nearest(&text.written, known.iter().copied()).map_or(String::new(), |word| format!("; nearest: {word}"))
}

fn sqlite(path: &str, folder: &Path) -> Result<PathBuf, String> {
    // As a URL has it: `sqlite:///var/lib/toolgate.db` is absolute.
    let path = path.strip_prefix("//").unwrap_or(path);
    let why = if path.is_empty() {
        "`sqlite:` without the path of a file"
    } else if path == ":memory:" {
        "a ledger in memory is lost with the process"
    } else if path.contains('?') {
        "`sqlite:` is followed by a path, and there are no options"
    } else {
        return Ok(folder.join(path));
    };
    Err(format!("{why}; allowed: {STORES}"))
}

fn counters(raw: &Given<raw::store::Counters>, faults: &mut Faults) -> Option<CountersUrl> {
    let At { value: raw::store::Counters(text), place } = raw.get()?;
    let whole = text.whole();
    if whole == "memory" {
        return Some(CountersUrl::Memory);
    }
    let usable = match whole.split_once("://") {
        Some(("redis" | "rediss", _)) => names_a_server,
        Some(("redis+unix", _)) => names_a_socket,
        _ => {
            let near = near(text, &["memory", "redis://"]);
            faults.add(place, format!("this is no place for counters; allowed: memory, redis://HOST:PORT, rediss://HOST:PORT, redis+unix:///PATH{near}"));
            return None;
        }
    };
    faults.take(place, server(text, "a Redis server", usable).map(CountersUrl::Redis))
}

/// A host, and the number of a database or nothing.
fn names_a_server(url: &Url) -> bool {
    url.has_host() && url.path().trim_matches('/').bytes().all(|byte| byte.is_ascii_digit())
}

fn names_a_socket(url: &Url) -> bool {
    !url.has_host() && url.path().len() > 1
}

/// The URL of a server. Like every credential, a password stands in the file itself only where nobody else could use it.
fn server(text: &Text, what: &str, usable: fn(&Url) -> bool) -> Result<Secret, String> {
    let whole = text.whole();
    let url = Url::parse(&whole).ok().filter(usable).ok_or_else(|| format!("this is no URL of {what}"))?;
    if has_password_in_clear(text) && !is_local(&url) {
        return Err(format!("a password in clear for {what} that is not on loopback; allowed: ${{NAME}}, ${{file:PATH}}"));
    }
    Ok(Secret::new(whole.trim()))
}

/// Stands for what is filled in. A number may stand wherever something may be filled in, the port included.
const FILLED: &str = "61027";

fn has_password_in_clear(text: &Text) -> bool {
    let written = text.pieces.iter().map(|piece| if matches!(piece, Piece::Filled(_)) { FILLED } else { piece.as_str() });
    let Ok(url) = Url::parse(&written.collect::<String>()) else { return false };
    let of_query = url.query_pairs().filter(|(name, _)| matches!(name.as_ref(), "password" | "pass")).map(|(_, value)| value);
    of_query.chain(url.password().map(Cow::Borrowed)).any(|password| !password.is_empty() && !password.contains(FILLED))
}

/// Whether the server is this machine's own. A socket is, and so is what is meant where no host is named.
fn is_local(url: &Url) -> bool {
    let of_query = url.query_pairs().filter(|(name, _)| matches!(name.as_ref(), "host" | "hostaddr")).last();
    let of_url = || percent_decode_str(url.host_str().unwrap_or_default()).decode_utf8_lossy();
    let host = of_query.map_or_else(of_url, |(_, value)| value);
    let by_name = || HostPort { host: host.to_string(), port: 0 }.is_loopback();
    host.is_empty() || host.starts_with('/') || host.parse::<IpAddr>().map_or_else(|_| by_name(), |address| address.is_loopback())
}
