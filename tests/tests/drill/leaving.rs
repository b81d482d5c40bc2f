//! Callers that go away while their provider is at each stage: the call is cancelled, and everything is given back.

use serde_json::{Value, json};
use toolgate_tests::dialect::Dialect;
use toolgate_tests::scenario::Mode;

use crate::Drill;
use crate::faulty::{Act, Play, STREAM, chunk, event};

/// Where the provider is when the caller leaves.
fn stages() -> Vec<(&'static str, Play)> {
    let begun = [STREAM.as_bytes(), &chunk(event(&json!({"role": "assistant", "content": "one"}), &Value::Null))].concat();
    let send = |bytes: &[u8]| Act::Send(bytes.to_vec());
    vec![
        ("it has read nothing", vec![Act::Deaf]),
        ("it says nothing", vec![Act::Read, Act::Hang]),
        ("inside its head", vec![Act::Read, send(b"HTTP/1.1 200 OK\r\ncontent-ty"), Act::Hang]),
        ("after its head", vec![Act::Read, send(STREAM.as_bytes()), Act::Hang]),
        ("inside its body", vec![Act::Read, send(&begun), Act::Hang]),
        ("it floods", vec![Act::Read, send(&begun), Act::Flood(chunk(": working\n\n".repeat(1000)))]),
        ("inside the reason of a refusal", vec![Act::Read, send(b"HTTP/1.1 400 No\r\ncontent-length: 9\r\n\r\n{"), Act::Hang]),
    ]
}

#[tokio::test]
async fn case_38_a_caller_that_leaves_at_any_stage_cancels_the_call_and_gives_everything_back() {
    let patient = json!({"connect_timeout": "60s", "first_byte_timeout": "60s", "idle_timeout": "60s"});
    let drill = Drill::with(&patient, "60s", Dialect::OpenAi).await;
    for mode in [Mode::Plain, Mode::Streamed] {
        for (name, play) in stages() {
            let asked = drill.faulty.requests();
            drill.faulty.will([play]);
            drill.stand.leave(mode, json!({}), drill.faulty.until_asked(asked + 1)).await;
            drill.is_quiet(&format!("a caller that left: {name} ({mode:?})")).await;
            drill.works(name).await;
        }
    }
}

#[tokio::test]
async fn case_38_a_caller_that_leaves_while_a_connection_is_being_made_gives_everything_back() {
    let patient = json!({"connect_timeout": "60s"});
    let drill = Drill::with(&patient, "60s", Dialect::OpenAi).await;
    for mode in [Mode::Plain, Mode::Streamed] {
        let is_on_its_way = async {
            toolgate_tests::stage::eventually("it is in flight", || async {
                drill.gateway.metric("toolgate_in_flight").await == 1.0
            })
            .await;
            true
        };
        drill.stand.leave(mode, json!({"body": {"model": "full"}}), is_on_its_way).await;
        drill.is_quiet(&format!("a caller that left before there was a connection ({mode:?})")).await;
    }
}

#[tokio::test]
async fn case_38_a_caller_that_leaves_between_two_tries_ends_them() {
    let drill = Drill::with(&json!({"retries": 2}), "60s", Dialect::OpenAi).await;
    let busy = b"HTTP/1.1 429 Slow\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n";
    let asked = drill.faulty.requests();
    drill.faulty.will([vec![Act::Read, Act::Send(busy.to_vec())]]);
    let answered = async { drill.faulty.until_asked(asked + 1).await && drill.faulty.until_idle().await };
    drill.stand.leave(Mode::Plain, json!({}), answered).await;
    drill.is_quiet("a caller that left between two tries").await;
    assert_eq!(drill.faulty.requests(), asked + 1);
}
