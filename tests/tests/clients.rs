//! The real OpenAI clients, as an existing application has them: each is told the gateway's address and nothing of tools, asks a question
//! that needs one, and must see one ordinary answer. The upstream is aimock, which nobody here wrote; it gives its answer only where the tool's
//! result has reached it, in each dialect that it speaks. What the clients check stands beside them in `tests/clients/`.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is test code: what cannot go on stops the test")]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use toolgate_tests::gateway::{Folder, Gateway, free_addresses};

/// A secret, and its SHA-256 for the configuration.
const KEY: &str = "tg-a-key-of-the-client-tests";
const KEY_HASH: &str = "sha256:31d876ba0dd54229ebfbc8770a63e26ba02ebfa305b174b197b3384c6a8920f0";

macro_rules! clients {
    ($($dialect:ident)*: $parts:tt) => {$(
        mod $dialect {
            clients! { @parts $dialect $parts }
        }
    )*};
    (@parts $dialect:ident { $($name:ident: $script:literal $part:literal;)* }) => {$(
        #[tokio::test]
        async fn $name() {
            crate::ask($script, $part, stringify!($dialect)).await;
        }
    )*};
}

// In which dialects the gateway asks the upstream.
clients! {
    openai anthropic gemini ollama: {
        openai_python_plain: "openai_python.py" "plain";
        openai_python_stream: "openai_python.py" "stream";
        openai_python_own_tool: "openai_python.py" "own_tool";
        openai_node_plain: "openai_node.mjs" "plain";
        openai_node_stream: "openai_node.mjs" "stream";
        openai_node_own_tool: "openai_node.mjs" "own_tool";
        langchain_openai_plain: "langchain_openai_python.py" "plain";
        langchain_openai_stream: "langchain_openai_python.py" "stream";
        langchain_openai_own_tool: "langchain_openai_python.py" "own_tool";
        ai_sdk_plain: "ai_sdk.mjs" "plain";
        ai_sdk_stream: "ai_sdk.mjs" "stream";
        ai_sdk_own_tool: "ai_sdk.mjs" "own_tool";
    }
}

/// Ollama's models cannot write an object while tools are offered.
mod structured {
    clients! {
        openai anthropic gemini: {
            openai_python: "openai_python.py" "structured";
            openai_node: "openai_node.mjs" "structured";
            langchain_openai: "langchain_openai_python.py" "structured";
            ai_sdk: "ai_sdk.mjs" "structured";
        }
    }
}

// What passes through, in OpenAI's own form.
clients! {
    passing: {
        openai_python: "openai_python.py" "other_paths";
        openai_node: "openai_node.mjs" "other_paths";
    }
}

/// Runs one part of a client's script against a gateway of its own; the script's exit code is the verdict.
async fn ask(script: &str, part: &str, dialect: &str) {
    let clients = Clients::installed();
    let weather = Weather::start();
    let upstream = Upstream::start(&clients);
    let (folder, addresses) = (Folder::new(), free_addresses());
    folder.write("toolgate.yaml", &configuration(&addresses, dialect, upstream.address, weather.address));
    let gateway = Gateway::start(&folder, addresses, &[]).await.unwrap_or_else(|error| panic!("{error}"));

    let output = clients
        .script(script)
        .arg(part)
        .env("BASE_URL", format!("http://{}/v1", gateway.address))
        .env("API_KEY", KEY)
        // aimock speaks Ollama's form, but has zeros for its counters.
        .env("UPSTREAM_COUNTS", if dialect == "ollama" { "no" } else { "yes" })
        .output()
        .expect("the client starts");
    let asked = weather.asked.lock().unwrap().clone();
    assert!(
        output.status.success(),
        "{script} {part}, {dialect}: {}\n{}{}\nthe tool was asked {asked:?}\nthe gateway's log:\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        gateway.log(),
    );
    assert_eq!(asked.is_empty(), part == "other_paths", "the tool was asked {asked:?}");
    assert!(asked.iter().all(|path| path == "/weather/Oslo"), "the tool was asked {asked:?}");
}

/// The folder into which `./tests/run` has installed the clients.
struct Clients(PathBuf);

impl Clients {
    fn installed() -> Self {
        let folder = std::env::var_os("TOOLGATE_CLIENTS");
        Self(PathBuf::from(folder.expect("TOOLGATE_CLIENTS is not set: ./tests/run installs the clients and runs their tests")))
    }

    fn node(&self) -> Command {
        Command::new(self.0.join("node/bin/node"))
    }

    fn script(&self, name: &str) -> Command {
        let mut command = if name.ends_with(".mjs") { self.node() } else { Command::new(self.0.join("venv/bin/python")) };
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// aimock with the answers of `clients/upstream.json`; what they do not foresee is an error.
struct Upstream {
    address: SocketAddr,
    _process: Process,
}

impl Upstream {
    fn start(clients: &Clients) -> Self {
        let mut child = clients
            .node()
            .arg(clients.0.join("node_modules/@copilotkit/aimock/dist/cli.js"))
            .args(["--strict", "--port", "0", "--fixtures"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/upstream.json"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("aimock starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let process = Process(child);
        let address = lines.by_ref().find_map(|line| line.split_once("http://").and_then(|(_, address)| address.parse().ok()));
        // Its log is read to its end, so that it never waits for a reader.
        thread::spawn(move || lines.for_each(drop));
        Self { address: address.expect("aimock says where it listens"), _process: process }
    }
}

/// The server of the one tool: it is cold in every city.
struct Weather {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Weather {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let weather = Self { address: listener.local_addr().unwrap(), asked: Arc::default() };
        let asked = Arc::clone(&weather.asked);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                Self::answer(stream, &asked);
            }
        });
        weather
    }

    fn answer(mut stream: TcpStream, asked: &Mutex<Vec<String>>) {
        let mut lines = BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
        let request = lines.next().unwrap_or_default();
        lines.for_each(drop);
        asked.lock().unwrap().extend(request.split(' ').nth(1).map(str::to_owned));
        let body = r#"{"celsius":-3,"sky":"clear"}"#;
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).ok();
    }
}

fn configuration((address, admin): &(String, String), dialect: &str, upstream: SocketAddr, tool: SocketAddr) -> String {
    let (kind, path, model) = match dialect {
        "anthropic" => ("anthropic", "/v1", "claude-sonnet-4-5"),
        "gemini" => ("gemini", "/v1beta", "gemini-3-pro-preview"),
        "ollama" => ("ollama", "", "llama3.2"),
        _ => ("openai_compatible", "/v1", "gpt-4o-mini"),
    };
    format!(
        r#"
server: {{ listen: "{address}", admin_listen: "{admin}" }}
providers:
  aimock: {{ kind: {kind}, base_url: "http://{upstream}{path}", api_key: a-key-of-nobody, trust_zone: local }}
models:
  support:
    provider: aimock
    upstream_model: {model}
    tools: {{ groups: [weather] }}
keys:
  - {{ name: clients, hash: "{KEY_HASH}" }}
groups:
  weather: {{ data_class: public, egress: ["{tool}"], trust_zone: local }}
tools:
  - name: get_weather
    group: weather
    description: The weather in a city, now.
    parameters: {{ type: object, required: [city], properties: {{ city: {{ type: string }} }} }}
    http: {{ url: "http://{tool}/weather/{{city}}" }}
"#
    )
}
