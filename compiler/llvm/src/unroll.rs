//! Loops whose body is written several times, as `schedule.unroll` asks.

use crate::LlvmError;
use crate::emit::Emitter;
use crate::instr::{IntPred, V};
use tessera_ir::tile::{For, Op};

impl Emitter<'_> {
    /// Copies of the loop's body: those that the kernel asks for where the loop is innermost
    /// and holds no register tile (which is unrolled in itself).
    pub fn copies(&self, f: &For) -> i64 {
        let leaf = f.body.iter().all(|op| !matches!(op, Op::For(_) | Op::Mma(_) | Op::Block(_)));
        if leaf { i64::from(self.kernel.unroll.max(1)) } else { 1 }
    }

    /// `for` in steps of several copies, then one by one. Every copy does what one turn does,
    /// in the same order.
    pub fn unrolled(&mut self, f: &For, lo: V, hi: V, copies: i64) -> Result<(), LlvmError> {
        let step = i64::from(f.step);
        let lanes = |e: &Self, i: usize| e.kernel.ty(f.carried[i].inner).lanes;
        let init = self.carried_in(&f.carried, &f.body)?;
        // The start of the rest: after all whole groups of turns.
        let group = self.b.i64(step * copies);
        let zero = self.b.i64(0);
        let distance = self.b.sub(hi, lo);
        let distance = self.b.select(self.b.icmp(IntPred::LLVMIntSGT, distance, zero), distance, zero);
        let whole = self.b.sub(distance, self.b.urem(distance, group));
        let middle = self.b.add(lo, whole);
        let turn = |e: &mut Self, i: V, inner: &[V]| -> Result<Vec<V>, LlvmError> {
            e.vars[f.var.0 as usize] = Some(i);
            for (c, v) in f.carried.iter().zip(inner) {
                e.values[c.inner.0 as usize] = Some(*v);
            }
            e.ops(&f.body)?;
            f.carried.iter().enumerate().map(|(n, c)| e.wide(c.next, lanes(e, n))).collect()
        };
        let carried = self.raw_loop(lo, middle, step * copies, &init, |e, i, inner| {
            let mut carried = inner.to_vec();
            for copy in 0..copies {
                let at = e.b.add(i, e.b.i64(copy * step));
                carried = turn(e, at, &carried)?;
            }
            Ok(carried)
        })?;
        let out = self.raw_loop(middle, hi, step, &carried, turn)?;
        self.vars[f.var.0 as usize] = None;
        self.carried_out(&f.carried, out);
        Ok(())
    }
}
