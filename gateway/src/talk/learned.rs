//! What a call came to, as the talk takes it: our own words, the tool's, and what is no text.

use std::borrow::Cow;

use toolgate_tools::foreign::Seal;
use toolgate_tools::media::Media;
use toolgate_tools::toolbox::{Outcome, Output};

use super::Truncation;

/// What a call came to.
#[derive(Debug)]
pub struct Learned {
    /// Our own words, which the model reads as they are.
    pub said: String,
    /// The tool's, which it reads as data; empty: none.
    pub data: String,
    /// What else it is shown.
    pub media: Vec<Media>,
    /// It was executed, however that went.
    pub executed: bool,
    /// It was not executed, because its arguments were not what the tool takes.
    pub is_misfit: bool,
    /// What it cost, in nano-dollars.
    pub cost: u64,
    /// It was not executed, because nothing was left to pay for it.
    pub unpaid: Option<Truncation>,
}

impl Learned {
    /// A call that came to nothing but a sentence, and cost nothing.
    pub fn said(text: String) -> Self {
        let (data, media) = (String::new(), Vec::new());
        Self { said: text, data, media, executed: false, is_misfit: false, cost: 0, unpaid: None }
    }

    /// A call that came to this. Of what is no text the model is shown what is `shown`; in place of the rest it reads what that is.
    pub fn returned(mut output: Output, shown: impl Fn(&Media) -> bool) -> Self {
        let (media, hidden): (Vec<_>, Vec<_>) = std::mem::take(&mut output.media).into_iter().partition(shown);
        let (said, data) = output.parts();
        let notes = hidden.iter().map(Media::note);
        let data = std::iter::once(data.to_owned()).filter(|data| !data.is_empty()).chain(notes).collect::<Vec<_>>().join("\n");
        let is_misfit = output.outcome == Outcome::InvalidArguments;
        Self { data, media, executed: output.outcome.was_run(), is_misfit, ..Self::said(said.to_owned()) }
    }

    /// Keeps what is no text up to so many bytes, and names the rest. How many it has then.
    pub(super) fn keep_media(&mut self, most: usize) -> usize {
        let mut kept = 0;
        for media in std::mem::take(&mut self.media) {
            if kept + media.bytes() <= most {
                kept += media.bytes();
                self.media.push(media);
                continue;
            }
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(&media.note());
        }
        kept
    }

    /// All of it, as it came: what two results are compared by.
    pub(super) fn plain(&self) -> Cow<'_, str> {
        if self.data.is_empty() && self.media.is_empty() {
            return Cow::Borrowed(&self.said);
        }
        let media = self.media.iter().map(Media::base64);
        Cow::Owned([self.said.as_str(), self.data.as_str()].into_iter().chain(media).collect())
    }

    /// What the model reads.
    pub(super) fn sealed(&self, tool: &str, seal: &Seal) -> Cow<'_, str> {
        if self.data.is_empty() {
            return Cow::Borrowed(&self.said);
        }
        Cow::Owned(format!("{}{}", self.said, seal.wrapped(tool, &self.data)))
    }
}
