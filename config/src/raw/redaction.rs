//! The tables of `redaction:`.

use crate::raw::section::{At, section};
use crate::raw::text::Text;
use crate::redaction::Personal;

section! {
    /// What is taken out of results and answers.
    Redaction {
        /// Of what tools return, before anybody reads, keeps or logs it.
        tool_results: Rules = "{}",
        /// Of what models answer.
        answers: Rules = "{}",
        /// What else is taken out of both.
        patterns: Vec<At<Pattern>> = "[]",
    }
}

section! {
    /// What is taken out of one kind of text.
    Rules {
        /// Credentials of every known shape.
        secrets: bool = "true",
        /// Kinds of personal data. Default: all of them in what tools return, none in answers.
        personal: Vec<At<Personal>>,
    }
}

section! {
    /// A pattern, and the word that takes the place of what it matches.
    Pattern {
        /// The kind in `[redacted:kind]`.
        name: Text = required,
        /// A regular expression.
        regex: Text = required,
    }
}
