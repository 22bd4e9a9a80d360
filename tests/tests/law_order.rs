//! Operands and arguments are computed from left to right: every form of an expression in every place that an
//! expression can have. Each part prints its number, and the numbers count up.

use tessera_tests::program::run_source;

/// An expression that is an int. `<0>`, `<1>` are calls that print their number, in the order of evaluation; `<!>` is
/// never evaluated.
struct Form {
    text: &'static str,
    calls: usize,
    /// How many elements of `xs` it takes away.
    pops: usize,
}

const fn form(text: &'static str, calls: usize) -> Form {
    Form { text, calls, pops: 0 }
}

const fn pop(text: &'static str, pops: usize) -> Form {
    Form { text, calls: 0, pops }
}

const FORMS: &[Form] = &[
    form("t(<0>, 4)", 1),
    form("g(b=t(<0>, 4), a=t(<1>, 5))", 2),
    form("template(b=t(<0>, 4), a=t(<1>, 5))", 2),
    form("g(t(<0>, 4), c=t(<1>, 5), b=t(<2>, 5))", 3),
    form("g(*(t(<0>, 4), t(<1>, 5)), c=t(<2>, 5))", 3),
    form("P(b=t(<0>, 4), a=t(<1>, 5)).b", 2),
    form("Q(b=t(<0>, 4), a=t(<1>, 5)).b", 2),
    form("sum([t(<1> + i, i) for i in range(t(<0>, 3))])", 4),
    form("len([i for i in range(3) if t(<0> + i, i) != 1])", 3),
    form("sum([sum([t(<0> + i * 2 + j, j) for j in range(2)]) for i in range(2)])", 4),
    form("(t(<1>, 2) if t(<0>, 1) == 1 else t(<!>, 4))", 2),
    form("(t(<!>, 2) if t(<0>, 1) == 2 else t(<1>, 4))", 2),
    form("int(t(<0>, 1) == 1 and t(<1>, 1) == 2 and t(<!>, 1) == 1)", 2),
    form("int(t(<0>, 1) == 2 or t(<1>, 1) == 1 or t(<!>, 1) == 1)", 2),
    form("int(t(<0>, 1) < t(<1>, 2) < t(<2>, 2) < t(<!>, 9))", 3),
    form("int(t(<0>, 2) is None)", 1),
    form("int(isinstance(t(<0>, 2), int))", 1),
    form("len((t(<0>, 2), t(<1>, 3)))", 2),
    form("(t(<0>, 2), t(<1>, 3))[t(<2>, 0)]", 3),
    form("(lambda x: t(<1>, x) + t(<2>, 1))(t(<0>, 5))", 3),
    form("adder(t(<0>, 2))(t(<1>, 3))", 2),
    form("[t(<0>, 2), t(<1>, 3)][t(<2>, 1)]", 3),
    form("{\"a\": t(<0>, 2), \"b\": t(<1>, 3)}[\"b\"]", 2),
    form("{t(<0>, 7): t(<1>, 2), t(<2>, 8): t(<3>, 3)}[t(<4>, 8)]", 5),
    form("one(t(<0>, 2))", 1),
    form("one(t(<0>, 2), t(<1>, 3))", 2),
    form("sorted(some(<0>, [3, 1]), reverse=t(<1>, 1) == 1)[0]", 2),
    form("min(t(<0>, 3), t(<1>, 4))", 2),
    form("max([t(<0>, 3), t(<1>, 4)])", 2),
    form("divmod(t(<0>, 7), t(<1>, 2))[t(<2>, 1)]", 3),
    form("some(<0>, [1, 2, 3])[t(<1>, 0):t(<2>, 2)][t(<3>, 1)]", 4),
    form("{\"a\": t(<0>, 1)}.get(\"b\", t(<1>, 5))", 2),
    form("len(f\"{t(<0>, 3)}{t(<1>, 4):{t(<2>, 4)}}\")", 3),
    form("len(\"{1} {0}\".format(t(<0>, 3), t(<1>, 4)))", 2),
    form("sum([a * b for a, b in zip(some(<0>, [1, 2]), some(<1>, [3, 4]))])", 2),
    form("sum([a * b for a, b in enumerate(some(<0>, [1, 2]), t(<1>, 4))])", 2),
    form("sum([a for a in reversed(range(t(<0>, 1), t(<1>, 4)))])", 2),
    form("int(op.full((t(<0>, 2), t(<1>, 3)), t(<2>, 1) * 1.0).sum())", 3),
    form("int(grid[t(<0>, 1), t(<1>, 0):t(<2>, 2)].sum())", 3),
    form("int(op.clip(grid, max=t(<0>, 2) * 1.0, min=t(<1>, 1) * 1.0).sum())", 2),
    pop("xs.pop()", 1),
    pop("(xs.pop() + xs.pop())", 2),
    pop("g(b=xs.pop(), a=len(xs))", 1),
    pop("sum([xs.pop() for _ in range(2)])", 2),
    pop("[7, xs.pop()][0]", 1),
];

/// Statements with an expression in them; `{F}` stands for it, `<a>` and `<b>` are numbers before and behind its own, and
/// what is printed last has `{n}` and `{m}` elements of `xs`: before it and behind it.
const PLACES: &[(&str, &str)] = &[
    ("print(t(<a>, 1), 0 * {F}, t(<b>, 8), len(xs))", "1 0 8 {m}"),
    ("print(len(xs) * 10 + t(<a>, 0) + 0 * {F} + t(<b>, 0) + len(xs))", "{n}{m}"),
    ("y = (t(<a>, 1), len(xs), 0 * {F}, t(<b>, 8), len(xs))\nprint(y)", "(1, {n}, 0, 8, {m})"),
    ("y = [t(<a>, 1), len(xs), 0 * {F}, t(<b>, 8), len(xs)]\nprint(y)", "[1, {n}, 0, 8, {m}]"),
    (
        "y = {\"p\": len(xs), \"q\": t(<a>, 1) * {F}, \"r\": t(<b>, 8), \"s\": len(xs)}\nprint(y[\"p\"], y[\"s\"])",
        "{n} {m}",
    ),
    ("print(f\"{t(<a>, 1)} {len(xs)} {0 * {F}} {t(<b>, 8)} {len(xs)}\")", "1 {n} 0 8 {m}"),
    ("print(g(c=len(xs), b=t(<a>, 0), a={F} * 0 + t(<b>, 0)))", "{n}"),
    ("print(template(t(<a>, 1), 0 * {F} + t(<b>, 0), len(xs)))", "10{m}"),
    ("ys = [4, 5, 6]\nprint(ys[t(<a>, 1)] + 0 * {F} + [t(<b>, 0)][0], len(xs))", "5 {m}"),
    ("ys = [4, 5, 6]\nys[0 * {F} + t(<b>, 1)] = t(<a>, 3)\nprint(ys, len(xs))", "[4, 3, 6] {m}"),
    ("ys = [4, 5, 6]\nys[t(<a>, 1)] += 0 * {F} + t(<b>, 1)\nprint(ys, len(xs))", "[4, 6, 6] {m}"),
    ("ys = [[4, 5], [6]]\nys[t(<a>, 1)].append(0 * {F} + t(<b>, 1))\nprint(ys, len(xs))", "[[4, 5], [6, 1]] {m}"),
    ("print(t(<a>, 1) < 2 + 0 * {F} < t(<b>, 8), len(xs))", "True {m}"),
    ("print(t(<a>, 1) == 1 and 0 * {F} == 0 and t(<b>, 8) == 8, len(xs))", "True {m}"),
    ("print(0 * {F} if t(<a>, 1) == 1 else 3, t(<b>, 1), len(xs))", "0 1 {m}"),
    ("if t(<a>, 1) > 0 * {F} + t(<b>, 0):\n    print(\"a\", len(xs))", "a {m}"),
    ("n = 0\nwhile n < 1 and t(<a>, 1) + 0 * {F} + t(<b>, 0) > n:\n    n += 1\nprint(n, len(xs))", "1 {m}"),
    ("assert t(<a>, 1) + 0 * {F} + t(<b>, 0) == 1, \"no\"\nprint(len(xs))", "{m}"),
    ("print(P(t(<a>, 1), 0 * {F} + t(<b>, 2)), len(xs))", "P(a=1, b=2) {m}"),
    ("print(P(b=len(xs), a=0 * {F}), len(xs))", "P(a=0, b={n}) {m}"),
    ("a, b, c = len(xs), 0 * {F}, len(xs)\nprint(a, b, c)", "{n} 0 {m}"),
    ("v = 1\nv += 0 * {F} + v\nprint(v, len(xs))", "2 {m}"),
    ("print(g(g(t(<a>, 1), 0 * {F}, 0), len(xs), t(<b>, 0)) * 0 + len(xs))", "{m}"),
    ("print(xs[0] * 10 + 0 * {F} + xs.count(11))", "111"),
    ("print((t(<a>, 1), 0 * {F}), end=str(t(<b>, 8)) + \"\\n\", sep=str(len(xs)))", "(1, 0)8"),
    ("z = op.zeros((3,))\nz[t(<b>, 1)] = t(<a>, 2) + 0.0 * {F}\nprint(z, len(xs))", "[0. 2. 0.] {m}"),
    ("h = [P(1, 2)]\nh[t(<b>, 0)].a = t(<a>, 2) + 0 * {F}\nprint(h, len(xs))", "[P(a=2, b=2)] {m}"),
    (
        "def r{i}(xs: list[int]) -> tuple[int, int, int]:\n    return len(xs), 0 * {F}, len(xs)\nprint(r{i}(xs))",
        "({n}, 0, {m})",
    ),
    ("def r{i}(xs):\n    return len(xs) * 10 + t(<a>, 0) + 0 * {F} + t(<b>, 0) + len(xs)\nprint(r{i}(xs))", "{n}{m}"),
];

const PRELUDE: &str = "\
struct P:
    a: int
    b: int
struct Q[A]:
    a: A
    b: A
def t(k: int, v: int) -> int:
    print(k)
    return v
def some(k: int, v: list[int]) -> list[int]:
    print(k)
    return v
def g(a: int, b: int, c: int = 7) -> int:
    return a * 100 + b * 10 + c
def template(a, b, c=7):
    return a * 100 + b * 10 + c
def one(a, b=None):
    return a if b is None else a + b
def adder(k: int):
    return lambda x: x + k
grid = op.ones((3, 2))
";

/// Elements of `xs` at first.
const ELEMENTS: usize = 4;

/// The program of one form in one place, and what it prints.
fn case(i: usize, form: &Form, place: &(&str, &str)) -> (String, Vec<String>) {
    let (text, shown) = place;
    let base = usize::from(text.contains("<a>"));
    let mut f = form.text.replace("<!>", "-1");
    for k in 0..form.calls {
        f = f.replace(&format!("<{k}>"), &(base + k).to_string());
    }
    let behind = base + form.calls;
    let numbers = behind + usize::from(text.contains("<b>"));
    let text = text.replace("{F}", &f).replace("<a>", "0").replace("<b>", &behind.to_string());
    let text = text.replace("{i}", &i.to_string());
    let left = (ELEMENTS - form.pops).to_string();
    let shown = shown.replace("{n}", &ELEMENTS.to_string()).replace("{m}", &left);
    let lines = (0..numbers).map(|k| k.to_string()).chain([shown]).collect();
    (format!("print(\"# {i}\")\nxs = [11, 22, 33, 44]\n{text}\n"), lines)
}

#[test]
fn operands_are_computed_from_left_to_right() {
    let mut wrong = vec![];
    for place in PLACES {
        let cases: Vec<(String, Vec<String>)> = FORMS.iter().enumerate().map(|(i, f)| case(i, f, place)).collect();
        let program = cases.iter().fold(PRELUDE.to_owned(), |all, (text, _)| all + text);
        let ran = run_source(&program, &["run", "--checked"]).expect("the tool runs");
        assert!(ran.code == 0, "{}", ran.err);
        let parts: Vec<&str> = ran.out.split("# ").skip(1).collect();
        for ((text, expected), got) in cases.iter().zip(parts) {
            let got: Vec<&str> = got.lines().skip(1).collect();
            if got != *expected {
                wrong.push(format!("{text}expected {expected:?}\n     got {got:?}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), FORMS.len() * PLACES.len(), wrong.join("\n"));
}
