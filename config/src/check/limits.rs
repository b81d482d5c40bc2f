//! `budgets:` and `rate:`, wherever they stand: one amount a budget, a calendar that exists, and no two limits that would count the same.

use super::unique;
use crate::limit::{Amount, Budget, Limits, Rate, Unit, Zone};
use crate::place::{Faults, Place};
use crate::raw::{self, At, File, Given, Text, nearest};

/// Whether there are end users who could have a limit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Users {
    /// Those of a key that may name them.
    Named,
    /// The key may not name any.
    NotNamed,
    /// It is not a key's limit.
    OfKeysOnly,
}

/// The limits of one scope.
pub(super) fn limits(
    budgets: &Given<Vec<At<raw::Budget>>>,
    rates: &Given<raw::Rates>,
    users: Users,
    faults: &mut Faults,
) -> Option<Limits> {
    let budgets = self::budgets(budgets.value()?, users, faults);
    let rates = self::rates(&rates.value()?.0, users, faults);
    Some(Limits { budgets: budgets?, rates: rates? })
}

/// Every budget of the file, as it is written.
pub(super) fn all_budgets(file: &File) -> impl Iterator<Item = &At<raw::Budget>> {
    let everybody = file.limits.value().map(|limits| &limits.budgets);
    let models = file.models.value().into_iter().flat_map(|named| &named.0).map(|(_, model)| &model.budgets);
    let keys = file.keys.value().into_iter().flatten().map(|key| &key.value.budgets);
    everybody.into_iter().chain(models).chain(keys).filter_map(Given::value).flatten()
}

fn budgets(written: &[At<raw::Budget>], users: Users, faults: &mut Faults) -> Option<Vec<Budget>> {
    let all: Vec<_> = written.iter().map(|at| (budget(&at.value, users, faults), &at.place)).collect();
    let counted = |budget: &Budget| (budget.limit.unit(), budget.per, budget.timezone.clone(), budget.per_user);
    let known = all.iter().filter_map(|(budget, place)| Some((counted(budget.as_ref()?), *place)));
    unique(
        known,
        |(unit, per, zone, per_user)| {
            let (unit, per, zone) = (unit.as_str(), per.as_str(), zone.name());
            format!("two budgets of {unit} per {per} in {zone}{}", for_each_user(*per_user))
        },
        faults,
    );
    all.into_iter().map(|(budget, _)| budget).collect()
}

fn for_each_user(per_user: bool) -> &'static str {
    if per_user { " for each end user" } else { "" }
}

fn budget(raw: &raw::Budget, users: Users, faults: &mut Faults) -> Option<Budget> {
    let limit = amount(raw, faults);
    let timezone = raw.timezone.get().and_then(|timezone| zone(timezone, faults));
    let per_user = per_user(&raw.per_user, users, faults);
    Some(Budget { limit: limit?, per: *raw.per.value()?, timezone: timezone?, per_user: per_user? })
}

fn amount(raw: &raw::Budget, faults: &mut Faults) -> Option<Amount> {
    let written =
        [(Unit::Usd, raw.usd.is_absent()), (Unit::Tokens, raw.tokens.is_absent()), (Unit::Requests, raw.requests.is_absent())];
    let written: Vec<_> = written.iter().filter(|(_, absent)| !absent).map(|(unit, _)| *unit).collect();
    let [unit] = written[..] else {
        let here: Vec<_> = written.iter().map(|unit| unit.as_str()).collect();
        let here = if here.is_empty() { "none".to_owned() } else { here.join(", ") };
        faults.add(&raw.place, format!("a budget has exactly one of: usd, tokens, requests; here: {here}"));
        return None;
    };
    match unit {
        Unit::Usd => raw.usd.value().map(|amount| Amount::Usd(amount.0)),
        Unit::Tokens => raw.tokens.value().map(|count| Amount::Tokens(count.0)),
        Unit::Requests => raw.requests.value().map(|count| Amount::Requests(count.0)),
    }
}

fn zone(At { value, place }: &At<Text>, faults: &mut Faults) -> Option<Zone> {
    let name = value.whole();
    faults.take(place, Zone::find(&name).ok_or_else(|| no_zone(&value.written)))
}

fn no_zone(written: &str) -> String {
    let known: Vec<_> = Zone::known().collect();
    // A city by itself is a likely slip, and far from every full name.
    let city = |name: &&str| name.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(&written.replace(' ', "_")));
    let names = || known.iter().map(String::as_str);
    let near = names().find(city).or_else(|| nearest(written, names()));
    let near = near.map_or(String::new(), |name| format!("; nearest: {name}"));
    format!(
        "no time zone is named `{written}`; allowed: the names of the IANA time zone database, such as UTC, Europe/Berlin{near}"
    )
}

fn per_user(raw: &Given<bool>, users: Users, faults: &mut Faults) -> Option<bool> {
    let At { value, place } = raw.get()?;
    match users {
        Users::Named => {}
        Users::NotNamed if *value => {
            faults.add(place, "this key cannot name an end user; `per_user: true` goes with `act_for: true`");
        }
        Users::OfKeysOnly if *value => {
            faults.add(place, "end users are those of a key; `per_user: true` is allowed in `keys` only");
        }
        Users::NotNamed | Users::OfKeysOnly => {}
    }
    Some(*value)
}

fn rates(written: &[At<raw::Rate>], users: Users, faults: &mut Faults) -> Option<Vec<Rate>> {
    unique(
        written.iter().flat_map(|at| kinds(&at.value)),
        |(kind, per_user)| format!("two rates of {kind}{}", for_each_user(*per_user)),
        faults,
    );
    let all: Vec<_> = written.iter().map(|at| rate(at, users, faults)).collect();
    all.into_iter().collect()
}

/// What a rate limits, each with its place.
fn kinds(raw: &raw::Rate) -> impl Iterator<Item = ((&'static str, bool), &Place)> {
    let per_user = raw.per_user.value().copied().unwrap_or_default();
    let kinds = [
        ("requests_per_minute", raw.requests_per_minute.get()),
        ("tokens_per_minute", raw.tokens_per_minute.get()),
        ("concurrent", raw.concurrent.get()),
    ];
    kinds.into_iter().filter_map(move |(kind, at)| Some(((kind, per_user), &at?.place)))
}

fn rate(At { value: raw, place }: &At<raw::Rate>, users: Users, faults: &mut Faults) -> Option<Rate> {
    if raw.requests_per_minute.is_absent() && raw.tokens_per_minute.is_absent() && raw.concurrent.is_absent() {
        faults.add(place, "a rate has at least one of: requests_per_minute, tokens_per_minute, concurrent; here: none");
    }
    let per_user = per_user(&raw.per_user, users, faults);
    Some(Rate {
        requests_per_minute: raw.requests_per_minute.optional()?.map(|at| at.value.0),
        tokens_per_minute: raw.tokens_per_minute.optional()?.map(|at| at.value.0),
        concurrent: raw.concurrent.optional()?.map(|at| at.value.0),
        per_user: per_user?,
    })
}
