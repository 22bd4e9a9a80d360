//! What random programs call, and what is known of their values.

/// What a call gives, of the sizes of its arguments.
#[derive(Clone, Copy)]
pub enum Gives {
    Vector(fn(&[i64]) -> i64),
    Matrix(fn(&[i64]) -> (i64, i64)),
    Pair(fn(&[i64]) -> (i64, i64)),
    Boxed,
    /// A list of vectors of one size, a dict.
    Listed(fn(&[i64]) -> i64),
    Keyed(fn(&[i64]) -> i64),
    /// A list of vectors of several sizes; that of the first.
    Uneven(fn(&[i64]) -> i64),
    Piled(fn(&[i64]) -> (i64, i64)),
    /// A list of closures that give vectors of several sizes; those of the first and the last.
    Closed(fn(&[i64]) -> (i64, i64)),
    /// A tuple.
    Paired(fn(&[i64]) -> (i64, i64)),
    Mapping(fn(&[i64]) -> i64),
}
use Gives::{Boxed, Matrix, Pair, Vector};

/// A struct that functions use.
pub const STRUCT: &str = "struct Box[N]:\n    w: Tensor[N, f32]\n    b: Tensor[N, f32]\n\n";

/// Functions with a call. In a call `$v` is a vector, `$=` one of the size of the first argument, `$3` one of 3 elements,
/// `$e` of an even number, `$p` of at least one; `$i` an int, `$#` one that is the first size, `$k` at most that; `$m` a
/// matrix (two sizes), `$c` a vector as long as its rows, `$b` a box, `$l` a list, `$d` a dict, `$t` a tuple (two sizes), `$P` a
/// pile (two sizes), `$K` a list of closures (two sizes), `$u` a list of vectors of several sizes, `$f` a function.
pub const LIBRARY: &[(&str, &str, Gives)] = &[
    (
        "def same(x: Tensor[N, f32], y: Tensor[N, f32]) -> Tensor[N, f32]:\n    return x + y\n",
        "same($v, $=)",
        Vector(|a| a[0]),
    ),
    (
        "def joined(x: Tensor[N, f32], y: Tensor[M, f32]) -> Tensor[N + M, f32]:\n    return op.concat([x, y], axis=0)\n",
        "joined($v, $v)",
        Vector(|a| a[0] + a[1]),
    ),
    (
        "def halves(x: Tensor[2*N, f32]) -> Tensor[N, f32]:\n    return x[:N] + x[N:]\n",
        "halves($e)",
        Vector(|a| a[0] / 2),
    ),
    ("def rest(x: Tensor[N + 1, f32]) -> Tensor[N, f32]:\n    return x[1:]\n", "rest($p)", Vector(|a| a[0] - 1)),
    (
        "def less(x: Tensor[N, f32]) -> Tensor[N - 1, f32]:\n    return x[1:] - x[:-1]\n",
        "less($p)",
        Vector(|a| a[0] - 1),
    ),
    (
        "def more(x: Tensor[N, f32]) -> Tensor[N + 1, f32]:\n    return op.concat([x, op.ones((1,))], axis=0)\n",
        "more($v)",
        Vector(|a| a[0] + 1),
    ),
    ("def three(x: Tensor[3, f32]) -> Tensor[3, f32]:\n    return x + op.ones((3,))\n", "three($3)", Vector(|_| 3)),
    (
        "def first(x: Tensor[N, f32], k: int) -> Tensor[k, f32]:\n    assert 0 <= k <= N\n    return x[:k]\n",
        "first($v, $k)",
        Vector(|a| a[1]),
    ),
    ("def cut(x: Tensor[N, f32], k: int):\n    return x[k:]\n", "cut($v, $i)", Vector(|a| (a[0] - a[1]).max(0))),
    (
        "def sized(x: Tensor[n, f32], n: int) -> Tensor[n, f32]:\n    return x + op.ones((n,))\n",
        "sized($v, $#)",
        Vector(|a| a[0]),
    ),
    (
        "def named(x: Tensor[N, f32], N: int) -> Tensor[2*N, f32]:\n    return op.concat([x, op.zeros((N,))], axis=0)\n",
        "named($v, $#)",
        Vector(|a| 2 * a[0]),
    ),
    (
        "def outer(x: Tensor[N, f32], y: Tensor[M, f32]) -> Tensor[N, M, f32]:\n    return x[:, None] * y[None, :]\n",
        "outer($v, $v)",
        Matrix(|a| (a[0], a[1])),
    ),
    (
        "def times(m: Tensor[N, M, f32], x: Tensor[M, f32]) -> Tensor[N, f32]:\n    return m @ x\n",
        "times($m, $c)",
        Vector(|a| a[0]),
    ),
    (
        "def flat(m: Tensor[N, M, f32]) -> Tensor[N*M, f32]:\n    return m.reshape(N * M)\n",
        "flat($m)",
        Vector(|a| a[0] * a[1]),
    ),
    (
        "def gram(m: Tensor[N, M, f32]) -> Tensor[M, M, f32]:\n    return m.T @ m\n",
        "gram($m)",
        Matrix(|a| (a[1], a[1])),
    ),
    ("def plus(x, y):\n    return x + y\n", "plus($v, $=)", Vector(|a| a[0])),
    ("def as_long(x, y: Tensor[N, f32]) -> Tensor[N, f32]:\n    return x\n", "as_long($v, $=)", Vector(|a| a[0])),
    (
        "def without(x, y: Tensor[N + 1, f32]) -> Tensor[N, f32]:\n    return x\n",
        "without($v, op.concat([$=, op.ones((1,))], axis=0))",
        Vector(|a| a[0]),
    ),
    ("def again(x, y: Tensor[N, f32]):\n    z: Tensor[N, f32] = x\n    return z\n", "again($v, $=)", Vector(|a| a[0])),
    ("def like_box(b: Box[N], x) -> Tensor[N, f32]:\n    return x\n", "like_box($b, $=)", Vector(|a| a[0])),
    (
        "def like_all(xs: list[Tensor[N, f32]], x) -> Tensor[N, f32]:\n    return x\n",
        "like_all($l, $=)",
        Vector(|a| a[0]),
    ),
    ("def stacked(x, y):\n    return op.concat([x, y, x], axis=0)\n", "stacked($v, $v)", Vector(|a| 2 * a[0] + a[1])),
    (
        "def both(x: Tensor[N, f32], y: Tensor[N, f32]) -> tuple[Tensor[N, f32], Tensor[N, f32]]:\n    return x + y, y\n",
        "both($v, $=)",
        Pair(|a| (a[0], a[0])),
    ),
    (
        "def parts(x: Tensor[N, f32], k: int):\n    return x[:k], x[k:]\n",
        "parts($v, $k)",
        Pair(|a| (a[1], a[0] - a[1])),
    ),
    (
        "def through(f: (Tensor[N, f32]) -> Tensor[N, f32], x: Tensor[N, f32]) -> Tensor[N, f32]:\n    return f(f(x))\n",
        "through($f, $v)",
        Vector(|a| a[0]),
    ),
    ("def twice(f, x):\n    return f(f(x))\n", "twice($f, $v)", Vector(|a| a[0])),
    (
        "def unbox(b: Box[N], x: Tensor[N, f32]) -> Tensor[N, f32]:\n    return b.w * x + b.b\n",
        "unbox($b, $=)",
        Vector(|a| a[0]),
    ),
    ("def boxed(x: Tensor[N, f32], y: Tensor[N, f32]) -> Box[N]:\n    return Box(x * y, y)\n", "boxed($v, $=)", Boxed),
    (
        "def folded(xs: list[Tensor[N, f32]], x: Tensor[N, f32]) -> Tensor[N, f32]:\n    for y in xs:\n        x = x + y\n    return x\n",
        "folded($l, $=)",
        Vector(|a| a[0]),
    ),
    ("def all_of(xs: list[Tensor[N, f32]]):\n    return op.concat(xs, axis=0)\n", "all_of($l)", Vector(|a| 2 * a[0])),
    (
        "def grown(x: Tensor[N, f32], k: int):\n    for i in range(k):\n        x = op.concat([x, op.ones((i,))], axis=0)\n    return x\n",
        "grown($v, $i)",
        Vector(|a| a[0] + (a[1] * (a[1] - 1)).max(0) / 2),
    ),
    (
        "def larger(x: Tensor[N, f32], y: Tensor[M, f32]):\n    if N > M:\n        return x\n    return y\n",
        "larger($v, $v)",
        Vector(|a| a[0].max(a[1])),
    ),
    (
        "def prefix(x: Tensor[N, f32], y: Tensor[M, f32]):\n    k = min(N, M)\n    return x[:k] + y[:k]\n",
        "prefix($v, $v)",
        Vector(|a| a[0].min(a[1])),
    ),
    (
        "def step(c: Tensor[N, f32], x: Tensor[N, f32]) -> tuple[Tensor[N, f32], Tensor[N, f32]]:\n    return c + x, c * x\ndef scanned(c: Tensor[N, f32], m: Tensor[M, N, f32]) -> Tensor[M, N, f32]:\n    last, all = op.scan(step, c, m)\n    return all + last\n",
        "scanned($v, op.ones(($i, $#)))",
        Matrix(|a| (a[1], a[0])),
    ),
    (
        "def loss(x: Tensor[N, f32], y: Tensor[N, f32]) -> Tensor[f32]:\n    return (x * y + x).sum()\n",
        "autodiff.grad(loss)($v, $=)",
        Vector(|a| a[0]),
    ),
    ("", "autodiff.grad(lambda u: (u * u).sum())($v)", Vector(|a| a[0])),
    ("", "autodiff.vmap(lambda u: u * 2.0)($m)", Matrix(|a| (a[0], a[1]))),
    ("", "autodiff.vmap(lambda u, t: u + t, in_axes=(0, None))($m, $c)", Matrix(|a| (a[0], a[1]))),
    ("", "op.ones(($i, $i))", Matrix(|a| (a[0], a[1]))),
    ("", "$v.reshape(1, $#)", Matrix(|a| (1, a[0]))),
    ("", "$m @ $c", Vector(|a| a[0])),
    ("", "$m + $c", Matrix(|a| (a[0], a[1]))),
    ("", "$m.sum(axis=0)", Vector(|a| a[1])),
    ("", "$m.T", Matrix(|a| (a[1], a[0]))),
    ("", "$m[$i:]", Matrix(|a| ((a[0] - a[2]).max(0), a[1]))),
    ("", "$v + $=", Vector(|a| a[0])),
    ("", "$v * 2.0 - $=", Vector(|a| a[0])),
    ("", "$v[$k:]", Vector(|a| a[0] - a[1])),
    ("", "$v[:$i]", Vector(|a| a[0].min(a[1]))),
    ("", "$v[$i:$i]", Vector(|a| (a[0].min(a[2]) - a[1]).max(0))),
    ("", "$v[::-1]", Vector(|a| a[0])),
    ("", "op.concat([$v, $v], axis=0)", Vector(|a| a[0] + a[1])),
    ("", "op.exp($v)", Vector(|a| a[0])),
    ("", "Box($v, $=)", Boxed),
    ("", "$b.w + $=", Vector(|a| a[0])),
    ("", "($v if $i > $i else $=)", Vector(|a| a[0])),
    ("", "($v, $v)", Pair(|a| (a[0], a[1]))),
];

/// Dims of the parameters of random functions with their value for N, M and k.
pub type Dim = (&'static str, fn(&[i64; 3]) -> i64);
pub const DIMS: &[Dim] = &[
    ("N", |s| s[0]),
    ("M", |s| s[1]),
    ("N + 1", |s| s[0] + 1),
    ("2*N", |s| 2 * s[0]),
    ("3", |_| 3),
    ("k", |s| s[2]),
    ("N + M", |s| s[0] + s[1]),
];
/// The sizes with which the body of a function is written: no two dims are equal.
pub const PRETENDED: [i64; 3] = [11, 5, 2];

/// What a name of the program is: `i` int, `v` vector, `m` matrix, `l` list and `d` dict of vectors, `b` box of two
/// vectors, `u` list of vectors of several sizes, `t` tuple of two, `P` pile, `K` list of closures that give
/// vectors of two sizes, `f` function from a vector to one of the same size. With the sizes that it has.
#[derive(Clone, Debug)]
pub struct Name {
    pub name: String,
    pub kind: char,
    pub size: i64,
    pub other: i64,
}

/// What tells the sizes of a value.
pub fn shown(n: &Name) -> Option<String> {
    let name = &n.name;
    Some(match n.kind {
        'i' => name.clone(),
        'v' | 'm' => format!("{name}.shape, {name}.sum()"),
        'l' | 'u' => format!("[u.shape for u in {name}]"),
        't' => format!("{name}[0].shape, {name}[1].shape"),
        'P' => format!("[u.shape for u in {name}.rows], {name}.one.shape"),
        'K' => format!("[u().shape for u in {name}]"),
        'd' => format!("[{name}[u].shape for u in {name}]"),
        'b' => format!("{name}.w.shape, {name}.b.shape"),
        _ => return None,
    })
}
