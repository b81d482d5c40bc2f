//! What Mistral is asked. It refuses members that it does not know, in requests and in turns, and wants call ids of nine letters or digits and an
//! order of roles of its own.

use serde_json::value::RawValue;
use toolgate_tools::net::Segments;

use super::openai_body::{Fate, Turn, Turns, neutral, rewritten, turns};
use super::{Unsupported, ids};
use crate::wire::object::{Members, as_str};

pub(super) fn encode(body: &Segments) -> Result<Segments, Unsupported> {
    rewritten(body, member, transcript)
}

/// What becomes of a member. Labels and hints go silently; what asks for something that Mistral cannot do is refused.
fn member(all: &Members<'_>, name: &str, value: &str) -> Result<Fate<'static>, Unsupported> {
    match name {
        // Only one of the two has a name there.
        "max_tokens" if all.get("max_completion_tokens").is_some_and(|limit| limit.get() != "null") => Ok(Fate::Goes),
        "max_completion_tokens" if value != "null" => Ok(Fate::Named("max_tokens")),
        "seed" if value != "null" => Ok(Fate::Named("random_seed")),
        // Its last chunk has the usage in any case.
        "stream_options" => Ok(Fate::Goes),
        "user" | "safety_identifier" | "prompt_cache_key" | "prompt_cache_retention" | "verbosity" => Ok(Fate::Goes),
        "tool_choice" if value == "\"required\"" => Ok(Fate::Is("\"any\"".into())),
        "reasoning_effort" if value != "null" => Ok(Fate::Is(effort(value).into())),
        "logprobs" => neutral("logprobs", value, &["false"]),
        "top_logprobs" => neutral("top_logprobs", value, &["0"]),
        "logit_bias" => neutral("logit_bias", value, &["{}"]),
        "modalities" => neutral("modalities", value, &["[\"text\"]"]),
        "audio" => neutral("audio", value, &[]),
        "web_search_options" => neutral("web_search_options", value, &[]),
        "store" => neutral("store", value, &["false"]),
        "service_tier" => neutral("service_tier", value, &["\"auto\"", "\"default\""]),
        "functions" => neutral("functions", value, &["[]"]),
        "function_call" => neutral("function_call", value, &["\"auto\"", "\"none\""]),
        _ if value == "null" => Ok(Fate::Goes),
        _ => Ok(Fate::Stays),
    }
}

/// It thinks or it does not: there is nothing between.
fn effort(value: &str) -> String {
    match value {
        "\"minimal\"" => "\"none\"".to_owned(),
        "\"low\"" | "\"medium\"" | "\"high\"" | "\"xhigh\"" => "\"high\"".to_owned(),
        other => other.to_owned(),
    }
}

const TURNS: Turns = Turns {
    knows_developer: false,
    ids: Some(ids::Form::Nine),
    without: &["refusal", "annotations", "audio", "function_call", "reasoning", "reasoning_content", "reasoning_details"],
    without_nulls: true,
};

/// What stands between a result and whoever speaks next but the model: Mistral wants the model's own turn there.
const BRIDGE: &str = r#"{"role":"assistant","content":"OK."}"#;

/// The transcript in the order that Mistral wants: after a result the model, after the model no system text.
fn transcript(list: &str) -> Option<String> {
    let mut out: Vec<String> = Vec::new();
    let mut before = String::new();
    for turn in turns(list)? {
        let is_system = matches!(&*turn.role, "system" | "developer");
        if before == "tool" && (is_system || turn.role == "user") {
            out.push(BRIDGE.to_owned());
            "assistant".clone_into(&mut before);
        }
        // A turn of the model's that says nothing is refused.
        if turn.role == "assistant" && says_nothing(&turn) {
            continue;
        }
        let as_user = is_system && before == "assistant";
        let mut edits = Vec::new();
        edits.extend(as_user.then(|| ("role", "\"user\"".to_owned())));
        edits.extend(turn.get("content").and_then(parts).map(|content| ("content", content)));
        out.push(named(&turn, &edits));
        before = if as_user { "user".to_owned() } else { turn.role.into_owned() };
    }
    Some(format!("[{}]", out.join(",")))
}

/// Only a result may have a name.
fn named(turn: &Turn<'_>, edits: &[(&'static str, String)]) -> String {
    const NAMELESS: Turns = Turns {
        without: &[
            "name",
            "refusal",
            "annotations",
            "audio",
            "function_call",
            "reasoning",
            "reasoning_content",
            "reasoning_details",
        ],
        ..TURNS
    };
    turn.written(if turn.role == "tool" { TURNS } else { NAMELESS }, edits).into_owned()
}

fn says_nothing(turn: &Turn<'_>) -> bool {
    turn.get("tool_calls").is_none() && matches!(turn.get("content"), None | Some("null" | "\"\"" | "[]"))
}

/// A list of parts in Mistral's words, where they are others than OpenAI's.
fn parts(content: &str) -> Option<String> {
    if !content.starts_with('[') || !(content.contains("\"file\"") || content.contains("\"input_audio\"")) {
        return None;
    }
    let parts: Vec<&RawValue> = serde_json::from_str(content).ok()?;
    let parts: Vec<String> = parts.iter().map(|part| part_of(part).unwrap_or_else(|| part.get().to_owned())).collect();
    Some(format!("[{}]", parts.join(",")))
}

fn part_of(part: &RawValue) -> Option<String> {
    let part = Members::parse(part.get().as_bytes()).ok()?;
    let inside = |name: &str| Members::parse(part.get(name)?.get().as_bytes()).ok();
    match &*as_str(part.get("type")?)? {
        "input_audio" => {
            let data = inside("input_audio")?.get("data")?.get();
            Some(format!(r#"{{"type":"input_audio","input_audio":{data}}}"#))
        }
        "file" => {
            let file = inside("file")?;
            let Some(data) = file.get("file_data") else {
                return Some(format!(r#"{{"type":"file","file_id":{}}}"#, file.get("file_id")?.get()));
            };
            let name = file.get("filename").map(|name| format!(r#","document_name":{}"#, name.get())).unwrap_or_default();
            Some(format!(r#"{{"type":"document_url","document_url":{}{name}}}"#, data.get()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn sent(members: &str, messages: &str) -> Result<String, &'static str> {
        let body = Bytes::from(format!(r#"{{"model":"m","messages":{messages}{members}}}"#));
        let body = encode(&Segments::from(body)).map_err(|unsupported| unsupported.field)?;
        Ok(String::from_utf8(body.pieces().concat()).unwrap())
    }

    fn turns_sent(turns: &str) -> String {
        let sent = sent("", &format!("[{turns}]")).unwrap();
        sent.strip_prefix(r#"{"model":"m","messages":["#).and_then(|sent| sent.strip_suffix("]}")).unwrap().to_owned()
    }

    #[test]
    fn members_take_the_names_that_mistral_has() {
        let table = [
            (r#","max_completion_tokens":9"#, r#","max_tokens":9"#),
            (r#","max_tokens":9,"max_completion_tokens":8"#, r#","max_tokens":8"#),
            (r#","max_tokens":9,"max_completion_tokens":null"#, r#","max_tokens":9"#),
            (r#","max_tokens":9,"x":{"max_completion_tokens":8}"#, r#","max_tokens":9,"x":{"max_completion_tokens":8}"#),
            (r#","seed":7,"temperature":1.10"#, r#","random_seed":7,"temperature":1.10"#),
            (r#","stream":true,"stream_options":{"include_usage":true}"#, r#","stream":true"#),
            (r#","tools":[1],"tool_choice":"required""#, r#","tools":[1],"tool_choice":"any""#),
            (r#","tools":[1],"tool_choice":"none""#, r#","tools":[1],"tool_choice":"none""#),
            (r#","reasoning_effort":"low""#, r#","reasoning_effort":"high""#),
            (r#","reasoning_effort":"minimal""#, r#","reasoning_effort":"none""#),
            (r#","user":"u","safety_identifier":"s","stop":null,"seed":null"#, ""),
            (r#","logprobs":false,"top_logprobs":0,"logit_bias":{},"modalities":["text"],"store":false"#, ""),
            (
                r#","n":2,"parallel_tool_calls":false,"safe_prompt":true,"x":1e400"#,
                r#","n":2,"parallel_tool_calls":false,"safe_prompt":true,"x":1e400"#,
            ),
        ];
        for (members, expected) in table {
            let turns = r#"[{"role":"user","content":"a"}]"#;
            assert_eq!(sent(members, turns), Ok(format!(r#"{{"model":"m","messages":{turns}{expected}}}"#)), "{members}");
        }
    }

    #[test]
    fn what_mistral_cannot_do_is_named() {
        for field in ["logprobs", "store", "audio", "web_search_options"] {
            assert_eq!(sent(&format!(r#","{field}":true"#), "[]"), Err(field));
        }
        assert_eq!(sent(r#","logit_bias":{"1":2}"#, "[]"), Err("logit_bias"));
        assert_eq!(sent(r#","functions":[{}]"#, "[]"), Err("functions"));
        assert_eq!(sent(r#","service_tier":"flex""#, "[]"), Err("service_tier"));
    }

    #[test]
    fn case_16_ids_are_nine_letters_or_digits_and_stay_together() {
        let turns = |id: &str| {
            format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","function":{{"name":"t","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"{id}","content":"1"}}"#
            )
        };
        let id = "call_aB3dEfGhIjKlMnOpQrStUvWx";
        let fitted = ids::fit(id, ids::Form::Nine).into_owned();
        assert_eq!(turns_sent(&turns(id)), turns(&fitted));
        assert_eq!(turns_sent(&turns("aB3dEfGhI")), turns("aB3dEfGhI"));
    }

    #[test]
    fn case_19_roles_are_in_an_order_that_mistral_takes() {
        let turn = |role: &str| format!(r#"{{"role":"{role}","content":"x"}}"#);
        let turns = |roles: &str| roles.split(' ').map(turn).collect::<Vec<_>>().join(",");
        let bridged = |roles: &str| turns(roles).replace(&turn("bridge"), BRIDGE);
        let table = [
            ("developer system user user", "system system user user"),
            ("user assistant tool user user", "user assistant tool bridge user user"),
            ("user assistant tool tool assistant user", "user assistant tool tool assistant user"),
            ("user assistant tool system user", "user assistant tool bridge user user"),
            ("user assistant developer user", "user assistant user user"),
            ("user system user", "user system user"),
        ];
        for (roles, expected) in table {
            assert_eq!(turns_sent(&turns(roles)), bridged(expected), "{roles}");
        }
    }

    #[test]
    fn members_of_turns_that_mistral_refuses_stay_behind() {
        let table = [
            (r#"{"role":"user","name":"ann","content":"a"}"#, r#"{"role":"user","content":"a"}"#),
            (
                r#"{"role":"assistant","content":"a","refusal":null,"annotations":[],"audio":null,"reasoning_content":"hm","reasoning_details":[{}],"prefix":true}"#,
                r#"{"role":"assistant","content":"a","prefix":true}"#,
            ),
            (
                r#"{"role":"tool","name":"t","tool_call_id":"aB3dEfGhI","content":"1"}"#,
                r#"{"role":"tool","name":"t","tool_call_id":"aB3dEfGhI","content":"1"}"#,
            ),
            (r#"{"role":"assistant","content":"","x":1},{"role":"user","content":null}"#, r#"{"role":"user","content":null}"#),
        ];
        for (turn, expected) in table {
            assert_eq!(turns_sent(turn), expected);
        }
    }

    #[test]
    fn files_and_sound_are_parts_in_mistrals_words() {
        let turn = |parts: &str| format!(r#"{{"role":"user","content":[{parts}]}}"#);
        let table = [
            (
                r#"{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}}"#,
                r#"{"type":"document_url","document_url":"data:application/pdf;base64,AA==","document_name":"a.pdf"}"#,
            ),
            (r#"{"type":"file","file":{"file_id":"f"}}"#, r#"{"type":"file","file_id":"f"}"#),
            (
                r#"{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}"#,
                r#"{"type":"input_audio","input_audio":"AA=="}"#,
            ),
            (
                r#"{"type":"image_url","image_url":{"url":"u","detail":"low"}}"#,
                r#"{"type":"image_url","image_url":{"url":"u","detail":"low"}}"#,
            ),
            (r#"{"type":"text","text":"\"file\""},{"type":"file"}"#, r#"{"type":"text","text":"\"file\""},{"type":"file"}"#),
        ];
        for (parts, expected) in table {
            assert_eq!(turns_sent(&turn(parts)), turn(expected));
        }
    }
}
