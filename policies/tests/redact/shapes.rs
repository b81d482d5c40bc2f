//! What is left of a text.

use super::*;

/// Each text and what is left of it. `~` in a text is left out: what looks like a secret to the scanner of a repository is written in two parts.
fn table(cases: &[(&str, &str)]) {
    let redactor = redactor();
    for (text, expected) in cases {
        let text = text.replace('~', "");
        assert_eq!(redacted(&redactor, &text), *expected, "{text}");
    }
}

#[test]
fn a_name_around_a_secret_stays() {
    table(&[
        ("https://api.example.com/v1?api_key=abc123&page=2", "https://api.example.com/v1?api_key=[redacted:api_key]&page=2"),
        ("GET /x?access_token=abc.def#top", "GET /x?access_token=[redacted:token]#top"),
        ("postgres://shop:hunter2@db.internal:5432/shop", "postgres://shop:[redacted:password]@db.internal:5432/shop"),
        ("redis://:p@ssword@cache:6379/0", "redis://:[redacted:password]@cache:6379/0"),
        ("Authorization: Bearer abc.def-1", "Authorization: Bearer [redacted:credential]"),
        ("use Bearer abcdef1234567890 here", "use Bearer [redacted:token] here"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [redacted:credential]"),
        ("x-api-key: abcd1234efgh", "x-api-key: [redacted:api_key]"),
        ("Cookie: sid=abc123; theme=dark", "Cookie: sid=[redacted:cookie]; theme=[redacted:cookie]"),
        ("Set-Cookie: sid=abc123; Path=/; HttpOnly", "Set-Cookie: sid=[redacted:cookie]; Path=/; HttpOnly"),
        ("password: hunter2", "password: [redacted:password]"),
        ("DB_PASSWORD=s3cr3t!", "DB_PASSWORD=[redacted:password]"),
        (r#"{"password":"hunter2","n":1}"#, r#"{"password":"[redacted:password]","n":1}"#),
        (
            "- name: DB_PASSWORD\n  value: hunter2\n- name: A\n  value: b",
            "- name: DB_PASSWORD\n  value: [redacted:password]\n- name: A\n  value: b",
        ),
        (r#"<add key="Password" value="hunter2"/>"#, r#"<add key="Password" value="[redacted:password]"/>"#),
        ("jdbc:oracle:thin:scott/tiger@//db:1521/orcl", "jdbc:oracle:thin:scott/[redacted:password]@//db:1521/orcl"),
        ("0123456789abcdef0123456789abcdef", "[redacted:api_key]"),
        ("<password>hunter2</password>", "<password>[redacted:password]</password>"),
        ("Server=db;User Id=sa;Pwd=hunter2;Database=x", "Server=db;User Id=sa;Pwd=[redacted:password];Database=x"),
    ]);
}

#[test]
fn a_shape_goes_whole() {
    table(&[
        ("key sk-~proj-abcdefghijklmnop1234 end", "key [redacted:api_key] end"),
        ("AKIA~IOSFODNN7EXAMPLE", "[redacted:aws_key]"),
        ("gh~p_abcdefghijklmnopqrstuvwxyz0123456789", "[redacted:github_token]"),
        ("mail jo.doe@example.com.", "mail [redacted:email]."),
        (
            "-----BEGIN RSA PRIV~ATE KEY-----\nMIIEowIBAAKCAQEA7bq\nabc=\n-----END RSA PRIVATE KEY-----\nthen",
            "[redacted:private_key]\nthen",
        ),
        ("ey~JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl.", "[redacted:jwt]"),
    ]);
}

#[test]
fn what_is_no_secret_stays() {
    let redactor = redactor();
    for text in [
        "password: forgotten?",
        "max_tokens: 512, tokens: 512",
        "the model claude-opus-4-20250514 and gpt-4o-mini-2024-07-18",
        "d41d8cd98f00b204e9800998ecf8427e is its md5",
        "550e8400-e29b-41d4-a716-446655440000",
        "sk-short",
        "http://localhost:8080/ mail",
        "the bearer token of the basic cookie monster",
        "token = get_token()",
        "password = os.environ['X']",
        "[redacted:email]",
    ] {
        let mut counts = Counts::default();
        assert_eq!(redactor.text(text, &mut counts), text);
        assert!(counts.is_empty());
    }
}

#[test]
fn case_52_strings_and_keys_of_json_are_looked_at_as_they_are_meant() {
    let redactor = redactor();
    for (text, expected) in [
        (r#"{"apiKey": "x", "n": 1.50e3, "t": "tok"}"#, r#"{"apiKey": "[redacted:api_key]", "n": 1.50e3, "t": "tok"}"#),
        (r#"{"a":["say \"password=hunter2\" twice"]}"#, r#"{"a":["say \"password=[redacted:password]\" twice"]}"#),
        (r#"{"\u0061@example.com":"\u00e9 jo@example.com \/"}"#, r#"{"[redacted:email]":"\u00e9 [redacted:email] \/"}"#),
        ("{\"token\" :\n \"\", \"max_tokens\": 5}", "{\"token\" :\n \"\", \"max_tokens\": 5}"),
        (
            r#"[{"name":"DB_PASSWORD","value":"hunter2"},{"name":"PORT","value":"5432"}]"#,
            r#"[{"name":"DB_PASSWORD","value":"[redacted:password]"},{"name":"PORT","value":"5432"}]"#,
        ),
        (
            r#"{"password":["hunter2", {"x":"stays"}, ["too"]], "secret": {"value":"a1","type":"string","b":["stays"]}, "api_key": {}}"#,
            r#"{"password":["[redacted:password]", {"x":"stays"}, ["[redacted:password]"]], "secret": {"value":"[redacted:secret]","type":"string","b":["stays"]}, "api_key": {}}"#,
        ),
        (
            r#"{"password": 12345678, "api_key":-1.5e9, "secret":[1234,99887766], "password_count": 123456, "token": 123456, "n": 12345678}"#,
            r#"{"password": "[redacted:password]", "api_key":"[redacted:api_key]", "secret":[1234,"[redacted:secret]"], "password_count": 123456, "token": 123456, "n": 12345678}"#,
        ),
        (
            r#"{"properties": {"password": {"type": "string", "description": "of the user", "enum": ["a"]}}, "required": ["password"]}"#,
            r#"{"properties": {"password": {"type": "string", "description": "of the user", "enum": ["a"]}}, "required": ["password"]}"#,
        ),
        ("no JSON, password=hunter2", "no JSON, password=[redacted:password]"),
    ] {
        let mut counts = Counts::default();
        let once = redactor.json(text, &mut counts).into_owned();
        assert_eq!(once, expected);
        assert!(matches!(redactor.json(&once, &mut counts), Cow::Borrowed(_)), "{once}");
    }
}

#[test]
fn personal_data_passes_its_check() {
    table(&[
        ("IBAN DE89 3704 0044 0532 0130 00.", "IBAN [redacted:iban]."),
        ("GB82WEST12345698765432, ok", "[redacted:iban], ok"),
        ("card 4111 1111 1111 1111 exp", "card [redacted:card] exp"),
        ("5555555555554444", "[redacted:card]"),
        ("3782-822463-10005", "[redacted:card]"),
        ("call +49 30 1234567 now", "call [redacted:phone] now"),
        ("+1 (415) 555-2671", "[redacted:phone]"),
        ("(415) 555-2671 or 415-555-2671", "[redacted:phone] or [redacted:phone]"),
        ("Tel. 030 1234567", "Tel. [redacted:phone]"),
        ("from 203.0.113.7:443 and 10.0.0.0/8", "from [redacted:ip]:443 and [redacted:ip]/8"),
        ("at 2001:db8::1 and fe80::1ff:fe23:4567:890a%eth0", "at [redacted:ip] and [redacted:ip]%eth0"),
    ]);
    let redactor = redactor();
    for text in [
        "4111 1111 1111 1112",
        "DE89 3704 0044 0532 0130 01",
        "v1.2.3.4 and version 1.2.3.4 and Chrome/120.0.0.0",
        "127.0.0.1 0.0.0.0 255.255.255.0 ::1",
        "1767225600123 2026-01-02T03:04:05Z 12:30:45",
        "aa:bb:cc:dd:ee:ff std::fmt a::b",
        "550e8400-e29b-41d4-a716-446655440000",
        "order 1234567890 of 2024-01-02",
    ] {
        assert_eq!(redactor.text(text, &mut Counts::default()), text);
    }
}

#[test]
fn patterns_of_the_operator() {
    table(&[
        ("see TCK-123456 and TCK-12345", "see [redacted:ticket] and TCK-12345"),
        ("key: SECRET-CANARY-1 done", "key: [redacted:canary] done"),
        ("TCK-123456sk-~abcdefghijklmnopqrstuv", "[redacted:ticket][redacted:api_key]"),
    ]);
    let long = format!("SECRET-CANARY-{} end", "7".repeat(1000));
    assert_eq!(redacted(&redactor(), &long), "[redacted:canary] end");
}

#[test]
fn many_long_texts_are_one_pattern() {
    let texts: Vec<String> =
        (0..200).map(|at| format!("known-{at:03}-{}", format!("{:x}", at * 7919 + 11).repeat(4 + at))).collect();
    let pattern = Pattern { name: "own".into(), regex: format!("(?:{})", texts.join("|")).into() };
    let rules = Rules { patterns: Arc::from([pattern]), secrets: false, personal: [].into() };
    let redactor = Arc::new(Redactor::new(&rules));
    for text in &texts {
        let text = format!("see {text}, and known-1 too");
        assert_eq!(redacted(&redactor, &text), "see [redacted:own], and known-1 too");
        let single: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(streamed(&redactor, single.iter().map(String::as_str)).0, "see [redacted:own], and known-1 too");
    }
}
