//! Tensor code runs later than it stands, in one piece with its neighbours, and no program can tell: what random statements
//! leave is what they leave with something printed after each, which ends every piece.
//!
//! `TESSERA_SEED=N` runs one program, `TESSERA_LAW_COUNT=N` so many; both, so many from that one on.

use tessera_tests::laws::{on_two_threads, run_seeds};
use tessera_tests::program::run_source;
use tessera_tests::random::Random;

/// Programs of an ordinary run of the tests.
const PROGRAMS: u64 = 600;

/// Variables of the file, and functions that read them and change them in place.
const FILE: &str = "a = op.array([1, 2, 3])
b = op.array([4, 5, 6])
c = op.array([7, 8, 9])
i = 3
j = 5
xs = [2, 3]
ts = [op.array([1, 1, 2]), op.array([3, 5, 8])]
d = {\"u\": 4}
s = \"x\"
def get() -> int:
    return (xs[0] + i + d[\"u\"]) % 97
def first():
    return ts[0] % 97
def times(k: int):
    return ts[-1] * (k + xs[-1]) % 97
def bump() -> int:
    xs[0] = (xs[0] + 1) % 97
    d[\"u\"] += 1
    return xs[0]
def grow(t):
    ts.append(t % 97)
    return t
def put(k: int) -> int:
    ts[0] = ts[0] + k
    return k
fs = [get, bump]
";

const STATEMENTS: &[&str] = &[
    "a = (a + get()) % 97",
    "b = (a + bump()) % 97",
    "c = (b * 2 + c) % 97",
    "a = first() + b % 7",
    "b = (times(i) + a) % 97",
    "c = grow(a) + 1",
    "a = (b + put(j)) % 97",
    "c = (c + fs[0]()) % 97",
    "b = (b + fs[1]()) % 97",
    "a, b = b, a",
    "i = get()",
    "i = bump()",
    "i = len(ts)",
    "i = int(a[0]) % 97",
    "j = (j + 1) % 97",
    "j = i",
    "j = sum(xs) % 97",
    "xs[0] = i",
    "xs = [j, i]",
    "xs = [int(t[0]) % 97 for t in ts]",
    "ts.append(c)",
    "ts[0] = b",
    "ts = [a, c, b]",
    "ts = ts[-2:]",
    "c = ts[0] + a % 5",
    "c = (ts[-1] + len(ts)) % 97",
    "a[0] = i",
    "a[1:] = b[:2]",
    "b = (a + i * j) % 97",
    "b = (a + d[\"u\"]) % 97",
    "d[\"u\"] = j",
    "d = {\"u\": i}",
    "s = s[-3:] + str(i)",
    "c = (c + len(s)) % 97",
    "a = a if i > 3 else b",
    "p = (a, i)\na = p[0] + p[1] % 9",
    "for r in range(2):\n    a = (a + xs[0]) % 97\n    xs[0] = (xs[0] + r) % 97",
    "for r in range(i % 3):\n    b = (b + get()) % 97\n    i = (i + 1) % 97",
    "if int(b[0]) % 2 == 0:\n    a = (a + 1) % 97\n    i = j",
    "f = lambda: i + 1\na = (a + f()) % 97",
    "g = lambda t: t + i\ni = (i + 7) % 97\nb = g(b) % 97",
];

const SHOWN: &str = "print(\"end\", a, b, c, i, j, xs, ts, d, s)\n";

/// The statements of a seed.
fn statements(seed: u64) -> Vec<&'static str> {
    let mut random = Random::new(seed);
    (0..3 + random.below(10)).map(|_| random.pick(STATEMENTS)).collect()
}

fn end(statements: &[&str], between: &str) -> String {
    let body: String = statements.iter().map(|s| format!("{s}\n{between}")).collect();
    let ran = run_source(&format!("{FILE}{body}{SHOWN}"), &["run"]).expect("the tool runs");
    let out = ran.out.find("end").map_or("", |at| &ran.out[at..]);
    let error = ran.err.lines().next().unwrap_or("");
    format!("{out}{error}")
}

/// The fewest statements with another end.
fn broken(seed: u64) -> Option<String> {
    let differs = |s: &[&str]| end(s, "") != end(s, "print(1)\n");
    let mut all = statements(seed);
    if !differs(&all) {
        return None;
    }
    let mut at = 0;
    while at < all.len() {
        let mut fewer = all.clone();
        fewer.remove(at);
        if differs(&fewer) { (all, at) = (fewer, 0) } else { at += 1 }
    }
    let (once, apart) = (end(&all, ""), end(&all, "print(1)\n"));
    Some(format!("seed {seed}\n{}\ntogether: {once}\n   apart: {apart}", all.join("\n")))
}

#[test]
fn no_program_can_tell_when_its_tensors_are_computed() {
    let seeds = run_seeds(PROGRAMS);
    let count = (seeds.end - seeds.start) as usize;
    let wrong = on_two_threads(count, |k| broken(seeds.start + k as u64).into_iter().collect());
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n\n"));
}
