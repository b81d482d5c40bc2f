//! Histories that come back, as their clients write them, and what they are taken for.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_tools::toolbox::Call;

use super::*;
use crate::talk::{Answer, Learned, Limits, Own};

const LIMITS: Limits = Limits { max_rounds: 5, max_calls: 32, max_time: Duration::from_secs(60), max_cost: None };

fn own() -> Own {
    ["ui".to_owned()].into()
}

/// A run in which the model asks for these calls: id, name and arguments. What is not `ui` has the result `secret`.
fn run(calls: &[(&str, &str, &str)]) -> Talk {
    let call = |(id, name, arguments): &(&str, &str, &str)| Call {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        arguments: Arguments::parse(arguments),
    };
    let mut talk = Talk::new(LIMITS, true, own());
    talk.heard(Answer { calls: calls.iter().map(call).collect(), ..Answer::default() }).unwrap();
    let others = calls.iter().filter(|(_, name, _)| *name != "ui").count();
    talk.learn((0..others).map(|_| Learned::said("secret".to_owned())).collect());
    talk
}

fn history(messages: &Value) -> History {
    let list = messages.to_string();
    History::read(&[Bytes::copy_from_slice(&list.as_bytes()[1..list.len() - 1])]).unwrap()
}

/// What is kept of a run that pauses after these messages.
fn kept(before: &Value, talk: &Talk) -> Kept {
    let place = place(&history(before), talk.returned().map(|(_, call)| call.id.as_str()));
    let state = talk.hides_anything().then(|| Paused::new(talk.clone(), Mark::CLEAN, "t".to_owned()).to_json());
    Kept { place, state }
}

/// The messages, and behind them a turn with calls of `ui` and their results.
fn returns(before: &Value, calls: &[(&str, &str)]) -> Value {
    let mut messages = before.as_array().unwrap().clone();
    let call = |(id, arguments): &(&str, &str)| json!({ "id": id, "type": "function", "function": { "name": "ui", "arguments": arguments } });
    messages.push(json!({ "role": "assistant", "content": null, "tool_calls": calls.iter().map(call).collect::<Vec<_>>() }));
    messages.extend(calls.iter().map(|(id, _)| json!({ "role": "tool", "tool_call_id": id, "content": "own" })));
    Value::from(messages)
}

/// What becomes of the last turn with calls of a history: `restored`, `as sent`, or the sentence of a 400.
fn taken_for(messages: &Value, kept: &[Kept]) -> String {
    let history = history(messages);
    let all = seen(&history);
    let last = all.last().unwrap();
    match recognise(&history.entries[last.at], last, &all, kept) {
        Ok(Some(_)) => "restored".to_owned(),
        Ok(None) => "as sent".to_owned(),
        Err(edited) => edited.to_string(),
    }
}

const RANDOM: &str = "call_aB3dEfGhIjKl4nOp";

#[test]
fn a_history_is_known_again_however_its_client_writes_it() {
    let before = json!([{ "role": "system", "content": "At noon." }, { "role": "user", "content": "Open \u{e9} " }]);
    let kept = kept(&before, &run(&[("c1", "lookup", "{}"), ("u1", "ui", r#"{"a":1,"b":"x"}"#)]));
    let others = [
        before.clone(),
        json!([{ "role": "developer", "content": "At one." }, { "content": [{ "type": "text", "text": "Open \u{e9}" }], "role": "user" }]),
        json!([{ "role": "user", "content": [{ "type": "text", "text": "Open ", "cache_control": {} }, { "type": "text", "text": "\u{e9}" }] }]),
    ];
    for before in others {
        for arguments in [r#"{"a":1,"b":"x"}"#, r#"{ "b" : "\u0078", "a" : 1 }"#] {
            assert_eq!(taken_for(&returns(&before, &[("u1", arguments)]), std::slice::from_ref(&kept)), "restored", "{before}");
        }
    }
}

/// What is kept, the messages before the turn, its calls, and what it is taken for.
type Returned<'r> = (&'r Kept, &'r Value, &'r [(&'r str, &'r str)], &'r str);

#[test]
fn an_edited_history_is_refused_or_goes_on_and_never_gets_what_is_another_runs() {
    let before = json!([{ "role": "user", "content": "go" }]);
    let other = json!([{ "role": "user", "content": "stop" }]);
    let weak = kept(&before, &run(&[("c1", "lookup", "{}"), ("u1", "ui", "{}"), ("u2", "ui", "{}")]));
    let random = kept(&before, &run(&[("c1", "lookup", "{}"), (RANDOM, "ui", "{}")]));
    let nothing = kept(&before, &run(&[("u1", "ui", "{}")]));
    let both = [("u1", "{}"), ("u2", "{}")];
    let arguments = "messages[1] asks for the call \"u2\" with another name or other arguments than it was returned with";
    let elsewhere =
        "messages[1] has calls that were returned in another conversation: what stands before it is not what stood there then";
    let dropped = "messages[1] has not the calls that were returned together: see the call \"u2\"";
    let table: [Returned<'_>; 12] = [
        (&weak, &before, &both, "restored"),
        (&weak, &before, &[("u2", "{}"), ("u1", "{}")], "restored"),
        (&weak, &before, &[("u1", "{}"), ("u2", "{\"x\":1}")], arguments),
        (&weak, &before, &both[..1], dropped),
        (&weak, &before, &[("v1", "{}")], "as sent"),
        // Ids that anybody may have: it cannot be told, but where the calls are others.
        (&weak, &other, &both, elsewhere),
        (&weak, &other, &[("u1", "{}"), ("u2", "{\"x\":1}")], "as sent"),
        (&weak, &other, &both[..1], "as sent"),
        // Ids that nobody else has: the conversation was shortened.
        (&random, &other, &[(RANDOM, "{}")], "restored"),
        (
            &random,
            &other,
            &[(RANDOM, "{\"x\":1}")],
            "messages[1] asks for the call \"call_aB3dEfGhIjKl4nOp\" with another name or other arguments than it was returned with",
        ),
        // Where nothing was hidden, nothing is missing.
        (&nothing, &before, &both[..1], "as sent"),
        (&nothing, &other, &both[..1], "as sent"),
    ];
    for (kept, before, calls, expected) in table {
        assert_eq!(taken_for(&returns(before, calls), std::slice::from_ref(kept)), expected, "{before} {calls:?}");
    }
}

#[test]
fn a_pause_elsewhere_in_the_same_history_is_not_taken_for_this_one() {
    // The same ids and arguments in both turns; of the first nothing is kept any more.
    let first = json!([{ "role": "user", "content": "go" }]);
    let second = returns(&first, &[("u1", "{}")]);
    let kept = kept(&second, &run(&[("c1", "lookup", "{}"), ("u1", "ui", "{}")]));
    let history = history(&returns(&second, &[("u1", "{}")]));
    let all = seen(&history);
    let found: Vec<bool> = all
        .iter()
        .map(|seen| recognise(&history.entries[seen.at], seen, &all, std::slice::from_ref(&kept)).unwrap().is_some())
        .collect();
    assert_eq!(found, [false, true]);
}

#[test]
fn what_was_hidden_comes_back_in_its_place() {
    let before = json!([{ "role": "user", "content": "go" }]);
    let talk = run(&[("u1", "ui", "{}"), ("c1", "lookup", "{}"), ("u2", "ui", "{}")]);
    let mut messages = returns(&before, &[("u2", "{}"), ("u1", "{}")]);
    messages.as_array_mut().unwrap().push(json!({ "role": "user", "content": "and then" }));
    let history = history(&messages);
    let seen = seen(&history)[0];
    assert!(is_last(&history, &seen));
    let restored = restore(&history, &[(seen, Paused::new(talk, Mark::CLEAN, String::new()))]).concat();
    let restored: Vec<Value> = serde_json::from_slice(&[b"[", &restored[..], b"]"].concat()).unwrap();
    let shown: Vec<String> = restored
        .iter()
        .map(|message| match message["tool_calls"].as_array() {
            Some(calls) => calls.iter().map(|call| call["id"].as_str().unwrap()).collect::<Vec<_>>().join(" "),
            None => format!("{} {}", message["tool_call_id"].as_str().unwrap_or("-"), message["content"].as_str().unwrap()),
        })
        .collect();
    assert_eq!(shown, ["- go", "u1 c1 u2", "u1 own", "c1 secret", "u2 own", "- and then"]);
}

#[test]
fn a_pause_is_what_it_was_when_it_was_kept() {
    let mark = Mark { class: toolgate_config::class::DataClass::Configuration, personal: true };
    let paused = Paused::new(run(&[("c1", "lookup", "{}"), ("u1", "ui", "{}")]), mark, "t".to_owned());
    let again: Paused = serde_json::from_str(&paused.to_json()).unwrap();
    assert_eq!((again.mark(), again.trace.as_str(), again.talk.hidden()), (mark, "t", paused.talk.hidden()));
    assert_eq!(content(&again.talk), content(&paused.talk));
    assert_ne!(content(&again.talk), content(&run(&[("u1", "ui", "{}")])));
}

#[test]
fn ids_that_nobody_gives_twice() {
    for (id, expected) in [
        (RANDOM, true),
        ("toolu_01A09q90qw90lq917835lq9", true),
        ("chatcmpl-tool-7f9c2b1ae0d84c0f9d5c3b2a1f0e9d8c", true),
        ("550e8400-e29b-41d4-a716-446655440000", true),
        ("call_00f3ab1290cd5e77_0", true),
        ("aB3dEfGh1", true),
        ("abcdefghi", true),
        ("call_0", false),
        ("functions.weather2025:0", false),
        ("weather2025", false),
        ("call_1_12345678", false),
        ("lookup_abcdefghi", false),
        ("", false),
    ] {
        assert_eq!(is_made_at_random(id, "get_weather2025"), expected, "{id}");
    }
}

#[test]
fn what_another_version_hid_is_never_taken_for_nothing() {
    let before = json!([{ "role": "user", "content": "go" }]);
    let other = json!([{ "role": "user", "content": "stop" }]);
    for (id, ids_agree) in [("u1", true), (RANDOM, true), ("other", false)] {
        let kept = kept(&before, &run(&[("c1", "lookup", "{}"), (if ids_agree { id } else { "u1" }, "ui", "{}")]));
        for state in ["", "{}", r#"{"talk":{},"class":"secret"}"#] {
            let kept = [Kept { state: Some(state.to_owned()), ..kept.clone() }];
            for before in [&before, &other] {
                let seen = taken_for(&returns(before, &[(id, "{}")]), &kept);
                assert_eq!(seen.contains("that this version cannot take up"), ids_agree, "{id} {state}: {seen}");
            }
        }
    }
}
