//! Schemas that say nothing but what Gemini takes, as most do: they go on as they were written, and nothing is built for that.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::plain::is_simple;
use crate::wire::object::as_str;

/// Whether the arguments of a function may go on with this schema as it is.
pub(super) fn is_taken(schema: &str) -> bool {
    let has_properties = |taken: &Taken<'_>| taken.properties.as_ref().is_some_and(|Names(names)| !names.is_empty());
    serde_json::from_str(schema)
        .is_ok_and(|taken: Taken<'_>| taken.kind == Kind::Object && has_properties(&taken) && taken.fits())
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// The keywords that go on; any other makes the schema one to be reduced.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Taken<'a> {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(borrow, default)]
    description: Option<&'a RawValue>,
    #[serde(borrow, default)]
    properties: Option<Names<'a>>,
    #[serde(borrow, default)]
    required: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    items: Option<Box<Inner<'a>>>,
    #[serde(borrow, default, rename = "enum")]
    words: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pattern: Option<&'a RawValue>,
    #[serde(default)]
    min_length: Option<u64>,
    #[serde(default)]
    max_length: Option<u64>,
    #[serde(default)]
    min_items: Option<u64>,
    #[serde(default)]
    max_items: Option<u64>,
    #[serde(borrow, default)]
    minimum: Option<&'a RawValue>,
    #[serde(borrow, default)]
    maximum: Option<&'a RawValue>,
}

impl Taken<'_> {
    /// Whether each keyword is one of this type, and has a value of its own.
    fn fits(&self) -> bool {
        let is_text = |raw: &&RawValue| raw.get().len() > 2 && raw.get().starts_with('"');
        let is_number = |raw: &&RawValue| !raw.get().starts_with('"') && raw.get().parse::<f64>().is_ok();
        let is = |kind| self.kind == kind;
        let of_numbers = self.minimum.is_some() || self.maximum.is_some();
        let of_texts = self.words.is_some() || self.pattern.is_some() || self.min_length.is_some() || self.max_length.is_some();
        let of_lists = self.items.is_some() || self.min_items.is_some() || self.max_items.is_some();
        let of_objects = self.properties.is_some() || self.required.is_some();
        (!of_numbers || is(Kind::Integer) || is(Kind::Number))
            && (!of_texts || is(Kind::String))
            && (!of_objects || is(Kind::Object))
            && of_lists == is(Kind::Array)
            && self.items.is_some() == is(Kind::Array)
            && [self.minimum, self.maximum].iter().flatten().all(is_number)
            && self.description.iter().all(is_text)
            && self.words.iter().flatten().all(is_text)
            && self.words.as_ref().is_none_or(|words| !words.is_empty())
            && self.pattern.is_none_or(|pattern| as_str(pattern).is_some_and(|pattern| is_simple(&pattern)))
            && self.requires_what_it_has()
    }

    fn requires_what_it_has(&self) -> bool {
        let Some(required) = &self.required else { return true };
        let Some(Names(names)) = &self.properties else { return false };
        !required.is_empty() && required.iter().all(|name| names.contains(&name.get()))
    }
}

/// A schema inside of another.
struct Inner<'a>(std::marker::PhantomData<&'a ()>);

impl<'de: 'a, 'a> Deserialize<'de> for Inner<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fits = Taken::deserialize(deserializer)?.fits();
        if fits { Ok(Self(std::marker::PhantomData)) } else { Err(Error::custom("it is to be reduced")) }
    }
}

/// The raw names of properties, each of which fits.
struct Names<'a>(Vec<&'a str>);

impl<'de: 'a, 'a> Deserialize<'de> for Names<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Names<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("properties")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut names = Vec::with_capacity(4);
                while let Some(name) = map.next_key::<&RawValue>()? {
                    if names.contains(&name.get()) {
                        return Err(Error::custom("it is to be reduced"));
                    }
                    map.next_value::<Inner<'_>>()?;
                    names.push(name.get());
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}
