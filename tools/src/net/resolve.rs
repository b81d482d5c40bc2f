//! From a name to its addresses: what `/etc/hosts` says, else what the name servers of `/etc/resolv.conf` say, as long as they say that it
//! holds. A name is asked for once a connection, and whoever asked decides what of the answer may be connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hickory_resolver::config::{LookupIpStrategy, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Hosts, TokioResolver};
use smallvec::{SmallVec, smallvec};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// The addresses of a name.
pub(super) type Found = SmallVec<[IpAddr; 4]>;

/// How long a name server is waited for; the system's own patience, where that is shorter.
const LONGEST_ANSWER: Duration = Duration::from_secs(2);

/// How long a lookup takes at most, whatever is tried meanwhile.
const LONGEST_LOOKUP: Duration = Duration::from_secs(6);

/// How often the system's files are looked at, where anybody asks.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

const HOSTS: &str = "/etc/hosts";
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Who is asked.
pub(super) enum Resolver {
    /// The system.
    System(System),
    /// A table that a test has written.
    #[cfg(test)]
    Table(super::table::Table),
}

impl Default for Resolver {
    fn default() -> Self {
        Self::System(System::default())
    }
}

impl Resolver {
    /// Every address of a host; `None`: it has none, or nobody could say. An address is its own.
    pub(super) async fn addresses(&self, host: &str) -> Option<Found> {
        if let Ok(address) = bare(host).parse() {
            return Some(smallvec![address]);
        }
        let found = match self {
            Self::System(system) => system.names().await.lookup(host).await,
            #[cfg(test)]
            Self::Table(table) => table.lookup(host),
        };
        found.filter(|found| !found.is_empty())
    }
}

/// A host without the brackets of an IPv6 address.
pub(super) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// What the system's files say. They are read again when they have changed: a gateway outlives many networks.
#[derive(Default)]
pub(super) struct System {
    read: Mutex<Option<Read>>,
}

struct Read {
    looked: Instant,
    stamps: Stamps,
    names: Arc<Names>,
}

/// When the two files were changed, and how long they are.
type Stamps = [Option<(SystemTime, u64)>; 2];

impl System {
    /// What holds now. The files are looked at in a thread that may block.
    #[expect(clippy::disallowed_methods, reason = "the lookup waits for it, and it ends by itself")]
    async fn names(&self) -> Arc<Names> {
        let mut read = self.read.lock().await;
        if let Some(read) = read.as_ref().filter(|read| read.looked.elapsed() < LOOK_AGAIN) {
            return Arc::clone(&read.names);
        }
        let before = read.as_ref().map(|read| read.stamps);
        let files = tokio::task::spawn_blocking(move || read_if_changed(before)).await.ok().flatten();
        match (files, read.as_mut()) {
            (Some((stamps, hosts, dns)), _) => {
                let names = Arc::new(Names::new(hosts, dns));
                *read = Some(Read { looked: Instant::now(), stamps, names: Arc::clone(&names) });
                names
            }
            (None, Some(read)) => {
                read.looked = Instant::now();
                Arc::clone(&read.names)
            }
            (None, None) => Arc::default(),
        }
    }
}

/// The name servers and how they are asked.
type Servers = (ResolverConfig, ResolverOpts);

fn read_if_changed(before: Option<Stamps>) -> Option<(Stamps, Hosts, Option<Servers>)> {
    let stamps = [HOSTS, RESOLV_CONF].map(stamp);
    if before == Some(stamps) {
        return None;
    }
    let servers = read_system_conf()
        .inspect_err(|error| tracing::warn!(%error, "no name server is known: only names of {HOSTS} can be resolved"))
        .ok();
    Some((stamps, Hosts::from_system().unwrap_or_default(), servers))
}

fn stamp(file: &str) -> Option<(SystemTime, u64)> {
    let about = std::fs::metadata(Path::new(file)).ok()?;
    Some((about.modified().ok()?, about.len()))
}

/// One state of the system's files.
#[derive(Default)]
struct Names {
    hosts: Hosts,
    dns: Option<TokioResolver>,
}

impl Names {
    fn new(hosts: Hosts, servers: Option<Servers>) -> Self {
        Self { hosts, dns: servers.and_then(|(servers, options)| resolver(servers, options)) }
    }

    /// A name that stands in the file is not asked for anywhere else, for neither kind of address: a name server that does not answer would
    /// only be waited for.
    async fn lookup(&self, host: &str) -> Option<Found> {
        let name = Name::from_ascii(host).ok()?;
        let written = self.written(&name);
        if !written.is_empty() {
            return Some(written);
        }
        if host == "localhost" || host.ends_with(".localhost") {
            return Some(smallvec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let found = timeout(LONGEST_LOOKUP, self.dns.as_ref()?.lookup_ip(name)).await.ok()?.ok()?;
        Some(found.iter().collect())
    }

    fn written(&self, name: &Name) -> Found {
        let of_kind = |kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind));
        let found = [RecordType::A, RecordType::AAAA].into_iter().filter_map(of_kind);
        found.flat_map(|lookup| lookup.answers().iter().filter_map(|record| record.data.ip_addr()).collect::<Found>()).collect()
    }
}

fn resolver(servers: ResolverConfig, mut options: ResolverOpts) -> Option<TokioResolver> {
    options.timeout = options.timeout.min(LONGEST_ANSWER);
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.use_hosts_file = ResolveHosts::Never;
    let mut builder = TokioResolver::builder_with_config(servers, TokioRuntimeProvider::default());
    *builder.options_mut() = options;
    builder.build().inspect_err(|error| tracing::warn!(%error, "names cannot be resolved")).ok()
}

#[cfg(test)]
mod tests;
