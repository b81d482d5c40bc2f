//! `mcp_servers:`: where tools come from that somebody else defines, and what the operator says of them. What such a server offers is known
//! only at run time: the gateway asks it, and puts what it found into force as tools like any other.

pub mod naming;

use std::time::Duration;

use crate::address::BaseUrl;
use crate::group::Group;
use crate::names::ServerName;
use crate::secret::Secret;
use crate::tool::ToolRule;
use std::sync::Arc;

/// An MCP server, as the operator describes it.
#[derive(Debug)]
pub struct McpServer {
    /// Its name in the file; its tools are offered as `server__tool`.
    pub name: ServerName,
    /// How it is reached.
    pub reach: Reach,
    /// The family of its tools.
    pub group: Arc<Group>,
    /// For a call or a listing, from its start to its last byte.
    pub timeout: Duration,
    /// What holds for its tools, where the file says nothing of one.
    pub rule: ToolRule,
    /// Which of its tools may be had, by the server's own names, and what holds for each; `None`: all that it lists, by `rule`.
    pub only: Option<Vec<(String, ToolRule)>>,
}

impl McpServer {
    /// Whether the session of one can serve the other: what is judged of its tools may differ.
    pub fn is_reached_like(&self, other: &Self) -> bool {
        let same = self.name == other.name && self.reach == other.reach && self.timeout == other.timeout;
        // A session over the network was allowed by the group's egress, and must not outlive that.
        same && self.group.egress == other.group.egress
    }

    /// What holds for its tool of this name; `None`: the operator does not want it.
    pub fn rule_of(&self, tool: &str) -> Option<&ToolRule> {
        match &self.only {
            None => Some(&self.rule),
            Some(only) => only.iter().find(|(name, _)| name == tool).map(|(_, rule)| rule),
        }
    }
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A process of our own, spoken to over its standard input and output.
    Stdio {
        /// The program: a path, or a name that is looked for in `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<Secret>,
        /// Its environment, beside `PATH`, `HOME`, `LANG` and `TMPDIR`.
        env: Vec<(String, Secret)>,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint. Its path is as it is written, a slash at its end and a query included.
        url: BaseUrl,
        /// What is sent along: names in lower case, and their values.
        headers: Vec<(String, Secret)>,
    },
}
