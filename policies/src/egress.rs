//! Whom a group's tools may reach: exactly the hosts and ports that the operator named.

use toolgate_config::address::Origin;
use toolgate_config::group::Group;

/// Why a tool may not reach an address; the words of `toolgate_egress_denied_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EgressRefusal {
    /// The group names no host at all.
    NoEgress,
    /// The group names hosts, but not this one on this port.
    HostNotListed,
}

impl EgressRefusal {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoEgress => "no_egress",
            Self::HostNotListed => "host_not_listed",
        }
    }
}

/// Whether the tools of `group` may connect to `origin`. Both sides are normalised by their types, so equal means equal.
///
/// # Errors
/// The reason, for the log and the metric; the model reads a generic text.
pub fn judge(group: &Group, origin: &Origin) -> Result<(), EgressRefusal> {
    if group.egress.is_empty() {
        return Err(EgressRefusal::NoEgress);
    }
    let listed = group.egress.iter().any(|entry| entry.address == origin.address);
    if listed { Ok(()) } else { Err(EgressRefusal::HostNotListed) }
}

#[cfg(test)]
mod tests {
    use toolgate_config::address::{HostPort, Scheme};
    use toolgate_config::class::TrustZone;
    use toolgate_config::group::EgressEntry;
    use toolgate_config::names::GroupName;

    use super::*;

    fn group(hosts: &[(&str, u16)]) -> Group {
        let entry =
            |&(host, port): &(&str, u16)| EgressEntry { address: HostPort { host: host.to_owned(), port }, private: false };
        Group {
            name: GroupName::new("g"),
            enabled: true,
            data_class: None,
            personal: false,
            egress: hosts.iter().map(entry).collect(),
            trust_zone: TrustZone::default(),
        }
    }

    #[test]
    fn only_the_exact_host_and_port_pass() {
        let orders = [("orders.internal", 443)];
        let table = [
            (&orders[..], "orders.internal", 443, Ok(())),
            (&orders, "orders.internal", 8443, Err(EgressRefusal::HostNotListed)),
            (&orders, "sub.orders.internal", 443, Err(EgressRefusal::HostNotListed)),
            (&orders, "internal", 443, Err(EgressRefusal::HostNotListed)),
            (&[], "orders.internal", 443, Err(EgressRefusal::NoEgress)),
        ];
        for (listed, host, port, expected) in table {
            let origin = Origin { scheme: Scheme::Https, address: HostPort { host: host.to_owned(), port } };
            assert_eq!(judge(&group(listed), &origin), expected, "{host}:{port}");
        }
    }
}
