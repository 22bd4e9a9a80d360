//! Random words and what is drawn from them are the reference's, at any place of a block, of one key and of many, also
//! under random schedules.

use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction};
use tessera_tests::compare::Bench;
use tessera_tests::laws::hold;
use tessera_tests::random_graph::{Builder, Case, elems};
use tessera_tests::sweep::checked;

fn keys(b: &mut Builder, batch: &[u64]) -> NodeId {
    let shape = [batch, &[2]].concat();
    let bytes = (0..elems(&shape)).flat_map(|_| b.random.word().to_le_bytes()).collect();
    b.input_of(&shape, DType::I64, bytes, false)
}

/// Words of a shape, seen from somewhere, in arithmetic.
fn case(seed: u64) -> Case {
    let mut b = Builder::plain(seed);
    let batch: Vec<u64> = (0..b.random.below(3)).map(|_| b.random.pick(&[1, 2, 5, 19])).collect();
    let own: Vec<u64> = (0..1 + b.random.below(3)).map(|_| b.random.pick(&[1, 2, 3, 4, 7, 32, 37, 66, 129])).collect();
    let key = keys(&mut b, &batch);
    let shape = [&batch[..], &own].concat();
    let dtype = b.random.pick(&[DType::I64, DType::I64, DType::I32, DType::I16, DType::U8]);
    let mut x = b.push(Prim::RandomBits, &[key], &shape, dtype);
    let mut shape = shape;
    match b.random.below(4) {
        // A part that begins anywhere in a block.
        0 => {
            let start: Vec<i64> = shape.iter().map(|&n| b.random.below(n as usize) as i64).collect();
            let step: Vec<i64> = shape.iter().map(|_| b.random.pick(&[1, 1, 2])).collect();
            let sizes: Vec<u64> = shape
                .iter()
                .zip(start.iter().zip(&step))
                .map(|(n, (a, s))| (n - *a as u64).div_ceil(*s as u64))
                .collect();
            x = b.push(Prim::Slice { start, step }, &[x], &sizes, dtype);
            shape = sizes;
        }
        1 => {
            let perm: Vec<usize> = (0..shape.len()).rev().collect();
            shape.reverse();
            x = b.push(Prim::Transpose { perm }, &[x], &shape, dtype);
        }
        _ => {}
    }
    let f = b.push(Prim::Cast, &[x], &shape, DType::F32);
    let y = b.push(Prim::Map(MapOp::cos), &[f], &shape, DType::F32);
    let last = shape.len() - 1;
    let sum = b.push(Prim::Reduce { kind: Reduction::Sum, axes: vec![last] }, &[f], &shape[..last], DType::F32);
    b.graph.outputs = match b.random.below(3) {
        0 => vec![x],
        1 => vec![y],
        _ => vec![sum, y],
    };
    Case { graph: b.graph, inputs: b.data }
}

#[test]
fn words_are_the_references() {
    hold("random words", (0..500).map(case).collect());
}

#[test]
fn under_any_schedule() {
    let mut bench = Bench::new();
    let mut wrong = vec![];
    for seed in 500..650 {
        bench.set_directives(Some(seed));
        if let Err(d) = checked(&mut bench, &case(seed)) {
            wrong.push(format!("{seed}: {}", d.line()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
