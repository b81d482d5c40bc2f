//! What servers list at one moment, and what tells each definition from another.

use std::collections::HashMap;

use toolgate_config::mcp::McpServer;
use toolgate_config::tool::{Definition, Tools};
use toolgate_tools::definitions::{self, Told};
use toolgate_tools::mcp::{Hub, Listing, State};

use crate::store::pins::{Digest, Pin};

/// What servers list.
#[derive(Default)]
pub struct Listed {
    listings: Vec<Listing>,
    /// Of each tool of each listing, in their order.
    pins: Vec<Pin>,
}

impl Listed {
    /// What is known of the servers now.
    pub fn now(hub: &Hub) -> Self {
        let listings = hub.listings();
        let pins = |listing: &Listing| {
            let server = listing.server.name.clone();
            listing.tools.iter().map(move |tool| Pin::of(server.as_str(), &tool.name, told(tool).canonical())).collect::<Vec<_>>()
        };
        Self { pins: listings.iter().flat_map(pins).collect(), listings }
    }

    /// What is known of each server.
    pub fn listings(&self) -> &[Listing] {
        &self.listings
    }

    /// Of each tool that is listed.
    pub fn pins(&self) -> &[Pin] {
        &self.pins
    }

    /// What is to be thought of each definition, where this is known of it: nothing known is nothing that can be trusted.
    pub fn judged(&self, known: &[Option<Digest>]) -> Vec<Definition> {
        let judge = |(at, pin): (usize, &Pin)| match known.get(at) {
            Some(Some(digest)) if *digest == pin.digest => Definition::Pinned,
            _ => Definition::Changed,
        };
        self.pins.iter().enumerate().map(judge).collect()
    }

    /// The tools. Of a server that was never asked with success, nothing is known.
    pub fn tools(&self, own: &Tools, judged: &[Definition]) -> definitions::Found {
        let all = self
            .listings
            .iter()
            .flat_map(|listing| listing.tools.iter().map(|tool| (listing.server.name.as_str().to_owned(), tool.name.as_str())));
        let judged: HashMap<_, _> = all.zip(judged.iter().copied()).collect();
        let of = |server: &McpServer, told: &Told<'_>| {
            judged.get(&(server.name.as_str().to_owned(), told.name)).copied().unwrap_or(Definition::Changed)
        };
        let known = self.listings.iter().filter(|listing| !is_unknown(listing));
        definitions::found(own, known.map(|listing| (&listing.server, listing.tools.iter().map(told).collect())), of)
    }

    /// Whether the same tools are made of both: of the same servers, as the same file describes them.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |(one, other): (&Listing, &Listing)| {
            std::sync::Arc::ptr_eq(&one.server, &other.server) && is_unknown(one) == is_unknown(other)
        };
        self.pins == other.pins
            && self.listings.len() == other.listings.len()
            && self.listings.iter().zip(&other.listings).all(same)
    }
}

fn is_unknown(listing: &Listing) -> bool {
    listing.tools.is_empty() && matches!(listing.state, State::Down(_))
}

fn told(tool: &toolgate_tools::mcp::Listed) -> Told<'_> {
    Told { name: &tool.name, description: &tool.description, schema: &tool.schema }
}
