//! OpenAI's own vocabularies: which model has which, and the exact count by it. A vocabulary takes a tenth of a second and some 45 MB to
//! load, so that is done when a text is first counted by it, on a thread that may block.

use std::collections::HashSet;
use std::sync::OnceLock;

use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton, p50k_base_singleton, r50k_base_singleton};

use super::estimate;

/// A vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// GPT-4o and everything since.
    O200k,
    /// GPT-4 and GPT-3.5.
    Cl100k,
    /// Codex.
    P50k,
    /// GPT-3.
    R50k,
}

impl Encoding {
    /// That of a model, by OpenAI's list of names and of beginnings of names. A server with the same name for a model is taken to have the
    /// same model, with OpenAI's name before it or without.
    pub fn of(model: &str) -> Option<Self> {
        // OpenRouter's word for a way to serve it (`:free`, `:nitro`) stands behind the name.
        let sold = model.strip_prefix("openai/").map(|name| name.split(':').next().unwrap_or(name));
        Some(match get_tokenizer(sold.unwrap_or(model))? {
            // They differ in marks that stand in no text.
            Tokenizer::O200kBase | Tokenizer::O200kHarmony => Self::O200k,
            Tokenizer::Cl100kBase => Self::Cl100k,
            Tokenizer::P50kBase | Tokenizer::P50kEdit => Self::P50k,
            Tokenizer::R50kBase | Tokenizer::Gpt2 => Self::R50k,
        })
    }

    /// Whether it is there already, so that a count does not have to load it.
    pub fn is_loaded(self) -> bool {
        self.place().get().is_some()
    }

    /// How many tokens a text is. The first time it loads the vocabulary.
    pub fn count(self, text: &str) -> u64 {
        let vocabulary = self.vocabulary();
        let none = HashSet::new();
        // An expression that gives up, over blanks without end, gives no count.
        pieces(text)
            .map(|piece| vocabulary.count(piece, &none).map_or_else(|_| estimate::tokens(piece.as_bytes()), |n| n as u64))
            .sum()
    }

    fn vocabulary(self) -> &'static CoreBPE {
        self.place().get_or_init(|| match self {
            Self::O200k => o200k_base_singleton(),
            Self::Cl100k => cl100k_base_singleton(),
            Self::P50k => p50k_base_singleton(),
            Self::R50k => r50k_base_singleton(),
        })
    }

    fn place(self) -> &'static OnceLock<&'static CoreBPE> {
        static PLACES: [OnceLock<&'static CoreBPE>; 4] = [const { OnceLock::new() }; 4];
        &PLACES[self as usize]
    }
}

/// The longest piece that is counted at once, in bytes: the work for a run of one character grows faster than the run.
const PIECE: usize = 32 * 1024;

/// A text in pieces that are counted one by one: each begins with the blank before a word, where a token begins in any case, or else, where
/// there is none for long, anywhere.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(if rest.len() <= PIECE { rest.len() } else { cut(rest) });
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fn cut(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_before_a_word = |&at: &usize| {
        bytes[at] == b' ' && bytes[at - 1].is_ascii_alphanumeric() && bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric)
    };
    (PIECE / 2..PIECE).rev().find(is_before_a_word).unwrap_or_else(|| text.floor_char_boundary(PIECE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_the_vocabulary_that_openai_says() {
        let table = [
            ("gpt-4o-mini", Some(Encoding::O200k)),
            ("gpt-4o-2024-08-06", Some(Encoding::O200k)),
            ("openai/gpt-4o-mini", Some(Encoding::O200k)),
            ("openai/gpt-oss-120b:free", Some(Encoding::O200k)),
            ("openai/gpt-4o:extended", Some(Encoding::O200k)),
            ("openai/o3:floor", Some(Encoding::O200k)),
            ("mistral-large-latest", None),
            ("mistralai/mistral-large", None),
            ("claude-sonnet-4-5", None),
            ("anthropic/claude-sonnet-4.5", None),
            ("gemini-2.5-flash", None),
            ("google/gemini-2.5-flash", None),
            ("gpt-5.2-codex", Some(Encoding::O200k)),
            ("o4-mini", Some(Encoding::O200k)),
            ("ft:gpt-4o-mini:org:name:id", Some(Encoding::O200k)),
            ("gpt-4", Some(Encoding::Cl100k)),
            ("gpt-4-turbo-2024-04-09", Some(Encoding::Cl100k)),
            ("gpt-3.5-turbo", Some(Encoding::Cl100k)),
            ("text-embedding-3-small", Some(Encoding::Cl100k)),
            ("text-davinci-003", Some(Encoding::P50k)),
            ("gpt2", Some(Encoding::R50k)),
            ("llama-3.3-70b", None),
            ("meta-llama/gpt-4", None),
            ("upstream-m", None),
            ("", None),
        ];
        for (model, expected) in table {
            assert_eq!(Encoding::of(model), expected, "{model}");
        }
    }

    #[test]
    fn texts_have_the_counts_that_are_known_of_them() {
        // What OpenAI's own description of its tokenizer gives as examples.
        let table = [
            (Encoding::O200k, "tiktoken is great!", 6),
            (Encoding::Cl100k, "tiktoken is great!", 6),
            (Encoding::O200k, "antidisestablishmentarianism", 6),
            (Encoding::Cl100k, "antidisestablishmentarianism", 6),
            (Encoding::O200k, "2 + 2 = 4", 7),
            (Encoding::O200k, "お誕生日おめでとう", 8),
            (Encoding::Cl100k, "お誕生日おめでとう", 9),
            (Encoding::O200k, "<|endoftext|>", 7),
            (Encoding::O200k, "", 0),
        ];
        for (encoding, text, expected) in table {
            assert_eq!(encoding.count(text), expected, "{encoding:?} {text}");
            assert!(encoding.is_loaded());
        }
    }

    #[test]
    fn a_long_text_in_pieces_counts_as_a_whole() {
        let text = include_str!("samples/english.txt").repeat(80);
        let parts: Vec<&str> = pieces(&text).collect();
        assert!(parts.len() > 2 && parts.concat() == text);
        let whole = o200k_base_singleton().count(&text, &HashSet::new()).unwrap() as u64;
        assert_eq!(Encoding::O200k.count(&text), whole);
    }

    #[test]
    fn a_text_without_words_is_counted_too() {
        for (character, least) in [(" ", 500), ("\n", 500), ("中", 20_000), ("a", 5_000), (".", 500), ("\u{a0}", 500)] {
            let text = character.repeat(70_000);
            assert!(pieces(&text).all(|piece| piece.len() <= PIECE));
            let count = Encoding::O200k.count(&text);
            assert!((least..=70_000).contains(&count), "{character:?}: {count}");
        }
    }
}
