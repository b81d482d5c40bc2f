//! `groups:`: a family of tools that is switched and judged together.

use crate::address::HostPort;
use crate::class::{DataClass, TrustZone};
use crate::names::GroupName;

/// What holds for every tool of a group.
#[derive(Debug)]
pub struct Group {
    /// Its name in the file.
    pub name: GroupName,
    /// `false` refuses every tool of it; no tool can undo that.
    pub enabled: bool,
    /// The class of what its tools return, unless a tool says otherwise.
    pub data_class: Option<DataClass>,
    /// Whether its tools return personal data, unless a tool says otherwise.
    pub personal: bool,
    /// Whom its tools may reach; empty: nobody.
    pub egress: Vec<EgressEntry>,
    /// How far those are trusted who receive the arguments.
    pub trust_zone: TrustZone,
}

/// One host that the tools of a group may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressEntry {
    /// Host and port, exactly.
    pub address: HostPort,
    /// The operator knows that it is a private address.
    pub private: bool,
}
