//! `br`, with windows of at most 16 MiB: the larger ones of a later draft are no content coding.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{Broken, Step};

/// The coding `br`.
pub(super) struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    has_begun: bool,
    is_over: bool,
}

impl Default for Brotli {
    fn default() -> Self {
        let (bytes, numbers, codes) = (StandardAlloc::default(), StandardAlloc::default(), StandardAlloc::default());
        Self { state: BrotliState::new_strict(bytes, numbers, codes), has_begun: false, is_over: false }
    }
}

impl Brotli {
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        if self.is_over {
            return Ok(Step::default());
        }
        self.has_begun |= !input.is_empty();
        let (mut read, mut written, mut total) = (0, 0, 0);
        let (mut left, mut room) = (input.len(), output.len());
        let (input_left, output_left) = (&mut left, &mut room);
        let state = &mut self.state;
        let result = BrotliDecompressStream(input_left, &mut read, input, output_left, &mut written, output, &mut total, state);
        match result {
            BrotliResult::ResultFailure => return Err(Broken),
            BrotliResult::ResultSuccess => self.is_over = true,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
        }
        Ok(Step { read, written })
    }

    pub(super) fn is_whole(&self) -> bool {
        self.is_over || !self.has_begun
    }
}
