//! Whether a provider is asked a second time, and when. Pure: the time and the chance are arguments.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, HeaderName, RETRY_AFTER};

use crate::failure::Failure;
use crate::trace::Outcome;

/// The longest time that a provider may ask us to wait before a second try.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The longest first pause between two tries; it doubles from try to try.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// A hundred years, in seconds: who says more means never.
const LONGEST_TOLD: f64 = 3.2e9;

/// `retry-after` in milliseconds, as OpenAI and Azure send it beside the other.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// The pause before the next try; `None`: there is none. `attempt` counts from 1, `asked` is how long the provider said to wait, `chance` a
/// number from 0 to below 1.
pub(super) fn pause(outcome: Outcome, asked: Option<Duration>, attempt: u32, retries: u32, chance: f64) -> Option<Duration> {
    if attempt > retries || !is_worth_it(outcome) {
        return None;
    }
    match asked {
        Some(wait) if wait > LONGEST_WAIT => None,
        // Everybody was told the same time: who comes back a little later finds it less crowded.
        Some(wait) => Some(wait + FIRST_PAUSE.mul_f64(chance)),
        // The whole of the pause is left to chance, so that those who failed together do not come back together.
        None => Some((FIRST_PAUSE * 2u32.saturating_pow((attempt - 1).min(10))).min(LONGEST_WAIT).mul_f64(chance)),
    }
}

/// Whether the same provider may do better: a broken connection, a 5xx, a 429. Not where time ran out: it has been waited for already.
fn is_worth_it(outcome: Outcome) -> bool {
    match outcome {
        Outcome::ConnectError | Outcome::Cut | Outcome::ServerError | Outcome::RateLimited => true,
        Outcome::Ok | Outcome::ClientError | Outcome::Timeout | Outcome::Cancelled => false,
    }
}

/// How long the head of an answer asks to wait. The finer form is believed first; a date is counted from the provider's own clock, where
/// its answer tells it.
pub(super) fn asked(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let millis = text(RETRY_AFTER_MS).and_then(|text| text.trim().parse().ok()).map(Duration::from_millis);
    let now = text(DATE).and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or(now);
    millis.or_else(|| text(RETRY_AFTER).and_then(|text| wait(text, now)))
}

/// A provider's 429 with the time that its caller can use: what it said, if that is a time, else the one that is known otherwise.
pub(super) fn with_time(failure: Failure, asked: Option<Duration>, now: SystemTime) -> Failure {
    let Failure::UpstreamRateLimited(said) = failure else { return failure };
    let is_whole = |text: &str| text.trim().parse::<u64>().is_ok() || httpdate::parse_http_date(text.trim()).is_ok();
    let said = said.and_then(|text| if is_whole(&text) { Some(text) } else { Some(seconds(wait(&text, now)?)) });
    Failure::UpstreamRateLimited(said.or_else(|| asked.map(seconds)))
}

fn seconds(wait: Duration) -> String {
    wait.as_millis().div_ceil(1000).to_string()
}

/// How long a `Retry-After` asks to wait, in either of its forms. A date that is over is no wait.
pub(super) fn wait(text: &str, now: SystemTime) -> Option<Duration> {
    // Some say parts of a second, some more seconds than there are: either is a wait, and not none.
    if text.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && let Ok(seconds) = text.trim().parse::<f64>()
    {
        return Some(Duration::from_secs_f64(seconds.min(LONGEST_TOLD)));
    }
    let date = httpdate::parse_http_date(text.trim()).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const NOW: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn now() -> SystemTime {
        httpdate::parse_http_date(NOW).unwrap()
    }

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let table = [
            ("30", Some(30)),
            (" 0 ", Some(0)),
            ("60.5", Some(60)),
            ("99999999999999999999999", Some(3_200_000_000)),
            (".", None),
            ("1e3", None),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
            ("Sunday, 06-Nov-94 08:49:47 GMT", Some(10)),
            ("Sun, 06 Nov 1994 08:49:07 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
            ("1.5", Some(1)),
            ("", None),
        ];
        for (value, expected) in table {
            assert_eq!(wait(value, now()).map(|after| after.as_secs()), expected, "{value}");
        }
    }

    #[test]
    fn the_finer_form_is_believed_first_and_a_date_is_read_by_the_clock_of_who_wrote_it() {
        let table = [
            (headers(&[(RETRY_AFTER, "2")]), Some(2000)),
            (headers(&[(RETRY_AFTER, "2"), (RETRY_AFTER_MS, "1500")]), Some(1500)),
            (headers(&[(RETRY_AFTER, "2"), (RETRY_AFTER_MS, "soon")]), Some(2000)),
            (headers(&[(RETRY_AFTER, "Sun, 06 Nov 1994 08:49:39 GMT")]), Some(2000)),
            (headers(&[(RETRY_AFTER, "Sun, 06 Nov 1994 09:49:39 GMT"), (DATE, "Sun, 06 Nov 1994 09:49:36 GMT")]), Some(3000)),
            (headers(&[(RETRY_AFTER, "soon")]), None),
            (headers(&[]), None),
        ];
        for (headers, expected) in table {
            assert_eq!(asked(&headers, now()), expected.map(Duration::from_millis), "{headers:?}");
        }
    }

    #[test]
    fn a_caller_gets_a_time_or_none() {
        let table = [
            (Some("30"), None, Some("30")),
            (Some(NOW), None, Some(NOW)),
            (Some("soon"), None, None),
            (Some("soon"), Some(1200), Some("2")),
            (None, Some(1000), Some("1")),
            (None, None, None),
        ];
        for (said, asked, expected) in table {
            let failure = Failure::UpstreamRateLimited(said.map(str::to_owned));
            let seen = with_time(failure, asked.map(Duration::from_millis), now());
            assert_eq!(seen, Failure::UpstreamRateLimited(expected.map(str::to_owned)), "{said:?} {asked:?}");
        }
    }

    #[test]
    fn only_what_may_go_better_is_tried_again() {
        let again = [Outcome::ConnectError, Outcome::Cut, Outcome::ServerError, Outcome::RateLimited];
        let never = [Outcome::Ok, Outcome::ClientError, Outcome::Timeout, Outcome::Cancelled];
        assert!(again.into_iter().all(|outcome| pause(outcome, None, 1, 2, 0.5).is_some()));
        assert!(never.into_iter().all(|outcome| pause(outcome, None, 1, 2, 0.5).is_none()));
    }

    #[test]
    fn it_is_tried_as_often_as_the_file_says_and_only_as_soon_as_the_provider_says() {
        let pause = |asked: Option<u64>, attempt| {
            pause(Outcome::RateLimited, asked.map(Duration::from_secs), attempt, 2, 0.5).map(|pause| pause.as_millis())
        };
        let table = [
            (None, 1, Some(100)),
            (None, 2, Some(200)),
            (None, 3, None),
            (Some(0), 1, Some(100)),
            (Some(5), 2, Some(5100)),
            (Some(6), 1, None),
        ];
        for (asked, attempt, expected) in table {
            assert_eq!(pause(asked, attempt), expected, "{asked:?}, try {attempt}");
        }
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_are_wholly_left_to_chance() {
        for attempt in 1..=40 {
            let pause = |chance| pause(Outcome::ServerError, None, attempt, 40, chance).unwrap();
            let longest = (FIRST_PAUSE * 2u32.saturating_pow(attempt - 1)).min(LONGEST_WAIT);
            assert_eq!(pause(0.0), Duration::ZERO);
            assert!(pause(0.999) < longest && pause(0.999) > longest.mul_f64(0.99), "{attempt}");
        }
    }
}
