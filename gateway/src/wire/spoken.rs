//! Where in a document of a provider's the texts stand that its model wrote, and to whose words each belongs: what is said of a choice in many
//! chunks is one text.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;
use smallvec::SmallVec;

use super::object::range_of;

/// One of the texts of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// What it says.
    Content,
    /// What it will not say.
    Refusal,
    /// What it thinks aloud, under either name.
    Aloud,
    /// The same, under the other name.
    Reasoning,
    /// An entry of its thoughts that are to be given back: its number.
    Thought(u64),
    /// What it says in sound.
    Transcript,
    /// The arguments of the call of old.
    Function,
    /// The arguments of a call: its number.
    Call(u64),
    /// What a call gives a tool that takes no JSON: its number.
    Input(u64),
}

impl Field {
    /// Whether it is the text of a JSON document.
    pub const fn is_json(self) -> bool {
        matches!(self, Self::Function | Self::Call(_))
    }
}

/// A text, or a piece of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The number of the choice that it belongs to.
    pub choice: u32,
    /// Which of its texts.
    pub field: Field,
    /// What stands there.
    pub part: Part,
    /// Where its JSON string stands in the document, quotes included.
    pub place: Range<usize>,
}

/// Something is to be replaced in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where the value stands.
    pub place: Range<usize>,
    /// The JSON text that takes its place.
    pub text: String,
}

/// What stands at the place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Words.
    Words,
    /// The signature under all words of the entry.
    Signature {
        /// The entry says who its signer is.
        is_named: bool,
    },
}

/// The texts of a document, in the order of their places.
pub type Texts = SmallVec<[Text; 1]>;

/// Takes note of where texts stand.
pub(super) struct Notes<'n> {
    pub(super) whole: &'n [u8],
    pub(super) choice: u32,
    pub(super) texts: &'n mut Texts,
}

impl Notes<'_> {
    /// A string, or the texts in a list of parts.
    pub(super) fn text(&mut self, field: Field, raw: Option<&RawValue>) {
        let Some(raw) = raw else { return };
        if is_string(raw) {
            self.put(field, Part::Words, raw);
        } else if raw.get().starts_with('[') {
            for part in pieces(raw) {
                self.string(field, part.text);
                self.string(Field::Refusal, part.refusal);
            }
        }
    }

    /// Thoughts that the provider must get back.
    pub(super) fn thoughts(&mut self, list: Option<&RawValue>) {
        let Some(list) = list.filter(|list| list.get().starts_with('[')) else { return };
        for (at, entry) in pieces(list).enumerate() {
            let index = entry.index.and_then(|index| index.get().parse().ok());
            let field = Field::Thought(index.unwrap_or(at as u64));
            self.string(field, entry.text.or(entry.summary));
            if let Some(signature) = entry.signature.filter(|signature| is_string(signature) && signature.get().len() > 2) {
                self.put(field, Part::Signature { is_named: entry.signer.is_some() }, signature);
            }
        }
    }

    /// An answer in sound.
    pub(super) fn audio(&mut self, audio: Option<&RawValue>) {
        let Some(audio) = audio.filter(|audio| audio.get().starts_with('{')) else { return };
        if let Ok(audio) = serde_json::from_str::<Piece<'_>>(audio.get()) {
            self.string(Field::Transcript, audio.transcript);
        }
    }

    /// The call of old.
    pub(super) fn function(&mut self, call: Option<&RawValue>) {
        let Some(call) = call.filter(|call| call.get().starts_with('{')) else { return };
        if let Ok(call) = serde_json::from_str::<Piece<'_>>(call.get()) {
            self.string(Field::Function, call.arguments);
        }
    }

    /// A string that is not empty.
    pub(super) fn string(&mut self, field: Field, raw: Option<&RawValue>) {
        if let Some(raw) = raw.filter(|raw| is_string(raw)) {
            self.put(field, Part::Words, raw);
        }
    }

    fn put(&mut self, field: Field, part: Part, raw: &RawValue) {
        let place = range_of(self.whole, raw.get());
        if place.len() > 2 {
            self.texts.push(Text { choice: self.choice, field, part, place });
        }
    }
}

fn is_string(raw: &RawValue) -> bool {
    raw.get().starts_with('"')
}

/// The objects of a list.
fn pieces(list: &RawValue) -> impl Iterator<Item = Piece<'_>> {
    let all: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
    all.into_iter().filter_map(|raw| serde_json::from_str(raw.get()).ok())
}

/// A part of a content, an entry of thoughts, a sound, a call: what of each is read.
#[derive(Deserialize)]
struct Piece<'p> {
    #[serde(borrow, default)]
    text: Option<&'p RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'p RawValue>,
    #[serde(borrow, default)]
    summary: Option<&'p RawValue>,
    #[serde(borrow, default)]
    signature: Option<&'p RawValue>,
    #[serde(borrow, default)]
    signer: Option<&'p RawValue>,
    #[serde(borrow, default)]
    index: Option<&'p RawValue>,
    #[serde(borrow, default)]
    transcript: Option<&'p RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'p RawValue>,
}

/// The number of a choice that stands at this place among all.
pub(super) fn number(index: Option<&RawValue>, at: usize) -> u32 {
    index.and_then(|index| index.get().parse().ok()).unwrap_or(at as u32)
}

/// Where the chances of the tokens of a choice stand in a document: they spell its text once more. Nowhere, where there are none.
pub fn chances(whole: &[u8], choice: u32) -> Option<Range<usize>> {
    #[derive(Deserialize)]
    struct Document<'d> {
        #[serde(borrow, default)]
        choices: Vec<Choice<'d>>,
    }
    #[derive(Deserialize)]
    struct Choice<'d> {
        #[serde(borrow, default)]
        index: Option<&'d RawValue>,
        #[serde(borrow, default)]
        logprobs: Option<&'d RawValue>,
    }
    let document: Document<'_> = serde_json::from_slice(whole).ok()?;
    let numbered = document.choices.iter().enumerate();
    let mut own = numbered.filter(|(at, of)| number(of.index, *at) == choice);
    own.find_map(|(_, of)| of.logprobs).filter(|chances| chances.get() != "null").map(|chances| range_of(whole, chances.get()))
}
