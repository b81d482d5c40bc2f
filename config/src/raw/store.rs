//! The tables of `store:`.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::place::{Faults, Place};
use crate::raw::section::section;
use crate::raw::shape::{Shape, or_filled};
use crate::raw::text::Text;
use crate::raw::yaml::Node;
use crate::server::Privacy;
use crate::store::OnCounterFailure;

section! {
    /// What is kept, and where.
    Store {
        /// Where the ledger is: `sqlite:PATH`, a file of one gateway; `postgres://…`, a server that many share; `none`: no ledger, and so no budgets.
        url: Url = "sqlite:toolgate.db",
        /// Where rates and budgets are counted: `memory`, or `redis://…`, a server that many gateways share.
        counters: Counters = "memory",
        /// What happens to a request when its counters cannot be reached: it is refused, or each gateway counts for itself.
        on_counter_failure: OnCounterFailure = "refuse",
        /// How much of a run its trace keeps.
        privacy: Privacy = "redacted",
        /// How long things are kept.
        keep: Keep = "{}",
    }
}

section! {
    /// How long things are kept.
    Keep {
        /// Traces.
        traces: Duration = "30d",
        /// The rows of the ledger one by one; their sums stay.
        ledger: Duration = "400d",
    }
}

/// Where the ledger is, as written.
#[derive(Clone, Debug)]
pub(crate) struct Url(pub(crate) Text);

impl Shape for Url {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        Text::read(node, place, faults).map(Self)
    }

    fn schema() -> Json {
        or_filled(&json!({ "type": "string", "pattern": "^(none|sqlite:.+|postgres(ql)?://.+)$" }))
    }
}

/// Where rates and budgets are counted, as written.
#[derive(Clone, Debug)]
pub(crate) struct Counters(pub(crate) Text);

impl Shape for Counters {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        Text::read(node, place, faults).map(Self)
    }

    fn schema() -> Json {
        or_filled(&json!({ "type": "string", "pattern": "^(memory|(redis|rediss|redis\\+unix)://.+)$" }))
    }
}
