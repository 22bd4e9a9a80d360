//! How soon a session has results, and the language server answers in a file of 20,000 lines, and what it takes: edits and requests of a fixed seed,
//! over real standard input and output. Release builds only; nothing here fails by time.

use crate::editor::{Editor, position};
use crate::program::binary;
use crate::random::Random;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A function has 6 lines, and a line that calls it.
const FUNCTIONS: usize = 2857;
const EDITS: usize = 200;
const ASKED: usize = 40;

fn text() -> String {
    let mut out = String::new();
    for i in 0..FUNCTIONS {
        out.push_str(&format!(
            "def f{i}(x: Tensor[N, f32], k: int) -> Tensor[N, f32]:\n    y = x * 2.0\n    for i in range(k):\n        \
             y = y + x * {i}.0\n    return y\n\n"
        ));
    }
    out.push_str("x = op.ones((4,))\n");
    for i in 0..FUNCTIONS {
        out.push_str(&format!("x = f{i}(x, {})\n", i % 7));
    }
    out
}

/// Times on the clock, and what one takes of processors on average, where that was counted.
fn show(what: &str, mut ms: Vec<f64>, processor: Option<f64>) {
    ms.sort_by(f64::total_cmp);
    let at = |part: f64| ms.get((ms.len() as f64 * part) as usize).copied().unwrap_or(f64::NAN);
    let processor = processor.map_or_else(String::new, |ms| format!("   processor {ms:6.1} ms"));
    println!("{what:<44} p50 {:7.1} ms   p95 {:7.1} ms{processor}", at(0.5), at(0.95));
}

struct Replay {
    editor: Editor,
    uri: String,
    version: i32,
    random: Random,
}

impl Replay {
    fn change(&mut self, line: usize, from: usize, to: usize, text: &str) {
        self.version += 1;
        let range = json!({"start": {"line": line, "character": from}, "end": {"line": line, "character": to}});
        let changes = json!([{"range": range, "text": text}]);
        let document = json!({"uri": self.uri, "version": self.version});
        self.editor.tell("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
    }

    /// Milliseconds of each of some turns, and what one takes of processors on average.
    fn timed<T>(&mut self, count: usize, mut turn: impl FnMut(&mut Replay) -> T) -> (Vec<T>, Option<f64>) {
        let before = self.editor.processor_seconds();
        let ms = (0..count).map(|_| turn(self)).collect();
        let taken = self.editor.processor_seconds().zip(before).map(|(after, before)| after - before);
        (ms, taken.map(|s| s * 1e3 / count as f64))
    }

    /// Milliseconds of requests at random functions.
    fn asked(&mut self, what: &str, method: &str, params: impl Fn(usize) -> Value) {
        let (ms, processor) = self.timed(ASKED, |r| {
            let mut all = params(r.random.below(FUNCTIONS));
            all["textDocument"] = json!({"uri": r.uri});
            let start = Instant::now();
            r.editor.ask(method, all);
            start.elapsed().as_secs_f64() * 1e3
        });
        show(what, ms, processor);
    }

    /// A statement that comes into a function, and goes: the text is as long after it as before.
    fn edit_pair(&mut self) -> [f64; 2] {
        let line = self.random.below(FUNCTIONS) * 6 + 3;
        [(8, 8, "y = y + 1.0; "), (8, 21, "")].map(|(from, to, text)| {
            let start = Instant::now();
            self.change(line, from, to, text);
            let uri = self.uri.clone();
            self.editor.diagnostics(&uri);
            start.elapsed().as_secs_f64() * 1e3
        })
    }

    fn edits(&mut self, what: &str, count: usize) {
        let (ms, processor) = self.timed(count / 2, Replay::edit_pair);
        show(what, ms.into_iter().flatten().collect(), processor.map(|ms| ms / 2.0));
    }
}

/// A transformer block that is edited, loaded again and called in a session: milliseconds from the edit to its result.
fn session() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let block = |scale: usize| {
        format!(
            "import std.nn as nn\n\n\ndef step(b: nn.GptBlock[D, H, E, M], x: Tensor[B, T, D, f32]) -> Tensor[f32]:\n    \
             return op.mean(nn.gpt_block(b, x) * {scale}.0)\n"
        )
    };
    std::fs::write(folder.path().join("block.tsr"), block(1))?;
    let mut child = Command::new(binary())
        .current_dir(folder.path())
        .args(["repl", "--no-cache"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let start = Instant::now();
    let (mut input, output) = (child.stdin.take(), child.stdout.take());
    let mut lines = std::io::BufReader::new(output.ok_or_else(|| std::io::Error::other("no output"))?).lines();
    let mut ask = |text: &str, wanted: &str| -> std::io::Result<()> {
        input.as_mut().ok_or_else(|| std::io::Error::other("no input"))?.write_all(text.as_bytes())?;
        for line in lines.by_ref() {
            if line?.contains(wanted) {
                return Ok(());
            }
        }
        Err(std::io::Error::other("the session ended"))
    };
    ask("print(\"ready\")\n", "ready")?;
    show("session: first result", vec![start.elapsed().as_secs_f64() * 1e3], None);
    let first = "import block\nimport std.nn as nn\nb = nn.gpt_block_init(random.key(0), 64, 4);\n\
                 x = random.normal(random.key(1), (2, 32, 64));\n";
    let start = Instant::now();
    ask(&format!("{first}print(\"0:\", block.step(b, x))\n"), "0:")?;
    show("session: first result of a block", vec![start.elapsed().as_secs_f64() * 1e3], None);
    let mut ms = vec![];
    for i in 1..=20 {
        std::fs::write(folder.path().join("block.tsr"), block(i + 1))?;
        let start = Instant::now();
        ask(&format!(":reload\nprint(\"{i}:\", block.step(b, x))\n"), &format!("{i}:"))?;
        ms.push(start.elapsed().as_secs_f64() * 1e3);
    }
    show("session: edit to result", ms, None);
    drop(input);
    child.wait().map(drop)
}

/// Prints the figures; whether the server and a session could be asked.
pub fn run() -> bool {
    if let Err(e) = session() {
        println!("the session: {e}");
        return false;
    }
    let Ok(folder) = tempfile::tempdir() else { return false };
    let text = text();
    let editor = Editor::start(folder.path(), json!({}));
    let uri = format!("file://{}/large.tsr", folder.path().display());
    let mut r = Replay { editor, uri, version: 1, random: Random::new(20) };
    let start = Instant::now();
    let uri = r.uri.clone();
    r.editor.open(&uri, &text);
    r.editor.diagnostics(&uri);
    println!("{} lines opened and checked in {:.0} ms", text.lines().count(), start.elapsed().as_secs_f64() * 1e3);
    let memory = |r: &Replay| r.editor.resident().map_or_else(|| "?".into(), |bytes| format!("{} MiB", bytes >> 20));
    println!("resident {}", memory(&r));
    r.edits("keystroke to diagnostics", EDITS);
    let at = |f: usize| json!({"position": {"line": 6 * f + 3, "character": 12}});
    let end = position(&text, text.len())["line"].clone();
    let lines = |f: usize| json!({"range": {"start": {"line": 6 * f, "character": 0}, "end": {"line": 6 * f + 60, "character": 0}}});
    let call = |f: usize| json!({"position": {"line": 6 * FUNCTIONS + 1 + f, "character": 5}});
    r.asked("completion of a name", "textDocument/completion", at);
    // With what an edit takes that nobody waits for.
    let (ms, processor) = r.timed(ASKED, |r| {
        let line = r.random.below(FUNCTIONS) * 6 + 4;
        r.change(line, 12, 12, ".");
        let start = Instant::now();
        let document = json!({"uri": r.uri});
        let place = json!({"line": line, "character": 13});
        r.editor.ask("textDocument/completion", json!({"textDocument": document, "position": place}));
        let ms = start.elapsed().as_secs_f64() * 1e3;
        r.change(line, 12, 13, "");
        ms
    });
    show("completion of a member, just typed", ms, processor);
    r.asked("hover", "textDocument/hover", at);
    r.asked("definition", "textDocument/definition", call);
    r.asked("references", "textDocument/references", |f| {
        let mut params = call(f);
        params["context"] = json!({"includeDeclaration": true});
        params
    });
    r.asked(
        "parameters",
        "textDocument/signatureHelp",
        |f| json!({"position": {"line": 6 * FUNCTIONS + 1 + f, "character": 8 + f.to_string().len()}}),
    );
    r.asked("types between the words, 60 lines", "textDocument/inlayHint", lines);
    r.asked("colours, 60 lines", "textDocument/semanticTokens/range", lines);
    r.asked("outline", "textDocument/documentSymbol", |_| json!({}));
    let all = |_: usize| json!({"range": {"start": {"line": 0, "character": 0}, "end": {"line": end, "character": 0}}});
    r.asked("colours, all", "textDocument/semanticTokens/range", all);
    let many: usize = std::env::var("TESSERA_EDITS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000);
    // The last of them are compared with the first ones above.
    r.timed(many.saturating_sub(EDITS) / 2, Replay::edit_pair);
    r.edits(&format!("keystroke to diagnostics, {many} edits later"), EDITS);
    println!("resident {}", memory(&r));
    r.editor.leave() == Some(0)
}
