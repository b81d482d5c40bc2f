//! The tables of `providers:` and `models:`.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::class::TrustZone;
use crate::provider::ProviderKind;
use crate::raw::money::{Budget, Price, Rates, Usd};
use crate::raw::section::{At, section};
use crate::raw::shape::{Count, Hold};
use crate::raw::text::Text;

section! {
    /// An account at a model API.
    Provider {
        /// The dialect it speaks.
        kind: ProviderKind = required,
        /// Where it is, with the `/v1` that most have. Default: the address of its kind; `openai_compatible` has none.
        base_url: Text,
        /// Its key, from the environment or a file; in clear only for a provider on loopback.
        api_key: Text,
        /// How far it is trusted with what tools return.
        trust_zone: TrustZone = "external_global",
        /// Until a connection stands.
        connect_timeout: Duration = "5s",
        /// From the request's last byte to the answer's first.
        first_byte_timeout: Duration = "120s",
        /// Between two chunks of an answer.
        idle_timeout: Duration = "60s",
        /// Tries after the first, while nothing has been received.
        retries: Count<0, 10> = "2",
    }
}

section! {
    /// A name that callers send, and what it stands for.
    Model {
        /// Who answers: a name of `providers`.
        provider: Text = required,
        /// What the provider calls it. Default: the model's own name.
        upstream_model: Text,
        /// Goes before the caller's own system text.
        system_prompt: Text,
        /// Members of the request, used where the caller is silent.
        params: Map<String, Value> = "{}",
        /// What its tokens cost: US dollars for a million, or `free`. Default: what the catalogue says.
        price: Price,
        /// How many tokens fit into it. Default: what the catalogue says, else 8192.
        context_window: Count<1, { u32::MAX }>,
        /// Which tools a run may be offered, and how far it may go. Absent: no tools.
        tools: ModelTools,
        /// How many characters of a streamed round are held back until it is clear that it is the answer: a number, or `all`.
        stream_hold: Hold = "256",
        /// Models that answer in its place when its provider fails, in order.
        fallback: Vec<At<Text>> = "[]",
        /// How much may be used of it in a calendar window.
        budgets: Vec<At<Budget>> = "[]",
        /// How fast its requests may come.
        rate: Rates = "[]",
    }
}

section! {
    /// Which tools a run may be offered, and how far it may go.
    ModelTools {
        /// Every tool of these groups.
        groups: Vec<At<Text>> = "[]",
        /// These tools.
        names: Vec<At<Text>> = "[]",
        /// Upstream calls that may ask for tools, in one run.
        max_rounds: Count<1, 20> = "5",
        /// Tool calls in one run.
        max_calls: Count<1, { u32::MAX }> = "32",
        /// What one run may cost, in US dollars with up to 9 decimals. Default: no limit.
        max_cost_usd: Usd<1>,
        /// How long one run may take. Default: `server.request_timeout`.
        max_time: Duration,
        /// Read-only calls of one round that run side by side.
        parallel: Count<1, 1024> = "8",
    }
}
