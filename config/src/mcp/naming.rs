//! What the tools of MCP servers are called. A name depends on the server's name and the tool's alone, never on who else is there or came
//! first: it is the same after every restart, and what models and grants know stays right.

use std::fmt::Write;

use ring::digest::{SHA256, digest};

use crate::names::ToolName;

/// Between the server's name and the tool's.
pub const JOINT: &str = "__";

/// The longest name that every API takes.
const LONGEST: usize = 64;

/// How many hex digits tell two pairs apart whose names would look alike.
const DIGITS: usize = 10;

/// The name under which a server's tool is offered: `server__tool`, where that is legal and can be taken apart in one way only. Else what is
/// illegal is replaced, what is too long is cut, and a hash of the exact pair stands at the end.
pub fn offered(server: &str, tool: &str) -> ToolName {
    let plain = format!("{server}{JOINT}{tool}");
    if plain.len() <= LONGEST && plain.chars().all(is_legal) && plain.split_once(JOINT) == Some((server, tool)) {
        return ToolName::new(plain);
    }
    let mut name = stem(&plain);
    name.push('_');
    name.push_str(&hash(server, tool));
    ToolName::new(name)
}

/// What all names of a server's tools begin with. Two servers must not have the same.
pub fn prefix(server: &str) -> String {
    stem(&format!("{server}{JOINT}"))
}

/// Whether a tool of this server may have this name; which tools it has is not known yet.
pub fn may_offer(server: &str, name: &str) -> bool {
    let rest = name.strip_prefix(&prefix(server));
    rest.is_some_and(|rest| !rest.is_empty()) && name.len() <= LONGEST && name.chars().all(is_legal)
}

const fn is_legal(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// As much of a text as is followed by a hash, in legal characters.
fn stem(text: &str) -> String {
    text.chars().map(|c| if is_legal(c) { c } else { '_' }).take(LONGEST - 1 - DIGITS).collect()
}

/// The length goes in first, so that no two pairs give the same bytes.
fn hash(server: &str, tool: &str) -> String {
    let bytes = [&(server.len() as u64).to_le_bytes(), server.as_bytes(), tool.as_bytes()].concat();
    let digest = digest(&SHA256, &bytes);
    let mut digits = String::with_capacity(DIGITS);
    for byte in digest.as_ref().iter().take(DIGITS / 2) {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_name_is_server_and_tool() {
        for (server, tool, name) in [
            ("time", "get_current_time", "time__get_current_time"),
            ("red", "_fox", "red___fox"),
            ("a", "b__c", "a__b__c"),
            ("Shop-1", "find.x".trim_end_matches(".x"), "Shop-1__find"),
        ] {
            assert_eq!(offered(server, tool).as_str(), name);
        }
    }

    #[test]
    fn what_is_illegal_or_long_or_could_be_two_things_ends_in_a_hash() {
        for (server, tool, stem) in [
            ("red_", "fox", "red___fox_"),
            ("a__b", "c", "a__b__c_"),
            ("my server", "list", "my_server__list_"),
            ("files", "files.read/v2", "files__files_read_v2_"),
            ("files", "größe\r\n", "files__gr__e___"),
        ] {
            let name = offered(server, tool);
            assert!(name.as_str().starts_with(stem) && name.as_str().len() == stem.len() + DIGITS, "{name}");
        }
    }

    #[test]
    fn case_14_names_are_legal_and_distinct_whatever_the_servers_call_their_tools() {
        let long = |last: char| format!("{}{last}", "n".repeat(89));
        let pairs = [
            ("a", "search".to_owned()),
            ("b", "search".to_owned()),
            ("red_", "fox".to_owned()),
            ("red", "_fox".to_owned()),
            ("files", "files.read/v2".to_owned()),
            ("files", "files_read_v2".to_owned()),
            ("files", long('a')),
            ("files", long('b')),
            ("my server", "list".to_owned()),
            ("my_server_", "list".to_owned()),
            (&*"s".repeat(80), "one".to_owned()),
            (&*"s".repeat(80), "two".to_owned()),
        ];
        let mut owners = HashMap::new();
        for (server, tool) in &pairs {
            let name = offered(server, tool);
            assert!((1..=64).contains(&name.as_str().len()) && name.as_str().chars().all(is_legal), "{name}");
            assert!(may_offer(server, name.as_str()), "{name}");
            assert_eq!(owners.insert(name, (server, tool)), None);
        }
    }

    proptest! {
        #[test]
        fn every_pair_has_one_legal_name_and_no_two_pairs_the_same(
            one in ("[a_]{1,4}|[ -~]{1,70}", "[a_]{1,4}|\\PC{1,90}"),
            other in ("[a_]{1,4}|[ -~]{1,70}", "[a_]{1,4}|\\PC{1,90}"),
        ) {
            let names = [offered(&one.0, &one.1), offered(&other.0, &other.1)];
            prop_assert!(names.iter().all(|name| (1..=64).contains(&name.as_str().len()) && name.as_str().chars().all(is_legal)));
            prop_assert_eq!(names[0] == names[1], one == other);
            prop_assert!(may_offer(&one.0, names[0].as_str()));
        }
    }
}
