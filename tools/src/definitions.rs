//! From what MCP servers say of their tools to tools of ours. A definition is taken whole or not at all: nothing in a schema is loosened, and
//! what cannot be offered is refused with its reason. What the operator says of a tool stands in the file; a server's own word on that is
//! worth nothing here.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_config::mcp::{McpServer, naming};
use toolgate_config::names::{ServerName, ToolName};
use toolgate_config::schema::Schema;
use toolgate_config::tool::{Definition, McpWork, Source, Tool, ToolRule, Tools, Work};

use crate::foreign;

/// The longest name of a server's own, in bytes.
const LONGEST_NAME: usize = 1024;
/// The longest description that a model reads, in bytes.
const LONGEST_DESCRIPTION: usize = 4096;
/// The longest schema, in bytes of compact JSON.
const LONGEST_SCHEMA: usize = 64 * 1024;
/// The deepest schema, in objects and lists within each other.
const DEEPEST_SCHEMA: usize = 32;

/// What a server says of a tool, as far as a model reads it.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// What the server calls it.
    pub name: &'a str,
    /// What it says that it does.
    pub description: &'a str,
    /// What arguments it says that it takes.
    pub schema: &'a Value,
}

impl Told<'_> {
    /// The same text for the same definition, in whatever order its keys came: a JSON list of name, description and schema.
    pub fn canonical(&self) -> String {
        Value::from(vec![self.name.into(), self.description.into(), sorted(self.schema)]).to_string()
    }
}

/// What a server lists, and what was made of it.
#[derive(Debug, Default)]
pub struct Found {
    /// The tools: by server in the order of the file, then by name.
    pub tools: Vec<Tool>,
    /// What cannot be offered.
    pub refused: Vec<Refused>,
}

/// A tool that cannot be offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Whose it is.
    pub server: ServerName,
    /// What the server calls it, made fit to be shown.
    pub tool: String,
    /// Why it is not offered: the end of a sentence that begins with the tool.
    pub why: String,
}

/// Makes tools of what servers list. `own` are those of the file, whose names nobody else gets; `judged` says whether a definition is what the
/// operator knows.
pub fn found<'l>(
    own: &Tools,
    listings: impl IntoIterator<Item = (&'l Arc<McpServer>, Vec<Told<'l>>)>,
    judged: impl Fn(&McpServer, &Told<'_>) -> Definition,
) -> Found {
    let mut found = Found::default();
    for (server, told) in listings {
        found.list(server, &told, &judged);
    }
    found.names_are_one_tools(own);
    found
}

impl Found {
    fn list(&mut self, server: &Arc<McpServer>, all: &[Told<'_>], judged: impl Fn(&McpServer, &Told<'_>) -> Definition) {
        let before = self.tools.len();
        let mut seen = HashMap::new();
        for told in all {
            let Some(rule) = server.rule_of(told.name) else { continue };
            let made = match seen.insert(told.name, ()) {
                None => tool(server, rule, told, judged(server, told)),
                Some(()) => Err(Unfit::Twice),
            };
            match made {
                Ok(tool) => self.tools.push(tool),
                Err(why) => self.refuse(server, told.name, why.to_string()),
            }
        }
        for (name, _) in server.only.iter().flatten().filter(|(name, _)| !seen.contains_key(name.as_str())) {
            self.refuse(server, name, "is not among those that the server lists".to_owned());
        }
        self.tools[before..].sort_by(|one, other| one.name.cmp(&other.name));
    }

    fn refuse(&mut self, server: &McpServer, tool: &str, why: String) {
        self.refused.push(Refused { server: server.name.clone(), tool: shown(tool), why });
    }

    /// A name that two tools have is neither's: whoever calls it could mean the other. One of the file is the operator's own.
    fn names_are_one_tools(&mut self, own: &Tools) {
        let mut bearers: HashMap<ToolName, Vec<String>> = HashMap::new();
        for tool in &self.tools {
            bearers.entry(tool.name.clone()).or_default().push(owner(tool));
        }
        let mut refused = Vec::new();
        self.tools.retain(|tool| {
            let others = bearers.get(&tool.name).into_iter().flatten().filter(|other| **other != owner(tool));
            let of_the_file = own.find(tool.name.as_str()).filter(|own| !matches!(own.work, Work::Mcp(_)));
            let others: Vec<_> = others.cloned().chain(of_the_file.map(|_| "one of the file".to_owned())).collect();
            if let (Work::Mcp(work), false) = (&tool.work, others.is_empty()) {
                let why = format!("would have the name `{}` of another tool: {}", tool.name, others.join(", "));
                refused.push(Refused { server: work.server.name.clone(), tool: shown(&work.tool), why });
            }
            others.is_empty()
        });
        self.refused.append(&mut refused);
    }
}

/// Whose a tool is, for somebody who reads it.
fn owner(tool: &Tool) -> String {
    match &tool.work {
        Work::Mcp(work) => format!("`{}` of the server `{}`", shown(&work.tool), work.server.name),
        Work::Http(_) => "one of the file".to_owned(),
    }
}

/// Why a definition is not taken: the end of a sentence that begins with the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unfit {
    NoName,
    LongName,
    Twice,
    NoObject,
    Deep,
    Long(usize),
    Elsewhere,
    Invalid(String),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => f.write_str("has no name"),
            Self::LongName => write!(f, "has a name of more than {LONGEST_NAME} bytes"),
            Self::Twice => f.write_str("is listed twice"),
            Self::NoObject => f.write_str("has a schema that is not of `type: object`"),
            Self::Deep => write!(f, "has a schema of more than {DEEPEST_SCHEMA} levels"),
            Self::Long(bytes) => write!(f, "has a schema of {bytes} bytes; at most {LONGEST_SCHEMA} are taken"),
            Self::Elsewhere => f.write_str("has a schema with a reference to somewhere else, and nothing is fetched"),
            Self::Invalid(why) => write!(f, "has a schema that is none: {why}"),
        }
    }
}

/// A tool as the operator's rule has it, and as the server describes it.
fn tool(server: &Arc<McpServer>, rule: &ToolRule, told: &Told<'_>, definition: Definition) -> Result<Tool, Unfit> {
    match told.name.len() {
        0 => return Err(Unfit::NoName),
        1..=LONGEST_NAME => {}
        _ => return Err(Unfit::LongName),
    }
    Ok(Tool {
        name: naming::offered(server.name.as_str(), told.name),
        group: Arc::clone(&server.group),
        description: cleaned(told.description),
        parameters: schema(told.schema)?,
        source: Source::Mcp,
        work: Work::Mcp(McpWork { server: Arc::clone(server), tool: told.name.to_owned() }),
        rule: rule.clone(),
        definition,
    })
}

/// The schema as it came, but for its descriptions, which are neutral: a model reads them. Where it says nothing of the type, an object is
/// meant, for arguments are nothing else; where it names no properties, that is written down, for some APIs take no schema without: neither
/// lets anything through that was not let through before.
fn schema(told: &Value) -> Result<Schema, Unfit> {
    let members = told.as_object().ok_or(Unfit::NoObject)?;
    if members.get("type").is_some_and(|kind| kind != "object") {
        return Err(Unfit::NoObject);
    }
    if is_deeper(told, DEEPEST_SCHEMA) {
        return Err(Unfit::Deep);
    }
    if leads_elsewhere(told) {
        return Err(Unfit::Elsewhere);
    }
    let mut whole = Map::with_capacity(members.len() + 2);
    if !members.contains_key("type") {
        whole.insert("type".to_owned(), json!("object"));
    }
    whole.extend(members.iter().map(|(name, value)| (name.clone(), value.clone())));
    whole.entry("properties").or_insert_with(|| json!({}));
    let mut whole = Value::Object(whole);
    foreign::neutral_descriptions(&mut whole);
    let schema = Schema::compile(whole).map_err(Unfit::Invalid)?;
    match schema.text().len() {
        ..=LONGEST_SCHEMA => Ok(schema),
        bytes => Err(Unfit::Long(bytes)),
    }
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Object(members) => levels == 0 || members.values().any(|value| is_deeper(value, levels - 1)),
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether a reference leaves the document. What stands below these keys is data.
fn leads_elsewhere(value: &Value) -> bool {
    const DATA: [&str; 4] = ["const", "enum", "default", "examples"];
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| match (name.as_str(), value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => !to.starts_with('#'),
            (name, _) if DATA.contains(&name) => false,
            (_, value) => leads_elsewhere(value),
        }),
        Value::Array(items) => items.iter().any(leads_elsewhere),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The same value with the members of each object in the order of their names.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut all: Vec<_> = members.iter().map(|(name, value)| (name.clone(), sorted(value))).collect();
            all.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(all.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// A description in which everything can be seen and nothing is a token of a chat template, cut on a character.
fn cleaned(text: &str) -> String {
    let mut cleaned = foreign::neutral(text.trim()).into_owned();
    if cleaned.len() > LONGEST_DESCRIPTION {
        const CUT: &str = "…";
        cleaned.truncate(cleaned.floor_char_boundary(LONGEST_DESCRIPTION - CUT.len()));
        cleaned.push_str(CUT);
    }
    cleaned
}

/// A text without what a reader of it would not see.
pub fn visible(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || foreign::is_seen(*c)).collect()
}

/// A server's own name of a tool, for logs and terminals.
pub fn shown(name: &str) -> String {
    const LONGEST: usize = 100;
    let mut shown: String = name.chars().take(LONGEST).map(|c| if foreign::is_seen(c) { c } else { '\u{fffd}' }).collect();
    if name.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
pub(crate) mod tests;
