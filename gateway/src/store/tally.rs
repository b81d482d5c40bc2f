//! Sums of rows, group by group, as the rows go by.

use std::collections::HashMap;

use super::Sum;

/// Whose a row is: its provider, model, the entry that answered, key and tool.
pub(super) type Group<'r> = [&'r str; 5];

/// The sums so far.
#[derive(Default)]
pub(super) struct Tally {
    groups: HashMap<String, Sum>,
    /// The name of a row's group; kept, so that not every row takes memory of its own.
    name: String,
}

impl Tally {
    /// Adds a row, or a sum, to its group; the names in `amounts` do not count.
    pub(super) fn add(&mut self, group: Group<'_>, amounts: &Sum) {
        self.name.clear();
        for part in group {
            self.name.push_str(part);
            // No text of the ledger holds one.
            self.name.push('\0');
        }
        if let Some(sum) = self.groups.get_mut(&self.name) {
            return sum.add(amounts);
        }
        let [provider, model, served, key, tool] = group.map(str::to_owned);
        let mut sum = Sum { provider, model, served, key, tool, ..Sum::default() };
        sum.add(amounts);
        self.groups.insert(self.name.clone(), sum);
    }

    /// The sums, in no order.
    pub(super) fn into_sums(self) -> Vec<Sum> {
        self.groups.into_values().collect()
    }
}

impl Sum {
    /// Adds another sum's amounts; what is more than can be counted stays at the most that can.
    pub fn add(&mut self, other: &Self) {
        for (own, others) in [
            (&mut self.calls, other.calls),
            (&mut self.requests, other.requests),
            (&mut self.tokens.fresh, other.tokens.fresh),
            (&mut self.tokens.cached, other.tokens.cached),
            (&mut self.tokens.cache_write, other.tokens.cache_write),
            (&mut self.tokens.output, other.tokens.output),
            (&mut self.reasoning, other.reasoning),
            (&mut self.cost.0, other.cost.0),
            (&mut self.unknown, other.unknown),
            (&mut self.estimated, other.estimated),
        ] {
            *own = own.saturating_add(others);
        }
    }
}
