//! `tools:`: a function that the gateway can run.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::address::Origin;
use crate::class::DataClass;
use crate::group::Group;
use crate::mcp::McpServer;
use crate::money::NanoUsd;
use crate::names::{Scope, ToolName};
use crate::schema::Schema;
use crate::template::Template;

/// A function that the gateway can run: what the model reads of it, what the gate judges of it, how it is done.
#[derive(Debug)]
pub struct Tool {
    /// What the model calls.
    pub name: ToolName,
    /// Its family.
    pub group: Arc<Group>,
    /// What the model reads.
    pub description: String,
    /// What the model must send.
    pub parameters: Schema,
    /// The section of the file that it comes from.
    pub source: Source,
    /// How it is done.
    pub work: Work,
    /// What holds for it.
    pub rule: ToolRule,
    /// Whether what a model reads of it is what the operator knows.
    pub definition: Definition,
}

/// What the operator says of a tool, whoever defines it: what the gate judges of it, and the bounds of a call. What a server says of its own
/// tools is no part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRule {
    /// Switched on.
    pub enabled: bool,
    /// What running it does to the world.
    pub effect: Effect,
    /// Only for admins.
    pub requires_admin: bool,
    /// The rights that a caller must have, all of them.
    pub scopes: BTreeSet<Scope>,
    /// A person must agree first.
    pub requires_approval: bool,
    /// How sensitive what it returns is.
    pub data_class: DataClass,
    /// Whether what it returns is about people.
    pub personal: bool,
    /// From its start to its last byte.
    pub timeout: Duration,
    /// The longest text that the model gets, in bytes, the mark of a cut included.
    pub max_result: usize,
    /// How long the same call of the same caller is answered from memory; `None`: each is run. Only where it reads.
    pub cache: Option<Duration>,
    /// What a call costs; `None`: nothing.
    pub price: Option<NanoUsd>,
    /// Whether what it returns is redacted.
    pub redacted: bool,
}

/// The section of the file that a tool comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `tools:`.
    Tools,
    /// `mcp_servers:`.
    Mcp,
    /// `openapi:`.
    OpenApi,
}

impl Source {
    /// The section's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Mcp => "mcp_servers",
            Self::OpenApi => "openapi",
        }
    }
}

/// Whether what a model reads of a tool is what the operator knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// The operator wrote it.
    Declared,
    /// A server says it, and said it so when it was first seen, or the operator has accepted it since.
    Pinned,
    /// A server says it, and said something else when it was first seen.
    Changed,
}

/// How a tool is run.
#[derive(Debug)]
pub enum Work {
    /// An HTTP request.
    Http(HttpWork),
    /// A call of an MCP server.
    Mcp(McpWork),
}

/// A call of an MCP server's tool.
#[derive(Clone, Debug)]
pub struct McpWork {
    /// Whose tool it is.
    pub server: Arc<McpServer>,
    /// What the server itself calls it.
    pub tool: String,
}

/// What running a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    ReadOnly,
    /// Something, but twice is as good as once.
    IdempotentWrite,
    /// Something, and twice is not once.
    NonIdempotentWrite,
}

impl Effect {
    /// Every effect.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::IdempotentWrite, Self::NonIdempotentWrite];

    /// The word of files and of `toolgate tools`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::IdempotentWrite => "idempotent_write",
            Self::NonIdempotentWrite => "non_idempotent_write",
        }
    }
}

/// An HTTP request with holes.
#[derive(Debug)]
pub struct HttpWork {
    /// The method.
    pub method: HttpMethod,
    /// Where it goes: never a parameter's business. It is in the group's egress.
    pub origin: Origin,
    /// The path, starting with a slash; each value is percent-encoded as one segment or a part of one.
    pub path: Template,
    /// The pairs of the URL's own query and of `query:`, in order. A parameter that the model left out drops its pair.
    pub query: Vec<(String, Template)>,
    /// Header names in lower case, and their values.
    pub headers: Vec<(String, Template)>,
    /// How a list stands in the query, for the arguments that may be one; of others it is JSON.
    pub lists: Vec<(String, Lists)>,
    /// What becomes of arguments that are not used elsewhere.
    pub body: Body,
    /// The argument that is the whole body, in place of an object of those that are left; left out, there is no body.
    pub body_argument: Option<String>,
    /// What the model reads of an answer over 299.
    pub errors: Errors,
    /// A JSON pointer into the answer.
    pub select: Option<String>,
}

/// The methods of HTTP tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what HTTP calls so")]
pub enum HttpMethod {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl HttpMethod {
    /// Every method.
    pub const ALL: [Self; 6] = [Self::Get, Self::Head, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// As HTTP has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// What becomes of arguments that no template uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A JSON object; none left: `{}`. The default for POST, PUT, PATCH.
    Json,
    /// There is no body. The default for the others.
    None,
}

/// How a list stands in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// A pair for each value.
    Repeated,
    /// One pair, the values with commas between.
    Commas,
}

/// What the model reads of an answer over 299.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// Its number.
    Generic,
    /// The bounded body too.
    Body,
}

/// The tools of the file: in their order, and by name.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    all: Vec<Arc<Tool>>,
    by_name: HashMap<ToolName, usize>,
}

impl Tools {
    /// The tool of exactly this name.
    pub fn find(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name).map(|&at| &self.all[at])
    }

    /// Every tool, in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Tool>> {
        self.all.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl FromIterator<Tool> for Tools {
    fn from_iter<I: IntoIterator<Item = Tool>>(tools: I) -> Self {
        tools.into_iter().map(Arc::new).collect()
    }
}

impl FromIterator<Arc<Tool>> for Tools {
    fn from_iter<I: IntoIterator<Item = Arc<Tool>>>(tools: I) -> Self {
        let all: Vec<_> = tools.into_iter().collect();
        let by_name = all.iter().enumerate().map(|(at, tool)| (tool.name.clone(), at)).collect();
        Self { all, by_name }
    }
}
