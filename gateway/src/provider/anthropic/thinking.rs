//! How hard a model shall think, in the way that its generation has for it.

use super::super::Unsupported;
use super::model::{Generation, Off, Thinks};
use super::parts::unsupported;

/// The least budget that the API takes, in tokens.
const LEAST_BUDGET: u64 = 1024;

/// What is sent of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Thinking {
    /// The value of `thinking`, as JSON.
    pub(super) mode: Option<String>,
    /// The value of `output_config.effort`.
    pub(super) effort: Option<&'static str>,
    /// The model is asked to think, in so many tokens or as it sees fit: a temperature of its own is refused beside that.
    pub(super) is_asked: bool,
}

/// What the rest of a request says about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    pub(super) model: Generation,
    /// How long the answer may be, in tokens.
    pub(super) most: u64,
    /// A call of a tool is forced: the API refuses thinking beside that.
    pub(super) is_forced: bool,
    /// What is to be gone on with began without a thought: a budget for thinking is refused then.
    pub(super) began_without: bool,
}

impl Thinking {
    /// From `reasoning_effort`.
    pub(super) fn with_effort(word: &str, around: Circumstances) -> Result<Self, Unsupported> {
        let Circumstances { model, most, is_forced, began_without } = around;
        let effort = Effort::of(word).ok_or_else(|| {
            unsupported("reasoning_effort", "must be `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`")
        })?;
        if effort == Effort::None {
            return Self::off(model);
        }
        match model.thinks() {
            Thinks::Never => Err(unsupported("reasoning_effort", "asks a model to think that does not")),
            Thinks::Within if is_forced || began_without || most <= LEAST_BUDGET => Ok(Self::default()),
            Thinks::Within => {
                let budget = effort.budget().min((most / 2).max(LEAST_BUDGET));
                let mode = Some(format!(r#"{{"type":"enabled","budget_tokens":{budget}}}"#));
                Ok(Self { mode, is_asked: true, ..Self::default() })
            }
            Thinks::AsItSeesFit => {
                let effort = Some(effort.word(model));
                // Those that leave their thoughts out unless asked for them are asked.
                let shown = if model.samples_by_itself() { r#","display":"summarized""# } else { "" };
                let mode = (!is_forced).then(|| format!(r#"{{"type":"adaptive"{shown}}}"#));
                Ok(Self { is_asked: mode.is_some(), mode, effort })
            }
        }
    }

    fn off(model: Generation) -> Result<Self, Unsupported> {
        match model.off() {
            Off::Unasked => Ok(Self::default()),
            Off::By(mode) => Ok(Self { mode: Some(mode.to_owned()), ..Self::default() }),
            Off::Never => Err(unsupported("reasoning_effort", "is `none`, and this model cannot be kept from thinking")),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

impl Effort {
    fn of(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "minimal" => Some(Self::Minimal),
            "low" => Some(Self::Low),
            "medium" => Some(Self::Medium),
            "high" => Some(Self::High),
            "xhigh" => Some(Self::XHigh),
            "max" => Some(Self::Max),
            _ => None,
        }
    }

    fn budget(self) -> u64 {
        match self {
            Self::None | Self::Minimal => LEAST_BUDGET,
            Self::Low => 2048,
            Self::Medium => 8192,
            Self::High => 16_384,
            Self::XHigh | Self::Max => 32_768,
        }
    }

    fn word(self, model: Generation) -> &'static str {
        match self {
            Self::None | Self::Minimal | Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh if model.samples_by_itself() => "xhigh",
            Self::XHigh | Self::Max => "max",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: (bool, bool) = (false, false);

    fn shown(name: &str, word: &str, most: u64, (is_forced, began_without): (bool, bool)) -> String {
        let around = Circumstances { model: Generation::of(name), most, is_forced, began_without };
        match Thinking::with_effort(word, around) {
            Ok(Thinking { mode, effort, .. }) => format!("{} {}", mode.as_deref().unwrap_or("-"), effort.unwrap_or("-")),
            Err(unsupported) => unsupported.field.to_owned(),
        }
    }

    #[test]
    fn an_effort_takes_the_form_of_the_models_generation() {
        let adaptive = r#"{"type":"adaptive"}"#;
        let shown_adaptive = r#"{"type":"adaptive","display":"summarized"}"#;
        let budget = |tokens: u64| format!(r#"{{"type":"enabled","budget_tokens":{tokens}}} -"#);
        let table = [
            ("claude-sonnet-4-5", "low", 64_000, budget(2048)),
            ("claude-sonnet-4-5", "high", 64_000, budget(16_384)),
            ("claude-sonnet-4-5", "xhigh", 64_000, budget(32_000)),
            ("claude-sonnet-4-5", "high", 4096, budget(2048)),
            ("claude-sonnet-4-5", "high", 1025, budget(1024)),
            ("claude-sonnet-4-5", "high", 1024, "- -".to_owned()),
            ("claude-sonnet-4-5", "none", 4096, "- -".to_owned()),
            ("some-model", "medium", 64_000, budget(8192)),
            ("claude-sonnet-4-6", "xhigh", 4096, format!("{adaptive} max")),
            ("claude-opus-4-7", "xhigh", 4096, format!("{shown_adaptive} xhigh")),
            ("claude-sonnet-5", "minimal", 10, format!("{shown_adaptive} low")),
            ("claude-sonnet-5", "none", 10, r#"{"type":"disabled"} -"#.to_owned()),
            ("claude-opus-5-5", "none", 10, "reasoning_effort".to_owned()),
            ("claude-3-5-haiku", "low", 4096, "reasoning_effort".to_owned()),
            ("claude-sonnet-4-5", "huge", 4096, "reasoning_effort".to_owned()),
        ];
        for (name, word, most, expected) in table {
            assert_eq!(shown(name, word, most, FREE), expected, "{name} {word} {most}");
        }
    }

    #[test]
    fn a_budget_is_always_less_than_the_answer_may_be_long() {
        for most in [1025, 1500, 2047, 2048, 2049, 4096, 200_000] {
            for word in ["minimal", "low", "medium", "high", "xhigh", "max"] {
                let shown = shown("claude-sonnet-4-5", word, most, FREE);
                let budget: u64 = shown.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
                assert!((LEAST_BUDGET..most).contains(&budget), "{word} {most}: {budget}");
            }
        }
    }

    #[test]
    fn where_the_api_refuses_thinking_it_is_not_asked_for() {
        let adaptive = r#"{"type":"adaptive"} high"#;
        let table = [((true, false), "- -", "- high"), ((false, true), "- -", adaptive), ((true, true), "- -", "- high")];
        for (around, within, as_it_sees_fit) in table {
            assert_eq!(shown("claude-sonnet-4-5", "high", 64_000, around), within, "{around:?}");
            assert_eq!(shown("claude-opus-4-6", "high", 64_000, around), as_it_sees_fit, "{around:?}");
        }
    }
}
