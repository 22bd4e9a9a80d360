//! Parts of the axes of a product: panels of rows and columns, and how their elements lie.

use tessera_ir::index::{Index, Var};

/// Part of an axis in panels: panels `lo..hi` of `size` elements each, of `width` apart.
#[derive(Clone)]
pub struct Part {
    pub lo: Vec<Index>,
    pub hi: Vec<Index>,
    pub size: u32,
}

/// Whole panels of an axis inside a tile, and the ragged one.
pub fn parts(extent: u64, tile: Option<(&Index, u64)>, panel: u32) -> Vec<Part> {
    let (whole, all) = ((extent / panel as u64) as i64, extent.div_ceil(panel as u64) as i64);
    let (mut lo, mut hi) = (vec![], vec![]);
    if let Some((index, size)) = tile {
        let per = (size / panel as u64) as i64;
        lo.push(index.times(per));
        hi.push(index.times(per).offset(per));
    }
    let mut out = vec![];
    for (a, b, size) in [(0, whole, panel), (whole, all, (extent % panel as u64) as u32)] {
        if a < b {
            let with = |bounds: &[Index], limit: i64| bounds.iter().cloned().chain([Index::constant(limit)]).collect();
            out.push(Part { lo: with(&lo, a), hi: with(&hi, b), size });
        }
    }
    out
}

/// A column panel.
pub struct Columns {
    /// Its number, and the one inside the tile.
    pub panel: Index,
    pub inside: Index,
    /// Its first column, and their count.
    pub first: Index,
    pub count: u32,
}

/// A row panel.
pub struct RowPanel {
    /// Its first row, and the number of the panel inside the tile.
    pub first: Index,
    pub inside: Index,
    pub count: u32,
}

/// Elements per step of `axis`, which the caller knows to be even.
pub fn stride(e: &Index, axis: Option<Var>) -> i64 {
    axis.and_then(|a| e.stride(a)).unwrap_or(0)
}

/// Step of the innermost loop, and what is added where an outer one steps.
pub fn hops(nest: &[u64], strides: &[i64]) -> (i64, Vec<(i64, i64)>) {
    let (mut every, mut out) = (1, vec![]);
    for d in (1..nest.len()).rev() {
        every *= nest[d] as i64;
        let extra = strides[d - 1] - strides[d] * nest[d] as i64;
        out.push((every, extra));
    }
    (strides.last().copied().unwrap_or(0), out)
}
