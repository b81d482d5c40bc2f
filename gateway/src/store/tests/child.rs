//! Other processes: this test program again, with one of the tests below, which do nothing unless they are named.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use toolgate_config::store::StoreUrl;

use super::house::{FOR_EVER, ledger, row, run};
use crate::store::database::{Asked, Reading};
use crate::store::{Ledger, PATIENCE};

const PATH: &str = "TOOLGATE_TEST_STORE";

/// Runs a child as a user who may write nothing; gives what it prints.
pub(super) fn as_nobody(test: &str, path: &Path) -> String {
    // The program may be in a folder that nobody else may look into: it is handed over open.
    let run_as = r#"exec setpriv --reuid=65534 --regid=65534 --clear-groups /proc/self/fd/3 "$@" 3<"$0""#;
    let plain = r#"exec "$0" "$@""#;
    let is_root = std::fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", if is_root { run_as } else { plain }]).arg(std::env::current_exe().unwrap());
    let output = command.args(arguments(test)).env(PATH, path).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs a child that prints a dot for each row, and kills it some time after the first one. Gives the number of dots.
pub(super) fn killed(test: &str, path: &Path, after: Duration) -> u64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut child = command.args(arguments(test)).env(PATH, path).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut told = Vec::new();
    while !told.contains(&b'#') {
        let mut piece = [0; 4096];
        let length = stdout.read(&mut piece).unwrap();
        assert!(length > 0, "the child has ended: {}", String::from_utf8_lossy(&told));
        told.extend_from_slice(&piece[..length]);
    }
    std::thread::park_timeout(after);
    child.kill().unwrap();
    child.wait().unwrap();
    stdout.read_to_end(&mut told).unwrap();
    told.iter().filter(|byte| **byte == b'#').count() as u64
}

fn arguments(test: &str) -> [String; 4] {
    let module = module_path!().split_once("::").map_or("", |(_, module)| module);
    ["--exact".to_owned(), format!("{module}::{test}"), "--ignored".to_owned(), "--nocapture".to_owned()]
}

fn path() -> Option<PathBuf> {
    std::env::var_os(PATH).map(Into::into)
}

#[test]
#[ignore = "a child of another test"]
fn opens_a_file() {
    let Some(path) = path() else { return };
    let url = StoreUrl::Sqlite(path);
    println!("{:?}", Ledger::open_with(&url, FOR_EVER, PATIENCE).err());
    let mut reading = Reading::open(&url, PATIENCE.busy).unwrap().unwrap();
    let sums = reading.sums(&Asked { since: None, of: None }).unwrap();
    println!("{} row is read", sums.iter().map(|sum| sum.calls).sum::<u64>());
}

#[test]
#[ignore = "a child of another test"]
fn writes_until_it_is_killed() {
    let Some(path) = path() else { return };
    run(async {
        let ledger = Arc::new(ledger(&StoreUrl::Sqlite(path)));
        let writer = |ledger: Arc<Ledger>| async move {
            loop {
                ledger.written(ledger.write(row())).await.unwrap();
                // One write to the pipe, and nothing kept back.
                std::io::Write::write_all(&mut std::io::stdout().lock(), b"#\n").unwrap();
            }
        };
        futures_util::future::join_all((0..16).map(|_| tokio::spawn(writer(Arc::clone(&ledger))))).await;
    });
}
