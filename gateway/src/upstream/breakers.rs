//! The breakers of the whole process, kept by provider, address and upstream model: they outlive a reload, and a provider whose address was
//! put right begins anew. Only what is in trouble is kept, so that a call to a provider that works asks no lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::breaker::{Breaker, COOLDOWN, Change, MOST_FAILURES, Shown, Verdict};
use crate::targets::Target;
use crate::trace::Outcome;

/// How many are kept; of what is in trouble beyond that, nothing is known. Callers can name what they like behind `"*"`.
const MOST: usize = 1024;

/// Every breaker that is not as new.
#[derive(Debug)]
pub struct Breakers {
    troubled: AtomicUsize,
    kept: Mutex<HashMap<String, Kept>>,
    now: fn() -> Instant,
}

impl Default for Breakers {
    fn default() -> Self {
        Self { troubled: AtomicUsize::new(0), kept: Mutex::default(), now: Instant::now }
    }
}

#[derive(Debug)]
struct Kept {
    breaker: Breaker,
    labels: Labels,
}

/// A provider and the name of a model's entry, as metrics have them.
pub type Labels = (String, String);

/// The provider has failed too often in a row, and is not asked; to come again after this is worth a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resting(pub Duration);

/// A call that may be made. Dropped without a word, it has shown nothing; if it was the one that decides, the next one is.
#[derive(Debug)]
pub(super) struct Pass<'b> {
    breakers: &'b Breakers,
    target: &'b Target,
    is_probe: bool,
    is_over: bool,
}

impl Breakers {
    /// May this target be asked now?
    pub(super) fn enter<'b>(&'b self, target: &'b Target) -> Result<Pass<'b>, Resting> {
        let verdict = self.with(target, |breaker, now| breaker.ask(now)).unwrap_or(Verdict::Go);
        let pass = |is_probe| Pass { breakers: self, target, is_probe, is_over: false };
        match verdict {
            Verdict::Go => Ok(pass(false)),
            Verdict::Probe => Ok(pass(true)),
            Verdict::Rest(wait) => Err(Resting(wait)),
        }
    }

    /// Whether this target is not asked at the moment.
    pub(super) fn is_open(&self, target: &Target) -> bool {
        self.with(target, |breaker, now| breaker.is_open(now)).unwrap_or(false)
    }

    /// An answer that had begun has ended in this way.
    pub fn ended(&self, target: &Target, outcome: Outcome) {
        let shown = Shown::by(outcome);
        self.change(target, shown == Shown::Fails, |breaker, now| breaker.heard(shown, now));
    }

    /// How many upstream models are not asked at the moment, by provider and entry.
    pub fn open(&self) -> HashMap<Labels, u64> {
        let (mut open, now) = (HashMap::new(), (self.now)());
        let kept = self.kept.lock();
        for Kept { labels, .. } in kept.values().filter(|kept| kept.breaker.is_open(now)) {
            *open.entry(labels.clone()).or_default() += 1;
        }
        open
    }

    /// Looks at a breaker that is kept; `None`: it is as new.
    fn with<T>(&self, target: &Target, look: impl FnOnce(&mut Breaker, Instant) -> T) -> Option<T> {
        if self.troubled.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.kept.lock().get_mut(&place(target)).map(|kept| look(&mut kept.breaker, (self.now)()))
    }

    /// Changes a breaker, which is kept from now on if `keep` says so, and says in the log what that means.
    fn change(&self, target: &Target, keep: bool, change: impl FnOnce(&mut Breaker, Instant) -> Option<Change>) {
        if !keep && self.troubled.load(Ordering::Acquire) == 0 {
            return;
        }
        let (mut kept, now, place) = (self.kept.lock(), (self.now)(), place(target));
        if keep && !kept.contains_key(&place) {
            make_room(&mut kept, now);
            if kept.len() < MOST {
                let labels = (target.provider.name.to_string(), target.label.clone());
                kept.insert(place.clone(), Kept { breaker: Breaker::new(now), labels });
            }
        }
        let Some(entry) = kept.get_mut(&place) else { return };
        let changed = change(&mut entry.breaker, now);
        if entry.breaker.is_forgotten(now) {
            kept.remove(&place);
        }
        self.troubled.store(kept.len(), Ordering::Release);
        drop(kept);
        told(target, changed);
    }
}

impl Pass<'_> {
    /// Whether it is the one that decides.
    pub(super) fn is_probe(&self) -> bool {
        self.is_probe
    }

    /// The provider has begun to answer. How the answer ends is told by [`Breakers::ended`].
    pub(super) fn begun(mut self) {
        self.over(Shown::Works);
    }

    /// There is no answer, and this is why.
    pub(super) fn failed(mut self, outcome: Outcome) {
        self.over(Shown::by(outcome));
    }

    fn over(&mut self, shown: Shown) {
        self.is_over = true;
        match (self.is_probe, shown) {
            (true, _) => self.breakers.change(self.target, false, |breaker, now| breaker.probed(shown, now)),
            // That it begins is not that it ends: a provider that breaks off every answer must not look well in between.
            (false, Shown::Works | Shown::Nothing) => {}
            (false, Shown::Fails) => self.breakers.change(self.target, true, |breaker, now| breaker.heard(shown, now)),
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.is_probe && !self.is_over {
            self.over(Shown::Nothing);
        }
    }
}

/// What a breaker belongs to.
fn place(target: &Target) -> String {
    let url = &target.provider.base_url;
    format!("{}\0{}{}\0{}", target.provider.name, url.origin.authority(), url.path, target.upstream_model)
}

fn make_room(kept: &mut HashMap<String, Kept>, now: Instant) {
    if kept.len() >= MOST {
        kept.retain(|_, kept| !kept.breaker.is_forgotten(now));
    }
}

fn told(target: &Target, changed: Option<Change>) {
    let (provider, model) = (target.provider.name.as_str(), target.label.as_str());
    match changed {
        Some(Change::Opened) => {
            let pause = COOLDOWN.as_secs();
            tracing::warn!(
                provider,
                model,
                failures = MOST_FAILURES,
                pause,
                "a provider keeps failing and is not asked for a while"
            );
        }
        Some(Change::Closed) => tracing::info!(provider, model, "a provider that kept failing answers again"),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path;
    use std::sync::Arc;

    use toolgate_config::check::{Source, read};

    use super::*;
    use crate::targets::Targets;

    thread_local! {
        static CLOCK: Cell<Option<Instant>> = const { Cell::new(None) };
    }

    /// The time of this test, which stands still.
    fn clock() -> Instant {
        let now = CLOCK.get().unwrap_or_else(Instant::now);
        CLOCK.set(Some(now));
        now
    }

    fn wait(time: Duration) {
        CLOCK.set(Some(clock() + time));
    }

    fn breakers() -> Breakers {
        Breakers { now: clock, ..Breakers::default() }
    }

    fn target(model: &str) -> Arc<Target> {
        let file = r#"{ providers: { p: { kind: openai_compatible, base_url: "http://127.0.0.1:1" } }, models: { "*": { provider: p } } }"#;
        let config = read(&Source { path: Path::new("toolgate.yaml"), text: file, env: &|_| None }).unwrap();
        Arc::clone(Targets::of(&config, &config.model(model).unwrap()).current())
    }

    fn fail(breakers: &Breakers, target: &Target) {
        breakers.enter(target).unwrap().failed(Outcome::ServerError);
    }

    fn open(breakers: &Breakers, target: &Target) {
        (0..MOST_FAILURES).for_each(|_| fail(breakers, target));
    }

    fn rests(breakers: &Breakers, target: &Target) -> bool {
        breakers.enter(target).is_err()
    }

    #[test]
    fn each_upstream_model_has_its_own() {
        let (breakers, one, other) = (breakers(), target("one"), target("other"));
        open(&breakers, &one);
        assert!(rests(&breakers, &one) && !rests(&breakers, &other));
        assert_eq!(breakers.open(), HashMap::from([(("p".to_owned(), "*".to_owned()), 1)]));
    }

    #[test]
    fn one_call_tries_and_one_that_is_dropped_frees_its_place() {
        let (breakers, target) = (breakers(), target("m"));
        open(&breakers, &target);
        wait(COOLDOWN);
        let probe = breakers.enter(&target).unwrap();
        assert!(probe.is_probe() && rests(&breakers, &target));
        drop(probe);
        let probe = breakers.enter(&target).unwrap();
        assert!(probe.is_probe());
        probe.begun();
        assert!(!breakers.enter(&target).unwrap().is_probe());
        assert!(breakers.open().is_empty());
    }

    #[test]
    fn a_probe_that_fails_is_another_pause() {
        let (breakers, target) = (breakers(), target("m"));
        open(&breakers, &target);
        wait(COOLDOWN);
        breakers.enter(&target).unwrap().failed(Outcome::ConnectError);
        wait(COOLDOWN - Duration::from_millis(1));
        assert_eq!(breakers.enter(&target).err(), Some(Resting(Duration::from_millis(1))));
    }

    #[test]
    fn answers_that_begin_and_break_off_are_failures_too() {
        let (breakers, target) = (breakers(), target("m"));
        for _ in 0..MOST_FAILURES {
            breakers.enter(&target).unwrap().begun();
            breakers.ended(&target, Outcome::Cut);
        }
        assert!(rests(&breakers, &target));
    }

    #[test]
    fn an_answer_that_ends_well_ends_the_row() {
        let (breakers, target) = (breakers(), target("m"));
        (1..MOST_FAILURES).for_each(|_| fail(&breakers, &target));
        breakers.ended(&target, Outcome::Ok);
        assert_eq!(breakers.troubled.load(Ordering::Acquire), 0, "what is well is not kept");
        fail(&breakers, &target);
        assert!(!rests(&breakers, &target));
    }

    #[test]
    fn no_more_are_kept_than_fit_and_the_old_ones_go_first() {
        let breakers = breakers();
        let targets: Vec<_> = (0..=MOST).map(|number| target(&format!("m{number}"))).collect();
        targets.iter().for_each(|target| fail(&breakers, target));
        assert_eq!(breakers.kept.lock().len(), MOST);
        wait(Duration::from_secs(120));
        open(&breakers, &targets[MOST]);
        assert!(rests(&breakers, &targets[MOST]));
        assert_eq!(breakers.kept.lock().len(), 1);
    }
}
