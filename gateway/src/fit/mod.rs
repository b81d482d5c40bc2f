//! Fits the transcript of a run to the window of the model that is asked next. How much room there is, says [`room`]; what goes, [`rule`]; how a
//! result is shortened, [`cut`]. Here is what a run remembers from call to call: a transcript that fits for certain by its length alone is not
//! looked at, and of one that may not fit each message is read and counted once.

mod context;
mod cut;
mod measured;
mod room;
mod rule;
mod told;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

pub use self::context::{Context, Shortened};
use self::measured::{Bound, Measured};
use crate::provider;
use crate::targets::Target;
use crate::tokens::{ONE, Tokens, most};

/// From prompts of fewer tokens nothing is learnt: what a provider frames them with is most of them.
const SHORTEST: u64 = 128;

/// How far what a provider reports may be over our count, in thousandths. What is further off is no tokenizer's doing.
const FURTHEST: u64 = 2000;

/// A call whose transcript is to be fitted.
pub struct Call<'c> {
    /// What counts tokens.
    pub tokens: &'c Tokens,
    /// The inside of the list of messages, in slices: what the caller sent, then what rounds added, a message a slice.
    pub messages: &'c [Bytes],
    /// The operator's system message, which goes first.
    pub system: Option<&'c Bytes>,
    /// How many bytes the request has around its messages.
    pub around: usize,
    /// The request without any messages, as a target is sent it.
    pub frame: &'c (dyn Fn(&Target) -> Bytes + Sync),
    /// The output limit of the call.
    pub output_limit: Option<u64>,
}

/// What became of a transcript.
#[derive(Debug)]
pub enum Fitted {
    /// It fits; with the account, if it had to be counted for that.
    AsItIs(Option<Box<Context>>),
    /// It fits now: the inside of the list of messages.
    Cut(Vec<Bytes>, Box<Context>),
    /// Not even what must stay fits.
    TooLong(Box<Context>),
}

impl Fitted {
    /// What is sent: where nothing would fit, everything, so that the provider can say so in its own words.
    pub fn messages<'m>(&'m self, whole: &'m [Bytes]) -> &'m [Bytes] {
        match self {
            Self::AsItIs(_) | Self::TooLong(_) => whole,
            Self::Cut(messages, _) => messages,
        }
    }

    /// The same for this target: some bind thoughts to what stood before them, which is another thing once it is cut.
    pub fn messages_for<'m>(&'m self, target: &Target, whole: &'m [Bytes]) -> Cow<'m, [Bytes]> {
        match self {
            Self::AsItIs(_) | Self::TooLong(_) => Cow::Borrowed(whole),
            Self::Cut(messages, _) => provider::of_cut(target, messages),
        }
    }

    /// The account of the window.
    pub fn context(&self) -> Option<&Context> {
        match self {
            Self::AsItIs(context) => context.as_deref(),
            Self::Cut(_, context) | Self::TooLong(context) => Some(context),
        }
    }
}

/// What a run knows of its transcript.
#[derive(Debug, Default)]
pub struct Fitting {
    /// How many slices there were before any round added one: the caller's own.
    own: OnceLock<usize>,
    /// What pictures and the like among these may add to a count by length.
    things: OnceLock<u64>,
    asked: Option<Asked>,
}

/// What is known of whoever was asked last.
#[derive(Debug)]
struct Asked {
    target: Arc<Target>,
    measured: Option<Measured>,
    /// How far its own count is over ours, in thousandths.
    scale: u64,
    /// Our count of what it was sent last, before any scale.
    sent: Option<u64>,
    refused: Option<Refused>,
}

/// What is known of a provider that refused a prompt for its length.
#[derive(Debug)]
enum Refused {
    /// What it said of the prompt that it was sent last.
    Saying(String),
    /// It is sent no more tokens than these.
    MoreThan(u64),
}

impl Fitting {
    /// Fits the transcript to a target.
    pub async fn fit(&mut self, target: &Arc<Target>, call: &Call<'_>) -> Fitted {
        let own = *self.own.get_or_init(|| call.messages.len());
        let same = self.asked.take().filter(|asked| Arc::ptr_eq(&asked.target, target));
        let mut asked = same.unwrap_or_else(|| Asked::nothing(target));
        let bound = Bound::of(target, call, own, asked.refused.is_some());
        let is_certain = asked.refused.is_none() && self.fits_for_certain(&bound, call);
        let fitted = if is_certain { Fitted::AsItIs(None) } else { asked.fit(bound, call).await };
        self.asked = Some(asked);
        fitted
    }

    /// The same for a target that is asked in another's place: by an estimate, and without remembering it.
    pub fn fit_at_once(&self, target: &Target, call: &Call<'_>) -> Fitted {
        let own = *self.own.get_or_init(|| call.messages.len());
        let bound = Bound::of(target, call, own, false);
        if self.fits_for_certain(&bound, call) {
            return Fitted::AsItIs(None);
        }
        let measured = Measured::at_once(target, bound.from, call);
        measured.map_or(Fitted::AsItIs(None), |measured| measured.fit(&bound, call, call.tokens.scale(target)).0)
    }

    /// What was sent last had so many tokens by the provider's own count.
    pub fn learn(&mut self, prompt: u64) {
        let Some(asked) = &mut self.asked else { return };
        if let Some(sent) = asked.sent.take().filter(|sent| *sent >= SHORTEST) {
            asked.scale = asked.scale.max((prompt.saturating_mul(ONE) / sent).min(FURTHEST));
        }
    }

    /// What was sent last was refused because it is too long, with this sentence. Whether there is a point in fitting it again: once in a run.
    pub fn was_refused(&mut self, said: &str) -> bool {
        let Some(asked) = self.asked.as_mut().filter(|asked| asked.refused.is_none()) else { return false };
        asked.refused = Some(Refused::Saying(said.to_owned()));
        true
    }

    /// By its length alone, at a few nanoseconds; where there is no budget, nothing is measured by it.
    fn fits_for_certain(&self, bound: &Bound, call: &Call<'_>) -> bool {
        if bound.budget == 0 {
            return true;
        }
        let text: usize = call.messages[bound.from..].iter().map(Bytes::len).sum();
        if bound.from > 0 {
            return most(text, &[]) <= bound.budget;
        }
        let most_text = most(text + call.around + call.system.map_or(0, Bytes::len), &[]);
        // What rounds add is text.
        most_text <= bound.budget && most_text + self.things.get_or_init(|| most(0, call.messages)) <= bound.budget
    }
}

impl Asked {
    fn nothing(target: &Arc<Target>) -> Self {
        Self { target: Arc::clone(target), measured: None, scale: ONE, sent: None, refused: None }
    }

    async fn fit(&mut self, mut bound: Bound, call: &Call<'_>) -> Fitted {
        let known = self.measured.take().filter(|known| known.from() == bound.from);
        let mut measured = known.unwrap_or_else(|| Measured::nothing(bound.from));
        if measured.extend(&self.target, call).await.is_err() {
            return Fitted::AsItIs(None);
        }
        self.scale = self.scale.max(call.tokens.scale(&self.target));
        if let Some(refused) = &self.refused {
            let most = match refused {
                Refused::MoreThan(most) => *most,
                Refused::Saying(said) => {
                    let sent = self.sent.map_or_else(|| measured.total(self.scale), |sent| sent * self.scale / ONE);
                    bound.told(said, sent, &self.target, call)
                }
            };
            self.refused = Some(Refused::MoreThan(most));
            bound.lower(most, !self.target.is_window_guessed);
        }
        let (fitted, total) = measured.fit(&bound, call, self.scale);
        self.sent = (bound.from == 0).then(|| total.saturating_mul(ONE) / self.scale);
        self.measured = Some(measured);
        fitted
    }
}

#[cfg(test)]
mod tests;
