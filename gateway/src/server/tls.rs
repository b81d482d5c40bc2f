//! TLS on the callers' listener: the operator's certificate, HTTP/2 and HTTP/1.1 by ALPN, and client certificates where they are asked for.
//! A certificate that is renewed is taken for the next connection, without a restart.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use toolgate_config::server::Tls;

/// The certificates in force.
pub struct Certificates(ArcSwap<ServerConfig>);

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// A sentence for the operator that names the file.
    pub fn read(tls: &Tls) -> Result<Self, String> {
        server_config(tls).map(|config| Self(ArcSwap::from(config)))
    }

    /// Reads the files again. What is in force stays so when they are unusable.
    ///
    /// # Errors
    /// A sentence for the operator that names the file.
    pub fn renew(&self, tls: &Tls) -> Result<(), String> {
        server_config(tls).map(|config| self.0.store(config))
    }

    /// What takes the next connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.load_full())
    }
}

fn server_config(tls: &Tls) -> Result<Arc<ServerConfig>, String> {
    let builder = ServerConfig::builder();
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(bundle) => builder.with_client_cert_verifier(verifier(bundle)?),
    };
    let mut config = builder
        .with_single_cert(certificates(&tls.cert)?, private_key(&tls.key)?)
        .map_err(|error| format!("{} and {} do not go together: {error}", tls.cert.display(), tls.key.display()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn verifier(bundle: &Path) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(bundle)? {
        roots.add(certificate).map_err(|error| format!("{}: {error}", bundle.display()))?;
    }
    WebPkiClientVerifier::builder(Arc::new(roots)).build().map_err(|error| format!("{}: {error}", bundle.display()))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    match read {
        Ok(found) if found.is_empty() => Err(format!("{}: there is no certificate in it", file.display())),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| match error {
        pem::Error::NoItemsFound => format!("{}: there is no private key in it", file.display()),
        error => format!("{}: {error}", file.display()),
    })
}
