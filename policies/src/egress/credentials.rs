//! Credentials in what a model fills into a URL or a header: what leaves that way stands in logs of servers and proxies, and an allowed host is
//! still not the one for whom they are. Known are the gateway's own secrets, in the usual codings, and whatever has the shape of one.
//! Personal data and an operator's own patterns are not looked for: an order's number in a URL is what the URL is for.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use toolgate_config::Config;
use toolgate_config::redaction::Rules;

use crate::known::with_known;
use crate::redact::{Counts, Redactor};

/// Finds credentials; compiled when the first text is looked at.
pub struct Credentials {
    rules: Rules,
    redactor: OnceLock<Redactor>,
}

impl Credentials {
    /// Of this configuration, and of every known shape.
    pub fn of(config: &Config) -> Self {
        let shapes = Rules { secrets: true, personal: BTreeSet::new(), patterns: Arc::from([]) };
        Self { rules: with_known(&shapes, config), redactor: OnceLock::new() }
    }

    /// Whether a text holds one.
    pub fn are_in(&self, text: &str) -> bool {
        let redactor = self.redactor.get_or_init(|| Redactor::new(&self.rules));
        // Behind another word: what is taken for a credential only where it is a whole text, such as 32 hexadecimal digits, is as a rule the
        // name of something where it is a part of a URL.
        matches!(redactor.text(&format!("of {text}"), &mut Counts::default()), Cow::Owned(_))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolgate_config::check::{Source, read};

    use super::*;

    const FILE: &str = r#"
providers: { p: { kind: openai, api_key: "${K}" } }
redaction: { patterns: [ { name: ticket, regex: "TCK-[0-9]{6}" } ] }
"#;

    #[test]
    fn credentials_are_known_and_what_urls_are_for_is_none() {
        let env = |name: &str| (name == "K").then(|| "SECRET-CANARY-1".to_owned());
        let config = read(&Source { path: Path::new("toolgate.yaml"), text: FILE, env: &env }).unwrap();
        let credentials = Credentials::of(&config);
        let table = [
            ("SECRET-CANARY-1", true),
            ("x SECRET-CANARY-1 y", true),
            ("SECRET%2DCANARY%2D1", true),
            ("U0VDUkVULUNBTkFSWS0x", true),
            ("AKIAIOSFODNN7EXAMPLQ", true),
            ("ghp_0123456789abcdefghijABCDEFGHIJ012345", true),
            ("SECRET-CANARY", false),
            ("TCK-123456", false),
            ("ann@example.org", false),
            ("DE89370400440532013000", false),
            ("4111111111111111", false),
            ("192.0.2.7", false),
            ("A-1000", false),
            ("6f1d1c1e-0d3b-4c6e-9a51-8d2a1f0f3c11", false),
            ("0123456789abcdef0123456789abcdef", false),
            ("how do I reset my password?", false),
            ("gpt-4o-mini", false),
            ("", false),
        ];
        for (text, expected) in table {
            assert_eq!(credentials.are_in(text), expected, "{text}");
        }
    }
}
