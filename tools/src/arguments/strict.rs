//! JSON that says one thing only: no key stands twice in an object, and nothing is nested without end.

use std::cell::RefCell;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::BadArguments;
use crate::bound;

/// How deep objects and arrays may stand in each other, the outermost object included.
pub(super) const DEEPEST: usize = 64;

/// How much of a key is repeated to the model, in bytes.
const LONGEST_KEY: usize = 64;

/// Parses with every key of every object seen once.
pub(super) fn strict(text: &str) -> Result<Value, BadArguments> {
    let fault = RefCell::new(None);
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = Strict { depth: 0, fault: &fault }.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    parsed.map_err(|_| fault.take().unwrap_or(BadArguments::NotJson))
}

/// A JSON value at some depth; what is wrong beyond JSON itself is left in `fault`.
#[derive(Clone, Copy)]
struct Strict<'f> {
    depth: usize,
    fault: &'f RefCell<Option<BadArguments>>,
}

impl Strict<'_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == DEEPEST {
            return Err(self.refuse(BadArguments::TooDeep));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    fn refuse<E: serde::de::Error>(self, fault: BadArguments) -> E {
        self.fault.replace(Some(fault));
        E::custom("")
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(self.refuse(BadArguments::Twice(bound::word(&key, LONGEST_KEY))));
            }
            let value = members.next_value_seed(inner)?;
            object.insert(key, value);
        }
        Ok(object.into())
    }
}
