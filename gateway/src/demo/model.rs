//! The demo's model: no network, no weights, the same answer to the same request. It keeps to the protocol as a real one does: it asks for
//! tools that it was offered, waits for their results, and answers from those alone. And as real ones do now and then, it asks for a tool
//! that it was not offered. Pure: what goes over the wire is the business of [`super::dialect`].

use serde_json::{Value, json};

/// What the model says to a request.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// Its answer.
    Text(String),
    /// The tools that it asks for.
    Calls(Vec<Call>),
}

/// A tool that is asked for.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    /// Unique in the conversation.
    pub(super) id: String,
    /// The tool.
    pub(super) name: &'static str,
    /// Its arguments.
    pub(super) arguments: Value,
}

/// What a request to `/v1/chat/completions` is answered with.
pub(super) fn say(request: &Value) -> Said {
    let talk = Talk::of(request);
    let Some(order) = talk.order() else {
        return Said::Text("I can tell you about orders: ask me where order A-1007 is.".to_owned());
    };
    match talk.result_of(FIND_ORDER) {
        None if talk.is_offered(FIND_ORDER) => talk.ask([(FIND_ORDER, json!({ "order": order }))]),
        None => Said::Text(format!("I was offered no tool that finds orders, so I cannot know where {order} is.")),
        Some(result) => match fields(result) {
            None => Said::Text(format!("I could not find the order {order}.")),
            Some(found) => talk.go_on(&order, &found),
        },
    }
}

const FIND_ORDER: &str = "find_order";
const SHIPPING_STATUS: &str = "shipping_status";
const CUSTOMER_FILE: &str = "read_customer_file";

/// What of a conversation the model heeds: the last question, and what has come of it so far.
struct Talk<'r> {
    messages: &'r [Value],
    /// Where the last question stands.
    question: usize,
    offered: Vec<&'r str>,
}

impl<'r> Talk<'r> {
    fn of(request: &'r Value) -> Self {
        let list = |value: &'r Value| value.as_array().map_or(&[][..], Vec::as_slice);
        let messages = list(&request["messages"]);
        let question = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
        let tools = if request["tool_choice"] == "none" { &[] } else { list(&request["tools"]) };
        let offered = tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
        Self { messages, question, offered }
    }

    /// The order that was named last.
    fn order(&self) -> Option<String> {
        let asked = self.messages.iter().filter(|message| message["role"] == "user");
        asked.rev().find_map(|message| order_in(&text_of(&message["content"])))
    }

    fn is_offered(&self, tool: &str) -> bool {
        self.offered.contains(&tool)
    }

    fn since_question(&self) -> &'r [Value] {
        self.messages.get(self.question..).unwrap_or_default()
    }

    fn calls(&self) -> impl Iterator<Item = &'r Value> {
        self.since_question().iter().filter_map(|message| message["tool_calls"].as_array()).flatten()
    }

    /// What came of the last call of this tool, if the tool was called at all.
    fn result_of(&self, tool: &str) -> Option<&'r Value> {
        let call = self.calls().filter(|call| call["function"]["name"] == tool).last()?;
        let mut results = self.since_question().iter().filter(|message| message["role"] == "tool");
        results.find(|message| message["tool_call_id"] == call["id"]).map(|message| &message["content"])
    }

    fn ask(&self, wanted: impl IntoIterator<Item = (&'static str, Value)>) -> Said {
        let asked: usize = self.messages.iter().filter_map(|message| message["tool_calls"].as_array()).map(Vec::len).sum();
        let numbered = wanted.into_iter().zip(asked + 1..);
        Said::Calls(numbered.map(|((name, arguments), at)| Call { id: format!("call_{at}"), name, arguments }).collect())
    }

    /// Follows what an order says to the parcel and to the customer, then answers.
    fn go_on(&self, order: &str, found: &Value) -> Said {
        let mut wanted = Vec::new();
        if let Some(parcel) = found["parcel"].as_str().filter(|_| self.is_offered(SHIPPING_STATUS)) {
            wanted.push((SHIPPING_STATUS, json!({ "parcel": parcel })));
        }
        // Whether it was offered or not: a gateway has to live with models that ask for whatever comes to their mind.
        if let Some(customer) = found["customer"].as_str().filter(|_| !self.offered.is_empty()) {
            wanted.push((CUSTOMER_FILE, json!({ "customer": customer })));
        }
        wanted.retain(|(tool, _)| self.result_of(tool).is_none());
        if wanted.is_empty() { Said::Text(self.answer(order, found)) } else { self.ask(wanted) }
    }

    fn answer(&self, order: &str, found: &Value) -> String {
        let mut answer = found["summary"].as_str().map_or_else(|| format!("The order {order} exists."), str::to_owned);
        if let Some(parcel) = self.result_of(SHIPPING_STATUS).and_then(fields) {
            answer += &format!(
                " It is {} with {}: last seen in {}, expected on {}.",
                word(&parcel, "state"),
                word(&parcel, "carrier"),
                word(&parcel, "last_seen"),
                word(&parcel, "expected")
            );
        }
        match self.result_of(CUSTOMER_FILE).map(fields) {
            Some(Some(customer)) => answer += &format!(" It goes to {}.", word(&customer, "name")),
            Some(None) => answer += " The customer's file is not open to me.",
            None => {}
        }
        answer
    }
}

fn word<'v>(fields: &'v Value, name: &str) -> &'v str {
    fields[name].as_str().unwrap_or("unknown")
}

/// A message's text, whether it came as a string or in parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    }
}

/// `A-1007`, in whatever case it was written.
fn order_in(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').map(str::to_ascii_uppercase);
    words.into_iter().find(|word| {
        word.strip_prefix("A-").is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// The object in a tool's result, whatever stands around it; none in the sentence of an error.
fn fields(content: &Value) -> Option<Value> {
    let text = text_of(content);
    let (from, to) = (text.find('{')?, text.rfind('}')?);
    serde_json::from_str(text.get(from..=to)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conversation with a gateway that runs the tools as the model asks for them.
    struct Conversation {
        request: Value,
    }

    impl Conversation {
        fn asks(question: &str, offered: &[&str]) -> Self {
            let tool = |name| json!({ "type": "function", "function": { "name": name } });
            let tools: Vec<Value> = offered.iter().map(tool).collect();
            Self { request: json!({ "messages": [{ "role": "user", "content": question }], "tools": tools }) }
        }

        /// What the model asks for, or its answer.
        fn hears(&self) -> Vec<String> {
            match say(&self.request) {
                Said::Text(text) => vec![text],
                Said::Calls(calls) => calls.iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect(),
            }
        }

        /// Answers the calls that the model asks for.
        fn then(mut self, results: &[&str]) -> Self {
            let Said::Calls(calls) = say(&self.request) else { panic!("no calls") };
            let asked: Vec<Value> = calls
                .iter()
                .map(|call| {
                    let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
                    json!({ "id": call.id, "type": "function", "function": function })
                })
                .collect();
            let messages = self.request["messages"].as_array_mut().unwrap();
            messages.push(json!({ "role": "assistant", "content": null, "tool_calls": asked }));
            for (call, result) in calls.iter().zip(results) {
                messages.push(json!({ "role": "tool", "tool_call_id": call.id, "content": result }));
            }
            self
        }
    }

    const BOTH: &[&str] = &[FIND_ORDER, SHIPPING_STATUS];
    const SENT: &str = r#"{"summary":"A kettle, sent.","parcel":"P-1","customer":"C-2"}"#;
    const ON_ITS_WAY: &str = r#"{"state":"on its way","carrier":"Nordpost","last_seen":"Bremen","expected":"Thursday"}"#;
    const REFUSED: &str = "Error: tool \"read_customer_file\" is not available.";

    #[test]
    fn it_asks_for_what_it_was_offered_then_answers_from_the_results() {
        let talk = Conversation::asks("Where is order a-1007?", BOTH);
        assert_eq!(talk.hears(), [r#"call_1 find_order {"order":"A-1007"}"#]);
        let talk = talk.then(&[SENT]);
        assert_eq!(
            talk.hears(),
            [r#"call_2 shipping_status {"parcel":"P-1"}"#, r#"call_3 read_customer_file {"customer":"C-2"}"#]
        );
        let talk = talk.then(&[ON_ITS_WAY, REFUSED]);
        assert_eq!(
            talk.hears(),
            ["A kettle, sent. It is on its way with Nordpost: last seen in Bremen, expected on Thursday. \
              The customer's file is not open to me."]
        );
    }

    #[test]
    fn the_customers_name_is_said_only_where_the_file_was_read() {
        let talk = Conversation::asks("Where is A-7?", &[FIND_ORDER, CUSTOMER_FILE]).then(&[SENT]);
        assert_eq!(talk.hears(), [r#"call_2 read_customer_file {"customer":"C-2"}"#]);
        assert_eq!(talk.then(&[r#"{"name":"Ada"}"#]).hears(), ["A kettle, sent. It goes to Ada."]);
    }

    #[test]
    fn what_it_was_not_told_it_does_not_say() {
        let table: [(&[&str], &[&str], &str); 3] = [
            (BOTH, &["Error: tool \"find_order\" answered with status 404."], "I could not find the order A-7."),
            (&[FIND_ORDER], &[r#"marked: {"summary":"Towels, packed."} end"#], "Towels, packed."),
            (&[FIND_ORDER], &[r#"{"parcel":"P-1"}"#], "The order A-7 exists."),
        ];
        for (offered, results, answer) in table {
            assert_eq!(Conversation::asks("And A-7?", offered).then(results).hears(), [answer]);
        }
    }

    #[test]
    fn without_tools_it_asks_for_none() {
        let no_tool = "I was offered no tool that finds orders, so I cannot know where A-7 is.";
        assert_eq!(Conversation::asks("Where is A-7?", &[]).hears(), [no_tool]);
        let mut forbidden = Conversation::asks("Where is A-7?", BOTH);
        forbidden.request["tool_choice"] = "none".into();
        assert_eq!(forbidden.hears(), [no_tool]);
        let closing = Conversation::asks("Where is A-7?", BOTH).then(&[SENT]);
        let mut closing = Conversation { request: closing.request };
        closing.request.as_object_mut().unwrap().remove("tools");
        assert_eq!(closing.hears(), ["A kettle, sent."]);
    }

    #[test]
    fn a_later_question_is_looked_up_anew() {
        let mut talk = Conversation::asks("Where is A-7?", BOTH).then(&[SENT]).then(&[ON_ITS_WAY, REFUSED]);
        let messages = talk.request["messages"].as_array_mut().unwrap();
        messages.push(json!({ "role": "assistant", "content": "On its way." }));
        messages.push(json!({ "role": "user", "content": [{ "type": "text", "text": "And A-8?" }] }));
        assert_eq!(talk.hears(), [r#"call_4 find_order {"order":"A-8"}"#]);
        assert_eq!(Conversation::asks("Hello", BOTH).hears(), ["I can tell you about orders: ask me where order A-1007 is."]);
    }
}
