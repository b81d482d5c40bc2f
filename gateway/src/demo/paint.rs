//! How text is put on a terminal: colours where they are wanted, lines of a sane width, and nothing that a model or a tool could use to
//! write anywhere else.

use std::io::{IsTerminal, stdout};

/// The longest line, in characters.
pub(super) const WIDTH: usize = 100;

/// What a piece of text is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// What a part is about.
    Heading,
    /// What may be skipped.
    Quiet,
    /// Allowed, done.
    Good,
    /// Refused, failed.
    Bad,
}

/// Whether there are colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    colours: bool,
}

impl Paint {
    /// Colours on a terminal that has them, unless `NO_COLOR` is set.
    pub(super) fn for_stdout() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_none_or(|term| term == "dumb");
        Self { colours: stdout().is_terminal() && !dumb && set("NO_COLOR").is_none() }
    }

    /// None.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { colours: false }
    }

    /// The text in its colour.
    pub(super) fn ink(self, ink: Ink, text: &str) -> String {
        if !self.colours {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Heading => "1",
            Ink::Quiet => "2",
            Ink::Good => "32",
            Ink::Bad => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// One line of text from outside: no control characters, at most `max` characters.
pub(super) fn clean(text: &str, max: usize) -> String {
    let mut visible = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut kept: String = visible.by_ref().take(max).collect();
    if visible.next().is_some() {
        kept.pop();
        kept.push('…');
    }
    kept
}

/// Breaks text at blanks into lines of at most `width` characters; a longer word stands alone.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_where_there_are_colours_is_anything_added() {
        assert_eq!(Paint { colours: false }.ink(Ink::Bad, "no"), "no");
        assert_eq!(Paint { colours: true }.ink(Ink::Bad, "no"), "\x1b[31mno\x1b[0m");
    }

    #[test]
    fn what_comes_from_outside_cannot_steer_the_terminal() {
        assert_eq!(clean("a\x1b[31mb\r\nc", 20), "a [31mb  c");
        assert_eq!(clean("ääää", 3), "ää…");
        assert_eq!(clean("äää", 3), "äää");
    }

    #[test]
    fn lines_break_at_blanks() {
        assert_eq!(wrapped("one two  three\nfour", 9), ["one two", "three", "four"]);
        assert_eq!(wrapped("a longestword b", 5), ["a", "longestword", "b"]);
        assert!(wrapped(" \n", 5).is_empty());
    }
}
