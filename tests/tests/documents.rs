//! What the documents promise, held against the program: the README's configuration is one that `check` accepts, the page about the
//! configuration names every key that the program knows, and links lead somewhere.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is test code: what cannot go on stops the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolgate_tests::gateway::{Folder, Output, command};

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

async fn toolgate(folder: &Folder, args: &[&str]) -> Output {
    let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
    let env = [("OPENAI_API_KEY".to_owned(), "sk-of-nobody".to_owned())];
    command(folder, &args, &env).await.unwrap()
}

#[tokio::test]
async fn the_readmes_configuration_is_accepted() {
    let readme = document("README.md");
    let (_, block) = readme.split_once("```yaml\n").expect("a block of YAML");
    let (configuration, _) = block.split_once("```").expect("its end");
    let folder = Folder::new();
    folder.write("toolgate.yaml", configuration);
    let output = toolgate(&folder, &["check", "--config", "toolgate.yaml"]).await;
    assert_eq!(output.exit, 0, "{}{}", output.stdout, output.stderr);
}

#[tokio::test]
async fn every_key_of_the_configuration_has_its_place_in_the_documents() {
    let output = toolgate(&Folder::new(), &["schema"]).await;
    assert_eq!(output.exit, 0, "{}", output.stderr);
    let mut keys = BTreeSet::new();
    collect_keys(&serde_json::from_str(&output.stdout).unwrap(), &mut keys);
    assert!(keys.len() > 60, "the schema has lost its keys: {keys:?}");
    let page = document("docs/configuration.md");
    keys.retain(|key| !is_named(&page, key));
    assert!(keys.is_empty(), "docs/configuration.md does not name {keys:?}");
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let names = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "tests/README.md"].map(PathBuf::from);
    let pages = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| Path::new("docs").join(entry.unwrap().file_name()));
    for name in names.into_iter().chain(pages) {
        let text = document(&name.to_string_lossy());
        let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
        for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let file = link.split('#').next().unwrap_or_default();
            let target = root.join(&name).with_file_name("").join(file);
            assert!(target.exists(), "{}: {link} leads nowhere", name.display());
        }
    }
}

/// The names below every `properties` of a JSON Schema.
fn collect_keys(schema: &Value, keys: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties") {
                keys.extend(properties.keys().cloned());
            }
            members.values().for_each(|member| collect_keys(member, keys));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        _ => {}
    }
}

/// Whether a page has this word in code: alone, or within a longer piece such as `{ cert, key }`.
fn is_named(page: &str, key: &str) -> bool {
    let code = page.split('`').skip(1).step_by(2);
    code.flat_map(|piece| piece.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).any(|word| word == key)
}
