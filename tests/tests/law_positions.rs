//! Operations at positions from data, extremes, running sums, compensated sums and sorting, of
//! every type, at lengths around vectors, squares, leaves and blocks.

use tessera_base::DType;
use tessera_ir::graph::{NodeId, Policy};
use tessera_ops::prim::{Prim, Reduction};
use tessera_tests::compare::Bench;
use tessera_tests::laws::hold;
use tessera_tests::random::Fill;
use tessera_tests::random_graph::{Builder, Case, elems};

/// Rows before, along and after the axis.
const SHAPES: [[u64; 3]; 14] = [
    [1, 1, 1],
    [1, 17, 1],
    [3, 16, 1],
    [16, 16, 1],
    [17, 33, 1],
    [40, 15, 1],
    [1, 5, 3],
    [2, 9, 33],
    [1, 40, 70],
    [5, 1, 1],
    [1, 70_001, 1],
    [2, 4097, 3],
    [0, 4, 2],
    [1, 131_100, 1],
];

fn real() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|d| !d.is_complex())
}

struct Input {
    b: Builder,
    x: NodeId,
    shape: Vec<u64>,
}

fn input(dtype: DType, shape: [u64; 3], seed: u64, fills: &[Fill]) -> Input {
    let mut b = Builder::plain(seed);
    let fill = b.random.pick(fills);
    let bytes = b.random.elements(dtype, elems(&shape), fill);
    let x = b.input_of(&shape, dtype, bytes, false);
    Input { b, x, shape: shape.to_vec() }
}

const FILLS: [Fill; 4] = [Fill::Small, Fill::Ordinary, Fill::Wide, Fill::Special];

fn finish(mut i: Input, y: NodeId) -> Case {
    i.b.graph.outputs = vec![y];
    Case { graph: i.b.graph, inputs: i.b.data }
}

/// A case for every type and shape; each has a kernel where it has elements.
fn every(what: &str, types: impl Iterator<Item = DType>, native: bool, make: impl Fn(Input, DType) -> Case) {
    let mut cases = vec![];
    for (n, dtype) in types.enumerate() {
        for (m, shape) in SHAPES.into_iter().enumerate() {
            let large = elems(&shape) > 20_000 && (n + m) % 4 != 0;
            if !large || dtype == DType::F32 {
                cases.push(make(input(dtype, shape, (31 * n + m) as u64, &FILLS), dtype));
            }
        }
    }
    for case in cases.iter().filter(|c| !native && c.inputs.iter().all(|i| !i.is_empty())) {
        assert!(!Bench::new().kernels(case).is_empty(), "{what} runs without a kernel: {}", case.graph);
    }
    hold(what, cases);
}

fn without_middle(shape: &[u64]) -> Vec<u64> {
    vec![shape[0], shape[2]]
}

#[test]
fn extremes() {
    for largest in [true, false] {
        every("extremes", real(), false, |mut i, _| {
            let y = i.b.push(Prim::ArgReduce { largest, axis: 1 }, &[i.x], &without_middle(&i.shape), DType::I64);
            finish(i, y)
        });
    }
}

#[test]
fn running_sums() {
    for kind in [Reduction::Sum, Reduction::Prod] {
        every("running sums", real(), false, |mut i, dtype| {
            let to = if dtype == DType::Bool { DType::I64 } else { dtype };
            let shape = i.shape.clone();
            let y = i.b.push(Prim::Cumulate { kind, axis: 1 }, &[i.x], &shape, to);
            finish(i, y)
        });
    }
}

/// `count` positions of a dim, also from its end; one in a hundred cases has one out of range.
fn positions(i: &mut Input, shape: &[u64], size: u64) -> NodeId {
    let wrong = i.b.random.once_in(100);
    let mut bytes: Vec<u8> = vec![];
    for _ in 0..elems(shape) {
        let at = i.b.random.below(2 * size.max(1) as usize) as i64 - size as i64;
        bytes.extend(at.to_le_bytes());
    }
    if let (true, Some(first)) = (wrong, bytes.first_chunk_mut::<8>()) {
        *first = (size as i64).to_le_bytes();
    }
    i.b.input_of(shape, DType::I64, bytes, false)
}

#[test]
fn reads_at_positions() {
    every("taking", DType::ALL.into_iter(), false, |mut i, dtype| {
        let [before, n, after] = i.shape[..] else { unreachable!() };
        let index = positions(&mut i, &[7], n);
        let y = i.b.push(Prim::Take { axis: 1 }, &[i.x, index], &[before, 7, after], dtype);
        finish(i, y)
    });
    every("taking along", DType::ALL.into_iter(), false, |mut i, dtype| {
        let [before, n, after] = i.shape[..] else { unreachable!() };
        let index = positions(&mut i, &[before, 5, after], n);
        let y = i.b.push(Prim::TakeAlong { axis: 1 }, &[i.x, index], &[before, 5, after], dtype);
        finish(i, y)
    });
}

#[test]
fn additions_at_positions() {
    every("scattering", DType::ALL.into_iter(), true, |mut i, dtype| {
        let [before, n, after] = i.shape[..] else { unreachable!() };
        let shape = i.shape.clone();
        let fill = i.b.random.pick(&FILLS);
        let index = positions(&mut i, &[before, 9, after], n);
        let bytes = i.b.random.elements(dtype, elems(&[before, 9, after]), fill);
        let source = i.b.input_of(&[before, 9, after], dtype, bytes, false);
        let y = i.b.push(Prim::ScatterAddAlong { axis: 1 }, &[i.x, index, source], &shape, dtype);
        finish(i, y)
    });
    for add in [true, false] {
        every("scattering rows", DType::ALL.into_iter(), add, |mut i, dtype| {
            let [before, n, after] = i.shape[..] else { unreachable!() };
            let shape = i.shape.clone();
            let (first, second) = (positions(&mut i, &[300], before), positions(&mut i, &[300], n));
            let fill = i.b.random.pick(&FILLS);
            let bytes = i.b.random.elements(dtype, elems(&[300, after]), fill);
            let values = i.b.input_of(&[300, after], dtype, bytes, false);
            let y = i.b.push(Prim::Scatter { add }, &[i.x, values, first, second], &shape, dtype);
            finish(i, y)
        });
    }
}

#[test]
fn blocks_at_positions() {
    every("updates of blocks", DType::ALL.into_iter(), false, |mut i, dtype| {
        let shape = i.shape.clone();
        let sizes: Vec<u64> = shape.iter().map(|&n| if n > 1 { n / 2 } else { n }).collect();
        let fill = i.b.random.pick(&FILLS);
        let bytes = i.b.random.elements(dtype, elems(&sizes), fill);
        let block = i.b.input_of(&sizes, dtype, bytes, false);
        let mut operands = vec![i.x, block];
        let wrong = i.b.random.once_in(20);
        for (n, size) in shape.iter().zip(&sizes) {
            let at = i.b.random.below((n - size) as usize + 1) as i64 + i64::from(wrong);
            operands.push(i.b.input_of(&[], DType::I64, at.to_le_bytes().to_vec(), false));
        }
        let y = i.b.push(Prim::DynamicUpdate, &operands, &shape, dtype);
        let z =
            i.b.push(Prim::DynamicSlice { sizes: sizes.clone() }, &[&[y][..], &operands[2..]].concat(), &sizes, dtype);
        i.b.graph.outputs = vec![y, z];
        Case { graph: i.b.graph, inputs: i.b.data }
    });
}

#[test]
fn sorting() {
    for descending in [true, false] {
        every("sorting", real(), true, |mut i, dtype| {
            let shape = i.shape.clone();
            let y = i.b.push(Prim::Sort { axis: 1, descending }, &[i.x], &shape, dtype);
            let order = i.b.push(Prim::ArgSort { axis: 1, descending }, &[i.x], &shape, DType::I64);
            let first = shape[1].min(5);
            let few = [shape[0], first, shape[2]];
            let best = i.b.push(Prim::Slice { start: vec![0; 3], step: vec![1; 3] }, &[order], &few, DType::I64);
            i.b.graph.outputs = vec![y, best];
            Case { graph: i.b.graph, inputs: i.b.data }
        });
    }
}

#[test]
fn compensated_sums() {
    let floats = || DType::ALL.into_iter().filter(|d| d.is_float());
    for axes in [vec![1], vec![0, 1], vec![0, 1, 2]] {
        every("compensated sums", floats(), false, |mut i, dtype| {
            let shape: Vec<u64> = (0..3).filter(|d| !axes.contains(d)).map(|d| i.shape[d]).collect();
            let sum = Prim::Reduce { kind: Reduction::Sum, axes: axes.clone() };
            let y = i.b.push(sum, &[i.x], &shape, dtype);
            i.b.graph.nodes[y.0 as usize].policy = Policy::KahanSum;
            finish(i, y)
        });
    }
}
