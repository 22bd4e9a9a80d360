//! Zero is a size like any other: every operator with dims of no elements, and of one, is the same interpreted and
//! compiled, or refused by a diagnostic.
//!
//! As graphs, results are also held to their definitions (`tessera_tests::exact`: a sum of nothing is 0, a product 1).
//! As programs, each call goes through the tool in one session: sizes written out and known only when it runs; its
//! gradients; over rows of which there are none; interpreted, compiled, and under `--checked`. `TESSERA_LAW_COUNT=N` runs
//! about so many.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use tessera_base::DType;
use tessera_ops::surface::{OpDef, all};
use tessera_tests::compare::{Bench, interpreted};
use tessera_tests::empties::{Sketch, sketches};
use tessera_tests::exact;
use tessera_tests::golden::blocks;
use tessera_tests::laws::{law_count, on_two_threads};
use tessera_tests::program::{Ran, binary, root, run_command};
use tessera_tests::random_graph::Case;

/// Calls of one row and type, before dims are taken from them.
const CALLS: usize = 3;
/// Types of elements.
const TYPES: [DType; 4] = [DType::F32, DType::Bf16, DType::I32, DType::Bool];
/// Inputs of an ordinary run of the tests, about, of some 25,000.
const PROGRAMS: usize = 3500;
/// Inputs of one session.
const INPUTS: usize = 250;

/// Rows that need other operands: `law_blocks` holds those of blocks, and a key has no sizes.
const ELSEWHERE: &[&str] = &["array", "dequantize", "fake_quantize", "quantize", "random.fold_in", "random.key"];

fn rows() -> Vec<&'static OpDef> {
    all().filter(|d| d.unsupported.is_none()).collect()
}

/// Calls of a row with dims of no elements, then of one.
fn calls(def: &'static OpDef, dtype: DType, count: usize) -> Vec<Sketch> {
    let all = sketches(def, dtype, count);
    let mut out: Vec<Sketch> = [0, 1].iter().flat_map(|&n| all.iter().flat_map(move |s| s.with(n))).collect();
    // Positions of which no tensor here has an element.
    let beyond: Vec<Sketch> = out.iter().filter_map(|s| s.at(9)).collect();
    out.extend(beyond);
    out
}

/// Holds a graph to its definition and every way to run it to its interpretation.
fn check(bench: &mut Bench, case: &Case) -> Result<(), String> {
    if let Ok(got) = interpreted(&case.graph, &case.inputs) {
        for (want, bytes) in exact::outputs(case)?.iter().zip(&got) {
            let numbers = exact::numbers(want.dtype(), bytes);
            if want.values.len() != numbers.len() || !want.values.iter().zip(&numbers).all(|(w, g)| w.holds(g)) {
                return Err(format!("is {numbers:?}, not {:?}", want.values));
            }
        }
    }
    bench.check(case).map(|_| ()).map_err(|d| d.to_string())
}

#[test]
fn graphs_of_empty_tensors_are_what_they_are_defined_to_be() {
    let rows = rows();
    let failures = on_two_threads(rows.len(), |i| {
        let mut bench = Bench::new();
        let mut wrong = vec![];
        let mut run = 0;
        for case in TYPES.iter().flat_map(|&t| calls(rows[i], t, CALLS)).filter_map(|s| s.case()) {
            run += 1;
            match catch_unwind(AssertUnwindSafe(|| check(&mut bench, &case))) {
                Ok(Ok(())) => {}
                Ok(Err(why)) => wrong.push(format!("{}: {why}", case.graph.name)),
                Err(_) => wrong.push(format!("{} panics", case.graph.name)),
            }
        }
        if run == 0 && !ELSEWHERE.contains(&rows[i].name) {
            wrong.push(format!("{}: no call is accepted", rows[i].name));
        }
        wrong
    });
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// What is run of one call: its value, its gradients, and both over rows of which there are none.
fn programs(s: &Sketch, results: usize) -> Vec<String> {
    let mut out = vec![];
    let floats = s.dtype.is_float();
    let sum = |call: &str| match results {
        1 => format!("op.sum({call})"),
        _ => format!("op.sum({call}[0])"),
    };
    for named in [false, true] {
        out.push(s.text(named));
        let Some((f, args)) = s.function(s.dtype, &[], named) else { continue };
        let (names, call) = f.strip_prefix("lambda ").and_then(|f| f.split_once(": ")).unwrap_or_default();
        let summed = format!("lambda {names}: {}", sum(call));
        let wrt = (0..args.len()).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
        let gradient = format!("autodiff.value_and_grad({summed}, wrt=({wrt},))");
        let rows = s.function(s.dtype, &[0], named).map(|(_, args)| args.join(", ")).unwrap_or_default();
        if floats {
            out.push(format!("{gradient}({})", args.join(", ")));
            out.push(format!("autodiff.vmap({gradient})({rows})"));
        }
        out.push(format!("autodiff.vmap({f})({rows})"));
    }
    out
}

/// How an input of a session ended: what it printed, or the first diagnostic's code.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Ending {
    Printed(String),
    Refused(String),
}

/// Endings by input.
fn endings(ran: &Ran, count: usize) -> Result<Vec<Ending>, String> {
    let mut out = BTreeMap::new();
    for part in ran.out.split("\n#").map(|p| p.strip_prefix('#').unwrap_or(p)) {
        let Some((number, text)) = part.split_once(' ') else { continue };
        let Ok(number) = number.parse::<usize>() else { continue };
        out.insert(number, Ending::Printed(text.trim_end().to_owned()));
    }
    let mut code = None;
    for line in ran.err.lines() {
        if let Some(c) = line.strip_prefix("error[") {
            code = Some((c[..5].to_owned(), line.to_owned()));
        }
        let Some((_, at)) = line.split_once("<input ") else { continue };
        let Some(number) = at.split('>').next().and_then(|n| n.parse::<usize>().ok()) else { continue };
        if let Some((_, line)) = code.take() {
            // Two inputs define the names.
            out.entry(number - 3).or_insert(Ending::Refused(line));
        }
    }
    if ran.err.contains("panicked") || ran.err.contains("E0999") || !(0..=1).contains(&ran.code) {
        let at = (0..count).find(|i| !out.contains_key(i));
        let lines = |s: &str| {
            s.lines().filter(|l| l.contains("panicked") || l.contains("E0999")).collect::<Vec<_>>().join("\n")
        };
        return Err(format!("exit {} near input {at:?}: {}", ran.code, lines(&ran.err)));
    }
    match (0..count).find(|i| !out.contains_key(i)) {
        Some(i) => Err(format!("input {i} ends in silence")),
        None => Ok(out.into_values().collect()),
    }
}

/// Runs inputs in one session.
fn session(inputs: &[String], checked: bool, compiled: bool) -> Result<Vec<Ending>, String> {
    let mut text = "zero = int(\"0\")\none = int(\"1\")\n".to_owned();
    for (i, input) in inputs.iter().enumerate() {
        text += &format!("print(\"#{i}\", {input})\n");
    }
    let mut command = Command::new(binary());
    command.arg("repl");
    if checked {
        command.arg("--checked");
    }
    if compiled {
        command.env("TESSERA_ALWAYS_COMPILE", "1");
    }
    let ran = run_command(&mut command, &text).map_err(|e| e.to_string())?;
    endings(&ran, inputs.len())
}

/// What is wrong with inputs: they end in three ways alike.
fn wrong(inputs: &[String]) -> Vec<String> {
    let ways = [("interpreted", false, false), ("compiled", false, true), ("checked", true, false)];
    // The interpreter of kernels tells the place in the kernel too.
    let code = |e: &Ending| match e {
        Ending::Refused(line) => line[..12.min(line.len())].to_owned(),
        Ending::Printed(text) => text.clone(),
    };
    let mut first: Option<Vec<Ending>> = None;
    let mut out = vec![];
    for (way, checked, compiled) in ways {
        match session(inputs, checked, compiled) {
            Err(why) if inputs.len() == 1 => out.push(format!("{}\n    {way}: {why}", inputs[0])),
            // Each half by itself.
            Err(_) => {
                let (a, b) = inputs.split_at(inputs.len() / 2);
                return [wrong(a), wrong(b)].concat();
            }
            Ok(ends) => match &first {
                None => first = Some(ends),
                Some(first) => {
                    for ((input, a), b) in inputs
                        .iter()
                        .zip(first)
                        .zip(&ends)
                        .filter(|((_, a), b)| if checked { code(a) != code(b) } else { a != b })
                    {
                        out.push(format!("{input}\n    interpreted: {a:?}\n    {way}: {b:?}"));
                    }
                }
            },
        }
    }
    out
}

#[test]
fn programs_of_empty_tensors_end_alike_in_every_way() {
    let mut inputs = vec![];
    for def in rows() {
        for dtype in TYPES {
            let count = if dtype == DType::F32 { 2 } else { 1 };
            for s in calls(def, dtype, count) {
                let results = s.case().map_or(1, |c| c.graph.outputs.len());
                inputs.extend(programs(&s, results));
            }
        }
    }
    let wanted = law_count().map_or(PROGRAMS, |n| n as usize);
    // Odd, so that forms of a call take turns.
    let step = (inputs.len() / wanted.max(1)) | 1;
    let inputs: Vec<String> = inputs.into_iter().step_by(step).collect();
    println!("{} inputs", inputs.len());
    let chunks: Vec<&[String]> = inputs.chunks(INPUTS).collect();
    let failures = on_two_threads(chunks.len(), |i| wrong(chunks[i]));
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// The programs of `run/empty.md`, which the golden test interprets, in the other ways.
#[test]
fn programs_print_the_same_in_every_way() {
    let text = std::fs::read_to_string(root().join("tests/golden/run/empty.md")).expect("the file can be read");
    let all = blocks(&text);
    let starts: Vec<usize> = (0..all.len()).filter(|&i| all[i].info.starts_with("tessera")).collect();
    let mut wrong = vec![];
    for (n, &start) in starts.iter().enumerate() {
        let mine = &all[start..starts.get(n + 1).copied().unwrap_or(all.len())];
        let of = |kind: &str| mine.iter().find(|b| b.info.starts_with(kind)).map_or("", |b| b.text.trim_end());
        for checked in [false, true] {
            let dir = tempfile::tempdir().expect("a temporary folder");
            std::fs::write(dir.path().join("main.tsr"), of("tessera")).expect("a program can be written");
            let mut command = Command::new(binary());
            command.args(["run", "--devices", "2"]).args(checked.then_some("--checked")).arg("main.tsr");
            command.current_dir(dir.path()).env("TESSERA_ALWAYS_COMPILE", "1");
            let ran = run_command(&mut command, "").expect("the program under test starts");
            // The interpreter of kernels tells the place in the kernel too.
            let code = |text: &str| text.strip_prefix("error[").map(|t| t[..5].to_owned());
            if ran.out.trim_end() != of("output") || code(&ran.err) != code(of("error")) {
                wrong.push(format!("{} (checked: {checked})\n{}{}", mine[0].heading, ran.out, ran.err));
            }
        }
    }
    assert!(starts.len() > 8 && wrong.is_empty(), "{}", wrong.join("\n\n"));
}
