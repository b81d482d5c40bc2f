//! A canonical request, as the dialects read it that have another form of their own: found in one pass, and raw wherever it is only copied.
//! What a provider makes of it is its dialect's business.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::SmallVec;
use toolgate_tools::net::Segments;

use super::Unsupported;
use super::thoughts::{Thought, signed_by};
use crate::wire::object::{Members, as_str};

/// What a request says.
#[derive(Default)]
pub(super) struct Canon<'a> {
    pub(super) messages: Vec<Message<'a>>,
    pub(super) tools: Vec<Tool<'a>>,
    pub(super) choice: Choice<'a>,
    /// All other members that say something, in their order.
    pub(super) others: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// A body in one piece.
pub(super) fn whole(body: &Segments) -> Cow<'_, [u8]> {
    match body.pieces() {
        [only] => Cow::Borrowed(only),
        pieces => Cow::Owned(pieces.concat()),
    }
}

impl<'a> Canon<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// A member that has another form than the API gives it.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Unsupported> {
        serde_json::from_slice(body).map_err(|error| blamed(body, &error))
    }
}

/// Which member it is that cannot be read. Asked only when one cannot.
fn blamed(body: &[u8], error: &serde_json::Error) -> Unsupported {
    let members = Members::parse(body).unwrap_or(Members(Vec::new()));
    let fault = |name: &str, fails: fn(&str) -> Option<serde_json::Error>| members.get(name).and_then(|raw| fails(raw.get()));
    let refused = |field, error: &serde_json::Error| Unsupported { field, why: format!("cannot be read: {error}") };
    if let Some(error) = fault("tools", |raw| serde_json::from_str::<Option<Vec<Tool<'_>>>>(raw).err()) {
        return refused("tools", &error);
    }
    if let Some(error) = fault("tool_choice", |raw| serde_json::from_str::<Choice<'_>>(raw).err()) {
        return refused("tool_choice", &error);
    }
    refused("messages", error)
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Canon<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Canon<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a chat completion request")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut canon = Canon::default();
                while let Some(Key(key)) = map.next_key()? {
                    match &*key {
                        "messages" => canon.messages = map.next_value()?,
                        "tools" => canon.tools = map.next_value::<Option<_>>()?.unwrap_or_default(),
                        "tool_choice" => canon.choice = map.next_value()?,
                        _ => {
                            let value: &RawValue = map.next_value()?;
                            if value.get() != "null" {
                                canon.others.push((key, value));
                            }
                        }
                    }
                }
                Ok(canon)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
    Tool,
}

/// A message. Its strings are raw.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    pub(super) role: Role,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Call<'a>>>,
    #[serde(borrow, default)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_details: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    /// What it says, in its parts; a part that says nothing is left out.
    ///
    /// # Errors
    /// A part of a kind that nobody knows.
    pub(super) fn parts(&self) -> Result<Parts<'a>, Unsupported> {
        let mut parts = parts(self.content)?;
        parts.extend(self.refusal.filter(|text| says_something(text)).map(Part::Text));
        Ok(parts)
    }

    /// The calls that it asks for.
    pub(super) fn calls(&self) -> &[Call<'a>] {
        self.tool_calls.as_deref().unwrap_or_default()
    }

    /// The call that it answers.
    pub(super) fn answers(&self) -> Cow<'a, str> {
        text(self.tool_call_id)
    }

    /// What of its thoughts this provider signed.
    pub(super) fn thoughts(&self, signer: &str) -> Vec<Thought<'a>> {
        signed_by(signer, self.reasoning_details)
    }

    /// Whether it carries any thoughts at all.
    pub(super) fn has_thoughts(&self) -> bool {
        self.reasoning_details.is_some()
    }
}

/// A call of a turn.
#[derive(Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<Called<'a>>,
}

#[derive(Deserialize)]
struct Called<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl<'a> Call<'a> {
    pub(super) fn id(&self) -> Cow<'a, str> {
        text(self.id)
    }

    pub(super) fn name(&self) -> Cow<'a, str> {
        text(self.function.as_ref().and_then(|function| function.name))
    }

    /// The arguments as an object. What is none (nothing, blanks, broken JSON, a list) is an empty one: a provider refuses every later
    /// request over a history that it cannot parse.
    pub(super) fn arguments(&self) -> Cow<'a, str> {
        let raw = self.function.as_ref().and_then(|function| function.arguments);
        let written = raw.and_then(|raw| if raw.get().starts_with('{') { Some(Cow::Borrowed(raw.get())) } else { as_str(raw) });
        written.filter(|text| is_object(text)).unwrap_or(Cow::Borrowed("{}"))
    }
}

/// Whether a text is a JSON object.
pub(super) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && Members::parse(text.as_bytes()).is_ok()
}

/// A tool that is offered.
#[derive(Deserialize)]
pub(super) struct Tool<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) function: Option<Function<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) description: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) parameters: Option<&'a RawValue>,
}

impl<'a> Tool<'a> {
    /// The function that it is.
    ///
    /// # Errors
    /// It is something else.
    pub(super) fn function(&self) -> Result<&Function<'a>, Unsupported> {
        self.function.as_ref().ok_or_else(|| {
            let kind = text(self.kind);
            Unsupported { field: "tools", why: format!("holds a tool of type `{kind}`; this provider is offered functions only") }
        })
    }
}

/// Which tools the model may or must use.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Choice<'a> {
    /// As it likes, also where nothing is said.
    #[default]
    Auto,
    /// None of them.
    Never,
    /// One at least.
    Required,
    /// This one.
    Named(Cow<'a, str>),
    /// Of these, and whether it must.
    Among(Vec<Cow<'a, str>>, bool),
}

impl<'de: 'a, 'a> Deserialize<'de> for Choice<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        choice(raw).ok_or_else(|| serde::de::Error::custom("it is none of `auto`, `none`, `required` and a named function"))
    }
}

fn choice(raw: &RawValue) -> Option<Choice<'_>> {
    match raw.get() {
        "null" | "\"auto\"" => return Some(Choice::Auto),
        "\"none\"" => return Some(Choice::Never),
        "\"required\"" | "\"any\"" => return Some(Choice::Required),
        _ => {}
    }
    let named: NamedChoice<'_> = serde_json::from_str(raw.get()).ok()?;
    if let Some(name) = named.function.and_then(|function| as_str(function.name)) {
        return Some(Choice::Named(name));
    }
    let among = named.allowed_tools?;
    let names = among.tools.into_iter().filter_map(|tool| as_str(tool.function?.name)).collect();
    Some(Choice::Among(names, text(among.mode) == "required"))
}

#[derive(Deserialize)]
struct NamedChoice<'a> {
    #[serde(borrow, default)]
    function: Option<NamedFunction<'a>>,
    #[serde(borrow, default)]
    allowed_tools: Option<AllowedTools<'a>>,
}

#[derive(Deserialize)]
struct NamedFunction<'a> {
    #[serde(borrow)]
    name: &'a RawValue,
}

#[derive(Deserialize)]
struct AllowedTools<'a> {
    #[serde(borrow, default)]
    mode: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Vec<NamedChoice<'a>>,
}

/// A part of a message. Texts are raw strings, and not empty.
#[derive(Debug)]
pub(super) enum Part<'a> {
    Text(&'a RawValue),
    /// By its URL, `data:` included.
    Image(Cow<'a, str>),
    /// Base64, and the name of its format.
    Audio(Cow<'a, str>, Cow<'a, str>),
    /// By its `data:` URL.
    File(Cow<'a, str>),
}

/// The parts of a message; nearly all have one.
pub(super) type Parts<'a> = SmallVec<[Part<'a>; 1]>;

#[derive(Deserialize)]
struct RawPart<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    image_url: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input_audio: Option<RawMedia<'a>>,
    #[serde(borrow, default)]
    file: Option<RawMedia<'a>>,
}

#[derive(Deserialize)]
struct RawMedia<'a> {
    #[serde(borrow, default)]
    url: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    format: Option<&'a RawValue>,
    #[serde(borrow, default)]
    file_data: Option<&'a RawValue>,
}

fn parts(content: Option<&RawValue>) -> Result<Parts<'_>, Unsupported> {
    let Some(content) = content else { return Ok(Parts::new()) };
    match content.get().as_bytes().first() {
        Some(b'"') => Ok(says_something(content).then_some(Part::Text(content)).into_iter().collect()),
        Some(b'[') => {
            let raw: Vec<RawPart<'_>> = serde_json::from_str(content.get())
                .map_err(|error| unreadable(&format!("hold content that cannot be read: {error}")))?;
            raw.iter().map(part).filter_map(Result::transpose).collect()
        }
        _ => Err(unreadable("hold content that is neither a string nor a list of parts")),
    }
}

fn part<'a>(raw: &RawPart<'a>) -> Result<Option<Part<'a>>, Unsupported> {
    match &*text(raw.kind) {
        "text" | "refusal" | "" => Ok(raw.text.or(raw.refusal).filter(|text| says_something(text)).map(Part::Text)),
        "image_url" => image(raw.image_url).map(Some),
        "input_audio" => {
            let audio = raw.input_audio.as_ref();
            let part = Part::Audio(text(audio.and_then(|audio| audio.data)), text(audio.and_then(|audio| audio.format)));
            Ok(Some(part))
        }
        "file" => match text(raw.file.as_ref().and_then(|file| file.file_data)) {
            url if url.is_empty() => {
                Err(unreadable("hold a file without its data, which this provider cannot fetch: send `file_data`"))
            }
            url => Ok(Some(Part::File(url))),
        },
        other => Err(unreadable(&format!("hold a part of type `{other}`, which this provider cannot be sent"))),
    }
}

fn image(raw: Option<&RawValue>) -> Result<Part<'_>, Unsupported> {
    let named = raw.and_then(|raw| {
        if raw.get().starts_with('"') { as_str(raw) } else { as_str(serde_json::from_str::<RawMedia<'_>>(raw.get()).ok()?.url?) }
    });
    named.map(Part::Image).ok_or_else(|| unreadable("hold an image without its `url`"))
}

/// A fault of the transcript.
pub(super) fn unreadable(why: &str) -> Unsupported {
    Unsupported { field: "messages", why: why.to_owned() }
}

/// The text of a raw string; empty for whatever else.
pub(super) fn text(raw: Option<&RawValue>) -> Cow<'_, str> {
    raw.and_then(as_str).unwrap_or_default()
}

/// Whether a raw value is a string that is not empty.
pub(super) fn says_something(raw: &RawValue) -> bool {
    raw.get().starts_with('"') && raw.get().len() > 2
}

/// The type and the base64 text of a `data:` URL.
pub(super) fn data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let kind = head.strip_suffix(";base64")?;
    Some((kind.split(';').next().unwrap_or_default(), data))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(body: &str) -> &'static str {
        Canon::read(body.as_bytes()).err().unwrap().field
    }

    #[test]
    fn a_member_of_another_form_is_named() {
        let table = [
            (r#"{"messages":[{"role":"user","content":"a"}],"tools":[1]}"#, "tools"),
            (r#"{"messages":[{"role":"user","content":"a"}],"tools":[{"function":{"name":7}}]}"#, "tools"),
            (r#"{"messages":[{"role":"user","content":"a"}],"tool_choice":"perhaps"}"#, "tool_choice"),
            (r#"{"messages":[{"role":"wizard","content":"a"}]}"#, "messages"),
            (r#"{"messages":[1]}"#, "messages"),
        ];
        for (body, field) in table {
            assert_eq!(fault(body), field, "{body}");
        }
    }

    #[test]
    fn case_10_arguments_are_always_an_object() {
        let table = [
            (r#""arguments":"""#, "{}"),
            (r#""arguments":"  ""#, "{}"),
            (r#""arguments":null"#, "{}"),
            (r#""x":1"#, "{}"),
            (r#""arguments":"{\"q\":\"a"#, "{}"),
            (r#""arguments":"[1]""#, "{}"),
            (r#""arguments":"{\"q\":1.10}""#, r#"{"q":1.10}"#),
            (r#""arguments":{"q":"a"}"#, r#"{"q":"a"}"#),
        ];
        for (member, expected) in table {
            let member = if member.ends_with("\"a") { format!("{member}\"") } else { member.to_owned() };
            let call = format!(r#"{{"id":"c","function":{{"name":"t",{member}}}}}"#);
            assert_eq!(serde_json::from_str::<Call<'_>>(&call).unwrap().arguments(), expected, "{member}");
        }
    }

    #[test]
    fn choices_are_read_in_all_their_forms() {
        let table = [
            ("null", Choice::Auto),
            (r#""auto""#, Choice::Auto),
            (r#""none""#, Choice::Never),
            (r#""required""#, Choice::Required),
            (r#"{"type":"function","function":{"name":"a"}}"#, Choice::Named("a".into())),
            (
                r#"{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"a"}}]}}"#,
                Choice::Among(vec!["a".into()], true),
            ),
        ];
        for (text, expected) in table {
            assert_eq!(serde_json::from_str::<Choice<'_>>(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn parts_that_say_nothing_are_left_out_and_unknown_ones_are_refused() {
        let seen = |content: &str| {
            let raw: Box<RawValue> = serde_json::from_str(content).unwrap();
            parts(Some(&raw)).map(|parts| format!("{parts:?}").matches('(').count()).map_err(|fault| fault.field)
        };
        for empty in [r#""""#, "null", "[]", r#"[{"type":"text","text":""}]"#] {
            if empty != "null" {
                assert_eq!(seen(empty), Ok(0), "{empty}");
            }
        }
        assert_eq!(seen(r#"[{"type":"video"}]"#), Err("messages"));
        assert_eq!(seen("7"), Err("messages"));
        assert_eq!(data_url("data:image/png;base64,AAAA"), Some(("image/png", "AAAA")));
        assert_eq!(data_url("data:text/plain;charset=utf-8;base64,QQ=="), Some(("text/plain", "QQ==")));
        assert_eq!(data_url("data:text/plain,a"), None);
    }
}
