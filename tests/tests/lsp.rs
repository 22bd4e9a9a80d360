//! The language server as an editor sees it: every request over real standard input and output.

use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tessera_tests::editor::{Editor, position};

const TEXT: &str = r#"import std.nn as nn
import parts

struct Layer[D]:
    """One layer."""
    w: Tensor[D, D, f32]
    b: Tensor[D, f32]


def apply(layer: Layer[D], x: Tensor[N, D, f32]) -> Tensor[N, D, f32]:
    """Applies it.

    >>> 1 + 1
    2
    """
    y = x @ layer.w
    return op.relu(y + layer.b)


def mean_of(a, scale=3):
    h = a.mean(axis=0)
    return h * scale


def test_mean():
    assert mean_of(op.ones((2, 2)), scale=1)[0] == 1.0


layer = Layer(op.ones((4, 4)), b=op.zeros((4,)))
z = apply(layer, op.ones((8, 4)))
q = mean_of(z)
print(q, parts.side)
assert nn.count(layer) == 20
"#;

struct Session {
    editor: Editor,
    folder: TempDir,
    text: String,
}

impl Session {
    fn uri(&self, file: &str) -> String {
        format!("file://{}/{file}", self.folder.path().display())
    }

    fn document(&self) -> Value {
        json!({"uri": self.uri("main.tsr")})
    }

    /// The position of the nth `needle`, some bytes further.
    fn at(&self, needle: &str, nth: usize, further: usize) -> Value {
        let found = self.text.match_indices(needle).nth(nth);
        let (byte, _) = found.unwrap_or_else(|| panic!("no `{needle}` in the text"));
        position(&self.text, byte + further)
    }

    fn ask_at(&mut self, method: &str, at: Value, more: Value) -> Value {
        let mut params = json!({"textDocument": self.document(), "position": at});
        if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
            params.extend(more.clone());
        }
        self.editor.ask(method, params)
    }

    fn hover(&mut self, needle: &str, nth: usize, further: usize) -> String {
        let at = self.at(needle, nth, further);
        let hover = self.ask_at("textDocument/hover", at, json!({}));
        hover["contents"]["value"].as_str().unwrap_or("nothing").to_owned()
    }

    fn ask(&mut self, method: &str, more: Value) -> Value {
        let mut params = json!({"textDocument": self.document()});
        if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
            params.extend(more.clone());
        }
        self.editor.ask(method, params)
    }

    /// The lines of the locations that a request gives.
    fn lines(&mut self, method: &str, at: Value, more: Value) -> Vec<u64> {
        let found = self.ask_at(method, at, more);
        let all = found.as_array().cloned().unwrap_or_default();
        all.iter().filter_map(|l| l["range"]["start"]["line"].as_u64()).collect()
    }
}

fn session_of(text: &str, initialize: Value) -> Session {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("parts.tsr"), "side = 4\n\ndef twice(x: int) -> int:\n    return 2 * x\n")
        .expect("a module");
    std::fs::write(folder.path().join("main.tsr"), text).expect("a program");
    let editor = Editor::start(folder.path(), initialize);
    let mut session = Session { editor, folder, text: text.to_owned() };
    let uri = session.uri("main.tsr");
    session.editor.open(&uri, text);
    session
}

fn session() -> Session {
    session_of(TEXT, json!({}))
}

fn labels(items: &Value) -> Vec<&str> {
    items.as_array().map_or(vec![], |all| all.iter().filter_map(|i| i["label"].as_str()).collect())
}

#[test]
fn diagnostics_come_and_go() {
    let mut s = session();
    let uri = s.uri("main.tsr");
    assert_eq!(s.editor.diagnostics(&uri), [] as [Value; 0]);
    let end = position(&s.text, s.text.len());
    let wrong = json!({"range": {"start": end, "end": end}, "text": "prnt(op.ones((3, 4)))\n"});
    s.editor
        .tell("textDocument/didChange", json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [wrong]}));
    let found = s.editor.diagnostics(&uri);
    assert_eq!((found.len(), &found[0]["code"], &found[0]["severity"]), (1, &json!("E0101"), &json!(1)));
    // The fix is an action there, and mends the program.
    let range = found[0]["range"].clone();
    let actions = s.ask("textDocument/codeAction", json!({"range": range, "context": {"diagnostics": []}}));
    let fix = actions.as_array().and_then(|all| all.iter().find(|a| a["kind"] == "quickfix")).cloned();
    let edits = fix.expect("a fix")["edit"]["changes"][&uri].clone();
    assert_eq!(edits[0]["newText"], "print");
    let change = json!({"range": edits[0]["range"], "text": edits[0]["newText"]});
    s.editor.tell(
        "textDocument/didChange",
        json!({"textDocument": {"uri": uri, "version": 3}, "contentChanges": [change]}),
    );
    assert_eq!(s.editor.diagnostics(&uri), [] as [Value; 0]);
    // A module that is edited and not saved counts at once.
    let parts = s.uri("parts.tsr");
    s.editor.open(&parts, "sides = 4\n");
    let found = s.editor.diagnostics(&uri);
    assert_eq!(found.iter().map(|d| &d["code"]).collect::<Vec<_>>(), [&json!("E0102")]);
    s.editor.tell("textDocument/didClose", json!({"textDocument": {"uri": parts}}));
    assert_eq!(s.editor.diagnostics(&uri), [] as [Value; 0]);
    let pulled = s.ask("textDocument/diagnostic", json!({}));
    assert_eq!(pulled, json!({"kind": "full", "items": []}));
    assert_eq!(s.editor.leave(), Some(0));
}

#[test]
fn hover_tells_types_heads_and_documents() {
    let mut s = session();
    assert!(s.hover("y = x", 0, 0).contains("y: Tensor[N, D, f32]"));
    assert!(s.hover("layer.w", 0, 6).contains("(field) w: Tensor[D, D, f32]"));
    let apply = s.hover("apply(layer,", 0, 0);
    assert!(apply.contains("def apply(layer: Layer[D], x: Tensor[N, D, f32]) -> Tensor[N, D, f32]"), "{apply}");
    assert!(apply.contains("Graph function") && apply.contains("Applies it."), "{apply}");
    let mean = s.hover("def mean_of", 0, 4);
    assert!(mean.contains("mean_of(a: Tensor[8, 4, f32], scale: int) -> Tensor[4, f32]"), "{mean}");
    assert!(s.hover("op.relu", 0, 4).contains("op.relu(x)"));
    assert!(s.hover("a.mean", 0, 3).contains("Tensor.mean(axis=None"));
    assert!(s.hover("z = apply", 0, 0).contains("128 bytes"));
    assert!(s.hover("x @ layer.w", 0, 2).contains("2*D*D*N floating-point operations"));
    assert!(s.hover("parts.side", 0, 7).contains("side: int"));
    assert!(s.hover("N, D, f32]) ->", 0, 0).contains("(size) N"));
    assert!(s.hover("scale=1", 0, 1).contains("(parameter) scale"));
}

#[test]
fn names_lead_to_each_other() {
    let mut s = session();
    let at = s.at("layer.w", 0, 6);
    assert_eq!(s.lines("textDocument/definition", at, json!({})), [5]);
    let at = s.at("parts.side", 0, 7);
    let side = s.ask_at("textDocument/definition", at, json!({}));
    assert_eq!(side[0]["uri"], s.uri("parts.tsr"));
    let at = s.at("layer = Layer", 0, 0);
    assert_eq!(s.lines("textDocument/typeDefinition", at, json!({})), [3]);
    let at = s.at("def mean_of", 0, 5);
    let declared = json!({"context": {"includeDeclaration": true}});
    assert_eq!(s.lines("textDocument/references", at.clone(), declared), [19, 25, 30]);
    let others = json!({"context": {"includeDeclaration": false}});
    assert_eq!(s.lines("textDocument/references", at, others), [25, 30]);
    let at = s.at("y = x", 0, 0);
    assert_eq!(s.lines("textDocument/documentHighlight", at, json!({})), [15, 16]);
    // A text of the library can be opened.
    s.text = format!("{TEXT}nn.linear_init\n");
    let uri = s.uri("main.tsr");
    s.editor.tell(
        "textDocument/didChange",
        json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": s.text}]}),
    );
    let at = s.at("nn.linear_init", 0, 4);
    let place = s.ask_at("textDocument/definition", at, json!({}))[0].clone();
    let path = place["uri"].as_str().and_then(|u| u.strip_prefix("file://")).expect("a file").to_owned();
    let text = std::fs::read_to_string(path).expect("it is there");
    let line = place["range"]["start"]["line"].as_u64().and_then(|l| text.lines().nth(l as usize));
    assert!(line.is_some_and(|l| l.starts_with("def linear_init")), "{line:?}");
}

#[test]
fn calls_lead_to_each_other() {
    let mut s = session();
    let at = s.at("def apply", 0, 5);
    let item = s.ask_at("textDocument/prepareCallHierarchy", at, json!({}))[0].clone();
    assert_eq!(item["name"], "apply");
    let incoming = s.editor.ask("callHierarchy/incomingCalls", json!({"item": item}));
    assert_eq!(incoming[0]["from"]["name"], "main");
    let at = s.at("def test_mean", 0, 5);
    let item = s.ask_at("textDocument/prepareCallHierarchy", at, json!({}))[0].clone();
    let outgoing = s.editor.ask("callHierarchy/outgoingCalls", json!({"item": item}));
    assert_eq!((&outgoing[0]["to"]["name"], outgoing.as_array().map(Vec::len)), (&json!("mean_of"), Some(1)));
}

#[test]
fn names_are_changed_wherever_they_stand() {
    let mut s = session();
    let uri = s.uri("main.tsr");
    let edits_of = |s: &mut Session, needle: &str, further: usize| {
        let at = s.at(needle, 0, further);
        let name = if needle.starts_with('N') { "Rows" } else { "renamed" };
        let edit = s.ask_at("textDocument/rename", at, json!({"newName": name}));
        edit["changes"][&uri].as_array().map_or(0, Vec::len)
    };
    assert_eq!(edits_of(&mut s, "scale=3", 0), 3, "a parameter, its use and the call that names it");
    assert_eq!(edits_of(&mut s, "b: Tensor", 0), 3, "a field, its use and the call that names it");
    assert_eq!(edits_of(&mut s, "N, D, f32]) ->", 0), 2);
    assert_eq!(edits_of(&mut s, "def apply", 4), 2);
    let at = s.at("op.relu", 0, 4);
    let params = json!({"textDocument": s.document(), "position": at});
    let refused = s.editor.response("textDocument/prepareRename", params);
    assert!(refused.response_result.is_err_and(|e| e.message == "`relu` is built in"));
    let at = s.at("def apply", 0, 4);
    for (name, why) in [
        ("2x", "`2x` is no name"),
        ("for", "`for` is a word of the language"),
        ("mean_of", "something else"),
        ("print", "`print` is built in"),
        ("N", "`N` is a size"),
    ] {
        let params = json!({"textDocument": s.document(), "position": at, "newName": name});
        let refused = s.editor.response("textDocument/rename", params);
        assert!(refused.response_result.is_err_and(|e| e.message.contains(why)), "{name}");
    }
}

#[test]
fn what_fits_is_offered() {
    let mut s = session();
    let uri = s.uri("main.tsr");
    // The text up to a place, a line typed so far, and what follows.
    let offered = |s: &mut Session, typed: &str| -> Vec<String> {
        s.text = format!("{TEXT}{typed}");
        let change = json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": s.text}]});
        s.editor.tell("textDocument/didChange", change);
        let at = position(&s.text, s.text.len());
        let items = s.ask_at("textDocument/completion", at, json!({}));
        labels(&items).into_iter().map(str::to_owned).collect()
    };
    assert!(offered(&mut s, "z.").contains(&"reshape".to_owned()));
    assert!(offered(&mut s, "w = apply(layer, z).").contains(&"mean".to_owned()));
    assert_eq!(offered(&mut s, "layer."), ["w", "b"]);
    assert_eq!(offered(&mut s, "print(layer."), ["w", "b"]);
    assert_eq!(offered(&mut s, "for i in [layer."), ["w", "b"]);
    assert_eq!(offered(&mut s, "parts."), ["side", "twice"]);
    assert!(offered(&mut s, "op.soft").contains(&"softmax".to_owned()));
    assert!(offered(&mut s, "nn.").contains(&"linear".to_owned()));
    assert!(offered(&mut s, "\"a b\".").contains(&"split".to_owned()));
    assert!(offered(&mut s, "from std import ").contains(&"nn".to_owned()));
    assert!(offered(&mut s, "from std.init import ").contains(&"orthogonal".to_owned()));
    assert!(offered(&mut s, "from parts import ").contains(&"twice".to_owned()));
    let names = offered(&mut s, "mean_of(");
    assert!(["a=", "scale=", "layer", "op", "f32", "print", "while"].iter().all(|n| names.contains(&(*n).to_owned())));
    let inside = offered(&mut s, "def g(first: int):\n    second = first\n    ");
    assert!(["first", "second", "mean_of"].iter().all(|n| inside.contains(&(*n).to_owned())));
    for nowhere in ["# z.", "\"z.", "3.", "def ", "x = 12"] {
        assert_eq!(offered(&mut s, nowhere), [""; 0], "{nowhere}");
    }
}

#[test]
fn calls_show_their_parameters() {
    let mut s = session();
    let uri = s.uri("main.tsr");
    let shown = |s: &mut Session, typed: &str| {
        s.text = format!("{TEXT}{typed}");
        let change = json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": s.text}]});
        s.editor.tell("textDocument/didChange", change);
        let at = position(&s.text, s.text.len());
        let help = s.ask_at("textDocument/signatureHelp", at, json!({}));
        let label = help["signatures"][0]["label"].as_str().unwrap_or("").to_owned();
        (label, help["activeParameter"].as_u64())
    };
    assert_eq!(shown(&mut s, "mean_of("), ("mean_of(a, scale=3)".into(), Some(0)));
    assert_eq!(shown(&mut s, "mean_of(z, "), ("mean_of(a, scale=3)".into(), Some(1)));
    assert_eq!(shown(&mut s, "mean_of(scale=2, a="), ("mean_of(a, scale=3)".into(), Some(0)));
    assert_eq!(shown(&mut s, "mean_of([1, 2, (3, 4)], "), ("mean_of(a, scale=3)".into(), Some(1)));
    assert_eq!(shown(&mut s, "z.sum("), ("Tensor.sum(axis=None, keepdims=False)".into(), Some(0)));
    assert_eq!(shown(&mut s, "Layer(z, "), ("Layer(w: Tensor[D, D, f32], b: Tensor[D, f32])".into(), Some(1)));
    assert_eq!(shown(&mut s, "mean_of(z)"), (String::new(), None));
    // A comma of a lambda is none of the call; what is named already is not asked for again.
    let jvp = "autodiff.jvp(f, primals, tangents) -> tuple";
    assert_eq!(shown(&mut s, "autodiff.jvp(lambda a, b: a * b, "), (jvp.into(), Some(1)));
    assert_eq!(shown(&mut s, "autodiff.jvp(lambda a, "), (jvp.into(), Some(0)));
    assert_eq!(shown(&mut s, "autodiff.jvp(primals=(z,), f=mean_of, "), (jvp.into(), Some(2)));
    let print = "print(*values, sep=\" \", end=\"\\n\") -> None";
    assert_eq!(shown(&mut s, "print(1, 2, 3"), (print.into(), Some(0)));
    assert_eq!(shown(&mut s, "print(1, end="), (print.into(), Some(2)));
    assert_eq!(shown(&mut s, "held = lambda x, k=2: x * k\nheld(1, "), ("held(x, k=2)".into(), Some(1)));
}

#[test]
fn types_stand_between_the_words() {
    let mut s = session();
    let whole = json!({"range": {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}});
    let all = s.ask("textDocument/inlayHint", whole);
    let shown: Vec<String> = labels(&all).into_iter().map(str::to_owned).collect();
    for hint in [": Tensor[N, D, f32]", ": Layer", ": Tensor[8, 4, f32]"] {
        assert!(shown.contains(&hint.to_owned()), "{hint} in {shown:?}");
    }
    let at = s.at("y = x", 0, 0);
    let actions =
        s.ask("textDocument/codeAction", json!({"range": {"start": at, "end": at}, "context": {"diagnostics": []}}));
    assert_eq!(actions[0]["title"], "write the type `Tensor[N, D, f32]`");
}

#[test]
fn a_text_has_an_outline_folds_colours_and_a_form() {
    let mut s = session();
    let outline = s.ask("textDocument/documentSymbol", json!({}));
    let names: Vec<&str> = outline.as_array().map_or(vec![], |a| a.iter().filter_map(|e| e["name"].as_str()).collect());
    assert_eq!(names, ["Layer", "apply", "mean_of", "test_mean", "layer", "z", "q"]);
    assert_eq!(outline[0]["children"].as_array().map(Vec::len), Some(2));
    let found = s.editor.ask("workspace/symbol", json!({"query": "twc"}));
    assert_eq!(found[0]["name"], "twice");
    let folds = s.ask("textDocument/foldingRange", json!({}));
    let folded: Vec<(u64, u64)> = folds.as_array().map_or(vec![], |all| {
        all.iter().filter_map(|f| Some((f["startLine"].as_u64()?, f["endLine"].as_u64()?))).collect()
    });
    assert!([(0, 1), (3, 6), (9, 16), (10, 14)].iter().all(|f| folded.contains(f)), "{folded:?}");
    let at = s.at("layer.w", 0, 6);
    let selection = s.ask("textDocument/selectionRange", json!({"positions": [at]}));
    let parent = selection[0]["parent"]["range"].clone();
    assert_eq!(parent, json!({"start": s.at("layer.w", 0, 0), "end": s.at("layer.w", 0, 7)}));
    // Tokens follow each other.
    let tokens = s.ask("textDocument/semanticTokens/full", json!({}));
    let data: Vec<u64> = tokens["data"].as_array().map_or(vec![], |d| d.iter().filter_map(Value::as_u64).collect());
    assert!(data.len() > 300 && data.chunks(5).all(|t| t[2] > 0 && t[3] < 15), "{}", data.len());
    // What has changed of them is one part.
    let changed = |s: &mut Session, since: &Value| {
        let found = s.ask("textDocument/semanticTokens/full/delta", json!({"previousResultId": since}));
        (found["resultId"].clone(), found["edits"].clone(), found["data"].clone())
    };
    let (same, edits, _) = changed(&mut s, &tokens["resultId"]);
    assert_eq!(edits, json!([]));
    let (uri, start) = (s.uri("main.tsr"), json!({"line": 0, "character": 0}));
    let typed = json!({"range": {"start": start, "end": start}, "text": "# new\n"});
    s.editor
        .tell("textDocument/didChange", json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [typed]}));
    let (_, edits, _) = changed(&mut s, &same);
    let mut replayed = data.clone();
    for e in edits.as_array().expect("edits") {
        let (from, count) =
            (e["start"].as_u64().expect("a start") as usize, e["deleteCount"].as_u64().expect("a count"));
        let new = e["data"].as_array().map_or(vec![], |d| d.iter().filter_map(Value::as_u64).collect());
        replayed.splice(from..from + count as usize, new);
    }
    let (_, _, all) = changed(&mut s, &json!("no such answer"));
    let all: Vec<u64> = all.as_array().map_or(vec![], |d| d.iter().filter_map(Value::as_u64).collect());
    assert!(edits.as_array().map(Vec::len) == Some(1) && all.len() == data.len() + 5 && replayed == all, "{edits}");
    let back = json!({"textDocument": {"uri": uri, "version": 3}, "contentChanges": [{"text": s.text}]});
    s.editor.tell("textDocument/didChange", back);
    let part = s.ask(
        "textDocument/semanticTokens/range",
        json!({"range": {"start": {"line": 3, "character": 0}, "end": {"line": 5, "character": 0}}}),
    );
    assert!(part["data"].as_array().is_some_and(|d| d.len() < data.len() && !d.is_empty()));
    let lenses = s.ask("textDocument/codeLens", json!({}));
    let titles: Vec<&str> =
        lenses.as_array().map_or(vec![], |l| l.iter().filter_map(|l| l["command"]["title"].as_str()).collect());
    assert_eq!(titles, ["▶ run", "▶ examples", "▶ test"]);
    let uri = s.uri("main.tsr");
    let change =
        json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "x=1\ny = 2\nz=[1,2]\n"}]});
    s.editor.tell("textDocument/didChange", change);
    let options = json!({"options": {"tabSize": 4, "insertSpaces": true}});
    let edits = s.ask("textDocument/formatting", options.clone());
    assert_eq!(edits.as_array().map(Vec::len), Some(2));
    let mut part = options;
    part["range"] = json!({"start": {"line": 2, "character": 0}, "end": {"line": 2, "character": 1}});
    let edits = s.ask("textDocument/rangeFormatting", part);
    assert_eq!((edits.as_array().map(Vec::len), &edits[0]["newText"]), (Some(1), &json!("z = [1, 2]\n")));
}

#[test]
fn of_many_names_those_are_offered_that_fit_what_is_typed() {
    let mut text: String = (0..1000).map(|i| format!("def f{i}(x: int) -> int:\n    return x\n\n\n")).collect();
    text.push_str("print(f999)\nprint()\n");
    let mut s = session_of(&text, json!({}));
    let found = s.ask_at("textDocument/completion", s.at("print()", 0, 6), json!({}));
    assert_eq!(found["isIncomplete"], json!(true));
    let offered = labels(&found["items"]);
    assert!(offered.len() < 600 && ["f0", "print", "op", "if"].iter().all(|n| offered.contains(n)), "{offered:?}");
    let found = s.ask_at("textDocument/completion", s.at("f999", 1, 4), json!({}));
    let offered = labels(&found["items"]);
    assert!(offered.contains(&"f999") && !offered.contains(&"f998"), "{offered:?}");
}

#[test]
fn what_is_no_message_is_answered_and_the_next_one_is_read() {
    let mut child = Command::new(tessera_tests::program::binary())
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("its input is ours");
    let mut say = |body: &[u8]| {
        stdin.write_all(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes()).expect("it reads");
        stdin.write_all(body).expect("it reads");
    };
    let text = |message: Value| message.to_string().into_bytes();
    say(&text(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}})));
    say(&text(json!({"jsonrpc": "2.0", "method": "initialized", "params": {}})));
    say(b"{\"jsonrpc\":");
    say(b"\xff\xfe");
    say(b"");
    say(b"[1, 2]");
    say(&text(json!({"jsonrpc": "2.0", "id": 5_000_000_000_u64, "method": "shutdown"})));
    say(&vec![b' '; (256 << 20) + 1]);
    say(&text(json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"})));
    say(&text(json!({"jsonrpc": "2.0", "method": "exit"})));
    let out = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let count = |part: &str| said.matches(part).count();
    assert_eq!((count("-32700"), count("-32600"), count("\"id\":5000000000,")), (3, 3, 1), "{said}");
    assert!(said.contains("\"id\":2,\"result\":null"), "{said}");
}

#[test]
fn a_length_that_nothing_can_have_ends_no_server() {
    for header in ["Content-Length: 999999999999\r\n\r\n{}", "Content-Length: -1\r\n\r\n", "no header\r\n", "Content-"]
    {
        let dir = tempfile::tempdir().expect("a folder");
        let r = tessera_tests::program::run_in(dir.path(), &["lsp"], header).expect("it ends");
        assert!(
            r.code == 1 && r.err.contains("E0706") && !r.err.contains("panicked"),
            "{header:?}: {} {}",
            r.code,
            r.err
        );
    }
}

#[test]
fn programs_tests_and_stages_run_from_the_text_as_it_is() {
    let mut s = session();
    let uri = s.uri("main.tsr");
    let ran = s.editor.ask("workspace/executeCommand", json!({"command": "tessera.runFile", "arguments": [uri]}));
    assert_eq!((&ran["ok"], ran["text"].as_str()), (&json!(true), Some("[12. 12. 12. 12.] 4\n")));
    let ran = s
        .editor
        .ask("workspace/executeCommand", json!({"command": "tessera.runTest", "arguments": [uri, "test_mean"]}));
    assert_eq!(ran["ok"], true, "{ran}");
    let at = s.at("y = x", 0, 0);
    let graph = s.ask_at("tessera/ir", at, json!({"ir": "graph"}));
    assert!(graph["text"].as_str().is_some_and(|t| t.contains("graph.dot") && t.contains("graph.relu")), "{graph}");
    let unknown = json!({"command": "tessera.other", "arguments": [uri]});
    assert!(s.editor.response("workspace/executeCommand", unknown).response_result.is_err());
}

#[test]
fn what_is_compared_when_a_program_runs_stands_beside_it() {
    let text = "x: Tensor[N, f32] = io.read_npy(\"a\")\ny: Tensor[M, f32] = io.read_npy(\"b\")\nz = x + y\n";
    let mut s = session_of(text, json!({}));
    let uri = s.uri("main.tsr");
    assert_eq!(s.editor.diagnostics(&uri), [] as [Value; 0]);
    let line = json!({"range": {"start": {"line": 2, "character": 0}, "end": {"line": 3, "character": 0}}});
    let all = s.ask("textDocument/inlayHint", line);
    assert_eq!(labels(&all), [": Tensor[N, f32]", "checks N == M"]);
}

/// Sizes of functions above have nothing to do with those of the statements below.
#[test]
fn an_assertion_is_an_action_below_functions_that_have_its_sizes() {
    let text = "struct Box[N, M]:\n    w: Tensor[N, M, f32]\n\n\ndef g(x: Tensor[N, f32], y: Tensor[M, f32]) -> Tensor[N, f32]:\n    return x * y.sum()\n\n\n\
        x: Tensor[N, f32] = io.read_npy(\"a\")\ny: Tensor[M, f32] = io.read_npy(\"b\")\nz = x + y\n";
    let mut s = session_of(text, json!({}));
    let uri = s.uri("main.tsr");
    let range = json!({"start": {"line": 10, "character": 0}, "end": {"line": 10, "character": 9}});
    let all = s.ask("textDocument/codeAction", json!({"range": range, "context": {"diagnostics": []}}));
    assert_eq!(all[0]["title"], "add `assert N == M`, which proves this", "{all}");
    assert_eq!(all[0]["edit"]["changes"][&uri][0]["newText"], "assert N == M\n");
}

#[test]
fn an_assertion_that_proves_what_is_open_is_an_action() {
    let text = "x: Tensor[N, f32] = io.read_npy(\"a\")\ny: Tensor[M, f32] = io.read_npy(\"b\")\nz = x + y\n\n\n\
        def heads(x: Tensor[B, D, f32], H: int):\n    return x.reshape(B, H, D // H)\n";
    let mut s = session_of(text, json!({}));
    let uri = s.uri("main.tsr");
    for (line, kind, title, edit) in [
        (2, "refactor.rewrite", "add `assert N == M`, which proves this", "assert N == M\n"),
        (6, "quickfix", "add `assert D % H == 0`, which proves this", "assert D % H == 0\n    "),
    ] {
        let range = json!({"start": {"line": line, "character": 0}, "end": {"line": line, "character": 30}});
        let all = s.ask("textDocument/codeAction", json!({"range": range, "context": {"diagnostics": []}}));
        let all = all.as_array().cloned().unwrap_or_default();
        let action = all.iter().find(|a| a["title"] == title).unwrap_or_else(|| panic!("{title} in {all:?}"));
        assert_eq!((&action["kind"], &action["edit"]["changes"][&uri][0]["newText"]), (&json!(kind), &json!(edit)));
    }
}

/// A mesh, an update, and a size that nothing says.
const MESH: &str = r#"mesh = dist.Mesh(axes=["tp"], devices=range(4))


def mixed(x: Tensor[N, D, f32], w: Tensor[D, K, f32]) -> Tensor[N, 1, f32]:
    y = op.relu(x @ w)
    return y.sum(axis=1, keepdims=True)


def update(c: Tensor[N, f32], i: int) -> Tensor[N, f32]:
    c[i] = 1.0
    return c


def split(x: Tensor[N, D@tp, f32], w: Tensor[D@tp, K, f32]) -> Tensor[N, K, f32]:
    y = dist.collective.all_reduce(x @ w, axis="tp")
    return op.relu(y)


def open_size(x: Tensor[Z, f32]) -> Tensor[Z, f32]:
    return op.exp(x) * 2.0


print(mixed(op.ones((8, 4)), op.ones((4, 16))), update(op.ones((8,)), 3))
x = dist.shard(op.ones((64, 256)), dist.ShardSpec(partition=("col",), mesh_axes=("tp",)), mesh=mesh)
w = dist.shard(op.ones((256, 128)), dist.ShardSpec(partition=("row",), mesh_axes=("tp",)), mesh=mesh)
print(split(x, w))
"#;

impl Session {
    /// What hover says once the compiler has looked at the function.
    fn hover_known(&mut self, needle: &str, further: usize) -> String {
        let begun = Instant::now();
        loop {
            let text = self.hover(needle, 0, further);
            if !text.contains("is being found out") {
                return text;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn what_becomes_of_a_line_is_told_where_it_stands() {
    let mut s = session_of(MESH, json!({}));
    let line = s.hover_known("x @ w", 2);
    for part in ["at N=8 D=4 K=16, as line 23 calls it", "dot: Tensor[8, 16, f32], 512 B, 1024 flops", "computed by"] {
        assert!(line.contains(part), "{part} in {line}");
    }
    let whole = s.hover_known("mixed(x:", 0);
    assert!(whole.contains("2 kernels: reads") && whole.contains("memory: arguments"), "{whole}");
    assert!(whole.contains("dot and ") && whole.contains("are apart"), "{whole}");
    let open = s.hover_known("op.exp(x)", 4);
    assert!(open.contains("at Z=8: small sizes, as no call of the program says them"), "{open}");
    let split = s.hover_known("dist.collective.all_reduce", 17);
    assert!(split.contains("an exchange: device 0 sends"), "{split}");
    s.hover_known("c[i]", 1);
    // At the ends of their lines.
    let all = s.ask(
        "textDocument/inlayHint",
        json!({"range": {"start": {"line": 0, "character": 0}, "end": {"line": 25, "character": 0}}}),
    );
    let of_line = |line: u64| -> Vec<&str> {
        let all = all.as_array().map_or(&[][..], Vec::as_slice);
        let here = all.iter().filter(|h| h["position"]["line"] == line && h["kind"] != 1);
        here.filter_map(|h| h["label"].as_str()).collect()
    };
    assert_eq!(of_line(9), ["in place"]);
    assert!(of_line(14).iter().any(|l| l.contains("tp") && l.ends_with("KiB")), "{all}");
    // Lines above it change nothing, and the function itself does.
    let uri = s.uri("main.tsr");
    s.text = format!("# a line more\n{MESH}");
    let change = |text: &str, version: i32| json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]});
    s.editor.tell("textDocument/didChange", change(&s.text, 2));
    assert!(s.hover("x @ w", 0, 2).contains("1024 flops"));
    s.text = MESH.replace("relu(x @ w)", "exp(x @ w)");
    s.editor.tell("textDocument/didChange", change(&s.text, 3));
    assert!(s.hover("x @ w", 0, 2).contains("is being found out"));
    assert!(s.hover_known("x @ w", 2).contains("exp: Tensor"));
    assert_eq!(s.editor.leave(), Some(0));
}

/// Functions that call each other: sizes come from far, through a derivative too.
const CALLS: &str = r#"mesh = dist.Mesh(axes=["tp"], devices=range(4))


def inner(x: Tensor[N, D, f32], w: Tensor[D, D, f32]) -> Tensor[N, D, f32]:
    return op.relu(x @ w)


def outer(x: Tensor[N, D, f32], w: Tensor[D, D, f32]) -> Tensor[N, D, f32]:
    y = inner(x, w)
    return y + 1.0


def loss(w: Tensor[K, K, f32], x: Tensor[M, K, f32]):
    return outer(x, w).sum()


def split(x: Tensor[N, D@tp, f32], w: Tensor[D@tp, K, f32]) -> Tensor[N, K, f32]:
    return dist.collective.all_reduce(x @ w, axis="tp")


def calls_split(x: Tensor[N, D@tp, f32], w: Tensor[D@tp, K, f32]) -> Tensor[N, K, f32]:
    z = split(x, w)
    return op.relu(z)


w = op.ones((16, 16))
print(autodiff.grad(loss)(w, op.ones((8, 16))))
x = dist.shard(op.ones((64, 256)), dist.ShardSpec(partition=("col",), mesh_axes=("tp",)), mesh=mesh)
w = dist.shard(op.ones((256, 128)), dist.ShardSpec(partition=("row",), mesh_axes=("tp",)), mesh=mesh)
print(calls_split(x, w))
"#;

#[test]
fn hover_on_a_call_tells_what_it_computes() {
    let mut s = session_of(CALLS, json!({}));
    let line = s.hover_known("y = inner", 0);
    for part in
        ["at N=8 D=16, as line 14 calls it", "dot: Tensor[8, 16, f32], 512 B, 4096 flops, in line 5", "computed by"]
    {
        assert!(line.contains(part), "{part} in {line}");
    }
    let line = s.hover_known("@ w)\n", 0);
    assert!(
        line.contains("at N=8 D=16, as line 9 calls it") && line.contains("summed in f32 over 16 positions"),
        "{line}"
    );
    let line = s.hover_known("outer(x, w).sum", 13);
    assert!(line.contains("at K=16 M=8, as line 27 calls it"), "{line}");
    let line = s.hover_known("z = split", 0);
    assert!(line.contains("an exchange: device 0 sends"), "{line}");
    s.hover_known("dist.collective.all_reduce", 17);
    let hints = s.ask(
        "textDocument/inlayHint",
        json!({"range": {"start": {"line": 0, "character": 0}, "end": {"line": 25, "character": 0}}}),
    );
    let hints = hints.as_array().map_or(&[][..], Vec::as_slice);
    let tp = |h: &&Value| h["label"].as_str().is_some_and(|l| l.contains(" tp "));
    let lines: std::collections::BTreeSet<_> =
        hints.iter().filter(tp).filter_map(|h| h["position"]["line"].as_u64()).collect();
    assert_eq!(lines.into_iter().collect::<Vec<_>>(), [17, 21], "{hints:?}");
    assert_eq!(s.editor.leave(), Some(0));
}

/// Texts at which the server was wrong once.
#[test]
fn small_texts_that_were_answered_wrongly() {
    // A size of an annotation at the top of a file is a name of the file.
    let text = "t: Tensor[A, 2, f32] = io.read_npy(\"a\")\nprint(A)\n";
    let mut s = session_of(text, json!({}));
    let at = s.at("print(A", 0, 6);
    assert_eq!(s.lines("textDocument/definition", at.clone(), json!({})), [0]);
    let edit = s.ask_at("textDocument/rename", at, json!({"newName": "Rows"}));
    assert_eq!(edit["changes"][s.uri("main.tsr")].as_array().map(Vec::len), Some(2));
    // What an import calls something is renamed in that file alone.
    let text = "from parts import twice as double\nprint(double(2))\n";
    let mut s = session_of(text, json!({}));
    let at = s.at("double", 1, 0);
    let edit = s.ask_at("textDocument/rename", at, json!({"newName": "again"}));
    assert_eq!(edit["changes"].as_object().map(|c| c.len()), Some(1));
    assert_eq!(edit["changes"][s.uri("main.tsr")].as_array().map(Vec::len), Some(2));
    // Fields stand in places that are assigned to, too, and functions that variables hold have parameters.
    let text = "struct P:\n    a: int\n    b: int\n\nps = [P(a=1, b=2)]\nps[0].a = 5\np = ps[0]\np.a, p.b = 1, 2\n\
                for p.a in [1, 2]:\n    print(p.a)\nf = lambda x, scale=2: x * scale\nprint(f(1, scale=3), autodiff.grad(f)(op.ones(()), scale=2))\n";
    let mut s = session_of(text, json!({}));
    for (needle, further, places) in [("a: int", 0, 6), ("scale=2:", 0, 4)] {
        let at = s.at(needle, 0, further);
        let edit = s.ask_at("textDocument/rename", at, json!({"newName": "renamed"}));
        assert_eq!(edit["changes"][s.uri("main.tsr")].as_array().map(Vec::len), Some(places), "{needle}: {edit}");
    }
    // A line may end with a carriage return alone.
    let mut s = session_of("x = \"\"\"aaaa\r\"\"\"\n", json!({}));
    let tokens = s.ask("textDocument/semanticTokens/full", json!({}));
    let data: Vec<u64> = tokens["data"].as_array().map_or(vec![], |d| d.iter().filter_map(Value::as_u64).collect());
    assert!(data.chunks(5).all(|t| t[2] > 0 && t[2] < 20), "{data:?}");
    // A module that is opened after it was missed, and a file that is asked for without being open.
    let mut s = session_of("import notyet\nprint(notyet.q)\n", json!({}));
    let uri = s.uri("main.tsr");
    assert_eq!(s.editor.diagnostics(&uri).len(), 1);
    let missed = s.uri("notyet.tsr");
    s.editor.open(&missed, "q = 1\n");
    assert_eq!(s.editor.diagnostics(&uri), [] as [Value; 0]);
    std::fs::write(s.folder.path().join("wrong.tsr"), "def f(x: int) -> str:\n    return x\n").expect("a file");
    let wrong = json!({"textDocument": {"uri": s.uri("wrong.tsr")}});
    let pulled = s.editor.ask("textDocument/diagnostic", wrong);
    assert_eq!(pulled["items"][0]["code"], "E0204");
}

#[test]
fn what_is_no_request_is_refused_and_the_server_lives() {
    let mut s = session();
    for (method, params) in [
        ("textDocument/nothing", json!({})),
        ("textDocument/hover", json!({"textDocument": 3})),
        ("textDocument/hover", json!(null)),
        (
            "textDocument/hover",
            json!({"textDocument": {"uri": "file:///none/such.tsr"}, "position": {"line": 0, "character": 0}}),
        ),
        ("textDocument/documentSymbol", json!({"textDocument": {"uri": "not an address"}})),
    ] {
        assert!(s.editor.response(method, params).response_result.is_err(), "{method}");
    }
    s.editor.tell("textDocument/didChange", json!([1, 2]));
    s.editor.tell("no/such", json!(null));
    // Positions that are nowhere are the nearest ones.
    let uri = s.uri("main.tsr");
    let far = json!({"line": 4_000_000, "character": 4_000_000});
    let change = json!({"range": {"start": far, "end": {"line": 0, "character": 0}}, "text": "# end\n"});
    let params = json!({"textDocument": {"uri": uri, "version": 9}, "contentChanges": [change]});
    s.editor.tell("textDocument/didChange", params);
    s.text.push_str("# end\n");
    assert!(s.hover("y = x", 0, 0).contains("Tensor[N, D, f32]"));
    assert_eq!(s.editor.vanish(), Some(1), "a client that goes without a word");
}

#[test]
fn columns_are_counted_as_the_client_says() {
    let text = "s = '𝔘é'\r\nt = s + '!'\r\nprint('𝔘', t)\r\n";
    for (encodings, units) in [(json!([]), "utf-16"), (json!(["utf-16", "utf-8"]), "utf-8")] {
        let initialize = json!({"capabilities": {"general": {"positionEncodings": encodings}}});
        let mut s = session_of(text, initialize);
        assert_eq!(s.editor.capabilities["positionEncoding"], units);
        let column = if units == "utf-8" { 14 } else { 12 };
        let found = s.ask_at("textDocument/hover", json!({"line": 2, "character": column}), json!({}));
        assert!(found["contents"]["value"].as_str().is_some_and(|t| t.contains("t: str")), "{units}: {found}");
        assert_eq!(found["range"]["start"]["character"], column);
    }
}
