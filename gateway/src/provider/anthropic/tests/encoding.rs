//! What becomes of the members of a request and of its history: what is translated, left out, refused.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_tools::net::Segments;

use super::super::super::{Unsupported, golden};
use super::super::{encode, params, path};
use super::target;

fn sent(model: &str, body: &str) -> Result<String, Unsupported> {
    golden::sent("anthropic", model, body)
}

/// A history that OpenAI takes: words, empty ones among them, and calls each with its result, under ids that come again.
fn history() -> impl Strategy<Value = Vec<Value>> {
    let text = || {
        prop::sample::select(vec![
            json!("a"),
            json!(""),
            json!(" \n"),
            Value::Null,
            json!([]),
            json!([{"type":"text","text":"b"}]),
        ])
    };
    let said = (prop::sample::select(vec!["system", "developer", "user", "assistant"]), text())
        .prop_map(|(role, content)| vec![json!({"role": role, "content": content})]);
    let id = || prop::sample::select(vec!["c1", "c2", "x:/1", ""]);
    let called =
        (text(), prop::collection::hash_set(id(), 1..3), text(), any::<bool>()).prop_map(|(content, ids, result, signed)| {
            let call = |id: &&str| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}});
            let mut turn =
                json!({"role": "assistant", "content": content, "tool_calls": ids.iter().map(call).collect::<Vec<_>>()});
            if signed {
                turn["reasoning_details"] =
                    json!([{"type":"reasoning.text","text":"T","signature":"S","index":0,"signer":golden::signs("anthropic")}]);
            }
            let results = ids.iter().map(|id| json!({"role": "tool", "tool_call_id": id, "content": result}));
            std::iter::once(turn).chain(results).collect()
        });
    prop::collection::vec(prop_oneof![said, called], 0..8).prop_map(|rounds| rounds.concat())
}

/// What the API refuses of turns.
fn check_turns(turns: &[Value]) -> Result<(), TestCaseError> {
    let of = |turn: &Value, kind: &str, member: &str| -> Vec<Value> {
        let blocks = turn["content"].as_array().unwrap().iter().filter(|block| block["type"] == kind);
        blocks.map(|block| block[member].clone()).collect()
    };
    let (mut seen, mut waiting) = (Vec::new(), Vec::new());
    for (at, turn) in turns.iter().enumerate() {
        prop_assert_eq!(&turn["role"], if at % 2 == 0 { "user" } else { "assistant" });
        prop_assert!(!turn["content"].as_array().unwrap().is_empty());
        prop_assert!(of(turn, "text", "text").iter().all(|text| !text.as_str().unwrap().trim().is_empty()));
        let results = of(turn, "tool_result", "tool_use_id");
        prop_assert_eq!(&results, &std::mem::take(&mut waiting), "each call of the turn before has its one result");
        let first = turn["content"].as_array().unwrap().iter().take(results.len());
        prop_assert!(first.clone().all(|block| block["type"] == "tool_result"), "results come first");
        waiting = of(turn, "tool_use", "id");
        for id in &waiting {
            prop_assert!(!seen.contains(id) && !id.as_str().unwrap().is_empty(), "ids are unique");
            seen.push(id.clone());
        }
        prop_assert!(turn["content"].as_array().unwrap().last().unwrap()["type"] != "thinking");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_history_becomes_turns_that_the_api_takes(messages in history()) {
        let body = json!({"model": "m", "messages": messages}).to_string();
        let sent: Value = serde_json::from_str(&sent("claude-sonnet-4-5", &body).unwrap()).unwrap();
        check_turns(sent["messages"].as_array().unwrap())?;
        prop_assert!(sent["system"].as_array().into_iter().flatten().all(|block| !block["text"].as_str().unwrap().trim().is_empty()));
        prop_assert_eq!(sent.get("tools").is_some(), body.contains("tool_calls"));
    }
}

#[test]
fn what_is_not_interpreted_goes_on_digit_for_digit() {
    let body = r#"{"model":"m","top_k":40,"context_management":{"x":1.10,"big":12345678901234567890},"messages":[{"role":"user","content":"\u00e9\ud83c\udfbb"}]}"#;
    let sent = sent("claude-sonnet-4-5", body).unwrap();
    assert!(sent.contains(r#""context_management":{"x":1.10,"big":12345678901234567890}"#), "{sent}");
    assert!(sent.contains(r#""text":"\u00e9\ud83c\udfbb""#), "{sent}");
}

#[test]
fn case_16_ids_take_the_providers_form_and_stay_a_pair() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"x"},
        {"role":"assistant","tool_calls":[{"id":"fc:1/rs.2","function":{"name":"t","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"fc:1/rs.2","content":"ok"}]}"#;
    let sent: Value = serde_json::from_str(&sent("claude-sonnet-4-5", body).unwrap()).unwrap();
    let id = sent["messages"][1]["content"][0]["id"].as_str().unwrap();
    assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'), "{id}");
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], id);
}

#[test]
fn case_10_arguments_that_are_no_object_go_on_as_an_empty_one() {
    for arguments in [r#""""#, r#""  ""#, "null", r#""{\"q\":\"a""#, "7", r#""[1]""#] {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"assistant","tool_calls":[{{"id":"c","function":{{"name":"t","arguments":{arguments}}}}}]}}]}}"#
        );
        let sent = sent("claude-sonnet-4-5", &body).unwrap();
        assert!(sent.contains(r#""name":"t","input":{}}"#), "{arguments}: {sent}");
    }
    let object = r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"t","arguments":"{\"q\": 1.10}"}}]}]}"#;
    assert!(sent("claude-sonnet-4-5", object).unwrap().contains(r#""input":{"q": 1.10}"#));
}

#[test]
fn case_19_every_empty_content_is_taken() {
    for content in [r#","content":"""#, r#","content":null"#, "", r#","content":[]"#, r#","content":[{"type":"text","text":""}]"#]
    {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"developer","content":"D"}},{{"role":"system","content":"S"}},{{"role":"user","content":"q"}},
            {{"role":"assistant"{content},"tool_calls":[{{"id":"c","function":{{"name":"t","arguments":"{{}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c","content":""}},{{"role":"user","content":"a"}},{{"role":"user","content":"b"}}]}}"#
        );
        let sent: Value = serde_json::from_str(&sent("claude-sonnet-4-5", &body).unwrap()).unwrap();
        assert_eq!(sent["system"], json!([{"type":"text","text":"D"},{"type":"text","text":"S"}]));
        let expected = json!([
            {"role":"user","content":[{"type":"text","text":"q"}]},
            {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"t","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"c"},{"type":"text","text":"a"},{"type":"text","text":"b"}]},
        ]);
        assert_eq!(sent["messages"], expected, "{content}");
    }
}

#[test]
fn members_that_ask_for_what_there_is_not_are_named_and_neutral_ones_left_out() {
    let table = [
        ("n", "2", "1"),
        ("functions", "[{}]", "[]"),
        ("function_call", "\"auto\"", "null"),
        ("logprobs", "true", "false"),
        ("top_logprobs", "3", "0"),
        ("logit_bias", "{\"1\":1}", "{}"),
        ("presence_penalty", "0.5", "0"),
        ("frequency_penalty", "-1", "0.0"),
        ("audio", "{\"voice\":\"x\"}", "null"),
        ("modalities", "[\"text\",\"audio\"]", "[\"text\"]"),
        ("prediction", "{\"type\":\"content\"}", "null"),
        ("web_search_options", "{}", "null"),
        ("store", "true", "false"),
        ("service_tier", "\"flex\"", "\"auto\""),
        ("temperature", "1.5", "1"),
        ("stop", "\"\\n\"", "\"\""),
        ("stop", "[\"a\",\" \"]", "[]"),
        ("response_format", "{\"type\":\"json_object\"}", "{\"type\":\"text\"}"),
        ("reasoning_effort", "\"huge\"", "null"),
    ];
    for (name, asks, neutral) in table {
        let body = |value: &str| format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],"{name}":{value}}}"#);
        assert_eq!(sent("claude-sonnet-4-5", &body(asks)).map_err(|unsupported| unsupported.field), Err(name), "{asks}");
        let sent: Value = serde_json::from_str(&sent("claude-sonnet-4-5", &body(neutral)).unwrap()).unwrap();
        let members: Vec<_> = sent.as_object().unwrap().keys().collect();
        assert_eq!(members, ["model", "max_tokens", "messages"], "{name} {neutral}");
    }
    for hint in
        ["\"seed\":7", "\"verbosity\":\"low\"", "\"prompt_cache_key\":\"k\"", "\"stream_options\":{\"include_usage\":true}"]
    {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],{hint}}}"#);
        assert!(!sent("claude-sonnet-4-5", &body).unwrap().contains(hint), "{hint}");
    }
}

#[test]
fn sampling_goes_on_as_far_as_the_model_takes_it() {
    let think = r#""reasoning_effort":"low","max_tokens":9000"#;
    let table = [
        ("claude-sonnet-4-5", r#""temperature":0.20"#.to_owned(), Ok(())),
        ("claude-sonnet-4-5", r#""temperature":0.2,"top_p":0.9"#.to_owned(), Err("top_p")),
        ("claude-sonnet-4-5", r#""temperature":0.2,"top_p":1"#.to_owned(), Ok(())),
        ("claude-3-7-sonnet", r#""temperature":0.2,"top_p":0.9"#.to_owned(), Ok(())),
        ("claude-sonnet-4-5", format!(r#"{think},"temperature":0.2"#), Err("temperature")),
        ("claude-sonnet-4-5", format!(r#"{think},"top_p":0.5"#), Err("top_p")),
        ("claude-sonnet-4-5", format!(r#"{think},"top_p":0.95,"temperature":1"#), Ok(())),
        ("claude-sonnet-4-5", format!(r#"{think},"top_k":5"#), Err("top_k")),
        ("claude-sonnet-5", r#""temperature":0.2"#.to_owned(), Err("temperature")),
        ("claude-opus-4-7", r#""top_k":5"#.to_owned(), Err("top_k")),
        ("claude-sonnet-5", r#""temperature":1.0,"top_p":1"#.to_owned(), Ok(())),
    ];
    for (model, members, expected) in table {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],{members}}}"#);
        assert_eq!(sent(model, &body).map(|_| ()).map_err(|unsupported| unsupported.field), expected, "{model} {members}");
    }
}

#[test]
fn the_operators_params_do_not_break_a_model_that_refuses_them() {
    let all = json!({"temperature": 0.2, "presence_penalty": 0.5, "max_tokens": 9, "logit_bias": {"1": 1}});
    let table = [
        ("claude-sonnet-4-5", all.clone(), json!({"temperature": 0.2, "max_tokens": 9})),
        ("claude-opus-5", all, json!({"max_tokens": 9})),
        ("claude-sonnet-4-5", json!({"top_k": 5}), json!({"top_k": 5})),
    ];
    for (model, given, expected) in table {
        assert_eq!(json!(&*params(model, given.as_object().unwrap())), expected, "{model}");
    }
}

#[test]
fn a_transcript_begins_with_the_user() {
    let point = json!({"role":"user","content":[{"type":"text","text":"."}]});
    let table = [
        (r#"[{"role":"system","content":"S"}]"#, 1),
        (r#"[{"role":"assistant","content":"Hello."},{"role":"user","content":"x"}]"#, 3),
        (r#"[{"role":"user","content":""}]"#, 1),
    ];
    for (messages, turns) in table {
        let sent: Value =
            serde_json::from_str(&sent("claude-sonnet-4-5", &format!(r#"{{"model":"m","messages":{messages}}}"#)).unwrap())
                .unwrap();
        assert_eq!((&sent["messages"][0], sent["messages"].as_array().unwrap().len()), (&point, turns), "{messages}");
    }
}

#[test]
fn an_id_that_comes_again_is_another_id() {
    let round = r#"{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"t","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"ok"}"#;
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}},{round},{round}]}}"#);
    let first = sent("claude-sonnet-4-5", &body).unwrap();
    let sent: Value = serde_json::from_str(&first).unwrap();
    let id = |turn: usize, name: &str| sent["messages"][turn]["content"][0][name].as_str().unwrap();
    assert_eq!((id(1, "id"), id(2, "tool_use_id")), ("c", "c"));
    assert_eq!(id(3, "id"), id(4, "tool_use_id"));
    assert_ne!(id(3, "id"), "c");
    assert_eq!(first, self::sent("claude-sonnet-4-5", &body).unwrap(), "the same in every round");
}

#[test]
fn max_tokens_is_always_sent() {
    let table = [
        (None, "", "4096"),
        (Some(64_000), "", "64000"),
        (Some(64_000), r#","max_tokens":9"#, "9"),
        (None, r#","max_completion_tokens":7"#, "7"),
        (None, r#","max_completion_tokens":7,"max_tokens":9"#, "9"),
        (None, r#","max_tokens":null"#, "4096"),
    ];
    for (max_output, members, expected) in table {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}]{members}}}"#);
        let body = Segments::from(Bytes::from(body));
        let encoded = encode(&target("claude-sonnet-4-5", max_output), &body, false).unwrap();
        let sent: Value = serde_json::from_slice(&encoded.body.pieces().concat()).unwrap();
        assert_eq!(sent["max_tokens"].to_string(), expected, "{members}");
    }
}

#[test]
fn the_path_is_below_the_version() {
    let table =
        [("", "/v1/messages"), ("/v1", "/v1/messages"), ("/anthropic", "/anthropic/v1/messages"), ("/a/v1", "/a/v1/messages")];
    for (base, expected) in table {
        assert_eq!(path(base), expected);
    }
}
