//! What is known of the tokens of one model call while it is under way. It lives in the call's entry in the record, so that it is still there
//! when the caller, and with it whoever was listening, is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolgate_tools::net::Segments;

use super::encoding::Encoding;
use super::estimate::Estimate;
use crate::trace::Outcome;
use crate::wire::Usage;
use crate::wire::prompt::spelt;

/// The most of a stream that is kept to be counted exactly, in bytes. What follows is taken to be like it.
const MOST_KEPT: usize = 8 * 1024;

/// What was sent, what came, and what the provider said of it.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    sent: Segments,
    /// The tokens of what was sent, where it is not here to be counted.
    prompt: Option<Arc<AtomicU64>>,
    said: Said,
    /// The tokens of an answer that is no text.
    made: u64,
    reported: Option<Usage>,
    /// There is text that the last report cannot know of.
    has_outgrown: bool,
}

/// What a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// The tokens.
    pub usage: Usage,
    /// Some of them were counted here, and not by the provider.
    pub estimated: bool,
}

/// Which of the two sides of a call have to be counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lacks {
    pub(super) prompt: bool,
    pub(super) output: bool,
}

impl Tally {
    /// Of a call that is about to be sent.
    pub fn of(sent: Segments) -> Self {
        Self { sent, ..Self::default() }
    }

    /// The same, where what is sent cannot be looked at: `prompt` are its tokens by the time that the call ends.
    #[must_use]
    pub fn with_prompt(self, prompt: Option<Arc<AtomicU64>>) -> Self {
        Self { prompt, ..self }
    }

    /// The model has made something that is no text, so far of about so many tokens in all.
    pub fn make(&mut self, tokens: u64) {
        self.made = tokens;
    }

    /// About how many tokens the model made that are no text.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// The tokens of what was sent, where they are not counted from it.
    pub(super) fn prompt(&self) -> Option<u64> {
        Some(self.prompt.as_ref()?.load(Ordering::Relaxed))
    }

    /// A stream begins: where its text can be counted exactly, the beginning of it is kept for that.
    pub fn listen(&mut self, model: &str) {
        if Encoding::of(model).is_some() {
            self.said.room = MOST_KEPT;
        }
    }

    /// The model said this: the inside of a JSON string.
    pub fn say(&mut self, inner: &str) {
        if !inner.is_empty() {
            self.said.take(inner);
            self.has_outgrown = true;
        }
    }

    /// A whole answer comes, which is in memory anyway: all of it is kept.
    pub fn keep_all(&mut self) {
        self.said.room = usize::MAX;
    }

    /// The provider reports what was used so far. Some repeat a growing total: the last one counts.
    pub fn report(&mut self, usage: Usage) {
        self.reported = Some(usage);
        self.has_outgrown = false;
    }

    /// What the provider reported last.
    pub fn reported(&self) -> Option<&Usage> {
        self.reported.as_ref()
    }

    /// About how many tokens the model said so far.
    pub fn said_tokens(&self) -> u64 {
        self.said.estimated()
    }

    /// What was sent.
    pub fn sent(&self) -> &Segments {
        &self.sent
    }

    /// Whether a call that went like this costs anything. An answer that is an error costs nothing, unless something was said before it, and
    /// neither does a provider that was not reached; one that was left in the middle, by whichever side, costs its prompt and what came.
    pub fn is_charged(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Ok | Outcome::Cut | Outcome::Timeout | Outcome::Cancelled => true,
            Outcome::ClientError | Outcome::RateLimited | Outcome::ServerError => self.has_output(),
            Outcome::ConnectError => false,
        }
    }

    /// What has to be counted: what the provider did not report, what it reports as nothing although it came, and what came after its report.
    pub(super) fn lacks(&self) -> Lacks {
        let Some(usage) = &self.reported else { return Lacks { prompt: true, output: true } };
        let says_nothing = usage.output() == 0 && !self.said.is_empty();
        Lacks { prompt: usage.lacks_prompt(), output: says_nothing || self.has_outgrown }
    }

    fn has_output(&self) -> bool {
        !self.said.is_empty() || self.made > 0 || self.reported.is_some_and(|usage| usage.output() > 0)
    }

    /// What was used, with what was counted of it here. What the provider reports stands, unless more came than it knows of.
    pub(super) fn truth(&self, prompt: Option<u64>, output: Option<u64>) -> Used {
        let usage = self.reported.unwrap_or_default();
        let output = output.filter(|output| *output > usage.completion);
        if self.reported.is_some() && prompt.is_none() && output.is_none() {
            return Used { usage, estimated: false };
        }
        Used { usage: usage.completed(prompt.unwrap_or(usage.prompt), output.unwrap_or(usage.completion)), estimated: true }
    }

    pub(super) fn said(&self) -> &Said {
        &self.said
    }
}

/// What a model said so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    estimate: Estimate,
    /// The beginning of it, the inside of a JSON string.
    kept: String,
    /// How far `kept` may grow.
    room: usize,
    /// The estimate of `kept`.
    of_kept: Estimate,
}

impl Said {
    fn take(&mut self, inner: &str) {
        self.estimate.json(inner);
        if self.kept.len() + inner.len() <= self.room {
            self.kept.push_str(inner);
            self.of_kept = self.estimate;
        } else {
            // What is kept is a beginning, without a gap.
            self.room = 0;
        }
    }

    fn is_empty(&self) -> bool {
        self.estimate == Estimate::default()
    }

    /// How much of it can be counted exactly, in bytes.
    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn estimated(&self) -> u64 {
        self.estimate.tokens()
    }

    /// Counts what is kept, and takes the rest to be as far off the estimate.
    pub(super) fn counted(&self, encoding: Encoding) -> u64 {
        let quoted = format!("\"{}\"", self.kept);
        let kept = encoding.count(&spelt(&quoted));
        kept + (self.estimate.tokens() - self.of_kept.tokens()) * kept / self.of_kept.tokens().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(said: &[&str], usage: Option<(u64, u64)>, after: &[&str]) -> Tally {
        let mut tally = Tally::default();
        said.iter().for_each(|text| tally.say(text));
        if let Some((prompt, completion)) = usage {
            tally.report(Usage::counted(prompt, completion));
        }
        after.iter().for_each(|text| tally.say(text));
        tally
    }

    #[test]
    fn there_is_one_truth_for_each_call() {
        // What was said, what was reported, what was said after it; what is counted for the prompt and for the output; and what is true.
        let (text, none): (&[&str], &[&str]) = (&["a b"], &[]);
        let table = [
            (text, Some((10, 5)), none, (10, 5, false)),
            (none, Some((10, 0)), none, (10, 0, false)),
            (none, Some((10, 7)), none, (10, 7, false)),
            (text, None, none, (70, 30, true)),
            (none, None, none, (70, 30, true)),
            (text, Some((10, 0)), none, (10, 30, true)),
            (text, Some((0, 5)), none, (0, 5, false)),
            // Text after the last report: the greater count.
            (text, Some((10, 5)), text, (10, 30, true)),
            (text, Some((10, 50)), text, (10, 50, false)),
            (none, Some((10, 0)), text, (10, 30, true)),
        ];
        for (said, usage, after, expected) in table {
            let tally = tally(said, usage, after);
            let lacks = tally.lacks();
            let Used { usage, estimated } = tally.truth(lacks.prompt.then_some(70), lacks.output.then_some(30));
            assert_eq!((usage.prompt, usage.completion, estimated), expected, "{said:?} {:?} {after:?}", tally.reported());
            assert_eq!(usage.total, usage.prompt + usage.completion);
        }
    }

    #[test]
    fn what_was_not_told_is_counted_and_what_was_told_as_none_is_none() {
        for (told, expected) in [
            (r#"{"completion_tokens":5}"#, (70, 5, true)),
            (r#"{"prompt_tokens":null,"completion_tokens":5}"#, (70, 5, true)),
            (r#"{"prompt_tokens":"many","completion_tokens":5}"#, (70, 5, true)),
            (r#"{"prompt_tokens":0,"completion_tokens":5}"#, (0, 5, false)),
            (r#"{"prompt_tokens":10,"total_tokens":15}"#, (10, 30, true)),
            (r#"{"total_tokens":15}"#, (70, 30, true)),
        ] {
            let mut tally = tally(&["a b"], None, &[]);
            tally.report(Usage::parse(told).unwrap());
            let lacks = tally.lacks();
            let Used { usage, estimated } = tally.truth(lacks.prompt.then_some(70), lacks.output.then_some(30));
            assert_eq!((usage.prompt, usage.completion, estimated), expected, "{told}");
        }
    }

    #[test]
    fn case_28_the_last_report_counts_and_not_the_sum() {
        let mut tally = tally(&["a"], Some((100, 1)), &["b"]);
        tally.report(Usage::counted(100, 10));
        assert_eq!(tally.truth(None, None), Used { usage: Usage::counted(100, 10), estimated: false });
        assert_eq!(tally.lacks(), Lacks { prompt: false, output: false });
    }

    #[test]
    fn an_answer_that_is_an_error_costs_nothing() {
        use Outcome::{Cancelled, ClientError, ConnectError, Cut, Ok, RateLimited, ServerError, Timeout};
        let begun = tally(&["a"], None, &[]);
        for outcome in [Ok, Cut, Timeout, Cancelled] {
            assert!(Tally::default().is_charged(outcome) && begun.is_charged(outcome), "{outcome:?}");
        }
        for outcome in [ClientError, RateLimited, ServerError] {
            assert!(!Tally::default().is_charged(outcome) && begun.is_charged(outcome), "{outcome:?}");
        }
        assert!(!begun.is_charged(ConnectError));
    }

    #[test]
    fn a_stream_is_counted_from_what_is_kept_of_it() {
        let (mut kept, mut estimated) = (Tally::default(), Tally::default());
        kept.listen("gpt-4o-mini");
        estimated.listen("unheard-of");
        let text = include_str!("samples/english.txt").replace('\n', "\\n").replace('"', "\\\"");
        let repeated = text.repeat(30);
        for word in repeated.split_inclusive(' ') {
            kept.say(word);
            estimated.say(word);
        }
        assert!((MOST_KEPT - 64..=MOST_KEPT).contains(&kept.said().kept()), "{}", kept.said().kept());
        assert_eq!((estimated.said().kept(), kept.said().estimated()), (0, estimated.said().estimated()));
        let exact = Encoding::O200k.count(&include_str!("samples/english.txt").repeat(30));
        let counted = kept.said().counted(Encoding::O200k);
        assert!(counted.abs_diff(exact) * 100 <= exact * 2, "{counted}, not {exact}");
    }

    #[test]
    fn a_character_may_be_cut_between_two_pieces() {
        let mut tally = Tally::default();
        tally.listen("gpt-4o");
        ["\\ud83c", "\\udfbb", " a"].iter().for_each(|piece| tally.say(piece));
        assert_eq!(tally.said().counted(Encoding::O200k), Encoding::O200k.count("🎻 a"));
    }
}
