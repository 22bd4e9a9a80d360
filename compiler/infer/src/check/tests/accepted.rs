use super::*;

#[test]
fn statements_and_containers() {
    ok("xs = []\nfor i in range(10):\n    if i % 2 == 0:\n        xs.append(i * 1.5)\nprint(xs, sum(xs), max(xs))\n");
    ok("d = {}\nfor k, v in zip([\"a\", \"b\"], [1, 2]):\n    d[k] = v\nfor k, v in d.items():\n    print(k, v)\n");
    ok("a, (b, c) = 1, (2, 3)\na, b = b, a\nprint(a, b, c)\n");
    ok("n = 5\nwhile n > 0:\n    n -= 1\n    if n == 2:\n        break\nprint(n)\n");
    ok("print([(i, j) for i in range(3) for j in range(i) if j > 0])\n");
    ok("for i, (x, y) in enumerate([(1, 2), (3, 4)]):\n    print(i, x + y)\n");
    ok("text = \"a,b\"\na, b = text.split(\",\")\nprint(a + b, text[1:], \"-\".join([a, b]))\n");
    ok("while True:\n    x = 1\n    break\nprint(x)\n");
    ok("for i in range(3):\n    last = i\nprint(last)\n");
    ok("for w in (1, \"a\", 2.5):\n    print(w)\n");
}

#[test]
fn functions_as_values() {
    ok(
        "def compose(f, g):\n    return lambda x: f(g(x))\nh = compose(lambda x: x + 1, lambda x: x * 2)\nprint(h(3), h(0.5))\n",
    );
    ok("def adder(n: int):\n    return lambda x: x + n\nf = adder(3)\ng = adder(10)\nprint(f(1), g(1))\n");
    ok("def mlp(x, w, act):\n    return act(x @ w)\nprint(mlp(op.ones((2, 3)), op.ones((3, 4)), op.relu))\n");
    ok(
        "def outer(k: int) -> int:\n    def inner(n: int) -> int:\n        return k if n == 0 else inner(n - 1)\n    return inner(3)\nprint(outer(7))\n",
    );
    ok(
        "def a(x: int) -> int:\n    return x\ndef b(x: int) -> int:\n    return -x\nfor f in [a, b]:\n    print(f(2))\n",
    );
    ok("def apply(f: (int) -> int, x: int) -> int:\n    return f(x)\nprint(apply(lambda v: v + 1, 3))\n");
}

#[test]
fn none_is_decided_by_type() {
    ok(
        "def f(q, mask=None):\n    if mask is None:\n        return q\n    return q + mask\nprint(f(op.ones((2,))), f(op.ones((2,)), op.ones((2,))))\n",
    );
    ok(
        "def f(x):\n    if isinstance(x, int):\n        return x + 1\n    else:\n        return x.sum()\nprint(f(1), f(op.ones((2,))))\n",
    );
}

#[test]
fn recursion() {
    ok("def fact(n):\n    return 1 if n <= 1 else n * fact(n - 1)\nprint(fact(20))\n");
    ok(
        "def even(n: int) -> bool:\n    return True if n == 0 else odd(n - 1)\ndef odd(n: int) -> bool:\n    return False if n == 0 else even(n - 1)\nprint(even(4))\n",
    );
    ok("def f(n: int):\n    if n == 0:\n        return 0\n    return f(n - 1) + 1\nprint(f(3))\n");
    ok(
        "def even(n):\n    return True if n == 0 else odd(n - 1)\ndef odd(n):\n    return False if n == 0 else even(n - 1)\nprint(even(4))\n",
    );
}

#[test]
fn recursion_whose_result_is_an_operand() {
    ok("def fact(n):\n    if n <= 1:\n        return 1\n    return n * fact(n - 1)\nprint(fact(20))\n");
    ok("def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint(fib(10))\n");
    ok(
        "def power(x, n):\n    if n == 0:\n        return 1.0\n    h = power(x, n // 2)\n    return h * h if n % 2 == 0 else h * h * x\nprint(power(2.0, 10))\n",
    );
    ok("def rev(xs):\n    return xs if len(xs) <= 1 else rev(xs[1:]) + xs[:1]\nprint(rev([1, 2, 3]))\n");
    ok("def f(n):\n    if n == 0:\n        r = 1\n    else:\n        r = n * f(n - 1)\n    return r\nprint(f(3))\n");
    ok("def f(n):\n    if n > 0:\n        r = f(n - 1) + 1\n    else:\n        r = 0\n    return r\nprint(f(3))\n");
    ok("def f(n):\n    if n == 0:\n        return (1, 2)\n    return (f(n - 1)[0] + 1, n)\nprint(f(3))\n");
    ok(
        "def ack(m, n):\n    if m == 0:\n        return n + 1\n    if n == 0:\n        return ack(m - 1, 1)\n    return ack(m - 1, ack(m, n - 1))\nprint(ack(2, 2))\n",
    );
    ok(
        "def sort(xs):\n    if len(xs) < 2:\n        return xs\n    m = len(xs) // 2\n    a = sort(xs[:m])\n    b = sort(xs[m:])\n    out = []\n    i = 0\n    j = 0\n    while i < len(a) and j < len(b):\n        if a[i] < b[j]:\n            out.append(a[i])\n            i += 1\n        else:\n            out.append(b[j])\n            j += 1\n    return out + a[i:] + b[j:]\nprint(sort([3, 1, 2]))\n",
    );
}

#[test]
fn tensors_of_different_types_by_name() {
    let p = ok(
        "io.write_npz(\"m.npz\", {\"w\": op.eye(2), \"b\": op.arange(3)})\nd = {\"a\": op.eye(2), \"b\": op.arange(3), \"c\": op.zeros(())}\nx: Tensor[2, 2, f32] = d[\"a\"]\nprint(x)\n",
    );
    assert!(global(&p, "d").starts_with("dict[str, Tensor"), "{}", global(&p, "d"));
    ok("d: dict[str, Tensor] = {\"a\": op.eye(2), \"b\": op.arange(3)}\nio.write_safetensors(\"m\", d)\n");
}

#[test]
fn functions_in_containers() {
    let p = ok("fs: list[(int) -> int] = [lambda x: x + 1, lambda x: x * 2]\nys = [f(10) for f in fs]\n");
    assert_eq!(global(&p, "ys"), "list[int]");
    ok(
        "fs: dict[str, (float) -> float] = {\"a\": lambda x: x + 1.0, \"b\": lambda x: x * 2.0}\nprint(fs[\"a\"](2.0))\n",
    );
}

#[test]
fn imports() {
    let lib =
        "k = 3\nstruct P:\n    x: int\ndef twice(x):\n    return x * k\ndef make(n: int) -> P:\n    return P(n)\n";
    let files = [("foo.tsr", lib), ("std/nn.tsr", "def relu2(x):\n    return op.relu(x) * 2.0\n")];
    let checked = check_with(
        &files,
        "import foo\nfrom foo import P, k as kk\nfrom std import nn\np: foo.P = foo.make(2)\nq = P(1)\nprint(foo.twice(4), p.x, q.x, kk, nn.relu2(op.ones((2,))), std.nn.relu2(op.ones((3,))))\n",
    );
    assert_eq!(found(&checked), "");
    assert_eq!(found(&check_with(&[("a.tsr", "import b\n"), ("b.tsr", "import a\n")], "import a\n")), "E0102@1");
    assert_eq!(found(&check_with(&files, "from foo import nothing\nprint(foo2)\n")), "E0102@1 E0101@2");
    assert_eq!(found(&check_with(&files, "import foo\nprint(foo.nothing)\n")), "E0102@2");
}

#[test]
fn prompt_inputs_see_each_other() {
    let mut session = crate::session::Session::new();
    let none = Memory::default();
    let mut say = |text: &str| {
        let checked = session.check_more(text, &none);
        (found(&checked), checked.last.map(|l| l.ty.to_string()), checked.program)
    };
    assert_eq!(say("x = op.ones((2, 3))\n").0, "");
    assert_eq!(say("def f(a):\n    return a @ x.T\n").0, "");
    let (errors, last, program) = say("f(x)\n");
    assert_eq!((errors.as_str(), last.as_deref()), ("", Some("Tensor[2, 2, f32]")));
    assert!(program.is_some_and(|p| p.globals.iter().any(|g| &*g.name == "_")));
    assert_eq!(say("y = nothing\n").0, "E0101@1");
    assert_eq!(say("x = 4\n").0, "");
    assert_eq!(say("x + 1\n").1.as_deref(), Some("int"));
    assert_eq!(session.type_of("[x, 2]", &none).map(|t| t.to_string()), Ok("list[int]".into()));
}
