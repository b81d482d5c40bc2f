//! Faults of `server:` and `auth:`.

use super::refused;

#[test]
fn a_listener_is_an_address_or_a_socket() {
    refused([
        (
            "server: { listen: 8080x, admin_listen: 'host:80' }\n",
            "1:19: server.listen: `8080x` is no address; allowed: 127.0.0.1:8080, [::1]:8080, 0.0.0.0:8080, unix:/path\n\
             1:40: server.admin_listen: `host:80` is no address; allowed: 127.0.0.1:8080, [::1]:8080, 0.0.0.0:8080, unix:/path",
        ),
        (
            "server: { listen: 'unix:', admin_listen: '127.0.0.1:70000' }\n",
            "1:19: server.listen: `unix:` is no address; allowed: 127.0.0.1:8080, [::1]:8080, 0.0.0.0:8080, unix:/path\n\
             1:42: server.admin_listen: `127.0.0.1:70000` is no address; allowed: 127.0.0.1:8080, [::1]:8080, 0.0.0.0:8080, unix:/path",
        ),
    ]);
}

#[test]
fn nobody_comes_in_without_a_key_from_elsewhere() {
    refused([
        (
            "server: { listen: '0.0.0.0:8080' }\n",
            "1:19: server.listen: there are no keys, so that anybody could come in, and `server.listen` is not loopback; allowed: keys, or a listener on 127.0.0.1, [::1] or unix:/path",
        ),
        (
            "auth: none\nserver: { listen: '0.0.0.0:8080' }\n",
            "1:7: auth: `none` lets anybody in, and `server.listen` is not loopback; allowed: keys, or a listener on 127.0.0.1, [::1] or unix:/path",
        ),
        (
            "auth: passthrough\nserver: { listen: '[::]:8080' }\n",
            "1:7: auth: `passthrough` lets anybody in, and `server.listen` is not loopback; allowed: keys, or a listener on 127.0.0.1, [::1] or unix:/path",
        ),
    ]);
}

#[test]
fn the_admin_side_asks_for_a_token_where_others_reach_it() {
    refused([
        (
            "server:\n  admin_listen: 10.0.0.1:9080\n",
            "2:17: server.admin_listen: `server.admin_token` must be set where `admin_listen` is not loopback",
        ),
        ("server: { admin_token: '${EMPTY}' }\n", "1:24: server.admin_token: the credential is empty"),
        (
            "server: { admin_token: 'two words' }\n",
            "1:24: server.admin_token: the credential holds a blank, a line break or something else that is no visible ASCII character",
        ),
    ]);
}

#[test]
fn tls_files_are_read() {
    refused([
        (
            "server: { tls: { cert: /nowhere/cert.pem } }\n",
            "1:11: server.tls: `key` is missing\n\
             1:24: server.tls.cert: `/nowhere/cert.pem` cannot be read: No such file or directory (os error 2)",
        ),
        (
            "server: { tls: { cert: Cargo.toml, key: Cargo.toml, client_ca: Cargo.toml } }\n",
            "1:24: server.tls.cert: `Cargo.toml` holds no certificate in PEM form\n\
             1:41: server.tls.key: `Cargo.toml` holds no private key in PEM form\n\
             1:64: server.tls.client_ca: `Cargo.toml` holds no certificate in PEM form",
        ),
        (
            "server: { tls: { cert: tests/config/cert.pem, key: tests/config/other-key.pem } }\n",
            "1:52: server.tls.key: this is not the key of the certificate",
        ),
    ]);
}
