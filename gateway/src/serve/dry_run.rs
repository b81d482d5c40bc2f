//! The answer to a dry run: what would be sent, what the gate says, and what it could cost.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::record::Recording;
use crate::failure::Failure;
use crate::money::Order;
use crate::reply::{Ended, Whole};
use crate::trace::{Status, usd, verdict_json};
use crate::wire::object;

/// Closes the record with the answer. `model` is the caller's name for the model, `sent` the body that the provider of the order would get.
pub(super) async fn answer(record: &mut Recording, model: &str, order: &Order<'_>, sent: &[u8]) -> Result<Ended, Failure> {
    let estimate = order.exact(true).await;
    let sent: &RawValue = serde_json::from_slice(sent).map_err(|_| Failure::Internal("a dry run"))?;
    let answer = json!({
        "object": "toolgate.dry_run",
        "model": model,
        "provider": order.target.provider.name.as_str(),
        "upstream_request": null,
        "gate": record.run.gate.iter().map(verdict_json).collect::<Vec<Value>>(),
        "estimate": { "input_tokens": estimate.prompt, "max_cost_usd": estimate.worst_cost().map(usd) },
    });
    // Spliced in as text: a value in between would round the caller's numbers.
    let edits = [object::Edit::Set("upstream_request", sent.get())];
    let answer = object::edited(answer.to_string().as_bytes(), &edits).map_err(|_| Failure::Internal("a dry run"))?;
    record.close(Status::Completed, 200);
    Ok(Ended::Whole(Whole::json(answer)))
}
