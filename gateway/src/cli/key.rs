//! `key new`: a secret for a caller. It is shown once; the configuration holds only its hash.

use std::fmt::Write;

use clap::{Args, Subcommand};
use ring::rand::{SecureRandom, SystemRandom};
use toolgate_policies::gate::hash_of;

use super::{Failure, print};

#[derive(Debug, Subcommand)]
pub(super) enum Key {
    /// Print a new secret once, and the configuration lines that hold only its hash.
    New(New),
}

#[derive(Debug, Args)]
pub(super) struct New {
    /// What logs and metrics call the caller.
    #[arg(long)]
    name: String,
}

pub(super) fn run(command: &Key) -> Result<(), Failure> {
    let Key::New(new) = command;
    let secret = new_secret().ok_or_else(|| Failure::Dependency("the system has no random numbers".to_owned()))?;
    print(&format!("{secret}\n\nThis secret is shown only now. In the configuration:\n\n{}", entry(&new.name, &secret)));
    Ok(())
}

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 43 characters of 62 carry 256 bits.
const LENGTH: usize = 43;

/// `tg-` and 256 random bits.
pub(super) fn new_secret() -> Option<String> {
    let random = SystemRandom::new();
    let mut secret = String::from("tg-");
    let mut bytes = [0; 64];
    while secret.len() < "tg-".len() + LENGTH {
        random.fill(&mut bytes).ok()?;
        // The largest multiple of 62 in a byte: above it some characters would be likelier than others.
        let usable = bytes.iter().filter(|&&byte| byte < 248);
        let missing = "tg-".len() + LENGTH - secret.len();
        secret.extend(usable.take(missing).map(|byte| char::from(ALPHABET[usize::from(byte % 62)])));
    }
    Some(secret)
}

/// The lines of the configuration. A JSON string is a YAML string, whatever the name holds.
fn entry(name: &str, secret: &str) -> String {
    let name = serde_json::Value::from(name);
    format!("keys:\n  - name: {name}\n    hash: \"sha256:{}\"\n", hex_hash_of(secret))
}

/// What the configuration keeps of a secret.
pub(super) fn hex_hash_of(secret: &str) -> String {
    hash_of(secret).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_long_and_never_the_same() {
        let (one, other) = (new_secret().unwrap(), new_secret().unwrap());
        assert_ne!(one, other);
        for secret in [one, other] {
            let random = secret.strip_prefix("tg-").unwrap();
            assert_eq!(random.len(), LENGTH);
            assert!(random.bytes().all(|byte| ALPHABET.contains(&byte)), "{secret}");
        }
    }

    #[test]
    fn the_entry_holds_the_hash_and_quotes_the_name() {
        // `printf tg-x | sha256sum`
        let hash = "82148296d7410612bf13e01b7ba0d39f1ea4031ffcf197b89cc7105186c1de2e";
        let entry = entry("a\"b: c", "tg-x");
        assert!(entry.starts_with("keys:\n  - name: \"a\\\"b: c\"\n    hash: \"sha256:"), "{entry}");
        assert!(!entry.contains("tg-x"), "{entry}");
        assert!(entry.contains(hash), "{entry}");
    }
}
