//! The list of a provider's models: where it is read, page by page, and what it says. Pure, as its neighbours.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;
use toolgate_config::provider::{Provider, ProviderKind};

use super::{anthropic, gemini, ollama};

/// The longest name that is listed, in bytes: a longer one could not be asked for.
const LONGEST_NAME: usize = 256;

/// A model as its provider lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub id: String,
    /// When it was made, in seconds since 1970; 0 where nobody says.
    pub created: u64,
    /// Whose it is, where somebody says.
    pub owner: Option<String>,
}

/// A page of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// What it lists.
    pub models: Vec<Listed>,
    /// By what the next page is asked for, where there is one.
    pub next: Option<String>,
}

/// Path and query of a page: the first one, or that which the one before has named.
pub fn path(provider: &Provider, page: Option<&str>) -> String {
    let base = &provider.base_url.path;
    let page = page.map(|page| utf8_percent_encode(page, NON_ALPHANUMERIC).to_string());
    let with = |path: String, name: &str| page.as_ref().map_or(path.clone(), |page| format!("{path}&{name}={page}"));
    match provider.kind {
        ProviderKind::Anthropic => with(format!("{}?limit=1000", anthropic::models_path(base)), "after_id"),
        ProviderKind::Gemini => with(format!("{}?pageSize=1000", gemini::models_path(base)), "pageToken"),
        ProviderKind::Ollama => ollama::models_path(base),
        ProviderKind::OpenAi
        | ProviderKind::Groq
        | ProviderKind::Mistral
        | ProviderKind::OpenRouter
        | ProviderKind::OpenAiCompatible => format!("{base}/models"),
    }
}

/// Reads a page. `None`: it is none.
pub fn read(provider: &Provider, body: &[u8]) -> Option<Page> {
    let page: Raw = serde_json::from_slice(body).ok()?;
    let (entries, next) = match provider.kind {
        ProviderKind::Anthropic => (page.data?, page.last_id.filter(|_| page.has_more == Some(true))),
        ProviderKind::Gemini => {
            // A provider without any leaves the list out.
            let mut models = page.models.unwrap_or_default();
            models.retain(generates);
            (models, page.next_page_token.filter(|token| !token.is_empty()))
        }
        ProviderKind::Ollama => (page.models?, None),
        ProviderKind::OpenAi
        | ProviderKind::Groq
        | ProviderKind::Mistral
        | ProviderKind::OpenRouter
        | ProviderKind::OpenAiCompatible => (page.data?, None),
    };
    Some(Page { models: entries.iter().filter_map(listed).collect(), next })
}

#[derive(Deserialize)]
struct Raw {
    data: Option<Vec<Value>>,
    models: Option<Vec<Value>>,
    has_more: Option<bool>,
    last_id: Option<String>,
    #[serde(rename = "nextPageToken")]
    next_page_token: Option<String>,
}

fn generates(model: &Value) -> bool {
    let methods = model.get("supportedGenerationMethods").and_then(Value::as_array);
    methods.is_some_and(|methods| methods.iter().any(|method| method == "generateContent"))
}

/// An entry in any of the forms: `id`, or `name`, which Gemini writes with its folder.
fn listed(entry: &Value) -> Option<Listed> {
    let name = entry.get("id").or(entry.get("name"))?.as_str()?;
    let id = name.strip_prefix("models/").unwrap_or(name);
    (1..=LONGEST_NAME).contains(&id.len()).then(|| Listed {
        id: id.to_owned(),
        created: entry.get("created").and_then(Value::as_u64).unwrap_or(0),
        owner: entry.get("owned_by").and_then(Value::as_str).map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolgate_config::check::{Source, read as read_config};

    use super::*;

    fn provider(kind: &str, base: &str) -> std::sync::Arc<Provider> {
        let file = format!(
            "providers: {{ p: {{ kind: {kind}, base_url: \"http://127.0.0.1:1{base}\" }} }}\nmodels: {{ m: {{ provider: p }} }}\n"
        );
        let config = read_config(&Source { path: Path::new("toolgate.yaml"), text: &file, env: &|_| None }).unwrap();
        config.model("m").unwrap().provider.clone()
    }

    #[test]
    fn each_kind_has_its_list_somewhere() {
        let table = [
            ("openai_compatible", "/v1", None, "/v1/models"),
            ("mistral", "/v1", None, "/v1/models"),
            ("groq", "/openai/v1", None, "/openai/v1/models"),
            ("anthropic", "", None, "/v1/models?limit=1000"),
            ("anthropic", "/v1", Some("a/b"), "/v1/models?limit=1000&after_id=a%2Fb"),
            ("gemini", "/v1beta", None, "/v1beta/models?pageSize=1000"),
            ("gemini", "", Some("x="), "/v1beta/models?pageSize=1000&pageToken=x%3D"),
            ("ollama", "", None, "/api/tags"),
            ("ollama", "/v1", None, "/api/tags"),
            ("ollama", "/api", None, "/api/tags"),
        ];
        for (kind, base, page, expected) in table {
            assert_eq!(path(&provider(kind, base), page), expected, "{kind} {base}");
        }
    }

    #[test]
    fn each_list_is_read_in_its_form() {
        let table = [
            (
                "openai",
                r#"{"object":"list","data":[{"id":"a","created":7,"owned_by":"x"},{"id":"b"},{"id":""},{"no":1},1]}"#,
                Some((vec!["a", "b"], None)),
            ),
            ("openai", r#"{"error":{}}"#, None),
            ("openai", "<html>", None),
            ("anthropic", r#"{"data":[{"type":"model","id":"c"}],"has_more":true,"last_id":"c"}"#, Some((vec!["c"], Some("c")))),
            ("anthropic", r#"{"data":[{"id":"c"}],"has_more":false,"last_id":"c"}"#, Some((vec!["c"], None))),
            (
                "gemini",
                r#"{"models":[{"name":"models/g","supportedGenerationMethods":["generateContent"]},{"name":"models/e","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"t"}"#,
                Some((vec!["g"], Some("t"))),
            ),
            ("gemini", "{}", Some((vec![], None))),
            ("ollama", r#"{"models":[{"name":"llama3:8b","model":"llama3:8b"}]}"#, Some((vec!["llama3:8b"], None))),
        ];
        for (kind, body, expected) in table {
            let page = read(&provider(kind, ""), body.as_bytes());
            let seen =
                page.as_ref().map(|page| (page.models.iter().map(|model| model.id.as_str()).collect(), page.next.as_deref()));
            assert_eq!(seen, expected, "{kind} {body}");
        }
        let page = read(&provider("openai", ""), br#"{"data":[{"id":"a","created":7,"owned_by":"x"}]}"#).unwrap();
        assert_eq!(page.models, [Listed { id: "a".into(), created: 7, owner: Some("x".into()) }]);
    }
}
