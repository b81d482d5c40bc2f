//! `tools --accept`: what a server says of a tool now becomes what is known of it.

use std::fmt::Write;

use toolgate_config::Config;
use toolgate_config::mcp::naming;
use toolgate_config::store::StoreUrl;
use toolgate_config::tool::{Tool, Work};
use toolgate_tools::definitions::visible;
use toolgate_tools::mcp::State;

use super::servers::{self, Asked};
use super::{Failure, print};
use crate::store::Unusable;
use crate::store::pins::{Digest, Pin, Pins};

/// Accepts these tools as their servers describe them now; a name that no server has leaves everything as it was.
pub(super) fn run(config: Config, names: &[String]) -> Result<(), Failure> {
    if config.store.url == StoreUrl::None {
        let why = "without a store each gateway knows tools as it saw them first: restart it, and it takes them as they are";
        return Err(Failure::Input(why.to_owned()));
    }
    let url = config.store.url.clone();
    let known = servers::known(&url).map_err(|Unusable(why)| Failure::Dependency(why))?;
    let asked = servers::ask(config)?;
    let wanted = names.iter().map(|name| wanted(&asked, name)).collect::<Result<Vec<_>, _>>()?;
    let pins: Vec<Pin> = wanted.iter().map(|(_, pin)| (*pin).clone()).collect();
    accept(&url, pins).map_err(|Unusable(why)| Failure::Dependency(why))?;
    for (name, pin) in wanted {
        let before = known.iter().find(|known| known.is_of_the_same_tool(pin));
        print(&account(name, before, pin));
    }
    Ok(())
}

fn accept(url: &StoreUrl, accepted: Vec<Pin>) -> Result<(), Unusable> {
    let runtime = servers::runtime().map_err(|_| Unusable("the system gives no runtime".to_owned()))?;
    let pins = Pins::open(url)?;
    runtime.block_on(async {
        let done = pins.accept(accepted).await;
        pins.close().await;
        done
    })
}

/// A tool of that name as its server describes it now.
fn wanted<'a>(asked: &'a Asked, name: &'a str) -> Result<(&'a str, &'a Pin), Failure> {
    let tool = asked.config.tools.find(name).and_then(|tool| pin_of(asked, tool));
    if let Some(pin) = tool {
        return Ok((name, pin));
    }
    let down = asked
        .listed
        .listings()
        .iter()
        .find(|listing| matches!(listing.state, State::Down(_)) && naming::may_offer(listing.server.name.as_str(), name));
    match down {
        Some(listing) => {
            Err(Failure::Dependency(format!("`{name}` cannot be accepted: its server `{}` cannot be asked", listing.server.name)))
        }
        None => {
            let remarks = asked.remarks.iter().map(|remark| format!("\n  {remark}")).collect::<String>();
            Err(Failure::Input(format!("no tool of an MCP server is named `{name}`; nothing was accepted{remarks}")))
        }
    }
}

fn pin_of<'a>(asked: &'a Asked, tool: &Tool) -> Option<&'a Pin> {
    let Work::Mcp(work) = &tool.work else { return None };
    let same = Pin::of(work.server.name.as_str(), &work.tool, String::new());
    asked.listed.pins().iter().find(|pin| pin.is_of_the_same_tool(&same))
}

/// What changed, for whoever accepts it.
fn account(name: &str, before: Option<&Pin>, now: &Pin) -> String {
    let Some(before) = before else {
        return format!("{name}: accepted as it is seen for the first time, {}\n", hash(&now.digest));
    };
    if before.digest == now.digest {
        return format!("{name}: it is as it was, {}\n", hash(&now.digest));
    }
    let mut text = format!("{name}: accepted\n  hash         {}\n            -> {}\n", hash(&before.digest), hash(&now.digest));
    let (old, new) = (parts(&before.definition), parts(&now.definition));
    for (what, old, new) in [("description", &old.0, &new.0), ("schema", &old.1, &new.1)] {
        if old != new {
            // Writing to a string cannot fail.
            let _ = write!(text, "  {what:<13}{old}\n            -> {new}\n");
        }
    }
    text
}

fn hash(digest: &Digest) -> String {
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Description and schema of a definition that was kept, as text that does nothing to a terminal.
fn parts(definition: &str) -> (String, String) {
    let list: Vec<serde_json::Value> = serde_json::from_str(definition).unwrap_or_default();
    let part = |at: usize| list.get(at).map_or_else(|| "(too long to be kept)".to_owned(), |value| visible(&value.to_string()));
    (part(1), part(2))
}
