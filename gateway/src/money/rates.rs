//! How the rates stand, in the headers that OpenAI has for it.

use std::fmt::Write;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use toolgate_policies::counters::RateReading;
use toolgate_policies::limits::What;

/// Limit, what remains, and when all of it is there again.
type Names = [HeaderName; 3];

const REQUESTS: Names = [
    HeaderName::from_static("x-ratelimit-limit-requests"),
    HeaderName::from_static("x-ratelimit-remaining-requests"),
    HeaderName::from_static("x-ratelimit-reset-requests"),
];
const TOKENS: Names = [
    HeaderName::from_static("x-ratelimit-limit-tokens"),
    HeaderName::from_static("x-ratelimit-remaining-tokens"),
    HeaderName::from_static("x-ratelimit-reset-tokens"),
];

/// The headers for these rates. Where several limit the same, the one that has the least left is told: it is the first to be in the way.
pub fn headers(rates: &[RateReading]) -> Vec<(HeaderName, HeaderValue)> {
    let mut headers = Vec::with_capacity(REQUESTS.len() + TOKENS.len());
    for ([limit, remaining, reset], what) in [(REQUESTS, What::RequestRate), (TOKENS, What::TokenRate)] {
        let tightest = rates.iter().filter(|rate| rate.limit.id.what == what).min_by_key(|rate| rate.remaining);
        if let Some(rate) = tightest {
            headers.push((limit, rate.limit.most.into()));
            headers.push((remaining, rate.remaining.into()));
            // What a duration is written with is always a header value.
            headers.extend(HeaderValue::try_from(duration(rate.reset)).ok().map(|duration| (reset, duration)));
        }
    }
    headers
}

/// As Go writes durations, and OpenAI with it: `6m0s`, `1.2s`, `120ms`; never less than it is.
fn duration(duration: Duration) -> String {
    let millis = duration.as_secs().saturating_mul(1000).saturating_add(u64::from(duration.subsec_nanos().div_ceil(1_000_000)));
    if millis < 1000 {
        return if millis == 0 { "0s".to_owned() } else { format!("{millis}ms") };
    }
    let (minutes, mut text) = (millis / 60_000, String::with_capacity(16));
    if minutes > 0 {
        // Writing to a text does not fail.
        let _ = write!(text, "{minutes}m");
    }
    let (seconds, mut part, mut places) = (millis / 1000 % 60, millis % 1000, 3);
    let _ = write!(text, "{seconds}");
    if part > 0 {
        while part % 10 == 0 {
            (part, places) = (part / 10, places - 1);
        }
        let _ = write!(text, ".{part:0places$}");
    }
    text.push('s');
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::HeaderMap;
    use toolgate_policies::limits::{CounterId, Limit, Scope};

    use super::*;

    #[test]
    fn durations_are_written_as_openai_writes_them() {
        let table = [
            (0, "0s"),
            (1, "1ms"),
            (999, "999ms"),
            (1000, "1s"),
            (1200, "1.2s"),
            (60_000, "1m0s"),
            (61_050, "1m1.05s"),
            (360_000, "6m0s"),
        ];
        for (millis, expected) in table {
            assert_eq!(duration(Duration::from_millis(millis)), expected);
        }
        assert_eq!(duration(Duration::from_nanos(1)), "1ms");
    }

    #[test]
    fn the_tightest_rate_is_told() {
        let rate = |what, most, remaining| RateReading {
            limit: Arc::new(Limit::new(CounterId { scope: Scope::Everybody, what }, most)),
            remaining,
            reset: Duration::from_secs(1),
        };
        let told: HeaderMap =
            headers(&[rate(What::RequestRate, 100, 7), rate(What::RequestRate, 10, 3), rate(What::Concurrent, 1, 0)])
                .into_iter()
                .collect();
        assert_eq!(told["x-ratelimit-limit-requests"], "10");
        assert_eq!(told["x-ratelimit-remaining-requests"], "3");
        assert_eq!(told["x-ratelimit-reset-requests"], "1s");
        assert!(!told.contains_key("x-ratelimit-limit-tokens"));
    }
}
