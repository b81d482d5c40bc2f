//! The life of a server's process, from its start until nothing of it is left.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, ChildStderr};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use super::super::flag::Flag;
use super::stderr::Log;

/// How long a process has to leave after its input has ended, and again after it was told to.
const GRACE: Duration = Duration::from_secs(2);

/// What a process has written before it left is read for so long, where somebody else holds its output open.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// How often is looked whether what it has left behind is gone.
const LOOK: Duration = Duration::from_millis(20);

/// A running process and its group.
#[derive(Debug)]
pub(in crate::mcp) struct Process {
    leave: Flag,
    life: JoinHandle<()>,
}

impl Process {
    /// Watches over the process: `over` is raised when it leaves.
    pub(super) fn new(child: Child, stderr: ChildStderr, log: Log, over: Flag) -> Self {
        let leave = Flag::new();
        // Owned by this value, which waits for it; if it is dropped instead, the process is killed with the task.
        let life = tokio::spawn(live(child, stderr, log, over, leave.clone()));
        Self { leave, life }
    }

    /// Ends it and all that it has started; its input should be closed by now.
    pub(in crate::mcp) async fn close(self) {
        self.leave.raise();
        let _ = self.life.await;
    }
}

async fn live(mut child: Child, stderr: ChildStderr, log: Log, over: Flag, leave: Flag) {
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let mut listening = JoinSet::new();
    listening.spawn(log.follow(stderr));
    tokio::select! {
        _ = child.wait() => {
            sleep(LAST_WORDS).await;
            over.raise();
        }
        () = leave.raised() => end(&mut child, group).await,
    }
    if let Some(group) = group {
        end_what_is_left(group).await;
    }
    // Nobody is left who could write to it.
    let _ = timeout(LAST_WORDS, listening.join_next()).await;
}

/// Waits, asks, and then does not ask any more.
async fn end(child: &mut Child, group: Option<Pid>) {
    for signal in [Signal::TERM, Signal::KILL] {
        if timeout(GRACE, child.wait()).await.is_ok() {
            return;
        }
        tell(group, signal);
    }
    let _ = child.wait().await;
}

/// The leader is gone; those that it has left behind get the same grace.
async fn end_what_is_left(group: Pid) {
    if test_kill_process_group(group).is_err() {
        return;
    }
    tell(Some(group), Signal::TERM);
    let due = Instant::now() + GRACE;
    while Instant::now() < due {
        if test_kill_process_group(group).is_err() {
            return;
        }
        sleep(LOOK).await;
    }
    tell(Some(group), Signal::KILL);
}

/// A group that is gone needs no telling.
fn tell(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        let _ = kill_process_group(group, signal);
    }
}
