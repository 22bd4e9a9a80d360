//! An editor, as far as the language server sees it: a client over real standard input and output.

use crate::program::binary;
use lsp_server::{Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};
use std::io::{BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// So long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Message>,
    /// Notifications and requests of the server that nobody has looked at yet.
    pub heard: Vec<Message>,
    pub capabilities: Value,
    asked: i32,
}

impl Editor {
    /// Starts a server in a folder, and greets it.
    pub fn start(folder: &Path, initialize: Value) -> Editor {
        let mut child = Command::new(binary())
            .arg("lsp")
            .current_dir(folder)
            .env("TESSERA_CACHE", folder.join("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().expect("its output is ours"));
        let (tell, messages) = channel();
        std::thread::spawn(move || {
            while let Ok(Some(message)) = Message::read(&mut stdout) {
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        let mut editor = Editor { child, stdin, messages, heard: vec![], capabilities: Value::Null, asked: 0 };
        let mut params =
            json!({"processId": null, "rootUri": format!("file://{}", folder.display()), "capabilities": {}});
        if let (Some(params), Some(more)) = (params.as_object_mut(), initialize.as_object()) {
            params.extend(more.clone());
        }
        editor.capabilities = editor.ask("initialize", params)["capabilities"].clone();
        editor.tell("initialized", json!({}));
        editor
    }

    pub fn send(&mut self, message: impl Into<Message>) {
        let stdin = self.stdin.as_mut().expect("the server listens");
        message.into().write(stdin).expect("the server listens");
        stdin.flush().expect("the server listens");
    }

    pub fn tell(&mut self, method: &str, params: Value) {
        self.send(Notification { method: method.into(), params });
    }

    fn next(&mut self) -> Message {
        self.messages.recv_timeout(PATIENCE).expect("the server says something")
    }

    /// The answer to a request.
    pub fn response(&mut self, method: &str, params: Value) -> Response {
        self.asked += 1;
        let id = RequestId::from(self.asked);
        self.begin(id.clone(), method, params);
        self.answered(id)
    }

    /// Asks, and goes on.
    pub fn begin(&mut self, id: RequestId, method: &str, params: Value) {
        self.send(Request { id, method: method.into(), params });
    }

    /// The answer to a request that was begun.
    pub fn answered(&mut self, id: RequestId) -> Response {
        loop {
            match self.next() {
                Message::Response(r) if r.id == id => return r,
                other => self.heard.push(other),
            }
        }
    }

    /// The result of a request.
    ///
    /// # Panics
    /// Where it has none.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let response = self.response(method, params);
        match response.response_result {
            Ok(result) => result,
            Err(error) => panic!("{method}: {}", error.message),
        }
    }

    pub fn open(&mut self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "tessera", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// The next diagnostics of a file.
    pub fn diagnostics(&mut self, uri: &str) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let of_file = |m: &Message| {
                matches!(m, Message::Notification(n)
                    if n.method == "textDocument/publishDiagnostics" && n.params["uri"] == uri)
            };
            if let Some(i) = self.heard.iter().position(of_file)
                && let Message::Notification(n) = self.heard.remove(i)
            {
                return n.params["diagnostics"].as_array().cloned().unwrap_or_default();
            }
            assert!(begun.elapsed() < PATIENCE, "no diagnostics of {uri}");
            let message = self.next();
            self.heard.push(message);
        }
    }

    /// The number of the server's process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Bytes of memory that the server holds.
    pub fn resident(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
        Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
    }

    /// Seconds of processor time that the server has taken, with all of its threads. Kernels count in hundredths of a second.
    pub fn processor_seconds(&self) -> Option<f64> {
        const TICKS: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The name of the program, in parentheses, may hold anything; times are the 12th and 13th fields behind it.
        let (_, fields) = stat.rsplit_once(')')?;
        let ticks: Vec<f64> = fields.split_whitespace().skip(11).take(2).filter_map(|n| n.parse().ok()).collect();
        (ticks.len() == 2).then(|| (ticks[0] + ticks[1]) / TICKS)
    }

    /// Says goodbye; gives the exit code.
    pub fn leave(mut self) -> Option<i32> {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        self.wait()
    }

    /// Goes away without a word; gives the exit code.
    pub fn vanish(mut self) -> Option<i32> {
        self.stdin = None;
        self.wait()
    }

    fn wait(&mut self) -> Option<i32> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Line and column, in UTF-16 units, of a byte of a text.
pub fn position(text: &str, byte: usize) -> Value {
    let before = &text[..byte];
    let line = before.matches('\n').count();
    let column: usize = before.rsplit('\n').next().unwrap_or("").chars().map(char::len_utf16).sum();
    json!({"line": line, "character": column})
}
