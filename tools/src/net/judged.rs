//! Names that lead elsewhere: what is connected to is what was judged, and nothing else is ever connected to.

use bytes::Bytes;
use http::Request;
use toolgate_config::address::HostPort;
use toolgate_config::class::TrustZone;
use toolgate_config::group::{EgressEntry, Group};
use toolgate_config::names::GroupName;
use toolgate_policies::egress::{EgressRefusal, Scope, Special, Target, judge, judge_url};

use super::table::Table;
use super::tests::{LONG, PATIENT, acceptor, authority};
use super::*;
use crate::scripted::{Script, Server, Step::*, answer};

/// An address of the world, which tests never dial.
const PUBLIC: &str = "93.184.216.34";

fn net(table: Table) -> Net {
    Net { dialer: Dialer::default().asking(table), pool: Pool::default() }
}

fn get() -> Request<Segments> {
    let mut request = Request::new(Segments::from(Bytes::new()));
    *request.uri_mut() = "/x".parse().unwrap();
    request
}

/// What came back, or why nothing did.
type Whole = Result<String, NetError>;

async fn whole(answer: Result<Answer, NetError>) -> Whole {
    let body = answer?.body.whole(1 << 20, LONG).await?;
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

fn entry(address: &str, private: bool) -> EgressEntry {
    EgressEntry { address: HostPort::parse(address, None).unwrap(), private }
}

/// A URL that a model chose, as it was judged.
fn chosen(url: &str, entries: &[EgressEntry]) -> Result<Target, EgressRefusal> {
    judge_url(Scope::Listed(entries), url)
}

async fn ask(net: &Net, target: &Target) -> Whole {
    whole(net.send_permitted(target.permit(), get(), PATIENT).await).await
}

/// The same origin, as the operator wrote it.
async fn ask_named(net: &Net, target: &Target) -> Whole {
    let address = target.permit().origin().address.clone();
    let group = Group {
        name: GroupName::new("g"),
        enabled: true,
        data_class: None,
        personal: false,
        egress: vec![EgressEntry { address, private: false }],
        trust_zone: TrustZone::default(),
    };
    let permit = judge(&group, target.permit().origin()).unwrap();
    whole(net.send_permitted(permit, get(), PATIENT).await).await
}

fn refused(special: Special) -> Whole {
    Err(NetError::Refused(EgressRefusal::Address(special)))
}

fn forever(text: &str) -> Vec<Script> {
    vec![(0..4).flat_map(|_| [Hear, answer(text)]).collect(); 4]
}

#[tokio::test]
async fn case_47_a_name_that_turns_round_is_not_followed() {
    let mut outside = Server::start([vec![Hear, answer("one"), Hear, answer("two")]]).await;
    let inside = Server::start(forever("inside")).await;
    let port = inside.origin.address.port;
    let table =
        Table::default().name("rebind.test", &[&[PUBLIC], &["127.0.0.1"]]).detour(&format!("{PUBLIC}:{port}"), outside.socket());
    let net = net(table);
    let host = format!("rebind.test:{port}");
    let target = chosen(&format!("http://{host}/x"), &[entry(&host, false)]).unwrap();
    assert_eq!(ask(&net, &target).await.as_deref(), Ok("one"));
    assert!(outside.heard().await.contains(&format!("\r\nhost: {host}\r\n")), "the name stays");
    assert_eq!(ask(&net, &target).await.as_deref(), Ok("two"), "on the connection that was judged");
    assert_eq!(net.dialer.table().asked(), ["rebind.test"], "a connection asks once");
    tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    assert_eq!(ask(&net, &target).await, refused(Special::Loopback));
    assert_eq!(net.dialer.table().dialled(), [format!("{PUBLIC}:{port}")]);
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn case_47_one_bad_address_refuses_the_name_and_so_does_none() {
    let table: [(&[&str], Whole); 9] = [
        (&[PUBLIC, "10.0.0.5"], refused(Special::Private)),
        (&["10.0.0.5", PUBLIC], refused(Special::Private)),
        (&[PUBLIC, "::1"], refused(Special::Loopback)),
        (&["2606:4700::1", "fd00:ec2::254"], refused(Special::Metadata)),
        (&[PUBLIC, "::ffff:169.254.169.254"], refused(Special::Metadata)),
        (&["64:ff9b::7f00:1"], refused(Special::Loopback)),
        (&["0.0.0.0"], refused(Special::Unspecified)),
        (&["100.100.100.200"], refused(Special::Metadata)),
        (&[], Err(NetError::Refused(EgressRefusal::Unresolved))),
    ];
    for (addresses, expected) in table {
        let net = net(Table::default().name("mixed.test", &[addresses]));
        let target = chosen("http://mixed.test/", &[entry("mixed.test:80", false)]).unwrap();
        assert_eq!(ask(&net, &target).await, expected, "{addresses:?}");
        assert_eq!((net.dialer.table().asked().len(), net.dialer.table().dialled().len()), (1, 0), "{addresses:?}");
    }
}

#[tokio::test]
async fn a_name_of_the_operator_may_be_inside_but_not_at_the_platform() {
    let server = Server::start(forever("inside")).await;
    let port = server.origin.address.port;
    let target = chosen(&format!("http://orders.test:{port}/"), &[entry(&format!("orders.test:{port}"), false)]).unwrap();
    for address in ["127.0.0.1", "10.0.0.5", "fd12::5", PUBLIC] {
        let shown = if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") };
        let net = net(Table::default().name("orders.test", &[&[address]]).detour(&shown, server.socket()));
        assert_eq!(ask_named(&net, &target).await.as_deref(), Ok("inside"), "{address}");
        assert_eq!(net.dialer.table().dialled(), [shown]);
    }
    for (addresses, special) in [
        (&["169.254.169.254"][..], Special::Metadata),
        (&["10.0.0.5", "169.254.169.254"], Special::Metadata),
        (&["::ffff:a9fe:a9fe"], Special::Metadata),
        (&["169.254.0.1"], Special::LinkLocal),
        (&["0.0.0.0"], Special::Unspecified),
        (&["ff02::1"], Special::Multicast),
    ] {
        let net = net(Table::default().name("orders.test", &[addresses]));
        assert_eq!(ask_named(&net, &target).await, refused(special), "{addresses:?}");
        assert!(net.dialer.table().dialled().is_empty());
    }
    let net = net(Table::default().name("orders.test", &[&[]]));
    assert_eq!(ask_named(&net, &target).await, Err(NetError::Resolve), "nobody knows it: a failure, not a refusal");
}

#[tokio::test]
async fn what_the_operator_vouches_for_is_reached_wherever_it_is() {
    let server = Server::start(forever("inside")).await;
    let HostPort { port, .. } = server.origin.address;
    let net = net(Table::default().name("inside.test", &[&["127.0.0.1"]]));
    for (host, private) in [("inside.test", true), ("127.0.0.1", false)] {
        let host = format!("{host}:{port}");
        let target = chosen(&format!("http://{host}/"), &[entry(&host, private)]).unwrap();
        assert_eq!(ask(&net, &target).await.as_deref(), Ok("inside"), "{host}");
    }
}

#[tokio::test]
async fn a_connection_is_given_only_to_who_might_have_opened_it() {
    let server = Server::start(forever("inside")).await;
    let port = server.origin.address.port;
    let host = format!("shared.test:{port}");
    let target = chosen(&format!("http://{host}/"), &[entry(&host, false)]).unwrap();
    let net = net(Table::default().name("shared.test", &[&["127.0.0.1"]]));
    let sent = net.send(target.permit().origin(), get(), PATIENT).await;
    assert_eq!(whole(sent).await.as_deref(), Ok("inside"));
    assert_eq!(ask(&net, &target).await, refused(Special::Loopback));
    assert_eq!(ask_named(&net, &target).await.as_deref(), Ok("inside"));
    assert_eq!(ask(&net, &target).await, refused(Special::Loopback));
    assert_eq!(server.connections(), 2, "one for the provider, one for the tool");
}

#[tokio::test]
async fn the_name_that_a_certificate_must_have_is_the_one_that_was_asked_for() {
    let script: Script = vec![Hear, answer("safe")];
    for (host, works) in [("localhost", true), ("other.test", false)] {
        let server = Server::start_tls(acceptor(), [script.clone()]).await;
        let port = server.origin.address.port;
        let table = Table::default().name(host, &[&[PUBLIC]]).detour(&format!("{PUBLIC}:{port}"), server.socket());
        let net = Net { dialer: Dialer::trusting(authority()).asking(table), pool: Pool::default() };
        let listed = format!("{host}:{port}");
        let target = chosen(&format!("https://{listed}/"), &[entry(&listed, false)]).unwrap();
        let expected = if works { Ok("safe".to_owned()) } else { Err(NetError::Tls) };
        assert_eq!(ask(&net, &target).await, expected, "{host}");
    }
}

/// Every way to write this machine, and a few names for it.
const SPELLINGS: &[&str] = &[
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0X7F.0.0.1",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.1.",
    "0",
    "0.0.0.0",
    "0x0",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[::1%25lo]",
    "１２７.0.0.1",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
    "%31%32%37.0.0.1",
    "localhost",
    "LOCALHOST.",
    "ｌｏｃａｌｈｏｓｔ",
    "a.localhost",
    "allowed.test@127.0.0.1",
    "127.0.0.1#@allowed.test",
    "127.0.0.1\\@allowed.test",
    "127.0.0.1\t",
    "127.0.0.1\r\n",
];

#[tokio::test]
async fn case_46_no_spelling_of_this_machine_reaches_it() {
    let v4 = Server::start(forever("inside")).await;
    let port = v4.origin.address.port;
    let v6 = Server::try_start(("::1", port), forever("inside")).await.ok();
    let net = net(Table::default().name("allowed.test", &[&["127.0.0.1"], &["::1"], &["::ffff:127.0.0.1"], &[]]));
    let listed = [entry(&format!("allowed.test:{port}"), false), entry("allowed.test:80", false)];
    for spelling in SPELLINGS {
        for url in [format!("http://{spelling}:{port}/"), format!("http://{spelling}/")] {
            match chosen(&url, &listed) {
                Err(_) => {}
                Ok(target) => panic!("{url:?} passed as {target:?}"),
            }
        }
    }
    let target = chosen(&format!("http://allowed.test:{port}/"), &listed).unwrap();
    for expected in [Special::Loopback, Special::Loopback, Special::Loopback] {
        assert_eq!(ask(&net, &target).await, refused(expected));
    }
    assert_eq!(ask(&net, &target).await, Err(NetError::Refused(EgressRefusal::Unresolved)));
    assert_eq!((v4.connections(), v6.map_or(0, |v6| v6.connections())), (0, 0));
    assert!(net.dialer.table().dialled().is_empty());
}
