//! The drill: every spelling of an address, a port, a host or a scheme that has got past somebody, each with the reason for which it is
//! refused here; and what passes, with what is sent.

use toolgate_config::group::EgressEntry;

use super::*;
use EgressRefusal::{BadHost, BadPort, BadUrl, HostNotListed, PortNotListed, Scheme as BadScheme, Userinfo};

/// What may be asked for: two names, an address that is meant, and a name that may be private.
fn entries() -> Vec<EgressEntry> {
    let entry = |address: &str, private| EgressEntry { address: HostPort::parse(address, None).unwrap(), private };
    vec![
        entry("allowed.test:443", false),
        entry("allowed.test:80", false),
        entry("bücher.test:443", false),
        entry("192.0.2.7:8080", false),
        entry("[2001:db8::7]:443", false),
        entry("inside.test:443", true),
    ]
}

fn sites() -> Vec<BaseUrl> {
    [
        "https://allowed.test/",
        "https://allowed.test/shop",
        "http://allowed.test",
        "http://192.0.2.7:8080",
        "https://[2001:db8::7]",
    ]
    .map(|site| BaseUrl::parse(site).unwrap())
    .into()
}

/// What a URL is refused for. `…` in one stands for a text of 20 000 letters.
const HOSTILE: &[(&str, EgressRefusal)] = &[
    // Addresses, written otherwise: decimal, octal, hexadecimal, short, mixed.
    ("http://2130706433/", HostNotListed),
    ("http://0x7f000001/", HostNotListed),
    ("http://0X7F000001/", HostNotListed),
    ("http://017700000001/", HostNotListed),
    ("http://0177.0.0.1/", HostNotListed),
    ("http://0x7f.0.0.1/", HostNotListed),
    ("http://0x7f.0x0.0x0.0x1/", HostNotListed),
    ("http://0177.0x0.0.1/", HostNotListed),
    ("http://127.1/", HostNotListed),
    ("http://127.0.1/", HostNotListed),
    ("http://127.0.0.1/", HostNotListed),
    ("http://127.0.0.1./", HostNotListed),
    ("http://127.00000.0.1/", HostNotListed),
    ("http://0/", HostNotListed),
    ("http://0.0.0.0/", HostNotListed),
    ("http://0x0/", HostNotListed),
    ("http://00/", HostNotListed),
    ("http://1/", HostNotListed),
    ("http://10.1/", HostNotListed),
    ("http://169.254.169.254/latest/meta-data/", HostNotListed),
    ("http://2852039166/latest/meta-data/", HostNotListed),
    ("http://0xa9fea9fe/", HostNotListed),
    ("http://0251.0376.0251.0376/", HostNotListed),
    ("http://169.254.43518/", HostNotListed),
    ("http://100.100.100.200/", HostNotListed),
    ("http://3221225991/", PortNotListed),
    ("http://256.0.0.1/", BadHost),
    ("http://127.0.0.1.1/", BadHost),
    ("http://4294967296/", BadHost),
    ("http://0x1ffffffff/", BadHost),
    ("http://127.0.0.0x/", HostNotListed),
    ("http://08.0.0.1/", BadHost),
    // IPv6, with what it may hold.
    ("http://[::1]/", HostNotListed),
    ("http://[::]/", HostNotListed),
    ("http://[0:0:0:0:0:0:0:1]/", HostNotListed),
    ("http://[0000:0000:0000:0000:0000:0000:0000:0001]/", HostNotListed),
    ("http://[::ffff:127.0.0.1]/", HostNotListed),
    ("http://[::ffff:7f00:1]/", HostNotListed),
    ("http://[::ffff:169.254.169.254]/", HostNotListed),
    ("http://[::ffff:a9fe:a9fe]:80/", HostNotListed),
    ("http://[::127.0.0.1]/", HostNotListed),
    ("http://[64:ff9b::7f00:1]/", HostNotListed),
    ("http://[64:ff9b::169.254.169.254]/", HostNotListed),
    ("http://[64:ff9b:1::7f00:1]/", HostNotListed),
    ("http://[2002:7f00:1::]/", HostNotListed),
    ("http://[2001:0:7f00:1::]/", HostNotListed),
    ("http://[fd00:ec2::254]/", HostNotListed),
    ("http://[fe80::1]/", HostNotListed),
    ("http://[fe80::1%25eth0]/", BadHost),
    ("http://[fe80::1%eth0]/", BadHost),
    ("http://[::1%25lo]:80/", BadHost),
    ("http://[::1/", BadHost),
    ("http://::1/", BadHost),
    ("http://::1]/", BadHost),
    ("http://[::1]x/", BadHost),
    ("http://[::1].allowed.test/", BadHost),
    ("http://[allowed.test]/", BadHost),
    ("http://[192.0.2.7]:8080/", BadHost),
    ("http://[::ffff:192.0.2.7]:8080/", HostNotListed),
    ("http://[v1.fe80]/", BadHost),
    ("http://[]/", BadHost),
    ("https://[[2001:db8::7]]/", BadHost),
    ("http://[2001:db8::7]:443:80/", BadPort),
    // Names for this machine and its platform.
    ("http://localhost/", HostNotListed),
    ("http://LOCALHOST./", HostNotListed),
    ("http://localhost.localdomain/", HostNotListed),
    ("http://a.localhost/", HostNotListed),
    ("http://ip6-localhost/", HostNotListed),
    ("http://metadata.google.internal/", HostNotListed),
    ("http://127.0.0.1.nip.io/", HostNotListed),
    ("http://localtest.me/", HostNotListed),
    ("http://kubernetes.default.svc/", HostNotListed),
    // A listed name that is only nearly meant.
    ("http://allowed.test.evil.test/", HostNotListed),
    ("http://evil-allowed.test/", HostNotListed),
    ("http://sub.allowed.test/", HostNotListed),
    ("http://allowed.test-evil.test/", HostNotListed),
    ("http://test/", HostNotListed),
    ("http://allowed/", HostNotListed),
    ("http://allowed.tes/", HostNotListed),
    ("http://.allowed.test/", HostNotListed),
    ("http://allowed..test/", BadHost),
    ("http://allowed.test../", BadHost),
    ("http://allowed.test.../", BadHost),
    ("http://./", BadHost),
    ("http://../", BadHost),
    ("http://*.test/", BadHost),
    ("http://*/", BadHost),
    ("http://allowed.test,evil.test/", HostNotListed),
    ("http://allowed.test;evil.test/", HostNotListed),
    ("http://allowed.test&evil.test/", HostNotListed),
    ("http://evil.test/allowed.test", HostNotListed),
    ("http://evil.test?allowed.test", HostNotListed),
    ("http://evil.test#allowed.test", HostNotListed),
    ("http://evil.test?@allowed.test/", HostNotListed),
    ("http://127.0.0.1#@allowed.test/", HostNotListed),
    ("http://127.0.0.1?@allowed.test/", HostNotListed),
    ("http://127.0.0.1/@allowed.test/", HostNotListed),
    // A name that looks like it: Cyrillic, dotless, full width of another name, a combining sign, a hyphen that is none.
    ("http://аllowed.test/", HostNotListed),
    ("http://allowеd.test/", HostNotListed),
    ("http://alIowed.test/", HostNotListed),
    ("http://allowed.tеst/", HostNotListed),
    ("http://xn--llowed-7nf.test/", HostNotListed),
    ("http://allowed\u{301}.test/", HostNotListed),
    ("http://xn--a.test/", BadHost),
    ("http://xn--/", BadHost),
    ("http://１２７.0.0.1/", HostNotListed),
    ("http://①②⑦.⓪.⓪.①/", HostNotListed),
    ("http://127。0。0。1/", HostNotListed),
    ("http://ｌｏｃａｌｈｏｓｔ/", HostNotListed),
    ("http://٠/", BadHost),
    ("http://allowed.test\u{2044}evil.test/", HostNotListed),
    ("http://allowed.test\u{ff0f}evil.test/", BadHost),
    ("http://allowed.test\u{ff20}evil.test/", BadHost),
    ("http://evil.test\u{ff1f}.allowed.test/", BadHost),
    ("http://evil.test\u{2048}@allowed.test/", Userinfo),
    ("http://\u{200b}/", BadHost),
    ("http://\u{ad}/", BadHost),
    // Encoded hosts.
    ("http://%6c%6f%63%61%6c%68%6f%73%74/", BadHost),
    ("http://%31%32%37.0.0.1/", BadHost),
    ("http://127%2e0%2e0%2e1/", BadHost),
    ("http://allowed%2etest/", BadHost),
    ("http://allowed.test%2fevil.test/", BadHost),
    ("http://allowed.test%00.evil.test/", BadHost),
    ("http://allowed.test%0d%0a/", BadHost),
    ("http://evil.test%23.allowed.test/", BadHost),
    ("http://%/", BadHost),
    ("http://%40allowed.test/", BadHost),
    // Users.
    ("http://allowed.test@127.0.0.1/", Userinfo),
    ("https://user@allowed.test/", Userinfo),
    ("https://u:SECRET-CANARY-1@allowed.test/", Userinfo),
    ("https://:@allowed.test/", Userinfo),
    ("https://@allowed.test/", Userinfo),
    ("https://allowed.test:443@evil.test/", Userinfo),
    ("https://allowed.test@evil.test@allowed.test/", Userinfo),
    ("https://allowed.test:@evil.test", Userinfo),
    ("https://[::1]@allowed.test/", Userinfo),
    // Ports.
    ("https://allowed.test:8443/", PortNotListed),
    ("http://allowed.test:22/", PortNotListed),
    ("http://192.0.2.7/", PortNotListed),
    ("http://inside.test/", PortNotListed),
    ("http://bücher.test/", PortNotListed),
    ("http://allowed.test:0/", BadPort),
    ("http://allowed.test:00/", BadPort),
    ("http://allowed.test:65536/", BadPort),
    ("http://allowed.test:65616/", BadPort),
    ("http://allowed.test:4294967376/", BadPort),
    ("http://allowed.test:18446744073709551696/", BadPort),
    ("http://allowed.test:080/", BadPort),
    ("http://allowed.test:0x50/", BadPort),
    ("http://allowed.test:+80/", BadPort),
    ("http://allowed.test:-80/", BadPort),
    ("http://allowed.test:80a/", BadPort),
    ("http://allowed.test:８０/", BadPort),
    ("http://allowed.test:80:80/", BadPort),
    ("http://allowed.test:80:evil.test/", BadPort),
    ("http://allowed.test::80/", BadPort),
    ("http://allowed.test:http/", BadPort),
    // No host.
    ("http:///", BadHost),
    ("https:///etc/passwd", BadHost),
    ("http://?allowed.test", BadHost),
    ("http://#allowed.test", BadHost),
    ("http://", BadHost),
    ("http://:80/", BadHost),
    // No absolute URL.
    ("", BadUrl),
    ("http", BadUrl),
    ("http:", BadUrl),
    ("http:/", BadUrl),
    ("http:/allowed.test/", BadUrl),
    ("http:allowed.test/", BadUrl),
    ("://allowed.test/", BadUrl),
    ("//allowed.test/", BadUrl),
    ("//127.0.0.1/", BadUrl),
    ("///allowed.test/", BadUrl),
    ("allowed.test", BadUrl),
    ("allowed.test/x", BadUrl),
    ("?x", BadUrl),
    ("#x", BadUrl),
    ("../x", BadUrl),
    ("[::1]:80", BadUrl),
    ("127.0.0.1:80/", BadUrl),
    ("1http://allowed.test/", BadUrl),
    ("ht%74p://allowed.test/", BadUrl),
    ("httр://allowed.test/", BadUrl),
    ("http\u{ff1a}//allowed.test/", BadUrl),
    ("http://…/", BadUrl),
    // Blanks, line ends and other characters that some readers take away.
    (" http://allowed.test/", BadUrl),
    ("http://allowed.test/ ", BadUrl),
    ("http://allowed.test /", BadUrl),
    ("http://allowed.test/a b", BadUrl),
    ("ht\ttp://allowed.test/", BadUrl),
    ("http://allo\twed.test/", BadUrl),
    ("http://allowed.test\n.evil.test/", BadUrl),
    ("http://127.0.0.1\r\n/", BadUrl),
    ("http://allowed.test/\r\nX-Admin: 1", BadUrl),
    ("http://allowed.test/\nGET / HTTP/1.1", BadUrl),
    ("http://allowed.test/\u{0}", BadUrl),
    ("\u{0}http://allowed.test/", BadUrl),
    ("http://allowed.test\u{0}.evil.test/", BadUrl),
    ("http://allowed.test\u{7f}/", BadUrl),
    ("http://allowed.test\u{85}/", BadUrl),
    ("http://allowed.test\u{a0}/", BadUrl),
    ("http://allowed.test\u{2028}/", BadUrl),
    ("http://allowed.test\u{3000}/", BadUrl),
    ("\u{feff}http://allowed.test/", BadUrl),
    ("http://allowed.test/\u{fffd}", BadUrl),
    // Backslashes.
    ("http:\\\\127.0.0.1\\", BadUrl),
    ("http://allowed.test\\@127.0.0.1/", BadUrl),
    ("http://127.0.0.1\\@allowed.test/", BadUrl),
    ("http:\\/127.0.0.1/", BadUrl),
    ("\\\\127.0.0.1\\share", BadUrl),
    ("/\\127.0.0.1/", BadUrl),
    ("http://allowed.test/..\\..\\x", BadUrl),
    // Other schemes.
    ("file:///etc/hosts", BadScheme),
    ("file://allowed.test/etc/hosts", BadScheme),
    ("FILE:/etc/hosts", BadScheme),
    ("ftp://allowed.test/", BadScheme),
    ("gopher://allowed.test:80/_GET", BadScheme),
    ("dict://127.0.0.1:6379/info", BadScheme),
    ("ldap://allowed.test/", BadScheme),
    ("ws://allowed.test/", BadScheme),
    ("wss://allowed.test/", BadScheme),
    ("jar:http://allowed.test!/", BadScheme),
    ("javascript:alert(1)", BadScheme),
    ("JaVaScRiPt://allowed.test/%0aalert(1)", BadScheme),
    ("data:text/html,x", BadScheme),
    ("view-source:http://allowed.test/", BadScheme),
    ("blob:http://allowed.test/x", BadScheme),
    ("url:http://127.0.0.1/", BadScheme),
    ("unix:/run/docker.sock", BadScheme),
    ("http+unix://%2Frun%2Fdocker.sock/", BadScheme),
    ("httpx://allowed.test/", BadScheme),
    ("https+insecure://allowed.test/", BadScheme),
    ("localhost:80/", BadScheme),
    ("mailto:a@allowed.test", BadScheme),
    ("about:blank", BadScheme),
    ("netdoc:///etc/hosts", BadScheme),
    ("php://filter/resource=/etc/hosts", BadScheme),
];

/// A URL of the drill, with its long one written out.
pub(crate) fn written(url: &str) -> String {
    url.replace('…', &"x".repeat(20_000))
}

#[test]
fn case_46_no_hostile_url_passes_and_each_has_its_reason() {
    assert!(HOSTILE.len() >= 200, "{}", HOSTILE.len());
    let (entries, sites) = (entries(), sites());
    let seen = |scope| move |url: &str| judge_url(scope, &written(url)).err();
    let surprises: Vec<_> = HOSTILE.iter().map(|(url, expected)| (url, seen(Scope::Listed(&entries))(url), expected)).collect();
    let surprises: Vec<_> = surprises.iter().filter(|(_, seen, expected)| *seen != Some(**expected)).collect();
    assert!(surprises.is_empty(), "url, seen, expected: {surprises:#?}");
    for (url, expected) in HOSTILE {
        assert_eq!(seen(Scope::None)(url), Some(EgressRefusal::NoEgress), "{url:?}");
        let of_sites = seen(Scope::OwnSite(&sites))(url);
        // A name that is no site of ours is not listed at all.
        let unlisted = *expected == PortNotListed && of_sites == Some(HostNotListed);
        assert!(unlisted || of_sites == Some(*expected), "{url:?}: {of_sites:?}");
        assert!(seen(Scope::OwnSite(&[]))(url).is_some(), "{url:?}");
    }
}

#[test]
fn what_is_listed_passes_and_is_sent_as_it_was_read() {
    use Addresses::{Any, Public};
    let table = [
        ("https://allowed.test/", "https://allowed.test:443", "/", Public),
        ("https://allowed.test", "https://allowed.test:443", "/", Public),
        ("HTTPS://ALLOWED.Test.:443/", "https://allowed.test:443", "/", Public),
        ("https://allowed.test:/x", "https://allowed.test:443", "/x", Public),
        ("http://allowed.test/x", "http://allowed.test:80", "/x", Public),
        ("http://allowed.test:443/x", "http://allowed.test:443", "/x", Public),
        ("https://allowed.test?q=1", "https://allowed.test:443", "/?q=1", Public),
        ("https://allowed.test#@evil.test", "https://allowed.test:443", "/", Public),
        ("https://allowed.test/a?b=http://127.0.0.1/@x#c", "https://allowed.test:443", "/a?b=http://127.0.0.1/@x", Public),
        ("https://allowed.test/@evil.test:80", "https://allowed.test:443", "/@evil.test:80", Public),
        ("https://allowed.test/ü?ö=ä", "https://allowed.test:443", "/%C3%BC?%C3%B6=%C3%A4", Public),
        ("https://allowed.test/a%20b%zz\"<>{}|^`", "https://allowed.test:443", "/a%20b%zz%22%3C%3E%7B%7D%7C%5E%60", Public),
        ("https://allowed.test/../x/./y//z", "https://allowed.test:443", "/../x/./y//z", Public),
        ("https://ａｌｌｏｗｅｄ。test/", "https://allowed.test:443", "/", Public),
        ("https://BÜCHER.test/", "https://xn--bcher-kva.test:443", "/", Public),
        ("https://xn--bcher-kva.test/", "https://xn--bcher-kva.test:443", "/", Public),
        ("http://192.0.2.7:8080/", "http://192.0.2.7:8080", "/", Any),
        ("http://0xC0.0.519:8080/", "http://192.0.2.7:8080", "/", Any),
        ("https://[2001:db8:0::0:7]/", "https://[2001:db8::7]:443", "/", Any),
        ("https://inside.test/", "https://inside.test:443", "/", Any),
    ];
    let entries = entries();
    for (url, origin, path, addresses) in table {
        let target = judge_url(Scope::Listed(&entries), url).unwrap_or_else(|refusal| panic!("{url}: {refusal:?}"));
        let Origin { scheme, address } = target.permit().origin();
        assert_eq!((format!("{}://{address}", scheme.as_str()).as_str(), target.path()), (origin, path), "{url}");
        assert_eq!(target.permit().addresses(), addresses, "{url}");
    }
}

#[test]
fn a_path_is_one_of_the_first_site() {
    let site = |url: &str| vec![BaseUrl::parse(url).unwrap(), BaseUrl::parse("https://second.test").unwrap()];
    let table = [
        ("https://www.test", "/", "https://www.test:443/", Addresses::Public),
        ("https://www.test", "/imprint?a=b#c", "https://www.test:443/imprint?a=b", Addresses::Public),
        ("https://www.test/shop/", "/imprint", "https://www.test:443/shop/imprint", Addresses::Public),
        ("https://www.test", "/@evil.test", "https://www.test:443/@evil.test", Addresses::Public),
        ("https://www.test", "/http://evil.test/", "https://www.test:443/http://evil.test/", Addresses::Public),
        ("https://www.test", "/ü", "https://www.test:443/%C3%BC", Addresses::Public),
        ("http://10.0.0.5:8080", "/x", "http://10.0.0.5:8080/x", Addresses::Any),
    ];
    for (first, path, expected, addresses) in table {
        let target = judge_url(Scope::OwnSite(&site(first)), path).unwrap();
        let Origin { scheme, address } = target.permit().origin();
        assert_eq!(format!("{}://{address}{}", scheme.as_str(), target.path()), expected);
        assert_eq!(target.permit().addresses(), addresses, "{expected}");
    }
    let second = judge_url(Scope::OwnSite(&site("https://www.test")), "https://second.test/x").unwrap();
    assert_eq!(second.permit().addresses(), Addresses::Public);
    // Where no site is first, and where hosts are listed, a path leads nowhere.
    assert_eq!(judge_url(Scope::OwnSite(&[]), "/imprint"), Err(BadUrl));
    assert_eq!(judge_url(Scope::Listed(&entries()), "/imprint"), Err(BadUrl));
    assert_eq!(judge_url(Scope::None, "/imprint"), Err(EgressRefusal::NoEgress));
}

/// Pieces of which hostile URLs are made.
const PIECES: &[&str] = &[
    "http://",
    "https://",
    "HTTPS://",
    "//",
    "/",
    "\\",
    "allowed.test",
    "ALLOWED.TEST",
    "ａllowed。test",
    "192.0.2.7",
    "0xC0.0.519",
    "3221225991",
    "127.0.0.1",
    "[2001:db8::7]",
    "[::1]",
    "[",
    "]",
    "evil.test",
    "bücher.test",
    "xn--",
    ".",
    "..",
    "@",
    ":",
    ":443",
    ":80",
    ":8080",
    ":0",
    "%",
    "%2e",
    "%00",
    "?",
    "#",
    "&",
    "=",
    "\t",
    "\r\n",
    "\u{ad}",
    "\u{200d}",
    "é",
    "🦀",
    "a",
    "1",
    "-",
    "*",
    ";",
];

proptest::proptest! {
    #[test]
    fn what_passes_is_an_entry_and_is_read_alike_again(
        chosen in proptest::collection::vec(proptest::sample::select(PIECES), 0..8),
        wild in ".{0,12}",
    ) {
        let (entries, sites) = (entries(), sites());
        for text in [chosen.concat(), format!("https://allowed.test{}", chosen.concat()), format!("{}{wild}", chosen.concat())] {
            for scope in [Scope::Listed(&entries), Scope::OwnSite(&sites)] {
                let Ok(target) = judge_url(scope, &text) else { continue };
                let (origin, path) = (target.permit().origin(), target.path());
                let listed = entries.iter().any(|entry| entry.address == origin.address);
                proptest::prop_assert!(listed, "{text:?}: {origin:?}");
                let plain = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
                proptest::prop_assert!(plain, "{text:?}: {path:?}");
                let again = format!("{}://{}{path}", origin.scheme.as_str(), origin.address);
                proptest::prop_assert_eq!(judge_url(scope, &again), Ok(target), "{:?}", text);
            }
        }
    }
}
