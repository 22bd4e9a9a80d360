//! Schedules next to a schedule: one directive changed.

use tessera_ir::index::Var;
use tessera_ir::schedule::{Directive, Schedule, ValueOp};
use tessera_ops::prim::fold::block;

/// The directives of the neighbours, those that usually matter most first.
pub fn neighbours(s: &Schedule) -> Vec<Vec<Directive>> {
    let mut out = vec![];
    if s.values.iter().any(|v| matches!(v.op, ValueOp::Dot { .. })) {
        product(s, &mut out);
    } else {
        loops(s, &mut out);
    }
    unroll(s, &mut out);
    grain(s, &mut out);
    out
}

/// The directives with each one that `change` gives something for replaced by that.
fn replaced(s: &Schedule, out: &mut Vec<Vec<Directive>>, change: &dyn Fn(&Directive) -> Vec<Directive>) {
    for (i, d) in s.directives.iter().enumerate() {
        for new in change(d) {
            let mut all = s.directives.clone();
            all[i] = new;
            out.push(all);
        }
    }
}

/// With the directive where there is none of it, without it where there is.
fn toggled(s: &Schedule, out: &mut Vec<Vec<Directive>>, d: Directive) {
    let mut all = s.directives.clone();
    match all.iter().position(|have| *have == d) {
        Some(at) => drop(all.remove(at)),
        None => all.push(d),
    }
    out.push(all);
}

/// Half, double, a quarter, four times a size, between 1 and the extent.
fn sizes(size: u64, extent: u64) -> Vec<u64> {
    let extent = extent.max(1);
    let mut out: Vec<u64> = [size / 2, size * 2, size / 4, size * 4]
        .into_iter()
        .map(|n| n.clamp(1, extent))
        .filter(|n| *n != size)
        .collect();
    out.dedup();
    out
}

/// Blocks of a product's steps that differ from those of `now` steps: of whole leaves.
fn blocks(s: &Schedule, axis: Var, now: u64, sizes: Vec<u64>) -> Vec<u64> {
    let dot = s.values.iter().find_map(|v| match v.op {
        ValueOp::Dot { axis: k, order, leaf, .. } if k == axis => Some((order, leaf)),
        _ => None,
    });
    let Some((order, leaf)) = dot else { return sizes };
    let whole = |size: u64| block(size, s.extent(axis), leaf, order.unit().max(16));
    let mut out: Vec<u64> = sizes.into_iter().map(whole).filter(|n| *n != whole(now)).collect();
    out.sort_unstable();
    out.dedup();
    out
}

fn tiles(s: &Schedule, out: &mut Vec<Vec<Directive>>) {
    replaced(s, out, &|d| match d {
        Directive::Tile { axis, size } => {
            sizes(*size, s.extent(*axis)).into_iter().map(|size| Directive::Tile { axis: *axis, size }).collect()
        }
        _ => vec![],
    });
}

fn product(s: &Schedule, out: &mut Vec<Vec<Directive>>) {
    toggled(s, out, Directive::Pack { operand: 0 });
    toggled(s, out, Directive::Pack { operand: 1 });
    tiles(s, out);
    replaced(s, out, &|d| match d {
        Directive::Registers { rows, vectors } => {
            [(14, 2), (9, 3), (6, 4), (28, 1), (8, 3), (12, 2), (4, 4), (rows / 2, *vectors)]
                .into_iter()
                .filter(|(r, v)| *r > 0 && (r, v) != (rows, vectors))
                .map(|(rows, vectors)| Directive::Registers { rows, vectors })
                .collect()
        }
        Directive::Steps { unroll, distance } => {
            let other = |n: u32| move |m: &u32| *m != n;
            let unrolls = [2, 4, 8].into_iter().filter(other(*unroll));
            let distances = [0, 16, 32, 64].into_iter().filter(other(*distance));
            let unrolled = unrolls.map(|unroll| Directive::Steps { unroll, distance: *distance });
            unrolled.chain(distances.map(|distance| Directive::Steps { unroll: *unroll, distance })).collect()
        }
        Directive::Block { axis, size } => blocks(s, *axis, *size, sizes(*size, s.extent(*axis)))
            .into_iter()
            .map(|size| Directive::Block { axis: *axis, size })
            .collect(),
        _ => vec![],
    });
    let depth = s.values.iter().find_map(|v| if let ValueOp::Dot { axis, .. } = v.op { Some(axis) } else { None });
    if let Some(axis) = depth.filter(|_| !s.directives.iter().any(|d| matches!(d, Directive::Block { .. }))) {
        for size in blocks(s, axis, s.extent(axis), vec![256, 512]) {
            out.push([&s.directives[..], &[Directive::Block { axis, size }]].concat());
        }
    }
    toggled(s, out, Directive::Swap);
}

fn loops(s: &Schedule, out: &mut Vec<Vec<Directive>>) {
    replaced(s, out, &|d| match d {
        Directive::Vectorize { axis, lanes } => [lanes * 2, lanes / 2, lanes * 4]
            .into_iter()
            .filter(|n| (2..=64).contains(n))
            .map(|lanes| Directive::Vectorize { axis: *axis, lanes })
            .collect(),
        _ => vec![],
    });
    tiles(s, out);
    // An axis without a tile lies inside each point; the grid may divide it too.
    let tiled = |v: Var| s.directives.iter().any(|d| matches!(d, Directive::Tile { axis, .. } if *axis == v));
    for axis in (0..s.axes.len() as u32).map(Var).filter(|v| !s.axes[v.0 as usize].reduced && s.extent(*v) > 1) {
        if !tiled(axis) {
            let size = s.extent(axis).div_ceil(8);
            out.push([&s.directives[..], &[Directive::Tile { axis, size }]].concat());
        }
        // Along another axis.
        replaced(s, out, &|d| match d {
            Directive::Vectorize { axis: have, lanes } if *have != axis => {
                vec![Directive::Vectorize { axis, lanes: *lanes }]
            }
            _ => vec![],
        });
    }
    replaced(s, out, &|d| match d {
        Directive::Order(axes) if axes.len() > 1 => (1..axes.len())
            .rev()
            .map(|i| {
                let mut axes = axes.clone();
                axes.swap(i - 1, i);
                Directive::Order(axes)
            })
            .collect(),
        _ => vec![],
    });
    toggled(s, out, Directive::Stream);
    if s.values.iter().any(|v| matches!(v.op, ValueOp::Reduce { .. })) {
        toggled(s, out, Directive::SplitReduction);
        toggled(s, out, Directive::Overlap);
    }
}

fn unroll(s: &Schedule, out: &mut Vec<Vec<Directive>>) {
    let rest: Vec<Directive> = s.directives.iter().filter(|d| !matches!(d, Directive::Unroll(_))).cloned().collect();
    for factor in [2, 4] {
        out.push([&rest[..], &[Directive::Unroll(factor)]].concat());
    }
    if rest.len() < s.directives.len() {
        out.push(rest);
    }
}

fn grain(s: &Schedule, out: &mut Vec<Vec<Directive>>) {
    replaced(s, out, &|d| match d {
        Directive::Grain(n) => {
            [n / 4, n.saturating_mul(4)].into_iter().filter(|n| *n > 0).map(Directive::Grain).collect()
        }
        _ => vec![],
    });
}
