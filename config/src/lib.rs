//! What the operator wrote, and what it means.
//!
//! A configuration is read twice: [`raw`] holds the file as it is written, with the place of every key, and [`check`] turns it into the
//! meant types below, collecting every fault with its place. Only `raw` knows the file format; the meant types derive no serde and cannot
//! hold a value that `check` refuses. Nothing here opens a socket or reads a clock.

pub mod address;
pub mod catalog;
pub mod check;
pub mod class;
pub mod group;
pub mod key;
pub mod limit;
pub mod mcp;
pub mod model;
pub mod money;
pub mod names;
pub mod pattern;
pub mod place;
pub mod price;
pub mod provider;
pub mod raw;
pub mod redaction;
pub mod schema;
pub mod secret;
pub mod server;
pub mod store;
pub mod template;
pub mod tool;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::group::Group;
use crate::key::Keys;
use crate::limit::Limits;
use crate::mcp::McpServer;
use crate::model::{Model, Models};
use crate::names::{GroupName, ModelName, ProviderName};
use crate::provider::Provider;
use crate::redaction::Redaction;
use crate::server::{Auth, Enforcement, Server, Telemetry};
use crate::store::Store;
use crate::tool::{Tool, Tools, Work};

/// One configuration file, checked: every name in it exists, every default is filled in.
#[derive(Clone, Debug)]
pub struct Config {
    /// Listeners, bounds and time limits of the process.
    pub server: Server,
    /// How callers prove who they are.
    pub auth: Auth,
    /// The accounts at model APIs.
    pub providers: BTreeMap<ProviderName, Arc<Provider>>,
    /// What callers may name as `model`.
    pub models: Models,
    /// The callers.
    pub keys: Keys,
    /// What is allowed to everybody together.
    pub limits: Limits,
    /// Families of tools that are switched and judged together.
    pub groups: BTreeMap<GroupName, Arc<Group>>,
    /// Every tool that a run could be offered: those of the file in its order, then those that were found at its MCP servers.
    pub tools: Tools,
    /// The servers that offer tools of their own, in the order of the file.
    pub mcp_servers: Vec<Arc<McpServer>>,
    /// Whether the trust-zone rule refuses or only observes.
    pub enforcement: Enforcement,
    /// What is taken out of tool results and answers.
    pub redaction: Redaction,
    /// Where what must not be lost is kept.
    pub store: Store,
    /// Logs.
    pub telemetry: Telemetry,
    /// The other files that were read, `${file:…}` and certificates: a change of one is a change of the configuration.
    pub watched: Vec<PathBuf>,
}

impl Config {
    /// The model that a caller's `model` means: the one of that name, else what `"*"` stands for under that name.
    pub fn model(&self, name: &str) -> Option<Arc<Model>> {
        self.models.find(name)
    }

    /// The same configuration with these tools in it, in the place of all that were found at MCP servers before.
    pub fn with_found(&self, found: Vec<Tool>) -> Self {
        let of_the_file = self.tools.iter().filter(|tool| !matches!(tool.work, Work::Mcp(_))).map(Arc::clone);
        Self { tools: of_the_file.chain(found.into_iter().map(Arc::new)).collect(), ..self.clone() }
    }

    /// The models that the fallbacks of `model` name, in order. `check` has seen to it that they exist.
    pub fn fallbacks<'a>(&'a self, model: &'a Model) -> impl Iterator<Item = &'a Arc<Model>> {
        model.fallback.iter().filter_map(|name: &ModelName| self.models.named.get(name))
    }
}
