//! `tools:`: names, classes, defaults by effect, and the schema of the arguments.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::models::names;
use super::rule::{cached, class_of, redacted};
use super::{declared, http, scopes};
use crate::group::Group;
use crate::names::{GroupName, ToolName};
use crate::place::{Faults, Place};
use crate::raw::{self, At, File, Text};
use crate::schema::Schema;
use crate::tool::{Definition, Effect, HttpMethod, Source, Tool, ToolRule, Work};

type Groups = BTreeMap<GroupName, Arc<Group>>;

/// The names that the file gives, and where it does.
pub(super) fn offered(file: &File) -> impl Iterator<Item = (String, Place)> {
    let named = file.tools.value().into_iter().flatten().filter_map(|tool| tool.value.name.get());
    named.map(|at| (at.value.whole().into_owned(), at.place.clone()))
}

pub(super) fn tools(file: &File, groups: &Groups, faults: &mut Faults) -> Vec<Tool> {
    let all: Vec<&raw::Tool> = file.tools.value().into_iter().flatten().map(|at| &at.value).collect();
    all.into_iter().filter_map(|raw| tool(raw, file, groups, faults)).collect()
}

fn tool(raw: &raw::Tool, file: &File, groups: &Groups, faults: &mut Faults) -> Option<Tool> {
    let name = raw.name.get().and_then(|name| self::name(name, faults));
    let group_name = raw.group.get().and_then(|group| declared(group, "group", names(&file.groups), faults));
    let group = group_name.as_deref().and_then(|name| groups.get(name));
    let parameters = parameters(raw, faults);
    let data_class = class_of(&raw.data_class, &raw.place, group, faults);
    let reach = group.map(|group| http::Reach { group, written: written_egress(group.name.as_str(), file) });
    let work = raw.http.value().and_then(|http| http::work(http, parameters.as_ref(), reach.as_ref(), faults))?;
    let effect = raw.effect.or(default_effect(work.method))?;
    let writes = effect != Effect::ReadOnly;
    let group = Arc::clone(group?);
    Some(Tool {
        name: name?,
        description: raw.description.value()?.whole().into_owned(),
        parameters: parameters?,
        source: Source::Tools,
        work: Work::Http(work),
        rule: ToolRule {
            effect,
            enabled: raw.enabled.or(!writes)?,
            requires_admin: *raw.requires_admin.value()?,
            scopes: scopes(&raw.scopes),
            requires_approval: raw.requires_approval.or(writes)?,
            data_class: data_class?,
            personal: raw.personal.or(group.personal)?,
            timeout: *raw.timeout.value()?,
            max_result: raw.max_result.value()?.0,
            price: raw.price.optional()?.map(|at| at.value.0).filter(|price| price.0 > 0),
            cache: cached(&raw.cache, effect, None, faults)?,
            redacted: redacted(&raw.redact, &raw.enabled, faults)?.unwrap_or(true),
        },
        definition: Definition::Declared,
        group,
    })
}

pub(super) fn written_egress<'a>(group: &str, file: &'a File) -> Vec<&'a str> {
    let groups = file.groups.value().into_iter().flat_map(|named| &named.0);
    let egress = groups.filter(|(name, _)| name.value == group).filter_map(|(_, raw)| raw.egress.value());
    egress.flat_map(|egress| &egress.0).filter_map(|entry| entry.value.address()).map(|at| at.written.as_str()).collect()
}

fn name(raw: &At<Text>, faults: &mut Faults) -> Option<ToolName> {
    let name = raw.value.whole();
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !(1..=64).contains(&name.len()) || !name.chars().all(legal) {
        faults.add(&raw.place, format!("`{}` is no tool's name; allowed: 1 to 64 letters, digits, `_`, `-`", raw.value.written));
        return None;
    }
    Some(ToolName::new(name))
}

pub(super) const fn default_effect(method: HttpMethod) -> Effect {
    match method {
        HttpMethod::Get | HttpMethod::Head => Effect::ReadOnly,
        HttpMethod::Post | HttpMethod::Put | HttpMethod::Patch | HttpMethod::Delete => Effect::NonIdempotentWrite,
    }
}

fn parameters(raw: &raw::Tool, faults: &mut Faults) -> Option<Schema> {
    let Some(At { value, place }) = raw.parameters.optional()? else {
        return Schema::compile(json!({ "type": "object", "properties": {} })).ok();
    };
    if value.get("type") != Some(&Value::from("object")) {
        faults.add(place, "arguments are an object; allowed: a JSON Schema of `type: object`");
        return None;
    }
    faults.take(place, Schema::compile(value.clone()).map_err(|why| format!("this is no JSON Schema: {why}")))
}
