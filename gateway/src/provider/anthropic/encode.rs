//! A canonical request as Anthropic's: each member is translated, left out because it asks for nothing, refused by name, or none of ours and
//! goes on as it is.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolgate_tools::net::Segments;

use super::super::{Encoded, Unsupported, signer};
use super::model::Generation;
use super::parts::unsupported;
use super::path;
use super::thinking::{Circumstances, Thinking};
use super::tools::{self, Choice};
use super::turns::{Stay, Transcript, Whose};
use crate::targets::Target;
use crate::wire::object::{self, Edit, Members, as_str, push_quoted};

/// How long an answer may be where nobody says so, in tokens: the API asks for a number.
const USUAL_OUTPUT: u64 = 4096;

/// The limit of an answer where nobody set one.
pub(in super::super) fn usual_output(target: &Target) -> u64 {
    target.max_output.map_or(USUAL_OUTPUT, u64::from)
}

/// The request as this target is sent it.
pub(in super::super) fn encode(target: &Target, body: &Segments, stream: bool) -> Result<Encoded, Unsupported> {
    let whole = body.pieces().concat();
    let members = Members::parse(&whole).map_err(|_| unsupported("messages", "are in a body that cannot be read"))?;
    let asked = Asked::read(&members)?;
    let model = Generation::of(&target.upstream_model);
    let signer = signer(&target.provider);
    let whose = match () {
        () if asked.forbids_thinking() => Whose::Nobodys,
        () if model.binds_thoughts() => Whose::OfThisTurn(&signer),
        () => Whose::All(&signer),
    };
    let stay = Stay { whose, hidden: model.samples_by_itself() || asked.hides_thoughts() };
    let transcript = asked.messages.map(|messages| Transcript::read(messages, stay)).transpose()?.unwrap_or_default();
    let mut out = Body::with_capacity(whole.len() + whole.len() / 4 + 256);
    asked.model.into_iter().for_each(|model| out.member("model", model.get()));
    let most = asked.output_limit();
    let usual = usual_output(target).to_string();
    out.member("max_tokens", most.map_or(usual.as_str(), RawValue::get));
    if !transcript.system.is_empty() {
        out.list("system", &transcript.system);
    }
    out.list("messages", &transcript.render());
    let choice = asked.write_tools(&transcript, model, &mut out)?;
    let most = most.map_or(usual.as_str(), RawValue::get).parse().unwrap_or(USUAL_OUTPUT);
    let (is_forced, began_without) = (choice.is_forced(), transcript.began_without_thoughts());
    let thinking = asked.thinking(Circumstances { model, most, is_forced, began_without })?;
    let note = asked.wants_thoughts().then_some(WITHOUT_THINKING).filter(|_| !thinking.is_asked);
    asked.write_output(&thinking, model, &mut out)?;
    asked.write_sampling(&thinking, model, &mut out)?;
    asked.write_rest(stream, &mut out)?;
    Ok(Encoded { path: path(&target.provider.base_url.path), body: Segments::from(out.finish()), note })
}

/// What a trace says where the API would refuse the thinking that is asked for.
const WITHOUT_THINKING: &str =
    "asked without thinking: a tool is forced, the answer has no room for it, or the calls to go on with began without a thought";

/// What no model here has.
const NOWHERE: [&str; 5] = ["presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias"];

/// What the models that sample by themselves refuse.
const SAMPLING: [&str; 3] = ["temperature", "top_p", "top_k"];

/// The operator's `params` as this model takes them: set for models that have them, they must not break one that has not.
pub(in super::super) fn params<'p>(model: &str, params: &'p Map<String, Value>) -> Cow<'p, Map<String, Value>> {
    let model = Generation::of(model);
    let is_refused = |name: &str| NOWHERE.contains(&name) || (SAMPLING.contains(&name) && model.samples_by_itself());
    if !params.keys().any(|name| is_refused(name)) {
        return Cow::Borrowed(params);
    }
    Cow::Owned(params.iter().filter(|(name, _)| !is_refused(name)).map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The members of a request that are not simply left out or passed on.
#[derive(Default)]
struct Asked<'a> {
    model: Option<&'a RawValue>,
    messages: Option<&'a RawValue>,
    max_tokens: Option<&'a RawValue>,
    max_completion_tokens: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    tool_choice: Option<&'a RawValue>,
    parallel_tool_calls: Option<&'a RawValue>,
    response_format: Option<&'a RawValue>,
    reasoning_effort: Option<&'a RawValue>,
    thinking: Option<&'a RawValue>,
    output_config: Option<&'a RawValue>,
    temperature: Option<&'a RawValue>,
    top_p: Option<&'a RawValue>,
    top_k: Option<&'a RawValue>,
    stop: Option<&'a RawValue>,
    user: Option<&'a RawValue>,
    safety_identifier: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    service_tier: Option<&'a RawValue>,
    /// What goes on as it is.
    others: Vec<(&'a RawValue, &'a RawValue)>,
}

impl<'a> Asked<'a> {
    fn read(members: &Members<'a>) -> Result<Self, Unsupported> {
        let mut asked = Self::default();
        for &(key, value) in members.0.iter().filter(|(_, value)| value.get() != "null") {
            let name = as_str(key).unwrap_or_default();
            match asked.place(&name) {
                Some(place) => *place = Some(value),
                None => match Fate::of(&name) {
                    Fate::LeftOut => {}
                    Fate::Neutral(_, neutral) if neutral.contains(&value.get()) => {}
                    Fate::Neutral(field, _) => {
                        return Err(unsupported(field, "asks for what this model's provider does not have"));
                    }
                    Fate::Passes => asked.others.push((key, value)),
                },
            }
        }
        Ok(asked)
    }

    fn place(&mut self, name: &str) -> Option<&mut Option<&'a RawValue>> {
        Some(match name {
            "model" => &mut self.model,
            "messages" => &mut self.messages,
            "max_tokens" => &mut self.max_tokens,
            "max_completion_tokens" => &mut self.max_completion_tokens,
            "tools" => &mut self.tools,
            "tool_choice" => &mut self.tool_choice,
            "parallel_tool_calls" => &mut self.parallel_tool_calls,
            "response_format" => &mut self.response_format,
            "reasoning_effort" => &mut self.reasoning_effort,
            "thinking" => &mut self.thinking,
            "output_config" => &mut self.output_config,
            "temperature" => &mut self.temperature,
            "top_p" => &mut self.top_p,
            "top_k" => &mut self.top_k,
            "stop" => &mut self.stop,
            "user" => &mut self.user,
            "safety_identifier" => &mut self.safety_identifier,
            "metadata" => &mut self.metadata,
            "service_tier" => &mut self.service_tier,
            _ => return None,
        })
    }

    /// Under which of its two names it is obeyed is nobody's business: the larger one counts, here as where its cost is held.
    fn output_limit(&self) -> Option<&'a RawValue> {
        let number = |raw: &RawValue| raw.get().parse::<f64>().unwrap_or(0.0);
        let named = [self.max_completion_tokens, self.max_tokens].into_iter().flatten();
        named.reduce(|first, second| if number(second) > number(first) { second } else { first })
    }

    /// Writes the tools and what is to be done about them. A history of calls is refused without tools, so it brings its own, and forbids them.
    fn write_tools(&self, transcript: &Transcript, model: Generation, out: &mut Body) -> Result<Choice, Unsupported> {
        let choice = Choice::read(self.tool_choice)?;
        let list = self.tools.map(|tools| tools::list(tools, choice.only(), model)).transpose()?.unwrap_or_default();
        if list.is_empty() && choice.only().is_some() {
            return Err(unsupported("tool_choice", "allows for no tool that there is"));
        }
        if list.is_empty() {
            if !transcript.called.is_empty() {
                out.list("tools", &tools::of_history(&transcript.called));
                out.member("tool_choice", r#"{"type":"none"}"#);
            }
            return Ok(Choice::None);
        }
        if choice.is_forced() && !model.can_be_forced() {
            return Err(unsupported("tool_choice", "forces a call, which this model does not take: ask for it in words"));
        }
        out.list("tools", &list);
        let one_at_a_time = self.parallel_tool_calls.is_some_and(|parallel| parallel.get() == "false");
        choice.render(one_at_a_time).into_iter().for_each(|choice| out.member("tool_choice", &choice));
        Ok(choice)
    }

    /// Whether the model shall not think: its thoughts of before are refused then.
    fn forbids_thinking(&self) -> bool {
        match self.thinking {
            Some(own) => kind_of(own).as_deref() == Some("disabled"),
            None => self.reasoning_effort.is_some_and(|effort| effort.get() == "\"none\""),
        }
    }

    /// Whether it asks for thoughts that nobody may read.
    fn hides_thoughts(&self) -> bool {
        let own = self.thinking.and_then(|own| Members::parse(own.get().as_bytes()).ok());
        own.and_then(|own| own.get("display")).is_some_and(|display| display.get() == "\"omitted\"")
    }

    /// Whether it asks for thoughts, in either way.
    fn wants_thoughts(&self) -> bool {
        match self.thinking {
            Some(own) => matches!(kind_of(own).as_deref(), Some("enabled" | "adaptive")),
            None => self.reasoning_effort.is_some() && !self.forbids_thinking(),
        }
    }

    /// The provider's own member is obeyed before what is made of an effort.
    fn thinking(&self, around: Circumstances) -> Result<Thinking, Unsupported> {
        if let Some(own) = self.thinking {
            let (is_asked, is_impossible) = match kind_of(own).as_deref() {
                Some("enabled") => (true, around.is_forced || around.began_without),
                Some("adaptive") => (true, around.is_forced),
                _ => (false, false),
            };
            let mode = (!is_impossible).then(|| own.get().to_owned());
            return Ok(Thinking { is_asked: is_asked && !is_impossible, mode, ..Thinking::default() });
        }
        let Some(effort) = self.reasoning_effort else { return Ok(Thinking::default()) };
        Thinking::with_effort(&as_str(effort).unwrap_or_default(), around)
    }

    fn write_output(&self, thinking: &Thinking, model: Generation, out: &mut Body) -> Result<(), Unsupported> {
        thinking.mode.iter().for_each(|mode| out.member("thinking", mode));
        let own = self.output_config.map_or("{}", RawValue::get);
        let has = |name| Members::parse(own.as_bytes()).is_ok_and(|members| members.get(name).is_some());
        let format = self.format(model)?.filter(|_| !has("format"));
        let effort = thinking.effort.filter(|_| !has("effort")).map(object::quoted);
        let set =
            [format.as_deref().map(|text| Edit::Set("format", text)), effort.as_deref().map(|text| Edit::Set("effort", text))];
        let edits: Vec<_> = set.into_iter().flatten().collect();
        if !edits.is_empty() || self.output_config.is_some() {
            let config = object::edited(own.as_bytes(), &edits);
            out.member("output_config", &config.map_err(|_| unsupported("output_config", "must be an object"))?);
        }
        Ok(())
    }

    /// The schema that an answer is held to.
    fn format(&self, model: Generation) -> Result<Option<String>, Unsupported> {
        let Some(raw) = self.response_format else { return Ok(None) };
        let is = |why| unsupported("response_format", why);
        let format = Members::parse(raw.get().as_bytes()).map_err(|_| is("must be an object"))?;
        match format.get("type").and_then(as_str).as_deref() {
            Some("text") => return Ok(None),
            Some("json_schema") => {}
            Some("json_object") => {
                return Err(is("asks for JSON of any form, which this model's provider does not have: send a `json_schema`"));
            }
            _ => return Err(is("must be of type `text` or `json_schema`")),
        }
        if !model.keeps_to_schemas() {
            return Err(is("holds an answer to a schema, which this model does not take"));
        }
        let named = format.get("json_schema").and_then(|named| Members::parse(named.get().as_bytes()).ok());
        let schema = named.and_then(|named| named.get("schema")).filter(|schema| schema.get().starts_with('{'));
        let schema = schema.ok_or_else(|| is("must hold its schema in `json_schema.schema`"))?.get();
        Ok(Some(format!(r#"{{"type":"json_schema","schema":{schema}}}"#)))
    }

    fn write_sampling(&self, thinking: &Thinking, model: Generation, out: &mut Body) -> Result<(), Unsupported> {
        let number = |raw: &RawValue| raw.get().parse::<f64>().ok();
        let is_one = |raw: &&RawValue| number(raw) == Some(1.0);
        if self.temperature.and_then(number).is_some_and(|temperature| temperature > 1.0) {
            return Err(unsupported("temperature", "must be from 0 to 1 at this model's provider"));
        }
        // One is what happens anyhow, and some models refuse to be told.
        let (temperature, top_p) = (self.temperature.filter(|raw| !is_one(raw)), self.top_p.filter(|raw| !is_one(raw)));
        let named = [("temperature", temperature), ("top_p", top_p), ("top_k", self.top_k)];
        let set = named.into_iter().filter_map(|(name, raw)| Some((name, raw?)));
        if let Some((name, _)) = set.clone().next().filter(|_| model.samples_by_itself()) {
            return Err(unsupported(name, "cannot be set for this model, which samples by itself"));
        }
        // Thinking allows for a `top_p` close to one, and nothing else.
        let is_close = |raw: &RawValue| number(raw).is_some_and(|value| value >= 0.95);
        let refused = |(name, raw): &(&str, &RawValue)| *name != "top_p" || !is_close(raw);
        if let Some((name, _)) = set.clone().find(refused).filter(|_| thinking.is_asked) {
            return Err(unsupported(name, "cannot be set while the model is to think"));
        }
        if temperature.is_some() && top_p.is_some() && model.samples_by_one() {
            return Err(unsupported("top_p", "cannot be set beside `temperature` for this model"));
        }
        set.for_each(|(name, raw)| out.member(name, raw.get()));
        Ok(())
    }

    fn write_rest(&self, stream: bool, out: &mut Body) -> Result<(), Unsupported> {
        if let Some(stop) = self.stop {
            self.write_stop(stop, out)?;
        }
        if let Some(user) = self.user_id() {
            out.member("metadata", &format!(r#"{{"user_id":{}}}"#, user.get()));
        }
        if let Some(tier) = self.service_tier {
            match as_str(tier).as_deref() {
                Some("auto") => {}
                Some("default" | "standard_only") => out.member("service_tier", "\"standard_only\""),
                _ => return Err(unsupported("service_tier", "must be `auto` or `default` at this model's provider")),
            }
        }
        if stream {
            out.member("stream", "true");
        }
        self.others.iter().for_each(|(key, value)| out.raw(key.get(), value.get()));
        Ok(())
    }

    fn write_stop(&self, stop: &RawValue, out: &mut Body) -> Result<(), Unsupported> {
        let words: Vec<Cow<'_, str>> = match as_str(stop) {
            Some(word) => vec![word],
            None => serde_json::from_str(stop.get()).map_err(|_| unsupported("stop", "must be a string or a list of strings"))?,
        };
        if words.iter().any(|word| !word.is_empty() && word.trim().is_empty()) {
            return Err(unsupported("stop", "holds a text of white space only, which this model's provider does not take"));
        }
        let mut list = String::new();
        for word in words.iter().filter(|word| !word.is_empty()) {
            if !list.is_empty() {
                list.push(',');
            }
            push_quoted(&mut list, word);
        }
        let is_named = self.others.iter().any(|(key, _)| object::key_is(key, "stop_sequences"));
        if !list.is_empty() && !is_named {
            out.list("stop_sequences", &list);
        }
        Ok(())
    }

    fn user_id(&self) -> Option<&'a RawValue> {
        let labels = self.metadata.and_then(|metadata| Members::parse(metadata.get().as_bytes()).ok());
        let own = labels.and_then(|labels| labels.get("user_id"));
        own.or(self.user).or(self.safety_identifier).filter(|user| user.get().len() > 2)
    }
}

/// The `type` of an object.
fn kind_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    Members::parse(raw.get().as_bytes()).ok()?.get("type").and_then(as_str)
}

/// What becomes of a member that is not read.
enum Fate {
    /// It is a hint, or about the transport.
    LeftOut,
    /// It asks for what is not there, unless it has one of these values.
    Neutral(&'static str, &'static [&'static str]),
    /// It goes on as it is.
    Passes,
}

impl Fate {
    fn of(name: &str) -> Self {
        const ZERO: &[&str] = &["0", "0.0", "-0"];
        const FALSE: &[&str] = &["false"];
        match name {
            "stream" | "stream_options" | "seed" | "verbosity" | "prompt_cache_key" | "prompt_cache_retention" => Self::LeftOut,
            "n" => Self::Neutral("n", &["1"]),
            "functions" => Self::Neutral("functions", &["[]"]),
            "function_call" => Self::Neutral("function_call", &[]),
            "logprobs" => Self::Neutral("logprobs", FALSE),
            "top_logprobs" => Self::Neutral("top_logprobs", ZERO),
            "logit_bias" => Self::Neutral("logit_bias", &["{}"]),
            "presence_penalty" => Self::Neutral("presence_penalty", ZERO),
            "frequency_penalty" => Self::Neutral("frequency_penalty", ZERO),
            "audio" => Self::Neutral("audio", &[]),
            "modalities" => Self::Neutral("modalities", &[r#"["text"]"#, "[]"]),
            "prediction" => Self::Neutral("prediction", &[]),
            "web_search_options" => Self::Neutral("web_search_options", &[]),
            "store" => Self::Neutral("store", FALSE),
            // It is written from the messages. A second one would take the place of the operator's system text.
            "system" => Self::Neutral("system", &["[]", "\"\""]),
            _ => Self::Passes,
        }
    }
}

/// The body while it is written.
struct Body(String);

impl Body {
    fn with_capacity(bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push('{');
        Self(text)
    }

    fn member(&mut self, name: &str, value: &str) {
        self.key(name);
        self.0.push_str(value);
    }

    fn list(&mut self, name: &str, items: &str) {
        self.key(name);
        self.0.extend(["[", items, "]"]);
    }

    fn raw(&mut self, key: &str, value: &str) {
        self.comma();
        self.0.extend([key, ":", value]);
    }

    fn key(&mut self, name: &str) {
        self.comma();
        self.0.extend(["\"", name, "\":"]);
    }

    fn comma(&mut self) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
    }

    fn finish(mut self) -> bytes::Bytes {
        self.0.push('}');
        self.0.into()
    }
}
