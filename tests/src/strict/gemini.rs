//! What Google's `generateContent` refuses.

use serde_json::Value;

use super::{Asked, Refusal, is_made_of, list, unknown};
use crate::dialect::Told;

const MEMBERS: [&str; 7] =
    ["contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent"];
const GENERATION: [&str; 19] = [
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseModalities",
    "candidateCount",
    "maxOutputTokens",
    "temperature",
    "topP",
    "topK",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseLogprobs",
    "logprobs",
    "enableEnhancedCivicAnswers",
    "speechConfig",
    "thinkingConfig",
    "mediaResolution",
];
const SCHEMA: [&str; 22] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
];
const TYPES: [&str; 7] = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"];

pub(super) fn refusal(asked: Asked<'_>) -> Option<Refusal> {
    let body = asked.body;
    if asked.target.contains("key=") {
        return Some("the key stands in the URL, where logs keep it".into());
    }
    if asked.target.contains(":streamGenerateContent") && !asked.target.contains("alt=sse") {
        return Some("a stream is asked for without alt=sse: it would be one JSON array".into());
    }
    if asked.head.header("x-goog-api-key").is_none_or(|key| key.is_empty()) {
        return Some(Refusal { status: 403, message: "Method doesn't allow unregistered callers".to_owned() });
    }
    about_members(body).or_else(|| about_tools(body)).or_else(|| about_contents(body, asked.told)).map(Refusal::from)
}

fn unknown_name(object: &Value, known: &[&str], place: &str) -> Option<String> {
    let name = unknown(object, known)?;
    let place = if place.is_empty() { String::new() } else { format!(" at '{place}'") };
    Some(format!("Invalid JSON payload received. Unknown name \"{name}\"{place}: Cannot find field."))
}

fn about_members(body: &Value) -> Option<String> {
    let config = &body["generationConfig"];
    unknown_name(body, &MEMBERS, "")
        .or_else(|| unknown_name(config, &GENERATION, "generation_config"))
        .or_else(|| {
            let known = ["includeThoughts", "thinkingBudget", "thinkingLevel"];
            unknown_name(&config["thinkingConfig"], &known, "generation_config.thinking_config")
        })
        .or_else(|| {
            let is_wrong = config.get("stopSequences").is_some()
                && (list(config, "stopSequences").is_empty() || list(config, "stopSequences").len() > 5);
            is_wrong.then(|| "stop_sequences: 1 to 5 are supported".to_owned())
        })
        .or_else(|| {
            let is_wrong = config["temperature"].as_f64().is_some_and(|value| !(0.0..=2.0).contains(&value));
            is_wrong
                .then(|| "* GenerateContentRequest.generation_config.temperature: must be in the range [0.0, 2.0].".to_owned())
        })
        .or_else(|| about_schema(config.get("responseSchema")?, "generation_config.response_schema"))
}

fn about_tools(body: &Value) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for (at, group) in list(body, "tools").iter().enumerate() {
        let place = format!("tools[{at}]");
        let known = ["functionDeclarations", "googleSearch", "codeExecution", "urlContext"];
        if let Some(fault) = unknown_name(group, &known, &place) {
            return Some(fault);
        }
        for (number, tool) in list(group, "functionDeclarations").iter().enumerate() {
            let place = format!("{place}.function_declarations[{number}]");
            let known =
                ["name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior"];
            if let Some(fault) = unknown_name(tool, &known, &place) {
                return Some(fault);
            }
            let name = tool["name"].as_str().unwrap_or_default();
            let is_name = is_made_of(name, |c| c.is_ascii_alphanumeric() || "_.:-".contains(c)) && name.len() <= 64;
            if !is_name || name.starts_with(|c: char| !c.is_ascii_alphabetic() && c != '_') {
                return Some(format!("* GenerateContentRequest.{place}.name: Invalid function name {name:?}."));
            }
            if names.contains(&name) {
                return Some(format!("Duplicate function declaration found: {name}"));
            }
            names.push(name);
            if let Some(fault) = tool.get("parameters").and_then(|schema| about_schema(schema, &format!("{place}.parameters"))) {
                return Some(fault);
            }
        }
    }
    if body.get("tools").is_some_and(|tools| tools.as_array().is_none_or(Vec::is_empty)) {
        return Some("tools is there and empty".to_owned());
    }
    let calling = body.get("toolConfig")?.get("functionCallingConfig")?;
    if names.is_empty() {
        return Some("Function calling config is set without function_declarations.".to_owned());
    }
    let mode = calling["mode"].as_str().unwrap_or_default();
    let allowed = list(calling, "allowedFunctionNames");
    if !["AUTO", "ANY", "NONE", "VALIDATED"].contains(&mode) {
        return Some(format!("Invalid value at 'tool_config.function_calling_config.mode': {mode:?}"));
    }
    if !allowed.is_empty() && !["ANY", "VALIDATED"].contains(&mode) {
        return Some("Allowed function names should only be set when the function calling mode is ANY.".to_owned());
    }
    let stranger = allowed.iter().find(|name| !names.contains(&name.as_str().unwrap_or_default()));
    stranger.map(|name| format!("allowed_function_names contains {name}, which is not declared"))
}

fn about_schema(schema: &Value, place: &str) -> Option<String> {
    if let Some(fault) = unknown_name(schema, &SCHEMA, place) {
        return Some(fault);
    }
    if schema.get("type").is_some_and(|kind| !kind.is_string()) {
        return Some(format!(
            "Invalid JSON payload received. Unknown name \"type\" at '{place}': Proto field is not repeating, cannot start list."
        ));
    }
    let kind = schema["type"].as_str().unwrap_or_default().to_ascii_uppercase();
    if !kind.is_empty() && !TYPES.contains(&kind.as_str()) {
        return Some(format!("Invalid value at '{place}.type': {kind:?}"));
    }
    let alternatives = list(schema, "anyOf");
    if kind.is_empty() && alternatives.is_empty() {
        return Some(format!("* GenerateContentRequest.{place}: schema didn't specify the schema type field."));
    }
    if !alternatives.is_empty() && unknown(schema, &["anyOf", "description", "nullable", "title", "type"]).is_some() {
        return Some(format!("* {place}: when using any_of, it must be the only field set"));
    }
    about_words(schema, &kind, place).or_else(|| {
        let items = (kind == "ARRAY").then(|| match schema.get("items") {
            Some(items) => about_schema(items, &format!("{place}.items")),
            None => Some(format!("* GenerateContentRequest.{place}.items: missing field.")),
        });
        let inner = schema["properties"].as_object().into_iter().flatten();
        let choices = alternatives.iter().enumerate();
        items
            .flatten()
            .or_else(|| inner.clone().find_map(|(name, inner)| about_schema(inner, &format!("{place}.properties[{name}]"))))
            .or_else(|| choices.clone().find_map(|(at, inner)| about_schema(inner, &format!("{place}.any_of[{at}]"))))
    })
}

/// The words that go with one type and not with another.
fn about_words(schema: &Value, kind: &str, place: &str) -> Option<String> {
    let place = format!("* GenerateContentRequest.{place}");
    let empty = schema.get("properties").is_none_or(|inner| inner.as_object().is_none_or(serde_json::Map::is_empty));
    // Inside of others an object may be left open; the arguments themselves may not.
    if kind == "OBJECT" && empty && place.ends_with(".parameters") {
        return Some(format!("{place}.properties: should be non-empty for OBJECT type"));
    }
    if kind != "OBJECT" && schema.get("properties").is_some() {
        return Some(format!("{place}.properties: only allowed for OBJECT type"));
    }
    let is_defined = |name: &Value| name.as_str().is_some_and(|name| schema["properties"].get(name).is_some());
    if let Some(at) = list(schema, "required").iter().position(|name| !is_defined(name)) {
        return Some(format!("{place}.required[{at}]: property is not defined"));
    }
    if schema.get("enum").is_some() {
        if kind != "STRING" {
            return Some(format!("{place}.enum: only allowed for STRING type"));
        }
        if list(schema, "enum").iter().any(|value| value.as_str().is_none_or(str::is_empty)) {
            return Some(format!("{place}.enum[0]: cannot be empty"));
        }
    }
    let formats: &[&str] = match kind {
        "STRING" => &["enum", "date-time"],
        "NUMBER" => &["float", "double"],
        "INTEGER" => &["int32", "int64"],
        _ => &[],
    };
    if schema.get("format").is_some_and(|format| !formats.contains(&format.as_str().unwrap_or_default())) {
        return Some(format!("{place}.format: only {formats:?} are supported for {kind} type"));
    }
    (kind != "ARRAY" && schema.get("items").is_some())
        .then(|| format!("{place}.items: field predicate failed: $type == Type.ARRAY"))
}

fn about_contents(body: &Value, told: &Told) -> Option<String> {
    if let Some(system) = body.get("systemInstruction") {
        let is_text = |part: &Value| part["text"].as_str().is_some_and(|text| !text.is_empty());
        if list(system, "parts").is_empty() || !list(system, "parts").iter().all(is_text) {
            return Some("system_instruction.parts: must have texts that are not empty".to_owned());
        }
    }
    let contents = list(body, "contents");
    if contents.is_empty() {
        return Some("* GenerateContentRequest.contents: contents is not specified".to_owned());
    }
    let mut open = 0;
    for (at, turn) in contents.iter().enumerate() {
        let place = format!("contents[{at}]");
        if let Some(fault) = unknown_name(turn, &["role", "parts"], &place) {
            return Some(fault);
        }
        let role = turn["role"].as_str().unwrap_or_default();
        if !["user", "model"].contains(&role) {
            return Some("Please use a valid role: user, model.".to_owned());
        }
        let parts = list(turn, "parts");
        if parts.is_empty() {
            return Some(format!("* GenerateContentRequest.{place}.parts: contents.parts must not be empty."));
        }
        if let Some(fault) =
            parts.iter().enumerate().find_map(|(number, part)| about_part(part, &format!("{place}.parts[{number}]")))
        {
            return Some(fault);
        }
        let count = |kind: &str| parts.iter().filter(|part| part.get(kind).is_some()).count();
        let (calls, results) = (count("functionCall"), count("functionResponse"));
        if results != open {
            return Some("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".to_owned());
        }
        if results > 0 && (role != "user" || parts.len() > results) {
            return Some("Please ensure that a function response turn holds function responses alone.".to_owned());
        }
        if calls > 0 && (role != "model" || at == 0 || contents[at - 1]["role"] == "model") {
            return Some(
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
                    .to_owned(),
            );
        }
        // What a user says after the results of tools has no other place than behind them.
        let follows_results =
            at > 0 && list(&contents[at - 1], "parts").iter().any(|part| part.get("functionResponse").is_some());
        if at > 0 && !follows_results && contents[at - 1]["role"] == turn["role"] {
            return Some("Please ensure that multiturn requests alternate between user and model.".to_owned());
        }
        open = calls;
    }
    if contents.last().is_some_and(|turn| turn["role"] != "user") {
        return Some("Please ensure that multiturn requests end with a user role or a function response.".to_owned());
    }
    about_signatures(contents, told)
}

fn about_part(part: &Value, place: &str) -> Option<String> {
    let known =
        ["text", "thought", "thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse", "videoMetadata"];
    if let Some(fault) = unknown_name(part, &known, place) {
        return Some(fault);
    }
    let kinds = ["text", "inlineData", "fileData", "functionCall", "functionResponse"];
    if kinds.iter().filter(|kind| part.get(**kind).is_some()).count() != 1 {
        return Some(format!(
            "* GenerateContentRequest.{place}.data: required oneof field 'data' must have one initialized field"
        ));
    }
    if part["text"].as_str().is_some_and(str::is_empty) {
        return Some(
            "Unable to submit request because it has an empty text parameter. Add a value to the parameter and try again."
                .to_owned(),
        );
    }
    for (kind, object, known) in [
        ("functionCall", "args", &["name", "args", "id"][..]),
        ("functionResponse", "response", &["name", "response", "id", "willContinue", "scheduling", "parts"][..]),
    ] {
        let Some(inner) = part.get(kind) else { continue };
        if let Some(fault) = unknown_name(inner, known, &format!("{place}.{kind}")) {
            return Some(fault);
        }
        if inner["name"].as_str().is_none_or(str::is_empty) {
            return Some(format!("* GenerateContentRequest.{place}.{kind}.name: Name cannot be empty."));
        }
        if inner.get(object).is_some_and(|value| !value.is_object()) {
            return Some(format!("Invalid value at '{place}.{kind}.{object}' (type.googleapis.com/google.protobuf.Struct)"));
        }
    }
    unknown_name(&part["inlineData"], &["mimeType", "data", "displayName"], &format!("{place}.inline_data"))
}

/// Of the turn that is being continued, the first call of each step must come back with the signature that it was given.
fn about_signatures(contents: &[Value], told: &Told) -> Option<String> {
    let has = |turn: &Value, kind: &str| list(turn, "parts").iter().any(|part| part.get(kind).is_some());
    let own = contents.iter().rposition(|turn| turn["role"] == "user" && !has(turn, "functionResponse")).unwrap_or(0);
    for part in contents[own..].iter().flat_map(|turn| list(turn, "parts")) {
        let Some(call) = part.get("functionCall") else { continue };
        let is_it = |told: &&crate::dialect::ToldCall| call["name"] == *told.name && call["args"] == told.arguments;
        let signature = told.calls.iter().find(is_it).and_then(|told| told.signature.as_deref());
        if signature.is_some_and(|signature| part["thoughtSignature"] != signature) {
            return Some("Function call is missing a thought_signature in functionCall parts.".to_owned());
        }
    }
    None
}
