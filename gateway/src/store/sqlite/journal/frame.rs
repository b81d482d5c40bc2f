//! The frames of a journal, as bytes: how rows are put into one, and how they are read again.
//!
//! A frame is a head (a mark, the pass, the length of the rows, a checksum of all that) and the rows, column by column. Before that, a frame was a
//! line of text and a row a line of JSON; what a gateway of that version left behind is still read.

use std::io;

use ring::digest::{SHA256, digest};

use super::super::line::Line;
use crate::provider::ids::hex;

const MARK: &[u8; 4] = b"ROW2";
const HEAD: usize = 16;

/// The mark of old, and how long its head was: the mark, the pass and the length in eight digits each, and 16 digits of a digest of the rows.
const OLD_MARK: &[u8] = b"rows ";
const OLD_HEAD: usize = "rows 00000000 00000000 0123456789abcdef\n".len();

/// Puts rows behind what is there, as one frame.
pub(super) fn put<'r>(pass: u32, rows: impl Iterator<Item = Line<'r>>, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + HEAD, 0);
    rows.for_each(|row| row.put(out));
    let (head, body) = out[start..].split_at_mut(HEAD);
    head.copy_from_slice(&head_of(pass, body));
}

/// The rows of the frames of one pass. A frame that is whole holds rows, or this is another version's journal: then nothing of it may be lost in
/// silence.
pub(super) fn rows(mut bytes: &[u8]) -> io::Result<Vec<Line<'_>>> {
    let (mut rows, mut first) = (Vec::new(), None);
    while let Some(frame) = Frame::at(bytes) {
        if *first.get_or_insert(frame.pass) != frame.pass {
            break;
        }
        frame.read(&mut rows)?;
        bytes = frame.rest;
    }
    Ok(rows)
}

/// Whether a file that begins like this is a journal.
pub(super) fn is_mark(beginning: &[u8]) -> bool {
    beginning.starts_with(MARK) || beginning.starts_with(OLD_MARK)
}

/// A frame that is whole.
struct Frame<'b> {
    pass: u32,
    rows: Rows<'b>,
    rest: &'b [u8],
}

enum Rows<'b> {
    Columns(&'b [u8]),
    Json(&'b [u8]),
}

impl<'b> Frame<'b> {
    fn at(bytes: &'b [u8]) -> Option<Self> {
        if bytes.starts_with(OLD_MARK) { Self::of_old_at(bytes) } else { Self::of_now_at(bytes) }
    }

    fn of_now_at(bytes: &'b [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let number = |at: usize| Some(u32::from_le_bytes(*head[at..].first_chunk()?));
        let (pass, length) = (number(4)?, number(8)?);
        let (body, rest) = rest.split_at_checked(length as usize)?;
        (*head == head_of(pass, body)).then_some(Self { pass, rows: Rows::Columns(body), rest })
    }

    fn of_old_at(bytes: &'b [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(OLD_HEAD)?;
        let number = |range: std::ops::Range<usize>| u32::from_str_radix(std::str::from_utf8(head.get(range)?).ok()?, 16).ok();
        let (pass, length) = (number(5..13)?, number(14..22)?);
        let (body, rest) = rest.split_at_checked(length as usize)?;
        let digest = hex(&digest(&SHA256, body).as_ref()[..8]);
        (head[23..39] == *digest.as_bytes()).then_some(Self { pass, rows: Rows::Json(body), rest })
    }

    fn read(&self, rows: &mut Vec<Line<'b>>) -> io::Result<()> {
        match self.rows {
            Rows::Json(body) => {
                for row in serde_json::Deserializer::from_slice(body).into_iter() {
                    rows.push(row?);
                }
            }
            Rows::Columns(mut body) => {
                while !body.is_empty() {
                    rows.push(Line::take(&mut body).ok_or(io::ErrorKind::InvalidData)?);
                }
            }
        }
        Ok(())
    }
}

fn head_of(pass: u32, body: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    let (said, checksum) = head.split_at_mut(HEAD - 4);
    for (part, bytes) in said.chunks_exact_mut(4).zip([*MARK, pass.to_le_bytes(), (body.len() as u32).to_le_bytes()]) {
        part.copy_from_slice(&bytes);
    }
    let mut sum = crc32fast::Hasher::new();
    sum.update(said);
    sum.update(body);
    checksum.copy_from_slice(&sum.finalize().to_le_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the version before wrote it.
    const OLD: &str = concat!(
        "rows 00000000 0000019d 16365ccc2de12b9a\n",
        r#"{"at":1764460800000000,"id":7,"trace":"0af7651916cd43dd8448eb211c80319c","round":1,"attempt":1,"key":"shop","#,
        r#""end_user":null,"model":"support","served":"support","provider":"openai","upstream_model":"gpt-4o-mini","tool":null,"#,
        r#""input_tokens":8,"cached_tokens":2,"cache_write_tokens":0,"output_tokens":5,"reasoning_tokens":3,"estimated":false,"#,
        r#""cost_nano_usd":600,"reported_nano_usd":null,"outcome":"ok","requests":1}"#,
        "\n\n\n",
    );

    #[test]
    fn what_the_version_before_wrote_is_read_as_what_is_written_now() {
        let old = rows(OLD.as_bytes()).unwrap();
        assert_eq!((old.len(), old[0].at, old[0].id), (1, 1_764_460_800_000_000, 7));
        let mut now = Vec::new();
        put(5, old.into_iter(), &mut now);
        assert_eq!(format!("{:?}", rows(&now).unwrap()), format!("{:?}", rows(OLD.as_bytes()).unwrap()));
        for changed in [OLD.replace(":600", ":601"), OLD.replace("00000000", "?0000000")] {
            assert!(rows(changed.as_bytes()).unwrap().is_empty(), "{changed}");
        }
    }

    #[test]
    fn a_frame_of_something_else_is_an_error_and_one_that_was_changed_is_none() {
        let body = [11, 0, 0];
        let mut frame = head_of(0, &body).to_vec();
        frame.extend(body);
        assert_eq!(rows(&frame).unwrap_err().kind(), io::ErrorKind::InvalidData);
        for at in 0..frame.len() {
            let mut changed = frame.clone();
            changed[at] ^= 1;
            assert!(rows(&changed).unwrap().is_empty(), "{at}");
        }
    }
}
