//! One chunk of a streamed chat completion: what it says, and how it goes on to the caller with as few bytes changed as possible.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::{CallParts, Piece};
use super::mend;
use super::object::{self, Edit, Members, Patches, member_around, range_of};
use super::said;
use super::spoken::{Change, Field, Notes, Text, Texts};
use super::sse;
use super::usage::Usage;

/// A chunk as it came, and where in it the things stand that matter here.
#[derive(Clone, Debug)]
pub struct Chunk {
    payload: Bytes,
    id: Option<Range<usize>>,
    model: Option<Range<usize>>,
    usage: Option<Range<usize>>,
    role: Option<Range<usize>>,
    content: Option<Range<usize>>,
    thoughts: Option<Range<usize>>,
    aloud: Option<Range<usize>>,
    finish: Option<Range<usize>>,
    /// Which of several answers it belongs to.
    index: u32,
    /// Where the texts stand that the model wrote.
    texts: Texts,
    /// Characters of text.
    pub characters: usize,
    /// It belongs to no choice: a usage chunk, or a provider's remark.
    pub is_bare: bool,
    /// It carries a piece of a tool call.
    pub has_calls: bool,
}

/// What a chunk may be instead of a chunk.
#[derive(Debug, PartialEq, Eq)]
pub enum NoChunk {
    /// Not JSON, or not the JSON of a chunk.
    Garbage,
    /// An error that the provider reports inside its stream.
    Error,
}

/// What shall differ in a chunk on its way to the caller.
pub struct Outfit<'o> {
    /// The model's name, as a JSON string.
    pub model: &'o str,
    /// The completion's id as a JSON string, where it must be that of an earlier round.
    pub id: Option<&'o str>,
    /// Whether the caller has seen the role already.
    pub role_seen: bool,
    /// Whether this is the chunk that tells the caller the usage; any other tells none.
    pub with_usage: bool,
    /// What of its texts is hidden.
    pub changes: &'o [Change],
}

impl Chunk {
    /// Reads the data of an event, adding pieces of tool calls to `calls`.
    ///
    /// # Errors
    /// [`NoChunk`].
    pub fn parse(payload: Bytes, calls: &mut CallParts, is_tool: impl Fn(&str) -> bool) -> Result<Self, NoChunk> {
        Self::hear(payload, calls, is_tool, &mut |_| ())
    }

    /// The same; each text that the model said in it is given to `said` too, as the inside of a JSON string.
    ///
    /// # Errors
    /// [`NoChunk`].
    pub fn hear(
        payload: Bytes,
        calls: &mut CallParts,
        is_tool: impl Fn(&str) -> bool,
        said: &mut impl FnMut(&str),
    ) -> Result<Self, NoChunk> {
        // A struct would be read from a list as well.
        if payload.trim_ascii_start().first() != Some(&b'{') {
            return Err(NoChunk::Garbage);
        }
        // What is not read here is shown all the same, so it has to be text as well.
        let text = std::str::from_utf8(&payload).map_err(|_| NoChunk::Garbage)?;
        let raw: Raw<'_> = match serde_json::from_str(text) {
            Ok(raw) => raw,
            Err(_) => return Self::hear(mend::numbers(text).ok_or(NoChunk::Garbage)?.into(), calls, is_tool, said),
        };
        if raw.error.is_some_and(|error| error.get() != "null") || raw.object.is_some_and(object::is_error) {
            return Err(NoChunk::Error);
        }
        let choice = raw.choices.as_deref().unwrap_or_default().first();
        let delta = choice.and_then(|choice| choice.delta.as_ref());
        let place = |part| object::place(&payload, part);
        let deltas = raw.choices.iter().flatten().filter_map(|choice| choice.delta.as_ref());
        deltas.for_each(|delta| delta.texts().each(said));
        let content = delta.and_then(|delta| delta.content);
        let mut texts = Texts::new();
        for choice in raw.choices.iter().flatten() {
            choice.note(&mut Notes { whole: &payload, choice: choice.index.unwrap_or(0), texts: &mut texts });
        }
        let mut has_calls = false;
        let index = choice.and_then(|choice| choice.index).unwrap_or(0);
        for piece in delta.and_then(|delta| delta.tool_calls.as_deref()).unwrap_or_default().iter().flatten() {
            let slot = calls.add(index, piece, &is_tool, said);
            has_calls = true;
            if calls.are_too_many() {
                return Err(NoChunk::Garbage);
            }
            if let Some(slot) = slot {
                let mut notes = Notes { whole: &payload, choice: index, texts: &mut texts };
                notes.string(Field::Call(slot as u64), piece.arguments());
            }
        }
        Ok(Self {
            id: place(raw.id),
            // A `null` is a place to put the name.
            model: raw.model.map(|model| range_of(&payload, model.get())),
            // Here a `null` counts: a caller that did not ask for usage must not see the member at all.
            usage: raw.usage.map(|usage| range_of(&payload, usage.get())),
            role: place(delta.and_then(|delta| delta.role)),
            content: place(content),
            thoughts: place(delta.and_then(|delta| delta.reasoning_details)),
            aloud: place(delta.and_then(|delta| delta.reasoning_content)),
            finish: place(choice.and_then(|choice| choice.finish_reason)),
            index,
            texts,
            characters: content.map_or(0, characters),
            is_bare: choice.is_none(),
            has_calls,
            payload: on_one_line(payload),
        })
    }

    /// The data as they came, on one line.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Where in them the texts stand that the model wrote.
    pub fn texts(&self) -> &[Text] {
        &self.texts
    }

    /// Whether it ends an answer, or belongs to none.
    pub fn is_end(&self) -> bool {
        self.finish.is_some() || self.is_bare
    }

    /// The text as a raw JSON value, a string but for providers that send parts.
    pub fn content(&self) -> Option<&str> {
        self.text(self.content.as_ref())
    }

    /// Thoughts that the provider must get back, as a raw JSON list.
    pub fn thoughts(&self) -> Option<&str> {
        self.text(self.thoughts.as_ref())
    }

    /// What the model thought aloud, raw and with its quotes.
    pub fn aloud(&self) -> Option<&str> {
        self.text(self.aloud.as_ref())
    }

    /// The reason why the round ends, raw and with its quotes.
    pub fn finish(&self) -> Option<&str> {
        self.text(self.finish.as_ref())
    }

    /// What the provider says was used.
    pub fn usage(&self) -> Option<Usage> {
        self.text(self.usage.as_ref()).and_then(Usage::parse)
    }

    /// The completion's id, raw and with its quotes.
    pub fn id(&self) -> Option<&str> {
        self.text(self.id.as_ref())
    }

    /// Whether it shows the caller nothing but a role that was seen already.
    pub fn only_repeats_role(&self, role_seen: bool) -> bool {
        let may_be_shed = role_seen && self.role.is_some() && self.finish.is_none();
        may_be_shed && self.characters == 0 && !self.has_calls && !self.says_more()
    }

    /// Whether a delta holds anything but a role: thoughts, sound, a refusal, whatever a provider has.
    fn says_more(&self) -> bool {
        let Ok(Deltas { choices }) = serde_json::from_slice(&self.payload) else { return true };
        let deltas = choices.iter().filter_map(|choice| choice.delta.as_ref());
        let mut members = deltas.flat_map(|Members(members)| members);
        members.any(|(key, value)| !object::key_is(key, "role") && !matches!(value.get(), "null" | "\"\"" | "[]"))
    }

    /// Whether it carries a role.
    pub fn has_role(&self) -> bool {
        self.role.is_some()
    }

    /// Whether it belongs to the first answer, the only one but where the caller asked for several.
    pub fn is_of_the_first(&self) -> bool {
        self.index == 0 && !self.is_bare
    }

    /// Writes the chunk as an event.
    pub fn write(&self, outfit: &Outfit<'_>, out: &mut BytesMut) {
        let mut patches = Patches::default();
        let usage = self.usage.as_ref().filter(|_| !outfit.with_usage).map(|usage| member_around(&self.payload, usage.clone()));
        patches.name_model(&self.payload, self.model.as_ref(), outfit.model, usage.as_ref());
        if let (Some(id), Some(first)) = (&self.id, outfit.id)
            && self.payload[id.clone()] != *first.as_bytes()
        {
            patches.replace(id.clone(), first);
        }
        if let Some(usage) = usage {
            patches.replace(usage, "");
        }
        if let Some(role) = self.role.as_ref().filter(|_| outfit.role_seen) {
            patches.replace(member_around(&self.payload, role.clone()), "");
        }
        outfit.changes.iter().for_each(|change| patches.replace(change.place.clone(), &*change.text));
        sse::write(out, |out| {
            if patches.is_empty() { out.extend_from_slice(&self.payload) } else { patches.apply(&self.payload, out) }
        });
    }

    /// The chunk that ends a stream with its usage, made from any chunk of that stream.
    pub fn as_usage(&self, usage: &str) -> Self {
        self.changed(&[Edit::Set("choices", "[]"), Edit::Set("usage", usage)])
    }

    /// The chunk that begins an answer, for a stream whose provider leaves its role out.
    pub fn as_beginning(&self) -> Self {
        let choices = "[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]";
        self.changed(&[Edit::Set("choices", choices), Edit::Remove("usage")])
    }

    /// A chunk of the same stream that says `content` and ends with `finish`: both raw JSON values.
    pub fn as_ending(&self, content: Option<&str>, finish: &str) -> Self {
        let delta =
            content.map_or_else(|| "{}".to_owned(), |content| format!("{{\"role\":\"assistant\",\"content\":{content}}}"));
        let choices = format!("[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]");
        self.changed(&[Edit::Set("choices", &choices), Edit::Remove("usage")])
    }

    /// A chunk of the same stream that asks for these calls: raw JSON.
    pub fn as_calls(&self, calls: &str) -> Self {
        let choices = format!("[{{\"index\":0,\"delta\":{{\"tool_calls\":{calls}}},\"finish_reason\":null}}]");
        self.changed(&[Edit::Set("choices", &choices), Edit::Remove("usage")])
    }

    /// The same chunk without its calls and without its end. `None`: then it says nothing.
    pub fn without_calls(&self) -> Option<Self> {
        let rest = if self.has_calls { self.reread(Bytes::from(self.delta_without_calls()?)) } else { self.clone() };
        (rest.characters > 0 || rest.says_more()).then(|| rest.without_finish())
    }

    fn delta_without_calls(&self) -> Option<String> {
        let choices: Vec<&RawValue> = serde_json::from_str(Members::parse(&self.payload).ok()?.get("choices")?.get()).ok()?;
        let choice = choices.first()?.get().as_bytes();
        let delta = Members::parse(choice).ok()?.get("delta")?.get().as_bytes();
        let delta = object::edited(delta, &[Edit::Remove("tool_calls")]).ok()?;
        let choice = object::edited(choice, &[Edit::Set("delta", &delta)]).ok()?;
        object::edited(&self.payload, &[Edit::Set("choices", &format!("[{choice}]"))]).ok()
    }

    /// The same chunk without its end, for a stream that went on after it.
    pub fn without_finish(&self) -> Self {
        let Some(finish) = &self.finish else { return self.clone() };
        let mut patches = Patches::default();
        patches.replace(finish.clone(), "null");
        let mut text = BytesMut::with_capacity(self.payload.len());
        patches.apply(&self.payload, &mut text);
        self.reread(text.freeze())
    }

    fn changed(&self, edits: &[Edit<'_>]) -> Self {
        self.reread(Bytes::from(object::edited(&self.payload, edits).unwrap_or_default()))
    }

    fn reread(&self, text: Bytes) -> Self {
        Self::parse(text, &mut CallParts::default(), |_| true).unwrap_or_else(|_| self.clone())
    }

    fn text(&self, range: Option<&Range<usize>>) -> Option<&str> {
        object::text_at(&self.payload, range)
    }
}

/// Between its tokens JSON may hold line ends, where an event's data cannot: they would end the line.
fn on_one_line(payload: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &payload).is_none() {
        return payload;
    }
    payload.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect()
}

/// The characters of a raw string, or of the texts in a list of parts, which some providers send. Whatever else there is counts as nothing.
pub fn characters(raw: &RawValue) -> usize {
    if let Some(text) = object::as_str(raw) {
        return text.chars().count();
    }
    match serde_json::from_str::<Vec<Part<'_>>>(raw.get()) {
        Ok(parts) => parts.iter().filter_map(|part| part.text).map(characters).sum(),
        // A string that was cut between two surrogates spells no text.
        Err(_) => raw.get().strip_prefix('"').map_or(0, str::len),
    }
}

/// Whether a content holds any text. A string is not read for that: the text of a long answer is looked at once, when it is parsed.
pub fn says_something(raw: &RawValue) -> bool {
    if raw.get().starts_with('"') { raw.get().len() > 2 } else { characters(raw) > 0 }
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "object::present")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "object::present")]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Option<u32>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a RawValue>,
}

impl Choice<'_> {
    /// Takes note of its texts, but for those of the calls that are read.
    fn note(&self, notes: &mut Notes<'_>) {
        let Some(delta) = &self.delta else { return };
        notes.text(Field::Content, delta.content);
        notes.string(Field::Refusal, delta.refusal);
        notes.string(Field::Aloud, delta.reasoning_content);
        notes.string(Field::Reasoning, delta.reasoning);
        notes.thoughts(delta.reasoning_details);
        notes.audio(delta.audio);
        notes.function(delta.function_call);
        for piece in delta.tool_calls.iter().flatten().flatten() {
            notes.string(Field::Input(piece.index().unwrap_or(0).into()), piece.input());
        }
    }
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    audio: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Option<Piece<'a>>>>,
}

impl<'a> Delta<'a> {
    fn texts(&self) -> said::Texts<'a> {
        let Self { content, refusal, reasoning_content, reasoning, function_call, .. } = *self;
        said::Texts { content, refusal, reasoning_content, reasoning, function_call }
    }
}

#[derive(Deserialize)]
struct Deltas<'a> {
    #[serde(borrow)]
    choices: Vec<Said<'a>>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow, default)]
    delta: Option<Members<'a>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(text: &str) -> Chunk {
        Chunk::parse(Bytes::copy_from_slice(text.as_bytes()), &mut CallParts::default(), |_| true).unwrap()
    }

    fn written(text: &str, role_seen: bool, id: Option<&str>) -> String {
        let mut out = BytesMut::new();
        chunk(text).write(&Outfit { model: "\"m\"", id, role_seen, with_usage: false, changes: &[] }, &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn a_chunk_that_needs_no_change_goes_on_byte_for_byte() {
        let text = r#"{ "id":"x",  "model": "m", "choices":[{"index":0,"delta":{"content":"é"}}], "y": 1.10 }"#;
        assert_eq!(written(text, false, None), format!("data: {text}\n\n"));
        assert_eq!(chunk(text).characters, 1);
    }

    #[test]
    fn only_what_must_differ_differs() {
        let text = r#"{"id":"x","model":"up","choices":[{"delta":{"role":"assistant","content":"a"}}],"usage":null,"y":1.10}"#;
        let expected = r#"{"id":"w","model":"m","choices":[{"delta":{"content":"a"}}],"y":1.10}"#;
        assert_eq!(written(text, true, Some("\"w\"")), format!("data: {expected}\n\n"));
    }

    #[test]
    fn each_chunk_names_the_model_also_where_the_provider_does_not() {
        let table = [
            (r#"{"choices":[{"delta":{}}]}"#, r#"{"model":"m","choices":[{"delta":{}}]}"#),
            (r#"{"usage":null,"choices":[]}"#, r#"{"model":"m","choices":[]}"#),
            (r#"{"model":null,"choices":[]}"#, r#"{"model":"m","choices":[]}"#),
            ("{}", r#"{"model":"m"}"#),
            ("{ }", r#"{"model":"m" }"#),
            (r#"{ "usage" : null }"#, r#"{"model":"m"  }"#),
        ];
        for (text, expected) in table {
            assert_eq!(written(text, false, None), format!("data: {expected}\n\n"));
        }
    }

    #[test]
    fn an_event_stays_on_one_line_however_its_json_was_laid_out() {
        let text = "{\"model\": \"m\",\r\n  \"choices\":\n[{\"delta\": {\"content\": \"a\\nb\"}}]}";
        let expected = text.replace(['\r', '\n'], " ");
        assert_eq!(written(text, false, None), format!("data: {expected}\n\n"));
        assert_eq!(chunk(text).content(), Some("\"a\\nb\""));
    }

    #[test]
    fn a_role_that_comes_again_is_shed_only_with_nothing_beside_it() {
        let table = [
            (r#"{"role":"assistant","content":""}"#, true),
            (r#"{"role":"assistant","content":null,"refusal":null,"annotations":[]}"#, true),
            (r#"{"role":"assistant","content":"x"}"#, false),
            (r#"{"role":"assistant","content":null,"reasoning_content":"hm"}"#, false),
            (r#"{"role":"assistant","content":[{"type":"text","text":"x"}]}"#, false),
            (r#"{"content":""}"#, false),
        ];
        for (delta, shed) in table {
            let chunk = chunk(&format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#));
            assert_eq!((chunk.only_repeats_role(true), chunk.only_repeats_role(false)), (shed, false), "{delta}");
        }
    }

    #[test]
    fn characters_are_counted_in_texts_and_in_parts() {
        let table = [
            ("\"日本\"", 2),
            (r#""\ud83c\udfbb\n""#, 2),
            ("null", 0),
            (r#"[{"type":"text","text":"ab"},{"type":"thinking"},{"type":"text","text":"日"}]"#, 3),
            ("[]", 0),
            ("{}", 0),
        ];
        for (raw, expected) in table {
            assert_eq!(characters(serde_json::from_str(raw).unwrap()), expected, "{raw}");
        }
    }

    #[test]
    fn what_a_chunk_says_is_read() {
        let end = chunk(r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#);
        assert_eq!((end.finish(), end.usage().map(|usage| usage.total), end.is_bare), (Some("\"stop\""), Some(3), false));
        assert!(chunk(r#"{"choices":[],"usage":{}}"#).is_bare);
        let odd = chunk(r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"cost":NaN}}"#);
        assert_eq!(odd.usage().map(|usage| (usage.total, usage.reported_cost())), Some((3, None)));
        assert!(!chunk(r#"{"choices":[{"delta":{"content":null,"tool_calls":null}}]}"#).has_calls);
    }

    #[test]
    fn errors_and_garbage_are_no_chunks() {
        let table = [
            (r#"{"error":{"message":"overloaded"}}"#, NoChunk::Error),
            (r#"{"object":"error","message":"slow down","type":"rate_limited"}"#, NoChunk::Error),
            ("{\"choices\":[{\"delta\":{\"content\":\"\u{0}", NoChunk::Garbage),
            ("[]", NoChunk::Garbage),
        ];
        for (text, expected) in table {
            let seen = Chunk::parse(Bytes::copy_from_slice(text.as_bytes()), &mut CallParts::default(), |_| true);
            assert_eq!(seen.err(), Some(expected), "{text}");
        }
        for cut in [&b"{\"id\":\"\xe6\x97\"}"[..], b"{\"choices\":[],\"unknown\":\"\xe6\x97\"}"] {
            let cut = Chunk::parse(Bytes::from_static(cut), &mut CallParts::default(), |_| true);
            assert_eq!(cut.err(), Some(NoChunk::Garbage));
        }
    }

    #[test]
    fn endings_are_made_from_the_stream_that_they_end() {
        let source = chunk(r#"{"id":"x","created":7,"model":"up","choices":[{"delta":{"content":"a"}}]}"#);
        assert_eq!(
            source.as_usage(r#"{"total_tokens":3}"#).payload(),
            r#"{"id":"x","created":7,"model":"up","choices":[],"usage":{"total_tokens":3}}"#
        );
        let ending = source.as_ending(Some("\"N\""), "\"length\"");
        assert_eq!((ending.content(), ending.finish(), ending.characters), (Some("\"N\""), Some("\"length\""), 1));
    }
}
