//! How the rates stand, in the headers that OpenAI has for it.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
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
pub fn headers(rates: &[RateReading]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (names, what) in [(REQUESTS, What::RequestRate), (TOKENS, What::TokenRate)] {
        let tightest = rates.iter().filter(|rate| rate.limit.id.what == what).min_by_key(|rate| rate.remaining);
        if let Some(rate) = tightest {
            let values = [rate.limit.most.to_string(), rate.remaining.to_string(), duration(rate.reset)];
            let pairs = names.into_iter().zip(values);
            headers.extend(pairs.filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?))));
        }
    }
    headers
}

/// As Go writes durations, and OpenAI with it: `6m0s`, `1.2s`, `120ms`; never less than it is.
fn duration(duration: Duration) -> String {
    let millis = duration.as_nanos().div_ceil(1_000_000);
    let (minutes, millis) = (millis / 60_000, millis % 60_000);
    if minutes == 0 && millis < 1000 {
        return if millis == 0 { "0s".to_owned() } else { format!("{millis}ms") };
    }
    let part = match millis % 1000 {
        0 => String::new(),
        part => format!(".{part:03}").trim_end_matches('0').to_owned(),
    };
    let seconds = format!("{}{part}s", millis / 1000);
    if minutes == 0 { seconds } else { format!("{minutes}m{seconds}") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolgate_policies::limits::{CounterId, Limit, Scope};

    use super::*;

    #[test]
    fn durations_are_written_as_openai_writes_them() {
        let table = [(0, "0s"), (1, "1ms"), (999, "999ms"), (1000, "1s"), (1200, "1.2s"), (60_000, "1m0s"), (360_000, "6m0s")];
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
        let told = headers(&[rate(What::RequestRate, 100, 7), rate(What::RequestRate, 10, 3), rate(What::Concurrent, 1, 0)]);
        assert_eq!(told["x-ratelimit-limit-requests"], "10");
        assert_eq!(told["x-ratelimit-remaining-requests"], "3");
        assert_eq!(told["x-ratelimit-reset-requests"], "1s");
        assert!(!told.contains_key("x-ratelimit-limit-tokens"));
    }
}
