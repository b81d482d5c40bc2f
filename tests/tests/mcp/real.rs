//! The servers that people really use, over both transports, through the whole loop: what each lists is offered, a call reaches it, and what it
//! says reaches the model. And what becomes of a run under which a server is killed.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::{Child, Command};
use toolgate_tests::gateway::Gateway;
use toolgate_tests::scenario::Mode;
use toolgate_tests::stage::{PATIENCE, eventually};
use toolgate_tests::stand::Stand;

use crate::{installed, offered, runs, told};

/// The configuration with this server under a name; its tools are offered.
fn with(name: &str, described: Value) -> Value {
    let mut described = described;
    described["group"] = json!("real");
    described["requires_approval"] = json!(false);
    json!({
        "groups": { "real": { "data_class": "internal" } },
        "models": { "m": { "tools": { "groups": ["real"] } } },
        "mcp_servers": { name: described },
    })
}

fn program(name: &str, args: &[&str]) -> Value {
    json!({ "command": installed().join(name), "args": args })
}

/// Calls in rounds: each with the tool, its arguments, and what the result must hold.
async fn works(described: Value, count: usize, calls: &[(&str, Value, &str)]) {
    let rounds = calls
        .iter()
        .map(|(name, arguments, _)| json!({ "calls": [{ "name": format!("real__{name}"), "arguments": arguments }] }));
    let replies: Vec<Value> = rounds.chain([json!({ "content": "Well." })]).collect();
    let stand = Stand::with(Value::Array(replies), json!({})).await;
    let _gateway = stand.serve(with("real", described)).await;
    // A busy machine starts a program of Python in more time than a gateway waits for it at its own start.
    eventually("all its tools are offered", || async { offered(&stand).await.len() == count }).await;
    runs(&stand).await;
    let told = told(&stand, calls.len());
    for ((name, _, expected), told) in calls.iter().zip(&told) {
        assert!(told.contains(expected), "{name} says {told}, and not {expected}");
    }
}

#[tokio::test]
async fn the_everything_server_over_standard_input_and_output() {
    let calls = [
        ("echo", json!({ "message": "heard" }), "heard"),
        ("get-sum", json!({ "a": 2, "b": 40 }), "42"),
        ("get-structured-content", json!({ "location": "New York" }), "temperature"),
        ("get-sum", json!({ "a": "two" }), "Error: "),
    ];
    works(program("bin/mcp-server-everything", &["stdio"]), 13, &calls).await;
}

#[tokio::test]
async fn the_time_server() {
    let calls =
        [("convert_time", json!({ "source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo" }), "21:30")];
    works(program("venv/bin/mcp-server-time", &["--local-timezone=UTC"]), 2, &calls).await;
}

#[tokio::test]
async fn the_memory_server() {
    let entity = json!({ "entities": [{ "name": "toolgate", "entityType": "gateway", "observations": ["it runs tools"] }] });
    let calls = [("create_entities", entity, "toolgate"), ("search_nodes", json!({ "query": "runs tools" }), "it runs tools")];
    let folder = toolgate_tests::gateway::Folder::new();
    let mut described = program("bin/mcp-server-memory", &[]);
    described["env"] = json!({ "MEMORY_FILE_PATH": folder.path().join("memory.json") });
    works(described, 9, &calls).await;
    assert!(folder.path().join("memory.json").is_file(), "it got its own environment");
}

#[tokio::test]
async fn the_filesystem_server() {
    let folder = toolgate_tests::gateway::Folder::new();
    folder.write("note.txt", "a note");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let calls = [
        ("read_text_file", json!({ "path": path("note.txt") }), "a note"),
        ("write_file", json!({ "path": path("new.txt"), "content": "written" }), "new.txt"),
        ("read_text_file", json!({ "path": "/etc/passwd" }), "denied"),
    ];
    works(program("bin/mcp-server-filesystem", &[&path("")]), 14, &calls).await;
    assert_eq!(std::fs::read_to_string(folder.path().join("new.txt")).unwrap(), "written");
}

fn git(folder: &Path, args: &[&str]) {
    let done =
        std::process::Command::new("git").args(args).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(done.expect("git is there").success(), "git {args:?}");
}

#[tokio::test]
async fn the_git_server() {
    let folder = toolgate_tests::gateway::Folder::new();
    folder.write("note.txt", "a note");
    git(folder.path(), &["init", "--quiet"]);
    let repository = folder.path().display().to_string();
    let calls = [("git_status", json!({ "repo_path": repository }), "note.txt")];
    works(program("venv/bin/mcp-server-git", &["--repository", &repository]), 12, &calls).await;
}

#[tokio::test]
async fn the_sqlite_server() {
    let folder = toolgate_tests::gateway::Folder::new();
    let file = folder.path().join("shop.db").display().to_string();
    let calls = [
        ("create_table", json!({ "query": "CREATE TABLE orders (id INTEGER, note TEXT)" }), "created"),
        ("write_query", json!({ "query": "INSERT INTO orders VALUES (7, 'urgent')" }), "1"),
        ("read_query", json!({ "query": "SELECT note FROM orders WHERE id = 7" }), "urgent"),
    ];
    works(program("sqlite/bin/mcp-server-sqlite", &["--db-path", &file]), 6, &calls).await;
}

/// The everything server, listening by itself.
struct Listening {
    process: Child,
    port: u16,
    address: String,
}

impl Listening {
    fn spawn(port: u16) -> Child {
        Command::new(installed().join("bin/mcp-server-everything"))
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts")
    }

    async fn start(port: u16) -> Self {
        let address = format!("127.0.0.1:{port}");
        // Of a busy machine it may take longer than everything else does, and whoever had the port last may still be leaving it.
        for _ in 0..6 {
            let mut process = Self::spawn(port);
            for _ in 0..100 {
                if tokio::net::TcpStream::connect(&address).await.is_ok() {
                    return Self { process, port, address };
                }
                if process.try_wait().expect("its state").is_some() {
                    break;
                }
                tokio::time::sleep(PATIENCE / 100).await;
            }
        }
        panic!("the everything server does not listen");
    }

    async fn kill(mut self) {
        self.process.kill().await.expect("it ends");
    }
}

/// A port that is free at every address of this machine: the everything server listens at all of them, and other tests have addresses of
/// their own with ports from 12,000.
fn port_of_every_host() -> u16 {
    let first = std::process::id() % 7000;
    let mut ports = (0..7000).filter_map(|next| u16::try_from(4000 + (first + next) % 7000).ok());
    ports.find(|port| std::net::TcpListener::bind(("0.0.0.0", *port)).is_ok()).expect("a port")
}

fn over_http(address: &str) -> Value {
    let mut configuration = with("real", json!({ "url": format!("http://{address}/mcp"), "effect": "read_only" }));
    configuration["groups"]["real"]["egress"] = json!([{ "host": address, "private": true }]);
    configuration
}

fn echo(message: &str) -> Value {
    json!({ "calls": [{ "name": "real__echo", "arguments": { "message": message } }] })
}

/// Two calls in one run, with something that happens between them.
async fn survives(stand: &Stand, between: impl AsyncFnOnce()) {
    let change = async {
        assert!(stand.upstream.until(|asked| asked.len() == 2).await);
        between().await;
        stand.stage.saw(b"mended");
    };
    tokio::join!(runs(stand), change);
    let told = told(stand, 2);
    assert!(told[0].contains("Echo: before") && told[1].contains("Echo: after"), "{told:?}");
}

async fn two_calls() -> Stand {
    let mut after = echo("after");
    after["until_caller_saw"] = json!("mended");
    Stand::with(json!([echo("before"), after, { "content": "Well." }]), json!({})).await
}

#[tokio::test]
async fn the_everything_server_over_http_and_its_restart_in_the_middle_of_a_run() {
    let server = Listening::start(port_of_every_host()).await;
    let stand = two_calls().await;
    let _gateway = stand.serve(over_http(&server.address)).await;
    assert_eq!(offered(&stand).await.len(), 13);
    let mut again = None;
    survives(&stand, async || {
        let port = server.port;
        server.kill().await;
        again = Some(Listening::start(port).await);
    })
    .await;
    drop(again);
}

/// The processes whose parent is this one.
fn children_of(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent_of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

fn kill(pid: u32) {
    assert!(std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill is there").success());
}

fn is_there(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

#[tokio::test]
async fn a_program_that_is_killed_in_the_middle_of_a_run_is_started_again() {
    let stand = two_calls().await;
    let mut described = program("bin/mcp-server-everything", &["stdio"]);
    described["effect"] = json!("read_only");
    let mut gateway = stand.serve(with("real", described)).await;
    let before = children_of(gateway.pid());
    assert_eq!(before.len(), 1, "one program: {before:?}");
    survives(&stand, async || kill(before[0])).await;
    let after = children_of(gateway.pid());
    assert!(after.len() == 1 && after != before, "{after:?}");
    gateway.stop().await.unwrap();
    assert!(!is_there(after[0]), "no program is left behind");
}

#[tokio::test]
async fn a_gateway_that_is_killed_leaves_no_program_behind() {
    let stand = Stand::with(json!([]), json!({})).await;
    let mut gateway: Gateway = stand.serve(with("real", program("bin/mcp-server-everything", &["stdio"]))).await;
    let children = children_of(gateway.pid());
    gateway.process.kill().await.unwrap();
    eventually("the program ends", || async { children.iter().all(|pid| !is_there(*pid)) }).await;
}

#[tokio::test]
async fn a_program_gets_no_secret_of_the_gateways() {
    let stand =
        Stand::with(json!([{ "calls": [{ "name": "real__get-env", "arguments": {} }] }, { "content": "Well." }]), json!({}))
            .await;
    let mut described = program("bin/mcp-server-everything", &["stdio"]);
    described["env"] = json!({ "OWN": "is-there" });
    stand.configure(with("real", described));
    let env = [("PROVIDER_KEY".to_owned(), "ENV-CANARY".to_owned())];
    let _gateway = Gateway::start(&stand.folder, stand.addresses.clone(), &env).await.expect("the gateway starts");
    runs(&stand).await;
    let told = told(&stand, 1);
    assert!(told[0].contains("is-there") && !told[0].contains("ENV-CANARY"), "{told:?}");
}

#[tokio::test]
async fn streamed_and_plain_runs_use_a_server_alike() {
    let replies: Vec<Value> = [echo("one"), json!({ "content": "Well." })].into_iter().cycle().take(4).collect();
    let stand = Stand::with(Value::Array(replies), json!({})).await;
    let _gateway = stand.serve(with("real", program("bin/mcp-server-everything", &["stdio"]))).await;
    for mode in [Mode::Plain, Mode::Streamed] {
        let response = stand.ask(mode, json!({})).await;
        assert!(response.status == 200 && response.text().contains("Well."), "{}", response.text());
    }
    for nth in [1, 3] {
        assert!(told(&stand, nth)[0].contains("Echo: one"), "{:?}", told(&stand, nth));
    }
}
