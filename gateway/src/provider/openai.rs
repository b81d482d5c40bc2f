//! OpenAI's dialect, and what those who speak it with an accent share: Mistral, Groq, OpenRouter, and everything that calls itself compatible.
//! The request goes on byte for byte where nothing has to change.

use std::borrow::Cow;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use serde_json::{Map, Value};
use toolgate_config::provider::{Provider, ProviderKind};
use toolgate_config::secret::Secret;
use toolgate_tools::net::Segments;

use super::ids::Form;
use super::openai_body::{Fate, Turn, Turns, has, has_ids_unfit_for, list, rewritten, turns};
use super::{Encoded, Unsupported, groq, mistral, mistral_answer, openai_answer, openrouter, signer, thoughts};
use crate::targets::Target;
use crate::wire::object::Members;
use crate::wire::sse::Event;

pub(super) use super::openai_errors::{Hidden, explain, explain_inside};

/// The caller's headers that go on. It is a list of what may, not of what may not: an unknown header may hold a credential.
const FORWARDED: [HeaderName; 4] = [
    USER_AGENT,
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("x-client-request-id"),
    HeaderName::from_static("accept-language"),
];

/// Those that belong to the account behind the caller's own bearer, and so go on with it alone.
const FORWARDED_WITH_BEARER: [HeaderName; 2] =
    [HeaderName::from_static("openai-organization"), HeaderName::from_static("openai-project")];

/// The providers' headers that reach the caller: what an answer is called, by OpenAI, Anthropic, OpenRouter and Mistral. Cookies and account names are
/// not among them.
const PASSED_ON: [HeaderName; 6] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("openai-processing-ms"),
    HeaderName::from_static("openai-version"),
    HeaderName::from_static("x-generation-id"),
    HeaderName::from_static("mistral-correlation-id"),
];

/// A chat completion for a provider of this family.
pub(super) fn encode(target: &Target, body: &Segments) -> Result<Encoded, Unsupported> {
    let body = match target.provider.kind {
        ProviderKind::OpenAi => openai(&target.upstream_model, body)?,
        ProviderKind::Mistral => mistral::encode(body)?,
        ProviderKind::Groq => groq::encode(&target.upstream_model, body)?,
        ProviderKind::OpenRouter => openrouter::encode(body)?,
        _ => compatible(&target.provider, body)?,
    };
    Ok(Encoded { path: format!("{}/chat/completions", target.provider.base_url.path), body, note: None })
}

/// What is not interpreted goes on as it is.
pub(super) fn pass_through(target: &Target, path: &str, body: &Segments) -> Encoded {
    Encoded { path: format!("{}{path}", target.provider.base_url.path), body: body.clone(), note: None }
}

/// OpenAI refuses long ids, and has no use for what other providers' models thought.
const OPENAI: Turns = Turns {
    knows_developer: true,
    ids: Some(Form::UpTo40),
    without: &["reasoning", "reasoning_content", "reasoning_details"],
    without_nulls: false,
};

/// A server that is merely compatible is sent what it said itself, thoughts included: some refuse their own calls without them.
pub(super) const COMPATIBLE: Turns = Turns { knows_developer: false, ids: None, without: &[], without_nulls: false };

fn openai(model: &str, body: &Segments) -> Result<Segments, Unsupported> {
    let may_rename = reasons(model) && has(body, "\"max_tokens\"");
    if !may_rename && !has_ids_unfit_for(body, Form::UpTo40) && !has(body, "\"reasoning") {
        return Ok(body.clone());
    }
    let member = |all: &Members<'_>, name: &str, _: &str| match name {
        "max_tokens" if may_rename && all.get("max_completion_tokens").is_none() => Ok(Fate::Named("max_completion_tokens")),
        _ => Ok(Fate::Stays),
    };
    rewritten(body, member, |messages| list(messages, OPENAI))
}

/// Whether turns have to be written anew for a provider that is merely compatible.
pub(super) fn needs_compatible(body: &Segments) -> bool {
    has(body, "\"developer\"") || has(body, "\"reasoning_details\"")
}

fn compatible(provider: &Provider, body: &Segments) -> Result<Segments, Unsupported> {
    if !needs_compatible(body) {
        return Ok(body.clone());
    }
    let own = signer(provider);
    let messages = |messages: &str| {
        let written = |turn: Turn<'_>| turn.written(COMPATIBLE, &aloud_again(&turn, &own)).into_owned();
        let turns: Vec<String> = turns(messages)?.into_iter().map(written).collect();
        Some(format!("[{}]", turns.join(",")))
    };
    rewritten(body, |_, _, _| Ok(Fate::Stays), messages)
}

/// What a model thought aloud, as a thought that this provider signed.
pub(super) fn signed_aloud(signer: &str, aloud: &str) -> String {
    format!(r#"[{{"type":"reasoning.text","text":{aloud},"signer":"{signer}"}}]"#)
}

/// The same as it came: the servers that send `reasoning_content` beside calls (DeepSeek's, Moonshot's) refuse those calls without it.
fn aloud_again(turn: &Turn<'_>, own: &str) -> Vec<(&'static str, String)> {
    let details = turn.get("reasoning_details").filter(|_| turn.get("reasoning_content").is_none());
    let details = details.and_then(|details| serde_json::from_str(details).ok());
    let text = thoughts::signed_by(own, details).into_iter().find_map(|thought| thought.text);
    text.map(|text| ("reasoning_content", text.get().to_owned())).into_iter().collect()
}

/// Whether OpenAI's model of this name is one that reasons: `o` and a number, or `gpt-` and a number from 5, tuned or not. Those refuse the
/// old name of the output limit, and have no sampling to set.
fn reasons(model: &str) -> bool {
    let name = model.strip_prefix("ft:").unwrap_or(model);
    let number =
        |rest: &str| rest.split(|character: char| !character.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    let generation: Option<u32> = name.strip_prefix("gpt-").and_then(number);
    generation.is_some_and(|generation| generation >= 5 && !name.contains("-chat"))
        || name.strip_prefix('o').is_some_and(|rest| number(rest).is_some())
}

/// What a model that reasons refuses.
const SAMPLING: [&str; 7] =
    ["temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias"];

/// The operator's `params` as this target takes them: set for models that have sampling, they must not break one that has none. Where the
/// operator has switched reasoning off, there is sampling.
pub(super) fn params<'p>(kind: ProviderKind, model: &str, params: &'p Map<String, Value>) -> Cow<'p, Map<String, Value>> {
    let is_refused = |name: &String| SAMPLING.contains(&name.as_str());
    let thinks = params.get("reasoning_effort").is_none_or(|effort| effort != "none");
    if kind != ProviderKind::OpenAi || !thinks || !reasons(model) || !params.keys().any(is_refused) {
        return Cow::Borrowed(params);
    }
    Cow::Owned(params.iter().filter(|(name, _)| !is_refused(name)).map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// What makes an event of this provider a canonical one; `None`: each is one.
pub(super) fn adapting(kind: ProviderKind) -> Option<fn(Event) -> Event> {
    match kind {
        ProviderKind::Mistral => Some(mistral_answer::event),
        ProviderKind::Groq => Some(groq::event),
        ProviderKind::OpenRouter | ProviderKind::OpenAiCompatible => Some(openai_answer::event),
        _ => None,
    }
}

/// A plain answer of this provider as a canonical one.
pub(super) fn decode(kind: ProviderKind, body: Bytes) -> Bytes {
    match kind {
        ProviderKind::Mistral => mistral_answer::decode(body),
        ProviderKind::Groq | ProviderKind::OpenRouter | ProviderKind::OpenAiCompatible => openai_answer::decode(body),
        _ => body,
    }
}

pub(super) fn headers(key: Option<&Secret>, own_bearer: bool, caller: &HeaderMap, stream: bool) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    copy(&FORWARDED, caller, &mut headers);
    if own_bearer {
        copy(&FORWARDED_WITH_BEARER, caller, &mut headers);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static(if stream { "text/event-stream" } else { "application/json" }));
    if let Some(mut bearer) = key.and_then(|key| HeaderValue::try_from(format!("Bearer {}", key.expose())).ok()) {
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    headers
}

pub(super) fn passed_on(answer: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    copy(&PASSED_ON, answer, &mut headers);
    headers
}

fn copy(names: &[HeaderName], from: &HeaderMap, to: &mut HeaderMap) {
    for name in names {
        if let Some(value) = from.get(name) {
            to.insert(name.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_config::check::{Source, read};

    use super::*;

    fn provider() -> std::sync::Arc<Provider> {
        let file =
            "providers: { p: { kind: openai_compatible, base_url: 'http://127.0.0.1:1' } }\nmodels: { m: { provider: p } }\n";
        let source = Source { path: std::path::Path::new("toolgate.yaml"), text: file, env: &|_| None };
        std::sync::Arc::clone(&read(&source).unwrap().model("m").unwrap().provider)
    }

    fn sent(encoded: Result<Segments, Unsupported>) -> String {
        String::from_utf8(encoded.unwrap().pieces().concat()).unwrap()
    }

    fn body(text: &str) -> Segments {
        Segments::from(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn models_that_reason_are_known_by_their_name() {
        for model in
            ["o1", "o1-mini", "o3-2025-04-16", "o4-mini", "gpt-5", "gpt-5.2-codex", "gpt-6-mini", "gpt-10", "ft:o4-mini:org::id"]
        {
            assert!(reasons(model), "{model}");
        }
        for model in
            ["gpt-4o", "gpt-4.1", "gpt-4o-mini", "gpt-3.5-turbo", "gpt-5-chat-latest", "omni-moderation", "gpt-oss-120b", "o", ""]
        {
            assert!(!reasons(model), "{model}");
        }
    }

    #[test]
    fn the_old_name_of_the_output_limit_is_renamed_for_models_that_reason_and_for_no_other() {
        let old = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"\"max_completion_tokens\""}]}"#;
        let new = old.replacen("max_tokens", "max_completion_tokens", 1);
        let both = r#"{"messages":[],"max_tokens":9,"max_completion_tokens":8}"#;
        assert_eq!(sent(openai("o3-mini", &body(old))), new);
        for (model, body_text) in [("gpt-4o", old), ("o3-mini", &new), ("o3-mini", both)] {
            assert_eq!(sent(openai(model, &body(body_text))), body_text, "{model}");
        }
    }

    #[test]
    fn what_needs_no_change_is_the_very_bytes() {
        let text = r#"{"model":"m","messages":[{"role":"developer","content":"a \"reasoning\" é"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"t","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c"}],"temperature":1.10,"y":1e400}"#;
        let whole = body(text);
        let same = openai("o3", &whole).unwrap();
        assert_eq!(same.pieces()[0].as_ptr(), whole.pieces()[0].as_ptr());
        let whole = body(&text.replace("developer", "system"));
        assert_eq!(compatible(&provider(), &whole).unwrap().pieces()[0].as_ptr(), whole.pieces()[0].as_ptr());
    }

    #[test]
    fn case_16_long_ids_are_hashed_for_openai_calls_and_results_alike() {
        let id = |last: char| format!("{}{last}", "i".repeat(59));
        let turns = |[a, b]: [&str; 2]| {
            format!(
                r#"{{"messages":[{{"role":"assistant","content":null,"tool_calls":[{{"id":"{a}","type":"function","function":{{"name":"t","arguments":"{{}}"}}}},{{"id":"{b}"}},{{"id":"short"}}]}},{{"role":"tool","tool_call_id":"{a}","content":"1"}},{{"role":"tool","tool_call_id":"{b}","content":"2"}},{{"role":"tool","tool_call_id":"short"}}]}}"#
            )
        };
        let long = [id('a'), id('b')];
        let fitted = [&long[0], &long[1]].map(|id| super::super::ids::fit(id, Form::UpTo40).into_owned());
        assert_ne!(fitted[0], fitted[1]);
        assert_eq!(sent(openai("m", &body(&turns([&long[0], &long[1]])))), turns([&fitted[0], &fitted[1]]));
    }

    #[test]
    fn case_22_thoughts_of_others_do_not_reach_openai_and_signed_ones_nobody() {
        let turn = |more: &str| format!(r#"{{"messages":[{{"role":"assistant","content":"a"{more}}}]}}"#);
        let details = |entries: &str| format!(r#","reasoning_details":[{entries}]"#);
        let (signed, unsigned) = (
            r#"{"type":"reasoning.text","text":"t","signer":"0123456789abcdef"}"#,
            r#"{"type":"reasoning.encrypted","data":"d"}"#,
        );
        let thoughts = r#","reasoning_content":"hm","reasoning":"hm""#;
        let all = turn(&format!("{thoughts}{}", details(&format!("{signed},{unsigned}"))));
        assert_eq!(sent(openai("m", &body(&all))), turn(""));
        assert_eq!(sent(compatible(&provider(), &body(&all))), turn(&format!("{thoughts}{}", details(unsigned))));
    }

    #[test]
    fn case_22_what_was_thought_aloud_goes_back_to_who_thought_it_and_as_it_came() {
        let turn = |more: &str| format!(r#"{{"messages":[{{"role":"assistant","content":null{more},"tool_calls":[]}}]}}"#);
        let details = |signer: &str| format!(r#","reasoning_details":{}"#, signed_aloud(signer, r#""h\"m""#));
        let again =
            String::from(r#"{"messages":[{"role":"assistant","content":null,"tool_calls":[],"reasoning_content":"h\"m"}]}"#);
        assert_eq!(sent(compatible(&provider(), &body(&turn(&details(&signer(&provider())))))), again);
        assert_eq!(sent(compatible(&provider(), &body(&turn(&details("0123456789abcdef"))))), turn(""));
        let both = format!(r#","reasoning_content":"own"{}"#, details(&signer(&provider())));
        assert_eq!(sent(compatible(&provider(), &body(&turn(&both)))), turn(r#","reasoning_content":"own""#));
    }

    #[test]
    fn case_23_schemas_of_tools_are_never_made_strict() {
        let text = r#"{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"t","parameters":{"type":"object","properties":{"url":{"type":"string","format":"uri"},"max":{"type":"integer"}}}}}]}"#;
        assert_eq!(sent(openai("gpt-5", &body(text))), text);
    }

    #[test]
    fn an_operators_sampling_is_left_out_where_a_model_has_none() {
        let map = |value: Value| value.as_object().cloned().unwrap();
        let all = map(json!({ "temperature": 0.2, "top_p": 0.9, "max_tokens": 5 }));
        let seen = |kind, model| params(kind, model, &all).keys().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(seen(ProviderKind::OpenAi, "o3"), "max_tokens");
        assert_eq!(seen(ProviderKind::OpenAi, "gpt-4o"), "temperature top_p max_tokens");
        assert_eq!(seen(ProviderKind::OpenRouter, "o3"), "temperature top_p max_tokens");
        let unthinking = map(json!({ "temperature": 0.2, "reasoning_effort": "none" }));
        assert_eq!(*params(ProviderKind::OpenAi, "gpt-5.2", &unthinking), unthinking);
    }

    #[test]
    fn case_41_no_credential_of_the_callers_goes_on() {
        let caller = HeaderMap::from_iter([
            (AUTHORIZATION, HeaderValue::from_static("Bearer CANARY")),
            (HeaderName::from_static("x-api-key"), HeaderValue::from_static("CANARY")),
            (HeaderName::from_static("cookie"), HeaderValue::from_static("s=CANARY")),
            (HeaderName::from_static("openai-organization"), HeaderValue::from_static("CANARY")),
            (HeaderName::from_static("x-toolgate-user"), HeaderValue::from_static("CANARY")),
            (HeaderName::from_static("http-referer"), HeaderValue::from_static("CANARY")),
            (USER_AGENT, HeaderValue::from_static("app/1")),
        ]);
        let sent = headers(Some(&Secret::new("own")), false, &caller, false);
        assert!(sent.values().all(|value| value != "CANARY" && value != "Bearer CANARY" && value != "s=CANARY"));
        assert_eq!((sent[AUTHORIZATION].to_str().unwrap(), sent[USER_AGENT].to_str().unwrap()), ("Bearer own", "app/1"));
    }
}
