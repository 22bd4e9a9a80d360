//! `tessera view`: a page with the structure of a program, served to this machine alone.
//!
//! Every address begins with a token that only the printed address tells, the host must be this machine's, and there is only
//! `GET`. No path of a request names a file. What the page shows is computed here; the program itself runs only when the
//! user asks, in a process of its own.

mod facts;

use crate::cli::OfFunction;
use crate::program::{Setup, out};
use crate::render::Style;
use facts::Program;
use serde_json::{Value, json};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tessera_base::{Code, Diagnostic, Span};
use tessera_resolve::source::SourceMap;
use tiny_http::{Header, Method, Request, Response, Server};

const PAGE: &str = include_str!("view/page.html");
/// How often a waiting server looks whether it is to end.
const LOOK: Duration = Duration::from_millis(200);
/// Nothing but the page's own text and this server.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What the command line says.
pub struct Asked<'a> {
    pub file: &'a Path,
    pub port: u16,
    pub open: bool,
    pub profile: bool,
    pub args: Vec<String>,
}

/// What came of the last run.
#[derive(Default)]
struct Run {
    running: bool,
    /// Grows with each run that ended.
    number: u32,
    result: Value,
}

impl Run {
    fn end(&mut self, result: Value) {
        *self = Run { running: false, number: self.number + 1, result };
    }
}

struct View<'a> {
    setup: &'a Setup,
    file: PathBuf,
    args: Vec<String>,
    token: String,
    hosts: [String; 2],
    program: Program,
    version: u32,
    run: Arc<Mutex<Run>>,
}

/// Serves until it is interrupted; returns the exit code.
pub fn view(setup: &Setup, asked: Asked) -> u8 {
    let fail = |code: Code, why: String, help: &str| {
        setup.show(&[Diagnostic::new(code, Span::NONE, why).help(help)], &SourceMap::default());
        1
    };
    let shown = asked.file.display();
    if asked.file == Path::new("-") || asked.file.extension().is_some_and(|e| e == "onnx") {
        return fail(Code::E0602, format!("`{shown}` is no file with a program"), "name a `.tsr` file");
    }
    match crate::files::read_source(asked.file) {
        Err(d) => {
            setup.show(&[d], &SourceMap::default());
            return 1;
        }
        Ok(loaded) if crate::emit::feed::Level::of(&loaded.text).is_some() => {
            return fail(Code::E0602, format!("`{shown}` is a text of an IR"), "`tessera emit` shows what it becomes");
        }
        Ok(_) => {}
    }
    let server = match Server::http(("127.0.0.1", asked.port)) {
        Ok(server) => server,
        Err(e) => {
            let why = format!("port {} of this machine cannot be had: {e}", asked.port);
            return fail(Code::E0706, why, "`--port` names another one; 0, the default, takes any that is free");
        }
    };
    let port = server.server_addr().to_ip().map_or(asked.port, |a| a.port());
    let token = token();
    let url = format!("http://127.0.0.1:{port}/{token}/");
    out(&format!("{url}\n"));
    if asked.open {
        open(&url);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Without it the signal still ends the process, by the system's default.
        let _ = signal_hook::flag::register(signal, stop.clone());
    }
    let mut view = View {
        setup,
        file: asked.file.to_owned(),
        args: asked.args,
        token,
        hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
        program: Program::read(&quiet(setup), asked.file),
        version: 1,
        run: Arc::default(),
    };
    if asked.profile {
        view.start_run();
    }
    while !stop.load(Ordering::SeqCst) {
        if let Ok(Some(request)) = server.recv_timeout(LOOK) {
            view.answer(request);
        }
    }
    0
}

/// A set-up that keeps what is told, as JSON.
fn quiet(setup: &Setup) -> Setup {
    let style = Style { color: false, json: true, quiet: false };
    let (global, stack_bytes) = (setup.global.clone(), setup.stack_bytes);
    Setup { global, style, stack_bytes, profile: None, gate: None, held: Some(Default::default()) }
}

/// What was told, an object each.
fn told(setup: &Setup) -> Vec<Value> {
    let held = setup.held.iter().map(|h| std::mem::take(&mut *h.borrow_mut()));
    let text: Vec<u8> = held.flatten().collect();
    String::from_utf8_lossy(&text).lines().filter_map(|l| serde_json::from_str(l).ok()).collect()
}

/// A word that cannot be guessed: the keys of the hasher come from the system.
fn token() -> String {
    let word = || RandomState::new().build_hasher().finish();
    blake3::hash(format!("{}{}{}", word(), word(), std::process::id()).as_bytes()).to_hex()[..32].to_owned()
}

/// Opens a browser, where there is one.
fn open(url: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet = Command::new(opener).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    // Without one the address is printed.
    drop(quiet);
}

impl View<'_> {
    fn answer(&mut self, request: Request) {
        let host = request.headers().iter().find(|h| h.field.equiv("Host")).map(|h| h.value.as_str());
        let (status, kind, text) = if !host.is_some_and(|h| self.hosts.iter().any(|own| own == h)) {
            (403, "text/plain", "this address is for this machine alone\n".to_owned())
        } else if *request.method() != Method::Get {
            (405, "text/plain", "only GET\n".to_owned())
        } else {
            let url = request.url().to_owned();
            let (path, query) = url.split_once('?').unwrap_or((&url, ""));
            let own = path.strip_prefix('/').and_then(|p| p.strip_prefix(self.token.as_str()));
            match own {
                Some("/") => (200, "text/html; charset=utf-8", PAGE.to_owned()),
                Some(what) => match self.data(what, query) {
                    Some(value) => (200, "application/json", value.to_string()),
                    None => (404, "text/plain", "there is nothing here\n".to_owned()),
                },
                None => (404, "text/plain", "there is nothing here\n".to_owned()),
            }
        };
        let headers = [
            ("Content-Type", kind),
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
        ];
        let response = Response::from_string(text).with_status_code(status);
        let headers = headers.iter().filter_map(|(name, value)| Header::from_bytes(*name, *value).ok());
        let response = headers.fold(response, Response::with_header);
        // A reader that is slow, or gone, keeps nobody waiting.
        let thread = std::thread::Builder::new().name("answer".into());
        let _ = thread.spawn(move || request.respond(response));
    }

    /// What stands at a path; `None` where nothing does.
    fn data(&mut self, path: &str, query: &str) -> Option<Value> {
        let value = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        let number = value("function").and_then(|n| n.parse().ok());
        match path {
            "/state" => {
                if self.program.is_stale() {
                    self.program = Program::read(&quiet(self.setup), &self.file);
                    self.version += 1;
                }
                let run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
                Some(json!({"schema": 1, "version": self.version, "running": run.running, "run": run.number}))
            }
            "/program" => Some(self.program.json()),
            "/graph" => Some(self.program.graph(&quiet(self.setup), number?)),
            "/ir" => {
                let form = <crate::cli::Ir as clap::ValueEnum>::from_str(value("form")?, false).ok()?;
                Some(self.program.ir(&quiet(self.setup), number?, form))
            }
            "/run" => {
                self.start_run();
                Some(json!({"schema": 1}))
            }
            "/profile" => Some(self.run.lock().unwrap_or_else(PoisonError::into_inner).result.clone()),
            _ => None,
        }
    }

    /// Runs the program and times its kernels, in a process of its own.
    fn start_run(&self) {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if run.running {
            return;
        }
        let this = match std::env::current_exe() {
            Ok(this) => this,
            Err(e) => {
                return run
                    .end(json!({"schema": 1, "ok": false, "profile": null, "said": e.to_string(), "printed": ""}));
            }
        };
        let g = &self.setup.global;
        let mut command = Command::new(this);
        command.args(["--json", "--color", "never", "--policy", &g.policy]).args(crate::roof::options(g));
        let mesh =
            g.mesh.as_ref().map(|m| m.axes.iter().map(|(a, n)| format!("{a}={n}")).collect::<Vec<_>>().join(","));
        command.args(mesh.iter().flat_map(|m| ["--mesh", m]));
        command.args(g.devices.iter().flat_map(|n| ["--devices".to_owned(), n.to_string()]));
        command.args(g.memory.iter().flat_map(|n| ["--memory".to_owned(), n.to_string()]));
        command.args(
            [("--checked", g.checked), ("--check-nan", g.check_nan), ("--no-cache", g.no_cache)]
                .iter()
                .filter(|o| o.1)
                .map(|o| o.0),
        );
        command.args(["profile", "--roof"]).arg(&self.file).arg("--").args(&self.args).stdin(Stdio::null());
        let shared = self.run.clone();
        let thread = std::thread::Builder::new().name("run".into()).spawn(move || {
            let result = match command.output() {
                Ok(done) => {
                    let said = String::from_utf8_lossy(&done.stderr).into_owned();
                    let (mut profile, mut rest) = (Value::Null, vec![]);
                    for line in said.lines() {
                        match serde_json::from_str::<Value>(line) {
                            Ok(value) if value["profile"].is_array() => profile = value,
                            _ => rest.push(line),
                        }
                    }
                    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
                    let end: String =
                        printed.chars().rev().take(20_000).collect::<Vec<_>>().into_iter().rev().collect();
                    let roof = profile["roof"].clone();
                    json!({
                        "schema": 1,
                        "ok": done.status.success(),
                        "profile": profile,
                        "roof": roof,
                        "said": rest.join("\n"),
                        "printed": end,
                    })
                }
                Err(e) => json!({"schema": 1, "ok": false, "profile": null, "said": e.to_string(), "printed": ""}),
            };
            shared.lock().unwrap_or_else(PoisonError::into_inner).end(result);
        });
        run.running = thread.is_ok();
    }
}

/// No sizes and values but those that are chosen.
fn chosen() -> OfFunction {
    OfFunction::default()
}
