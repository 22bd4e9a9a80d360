//! Tiles of products, which `schedule.tile` and `tile_shape=` ask for: one check for both.

use tessera_base::{Code, Diagnostic, Limits, Span};
use tessera_core::ir::{TExpr, TKind};
use tessera_core::ty::Ty;
use tessera_ops::surface::OpDef;

/// Sides of tiles of 16-bit elements are multiples of this.
const LINE: u64 = 64;
/// The longest side that is a number at all.
const SIDE_MAX: i64 = 1 << 40;
const SIDES: [&str; 3] = ["rows (m)", "columns (n)", "depth (k)"];

/// How a program asks for a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// `schedule.tile(…)`, for whatever follows.
    Directive,
    /// `tile_shape=…` of one operator, a product or another.
    Keyword { product: bool },
}

impl Asked {
    /// For one operator.
    pub fn of(def: &OpDef) -> Asked {
        Asked::Keyword { product: def.factors().is_some() }
    }

    /// The tile as the program would write it.
    fn written(self, sizes: [u64; 3]) -> String {
        let [m, n, k] = sizes;
        match self {
            Asked::Directive => format!("`schedule.tile(({m}, {n}, {k}))`"),
            Asked::Keyword { .. } => format!("`tile_shape=({m}, {n}, {k})`"),
        }
    }
}

/// The sizes that a program gives: positive ints that are known, three for a product; elsewhere
/// those of the last dims. E0504 for anything else.
pub fn sizes(value: &TExpr, asked: Asked) -> Result<Vec<u64>, Diagnostic> {
    // Of a variable the types know the numbers.
    let (several, items): (bool, Vec<(&Ty, Span)>) = match (&value.kind, &value.ty) {
        (TKind::Tuple(items) | TKind::List(items), _) => (true, items.iter().map(|e| (&e.ty, e.span)).collect()),
        (_, Ty::Tuple(types)) => (true, types.iter().map(|ty| (ty, value.span)).collect()),
        (_, ty) => (false, vec![(ty, value.span)]),
    };
    let example = format!("for example {}", asked.written([128, 128, 64]));
    let product = asked == (Asked::Keyword { product: true });
    if items.is_empty() || items.len() > 3 || product && items.len() < 3 {
        let wanted = if product { "three sizes: rows, columns and depth" } else { "one to three sizes" };
        let found = match items.len() {
            1 if several || matches!(value.ty, Ty::Int(_)) => "one is given".into(),
            1 => format!("this is `{}`", value.ty),
            n => format!("{n} are given"),
        };
        let text = format!("a tile{} has {wanted}, and {found}", if product { " of a product" } else { "" });
        return Err(Diagnostic::new(Code::E0504, value.span, text).help(example));
    }
    let three = items.len() == 3;
    let side = |i: usize| if three { format!("the {} of a tile", SIDES[i]) } else { "a side of a tile".into() };
    let one = |(i, (ty, at)): (usize, (&Ty, Span))| {
        let at = if at.is_none() { value.span } else { at };
        let Some(n) = ty.const_int() else {
            let what = match ty {
                Ty::Int(_) => "this int is known only when the program runs".into(),
                ty => format!("this is `{ty}`"),
            };
            let text = format!("{} must be an int that is known before the program runs", side(i));
            return Err(Diagnostic::new(Code::E0504, at, text).here(what).help(example.clone()));
        };
        if !(1..=SIDE_MAX).contains(&n) {
            let text = format!("{} is {n}, and must be at least 1", side(i));
            return Err(Diagnostic::new(Code::E0504, at, text).help(example.clone()));
        }
        Ok(n as u64)
    };
    items.into_iter().enumerate().map(one).collect()
}

/// What is wrong with a tile for a product of elements of `bytes` bytes: E0506 where it does not fit
/// the scratch memory, W0502 where it does not suit 16-bit elements. A tile that is larger than the
/// operands is cut to them and no mistake.
pub fn misfit(limits: &Limits, sizes: &[u64], bytes: u64, asked: Asked, span: Span) -> Option<Diagnostic> {
    let &[m, n, k] = sizes else { return None };
    let wide = bytes.max(4);
    let needs = scratch([m, n, k], wide);
    let &Limits { target, scratch_bytes: room, .. } = limits;
    if !fits([m, n, k], wide, room) {
        let near = nearest_tile([m, n, k], wide, room);
        return Some(
            Diagnostic::new(Code::E0506, span, format!("tiles of {m}×{n}×{k} do not fit the scratch memory"))
                .note(format!(
                    "they need {needs} bytes: {m}×{k} elements of the left operand and {m}×{n} accumulators, of {wide} bytes each"
                ))
                .note(format!("a thread of the target `{target}` has {room} bytes"))
                .help(format!("the nearest tile that fits is {}", asked.written(near))),
        );
    }
    if bytes != 2 || sizes.iter().all(|t| t.is_multiple_of(LINE)) {
        return None;
    }
    let up = [m, n, k].map(|t| t.next_multiple_of(LINE));
    let suits = if fits(up, wide, room) { up } else { [m, n, k].map(|t| (t / LINE * LINE).max(LINE)) };
    Some(
        Diagnostic::new(Code::W0502, span, format!("tiles of {m}×{n}×{k} do not suit 16-bit elements"))
            .note("multiples of 64 fill whole cache lines and, on a GPU, whole 128-byte rows")
            .help(format!("write {}", asked.written(suits))),
    )
}

/// Bytes of the elements that a product multiplies: those of its first factor.
pub fn element_bytes(e: &TExpr) -> u64 {
    let bytes = |t: &Ty| match t {
        Ty::Tensor(t) => t.dtype.map(|d| d.bytes() as u64),
        _ => None,
    };
    let mut out = None;
    tessera_core::walk::each_child(e, &mut |c| {
        let items = if let TKind::Tuple(items) | TKind::List(items) = &c.kind { &items[..] } else { &[] };
        out = out.or(bytes(&c.ty)).or(items.iter().find_map(|i| bytes(&i.ty)));
    });
    out.or(bytes(&e.ty)).unwrap_or(4)
}

/// Bytes that a point of the grid keeps: the packed block of the left operand, and accumulators.
fn scratch([m, n, k]: [u64; 3], bytes: u64) -> u128 {
    let (m, n, k) = (u128::from(m), u128::from(n), u128::from(k));
    m.saturating_mul(n.saturating_add(k)).saturating_mul(u128::from(bytes))
}

fn fits(tile: [u64; 3], bytes: u64, room: u64) -> bool {
    scratch(tile, bytes) <= u128::from(room)
}

/// The tile that fits: the longest side is halved until it does, then takes what room is left.
fn nearest_tile(mut tile: [u64; 3], bytes: u64, room: u64) -> [u64; 3] {
    let mut last = (0, tile[0]);
    while !fits(tile, bytes, room) {
        let longest = (0..3).rev().max_by_key(|&i| tile[i]).unwrap_or(0);
        last = (longest, tile[longest]);
        tile[longest] = (tile[longest] / 2).max(1);
    }
    let (at, before) = last;
    // Between what fits and what did not, in steps of 16.
    let (mut low, mut high) = (tile[at] / 16, before / 16);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        let mut other = tile;
        other[at] = middle * 16;
        if fits(other, bytes, room) { low = middle } else { high = middle }
    }
    tile[at] = tile[at].max(low * 16);
    tile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_tile_fits_and_is_no_smaller_than_needed() {
        for tile in [[4096, 4096, 64], [100_000, 16, 16], [512, 8192, 8192], [8192; 3], [1 << 40; 3]] {
            let room = tessera_base::limits::CPU.scratch_bytes;
            let near = nearest_tile(tile, 4, room);
            assert!(fits(near, 4, room), "{near:?}");
            assert!(scratch(near, 4) * 3 > u128::from(room), "{near:?}");
        }
    }
}
