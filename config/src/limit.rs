//! `budgets:` and `rate:`: how much may be spent, and how fast.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::money::NanoUsd;

/// What is allowed to somebody: everybody together, a model, a key, or each end user of a key.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// How much in a calendar window.
    pub budgets: Vec<Budget>,
    /// How fast.
    pub rates: Vec<Rate>,
}

/// How much may be used in a calendar window.
#[derive(Clone, Debug)]
pub struct Budget {
    /// How much of what.
    pub limit: Amount,
    /// The window.
    pub per: Per,
    /// Whose calendar it is.
    pub timezone: Zone,
    /// Each end user of the key has one of its own.
    pub per_user: bool,
}

/// A time zone and its name in the IANA database, by which two are told apart.
#[derive(Clone, Debug)]
pub struct Zone {
    name: Arc<str>,
    rules: TimeZone,
}

impl Zone {
    /// The time zone of this name; `None`: there is none.
    pub fn find(name: &str) -> Option<Self> {
        let rules = if name == "UTC" { TimeZone::UTC } else { TimeZone::get(name).ok()? };
        Some(Self { name: rules.iana_name().unwrap_or(name).into(), rules })
    }

    /// Coordinated universal time.
    pub fn utc() -> Self {
        Self { name: "UTC".into(), rules: TimeZone::UTC }
    }

    /// The names that are known.
    pub fn known() -> impl Iterator<Item = String> {
        jiff::tz::db().available().map(|name| name.to_string())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its rules.
    pub fn rules(&self) -> &TimeZone {
        &self.rules
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// How much of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Money.
    Usd(NanoUsd),
    /// Tokens, in and out.
    Tokens(u64),
    /// Requests of callers.
    Requests(u64),
}

/// What a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// Money, in billionths of a dollar.
    Usd,
    /// Tokens.
    Tokens,
    /// Requests.
    Requests,
}

impl Amount {
    /// What is counted.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Usd(_) => Unit::Usd,
            Self::Tokens(_) => Unit::Tokens,
            Self::Requests(_) => Unit::Requests,
        }
    }

    /// How much, in the unit.
    pub const fn count(self) -> u64 {
        match self {
            Self::Usd(amount) => amount.0,
            Self::Tokens(count) | Self::Requests(count) => count,
        }
    }
}

impl Unit {
    /// The word of the file, of metrics and of reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Usd => "usd",
            Self::Tokens => "tokens",
            Self::Requests => "requests",
        }
    }
}

/// A calendar window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Per {
    /// A minute of the clock.
    Minute,
    /// An hour of the clock.
    Hour,
    /// From midnight.
    Day,
    /// From Monday.
    Week,
    /// From the first of the month.
    Month,
    /// For ever.
    Total,
}

impl Per {
    /// Every window, the shortest first.
    pub const ALL: [Self; 6] = [Self::Minute, Self::Hour, Self::Day, Self::Week, Self::Month, Self::Total];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Total => "total",
        }
    }
}

/// How fast requests may come. What is not set is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Requests in any 60 seconds.
    pub requests_per_minute: Option<u32>,
    /// Tokens in any 60 seconds.
    pub tokens_per_minute: Option<u32>,
    /// Requests at the same time.
    pub concurrent: Option<u32>,
    /// Each end user of the key has one of its own.
    pub per_user: bool,
}
