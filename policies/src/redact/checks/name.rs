//! Names that say that their value is secret: `DB_PASSWORD`, `apiKey`, `x-api-key`, `client_secret`, and what they are told from:
//! `max_tokens`, `next_page_token`, `password_reset`, `public_key`.

use crate::redact::kind::Kind;
use crate::redact::view::{Found, View, token};

/// The word that a name is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redact) enum Word {
    /// A password, in a word that means nothing else.
    Password,
    /// The same in a word that could be part of another: `pwd`, `pass`.
    Pass,
    /// A secret.
    Secret,
    /// A token.
    Token,
    /// A key: which kinds of keys are secret is said by the word before it.
    Key,
    /// Credentials.
    Credential,
    /// `auth`.
    Auth,
    /// A signature in a URL's query.
    Signature,
    /// A session's id.
    Session,
}

/// The words, in lower case, and what each is.
pub(in crate::redact) const WORDS: &[(&str, Word)] = &[
    ("password", Word::Password),
    ("passwd", Word::Password),
    ("passphrase", Word::Password),
    ("passcode", Word::Password),
    ("passwort", Word::Password),
    ("kennwort", Word::Password),
    ("sshpass", Word::Password),
    ("mot_de_passe", Word::Password),
    ("contrasena", Word::Password),
    ("contraseña", Word::Password),
    ("pwd", Word::Pass),
    ("pass", Word::Pass),
    ("secret", Word::Secret),
    ("token", Word::Token),
    ("key", Word::Key),
    ("credential", Word::Credential),
    ("credentials", Word::Credential),
    ("auth", Word::Auth),
    ("signature", Word::Signature),
    ("sig", Word::Signature),
    ("jsessionid", Word::Session),
    ("phpsessid", Word::Session),
    ("asp.net_sessionid", Word::Session),
];

/// How far a name is read, in bytes, before its word and behind it.
const REACH: usize = 48;

/// A name that was read.
#[derive(Clone, Copy, Debug)]
pub(in crate::redact) struct Name<'t> {
    pub(in crate::redact) word: Word,
    /// Where it begins.
    pub(in crate::redact) from: usize,
    /// Where it ends.
    pub(in crate::redact) to: usize,
    /// What of it stands before the word.
    pub(in crate::redact) prefix: &'t [u8],
    /// It stands in the query of a URL, where `key` alone is one.
    pub(in crate::redact) in_query: bool,
}

impl<'t> Name<'t> {
    /// The name whose word stands from `start` to `end`, if it is one that means a secret.
    pub(in crate::redact) fn read(word: Word, view: &View<'t>, start: usize, end: usize) -> Found<Option<Self>> {
        if !begins(word, view, start) {
            return Ok(None);
        }
        let to = view.run(end, REACH, in_name)?;
        let mut from = view.run_back(start, REACH, in_name);
        if word == Word::Key && from == start && view.before(start) == Some(b' ') {
            from = view.run_back(start - 1, REACH / 2, in_name);
        }
        let in_query = matches!(view.before(from), Some(b'?' | b'&'));
        let name = Self { word, from, to, prefix: view.slice(from, start), in_query };
        Ok((name.is_secret(view.slice(end, to)) && to - end < REACH).then_some(name))
    }

    /// Whether such names are used for other things as well, so that the value must look like a secret.
    pub(in crate::redact) fn is_vague(&self) -> bool {
        matches!(self.word, Word::Auth | Word::Signature | Word::Session) || (self.word == Word::Pass && self.prefix.is_empty())
    }

    /// What its value is.
    pub(in crate::redact) fn kind(&self) -> Kind {
        match self.word {
            Word::Password | Word::Pass => Kind::Password,
            Word::Secret if ends_with_any(self.prefix, &["aws"]) => Kind::AwsKey,
            Word::Secret => Kind::Secret,
            Word::Token if contains(self.prefix, b"aws") || contains(self.prefix, b"amz") => Kind::AwsKey,
            Word::Token => Kind::Token,
            Word::Key => key_kind(self.prefix),
            Word::Credential | Word::Auth => Kind::Credential,
            Word::Signature => Kind::Signature,
            Word::Session => Kind::Cookie,
        }
    }

    /// Whether it is the word `key` alone in the query of a URL.
    pub(in crate::redact) fn is_key_of_query(&self) -> bool {
        self.in_query && self.word == Word::Key && self.prefix.is_empty()
    }

    fn is_secret(&self, rest: &[u8]) -> bool {
        let of_word = match self.word {
            Word::Key => is_secret_key(self.prefix) || self.is_key_of_query(),
            Word::Token => !ends_with_any(self.prefix, HARMLESS_TOKENS),
            Word::Secret => !ends_with_any(self.prefix, &["client_id_", "no_", "is_", "has_"]),
            _ => true,
        };
        of_word && (rest.is_empty() || self.goes_on_with(rest))
    }

    /// Whether a name that goes on behind its word is still that of the secret itself: `PASSWORD_PROD`, not `password_reset`.
    fn goes_on_with(&self, rest: &[u8]) -> bool {
        let first = rest.first().copied().unwrap_or_default();
        if first.is_ascii_lowercase() {
            return false;
        }
        let environment = rest.iter().chain(self.prefix).all(|&byte| !byte.is_ascii_lowercase()) && first == b'_';
        segments(rest).all(|segment| {
            segment.iter().all(u8::is_ascii_digit) || one_of(segment, VARIANTS) || (environment && !one_of(segment, DESCRIPTIONS))
        })
    }
}

/// Whether a word may begin here.
fn begins(word: Word, view: &View<'_>, start: usize) -> bool {
    let Some(before) = view.before(start) else { return true };
    let hump = view.slice(start, start + 1).first().is_some_and(u8::is_ascii_uppercase)
        && (before.is_ascii_lowercase() || before.is_ascii_digit());
    let apart = !before.is_ascii_alphanumeric();
    match word {
        Word::Password => true,
        Word::Pass => apart || hump || ends_with_any(view.left(start, 8), &["mysql_", "sql", "db", "user", "admin", "root"]),
        Word::Secret | Word::Token => apart || hump || ends_with_any(view.left(start, 12), OWNERS),
        Word::Key => true,
        Word::Credential | Word::Auth | Word::Signature | Word::Session => apart || hump || matches!(word, Word::Session),
    }
}

/// What may stand right before `token` and `secret`: `authtoken`, `clientsecret`.
#[rustfmt::skip]
const OWNERS: &[&str] = &[
    "auth", "access", "client", "app", "api", "bot", "user", "session", "refresh", "id", "csrf", "xsrf", "device", "web",
    "hook", "consumer", "oauth", "bearer", "private", "personal", "shared", "master",
];

/// Tokens that let nobody in: a place in a list, a unit of text.
#[rustfmt::skip]
const HARMLESS_TOKENS: &[&str] = &[
    "page", "next", "nextpage", "continuation", "sync", "cursor", "previous", "prev", "pagination", "delta", "bos", "eos",
    "pad", "unk", "sep", "cls", "mask", "stop", "special", "max", "min", "num", "per", "cancellation", "cancel", "end",
    "start", "resume", "sample", "first", "last", "subword", "image", "vocab", "tokenizer",
];

/// Which keys are secret: what stands before `key`.
#[rustfmt::skip]
const SECRET_KEYS: &[&str] = &[
    "api", "secret", "access", "private", "priv", "encryption", "encrypt", "crypt", "signing", "sign", "signature", "master",
    "account", "auth", "authkey", "service", "service_role", "role", "shared", "shared_access", "storage", "ssh", "deploy",
    "consumer", "subscription", "function", "functions", "host", "webhook", "hmac", "aes", "jwt", "jwk", "session", "security",
    "cookie", "app", "application", "client", "admin", "license", "licence", "ingest", "ingestion", "integration", "write",
    "server", "project", "bot", "openai", "anthropic", "mistral", "groq", "cohere", "gemini", "google", "aws", "azure",
    "stripe", "twilio", "sendgrid", "mailgun", "mailchimp", "datadog", "dd_api", "dd_app", "fernet", "vault", "unseal",
    "recovery", "nextauth", "laravel", "django", "rails", "wallet", "symmetric", "instrumentation", "user", "pgp", "gpg",
    "tls", "ssl", "rsa", "x-api", "rest", "maps", "personal", "authentication", "authorization",
];

/// What may stand behind the word, and it is still the secret itself.
#[rustfmt::skip]
const VARIANTS: &[&str] = &[
    "prod", "production", "live", "test", "testing", "dev", "development", "staging", "stage", "qa", "local", "old", "new",
    "current", "previous", "primary", "secondary", "main", "value", "val", "plain", "plaintext", "raw", "text", "string",
    "str", "base", "base64", "b64", "enc", "encrypted", "default", "admin", "root", "user", "confirm", "confirmation", "again",
    "repeat", "a", "b", "v1", "v2", "v3", "ro", "rw",
];

/// What stands at the end of names that only speak of a secret.
#[rustfmt::skip]
const DESCRIPTIONS: &[&str] = &[
    "URL", "URI", "FILE", "PATH", "DIR", "NAME", "ID", "IDS", "COUNT", "TTL", "EXPIRY", "EXPIRES", "EXPIRATION", "EXPIRED",
    "LENGTH", "LIMIT", "TYPE", "SIZE", "MAX", "MIN", "ENABLED", "DISABLED", "HOST", "PORT", "ENDPOINT", "ARN", "VERSION",
    "ALGORITHM", "ALG", "FORMAT", "POLICY", "PROVIDER", "MODE", "METHOD", "HEADER", "PREFIX", "SUFFIX", "FIELD", "REGEX",
    "PATTERN", "RESET", "REQUIRED", "ROTATION", "AGE", "DAYS", "HOURS", "MINUTES", "SECONDS", "TIMEOUT", "LIFETIME", "ISSUER",
    "AUDIENCE", "SCOPE", "SCOPES", "STORE", "MANAGER", "ROLE", "REGION", "BITS", "COST", "ROUNDS", "ITERATIONS", "LABEL",
    "HINT", "CACHE", "BUDGET", "RATE", "USAGE", "STRENGTH", "LOCATION", "OWNER", "CHECK",
];

/// Which keys of an environment are none: what stands before `KEY`.
#[rustfmt::skip]
const HARMLESS_KEYS: &[&str] = &[
    "public", "pub", "primary", "foreign", "sort", "partition", "cache", "hot", "index", "unique", "candidate", "row", "object", "s3", "map",
    "hash", "range", "registry", "tag", "i18n", "translation", "dict", "config", "group", "redis", "queue", "routing", "message", "lookup",
    "publishable", "site", "bucket", "composite", "dedup", "idempotency", "no", "any", "press",
];

fn is_secret_key(prefix: &[u8]) -> bool {
    let trimmed = trim_end(prefix);
    // `PUBLIC_API_KEY` is one all the same; `NEXT_PUBLIC_…` says that it is sent to browsers, and still it is a key.
    if ends_with_word(trimmed, SECRET_KEYS) {
        return true;
    }
    // The environment names keys by whose they are.
    trimmed.len() >= 2
        && prefix.ends_with(b"_")
        && prefix.iter().all(|byte| !byte.is_ascii_lowercase())
        && !ends_with_word(trimmed, HARMLESS_KEYS)
}

fn key_kind(prefix: &[u8]) -> Kind {
    let trimmed = trim_end(prefix);
    if ends_with_any(trimmed, &["private", "priv", "ssh", "pgp", "gpg", "rsa"]) {
        Kind::PrivateKey
    } else if contains(prefix, b"aws") || ends_with_any(trimmed, &["secret_access", "secretaccess"]) {
        Kind::AwsKey
    } else if ends_with_any(trimmed, &["account", "sharedaccess", "shared_access", "storage", "subscription"]) {
        Kind::AzureKey
    } else if ends_with_any(
        trimmed,
        &["secret", "encryption", "encrypt", "signing", "sign", "master", "hmac", "aes", "jwt", "session", "cookie", "fernet"],
    ) {
        Kind::Secret
    } else {
        Kind::ApiKey
    }
}

fn in_name(byte: u8) -> bool {
    token(byte) || matches!(byte, b'.' | b'$')
}

fn trim_end(name: &[u8]) -> &[u8] {
    let kept = name.iter().rposition(|byte| byte.is_ascii_alphanumeric()).map_or(0, |last| last + 1);
    name.get(..kept).unwrap_or_default()
}

fn ends_with_any(name: &[u8], words: &[&str]) -> bool {
    let name = trim_end(name);
    words.iter().any(|word| ends_with(name, word.trim_end_matches('_')))
}

fn ends_with(name: &[u8], word: &str) -> bool {
    name.len()
        .checked_sub(word.len())
        .and_then(|from| name.get(from..))
        .is_some_and(|end| end.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether a name ends with one of some words, and the word begins where a word can begin.
fn ends_with_word(name: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| {
        ends_with(name, word) && {
            let from = name.len() - word.len();
            let before = from.checked_sub(1).and_then(|place| name.get(place)).copied();
            let hump =
                name.get(from).is_some_and(u8::is_ascii_uppercase) && before.is_some_and(|byte| !byte.is_ascii_uppercase());
            before.is_none_or(|byte| !byte.is_ascii_alphabetic()) || hump || word.len() >= 6
        }
    })
}

fn contains(name: &[u8], what: &[u8]) -> bool {
    name.windows(what.len()).any(|window| window.eq_ignore_ascii_case(what))
}

fn one_of(segment: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| segment.eq_ignore_ascii_case(word.as_bytes()))
}

/// The parts of a name: at `_`, `-`, `.` and where a capital follows a small letter.
fn segments(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.split(|byte| !byte.is_ascii_alphanumeric())
        .flat_map(|part| part.chunk_by(|a, b| !(a.is_ascii_lowercase() && b.is_ascii_uppercase())))
        .filter(|part| !part.is_empty())
}
