//! `openapi:`: the operations that an operator names become HTTP tools like those of `tools:`. Whatever of one cannot be carried over is a
//! fault with its place in the document, for a tool that does something else than its description says is worse than none.

mod document;
mod operation;
mod parameters;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::document::{Document, Here};
use self::operation::{Carried, Written, carry};
use self::schema::Schemas;
use super::headers::sent_along;
use super::http::{self, Reach, out_of_reach};
use super::models::names;
use super::rule::{Said, class_of, redacted, said};
use super::tools::{default_effect, written_egress};
use super::{declared, unique};
use crate::address::BaseUrl;
use crate::class::DataClass;
use crate::group::Group;
use crate::names::{GroupName, ToolName};
use crate::place::{Faults, Place};
use crate::raw::mcp::{Chosen, McpTool};
use crate::raw::openapi::OpenApi;
use crate::raw::{At, File, Given, advice};
use crate::secret::Secret;
use crate::template::{Part, Template};
use crate::tool::{Definition, Effect, HttpMethod, Source, Tool, ToolRule, Work};

type Groups = BTreeMap<GroupName, Arc<Group>>;

/// What `openapi:` adds to a configuration.
#[derive(Default)]
pub(super) struct Found {
    /// The tools, in the order of the file.
    pub(super) tools: Vec<Tool>,
    /// The documents that were read.
    pub(super) files: Vec<PathBuf>,
}

pub(super) fn tools(file: &File, groups: &Groups, folder: &Path, faults: &mut Faults) -> Found {
    let mut found = Found::default();
    for (_, raw) in written(file) {
        found.add(raw, file, groups, folder, faults);
    }
    found
}

/// The names of the tools that the file asks for, and where it does.
pub(super) fn offered(file: &File) -> impl Iterator<Item = (String, Place)> {
    let chosen = written(file).flat_map(|(_, raw)| raw.operations.value().into_iter().flatten());
    chosen.map(|at| (tool_name(&at.value.name.value), at.value.name.place.clone()))
}

fn written(file: &File) -> impl Iterator<Item = (&At<String>, &OpenApi)> {
    file.openapi.value().into_iter().flat_map(|named| &named.0).map(|(name, raw)| (name, raw))
}

/// `getProduct` is its own name; `GET /products/{id}` becomes `get_products_id`.
fn tool_name(operation: &str) -> String {
    let lower = match operation.split_once(" /") {
        Some((method, path)) => format!("{}_{path}", method.to_ascii_lowercase()),
        None => operation.to_owned(),
    };
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_").chars().take(64).collect()
}

impl Found {
    fn add(&mut self, raw: &OpenApi, file: &File, groups: &Groups, folder: &Path, faults: &mut Faults) {
        let group = raw.group.get().and_then(|group| declared(group, "group", names(&file.groups), faults));
        let group = group.and_then(|name| groups.get(name.as_str()));
        let headers = sent_along(&raw.headers, &[], faults);
        let Some(spec) = raw.spec.get() else { return };
        let path = folder.join(&*spec.value.whole());
        self.files.push(path.clone());
        let Some(document) = Document::read(&path, &spec.place, faults) else { return };
        let operations = operations(&document);
        let chosen = raw.operations.value().into_iter().flatten().map(|at| &at.value);
        unique(chosen.clone().map(|one| (&one.name.value, &one.name.place)), |name| format!("`{name}` is named twice"), faults);
        let (Some(group), Some(headers)) = (group, headers) else { return };
        let source = Api { raw, file, group, document: &document, headers };
        for one in chosen {
            if let Some(operation) = find(&operations, &one.name, faults)
                && let Some(tool) = source.tool(one, operation, faults)
            {
                self.tools.push(tool);
            }
        }
    }
}

const METHODS: [(&str, Option<HttpMethod>); 8] = [
    ("get", Some(HttpMethod::Get)),
    ("head", Some(HttpMethod::Head)),
    ("post", Some(HttpMethod::Post)),
    ("put", Some(HttpMethod::Put)),
    ("patch", Some(HttpMethod::Patch)),
    ("delete", Some(HttpMethod::Delete)),
    ("options", None),
    ("trace", None),
];

/// Every operation of a document by the names that it goes by; `None`: one of a method that no tool has.
type Operations<'d> = Vec<(String, Option<Written<'d>>)>;

fn operations(document: &Document) -> Operations<'_> {
    let mut all = Vec::new();
    let paths = document.whole().get("paths");
    for (path, item) in paths.iter().flat_map(Here::members) {
        // What a path refers to is looked at only where one of its operations is asked for.
        let item = item.resolved(&mut Faults::default()).unwrap_or(item);
        for (word, method) in METHODS {
            let Some(here) = item.get(word) else { continue };
            let id = here.get("operationId").and_then(|id| id.text()).map(str::to_owned);
            let written = method.map(|method| Written { method, path, item: item.clone(), here });
            all.extend(id.map(|id| (id, written.clone())));
            all.push((format!("{} {path}", word.to_ascii_uppercase()), written));
        }
    }
    all
}

fn find<'o, 'd>(all: &'o Operations<'d>, name: &At<String>, faults: &mut Faults) -> Option<&'o Written<'d>> {
    let mut found = all.iter().filter(|(known, _)| *known == name.value).map(|(_, written)| written);
    let why = match (found.next(), found.next()) {
        (Some(Some(written)), None) => return Some(written),
        (Some(_), Some(_)) => format!("the document has two operations of the id `{}`; allowed: `GET /path`", name.value),
        (Some(None), None) => "tools have no such method; allowed: GET, HEAD, POST, PUT, PATCH, DELETE".to_owned(),
        (None, _) => {
            let known = all.iter().filter(|(_, written)| written.is_some()).map(|(name, _)| name.as_str());
            format!("the document has no operation `{}`; {}", name.value, advice(&name.value, known))
        }
    };
    faults.add(&name.place, why);
    None
}

/// One entry of the section, with its document.
struct Api<'a> {
    raw: &'a OpenApi,
    file: &'a File,
    group: &'a Arc<Group>,
    document: &'a Document,
    headers: Vec<(String, Secret)>,
}

impl Api<'_> {
    fn tool(&self, one: &Chosen<McpTool>, written: &Written<'_>, faults: &mut Faults) -> Option<Tool> {
        let rule = self.rule(one, written.method, faults);
        let base = self.base(written, faults);
        let sendable = can_be_asked(written, &self.document.whole(), faults);
        let Carried { description, parameters, mut work } = carry(written, &base?, Schemas::new(self.document.version), faults)?;
        let (rule, true) = (rule?, sendable) else { return None };
        // What the operator sends along is no argument of the model's.
        work.headers.retain(|(name, _)| self.headers.iter().all(|(own, _)| own != name));
        work.headers.extend(self.headers.iter().map(|(name, value)| (name.clone(), fixed(value))));
        Some(Tool {
            name: ToolName::new(tool_name(&one.name.value)),
            group: Arc::clone(self.group),
            description,
            parameters,
            source: Source::OpenApi,
            work: Work::Http(work),
            rule,
            definition: Definition::Declared,
        })
    }

    /// What holds for a tool: its own words, those of the section, and what its method means.
    fn rule(&self, one: &Chosen<McpTool>, method: HttpMethod, faults: &mut Faults) -> Option<ToolRule> {
        let raw = self.raw;
        let own = one.with.as_deref();
        let effect = own.map_or(Some(default_effect(method)), |with| with.effect.or(default_effect(method)))?;
        let writes = effect != Effect::ReadOnly;
        let general = ToolRule {
            enabled: !writes,
            effect,
            requires_admin: *raw.requires_admin.value()?,
            scopes: super::scopes(&raw.scopes),
            requires_approval: writes,
            data_class: self.data_class(own, faults)?,
            personal: raw.personal.or(self.group.personal)?,
            timeout: *raw.timeout.value()?,
            max_result: raw.max_result.value()?.0,
            cache: None,
            price: None,
            redacted: redacted(&raw.redact, own.map_or(&Given::Absent, |own| &own.enabled), faults)?.unwrap_or(true),
        };
        own.map_or(Some(general.clone()), |with| said!(with).over(&general, faults))
    }

    /// The class of what a tool returns: its own, the section's, the group's.
    fn data_class(&self, own: Option<&McpTool>, faults: &mut Faults) -> Option<DataClass> {
        match own.map(|own| own.data_class.optional()) {
            Some(None) => None,
            Some(Some(Some(own))) => Some(own.value),
            Some(Some(None)) | None => class_of(&self.raw.data_class, &self.raw.place, Some(self.group), faults),
        }
    }

    /// Where the operation is: what the operator says, else the first of the document's servers that the group may reach.
    fn base(&self, written: &Written<'_>, faults: &mut Faults) -> Option<BaseUrl> {
        let reach = Reach { group: self.group, written: written_egress(self.group.name.as_str(), self.file) };
        if let Some(At { value, place }) = self.raw.base_url.optional()? {
            let base = BaseUrl::parse(&value.whole()).map_err(|why| format!("this is no base URL: {why}"));
            let base = faults.take(place, base)?;
            let shown = http::shown(value, &base.origin.address);
            let refused = out_of_reach(&base.origin.address, &shown, &reach).map(|why| faults.add(place, why));
            return refused.is_none().then_some(base);
        }
        let servers = servers(written, &self.document.whole());
        let mut bases = servers.iter().filter_map(|server| BaseUrl::parse(&address(server)?).ok());
        let listed = |base: &BaseUrl| self.group.egress.iter().any(|entry| entry.address == base.origin.address);
        let found = bases.find(listed);
        if found.is_none() {
            // Addresses alone: the rest may hold a credential.
            let named = servers.iter().map(|server| BaseUrl::parse(&address(server).unwrap_or_default()));
            let named: Vec<_> = named.filter_map(Result::ok).map(|base| base.origin.address.to_string()).collect();
            let of_document = if named.is_empty() {
                "the document names no server".to_owned()
            } else {
                format!("its servers: {}", named.join(", "))
            };
            let allowed = if reach.written.is_empty() { "nobody".to_owned() } else { reach.written.join(", ") };
            let group = &self.group.name;
            faults.add(
                &self.raw.place,
                format!(
                    "no server is in the `egress` of the group `{group}`, which allows {allowed} ({of_document}); set `base_url`"
                ),
            );
        }
        found
    }
}

/// Whether a request can carry the credentials that an operation asks for: one set of those that it would be content with. A header is sent
/// along, if the operator says it; nothing else is.
fn can_be_asked(written: &Written<'_>, whole: &Here<'_>, faults: &mut Faults) -> bool {
    let Some(sets) = written.here.get("security").or_else(|| whole.get("security")) else { return true };
    let schemes = whole.get("components").and_then(|components| components.get("securitySchemes"));
    let in_a_header = |name: &str| {
        let scheme = schemes.as_ref().and_then(|schemes| schemes.get(name));
        let place = scheme.as_ref().and_then(|scheme| scheme.get("in")).and_then(|place| place.text());
        place.is_none_or(|place| place == "header")
    };
    let mut sets_of_headers = sets.items().map(|set| set.members().all(|(name, _)| in_a_header(name)));
    let possible = sets.items().next().is_none() || sets_of_headers.any(|all| all);
    if !possible {
        faults.add(
            &sets.place(),
            "a credential in a query or a cookie cannot be carried over; allowed: in a header, set in `headers`",
        );
    }
    possible
}

/// The servers that hold for an operation: its own, else those of its path, else the document's.
fn servers<'d>(written: &Written<'d>, whole: &Here<'d>) -> Vec<Here<'d>> {
    let mut lists = [&written.here, &written.item, whole].into_iter().filter_map(|here| here.get("servers"));
    lists.next().map_or_else(Vec::new, |list| list.items().collect())
}

/// A server's address, with what its variables stand for.
fn address(server: &Here<'_>) -> Option<String> {
    let mut address = server.get("url")?.text()?.to_owned();
    for (name, variable) in server.get("variables").iter().flat_map(Here::members) {
        let default = variable.get("default")?;
        address = address.replace(&format!("{{{name}}}"), default.text()?);
    }
    Some(address)
}

/// A header without holes.
fn fixed(value: &Secret) -> Template {
    Template { parts: vec![Part::Text(value.expose().to_owned())] }
}
