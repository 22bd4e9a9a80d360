//! Checks on the text of the code base: layers, file sizes, words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tessera_core::builtins::MODULES;
use tessera_infer::members::is_builtin_member;
use tessera_resolve::facts::is_builtin_module;
use tessera_tests::modules::{cycles, of_crate, out_of_order};
use tessera_tests::program::root;

const LINES_MAX: usize = 800;

fn sources() -> Vec<PathBuf> {
    let mut out = vec![];
    let mut todo: Vec<PathBuf> =
        ["grammar", "compiler", "runtime", "tests", "std"].iter().map(|d| root().join(d)).collect();
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs" || e == "lalrpop" || e == "tsr") {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// `` | 3 | `core` `graph` | `` rows of the layer table.
fn layers() -> BTreeMap<String, u32> {
    let text = read(&root().join("ARCHITECTURE.md"));
    let section = text.split("## Layers").nth(1).unwrap_or("").split("\n## ").next().unwrap_or("").to_owned();
    let mut out = BTreeMap::new();
    for line in section.lines().filter(|l| l.starts_with("| ")) {
        let mut cells = line.split('|').skip(1).map(str::trim);
        let Some(Ok(layer)) = cells.next().map(str::parse::<u32>) else { continue };
        for name in cells.next().unwrap_or("").split('`').map(str::trim).filter(|n| !n.is_empty()) {
            out.insert(name.to_owned(), layer);
        }
    }
    out
}

fn short(package: &str) -> &str {
    package.strip_prefix("tessera-").unwrap_or(package)
}

#[test]
fn crates_depend_on_lower_layers_only() {
    let layers = layers();
    let mut complaints = vec![];
    let manifests = [
        "grammar",
        "tests",
        "runtime/abi",
        "runtime/core",
        "runtime/ptx",
        "compiler/base",
        "compiler/ops",
        "compiler/ir",
        "compiler/onnx",
        "compiler/core",
        "compiler/types",
        "compiler/resolve",
        "compiler/infer",
        "compiler/lower",
        "compiler/trace",
        "compiler/interpret",
        "compiler/shard",
        "compiler/plan",
    ]
    .into_iter()
    .chain([
        "compiler/graph",
        "compiler/schedule",
        "compiler/tile",
        "compiler/llvm",
        "compiler/host",
        "compiler/driver",
    ]);
    for dir in manifests {
        let text = read(&root().join(dir).join("Cargo.toml"));
        let name = text.lines().find_map(|l| l.strip_prefix("name = ")).unwrap_or("").trim_matches('"').to_owned();
        let Some(&own) = layers.get(short(&name)) else {
            complaints.push(format!("{name} is not in the layer table"));
            continue;
        };
        let dependencies = text.split("[dependencies]").nth(1).unwrap_or("").split("\n[").next().unwrap_or("");
        for line in dependencies.lines().filter(|l| l.starts_with("tessera")) {
            let package = line.split(['.', ' ', '=']).next().unwrap_or("");
            match layers.get(short(package)) {
                Some(&other) if other < own => {}
                _ => complaints.push(format!("{name} (layer {own}) may not depend on {package}")),
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn libraries_stay_in_their_crate() {
    let owners: &[(&str, &[&str])] = &[
        ("logos", &["grammar"]),
        ("lalrpop", &["grammar"]),
        ("salsa", &["compiler/infer", "compiler/driver"]),
        ("inkwell", &["compiler/llvm"]),
        ("cranelift", &["compiler/host"]),
        ("ariadne", &["compiler/driver"]),
        ("rustyline", &["compiler/driver"]),
        ("tokio", &["compiler/driver"]),
        ("zeromq", &["compiler/driver"]),
        ("jupyter-zmq-client", &["compiler/driver"]),
        ("tokenizers", &["runtime/core"]),
        ("resvg", &["runtime/core"]),
        ("image", &["runtime/core"]),
        ("hound", &["runtime/core"]),
        ("parquet", &["runtime/core"]),
        ("glob", &["runtime/core"]),
        ("libloading", &["compiler/llvm", "runtime/core"]),
        ("cudarc", &["runtime/core"]),
    ];
    for path in sources().iter().filter_map(|p| p.ancestors().find(|a| a.join("Cargo.toml").exists() && **a != root()))
    {
        let text = read(&path.join("Cargo.toml"));
        for (library, homes) in owners {
            let uses = text
                .lines()
                .any(|l| l.starts_with(&format!("{library}.workspace")) || l.starts_with(&format!("{library}-util")));
            assert!(!uses || homes.iter().any(|h| path.ends_with(h)), "{} uses {library}", path.display());
        }
    }
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = sources()
        .iter()
        .map(|p| (p, read(p).lines().count()))
        .filter(|(_, n)| *n > LINES_MAX)
        .map(|(p, n)| format!("{}: {n} lines", p.display()))
        .collect();
    assert!(long.is_empty(), "over {LINES_MAX} lines:\n{}", long.join("\n"));
}

#[test]
fn nothing_is_left_unfinished() {
    let mut found = vec![];
    for path in sources().iter().filter(|p| !p.ends_with("tests/tests/tidy.rs")) {
        for (i, line) in read(path).lines().enumerate() {
            if ["todo!(", "unimplemented!(", "FIXME", "XXX", "dbg!("].iter().any(|w| line.contains(w)) {
                found.push(format!("{}:{}: {}", path.display(), i + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn unsafe_code_has_its_place_and_reason() {
    // The parser for editors is C.
    let parser = "tests/tests/tree_sitter.rs";
    let allowed = ["compiler/llvm", "compiler/host", "runtime/abi", "runtime/core", "runtime/ptx", parser];
    let mut found = vec![];
    for path in sources() {
        let text = read(&path);
        let home = path.strip_prefix(root()).unwrap_or(&path).to_owned();
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            let opens = code.contains("unsafe {") || code.contains("unsafe impl");
            if !opens || home.ends_with("tidy.rs") {
                continue;
            }
            if !allowed.iter().any(|a| home.starts_with(a)) {
                found.push(format!("{}:{}: unsafe code outside its crates", home.display(), i + 1));
            }
            let explained = lines[i.saturating_sub(8)..=i].iter().any(|l| l.contains("SAFETY"));
            if !explained {
                found.push(format!("{}:{}: unsafe code without its reason", home.display(), i + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Where results come from that programs see: no function here may depend on the system's libm.
const MEANINGS: &[&str] = &[
    "compiler/ops/src",
    "compiler/core/src",
    "compiler/types/src",
    "compiler/infer/src",
    "compiler/lower/src",
    "compiler/trace/src",
    "compiler/interpret/src",
    "compiler/host/src",
    "compiler/autodiff/src",
    "compiler/graph/src",
    "runtime/abi/src",
    "runtime/core/src",
];

/// Functions of std floats that round as the system's library does. `sqrt`, `floor`, `ceil`, `trunc`, `round_ties_even`, `abs` and
/// `mul_add` are not among them: IEEE 754 says every bit of theirs.
const INEXACT: &[&str] = &[
    "exp", "exp2", "exp_m1", "ln", "ln_1p", "log", "log2", "log10", "sin", "cos", "sin_cos", "tan", "asin", "acos",
    "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "powf", "powi", "cbrt", "hypot", "gamma",
];

/// Calls that may stay, with the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("runtime/core/src/plot/axis.rs", "log10", "where a tick stands on a drawing"),
    ("runtime/core/src/plot/axis.rs", "powi", "the number beside a tick of a drawing"),
    ("runtime/core/src/plot/axis.rs", "powf", "the number beside a tick of a drawing"),
];

#[test]
fn results_do_not_come_from_libm() {
    let (mut found, mut unused) = (vec![], ALLOWED.to_vec());
    let is_test = |p: &Path| {
        p.components().any(|c| {
            matches!(c.as_os_str().to_str(), Some("tests" | "testing" | "tests.rs" | "testing.rs" | "laws.rs"))
        })
    };
    for path in sources().iter().filter(|p| MEANINGS.iter().any(|m| p.starts_with(root().join(m))) && !is_test(p)) {
        let text = read(path);
        let home = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        let code = text.split("#[cfg(test)]\nmod").next().unwrap_or("");
        for (i, line) in code.lines().enumerate() {
            // Without texts and comments.
            let line: String = line.split('"').step_by(2).collect();
            let line = line.split("//").next().unwrap_or("");
            for f in INEXACT {
                // A method of a number, or by its path; of scalar programs there are none of these names.
                let calls = line.matches(&format!(".{f}(")).count()
                    + line.matches(&format!("f64::{f}")).count()
                    + line.matches(&format!("f32::{f}")).count();
                // Powers of two are exact.
                let exact = if *f == "powi" {
                    line.matches("2f64.powi(").count() + line.matches("2f32.powi(").count()
                } else {
                    0
                };
                if calls == exact {
                    continue;
                }
                match ALLOWED.iter().any(|(p, g, _)| *p == home && g == f) {
                    true => unused.retain(|(p, g, _)| *p != home || g != f),
                    false => found.push(format!("{home}:{}: `{f}` of the system: {}", i + 1, line.trim())),
                }
            }
        }
        if text.contains("libm::") {
            found.push(format!("{home}: the crate libm"));
        }
    }
    found.extend(unused.iter().map(|(p, f, _)| format!("{p} calls `{f}` no more")));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The lines of the largest set of modules of a crate that lead to each other, by any form of `use`, by paths, and by methods of
/// types that several files give methods to. It may shrink: then the number here does, too. Crates with none are not listed.
const LARGEST_CYCLES: &[(&str, usize)] = &[
    ("compiler/autodiff", 1595),
    ("compiler/base", 1742),
    ("compiler/core", 810),
    ("compiler/driver", 1924),
    ("compiler/graph", 1077),
    ("compiler/host", 2113),
    ("compiler/ide", 585),
    ("compiler/infer", 22229),
    ("compiler/interpret", 1437),
    ("compiler/ir", 316),
    ("compiler/llvm", 4570),
    ("compiler/lower", 2690),
    ("compiler/onnx", 5330),
    ("compiler/ops", 2503),
    ("compiler/schedule", 1057),
    ("compiler/shard", 890),
    ("compiler/tile", 6928),
    ("compiler/trace", 7264),
    ("compiler/types", 1194),
    ("grammar", 991),
    ("runtime/core", 1139),
    ("tests", 1488),
];

fn crates() -> Vec<PathBuf> {
    sources().iter().filter(|p| p.ends_with("src/lib.rs")).filter_map(|p| Some(p.parent()?.to_owned())).collect()
}

/// Modules are listed in reading order: one uses only those above it, unless they are one thing in several files.
#[test]
fn modules_are_in_reading_order() {
    let found: Vec<String> = crates().iter().flat_map(|src| out_of_order(&of_crate(src))).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Room for an edit or two; what is far below is to be written down.
const SLACK: usize = 60;

#[test]
fn cycles_of_modules_do_not_grow() {
    let mut wrong = vec![];
    for src in crates() {
        let name = src.parent().and_then(|p| p.strip_prefix(root()).ok()).unwrap_or(&src).display().to_string();
        let (lines, modules) = cycles(&of_crate(&src)).into_iter().next().unwrap_or_default();
        let stated = LARGEST_CYCLES.iter().find(|c| c.0 == name).map_or(0, |c| c.1);
        if lines > stated + SLACK || lines + 10 * SLACK < stated {
            let which = modules.join(", ");
            wrong.push(format!("{name}: {lines} lines of modules lead to each other, {stated} are stated: {which}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The texts in quotes of a source, each with its line.
fn texts(source: &str) -> Vec<(usize, String)> {
    let mut out = vec![];
    let mut chars = source.chars().peekable();
    let mut line = 1;
    while let Some(c) = chars.next() {
        match c {
            '\n' => line += 1,
            '/' if chars.peek() == Some(&'/') => {
                chars.by_ref().find(|c| *c == '\n');
                line += 1;
            }
            '\'' if chars.peek() == Some(&'"') => drop(chars.next()),
            '"' => {
                let (first, mut text) = (line, String::new());
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    line += usize::from(c == '\n');
                    match c {
                        '\\' => match chars.next() {
                            // The text goes on in the next line.
                            Some('\n') => line += 1,
                            other => text.extend(other),
                        },
                        _ => text.push(c),
                    }
                }
                out.push((first, text));
            }
            _ => {}
        }
    }
    out
}

/// What is wrong with a name in backquotes: a member of a built-in module that is not there, or one without its module.
fn misnamed(quoted: &str) -> Option<String> {
    let decorator = quoted.starts_with('@');
    let path = quoted.trim_start_matches('@');
    let end = path.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(path.len());
    // What is put together when the program runs is not known here.
    if path[end..].starts_with(['{', '…']) || path[..end].ends_with('.') {
        return None;
    }
    match path[..end].rsplit_once('.') {
        Some((module, member)) => {
            let known = MODULES.contains(&module) && module != "std" || module == "dist.collective";
            let there = is_builtin_member(module, member) || is_builtin_module(&path[..end]);
            (known && !there).then(|| format!("there is no `{}`", &path[..end]))
        }
        None => {
            let of = |module: &&&str| is_builtin_member(module, &path[..end]);
            // Words of which most are used for something else, too, are left alone.
            let alone = if decorator { MODULES } else { &["autodiff"] };
            let module =
                alone.iter().find(of).filter(|_| decorator || !["checkpoint", "grad"].contains(&&path[..end]))?;
            Some(format!("`{}` is written `{module}.{}`", &path[..end], &path[..end]))
        }
    }
}

#[test]
fn names_in_messages_can_be_written_in_programs() {
    let mut found = vec![];
    let code = |p: &&PathBuf| {
        let home = p.strip_prefix(root()).unwrap_or(p);
        let tests = home.components().any(|c| matches!(c.as_os_str().to_str(), Some("tests" | "tests.rs")));
        !tests && !home.starts_with("tests") && p.extension().is_some_and(|e| e == "rs")
    };
    let mut all: Vec<(String, String)> = vec![];
    for path in sources().iter().filter(code) {
        let text = |(line, text)| (format!("{}:{line}", path.display()), text);
        all.extend(texts(&read(path)).into_iter().map(text));
    }
    for code in tessera_base::Code::ALL {
        let prose: String = code.page().split("```").step_by(2).collect();
        all.push((format!("the page of {code}"), prose));
    }
    for (place, text) in all {
        let wrong = text.split('`').skip(1).step_by(2).filter_map(misnamed);
        found.extend(wrong.map(|wrong| format!("{place}: {wrong}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
