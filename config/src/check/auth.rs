//! `auth:`: its default, and where it may not be open.

use crate::address::Listen;
use crate::place::Faults;
use crate::raw::File;
use crate::server::Auth;

pub(super) fn auth(file: &File, listen: Option<&Listen>, faults: &mut Faults) -> Option<Auth> {
    let default = if file.keys.value()?.is_empty() { Auth::None } else { Auth::Keys };
    let written = file.auth.optional()?;
    let auth = written.map_or(default, |at| at.value);
    if auth == Auth::Keys || listen?.is_local() {
        return Some(auth);
    }
    let place = written.map(|at| &at.place).or(file.server.value()?.listen.get().map(|at| &at.place))?;
    let why = match (written, auth) {
        (None, _) => "there are no keys, so that anybody could come in",
        (_, Auth::Passthrough) => "`passthrough` lets anybody in",
        _ => "`none` lets anybody in",
    };
    faults.add(
        place,
        format!("{why}, and `server.listen` is not loopback; allowed: keys, or a listener on 127.0.0.1, [::1] or unix:/path"),
    );
    None
}
