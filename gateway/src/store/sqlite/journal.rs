//! Rows that are safe before they are in the table. A commit of the database writes whole pages and waits for the disk twice; under load most of
//! what the ledger costs is that. There, batches go first into a file beside the database, each by one write that returns when it is on the disk,
//! and many of them later into the table together.
//!
//! The file has a fixed length, and holds frames of rows (`frame`), one a batch. When all rows are in the table, the next pass begins at the
//! front. Whoever reads takes frames of one pass until one is not whole. A file that nobody keeps locked was left by a gateway that did not end
//! well: whoever opens the database next brings its rows into the table.

mod frame;

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::line::Line;
use crate::store::database::Numbered;

/// How long the file is, in bytes.
const LENGTH: usize = 512 * 1024;
/// What is between the database's name and a number of chance in the name of a journal.
const INFIX: &str = ".rows-";

/// The journal of one gateway.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    pass: u32,
    /// What is in the file of this pass.
    frames: Vec<u8>,
    /// How many rows that are.
    rows: usize,
}

impl Journal {
    /// Makes one beside the database.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn open(database: &Path) -> io::Result<Self> {
        let mut name = database.as_os_str().to_owned();
        name.push(format!("{INFIX}{:016x}", RandomState::new().hash_one("journal")));
        let path = PathBuf::from(name);
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_DSYNC).open(&path)?;
        let made = Self { file, path, pass: 0, frames: Vec::new(), rows: 0 };
        match made.prepare(database) {
            Ok(()) => Ok(made),
            Err(error) => {
                made.remove();
                Err(error)
            }
        }
    }

    fn prepare(&self, database: &Path) -> io::Result<()> {
        self.file.try_lock()?;
        // Another gateway may have taken it for one that was left behind, before it was locked.
        if std::fs::metadata(&self.path)?.ino() != self.file.metadata()?.ino() {
            return Err(io::Error::other("another file is in its place"));
        }
        // Written over, a file costs its disk less than written on.
        self.file.write_all_at(&vec![b'\n'; LENGTH], 0)?;
        File::open(folder_of(database))?.sync_all()
    }

    /// Puts rows behind the others; when this returns they are on the disk. `false`: there is no room for them.
    ///
    /// # Errors
    /// They are not there.
    pub(super) fn append(&mut self, rows: &[Numbered<'_>]) -> io::Result<bool> {
        let end = self.frames.len();
        frame::put(self.pass, rows.iter().map(Line::of), &mut self.frames);
        let written = self.write_from(end);
        if let Ok(true) = written {
            self.rows += rows.len();
        } else {
            self.frames.truncate(end);
        }
        written
    }

    fn write_from(&self, at: usize) -> io::Result<bool> {
        if self.frames.len() > LENGTH {
            return Ok(false);
        }
        self.file.write_all_at(&self.frames[at..], at as u64)?;
        Ok(true)
    }

    /// How many rows are in it.
    pub(super) fn count(&self) -> usize {
        self.rows
    }

    /// The rows that are in it.
    pub(super) fn rows(&self) -> io::Result<Vec<Line<'_>>> {
        frame::rows(&self.frames)
    }

    /// All rows are in the table: nobody reads them here any more, for they may be dropped there.
    ///
    /// # Errors
    /// They are still here.
    pub(super) fn begin_again(&mut self) -> io::Result<()> {
        self.file.write_all_at(b"\n", 0)?;
        (self.pass, self.rows) = (self.pass.wrapping_add(1), 0);
        self.frames.clear();
        Ok(())
    }

    /// Drops the file.
    pub(super) fn remove(self) {
        remove(&self.path);
    }
}

/// What was in a journal when it was read.
pub(super) struct Contents(Vec<u8>);

impl Contents {
    /// Its rows.
    ///
    /// # Errors
    /// It holds something else.
    pub(super) fn rows(&self) -> io::Result<Vec<Line<'_>>> {
        frame::rows(&self.0)
    }
}

/// What is in the journals beside a database; some of their rows may be in its table as well.
///
/// # Errors
/// One of them cannot be read: what is in it is not known, and that is not nothing.
pub(super) fn all_beside(database: &Path) -> io::Result<Vec<Contents>> {
    let mut all = Vec::new();
    for path in beside(database) {
        let file = File::open(path).map(Some).or_else(|error| gone(error, None))?;
        if let Some(file) = file.filter(|file| is_ours(file).unwrap_or(true)) {
            all.push(contents(&file)?);
        }
    }
    Ok(all)
}

/// Gives the rows of each journal that a gateway has left behind to `take`, and drops those whose rows were taken.
///
/// # Errors
/// That of `take`, or a journal cannot be read.
pub(super) fn bring_in<E: From<io::Error>>(database: &Path, mut take: impl FnMut(&[Line<'_>]) -> Result<(), E>) -> Result<(), E> {
    for path in beside(database) {
        let Some(file) = File::open(&path).map(Some).or_else(|error| gone(error, None))? else { continue };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        if !is_ours(&file)? {
            tracing::warn!(file = %path.display(), "this is no journal of a ledger, whatever its name: it is left alone");
            continue;
        }
        take(&contents(&file)?.rows()?)?;
        remove(&path);
    }
    Ok(())
}

/// Whether a file is a journal, or one that was not even begun: a gateway may die while it makes one.
fn is_ours(file: &File) -> io::Result<bool> {
    let mut beginning = [0; 5];
    let length = file.read_at(&mut beginning, 0)?;
    Ok(length == 0 || beginning[0] == b'\n' || frame::is_mark(&beginning[..length]))
}

fn beside(database: &Path) -> Vec<PathBuf> {
    let mut prefix: OsString = database.file_name().unwrap_or_default().to_owned();
    prefix.push(INFIX);
    let folder = folder_of(database);
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let ours = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_encoded_bytes()));
    ours.map(|entry| entry.path()).collect()
}

fn folder_of(database: &Path) -> &Path {
    database.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file that is there no more has nothing to tell.
fn gone<T>(error: io::Error, otherwise: T) -> io::Result<T> {
    if error.kind() == io::ErrorKind::NotFound { Ok(otherwise) } else { Err(error) }
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path).or_else(|error| gone(error, ())) {
        tracing::warn!(file = %path.display(), %error, "a journal of the ledger stays; its rows are in the ledger");
    }
}

fn contents(file: &File) -> io::Result<Contents> {
    let mut bytes = vec![0; LENGTH];
    let mut length = 0;
    while length < LENGTH {
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    bytes.truncate(length);
    Ok(Contents(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Row;
    use crate::store::tests::house::{Folder, row};

    fn ids(lines: &[Line<'_>]) -> Vec<i64> {
        lines.iter().map(|line| line.id).collect()
    }

    fn ids_beside(database: &Path) -> Vec<i64> {
        all_beside(database).unwrap().iter().flat_map(|contents| ids(&contents.rows().unwrap())).collect()
    }

    fn append(journal: &mut Journal, numbers: std::ops::Range<i64>) -> bool {
        let rows: Vec<(i64, Row)> = numbers.map(|id| (id, row())).collect();
        journal.append(&rows.iter().map(|(id, row)| Numbered { id: *id, row }).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn rows_are_read_until_a_frame_is_not_whole_or_of_another_pass() {
        let folder = Folder::new();
        let database = folder.path("toolgate.db");
        let mut journal = Journal::open(&database).unwrap();
        assert!(ids_beside(&database).is_empty());
        assert!(append(&mut journal, 0..3) && append(&mut journal, 3..5));
        assert_eq!(ids_beside(&database), [0, 1, 2, 3, 4]);
        let end = journal.frames.len() as u64;
        assert!(append(&mut journal, 5..7));
        journal.file.write_all_at(b"?", end + 40).unwrap();
        assert_eq!(ids_beside(&database), [0, 1, 2, 3, 4]);
        journal.begin_again().unwrap();
        assert!(ids_beside(&database).is_empty());
        assert!(append(&mut journal, 7..8));
        assert_eq!(ids_beside(&database), [7]);
        journal.remove();
        assert!(beside(&database).is_empty());
    }

    #[test]
    fn every_cut_of_a_journal_gives_the_whole_frames_before_it() {
        let folder = Folder::new();
        let mut journal = Journal::open(&folder.path("toolgate.db")).unwrap();
        let mut ends = vec![0];
        for id in 0..3 {
            append(&mut journal, id..id + 1);
            ends.push(journal.frames.len());
        }
        let bytes = std::fs::read(&journal.path).unwrap();
        for cut in 0..=journal.frames.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            assert_eq!(frame::rows(&bytes[..cut]).unwrap().len(), whole, "{cut}");
        }
    }

    #[test]
    fn what_is_full_says_so_and_keeps_what_it_has() {
        let folder = Folder::new();
        let database = folder.path("toolgate.db");
        let mut journal = Journal::open(&database).unwrap();
        let taken = (0..).take_while(|at| append(&mut journal, at * 100..at * 100 + 100)).count();
        assert!(taken > 3, "{taken}");
        assert_eq!(ids_beside(&database).len(), taken * 100);
    }

    #[test]
    fn a_journal_is_brought_in_when_its_gateway_is_gone() {
        let folder = Folder::new();
        let database = folder.path("toolgate.db");
        let mut journal = Journal::open(&database).unwrap();
        append(&mut journal, 0..3);
        let brought = || {
            let mut brought = Vec::new();
            let take = |lines: &[Line<'_>]| {
                brought.extend(ids(lines));
                io::Result::Ok(())
            };
            bring_in(&database, take).unwrap();
            brought
        };
        assert!(brought().is_empty(), "it is locked");
        drop(journal);
        assert!(bring_in(&database, |_| Err(io::Error::other("no"))).is_err());
        assert_eq!(brought(), [0, 1, 2]);
        assert!(beside(&database).is_empty());
    }
}
