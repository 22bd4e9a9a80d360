//! Golden files: Markdown in which a heading is the claim, a `tessera` block the program, and
//! each following block what one stage makes of it.
//!
//! | block | holds |
//! |---|---|
//! | `output` | what `tessera run` prints |
//! | `error` | what it says on stderr |
//! | `error check-nan` | the same with `--check-nan` |
//! | `check` | what `tessera check` says |
//! | `plan` | what `tessera plan` says |
//! | `fmt` | the program in canonical form |
//! | `ast` `core` `host` `graph` `kernels` `schedule` `tile` `llvm` | `tessera emit --ir …` |
//! | `graph after PASS` | `tessera emit --emit=after:PASS` |
//! | `KIND within SIZE` | `output`, `error`, `graph` or `kernels` with `--memory SIZE` |
//!
//! A block `text` or `python` states nothing. One marked `hand` (as in `output hand`) is never rewritten by blessing.
//!
//! A program without a block states nothing and is a mistake; so is one whose run fails where only its `output` is stated.
//!
//! To add a case: write the source, leave the other blocks empty, run `cargo dev bless`.

use crate::program::{Ran, run_source};
use std::path::Path;

/// A fenced block with its place in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    pub info: String,
    pub text: String,
    /// Index of the first line inside the fence.
    pub line: usize,
    pub heading: String,
}

/// All fenced blocks of a Markdown text.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut out: Vec<Block> = vec![];
    let (mut heading, mut open) = (String::new(), None::<Block>);
    for (i, line) in markdown.lines().enumerate() {
        match &mut open {
            Some(_) if line.trim_end() == "```" => out.extend(open.take()),
            Some(block) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {
                if let Some(info) = line.strip_prefix("```") {
                    open = Some(Block {
                        info: info.trim().to_owned(),
                        text: String::new(),
                        line: i + 1,
                        heading: heading.clone(),
                    });
                } else if line.starts_with('#') {
                    heading = line.trim_start_matches('#').trim().to_owned();
                }
            }
        }
    }
    out
}

/// What a block of this kind should hold for a program; `None` if the kind is not known. To `failed` goes what a run said
/// that failed, where the block does not hold it.
fn actual(info: &str, source: &str, failed: &mut Option<String>) -> std::io::Result<Option<String>> {
    let run = |args: &[&str]| run_source(source, args);
    let both = |r: Ran| if r.code == 0 { r.out } else { r.err };
    let mut printed = |r: Ran| {
        // `sys.exit` says nothing.
        if r.code < 0 || (r.code > 0 && !r.err.is_empty()) {
            *failed = Some(r.err);
        }
        r.out
    };
    if let Some((kind, size)) = info.split_once(" within ") {
        return Ok(match kind {
            "output" => Some(printed(run(&["run", "--memory", size])?)),
            "error" => Some(run(&["run", "--memory", size])?.err),
            "graph" | "kernels" => Some(both(run(&["emit", "--memory", size, "--ir", kind])?)),
            _ => None,
        });
    }
    Ok(Some(match info {
        "output" => printed(run(&["run"])?),
        "plan" => both(run(&["plan"])?),
        "error" => run(&["run"])?.err,
        "error check-nan" => run(&["run", "--check-nan"])?.err,
        "check" => run(&["check"])?.err,
        "fmt" => {
            let dir = tempfile::tempdir()?;
            both(crate::program::run_in(dir.path(), &["fmt", "-"], source)?)
        }
        "llvm" => {
            // What depends on the machine that compiles.
            let text = both(run(&["emit", "--ir", info])?);
            let kept = text.lines().filter(|l| !l.starts_with("attributes #") && !l.starts_with("target "));
            kept.collect::<Vec<_>>().join("\n")
        }
        "gpu counts" => {
            let ran = run(&["emit", "--ir", "asm", "--target", "cuda"])?;
            if ran.code == 0 { crate::ptx_counts::counts(&ran.out) } else { ran.err }
        }
        "ast" | "core" | "host" | "graph" | "kernels" | "schedule" | "tile" => both(run(&["emit", "--ir", info])?),
        _ => match info.strip_prefix("graph after ") {
            Some(pass) => both(run(&["emit", &format!("--emit=after:{pass}")])?),
            None => return Ok(None),
        },
    }))
}

/// Checks one file and returns the complaints; with `bless`, rewrites it instead.
pub fn check_file(path: &Path, bless: bool) -> std::io::Result<Vec<String>> {
    let text = std::fs::read_to_string(path)?;
    let mut complaints = vec![];
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut edits: Vec<(usize, usize, String)> = vec![];
    let all = blocks(&text);
    for (program, stated) in programs(&all) {
        if stated.is_empty() {
            complaints.push(format!(
                "{}:{}: {}: no block behind the program says what becomes of it",
                path.display(),
                program.line,
                program.heading
            ));
        }
        check_program(path, program, stated, bless, &mut edits, &mut complaints)?;
    }
    for (line, count, new) in edits.into_iter().rev() {
        lines.splice(line..line + count, new.lines().map(str::to_owned));
    }
    if bless {
        let new = lines.join("\n") + "\n";
        if new != text {
            std::fs::write(path, new)?;
        }
    }
    Ok(complaints)
}

/// Each program with the blocks behind it.
fn programs(all: &[Block]) -> impl Iterator<Item = (&Block, &[Block])> {
    let starts = all.chunk_by(|_, next| next.info != "tessera");
    starts.filter_map(|group| group.split_first()).filter(|(program, _)| program.info == "tessera")
}

/// Checks the blocks of one program.
fn check_program(
    path: &Path,
    program: &Block,
    stated: &[Block],
    bless: bool,
    edits: &mut Vec<(usize, usize, String)>,
    complaints: &mut Vec<String>,
) -> std::io::Result<()> {
    let error_is_stated = stated.iter().any(|b| b.info.starts_with("error"));
    for block in stated {
        // `hand` marks what was derived from the language's rules: blessing leaves it alone.
        let (kind, by_hand) = block.info.strip_suffix(" hand").map_or((block.info.as_str(), false), |k| (k, true));
        let mut failed = None;
        // What a command says, and the like.
        if matches!(kind, "text" | "python") {
            continue;
        }
        let got = actual(kind, &program.text, &mut failed)?;
        if let Some(said) = failed.filter(|_| !error_is_stated) {
            complaints.push(format!(
                "{}:{}: {}: the program fails, and no `error` block says so\n{said}",
                path.display(),
                block.line,
                block.heading
            ));
        }
        let Some(got) = got else {
            complaints.push(format!("{}:{}: `{}` is no kind of block", path.display(), block.line, block.info));
            continue;
        };
        // A program is run in a folder of its own.
        let start = "relative paths start at ";
        let steady =
            |line: &str| line.find(start).map_or(line.to_owned(), |i| line[..i + start.len()].to_owned() + "…");
        let got = got.lines().map(steady).collect::<Vec<_>>().join("\n");
        let trim = |s: &str| s.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned();
        if trim(&got) == trim(&block.text) || matches_codes(&got, &block.text) {
            continue;
        }
        if bless && !by_hand {
            edits.push((block.line, block.text.lines().count(), trim(&got)));
        } else {
            complaints.push(format!(
                "{}:{}: {} ({})\n--- expected\n{}\n--- got\n{}",
                path.display(),
                block.line,
                block.heading,
                block.info,
                trim(&block.text),
                trim(&got)
            ));
        }
    }
    Ok(())
}

/// Whether the expectation is a list of `E0203:4` lines (code and line, `*` for any line) and the
/// diagnostics are just these, in order; a line `~ text` must occur in what is said.
fn matches_codes(got: &str, expected: &str) -> bool {
    let (texts, expected): (Vec<&str>, Vec<&str>) = expected.lines().partition(|l| l.starts_with("~ "));
    if !texts.iter().all(|t| got.contains(&t[2..])) {
        return false;
    }
    let wanted: Vec<(&str, &str)> =
        expected.iter().map(|l| l.trim()).filter(|l| !l.is_empty()).filter_map(|l| l.split_once(':')).collect();
    let is_code = |c: &str| {
        c.len() == 5 && (c.starts_with('E') || c.starts_with('W')) && c[1..].bytes().all(|b| b.is_ascii_digit())
    };
    if wanted.is_empty()
        || wanted.len() != expected.iter().filter(|l| !l.trim().is_empty()).count()
        || !wanted.iter().all(|(c, _)| is_code(c))
    {
        return false;
    }
    let mut found = vec![];
    let mut lines = got.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(code) = ["error[", "warning["].iter().find_map(|p| line.strip_prefix(p)).and_then(|r| r.get(..5))
        else {
            continue;
        };
        let place = lines.peek().and_then(|l| l.split_once(".tsr:")).and_then(|(_, r)| r.split(':').next());
        found.push((code, place.unwrap_or("")));
    }
    found.len() == wanted.len()
        && found.iter().zip(&wanted).all(|((c, at), (code, line))| c == code && (*line == "*" || at == line))
}

/// Every `.md` file below a directory, sorted.
pub fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut out = vec![];
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}
