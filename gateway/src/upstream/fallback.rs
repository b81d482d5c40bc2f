//! Where one target has no answer: whether the next one is asked, and in the end what of all that went wrong is told. Pure.

use std::time::SystemTime;

use toolgate_config::provider::Provider;
use toolgate_policies::gate;

use super::{NoAnswer, retry};
use crate::failure::Failure;
use crate::money::Refused;

/// What a target without an answer means for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Miss {
    /// It cannot take this request, or may not; another may.
    Unfit,
    /// It failed; another may do better.
    Failed,
    /// It wants to be left alone for a while, which says more than that another one failed.
    Limited,
    /// The request itself is at fault, or something that all share: nobody would do better.
    Final,
}

impl Miss {
    fn of(no_answer: &NoAnswer, is_first: bool) -> Self {
        match no_answer {
            NoAnswer::Failed(Failure::UpstreamRateLimited(_)) => Self::Limited,
            NoAnswer::Failed(Failure::Upstream(_) | Failure::UpstreamTimeout(_) | Failure::UpstreamResting(_)) => Self::Failed,
            // What cannot be said to this provider, and what this provider may not see.
            NoAnswer::Failed(Failure::InvalidRequest(..) | Failure::Refused(gate::Refused::ModelNotAllowed)) => Self::Unfit,
            // A fallback stands in for a provider that fails, not for a budget; but one that is too dear may have a cheaper one after it.
            NoAnswer::Refused(Refused::By(_) | Refused::Unpriced) if !is_first => Self::Unfit,
            NoAnswer::Refused(_) | NoAnswer::Failed(_) => Self::Final,
        }
    }
}

/// What went wrong with the targets so far, as far as it is going to be told.
#[derive(Debug, Default)]
pub(super) struct Told(Option<(Miss, NoAnswer)>);

impl Told {
    /// Another target has no answer, and this is why. Whether the next one is worth asking.
    pub(super) fn add(&mut self, no_answer: NoAnswer, now: SystemTime) -> bool {
        let miss = Miss::of(&no_answer, self.0.is_none());
        self.0 = Some(match self.0.take() {
            Some((Miss::Limited, before)) if miss == Miss::Limited => (miss, soonest(before, no_answer, now)),
            // Of two that cannot take it, the first is the one that the caller knows.
            Some((worst, before)) if worst > miss || miss == Miss::Unfit => (worst, before),
            _ => (miss, no_answer),
        });
        miss != Miss::Final
    }

    /// What the caller is told.
    pub(super) fn into_inner(self) -> NoAnswer {
        self.0.map_or(NoAnswer::Failed(Failure::Internal("a call without a target")), |(_, no_answer)| no_answer)
    }
}

/// What a trace says of a target that was not asked at all; an attempt speaks for itself.
pub(super) fn note(provider: &Provider, no_answer: &NoAnswer) -> Option<String> {
    let why = match no_answer {
        NoAnswer::Failed(Failure::InvalidRequest(field, why)) => format!("of the request, `{field}` {why}"),
        NoAnswer::Failed(Failure::Refused(gate::Refused::ModelNotAllowed)) => "it may not see what the run has read".to_owned(),
        NoAnswer::Failed(Failure::UpstreamResting(_)) => "it kept failing, and is left alone for a while".to_owned(),
        NoAnswer::Refused(Refused::By(denied)) => format!("there is no room for it in {}", denied.limit.described()),
        NoAnswer::Refused(Refused::Unpriced) => "its price is not known".to_owned(),
        NoAnswer::Refused(Refused::Closed(_)) | NoAnswer::Failed(_) => return None,
    };
    Some(format!("the provider `{}` was passed over: {why}", provider.name))
}

/// Of two targets that are limited, the one that may be asked sooner: so long has the caller to wait. One that says nothing says less.
fn soonest(one: NoAnswer, other: NoAnswer, now: SystemTime) -> NoAnswer {
    match (after(&one, now), after(&other, now)) {
        (Some(first), Some(second)) if second <= first => other,
        (None, Some(_)) => other,
        _ => one,
    }
}

fn after(no_answer: &NoAnswer, now: SystemTime) -> Option<std::time::Duration> {
    let NoAnswer::Failed(Failure::UpstreamRateLimited(after)) = no_answer else { return None };
    retry::wait(after.as_deref()?, now)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;

    use super::*;

    fn failed() -> Failure {
        Failure::Upstream("x".to_owned())
    }

    fn limited(after: Option<&str>) -> Failure {
        Failure::UpstreamRateLimited(after.map(str::to_owned))
    }

    fn unfit(field: &'static str) -> Failure {
        Failure::InvalidRequest(field, "is not known there".to_owned())
    }

    fn refused() -> Failure {
        Failure::UpstreamRefused { status: StatusCode::BAD_REQUEST, message: String::new(), code: None, param: None }
    }

    /// What is told after these failures of one target after the other.
    fn told(failures: &[Failure]) -> Failure {
        let mut told = Told::default();
        for (number, failure) in failures.iter().enumerate() {
            let goes_on = told.add(NoAnswer::Failed(failure.clone()), SystemTime::now());
            assert!(goes_on || number + 1 == failures.len(), "{failure:?} is final");
        }
        match told.into_inner() {
            NoAnswer::Failed(failure) => failure,
            NoAnswer::Refused(refused) => panic!("{refused:?}"),
        }
    }

    #[test]
    fn the_next_one_is_asked_where_it_may_do_better() {
        let table = [
            (failed(), true),
            (Failure::UpstreamTimeout("idle_timeout"), true),
            (Failure::UpstreamResting(Duration::ZERO), true),
            (limited(None), true),
            (unfit("n"), true),
            (Failure::Refused(gate::Refused::ModelNotAllowed), true),
            (Failure::Refused(gate::Refused::UnknownKey), false),
            (refused(), false),
            (Failure::Internal("x"), false),
        ];
        for (failure, goes_on) in table {
            assert_eq!(Told::default().add(NoAnswer::Failed(failure.clone()), SystemTime::now()), goes_on, "{failure:?}");
        }
    }

    #[test]
    fn a_budget_in_the_way_of_the_first_is_in_the_way_of_all() {
        let unpriced = || NoAnswer::Refused(Refused::Unpriced);
        assert!(!Told::default().add(unpriced(), SystemTime::now()));
        let mut told = Told::default();
        assert!(told.add(NoAnswer::Failed(failed()), SystemTime::now()));
        assert!(told.add(unpriced(), SystemTime::now()));
        assert!(matches!(told.into_inner(), NoAnswer::Failed(Failure::Upstream(_))));
    }

    #[test]
    fn case_34_of_all_that_failed_what_helps_the_caller_most_is_told() {
        let table: [(&str, &[Failure], Failure); 10] = [
            ("one", &[failed()], failed()),
            ("the last", &[failed(), Failure::UpstreamTimeout("idle_timeout")], Failure::UpstreamTimeout("idle_timeout")),
            ("the soonest", &[limited(Some("30")), limited(Some("10"))], limited(Some("10"))),
            ("the soonest, whoever said it", &[limited(Some("10")), limited(Some("30"))], limited(Some("10"))),
            ("the one that says when", &[limited(None), limited(Some("30"))], limited(Some("30"))),
            ("the one that said when", &[limited(Some("30")), limited(None)], limited(Some("30"))),
            ("a limit", &[limited(Some("30")), failed()], limited(Some("30"))),
            ("a failure, where the fallback cannot take it", &[failed(), unfit("n")], failed()),
            ("what the first cannot take", &[unfit("n"), unfit("stop")], unfit("n")),
            ("what is wrong with the request", &[limited(None), refused()], refused()),
        ];
        for (name, failures, expected) in table {
            assert_eq!(told(failures), expected, "{name}");
        }
    }
}
