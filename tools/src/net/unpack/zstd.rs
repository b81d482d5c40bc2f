//! `zstd`, with windows of at most 8 MiB: a content coding may not have larger ones.

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::{Broken, Step};

/// The logarithm of the largest window.
const LARGEST_WINDOW: u32 = 23;

/// How a frame begins.
const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How a frame begins that says nothing; the lowest half byte may be anything.
const SKIPPED: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

/// The coding `zstd`: one frame or several.
pub(super) struct Zstd {
    context: DCtx<'static>,
    /// How many bytes of a frame's mark have come: all of them while a frame is under way.
    marked: usize,
    mark: &'static [u8; 4],
}

impl Zstd {
    /// `None`: there is no memory for it.
    pub(super) fn new() -> Option<Self> {
        let mut context = DCtx::try_create()?;
        context.set_parameter(DParameter::WindowLogMax(LARGEST_WINDOW)).ok()?;
        Some(Self { context, marked: 0, mark: &FRAME })
    }

    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        input.iter().take(FRAME.len() - self.marked).try_for_each(|byte| self.check(*byte))?;
        let (mut input, mut output) = (InBuffer::around(input), OutBuffer::around(output));
        let left = self.context.decompress_stream(&mut output, &mut input).map_err(|_| Broken)?;
        // The frame is over, and all of it has come out.
        if left == 0 {
            self.marked = 0;
        }
        Ok(Step { read: input.pos(), written: output.pos() })
    }

    pub(super) fn is_whole(&self) -> bool {
        self.marked == 0
    }

    /// The forms of old, which the library may still know, are no content coding.
    fn check(&mut self, byte: u8) -> Result<(), Broken> {
        if self.marked == 0 {
            self.mark = if byte & 0xf0 == SKIPPED[0] { &SKIPPED } else { &FRAME };
        }
        let byte = if self.marked == 0 && self.mark == &SKIPPED { byte & 0xf0 } else { byte };
        let is_right = byte == self.mark[self.marked];
        self.marked += 1;
        if is_right { Ok(()) } else { Err(Broken) }
    }
}
