//! What was taken out: the word that stands in `[redacted:kind]`, and how often each was.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt;
use std::sync::Arc;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)+) => {
        /// What kind of thing was taken out.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $name,)+
            /// What a pattern of the operator's own matched: the pattern's name.
            Pattern(Arc<str>),
        }

        impl Kind {
            /// Every kind that is built in.
            pub const BUILT_IN: &'static [Self] = &[$(Self::$name),+];

            /// The word of `[redacted:kind]` and of the metric.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $word,)+
                    Self::Pattern(name) => name,
                }
            }
        }
    };
}

kinds! {
    /// A password, wherever it stands: a field, a URL, a connection string.
    Password = "password",
    /// A value whose name says that it is secret.
    Secret = "secret",
    /// A token whose issuer is not known: a bearer's, or a value named so.
    Token = "token",
    /// A key of an API.
    ApiKey = "api_key",
    /// A private key: PEM, or a field named so.
    PrivateKey = "private_key",
    /// What an `Authorization` header or a login carries.
    Credential = "credential",
    /// The value of a cookie.
    Cookie = "cookie",
    /// A JSON Web Token.
    Jwt = "jwt",
    /// A signature that lets whoever has the URL in.
    Signature = "signature",
    /// The URL of a webhook, which is its own credential.
    Webhook = "webhook",
    /// A key of AWS: its id, its secret, a session's token.
    AwsKey = "aws_key",
    /// A key of Azure.
    AzureKey = "azure_key",
    /// A key or a token of Google's.
    GoogleKey = "google_key",
    /// A token of GitHub's.
    GithubToken = "github_token",
    /// A token of GitLab's.
    GitlabToken = "gitlab_token",
    /// A token of Slack's.
    SlackToken = "slack_token",
    /// A bot's token: Discord, Telegram.
    BotToken = "bot_token",
    /// A key of Stripe's.
    StripeKey = "stripe_key",
    /// A token of a package registry.
    RegistryToken = "registry_token",
    /// An e-mail address.
    Email = "email",
    /// A telephone number.
    Phone = "phone",
    /// A bank account number.
    Iban = "iban",
    /// A payment card's number.
    Card = "card",
    /// An IP address.
    Ip = "ip",
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How often each kind was taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<Kind, u32>);

impl Counts {
    /// One more of a kind.
    pub fn add(&mut self, kind: &Kind) {
        self.add_many(kind, 1);
    }

    /// All of the other's.
    pub fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(kind, count)| self.add_many(kind, count));
    }

    /// The kinds, each with how often it was taken out, in the order of [`Kind`].
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.0.iter())
    }

    /// Whether nothing was taken out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add_many(&mut self, kind: &Kind, more: u32) {
        match self.0.get_mut(kind) {
            Some(count) => *count = count.saturating_add(more),
            None => {
                self.0.insert(kind.clone(), more);
            }
        }
    }
}

/// The kinds of [`Counts`].
#[derive(Debug)]
pub struct Iter<'a>(btree_map::Iter<'a, Kind, u32>);

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Kind, u32);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(kind, &count)| (kind, count))
    }
}

impl<'a> IntoIterator for &'a Counts {
    type Item = (&'a Kind, u32);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
