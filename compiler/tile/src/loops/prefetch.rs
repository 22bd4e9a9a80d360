//! What is read next is asked for while this is worked on. Not every machine fetches ahead by
//! itself, and none across pages.

use super::{Plan, Red};
use crate::nest::Nest;
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::ValueOp;
use tessera_ir::tile::{LANE, Op};
use tessera_ops::prim::LANES;

/// Bytes that memory hands over together.
const LINE: i64 = 64;
/// Lines between what is read and what is asked for: what memory takes, over what computing takes.
const AHEAD_LINES: i64 = 32;

/// Asks for an element of an operand that the kernel reads, once.
fn ask(n: &mut Nest, operand: u32, at: Index, asked: &mut Vec<(u32, Index)>) {
    let Some(buf) = n.declared(operand) else { return };
    if !asked.contains(&(buf, at.clone())) {
        n.push(Op::Prefetch { buf, at: at.clone() });
        asked.push((buf, at));
    }
}

impl<'s> Plan<'s> {
    /// Asks for the next row where a row is read more than once, for what stands further on where
    /// memory is read from one end to the other.
    pub(super) fn prefetch_for(&self, n: &mut Nest<'s>, r: &Red, stage: usize) {
        match self.outer.last() {
            Some(&outer) if self.reductions.len() > 1 || !self.inner.is_empty() => {
                self.prefetch_row(n, r, outer, stage, self.reductions.len());
            }
            _ => self.prefetch_ahead(n, r.axis),
        }
    }

    /// Asks for a part of the next row: memory works while this row is reduced from the cache.
    /// Each of `count` stages asks for its share, so that all of them have something to wait for.
    pub(super) fn prefetch_row(&self, n: &mut Nest<'s>, r: &Red, outer: Var, stage: usize, count: usize) {
        let (count, lanes) = (count as i64, LANES as i64);
        let start = (self.s.extent(r.axis) as i64 / lanes) * stage as i64 / count * lanes;
        let here = n.axis_index(r.axis).without(LANE);
        let share = here.div(count * lanes, &|v| n.range(v)).times(lanes).offset(start);
        let old = n.bind_axis(r.axis, share);
        let mut asked = vec![];
        for v in &self.s.values {
            let ValueOp::Load { operand, at, .. } = &v.op else { continue };
            let Some(next) = at.stride(outer).filter(|s| *s != 0 && at.stride(r.axis) == Some(1)) else { continue };
            let at = n.resolve(&at.offset(next));
            ask(n, *operand, at, &mut asked);
        }
        n.bind_axis(r.axis, old);
    }

    /// Asks for what the lanes along `axis` read some vectors later.
    pub(super) fn prefetch_ahead(&self, n: &mut Nest<'s>, axis: Var) {
        let mut asked = vec![];
        for v in &self.s.values {
            let ValueOp::Load { operand, at, .. } = &v.op else { continue };
            // What is read again and again is in the cache.
            let again = self.outer.iter().any(|a| at.stride(*a) == Some(0));
            if again || at.stride(axis) != Some(1) {
                continue;
            }
            let line = LINE / self.s.operands[*operand as usize].dtype.bytes() as i64;
            let first = n.resolve(at).without(LANE).offset(AHEAD_LINES * line);
            for elements in (0..i64::from(n.lanes)).step_by(line as usize) {
                ask(n, *operand, first.offset(elements), &mut asked);
            }
        }
    }
}
