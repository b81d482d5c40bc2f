//! One text of a stream: which of its pieces, each from another event, have been looked at to their end, and what becomes of them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use toolgate_policies::redact::{Counts, Redactor};

use super::eye::Eye;
use super::spelling::Edit;
use crate::wire::spoken::Field;

/// One text of one choice.
#[derive(Debug)]
pub(super) struct Lane {
    choice: u32,
    field: Field,
    eye: Eye,
    /// The end of what came that has not left.
    tail: String,
    /// The pieces that it came in.
    pieces: VecDeque<Piece>,
    /// Something in it was changed.
    pub(super) is_changed: bool,
}

/// A piece of a text.
#[derive(Debug)]
pub(super) struct Piece {
    /// The number of the event that it came in.
    pub(super) event: u64,
    /// The choice whose text it is.
    pub(super) choice: u32,
    /// Where its JSON string stands in that event, quotes included.
    pub(super) place: Range<usize>,
    /// How long the text is that it spells, in bytes.
    length: usize,
    /// How much of that may leave.
    done: usize,
    /// What is changed in it.
    pub(super) edits: Vec<Edit>,
}

impl Lane {
    pub(super) fn new(redactor: &Arc<Redactor>, choice: u32, field: Field) -> Self {
        let eye = Eye::new(redactor, field.is_json());
        Self { choice, field, eye, tail: String::new(), pieces: VecDeque::new(), is_changed: false }
    }

    pub(super) fn is(&self, choice: u32, field: Field) -> bool {
        (self.choice, self.field) == (choice, field)
    }

    /// Takes the next piece. Whether it may leave as it came, and nothing is held; otherwise it is among those that are `done` by now, or waits.
    pub(super) fn push(
        &mut self,
        event: u64,
        place: Range<usize>,
        text: &str,
        counts: &mut Counts,
        done: &mut Vec<Piece>,
    ) -> bool {
        let left = self.eye.push(text, counts);
        if self.pieces.is_empty() && left == text && self.eye.held(text) == 0 {
            return true;
        }
        self.tail.push_str(text);
        let choice = self.choice;
        self.pieces.push_back(Piece { event, choice, place, length: text.len(), done: 0, edits: Vec::new() });
        let gone = self.tail.len() - self.eye.held(&self.tail);
        self.leave(gone, &left, done);
        false
    }

    /// Nothing comes for a while: what is held leaves, if it is this short.
    pub(super) fn let_go(&mut self, most: usize, done: &mut Vec<Piece>) {
        let left = self.eye.let_go(most);
        let gone = self.tail.len() - self.eye.held(&self.tail);
        self.leave(gone, &left, done);
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self, counts: &mut Counts, done: &mut Vec<Piece>) {
        let left = self.eye.finish(counts);
        self.leave(self.tail.len(), &left, done);
    }

    /// What is held never leaves: nobody knows what it would have become.
    pub(super) fn break_off(&mut self, done: &mut Vec<Piece>) {
        self.tail.clear();
        for mut piece in self.pieces.drain(..) {
            piece.edits.push(Edit { range: piece.done..piece.length, text: String::new() });
            done.push(piece);
        }
    }

    /// The first `gone` bytes of what is held leave, as `left` has them.
    fn leave(&mut self, gone: usize, left: &str, done: &mut Vec<Piece>) {
        let mut edit = difference(&self.tail[..gone], left);
        self.is_changed |= edit.is_some();
        let mut from = 0;
        while let Some(piece) = self.pieces.front_mut() {
            let to = from + (piece.length - piece.done).min(gone - from);
            if let Some(edit) = &mut edit {
                piece.take_part(edit, from..to);
            }
            piece.done += to - from;
            from = to;
            if piece.done < piece.length {
                break;
            }
            done.extend(self.pieces.pop_front());
        }
        self.tail.drain(..gone);
    }
}

impl Piece {
    /// Takes its part of an edit of the text of which it is this range. Where an edit goes over several pieces, the first one has its text.
    fn take_part(&mut self, edit: &mut Edit, own: Range<usize>) {
        let (start, end) = (edit.range.start.max(own.start), edit.range.end.min(own.end));
        let is_between = edit.range.is_empty() && !edit.text.is_empty();
        if start < end || (is_between && start == end) {
            let range = self.done + (start - own.start)..self.done + (end - own.start);
            self.edits.push(Edit { range, text: std::mem::take(&mut edit.text) });
        }
    }
}

/// What must be replaced in one text to make it the other; `None`: nothing.
pub(super) fn difference(before: &str, after: &str) -> Option<Edit> {
    if before == after {
        return None;
    }
    let alike = |pair: &(char, char)| pair.0 == pair.1;
    let length = |(character, _): (char, char)| character.len_utf8();
    let head: usize = before.chars().zip(after.chars()).take_while(alike).map(length).sum();
    let (rest_before, rest_after) = (&before[head..], &after[head..]);
    let tail: usize = rest_before.chars().rev().zip(rest_after.chars().rev()).take_while(alike).map(length).sum();
    Some(Edit { range: head..before.len() - tail, text: rest_after[..rest_after.len() - tail].to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_as_short_as_it_can_be() {
        let edit = |range, text: &str| Some(Edit { range, text: text.to_owned() });
        let table = [
            ("", "", None),
            ("é", "é", None),
            ("key SECRET done", "key [x] done", edit(4..10, "[x]")),
            ("SECRET", "[x]", edit(0..6, "[x]")),
            ("aa", "a", edit(1..2, "")),
            ("]", "[x]", edit(0..0, "[x")),
            ("éa", "éb", edit(2..3, "b")),
            ("é", "è", edit(0..2, "è")),
        ];
        for (before, after, expected) in table {
            assert_eq!(difference(before, after), expected, "{before} {after}");
        }
    }
}
