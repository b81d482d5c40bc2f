//! A stream: what may leave now, and what must wait until it is known what becomes of it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::engine::{Cursor, Step};
use super::json::about;
use super::kind::Counts;
use super::view::BACK;
use super::{Redactor, mark};

/// The window over a stream. What leaves it, joined, is what [`Redactor::text`] makes of the whole, wherever the stream was cut.
pub struct Window {
    redactor: Arc<Redactor>,
    cursor: Option<Cursor>,
    /// What was not sent yet, and before it as much of what was as checks look back.
    text: String,
    /// How much of it was sent.
    sent: usize,
}

impl Window {
    /// A window at the beginning of a stream.
    pub fn new(redactor: Arc<Redactor>) -> Self {
        let cursor = redactor.engine().map(super::engine::Engine::cursor_whole);
        Self { redactor, cursor, text: String::new(), sent: 0 }
    }

    /// A window at the beginning of a string in JSON that stands behind this key.
    pub fn of_value(redactor: Arc<Redactor>, key: &str) -> Self {
        let cursor = redactor.engine().map(|engine| engine.cursor_about(about(key.as_bytes())));
        Self { redactor, cursor, text: String::new(), sent: 0 }
    }

    /// More of the stream; what may leave now.
    pub fn push<'t>(&mut self, delta: &'t str, counts: &mut Counts) -> Cow<'t, str> {
        if self.cursor.is_none() {
            return Cow::Borrowed(delta);
        }
        self.text.push_str(delta);
        Cow::Owned(self.go_on(false, counts))
    }

    /// The stream has ended; the rest of it. The window is then as at the beginning of a stream.
    pub fn finish(&mut self, counts: &mut Counts) -> String {
        let rest = self.go_on(true, counts);
        *self = Self::new(self.redactor.clone());
        rest
    }

    /// Nothing comes for a while: what waits leaves, if it is at most so many characters. What it turns out to belong to is masked from behind it
    /// on.
    pub fn let_go(&mut self, most: usize) -> String {
        if self.held() > most {
            return String::new();
        }
        let waiting = self.text.get(self.sent..).unwrap_or_default().to_owned();
        self.sent = self.text.len();
        waiting
    }

    /// How many characters wait.
    pub fn held(&self) -> usize {
        self.text.get(self.sent..).map_or(0, |held| held.chars().count())
    }

    fn go_on(&mut self, last: bool, counts: &mut Counts) -> String {
        let mut out = String::new();
        let (Some(engine), Some(cursor)) = (self.redactor.engine(), self.cursor.as_mut()) else { return out };
        loop {
            match engine.step(self.text.as_bytes(), last, cursor) {
                Step::Mask(place, kind) => {
                    out.push_str(self.text.get(self.sent..place.start).unwrap_or_default());
                    self.sent = self.sent.max(place.end);
                    if !place.is_empty() {
                        mark(&kind, &mut out);
                        counts.add(&kind);
                    }
                }
                Step::Swallowed(to) => self.sent = self.sent.max(to),
                Step::Hold(from) => {
                    out.push_str(self.text.get(self.sent..from).unwrap_or_default());
                    self.sent = self.sent.max(from);
                    break;
                }
            }
        }
        self.forget();
        out
    }

    /// Drops what no check looks at any more.
    fn forget(&mut self) {
        let Some(cursor) = self.cursor.as_mut() else { return };
        let mut gone = self.sent.min(cursor.at).saturating_sub(BACK);
        while !self.text.is_char_boundary(gone) {
            gone -= 1;
        }
        if gone > BACK {
            self.text.drain(..gone);
            self.sent -= gone;
            cursor.forget(gone);
        }
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("held", &self.held()).finish_non_exhaustive()
    }
}
