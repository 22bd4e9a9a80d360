//! Attention, as the operator expands and written out with softmax, at sizes around the register
//! tile, the vector and the blocks: compiled as interpreted, to the bit.

use tessera_autodiff::pullback;
use tessera_base::DType;
use tessera_ir::graph::derivatives::Derivatives;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Scalar, Steps};
use tessera_ops::surface::{Arg, Id};
use tessera_tests::compare::interpreted;
use tessera_tests::laws::{hold, orders_of_bf16_here};
use tessera_tests::operators::call;
use tessera_tests::random::{Fill, Random};
use tessera_tests::random_graph::{Builder, Case, elems};

fn input(b: &mut Builder, shape: &[u64], dtype: DType, fill: Fill) -> Id {
    let bytes = b.random.elements(dtype, elems(shape), fill);
    Id(b.input_of(shape, dtype, bytes, false).0)
}

/// What a case looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mask {
    None,
    Bool,
    Float,
}

struct Sizes {
    batch: &'static [u64],
    /// Heads of queries and of keys.
    heads: [u64; 2],
    /// Queries, keys, features of keys and of values.
    stde: [u64; 4],
}

fn operator(seed: u64, sizes: &Sizes, dtype: DType, causal: bool, mask: Mask) -> Case {
    let mut b = Builder::plain(seed);
    let [s, t, d, e] = sizes.stde;
    let shape = |heads: u64, n: u64, m: u64| [sizes.batch, &[heads, n, m]].concat();
    let fill = b.random.pick(&[Fill::Small, Fill::Ordinary, Fill::Ordinary, Fill::Special]);
    let q = input(&mut b, &shape(sizes.heads[0], s, d), dtype, fill);
    let k = input(&mut b, &shape(sizes.heads[1], t, d), dtype, fill);
    let v = input(&mut b, &shape(sizes.heads[1], t, e), dtype, fill);
    let mask = match mask {
        Mask::None => Arg::None,
        Mask::Bool => Arg::Tensor(input(&mut b, &[s, t], DType::Bool, Fill::Small)),
        Mask::Float => Arg::Tensor(input(&mut b, &[sizes.heads[0], 1, t], dtype, Fill::Small)),
    };
    let scale = if b.random.once_in(2) { Arg::None } else { Arg::Float(0.3) };
    let softcap = if b.random.once_in(3) { Arg::Float(1.5) } else { Arg::None };
    let args = [Arg::Tensor(q), Arg::Tensor(k), Arg::Tensor(v), Arg::Bool(causal), mask, scale, softcap];
    let out = call(&mut b, "attention", &args);
    finish(b, out, format!("attention_{dtype}_{s}_{t}_{d}_{e}"))
}

/// `softmax(q @ k.T * s + bias) @ v`, with what programs put around it. `apart`: with something between its products that is
/// not computed row by row, though it changes nothing.
fn written_out(seed: u64, sizes: &Sizes, dtype: DType, apart: bool) -> Case {
    let mut b = Builder::plain(seed);
    let [s, t, d, e] = sizes.stde;
    let shape = |n: u64, m: u64| [sizes.batch, &[sizes.heads[0], n, m]].concat();
    let q = input(&mut b, &shape(s, d), dtype, Fill::Ordinary);
    let k = input(&mut b, &shape(t, d), dtype, Fill::Ordinary);
    let v = input(&mut b, &shape(t, e), dtype, Fill::Ordinary);
    let k = call(&mut b, "swapaxes", &[Arg::Tensor(k), Arg::Int(-1), Arg::Int(-2)]);
    let mut x = call(&mut b, "matmul", &[Arg::Tensor(q), Arg::Tensor(k)]);
    if b.random.once_in(2) {
        x = call(&mut b, "mul", &[Arg::Tensor(x), Arg::Float(0.25)]);
    }
    if b.random.once_in(2) {
        let bias = input(&mut b, &[t], dtype, Fill::Small);
        x = call(&mut b, "add", &[Arg::Tensor(x), Arg::Tensor(bias)]);
    }
    if b.random.once_in(3) {
        x = call(&mut b, "tanh", &[Arg::Tensor(x)]);
    }
    let mut p = call(&mut b, "softmax", &[Arg::Tensor(x)]);
    if apart {
        p = twice_flipped(&mut b, p);
    }
    let mut y = call(&mut b, "matmul", &[Arg::Tensor(p), Arg::Tensor(v)]);
    if b.random.once_in(3) {
        y = call(&mut b, "relu", &[Arg::Tensor(y)]);
    }
    let outputs_too = b.random.once_in(6);
    let mut case = finish(b, y, format!("written_{dtype}_{s}_{t}_{d}_{e}"));
    if outputs_too {
        case.graph.outputs.push(NodeId(p.0));
    }
    case
}

/// What it was, by two steps that are not those of single rows.
fn twice_flipped(b: &mut Builder, x: Id) -> Id {
    let turned = call(b, "flip", &[Arg::Tensor(x), Arg::Ints(vec![-2])]);
    call(b, "flip", &[Arg::Tensor(turned), Arg::Ints(vec![-2])])
}

fn finish(b: Builder, out: Id, name: String) -> Case {
    let mut graph = b.graph;
    graph.outputs = vec![NodeId(out.0)];
    graph.name = name;
    Case { graph, inputs: b.data }
}

const STDE: &[[u64; 4]] = &[
    [1, 1, 1, 1],
    [1, 9, 4, 4],
    [9, 1, 4, 4],
    [5, 7, 3, 2],
    [8, 8, 8, 8],
    [14, 16, 16, 32],
    [15, 17, 16, 33],
    [29, 33, 8, 5],
    [33, 100, 32, 16],
    [100, 31, 5, 40],
    [64, 64, 64, 64],
    [57, 4100, 4, 6],
    [130, 257, 17, 18],
    [16, 0, 4, 4],
    [0, 16, 4, 4],
];

#[test]
fn the_operator() {
    let mut cases = vec![];
    for (i, &stde) in STDE.iter().enumerate() {
        for dtype in [DType::F32, DType::Bf16, DType::F16, DType::Tf32, DType::F64] {
            if dtype != DType::F32 && stde[1] > 1000 {
                continue;
            }
            for mask in [Mask::None, Mask::Bool, Mask::Float] {
                for causal in [false, true] {
                    let heads = [[1, 1], [2, 2], [4, 2], [3, 1]][(i + cases.len()) % 4];
                    let batch: &[u64] = if cases.len() % 5 == 0 { &[2] } else { &[] };
                    if dtype == DType::F32 || cases.len() % 3 == 0 || mask == Mask::None {
                        let sizes = Sizes { batch, heads, stde };
                        cases.push(operator(cases.len() as u64, &sizes, dtype, causal, mask));
                    }
                }
            }
        }
    }
    hold("attentions", cases);
}

#[test]
fn written_out_with_softmax() {
    let mut cases = vec![];
    for &stde in STDE {
        for dtype in [DType::F32, DType::F32, DType::F32, DType::Bf16, DType::F16, DType::Tf32, DType::F64] {
            if stde[1] > 0 && (dtype == DType::F32 || stde[1] < 1000) {
                let sizes = Sizes { batch: &[], heads: [2, 2], stde };
                cases.push(written_out(cases.len() as u64, &sizes, dtype, false));
            }
        }
    }
    hold("softmaxes between products", cases);
}

/// The cotangents of the float inputs of a graph, where that of its first output is ones.
fn differentiated(mut graph: Graph) -> Graph {
    let is_given = |id: &NodeId| matches!(graph.node(*id).prim, Prim::Input(_)) && graph.ty(*id).dtype.is_float();
    let (out, wrt) = (graph.outputs[0], graph.ids().filter(is_given).collect::<Vec<_>>());
    let mut one = graph.node(out).clone();
    (one.prim, one.operands) = (Prim::Full { value: Scalar::F(1.0) }, vec![]);
    let seed = graph.push(one);
    let found = pullback(&mut graph, &[(out, seed)], &wrt).unwrap_or_else(|e| panic!("{e:?}"));
    graph.outputs = found.into_iter().flatten().collect();
    graph
}

/// Cotangents of queries, keys and values over so many queries that they are computed in blocks, in loops and beside them.
#[test]
fn derivatives_by_blocks() {
    let mut cases = vec![];
    for (stde, mask) in
        [([2048, 1030, 3, 2], Mask::None), ([2100, 1300, 2, 3], Mask::Bool), ([2560, 1100, 4, 4], Mask::None)]
    {
        for causal in [false, true] {
            let sizes = Sizes { batch: &[], heads: [2, 1], stde };
            let Case { graph, inputs } = operator(cases.len() as u64, &sizes, DType::F32, causal, mask);
            let graph = differentiated(graph);
            assert_eq!(graph.outputs.len(), 3);
            assert!(!graph.bodies.is_empty(), "blocks that see the same keys are a loop");
            cases.push(Case { graph, inputs });
        }
    }
    for (seed, stde) in
        [[2048, 1030, 3, 2], [2100, 1300, 2, 3], [2560, 1100, 4, 4], [2050, 1040, 5, 1]].iter().enumerate()
    {
        for dtype in [DType::F32, DType::Bf16] {
            let sizes = Sizes { batch: &[], heads: [2, 2], stde: *stde };
            let Case { graph, inputs } = written_out(seed as u64, &sizes, dtype, false);
            let graph = differentiated(graph);
            assert!(!graph.bodies.is_empty(), "what is written out goes over blocks of rows");
            cases.push(Case { graph, inputs });
        }
    }
    hold("derivatives of attention", cases);
}

/// The bytes of inputs that are ordinary numbers.
fn ordinary(case: &mut Case) {
    let mut random = Random::new(7);
    for (input, bytes) in case.graph.inputs.iter().zip(&mut case.inputs) {
        *bytes = random.elements(input.ty.dtype, elems(&input.ty.shape), Fill::Ordinary);
    }
}

/// The derivative of one graph as that of the other, within rounding.
fn alike(one: &Case, other: Graph, what: &str) {
    let numbers = |graph: Graph| -> Vec<Vec<f64>> {
        let bits = interpreted(&graph, &one.inputs).unwrap_or_else(|e| panic!("{e}"));
        let of = |b: &[u8; 4]| f64::from(f32::from_le_bytes(*b));
        bits.iter().map(|bytes| bytes.as_chunks::<4>().0.iter().map(of).collect()).collect()
    };
    let (a, b) = (numbers(differentiated(one.graph.clone())), numbers(differentiated(other)));
    assert!(!a.is_empty() && a.len() == b.len(), "{what}: {} and {}", a.len(), b.len());
    for (a, b) in a.iter().zip(&b) {
        let largest = b.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let far = a.iter().zip(b).fold(0.0f64, |m, (x, y)| m.max((x - y).abs()));
        assert!(largest.is_finite() && far <= 1e-4 * largest && a.len() == b.len(), "{what}: {far} of {largest}");
    }
}

#[test]
fn blocks_give_the_derivative() {
    for (stde, causal) in [([2048, 1030, 3, 2], false), ([2100, 1100, 2, 3], true), ([2560, 1024, 4, 4], true)] {
        let sizes = Sizes { batch: &[], heads: [2, 1], stde };
        let mut case = operator(1, &sizes, DType::F32, causal, Mask::None);
        ordinary(&mut case);
        // Without the derivative that the operator gives itself it is one that is written out.
        let plain = Graph { derivatives: Derivatives::default(), ..case.graph.clone() };
        alike(&case, plain, &format!("{stde:?}"));
    }
    for seed in 0..6 {
        let sizes = Sizes { batch: &[], heads: [1, 1], stde: [2048 + 40 * seed, 1030, 3, 2] };
        let mut case = written_out(seed, &sizes, DType::F32, false);
        ordinary(&mut case);
        let apart = written_out(seed, &sizes, DType::F32, true).graph;
        assert!(differentiated(apart.clone()).bodies.is_empty(), "nothing is computed row by row here");
        alike(&case, apart, &format!("written out, {seed}"));
    }
}

/// `softmax(x @ x.T) @ x`: one value is read row by row, and in full.
fn of_itself(s: u64, d: u64, apart: bool) -> Case {
    let mut b = Builder::plain(3);
    let x = input(&mut b, &[s, d], DType::F32, Fill::Ordinary);
    let turned = call(&mut b, "swapaxes", &[Arg::Tensor(x), Arg::Int(-1), Arg::Int(-2)]);
    let scores = call(&mut b, "matmul", &[Arg::Tensor(x), Arg::Tensor(turned)]);
    let mut p = call(&mut b, "softmax", &[Arg::Tensor(scores)]);
    if apart {
        p = twice_flipped(&mut b, p);
    }
    let y = call(&mut b, "matmul", &[Arg::Tensor(p), Arg::Tensor(x)]);
    finish(b, y, format!("of_itself_{s}_{d}"))
}

#[test]
fn a_sequence_that_attends_to_itself() {
    for (s, d) in [(2048, 3), (2100, 2)] {
        let mut case = of_itself(s, d, false);
        ordinary(&mut case);
        assert!(!differentiated(case.graph.clone()).bodies.is_empty());
        alike(&case, of_itself(s, d, true).graph, &case.graph.name.clone());
    }
    let Case { graph, inputs } = of_itself(2060, 3, false);
    hold("a sequence that attends to itself", vec![Case { graph: differentiated(graph), inputs }]);
}

/// Rows that take the keys up to their own, of scores that a mask cuts off there.
fn causal(seed: u64, [s, t, d, e]: [u64; 4], dtype: DType) -> Case {
    let mut b = Builder::plain(seed);
    let q = input(&mut b, &[2, s, d], dtype, Fill::Ordinary);
    let k = input(&mut b, &[2, d, t], dtype, Fill::Ordinary);
    let v = input(&mut b, &[2, t, e], dtype, Fill::Ordinary);
    let x = call(&mut b, "matmul", &[Arg::Tensor(q), Arg::Tensor(k)]);
    let shape = [2, s, t];
    let [row, key] = [1, 2].map(|axis| b.push(Prim::Iota { axis }, &[], &shape, DType::I64));
    let keep = b.push(Prim::Map(MapOp::ge), &[row, key], &shape, DType::Bool);
    let lowest = b.push(Prim::Full { value: Scalar::F(f64::NEG_INFINITY) }, &[], &shape, dtype);
    let x = b.push(Prim::Map(MapOp::r#where), &[keep, NodeId(x.0), lowest], &shape, dtype);
    let p = call(&mut b, "softmax", &[Arg::Tensor(Id(x.0))]);
    let prim = Prim::dot(dtype.accumulator(), Steps::To);
    let y = b.push(prim, &[NodeId(p.0), NodeId(v.0)], &[2, s, e], dtype);
    finish(b, Id(y.0), format!("causal_{dtype}_{s}_{t}_{d}_{e}"))
}

/// bf16 in the orders of the processor's instructions: of both products, of one where the other has an odd depth or rows
/// that take some steps.
#[test]
fn bf16_in_pairs_and_in_units() {
    let even = [
        [2, 2, 2, 2],
        [4, 32, 16, 8],
        [5, 34, 6, 3],
        [33, 66, 34, 33],
        [40, 32, 64, 64],
        [70, 1030, 64, 40],
        [100, 96, 7, 64],
        [129, 255, 64, 33],
        [300, 300, 32, 16],
    ];
    let mut cases = vec![];
    for (order, stde) in orders_of_bf16_here().into_iter().flat_map(|o| even.into_iter().map(move |s| (o, s))) {
        let seed = cases.len() as u64;
        let sizes = Sizes { batch: &[], heads: [2, 2], stde };
        for mut case in [written_out(seed, &sizes, DType::Bf16, false), causal(seed + 1, stde, DType::Bf16)] {
            case.graph = tessera_graph::product_order::run(case.graph, order);
            case.graph.name += order.name();
            cases.push(case);
        }
    }
    hold("attentions of bf16", cases);
}
