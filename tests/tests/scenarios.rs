//! Every scenario, in every mode it speaks of, as a test of its own.

use std::path::Path;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use toolgate_tests::cases::{Case, cases};
use toolgate_tests::run::play;

/// The one test that is no scenario.
const WELL_FORMED: &str = "the_scenarios_are_well_formed";

fn main() {
    let mut arguments = Arguments::from_args();
    // Each case is a process of its own, and mostly waits.
    arguments.test_threads = arguments.test_threads.or(Some(16));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let only = arguments.filter.as_deref().filter(|filter| arguments.exact && *filter != WELL_FORMED);
    let trials = match cases(&folder, only) {
        Ok(cases) => std::iter::once(Trial::test(WELL_FORMED, {
            let cases = cases.clone();
            move || well_formed(&cases)
        }))
        .chain(cases.into_iter().map(|case| {
            Trial::test(case.name.clone(), {
                let case = case.clone();
                move || run(&case)
            })
            .with_ignored_flag(case.is_pending)
        }))
        .collect(),
        Err(fault) => vec![Trial::test(WELL_FORMED, move || Err(fault.into()))],
    };
    libtest_mimic::run(&arguments, trials).exit();
}

/// All the files that are not, at once.
fn well_formed(cases: &[Case]) -> Result<(), Failed> {
    let faults: Vec<String> =
        cases.iter().filter_map(|case| case.scenario(&[]).err().map(|fault| format!("{}: {fault}", case.name))).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
}

fn run(case: &Case) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let played = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), play(case)).await });
    match played {
        Ok(played) => played.map_err(Failed::from),
        Err(_) => Err(format!("{}: not over after a minute", case.file.display()).into()),
    }
}
