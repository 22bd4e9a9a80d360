//! Fourier transforms with what is computed on their way in and out: every kind, short and long lengths, lines that are
//! rows, columns and neither, more and fewer of them than lanes, axes that move, twists, half spectra cut short.

use std::sync::Arc;
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::fft::{plan, twist_tables};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Fft, FftKind, Prim};
use tessera_tests::laws::hold;
use tessera_tests::random::{Fill, Random};
use tessera_tests::random_graph::{Builder, Case, elems};

const KINDS: [FftKind; 4] = [FftKind::Forward, FftKind::Inverse, FftKind::RealForward, FftKind::RealInverse];

/// A transform of a tensor: its shape, the axis and where it goes, how many values leave.
#[derive(Clone)]
struct Lines {
    kind: FftKind,
    shape: Vec<u64>,
    axis: usize,
    to: usize,
    points: u64,
    wanted: u64,
    twist: bool,
}

fn lines(kind: FftKind, shape: &[u64], axis: usize) -> Lines {
    let points = if kind == FftKind::RealInverse { 2 * (shape[axis] - 1) } else { shape[axis] };
    let wanted = if kind == FftKind::RealForward { points / 2 + 1 } else { points };
    Lines { kind, shape: shape.to_vec(), axis, to: axis, points, wanted, twist: false }
}

fn input(b: &mut Builder, shape: &[u64], dtype: DType) -> NodeId {
    let fill = b.random.pick(&[Fill::Small, Fill::Ordinary, Fill::Ordinary, Fill::Wide, Fill::Special]);
    let bytes = b.random.elements(dtype, elems(shape), fill);
    b.input_of(shape, dtype, bytes, false)
}

fn table(b: &mut Builder, values: &[f32]) -> NodeId {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    b.push(Prim::Literal(Arc::from(bytes)), &[], &[values.len() as u64], DType::F32)
}

fn map(b: &mut Builder, op: MapOp, args: &[NodeId]) -> NodeId {
    let ty = b.ty(args[0]);
    if ty.dtype != DType::C64 {
        return b.push(Prim::Map(op), args, &ty.shape, ty.dtype);
    }
    // Of complex numbers their parts.
    let parts: Vec<[NodeId; 2]> = args
        .iter()
        .map(|x| [false, true].map(|imag| b.push(Prim::Part { imag }, &[*x], &ty.shape, DType::F32)))
        .collect();
    let out = match (op, &parts[..]) {
        (MapOp::mul, [[a, b0], [c, d]]) => {
            let products = [[*a, *c], [*b0, *d], [*a, *d], [*b0, *c]].map(|p| map(b, MapOp::mul, &p));
            [map(b, MapOp::sub, &products[..2]), map(b, MapOp::add, &products[2..])]
        }
        _ => [0, 1].map(|part| {
            let args: Vec<NodeId> = parts.iter().map(|p| p[part]).collect();
            map(b, op, &args)
        }),
    };
    b.push(Prim::Complex, &out, &ty.shape, DType::C64)
}

/// Numbers of a shape: as they lie, one for each position of one axis, with zeros around them, windows over fewer of
/// them, or in another order of dims.
fn numbers(b: &mut Builder, shape: &[u64], axis: usize, dtype: DType) -> NodeId {
    let rank = shape.len();
    match b.random.below(6) {
        0 => {
            let dim = if b.random.once_in(2) { axis } else { b.random.below(rank) };
            let x = input(b, &[shape[dim]], dtype);
            b.push(Prim::Broadcast { dims: vec![dim] }, &[x], shape, dtype)
        }
        1 if dtype == DType::F32 && shape[axis] > 2 => {
            let mut inner = shape.to_vec();
            let (mut low, mut high) = (vec![0; rank], vec![0; rank]);
            (low[axis], high[axis]) = (1, b.random.below(2) as u64);
            inner[axis] -= low[axis] + high[axis];
            let x = input(b, &inner, dtype);
            let zero = b.full(&[], dtype);
            b.push(Prim::Pad { low, high }, &[x, zero], shape, dtype)
        }
        2 => {
            let perm: Vec<usize> = (0..rank).rev().collect();
            let from: Vec<u64> = perm.iter().map(|&d| shape[d]).collect();
            let x = input(b, &from, dtype);
            b.push(Prim::Transpose { perm }, &[x], shape, dtype)
        }
        3 if rank == 2 && axis == 1 && dtype == DType::F32 => {
            let hop = 1 + b.random.below(3) as u64;
            let x = input(b, &[hop * (shape[0] - 1) + shape[1]], dtype);
            b.push(Prim::Windows { stride: vec![hop], dilation: vec![1] }, &[x], shape, dtype)
        }
        4 if dtype == DType::F32 => {
            let narrow = b.random.pick(&[DType::Bf16, DType::I32, DType::F64, DType::Bool]);
            let x = input(b, shape, narrow);
            b.push(Prim::Cast, &[x], shape, dtype)
        }
        _ => input(b, shape, dtype),
    }
}

/// What the lines are made of.
fn before(b: &mut Builder, of: &Lines) -> NodeId {
    let dtype = if of.kind == FftKind::RealForward { DType::F32 } else { DType::C64 };
    let x = match b.random.below(4) {
        0 if dtype == DType::C64 => {
            let re = numbers(b, &of.shape, of.axis, DType::F32);
            b.push(Prim::Cast, &[re], &of.shape, dtype)
        }
        1 if dtype == DType::C64 => {
            let parts = [0; 2].map(|_| numbers(b, &of.shape, of.axis, DType::F32));
            b.push(Prim::Complex, &parts, &of.shape, dtype)
        }
        _ => numbers(b, &of.shape, of.axis, dtype),
    };
    match b.random.below(4) {
        0 => {
            let by = numbers(b, &of.shape, of.axis, dtype);
            map(b, MapOp::mul, &[x, by])
        }
        1 if dtype == DType::F32 => map(b, MapOp::tanh, &[x]),
        _ => x,
    }
}

/// What becomes of the results.
fn after(b: &mut Builder, of: &Lines, y: NodeId) -> NodeId {
    let ty = b.ty(y);
    let shape = ty.shape.clone();
    let y = match b.random.below(5) {
        0 => {
            let by = numbers(b, &shape, of.to, ty.dtype);
            map(b, MapOp::mul, &[y, by])
        }
        1 => {
            let other = numbers(b, &shape, of.to, ty.dtype);
            map(b, MapOp::sub, &[other, y])
        }
        _ => y,
    };
    match b.random.below(4) {
        0 if ty.dtype == DType::C64 => {
            let imag = b.random.once_in(2);
            b.push(Prim::Part { imag }, &[y], &shape, DType::F32)
        }
        1 if ty.dtype == DType::C64 => {
            let parts = [false, true].map(|imag| b.push(Prim::Part { imag }, &[y], &shape, DType::F32));
            let squares = parts.map(|p| map(b, MapOp::mul, &[p, p]));
            map(b, MapOp::add, &squares)
        }
        2 if ty.dtype == DType::F32 => b.push(Prim::Cast, &[y], &shape, DType::Bf16),
        _ => y,
    }
}

fn case(seed: u64, of: &Lines, plain: bool) -> Case {
    let mut b = Builder::plain(seed);
    let dtype = if of.kind == FftKind::RealForward { DType::F32 } else { DType::C64 };
    let x = if plain { input(&mut b, &of.shape, dtype) } else { before(&mut b, of) };
    let plan = plan(of.kind, of.points).unwrap_or_else(|| panic!("{} points have no plan", of.points));
    let mut operands = vec![x, table(&mut b, &plan.table())];
    if of.twist {
        operands.extend(twist_tables(of.points, of.shape[of.axis + 1]).map(|t| table(&mut b, &t)));
    }
    let mut shape = of.shape.clone();
    shape.remove(of.axis);
    shape.insert(of.to, of.wanted);
    let scale = b.random.pick(&[1.0, 0.25, f64::from(1.0f32 / 3.0)]);
    let result = if of.kind == FftKind::RealInverse { DType::F32 } else { DType::C64 };
    let fft = Fft { kind: of.kind, axis: of.axis, to: of.to, points: of.points, scale };
    let y = b.push(Prim::Fft(fft), &operands, &shape, result);
    let y = if plain { y } else { after(&mut b, of, y) };
    b.graph.outputs = vec![y];
    b.graph.name = format!("transform_{seed}");
    Case { graph: b.graph, inputs: b.data }
}

#[test]
fn every_short_length_in_rows_and_columns() {
    let mut cases = vec![];
    for n in (1..=20).chain([24, 31, 32, 48, 62, 64]) {
        for rows in [1u64, 2, 5, 21] {
            for kind in [FftKind::Forward, FftKind::Inverse] {
                cases.push(lines(kind, &[rows, n], 1));
                cases.push(lines(kind, &[2, n, rows], 1));
            }
        }
    }
    for n in (2..=20).step_by(2).chain([30, 32, 50, 62, 64]) {
        for rows in [1u64, 3, 19] {
            for kept in [1, 2, n / 4 + 1, n / 2, n / 2 + 1] {
                let cut = |shape: &[u64], axis| Lines { wanted: kept, ..lines(FftKind::RealForward, shape, axis) };
                cases.push(cut(&[rows, n], 1));
                cases.push(cut(&[n, rows], 0));
                let short =
                    |shape: &[u64], axis| Lines { points: n, wanted: n, ..lines(FftKind::RealInverse, shape, axis) };
                cases.push(short(&[rows, kept], 1));
                cases.push(short(&[kept, rows], 0));
            }
        }
    }
    hold("transforms", cases.iter().enumerate().map(|(i, c)| case(i as u64, c, true)).collect());
}

#[test]
fn twists_turned_results_and_longer_lengths() {
    use FftKind::*;
    let mut cases = vec![];
    for (n, columns) in [(4, 16), (6, 5), (32, 40), (3, 1)] {
        cases.push(Lines { twist: columns > 1, ..lines(Forward, &[3, n, columns], 1) });
        cases.push(Lines { twist: columns > 1, ..lines(Inverse, &[n, columns], 0) });
        cases.push(Lines { to: 1, ..lines(Forward, &[3, columns, n], 2) });
        cases.push(Lines { to: 0, ..lines(Inverse, &[columns, n], 1) });
        cases.push(Lines { to: 2, ..lines(Forward, &[n, columns, 3], 0) });
    }
    for n in [100, 128, 240, 512, 2048] {
        cases.push(lines(Forward, &[3, n], 1));
        cases.push(lines(RealForward, &[n, 2], 0));
        cases.push(lines(RealInverse, &[9, n / 2 + 1], 1));
    }
    hold("longer transforms", cases.iter().enumerate().map(|(i, c)| case(i as u64, c, true)).collect());
}

#[test]
fn with_what_is_before_and_after_them() {
    let mut random = Random::new(29);
    let mut cases = vec![];
    while cases.len() < 400 {
        let kind = random.pick(&KINDS);
        let n = random.pick(&[2, 4, 6, 8, 9, 10, 12, 15, 16, 20, 32, 64]);
        let others = [1, 2, 3, 5, 8, 9, 16, 17, 33];
        let mut shape: Vec<u64> = (0..random.below(3)).map(|_| random.pick(&others)).collect();
        let axis = random.below(shape.len() + 1);
        shape.insert(axis, n);
        let mut of = lines(kind, &shape, axis);
        if plan(kind, of.points).is_none() {
            continue;
        }
        if kind == FftKind::RealForward && random.once_in(2) {
            of.wanted = 1 + random.below(of.wanted as usize) as u64;
        }
        of.twist = !kind.real() && axis + 2 == shape.len() && random.once_in(3);
        if !of.twist && random.once_in(4) {
            of.to = random.below(shape.len());
        }
        cases.push(case(cases.len() as u64, &of, false));
    }
    hold("transforms with neighbours", cases);
}
