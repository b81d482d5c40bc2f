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
    use proptest::prelude::*;

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

    /// Prices and counts as they occur, and as large as they can be held.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![4 => 0..100_000_000u64, 1 => Just(0u64), 1 => any::<u64>()]
    }

    fn price() -> impl Strategy<Value = Price> {
        [number(), number(), number(), number()].prop_map(|[input, cached, write, output]| Price {
            input: PicoUsd(input),
            cached_input: PicoUsd(cached),
            cache_write: PicoUsd(write),
            output: PicoUsd(output),
        })
    }

    fn tokens() -> impl Strategy<Value = Billed> {
        let all = [number(), number(), number(), number()];
        all.prop_map(|[fresh, cached, cache_write, output]| Billed { fresh, cached, cache_write, output })
    }

    /// Each count beside its price.
    fn pairs(price: &Price, tokens: &Billed) -> [(u64, u64); 4] {
        [
            (tokens.fresh, price.input.0),
            (tokens.cached, price.cached_input.0),
            (tokens.cache_write, price.cache_write.0),
            (tokens.output, price.output.0),
        ]
    }

    proptest! {
        #[test]
        fn a_cost_is_the_nearest_whole_number_to_the_exact_one(price in price(), tokens in tokens()) {
            let exact = pairs(&price, &tokens).iter().try_fold(0u128, |sum, &(count, price)| sum.checked_add(u128::from(count) * u128::from(price)));
            let cost = u128::from(price.cost(&tokens).0);
            match exact {
                // 2 * |cost - exact / 1000| <= 1, and half of one goes up.
                Some(exact) if exact < u128::from(u64::MAX) * 1000 => {
                    let (twice_cost, twice_exact) = (2000 * cost, 2 * exact);
                    prop_assert!(twice_cost <= twice_exact + 1000 && twice_exact < twice_cost + 1000);
                }
                _ => prop_assert_eq!(cost, u128::from(u64::MAX)),
            }
        }

        #[test]
        fn whatever_a_price_is_called_it_costs_the_same(price in price(), tokens in tokens(), by in 0..4usize) {
            let mut turned = pairs(&price, &tokens);
            turned.rotate_left(by);
            let [fresh, cached, write, output] = turned;
            let other = Price { input: PicoUsd(fresh.1), cached_input: PicoUsd(cached.1), cache_write: PicoUsd(write.1), output: PicoUsd(output.1) };
            let counts = Billed { fresh: fresh.0, cached: cached.0, cache_write: write.0, output: output.0 };
            prop_assert_eq!(price.cost(&tokens), other.cost(&counts));
        }

        #[test]
        fn more_tokens_never_cost_less(price in price(), some in tokens(), more in tokens()) {
            let sum = Billed {
                fresh: some.fresh.saturating_add(more.fresh),
                cached: some.cached.saturating_add(more.cached),
                cache_write: some.cache_write.saturating_add(more.cache_write),
                output: some.output.saturating_add(more.output),
            };
            prop_assert!(price.cost(&sum) >= price.cost(&some));
            prop_assert_eq!(Price::FREE.cost(&sum), NanoUsd(0));
        }

        #[test]
        fn no_token_of_input_costs_more_than_the_dearest(price in price(), tokens in tokens()) {
            let dearest = Price { input: price.dearest_input(), ..price };
            let input = tokens.fresh.checked_add(tokens.cached).and_then(|sum| sum.checked_add(tokens.cache_write));
            prop_assume!(input.is_some());
            let all_fresh = Billed { fresh: input.unwrap_or_default(), output: tokens.output, ..Billed::default() };
            prop_assert!(dearest.cost(&all_fresh) >= price.cost(&tokens));
        }
    }
}
