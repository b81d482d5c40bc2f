//! `mcp_servers:`: how each is reached, and what holds for its tools. Which tools it has is known only when it is asked; names of theirs are
//! taken for right where they may be.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::headers::sent_along;
use super::http::{self, out_of_reach};
use super::models::names;
use super::rule::{Said, class_of, said};
use super::tools::written_egress;
use super::{declared, unique, url};
use crate::address::BaseUrl;
use crate::group::Group;
use crate::mcp::{McpServer, Reach, naming};
use crate::money::NanoUsd;
use crate::names::{GroupName, ServerName};
use crate::place::{Faults, Place};
use crate::raw::mcp::Transport;
use crate::raw::shape::Scalar;
use crate::raw::{self, At, File, Given};
use crate::secret::Secret;
use crate::tool::{Effect, ToolRule};

type Groups = BTreeMap<GroupName, Arc<Group>>;

/// The servers that are not switched off, in the order of the file.
pub(super) fn servers(file: &File, groups: &Groups, folder: &Path, faults: &mut Faults) -> Vec<Arc<McpServer>> {
    let named = written(file).map(|(name, _)| (naming::prefix(&name.value), &name.place));
    unique(named, |prefix| format!("two servers whose tools would have the same names, `{prefix}…`"), faults);
    let meant = written(file).map(|(name, raw)| (raw, server(name, raw, file, groups, folder, faults)));
    let in_use = |(raw, server): (&raw::McpServer, Option<McpServer>)| server.filter(|_| raw.disabled.value() != Some(&true));
    meant.filter_map(in_use).map(Arc::new).collect()
}

/// The servers as written, also those that are switched off.
fn written(file: &File) -> impl Iterator<Item = (&At<String>, &raw::McpServer)> {
    file.mcp_servers.value().into_iter().flat_map(|named| &named.0).map(|(name, raw)| (name, raw))
}

/// The tools of a server that the file names, under the names by which they are offered; `None`: it names none.
fn chosen(server: &str, raw: &raw::McpServer) -> Option<Vec<(String, Place)>> {
    let tools = raw.tools.value()?.iter().map(|at| &at.value.name);
    Some(tools.map(|name| (naming::offered(server, &name.value).as_str().to_owned(), name.place.clone())).collect())
}

/// The names of the tools that the file names, and where it does.
pub(super) fn offered(file: &File) -> impl Iterator<Item = (String, Place)> {
    written(file).filter_map(|(name, raw)| chosen(&name.value, raw)).flatten()
}

/// The names that tools of servers have, or may have.
pub(super) struct Found<'a> {
    /// Of those servers whose tools the file names.
    named: Vec<String>,
    /// The others.
    open: Vec<&'a str>,
}

impl<'a> Found<'a> {
    pub(super) fn of(file: &'a File) -> Self {
        let (mut named, mut open) = (Vec::new(), Vec::new());
        for (name, raw) in written(file) {
            match chosen(&name.value, raw) {
                Some(tools) => named.extend(tools.into_iter().map(|(name, _)| name)),
                None => open.push(name.value.as_str()),
            }
        }
        Self { named, open }
    }

    /// Whether a tool of a server may have this name.
    pub(super) fn may_have(&self, name: &str) -> bool {
        self.named.iter().any(|known| known == name) || self.open.iter().any(|server| naming::may_offer(server, name))
    }

    /// The names that are known.
    pub(super) fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let open = self.open.iter().map(|server| Cow::Owned(format!("{}…", naming::prefix(server))));
        self.named.iter().map(|name| Cow::Borrowed(name.as_str())).chain(open)
    }
}

fn server(
    name: &At<String>,
    raw: &raw::McpServer,
    file: &File,
    groups: &Groups,
    folder: &Path,
    faults: &mut Faults,
) -> Option<McpServer> {
    let group_name = raw.group.get().and_then(|group| declared(group, "group", names(&file.groups), faults));
    let group = group_name.as_deref().and_then(|name| groups.get(name));
    let reach = reach(raw, file, group.map(AsRef::as_ref), folder, faults);
    let rule = rule(raw, group, faults);
    let only = only(raw, rule.as_ref(), faults);
    Some(McpServer {
        name: ServerName::new(name.value.as_str()),
        reach: reach?,
        group: Arc::clone(group?),
        timeout: *raw.timeout.value()?,
        rule: rule?,
        only: only?,
    })
}

fn reach(raw: &raw::McpServer, file: &File, group: Option<&Group>, folder: &Path, faults: &mut Faults) -> Option<Reach> {
    let (command, url) = (raw.command.optional()?, raw.url.optional()?);
    let meant = match (command, url) {
        (Some(_), None) => Transport::Stdio,
        (None, Some(_)) => Transport::Http,
        (Some(_), Some(url)) => {
            faults.add(&url.place, "a server has a `command` or a `url`, not both");
            return None;
        }
        (None, None) => {
            faults.add(&raw.place, "a server has a `command`, which is started, or a `url`; here is neither");
            return None;
        }
    };
    says_the_same(raw, meant, faults);
    let (stdio, http) = (stdio(raw, folder, faults), http(raw, file, group, faults));
    match meant {
        Transport::Stdio => stdio,
        Transport::Http => http,
    }
}

/// What is written beside `command` or `url` fits it.
fn says_the_same(raw: &raw::McpServer, meant: Transport, faults: &mut Faults) {
    let (key, words) = match meant {
        Transport::Stdio => ("command", "stdio"),
        Transport::Http => ("url", "http, streamable-http"),
    };
    for at in [&raw.r#type, &raw.transport].into_iter().filter_map(Given::get).filter(|at| at.value != meant) {
        faults.add(&at.place, format!("not with a `{key}`; allowed: nothing, {words}"));
    }
    let headers = raw.headers.get().filter(|at| !at.value.0.is_empty()).map(|at| (&at.place, "url"));
    let args = raw.args.get().filter(|at| !at.value.is_empty()).map(|at| (&at.place, "command"));
    let env = raw.env.get().filter(|at| !at.value.0.is_empty()).map(|at| (&at.place, "command"));
    for (place, of) in [headers, args, env].into_iter().flatten().filter(|(_, of)| *of != key) {
        faults.add(place, format!("this goes with a `{of}`, and the server has a `{key}`"));
    }
}

fn stdio(raw: &raw::McpServer, folder: &Path, faults: &mut Faults) -> Option<Reach> {
    let args = raw.args.value()?.iter().map(|arg| program_text(&arg.value, &arg.place, faults)).collect::<Vec<_>>();
    let env = raw.env.value()?.0.iter().map(|(name, value)| variable(name, value, faults)).collect::<Vec<_>>();
    let At { value, place } = raw.command.get()?;
    let written = value.whole();
    if written.trim().is_empty() || written.contains('\0') {
        faults.add(place, "this is no program; allowed: a path, or a name that is looked for in PATH");
        return None;
    }
    // A name is looked for; a path is relative to the file, as all are.
    let command =
        if written.contains('/') { folder.join(&*written).to_string_lossy().into_owned() } else { written.into_owned() };
    Some(Reach::Stdio { command, args: args.into_iter().collect::<Option<_>>()?, env: env.into_iter().collect::<Option<_>>()? })
}

fn variable(name: &At<String>, value: &At<Scalar>, faults: &mut Faults) -> Option<(String, Secret)> {
    let legal = !name.value.contains(['=', '\0']);
    if !legal {
        faults.add(&name.place, "the name of a variable holds no `=` and no zero byte");
    }
    let value = program_text(&value.value, &value.place, faults)?;
    legal.then(|| (name.value.clone(), value))
}

fn program_text(Scalar(text): &Scalar, place: &Place, faults: &mut Faults) -> Option<Secret> {
    let text = text.whole();
    if text.contains('\0') {
        faults.add(place, "a program is handed no zero byte");
        return None;
    }
    Some(Secret::new(text))
}

fn http(raw: &raw::McpServer, file: &File, group: Option<&Group>, faults: &mut Faults) -> Option<Reach> {
    let headers = sent_along(&raw.headers, &OF_THE_PROTOCOL, faults);
    let At { value, place } = raw.url.get()?;
    let text = value.whole();
    let (origin, path) = faults.take(place, url::whole(&text))?;
    let shown = http::shown(value, &origin.address);
    let reach = group.map(|group| http::Reach { group, written: written_egress(group.name.as_str(), file) });
    if let Some(why) = reach.and_then(|reach| out_of_reach(&origin.address, &shown, &reach)) {
        faults.add(place, why);
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Some(Reach::Http { url: BaseUrl { origin, path }, headers: headers? })
}

/// Headers that belong to the protocol.
const OF_THE_PROTOCOL: [&str; 6] =
    ["accept", "accept-encoding", "content-type", "last-event-id", "mcp-protocol-version", "mcp-session-id"];

/// What holds for a server's tools. Its defaults are those of the table.
fn rule(raw: &raw::McpServer, group: Option<&Arc<Group>>, faults: &mut Faults) -> Option<ToolRule> {
    let data_class = class_of(&raw.data_class, &raw.place, group, faults);
    let general = ToolRule {
        enabled: true,
        effect: Effect::NonIdempotentWrite,
        requires_admin: false,
        scopes: BTreeSet::new(),
        requires_approval: true,
        data_class: data_class?,
        personal: group?.personal,
        timeout: *raw.timeout.value()?,
        max_result: raw.max_result.value()?.0,
        cache: None,
        price: None::<NanoUsd>,
        redacted: true,
    };
    said!(raw).over(&general, faults)
}

/// The tools that the file names, each with its rule; `Some(None)`: it names none.
fn only(raw: &raw::McpServer, rule: Option<&ToolRule>, faults: &mut Faults) -> Option<Option<Vec<(String, ToolRule)>>> {
    let Some(chosen) = raw.tools.optional()? else { return Some(None) };
    let all = chosen.value.iter().map(|at| &at.value);
    let read = all.map(|tool| {
        let rule = match &tool.with {
            None => rule?.clone(),
            Some(with) => said!(with).over(rule?, faults)?,
        };
        Some((tool.name.value.clone(), rule))
    });
    read.collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>().map(Some)
}
