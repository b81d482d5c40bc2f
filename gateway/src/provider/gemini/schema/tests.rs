//! Schemas as tools really have them, and what is left of them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn seen(schema: &Value) -> Option<Value> {
    parameters(&schema.to_string()).map(|text| if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() })
}

/// One property of this schema, and what is left of it.
fn property(schema: Value, expected: Value) {
    let whole = seen(&json!({ "type": "object", "properties": { "p": schema.clone() } })).unwrap();
    assert_eq!(whole["properties"]["p"], expected, "{schema}");
}

#[test]
fn case_23_references_unions_and_constants_become_what_gemini_takes() {
    let schema = json!({
        "type": "object",
        "$defs": { "P": {
            "type": "object",
            "properties": { "k": { "const": "x" }, "n": { "$ref": "#/$defs/P" } },
            "additionalProperties": false
        } },
        "properties": {
            "p": { "$ref": "#/$defs/P" },
            "u": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "l": { "type": "array" }
        }
    });
    let k = json!({ "type": "string", "enum": ["x"] });
    let expected = json!({
        "type": "object",
        "properties": {
            "p": { "type": "object", "properties": { "k": k, "n": { "type": "object", "properties": { "k": k } } } },
            "u": { "type": "string", "nullable": true },
            "l": { "type": "array", "items": { "type": "string" } }
        }
    });
    let made = seen(&schema).unwrap();
    assert_eq!(made, expected);
    for word in ["$ref", "$defs", "const", "additionalProperties"] {
        assert!(!made.to_string().contains(word), "{word}");
    }
}

#[test]
fn each_keyword_is_said_or_becomes_a_hint() {
    let table = [
        (json!({ "type": ["string", "null"] }), json!({ "type": "string", "nullable": true })),
        (
            json!({ "type": ["string", "integer"], "description": "D" }),
            json!({ "anyOf": [{ "type": "string", "description": "D" }, { "type": "integer", "description": "D" }] }),
        ),
        (json!({ "type": "string", "format": "uri" }), json!({ "type": "string", "description": "format: uri" })),
        (
            json!({ "type": "string", "format": "date-time", "description": "When" }),
            json!({ "type": "string", "format": "date-time", "description": "When" }),
        ),
        (
            json!({ "type": "string", "pattern": "^A-[0-9]{4}$", "minLength": 1, "maxLength": 9 }),
            json!({ "type": "string", "minLength": 1, "maxLength": 9, "pattern": "^A-[0-9]{4}$" }),
        ),
        (json!({ "type": "string", "pattern": "^(?!x)" }), json!({ "type": "string", "description": "matches ^(?!x)" })),
        (json!({ "enum": ["a", "", "b"] }), json!({ "type": "string", "enum": ["a", "b"] })),
        (json!({ "enum": ["a", null] }), json!({ "type": "string", "enum": ["a"], "nullable": true })),
        (json!({ "enum": [1, 5, 2] }), json!({ "type": "number", "minimum": 1, "maximum": 5, "description": "one of 1, 5, 2" })),
        (json!({ "type": "integer", "const": 7 }), json!({ "type": "integer", "minimum": 7, "maximum": 7 })),
        (json!({ "const": true }), json!({ "type": "boolean", "description": "must be true" })),
        (json!({ "type": "integer", "exclusiveMinimum": 0 }), json!({ "type": "integer", "minimum": 1 })),
        (json!({ "type": "integer", "exclusiveMaximum": 2.5 }), json!({ "type": "integer", "maximum": 2 })),
        (
            json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true, "multipleOf": 0.5 }),
            json!({ "type": "number", "minimum": 0, "description": "more than 0; a multiple of 0.5" }),
        ),
        (json!({ "type": "integer", "default": 10 }), json!({ "type": "integer", "description": "default: 10" })),
        (json!({}), json!({ "type": "string" })),
        (json!(true), json!({ "type": "string" })),
        (json!({ "description": "any" }), json!({ "type": "string", "description": "any" })),
        (
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            json!({ "type": "object", "description": "an object with keys of your choice" }),
        ),
        (
            json!({ "allOf": [{ "type": "object", "properties": { "a": { "type": "string" } } }, { "required": ["a"] }] }),
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] }),
        ),
        (
            json!({ "oneOf": [{ "const": "a" }, { "type": "integer", "minimum": 1 }] }),
            json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "integer", "minimum": 1 }] }),
        ),
        (
            json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "string" }], "minItems": 2 }),
            json!({ "type": "array", "minItems": 2, "items": { "type": "string" }, "description": "2 items, each in its place" }),
        ),
        (json!({ "type": "array", "items": false }), json!({ "type": "array", "items": { "type": "string" }, "maxItems": 0 })),
    ];
    for (schema, expected) in table {
        property(schema, expected);
    }
}

#[test]
fn alternatives_hold_all_that_is_common() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "anyOf": [{ "required": ["a"] }, { "required": ["b"] }]
    });
    let both = json!({ "a": { "type": "string" }, "b": { "type": "string" } });
    property(
        schema.clone(),
        json!({ "anyOf": [
            { "type": "object", "properties": both, "required": ["a"] },
            { "type": "object", "properties": both, "required": ["b"] }
        ] }),
    );
    assert_eq!(seen(&schema), Some(json!({ "type": "object", "properties": both })), "the arguments are one object");
}

#[test]
fn what_cannot_be_said_is_left_out_where_it_may_be() {
    let with = |required: Value, schema: Value| {
        seen(&json!({ "type": "object", "properties": { "a": { "type": "string" }, "p": schema }, "required": required }))
    };
    let rest = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    for unsayable in [json!(false), json!({ "$ref": "https://a.test/b.json" }), json!({ "$ref": "#/nowhere" }), json!(7)] {
        assert_eq!(with(json!([]), unsayable.clone()), Some(rest.clone()), "{unsayable}");
        assert_eq!(with(json!(["p"]), unsayable.clone()), None, "{unsayable}");
    }
}

#[test]
fn a_tree_of_lists_ends_with_an_empty_one() {
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#" } } },
        "required": ["name", "children"]
    });
    let made = seen(&schema).unwrap();
    let mut level = &made;
    let mut depth = 0;
    while level["properties"]["children"]["items"]["type"] == "object" {
        level = &level["properties"]["children"]["items"];
        depth += 1;
    }
    assert_eq!((depth, &level["properties"]["children"]["maxItems"]), (2, &json!(0)));
}

#[test]
fn arguments_that_say_nothing_are_left_out() {
    for schema in [
        json!({}),
        json!(true),
        json!({ "type": "object" }),
        json!({ "type": "object", "properties": {} }),
        json!({ "$schema": "x" }),
    ] {
        assert_eq!(seen(&schema), Some(Value::Null), "{schema}");
    }
    for schema in [json!(false), json!({ "type": "string" }), json!({ "type": "array" }), json!(7), json!(null)] {
        assert_eq!(seen(&schema), None, "{schema}");
    }
}

#[test]
fn a_schema_that_refers_to_itself_everywhere_stays_small() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let properties: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({ "$ref": format!("#/$defs/{name}") }))).collect();
    let node = json!({ "type": "object", "properties": properties });
    let definitions: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), node.clone())).collect();
    let schema = json!({ "$defs": definitions, "type": "object", "properties": properties });
    let schema = schema.to_string();
    let made = parameters(&schema).unwrap();
    assert!(made.len() <= 2 * MOST_GROWTH * schema.len(), "{} bytes of {}", made.len(), schema.len());
}

#[test]
fn case_23_what_is_referred_to_often_or_holds_many_alternatives_stays_bounded() {
    let long = json!({ "enum": [ "x".repeat(4000) ], "description": "y".repeat(4000) });
    let often: Map<String, Value> = (0..500).map(|at| (format!("p{at}"), json!({ "$ref": "#/$defs/long" }))).collect();
    let alternatives = |at: usize| {
        let all: Vec<Value> =
            (0..30).map(|n| json!({ "properties": { (format!("p{at}_{n}")): { "type": "string" } } })).collect();
        json!({ "anyOf": all })
    };
    let all: Vec<Value> = (0..200).map(alternatives).collect();
    let deep = (0..200).fold(
        json!({ "type": "string" }),
        |inner, _| json!({ "allOf": [inner, { "anyOf": [{ "minLength": 1 }, { "maxLength": 9 }] }] }),
    );
    for schema in [
        json!({ "type": "object", "$defs": { "long": long }, "properties": often }),
        json!({ "type": "object", "properties": { "a": { "type": "object", "allOf": all } } }),
        json!({ "type": "object", "properties": { "a": deep, "b": { "type": "string" } } }),
    ] {
        let schema = schema.to_string();
        let made = parameters(&schema).map(|made| made.len());
        assert!(
            made.is_none_or(|made| made <= 2 * MOST_GROWTH * schema.len() + 2 * LEAST_ROOM),
            "{made:?} bytes of {}",
            schema.len()
        );
    }
}

#[test]
fn what_is_said_in_geminis_words_goes_on_as_it_was_written() {
    let taken = r#"{ "required":["id"], "type":"object", "properties":{"id":{"type":"string","pattern":"^A-[0-9]{4}$"},"n":{"type":"integer","minimum":1.0},
        "tags":{"type":"array","items":{"type":"string","enum":["a","b"]},"maxItems":3},"open":{"type":"object","description":"any"}}}"#;
    assert!(matches!(parameters(taken), Some(Cow::Borrowed(text)) if text == taken));
    let others = [
        r#"{"type":"object","properties":{"a":{"type":"string","format":"uri"}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string","items":{"type":"string"}}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"array"}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"array","items":{}}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string","enum":[""]}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"integer","enum":[1]}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"integer","minimum":"1"}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string","pattern":"(?=x)"}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"integer"}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}"#,
        r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}"#,
        r##"{"type":"object","properties":{"a":{"$ref":"#"}}}"##,
        r#"{"type":"object","properties":{}}"#,
        r#"{"type":"string"}"#,
    ];
    for other in others {
        assert!(!taken::is_taken(other), "{other}");
    }
}

/// All keywords of a made schema, in all its levels.
fn keywords(value: &Value, found: &mut Vec<String>) {
    let Value::Object(made) = value else { return };
    found.extend(made.keys().cloned());
    for (key, inner) in made {
        match (&**key, inner) {
            ("properties", Value::Object(properties)) => properties.values().for_each(|value| keywords(value, found)),
            ("anyOf", Value::Array(alternatives)) => alternatives.iter().for_each(|value| keywords(value, found)),
            ("items", items) => keywords(items, found),
            _ => {}
        }
    }
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": "string", "enum": ["a"], "description": "D" })),
        Just(json!({ "type": "number", "maximum": 1.5 })),
        Just(json!({ "type": ["integer", "null"], "minimum": 1 })),
        Just(json!({ "const": 3 })),
        Just(json!({ "enum": ["a", 1, null, true] })),
        Just(json!({ "$ref": "#" })),
        Just(json!({ "$ref": "#/properties/x" })),
        Just(json!({ "type": "array" })),
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({})),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|all| json!({ "anyOf": all })),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|all| json!({ "allOf": all, "description": "D" })),
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items, "uniqueItems": true })),
            (inner.clone(), inner).prop_map(
                |(x, y)| json!({ "type": "object", "properties": { "x": x, "y": y }, "required": ["x"], "additionalProperties": false })
            ),
        ]
    })
}

proptest! {
    #[test]
    fn what_goes_on_as_it_was_is_what_would_be_made_of_it(schema in any_schema(), x in any_schema()) {
        let root = json!({ "type": "object", "properties": { "x": x, "y": { "type": "array", "items": schema } }, "required": ["x"] });
        if taken::is_taken(&root.to_string()) {
            let made = reduce(&root, root.to_string().len()).and_then(as_object).map(Value::Object);
            prop_assert_eq!(made, Some(root));
        }
    }

    #[test]
    fn whatever_is_made_has_only_what_gemini_takes(schema in any_schema()) {
        const TAKEN: [&str; 14] = [
            "type", "format", "description", "nullable", "enum", "items", "properties", "required", "minItems", "maxItems", "minimum",
            "maximum", "anyOf", "pattern",
        ];
        let root = json!({ "type": "object", "properties": { "x": schema, "y": { "$ref": "#/properties/x" } } });
        if let Some(made) = seen(&root) {
            let mut found = Vec::new();
            keywords(&made, &mut found);
            prop_assert!(found.iter().all(|keyword| TAKEN.contains(&&**keyword)), "{:?}", found);
            prop_assert!(made.to_string().len() < 200_000);
        }
    }
}
