//! What holds for every body: splicing says what a plain rebuild would say, and what it does not name stays byte for byte.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

use super::chunk::Outfit;
use super::object::{self, Edit, Members, Patches, member_around, range_of};
use super::{CallParts, Chunk, Request, Round, Splice, Usage};

/// Text as JSON allows it between any two tokens.
fn blank() -> impl Strategy<Value = &'static str> {
    select(vec!["", "", " ", "\n\t", "\r\n  "])
}

/// A value as it may be written: odd numbers, escapes that need not be, half a surrogate pair, blanks anywhere.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = select(vec![
        "1.10",
        "1e400",
        "-0",
        "0.1E+2",
        "12345678901234567890123",
        "null",
        "true",
        "\"\"",
        "\"日本 🎻\"",
        r#""\u0061\/\\\"""#,
        r#""\ud83c\udfbb \ud83c""#,
        r#""\n,}]{[:""#,
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 12, 4, |inner| {
        let list = (prop::collection::vec(inner.clone(), 0..4), blank())
            .prop_map(|(items, blank)| format!("[{blank}{}{blank}]", items.join(&format!("{blank},{blank}"))));
        let members = prop::collection::vec((any_key(), inner), 0..4);
        prop_oneof![list, (members, blank()).prop_map(|(members, blank)| written(&members, &[blank]).trim().to_owned())]
    })
}

fn any_key() -> impl Strategy<Value = &'static str> {
    select(vec![
        "\"x\"",
        "\"y\"",
        r#""\u0078""#,
        "\"temperature\"",
        r#""temper\u0061ture""#,
        "\"é\"",
        r#""a\"b""#,
        "\"\"",
        "\"usage\"",
    ])
}

/// An object of raw keys and values, with the blanks in turn.
fn written(members: &[(&str, String)], blanks: &[&str]) -> String {
    let mut blanks = blanks.iter().cycle();
    let mut blank = || *blanks.next().unwrap();
    let mut text = format!("{}{{", blank());
    for (at, (key, value)) in members.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        text += &[comma, blank(), key, blank(), ":", blank(), value, blank()].concat();
    }
    text + "}" + blank()
}

/// The members as they stand there, keys and values raw.
fn members(text: &str) -> Vec<(String, String)> {
    let Members(members) = Members::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    members.into_iter().map(|(key, value)| (key.get().to_owned(), value.get().to_owned())).collect()
}

fn name(raw_key: &str) -> String {
    serde_json::from_str(raw_key).unwrap()
}

fn items(list: &str) -> Vec<String> {
    let items: Vec<&serde_json::value::RawValue> = serde_json::from_str(list).unwrap();
    items.into_iter().map(|item| item.get().to_owned()).collect()
}

/// What a caller may write: each of the members that are interpreted or not, the others in between, in any order.
fn any_request() -> impl Strategy<Value = String> {
    let maybe = |key: &'static str, values: Vec<&'static str>| {
        prop::option::of(select(values)).prop_map(move |value| value.map(|value| (key, value.to_owned())))
    };
    let messages = prop::collection::vec(any_json(), 1..4)
        .prop_map(|messages| Some(("\"messages\"", format!("[{}]", messages.join(" , ")))));
    let known = (
        messages,
        Just(Some(("\"model\"", "\"m\"".to_owned()))),
        maybe("\"stream\"", vec!["true", "false", "null"]),
        maybe("\"stream_options\"", vec!["null", "{}", r#"{"include_usage":false,"x":1.10}"#]),
        maybe("\"tools\"", vec!["[]", "null", r#"[{"type":"function"}]"#]),
        maybe("\"tool_choice\"", vec!["\"auto\"", "\"required\""]),
        maybe("\"parallel_tool_calls\"", vec!["true"]),
    );
    let known = known.prop_map(|(a, b, c, d, e, f, g)| [a, b, c, d, e, f, g].into_iter().flatten().collect::<Vec<_>>());
    let members = (known, prop::collection::vec((any_key(), any_json()), 0..4));
    let shuffled = members.prop_map(|(known, others)| [known, others].concat()).prop_shuffle();
    (shuffled, prop::collection::vec(blank(), 1..7)).prop_map(|(members, blanks)| written(&members, &blanks))
}

/// The request as someone would build it who takes it apart and puts it together again.
fn rebuilt(body: &str, splice: &Splice<'_>, round: Round, added: &[Value]) -> Vec<(String, String)> {
    let body = members(body);
    let find = |wanted: &str| body.iter().find(|(key, _)| name(key) == wanted).map(|(_, value)| value.as_str());
    let stream = find("stream") == Some("true");
    let own_tools = find("tools").is_some_and(|tools| tools.starts_with('[') && tools != "[]");
    let has_tools = (own_tools || !splice.tools.is_empty()) && round != Round::Closing;
    let offered = !splice.tools.is_empty() && round != Round::Closing;
    let mut new: Vec<(String, String)> = Vec::new();
    for (key, value) in &body {
        let value = match name(key).as_str() {
            "model" => Some("\"up\"".to_owned()),
            "messages" => {
                let system = splice.system.map(|system| String::from_utf8(system.to_vec()).unwrap());
                let all = system.into_iter().chain(items(value)).chain(added.iter().map(Value::to_string));
                Some(format!("[{}]", all.collect::<Vec<_>>().join(",")))
            }
            "stream_options" if value.contains("false") => Some(value.replace("false", "true")),
            "stream_options" => Some(r#"{"include_usage":true}"#.to_owned()),
            "tool_choice" if round == Round::Later => Some("\"auto\"".to_owned()),
            _ => Some(value.clone()),
        };
        let kept = match name(key).as_str() {
            "stream_options" => stream,
            "tools" => own_tools && has_tools && !offered,
            "tool_choice" | "parallel_tool_calls" => has_tools,
            _ => true,
        };
        new.extend(value.filter(|_| kept).map(|value| (key.clone(), value)));
    }
    for (param, value) in splice.params {
        if find(param).is_none() && (param != "parallel_tool_calls" || has_tools) {
            new.push((Value::from(param.as_str()).to_string(), value.to_string()));
        }
    }
    if stream && find("stream_options").is_none() {
        new.push(("\"stream_options\"".to_owned(), r#"{"include_usage":true}"#.to_owned()));
    }
    if offered {
        let tools = String::from_utf8(splice.tools.to_vec()).unwrap();
        let own = find("tools").filter(|_| own_tools).and_then(|own| own.strip_suffix(']'));
        let both = own.map_or_else(|| tools.clone(), |own| format!("{own},{}", &tools[1..]));
        new.push(("\"tools\"".to_owned(), both));
    }
    new
}

/// Members that an operator may set for every request.
fn defaults(given: bool) -> Map<String, Value> {
    let all = [("temperature", json!(0.2)), ("parallel_tool_calls", json!(false))];
    all.into_iter().filter(|_| given).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn composes(body: &str, round: Round, (tools, system, added, params): (bool, bool, usize, bool)) {
    let (params, request) = (defaults(params), Request::parse(&Bytes::from(body.to_owned())).unwrap());
    let splice = Splice {
        upstream_model: "up",
        system: system.then_some(br#"{"role":"system"}"#),
        params: &params,
        tools: if tools { Bytes::from_static(br#"[{"offered":1}]"#) } else { Bytes::new() },
        output_limit: None,
        closes_with_tools: false,
    };
    let added: Vec<Value> = (0..added).map(|at| json!({ "added": at })).collect();
    let mut messages = request.transcript().to_vec();
    messages.extend(added.iter().map(|message| Bytes::from(format!(",{message}"))));
    let sent = String::from_utf8(request.compose(&splice, round, &messages).concat()).unwrap();
    let take_apart = |(key, value): (String, String)| {
        let value = if key == "\"messages\"" { items(&value) } else { vec![value] };
        (key, value)
    };
    let sent: Vec<_> = members(&sent).into_iter().map(take_apart).collect();
    let expected: Vec<_> = rebuilt(body, &splice, round, &added).into_iter().map(take_apart).collect();
    assert_eq!(sent, expected, "{body}");
}

/// `edits` by name, `None` for what is to go.
fn edits(text: &str, edits: &BTreeMap<&str, Option<String>>) {
    let mut expected = members(text);
    for (key, value) in &mut expected {
        if let Some(Some(new)) = edits.get(name(key).as_str()) {
            new.clone_into(value);
        }
    }
    expected.retain(|(key, _)| edits.get(name(key).as_str()) != Some(&None));
    for (key, new) in edits.iter().filter_map(|(key, new)| Some((key, new.as_ref()?))) {
        if !members(text).iter().any(|(old, _)| name(old) == *key) {
            expected.push((Value::from(*key).to_string(), new.clone()));
        }
    }
    let edits: Vec<Edit<'_>> =
        edits.iter().map(|(key, new)| new.as_ref().map_or(Edit::Remove(key), |new| Edit::Set(key, new))).collect();
    assert_eq!(members(&object::edited(text.as_bytes(), &edits).unwrap()), expected, "{text}");
}

fn goes(text: &str, at: usize) {
    let value = Members::parse(text.as_bytes()).unwrap().0[at].1;
    let mut patches = Patches::default();
    patches.replace(member_around(text.as_bytes(), range_of(text.as_bytes(), value.get())), "");
    let mut out = BytesMut::new();
    patches.apply(text.as_bytes(), &mut out);
    let mut expected = members(text);
    expected.remove(at);
    assert_eq!(members(std::str::from_utf8(&out).unwrap()), expected, "{text}");
}

/// A chunk with these members, those of its delta in this order.
fn chunk_of(names: &[&str], delta: &[&str], blanks: &[&str]) -> String {
    let said = |name: &&str| match *name {
        "role" => ("\"role\"", "\"assistant\"".to_owned()),
        "content" => ("\"content\"", r#""a\n日""#.to_owned()),
        _ => ("\"y\"", "1.5".to_owned()),
    };
    let delta = written(&delta.iter().map(said).collect::<Vec<_>>(), blanks);
    let choice = written(&[("\"delta\"", delta), ("\"finish_reason\"", "null".to_owned())], blanks);
    let member = |name: &&str| match *name {
        "choices" => ("\"choices\"", format!("[{choice}]")),
        "usage" => ("\"usage\"", r#"{"prompt_tokens": 1}"#.to_owned()),
        "id" => ("\"id\"", "\"old\"".to_owned()),
        "model" => ("\"model\"", "\"old\"".to_owned()),
        _ => ("\"x\"", "{}".to_owned()),
    };
    written(&names.iter().map(member).collect::<Vec<_>>(), blanks)
}

fn writes(text: &str, (role_seen, with_usage, has_id): (bool, bool, bool)) {
    let chunk = Chunk::parse(Bytes::from(text.to_owned()), &mut CallParts::default(), |_| true).unwrap();
    let mut out = BytesMut::new();
    chunk.write(&Outfit { model: "\"new\"", id: has_id.then_some("\"first\""), role_seen, with_usage, changes: &[] }, &mut out);
    let mut expected: Value = serde_json::from_str(text).unwrap();
    let object = expected.as_object_mut().unwrap();
    match object.get_mut("model") {
        Some(model) => *model = json!("new"),
        None => drop(object.shift_insert(0, "model".to_owned(), json!("new"))),
    }
    object.entry("id").and_modify(|id| *id = json!(if has_id { "first" } else { "old" }));
    if !with_usage {
        object.shift_remove("usage");
    }
    if role_seen {
        object["choices"][0]["delta"].as_object_mut().unwrap().shift_remove("role");
    }
    let line = std::str::from_utf8(&out).unwrap().strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap();
    assert!(!line.contains(['\r', '\n']), "{line}");
    // As text: the order counts as well.
    assert_eq!(serde_json::from_str::<Value>(line).unwrap().to_string(), expected.to_string(), "{text}");
}

/// A history with these calls, in one message or in several.
fn history(arguments: &[Option<&str>], blank: &str, arguments_first: bool, in_one: bool) -> String {
    let call = |arguments: &Option<&str>| {
        let mut function = vec![("\"name\"", "\"t\"".to_owned())];
        function.extend(arguments.map(|arguments| ("\"arguments\"", arguments.to_owned())));
        if arguments_first {
            function.reverse();
        }
        written(&[("\"function\"", written(&function, &[blank])), ("\"id\"", "\"c\"".to_owned())], &[blank])
    };
    let calls: Vec<String> = arguments.iter().map(call).collect();
    let message = |calls: &[String]| written(&[("\"tool_calls\"", format!("[{}]", calls.join(",")))], &[blank]);
    let messages: Vec<String> = calls.chunks(if in_one { calls.len() } else { 1 }).map(message).collect();
    format!(r#"{{"model":"m","messages":[{blank}{}{blank}]}}"#, messages.join(","))
}

fn mends(body: &str) {
    let splice = Splice {
        upstream_model: "m",
        system: None,
        params: &Map::new(),
        tools: Bytes::new(),
        output_limit: None,
        closes_with_tools: false,
    };
    let request = Request::parse(&Bytes::from(body.to_owned())).unwrap();
    let sent = request.compose(&splice, Round::First, request.transcript()).concat();
    let mut expected: Value = serde_json::from_str(body).unwrap();
    for message in expected["messages"].as_array_mut().unwrap() {
        for call in message["tool_calls"].as_array_mut().unwrap() {
            let arguments = &mut call["function"]["arguments"];
            let is_object = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
            if arguments.is_null() || arguments.as_str().is_some_and(|text| !is_object(text)) {
                *arguments = json!("{}");
            } else if arguments.is_object() {
                *arguments = json!(arguments.to_string());
            }
        }
    }
    // An object goes on as it was written, with the blanks in it.
    let unspaced = |value: &Value| value.to_string().replace(' ', "");
    assert_eq!(unspaced(&serde_json::from_slice(&sent).unwrap()), unspaced(&expected), "{body}");
}

proptest! {
    #[test]
    fn composing_says_what_a_rebuild_says(
        body in any_request(),
        round in select(vec![Round::First, Round::Later, Round::Closing]),
        given in (any::<bool>(), any::<bool>(), 0_usize..3, any::<bool>()),
    ) {
        composes(&body, round, given);
    }

    #[test]
    fn editing_says_what_a_rebuild_says(
        object in prop::collection::vec((any_key(), any_json()), 0..6),
        blanks in prop::collection::vec(blank(), 1..7),
        changes in prop::collection::btree_map(select(CHANGED.to_vec()), prop::option::of(any_json()), 0..4),
    ) {
        edits(&written(&object, &blanks), &changes);
    }

    #[test]
    fn a_member_goes_and_its_neighbours_stay(
        values in prop::collection::vec(any_json(), 1..5),
        blanks in prop::collection::vec(blank(), 1..7),
        at in any::<Index>(),
    ) {
        let keys = ["\"usage\"", r#""us\u0061ge2""#, "\"\"", "\"日\"", "\"e\""];
        let object: Vec<_> = keys.into_iter().zip(values).collect();
        goes(&written(&object, &blanks), at.index(object.len()));
    }

    #[test]
    fn a_chunk_is_written_as_a_rebuild_would_be(
        names in Just(vec!["id", "model", "usage", "choices", "x"]).prop_shuffle(),
        left_out in prop::collection::vec(select(vec!["id", "model", "usage", "x"]), 0..3),
        delta in Just(vec!["role", "content", "y"]).prop_shuffle(),
        blanks in prop::collection::vec(blank(), 1..7),
        outfit in any::<(bool, bool, bool)>(),
    ) {
        let names: Vec<&str> = names.into_iter().filter(|name| !left_out.contains(name)).collect();
        writes(&chunk_of(&names, &delta, &blanks), outfit);
    }

    #[test]
    fn a_history_is_mended_and_nothing_else_in_it_changes(
        arguments in prop::collection::vec(prop::option::of(select(ARGUMENTS.to_vec())), 1..5),
        (blank, arguments_first, in_one) in (blank(), any::<bool>(), any::<bool>()),
    ) {
        mends(&history(&arguments, blank, arguments_first, in_one));
    }

    #[test]
    fn usage_is_read_as_it_is_written(
        (prompt, completion) in (0_u64..1 << 29, 1_u64..1 << 29),
        (cached, reasoning) in any::<(Option<u16>, Option<u16>)>(),
    ) {
        let mut usage = json!({ "prompt_tokens": prompt, "completion_tokens": completion });
        if let Some(cached) = cached {
            usage["prompt_tokens_details"] = json!({ "cached_tokens": cached });
        }
        if let Some(reasoning) = reasoning {
            usage["completion_tokens_details"] = json!({ "reasoning_tokens": reasoning });
        }
        let usage = Usage::parse(&usage.to_string()).unwrap();
        prop_assert_eq!((usage.prompt, usage.completion, usage.total), (prompt, completion, prompt + completion));
        let details = (u64::from(cached.unwrap_or(0)), u64::from(reasoning.unwrap_or(0)));
        prop_assert_eq!((usage.cached(), usage.reasoning()), details);
        prop_assert_eq!(Usage::parse(&usage.render()), Some(usage));
        let mut sum = Usage::default();
        sum.add(&usage);
        prop_assert_eq!(sum, usage);
    }
}

/// Names that are changed: some are there, written in one way or another, some are not.
const CHANGED: [&str; 5] = ["x", "temperature", "a\"b", "new", ""];

/// Arguments of a history's call as callers send them.
const ARGUMENTS: [&str; 7] = ["null", "\"\"", "\"  \"", "{ }", r#"{"a": 1.5}"#, r#""{\"a\":1}""#, "\"x\""];
