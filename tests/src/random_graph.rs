//! Random graphs that the verifier accepts, with data for their inputs.
//!
//! A graph grows node by node from what is there: every step picks operands among earlier nodes
//! (recent ones mostly), so that expressions are deep and shared. Sizes are small, except along
//! reductions; a budget of elements keeps one graph at about a millisecond of interpretation.

mod complex;
mod convolution;
mod element;
mod hints;
mod idiom;
mod index;
mod matmul;
mod reduce;
mod scan;
mod view;

pub use view::rows;

use crate::random::{Fill, Random};
use std::sync::Arc;
use tessera_base::DType;
use tessera_ir::graph::{Graph, Input, Node, NodeId, NodeType, Origin, Policy};
use tessera_ops::prim::{Prim, Scalar};

/// A graph and the bytes of each of its inputs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Case {
    pub graph: Graph,
    pub inputs: Vec<Vec<u8>>,
}

/// How large tensors get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Tens of thousands of elements a graph: as many programs as possible.
    Small,
    /// A million elements a graph: the cost model's own grids on several threads.
    Large,
}

impl Scale {
    /// Elements of one node, at most.
    fn node_elems(self) -> u64 {
        if self == Scale::Small { 20_000 } else { 300_000 }
    }

    /// Elements of all nodes of a graph, at most.
    fn graph_elems(self) -> u64 {
        if self == Scale::Small { 60_000 } else { 1_500_000 }
    }

    /// Steps of one product, at most.
    fn steps(self) -> u64 {
        if self == Scale::Small { 400_000 } else { 10_000_000 }
    }
}

/// The graph of a seed: 5 to 25 nodes and some outputs.
pub fn case(seed: u64, scale: Scale) -> Case {
    let mut b = Builder::new(seed);
    (b.scale, b.budget) = (scale, scale.graph_elems());
    let most = if b.random.once_in(3) { 20 } else { 8 };
    let steps = 3 + b.random.below(most);
    for _ in 0..1 + b.random.below(2) {
        let shape = b.shape();
        let dtype = b.dtype();
        b.input(&shape, dtype);
    }
    for _ in 0..steps {
        b.step();
    }
    b.outputs();
    hints::sprinkle(&mut b.graph, seed);
    Case { graph: b.graph, inputs: b.data }
}

/// A graph under construction. Public, so that tests of one operator can use its parts.
pub struct Builder {
    pub graph: Graph,
    /// Bytes of the inputs.
    pub data: Vec<Vec<u8>>,
    pub random: Random,
    /// Elements that may still be made.
    budget: u64,
    scale: Scale,
    /// Whether new inputs may be declared: not in the body of a loop.
    open: bool,
    policy: Policy,
    depth: usize,
}

impl Builder {
    pub fn new(seed: u64) -> Builder {
        let mut random = Random::new(seed);
        let policy = if random.once_in(12) { Policy::KahanSum } else { Policy::Deterministic };
        let graph = Graph { name: format!("seed{seed}"), ..Graph::default() };
        Builder {
            graph,
            data: vec![],
            random,
            budget: Scale::Small.graph_elems(),
            scale: Scale::Small,
            open: true,
            policy,
            depth: 0,
        }
    }

    /// For graphs that a test writes itself: deterministic sums.
    pub fn plain(seed: u64) -> Builder {
        let mut b = Builder::new(seed);
        (b.policy, b.budget) = (Policy::Deterministic, u64::MAX);
        b
    }

    // --- nodes

    pub fn push(&mut self, prim: Prim, operands: &[NodeId], shape: &[u64], dtype: DType) -> NodeId {
        let policy =
            if self.policy == Policy::KahanSum && self.random.once_in(8) { Policy::Deterministic } else { self.policy };
        let ty = NodeType::new(shape.to_vec(), dtype);
        self.budget = self.budget.saturating_sub(ty.elems().unwrap_or(0));
        self.graph.push(Node {
            prim,
            operands: operands.to_vec(),
            ty,
            results: vec![],
            origin: Origin::default(),
            policy,
        })
    }

    /// An input that holds `bytes`.
    pub fn input_of(&mut self, shape: &[u64], dtype: DType, bytes: Vec<u8>, scalar: bool) -> NodeId {
        let n = self.graph.inputs.len() as u32;
        self.graph.inputs.push(Input {
            name: Arc::from(format!("x{n}")),
            ty: NodeType::new(shape.to_vec(), dtype),
            scalar,
        });
        self.data.push(bytes);
        self.push(Prim::Input(n), &[], shape, dtype)
    }

    /// An input with random elements; a constant where inputs cannot be declared.
    pub fn input(&mut self, shape: &[u64], dtype: DType) -> NodeId {
        if !self.open {
            return self.made(shape, dtype);
        }
        let fill = self.random.fill();
        let bytes = self.random.elements(dtype, elems(shape), fill);
        self.input_of(shape, dtype, bytes, false)
    }

    /// A host scalar, or a constant of rank 0.
    pub fn scalar(&mut self, dtype: DType) -> NodeId {
        let host = matches!(dtype, DType::F64 | DType::I64 | DType::Bool);
        if host && self.open && self.random.once_in(2) {
            let fill = self.random.fill();
            let bytes = self.random.elements(dtype, 1, fill);
            return self.input_of(&[], dtype, bytes, true);
        }
        self.full(&[], dtype)
    }

    pub fn full(&mut self, shape: &[u64], dtype: DType) -> NodeId {
        let value = self.constant(dtype);
        self.push(Prim::Full { value }, &[], shape, dtype)
    }

    /// A constant that the type holds, or that is rounded to it.
    fn constant(&mut self, dtype: DType) -> Scalar {
        let fill = self.random.pick(&[Fill::Small, Fill::Small, Fill::Ordinary, Fill::Special]);
        let wide = if dtype.is_float() || dtype.is_complex() { DType::F64 } else { DType::I64 };
        let of = if self.random.once_in(2) && !dtype.is_complex() { dtype } else { wide };
        let bytes = self.random.elements(of, 1, fill);
        match tessera_ops::convert::load(of, &bytes, 0) {
            Some(Scalar::I(n)) if dtype == DType::Bool => Scalar::I(n & 1),
            Some(value) => value,
            None => Scalar::I(0),
        }
    }

    /// A tensor from nothing: constant, counting or literal.
    fn made(&mut self, shape: &[u64], dtype: DType) -> NodeId {
        match self.random.below(3) {
            0 if !shape.is_empty() => {
                let axis = self.random.below(shape.len());
                self.push(Prim::Iota { axis }, &[], shape, dtype)
            }
            1 if elems(shape) <= 64 => {
                let fill = self.random.fill();
                let bytes = self.random.elements(dtype, elems(shape), fill);
                self.push(Prim::Literal(Arc::from(bytes)), &[], shape, dtype)
            }
            _ => self.full(shape, dtype),
        }
    }

    // --- choices

    pub fn ty(&self, id: NodeId) -> NodeType {
        self.graph.ty(id).clone()
    }

    /// Element types, the common ones more often.
    pub fn dtype(&mut self) -> DType {
        self.random.weighted(&[
            (10, DType::F32),
            (4, DType::F64),
            (4, DType::Bf16),
            (3, DType::F16),
            (2, DType::F8E4M3),
            (2, DType::F8E5M2),
            (1, DType::Tf32),
            (4, DType::I64),
            (3, DType::I32),
            (1, DType::I16),
            (2, DType::I8),
            (2, DType::U8),
            (3, DType::Bool),
            (1, DType::C64),
        ])
    }

    fn real(&mut self) -> DType {
        match self.dtype() {
            DType::C64 => DType::F32,
            dtype => dtype,
        }
    }

    fn size(&mut self) -> u64 {
        match self.random.below(30) {
            _ if self.scale == Scale::Large && self.random.once_in(2) => self.random.pick(&[100, 257, 512, 1000, 4097]),
            0 => 0,
            1..=5 => 1,
            6..=13 => self.random.pick(&[2, 3, 4, 5]),
            14..=24 => self.random.pick(&[7, 8, 13, 15, 16, 17, 31, 32, 33]),
            25..=27 => self.random.pick(&[64, 65, 100]),
            _ => self.random.pick(&[257, 1000, 4097]),
        }
    }

    fn shape(&mut self) -> Vec<u64> {
        let rank = self.random.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4]);
        let mut shape: Vec<u64> = (0..rank).map(|_| self.size()).collect();
        // Without an empty dim it may become a real one.
        while shape.iter().map(|&n| n.max(1)).product::<u64>() > self.scale.node_elems() / 4 {
            let largest = (0..rank).max_by_key(|&i| shape[i]).unwrap_or(0);
            shape[largest] = self.random.pick(&[1, 2, 3, 5]);
        }
        shape
    }

    /// Whether a node of this shape may still be made.
    fn affords(&self, shape: &[u64]) -> bool {
        let n = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d.max(1))).unwrap_or(u64::MAX);
        n <= self.scale.node_elems() && n <= self.budget.max(64)
    }

    /// An earlier node that fits; recent ones more often.
    fn find(&mut self, fits: impl Fn(&NodeType) -> bool) -> Option<NodeId> {
        let found: Vec<NodeId> =
            self.graph.ids().filter(|&id| self.graph.node(id).results.is_empty() && fits(self.graph.ty(id))).collect();
        let recent = found.len().min(4);
        match found.len() {
            0 => None,
            n if self.random.once_in(3) => Some(found[self.random.below(n)]),
            n => Some(found[n - 1 - self.random.below(recent)]),
        }
    }

    /// Some earlier node that is not complex.
    pub fn operand(&mut self) -> NodeId {
        if let Some(id) = self.find(|t| t.dtype != DType::C64) {
            return id;
        }
        let (shape, dtype) = (self.shape(), self.real());
        self.input(&shape, dtype)
    }

    /// Some earlier node of this rank or more.
    fn ranked(&mut self, rank: usize) -> NodeId {
        if let Some(id) = self.find(|t| t.dtype != DType::C64 && t.shape.len() >= rank) {
            return id;
        }
        let mut shape = self.shape();
        while shape.len() < rank {
            shape.push(self.random.pick(&[1, 2, 3, 17]));
        }
        let dtype = self.real();
        if self.affords(&shape) { self.input(&shape, dtype) } else { self.input(&vec![2; rank], dtype) }
    }

    /// A node of this type: one that is there, a cast or a broadcast of one, or a new one.
    pub fn like(&mut self, shape: &[u64], dtype: DType) -> NodeId {
        let wanted = shape.to_vec();
        match self.random.below(6) {
            0..=2 => {
                if let Some(id) = self.find(|t| t.dtype == dtype && t.shape == wanted) {
                    return id;
                }
            }
            3 => {
                if let Some(id) = self.find(|t| t.shape == wanted) {
                    return self.cast_to(id, dtype);
                }
            }
            4 => return self.broadcast_to(shape, dtype),
            _ => {}
        }
        if self.random.once_in(4) { self.made(shape, dtype) } else { self.input(shape, dtype) }
    }

    /// A broadcast of something smaller.
    fn broadcast_to(&mut self, shape: &[u64], dtype: DType) -> NodeId {
        let mut small = vec![];
        let mut dims = vec![];
        for (i, &n) in shape.iter().enumerate() {
            match self.random.below(3) {
                0 => {}
                1 => {
                    small.push(1);
                    dims.push(i);
                }
                _ => {
                    small.push(n);
                    dims.push(i);
                }
            }
        }
        let x = if small.is_empty() {
            self.scalar(dtype)
        } else {
            let wanted = small.clone();
            match self.find(|t| t.dtype == dtype && t.shape == wanted) {
                Some(x) => x,
                None => self.input(&small, dtype),
            }
        };
        self.push(Prim::Broadcast { dims }, &[x], shape, dtype)
    }

    pub fn cast_to(&mut self, x: NodeId, dtype: DType) -> NodeId {
        let ty = self.ty(x);
        if ty.dtype == dtype { x } else { self.push(Prim::Cast, &[x], &ty.shape, dtype) }
    }

    // --- steps

    /// Adds one operation, or a few that belong together.
    pub fn step(&mut self) {
        type Step = fn(&mut Builder);
        const STEPS: &[(usize, Step)] = &[
            (30, element::map),
            (6, element::cast),
            (3, element::source),
            (6, view::broadcast),
            (6, view::reshape),
            (6, view::transpose),
            (7, view::slice),
            (4, view::windows),
            (4, view::pad),
            (4, view::concat),
            (4, view::update_slice),
            (2, view::in_other_rows),
            (14, reduce::reduce),
            (2, reduce::arg_reduce),
            (2, reduce::cumulate),
            (7, matmul::dot),
            (2, index::dynamic_slice),
            (2, index::dynamic_update),
            (2, index::take),
            (2, index::gather),
            (2, index::scatter),
            (1, index::take_along),
            (1, index::scatter_add_along),
            (1, index::sort),
            (1, index::random_bits),
            (2, complex::parts),
            (2, complex::fft),
            (2, scan::scan),
            (2, idiom::softmax),
            (2, idiom::norm),
            (2, idiom::layer),
            (2, idiom::attention),
            (3, convolution::convolution),
            (2, convolution::pool),
        ];
        let step = self.random.weighted(STEPS);
        step(self);
    }

    /// One to four outputs: what nobody reads, and some others; now and then an input or the
    /// same node twice.
    fn outputs(&mut self) {
        let mut read = vec![false; self.graph.nodes.len()];
        for n in &self.graph.nodes {
            n.operands.iter().for_each(|o| read[o.0 as usize] = true);
        }
        let whole = |g: &Graph, id: NodeId| g.node(id).results.is_empty();
        let computed = |g: &Graph, id: NodeId| !matches!(g.node(id).prim, Prim::Input(_));
        let ids: Vec<NodeId> = self.graph.ids().filter(|&id| whole(&self.graph, id)).collect();
        let ends: Vec<NodeId> =
            ids.iter().copied().filter(|&id| !read[id.0 as usize] && computed(&self.graph, id)).collect();
        let last = ends.last().or(ids.last()).copied().unwrap_or(NodeId(0));
        let mut outputs = vec![last];
        for _ in 0..self.random.pick(&[0, 0, 1, 1, 2, 3]) {
            let from = if self.random.once_in(3) || ends.is_empty() { &ids } else { &ends };
            let id = self.random.pick(from);
            let rare = outputs.contains(&id) || !computed(&self.graph, id);
            if !rare || self.random.once_in(8) {
                outputs.push(id);
            }
        }
        self.random.shuffle(&mut outputs);
        self.graph.outputs = outputs;
    }
}

/// Elements of a shape that fits memory.
pub fn elems(shape: &[u64]) -> usize {
    shape.iter().product::<u64>() as usize
}
