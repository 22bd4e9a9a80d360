//! Random systems against brute force over a box: what is proved is true, linear systems are decided, witnesses are
//! witnesses, and no question takes long.

use super::super::omega_test::{Answer, Budget, Row, System};
use super::super::*;
use super::units::var;
use std::time::Instant;

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `low..=high`.
    fn int(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low + 1) as u64) as i64
    }
}

/// Every point of `[low, high]^n`.
fn points(n: usize, low: i64, high: i64) -> impl Iterator<Item = Vec<i64>> {
    let side = (high - low + 1) as usize;
    (0..side.pow(n as u32)).map(move |mut i| {
        (0..n)
            .map(|_| {
                let value = low + (i % side) as i64;
                i /= side;
                value
            })
            .collect()
    })
}

#[test]
fn linear_systems_are_decided() {
    let mut random = Random(1);
    let (mut sat, mut unsat) = (0, 0);
    for round in 0..20_000 {
        let n = random.int(1, 4) as usize;
        let most = [3, 8, 30][round % 3];
        let mut system = System::default();
        for _ in 0..random.int(1, 5) {
            let coefs = (0..n).map(|_| if random.int(0, 2) == 0 { 0 } else { i128::from(random.int(-most, most)) });
            let row = Row { coefs: coefs.collect(), constant: i128::from(random.int(-2 * most, 2 * most)) };
            if random.int(0, 4) == 0 { system.zero.push(row) } else { system.natural.push(row) }
        }
        let (low, high) = (-random.int(0, 3), random.int(0, 5));
        for i in 0..n {
            for (sign, constant) in [(1, -low), (-1, high)] {
                let mut coefs = vec![0; n];
                coefs[i] = sign;
                system.natural.push(Row { coefs, constant: i128::from(constant) });
            }
        }
        let value = |row: &Row, at: &[i64]| {
            row.coefs.iter().zip(at).map(|(c, x)| c * i128::from(*x)).sum::<i128>() + row.constant
        };
        let truth = points(n, low, high).any(|at| {
            system.zero.iter().all(|r| value(r, &at) == 0) && system.natural.iter().all(|r| value(r, &at) >= 0)
        });
        let answer = system.solve(&mut Budget(10_000_000));
        assert_eq!(answer, if truth { Answer::Sat } else { Answer::Unsat }, "{system:?}");
        if truth { sat += 1 } else { unsat += 1 }
    }
    assert!(sat > 3000 && unsat > 3000, "{sat} {unsat}");
}

/// A random size over the variables; `deep` allows products, quotients and extremes.
fn size(random: &mut Random, vars: &[Size], deep: u32) -> Size {
    let any = |random: &mut Random| vars[random.int(0, vars.len() as i64 - 1) as usize].clone();
    let constant = |random: &mut Random, low, high| Size::constant(random.int(low, high));
    if deep == 0 {
        let by = random.int(-2, 3);
        return any(random).scale(by).add(&constant(random, -3, 4));
    }
    let (a, b) = (size(random, vars, deep - 1), size(random, vars, deep - 1));
    match random.int(0, 8) {
        0 => a.add(&b),
        1 => a.sub(&b),
        2 => any(random).mul(&b),
        3 => a.least(&b),
        4 => a.greatest(&b),
        5 => a.floor_div(&constant(random, 1, 4)).unwrap_or_default(),
        6 => a.floor_mod(&constant(random, 1, 4)).unwrap_or_default(),
        7 => a.floor_div(&any(random)).unwrap_or_default(),
        _ => a,
    }
}

struct Problem {
    facts: Facts,
    /// The facts as they were given: a kind and two sizes.
    given: Vec<(i64, Size, Size)>,
    vars: Vec<SizeVar>,
}

impl Problem {
    fn new(random: &mut Random, linear: bool) -> (Problem, Size, Size) {
        let n = random.int(1, 3) as u32;
        let sizes: Vec<Size> = (0..n).map(|i| var(i, ["A", "B", "C"][i as usize], random.int(0, 3) != 0)).collect();
        let vars = sizes.iter().filter_map(Size::as_var).cloned().collect();
        let (mut facts, mut given) = (Facts::default(), vec![]);
        for _ in 0..random.int(0, 3) {
            let deep = if linear { 0 } else { random.int(0, 2) as u32 };
            let (kind, a, b) = (random.int(0, 5), size(random, &sizes, deep), size(random, &sizes, deep));
            match kind {
                0 => facts.assume_equal(&a, &b),
                1 => facts.assume_differ(&a, &b),
                2 if !linear => facts.assume_divides(&a, &b),
                2 => continue,
                _ => facts.assume_at_least(&a, &b),
            }
            given.push((kind, a, b));
        }
        let deep = if linear { 0 } else { random.int(1, 2) as u32 };
        let (a, b) = (size(random, &sizes, deep), size(random, &sizes, deep));
        let other = size(random, &sizes, 0);
        (Problem { facts, given, vars }, a, if linear { b.add(&other) } else { b })
    }

    fn eval(&self, size: &Size, at: &[i64]) -> Option<i64> {
        size.eval(&|v| at.get(v.id as usize).copied())
    }

    /// Whether the facts hold at the values; `undefined` for one that divides by 0 there.
    fn holds(&self, at: &[i64], undefined: bool) -> bool {
        self.vars.iter().zip(at).all(|(v, n)| !v.natural || *n >= 0)
            && self.given.iter().all(|(kind, a, b)| match (kind, self.eval(a, at), self.eval(b, at)) {
                (0, Some(a), Some(b)) => a == b,
                (1, Some(a), Some(b)) => a != b,
                (2, Some(a), Some(b)) => a != 0 && b % a == 0,
                (3.., Some(a), Some(b)) => a >= b,
                _ => undefined,
            })
    }

    fn check_witness(&self, w: &Witness, a: &Size, b: &Size, less: bool) {
        if !w.is_known() {
            return;
        }
        let value = |v: &SizeVar| w.values.iter().find(|(n, _)| *n == v.name).map(|(_, x)| *x);
        let sides = (a.eval(&value), b.eval(&value));
        assert_eq!(sides, (Some(w.left), Some(w.right)), "{a} {b} {w}");
        assert!(if less { w.left < w.right } else { w.left != w.right });
        // With all variables named, the facts can be tried, too.
        let at: Vec<Option<i64>> = self.vars.iter().map(value).collect();
        if let Some(at) = at.into_iter().collect::<Option<Vec<i64>>>() {
            assert!(self.holds(&at, true), "{a} {b} {w} {:?}", self.given);
        }
    }

    fn text(&self, a: &Size, b: &Size) -> String {
        let given: Vec<String> = self.given.iter().map(|(k, a, b)| format!("{k}: {a} | {b}")).collect();
        let kinds: Vec<bool> = self.vars.iter().map(|v| v.natural).collect();
        format!("{a} and {b} under {given:?} {kinds:?}")
    }
}

fn ask(rounds: usize, linear: bool, seed: u64) -> (usize, usize) {
    let mut random = Random(seed);
    let (mut proved, mut open) = (0, 0);
    let mut slowest = 0.0f64;
    for _ in 0..rounds {
        let (p, a, b) = Problem::new(&mut random, linear);
        let (low, high) = if linear { (-12, 12) } else { (-6, 9) };
        let at: Vec<Vec<i64>> = points(p.vars.len(), low, high).filter(|at| p.holds(at, false)).collect();
        let both = |at: &Vec<i64>| Some((p.eval(&a, at)?, p.eval(&b, at)?));
        let values: Vec<(i64, i64)> = at.iter().filter_map(both).collect();
        let text = || p.text(&a, &b);
        let begin = Instant::now();
        let (verdict, reach) = (a.compare(&b, &p.facts), a.reach(&b, &p.facts));
        slowest = slowest.max(begin.elapsed().as_secs_f64());
        match &verdict {
            Verdict::Equal => assert!(values.iter().all(|(a, b)| a == b), "{}", text()),
            Verdict::Differ(w) => {
                assert!(values.iter().all(|(a, b)| a != b), "{}", text());
                p.check_witness(w, &a, &b, false);
            }
            Verdict::Depends(w) => {
                p.check_witness(w, &a, &b, false);
                assert!(!linear || w.is_known() || p.facts.contradictory(), "no witness: {}", text());
            }
        }
        match &reach {
            Reach::Always => assert!(values.iter().all(|(a, b)| a >= b), "{}", text()),
            Reach::Never(w) => {
                assert!(values.iter().all(|(a, b)| a < b), "{}", text());
                p.check_witness(w, &a, &b, true);
            }
            Reach::Depends(w) => {
                p.check_witness(w, &a, &b, true);
                assert!(!linear || w.is_known() || p.facts.contradictory(), "no witness: {}", text());
            }
        }
        if p.facts.contradictory() {
            assert!(at.is_empty(), "{}", text());
        }
        let sure = matches!(verdict, Verdict::Equal) || matches!(reach, Reach::Always);
        if sure { proved += 1 } else { open += 1 }
    }
    println!("slowest pair of questions: {:.3} ms", slowest * 1e3);
    (proved, open)
}

#[test]
fn linear_questions_are_decided() {
    let (proved, open) = ask(4000, true, 2);
    assert!(proved > 400 && open > 400, "{proved} {open}");
}

#[test]
fn what_is_proved_of_other_sizes_is_true() {
    let (proved, open) = ask(6000, false, 3);
    assert!(proved > 400 && open > 400, "{proved} {open}");
}

/// Seconds that a question took, with its answer thrown away.
fn timed(f: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    f();
    begin.elapsed().as_secs_f64()
}

#[test]
fn hostile_questions_end() {
    let n = |i: u32| var(i, "N", true);
    let mut slow = vec![];
    // Many facts.
    let mut facts = Facts::default();
    for i in 0..10_000 {
        facts.assume_at_least(
            &n(i % 50).scale(i64::from(i % 7) + 2),
            &n((i * 31 + 7) % 50).scale(3).add(&Size::constant(i64::from(i))),
        );
    }
    slow.push(timed(|| {
        let _ = n(0).compare(&n(1), &facts);
    }));
    slow.push(timed(|| {
        facts.contradictory();
    }));
    // Large coefficients.
    let mut facts = Facts::default();
    let mut random = Random(5);
    for i in 0..12 {
        let mut large = || random.next() as i64 >> 1;
        let (a, b) = (n(i % 5).scale(large()).add(&n((i + 1) % 5).scale(large())), n((i + 2) % 5).scale(large()));
        if i % 3 == 0 { facts.assume_equal(&a, &b) } else { facts.assume_at_least(&a, &b) }
    }
    slow.push(timed(|| {
        let _ = n(0).compare(&n(1).scale(i64::MAX), &facts);
        let _ = n(0).scale(i64::MIN).reach(&n(1), &facts);
    }));
    // Extremes in extremes, and quotients of quotients.
    let mut deep = n(0);
    for i in 1..30 {
        deep = deep.least(&n(i).add(&Size::constant(1))).greatest(&n(i + 1).sub(&Size::constant(2)));
    }
    let mut quotient = n(0).mul(&n(1));
    for i in 2..20 {
        quotient = quotient.add(&n(i)).floor_div(&n(i + 1)).unwrap_or_default().mul(&n(i));
    }
    for size in [deep, quotient] {
        slow.push(timed(|| {
            let _ = size.compare(&n(0), &Facts::default());
        }));
        slow.push(timed(|| {
            let _ = size.reach(&n(2), &Facts::default());
        }));
    }
    println!("hostile questions: {slow:?} s");
    assert!(slow.iter().all(|s| *s < 1.0), "{slow:?}");
}

#[test]
fn a_product_divided_by_a_factor_is_the_other() {
    let mut random = Random(9);
    let vars: Vec<Size> = (0..3).map(|i| var(i, "x", true)).collect();
    let mut divided = 0;
    for _ in 0..2_000 {
        let mut sum = || {
            (0..random.int(1, 3)).fold(Size::constant(random.int(-3, 3)), |s, _| {
                let x = &vars[random.int(0, 2) as usize];
                let y = if random.int(0, 1) == 0 { x.clone() } else { x.mul(&vars[random.int(0, 2) as usize]) };
                s.add(&y.scale(random.int(-4, 4)))
            })
        };
        let (a, b) = (sum(), sum());
        if b.is_zero() {
            continue;
        }
        divided += 1;
        assert_eq!(a.mul(&b).exact_div(&b), Some(a.clone()), "{a} times {b}");
        // A quotient that is found is one.
        if let Some(q) = a.exact_div(&b) {
            assert_eq!(q.mul(&b), a);
        }
    }
    assert!(divided > 1_500);
}
