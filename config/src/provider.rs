//! `providers:`: an account at a model API.

use std::time::Duration;

use crate::address::BaseUrl;
use crate::class::TrustZone;
use crate::names::ProviderName;
use crate::secret::Secret;

/// An account at a model API: address, key, dialect, trust zone, patience.
#[derive(Debug)]
pub struct Provider {
    /// Its name in the file.
    pub name: ProviderName,
    /// The dialect it speaks.
    pub kind: ProviderKind,
    /// Where it is; the paths of the API are appended.
    pub base_url: BaseUrl,
    /// Sent as a bearer. With `auth: passthrough` the caller's is sent in its place.
    pub api_key: Option<Secret>,
    /// How far it is trusted.
    pub trust_zone: TrustZone,
    /// Until a connection stands, TLS included.
    pub connect_timeout: Duration,
    /// From the request's last byte to the answer's first.
    pub first_byte_timeout: Duration,
    /// Between two chunks of an answer.
    pub idle_timeout: Duration,
    /// Tries after the first, while nothing has been received.
    pub retries: u32,
}

/// The dialects of model APIs that are spoken so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// OpenAI itself.
    OpenAi,
    /// Anything that speaks OpenAI's chat completions.
    OpenAiCompatible,
}
