//! Random programs whose sizes come from data: what the checker cannot know, it has to check or leave to a check.
//!
//! The generator follows what sizes values have, so that most of what it writes fits: it chooses at random among the
//! values of a fitting size, and once in a while among all.

mod library;
mod holders;

use crate::random::Random;
use holders::{HOLDERS, LOOSE, PILE};
use library::Gives::{self, Boxed, Closed, Keyed, Listed, Mapping, Matrix, Pair, Paired, Piled, Uneven, Vector};
use library::{DIMS, Dim, LIBRARY, Name, PRETENDED, STRUCT, shown};

/// A program as pieces (functions and statements) that can be dropped one by one.
#[derive(Clone, Debug)]
pub struct Program {
    pub pieces: Vec<String>,
}

impl Program {
    pub fn text(&self) -> String {
        self.pieces.concat()
    }
}

/// `def NAME(x: Tensor[N, f32], y: Tensor[M, f32], z: Tensor[DIM, f32], k: int)`
struct Function {
    name: String,
    dim: Dim,
    result: Option<Dim>,
}

struct Maker {
    random: Random,
    names: Vec<Name>,
    functions: Vec<Function>,
    /// Definitions that are needed.
    library: Vec<usize>,
    count: usize,
    /// Whether the body of a function is written, where sizes have names only.
    inside: bool,
    /// Once in so many choices any value will do.
    wild: usize,
}

/// The program of a seed.
pub fn program(seed: u64) -> Program {
    let wild = [5, 10, 60][seed as usize % 3];
    let mut m = Maker {
        random: Random::new(seed),
        names: vec![],
        functions: vec![],
        library: vec![],
        count: 0,
        inside: false,
        wild: 400,
    };
    let functions: Vec<String> = (0..m.random.below(3)).map(|_| m.function()).collect();
    m.wild = wild;
    let mut body: Vec<String> = (0..2 + m.random.below(3)).map(|_| m.source()).collect();
    for _ in 0..3 + m.random.below(10) {
        let statement = m.statement();
        body.push(statement);
    }
    let shows: Vec<String> = m.names.iter().filter_map(shown).collect();
    m.library.sort_unstable();
    m.library.dedup();
    let mut pieces = vec![STRUCT.to_owned(), PILE.to_owned(), LOOSE.to_owned()];
    pieces.extend(m.library.iter().map(|&i| row(i).0.to_owned()));
    pieces.extend(functions);
    pieces.extend(body);
    pieces.extend(shows.into_iter().map(|s| format!("print({s})\n")));
    Program { pieces }
}

/// A function that programs call, of the library or of host code.
fn row(at: usize) -> (&'static str, &'static str, Gives) {
    LIBRARY.get(at).copied().unwrap_or_else(|| HOLDERS[at - LIBRARY.len()])
}

impl Maker {
    fn fresh(&mut self, kind: char, size: i64, other: i64) -> String {
        self.count += 1;
        // `i8` is a dtype.
        let name = format!("{}{}", if kind == 'i' { 'n' } else { kind }, self.count);
        self.names.retain(|n| n.name != name);
        self.names.push(Name { name: name.clone(), kind, size, other });
        name
    }

    /// An int or a tensor that comes from data.
    fn source(&mut self) -> String {
        let n = self.random.pick(&[0, 1, 1, 2, 2, 3, 3, 3, 5]);
        let way = self.random.below(7);
        if way >= 5 {
            let v = self.fresh('v', n, 0);
            let size = format!("S{}", self.count);
            self.names.push(Name { name: size.clone(), kind: 'i', size: n, other: 0 });
            let read = format!(
                "io.write_npy(\"{v}.npy\", op.ones(({n},)))\n{v}: Tensor[{size}, f32] = io.read_npy(\"{v}.npy\")\n"
            );
            return read;
        }
        let i = self.fresh('i', n, 0);
        match way {
            0 => format!("{i} = int(\"{n}\")\n"),
            1 if n > 0 => format!("{i} = len(\"{}\".split(\" \"))\n", vec!["a"; n as usize].join(" ")),
            2 => format!("{i} = int(op.ones(({n},)).sum())\n"),
            3 => format!("{i} = 0\nfor t in \"{}\":\n    {i} += 1\n", "a".repeat(n as usize)),
            _ => format!("{i} = {n}\n"),
        }
    }

    /// A name of a kind, of a size that fits as a rule.
    fn choose(&mut self, kind: char, fits: &dyn Fn(i64) -> bool) -> Option<Name> {
        let any = self.random.once_in(self.wild);
        let of: Vec<&Name> = self.names.iter().filter(|n| n.kind == kind && (any || fits(n.size))).collect();
        (!of.is_empty()).then(|| of[self.random.below(of.len())].clone())
    }

    fn int(&mut self, fits: &dyn Fn(i64) -> bool) -> (String, i64) {
        match self.choose('i', fits) {
            Some(n) if !self.random.once_in(8) => (n.name, n.size),
            _ if self.inside => {
                let fit: Vec<Dim> = DIMS.iter().copied().filter(|d| fits(d.1(&PRETENDED))).collect();
                let one: Dim = ("1", |_| 1);
                let (text, size) = if fit.is_empty() { one } else { self.random.pick(&fit) };
                (format!("({text})"), size(&PRETENDED))
            }
            _ => {
                let n = [1, 2, 0, 3].into_iter().chain(4..200).find(|&n| fits(n)).unwrap_or(1);
                (n.to_string(), n)
            }
        }
    }

    fn vector(&mut self, fits: &dyn Fn(i64) -> bool) -> (String, i64) {
        if let Some(v) = self.choose('v', fits)
            && !self.random.once_in(8)
        {
            return (v.name, v.size);
        }
        let (n, size) = self.int(fits);
        match self.random.below(3) {
            0 => (format!("op.arange({n}).to(f32)"), size),
            _ => (format!("op.ones(({n},))"), size),
        }
    }

    /// The call with arguments, and their sizes.
    fn fill(&mut self, call: &str) -> (String, Vec<i64>) {
        let (mut out, mut sizes) = (String::new(), vec![]);
        let mut rest = call.chars();
        while let Some(c) = rest.next() {
            if c != '$' {
                out.push(c);
                continue;
            }
            let (first, second) = (sizes.first().copied().unwrap_or(3), sizes.get(1).copied().unwrap_or(3));
            let (text, size) = match rest.next() {
                Some('=') => self.vector(&|n| n == first),
                Some('3') => self.vector(&|n| n == 3),
                Some('e') if self.inside => self.vector(&|n| n == 2 * PRETENDED[0]),
                Some('e') => self.vector(&|n| n % 2 == 0),
                Some('p') => self.vector(&|n| n > 0),
                Some('c') => self.vector(&|n| n == second),
                Some('i') => self.int(&|n| n < 12),
                Some('#') => self.int(&|n| n == first),
                Some('k') => self.int(&|n| n <= first),
                Some('m') => {
                    let m = self.matrix();
                    sizes.push(m.1);
                    (m.0, m.2)
                }
                Some(kind @ ('t' | 'P' | 'K')) => {
                    let (text, first, second) = self.two_sizes(kind);
                    sizes.push(first);
                    (text, second)
                }
                Some('d') => self.pair("{\"a\": $v, \"b\": $=}", 'd'),
                Some('b') => self.pair("Box($v, $=)", 'b'),
                Some('l') => self.pair("[$v, $=]", 'l'),
                Some('u') => self.pair("[$v, $v]", 'u'),
                Some('f') => {
                    out += &self.function_value();
                    continue;
                }
                _ => self.vector(&|n| n < 30),
            };
            out += &text;
            sizes.push(size);
        }
        (out, sizes)
    }

    fn matrix(&mut self) -> (String, i64, i64) {
        match self.choose('m', &|_| true) {
            Some(m) => (m.name, m.size, m.other),
            None => {
                let ((r, rows), (c, columns)) = (self.int(&|n| n < 12), self.int(&|n| n < 12));
                (format!("op.ones(({r}, {c}))"), rows, columns)
            }
        }
    }

    /// A tuple, a pile or a list of closures.
    fn two_sizes(&mut self, kind: char) -> (String, i64, i64) {
        match self.choose(kind, &|_| true) {
            Some(n) => (n.name, n.size, n.other),
            None => {
                let make = match kind {
                    't' => "($v, $v)",
                    'K' => "[lambda: u for u in [$v, $v]]",
                    _ => "Pile([$v, $=], $v)",
                };
                let (text, sizes) = self.fill(make);
                (text, sizes[0], sizes[sizes.len() - 1])
            }
        }
    }

    /// A list or a box, or one that is made here.
    fn pair(&mut self, make: &str, kind: char) -> (String, i64) {
        match self.choose(kind, &|_| true) {
            Some(n) => (n.name, n.size),
            None => {
                let (text, sizes) = self.fill(make);
                (text, sizes[0])
            }
        }
    }

    fn function_value(&mut self) -> String {
        match self.choose('f', &|_| true) {
            Some(f) if self.random.once_in(2) => f.name,
            _ => match self.random.below(3) {
                0 if !self.inside => format!("lambda u: u + {}", self.vector(&|n| n < 12).0),
                1 => "lambda u: op.exp(u)".to_owned(),
                _ => "lambda u: u * 2.0".to_owned(),
            },
        }
    }

    /// `def` with a random body, written for sizes that are all different.
    fn function(&mut self) -> String {
        let outer = std::mem::take(&mut self.names);
        self.inside = true;
        let dim = self.random.pick(DIMS);
        let known = [("x", PRETENDED[0]), ("y", PRETENDED[1]), ("z", dim.1(&PRETENDED))];
        let vectors = known.map(|(name, size)| Name { name: name.into(), kind: 'v', size, other: 0 });
        let ints = [("N", 0), ("M", 1), ("k", 2)].map(|(name, i)| (name, PRETENDED[i]));
        let ints = ints.map(|(name, size)| Name { name: name.into(), kind: 'i', size, other: 0 });
        self.names = vectors.into_iter().chain(ints).collect();
        let lines: Vec<String> = (0..1 + self.random.below(4)).map(|_| self.statement()).collect();
        let declared = self.random.pick(DIMS);
        let result = (!self.random.once_in(3)).then_some(declared);
        let size = result.map_or(-1, |d| d.1(&PRETENDED));
        let (back, _) = self.vector(&|n| size < 0 || n == size);
        (self.names, self.inside) = (outer, false);
        self.count += 1;
        let name = format!("g{}", self.count);
        let arrow = result.map(|d| format!(" -> Tensor[{}, f32]", d.0)).unwrap_or_default();
        let mut text = format!(
            "def {name}(x: Tensor[N, f32], y: Tensor[M, f32], z: Tensor[{}, f32], k: int){arrow}:\n    {}\n",
            dim.0,
            self.random.pick(&[
                "assert k >= 0",
                "assert k >= 0 and N >= 1 and M >= 1",
                "assert 0 <= k <= N and N > 0 and M > 0"
            ])
        );
        for line in lines.iter().flat_map(|l| l.lines()) {
            text += &format!("    {line}\n");
        }
        text += &format!("    return {back}\n");
        self.functions.push(Function { name, dim, result });
        text
    }

    /// A call of a random function.
    fn call(&mut self) -> Option<(String, i64)> {
        let at = self.random.below(self.functions.len() + 1);
        let f = self.functions.get(at)?;
        let (name, dim, result) = (f.name.clone(), f.dim, f.result);
        let ((x, n), (y, m)) = (self.vector(&|n| n < 30), self.vector(&|n| n < 30));
        let (k, size) = self.int(&|k| k <= n);
        let sizes = [n, m, size];
        let (z, _) = self.vector(&|n| n == dim.1(&sizes));
        Some((format!("{name}({x}, {y}, {z}, {k})"), result.map_or(3, |d| d.1(&sizes))))
    }

    fn statement(&mut self) -> String {
        match self.random.below(24) {
            20..24 => self.holder(),
            0..9 => self.expression(),
            9 | 10 => match self.call() {
                Some((text, size)) => format!("{} = {text}\n", self.fresh('v', size, 0)),
                None => self.expression(),
            },
            11 if !self.inside => self.source(),
            12 | 13 => self.container(),
            14 | 15 => self.control(),
            16 => self.int_statement(),
            17 => self.store(),
            18 => {
                let (v, size) = self.vector(&|n| n < 30);
                let f = self.fresh('f', size, 0);
                match self.random.below(2) {
                    0 => format!("def {f}(u: Tensor[P, f32]) -> Tensor[P, f32]:\n    return u + {v}.sum()\n"),
                    _ => format!("{f} = lambda u: u * {v}\n"),
                }
            }
            _ => self.annotated(),
        }
    }

    fn expression(&mut self) -> String {
        let at = self.random.below(LIBRARY.len() + HOLDERS.len());
        let (text, call, gives) = row(at);
        if !text.is_empty() {
            self.library.push(at);
        }
        let (call, sizes) = self.fill(call);
        let name = match gives {
            Vector(size) => self.fresh('v', size(&sizes).max(0), 0),
            Matrix(size) => {
                let (rows, columns) = size(&sizes);
                self.fresh('m', rows, columns)
            }
            Pair(size) => {
                let (a, b) = size(&sizes);
                format!("{}, {}", self.fresh('v', a, 0), self.fresh('v', b, 0))
            }
            Boxed => self.fresh('b', sizes[0], 0),
            Listed(size) => self.fresh('l', size(&sizes), 0),
            Keyed(size) => self.fresh('d', size(&sizes), 0),
            Uneven(size) => self.fresh('u', size(&sizes), 0),
            Mapping(size) => self.fresh('f', size(&sizes), 0),
            Piled(size) => {
                let (a, b) = size(&sizes);
                self.fresh('P', a, b)
            }
            Closed(size) => {
                let (a, b) = size(&sizes);
                self.fresh('K', a, b)
            }
            Paired(size) => {
                let (a, b) = size(&sizes);
                self.fresh('t', a, b)
            }
        };
        format!("{name} = {call}\n")
    }

    fn container(&mut self) -> String {
        let (list, dict) = (self.choose('l', &|_| true), self.choose('d', &|_| true));
        let way = self.random.below(5);
        let of = if way < 3 { list } else { dict };
        let Some(of) = of else {
            let (kind, make) = if way < 3 { ('l', "[$v, $=]") } else { ('d', "{\"a\": $v, \"b\": $=}") };
            let (text, sizes) = self.fill(make);
            return format!("{} = {text}\n", self.fresh(kind, sizes[0], 0));
        };
        let (v, _) = self.vector(&|n| n == of.size);
        let name = of.name;
        match way {
            0 => format!("{name}.append({v})\n"),
            1 => format!("{name}[0] = {v}\n"),
            3 => format!("{name}[\"b\"] = {v}\n"),
            2 => format!("{} = {name}[-1] + {v}\n", self.fresh('v', of.size, 0)),
            _ => format!("{} = {name}[\"b\"] + {v}\n", self.fresh('v', of.size, 0)),
        }
    }

    /// Branches that join and loops that change a size.
    fn control(&mut self) -> String {
        let (a, size) = self.vector(&|n| n < 30);
        let (i, count) = self.int(&|n| n < 6);
        match self.random.below(4) {
            0 => {
                let (b, _) = self.vector(&|n| n < 30);
                let v = self.fresh('v', size, 0);
                format!("if {i} >= 1:\n    {v} = {a}\nelse:\n    {v} = {b}\n")
            }
            1 => {
                let v = self.fresh('v', size + count, 0);
                format!("{v} = {a}\nfor t in range({i}):\n    {v} = op.concat([{v}, op.ones((1,))], axis=0)\n")
            }
            2 => {
                let v = self.fresh('v', (size - count).max(0), 0);
                format!("{v} = {a}\nfor t in range({i}):\n    {v} = {v}[1:]\n")
            }
            _ => {
                let (b, _) = self.vector(&|n| n == size);
                let v = self.fresh('v', size, 0);
                format!("{v} = {a}\nfor t in range({i}):\n    {v} = {v} + {b}\n")
            }
        }
    }

    fn int_statement(&mut self) -> String {
        let ((v, size), (a, i), (b, j)) = (self.vector(&|n| n < 30), self.int(&|n| n < 12), self.int(&|n| n < 12));
        let (text, value) = match self.random.below(6) {
            0 => (format!("len({v})"), size),
            1 => (format!("{v}.shape[0] + {a}"), size + i),
            2 => (format!("min({a}, {b})"), i.min(j)),
            3 => (format!("max({a}, {b})"), i.max(j)),
            4 => (format!("{a} * {b}"), i * j),
            _ => (format!("{a} + {b}"), i + j),
        };
        format!("{} = {text}\n", self.fresh('i', value, 0))
    }

    /// A part of a value changes.
    fn store(&mut self) -> String {
        if let Some(b) = self.choose('b', &|_| true)
            && self.random.once_in(2)
        {
            return format!("{}.w = {}\n", b.name, self.vector(&|n| n == b.size).0);
        }
        let Some(v) = self.choose('v', &|_| true) else { return self.expression() };
        let (w, _) = self.vector(&|n| n == v.size);
        match self.random.below(2) {
            0 => format!("{}[:] = {w}\n", v.name),
            _ => format!("{} += {w}\n", v.name),
        }
    }

    /// A binding with a type: a new size, a size that is there or a number.
    fn annotated(&mut self) -> String {
        let (w, size) = self.vector(&|n| n < 30);
        let v = self.fresh('v', size, 0);
        if !self.inside && self.random.once_in(2) {
            let dim = format!("S{}", self.count);
            self.names.push(Name { name: dim.clone(), kind: 'i', size, other: 0 });
            return format!("{v}: Tensor[{dim}, f32] = {w}\n");
        }
        let dim = match self.inside {
            true => DIMS.iter().find(|d| d.1(&PRETENDED) == size).map_or("P", |d| d.0).to_owned(),
            false => size.to_string(),
        };
        format!("{v}: Tensor[{dim}, f32] = {w}\n")
    }
}
