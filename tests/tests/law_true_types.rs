//! Types that are printed are true: random programs whose sizes come from data, and every program of the documents,
//! run with each value held against its type (`--checked`).
//!
//! `TESSERA_SEED=N` runs one program, `TESSERA_LAW_COUNT=N` so many; both, so many from that one on.

use std::sync::atomic::{AtomicUsize, Ordering};
use tessera::testing::{Outcome, Runner};
use tessera_tests::documents;
use tessera_tests::laws::{on_two_threads, run_seeds, seeds};
use tessera_tests::program::{Ran, run_in, run_source};
use tessera_tests::random_sizes::{Program, program};
use tessera_tests::without_comparisons::without_comparisons;

/// Programs of an ordinary run of the tests.
const PROGRAMS: u64 = 1500;

/// Documents of which a program is too large for the interpreter of kernels: sums over 2,147,483,700 elements.
const TOO_LARGE: &[&str] = &["positions.md"];

/// The first error that a run names.
fn code(ran: &Ran) -> Option<&str> {
    ran.err.lines().find_map(|l| l.strip_prefix("error[")).and_then(|l| l.get(..5))
}

fn end(ran: &Ran) -> String {
    format!("exit {}\n{}{}", ran.code, ran.out, ran.err)
}

/// How a program ended that keeps the law.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Refused,
    Ran,
    Differed,
    Stopped,
}

/// What breaks the law of a run; a diagnostic's code is `E07xx` where the program had begun.
fn broken(ran: &Ran, started: bool) -> Option<String> {
    let code = code(ran);
    let fine = match (ran.code, code) {
        (0, None) => true,
        // A size that is negative whenever its place is reached is refused.
        (1, Some("E0711")) => true,
        (1, Some("E0999")) => false,
        (1, Some(c)) => c.starts_with("E07") == started,
        _ => false,
    };
    (!fine || ran.err.contains("panicked") || ran.err.contains("E0999")).then(|| end(ran))
}

/// The law. `Err` is a word for the way in which it is broken and what was said.
fn holds(source: &str) -> Result<Ending, (&'static str, String)> {
    let run = |args: &[&str]| run_source(source, args).map_err(|e| ("not run", e.to_string()));
    let check = run(&["check"])?;
    if let Some(text) = broken(&check, false) {
        return Err(("check", text));
    }
    if check.code != 0 {
        return Ok(Ending::Refused);
    }
    let checked = run(&["run", "--checked"])?;
    if let Some(text) = broken(&checked, true) {
        return Err(("run --checked", text));
    }
    let plain = run(&["run"])?;
    // Where values are not held, what fails may come before what would have failed first.
    if (plain.code, &plain.out) != (checked.code, &checked.out) || code(&plain).is_some() != code(&checked).is_some() {
        return Err(("different ends", format!("--checked: {}\n\nplain: {}", end(&checked), end(&plain))));
    }
    Ok(match code(&plain) {
        None => Ending::Ran,
        Some("E0708") => Ending::Differed,
        Some(_) => Ending::Stopped,
    })
}

/// Drops pieces for as long as the law is broken in the same way.
fn shrink(mut p: Program, how: &str) -> Program {
    let mut at = 0;
    while at < p.pieces.len() {
        let mut smaller = p.clone();
        smaller.pieces.remove(at);
        match holds(&smaller.text()) {
            Err((h, _)) if h == how => {
                p = smaller;
                at = 0;
            }
            _ => at += 1,
        }
    }
    p
}

#[test]
fn types_of_random_programs_are_true() {
    let seeds = run_seeds(PROGRAMS);
    let (from, count) = (seeds.start, (seeds.end - seeds.start) as usize);
    let ends: [AtomicUsize; 4] = Default::default();
    let told = AtomicUsize::new(0);
    let failures = on_two_threads(count, |i| {
        let seed = from + i as u64;
        let p = program(seed);
        match holds(&p.text()) {
            Ok(end) => {
                ends[end as usize].fetch_add(1, Ordering::Relaxed);
                vec![]
            }
            Err((how, _)) if told.fetch_add(1, Ordering::Relaxed) < 10 => {
                let small = shrink(p, how);
                let said = holds(&small.text()).err().map(|e| e.1).unwrap_or_default();
                vec![format!("seed {seed}, {how}:\n{}\n{said}", small.text())]
            }
            Err((how, _)) => vec![format!("seed {seed}, {how}")],
        }
    });
    let [refused, ran, differed, stopped] = ends.map(AtomicUsize::into_inner);
    println!(
        "{count} programs: {refused} refused, {ran} ran, {differed} stopped where sizes differ, {stopped} elsewhere"
    );
    assert!(failures.is_empty(), "{} of {count} programs\n\n{}", failures.len(), failures.join("\n\n"));
    if count >= 100 {
        let accepted = ran + differed + stopped;
        assert!(accepted * 2 >= count, "only {accepted} of {count} programs are accepted");
        assert!(differed * 10 >= accepted, "sizes differ in {differed} of {accepted} programs only");
    }
}

#[test]
fn types_of_the_programs_of_the_documents_are_true() {
    let mut programs = vec![];
    for p in documents::programs() {
        let expected = p.follow.iter().any(|b| b.text.contains("E0999"));
        // Some programs would take all memory.
        let within = p.follow.iter().find_map(|b| Some(b.info.split_once(" within ")?.1.to_owned()));
        let large = TOO_LARGE.iter().any(|name| p.place.contains(name)) && p.source.contains("21474837");
        // Products for GPUs are looked at, not run: the interpreter would take minutes.
        let counted = p.follow.iter().any(|b| b.info.starts_with("gpu "));
        // So would steps by the thousand.
        let stepped = p.place.contains("docs/gallery.md") && p.source.contains("op.fori");
        if !expected && !large && !counted && !stepped {
            programs.push((p.place, p.source, within));
        }
    }
    let failures = on_two_threads(programs.len(), |i| {
        let (place, source, within) = &programs[i];
        let mut args = vec!["run", "--checked"];
        if let Some(size) = within {
            args.extend(["--memory", size]);
        }
        if source.contains("dist") {
            args.extend(["--devices", "64"]);
        }
        match run_source(source, &args) {
            Err(e) => vec![format!("{place}: {e}")],
            Ok(r) if r.code < 0 || r.code > 100 || r.err.contains("E0999") || r.err.contains("panicked") => {
                vec![format!("{place}\n{source}\n{}", end(&r))]
            }
            Ok(_) => vec![],
        }
    });
    println!("{} programs", programs.len());
    assert!(failures.is_empty(), "{} of {}\n\n{}", failures.len(), programs.len(), failures.join("\n\n"));
}

/// Sessions of an ordinary run of the tests.
const SESSIONS: u64 = 40;

/// A program as the inputs of a session, which is asked for the type and the shape of every tensor at the end.
fn session(p: &Program) -> String {
    let mut input = String::new();
    for piece in &p.pieces {
        match piece.strip_prefix("print(").and_then(|s| s.split_once(".shape, ")) {
            Some((name, rest)) if rest.starts_with(&format!("{name}.sum")) => {
                input += &format!(":type {name}\nprint(\"@\", {name}.shape)\n");
            }
            _ => input += &format!("{piece}\n"),
        }
    }
    input
}

/// What is wrong between a type that a session tells and the shape behind it: `Tensor[2, n, f32]` and `@ (2, 3)`.
fn told_wrongly(ty: &str, shape: &str) -> Option<String> {
    let parts = |s: &str| s.split(", ").map(str::to_owned).filter(|s| !s.is_empty()).collect::<Vec<_>>();
    let dims = parts(ty.strip_prefix("Tensor[")?.strip_suffix(']')?);
    let sizes = parts(shape.strip_prefix("@ (")?.strip_suffix(')')?.trim_end_matches(','));
    let plain = !ty.contains('(');
    let differ = |(d, n): (&String, &String)| d.parse::<u64>().is_ok() && d != n;
    let wrong = plain && (dims.len() != sizes.len() + 1 || dims.iter().zip(&sizes).any(differ));
    wrong.then(|| format!("{ty}\n{shape}"))
}

#[test]
fn types_that_a_session_tells_are_true() {
    let seeds = seeds(SESSIONS);
    let count = (seeds.end - seeds.start) as usize;
    let compared = AtomicUsize::new(0);
    let failures = on_two_threads(count, |i| {
        let seed = seeds.start + i as u64;
        let input = session(&program(seed));
        let dir = tempfile::tempdir().expect("a folder");
        let ran = match run_in(dir.path(), &["repl", "--checked"], &input) {
            Ok(ran) => ran,
            Err(e) => return vec![e.to_string()],
        };
        let lines: Vec<&str> = ran.out.lines().collect();
        let asked = lines.windows(2).filter(|w| w[0].starts_with("Tensor[") && w[1].starts_with("@ ("));
        let mut wrong: Vec<String> = asked
            .filter_map(|w| {
                compared.fetch_add(1, Ordering::Relaxed);
                told_wrongly(w[0], w[1])
            })
            .collect();
        if ran.err.contains("E0999") || ran.err.contains("panicked") || !matches!(ran.code, 0 | 1) {
            wrong.push(end(&ran));
        }
        wrong.into_iter().map(|w| format!("seed {seed}:\n{input}\n{w}")).collect()
    });
    println!("{count} sessions, {} types", compared.into_inner());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Programs in which values are not of their types, unless they are compared. `$` is a folder.
const UNTRUE: &[(&str, &str)] = &[
    (
        "two files of 1 and 5 rows",
        "io.write_npy(\"$/a.npy\", op.ones((1,)))
io.write_npy(\"$/b.npy\", op.ones((5,)))
a: Tensor[N, f32] = io.read_npy(\"$/a.npy\")
b: Tensor[N, f32] = io.read_npy(\"$/b.npy\")
print(a + b)
",
    ),
    (
        "3 elements for a parameter of 4",
        "def f(x: Tensor[4, f32]):
    return x + 1.0
n = int(\"3\")
print(f(op.ones((n,))))
",
    ),
    (
        "n and m elements for two parameters of N",
        "def pick(a: Tensor[N, f32], b: Tensor[N, f32]) -> Tensor[N, f32]:
    return b * 2.0
n = int(\"1\")
m = int(\"5\")
print(pick(op.ones((n,)), op.ones((m,))))
",
    ),
    (
        "5 elements for n = 4",
        "def f(n: int, x: Tensor[n, f32]):
    return x + 1.0
n = int(\"4\")
m = int(\"5\")
print(f(n, op.ones((m,))))
",
    ),
    (
        "2 elements into a list of tensors of 3",
        "n = int(\"2\")
xs: list[Tensor[3, f32]] = [op.ones((3,))]
xs.append(op.ones((n,)))
print(xs[1])
",
    ),
    (
        "2 elements into a list of tensors of 3, in host code alone",
        "def f(xs: list[Tensor[3, f32]]) -> int:
    print(len(xs))
    return len(xs)
n = int(\"2\")
print(f([op.ones((n,))]))
",
    ),
];

#[test]
fn without_comparisons_types_are_not_true_and_that_is_found() {
    let dir = tempfile::tempdir().expect("a folder");
    let stack = 256 << 20;
    let check = || {
        let runner = Runner::checked(stack / 2);
        for (what, text) in UNTRUE {
            let text = text.replace('$', &dir.path().to_string_lossy());
            let stopped = |outcome: Outcome, code: &str| match outcome {
                Outcome::Stopped(said) if said.contains(code) => {}
                other => panic!("{what}: {other:?} where {code} is to be told\n{text}"),
            };
            stopped(runner.run(&text), if text.contains("read_npy") { "E0707" } else { "E0708" });
            stopped(runner.run_changed(&text, without_comparisons), "E0999");
        }
    };
    std::thread::scope(|s| {
        let thread = std::thread::Builder::new().stack_size(stack).spawn_scoped(s, check).expect("a thread starts");
        if let Err(e) = thread.join() {
            std::panic::resume_unwind(e);
        }
    });
}
