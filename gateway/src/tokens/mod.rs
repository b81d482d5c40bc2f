//! How many tokens a call takes: before it is made, and after it where its provider does not say.
//!
//! OpenAI's models are counted by their vocabularies, all others by an [`estimate`] that learns from what providers report. A [`Tally`]
//! goes with each call and knows what was sent and what came; [`Tokens::charge`] makes of it the one truth about what the call used,
//! whether it ended well, broke off, or was left by its caller. When what is counted is told in `docs/counting.md`.

pub mod encoding;
pub mod estimate;
pub mod made;
mod prompt;
mod ratio;
mod tally;

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, Bytes};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use toolgate_policies::budget::Counted;
use toolgate_tools::net::Segments;

use self::encoding::Encoding;
use self::prompt::rough;
use self::ratio::Ratios;
pub use self::tally::{Tally, Used};
use crate::targets::Target;
use crate::trace::{Round, Rounds};

/// The longest body that is counted by a vocabulary, in bytes: it takes 10 to 20 ms. Longer ones are estimated, which is the less off the
/// longer they are.
const LONGEST_EXACT: usize = 256 * 1024;

/// The longest text that is counted by a vocabulary to see whether it fits, in bytes: so much is a good part of a small window, and takes two or
/// three milliseconds. Of a large window it is little, and a longer text can as well be estimated.
const LONGEST_PART: usize = 64 * 1024;

/// The longest body that is counted by a vocabulary, and the longest that is estimated, where they are: each takes a tenth to a quarter
/// of a millisecond. Longer ones are counted on a thread that may block.
const EXACT_AT_ONCE: usize = 4 * 1024;
const ESTIMATED_AT_ONCE: usize = 128 * 1024;

/// From bodies of these lengths it is learnt how a provider counts, in bytes: shorter ones say little, longer ones take long.
const LEARNT_FROM: std::ops::RangeInclusive<usize> = 512..=64 * 1024;

/// A scale of one, in thousandths.
pub const ONE: u64 = 1000;

/// What counts tokens in a process.
#[derive(Debug)]
pub struct Tokens {
    ratios: Ratios,
    prompts: AtomicU64,
    /// No more counts at once than there are processors: the threads that may block are many more.
    places: Semaphore,
}

impl Default for Tokens {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { ratios: Ratios::default(), prompts: AtomicU64::new(0), places: Semaphore::new(processors) }
    }
}

impl Tokens {
    /// The tokens of a request for this target: exactly where its vocabulary is known and the request is not too long, else estimated.
    pub async fn prompt(&self, target: &Target, body: &Segments) -> u64 {
        self.prompt_up_to(LONGEST_EXACT, target, body).await
    }

    async fn prompt_up_to(&self, longest: usize, target: &Target, body: &Segments) -> u64 {
        let (length, body) = (body.len(), body.clone());
        let by = vocabulary(target).filter(|_| length <= longest);
        let count = self.run(by, length, move || prompt::count(&whole(body), by).tokens).await.unwrap_or_else(|| rough(length));
        if by.is_some() { count } else { self.ratios.applied(target, count) }
    }

    /// The tokens of a request as well as they can be told in no time: by its length. Its text is looked at where that matters.
    pub fn prompt_at_once(&self, body: &Segments) -> (u64, Counted) {
        (rough(body.len()) + prompt::most_for_things(body.pieces()), Counted::Roughly)
    }

    /// The tokens of each of these messages, and those of the frame around them: a request without messages. By the target's vocabulary where
    /// there is one and they are not too long, else estimated; what providers report is not in it yet: that is [`Tokens::scale`].
    pub async fn parts(&self, target: &Target, messages: Vec<Bytes>, frame: Option<Bytes>) -> (Vec<u64>, u64) {
        let bytes = messages.iter().chain(&frame).map(Bytes::len).sum();
        let by = vocabulary(target).filter(|_| bytes <= LONGEST_PART);
        let rough =
            (messages.iter().map(|message| rough(message.len())).collect(), frame.as_ref().map_or(0, |frame| rough(frame.len())));
        self.run(by, bytes, move || counted(&messages, frame.as_deref(), by)).await.unwrap_or(rough)
    }

    /// How many tokens a count comes to at this target at least, in thousandths: no less than was counted.
    pub fn scale(&self, target: &Target) -> u64 {
        if vocabulary(target).is_some() { ONE } else { self.ratios.applied(target, ONE).max(ONE) }
    }

    /// Enters into a call's entry what it used, as soon as its outcome is known. Dropped in the middle, it has done nothing, and can be done
    /// again; done again, it changes nothing.
    pub async fn charge(&self, round: &mut Round) {
        self.charge_up_to(LONGEST_EXACT, round).await;
    }

    /// The same for every entry of a run that broke off. In haste only short texts are counted exactly: where many callers leave at once, the
    /// last of them must not be entered late.
    pub async fn charge_all(&self, rounds: &mut Rounds, haste: bool) {
        for round in rounds {
            self.charge_up_to(if haste { EXACT_AT_ONCE } else { LONGEST_EXACT }, round).await;
        }
    }

    async fn charge_up_to(&self, longest: usize, round: &mut Round) {
        let Some(tally) = &round.tally else { return };
        if tally.is_charged(round.outcome) {
            let target = &round.target;
            let lacks = tally.lacks();
            let prompt = match tally.prompt() {
                _ if !lacks.prompt => None,
                Some(tokens) => Some(tokens),
                None => Some(self.prompt_up_to(longest, target, tally.sent()).await),
            };
            let output = if lacks.output { Some(tally.made() + self.output_up_to(longest, target, tally).await) } else { None };
            let used = tally.truth(prompt, output);
            if prompt.is_none() && tally.prompt().is_none() {
                self.learn(target, tally.sent(), used.usage.prompt);
            }
            (round.usage, round.estimated) = (Some(used.usage), used.estimated);
        }
        round.tally = None;
    }

    async fn output_up_to(&self, longest: usize, target: &Target, tally: &Tally) -> u64 {
        let length = tally.said().kept();
        match vocabulary(target).filter(|_| length > 0 && length <= longest) {
            Some(encoding) => {
                let said = tally.said().clone();
                self.run(Some(encoding), length, move || said.counted(encoding)).await.unwrap_or_else(|| rough(length))
            }
            None => self.ratios.applied(target, tally.said().estimated()),
        }
    }

    /// Counts here or, where that would take long, on a thread that may block. Only a count that panicked, or a process that ends, gives none.
    async fn run<C: Send + 'static>(
        &self,
        by: Option<Encoding>,
        bytes: usize,
        count: impl FnOnce() -> C + Send + 'static,
    ) -> Option<C> {
        let is_short = match by {
            Some(encoding) => bytes <= EXACT_AT_ONCE && encoding.is_loaded(),
            None => bytes <= ESTIMATED_AT_ONCE,
        };
        if is_short {
            return Some(count());
        }
        let _place = self.places.acquire().await;
        #[expect(clippy::disallowed_methods, reason = "it is waited for here, and ends soon where its caller leaves")]
        let counted = spawn_blocking(count);
        counted.await.ok()
    }

    fn learn(&self, target: &Target, sent: &Segments, reported: u64) {
        if !LEARNT_FROM.contains(&sent.len()) || vocabulary(target).is_some() {
            return;
        }
        if self.ratios.wants(target, self.prompts.fetch_add(1, Ordering::Relaxed)) {
            let estimated = prompt::count(&whole(sent.clone()), None);
            if estimated.is_text {
                self.ratios.learn(target, estimated.tokens, reported);
            }
        }
    }
}

/// The tokens of each message and those of the frame, estimated here and now.
pub fn estimated(messages: &[Bytes], frame: Option<&[u8]>) -> (Vec<u64>, u64) {
    counted(messages, frame, None)
}

/// The same of one message.
pub fn estimated_message(message: &[u8]) -> u64 {
    prompt::count_message(message, None)
}

/// More tokens than so many bytes can be: no vocabulary has a token of less than a byte, and names made of digits come near that. What pictures,
/// recordings and files among them add is in it.
pub fn most(bytes: usize, of: &[Bytes]) -> u64 {
    bytes as u64 + prompt::most_for_things(of)
}

fn counted(messages: &[Bytes], frame: Option<&[u8]>, by: Option<Encoding>) -> (Vec<u64>, u64) {
    let messages = messages.iter().map(|message| prompt::count_message(message, by)).collect();
    (messages, frame.map_or(0, |frame| prompt::count(frame, by).tokens))
}

/// By which vocabulary the texts of this target can be counted.
fn vocabulary(target: &Target) -> Option<Encoding> {
    Encoding::of(&target.upstream_model)
}

fn whole(mut body: Segments) -> Bytes {
    let length = body.remaining();
    body.copy_to_bytes(length)
}

#[cfg(test)]
mod tests;
