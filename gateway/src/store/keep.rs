//! How long rows stay in the ledger one by one.

use std::time::Duration;

use toolgate_config::Config;
use toolgate_config::limit::{Limits, Per};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long rows are kept: as the file says, but not shorter than the longest window of a budget, which is counted from them. The sums of
/// dropped rows know no windows.
pub fn keep(config: &Config) -> Duration {
    let models = config.models.named.values().chain(&config.models.any).map(|model| &model.limits);
    let all = models.chain(config.keys.iter().map(|key| &key.limits)).chain([&config.limits]);
    all.filter_map(longest).fold(config.store.keep_ledger, Duration::max)
}

fn longest(limits: &Limits) -> Option<Duration> {
    limits.budgets.iter().map(|budget| length(budget.per)).max()
}

/// The longest that a window can be, the hour that summer time may add included.
const fn length(per: Per) -> Duration {
    match per {
        Per::Minute => Duration::from_secs(60),
        Per::Hour => HOUR,
        Per::Day => Duration::from_secs(25 * HOUR.as_secs()),
        Per::Week => Duration::from_secs(7 * DAY.as_secs() + HOUR.as_secs()),
        Per::Month => Duration::from_secs(31 * DAY.as_secs() + HOUR.as_secs()),
        // It is counted from the sums as well.
        Per::Total => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolgate_config::check::{Source, read};

    use super::*;

    #[test]
    fn rows_are_kept_for_the_longest_window_at_least() {
        let hash = format!("sha256:{}", "0".repeat(64));
        let table = [
            ("400d", "total", 400 * 24),
            ("2h", "total", 2),
            ("2h", "minute", 2),
            ("2h", "day", 25),
            ("2h", "week", 7 * 24 + 1),
            ("2h", "month", 31 * 24 + 1),
            ("60d", "month", 60 * 24),
        ];
        for (kept, per, hours) in table {
            let budget = format!("budgets: [ {{ per: {per}, requests: 10 }} ]");
            let own = [(budget.as_str(), "", ""), ("", budget.as_str(), ""), ("", "", budget.as_str())];
            for (of_all, of_model, of_key) in own {
                let file = format!(
                    "providers: {{ p: {{ kind: openai_compatible, base_url: \"http://127.0.0.1:1\" }} }}\nmodels: {{ m: {{ provider: p, {of_model} }} }}\nkeys: [ {{ name: k, hash: \"{hash}\", {of_key} }} ]\nlimits: {{ {of_all} }}\nstore: {{ keep: {{ ledger: {kept} }} }}\n"
                );
                let config = read(&Source { path: Path::new("toolgate.yaml"), text: &file, env: &|_| None }).unwrap();
                assert_eq!(keep(&config), HOUR * hours, "{file}");
            }
        }
    }
}
