//! The bare hyper proxy: the least that a proxy on this stack does. It reads a request, sends it on over a kept connection, and passes
//! the answer back; it knows nothing of what is in them.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONNECTION, HOST, HeaderValue, TRANSFER_ENCODING};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

/// Serves until it is ended.
pub(crate) fn run(listen: SocketAddr, upstream: SocketAddr) -> crate::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind(listen).await?;
        let pool = Rc::new(Pool { upstream, host: HeaderValue::from_str(&upstream.to_string())?, idle: RefCell::default() });
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let pool = Rc::clone(&pool);
            tokio::task::spawn_local(async move {
                let service = service_fn(|request| pool.pass_on(request));
                // A caller that goes away is no fault of the proxy's.
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
            });
        }
    })
}

/// Connections to the one upstream.
struct Pool {
    upstream: SocketAddr,
    host: HeaderValue,
    idle: RefCell<Vec<SendRequest<Incoming>>>,
}

impl Pool {
    async fn pass_on(&self, request: Request<Incoming>) -> crate::Result<Response<Incoming>> {
        let (mut head, body) = request.into_parts();
        head.headers.insert(HOST, self.host.clone());
        head.headers.remove(CONNECTION);
        head.headers.remove(TRANSFER_ENCODING);
        let mut sender = self.take().await?;
        let response = sender.send_request(Request::from_parts(head, body)).await?;
        // It is not ready before its answer has been read to the end, and `take` skips it until then.
        self.idle.borrow_mut().push(sender);
        Ok(response)
    }

    async fn take(&self) -> crate::Result<SendRequest<Incoming>> {
        if let Some(sender) = self.ready() {
            return Ok(sender);
        }
        let stream = TcpStream::connect(self.upstream).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::task::spawn_local(connection);
        Ok(sender)
    }

    fn ready(&self) -> Option<SendRequest<Incoming>> {
        let mut idle = self.idle.borrow_mut();
        idle.retain(|sender| !sender.is_closed());
        let at = idle.iter().rposition(SendRequest::is_ready)?;
        Some(idle.swap_remove(at))
    }
}
