//! The loop: messages in, answers out, and what each request asks.

use super::checking;
use super::commands::{self, Runs};
use super::documents::Open;
use super::kernels;
use super::known;
use super::language::legend;
use super::world::World;
use crate::cli::Global;
use crate::program::Setup;
use crossbeam_channel::{Receiver, Sender, select};
use lsp_server::{Connection, ErrorCode, Message, Notification, ProtocolError, Request, RequestId, Response};
use lsp_types::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_base::FileId;
use tessera_ide::lines::Units;

/// Why a request has no answer.
#[derive(Clone, Debug)]
pub struct Refused {
    code: ErrorCode,
    message: String,
}

impl Refused {
    pub fn because(message: String) -> Refused {
        Refused { code: ErrorCode::RequestFailed, message }
    }
}

/// What a panic said.
pub fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".into())
}

/// What the client said that it can do.
#[derive(Clone, Copy, Default)]
struct Client {
    /// It asks for diagnostics by itself.
    pulls: bool,
    /// It can be told to ask again.
    refreshes_diagnostics: bool,
    refreshes_inlays: bool,
    /// It runs programs by itself, where they can be seen.
    runs: bool,
}

pub struct Server<'c> {
    connection: &'c Connection,
    world: World,
    client: Client,
    /// Counts the states of the texts.
    generation: u64,
    /// The texts have changed since a thread was started.
    dirty: bool,
    /// A thread looks for what is wrong.
    checking: bool,
    /// What one open file says may be wrong in another.
    imports_change: bool,
    tell: Sender<checking::Result>,
    told: Receiver<checking::Result>,
    /// What the client saw last of each file.
    published: BTreeMap<Uri, Vec<Diagnostic>>,
    /// Requests that wait for the diagnostics of a file.
    waiting: Vec<(RequestId, FileId)>,
    runs: Runs,
    /// With what programs are compiled that nobody runs.
    setup: Setup,
    /// A thread finds out what becomes of a function.
    looking: bool,
    /// When a text was changed last.
    edited: Instant,
    /// What was found of functions shows something between the words that the client has not asked for.
    unshown: bool,
    tell_known: Sender<known::Answer>,
    told_known: Receiver<known::Answer>,
    /// Numbers of requests of the server.
    asked: i32,
    shutting_down: bool,
}

/// So long nobody has typed when a function is compiled.
const QUIET: Duration = Duration::from_millis(200);

/// As the setup, on one thread.
fn alone(setup: &Setup) -> Setup {
    let global = Global { threads: Some(1), ..setup.global.clone() };
    Setup { global, style: setup.style, stack_bytes: setup.stack_bytes, profile: None, gate: None, held: None }
}

type Answer = std::result::Result<Value, Refused>;

fn answer<T: serde::Serialize>(value: T) -> Answer {
    serde_json::to_value(value).map_err(|e| Refused { code: ErrorCode::InternalError, message: e.to_string() })
}

/// Of edits: their files, which the protocol's types keep in a hash map, in the order of their names.
fn answer_edits<T: serde::Serialize>(value: T) -> Answer {
    let mut value = answer(value)?;
    value.sort_all_objects();
    Ok(value)
}

impl<'c> Server<'c> {
    /// Greets the client.
    ///
    /// # Errors
    /// What it says is not the protocol, or it has left.
    pub fn start(connection: &'c Connection, setup: &Setup) -> std::result::Result<Server<'c>, ProtocolError> {
        let (id, params) = connection.initialize_start()?;
        let can =
            |path: &str| params.pointer(&format!("/capabilities/{path}")).and_then(Value::as_bool).unwrap_or(false);
        let client = Client {
            pulls: params.pointer("/capabilities/textDocument/diagnostic").is_some(),
            refreshes_diagnostics: can("workspace/diagnostics/refreshSupport"),
            refreshes_inlays: can("workspace/inlayHint/refreshSupport"),
            runs: params.pointer("/initializationOptions/runsPrograms").and_then(Value::as_bool).unwrap_or(false),
        };
        let offered = params.pointer("/capabilities/general/positionEncodings").and_then(Value::as_array);
        let utf8 = offered.is_some_and(|all| all.iter().any(|e| e == "utf-8"));
        let units = if utf8 { Units::Utf8 } else { Units::Utf16 };
        let folders = folders(&params);
        let info = json!({"name": "tessera", "version": env!("CARGO_PKG_VERSION")});
        let result = json!({"capabilities": capabilities(units, client), "serverInfo": info});
        connection.initialize_finish(id, result)?;
        let (tell, told) = crossbeam_channel::unbounded();
        let (tell_known, told_known) = crossbeam_channel::unbounded();
        Ok(Server {
            connection,
            world: World::new(setup, units, folders),
            client,
            generation: 0,
            dirty: false,
            checking: false,
            imports_change: false,
            tell,
            told,
            published: BTreeMap::new(),
            waiting: vec![],
            runs: Runs::default(),
            setup: alone(setup),
            looking: false,
            edited: Instant::now(),
            unshown: false,
            tell_known,
            told_known,
            asked: 0,
            shutting_down: false,
        })
    }

    /// Answers until the client leaves; returns the exit code. Nothing runs on for a client that is gone.
    pub fn run(&mut self) -> u8 {
        let code = self.answer_all();
        self.runs.end_runs();
        code
    }

    fn answer_all(&mut self) -> u8 {
        let mut queue: std::collections::VecDeque<Message> = Default::default();
        loop {
            // All that has come is taken at once: of edits in a row only the last state is checked.
            queue.extend(self.connection.receiver.try_iter());
            let Some(message) = queue.pop_front() else {
                self.check();
                let quiet = self.look();
                select! {
                    recv(self.connection.receiver) -> message => match message {
                        Ok(message) => queue.push_back(message),
                        Err(_) => return u8::from(!self.shutting_down),
                    },
                    recv(self.told) -> result => if let Ok(result) = result { self.took(result) },
                    recv(self.told_known) -> answer => if let Ok(answer) = answer { self.took_known(answer) },
                    default(quiet) => {}
                }
                continue;
            };
            match message {
                Message::Request(request) => {
                    let cancelled = queue.iter().any(|m| cancels(m, &request.id));
                    self.request(request, cancelled);
                }
                Message::Notification(n) if n.method == "exit" => return u8::from(!self.shutting_down),
                Message::Notification(n) => self.notification(n),
                // What the client says to requests of the server changes nothing.
                Message::Response(_) => {}
            }
            // What was being checked has ended without a word.
            self.dirty |= std::mem::take(&mut self.world.touched) && self.checking;
        }
    }

    fn send(&self, message: impl Into<Message>) {
        // A client that has left hears nothing.
        let _ = self.connection.sender.send(message.into());
    }

    fn ask(&mut self, method: &str) {
        self.asked += 1;
        self.send(Request { id: self.asked.into(), method: method.into(), params: Value::Null });
    }

    // ---- What is wrong ----------------------------------------------------------------------------

    /// Begins to check the open files, if their texts have changed.
    fn check(&mut self) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        self.generation += 1;
        let open: Vec<FileId> = self.world.documents.open.keys().filter_map(|p| self.world.db.file_at(p)).collect();
        self.world.found.retain(|id, _| open.contains(id));
        self.world.forget(&open);
        self.checking = true;
        checking::start(&self.world.db, open, self.generation, alone(&self.setup), self.tell.clone());
    }

    fn took(&mut self, result: checking::Result) {
        if result.generation != self.generation || self.dirty {
            return;
        }
        self.checking = false;
        if let Some(fault) = &result.fault {
            self.log(&format!("a fault of the checker: {fault}"));
        }
        self.world.take(result);
        for (id, file) in std::mem::take(&mut self.waiting) {
            self.answer_diagnostics(id, file);
        }
        self.publish();
        if self.client.pulls && self.client.refreshes_diagnostics && self.imports_change {
            self.ask("workspace/diagnostic/refresh");
        }
        self.imports_change = false;
        self.refresh_inlays();
    }

    /// Begins to look at a function that somebody wants to know of, once the texts are quiet; returns how long there is nothing
    /// to be done.
    fn look(&mut self) -> Duration {
        const FOREVER: Duration = Duration::from_secs(3600);
        if self.checking || self.looking {
            return FOREVER;
        }
        if self.world.wanted.is_empty() {
            // The client asks for all of them anew: once, when nothing more is wanted.
            if self.unshown {
                self.refresh_inlays();
            }
            return FOREVER;
        }
        let quiet = self.edited.elapsed();
        if quiet < QUIET {
            return QUIET - quiet;
        }
        if let Some(key) = self.world.next_wanted() {
            self.looking = kernels::start(&self.world, key, alone(&self.setup), self.tell_known.clone());
        }
        if self.looking { FOREVER } else { Duration::ZERO }
    }

    fn took_known(&mut self, answer: known::Answer) {
        self.looking = false;
        if let Some(fault) = &answer.fault {
            self.log(&format!("a fault of the compiler: {}", message(&**fault)));
        }
        self.unshown |= self.world.take_known(answer);
    }

    fn refresh_inlays(&mut self) {
        self.unshown = false;
        if self.client.refreshes_inlays {
            self.ask("workspace/inlayHint/refresh");
        }
    }

    fn publish(&mut self) {
        // A client that asks is not told of files that it has open.
        let open: BTreeSet<Uri> = self.world.documents.open.values().map(|o| o.uri.clone()).collect();
        let mut now: BTreeMap<Uri, Vec<Diagnostic>> = BTreeMap::new();
        for params in self.world.to_publish() {
            if self.client.pulls && open.contains(&params.uri) {
                continue;
            }
            if self.published.get(&params.uri) != Some(&params.diagnostics) || params.version.is_some() {
                self.send(Notification::new("textDocument/publishDiagnostics".into(), &params));
            }
            now.insert(params.uri, params.diagnostics);
        }
        let gone: Vec<Uri> = self.published.keys().filter(|u| !now.contains_key(*u)).cloned().collect();
        for uri in gone {
            let params = PublishDiagnosticsParams { uri, version: None, diagnostics: vec![] };
            self.send(Notification::new("textDocument/publishDiagnostics".into(), &params));
        }
        self.published = now;
    }

    fn answer_diagnostics(&mut self, id: RequestId, file: FileId) {
        let items = self.world.of_file(file);
        self.send(Response::new_ok(id, json!({"kind": "full", "items": items})));
    }

    fn log(&self, message: &str) {
        let params = json!({"type": 1, "message": message});
        self.send(Notification { method: "window/logMessage".into(), params });
    }

    // ---- Texts ------------------------------------------------------------------------------------

    fn notification(&mut self, n: Notification) {
        let method = n.method.clone();
        let done = catch_unwind(AssertUnwindSafe(|| self.changes(n)));
        match done {
            Ok(Ok(())) => {}
            Ok(Err(why)) => self.log(&format!("`{method}` is not understood: {why}")),
            Err(payload) => self.log(&format!("a fault in `{method}`: {}", message(&*payload))),
        }
    }

    fn changes(&mut self, n: Notification) -> std::result::Result<(), serde_json::Error> {
        match &*n.method {
            "textDocument/didOpen" => {
                let params: DidOpenTextDocumentParams = serde_json::from_value(n.params)?;
                let d = params.text_document;
                self.set(d.uri, d.text, d.version);
                // Others may have asked for it before it was there.
                self.reload();
            }
            "textDocument/didChange" => {
                let params: DidChangeTextDocumentParams = serde_json::from_value(n.params)?;
                let (uri, version) = (params.text_document.text_document_identifier.uri, params.text_document.version);
                let path = self.world.path(&uri);
                let Some(open) = self.world.documents.open.get(&path) else { return Ok(()) };
                let text = self.world.changed(&open.text.clone(), params.content_changes);
                self.set(uri, text, version);
            }
            "textDocument/didClose" => {
                let params: DidCloseTextDocumentParams = serde_json::from_value(n.params)?;
                let path = self.world.path(&params.text_document.uri);
                self.world.documents.open.remove(&path);
                // From here on it is what is on disk.
                let text = self.world.documents.text(std::path::Path::new(&path)).map(|l| l.text);
                if let Some(id) = self.world.db.file_at(&path) {
                    self.world.colored.remove(&id);
                    self.world.load(&path, text.as_deref().unwrap_or(""));
                }
                self.reload();
            }
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" | "workspace/didChangeConfiguration" => {
                self.reload()
            }
            "workspace/didChangeWorkspaceFolders" => {
                let params: DidChangeWorkspaceFoldersParams = serde_json::from_value(n.params)?;
                let paths = |all: Vec<WorkspaceFolder>| -> Vec<PathBuf> {
                    all.iter().filter_map(|f| f.uri.to_file_path().ok()).collect()
                };
                let gone = paths(params.event.removed);
                self.world.folders.retain(|f| !gone.contains(f));
                self.world.folders.extend(paths(params.event.added));
            }
            // Other requests are answered before this can be read.
            CANCEL => cancelled(&n.params).iter().for_each(|id| self.runs.cancel_run(id)),
            _ => {}
        }
        Ok(())
    }

    fn set(&mut self, uri: Uri, text: String, version: i32) {
        let path = self.world.path(&uri);
        let text: Arc<str> = text.into();
        self.world.documents.open.insert(path.clone(), Open { uri, text: text.clone(), version });
        let before = self.world.imports_of(&path);
        self.world.load(&path, &text);
        if self.world.imports_of(&path) != before {
            // A circle may be opened or closed by that, which the other files in it are told.
            self.reload();
        }
        self.imports_change |= self.world.documents.open.len() > 1;
        self.dirty = true;
        self.edited = Instant::now();
    }

    /// Reads what is not open again, where it has changed.
    fn reload(&mut self) {
        let open: Vec<(String, Arc<str>)> =
            self.world.documents.open.iter().map(|(p, o)| (p.clone(), o.text.clone())).collect();
        for (path, text) in open {
            self.world.load(&path, &text);
        }
        self.dirty = true;
    }

    // ---- Requests ---------------------------------------------------------------------------------

    fn request(&mut self, request: Request, cancelled: bool) {
        let id = request.id.clone();
        if request.method == "shutdown" {
            self.shutting_down = true;
            self.runs.end_runs();
            return self.send(Response::new_ok(id, Value::Null));
        }
        let refused = |code: ErrorCode, message: &str| Response::new_err(id.clone(), code as i32, message.into());
        if self.shutting_down {
            return self.send(refused(ErrorCode::InvalidRequest, "the server is shutting down"));
        }
        if cancelled {
            return self.send(refused(ErrorCode::RequestCanceled, "cancelled"));
        }
        let method = request.method.clone();
        let done = catch_unwind(AssertUnwindSafe(|| self.answer(request)));
        let response = match done {
            // It is answered later.
            Ok(Ok(None)) => return,
            Ok(Ok(Some(value))) => Response::new_ok(id, value),
            Ok(Err(why)) => refused(why.code, &why.message),
            Err(payload) => {
                let text = format!("a fault in `{method}`: {}", message(&*payload));
                self.log(&text);
                refused(ErrorCode::InternalError, &text)
            }
        };
        self.send(response);
    }

    fn answer(&mut self, request: Request) -> std::result::Result<Option<Value>, Refused> {
        let id = request.id;
        match &*request.method {
            "textDocument/diagnostic" => {
                let p: DocumentDiagnosticParams = params(request.params)?;
                let file = self.file(&p.text_document.uri)?;
                if self.world.open(file).is_none() {
                    let items = self.world.checked_now(file);
                    self.send(Response::new_ok(id, json!({"kind": "full", "items": items})));
                } else if self.dirty || self.checking || !self.world.found.contains_key(&file) {
                    self.waiting.push((id, file));
                } else {
                    self.answer_diagnostics(id, file);
                }
                Ok(None)
            }
            "workspace/executeCommand" => {
                let p: ExecuteCommandParams = params(request.params)?;
                let run = self.world.command(&p.command, p.arguments.as_deref().unwrap_or(&[]));
                let Some(run) = run else {
                    return Err(Refused::because(format!("there is no command `{}` for that", p.command)));
                };
                self.runs.begin_run(run, id, true, self.connection.sender.clone());
                Ok(None)
            }
            "tessera/ir" => {
                let p: IrParams = params(request.params)?;
                let file = self.file(&p.text_document.uri)?;
                let run = self.world.intermediate(file, p.position, p.ir.as_deref().unwrap_or("graph"));
                match run {
                    Some(run) => self.runs.begin_run(run, id, false, self.connection.sender.clone()),
                    None => return Ok(Some(json!({"text": "nothing of the program stands here\n", "ok": false}))),
                }
                Ok(None)
            }
            method => self.of_text(method, request.params).map(Some),
        }
    }

    /// Requests that are answered at once.
    fn of_text(&mut self, method: &str, value: Value) -> Answer {
        match method {
            "textDocument/hover" => {
                let (id, at) = self.position(value)?;
                answer(self.world.hover(id, at))
            }
            "textDocument/completion" => {
                let (id, at) = self.position(value)?;
                answer(self.world.completions(id, at))
            }
            "completionItem/resolve" => {
                let item: CompletionItem = params(value)?;
                answer(self.world.resolved(item))
            }
            "textDocument/signatureHelp" => {
                let (id, at) = self.position(value)?;
                answer(self.world.signature(id, at))
            }
            "textDocument/definition" | "textDocument/declaration" | "textDocument/implementation" => {
                let (id, at) = self.position(value)?;
                answer(self.world.definition(id, at))
            }
            "textDocument/typeDefinition" => {
                let (id, at) = self.position(value)?;
                answer(self.world.type_definition(id, at))
            }
            "textDocument/references" => {
                let declaration = value.pointer("/context/includeDeclaration").and_then(Value::as_bool).unwrap_or(true);
                let (id, at) = self.position(value)?;
                answer(self.world.references(id, at, declaration))
            }
            "textDocument/documentHighlight" => {
                let (id, at) = self.position(value)?;
                answer(self.world.highlights(id, at))
            }
            "textDocument/prepareRename" => {
                let (id, at) = self.position(value)?;
                answer(self.world.renamable(id, at)?)
            }
            "textDocument/rename" => {
                let to = value.get("newName").and_then(Value::as_str).unwrap_or("").to_owned();
                let (id, at) = self.position(value)?;
                answer_edits(self.world.rename(id, at, &to)?)
            }
            "textDocument/prepareCallHierarchy" => {
                let (id, at) = self.position(value)?;
                answer(self.world.call_hierarchy(id, at))
            }
            "callHierarchy/incomingCalls" => {
                let p: CallHierarchyIncomingCallsParams = params(value)?;
                answer(self.world.incoming(&p.item))
            }
            "callHierarchy/outgoingCalls" => {
                let p: CallHierarchyOutgoingCallsParams = params(value)?;
                answer(self.world.outgoing(&p.item))
            }
            "textDocument/documentSymbol" => {
                let id = self.document(&value)?;
                answer(self.world.outline(id))
            }
            "workspace/symbol" => {
                let query = value.get("query").and_then(Value::as_str).unwrap_or("").to_owned();
                answer(self.world.search(&query))
            }
            "textDocument/semanticTokens/full" => {
                let id = self.document(&value)?;
                answer(self.world.all_tokens(id))
            }
            "textDocument/semanticTokens/full/delta" => {
                let p: SemanticTokensDeltaParams = params(value)?;
                let id = self.file(&p.text_document.uri)?;
                self.world.changed_tokens(id, &p.previous_result_id).map_or_else(answer, answer)
            }
            "textDocument/semanticTokens/range" => {
                let p: SemanticTokensRangeParams = params(value)?;
                let id = self.file(&p.text_document.uri)?;
                answer(self.world.tokens(id, Some(p.range)))
            }
            "textDocument/inlayHint" => {
                let p: InlayHintParams = params(value)?;
                let id = self.file(&p.text_document.uri)?;
                answer(self.world.inlays(id, p.range))
            }
            "textDocument/formatting" => {
                let id = self.document(&value)?;
                answer(self.world.formatting(id, None))
            }
            "textDocument/rangeFormatting" => {
                let p: DocumentRangeFormattingParams = params(value)?;
                let id = self.file(&p.text_document.uri)?;
                answer(self.world.formatting(id, Some(p.range)))
            }
            "textDocument/onTypeFormatting" => {
                let (id, at) = self.position(value)?;
                answer(self.world.begun_line(id, at))
            }
            "workspace/willRenameFiles" => {
                let p: RenameFilesParams = params(value)?;
                answer_edits(self.world.imports_after_moving(&moves(&p)))
            }
            "textDocument/documentLink" => {
                let id = self.document(&value)?;
                answer(self.world.links(id))
            }
            "textDocument/codeAction" => {
                let p: CodeActionParams = params(value)?;
                let id = self.file(&p.text_document.uri)?;
                answer_edits(self.world.actions(id, p.range))
            }
            "textDocument/codeLens" => {
                let id = self.document(&value)?;
                answer(self.world.lenses(id))
            }
            "textDocument/foldingRange" => {
                let id = self.document(&value)?;
                answer(self.world.folds(id))
            }
            "textDocument/selectionRange" => {
                let p: SelectionRangeParams = params(value)?;
                let id = self.file(&p.text_document.uri)?;
                let all: Vec<SelectionRange> = p.positions.into_iter().map(|at| self.world.selection(id, at)).collect();
                answer(all)
            }
            _ => Err(Refused { code: ErrorCode::MethodNotFound, message: format!("there is no request `{method}`") }),
        }
    }

    fn file(&mut self, uri: &Uri) -> std::result::Result<FileId, Refused> {
        self.world.file(uri).ok_or_else(|| Refused {
            code: ErrorCode::InvalidParams,
            message: format!("`{uri}` is not open, and cannot be read"),
        })
    }

    fn document(&mut self, value: &Value) -> std::result::Result<FileId, Refused> {
        let uri = value.pointer("/textDocument/uri").and_then(Value::as_str).and_then(|u| Uri::parse(u).ok());
        let uri = uri.ok_or_else(|| Refused {
            code: ErrorCode::InvalidParams,
            message: "the request names no document".into(),
        })?;
        self.file(&uri)
    }

    fn position(&mut self, value: Value) -> std::result::Result<(FileId, Position), Refused> {
        let p: TextDocumentPositionParams = params(value)?;
        Ok((self.file(&p.text_document.uri)?, p.position))
    }
}

/// `tessera/ir`: what becomes of the function at a position.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct IrParams {
    text_document: TextDocumentIdentifier,
    position: Position,
    /// As `tessera emit --ir` names it.
    ir: Option<String>,
}

/// From where to where files and folders move.
fn moves(params: &RenameFilesParams) -> Vec<(PathBuf, PathBuf)> {
    let one = |f: &FileRename| Some((f.old_uri.to_file_path().ok()?, f.new_uri.to_file_path().ok()?));
    params.files.iter().filter_map(one).collect()
}

fn params<P: DeserializeOwned>(value: Value) -> std::result::Result<P, Refused> {
    serde_json::from_value(value).map_err(|e| Refused { code: ErrorCode::InvalidParams, message: e.to_string() })
}

fn cancels(message: &Message, id: &RequestId) -> bool {
    matches!(message, Message::Notification(n) if n.method == CANCEL && cancelled(&n.params).as_ref() == Some(id))
}

const CANCEL: &str = "$/cancelRequest";

/// The request that is not wanted any more.
fn cancelled(params: &Value) -> Option<RequestId> {
    match params.get("id")? {
        Value::String(s) => Some(RequestId::from(s.clone())),
        Value::Number(n) => Some(RequestId::from(i32::try_from(n.as_i64()?).ok()?)),
        _ => None,
    }
}

/// The folders that the client works in.
fn folders(params: &Value) -> Vec<PathBuf> {
    let path = |uri: &Value| Uri::parse(uri.as_str()?).ok()?.to_file_path().ok();
    let all = params.get("workspaceFolders").and_then(Value::as_array);
    let named: Vec<PathBuf> = all.into_iter().flatten().filter_map(|f| path(f.get("uri")?)).collect();
    if named.is_empty() { params.get("rootUri").and_then(path).into_iter().collect() } else { named }
}

/// Files of a pattern, or folders where it ends with `/`.
fn moving(pattern: &str) -> FileOperationFilter {
    let (glob, matches) = match pattern.strip_suffix('/') {
        Some(glob) => (glob, FileOperationPatternKind::Folder),
        None => (pattern, FileOperationPatternKind::File),
    };
    let pattern = FileOperationPattern { glob: glob.to_owned(), matches: Some(matches), options: None };
    FileOperationFilter { scheme: Some("file".into()), pattern }
}

fn capabilities(units: Units, client: Client) -> ServerCapabilities {
    let words = |all: &[&str]| Some(all.iter().map(|w| (*w).to_owned()).collect());
    ServerCapabilities {
        position_encoding: Some(match units {
            Units::Utf8 => PositionEncodingKind::UTF8,
            Units::Utf16 => PositionEncodingKind::UTF16,
            Units::Utf32 => PositionEncodingKind::UTF32,
        }),
        text_document_sync: Some(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::Incremental),
                save: Some(true.into()),
                ..TextDocumentSyncOptions::default()
            }
            .into(),
        ),
        completion_provider: Some(CompletionOptions {
            trigger_characters: words(&[".", "@"]),
            resolve_provider: Some(true),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(true.into()),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: words(&["(", ","]),
            ..SignatureHelpOptions::default()
        }),
        declaration_provider: Some(true.into()),
        definition_provider: Some(true.into()),
        type_definition_provider: Some(true.into()),
        implementation_provider: Some(true.into()),
        references_provider: Some(true.into()),
        document_highlight_provider: Some(true.into()),
        document_symbol_provider: Some(true.into()),
        workspace_symbol_provider: Some(true.into()),
        code_action_provider: Some(
            CodeActionOptions {
                code_action_kinds: Some(vec![CodeActionKind::QuickFix, CodeActionKind::RefactorRewrite]),
                ..CodeActionOptions::default()
            }
            .into(),
        ),
        code_lens_provider: Some(CodeLensOptions::default()),
        document_formatting_provider: Some(true.into()),
        document_range_formatting_provider: Some(true.into()),
        document_on_type_formatting_provider: Some(DocumentOnTypeFormattingOptions {
            first_trigger_character: "\n".into(),
            more_trigger_character: None,
        }),
        document_link_provider: Some(DocumentLinkOptions::default()),
        rename_provider: Some(RenameOptions { prepare_provider: Some(true), ..RenameOptions::default() }.into()),
        folding_range_provider: Some(true.into()),
        selection_range_provider: Some(true.into()),
        // A client that runs programs by itself has these names already.
        execute_command_provider: (!client.runs).then(|| ExecuteCommandOptions {
            commands: vec![commands::RUN.into(), commands::TEST.into()],
            ..ExecuteCommandOptions::default()
        }),
        call_hierarchy_provider: Some(true.into()),
        semantic_tokens_provider: Some(
            SemanticTokensOptions {
                legend: legend(),
                range: Some(true.into()),
                full: Some(SemanticTokensFullDelta { delta: Some(true) }.into()),
                ..SemanticTokensOptions::default()
            }
            .into(),
        ),
        inlay_hint_provider: Some(true.into()),
        diagnostic_provider: Some(
            DiagnosticOptions {
                identifier: Some("tessera".into()),
                inter_file_dependencies: true,
                workspace_diagnostics: false,
                ..DiagnosticOptions::default()
            }
            .into(),
        ),
        workspace: Some(WorkspaceOptions {
            workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(true.into()),
            }),
            file_operations: Some(FileOperationOptions {
                will_rename: Some(FileOperationRegistrationOptions { filters: ["**/*.tsr", "**/"].map(moving).into() }),
                ..FileOperationOptions::default()
            }),
            ..WorkspaceOptions::default()
        }),
        ..ServerCapabilities::default()
    }
}
