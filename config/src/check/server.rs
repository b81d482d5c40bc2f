//! `server:`: listeners and the admin token.

use std::path::Path;

use super::tls;
use crate::address::Listen;
use crate::place::Faults;
use crate::raw::{self, At, Given, Text};
use crate::secret::Secret;
use crate::server::Server;

pub(super) fn server(raw: &raw::Server, folder: &Path, faults: &mut Faults) -> Option<Server> {
    let listen = listen(&raw.listen, faults);
    let admin_listen = self::listen(&raw.admin_listen, faults);
    let admin_token = admin_token(raw, admin_listen.as_ref(), faults);
    let tls = match raw.tls.optional() {
        Some(Some(raw)) => tls::tls(&raw.value, folder, faults).map(Some),
        Some(None) => Some(None),
        None => None,
    };
    Some(Server {
        listen: listen?,
        admin_listen: admin_listen?,
        admin_token: admin_token?,
        tls: tls?,
        max_body: raw.max_body.value()?.0,
        header_timeout: *raw.header_timeout.value()?,
        request_timeout: *raw.request_timeout.value()?,
        max_concurrent: raw.max_concurrent.value()?.0 as usize,
        shutdown_grace: *raw.shutdown_grace.value()?,
    })
}

fn listen(raw: &Given<Text>, faults: &mut Faults) -> Option<Listen> {
    let At { value, place } = raw.get()?;
    let parsed = Listen::parse(&value.whole());
    if parsed.is_none() {
        faults.add(
            place,
            format!("`{}` is no address; allowed: 127.0.0.1:8080, [::1]:8080, 0.0.0.0:8080, unix:/path", value.written),
        );
    }
    parsed
}

fn admin_token(raw: &raw::Server, listen: Option<&Listen>, faults: &mut Faults) -> Option<Option<Secret>> {
    match raw.admin_token.optional()? {
        Some(token) => credential(token, faults).map(Some),
        None => {
            if listen.is_some_and(|listen| !listen.is_local()) {
                let place = raw.admin_listen.get().map_or(&raw.place, |at| &at.place);
                faults.add(place, "`server.admin_token` must be set where `admin_listen` is not loopback");
            }
            Some(None)
        }
    }
}

/// A text that is sent or compared as a bearer: never printed.
pub(super) fn credential(raw: &At<Text>, faults: &mut Faults) -> Option<Secret> {
    let clear = raw.value.whole();
    let fault = if clear.is_empty() {
        "the credential is empty"
    } else if !clear.bytes().all(|byte| byte.is_ascii_graphic()) {
        "the credential holds a blank, a line break or something else that is no visible ASCII character"
    } else {
        return Some(Secret::new(clear));
    };
    faults.add(&raw.place, fault);
    None
}
