//! Reductions across the vector: the lanes of a vector are positions of an axis that stays, and
//! each has its own canonical lanes, kept in scratch memory as `[canonical lane][column]`.
//!
//! Also called: column reductions.
//!
//! A grid point owns a block of columns, wide enough to read whole pages of a row: where each
//! row is another page, translating addresses costs more than the additions.

use super::{Plan, Red, Span};
use crate::LowerError;
use crate::nest::{Nest, identity};
use tessera_ir::index::{Index, Var};
use tessera_ir::tile::{Access, Def, LANE, Val};
use tessera_ops::prim::LANES;

/// Vectors in a block of columns at most: 4 KiB of f32, 64 KiB of accumulators.
const VECTORS: u64 = 64;

/// The columns of a grid point.
pub(super) struct Columns {
    pub axis: Var,
    pub span: Span,
    /// First chunk.
    first: Index,
    /// Elements of the block.
    pub size: u64,
}

impl Columns {
    pub fn first_chunk(&self) -> &Index {
        &self.first
    }
}

/// Scratch of one reduction: canonical lanes, sums of leaves, result.
pub(super) type Bufs = [u32; 3];

impl<'s> Plan<'s> {
    pub(super) fn columns_axis(&self) -> Result<Var, LowerError> {
        self.vector.ok_or(LowerError("a reduction without a vector axis".into()))
    }

    /// Elements of a block of columns.
    pub(super) fn column_block(&self, axis: Var) -> u64 {
        let most = VECTORS * self.lanes as u64;
        let extent = self.s.extent(axis).next_multiple_of(self.lanes as u64).max(self.lanes as u64);
        self.tile(axis).unwrap_or(extent).min(most).min(extent)
    }

    /// Opens the rows' loops and the grid over blocks of columns and `extra`.
    pub(super) fn blocks(
        &self,
        n: &mut Nest<'s>,
        extra: &[u64],
        body: &mut dyn FnMut(&mut Nest<'s>, &Columns, &Index, &[Index]) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let axis = self.columns_axis()?;
        let (extent, size) = (self.s.extent(axis), self.column_block(axis));
        let mut sizes = vec![extent.div_ceil(size)];
        sizes.extend(extra);
        self.outer_loops(n, &self.rows(), &sizes, &mut |p, n, row, grid| {
            let span = Span::block(&grid[0], size, extent, p.lanes);
            let first = grid[0].times((size / p.lanes as u64) as i64);
            body(n, &Columns { axis, span, first, size }, row, &grid[1..])
        })
    }

    pub(super) fn whole_across(&self, n: &mut Nest<'s>) -> Result<(), LowerError> {
        let size = self.column_block(self.columns_axis()?);
        let bufs: Vec<Bufs> = self
            .reductions
            .iter()
            .map(|r| {
                let mut scratch = |name: &str, elems: u64| n.scratch(&format!("{name}{}", r.value.0), r.accum, elems);
                let leaves = self.leaves(r);
                let sums = if leaves > 1 { scratch("leaf_sums", leaves * size) } else { 0 };
                [scratch("lanes", size * LANES as u64), sums, scratch("result", size)]
            })
            .collect();
        let pairs: Vec<_> = self.reductions.iter().map(|r| self.pair_columns(n, r, size)).collect();
        self.blocks(n, &[], &mut |n, columns, _, _| {
            (0..self.reductions.len()).try_for_each(|i| match &pairs[i] {
                Some(low) => self.reduce_pairs_across(n, columns, i, &bufs, low),
                None => self.reduce_across(n, columns, i, &bufs),
            })?;
            self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
                self.bind_results(n, columns, chunk, self.reductions.len(), &bufs);
                self.stores(n)
            })
        })
    }

    /// Makes the results of the first `count` reductions known at column chunk `chunk`.
    pub(super) fn bind_results(&self, n: &mut Nest<'s>, columns: &Columns, chunk: &Index, count: usize, bufs: &[Bufs]) {
        for (r, [_, _, result]) in self.reductions.iter().zip(bufs).take(count) {
            let v = self.load_all(n, *result, self.column(columns, chunk), r);
            n.bind(r.value, v);
        }
    }

    /// Position of a chunk's lanes inside the block.
    pub(super) fn column(&self, columns: &Columns, chunk: &Index) -> Index {
        chunk.minus(&columns.first).times(self.lanes as i64).plus(&Index::var(LANE))
    }

    pub(super) fn load_all(&self, n: &mut Nest<'s>, buf: u32, at: Index, r: &Red) -> Val {
        n.define(Def::Load(Access { buf, at, valid: self.lanes, guards: vec![] }), r.of, self.lanes)
    }

    /// Stores all lanes, those outside the tensor too.
    pub(super) fn store_all(&self, n: &mut Nest<'s>, buf: u32, at: Index, v: Val) {
        let valid = std::mem::replace(&mut n.valid, self.lanes);
        n.store(buf, at, v, false);
        n.valid = valid;
    }

    /// Reduction `i` of the block's columns into its result buffer.
    fn reduce_across(&self, n: &mut Nest<'s>, columns: &Columns, i: usize, bufs: &[Bufs]) -> Result<(), LowerError> {
        let r = self.reductions[i];
        let [_, sums, result] = bufs[i];
        let leaves = self.leaves(&r);
        if leaves <= 1 {
            return self.leaf_across(n, columns, i, &Index::default(), bufs, &mut |n, chunk, v| {
                self.store_all(n, result, self.column(columns, chunk), v);
            });
        }
        let sum_at = |chunk: &Index, leaf: &Index| {
            chunk.minus(&columns.first).times(leaves as i64).plus(leaf).times(self.lanes as i64)
        };
        let var = n.var(leaves as i64 - 1);
        n.plain_loop(var, vec![Index::default()], vec![Index::constant(leaves as i64)], |n| {
            self.leaf_across(n, columns, i, &Index::var(var), bufs, &mut |n, chunk, v| {
                self.store_all(n, sums, sum_at(chunk, &Index::var(var)).plus(&Index::var(LANE)), v);
            })
        })?;
        self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
            let at = sum_at(chunk, &Index::default());
            let v = n.define(Def::Tree { kind: r.kind, buf: sums, at, count: leaves }, r.of, self.lanes);
            self.store_all(n, result, self.column(columns, chunk), v);
            Ok(())
        })
    }

    /// One leaf of every column of the block; `out` receives each chunk's vector.
    fn leaf_across(
        &self,
        n: &mut Nest<'s>,
        columns: &Columns,
        i: usize,
        leaf: &Index,
        bufs: &[Bufs],
        out: &mut dyn FnMut(&mut Nest<'s>, &Index, Val),
    ) -> Result<(), LowerError> {
        let r = self.reductions[i];
        let lanes_buf = bufs[i][0];
        let lane_at = |chunk: &Index, l: &Index| l.times(columns.size as i64).plus(&self.column(columns, chunk));
        self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
            let zero = n.define(Def::Const(identity(r.kind, r.of)), r.of, self.lanes);
            (0..LANES as i64).for_each(|l| self.store_all(n, lanes_buf, lane_at(chunk, &Index::constant(l)), zero));
            Ok(())
        })?;
        let last = self.s.extent(r.axis).div_ceil(LANES as u64) as i64 - 1;
        for (lo, hi, count) in self.chunks(&r, leaf) {
            if count == 0 || last < 0 {
                continue;
            }
            let (q, l) = (n.var(last), n.var(count as i64 - 1));
            n.plain_loop(q, lo, hi, |n| {
                n.plain_loop(l, vec![Index::default()], vec![Index::constant(count as i64)], |n| {
                    let old = n.bind_axis(r.axis, Index::var(q).times(LANES as i64).plus(&Index::var(l)));
                    self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
                        self.bind_results(n, columns, chunk, i, bufs);
                        let value = n.eval(r.arg)?;
                        let at = lane_at(chunk, &Index::var(l));
                        let acc = self.load_all(n, lanes_buf, at.clone(), &r);
                        let next =
                            n.define(Def::Fold { kind: r.kind, acc, value, valid: self.lanes }, r.of, self.lanes);
                        self.store_all(n, lanes_buf, at, next);
                        Ok(())
                    })?;
                    n.bind_axis(r.axis, old);
                    Ok(())
                })
            })?;
        }
        self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
            let mut acc: Vec<Val> = (0..LANES as i64)
                .map(|l| self.load_all(n, lanes_buf, lane_at(chunk, &Index::constant(l)), &r))
                .collect();
            let mut half = LANES / 2;
            while half > 0 {
                for l in 0..half {
                    acc[l] = n.define(
                        Def::Fold { kind: r.kind, acc: acc[l], value: acc[l + half], valid: self.lanes },
                        r.of,
                        self.lanes,
                    );
                }
                half /= 2;
            }
            out(n, chunk, acc[0]);
            Ok(())
        })
    }

    /// Leaf sums of every column into `temp`: `[row][chunk][leaf][lane]`.
    pub(super) fn leaves_across(&self, n: &mut Nest<'s>, r: &Red, temp: u32) -> Result<(), LowerError> {
        let lanes = n.scratch("lanes", r.accum, self.column_block(self.columns_axis()?) * LANES as u64);
        let leaves = self.leaves(r);
        self.blocks(n, &[leaves], &mut |n, columns, row, leaf| {
            self.leaf_across(n, columns, 0, &leaf[0], &[[lanes, 0, 0]], &mut |n, chunk, v| {
                let at = self.temp_at(columns.axis, row, chunk, leaves).plus(&leaf[0].times(self.lanes as i64));
                self.store_all(n, temp, at.plus(&Index::var(LANE)), v);
            })
        })
    }

    pub(super) fn temp_at(&self, axis: Var, row: &Index, chunk: &Index, leaves: u64) -> Index {
        let chunks = self.s.extent(axis).div_ceil(self.lanes as u64) as i64;
        row.times(chunks).plus(chunk).times((leaves * self.lanes as u64) as i64)
    }

    pub(super) fn tree_across(&self, n: &mut Nest<'s>, r: &Red, temp: u32) -> Result<(), LowerError> {
        let leaves = self.leaves(r);
        self.blocks(n, &[], &mut |n, columns, row, _| {
            self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
                let at = self.temp_at(columns.axis, row, chunk, leaves);
                let v = n.define(Def::Tree { kind: r.kind, buf: temp, at, count: leaves }, r.of, self.lanes);
                n.bind(r.value, v);
                self.stores(n)
            })
        })
    }
}
