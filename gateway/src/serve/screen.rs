//! What the caller of a stream sees: one role, one id, one finish reason, one usage chunk if it asked for one, one `[DONE]`, however many
//! rounds there were.

use std::sync::Arc;

use toolgate_policies::redact::{Counts, Redactor};

use crate::reply::Outlet;
use crate::talk::{Ending, Leftover, Talk, Words};
use crate::veil::Veil;
use crate::wire::chunk::Outfit;
use crate::wire::spoken::Change;
use crate::wire::{Chunk, Usage, finish, message, object, sse};

/// The caller's side of a stream.
pub(super) struct Screen {
    outlet: Outlet,
    veil: Veil<Chunk, Dress>,
    /// The model's name as a JSON string.
    model: String,
    id: Option<String>,
    role_seen: bool,
    calls_seen: bool,
    finish_seen: bool,
}

/// How a chunk goes out.
#[derive(Clone, Copy, Debug)]
struct Dress {
    /// The caller has seen the role by then.
    role_seen: bool,
    with_usage: bool,
}

impl Screen {
    /// `redactor`: what takes secrets out of what is shown.
    pub(super) fn new(outlet: Outlet, model: String, redactor: &Arc<Redactor>) -> Self {
        let veil = Veil::new(redactor);
        Self { outlet, veil, model, id: None, role_seen: false, calls_seen: false, finish_seen: false }
    }

    pub(super) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// Shows a chunk as it came, but for what is the gateway's own.
    pub(super) fn show(&mut self, chunk: &Chunk) {
        if chunk.is_of_the_first() {
            if chunk.only_repeats_role(self.role_seen) {
                return;
            }
            if !self.role_seen && !chunk.has_role() {
                self.write(&chunk.as_beginning(), false);
                self.role_seen = true;
            }
        }
        self.write(chunk, false);
        self.role_seen |= chunk.has_role() && chunk.is_of_the_first();
        self.calls_seen |= chunk.has_calls;
        self.finish_seen |= chunk.finish().is_some();
        if self.id.is_none() {
            self.id = chunk.id().map(str::to_owned);
        }
    }

    /// Shows what the last round left for the end, the run's usage where it is wanted, and the end mark.
    pub(super) fn end(&mut self, ending: Ending, talk: &Talk, left: &Leftover, usage: Option<RunUsage<'_>>) {
        match ending.words {
            Words::OwnCalls => self.show_calls(talk, left),
            Words::AsTheyAre => {
                left.held.iter().chain(&left.finish).for_each(|chunk| self.show(chunk));
                self.show_missing_finish(left);
            }
            Words::WithoutCalls => self.show_made(left, left.unseen.as_deref()),
            Words::Instead(sentence) => self.show_made(left, Some(&object::quoted(sentence))),
        }
        self.clear();
        if let Some(usage) = usage {
            self.show_usage(left, usage);
        }
        self.outlet.write(|out| sse::write(out, |out| out.extend_from_slice(sse::END_MARK)));
    }

    /// What was said beside the calls, then the caller's calls, whole and numbered anew.
    fn show_calls(&mut self, talk: &Talk, left: &Leftover) {
        let last = left.finish.as_ref().and_then(Chunk::without_calls);
        left.held.iter().chain(&last).for_each(|chunk| self.show(chunk));
        let arguments = |at: usize| left.arguments.get(at).map_or("\"{}\"", String::as_str);
        let calls = message::calls_in_delta(talk.returned().map(|(at, call)| (call, arguments(at))));
        if let Some(sample) = &left.sample {
            self.show(&sample.as_calls(&calls));
            self.show(&sample.as_ending(None, finish::TOOL_CALLS));
        }
    }

    fn show_made(&mut self, left: &Leftover, content: Option<&str>) {
        if let Some(sample) = &left.sample {
            self.show(&sample.as_ending(content, finish::LENGTH));
        }
    }

    /// Some providers end with their end mark alone; callers wait for a reason.
    fn show_missing_finish(&mut self, left: &Leftover) {
        if let Some(sample) = left.sample.as_ref().filter(|_| !self.finish_seen) {
            let finish = if self.calls_seen { finish::TOOL_CALLS } else { finish::STOP };
            self.show(&sample.as_ending(None, finish));
        }
    }

    fn show_usage(&mut self, left: &Leftover, usage: RunUsage<'_>) {
        let own = left.usage.as_ref().filter(|_| usage.rounds == 1);
        match (own, &left.sample) {
            (Some(own), _) => self.write(own, true),
            (None, Some(sample)) => self.write(&sample.as_usage(&usage.sum.render()), true),
            (None, None) => {}
        }
    }

    /// Nothing more comes of what the model says: what is held back goes out.
    pub(super) fn clear(&mut self) {
        let Self { outlet, veil, model, id, .. } = self;
        veil.finish(|chunk, dress, changes| put(outlet, (model, id.as_deref()), chunk, dress, changes));
    }

    /// Whether anything is held back.
    pub(super) fn holds(&self) -> bool {
        self.veil.holds()
    }

    /// Nothing has come for a while: a few letters are held back no longer.
    pub(super) fn let_go(&mut self) {
        let Self { outlet, veil, model, id, .. } = self;
        veil.let_go(|chunk, dress, changes| put(outlet, (model, id.as_deref()), chunk, dress, changes));
    }

    /// The stream has failed: of what is held back only that goes out which can be half of no secret.
    pub(super) fn break_off(&mut self) {
        let Self { outlet, veil, model, id, .. } = self;
        veil.break_off(|chunk, dress, changes| put(outlet, (model, id.as_deref()), chunk, dress, changes));
    }

    /// How much is held back, in bytes.
    pub(super) fn held(&self) -> usize {
        self.veil.bytes()
    }

    /// What was taken out since this was asked last.
    pub(super) fn take_counts(&mut self) -> Counts {
        self.veil.take_counts()
    }

    fn write(&mut self, chunk: &Chunk, with_usage: bool) {
        let dress = Dress { role_seen: self.role_seen && chunk.is_of_the_first(), with_usage };
        let Self { outlet, veil, model, id, .. } = self;
        veil.take(chunk, dress, |chunk, dress, changes| put(outlet, (model, id.as_deref()), chunk, dress, changes));
    }
}

fn put(outlet: &Outlet, (model, id): (&str, Option<&str>), chunk: &Chunk, dress: Dress, changes: &[Change]) {
    let outfit = Outfit { model, id, role_seen: dress.role_seen, with_usage: dress.with_usage, changes };
    outlet.write(|out| chunk.write(&outfit, out));
}

/// What a run used, for its caller.
pub(super) struct RunUsage<'u> {
    /// All rounds together.
    pub(super) sum: &'u Usage,
    /// How many there were: of one round the provider's own chunk goes on.
    pub(super) rounds: u32,
}
