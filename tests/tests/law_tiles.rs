//! Tile programs of random tile sizes compute what whole tensors do, and kernels with random
//! directives have the same bits, interpreted, compiled and on any number of threads.

use std::fmt::Write;
use tessera_tests::program::run_source;
use tessera_tests::random::Random;

fn size(random: &mut Random, most: usize) -> usize {
    1 + random.below(most)
}

/// Products and row sums of whole numbers, which are exact in any order.
fn tile_program(random: &mut Random, n: usize, out: &mut String) {
    let [m, k, l] = [70, 90, 70].map(|most| size(random, most));
    let [tm, tk, tl] = [40, 40, 40].map(|most| size(random, most));
    let _ = write!(
        out,
        r#"
@op.kernel
def product{n}(A, B, C, R):
    i = tile.program_id(0)
    j = tile.program_id(1)
    acc = tile.zeros(({tm}, {tl}))
    for k in tile.range((A.shape[1] + {tk} - 1) // {tk}):
        acc = tile.dot(tile.load(A, (i, k), shape=({tm}, {tk})), tile.load(B, (k, j), shape=({tk}, {tl})), acc)
    tile.store(C, (i, j), acc)
    tile.store(R, (j, i), acc.T * 2.0)

a = (op.arange({m} * {k}) * 7 % 11 - 5).to(f32).reshape({m}, {k})
b = (op.arange({k} * {l}) * 5 % 13 - 6).to(f32).reshape({k}, {l})
c = op.full(({m}, {l}), 9.0)
r = op.full(({l}, {m}), 9.0)
product{n}(a, b, c, r)
print({n}, op.all(c == a @ b), op.all(r == (a @ b).T * 2.0))
"#
    );
}

fn directives(random: &mut Random) -> String {
    let mut out = String::new();
    let sides: Vec<String> = (0..2 + random.below(2)).map(|_| size(random, 130).to_string()).collect();
    let _ = writeln!(out, "    schedule.tile(({}))", sides.join(", "));
    if random.once_in(2) {
        let _ = writeln!(out, "    schedule.vectorize({})", random.pick(&[2, 4, 8, 16, 32, 64]));
    }
    if random.once_in(2) {
        let _ = writeln!(out, "    schedule.use_shared_memory({})", random.pick(&["True", "False"]));
    }
    if random.once_in(2) {
        let _ = writeln!(out, "    schedule.unroll({})", size(random, 8));
    }
    if random.once_in(3) {
        let _ = writeln!(out, "    schedule.parallel({})", random.below(2));
    }
    out
}

/// A product with an epilogue and a softmax, with and without directives.
fn directed(random: &mut Random, n: usize, out: &mut String) {
    let [m, k, l] = [120, 300, 120].map(|most| size(random, most));
    let (first, second) = (directives(random), directives(random));
    let _ = write!(
        out,
        r#"
def plain{n}(a, b, v):
    return op.tanh(a @ b) * v
@op.kernel
def directed{n}(a, b, v):
{first}    return op.tanh(a @ b) * v
@op.kernel
def soft{n}(x):
{second}    return op.softmax(x, -1)
a = random.normal(random.key({n}), ({m}, {k}))
b = random.normal(random.key({n} + 1000), ({k}, {l}))
v = random.normal(random.key({n} + 2000), ({l},))
print({n}, op.all(plain{n}(a, b, v) == directed{n}(a, b, v)), op.all(soft{n}(a) == op.softmax(a, -1)))
"#
    );
}

fn holds(source: &str, programs: usize, args: &[&str]) {
    match run_source(source, args) {
        Ok(r) => {
            let wrong: Vec<&str> = r.out.lines().filter(|l| !l.ends_with("True True")).collect();
            assert!(
                r.code == 0 && r.out.lines().count() == programs && wrong.is_empty(),
                "{args:?}: {wrong:?}\n{}\n{source}",
                r.err
            );
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn tiles_of_any_size() {
    let mut random = Random::new(5);
    let mut source = String::new();
    (0..24).for_each(|n| tile_program(&mut random, n, &mut source));
    holds(&source, 24, &["run", "-q", "--threads", "1"]);
    holds(&source, 24, &["run", "-q", "--threads", "3"]);
}

#[test]
fn any_directives() {
    let mut random = Random::new(6);
    let mut source = String::new();
    (0..24).for_each(|n| directed(&mut random, n, &mut source));
    holds(&source, 24, &["run", "-q", "--threads", "1"]);
    holds(&source, 24, &["run", "-q", "--threads", "3"]);
}

#[test]
fn tiles_and_directives_in_the_checked_interpreter() {
    let mut random = Random::new(7);
    let mut source = String::new();
    (0..3).for_each(|n| tile_program(&mut random, n, &mut source));
    holds(&source, 3, &["run", "-q", "--checked"]);
}
