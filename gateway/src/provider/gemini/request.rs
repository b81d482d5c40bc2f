//! A request's members, each in the place that the API has for it; the numbers digit for digit.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_config::provider::Provider;

use super::super::canon::{Canon, text};
use super::super::{Unsupported, signer};
use super::model::{Model, Thinking};
use super::{contents, schema, tools};
use crate::wire::object::{Members, as_str, quoted};

const WRITTEN_HERE: &str = "is written from `messages` and `tool_choice`: send those";

/// The most stop sequences that the API takes.
const MOST_STOPS: usize = 5;

/// The whole body. `size` is about how long it will be, in bytes.
///
/// # Errors
/// What the API cannot do.
pub(super) fn write(canon: &Canon<'_>, model: &Model<'_>, provider: &Provider, size: usize) -> Result<String, Unsupported> {
    // Reckoned only where a thought is there to be judged.
    let signer = if canon.messages.iter().any(|message| message.has_thoughts()) { signer(provider) } else { String::new() };
    let mut out = String::with_capacity(size + 512);
    out.push_str(r#"{"contents":["#);
    let system = contents::write(&canon.messages, model, &signer, &mut out)?;
    out.push(']');
    let tools = tools::write(canon)?;
    let mut members = Config { model, has_tools: !tools.is_empty(), ..Config::new(model) };
    for (key, value) in &canon.others {
        members.take(key, value)?;
    }
    if !system.is_empty() {
        out.push_str(r#","systemInstruction":{"parts":["#);
        out.push_str(&system);
        out.push_str("]}");
    }
    out.push_str(&tools);
    members.write(&mut out);
    out.push('}');
    Ok(out)
}

/// The members that are neither messages nor tools.
struct Config<'a> {
    model: &'a Model<'a>,
    has_tools: bool,
    /// Those of `generationConfig`, under the API's names, raw.
    generation: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Those of `generationConfig` as the request wrote them itself, for what is not said otherwise.
    native: Option<Members<'a>>,
    /// Those that nobody here knows.
    unknown: Vec<(&'a str, &'a RawValue)>,
}

impl<'a> Config<'a> {
    fn new(model: &'a Model<'a>) -> Self {
        Self { model, has_tools: false, generation: Vec::with_capacity(8), native: None, unknown: Vec::new() }
    }

    /// One member, by its name: the table of what becomes of them.
    fn take(&mut self, key: &'a str, value: &'a RawValue) -> Result<(), Unsupported> {
        let raw = value.get();
        match key {
            // Said by the path, or by the gateway's own reading.
            "model" | "stream" | "stream_options" => Ok(()),
            // Hints, and labels for a store that there is not.
            "user" | "safety_identifier" | "metadata" | "verbosity" | "prompt_cache_key" | "prompt_cache_retention" => Ok(()),
            "temperature" => self.set("temperature", raw),
            "top_p" => self.set("topP", raw),
            "top_k" => self.set("topK", raw),
            "seed" => self.set("seed", raw),
            "max_tokens" | "max_completion_tokens" => self.limit(raw),
            "presence_penalty" => self.set_unless(is_zero(raw), "presencePenalty", raw),
            "frequency_penalty" => self.set_unless(is_zero(raw), "frequencyPenalty", raw),
            "n" => self.set_unless(raw == "1", "candidateCount", raw),
            "logprobs" => self.set_unless(raw == "false", "responseLogprobs", raw),
            "top_logprobs" => self.set_unless(is_zero(raw), "logprobs", raw),
            "stop" => self.stop(raw),
            "reasoning_effort" => self.think(value),
            "response_format" => self.format(value),
            "modalities" => self.modalities(raw),
            "parallel_tool_calls" if raw == "false" && self.has_tools => refused(
                "parallel_tool_calls",
                "must be true: this provider's models decide by themselves how many calls they make at once",
            ),
            "parallel_tool_calls" => Ok(()),
            "service_tier" if matches!(raw, "\"auto\"" | "\"default\"") => Ok(()),
            "service_tier" => refused("service_tier", "must be `auto` or `default` at this provider"),
            "logit_bias" => unless(raw == "{}", "logit_bias", "has no equivalent at this provider"),
            "store" => unless(raw == "false", "store", "must be false: this provider keeps no answers"),
            "audio" => refused("audio", "has no equivalent at this provider: its answers are text"),
            "prediction" => refused("prediction", "has no equivalent at this provider"),
            "web_search_options" => refused("web_search_options", "has no equivalent at this provider"),
            "functions" => unless(raw == "[]", "functions", "is of an older form of the API: send `tools`"),
            "function_call" => unless(
                matches!(raw, "\"none\"" | "\"auto\""),
                "function_call",
                "is of an older form of the API: send `tool_choice`",
            ),
            // Written here from what the canon says. A second one would take its place: the operator's system text, say.
            "contents" => refused("contents", WRITTEN_HERE),
            "systemInstruction" | "system_instruction" => refused("systemInstruction", WRITTEN_HERE),
            "toolConfig" | "tool_config" => refused("toolConfig", WRITTEN_HERE),
            "generationConfig" | "generation_config" => self.native(raw),
            _ => {
                self.unknown.push((key, value));
                Ok(())
            }
        }
    }

    /// The limit has two names, and the larger one counts, as it does where its cost is held.
    fn limit(&mut self, raw: &'a str) -> Result<(), Unsupported> {
        let number = |raw: &str| raw.parse::<f64>().unwrap_or_default();
        let is_less = |(name, known): &(Cow<'a, str>, Cow<'a, str>)| name == "maxOutputTokens" && number(known) > number(raw);
        if self.generation.iter().any(is_less) { Ok(()) } else { self.set("maxOutputTokens", raw) }
    }

    fn native(&mut self, raw: &'a str) -> Result<(), Unsupported> {
        let Ok(members) = Members::parse(raw.as_bytes()) else {
            return refused("generationConfig", "must be an object");
        };
        // What a call may cost is reckoned from the canon's member.
        if ["candidateCount", "candidate_count"].iter().any(|name| members.get(name).is_some()) {
            return refused("generationConfig", "must say nothing of `candidateCount`: send `n`");
        }
        self.native = Some(members);
        Ok(())
    }

    fn set(&mut self, name: &'static str, raw: impl Into<Cow<'a, str>>) -> Result<(), Unsupported> {
        self.generation.retain(|(known, _)| known != name);
        self.generation.push((name.into(), raw.into()));
        Ok(())
    }

    fn set_unless(&mut self, is_neutral: bool, name: &'static str, raw: &'a str) -> Result<(), Unsupported> {
        if is_neutral { Ok(()) } else { self.set(name, raw) }
    }

    fn stop(&mut self, raw: &'a str) -> Result<(), Unsupported> {
        let stops: Vec<&RawValue> = match raw.as_bytes().first() {
            Some(b'"') => return self.set("stopSequences", format!("[{raw}]")),
            _ => serde_json::from_str(raw).unwrap_or_default(),
        };
        match stops.len() {
            0 => Ok(()),
            1..=MOST_STOPS => self.set("stopSequences", raw),
            _ => refused("stop", "must hold five sequences at most at this provider"),
        }
    }

    fn modalities(&mut self, raw: &str) -> Result<(), Unsupported> {
        let wanted: Vec<String> = serde_json::from_str(raw).unwrap_or_default();
        if wanted.iter().all(|kind| kind == "text") {
            return Ok(());
        }
        if wanted.iter().any(|kind| kind != "text" && kind != "image") {
            return refused("modalities", "must be `text` or `image` at this provider");
        }
        let words: Vec<String> = wanted.iter().map(|kind| quoted(&kind.to_ascii_uppercase())).collect();
        self.set("responseModalities", format!("[{}]", words.join(",")))
    }

    fn think(&mut self, effort: &RawValue) -> Result<(), Unsupported> {
        let effort = text(Some(effort));
        let config = match (self.model.thinking(), &*effort) {
            (Thinking::No, "none") => return Ok(()),
            (Thinking::No, _) => return refused("reasoning_effort", "names an effort, and this model does not reason"),
            (Thinking::Budget(0, _), "none") => r#"{"thinkingBudget":0}"#.to_owned(),
            (Thinking::Budget(..) | Thinking::Level, "none") => {
                return refused("reasoning_effort", "is `none`, and this model's reasoning cannot be switched off");
            }
            (Thinking::Budget(_, most), effort) => {
                let budget = match effort {
                    "minimal" | "low" => 1024,
                    "medium" => 8192,
                    "high" => 24_576,
                    "xhigh" | "max" => most,
                    _ => return refused("reasoning_effort", "is no effort that is known"),
                };
                format!(r#"{{"thinkingBudget":{budget},"includeThoughts":true}}"#)
            }
            (Thinking::Level, effort) => match self.model.level(effort) {
                Some(level) => format!(r#"{{"thinkingLevel":"{level}","includeThoughts":true}}"#),
                None => return refused("reasoning_effort", "is no effort that is known"),
            },
        };
        self.set("thinkingConfig", config)
    }

    fn format(&mut self, raw: &RawValue) -> Result<(), Unsupported> {
        let Ok(format) = serde_json::from_str::<Format<'_>>(raw.get()) else {
            return refused("response_format", "must be an object with a `type`");
        };
        let kind = as_str(format.kind).unwrap_or_default();
        if kind == "text" {
            return Ok(());
        }
        if self.has_tools && !self.model.takes_format_beside_tools() {
            return refused("response_format", "asks for JSON, which this model does not write while tools are offered to it");
        }
        match (&*kind, format.json_schema) {
            ("json_object", _) => {}
            ("json_schema", Some(wrapped)) => {
                let schema = wrapped.schema.and_then(|schema| schema::reduced(schema.get()));
                let Some(schema) = schema else {
                    return refused("response_format", "holds a schema that cannot be said in the form that this provider takes");
                };
                self.set("responseSchema", schema)?;
            }
            _ => return refused("response_format", "must be of type `text`, `json_object` or `json_schema`"),
        }
        self.set("responseMimeType", "\"application/json\"")
    }

    /// Writes them behind other members.
    fn write(mut self, out: &mut String) {
        for (key, value) in self.native.take().map(|Members(members)| members).unwrap_or_default() {
            let key = as_str(key).unwrap_or_default();
            if !self.generation.iter().any(|(known, _)| *known == key) {
                self.generation.push((key, value.get().into()));
            }
        }
        for (at, (key, value)) in self.generation.iter().enumerate() {
            out.push_str(if at == 0 { r#","generationConfig":{"# } else { "," });
            member(out, key, value);
        }
        if !self.generation.is_empty() {
            out.push('}');
        }
        for (key, value) in self.unknown {
            out.push(',');
            member(out, key, value.get());
        }
    }
}

fn member(out: &mut String, key: &str, value: &str) {
    crate::wire::object::push_quoted(out, key);
    out.push(':');
    out.push_str(value);
}

fn is_zero(raw: &str) -> bool {
    raw.parse::<f64>().is_ok_and(|number| number == 0.0)
}

fn unless(is_neutral: bool, field: &'static str, why: &str) -> Result<(), Unsupported> {
    if is_neutral { Ok(()) } else { refused(field, why) }
}

fn refused(field: &'static str, why: &str) -> Result<(), Unsupported> {
    Err(Unsupported { field, why: why.to_owned() })
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
