//! TLS: HTTP/1.1 and HTTP/2 by what the caller offers, and callers that must show a certificate.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use toolgate_tests::config::SHOP;
use toolgate_tests::gateway::Gateway;
use toolgate_tests::stand::Stand;

/// An authority, and a certificate that it signed for `localhost`, as PEM.
struct Certificates {
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { authority: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    /// Certificate and key.
    fn sign(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &self.authority).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn connector(&self, identity: Option<(String, String)>, protocol: &[u8]) -> TlsConnector {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        let mut config = match identity {
            Some((certificate, key)) => {
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![certificate], PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        TlsConnector::from(Arc::new(config))
    }
}

async fn serve(stand: &Stand, certificates: &Certificates, client_ca: bool) -> Gateway {
    let (certificate, key) = certificates.sign();
    stand.folder.write("cert.pem", &certificate);
    stand.folder.write("key.pem", &key);
    stand.folder.write("ca.pem", &certificates.authority.pem());
    let mut tls = json!({"cert": "cert.pem", "key": "key.pem"});
    if client_ca {
        tls["client_ca"] = json!("ca.pem");
    }
    stand.serve(json!({"server": {"tls": tls}})).await
}

type Connection = tokio_rustls::client::TlsStream<TcpStream>;

async fn connect(stand: &Stand, connector: TlsConnector) -> std::io::Result<Connection> {
    let stream = TcpStream::connect(&stand.addresses.0).await?;
    connector.connect(ServerName::try_from("localhost").unwrap(), stream).await
}

fn request() -> http::Request<Full<Bytes>> {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]}).to_string();
    http::Request::post("https://localhost/v1/chat/completions")
        .header("host", "localhost")
        .header("authorization", format!("Bearer {SHOP}"))
        .header("content-type", "application/json")
        .body(Full::from(body))
        .unwrap()
}

async fn hello_1(connection: Connection) -> Result<String, String> {
    let (mut sender, driver) =
        hyper::client::conn::http1::handshake(TokioIo::new(connection)).await.map_err(|error| error.to_string())?;
    tokio::spawn(driver);
    let mut request = request();
    *request.uri_mut() = "/v1/chat/completions".parse().unwrap();
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    text(response).await
}

async fn hello_2(connection: Connection) -> Result<String, String> {
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(connection)).await;
    let (mut sender, driver) = handshake.map_err(|error| error.to_string())?;
    tokio::spawn(driver);
    let response = sender.send_request(request()).await.map_err(|error| error.to_string())?;
    text(response).await
}

async fn text(response: http::Response<hyper::body::Incoming>) -> Result<String, String> {
    let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
}

#[tokio::test]
async fn callers_speak_http_1_and_http_2_over_tls() {
    let stand = Stand::with(json!([{"content": "first"}, {"content": "second"}]), json!({})).await;
    let certificates = Certificates::new();
    let _gateway = serve(&stand, &certificates, false).await;
    let connection = connect(&stand, certificates.connector(None, b"http/1.1")).await.expect("a TLS connection");
    assert!(hello_1(connection).await.expect("an answer").contains("first"));
    let connection = connect(&stand, certificates.connector(None, b"h2")).await.expect("a TLS connection");
    assert_eq!(connection.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    assert!(hello_2(connection).await.expect("an answer").contains("second"));
}

#[tokio::test]
async fn a_client_ca_asks_callers_for_a_certificate() {
    let stand = Stand::with(json!([{"content": "done"}]), json!({})).await;
    let certificates = Certificates::new();
    let _gateway = serve(&stand, &certificates, true).await;
    let with = certificates.connector(Some(certificates.sign()), b"http/1.1");
    let connection = connect(&stand, with).await.expect("a TLS connection");
    assert!(hello_1(connection).await.expect("an answer").contains("done"));
    let stranger = Certificates::new();
    for identity in [None, Some(stranger.sign())] {
        let refused = match connect(&stand, certificates.connector(identity, b"http/1.1")).await {
            Ok(connection) => hello_1(connection).await.err(),
            Err(error) => Some(error.to_string()),
        };
        assert!(refused.is_some(), "a caller without the authority's certificate got an answer");
    }
}
