//! Faults of `groups:` and `tools:`.

use super::refused;

#[test]
fn egress_is_host_and_port() {
    refused([
        (
            "groups: { g: { egress: ['shop.example.org', 'https://a:1', '*.example.org:443', 'a:0', '::1:80'] } }\n",
            "1:25: groups.g.egress[0]: `shop.example.org` is no `host:port`: it has no port\n\
             1:45: groups.g.egress[1]: `https://a:1` is no `host:port`: its host is no name and no address (an IPv6 address stands in brackets)\n\
             1:60: groups.g.egress[2]: `*.example.org:443` is no `host:port`: its host is a pattern; each host is named by itself\n\
             1:81: groups.g.egress[3]: `a:0` is no `host:port`: its port is no number from 1 to 65535\n\
             1:88: groups.g.egress[4]: `::1:80` is no `host:port`: its host is no name and no address (an IPv6 address stands in brackets)",
        ),
        (
            "groups: { g: { egress: all } }\n",
            "1:24: groups.g.egress: wrong type: text; allowed: a list of `host:port`, or the word none",
        ),
        ("groups: { g: { egress: [ { private: true } ] } }\n", "1:26: groups.g.egress[0]: `host` is missing"),
    ]);
}

#[test]
fn a_group_says_where_its_arguments_go_if_its_own_data_could_not_go_everywhere() {
    refused([
        (
            "groups:\n  g: { data_class: diagnostics, egress: ['a:443'] }\n",
            "2:3: groups.g: it has egress, and its own data (diagnostics) could not go to external_global; `trust_zone` says where its arguments go: local, private, external_eu, external_global",
        ),
        (
            "groups:\n  g: { personal: true, data_class: internal, egress: ['a:443'] }\n",
            "2:3: groups.g: it has egress, and its own data (internal, personal) could not go to external_global; `trust_zone` says where its arguments go: local, private, external_eu, external_global",
        ),
        (
            "groups:\n  g: { personal: true, egress: ['a:443'] }\n",
            "2:3: groups.g: it has egress, and its own data (personal) could not go to external_global; `trust_zone` says where its arguments go: local, private, external_eu, external_global",
        ),
        (
            "groups:\n  g: { data_class: public, egress: ['a:443'] }\ntools:\n  - { name: t, group: g, data_class: source_code, http: { url: 'https://a/' } }\n",
            "2:3: groups.g: it has egress, and its own data (source_code) could not go to external_global; `trust_zone` says where its arguments go: local, private, external_eu, external_global",
        ),
    ]);
}

const GROUP: &str = "groups: { shop: { data_class: public, egress: ['shop.example.org:443', '[::1]:8080'] }, bare: { data_class: public }, vague: { egress: ['shop.example.org:443'] } }\n";

#[track_caller]
fn refused_tools<const N: usize>(cases: [(&str, &str); N]) {
    for (text, expected) in cases {
        refused([(&format!("tools:\n{text}{GROUP}"), expected)]);
    }
}

#[test]
fn a_tool_has_a_name_a_group_and_a_request() {
    refused_tools([
        (
            "  - {}\n",
            "2:5: tools[0]: `name` is missing\n\
             2:5: tools[0]: `group` is missing\n\
             2:5: tools[0]: `http` is missing",
        ),
        (
            "  - { name: 'get order', group: shpo, http: {} }\n",
            "2:13: tools[0].name: `get order` is no tool's name; allowed: 1 to 64 letters, digits, `_`, `-`\n\
             2:33: tools[0].group: no group is named `shpo`; allowed: shop, bare, vague; nearest: shop\n\
             2:39: tools[0].http: `url` is missing",
        ),
        (
            "  - { name: '', group: shop, http: { url: 'https://shop.example.org/', method: get } }\n",
            "2:13: tools[0].name: `` is no tool's name; allowed: 1 to 64 letters, digits, `_`, `-`\n\
             2:80: tools[0].http.method: unknown word `get`; allowed: GET, HEAD, POST, PUT, PATCH, DELETE; nearest: GET",
        ),
        (
            "  - { name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg, group: shop, http: { url: 'https://shop.example.org/' } }\n",
            "2:13: tools[0].name: `aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg` is no tool's name; allowed: 1 to 64 letters, digits, `_`, `-`",
        ),
    ]);
}

#[test]
fn two_tools_of_one_name_are_both_named() {
    refused_tools([(
        "  - { name: t, group: shop, http: { url: 'https://shop.example.org/' } }\n  - { name: t, group: shop, http: { url: 'https://shop.example.org/b' } }\n",
        "3:13: tools[1].name: two tools of one name, `t`; the first is `tools[0].name` at line 2, column 13",
    )]);
}

#[test]
fn a_tool_has_a_data_class_from_somewhere() {
    refused_tools([
        (
            "  - { name: t, group: vague, http: { url: 'https://shop.example.org/' } }\n",
            "2:5: tools[0]: no `data_class`, neither here nor in the group `vague`; allowed: public, internal, source_code, configuration, diagnostics, secret",
        ),
        (
            "  - { name: t, group: vague, data_class: pubic, http: { url: 'https://shop.example.org/' } }\n",
            "2:42: tools[0].data_class: unknown word `pubic`; allowed: public, internal, source_code, configuration, diagnostics, secret; nearest: public",
        ),
    ]);
}

#[test]
fn only_what_reads_is_answered_from_memory() {
    refused_tools([(
        "  - { name: t, group: shop, cache: 60s, http: { method: PUT, url: 'https://shop.example.org/' } }\n",
        "2:36: tools[0].cache: a write is never answered from memory, and the effect is non_idempotent_write; allowed: with `effect: read_only`",
    )]);
}

#[test]
fn arguments_are_an_object_with_a_valid_schema() {
    refused_tools([
        (
            "  - { name: t, group: shop, parameters: { type: array }, http: { url: 'https://shop.example.org/' } }\n",
            "2:41: tools[0].parameters: arguments are an object; allowed: a JSON Schema of `type: object`",
        ),
        (
            "  - { name: t, group: shop, parameters: [], http: { url: 'https://shop.example.org/' } }\n",
            "2:41: tools[0].parameters: arguments are an object; allowed: a JSON Schema of `type: object`",
        ),
        (
            "  - { name: t, group: shop, parameters: { type: object, properties: { a: { type: strin } } }, http: { url: 'https://shop.example.org/' } }\n",
            "2:41: tools[0].parameters: this is no JSON Schema: /properties/a/type: this is not valid under any of the schemas listed in the 'anyOf' keyword",
        ),
        (
            "  - { name: t, group: shop, parameters: { type: object, properties: { a: { pattern: '(' } } }, http: { url: 'https://shop.example.org/' } }\n",
            "2:41: tools[0].parameters: this is no JSON Schema: /properties/a/pattern: this is not a \"regex\"",
        ),
        (
            "  - { name: t, group: shop, parameters: { type: object, properties: { a: { pattern: '${SECRET}(' } } }, http: { url: 'https://shop.example.org/' } }\n",
            "2:41: tools[0].parameters: this is no JSON Schema: /properties/a/pattern: this is not a \"regex\"",
        ),
        (
            "  - { name: t, group: shop, parameters: { type: object, properties: { a: { $ref: 'https://a/b' } } }, http: { url: 'https://shop.example.org/' } }\n",
            "2:41: tools[0].parameters: this is no JSON Schema: a `$ref` leads nowhere within it, and nothing is fetched",
        ),
    ]);
}

#[track_caller]
fn refused_requests<const N: usize>(cases: [(&str, &str); N]) {
    for (http, expected) in cases {
        let text = format!(
            "  - name: t\n    group: shop\n    parameters: {{ type: object, properties: {{ id: {{}}, page: {{}} }} }}\n    http: {http}\n"
        );
        refused_tools([(&text, expected)]);
    }
}

#[test]
fn where_a_request_goes_is_declared_and_no_business_of_the_model() {
    refused_requests([
        (
            "{ url: 'https://{id}/' }",
            "5:18: tools[0].http.url: scheme, host and port hold no parameter: where a request goes is not the model's business",
        ),
        (
            "{ url: 'https://shop.example.org:{id}/' }",
            "5:18: tools[0].http.url: scheme, host and port hold no parameter: where a request goes is not the model's business",
        ),
        (
            "{ url: '{id}://shop.example.org/' }",
            "5:18: tools[0].http.url: scheme, host and port hold no parameter: where a request goes is not the model's business",
        ),
        (
            "{ url: 'https://shop.example.org{id}' }",
            "5:18: tools[0].http.url: scheme, host and port hold no parameter: where a request goes is not the model's business",
        ),
        (
            "{ url: 'https://user:s3cret@shop.example.org/' }",
            "5:18: tools[0].http.url: the URL carries a user name or a password; a credential goes into `headers`",
        ),
        (
            "{ url: 'https://shop.example.org@evil.example/' }",
            "5:18: tools[0].http.url: the URL carries a user name or a password; a credential goes into `headers`",
        ),
        ("{ url: 'ftp://shop.example.org/' }", "5:18: tools[0].http.url: the scheme is not allowed; allowed: http, https"),
        ("{ url: 'shop.example.org/a' }", "5:18: tools[0].http.url: the URL has no scheme; allowed: http://, https://"),
        (
            "{ url: 'https://shop.example.org:8443/' }",
            "5:18: tools[0].http.url: shop.example.org:8443 is not in the `egress` of the group `shop`; allowed: shop.example.org:443, [::1]:8080",
        ),
        (
            "{ url: 'http://shop.example.org/' }",
            "5:18: tools[0].http.url: shop.example.org:80 is not in the `egress` of the group `shop`; allowed: shop.example.org:443, [::1]:8080",
        ),
        (
            "{ url: \"https://shop.example.org\\\\.evil.example/\" }",
            "5:18: tools[0].http.url: this is no address: its host is no name and no address (an IPv6 address stands in brackets)",
        ),
        ("{ url: 'https://SHOP.example.org./a#b' }", "5:18: tools[0].http.url: the URL of a tool has no fragment"),
        ("{ url: 'https://shop.example.org/?a={id}#b' }", "5:18: tools[0].http.url: the URL of a tool has no fragment"),
        ("{ url: 'https://shop.example.org/?{id}=a' }", "5:18: tools[0].http.url: the name of a query pair holds no parameter"),
        ("{ url: 'https://${BAD}/' }", "5:18: tools[0].http.url: this is no address: its port is no number from 1 to 65535"),
        (
            "{ url: 'https://${SECRET}/' }",
            "5:18: tools[0].http.url: the address is not in the `egress` of the group `shop`; allowed: shop.example.org:443, [::1]:8080",
        ),
        ("{ url: 'https://shop.example.org/?a=%ff' }", "5:18: tools[0].http.url: the query is not UTF-8"),
    ]);
}

#[test]
fn a_group_without_egress_reaches_nobody() {
    refused_tools([(
        "  - { name: t, group: bare, http: { url: 'https://shop.example.org/' } }\n",
        "2:42: tools[0].http.url: the group `bare` has no `egress`, so that its tools reach nobody; this one needs shop.example.org:443",
    )]);
}

#[test]
fn parameters_of_templates_are_in_the_schema() {
    refused_requests([
        (
            "{ url: 'https://shop.example.org/{idd}?q={nothing}', query: { p: '{pge}' }, headers: { x-a: '{ID2}' } }",
            "5:18: tools[0].http.url: `{idd}` is no property of `parameters`; allowed: id, page; nearest: id\n\
             5:18: tools[0].http.url: `{nothing}` is no property of `parameters`; allowed: id, page\n\
             5:76: tools[0].http.query.p: `{pge}` is no property of `parameters`; allowed: id, page; nearest: page\n\
             5:103: tools[0].http.headers.x-a: `{ID2}` is no property of `parameters`; allowed: id, page; nearest: id",
        ),
        ("{ url: 'https://shop.example.org/{id' }", "5:18: tools[0].http.url: `{` without its `}`; a brace is written `{{`"),
        (
            "{ url: \"https://shop.example.org/{}\", headers: { x-a: '{\"a\":1}' } }",
            "5:18: tools[0].http.url: between `{` and `}` stands a parameter's name; a brace is written `{{`\n\
             5:65: tools[0].http.headers.x-a: between `{` and `}` stands a parameter's name; a brace is written `{{`",
        ),
    ]);
    refused_tools([(
        "  - { name: t, group: shop, http: { url: 'https://shop.example.org/{id}' } }\n",
        "2:42: tools[0].http.url: `{id}` is no property of `parameters`; there are none",
    )]);
}

#[test]
fn headers_cannot_break_the_request() {
    refused_requests([
        (
            "{ url: 'https://shop.example.org/', headers: { Host: a, 'x a': b, '': c, te: d, x-toolgate-user: e } }",
            "5:58: tools[0].http.headers.Host: the gateway sets this header itself; never allowed here: host, content-length, transfer-encoding, connection, keep-alive, proxy-connection, proxy-authorization, te, trailer, upgrade, expect, x-toolgate-*\n\
             5:67: tools[0].http.headers[\"x a\"]: this is no header name; allowed: letters, digits, `-`, `_` and the like\n\
             5:77: tools[0].http.headers[\"\"]: a name is empty\n\
             5:77: tools[0].http.headers[\"\"]: this is no header name; allowed: letters, digits, `-`, `_` and the like\n\
             5:84: tools[0].http.headers.te: the gateway sets this header itself; never allowed here: host, content-length, transfer-encoding, connection, keep-alive, proxy-connection, proxy-authorization, te, trailer, upgrade, expect, x-toolgate-*\n\
             5:91: tools[0].http.headers.x-toolgate-user: the gateway sets this header itself; never allowed here: host, content-length, transfer-encoding, connection, keep-alive, proxy-connection, proxy-authorization, te, trailer, upgrade, expect, x-toolgate-*",
        ),
        (
            "{ url: \"https://shop.example.org/\", headers: { x-a: \"b\\r\\nx-c: d\", X-A: c, x-b: \"${BAD}\", x-c: [] } }",
            "5:63: tools[0].http.headers.x-a: a header's value holds no line break and no other control character\n\
             5:78: tools[0].http.headers.X-A: two headers of one name, `x-a`; the first is `tools[0].http.headers.x-a` at line 5, column 58\n\
             5:91: tools[0].http.headers.x-b: a header's value holds no line break and no other control character\n\
             5:106: tools[0].http.headers.x-c: wrong type: a list; allowed: text, a number, true, false",
        ),
    ]);
}

#[test]
fn bodies_and_pointers() {
    refused_requests([
        (
            "{ url: 'https://shop.example.org/', body: json, select: data }",
            "5:53: tools[0].http.body: GET has no body; allowed: none\n\
             5:67: tools[0].http.select: `data` is no JSON pointer; allowed: `/data`, `/items/0` (`~` is written `~0`, a slash in a name `~1`)",
        ),
        (
            "{ url: 'https://shop.example.org/', body: form, select: '/a~2', errors: full }",
            "5:53: tools[0].http.body: unknown word `form`; allowed: json, none\n\
             5:67: tools[0].http.select: `/a~2` is no JSON pointer; allowed: `/data`, `/items/0` (`~` is written `~0`, a slash in a name `~1`)\n\
             5:83: tools[0].http.errors: unknown word `full`; allowed: generic, body",
        ),
        (
            "{ url: 'https://shop.example.org/', method: TRACE, select: '/a~' }",
            "5:55: tools[0].http.method: unknown word `TRACE`; allowed: GET, HEAD, POST, PUT, PATCH, DELETE\n\
             5:70: tools[0].http.select: `/a~` is no JSON pointer; allowed: `/data`, `/items/0` (`~` is written `~0`, a slash in a name `~1`)",
        ),
    ]);
}
