//! The Omega test: whether a system of linear equations and inequalities has a solution in integers.
//!
//! W. Pugh, *The Omega test: a fast and practical integer programming algorithm for dependence analysis*, Supercomputing
//! 1991. Equations are solved exactly. Inequalities are tightened by the greatest common divisor of their coefficients, and
//! variables are eliminated after Fourier and Motzkin: exactly where a coefficient of 1 allows it; else the real shadow
//! (no solution there: none at all), the dark shadow (a solution there: one of the system), and between the two the
//! splinters, which are planes close to a lower bound.
//!
//! Instead of Pugh's symmetric remainder an equation without a coefficient of 1 is reduced by substitutions
//! `x := t - q*y - …` that have the determinant 1 and shrink its coefficients as Euclid's algorithm does: no variable is added.

/// `coefs · x + constant`, which is 0 or at least 0.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Row {
    pub coefs: Vec<i128>,
    pub constant: i128,
}

/// Whether there is a solution. `Unknown` where the budget ended, or a number overflowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    Sat,
    Unsat,
    Unknown,
}

/// Steps that are left: one is an operation on one coefficient.
#[derive(Clone, Debug)]
pub struct Budget(pub u64);

impl Budget {
    /// Takes `n` steps; `None` where there are fewer.
    pub fn take(&mut self, n: usize) -> Option<()> {
        match self.0.checked_sub(n as u64) {
            Some(left) => {
                self.0 = left;
                Some(())
            }
            None => {
                self.0 = 0;
                None
            }
        }
    }
}

/// Equations and inequalities over the same variables.
#[derive(Clone, Default, Debug)]
pub struct System {
    pub zero: Vec<Row>,
    pub natural: Vec<Row>,
}

/// What a row says by itself.
enum Normal {
    /// Nothing: it always holds.
    Holds,
    /// It never holds.
    Fails,
    Row(Row),
}

impl System {
    pub fn solve(&self, budget: &mut Budget) -> Answer {
        solve(self.zero.clone(), self.natural.clone(), budget, 0).unwrap_or(Answer::Unknown)
    }
}

/// Splinters inside splinters.
const DEPTH_MAX: u32 = 40;

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Divides by the greatest common divisor of the coefficients, and rounds the constant of an inequality down.
fn normal(row: Row, equation: bool, budget: &mut Budget) -> Option<Normal> {
    budget.take(row.coefs.len() + 1)?;
    let g = row.coefs.iter().fold(0, |g, c| if *c == 0 { g } else { gcd(g, c.unsigned_abs()) });
    let g = i128::try_from(g).ok()?;
    if g == 0 {
        let holds = if equation { row.constant == 0 } else { row.constant >= 0 };
        return Some(if holds { Normal::Holds } else { Normal::Fails });
    }
    if equation && row.constant.checked_rem(g)? != 0 {
        return Some(Normal::Fails);
    }
    if g == 1 {
        return Some(Normal::Row(row));
    }
    let coefs = row.coefs.iter().map(|c| c.checked_div(g)).collect::<Option<_>>()?;
    Some(Normal::Row(Row { coefs, constant: row.constant.div_euclid(g) }))
}

/// `a * x + b * y`.
fn combine(x: &Row, a: i128, y: &Row, b: i128, budget: &mut Budget) -> Option<Row> {
    budget.take(x.coefs.len() + 1)?;
    let term = |x: i128, y: i128| a.checked_mul(x)?.checked_add(b.checked_mul(y)?);
    let coefs = x.coefs.iter().zip(&y.coefs).map(|(x, y)| term(*x, *y)).collect::<Option<_>>()?;
    Some(Row { coefs, constant: term(x.constant, y.constant)? })
}

fn solve(mut zero: Vec<Row>, mut natural: Vec<Row>, budget: &mut Budget, depth: u32) -> Option<Answer> {
    if depth > DEPTH_MAX {
        return None;
    }
    loop {
        if !substitute(&mut zero, &mut natural, budget)? {
            return Some(Answer::Unsat);
        }
        match tighten(natural, &mut zero, budget)? {
            None => return Some(Answer::Unsat),
            Some(rows) => natural = rows,
        }
        if !zero.is_empty() {
            continue;
        }
        let Some(choice) = choose(&mut natural, budget)? else { return Some(Answer::Sat) };
        let (real, dark) = shadows(&natural, choice.var, choice.exact, budget)?;
        if choice.exact {
            natural = real;
            continue;
        }
        match solve(vec![], real, budget, depth + 1)? {
            Answer::Unsat => return Some(Answer::Unsat),
            Answer::Unknown => return None,
            Answer::Sat => {}
        }
        match solve(vec![], dark, budget, depth + 1)? {
            Answer::Sat => return Some(Answer::Sat),
            Answer::Unknown => return None,
            Answer::Unsat => {}
        }
        return splinters(&natural, choice.var, budget, depth);
    }
}

/// Solves the equations one by one, in all rows. `false`: one of them has no solution.
fn substitute(zero: &mut Vec<Row>, natural: &mut [Row], budget: &mut Budget) -> Option<bool> {
    while let Some(row) = zero.pop() {
        let mut row = match normal(row, true, budget)? {
            Normal::Holds => continue,
            Normal::Fails => return Some(false),
            Normal::Row(row) => row,
        };
        loop {
            // The first of the smallest coefficients.
            let least = (0..row.coefs.len())
                .filter(|&i| row.coefs[i] != 0)
                .min_by_key(|&i| (row.coefs[i].unsigned_abs(), i))?;
            let a = row.coefs[least];
            if a.unsigned_abs() == 1 {
                // a * x + rest = 0, so x = -a * rest.
                for other in zero.iter_mut().chain(natural.iter_mut()).filter(|r| r.coefs[least] != 0) {
                    let by = other.coefs[least].checked_mul(a)?.checked_neg()?;
                    *other = combine(other, 1, &row, by, budget)?;
                }
                break;
            }
            // x := t - sum of q * y with the nearest quotients: the coefficient of y becomes its remainder.
            let quotients: Vec<i128> = (0..row.coefs.len())
                .map(|i| if i == least { Some(0) } else { nearest(row.coefs[i], a) })
                .collect::<Option<_>>()?;
            for other in std::iter::once(&mut row).chain(zero.iter_mut()).chain(natural.iter_mut()) {
                budget.take(quotients.len())?;
                let c = other.coefs[least];
                if c == 0 {
                    continue;
                }
                for (have, q) in other.coefs.iter_mut().zip(&quotients) {
                    *have = have.checked_sub(c.checked_mul(*q)?)?;
                }
            }
        }
    }
    Some(true)
}

/// The quotient `a / b` rounded to the nearest.
fn nearest(a: i128, b: i128) -> Option<i128> {
    let q = a.checked_div_euclid(b)?;
    let r = a.checked_rem_euclid(b)?;
    if r > (b.checked_abs()? / 2) { q.checked_add(b.signum()) } else { Some(q) }
}

/// Normal rows, the tightest of each direction, sorted; two that meet become an equation in `zero`. `None` inside: no
/// solution.
fn tighten(rows: Vec<Row>, zero: &mut Vec<Row>, budget: &mut Budget) -> Option<Option<Vec<Row>>> {
    let mut sorted = vec![];
    for row in rows {
        match normal(row, false, budget)? {
            Normal::Holds => {}
            Normal::Fails => return Some(None),
            Normal::Row(row) => sorted.push(row),
        }
    }
    budget.take(sorted.len() * 4)?;
    sorted.sort();
    // Of equal coefficients the smallest constant comes first.
    sorted.dedup_by(|later, first| later.coefs == first.coefs);
    let mut keep = vec![true; sorted.len()];
    for i in 0..sorted.len() {
        budget.take(sorted[i].coefs.len())?;
        let minus: Vec<i128> = sorted[i].coefs.iter().map(|c| c.checked_neg()).collect::<Option<_>>()?;
        let Ok(j) = sorted.binary_search_by(|r| r.coefs.cmp(&minus)) else { continue };
        let width = sorted[i].constant.checked_add(sorted[j].constant)?;
        if width < 0 {
            return Some(None);
        }
        if width == 0 {
            if i < j {
                zero.push(sorted[i].clone());
            }
            keep[i] = false;
        }
    }
    let mut keep = keep.into_iter();
    sorted.retain(|_| keep.next().unwrap_or(true));
    Some(Some(sorted))
}

struct Choice {
    var: usize,
    exact: bool,
}

/// Drops what bounds a variable on one side only, and chooses the variable to eliminate: an exact one that makes the fewest
/// rows. `None` inside: no row is left.
fn choose(rows: &mut Vec<Row>, budget: &mut Budget) -> Option<Option<Choice>> {
    loop {
        let Some(width) = rows.first().map(|r| r.coefs.len()) else { return Some(None) };
        budget.take(rows.len() * width)?;
        let mut best: Option<((bool, u128, usize), Choice)> = None;
        let mut free = None;
        for var in 0..width {
            let (mut low, mut high, mut low_one, mut high_one) = (0u128, 0u128, true, true);
            let mut largest = 1;
            for c in rows.iter().map(|r| r.coefs[var]).filter(|c| *c != 0) {
                largest = largest.max(c.unsigned_abs());
                if c > 0 {
                    low += 1;
                    low_one &= c == 1;
                } else {
                    high += 1;
                    high_one &= c == -1;
                }
            }
            if low + high == 0 {
                continue;
            }
            if low == 0 || high == 0 {
                free = Some(var);
                break;
            }
            let exact = low_one || high_one;
            let made = low * high;
            let key = (!exact, if exact { made } else { largest.saturating_mul(made) }, var);
            if best.as_ref().is_none_or(|(k, _)| key < *k) {
                best = Some((key, Choice { var, exact }));
            }
        }
        match free {
            Some(var) => rows.retain(|r| r.coefs[var] == 0),
            None => return Some(best.map(|(_, c)| c)),
        }
    }
}

/// What remains without the variable: the real shadow, and the dark one (empty where the elimination is exact).
fn shadows(rows: &[Row], var: usize, exact: bool, budget: &mut Budget) -> Option<(Vec<Row>, Vec<Row>)> {
    let mut real: Vec<Row> = rows.iter().filter(|r| r.coefs[var] == 0).cloned().collect();
    budget.take(real.iter().map(|r| r.coefs.len()).sum())?;
    let mut dark = if exact { vec![] } else { real.clone() };
    for low in rows.iter().filter(|r| r.coefs[var] > 0) {
        for high in rows.iter().filter(|r| r.coefs[var] < 0) {
            // b*x >= -l and a*x <= h: a*(-l) <= b*h.
            let (b, a) = (low.coefs[var], high.coefs[var].checked_neg()?);
            let row = combine(low, a, high, b, budget)?;
            if !exact {
                let gap = (a - 1).checked_mul(b - 1)?;
                dark.push(Row { constant: row.constant.checked_sub(gap)?, ..row.clone() });
            }
            real.push(row);
        }
    }
    Some((real, dark))
}

/// Solutions outside of the dark shadow lie close to a lower bound.
fn splinters(rows: &[Row], var: usize, budget: &mut Budget, depth: u32) -> Option<Answer> {
    let most = rows.iter().map(|r| r.coefs[var].checked_neg()).collect::<Option<Vec<_>>>()?.into_iter().max()?;
    for low in rows.iter().filter(|r| r.coefs[var] > 0) {
        let b = low.coefs[var];
        let last = most.checked_mul(b)?.checked_sub(most)?.checked_sub(b)?.div_euclid(most);
        for i in 0..=last.max(-1) {
            budget.take(rows.len() * low.coefs.len() + 1)?;
            let plane = Row { constant: low.constant.checked_sub(i)?, ..low.clone() };
            match solve(vec![plane], rows.to_vec(), budget, depth + 1)? {
                Answer::Sat => return Some(Answer::Sat),
                Answer::Unknown => return None,
                Answer::Unsat => {}
            }
        }
    }
    Some(Answer::Unsat)
}
