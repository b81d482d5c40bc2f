//! The tables of the file's top level and of its small sections.

use std::time::Duration;

use crate::raw::keys::Key;
use crate::raw::mcp::McpServer;
use crate::raw::models::{Model, Provider};
use crate::raw::money::Limits;
use crate::raw::openapi::OpenApi;
use crate::raw::redaction::Redaction;
use crate::raw::section::{At, section};
use crate::raw::shape::{Count, Later, Named, Size};
use crate::raw::store::Store;
use crate::raw::text::Text;
use crate::raw::tools::{Group, Tool};
use crate::server::{Auth, LogFormat};

section! {
    /// The configuration of toolgate.
    File {
        /// Listeners, bounds and time limits of the process.
        server: Server = "{}",
        /// How callers prove who they are. Default: keys where there are any, else none. `none` and `passthrough` only on loopback or a unix socket.
        auth: Auth,
        /// Accounts at model APIs, by name.
        providers: Named<Provider> = "{}",
        /// What callers may name as `model`; `"*"` stands for any other name.
        models: Named<Model> = "{}",
        /// The callers.
        keys: Vec<At<Key>> = "[]",
        /// Budgets and rates for everybody together.
        limits: Limits = "{}",
        /// Families of tools that are switched and judged together, by name.
        groups: Named<Group> = "{}",
        /// Functions that the gateway can run.
        tools: Vec<At<Tool>> = "[]",
        /// Servers of tools that are found at run time, by name. A tool is offered as `server__tool`.
        mcp_servers: Named<McpServer> = "{}",
        /// Tools made from OpenAPI descriptions.
        openapi: Named<OpenApi> = "{}",
        /// Packs of tools that come with the gateway.
        builtin: Later,
        /// Which rules refuse, and which only observe.
        enforcement: Enforcement = "{}",
        /// What is taken out of results and answers.
        redaction: Redaction = "{}",
        /// What is kept, and where.
        store: Store = "{}",
        /// Logs and traces for operators.
        telemetry: Telemetry = "{}",
    }
}

section! {
    /// Listeners, bounds and time limits of the process.
    Server {
        /// Where callers come in: `host:port`, or `unix:/path`.
        listen: Text = "127.0.0.1:8080",
        /// Where operators and Prometheus come in: `host:port`, or `unix:/path`.
        admin_listen: Text = "127.0.0.1:9080",
        /// Asked of every admin path but /healthz, /readyz and /metrics; must be set where `admin_listen` is not loopback.
        admin_token: Text,
        /// TLS on `listen`.
        tls: Tls,
        /// The longest request body.
        max_body: Size = "10MiB",
        /// How long a caller may take to send its request head.
        header_timeout: Duration = "10s",
        /// How long a request may take.
        request_timeout: Duration = "10m",
        /// Requests in flight; one more is answered 503 with Retry-After.
        max_concurrent: Count<1, { u32::MAX }> = "1024",
        /// How long running requests may take to finish when the process is told to end.
        shutdown_grace: Duration = "30s",
    }
}

section! {
    /// A certificate and its key, as PEM files.
    Tls {
        /// The certificate chain.
        cert: Text = required,
        /// The private key.
        key: Text = required,
        /// Certificates that sign callers'; set: every caller must present one (mTLS).
        client_ca: Text,
    }
}

section! {
    /// Which rules refuse, and which only observe.
    Enforcement {
        /// `observe` offers what the trust-zone rule would withhold, and says so in the trace.
        trust_zone: crate::server::Enforcement = "enforce",
    }
}

section! {
    /// Logs and traces for operators.
    Telemetry {
        /// `json`: one object a line; `text`: for people.
        log: LogFormat = "json",
        /// Where spans are sent.
        otlp: Later,
    }
}
