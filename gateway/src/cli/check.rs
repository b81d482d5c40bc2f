//! `check` and `schema`: the configuration, before it is used.

use clap::Args;
use toolgate_config::{Config, raw};

use super::{Failure, File, load, print};

#[derive(Debug, Args)]
pub(super) struct Check {
    #[command(flatten)]
    file: File,
}

pub(super) fn run(command: &Check) -> Result<(), Failure> {
    let config = match load(&command.file.config) {
        Err(Failure::Faults(faults)) => {
            faults.iter().for_each(|fault| print(&format!("{fault}\n")));
            return Err(Failure::FaultsFound);
        }
        loaded => loaded?,
    };
    print(&format!("{}: OK, {}\n", command.file.config.display(), counts(&config)));
    Ok(())
}

/// `2 providers, 1 model, 0 keys, 1 group, 3 tools`
fn counts(config: &Config) -> String {
    let models = config.models.named.len() + usize::from(config.models.any.is_some());
    let counted = [
        (config.providers.len(), "provider"),
        (models, "model"),
        (config.keys.iter().count(), "key"),
        (config.groups.len(), "group"),
        (config.tools.len(), "tool"),
    ];
    counted.map(|(count, noun)| format!("{count} {noun}{}", if count == 1 { "" } else { "s" })).join(", ")
}

/// The schema of the whole file.
pub(super) fn schema() -> Result<(), Failure> {
    print(&format!("{:#}\n", raw::schema()));
    Ok(())
}
