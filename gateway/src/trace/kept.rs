//! The runs that are kept in memory, as far as the operator wants them kept: the newest, bounded in number and in size.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use toolgate_config::server::Privacy;
use toolgate_config::store::Store;
use toolgate_policies::gate::Judged;
use toolgate_policies::redact::{Counts, Redactor};

use super::{Round, Run, ToolCall, TraceId};
use crate::fit::{Context, Shortened};

/// How many runs are kept.
const MOST_RUNS: usize = 10_000;

/// How many bytes they may take together, counted roughly.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The longest arguments that a trace keeps, in bytes.
const LONGEST_ARGUMENTS: usize = 4096;

/// The runs that are kept: the newest, bounded in number and in size. They are looked up so seldom that a search through
/// their ids, which lie side by side, costs less than an index would at every request.
#[derive(Debug, Default)]
pub struct Traces(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    oldest_first: VecDeque<Run>,
    /// The id of each, in the same order.
    ids: VecDeque<TraceId>,
    bytes: usize,
}

impl Traces {
    /// Keeps a run, as far as the operator wants it kept; the oldest make room. What tools were sent loses what they themselves must not return,
    /// unless all is kept.
    pub fn keep(&self, run: Run, store: &Store, redactor: &Redactor) {
        if store.privacy == Privacy::None {
            return;
        }
        let run = run.reduced(store.privacy, redactor);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.oldest_first.front().is_some_and(|oldest| oldest.is_older_than(store.keep_traces)) {
            kept.forget_oldest();
        }
        kept.bytes += run.size();
        kept.ids.push_back(run.id);
        kept.oldest_first.push_back(run);
        while kept.oldest_first.len() > MOST_RUNS || kept.bytes > MOST_BYTES {
            kept.forget_oldest();
        }
    }

    /// The newest run of this id that its reader may see. A caller may use one id for many runs, and another caller the same: neither hides
    /// what is the other's.
    pub fn find(&self, id: TraceId, store: &Store, may_see: impl Fn(&Run) -> bool) -> Option<Run> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let named = kept.ids.iter().enumerate().rev().filter(|(_, named)| **named == id).map(|(at, _)| &kept.oldest_first[at]);
        named.into_iter().find(|run| may_see(run) && !run.is_older_than(store.keep_traces)).cloned()
    }
}

impl Kept {
    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.oldest_first.pop_front() {
            self.ids.pop_front();
            self.bytes -= oldest.size();
        }
    }
}

impl Run {
    fn is_older_than(&self, age: Duration) -> bool {
        self.started.elapsed().is_ok_and(|elapsed| elapsed > age)
    }

    /// Takes out what an operator does not want kept.
    fn reduced(mut self, privacy: Privacy, redactor: &Redactor) -> Self {
        if privacy < Privacy::Full {
            self.hide(redactor);
        }
        for call in self.rounds.iter_mut().flat_map(|round| &mut round.tool_calls) {
            if privacy <= Privacy::Metadata {
                call.arguments = String::new();
                continue;
            }
            if privacy == Privacy::Redacted
                && let Cow::Owned(clean) = redactor.json(&call.arguments, &mut Counts::default())
            {
                call.arguments = clean;
            }
            if call.arguments.len() > LONGEST_ARGUMENTS {
                call.arguments.truncate(call.arguments.floor_char_boundary(LONGEST_ARGUMENTS));
                call.arguments.push('…');
                // What is kept counts by its length, so it must not hold on to the room of what was cut.
                call.arguments.shrink_to_fit();
            }
        }
        self
    }

    fn size(&self) -> usize {
        let calls = self.rounds.iter().flat_map(|round| &round.tool_calls);
        let calls: usize = calls.map(|call| size_of::<ToolCall>() + call.arguments.len() + call.id.len() + call.tool.len()).sum();
        let contexts = self.rounds.iter().filter_map(|round| round.context.as_ref());
        let shortened =
            |context: &Context| context.shortened.iter().map(|short| size_of::<Shortened>() + short.call.len()).sum::<usize>();
        let contexts: usize = contexts.map(|context| size_of::<Context>() + shortened(context)).sum();
        let names = self.model.as_ref().map_or(0, |model| model.as_str().len());
        let user = self.caller.as_ref().and_then(|caller| caller.user.as_ref()).map_or(0, |user| user.len());
        let reason = self.status.words().1.map_or(0, str::len);
        size_of::<Self>()
            + names
            + user
            + reason
            + calls
            + contexts
            + self.rounds.len() * (size_of::<Round>() + 64)
            + self.gate.len() * size_of::<Judged>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock};
    use std::time::SystemTime;

    use toolgate_config::address::BaseUrl;
    use toolgate_config::class::TrustZone;
    use toolgate_config::names::ProviderName;
    use toolgate_config::provider::{Provider, ProviderKind};
    use toolgate_config::store::{CountersUrl, OnCounterFailure, StoreUrl};

    use super::*;
    use crate::targets::Target;
    use crate::trace::{Outcome, Rounds};

    const SECRET: &str = r#"{"q":"AKIAIOSFODNN7EXAMPLQ"}"#;

    fn redactor() -> &'static Redactor {
        static REDACTOR: LazyLock<Redactor> =
            LazyLock::new(|| Redactor::new(&toolgate_config::redaction::Redaction::default().tool_results));
        &REDACTOR
    }

    fn run(id: u128) -> Run {
        Run::begin(TraceId::from_bits(id))
    }

    #[test]
    fn the_oldest_runs_make_room() {
        let traces = Traces::default();
        for id in 0..=MOST_RUNS as u128 {
            traces.keep(run(id), &store(Privacy::Full), redactor());
        }
        assert!(traces.find(TraceId::from_bits(0), &store(Privacy::Full), |_| true).is_none());
        assert!(traces.find(TraceId::from_bits(1), &store(Privacy::Full), |_| true).is_some());
        assert_eq!(traces.0.lock().unwrap().oldest_first.len(), MOST_RUNS);
    }

    #[test]
    fn a_run_is_forgotten_when_it_is_too_old() {
        let traces = Traces::default();
        let day = Duration::from_secs(86_400);
        let brief = Store { keep_traces: day, ..store(Privacy::Full) };
        traces.keep(Run { started: SystemTime::now() - 2 * day, ..run(1) }, &store(Privacy::Full), redactor());
        assert!(traces.find(TraceId::from_bits(1), &store(Privacy::Full), |_| true).is_some());
        assert!(traces.find(TraceId::from_bits(1), &brief, |_| true).is_none());
        traces.keep(run(2), &brief, redactor());
        assert_eq!(traces.0.lock().unwrap().oldest_first.len(), 1);
    }

    #[test]
    fn a_shared_id_names_the_newest_run() {
        let traces = Traces::default();
        traces.keep(Run { http_status: 500, ..run(7) }, &store(Privacy::Full), redactor());
        traces.keep(run(7), &store(Privacy::Full), redactor());
        traces.0.lock().unwrap().forget_oldest();
        assert_eq!(traces.find(TraceId::from_bits(7), &store(Privacy::Full), |_| true).map(|run| run.http_status), Some(499));
    }

    #[test]
    fn privacy_none_keeps_nothing() {
        let traces = Traces::default();
        traces.keep(run(1), &store(Privacy::None), redactor());
        assert!(traces.find(TraceId::from_bits(1), &store(Privacy::Full), |_| true).is_none());
    }

    #[test]
    fn arguments_are_kept_as_far_as_the_operator_wants_and_cut_on_a_character() {
        let long = "é".repeat(LONGEST_ARGUMENTS);
        let cut = format!("{}…", "é".repeat(LONGEST_ARGUMENTS / 2));
        let table = [
            (Privacy::Metadata, "{}", ""),
            (Privacy::Redacted, "{}", "{}"),
            (Privacy::Full, "{}", "{}"),
            (Privacy::Full, &long, &cut),
            (Privacy::Redacted, SECRET, r#"{"q":"[redacted:aws_key]"}"#),
            (Privacy::Full, SECRET, SECRET),
        ];
        for (privacy, written, kept) in table {
            let traces = Traces::default();
            traces.keep(Run { rounds: Rounds::from_iter([round_with_call(written)]), ..run(1) }, &store(privacy), redactor());
            let found = traces.find(TraceId::from_bits(1), &store(Privacy::Full), |_| true).unwrap();
            assert_eq!(found.rounds[0].tool_calls[0].arguments, kept, "{privacy:?}");
            let in_memory = traces.0.lock().unwrap().oldest_first[0].rounds[0].tool_calls[0].arguments.capacity();
            assert!(
                in_memory <= LONGEST_ARGUMENTS + '…'.len_utf8(),
                "{in_memory} bytes are held for {} that are kept",
                kept.len()
            );
        }
    }

    fn store(privacy: Privacy) -> Store {
        Store {
            url: StoreUrl::None,
            counters: CountersUrl::Memory,
            on_counter_failure: OnCounterFailure::Refuse,
            privacy,
            keep_traces: Duration::from_secs(30 * 86_400),
            keep_ledger: Duration::from_secs(400 * 86_400),
        }
    }

    fn round_with_call(arguments: &str) -> Round {
        let call = ToolCall {
            id: "c1".to_owned(),
            tool: "t".to_owned(),
            group: None,
            arguments: arguments.to_owned(),
            outcome: None,
            reason: None,
            egress: None,
            cached: false,
            took: Duration::ZERO,
            bytes: 0,
            data_class: None,
            redactions: Counts::default(),
            price: None,
            cost: None,
            is_write: false,
            at_tool: Arc::default(),
        };
        let base_url = BaseUrl::parse("http://127.0.0.1/v1").unwrap();
        let provider = Provider {
            name: ProviderName::new("p"),
            kind: ProviderKind::OpenAi,
            base_url,
            api_key: None,
            trust_zone: TrustZone::default(),
            connect_timeout: Duration::ZERO,
            first_byte_timeout: Duration::ZERO,
            idle_timeout: Duration::ZERO,
            retries: 0,
        };
        let target = Target {
            provider: Arc::new(provider),
            upstream_model: "u".to_owned(),
            price: None,
            max_output: None,
            window: 8192,
            is_window_guessed: true,
            label: "m".to_owned(),
        };
        Round {
            target: Arc::new(target),
            attempt: 1,
            outcome: Outcome::Ok,
            took: Duration::ZERO,
            finish_reason: None,
            usage: None,
            estimated: false,
            tally: None,
            cost: None,
            lowered: None,
            context: None,
            tool_calls: vec![call],
        }
    }
}
