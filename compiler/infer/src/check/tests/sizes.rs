use super::*;

#[test]
fn ints_are_sizes() {
    let p = ok("B = 32\nD = B * 2 + 1\nx = op.zeros((B, D))\ny = x.reshape(D, B)\n");
    assert_eq!((global(&p, "x"), global(&p, "y")), ("Tensor[32, 65, f32]".into(), "Tensor[65, 32, f32]".into()));
    let p = ok("x = op.ones((2, 3))\nB, T = x.shape\ny = op.zeros((B * T, len(x)))\n");
    assert_eq!(global(&p, "y"), "Tensor[6, 2, f32]");
    let p = ok("D = 8\ndef f(x: Tensor[B, D, f32]) -> Tensor[B, D, f32]:\n    return x\ny = f(op.ones((2, 8)))\n");
    assert_eq!(global(&p, "y"), "Tensor[2, 8, f32]");
    expect(
        "D = 8\ndef f(x: Tensor[B, D, f32]) -> Tensor[B, D, f32]:\n    return x\ny = f(op.ones((2, 9)))\n",
        "E0202@4",
    );
}

#[test]
fn signatures_bind_sizes() {
    let p = ok(
        "def f(x: Tensor[S, D, f32], H: int) -> Tensor[H, S, D // H, f32]:\n    assert D % H == 0\n    return x.reshape(S, H, D // H).transpose(1, 0, 2)\ny = f(op.ones((3, 4)), 2)\n",
    );
    assert_eq!(global(&p, "y"), "Tensor[2, 3, 2, f32]");
    let p = ok("def f(x: Tensor[B, D, f32]) -> int:\n    return B * 100 + D\nprint(f(op.ones((3, 4))))\n");
    assert_eq!(insts(&p, "f")[0].size_binds.len(), 2);
    expect("def mlp(x: Tensor[B, 4*H, f32], w: Tensor[3*H, D, f32]):\n    return x @ w\n", "E0201@2");
    expect("def f(x: Tensor[N, f32], y: Tensor[M, f32]):\n    return x + y\n", "E0203@2");
    ok("def f(x: Tensor[N, f32], y: Tensor[M, f32]):\n    assert N == M\n    return x + y\n");
    expect(
        "def f(x: Tensor[N, f32], y: Tensor[N, f32]):\n    return x + y\nprint(f(op.ones((2,)), op.ones((3,))))\n",
        "E0202@3",
    );
    expect("def f(x: Tensor[N, f32]) -> Tensor[f32]:\n    return x.sum()\nprint(f(op.zeros((2, 2))))\n", "E0207@3");
}

#[test]
fn one_instance_per_annotated_function() {
    let p = ok(
        "def f(x: Tensor[N, f32]) -> Tensor[N, f32]:\n    return x * 2.0\na = f(op.ones((2,)))\nb = f(op.ones((3,)))\n",
    );
    assert_eq!(insts(&p, "f").len(), 1);
    assert_eq!((global(&p, "a"), global(&p, "b")), ("Tensor[2, f32]".into(), "Tensor[3, f32]".into()));
    let p = ok("def f(x):\n    return x * 2.0\na = f(op.ones((2,)))\nb = f(op.ones((3,)))\nc = f(op.ones((3,)))\n");
    assert_eq!(insts(&p, "f").len(), 2);
}

#[test]
fn loops_widen() {
    let p = ok(
        "x = op.zeros((1, 2))\nfor i in range(3):\n    x = op.concat([x, x], axis=0)\nprint(x.shape)\ny = x * 2.0\n",
    );
    assert!(global(&p, "y").starts_with("Tensor[x"), "{}", global(&p, "y"));
    let p = ok("n = 1\nfor i in range(3):\n    n = n * 2\nx = op.zeros((n, 2))\n");
    assert!(global(&p, "x").ends_with(", 2, f32]"));
    ok("w = op.zeros((4,))\nfor s in range(10):\n    w = w - 0.1 * (w - 1.0)\nv: Tensor[4, f32] = w\n");
    let p = ok("xs = [op.zeros((i + 1,)) for i in range(3)]\na = xs[0]\n");
    assert!(global(&p, "a").starts_with("Tensor["));
}

#[test]
fn data_sizes_are_named_and_checked() {
    let p = ok(
        "m: Tensor[N, 3, f32] = io.read_npy(\"x.npy\")\nprint(N)\nq: Tensor[N, 3, f32] = io.read_npy(\"y.npy\")\nz = m + q\n",
    );
    assert_eq!(global(&p, "z"), "Tensor[N, 3, f32]");
    assert_eq!(global(&p, "N"), "int");
    expect("x = io.read_npy(\"a.npy\")\nprint(x.sum())\n", "E0213@2");
    ok("x = io.read_npy(\"a.npy\")\nprint(x)\n");
}

#[test]
fn generic_structs() {
    let text = "struct Layer[D, H]:\n    w: Tensor[D, H, f32]\n    b: Tensor[H, f32]\ndef go(x: Tensor[B, D, f32], l: Layer[D, H]) -> Tensor[B, H, f32]:\n    return x @ l.w + l.b\n";
    let p = ok(&format!("{text}l = Layer(op.ones((4, 3)), op.zeros((3,)))\ny = go(op.ones((2, 4)), l)\n"));
    assert_eq!(global(&p, "y"), "Tensor[2, 3, f32]");
    expect(&format!("{text}l = Layer(op.ones((4, 3)), op.zeros((4,)))\n"), "E0202@6");
    ok("struct Adam[P]:\n    m: P\n    step: int = 0\na = Adam(op.ones((2,)))\na.step += 1\nprint(a.m + 1.0)\n");
    expect("struct L[D]:\n    w: Tensor[D, f32]\ndef f(l: L) -> int:\n    return 1\n", "E0215@3");
}
