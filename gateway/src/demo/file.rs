//! The configuration of the demo: the file that a user would write for the same, in a folder that goes with the process.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;

use super::{Upstream, dialect};

/// What the file says that differs from run to run.
pub(super) struct Facts<'f> {
    /// Where callers come in.
    pub(super) listen: SocketAddr,
    /// The model's base URL.
    pub(super) base_url: &'f str,
    /// The real model, where there is one.
    pub(super) upstream: Option<&'f Upstream>,
    /// Where the tools are.
    pub(super) shop: SocketAddr,
    /// SHA-256 of the application's key, in hexadecimal digits.
    pub(super) key_hash: &'f str,
}

/// The name under which the application knows the model.
pub(super) const MODEL: &str = "support";

/// Where the file keeps the key of a real model's server.
const UPSTREAM_KEY: &str = "upstream.key";

/// The file.
pub(super) fn text(facts: &Facts<'_>) -> String {
    let Facts { listen, shop, key_hash, .. } = facts;
    let base_url = quoted(facts.base_url);
    let upstream_model = quoted(facts.upstream.map_or(dialect::MODEL, |upstream| &upstream.model));
    let has_key = facts.upstream.is_some_and(|upstream| upstream.key.is_some());
    let api_key = if has_key { format!("\n              api_key: \"${{file:{UPSTREAM_KEY}}}\",") } else { String::new() };
    // A small model may never come to an end by itself.
    let params = if facts.upstream.is_some() { "\n             params: { max_completion_tokens: 500 }," } else { "" };
    // What a real model costs its owner knows; without a price money cannot be limited, but tokens can.
    let (price, budget) = match facts.upstream {
        Some(_) => ("", "{ per: day, tokens: 1000000 }"),
        None => ("\n             price: { input: 0.15, cached_input: 0.075, output: 0.60 },", "{ per: day, usd: 1 }"),
    };
    format!(
        r#"server: {{ listen: "{listen}", admin_listen: "127.0.0.1:0" }}   # port 0: any that is free
providers:
  upstream: {{ kind: openai_compatible, base_url: {base_url},{api_key}
              trust_zone: external_global }}   # somebody else's machine: no personal data goes there
models:
  {MODEL}: {{ provider: upstream, upstream_model: {upstream_model}, tools: {{ groups: [orders, customers] }},{params}{price}
             system_prompt: "You answer for a shop. Look things up before you answer." }}
keys:
  - {{ name: app, hash: "sha256:{key_hash}",
      budgets: [ {budget} ] }}
groups:
  orders: {{ data_class: internal, egress: ["{shop}"] }}
  customers: {{ data_class: internal, personal: true, egress: ["{shop}"], trust_zone: local }}
tools:
  - {{ name: find_order, group: orders, description: "Look up an order by its number, such as A-1007.",
      parameters: {{ type: object, required: [order], properties: {{ order: {{ type: string }} }} }},
      http: {{ url: "http://{shop}/orders/{{order}}" }} }}
  - {{ name: shipping_status, group: orders, description: "Where a parcel is and when it arrives.",
      parameters: {{ type: object, required: [parcel], properties: {{ parcel: {{ type: string }} }} }},
      http: {{ url: "http://{shop}/parcels/{{parcel}}" }} }}
  - {{ name: read_customer_file, group: customers, description: "Name and address of a customer.",
      parameters: {{ type: object, required: [customer], properties: {{ customer: {{ type: string }} }} }},
      http: {{ url: "http://{shop}/customers/{{customer}}" }} }}
"#
    )
}

/// A string of JSON is one of YAML; a dollar sign stands for itself.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace("${", "$${")
}

/// A folder that only its owner can enter. It goes with the value.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// A new one, with the configuration in it.
    ///
    /// # Errors
    /// There is no room for it.
    pub(super) fn with(facts: &Facts<'_>) -> io::Result<Self> {
        let mut random = [0; 4];
        SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("the system has no random numbers"))?;
        let path = std::env::temp_dir().join(format!("toolgate-demo-{:08x}", u32::from_be_bytes(random)));
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Self(path);
        fs::write(folder.configuration(), text(facts))?;
        if let Some(key) = facts.upstream.and_then(|upstream| upstream.key.as_deref()) {
            let key_file = folder.path().join(UPSTREAM_KEY);
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(key_file)?.write_all(key.as_bytes())?;
        }
        Ok(folder)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The configuration in it.
    pub(super) fn configuration(&self) -> PathBuf {
        self.0.join("toolgate.yaml")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans the folder of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use toolgate_config::check;

    use super::*;

    fn facts<'f>(upstream: Option<&'f Upstream>, hash: &'f str) -> Facts<'f> {
        let address = SocketAddr::from(([127, 0, 0, 1], 4000));
        let base_url = upstream.map_or("http://127.0.0.1:5000/v1", |upstream| &upstream.url);
        Facts { listen: address, base_url, upstream, shop: address, key_hash: hash }
    }

    #[test]
    fn the_file_is_one_that_serve_takes() {
        let real =
            Upstream { url: "https://llm.example/v1".to_owned(), key: Some("sk-\"${x}".to_owned()), model: "a: ${b}".to_owned() };
        let hash = "0".repeat(64);
        for upstream in [None, Some(&real)] {
            let folder = Folder::with(&facts(upstream, &hash)).unwrap();
            let config = check::load(&folder.configuration()).unwrap();
            let model = config.model(MODEL).unwrap();
            assert_eq!(model.upstream_model, upstream.map_or(dialect::MODEL, |upstream| &upstream.model));
            let key = model.provider.api_key.as_ref().map(|key| key.expose().to_owned());
            assert_eq!(key.as_deref(), upstream.and_then(|upstream| upstream.key.as_deref()));
            assert_eq!(config.tools.len(), 3);
        }
    }

    #[test]
    fn the_folder_goes_with_its_value() {
        let hash = "0".repeat(64);
        let folder = Folder::with(&facts(None, &hash)).unwrap();
        let path = folder.path().to_owned();
        assert!(path.join("toolgate.yaml").is_file());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn the_key_of_the_upstream_is_not_in_the_file() {
        let real =
            Upstream { url: "http://127.0.0.1:1/v1".to_owned(), key: Some("sk-very-secret".to_owned()), model: "m".to_owned() };
        assert!(!text(&facts(Some(&real), "00")).contains("sk-very-secret"));
    }
}
