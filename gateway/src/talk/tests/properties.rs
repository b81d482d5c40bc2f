//! What holds for every run, whatever a model says, however long it takes, and wherever the run is put aside.

use proptest::prelude::*;

use super::*;

/// What every run must keep, whatever the model says.
fn keeps_the_rules(limits: Limits, played: &Played) {
    let line = played.line();
    assert!(played.talk.asked() <= limits.max_rounds + 1, "too many model calls: {line}");
    assert!(played.talk.executed() <= limits.max_calls, "too many tool calls: {line}");
    assert!(played.turns.iter().filter(|turn| *turn == "closing").count() <= 1, "more than one closing call: {line}");
    let mut owed: Vec<String> = Vec::new();
    for message in played.talk.added() {
        let message: Value = serde_json::from_str(message).unwrap();
        if message["role"] == "tool" {
            assert!(!owed.is_empty(), "a result of no call: {message}");
            assert_eq!(message["tool_call_id"].as_str().unwrap(), owed.remove(0), "out of order");
        } else {
            assert_eq!(owed, Vec::<String>::new(), "calls without a result before {message}");
            owed = message["tool_calls"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect();
        }
    }
    assert!(owed.is_empty(), "calls without a result: {line}");
}

fn any_says() -> impl Strategy<Value = Says> {
    let call = prop::sample::select(vec!["a {}", "a {\"x\":1}", "b {}", "b {", "c", "unknown {\"x\":[1,1]}"]);
    let finish = prop::sample::select(vec![Finish::Other, Finish::ToolCalls, Finish::Length]);
    let parts = ("[ab]{0,3}", prop::collection::vec(call.prop_map(str::to_owned), 0..4), finish, 0_u64..40);
    (parts, any::<(bool, bool)>()).prop_map(|((words, calls, finish, seconds), (is_cut, late))| Says {
        words,
        calls,
        is_cut,
        finish,
        seconds,
        cost: seconds % 3,
        is_late: late && seconds > 30,
    })
}

fn any_limits() -> impl Strategy<Value = Limits> {
    (1_u32..6, 1_u32..9, 1_u64..120).prop_map(|(max_rounds, max_calls, seconds)| Limits {
        max_rounds,
        max_calls,
        max_time: Duration::from_secs(seconds),
        max_cost: (seconds % 2 == 0).then_some(seconds),
    })
}

fn stored(talk: Talk) -> Talk {
    serde_json::to_string(&talk).map_or(talk, |text| serde_json::from_str(&text).unwrap())
}

proptest! {
    #[test]
    fn every_run_ends_within_its_limits(
        limits in any_limits(),
        script in prop::collection::vec(any_says(), 1..12),
        results in 1_usize..4,
    ) {
        let tool = |call: &Call, at: usize| format!("{} {}", call.name, at % results);
        keeps_the_rules(limits, &play(limits, &script, &tool));
    }

    #[test]
    fn a_run_that_is_put_aside_goes_on_the_same(
        limits in any_limits(),
        script in prop::collection::vec(any_says(), 1..12),
        results in 1_usize..4,
    ) {
        let tool = |call: &Call, at: usize| format!("{} {}", call.name, at % results);
        let straight = play(limits, &script, &tool);
        let paused = play_with(stored(Talk::new(limits, true, Own::new())), &script, &tool, stored);
        prop_assert_eq!(straight.line(), paused.line());
        prop_assert_eq!(straight.talk.added(), paused.talk.added());
        prop_assert_eq!(straight.talk.usage(), paused.talk.usage());
        prop_assert_eq!((straight.talk.executed(), straight.barred), (paused.talk.executed(), paused.barred));
    }
}
