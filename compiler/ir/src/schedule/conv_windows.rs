//! Windows over an image as an operand of a product: what of it is the same in neighbouring
//! windows.
//!
//! The position of an element in the image depends on the row of the result and on the row of the
//! kernel through one number only, their sum in steps, and likewise along a row. So the operand is
//! a function of a place in the image, of which far fewer exist than of pairs of a window and a
//! place in it.

use super::{Axis, Guard, Schedule, ValueId, ValueOp};
use crate::index::{Index, Var};

/// Farther apart than this, places of the kernel count as different images (channels).
const HOP_MAX: i64 = 4;

/// One direction of the image: place `step·window + hop·place of the kernel`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slide {
    /// Places, an axis of the schedule that [`Windows::find`] gives.
    pub axis: Var,
    pub extent: u64,
    pub step: i64,
    pub hop: i64,
    /// The loop of the nest that walks the kernel; `None` where the kernel has one place.
    pub dim: Option<usize>,
}

/// An operand that is windows over an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Windows {
    /// Windows of a row of the result.
    pub row: u64,
    /// Sizes of the loops over the contracted axis, outermost first.
    pub nest: Vec<u64>,
    /// The operand as a function of the axes below.
    pub value: ValueId,
    pub down: Slide,
    pub along: Slide,
    /// The other loops of the nest, each with an axis.
    pub free: Vec<(usize, Var)>,
}

/// A linear view of an index: its strides along the row, the window in it and the loops of the nest.
struct Strides {
    row: i64,
    window: i64,
    nest: Vec<i64>,
}

impl Windows {
    /// Operand `v` of a product as windows: `m` is the axis of its rows, `k` the contracted one.
    /// The schedule that comes back has the image among its values, and axes for its places.
    /// `None` where `v` is anything else.
    pub fn find(s: &Schedule, v: ValueId, m: Var, k: Var) -> Option<(Schedule, Windows)> {
        let row = s.row_along(v, m)?;
        let nest = s.nest_along(v, k);
        let first = s.axes.len() as u32;
        let mut out = s.clone();
        let cut = Cut { m, k, row, rows: s.extent(m) / row.max(1), nest: &nest, first };
        let mut tree = vec![];
        cut.collect(s, v, &mut tree)?;
        let indices: Vec<Index> = tree.iter().flat_map(|v| indices(&s.value(*v).op)).map(|e| cut.apply(s, e)).collect();
        let strides = indices.iter().map(|e| cut.strides(e)).collect::<Option<Vec<_>>>()?;
        let mut taken = vec![];
        let extents = (s.extent(m) / row.max(1), row);
        let along = slide(&strides, &|s| s.window, &nest, &mut taken, (extents.1, Var(first)));
        let down = slide(&strides, &|s| s.row, &nest, &mut taken, (extents.0, Var(first + 1)));
        let free: Vec<(usize, Var)> =
            (0..nest.len()).filter(|d| !taken.contains(d)).zip(first + 2..).map(|(d, v)| (d, Var(v))).collect();
        let axis = |extent: u64, name: &str| Axis { name: format!("{name}{first}"), extent, reduced: true };
        out.axes.push(axis(along.extent, "along"));
        out.axes.push(axis(down.extent, "down"));
        out.axes.extend(free.iter().map(|(d, v)| Axis {
            name: format!("free{}", v.0),
            extent: nest[*d],
            reduced: true,
        }));
        let mut w = Windows { row, nest: nest.clone(), value: v, down, along, free };
        w.value = w.copy(s, &mut out, &cut, v);
        Some((out, w))
    }

    /// Positions of the contracted axis that one step of the outermost loop takes.
    pub fn inner(&self) -> u64 {
        self.nest.iter().skip(1).product()
    }

    /// Whether leaves of so many steps hold whole images.
    pub fn ends_with(&self, leaf: u64) -> bool {
        leaf >= self.nest.iter().product() || leaf.is_multiple_of(self.inner().max(1))
    }

    /// Whether the outermost loop walks different images, so that blocks of it share nothing.
    pub fn divides(&self) -> bool {
        self.free.first().is_some_and(|(d, _)| *d == 0)
    }

    /// Rows of the image under `rows` rows of the result.
    pub fn under(&self, rows: u64) -> u64 {
        let kernel = self.down.dim.map_or(1, |d| self.nest[d]);
        self.down.step as u64 * rows.saturating_sub(1) + self.down.hop as u64 * (kernel - 1) + 1
    }

    /// Copies `v` with every index over places.
    fn copy(&self, s: &Schedule, out: &mut Schedule, cut: &Cut, v: ValueId) -> ValueId {
        let value = s.value(v);
        let go = |e: &Index| self.image_index(cut, &cut.apply(s, e));
        let guards = |all: &[Guard]| all.iter().map(|g| Guard { index: go(&g.index), ..g.clone() }).collect();
        let op = match &value.op {
            ValueOp::Load { operand, at, guards: g } => {
                ValueOp::Load { operand: *operand, at: go(at), guards: guards(g) }
            }
            ValueOp::Index(e) => ValueOp::Index(go(e)),
            ValueOp::Within(g) => ValueOp::Within(guards(g)),
            ValueOp::Map { op, args } => {
                ValueOp::Map { op: *op, args: args.iter().map(|a| self.copy(s, out, cut, *a)).collect() }
            }
            ValueOp::Cast(a) => ValueOp::Cast(self.copy(s, out, cut, *a)),
            ValueOp::RoundTf32(a) => ValueOp::RoundTf32(self.copy(s, out, cut, *a)),
            other => other.clone(),
        };
        out.push(op, value.dtype)
    }

    /// An index over windows and kernel places as one over places of the image.
    fn image_index(&self, cut: &Cut, e: &Index) -> Index {
        let mut out = e.clone();
        for (slide, window) in [(&self.along, cut.window()), (&self.down, cut.line())] {
            let stride = out.stride(window).unwrap_or(0) / slide.step;
            out = out.without(window);
            if let Some(d) = slide.dim {
                out = out.without(cut.dim(d));
            }
            out = out.plus(&Index::var(slide.axis).times(stride));
        }
        for (d, axis) in &self.free {
            let stride = out.stride(cut.dim(*d)).unwrap_or(0);
            out = out.without(cut.dim(*d)).plus(&Index::var(*axis).times(stride));
        }
        out
    }
}

/// The axes of rows and steps, cut into loops. Stand-ins for the loops come after all axes.
struct Cut<'n> {
    m: Var,
    k: Var,
    row: u64,
    rows: u64,
    nest: &'n [u64],
    first: u32,
}

impl Cut<'_> {
    const ROOM: u32 = 1 << 16;

    fn line(&self) -> Var {
        Var(self.first + Self::ROOM)
    }

    fn window(&self) -> Var {
        Var(self.first + Self::ROOM + 1)
    }

    fn dim(&self, d: usize) -> Var {
        Var(self.first + Self::ROOM + 2 + d as u32)
    }

    /// The values behind `v`, of the kinds that an image may be made of.
    fn collect(&self, s: &Schedule, v: ValueId, out: &mut Vec<ValueId>) -> Option<()> {
        match &s.value(v).op {
            ValueOp::Load { .. } | ValueOp::Scalar(_) | ValueOp::Const(_) | ValueOp::Index(_) | ValueOp::Within(_) => {}
            ValueOp::Map { .. } | ValueOp::Cast(_) | ValueOp::RoundTf32(_) => {
                s.args(v).into_iter().try_for_each(|a| self.collect(s, a, out))?
            }
            _ => return None,
        }
        out.push(v);
        Some(())
    }

    fn apply(&self, s: &Schedule, e: &Index) -> Index {
        let range = |v: Var| match v {
            v if v == self.line() => (0, self.rows.saturating_sub(1) as i64),
            v if v == self.window() => (0, self.row.saturating_sub(1) as i64),
            v if v.0 >= self.dim(0).0 => (0, self.nest[(v.0 - self.dim(0).0) as usize].saturating_sub(1) as i64),
            v => s.range(v),
        };
        let rows = Index::var(self.line()).times(self.row as i64).plus(&Index::var(self.window()));
        let steps = self
            .nest
            .iter()
            .enumerate()
            .fold(Index::default(), |all, (d, size)| all.times(*size as i64).plus(&Index::var(self.dim(d))));
        let with = |v: Var| match v {
            v if v == self.m => Some(rows.clone()),
            v if v == self.k => Some(steps.clone()),
            _ => None,
        };
        e.substitute(&with, &range)
    }

    fn strides(&self, e: &Index) -> Option<Strides> {
        let nest = (0..self.nest.len()).map(|d| e.stride(self.dim(d))).collect::<Option<Vec<_>>>()?;
        Some(Strides { row: e.stride(self.line())?, window: e.stride(self.window())?, nest })
    }
}

fn indices(op: &ValueOp) -> Vec<&Index> {
    match op {
        ValueOp::Load { at, guards, .. } => [at].into_iter().chain(guards.iter().map(|g| &g.index)).collect(),
        ValueOp::Index(e) => vec![e],
        ValueOp::Within(guards) => guards.iter().map(|g| &g.index).collect(),
        _ => vec![],
    }
}

/// The direction in which windows stand `of` apart: the loop of the kernel that goes the same way
/// in every index, the innermost there is.
fn slide(
    all: &[Strides],
    of: &dyn Fn(&Strides) -> i64,
    nest: &[u64],
    taken: &mut Vec<usize>,
    (windows, axis): (u64, Var),
) -> Slide {
    for d in (0..nest.len()).rev().filter(|d| !taken.contains(d)) {
        let pairs: Vec<(i64, i64)> = all.iter().map(|s| (of(s), s.nest[d])).filter(|p| *p != (0, 0)).collect();
        let Some(&(a, b)) = pairs.first() else { continue };
        let unit = common(a, b) * a.signum();
        if unit == 0 || a / unit <= 0 || b / unit <= 0 || b / unit > HOP_MAX {
            continue;
        }
        let (step, hop) = (a / unit, b / unit);
        if pairs.iter().all(|(x, y)| x % step == 0 && x / step * hop == *y) {
            taken.push(d);
            let extent = step as u64 * windows.saturating_sub(1) + hop as u64 * (nest[d] - 1) + 1;
            return Slide { axis, extent, step, hop, dim: Some(d) };
        }
    }
    Slide { axis, extent: windows, step: 1, hop: 0, dim: None }
}

fn common(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Operand;
    use tessera_base::DType;

    /// The windows of a convolution over `[channels, side, side]`.
    fn image(
        channels: i64,
        side: i64,
        kernel: i64,
        stride: i64,
        dilation: i64,
        pad: i64,
    ) -> Option<(Schedule, Windows)> {
        let count = (side + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
        let (m, k) = (Var(0), Var(1));
        let axis = |extent: i64, reduced| Axis { name: "i".into(), extent: extent as u64, reduced };
        let mut s = Schedule {
            axes: vec![axis(count * count, false), axis(channels * kernel * kernel, true)],
            operands: vec![Operand { name: "x".into(), dtype: DType::F32, elems: 1, output: false }],
            ..Schedule::default()
        };
        let ranges = |v: Var| s.range(v);
        let (r, x) = Index::var(m).div_mod(count, &ranges);
        let (c, rest) = Index::var(k).div_mod(kernel * kernel, &ranges);
        let (kh, kw) = rest.div_mod(kernel, &ranges);
        let y = r.times(stride).plus(&kh.times(dilation)).offset(-pad);
        let x = x.times(stride).plus(&kw.times(dilation)).offset(-pad);
        let at = c.times(side * side).plus(&y.times(side)).plus(&x);
        let guard = |index: Index| Guard { index, lo: 0, hi: side };
        let guards = if pad > 0 { vec![guard(y), guard(x)] } else { vec![] };
        let v = s.push(ValueOp::Load { operand: 0, at, guards }, DType::F32);
        Windows::find(&s, v, m, k)
    }

    #[test]
    fn places_of_an_image() {
        for (stride, dilation, pad) in [(1, 1, 1), (2, 1, 1), (1, 2, 0), (2, 1, 0), (3, 2, 2)] {
            let (s, w) = image(5, 16, 3, stride, dilation, pad).expect("windows");
            assert_eq!((w.along.step, w.along.hop, w.down.step, w.down.hop), (stride, dilation, stride, dilation));
            assert_eq!((w.nest.as_slice(), w.divides(), w.inner()), ([5, 3, 3].as_slice(), true, 9));
            let ValueOp::Load { at, guards, .. } = &s.value(w.value).op else { panic!("a load") };
            let strides: Vec<_> = [w.free[0].1, w.down.axis, w.along.axis].map(|v| at.stride(v)).into();
            assert_eq!(strides, [Some(256), Some(16), Some(1)]);
            assert_eq!(guards.len(), if pad > 0 { 2 } else { 0 });
        }
    }

    #[test]
    fn rows_of_the_image_under_rows_of_the_result() {
        let (_, w) = image(4, 28, 7, 2, 1, 3).expect("windows");
        assert_eq!((w.under(1), w.under(2), w.down.extent), (7, 9, 33));
    }
}
