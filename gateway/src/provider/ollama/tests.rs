//! The rules that no single wire pair shows.

use serde_json::{Value, json};

use super::super::golden::sent;

fn body(request: &Value) -> Result<Value, &'static str> {
    let sent = sent("ollama", "qwen3", &request.to_string()).map_err(|unsupported| unsupported.field)?;
    Ok(serde_json::from_str(&sent).unwrap())
}

#[test]
fn an_address_may_name_either_api() {
    for (base, expected) in [
        ("", "/api/chat"),
        ("/v1", "/api/chat"),
        ("/api", "/api/chat"),
        ("/ollama", "/ollama/api/chat"),
        ("/ollama/v1", "/ollama/api/chat"),
    ] {
        assert_eq!(super::path(base), expected);
    }
}

#[test]
fn case_13_arguments_are_objects_there() {
    for (arguments, expected) in [
        (json!("{\"q\":\"a\"}"), json!({ "q": "a" })),
        (json!({ "q": "a" }), json!({ "q": "a" })),
        (json!(""), json!({})),
        (json!(null), json!({})),
    ] {
        let request = json!({ "messages": [
            { "role": "assistant", "tool_calls": [{ "id": "c", "function": { "name": "lookup", "arguments": arguments } }] },
            { "role": "tool", "tool_call_id": "c", "content": "ok" }
        ] });
        let sent = body(&request).unwrap();
        let call = json!({ "function": { "name": "lookup", "arguments": expected } });
        assert_eq!(sent["messages"][0], json!({ "role": "assistant", "content": "", "tool_calls": [call] }));
        assert_eq!(sent["messages"][1], json!({ "role": "tool", "content": "ok", "tool_name": "lookup" }));
    }
}

#[test]
fn case_17_results_come_in_the_order_of_the_calls() {
    let call = |id: &str| json!({ "id": id, "function": { "name": "t", "arguments": "{}" } });
    let request = json!({ "messages": [
        { "role": "assistant", "tool_calls": [call("t1"), call("t2")] },
        { "role": "tool", "tool_call_id": "t2", "content": "two" }, { "role": "tool", "tool_call_id": "t1", "content": "one" },
        { "role": "user", "content": "x" }
    ] });
    let sent = body(&request).unwrap();
    let said: Vec<&str> =
        sent["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["", "one", "two", "x"]);
}

#[test]
fn case_19_every_empty_content_is_taken() {
    for content in [Some(json!("")), Some(json!(null)), None, Some(json!([])), Some(json!([{ "type": "text", "text": "" }]))] {
        let mut turn =
            json!({ "role": "assistant", "tool_calls": [{ "id": "c", "function": { "name": "t", "arguments": "{}" } }] });
        if let Some(content) = &content {
            turn["content"] = content.clone();
        }
        let request = json!({ "messages": [
            { "role": "developer", "content": "D" }, { "role": "system", "content": "S" },
            { "role": "user", "content": "u" }, turn, { "role": "tool", "tool_call_id": "c", "content": "ok" },
            { "role": "user", "content": "a" }, { "role": "user", "content": "b" }
        ] });
        let sent = body(&request).unwrap();
        let roles: Vec<&str> = sent["messages"].as_array().unwrap().iter().map(|turn| turn["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["system", "system", "user", "assistant", "tool", "user", "user"], "{content:?}");
        assert_eq!(sent["messages"][3]["content"], "");
    }
}

#[test]
fn case_20_no_choice_is_left_behind_without_tools() {
    for tools in [json!(null), json!([])] {
        let request = json!({
            "messages": [{ "role": "user", "content": "a" }], "tools": tools, "tool_choice": "auto", "parallel_tool_calls": false
        });
        let expected = json!({ "model": "qwen3", "stream": false, "messages": [{ "role": "user", "content": "a" }] });
        assert_eq!(body(&request), Ok(expected));
    }
    let request = json!({
        "messages": [{ "role": "user", "content": "a" }], "tools": [{ "function": { "name": "t" } }], "tool_choice": "none"
    });
    assert!(body(&request).unwrap().get("tools").is_none());
}

#[test]
fn a_choice_that_forces_a_tool_shows_the_model_those_that_it_may_use() {
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name, "parameters": { "type": "object", "properties": {} } } });
    let named = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let allowed = json!({ "type": "allowed_tools", "allowed_tools": { "mode": "required", "tools": [named("b")] } });
    for (choice, shown) in [(json!("required"), vec!["a", "b"]), (named("b"), vec!["b"]), (allowed, vec!["b"])] {
        let request =
            json!({ "messages": [{ "role": "user", "content": "x" }], "tools": [tool("a"), tool("b")], "tool_choice": choice });
        let expected: Vec<_> = shown.into_iter().map(tool).collect();
        assert_eq!(body(&request).unwrap()["tools"], json!(expected), "{choice}");
    }
}

#[test]
fn what_ollama_cannot_do_is_named() {
    let tools = json!([{ "type": "function", "function": { "name": "t" } }]);
    let part = |part: Value| json!({ "messages": [{ "role": "user", "content": [part] }] });
    let table = [
        (
            json!({ "n": 1, "logit_bias": {}, "store": false, "presence_penalty": 0.0, "logprobs": false, "top_logprobs": 0 }),
            None,
        ),
        (
            json!({ "user": "u", "service_tier": "default", "stop": [], "seed": null, "response_format": { "type": "text" } }),
            None,
        ),
        (json!({ "n": 2 }), Some("n")),
        (json!({ "logprobs": true }), Some("logprobs")),
        (json!({ "top_logprobs": 2 }), Some("top_logprobs")),
        (json!({ "logit_bias": { "1": 2 } }), Some("logit_bias")),
        (json!({ "store": true }), Some("store")),
        (json!({ "audio": {} }), Some("audio")),
        (json!({ "modalities": ["audio"] }), Some("modalities")),
        (json!({ "tool_choice": "required", "tools": tools }), None),
        (json!({ "parallel_tool_calls": false, "tools": tools }), Some("parallel_tool_calls")),
        (json!({ "response_format": { "type": "json_object" }, "tools": tools }), Some("response_format")),
        (json!({ "reasoning_effort": "extreme" }), Some("reasoning_effort")),
        (part(json!({ "type": "image_url", "image_url": { "url": "https://a.test/b.png" } })), Some("messages")),
        (part(json!({ "type": "input_audio", "input_audio": { "data": "AA", "format": "wav" } })), Some("messages")),
        (part(json!({ "type": "file", "file": { "file_data": "data:application/pdf;base64,AA" } })), Some("messages")),
    ];
    for (members, field) in table {
        let mut request = json!({ "messages": [{ "role": "user", "content": "a" }] });
        request.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        assert_eq!(body(&request).err(), field, "{members}");
    }
}
