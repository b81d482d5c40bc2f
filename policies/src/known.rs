//! The gateway's own secrets: what the operator gave it to prove who it is, to models and to tools. It knows them exactly, so it knows them
//! again wherever they turn up, in whatever of the usual codings: a tool that echoes its request must not tell a model what was in it.
//!
//! They become one more pattern of the rules, so that whatever takes secrets out of texts takes these out as well.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use toolgate_config::Config;
use toolgate_config::mcp::Reach;
use toolgate_config::redaction::{Pattern, Rules};
use toolgate_config::store::{CountersUrl, StoreUrl};
use toolgate_config::template::{Part, Template};
use toolgate_config::tool::Work;

/// The shortest value that is known again, in bytes: shorter ones are words.
const SHORTEST: usize = 8;

/// The shortest part of a value in base64 that is known again where it stands in the middle of more.
const SHORTEST_CORE: usize = 12;

/// The kind of a secret of the gateway's own.
const KIND: &str = "secret";

/// Words in the name of a header, a parameter, a variable or an option whose value is a secret.
const SECRET_WORDS: [&str; 17] = [
    "authorization",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "api-key",
    "api_key",
    "accesskey",
    "access-key",
    "access_key",
    "private-key",
    "private_key",
    "credential",
    "cookie",
    "signature",
];

/// The same, where it is the whole name or the last word of it.
const SECRET_ENDS: [&str; 7] = ["key", "auth", "pass", "pwd", "sig", "jwt", "pat"];

/// Before a credential in a header.
const SCHEMES: [&str; 5] = ["bearer ", "basic ", "token ", "apikey ", "bot "];

/// The rules, with the gateway's own secrets among the patterns.
pub fn with_known(rules: &Rules, config: &Config) -> Rules {
    match pattern(&values(config)) {
        Some(known) => {
            Rules { patterns: std::iter::once(known).chain(rules.patterns.iter().cloned()).collect(), ..rules.clone() }
        }
        None => rules.clone(),
    }
}

/// The secrets of a configuration, in clear.
pub fn values(config: &Config) -> BTreeSet<String> {
    let mut values = Values::default();
    config.providers.values().filter_map(|provider| provider.api_key.as_ref()).for_each(|key| values.take(key.expose()));
    config.server.admin_token.iter().for_each(|token| values.take(token.expose()));
    if let StoreUrl::Postgres(url) = &config.store.url {
        values.url(url.expose());
    }
    if let CountersUrl::Redis(url) = &config.store.counters {
        values.url(url.expose());
    }
    for tool in config.tools.iter() {
        if let Work::Http(work) = &tool.work {
            work.headers.iter().chain(&work.query).for_each(|(name, template)| values.template(name, template));
        }
    }
    config.mcp_servers.iter().for_each(|server| values.reach(&server.reach));
    values.0
}

#[derive(Default)]
struct Values(BTreeSet<String>);

impl Values {
    fn take(&mut self, value: &str) {
        let value = value.trim();
        let scheme =
            SCHEMES.iter().find(|scheme| value.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme)));
        let bare = scheme.map_or(value, |scheme| value[scheme.len()..].trim());
        if bare.len() >= SHORTEST {
            self.0.insert(bare.to_owned());
        }
    }

    fn named(&mut self, name: &str, value: &str) {
        if is_secret_name(name) {
            self.take(value);
        }
    }

    fn template(&mut self, name: &str, template: &Template) {
        for part in &template.parts {
            if let Part::Text(text) = part {
                self.named(name, text);
            }
        }
    }

    /// A header, as programs that reach a server elsewhere are given it: by itself, or behind the equals sign of an option.
    fn header(&mut self, arg: &str) {
        let (name, value) = arg.split_once(':').unwrap_or_default();
        self.named(name.rsplit('=').next().unwrap_or_default(), value);
    }

    /// The password in a URL, and what its query holds.
    fn url(&mut self, url: &str) {
        let authority = url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?']).next().unwrap_or_default();
        if let Some((_, password)) = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':')) {
            self.take(password);
        }
        let query = url.split_once('?').map_or("", |(_, query)| query);
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            self.named(name, &percent_decode_str(value).decode_utf8_lossy());
        }
    }

    fn reach(&mut self, reach: &Reach) {
        match reach {
            Reach::Http { headers, url } => {
                headers.iter().for_each(|(name, value)| self.named(name, value.expose()));
                self.url(&url.path);
            }
            Reach::Stdio { args, env, .. } => {
                env.iter().for_each(|(name, value)| self.named(name, value.expose()));
                let mut option = String::new();
                for arg in args {
                    let arg = arg.expose();
                    match arg.split_once('=') {
                        Some((name, value)) if name.starts_with('-') => self.named(name, value),
                        _ if option.starts_with('-') && !option.contains('=') && !arg.starts_with('-') => {
                            self.named(&option, arg)
                        }
                        _ => {}
                    }
                    self.url(arg);
                    self.header(arg);
                    arg.clone_into(&mut option);
                }
            }
        }
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit(['-', '_', '.']).next().unwrap_or_default();
    SECRET_WORDS.iter().any(|word| name.contains(word)) || SECRET_ENDS.contains(&last)
}

/// A pattern that finds each of them.
fn pattern(values: &BTreeSet<String>) -> Option<Pattern> {
    let mut forms: Vec<String> = values.iter().flat_map(|value| forms(value)).collect();
    // The first that fits is taken: the longer ones, which have shorter ones in them, go first.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    let regex = forms.iter().map(|form| escaped(form)).collect::<Vec<_>>().join("|");
    (!forms.is_empty()).then(|| Pattern { name: Arc::from(KIND), regex: Arc::from(format!("(?:{regex})")) })
}

/// A secret as it may turn up.
fn forms(value: &str) -> Vec<String> {
    let bytes = value.as_bytes();
    let mut forms = vec![value.to_owned(), percent(bytes, b"-._~"), percent(bytes, b""), hex(bytes)];
    forms.push(forms[1].to_ascii_lowercase());
    forms.push(forms[3].to_ascii_uppercase());
    forms.push(value.replace('\\', "\\\\").replace('"', "\\\""));
    for alphabet in [b"+/", b"-_"] {
        let whole = base64(bytes, *alphabet);
        forms.push(format!("{whole}{}", "=".repeat(whole.len().wrapping_neg() % 4)));
        forms.push(whole);
        // In the middle of more, what the neighbours have a share in is not known.
        for shift in 0..3 {
            let shifted = base64(&[&vec![0; shift][..], bytes].concat(), *alphabet);
            let start = (shift * 8).div_ceil(6);
            let end = (shift + bytes.len()) * 8 / 6;
            let core = shifted.get(start..end).unwrap_or_default();
            if core.len() >= SHORTEST_CORE {
                forms.push(core.to_owned());
            }
        }
    }
    // A form whose letters were changed only in their case may be the secret of nobody.
    let lower = value.to_ascii_lowercase();
    forms.retain(|form| form == value || form.to_ascii_lowercase() != lower);
    forms
}

fn percent(bytes: &[u8], plain: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || plain.contains(byte) {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Base64 without padding.
fn base64(bytes: &[u8], last: [u8; 2]) -> String {
    const DIGITS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let digit = |value: u32| {
        let value = (value & 63) as usize;
        char::from(DIGITS.get(value).copied().unwrap_or_else(|| last[value & 1]))
    };
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        out.extend((0..=chunk.len()).map(|at| digit(group >> (18 - 6 * at))));
    }
    out
}

/// A text as a regular expression that finds it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if character.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolgate_config::check::{Source, read};

    use super::*;

    const FILE: &str = r#"
server: { admin_token: "admin-CANARY-1" }
providers: { p: { kind: openai, api_key: "${K}" } }
store: { url: "postgres://u:store-CANARY@127.0.0.1/x" }
groups: { g: { data_class: public, egress: ["h.test:443"] } }
tools:
  - name: t
    group: g
    description: D
    parameters: { type: object, properties: { q: { type: string } } }
    http:
      url: "https://h.test/?api_key=url-CANARY-1&kind=not-a-secret"
      headers: { authorization: "Bearer header-CANARY", x-note: "nothing secret", x-tenant-key: "tenant-CANARY{q}" }
mcp_servers:
  far: { url: "https://h.test/mcp?token=query-CANARY%211&kind=not-a-secret", headers: { X-Api-Key: "far-CANARY-1" }, group: g }
  near:
    command: x
    args: ["--token=arg-CANARY-1", "--password", "arg-CANARY-2", "--zone", "not-a-secret", "mysql://u:dsn-CANARY@h/x", "--header", "Authorization: Bearer arg-CANARY-3",
           "--header=X-Api-Key: arg-CANARY-4", "https://r.test/mcp?api_key=arg-CANARY-5&kind=not-a-secret"]
    env: { NEAR_TOKEN: "env-CANARY-1", NEAR_ZONE: "not-a-secret", SHORT_TOKEN: "short" }
    group: g
"#;

    #[test]
    fn the_secrets_of_a_configuration_are_known_by_their_names() {
        let env = |name: &str| (name == "K").then(|| "provider-CANARY".to_owned());
        let config = read(&Source { path: Path::new("toolgate.yaml"), text: FILE, env: &env }).unwrap();
        let expected = [
            "admin-CANARY-1",
            "arg-CANARY-1",
            "arg-CANARY-2",
            "arg-CANARY-3",
            "arg-CANARY-4",
            "arg-CANARY-5",
            "dsn-CANARY",
            "env-CANARY-1",
            "far-CANARY-1",
            "header-CANARY",
            "provider-CANARY",
            "query-CANARY!1",
            "store-CANARY",
            "tenant-CANARY",
            "url-CANARY-1",
        ];
        assert_eq!(values(&config).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn case_52_a_secret_is_known_in_its_codings() {
        let known = regex::Regex::new(&pattern(&BTreeSet::from(["SECRET-CANARY/1".to_owned()])).unwrap().regex).unwrap();
        let table = [
            ("a SECRET-CANARY/1 b", "a * b"),
            ("?d=SECRET-CANARY%2F1&x", "?d=*&x"),
            ("?d=SECRET%2DCANARY%2F1", "?d=*"),
            ("SECRET-CANARY%2f1", "SECRET-CANARY%2f1"),
            ("U0VDUkVULUNBTkFSWS8x", "*"),
            ("5345435245542d43414e4152592f31", "*"),
            ("secret-canary/1", "secret-canary/1"),
            ("SECRET-CANARY/2", "SECRET-CANARY/2"),
        ];
        for (text, expected) in table {
            assert_eq!(known.replace_all(text, "*"), expected, "{text}");
        }
        // Behind `user:`, `ab` and `a`, as in a header for a login: no more than its ends are left.
        for before in ["user:", "ab", "a"] {
            let coded = base64(format!("{before}SECRET-CANARY/1;").as_bytes(), *b"+/");
            let left = known.replace_all(&coded, "*").into_owned();
            assert!(left.contains('*') && left.len() < before.len() * 2 + 8, "{left}");
        }
    }

    #[test]
    fn base64_is_as_it_is_elsewhere() {
        for (text, expected) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("\u{ff}\u{ff}\u{3e}", "w7/Dvz4")]
        {
            assert_eq!(base64(text.as_bytes(), *b"+/"), expected, "{text}");
        }
    }
}
