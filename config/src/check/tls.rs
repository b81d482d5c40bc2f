//! `server.tls`: the three files are read here once, so that what is wrong with them is known before a listener opens.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::place::Faults;
use crate::raw::{self, At, Given, Text};
use crate::server::Tls;

pub(super) fn tls(raw: &raw::Tls, folder: &Path, faults: &mut Faults) -> Option<Tls> {
    let cert = file(&raw.cert, folder, certificates, faults);
    let key = file(&raw.key, folder, private_key, faults);
    let client_ca = match raw.client_ca.is_absent() {
        true => Some(None),
        false => file(&raw.client_ca, folder, authorities, faults).map(|(path, ())| Some(path)),
    };
    let (cert, chain) = cert?;
    let (key, private) = key?;
    if let Err(error) = CertifiedKey::from_der(chain, private, &default_provider()) {
        let place = raw.key.get().map_or(&raw.place, |at| &at.place);
        let why = match error {
            rustls::Error::InconsistentKeys(_) => "this is not the key of the certificate".to_owned(),
            other => format!("this certificate and this key cannot be used: {other}"),
        };
        faults.add(place, why);
    }
    Some(Tls { cert, key, client_ca: client_ca? })
}

/// The files of a TLS section.
pub(super) fn files(tls: &Tls) -> impl Iterator<Item = &PathBuf> {
    [&tls.cert, &tls.key].into_iter().chain(&tls.client_ca)
}

/// Reads a file, and what it must hold.
fn file<T>(
    raw: &Given<Text>,
    folder: &Path,
    parse: fn(&[u8]) -> Result<T, &'static str>,
    faults: &mut Faults,
) -> Option<(PathBuf, T)> {
    let At { value, place } = raw.get()?;
    let path = folder.join(value.whole().as_ref());
    let content = std::fs::read(&path).map_err(|error| format!("`{}` cannot be read: {error}", value.written));
    let content = faults.take(place, content)?;
    let parsed = parse(&content).map_err(|why| format!("`{}` {why}", value.written));
    Some((path, faults.take(place, parsed)?))
}

fn certificates(content: &[u8]) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    let chain = CertificateDer::pem_slice_iter(content).collect::<Result<Vec<_>, _>>().unwrap_or_default();
    if chain.is_empty() { Err("holds no certificate in PEM form") } else { Ok(chain) }
}

fn private_key(content: &[u8]) -> Result<PrivateKeyDer<'static>, &'static str> {
    PrivateKeyDer::from_pem_slice(content).map_err(|_| "holds no private key in PEM form")
}

fn authorities(content: &[u8]) -> Result<(), &'static str> {
    let mut store = RootCertStore::empty();
    certificates(content)?
        .into_iter()
        .try_for_each(|cert| store.add(cert))
        .map_err(|_| "holds a certificate that cannot sign others")
}
