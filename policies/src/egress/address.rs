//! Which addresses a name may turn out to have. An IPv4 address inside an IPv6 one is taken out and judged too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::EgressRefusal;

/// Which addresses a connection may go to, by who chose its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// All: the operator wrote that very address, or said that it is private, or it is a provider.
    Any,
    /// Those of a name that the operator wrote. It is often private, and never what only a machine's own platform answers at.
    Named,
    /// Those of a host that a model chose, or of one of the operator's sites: what the whole world can reach.
    Public,
}

/// What is special about an address: the words of `toolgate_egress_denied_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// No address at all: 0.0.0.0/8, `::`.
    Unspecified,
    /// This machine.
    Loopback,
    /// RFC 1918.
    Private,
    /// Between a provider and its customers: 100.64.0.0/10.
    Shared,
    /// This link.
    LinkLocal,
    /// Where a cloud tells its machines who they are, credentials included.
    Metadata,
    /// Many at once.
    Multicast,
    /// All at once.
    Broadcast,
    /// Only for books.
    Documentation,
    /// Only for laboratories.
    Benchmarking,
    /// fc00::/7.
    UniqueLocal,
    /// fec0::/10, which has been withdrawn.
    SiteLocal,
    /// An IPv6 address that stands for an IPv4 address.
    Embedded,
    /// A translator of this network, 64:ff9b:1::/48: which IPv4 address it means cannot be known from outside.
    LocalNat64,
    /// Nobody's.
    Reserved,
}

impl Special {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unspecified => "address_unspecified",
            Self::Loopback => "address_loopback",
            Self::Private => "address_private",
            Self::Shared => "address_shared",
            Self::LinkLocal => "address_link_local",
            Self::Metadata => "address_metadata",
            Self::Multicast => "address_multicast",
            Self::Broadcast => "address_broadcast",
            Self::Documentation => "address_documentation",
            Self::Benchmarking => "address_benchmarking",
            Self::UniqueLocal => "address_unique_local",
            Self::SiteLocal => "address_site_local",
            Self::Embedded => "address_embedded",
            Self::LocalNat64 => "address_local_nat64",
            Self::Reserved => "address_reserved",
        }
    }

    /// Whether a name that the operator wrote may not have it either: what nobody runs a tool at, or what gives credentials to whoever asks.
    const fn is_never_meant(self) -> bool {
        match self {
            Self::Unspecified | Self::LinkLocal | Self::Metadata | Self::Multicast | Self::Broadcast | Self::LocalNat64 => true,
            Self::Loopback
            | Self::Private
            | Self::Shared
            | Self::Documentation
            | Self::Benchmarking
            | Self::UniqueLocal
            | Self::SiteLocal
            | Self::Embedded
            | Self::Reserved => false,
        }
    }
}

/// Whether a connection may go to this address.
///
/// # Errors
/// What is special about it.
pub fn judge_address(address: IpAddr, allowed: Addresses) -> Result<(), EgressRefusal> {
    let refused = match allowed {
        Addresses::Any => None,
        Addresses::Named => special(address, |found| found.is_never_meant()),
        Addresses::Public => special(address, |_| true),
    };
    refused.map_or(Ok(()), |special| Err(EgressRefusal::Address(special)))
}

/// The first thing about an address that matters.
fn special(address: IpAddr, matters: impl Fn(Special) -> bool) -> Option<Special> {
    match address {
        IpAddr::V4(address) => of_v4(address).filter(|special| matters(*special)),
        IpAddr::V6(address) => {
            let inner = embedded(address).into_iter().flatten().filter_map(of_v4);
            inner.chain(of_v6(address)).find(|special| matters(*special))
        }
    }
}

/// Where clouds tell their machines who they are: AWS, GCP, Azure and most others; AWS's containers; Alibaba; Oracle; Azure's own host.
const METADATA_V4: [Ipv4Addr; 6] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// The same over IPv6: AWS, AWS's containers, GCP.
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// By the registries of special-purpose addresses.
fn of_v4(address: Ipv4Addr) -> Option<Special> {
    Some(match address.octets() {
        _ if METADATA_V4.contains(&address) => Special::Metadata,
        [0, ..] => Special::Unspecified,
        [127, ..] => Special::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Special::Private,
        [100, 64..=127, ..] => Special::Shared,
        [169, 254, ..] => Special::LinkLocal,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Special::Documentation,
        [198, 18..=19, ..] => Special::Benchmarking,
        [224..=239, ..] => Special::Multicast,
        [255, 255, 255, 255] => Special::Broadcast,
        [240..=255, ..] | [192, 0, 0, _] | [192, 88, 99, _] => Special::Reserved,
        _ => return None,
    })
}

fn of_v6(address: Ipv6Addr) -> Option<Special> {
    Some(match address.segments() {
        _ if METADATA_V6.contains(&address) => Special::Metadata,
        [0, 0, 0, 0, 0, 0, 0, 0] => Special::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Special::Loopback,
        // DNS64 makes these for every name in a network without IPv4: what is inside decides, and has been judged.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => return None,
        [0x64, 0xff9b, 1, ..] => Special::LocalNat64,
        [0xfc00..=0xfdff, ..] => Special::UniqueLocal,
        [0xfe80..=0xfebf, ..] => Special::LinkLocal,
        [0xfec0..=0xfeff, ..] => Special::SiteLocal,
        [0xff00..=0xffff, ..] => Special::Multicast,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Special::Documentation,
        [0x2001, 2, 0, ..] => Special::Benchmarking,
        _ if embedded(address).iter().any(Option::is_some) => Special::Embedded,
        [0x2001, 0..=0x1ff, ..] => Special::Reserved,
        [0x2000..=0x3fff, ..] => return None,
        _ => Special::Reserved,
    })
}

/// The IPv4 addresses that an IPv6 address stands for; Teredo has two, its relay and its client.
fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [None; 2],
        // Compatible, mapped, translated by SIIT, NAT64.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => [v4(high, low), None],
        [0, 0, 0, 0, 0xffff, 0, high, low] => [v4(high, low), None],
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => [v4(high, low), None],
        // 6to4.
        [0x2002, high, low, ..] => [v4(high, low), None],
        // Teredo, where the client's is turned over.
        [0x2001, 0, high, low, _, _, client_high, client_low] => [v4(high, low), v4(!client_high, !client_low)],
        // ISATAP.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => [v4(high, low), None],
        _ => [None; 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How an address is judged where it must be public, and where the operator wrote the name.
    fn check(address: &str, public: Option<Special>, named: Option<Special>) {
        let address: IpAddr = address.parse().unwrap();
        let judged = |allowed| judge_address(address, allowed);
        let expected = |special: Option<Special>| special.map_or(Ok(()), |special| Err(EgressRefusal::Address(special)));
        assert_eq!(judged(Addresses::Public), expected(public), "{address}, public");
        assert_eq!(judged(Addresses::Named), expected(named), "{address}, named");
        assert_eq!(judged(Addresses::Any), Ok(()), "{address}, any");
    }

    #[test]
    fn what_the_world_can_reach_passes() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001::1",
            "2001:4860:4860::8888",
            "2001:200::1",
            "64:ff9b::808:808",
        ] {
            check(address, None, None);
        }
    }

    #[test]
    fn what_an_operator_may_mean_is_refused_to_models_alone() {
        use Special as S;
        for (address, special) in [
            ("127.0.0.1", S::Loopback),
            ("127.255.255.254", S::Loopback),
            ("::1", S::Loopback),
            ("10.0.0.5", S::Private),
            ("172.16.0.1", S::Private),
            ("172.31.255.255", S::Private),
            ("192.168.1.1", S::Private),
            ("100.64.0.1", S::Shared),
            ("100.127.255.255", S::Shared),
            ("fc00::1", S::UniqueLocal),
            ("fdff:ffff::1", S::UniqueLocal),
            ("fec0::1", S::SiteLocal),
            ("192.0.2.1", S::Documentation),
            ("198.51.100.1", S::Documentation),
            ("203.0.113.1", S::Documentation),
            ("2001:db8::1", S::Documentation),
            ("3fff:fff::1", S::Documentation),
            ("198.18.0.1", S::Benchmarking),
            ("198.19.255.255", S::Benchmarking),
            ("2001:2::1", S::Benchmarking),
            ("192.0.0.1", S::Reserved),
            ("192.88.99.1", S::Reserved),
            ("240.0.0.1", S::Reserved),
            ("255.255.255.254", S::Reserved),
            ("100::1", S::Reserved),
            ("2001:10::1", S::Reserved),
            ("2001:1ff::1", S::Reserved),
            ("4000::1", S::Reserved),
            ("5f00::1", S::Reserved),
            ("::ffff:127.0.0.1", S::Loopback),
            ("::ffff:10.0.0.1", S::Private),
            ("::ffff:8.8.8.8", S::Embedded),
            ("::ffff:0:7f00:1", S::Loopback),
            ("::127.0.0.1", S::Loopback),
            ("::8.8.8.8", S::Embedded),
            ("64:ff9b::7f00:1", S::Loopback),
            ("64:ff9b::10.0.0.1", S::Private),
            ("2002:7f00:1::", S::Loopback),
            ("2002:808:808::1", S::Embedded),
            ("2001:0:808:808::f5ff:fffa", S::Private),
            ("2001:0:a00:1::f7f7:f7f7", S::Private),
            ("2001:0:808:808::f7f7:f7f7", S::Embedded),
            ("2a00::5efe:10.0.0.1", S::Private),
            ("2a00::200:5efe:8.8.8.8", S::Embedded),
        ] {
            check(address, Some(special), None);
        }
    }

    #[test]
    fn what_no_operator_means_is_refused_to_all() {
        use Special as S;
        for (address, special) in [
            ("169.254.169.254", S::Metadata),
            ("169.254.170.2", S::Metadata),
            ("169.254.170.23", S::Metadata),
            ("100.100.100.200", S::Metadata),
            ("192.0.0.192", S::Metadata),
            ("168.63.129.16", S::Metadata),
            ("fd00:ec2::254", S::Metadata),
            ("fd00:ec2::23", S::Metadata),
            ("fd20:ce::254", S::Metadata),
            ("::ffff:169.254.169.254", S::Metadata),
            ("::ffff:a9fe:a9fe", S::Metadata),
            ("::169.254.169.254", S::Metadata),
            ("64:ff9b::a9fe:a9fe", S::Metadata),
            ("2002:a9fe:a9fe::1", S::Metadata),
            ("2001:0:a9fe:a9fe::1", S::Metadata),
            ("2001:0:808:808::5601:5601", S::Metadata),
            ("fe80::5efe:169.254.169.254", S::Metadata),
            ("169.254.0.1", S::LinkLocal),
            ("fe80::1", S::LinkLocal),
            ("febf::1", S::LinkLocal),
            ("0.0.0.0", S::Unspecified),
            ("0.1.2.3", S::Unspecified),
            ("::", S::Unspecified),
            ("::ffff:0.0.0.0", S::Unspecified),
            ("224.0.0.1", S::Multicast),
            ("239.255.255.255", S::Multicast),
            ("ff02::1", S::Multicast),
            ("255.255.255.255", S::Broadcast),
            ("64:ff9b:1::808:808", S::LocalNat64),
            ("64:ff9b:1:7f00:0:100::", S::LocalNat64),
        ] {
            check(address, Some(special), Some(special));
        }
    }
}
