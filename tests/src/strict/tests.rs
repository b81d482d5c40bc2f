use serde_json::{Value, json};

use super::{Asked, refusal};
use crate::dialect::{Dialect, Told, ToldCall};
use crate::wire::Head;

/// What a well-formed request of a dialect has beside what a test is about.
fn base(dialect: Dialect) -> (&'static str, Vec<(&'static str, &'static str)>, Value) {
    match dialect {
        Dialect::OpenAi => ("/v1/chat/completions", vec![], json!({"model": "m"})),
        Dialect::Anthropic => (
            "/anthropic/v1/messages",
            vec![("x-api-key", "k"), ("anthropic-version", "2023-06-01")],
            json!({"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}),
        ),
        Dialect::Gemini => (
            "/gemini/v1beta/models/m:generateContent",
            vec![("x-goog-api-key", "k")],
            json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
        ),
        Dialect::Ollama => ("/ollama/api/chat", vec![], json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})),
        Dialect::Mistral => {
            ("/mistral/v1/chat/completions", vec![], json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}))
        }
    }
}

/// `over` over a well-formed request is refused with a sentence that holds this; empty: it is not refused.
fn check(dialect: Dialect, over: Value, sentence: &str) {
    check_told(dialect, over, &Told::default(), sentence);
}

fn check_told(dialect: Dialect, over: Value, told: &Told, sentence: &str) {
    let (target, headers, mut body) = base(dialect);
    let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let head = Head { start: String::new(), headers };
    crate::config::merge(&mut body, over);
    let seen = refusal(dialect, Asked { target, head: &head, body: &body, told });
    let seen = seen.map(|refusal| refusal.message).unwrap_or_default();
    let holds = if sentence.is_empty() { seen.is_empty() } else { seen.contains(sentence) };
    assert!(holds, "{dialect:?}: expected {sentence:?}, seen {seen:?}, of {body}");
}

#[test]
fn anthropic_refuses_what_it_refuses() {
    let check = |over: Value, sentence: &str| check(Dialect::Anthropic, over, sentence);
    let tools = json!([{"name": "t", "input_schema": {"type": "object"}}]);
    let user = |content: Value| json!({"role": "user", "content": content});
    let assistant = |content: Value| json!({"role": "assistant", "content": content});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "r"});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
    let text = |text: &str| json!({"type": "text", "text": text});
    check(json!({}), "");
    check(json!({"max_tokens": null}), "max_tokens: Field required");
    check(json!({"temperature": 1.5}), "temperature: range");
    check(json!({"n": 1}), "n: Extra inputs are not permitted");
    check(json!({"messages": [assistant(json!("Hi"))]}), "first message must use");
    check(json!({"messages": [{"role": "system", "content": "S"}]}), "first message must use");
    check(json!({"messages": [user(json!("a")), user(json!("b"))]}), "");
    check(json!({"messages": [user(json!([text("")]))]}), "text content blocks must be non-empty");
    check(json!({"messages": [user(json!(""))]}), "non-empty content");
    check(json!({"system": [text("")]}), "text content blocks must be non-empty");
    check(json!({"tool_choice": {"type": "auto"}}), "only be specified while providing tools");
    check(json!({"tools": tools, "tool_choice": {"type": "none", "disable_parallel_tool_use": true}}), "Extra inputs");
    let history = |answers: Value| json!({"tools": tools, "messages": [user(json!("a")), assistant(json!([call("c1"), call("c2")])), user(answers)]});
    check(history(json!([result("c1"), result("c2")])), "");
    check(history(json!([result("c2"), result("c1"), text("and")])), "");
    check(history(json!([result("c1")])), "without `tool_result` blocks immediately after");
    check(history(json!([result("c1"), text("first"), result("c2")])), "without `tool_result` blocks immediately after");
    check(history(json!([result("c1"), result("c2"), result("c2")])), "a single result");
    check(history(json!([result("c1"), result("c2"), result("c3")])), "unexpected `tool_use_id`");
    check(
        json!({"messages": [user(json!("a")), assistant(json!([call("c1")])), user(json!([result("c1")]))]}),
        "must define tools",
    );
    check(
        json!({"tools": tools, "messages": [user(json!("a")), assistant(json!([call("fc:1")])), user(json!([result("fc:1")]))]}),
        "should match pattern",
    );
    let thinking = json!({"type": "enabled", "budget_tokens": 1024});
    let thought = json!({"type": "thinking", "thinking": "T", "signature": "SIG"});
    let with = |blocks: Value| json!({"tools": tools, "max_tokens": 2000, "thinking": thinking, "messages": [user(json!("a")), assistant(blocks), user(json!([result("c1")]))]});
    check(with(json!([call("c1")])), "must start with a thinking block");
    check(with(json!([thought, call("c1")])), "Invalid `signature`");
    check(with(json!([{"type": "thinking", "thinking": "T"}, call("c1")])), "signature: Field required");
    let told = Told { signatures: vec![("SIG".to_owned(), "T".to_owned())], ..Told::default() };
    check_told(Dialect::Anthropic, with(json!([thought, call("c1")])), &told, "");
    check(json!({"thinking": thinking}), "`max_tokens` must be greater");
}

#[test]
fn gemini_refuses_what_it_refuses() {
    let check = |over: Value, sentence: &str| check(Dialect::Gemini, over, sentence);
    let turn = |role: &str, parts: Value| json!({"role": role, "parts": parts});
    let call = || json!({"functionCall": {"name": "t", "args": {}}});
    let result = || json!({"functionResponse": {"name": "t", "response": {"output": "r"}}});
    let history = |answers: Value| json!({"contents": [turn("user", json!([{"text": "a"}])), turn("model", json!([call(), call()])), turn("user", answers)]});
    check(json!({}), "");
    check(history(json!([result(), result()])), "");
    check(history(json!([result()])), "number of function response parts");
    check(history(json!([result(), result(), {"text": "and"}])), "function responses alone");
    check(json!({"contents": [turn("user", json!([{"text": ""}]))]}), "empty text parameter");
    check(json!({"contents": [turn("tool", json!([{"text": "a"}]))]}), "valid role");
    check(json!({"max_tokens": 1}), "Unknown name \"max_tokens\"");
    let tools = |schema: Value| json!({"tools": [{"functionDeclarations": [{"name": "t", "parameters": schema}]}]});
    let object = |inner: Value| tools(json!({"type": "object", "properties": {"p": inner}}));
    check(object(json!({"type": "string"})), "");
    check(tools(json!({"type": "object", "properties": {}})), "non-empty for OBJECT type");
    check(object(json!({"type": "array"})), "items: missing field");
    check(object(json!({"const": "x"})), "Unknown name \"const\"");
    check(object(json!({"type": ["string", "null"]})), "cannot start list");
    check(object(json!({"type": "string", "format": "uri"})), "format: only");
    check(object(json!({"type": "integer", "enum": [1]})), "only allowed for STRING");
    check(object(json!({"anyOf": [{"type": "string"}, {"$ref": "#"}]})), "Unknown name \"$ref\"");
    let signed = ToldCall {
        id: "c1".to_owned(),
        sent: "c1".to_owned(),
        name: "t".to_owned(),
        arguments: json!({}),
        signature: Some("S".to_owned()),
    };
    let told = Told { calls: vec![signed], ..Told::default() };
    check_told(Dialect::Gemini, history(json!([result(), result()])), &told, "missing a thought_signature");
}

#[test]
fn mistral_and_ollama_refuse_what_they_refuse() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let calls = |id: &str, arguments: Value| json!({"role": "assistant", "content": "", "tool_calls": [{"id": id, "type": "function", "function": {"name": "t", "arguments": arguments}}]});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "name": "t", "content": "r"});
    let history = |id: &str, last: Value| json!({"messages": [user("a"), calls(id, json!("{}")), result(id), last]});
    check(Dialect::Mistral, json!({"messages": [user("a"), calls("abcdefghi", json!("{}")), result("abcdefghi")]}), "");
    check(Dialect::Mistral, history("abcdefghi", user("b")), "Unexpected role 'user' after role 'tool'");
    check(
        Dialect::Mistral,
        history("call_1", json!({"role": "assistant", "content": "x", "prefix": true})),
        "with a length of 9",
    );
    check(Dialect::Mistral, json!({"messages": [{"role": "developer", "content": "D"}]}), "does not match any");
    check(Dialect::Mistral, json!({"stream_options": {}}), "extra_forbidden");
    let asked = |call: Value| json!({"messages": [user("a"), call, {"role": "tool", "tool_name": "t", "content": "r"}]});
    let native =
        |arguments: Value| json!({"role": "assistant", "tool_calls": [{"function": {"name": "t", "arguments": arguments}}]});
    check(Dialect::Ollama, asked(native(json!({}))), "");
    check(Dialect::Ollama, asked(native(json!("{}"))), "cannot unmarshal string");
    check(
        Dialect::Ollama,
        json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}),
        "cannot unmarshal array",
    );
    check(
        Dialect::Ollama,
        json!({"messages": [{"role": "user", "content": "a", "images": ["data:image/png;base64,AA"]}]}),
        "illegal base64",
    );
    check(Dialect::Ollama, json!({"temperature": 1}), "left out without a word");
    check(
        Dialect::OpenAi,
        json!({"messages": [user("a"), calls(&"x".repeat(41), json!("{}")), result(&"x".repeat(41))]}),
        "string too long",
    );
    check(
        Dialect::OpenAi,
        json!({"messages": [user("a"), {"role": "assistant", "content": []}]}),
        "'messages[1].content': empty array",
    );
    check(
        Dialect::OpenAi,
        json!({"messages": [user("a"), {"role": "assistant", "tool_calls": []}]}),
        "'messages[1].tool_calls': empty array",
    );
}
