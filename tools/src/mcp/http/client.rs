//! The requests of a session: what each sends, and what it waits for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpPostResponse};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use toolgate_config::address::{BaseUrl, Origin};
use toolgate_config::group::Group;
use toolgate_config::mcp::McpServer;
use toolgate_config::secret::Secret;
use toolgate_policies::egress;

use super::super::wire::{self, Ticket};
use super::asked::{Asked, Limits, What};
use super::failure::Failure;
use super::meaning::{self, Error, Form, SESSION, failed, may_explain, refusal, session_of, settled};
use super::sieve::{Sieve, answer_to};
use super::stream::{Messages, Purpose, messages};
use super::{LONGEST_MESSAGE, LONGEST_SILENCE};
use crate::net::{Answer, Net, NetError, Patience, headers};

/// Where a stream is to be taken up again.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The longest that a server may take to accept a connection.
const LONGEST_CONNECT: Duration = Duration::from_secs(10);

/// How long a server has to take note of the end of a session.
const FAREWELL: Duration = Duration::from_secs(3);

/// The requests of one session.
#[derive(Clone)]
pub(super) struct Client(Arc<Inner>);

/// What the requests of a session share.
pub(super) struct Inner {
    pub(super) sieve: Sieve,
    net: Arc<Net>,
    group: Arc<Group>,
    limits: Limits,
    origin: Origin,
    path: String,
    headers: HeaderMap,
    renewed: Arc<Notify>,
    /// There has been a session before.
    begun: AtomicBool,
    /// The session's own stream has been asked for.
    listening: AtomicBool,
    /// How many streams in a row have come to nothing.
    in_vain: AtomicU32,
}

impl Inner {
    /// Counts how a stream ended; how many before it came to nothing.
    pub(super) fn came_to_nothing(&self, useless: bool) -> u32 {
        if useless { self.in_vain.fetch_add(1, Ordering::Relaxed) } else { self.in_vain.swap(0, Ordering::Relaxed) }
    }
}

impl Client {
    pub(super) fn new(
        server: &McpServer,
        url: &BaseUrl,
        headers: &[(String, Secret)],
        net: Arc<Net>,
        renewed: Arc<Notify>,
    ) -> Self {
        Self(Arc::new(Inner {
            sieve: Sieve::default(),
            net,
            group: Arc::clone(&server.group),
            limits: Limits::of(server),
            origin: url.origin.clone(),
            path: if url.path.is_empty() { "/".to_owned() } else { url.path.clone() },
            headers: configured(headers),
            renewed,
            begun: AtomicBool::new(false),
            listening: AtomicBool::new(false),
            in_vain: AtomicU32::new(0),
        }))
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        own: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let asked = Asked::of(&message);
        self.note(&asked);
        let until = Instant::now() + asked.within(self.0.limits);
        let refused_before = wire::ticket(&message).is_some_and(Ticket::was_refused);
        // Nobody waits for it any more, or nobody could read it.
        let body = wire::encode(&message).map_err(|_| Failure::Late)?;
        let mut request = self.request(Method::POST, session.as_deref(), own, Bytes::from(body));
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let answering = async {
            let answer = self.send(request, asked.may_be_sent_twice(), until).await?;
            self.understand(answer, &asked, session.is_some(), until).await
        };
        let response = timeout_at(until, answering).await.unwrap_or(Err(Failure::Late.into()));
        if let (Some(ticket), Err(error)) = (wire::ticket(&message), &response) {
            tell(ticket, error, refused_before);
        }
        let response = response?;
        if asked.begins() && self.0.begun.swap(true, Ordering::Relaxed) {
            self.0.renewed.notify_one();
        }
        Ok(response)
    }

    /// What a message that goes out changes for those that come in.
    fn note(&self, asked: &Asked) {
        match asked {
            Asked::Answer { what: What::Beginning, .. } => {
                self.0.sieve.begin();
                self.0.listening.store(false, Ordering::Relaxed);
            }
            Asked::Answer { .. } | Asked::Nothing => {}
            Asked::NothingReplying => self.0.sieve.replied(),
        }
    }

    async fn understand(
        &self,
        answer: Answer,
        asked: &Asked,
        in_session: bool,
        until: Instant,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let Answer { head, body } = answer;
        let form = Form::of(&head.headers);
        let Asked::Answer { id, what } = asked else {
            return settled(head.status, body, in_session).await;
        };
        if !head.status.is_success() {
            let said = if may_explain(head.status) && form == Form::Json { refusal(body, id, left(until)).await } else { None };
            return meaning::refused(head.status, said, in_session, id, what);
        }
        if matches!(head.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = session_of(&head.headers)?;
        match form {
            Form::Events => {
                let until = (*what == What::Beginning).then_some(until);
                let messages = messages(Arc::clone(&self.0), body, Purpose::Answer(id.clone()), until);
                Ok(StreamableHttpPostResponse::Sse(messages, session))
            }
            Form::Json => {
                let whole = body.whole(LONGEST_MESSAGE, left(until)).await.map_err(Failure::from)?;
                let answer = answer_to(meaning::text(&whole).as_ref(), id).ok_or(Failure::Unreadable)?;
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            Form::Other => Err(Failure::Unreadable.into()),
        }
    }

    async fn listen(
        &self,
        session: Option<Arc<str>>,
        last: Option<String>,
        own: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Messages, Error> {
        let first = !self.0.listening.swap(true, Ordering::Relaxed);
        let mut request = self.request(Method::GET, session.as_deref(), own, Bytes::new());
        if let Some(last) = last.and_then(|last| HeaderValue::try_from(last).ok()) {
            request.headers_mut().insert(LAST_EVENT, last);
        }
        // A server may well keep the head of a stream until it has something to say.
        let answer = match self.send(request, true, Instant::now() + LONGEST_SILENCE).await {
            Ok(answer) => answer,
            // The first is not asked for again by whoever wants it; a stream that has ended is.
            Err(Failure::Net(_)) if first => return Ok(Box::pin(futures_util::stream::empty())),
            Err(failure) => return Err(failure.into()),
        };
        match answer.head.status {
            StatusCode::OK if Form::of(&answer.head.headers) == Form::Events => {
                Ok(messages(Arc::clone(&self.0), answer.body, Purpose::Listening, None))
            }
            StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST | StatusCode::GONE if session.is_some() => {
                self.0.renewed.notify_one();
                Err(Error::ServerDoesNotSupportSse)
            }
            // Another of ours is not over yet, or the server is not well: later.
            status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => Err(failed(status)),
            StatusCode::CONFLICT | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Err(failed(answer.head.status)),
            _ => Err(Error::ServerDoesNotSupportSse),
        }
    }

    async fn part(&self, session: Arc<str>, own: HashMap<HeaderName, HeaderValue>) -> Result<(), Error> {
        let request = self.request(Method::DELETE, Some(&session), own, Bytes::new());
        let until = Instant::now() + FAREWELL;
        let answer = timeout_at(until, self.send(request, false, until)).await.unwrap_or(Err(Failure::Late))?;
        // Whoever does not know the session, or has no end for it, is none the wiser.
        if answer.head.status.is_server_error() { Err(failed(answer.head.status)) } else { Ok(()) }
    }

    fn request(
        &self,
        method: Method,
        session: Option<&str>,
        own: HashMap<HeaderName, HeaderValue>,
        body: Bytes,
    ) -> Request<Bytes> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        // It was judged to be a path when the configuration was read.
        *request.uri_mut() = self.0.path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        headers.clone_from(&self.0.headers);
        headers.extend(own);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Some(session) = session.and_then(|session| HeaderValue::try_from(session).ok()) {
            headers.insert(SESSION, session);
        }
        request
    }

    async fn send(&self, request: Request<Bytes>, twice: bool, until: Instant) -> Result<Answer, Failure> {
        let Inner { net, group, origin, .. } = &*self.0;
        let permit = egress::judge(group, origin).map_err(Failure::Egress)?;
        let again = twice.then(|| request.clone());
        let first = net.send_permitted(permit, request, patience(until)).await;
        match (first, again) {
            // The server closed the connection under the request; the other connections are fresh.
            (Err(NetError::Closed), Some(request)) => net.send_permitted(permit, request, patience(until)).await,
            (first, _) => first,
        }
        .map_err(Failure::from)
    }
}

/// What whoever waits for an answer must know of there being none: whether the server can have taken the request.
fn tell(ticket: &Ticket, error: &Error, refused_before: bool) {
    match error {
        Error::SessionExpired if refused_before => ticket.answered(StatusCode::NOT_FOUND.as_u16()),
        Error::SessionExpired => ticket.untaken(),
        Error::HttpStatus(error) => ticket.answered(error.status),
        Error::Client(failure) if !failure.may_have_acted() => ticket.untaken(),
        _ => {}
    }
}

/// What the operator has sent along, without what belongs to one connection.
fn configured(all: &[(String, Secret)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in all {
        if let (Ok(name), Ok(mut value)) =
            (HeaderName::try_from(name.as_str()), HeaderValue::from_bytes(value.expose().as_bytes()))
        {
            value.set_sensitive(true);
            map.append(name, value);
        }
    }
    headers::strip_hop_by_hop(&mut map);
    map
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

fn patience(until: Instant) -> Patience {
    let left = left(until);
    Patience { connect: left.min(LONGEST_CONNECT), first_byte: left }
}

impl StreamableHttpClient for Client {
    type Error = Failure;

    // Where it goes and what goes along is known here: the SDK's own address and credential are never set.
    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        own: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        self.post(message, session, own).await
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        own: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        self.part(session, own).await
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        own: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Messages, Error> {
        self.listen(session, last_event, own).await
    }
}
