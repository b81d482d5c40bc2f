//! One call: on the session that is there, and once more on the next one where the first died under it and twice does no harm.

use std::sync::Arc;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use serde_json::Value;
use tokio::time::Instant;
use toolgate_config::tool::Effect;

use super::answer::Answer;
use super::error::{CallError, Lost};
use super::server::Server;
use super::session::Session;
use super::wire::{self, Ticket};
use crate::arguments::Arguments;

/// Calls the tool of this name.
pub(super) async fn call(
    server: &Server,
    tool: &str,
    arguments: &Arguments,
    effect: Effect,
    due: Instant,
) -> Result<Answer, CallError> {
    let writes = effect != Effect::ReadOnly;
    let mut again = Again { untaken: true, taken: effect != Effect::NonIdempotentWrite };
    let mut maybe_done = false;
    loop {
        let session = match server.session(due).await {
            Ok(session) => session,
            Err(_) if maybe_done && writes => return Err(CallError::Unknown),
            Err(why) => return Err(why),
        };
        match ask(&session, tool, arguments, due).await {
            Ok(answer) => return Ok(answer),
            Err(Lost::Said { text, .. }) => return Ok(Answer::refused(&text)),
            Err(Lost::Late { sent }) => return Err(CallError::TimedOut { sent: sent || maybe_done }),
            Err(Lost::Untaken) if again.after_untaken() => {}
            Err(Lost::Taken) if again.after_taken() => maybe_done = true,
            Err(Lost::Status(500..) | Lost::Taken | Lost::Strange) if writes => return Err(CallError::Unknown),
            Err(_) if maybe_done && writes => return Err(CallError::Unknown),
            Err(Lost::Untaken | Lost::Taken | Lost::Status(_) | Lost::Strange) => return Err(CallError::Failed),
        }
    }
}

/// Which losses are still made good: each kind once.
struct Again {
    untaken: bool,
    taken: bool,
}

impl Again {
    fn after_untaken(&mut self) -> bool {
        std::mem::take(&mut self.untaken)
    }

    fn after_taken(&mut self) -> bool {
        std::mem::take(&mut self.taken)
    }
}

async fn ask(session: &Arc<Session>, tool: &str, arguments: &Arguments, due: Instant) -> Result<Answer, Lost> {
    let ticket = Ticket::with(arguments.text()).map_err(|_| Lost::Strange)?;
    let mut params = CallToolRequestParams::new(tool.to_owned());
    // What is sent is the text on the ticket; these are for whoever makes headers of them.
    if let Value::Object(arguments) = arguments.value() {
        params = params.with_arguments(arguments.clone());
    }
    let mut request = CallToolRequest::new(params);
    request.extensions.insert(ticket.clone());
    let result = session.ask(ClientRequest::CallToolRequest(request), &ticket, due).await?;
    let json = wire::unpacked(result).map_err(|_| Lost::Strange)?;
    Answer::read(&json).map_err(|_| Lost::Strange)
}
