//! The road of a chat completion: who, what, from where, with which tools; then the loop, until the talk says that it is done. What each step of the
//! loop takes is [`Run`]'s business.

use std::sync::Arc;

use http::HeaderMap;
use hyper::body::Incoming;
use tokio::time::timeout_at;
use toolgate_config::names::ModelName;
use toolgate_policies::facts::Caller;
use toolgate_policies::gate;

use super::pause;
use super::record::Recording;
use super::run::Run;
use crate::failure::Failure;
use crate::gateway::Gateway;
use crate::intake::{self, Wishes};
use crate::reply::{Ended, Outlet};
use crate::talk::Turn;
use crate::wire::Request;

/// Takes a chat completion from its head to its last byte.
pub(super) async fn serve(
    gateway: &Arc<Gateway>,
    caller: Caller,
    headers: &HeaderMap,
    incoming: Incoming,
    outlet: &Outlet,
    record: &mut Recording,
) -> Result<Ended, Failure> {
    let wishes = Wishes::read(headers)?;
    let in_force = gateway.in_force();
    let config = &in_force.config;
    let body = intake::body(headers, incoming, config.server.max_body, config.server.header_timeout);
    let body = timeout_at(record.began() + config.server.request_timeout, body).await.unwrap_or(Err(Failure::BodyCut))?;
    let request = Request::parse(&body)?;
    let model = gate::admit(config, &caller, &request.model);
    record.run.model = Some(model.as_ref().map_or_else(|_| ModelName::new(request.model.as_str()), |model| model.name.clone()));
    let model = model?;
    if request.stream {
        outlet.expect_stream();
    }
    // What is hidden from a caller is not shown to it because it asks what would be sent.
    let taken_up =
        if wishes.dry_run { pause::as_it_came(&request)? } else { pause::take_up(gateway, config, &caller, &request).await? };
    let mut run = Run::open(gateway, &in_force, model, caller, headers, request, taken_up, &wishes, outlet, record)?;
    if wishes.dry_run {
        return run.dry_run().await;
    }
    // Each model call is paid for on its way (`upstream` asks the tab of the request), and `end` waits until all of it is written down.
    loop {
        match run.turn() {
            Turn::Ask(round) => run.ask(round).await?,
            Turn::Run(calls) => run.run_tools(calls).await,
            Turn::Done(ending) => return run.end(ending).await,
        }
    }
}
