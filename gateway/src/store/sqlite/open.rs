//! Opening the file: what is in it is looked at before anything is changed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::store::Unusable;
use crate::store::schema::{Found, VERSION, VERSION_TABLE};

/// From each version to the next.
const MIGRATIONS: [&str; 3] = [
    include_str!("../migrations/sqlite/0001_ledger.sql"),
    include_str!("../migrations/sqlite/0002_pauses.sql"),
    include_str!("../migrations/sqlite/0003_pins.sql"),
];

/// A log that grew beyond this, under a reader that took long, is cut again.
const LONGEST_LOG: &str = "67108864";

/// Why a file is not used: the end of a sentence.
pub(super) struct Refusal(String);

impl Refusal {
    /// The whole sentence.
    pub(super) fn of(self, name: &str) -> Unusable {
        Unusable(format!("the store {name} {}", self.0))
    }
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Self(match error.sqlite_error_code() {
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => format!("cannot be opened: {NEEDS}"),
            Some(ErrorCode::ReadOnly) => format!("cannot be written: {NEEDS}"),
            Some(ErrorCode::DiskFull) => "cannot be written: there is no room left on its disk; make some".to_owned(),
            Some(ErrorCode::NotADatabase) => "is not a SQLite database: name another file in `store.url`".to_owned(),
            Some(ErrorCode::DatabaseCorrupt) => "is damaged: bring a copy back, or name another file in `store.url`".to_owned(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "is kept locked by another program: have it end its transaction".to_owned()
            }
            _ => format!("cannot be used: {error}"),
        })
    }
}

const NEEDS: &str = "it must be a file that the gateway's user may write, in a folder where it may make files";

/// Opens the file for writing, or makes it.
pub(super) fn open(path: &Path, patience: Duration) -> Result<Connection, Refusal> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    may_be_a_file(path)?;
    let mut connection = Connection::open_with_flags(plain(path), flags)?;
    connection.busy_timeout(patience)?;
    found(&connection)?.to_write().map_err(Refusal)?;
    write_ahead(&connection, patience)?;
    bring_up_to_date(&mut connection)?;
    Ok(connection)
}

fn may_be_a_file(path: &Path) -> Result<(), Refusal> {
    if path.is_dir() {
        return Err(Refusal("cannot be opened: it is a folder; name a file in it".to_owned()));
    }
    match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => Err(Refusal(format!("cannot be made: there is no folder {}; make it", folder.display()))),
        None => Ok(()),
    }
}

/// A name that begins with `file:` would be taken for an address.
fn plain(path: &Path) -> PathBuf {
    Path::new(".").join(path)
}

/// What is in the file. One with tables of any kind, and without ours, is somebody else's.
fn found(connection: &Connection) -> rusqlite::Result<Found> {
    let count = |name: &str| {
        connection.query_row("SELECT COUNT(*) FROM sqlite_master WHERE name LIKE ?1", [name], |row| row.get::<_, i64>(0))
    };
    if count(VERSION_TABLE)? == 0 {
        return Ok(if count("%")? == 0 { Found::Nothing } else { Found::Foreign });
    }
    let newest = format!("SELECT COALESCE(MAX(version), 0) FROM {VERSION_TABLE}");
    connection.query_row(&newest, [], |row| row.get(0)).map(Found::Version)
}

/// The file gets its log. Two who open it at once get in each other's way here, and nothing but trying again helps.
fn write_ahead(connection: &Connection, patience: Duration) -> Result<(), Refusal> {
    let begun = Instant::now();
    let mode = loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && begun.elapsed() < patience => {
                std::thread::park_timeout(Duration::from_millis(5));
            }
            other => break other?,
        }
    };
    if mode != "wal" {
        return Err(Refusal("is on a disk that cannot hold a write-ahead log: name a file on a local one".to_owned()));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.query_row(&format!("PRAGMA journal_size_limit = {LONGEST_LOG}"), [], |_| Ok(()))?;
    Ok(())
}

/// Makes the tables that are missing, and leaves a mark: whoever can write that can write rows.
fn bring_up_to_date(connection: &mut Connection) -> Result<(), Refusal> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version = found(&transaction)?.to_write().map_err(Refusal)?;
    transaction.execute_batch(&format!(
        "CREATE TABLE IF NOT EXISTS {VERSION_TABLE} (version INTEGER PRIMARY KEY, since INTEGER NOT NULL, opened INTEGER NOT NULL) STRICT"
    ))?;
    let now = Timestamp::now().as_microsecond();
    for (next, migration) in (1..).zip(MIGRATIONS).filter(|(next, _)| *next > version) {
        transaction.execute_batch(migration)?;
        transaction.execute(&format!("INSERT INTO {VERSION_TABLE} VALUES (?1, ?2, ?2)"), [next, now])?;
    }
    transaction.execute(&format!("UPDATE {VERSION_TABLE} SET opened = ?1 WHERE version = ?2"), [now, VERSION])?;
    Ok(transaction.commit()?)
}

/// Opens a file that is there, for reading.
pub(super) fn open_to_read(path: &Path, patience: Duration) -> Result<Connection, Refusal> {
    if !path.try_exists().unwrap_or(true) {
        return Err(Refusal("is not there: `toolgate serve` makes it".to_owned()));
    }
    may_be_a_file(path)?;
    let connection = connect_to_read(path, patience)?;
    found(&connection)?.to_read().map_err(Refusal)?;
    Ok(connection)
}

/// A file with a log needs files beside it, even to be read. Where they are not there and cannot be made, nobody writes it either, and the
/// file is all that there is.
fn connect_to_read(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(plain(path), flags)?;
    connection.busy_timeout(patience)?;
    match found(&connection) {
        Err(error) if lacks_its_files(&error) && !log_of(path).exists() => {
            let escaped = percent_encode(path.as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC);
            Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags | OpenFlags::SQLITE_OPEN_URI)
        }
        Err(error) => Err(error),
        Ok(_) => Ok(connection),
    }
}

fn lacks_its_files(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}
