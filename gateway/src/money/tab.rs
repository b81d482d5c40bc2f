//! The tab of one request: what it holds, what it has spent, and which of its rows are on their way to the disk.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use toolgate_config::money::NanoUsd;
use toolgate_config::price::Billed;
use toolgate_policies::budget::{self, Call, Counted, Output};
use toolgate_policies::counters::{Denied, Hold, RateReading, Taken, Taking, Used};
use toolgate_policies::facts::Caller;
use toolgate_policies::limits::{Limit, What as Counts};
use toolgate_tools::net::Segments;

use super::{Closed, Money};
use crate::gateway::InForce;
use crate::store::{Row, Ticket, What};
use crate::targets::Target;
use crate::tokens::Tokens;
use crate::trace::{Round, Run, ToolCall, TraceId};

/// What one request holds and has spent. Dropping it gives back what it holds, and does nothing else.
pub struct Tab {
    payer: Payer,
    /// What is held as long as the run: its place among those at the same time, the request itself.
    run: Option<Hold>,
    /// What is held for the call under way.
    call: Option<Hold>,
    /// The configuration by whose limits it is held.
    held_by: u64,
    /// A call is under way whose row is not written.
    is_open: bool,
    /// The request is counted among the requests of its budgets.
    counted: bool,
    /// The last row that was handed over.
    ticket: Option<Ticket>,
    /// How the rates stood when the request was let in.
    rates: Vec<RateReading>,
}

/// A model call that somebody has to pay for.
pub struct Order<'o> {
    /// What counts tokens.
    pub tokens: &'o Tokens,
    /// The configuration in force.
    pub in_force: &'o InForce,
    /// Who answers.
    pub target: &'o Target,
    /// What is sent.
    pub sent: &'o Segments,
    /// The tokens of the prompt, where they are not counted from what is sent.
    pub prompt: Option<u64>,
    /// The output limit of the request.
    pub output_limit: Option<u64>,
    /// How many answers are asked for at once.
    pub answers: u64,
}

/// Why a call may not be made.
#[derive(Clone, Debug)]
pub enum Refused {
    /// A limit is in the way.
    By(Denied),
    /// A budget in USD is on the path, and nobody knows what the call would cost.
    Unpriced,
    /// What is spent cannot be counted or written down now.
    Closed(Closed),
}

impl From<Closed> for Refused {
    fn from(closed: Closed) -> Self {
        Self::Closed(closed)
    }
}

impl Order<'_> {
    /// The call as the rules see it, with its prompt counted exactly.
    pub async fn exact(&self, opens: bool) -> Call {
        let prompt = match self.prompt {
            Some(tokens) => tokens,
            None => self.tokens.prompt(self.target, self.sent).await,
        };
        self.call(prompt, Counted::Exactly, opens)
    }

    /// The same, counted in no time, where somebody asks for it at all.
    fn at_once(&self, path: &[Arc<Limit>], opens: bool) -> Call {
        let (prompt, counted) = match self.prompt {
            Some(tokens) => (tokens, Counted::Exactly),
            None if budget::counts_tokens(path) => self.tokens.prompt_at_once(self.sent),
            None => (0, Counted::Exactly),
        };
        self.call(prompt, counted, opens)
    }

    fn call(&self, prompt: u64, counted: Counted, opens: bool) -> Call {
        let output = self.output_limit.map_or_else(|| Output::Model(self.target.most_output()), Output::Asked);
        Call { price: self.target.price, prompt, counted, output, answers: self.answers, opens }
    }
}

impl Tab {
    /// The tab of a run that begins.
    pub fn open(payer: Payer) -> Self {
        Self { payer, run: None, call: None, held_by: 0, is_open: false, counted: false, ticket: None, rates: Vec::new() }
    }

    /// The limits on its path, by the configuration in force.
    pub fn path(&self, in_force: &InForce) -> Vec<Arc<Limit>> {
        in_force.limits.path(&in_force.config, &self.payer.caller, &self.payer.model)
    }

    /// Takes the worst cost of a model call from every limit on its path, and with the first call the request's own place. What an earlier
    /// call of the run still held is given back. Returns the output limit that the call must have, where the budgets have no room for more.
    ///
    /// # Errors
    /// [`Refused`]; then nothing of this call is held.
    pub async fn reserve(&mut self, money: &Money, order: &Order<'_>) -> Result<Option<u64>, Refused> {
        (self.call, self.held_by) = (None, order.in_force.generation);
        money.ledger.is_well().map_err(Closed::from)?;
        let (path, opens) = (self.path(order.in_force), self.run.is_none());
        let mut call = order.at_once(&path, opens);
        let mut taking = money.take(&call.wants(&path).map_err(|_| Refused::Unpriced)?).await?;
        if matches!(&taking, Taking::Denied(denied) if denied.was_rough) {
            call = order.exact(opens).await;
            taking = money.take(&call.wants(&path).map_err(|_| Refused::Unpriced)?).await?;
        }
        match taking {
            Taking::Taken(taken) => Ok(self.take(money, taken, opens, call.output.most())),
            Taking::Denied(denied) => {
                self.rates.clone_from(&denied.rates);
                Err(Refused::By(denied))
            }
            Taking::Unseeded(_) => Err(Refused::Closed(Closed("budgets without a seed".to_owned()))),
        }
    }

    /// Takes the price of a tool call.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn reserve_tool(&self, money: &Money, in_force: &InForce, price: NanoUsd) -> Result<Hold, Refused> {
        match money.take(&budget::tool_wants(&self.path(in_force), price)).await? {
            Taking::Taken(taken) => Ok(money.hold(taken.held)),
            Taking::Denied(denied) => Err(Refused::By(denied)),
            Taking::Unseeded(_) => Err(Refused::Closed(Closed("budgets without a seed".to_owned()))),
        }
    }

    fn take(&mut self, money: &Money, taken: Taken, opens: bool, most: u64) -> Option<u64> {
        let (run, call) = money.hold(taken.held).split(budget::is_of_the_run);
        if opens {
            self.run = Some(run);
        }
        self.call = Some(call);
        if !taken.rates.is_empty() {
            self.rates = taken.rates;
        }
        (taken.output < most).then_some(taken.output)
    }

    /// What is held for the call under way: the proof that every limit on its path was asked.
    pub fn held(&self) -> Option<&Hold> {
        self.call.as_ref()
    }

    /// A call leaves now.
    pub fn sent(&mut self) {
        self.is_open = true;
    }

    /// A model call has ended, as its entry in the trace says: its row is written, and what it used takes the place of what was held. What
    /// was held stays where nothing was used: the call may be tried again.
    pub fn enter(&mut self, money: &Money, in_force: &InForce, number: u32, round: &mut Round) {
        self.is_open = false;
        let billed = round.usage.as_ref().map_or_else(Billed::default, |usage| usage.billed());
        let used_any = round.usage.is_some();
        round.cost = if used_any { round.target.price.map(|price| price.cost(&billed)) } else { Some(NanoUsd(0)) };
        let requests = u32::from(used_any && !self.counted);
        self.counted |= used_any;
        let now = Timestamp::now();
        let what = What::Model { target: Arc::clone(&round.target), attempt: round.attempt };
        self.ticket = Some(money.ledger.write(Row {
            tokens: billed,
            reasoning: round.usage.as_ref().map_or(0, |usage| usage.reasoning()),
            estimated: round.estimated,
            cost: round.cost,
            reported: round.usage.as_ref().and_then(|usage| usage.reported_cost()),
            outcome: round.outcome.as_str(),
            requests,
            ..self.payer.row(number, money.time(now), what)
        }));
        if used_any && let Some(call) = self.call.take() {
            let usd = round.cost.unwrap_or_default().0;
            let used = Used { usd, tokens: billed.total(), requests: 0 };
            self.settle_new(money, in_force, &call, &used, now);
            call.settle(&used, now);
        }
    }

    /// A budget that has come into force since this was held counts it all the same: the ledger, from which it began, did not know of it yet.
    fn settle_new(&self, money: &Money, in_force: &InForce, held: &Hold, used: &Used, now: Timestamp) {
        if in_force.generation != self.held_by {
            let is_new = |limit: &Arc<Limit>| matches!(limit.id.what, Counts::Budget(..)) && !held.covers(limit);
            let new: Vec<_> = self.path(in_force).into_iter().filter(is_new).collect();
            money.nothing_of(&budget::nothing_of(&new)).settle(used, now);
        }
    }

    /// A tool call with a price has ended: it is paid for if the tool was asked at all.
    pub fn enter_tool(&mut self, money: &Money, number: u32, call: &mut ToolCall, hold: Option<Hold>) {
        let Some(price) = call.price else { return };
        let now = Timestamp::now();
        call.cost = Some(price);
        let what = What::Tool { name: Cow::Owned(call.tool.clone()) };
        let outcome = call.outcome.map_or("cancelled", |outcome| outcome.as_str());
        self.ticket =
            Some(money.ledger.write(Row { cost: Some(price), outcome, ..self.payer.row(number, money.time(now), what) }));
        if let Some(hold) = hold {
            hold.settle(&Used { usd: price.0, ..Used::default() }, now);
        }
    }

    /// How the rates stood when the request was let in.
    pub fn rates(&self) -> &[RateReading] {
        &self.rates
    }

    /// The caller has gone: what was under way is entered as far as it came, and everything is given back.
    pub fn abandon(&mut self, money: &Money, in_force: &InForce, run: &mut Run) {
        let number = run.asked;
        if let Some(round) = run.rounds.last_mut() {
            if self.is_open {
                self.enter(money, in_force, number, round);
            }
            // Those that were still waiting for their turn cost nothing.
            let under_way =
                |call: &&mut ToolCall| call.outcome.is_none() && call.price.is_some() && call.at_tool.load(Ordering::Relaxed);
            for call in round.tool_calls.iter_mut().filter(under_way) {
                // What was set aside for it was given back when its caller left.
                let hold = call.price.map(|price| money.nothing_of(&budget::tool_wants(&self.path(in_force), price)));
                self.enter_tool(money, number, call, hold);
            }
        }
        self.release(money, in_force);
    }

    /// Nothing more is spent: the run's place is given back, and its rows are on the disk when this returns.
    ///
    /// # Errors
    /// The disk did not take them in time.
    pub async fn settled(&mut self, money: &Money, in_force: &InForce) -> Result<(), Closed> {
        self.release(money, in_force);
        match self.ticket {
            Some(ticket) => Ok(money.ledger.written(ticket).await?),
            None => Ok(()),
        }
    }

    fn release(&mut self, money: &Money, in_force: &InForce) {
        self.call = None;
        if let Some(run) = self.run.take() {
            let (used, now) = (Used { requests: u64::from(self.counted), ..Used::default() }, Timestamp::now());
            self.settle_new(money, in_force, &run, &used, now);
            run.settle(&used, now);
        }
    }
}

/// Whom the rows of a run are written for.
#[derive(Clone, Debug)]
pub struct Payer {
    /// The run.
    pub trace: TraceId,
    /// The caller.
    pub caller: Caller,
    /// The model that was asked for, by its name in the file.
    pub model: Arc<str>,
}

impl Payer {
    fn row(&self, round: u32, at: Timestamp, what: What) -> Row {
        Row {
            at,
            trace: self.trace,
            round,
            key: self.caller.shared_label(),
            user: self.caller.user.clone(),
            model: Arc::clone(&self.model),
            what,
            tokens: Billed::default(),
            reasoning: 0,
            estimated: false,
            cost: None,
            reported: None,
            outcome: "",
            requests: 0,
        }
    }
}
