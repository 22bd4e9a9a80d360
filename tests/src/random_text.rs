//! Random texts for the readers: damaged IR texts, damaged programs, token soup, bytes.

use crate::compare::Bench;
use crate::random::Random;
use crate::random_graph::{Case, Scale, case};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use tessera_base::ItemId;
use tessera_grammar::token::lex;
use tessera_ir::graph::Graph;
use tessera_ir::{graph_text, interpret, schedule, text, tile, verify};
use tessera_ops::prim::Prim;

/// Bytes of a case above which its meaning is not run.
const BYTES_MAX: u64 = 1 << 16;
/// Steps of a product above which a kernel is not run.
const STEPS_MAX: i64 = 1 << 16;
/// Time for one text above which it counts as hanging.
const TIME_MAX: Duration = Duration::from_secs(5);

/// The texts of a random graph: of the graph, of its schedules, of its kernels.
pub fn ir_texts(seed: u64) -> Vec<String> {
    let Case { graph, .. } = case(seed, Scale::Small);
    let optimised = tessera_graph::optimise(&graph);
    let bench = Bench::new();
    let mut out = vec![graph.to_string()];
    for planned in bench.backend.groups(&optimised) {
        out.extend(planned.schedule.iter().map(schedule::text::print));
        out.extend(planned.lowered.iter().flat_map(|l| &l.steps).map(|s| tile::text::print(&s.kernel)));
    }
    out
}

const PIECES: &[&str] = &[
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1e400",
    "nan",
    "-inf",
    "true",
    "[]",
    "[0, 0]",
    "[[",
    "]",
    "{",
    "}",
    "({",
    "})",
    "(",
    ")",
    ",",
    "=",
    ":",
    "\"",
    "\"\"",
    "%0",
    "%1",
    "%",
    "lane",
    "v2",
    "f32",
    "bool",
    "c64",
    "fp8_e5m2",
    "Tensor[0, f32]",
    "Tensor[f32]",
    "Tensor[",
    "x16",
    "\\u{d800}",
    "\u{0}",
    "é",
    "// x",
    "\n",
];

/// Words, numbers and signs of an IR text.
fn parts(text: &str) -> Vec<&str> {
    let mut out = vec![];
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let end = if word(c) { rest.find(|c| !word(c)).unwrap_or(rest.len()) } else { c.len_utf8() };
        let (part, after) = rest.split_at(end);
        out.push(part);
        rest = after;
    }
    out
}

/// A text with a few parts dropped, doubled, exchanged or replaced.
pub fn damaged(random: &mut Random, text: &str) -> String {
    let mut parts: Vec<String> = parts(text).into_iter().map(str::to_owned).collect();
    for _ in 0..1 + random.below(4) {
        if parts.is_empty() {
            break;
        }
        let (at, other) = (random.below(parts.len()), random.below(parts.len()));
        match random.below(7) {
            0 => drop(parts.remove(at)),
            1 => parts.insert(at, parts[other].clone()),
            2 => parts.swap(at, other),
            3 => parts[at] = parts[other].clone(),
            4 => parts[at] = random.pick(PIECES).to_owned(),
            5 => parts.truncate(at),
            // Numbers are where meaning is.
            _ => {
                let numbers: Vec<usize> = (0..parts.len()).filter(|&i| parts[i].parse::<i64>().is_ok()).collect();
                if !numbers.is_empty() {
                    let at = random.pick(&numbers);
                    parts[at] = random
                        .pick(&["0", "1", "2", "3", "16", "17", "4097", "1000000007", "18446744073709551615"])
                        .to_owned();
                }
            }
        }
    }
    parts.concat()
}

/// Bytes that are mostly printable.
pub fn noise(random: &mut Random) -> String {
    let n = random.below(200);
    let byte = |r: &mut Random| if r.once_in(4) { r.below(256) as u8 } else { 32 + r.below(95) as u8 };
    let bytes: Vec<u8> = (0..n).map(|_| byte(random)).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn small(g: &Graph) -> bool {
    let bytes = g.nodes.iter().try_fold(0u64, |n, node| n.checked_add(node.ty.bytes()?));
    let trips = g.nodes.iter().all(|n| !matches!(n.prim, Prim::Scan { trips, .. } if trips > 8));
    // A product of empty results may still have a long contracted dim.
    bytes.is_some_and(|n| n < BYTES_MAX) && trips && g.bodies.iter().all(small)
}

/// A graph that the verifier accepts can be optimised and, if small, run; both ways it means the
/// same.
fn graph(text: &str) -> Result<(), String> {
    let Ok(g) = graph_text::parse(text) else { return Ok(()) };
    let printed = g.to_string();
    let again = graph_text::parse(&printed)
        .map_err(|e| format!("its own text does not read back: {} at {}", e.message, e.at))?;
    if again.to_string() != printed {
        return Err(format!("reads back as another graph\n{printed}{again}"));
    }
    if !verify::verify(&g).is_empty() {
        return Ok(());
    }
    let optimised = tessera_graph::optimise(&g);
    let found = verify::verify(&optimised);
    if !found.is_empty() {
        return Err(format!("optimised, the verifier refuses: {}\n{optimised}", found.join("; ")));
    }
    if small(&g) {
        let zeros: Vec<Vec<u8>> = g.inputs.iter().map(|i| vec![0; i.ty.bytes().unwrap_or(0) as usize]).collect();
        let inputs: Vec<&[u8]> = zeros.iter().map(Vec::as_slice).collect();
        let (a, b) = (interpret::run(&g, &inputs), interpret::run(&optimised, &inputs));
        if let (Ok(a), Ok(b)) = (a, b) {
            for ((a, b), &id) in a.iter().zip(&b).zip(&g.outputs) {
                if let Some(what) = crate::bits::difference(g.ty(id).dtype, a, b) {
                    return Err(format!("optimised, {id} differs: {what}"));
                }
            }
        }
    }
    Ok(())
}

/// The most steps that a product of a kernel makes in one place: they take time though they may all be one element.
fn steps(k: &tile::Kernel, ops: &[tile::Op]) -> i64 {
    let last = |v: u32| v.checked_sub(tile::FIRST_LOOP).and_then(|n| k.vars.get(n as usize)).copied();
    let ranges = |v: tessera_ir::index::Var| match v {
        tile::POINT => (0, k.grid as i64),
        v => (0, last(v.0).unwrap_or(0).max(0)),
    };
    let of = |op: &tile::Op| match op {
        tile::Op::For(f) => steps(k, &f.body),
        tile::Op::Block(b) => b.depth as i64,
        tile::Op::Mma(m) => m.depth.iter().map(|e| e.range(&ranges).1).min().unwrap_or(0),
        _ => 0,
    };
    ops.iter().map(of).max().unwrap_or(0)
}

/// A kernel that the verifier accepts runs in the checked interpreter, or is told why not.
fn kernel(text: &str) -> Result<(), String> {
    let Ok(k) = tile::text::parse(text) else { return Ok(()) };
    if tile::verify::verify(&k).is_err() {
        return Ok(());
    }
    let elems: u64 = k.bufs.iter().fold(0, |n, b| n.saturating_add(b.elems));
    let rounds = k.vars.iter().fold(k.grid.max(1), |n, &v| n.saturating_mul(v.max(0) as u64 + 1));
    let lanes = k.values.iter().map(|t| t.lanes).max().unwrap_or(1);
    if elems > BYTES_MAX || rounds > 3000 || lanes > 256 || steps(&k, &k.body) > STEPS_MAX {
        return Ok(());
    }
    let operands = k.bufs.iter().filter(|b| b.space != tile::Space::Scratch);
    let mut bufs: Vec<Vec<u8>> = operands.map(|b| vec![0; b.elems as usize * b.dtype.bytes()]).collect();
    let _ = tessera_tile::interpret(&k, &mut bufs, &vec![0; k.scalars.len()]);
    Ok(())
}

/// Everything that reads IR texts, on one text.
pub fn read_ir(text: &str) -> Result<(), String> {
    guarded(|| {
        if let Ok(ops) = text::parse(text) {
            let printed = text::print(&ops, 0);
            let again = text::parse(&printed)
                .map_err(|e| format!("what is printed does not read back: {} at {}", e.message, e.at))?;
            if text::print(&again, 0) != printed {
                return Err(format!("what is printed reads back as something else\n{printed}"));
            }
        }
        if let Ok(s) = schedule::text::parse(text) {
            let _ = schedule::verify::verify(&s);
        }
        graph(text)?;
        kernel(text)
    })
}

/// Tokens, items, trees and the formatter, on one text: no byte is lost, spans lie inside, and
/// what can be formatted keeps its tree and is then stable.
pub fn read_program(text: &str) -> Result<(), String> {
    guarded(|| {
        let covered: usize = lex(text).iter().map(|t| t.range().len()).sum();
        if covered != text.len() {
            return Err(format!("the tokens cover {covered} of {} bytes", text.len()));
        }
        for item in tessera_grammar::split(text).items {
            let part = &text[item.range.start as usize..item.range.end as usize];
            for d in tessera_grammar::parse_item(part, ItemId(0)).diagnostics {
                let (start, end) = (d.span.start as usize, d.span.end as usize);
                if start > end || !part.is_char_boundary(start) || !part.is_char_boundary(end) {
                    return Err(format!("a diagnostic points outside: {d:?}"));
                }
            }
        }
        tessera_grammar::highlight(text);
        tessera_grammar::needs_more(text);
        let tree = |t: &str| tessera_grammar::show(&tessera_grammar::parse_item(t, ItemId(0)).stmts);
        if let Ok(once) = tessera_grammar::format(text) {
            if tree(text) != tree(&once) {
                return Err(format!("formatting changes the tree\n{once}"));
            }
            if tessera_grammar::format(&once).as_ref() != Ok(&once) {
                return Err(format!("formatting again changes the text\n{once}"));
            }
        }
        Ok(())
    })
}

/// A panic and a long time are errors too.
fn guarded(f: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text =
            panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Err(format!("panics: {}", text.unwrap_or_default()))
    });
    if result.is_ok() && start.elapsed() > TIME_MAX {
        return Err(format!("takes {:.1} s", start.elapsed().as_secs_f64()));
    }
    result
}

/// Programs to damage: the examples, the goldens, the standard library.
pub fn programs() -> Vec<String> {
    let root = crate::program::root();
    let mut out = vec![];
    for dir in ["examples", "std", "tests/benches"] {
        let mut todo = vec![root.join(dir)];
        while let Some(dir) = todo.pop() {
            let mut entries: Vec<_> =
                std::fs::read_dir(&dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
            entries.sort();
            for path in entries {
                if path.is_dir() {
                    todo.push(path);
                } else if path.extension().is_some_and(|e| e == "tsr") {
                    out.extend(std::fs::read_to_string(&path));
                }
            }
        }
    }
    for file in crate::golden::files(&root.join("tests/golden")) {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        out.extend(crate::golden::blocks(&text).into_iter().filter(|b| b.info == "tessera").map(|b| b.text));
    }
    out
}

const WORDS: &[&str] = &[
    "def ", "struct ", "if ", "else", ":", "for ", " in ", "while ", "return ", "with ", " as ", "lambda ", "not ",
    " and ", "None", "x", "größe", "Tensor", "1", "2.5e-3", "0x", "'a'", "\"b", "'''", "f'", "f\"{", "{", "}", "(",
    ")", "[", "]", ",", ".", "...", "->", "=", "==", "+", "@", "**", "/", ":=", "+=", "#c", "\\", "\n", "\n    ",
    "\n\t", " ", "\r\n", "\\\n", "$", "\u{FEFF}", "\u{0}", "😀",
];

/// A program with damaged tokens, or nothing but tokens.
pub fn damaged_program(random: &mut Random, programs: &[String]) -> String {
    if programs.is_empty() || random.once_in(4) {
        let n = random.below(60);
        return (0..n).map(|_| random.pick(WORDS)).collect();
    }
    let mut text = programs[random.below(programs.len())].clone();
    for _ in 0..1 + random.below(3) {
        let tokens = lex(&text);
        if tokens.is_empty() {
            break;
        }
        let at = tokens[random.below(tokens.len())].range();
        let other = tokens[random.below(tokens.len())].text(&text).to_owned();
        match random.below(5) {
            0 => text.replace_range(at, ""),
            1 => text.replace_range(at, &other),
            2 => text.replace_range(at, random.pick(WORDS)),
            3 => text.insert_str(at.start, random.pick(WORDS)),
            _ => text.truncate(at.start),
        }
    }
    text
}
