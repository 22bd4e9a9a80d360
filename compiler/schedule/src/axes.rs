//! Axes split where an index divides them, merged where nothing tells them apart, and dropped
//! where they have one value.

use tessera_ir::index::{Index, Term, Var};
use tessera_ir::schedule::{Axis, Schedule, ValueOp};

pub fn simplify(s: &mut Schedule) {
    drop_single(s);
    while let Some((axis, n)) = find_split(s) {
        split(s, axis, n);
    }
    drop_single(s);
    while let Some((outer, inner)) = find_merge(s) {
        merge(s, outer, inner);
    }
}

/// Calls `f` on every index of the schedule.
fn each_index(s: &Schedule, f: &mut dyn FnMut(&Index)) {
    for v in &s.values {
        match &v.op {
            ValueOp::Load { at, guards, .. } | ValueOp::Gather { at, guards, .. } => {
                f(at);
                guards.iter().for_each(|g| f(&g.index));
            }
            ValueOp::Index(e) | ValueOp::Random { at: e, .. } => f(e),
            ValueOp::Within(guards) => guards.iter().for_each(|g| f(&g.index)),
            ValueOp::Dot { within, beyond, .. } => within.iter().chain(beyond).for_each(&mut *f),
            _ => {}
        }
    }
    s.stores.iter().for_each(|st| f(&st.at));
}

fn rewrite(s: &mut Schedule, with: &dyn Fn(Var) -> Option<Index>) {
    let extents: Vec<u64> = s.axes.iter().map(|a| a.extent).collect();
    let range = |v: Var| (0, extents.get(v.0 as usize).map_or(0, |e| e.saturating_sub(1) as i64));
    let go = |e: &mut Index| *e = e.substitute(with, &range);
    for v in &mut s.values {
        match &mut v.op {
            ValueOp::Load { at, guards, .. } | ValueOp::Gather { at, guards, .. } => {
                go(at);
                guards.iter_mut().for_each(|g| go(&mut g.index));
            }
            ValueOp::Index(e) | ValueOp::Random { at: e, .. } => go(e),
            ValueOp::Within(guards) => guards.iter_mut().for_each(|g| go(&mut g.index)),
            ValueOp::Dot { within, beyond, .. } => within.iter_mut().chain(beyond).for_each(go),
            _ => {}
        }
    }
    s.stores.iter_mut().for_each(|st| go(&mut st.at));
}

fn drop_single(s: &mut Schedule) {
    let single: Vec<Var> = (0..s.axes.len() as u32).map(Var).filter(|v| s.extent(*v) == 1).collect();
    rewrite(s, &|v| single.contains(&v).then(Index::default));
}

/// Whether a running sum or a transform goes along the axis, or stores come back to an element along it: it then stays as it is.
fn is_ordered(s: &Schedule, v: Var) -> bool {
    let along = |op: &ValueOp| match op {
        ValueOp::Cumulate { axis, .. } => *axis == v,
        ValueOp::Transform { axis, to, .. } => [*axis, *to].contains(&v),
        _ => false,
    };
    s.ordered().contains(&v) || s.values.iter().any(|x| along(&x.op))
}

/// A parallel axis that stands alone under a division by a factor of its extent.
fn find_split(s: &Schedule) -> Option<(Var, i64)> {
    fn search(s: &Schedule, e: &Index, found: &mut Option<(Var, i64)>) {
        for (t, _) in &e.terms {
            let (Term::Div(inner, n) | Term::Mod(inner, n)) = t else { continue };
            if let [(Term::Var(v), 1)] = inner.terms[..]
                && inner.constant == 0
                && !s.axes.get(v.0 as usize).is_none_or(|a| a.reduced)
                && s.extent(v).is_multiple_of(*n as u64)
                && s.extent(v) > *n as u64
                && !is_ordered(s, v)
            {
                // The smallest factor first: others divide what is left.
                if found.is_none_or(|(w, m)| w == v && *n < m) {
                    *found = Some((v, *n));
                }
            }
            search(s, inner, found);
        }
    }
    let mut found = None;
    each_index(s, &mut |e| search(s, e, &mut found));
    found
}

/// `axis` becomes `axis·n + low`.
fn split(s: &mut Schedule, axis: Var, n: i64) {
    let at = axis.0 as usize;
    let low = Var(s.axes.len() as u32);
    let name = format!("{}_{}", s.axes[at].name, s.axes.len());
    s.axes.push(Axis { name, extent: n as u64, reduced: false });
    s.axes[at].extent /= n as u64;
    rewrite(s, &|v| (v == axis).then(|| Index::var(axis).times(n).plus(&Index::var(low))));
}

/// Two parallel axes that every index sees as one.
fn find_merge(s: &Schedule) -> Option<(Var, Var)> {
    let parallel: Vec<Var> = (0..s.axes.len() as u32)
        .map(Var)
        .filter(|v| !s.axes[v.0 as usize].reduced && s.extent(*v) != 1 && !is_ordered(s, *v))
        .collect();
    let domains = s.domains();
    // Rows and columns of a product whose factors depend on neither: a register tile has both.
    let tile = |outer: Var, inner: Var| {
        s.values.iter().any(|v| match v.op {
            ValueOp::Dot { a, b, .. } => {
                [a, b].iter().all(|f| [outer, inner].iter().all(|axis| !domains[f.0 as usize].contains(axis)))
            }
            _ => false,
        })
    };
    for &outer in &parallel {
        for &inner in &parallel {
            if outer == inner || tile(outer, inner) {
                continue;
            }
            let extent = s.extent(inner).min(i64::MAX as u64) as i64;
            let (mut all, mut any) = (true, false);
            each_index(s, &mut |e| match (e.stride(outer), e.stride(inner)) {
                (Some(a), Some(b)) => {
                    all &= a == b.saturating_mul(extent);
                    any |= b != 0;
                }
                _ => all = false,
            });
            if all && any {
                return Some((outer, inner));
            }
        }
    }
    None
}

fn merge(s: &mut Schedule, outer: Var, inner: Var) {
    let (a, b) = (outer.0 as usize, inner.0 as usize);
    s.axes[b].extent *= s.axes[a].extent;
    s.axes[a].extent = 1;
    rewrite(s, &|v| (v == outer).then(Index::default));
}

/// Makes one axis of two: `inner` becomes the row-major position in both.
pub fn join(s: &mut Schedule, outer: Var, inner: Var) {
    let (a, b) = (outer.0 as usize, inner.0 as usize);
    let length = s.axes[b].extent as i64;
    s.axes[b].extent *= s.axes[a].extent;
    s.axes[a].extent = 1;
    let whole = s.range(inner);
    let (row, place) = Index::var(inner).div_mod(length, &|_| whole);
    rewrite(s, &|v| match v {
        v if v == outer => Some(row.clone()),
        v if v == inner => Some(place.clone()),
        _ => None,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_base::DType;
    use tessera_ir::schedule::{Operand, Store};

    /// Copies `elems` elements from `from` to `to`.
    fn copy(extents: &[u64], from: Index, to: Index) -> Schedule {
        let elems = extents.iter().product();
        let axes = extents
            .iter()
            .enumerate()
            .map(|(i, e)| Axis { name: format!("i{i}"), extent: *e, reduced: false })
            .collect();
        let operand = |name: &str, output| Operand { name: name.into(), dtype: DType::F32, elems, output };
        let mut s = Schedule { axes, operands: vec![operand("a", false), operand("b", true)], ..Schedule::default() };
        let value = s.push(ValueOp::Load { operand: 0, at: from, guards: vec![] }, DType::F32);
        s.stores.push(Store { operand: 1, at: to, by: vec![], value });
        s
    }

    fn v(n: u32) -> Index {
        Index::var(Var(n))
    }

    #[test]
    fn axes_that_nothing_tells_apart_become_one() {
        let at = v(0).times(20).plus(&v(1).times(5)).plus(&v(2));
        let mut s = copy(&[3, 4, 5], at.clone(), at);
        simplify(&mut s);
        let long: Vec<u64> = s.axes.iter().map(|a| a.extent).filter(|e| *e > 1).collect();
        assert_eq!(long, [60]);
        assert_eq!(s.stores[0].at.stride(Var(2)), Some(1));
    }

    #[test]
    fn a_divided_axis_is_split() {
        // [12] read as the transposition of [3, 4].
        let range = |_: Var| (0, 11);
        let (q, r) = v(0).div_mod(4, &range);
        let mut s = copy(&[12], r.times(3).plus(&q), v(0));
        simplify(&mut s);
        let ValueOp::Load { at, .. } = &s.values[0].op else { panic!("a load") };
        let mut sizes: Vec<(u64, Option<i64>)> =
            (0..s.axes.len() as u32).map(|i| (s.extent(Var(i)), at.stride(Var(i)))).collect();
        sizes.sort();
        assert_eq!(sizes, [(3, Some(1)), (4, Some(3))]);
        assert_eq!(tessera_ir::schedule::verify::verify(&s), Ok(()));
    }
}
