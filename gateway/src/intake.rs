//! What a request says before its body is read, and the body, bounded.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderName};
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use toolgate_config::Config;
use toolgate_policies::facts::{Caller, Requested};
use toolgate_policies::gate::{self, Shown};

use crate::failure::Failure;
use crate::wire::pass;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const API_KEY: HeaderName = HeaderName::from_static("api-key");
const USER: HeaderName = HeaderName::from_static("x-toolgate-user");
const TOOLS: HeaderName = HeaderName::from_static("x-toolgate-tools");
const MAX_ROUNDS: HeaderName = HeaderName::from_static("x-toolgate-max-rounds");
const DRY_RUN: HeaderName = HeaderName::from_static("x-toolgate-dry-run");

/// The longest name of an end user, in bytes.
const LONGEST_USER: usize = 256;

/// Room that is set aside at once for a body of known length; more only as it comes, since a length is easily claimed.
const ROOM_AT_ONCE: usize = 256 * 1024;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Route<'p> {
    /// A chat completion.
    Chat,
    /// Another path of OpenAI's API, which passes through.
    Pass(pass::Path),
    /// The models that this caller may use.
    Models,
    /// One of them.
    Model(&'p str),
    /// The trace of a run.
    Trace(&'p str),
    /// How the caller's own budgets stand.
    Spend,
}

impl<'p> Route<'p> {
    /// The route of a path, with or without `/v1`.
    ///
    /// # Errors
    /// [`Failure::NotFound`], for a method that the path does not take as well.
    pub fn find(method: &Method, path: &'p str) -> Result<Self, Failure> {
        let below = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
        let (route, allowed) = if below == "/chat/completions" {
            (Self::Chat, Method::POST)
        } else if let Some(path) = pass::Path::find(below) {
            (Self::Pass(path), Method::POST)
        } else if below == "/models" {
            (Self::Models, Method::GET)
        } else if let Some(id) = below.strip_prefix("/models/").filter(|id| !id.is_empty()) {
            (Self::Model(id), Method::GET)
        } else if let Some(id) = below.strip_prefix("/toolgate/traces/") {
            (Self::Trace(id), Method::GET)
        } else if below == "/toolgate/spend" {
            (Self::Spend, Method::GET)
        } else {
            return Err(Failure::NotFound);
        };
        if *method == allowed { Ok(route) } else { Err(Failure::NotFound) }
    }
}

/// Who is calling, by the head of the request alone.
///
/// # Errors
/// The gate's refusal, or a malformed `x-toolgate-user`.
pub fn caller(config: &Config, headers: &HeaderMap) -> Result<Caller, Failure> {
    // A name that is no text is judged like one that is empty, and after the key: whoever may name nobody is told that.
    let user = headers.get(USER).map(|value| value.to_str().unwrap_or_default().trim());
    let caller = gate::recognise(config, Shown { secret: secret(headers), user })?;
    if headers.get_all(USER).iter().nth(1).is_some() {
        return Err(bad_header("x-toolgate-user", "is there twice"));
    }
    if user.is_some_and(|user| user.is_empty() || user.len() > LONGEST_USER) {
        return Err(bad_header("x-toolgate-user", "must be 1 to 256 characters of printable ASCII"));
    }
    Ok(caller)
}

fn secret(headers: &HeaderMap) -> Option<&str> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    bearer(headers).or_else(|| text(X_API_KEY)).or_else(|| text(API_KEY)).filter(|secret| !secret.is_empty())
}

/// What `authorization: Bearer …` holds; the scheme's case does not matter.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// What the `x-toolgate-*` headers ask for.
#[derive(Debug)]
pub struct Wishes {
    /// Which tools.
    pub requested: Requested,
    /// How many rounds at most.
    pub max_rounds: Option<u32>,
    /// To be told what would be sent, and to have nothing sent.
    pub dry_run: bool,
}

impl Wishes {
    /// Reads them.
    ///
    /// # Errors
    /// A value that means nothing.
    pub fn read(headers: &HeaderMap) -> Result<Self, Failure> {
        let text = |name: HeaderName, field| match headers.get(name).map(|value| value.to_str()) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value.trim())),
            Some(Err(_)) => Err(bad_header(field, "must be printable ASCII")),
        };
        let bad_rounds = || bad_header("x-toolgate-max-rounds", "must be a whole number from 1");
        let max_rounds = text(MAX_ROUNDS, "x-toolgate-max-rounds")?.map(|value| rounds(value).ok_or_else(bad_rounds));
        let dry_run = match text(DRY_RUN, "x-toolgate-dry-run")? {
            None | Some("0") => false,
            Some("1") => true,
            Some(_) => return Err(bad_header("x-toolgate-dry-run", "must be 1, or left out")),
        };
        Ok(Self {
            requested: text(TOOLS, "x-toolgate-tools")?.map_or(Requested::All, Requested::from_header),
            max_rounds: max_rounds.transpose()?,
            dry_run,
        })
    }
}

/// A whole number from 1, however large: more than any cap is no more than the cap.
fn rounds(value: &str) -> Option<u32> {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| value.parse().unwrap_or(u32::MAX)).filter(|rounds| *rounds > 0)
}

fn bad_header(name: &'static str, why: &str) -> Failure {
    Failure::InvalidRequest(name, why.to_owned())
}

/// The whole body. A sender that pauses longer than `patience` is cut.
///
/// # Errors
/// [`Failure::BodyTooLarge`], before anything is read where the length is declared; [`Failure::BodyCut`].
pub async fn body(headers: &HeaderMap, mut incoming: Incoming, limit: usize, patience: Duration) -> Result<Bytes, Failure> {
    let declared =
        headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|value| value.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit) {
        return Err(Failure::BodyTooLarge(limit));
    }
    let mut whole: Option<BytesMut> = None;
    let mut first = Bytes::new();
    while let Some(frame) = next_frame(&mut incoming, patience).await? {
        let Ok(data) = frame.into_data() else { continue };
        let so_far = whole.as_ref().map_or(first.len(), BytesMut::len);
        if so_far + data.len() > limit {
            return Err(Failure::BodyTooLarge(limit));
        }
        match &mut whole {
            Some(whole) => whole.extend_from_slice(&data),
            // A body that came in one piece is not copied.
            None if first.is_empty() => first = data,
            None => {
                let room = declared.unwrap_or_default().clamp(so_far + data.len(), ROOM_AT_ONCE.max(so_far + data.len()));
                let mut joined = BytesMut::with_capacity(room);
                joined.extend_from_slice(&first);
                joined.extend_from_slice(&data);
                whole = Some(joined);
            }
        }
    }
    Ok(whole.map_or(first, BytesMut::freeze))
}

/// The next frame. A sender that pauses longer than `patience` is cut.
///
/// # Errors
/// [`Failure::BodyCut`].
pub(crate) async fn next_frame(incoming: &mut Incoming, patience: Duration) -> Result<Option<http_body::Frame<Bytes>>, Failure> {
    let frame = tokio::time::timeout(patience, incoming.frame()).await.map_err(|_| Failure::BodyCut)?;
    frame.transpose().map_err(|_| Failure::BodyCut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_work_with_and_without_v1() {
        let table = [
            (Method::POST, "/v1/chat/completions", Ok(Route::Chat)),
            (Method::POST, "/chat/completions", Ok(Route::Chat)),
            (Method::GET, "/chat/completions", Err(Failure::NotFound)),
            (Method::POST, "/v1/embeddings", Ok(Route::Pass(pass::Path::Embeddings))),
            (Method::POST, "/completions", Ok(Route::Pass(pass::Path::Completions))),
            (Method::POST, "/v1/audio/speech", Ok(Route::Pass(pass::Path::Speech))),
            (Method::POST, "/v1/audio", Err(Failure::NotFound)),
            (Method::POST, "/v1/audio/speech/x", Err(Failure::NotFound)),
            (Method::GET, "/v1/embeddings", Err(Failure::NotFound)),
            (Method::GET, "/v1/models", Ok(Route::Models)),
            (Method::GET, "/models/a/b", Ok(Route::Model("a/b"))),
            (Method::GET, "/v1/models/", Err(Failure::NotFound)),
            (Method::GET, "/toolgate/traces/x", Ok(Route::Trace("x"))),
            (Method::GET, "/v1/toolgate/traces/x", Ok(Route::Trace("x"))),
            (Method::GET, "/toolgate/spend", Ok(Route::Spend)),
            (Method::GET, "/v1/toolgate/spend", Ok(Route::Spend)),
            (Method::POST, "/toolgate/spend", Err(Failure::NotFound)),
            (Method::GET, "/", Err(Failure::NotFound)),
            (Method::POST, "/v1chat/completions", Err(Failure::NotFound)),
            (Method::POST, "/v1/v1/chat/completions", Err(Failure::NotFound)),
        ];
        for (method, path, expected) in table {
            assert_eq!(Route::find(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn the_bearer_goes_before_the_other_headers() {
        let table = [
            (&[("authorization", "Bearer a"), ("x-api-key", "b")][..], Some("a")),
            (&[("authorization", "bearer  a ")], Some("a")),
            (&[("authorization", "Basic a"), ("x-api-key", "b")], Some("b")),
            (&[("authorization", "Basic a")], None),
            (&[("authorization", "Bearer ")], None),
            (&[("authorization", "a")], None),
            (&[("x-api-key", "b"), ("api-key", "c")], Some("b")),
            (&[("api-key", "c")], Some("c")),
            (&[], None),
        ];
        for (pairs, expected) in table {
            let pairs = pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            assert_eq!(secret(&pairs.collect()), expected);
        }
    }

    #[test]
    fn wishes_are_read_or_refused() {
        let read = |name: &'static str, value: &str| {
            Wishes::read(&HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())]))
        };
        assert_eq!(read("x-toolgate-tools", "none").unwrap().requested, Requested::nothing());
        assert_eq!(read("x-toolgate-tools", "").unwrap().requested, Requested::nothing());
        assert_eq!(read("x-toolgate-tools", " a , B ").unwrap().requested, Requested::Only(["a".into(), "B".into()].into()));
        assert_eq!(read("x-toolgate-max-rounds", "3").unwrap().max_rounds, Some(3));
        for bad in ["0", "-1", "+3", "x", "1.5", ""] {
            assert!(read("x-toolgate-max-rounds", bad).is_err(), "{bad}");
        }
        assert!(read("x-toolgate-dry-run", "1").unwrap().dry_run);
        assert!(read("x-toolgate-dry-run", "yes").is_err());
    }
}
