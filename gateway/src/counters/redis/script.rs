//! The scripts that run in the server: what they are called with. A script is one step that nobody comes between.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisResult, ServerErrorKind, Value, cmd};

use super::keys;

/// Whole numbers up to here are exact in a script. In nano-dollars it is nine million dollars; what is more counts as this much.
pub(super) const MOST: u64 = (1 << 53) - 1;

macro_rules! scripts {
    ($($name:ident $file:literal),* $(,)?) => {
        /// A script.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Script {
            $($name),*
        }

        /// Their texts, in the order of their names.
        const TEXTS: &[&str] = &[$(concat!(include_str!("lua/common.lua"), include_str!(concat!("lua/", $file)))),*];
    };
}

scripts! {
    Take "take.lua",
    Settle "settle.lua",
    Seed "seed.lua",
    Read "read.lua",
    Join "join.lua",
    Renew "renew.lua",
    Leave "leave.lua",
}

/// What the server calls the scripts.
pub(super) struct Scripts(Vec<String>);

impl Scripts {
    /// Gives the server the scripts, and asks which of its lives this is.
    pub(super) async fn load(connection: &mut MultiplexedConnection) -> RedisResult<(Self, String)> {
        let mut pipeline = Pipeline::new();
        for text in TEXTS {
            pipeline.add_command(cmd("SCRIPT").arg("LOAD").arg(*text).to_owned());
        }
        pipeline.add_command(cmd("INFO").arg("server").to_owned());
        let mut replies = connection.send_packed_commands(&pipeline, 0, TEXTS.len() + 1).await?;
        // A server that keeps this to itself is taken for one that never forgets.
        let info = replies.pop().and_then(|info| redis::from_redis_value::<String>(info).ok()).unwrap_or_default();
        let names = replies.into_iter().map(|name| redis::from_redis_value(name.extract_error()?).map_err(Into::into));
        Ok((Self(names.collect::<RedisResult<_>>()?), life(&info)))
    }
}

/// The beginning of the name that a server gives itself at each start.
fn life(info: &str) -> String {
    let name = info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap_or("0");
    name.trim().chars().take(12).collect()
}

/// Who calls, and when.
pub(super) struct Caller<'a> {
    /// The gateway, by the name that it has in the server.
    pub gateway: &'a str,
    /// For how long it is alive after each call, in milliseconds.
    pub lease: i64,
    /// The least that the time can be, in microseconds since 1970.
    pub not_before: i64,
    /// The time, where the server's own does not count; else 0.
    pub now: i64,
}

/// A call of a script: the keys that it uses, and its arguments: names, if there are any, and numbers.
pub(super) struct Call {
    script: Script,
    keys: Vec<String>,
    names: Vec<String>,
    arguments: Vec<i64>,
}

impl Call {
    /// A call without any.
    pub(super) fn new(script: Script) -> Self {
        Self { script, keys: Vec::new(), names: Vec::new(), arguments: Vec::new() }
    }

    /// One more key.
    pub(super) fn key(&mut self, key: String) {
        self.keys.push(key);
    }

    /// These names, and how many they are.
    pub(super) fn names(&mut self, names: &[String]) {
        self.names.push(names.len().to_string());
        self.names.extend_from_slice(names);
    }

    /// More arguments.
    pub(super) fn arguments<const N: usize>(&mut self, arguments: [i64; N]) {
        self.arguments.extend(arguments);
    }

    /// The command that is sent.
    pub(super) fn command(&self, scripts: &Scripts, caller: &Caller<'_>) -> Cmd {
        let mut command = cmd("EVALSHA");
        command.arg(&scripts.0[self.script as usize]).arg(self.keys.len() + 1).arg(keys::GATEWAYS).arg(&self.keys);
        command.arg(caller.gateway).arg(caller.lease).arg(caller.not_before).arg(caller.now);
        command.arg(&self.names).arg(&self.arguments);
        command
    }
}

/// What a script answered: numbers, the first of which says whether it did anything.
pub(super) enum Answer {
    /// It did.
    Numbers(Vec<i64>),
    /// The gateway is not known any more, or its scripts are not; nothing was done.
    Stale,
    /// The server cannot do it; nothing was done.
    Failed(String),
}

impl Answer {
    /// Reads it.
    pub(super) fn of(value: Value) -> Self {
        match value {
            Value::ServerError(error) if error.kind() == Some(ServerErrorKind::NoScript) => Self::Stale,
            Value::ServerError(error) => Self::Failed(format!("{} {}", error.code(), error.details().unwrap_or_default())),
            value => match redis::from_redis_value::<Vec<i64>>(value) {
                Ok(numbers) if numbers.first() == Some(&-1) => Self::Stale,
                Ok(numbers) => Self::Numbers(numbers),
                Err(error) => Self::Failed(error.to_string()),
            },
        }
    }
}
