//! What can be wrong with a file.

use std::time::Duration;

use rusqlite::Connection;
use toolgate_config::store::StoreUrl;

use super::child;
use super::house::{FOR_EVER, Folder, HASTE, eventually, ledger, row, rows_in, run};
use crate::store::database::{Asked, Numbered, Reading};
use crate::store::schema::VERSION;
use crate::store::sqlite::Sqlite;
use crate::store::{Ledger, PATIENCE, Row};

#[test]
fn a_file_that_cannot_be_used_is_left_as_it_is_and_the_sentence_says_why() {
    let folder = Folder::new();
    let database = |name: &str, statements: &str| {
        let path = folder.path(name);
        Connection::open(&path).unwrap().execute_batch(statements).unwrap();
        path
    };
    let text = folder.path("notes.txt");
    std::fs::write(&text, "These are notes, and quite a lot of them. ".repeat(100)).unwrap();
    let newer = folder.path("newer.db");
    run(async { ledger(&StoreUrl::Sqlite(newer.clone())).close().await });
    Connection::open(&newer).unwrap().execute_batch("INSERT INTO toolgate_schema VALUES (1000, 0, 0)").unwrap();
    let table = [
        (newer, "is of version 1000"),
        (text, "is not a SQLite database"),
        (database("foreign.db", "CREATE TABLE users (id)"), "holds tables that are not toolgate's"),
        (database("alike.db", "CREATE TABLE ledger (id)"), "holds tables that are not toolgate's"),
        (folder.path("none/toolgate.db"), "there is no folder"),
        (folder.path(""), "it is a folder"),
        ("/proc/toolgate.db".into(), "cannot be opened"),
    ];
    for (path, expected) in table {
        let before = std::fs::read(&path).ok();
        for unusable in [
            Ledger::open_with(&StoreUrl::Sqlite(path.clone()), FOR_EVER, HASTE).err().unwrap(),
            Reading::open(&StoreUrl::Sqlite(path.clone()), HASTE.busy).err().unwrap(),
        ] {
            let missing = before.is_none() && unusable.0.contains("is not there");
            assert!(unusable.0.contains(expected) || missing, "{path:?}: {}", unusable.0);
            assert!(unusable.0.starts_with(&format!("the store sqlite:{}", path.display())), "{}", unusable.0);
        }
        assert_eq!(std::fs::read(&path).ok(), before, "{path:?} was changed");
    }
}

#[test]
fn a_file_that_may_not_be_written_is_refused_and_can_be_read() {
    let folder = Folder::new();
    let path = folder.path("toolgate.db");
    run(async {
        let ledger = ledger(&StoreUrl::Sqlite(path.clone()));
        ledger.write(row());
        ledger.close().await;
    });
    assert!(!folder.path("toolgate.db-wal").exists(), "a closed store is one file");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
    std::fs::set_permissions(folder.path(""), std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    let told = child::as_nobody("opens_a_file", &path);
    std::fs::set_permissions(folder.path(""), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert!(told.contains("cannot be written: it must be a file that the gateway's user may write"), "{told}");
    assert!(told.contains("1 row is read"), "{told}");
}

#[test]
fn a_lock_of_somebody_else_delays_rows_and_loses_none() {
    let folder = Folder::new();
    let path = folder.path("toolgate.db");
    run(async {
        let ledger = Ledger::open_with(&StoreUrl::Sqlite(path.clone()), FOR_EVER, HASTE).unwrap();
        ledger.written(ledger.write(row())).await.unwrap();
        let somebody = Connection::open(&path).unwrap();
        somebody.execute_batch("BEGIN IMMEDIATE").unwrap();
        let ticket = ledger.write(row());
        let unusable = ledger.written(ticket).await.unwrap_err();
        assert!(unusable.0.contains("another program keeps it locked"), "{}", unusable.0);
        assert!(ledger.is_well().is_err(), "nobody is let in");
        assert!(ledger.sums(None).await.is_err(), "what cannot be counted is not told");
        somebody.execute_batch("COMMIT").unwrap();
        eventually("the row is written", async || ledger.written(ticket).await.is_ok()).await;
        ledger.is_well().unwrap();
        assert_eq!(rows_in(&ledger).await, 2);
        ledger.close().await;
    });
}

#[test]
fn a_store_that_stays_locked_does_not_keep_the_gateway_from_ending() {
    let folder = Folder::new();
    let path = folder.path("toolgate.db");
    run(async {
        let ledger = Ledger::open_with(&StoreUrl::Sqlite(path.clone()), FOR_EVER, HASTE).unwrap();
        let somebody = Connection::open(&path).unwrap();
        somebody.execute_batch("BEGIN IMMEDIATE").unwrap();
        let ticket = ledger.write(row());
        ledger.close().await;
        assert!(ledger.written(ticket).await.is_err());
    });
}

#[test]
fn whatever_the_database_refuses_waits_until_it_takes_it() {
    let folder = Folder::new();
    let path = folder.path("toolgate.db");
    run(async {
        let ledger = Ledger::open_with(&StoreUrl::Sqlite(path.clone()), FOR_EVER, HASTE).unwrap();
        let somebody = Connection::open(&path).unwrap();
        somebody.execute_batch("CREATE TRIGGER stop BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'not now'); END").unwrap();
        let tickets: Vec<_> = (0..5).map(|_| ledger.write(row())).collect();
        assert!(ledger.written(tickets[0]).await.unwrap_err().0.contains("not now"));
        assert!(ledger.is_well().unwrap_err().0.contains("not now"));
        somebody.execute_batch("DROP TRIGGER stop").unwrap();
        eventually("the rows are written", async || ledger.written(tickets[4]).await.is_ok()).await;
        ledger.is_well().unwrap();
        assert_eq!(rows_in(&ledger).await, 5);
        ledger.close().await;
    });
}

#[test]
fn a_full_disk_takes_all_or_nothing_of_a_batch() {
    let folder = Folder::new();
    let path = folder.path("toolgate.db");
    let mut database = Sqlite::open(&path, PATIENCE.busy).unwrap();
    let now = database_pages(&database, 1);
    // More than go into the journal.
    let rows: Vec<_> = (0..3000).map(|_| row()).collect();
    let trouble = database.append(&numbered(&rows)).unwrap_err();
    assert_eq!(trouble.0, "there is no room left on its disk");
    assert_eq!(rows_of(&path), 0);
    database_pages(&database, now + 3000);
    database.append(&numbered(&rows)).unwrap();
    assert_eq!(rows_of(&path), 3000);
}

fn numbered(rows: &[Row]) -> Vec<Numbered<'_>> {
    rows.iter().zip(1..).map(|(row, id)| Numbered { id, row }).collect()
}

#[test]
fn rows_of_a_load_are_read_at_once_and_each_once_wherever_they_are() {
    let folder = Folder::new();
    let path = folder.path("toolgate.db");
    let mut database = Sqlite::open(&path, PATIENCE.busy).unwrap();
    let rows: Vec<_> = (0..2500).map(|_| row()).collect();
    let numbered = numbered(&rows);
    for (upto, beside) in [(20, 20), (40, 40), (45, 0), (60, 15), (61, 0), (2000, 1939), (2500, 0)] {
        let seen = usize::try_from(rows_of(&path)).unwrap();
        database.append(&numbered[seen..upto]).unwrap();
        assert_eq!((rows_of(&path), in_table(&path)), (upto as u64, upto as u64 - beside), "{upto}");
    }
    database.append(&numbered[..30]).unwrap();
    assert_eq!((rows_of(&path), database.is_behind()), (2500, true), "rows that are written again are the same rows");
    database.catch_up().unwrap();
    assert_eq!((rows_of(&path), in_table(&path), database.is_behind()), (2500, 2500, false));
    database.close();
    let left: Vec<_> = std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["toolgate.db"], "a closed store is one file");
}

#[test]
fn what_a_gateway_left_in_its_journal_is_brought_in_by_the_next_one() {
    let folder = Folder::new();
    let path = folder.path("toolgate.db");
    let rows: Vec<_> = (0..20).map(|_| row()).collect();
    let mut database = Sqlite::open(&path, PATIENCE.busy).unwrap();
    database.append(&numbered(&rows)).unwrap();
    let other = Sqlite::open(&path, PATIENCE.busy).unwrap();
    assert_eq!((rows_of(&path), in_table(&path)), (20, 0), "its gateway is still there");
    drop((database, other));
    assert_eq!((rows_of(&path), in_table(&path)), (20, 0));
    Sqlite::open(&path, PATIENCE.busy).unwrap().close();
    assert_eq!((rows_of(&path), in_table(&path)), (20, 20));
}

#[test]
fn rows_that_are_safe_already_wait_behind_a_lock_and_nobody_is_let_in() {
    let folder = Folder::new();
    let path = folder.path("toolgate.db");
    run(async {
        let ledger = Ledger::open_with(&StoreUrl::Sqlite(path.clone()), FOR_EVER, HASTE).unwrap();
        ledger.written(ledger.write(row())).await.unwrap();
        let somebody = Connection::open(&path).unwrap();
        somebody.execute_batch("BEGIN IMMEDIATE").unwrap();
        // The first row alone would wait for the lock.
        let tickets: Vec<_> = (0..100).map(|_| ledger.write(row())).collect();
        eventually("the lock is noticed", async || ledger.is_well().is_err()).await;
        somebody.execute_batch("COMMIT").unwrap();
        eventually("the rows are written", async || ledger.written(tickets[99]).await.is_ok()).await;
        eventually("the store is well", async || ledger.is_well().is_ok()).await;
        assert_eq!(rows_in(&ledger).await, 101);
        ledger.close().await;
    });
}

fn in_table(path: &std::path::Path) -> u64 {
    let count: i64 = Connection::open(path).unwrap().query_row("SELECT COUNT(*) FROM ledger", [], |row| row.get(0)).unwrap();
    count.try_into().unwrap()
}

/// Allows the file so many pages, and not fewer than it has. Gives how many that are.
fn database_pages(database: &Sqlite, pages: u32) -> u32 {
    database.connection().query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| row.get(0)).unwrap()
}

fn rows_of(path: &std::path::Path) -> u64 {
    let mut reading = Reading::open(&StoreUrl::Sqlite(path.to_owned()), PATIENCE.busy).unwrap().unwrap();
    reading.sums(&Asked { since: None, of: None }).unwrap().iter().map(|sum| sum.calls).sum()
}

#[test]
fn an_end_user_is_looked_up_and_not_searched_for() {
    let folder = Folder::new();
    let database = Sqlite::open(&folder.path("toolgate.db"), PATIENCE.busy).unwrap();
    let statement = format!("EXPLAIN QUERY PLAN {}", *crate::store::sqlite::ROWS_OF_USER);
    let plan: String = database.connection().query_row(&statement, (0, "shop", "ann"), |row| row.get(3)).unwrap();
    assert!(plan.contains("ledger_users (key=? AND end_user=? AND at>?)"), "{plan}");
}

#[test]
fn the_version_is_written_once() {
    let folder = Folder::new();
    let path = folder.path("toolgate.db");
    for _ in 0..2 {
        Sqlite::open(&path, PATIENCE.busy).unwrap().close();
    }
    let versions: Vec<i64> = {
        let connection = Connection::open(&path).unwrap();
        let mut statement = connection.prepare("SELECT version FROM toolgate_schema").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(versions, (1..=VERSION).collect::<Vec<_>>());
}

#[test]
fn case_31_what_was_told_to_be_written_is_there_after_a_kill() {
    let folder = Folder::new();
    for round in 0..5 {
        let path = folder.path(&format!("{round}.db"));
        let told = child::killed("writes_until_it_is_killed", &path, Duration::from_millis(300));
        assert!(told > 0, "nothing was written before the kill");
        assert!(rows_of(&path) >= told, "{} rows of {told} that were told to be written", rows_of(&path));
    }
}
