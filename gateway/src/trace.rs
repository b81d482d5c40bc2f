//! The record of a run, step by step, and the runs that are kept in memory.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolgate_config::names::ModelName;
use toolgate_config::server::Privacy;
use toolgate_policies::facts::Caller;
use toolgate_policies::gate::Judged;

use crate::upstream::Target;
use crate::wire::Usage;

/// How many runs are kept.
const MOST_RUNS: usize = 10_000;

/// How many bytes they may take together, counted roughly.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The longest arguments that a trace keeps, in bytes.
const LONGEST_ARGUMENTS: usize = 4096;

/// A W3C trace id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

impl TraceId {
    /// A new one.
    pub fn random() -> Self {
        let mut id = [0; 16];
        // Without randomness a trace would lose its name, not a secret its cover; the clock is good enough for that.
        if ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut id).is_err() {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            id = now.as_nanos().to_be_bytes();
        }
        Self(id)
    }

    /// The id in a `traceparent` header; `None` where that is malformed.
    pub fn from_traceparent(value: &str) -> Option<Self> {
        let mut fields = value.trim().split('-');
        let (version, id, parent, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let is_hex =
            |text: &str, digits| text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let well_formed = is_hex(version, 2) && version != "ff" && is_hex(parent, 16) && is_hex(flags, 2) && is_hex(id, 32);
        let more = fields.next().is_some() && version == "00";
        Self::from_hex(id).filter(|id| well_formed && !more && id.0 != [0; 16])
    }

    /// Its 32 hexadecimal digits, written into `digits`.
    pub fn hex<'d>(&self, digits: &'d mut [u8; 32]) -> &'d str {
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        std::str::from_utf8(digits).unwrap_or_default()
    }

    /// From 32 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|id| Self(id.to_be_bytes()))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hex(&mut [0; 32]))
    }
}

/// One request taken through the loop.
#[derive(Debug)]
pub struct Run {
    /// Its name.
    pub id: TraceId,
    /// When it began.
    pub started: SystemTime,
    /// Who asked; `None`: nobody that was recognised.
    pub caller: Option<Caller>,
    /// What was asked for.
    pub model: Option<ModelName>,
    /// How it ended.
    pub status: Status,
    /// How long it took.
    pub took: Duration,
    /// When the first byte for the caller was ready.
    pub first_byte: Option<Duration>,
    /// The HTTP status that the caller got.
    pub http_status: u16,
    /// Model calls, in order, every attempt of them.
    pub rounds: Vec<Round>,
    /// What the gate said of each tool when tools were offered.
    pub gate: Vec<Judged>,
    /// What else a reader should know.
    pub notes: Vec<&'static str>,
    /// Whether it is a run that is kept, and no look-up, nor a request that was turned away at the door: a flood of those would push out the
    /// runs of others.
    pub is_kept: bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// With its answer.
    Completed,
    /// Brought to its end by a cap: which.
    Truncated(&'static str),
    /// With an error: its code.
    Failed(String),
    /// The caller went away.
    Cancelled,
}

impl Status {
    /// The words of the contract: status and reason.
    pub fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Completed => ("completed", None),
            Self::Truncated(reason) => ("truncated", Some(reason)),
            Self::Failed(code) => ("failed", Some(code)),
            Self::Cancelled => ("failed", Some("caller_gone")),
        }
    }
}

/// One attempt at a model call, and the tool calls that it asked for.
#[derive(Debug)]
pub struct Round {
    /// Whom it went to, and under what name.
    pub target: Arc<Target>,
    /// 1 for the first try.
    pub attempt: u32,
    /// How it went.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
    /// Why the model stopped, as it said.
    pub finish_reason: Option<Cow<'static, str>>,
    /// What it used.
    pub usage: Option<Usage>,
    /// The usage was counted here.
    pub estimated: bool,
    /// The tool calls that it asked for.
    pub tool_calls: Vec<ToolCall>,
}

/// How a model call went; the words of `toolgate_upstream_requests_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Ok,
    /// 4xx.
    ClientError,
    /// 429.
    RateLimited,
    /// 5xx, or no HTTP, or no chat completion.
    ServerError,
    /// Too slow.
    Timeout,
    /// Never reached.
    ConnectError,
    /// Broken off by the provider.
    Cut,
    /// Broken off by the caller.
    Cancelled,
}

impl Outcome {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ClientError => "client_error",
            Self::RateLimited => "rate_limited",
            Self::ServerError => "server_error",
            Self::Timeout => "timeout",
            Self::ConnectError => "connect_error",
            Self::Cut => "cut",
            Self::Cancelled => "cancelled",
        }
    }
}

/// One tool call.
#[derive(Debug)]
pub struct ToolCall {
    /// As the model named it.
    pub id: String,
    /// The tool that was asked for.
    pub tool: String,
    /// Its group, where there is such a tool.
    pub group: Option<String>,
    /// The arguments as the model wrote them, bounded.
    pub arguments: String,
    /// How it went: a word of `toolgate_tool_calls_total`, or `cancelled`.
    pub outcome: &'static str,
    /// Why it was refused.
    pub reason: Option<&'static str>,
    /// Why the group's egress refused it.
    pub egress: Option<&'static str>,
    /// How long it took.
    pub took: Duration,
    /// What the tool returned, in bytes, before it was bounded.
    pub bytes: usize,
    /// How sensitive that was.
    pub data_class: Option<&'static str>,
}

impl Run {
    /// A run that begins now. Until something else is known, its caller has gone: that is what it is when nobody is left to close it.
    pub fn begin(id: TraceId) -> Self {
        Self {
            id,
            started: SystemTime::now(),
            caller: None,
            model: None,
            status: Status::Cancelled,
            took: Duration::ZERO,
            first_byte: None,
            http_status: 499,
            rounds: Vec::new(),
            gate: Vec::new(),
            notes: Vec::new(),
            is_kept: false,
        }
    }

    /// What all rounds used together.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.rounds.iter().filter_map(|round| round.usage.as_ref()).for_each(|usage| sum.add(usage));
        sum
    }

    /// The trace as its reader gets it.
    pub fn to_json(&self) -> Value {
        let (status, reason) = self.status.words();
        json!({
            "id": self.id.to_string(),
            "status": status,
            "reason": reason,
            "key": self.caller.as_ref().map(Caller::label),
            "user": self.caller.as_ref().and_then(|caller| caller.user.as_deref()),
            "model": self.model.as_ref().map(ModelName::as_str),
            "started": rfc3339(self.started),
            "ms": ms(self.took),
            "usage": self.usage(),
            "cost_usd": null,
            "rounds": self.rounds.iter().map(Round::to_json).collect::<Vec<_>>(),
            "gate": self.gate.iter().map(verdict_json).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    /// Takes out what an operator does not want kept.
    fn reduced(mut self, privacy: Privacy) -> Self {
        for call in self.rounds.iter_mut().flat_map(|round| &mut round.tool_calls) {
            if privacy <= Privacy::Metadata {
                call.arguments = String::new();
            } else if call.arguments.len() > LONGEST_ARGUMENTS {
                call.arguments.truncate(call.arguments.floor_char_boundary(LONGEST_ARGUMENTS));
                call.arguments.push('…');
            }
        }
        self
    }

    fn size(&self) -> usize {
        let calls = self.rounds.iter().flat_map(|round| &round.tool_calls);
        let calls: usize = calls.map(|call| size_of::<ToolCall>() + call.arguments.len() + call.id.len() + call.tool.len()).sum();
        size_of::<Self>() + calls + self.rounds.len() * (size_of::<Round>() + 64) + self.gate.len() * size_of::<Judged>()
    }
}

impl Round {
    fn to_json(&self) -> Value {
        json!({
            "provider": self.target.provider.name.as_str(),
            "upstream_model": self.target.upstream_model,
            "attempt": self.attempt,
            "outcome": self.outcome.as_str(),
            "ms": ms(self.took),
            "finish_reason": self.finish_reason,
            "usage": self.usage,
            "estimated": self.estimated,
            "cost_usd": null,
            "tool_calls": self.tool_calls.iter().map(ToolCall::to_json).collect::<Vec<_>>(),
        })
    }
}

impl ToolCall {
    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "tool": self.tool,
            "group": self.group,
            "arguments": self.arguments,
            "outcome": self.outcome,
            "reason": self.reason,
            "ms": ms(self.took),
            "bytes": self.bytes,
            "data_class": self.data_class,
            "redactions": {},
        })
    }
}

/// A verdict as traces and dry runs show it.
pub fn verdict_json((tool, verdict): &Judged) -> Value {
    json!({
        "tool": tool.name.as_str(),
        "group": tool.group.name.as_str(),
        "verdict": verdict.as_str(),
        "reason": verdict.reason().map(toolgate_policies::gate::Reason::as_str),
    })
}

/// Milliseconds with three decimals.
fn ms(took: Duration) -> f64 {
    took.as_micros() as f64 / 1000.0
}

/// A moment as RFC 3339 in UTC, with milliseconds.
pub fn rfc3339(moment: SystemTime) -> String {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Days to a civil date, by Howard Hinnant's algorithm: eras of 400 years that begin in March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second, milli) = (seconds / 3600, seconds / 60 % 60, seconds % 60, since.subsec_millis());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// The runs that are kept: the newest, bounded in number and in size.
#[derive(Debug, Default)]
pub struct Traces(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    oldest_first: VecDeque<Arc<Run>>,
    by_id: HashMap<TraceId, Arc<Run>>,
    bytes: usize,
}

impl Traces {
    /// Keeps a run, as far as the operator wants it kept; the oldest make room.
    pub fn keep(&self, run: Run, privacy: Privacy) {
        if privacy == Privacy::None {
            return;
        }
        let run = Arc::new(run.reduced(privacy));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += run.size();
        kept.by_id.insert(run.id, Arc::clone(&run));
        kept.oldest_first.push_back(run);
        while kept.oldest_first.len() > MOST_RUNS || kept.bytes > MOST_BYTES {
            kept.forget_oldest();
        }
    }

    /// The newest run of this id.
    pub fn find(&self, id: TraceId) -> Option<Arc<Run>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_id.get(&id).cloned()
    }
}

impl Kept {
    fn forget_oldest(&mut self) {
        let Some(oldest) = self.oldest_first.pop_front() else { return };
        self.bytes -= oldest.size();
        // A caller may use one trace id for many runs; the name stays with the newest.
        if self.by_id.get(&oldest.id).is_some_and(|named| Arc::ptr_eq(named, &oldest)) {
            self.by_id.remove(&oldest.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: u128) -> Run {
        Run::begin(TraceId(id.to_be_bytes()))
    }

    #[test]
    fn a_traceparent_names_the_run() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        let table = [
            (format!("00-{id}-b7ad6b7169203331-01"), true),
            (format!("cc-{id}-b7ad6b7169203331-01-more"), true),
            (format!("00-{id}-b7ad6b7169203331-01-more"), false),
            (format!("ff-{id}-b7ad6b7169203331-01"), false),
            (format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)), false),
            (format!("00-{}-b7ad6b7169203331-01", id.to_uppercase()), false),
            (format!("00-{id}-b7ad-01"), false),
            ("junk".to_owned(), false),
        ];
        for (value, good) in table {
            assert_eq!(TraceId::from_traceparent(&value).map(|id| id.to_string()), good.then(|| id.to_owned()), "{value}");
        }
    }

    #[test]
    fn the_oldest_runs_make_room() {
        let traces = Traces::default();
        for id in 0..=MOST_RUNS as u128 {
            traces.keep(run(id), Privacy::Full);
        }
        assert!(traces.find(TraceId(0u128.to_be_bytes())).is_none());
        assert!(traces.find(TraceId(1u128.to_be_bytes())).is_some());
        assert_eq!(traces.0.lock().unwrap().oldest_first.len(), MOST_RUNS);
    }

    #[test]
    fn a_shared_id_names_the_newest_run() {
        let traces = Traces::default();
        traces.keep(Run { http_status: 500, ..run(7) }, Privacy::Full);
        traces.keep(run(7), Privacy::Full);
        traces.0.lock().unwrap().forget_oldest();
        assert_eq!(traces.find(TraceId(7u128.to_be_bytes())).map(|run| run.http_status), Some(499));
    }

    #[test]
    fn privacy_none_keeps_nothing() {
        let traces = Traces::default();
        traces.keep(run(1), Privacy::None);
        assert!(traces.find(TraceId(1u128.to_be_bytes())).is_none());
    }

    #[test]
    fn moments_are_written_as_people_expect() {
        let table = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_827_696_500, "2000-02-29T12:34:56.500Z"),
            (1_798_761_599_999, "2026-12-31T23:59:59.999Z"),
        ];
        for (millis, expected) in table {
            assert_eq!(rfc3339(SystemTime::UNIX_EPOCH + Duration::from_millis(millis)), expected);
        }
    }
}
