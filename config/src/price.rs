//! What tokens cost, and what a call of a model costs by it.

use crate::money::{NanoUsd, PicoUsd};

/// The price of a model's tokens, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Input that the provider had not cached.
    pub input: PicoUsd,
    /// Input that it had.
    pub cached_input: PicoUsd,
    /// Input that it put into its cache.
    pub cache_write: PicoUsd,
    /// Output, reasoning included.
    pub output: PicoUsd,
}

/// The tokens of one call, each counted once, by what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Billed {
    /// Input at the full price.
    pub fresh: u64,
    /// Input read from the provider's cache.
    pub cached: u64,
    /// Input written to it.
    pub cache_write: u64,
    /// Output, reasoning included.
    pub output: u64,
}

impl Billed {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.fresh.saturating_add(self.cached).saturating_add(self.cache_write).saturating_add(self.output)
    }
}

impl Price {
    /// Nothing: `price: free`.
    pub const FREE: Self = Self { input: PicoUsd(0), cached_input: PicoUsd(0), cache_write: PicoUsd(0), output: PicoUsd(0) };

    /// What a call costs: summed exactly, then rounded once, half up.
    pub fn cost(&self, tokens: &Billed) -> NanoUsd {
        let of = |count: u64, price: PicoUsd| u128::from(count) * u128::from(price.0);
        let pico = of(tokens.fresh, self.input)
            .saturating_add(of(tokens.cached, self.cached_input))
            .saturating_add(of(tokens.cache_write, self.cache_write))
            .saturating_add(of(tokens.output, self.output));
        NanoUsd(u64::try_from(pico.saturating_add(500) / 1000).unwrap_or(u64::MAX))
    }

    /// The dearest that a token of input can be.
    pub fn dearest_input(&self) -> PicoUsd {
        self.input.max(self.cached_input).max(self.cache_write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_rounded_once_and_half_up() {
        let price =
            Price { input: PicoUsd(150_000), cached_input: PicoUsd(75_000), cache_write: PicoUsd(1), output: PicoUsd(499) };
        let table = [
            (Billed { fresh: 1, ..Billed::default() }, 150),
            (Billed { cached: 1, ..Billed::default() }, 75),
            (Billed { output: 1, ..Billed::default() }, 0),
            (Billed { output: 1, cache_write: 1, ..Billed::default() }, 1),
            (Billed { output: 3, ..Billed::default() }, 1),
            (Billed { fresh: u64::MAX, cached: u64::MAX, cache_write: u64::MAX, output: u64::MAX }, u64::MAX),
        ];
        for (tokens, nano) in table {
            assert_eq!(price.cost(&tokens), NanoUsd(nano), "{tokens:?}");
        }
    }
}
