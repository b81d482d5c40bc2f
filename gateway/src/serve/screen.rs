//! What the caller of a stream sees: one role, one id, one finish reason, one usage chunk if it asked for one, one `[DONE]`, however many
//! rounds there were.

use crate::reply::Outlet;
use crate::talk::{Ending, Leftover, Talk, Words};
use crate::wire::chunk::Outfit;
use crate::wire::{Chunk, Usage, finish, message, object, sse};

/// The caller's side of a stream.
pub(super) struct Screen {
    outlet: Outlet,
    /// The model's name as a JSON string.
    model: String,
    id: Option<String>,
    role_seen: bool,
    calls_seen: bool,
    finish_seen: bool,
}

impl Screen {
    pub(super) fn new(outlet: Outlet, model: String) -> Self {
        Self { outlet, model, id: None, role_seen: false, calls_seen: false, finish_seen: false }
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

    fn show_usage(&self, left: &Leftover, usage: RunUsage<'_>) {
        let own = left.usage.as_ref().filter(|_| usage.rounds == 1);
        match (own, &left.sample) {
            (Some(own), _) => self.write(own, true),
            (None, Some(sample)) => self.write(&sample.as_usage(&usage.sum.render()), true),
            (None, None) => {}
        }
    }

    fn write(&self, chunk: &Chunk, with_usage: bool) {
        let role_seen = self.role_seen && chunk.is_of_the_first();
        let outfit = Outfit { model: &self.model, id: self.id.as_deref(), role_seen, with_usage };
        self.outlet.write(|out| chunk.write(&outfit, out));
    }
}

/// What a run used, for its caller.
pub(super) struct RunUsage<'u> {
    /// All rounds together.
    pub(super) sum: &'u Usage,
    /// How many there were: of one round the provider's own chunk goes on.
    pub(super) rounds: u32,
}
