//! A request's life.
//!
//! [`answer`] is the one call that the server makes for a request. It opens the record, drives the road until the answer has begun, and never
//! fails: every failure becomes an answer here. The road of a chat completion is [`chat::serve`].

mod chat;
mod dry_run;
mod hearing;
mod last_words;
mod lists;
mod pass;
mod passage;
mod passing;
mod pause;
mod record;
mod run;
mod screen;
mod tools;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;

use self::record::Recording;
pub(crate) use self::record::settle;
use crate::failure::Failure;
use crate::gateway::{Gateway, TurnedAway};
use crate::intake::{self, Route};
use crate::reply::{self, Body, Ended, Outlet, Whole};
use crate::trace::{Status, TraceId};
use crate::wire::sse;

/// How long a stream may say nothing before it says a comment.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Answers a request. Dropping the future, or the body of what it returns, cancels everything that is under way for it.
pub async fn answer(gateway: Arc<Gateway>, request: Request<Incoming>) -> Response<Body> {
    let id = trace_id(request.headers());
    let outlet = Outlet::default();
    let road = Box::pin(road(gateway.clone(), request, outlet.clone(), id));
    reply::answer(road, outlet, header(id), keep_alive()).await
}

/// Answers a request whose length can be read in two ways: nothing of it is believed, the connection ends with it.
pub fn ambiguous() -> Response<Body> {
    let why = "and `transfer-encoding` must not both be there";
    turned_away(&Failure::InvalidRequest("content-length", why.to_owned())).map(Body::whole)
}

/// Answers a request whose head cannot be read; the connection ends with it.
pub fn unreadable(status: StatusCode) -> Response<Bytes> {
    turned_away(&Failure::Unreadable(status))
}

fn turned_away(failure: &Failure) -> Response<Bytes> {
    let mut response = Whole::failure(failure).response;
    response.headers_mut().insert(reply::TRACE, header(TraceId::random()));
    response
}

fn header(id: TraceId) -> HeaderValue {
    // Hexadecimal digits are always a header value.
    HeaderValue::from_str(id.hex(&mut [0; 32])).unwrap_or(HeaderValue::from_static(""))
}

/// [`KEEP_ALIVE`], or what the environment sets in its place: some middle boxes are less patient.
fn keep_alive() -> Duration {
    static SET: OnceLock<Duration> = OnceLock::new();
    *SET.get_or_init(|| {
        let set = std::env::var("TOOLGATE_KEEP_ALIVE_MS").ok().and_then(|text| text.parse().ok());
        set.map_or(KEEP_ALIVE, Duration::from_millis)
    })
}

fn trace_id(headers: &HeaderMap) -> TraceId {
    let parent = headers.get("traceparent").and_then(|value| value.to_str().ok());
    parent.and_then(TraceId::from_traceparent).unwrap_or_else(TraceId::random)
}

/// From the request's head to its record: whatever happens on the way, it ends with an answer and one line in the books.
async fn road(gateway: Arc<Gateway>, request: Request<Incoming>, outlet: Outlet, id: TraceId) -> Ended {
    let mut record = Recording::begin(&gateway, id);
    let served = match gateway.enter() {
        Ok(place) => {
            record.place = Some(place);
            answered(serve(&gateway, request, &outlet, &mut record)).await
        }
        Err(TurnedAway::Overloaded) => Err(Failure::Overloaded),
        Err(TurnedAway::ShuttingDown) => Err(Failure::ShuttingDown),
    };
    match served {
        Ok(ended) => ended,
        Err(failure) => {
            // A part that panicked left its call open.
            gateway.tokens.charge_all(&mut record.run.rounds, false).await;
            record.abandon();
            failed(&failure, &outlet, &mut record).await
        }
    }
}

/// What a request comes to, and if it is to a panic: that is a fault of ours, and is answered like one.
async fn answered<T>(served: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    AssertUnwindSafe(served).catch_unwind().await.unwrap_or(Err(Failure::Internal("a part that panicked")))
}

async fn serve(
    gateway: &Arc<Gateway>,
    request: Request<Incoming>,
    outlet: &Outlet,
    record: &mut Recording,
) -> Result<Ended, Failure> {
    let (head, incoming) = request.into_parts();
    let route = Route::find(&head.method, head.uri.path())?;
    let config = gateway.config();
    let caller = intake::caller(&config, &head.headers)?;
    record.run.caller = Some(caller.clone());
    let list = match route {
        Route::Chat => {
            record.run.is_kept = true;
            return chat::serve(gateway, caller, &head.headers, incoming, outlet, record).await;
        }
        Route::Pass(path) => {
            record.run.is_kept = true;
            return pass::serve(gateway, caller, path, (&head.headers, incoming), outlet, record).await;
        }
        Route::Models => lists::models(gateway, &config, &caller).await,
        Route::Model(id) => lists::model(gateway, &config, &caller, id).await?,
        Route::Trace(id) => lists::trace(gateway, &config, &caller, id)?,
        Route::Spend => lists::spend(gateway, &caller).await?,
    };
    record.close(Status::Completed, 200);
    Ok(Ended::Whole(list))
}

/// A failure as the caller sees it: with its status while nothing was sent; after that as one event, and no end mark.
async fn failed(failure: &Failure, outlet: &Outlet, record: &mut Recording) -> Ended {
    let failure = &record.without_secrets(failure);
    if let Err(unsettled) = record.settled().await {
        tracing::error!(trace = %record.run.id, why = unsettled.for_log(), "what a failed request spent is not on the disk yet");
    }
    tracing::warn!(trace = %record.run.id, code = failure.code(), why = failure.for_log(), "failed");
    record.run.first_byte.get_or_insert(record.began().elapsed());
    if outlet.is_raw() {
        record.close(Status::Failed(failure.code()), 200);
        return Ended::Broken;
    }
    if outlet.has_begun() {
        outlet.write(|out| sse::write(out, |out| out.extend_from_slice(failure.body().as_bytes())));
        record.close(Status::Failed(failure.code()), 200);
        return Ended::Streamed;
    }
    // A client that tries again by itself would have the whole run made again.
    let whole = Whole::failure(failure);
    let whole = if record.run.has_written() { whole.not_to_be_retried() } else { whole };
    record.close(Status::Failed(failure.code()), failure.status().as_u16());
    Ended::Whole(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_answered() {
        let served: Result<(), Failure> = answered(async { panic!("on purpose") }).await;
        assert_eq!(served.map_err(|failure| failure.status().as_u16()), Err(500));
        assert_eq!(answered(async { Ok(1) }).await, Ok(1));
    }
}
