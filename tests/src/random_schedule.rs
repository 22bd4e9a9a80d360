//! Random directives: they decide how fast a kernel is, never what it computes.

use crate::random::Random;
use tessera_ir::index::Var;
use tessera_ir::schedule::{Directive, Schedule, ValueOp};

/// Replaces the directives of a schedule by random ones that its verifier accepts.
pub fn redirect(s: &mut Schedule, random: &mut Random) {
    let product = s.values.iter().any(|v| matches!(v.op, ValueOp::Dot { .. }));
    let axes: Vec<Var> = (0..s.axes.len() as u32).map(Var).collect();
    let (reduced, mut parallel): (Vec<Var>, Vec<Var>) = axes.into_iter().partition(|v| s.axes[v.0 as usize].reduced);
    let mut out = vec![];
    let lanes = if product { random.pick(&[2, 4, 8, 16]) } else { random.pick(&[2, 4, 8, 16, 16, 32, 64]) };
    let along: Vec<Var> = if product { parallel.clone() } else { parallel.iter().chain(&reduced).copied().collect() };
    if !along.is_empty() && !random.once_in(6) {
        out.push(Directive::Vectorize { axis: random.pick(&along), lanes });
    }
    random.shuffle(&mut parallel);
    if random.once_in(2) {
        out.push(Directive::Order(parallel.clone()));
    }
    for &axis in &parallel {
        if random.once_in(2) {
            let most = s.extent(axis).min(70) as usize + 2;
            out.push(Directive::Tile { axis, size: 1 + random.below(most) as u64 });
        }
    }
    if product {
        let most = if random.once_in(3) { 40 } else { 8 };
        let rows = 1 + random.below(most) as u32;
        out.push(Directive::Registers { rows, vectors: 1 + random.below(3) as u32 });
        if random.once_in(2) {
            let (unroll, distance) = (random.pick(&[1, 2, 3, 4, 8, 12]), random.pick(&[0, 1, 32]));
            out.push(Directive::Steps { unroll, distance });
        }
        for &axis in &reduced {
            let most = s.extent(axis).min(100) as usize + 2;
            out.push(Directive::Block { axis, size: 1 + random.below(most) as u64 });
        }
        out.extend([0, 1].into_iter().filter(|_| random.once_in(2)).map(|operand| Directive::Pack { operand }));
    }
    use Directive::{MatrixUnit, Overlap, Prefetch, SplitReduction, Stream, Swap, Windows};
    let rest = [Swap, Windows, SplitReduction, Stream, Prefetch, Overlap, MatrixUnit];
    out.extend(rest.into_iter().filter(|_| random.once_in(2)));
    if random.once_in(4) {
        out.push(Directive::Unroll(random.pick(&[2, 3, 4, 8])));
    }
    out.push(Directive::Grain(1));
    s.directives = out;
}
