//! Where toolgate stands in a test: between the scripted servers, with a folder of its own and two addresses to listen on.

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::caller::{Response, send};
use crate::config::configuration;
use crate::gateway::{Folder, Gateway, free_addresses};
use crate::reply::Step;
use crate::scenario::{Ask, Mode, Reply, each};
use crate::server::{Script, Server, address, listen};
use crate::stage::Stage;
use crate::wire::Reader;

/// What the servers answer with.
#[derive(Default)]
pub struct Scripts {
    /// The model, in order.
    pub upstream: Vec<Reply>,
    /// The tools, by path.
    pub tools: HashMap<String, Vec<Reply>>,
    /// The model refuses what a strict provider refuses.
    pub strict: bool,
}

/// Everything around the gateway.
pub struct Stand {
    /// What the caller has seen.
    pub stage: Stage,
    /// Where the configuration lies.
    pub folder: Folder,
    /// The model.
    pub upstream: Server,
    /// The tools.
    pub tools: Server,
    /// A server that nobody should ask.
    pub other: Server,
    /// For callers, for the admin.
    pub addresses: (String, String),
    /// What stands for the addresses in a file.
    pub placeholders: Vec<(&'static str, String)>,
}

impl Stand {
    /// Starts the servers, with scripts that may name their addresses.
    ///
    /// # Errors
    /// The scripts cannot be read.
    pub async fn open(scripts: impl FnOnce(&[(&str, String)]) -> Result<Scripts, String>) -> Result<Self, String> {
        let stage = Stage::default();
        let folder = Folder::new();
        let addresses = free_addresses();
        let listeners = [listen().await, listen().await, listen().await];
        let [upstream, tools, other] = listeners.each_ref().map(address);
        let path = folder.path().display();
        let placeholders = vec![
            ("upstream", format!("http://{upstream}")),
            ("upstream_address", upstream),
            ("tools", format!("http://{tools}")),
            ("tools_address", tools),
            ("other", format!("http://{other}")),
            ("other_address", other),
            ("listen", addresses.0.clone()),
            ("admin_listen", addresses.1.clone()),
            ("folder", path.to_string()),
            ("config", format!("{path}/toolgate.yaml")),
        ];
        let scripts = scripts(&placeholders)?;
        let [upstream, tools, other] = listeners;
        let upstream = Server::on(upstream, Script::InOrder(scripts.upstream, scripts.strict), stage.clone());
        let tools = Server::on(tools, Script::ByPath(scripts.tools), stage.clone());
        let other = Server::on(other, Script::ByPath(HashMap::new()), stage.clone());
        Ok(Self { stage, folder, upstream, tools, other, addresses, placeholders })
    }

    /// For a story: the model's replies in order and the tools' by path, each as a scenario would write it.
    ///
    /// # Panics
    /// They are not replies.
    pub async fn with(upstream: Value, tools: Value) -> Self {
        let read = |_: &[(&str, String)]| {
            let upstream: Vec<Reply> = serde_json::from_value(upstream).map_err(|error| error.to_string())?;
            let upstream = each(&upstream);
            let tools: HashMap<String, Reply> = serde_json::from_value(tools).map_err(|error| error.to_string())?;
            let tools = tools.into_iter().map(|(path, reply)| (path, vec![reply])).collect();
            Ok(Scripts { upstream, tools, strict: true })
        };
        Self::open(read).await.expect("replies")
    }

    /// Writes the configuration: the default with `over` merged over it.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn configure(&self, over: Value) {
        self.folder.write("toolgate.yaml", &self.configuration(over));
    }

    /// The text of the default configuration with `over` merged over it.
    ///
    /// # Panics
    /// It is none.
    pub fn configuration(&self, over: Value) -> String {
        let text = crate::config::fill(&over.to_string(), &self.placeholders);
        let over = serde_json::from_str(&text).expect("a configuration");
        configuration(over, &self.placeholders).expect("a configuration")
    }

    /// Starts the gateway with this configuration over the default.
    ///
    /// # Panics
    /// It does not start.
    pub async fn serve(&self, over: Value) -> Gateway {
        self.configure(over);
        Gateway::start(&self.folder, self.addresses.clone(), &[]).await.expect("the gateway starts")
    }

    /// Sends what a scenario would write as a request.
    ///
    /// # Panics
    /// It is not a request.
    pub async fn ask(&self, mode: Mode, ask: Value) -> Response {
        let ask: Ask = serde_json::from_value(ask).expect("a request");
        send(&self.addresses.0, ask.steps(mode), &self.stage).await
    }

    /// Sends a request, waits for a moment, and resets the connection.
    ///
    /// # Panics
    /// The moment does not come: its future says `false`.
    pub async fn leave<F: Future<Output = bool>>(&self, mode: Mode, ask: Value, moment: F) {
        let ask: Ask = serde_json::from_value(ask).expect("a request");
        let mut connection = TcpStream::connect(&self.addresses.0).await.expect("the gateway listens");
        for step in ask.steps(mode) {
            if let Step::Send(bytes) = step {
                connection.write_all(&bytes).await.expect("it is sent");
            }
        }
        let (read, write) = connection.split();
        let mut reader = Reader::new(read);
        let hear = async {
            if let Ok(Some(head)) = reader.head().await {
                self.stage.saw(head.start.as_bytes());
                let _ = reader.response_body(&head, |piece| self.stage.saw(piece)).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            reached = moment => assert!(reached, "the moment to leave never came"),
            () = hear => {}
        }
        drop((reader, write));
        connection.set_zero_linger().expect("a reset");
    }

    /// Asks a short question, plain, and returns status and content of the answer.
    pub async fn hello(&self) -> (u16, Value) {
        let response = self.ask(Mode::Plain, json!({})).await;
        (response.status, response.json()["choices"][0]["message"]["content"].clone())
    }
}
