//! The leaves of a product ([`tessera_ops::prim::fold`]): a chain for each in registers, and a binary counter over them.
//!
//! What a leaf gave meets the sums of the levels that its number has ones for, in registers, and is stored at the next
//! level. Levels within a block of steps lie beside each other for one tile, in the nearest cache.

use crate::LlvmError;
use crate::emit::Emitter;
use crate::instr::{IntPred, V};
use crate::mma::{Steps, run_length, run_stride};
use tessera_ir::tile::{Fold, Mma, Panel};

/// What is known of the leaves of one tile.
#[derive(Clone, Copy)]
struct Counter {
    first: V,
    begin: V,
    leaves: V,
    /// Where the result, the inner levels and the lasting ones lie.
    c: V,
    slots: V,
    lasting: V,
}

impl Counter {
    /// The same from another row on.
    fn of_row(self, e: &Emitter, m: &Mma, f: &Fold, row: V) -> Counter {
        let by = |at: V, p: &Panel| e.b.offset(at, e.bytes(p, e.b.mul(row, e.b.i64(p.row))));
        Counter { c: by(self.c, &m.c), slots: by(self.slots, &f.slots), lasting: by(self.lasting, &f.slots), ..self }
    }
}

impl Emitter<'_> {
    /// All leaves of a block of steps.
    pub(super) fn leaves(&mut self, m: &Mma, f: &Fold, (a, b, c): (V, V, V), steps: Steps) -> Result<(), LlvmError> {
        let lasting = Panel { at: f.lasting.clone(), ..f.slots.clone() };
        let counter = Counter {
            first: self.index(&f.first, 1)?,
            begin: self.index(&f.begin, 1)?,
            leaves: self.bound(&f.leaves, true)?,
            c,
            slots: self.start(&f.slots)?,
            lasting: self.start(&lasting)?,
        };
        let leaf = self.b.i64(f.leaf);
        let whole = self.b.sdiv(steps.limit, leaf);
        // What is asked for ahead is asked for once, in the last whole leaf.
        let quiet = Mma { ahead: vec![], ..m.clone() };
        let asks = !m.ahead.is_empty() && steps.known.is_some_and(|d| d >= f.leaf);
        let zero = self.b.i64(0);
        let most = self.b.sub(counter.leaves, counter.first);
        let count = self.b.select(self.b.icmp(IntPred::LLVMIntSLT, whole, most), whole, most);
        let before = if asks { self.b.sub(count, self.b.i64(1)) } else { count };
        self.raw_loop(zero, before, 1, &[], |e, n, _| {
            e.leaf(&quiet, f, counter, (a, b), n, Steps { limit: leaf, known: Some(f.leaf), ..steps })?;
            Ok(vec![])
        })?;
        if asks {
            self.leaf(m, f, counter, (a, b), before, Steps { limit: leaf, known: Some(f.leaf), ..steps })?;
        }
        let divides =
            |e: &tessera_ir::index::Index| e.constant % f.leaf == 0 && e.terms.iter().all(|(_, c)| c % f.leaf == 0);
        if m.depth.iter().all(divides) {
            return Ok(());
        }
        let rest = self.b.sub(steps.limit, self.b.mul(whole, leaf));
        let some =
            self.b.and(self.b.icmp(IntPred::LLVMIntSGT, rest, zero), self.b.icmp(IntPred::LLVMIntSLT, whole, most));
        let (last, join) = (self.b.block(), self.b.block());
        self.b.branch(some, last, join);
        self.b.position(last);
        let known = steps.known.map(|d| d % f.leaf);
        self.leaf(&quiet, f, counter, (a, b), whole, Steps { limit: rest, known, ..steps })?;
        self.b.jump(join);
        self.b.position(join);
        Ok(())
    }

    /// Leaf `n` of the block.
    fn leaf(
        &mut self,
        m: &Mma,
        f: &Fold,
        counter: Counter,
        (a, b): (V, V),
        n: V,
        steps: Steps,
    ) -> Result<(), LlvmError> {
        let from = self.b.mul(n, self.b.i64(f.leaf));
        let b = self.step(m, b, &m.b, from);
        let a = match m.hops.len() {
            0 => self.step(m, a, &m.a, from),
            level => {
                let run = f.leaf / run_length(m, level) * run_stride(m, level);
                self.b.offset(a, self.bytes(&m.a, self.b.mul(n, self.b.i64(run))))
            }
        };
        let inside = |at: Option<V>| at.map(|at| self.b.sub(at, from));
        let (ramp, lead) = (inside(steps.ramp), inside(steps.lead));
        // A leaf of which rows take some steps has no depth that all of them have.
        let known = steps.known.filter(|_| ramp.is_none() && lead.is_none());
        let steps = Steps { limit: steps.limit, known, ramp, lead };
        let number = self.b.add(counter.first, n);
        if !self.by_matrix_unit(m) {
            let acc = self.chain_of(m, (a, b), steps)?;
            return self.settle(m, f, counter, number, m.rows, acc);
        }
        // Its registers reach others through memory alone.
        self.chain_by_matrix_unit(m, (a, b, counter.c), steps)?;
        let (zero, rows) = (self.b.i64(0), self.b.i64(i64::from(m.rows)));
        self.raw_loop(zero, rows, 1, &[], |e, row, _| {
            let counter = counter.of_row(e, m, f, row);
            let acc = e.row_at(m, counter.c, &m.c);
            e.settle(m, f, counter, number, 1, acc)?;
            Ok(vec![])
        })?;
        Ok(())
    }

    /// The accumulators of a row that lies here.
    fn row_at(&self, m: &Mma, at: V, p: &Panel) -> Vec<V> {
        let each = 0..self.vectors(m);
        each.map(|j| self.load_vector(m, self.at(at, i64::from(j * m.lanes), p), self.valid(m, j))).collect()
    }

    /// What the sums of a leaf become: the result with the last one, else what waits at a level.
    fn settle(
        &mut self,
        m: &Mma,
        f: &Fold,
        counter: Counter,
        number: V,
        rows: u32,
        acc: Vec<V>,
    ) -> Result<(), LlvmError> {
        let (zero, one) = (self.b.i64(0), self.b.i64(1));
        let last = self.b.icmp(IntPred::LLVMIntEQ, self.b.add(number, one), counter.leaves);
        let never = self.b.const_int(self.b.int(1), 0, 1);
        let ones = self.b.intrinsic("llvm.cttz", &[self.b.int(64)], &[self.b.not(number), never]);
        let up = self.b.select(last, self.b.i64(f.levels), ones);
        let met =
            self.raw_loop(zero, up, 1, &acc, |e, level, acc| e.meet(m, f, counter, (number, level), rows, acc))?;
        let (end, wait, join) = (self.b.block(), self.b.block(), self.b.block());
        self.b.branch(last, end, wait);
        self.b.position(end);
        for i in 0..rows {
            let none = self.b.zero(self.b.kind(m.kind, m.lanes));
            let sums: Vec<V> = self.row_of(m, &met, i).iter().map(|v| self.sum(m, none, *v)).collect();
            self.write_row(m, self.at(counter.c, i64::from(i) * m.c.row, &m.c), &sums);
        }
        self.b.jump(join);
        self.b.position(wait);
        let to = self.slot(f, counter, up);
        for i in 0..rows {
            self.write_row(m, self.at(to, i64::from(i) * f.slots.row, &f.slots), self.row_of(m, &met, i));
        }
        self.b.jump(join);
        self.b.position(join);
        Ok(())
    }

    /// The sums with those that wait at a level, if there are some.
    fn meet(
        &mut self,
        m: &Mma,
        f: &Fold,
        counter: Counter,
        (number, level): (V, V),
        rows: u32,
        acc: &[V],
    ) -> Result<Vec<V>, LlvmError> {
        let nodes = self.b.lshr(number, level);
        let odd = self.b.icmp(IntPred::LLVMIntNE, self.b.and(nodes, self.b.i64(1)), self.b.i64(0));
        let later = self.b.icmp(IntPred::LLVMIntSGT, self.b.shl(nodes, level), counter.begin);
        let (before, load, join) = (self.b.current(), self.b.block(), self.b.block());
        self.b.branch(self.b.and(odd, later), load, join);
        self.b.position(load);
        let from = self.slot(f, counter, level);
        let mut sums = vec![];
        for i in 0..rows {
            let row = self.row_at(m, self.at(from, i64::from(i) * f.slots.row, &f.slots), &f.slots);
            sums.extend(row.iter().zip(self.row_of(m, acc, i)).map(|(earlier, now)| self.sum(m, *earlier, *now)));
        }
        let load = self.b.current();
        self.b.jump(join);
        self.b.position(join);
        let ty = self.b.kind(m.kind, m.lanes);
        let joined = acc.iter().zip(sums).map(|(old, new)| {
            let phi = self.b.phi(ty);
            self.b.incoming(phi, *old, before);
            self.b.incoming(phi, new, load);
            phi
        });
        Ok(joined.collect())
    }

    fn slot(&self, f: &Fold, counter: Counter, level: V) -> V {
        let inner = self.b.i64(f.inner);
        let place = |base: V, n: V| self.b.offset(base, self.bytes(&f.slots, self.b.mul(n, self.b.i64(f.apart))));
        let near = place(counter.slots, level);
        let far = place(counter.lasting, self.b.sub(level, inner));
        self.b.select(self.b.icmp(IntPred::LLVMIntSLT, level, inner), near, far)
    }

    /// An earlier sum and a later one, in the type of the accumulators.
    fn sum(&self, m: &Mma, earlier: V, later: V) -> V {
        let sum = if m.kind.is_float() { self.b.fadd(earlier, later) } else { self.b.add(earlier, later) };
        if !m.half {
            return sum;
        }
        let narrow = self.b.vec(self.b.half(), m.lanes);
        self.b.fpext(self.b.fptrunc(sum, narrow), self.b.kind(m.kind, m.lanes))
    }
}
