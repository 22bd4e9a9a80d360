//! Values that show why a question is not answered with yes.
//!
//! First small values, as people read them: from 1 on, then with zeros, then with negative ints. Where there are none
//! (`assert N >= 1000`) the decision procedure is asked for the least value of each variable in turn. Nothing is given that
//! has not been computed: all facts hold at the values, and the two sizes are what the witness says.

use super::omega_test::{Answer, Budget};
use super::purify::{COLUMNS_MAX, Conjunction};
use super::{Facts, Size, SizeVar, Witness};
use std::collections::{BTreeMap, BTreeSet};

/// What the values have to show of `left` and `right`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    Differ,
    /// `left < right`.
    Less,
}

/// Assignments that are tried, times what the sizes weigh.
const TRIES: usize = 100_000;
const TRIES_MAX: usize = 2000;
/// Steps of the search with the decision procedure.
const STEPS: u64 = 100_000;
/// Values are looked for up to this.
const LARGE: i64 = 1 << 40;

struct Search<'a> {
    left: &'a Size,
    right: &'a Size,
    relation: Relation,
    facts: &'a Facts,
    known: Conjunction,
    /// The variables that get values; the others follow from equations.
    free: Vec<SizeVar>,
    /// Where they are among them.
    places: BTreeMap<SizeVar, usize>,
    shown: Vec<SizeVar>,
    most: usize,
    tries: usize,
}

/// Values at which the facts hold and the relation does; [`Witness::NONE`] where none are found.
pub(super) fn find(left: &Size, right: &Size, relation: Relation, facts: &Facts) -> Witness {
    if left.overflowed() || right.overflowed() {
        return Witness::NONE;
    }
    let shown: BTreeSet<SizeVar> = left.vars().union(&right.vars()).cloned().collect();
    let mut free: BTreeSet<SizeVar> = BTreeSet::new();
    for var in &shown {
        match facts.value(var) {
            Some(value) => free.extend(value.vars()),
            None => {
                free.insert(var.clone());
            }
        }
    }
    let known = facts.about(&free);
    let more: Vec<SizeVar> = known.vars().difference(&free).cloned().collect();
    let free: Vec<SizeVar> = free.into_iter().chain(more).collect();
    let shown = shown.into_iter().collect();
    let weight = known.weight() + left.weight(1000) + right.weight(1000) + free.len();
    let most = (TRIES / weight.max(1)).min(TRIES_MAX);
    let places = free.iter().cloned().zip(0..).collect();
    let mut search = Search { left, right, relation, facts, known, free, places, shown, most, tries: most };
    search.small().or_else(|| search.large()).unwrap_or(Witness::NONE)
}

impl Search<'_> {
    /// The witness at these values of the free variables, if they are one.
    fn at(&self, values: &[i64]) -> Option<Witness> {
        let free = |v: &SizeVar| self.places.get(v).map(|i| values[*i]);
        let at = |v: &SizeVar| match self.facts.value(v) {
            Some(value) => value.eval(&free),
            None => free(v),
        };
        let holds = |sizes: &[Size], test: fn(i64) -> bool| sizes.iter().all(|s| s.eval(&free).is_some_and(test));
        let (left, right) = (self.left.eval(&at)?, self.right.eval(&at)?);
        let shows = match self.relation {
            Relation::Differ => left != right,
            Relation::Less => left < right,
        };
        if !shows
            || !holds(&self.known.zero, |n| n == 0)
            || !holds(&self.known.natural, |n| n >= 0)
            || !holds(&self.known.nonzero, |n| n != 0)
        {
            return None;
        }
        let values = self.shown.iter().map(|v| Some((v.name.clone(), at(v).filter(|n| !v.natural || *n >= 0)?)));
        Some(Witness { values: values.collect::<Option<_>>()?, left, right })
    }

    /// Small values: up to 4, the first variable fastest.
    fn small(&mut self) -> Option<Witness> {
        let ints = self.free.iter().any(|v| !v.natural);
        for low in [1, 0, -2].into_iter().filter(|low| *low >= 0 || ints) {
            let lows: Vec<i64> = self.free.iter().map(|v| if v.natural { low.max(0) } else { low }).collect();
            self.tries = self.most;
            for above in 0..4 {
                if let Some(w) = self.count(&lows, above) {
                    return Some(w);
                }
            }
        }
        None
    }

    fn count(&mut self, lows: &[i64], above: i64) -> Option<Witness> {
        let mut values = lows.to_vec();
        loop {
            if let Some(w) = self.at(&values) {
                return Some(w);
            }
            self.tries = self.tries.checked_sub(1)?;
            let i = (0..values.len()).find(|&i| values[i] < lows[i] + above)?;
            values[i] += 1;
            values[..i].copy_from_slice(&lows[..i]);
        }
    }

    /// The least value of each variable in turn, by asking.
    fn large(&self) -> Option<Witness> {
        if self.free.len() > COLUMNS_MAX {
            // No system holds them.
            return None;
        }
        let rest = self.facts.rewritten(&self.left.sub(self.right));
        let one = Size::constant(1);
        let less = rest.neg().sub(&one);
        let sides = match self.relation {
            Relation::Less => vec![less],
            Relation::Differ => vec![less, rest.sub(&one)],
        };
        let mut budget = Budget(STEPS);
        let all = sides.into_iter().filter_map(|side| self.assign(&self.known.and_natural(side), &mut budget));
        // The first of the smaller ones.
        all.min_by_key(|w| w.values.iter().fold(0u64, |sum, (_, v)| sum.saturating_add(v.unsigned_abs())))
    }

    fn assign(&self, open: &Conjunction, budget: &mut Budget) -> Option<Witness> {
        let from_one =
            self.free.iter().fold(open.clone(), |c, v| c.and_natural(Size::var(v.clone()).sub(&Size::constant(1))));
        let mut open = if solvable(&from_one, budget) { from_one } else { open.clone() };
        let mut values = vec![];
        for var in &self.free {
            let value = least_value(&open, var, budget)?;
            open = open.map(|s| s.substitute(&mut |v| (v == var).then(|| Size::constant(value))));
            values.push(value);
        }
        self.at(&values)
    }
}

fn solvable(c: &Conjunction, budget: &mut Budget) -> bool {
    c.answer(budget) == Answer::Sat
}

/// The least value from 0 on (or the greatest below) that the variable can have.
fn least_value(c: &Conjunction, var: &SizeVar, budget: &mut Budget) -> Option<i64> {
    let own = Size::var(var.clone());
    let up_to = |most: i64, budget: &mut Budget| {
        solvable(&c.and_natural(own.clone()).and_natural(Size::constant(most).sub(&own)), budget)
    };
    let from = |least: i64, budget: &mut Budget| {
        solvable(&c.and_natural(own.sub(&Size::constant(least))).and_natural(own.neg()), budget)
    };
    if let Some(value) = bisect(|n| up_to(n, budget)) {
        return Some(value);
    }
    if var.natural { None } else { bisect(|n| from(-n, budget)).map(|n| -n) }
}

/// The least `n` from 0 on at which `test` holds, which it does from there on.
fn bisect(mut test: impl FnMut(i64) -> bool) -> Option<i64> {
    let mut high = 0;
    while !test(high) {
        if high > LARGE {
            return None;
        }
        high = high * 2 + 1;
    }
    // It failed at half of it.
    let mut low = if high == 0 { 0 } else { high / 2 + 1 };
    while low < high {
        let middle = low + (high - low) / 2;
        if test(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}
