//! Compiled kernels give the bits of the plain evaluation, for every shape and type.

mod support;

use support::{Build, Random, check};
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::map::{Gives, MapOp, kind_of};
use tessera_ops::prim::{Prim, Reduction};

const TYPES: [DType; 11] = [
    DType::F64,
    DType::F32,
    DType::Bf16,
    DType::F16,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::U8,
    DType::Bool,
];

#[test]
fn every_function_of_every_type() {
    let mut random = Random(1);
    for &op in MapOp::ALL {
        for dtype in TYPES {
            if !kind_of(dtype).is_some_and(|k| op.def().takes.accepts(k)) {
                continue;
            }
            let mut b = Build::default();
            let args: Vec<NodeId> = (0..op.def().arity)
                .map(|i| b.input(&[67], if i == 0 && op == MapOp::r#where { DType::Bool } else { dtype }))
                .collect();
            let result = if op.def().gives == Gives::Bool { DType::Bool } else { dtype };
            let root = b.push(Prim::Map(op), &args, &[67], result);
            check(&b, root, &mut random, true);
        }
    }
}

#[test]
fn every_conversion() {
    let mut random = Random(2);
    for from in TYPES {
        for to in TYPES {
            let mut b = Build::default();
            let x = b.input(&[131], from);
            let root = b.push(Prim::Cast, &[x], &[131], to);
            check(&b, root, &mut random, true);
        }
    }
}

/// A random elementwise graph with views.
fn random_views(random: &mut Random) -> (Build, NodeId) {
    let mut b = Build::default();
    let rank = 1 + random.below(3) as usize;
    let mut shape: Vec<u64> = (0..rank).map(|_| [1, 2, 3, 5, 16, 17, 33][random.below(7) as usize]).collect();
    let dtype = [DType::F32, DType::F64, DType::Bf16, DType::I32, DType::U8][random.below(5) as usize];
    let mut x = b.input(&shape, dtype);
    for _ in 0..2 + random.below(5) {
        x = match random.below(9) {
            0 => {
                let mut perm: Vec<usize> = (0..shape.len()).collect();
                perm.rotate_left(1);
                shape = perm.iter().map(|p| shape[*p]).collect();
                b.push(Prim::Transpose { perm }, &[x], &shape, dtype)
            }
            1 => {
                let total: u64 = shape.iter().product();
                let d = (1..=total.min(12)).rev().find(|d| total.is_multiple_of(*d)).unwrap_or(1);
                shape = if random.below(2) == 0 { vec![total] } else { vec![total / d, d] };
                b.push(Prim::Reshape, &[x], &shape, dtype)
            }
            2 => {
                let start: Vec<i64> = shape.iter().map(|d| random.below(*d) as i64).collect();
                let back = random.below(3) == 0;
                let step: Vec<i64> = shape.iter().map(|_| if back { -1 } else { 1 + random.below(2) as i64 }).collect();
                shape = shape
                    .iter()
                    .zip(&start)
                    .zip(&step)
                    .map(|((d, s), p)| if *p < 0 { *s as u64 + 1 } else { (d - *s as u64).div_ceil(*p as u64) })
                    .collect();
                b.push(Prim::Slice { start, step }, &[x], &shape, dtype)
            }
            3 => {
                let low: Vec<u64> = shape.iter().map(|_| random.below(3)).collect();
                let high: Vec<u64> = shape.iter().map(|_| random.below(3)).collect();
                shape = shape.iter().zip(&low).zip(&high).map(|((d, l), h)| d + l + h).collect();
                let pad = b.push(Prim::Full { value: tessera_ops::prim::Scalar::I(3) }, &[], &[], dtype);
                b.push(Prim::Pad { low, high }, &[x, pad], &shape, dtype)
            }
            4 => {
                let axis = random.below(shape.len() as u64) as usize;
                let mut other = shape.clone();
                other[axis] = 1 + random.below(4);
                let y = b.input(&other, dtype);
                shape[axis] += other[axis];
                b.push(Prim::Concat { axis }, &[x, y], &shape, dtype)
            }
            5 => {
                let mut small = shape.clone();
                small.iter_mut().for_each(|d| *d = if random.below(2) == 0 { 1 } else { *d });
                let y = b.input(&small, dtype);
                let y = b.broadcast(y, &(0..shape.len()).collect::<Vec<_>>(), &shape);
                b.map("add", &[x, y])
            }
            6 => {
                let axis = random.below(shape.len() as u64) as usize;
                let i = b.push(Prim::Iota { axis }, &[], &shape, dtype);
                b.map("add", &[i, x])
            }
            7 => {
                let update: Vec<u64> = shape.iter().map(|d| 1 + random.below(*d)).collect();
                let start: Vec<i64> = shape.iter().zip(&update).map(|(d, u)| random.below(d - u + 1) as i64).collect();
                let step = vec![1; shape.len()];
                let u = b.input(&update, dtype);
                b.push(Prim::UpdateSlice { start, step }, &[x, u], &shape, dtype)
            }
            _ => b.map("mul", &[x, x]),
        };
    }
    let root = b.map("add", &[x, x]);
    (b, root)
}

#[test]
fn chains_of_views() {
    for seed in 0..120 {
        let mut random = Random(seed + 1000);
        let (b, root) = random_views(&mut random);
        check(&b, root, &mut random, false);
    }
}

#[test]
fn reductions_of_every_kind_and_axis() {
    let mut random = Random(3);
    let shapes: [&[u64]; 12] = [
        &[7],
        &[4096],
        &[5000],
        &[3, 17],
        &[17, 3],
        &[40, 33],
        &[5, 16, 32],
        &[3, 4100],
        &[4100, 3],
        &[0, 4],
        &[4, 0],
        &[2, 3, 5],
    ];
    for shape in shapes {
        for mask in 1..1u32 << shape.len() {
            let axes: Vec<usize> = (0..shape.len()).filter(|i| mask >> i & 1 == 1).collect();
            for (kind, dtype) in [
                (Reduction::Sum, DType::F32),
                (Reduction::Max, DType::Bf16),
                (Reduction::Prod, DType::F64),
                (Reduction::Sum, DType::I32),
            ] {
                let mut b = Build::default();
                let x = b.input(shape, dtype);
                let y = b.map("neg", &[x]);
                let r = b.reduce(kind, y, &axes);
                let root = b.map("add", &[r, r]);
                check(&b, root, &mut random, kind == Reduction::Max);
            }
        }
    }
    for (kind, dtype) in [
        (Reduction::Min, DType::F32),
        (Reduction::Max, DType::F32),
        (Reduction::Min, DType::U8),
        (Reduction::Prod, DType::I64),
        (Reduction::Any, DType::Bool),
        (Reduction::All, DType::Bool),
        (Reduction::Sum, DType::F16),
        (Reduction::Sum, DType::F8E4M3),
    ] {
        for axes in [vec![0], vec![1], vec![0, 1]] {
            let mut b = Build::default();
            let x = b.input(&[19, 37], dtype);
            let root = b.reduce(kind, x, &axes);
            check(&b, root, &mut random, true);
        }
    }
}

#[test]
fn long_reductions_split_over_the_grid() {
    let mut random = Random(4);
    for (shape, axes) in [
        (vec![70_001u64], vec![0usize]),
        (vec![2, 40_000], vec![1]),
        (vec![40_000, 5], vec![0]),
        (vec![33_000, 20], vec![0]),
    ] {
        let mut b = Build::default();
        let x = b.input(&shape, DType::F32);
        let y = b.map("mul", &[x, x]);
        let r = b.reduce(Reduction::Sum, y, &axes);
        let root = b.map("sqrt", &[r]);
        check(&b, root, &mut random, false);
    }
}

fn softmax(b: &mut Build, x: NodeId, axis: usize) -> NodeId {
    let shape = b.graph.ty(x).shape.clone();
    let dims: Vec<usize> = (0..shape.len()).filter(|i| *i != axis).collect();
    let m = b.reduce(Reduction::Max, x, &[axis]);
    let m = b.broadcast(m, &dims, &shape);
    let d = b.map("sub", &[x, m]);
    let e = b.map("exp", &[d]);
    let s = b.reduce(Reduction::Sum, e, &[axis]);
    let s = b.broadcast(s, &dims, &shape);
    b.map("div", &[e, s])
}

#[test]
fn softmax_rows() {
    let mut random = Random(5);
    for (shape, axis) in [
        (vec![5u64, 33], 1),
        (vec![33, 5], 0),
        (vec![3, 4, 100], 2),
        (vec![2, 5000], 1),
        (vec![40, 6], 0),
        (vec![1, 7], 1),
    ] {
        for dtype in [DType::F32, DType::Bf16] {
            let mut b = Build::default();
            let x = b.input(&shape, dtype);
            let root = softmax(&mut b, x, axis);
            check(&b, root, &mut random, false);
        }
    }
}

/// A product with operands that may be transposed, computed on, and followed by something.
fn product(random: &mut Random, m: u64, n: u64, k: u64, batch: &[u64], dtype: DType) {
    let mut b = Build::default();
    let operand = |b: &mut Build, random: &mut Random, rows: u64, cols: u64| {
        let mut shape = batch.to_vec();
        let rank = batch.len() + 2;
        let flipped = random.below(2) == 1;
        shape.extend(if flipped { [cols, rows] } else { [rows, cols] });
        let mut x = b.input(&shape, dtype);
        if flipped {
            shape.swap(rank - 2, rank - 1);
            let mut perm: Vec<usize> = (0..rank).collect();
            perm.swap(rank - 2, rank - 1);
            x = b.push(Prim::Transpose { perm }, &[x], &shape, dtype);
        }
        if random.below(3) == 0 { b.map("neg", &[x]) } else { x }
    };
    let x = operand(&mut b, random, m, k);
    let y = operand(&mut b, random, k, n);
    let mut root = b.dot(x, y);
    let shape = b.graph.ty(root).shape.clone();
    if random.below(2) == 0 {
        let bias = b.input(&[n], dtype);
        let bias = b.broadcast(bias, &[shape.len() - 1], &shape);
        root = b.map("add", &[root, bias]);
        root = b.map("relu", &[root]);
    }
    check(&b, root, random, false);
}

#[test]
fn products_of_every_shape() {
    let mut random = Random(6);
    let sizes = [1, 2, 3, 7, 14, 15, 16, 17, 29, 31, 32, 33, 40, 65];
    for i in 0..90 {
        let pick = |r: &mut Random| sizes[r.below(sizes.len() as u64) as usize];
        let (m, n, k) = (pick(&mut random), pick(&mut random), pick(&mut random));
        let dtype = [DType::F32, DType::F32, DType::F64, DType::Bf16, DType::I32, DType::F16][i % 6];
        let batch: &[u64] = [&[][..], &[3], &[2, 2]][i % 3];
        product(&mut random, m, n, k, batch, dtype);
    }
    for (m, n, k) in [(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 1), (1, 1, 100)] {
        product(&mut random, m, n, k, &[], DType::F32);
    }
}

#[test]
fn integer_products() {
    let mut random = Random(8);
    for i in 0..12 {
        product(&mut random, 40, 33, 40, &[3], [DType::I32, DType::U8, DType::I64][i % 3]);
    }
}

#[test]
fn products_in_blocks() {
    let mut random = Random(7);
    for (m, n, k) in [(20, 40, 1030), (37, 70, 2100), (3, 5, 3000), (2, 300, 1500)] {
        product(&mut random, m, n, k, &[], DType::F32);
        product(&mut random, m, n, k, &[], DType::Bf16);
    }
}
