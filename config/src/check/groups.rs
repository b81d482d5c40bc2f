//! `groups:`: egress, and where the arguments of their tools may go.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::HostPort;
use crate::class::{DataClass, TrustZone};
use crate::group::{EgressEntry, Group};
use crate::names::GroupName;
use crate::place::Faults;
use crate::raw::{self, At, File};

pub(super) fn groups(file: &File, faults: &mut Faults) -> BTreeMap<GroupName, Arc<Group>> {
    let mut groups = BTreeMap::new();
    for (name, raw) in file.groups.value().into_iter().flat_map(|named| &named.0) {
        zone_named_where_needed(&name.value, raw, file, faults);
        if let Some(group) = group(GroupName::new(name.value.as_str()), raw, faults) {
            groups.insert(group.name.clone(), Arc::new(group));
        }
    }
    groups
}

fn group(name: GroupName, raw: &raw::Group, faults: &mut Faults) -> Option<Group> {
    let egress = raw.egress.value().map(|egress| egress.0.iter().map(|entry| egress_entry(entry, faults)).collect::<Vec<_>>());
    Some(Group {
        name,
        enabled: *raw.enabled.value()?,
        data_class: raw.data_class.optional()?.map(|at| at.value),
        personal: *raw.personal.value()?,
        egress: egress?.into_iter().collect::<Option<_>>()?,
        trust_zone: raw.trust_zone.or(TrustZone::default())?,
    })
}

fn egress_entry(entry: &At<raw::EgressEntry>, faults: &mut Faults) -> Option<EgressEntry> {
    let (written, place, private) = match &entry.value {
        raw::EgressEntry::Address(text) => (text, &entry.place, false),
        raw::EgressEntry::Host(host) => {
            let At { value, place } = host.host.get()?;
            (value, place, *host.private.value()?)
        }
    };
    let address =
        HostPort::parse(&written.whole(), None).map_err(|why| format!("`{}` is no `host:port`: {why}", written.written));
    Some(EgressEntry { address: faults.take(place, address)?, private })
}

/// Arguments may repeat what a run has read. A group that sends them somewhere says how far that somewhere is trusted, if its own data
/// could not go to the strictest zone: the default would refuse its tools to each other.
fn zone_named_where_needed(name: &str, raw: &raw::Group, file: &File, faults: &mut Faults) {
    let reaches_out = raw.egress.value().is_some_and(|egress| !egress.0.is_empty());
    if !reaches_out || !raw.trust_zone.is_absent() {
        return;
    }
    let of_group = |tool: &&At<raw::Tool>| tool.value.group.value().is_some_and(|group| group.whole() == name);
    let tools = file.tools.value().into_iter().flatten().filter(of_group);
    let group = (raw.data_class.value().copied(), raw.personal.value().is_some_and(|personal| *personal));
    let of_tools = tools.map(|tool| (&tool.value.data_class, &tool.value.personal));
    let servers = file.mcp_servers.value().into_iter().flat_map(|named| &named.0).map(|(_, server)| server);
    let servers = servers.filter(|server| server.group.value().is_some_and(|group| group.whole() == name));
    let of_servers = servers.flat_map(|server| {
        let of_tools = server.tools.value().into_iter().flatten().filter_map(|tool| tool.value.with.as_ref());
        let of_tools = of_tools.map(|tool| (&tool.data_class, &tool.personal));
        std::iter::once((&server.data_class, &server.personal)).chain(of_tools)
    });
    let apis = file.openapi.value().into_iter().flat_map(|named| &named.0).map(|(_, api)| api);
    let apis = apis.filter(|api| api.group.value().is_some_and(|group| group.whole() == name));
    let of_apis = apis.flat_map(|api| {
        let of_tools = api.operations.value().into_iter().flatten().filter_map(|one| one.value.with.as_ref());
        let of_tools = of_tools.map(|tool| (&tool.data_class, &tool.personal));
        std::iter::once((&api.data_class, &api.personal)).chain(of_tools)
    });
    let of_tools = of_tools
        .chain(of_servers)
        .chain(of_apis)
        .map(|(class, personal)| (class.value().copied().or(group.0), personal.value().copied().unwrap_or(group.1)));
    if let Some((class, personal)) =
        std::iter::once(group).chain(of_tools).find(|(class, personal)| !fits_everywhere(*class, *personal))
    {
        let data = match class {
            Some(class) if personal => format!("{class}, personal"),
            Some(class) => class.to_string(),
            None => "personal".to_owned(),
        };
        let message = format!(
            "it has egress, and its own data ({data}) could not go to external_global; `trust_zone` says where its arguments go: local, private, external_eu, external_global"
        );
        faults.add(&raw.place, message);
    }
}

fn fits_everywhere(class: Option<DataClass>, personal: bool) -> bool {
    TrustZone::ExternalGlobal.may_see(class.unwrap_or(DataClass::Public), personal)
}
