//! What a call may cost at worst, and what is claimed for it from each limit on its path.

use std::sync::Arc;

use toolgate_config::limit::Unit;
use toolgate_config::money::NanoUsd;
use toolgate_config::price::{Billed, Price};

use crate::counters::{Claim, Wanted};
use crate::limits::{Limit, What};

/// The fewest tokens of output that are of use to a caller who set no limit: a budget with room for less refuses.
const LEAST_OUTPUT: u64 = 256;

/// How many times a roughly counted prompt must fit. As many requests are in flight by default: however roughly the others are counted,
/// they leave room for this one.
const ROUGH_MARGIN: u64 = 1024;

/// How well a prompt is counted. Where it does not fit by a count that is not exact, it is counted exactly before anybody is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// As its provider counts it, as far as anybody here can know.
    Exactly,
    /// By its length alone, and rather too high.
    Roughly,
}

/// What is known of a model call before it is made.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// What its tokens cost; `None`: nobody knows.
    pub price: Option<Price>,
    /// The tokens of what is sent.
    pub prompt: u64,
    /// How well they are counted.
    pub counted: Counted,
    /// How long the answer may be.
    pub output: Output,
    /// How many answers are asked for at once.
    pub answers: u64,
    /// The first call of its run, with which the request itself is counted.
    pub opens: bool,
}

/// How long an answer may be, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// So long: the request says so.
    Asked(u64),
    /// As long as the model can, or as long as the budgets allow.
    Model(u64),
}

impl Output {
    /// The most.
    pub const fn most(self) -> u64 {
        match self {
            Self::Asked(tokens) | Self::Model(tokens) => tokens,
        }
    }

    /// The least that a budget may lower it to.
    fn least(self) -> u64 {
        match self {
            Self::Asked(tokens) => tokens,
            Self::Model(tokens) => tokens.min(LEAST_OUTPUT),
        }
    }
}

/// A limit in USD is on the path, and what the call costs is not known: that could be anything, so it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpriced;

impl Call {
    /// What it costs at worst; `None`: nobody knows.
    pub fn worst_cost(&self) -> Option<NanoUsd> {
        let dearest = Price { input: self.price?.dearest_input(), ..self.price? };
        let output = self.output.most().saturating_mul(self.answers);
        Some(dearest.cost(&Billed { fresh: self.prompt, output, ..Billed::default() }))
    }

    /// What it wants from the limits on its path.
    ///
    /// # Errors
    /// [`Unpriced`].
    pub fn wants(&self, path: &[Arc<Limit>]) -> Result<Wanted, Unpriced> {
        let claims = path.iter().filter_map(|limit| self.claim(limit).transpose()).collect::<Result<Vec<_>, _>>()?;
        let margin = if self.counted == Counted::Roughly { ROUGH_MARGIN } else { 1 };
        Ok(Wanted { claims, output: self.output.most(), least_output: self.output.least(), margin })
    }

    fn claim(&self, limit: &Arc<Limit>) -> Result<Option<Claim>, Unpriced> {
        let rough = self.counted != Counted::Exactly;
        let claim = |fixed, each: u64, rough| Claim {
            limit: Arc::clone(limit),
            fixed,
            each: each.saturating_mul(self.answers),
            forced: false,
            rough,
        };
        Ok(match &limit.id.what {
            What::Budget(Unit::Usd, ..) => {
                let price = self.price.ok_or(Unpriced)?;
                Some(claim(self.prompt.saturating_mul(price.dearest_input().0), price.output.0, rough))
            }
            What::Budget(Unit::Tokens, ..) => Some(claim(whole(self.prompt), 1000, rough)),
            What::TokenRate => Some(Claim { forced: !self.opens, ..claim(whole(self.tokens_of_rate(limit.most)), 0, rough) }),
            What::Budget(Unit::Requests, ..) | What::RequestRate | What::Concurrent => {
                self.opens.then(|| claim(whole(1), 0, false))
            }
        })
    }

    /// What a token rate is asked for: the prompt and what the caller lets the answer be. An answer that nobody limited, or that would be
    /// more than the whole rate, is counted when it is there: else a small rate would refuse every request.
    fn tokens_of_rate(&self, most: u64) -> u64 {
        let asked = match self.output {
            Output::Asked(tokens) => tokens.saturating_mul(self.answers),
            Output::Model(_) => 0,
        };
        self.prompt.saturating_add(asked.min(most.saturating_sub(self.prompt)))
    }
}

/// In thousandths.
const fn whole(count: u64) -> u64 {
    count.saturating_mul(1000)
}

/// What a tool call wants from the limits on its path: its price from each budget in USD.
pub fn tool_wants(path: &[Arc<Limit>], price: NanoUsd) -> Wanted {
    let counts_money = |limit: &&Arc<Limit>| matches!(limit.id.what, What::Budget(Unit::Usd, ..));
    let claim =
        |limit: &Arc<Limit>| Claim { limit: Arc::clone(limit), fixed: whole(price.0), each: 0, forced: false, rough: false };
    Wanted { claims: path.iter().filter(counts_money).map(claim).collect(), output: 0, least_output: 0, margin: 1 }
}

/// Nothing of these budgets: asked, they say whether they know what was used of them.
pub fn nothing_of(budgets: &[Arc<Limit>]) -> Wanted {
    let claim = |limit: &Arc<Limit>| Claim { limit: Arc::clone(limit), fixed: 0, each: 0, forced: true, rough: false };
    Wanted { claims: budgets.iter().map(claim).collect(), output: 0, least_output: 0, margin: 1 }
}

/// Whether any of these limits asks how many tokens a call has.
pub fn counts_tokens(path: &[Arc<Limit>]) -> bool {
    path.iter().any(|limit| matches!(limit.id.what, What::Budget(Unit::Usd | Unit::Tokens, ..) | What::TokenRate))
}

/// Whether a limit is held as long as its run, and not from call to call.
pub fn is_of_the_run(what: &What) -> bool {
    matches!(what, What::Budget(Unit::Requests, ..) | What::RequestRate | What::Concurrent)
}

#[cfg(test)]
mod tests {
    use toolgate_config::limit::{Per, Zone};
    use toolgate_config::money::PicoUsd;

    use super::*;
    use crate::limits::{CounterId, Scope};

    const PRICE: Price =
        Price { input: PicoUsd(150_000), cached_input: PicoUsd(75_000), cache_write: PicoUsd(150_000), output: PicoUsd(600_000) };

    fn limit(what: What, most: u64) -> Arc<Limit> {
        Arc::new(Limit::new(CounterId { scope: Scope::Everybody, what }, most))
    }

    fn budget(unit: Unit) -> What {
        What::Budget(unit, Per::Day, Zone::utc())
    }

    fn call(output: Output) -> Call {
        Call { price: Some(PRICE), prompt: 1000, counted: Counted::Exactly, output, answers: 1, opens: true }
    }

    #[test]
    fn each_limit_is_asked_for_what_it_counts() {
        let later = Call { opens: false, ..call(Output::Asked(100)) };
        let two = Call { answers: 2, ..call(Output::Asked(100)) };
        // The call, the limit, its most, and then: what is fixed, what each token of output adds, whether it is forced.
        let table = [
            (call(Output::Asked(100)), budget(Unit::Usd), 9, Some((150_000_000, 600_000, false))),
            (call(Output::Asked(100)), budget(Unit::Tokens), 9, Some((1_000_000, 1000, false))),
            (two, budget(Unit::Usd), 9, Some((150_000_000, 1_200_000, false))),
            (two, budget(Unit::Tokens), 9, Some((1_000_000, 2000, false))),
            (call(Output::Asked(100)), budget(Unit::Requests), 9, Some((1000, 0, false))),
            (call(Output::Asked(100)), What::RequestRate, 9, Some((1000, 0, false))),
            (call(Output::Asked(100)), What::Concurrent, 9, Some((1000, 0, false))),
            (call(Output::Asked(100)), What::TokenRate, 5000, Some((1_100_000, 0, false))),
            (call(Output::Asked(9000)), What::TokenRate, 5000, Some((5_000_000, 0, false))),
            (call(Output::Model(9000)), What::TokenRate, 5000, Some((1_000_000, 0, false))),
            (call(Output::Model(9000)), What::TokenRate, 500, Some((1_000_000, 0, false))),
            (later, What::TokenRate, 5000, Some((1_100_000, 0, true))),
            (later, budget(Unit::Usd), 9, Some((150_000_000, 600_000, false))),
            (later, budget(Unit::Requests), 9, None),
            (later, What::RequestRate, 9, None),
            (later, What::Concurrent, 9, None),
        ];
        for (call, what, most, expected) in table {
            let wanted = call.wants(&[limit(what.clone(), most)]).unwrap();
            let seen = wanted.claims.first().map(|claim| (claim.fixed, claim.each, claim.forced));
            assert_eq!(seen, expected, "{what:?} {call:?}");
        }
    }

    #[test]
    fn what_is_held_is_to_the_nano_dollar_what_it_can_cost() {
        for prompt in [0, 1, 3, 7, 1000, 123_457] {
            for output in [0, 1, 256, 4096] {
                let call = Call { prompt, ..call(Output::Asked(output)) };
                let wanted = call.wants(&[limit(budget(Unit::Usd), u64::MAX)]).unwrap();
                assert_eq!(wanted.claims[0].amount(output), call.worst_cost().unwrap().0, "{prompt} {output}");
            }
        }
    }

    #[test]
    fn only_a_limit_that_nobody_asked_for_is_lowered() {
        let table = [(Output::Asked(4000), 4000), (Output::Asked(10), 10), (Output::Model(4000), 256), (Output::Model(100), 100)];
        for (output, least) in table {
            let wanted = call(output).wants(&[]).unwrap();
            assert_eq!((wanted.output, wanted.least_output), (output.most(), least));
        }
    }

    #[test]
    fn what_is_not_counted_exactly_can_be_counted_again_and_what_is_rough_must_fit_many_times() {
        for (counted, rough, margin) in [(Counted::Exactly, false, 1), (Counted::Roughly, true, ROUGH_MARGIN)] {
            let wanted = Call { counted, ..call(Output::Asked(1)) }.wants(&[limit(budget(Unit::Tokens), 9)]).unwrap();
            assert_eq!((wanted.claims[0].rough, wanted.margin), (rough, margin), "{counted:?}");
        }
    }

    #[test]
    fn case_32_a_model_without_a_price_is_refused_where_money_is_counted() {
        let unpriced = Call { price: None, ..call(Output::Asked(1)) };
        assert_eq!(unpriced.wants(&[limit(budget(Unit::Usd), 9)]), Err(Unpriced));
        assert!(unpriced.wants(&[limit(budget(Unit::Tokens), 9)]).is_ok());
        let free = Call { price: Some(Price::FREE), ..unpriced };
        assert_eq!(free.wants(&[limit(budget(Unit::Usd), 9)]).unwrap().claims[0].amount(1), 0);
    }

    #[test]
    fn a_tool_is_paid_from_the_budgets_in_usd_alone() {
        let path = [limit(budget(Unit::Usd), 9), limit(budget(Unit::Tokens), 9), limit(What::RequestRate, 9)];
        let wanted = tool_wants(&path, NanoUsd(2_000_000));
        assert_eq!(wanted.claims.iter().map(|claim| claim.amount(0)).collect::<Vec<_>>(), [2_000_000]);
    }
}
