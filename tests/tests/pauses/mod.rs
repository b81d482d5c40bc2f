//! Runs that wait for their callers, where the caller sends back what it was given: the ids are the model's, or those of the gateway's making.

use serde_json::{Value, json};
use toolgate_tests::caller::{Response, send};
use toolgate_tests::dialect::Dialect;
use toolgate_tests::gateway::{Folder, Gateway, free_addresses};
use toolgate_tests::scenario::{Ask, Mode};
use toolgate_tests::services::Database;
use toolgate_tests::stand::{Scripts, Stand};
use toolgate_tests::stream::{Stream, answer};

fn body(messages: &[Value]) -> Value {
    let tool = json!({"type": "function", "function": {"name": "ui_open", "parameters": {"type": "object"}}});
    json!({"body": {"tools": [tool], "messages": messages}})
}

fn hi() -> Value {
    json!({"role": "user", "content": "hi"})
}

/// The answer's message, however it was told.
fn message(response: &Response) -> Value {
    assert_eq!(response.status, 200, "{}", response.text());
    let answer = if response.is_stream() { Stream::parse(&response.body).answer() } else { answer(&response.json()) };
    answer["message"].clone()
}

/// The question, what came back, and a result for each of its calls.
fn with_results(message: &Value) -> Vec<Value> {
    let calls = message["tool_calls"].as_array().unwrap_or_else(|| panic!("no calls in {message}")).clone();
    let mut turn = json!({"role": "assistant", "content": message["content"], "tool_calls": calls});
    turn["tool_calls"].as_array_mut().unwrap().iter_mut().for_each(|call| drop(call.as_object_mut().unwrap().remove("index")));
    let result = |call: &Value| json!({"role": "tool", "tool_call_id": call["id"], "content": "opened"});
    [hi(), turn].into_iter().chain(calls.iter().map(result)).collect()
}

/// The model asks for both, so many times, and then answers as often.
async fn stand(times: usize) -> Stand {
    let lookup = json!({"id": "c1", "name": "lookup", "arguments": {"q": "a"}});
    let both = json!({"calls": [lookup, {"id": "u1", "name": "ui_open", "arguments": {"page": 1}}]});
    let upstream: Vec<Value> = vec![both; times].into_iter().chain(vec![json!({"content": "done"}); times]).collect();
    let fruit: Vec<Value> = (0..times).map(|number| json!({"text": format!("fruit {number}.")})).collect();
    let scripts = |_: &[(&str, String)]| {
        let read = |replies: Value| serde_json::from_value(replies).map_err(|error| error.to_string());
        let tools = [("/lookup".to_owned(), read(Value::from(fruit))?)].into();
        Ok(Scripts { upstream: read(Value::from(upstream))?, tools, strict: true })
    };
    Stand::open(scripts).await.expect("scripts")
}

#[tokio::test]
async fn case_65_what_was_hidden_comes_back_in_every_dialect() {
    let dialects = [Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini, Dialect::Ollama, Dialect::Mistral];
    for dialect in dialects {
        for mode in [Mode::Plain, Mode::Streamed] {
            let stand = stand(1).await;
            let _gateway = stand.serve(json!({"providers": {"mock": dialect.provider()}})).await;
            let asks = message(&stand.ask(mode, body(&[hi()])).await);
            assert_eq!(asks["tool_calls"][0]["function"]["name"], "ui_open", "{dialect:?} {mode:?}: {asks}");
            let done = message(&stand.ask(mode, body(&with_results(&asks))).await);
            assert_eq!(done["content"], "done", "{dialect:?} {mode:?}");
            let received = stand.upstream.received();
            let sent = String::from_utf8_lossy(&received[1].body).into_owned();
            assert_eq!(
                (sent.matches("fruit 0.").count(), sent.matches("opened").count()),
                (1, 1),
                "{dialect:?} {mode:?}: {sent}"
            );
            assert_eq!((stand.upstream.complaints(), stand.tools.received().len()), (vec![], 1), "{dialect:?} {mode:?}");
        }
    }
}

#[tokio::test]
async fn conversations_that_look_alike_and_run_side_by_side_get_each_its_own() {
    const MANY: usize = 12;
    let stand = stand(MANY).await;
    let _gateway = stand.serve(json!({})).await;
    let ask = |mode, messages: Vec<Value>| {
        let stand = &stand;
        async move { message(&stand.ask(mode, body(&messages)).await) }
    };
    let asks = (0..MANY).map(|number| ask(if number % 2 == 0 { Mode::Plain } else { Mode::Streamed }, vec![hi()]));
    let asked = futures_util::future::join_all(asks).await;
    let answers = futures_util::future::join_all(asked.iter().map(|asks| ask(Mode::Plain, with_results(asks)))).await;
    assert!(answers.iter().all(|answer| answer["content"] == "done"));
    // Each hidden result went back once, to one of them.
    let sent: String =
        stand.upstream.received().iter().skip(MANY).map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).collect();
    for number in 0..MANY {
        assert_eq!(sent.matches(&format!("fruit {number}.")).count(), 1, "fruit {number}");
    }
}

#[tokio::test]
async fn a_caller_may_come_back_to_another_gateway_of_the_same_store() {
    let Some(database) = Database::make().await else { return };
    let stand = stand(1).await;
    let config = json!({"store": {"url": database.url()}});
    let _first = stand.serve(config.clone()).await;
    let (folder, addresses) = (Folder::new(), free_addresses());
    let mut other = config;
    other["server"] = json!({"listen": addresses.0, "admin_listen": addresses.1});
    folder.write("toolgate.yaml", &stand.configuration(other));
    let second = Gateway::start(&folder, addresses, &[]).await.expect("the second gateway starts");
    let asks = message(&stand.ask(Mode::Streamed, body(&[hi()])).await);
    let again: Ask = serde_json::from_value(body(&with_results(&asks))).expect("a request");
    let done = message(&send(&second.address, again.steps(Mode::Plain), &stand.stage).await);
    assert_eq!(done["content"], "done");
    let sent = String::from_utf8_lossy(&stand.upstream.received()[1].body).into_owned();
    assert!(sent.contains("fruit 0.") && stand.tools.received().len() == 1, "{sent}");
}
