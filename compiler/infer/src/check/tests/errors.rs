use super::*;

#[test]
fn names() {
    expect("print(y)\n", "E0101@1");
    expect("learning_rate = 0.5\nprint(learnign_rate)\n", "E0101@2");
    expect("x = x + 1\n", "E0107@1");
    expect("if len(sys.args) > 3:\n    a = 1\nprint(a)\n", "E0107@3");
    expect("def f(c: bool):\n    if c:\n        a = 1\n    return a\nprint(f(True))\n", "E0107@4");
    expect("def f():\n    print(a)\n    a = 1\nf()\n", "E0107@2");
    expect("def f():\n    return later\nprint(f())\nlater = 1\n", "E0107@2");
    expect("for i in range(len(sys.args)):\n    a = i\nprint(a)\n", "E0107@3");
    expect("def f(x):\n    return x\ndef f(y):\n    return y\n", "E0106@3");
    expect("def f(x, x):\n    return x\n", "E0106@1");
    expect("def f(x):\n    return undefined_thing + x\n", "E0101@2");
    expect("true\n", "E0101@1");
}

#[test]
fn nothing_vanishes() {
    expect("def f(n):\n    return f(n - 1)\nprint(f(3))\n", "E0216@3");
    expect("def f(n):\n    return n * f(n - 1)\nprint(f(3))\n", "E0216@3");
    expect("x = 1\nfor i in range(3):\n    x = str(x)\nprint(x)\n", "E0209@3");
    expect("fs: list[(int) -> int] = [lambda x: x + 1, lambda x: nope]\n", "E0101@1");
    expect("fs: list[(int) -> int] = [lambda x: x + 1, lambda x: \"a\"]\n", "E0204@1");
    expect("fs: list[(int) -> int] = [lambda x: x + 1, lambda: 1]\n", "E0204@1");
}

#[test]
fn loops_of_the_graph_run_graph_functions() {
    let scan = "print(op.scan(step, op.zeros(()), op.ones((3,))))\n";
    expect(&format!("def step(c, x):\n    print(c)\n    return c + x, c\n{scan}"), "E0301@4");
    expect(
        &format!("def show(c):\n    print(c)\ndef step(c, x):\n    show(c)\n    return c + x, c\n{scan}"),
        "E0301@6",
    );
    expect("def step(i, c):\n    print(i)\n    return c + 1.0\nprint(op.fori(0, 3, step, op.zeros(())))\n", "E0301@4");
    expect(&format!("def step(c, x):\n    return c + x, c\n{scan}"), "");
}

#[test]
fn functions_of_different_types_name_the_annotation_to_write() {
    let checked = check("fs = [lambda x: x + 1, lambda x: x * 2]\n");
    assert_eq!(found(&checked), "E0209@1");
    assert!(format!("{:?}", checked.diagnostics).contains("fs: list[(int) -> int]"), "{:?}", checked.diagnostics);
}

#[test]
fn modules() {
    expect("from tessera import nonexistent\nprint(1)\n", "E0102@1");
    expect("import nothing_here\n", "E0102@1");
    expect("print(op.sofmax(op.ones((2,))))\n", "E0102@1");
    expect("from math import sqrtt\n", "E0102@1");
    expect("x = op\n", "E0204@1");
    expect("def f() -> int:\n    import math\n    return 1\n", "E0102@2");
    expect("time = 3\nprint(time)\n", "W0101@1");
    let halves = "def halves(x, n):\n    sys.advise(n >= 2, f\"{n} part\")\n    return x\n";
    expect(&format!("{halves}print(halves(op.ones((4,)), 1))\n"), "W0102@4");
    expect(&format!("{halves}print(halves(op.ones((4,)), 2))\n"), "");
    expect(&format!("{halves}print(halves(op.ones((4,)), len(sys.args)))\n"), "");
    expect("if len(sys.args) > 3:\n    sys.advise(1 > 2, \"never here\")\n", "");
    expect("sys.advise(1 > 2, 3)\n", "E0204@1");
    expect("sys.advise(1 > 2)\n", "E0104@1");
    expect("sys.advise(op.ones((2,)) > 0.0, \"no\")\n", "E0204@1");
    expect("f = sys.advise\n", "E0204@1");
    expect("m = 3\nprint(m)\nimport math as m\n", "E0106@3");
    expect("from math import sqrt\ndef sqrt(x: float) -> float:\n    return x\n", "E0106@1");
}

#[test]
fn variables_of_other_files_are_not_changed() {
    let m = "struct P:\n    n: int\np = P(3)\ndef up():\n    p.n = 7\n";
    let with = |text: &str| super::found(&super::check_with(&[("m.tsr", m)], text));
    assert_eq!(with("from m import p\np.n = 9\n"), "E0302@2");
    assert_eq!(with("import m\nm.p.n = 9\n"), "E0302@2");
    assert_eq!(with("import m\nm.up()\nx: Tensor[3, f32] = op.zeros((m.p.n,))\n"), "");
}

#[test]
fn calls() {
    let f = "def f(a: int, b: int = 2) -> int:\n    return a + b\n";
    expect(&format!("{f}print(f())\n"), "E0104@3");
    expect(&format!("{f}print(f(1, 2, 3))\n"), "E0104@3");
    expect(&format!("{f}print(f(1, c=2))\n"), "E0105@3");
    expect(&format!("{f}print(f(1, a=2))\n"), "E0105@3");
    expect(&format!("{f}print(f(\"a\"))\n"), "E0204@3");
    expect("x = 3\nprint(x(1))\n", "E0210@2");
    expect("print(1, foo=2)\n", "E0105@1");
    expect("print(len())\n", "E0104@1");
    expect("print(len(3))\n", "E0204@1");
    expect("print((lambda x: x)(1, 2))\n", "E0104@1");
    expect("print(op.zeros())\n", "E0104@1");
}

#[test]
fn operators() {
    expect("print(\"n\" + 1)\n", "E0205@1");
    expect("print([1] + [\"a\"])\n", "E0205@1");
    expect("print(1 < \"a\")\n", "E0205@1");
    expect("print(1 == \"a\")\n", "E0205@1");
    expect("print(-\"a\")\n", "E0205@1");
    expect("print(not op.ones((3,)))\n", "E0204@1");
    expect("if op.ones((3,)):\n    print(1)\n", "E0204@1");
    expect("print(3 in 4)\n", "E0205@1");
    expect("print(99999999999999999999)\n", "E0007@1");
    expect("print(-9223372036854775808)\n", "");
    expect("print(1 is 1)\n", "E0205@1");
}

#[test]
fn joins() {
    expect(
        "def f(c: bool):\n    if c:\n        x = 1\n    else:\n        x = \"a\"\n    return x\nprint(f(True))\n",
        "E0209@6",
    );
    // Not used afterwards: no matter.
    expect("c = len(sys.args) > 0\nif c:\n    x = 1\nelse:\n    x = \"a\"\nprint(1)\n", "");
    expect("x = 0\nfor i in range(3):\n    x = x + 0.5\nprint(x)\n", "E0209@3");
    expect("print([1, \"a\"])\n", "E0209@1");
    expect("print(1 if len(sys.args) > 0 else \"a\")\n", "E0209@1");
    expect("def f(c: bool):\n    if c:\n        return 1\n    return \"a\"\nprint(f(True))\n", "E0209@4");
    expect("def f(c: bool):\n    if c:\n        return 1\nprint(f(True))\n", "E0209@3");
}

#[test]
fn results() {
    expect("def f(x: int) -> int:\n    return \"a\"\n", "E0204@2");
    expect("def f(x: int) -> int:\n    if x > 1:\n        return 1\n", "E0204@1");
    expect("def f(x: Tensor[N, f32]) -> Tensor[N, f32]:\n    return op.concat([x, x], axis=0)\n", "E0202@2");
    expect("def f(x: Tensor[N, f32], y: Tensor[M, f32]) -> Tensor[N, f32]:\n    return y\n", "E0212@2");
    expect("def f(x: Tenso[N, f32]):\n    return x\n", "E0215@1");
}

#[test]
fn templates_report_at_the_call_once() {
    let text = "def f(x):\n    return x + \"a\"\ndef g(y):\n    return f(y)\nprint(g(1))\nprint(g(2.0))\n";
    let checked = check(text);
    assert_eq!(found(&checked), "E0205@5");
    let d = &checked.diagnostics[0];
    // The call on the way, then what is wrong, then the operands.
    let lines: Vec<_> = d.labels.iter().filter_map(|l| checked.sources.line_col(l.span)).map(|(_, l, _)| l).collect();
    assert_eq!(lines, [4, 2, 2, 2]);
    expect("def f(x):\n    return x.nothing\nprint(f(1))\n", "E0103@3");
    // A lambda's error stands in the lambda.
    expect("def apply(f, x):\n    return f(x)\nprint(apply(lambda v: v + \"a\", 1))\n", "E0205@3");
}

#[test]
fn structs() {
    let p = "struct P:\n    x: int\n    y: float = 1.0\n";
    expect(&format!("{p}print(P(x=1).z)\n"), "E0103@4");
    expect(&format!("{p}print(P())\n"), "E0104@4");
    expect(&format!("{p}print(P(1, z=2))\n"), "E0105@4");
    expect(&format!("{p}print(P(\"a\"))\n"), "E0204@4");
    expect(&format!("{p}p = P(1)\np.x = \"a\"\n"), "E0204@5");
    expect(&format!("{p}p = P(1)\np.q = 1\n"), "E0103@5");
    expect(&format!("{p}p = P(1)\np.go()\n"), "E0103@5");
    expect("struct A:\n    a: A\n", "E0215@1");
    expect("struct A:\n    x: int\n    x: int\n", "E0106@3");
    expect("struct L[D]:\n    w: Tensor[D, D, f32]\nprint(L(w=op.ones((2, 3))))\n", "E0202@3");
}

#[test]
fn changes() {
    expect("t = (1, 2)\nt[0] = 3\n", "E0302@2");
    expect("s = \"abc\"\ns[0] = \"x\"\n", "E0302@2");
    expect("xs = [1]\nxs.append(\"a\")\n", "E0204@2");
    expect("xs = [1]\nxs.push(2)\n", "E0103@2");
    expect(
        "def f(n: int):\n    xs = [n]\n    g = lambda: xs.append(1)\n    g()\n    return xs\nprint(f(1))\n",
        "E0302@3",
    );
    expect("x = op.zeros((3,))\nx[0][0] = 1.0\n", "E0302@2");
    expect("d = {\"a\": 1}\nd[1] = 2\n", "E0204@2");
    expect("xs = []\nprint(xs[0])\n", "E0216@2");
}

#[test]
fn unpacking_and_loops() {
    expect("a, b = 1, 2, 3\n", "E0204@1");
    expect("a, b = 5\n", "E0204@1");
    expect("for x in 5:\n    print(x)\n", "E0204@1");
    expect("for i in range(1.5):\n    print(i)\n", "E0204@1");
    expect("for i in range(0, 10, 0):\n    print(i)\n", "E0204@1");
    expect("print((1, 2)[5])\n", "E0211@1");
    expect("print([1][\"a\"])\n", "E0211@1");
}

#[test]
fn loops_on_a_mesh() {
    let on = "m = dist.Mesh(axes=[\"a\"], devices=range(2))\nx = dist.shard(op.ones((4, 2)), dist.ShardSpec(partition=(0,), mesh_axes=(\"a\",)), mesh=m)\n";
    let column = on.replace("(0,)", "(1,)");
    expect(&format!("{on}for r in x:\n    print(r)\n"), "E0406@3");
    expect(&format!("{column}for r in x:\n    print(r.sharding)\n"), "");
    expect(&format!("{on}print(op.scan(lambda c, r: (c, r), op.zeros(()), x))\n"), "E0406@3");
    expect(&format!("{column}print(op.scan(lambda c, r: (c + r, r), op.zeros((2,)), x))\n"), "");
    expect(&format!("{column}print(op.scan(lambda c, r: (c + op.sum(r), r), op.zeros(()), x))\n"), "E0405@3");
    expect(&format!("{on}print(op.fori(0, 3, lambda i, c: c.reshape(2, 4).T, x))\n"), "E0404@3");
    expect(&format!("{on}y = x[:, :1].reshape(2, 2)\nprint(op.fori(0, 3, lambda i, c: c.T, y))\n"), "E0404@4");
    expect(&format!("{on}print(autodiff.vmap(lambda r: r * 2.0)(x))\n"), "");
    expect(&format!("{on}print(autodiff.vmap(lambda r: r @ dist.like(op.ones((2, 2)), x))(x))\n"), "E0404@3");
    expect(&format!("{on}print(autodiff.vmap(lambda r, s: r + s, in_axes=(0, 1))(x, op.ones((2, 4))))\n"), "");
    expect(
        &format!("{on}print(autodiff.vmap(lambda r, s: r + s, in_axes=(0, 1))(x, dist.like(op.ones((2, 4)), x)))\n"),
        "E0404@3",
    );
}

#[test]
fn not_yet() {
    expect("print(autodiff.grad(op.sum)(op.ones((3,))))\n", "E0690@1");
    expect("print(dist.pipeline)\n", "E0204@1");
    expect("def f(x: Tensor[N, f32]) -> Tensor[N, f32]:\n    schedule.vectorize(4)\n    return x\n", "W0503@2");
    expect("def f(x: Tensor[N, f32]) -> Tensor[N, f32]:\n    schedule.vectorise(4)\n    return x\n", "E0501@2");
    expect(
        "@op.kernel\ndef k(a):\n    schedule.tile((1, 2, 3, 4))\n    return a + 1.0\nprint(k(op.ones((2,))))\n",
        "E0504@3",
    );
    expect("graph.trace(print)\n", "E0690@1");
    expect("numerics.policy(\"kahan\")\n", "E0101@1");
    expect("@nothing\ndef f(x):\n    return x\n", "E0101@1");
}

#[test]
fn one_error_per_mistake() {
    expect("x = undefined_one + 1\ny = x * 2\nz = [y, 3]\nprint(z[0] + y)\n", "E0101@1");
    expect("def f(a: Undefined) -> int:\n    return 1\nprint(f(3) + 1)\n", "E0215@1");
    expect("x: int = \"a\"\nprint(x + 1)\n", "E0204@1");
    expect("def f(x: int) -> int:\n    return y\nprint(f(1) + 1)\n", "E0101@2");
}
