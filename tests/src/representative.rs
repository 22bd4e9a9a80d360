//! Programs that stand for what people compute: one of each kind of kernel, and the usual
//! compositions, at sizes that divide nothing.

use crate::operators::call;
use crate::random::Fill;
use crate::random_graph::{Builder, Case, elems};
use tessera_base::{Blocks, DType};
use tessera_ir::graph::{NodeId, Policy};
use tessera_ops::prim::{Prim, Scalar};
use tessera_ops::surface::{Arg, Id};

/// A graph that is written operator by operator.
pub struct Program {
    pub b: Builder,
}

impl Program {
    pub fn new(seed: u64) -> Program {
        Program { b: Builder::plain(seed) }
    }

    /// An input with ordinary numbers.
    pub fn tensor(&mut self, shape: &[u64], dtype: DType) -> Id {
        let bytes = self.b.random.elements(dtype, elems(shape), Fill::Ordinary);
        Id(self.b.input_of(shape, dtype, bytes, false).0)
    }

    /// An input with positions in `0..below`.
    pub fn positions(&mut self, shape: &[u64], below: u64) -> Id {
        let one = |p: &mut Program| p.b.random.below(below as usize) as i64;
        let bytes = (0..elems(shape)).flat_map(|_| one(self).to_le_bytes()).collect();
        Id(self.b.input_of(shape, DType::I64, bytes, false).0)
    }

    /// An operator of tensors alone.
    pub fn op(&mut self, name: &str, args: &[Id]) -> Id {
        let args: Vec<Arg> = args.iter().map(|&a| Arg::Tensor(a)).collect();
        call(&mut self.b, name, &args)
    }

    /// An operator of one tensor and other arguments.
    pub fn with(&mut self, name: &str, x: Id, rest: &[Arg]) -> Id {
        call(&mut self.b, name, &[&[Arg::Tensor(x)], rest].concat())
    }

    /// A node of f32.
    fn node(&mut self, prim: Prim, operands: &[Id], shape: &[u64]) -> Id {
        let operands: Vec<NodeId> = operands.iter().map(|o| NodeId(o.0)).collect();
        Id(self.b.push(prim, &operands, shape, DType::F32).0)
    }

    pub fn finish(mut self, name: &str, outputs: &[Id]) -> Case {
        self.b.graph.name = name.into();
        self.b.graph.outputs = outputs.iter().map(|o| NodeId(o.0)).collect();
        Case { graph: self.b.graph, inputs: self.b.data }
    }
}

/// A matrix product; `flips` says which operands are stored transposed.
fn product(name: &str, flips: [bool; 2], dtype: DType) -> Case {
    let mut p = Program::new(1);
    let mut side = |rows: u64, columns: u64, flipped: bool| {
        if !flipped {
            return p.tensor(&[rows, columns], dtype);
        }
        let x = p.tensor(&[columns, rows], dtype);
        p.with("transpose", x, &[])
    };
    let (a, b) = (side(75, 130, flips[0]), side(130, 67, flips[1]));
    let y = p.op("matmul", &[a, b]);
    p.finish(name, &[y])
}

/// A layer: product, bias, activation, residual, conversion.
fn layer(dtype: DType) -> Case {
    let mut p = Program::new(2);
    let (x, w, b, r) =
        (p.tensor(&[61, 96], dtype), p.tensor(&[96, 77], dtype), p.tensor(&[77], dtype), p.tensor(&[61, 77], dtype));
    let y = p.op("matmul", &[x, w]);
    let y = p.op("add", &[y, b]);
    let y = p.op("gelu", &[y]);
    let y = p.op("add", &[y, r]);
    let y = p.with("cast", y, &[Arg::DType(DType::F16)]);
    p.finish("layer", &[y])
}

fn attention(causal: bool) -> Case {
    let mut p = Program::new(3);
    let [q, k, v] = [50, 83, 83].map(|n| p.tensor(&[3, n, 24], DType::F32));
    let y = p.with("attention", q, &[Arg::Tensor(k), Arg::Tensor(v), Arg::Bool(causal)]);
    p.finish(if causal { "causal_attention" } else { "attention" }, &[y])
}

/// `softmax(q @ k.T * s + mask) @ v`.
fn written_attention() -> Case {
    let mut p = Program::new(4);
    let [q, k, v] = [50, 83, 83].map(|n| p.tensor(&[2, n, 24], DType::F32));
    let mask = p.tensor(&[50, 83], DType::F32);
    let k = p.with("swapaxes", k, &[Arg::Int(-1), Arg::Int(-2)]);
    let s = p.op("matmul", &[q, k]);
    let s = p.with("mul", s, &[Arg::Float(0.2)]);
    let s = p.op("add", &[s, mask]);
    let s = p.op("softmax", &[s]);
    let y = p.op("matmul", &[s, v]);
    p.finish("written_attention", &[y])
}

/// An operator of one tensor over its last axis.
fn rows(name: &str, shape: &[u64], dtype: DType) -> Case {
    let mut p = Program::new(5);
    let x = p.tensor(shape, dtype);
    let last = shape[shape.len() - 1];
    let y = match name {
        "layer_norm" | "rms_norm" => {
            let w = p.tensor(&[last], dtype);
            p.with(name, x, &[Arg::Ints(vec![last as i64]), Arg::Tensor(w)])
        }
        _ => p.with(name, x, &[Arg::Int(-1)]),
    };
    p.finish(&format!("{name}_{dtype}"), &[y])
}

fn reduction(name: &str, shape: &[u64], axis: Option<i64>, dtype: DType) -> Case {
    let mut p = Program::new(6);
    let x = p.tensor(shape, dtype);
    let y = p.with(name, x, &[axis.map_or(Arg::None, Arg::Int)]);
    p.finish(&format!("{name}_{}", axis.map_or("all".into(), |a| a.to_string())), &[y])
}

fn compensated() -> Case {
    let mut case = reduction("sum", &[3, 5000], Some(1), DType::F32);
    case.graph.nodes.iter_mut().for_each(|n| n.policy = Policy::KahanSum);
    case.graph.name = "kahan_sum".into();
    case
}

fn convolution() -> Case {
    let mut p = Program::new(7);
    let (x, w, b) =
        (p.tensor(&[2, 6, 19, 23], DType::F32), p.tensor(&[13, 6, 3, 3], DType::F32), p.tensor(&[13], DType::F32));
    let y = p.with("conv2d", x, &[Arg::Tensor(w), Arg::Tensor(b), Arg::Int(1), Arg::Int(1)]);
    let y = p.op("relu", &[y]);
    p.finish("conv2d", &[y])
}

fn pooling() -> Case {
    let mut p = Program::new(8);
    let x = p.tensor(&[3, 7, 30, 34], DType::F32);
    let y = p.with("max_pool", x, &[Arg::Ints(vec![3, 2])]);
    p.finish("max_pool", &[y])
}

fn transform(n: u64) -> Case {
    let mut p = Program::new(9);
    let x = p.tensor(&[9, n], DType::C64);
    let y = p.op("fft", &[x]);
    p.finish(&format!("fft_{n}"), &[y])
}

fn chain() -> Case {
    let mut p = Program::new(10);
    let (x, y) = (p.tensor(&[67, 129], DType::F32), p.tensor(&[129], DType::F32));
    let s = p.op("sigmoid", &[x]);
    let s = p.op("mul", &[s, y]);
    let t = p.op("tanh", &[x]);
    let s = p.op("add", &[s, t]);
    let s = p.op("exp", &[s]);
    let s = p.with("transpose", s, &[]);
    p.finish("chain", &[s])
}

fn lookup() -> Case {
    let mut p = Program::new(11);
    let (ids, table) = (p.positions(&[7, 31], 200), p.tensor(&[200, 45], DType::F32));
    let x = p.op("embedding", &[ids, table]);
    let y = p.with("mul", x, &[Arg::Float(2.0)]);
    p.finish("embedding", &[y])
}

fn along() -> Case {
    let mut p = Program::new(12);
    let (x, at) = (p.tensor(&[40, 65], DType::F32), p.positions(&[40, 9], 65));
    let y = p.with("gather", x, &[Arg::Int(1), Arg::Tensor(at)]);
    p.finish("gather", &[y])
}

fn loss() -> Case {
    let mut p = Program::new(13);
    let (x, t) = (p.tensor(&[63, 101], DType::F32), p.positions(&[63], 101));
    let y = p.op("cross_entropy", &[x, t]);
    p.finish("cross_entropy", &[y])
}

/// Normal numbers and their sums of rows: four words of each block are of use.
fn normals() -> Case {
    let mut p = Program::new(14);
    let key = p.positions(&[2], 1 << 32);
    let x = p.with("random.normal", key, &[Arg::Ints(vec![61, 107])]);
    p.finish("normals", &[x])
}

/// The row of a token goes behind those before it: a cache of keys, updated by a product.
fn cached() -> Case {
    let mut p = Program::new(15);
    let (cache, x, w) =
        (p.tensor(&[33, 4, 21], DType::F32), p.tensor(&[1, 50], DType::F32), p.tensor(&[50, 84], DType::F32));
    let at = p.positions(&[], 33);
    let row = p.op("matmul", &[x, w]);
    let row = p.with("reshape", row, &[Arg::Ints(vec![1, 4, 21])]);
    let zero = Id(p.b.push(Prim::Full { value: Scalar::I(0) }, &[], &[], DType::I64).0);
    let y = p.node(Prim::DynamicUpdate, &[cache, row, at, zero, zero], &[33, 4, 21]);
    p.finish("cached", &[y])
}

/// Rows at positions of which many are equal: the last of them stays.
fn overwritten(rows: u64) -> Case {
    let mut p = Program::new(16);
    let (base, new, at) =
        (p.tensor(&[19, rows], DType::F32), p.tensor(&[57, rows], DType::F32), p.positions(&[57], 19));
    let new = p.op("exp", &[new]);
    let y = p.node(Prim::Scatter { add: false }, &[base, new, at], &[19, rows]);
    p.finish(&format!("overwritten_{rows}"), &[y])
}

fn every_third() -> Case {
    let mut p = Program::new(17);
    let (base, part) = (p.tensor(&[40, 70], DType::F32), p.tensor(&[40, 23], DType::F32));
    let part = p.op("tanh", &[part]);
    let prim = Prim::UpdateSlice { start: vec![0, 1], step: vec![1, 3] };
    let y = p.node(prim, &[base, part], &[40, 70]);
    p.finish("every_third", &[y])
}

/// Numbers of four and five bits, there and back.
fn blocks(format: Blocks) -> Case {
    let mut p = Program::new(18);
    let x = p.tensor(&[37, 96], DType::F32);
    let x = p.op("exp", &[x]);
    let q = p.b.push(Prim::Quantize { format }, &[NodeId(x.0)], &[37, 3, format.bytes() as u64], DType::U8);
    p.finish(&format!("blocks_{}", format.name()), &[Id(q.0)])
}

fn numbers(format: Blocks) -> Case {
    let mut p = Program::new(19);
    let q = p.tensor(&[19, 2, format.bytes() as u64], DType::U8);
    let x = p.node(Prim::Dequantize { format }, &[q], &[19, 2 * format.elems() as u64]);
    let y = p.op("tanh", &[x]);
    p.finish(&format!("numbers_{}", format.name()), &[y])
}

/// One of each kind; each is compiled code throughout.
pub fn compiled() -> Vec<Case> {
    use DType::*;
    vec![
        product("product", [false, false], F32),
        product("product_of_transposed", [true, false], F32),
        product("product_with_transposed", [false, true], F32),
        product("product_of_both_transposed", [true, true], F32),
        product("product_bf16", [false, true], Bf16),
        product("product_f16", [true, false], F16),
        product("product_f64", [false, false], F64),
        product("product_i32", [false, false], I32),
        layer(F32),
        layer(Bf16),
        attention(false),
        attention(true),
        written_attention(),
        rows("softmax", &[37, 301], F32),
        rows("log_softmax", &[5, 4500], Bf16),
        rows("logsumexp", &[37, 301], F32),
        rows("layer_norm", &[37, 301], F32),
        rows("rms_norm", &[37, 301], Bf16),
        reduction("sum", &[131, 700], None, F32),
        reduction("sum", &[131, 70], Some(0), F32),
        reduction("mean", &[3, 9000], Some(1), F16),
        reduction("max", &[131, 70], Some(1), F32),
        reduction("argmax", &[70, 131], Some(1), F32),
        reduction("cumsum", &[33, 700], Some(1), F32),
        compensated(),
        convolution(),
        pooling(),
        transform(240),
        transform(127),
        chain(),
        lookup(),
        along(),
        loss(),
        normals(),
        cached(),
        overwritten(1),
        overwritten(90),
        every_third(),
        blocks(Blocks::Q8_0),
        blocks(Blocks::Q5_0),
        blocks(Blocks::Q4_1),
        numbers(Blocks::Q5_1),
        numbers(Blocks::Q6K),
    ]
}
