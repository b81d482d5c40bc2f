//! One operation as an HTTP request with holes, and the schema of the arguments that fill them.

use serde_json::{Map, Value as Json, json};

use super::document::Here;
use super::parameters::{Parameter, Within, describe, parameters, properties};
use super::schema::{Schemas, says_nothing};
use crate::address::BaseUrl;
use crate::place::Faults;
use crate::schema::Schema;
use crate::template::{Part, Template};
use crate::tool::{Body, Errors, HttpMethod, HttpWork};

/// The longest text that is said of a tool, in characters.
const LONGEST_DESCRIPTION: usize = 4096;

/// The longest schema that a model is offered, in bytes.
const LONGEST_SCHEMA: usize = 64 * 1024;

/// An operation where it stands in its document.
#[derive(Clone)]
pub(super) struct Written<'d> {
    pub(super) method: HttpMethod,
    /// As it is written: `/products/{id}`.
    pub(super) path: &'d str,
    /// The path with what holds for all its operations.
    pub(super) item: Here<'d>,
    pub(super) here: Here<'d>,
}

/// An operation, carried over.
pub(super) struct Carried {
    pub(super) description: String,
    pub(super) parameters: Schema,
    pub(super) work: HttpWork,
}

/// Carries an operation over; `None`: something of it cannot be, which is reported.
pub(super) fn carry(written: &Written<'_>, base: &BaseUrl, schemas: Schemas, faults: &mut Faults) -> Option<Carried> {
    let mut schemas = schemas;
    let parameters = parameters(&written.item, &written.here, &mut schemas, faults);
    let body = body(written, &mut schemas, faults);
    let (parameters, body) = (parameters?, body?);
    let path = path(written, base, &parameters, faults)?;
    let (schema, body_argument) = arguments(written, &parameters, &body, schemas, faults)?;
    let of = |within| parameters.iter().filter(move |parameter| parameter.within == within);
    let hole =
        |parameter: &Parameter| (parameter.wire.clone(), Template { parts: vec![Part::Parameter(parameter.argument.clone())] });
    let work = HttpWork {
        method: written.method,
        origin: base.origin.clone(),
        path,
        query: of(Within::Query).map(hole).collect(),
        headers: of(Within::Header).map(hole).collect(),
        lists: parameters.iter().filter_map(|one| Some((one.argument.clone(), one.lists?))).collect(),
        body: if matches!(body, Sent::Nothing) { Body::None } else { Body::Json },
        body_argument,
        errors: Errors::Generic,
        select: None,
    };
    Some(Carried { description: description(written), parameters: schema, work })
}

/// What goes into the body.
enum Sent {
    Nothing,
    /// The members of an object, side by side with the parameters.
    Members {
        properties: Map<String, Json>,
        required: Vec<String>,
        others: Json,
    },
    /// Whatever one argument is.
    Whole {
        schema: Json,
        required: bool,
    },
}

fn body(written: &Written<'_>, schemas: &mut Schemas, faults: &mut Faults) -> Option<Sent> {
    let Some(body) = written.here.get("requestBody") else { return Some(Sent::Nothing) };
    let place = body.place();
    let body = body.resolved(faults)?;
    if matches!(written.method, HttpMethod::Get | HttpMethod::Head) {
        faults.add(&place, format!("{} with a body cannot be carried over", written.method.as_str()));
        return None;
    }
    let content = body.get("content");
    let kinds: Vec<_> = content.iter().flat_map(Here::members).collect();
    let Some((_, media)) = kinds.iter().find(|(kind, _)| is_json(kind)) else {
        let found: Vec<_> = kinds.iter().map(|(kind, _)| *kind).collect();
        faults.add(&place, format!("a body of {} cannot be carried over; allowed: application/json", found.join(", ")));
        return None;
    };
    let required = body.says("required");
    let Some(schema) = media.get("schema") else { return Some(Sent::Whole { schema: json!({}), required }) };
    if required && let Some(members) = side_by_side(&schema, schemas, faults)? {
        return Some(members);
    }
    let mut carried = schemas.carry(&schema, faults)?;
    describe(&mut carried, body.get("description").and_then(|text| text.text()));
    Some(Sent::Whole { schema: carried, required })
}

fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

/// What an object may say of itself that is still true when its members stand beside others.
const PLAIN: [&str; 6] = ["type", "properties", "required", "additionalProperties", "description", "title"];

/// The members of a plain object; `Some(None)`: it is not that plain.
fn side_by_side(schema: &Here<'_>, schemas: &mut Schemas, faults: &mut Faults) -> Option<Option<Sent>> {
    let schema = schema.resolved(faults)?;
    let says_more = schema.members().any(|(key, _)| !PLAIN.contains(&key) && !says_nothing(key));
    let is_object = schema.get("type").is_some_and(|kind| kind.text() == Some("object")) && schema.get("properties").is_some();
    if says_more || !is_object {
        return Some(None);
    }
    let Json::Object(mut carried) = schemas.carry(&schema, faults)? else { return Some(None) };
    let Some(Json::Object(properties)) = carried.shift_remove("properties") else { return Some(None) };
    let required = match carried.shift_remove("required") {
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let others = carried.shift_remove("additionalProperties").unwrap_or(Json::Bool(true));
    Some(Some(Sent::Members { properties, required, others }))
}

/// The schema of all arguments, and which of them is the whole body.
fn arguments(
    written: &Written<'_>,
    parameters: &[Parameter],
    body: &Sent,
    schemas: Schemas,
    faults: &mut Faults,
) -> Option<(Schema, Option<String>)> {
    let (mut all, mut must) = properties(parameters);
    let mut others = Json::Bool(false);
    let mut whole = None;
    match body {
        Sent::Nothing => {}
        Sent::Members { properties, required, others: open } if properties.keys().all(|name| !all.contains_key(name)) => {
            all.extend(properties.clone());
            must.extend(required.clone());
            others = open.clone();
        }
        Sent::Members { properties, required, others } => {
            let object = json!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": others,
            });
            whole = Some((object, true));
        }
        Sent::Whole { schema, required } => whole = Some((schema.clone(), *required)),
    }
    let argument = whole.map(|(schema, required)| {
        let name = ["body", "request_body", "_body"].into_iter().find(|name| !all.contains_key(*name)).unwrap_or("__body");
        all.insert(name.to_owned(), schema);
        must.extend(required.then(|| name.to_owned()));
        name.to_owned()
    });
    let mut schema = json!({ "type": "object", "properties": all, "additionalProperties": others });
    if !must.is_empty() {
        schema["required"] = must.into();
    }
    let defs = schemas.into_defs();
    if !defs.is_empty() {
        schema["$defs"] = Json::Object(defs);
    }
    Some((compiled(written, schema, faults)?, argument))
}

fn compiled(written: &Written<'_>, schema: Json, faults: &mut Faults) -> Option<Schema> {
    let place = written.here.place();
    let schema =
        faults.take(&place, Schema::compile(schema).map_err(|why| format!("its schemas cannot be carried over: {why}")))?;
    if schema.text().len() > LONGEST_SCHEMA {
        let length = schema.text().len();
        faults.add(&place, format!("its schemas have {length} bytes together; allowed: at most {LONGEST_SCHEMA}"));
        return None;
    }
    Some(schema)
}

/// The path below the base. Each hole is a parameter of the path.
fn path(written: &Written<'_>, base: &BaseUrl, parameters: &[Parameter], faults: &mut Faults) -> Option<Template> {
    if let Err(why) = sound(written.path) {
        faults.add(&written.item.place(), why);
        return None;
    }
    let mut parts = vec![Part::Text(base.path.clone())];
    let mut rest = written.path;
    while let Some((text, hole)) = rest.split_once('{') {
        push_text(&mut parts, text);
        let (name, after) = hole.split_once('}').unwrap_or((hole, ""));
        let of_path = |one: &&Parameter| one.within == Within::Path && one.wire == name;
        let Some(parameter) = parameters.iter().find(of_path) else {
            faults.add(&written.item.place(), format!("`{{{name}}}` is no parameter of this path"));
            return None;
        };
        parts.push(Part::Parameter(parameter.argument.clone()));
        rest = after;
    }
    push_text(&mut parts, rest);
    Some(Template { parts })
}

/// Whether a path means what it says wherever it is read.
fn sound(path: &str) -> Result<(), &'static str> {
    if !path.starts_with('/') {
        return Err("a path begins with a slash");
    }
    if path.contains(['?', '#', '\\']) || path.matches('{').count() != path.matches('}').count() {
        return Err("a path has no query, no fragment and no backslash, and a `{` before each `}`");
    }
    let steps_back = |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    if path.split('/').any(steps_back) {
        return Err("a path has no `.` and no `..` as a segment, in whatever spelling");
    }
    Ok(())
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Text(before)) => before.push_str(text),
        _ if text.is_empty() => {}
        _ => parts.push(Part::Text(text.to_owned())),
    }
}

fn description(written: &Written<'_>) -> String {
    let said = |key| written.here.get(key).and_then(|value| value.text()).map(str::trim).filter(|text| !text.is_empty());
    let text = match (said("summary"), said("description")) {
        (Some(summary), Some(more)) if more != summary => format!("{summary}\n{more}"),
        (Some(text), _) | (None, Some(text)) => text.to_owned(),
        (None, None) => format!("{} {}", written.method.as_str(), written.path),
    };
    text.chars().take(LONGEST_DESCRIPTION).collect()
}
