//! A request as `/api/chat` takes it: texts as single strings, pictures beside them, arguments as objects, results by the name of their tool,
//! and all that is about sampling in `options`. The numbers go on digit for digit.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::canon::{Canon, Choice, Function, Message, Part, Parts, Role, data_url, says_something, text, unreadable};
use super::super::{Unsupported, signer};
use crate::targets::Target;
use crate::wire::object::{Edit, Members, as_str, edited, push_quoted};

/// Members that Ollama has among its options, by the same name.
const OPTIONS: [&str; 17] = [
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "seed",
    "num_ctx",
    "num_keep",
    "num_batch",
    "num_gpu",
    "num_thread",
    "repeat_penalty",
    "repeat_last_n",
    "mirostat",
    "mirostat_tau",
    "mirostat_eta",
    "tfs_z",
];

/// The whole body. `size` is about how long it will be, in bytes.
///
/// # Errors
/// What Ollama cannot do.
pub(super) fn write(canon: &Canon<'_>, target: &Target, stream: bool, size: usize) -> Result<String, Unsupported> {
    let mut out = String::with_capacity(size + 256);
    out.push_str(r#"{"model":"#);
    push_quoted(&mut out, &target.upstream_model);
    out.push_str(if stream { r#","stream":true,"messages":["# } else { r#","stream":false,"messages":["# });
    // Reckoned only where a thought is there to be judged.
    let signer = if canon.messages.iter().any(Message::has_thoughts) { signer(&target.provider) } else { String::new() };
    messages(&canon.messages, &signer, &mut out)?;
    out.push(']');
    let has_tools = tools(canon, &mut out)?;
    let mut members = Config { has_tools, options: Vec::with_capacity(8), native: None, others: Vec::new() };
    for (key, value) in &canon.others {
        members.take(key, value)?;
    }
    members.write((!target.is_window_guessed).then_some(target.window), &mut out);
    out.push('}');
    Ok(out)
}

fn messages(messages: &[Message<'_>], signer: &str, out: &mut String) -> Result<(), Unsupported> {
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        at += 1;
        match message.role {
            Role::System => say("system", &message.parts()?, "", out)?,
            Role::User => say("user", &message.parts()?, "", out)?,
            Role::Assistant => {
                say("assistant", &message.parts()?, &beside(message, signer)?, out)?;
                if !message.calls().is_empty() {
                    let results: Vec<_> = messages[at..].iter().take_while(|message| message.role == Role::Tool).collect();
                    at += results.len();
                    answer(message, &results, out)?;
                }
            }
            Role::Tool => return Err(unreadable("hold a tool message that answers no call of the turn before it")),
        }
    }
    Ok(())
}

/// One message: its texts as one, its pictures, and what else it has (raw members, each with a comma in front).
fn say(role: &str, parts: &Parts<'_>, more: &str, out: &mut String) -> Result<(), Unsupported> {
    if out.ends_with('}') {
        out.push(',');
    }
    out.push_str(r#"{"role":""#);
    out.push_str(role);
    out.push_str(r#"","content":""#);
    let mut texts = 0;
    let mut pictures = String::new();
    for part in parts {
        match part {
            Part::Text(raw) => {
                out.push_str(if texts == 0 { "" } else { "\\n" });
                out.push_str(inner(raw));
                texts += 1;
            }
            Part::Image(url) => {
                let (_, data) = data_url(url).ok_or_else(|| {
                    unreadable(
                        "hold a picture by its address, which this provider does not fetch: send it as a `data:` URL in base64",
                    )
                })?;
                pictures.push_str(if pictures.is_empty() { r#","images":["# } else { "," });
                push_quoted(&mut pictures, data);
            }
            Part::Audio(..) => return Err(unreadable("hold sound, which this provider does not take")),
            Part::File(_) => return Err(unreadable("hold a file, which this provider does not take")),
        }
    }
    out.push('"');
    if !pictures.is_empty() {
        out.push_str(&pictures);
        out.push(']');
    }
    out.push_str(more);
    out.push('}');
    Ok(())
}

/// The inside of a raw string.
fn inner(raw: &RawValue) -> &str {
    let text = raw.get();
    text.get(1..text.len() - 1).unwrap_or_default()
}

/// What a turn of the model's has beside its text: what this provider's model thought before its calls, and those.
fn beside(message: &Message<'_>, signer: &str) -> Result<String, Unsupported> {
    let thought = message.thoughts(signer).into_iter().find_map(|thought| thought.text).filter(|text| says_something(text));
    let mut out = thought.map(|text| format!(r#","thinking":{}"#, text.get())).unwrap_or_default();
    out.push_str(&calls(message)?);
    Ok(out)
}

fn calls(message: &Message<'_>) -> Result<String, Unsupported> {
    let mut out = String::new();
    for call in message.calls() {
        let name = call.name();
        if name.is_empty() {
            return Err(unreadable("hold a call without a name"));
        }
        out.push_str(if out.is_empty() { r#","tool_calls":[{"function":{"name":"# } else { r#",{"function":{"name":"# });
        push_quoted(&mut out, &name);
        out.push_str(r#","arguments":"#);
        out.push_str(&call.arguments());
        out.push_str("}}");
    }
    if !out.is_empty() {
        out.push(']');
    }
    Ok(out)
}

/// The results of a turn. They carry no id, so their order is that of the calls.
fn answer(turn: &Message<'_>, results: &[&Message<'_>], out: &mut String) -> Result<(), Unsupported> {
    let mut left: Vec<Option<&Message<'_>>> = results.iter().copied().map(Some).collect();
    for call in turn.calls() {
        let id = call.id();
        let answers = |result: &&mut Option<&Message<'_>>| result.is_some_and(|result| result.answers() == id);
        let Some(result) = left.iter_mut().find(answers).and_then(Option::take) else { continue };
        let mut name = String::from(r#","tool_name":"#);
        push_quoted(&mut name, &call.name());
        say("tool", &result.parts()?, &name, out)?;
    }
    if left.iter().any(Option::is_some) {
        return Err(unreadable("hold a tool message that answers no call of the turn before it"));
    }
    Ok(())
}

/// Writes the tools that are offered, and says whether there are any. Nothing can make the model use one, or keep it from one that it sees: it is
/// shown those that it may use, and a choice that forces one is a wish, as it is at Ollama's own address for OpenAI's clients.
fn tools(canon: &Canon<'_>, out: &mut String) -> Result<bool, Unsupported> {
    let wanted = |name: &str| match &canon.choice {
        Choice::Never => false,
        Choice::Among(names, _) => names.iter().any(|wanted| wanted == name),
        Choice::Named(wanted) => wanted == name,
        _ => true,
    };
    let mut has_tools = false;
    for tool in &canon.tools {
        let function = tool.function()?;
        if wanted(&function.name) {
            out.push_str(if has_tools { "," } else { r#","tools":["# });
            offer(function, out);
            has_tools = true;
        }
    }
    if has_tools {
        out.push(']');
    }
    Ok(has_tools)
}

fn offer(function: &Function<'_>, out: &mut String) {
    out.push_str(r#"{"type":"function","function":{"name":"#);
    push_quoted(out, &function.name);
    if let Some(description) = function.description.filter(|text| text.get().starts_with('"')) {
        out.push_str(r#","description":"#);
        out.push_str(description.get());
    }
    out.push_str(r#","parameters":"#);
    out.push_str(&parameters(function.parameters));
    out.push_str("}}");
}

/// The schema as it is. Its type must be one word, or Ollama cannot read the request at all.
fn parameters(schema: Option<&RawValue>) -> Cow<'_, str> {
    const NONE: &str = r#"{"type":"object","properties":{}}"#;
    let Some(schema) = schema else { return NONE.into() };
    let Ok(members) = Members::parse(schema.get().as_bytes()) else { return NONE.into() };
    if members.0.is_empty() {
        return NONE.into();
    }
    if members.get("type").is_some_and(|kind| kind.get().starts_with('"')) {
        return schema.get().into();
    }
    edited(schema.get().as_bytes(), &[Edit::Set("type", "\"object\"")]).map_or(NONE.into(), Cow::Owned)
}

/// The members that are neither messages nor tools.
struct Config<'a> {
    has_tools: bool,
    /// Those of `options`, raw.
    options: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Those that the request wrote there itself, for what is not said otherwise.
    native: Option<Members<'a>>,
    /// Members of Ollama's own, and those that nobody here knows.
    others: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Config<'a> {
    /// One member, by its name: the table of what becomes of them.
    fn take(&mut self, key: &'a str, value: &'a RawValue) -> Result<(), Unsupported> {
        let raw = value.get();
        match key {
            "model" | "stream" | "stream_options" => Ok(()),
            // Hints, and labels for a store that there is not.
            "user" | "safety_identifier" | "metadata" | "verbosity" | "prompt_cache_key" | "prompt_cache_retention" => Ok(()),
            "max_tokens" | "max_completion_tokens" => self.limit(raw),
            "presence_penalty" | "frequency_penalty" if is_zero(raw) => Ok(()),
            "presence_penalty" | "frequency_penalty" => self.option(key, raw),
            "stop" if raw.starts_with('"') => self.option("stop", format!("[{raw}]")),
            "stop" if raw == "[]" => Ok(()),
            "stop" => self.option("stop", raw),
            "options" => {
                self.native = Members::parse(raw.as_bytes()).ok();
                Ok(())
            }
            "reasoning_effort" => self.think(value),
            "response_format" => self.format(value),
            "parallel_tool_calls" => {
                let why = "must be true: this provider's models decide by themselves how many calls they make at once";
                unless(raw == "true" || !self.has_tools, "parallel_tool_calls", why)
            }
            "service_tier" => {
                unless(matches!(raw, "\"auto\"" | "\"default\""), key_of(key), "must be `auto` or `default` at this provider")
            }
            "n" => unless(raw == "1", "n", "must be 1 at this provider"),
            "logprobs" | "store" => unless(raw == "false", key_of(key), NOTHING_LIKE_IT),
            "top_logprobs" => unless(is_zero(raw), "top_logprobs", NOTHING_LIKE_IT),
            "logit_bias" => unless(raw == "{}", "logit_bias", NOTHING_LIKE_IT),
            "modalities" => unless(raw == r#"["text"]"# || raw == "[]", "modalities", "must be `text` at this provider"),
            "audio" | "prediction" | "web_search_options" => unless(false, key_of(key), NOTHING_LIKE_IT),
            "functions" => unless(raw == "[]", "functions", "is of an older form of the API: send `tools`"),
            "function_call" => {
                let is_neutral = matches!(raw, "\"none\"" | "\"auto\"");
                unless(is_neutral, "function_call", "is of an older form of the API: send `tool_choice`")
            }
            _ if OPTIONS.contains(&key) => self.option(key, raw),
            _ => self.other(key, raw),
        }
    }

    fn other(&mut self, name: &'a str, raw: impl Into<Cow<'a, str>>) -> Result<(), Unsupported> {
        // Some have a name in the canon and another of Ollama's own; whichever comes last is meant.
        self.others.retain(|(known, _)| *known != name);
        self.others.push((name, raw.into()));
        Ok(())
    }

    /// The limit has two names, and the larger one counts, as it does where its cost is held.
    fn limit(&mut self, raw: &'a str) -> Result<(), Unsupported> {
        let number = |raw: &str| raw.parse::<f64>().unwrap_or_default();
        let is_less = |(name, known): &(Cow<'a, str>, Cow<'a, str>)| name == "num_predict" && number(known) > number(raw);
        if self.options.iter().any(is_less) { Ok(()) } else { self.option("num_predict", raw) }
    }

    fn option(&mut self, name: &'a str, raw: impl Into<Cow<'a, str>>) -> Result<(), Unsupported> {
        self.options.retain(|(known, _)| known != name);
        self.options.push((name.into(), raw.into()));
        Ok(())
    }

    fn think(&mut self, effort: &RawValue) -> Result<(), Unsupported> {
        let think = match &*text(Some(effort)) {
            "none" => "false",
            "minimal" | "low" => "\"low\"",
            "medium" => "\"medium\"",
            "high" | "xhigh" | "max" => "\"high\"",
            _ => return unless(false, "reasoning_effort", "is no effort that is known"),
        };
        self.other("think", think)
    }

    fn format(&mut self, raw: &'a RawValue) -> Result<(), Unsupported> {
        let Ok(format) = serde_json::from_str::<Format<'_>>(raw.get()) else {
            return unless(false, "response_format", "must be an object with a `type`");
        };
        let kind = as_str(format.kind).unwrap_or_default();
        let schema = format.json_schema.and_then(|wrapped| wrapped.schema);
        let format = match (&*kind, schema) {
            ("text", _) => return Ok(()),
            ("json_object", _) => "\"json\"",
            ("json_schema", Some(schema)) => schema.get(),
            _ => return unless(false, "response_format", "must be of type `text`, `json_object` or `json_schema`"),
        };
        // The form is forced upon every word of the answer, so that no call could be made.
        unless(
            !self.has_tools,
            "response_format",
            "asks for JSON, which this provider's models cannot write while tools are offered",
        )?;
        self.other("format", format)
    }

    /// Writes them behind other members. A window that the operator names is what Ollama is asked for: of itself it has a small one, and
    /// forgets without a word what does not fit.
    fn write(mut self, window: Option<u32>, out: &mut String) {
        for (key, value) in self.native.take().map(|Members(members)| members).unwrap_or_default() {
            let key = as_str(key).unwrap_or_default();
            if !self.options.iter().any(|(known, _)| *known == key) {
                self.options.push((key, value.get().into()));
            }
        }
        if let Some(window) = window
            && !self.options.iter().any(|(known, _)| known == "num_ctx")
        {
            self.options.push(("num_ctx".into(), window.to_string().into()));
        }
        for (at, (key, value)) in self.options.iter().enumerate() {
            out.push_str(if at == 0 { r#","options":{"# } else { "," });
            member(out, key, value);
        }
        if !self.options.is_empty() {
            out.push('}');
        }
        for (key, value) in &self.others {
            out.push(',');
            member(out, key, value);
        }
    }
}

const NOTHING_LIKE_IT: &str = "has no equivalent at this provider";

/// The same name, of a life that does not end with the request.
fn key_of(key: &str) -> &'static str {
    const KEYS: [&str; 6] = ["service_tier", "logprobs", "store", "audio", "prediction", "web_search_options"];
    KEYS.iter().copied().find(|known| *known == key).unwrap_or("model")
}

fn member(out: &mut String, key: &str, value: &str) {
    push_quoted(out, key);
    out.push(':');
    out.push_str(value);
}

fn is_zero(raw: &str) -> bool {
    raw.parse::<f64>().is_ok_and(|number| number == 0.0)
}

fn unless(is_neutral: bool, field: &'static str, why: &str) -> Result<(), Unsupported> {
    if is_neutral { Ok(()) } else { Err(Unsupported { field, why: why.to_owned() }) }
}

#[derive(Deserialize)]
struct Format<'a> {
    #[serde(borrow, rename = "type")]
    kind: &'a RawValue,
    #[serde(borrow, default)]
    json_schema: Option<Wrapped<'a>>,
}

#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(borrow, default)]
    schema: Option<&'a RawValue>,
}
