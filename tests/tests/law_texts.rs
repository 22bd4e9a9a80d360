//! Every IR's text can be fed back in: what `emit` prints of a program reads as the same text again at its own level, and
//! becomes the same text at the next; and no damaged text makes the readers, the verifiers or the lowerings panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tessera::backend::Backend;
use tessera::cli::{Ir, Sizes};
use tessera::emit::AS_IT_IS;
use tessera::emit::feed::{Level, becomes};
use tessera_base::Diagnostic;
use tessera_tests::compare::Bench;
use tessera_tests::documents;
use tessera_tests::program::run_source;
use tessera_tests::random::Random;
use tessera_tests::random_text::{damaged, ir_texts};

fn fed(backend: &Backend, text: &str, ir: Ir) -> Result<String, String> {
    // Nothing of a program runs here.
    let Some(level) = Level::of(text) else {
        return if text.is_empty() { Ok(String::new()) } else { Err("unknown".into()) };
    };
    let told = |wrong: Vec<Diagnostic>| wrong.into_iter().map(|d| d.message).collect::<Vec<_>>().join("; ");
    // What is printed of a graph went through all passes.
    let after = (level == Level::Graph).then_some(AS_IT_IS);
    becomes(backend, text, level, ir, after, &Sizes::default()).map_err(told)
}

/// The first line in which two texts differ.
fn difference(a: &str, b: &str) -> String {
    let at = a.lines().zip(b.lines()).position(|(a, b)| a != b).unwrap_or(a.lines().count().min(b.lines().count()));
    let line = |t: &str| t.lines().nth(at).unwrap_or("(the end)").to_owned();
    format!("line {}:\n  {}\n  {}", at + 1, line(a), line(b))
}

fn same(what: &str, expected: &str, got: Result<String, String>) -> Result<(), String> {
    match got {
        Ok(got) if got == expected => Ok(()),
        Ok(got) => Err(format!("{what}: {}", difference(expected, &got))),
        Err(why) => Err(format!("{what}: {why}")),
    }
}

/// The texts of one program, fed back; returns how many levels it has.
fn holds(backend: &Backend, source: &str) -> Result<usize, String> {
    let emit = |ir: &str| run_source(source, &["emit", "--ir", ir]).map(|r| r.out).map_err(|e| e.to_string());
    let graph = emit("graph")?;
    if graph.is_empty() {
        return Ok(0);
    }
    let (schedule, tile) = (emit("schedule")?, emit("tile")?);
    same("graph again", &graph, fed(backend, &graph, Ir::Graph))?;
    same("graph to schedule", &schedule, fed(backend, &graph, Ir::Schedule))?;
    same("graph to tile", &tile, fed(backend, &graph, Ir::Tile))?;
    // Comments alone are no text of an IR.
    if Level::of(&schedule).is_some() {
        same("schedule again", &schedule, fed(backend, &schedule, Ir::Schedule))?;
        // The kernels of a Fourier transform are written without one.
        if !schedule.contains("has no schedule") {
            same("schedule to tile", &tile, fed(backend, &schedule, Ir::Tile))?;
        }
    }
    if Level::of(&tile).is_some() {
        same("tile again", &tile, fed(backend, &tile, Ir::Tile))?;
    }
    Ok(3)
}

/// Whether a program says a number of five digits: those that count so far take long to run, and each is run three times.
fn counts_far(source: &str) -> bool {
    source.split(|c: char| !c.is_ascii_digit()).any(|number| number.len() > 4)
}

/// One program of so many; all with `TESSERA_LAW_COUNT`.
const ONE_OF: usize = 6;

#[test]
fn what_is_printed_of_a_program_is_read_again() {
    let one_of = if std::env::var_os("TESSERA_LAW_COUNT").is_some() { 1 } else { ONE_OF };
    // Graphs of single devices of a mesh are not held to it yet.
    let one_device = |p: &documents::Written| !p.source.contains("Mesh(");
    let programs = documents::programs().into_iter().filter(|p| !counts_far(&p.source)).step_by(one_of);
    let programs: Vec<_> = programs.filter(one_device).collect();
    let (next, levels, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let bench = Bench::with(Some(tessera_schedule::reference()));
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match holds(&bench.backend, &program.source) {
                        Ok(n) => drop(levels.fetch_add(n, Ordering::Relaxed)),
                        Err(why) => {
                            wrong.lock().unwrap_or_else(|e| e.into_inner()).push(format!("{}: {why}", program.place))
                        }
                    }
                }
            });
        }
    });
    let (levels, wrong) = (levels.into_inner(), wrong.into_inner().unwrap_or_else(|e| e.into_inner()));
    println!("{levels} texts of {} programs", programs.len());
    assert!(levels > 1000 / one_of, "{levels} texts only");
    assert!(wrong.is_empty(), "{} programs\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

/// The two operations that stand for a whole kernel.
const PRODUCTS: [&str; 2] = [
    "%0 = \"tessera.schedule.tile\"(%A, %B) {m=128, n=128, k=64, autotune=true}\n",
    "%fragC = \"tessera.tile.mma_sync\"(%fragA, %fragB, %fragC) {m=16, n=16, k=16, dtype=\"bf16\"}\n",
];

#[test]
fn no_damaged_text_is_more_than_a_diagnostic() {
    let count = if cfg!(debug_assertions) { 300 } else { 6000 };
    let bench = Bench::with(Some(tessera_schedule::reference()));
    let mut random = Random::new(7);
    let mut texts: Vec<String> = (0..40).flat_map(ir_texts).collect();
    texts.extend(PRODUCTS.map(str::to_owned));
    let (mut read, mut wrong) = (0, vec![]);
    for i in 0..count {
        let whole = if i % 8 == 0 { PRODUCTS[i / 8 % 2].to_owned() } else { texts[random.below(texts.len())].clone() };
        let text = damaged(&mut random, &whole);
        // What is a matter of size is none of rules.
        let long = |word: &str| word.len() > 6 && word.bytes().all(|b| b.is_ascii_digit());
        let Some(level) = Level::of(&text).filter(|l| *l != Level::Core) else { continue };
        if text.split(|c: char| !c.is_alphanumeric()).any(long) {
            continue;
        }
        for ir in level.forms().iter().filter(|ir| !matches!(ir, Ir::Llvm | Ir::Asm)) {
            let made = catch_unwind(AssertUnwindSafe(|| fed(&bench.backend, &text, *ir)));
            match made {
                Ok(Ok(_)) => read += 1,
                Ok(Err(why)) if why.is_empty() => wrong.push(format!("nothing is said of\n{text}")),
                Ok(Err(_)) => {}
                Err(_) => wrong.push(format!("{} panics on\n{text}", ir.name())),
            }
        }
    }
    println!("{read} of {count} damaged texts are read all the same");
    assert!(wrong.is_empty(), "{} texts\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
}
