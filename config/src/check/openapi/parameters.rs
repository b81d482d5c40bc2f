//! The parameters of an operation: where each goes on the wire, and under what name a model fills it. What HTTP tools cannot send is a
//! fault: a request that leaves something out is another request.

use serde_json::{Map, Value as Json};

use super::document::Here;
use super::schema::Schemas;
use crate::check::http::header_name;
use crate::place::Faults;
use crate::tool::Lists;

/// A parameter, carried over.
pub(super) struct Parameter {
    /// What a model calls it.
    pub(super) argument: String,
    /// What it is called on the wire; a header's in lower case.
    pub(super) wire: String,
    /// Where it goes.
    pub(super) within: Within,
    /// Whether it must be there.
    pub(super) required: bool,
    /// What it may be.
    pub(super) schema: Json,
    /// How a list of values is written, where it is one.
    pub(super) lists: Option<Lists>,
}

/// Where a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    Path,
    Query,
    Header,
}

/// Headers that OpenAPI keeps out of parameters: a parameter of such a name means nothing.
const NOT_PARAMETERS: [&str; 3] = ["accept", "authorization", "content-type"];

/// The parameters of an operation and of the path that it stands under, in their order. `None`: one of them cannot be carried over.
pub(super) fn parameters(
    path: &Here<'_>,
    operation: &Here<'_>,
    schemas: &mut Schemas,
    faults: &mut Faults,
) -> Option<Vec<Parameter>> {
    let own = written(operation, faults)?;
    let shared = written(path, faults)?;
    // An operation's own stands in the place of one of the same name and kind.
    let shared = shared.into_iter().filter(|shared| own.iter().all(|own| key(own) != key(shared))).collect::<Vec<_>>();
    let read = shared.iter().chain(&own).map(|here| parameter(here, schemas, faults)).collect::<Vec<_>>();
    let mut all: Vec<Parameter> = read.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    give_names(&mut all);
    Some(all)
}

fn written<'d>(here: &Here<'d>, faults: &mut Faults) -> Option<Vec<Here<'d>>> {
    let Some(list) = here.get("parameters") else { return Some(Vec::new()) };
    list.items().map(|item| item.resolved(faults)).collect::<Vec<_>>().into_iter().collect()
}

/// Two parameters of one name in one kind of place are the same.
fn key<'d>(parameter: &Here<'d>) -> (Option<&'d str>, Option<&'d str>) {
    (text(parameter, "name"), text(parameter, "in"))
}

fn text<'d>(here: &Here<'d>, key: &str) -> Option<&'d str> {
    here.get(key).and_then(|value| value.text())
}

/// `Some(None)`: it is one that means nothing.
fn parameter(here: &Here<'_>, schemas: &mut Schemas, faults: &mut Faults) -> Option<Option<Parameter>> {
    let mut refuse = |why: &str| {
        faults.add(&here.place(), why);
        None
    };
    let (Some(name), Some(kind)) = (text(here, "name"), text(here, "in")) else {
        return refuse("a parameter has a `name` and an `in`");
    };
    let within = match kind {
        "path" => Within::Path,
        "query" => Within::Query,
        "header" if NOT_PARAMETERS.contains(&name.to_ascii_lowercase().as_str()) => return Some(None),
        "header" => Within::Header,
        "cookie" => return refuse("a cookie cannot be carried over: tools send none"),
        _ => return refuse("this `in` is not known; allowed: path, query, header"),
    };
    let wire = match within {
        Within::Header => faults.take(&here.place(), header_name(name))?,
        Within::Path | Within::Query => name.to_owned(),
    };
    let Some(schema) = here.get("schema") else {
        faults.add(&here.place(), "a parameter without a `schema` cannot be carried over (with `content` it is no plain value)");
        return None;
    };
    let lists = lists(here, &schema, within, faults)?;
    let mut carried = schemas.carry(&schema, faults)?;
    describe(&mut carried, text(here, "description"));
    let required = here.says("required") || within == Within::Path;
    Some(Some(Parameter { argument: plain(name), wire, within, required, schema: carried, lists }))
}

/// How a list is written. `Some(None)`: it is no list.
fn lists(here: &Here<'_>, schema: &Here<'_>, within: Within, faults: &mut Faults) -> Option<Option<Lists>> {
    let mut refuse = |why: &str| {
        faults.add(&here.place(), why);
        None
    };
    let default = if within == Within::Query { "form" } else { "simple" };
    let style = text(here, "style").unwrap_or(default);
    if style != default {
        return refuse("this `style` cannot be carried over; allowed: simple in a path and a header, form in a query");
    }
    if here.says("allowReserved") {
        return refuse("`allowReserved` cannot be carried over: every value is encoded");
    }
    let schema = schema.resolved(faults)?;
    let is = |kind: &str| schema.get("type").is_some_and(|types| of_type(&types, kind));
    if is("object") || schema.get("properties").is_some() {
        faults.add(&here.place(), "an object outside of the body cannot be carried over");
        return None;
    }
    match (is("array"), within) {
        (false, _) => Some(None),
        (true, Within::Query) if here.flag("explode") == Some(false) => Some(Some(Lists::Commas)),
        (true, Within::Query) => Some(Some(Lists::Repeated)),
        (true, Within::Path | Within::Header) => {
            faults.add(&here.place(), "a list in a path or a header cannot be carried over");
            None
        }
    }
}

fn of_type(types: &Here<'_>, kind: &str) -> bool {
    types.text() == Some(kind) || types.items().any(|item| item.text() == Some(kind))
}

/// Gives a schema the description of what it is the schema of, unless it has one.
pub(super) fn describe(schema: &mut Json, description: Option<&str>) {
    if let (Json::Object(schema), Some(text)) = (schema, description) {
        schema.entry("description").or_insert_with(|| text.into());
    }
}

/// A name that every model can write.
fn plain(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect();
    plain.chars().take(64).collect()
}

/// Parameters of one name get names that say where they go.
fn give_names(all: &mut [Parameter]) {
    for at in 0..all.len() {
        let taken = |name: &str, all: &[Parameter]| all.iter().take(at).any(|other| other.argument == name);
        let kind = match all[at].within {
            Within::Path => "path",
            Within::Query => "query",
            Within::Header => "header",
        };
        let plain = all[at].argument.clone();
        let mut name = plain.clone();
        for number in 1.. {
            if !taken(&name, all) {
                break;
            }
            name = if number == 1 { format!("{kind}_{plain}") } else { format!("{kind}_{plain}_{number}") };
        }
        all[at].argument = name;
    }
}

/// What a model must send for these.
pub(super) fn properties(all: &[Parameter]) -> (Map<String, Json>, Vec<String>) {
    let properties = all.iter().map(|parameter| (parameter.argument.clone(), parameter.schema.clone())).collect();
    let required = all.iter().filter(|parameter| parameter.required).map(|parameter| parameter.argument.clone()).collect();
    (properties, required)
}
