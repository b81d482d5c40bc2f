//! Faults of `mcp_servers:`.

use super::refused;

const GROUPS: &str =
    "groups: { lab: { data_class: public, egress: ['crm.example.org:443'] }, bare: { data_class: public }, vague: {} }\n";

#[track_caller]
fn refused_servers<const N: usize>(cases: [(&str, &str); N]) {
    for (text, expected) in cases {
        refused([(&format!("mcp_servers:\n{text}{GROUPS}"), expected)]);
    }
}

#[test]
fn a_server_is_a_program_or_an_address_and_has_a_group_and_a_class() {
    refused_servers([
        (
            "  a: {}\n",
            "2:3: mcp_servers.a: `group` is missing\n\
             2:3: mcp_servers.a: a server has a `command`, which is started, or a `url`; here is neither",
        ),
        (
            "  a: { command: x, url: 'https://crm.example.org/mcp', group: lab }\n",
            "2:25: mcp_servers.a.url: a server has a `command` or a `url`, not both",
        ),
        (
            "  a: { command: ' ', group: lba }\n",
            "2:17: mcp_servers.a.command: this is no program; allowed: a path, or a name that is looked for in PATH\n\
             2:29: mcp_servers.a.group: no group is named `lba`; allowed: lab, bare, vague; nearest: lab",
        ),
        (
            "  a: { command: x, group: vague }\n",
            "2:3: mcp_servers.a: no `data_class`, neither here nor in the group `vague`; allowed: public, internal, source_code, configuration, diagnostics, secret",
        ),
        ("  '': { command: x, group: lab }\n", "2:3: mcp_servers[\"\"]: a name is empty"),
    ]);
}

#[test]
fn an_address_is_in_the_egress_of_its_group() {
    refused_servers([
        (
            "  a: { url: 'https://crm.example.org:8443/mcp', group: lab }\n",
            "2:13: mcp_servers.a.url: crm.example.org:8443 is not in the `egress` of the group `lab`; allowed: crm.example.org:443",
        ),
        (
            "  a: { url: 'https://crm.example.org/mcp', group: bare }\n",
            "2:13: mcp_servers.a.url: the group `bare` has no `egress`, so that its tools reach nobody; this one needs crm.example.org:443",
        ),
        (
            "  a: { url: 'https://u:p@crm.example.org/mcp', group: lab }\n",
            "2:13: mcp_servers.a.url: the URL carries a user name or a password; a credential goes into `headers`",
        ),
        (
            "  a: { url: 'file:///etc/passwd', group: lab }\n",
            "2:13: mcp_servers.a.url: the scheme is not allowed; allowed: http, https",
        ),
        (
            "  a: { url: 'https://crm.example.org/#x', group: lab }\n",
            "2:13: mcp_servers.a.url: the URL of a tool has no fragment",
        ),
        (
            "  a: { url: '${ORIGIN}', group: lab }\n",
            "2:13: mcp_servers.a.url: the address is not in the `egress` of the group `lab`; allowed: crm.example.org:443",
        ),
    ]);
}

#[test]
fn what_goes_with_the_other_way_is_refused() {
    refused_servers([
        (
            "  a: { command: x, type: http, headers: { a: b }, group: lab }\n",
            "2:26: mcp_servers.a.type: not with a `command`; allowed: nothing, stdio\n\
             2:41: mcp_servers.a.headers: this goes with a `url`, and the server has a `command`",
        ),
        (
            "  a: { url: 'https://crm.example.org/mcp', transport: stdio, args: [1], env: { A: b }, group: lab }\n",
            "2:55: mcp_servers.a.transport: not with a `url`; allowed: nothing, http, streamable-http\n\
             2:68: mcp_servers.a.args: this goes with a `command`, and the server has a `url`\n\
             2:78: mcp_servers.a.env: this goes with a `command`, and the server has a `url`",
        ),
        (
            "  a: { url: 'https://crm.example.org/sse', type: sse, group: lab }\n",
            "2:50: mcp_servers.a.type: `sse` is not supported yet; allowed: stdio, http, streamable-http, streamable_http, streamableHttp",
        ),
    ]);
}

#[test]
fn headers_and_variables_are_whole_and_not_the_gateways_own() {
    refused_servers([
        (
            "  a: { url: 'https://crm.example.org/mcp', headers: { Mcp-Session-Id: x, host: x, 'a b': x, b: '${BAD}' }, group: lab }\n",
            "2:55: mcp_servers.a.headers.Mcp-Session-Id: the protocol sets this header itself; never allowed here: accept, accept-encoding, content-type, last-event-id, mcp-protocol-version, mcp-session-id\n\
             2:74: mcp_servers.a.headers.host: the gateway sets this header itself; never allowed here: host, content-length, transfer-encoding, connection, keep-alive, proxy-connection, proxy-authorization, te, trailer, upgrade, expect, x-toolgate-*\n\
             2:83: mcp_servers.a.headers[\"a b\"]: this is no header name; allowed: letters, digits, `-`, `_` and the like\n\
             2:96: mcp_servers.a.headers.b: a header's value holds no line break and no other control character",
        ),
        (
            "  a: { command: x, env: { 'A=B': c }, args: [\"a\\0b\"], group: lab }\n",
            "2:27: mcp_servers.a.env[\"A=B\"]: the name of a variable holds no `=` and no zero byte\n\
             2:46: mcp_servers.a.args[0]: a program is handed no zero byte",
        ),
    ]);
}

#[test]
fn what_is_said_of_tools_holds_together() {
    refused_servers([
        (
            "  a: { command: x, group: lab, cache: 60s, tools: [ r, { w: { cache: 1s } }, r, {}, { b: { effects: x } } ] }\n",
            "2:39: mcp_servers.a.cache: a write is never answered from memory, and the effect is non_idempotent_write; allowed: with `effect: read_only`\n\
             2:78: mcp_servers.a.tools[2]: two tools of one name, `a__r`; the first is `mcp_servers.a.tools[0]` at line 2, column 53\n\
             2:81: mcp_servers.a.tools[3]: a mapping of 0 names; allowed: a name, or a mapping of one name to what holds for it\n\
             2:92: mcp_servers.a.tools[4].b.effects: unknown key; allowed: enabled, effect, requires_admin, scopes, requires_approval, data_class, personal, timeout, max_result, cache, price, redact; nearest: effect",
        ),
        (
            "  a: { command: x, group: lab, tools: [ { w: { cache: 1s, effect: idempotent_write } } ] }\n",
            "2:55: mcp_servers.a.tools[0].w.cache: a write is never answered from memory, and the effect is idempotent_write; allowed: with `effect: read_only`",
        ),
    ]);
}

#[test]
fn case_14_two_tools_of_one_name_are_both_named() {
    refused_servers([
        (
            "  my server: { command: x, group: lab }\n  my_server: { command: x, group: lab }\n",
            "3:3: mcp_servers.my_server: two servers whose tools would have the same names, `my_server__…`; the first is `mcp_servers[\"my server\"]` at line 2, column 3",
        ),
        (
            "  a: { command: x, group: lab, tools: [find] }\ntools:\n  - { name: a__find, group: lab, http: { url: 'https://crm.example.org/' } }\n",
            "2:40: mcp_servers.a.tools[0]: two tools of one name, `a__find`; the first is `tools[0].name` at line 4, column 13",
        ),
    ]);
}

#[test]
fn case_50_a_grant_names_what_a_server_may_have() {
    let grant = |names: &str| {
        format!(
            "providers: {{ p: {{ kind: ollama }} }}\nmodels: {{ m: {{ provider: p, tools: {{ names: [{names}] }} }} }}\nmcp_servers: {{ open: {{ command: x, group: bare }}, a: {{ command: x, group: bare, tools: [find] }} }}\n{GROUPS}"
        )
    };
    refused([
        (
            &grant("a__fnd"),
            "2:46: models.m.tools.names[0]: no tool is named `a__fnd`; allowed: a__find, open__…; nearest: a__find",
        ),
        (
            &grant("open__"),
            "2:46: models.m.tools.names[0]: no tool is named `open__`; allowed: a__find, open__…; nearest: open__…",
        ),
        (&grant("find"), "2:46: models.m.tools.names[0]: no tool is named `find`; allowed: a__find, open__…; nearest: a__find"),
    ]);
    super::accepted(&grant("a__find, open__whatever"));
}

#[test]
fn a_group_says_where_arguments_go_if_a_server_of_it_returns_what_may_not_go_everywhere() {
    refused([(
        "groups:\n  g: { data_class: public, egress: ['crm.example.org:443'] }\nmcp_servers:\n  a: { url: 'https://crm.example.org/mcp', group: g, tools: [ { find: { data_class: source_code } } ] }\n",
        "2:3: groups.g: it has egress, and its own data (source_code) could not go to external_global; `trust_zone` says where its arguments go: local, private, external_eu, external_global",
    )]);
}
