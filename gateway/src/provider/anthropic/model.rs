//! What a Claude model can be asked, by the generation that its name tells. A name that tells none may be that of any server which speaks
//! this dialect: it is asked in the oldest way that the dialect has.

/// A model's family and version, as far as its name tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation {
    family: Family,
    /// Major and minor.
    version: Option<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Opus,
    Sonnet,
    Haiku,
    /// Fable and Mythos, which are alike in what they take.
    Fable,
    Other,
}

/// How a model is made to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinks {
    /// It does not.
    Never,
    /// Within a budget of tokens.
    Within,
    /// As much as it sees fit, and with an effort.
    AsItSeesFit,
}

/// How a model is kept from thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Off {
    /// It thinks only when asked.
    Unasked,
    /// By this value of `thinking`.
    By(&'static str),
    /// It cannot be.
    Never,
}

impl Generation {
    /// Reads a name: a provider's own, or with the prefixes and suffixes of those who resell it.
    pub(super) fn of(name: &str) -> Self {
        let unknown = Self { family: Family::Other, version: None };
        let name = name.to_ascii_lowercase();
        let Some((_, name)) = name.rsplit_once("claude") else { return unknown };
        let words = || name.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let family = words().find_map(Family::of).unwrap_or(Family::Other);
        let small = |word: &str| if word.len() <= 2 { word.parse().ok() } else { None };
        let version = words().position(|word| small(word).is_some()).map(|at| {
            let mut numbers = words().skip(at).map(small);
            (numbers.next().flatten().unwrap_or(0), numbers.next().flatten().unwrap_or(0))
        });
        Self { family, version }
    }

    pub(super) fn thinks(self) -> Thinks {
        let since = |adaptive| if self.is_from(adaptive) { Thinks::AsItSeesFit } else { Thinks::Within };
        match self.family {
            Family::Fable => Thinks::AsItSeesFit,
            _ if self.version.is_some() && !self.is_from((3, 7)) => Thinks::Never,
            Family::Opus | Family::Sonnet => since((4, 6)),
            Family::Haiku => since((5, 0)),
            Family::Other => since((5, 0)),
        }
    }

    pub(super) fn off(self) -> Off {
        let disabled = Off::By(r#"{"type":"disabled"}"#);
        match self.family {
            Family::Fable => Off::Never,
            _ if !self.is_from((5, 0)) => Off::Unasked,
            Family::Opus if self.is_from((5, 5)) => Off::Never,
            Family::Sonnet if self.is_from((5, 5)) => Off::By(r#"{"type":"between_tools"}"#),
            _ => disabled,
        }
    }

    /// Whether it takes neither temperature nor the like. The same models leave their thoughts out unless asked for them, and have an effort
    /// between `high` and `max`.
    pub(super) fn samples_by_itself(self) -> bool {
        match self.family {
            Family::Fable => true,
            Family::Opus => self.is_from((4, 7)),
            Family::Sonnet | Family::Haiku | Family::Other => self.is_from((5, 0)),
        }
    }

    /// Whether it takes only one of temperature and `top_p`.
    pub(super) fn samples_by_one(self) -> bool {
        self.is_from((4, 5))
    }

    /// Whether it can be made to call a tool.
    pub(super) fn can_be_forced(self) -> bool {
        match self.family {
            Family::Fable => self.version.is_some() && !self.is_from((5, 1)),
            Family::Opus | Family::Sonnet => !self.is_from((5, 5)),
            Family::Haiku | Family::Other => true,
        }
    }

    /// Whether its thoughts are bound to all that stood before them: one of an earlier turn is refused when anything there has changed.
    pub(super) fn binds_thoughts(self) -> bool {
        match self.family {
            Family::Fable => self.is_from((5, 1)),
            Family::Opus | Family::Sonnet | Family::Haiku | Family::Other => self.is_from((5, 5)),
        }
    }

    /// Whether its answer can be held to a schema.
    pub(super) fn keeps_to_schemas(self) -> bool {
        self.version.is_none() || self.is_from((4, 5)) || (self.family == Family::Opus && self.is_from((4, 1)))
    }

    fn is_from(self, least: (u32, u32)) -> bool {
        self.version.is_some_and(|version| version >= least)
    }
}

impl Family {
    fn of(word: &str) -> Option<Self> {
        match word {
            "opus" => Some(Self::Opus),
            "sonnet" => Some(Self::Sonnet),
            "haiku" => Some(Self::Haiku),
            "fable" | "mythos" => Some(Self::Fable),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_family_and_version() {
        use Family::{Fable, Haiku, Opus, Other, Sonnet};
        let table = [
            ("claude-sonnet-4-5-20250929", Sonnet, Some((4, 5))),
            ("claude-sonnet-4-20250514", Sonnet, Some((4, 0))),
            ("claude-3-7-sonnet-latest", Sonnet, Some((3, 7))),
            ("claude-3-opus-20240229", Opus, Some((3, 0))),
            ("anthropic/claude-opus-4.6", Opus, Some((4, 6))),
            ("eu.anthropic.claude-haiku-4-5-20251001-v1:0", Haiku, Some((4, 5))),
            ("claude-opus-4-8[1m]", Opus, Some((4, 8))),
            ("claude-sonnet-4@20250514", Sonnet, Some((4, 0))),
            ("claude-mythos-preview", Fable, None),
            ("claude-fable-5-1", Fable, Some((5, 1))),
            ("claude-2.1", Other, Some((2, 1))),
            ("Claude-Nova-6", Other, Some((6, 0))),
            ("deepseek-chat", Other, None),
            ("kimi-k2-5", Other, None),
            ("", Other, None),
        ];
        for (name, family, version) in table {
            assert_eq!(Generation::of(name), Generation { family, version }, "{name}");
        }
    }

    #[test]
    fn what_a_model_takes_hangs_on_its_generation() {
        let off = |kind| Off::By(kind);
        let (disabled, between) = (off(r#"{"type":"disabled"}"#), off(r#"{"type":"between_tools"}"#));
        let table = [
            // name, thinks, kept from it, samples by itself, can be forced, keeps to schemas
            ("claude-3-5-haiku", Thinks::Never, Off::Unasked, false, true, false),
            ("claude-3-7-sonnet", Thinks::Within, Off::Unasked, false, true, false),
            ("claude-opus-4-1", Thinks::Within, Off::Unasked, false, true, true),
            ("claude-sonnet-4-5", Thinks::Within, Off::Unasked, false, true, true),
            ("claude-haiku-4-5", Thinks::Within, Off::Unasked, false, true, true),
            ("claude-sonnet-4-6", Thinks::AsItSeesFit, Off::Unasked, false, true, true),
            ("claude-opus-4-6", Thinks::AsItSeesFit, Off::Unasked, false, true, true),
            ("claude-opus-4-8", Thinks::AsItSeesFit, Off::Unasked, true, true, true),
            ("claude-sonnet-5", Thinks::AsItSeesFit, disabled, true, true, true),
            ("claude-opus-5", Thinks::AsItSeesFit, disabled, true, true, true),
            ("claude-haiku-5-5", Thinks::AsItSeesFit, disabled, true, true, true),
            ("claude-sonnet-5-5", Thinks::AsItSeesFit, between, true, false, true),
            ("claude-opus-5-5", Thinks::AsItSeesFit, Off::Never, true, false, true),
            ("claude-fable-5", Thinks::AsItSeesFit, Off::Never, true, true, true),
            ("claude-fable-5-1", Thinks::AsItSeesFit, Off::Never, true, false, true),
            ("some-model", Thinks::Within, Off::Unasked, false, true, true),
        ];
        for (name, thinks, off, samples, forced, schemas) in table {
            let model = Generation::of(name);
            let seen = (model.thinks(), model.off(), model.samples_by_itself(), model.can_be_forced(), model.keeps_to_schemas());
            assert_eq!(seen, (thinks, off, samples, forced, schemas), "{name}");
        }
    }
}
