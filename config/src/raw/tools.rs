//! The tables of `groups:` and `tools:`.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::class::{DataClass, TrustZone};
use crate::place::{Faults, Place};
use crate::raw::money::Usd;
use crate::raw::section::{At, section};
use crate::raw::shape::{Named, Scalar, Shape, Size, wrong};
use crate::raw::text::Text;
use crate::raw::words::{NoEgress, Redact, Words};
use crate::raw::yaml::{Node, Value};
use crate::tool::{Body, Effect, Errors, HttpMethod};

section! {
    /// A family of tools that is switched and judged together.
    Group {
        /// `false` refuses every tool of it; no tool can undo that.
        enabled: bool = "true",
        /// How sensitive what its tools return is, unless a tool says otherwise.
        data_class: DataClass,
        /// Whether what its tools return is about people, unless a tool says otherwise.
        personal: bool = "false",
        /// Whom its tools may reach. Absent: nobody.
        egress: Egress = "none",
        /// How far those are trusted who receive the arguments. Default: external_global.
        trust_zone: TrustZone,
    }
}

section! {
    /// One host that the tools of a group may reach.
    EgressHost {
        /// `host:port`, exactly.
        host: Text = required,
        /// Whether it may be a private address.
        private: bool = "false",
    }
}

section! {
    /// A function that the gateway can run.
    Tool {
        /// What the model calls: 1 to 64 letters, digits, `_`, `-`.
        name: Text = required,
        /// Its family: a name of `groups`.
        group: Text = required,
        /// What the model reads of it.
        description: Text = "",
        /// The JSON Schema of its arguments, of `type: object`. Default: no arguments.
        parameters: Json,
        /// The request that it is.
        http: Http = required,
        /// What running it does to the world. Default: read_only for GET and HEAD, else non_idempotent_write.
        effect: Effect,
        /// Whether it is switched on. Default: true for read_only, false for writes.
        enabled: bool,
        /// Only for admins.
        requires_admin: bool = "false",
        /// The rights that a caller must have, all of them.
        scopes: Vec<At<Text>> = "[]",
        /// Whether a person must agree first. Default: true for writes.
        requires_approval: bool,
        /// How sensitive what it returns is. Default: the group's.
        data_class: DataClass,
        /// Whether what it returns is about people. Default: the group's.
        personal: bool,
        /// From its start to its last byte.
        timeout: Duration = "30s",
        /// The longest text that the model gets, in bytes.
        max_result: Size = "50000",
        /// How long the same call of the same caller is answered from memory; for tools that only read.
        cache: Duration,
        /// What a call costs, in US dollars with up to 9 decimals. Default: nothing.
        price: Usd<0>,
        /// Whether what it returns is redacted.
        redact: Redact = "default",
    }
}

section! {
    /// An HTTP request with holes: `{name}` is the argument of that name, `{{` a brace.
    Http {
        /// The method.
        method: HttpMethod = "GET",
        /// Where it goes. Parameters in path and query only; host and port are in the group's `egress`.
        url: Text = required,
        /// Further query pairs. A parameter that the model left out drops its pair.
        query: Named<At<Scalar>> = "{}",
        /// Headers.
        headers: Named<At<Scalar>> = "{}",
        /// What becomes of arguments that are not used elsewhere. Default: json for POST, PUT, PATCH, else none.
        body: Body,
        /// What the model reads of a status over 299: its number, or the bounded body too.
        errors: Errors = "generic",
        /// A JSON pointer into the answer.
        select: Text,
    }
}

/// Whom the tools of a group may reach.
#[derive(Clone, Debug)]
pub(crate) struct Egress(pub(crate) Vec<At<EgressEntry>>);

/// One of them, as written.
#[derive(Clone, Debug)]
pub(crate) enum EgressEntry {
    /// `host:port`.
    Address(Text),
    /// With what the operator knows of it.
    Host(Box<EgressHost>),
}

impl EgressEntry {
    /// The address as written, if there is one.
    pub(crate) fn address(&self) -> Option<&Text> {
        match self {
            Self::Address(text) => Some(text),
            Self::Host(host) => host.host.value(),
        }
    }
}

impl Shape for Egress {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        match &node.value {
            Value::Text(text) if text.whole() == "own_site" => {
                let why = "`own_site` means the sites of `builtin.system.sites`, and `builtin` is not supported yet";
                faults.add(place, format!("{why}; allowed: a list of `host:port`, or the word none"));
                None
            }
            Value::Text(text) if NoEgress::WORDS.iter().any(|(word, _)| *word == text.whole()) => {
                NoEgress::read(node, place, faults).map(|NoEgress::None| Self(Vec::new()))
            }
            Value::Text(_) => wrong(node, place, "a list of `host:port`, or the word none", faults),
            _ => Vec::read(node, place, faults).map(Self),
        }
    }

    fn schema() -> Json {
        json!({ "anyOf": [NoEgress::schema(), Vec::<At<EgressEntry>>::schema()] })
    }
}

impl Shape for EgressEntry {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        match &node.value {
            Value::Text(text) => Some(Self::Address(text.clone())),
            Value::Map(_) => EgressHost::read(node, place, faults).map(Box::new).map(Self::Host),
            _ => wrong(node, place, "`host:port`, or a mapping with `host` and `private`", faults),
        }
    }

    fn schema() -> Json {
        json!({ "anyOf": [Text::schema(), EgressHost::schema()] })
    }
}
