//! A value is compared with a size of a signature wherever it meets it, and what tells that size is a parameter: every way
//! in which a parameter tells a size, for every way in which a caller has it, in every place of a body that names it.

use tessera_tests::laws::{law_count, on_two_threads};
use tessera_tests::program::run_source;

/// How a parameter tells N, and the argument that does where `c` has N elements.
const TELLS: &[(&str, &str)] = &[
    ("x: Tensor[N, f32]", "c"),
    ("x: Tensor[N + 1, f32]", "op.concat([c, op.ones((1,))], axis=0)"),
    ("x: Tensor[2*N, f32]", "op.concat([c, c], axis=0)"),
    ("x: Tensor[2, N, f32]", "op.stack([c, c])"),
    ("xs: list[Tensor[N, f32]]", "[c, c]"),
    ("xs: list[Tensor[N + 1, f32]]", "[op.concat([c, op.ones((1,))], axis=0)]"),
    ("d: dict[str, Tensor[N, f32]]", "{\"a\": c}"),
    ("p: tuple[Tensor[M, f32], Tensor[N, f32]]", "(op.ones((2,)), c)"),
    ("b: Box[N]", "Box(c, c)"),
    ("bs: list[Box[N]]", "[Box(c, c)]"),
    ("x: Tensor[M, f32], N: int", "c, c.shape[0]"),
    ("k: Tensor[K, f32], p: Tensor[N + K, f32]", "op.ones((int(\"1\"),)), op.concat([c, op.ones((1,))], axis=0)"),
    ("p: Tensor[N + K, f32], k: Tensor[K, f32]", "op.concat([c, op.ones((1,))], axis=0), op.ones((int(\"1\"),))"),
    ("p: Tensor[N * K, f32], K: int", "op.concat([c, c], axis=0), int(\"2\")"),
    ("p: Tensor[K - N, f32], k: Tensor[K, f32]", "op.ones((int(\"1\"),)), op.concat([c, op.ones((1,))], axis=0)"),
    ("p: Tensor[N + K, K, f32]", "op.concat([c, op.ones((1,))], axis=0)[:, None]"),
    (
        "p: Tensor[N + K, f32], k: list[Tensor[K, f32]]",
        "op.concat([c, op.ones((1,))], axis=0), [op.ones((int(\"1\"),))]",
    ),
    ("k: list[Tensor[K, f32]], p: Tensor[N * K, f32]", "[op.ones((int(\"2\"),))], op.concat([c, c], axis=0)"),
    (
        "p: list[Tensor[N + K, f32]], k: Tensor[K, f32]",
        "[op.concat([c, op.ones((1,))], axis=0)], op.ones((int(\"1\"),))",
    ),
    ("s: Sum[N, K]", "Sum(op.concat([c, op.ones((1,))], axis=0), op.ones((int(\"1\"),)))"),
    ("f: (Tensor[N, f32]) -> Tensor[N, f32], x: Tensor[N, f32]", "lambda z: z * 2.0, c"),
];

/// How a caller has a vector of 6 elements.
const SIZES: &[&str] = &[
    "c = op.ones((6,))",
    "c = op.ones((int(\"6\"),))",
    "c: Tensor[S, f32] = op.ones((int(\"6\"),))",
    "n = int(\"3\")\nk = int(\"2\")\nc = op.ones((n * k,))",
    "s: Tensor[S, f32] = op.ones((int(\"3\"),))\nk = int(\"2\")\nc = op.ones((S * k,))",
    "n = int(\"5\")\nc = op.ones((n + 1,))",
    "s: Tensor[S, f32] = op.ones((int(\"5\"),))\nc = op.ones((S + 1,))",
    "n = int(\"12\")\nc = op.ones((n // 2,))",
    "c = op.concat([op.ones((int(\"4\"),)), op.ones((int(\"2\"),))], axis=0)",
    "cs = [op.ones((i,)) for i in range(8)]\nc = cs[6]",
    "c = op.ones((len(\"a a a a a a\".split(\" \")),))",
];

/// The declared result and the body; `{W}` is a vector of N elements, or not.
const PLACES: &[(&str, &str)] = &[
    (" -> Tensor[N, f32]", "return {W}"),
    (" -> Tensor[N, f32]", "print(1)\n    return {W}"),
    (" -> list[Tensor[N, f32]]", "return [{W}]"),
    (" -> tuple[int, Tensor[N, f32]]", "return 1, {W}"),
    (" -> dict[str, Tensor[N, f32]]", "return {\"a\": {W}}"),
    (" -> Box[N]", "return Box({W}, {W})"),
    (" -> list[Box[N]]", "return [Box({W}, {W})]"),
    ("", "z: Tensor[N, f32] = {W}\n    return z"),
    ("", "z: list[Tensor[N, f32]] = [{W}]\n    return z"),
    ("", "z: list[Tensor[N, f32]] = []\n    z.append({W})\n    return z"),
    ("", "z: Box[N] = Box({W}, {W})\n    return z"),
    (" -> Tensor[N, f32]", "def inner(i):\n        return {W}\n    return inner(0)"),
    (" -> Tensor[N, f32]", "g: (int) -> Tensor[N, f32] = lambda i: {W}\n    return g(0)"),
    (" -> Tensor[N, f32]", "if N > 3:\n        return {W}\n    return op.ones((N,))"),
    (" -> Tensor[N, f32]", "z = {W}\n    for i in range(2):\n        z = z * 2.0\n    return z"),
    (" -> Tensor[N + 1, f32]", "return op.concat([{W}, op.ones((1,))], axis=0)"),
    (" -> Tensor[2*N, f32]", "return op.concat([{W}, {W}], axis=0)"),
    ("", "return same({W}, op.ones((N,)))"),
];

/// `{W}`: a parameter with its argument, and the vector; `{n}` is its number of elements.
const VALUES: &[(&str, &str, &str)] = &[
    ("y", "op.ones((int(\"{n}\"),))", "y"),
    ("y", "w", "y"),
    ("count", "int(\"{n}\")", "op.ones((count,))"),
    ("", "", "op.ones((int(\"{n}\"),))"),
];

const PRELUDE: &str = "struct Box[N]:
    w: Tensor[N, f32]
    b: Tensor[N, f32]
struct Sum[A, B]:
    a: Tensor[A + B, f32]
    b: Tensor[B, f32]
def same(x: Tensor[N, f32], y: Tensor[N, f32]) -> Tensor[N, f32]:
    return x + y
";

/// The program of a case, where the vector has so many elements.
fn program(case: usize, elements: usize) -> String {
    let (value, case) = (VALUES[case % VALUES.len()], case / VALUES.len());
    let (place, case) = (PLACES[case % PLACES.len()], case / PLACES.len());
    let (size, case) = (SIZES[case % SIZES.len()], case / SIZES.len());
    let (tell, behind) = (TELLS[case % TELLS.len()], case / TELLS.len() == 1);
    let of = |parts: [&str; 2]| {
        let parts = if behind { [parts[1], parts[0]] } else { parts };
        parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(", ")
    };
    let (params, args) = (of([tell.0, value.0]), of([tell.1, value.1]));
    let (result, body) = (place.0, place.1.replace("{W}", value.2));
    let text = format!(
        "{PRELUDE}def f({params}){result}:\n    {body}\n{size}\nw: Tensor[W, f32] = op.ones((int(\"{{n}}\"),))\nprint(f({args}))\n"
    );
    text.replace("{n}", &elements.to_string())
}

/// What is wrong with a case.
fn broken(case: usize) -> Option<String> {
    let (right, wrong) = (program(case, 6), program(case, 5));
    let ran = run_source(&right, &["run", "--checked"]).expect("the tool runs");
    if ran.code != 0 {
        return Some(format!("{right}is right:\n{}{}", ran.out, ran.err));
    }
    let ran = run_source(&wrong, &["run"]).expect("the tool runs");
    let told = ran.code == 1 && ran.err.starts_with("error[E0") && !ran.err.contains("E0999");
    (!told).then(|| format!("{wrong}is wrong:\n{}{}", ran.out, ran.err))
}

#[test]
fn values_are_compared_with_what_parameters_tell() {
    let all = VALUES.len() * PLACES.len() * SIZES.len() * TELLS.len() * 2;
    // An ordinary run takes some of them, spread by a step that shares no factor with their number.
    let (count, step) = match law_count() {
        Some(count) => (all.min(count as usize), 1),
        None => (if cfg!(debug_assertions) { 100 } else { 1_000 }, 7_919),
    };
    let wrong = on_two_threads(count, |i| broken(i * step % all).into_iter().collect());
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}
