//! The language server and what is around it: files that come, go, move and are no texts, several clients, programs that run.

use lsp_server::{Message, RequestId};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tessera_tests::editor::{Editor, position};
use tessera_tests::program::run_in;

struct World {
    folder: TempDir,
}

impl World {
    fn of(files: &[(&str, &str)]) -> World {
        let world = World { folder: tempfile::tempdir().expect("a folder") };
        files.iter().for_each(|(path, text)| world.write(path, text.as_bytes()));
        world
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }

    fn editor(&self) -> Editor {
        Editor::start(self.folder.path(), json!({}))
    }

    fn uri(&self, file: &str) -> String {
        format!("file://{}/{file}", self.folder.path().display())
    }

    /// The codes of what is wrong with a file.
    fn codes(&self, editor: &mut Editor, file: &str) -> Vec<String> {
        let found = editor.ask("textDocument/diagnostic", json!({"textDocument": {"uri": self.uri(file)}}));
        let items = found["items"].as_array().cloned().unwrap_or_default();
        items.iter().filter_map(|d| Some(d["code"].as_str()?.to_owned())).collect()
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(file)).expect("a file")
    }
}

/// A text with edits of the protocol.
fn edited(text: &str, edits: &Value) -> String {
    let byte = |at: &Value| {
        let line = at["line"].as_u64().expect("a line") as usize;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        start + at["character"].as_u64().expect("a column") as usize
    };
    let mut edits = edits.as_array().cloned().unwrap_or_default();
    edits.sort_by_key(|e| std::cmp::Reverse(byte(&e["range"]["start"])));
    let mut out = text.to_owned();
    let mut next = text.len();
    for e in edits {
        let range = byte(&e["range"]["start"])..byte(&e["range"]["end"]);
        assert!(range.end <= next, "edits may not overlap: {e}");
        next = range.start;
        out.replace_range(range, e["newText"].as_str().expect("a text"));
    }
    out
}

const ENDLESS: &str = "n = 0\nwhile n >= 0:\n    n = (n + 1) % 7\n";

/// Processes that work for another one.
fn working_for(process: u32) -> usize {
    let wanted = format!("TESSERA_WORKS_FOR={process}");
    let works = |path: &Path| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|v| v == wanted.as_bytes())
    };
    let all = std::fs::read_dir("/proc").expect("processes");
    all.flatten().filter(|e| works(&e.path())).count()
}

fn wait_for(process: u32, count: usize) {
    let begun = Instant::now();
    while working_for(process) != count {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} processes run", working_for(process));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An editor in which a program runs that has no end.
fn running(world: &World) -> (Editor, RequestId) {
    let mut editor = world.editor();
    let uri = world.uri("endless.tsr");
    editor.open(&uri, ENDLESS);
    let id = RequestId::from("run".to_owned());
    editor.begin(id.clone(), "workspace/executeCommand", json!({"command": "tessera.runFile", "arguments": [uri]}));
    wait_for(editor.process(), 1);
    (editor, id)
}

#[test]
fn programs_end_with_whoever_asked_for_them() {
    let world = World::of(&[("endless.tsr", ENDLESS)]);
    // Cancelled: the server is asked other things meanwhile, and lives on.
    let (mut editor, id) = running(&world);
    assert_eq!(world.codes(&mut editor, "endless.tsr"), [""; 0]);
    editor.tell("$/cancelRequest", json!({"id": "run"}));
    let code = editor.answered(id).response_result.expect_err("it is cancelled").code;
    assert_eq!((code, working_for(editor.process())), (-32800, 0));
    assert_eq!(world.codes(&mut editor, "endless.tsr"), [""; 0]);
    // The client says goodbye, or goes without a word.
    let process = editor.process();
    assert_eq!((editor.leave(), working_for(process)), (Some(0), 0));
    let (editor, _) = running(&world);
    let process = editor.process();
    assert_eq!((editor.leave(), working_for(process)), (Some(0), 0));
    let (editor, _) = running(&world);
    let process = editor.process();
    assert_eq!((editor.vanish(), working_for(process)), (Some(1), 0));
    // The server is killed: nobody is there who could end what it runs.
    let (editor, _) = running(&world);
    let process = editor.process();
    drop(editor);
    wait_for(process, 0);
}

#[test]
fn a_line_that_is_begun_is_as_deep_as_those_above_say() {
    let text = "def f(x: int) -> int:\n\n    if x > 1:\n        return x\n        \n    return g(\n)\n";
    let world = World::of(&[("main.tsr", text)]);
    let mut editor = world.editor();
    let uri = world.uri("main.tsr");
    editor.open(&uri, text);
    let mut at = |line: usize| {
        let options = json!({"tabSize": 4, "insertSpaces": true});
        let params = json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": 0}, "ch": "\n", "options": options});
        editor.ask("textDocument/onTypeFormatting", params)
    };
    let edit = |line: usize, from: usize, to: usize, text: &str| {
        let at = |column: usize| json!({"line": line, "character": column});
        json!([{"range": {"start": at(from), "end": at(to)}, "newText": text}])
    };
    assert_eq!(at(1), edit(1, 0, 0, "    "));
    // Behind an empty line it stays where it is.
    assert_eq!(at(2), json!([]));
    assert_eq!(at(3), json!([]));
    assert_eq!(at(4), edit(4, 0, 8, "    "));
    assert_eq!(at(6), edit(6, 0, 0, "    "));
    assert_eq!(at(0), json!([]));
    assert_eq!(at(99), json!([]));
}

#[test]
fn imports_follow_files_that_move() {
    let world = World::of(&[
        ("parts.tsr", "side = 4\n\nstruct Box:\n    size: int\n"),
        ("lib/shapes.tsr", "import near\n\nround = near.one\n"),
        ("lib/near.tsr", "one = 1\n"),
        (
            "main.tsr",
            "import parts\nimport lib.shapes\nimport lib.near as near\nfrom lib.shapes import round\n\n\n\
             def f(b: parts.Box) -> int:\n    return b.size + parts.side\n\n\n\
             print(f(parts.Box(2)), lib.shapes.round, near.one, round)\n",
        ),
        ("other.tsr", "from parts import side\n\nboxes = side\nprint(boxes)\n"),
        ("taken.tsr", "import parts\n\nboxes = parts.side\nprint(boxes)\n"),
    ]);
    let mut editor = world.editor();
    let files = ["main.tsr", "other.tsr", "taken.tsr", "lib/shapes.tsr"];
    // An editor has one of them open.
    editor.open(&world.uri("main.tsr"), &world.text("main.tsr"));
    let mut run = |from: &str, to: &str| -> Vec<(String, String)> {
        let moved = json!({"files": [{"oldUri": world.uri(from), "newUri": world.uri(to)}]});
        let changes = editor.ask("workspace/willRenameFiles", moved)["changes"].clone();
        files.map(|f| (f.to_owned(), edited(&world.text(f), &changes[world.uri(f)]))).to_vec()
    };
    let of = |all: &[(String, String)], file: &str| {
        all.iter().find(|(f, _)| f == file).map(|(_, t)| t.clone()).expect("a file")
    };
    let all = run("parts.tsr", "boxes.tsr");
    assert_eq!(of(&all, "main.tsr"), world.text("main.tsr").replace("parts", "boxes"));
    assert_eq!(of(&all, "other.tsr"), world.text("other.tsr").replace("parts", "boxes"));
    assert_eq!(of(&all, "taken.tsr"), world.text("taken.tsr").replace("import parts", "import boxes as parts"));
    let all = run("parts.tsr", "lib/boxes.tsr");
    assert_eq!(of(&all, "main.tsr"), world.text("main.tsr").replace("parts", "lib.boxes"));
    // A folder: what lies in it finds each other as before.
    let all = run("lib", "low");
    assert_eq!(of(&all, "main.tsr"), world.text("main.tsr").replace("lib.", "low."));
    assert_eq!(of(&all, "lib/shapes.tsr"), world.text("lib/shapes.tsr"));
    // Where a file cannot be imported from, nothing is written.
    for to in ["../outside.tsr", "no name.tsr", "lib/for.tsr", "parts.txt"] {
        let all = run("parts.tsr", to);
        assert!(all.iter().all(|(f, text)| *text == world.text(f)), "{to}");
    }
    // When it has moved, the programs are right.
    let all = run("lib", "low");
    std::fs::rename(world.folder.path().join("lib"), world.folder.path().join("low")).expect("it moves");
    let main = of(&all, "main.tsr");
    editor.tell(
        "textDocument/didChange",
        json!({"textDocument": {"uri": world.uri("main.tsr"), "version": 2}, "contentChanges": [{"text": main}]}),
    );
    editor.tell("workspace/didChangeWatchedFiles", json!({"changes": []}));
    assert_eq!(world.codes(&mut editor, "main.tsr"), [""; 0]);
}

/// `from folder import file`, and a folder that has the name of a file.
#[test]
fn imports_from_folders_follow_files_that_move() {
    let part = "def f(x: int) -> int:\n    return x + 1\n";
    let world = World::of(&[
        ("a/b/c.tsr", part),
        ("a/b/d.tsr", part),
        ("w.tsr", part),
        ("w/v.tsr", part),
        ("one.tsr", "from a.b import c\nimport a.b.c\n\nprint(c.f(1), a.b.c.f(2))\n"),
        ("two.tsr", "from a.b import (c, d as k)  # both\nprint(c.f(1), k.f(2))\n"),
        ("row.tsr", "x = 1; from a.b import c, d; print(c.f(x), d.f(x))\n"),
        ("both.tsr", "import w\nimport w.v\nfrom w import f, v\n\nprint(w.f(1), w.v.f(2), f(3), v.f(4))\n"),
    ]);
    let mut editor = world.editor();
    let files = ["one.tsr", "two.tsr", "row.tsr", "both.tsr"];
    let mut told = String::new();
    for (from, to) in MOVES {
        let moved = json!({"files": [{"oldUri": world.uri(from), "newUri": world.uri(to)}]});
        let changes = editor.ask("workspace/willRenameFiles", moved)["changes"].clone();
        told.push_str(&format!("{from} to {to}\n"));
        let there = tempfile::tempdir().expect("a folder");
        let copied = Command::new("cp").arg("-r").arg(world.folder.path().join(".")).arg(there.path()).status();
        assert!(copied.expect("it is copied").success());
        let target = there.path().join(to);
        std::fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
        std::fs::rename(there.path().join(from), target).expect("it moves");
        for file in files {
            let (old, new) = (world.text(file), edited(&world.text(file), &changes[world.uri(file)]));
            let before = run_in(world.folder.path(), &["run", file], "").expect("it runs");
            std::fs::write(there.path().join(file), &new).expect("it is written");
            let after = run_in(there.path(), &["run", file], "").expect("it runs");
            assert_eq!((after.code, &after.out), (0, &before.out), "{from} to {to}: {new}\n{}", after.err);
            if old != new {
                let imports = new.lines().filter(|l| l.contains("import"));
                told.extend(imports.map(|l| format!("  {l}\n")));
            }
        }
    }
    assert_eq!(told, MOVED);
}

const MOVES: &[(&str, &str)] = &[
    // Another name, another folder, no folder.
    ("a/b/c.tsr", "a/b/e.tsr"),
    ("a/b/c.tsr", "a/c.tsr"),
    ("a/b/c.tsr", "e.tsr"),
    // Folders.
    ("a/b", "g"),
    ("a", "h/a"),
    // The file and not the folder, the folder and not the file.
    ("w.tsr", "u.tsr"),
    ("w", "u"),
    ("w/v.tsr", "w/u.tsr"),
];

/// The imports of files that are written anew after each move.
const MOVED: &str = "\
a/b/c.tsr to a/b/e.tsr
  from a.b import e as c
  import a.b.e
  from a.b import (e as c, d as k)  # both
  x = 1; from a.b import e as c, d; print(c.f(x), d.f(x))
a/b/c.tsr to a/c.tsr
  from a import c
  import a.c
  from a import c
  from a.b import d as k  # both
  x = 1; from a import c; from a.b import d; print(c.f(x), d.f(x))
a/b/c.tsr to e.tsr
  import e as c
  import e
  import e as c
  from a.b import d as k  # both
  x = 1; import e as c; from a.b import d; print(c.f(x), d.f(x))
a/b to g
  from g import c
  import g.c
  from g import (c, d as k)  # both
  x = 1; from g import c, d; print(c.f(x), d.f(x))
a to h/a
  from h.a.b import c
  import h.a.b.c
  from h.a.b import (c, d as k)  # both
  x = 1; from h.a.b import c, d; print(c.f(x), d.f(x))
w.tsr to u.tsr
  import u
  import w.v
  from u import f
  from w import v
w to u
  import w
  import u.v
  from w import f
  from u import v
w/v.tsr to w/u.tsr
  import w
  import w.u
  from w import f, u as v
";

#[test]
fn imports_are_links() {
    let world = World::of(&[("a/b.tsr", "x = 1\n")]);
    let mut editor = world.editor();
    let (uri, text) = (world.uri("main.tsr"), "import a.b as c\nimport std.nn\nimport none\nprint(c.x)\n");
    editor.open(&uri, text);
    let links = editor.ask("textDocument/documentLink", json!({"textDocument": {"uri": uri}}));
    assert_eq!(links.as_array().map(Vec::len), Some(2), "{links}");
    assert_eq!(
        (&links[0]["target"], &links[0]["range"]["end"]["character"]),
        (&json!(world.uri("a/b.tsr")), &json!(10))
    );
    let library = links[1]["target"].as_str().and_then(|u| u.strip_prefix("file://")).expect("a file");
    assert!(Path::new(library).is_file(), "{library}");
}

#[test]
fn two_clients_work_in_one_folder() {
    let text =
        "import std.nn as nn\nw = nn.linear_init(random.key(0), 4, 4)\nprint(op.ones((2, 4)) @ op.ones((4, 4)))\n";
    let world = World::of(&[("main.tsr", text)]);
    let uri = world.uri("main.tsr");
    let mut both = [world.editor(), world.editor()];
    both.iter_mut().for_each(|e| e.open(&uri, text));
    let id = RequestId::from("both".to_owned());
    // Both write the library where it can be opened, and both run what no cache has yet.
    let asked =
        json!({"textDocument": {"uri": uri}, "position": position(text, text.find("linear_init").expect("a name"))});
    both.iter_mut().for_each(|e| e.begin(id.clone(), "textDocument/definition", asked.clone()));
    let mut found = both.each_mut().map(|e| e.answered(id.clone()).response_result.expect("an answer"));
    assert!(found[0][0]["uri"].as_str().is_some_and(|u| u.ends_with("nn.tsr")), "{}", found[0]);
    assert_eq!(found[0], found[1]);
    let command = json!({"command": "tessera.runFile", "arguments": [uri]});
    both.iter_mut().for_each(|e| e.begin(id.clone(), "workspace/executeCommand", command.clone()));
    found = both.each_mut().map(|e| e.answered(id.clone()).response_result.expect("an answer"));
    assert_eq!((&found[0]["ok"], &found[0]), (&json!(true), &found[1]));
    // What one of them has not saved is nothing to the other.
    let change = json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "print(none)\n"}]});
    both[0].tell("textDocument/didChange", change);
    assert_eq!(both.each_mut().map(|e| world.codes(e, "main.tsr").len()), [1, 0]);
    assert_eq!(both.map(Editor::leave), [Some(0), Some(0)]);
}

#[test]
fn files_that_vanish_are_no_texts_or_import_each_other_are_said() {
    let world = World::of(&[
        ("gone.tsr", "x = 1\n"),
        ("ring.tsr", "import link\ny = 1\n"),
        ("link.tsr", "import ring\nz = 1\n"),
        ("main.tsr", "import gone\nprint(gone.x)\n"),
    ]);
    world.write("bytes.tsr", b"x = 1 # \xff\xfe\n");
    let mut editor = world.editor();
    editor.open(&world.uri("main.tsr"), &world.text("main.tsr"));
    assert_eq!(world.codes(&mut editor, "main.tsr"), [""; 0]);
    let gone = world.folder.path().join("gone.tsr");
    std::fs::remove_file(&gone).expect("it is there");
    editor.tell("workspace/didChangeWatchedFiles", json!({"changes": []}));
    assert_eq!(world.codes(&mut editor, "main.tsr"), ["E0102"]);
    world.write("gone.tsr", b"x = 2\n");
    editor.tell("textDocument/didSave", json!({"textDocument": {"uri": world.uri("main.tsr")}}));
    assert_eq!(world.codes(&mut editor, "main.tsr"), [""; 0]);
    // Bytes that are no text: the import says so, and asking for the file itself is refused.
    let text = "import bytes\nprint(bytes.x)\n";
    editor.open(&world.uri("reads.tsr"), text);
    assert_eq!(world.codes(&mut editor, "reads.tsr").len(), 1);
    let params = json!({"textDocument": {"uri": world.uri("bytes.tsr")}});
    assert!(editor.response("textDocument/documentSymbol", params).response_result.is_err());
    // Circles, entered from both ends, and cut by an edit that is not saved.
    for file in ["ring.tsr", "link.tsr"] {
        editor.open(&world.uri(file), &world.text(file));
    }
    // One of them is where the circle is closed.
    let said = ["ring.tsr", "link.tsr"].map(|file| world.codes(&mut editor, file));
    assert_eq!(said.concat().len(), 1, "{said:?}");
    let change =
        json!({"textDocument": {"uri": world.uri("ring.tsr"), "version": 2}, "contentChanges": [{"text": "y = 1\n"}]});
    editor.tell("textDocument/didChange", change);
    for file in ["ring.tsr", "link.tsr"] {
        assert_eq!(world.codes(&mut editor, file), [""; 0], "{file}");
    }
    // The folder itself goes.
    std::fs::remove_dir_all(world.folder.path()).expect("it is there");
    editor.tell("workspace/didChangeWatchedFiles", json!({"changes": []}));
    assert_eq!(world.codes(&mut editor, "main.tsr"), ["E0102"]);
    assert_eq!(editor.leave(), Some(0));
}

#[test]
fn a_text_of_ten_megabytes_is_answered() {
    let world = World::of(&[]);
    let mut editor = world.editor();
    let mut text = String::from("def f(x: Tensor[N, f32]) -> Tensor[N, f32]:\n    y = x * 2.0\n    return y\n\n\n");
    let line = "# 𝔘 a line of a comment that says nothing, and says it at some length\r\n";
    text.push_str(&line.repeat((10 << 20) / line.len()));
    text.push_str("z = f(op.ones((4,)))\r\nprint(z)\r\n");
    let uri = world.uri("large.tsr");
    editor.open(&uri, &text);
    assert_eq!(editor.diagnostics(&uri), [] as [Value; 0]);
    let at = position(&text, text.rfind("print(z)").expect("the end") + 6);
    let hover = editor.ask("textDocument/hover", json!({"textDocument": {"uri": uri}, "position": at}));
    assert!(hover["contents"]["value"].as_str().is_some_and(|t| t.contains("z: Tensor[4, f32]")), "{hover}");
    let change = json!({"range": {"start": at, "end": at}, "text": "z"});
    let document = json!({"uri": uri, "version": 2});
    editor.tell("textDocument/didChange", json!({"textDocument": document, "contentChanges": [change]}));
    let found = editor.diagnostics(&uri);
    assert_eq!((found.len(), &found[0]["range"]["start"]), (1, &at));
    assert_eq!(editor.leave(), Some(0));
}

/// Files in folders inside of folders, imported in every way that Python has.
#[test]
fn files_in_folders_are_imported_by_their_path() {
    let part = "side = 3\n\ndef twice(x: int) -> int:\n    return 2 * x\n";
    let text = "import a.b.c\nimport a.d\nimport a.b.c as m\nfrom a.b import c\nfrom a.b.c import side\nfrom a import d as e\n\
                print(a.b.c.twice(a.d.side), m.side, c.twice(1), side, e.twice(2))\n";
    let world = World::of(&[("a/b/c.tsr", part), ("a/d.tsr", part), ("main.tsr", text)]);
    let mut editor = world.editor();
    let uri = world.uri("main.tsr");
    editor.open(&uri, text);
    assert_eq!(world.codes(&mut editor, "main.tsr"), [""; 0]);
    let document = json!({"uri": uri});
    let mut at = |needle: &str, further: usize, method: &str| {
        let byte = text.find(needle).expect("it is there") + further;
        editor.ask(method, json!({"textDocument": document, "position": position(text, byte)}))
    };
    let labels = |found: Value| -> Vec<String> {
        let items = found["items"].as_array().or(found.as_array()).cloned().unwrap_or_default();
        items.iter().filter_map(|i| Some(i["label"].as_str()?.to_owned())).collect()
    };
    assert_eq!(labels(at("a.b.c.twice", 2, "textDocument/completion")), ["b", "d"]);
    assert_eq!(labels(at("a.b.c.twice", 4, "textDocument/completion")), ["c"]);
    assert_eq!(labels(at("a.b.c.twice", 6, "textDocument/completion")), ["side", "twice"]);
    for (needle, further) in [("a.b.c.twice", 7), ("c.twice(1)", 3), ("m.side", 3), ("e.twice", 3)] {
        let found = at(needle, further, "textDocument/definition");
        let place = found.as_array().and_then(|all| all.first()).cloned().unwrap_or(found);
        let target = place["uri"].as_str().or(place["targetUri"].as_str()).unwrap_or("").to_owned();
        let file = if needle == "e.twice" { "a/d.tsr" } else { "a/b/c.tsr" };
        assert!(target.ends_with(file), "{needle}: {place}");
    }
    let ran = run_in(world.folder.path(), &["run", "main.tsr"], "").expect("it runs");
    assert_eq!((ran.code, ran.out.trim(), ran.err.as_str()), (0, "6 3 2 3 4", ""));
    world.write("wrong.tsr", b"import a.b.c\nprint(a.x, a.b.y, a.b.c.z)\nfrom a.b import nothing\n");
    let ran = run_in(world.folder.path(), &["check", "wrong.tsr"], "").expect("it is checked");
    let codes = ran.err.lines().filter(|l| l.starts_with("error[E0102]")).count();
    assert_eq!((ran.code, codes), (1, 4), "{}", ran.err);
}

/// `w.tsr` and `w/v.tsr`: the name `w` is both, in whatever order they are imported, and what `as` names is what it says.
#[test]
fn a_file_and_a_folder_have_one_name() {
    let file = "side = 4\n\ndef f(x: int) -> int:\n    return x + 1\n";
    let part = "def g(x: int) -> int:\n    return x + 10\n";
    let texts = [
        "import w\nimport w.v\n",
        "import w.v\nimport w\n",
        "from w import f\nimport w.v\nprint(f(1))\n",
        "import w\nfrom w import v\nprint(v.g(1))\n",
    ];
    let world = World::of(&[
        ("w.tsr", file),
        ("w/v.tsr", part),
        ("q.tsr", "one = 1\n"),
        ("q/r.tsr", "two = 2\n"),
        ("as.tsr", "import q.r as q\nprint(q.two)\n"),
        ("taken/w.tsr", "v = 3\n"),
        ("taken/w/v.tsr", part),
        ("taken/main.tsr", "import w\nimport w.v\nprint(w.v)\n"),
        ("taken/other.tsr", "import w\nimport w.v as k\nprint(w.v, k.g(1))\n"),
    ]);
    let run = |file: &str| run_in(world.folder.path(), &["run", file], "").expect("it runs");
    for imports in texts {
        let text = format!("{imports}print(w.f(1), w.v.g(1), w.side)\n");
        world.write("main.tsr", text.as_bytes());
        let ran = run("main.tsr");
        assert_eq!((ran.code, ran.out.lines().last()), (0, Some("2 11 4")), "{text}{}", ran.err);
        let mut editor = world.editor();
        let uri = world.uri("main.tsr");
        editor.open(&uri, &text);
        assert_eq!(world.codes(&mut editor, "main.tsr"), [""; 0]);
        let at = |further: usize| position(&text, text.find("w.f(1)").expect("it is there") + further);
        let mut ask = |further: usize, method: &str, to: &str| {
            editor.ask(method, json!({"textDocument": {"uri": uri}, "position": at(further), "newName": to}))
        };
        let found = ask(2, "textDocument/completion", "");
        let items = found["items"].as_array().or(found.as_array()).cloned().unwrap_or_default();
        let labels: Vec<&str> = items.iter().filter_map(|i| i["label"].as_str()).collect();
        assert_eq!(labels, ["f", "side", "v"], "{text}");
        // `w`, `f`, and of `w.v.g`: `v`, `g`.
        for (further, file) in [(0, "/w.tsr"), (2, "/w.tsr"), (10, "/w/v.tsr"), (12, "/w/v.tsr")] {
            let found = ask(further, "textDocument/definition", "");
            let target = found[0]["uri"].as_str().or(found["uri"].as_str()).unwrap_or("");
            assert!(target.ends_with(file), "{text}{further}: {found}");
        }
        // Another name for a function of each.
        for (further, old) in [(2, "f"), (12, "g")] {
            let changes = ask(further, "textDocument/rename", "other")["changes"].clone();
            let new = edited(&text, &changes[&uri]);
            assert!(!new.contains(&format!(".{old}(")) && new.contains(".other("), "{new}");
        }
    }
    assert_eq!(run("as.tsr").out.trim(), "2");
    let taken = run("taken/main.tsr");
    assert_eq!((taken.code, taken.err.matches("error[").count()), (1, 1), "{}", taken.err);
    assert!(taken.err.contains("error[E0106]: `w.v` is a name of `"), "{}", taken.err);
    assert_eq!(run("taken/other.tsr").out.trim(), "3 11");
}

/// Three updates in place, the last one on a line without an end.
const UPDATES: &str = "def first(c: Tensor[8, f32], i: int) -> Tensor[8, f32]:\n    c[i] = 1.0\n    return c\n\n\n\
    def second(c: Tensor[9, f32], i: int) -> Tensor[9, f32]:\n    c[i] = 2.0\n    return c\n\n\n\
    print(last(first(op.ones((8,)), 1), 2), second(op.ones((9,)), 1))\n\n\n\
    def last(c: Tensor[8, f32], i: int) -> Tensor[8, f32]: c[i] = 1.0; return c";

#[test]
fn hints_of_kernels_come_at_once_and_on_the_last_line_too() {
    let world = World::of(&[("main.tsr", UPDATES)]);
    let refreshes = json!({"capabilities": {"workspace": {"inlayHint": {"refreshSupport": true}}}});
    let mut editor = Editor::start(world.folder.path(), refreshes);
    let uri = world.uri("main.tsr");
    editor.open(&uri, UPDATES);
    assert_eq!(editor.diagnostics(&uri), [] as [Value; 0]);
    let whole = json!({"start": {"line": 0, "character": 0}, "end": position(UPDATES, UPDATES.len())});
    let begun = Instant::now();
    let lines = UPDATES.lines().count() as u64;
    let of_updates = |editor: &mut Editor| -> Vec<u64> {
        let all = editor.ask("textDocument/inlayHint", json!({"textDocument": {"uri": uri}, "range": whole}));
        let all = all.as_array().cloned().unwrap_or_default();
        let told = all.iter().filter(|h| h["kind"].is_null());
        told.filter_map(|h| h["position"]["line"].as_u64()).collect()
    };
    while of_updates(&mut editor) != [1, 6, lines - 1] {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", of_updates(&mut editor));
        std::thread::sleep(Duration::from_millis(50));
    }
    // The last request comes when nothing more is wanted: after it all is said.
    std::thread::sleep(Duration::from_millis(300));
    editor.ask("textDocument/foldingRange", json!({"textDocument": {"uri": uri}}));
    let asked = |m: &&Message| matches!(m, Message::Request(r) if r.method == "workspace/inlayHint/refresh");
    // One when the file was checked, one for all of what was found.
    assert_eq!(editor.heard.iter().filter(asked).count(), 2);
}
