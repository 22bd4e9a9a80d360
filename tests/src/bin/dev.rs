//! `cargo dev …`: what a developer of Tessera runs.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;
use tessera_tests::{figures, golden, peers, program, reference};

const USAGE: &str = "cargo dev ci      every check that needs no GPU\n\
                     cargo dev bless   rewrite the golden files, and the outputs in docs, from what the program does now (words after it:\n\
                     \x20                 only files whose path has one of them)\n\
                     cargo dev bench   the speed figures (release, medians)\n\
                     cargo dev bench --peers \"COMMAND\" NAME,NAME… [ROW…]\n\
                     \x20                 the same rows here and in other libraries, which COMMAND runs\n\
                     cargo dev bench --policies [ROW…]\n\
                     \x20                 the same rows under the default policy and under `fast`\n\
                     cargo dev bench --editor\n\
                     \x20                 how soon the language server answers in a file of 20,000 lines\n\
                     cargo dev bench --advice [RULE…]\n\
                     \x20                 what `tessera advise` predicts, and what the edit brings\n\
                     cargo dev bench --profile\n\
                     \x20                 what the profiler costs, off and on\n\
                     cargo dev fuzz S  random input for S seconds a target (graphs, texts, programs; a name after S: only that)\n\
                     cargo dev docs    write the pages of the reference that are generated: operators, built in, library, diagnostics;\n\
                     \x20                 and the figures that programs of pages draw\n\
                     cargo dev size    lines per crate";

/// That of the tool: what is timed in this process is what the tool takes.
#[global_allocator]
static MEMORY: tessera_runtime::memory::Counting = tessera_runtime::memory::Counting;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ok = match args.first().map(String::as_str) {
        Some("ci") => ci(),
        Some("bless") => bless(&args[1..]),
        Some("docs") => docs(),
        Some("size") => size(),
        Some("fuzz") => tessera_tests::fuzz::run(
            args.get(1).and_then(|s| s.parse().ok()).unwrap_or(60),
            args.get(2).map(String::as_str),
        ),
        Some("bench") if args.get(1).is_some_and(|a| a == "--peers") => match peers::Wanted::parse(&args[2..]) {
            Some(wanted) => peers::run(&wanted),
            None => {
                eprintln!("cargo dev bench --peers \"COMMAND\" NAME,NAME… [ROW…]");
                return ExitCode::from(2);
            }
        },
        Some("bench") if args.get(1).is_some_and(|a| a == "--policies") => peers::policies(&args[2..]),
        Some("bench") if args.get(1).is_some_and(|a| a == "--editor") => tessera_tests::editor_bench::run(),
        Some("bench") if args.get(1).is_some_and(|a| a == "--advice") => tessera_tests::advice_bench::run(&args[2..]),
        Some("bench") if args.get(1).is_some_and(|a| a == "--profile") => tessera_tests::profile_bench::run(),
        Some("bench") => tessera_tests::bench::run(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one command from the root and tells how long it took.
fn step(name: &str, program: &str, args: &[&str]) -> bool {
    let start = Instant::now();
    eprintln!("== {name}");
    let status = Command::new(program).args(args).current_dir(program::root()).status();
    let ok = status.is_ok_and(|s| s.success());
    eprintln!("== {name}: {} in {:.1} s", if ok { "ok" } else { "FAILED" }, start.elapsed().as_secs_f64());
    ok
}

fn ci() -> bool {
    let steps: &[(&str, &[&str])] = &[
        ("build", &["build", "--release", "--quiet", "--package", "tessera"]),
        ("lint", &["clippy", "--workspace", "--all-targets", "--release", "--quiet", "--", "-D", "warnings"]),
        ("test", &["test", "--workspace", "--release", "--quiet", "--no-fail-fast"]),
    ];
    // Every step runs, so that one report shows all that is wrong.
    let mut ok = formatted();
    for (name, args) in steps {
        ok &= step(name, "cargo", args);
    }
    ok
}

fn bless(only: &[String]) -> bool {
    let mut ok = true;
    let root = program::root();
    let named = |f: &PathBuf, word: &String| f.strip_prefix(&root).is_ok_and(|f| f.to_string_lossy().contains(word));
    let wanted = |f: &PathBuf| only.is_empty() || only.iter().any(|word| named(f, word));
    let pages = tessera_tests::documents::PAGES.iter().map(|name| root.join("docs").join(name));
    for file in golden::files(&root.join("tests/golden")).into_iter().chain(pages).filter(wanted) {
        match golden::check_file(&file, true) {
            Ok(complaints) => complaints.iter().for_each(|c| eprintln!("{c}")),
            Err(e) => {
                eprintln!("{}: {e}", file.display());
                ok = false;
            }
        }
    }
    ok
}

fn docs() -> bool {
    match reference::pages() {
        // Every page is written, so that one report shows all that is wrong.
        Ok(pages) => pages.iter().fold(drawn(), |ok, (name, page)| written(name, page) & ok),
        Err(e) => {
            eprintln!("docs: {e}");
            false
        }
    }
}

/// Writes the figures that the programs of pages draw.
fn drawn() -> bool {
    let write = |(path, text): &(String, String)| {
        let path = program::root().join("docs").join(path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, text))
    };
    let page = |page: &&str| figures::of_page(page).and_then(|figures| figures.iter().try_for_each(write));
    figures::PAGES.iter().map(page).fold(true, |ok, done| match done {
        Ok(()) => ok,
        Err(e) => {
            eprintln!("{e}");
            false
        }
    })
}

/// Writes a page of the documentation, with what its programs print.
fn written(name: &str, page: &str) -> bool {
    let path = program::root().join("docs").join(name);
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let complaints = folder.and_then(|()| std::fs::write(&path, page)).and_then(|()| golden::check_file(&path, true));
    match complaints {
        Ok(complaints) => {
            complaints.iter().for_each(|c| eprintln!("{c}"));
            complaints.is_empty()
        }
        Err(e) => {
            eprintln!("docs/{name}: {e}");
            false
        }
    }
}

/// The source files under a directory of the root, sorted.
fn sources(dir: &str) -> Vec<PathBuf> {
    let (mut found, mut todo) = (vec![], vec![program::root().join(dir)]);
    while let Some(d) = todo.pop() {
        for entry in std::fs::read_dir(&d).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs" || e == "lalrpop" || e == "tsr") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Modules that a macro declares are not seen by `cargo fmt`, so each file is named.
fn formatted() -> bool {
    let files = ["grammar", "compiler", "runtime", "tests"].iter().flat_map(|dir| sources(dir));
    let rust: Vec<String> =
        files.filter(|f| f.extension().is_some_and(|e| e == "rs")).map(|f| f.display().to_string()).collect();
    let args: Vec<&str> = ["--check", "--edition", "2024"].into_iter().chain(rust.iter().map(String::as_str)).collect();
    step("format", "rustfmt", &args)
}

fn size() -> bool {
    let mut total = 0;
    for dir in ["grammar", "compiler", "runtime", "std", "tests"] {
        let count = |path: &PathBuf| std::fs::read_to_string(path).map_or(0, |t| t.lines().count());
        let lines: usize = sources(dir).iter().map(count).sum();
        println!("{lines:>8}  {dir}");
        total += lines;
    }
    println!("{total:>8}  total");
    true
}
