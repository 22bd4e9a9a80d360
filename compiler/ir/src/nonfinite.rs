//! Where a NaN or an infinity comes from: the node that makes one of operands that have none.
//!
//! Works backwards from a bad element through the nodes that only hand it on, computing what is
//! needed with the reference kernels. What a program states itself (constants, arguments) is
//! nobody's fault.

use crate::graph::{Graph, Node, NodeId, NodeType};
use crate::interpret::summation;
use crate::prim::columns::Source;
use crate::prim::{Site, row};
use crate::reference;
use std::collections::BTreeMap;
use tessera_base::DType;
use tessera_ops::prim::Prim;
use tessera_ops::reference::ArrayRef;

/// What an element that is not finite is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Nan,
    Infinity,
}

/// The elements of a tensor that are not finite.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Found {
    pub nans: u64,
    pub infinities: u64,
    /// Row-major position of the first of either kind.
    pub first_nan: Option<usize>,
    pub first_infinity: Option<usize>,
}

impl Found {
    /// Row-major position of the first.
    pub fn first(&self) -> usize {
        self.first_nan.into_iter().chain(self.first_infinity).min().unwrap_or(0)
    }
}

/// The node that made it, with the types and bytes of its result and operands.
#[derive(Clone, PartialEq, Debug)]
pub struct Origin {
    pub node: Node,
    pub found: Found,
    pub operands: Vec<(NodeType, Vec<u8>)>,
    /// The position of the element that was followed.
    pub at: usize,
    /// The passes of the loops that it happened in, outermost first, counted from 0.
    pub passes: Vec<u64>,
}

/// What one element is; `None` for a finite one.
fn kind(dtype: DType, bytes: &[u8]) -> Option<Kind> {
    let part = |bits: u64, exponent: u64, mantissa: u64| match bits & exponent == exponent {
        false => None,
        true if bits & mantissa == 0 => Some(Kind::Infinity),
        true => Some(Kind::Nan),
    };
    let word = bytes.iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b));
    match dtype {
        DType::F64 => part(word, 0x7ff << 52, (1 << 52) - 1),
        DType::F32 | DType::Tf32 => part(word, 0xff << 23, (1 << 23) - 1),
        DType::Bf16 => part(word, 0xff << 7, (1 << 7) - 1),
        DType::F16 => part(word, 0x1f << 10, (1 << 10) - 1),
        DType::F8E5M2 => part(word, 0x1f << 2, 3),
        DType::F8E4M3 => (word & 0x7f == 0x7f).then_some(Kind::Nan),
        DType::C64 => {
            let (re, im) = bytes.split_at(bytes.len() / 2);
            [re, im].into_iter().filter_map(|p| kind(DType::F32, p)).min_by_key(|k| *k == Kind::Infinity)
        }
        _ => None,
    }
}

/// Whether elements of this type can be other than finite.
pub fn may_be(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}

/// Looks at all elements; `None` where all are finite.
pub fn look(dtype: DType, bytes: &[u8]) -> Option<Found> {
    if !may_be(dtype) {
        return None;
    }
    // The common case, fast.
    if dtype == DType::F32 {
        let bad = |c: &[u8; 4]| u32::from_le_bytes(*c) & 0x7f80_0000 == 0x7f80_0000;
        if !bytes.as_chunks::<4>().0.iter().any(bad) {
            return None;
        }
    }
    let mut found = Found::default();
    for (i, element) in bytes.chunks_exact(dtype.bytes()).enumerate() {
        match kind(dtype, element) {
            Some(Kind::Nan) => {
                found.nans += 1;
                found.first_nan.get_or_insert(i);
            }
            Some(Kind::Infinity) => {
                found.infinities += 1;
                found.first_infinity.get_or_insert(i);
            }
            None => {}
        }
    }
    (found.nans + found.infinities > 0).then_some(found)
}

/// Follows what is not finite in the value of `id` back. `known` has values that were found to be
/// nobody's fault before, and that of `id`; others are computed from them.
pub fn origin(g: &Graph, inputs: &[&[u8]], known: &BTreeMap<NodeId, &[u8]>, id: NodeId) -> Option<Origin> {
    let found = look(g.ty(id).dtype, known.get(&id)?)?;
    let made = BTreeMap::new();
    let mut values = Values { g, inputs, known, made };
    let starts = [(Kind::Nan, found.first_nan), (Kind::Infinity, found.first_infinity)];
    starts.into_iter().filter_map(|(kind, at)| values.follow(id, kind, at?, true)).next()
}

/// The values of a graph, made when they are needed.
struct Values<'a> {
    g: &'a Graph,
    inputs: &'a [&'a [u8]],
    known: &'a BTreeMap<NodeId, &'a [u8]>,
    made: BTreeMap<NodeId, Vec<u8>>,
}

impl Values<'_> {
    fn bytes(&self, id: NodeId) -> &[u8] {
        let made = self.made.get(&id).map(Vec::as_slice);
        made.or_else(|| self.known.get(&id).copied()).unwrap_or(&[])
    }

    fn array(&self, id: NodeId) -> ArrayRef<'_> {
        let ty = self.g.ty(id);
        ArrayRef { dtype: ty.dtype, shape: &ty.shape, bytes: self.bytes(id) }
    }

    /// Makes a value there, with all that it needs.
    fn make(&mut self, id: NodeId) -> Option<()> {
        let mut needed = vec![];
        let mut work = vec![id];
        while let Some(id) = work.pop() {
            if self.known.contains_key(&id) || self.made.contains_key(&id) || needed.contains(&id) {
                continue;
            }
            needed.push(id);
            work.extend(&self.g.node(id).operands);
        }
        needed.sort_unstable();
        for id in needed {
            let n = self.g.node(id);
            let value = match &n.prim {
                Prim::Input(i) => self.inputs.get(*i as usize)?.to_vec(),
                // Loops are looked into by themselves; see `pass`.
                Prim::Scan { .. } => vec![],
                Prim::Get { index } => self.looped(*n.operands.first()?)?.swap_remove(*index),
                prim => {
                    let operands: Vec<ArrayRef> = n.operands.iter().map(|&o| self.array(o)).collect();
                    let sums = summation(n.policy);
                    reference::eval_summing(prim, &operands, n.ty.dtype, &n.ty.shape, sums).ok()?
                }
            };
            self.made.insert(id, value);
        }
        Some(())
    }

    /// All results of a loop.
    fn looped(&mut self, id: NodeId) -> Option<Vec<Vec<u8>>> {
        let n = self.g.node(id).clone();
        n.operands.iter().try_for_each(|&o| self.make(o))?;
        let operands: Vec<&[u8]> = n.operands.iter().map(|&o| self.bytes(o)).collect();
        let mut g = Graph { bodies: self.g.bodies.clone(), ..Graph::default() };
        for (i, &o) in n.operands.iter().enumerate() {
            let input = Node { prim: Prim::Input(i as u32), operands: vec![], ty: self.g.ty(o).clone(), ..n.clone() };
            g.push(Node { results: vec![], ..input });
        }
        let all = (0..n.operands.len() as u32).map(NodeId).collect();
        let scan = g.push(Node { operands: all, ..n.clone() });
        for (index, ty) in n.results.iter().enumerate() {
            let get = Node { prim: Prim::Get { index }, operands: vec![scan], ty: ty.clone(), ..n.clone() };
            let id = g.push(Node { results: vec![], ..get });
            g.outputs.push(id);
        }
        crate::interpret::run(&g, &operands).ok()
    }

    /// The node that made element `at` of `id` what it is. `start`: the value is known, and not
    /// yet looked at.
    fn follow(&mut self, id: NodeId, kind: Kind, at: usize, start: bool) -> Option<Origin> {
        let (mut id, mut at, mut start) = (id, at, start);
        loop {
            if self.known.contains_key(&id) && !start {
                return None;
            }
            start = false;
            let n = self.g.node(id).clone();
            if n.operands.is_empty() {
                return None;
            }
            if row(&n.prim).comes_from(Site { g: self.g, node: &n }) == Source::Turn {
                return self.pass(*n.operands.first()?);
            }
            n.operands.iter().try_for_each(|&o| self.make(o))?;
            let sources = self.sources(&n, at);
            if let Some(&(o, position)) = sources.iter().find(|s| self.kind_at(s.0, s.1) == Some(kind)) {
                (id, at) = (o, position);
                continue;
            }
            if kind == Kind::Nan
                && let Some(&(o, position)) = sources.iter().find(|s| self.kind_at(s.0, s.1) == Some(Kind::Infinity))
                && let Some(found) = self.follow(o, Kind::Infinity, position, false)
            {
                return Some(found);
            }
            self.make(id)?;
            let found = look(n.ty.dtype, self.bytes(id))?;
            let operands = n.operands.iter().map(|&o| (self.g.ty(o).clone(), self.bytes(o).to_vec())).collect();
            return Some(Origin { node: n, found, operands, at, passes: vec![] });
        }
    }

    fn kind_at(&self, id: NodeId, at: usize) -> Option<Kind> {
        let dtype = self.g.ty(id).dtype;
        let size = dtype.bytes();
        kind(dtype, self.bytes(id).get(at * size..(at + 1) * size)?)
    }

    /// The elements of operands that element `at` of a node's result is made of, as far as they
    /// matter: of operands that are read as a whole the first of each kind that is not finite.
    fn sources(&self, n: &Node, at: usize) -> Vec<(NodeId, usize)> {
        let worst = || n.operands.iter().flat_map(|&o| self.worst(o)).collect();
        match row(&n.prim).comes_from(Site { g: self.g, node: n }) {
            Source::Chosen => {
                let chosen = self.bytes(n.operands[0]).get(at).is_some_and(|&b| b != 0);
                n.operands.get(if chosen { 1 } else { 2 }).map(|&o| (o, at)).into_iter().collect()
            }
            Source::Same => n.operands.iter().map(|&o| (o, at)).collect(),
            Source::Moved(data) => self.moved_from(n, data, at).map_or_else(worst, |source| vec![source]),
            Source::Any | Source::Turn => worst(),
        }
    }

    fn worst(&self, id: NodeId) -> Vec<(NodeId, usize)> {
        let found = look(self.g.ty(id).dtype, self.bytes(id)).unwrap_or_default();
        found.first_nan.into_iter().chain(found.first_infinity).map(|at| (id, at)).collect()
    }

    /// The element that a node which only moves elements put at `at`: the same movement of
    /// positions tells.
    fn moved_from(&self, n: &Node, data: usize, at: usize) -> Option<(NodeId, usize)> {
        let mut positions: Vec<Vec<u8>> = vec![];
        let mut starts = vec![];
        let mut next = 0i64;
        for &o in &n.operands[..data.min(n.operands.len())] {
            let elems = i64::try_from(self.g.ty(o).elems()?).ok()?;
            positions.push((next..next + elems).flat_map(i64::to_le_bytes).collect());
            starts.push(next);
            next += elems;
        }
        let operands: Vec<ArrayRef> = n
            .operands
            .iter()
            .enumerate()
            .map(|(i, &o)| match positions.get(i) {
                Some(bytes) => ArrayRef { dtype: DType::I64, bytes, ..self.array(o) },
                None => self.array(o),
            })
            .collect();
        let moved = reference::eval(&n.prim, &operands, DType::I64, &n.ty.shape).ok()?;
        let position = i64::from_le_bytes(*moved.as_chunks::<8>().0.get(at)?);
        let of = starts.iter().rposition(|&s| s <= position)?;
        Some((n.operands[of], usize::try_from(position - starts[of]).ok()?))
    }

    /// Looks for the first pass of a loop that makes something that is not finite.
    fn pass(&mut self, id: NodeId) -> Option<Origin> {
        let n = self.g.node(id).clone();
        let Prim::Scan { body, carry, sequences, trips, reversed, until } = n.prim else { return None };
        n.operands.iter().try_for_each(|&o| self.make(o))?;
        let body = self.g.bodies.get(body as usize)?;
        let mut state: Vec<Vec<u8>> = n.operands[..carry].iter().map(|&o| self.bytes(o).to_vec()).collect();
        for t in 0..trips as usize {
            if until && !crate::interpret::goes_on(&state) {
                break;
            }
            let mut inputs: Vec<&[u8]> = state.iter().map(Vec::as_slice).collect();
            for (i, &o) in n.operands.iter().enumerate().skip(carry) {
                let one = body.inputs.get(i)?.ty.bytes()? as usize;
                let all = self.bytes(o);
                let row = if reversed { trips as usize - 1 - t } else { t };
                inputs.push(if i < carry + sequences { all.get(row * one..(row + 1) * one)? } else { all });
            }
            let outputs = crate::interpret::run(body, &inputs).ok()?;
            for (&o, bytes) in body.outputs.iter().zip(&outputs) {
                let known = BTreeMap::from([(o, bytes.as_slice())]);
                if let Some(mut found) = origin(body, &inputs, &known, o) {
                    found.passes.insert(0, t as u64);
                    return Some(found);
                }
            }
            state = outputs.into_iter().take(carry).collect();
        }
        None
    }
}
