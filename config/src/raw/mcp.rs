//! The tables of `mcp_servers:`. What desktop clients write of a server can stand here as it is; the other keys are ours.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::class::DataClass;
use crate::place::{Faults, Place};
use crate::raw::member;
use crate::raw::money::Usd;
use crate::raw::section::{At, section};
use crate::raw::shape::{Named, Scalar, Shape, Size, wrong};
use crate::raw::text::Text;
use crate::raw::words::Redact;
use crate::raw::yaml::{Node, Value};
use crate::tool::Effect;

section! {
    /// A server whose tools are found at run time: a program (`command`), or an address (`url`).
    McpServer {
        /// The program to start and to speak to over its input and output: a path, or a name that is looked for in PATH.
        command: Text,
        /// Its arguments.
        args: Vec<At<Scalar>> = "[]",
        /// Its environment, beside PATH, HOME, LANG and TMPDIR; it gets nothing else.
        env: Named<At<Scalar>> = "{}",
        /// Where it is reached over streamable HTTP. Host and port are in the group's `egress`.
        url: Text,
        /// Headers that are sent along.
        headers: Named<At<Scalar>> = "{}",
        /// How it is spoken to, as desktop clients say it: what `command` and `url` say already.
        r#type: Transport,
        /// The same under another name.
        transport: Transport,
        /// `true`: it is neither started nor asked.
        disabled: bool = "false",
        /// The family of its tools: a name of `groups`.
        group: Text = required,
        /// For a call or a listing, from its start to its last byte.
        timeout: Duration = "30s",
        /// Which of its tools may be had, each by its name, or as `name: { … }` with what holds for that one. Default: all.
        tools: Vec<At<Chosen<McpTool>>>,
        /// Whether its tools are switched on. Default: true.
        enabled: bool,
        /// What running them does to the world. What the server says about that is believed by nobody.
        effect: Effect = "non_idempotent_write",
        /// Only for admins.
        requires_admin: bool = "false",
        /// The rights that a caller must have, all of them.
        scopes: Vec<At<Text>> = "[]",
        /// Whether a person must agree first.
        requires_approval: bool = "true",
        /// How sensitive what they return is. Default: the group's.
        data_class: DataClass,
        /// Whether what they return is about people. Default: the group's.
        personal: bool,
        /// The longest text that the model gets, in bytes.
        max_result: Size = "50000",
        /// How long the same call of the same caller is answered from memory; only where they are read_only.
        cache: Duration,
        /// What a call costs, in US dollars with up to 9 decimals. Default: nothing.
        price: Usd<0>,
        /// Whether what they return is redacted.
        redact: Redact = "default",
    }
}

section! {
    /// What holds for one tool of a server; what is not said here is as the server's entry has it.
    McpTool {
        /// Whether it is switched on.
        enabled: bool,
        /// What running it does to the world.
        effect: Effect,
        /// Only for admins.
        requires_admin: bool,
        /// The rights that a caller must have, all of them.
        scopes: Vec<At<Text>>,
        /// Whether a person must agree first.
        requires_approval: bool,
        /// How sensitive what it returns is.
        data_class: DataClass,
        /// Whether what it returns is about people.
        personal: bool,
        /// From its start to its last byte.
        timeout: Duration,
        /// The longest text that the model gets, in bytes.
        max_result: Size,
        /// How long the same call of the same caller is answered from memory; only where it is read_only.
        cache: Duration,
        /// What a call costs, in US dollars with up to 9 decimals.
        price: Usd<0>,
        /// Whether what it returns is redacted.
        redact: Redact,
    }
}

/// How a server is spoken to, in the words of desktop clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Over its input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
}

/// Something that is chosen by its name, with or without what holds for it.
#[derive(Clone, Debug)]
pub(crate) struct Chosen<T> {
    /// The name, and where it stands.
    pub(crate) name: At<String>,
    /// What is said of it.
    pub(crate) with: Option<Box<T>>,
}

impl<T: Shape> Shape for Chosen<T> {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        const WANTED: &str = "a name, or a mapping of one name to what holds for it";
        let (name, with) = match &node.value {
            Value::Text(text) => (At { value: text.whole().into_owned(), place: place.clone() }, None),
            Value::Map(all) => {
                let [entry] = all.as_slice() else {
                    faults.add(place, format!("a mapping of {} names; allowed: {WANTED}", all.len()));
                    return None;
                };
                let place = Place::at(entry.spot, &member(&place.path, &entry.key));
                let with = T::read(&entry.value, &place, faults)?;
                (At { value: entry.key.clone(), place }, Some(Box::new(with)))
            }
            _ => return wrong(node, place, WANTED, faults),
        };
        if name.value.is_empty() {
            faults.add(&name.place, "a name is empty");
            return None;
        }
        Some(Self { name, with })
    }

    fn schema() -> Json {
        let with = json!({ "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": T::schema() });
        json!({ "anyOf": [Text::schema(), with] })
    }
}
