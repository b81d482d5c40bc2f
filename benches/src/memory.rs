//! Start and memory: fresh processes, how long they take to their first answer, and how much memory they hold idle, with 1,000 streams
//! open, and when those are done.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::caller::{Caller, Route};
use crate::load::median;
use crate::process::Group;
use crate::scenario::Scenario;
use crate::target::{Kind, Site, Target};

/// What a fresh process gave; memory in MiB.
pub(crate) struct Memory {
    /// Milliseconds from start to the first right answer, at the median.
    pub(crate) ready: f64,
    /// After the first answer.
    pub(crate) idle: f64,
    /// The most while the streams were open.
    pub(crate) open: f64,
    /// Some seconds after the last stream ended.
    pub(crate) after: f64,
}

impl Memory {
    /// KiB for each open stream.
    pub(crate) fn per_stream(&self) -> f64 {
        (self.open - self.idle) * 1024.0 / Scenario::Memory.connections() as f64
    }
}

/// Starts a target several times, and opens the streams on the last one.
///
/// # Errors
/// It did not start, or a stream was not whole.
pub(crate) async fn measure(kind: Kind, site: &Site, starts: usize, rest: Duration) -> crate::Result<Memory> {
    let (mut ready, mut idle) = (Vec::new(), Vec::new());
    let mut last = None;
    for _ in 0..starts {
        drop(last.take());
        let target = Target::start(kind, site).await?;
        sleep(Duration::from_millis(100)).await;
        ready.push(target.ready.as_secs_f64() * 1e3);
        idle.push(target.group.as_ref().map_or(0.0, Group::resident_mib));
        last = Some(target);
    }
    let target = last.ok_or("not started")?;
    let group = target.group.as_ref().ok_or("nothing to measure")?;
    let open = most_while_open(target.route, group).await?;
    sleep(rest).await;
    Ok(Memory { ready: median(ready.into_iter()), idle: median(idle.into_iter()), open, after: group.resident_mib() })
}

async fn most_while_open(route: Route, group: &Group) -> crate::Result<f64> {
    let begin = Instant::now();
    let mut streams = JoinSet::new();
    for number in 0..Scenario::Memory.connections() {
        streams.spawn(async move {
            // One a millisecond: what is asked is how many are held, not how fast they come.
            sleep_until(begin + Duration::from_millis(number as u64)).await;
            Caller::connect(Scenario::Memory, route).await?.ask().await.map(drop)
        });
    }
    let mut most = 0.0_f64;
    timeout(Duration::from_secs(40), async {
        loop {
            match timeout(Duration::from_millis(100), streams.join_next()).await {
                Ok(None) => return crate::Result::Ok(most),
                Ok(Some(stream)) => stream??,
                Err(_) => most = most.max(group.resident_mib()),
            }
        }
    })
    .await
    .map_err(|_| "streams were still open after 40 s")?
}
