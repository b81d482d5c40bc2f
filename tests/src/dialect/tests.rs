use serde_json::{Value, json};

use super::{Dialect, Told};
use crate::reply::{Rendered, Step, render};
use crate::scenario::Reply;

const ALL: [(Dialect, &str); 5] = [
    (Dialect::OpenAi, "/v1/chat/completions"),
    (Dialect::Anthropic, "/anthropic/v1/messages"),
    (Dialect::Gemini, "/gemini/v1beta/models/upstream-m:streamGenerateContent?alt=sse"),
    (Dialect::Ollama, "/ollama/api/chat"),
    (Dialect::Mistral, "/mistral/v1/chat/completions"),
];

fn reply() -> Reply {
    let script = json!({
        "content": "Some words", "reasoning": "Hm.", "usage": [30, 20],
        "calls": [{"id": "call_1", "name": "lookup", "arguments": {"q": "é"}}, {"id": "call_2", "name": "clock"}],
    });
    serde_json::from_value(script).expect("a reply")
}

fn sent(target: &str, request: &Value) -> String {
    let Rendered { steps, .. } = render(&reply(), target, request.to_string().as_bytes());
    let bytes = steps.into_iter().flat_map(|step| if let Step::Send(bytes) = step { bytes } else { Vec::new() }).collect();
    String::from_utf8(bytes).expect("text")
}

#[test]
fn every_dialect_says_the_same_reply_in_its_own_form() {
    let cases: [(&str, &[&str]); 5] = [
        ("/v1/chat/completions", &[r#""content":"Some wor""#, r#""reasoning_content":"Hm.""#, r#""id":"call_1""#, "[DONE]"]),
        (
            "/anthropic/v1/messages",
            &[
                "event: message_start",
                "event: ping",
                r#""type":"thinking_delta""#,
                r#""type":"signature_delta""#,
                r#""text":"Some wor""#,
                r#""id":"call_1","name":"lookup","input":{}"#,
                r#""partial_json":"{\"q\":""#,
                r#""stop_reason":"tool_use""#,
                r#""output_tokens":20"#,
                "event: message_stop",
            ],
        ),
        (
            "/gemini/v1beta/models/m:streamGenerateContent?alt=sse",
            &[
                r#""thought":true"#,
                r#""functionCall":{"name":"lookup","args":{"q":"é"}}"#,
                r#""finishReason":"STOP""#,
                "\r\n\r\n",
            ],
        ),
        (
            "/ollama/api/chat",
            &[r#""thinking":"Hm.""#, r#""arguments":{"q":"é"}"#, r#""done":true,"done_reason":"stop""#, r#""eval_count":20"#],
        ),
        ("/mistral/v1/chat/completions", &[r#""type":"thinking""#, r#""arguments":"{\"q\":\"é\"}""#, "[DONE]"]),
    ];
    for (target, expected) in cases {
        let said = sent(target, &json!({"stream": true}));
        for text in expected {
            assert!(said.contains(text), "{target}: {text} in\n{said}");
        }
    }
}

#[test]
fn what_was_asked_is_heard_in_one_form() {
    let mut told = Told::default();
    told.say(Dialect::Gemini, &reply());
    let arguments = r#"{"q":"é"}"#;
    let requests = [
        json!({
            "system": [{"type": "text", "text": "S"}],
            "tools": [{"name": "lookup", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "any"}, "max_tokens": 9,
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "lookup", "input": {"q": "é"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "r"}, {"type": "text", "text": "b"}]},
            ],
        }),
        json!({
            "systemInstruction": {"parts": [{"text": "S"}]},
            "tools": [{"functionDeclarations": [{"name": "lookup", "parameters": {"type": "object"}}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}, "generationConfig": {"maxOutputTokens": 9},
            "contents": [
                {"role": "user", "parts": [{"text": "a"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "lookup", "args": {"q": "é"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "lookup", "response": {"result": "r"}}}]},
                {"role": "user", "parts": [{"text": "b"}]},
            ],
        }),
    ];
    for ((dialect, target), request) in ALL[1..3].iter().zip(requests) {
        let heard = dialect.heard(target, &request, &told);
        let expected = json!({
            "messages": [
                {"role": "system", "content": "S"},
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "function": {"name": "lookup", "arguments": arguments}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "r"},
                {"role": "user", "content": "b"},
            ],
            "tools": [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}],
            "tool_choice": "required", "max_tokens": 9,
        });
        assert_eq!(crate::matching::faults(&expected, &heard), Vec::<String>::new(), "{dialect:?}: {heard}");
    }
}
