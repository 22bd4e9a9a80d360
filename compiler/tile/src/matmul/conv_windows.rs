//! Products whose left operand is windows over an image: rows are windows, columns are channels.
//!
//! ```text
//! pack (own kernel)   weights -> [k block][column panel][k][NR]
//! grid (batch, n tile, rows of windows)
//!   for each k block
//!     image[channels of the block][places down][places along], with its padding
//!     for each column panel, each row of windows, each row panel in it
//!       mma MR×NR over the block, the left factor where it lies in the image
//!       after the last block: the tile turned over, epilogue
//! ```
//! A place of the image is copied once per grid point, not once per window that it is in; an image
//! without padding is read where it is.

use super::panels::{Columns, RowPanel, hops, parts, stride};
use super::{Compute, Product};
use crate::LowerError;
use crate::nest::Nest;
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::conv_windows::Windows;
use tessera_ir::schedule::{Directive, Schedule, ValueId, ValueOp};
use tessera_ir::tile::{Access, Def, LANE, Panel};

/// What a product knows of its windows.
pub(super) struct Image {
    pub w: Windows,
    /// Read in place.
    direct: bool,
    /// Elements between neighbouring places down, and between images.
    line: i64,
    area: i64,
}

/// The left factor at the start of a register tile, and its hops.
pub(super) type Left = (Panel, Vec<(i64, i64)>);

impl Image {
    /// Tiles of `mc` windows in blocks of `kc` steps.
    pub(super) fn new(w: Windows, direct: bool, mc: u64, lanes: u32) -> Image {
        let lanes = lanes as u64;
        let line = w.along.extent.next_multiple_of(lanes);
        // An odd number of vectors: powers of two would share cache sets.
        let area = ((line * w.under(mc / w.row.max(1)) / lanes) | 1) * lanes;
        Image { direct, line: line as i64, area: area as i64, w }
    }

    /// Windows per tile: whole rows of them.
    pub(super) fn windows(w: &Windows, mc: u64) -> u64 {
        (mc / w.row.max(1)).max(1) * w.row
    }

    /// Steps per block: whole images, in multiples of `unit`.
    pub(super) fn steps(w: &Windows, kc: u64, unit: u64) -> u64 {
        let all: u64 = w.nest.iter().product();
        let inner = w.inner().max(1);
        let step = (1..=unit.max(1)).map(|n| n * inner).find(|n| n.is_multiple_of(unit.max(1))).unwrap_or(inner);
        if kc >= all || !w.divides() { all } else { kc.max(1).next_multiple_of(step).min(all) }
    }

    /// Elements from one position of each loop of the nest to the next.
    fn strides(&self, at: &dyn Fn(Var) -> i64) -> Vec<i64> {
        let w = &self.w;
        let slides = [&w.along, &w.down].into_iter().filter_map(|s| s.dim.map(|d| (d, s.hop * at(s.axis))));
        let mut out = vec![0; w.nest.len()];
        for (d, stride) in slides.chain(w.free.iter().map(|(d, v)| (*d, at(*v)))) {
            out[d] = stride;
        }
        out
    }

    /// Elements of the copy from one place along `axis` to the next.
    fn pitch(&self, axis: Var) -> i64 {
        let w = &self.w;
        if axis == w.along.axis {
            return 1;
        }
        if axis == w.down.axis {
            return self.line;
        }
        let inside = w.free.iter().rev().take_while(|(_, v)| *v != axis);
        inside.fold(self.area, |all, (d, _)| all * w.nest[*d] as i64)
    }

    /// Elements of the copy of one block of `kc` steps.
    fn elems(&self, kc: u64) -> u64 {
        let images: u64 = self.w.free.iter().map(|(d, _)| self.in_block(*d, kc)).product();
        images * self.area as u64
    }

    /// Positions of loop `d` of the nest in a block of `kc` steps.
    fn in_block(&self, d: usize, kc: u64) -> u64 {
        if d == 0 { kc / self.w.inner().max(1) } else { self.w.nest[d] }
    }
}

impl<'s> Product<'s> {
    /// The schedule with the image among its values, where the directives and the operand are so.
    pub(super) fn find_windows(s: &Schedule) -> Option<(Schedule, Windows)> {
        let at = s.values.iter().position(|v| matches!(v.op, ValueOp::Dot { within: None, beyond: None, .. }))?;
        let dot = ValueId(at as u32);
        let ValueOp::Dot { a, b, axis: k, leaf, .. } = s.value(dot).op else { return None };
        if !s.directives.contains(&Directive::Windows) || s.value(a).dtype != s.value(dot).dtype {
            return None;
        }
        let (rows, columns) = s.sides(dot);
        let (left, m, n) =
            if s.directives.contains(&Directive::Swap) { (b, columns, rows) } else { (a, rows, columns) };
        n?;
        Windows::find(s, left, m?, k).filter(|(_, w)| w.ends_with(leaf))
    }

    /// Whether the image can be read where it is: loads of the accumulator's type without padding.
    pub(super) fn reads_in_place(&self, w: &Windows) -> bool {
        let value = self.s.value(w.value);
        matches!(&value.op, ValueOp::Load { guards, .. } if guards.is_empty() && value.dtype == self.accum)
    }

    /// Memory for the part of the image under a tile, if it is copied.
    pub(super) fn image_scratch(&self, n: &mut Nest<'s>) -> Option<u32> {
        let image = self.image.as_ref().filter(|i| !i.direct)?;
        Some(n.scratch("image", self.accum, image.elems(self.kc)))
    }

    /// Rows of windows in a tile.
    fn lines(&self, w: &Windows) -> i64 {
        (self.mc / w.row) as i64
    }

    /// Copies the part of the image under tile `tile`, for the images of one k block.
    pub(super) fn copy_image(
        &self,
        n: &mut Nest<'s>,
        image: &Image,
        buf: u32,
        tile: &Index,
        block: &Index,
    ) -> Result<(), LowerError> {
        let w = &image.w;
        let lines = w.under(self.mc / w.row) as i64;
        let first = tile.times(self.lines(w) * w.down.step);
        self.over_images(n, image, &w.free, block, Index::default(), &mut |n, base| {
            let y = n.var(lines - 1);
            let rest = Index::constant(w.down.extent as i64).minus(&first);
            n.plain_loop(y, vec![Index::default()], vec![Index::constant(lines), rest], |n| {
                n.bind_axis(w.down.axis, first.plus(&Index::var(y)));
                self.copy_line(n, w, buf, &base.plus(&Index::var(y).times(image.line)))
            })
        })
    }

    /// Loops over the images of one k block; `body` gets where each one starts.
    fn over_images(
        &self,
        n: &mut Nest<'s>,
        image: &Image,
        free: &[(usize, Var)],
        block: &Index,
        base: Index,
        body: &mut dyn FnMut(&mut Nest<'s>, &Index) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let Some((&(d, axis), rest)) = free.split_first() else { return body(n, &base) };
        let (count, all) = (image.in_block(d, self.kc) as i64, image.w.nest[d] as i64);
        let first = if d == 0 { block.times(count) } else { Index::default() };
        let i = n.var(count - 1);
        let hi = vec![Index::constant(count), Index::constant(all).minus(&first)];
        n.plain_loop(i, vec![Index::default()], hi, |n| {
            n.bind_axis(axis, first.plus(&Index::var(i)));
            let base = base.plus(&Index::var(i).times(image.pitch(axis)));
            self.over_images(n, image, rest, block, base, body)
        })
    }

    /// Copies one line of places to `base`. The padding is at its ends, so that only vectors there
    /// have masks.
    fn copy_line(&self, n: &mut Nest<'s>, w: &Windows, buf: u32, base: &Index) -> Result<(), LowerError> {
        const ENDS: u64 = 2;
        let (lanes, extent) = (self.lanes as u64, w.along.extent);
        let vectors = extent.div_ceil(lanes);
        let one = |n: &mut Nest<'s>, q: Index, valid: u64| {
            let at = q.times(lanes as i64).plus(&Index::var(LANE));
            n.valid = valid as u32;
            n.bind_axis(w.along.axis, at.clone());
            let value = n.eval(w.value)?;
            // Whole vectors are stored: lines are multiples of them.
            n.valid = n.lanes;
            n.store(buf, base.plus(&at), value, false);
            Ok(())
        };
        let middle = if vectors > 4 * ENDS { ENDS..vectors - ENDS } else { 0..0 };
        for q in (0..vectors).filter(|q| !middle.contains(q)) {
            one(n, Index::constant(q as i64), (extent - q * lanes).min(lanes))?;
        }
        if middle.is_empty() {
            return Ok(());
        }
        let q = n.var((middle.end - middle.start) as i64 - 1);
        let hi = Index::constant((middle.end - middle.start) as i64);
        n.plain_loop(q, vec![Index::default()], vec![hi], |n| one(n, Index::var(q).offset(middle.start as i64), lanes))
    }
}

impl<'s> Compute<'_, 's> {
    /// The register tiles of one k block and column panel: row panels lie inside rows of windows.
    pub(super) fn over_windows(
        &self,
        n: &mut Nest<'s>,
        block: &Index,
        image: &Image,
        columns: &Columns,
    ) -> Result<(), LowerError> {
        let (p, w) = (self.p, &image.w);
        let (per, all) = (p.lines(w), (p.extent(p.m) / w.row) as i64);
        let line = n.var(all - 1);
        let first = self.tile_m.times(per);
        let hi = vec![first.offset(per), Index::constant(all)];
        n.plain_loop(line, vec![first.clone()], hi, |n| {
            for part in parts(w.row, None, p.rows) {
                let ix = n.var(w.row.div_ceil(p.rows as u64) as i64 - 1);
                n.plain_loop(ix, part.lo, part.hi, |n| {
                    let along = Index::var(ix).times(p.rows as i64);
                    let inside = Index::var(line).minus(&first);
                    let panels = w.row.div_ceil(p.rows as u64) as i64;
                    let rows = RowPanel {
                        first: Index::var(line).times(w.row as i64).plus(&along),
                        inside: inside.times(panels).plus(&Index::var(ix)),
                        count: part.size,
                    };
                    let left = self.window(n, image, block, (&Index::var(line), &inside), &along)?;
                    self.tile(n, block, &rows, columns, Some(left))
                })?;
            }
            Ok(())
        })
    }

    /// The left factor of the windows from `along` on in a line, which is given by its number and by
    /// the one in the tile.
    fn window(
        &self,
        n: &mut Nest<'s>,
        image: &Image,
        block: &Index,
        (line, inside): (&Index, &Index),
        along: &Index,
    ) -> Result<Left, LowerError> {
        let (p, w) = (self.p, &image.w);
        let x = along.times(w.along.step);
        let (buf, at, pitch): (u32, Index, &dyn Fn(Var) -> i64) = match (self.image, &p.s.value(w.value).op) {
            (Some(buf), _) => (buf, inside.times(w.down.step * image.line).plus(&x), &|axis| image.pitch(axis)),
            (None, ValueOp::Load { operand, at, .. }) => {
                n.bind_axis(w.along.axis, x);
                n.bind_axis(w.down.axis, line.times(w.down.step));
                for (d, axis) in &w.free {
                    let count = image.in_block(*d, p.kc) as i64;
                    n.bind_axis(*axis, if *d == 0 { block.times(count) } else { Index::default() });
                }
                (n.tensor(*operand), n.resolve(at), &|axis| stride(at, Some(axis)))
            }
            _ => return Err(LowerError("windows over what is not in memory".into())),
        };
        let (step, hops) = hops(&w.nest, &image.strides(pitch));
        Ok((Panel { buf, at, row: w.along.step * pitch(w.along.axis), step }, hops))
    }

    /// After the last block: a register tile is turned over, so that windows are the lanes, and what
    /// follows the product runs along them.
    pub(super) fn turned(
        &self,
        n: &mut Nest<'s>,
        c: &Panel,
        rows: &RowPanel,
        columns: &Columns,
    ) -> Result<(), LowerError> {
        let (p, lanes) = (self.p, self.p.lanes);
        let firsts = |all: u32| (0..all.div_ceil(lanes)).map(move |i| (i * lanes, (all - i * lanes).min(lanes)));
        for (column, across) in firsts(columns.count) {
            for (row, down) in firsts(rows.count) {
                n.valid = across;
                let mut from = vec![];
                for i in row..row + down {
                    let at = c.at.offset(i as i64 * c.row + column as i64).plus(&Index::var(LANE));
                    let access = Access { buf: c.buf, at, valid: across, guards: vec![] };
                    from.push(n.define(Def::Load(access), p.kind, lanes));
                }
                // Rows that are missing repeat one that exists; they are not stored.
                from.resize(lanes as usize, from[0]);
                let to = n.transpose(from, p.kind);
                n.valid = down;
                if let Some(m) = p.m {
                    n.bind_axis(m, rows.first.offset(row as i64).plus(&Index::var(LANE)));
                }
                for (j, sum) in to.into_iter().enumerate().take(across as usize) {
                    if let Some(axis) = p.n {
                        n.bind_axis(axis, columns.first.offset(column as i64 + j as i64));
                    }
                    n.bind(p.dot, sum);
                    self.store_all(n, true)?;
                }
                n.valid = n.lanes;
            }
        }
        Ok(())
    }
}
