//! The courier: the one task that goes between the desk and the server. It carries all that waits in one round trip, and what came meanwhile in
//! the next: so everything happens in the order in which it was laid down.
//!
//! Each time it joins the server it does so under a new name, and names the old ones, which count for nothing from then on. So it is always
//! known what became of the messages whose answer never came: the server says how many were counted. And it tells anew what the gateway holds,
//! so whatever was forgotten, or taken without anybody knowing, is put right.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, interval_at, timeout};
use tracing::{debug, info, warn};

use super::Terms;
use super::ask::Heard;
use super::clock::Windows;
use super::desk::{Desk, Work};
use super::keys;
use super::link::{Broken, Link, Server};
use super::script::{Answer, Call, Caller, Script};
use super::told::{Told, exact};
use crate::counters::Unreachable;

/// How long the courier waits before it knocks again, at first and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// The courier.
pub(super) struct Courier {
    desk: Arc<Desk>,
    server: Server,
    terms: Terms,
    /// Its present name.
    name: String,
    /// Those that it had since the server last knew it, the first of them the one under which it sent.
    old: Vec<String>,
    /// How many messages it sent under its present name.
    sent: i64,
    /// Messages whose answer did not come, with their numbers.
    unsure: Vec<(i64, Told)>,
    windows: Windows,
}

impl Courier {
    /// One that knows its way, and has joined the server.
    pub(super) async fn new(desk: Arc<Desk>, server: Server, terms: Terms) -> Result<(Self, Link), Unreachable> {
        let (name, old, unsure, windows) = (random_name(), Vec::new(), Vec::new(), Windows::default());
        let mut courier = Self { desk, server, terms, name, old, sent: 0, unsure, windows };
        let link = courier.join().await.map_err(|broken| broken.why)?;
        Ok((courier, link))
    }

    /// Goes between the two until the desk is closed.
    pub(super) async fn run(mut self, mut link: Link) {
        while let Err(broken) = self.serve(&mut link).await {
            match self.come_back(broken).await {
                Some(joined) => link = joined,
                None => return,
            }
        }
    }

    /// Carries what there is, as long as there is a server; ends well when the desk is closed and empty.
    async fn serve(&mut self, link: &mut Link) -> Result<(), Broken> {
        let beat = self.terms.lease / 4;
        let mut heart = interval_at(Instant::now() + beat, beat);
        loop {
            let desk = Arc::clone(&self.desk);
            let beats = tokio::select! {
                () = desk.wake.notified() => false,
                _ = heart.tick() => true,
            };
            loop {
                if let Some((work, calls)) = self.work(link, beats) {
                    self.carry(link, work, calls).await?;
                }
                if self.desk.is_empty() {
                    break;
                }
            }
            if self.desk.is_closing() {
                self.leave(link).await;
                return Ok(());
            }
        }
    }

    /// What there is to carry: messages, then questions, then a sign of life.
    fn work(&mut self, link: &Link, beats: bool) -> Option<(Work, Vec<Call>)> {
        let work = self.desk.work();
        let clock = &self.desk.clock;
        let tell = |(told, number): (&Told, i64)| told.call(number, &self.name, &link.life, clock);
        let mut calls: Vec<_> = work.told.iter().zip(self.sent + 1..).map(tell).collect();
        calls.extend(work.asks.iter().map(|ask| ask.call(&link.life, clock, &mut self.windows)));
        if beats {
            calls.push(Call::new(Script::Renew));
        }
        (!calls.is_empty()).then_some((work, calls))
    }

    /// Carries it there, and the answers back. What was not done goes back to the desk.
    async fn carry(&mut self, link: &mut Link, work: Work, calls: Vec<Call>) -> Result<(), Broken> {
        let first = self.sent + 1;
        let start = Instant::now();
        let answers = match link.call(&self.caller(), &calls).await {
            Ok(answers) => answers,
            Err(error) => {
                self.unsure = (first..).zip(work.told).collect();
                self.desk.put_back(Work { told: Vec::new(), asks: work.asks });
                return Err(self.server.broken(&error));
            }
        };
        self.sent += exact(work.told.len() as u64);
        self.hear(work, answers, [start, Instant::now()])
    }

    fn hear(&mut self, work: Work, answers: Vec<Answer>, between: [Instant; 2]) -> Result<(), Broken> {
        let mut undone = Work::default();
        let mut trouble = None;
        let mut answers = answers.into_iter();
        for told in work.told {
            if self.numbers(answers.next(), &mut trouble).is_none() {
                undone.told.push(told);
            }
        }
        for ask in work.asks {
            let left = match self.numbers(answers.next(), &mut trouble) {
                Some(numbers) => ask.answer(&numbers, &mut Heard { desk: &self.desk, windows: &mut self.windows, between }),
                None => Some(ask),
            };
            undone.asks.extend(left);
        }
        for answer in answers {
            self.numbers(Some(answer), &mut trouble);
        }
        self.desk.put_back(undone);
        trouble.map_or(Ok(()), Err)
    }

    /// What a script said, where it did what it should. Else what is wrong is kept, if nothing else is.
    fn numbers(&self, answer: Option<Answer>, trouble: &mut Option<Broken>) -> Option<Vec<i64>> {
        let (why, for_long) = match answer {
            Some(Answer::Numbers(numbers)) => {
                self.desk.clock.hear(numbers.get(1).copied().unwrap_or(0));
                return Some(numbers);
            }
            Some(Answer::Stale) => ("it does not know this gateway any more", false),
            Some(Answer::Failed(ref why)) => (why.as_str(), true),
            None => ("an answer is missing", true),
        };
        trouble.get_or_insert_with(|| Broken { why: self.server.unreachable(why), for_long });
        None
    }

    /// Joins the server again; `None`: it was not there when the desk was closed.
    async fn come_back(&mut self, broken: Broken) -> Option<Link> {
        debug!(why = broken.why.0, "the connection to the counters is broken");
        let mut why = broken.why;
        // A server that ends a connection may take another at once. Questions wait for that.
        if !broken.for_long {
            match timeout(self.terms.patience, self.join()).await {
                Ok(Ok(link)) => return Some(link),
                Ok(Err(again)) => why = again.why,
                Err(_) => why = self.server.unreachable("no answer in time"),
            }
        }
        warn!(why = why.0, "the counters cannot be reached");
        self.desk.go_away(why);
        let mut pause = PAUSES[0];
        while !self.desk.is_closing() {
            let _ = timeout(pause, self.closing()).await;
            pause = PAUSES[1].min(pause * 2);
            match self.join().await {
                Ok(link) => return Some(link),
                Err(broken) => self.desk.go_away(broken.why),
            }
        }
        warn!(
            messages = self.desk.untold() + self.unsure.len(),
            "the counters were not told all that was used; the ledger knows it"
        );
        None
    }

    /// Waits for the desk to be closed.
    async fn closing(&self) {
        while !self.desk.is_closing() {
            self.desk.wake.notified().await;
        }
    }

    /// Connects, and tells the server who this is and what it holds.
    async fn join(&mut self) -> Result<Link, Broken> {
        let mut link = self.server.connect().await?;
        let sent_as = self.old.first().unwrap_or(&self.name).clone();
        self.old.push(std::mem::replace(&mut self.name, random_name()));
        let holds = self.desk.count_anew();
        let mut call = Call::new(Script::Join);
        call.key(keys::counted(&sent_as));
        call.key(keys::counted(&self.name));
        call.names(&self.old);
        for (limit, amount) in holds {
            call.key(keys::held(&limit.id));
            call.arguments([exact(amount)]);
        }
        // This may be another server, whose clock says what it likes.
        let caller = Caller { not_before: 0, ..self.caller() };
        let answers = link.call(&caller, &[call]).await.map_err(|error| self.server.broken(&error))?;
        let mut trouble = None;
        let numbers = self.numbers(answers.into_iter().next(), &mut trouble);
        match (numbers.as_deref(), trouble) {
            (Some([_, now, counted]), _) => self.joined(*now, *counted),
            (_, Some(broken)) => return Err(broken),
            _ => return Err(Broken { why: self.server.unreachable("this is no answer"), for_long: true }),
        }
        Ok(link)
    }

    /// The server knows what the gateway holds, and said how many of its messages it has counted.
    fn joined(&mut self, now: i64, counted: i64) {
        self.old.clear();
        self.sent = 0;
        let missing = self.unsure.drain(..).filter(|(number, _)| *number > counted);
        let told = missing.filter_map(|(_, told)| told.without_holds()).collect();
        self.desk.put_back(Work { told, asks: Vec::new() });
        if self.desk.come_back(now) {
            info!(server = self.server.name(), "the counters are back; meanwhile this gateway counted for itself");
        }
    }

    /// Says good-bye. A server that does not hear it finds out by itself.
    async fn leave(&mut self, link: &mut Link) {
        let mut call = Call::new(Script::Leave);
        call.key(keys::counted(&self.name));
        let _ = link.call(&self.caller(), &[call]).await;
    }

    fn caller(&self) -> Caller<'_> {
        let clock = &self.desk.clock;
        let lease = i64::try_from(self.terms.lease.as_millis()).unwrap_or(i64::MAX);
        Caller { gateway: &self.name, lease, not_before: clock.latest(), now: clock.dictated() }
    }
}

/// A name that no other gateway has.
fn random_name() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}
