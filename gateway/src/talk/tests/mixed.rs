//! Runs with tools of the caller's own, over as many pauses as they have: the calls of `ui` and `ui2` are the caller's.

use proptest::prelude::*;

use super::*;

fn own() -> Own {
    ["ui", "ui2"].map(str::to_owned).into()
}

/// A run over all its requests.
struct Over {
    /// As in [`Played`]; `pause …` names the calls that go back, `again` is the caller coming back.
    turns: Vec<String>,
    /// The transcript that the model has read in the end.
    transcript: Vec<String>,
    asked: u32,
    executed: u32,
    ending: Option<Ending>,
}

impl Over {
    fn line(&self) -> String {
        self.turns.join(", ")
    }

    fn messages(&self) -> Vec<String> {
        self.transcript.iter().map(|message| shown(&serde_json::from_str(message).unwrap())).collect()
    }
}

/// Plays a run on and on, until it is over. The caller answers each of its calls with `own`.
fn play_on(limits: Limits, script: &[Says], between: impl Fn(Talk) -> Talk) -> Over {
    let mut over = Over { turns: Vec::new(), transcript: Vec::new(), asked: 0, executed: 0, ending: None };
    let mut talk = Talk::new(limits, true, own());
    let mut elapsed = Duration::ZERO;
    for _ in 0..1000 {
        talk = between(talk);
        match talk.turn(elapsed) {
            Turn::Ask(round) => {
                over.turns.push(format!("{round:?}").to_lowercase());
                let says = script.get(over.asked as usize).or(script.last()).unwrap();
                elapsed += Duration::from_secs(says.seconds);
                if talk.heard(says.answer(over.asked)).is_err() {
                    return over;
                }
                over.asked += 1;
            }
            Turn::Run(calls) => {
                over.turns.push(format!("run{}", calls.iter().map(|call| format!(" {}", call.name)).collect::<String>()));
                over.executed += calls.len() as u32;
                let result = |(at, _): (usize, &Call)| Learned { executed: true, ..Learned::said(format!("r{at}")) };
                talk.learn(calls.iter().enumerate().map(result).collect());
            }
            Turn::Done(ending) if ending.words == Words::OwnCalls => {
                let names: String = talk.returned().map(|(_, call)| format!(" {}", call.name)).collect();
                over.turns.push(format!("pause{names}"));
                over.ending = Some(ending);
                if !talk.hides_anything() {
                    return over;
                }
                over.transcript.extend(restored(&talk));
                if !talk.goes_on() {
                    return over;
                }
                talk.put_aside(elapsed);
                elapsed = Duration::ZERO;
                over.turns.push("again".to_owned());
                talk = between(talk).resumed(limits, true, own());
            }
            Turn::Done(ending) => {
                over.transcript.extend_from_slice(talk.added());
                over.ending = Some(ending);
                return over;
            }
        }
    }
    panic!("a run without end: {:?}", over.turns)
}

/// What the model reads of a pause that its caller has answered.
fn restored(talk: &Talk) -> Vec<String> {
    let hidden = talk.hidden().unwrap();
    let mut messages = hidden.before.to_vec();
    messages.push(hidden.turn.to_owned());
    for (id, result) in hidden.calls {
        let (_, own) = talk.returned().find(|(_, call)| call.id == id).unzip();
        messages.push(result.map_or_else(|| message::tool(own.unwrap(), "own", &[]), str::to_owned));
    }
    messages
}

#[test]
fn case_65_a_call_belongs_to_whoever_has_its_tool() {
    let table: [(&[Says], &str); 7] = [
        (&[calls(&["ghost"]), words("F")], "first, run ghost, later"),
        (&[calls(&["ui"])], "first, pause ui"),
        (&[calls(&["lookup", "ui"]), words("F")], "first, run lookup, pause ui, again, first"),
        (&[calls(&["lookup", "ghost"]), words("F")], "first, run lookup ghost, later"),
        // What was run before the caller's turn is hidden from it, and comes back with it.
        (&[calls(&["lookup"]), calls(&["ui"]), words("F")], "first, run lookup, later, pause ui"),
        (
            &[calls(&["lookup", "ui"]), calls(&["ui", "clock"]), calls(&["ui2"])],
            "first, run lookup, pause ui, again, first, run clock, pause ui, again, first, pause ui2",
        ),
        (&[calls(&["ui", "lookup {"]), words("F")], "first, run lookup, pause ui, again, first"),
    ];
    for (script, expected) in table {
        assert_eq!(play_on(LIMITS, script, |talk| talk).line(), expected);
    }
}

#[test]
fn every_call_has_its_result_in_the_order_of_the_calls_whoever_gave_it() {
    let script = [Says { words: "See".to_owned(), ..calls(&["ui", "lookup", "ui2", "ghost"]) }, words("F")];
    let expected = [
        "assistant asks c0.0 ui {} + c0.1 lookup {} + c0.2 ui2 {} + c0.3 ghost {}: See",
        "c0.0: own",
        "c0.1: r0",
        "c0.2: own",
        "c0.3: r1",
    ];
    assert_eq!(play_on(LIMITS, &script, |talk| talk).messages(), expected);
}

#[test]
fn counts_go_on_over_pauses() {
    let both = || calls(&["clock", "ui"]);
    let capped = |most| Limits { max_cost: Some(most), ..LIMITS };
    let table: [(Limits, &[Says], &str); 6] = [
        (Limits { max_rounds: 1, ..LIMITS }, &[both(), words("F")], "first, run clock, pause ui, again, closing"),
        (
            Limits { max_rounds: 2, ..LIMITS },
            &[both(), calls(&["ui", "ghost"]), words("F")],
            "first, run clock, pause ui, again, first, run ghost, pause ui, again, closing",
        ),
        (Limits { max_calls: 1, ..LIMITS }, &[both(), words("F")], "first, run clock, pause ui, again, closing"),
        (capped(5), &[Says { cost: 5, ..both() }, words("F")], "first, run clock, pause ui, again, closing"),
        // The time of a pause is the caller's own, that before it the run's.
        (
            LIMITS,
            &[both().after(50), both().after(10), words("F")],
            "first, run clock, pause ui, again, first, run, pause ui, again, closing",
        ),
        // The same call with the same result a third time.
        (
            LIMITS,
            &[both(), both(), both(), words("F")],
            "first, run clock, pause ui, again, first, run clock, pause ui, again, first, run, pause ui, again, closing",
        ),
    ];
    for (limits, script, expected) in table {
        assert_eq!(play_on(limits, script, |talk| talk).line(), expected);
    }
}

#[test]
fn what_a_request_is_told_is_its_own() {
    let mut talk = Talk::new(LIMITS, true, own());
    talk.heard(calls(&["clock", "ui"]).answer(0)).unwrap();
    talk.learn(vec![Learned { executed: true, ..Learned::said("ok".to_owned()) }]);
    assert_eq!((talk.asked(), talk.executed(), talk.usage().total), (1, 1, 11));
    let talk = talk.resumed(LIMITS, true, own());
    assert_eq!((talk.asked(), talk.executed(), talk.usage().total, talk.added().len()), (0, 0, 0, 0));
}

#[test]
fn a_returned_call_gets_another_id_wherever_it_stands() {
    let mut talk = Talk::new(LIMITS, true, own());
    talk.heard(Says { words: "\"id\":\"c0.1\"".to_owned(), ..calls(&["clock", "ui"]) }.answer(0)).unwrap();
    talk.learn(vec![Learned::said("ok".to_owned())]);
    talk.rename_returned(|id| format!("{id}_x"));
    assert_eq!(talk.returned().map(|(at, call)| (at, call.id.as_str())).collect::<Vec<_>>(), [(1, "c0.1_x")]);
    let hidden = talk.hidden().unwrap();
    let turn = shown(&serde_json::from_str(hidden.turn).unwrap());
    assert_eq!(turn, "assistant asks c0.0 clock {} + c0.1_x ui {}: \"id\":\"c0.1\"");
    assert_eq!(
        hidden.calls.iter().map(|(id, result)| (*id, result.is_some())).collect::<Vec<_>>(),
        [("c0.0", true), ("c0.1_x", false)]
    );
}

fn any_script() -> impl Strategy<Value = Vec<Says>> {
    let call = prop::sample::select(vec!["a {}", "b {}", "b {", "ui {}", "ui2 {\"x\":1}", "ghost"]);
    let says = ("[ab]{0,2}", prop::collection::vec(call.prop_map(str::to_owned), 0..4), 0_u64..30)
        .prop_map(|(words, calls, seconds)| Says { words, calls, seconds, cost: seconds % 3, ..Says::default() });
    prop::collection::vec(says, 1..10)
}

proptest! {
    #[test]
    fn every_run_ends_within_its_limits_over_all_its_pauses(
        (max_rounds, max_calls, seconds) in (1_u32..6, 1_u32..9, 1_u64..120),
        script in any_script(),
    ) {
        let limits = Limits { max_rounds, max_calls, max_time: Duration::from_secs(seconds), max_cost: None };
        let stored = |talk: Talk| serde_json::to_string(&talk).map_or(talk, |text| serde_json::from_str(&text).unwrap());
        let (over, put_aside) = (play_on(limits, &script, |talk| talk), play_on(limits, &script, stored));
        prop_assert_eq!(over.line(), put_aside.line());
        prop_assert_eq!(&over.transcript, &put_aside.transcript);
        prop_assert!(over.asked <= max_rounds + 1, "{}", over.line());
        prop_assert!(over.executed <= max_calls, "{}", over.line());
        prop_assert!(over.turns.iter().filter(|turn| *turn == "closing").count() <= 1);
        // Every call has one result, in its place.
        let mut owed: Vec<String> = Vec::new();
        for message in &over.transcript {
            let message: Value = serde_json::from_str(message).unwrap();
            if message["role"] == "tool" {
                prop_assert!(!owed.is_empty());
                prop_assert_eq!(message["tool_call_id"].as_str().unwrap(), owed.remove(0));
            } else {
                prop_assert!(owed.is_empty());
                owed = message["tool_calls"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect();
            }
        }
        prop_assert!(owed.is_empty(), "{}", over.line());
    }
}
