//! A block of a product by the warps of a point, on units for matrices (`mma.sync`, sm_80 and newer).
//!
//! Steps are staged in shared memory by asynchronous copies of 16 bytes, several chunks ahead; `ldmatrix` takes fragments from
//! there, whose pieces of 16 bytes lie so that eight of them are in eight different groups of banks. Sums stay in registers; what
//! a leaf gave waits in global memory, each thread's own numbers beside those of its neighbours. (PTX ISA 8.0, 9.7.14.5 for the
//! fragments of m16n8k16.)
//!
//! Where a factor does not lie at multiples of 16 bytes, its numbers are copied one by one, to the same places.

use crate::LlvmError;
use crate::dialect::Dialect;
use crate::emit::Emitter;
use crate::instr::{AddressSpace, IntPred, V};
use crate::masked::Elements;
use tessera_base::DType;
use tessera_ir::tile::{Block, Factor};
use tessera_ops::scalar::Kind;

/// Numbers of a piece: 16 bytes.
const PIECE: i64 = 8;
/// Bytes of a number.
const BYTES: i64 = 2;
/// Rows and columns of a fragment that one instruction loads, and steps of an atom.
const SIDE: u32 = 16;

/// A factor where it is staged from.
struct Staged<'b> {
    f: &'b Factor,
    /// Rows or columns of the block.
    lines: u32,
    /// Where its first number lies, and how many of its lines exist.
    from: V,
    count: V,
    /// Bytes from the start of a stage.
    at: i64,
}

impl Staged<'_> {
    /// Whether neighbours are neighbours in steps.
    fn deep(&self) -> bool {
        self.f.step == 1
    }

    /// Whether pieces lie at multiples of their size, if the first number does.
    fn even(&self) -> bool {
        let far = if self.deep() { self.f.line } else { self.f.step };
        far % PIECE == 0
    }
}

/// What all parts of a block's code know.
struct Plan<'b> {
    b: &'b Block,
    factors: [Staged<'b>; 2],
    /// Shared memory.
    base: V,
    /// First row and column of the warp, i64.
    first: [V; 2],
    /// Bytes of a stage.
    stage: i64,
    /// Whether pieces are copied as such.
    fast: bool,
}

impl Plan<'_> {
    fn chunk(&self) -> i64 {
        i64::from(self.b.chunk)
    }

    fn chunks(&self) -> i64 {
        self.b.depth.div_ceil(u64::from(self.b.chunk)) as i64
    }

    fn threads(&self) -> i64 {
        32 * i64::from(self.b.warps[0] * self.b.warps[1])
    }

    fn leaves(&self) -> i64 {
        self.b.depth.div_ceil(self.b.leaf) as i64
    }

    /// Fragments of a warp: of 16 rows, and of 16 columns.
    fn fragments(&self) -> [u32; 2] {
        [self.b.rows / self.b.warps[0] / SIDE, self.b.cols / self.b.warps[1] / SIDE]
    }

    /// Sums of a thread.
    fn sums(&self) -> usize {
        let [rows, cols] = self.fragments();
        (rows * cols * 8) as usize
    }
}

impl Emitter<'_> {
    pub fn block(&mut self, b: &Block) -> Result<(), LlvmError> {
        if self.b.group.is_none_or(|g| g.dialect != Dialect::Nvptx) || self.kernel.warps == 0 {
            return Err(LlvmError::internal("blocks of products are for warps"));
        }
        let stage = i64::from(b.rows + b.cols) * i64::from(b.chunk) * BYTES;
        let factor = |e: &Self, f: &'_ Factor, lines: u32, at: i64| -> Result<(V, V, u32, i64), LlvmError> {
            let first = e.b.mul(e.index(&f.at, 1)?, e.b.i64(BYTES));
            Ok((e.b.offset(e.bases[f.buf as usize], first), e.bound(&f.count, true)?, lines, at))
        };
        let a = factor(self, &b.a, b.rows, 0)?;
        let right = factor(self, &b.b, b.cols, i64::from(b.rows) * i64::from(b.chunk) * BYTES)?;
        let staged = |f, (from, count, lines, at): (V, V, u32, i64)| Staged { f, lines, from, count, at };
        let warp = self.group().warp;
        let of_cols = self.b.i64(i64::from(b.warps[1]));
        let (row, col) = (self.b.udiv(warp, of_cols), self.b.urem(warp, of_cols));
        let first = [(row, b.rows / b.warps[0]), (col, b.cols / b.warps[1])]
            .map(|(n, lines)| self.b.mul(n, self.b.i64(i64::from(lines))));
        let base = self.bases[b.c as usize];
        let mut plan = Plan { b, factors: [staged(&b.a, a), staged(&b.b, right)], base, first, stage, fast: false };
        // What the point before left there has been read.
        self.meet_all();
        if !plan.factors.iter().all(Staged::even) {
            return self.whole(&plan);
        }
        let address = |f: &Staged| self.b.ptr_to_int(f.from);
        let low = self.b.and(self.b.or(address(&plan.factors[0]), address(&plan.factors[1])), self.b.i64(15));
        let (fast, slow, join) = (self.b.block(), self.b.block(), self.b.block());
        self.b.branch(self.b.icmp(IntPred::LLVMIntEQ, low, self.b.i64(0)), fast, slow);
        self.b.position(fast);
        plan.fast = true;
        self.whole(&plan)?;
        self.b.jump(join);
        self.b.position(slow);
        plan.fast = false;
        self.whole(&plan)?;
        self.b.jump(join);
        self.b.position(join);
        Ok(())
    }

    /// The whole block, into `c`.
    fn whole(&mut self, p: &Plan) -> Result<(), LlvmError> {
        let ahead = i64::from(p.b.stages) - 1;
        for s in 0..ahead {
            if s < p.chunks() {
                self.stage(p, self.b.i64(s), self.b.i64(s))?;
            }
            self.commit(p);
        }
        let zero = self.b.zero(self.b.kind(Kind::F32, 1));
        let sums = vec![zero; p.sums()];
        let (first, chunks) = (self.b.i64(0), self.b.i64(p.chunks()));
        let sums = self.raw_loop(first, chunks, 1, &sums, |e, chunk, sums| {
            let stages = e.b.i64(i64::from(p.b.stages));
            e.wait_for(p, ahead - 1);
            e.meet_all();
            e.ahead(p, e.b.add(chunk, e.b.i64(ahead)))?;
            let at = e.b.offset(p.base, e.b.mul(e.b.urem(chunk, stages), e.b.i64(p.stage)));
            let mut sums = sums.to_vec();
            for atom in 0..p.b.chunk / SIDE {
                e.atom(p, at, atom, &mut sums);
            }
            e.end_of_leaf(p, chunk, sums)
        })?;
        self.wait_for(p, 0);
        self.meet_all();
        self.leave_sums(p, &sums);
        self.meet_all();
        Ok(())
    }

    /// Starts the copies of chunk `chunk`, where there is one.
    fn ahead(&mut self, p: &Plan, chunk: V) -> Result<(), LlvmError> {
        let (some, join) = (self.b.block(), self.b.block());
        let inside = self.b.icmp(IntPred::LLVMIntSLT, chunk, self.b.i64(p.chunks()));
        self.b.branch(inside, some, join);
        self.b.position(some);
        let stage = self.b.urem(chunk, self.b.i64(i64::from(p.b.stages)));
        self.stage(p, chunk, stage)?;
        self.b.jump(join);
        self.b.position(join);
        self.commit(p);
        Ok(())
    }

    fn commit(&self, p: &Plan) {
        if p.fast {
            self.b.intrinsic("llvm.nvvm.cp.async.commit.group", &[], &[]);
        }
    }

    /// All but the last `but` groups of copies of this thread have arrived.
    fn wait_for(&self, p: &Plan, but: i64) {
        if p.fast {
            let n = self.b.const_int(self.b.int(32), but, 1);
            self.b.intrinsic("llvm.nvvm.cp.async.wait.group", &[], &[n]);
        }
    }

    /// Copies a chunk of both factors into a stage: each thread its pieces.
    fn stage(&mut self, p: &Plan, chunk: V, stage: V) -> Result<(), LlvmError> {
        let first = self.b.mul(chunk, self.b.i64(p.chunk()));
        let to = self.b.offset(p.base, self.b.mul(stage, self.b.i64(p.stage)));
        for f in &p.factors {
            let pieces = i64::from(f.lines) * p.chunk() / PIECE;
            for round in 0..(pieces as u64).div_ceil(p.threads() as u64) as i64 {
                let piece = self.b.add(self.group().thread, self.b.i64(round * p.threads()));
                if (round + 1) * p.threads() <= pieces {
                    self.piece(p, f, piece, first, to)?;
                    continue;
                }
                let (some, join) = (self.b.block(), self.b.block());
                self.b.branch(self.b.icmp(IntPred::LLVMIntSLT, piece, self.b.i64(pieces)), some, join);
                self.b.position(some);
                self.piece(p, f, piece, first, to)?;
                self.b.jump(join);
                self.b.position(join);
            }
        }
        Ok(())
    }

    /// One piece of a factor, of the chunk whose first step is `first`.
    fn piece(&mut self, p: &Plan, f: &Staged, piece: V, first: V, to: V) -> Result<(), LlvmError> {
        let int = |n: i64| self.b.i64(n);
        let row_pieces = if f.deep() { p.chunk() / PIECE } else { i64::from(f.lines) / PIECE };
        let (outer, inner) = (self.b.udiv(piece, int(row_pieces)), self.b.urem(piece, int(row_pieces)));
        let near = self.b.mul(inner, int(PIECE));
        let depth = int(p.b.depth as i64);
        // Where its first number lies, whether its row exists, and how many of its numbers do.
        let (from, exists, left) = if f.deep() {
            let k = self.b.add(first, near);
            let from = self.b.add(self.b.mul(outer, int(f.f.line)), k);
            (from, self.b.icmp(IntPred::LLVMIntSLT, outer, f.count), self.b.sub(depth, k))
        } else {
            let k = self.b.add(first, outer);
            let from = self.b.add(self.b.mul(k, int(f.f.step)), near);
            (from, self.b.icmp(IntPred::LLVMIntSLT, k, depth), self.b.sub(f.count, near))
        };
        let limit = |v: V| {
            let least = self.b.select(self.b.icmp(IntPred::LLVMIntSLT, v, int(PIECE)), v, int(PIECE));
            self.b.select(self.b.icmp(IntPred::LLVMIntSGT, least, int(0)), least, int(0))
        };
        let numbers = self.b.select(exists, limit(left), int(0));
        let some = self.b.icmp(IntPred::LLVMIntSGT, numbers, int(0));
        // Nothing is read of a piece of nothing, but its address has to be one.
        let from = self.b.offset(f.from, self.b.mul(self.b.select(some, from, int(0)), int(BYTES)));
        let to = self.b.offset(to, self.place(p, f, outer, inner));
        if p.fast {
            let bytes = self.b.trunc(self.b.mul(numbers, int(BYTES)), self.b.int(32));
            self.b.intrinsic("llvm.nvvm.cp.async.cg.shared.global.16.s", &[], &[to, from, bytes]);
            return Ok(());
        }
        let of = Elements { ty: self.b.int(16), bytes: BYTES as u32 };
        for n in 0..PIECE {
            let held = self.b.icmp(IntPred::LLVMIntSGT, numbers, int(n));
            let number = self.load_if(Some(held), of, self.b.offset(from, int(n * BYTES)));
            self.b.store(number, self.b.offset(to, int(n * BYTES)), BYTES as u32, false);
        }
        Ok(())
    }

    /// Bytes from the start of a stage to piece `inner` of row `outer` (a line, or a step where neighbours are lines).
    fn place(&self, p: &Plan, f: &Staged, outer: V, inner: V) -> V {
        let row_pieces = if f.deep() { p.chunk() / PIECE } else { i64::from(f.lines) / PIECE };
        // Eight rows at one piece shall lie in eight different groups of banks, of which a row of few pieces has only some.
        let spread = row_pieces.min(8);
        let shared = (8 / spread).trailing_zeros();
        let turn = self.b.and(self.b.lshr(outer, self.b.i64(i64::from(shared))), self.b.i64(spread - 1));
        let at = self.b.xor(inner, turn);
        let row = self.b.mul(outer, self.b.i64(row_pieces * PIECE * BYTES));
        self.b.add(self.b.add(row, self.b.mul(at, self.b.i64(PIECE * BYTES))), self.b.i64(f.at))
    }

    /// One atom of all fragments of the warp.
    fn atom(&self, p: &Plan, stage: V, atom: u32, sums: &mut [V]) {
        let [rows, cols] = p.fragments();
        let of_f16 = self.kernel.bufs[p.b.a.buf as usize].dtype == DType::F16;
        let name = match of_f16 {
            true => "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
            false => "llvm.nvvm.mma.m16n8k16.row.col.bf16",
        };
        let halves = self.b.pair_of_halves();
        let left: Vec<[V; 4]> = (0..rows).map(|i| self.fragment(p, 0, stage, i, atom)).collect();
        for j in 0..cols {
            let right = self.fragment(p, 1, stage, j, atom);
            for (i, a) in (0..rows).zip(&left) {
                for half in 0..2 {
                    let at = ((i * cols + j) * 8 + half * 4) as usize;
                    let b = &right[2 * half as usize..][..2];
                    let c = &mut sums[at..at + 4];
                    let pair = |v: &V| if of_f16 { self.b.bitcast(*v, halves) } else { *v };
                    let args: Vec<V> = a.iter().chain(b).map(pair).chain(c.iter().copied()).collect();
                    let d = self.b.intrinsic(name, &[], &args);
                    (0..4).for_each(|n| c[n as usize] = self.b.extract_value(d, n));
                }
            }
        }
    }

    /// Four squares of 8 by 8 numbers of a factor: lines `16 n` on, steps `16 atom` on. Of the left factor squares go on by
    /// lines first, of the right one by steps.
    fn fragment(&self, p: &Plan, side: usize, stage: V, n: u32, atom: u32) -> [V; 4] {
        let f = &p.factors[side];
        let int = |n: i64| self.b.i64(n);
        let lane = self.group().lane;
        // Each thread says where one row of a square lies.
        let (row, square) = (self.b.and(lane, int(7)), self.b.lshr(lane, int(3)));
        let (low, high) = (self.b.and(square, int(1)), self.b.lshr(square, int(1)));
        let (by_line, by_step) = if side == 0 { (low, high) } else { (high, low) };
        let line = self.b.add(p.first[side], int(i64::from(SIDE * n)));
        let step = int(i64::from(SIDE * atom) / PIECE);
        let (outer, inner) = if f.deep() {
            let line = self.b.add(self.b.add(line, self.b.mul(by_line, int(PIECE))), row);
            (line, self.b.add(step, by_step))
        } else {
            let k = self.b.add(self.b.add(self.b.mul(self.b.add(step, by_step), int(PIECE)), row), int(0));
            (k, self.b.add(self.b.udiv(line, int(PIECE)), by_line))
        };
        let at = self.b.offset(stage, self.place(p, f, outer, inner));
        let name = match f.deep() {
            true => "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
            false => "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16",
        };
        let all = self.b.intrinsic(name, &[self.b.ptr_in(AddressSpace::Shared)], &[at]);
        [0, 1, 2, 3].map(|n| self.b.extract_value(all, n))
    }

    // --- leaves

    /// What the sums go on with behind chunk `chunk`: where a leaf ends zeros, and at the end all of them together.
    fn end_of_leaf(&mut self, p: &Plan, chunk: V, sums: Vec<V>) -> Result<Vec<V>, LlvmError> {
        if p.leaves() < 2 {
            return Ok(sums);
        }
        let (one, per_leaf) = (self.b.i64(1), self.b.i64(p.b.leaf as i64 / p.chunk()));
        let behind = self.b.add(chunk, one);
        let last = self.b.icmp(IntPred::LLVMIntEQ, behind, self.b.i64(p.chunks()));
        let whole = self.b.icmp(IntPred::LLVMIntEQ, self.b.urem(behind, per_leaf), self.b.i64(0));
        let (before, settle, join) = (self.b.current(), self.b.block(), self.b.block());
        self.b.branch(self.b.or(last, whole), settle, join);
        self.b.position(settle);
        let leaf = self.b.udiv(chunk, per_leaf);
        let settled = self.settle_leaf(p, leaf, last, &sums)?;
        let settle = self.b.current();
        self.b.jump(join);
        self.b.position(join);
        let ty = self.b.kind(Kind::F32, 1);
        let joined = sums.iter().zip(settled).map(|(old, new)| {
            let phi = self.b.phi(ty);
            self.b.incoming(phi, *old, before);
            self.b.incoming(phi, new, settle);
            phi
        });
        Ok(joined.collect())
    }

    /// A binary counter over the leaves, as in [`crate::leaves`].
    fn settle_leaf(&mut self, p: &Plan, leaf: V, last: V, sums: &[V]) -> Result<Vec<V>, LlvmError> {
        let (zero, one) = (self.b.i64(0), self.b.i64(1));
        let levels = i64::from(tessera_ops::prim::fold::levels(p.leaves() as u64));
        let never = self.b.const_int(self.b.int(1), 0, 1);
        let ones = self.b.intrinsic("llvm.cttz", &[self.b.int(64)], &[self.b.not(leaf), never]);
        let up = self.b.select(last, self.b.i64(levels), ones);
        let met = self.raw_loop(zero, up, 1, sums, |e, level, sums| {
            let set = e.b.and(e.b.lshr(leaf, level), one);
            let waits = e.b.icmp(IntPred::LLVMIntNE, set, zero);
            let (before, load, join) = (e.b.current(), e.b.block(), e.b.block());
            e.b.branch(waits, load, join);
            e.b.position(load);
            let both: Vec<V> = (0..)
                .zip(sums)
                .map(|(n, later)| e.b.fadd(e.b.load(e.element_of(Kind::F32), e.slot_of(p, level, n), 4), *later))
                .collect();
            e.b.jump(join);
            e.b.position(join);
            let joined = sums.iter().zip(both).map(|(old, new)| {
                let phi = e.b.phi(e.element_of(Kind::F32));
                e.b.incoming(phi, *old, before);
                e.b.incoming(phi, new, load);
                phi
            });
            Ok(joined.collect())
        })?;
        let (wait, join) = (self.b.block(), self.b.block());
        let none = self.b.zero(self.element_of(Kind::F32));
        // The sum of more than one leaf is never -0.
        let whole: Vec<V> = met.iter().map(|v| self.b.fadd(none, *v)).collect();
        let end = self.b.current();
        self.b.branch(last, join, wait);
        self.b.position(wait);
        (0..).zip(&met).for_each(|(n, v)| self.b.store(*v, self.slot_of(p, up, n), 4, false));
        self.b.jump(join);
        self.b.position(join);
        let out = whole.iter().map(|v| {
            let phi = self.b.phi(self.element_of(Kind::F32));
            self.b.incoming(phi, *v, end);
            self.b.incoming(phi, none, wait);
            phi
        });
        Ok(out.collect())
    }

    /// Where sum `n` of this thread waits at a level: beside those of the other threads.
    fn slot_of(&self, p: &Plan, level: V, n: i64) -> V {
        let sums = p.sums() as i64;
        let first = self.b.mul(level, self.b.i64(sums * p.threads()));
        let at = self.b.add(self.b.add(first, self.b.i64(n * p.threads())), self.group().thread);
        let buf = p.b.waiting.unwrap_or(p.b.c);
        self.b.offset(self.bases[buf as usize], self.b.mul(at, self.b.i64(4)))
    }

    /// Writes the sums into `c`: a thread has two neighbours of a row, and two of the row 8 further on.
    fn leave_sums(&self, p: &Plan, sums: &[V]) {
        let int = |n: i64| self.b.i64(n);
        let [rows, cols] = p.fragments();
        let lane = self.group().lane;
        let row = self.b.add(p.first[0], self.b.lshr(lane, int(2)));
        let col = self.b.add(p.first[1], self.b.mul(self.b.and(lane, int(3)), int(2)));
        let first = self.b.add(self.b.mul(row, int(i64::from(p.b.cols))), col);
        let base = self.b.offset(p.base, self.b.mul(first, int(4)));
        for (n, v) in sums.iter().enumerate() {
            let (fragment, inside) = ((n / 8) as u32, (n % 8) as i64);
            let (i, j) = (fragment / cols, fragment % cols);
            debug_assert!(i < rows);
            let row = i64::from(SIDE * i) + 8 * (inside % 4 / 2);
            let col = i64::from(SIDE * j) + 8 * (inside / 4) + inside % 2;
            let at = (row * i64::from(p.b.cols) + col) * 4;
            self.b.store(*v, self.b.offset(base, int(at)), 4, false);
        }
    }
}
