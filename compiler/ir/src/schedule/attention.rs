//! What is what in a body of two products with reductions of rows between them.

use super::{Schedule, ValueId, ValueOp};
use crate::index::Var;

/// The parts of such a body: `second` contracts rows of what `first` gives, along the axis that
/// the reductions share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attention {
    pub first: ValueId,
    pub second: ValueId,
    /// Positions of a row: columns of the first product, steps of the second.
    pub keys: Var,
    pub rows: Var,
    /// Columns of the second product; `None` for one.
    pub columns: Option<Var>,
    /// The other parallel axes.
    pub batch: Vec<Var>,
}

impl Attention {
    /// Whether a body has two products.
    pub fn is(s: &Schedule) -> bool {
        s.values.iter().filter(|v| matches!(v.op, ValueOp::Dot { .. })).count() == 2
    }

    /// Errors: why two products form no strip.
    pub fn find(s: &Schedule) -> Result<Attention, &'static str> {
        let dot = |v: &ValueId| matches!(s.value(*v).op, ValueOp::Dot { .. });
        let dots: Vec<ValueId> = (0..s.values.len() as u32).map(ValueId).filter(dot).collect();
        let [first, second] = dots[..] else { return Err("two products are needed") };
        let ValueOp::Dot { a: q, b: k, within: None, beyond: None, .. } = s.value(first).op else {
            return Err("the first product takes other steps for other rows");
        };
        let ValueOp::Dot { a: p, b: v, axis: keys, ref within, beyond: None, .. } = s.value(second).op else {
            return Err("no second product");
        };
        if s.value(first).dtype != s.value(second).dtype {
            return Err("the products accumulate in different types");
        }
        let domains = s.domains();
        let has = |v: ValueId, a: &Var| domains[v.0 as usize].contains(a);
        let parallel: Vec<Var> =
            (0..s.axes.len() as u32).map(Var).filter(|v| !s.axes[v.0 as usize].reduced && s.extent(*v) != 1).collect();
        let only = |f: &dyn Fn(&Var) -> bool| parallel.iter().copied().filter(f).max_by_key(|a| s.extent(*a));
        let bounded = |a: &Var| within.as_ref().is_none_or(|w| w.stride(*a) == Some(1));
        let rows = only(&|a| has(q, a) && has(p, a) && !has(k, a) && !has(v, a) && bounded(a));
        let rows = rows.ok_or("there is one row")?;
        let columns = only(&|a| has(v, a) && !has(p, a));
        if within.as_ref().is_some_and(|w| w.uses(keys)) {
            return Err("rows take uneven numbers of steps");
        }
        let batch: Vec<Var> = parallel.iter().copied().filter(|a| *a != rows && Some(*a) != columns).collect();
        if s.axes.get(keys.0 as usize).is_none_or(|a| !a.reduced) || has(first, &rows) != has(second, &rows) {
            return Err("the products do not share rows");
        }
        // Every position along the other axes computes the rows again, and what leaves of a row is written by one of them.
        let again = |a: &Var| s.stores.iter().skip(1).any(|st| !st.at.uses(*a));
        if batch.iter().any(again) {
            return Err("what leaves of a row would be written many times");
        }
        Ok(Attention { first, second, keys, rows, columns, batch })
    }
}
