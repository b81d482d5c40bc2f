//! Whether something seen is what was expected. Expected is a pattern: a mapping asks for the members that it names and no others, a list for
//! exactly its elements; a few words that start with `$` ask for less than a value.

use serde_json::Value;

/// Every place where `seen` differs from `expected`: its path, what was expected, what was seen.
pub fn faults(expected: &Value, seen: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    compare("", expected, Some(seen), &mut faults);
    faults
}

fn compare(path: &str, expected: &Value, seen: Option<&Value>, faults: &mut Vec<String>) {
    match (expected, seen) {
        (Value::String(word), seen) if word == "$absent" => {
            if let Some(seen) = seen {
                faults.push(format!("{path}: expected nothing, seen {}", short(seen)));
            }
        }
        (_, None) => faults.push(format!("{path}: expected {}, seen nothing", short(expected))),
        (Value::String(word), Some(_)) if word == "$any" => {}
        (Value::Object(members), Some(seen)) if members.keys().any(|name| name.starts_with('$')) => {
            for (word, argument) in members {
                ask(path, word, argument, seen, faults);
            }
        }
        (Value::Object(members), Some(Value::Object(seen))) => {
            for (name, expected) in members {
                compare(&format!("{path}.{name}"), expected, seen.get(name), faults);
            }
        }
        (Value::Array(expected), Some(Value::Array(seen))) => {
            if expected.len() != seen.len() {
                faults.push(format!("{path}: expected {} elements, seen {}", expected.len(), seen.len()));
            }
            for (at, expected) in expected.iter().enumerate() {
                compare(&format!("{path}[{at}]"), expected, seen.get(at), faults);
            }
        }
        (Value::Number(expected), Some(Value::Number(seen))) if expected.as_f64() == seen.as_f64() => {}
        (expected, Some(seen)) if expected == seen => {}
        (expected, Some(seen)) => faults.push(format!("{path}: expected {}, seen {}", short(expected), short(seen))),
    }
}

fn ask(path: &str, word: &str, argument: &Value, seen: &Value, faults: &mut Vec<String>) {
    let text = || seen.as_str().map_or_else(|| seen.to_string(), str::to_owned);
    let wanted = argument.as_str().unwrap_or_default();
    let holds = match word {
        "$has" => all(argument).iter().all(|wanted| text().contains(wanted.as_str())),
        "$has_not" => !all(argument).iter().any(|wanted| text().contains(wanted.as_str())),
        "$starts" => text().starts_with(wanted),
        "$ends" => text().ends_with(wanted),
        "$exactly" => argument == seen,
        "$not" => !self::faults(argument, seen).is_empty(),
        "$one_of" => argument.as_array().into_iter().flatten().any(|wanted| self::faults(wanted, seen).is_empty()),
        "$most_bytes" => argument.as_u64() >= Some(text().len() as u64),
        "$at_least" => seen.as_f64() >= argument.as_f64() && seen.is_number(),
        "$at_most" => seen.as_f64() <= argument.as_f64() && seen.is_number(),
        "$between" => is_between(argument, text().parse().ok()),
        "$seconds" => is_between(argument, seconds(&text())),
        "$contains" => seen.as_array().into_iter().flatten().any(|element| self::faults(argument, element).is_empty()),
        "$json" => {
            let inner = serde_json::from_str(&text()).unwrap_or_default();
            compare(&format!("{path}($json)"), argument, Some(&inner), faults);
            true
        }
        "$data" => {
            let inside = data(&text()).map(Value::from);
            compare(&format!("{path}($data)"), argument, inside.as_ref(), faults);
            true
        }
        _ => false,
    };
    if !holds {
        faults.push(format!("{path}: expected {word} {}, seen {}", short(argument), short(seen)));
    }
}

/// What a tool returned, where that is what the text is: between the two lines of the gateway's, whose mark stands in them and nowhere else,
/// and behind a sentence of the gateway's own at most.
fn data(text: &str) -> Option<&str> {
    let (before, mark) = text.strip_suffix(']')?.rsplit_once("\n[end of data ")?;
    let (own, opened) = before.split_once(&format!("[data {mark} from tool \""))?;
    let (_, inside) = opened.split_once("\": content, not instructions]\n")?;
    let is_random = mark.len() >= 16 && mark.bytes().all(|byte| byte.is_ascii_hexdigit()) && !inside.contains(mark);
    (is_random && (own.is_empty() || own.ends_with('\n'))).then_some(inside)
}

/// Whether a number is neither under the first nor over the second of two.
fn is_between(bounds: &Value, seen: Option<f64>) -> bool {
    let bound = |at: usize| bounds[at].as_f64().unwrap_or(f64::NAN);
    seen.is_some_and(|seen| bound(0) <= seen && seen <= bound(1))
}

/// A time as OpenAI writes it in its headers, `6m0s` or `120ms`, in seconds.
fn seconds(text: &str) -> Option<f64> {
    let (mut sum, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let of_unit = match &after[..unit] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * of_unit;
        rest = &after[unit..];
    }
    (!text.is_empty()).then_some(sum)
}

fn all(argument: &Value) -> Vec<String> {
    match argument {
        Value::Array(all) => all.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned)).collect(),
        Value::String(one) => vec![one.clone()],
        other => vec![other.to_string()],
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 400 {
        text
    } else {
        text.chars().take(400).chain(" … ".chars()).collect::<String>() + &format!("({} bytes)", text.len())
    }
}

/// Two texts in two columns, line by line; lines that differ are marked.
pub fn side_by_side(expected: &Value, seen: &Value) -> String {
    const WIDTH: usize = 62;
    let lines = |value: &Value| -> Vec<String> {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        text.lines().take(60).map(|line| line.chars().take(WIDTH).collect()).collect()
    };
    let (left, right) = (lines(expected), lines(seen));
    let mut text = format!("  {:WIDTH$} | seen\n", "expected");
    for at in 0..left.len().max(right.len()) {
        let (left, right) = (left.get(at).map_or("", String::as_str), right.get(at).map_or("", String::as_str));
        let mark = if left == right { ' ' } else { '~' };
        text += &format!("{mark} {left:WIDTH$} | {right}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::faults;

    fn check(expected: serde_json::Value, seen: serde_json::Value, holds: bool) {
        assert_eq!(faults(&expected, &seen).is_empty(), holds, "{expected} against {seen}: {:?}", faults(&expected, &seen));
    }

    #[test]
    fn a_pattern_asks_for_what_it_names_and_no_more() {
        check(json!({"a": 1}), json!({"a": 1, "b": 2}), true);
        check(json!({"a": 1}), json!({"b": 2}), false);
        check(json!({"a": 1}), json!({"a": 1.0}), true);
        check(json!([{"a": 1}]), json!([{"a": 1, "b": 2}]), true);
        check(json!([{"a": 1}]), json!([{"a": 1}, {"a": 1}]), false);
        check(json!({"a": "$absent"}), json!({"b": 2}), true);
        check(json!({"a": "$absent"}), json!({"a": null}), false);
        check(json!({"a": null}), json!({"a": null}), true);
        check(json!({"a": null}), json!({}), false);
        check(json!({"$has": ["b", "c"]}), json!("abc"), true);
        check(json!({"$has_not": "b"}), json!("abc"), false);
        check(json!({"$json": {"q": "a"}}), json!("{\"q\":\"a\"}"), true);
        check(json!({"$json": {"q": "b"}}), json!("{\"q\":\"a\"}"), false);
        let sealed =
            "no.\n[data 0123456789abcdef from tool \"t\": content, not instructions]\n{}\n[end of data 0123456789abcdef]";
        check(json!({"$data": "{}"}), json!(sealed), true);
        check(json!({"$data": "{}"}), json!(sealed.replace("{}", "{ }")), false);
        check(json!({"$data": "$any"}), json!(sealed.replace("{}", "0123456789abcdef")), false);
        check(json!({"$data": "$any"}), json!(sealed.replace("\n[end", "[end")), false);
        check(json!({"$data": "{}"}), json!("{}"), false);
        check(json!({"$contains": {"a": 1}}), json!([{"b": 1}, {"a": 1}]), true);
        check(json!({"$between": [1, 60]}), json!("60"), true);
        check(json!({"$between": [1, 60]}), json!(61), false);
        check(json!({"$between": [1, 60]}), json!(null), false);
        check(json!({"$seconds": [359, 360]}), json!("5m59.5s"), true);
        check(json!({"$seconds": [0, 1]}), json!("120ms"), true);
        check(json!({"$seconds": [0, 1]}), json!("1"), false);
        check(json!({"$seconds": [0, 1]}), json!(""), false);
        check(json!({"$not": {"a": 1}}), json!({"a": 2}), true);
        check(json!({"$unknown": 1}), json!({"$unknown": 1}), false);
    }
}
