//! Rows that are safe before they are in the table. A commit of the database writes whole pages and waits for the disk twice; under load most of
//! what the ledger costs is that. There, batches go first into a file beside the database, each by one write that returns when it is on the disk,
//! and many of them later into the table together.
//!
//! The file has a fixed length. Each batch is a frame: a line with the pass, the length and a digest, then a row a line, as JSON. When all rows
//! are in the table, the next pass begins at the front. Whoever reads takes frames of one pass until one is not whole. A file that nobody keeps
//! locked was left by a gateway that did not end well: whoever opens the database next brings its rows into the table.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};

use super::line::Line;
use crate::provider::ids::hex;
use crate::store::database::Numbered;

/// How long the file is, in bytes.
const LENGTH: usize = 512 * 1024;
/// What is between the database's name and a number of chance in the name of a journal.
const INFIX: &str = ".rows-";
/// The line before the rows of a frame: `rows`, the pass, the length of the rows, and 16 digits of their digest.
const HEAD: usize = "rows 00000000 00000000 0123456789abcdef\n".len();

/// The journal of one gateway.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    pass: u32,
    /// Where the next frame goes.
    end: usize,
    frame: Vec<u8>,
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
        let made = Self { file, path, pass: 0, end: 0, frame: Vec::new() };
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
        self.frame.clear();
        self.frame.resize(HEAD, 0);
        for row in rows {
            serde_json::to_writer(&mut self.frame, &Line::of(row))?;
            self.frame.push(b'\n');
        }
        if self.end + self.frame.len() > LENGTH {
            return Ok(false);
        }
        let (head, body) = self.frame.split_at_mut(HEAD);
        head.copy_from_slice(head_of(self.pass, body).as_bytes());
        self.file.write_all_at(&self.frame, self.end as u64)?;
        self.end += self.frame.len();
        Ok(true)
    }

    /// All rows are in the table: nobody reads them here any more, for they may be dropped there.
    ///
    /// # Errors
    /// They are still here.
    pub(super) fn begin_again(&mut self) -> io::Result<()> {
        self.file.write_all_at(b"\n", 0)?;
        (self.pass, self.end) = (self.pass.wrapping_add(1), 0);
        Ok(())
    }

    /// Drops the file.
    pub(super) fn remove(self) {
        remove(&self.path);
    }
}

/// The rows of all journals beside a database, some of which may be in its table as well.
///
/// # Errors
/// One of them cannot be read: what is in it is not known, and that is not nothing.
pub(super) fn rows_beside(database: &Path) -> io::Result<Vec<Line<'static>>> {
    let mut rows = Vec::new();
    for path in beside(database) {
        let file = File::open(path).map(Some).or_else(|error| gone(error, None))?;
        if let Some(file) = file.filter(|file| is_ours(file).unwrap_or(true)) {
            rows.extend(lines(&file)?);
        }
    }
    Ok(rows)
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
        take(&lines(&file)?)?;
        remove(&path);
    }
    Ok(())
}

/// Whether a file is a journal, or one that was not even begun: a gateway may die while it makes one.
fn is_ours(file: &File) -> io::Result<bool> {
    let mut beginning = [0; 5];
    let length = file.read_at(&mut beginning, 0)?;
    Ok(length == 0 || beginning[0] == b'\n' || &beginning == b"rows ")
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

fn head_of(pass: u32, body: &[u8]) -> String {
    let digest = digest(&SHA256, body);
    format!("rows {pass:08x} {:08x} {}\n", body.len(), hex(&digest.as_ref()[..8]))
}

/// The rows of the frames of one pass.
fn lines(file: &File) -> io::Result<Vec<Line<'static>>> {
    let mut bytes = vec![0; LENGTH];
    let mut length = 0;
    while length < LENGTH {
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    frames(&bytes[..length])
}

/// A frame that is whole holds rows, or this is another version's journal: then nothing of it may be lost in silence.
fn frames(mut bytes: &[u8]) -> io::Result<Vec<Line<'static>>> {
    let (mut lines, mut first) = (Vec::new(), None);
    while let Some((pass, body, rest)) = frame(bytes) {
        if *first.get_or_insert(pass) != pass {
            break;
        }
        for line in serde_json::Deserializer::from_slice(body).into_iter::<Line<'static>>() {
            lines.push(line?);
        }
        bytes = rest;
    }
    Ok(lines)
}

fn frame(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let hex = |range: std::ops::Range<usize>| u32::from_str_radix(std::str::from_utf8(head.get(range)?).ok()?, 16).ok();
    let (pass, length) = (hex(5..13)?, hex(14..22)?);
    let (body, rest) = rest.split_at_checked(length as usize)?;
    (head == head_of(pass, body).as_bytes()).then_some((pass, body, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Row;
    use crate::store::tests::house::{Folder, row};

    fn ids(lines: &[Line<'_>]) -> Vec<i64> {
        lines.iter().map(|line| line.id).collect()
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
        assert!(rows_beside(&database).unwrap().is_empty());
        assert!(append(&mut journal, 0..3) && append(&mut journal, 3..5));
        assert_eq!(ids(&rows_beside(&database).unwrap()), [0, 1, 2, 3, 4]);
        let end = journal.end as u64;
        assert!(append(&mut journal, 5..7));
        journal.file.write_all_at(b"?", end + HEAD as u64 + 9).unwrap();
        assert_eq!(ids(&rows_beside(&database).unwrap()), [0, 1, 2, 3, 4]);
        journal.begin_again().unwrap();
        assert!(rows_beside(&database).unwrap().is_empty());
        assert!(append(&mut journal, 7..8));
        assert_eq!(ids(&rows_beside(&database).unwrap()), [7]);
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
            ends.push(journal.end);
        }
        let bytes = std::fs::read(&journal.path).unwrap();
        for cut in 0..=journal.end {
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            assert_eq!(frames(&bytes[..cut]).unwrap().len(), whole, "{cut}");
        }
    }

    #[test]
    fn what_is_full_says_so_and_keeps_what_it_has() {
        let folder = Folder::new();
        let database = folder.path("toolgate.db");
        let mut journal = Journal::open(&database).unwrap();
        let taken = (0..).take_while(|at| append(&mut journal, at * 100..at * 100 + 100)).count();
        assert!(taken > 3, "{taken}");
        assert_eq!(rows_beside(&database).unwrap().len(), taken * 100);
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
