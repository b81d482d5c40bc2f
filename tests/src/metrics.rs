//! Prometheus text, read so that a scenario can name a series with its labels in any order.

use std::collections::HashMap;

/// Every series by its name and its labels, sorted.
pub fn parse(text: &str) -> HashMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(series, value)| Some((sorted(series), value.parse().ok()?)))
        .collect()
}

/// A series with its labels sorted, the way [`parse`] has it.
pub fn sorted(series: &str) -> String {
    let Some((name, labels)) = series.trim().split_once('{') else { return series.trim().to_owned() };
    let mut labels: Vec<&str> =
        labels.trim_end_matches('}').split("\",").map(|label| label.trim().trim_end_matches('"')).collect();
    labels.retain(|label| !label.is_empty());
    labels.sort_unstable();
    format!("{name}{{{}}}", labels.join("\","))
}

#[cfg(test)]
mod tests {
    use super::{parse, sorted};

    #[test]
    fn labels_are_found_in_any_order() {
        let all = parse("# TYPE a counter\na_total{x=\"1\",y=\"2\"} 3\nb 0.5\n");
        assert_eq!(all.get(&sorted("a_total{y=\"2\", x=\"1\"}")), Some(&3.0));
        assert_eq!(all.get("b"), Some(&0.5));
    }
}
