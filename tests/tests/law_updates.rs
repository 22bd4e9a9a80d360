//! What writes over a part of a tensor: with what computes the part, at positions of which some are equal, over what was
//! written before, and from the tensor itself. Random shapes, under the schedules of the cost model and random ones.

use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ir::group::GroupKind;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction, Steps};
use tessera_tests::bits::Difference;
use tessera_tests::compare::Bench;
use tessera_tests::laws::hold;
use tessera_tests::random::Fill;
use tessera_tests::random_graph::{Builder, Case, elems};
use tessera_tests::sweep::checked;

const FILLS: [Fill; 3] = [Fill::Small, Fill::Ordinary, Fill::Special];

fn tensor(b: &mut Builder, shape: &[u64], dtype: DType) -> NodeId {
    let fill = b.random.pick(&FILLS);
    let bytes = b.random.elements(dtype, elems(shape), fill);
    b.input_of(shape, dtype, bytes, false)
}

/// Positions below `size`, some from the end, few of them different.
fn positions(b: &mut Builder, shape: &[u64], size: u64) -> NodeId {
    let few = (1 + b.random.below(size as usize)) as i64;
    let one = |b: &mut Builder| match b.random.below(few as usize) as i64 {
        at if b.random.once_in(3) => at - size as i64,
        at => at,
    };
    let bytes = (0..elems(shape)).flat_map(|_| one(b).to_le_bytes()).collect();
    b.input_of(shape, DType::I64, bytes, false)
}

fn start(b: &mut Builder, room: u64) -> NodeId {
    let at = b.random.below(room as usize + 1) as i64;
    let scalar = b.random.once_in(2);
    b.input_of(&[], DType::I64, at.to_le_bytes().to_vec(), scalar)
}

fn shape(b: &mut Builder, rank: usize) -> Vec<u64> {
    (0..rank).map(|_| b.random.pick(&[1, 2, 3, 5, 8, 16, 17, 33])).collect()
}

/// What is written: as it is, or computed elementwise, from a product, from rows, or from complex parts.
fn part(b: &mut Builder, shape: &[u64], dtype: DType) -> NodeId {
    let float = dtype == DType::F32 && shape.len() >= 2;
    match b.random.below(4) {
        1 if dtype.is_float() => {
            let x = tensor(b, shape, dtype);
            b.push(Prim::Map(MapOp::tanh), &[x], shape, dtype)
        }
        2 if float => {
            let (n, k) = (shape[shape.len() - 1], 7);
            let x = tensor(b, &[&shape[..shape.len() - 1], &[k]].concat(), dtype);
            let rank = shape.len();
            let w = tensor(b, &[&shape[..rank - 2], &[k, n]].concat(), dtype);
            let dot = Prim::dot(DType::F32, Steps::All);
            let y = b.push(dot, &[x, w], shape, dtype);
            b.push(Prim::Map(MapOp::relu), &[y], shape, dtype)
        }
        3 if float => {
            let x = tensor(b, shape, dtype);
            let last = shape.len() - 1;
            let sum = b.push(Prim::Reduce { kind: Reduction::Sum, axes: vec![last] }, &[x], &shape[..last], dtype);
            let sum = b.push(Prim::Broadcast { dims: (0..last).collect() }, &[sum], shape, dtype);
            b.push(Prim::Map(MapOp::sub), &[x, sum], shape, dtype)
        }
        _ => tensor(b, shape, dtype),
    }
}

/// A tensor with a part written over.
fn updated(b: &mut Builder, base: NodeId, shape: &[u64], dtype: DType) -> NodeId {
    match b.random.below(3) {
        0 => {
            let depth = 1 + b.random.below(shape.len().min(2));
            let count = match b.random.below(3) {
                0 => vec![3, 7],
                1 => vec![],
                _ => vec![b.random.pick(&[1, 4, 40])],
            };
            let index: Vec<NodeId> = shape[..depth].iter().map(|&n| positions(b, &count, n)).collect();
            let new = part(b, &[&count[..], &shape[depth..]].concat(), dtype);
            b.push(Prim::Scatter { add: false }, &[&[base, new][..], &index].concat(), shape, dtype)
        }
        1 => {
            let sizes: Vec<u64> = shape.iter().map(|&n| 1 + b.random.below(n as usize) as u64).collect();
            let starts: Vec<NodeId> = shape.iter().zip(&sizes).map(|(n, size)| start(b, n - size)).collect();
            let new = part(b, &sizes, dtype);
            b.push(Prim::DynamicUpdate, &[&[base, new][..], &starts].concat(), shape, dtype)
        }
        _ => {
            let step: Vec<i64> = shape.iter().map(|_| b.random.pick(&[1, 2, 3])).collect();
            let sizes: Vec<u64> = shape.iter().zip(&step).map(|(n, s)| (n - 1) / *s as u64 + 1).collect();
            let new = part(b, &sizes, dtype);
            b.push(Prim::UpdateSlice { start: vec![0; shape.len()], step }, &[base, new], shape, dtype)
        }
    }
}

fn case(seed: u64) -> Case {
    let mut b = Builder::plain(seed);
    let dtype = b.random.pick(&[
        DType::F32,
        DType::F32,
        DType::F32,
        DType::F64,
        DType::Bf16,
        DType::U8,
        DType::I64,
        DType::C64,
    ]);
    let rank = 1 + b.random.below(3);
    let shape = shape(&mut b, rank);
    let base = match b.random.below(3) {
        0 => b.full(&shape, dtype),
        _ => tensor(&mut b, &shape, dtype),
    };
    let mut outputs = vec![];
    let mut x = base;
    for _ in 0..1 + b.random.below(3) {
        x = updated(&mut b, x, &shape, dtype);
        if b.random.once_in(4) {
            outputs.push(x);
        }
        // The next one may be read or written from the tensor itself.
        if b.random.once_in(3) && dtype.is_float() {
            let sizes: Vec<u64> = shape.iter().map(|n| n.div_ceil(2)).collect();
            let starts: Vec<NodeId> = shape.iter().zip(&sizes).map(|(n, size)| start(&mut b, n - size)).collect();
            let old = Prim::DynamicSlice { sizes: sizes.clone() };
            let old = b.push(old, &[&[x][..], &starts].concat(), &sizes, dtype);
            let new = b.push(Prim::Map(MapOp::exp), &[old], &sizes, dtype);
            x = b.push(Prim::DynamicUpdate, &[&[x, new][..], &starts].concat(), &shape, dtype);
        }
    }
    if b.random.once_in(3) && dtype.is_float() {
        outputs.push(b.push(Prim::Map(MapOp::neg), &[x], &shape, dtype));
    }
    outputs.push(x);
    outputs.dedup();
    b.graph.outputs = outputs;
    Case { graph: b.graph, inputs: b.data }
}

#[test]
fn parts_are_written_over() {
    hold("updates", (0..600).map(case).collect());
}

#[test]
fn under_any_schedule() {
    let mut bench = Bench::new();
    let mut wrong: Vec<(u64, Difference)> = vec![];
    for seed in 600..800 {
        bench.set_directives(Some(seed));
        if let Err(d) = checked(&mut bench, &case(seed)) {
            wrong.push((seed, d));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.iter().map(|(s, d)| format!("{s}: {}\n", d.line())).collect::<String>());
}

/// A product is written where it belongs, by its own kernel, in memory that the caller gives up.
#[test]
fn a_cache_is_one_kernel() {
    let cases = tessera_tests::representative::compiled();
    let Some(case) = cases.iter().find(|c| c.graph.name == "cached") else { panic!("no such program") };
    let bench = Bench::new();
    let graph = bench.backend.optimise(&case.graph);
    let groups = bench.backend.groups(&graph);
    let kinds: Vec<GroupKind> = groups.iter().map(|g| g.group.kind).collect();
    assert_eq!(kinds, [GroupKind::Dot]);
    let plan = bench.backend.plan(&graph).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(plan.outputs[0].in_place_of, Some(0));
}
