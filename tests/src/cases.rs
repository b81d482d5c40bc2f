//! From scenario files to cases: each file in each of its variants and modes is a test of its own.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::{fill, merge};
use crate::dialect::Dialect;
use crate::scenario::{Mode, Scenario, both};
use crate::services;

/// A case: one test of the runner.
#[derive(Clone)]
pub struct Case {
    /// `area::file::variant::mode`, `::anthropic` and so on where the model speaks that, and `::shared` where others share its stores.
    pub name: String,
    /// Where it is written.
    pub file: PathBuf,
    /// Which variant of the file.
    pub variant: Option<String>,
    /// How it is played.
    pub mode: Mode,
    /// Where it counts and writes down.
    pub stores: Stores,
    /// What the model speaks.
    pub dialect: Dialect,
    /// It is not played, because what it shows is not built yet, or because what it needs is not at hand.
    pub is_pending: bool,
}

/// Where a gateway counts, and writes down what was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stores {
    /// By itself: in its memory and in a file.
    Own,
    /// Where many gateways do: in Redis and in PostgreSQL.
    Shared,
}

/// Whether this version has stores and counters that many gateways share.
const SHARED_ARE_THERE: bool = true;

/// The dialects that this version speaks.
const IS_SPOKEN: [Dialect; 5] = [Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini, Dialect::Ollama, Dialect::Mistral];

impl Stores {
    /// What is about money is played with both; everything else with a gateway's own.
    fn of(area: &str) -> Vec<Self> {
        if area == "money" && SHARED_ARE_THERE { vec![Self::Own, Self::Shared] } else { vec![Self::Own] }
    }
}

impl Case {
    /// The scenario of this case, with its placeholders filled.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn scenario(&self, placeholders: &[(&str, String)]) -> Result<Scenario, String> {
        let mut whole = read(&self.file, placeholders)?;
        let variants = whole.remove("variants");
        if let Some(variant) = &self.variant {
            let over = variants.as_ref().and_then(|all| all.get(variant)).cloned();
            merge_scenario(&mut whole, over.ok_or_else(|| format!("no variant {variant}"))?);
        }
        for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini, Dialect::Ollama, Dialect::Mistral] {
            let over = whole.remove(dialect.as_str()).filter(|_| dialect == self.dialect);
            // What holds for all that are translated comes first.
            let shared = (dialect == self.dialect).then(|| whole.remove("translated")).flatten();
            for over in shared.filter(|_| dialect.is_translated()).into_iter().chain(over) {
                merge_scenario(&mut whole, over);
            }
        }
        let (plain, streamed) = (whole.remove("plain"), whole.remove("streamed"));
        if let Some(over) = if self.mode == Mode::Plain { plain } else { streamed } {
            merge_scenario(&mut whole, over);
        }
        serde_json::from_value(Value::Object(whole)).map_err(|error| format!("{}: {error}", self.file.display()))
    }
}

/// Every case below a folder, in the order of the file names; of the files only those that may hold the case `only`, where it is given: a runner
/// that takes a process for each case would read them all each time.
///
/// # Errors
/// The first file that is not a scenario.
pub fn cases(folder: &Path, only: Option<&str>) -> Result<Vec<Case>, String> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let relative = file.strip_prefix(folder).expect("below the folder").with_extension("");
        let name = relative.to_string_lossy().replace('/', "::");
        if only.is_some_and(|only| !only.starts_with(&name)) {
            continue;
        }
        let whole = read(&file, &[])?;
        let variants: Vec<Option<String>> = match whole.get("variants") {
            Some(Value::Object(variants)) => variants.keys().cloned().map(Some).collect(),
            _ => vec![None],
        };
        for variant in variants {
            let of_variant = variant.as_deref().and_then(|variant| whole["variants"][variant].get("pending"));
            let is_pending = of_variant.or_else(|| whole.get("pending")).is_some();
            let named = variant.iter().fold(name.clone(), |name, variant| format!("{name}::{variant}"));
            let modes = modes(&whole, variant.as_deref());
            for mode in modes.clone() {
                // Where it is counted has nothing to do with how it is told: once with the shared ones is enough.
                let once = |stores: &Stores| *stores == Stores::Own || Some(&mode) == modes.first();
                for stores in stores(&whole, &name).into_iter().filter(once) {
                    for dialect in dialects(&whole, variant.as_deref()) {
                        // Money is counted alike in all of them.
                        if stores == Stores::Shared && dialect != Dialect::OpenAi {
                            continue;
                        }
                        let shared = if stores == Stores::Shared { "::shared" } else { "" };
                        let spoken = if dialect == Dialect::OpenAi { String::new() } else { format!("::{}", dialect.as_str()) };
                        let name = format!("{named}::{}{spoken}{shared}", mode.as_str());
                        let is_pending =
                            is_pending || !IS_SPOKEN.contains(&dialect) || (stores == Stores::Shared && !services::are_at_hand());
                        all.push(Case { name, file: file.clone(), variant: variant.clone(), mode, stores, dialect, is_pending });
                    }
                }
            }
        }
    }
    Ok(all)
}

fn modes(whole: &Map<String, Value>, variant: Option<&str>) -> Vec<Mode> {
    let own = variant.and_then(|variant| whole["variants"][variant].get("modes"));
    let written = own.or_else(|| whole.get("modes")).cloned();
    written.and_then(|modes| serde_json::from_value(modes).ok()).unwrap_or_else(both)
}

fn dialects(whole: &Map<String, Value>, variant: Option<&str>) -> Vec<Dialect> {
    let own = variant.and_then(|variant| whole["variants"][variant].get("dialects"));
    let written = own.or_else(|| whole.get("dialects")).cloned();
    written.and_then(|dialects| serde_json::from_value(dialects).ok()).unwrap_or_else(|| vec![Dialect::OpenAi])
}

fn stores(whole: &Map<String, Value>, name: &str) -> Vec<Stores> {
    let written = whole.get("stores").cloned().and_then(|stores| serde_json::from_value(stores).ok());
    written.unwrap_or_else(|| Stores::of(name.split("::").next().unwrap_or_default()))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
}

fn read(file: &Path, placeholders: &[(&str, String)]) -> Result<Map<String, Value>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    serde_saphyr::from_str(&fill(&text, placeholders)).map_err(|error| format!("{}: {error}", file.display()))
}

/// Scripts and expectations of a variant take the place of those of the file; everything else is merged.
fn merge_scenario(whole: &mut Map<String, Value>, over: Value) {
    let mut value = Value::Object(std::mem::take(whole));
    merge(&mut value, over);
    if let Value::Object(map) = value {
        *whole = map;
    }
}
