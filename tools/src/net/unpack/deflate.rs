//! `deflate`: a zlib stream, as it is written down, or a bare one, as some servers send it. And the inflater that gzip uses too.

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

use super::{Broken, Step};

/// One deflate stream.
pub(super) struct Inflate {
    state: Box<InflateState>,
    /// It has come to its end.
    is_over: bool,
}

impl Inflate {
    pub(super) fn new(format: DataFormat) -> Self {
        Self { state: InflateState::new_boxed(format), is_over: false }
    }

    /// Nothing at all once it is over: what follows is not its business.
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        if self.is_over {
            return Ok(Step::default());
        }
        let result = inflate(&mut self.state, input, output, MZFlush::None);
        match result.status {
            Ok(status) => self.is_over = status == MZStatus::StreamEnd,
            // There was nothing to do.
            Err(MZError::Buf) => {}
            Err(_) => return Err(Broken),
        }
        Ok(Step { read: result.bytes_consumed, written: result.bytes_written })
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }
}

/// The coding `deflate`.
#[derive(Default)]
pub(super) struct Deflate {
    /// The first byte, while it is not known which of the two it begins.
    first: Option<u8>,
    inflate: Option<Inflate>,
}

impl Deflate {
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        match (&mut self.inflate, self.first, input) {
            (Some(inflate), _, _) => inflate.step(input, output),
            (None, _, []) => Ok(Step::default()),
            (None, None, [first, ..]) => {
                self.first = Some(*first);
                Ok(Step { read: 1, written: 0 })
            }
            (None, Some(first), [second, ..]) => {
                let mut inflate = Inflate::new(format_of(first, *second));
                inflate.step(&[first], &mut [])?;
                self.inflate.insert(inflate).step(input, output)
            }
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.inflate.as_ref().map_or(self.first.is_none(), Inflate::is_over)
    }
}

/// A zlib stream begins with two bytes that a bare one hardly ever does.
fn format_of(first: u8, second: u8) -> DataFormat {
    let is_zlib = first & 0x8f == 0x08 && u16::from_be_bytes([first, second]).is_multiple_of(31);
    if is_zlib { DataFormat::Zlib } else { DataFormat::Raw }
}
