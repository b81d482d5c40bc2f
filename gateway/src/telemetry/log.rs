//! The log: one line an event on standard error, as JSON or as text, from the level that `TOOLGATE_LOG` names.
//!
//! Credentials are held in types that do not print, so nothing is masked here.

use std::io::{self, IsTerminal};
use std::panic::{self, PanicHookInfo};

use toolgate_config::server::LogFormat;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The environment variable that names the level.
pub const LEVEL_VARIABLE: &str = "TOOLGATE_LOG";

/// The words for a level, quietest first.
const LEVELS: [(&str, Level); 5] =
    [("error", Level::ERROR), ("warn", Level::WARN), ("info", Level::INFO), ("debug", Level::DEBUG), ("trace", Level::TRACE)];

/// The level that the environment asks for; `info` where it is silent.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn level_from_env() -> Result<Level, String> {
    level_from_env_or(Level::INFO)
}

/// The level that the environment asks for; `silent` where it is silent.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn level_from_env_or(silent: Level) -> Result<Level, String> {
    match std::env::var(LEVEL_VARIABLE) {
        Ok(word) if !word.is_empty() => level_from_word(&word),
        _ => Ok(silent),
    }
}

fn level_from_word(word: &str) -> Result<Level, String> {
    let known = LEVELS.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    known.map(|(_, level)| level).ok_or_else(|| {
        let names = LEVELS.map(|(name, _)| name).join(", ");
        format!("{LEVEL_VARIABLE}: `{word}` is no level; allowed are {names}")
    })
}

/// Starts the log. Only the first call in a process counts.
pub fn start(format: LogFormat, level: Level) {
    let filter = FilterFn::new(move |event| wanted(event, level)).with_max_level_hint(LevelFilter::from_level(level));
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let lines = match format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
    };
    let first = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init().is_ok();
    if first {
        panic::set_hook(Box::new(log_panic));
    }
}

/// Whether a line is written. What libraries tell below `info` may hold the bytes of a conversation, so it never is; their `info` is chatter
/// to operators, so it takes `debug`.
fn wanted(event: &Metadata<'_>, level: Level) -> bool {
    let ours = event.target().starts_with("toolgate");
    // It tells what servers of tools send, at every level; what is wrong with one is told where it is used.
    if event.target().starts_with("rmcp") {
        return false;
    }
    // What it says of a hand-over, we say in our words.
    let repeated = event.target().starts_with("pingora_core::server::transfer_fd");
    // It tells parameters of the store's address, a password among them; what is wrong with the store is told by the store.
    let repeated = repeated || event.target().starts_with("sqlx");
    match *event.level() {
        own if ours => own <= level,
        Level::INFO => level >= Level::DEBUG,
        other => other <= level.min(Level::WARN) && !repeated,
    }
}

/// A panic ends one request, not the process. What it says may hold a caller's data, so only its place is logged.
fn log_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(place, "a part of the gateway has panicked; its request has failed");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_named_by_its_word() {
        for (word, level) in LEVELS {
            assert_eq!(level_from_word(word), Ok(level));
        }
        assert_eq!(level_from_word("WARN"), Ok(Level::WARN));
        let refused = "TOOLGATE_LOG: `loud` is no level; allowed are error, warn, info, debug, trace";
        assert_eq!(level_from_word("loud"), Err(refused.to_owned()));
    }
}
