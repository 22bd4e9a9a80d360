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
//! | `ast` `host` `graph` `kernels` `schedule` `tile` `llvm` | `tessera emit --ir …` |
//! | `graph after PASS` | `tessera emit --emit=after:PASS` |
//! | `KIND within SIZE` | `output`, `error`, `graph` or `kernels` with `--memory SIZE` |
//!
//! A block marked `hand` (as in `output hand`) is never rewritten by blessing.
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

/// What a block of this kind should hold for a program; `None` if the kind is not known.
fn actual(info: &str, source: &str) -> std::io::Result<Option<String>> {
    let run = |args: &[&str]| run_source(source, args);
    let both = |r: Ran| if r.code == 0 { r.out } else { r.err };
    if let Some((kind, size)) = info.split_once(" within ") {
        return Ok(match kind {
            "output" => Some(run(&["run", "--memory", size])?.out),
            "error" => Some(run(&["run", "--memory", size])?.err),
            "graph" | "kernels" => Some(both(run(&["emit", "--memory", size, "--ir", kind])?)),
            _ => None,
        });
    }
    Ok(Some(match info {
        "output" => run(&["run"])?.out,
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
        "ast" | "host" | "graph" | "kernels" | "schedule" | "tile" => both(run(&["emit", "--ir", info])?),
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
    let mut source: Option<String> = None;
    let mut edits: Vec<(usize, usize, String)> = vec![];
    for block in blocks(&text) {
        if block.info == "tessera" {
            source = Some(block.text);
            continue;
        }
        let Some(source) = &source else { continue };
        // `hand` marks what was derived from the language's rules: blessing leaves it alone.
        let (kind, by_hand) = block.info.strip_suffix(" hand").map_or((block.info.as_str(), false), |k| (k, true));
        let Some(got) = actual(kind, source)? else {
            complaints.push(format!("{}:{}: `{}` is no kind of block", path.display(), block.line, block.info));
            continue;
        };
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
