//! What is found at MCP servers, put in force. This is the one place where configurations come into force, be it that the file was read again
//! or that a server says something else: who does that has the turn. So a reload loses nothing that was found, and what is found brings no old
//! configuration back.
//!
//! From there on a tool is a tool: the gate, the offers and the traces do not know where it came from.

mod listed;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use toolgate_config::Config;
use toolgate_config::store::StoreUrl;
use toolgate_config::tool::{Definition, Tool, Work};
use toolgate_tools::definitions;
use tracing::{error, info, warn};

pub use self::listed::Listed;
use crate::gateway::Gateway;
use crate::store::Unusable;
use crate::store::pins::Pins;

/// How long the servers are waited for at the start and after a reload. One that was asked, and one that cannot be, is waited for no longer.
pub const FIRST_LOOK: Duration = Duration::from_secs(10);

/// While something is withheld: the operator may accept it in another process, at any time.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// What is known of what was found.
pub struct Found {
    pins: Pins,
    /// Holding it is the right to put a configuration in force.
    turn: Mutex<Standing>,
}

/// What stands at the moment.
#[derive(Default)]
struct Standing {
    /// What was found when the configuration came into force.
    in_force: Listed,
    /// What is to be thought of each definition, in the same order.
    judged: Vec<Definition>,
    /// What the log was told already.
    told: BTreeSet<String>,
}

impl Found {
    /// With the pins of this store.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn open(url: &StoreUrl) -> Result<Self, Unusable> {
        Ok(Self { pins: Pins::open(url)?, turn: Mutex::default() })
    }

    /// Asks the servers of the configuration in force for the first time, and puts what they offer into force.
    pub async fn begin(&self, gateway: &Gateway) {
        let config = gateway.config();
        if config.mcp_servers.is_empty() {
            return;
        }
        gateway.toolbox.hub().serve(&config.mcp_servers);
        self.look(gateway).await;
    }

    /// Puts a configuration that was read into force, with what is known of its servers; those that are new are asked then.
    pub async fn put_in_force(&self, gateway: &Gateway, new: Config) {
        let has_servers = !new.mcp_servers.is_empty();
        {
            let mut standing = self.turn.lock().await;
            gateway.toolbox.hub().serve(&new.mcp_servers);
            let listed = Listed::now(gateway.toolbox.hub());
            let (made, judged, told) = self.make(&new, &listed).await;
            gateway.replace(new.with_found(made.tools));
            standing.follow(listed, judged, told);
        }
        if has_servers {
            self.look(gateway).await;
        }
    }

    /// Follows what servers say, and what is accepted elsewhere, for as long as it is polled.
    pub async fn watch(gateway: Arc<Gateway>) {
        let hub = Arc::clone(gateway.toolbox.hub());
        loop {
            let withholds = gateway.found.turn.lock().await.withholds();
            tokio::select! {
                () = hub.changed() => {}
                () = sleep(LOOK_AGAIN), if withholds => {}
            }
            gateway.found.refresh(&gateway).await;
        }
    }

    /// Closes what it has of the store.
    pub async fn close(&self) {
        self.pins.close().await;
    }

    /// Waits until each server was asked or cannot be, and puts what is known by then into force.
    async fn look(&self, gateway: &Gateway) {
        gateway.toolbox.hub().first_look(Instant::now() + FIRST_LOOK).await;
        self.refresh(gateway).await;
    }

    /// Puts what servers say now into force, if that is something else.
    async fn refresh(&self, gateway: &Gateway) {
        let mut standing = self.turn.lock().await;
        let listed = Listed::now(gateway.toolbox.hub());
        let config = gateway.config();
        let (made, judged, told) = self.make(&config, &listed).await;
        if !standing.is(&listed, &judged) {
            info!(
                tools = made.tools.len(),
                refused = made.refused.len(),
                "the tools of MCP servers are in force as they say now"
            );
            gateway.renew(config.with_found(made.tools));
        }
        standing.follow(listed, judged, told);
    }

    /// The tools of what is listed, what is to be thought of each definition, and what the log should know.
    async fn make(&self, config: &Config, listed: &Listed) -> (definitions::Found, Vec<Definition>, Vec<Word>) {
        let (mut told, mut is_known) = (Vec::new(), false);
        let known = match listed.pins().is_empty() {
            true => Ok(Vec::new()),
            false => self.pins.see(listed.pins().to_vec()).await,
        };
        let judged = match known {
            Ok(known) => {
                is_known = true;
                listed.judged(&known)
            }
            // Whether they are as they were cannot be known now.
            Err(Unusable(why)) => {
                told.push(Word::Error(format!(
                    "the tools of MCP servers are withheld, for what is known of them cannot be read: {why}"
                )));
                vec![Definition::Changed; listed.pins().len()]
            }
        };
        let made = listed.tools(&config.tools, &judged);
        told.extend(made.refused.iter().map(|refused| {
            Word::Warning(format!(
                "a tool of the MCP server `{}` is not offered: `{}` {}",
                refused.server, refused.tool, refused.why
            ))
        }));
        let withheld = made.tools.iter().filter(|tool| is_known && tool.definition == Definition::Changed);
        told.extend(withheld.map(|tool| Word::Warning(changed(tool))));
        (made, judged, told)
    }
}

/// What the operator reads of a tool that has changed.
fn changed(tool: &Tool) -> String {
    let server = match &tool.work {
        Work::Mcp(work) => work.server.name.as_str(),
        Work::Http(_) => "",
    };
    let name = &tool.name;
    format!(
        "the MCP server `{server}` says something else of `{name}` than what is known; it is withheld until `toolgate tools --accept {name}`"
    )
}

/// Something for the log, said once for as long as it holds.
enum Word {
    Warning(String),
    Error(String),
}

impl Standing {
    /// Whether this is what is in force.
    fn is(&self, listed: &Listed, judged: &[Definition]) -> bool {
        self.judged == judged && self.in_force.is_same(listed)
    }

    fn withholds(&self) -> bool {
        self.judged.contains(&Definition::Changed)
    }

    fn follow(&mut self, listed: Listed, judged: Vec<Definition>, told: Vec<Word>) {
        self.in_force = listed;
        self.judged = judged;
        let before = std::mem::take(&mut self.told);
        for word in told {
            let text = match &word {
                Word::Warning(text) | Word::Error(text) => text.clone(),
            };
            let is_new = !before.contains(&text) && !self.told.contains(&text);
            match word {
                Word::Warning(_) if is_new => warn!("{text}"),
                Word::Error(_) if is_new => error!("{text}"),
                Word::Warning(_) | Word::Error(_) => {}
            }
            self.told.insert(text);
        }
    }
}
