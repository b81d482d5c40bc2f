//! What hides secrets in the answers of models: of a document that is here, and of a stream, whatever its cuts. Pure: it is given the texts and
//! says what is to be changed, or shown, and when.
//!
//! Of a stream whole events are held back while a piece of a text in them may still become a secret, and those behind them wait, so that the
//! order stays. An event of which nothing is changed goes on as the bytes that it came in. Each text (of each choice what it says, what it
//! thinks, the arguments of each call) is looked at as one, wherever it was cut.

mod eye;
mod json;
mod lane;
mod spelling;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use toolgate_policies::redact::{Counts, Redactor};

use self::lane::{Lane, Piece};
use crate::wire::pass::Said;
use crate::wire::spoken::{Change, Field, Part, Text, chances};
use crate::wire::{Chunk, Reply};

/// How much text may wait behind a held event, in bytes, before it goes first: a text may be held that never goes on.
const MOST_BEHIND: usize = 128;

/// How many characters leave when nothing comes for a while: fewer than tell anything of a secret.
const FEW: usize = 3;

/// After how long nothing has come for a while.
pub const LULL: Duration = Duration::from_secs(1);

/// An event of a stream.
pub trait Event: Clone {
    /// Its data.
    fn payload(&self) -> &Bytes;
    /// Where in them texts stand.
    fn texts(&self) -> &[Text];
    /// Whether it ends something, so that nothing that is held may come after it.
    fn is_end(&self) -> bool;
}

impl Event for Chunk {
    fn payload(&self) -> &Bytes {
        self.payload()
    }

    fn texts(&self) -> &[Text] {
        self.texts()
    }

    fn is_end(&self) -> bool {
        self.is_end()
    }
}

impl Event for Said {
    fn payload(&self) -> &Bytes {
        self.body()
    }

    fn texts(&self) -> &[Text] {
        self.spoken()
    }

    fn is_end(&self) -> bool {
        self.is_bare || self.finish().is_some()
    }
}

/// Looks through a stream. `B` is what is known beside each event when it comes, and told when it leaves.
#[derive(Debug)]
pub struct Veil<E, B> {
    /// `None`: nothing is hidden.
    redactor: Option<Arc<Redactor>>,
    lanes: Lanes,
    held: VecDeque<Held<E, B>>,
    /// The number of the next event.
    next: u64,
    /// How much text waits behind the first event that is held, in bytes.
    behind: usize,
    /// What may leave does so, whatever is held before it.
    overtakes: bool,
    counts: Counts,
    /// How much is held, in bytes.
    bytes: usize,
}

#[derive(Debug)]
struct Held<E, B> {
    number: u64,
    event: E,
    beside: B,
    /// How many pieces of texts in it may not leave yet.
    waits: usize,
    changes: Vec<Change>,
}

impl<E: Event, B: Copy> Veil<E, B> {
    /// At the beginning of a stream.
    pub fn new(redactor: &Arc<Redactor>) -> Self {
        Self {
            redactor: (!redactor.is_off()).then(|| Arc::clone(redactor)),
            lanes: Lanes::default(),
            held: VecDeque::new(),
            next: 0,
            behind: 0,
            overtakes: false,
            counts: Counts::default(),
            bytes: 0,
        }
    }

    /// Takes the next event. `show` is given each event that may leave now, and what is to be changed in it.
    pub fn take(&mut self, event: &E, beside: B, mut show: impl FnMut(&E, B, &[Change])) {
        let Some(redactor) = &self.redactor else { return show(event, beside, &[]) };
        let number = self.next;
        self.next += 1;
        let mut look = Look { redactor, lanes: &mut self.lanes, counts: &mut self.counts, done: Vec::new(), changes: Vec::new() };
        let waits = event.texts().iter().filter(|text| !look.at(number, event.payload(), text)).count();
        let Look { done, changes, .. } = look;
        if waits == 0 && self.held.is_empty() && changes.is_empty() {
            return show(event, beside, &[]);
        }
        if waits == 0 {
            self.behind += event.texts().iter().map(|text| text.place.len()).sum::<usize>();
        }
        self.bytes += event.payload().len() + size_of::<Held<E, B>>();
        self.held.push_back(Held { number, event: event.clone(), beside, waits, changes });
        self.settle(done, &mut show);
    }

    /// Whether anything is held.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Nothing has come for a while: a few letters that may begin a secret are no reason to wait longer. What they turn out to begin is hidden from
    /// behind them on.
    pub fn let_go(&mut self, mut show: impl FnMut(&E, B, &[Change])) {
        let mut done = Vec::new();
        self.lanes.0.iter_mut().for_each(|lane| lane.let_go(FEW, &mut done));
        self.settle(done, &mut show);
    }

    /// The stream has ended well: all that is held leaves.
    pub fn finish(&mut self, mut show: impl FnMut(&E, B, &[Change])) {
        let mut done = Vec::new();
        self.lanes.0.iter_mut().for_each(|lane| lane.finish(&mut self.counts, &mut done));
        self.settle(done, &mut show);
    }

    /// The stream has failed: what is held leaves, but for text that may be half a secret.
    pub fn break_off(&mut self, mut show: impl FnMut(&E, B, &[Change])) {
        let mut done = Vec::new();
        self.lanes.0.iter_mut().for_each(|lane| lane.break_off(&mut done));
        self.settle(done, &mut show);
    }

    /// How much is held, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What was taken out since this was asked last.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    fn settle(&mut self, done: Vec<Piece>, show: &mut impl FnMut(&E, B, &[Change])) {
        for piece in done {
            let held = self.held.binary_search_by_key(&piece.event, |held| held.number).ok();
            if let Some(held) = held.and_then(|at| self.held.get_mut(at)) {
                held.waits -= 1;
                change(&piece, held.event.payload(), &mut held.changes);
            }
        }
        self.release(show);
    }

    fn release(&mut self, show: &mut impl FnMut(&E, B, &[Change])) {
        while let Some(first) = self.held.pop_front_if(|held| held.waits == 0) {
            show(&first.event, first.beside, &first.changes);
        }
        self.overtakes |= self.behind > MOST_BEHIND;
        if self.held.is_empty() {
            (self.behind, self.overtakes, self.bytes) = (0, false, 0);
        } else if self.overtakes {
            self.held.retain(|held| {
                let stays = held.waits > 0 || held.event.is_end();
                if !stays {
                    show(&held.event, held.beside, &held.changes);
                }
                stays
            });
        }
    }
}

/// A completion without secrets, which are counted.
pub fn whole(reply: Reply, redactor: &Arc<Redactor>, counts: &mut Counts) -> Reply {
    let changes = changes(redactor, reply.body(), reply.spoken(), counts);
    reply.changed(changes)
}

/// What is to be changed in a document that is here, whose texts stand at these places.
pub fn changes(redactor: &Arc<Redactor>, payload: &[u8], texts: &[Text], counts: &mut Counts) -> Vec<Change> {
    if redactor.is_off() {
        return Vec::new();
    }
    let mut lanes = Lanes::default();
    let mut look = Look { redactor, lanes: &mut lanes, counts, done: Vec::new(), changes: Vec::new() };
    for text in texts {
        let is_alone = texts.iter().filter(|other| (other.choice, other.field) == (text.choice, text.field)).count() == 1;
        if !(is_alone && look.is_clean(payload, text)) {
            look.at(0, payload, text);
        }
    }
    let Look { lanes, counts, mut done, mut changes, .. } = look;
    lanes.0.iter_mut().for_each(|lane| lane.finish(counts, &mut done));
    done.iter().for_each(|piece| change(piece, payload, &mut changes));
    changes
}

/// The texts of a stream so far: a handful but for streams of many calls.
#[derive(Debug, Default)]
struct Lanes(Vec<Lane>);

impl Lanes {
    fn of(&mut self, redactor: &Arc<Redactor>, choice: u32, field: Field) -> &mut Lane {
        let at = self.0.iter().rposition(|lane| lane.is(choice, field)).unwrap_or_else(|| {
            self.0.push(Lane::new(redactor, choice, field));
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

/// A look at one event.
struct Look<'l> {
    redactor: &'l Arc<Redactor>,
    lanes: &'l mut Lanes,
    counts: &'l mut Counts,
    /// Pieces that may leave now, of whichever event.
    done: Vec<Piece>,
    /// What is changed in this event beside its words.
    changes: Vec<Change>,
}

impl Look<'_> {
    /// Whether it is as good as gone; otherwise its piece is among the done ones, or waits.
    fn at(&mut self, number: u64, payload: &[u8], text: &Text) -> bool {
        let lane = self.lanes.of(self.redactor, text.choice, text.field);
        match text.part {
            Part::Words => {
                let spelt = spelling::text(inner(payload, &text.place));
                lane.push(number, text.place.clone(), &spelt, self.counts, &mut self.done)
            }
            Part::Signature { is_named } => {
                lane.finish(self.counts, &mut self.done);
                if std::mem::take(&mut lane.is_changed) {
                    self.changes.push(Change { place: text.place.clone(), text: unsigned(is_named).to_owned() });
                }
                true
            }
        }
    }

    /// Whether a text that stands alone holds nothing to be hidden.
    fn is_clean(&self, payload: &[u8], text: &Text) -> bool {
        let spelt = spelling::text(inner(payload, &text.place));
        !text.field.is_json() && matches!(self.redactor.text(&spelt, &mut Counts::default()), std::borrow::Cow::Borrowed(_))
    }
}

/// What stands in place of a signature under words that were changed: it would not fit them, and its provider refuses what it did not sign. An entry that some
/// signer is named for goes to that one alone, and without a signature to nobody.
const fn unsigned(is_named: bool) -> &'static str {
    if is_named { "null" } else { r#"null,"signer":"redacted""# }
}

/// Takes note of what is changed in a piece, and of what spells the same text once more.
fn change(piece: &Piece, payload: &[u8], changes: &mut Vec<Change>) {
    if piece.edits.is_empty() {
        return;
    }
    let text = spelling::replaced(inner(payload, &piece.place), &piece.edits);
    changes.push(Change { place: piece.place.clone(), text: format!("\"{text}\"") });
    if let Some(place) = chances(payload, piece.choice).filter(|place| changes.iter().all(|change| change.place != *place)) {
        changes.push(Change { place, text: "null".to_owned() });
    }
}

/// The inside of the string at a place.
fn inner<'p>(payload: &'p [u8], place: &Range<usize>) -> &'p str {
    std::str::from_utf8(&payload[place.start + 1..place.end - 1]).unwrap_or_default()
}

#[cfg(test)]
mod tests;
