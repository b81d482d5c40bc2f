//! The connection to the server, from its URL to the first call.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, Pipeline, RedisError, Value};
use toolgate_config::secret::Secret;

use super::script::{Answer, Call, Caller, Scripts};
use crate::counters::Unreachable;

/// How to reach the server.
pub(super) struct Server {
    client: Client,
    config: AsyncConnectionConfig,
    /// Its address, without the password.
    name: String,
}

/// A connection to a server that has our scripts.
pub(super) struct Link {
    connection: MultiplexedConnection,
    scripts: Scripts,
    /// Which of its lives the server is in.
    pub life: String,
}

/// Why a connection is of no more use.
pub(super) struct Broken {
    /// For the operator.
    pub why: Unreachable,
    /// The server will hardly be back in a moment: it says nothing at all, or that it cannot.
    pub for_long: bool,
}

impl Server {
    /// The server of this URL, which may take so long for a connection or an answer.
    pub(super) fn new(url: &Secret, patience: Duration) -> Result<Self, Unreachable> {
        // What the library says of a URL could quote it.
        let info = url.expose().into_connection_info().map_err(|_| Unreachable("this is no URL of a Redis server".to_owned()))?;
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let name = match info.addr() {
            ConnectionAddr::Tcp(host, port) => format!("redis://{host}:{port}"),
            ConnectionAddr::TcpTls { host, port, .. } => format!("rediss://{host}:{port}"),
            ConnectionAddr::Unix(path) => format!("redis+unix://{}", path.display()),
            _ => "Redis".to_owned(),
        };
        let client = Client::open(info).map_err(|error| Unreachable(format!("{name}: {error}")))?;
        let config = AsyncConnectionConfig::new().set_connection_timeout(Some(patience)).set_response_timeout(Some(patience));
        Ok(Self { client, config, name })
    }

    /// Its address, without the password.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A connection over which scripts can be called.
    pub(super) async fn connect(&self) -> Result<Link, Broken> {
        let connect = async {
            let mut connection = self.client.get_multiplexed_async_connection_with_config(&self.config).await?;
            let (scripts, life) = Scripts::load(&mut connection).await?;
            Ok(Link { connection, scripts, life })
        };
        connect.await.map_err(|error| self.broken(&error))
    }

    /// What an error of the connection means.
    pub(super) fn broken(&self, error: &RedisError) -> Broken {
        Broken { why: self.unreachable(&error.to_string()), for_long: error.is_timeout() }
    }

    /// A sentence for the operator.
    pub(super) fn unreachable(&self, why: &str) -> Unreachable {
        Unreachable(format!("{}: {why}", self.name))
    }
}

impl Link {
    /// Calls scripts, one after the other, in one round trip.
    pub(super) async fn call(&mut self, caller: &Caller<'_>, calls: &[Call]) -> Result<Vec<Answer>, RedisError> {
        let mut pipeline = Pipeline::with_capacity(calls.len());
        for call in calls {
            pipeline.add_command(call.command(&self.scripts, caller));
        }
        let values: Vec<Value> = self.connection.send_packed_commands(&pipeline, 0, calls.len()).await?;
        Ok(values.into_iter().map(Answer::of).collect())
    }
}
