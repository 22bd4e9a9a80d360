//! What is run for a client: programs, tests, and what becomes of a function. Each in a process of its own, so that nothing
//! that a program does reaches the server; its text is what the client has, saved or not. A run ends when its request is
//! cancelled, when the client leaves, and when the server is killed.

use super::world::World;
use crate::interrupt::WORKS_FOR;
use crossbeam_channel::Sender;
use lsp_server::{ErrorCode, Message, Notification, RequestId, Response};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tessera_base::FileId;
use tessera_infer::asked;

/// Runs a file: its address.
pub const RUN: &str = "tessera.runFile";
/// Runs tests of a file: its address, and the name of a function.
pub const TEST: &str = "tessera.runTest";

/// After this long a program is ended.
const TIME_MAX: Duration = Duration::from_secs(60);
/// So much of what it says is shown.
const SHOWN_MAX: usize = 20_000;

/// A run of this program on the text of a file.
pub struct Run {
    arguments: Vec<String>,
    /// Where the program of the file would run.
    folder: PathBuf,
    text: String,
}

impl World {
    fn run_of(&self, id: FileId, arguments: Vec<String>) -> Run {
        let cx = self.analysis(id);
        let path = cx.path(id);
        let folder = Path::new(&*path).parent().filter(|p| p.is_dir()).unwrap_or(Path::new("."));
        Run { arguments, folder: folder.to_owned(), text: cx.text(id).to_string() }
    }

    /// What a command runs.
    pub fn command(&mut self, name: &str, arguments: &[serde_json::Value]) -> Option<Run> {
        let uri = arguments.first()?.as_str().and_then(|u| lsp_types::Uri::parse(u).ok())?;
        let id = self.file(&uri)?;
        let words: Vec<&str> = match name {
            RUN => vec!["run", "-"],
            TEST => vec!["test", "-"],
            _ => return None,
        };
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        if let (TEST, Some(only)) = (name, arguments.get(1).and_then(|a| a.as_str())) {
            words.extend(["-k".to_owned(), only.to_owned()]);
        }
        Some(self.run_of(id, words))
    }

    /// What becomes of the function at a position, in a form that `emit` knows.
    pub fn intermediate(&mut self, id: FileId, at: lsp_types::Position, ir: &str) -> Option<Run> {
        let cx = self.analysis(id);
        let (item, _) = cx.item_at(id, self.byte(&cx.text(id), at))?;
        let item = item.id(&self.db);
        let function = asked::functions(&self.db, id).into_iter().find(|(_, head)| head.item == item);
        let mut words = vec!["emit".to_owned(), "-".to_owned(), "--ir".to_owned(), ir.to_owned()];
        if let Some((name, _)) = function.filter(|_| ir != "ast") {
            words.extend(["--function".to_owned(), name.to_string()]);
        }
        Some(self.run_of(id, words))
    }
}

/// What a run printed, and whether it ended well.
struct Done {
    text: String,
    well: bool,
}

/// Runs until the program ends, or nobody waits for it any more.
fn run(run: &Run, stop: &AtomicBool) -> Done {
    let failed = |why: String| Done { text: why, well: false };
    let this = match std::env::current_exe() {
        Ok(path) => path,
        Err(e) => return failed(format!("the program cannot find itself: {e}")),
    };
    let started = Command::new(this)
        .args(&run.arguments)
        .args(["--color", "never"])
        .current_dir(&run.folder)
        .env(WORKS_FOR, std::process::id().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(e) => return failed(format!("the program cannot be started: {e}")),
    };
    // Its three ends are served at once: a pipe that nobody reads would stop it.
    let (mut stdin, text) = (child.stdin.take(), run.text.clone());
    let write = std::thread::spawn(move || stdin.as_mut().map(|s| s.write_all(text.as_bytes())));
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let read = |from: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = vec![];
            if let Some(mut from) = from {
                let _ = std::io::Read::read_to_end(&mut from, &mut bytes);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let out = read(out.map(|o| Box::new(o) as Box<dyn std::io::Read + Send>));
    let err = read(err.map(|e| Box::new(e) as Box<dyn std::io::Read + Send>));
    let begun = std::time::Instant::now();
    let well = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.success(),
            Ok(None) if begun.elapsed() < TIME_MAX && !stop.load(Ordering::Relaxed) => {
                std::thread::sleep(Duration::from_millis(5))
            }
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                break false;
            }
        }
    };
    let _ = write.join();
    let mut text = out.join().unwrap_or_default();
    text.push_str(&err.join().unwrap_or_default());
    if begun.elapsed() >= TIME_MAX {
        text.push_str(&format!("\nended after {} s\n", TIME_MAX.as_secs()));
    }
    if text.len() > SHOWN_MAX {
        let cut = (0..=SHOWN_MAX).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        text.truncate(cut);
        text.push_str("\n…\n");
    }
    Done { text, well }
}

/// A run that goes on, and how it is told to stop.
struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// What runs for the client, by the request that asked for it.
#[derive(Default)]
pub struct Runs(BTreeMap<RequestId, Running>);

impl Runs {
    /// Runs a command on a thread of its own; what it printed is the answer, and is shown.
    pub fn begin_run(&mut self, what: Run, id: RequestId, show: bool, client: Sender<Message>) {
        self.0.retain(|_, running| !running.thread.is_finished());
        let stop = Arc::new(AtomicBool::new(false));
        let (asked, stopped) = (id.clone(), stop.clone());
        let thread = std::thread::Builder::new().name("run".into());
        let spawned = thread.spawn(move || {
            let done = run(&what, &stopped);
            if stopped.load(Ordering::Relaxed) {
                let cancelled = Response::new_err(id, ErrorCode::RequestCanceled as i32, "cancelled".into());
                let _ = client.send(cancelled.into());
                return;
            }
            if show {
                // 3: what somebody asked for; 1: an error.
                let kind = if done.well { 3 } else { 1 };
                let message = json!({"type": kind, "message": done.text.trim_end()});
                let shown = Notification { method: "window/showMessage".into(), params: message };
                let _ = client.send(shown.into());
            }
            let _ = client.send(Response::new_ok(id, json!({"text": done.text, "ok": done.well})).into());
        });
        match spawned {
            Ok(thread) => _ = self.0.insert(asked, Running { stop, thread }),
            Err(e) => eprintln!("a thread cannot be had: {e}"),
        }
    }

    /// Ends the run that a request asked for, if it still goes on.
    pub fn cancel_run(&self, id: &RequestId) {
        self.0.get(id).inspect(|running| running.stop.store(true, Ordering::Relaxed));
    }

    /// Ends all of them, and waits until they have ended.
    pub fn end_runs(&mut self) {
        let all = std::mem::take(&mut self.0);
        all.values().for_each(|running| running.stop.store(true, Ordering::Relaxed));
        for running in all.into_values() {
            let _ = running.thread.join();
        }
    }
}
