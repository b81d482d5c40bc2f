//! What is measured: how each target is found, configured and started, each in a setting that favours it.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use tokio::time::{sleep, timeout};

use crate::caller::{Caller, Route};
use crate::machine::Cores;
use crate::payload::{KEY_HASH, PARAMETERS, TOOLS};
use crate::process::{Group, this_program};
use crate::scenario::Scenario;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Nothing in between: what load and upstream can do
    Direct,
    /// nginx with one worker, as a proxy
    Nginx,
    /// A bare hyper proxy
    Hyper,
    /// toolgate with key check, gate, granted tools, metrics and traces, and without money: no ledger, no limits
    Toolgate,
    /// The same with prices, budgets and rates on the path of each request, and its ledger on the disk
    Money,
}

impl Kind {
    /// In the order of the tables.
    pub(crate) const ALL: [Self; 5] = [Self::Direct, Self::Nginx, Self::Hyper, Self::Toolgate, Self::Money];

    /// Its name in the tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Hyper => "bare hyper",
            Self::Toolgate => "toolgate",
            Self::Money => "toolgate with money",
        }
    }

    /// Whether it is toolgate, which runs the tools itself.
    pub(crate) const fn is_toolgate(self) -> bool {
        matches!(self, Self::Toolgate | Self::Money)
    }
}

/// What every target needs to start.
pub(crate) struct Site {
    pub(crate) upstream: SocketAddr,
    pub(crate) folder: PathBuf,
    pub(crate) cores: Cores,
    pub(crate) nginx: PathBuf,
    pub(crate) toolgate: PathBuf,
}

/// A target that runs and has answered.
pub(crate) struct Target {
    pub(crate) kind: Kind,
    pub(crate) route: Route,
    pub(crate) group: Option<Group>,
    /// From its start to its first right answer.
    pub(crate) ready: Duration,
    log: PathBuf,
}

impl Target {
    /// Starts a target and waits for its first right answer.
    ///
    /// # Errors
    /// It ended, or it gave no right answer within ten seconds; with the end of what it printed.
    pub(crate) async fn start(kind: Kind, site: &Site) -> crate::Result<Self> {
        let gateway = if kind == Kind::Direct { site.upstream } else { free_address()? };
        let log = site.folder.join(format!("{}.log", gateway.port()));
        let command = command(kind, gateway, site)?;
        let started = Instant::now();
        let mut group = command.map(|command| Group::start(site.cores.gateway, &command, &log)).transpose()?;
        let route = Route {
            gateway,
            stream_prefix: if kind == Kind::Nginx { "/stream" } else { "" },
            own_tools: (!kind.is_toolgate()).then_some(site.upstream),
        };
        let outcome = wait_until_ready(route, group.as_mut()).await;
        let mut target = Self { kind, route, group, ready: started.elapsed(), log };
        match outcome {
            Ok(()) => Ok(target),
            Err(error) => Err(target.complaint(&*error)),
        }
    }

    /// What went wrong, whether the process is still there, and the end of what it printed.
    pub(crate) fn complaint(&mut self, error: &dyn std::error::Error) -> crate::Fault {
        let ended = if self.group.as_mut().is_some_and(Group::ended) { " (its process has ended)" } else { "" };
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let end: Vec<_> = log.lines().rev().take(8).collect();
        let end = end.into_iter().rev().collect::<Vec<_>>().join("\n");
        format!("{}: {error}{ended} {end}", self.kind.name()).trim_end().into()
    }
}

/// An address on loopback that is free now.
fn free_address() -> crate::Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

async fn wait_until_ready(route: Route, mut group: Option<&mut Group>) -> crate::Result<()> {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let error = match timeout(Duration::from_secs(5), first_answer(route)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(_) => "no answer".into(),
        };
        if group.as_deref_mut().is_some_and(Group::ended) {
            return Err("not ready".into());
        }
        if Instant::now() > until {
            return Err(error);
        }
        sleep(Duration::from_millis(1)).await;
    }
}

async fn first_answer(route: Route) -> crate::Result<()> {
    Caller::connect(Scenario::Plain, route).await?.ask().await.map(drop)
}

fn command(kind: Kind, listen: SocketAddr, site: &Site) -> crate::Result<Option<Vec<OsString>>> {
    let folder = site.folder.join(format!("{}-{}", kind.name().replace(' ', "-"), listen.port()));
    Ok(match kind {
        Kind::Direct => None,
        Kind::Hyper => Some(this_program(&["proxy", &listen.to_string(), &site.upstream.to_string()])?),
        Kind::Nginx => {
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("nginx.conf"), nginx_configuration(listen, site.upstream))?;
            let program = site.nginx.clone().into_os_string();
            Some(vec![program, "-p".into(), folder.clone().into(), "-c".into(), folder.join("nginx.conf").into()])
        }
        Kind::Toolgate | Kind::Money => {
            fs::create_dir_all(&folder)?;
            let file = folder.join("toolgate.yaml");
            fs::write(&file, toolgate_configuration(kind, listen, free_address()?, site.upstream))?;
            // A line in the log for each request is the one thing that nginx does not do here either.
            let program: Vec<OsString> = vec!["env".into(), "TOOLGATE_LOG=warn".into(), site.toolgate.clone().into()];
            Some(program.into_iter().chain(["serve".into(), "--config".into(), file.into()]).collect())
        }
    })
}

/// One worker, kept connections on both sides, no log. Plain answers are buffered, its fastest way; streams are not, since they would
/// arrive late.
fn nginx_configuration(listen: SocketAddr, upstream: SocketAddr) -> String {
    format!(
        "daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr error;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_max_body_size 16m;
    client_body_buffer_size 1m;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream model {{
        server {upstream};
        keepalive 1024;
        keepalive_requests 1000000000;
    }}
    server {{
        listen {listen} backlog=1024;
        proxy_http_version 1.1;
        proxy_set_header Connection \"\";
        location / {{ proxy_pass http://model; proxy_buffer_size 16k; proxy_buffers 8 16k; }}
        location /stream/ {{ proxy_pass http://model/; proxy_buffering off; }}
    }}
}}
"
    )
}

/// What a request with money meets on its path: nine limits, as an operator would set them, none of which is in its way.
const OF_KEY: &str = "budgets: [ { per: day, usd: 1000000 }, { per: month, requests: 1000000000 }, { per: day, tokens: 1000000000000 } ], \
                      rate: { requests_per_minute: 1000000000, tokens_per_minute: 4000000000, concurrent: 100000 }";
const OF_MODEL: &str = "price: { input: 0.15, output: 0.6 }, budgets: [ { per: day, usd: 1000000 } ], ";
const OF_EVERYBODY: &str =
    "budgets: [ { per: month, usd: 1000000, timezone: Europe/Berlin } ], rate: { requests_per_minute: 1000000000 }";

/// Everything that a request passes is on. `stream_hold: 0` lets each chunk go at once, so that what is measured is the relay.
fn toolgate_configuration(kind: Kind, listen: SocketAddr, admin: SocketAddr, upstream: SocketAddr) -> String {
    let (store, of_model, of_key, of_everybody) = match kind {
        Kind::Money => ("sqlite:ledger.db", OF_MODEL, OF_KEY, OF_EVERYBODY),
        _ => ("none", "", "", ""),
    };
    let models = ["plain", "stream", "paced", "loop", "open"].map(|name| {
        format!(
            "  {name}: {{ provider: scripted, upstream_model: scripted-{name}, stream_hold: 0, {of_model}tools: {{ groups: [shop] }} }}\n"
        )
    });
    let tools = TOOLS.map(|name| {
        format!(
            "  - {{ name: {name}, group: shop, description: Looks it up by the number of the article., parameters: {PARAMETERS}, \
             http: {{ url: \"http://{upstream}/tools/{name}/{{item}}\" }} }}\n"
        )
    });
    format!(
        "server: {{ listen: \"{listen}\", admin_listen: \"{admin}\", max_concurrent: 4096, shutdown_grace: 1s }}
providers:
  scripted: {{ kind: openai_compatible, base_url: \"http://{upstream}/v1\", api_key: sk-scripted, trust_zone: local }}
models:
{}keys:
  - {{ name: load, hash: \"sha256:{KEY_HASH}\", {of_key} }}
limits: {{ {of_everybody} }}
store: {{ url: \"{store}\" }}
groups:
  shop: {{ data_class: internal, trust_zone: local, egress: [ {{ host: \"{upstream}\", private: true }} ] }}
tools:
{}",
        models.concat(),
        tools.concat()
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use toolgate_config::check::{Source, read};

    #[test]
    fn toolgate_takes_the_configuration_that_it_is_measured_with() {
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        for (kind, budgets) in [(Kind::Toolgate, 0), (Kind::Money, 1)] {
            let text = toolgate_configuration(kind, address(1), address(2), address(3));
            let config = read(&Source { path: Path::new("toolgate.yaml"), text: &text, env: &|_| None });
            let config = config.unwrap_or_else(|faults| panic!("{faults:?}"));
            assert_eq!(config.tools.len(), TOOLS.len());
            assert!(config.tools.iter().all(|tool| tool.rule.enabled && !tool.rule.requires_approval));
            assert_eq!(config.limits.budgets.len(), budgets);
        }
    }
}
