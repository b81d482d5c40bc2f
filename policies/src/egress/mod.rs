//! Whom a group's tools may reach: exactly the hosts and ports that the operator named, at addresses that fit who named them. [`judge`] is
//! asked about an origin that stands in the file, [`judge_url`] about a text that a model wrote; [`judge_address`] about each address that a
//! name turns out to have. What passed carries a [`Permit`], which only this module can make.

mod address;
mod credentials;
mod url;

use std::net::Ipv4Addr;

use toolgate_config::address::{BaseUrl, HostPort, Origin};
use toolgate_config::group::{EgressEntry, Group};

pub use self::address::{Addresses, Special, judge_address};
pub use self::credentials::Credentials;
pub use self::url::{Target, judge_url};

/// Why a tool may not reach an address; the words of `toolgate_egress_denied_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EgressRefusal {
    /// The group names no host at all.
    NoEgress,
    /// The group names hosts, but not this one.
    HostNotListed,
    /// The group names this host, but not on this port.
    PortNotListed,
    /// The text is no absolute URL.
    BadUrl,
    /// The scheme is neither http nor https.
    Scheme,
    /// The URL carries a user name or a password.
    Userinfo,
    /// The host is no name and no address.
    BadHost,
    /// The port is no number from 1 to 65535.
    BadPort,
    /// The name could not be resolved, so that nobody knows where it leads.
    Unresolved,
    /// The name has an address that it may not have.
    Address(Special),
    /// What a model filled in holds a credential.
    Secret,
}

impl EgressRefusal {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoEgress => "no_egress",
            Self::HostNotListed => "host_not_listed",
            Self::PortNotListed => "port_not_listed",
            Self::BadUrl => "bad_url",
            Self::Scheme => "scheme",
            Self::Userinfo => "userinfo",
            Self::BadHost => "bad_host",
            Self::BadPort => "bad_port",
            Self::Unresolved => "unresolved",
            Self::Address(special) => special.as_str(),
            Self::Secret => "secret",
        }
    }
}

/// Whom the tools of a group may reach.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Nobody.
    None,
    /// The operator's own sites; a model may choose the URL.
    OwnSite(&'a [BaseUrl]),
    /// These hosts.
    Listed(&'a [EgressEntry]),
}

impl<'a> Scope<'a> {
    /// The scope of a group.
    pub fn of(group: &'a Group) -> Self {
        if group.egress.is_empty() { Self::None } else { Self::Listed(&group.egress) }
    }
}

/// Proof that a tool may connect to an origin, and what its host may turn out to be.
#[derive(Clone, Copy, Debug)]
pub struct Permit<'o> {
    origin: &'o Origin,
    addresses: Addresses,
}

impl<'o> Permit<'o> {
    /// Where to.
    pub const fn origin(&self) -> &'o Origin {
        self.origin
    }

    /// Which addresses its host may have.
    pub const fn addresses(&self) -> Addresses {
        self.addresses
    }
}

/// Whether the tools of `group` may connect to `origin`, which the operator wrote. Both sides are normalised by their types, so equal means
/// equal.
///
/// # Errors
/// The reason, for the log and the metric; the model reads a generic text.
pub fn judge<'o>(group: &Group, origin: &'o Origin) -> Result<Permit<'o>, EgressRefusal> {
    let addresses = addresses(Scope::of(group), &origin.address, Addresses::Named)?;
    Ok(Permit { origin, addresses })
}

/// Which addresses a host of a scope may have: `by_name` unless the operator has vouched for more.
fn addresses(scope: Scope<'_>, host: &HostPort, by_name: Addresses) -> Result<Addresses, EgressRefusal> {
    let vouched = match scope {
        Scope::None => return Err(EgressRefusal::NoEgress),
        Scope::OwnSite(sites) => {
            listed(sites.iter().map(|site| &site.origin.address), host)?;
            false
        }
        Scope::Listed(entries) => {
            listed(entries.iter().map(|entry| &entry.address), host)?;
            entries.iter().any(|entry| entry.private && entry.address == *host)
        }
    };
    Ok(if vouched || is_literal(&host.host) { Addresses::Any } else { by_name })
}

fn listed<'a>(mut all: impl Iterator<Item = &'a HostPort> + Clone, wanted: &HostPort) -> Result<(), EgressRefusal> {
    if all.clone().any(|listed| listed == wanted) {
        return Ok(());
    }
    let same_host = all.any(|listed| listed.host == wanted.host);
    Err(if same_host { EgressRefusal::PortNotListed } else { EgressRefusal::HostNotListed })
}

/// Whether a normalised host is an address: the entry that it equals is then that very address.
fn is_literal(host: &str) -> bool {
    host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use toolgate_config::address::Scheme;
    use toolgate_config::class::TrustZone;
    use toolgate_config::names::GroupName;

    use super::*;

    fn group(hosts: &[(&str, u16, bool)]) -> Group {
        let entry = |&(host, port, private): &(&str, u16, bool)| EgressEntry {
            address: HostPort { host: host.to_owned(), port },
            private,
        };
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
        use Addresses as A;
        use EgressRefusal as R;
        let orders =
            [("orders.internal", 443, false), ("vouched.internal", 80, true), ("10.0.0.5", 80, false), ("[::1]", 80, false)];
        let table = [
            (&orders[..], "orders.internal", 443, Ok(A::Named)),
            (&orders, "orders.internal", 8443, Err(R::PortNotListed)),
            (&orders, "sub.orders.internal", 443, Err(R::HostNotListed)),
            (&orders, "internal", 443, Err(R::HostNotListed)),
            (&orders, "vouched.internal", 80, Ok(A::Any)),
            (&orders, "10.0.0.5", 80, Ok(A::Any)),
            (&orders, "[::1]", 80, Ok(A::Any)),
            (&orders, "10.0.0.6", 80, Err(R::HostNotListed)),
            (&[], "orders.internal", 443, Err(R::NoEgress)),
        ];
        for (listed, host, port, expected) in table {
            let origin = Origin { scheme: Scheme::Https, address: HostPort { host: host.to_owned(), port } };
            assert_eq!(judge(&group(listed), &origin).map(|permit| permit.addresses()), expected, "{host}:{port}");
        }
    }
}
