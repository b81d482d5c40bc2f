//! Runs as scripts: what a model says and what tools return, and the turns, messages and ending that follow.

use serde_json::Value;
use toolgate_tools::arguments::Arguments;
use toolgate_tools::media::Media;
use toolgate_tools::toolbox::{Outcome, Output};

use super::*;

mod mixed;
mod properties;

/// What a model says in one round, and how long it takes.
#[derive(Clone, Debug, Default)]
struct Says {
    words: String,
    /// Each a name, a blank, and arguments.
    calls: Vec<String>,
    is_cut: bool,
    finish: Finish,
    seconds: u64,
    /// In nano-dollars.
    cost: u64,
    /// The round does not come to its end in time.
    is_late: bool,
}

fn words(text: &str) -> Says {
    Says { words: text.to_owned(), ..Says::default() }
}

fn calls(calls: &[&str]) -> Says {
    Says { calls: calls.iter().map(|call| (*call).to_owned()).collect(), finish: Finish::ToolCalls, ..Says::default() }
}

/// The last call stops in the middle.
fn half(text: &str, call: &str) -> Says {
    Says { words: text.to_owned(), is_cut: true, finish: Finish::Length, ..calls(&[call]) }
}

impl Says {
    fn ends(self, finish: Finish) -> Self {
        Self { finish, ..self }
    }

    fn after(self, seconds: u64) -> Self {
        Self { seconds, ..self }
    }

    fn late(self, seconds: u64) -> Self {
        Self { seconds, is_late: true, ..self }
    }

    fn answer(&self, round: u32) -> Answer {
        let call = |(at, text): (usize, &String)| {
            let (name, arguments) = text.split_once(' ').unwrap_or((text, ""));
            Call { id: format!("c{round}.{at}"), name: name.to_owned(), arguments: Arguments::parse(arguments) }
        };
        Answer {
            content: Some(Value::from(self.words.as_str()).to_string()),
            has_text: !self.words.is_empty(),
            thoughts: None,
            aloud: None,
            calls: self.calls.iter().enumerate().map(call).collect(),
            is_cut: self.is_cut,
            finish: self.finish,
            usage: Usage::counted(10, 1),
            estimated: false,
            cost: self.cost,
        }
    }
}

/// A run that was played to its end.
#[derive(Debug)]
struct Played {
    talk: Talk,
    /// `first`, `later` and `closing` are model calls, `run …` names the calls that are run.
    turns: Vec<String>,
    /// The calls that were kept from running, and why.
    barred: Vec<String>,
    /// `None`: the model said nothing.
    ending: Option<Ending>,
}

impl Played {
    fn line(&self) -> String {
        let ending = match self.ending {
            None => "said nothing".to_owned(),
            Some(Ending { truncated, words }) => {
                let shown = match words {
                    Words::AsTheyAre => "as they are",
                    Words::WithoutCalls => "without calls",
                    Words::Instead(_) => "instead",
                    Words::OwnCalls => "own calls",
                };
                format!("{}: {shown}", truncated.map_or("done", Truncation::as_str))
            }
        };
        format!("{}, {ending}", self.turns.join(", "))
    }

    /// The added messages: who says it, and the text or the calls.
    fn messages(&self) -> Vec<String> {
        self.talk.added().iter().map(|message| shown(&serde_json::from_str(message).unwrap())).collect()
    }
}

fn shown(message: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("null").to_owned();
    if message["role"] == "tool" {
        return format!("{}: {}", text(&message["tool_call_id"]), text(&message["content"]));
    }
    let call = |call: &Value| {
        format!("{} {} {}", text(&call["id"]), text(&call["function"]["name"]), text(&call["function"]["arguments"]))
    };
    let calls: Vec<String> = message["tool_calls"].as_array().unwrap().iter().map(call).collect();
    format!("{} asks {}: {}", text(&message["role"]), calls.join(" + "), text(&message["content"]))
}

const LIMITS: Limits = Limits { max_rounds: 5, max_calls: 32, max_time: Duration::from_secs(60), max_cost: None };

/// What a tool returns to its n-th call of the run.
type Tool<'t> = &'t dyn Fn(&Call, usize) -> String;

fn ok(_: &Call, _: usize) -> String {
    "ok".to_owned()
}

fn fresh(_: &Call, at: usize) -> String {
    format!("result {at}")
}

fn bar(bar: Bar) -> &'static str {
    match bar {
        Bar::Cap(truncation) => truncation.as_str(),
        Bar::Misfits => "misfits",
    }
}

/// Plays a script; its last line is said again and again. `between` may put the talk aside before each turn.
fn play_with(mut talk: Talk, script: &[Says], tool: Tool<'_>, between: impl Fn(Talk) -> Talk) -> Played {
    let (mut turns, mut barred) = (Vec::new(), Vec::new());
    let (mut elapsed, mut ran) = (Duration::ZERO, 0);
    for _ in 0..1000 {
        talk = between(talk);
        match talk.turn(elapsed) {
            Turn::Ask(round) => {
                turns.push(format!("{round:?}").to_lowercase());
                let says = script.get(talk.asked() as usize).or(script.last()).unwrap();
                elapsed += Duration::from_secs(says.seconds);
                if says.is_late && talk.ran_out_of_time() {
                    continue;
                }
                if talk.heard(says.answer(talk.asked())) == Err(SaidNothing) {
                    return Played { talk, turns, barred, ending: None };
                }
            }
            Turn::Run(calls) => {
                turns.push(format!("run{}", calls.iter().map(|call| format!(" {}", call.name)).collect::<String>()));
                barred.extend(talk.barred().map(|(call, why)| format!("{} {}", call.id, bar(why))));
                let learned = calls.iter().map(|call| {
                    ran += 1;
                    Learned { executed: true, ..Learned::said(tool(call, ran)) }
                });
                talk.learn(learned.collect());
            }
            Turn::Done(ending) => return Played { talk, turns, barred, ending: Some(ending) },
        }
    }
    panic!("a run without end: {turns:?}")
}

fn play(limits: Limits, script: &[Says], tool: Tool<'_>) -> Played {
    play_with(Talk::new(limits, true, Own::new()), script, tool, |talk| talk)
}

#[test]
fn a_run_that_has_cost_its_cap_is_closed() {
    let dear = |cost| Says { cost, ..calls(&["clock"]) };
    let capped = |most| Limits { max_cost: Some(most), ..LIMITS };
    // The cap, what each asking round costs, and how the run goes: what is pending is still run where it costs nothing.
    let table = [
        (capped(10), 10, "first, run clock, closing, max_cost: instead"),
        (capped(10), 9, "first, run clock, later, run clock, closing, max_cost: instead"),
        (capped(10), 0, "first, run clock, later, run clock, later, run, closing, repeated_call: instead"),
    ];
    for (limits, cost, expected) in table {
        assert_eq!(play(limits, &[dear(cost)], &ok).line(), expected, "{cost}");
    }
}

#[test]
fn what_tools_cost_counts_against_the_cap_and_what_nobody_can_pay_closes_the_run() {
    let mut talk = Talk::new(Limits { max_cost: Some(10), ..LIMITS }, true, Own::new());
    talk.heard(Says { cost: 4, ..calls(&["clock", "clock"]) }.answer(0)).unwrap();
    assert_eq!(talk.cost_left(), Some(6));
    talk.learn(vec![
        Learned { executed: true, cost: 5, ..Learned::said("ok".to_owned()) },
        Learned { unpaid: Some(Truncation::MaxCost), ..Learned::said("no".to_owned()) },
    ]);
    assert_eq!(talk.cost_left(), Some(1));
    assert!(matches!(talk.turn(Duration::ZERO), Turn::Ask(Round::Closing)));
    talk.heard(words("F").answer(1)).unwrap();
    let Turn::Done(ending) = talk.turn(Duration::ZERO) else { panic!("the closing call is the last") };
    assert_eq!(ending, Ending { truncated: Some(Truncation::MaxCost), words: Words::AsTheyAre });
}

#[test]
fn a_run_that_runs_out_of_a_budget_or_of_the_window_ends_with_what_was_said() {
    type RanOut = fn(&mut Talk) -> bool;
    let budget: (RanOut, Truncation) = (Talk::ran_out_of_budget, Truncation::Budget);
    for (ran_out, reason) in [budget, (Talk::ran_out_of_context, Truncation::Context)] {
        for (says, expected) in [(Says { words: "So far".to_owned(), ..calls(&["clock"]) }, true), (calls(&["clock"]), false)] {
            let mut talk = Talk::new(LIMITS, true, Own::new());
            assert!(!ran_out(&mut talk), "a run that has nothing to show is refused, or sent as it is");
            talk.heard(says.answer(0)).unwrap();
            assert!(!ran_out(&mut talk), "calls come before the next model call");
            talk.learn(vec![Learned { executed: true, ..Learned::said("ok".to_owned()) }]);
            assert!(ran_out(&mut talk));
            let Turn::Done(Ending { truncated, words }) = talk.turn(Duration::ZERO) else { panic!("it is over") };
            assert_eq!(truncated, Some(reason));
            assert_eq!(words == Words::WithoutCalls, expected);
        }
    }
}

#[test]
fn a_run_asks_and_runs_until_the_model_answers() {
    let a = r#"lookup {"q":"a"}"#;
    let table: [(&[Says], &str); 7] = [
        (&[words("F")], "first, done: as they are"),
        (&[words("")], "first, done: as they are"),
        (&[calls(&[a]), words("F")], "first, run lookup, later, done: as they are"),
        (
            &[calls(&[a, "clock"]), calls(&[a]), words("F")],
            "first, run lookup clock, later, run lookup, later, done: as they are",
        ),
        // Case 5: the label may contradict what was said; only an empty hand that was held out is a fault.
        (&[calls(&[a]).ends(Finish::Other), words("F")], "first, run lookup, later, done: as they are"),
        (&[calls(&[])], "first, said nothing"),
        (&[Says { words: "F".to_owned(), ..calls(&[]) }], "first, done: as they are"),
    ];
    for (script, expected) in table {
        assert_eq!(play(LIMITS, script, &fresh).line(), expected);
    }
}

#[test]
fn case_05_half_a_call_is_never_run() {
    let several = Says { calls: vec!["clock {}".to_owned(), r#"lookup {"q":"a"#.to_owned()], ..half("", "") };
    let table: [(&[Says], &str); 6] = [
        (&[half("", r#"lookup {"q":"a"#)], "first, done: instead"),
        (&[half("Let me see", r#"lookup {"q":"a"#)], "first, done: without calls"),
        (&[calls(&["clock"]), half("", "lookup {")], "first, run clock, later, done: instead"),
        // A whole call is run, whatever the limit cut off after it.
        (&[several, words("F")], "first, run clock, later, done: as they are"),
        (&[calls(&["clock {}"]).ends(Finish::Length), words("F")], "first, run clock, later, done: as they are"),
        // Without the limit's word it is broken, not cut, and the model is told.
        (&[half("", "lookup {").ends(Finish::ToolCalls), words("F")], "first, run lookup, later, done: as they are"),
    ];
    for (script, expected) in table {
        assert_eq!(play(LIMITS, script, &fresh).line(), expected);
    }
}

#[test]
fn without_tools_it_is_one_plain_call() {
    for says in [words("F"), words(""), calls(&["lookup {}"]), calls(&[]), half("", "lookup {"), words("F").after(99)] {
        let played = play_with(Talk::new(LIMITS, false, Own::new()), std::slice::from_ref(&says), &ok, |talk| talk);
        assert_eq!(played.line(), "first, done: as they are", "{says:?}");
    }
    assert!(!Talk::new(LIMITS, false, Own::new()).ran_out_of_time());
}

#[test]
fn case_11_broken_arguments_go_on_as_an_empty_object() {
    let broken = r#"lookup {"q":"a"#;
    let played = play(LIMITS, &[calls(&[broken, "clock"]), words("F")], &ok);
    let expected = ["assistant asks c0.0 lookup {} + c0.1 clock {}: null", "c0.0: ok", "c0.1: ok"];
    assert_eq!(played.messages(), expected);
    let again = play(Limits { max_rounds: 20, ..LIMITS }, &[calls(&[broken])], &ok);
    assert_eq!(again.line(), "first, run lookup, later, run lookup, later, run, closing, repeated_call: instead");
}

#[test]
fn case_67_a_call_is_not_run_for_the_same_result_a_third_time() {
    let script = |rounds: &[&[&str]]| rounds.iter().map(|round| calls(round)).collect::<Vec<_>>();
    let (a, a_again, b) = (r#"lookup {"q":"a","n":1}"#, r#"lookup { "n": 1, "q": "\u0061" }"#, r#"lookup {"q":"b"}"#);
    let stopped = "first, run lookup, later, run lookup, later, run, closing, repeated_call: instead";
    let both_stopped =
        "first, run lookup, later, run lookup, later, run lookup, later, run lookup, later, run, closing, repeated_call: instead";
    let failing = |call: &Call, _: usize| Said::Failed.about(&call.name);
    let second_differs = |_: &Call, at: usize| if at == 2 { "other" } else { "same" }.to_owned();
    let table: [(Vec<Says>, Tool<'_>, &str); 8] = [
        (script(&[&[a]]), &second_differs, &format!("first, {}later, run, closing, repeated_call: instead", rounds(4))),
        (script(&[&[a]]), &ok, stopped),
        (script(&[&[a]]), &failing, stopped),
        (script(&[&[a], &[a_again]]), &ok, stopped),
        (script(&[&[a], &[b], &[a], &[b], &[a]]), &ok, both_stopped),
        // What runs beside it runs all the same.
        (
            script(&[&[a], &[a], &[b, a, "clock"]]),
            &ok,
            "first, run lookup, later, run lookup, later, run lookup clock, closing, repeated_call: instead",
        ),
        // Another result, or another tool, begins anew.
        (script(&[&[a], &[a], &[a], &[a], &[a]]), &fresh, &format!("first, {}closing, max_rounds: instead", rounds(5))),
        (
            script(&[&["x {}"], &["y {}"], &["x {}"], &["z {}"]]),
            &ok,
            "first, run x, later, run y, later, run x, later, run z, later, run z, closing, max_rounds: instead",
        ),
    ];
    for (script, tool, expected) in table {
        assert_eq!(play(LIMITS, &script, tool).line(), expected);
    }
}

/// So many rounds with one call of `lookup` each.
fn rounds(count: usize) -> String {
    vec!["run lookup, "; count].join("later, ")
}

#[test]
fn case_68_the_round_limit_ends_in_an_answer() {
    let limits = Limits { max_rounds: 3, ..LIMITS };
    let says = |last: Says| [calls(&["lookup 1"]), calls(&["lookup 2"]), calls(&["lookup 3"]), last];
    let with_words = Says { words: "F".to_owned(), ..calls(&["lookup 4"]) };
    let table = [
        (words("F"), "as they are"),
        (words(""), "instead"),
        (calls(&["lookup 4"]), "instead"),
        (calls(&[]), "instead"),
        (with_words, "without calls"),
    ];
    for (last, shown) in table {
        let played = play(limits, &says(last), &fresh);
        assert_eq!(played.line(), format!("first, {}closing, max_rounds: {shown}", rounds(3)));
        assert_eq!((played.talk.asked(), played.talk.executed()), (4, 3));
        assert_eq!(played.messages().last().unwrap(), "c2.0: result 3");
    }
    let once = play(Limits { max_rounds: 1, ..LIMITS }, &[calls(&["lookup"]), words("F")], &ok);
    assert_eq!(once.line(), "first, run lookup, closing, max_rounds: as they are");
}

#[test]
fn calls_beyond_the_cap_are_answered_and_not_run() {
    let limits = Limits { max_calls: 3, ..LIMITS };
    let two = |a: &str, b: &str| calls(&[a, b]);
    let table: [(&[Says], &str, &[&str]); 3] = [
        (
            &[two("a", "b"), two("c", "d"), words("F")],
            "first, run a b, later, run c, closing, max_calls: as they are",
            &["c1.1 max_calls"],
        ),
        (&[calls(&["a", "b", "c"]), words("F")], "first, run a b c, closing, max_calls: as they are", &[]),
        (
            &[calls(&["a", "b", "c", "d", "e"]), words("F")],
            "first, run a b c, closing, max_calls: as they are",
            &["c0.3 max_calls", "c0.4 max_calls"],
        ),
    ];
    for (script, expected, barred) in table {
        let played = play(limits, script, &ok);
        assert_eq!(played.line(), expected);
        assert_eq!(played.barred, barred);
        assert_eq!(played.talk.executed(), 3);
    }
    let told = play(limits, &[calls(&["a", "b", "c", "d"]), words("F")], &ok).messages();
    assert_eq!(told[3..], ["c0.2: ok".to_owned(), format!("c0.3: {}", Said::LimitReached.about("d"))]);
}

#[test]
fn time_that_is_over_leaves_the_closing_call() {
    let a = || calls(&["lookup"]);
    let table: [(&[Says], &str); 7] = [
        (&[a().after(59), words("F")], "first, run lookup, later, done: as they are"),
        // Calls that are pending when it is over do not fit any more.
        (&[a().after(60), words("F")], "first, run, closing, max_time: as they are"),
        (&[a().after(30), a().after(30), words("")], "first, run lookup, later, run, closing, max_time: instead"),
        // A round that it cuts off is dropped.
        (&[words("x").late(60), words("F")], "first, closing, max_time: as they are"),
        (&[a(), words("x").late(60), words("F")], "first, run lookup, later, closing, max_time: as they are"),
        // An answer that came in is an answer, however late.
        (&[words("F").after(99)], "first, done: as they are"),
        (&[a(), words("F").after(99)], "first, run lookup, later, done: as they are"),
    ];
    for (script, expected) in table {
        assert_eq!(play(LIMITS, script, &ok).line(), expected);
    }
    let played = play(LIMITS, &[a().after(60), words("F")], &ok);
    assert_eq!((played.barred, played.talk.executed()), (vec!["c0.0 max_time".to_owned()], 0));
    let mut closing = Talk::new(LIMITS, true, Own::new());
    assert_eq!((closing.ran_out_of_time(), closing.ran_out_of_time()), (true, false));
}

#[test]
fn tools_that_take_too_long_leave_the_closing_call() {
    let mut talk = Talk::new(LIMITS, true, Own::new());
    talk.heard(calls(&["lookup"]).answer(0)).unwrap();
    assert!(matches!(talk.turn(Duration::from_secs(1)), Turn::Run(calls) if calls.len() == 1));
    talk.learn(vec![Learned { executed: true, ..Learned::said("late".to_owned()) }]);
    assert!(matches!(talk.turn(LIMITS.max_time), Turn::Ask(Round::Closing)));
    talk.heard(words("F").answer(1)).unwrap();
    let Turn::Done(ending) = talk.turn(LIMITS.max_time) else { panic!("not over") };
    assert_eq!(ending, Ending { truncated: Some(Truncation::MaxTime), words: Words::AsTheyAre });
}

#[test]
fn case_22_thoughts_beside_calls_are_kept_for_the_model_that_had_them() {
    let mut talk = Talk::new(LIMITS, true, Own::new());
    let thoughts = r#"[{"text":"T","signature":"S","signer":"aa"}]"#;
    talk.heard(Answer { thoughts: Some(thoughts.to_owned()), ..calls(&["clock"]).answer(0) }).unwrap();
    let turn = &talk.added()[0];
    assert!(turn.contains(&format!(r#","reasoning_details":{thoughts},"tool_calls":["#)), "{turn}");
}

#[test]
fn text_beside_calls_is_kept_for_the_model() {
    let script = [Says { words: "Let me see \"it\"".to_owned(), ..calls(&["clock"]) }, words("F")];
    assert_eq!(play(LIMITS, &script, &ok).messages()[0], "assistant asks c0.0 clock {}: Let me see \"it\"");
}

#[test]
fn case_28_rounds_add_up() {
    let mut talk = Talk::new(LIMITS, true, Own::new());
    for (round, (prompt, completion)) in [(100, 10), (150, 20), (200, 30)].into_iter().enumerate() {
        let says = if round == 2 { words("F") } else { calls(&["clock"]) };
        let usage = Usage::counted(prompt, completion);
        talk.heard(Answer { usage, ..says.answer(round as u32) }).unwrap();
        talk.learn(vec![Learned::said("ok".to_owned())]);
    }
    let usage = talk.usage();
    assert_eq!((usage.prompt, usage.completion, usage.total), (450, 60, 510));
    assert_eq!((talk.asked(), talk.executed()), (3, 0));
}

#[test]
fn nothing_follows_the_end() {
    let mut talk = play(LIMITS, &[calls(&["clock"]), words("F")], &ok).talk;
    let added = talk.added().to_vec();
    assert_eq!((talk.heard(calls(&["clock"]).answer(9)), talk.ran_out_of_time()), (Ok(()), false));
    talk.learn(vec![Learned { executed: true, ..Learned::said("x".to_owned()) }]);
    assert!(matches!(talk.turn(LIMITS.max_time), Turn::Done(Ending { truncated: None, .. })));
    assert_eq!((talk.added(), talk.asked(), talk.executed()), (&added[..], 2, 1));
}

#[test]
fn a_run_is_put_aside_in_every_stage_but_the_last() {
    let mut talk = Talk::new(LIMITS, true, Own::new());
    assert!(serde_json::to_string(&talk).is_ok());
    talk.heard(calls(&["lookup {", "clock"]).answer(0)).unwrap();
    assert!(serde_json::to_string(&talk).is_ok());
    talk.learn(Vec::new());
    assert!(serde_json::to_string(&talk).is_ok());
    talk.heard(words("F").answer(1)).unwrap();
    assert!(serde_json::to_string(&talk).is_err());
}

/// A round of calls, of which the tool `t` does not take what `is_misfit` says.
fn round_of(talk: &mut Talk, arguments: &[&str]) -> Vec<(String, &'static str)> {
    let calls: Vec<String> = arguments.iter().map(|arguments| format!("t {{\"n\":{arguments}}}")).collect();
    talk.heard(calls_of(&calls, talk.asked())).unwrap();
    let Turn::Run(run) = talk.turn(Duration::ZERO) else { panic!("nothing to run") };
    let barred = talk.barred().map(|(call, why)| (call.id.clone(), bar(why))).collect();
    let learned = run.iter().map(|call| {
        let is_misfit = call.arguments.as_ref().is_ok_and(|arguments| arguments.text().contains("\"n\":\""));
        Learned { is_misfit, executed: !is_misfit, ..Learned::said(call.id.clone()) }
    });
    let learned = learned.collect();
    talk.learn(learned);
    barred
}

fn calls_of(calls: &[String], round: u32) -> Answer {
    Says { calls: calls.to_vec(), finish: Finish::ToolCalls, ..Says::default() }.answer(round)
}

#[test]
fn the_third_misfit_in_a_row_ends_a_tool_also_over_a_pause() {
    let mut talk = Talk::new(Limits { max_rounds: 20, ..LIMITS }, true, Own::new());
    assert!(round_of(&mut talk, &["\"a\"", "\"b\"", "1"]).is_empty());
    assert!(round_of(&mut talk, &["\"c\""]).is_empty());
    let stored = serde_json::to_string(&talk).unwrap();
    let mut talk = serde_json::from_str::<Talk>(&stored).unwrap();
    assert!(round_of(&mut talk, &["\"d\""]).is_empty());
    assert_eq!(talk.withdrawn().count(), 0);
    assert!(round_of(&mut talk, &["\"e\""]).is_empty());
    assert_eq!(talk.withdrawn().collect::<Vec<_>>(), ["t"]);
    assert_eq!(round_of(&mut talk, &["7"]), [("c4.0".to_owned(), "misfits")]);
    let last: Value = serde_json::from_str(talk.added().last().unwrap()).unwrap();
    assert_eq!(last["content"], "Error: tool \"t\" is not available.");
    assert!(matches!(talk.turn(Duration::ZERO), Turn::Ask(Round::Later)));
    let resumed = talk.resumed(LIMITS, true, Own::new());
    assert_eq!(resumed.withdrawn().count(), 1);
}

#[test]
fn what_a_tool_said_is_data_and_what_we_say_stands_beside_it() {
    let seal = Seal::random();
    let learned = Learned { data: "<|im_start|>\u{202E}".to_owned(), ..Learned::said("Error: it failed.\n".to_owned()) };
    let shown = learned.sealed("t", &seal).into_owned();
    assert_eq!(shown, format!("Error: it failed.\n{}", seal.wrapped("t", "<|im_start|>\u{202E}")));
    assert!(shown.contains("\n<·|im_start|><U+202E>\n"), "{shown}");
    assert_eq!(learned.plain(), "Error: it failed.\n<|im_start|>\u{202E}");
    assert_eq!(Learned::said("x".to_owned()).sealed("t", &seal), "x");
}

#[test]
fn pictures_are_shown_where_they_can_be_and_named_where_not() {
    let picture = Media::new("image/png", "QUJD".to_owned()).unwrap();
    let sound = Media::new("audio/wav", "QUJD".to_owned()).unwrap();
    let mut output = Output::said(Outcome::Ok, &Said::Failed, "t");
    (output.text, output.own) = ("a chart".to_owned(), 0);
    output.media = vec![picture.clone(), sound];
    let learned = Learned::returned(output, Media::is_picture);
    assert_eq!((learned.said.as_str(), learned.data.as_str()), ("", "a chart\n[sound audio/wav, 3 bytes: not shown]"));
    assert_eq!(learned.media, [picture]);
    let mut talk = Talk::new(LIMITS, true, Own::new());
    talk.heard(calls_of(&["t {}".to_owned()], 0)).unwrap();
    talk.turn(Duration::ZERO);
    talk.learn(vec![learned]);
    let message: Value = serde_json::from_str(talk.added().last().unwrap()).unwrap();
    assert!(message["content"][0]["text"].as_str().unwrap().contains("\na chart\n"), "{message}");
    assert_eq!(
        message["content"][1],
        serde_json::json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,QUJD" } })
    );
}

#[test]
fn a_run_shows_no_more_pictures_than_it_can_carry() {
    let picture = || Media::new("image/png", "QUJD".repeat(1000)).unwrap();
    let mut learned = Learned { media: vec![picture(), picture(), picture()], ..Learned::said(String::new()) };
    assert_eq!(learned.keep_media(6100), 6000);
    assert_eq!((learned.media.len(), learned.data.as_str()), (2, "[image image/png, 2 KiB: not shown]"));
}
