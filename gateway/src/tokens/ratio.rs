//! How a provider counts, against how we estimate: what it reports of its prompts tells how far the estimate is off for its model.

use std::collections::HashMap;

use parking_lot::RwLock;

use crate::targets::Target;

/// The most models of which that is kept.
const MOST_MODELS: usize = 1024;

/// A ratio of one, in thousandths, and how far one may be off. What is further off is no tokenizer's doing.
const ONE: u64 = 1000;
const LEAST: u64 = 500;
const MOST: u64 = 2000;

/// How many prompts are as good as all.
const MEMORY: u64 = 16;

/// A prompt of fewer tokens says too little: what a provider frames it with is most of it.
const SHORTEST: u64 = 128;

/// The ratios, by provider and by the model's name there.
#[derive(Debug, Default)]
pub(super) struct Ratios(RwLock<HashMap<String, HashMap<String, Ratio>>>);

#[derive(Clone, Copy, Debug)]
struct Ratio {
    thousandths: u64,
    /// From how many prompts it was learnt.
    seen: u64,
}

impl Ratios {
    /// What an estimate of so many tokens comes to at this target.
    pub(super) fn applied(&self, target: &Target, estimate: u64) -> u64 {
        let ratio = self.find(target).map_or(ONE, |ratio| ratio.thousandths);
        estimate.saturating_mul(ratio).div_ceil(ONE)
    }

    /// Whether there is still something to learn of this target: `turn` is any number that grows with each prompt.
    pub(super) fn wants(&self, target: &Target, turn: u64) -> bool {
        turn.is_multiple_of(2 * MEMORY) || self.find(target).is_none_or(|ratio| ratio.seen < MEMORY)
    }

    /// A prompt that was estimated at so many tokens was reported to have had so many.
    pub(super) fn learn(&self, target: &Target, estimated: u64, reported: u64) {
        if estimated < SHORTEST {
            return;
        }
        let sample = (reported.saturating_mul(ONE) / estimated).clamp(LEAST, MOST);
        let mut ratios = self.0.write();
        let known: usize = ratios.values().map(HashMap::len).sum();
        let of_provider = ratios.entry(target.provider.name.as_str().to_owned()).or_default();
        if known >= MOST_MODELS && !of_provider.contains_key(&target.upstream_model) {
            return;
        }
        let ratio = of_provider.entry(target.upstream_model.clone()).or_insert(Ratio { thousandths: ONE, seen: 0 });
        ratio.seen = (ratio.seen + 1).min(MEMORY);
        ratio.thousandths = (ratio.thousandths * (ratio.seen - 1) + sample) / ratio.seen;
    }

    fn find(&self, target: &Target) -> Option<Ratio> {
        self.0.read().get(target.provider.name.as_str())?.get(&target.upstream_model).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tests::target;

    #[test]
    fn a_model_is_learnt_and_others_stay_as_they_are() {
        let (ratios, one, other) = (Ratios::default(), target("one"), target("other"));
        assert_eq!(ratios.applied(&one, 200), 200);
        ratios.learn(&one, 1000, 1250);
        assert_eq!((ratios.applied(&one, 200), ratios.applied(&other, 200)), (250, 200));
        ratios.learn(&one, 1000, 1350);
        assert_eq!(ratios.applied(&one, 200), 260);
    }

    #[test]
    fn what_is_learnt_is_smooth_and_bounded() {
        let (ratios, one) = (Ratios::default(), target("one"));
        ratios.learn(&one, SHORTEST - 1, 9000);
        assert_eq!(ratios.applied(&one, 1000), 1000, "too short a prompt says nothing");
        (0..50).for_each(|_| ratios.learn(&one, 1000, 1000));
        ratios.learn(&one, 1000, 50_000);
        assert_eq!(ratios.applied(&one, 1000), 1062, "one odd report of sixteen, and no more than twice");
        (0..500).for_each(|_| ratios.learn(&one, 1000, 0));
        assert!((500..530).contains(&ratios.applied(&one, 1000)));
        (0..500).for_each(|_| ratios.learn(&one, 1, u64::MAX));
        assert!((500..530).contains(&ratios.applied(&one, 1000)));
        (0..500).for_each(|_| ratios.learn(&one, u64::MAX, u64::MAX));
        assert!(ratios.applied(&one, u64::MAX) > 0);
    }

    #[test]
    fn the_first_prompts_are_all_wanted_and_then_few() {
        let (ratios, one) = (Ratios::default(), target("one"));
        assert!(ratios.wants(&one, 1));
        (0..MEMORY).for_each(|_| ratios.learn(&one, 1000, 1000));
        let wanted = (0..320).filter(|turn| ratios.wants(&one, *turn)).count();
        assert_eq!(wanted, 10);
    }

    #[test]
    fn no_more_models_are_kept_than_there_is_room_for() {
        let ratios = Ratios::default();
        (0..MOST_MODELS + 10).for_each(|at| ratios.learn(&target(&format!("m{at}")), 1000, 2000));
        assert_eq!(ratios.0.read().values().map(HashMap::len).sum::<usize>(), MOST_MODELS);
        assert_eq!(ratios.applied(&target("m0"), 100), 200);
        assert_eq!(ratios.applied(&target(&format!("m{MOST_MODELS}")), 100), 100);
    }
}
