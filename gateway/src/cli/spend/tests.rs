use toolgate_config::price::Billed;

use super::*;

fn sum(key: &str, tool: &str, cost: u64, unknown: u64) -> Sum {
    let tokens = if tool.is_empty() { Billed { fresh: 80, cached: 20, cache_write: 1, output: 50 } } else { Billed::default() };
    Sum {
        key: key.to_owned(),
        model: "support".to_owned(),
        tool: tool.to_owned(),
        calls: 4,
        requests: 2,
        tokens,
        reasoning: tokens.output / 2,
        cost: NanoUsd(cost),
        unknown,
        estimated: 1,
        ..Sum::default()
    }
}

fn spent() -> Spent {
    let sums = vec![
        sum("shop", "", 600_000, 0),
        sum("shop", "get_order", 2_000_000, 0),
        sum("kiosk", "", 1_250_000_000, 1),
        sum("new", "", 0, 4),
    ];
    Spent { sums, dropped_until: Some("2026-11-02T00:00:00Z".parse().unwrap()) }
}

#[test]
fn the_table_is_exact_and_what_is_unknown_is_not_zero() {
    let table = [
        (
            By::Key,
            "\
KEY    REQUESTS  CALLS  INPUT  CACHED  CACHE WRITE  OUTPUT  ESTIMATED  USD
kiosk         2      4     80      20            1      50          1  1.2500 + 1 unknown
shop          4      8     80      20            1      50          2  0.0026
new           2      4     80      20            1      50          1  unknown
total         8     16    240      60            3     150          4  1.2526 + 5 unknown
",
        ),
        (
            By::Tool,
            "\
TOOL       CALLS  USD
get_order      4  0.002
total          4  0.002
",
        ),
    ];
    for (by, expected) in table {
        assert_eq!(Report::new(by, None, &spent()).text(), expected);
    }
}

#[test]
fn json_has_the_same_shape_whatever_it_is_by() {
    let table = [
        (By::Key, "key", vec!["kiosk", "shop", "new"], vec!["1.25", "0.0026", "null"], "1.2526"),
        (By::Model, "model", vec!["support"], vec!["1.2526"], "1.2526"),
        (By::Tool, "tool", vec!["get_order"], vec!["0.002"], "0.002"),
    ];
    for (by, word, names, costs, total) in table {
        let text = Report::new(by, None, &spent()).json().unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        let rows = report["rows"].as_array().unwrap();
        assert_eq!(rows.iter().map(|row| row[word].as_str().unwrap()).collect::<Vec<_>>(), names);
        let written: Vec<_> = text.lines().filter_map(|line| line.trim().strip_prefix("\"cost_usd\": ")).collect();
        assert_eq!(written, [costs, vec![total]].concat());
        assert_eq!((&report["by"], &report["since"], &report["complete"]), (&json!(word), &json!(null), &json!(true)));
    }
    let report: serde_json::Value = serde_json::from_str(&Report::new(By::Key, None, &spent()).json().unwrap()).unwrap();
    let expected = json!({
        "key": "kiosk", "requests": 2, "calls": 4, "estimated_calls": 1, "unknown_calls": 1,
        "tokens": { "input": 80, "cached_input": 20, "cache_write": 1, "output": 50, "reasoning": 25 }, "cost_usd": 1.25,
    });
    assert_eq!(report["rows"][0], expected);
}

#[test]
fn a_report_says_what_is_not_in_it() {
    let early = Some("2026-11-01T00:00:00Z".parse().unwrap());
    let late = Some("2026-11-03T00:00:00Z".parse().unwrap());
    let none = Spent { sums: Vec::new(), dropped_until: None };
    let note = "Calls up to 2026-11-02T00:00:00Z have been dropped from the ledger";
    let table = [
        (Report::new(By::Key, early, &spent()), note, false),
        (Report::new(By::Key, late, &spent()), "total", true),
        (Report::new(By::Key, None, &none), "The ledger is empty.\n", true),
        (Report::new(By::Tool, None, &none), "The ledger has no call of a tool with a price.\n", true),
        (Report::new(By::Model, early, &none), "The ledger has no call since 2026-11-01T00:00:00Z.\n", true),
    ];
    for (report, expected, complete) in table {
        assert!(report.text().contains(expected), "{}", report.text());
        assert_eq!(report.text().contains(note), !complete);
        let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_eq!(json["complete"], json!(complete));
    }
}

#[test]
fn a_moment_is_so_long_ago_a_date_or_a_time() {
    let table = [
        ("2026-11-01", Some("2026-11-01T00:00:00Z")),
        ("2026-11-01T12:00:00Z", Some("2026-11-01T12:00:00Z")),
        ("2026-11-01T12:00:00+02:00", Some("2026-11-01T10:00:00Z")),
        ("2026-11-01T12:00:00", None),
        ("2026-13-01", None),
        ("yesterday", None),
        ("30", None),
        ("", None),
    ];
    for (text, expected) in table {
        assert_eq!(moment(text).ok(), expected.map(|time| time.parse().unwrap()), "{text}");
    }
    let ago = Timestamp::now().as_second() - moment("24h").unwrap().as_second();
    assert!((24 * 60 * 60..24 * 60 * 60 + 60).contains(&ago), "{ago}");
}
