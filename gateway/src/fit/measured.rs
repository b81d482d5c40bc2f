//! A transcript with its tokens, and what is made of it by the rule.

use bytes::Bytes;

use super::cut::{LEAST, shortened};
use super::room::Room;
use super::rule::{self, Piece, Plan};
use super::told;
use super::{Call, Context, Fitted, Shortened};
use crate::provider;
use crate::targets::Target;
use crate::tokens::{ONE, estimated};
use crate::wire::content;
use crate::wire::history::{self, Entry, History, Role, Unreadable};

/// What a transcript must fit into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    room: Room,
    /// How many tokens the prompt may have.
    pub(super) budget: u64,
    /// From which slice on messages count, and may go.
    pub(super) from: usize,
    is_guess: bool,
}

impl Bound {
    /// That of a target. Where its window is only guessed, what the caller sent is none of our business: only what rounds add is held to the
    /// guess. A provider that refused a prompt for its length has left no doubt that there is a window.
    pub(super) fn of(target: &Target, call: &Call<'_>, own: usize, has_refused: bool) -> Self {
        let is_guess = target.is_window_guessed && !has_refused;
        let of = if target.is_window_guessed { Room::of_guess } else { Room::of };
        // A limit that we send takes its place in the window as a caller's does, unless it is out of all proportion to it.
        let usual = provider::usual_output(target).map(|usual| usual.min(u64::from(target.window / 2)));
        let room = of(target.window, call.output_limit.or(usual), target.max_output);
        Self { room, budget: room.budget(), from: if is_guess { own } else { 0 }, is_guess }
    }

    /// How much a provider is sent that refused so many tokens: what fits into the window that it names, else half. There is one try, so where
    /// nobody knows the window, it is no more than most models have.
    pub(super) fn told(&self, said: &str, sent: u64, target: &Target, call: &Call<'_>) -> u64 {
        let window = told::window(said, sent).and_then(|window| u32::try_from(window).ok());
        let room = window.map_or(0, |window| Room::of(window, call.output_limit, target.max_output).budget());
        let half = if target.is_window_guessed { (sent / 2).min(4 * u64::from(target.window)) } else { sent / 2 };
        if room > 0 { room } else { half }
    }

    /// The provider takes no more than these; how much that is of its window, nobody knows where the window was only guessed.
    pub(super) fn lower(&mut self, most: u64, is_known: bool) {
        self.budget = if is_known && self.budget > 0 { self.budget.min(most) } else { most };
    }
}

/// The messages of a transcript from some slice on, with their tokens before any scale.
#[derive(Debug)]
pub(super) struct Measured {
    from: usize,
    /// How many slices have been read.
    slices: usize,
    entries: Vec<Entry>,
    /// Which of them are results that can be shortened.
    can_be_cut: Vec<bool>,
    tokens: Vec<u64>,
    frame: Bytes,
    frame_tokens: u64,
    system_tokens: u64,
}

impl Measured {
    pub(super) fn nothing(from: usize) -> Self {
        let (entries, can_be_cut, tokens, frame) = (Vec::new(), Vec::new(), Vec::new(), Bytes::new());
        Self { from, slices: from, entries, can_be_cut, tokens, frame, frame_tokens: 0, system_tokens: 0 }
    }

    /// All of it, estimated here and now.
    pub(super) fn at_once(target: &Target, from: usize, call: &Call<'_>) -> Result<Self, Unreadable> {
        let mut measured = Self::nothing(from);
        let (messages, frame) = measured.read(target, call)?;
        let counted = estimated(&messages, frame.as_deref());
        measured.take(counted, frame);
        Ok(measured)
    }

    pub(super) fn from(&self) -> usize {
        self.from
    }

    /// Reads and counts what has come since.
    pub(super) async fn extend(&mut self, target: &Target, call: &Call<'_>) -> Result<(), Unreadable> {
        let (messages, frame) = self.read(target, call)?;
        let counted = call.tokens.parts(target, messages, frame.clone()).await;
        self.take(counted, frame);
        Ok(())
    }

    /// What has to be counted: the new messages, the first time the operator's before them; the frame, unless it is the last one.
    fn read(&mut self, target: &Target, call: &Call<'_>) -> Result<(Vec<Bytes>, Option<Bytes>), Unreadable> {
        let is_first = self.slices == 0;
        let new = History::read(&call.messages[self.slices..])?.entries;
        self.slices = call.messages.len();
        let system = call.system.filter(|_| is_first).cloned();
        let messages = system.into_iter().chain(new.iter().map(|entry| entry.bytes.clone())).collect();
        let can_be_cut = |entry: &Entry| entry.role == Role::Tool && content::text(&entry.bytes).is_some();
        self.can_be_cut.extend(new.iter().map(can_be_cut));
        self.entries.extend(new);
        let frame = (self.from == 0).then(|| (call.frame)(target)).filter(|frame| *frame != self.frame);
        Ok((messages, frame))
    }

    fn take(&mut self, (mut tokens, frame_tokens): (Vec<u64>, u64), frame: Option<Bytes>) {
        if self.tokens.len() + tokens.len() > self.entries.len() {
            self.system_tokens = tokens.remove(0);
        }
        self.tokens.extend(tokens);
        if let Some(frame) = frame {
            (self.frame, self.frame_tokens) = (frame, frame_tokens);
        }
    }

    /// The tokens of everything.
    pub(super) fn total(&self, scale: u64) -> u64 {
        self.around(scale) + self.tokens.iter().map(|tokens| scaled(*tokens, scale)).sum::<u64>()
    }

    /// What becomes of it, and how many tokens that has.
    pub(super) fn fit(&self, bound: &Bound, call: &Call<'_>, scale: u64) -> (Fitted, u64) {
        let pieces = self.pieces(bound, scale);
        // The newest turn of a run is as long as its tools may make it, whatever was guessed.
        let budget = if bound.is_guess { rule::newest(&pieces) + bound.budget } else { bound.budget };
        let mut context = Context::of(bound.room, budget, bound.is_guess);
        context.tools = scaled(self.frame_tokens, scale);
        context.system = scaled(self.system_tokens, scale);
        let plan = budget.checked_sub(self.around(scale)).and_then(|room| rule::plan(&pieces, room));
        let (fits, plan) = (plan.is_some(), plan.unwrap_or_default());
        let (messages, sent) = self.carried_out(&plan, &pieces, &mut context);
        for piece in sent {
            *if piece.role == Role::System { &mut context.system } else { &mut context.transcript } += piece.tokens;
        }
        let (total, context) = (context.prompt(), Box::new(context));
        let fitted = if !fits && !bound.is_guess {
            Fitted::TooLong(context)
        } else if plan.dropped.is_empty() && plan.shortened.is_empty() {
            Fitted::AsItIs(Some(context))
        } else {
            Fitted::Cut(self.slices(call, &messages), context)
        };
        (fitted, total)
    }

    fn pieces(&self, bound: &Bound, scale: u64) -> Vec<Piece> {
        let piece = |((entry, tokens), can_be_cut): ((&Entry, &u64), &bool)| {
            let tokens = scaled(*tokens, scale);
            let least = if *can_be_cut && !bound.is_guess { LEAST.min(tokens) } else { tokens };
            Piece { role: entry.role, tokens, least }
        };
        self.entries.iter().zip(&self.tokens).zip(&self.can_be_cut).map(piece).collect()
    }

    /// The messages that are left, and as the rule sees them; what went is put into the account.
    fn carried_out(&self, plan: &Plan, pieces: &[Piece], context: &mut Context) -> (Vec<Bytes>, Vec<Piece>) {
        (context.dropped_turns, context.dropped_messages) = (plan.turns, plan.dropped.len());
        let mut messages = Vec::with_capacity(self.entries.len() - plan.dropped.len());
        let mut left = Vec::with_capacity(messages.capacity());
        for (at, (entry, piece)) in self.entries.iter().zip(pieces).enumerate() {
            if plan.dropped.binary_search(&at).is_ok() {
                continue;
            }
            let mut message = entry.bytes.clone();
            let mut piece = *piece;
            if let Some((_, most)) = plan.shortened.iter().find(|(shortened, _)| *shortened == at) {
                let short = shortened(&message, piece.tokens, *most);
                context.shortened.push(Shortened { call: entry.answers.clone().unwrap_or_default(), left_out: short.left_out });
                (message, piece.tokens) = (short.message, short.tokens);
            }
            messages.push(message);
            left.push(piece);
        }
        (messages, left)
    }

    /// The inside of the list: the slices that are none of our business as they are, then these messages.
    fn slices(&self, call: &Call<'_>, messages: &[Bytes]) -> Vec<Bytes> {
        let mut slices = call.messages[..self.from].to_vec();
        if !slices.is_empty() && !messages.is_empty() {
            slices.push(Bytes::from_static(b","));
        }
        slices.extend(history::segments(messages));
        slices
    }

    fn around(&self, scale: u64) -> u64 {
        scaled(self.frame_tokens, scale) + scaled(self.system_tokens, scale)
    }
}

fn scaled(tokens: u64, scale: u64) -> u64 {
    tokens.saturating_mul(scale).div_ceil(ONE)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolgate_config::check::{Source, read};

    use super::*;
    use crate::targets::Targets;
    use crate::tokens::Tokens;

    #[test]
    fn the_reserve_is_the_limit_that_is_sent_or_a_part_of_the_window() {
        let table = [
            // The provider, its model, the window in the file, the limit of the call; the reserve.
            ("openai", "gpt-4o-mini", "", None, 16_384),
            ("openai", "gpt-4o-mini", ", context_window: 20000", None, 5000),
            ("openai", "gpt-4o-mini", "", Some(9), 9),
            ("anthropic", "claude-haiku-4-5", "", None, 64_000),
            ("anthropic", "claude-haiku-4-5", ", context_window: 2000", None, 1000),
            ("anthropic", "unheard-of", ", context_window: 100000", None, 4096),
            ("anthropic", "unheard-of", ", context_window: 100000", Some(500), 500),
            ("anthropic", "unheard-of", "", None, 2048),
        ];
        let (tokens, frame) = (Tokens::default(), |_: &Target| Bytes::new());
        for (kind, model, window, output_limit, expected) in table {
            let file = format!(
                "providers: {{ p: {{ kind: {kind}, base_url: \"http://127.0.0.1:1\" }} }}\n\
                 models: {{ m: {{ provider: p, upstream_model: {model}{window} }} }}\n"
            );
            let config = read(&Source { path: Path::new("toolgate.yaml"), text: &file, env: &|_| None }).unwrap();
            let targets = Targets::of(&config, &config.model("m").unwrap());
            let call = Call { tokens: &tokens, messages: &[], system: None, around: 0, frame: &frame, output_limit };
            assert_eq!(Bound::of(targets.current(), &call, 1, false).room.reserve, expected, "{kind} {model}{window}");
        }
    }
}
