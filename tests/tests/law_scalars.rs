//! One text, one meaning: numbers of a loop are the same, and fail at the same place with the same words, whether the
//! loop is host code, is written out in a graph, or stays a loop there.

use tessera_tests::program::run_source;
use tessera_tests::random::Random;

/// An int expression over `a`, `b`, the loop variable and constants.
fn int(r: &mut Random, depth: usize) -> String {
    let leaf = ["a", "b", "i", "i", "n", "1", "2", "3", "7", "-5", "40", "3000000000", "-9223372036854775807"];
    if depth == 0 || r.below(4) == 0 {
        return leaf[r.below(leaf.len())].into();
    }
    let (x, y) = (int(r, depth - 1), int(r, depth - 1));
    match r.below(16) {
        0 | 1 => format!("({x} + {y})"),
        2 => format!("({x} - {y})"),
        3 | 4 => format!("({x} * {y})"),
        5 => format!("({x} // {y})"),
        6 => format!("({x} % {y})"),
        7 => format!("({x} // {})", 1 + r.below(9)),
        8 => format!("({x} % {})", 1 + r.below(1000)),
        9 => format!("({x} ** {})", r.below(4)),
        10 => format!("({x} << ({y} % 70))"),
        11 => format!("({x} >> ({y} % 9 - 1))"),
        12 => format!("({x} & {y})"),
        13 => format!("min({x}, max({y}, 3))"),
        14 => format!("(-{x} + abs({y}))"),
        _ => format!("int({} / 2.0)", float(r, depth - 1)),
    }
}

fn float(r: &mut Random, depth: usize) -> String {
    if depth == 0 || r.below(4) == 0 {
        return ["f", "f", "0.5", "3.0", "float(i)", "float(n)", "1e10"][r.below(7)].into();
    }
    let (x, y) = (float(r, depth - 1), float(r, depth - 1));
    match r.below(12) {
        0 | 1 => format!("({x} + {y})"),
        2 => format!("({x} - {y})"),
        3 => format!("({x} * {y})"),
        4 => format!("({x} / {y})"),
        5 => format!("({x} // {y})"),
        6 => format!("({x} % {y})"),
        7 => format!("math.sqrt({x} + 3.0)"),
        8 => format!("math.{}({x})", ["floor", "ceil", "trunc"][r.below(3)]),
        9 => format!("({} / {})", int(r, depth - 1), int(r, depth - 1)),
        10 => format!("abs({x})"),
        _ => format!("float({})", int(r, depth - 1)),
    }
}

/// The first line of a diagnostic and its place.
fn first(text: &str) -> String {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default().to_owned();
    let place = lines.next().unwrap_or_default();
    format!("{head} {}", place.trim_start().trim_start_matches(['╭', '─', '[', ' ']))
}

#[test]
fn loops_mean_the_same_in_graphs() {
    let (mut failed, mut passed) = (0, 0);
    for seed in 0..120 {
        let r = &mut Random::new(seed);
        let mut body = String::new();
        for _ in 0..1 + r.below(3) {
            body += &match r.below(3) {
                0 => format!("        a = {}\n", int(r, 3)),
                1 => format!("        b = {}\n", int(r, 2)),
                _ => format!("        f = {}\n", float(r, 3)),
            };
        }
        let turns = [20, 33][r.below(2)];
        let program = |of: &str, x: &str| {
            format!(
                "import math\n\ndef g(x: {of}, n: int):\n    a = 1\n    b = 2\n    f = 0.5\n    for i in range(n):\n{body}    return \
                 a, b, f, x\n\nr = g({x}, {turns})\nprint(r[0], r[1], r[2])\n"
            )
        };
        let host = run_source(&program("int", "0"), &[]).unwrap();
        let graph = run_source(&program("Tensor[f32]", "op.zeros(())"), &[]).unwrap();
        assert_eq!((host.code, &host.out), (graph.code, &graph.out), "seed {seed}\n{body}{}{}", host.err, graph.err);
        assert_eq!(first(&host.err), first(&graph.err), "seed {seed}\n{body}{}{}", host.err, graph.err);
        if host.code == 0 { passed += 1 } else { failed += 1 }
    }
    assert!(failed > 20 && passed > 20, "{failed} programs fail, {passed} do not");
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
    let one = "sqrt exp log sin cos tan tanh log2 log10 expm1 log1p atan sinh cosh erf";
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
