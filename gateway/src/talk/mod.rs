//! The conversation of one run as a pure state machine: what to do next, and nothing else.
//!
//! A [`Talk`] holds no socket, no clock and no `async`; time is an argument. It is a plain value that serialises, so that a run can be put
//! aside and taken up again by whoever comes next. The driver in `serve` asks [`Talk::turn`] what to do, does it, and tells the talk what
//! came of it: [`Talk::heard`] after a model call, [`Talk::learn`] after tool calls.

mod listening;
mod repeats;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolgate_tools::said::Said;
use toolgate_tools::toolbox::Call;

pub use self::listening::{Broken, Kind, Leftover, Listening};
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

/// What a call came to.
#[derive(Debug)]
pub struct Learned {
    /// What the model reads.
    pub text: String,
    /// It was executed, however that went.
    pub executed: bool,
    /// What it cost, in nano-dollars.
    pub cost: u64,
    /// It was not executed, because nothing was left to pay for it.
    pub unpaid: Option<Truncation>,
}

impl Learned {
    /// A call that came to nothing but a sentence, and cost nothing.
    pub fn said(text: String) -> Self {
        Self { text, executed: false, cost: 0, unpaid: None }
    }
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
}

/// A model said that it asks for tools, and asked for none, and said nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct SaidNothing;

/// The state of a run between two steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Talk {
    limits: Limits,
    offers_tools: bool,
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
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Stage {
    Asking {
        round: Round,
        truncated: Option<Truncation>,
    },
    Running(Vec<Planned>),
    /// A run that is over is not put aside, so its ending is not stored.
    #[serde(skip)]
    Done(Ending),
}

/// A call of the round under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Planned {
    call: Call,
    /// Why it is not run.
    barred: Option<Truncation>,
}

impl Talk {
    /// A run that begins. Without tools it is one plain call, whatever the model says.
    pub fn new(limits: Limits, offers_tools: bool) -> Self {
        Self {
            limits,
            offers_tools,
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
        }
    }

    /// What to do next, `elapsed` after the run began.
    pub fn turn(&mut self, elapsed: Duration) -> Turn {
        match &mut self.stage {
            Stage::Asking { round, truncated } => {
                if self.offers_tools && truncated.is_none() && *round != Round::First && elapsed >= self.limits.max_time {
                    (*round, *truncated) = (Round::Closing, Some(Truncation::MaxTime));
                }
                Turn::Ask(*round)
            }
            Stage::Running(planned) => {
                if elapsed >= self.limits.max_time {
                    planned.iter_mut().for_each(|planned| planned.barred = planned.barred.or(Some(Truncation::MaxTime)));
                }
                Turn::Run(planned.iter().filter(|planned| planned.barred.is_none()).map(|planned| planned.call.clone()).collect())
            }
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

    /// Takes what the calls of the last [`Turn::Run`] came to, in their order.
    pub fn learn(&mut self, learned: Vec<Learned>) {
        let Stage::Running(planned) = &mut self.stage else { return };
        let planned = std::mem::take(planned);
        self.cost = learned.iter().fold(self.cost, |sum, learned| sum.saturating_add(learned.cost));
        let unpaid = learned.iter().find_map(|learned| learned.unpaid);
        let closing = self.closing_reason(&planned, unpaid);
        let mut learned = learned.into_iter();
        for Planned { call, barred } in planned {
            let output = match barred {
                Some(Truncation::RepeatedCall) => Learned::said(Said::Repeated.about(&call.name)),
                Some(_) => Learned::said(Said::LimitReached.about(&call.name)),
                None => learned.next().unwrap_or_else(|| Learned::said(Said::Failed.about(&call.name))),
            };
            if barred.is_none() {
                self.repeats.note(&call, &output.text);
            }
            self.executed += u32::from(output.executed);
            self.added.push(message::tool(&call, &output.text));
        }
        let round = if closing.is_some() { Round::Closing } else { Round::Later };
        self.stage = Stage::Asking { round, truncated: closing };
    }

    /// The calls of the round under way that are not run, and why.
    pub fn barred(&self) -> impl Iterator<Item = (&Call, Truncation)> {
        let planned = match &self.stage {
            Stage::Running(planned) => planned.as_slice(),
            Stage::Asking { .. } | Stage::Done(_) => &[],
        };
        planned.iter().filter_map(|planned| Some((&planned.call, planned.barred?)))
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

    fn plan(&mut self, answer: Answer) {
        let content = answer.content.as_deref().filter(|_| answer.has_text);
        self.added.push(message::assistant(content, answer.thoughts.as_deref(), &answer.calls));
        self.rounds += 1;
        let plan = |call: Call| {
            let barred = if self.repeats.would_repeat(&call) {
                Some(Truncation::RepeatedCall)
            } else if self.calls >= self.limits.max_calls {
                Some(Truncation::MaxCalls)
            } else {
                self.calls += 1;
                None
            };
            Planned { call, barred }
        };
        self.stage = Stage::Running(answer.calls.into_iter().map(plan).collect());
    }

    /// Why the next model call is the closing one: a call was barred, or a cap is used up.
    fn closing_reason(&self, planned: &[Planned], unpaid: Option<Truncation>) -> Option<Truncation> {
        let barred = planned.iter().find_map(|planned| planned.barred);
        barred
            .or(unpaid)
            .or((self.cost_left() == Some(0)).then_some(Truncation::MaxCost))
            .or((self.rounds >= self.limits.max_rounds).then_some(Truncation::MaxRounds))
            .or((self.calls >= self.limits.max_calls).then_some(Truncation::MaxCalls))
    }
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
