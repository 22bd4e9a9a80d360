//! Values of host code in random programs: structs with lists, dicts, tuples, functions that are returned. What
//! prints is host code, and its values pass between statements.

use super::Maker;
use super::library::Gives::{self, Closed, Keyed, Listed, Mapping, Matrix, Paired, Piled, Uneven, Vector};
use super::library::Name;

/// A struct with a list, and sizes of two kinds.
pub const PILE: &str = "struct Pile[N, M]:\n    rows: list[Tensor[N, f32]]\n    one: Tensor[M, f32]\n\n";

/// A struct with a list of elements of any type.
pub const LOOSE: &str = "struct Loose[A]:\n    xs: list[A]\n\n";

/// As the library.
pub const HOLDERS: &[(&str, &str, Gives)] = &[
    (
        "def listed(xs, x: Tensor[N, f32]) -> list[Tensor[N, f32]]:\n    print(len(xs))\n    return [xs[0], x]\n",
        "listed($l, $=)",
        Listed(|a| a[0]),
    ),
    (
        "def told(xs: list[Tensor[N, f32]], x: Tensor[N, f32]) -> list[Tensor[N, f32]]:\n    print(len(xs))\n    xs.append(x)\n    return xs\n",
        "told($l, $=)",
        Listed(|a| a[0]),
    ),
    (
        "def pieces(x: Tensor[N, f32], k: int):\n    xs = [x]\n    for i in range(k):\n        print(i)\n        xs.append(x[:i])\n    return xs\n",
        "pieces($v, $i)",
        Uneven(|a| a[0]),
    ),
    (
        "def piled(xs: list[Tensor[N, f32]], x: Tensor[M, f32]) -> Pile[N, M]:\n    print(len(xs), x.shape)\n    return Pile(xs, x)\n",
        "piled($l, $v)",
        Piled(|a| (a[0], a[1])),
    ),
    ("", "Pile([$v, $=], $v)", Piled(|a| (a[0], a[2]))),
    (
        "def topped(p: Pile[N, M], x: Tensor[N, f32]) -> Pile[N, M]:\n    p.rows.append(x)\n    print(len(p.rows))\n    return p\n",
        "topped($P, $=)",
        Piled(|a| (a[0], a[1])),
    ),
    (
        "def turned(p: Pile[N, M]) -> Pile[M, N]:\n    return Pile([p.one, p.one], p.rows[0])\n",
        "turned($P)",
        Piled(|a| (a[1], a[0])),
    ),
    (
        "def bottom(p: Pile[N, M], x: Tensor[M, f32]) -> Tensor[M, f32]:\n    print(p.one.shape)\n    return p.one + x\n",
        "bottom($P, $c)",
        Vector(|a| a[1]),
    ),
    (
        "def keyed(d: dict[str, Tensor[N, f32]], x: Tensor[N, f32]) -> Tensor[N, f32]:\n    for k in d:\n        print(k)\n        x = x + d[k]\n    return x\n",
        "keyed($d, $=)",
        Vector(|a| a[0]),
    ),
    (
        "def entered(d: dict[str, Tensor[N, f32]], x: Tensor[N, f32]) -> dict[str, Tensor[N, f32]]:\n    print(len(d))\n    d[\"c\"] = x\n    return d\n",
        "entered($d, $=)",
        Keyed(|a| a[0]),
    ),
    (
        "def swapped(p: tuple[Tensor[N, f32], Tensor[M, f32]]) -> tuple[Tensor[M, f32], Tensor[N, f32]]:\n    print(p[0].shape)\n    return p[1], p[0]\n",
        "swapped($t)",
        Paired(|a| (a[1], a[0])),
    ),
    (
        "def evened(p: tuple[Tensor[N, f32], Tensor[N, f32]]) -> Tensor[N, f32]:\n    print(len(p))\n    return p[0] + p[1]\n",
        "evened(($v, $=))",
        Vector(|a| a[0]),
    ),
    (
        "def added(p: tuple[Tensor[N, f32], Tensor[N, f32]], x: Tensor[N, f32]) -> Tensor[N, f32]:\n    return p[0] * x + p[1] + op.ones((N,))\n",
        "added(($v, $=), $=)",
        Vector(|a| a[0]),
    ),
    (
        "def second(p: tuple[Tensor[N, f32], Tensor[N + 1, f32]]) -> Tensor[N, f32]:\n    print(N)\n    return p[1][1:] + p[0]\n",
        "second(($v, op.concat([$=, op.ones((1,))], axis=0)))",
        Vector(|a| a[0]),
    ),
    (
        "def turns(p: tuple[Tensor[N, f32], Tensor[N, f32]], k: int) -> tuple[Tensor[N, f32], Tensor[N, f32]]:\n    a, b = p\n    for i in range(k):\n        print(i)\n        a, b = b, a + b\n    return a, b\n",
        "turns(($v, $=), $i)",
        Paired(|a| (a[0], a[0])),
    ),
    (
        "def grows(p: tuple[Tensor[N, f32], Tensor[M, f32]], k: int):\n    a, b = p\n    for i in range(min(k, 5)):\n        a, b = b, op.concat([a, b], axis=0)\n        print(a.shape)\n    return a, b\n",
        "grows($t, $i)",
        Paired(|a| (0..a[2].clamp(0, 5)).fold((a[0], a[1]), |(x, y), _| (y, x + y))),
    ),
    (
        "def adder(x: Tensor[N, f32]) -> (Tensor[N, f32]) -> Tensor[N, f32]:\n    print(x.shape)\n    return lambda u: u + x\n",
        "adder($v)",
        Mapping(|a| a[0]),
    ),
    (
        "def maker(x: Tensor[N, f32], y: Tensor[N, f32]):\n    def made(u: Tensor[M, f32]) -> Tensor[M, f32]:\n        return u * (x + y).sum()\n    return made\n",
        "maker($v, $=)",
        Mapping(|a| a[0]),
    ),
    (
        "def one_of(c: int, x: Tensor[N, f32], y: Tensor[M, f32]):\n    if c > 0:\n        print(N)\n        return x, y\n    return x[:0], y\n",
        "one_of($i, $v, $v)",
        Paired(|a| (if a[0] > 0 { a[1] } else { 0 }, a[2])),
    ),
    (
        "def longest(xs: list[Tensor[N, f32]], k: int):\n    best = xs[0]\n    for x in xs:\n        if x.sum() > 0.0:\n            best = op.concat([best, x], axis=0)\n    print(best.shape)\n    return best[:k]\n",
        "longest($l, 2)",
        Vector(|a| a[0].min(2)),
    ),
    ("", "op.fori(0, $i, lambda i, c: (c[1], c[0] + c[1]), ($v, $=))", Paired(|a| (a[1], a[1]))),
    (
        "def stepped(c: tuple[Tensor[N, f32], Tensor[N, f32]], x: Tensor[N, f32]) -> tuple[tuple[Tensor[N, f32], Tensor[N, f32]], Tensor[N, f32]]:\n    a, b = c\n    return (b, a + x), a * b\ndef carried(x: Tensor[N, f32], y: Tensor[N, f32], m: Tensor[M, N, f32]) -> Tensor[M, N, f32]:\n    last, all = op.scan(stepped, (x, y), m)\n    return all + last[0] + last[1]\n",
        "carried($v, $=, op.ones(($i, $#)))",
        Matrix(|a| (a[2], a[0])),
    ),
    ("def keeper(x: Tensor[N, f32]):\n    return lambda: x\n", "[keeper($v), keeper($v)]", Closed(|a| (a[0], a[1]))),
    (
        "def keepers(x: Tensor[N, f32], k: int):\n    xs = [x]\n    for i in range(k):\n        print(i)\n        xs.append(x[:i])\n    return [lambda: u for u in xs]\n",
        "keepers($v, $i)",
        Closed(|a| (a[0], if a[1] > 0 { a[0].min(a[1] - 1) } else { a[0] })),
    ),
    ("", "[lambda: u for u in [$v, $v]]", Closed(|a| (a[0], a[1]))),
    (
        "def offset(x: Tensor[N, f32]) -> (Tensor[N, f32]) -> Tensor[N, f32]:\n    print(N)\n    return lambda u: u - x\n",
        "[offset(u) for u in [$v, $v]][0]",
        Mapping(|a| a[0]),
    ),
    (
        "def scaled(n: int) -> (Tensor[n, f32]) -> Tensor[n, f32]:\n    assert n >= 0\n    print(n)\n    return lambda u: u * 2.0\n",
        "scaled($i)",
        Mapping(|a| a[0]),
    ),
    (
        "def headed(x: Tensor[N, f32], k: int) -> (Tensor[N, f32]) -> Tensor[N, f32]:\n    print(N)\n    return lambda u: u[:k]\n",
        "headed($v, $#)",
        Mapping(|a| a[0]),
    ),
    ("", "$K[0]() + $=", Vector(|a| a[0])),
    ("", "$K[-1]() + $c", Vector(|a| a[1])),
    ("", "$K[0]() + $K[-1]()", Vector(|a| a[0])),
    ("", "[u + 1.0 for u in $l]", Listed(|a| a[0])),
    (
        "def crossed(xs):\n    for a in xs:\n        for b in xs:\n            print(a.shape, b.shape)\n    return xs[0]\n",
        "crossed($u)",
        Vector(|a| a[0]),
    ),
    (
        "def weighed(xs):\n    t = op.zeros(())\n    for a in xs:\n        for i, b in enumerate(xs):\n            t = t + a.sum() * (b + xs[i]).sum()\n    return xs[0] * t\n",
        "weighed($u)",
        Vector(|a| a[0]),
    ),
    (
        "def searched(xs, k: int):\n    i = 0\n    best = xs[0]\n    while i < k:\n        for a in xs:\n            best = a if len(a) > len(best) else best\n            print([len(b) + len(a) for b in xs], best.shape)\n        i += 1\n    return best\n",
        "searched($u, $i)",
        Vector(|a| a[0]),
    ),
    ("", "[op.concat([a, b], axis=0) for a in $u for b in $u]", Uneven(|a| a[0] + a[1])),
    ("", "[[a, b] for a in $u for b in $u][-1]", Uneven(|a| a[0])),
    ("", "[[op.concat([a, b], axis=0) for a in $u] for b in $u][0]", Uneven(|a| a[0] + a[1])),
    ("", "[b for a in [$u, $u] for b in a]", Uneven(|a| a[0])),
    ("", "Loose($u).xs", Uneven(|a| a[0])),
    ("", "op.concat($u, axis=0)", Vector(|a| 2 * a[0])),
    ("", "op.stack($l)", Matrix(|a| (2, a[0]))),
    (
        "def loose(xs, x: Tensor[N, f32]) -> Loose[Tensor[N, f32]]:\n    print(len(xs))\n    return Loose([x, xs[0]])\n",
        "loose($u, $=).xs",
        Listed(|a| a[0]),
    ),
    ("", "[p.rows[0] + p.rows[-1] for p in [$P, Pile([$v, $v], $v)]]", Uneven(|a| a[0])),
    (
        "def around(x: Tensor[N, f32], y: Tensor[N, f32]) -> Tensor[N, f32]:\n    def inner(u: Tensor[N, f32]) -> Tensor[N, f32]:\n        print(u.shape)\n        return u + x\n    return inner(y)\n",
        "around($v, $=)",
        Vector(|a| a[0]),
    ),
    (
        "def as_many(x: Tensor[N, f32], xs: list[Tensor[M, f32]]):\n    def inner(u: Tensor[len(xs), f32]) -> Tensor[len(xs), f32]:\n        print(u.shape)\n        return u * 2.0\n    return inner(x[:2])\n",
        "as_many($v, $l)",
        Vector(|a| a[0].min(2)),
    ),
    (
        "def as_long(xs):\n    def inner(u: Tensor[M, f32]) -> Tensor[len(xs[0]), f32]:\n        print(M)\n        return u * 2.0\n    return inner\n",
        "as_long($u)",
        Mapping(|a| a[0]),
    ),
    ("", "$P.one + $c", Vector(|a| a[1])),
    ("", "$P.rows[0] + $=", Vector(|a| a[0])),
    ("", "$t[0] + $=", Vector(|a| a[0])),
    ("", "$d[\"a\"] + $=", Vector(|a| a[0])),
    ("", "$f($v)", Vector(|a| a[0])),
    ("", "[$v, $=][$i]", Vector(|a| a[0])),
];

impl Maker {
    /// A statement about a value of host code.
    pub(super) fn holder(&mut self) -> String {
        let (a, size) = self.vector(&|n| n < 30);
        let (b, other) = self.vector(&|n| n < 30);
        let (i, count) = self.int(&|n| n < 6);
        match self.random.below(12) {
            9 | 10 => {
                let (u, _) = self.pair("[$v, $v]", 'u');
                let inner = self.random.pick(&[
                    "print(ra.shape, rb.shape)",
                    "print((ra.sum() * rb.sum()).shape, op.concat([ra, rb], axis=0).shape)",
                    "print(len(ra) + len(rb))",
                ]);
                let outer =
                    self.random.pick(&["for ra in US:", "for i, ra in enumerate(US):", "for ra, rc in zip(US, US):"]);
                format!("us = {u}\n{}\n    for rb in us:\n        {inner}\n", outer.replace("US", "us"))
            }
            11 => {
                let (c, _) = self.vector(&|n| n == size);
                let u = self.fresh('u', size, 0);
                let make =
                    self.random.pick(&["Loose([A, B])", "Loose([A, B, C])", "Pile([A, B], C)", "Pile([C, A], B)"]);
                let make = make.replace('A', &a).replace('B', &b).replace('C', &c);
                let rows = if make.starts_with("Pile") { "rows" } else { "xs" };
                format!("{u} = {make}.{rows}\n")
            }
            0 => {
                let t = self.fresh('t', if count >= 1 { size } else { other }, if count >= 1 { other } else { size });
                format!("if {i} >= 1:\n    {t} = ({a}, {b})\nelse:\n    {t} = ({b}, {a})\n")
            }
            1 => {
                let (c, _) = self.vector(&|n| n == size);
                let box_ = self.fresh('b', size, 0);
                format!("if {i} >= 1:\n    {box_} = Box({a}, {c})\nelse:\n    {box_} = Box({c}, {c})\n")
            }
            2 => {
                let u = self.fresh('u', size, 0);
                let grown = format!("op.concat([{u}[-1], op.ones((1,))], axis=0)");
                format!("{u} = [{a}]\nfor t in range({i}):\n    {u}.append({grown})\n    print(t)\n")
            }
            3 => match self.choose('t', &|_| true) {
                Some(t) => format!("{}, {} = {}\n", self.fresh('v', t.size, 0), self.fresh('v', t.other, 0), t.name),
                None => format!("{} = ({a}, {b})\n", self.fresh('t', size, other)),
            },
            4..=6 => match self.choose('P', &|_| true) {
                Some(p) => self.change_pile(&p),
                None => {
                    let (c, _) = self.vector(&|n| n == size);
                    format!("{} = Pile([{a}, {c}], {b})\n", self.fresh('P', size, other))
                }
            },
            7 => match self.choose('u', &|_| true) {
                Some(u) => format!("{} = {}[0] * 2.0\n", self.fresh('v', u.size, 0), u.name),
                None => format!("{} = [{a}, {b}]\n", self.fresh('u', size, 0)),
            },
            _ => {
                let t = self.fresh(
                    't',
                    if count % 2 == 0 { size } else { other },
                    if count % 2 == 0 { other } else { size },
                );
                format!("{t} = ({a}, {b})\nfor t in range({i}):\n    {t} = ({t}[1], {t}[0])\n    print({t}[0].shape)\n")
            }
        }
    }

    fn change_pile(&mut self, p: &Name) -> String {
        let (row, _) = self.vector(&|n| n == p.size);
        let (one, _) = self.vector(&|n| n == p.other);
        let name = &p.name;
        match self.random.below(4) {
            0 => format!("{name}.rows.append({row})\n"),
            1 => format!("{name}.rows[0] = {row}\n"),
            2 => format!("{name}.one = {one}\n"),
            _ => format!("{name}.one += {one}\n"),
        }
    }
}
