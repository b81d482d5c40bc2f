//! The system's resolver against a name server that says what a test has it say.

use std::net::SocketAddr;
use std::sync::Mutex as Lock;

use hickory_resolver::config::NameServerConfig;
use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::{RData, Record};
use tokio::net::UdpSocket;

use super::*;

/// What a name server knows of a name of a kind: how long it holds, and the addresses. `None`: it says nothing at all.
type Zone = fn(&str, RecordType, usize) -> Option<(u32, Vec<&'static str>)>;

/// A name server on loopback, and how often it was asked for what.
struct NameServer {
    address: SocketAddr,
    asked: Arc<Lock<Vec<String>>>,
}

impl NameServer {
    async fn start(zone: Zone) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (address, asked) = (socket.local_addr().unwrap(), Arc::<Lock<Vec<String>>>::default());
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut bytes = [0; 2048];
            loop {
                let (length, from) = socket.recv_from(&mut bytes).await.unwrap();
                let question = Message::from_vec(&bytes[..length]).unwrap();
                let query = question.queries[0].clone();
                let line = format!("{} {}", query.name(), query.query_type());
                let times = seen.lock().unwrap().iter().filter(|asked| **asked == line).count();
                seen.lock().unwrap().push(line);
                let said = zone(&query.name().to_string(), query.query_type(), times);
                if let Some(said) = said {
                    socket.send_to(&answer(question, said).to_vec().unwrap(), from).await.unwrap();
                }
            }
        });
        Self { address, asked }
    }

    fn names(&self, search: &[&str], hosts: Hosts) -> Names {
        let mut server = NameServerConfig::udp(self.address.ip());
        server.connections[0].port = self.address.port();
        let search = search.iter().map(|name| Name::from_ascii(name).unwrap()).collect();
        let servers = ResolverConfig::from_parts(None, search, vec![server]);
        Names::new(hosts, Some((servers, ResolverOpts::default())))
    }

    fn asked(&self) -> Vec<String> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort();
        asked
    }
}

fn answer(question: Message, (ttl, addresses): (u32, Vec<&'static str>)) -> Message {
    let name = question.queries[0].name().clone();
    let mut answer = question.into_response();
    answer.metadata.response_code = if addresses.is_empty() { ResponseCode::NXDomain } else { ResponseCode::NoError };
    for address in addresses {
        let data = match address.parse().unwrap() {
            IpAddr::V4(address) => RData::A(address.into()),
            IpAddr::V6(address) => RData::AAAA(address.into()),
        };
        answer.answers.push(Record::from_rdata(name.clone(), ttl, data));
    }
    answer
}

fn texts(found: Option<Found>) -> Option<Vec<String>> {
    found.map(|found| found.iter().map(ToString::to_string).collect())
}

fn both(_: &str, kind: RecordType, _: usize) -> Option<(u32, Vec<&'static str>)> {
    Some((60, if kind == RecordType::A { vec!["192.0.2.1", "192.0.2.2"] } else { vec!["2001:db8::1"] }))
}

#[tokio::test]
async fn both_kinds_of_addresses_are_asked_for_and_an_answer_holds_as_long_as_it_says() {
    let server = NameServer::start(both).await;
    let names = server.names(&[], Hosts::default());
    for _ in 0..3 {
        let mut found = texts(names.lookup("shop.test").await).unwrap();
        found.sort();
        assert_eq!(found, ["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
    }
    assert_eq!(server.asked(), ["shop.test. A", "shop.test. AAAA"]);
}

#[tokio::test]
async fn an_answer_that_holds_for_no_time_is_asked_for_again() {
    let server = NameServer::start(|_, kind, times| {
        let address = if times == 0 { "192.0.2.1" } else { "127.0.0.1" };
        Some((0, if kind == RecordType::A { vec![address] } else { vec![] }))
    })
    .await;
    let names = server.names(&[], Hosts::default());
    assert_eq!(texts(names.lookup("rebind.test").await), Some(vec!["192.0.2.1".to_owned()]));
    assert_eq!(texts(names.lookup("rebind.test").await), Some(vec!["127.0.0.1".to_owned()]));
}

#[tokio::test]
async fn a_name_that_is_not_there_has_no_address() {
    let server = NameServer::start(|_, _, _| Some((60, vec![]))).await;
    assert_eq!(texts(server.names(&[], Hosts::default()).lookup("gone.test").await), None);
    // Without a name server neither.
    assert_eq!(texts(Names::default().lookup("shop.test").await), None);
    assert_eq!(texts(Names::default().lookup("a b").await), None);
}

#[tokio::test]
async fn a_name_of_the_system_s_domain_is_found() {
    let server = NameServer::start(|name, kind, _| {
        let here = name == "shop.cluster.test." && kind == RecordType::A;
        Some((60, if here { vec!["192.0.2.1"] } else { vec![] }))
    })
    .await;
    let names = server.names(&["cluster.test"], Hosts::default());
    assert_eq!(texts(names.lookup("shop").await), Some(vec!["192.0.2.1".to_owned()]));
}

#[tokio::test]
async fn what_the_file_says_is_asked_of_nobody() {
    let mut hosts = Hosts::default();
    hosts.read_hosts_conf("10.0.0.5 shop.test Other.Test\n10.0.0.6 shop.test\n# 10.0.0.7 gone.test\n".as_bytes()).unwrap();
    let server = NameServer::start(both).await;
    let names = server.names(&[], hosts);
    assert_eq!(texts(names.lookup("shop.test").await), Some(vec!["10.0.0.5".to_owned(), "10.0.0.6".to_owned()]));
    assert_eq!(texts(names.lookup("other.test").await), Some(vec!["10.0.0.5".to_owned()]));
    let local = Some(vec!["127.0.0.1".to_owned(), "::1".to_owned()]);
    assert_eq!(texts(names.lookup("localhost").await), local);
    assert_eq!(texts(names.lookup("shop.localhost").await), local);
    assert!(server.asked().is_empty(), "{:?}", server.asked());
}

#[tokio::test]
async fn a_system_is_read_once_and_knows_itself() {
    let system = System::default();
    let (first, second) = tokio::join!(system.names(), system.names());
    assert!(Arc::ptr_eq(&first, &second));
    let found = Resolver::System(system).addresses("localhost").await.unwrap();
    assert!(found.iter().all(IpAddr::is_loopback), "{found:?}");
    let literal = Resolver::default();
    assert_eq!(texts(literal.addresses("[::1]").await), Some(vec!["::1".to_owned()]));
    assert_eq!(texts(literal.addresses("192.0.2.1").await), Some(vec!["192.0.2.1".to_owned()]));
}
