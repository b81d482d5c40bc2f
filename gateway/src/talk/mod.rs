//! The conversation of one run as a pure state machine: what to do next, and nothing else.
//!
//! A [`Talk`] holds no socket, no clock and no `async`; time is an argument. It is a plain value that serialises, so that a run can be put
//! aside and taken up again by whoever comes next. The driver in `serve` asks [`Talk::turn`] what to do, does it, and tells the talk what
//! came of it: [`Talk::heard`] after a model call, [`Talk::learn`] after tool calls.
//!
//! Calls of tools that the caller brought go back to it. Where that ends a request, the talk is a pause: [`Talk::hidden`] is what the caller
//! does not see of it, and [`Talk::resumed`] goes on with it when the caller comes back.

mod learned;
mod listening;
mod misfits;
pub mod paused;
mod repeats;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolgate_tools::foreign::Seal;
use toolgate_tools::said::Said;
use toolgate_tools::toolbox::Call;

pub use self::learned::Learned;
pub use self::listening::{Broken, Kind, Leftover, Listening};
use self::misfits::Misfits;
use self::repeats::Repeats;
use crate::wire::{Finish, Round, Usage, message};

/// How far a run may go. The rule of each stands at [`Talk::closing_reason`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Rounds that may ask for tools.
    pub max_rounds: u32,
    /// Tool calls.
    pub max_calls: u32,
    /// Time from the start.
    pub max_time: Duration,
    /// What it may cost, in nano-dollars.
    pub max_cost: Option<u64>,
}

/// What to do next.
#[derive(Debug)]
pub enum Turn {
    /// Ask the model.
    Ask(Round),
    /// Run these calls, and [`Talk::learn`] what each returned, in their order.
    Run(Vec<Call>),
    /// Nothing: the run is over.
    Done(Ending),
}

/// What a model said in one round.
#[derive(Debug, Default)]
pub struct Answer {
    /// Its text as a raw JSON value.
    pub content: Option<String>,
    /// It says anything.
    pub has_text: bool,
    /// Thoughts that its provider must get back, as a raw JSON list.
    pub thoughts: Option<String>,
    /// What it thought aloud, a raw JSON string.
    pub aloud: Option<String>,
    /// The calls that it asks for.
    pub calls: Vec<Call>,
    /// The last call stops in the middle of its arguments.
    pub is_cut: bool,
    /// Why it ended.
    pub finish: Finish,
    /// What it used.
    pub usage: Usage,
    /// The usage was counted here, not by the provider.
    pub estimated: bool,
    /// What it cost, in nano-dollars, as far as that is known.
    pub cost: u64,
}

/// Why a run was brought to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncation {
    /// `max_rounds` was reached.
    MaxRounds,
    /// `max_calls` was reached.
    MaxCalls,
    /// `max_time` was reached.
    MaxTime,
    /// `max_cost_usd` was reached.
    MaxCost,
    /// A budget has no room for more.
    Budget,
    /// The model's window has no room for more.
    Context,
    /// A call was about to give the same result for the third time.
    RepeatedCall,
}

impl Truncation {
    /// The word of headers, traces and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxRounds => "max_rounds",
            Self::MaxCalls => "max_calls",
            Self::MaxTime => "max_time",
            Self::MaxCost => "max_cost",
            Self::Budget => "budget",
            Self::Context => "context",
            Self::RepeatedCall => "repeated_call",
        }
    }
}

/// How a run ended, and what is to be made of the model's last words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Set: the run was brought to its end.
    pub truncated: Option<Truncation>,
    /// What the caller reads.
    pub words: Words,
}

/// What the caller reads at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// What the model said last, as it said it.
    AsTheyAre,
    /// What the model said last, without the calls that it asked for, and marked as cut off.
    WithoutCalls,
    /// This sentence, marked as cut off: the model said nothing that could be shown.
    Instead(&'static str),
    /// What the model said last, of its calls those of the caller's own tools: [`Talk::returned`].
    OwnCalls,
}

/// A model said that it asks for tools, and asked for none, and said nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct SaidNothing;

/// How much of what is no text a run shows its model, in bytes: all of it is sent again with every round, and kept over pauses.
const MOST_SHOWN: usize = 8 * 1024 * 1024;

/// The names of the tools that the caller brought.
pub type Own = BTreeSet<String>;

/// The state of a run between two steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Talk {
    limits: Limits,
    offers_tools: bool,
    own: Own,
    stage: Stage,
    added: Vec<String>,
    rounds: u32,
    asked: u32,
    calls: u32,
    executed: u32,
    usage: Usage,
    /// In nano-dollars.
    cost: u64,
    /// The last round said something.
    has_text: bool,
    repeats: Repeats,
    #[serde(default)]
    misfits: Misfits,
    /// What results stand between: one mark for the whole run, so that none of them can imitate that of another.
    #[serde(default)]
    seal: Seal,
    /// How much of what is no text the model was shown, in bytes.
    #[serde(default)]
    shown: usize,
    /// It goes on after a pause.
    is_resumed: bool,
    /// How long it took before the last pause, the pauses themselves not counted.
    took: Duration,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Stage {
    Asking {
        round: Round,
        truncated: Option<Truncation>,
    },
    Running(Vec<Planned>),
    /// The caller is to answer some calls of the last round, which are these.
    Paused {
        calls: Vec<Planned>,
        /// Why the next model call is the closing one, whatever the caps are by then.
        closing: Option<Truncation>,
    },
    /// A run that is over is not put aside, so its ending is not stored.
    #[serde(skip)]
    Done(Ending),
}

/// A call of the round under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Planned {
    call: Call,
    fate: Fate,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Fate {
    /// It is run.
    Run,
    /// It is answered with a sentence, for this reason.
    Barred(Truncation),
    /// It is refused: the run has this tool no longer.
    Withdrawn,
    /// It is the caller's.
    Returned,
}

/// What keeps a call from being run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    /// A cap, or what else brings the run to its end.
    Cap(Truncation),
    /// The run has this tool no longer.
    Misfits,
}

/// What the caller does not see of a run that pauses.
#[derive(Debug, PartialEq, Eq)]
pub struct Hidden<'t> {
    /// The messages of the rounds before the last.
    pub before: &'t [String],
    /// What the model said last, with all its calls.
    pub turn: &'t str,
    /// Its calls in their order: the id, and the message with the result; `None`: the caller has it.
    pub calls: Vec<(&'t str, Option<&'t str>)>,
}

impl Hidden<'_> {
    /// Whether the last round asked for anything but the caller's own tools.
    fn has_results(&self) -> bool {
        self.calls.iter().any(|(_, result)| result.is_some())
    }
}

impl Talk {
    /// A run that begins. Without tools it is one plain call, whatever the model says. Calls of `own` tools are the caller's business.
    pub fn new(limits: Limits, offers_tools: bool, own: Own) -> Self {
        Self {
            limits,
            offers_tools,
            own,
            stage: Stage::Asking { round: Round::First, truncated: None },
            added: Vec::new(),
            rounds: 0,
            asked: 0,
            calls: 0,
            executed: 0,
            usage: Usage::default(),
            cost: 0,
            has_text: false,
            repeats: Repeats::default(),
            misfits: Misfits::default(),
            seal: Seal::random(),
            shown: 0,
            is_resumed: false,
            took: Duration::ZERO,
        }
    }

    /// The same run in a request that answers what was returned. Its counts go on, with the caps that hold now; what it used and how often it
    /// asked are told of each request alone.
    #[must_use]
    pub fn resumed(self, limits: Limits, offers_tools: bool, own: Own) -> Self {
        let closing = match self.stage {
            Stage::Paused { closing, .. } => closing,
            Stage::Asking { .. } | Stage::Running(_) | Stage::Done(_) => None,
        };
        let mut talk = Self {
            rounds: self.rounds,
            calls: self.calls,
            cost: self.cost,
            repeats: self.repeats,
            misfits: self.misfits,
            seal: self.seal,
            shown: self.shown,
            took: self.took,
            is_resumed: true,
            ..Self::new(limits, offers_tools, own)
        };
        if let Some(reason) = closing.or(talk.used_up()) {
            talk.stage = Stage::Asking { round: Round::Closing, truncated: Some(reason) };
        }
        talk
    }

    /// What to do next, `elapsed` after the run began.
    pub fn turn(&mut self, elapsed: Duration) -> Turn {
        let time_left = self.time_left();
        match &mut self.stage {
            Stage::Asking { round, truncated } => {
                let may_close = self.is_resumed || (self.offers_tools && *round != Round::First);
                if may_close && truncated.is_none() && elapsed >= time_left {
                    (*round, *truncated) = (Round::Closing, Some(Truncation::MaxTime));
                }
                Turn::Ask(*round)
            }
            Stage::Running(planned) => {
                let runs = |planned: &&mut Planned| planned.fate == Fate::Run;
                if elapsed >= time_left {
                    planned.iter_mut().filter(runs).for_each(|planned| planned.fate = Fate::Barred(Truncation::MaxTime));
                }
                Turn::Run(planned.iter_mut().filter(runs).map(|planned| planned.call.clone()).collect())
            }
            Stage::Paused { .. } => Turn::Done(Ending { truncated: None, words: Words::OwnCalls }),
            Stage::Done(ending) => Turn::Done(*ending),
        }
    }

    /// The model's round did not come to its end in the run's time: it is dropped. Whether the closing call follows: not when this was the
    /// closing one, or the run offers no tools.
    #[must_use]
    pub fn ran_out_of_time(&mut self) -> bool {
        match self.stage {
            Stage::Asking { truncated: None, .. } if self.offers_tools => {
                self.asked += 1;
                self.stage = Stage::Asking { round: Round::Closing, truncated: Some(Truncation::MaxTime) };
                true
            }
            _ => false,
        }
    }

    /// The budgets have no room for the next model call: the run ends with what was said so far. Whether it can: not where nothing was asked
    /// yet, which is a refusal.
    #[must_use]
    pub fn ran_out_of_budget(&mut self) -> bool {
        self.ran_out(Truncation::Budget, "A budget has no room for the rest of this answer.")
    }

    /// Not even what must stay of the transcript fits into the model's window: the run ends with what was said so far, likewise.
    #[must_use]
    pub fn ran_out_of_context(&mut self) -> bool {
        self.ran_out(Truncation::Context, "The conversation has outgrown the model's context window.")
    }

    fn ran_out(&mut self, of: Truncation, sentence: &'static str) -> bool {
        if self.asked == 0 || !matches!(self.stage, Stage::Asking { .. }) {
            return false;
        }
        let words = if self.has_text { Words::WithoutCalls } else { Words::Instead(sentence) };
        self.stage = Stage::Done(Ending { truncated: Some(of), words });
        true
    }

    /// What is left of `max_cost_usd`, in nano-dollars; `None`: there is no such cap.
    pub fn cost_left(&self) -> Option<u64> {
        self.limits.max_cost.map(|most| most.saturating_sub(self.cost))
    }

    /// Takes what the model said.
    ///
    /// # Errors
    /// [`SaidNothing`].
    pub fn heard(&mut self, mut answer: Answer) -> Result<(), SaidNothing> {
        // Nothing was asked, so nobody can have answered.
        let Stage::Asking { truncated: closed_by, .. } = self.stage else { return Ok(()) };
        self.asked += 1;
        self.usage.add(&answer.usage);
        self.cost = self.cost.saturating_add(answer.cost);
        self.has_text = answer.has_text;
        // Half a call is never run, for its whole is not known; whole ones before it are as good as ever.
        let mut is_half = !answer.calls.is_empty() && answer.is_cut && answer.finish == Finish::Length;
        if is_half && answer.calls.len() > 1 {
            answer.calls.pop();
            is_half = false;
        }
        if closed_by.is_some() || (self.offers_tools && is_half) {
            self.stage = Stage::Done(Ending { truncated: closed_by, words: last_words(&answer) });
        } else if self.offers_tools && !answer.calls.is_empty() {
            self.plan(answer);
        } else if self.offers_tools && answer.finish == Finish::ToolCalls && !answer.has_text {
            return Err(SaidNothing);
        } else {
            self.stage = Stage::Done(Ending { truncated: None, words: Words::AsTheyAre });
        }
        Ok(())
    }

    /// Takes what the calls of the last [`Turn::Run`] came to, in their order. Where calls of the round are the caller's, the run pauses.
    pub fn learn(&mut self, learned: Vec<Learned>) {
        let Stage::Running(planned) = &mut self.stage else { return };
        let planned = std::mem::take(planned);
        self.cost = learned.iter().fold(self.cost, |sum, learned| sum.saturating_add(learned.cost));
        let unpaid = learned.iter().find_map(|learned| learned.unpaid);
        let closing = closing_reason(&planned, unpaid);
        let mut learned = learned.into_iter();
        for Planned { call, fate } in &planned {
            let mut output = match fate {
                Fate::Returned => continue,
                Fate::Barred(Truncation::RepeatedCall) => Learned::said(Said::Repeated.about(&call.name)),
                Fate::Barred(_) => Learned::said(Said::LimitReached.about(&call.name)),
                Fate::Withdrawn => Learned::said(Said::NotAvailable.about(&call.name)),
                Fate::Run => learned.next().unwrap_or_else(|| Learned::said(Said::Failed.about(&call.name))),
            };
            if *fate == Fate::Run {
                self.repeats.note(call, &output.plain());
                self.misfits.note(&call.name, output.is_misfit);
            }
            self.executed += u32::from(output.executed);
            self.shown += output.keep_media(MOST_SHOWN.saturating_sub(self.shown));
            self.added.push(message::tool(call, &output.sealed(&call.name, &self.seal), &output.media));
        }
        self.stage = if planned.iter().any(|planned| planned.fate == Fate::Returned) {
            Stage::Paused { calls: planned, closing }
        } else {
            let truncated = closing.or(self.used_up());
            let round = if truncated.is_some() { Round::Closing } else { Round::Later };
            Stage::Asking { round, truncated }
        };
    }

    /// The tools that the run has no longer, because their arguments were not valid too often in a row.
    pub fn withdrawn(&self) -> impl Iterator<Item = &str> {
        self.misfits.ended()
    }

    /// The calls of the round under way that are not run, and why.
    pub fn barred(&self) -> impl Iterator<Item = (&Call, Bar)> {
        let planned = match &self.stage {
            Stage::Running(planned) => planned.as_slice(),
            Stage::Asking { .. } | Stage::Paused { .. } | Stage::Done(_) => &[],
        };
        planned.iter().filter_map(|planned| match planned.fate {
            Fate::Barred(truncation) => Some((&planned.call, Bar::Cap(truncation))),
            Fate::Withdrawn => Some((&planned.call, Bar::Misfits)),
            Fate::Run | Fate::Returned => None,
        })
    }

    /// The calls that go back to the caller, each with its place among all calls of the round.
    pub fn returned(&self) -> impl Iterator<Item = (usize, &Call)> {
        let calls = self.paused().iter().enumerate();
        calls.filter(|(_, planned)| planned.fate == Fate::Returned).map(|(at, planned)| (at, &planned.call))
    }

    /// Gives the calls that go back to the caller other ids, where those that the model gave would be taken for those of another run.
    pub fn rename_returned(&mut self, mut rename: impl FnMut(&str) -> String) {
        let Stage::Paused { calls, .. } = &mut self.stage else { return };
        let results = calls.iter().filter(|planned| planned.fate != Fate::Returned).count();
        let turn = self.added.len().checked_sub(results + 1).and_then(|at| self.added.get_mut(at));
        let Some(turn) = turn else { return };
        for planned in calls.iter_mut().filter(|planned| planned.fate == Fate::Returned) {
            let id = rename(&planned.call.id);
            *turn = message::with_other_id(turn, &planned.call.id, &id);
            planned.call.id = id;
        }
    }

    /// What the caller does not see; `None`: the run does not pause.
    pub fn hidden(&self) -> Option<Hidden<'_>> {
        let calls = self.paused();
        let results = calls.iter().filter(|planned| planned.fate != Fate::Returned).count();
        let (added, results) = self.added.split_at_checked(self.added.len().checked_sub(results)?)?;
        let (turn, before) = added.split_last().filter(|_| !calls.is_empty())?;
        let mut results = results.iter().map(String::as_str);
        let result = |planned: &Planned| if planned.fate == Fate::Returned { None } else { results.next() };
        let ids = calls.iter().map(|planned| planned.call.id.as_str());
        let calls = ids.zip(calls.iter().map(result).collect::<Vec<_>>()).collect();
        Some(Hidden { before, turn, calls })
    }

    /// Whether anything of it is hidden from the caller: a first round that asks only for the caller's tools leaves nothing to keep.
    pub fn hides_anything(&self) -> bool {
        self.hidden().is_some_and(|hidden| !hidden.before.is_empty() || hidden.has_results())
    }

    /// Whether the run goes on when the caller comes back: the round that it pauses with asks for the gateway's tools as well. One that asks
    /// for nothing but the caller's is the end of its run, as it is of any other model's.
    pub fn goes_on(&self) -> bool {
        self.hidden().is_some_and(|hidden| hidden.has_results())
    }

    /// The run is put aside, `elapsed` after its request began.
    pub fn put_aside(&mut self, elapsed: Duration) {
        self.took += elapsed;
    }

    /// What is left of `max_time` at the beginning of the request.
    pub fn time_left(&self) -> Duration {
        self.limits.max_time.saturating_sub(self.took)
    }

    /// The messages that earlier rounds added, as JSON, in order.
    pub fn added(&self) -> &[String] {
        &self.added
    }

    /// Model calls so far, the closing one included.
    pub fn asked(&self) -> u32 {
        self.asked
    }

    /// Tool calls executed so far.
    pub fn executed(&self) -> u32 {
        self.executed
    }

    /// What all rounds used together.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    fn paused(&self) -> &[Planned] {
        match &self.stage {
            Stage::Paused { calls, .. } => calls,
            Stage::Asking { .. } | Stage::Running(_) | Stage::Done(_) => &[],
        }
    }

    fn plan(&mut self, answer: Answer) {
        let content = answer.content.as_deref().filter(|_| answer.has_text);
        self.added.push(message::assistant(content, answer.thoughts.as_deref(), &answer.calls));
        self.rounds += 1;
        let plan = |call: Call| {
            let fate = if self.own.contains(&call.name) {
                Fate::Returned
            } else if self.misfits.has_ended(&call.name) {
                Fate::Withdrawn
            } else if self.repeats.would_repeat(&call) {
                Fate::Barred(Truncation::RepeatedCall)
            } else if self.calls >= self.limits.max_calls {
                Fate::Barred(Truncation::MaxCalls)
            } else {
                self.calls += 1;
                Fate::Run
            };
            Planned { call, fate }
        };
        let calls: Vec<Planned> = answer.calls.into_iter().map(plan).collect();
        let nothing_to_run = calls.iter().all(|planned| planned.fate == Fate::Returned);
        self.stage = if nothing_to_run { Stage::Paused { calls, closing: None } } else { Stage::Running(calls) };
    }

    /// The cap that is used up.
    fn used_up(&self) -> Option<Truncation> {
        let caps = [
            (Truncation::MaxCost, self.cost_left() == Some(0)),
            (Truncation::MaxRounds, self.rounds >= self.limits.max_rounds),
            (Truncation::MaxCalls, self.calls >= self.limits.max_calls),
        ];
        caps.into_iter().find(|(_, is_used_up)| *is_used_up).map(|(cap, _)| cap)
    }
}

/// Why the next model call is the closing one: a call was barred, or could not be paid.
fn closing_reason(planned: &[Planned], unpaid: Option<Truncation>) -> Option<Truncation> {
    let barred = planned.iter().find_map(|planned| match planned.fate {
        Fate::Barred(truncation) => Some(truncation),
        Fate::Run | Fate::Withdrawn | Fate::Returned => None,
    });
    barred.or(unpaid)
}

/// What is shown of an answer whose calls nobody will run.
fn last_words(answer: &Answer) -> Words {
    if !answer.has_text {
        Words::Instead("The answer was cut off before it was complete.")
    } else if answer.calls.is_empty() {
        Words::AsTheyAre
    } else {
        Words::WithoutCalls
    }
}

#[cfg(test)]
mod tests;
