//! What it costs; not a test, for it holds on every machine. `cargo test --release -p toolgate-gateway --lib redis::tests::cost -- --ignored --nocapture`

use std::time::Instant;

use super::*;

const TAKINGS: usize = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn cost_of_taking_and_settling() {
    let host = Host::start().await;
    let gateway = Arc::new(host.gateway());
    let whats = [
        (budget(Unit::Usd, Per::Day), 1 << 50),
        (What::RequestRate, 1 << 30),
        (What::Concurrent, 1 << 30),
        (budget(Unit::Usd, Per::Month), 1 << 50),
        (budget(Unit::Tokens, Per::Day), 1 << 50),
        (What::TokenRate, 1 << 31),
    ];
    let limits: Vec<_> = whats.into_iter().map(|(what, most)| limit(what, most)).collect();
    for count in [1, 3, 6] {
        let want = wanted(limits[..count].iter().map(|limit| claim(limit, 10)).collect::<Vec<_>>());
        for tasks in [1, 8, 64, 256] {
            drop(gateway.take_all(&want, 0).await);
            host.command(&["CONFIG", "RESETSTAT"]).await;
            let start = Instant::now();
            let ask = || {
                let (gateway, want) = (Arc::clone(&gateway), want.clone());
                tokio::spawn(async move {
                    for _ in 0..TAKINGS / tasks {
                        gateway.take_all(&want, 0).await.settle(&usd(3), Timestamp::now());
                    }
                })
            };
            for task in (0..tasks).map(|_| ask()).collect::<Vec<_>>() {
                task.await.unwrap();
            }
            let each = start.elapsed().as_micros() as f64 / (TAKINGS / tasks * tasks) as f64;
            let trips = host.figure("stats", "total_reads_processed:").await.parse::<f64>().unwrap() / TAKINGS as f64;
            let server = host.figure("commandstats", "cmdstat_evalsha:").await;
            println!("{count} limits, {tasks} at once: {each:.1} us, {trips:.2} round trips; {server}");
        }
    }
    let ::redis::Value::Array(keys) = host.command(&["KEYS", "*"]).await else { panic!() };
    for key in keys {
        let key: String = ::redis::from_redis_value(key).unwrap();
        println!("{key}: {:?}", host.command(&["MEMORY", "USAGE", &key]).await);
    }
}

impl Host {
    async fn figure(&self, section: &str, name: &str) -> String {
        let info: String = ::redis::from_redis_value(self.command(&["INFO", section]).await).unwrap();
        info.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
    }
}
