//! The tables of the store by version: what is to be done with what is found. How it is done is each database's business.

/// The one that this program works with. Each version is one file in `migrations`, for each database.
pub(super) const VERSION: i64 = 3;

/// Its name says whose it is, should others have tables beside it.
pub(super) const VERSION_TABLE: &str = "toolgate_schema";

/// The tables of the first version: where they are, and the version table is not, they are somebody else's.
#[cfg(feature = "postgres")]
pub(super) const TABLES: [&str; 2] = ["ledger", "carried"];

/// What is found in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing of ours, and nothing in the way.
    Nothing,
    /// Tables of somebody else, where ours would be.
    Foreign,
    /// Ours, of this version.
    Version(i64),
}

impl Found {
    /// From which version on it is to be brought up to date, to write it.
    ///
    /// # Errors
    /// It cannot be: the end of a sentence that begins with the store.
    pub(super) fn to_write(self) -> Result<i64, String> {
        match self {
            Self::Nothing => Ok(0),
            Self::Foreign => Err(FOREIGN.to_owned()),
            Self::Version(version) if version > VERSION => Err(newer(version)),
            Self::Version(version) => Ok(version),
        }
    }

    /// Whether it can be read.
    ///
    /// # Errors
    /// It cannot be: the end of a sentence that begins with the store.
    pub(super) fn to_read(self) -> Result<(), String> {
        match self {
            Self::Nothing => Err("holds no ledger yet: `toolgate serve` makes one".to_owned()),
            Self::Foreign => Err(FOREIGN.to_owned()),
            Self::Version(version) if version > VERSION => Err(newer(version)),
            Self::Version(version) if version < VERSION => Err(format!(
                "is of version {version}, this toolgate reads version {VERSION}: start this version's `toolgate serve` once, which brings it up to date"
            )),
            Self::Version(_) => Ok(()),
        }
    }
}

const FOREIGN: &str = "holds tables that are not toolgate's: name a database of its own in `store.url`";

fn newer(version: i64) -> String {
    format!(
        "is of version {version}, and this toolgate knows versions up to {VERSION}: use the newer toolgate that wrote it, or another store"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_made_brought_up_to_date_or_left_alone() {
        let table = [
            (Found::Nothing, Some(0), false),
            (Found::Foreign, None, false),
            (Found::Version(VERSION), Some(VERSION), true),
            (Found::Version(VERSION - 1), Some(VERSION - 1), false),
            (Found::Version(VERSION + 1), None, false),
        ];
        for (found, to_write, to_read) in table {
            assert_eq!(found.to_write().ok(), to_write, "{found:?}");
            assert_eq!(found.to_read().is_ok(), to_read, "{found:?}");
        }
    }
}
