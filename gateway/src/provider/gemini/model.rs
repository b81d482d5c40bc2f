//! What the name of a model says: where it is found, and what its generation can do.

use super::super::Unsupported;

/// A model of the API, by a name that may stand in a path.
pub(super) struct Model<'a> {
    /// Without a folder in front.
    id: &'a str,
    /// With it.
    resource: String,
}

/// How a model is told how hard to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinking {
    /// It does not.
    No,
    /// By a number of tokens, from the least to the most; from 0: it can be switched off.
    Budget(u32, u32),
    /// By a word.
    Level,
}

impl<'a> Model<'a> {
    /// Reads a name. It becomes a part of a path, so it is checked, not escaped.
    ///
    /// # Errors
    /// It could lead somewhere else.
    pub(super) fn of(name: &'a str) -> Result<Self, Unsupported> {
        let (folder, id) = ["models/", "tunedModels/"]
            .iter()
            .find_map(|folder| name.strip_prefix(folder).map(|id| (*folder, id)))
            .unwrap_or(("models/", name));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        // Two dots are a way up.
        if id.is_empty() || !id.bytes().all(is_plain) || id.bytes().all(|byte| byte == b'.') {
            let why = "is no name of a model of Gemini's: letters, digits, `.`, `_` and `-`, with `models/` or `tunedModels/` in front if need be";
            return Err(Unsupported { field: "model", why: why.to_owned() });
        }
        Ok(Self { id, resource: format!("{folder}{id}") })
    }

    /// Its name below the version of the API.
    pub(super) fn resource(&self) -> &str {
        &self.resource
    }

    /// The generation, as 2.5 is 25. Names that keep up with the newest model (`gemini-flash-latest`) are of the newest; a name that says
    /// nothing is of none.
    fn generation(&self) -> Option<u32> {
        let rest = self.id.strip_prefix("gemini-")?;
        if rest.ends_with("-latest") && !rest.starts_with(|first: char| first.is_ascii_digit()) {
            return Some(u32::MAX);
        }
        let version = rest.split('-').next().unwrap_or_default();
        let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
        Some(major.parse::<u32>().ok()?.checked_mul(10)? + minor.parse::<u32>().ok()?.min(9))
    }

    /// Whether a call of the history must carry a signature.
    pub(super) fn wants_signatures(&self) -> bool {
        self.generation() >= Some(30)
    }

    /// Whether pictures may stand inside a tool's result.
    pub(super) fn takes_media_in_results(&self) -> bool {
        self.generation() >= Some(30)
    }

    /// Whether an answer in JSON may be asked for beside tools.
    pub(super) fn takes_format_beside_tools(&self) -> bool {
        self.generation() >= Some(30)
    }

    /// Whether it fetches what stands at a public address. Some generations do, those before and after them do not.
    pub(super) fn fetches(&self) -> bool {
        matches!(self.generation(), Some(25 | 30))
    }

    /// How it is told how hard to think.
    pub(super) fn thinking(&self) -> Thinking {
        match self.generation() {
            Some(25) if self.id.contains("pro") => Thinking::Budget(128, 32_768),
            Some(25) => Thinking::Budget(0, 24_576),
            Some(generation) if generation >= 30 => Thinking::Level,
            _ => Thinking::No,
        }
    }

    /// The word for an effort. The first of the line knew two of them, and only the small models the least.
    pub(super) fn level(&self, effort: &str) -> Option<&'static str> {
        let is_pro = self.id.contains("pro");
        match effort {
            "minimal" if is_pro => Some("low"),
            "minimal" => Some("minimal"),
            "low" => Some("low"),
            "medium" if is_pro && self.generation() == Some(30) => Some("high"),
            "medium" => Some("medium"),
            "high" | "xhigh" | "max" => Some("high"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        let table = [
            ("gemini-2.5-flash", Some("models/gemini-2.5-flash")),
            ("models/gemini-2.5-flash", Some("models/gemini-2.5-flash")),
            ("tunedModels/mine_1", Some("tunedModels/mine_1")),
            ("", None),
            ("models/", None),
            ("..", None),
            ("a/b", None),
            ("a:b", None),
            ("a?key=b", None),
            ("a%2fb", None),
            ("models/models/a", None),
            ("é", None),
        ];
        for (name, expected) in table {
            assert_eq!(Model::of(name).ok().map(|model| model.resource().to_owned()).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn a_generation_is_read_from_the_name() {
        let table = [
            ("gemini-1.5-pro", Thinking::No, false, false),
            ("gemini-2.0-flash", Thinking::No, false, false),
            ("gemini-2.5-flash", Thinking::Budget(0, 24_576), false, true),
            ("gemini-2.5-pro-preview-05-06", Thinking::Budget(128, 32_768), false, true),
            ("gemini-3-pro-preview", Thinking::Level, true, true),
            ("gemini-3.1-flash-lite", Thinking::Level, true, false),
            ("gemini-4-argon", Thinking::Level, true, false),
            ("gemini-flash-latest", Thinking::Level, true, false),
            ("gemma-3-27b-it", Thinking::No, false, false),
        ];
        for (name, thinking, signs, fetches) in table {
            let model = Model::of(name).unwrap();
            assert_eq!((model.thinking(), model.wants_signatures(), model.fetches()), (thinking, signs, fetches), "{name}");
        }
    }

    #[test]
    fn an_effort_is_a_word_that_the_model_knows() {
        let level = |name, effort| Model::of(name).unwrap().level(effort);
        assert_eq!(level("gemini-3-pro-preview", "medium"), Some("high"));
        assert_eq!(level("gemini-3.1-pro-preview", "medium"), Some("medium"));
        assert_eq!(level("gemini-3.1-pro-preview", "minimal"), Some("low"));
        assert_eq!(level("gemini-3-flash-preview", "minimal"), Some("minimal"));
        assert_eq!(level("gemini-3-flash-preview", "none"), None);
    }
}
