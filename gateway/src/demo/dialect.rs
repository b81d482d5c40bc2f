//! What the demo's model says, as OpenAI's chat completions has it: in one piece, and as a stream.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::model::{Call, Said};

/// The name under which the model is known to the gateway.
pub(super) const MODEL: &str = "demo-model";

/// The whole answer to a request.
pub(super) fn completion(request: &Value, said: &Said) -> Value {
    let message = match said {
        Said::Text(text) => json!({ "role": "assistant", "content": text }),
        Said::Calls(calls) => json!({
            "role": "assistant",
            "content": null,
            "tool_calls": calls.iter().map(whole_call).collect::<Vec<_>>(),
        }),
    };
    let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(said) });
    let mut body = envelope("chat.completion", json!([choice]));
    body["usage"] = usage(request, said);
    body
}

/// The same as server-sent events, up to the end mark.
pub(super) fn stream(request: &Value, said: &Said) -> String {
    let chunk = |delta: Value, finish: Option<&str>| {
        envelope("chat.completion.chunk", json!([{ "index": 0, "delta": delta, "finish_reason": finish }]))
    };
    let mut chunks = vec![chunk(json!({ "role": "assistant", "content": null }), None)];
    chunks.extend(deltas(said).into_iter().map(|delta| chunk(delta, None)));
    chunks.push(chunk(json!({}), Some(finish_reason(said))));
    if request["stream_options"]["include_usage"] == true {
        let mut last = envelope("chat.completion.chunk", json!([]));
        last["usage"] = usage(request, said);
        chunks.push(last);
    }
    let events: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events + "data: [DONE]\n\n"
}

/// What `GET /v1/models` lists.
pub(super) fn models() -> Value {
    json!({ "object": "list", "data": [{ "id": MODEL, "object": "model", "created": 0, "owned_by": "toolgate" }] })
}

/// OpenAI's error object.
pub(super) fn error(message: &str) -> Value {
    json!({ "error": { "message": message, "type": "invalid_request_error", "param": null, "code": null } })
}

fn envelope(object: &str, choices: Value) -> Value {
    let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    json!({ "id": "chatcmpl-demo", "object": object, "created": created, "model": MODEL, "choices": choices })
}

fn finish_reason(said: &Said) -> &'static str {
    match said {
        Said::Text(_) => "stop",
        Said::Calls(_) => "tool_calls",
    }
}

fn whole_call(call: &Call) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
    json!({ "id": call.id, "type": "function", "function": function })
}

/// Text word by word; a call as its name, and then its arguments in two halves.
fn deltas(said: &Said) -> Vec<Value> {
    match said {
        Said::Text(text) => text.split_inclusive(' ').map(|word| json!({ "content": word })).collect(),
        Said::Calls(calls) => calls.iter().enumerate().flat_map(|(at, call)| call_deltas(at, call)).collect(),
    }
}

fn call_deltas(at: usize, call: &Call) -> [Value; 3] {
    let arguments = call.arguments.to_string();
    let (head, tail) = arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2));
    let more = |part: &str| json!({ "tool_calls": [{ "index": at, "function": { "arguments": part } }] });
    let function = json!({ "name": call.name, "arguments": "" });
    let opening = json!({ "tool_calls": [{ "index": at, "id": call.id, "type": "function", "function": function }] });
    [opening, more(head), more(tail)]
}

/// Tokens by the rule of thumb of four characters each.
fn usage(request: &Value, said: &Said) -> Value {
    let tokens = |value: &Value| if value.is_null() { 0 } else { value.to_string().len().div_ceil(4) };
    let prompt = tokens(&request["messages"]) + tokens(&request["tools"]);
    let completion = match said {
        Said::Text(text) => text.len().div_ceil(4),
        Said::Calls(calls) => calls.iter().map(|call| tokens(&whole_call(call))).sum(),
    };
    json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls() -> Said {
        let call = |id: &str, name, order: &str| Call { id: id.to_owned(), name, arguments: json!({ "order": order }) };
        Said::Calls(vec![call("call_1", "find_order", "Ä-1"), call("call_2", "shipping_status", "P")])
    }

    /// Puts a stream together again, as a client does.
    fn put_together(stream: &str) -> (String, Vec<[String; 3]>, Vec<Value>) {
        let (mut text, mut calls, mut finish) = (String::new(), Vec::<[String; 3]>::new(), Vec::new());
        for event in stream.split_terminator("\n\n").filter_map(|event| event.strip_prefix("data: {")) {
            let chunk: Value = serde_json::from_str(&format!("{{{event}")).unwrap();
            let choice = &chunk["choices"][0];
            text += choice["delta"]["content"].as_str().unwrap_or_default();
            for delta in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                let at = delta["index"].as_u64().unwrap() as usize;
                let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                if at == calls.len() {
                    calls.push(Default::default());
                }
                calls[at][0] += &part(&delta["id"]);
                calls[at][1] += &part(&delta["function"]["name"]);
                calls[at][2] += &part(&delta["function"]["arguments"]);
            }
            finish.extend(Some(choice["finish_reason"].clone()).filter(|reason| !reason.is_null()));
        }
        (text, calls, finish)
    }

    #[test]
    fn a_stream_says_the_same_as_the_whole() {
        let request = json!({ "messages": [] });
        for said in [Said::Text("It is on its way.".to_owned()), calls()] {
            let whole = completion(&request, &said);
            let (text, calls, finish) = put_together(&stream(&request, &said));
            let message = &whole["choices"][0]["message"];
            assert_eq!(text, message["content"].as_str().unwrap_or_default());
            let of_whole = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
                [&call["id"], &call["function"]["name"], &call["function"]["arguments"]]
                    .map(|value| value.as_str().unwrap().to_owned())
            });
            assert_eq!(calls, of_whole.collect::<Vec<_>>());
            assert_eq!(finish, [whole["choices"][0]["finish_reason"].clone()]);
        }
    }

    #[test]
    fn a_stream_has_usage_only_when_it_was_asked_for_and_ends_with_its_mark() {
        let mut request = json!({ "messages": [] });
        assert!(!stream(&request, &calls()).contains("usage"));
        request["stream_options"] = json!({ "include_usage": true });
        let streamed = stream(&request, &calls());
        assert_eq!(streamed.matches("\"usage\"").count(), 1, "{streamed}");
        assert!(streamed.ends_with("}\n\ndata: [DONE]\n\n"), "{streamed}");
    }
}
