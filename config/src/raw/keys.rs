//! The tables of `keys:`.

use crate::raw::money::{Budget, Rates};
use crate::raw::section::{At, section};
use crate::raw::shape::InClear;
use crate::raw::text::Text;

section! {
    /// A caller.
    Key {
        /// Its name, in logs and metrics.
        name: Text = required,
        /// `sha256:` and the lower-case hex SHA-256 of the whole secret.
        hash: Text,
        /// A secret never stands in the file.
        key: InClear,
        /// A secret never stands in the file.
        secret: InClear,
        /// May use tools that ask for an admin, and read every trace.
        admin: bool = "false",
        /// The rights that it holds.
        scopes: Vec<At<Text>> = "[]",
        /// The models that it may name. Default: all.
        models: Vec<At<Text>>,
        /// Narrows what its models grant. Default: no narrowing.
        tools: Grant,
        /// May name an end user in `x-toolgate-user`.
        act_for: bool = "false",
        /// How much it may use in a calendar window.
        budgets: Vec<At<Budget>> = "[]",
        /// How fast its requests may come.
        rate: Rates = "[]",
    }
}

section! {
    /// Tools, by group and by name.
    Grant {
        /// Every tool of these groups.
        groups: Vec<At<Text>> = "[]",
        /// These tools.
        names: Vec<At<Text>> = "[]",
    }
}
