//! A connection that is made when it is needed, and made again when it was lost; and a runtime to wait for it on whichever thread asks.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::runtime::Runtime;
use toolgate_config::secret::Secret;

use crate::store::Unusable;
use crate::store::database::Trouble;

/// A client of one server.
pub(super) struct Client {
    runtime: Runtime,
    options: PgConnectOptions,
    name: String,
    patience: Duration,
    connection: Option<PgConnection>,
}

/// Why a server did not do something.
pub(super) enum Failure {
    /// It, or the way to it, says why.
    Said(sqlx::Error),
    /// It did not answer for so long.
    Silent(Duration),
}

impl Client {
    /// Of the server that a URL names; nothing is sent yet.
    ///
    /// # Errors
    /// It names none.
    pub(super) fn new(url: &Secret, patience: Duration) -> Result<Self, Unusable> {
        let options = PgConnectOptions::from_str(url.expose()).map_err(|_| {
            Unusable("`store.url` names no PostgreSQL server: postgres://USER:PASSWORD@HOST:PORT/DATABASE is meant".to_owned())
        })?;
        // What is sent is counted elsewhere, and slow statements are no news.
        let options = options.application_name("toolgate").disable_statement_logging();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Unusable(format!("there is no runtime for the store: {error}")))?;
        Ok(Self { runtime, name: name(&options), options, patience, connection: None })
    }

    /// What messages call the server: never with a password.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// From now on it waits this long for an answer.
    pub(super) fn has_patience(&mut self, patience: Duration) {
        self.patience = patience;
        // The server was told at the beginning.
        self.connection = None;
    }

    /// Asks the server. That a connection was lost while it was idle is no failure: it is asked once more on a new one.
    pub(super) fn ask<T>(&mut self, question: impl AsyncFn(&mut PgConnection) -> sqlx::Result<T>) -> Result<T, Failure> {
        let is_kept = self.connection.is_some();
        match self.ask_once(&question) {
            Err(Failure::Said(_)) if is_kept => self.ask_once(&question),
            other => other,
        }
    }

    /// A connection on which something failed is not used again.
    fn ask_once<T>(&mut self, question: &impl AsyncFn(&mut PgConnection) -> sqlx::Result<T>) -> Result<T, Failure> {
        let (kept, options, patience) = (self.connection.take(), &self.options, self.patience);
        let asking = async {
            let mut connection = match kept {
                Some(connection) => connection,
                None => connect(options, patience).await?,
            };
            let answer = question(&mut connection).await?;
            Ok((connection, answer))
        };
        // The server gives up first, so that nothing goes on there that nobody waits for.
        let longest = patience + patience / 2;
        match self.runtime.block_on(async { tokio::time::timeout(longest, asking).await }) {
            Ok(Ok((connection, answer))) => {
                self.connection = Some(connection);
                Ok(answer)
            }
            Ok(Err(error)) => Err(Failure::Said(error)),
            Err(_) => Err(Failure::Silent(longest)),
        }
    }

    /// Says goodbye, if there is somebody to say it to.
    pub(super) fn close(mut self) {
        if let Some(connection) = self.connection.take() {
            let closing = async { tokio::time::timeout(self.patience, connection.close()).await };
            // The server notices by itself as well.
            let _ = self.runtime.block_on(closing);
        }
    }

    /// A sentence about this store.
    pub(super) fn unusable(&self, why: &str) -> Unusable {
        Unusable(format!("the store {} {why}", self.name))
    }

    /// Why this store cannot be opened, and what to do.
    pub(super) fn refusal(&self, failure: Failure) -> Unusable {
        let error = match failure {
            Failure::Said(error) => error,
            Failure::Silent(longest) => return self.unusable(&format!("does not answer within {} s", longest.as_secs())),
        };
        let Some(said) = error.as_database_error() else {
            return self.unusable(&format!("cannot be reached: {error}"));
        };
        let what = match said.code().as_deref() {
            Some("28P01" | "28000") => "refuses the user or the password of `store.url`",
            Some("3D000") => "has no such database: create it",
            Some("42501") => "does not let its user make and write tables: grant it that",
            Some("25006") => "is read-only: name the primary server",
            Some("53100") => "cannot be written, its disk is full: make room",
            Some("57014") => "is kept locked by somebody else: have them end their transaction",
            _ => "cannot be used",
        };
        self.unusable(&format!("{what} (it says: {})", said.message()))
    }
}

/// The server ends what takes too long, and takes a commit for done when it is on the disk, whatever it does for others.
async fn connect(options: &PgConnectOptions, patience: Duration) -> sqlx::Result<PgConnection> {
    let mut connection = PgConnection::connect_with(options).await?;
    let settings = "SELECT set_config('statement_timeout', $1, false), \
                    set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)";
    sqlx::query(settings).bind(patience.as_millis().to_string()).execute(&mut connection).await?;
    Ok(connection)
}

fn name(options: &PgConnectOptions) -> String {
    let host = options.get_socket().map_or_else(|| options.get_host().into(), |socket| socket.to_string_lossy());
    let database = options.get_database().unwrap_or(options.get_username());
    // A password that should have been escaped may have got anywhere behind the user.
    let shown = |part: &str| if part.contains('@') { "…".to_owned() } else { part.to_owned() };
    format!("postgres://{}@{}:{}/{}", shown(options.get_username()), shown(&host), options.get_port(), shown(database))
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self(match failure {
            Failure::Silent(longest) => format!("it does not answer within {longest:?}"),
            Failure::Said(error) => match error.as_database_error() {
                Some(said) => format!("it says: {}", said.message()),
                None => format!("it cannot be reached: {error}"),
            },
        })
    }
}
