//! What a server offers: all pages of its list, within bounds, read without trust. A tool that cannot be read is left out with a warning;
//! a page that cannot be read spoils the whole list, for half a list must not be taken for a whole one.

use std::collections::HashSet;
use std::fmt;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::error::Lost;
use super::session::Session;
use super::wire::Ticket;
use crate::bound;

/// How many pages are asked for.
const MOST_PAGES: usize = 50;

/// How many tools a server may have.
const MOST_TOOLS: usize = 500;

/// The longest name, title and description, in bytes. A longer name is no name; of the others the beginning is kept.
const LONGEST_NAME: usize = 256;
const LONGEST_TITLE: usize = 200;
const LONGEST_DESCRIPTION: usize = 8 * 1024;

/// The code of JSON-RPC for what a server does not know.
const METHOD_NOT_FOUND: i32 = -32601;

/// A tool as its server describes it. None of this is believed: it is shown, and compared with what was seen before.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The server's own name of it, which it must get back.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: String,
    /// What it takes, as it came; `null` where nothing came.
    pub schema: Value,
    /// What the server says of its effect.
    pub hints: Hints,
}

/// What a server says of a tool's effect; for display only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Twice is as good as once.
    pub idempotent: Option<bool>,
    /// It touches things beyond the server.
    pub open_world: Option<bool>,
}

/// A list that was read to its end, or to a bound.
#[derive(Debug)]
pub(super) struct List {
    /// What is in it, in the server's order.
    pub(super) tools: Vec<Listed>,
    /// Why there may be more than that.
    pub(super) cut: Option<&'static str>,
}

/// Why there is no list.
#[derive(Debug)]
pub(super) struct NoList {
    page: usize,
    why: Lost,
}

impl NoList {
    /// Whether the session ended under it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.why, Lost::Untaken | Lost::Taken)
    }
}

impl fmt::Display for NoList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {} of its list of tools: {}", self.page, self.why)
    }
}

/// Reads the list; `due` is when its time is over, all pages together.
pub(super) async fn read(session: &Session, server: &str, due: Instant) -> Result<List, NoList> {
    let mut gathering = Gathering { server, tools: Vec::new(), names: HashSet::new() };
    let mut cursors = HashSet::new();
    let mut cursor = None;
    for page in 1..=MOST_PAGES {
        let no_list = |why| NoList { page, why };
        let read = match ask(session, cursor.take(), due).await {
            // A server without tools need not know the question.
            Err(Lost::Said { code: METHOD_NOT_FOUND, .. }) if page == 1 => Map::new(),
            read => read.map_err(no_list)?,
        };
        let next = gathering.page(read).map_err(no_list)?;
        if gathering.tools.len() > MOST_TOOLS {
            gathering.tools.truncate(MOST_TOOLS);
            tracing::warn!(server, "a server lists more than {MOST_TOOLS} tools; the rest is left out");
            return Ok(gathering.list(Some("it lists more than 500 tools")));
        }
        let Some(next) = next else { return Ok(gathering.list(None)) };
        if !cursors.insert(next.clone()) {
            tracing::warn!(server, page, "a server repeats a page of its list of tools; it is taken for the end");
            return Ok(gathering.list(None));
        }
        cursor = Some(next);
    }
    tracing::warn!(server, "a server's list of tools does not end within {MOST_PAGES} pages; the rest is left out");
    Ok(gathering.list(Some("its list of tools does not end within 50 pages")))
}

async fn ask(session: &Session, cursor: Option<String>, due: Instant) -> Result<Map<String, Value>, Lost> {
    let ticket = Ticket::plain();
    let mut request = ListToolsRequest::with_param(PaginatedRequestParams::default().with_cursor(cursor));
    request.extensions.insert(ticket.clone());
    match session.ask(ClientRequest::ListToolsRequest(request), &ticket, due).await? {
        ServerResult::EmptyResult(_) => Err(Lost::Strange),
        result => match serde_json::to_value(result) {
            Ok(Value::Object(page)) => Ok(page),
            _ => Err(Lost::Strange),
        },
    }
}

struct Gathering<'s> {
    server: &'s str,
    tools: Vec<Listed>,
    names: HashSet<String>,
}

impl Gathering<'_> {
    /// Takes a page, and says where the next one begins.
    fn page(&mut self, mut page: Map<String, Value>) -> Result<Option<String>, Lost> {
        let next = match page.remove("nextCursor") {
            Some(Value::String(next)) if !next.is_empty() => Some(next),
            None | Some(Value::Null | Value::String(_)) => None,
            Some(_) => return Err(Lost::Strange),
        };
        match page.remove("tools") {
            Some(Value::Array(tools)) => tools.into_iter().for_each(|tool| self.tool(tool)),
            None if page.is_empty() => {}
            _ => return Err(Lost::Strange),
        }
        Ok(next)
    }

    fn tool(&mut self, tool: Value) {
        match listed(tool) {
            // A second one of the same name could not be told from the first.
            Some(tool) if self.names.insert(tool.name.clone()) => self.tools.push(tool),
            Some(_) => {}
            None => tracing::warn!(server = self.server, "a server lists something that is no tool; it is left out"),
        }
    }

    fn list(self, cut: Option<&'static str>) -> List {
        List { tools: self.tools, cut }
    }
}

fn listed(tool: Value) -> Option<Listed> {
    let Value::Object(mut tool) = tool else { return None };
    let annotations = tool.remove("annotations").unwrap_or_default();
    let hint = |name: &str| annotations.get(name).and_then(Value::as_bool);
    let name = text(tool.remove("name")).filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME)?;
    let title = text(tool.remove("title")).or_else(|| annotations.get("title")?.as_str().map(str::to_owned));
    Some(Listed {
        name,
        title: title.map(|title| bound::word(&title, LONGEST_TITLE)),
        description: paragraph(&text(tool.remove("description")).unwrap_or_default()),
        schema: tool.remove("inputSchema").unwrap_or_default(),
        hints: Hints {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        },
    })
}

fn text(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Without control characters, save those that make lines.
fn paragraph(text: &str) -> String {
    let clean: String = text.chars().filter(|character| !character.is_control() || matches!(character, '\n' | '\t')).collect();
    bound::head(&clean, LONGEST_DESCRIPTION).to_owned()
}
