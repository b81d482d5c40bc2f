//! What of a request a model reads, part by part, for whoever counts it.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::object::{self, string};

/// A part of a prompt.
#[derive(Debug, PartialEq)]
pub enum Part<'p> {
    /// A message begins.
    Message,
    /// It is no conversation; what follows is counted by itself, without a frame.
    Bare,
    /// Tokens, already counted by the caller.
    Tokens(u64),
    /// The message has a name; its text follows.
    Name,
    /// A text, as a raw JSON string or, where a provider allows more, any JSON.
    Text(&'p str),
    /// A call in the history; the texts of its name and its arguments follow.
    Call,
    /// A picture.
    Image {
        /// It is looked at in low detail.
        is_low: bool,
    },
    /// A recording of so many bytes, as they stand there in base64.
    Sound(usize),
    /// A file of so many bytes, as they stand there in base64; 0: it is somewhere else.
    File(usize),
    /// Something that is not known here, of so many bytes.
    Unknown(usize),
    /// A tool that is offered.
    Tool(Tool<'p>),
    /// The schema that the answer has to fit, as JSON.
    Schema(&'p str),
}

/// Gives each part of the body of a request to `take`.
///
/// # Errors
/// The body is not that of a chat completion; nothing was taken.
pub fn read<'p>(body: &'p [u8], mut take: impl FnMut(Part<'p>)) -> serde_json::Result<()> {
    let body: Body<'p> = serde_json::from_slice(body)?;
    if body.messages.is_none() && [body.input, body.prompt].iter().any(Option::is_some) {
        take(Part::Bare);
        [body.input, body.prompt, body.instructions].into_iter().flatten().for_each(|input| read_input(input, &mut take));
    }
    for message in body.messages.iter().flatten() {
        message.read(&mut take);
    }
    body.tools.iter().chain(&body.functions).flatten().for_each(|tool| take(Part::Tool(Tool(tool.get()))));
    if let Some(format) = body.response_format.filter(|format| format.get().contains("\"schema\"")) {
        take(Part::Schema(format.get()));
    }
    Ok(())
}

/// Gives each part of one message to `take`.
///
/// # Errors
/// It is no message; nothing was taken.
pub fn read_message<'p>(message: &'p [u8], mut take: impl FnMut(Part<'p>)) -> serde_json::Result<()> {
    serde_json::from_slice::<Message<'p>>(message)?.read(&mut take);
    Ok(())
}

#[derive(Deserialize)]
struct Body<'b> {
    #[serde(borrow, default)]
    messages: Option<Vec<Message<'b>>>,
    #[serde(borrow, default)]
    tools: Option<Vec<&'b RawValue>>,
    /// What is asked of the paths that are no conversation.
    #[serde(borrow, default)]
    input: Option<&'b RawValue>,
    #[serde(borrow, default)]
    prompt: Option<&'b RawValue>,
    #[serde(borrow, default)]
    instructions: Option<&'b RawValue>,
    #[serde(borrow, default)]
    functions: Option<Vec<&'b RawValue>>,
    #[serde(borrow, default)]
    response_format: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct Message<'m> {
    #[serde(borrow, default)]
    role: Option<&'m RawValue>,
    #[serde(borrow, default)]
    name: Option<&'m RawValue>,
    #[serde(borrow, default)]
    content: Option<&'m RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'m RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'m RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Call<'m>>>,
    #[serde(borrow, default)]
    function_call: Option<Function<'m>>,
}

#[derive(Deserialize)]
struct Call<'c> {
    #[serde(borrow, default)]
    function: Option<Function<'c>>,
}

#[derive(Deserialize)]
struct Function<'f> {
    #[serde(borrow, default)]
    name: Option<&'f RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'f RawValue>,
}

impl<'m> Message<'m> {
    fn read(&self, take: &mut impl FnMut(Part<'m>)) {
        take(Part::Message);
        if let Some(name) = self.name.and_then(said) {
            take(Part::Name);
            take(name);
        }
        [self.role, self.refusal, self.reasoning_content].into_iter().flatten().filter_map(said).for_each(&mut *take);
        if let Some(content) = self.content {
            read_content(content, take);
        }
        let calls = self.tool_calls.iter().flatten().filter_map(|call| call.function.as_ref());
        for function in calls.chain(&self.function_call) {
            take(Part::Call);
            [function.name, function.arguments].into_iter().flatten().filter_map(said).for_each(&mut *take);
        }
    }
}

/// A text, a list of tokens, or a list of any of these and of parts as a message has them.
fn read_input<'i>(input: &'i RawValue, take: &mut impl FnMut(Part<'i>)) {
    let lists = if input.get().starts_with('[') { serde_json::from_str::<Vec<&RawValue>>(input.get()).ok() } else { None };
    match lists {
        Some(items) if tokens(input).is_none() => items.into_iter().filter_map(input_part).for_each(take),
        _ => input_part(input).into_iter().for_each(take),
    }
}

fn input_part(input: &RawValue) -> Option<Part<'_>> {
    match input.get().as_bytes() {
        [b'"' | b'n', ..] => said(input),
        [b'{', ..] => Some(content_part(input)),
        _ => Some(tokens(input).map_or(Part::Unknown(input.get().len()), Part::Tokens)),
    }
}

fn tokens(list: &RawValue) -> Option<u64> {
    serde_json::from_str::<Vec<Number>>(list.get()).ok().map(|numbers| numbers.len() as u64)
}

/// A token by its number.
struct Number;

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(|_| Self)
    }
}

/// A text, unless there is none.
fn said(raw: &RawValue) -> Option<Part<'_>> {
    (!matches!(raw.get(), "null" | "\"\"")).then(|| Part::Text(raw.get()))
}

fn read_content<'c>(content: &'c RawValue, take: &mut impl FnMut(Part<'c>)) {
    let parts = if content.get().starts_with('[') { serde_json::from_str::<Vec<&RawValue>>(content.get()) } else { Ok(vec![]) };
    match parts {
        Ok(parts) if !parts.is_empty() => parts.into_iter().for_each(|part| take(content_part(part))),
        _ => said(content).into_iter().for_each(take),
    }
}

#[derive(Deserialize)]
struct ContentPart<'c> {
    #[serde(borrow, default)]
    r#type: Option<&'c str>,
    #[serde(borrow, default)]
    text: Option<&'c RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'c RawValue>,
    #[serde(borrow, default)]
    image_url: Option<&'c RawValue>,
    #[serde(borrow, default)]
    input_audio: Option<Data<'c>>,
    #[serde(borrow, default)]
    file: Option<Data<'c>>,
}

/// What stands there in base64.
#[derive(Deserialize)]
struct Data<'d> {
    #[serde(borrow, default, alias = "file_data")]
    data: Option<&'d RawValue>,
}

impl Data<'_> {
    fn bytes(&self) -> usize {
        self.data.map_or(0, |data| data.get().len().saturating_sub(2))
    }
}

fn content_part(raw: &RawValue) -> Part<'_> {
    let unknown = Part::Unknown(raw.get().len());
    let Ok(part) = serde_json::from_str::<ContentPart<'_>>(raw.get()) else { return unknown };
    match part {
        ContentPart { image_url: Some(image), .. } => Part::Image { is_low: is_low(image) },
        ContentPart { input_audio: Some(sound), .. } => Part::Sound(sound.bytes()),
        ContentPart { file: Some(file), .. } => Part::File(file.bytes()),
        ContentPart { text: Some(text), .. } | ContentPart { refusal: Some(text), .. } => Part::Text(text.get()),
        ContentPart { r#type: Some(kind), .. } if kind.contains("image") => Part::Image { is_low: false },
        _ => unknown,
    }
}

fn is_low(image: &RawValue) -> bool {
    let detail = object::Members::parse(image.get().as_bytes()).ok().and_then(|members| members.get("detail"));
    detail.is_some_and(|detail| detail.get() == "\"low\"")
}

/// A tool as it is offered: JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tool<'t>(&'t str);

/// A line of what OpenAI makes of a tool.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Its name and what it is for.
    Function(String),
    /// Its parameters begin, or those inside of one of them.
    Properties,
    /// A parameter: name, type and what it is for.
    Property(String),
    /// The parameter is one of several words.
    Choice,
    /// One of them.
    Word(String),
}

impl Tool<'_> {
    /// The JSON.
    pub fn text(&self) -> &str {
        self.0
    }

    /// What OpenAI makes of it. `None`: it is no function.
    pub fn lines(&self) -> Option<Vec<Line>> {
        let tool: Value = serde_json::from_str(self.0).ok()?;
        let function = tool.get("function").unwrap_or(&tool);
        let name = function.get("name")?.as_str()?;
        let mut lines = vec![Line::Function(format!("{name}:{}", description(function)))];
        put_properties(function.get("parameters").unwrap_or(&Value::Null), &mut lines);
        Some(lines)
    }
}

fn put_properties(schema: &Value, lines: &mut Vec<Line>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty()) {
        lines.push(Line::Properties);
        properties.iter().for_each(|(name, property)| put_property(name, property, lines));
    }
    let several = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    several.chain(schema.get("items")).for_each(|inner| put_properties(inner, lines));
    let shared = ["$defs", "definitions"].into_iter().filter_map(|key| schema.get(key)?.as_object()).flat_map(Map::values);
    shared.for_each(|inner| put_properties(inner, lines));
}

fn put_property(name: &str, property: &Value, lines: &mut Vec<Line>) {
    if let Some(words) = property.get("enum").and_then(Value::as_array) {
        lines.push(Line::Choice);
        lines.extend(words.iter().map(|word| Line::Word(plain(word))));
    }
    let kind = property.get("type").map(plain).unwrap_or_default();
    lines.push(Line::Property(format!("{name}:{kind}:{}", description(property))));
    put_properties(property, lines);
}

fn description(of: &Value) -> &str {
    let text = of.get("description").and_then(Value::as_str).unwrap_or_default();
    text.strip_suffix('.').unwrap_or(text)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The text that a raw value spells: that of a string, or the JSON itself.
pub fn spelt(raw: &str) -> std::borrow::Cow<'_, str> {
    string(raw).unwrap_or(std::borrow::Cow::Borrowed(raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(body: &str) -> Vec<String> {
        let mut parts = Vec::new();
        read(body.as_bytes(), |part| parts.push(format!("{part:?}"))).unwrap();
        parts
    }

    fn of_content(content: &str) -> Vec<String> {
        parts(&format!(r#"{{"messages":[{{"content":{content}}}]}}"#)).split_off(1)
    }

    #[test]
    fn a_message_is_read_part_by_part() {
        let body = r#"{"model":"m","messages":[
            {"role":"system","name":"n","content":"s","unknown":{"x":1}},
            {"role":"assistant","content":null,"refusal":"no","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"d"}]},
            {"role":"tool","tool_call_id":"c","content":""}]}"#;
        let expected = [
            "Message",
            "Name",
            r#"Text("\"n\"")"#,
            r#"Text("\"system\"")"#,
            r#"Text("\"s\"")"#,
            "Message",
            r#"Text("\"assistant\"")"#,
            r#"Text("\"no\"")"#,
            "Call",
            r#"Text("\"f\"")"#,
            r#"Text("\"{}\"")"#,
            "Message",
            r#"Text("\"tool\"")"#,
        ];
        assert_eq!(parts(body), expected);
    }

    #[test]
    fn what_is_no_text_is_known_by_its_kind_and_size() {
        let table = [
            (r#""t""#, r#"Text("\"t\"")"#),
            (r#"[{"type":"text","text":"t"}]"#, r#"Text("\"t\"")"#),
            (r#"[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]"#, "Image { is_low: false }"),
            (r#"[{"type":"image_url","image_url":{"url":"https://x/y","detail":"low"}}]"#, "Image { is_low: true }"),
            (r#"[{"type":"image_url","image_url":"https://x/y"}]"#, "Image { is_low: false }"),
            (r#"[{"type":"image","source":{"type":"base64","data":"AAAA"}}]"#, "Image { is_low: false }"),
            (r#"[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]"#, "Sound(4)"),
            (r#"[{"type":"file","file":{"filename":"f","file_data":"AAAAAAAA"}}]"#, "File(8)"),
            (r#"[{"type":"file","file":{"file_id":"f"}}]"#, "File(0)"),
            (r#"[{"type":"else"}]"#, "Unknown(15)"),
            (r#"[1]"#, "Unknown(1)"),
            (r#"{"odd":1}"#, r#"Text("{\"odd\":1}")"#),
            (r#"[]"#, r#"Text("[]")"#),
        ];
        for (content, expected) in table {
            assert_eq!(of_content(content), [expected], "{content}");
        }
    }

    #[test]
    fn tools_and_schemas_are_parts_too() {
        let body = r#"{"messages":[],"tools":[{"a":1}],"functions":[{"b":1}],"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}"#;
        let seen = parts(body);
        assert_eq!(seen[..2], [r#"Tool(Tool("{\"a\":1}"))"#, r#"Tool(Tool("{\"b\":1}"))"#]);
        assert!(seen[2].starts_with("Schema("), "{seen:?}");
        assert_eq!(parts(r#"{"response_format":{"type":"json_object"},"tools":null}"#), [""; 0]);
    }

    #[test]
    fn what_is_no_conversation_is_read_by_itself() {
        let table = [
            (r#""input":"a""#, vec!["Bare", r#"Text("\"a\"")"#]),
            (r#""input":["a","b"]"#, vec!["Bare", r#"Text("\"a\"")"#, r#"Text("\"b\"")"#]),
            (r#""input":[1,2,3]"#, vec!["Bare", "Tokens(3)"]),
            (r#""prompt":[[1,2],[3]]"#, vec!["Bare", "Tokens(2)", "Tokens(1)"]),
            (r#""input":"a","instructions":"slowly""#, vec!["Bare", r#"Text("\"a\"")"#, r#"Text("\"slowly\"")"#]),
            (
                r#""input":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"x"}}]"#,
                vec!["Bare", r#"Text("\"t\"")"#, "Image { is_low: false }"],
            ),
            (r#""input":[[["deep"]]]"#, vec!["Bare", "Unknown(10)"]),
            (r#""messages":[],"input":"a""#, vec![]),
        ];
        for (members, expected) in table {
            assert_eq!(parts(&format!("{{{members}}}")), expected, "{members}");
        }
        let deep = format!(r#"{{"input":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(parts(&deep).len(), 2, "how deep it is does not matter");
    }

    #[test]
    fn a_function_is_a_line_and_a_line_for_each_parameter() {
        let parameters = r#"{"type":"object","properties":{
            "q":{"type":["string","null"],"description":"What."},
            "unit":{"type":"string","enum":["c",1]},
            "deep":{"type":"array","items":{"properties":{"x":{}}}}}}"#;
        let expected = vec![
            Line::Function("f:Looks".into()),
            Line::Properties,
            Line::Property(r#"q:["string","null"]:What"#.into()),
            Line::Choice,
            Line::Word("c".into()),
            Line::Word("1".into()),
            Line::Property("unit:string:".into()),
            Line::Property("deep:array:".into()),
            Line::Properties,
            Line::Property("x::".into()),
        ];
        let function = format!(r#"{{"name":"f","description":"Looks.","parameters":{parameters}}}"#);
        assert_eq!(Tool(&format!(r#"{{"type":"function","function":{function}}}"#)).lines(), Some(expected));
        assert_eq!(Tool(&function).lines().map(|lines| lines.len()), Some(10));
        assert_eq!(Tool(r#"{"type":"web_search"}"#).lines(), None);
    }

    #[test]
    fn what_is_no_request_is_not_read_in_part() {
        for body in ["", "[", r#"{"messages":[1]}"#, r#"{"messages":[{}],"tools":{}}"#, r#"{"messages":[{"tool_calls":["c"]}]}"#]
        {
            let mut parts = 0;
            assert!(read(body.as_bytes(), |_| parts += 1).is_err() && parts == 0, "{body}");
        }
    }
}
