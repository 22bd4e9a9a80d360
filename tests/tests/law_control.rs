//! What `if`, `while`, `for`, `break` and `return` do where elements of tensors decide: host code waits for the tensors and takes
//! one way; tensor code has choices and loops that end by themselves. Both give the same bits, value by value, and of derivatives
//! too.
//!
//! `TESSERA_SEED=N` runs one program, `TESSERA_LAW_COUNT=N` so many; both, so many from that one on.

use std::fmt::Write;
use tessera_tests::laws::{on_two_threads, run_seeds};
use tessera_tests::program::run_source;
use tessera_tests::random::Random;

/// Programs of an ordinary run of the tests.
const PROGRAMS: u64 = 150;
/// Blocks inside of blocks.
const DEPTH: usize = 3;

const STEPS: &[&str] = &[
    "x = x * 1.25 - y",
    "y = y + x * 0.25",
    "x = op.sin(x)",
    "y = op.abs(y - x)",
    "x, y = y, x",
    "k = k + 1",
    "k = (k * 3) % 7 + 1",
    "n = (n * 5 + 3) % 11",
    "y = y / k",
    "x = x - float(n) * 0.125",
    "v[n % 3] = x",
    "x = x + v[k % 3]",
    "y = y if n > 2 else x * 2.0",
    "k = 2 if x > y else k",
    "x = op.sqrt(op.abs(x)) if x > 0.0 else x * 0.5",
];

const CONDITIONS: &[&str] = &[
    "x > y",
    "n % 2 == 0",
    "y < 0.5",
    "op.abs(x) > 1.0",
    "k > 3",
    "x > 0.0 and y > 0.0",
    "not (x < y)",
    "n > 3 or v[n % 3] < 0.0",
    "float(y) * 2.0 > k",
];

/// Where a block stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Function,
    Loop,
}

struct Writer {
    random: Random,
    text: String,
    loops: usize,
    /// Loops that may have any number of turns have no reverse derivative.
    unbounded: bool,
}

impl Writer {
    fn line(&mut self, depth: usize, text: &str) {
        writeln!(self.text, "{}{text}", "    ".repeat(depth)).expect("a String takes it");
    }

    fn block(&mut self, depth: usize, place: Place) {
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth, place);
        }
    }

    fn statement(&mut self, depth: usize, place: Place) {
        let deep = depth > DEPTH;
        match self.random.below(10) {
            6 | 7 if !deep => self.choice(depth, place),
            8 if !deep => self.repeated(depth),
            9 if !deep => self.while_loop(depth),
            _ => {
                let step = self.random.pick(STEPS);
                self.line(depth, step);
            }
        }
    }

    fn choice(&mut self, depth: usize, place: Place) {
        let condition = self.random.pick(CONDITIONS);
        self.line(depth, &format!("if {condition}:"));
        self.block(depth + 1, place);
        let leave = match place {
            Place::Function => "return y - x",
            Place::Loop if self.random.once_in(2) => "break",
            Place::Loop => "continue",
        };
        if self.random.once_in(3) {
            self.line(depth + 1, leave);
        }
        if self.random.once_in(2) {
            self.line(depth, "else:");
            self.block(depth + 1, place);
        }
    }

    fn repeated(&mut self, depth: usize) {
        let (at, turns) = (self.loops, self.random.pick(&[1, 3, 5, 20]));
        self.loops += 1;
        self.line(depth, &format!("for i{at} in range({turns}):"));
        self.line(depth + 1, &format!("w{at} = x * 0.5"));
        self.line(depth + 1, &format!("x = x + i{at} * 0.03125"));
        self.block(depth + 1, Place::Loop);
        self.line(depth, &format!("y = y + w{at} * (i{at} + 1)"));
    }

    fn while_loop(&mut self, depth: usize) {
        let (at, most) = (self.loops, 1 + self.random.below(6));
        self.loops += 1;
        self.unbounded = true;
        let condition = self.random.pick(CONDITIONS);
        self.line(depth, &format!("c{at} = n * 0"));
        self.line(depth, &format!("while c{at} < {most} + n % 3 and ({condition}):"));
        self.line(depth + 1, &format!("c{at} = c{at} + 1"));
        self.block(depth + 1, Place::Loop);
    }
}

/// The function of a seed, and whether it has a derivative in reverse.
fn function(seed: u64) -> (String, bool) {
    let mut w = Writer { random: Random::new(seed), text: String::new(), loops: 0, unbounded: false };
    w.line(0, "def f(x: Tensor[f32], n: Tensor[i64]) -> Tensor[f32]:");
    w.line(1, "y = x * 0.5");
    w.line(1, "k = 1");
    w.line(1, "v = op.array([0.5, -1.0, 2.0]) * x");
    for _ in 0..3 + w.random.below(4) {
        w.statement(1, Place::Function);
    }
    w.line(1, "return x + y * k + v.sum()");
    (w.text, !w.unbounded)
}

fn program(seed: u64) -> String {
    let (mut text, reverse) = function(seed);
    text += "xs = op.array([0.3, -1.2, 2.5, 0.0, -0.4, 7.0])\nns = op.array([0, 1, 2, 3, 7, 10])\n";
    let derivatives = match reverse {
        true => {
            "d = autodiff.grad(f)\nprint([d(x, n) for x, n in zip(xs, ns)])\nprint([x for x in autodiff.vmap(d)(xs, ns)])\n\
             print([x for x in autodiff.grad(lambda xs: autodiff.vmap(f)(xs, ns).sum())(xs)])\n"
        }
        false => {
            "def d(x, n):\n    return autodiff.jvp(lambda x: f(x, n), (x,), (op.array(1.0),))[1]\n\
             print([d(x, n) for x, n in zip(xs, ns)])\nprint([x for x in autodiff.vmap(d)(xs, ns)])\n\
             print([x for x in autodiff.jvp(lambda xs: autodiff.vmap(f)(xs, ns), (xs,), (op.ones_like(xs),))[1]])\n"
        }
    };
    text + "print([f(x, n) for x, n in zip(xs, ns)])\nprint([x for x in autodiff.vmap(f)(xs, ns)])\n" + derivatives
}

fn broken(seed: u64) -> Option<String> {
    let text = program(seed);
    let args: &[&str] = if seed.is_multiple_of(10) { &["run", "--checked"] } else { &["run"] };
    let ran = run_source(&text, args).expect("the tool runs");
    let lines: Vec<&str> = ran.out.lines().collect();
    let holds = ran.code == 0 && matches!(lines[..], [a, b, c, d, e] if a == b && c == d && d == e);
    (!holds).then(|| format!("seed {seed}\n{text}\n{}{}", ran.out, ran.err))
}

#[test]
fn elements_decide_the_same_in_host_code_and_in_tensor_code() {
    let seeds = run_seeds(PROGRAMS);
    let first = seeds.start;
    let found = on_two_threads(seeds.count(), |i| broken(first + i as u64).into_iter().collect());
    assert!(found.is_empty(), "{} programs\n{}", found.len(), found.into_iter().next().unwrap_or_default());
}
