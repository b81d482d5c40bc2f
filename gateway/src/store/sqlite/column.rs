//! What stands in one column of a row, as a journal keeps it. A number takes as many bytes as it needs, a text its length and itself.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// What stands in one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column<'r> {
    Nothing,
    Number(i64),
    Text(&'r str),
}

/// The byte in front of nothing, and of a text; in front of a number, how many bytes it has, which is never more than eight.
const NOTHING: u8 = 9;
const TEXT: u8 = 10;

impl<'r> Column<'r> {
    /// Writes it behind the others.
    pub(super) fn put(self, out: &mut Vec<u8>) {
        match self {
            Self::Nothing => out.push(NOTHING),
            Self::Number(number) => {
                let length = 8 - number.leading_zeros() as usize / 8;
                out.push(length as u8);
                out.extend_from_slice(&number.to_le_bytes()[..length]);
            }
            Self::Text(text) => {
                out.push(TEXT);
                out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Reads the next one. `None`: what stands there is none.
    pub(super) fn take(bytes: &mut &'r [u8]) -> Option<Self> {
        match *bytes.split_off_first()? {
            NOTHING => Some(Self::Nothing),
            TEXT => {
                let length = u32::from_le_bytes(*bytes.split_off(..4)?.as_array()?);
                std::str::from_utf8(bytes.split_off(..length as usize)?).ok().map(Self::Text)
            }
            length @ ..=8 => {
                let mut number = [0; 8];
                let length = usize::from(length);
                number[..length].copy_from_slice(bytes.split_off(..length)?);
                Some(Self::Number(i64::from_le_bytes(number)))
            }
            _ => None,
        }
    }

    /// Its number.
    pub(super) fn number<N: TryFrom<i64>>(self) -> Option<N> {
        if let Self::Number(number) = self { number.try_into().ok() } else { None }
    }

    /// Its text.
    pub(super) fn text(self) -> Option<&'r str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// What `read` makes of it, where anything stands there.
    pub(super) fn if_any<T>(self, read: impl FnOnce(Self) -> Option<T>) -> Option<Option<T>> {
        if self == Self::Nothing { Some(None) } else { read(self).map(Some) }
    }
}

impl From<Option<i64>> for Column<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Self::Nothing, Self::Number)
    }
}

impl<'r> From<Option<&'r str>> for Column<'r> {
    fn from(text: Option<&'r str>) -> Self {
        text.map_or(Self::Nothing, Self::Text)
    }
}

impl ToSql for Column<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Nothing => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_read_as_it_was_written_and_not_at_all_where_it_is_cut() {
        let numbers = [0, 1, 127, 255, 256, 65_535, 1 << 40, i64::MAX, i64::MIN, -1].map(Column::Number);
        let texts = ["", "shop", "ä\0…"].map(Column::Text);
        for column in numbers.into_iter().chain(texts).chain([Column::Nothing]) {
            let mut bytes = Vec::new();
            column.put(&mut bytes);
            let mut left = &bytes[..];
            assert_eq!((Column::take(&mut left), left), (Some(column), &[][..]));
            for cut in 0..bytes.len() {
                assert_eq!(Column::take(&mut &bytes[..cut]), None, "{column:?} {cut}");
            }
        }
        assert_eq!(Column::take(&mut &[11, 0, 0][..]), None);
    }
}
