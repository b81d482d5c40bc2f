//! What MCP servers offer, asked by a command: each is connected to, asked once, and left again.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;
use toolgate_config::Config;
use toolgate_config::store::StoreUrl;
use toolgate_tools::definitions;
use toolgate_tools::mcp::{Hub, State};
use toolgate_tools::net::Net;

use super::Failure;
use crate::found::{FIRST_LOOK, Listed};
use crate::store::Unusable;
use crate::store::pins::{self, Pin};

/// What servers said, and what is worth a line on standard error.
pub(super) struct Asked {
    /// The configuration with their tools.
    pub(super) config: Config,
    /// What they list.
    pub(super) listed: Listed,
    /// Why something is missing.
    pub(super) remarks: Vec<String>,
}

/// Asks every server of a configuration.
pub(super) fn ask(config: Config) -> Result<Asked, Failure> {
    if config.mcp_servers.is_empty() {
        return Ok(Asked { config, listed: Listed::default(), remarks: Vec::new() });
    }
    let listed = runtime()?.block_on(listed(&config));
    let mut remarks: Vec<_> =
        listed.listings().iter().filter_map(|listing| trouble(listing.server.name.as_str(), &listing.state)).collect();
    let judged = match known(&config.store.url) {
        // What was never seen would be noted as it is now.
        Ok(known) => {
            let digest = |pin: &Pin| known.iter().find(|known| known.is_of_the_same_tool(pin)).unwrap_or(pin).digest;
            listed.judged(&listed.pins().iter().map(|pin| Some(digest(pin))).collect::<Vec<_>>())
        }
        Err(Unusable(why)) => {
            remarks.push(format!("what is known of the servers' tools cannot be read, and so they are withheld: {why}"));
            listed.judged(&[])
        }
    };
    let definitions::Found { tools, refused } = listed.tools(&config.tools, &judged);
    remarks.extend(
        refused.iter().map(|refused| format!("mcp_servers.{}: the tool `{}` {}", refused.server, refused.tool, refused.why)),
    );
    Ok(Asked { config: config.with_found(tools), listed, remarks })
}

/// The runtime of a command.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread().enable_all().build().map_err(|error| Failure::Dependency(error.to_string()))
}

async fn listed(config: &Config) -> Listed {
    let hub = Hub::new(Arc::new(Net::new()));
    hub.serve(&config.mcp_servers);
    hub.first_look(Instant::now() + FIRST_LOOK).await;
    let listed = Listed::now(&hub);
    hub.close().await;
    listed
}

fn trouble(server: &str, state: &State) -> Option<String> {
    match state {
        State::Connected => None,
        State::Degraded(why) => Some(format!("mcp_servers.{server}: not all of its tools may be known: {why}")),
        State::Down(why) => Some(format!("mcp_servers.{server}: it cannot be asked: {why}")),
    }
}

/// The pins of a store. Without one they are the running gateway's own, and nothing is known here.
pub(super) fn known(url: &StoreUrl) -> Result<Vec<Pin>, Unusable> {
    pins::look(url)
}
