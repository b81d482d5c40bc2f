//! Transcripts in one line: `s` a system text, `u` a user, `a` an assistant, `t` a tool's result; then the tokens of each.

use proptest::prelude::*;

use super::Role::{Assistant, System, Tool, User};
use super::*;

/// To how many tokens a result can be shortened here.
const LEAST: u64 = 10;

fn pieces(line: &str) -> Vec<Piece> {
    let piece = |word: &str| {
        let (who, tokens) = word.split_at(1);
        let role = match who {
            "s" => System,
            "u" => User,
            "a" => Assistant,
            _ => Tool,
        };
        let tokens = tokens.parse().unwrap();
        Piece { role, tokens, least: if role == Tool { LEAST.min(tokens) } else { tokens } }
    };
    line.split(' ').map(piece).collect()
}

/// What is left, in the same form.
fn line(pieces: &[Piece], plan: &Plan) -> String {
    let letter = |role| match role {
        System => 's',
        User => 'u',
        Assistant => 'a',
        Tool | Role::Other => 't',
    };
    let shown = |at: usize| {
        let short = plan.shortened.iter().find(|(shortened, _)| *shortened == at).map_or(pieces[at].tokens, |(_, to)| *to);
        format!("{}{short}", letter(pieces[at].role))
    };
    let kept = (0..pieces.len()).filter(|at| !plan.dropped.contains(at));
    kept.map(shown).collect::<Vec<_>>().join(" ")
}

fn fitted(before: &str, room: u64) -> String {
    let pieces = pieces(before);
    plan(&pieces, room).map_or("nothing fits".to_owned(), |plan| line(&pieces, &plan))
}

#[test]
fn what_fits_stays_as_it_is() {
    for before in ["u5", "s1 u5 a9 u2", "u1 a1 t900 a1 t900"] {
        assert_eq!(fitted(before, 5000), before);
    }
}

#[test]
fn the_oldest_whole_turns_go_first() {
    let table = [
        // An answer goes with the question after it.
        ("s9 u5 a10 u5 a10 u5", 43, "s9 u5 a10 u5"),
        ("s9 u5 a10 u5 a10 u5", 28, "s9 u5 u5"),
        ("s9 u5 a10 u5 a10 u5", 18, "nothing fits"),
        // The turns of a loop: each call with all its results; the last question stays.
        ("u5 a1 t20 t20 a1 t20 a1 t20", 70, "u5 a1 t20 a1 t20"),
        ("u5 a1 t20 t20 a1 t20 a1 t20", 46, "u5 a1 t20"),
        ("u5 a9 u6 a1 t20 a1 t20", 60, "u5 u6 a1 t20 a1 t20"),
        ("u5 a9 u6 a1 t20 a1 t20", 33, "u5 u6 a1 t20"),
        // System texts stay wherever they are.
        ("s1 s2 u5 a10 s3 u4 s4 a10 u5", 35, "s1 s2 u5 s3 s4 a10 u5"),
        ("a7 u5 a10 u5", 20, "u5 a10 u5"),
        // Several messages of one user are one question.
        ("u5 a10 u1 a10 u2 u3 u4", 24, "u5 a10 u2 u3 u4"),
        ("u5 a10 u1 a10 u2 u3 u4", 20, "u5 u2 u3 u4"),
        // The beginning of an answer that the caller puts into the model's mouth is the newest turn.
        ("u5 a10 u5 a3", 13, "u5 u5 a3"),
        // Results that the caller brings are the newest turn, whatever system text stands behind them.
        ("u5 a1 t20 a1 t20 s1", 27, "u5 a1 t20 s1"),
        ("u5 a1 t20 u5 s1", 11, "u5 u5 s1"),
    ];
    for (before, room, after) in table {
        assert_eq!(fitted(before, room), after, "{before} in {room}");
    }
}

#[test]
fn case_25_a_cut_never_falls_into_a_turn() {
    let before = "s2 u3 a5 t31 t32 a4 u6 a5 t13";
    let all = sum(&pieces(before));
    for room in 0..all {
        let after = fitted(before, room);
        let whole = after.contains("a5 t31 t32");
        assert!(whole || !(after.contains("t3")), "{room}: {after}");
        assert!(after == "nothing fits" || (after.starts_with("s2 u3 ") && after.contains("u6 a5 t1")), "{room}: {after}");
    }
    assert_eq!(fitted(before, all - 1), "s2 u3 a4 u6 a5 t13");
    assert_eq!(fitted(before, 32), "s2 u3 u6 a5 t13");
}

#[test]
fn then_the_oldest_results_are_shortened_and_those_of_one_turn_alike() {
    let table = [
        ("u5 a1 t50", 40, "u5 a1 t34"),
        ("u5 a1 t50", 16, "u5 a1 t10"),
        ("u5 a1 t50", 15, "nothing fits"),
        ("u5 a1 t50 t20 t8", 70, "u5 a1 t36 t20 t8"),
        ("u5 a1 t50 t20 t8", 44, "u5 a1 t15 t15 t8"),
        ("u5 a1 t50 t20 t8", 34, "u5 a1 t10 t10 t8"),
        ("u5 a1 t50 t20 t8", 33, "nothing fits"),
        // All that can go has gone before anything is shortened.
        ("u5 a1 t90 a1 t50", 40, "u5 a1 t34"),
        // What cannot be shortened is not.
        ("u50 a1 t50", 60, "nothing fits"),
    ];
    for (before, room, after) in table {
        assert_eq!(fitted(before, room), after, "{before} in {room}");
    }
}

#[test]
fn a_transcript_without_a_turn_fits_or_does_not() {
    for (before, room, after) in
        [("u5", 5, "u5"), ("u5", 4, "nothing fits"), ("s3 u5", 7, "nothing fits"), ("u5 u5 u5", 14, "nothing fits")]
    {
        assert_eq!(fitted(before, room), after, "{before}");
    }
    assert_eq!(plan(&[], 0), Some(Plan::default()));
    assert_eq!((newest(&[]), newest(&pieces("u5 a1 t20 t7"))), (0, 28));
}

/// A transcript as providers take it: every result behind its call.
fn transcripts() -> impl Strategy<Value = Vec<Piece>> {
    let one = |role: Role| (0u64..60).prop_map(move |tokens| vec![(role, tokens)]);
    let turn = (0u64..60, prop::collection::vec(0u64..60, 1..4)).prop_map(|(call, results)| {
        std::iter::once((Assistant, call)).chain(results.into_iter().map(|tokens| (Tool, tokens))).collect::<Vec<_>>()
    });
    let step = prop_oneof![one(System), one(User), one(User), one(Assistant), turn.clone(), turn];
    prop::collection::vec(step, 0..14).prop_map(|steps| {
        let piece =
            |(role, tokens): (Role, u64)| Piece { role, tokens, least: if role == Tool { LEAST.min(tokens) } else { tokens } };
        steps.into_iter().flatten().map(piece).collect()
    })
}

/// The transcript with the plan carried out.
fn after(pieces: &[Piece], plan: &Plan) -> Vec<Piece> {
    let short = |at: usize| plan.shortened.iter().find(|(shortened, _)| *shortened == at).map(|(_, to)| *to);
    let kept = (0..pieces.len()).filter(|at| !plan.dropped.contains(at));
    kept.map(|at| Piece { tokens: short(at).unwrap_or(pieces[at].tokens), ..pieces[at] }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_is_left_fits_and_is_counted_right(pieces in transcripts(), room in 0u64..600) {
        let Some(plan) = plan(&pieces, room) else {
            let stays = staying(&pieces);
            let begins = pieces.iter().position(|piece| piece.role == Assistant).unwrap_or(pieces.len());
            let stays = (0..pieces.len()).filter(|at| *at < begins || stays[*at]);
            // Before the first turn nothing is shortened.
            let least = |at: usize| if at < begins { pieces[at].tokens } else { pieces[at].least };
            prop_assert!(stays.map(least).sum::<u64>() > room, "it says that nothing fits, and something does");
            return Ok(());
        };
        let after = after(&pieces, &plan);
        prop_assert!(plan.tokens <= room);
        prop_assert_eq!(sum(&after), plan.tokens);
        prop_assert_eq!(super::plan(&after, room).unwrap(), Plan { tokens: plan.tokens, ..Plan::default() }, "again, nothing happens");
    }

    #[test]
    fn no_result_is_ever_without_its_call_nor_a_call_without_its_results(pieces in transcripts(), room in 0u64..600) {
        let Some(plan) = plan(&pieces, room) else { return Ok(()) };
        let gone = |at: usize| plan.dropped.contains(&at);
        for turn in turns(&pieces) {
            let of_call = |at: &usize| matches!(pieces[*at].role, Assistant | Tool);
            prop_assert!(turn.clone().filter(of_call).all(gone) || !turn.filter(of_call).any(gone));
        }
    }

    #[test]
    fn what_must_stay_stays_and_the_oldest_goes_first(pieces in transcripts(), room in 0u64..600) {
        let Some(plan) = plan(&pieces, room) else { return Ok(()) };
        let stays = staying(&pieces);
        prop_assert!(plan.dropped.iter().all(|at| !stays[*at]));
        let newest_gone = plan.dropped.last().copied().unwrap_or(0);
        let begins = pieces.iter().position(|piece| piece.role == Assistant).unwrap_or(pieces.len());
        prop_assert!((begins..newest_gone).all(|at| stays[at] || plan.dropped.contains(&at)));
        prop_assert!(plan.shortened.iter().all(|(at, to)| pieces[*at].least <= *to && *to < pieces[*at].tokens));
        let may_still_go = (begins..pieces.len()).any(|at| !stays[at] && !plan.dropped.contains(&at));
        prop_assert!(plan.shortened.is_empty() || !may_still_go, "shortened while there were turns to drop");
    }

    #[test]
    fn more_room_never_costs_more(pieces in transcripts(), room in 0u64..600, more in 1u64..200) {
        let (Some(tight), Some(wide)) = (plan(&pieces, room), plan(&pieces, room + more)) else {
            prop_assert!(plan(&pieces, room).is_none(), "with more room it does not fit");
            return Ok(());
        };
        prop_assert!(wide.dropped.iter().all(|at| tight.dropped.contains(at)));
        for (at, to) in &wide.shortened {
            let tighter = tight.shortened.iter().find(|(shortened, _)| shortened == at).map(|(_, to)| *to);
            prop_assert!(tighter.is_some_and(|tighter| tighter <= *to));
        }
    }
}
