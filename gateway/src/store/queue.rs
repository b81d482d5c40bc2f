//! The rows on their way to the disk, and who waits for them. Requests put rows in, which takes no time; the one writer takes all that wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::pace::{ENOUGH, Gathered, Pace};
use super::{Patience, Row, Ticket, Unusable};

/// With more rows than this on their way nobody is let in any more.
const MOST_WAITING: u64 = 100_000;

/// The rows on their way.
pub(super) struct Queue {
    state: Mutex<State>,
    /// For the writer.
    bell: Condvar,
    /// The last ticket whose row is on the disk, with all before it.
    done: AtomicU64,
    /// Those who may go on and do not know it yet.
    free: Mutex<Vec<oneshot::Sender<()>>>,
    patience: Patience,
}

struct State {
    rows: Vec<Row>,
    /// When the first and the last of them came.
    came: Option<(Instant, Instant)>,
    /// How many rows must wait for the writer to be woken; none wakes it while it is at work.
    bell_at: usize,
    /// The last ticket.
    given: u64,
    /// When the oldest row came that the writer has in hand.
    in_hand_since: Option<Instant>,
    waiting: Vec<(u64, oneshot::Sender<()>)>,
    /// Why the store takes no rows at the moment.
    trouble: Option<Unusable>,
    /// Something else is to be done than writing rows.
    chore: bool,
    closing: Option<Instant>,
    ended: bool,
}

/// What the writer does next.
pub(super) enum Next {
    /// Write the rows that it was given.
    Write,
    /// Do what is due beside that.
    Chore,
    /// Nothing comes any more.
    End,
}

impl Queue {
    pub(super) fn new(patience: Patience) -> Self {
        let state = State {
            rows: Vec::new(),
            came: None,
            bell_at: usize::MAX,
            given: 0,
            in_hand_since: None,
            waiting: Vec::new(),
            trouble: None,
            chore: false,
            closing: None,
            ended: false,
        };
        Self { state: Mutex::new(state), bell: Condvar::new(), done: AtomicU64::new(0), free: Mutex::new(Vec::new()), patience }
    }

    /// Puts a row in.
    pub(super) fn push(&self, row: Row) -> Ticket {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.rows.push(row);
        let first = state.came.map_or(now, |(first, _)| first);
        state.came = Some((first, now));
        state.given += 1;
        let ticket = Ticket(state.given);
        let (rings, ended) = (state.rows.len() == state.bell_at, state.ended);
        drop(state);
        if rings {
            self.bell.notify_one();
        }
        if ended {
            tracing::error!("a row came to the ledger after it was closed; it is lost");
        }
        ticket
    }

    /// The ticket of the last row that was put in.
    pub(super) fn last(&self) -> Ticket {
        Ticket(self.state.lock().given)
    }

    /// Waits until the row of this ticket, and with it every earlier one, is on the disk.
    pub(super) async fn written(&self, ticket: Ticket) -> Result<(), Unusable> {
        // Goes last, whatever becomes of this.
        let _caller = Caller(self);
        let Some(reached) = self.reaching(ticket) else { return Ok(()) };
        match tokio::time::timeout(self.patience.deadline, reached).await {
            Ok(Ok(())) => Ok(()),
            _ if self.is_reached(ticket) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(self.why_not()),
        }
    }

    fn is_reached(&self, ticket: Ticket) -> bool {
        self.done.load(Ordering::Acquire) >= ticket.0
    }

    /// Tells when a ticket is reached, or that it never will be. `None`: it is.
    fn reaching(&self, ticket: Ticket) -> Option<oneshot::Receiver<()>> {
        if self.is_reached(ticket) {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if self.is_reached(ticket) {
            return None;
        }
        if !state.ended {
            state.waiting.push((ticket.0, sender));
        }
        Some(receiver)
    }

    fn why_not(&self) -> Unusable {
        let trouble = self.state.lock().trouble.clone();
        trouble.unwrap_or_else(|| Unusable(format!("the store did not take a row within {:?}", self.patience.deadline)))
    }

    /// Whether rows that are put in now can be expected to be written soon.
    pub(super) fn is_well(&self) -> Result<(), Unusable> {
        let state = self.state.lock();
        if let Some(trouble) = &state.trouble {
            return Err(trouble.clone());
        }
        let waiting = state.given.saturating_sub(self.done.load(Ordering::Acquire));
        if waiting > MOST_WAITING {
            return Err(Unusable(format!("{waiting} rows wait for the store")));
        }
        let oldest = state.in_hand_since.or(state.came.map(|(first, _)| first));
        match oldest.map(|since| since.elapsed()).filter(|age| *age > self.patience.deadline) {
            Some(age) => Err(Unusable(format!("a row waits for the store since {} s", age.as_secs()))),
            None => Ok(()),
        }
    }

    /// Takes all rows that wait, when they have gathered. Without any, waits for one, or until something else is due. For the writer.
    pub(super) fn take(&self, rows: &mut Vec<Row>, pace: &mut Pace, due: Instant) -> Next {
        let mut state = self.state.lock();
        loop {
            let gathered = state.came.map(|(first, last)| Gathered { rows: state.rows.len(), first, last });
            let (until, bell_at) = match gathered {
                Some(gathered) => {
                    match pace.until(&gathered).filter(|until| state.closing.is_none() && *until > Instant::now()) {
                        Some(until) => (until, ENOUGH),
                        None => {
                            pace.taken(&gathered);
                            std::mem::swap(rows, &mut state.rows);
                            state.in_hand_since = state.came.take().map(|(first, _)| first);
                            return Next::Write;
                        }
                    }
                }
                None if state.closing.is_some() => return Next::End,
                None if std::mem::take(&mut state.chore) || due <= Instant::now() => return Next::Chore,
                None => (due, 1),
            };
            state.bell_at = bell_at;
            self.bell.wait_until(&mut state, until);
            state.bell_at = usize::MAX;
        }
    }

    /// The next rows, in the order of their tickets, are on the disk: those who wait for them go on. For the writer, which may have more
    /// in hand.
    pub(super) fn reached(&self, rows: usize, has_more: bool) {
        let mut state = self.state.lock();
        state.in_hand_since = state.in_hand_since.filter(|_| has_more);
        let done = self.done.load(Ordering::Acquire) + rows as u64;
        self.done.store(done, Ordering::Release);
        let reached = state.waiting.extract_if(.., |(ticket, _)| *ticket <= done).map(|(_, waiter)| waiter);
        self.free.lock().extend(reached);
        drop(state);
        self.call_one();
    }

    /// Tells one of those who may go on, who tells the others: a thread that is woken from outside costs more than all the rest, and those
    /// who wait are mostly on the same.
    fn call_one(&self) {
        let next = || self.free.lock().pop();
        while let Some(waiter) = next() {
            // One who has gone tells nobody.
            if waiter.send(()).is_ok() {
                return;
            }
        }
    }

    fn call_all(&self) {
        let all = std::mem::take(&mut *self.free.lock());
        for waiter in all {
            // It may have gone.
            let _ = waiter.send(());
        }
    }

    /// The last ticket whose row is on the disk.
    pub(super) fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    /// Why the store takes no rows, or that it does. Gives what was so before.
    pub(super) fn set_trouble(&self, trouble: Option<Unusable>) -> Option<Unusable> {
        std::mem::replace(&mut self.state.lock().trouble, trouble)
    }

    /// Waits before something is tried again. `false`: it must be given up, for the store was to be closed long ago. For the writer.
    pub(super) fn pause(&self, pause: Duration) -> bool {
        let mut state = self.state.lock();
        let _ = self.bell.wait_for(&mut state, pause);
        state.closing.is_none_or(|since| since.elapsed() < self.patience.closing)
    }

    /// Wakes the writer for what is due beside rows.
    pub(super) fn call(&self) {
        self.state.lock().chore = true;
        self.bell.notify_one();
    }

    /// Has the writer end when all is written.
    pub(super) fn begin_to_close(&self) {
        self.state.lock().closing.get_or_insert_with(Instant::now);
        self.bell.notify_one();
    }

    /// Waits until the writer has ended; not for ever, for a disk may never answer.
    pub(super) async fn ended(&self) {
        if let Some(never) = self.reaching(Ticket(u64::MAX)) {
            // Nothing is sent; it is dropped at the end.
            let ended = tokio::time::timeout(self.patience.closing * 2, never).await;
            if ended.is_err() {
                tracing::error!("the store does not answer; the gateway ends, and rows that wait are lost");
            }
        }
    }

    /// The writer is gone: nobody waits any more.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        state.trouble.get_or_insert_with(|| Unusable("the store is closed".to_owned()));
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
    }
}

/// Whoever has waited, and tells the others when it goes: also where it has given up, for it may be the one who was told.
struct Caller<'q>(&'q Queue);

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.0.call_all();
    }
}
