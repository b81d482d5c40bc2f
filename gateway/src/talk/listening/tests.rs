//! Streamed rounds as lists of events, and what of them is shown at once, held back, and left for the end.

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::*;
use crate::wire::Usage;
use crate::wire::sse::Decoder;

const DONE: &str = "[DONE]";

fn say(text: &str) -> String {
    delta(&json!({ "content": text }), Value::Null)
}

fn end(finish: &str) -> String {
    delta(&json!({}), finish.into())
}

fn call() -> String {
    delta(&json!({ "tool_calls": [{ "index": 0, "id": "c", "function": { "name": "lookup", "arguments": "{}" } }] }), Value::Null)
}

fn delta(delta: &Value, finish: Value) -> String {
    json!({ "id": "x", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] }).to_string()
}

fn usage(prompt: u64, completion: u64) -> String {
    json!({ "id": "x", "choices": [], "usage": { "prompt_tokens": prompt, "completion_tokens": completion } }).to_string()
}

/// A stream that was heard to its end.
#[derive(Debug)]
struct Heard {
    /// The data of each chunk that was shown as it came.
    shown: Vec<String>,
    answer: Answer,
    left: Leftover,
}

impl Heard {
    fn live(&self) -> String {
        self.shown.iter().map(|data| text_of(data)).collect()
    }

    fn held(&self) -> String {
        self.left.held.iter().map(|chunk| text_of(&String::from_utf8_lossy(chunk.payload()))).collect()
    }

    fn unseen(&self) -> String {
        self.left.unseen.as_deref().map_or(String::new(), |text| serde_json::from_str(text).unwrap())
    }

    /// Text shown at once, held back, and not to be shown unless nothing better comes.
    fn parts(&self) -> (String, String, String) {
        (self.live(), self.held(), self.unseen())
    }
}

fn text_of(data: &str) -> String {
    let chunk: Value = serde_json::from_str(data).unwrap();
    chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned()
}

fn event(data: &str) -> Event {
    Event { data: Bytes::copy_from_slice(data.as_bytes()), is_error: false }
}

fn hear_events(kind: Kind, events: impl IntoIterator<Item = Event>) -> Result<Heard, Broken> {
    let (mut listening, mut tally) = (Listening::new(kind), Tally::default());
    let mut shown = Vec::new();
    for event in events {
        let show = |chunk: &Chunk| shown.push(String::from_utf8_lossy(chunk.payload()).into_owned());
        listening.hear(event, |name| name == "lookup", &mut tally, show)?;
    }
    // Whoever listens counts what was not reported.
    let usage = tally.reported().copied();
    let used = Used { usage: usage.unwrap_or_else(|| Usage::counted(100, 1)), estimated: usage.is_none() };
    listening.end(used, 1).map(|(answer, left)| Heard { shown, answer, left })
}

fn hear(kind: Kind, events: &[&str]) -> Heard {
    hear_events(kind, events.iter().map(|data| event(data))).unwrap()
}

fn mixed(characters: usize) -> Kind {
    Kind::Mixed(StreamHold::Characters(characters))
}

fn hold(characters: usize) -> Kind {
    Kind::MayTurn(StreamHold::Characters(characters))
}

const ALL: Kind = Kind::MayTurn(StreamHold::All);

#[test]
fn so_many_characters_are_held_and_one_more_goes_live() {
    // The kind, how many characters come one by one, and how many of them are shown at once.
    let table = [
        (hold(0), 1, 1),
        (hold(1), 1, 0),
        (hold(1), 2, 2),
        (hold(256), 256, 0),
        (hold(256), 257, 257),
        (hold(256), 300, 300),
        (ALL, 5000, 0),
        (Kind::Open, 1, 1),
        (Kind::Closing, 1, 1),
    ];
    for (kind, count, live) in table {
        // A character is no byte: this one has three.
        let (piece, last) = (say("日"), end("stop"));
        let mut events = vec![piece.as_str(); count];
        events.extend([last.as_str(), DONE]);
        let heard = hear(kind, &events);
        let seen = (heard.live().chars().count(), heard.held().chars().count());
        assert_eq!(seen, (live, count - live), "{kind:?} {count}");
        assert!(heard.answer.has_text);
    }
}

#[test]
fn nothing_is_shown_late_once_it_is_live() {
    let mut listening = Listening::new(hold(3));
    let mut counts = Vec::new();
    for text in ["a", "b", "c", "d", "e"] {
        let mut shown = 0;
        listening.hear(event(&say(text)), |_| true, &mut Tally::default(), |_| shown += 1).unwrap();
        counts.push(shown);
    }
    assert_eq!(counts, [0, 0, 0, 4, 1]);
}

#[test]
fn a_round_that_turns_is_dropped_as_far_as_it_was_not_shown() {
    let (abc, d, after, call, both) = (
        say("abc"),
        say("d"),
        say("after"),
        call(),
        delta(&json!({ "content": "beside", "tool_calls": [{ "id": "c", "function": { "name": "lookup" } }] }), Value::Null),
    );
    let table: [(Kind, &[&str], [&str; 3]); 11] = [
        (hold(3), &[&abc, &call], ["", "", "abc"]),
        (hold(3), &[&abc, &d, &call], ["abcd", "", ""]),
        (hold(3), &[&abc, &d, &call, &after], ["abcd", "", "after"]),
        (hold(3), &[&call, &abc, &d], ["", "", "abcd"]),
        (hold(3), &[&abc, &d, &both], ["abcd", "", "beside"]),
        (hold(0), &[&abc, &call], ["abc", "", ""]),
        (hold(0), &[&call], ["", "", ""]),
        (ALL, &[&abc, &d, &call], ["", "", "abcd"]),
        (Kind::Closing, &[&abc, &call], ["abc", "", ""]),
        // What a closing call says after it asked once more must not be lost.
        (Kind::Closing, &[&call, &abc], ["", "", "abc"]),
        (Kind::Closing, &[&abc, &call, &after], ["abc", "", "after"]),
    ];
    for (kind, events, [live, held, unseen]) in table {
        let last = end("tool_calls");
        let heard = hear(kind, &[events, &[&last, DONE]].concat());
        assert_eq!(heard.parts(), (live.to_owned(), held.to_owned(), unseen.to_owned()), "{kind:?} {events:?}");
        assert_eq!((heard.answer.calls.len(), heard.answer.finish), (1, Finish::ToolCalls));
        assert!(!heard.shown.iter().any(|data| data.contains("tool_calls\"")), "{:?}", heard.shown);
    }
}

#[test]
fn case_22_thoughts_are_kept_for_the_next_round() {
    let details = |entry: Value| delta(&json!({ "reasoning_details": [entry] }), Value::Null);
    let (said, hidden) = (json!({ "text": "T", "signature": "S", "signer": "aa" }), json!({ "data": "R", "signer": "aa" }));
    let thoughts = [details(said.clone()), details(hidden.clone())];
    let (call, last) = (call(), end("tool_calls"));
    let heard = hear(hold(256), &[&thoughts[0], &thoughts[1], &call, &last, DONE]);
    assert_eq!(heard.answer.thoughts, Some(json!([said, hidden]).to_string()));
    assert!(heard.shown.is_empty());
    let open = hear(Kind::Open, &[&thoughts[0], &call, &last, DONE]);
    assert_eq!((open.answer.thoughts, &open.shown[0]), (None, &thoughts[0]), "they are the caller's then");
}

#[test]
fn a_round_whose_calls_may_be_the_callers_keeps_what_it_says_beside_them() {
    let (abc, d, after, call, both) = (
        say("abc"),
        say("d"),
        say("after"),
        call(),
        delta(&json!({ "content": "beside", "tool_calls": [{ "id": "c", "function": { "name": "lookup" } }] }), Value::Null),
    );
    let table: [(Kind, &[&str], &str, &str); 6] = [
        (mixed(3), &[&abc, &call], "", "abc"),
        (mixed(3), &[&abc, &d, &call, &after], "abcd", "after"),
        (mixed(3), &[&abc, &both], "", "abcbeside"),
        (mixed(2), &[&abc, &both], "abc", "beside"),
        (mixed(0), &[&call, &abc], "", "abc"),
        (Kind::Mixed(StreamHold::All), &[&abc, &d, &call], "", "abcd"),
    ];
    for (kind, events, live, held) in table {
        let last = end("tool_calls");
        let heard = hear(kind, &[events, &[&last, DONE]].concat());
        assert_eq!((heard.live().as_str(), heard.held().as_str()), (live, held), "{kind:?} {events:?}");
        // A piece of a call is never shown, but with the end of the round.
        let chunks = heard.left.held.iter().map(|chunk| String::from_utf8_lossy(chunk.payload()).into_owned());
        assert!(chunks.chain(heard.shown).all(|data| !data.contains("tool_calls\"")), "{kind:?}");
        assert_eq!(heard.left.arguments, ["\"{}\""]);
    }
}

#[test]
fn without_tools_of_ours_all_goes_on_as_it_comes() {
    let (text, call, last, used) = (say("a"), call(), end("tool_calls"), usage(1, 2));
    let heard = hear(Kind::Open, &[&text, &call, &last, &used, DONE]);
    assert_eq!(heard.shown, [text, call, last]);
    assert!(heard.left.held.is_empty() && heard.left.finish.is_none() && heard.left.unseen.is_none());
    assert_eq!((heard.answer.content, heard.answer.calls.len(), heard.answer.usage.total), (None, 1, 3));
}

#[test]
fn the_end_of_a_round_waits_for_the_end_of_the_run() {
    let (text, with_text) = (say("a"), delta(&json!({ "content": "z" }), "length".into()));
    for kind in [hold(0), hold(256), ALL, Kind::Closing] {
        let heard = hear(kind, &[&text, &with_text, DONE]);
        let left = heard.left.finish.as_ref().unwrap();
        assert_eq!((left.content(), left.finish()), (Some("\"z\""), Some("\"length\"")), "{kind:?}");
        assert_eq!(heard.live() + &heard.held(), "a", "{kind:?}");
        assert_eq!((heard.answer.content.as_deref(), heard.answer.finish), (Some("\"az\""), Finish::Length));
    }
}

#[test]
fn an_end_in_every_chunk_loses_nothing_and_shows_one() {
    let said = |text: &str| delta(&json!({ "content": text }), "stop".into());
    let (a, b, c, last) = (said("a"), said("b"), said("c"), end("stop"));
    for (kind, live, held) in
        [(hold(0), "ab", ""), (hold(2), "ab", ""), (hold(3), "", "ab"), (ALL, "", "ab"), (Kind::Closing, "ab", "")]
    {
        let heard = hear(kind, &[&a, &b, &c, DONE]);
        assert_eq!((heard.live().as_str(), heard.held().as_str()), (live, held), "{kind:?}");
        assert!(heard.shown.iter().all(|data| data.contains("\"finish_reason\":null")), "{:?}", heard.shown);
        assert_eq!(heard.left.finish.unwrap().content(), Some("\"c\""));
        assert_eq!(hear(kind, &[&a, &last, &last, DONE]).left.finish.unwrap().content(), None);
    }
}

#[test]
fn case_26_usage_is_found_wherever_it_stands() {
    let (text, stop) = (say("abcd"), end("stop"));
    let inside = |data: &str, usage: Value| {
        let mut chunk: Value = serde_json::from_str(data).unwrap();
        chunk["usage"] = usage;
        chunk.to_string()
    };
    let some = |total: u64| json!({ "prompt_tokens": total - 5, "completion_tokens": 5, "total_tokens": total });
    let (own, zero) = (usage(10, 5), usage(0, 0));
    let (null, at_the_end) = (inside(&text, Value::Null), inside(&stop, some(15)));
    let (growing, grown) = (inside(&text, some(6)), inside(&text, some(11)));
    // The events, the total, whether it was counted here, and whether the provider has a chunk for it.
    let table: [(&[&str], u64, bool, bool); 7] = [
        (&[&text, &stop, &own], 15, false, true),
        (&[&text, &at_the_end], 15, false, false),
        (&[&null, &stop, &own], 15, false, true),
        // Case 28: totals that grow are not added up.
        (&[&growing, &grown, &stop, &own], 15, false, true),
        (&[&growing, &grown, &stop], 11, false, false),
        (&[&text, &stop], 101, true, false),
        (&[&text, &stop, &zero], 101, true, false),
    ];
    for (events, total, estimated, own_chunk) in table {
        for kind in [Kind::Open, hold(0), ALL, Kind::Closing] {
            let heard = hear(kind, &[events, &[DONE]].concat());
            let seen = (heard.answer.usage.total, heard.answer.estimated, heard.left.usage.is_some());
            assert_eq!(seen, (total, estimated, own_chunk), "{kind:?} {events:?}");
            assert!(!heard.shown.iter().any(|data| data.contains("\"choices\":[]")));
        }
    }
}

#[test]
fn case_40_a_broken_stream_is_no_answer() {
    let (text, stop, call, used) = (say("a"), end("stop"), call(), usage(1, 1));
    let error = r#"{"error":{"message":"overloaded"}}"#;
    let failed = || Some(Broken::Error(error.to_owned()));
    let table: [(&[&str], Option<Broken>); 11] = [
        (&[&text, &text], Some(Broken::Cut)),
        (&[&text, &call], Some(Broken::Cut)),
        (&[], Some(Broken::Cut)),
        (&[DONE], Some(Broken::Cut)),
        (&[&used, DONE], Some(Broken::Cut)),
        (&[&text, error], failed()),
        (&[error], failed()),
        (&[&text, "{\"choices\":"], Some(Broken::Garbage)),
        (&[&text, &stop], None),
        (&[&text, DONE], None),
        // What comes after the end mark is not heard.
        (&[&text, DONE, error, "x"], None),
    ];
    for (events, expected) in table {
        for kind in [Kind::Open, hold(256), Kind::Closing] {
            let broken = hear_events(kind, events.iter().map(|data| event(data))).err();
            assert_eq!(broken, expected, "{kind:?} {events:?}");
        }
    }
    let named = Event { is_error: true, ..event("overloaded") };
    assert_eq!(hear_events(ALL, [event(&text), named]).err(), Some(Broken::Error("overloaded".to_owned())));
}

#[test]
fn a_round_that_is_broken_off_has_used_what_came() {
    let more = |kind: &str, text: &str| delta(&json!({ kind: text }), Value::Null);
    let (thoughts, refusal, call) = (more("reasoning_content", "hm hm"), more("refusal", " not that, no"), call());
    let mut counts = Vec::new();
    for kind in [Kind::Open, hold(0), ALL, Kind::Closing] {
        let (mut listening, mut tally) = (Listening::new(kind), Tally::default());
        for data in [say("abc def"), thoughts.clone(), refusal.clone(), call.clone()] {
            listening.hear(event(&data), |_| true, &mut tally, |_| ()).unwrap();
            counts.push(tally.said_tokens());
        }
        assert!(tally.reported().is_none());
        listening.hear(event(&usage(7, 3)), |_| true, &mut tally, |_| ()).unwrap();
        assert_eq!(tally.reported().map(|usage| usage.total), Some(10));
    }
    let (first, others) = counts.split_at(4);
    assert!(first.is_sorted_by(|a, b| a < b), "each kind of text counts: {first:?}");
    assert!(others.chunks(4).all(|counts| counts == first), "whatever is shown of it: {others:?}");
}

/// A stream as a provider might send it, each event in its own way.
const RECORDED: &str = concat!(
    ": PROCESSING\n\n",
    "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"日本\\ud83c\"}}]}\r\n\r\n",
    "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\udfbb a\\\\\"}}]}\n\n: ping\n\ndata:\n\n",
    "data: {\"id\":\"x\",\ndata:  \"choices\":[{\"index\":0,\"delta\":{\"content\":\"🎻 \\\"b\\\"\"}}]}\n\n",
    "event: message\ndata: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"end\"},\"finish_reason\":null}]}\r\r",
    "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"id\":\"x\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n",
);

fn hear_bytes<'b>(kind: Kind, pieces: impl IntoIterator<Item = &'b [u8]>) -> Heard {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.feed(Bytes::copy_from_slice(piece)).unwrap();
        events.extend(std::iter::from_fn(|| decoder.next_event()));
    }
    events.extend(decoder.end());
    hear_events(kind, events).unwrap()
}

/// Everything that could differ.
fn traits(heard: &Heard) -> String {
    format!("{:?} {:?} {:?}", heard.shown, heard.answer, heard.left)
}

#[test]
fn case_07_a_stream_shows_the_same_wherever_the_network_cut_it() {
    let bytes = RECORDED.as_bytes();
    for kind in [Kind::Open, hold(0), hold(5), ALL, Kind::Closing] {
        let whole = hear_bytes(kind, [bytes]);
        assert_eq!(whole.answer.content.as_deref(), Some(r#""日本\ud83c\udfbb a\\🎻 \"b\"end""#).filter(|_| kind != Kind::Open));
        for at in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(traits(&hear_bytes(kind, [head, tail])), traits(&whole), "{kind:?}, cut at {at}");
        }
    }
}

proptest! {
    #[test]
    fn any_cuts_show_the_same(cuts in prop::collection::vec(any::<Index>(), 0..40), held in 0_usize..12) {
        let bytes = RECORDED.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
        prop_assert_eq!(traits(&hear_bytes(hold(held), pieces)), traits(&hear_bytes(hold(held), [bytes])));
    }

    #[test]
    fn no_text_is_lost_and_none_is_shown_twice(
        texts in prop::collection::vec("[a-c日\"\\\\\u{0}🎻]{0,4}", 0..12),
        turn in prop::option::of(any::<Index>()),
        kind in prop::sample::select(vec![Kind::Open, hold(0), hold(1), hold(5), ALL, Kind::Closing]),
    ) {
        let mut events: Vec<String> = texts.iter().map(|text| say(text)).collect();
        if let Some(turn) = turn {
            events.insert(turn.index(events.len() + 1), call());
        }
        events.extend([end("stop"), DONE.to_owned()]);
        let heard = hear_events(kind, events.iter().map(|data| event(data))).unwrap();
        let (live, held, unseen) = heard.parts();
        prop_assert_eq!(live + &held + &unseen, texts.concat());
        prop_assert!(held.is_empty() || unseen.is_empty());
        if kind != Kind::Open {
            prop_assert_eq!(heard.answer.content, Some(Value::from(texts.concat()).to_string()));
            prop_assert_eq!(heard.answer.calls.len(), usize::from(turn.is_some()));
        }
    }
}

#[test]
fn what_is_kept_until_the_end_is_known() {
    let event = |data: &str| Event { data: Bytes::copy_from_slice(data.as_bytes()), is_error: false };
    let nothing = r#"{"choices":[{"delta":{}}]}"#;
    let table = [
        (Kind::MayTurn(StreamHold::Characters(256)), nothing.to_owned(), true),
        (Kind::MayTurn(StreamHold::Characters(0)), say(&"x".repeat(300)), false),
        (Kind::Open, call(), false),
    ];
    for (kind, data, holds) in table {
        let (mut listening, mut tally) = (Listening::new(kind), Tally::default());
        let mut before = 0;
        for _ in 0..3 {
            listening.hear(event(&data), |_| true, &mut tally, |_| ()).unwrap();
            assert_eq!(listening.holds(), holds, "{data}");
            assert!(listening.kept() > before || kind == Kind::Open, "{data}");
            before = listening.kept();
        }
        assert!(before > 0, "{data}");
    }
}
