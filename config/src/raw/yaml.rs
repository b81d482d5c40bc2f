//! YAML text to a tree in which every key and every value knows its place. The only module that knows the YAML library; what the keys
//! mean begins in the modules beside it.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::{DuplicateKeyPolicy, Location, Options, Spanned};

use crate::raw::numeral::Numeral;

/// A line and a column, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node<T> {
    pub(crate) spot: Spot,
    pub(crate) value: Value<T>,
}

/// What can stand in a YAML file; `T` is what has become of its strings so far.
#[derive(Clone, Debug)]
pub(crate) enum Value<T> {
    Null,
    Bool(bool),
    Number(Numeral),
    Text(T),
    List(Vec<Node<T>>),
    Map(Vec<Entry<T>>),
    /// Something whose fault is reported already.
    Faulty,
}

/// A key and its value. A mapping keeps its order, and keys that occur twice.
#[derive(Clone, Debug)]
pub(crate) struct Entry<T> {
    pub(crate) key: String,
    pub(crate) spot: Spot,
    pub(crate) value: Node<T>,
}

/// Parses one document; bounds against files that expand without end are the library's own.
///
/// # Errors
/// Where the text stops being YAML, and why.
pub(crate) fn parse(text: &str) -> Result<Node<String>, (Spot, String)> {
    let tree = serde_saphyr::from_str_with_options::<Spanned<Tree>>(text, options()).map_err(|error| {
        let spot = error.location().map_or(Spot { line: 1, column: 1 }, spot);
        (spot, explain(&error))
    })?;
    let mut tree = node(tree);
    look_up_numbers(&mut tree, text);
    Ok(tree)
}

fn look_up_numbers(node: &mut Node<String>, text: &str) {
    match &mut node.value {
        Value::Number(number) => number.look_up(text),
        Value::List(items) => items.iter_mut().for_each(|item| look_up_numbers(item, text)),
        Value::Map(entries) => entries.iter_mut().for_each(|entry| look_up_numbers(&mut entry.value, text)),
        Value::Null | Value::Bool(_) | Value::Text(_) | Value::Faulty => {}
    }
}

fn options() -> Options {
    serde_saphyr::options! {
        // Hundreds of tools may share one anchor; what aliases expand to is bounded by the number of nodes.
        budget: serde_saphyr::budget! { enforce_alias_anchor_ratio: false },
        // Both are passed on, so that the fault can name both places.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        // `off`, `no` and `on` are words here, as in YAML 1.2.
        strict_booleans: true,
        with_snippet: false,
    }
}

fn explain(error: &serde_saphyr::Error) -> String {
    match error.without_snippet() {
        serde_saphyr::Error::MultipleDocuments { .. } => "a second document begins here; the file is one document".to_owned(),
        other => {
            let text = other.to_string();
            let end = text.find(" at line ").unwrap_or(text.len());
            format!("this is not YAML: {}", &text[..end])
        }
    }
}

fn spot(location: Location) -> Spot {
    let place = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).max(1);
    Spot { line: place(location.line()), column: place(location.column()) }
}

fn node(tree: Spanned<Tree>) -> Node<String> {
    let mut value = tree.value.0;
    if let Value::Number(number) = &mut value {
        number.stands_at(bytes(tree.defined));
    }
    Node { spot: spot(tree.referenced), value }
}

fn bytes(location: Location) -> Option<Range<usize>> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    Some(start..start.checked_add(usize::try_from(span.byte_len()?).ok()?)?)
}

struct Tree(Value<String>);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Tree)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value<String>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Value::Number(Number::from(value).into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Value::Number(Number::from(value).into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Number::from_f64(value).map(|value| Value::Number(value.into())).ok_or_else(|| E::custom("a number without end"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Self::Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(node(item));
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, Spanned<Tree>>()? {
            map.push(Entry { spot: spot(key.referenced), key: key.value, value: node(value) });
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(node: &Node<String>) -> String {
        let Spot { line, column } = node.spot;
        match &node.value {
            Value::List(items) => format!("{line}:{column}[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
            Value::Map(entries) => {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|Entry { key, spot, value }| format!("{key}@{}:{} {}", spot.line, spot.column, shown(value)))
                    .collect();
                format!("{line}:{column}{{{}}}", entries.join(", "))
            }
            Value::Number(number) => format!("{line}:{column} Number({number})"),
            scalar => format!("{line}:{column} {scalar:?}"),
        }
    }

    #[test]
    fn every_key_and_value_has_its_place() {
        let text = "a: 1\nb:\n  - x\n  - { c: off, d: true }\na: -2.5\n1: null\ne: \"1\"\n";
        assert_eq!(
            shown(&parse(text).unwrap()),
            "1:1{a@1:1 1:4 Number(1), b@2:1 3:3[3:5 Text(\"x\"), 4:5{c@4:7 4:10 Text(\"off\"), d@4:15 4:18 Bool(true)}], \
             a@5:1 5:4 Number(-2.5), 1@6:1 6:4 Null, e@7:1 7:4 Text(\"1\")}"
        );
    }

    #[test]
    fn an_alias_stands_where_it_is_used() {
        let text = "a: &x { k: 1 }\nb: *x\nc:\n  <<: *x\n  l: 2\n";
        assert_eq!(
            shown(&parse(text).unwrap()),
            "1:1{a@1:1 1:7{k@1:9 1:12 Number(1)}, b@2:1 2:4{k@2:4 2:4 Number(1)}, \
             c@3:1 4:3{l@5:3 5:6 Number(2), k@4:7 4:7 Number(1)}}"
        );
    }

    #[test]
    fn a_number_keeps_the_digits_that_it_is_written_with() {
        for (text, expected) in [
            ("a: [1.10, -0.50 , 7, 0x10, 1_000] # 2.0\n", "1.10 -0.50 7 16 1000"),
            ("ä: ü # 1.0\nb: { c: 9007199.254740993 }\n", "9007199.254740993"),
            ("\u{feff}a: 0.100000000000000000001", "0.100000000000000000001"),
            ("a: &x 0.30\nb: *x\nc: &y { d: 1e-9 }\ne: *y\n", "0.30 0.30 1e-9 1e-9"),
            ("a: 1.0\r\nb:\r\n- 18446744073709551616\r\n", "1.0 18446744073709551616"),
            ("a: !!float 1.50\n", "1.50"),
        ] {
            let mut seen = Vec::new();
            numbers(&parse(text).unwrap(), &mut seen);
            assert_eq!(seen.join(" "), expected, "{text}");
        }
    }

    fn numbers(node: &Node<String>, seen: &mut Vec<String>) {
        match &node.value {
            Value::Number(number) => seen.push(number.to_string()),
            Value::List(items) => items.iter().for_each(|item| numbers(item, seen)),
            Value::Map(entries) => entries.iter().for_each(|entry| numbers(&entry.value, seen)),
            _ => {}
        }
    }

    #[test]
    fn what_is_not_one_document_of_yaml_is_refused_with_its_place() {
        for (text, fault) in [
            ("a: 1\n---\nb: 2\n", "3:1: a second document begins here; the file is one document"),
            ("a: [1\nb: 2\n", "2:2: this is not YAML: illegal placement of ':' indicator"),
            ("a: \"x\n", "1:4: this is not YAML: unclosed quote"),
            ("a: *nobody\n", "1:4: this is not YAML: alias references unknown anchor"),
            ("? [a, b]\n: 1\n", "1:3: this is not YAML: expected string scalar"),
            ("a: .inf", "1:4: this is not YAML: non-finite float `.inf` rejected by the configured policy"),
        ] {
            let (spot, message) = parse(text).unwrap_err();
            assert_eq!(format!("{}:{}: {message}", spot.line, spot.column), fault);
        }
    }

    #[test]
    fn one_anchor_may_be_used_by_many() {
        let text = format!("a: &a {{ k: 1 }}\nb: [{}]\n", vec!["*a"; 500].join(", "));
        assert!(parse(&text).is_ok());
    }

    #[test]
    fn a_file_of_aliases_that_expands_without_end_is_refused() {
        let tenfold = |n: usize| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(","));
        let bomb: String = std::iter::once("a0: &a0 [x]\n".to_owned()).chain((1..12).map(tenfold)).collect();
        assert!(parse(&bomb).is_err());
    }
}
