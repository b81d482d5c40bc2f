//! `toolgate demo`, as somebody sees it who has never run it: what it prints, what can be tried afterwards, and how it ends.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is test code: what cannot go on stops the test")]

use std::net::TcpListener;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;
use toolgate_tests::caller::{Response, request, send};
use toolgate_tests::gateway::{Folder, Output, command, program};
use toolgate_tests::reply::Step;
use toolgate_tests::stage::{PATIENCE, Stage};
use toolgate_tests::stream::Stream;

/// Runs a demo to its end, with the folder for its temporary files.
async fn demo(folder: &Folder, args: &[&str]) -> Output {
    let args: Vec<String> = ["demo"].iter().chain(args).map(|&arg| arg.to_owned()).collect();
    let folder_of_temporary_files = ("TMPDIR".to_owned(), folder.path().display().to_string());
    command(folder, &args, &[folder_of_temporary_files]).await.unwrap()
}

/// The lines in this order, each with whatever stands around it.
fn holds_in_order(text: &str, pieces: &[&str]) {
    let mut rest = text;
    for piece in pieces {
        let at = rest.find(piece).unwrap_or_else(|| panic!("`{piece}` is missing, or comes too early, in\n{text}"));
        rest = &rest[at + piece.len()..];
    }
}

/// A demo that goes on serving.
struct Serving {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Everything up to the invitation.
    account: String,
}

impl Serving {
    async fn start(folder: &Folder) -> Self {
        let mut command = Command::new(program().unwrap());
        command.arg("demo").env("TMPDIR", folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut account = String::new();
        while !account.contains("Ctrl-C") {
            let line = timeout(PATIENCE, lines.next_line()).await.expect("the account goes on").unwrap();
            account += &(line.expect("it serves") + "\n");
        }
        Self { process, lines, account }
    }

    /// The text between two others.
    fn between(&self, before: &str, after: &str) -> String {
        let (_, rest) = self.account.split_once(before).expect(before);
        rest.split_once(after).expect(after).0.to_owned()
    }

    fn key(&self) -> String {
        self.between("authorization: Bearer ", "\n")
    }

    fn address(&self) -> String {
        self.between("Now serving at http://", "/v1")
    }

    async fn send(&self, method: &str, path: &str, body: Option<String>) -> Response {
        let headers = [("authorization".to_owned(), format!("Bearer {}", self.key()))];
        let request = request(method, path, &headers, body.as_deref().map(str::as_bytes));
        send(&self.address(), vec![Step::Send(request)], &Stage::default()).await
    }

    async fn end_with(mut self, signal: &str) -> ExitStatus {
        let pid = self.process.id().expect("it runs").to_string();
        let killed = std::process::Command::new("kill").args([&format!("-{signal}"), &pid]).status();
        assert!(killed.expect("kill is there").success());
        let status = timeout(PATIENCE, self.process.wait()).await.expect("it ends in time").unwrap();
        assert_eq!(self.lines.next_line().await.unwrap(), None, "it has nothing to add");
        status
    }
}

#[tokio::test]
async fn one_question_is_told_from_the_file_to_the_answer() {
    let folder = Folder::new();
    let output = demo(&folder, &["--once"]).await;
    assert_eq!((output.exit, output.stderr.as_str()), (0, ""), "{}", output.stdout);
    holds_in_order(
        &output.stdout,
        &[
            "1  The file that you would write",
            "- { name: app, hash: \"sha256:",
            "- { name: read_customer_file, group: customers",
            "2  The application asks",
            "POST http://127.0.0.1:",
            "authorization: Bearer tg-",
            "{\"model\":\"support\",\"messages\":[",
            "3  The gate decides",
            "offered   find_order\n",
            "offered   shipping_status\n",
            "withheld  read_customer_file  trust_zone: ",
            "4  The loop",
            "round 1   the model asks for a tool",
            "find_order {\"order\":\"A-1007\"}",
            "ran: ",
            "round 2   the model asks for 2 tools",
            "shipping_status {\"parcel\":\"P-5512\"}",
            "ran: ",
            "read_customer_file {\"customer\":\"C-204\"}",
            "refused: trust_zone",
            "round 3   the model answers",
            "5  The application gets",
            "200 OK",
            "x-toolgate-trace: ",
            "x-toolgate-status: completed   x-toolgate-rounds: 3   x-toolgate-tool-calls: 2",
            "The order A-1007, a blue enamel kettle, was sent on Monday.",
            "6  What it cost",
            "tokens of all rounds: ",
            "cost: 0.0",
            "budget: 1 USD per day: 0.0",
        ],
    );
    assert!(!output.stdout.contains('\x1b'), "colours are for terminals: {:?}", output.stdout);
    let (lines, longest) = (output.stdout.lines().count(), output.stdout.lines().map(|line| line.chars().count()).max());
    assert!(lines < 60 && longest < Some(125), "{lines} lines, {longest:?} characters\n{}", output.stdout);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

#[tokio::test]
async fn it_goes_on_serving_until_a_signal_and_what_it_suggests_works() {
    for signal in ["INT", "TERM"] {
        let folder = Folder::new();
        let demo = Serving::start(&folder).await;
        let response = demo.send("POST", "/v1/chat/completions", Some(demo.between("-d '", "'\n"))).await;
        let stream = Stream::parse(&response.body);
        assert_eq!((response.status, &stream.faults), (200, &vec![]), "{}", response.text());
        let answer = stream.answer()["content"].as_str().unwrap_or_default().to_owned();
        assert!(answer.starts_with("The order A-1008, two linen towels, is packed"), "{answer}");

        assert!(answer.ends_with("The customer's file is not open to me."), "{answer}");

        let trace = demo.send("GET", &format!("/toolgate/traces/{}", demo.between("/toolgate/traces/", " ")), None).await;
        assert_eq!(trace.json()["rounds"].as_array().map(Vec::len), Some(3), "{}", trace.text());
        assert_eq!(demo.end_with(signal).await.code(), Some(0), "{signal}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }
}

#[tokio::test]
async fn the_change_that_it_suggests_lets_the_withheld_tool_through() {
    let folder = Folder::new();
    let demo = Serving::start(&folder).await;
    let file = demo.between("is offered then.\n   ", "\n");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("external_global", "external_eu")).unwrap();
    let ask = async {
        loop {
            let question = demo.between("-d '", "'\n").replace("\"stream\":true", "\"stream\":false");
            let answer = demo.send("POST", "/v1/chat/completions", Some(question)).await.text();
            if answer.contains("It goes to Ada Example.") {
                return;
            }
            assert!(answer.contains("The customer's file is not open to me."), "{answer}");
            tokio::time::sleep(PATIENCE / 500).await;
        }
    };
    timeout(PATIENCE, ask).await.expect("the file is in force");
}

/// The model of one demo is that of another, which is an OpenAI-compatible server like any other.
#[tokio::test]
async fn a_real_server_can_be_asked_in_place_of_the_demos_own_model() {
    let folder = Folder::new();
    let real = Serving::start(&folder).await;
    let (url, model) = (real.between("base_url: \"", "\""), real.between("upstream_model: \"", "\""));
    let key = "sk-of-the-server";
    let output = demo(&Folder::new(), &["--once", "--upstream", &url, "--upstream-key", key, "--model", &model]).await;
    assert_eq!(output.exit, 0, "{}{}", output.stdout, output.stderr);
    assert!(!output.stdout.contains(key), "the server's key is not shown:\n{}", output.stdout);
    holds_in_order(
        &output.stdout,
        &[
            &url,
            "\"tool_choice\":\"required\"",
            "withheld  read_customer_file",
            "round 1   the model asks for a tool",
            "The order A-1007",
        ],
    );
    assert_eq!(real.end_with("TERM").await.code(), Some(0));
}

#[tokio::test]
async fn what_is_not_available_is_told_in_a_sentence_with_exit_code_3() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}/v1");
    let table = [
        (vec!["--once", "--listen", &taken], format!("cannot listen on {taken}: ")),
        (vec!["--once", "--upstream", &url, "--model", "m"], format!("nothing answers at {url}")),
    ];
    for (args, sentence) in table {
        let output = demo(&Folder::new(), &args).await;
        assert_eq!(output.exit, 3, "{}{}", output.stdout, output.stderr);
        let last = output.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("toolgate: {sentence}")), "{}", output.stderr);
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let table: [(&[&str], i32, &str); 3] = [
        (&["--upstream", "localhost:1", "--model", "m"], 1, "toolgate: --upstream: this is no base URL: it has no scheme"),
        (&["--upstream", "http://localhost:1/v1"], 2, "--model"),
        (&["--model", "m"], 2, "--upstream"),
    ];
    for (args, exit, sentence) in table {
        let output = demo(&Folder::new(), args).await;
        assert_eq!(output.exit, exit, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(sentence), "{args:?}: {}", output.stderr);
    }
}
