//! What looks at one text while it comes: at words as they are, at the text of a JSON document string by string.

use std::borrow::Cow;
use std::sync::Arc;

use toolgate_policies::redact::{Counts, Redactor, Window};

use super::json::Json;

/// Looks at a text that comes in pieces.
#[derive(Debug)]
pub(super) enum Eye {
    /// Words.
    Words(Window),
    /// A JSON document.
    Json(Json),
}

impl Eye {
    pub(super) fn new(redactor: &Arc<Redactor>, is_json: bool) -> Self {
        if is_json { Self::Json(Json::new(redactor)) } else { Self::Words(Window::new(Arc::clone(redactor))) }
    }

    /// Looks at the next piece; what may leave now.
    pub(super) fn push<'t>(&mut self, piece: &'t str, counts: &mut Counts) -> Cow<'t, str> {
        match self {
            Self::Words(window) => window.push(piece, counts),
            Self::Json(json) => json.push(piece, counts).into(),
        }
    }

    /// Nothing comes for a while: what is held leaves, if it is this short.
    pub(super) fn let_go(&mut self, most: usize) -> String {
        match self {
            Self::Words(window) => window.let_go(most),
            Self::Json(json) => json.let_go(most),
        }
    }

    /// Nothing more comes; what is left.
    pub(super) fn finish(&mut self, counts: &mut Counts) -> String {
        match self {
            Self::Words(window) => window.finish(counts),
            Self::Json(json) => json.finish(counts),
        }
    }

    /// How much of the end of `text`, which ends with all that has not left, is held back, in bytes.
    pub(super) fn held(&self, text: &str) -> usize {
        match self {
            Self::Words(window) => bytes_of_last(text, window.held()),
            Self::Json(json) => json.held(text),
        }
    }
}

/// How long the last characters of a text are, in bytes.
pub(super) fn bytes_of_last(text: &str, characters: usize) -> usize {
    match characters.checked_sub(1) {
        Some(before) => text.char_indices().rev().nth(before).map_or(text.len(), |(at, _)| text.len() - at),
        None => 0,
    }
}
