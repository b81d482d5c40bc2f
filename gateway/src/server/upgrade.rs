//! Handing the listening sockets to the next process, over a socket in a folder of our own.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use pingora_core::server::{Fds, ListenFds};
use ring::digest::{SHA256, digest};

/// Where a process that runs with this configuration file meets the next one: a socket in a folder that only its user can enter.
///
/// # Errors
/// A sentence for the operator: there is no such folder, or it is somebody else's.
pub fn meeting_place(config: &Path) -> Result<PathBuf, String> {
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) if !runtime.is_empty() => PathBuf::from(runtime).join("toolgate"),
        _ => std::env::temp_dir().join(format!("toolgate-{}", own_user()?)),
    };
    let created = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    created.map_err(|error| format!("{}: {error}", folder.display()))?;
    check_private(&folder)?;
    Ok(folder.join(format!("{}.sock", short_name(config))))
}

/// Takes the listening sockets from the process that runs. Waits some seconds for it.
///
/// # Errors
/// A sentence for the operator.
pub(super) fn take_over(place: &Path) -> Result<Fds, String> {
    let mut fds = Fds::new();
    fds.get_from_sock(place.to_string_lossy().as_ref())
        .map_err(|error| format!("no process handed over its sockets at {}: {error}", place.display()))?;
    Ok(fds)
}

/// Gives the listening sockets to the process that waits for them. Waits some seconds for it.
///
/// # Errors
/// A sentence for the log.
pub(super) fn hand_over(fds: &ListenFds, place: &Path) -> Result<(), String> {
    let sent = fds.lock().send_to_sock(place.to_string_lossy().as_ref());
    sent.map(drop).map_err(|error| format!("nobody waits for the sockets at {}: {error}", place.display()))
}

/// Whoever can enter the folder could take the place of the next process.
fn check_private(folder: &Path) -> Result<(), String> {
    let found = fs::symlink_metadata(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let private = found.is_dir() && found.uid() == own_user()? && found.mode() & 0o077 == 0;
    if private { Ok(()) } else { Err(format!("{} must be a folder that only its owner can enter", folder.display())) }
}

fn own_user() -> Result<u32, String> {
    fs::metadata("/proc/self").map(|own| own.uid()).map_err(|error| format!("/proc/self: {error}"))
}

/// A socket's path has room for about a hundred bytes, a configuration's path may be longer.
fn short_name(config: &Path) -> String {
    let path = fs::canonicalize(config).unwrap_or_else(|_| config.to_owned());
    let hash = digest(&SHA256, path.as_os_str().as_encoded_bytes());
    hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_that_others_can_enter_is_refused() {
        let folder = std::env::temp_dir().join(format!("toolgate-test-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        for (mode, private) in [(0o700, true), (0o710, false), (0o701, false)] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check_private(&folder).is_ok(), private, "{mode:o}");
        }
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn each_configuration_has_its_own_place() {
        assert_ne!(short_name(Path::new("/a/toolgate.yaml")), short_name(Path::new("/b/toolgate.yaml")));
    }
}
