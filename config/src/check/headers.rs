//! Headers that an operator sends along with everything that goes to one place, a credential as a rule.

use super::http::{header_name, is_illegal};
use super::unique;
use crate::place::Faults;
use crate::raw::shape::Scalar;
use crate::raw::{At, Given, Named};
use crate::secret::Secret;

/// Names in lower case, and their values. `never`: what is set by whoever sends them.
pub(super) fn sent_along(
    written: &Given<Named<At<Scalar>>>,
    never: &[&str],
    faults: &mut Faults,
) -> Option<Vec<(String, Secret)>> {
    let named = &written.value()?.0;
    let lower = named.iter().map(|(name, _)| (name.value.to_ascii_lowercase(), &name.place));
    unique(lower, |name| format!("two headers of one name, `{name}`"), faults);
    named.iter().map(|(name, value)| header(name, value, never, faults)).collect::<Vec<_>>().into_iter().collect()
}

fn header(name: &At<String>, value: &At<Scalar>, never: &[&str], faults: &mut Faults) -> Option<(String, Secret)> {
    let legal = faults.take(&name.place, header_name(&name.value));
    let own = legal.as_deref().is_some_and(|name| never.contains(&name));
    if own {
        faults.add(&name.place, format!("the protocol sets this header itself; never allowed here: {}", never.join(", ")));
    }
    let text = value.value.0.whole();
    if text.chars().any(is_illegal) {
        faults.add(&value.place, "a header's value holds no line break and no other control character");
        return None;
    }
    legal.filter(|_| !own).map(|name| (name, Secret::new(text)))
}
