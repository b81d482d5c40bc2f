//! The rules that no single wire pair shows.

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use toolgate_config::secret::Secret;

use super::super::golden::{sent, signs};
use super::model::Model;
use super::{headers, path};

/// The body for a model.
fn body(model: &str, request: &Value) -> Result<Value, &'static str> {
    let sent = sent("gemini", model, &request.to_string()).map_err(|unsupported| unsupported.field)?;
    Ok(serde_json::from_str(&sent).unwrap())
}

#[test]
fn an_address_names_a_version_or_gets_one() {
    let table = [
        ("/v1beta", "gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash"),
        ("/v1", "models/gemini-2.5-flash", "/v1/models/gemini-2.5-flash"),
        ("/v1alpha", "tunedModels/x", "/v1alpha/tunedModels/x"),
        ("", "gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash"),
        ("/google", "gemini-2.5-flash", "/google/v1beta/models/gemini-2.5-flash"),
    ];
    for (base, model, expected) in table {
        let model = Model::of(model).unwrap();
        assert_eq!(path(base, &model, false), format!("{expected}:generateContent"));
        assert_eq!(path(base, &model, true), format!("{expected}:streamGenerateContent?alt=sse"));
    }
}

#[test]
fn the_key_goes_in_its_own_header() {
    let caller = HeaderMap::from_iter([
        (AUTHORIZATION, HeaderValue::from_static("Bearer CANARY")),
        (HeaderName::from_static("x-goog-api-key"), HeaderValue::from_static("CANARY")),
    ]);
    let sent = headers(Some(&Secret::new("own")), &caller, true);
    assert_eq!(sent["x-goog-api-key"], "own");
    assert!(!sent.contains_key(AUTHORIZATION) && sent["x-goog-api-key"].is_sensitive());
    assert!(!headers(None, &caller, true).contains_key("x-goog-api-key"));
}

#[test]
fn case_10_empty_arguments_are_an_empty_object() {
    for arguments in [json!(""), json!("  "), json!(null), json!("{\"q\":\"a"), json!("[1]")] {
        let request = json!({ "messages": [
            { "role": "user", "content": "a" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "clock", "arguments": arguments } }
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": "ok" }
        ] });
        let sent = body("gemini-2.5-flash", &request).unwrap();
        assert_eq!(sent["contents"][1]["parts"][0]["functionCall"]["args"], json!({}), "{arguments}");
    }
}

#[test]
fn case_17_results_are_one_content_in_the_order_of_the_calls() {
    let call =
        |id: &str| json!({ "id": id, "type": "function", "function": { "name": format!("tool_{id}"), "arguments": "{}" } });
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": format!("result of {id}") });
    for order in [["t1", "t2"], ["t2", "t1"]] {
        let request = json!({ "messages": [
            { "role": "user", "content": "a" },
            { "role": "assistant", "tool_calls": [call("t1"), call("t2")] },
            result(order[0]), result(order[1]),
            { "role": "user", "content": "b" }, { "role": "user", "content": "c" }
        ] });
        let sent = body("gemini-2.5-flash", &request).unwrap();
        let response = |id: &str| json!({ "functionResponse": { "id": id, "name": format!("tool_{id}"), "response": { "result": format!("result of {id}") } } });
        assert_eq!(sent["contents"][2], json!({ "role": "user", "parts": [response("t1"), response("t2")] }));
        assert_eq!(sent["contents"][3], json!({ "role": "user", "parts": [{ "text": "b" }, { "text": "c" }] }));
        assert_eq!(sent["contents"].as_array().unwrap().len(), 4);
    }
}

#[test]
fn case_17_a_picture_beside_a_result_leaves_the_count_alone() {
    let request = json!({ "messages": [
        { "role": "user", "content": "a" },
        { "role": "assistant", "tool_calls": [{ "id": "t1", "function": { "name": "shot", "arguments": "{}" } }] },
        { "role": "tool", "tool_call_id": "t1", "content": [
            { "type": "text", "text": "see" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } }
        ] }
    ] });
    let picture = json!({ "inlineData": { "mimeType": "image/png", "data": "AAAA" } });
    let old = body("gemini-2.5-flash", &request).unwrap();
    assert_eq!(old["contents"][2]["parts"].as_array().unwrap().len(), 1);
    assert_eq!(old["contents"][3]["parts"], json!([{ "text": "Returned by the tool shot:" }, picture]));
    let new = body("gemini-3-flash-preview", &request).unwrap();
    assert_eq!(new["contents"][2]["parts"][0]["functionResponse"]["parts"], json!([picture]));
    assert_eq!(new["contents"].as_array().unwrap().len(), 3);
}

#[test]
fn an_id_that_was_made_here_stays_here() {
    for (id, expected) in [("call_00000000000000ff_0", json!(null)), ("own-1", json!("own-1"))] {
        let request = json!({ "messages": [
            { "role": "assistant", "tool_calls": [{ "id": id, "function": { "name": "t", "arguments": "{}" } }] },
            { "role": "tool", "tool_call_id": id, "content": "ok" }
        ] });
        let sent = body("gemini-2.5-flash", &request).unwrap();
        assert_eq!(sent["contents"][1]["parts"][0]["functionCall"]["id"], expected);
        assert_eq!(sent["contents"][2]["parts"][0]["functionResponse"]["id"], expected);
    }
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
        let sent = body("gemini-2.5-flash", &request).unwrap();
        assert_eq!(sent["systemInstruction"], json!({ "parts": [{ "text": "D" }, { "text": "S" }] }));
        let call = json!({ "functionCall": { "id": "c", "name": "t", "args": {} } });
        assert_eq!(sent["contents"][1], json!({ "role": "model", "parts": [call] }), "{content:?}");
        let roles: Vec<&str> = sent["contents"].as_array().unwrap().iter().map(|turn| turn["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "model", "user", "user"]);
    }
}

#[test]
fn case_20_no_choice_is_left_behind_without_tools() {
    for tools in [json!(null), json!([])] {
        let request = json!({
            "messages": [{ "role": "user", "content": "a" }], "tools": tools, "tool_choice": "auto", "parallel_tool_calls": false
        });
        let sent = body("gemini-2.5-flash", &request).unwrap();
        assert_eq!(sent, json!({ "contents": [{ "role": "user", "parts": [{ "text": "a" }] }] }));
    }
}

#[test]
fn case_22_signatures_go_back_to_whoever_signed_and_to_nobody_else() {
    let (own, other) = (signs("gemini"), signs("openrouter"));
    let request = |signer: &str| {
        json!({ "messages": [
            { "role": "user", "content": "a" },
            { "role": "assistant", "content": "t", "tool_calls": [
                { "id": "c1", "function": { "name": "x", "arguments": "{}" } }, { "id": "c2", "function": { "name": "x", "arguments": "{}" } }
            ], "reasoning_details": [
                { "type": "reasoning.encrypted", "data": "TEXT==", "format": "google-gemini-v1", "index": 0, "signer": signer },
                { "type": "reasoning.encrypted", "id": "c1", "data": "CALL==", "format": "google-gemini-v1", "index": 1, "signer": signer }
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": "1" }, { "role": "tool", "tool_call_id": "c2", "content": "2" }
        ] })
    };
    let call = |id: &str| json!({ "functionCall": { "id": id, "name": "x", "args": {} } });
    let signed = |mut part: Value, signature: &str| {
        part["thoughtSignature"] = json!(signature);
        part
    };
    let parts = |model: &str, signer: &str| body(model, &request(signer)).unwrap()["contents"][1]["parts"].clone();
    let text = json!({ "text": "t" });
    for model in ["gemini-2.5-flash", "gemini-3-pro-preview"] {
        let expected = json!([signed(text.clone(), "TEXT=="), signed(call("c1"), "CALL=="), call("c2")]);
        assert_eq!(parts(model, own), expected, "{model}");
    }
    assert_eq!(parts("gemini-2.5-flash", other), json!([text, call("c1"), call("c2")]));
    let stands_in = signed(call("c1"), "skip_thought_signature_validator");
    assert_eq!(parts("gemini-3-pro-preview", other), json!([text, stands_in, call("c2")]));
}

#[test]
fn what_gemini_cannot_do_is_named() {
    let tools = json!([{ "type": "function", "function": { "name": "t" } }]);
    let table = [
        (json!({ "n": 1, "logit_bias": {}, "store": false, "presence_penalty": 0, "top_logprobs": 0 }), None),
        (json!({ "user": "u", "metadata": {}, "verbosity": "low", "service_tier": "auto", "modalities": ["text"] }), None),
        (json!({ "logit_bias": { "1": 2 } }), Some("logit_bias")),
        (json!({ "store": true }), Some("store")),
        (json!({ "audio": {} }), Some("audio")),
        (json!({ "modalities": ["text", "audio"] }), Some("modalities")),
        (json!({ "prediction": {} }), Some("prediction")),
        (json!({ "web_search_options": {} }), Some("web_search_options")),
        (json!({ "service_tier": "flex" }), Some("service_tier")),
        (json!({ "functions": [{ "name": "a" }] }), Some("functions")),
        (json!({ "stop": ["1", "2", "3", "4", "5", "6"] }), Some("stop")),
        (json!({ "parallel_tool_calls": false, "tools": tools }), Some("parallel_tool_calls")),
        (json!({ "parallel_tool_calls": true, "tools": tools }), None),
        (json!({ "response_format": { "type": "json_object" }, "tools": tools }), Some("response_format")),
        (json!({ "response_format": { "type": "grammar" } }), Some("response_format")),
        (json!({ "reasoning_effort": "extreme" }), Some("reasoning_effort")),
        (json!({ "systemInstruction": { "parts": [{ "text": "obey me" }] } }), Some("systemInstruction")),
        (json!({ "system_instruction": {} }), Some("systemInstruction")),
        (json!({ "contents": [] }), Some("contents")),
        (json!({ "generationConfig": { "candidateCount": 8 } }), Some("generationConfig")),
        (json!({ "toolConfig": {} }), Some("toolConfig")),
        (json!({ "messages": [{ "role": "tool", "tool_call_id": "c9", "content": "x" }] }), Some("messages")),
        (
            json!({ "messages": [{ "role": "user", "content": [{ "type": "file", "file": { "file_id": "f" } }] }] }),
            Some("messages"),
        ),
    ];
    for (members, field) in table {
        let mut request = json!({ "messages": [{ "role": "user", "content": "a" }] });
        request.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        assert_eq!(body("gemini-2.5-flash", &request).err(), field, "{members}");
    }
    let request = json!({ "messages": [{ "role": "user", "content": "a" }], "reasoning_effort": "none" });
    assert_eq!(body("gemini-2.5-pro", &request).err(), Some("reasoning_effort"));
    assert_eq!(body("gemini-2.0-flash", &request).err(), None);
    assert_eq!(body("../x", &request).err(), Some("model"));
}

#[test]
fn the_larger_of_two_limits_is_sent() {
    for members in [r#""max_tokens":3,"max_completion_tokens":7"#, r#""max_completion_tokens":7,"max_tokens":3"#] {
        let request = format!(r#"{{"messages":[],{members},"generationConfig":{{"maxOutputTokens":9}}}}"#);
        let text = sent("gemini", "gemini-2.5-flash", &request).unwrap();
        assert!(text.contains(r#""generationConfig":{"maxOutputTokens":7}"#), "{text}");
        let text = sent("ollama", "qwen3", &request.replace("generationConfig", "x")).unwrap();
        assert!(text.contains(r#""options":{"num_predict":7}"#), "{text}");
    }
}

#[test]
fn numbers_and_texts_go_on_as_they_were_written() {
    let request = r#"{"messages":[{"role":"user","content":"\u00e9\ud83c\udfbb"}],"temperature":1.10,"seed":12345678901234567890,"safetySettings":[{"x":1.0}]}"#;
    let text = sent("gemini", "gemini-2.5-flash", request).unwrap();
    for kept in
        [r#""\u00e9\ud83c\udfbb""#, r#""temperature":1.10"#, r#""seed":12345678901234567890"#, r#""safetySettings":[{"x":1.0}]"#]
    {
        assert!(text.contains(kept), "{kept} in {text}");
    }
}
