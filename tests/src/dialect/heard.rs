//! A request of another dialect in OpenAI's words. What has no such word keeps its own name.

use serde_json::{Map, Value, json};

/// A list of parts as OpenAI's content: one text is the text itself, none is null.
fn content(parts: Vec<Value>) -> Value {
    match &parts[..] {
        [] => Value::Null,
        [only] if only["type"] == "text" && only.as_object().is_some_and(|only| only.len() == 2) => only["text"].clone(),
        _ => json!(parts),
    }
}

fn move_into(body: &mut Map<String, Value>, from: &str, canonical: &mut Map<String, Value>, to: &str) {
    if let Some(value) = body.remove(from) {
        canonical.insert(to.to_owned(), value);
    }
}

fn function(name: &Value, description: Option<&Value>, parameters: Option<&Value>) -> Value {
    let mut function = json!({"name": name});
    for (word, value) in [("description", description), ("parameters", parameters)] {
        if let Some(value) = value {
            function[word] = value.clone();
        }
    }
    json!({"type": "function", "function": function})
}

fn call(id: &Value, name: &Value, arguments: Option<&Value>) -> Value {
    let arguments = arguments.map_or_else(|| "{}".to_owned(), Value::to_string);
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn list(value: Option<&Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(list)) => list.clone(),
        Some(Value::Null) | None => Vec::new(),
        Some(other) => vec![other.clone()],
    }
}

pub(super) fn anthropic(body: &Value) -> Value {
    let mut body = body.as_object().cloned().unwrap_or_default();
    let mut canonical = Map::new();
    let mut messages: Vec<Value> = list(body.remove("system").as_ref())
        .iter()
        .map(|block| json!({"role": "system", "content": block.get("text").unwrap_or(block)}))
        .collect();
    for message in list(body.remove("messages").as_ref()) {
        let blocks: Vec<Value> = match &message["content"] {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            blocks => list(Some(blocks)),
        };
        messages.extend(if message["role"] == "assistant" { vec![said_before(&blocks)] } else { asked(&blocks) });
    }
    canonical.insert("messages".to_owned(), json!(messages));
    if let Some(tools) = body.remove("tools") {
        let tools: Vec<Value> = list(Some(&tools))
            .iter()
            .map(|tool| function(&tool["name"], tool.get("description"), tool.get("input_schema")))
            .collect();
        canonical.insert("tools".to_owned(), json!(tools));
    }
    if let Some(choice) = body.remove("tool_choice") {
        let word = match choice["type"].as_str() {
            Some("any") => json!("required"),
            Some("tool") => json!({"type": "function", "function": {"name": choice["name"]}}),
            _ => choice["type"].clone(),
        };
        canonical.insert("tool_choice".to_owned(), word);
        if let Some(one) = choice["disable_parallel_tool_use"].as_bool() {
            canonical.insert("parallel_tool_calls".to_owned(), json!(!one));
        }
    }
    move_into(&mut body, "stop_sequences", &mut canonical, "stop");
    canonical.extend(body);
    Value::Object(canonical)
}

/// An assistant's blocks; thoughts are kept as they are, under `thinking`.
fn said_before(blocks: &[Value]) -> Value {
    let mut message = json!({"role": "assistant"});
    let of = |kinds: &[&str]| -> Vec<Value> {
        blocks.iter().filter(|block| kinds.iter().any(|kind| block["type"] == *kind)).cloned().collect()
    };
    message["content"] = content(of(&["text"]));
    let calls: Vec<Value> =
        of(&["tool_use"]).iter().map(|block| call(&block["id"], &block["name"], block.get("input"))).collect();
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let thoughts = of(&["thinking", "redacted_thinking"]);
    if !thoughts.is_empty() {
        message["thinking"] = json!(thoughts);
    }
    message
}

/// A user's blocks: each result is a message, and what else there is another.
fn asked(blocks: &[Value]) -> Vec<Value> {
    let (results, rest): (Vec<&Value>, Vec<&Value>) = blocks.iter().partition(|block| block["type"] == "tool_result");
    let mut messages: Vec<Value> = results
        .into_iter()
        .map(|result| {
            let inner = match &result["content"] {
                Value::String(text) => json!(text),
                parts => content(list(Some(parts)).iter().map(part).collect()),
            };
            let mut message = json!({"role": "tool", "tool_call_id": result["tool_use_id"], "content": inner});
            if result["is_error"] == true {
                message["is_error"] = json!(true);
            }
            message
        })
        .collect();
    if !rest.is_empty() {
        messages.push(json!({"role": "user", "content": content(rest.into_iter().map(part).collect())}));
    }
    messages
}

fn part(block: &Value) -> Value {
    let source = &block["source"];
    let address = || match source["type"].as_str() {
        Some("base64") => json!(data_url(&source["media_type"], &source["data"])),
        _ => source["url"].clone(),
    };
    match block["type"].as_str() {
        Some("text") => json!({"type": "text", "text": block["text"]}),
        Some("image") => json!({"type": "image_url", "image_url": {"url": address()}}),
        Some("document") => json!({"type": "file", "file": {"file_data": address()}}),
        _ => block.clone(),
    }
}

fn data_url(kind: &Value, data: &Value) -> String {
    format!("data:{};base64,{}", kind.as_str().unwrap_or_default(), data.as_str().unwrap_or_default())
}

pub(super) fn gemini(target: &str, body: &Value) -> Value {
    let mut body = body.as_object().cloned().unwrap_or_default();
    let mut canonical = Map::new();
    let model = target.split("/models/").nth(1).and_then(|rest| rest.split(':').next()).unwrap_or_default();
    canonical.insert("model".to_owned(), json!(model));
    let system = body.remove("systemInstruction").or_else(|| body.remove("system_instruction")).unwrap_or_default();
    let mut messages: Vec<Value> =
        list(system.get("parts")).iter().map(|part| json!({"role": "system", "content": part["text"]})).collect();
    for turn in list(body.remove("contents").as_ref()) {
        let parts = list(turn.get("parts"));
        messages.extend(if turn["role"] == "model" { vec![modelled(&parts)] } else { told(&parts) });
    }
    canonical.insert("messages".to_owned(), json!(messages));
    if let Some(tools) = body.remove("tools") {
        let tools: Vec<Value> = list(Some(&tools))
            .iter()
            .flat_map(|group| list(group.get("functionDeclarations")))
            .map(|tool| {
                let parameters = tool.get("parameters").or_else(|| tool.get("parametersJsonSchema"));
                function(&tool["name"], tool.get("description"), parameters)
            })
            .collect();
        canonical.insert("tools".to_owned(), json!(tools));
    }
    if let Some(config) = body.remove("toolConfig") {
        let config = &config["functionCallingConfig"];
        let word = match (config["mode"].as_str(), &list(config.get("allowedFunctionNames"))[..]) {
            (Some("AUTO"), _) => json!("auto"),
            (Some("NONE"), _) => json!("none"),
            (Some("ANY"), [only]) => json!({"type": "function", "function": {"name": only}}),
            (Some("ANY"), []) => json!("required"),
            _ => config.clone(),
        };
        canonical.insert("tool_choice".to_owned(), word);
    }
    if let Some(Value::Object(mut config)) = body.remove("generationConfig") {
        for (from, to) in [
            ("maxOutputTokens", "max_tokens"),
            ("topP", "top_p"),
            ("topK", "top_k"),
            ("stopSequences", "stop"),
            ("candidateCount", "n"),
            ("presencePenalty", "presence_penalty"),
            ("frequencyPenalty", "frequency_penalty"),
        ] {
            move_into(&mut config, from, &mut canonical, to);
        }
        canonical.extend(config);
    }
    canonical.extend(body);
    Value::Object(canonical)
}

/// A model's turn; signatures are kept beside what they sign.
fn modelled(parts: &[Value]) -> Value {
    let mut message = json!({"role": "assistant"});
    let texts: Vec<Value> = parts
        .iter()
        .filter(|part| part.get("text").is_some() && part["thought"] != true)
        .map(|part| json!({"type": "text", "text": part["text"]}))
        .collect();
    message["content"] = content(texts);
    let calls: Vec<Value> = parts
        .iter()
        .filter_map(|part| {
            let made = part.get("functionCall")?;
            let mut call = call(made.get("id").unwrap_or(&Value::Null), &made["name"], made.get("args"));
            if let Some(signature) = part.get("thoughtSignature") {
                call["signature"] = signature.clone();
            }
            Some(call)
        })
        .collect();
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    message
}

/// A user's turn: each result is a message, and what else there is another.
fn told(parts: &[Value]) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut rest = Vec::new();
    for part in parts {
        if let Some(result) = part.get("functionResponse") {
            // The result is an object there; a text is its only member, by the name of `result`.
            let inner = match result["response"].as_object().map(|only| (only.len(), only.get("result"))) {
                Some((1, Some(Value::String(text)))) => json!(text),
                _ => json!(result["response"].to_string()),
            };
            let id = result.get("id").cloned().unwrap_or_default();
            messages.push(json!({"role": "tool", "tool_call_id": id, "name": result["name"], "content": inner}));
        } else if let Some(data) = part.get("inlineData") {
            rest.push(json!({"type": "image_url", "image_url": {"url": data_url(&data["mimeType"], &data["data"])}}));
        } else if let Some(data) = part.get("fileData") {
            rest.push(json!({"type": "file", "file": {"file_data": data["fileUri"]}}));
        } else {
            rest.push(json!({"type": "text", "text": part["text"]}));
        }
    }
    if !rest.is_empty() {
        messages.push(json!({"role": "user", "content": content(rest)}));
    }
    messages
}

pub(super) fn ollama(body: &Value) -> Value {
    let mut body = body.as_object().cloned().unwrap_or_default();
    let mut canonical = Map::new();
    let messages: Vec<Value> = list(body.remove("messages").as_ref()).into_iter().map(ollama_message).collect();
    canonical.insert("messages".to_owned(), json!(messages));
    if let Some(Value::Object(mut options)) = body.remove("options") {
        move_into(&mut options, "num_predict", &mut canonical, "max_tokens");
        canonical.extend(options);
    }
    canonical.extend(body);
    Value::Object(canonical)
}

fn ollama_message(mut message: Value) -> Value {
    for made in message["tool_calls"].as_array_mut().into_iter().flatten() {
        let made_before = made.clone();
        *made = call(
            made_before.get("id").unwrap_or(&Value::Null),
            &made_before["function"]["name"],
            made_before["function"].get("arguments"),
        );
    }
    if message["role"] == "tool" {
        let name = message["tool_name"].clone();
        message["name"] = name;
    }
    if let Some(images) = message.get("images").cloned() {
        let text = message["content"].as_str().filter(|text| !text.is_empty()).map(|text| json!({"type": "text", "text": text}));
        let images = list(Some(&images)).into_iter().map(|data| json!({"type": "image_url", "image_url": {"url": data}}));
        message["content"] = json!(text.into_iter().chain(images).collect::<Vec<_>>());
    }
    message
}

pub(super) fn mistral(body: &Value) -> Value {
    let mut canonical = body.clone();
    if canonical["tool_choice"] == "any" {
        canonical["tool_choice"] = json!("required");
    }
    if let Some(seed) = canonical.as_object_mut().and_then(|members| members.shift_remove("random_seed")) {
        canonical["seed"] = seed;
    }
    canonical
}
