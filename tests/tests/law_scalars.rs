//! One text, one meaning: operations on numbers are the same, and fail at the same place with the same words, whether they
//! are host code, written out in a graph, a loop there that is interpreted or compiled, or Core that is interpreted. The
//! table of operations says which there are and what each gives.

use std::process::Command;
use tessera_ops::numbers::NumberOp;
use tessera_ops::scalar::Kind;
use tessera_tests::laws::{on_two_threads, run_seeds};
use tessera_tests::program::{binary, run_command, run_source};
use tessera_tests::random::Random;
use tessera_tests::scalar_programs::{Expressions, PRELUDE, functions, operands, type_name, written};

const PROGRAMS: u64 = 120;

/// The first line of a diagnostic and its place.
fn first(text: &str) -> String {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default().to_owned();
    let place = lines.next().unwrap_or_default();
    format!("{head} {}", place.trim_start().trim_start_matches(['╭', '─', '[', ' ']))
}

/// How a program is run.
#[derive(Clone, Copy, PartialEq, Debug)]
enum By {
    Compiled,
    /// Graphs that are small are compiled, too.
    AlwaysCompiled,
    Interpreted,
}

/// What a program prints, and how it ends.
fn ended(source: &str, by: By) -> (i32, String, String) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("main.tsr"), source).unwrap();
    let mut command = Command::new(binary());
    command.args(["run", "main.tsr"]).args((by == By::Interpreted).then_some("--interpret")).current_dir(dir.path());
    if by == By::AlwaysCompiled {
        command.env("TESSERA_ALWAYS_COMPILE", "1");
    }
    let ran = run_command(&mut command, "").unwrap();
    (ran.code, ran.out, first(&ran.err))
}

/// A program that computes in a loop, as host code (of an int) or in a graph (of a tensor).
fn looped(body: &str, graph: bool, turns: usize) -> String {
    let (of, x) = if graph { ("Tensor[f32]", "op.zeros(())") } else { ("int", "0") };
    format!(
        "import math\n\n{PRELUDE}def g(x: {of}, n: int):\n    a = 1\n    b = 2\n    f = 0.5\n    h = 3.0\n    p = False\n    \
         for i in range(n):\n{body}    return a, b, f, h, p, x\n\nr = g({x}, {turns})\nprint(r[0], r[1], r[2], r[3], r[4])\n"
    )
}

/// The body of a random loop. Once in four it begins with the row that the seed says.
fn body(seed: u64) -> String {
    let random = &mut Random::new(seed);
    let mut e = Expressions { random };
    let mut body = String::new();
    let set = |kind: Kind, e: &mut Expressions, value: String| {
        let name = match kind {
            Kind::F64 => ["f", "h"][e.random.below(2)],
            Kind::Bool => "p",
            _ => ["a", "b"][e.random.below(2)],
        };
        format!("        {name} = {value}\n")
    };
    let row = NumberOp::ALL[(seed / 4) as usize % NumberOp::ALL.len()];
    if seed.is_multiple_of(4) {
        let value = e.row(row, 2);
        body += &set(row.def().gives, &mut e, value);
    }
    for _ in 0..1 + e.random.below(3) {
        let kind = [Kind::I64, Kind::F64, Kind::F64, Kind::I64, Kind::Bool][e.random.below(5)];
        let depth = 1 + e.random.below(3);
        let value = e.of(kind, depth);
        body += &set(kind, &mut e, value);
    }
    body
}

#[test]
fn loops_mean_the_same_everywhere() {
    let seeds = run_seeds(PROGRAMS);
    let failed = std::sync::atomic::AtomicUsize::new(0);
    let count = (seeds.end - seeds.start) as usize;
    let wrong = on_two_threads(count, |k| {
        let seed = seeds.start + k as u64;
        let body = body(seed);
        let mut out = vec![];
        for turns in [[5, 20], [9, 33]][(seed % 2) as usize] {
            let host = ended(&looped(&body, false, turns), By::Compiled);
            failed.fetch_add(usize::from(host.0 != 0), std::sync::atomic::Ordering::Relaxed);
            let mut ways = vec![(false, By::Interpreted), (true, By::Compiled)];
            ways.extend((turns > 16).then_some((true, By::AlwaysCompiled)));
            for (graph, by) in ways {
                let other = ended(&looped(&body, graph, turns), by);
                if host != other {
                    let place = if graph { "in a graph" } else { "as host code" };
                    out.push(format!("seed {seed}, {turns} turns, {by:?} {place}\n{body}{host:?}\n{other:?}"));
                }
            }
        }
        out
    });
    assert!(wrong.is_empty(), "{} differ\n\n{}", wrong.len(), wrong.join("\n\n"));
    let failed = failed.into_inner();
    assert!(count < 100 || failed > count / 4 && failed < 2 * count - count / 4, "{failed} of {} fail", 2 * count);
}

/// A call of an operation: what programs write, its operands, and what the row gives, or `None` where it has no value.
struct Case {
    of: String,
    takes: Vec<Kind>,
    write: Box<dyn Fn(&[&str]) -> String + Sync>,
    calls: Vec<(Vec<String>, Option<String>)>,
}

fn shown(kind: Kind, word: u64) -> String {
    match kind {
        Kind::F64 => tessera_runtime::digits::repr(f64::from_bits(word), tessera_base::DType::F64),
        Kind::Bool => if word != 0 { "True" } else { "False" }.into(),
        _ => (word as i64).to_string(),
    }
}

fn row(op: NumberOp) -> Case {
    let def = op.def();
    let of_ints = op == NumberOp::int_div;
    let takes: Vec<Kind> = def.takes.iter().map(|k| if of_ints { Kind::I64 } else { *k }).collect();
    let word = |w: u64| if of_ints { (w as i64 as f64).to_bits() } else { w };
    let first = operands(takes[0]);
    let second = takes.get(1).map_or(vec![(String::new(), 0)], |k| operands(*k));
    let mut calls = vec![];
    for (a, x) in &first {
        for (b, y) in &second {
            let value = op.apply(word(*x), word(*y)).ok().map(|w| shown(def.gives, w));
            calls.push((vec![a.clone(), b.clone()], value));
        }
    }
    let write = move |x: &[&str]| written(op, x[0], x.get(1).unwrap_or(&""));
    Case { of: def.name.into(), takes, write: Box::new(write), calls }
}

/// The function applied to operands in a loop, in host code or a graph, where the loop carries the operands.
fn applied(case: &Case, graph: bool) -> String {
    let of = if graph { "Tensor[f32]" } else { "int" };
    let names = &["x", "y"][..case.takes.len()];
    let params: Vec<String> = names.iter().zip(&case.takes).map(|(n, k)| format!("{n}: {}", type_name(*k))).collect();
    let keep = |(name, kind): (&&str, &Kind)| match kind {
        Kind::F64 => format!("        {name} = {name} * 1.0\n"),
        Kind::Bool => format!("        {name} = {name} == (i >= 0)\n"),
        _ => format!("        {name} = {name} | 0\n"),
    };
    let kept: String = names.iter().zip(&case.takes).map(keep).collect();
    let call = (case.write)(names);
    format!(
        "import math\n\ndef g(z: {of}, {}, n: int):\n    r = {call}\n    for i in range(n):\n{kept}        r = {call}\n    \
         return r, z\n\n",
        params.join(", ")
    )
}

fn hold(case: &Case) -> Vec<String> {
    let ways = [(false, By::Compiled), (false, By::Interpreted), (true, By::Compiled), (true, By::AlwaysCompiled)];
    let call = |graph: bool, args: &[String]| {
        let z = if graph { "op.zeros(())" } else { "0" };
        format!("print(g({z}, {}, 20)[0])\n", args[..case.takes.len()].join(", "))
    };
    let mut out = vec![];
    let good: Vec<_> = case.calls.iter().filter(|(_, v)| v.is_some()).collect();
    let wanted: Vec<&str> = good.iter().map(|(_, v)| v.as_deref().unwrap_or_default()).collect();
    for (graph, by) in ways {
        let calls: String = good.iter().map(|(args, _)| call(graph, args)).collect();
        let (code, text, error) = ended(&(applied(case, graph) + &calls), by);
        let mut lines = text.lines();
        for ((args, _), want) in good.iter().zip(&wanted) {
            let have = lines.next();
            if have != Some(want) {
                out.push(format!(
                    "{} of {args:?}, {by:?}, graph: {graph}: {have:?} where {want} is meant ({code} {error})",
                    case.of
                ));
                break;
            }
        }
    }
    // Of what has no value, some: each ends its program.
    let bad: Vec<_> = case.calls.iter().filter(|(_, v)| v.is_none()).collect();
    let step = bad.len().div_ceil(4).max(1);
    for (args, _) in bad.into_iter().step_by(step) {
        let host = ended(&(applied(case, false) + &call(false, args)), By::Compiled);
        if host.0 == 0 {
            out.push(format!("{} of {args:?} has a value in host code: {}", case.of, host.1));
        }
        for (graph, by) in ways {
            let other = ended(&(applied(case, graph) + &call(graph, args)), by);
            // The line of the call is longer in a graph, and what failed stands in the function.
            if host != other {
                out.push(format!("{} of {args:?}, {by:?}, graph: {graph}\n{host:?}\n{other:?}", case.of));
            }
        }
    }
    out
}

#[test]
fn every_row_means_what_it_says_everywhere() {
    let rows = NumberOp::ALL;
    let wrong = on_two_threads(rows.len(), |i| hold(&row(rows[i])));
    assert!(wrong.is_empty(), "{} differ\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Functions of numbers that are no row: the interpreter and graphs do what host code does.
#[test]
fn functions_of_numbers_mean_the_same_everywhere() {
    let mut all: Vec<(String, Vec<Kind>)> =
        functions().into_iter().map(|(function, takes, _)| (function.name().to_owned(), takes)).collect();
    assert!(!all.is_empty());
    // The only one whose rule the checker has.
    all.push(("round".into(), vec![Kind::F64, Kind::I64]));
    for (name, takes) in all {
        let lists: Vec<Vec<(String, u64)>> = takes.iter().map(|k| operands(*k)).collect();
        for i in 0..40 {
            let args: Vec<&str> =
                lists.iter().enumerate().map(|(k, l)| &*l[(i * (7 + 4 * k) + k) % l.len()].0).collect();
            let call = format!("{name}({})", args.join(", "));
            let program = |of: &str, x: &str| {
                format!("import math\n\ndef g(x: {of}):\n    return {call}, x\n\nr = g({x})\nprint(r[0])\n")
            };
            let host = ended(&program("int", "0"), By::Compiled);
            assert_eq!(host, ended(&program("int", "0"), By::Interpreted), "{call}");
            assert_eq!(host, ended(&program("Tensor[f32]", "op.zeros(())"), By::Compiled), "{call}");
        }
    }
}

/// Host code, numbers of a loop in a graph, and rank-0 tensors of f64 give the same bits.
#[test]
fn functions_of_floats_have_one_meaning() {
    let r = &mut Random::new(7);
    let mut values = vec!["0.5".to_owned(), "1.0".into(), "3.0".into(), "1e-300".into(), "0.1".into(), "707.5".into()];
    for i in 0..24 {
        let unit = (r.word() >> 11) as f64 / (1u64 << 53) as f64;
        values.push(format!("{:?}", unit * 10f64.powi(i % 6 - 2)));
    }
    let list = values.join(", ");
    let one = "sqrt exp log sin cos tan tanh log2 log10 expm1 log1p atan sinh cosh erf erfc asinh cbrt";
    let bounded = "asin acos";
    let call = |f: &str, x: &str| match f {
        "asin" | "acos" => format!("math.{f}({x} / (1.0 + {x}))"),
        _ => format!("math.{f}({x})"),
    };
    let operator = |f: &str| match f {
        "asin" | "acos" => format!("op.{f}(t / (1.0 + t))"),
        _ => format!("op.{f}(t)"),
    };
    let mut program = format!("import math\n\nxs = [{list}]\nts = op.array(xs, dtype=f64)\n\n");
    let mut checks = String::new();
    let two = [
        ("pow", "math.pow(x, y)", "t ** u"),
        ("power", "x ** y", "t ** u"),
        ("atan2", "math.atan2(x, y)", "op.atan2(t, u)"),
        ("hypot", "math.hypot(x, y)", "op.hypot(t, u)"),
        ("floor_div", "x // y", "t // u"),
        ("mod", "x % y", "t % u"),
    ];
    let all = one.split(' ').chain(bounded.split(' ')).map(|f| (f, call(f, "x"), operator(f)));
    for (f, host, tensor) in all.chain(two.map(|(f, a, b)| (f, a.to_owned(), b.to_owned()))) {
        // The reversed list gives the second operand; the graph gets its numbers one by one.
        program += &format!(
            "def host_{f}(x: float, y: float) -> float:\n    return {host}\n\n\
             def graph_{f}(z: Tensor[f64], x: float, y: float) -> Tensor[f64]:\n    return z + {host}\n\n\
             def tensor_{f}(t: Tensor[f64], u: Tensor[f64]) -> Tensor[f64]:\n    return {tensor}\n\n"
        );
        checks += &format!(
            "    a = host_{f}(x, y)\n    b = float(graph_{f}(op.zeros((), dtype=f64), x, y))\n    \
             c = float(tensor_{f}(op.full((), x, dtype=f64), op.full((), y, dtype=f64)))\n    \
             if not (a == b and a == c or math.isnan(a) and math.isnan(b) and math.isnan(c)):\n        print(\"{f}\", x, y, a, b, c)\n"
        );
    }
    program +=
        &format!("for i in range(len(xs)):\n    x = xs[i]\n    y = xs[len(xs) - 1 - i]\n{checks}print(\"done\")\n");
    let ran = run_source(&program, &[]).unwrap();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("done\n", ""));
}

#[test]
fn a_loop_of_sines_has_the_same_bits_in_a_graph() {
    let program = |of: &str, x: &str, n: usize| {
        format!(
            "import math\n\ndef g(x: {of}, n: int):\n    a = 0.3\n    for i in range(n):\n        a = math.cos(a * 3.0 + i) + \
             math.sin(float(i)) * a\n    return a, x\n\nprint(g({x}, {n})[0])\n"
        )
    };
    for n in [1, 5, 15, 16, 17, 40, 100] {
        let host = run_source(&program("int", "0", n), &[]).unwrap();
        let graph = run_source(&program("Tensor[f32]", "op.zeros(())", n), &[]).unwrap();
        assert_eq!((host.code, &host.out), (0, &graph.out), "{n} turns\n{}{}", host.err, graph.err);
    }
}
