//! An API server that answers as it is told.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Answers by the path and query that are asked for; any other list is empty, and any other object not there.
#[derive(Default)]
pub struct ApiServer(BTreeMap<String, (u16, Value)>);

impl ApiServer {
    /// Answers this.
    pub fn answer(mut self, path: &str, code: u16, body: Value) -> Self {
        self.0.insert(path.to_owned(), (code, body));
        self
    }

    /// Refuses this.
    pub fn refuse(self, path: &str, code: u16, reason: &str) -> Self {
        self.answer(path, code, status(code, reason))
    }

    /// Serves while restamp runs with these arguments.
    pub fn run(self, args: &[&str]) -> Output {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = TempDir::new().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let server = format!("http://{}", listener.local_addr().unwrap());
        let content = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {}}]});
        fs::write(&kubeconfig, content.to_string()).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                self.serve(&stream.unwrap());
            }
        });
        let mut restamp = Command::new(env!("CARGO_BIN_EXE_restamp"));
        restamp.args(args).arg("--kubeconfig").arg(kubeconfig).output().unwrap()
    }

    fn serve(&self, stream: &TcpStream) {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let Some(request) = lines.next() else { return };
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        lines.take_while(|line| !line.is_empty()).for_each(drop);
        let unknown = if path.contains('?') { (200, list(&[], None)) } else { (404, status(404, "NotFound")) };
        let (code, body) = self.0.get(&path).unwrap_or(&unknown);
        let body = body.to_string();
        let mut stream = stream;
        let length = body.len();
        let head = format!("HTTP/1.1 {code} X\r\ncontent-type: application/json\r\nconnection: close\r\n");
        write!(stream, "{head}content-length: {length}\r\n\r\n{body}").unwrap();
    }
}

fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": reason, "code": code})
}

/// A list, or a page of one.
pub fn list(items: &[Value], next: Option<&str>) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1", "continue": next}, "items": items})
}
