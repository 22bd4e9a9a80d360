//! Random per-device bodies: straight lines of operators, collectives and divisions, of which the types say whether the result
//! is that of the whole tensors.

use crate::random::Random;

/// What a name of a body stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// `[B, 4]`, of which the devices have a block along dim 0.
    Rows,
    /// `[B]`, one number of each row.
    Column,
    /// `[4]`.
    Vector,
    /// Of rank 0.
    Number,
}

use Kind::{Column, Number, Rows, Vector};

/// What makes a value out of another one (`{0}`), and its kind.
const STEPS: &[(Kind, Kind, &str)] = &[
    (Rows, Rows, "{0} + 1.0"),
    (Rows, Rows, "op.tanh({0})"),
    (Rows, Rows, "{0} @ w"),
    (Rows, Rows, "{0} * b"),
    (Rows, Rows, "x - {0}"),
    (Rows, Rows, "op.softmax({0}, axis=-1)"),
    (Rows, Rows, "op.softmax({0}, axis=0)"),
    (Rows, Rows, "op.cumsum({0}, axis=0)"),
    (Rows, Rows, "op.cumsum({0}, axis=1)"),
    (Rows, Rows, "op.flip({0}, axis=0)"),
    (Rows, Rows, "op.roll({0}, 1, axis=0)"),
    (Rows, Rows, "op.sort({0}, axis=0)"),
    (Rows, Rows, "op.sort({0}, axis=1)"),
    (Rows, Rows, "op.tril({0})"),
    (Rows, Rows, "{0} - {0}.mean(axis=1, keepdims=True)"),
    (Rows, Rows, "{0} - {0}.mean(axis=0)"),
    (Rows, Rows, "{0} / B"),
    (Rows, Rows, "{0} * (1.0 / B)"),
    (Rows, Rows, "{0} / {0}.shape[0]"),
    (Rows, Rows, "{0} * op.full((B, 1), 2.0)"),
    (Rows, Rows, "op.where({0} > 0.0, {0}, op.zeros((B, 4)))"),
    (Rows, Rows, "{0}.reshape(2 * B, 2).reshape(B, 4)"),
    (Rows, Rows, "{0}.reshape(4, B).T"),
    (Rows, Rows, "{0}.T.reshape(B, 4)"),
    (Rows, Rows, "op.concat([{0}, {0}], axis=0).reshape(B, 8) @ op.ones((8, 4))"),
    (Rows, Rows, "op.pad({0}, [(1, 0), (0, 0)]).reshape((B + 1) * 4)[4:].reshape(B, 4)"),
    (Rows, Rows, "op.scan(lambda c, r: (c + r, c + r), op.zeros((4,)), {0})[1]"),
    (Rows, Rows, "autodiff.vmap(lambda r: r - r.mean())({0})"),
    (Rows, Rows, "op.one_hot(op.argmax({0}, axis=1), 4) + {0}"),
    (Rows, Column, "{0}.sum(axis=1)"),
    (Rows, Column, "{0}.max(axis=1)"),
    (Rows, Column, "{0}.mean(axis=1)"),
    (Rows, Column, "{0} @ b"),
    (Rows, Column, "autodiff.vmap(lambda r: r.mean())({0})"),
    (Rows, Vector, "{0}.sum(axis=0)"),
    (Rows, Vector, "{0}.mean(axis=0)"),
    (Rows, Vector, "{0}.max(axis=0)"),
    (Rows, Vector, "{0}.min(axis=0)"),
    (Rows, Vector, "op.prod({0}, axis=0)"),
    (Rows, Vector, "op.argmax({0}, axis=0).astype(f32)"),
    (Rows, Vector, "op.any({0} > 0.5, axis=0).astype(f32)"),
    (Rows, Vector, "({0} > 0.5).astype(f32).sum(axis=0)"),
    (Rows, Vector, "op.ones((B,)) @ {0}"),
    (Rows, Vector, "op.full((B,), 1.0 / B) @ {0}"),
    (Rows, Vector, "op.scan(lambda c, r: (c + r, r), op.zeros((4,)), {0})[0]"),
    (Rows, Vector, "op.cumsum({0}, axis=0).mean(axis=0)"),
    (Rows, Number, "{0}.sum()"),
    (Rows, Number, "{0}.mean()"),
    (Rows, Number, "({0} * {0}).sum() / B"),
    (Rows, Number, "{0}.sum() / (B * 4)"),
    (Rows, Number, "{0}.sum() / math.sqrt(B)"),
    (Rows, Number, "{0}.sum() / op.ones((B,)).sum()"),
    (Column, Column, "op.exp({0})"),
    (Column, Column, "{0} / B"),
    (Column, Column, "op.cumsum({0}, axis=0)"),
    (Column, Rows, "x * {0}.reshape(B, 1)"),
    (Column, Number, "{0}.sum()"),
    (Column, Number, "{0}.mean()"),
    (Column, Number, "{0}.max()"),
    (Vector, Vector, "{0} * 2.0"),
    (Vector, Vector, "{0} + b"),
    (Vector, Vector, "{0} / B"),
    (Vector, Vector, "op.tanh({0})"),
    (Vector, Vector, "dist.collective.all_reduce({0}, axis=\"dp\")"),
    (Vector, Vector, "dist.collective.all_reduce({0}, axis=\"dp\", op=\"mean\")"),
    (Vector, Vector, "dist.collective.all_reduce({0}, axis=\"dp\", op=\"max\")"),
    (Vector, Vector, "dist.collective.all_reduce({0} / dist.size(\"dp\"), axis=\"dp\")"),
    (Vector, Rows, "x * {0}"),
    (Vector, Number, "{0}.sum()"),
    (Vector, Number, "{0}.mean()"),
    (Number, Number, "{0} * {0}"),
    (Number, Number, "{0} / B"),
    (Number, Number, "{0} * B"),
    (Number, Number, "dist.collective.all_reduce({0}, axis=\"dp\")"),
    (Number, Number, "dist.collective.all_reduce({0}, axis=\"dp\", op=\"mean\")"),
    (Number, Number, "dist.collective.all_reduce({0}, axis=\"dp\", op=\"min\")"),
    (Number, Rows, "x * {0}"),
    (Number, Vector, "op.full((4,), 1.0) * {0}"),
];

/// How results may be annotated.
const RESULTS: &[(Kind, &str)] = &[
    (Rows, "B@dp, 4, f32"),
    (Column, "B@dp, f32"),
    (Vector, "4, f32"),
    (Vector, "4, f32, sum@dp"),
    (Vector, "4@dp, f32"),
    (Number, "f32"),
    (Number, "f32, sum@dp"),
];

/// How many devices the whole tensors are split over where a body is run.
pub const MESHES: [u64; 2] = [2, 4];

/// Whole rows.
const ROWS: u64 = 8;

/// A body of so many steps, as programs that run it on [`MESHES`].
pub fn programs(r: &mut Random, steps: usize) -> Vec<String> {
    let mut known = vec![(Rows, "x".to_owned())];
    let mut lines = vec![];
    for i in 0..steps {
        // The last one is followed, so that bodies are deep.
        let (kind, of) = known[if r.below(3) > 0 { known.len() - 1 } else { r.below(known.len()) }].clone();
        let fit: Vec<_> = STEPS.iter().filter(|s| s.0 == kind).collect();
        let (_, gives, text) = fit[r.below(fit.len())];
        lines.push(format!("    v{i} = {}", text.replace("{0}", &of)));
        known.push((*gives, format!("v{i}")));
    }
    let (kind, last) = known[known.len() - 1].clone();
    let fit: Vec<_> = RESULTS.iter().filter(|s| s.0 == kind).collect();
    let said = fit[r.below(fit.len())].1;
    let whole = if said.contains("sum@") { "dist.complete(y)" } else { "y" };
    let program = |n: &u64| {
        format!(
            "@dist.local\ndef f(x: Tensor[B@dp, 4, f32], w: Tensor[4, 4, f32], b: Tensor[4, f32]) -> Tensor[{said}]:\n\
             {}\n    return {last}\n\n\
             mesh = dist.Mesh(axes=[\"dp\"], devices=range({n}))\n\
             rows = dist.ShardSpec(partition=(0,), mesh_axes=(\"dp\",))\n\
             x = op.sin(op.arange({}.0) * 1.7).reshape({ROWS}, 4)\n\
             y = f(dist.shard(x, rows, mesh=mesh), op.cos(op.arange(16.0)).reshape(4, 4), op.sin(op.arange(4.0) + 0.5))\n\
             print({whole})\n",
            lines.join("\n"),
            ROWS * 4
        )
    };
    MESHES.iter().map(program).collect()
}
