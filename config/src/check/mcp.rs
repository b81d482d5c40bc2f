//! `mcp_servers:`: how each is reached, and what holds for its tools. Which tools it has is known only when it is asked; names of theirs are
//! taken for right where they may be.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::http::{self, header_name, is_illegal, out_of_reach};
use super::models::names;
use super::tools::{class_of, written_egress};
use super::{declared, unique, url};
use crate::address::BaseUrl;
use crate::class::DataClass;
use crate::group::Group;
use crate::mcp::{McpServer, Reach, ToolRule, naming};
use crate::money::NanoUsd;
use crate::names::{GroupName, Scope, ServerName};
use crate::place::{Faults, Place};
use crate::raw::mcp::Transport;
use crate::raw::shape::{Scalar, Size};
use crate::raw::words::Redact;
use crate::raw::{self, At, File, Given, Text};
use crate::secret::Secret;
use crate::tool::Effect;

type Groups = BTreeMap<GroupName, Arc<Group>>;

/// The servers that are not switched off, in the order of the file.
pub(super) fn servers(file: &File, groups: &Groups, folder: &Path, faults: &mut Faults) -> Vec<Arc<McpServer>> {
    let named = written(file).map(|(name, _)| (naming::prefix(&name.value), &name.place));
    unique(named, |prefix| format!("two servers whose tools would have the same names, `{prefix}…`"), faults);
    names_are_free(file, faults);
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

/// Two tools of one name, as far as the file says.
fn names_are_free(file: &File, faults: &mut Faults) {
    let of_tools = file.tools.value().into_iter().flatten().filter_map(|tool| tool.value.name.get());
    let of_tools = of_tools.map(|name| (name.value.whole().into_owned(), name.place.clone()));
    let of_servers = written(file).filter_map(|(name, raw)| chosen(&name.value, raw)).flatten();
    let mut own: BTreeMap<String, Place> = BTreeMap::new();
    for (name, place) in of_tools {
        // Two of `tools:` are reported there.
        own.entry(name).or_insert(place);
    }
    let all: Vec<_> = own.into_iter().chain(of_servers).collect();
    unique(all.iter().map(|(name, place)| (name, place)), |name| format!("two tools of one name, `{name}`"), faults);
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
    let headers = headers(raw, faults);
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

fn headers(raw: &raw::McpServer, faults: &mut Faults) -> Option<Vec<(String, Secret)>> {
    let named = &raw.headers.value()?.0;
    let lower = named.iter().map(|(name, _)| (name.value.to_ascii_lowercase(), &name.place));
    unique(lower, |name| format!("two headers of one name, `{name}`"), faults);
    named.iter().map(|(name, value)| header(name, value, faults)).collect::<Vec<_>>().into_iter().collect()
}

fn header(name: &At<String>, value: &At<Scalar>, faults: &mut Faults) -> Option<(String, Secret)> {
    let legal = faults.take(&name.place, header_name(&name.value));
    let own = legal.as_deref().is_some_and(|name| OF_THE_PROTOCOL.contains(&name));
    if own {
        let never = OF_THE_PROTOCOL.join(", ");
        faults.add(&name.place, format!("the protocol sets this header itself; never allowed here: {never}"));
    }
    let text = value.value.0.whole();
    if text.chars().any(is_illegal) {
        faults.add(&value.place, "a header's value holds no line break and no other control character");
        return None;
    }
    legal.filter(|_| !own).map(|name| (name, Secret::new(text)))
}

/// What the file says of tools, in the entry of a server and in that of one tool alike.
struct Said<'a> {
    enabled: &'a Given<bool>,
    effect: &'a Given<Effect>,
    requires_admin: &'a Given<bool>,
    scopes: &'a Given<Vec<At<Text>>>,
    requires_approval: &'a Given<bool>,
    data_class: &'a Given<DataClass>,
    personal: &'a Given<bool>,
    timeout: &'a Given<Duration>,
    max_result: &'a Given<Size>,
    cache: &'a Given<Duration>,
    price: &'a Given<raw::money::Usd<0>>,
    redact: &'a Given<Redact>,
}

macro_rules! said {
    ($raw:expr) => {
        Said {
            enabled: &$raw.enabled,
            effect: &$raw.effect,
            requires_admin: &$raw.requires_admin,
            scopes: &$raw.scopes,
            requires_approval: &$raw.requires_approval,
            data_class: &$raw.data_class,
            personal: &$raw.personal,
            timeout: &$raw.timeout,
            max_result: &$raw.max_result,
            cache: &$raw.cache,
            price: &$raw.price,
            redact: &$raw.redact,
        }
    };
}

impl Said<'_> {
    /// The rule of one for whom this is said, where nothing else is said of it.
    fn over(&self, general: &ToolRule, faults: &mut Faults) -> Option<ToolRule> {
        let effect = self.effect.or(general.effect)?;
        Some(ToolRule {
            enabled: self.enabled.or(general.enabled)?,
            effect,
            requires_admin: self.requires_admin.or(general.requires_admin)?,
            scopes: self.scopes.optional()?.map_or_else(|| general.scopes.clone(), |at| scopes(&at.value)),
            requires_approval: self.requires_approval.or(general.requires_approval)?,
            data_class: self.data_class.or(general.data_class)?,
            personal: self.personal.or(general.personal)?,
            timeout: self.timeout.or(general.timeout)?,
            max_result: self.max_result.optional()?.map_or(general.max_result, |at| at.value.0),
            cache: self.cache(effect, general.cache, faults)?,
            price: self.price.optional()?.map_or(general.price, |at| Some(at.value.0).filter(|price| price.0 > 0)),
            redacted: self.redact.optional()?.map_or(general.redacted, |at| is_redacted(at.value)),
        })
    }

    /// What is said of all tools of a server holds only for those that only read.
    fn cache(&self, effect: Effect, general: Option<Duration>, faults: &mut Faults) -> Option<Option<Duration>> {
        match self.cache.optional()? {
            None => Some(general.filter(|_| effect == Effect::ReadOnly)),
            Some(at) if effect == Effect::ReadOnly => Some(Some(at.value)),
            Some(at) => {
                let word = effect.as_str();
                faults.add(
                    &at.place,
                    format!("a write is never answered from memory, and the effect is {word}; allowed: with `effect: read_only`"),
                );
                None
            }
        }
    }
}

const fn is_redacted(word: Redact) -> bool {
    match word {
        Redact::Default => true,
    }
}

fn scopes(written: &[At<Text>]) -> BTreeSet<Scope> {
    written.iter().map(|scope| Scope::new(scope.value.whole())).collect()
}

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
