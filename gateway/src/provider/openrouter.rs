//! OpenRouter's accent: it tells what a call cost where it is asked to. What it
//! has beyond OpenAI's members (`models`, `route`, `provider`, `reasoning`, `reasoning_details`) goes both ways untouched.

use std::cell::Cell;

use toolgate_tools::net::Segments;

use super::Unsupported;
use super::openai::{COMPATIBLE, needs_compatible};
use super::openai_body::{Fate, has, list, rewritten, with_member};
use crate::wire::object::{self, Edit, Members};

pub(super) fn encode(body: &Segments) -> Result<Segments, Unsupported> {
    if !has(body, "\"usage\"") && !needs_compatible(body) {
        return Ok(with_member(body, USAGE));
    }
    let asks = Cell::new(false);
    let member = |_: &Members<'_>, name: &str, value: &str| {
        let is_usage = name == "usage";
        asks.set(asks.get() || is_usage);
        Ok(if is_usage { usage(value) } else { Fate::Stays })
    };
    let body = rewritten(body, member, |messages| list(messages, COMPATIBLE))?;
    Ok(if asks.get() { body } else { with_member(&body, USAGE) })
}

/// What tells usage and cost, as the last member of a request.
const USAGE: &str = r#","usage":{"include":true}}"#;

/// A caller's own wish for usage gets the one that is always wanted.
fn usage(wish: &str) -> Fate<'static> {
    let usage = object::edited(wish.as_bytes(), &[Edit::Set("include", "true")]);
    Fate::Is(usage.unwrap_or_else(|_| r#"{"include":true}"#.to_owned()).into())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn sent(body: &str) -> String {
        let body = Segments::from(Bytes::copy_from_slice(body.as_bytes()));
        String::from_utf8(encode(&body).unwrap().pieces().concat()).unwrap()
    }

    #[test]
    fn usage_and_cost_are_asked_for_and_the_rest_is_untouched() {
        let whole = |more: &str| {
            format!(
                r#"{{"model":"m","messages":[{{"role":"user","content":"\"usage\""}}],"models":["a","b"],"route":"fallback","temperature":1.10{more}}}"#
            )
        };
        assert_eq!(sent(&whole("")), whole(r#","usage":{"include":true}"#));
        assert_eq!(sent(&whole(r#","usage":{"include":false,"x":1}"#)), whole(r#","usage":{"include":true,"x":1}"#));
        assert_eq!(sent(&whole(r#","usage":null"#)), whole(r#","usage":{"include":true}"#));
        let in_a_tool = r#","tools":[{"function":{"parameters":{"properties":{"usage":{}}}}}]"#;
        assert_eq!(sent(&whole(in_a_tool)), whole(&format!(r#"{in_a_tool},"usage":{{"include":true}}"#)));
    }

    #[test]
    fn thoughts_go_back_as_they_came() {
        let turn = |more: &str| {
            format!(
                r#"{{"messages":[{{"role":"system","content":"S"}},{{"role":"assistant","reasoning":"hm","reasoning_details":[{{"type":"reasoning.encrypted","data":"d","id":null}}{more}]}}],"usage":{{"include":true}}}}"#
            )
        };
        assert_eq!(sent(&turn("")), turn(""));
        assert_eq!(sent(&turn(r#",{"signer":"0123456789abcdef","text":"t"}"#).replace("system", "developer")), turn(""));
    }
}
