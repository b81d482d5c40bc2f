//! What passes through: the other paths of OpenAI's API. Of a request only the model's name is read and changed, and what its cost depends on is
//! read; of an answer only the model's name is changed, and its usage is read. All else stays the bytes that came.

mod cut;
mod request;
mod said;

pub use self::cut::Events;
pub use self::request::{Demand, Made, Quality, Request};
pub use self::said::Said;

/// A path that passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Vectors of texts.
    Embeddings,
    /// Text that goes on where a prompt ends: the API of old.
    Completions,
    /// Whether a text is harmful.
    Moderations,
    /// Pictures.
    Images,
    /// Speech from a text.
    Speech,
    /// The text of a recording.
    Transcriptions,
    /// The same in English.
    Translations,
}

impl Path {
    const ALL: [Self; 7] = [
        Self::Embeddings,
        Self::Completions,
        Self::Moderations,
        Self::Images,
        Self::Speech,
        Self::Transcriptions,
        Self::Translations,
    ];

    /// The path below the base URL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Embeddings => "/embeddings",
            Self::Completions => "/completions",
            Self::Moderations => "/moderations",
            Self::Images => "/images/generations",
            Self::Speech => "/audio/speech",
            Self::Transcriptions => "/audio/transcriptions",
            Self::Translations => "/audio/translations",
        }
    }

    /// The one that is written like this.
    pub fn find(below: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|path| path.as_str() == below)
    }

    /// Whether a request is a form with a file.
    pub const fn takes_form(self) -> bool {
        matches!(self, Self::Transcriptions | Self::Translations)
    }

    /// Whether an answer may be something else than JSON.
    pub const fn answers_freely(self) -> bool {
        matches!(self, Self::Speech | Self::Transcriptions | Self::Translations)
    }

    /// Whether an answer may be a stream of events.
    pub const fn may_stream(self) -> bool {
        self.answers_freely() || matches!(self, Self::Completions | Self::Images)
    }
}
