//! The layouts of results over a mesh: derived from the operator's own expansion at sizes that
//! stand for all.

use super::own_parts::own_part;
use super::ways::ways;
use crate::sizes::SizeCx;
use std::collections::BTreeMap;
use tessera_base::{Code, DType, Facts, Monoid, Sharding, Size, SizeVar, TensorType};
use tessera_ir::graph::{Graph, Input, Node, NodeId, NodeType, Origin, Policy};
use tessera_ops::prim::{Prim, Scalar};
use tessera_ops::surface::{Arg, Build, Hints, Id, OpDef, OpError, OpTypes, SymArg, Weak, Wrap};
use tessera_shard::propagate_sharding::{Problem, derive};

/// The result types with their layouts. E0404 to E0406 where operands lie so that data would have
/// to move.
pub fn lay_out(
    cx: &SizeCx,
    def: &OpDef,
    syms: &[SymArg],
    hints: &Hints,
    types: OpTypes,
) -> Result<OpTypes, Box<OpError>> {
    let tensors = || {
        syms.iter().flat_map(|s| match s {
            SymArg::Tensor(t) => std::slice::from_ref(t),
            SymArg::Tensors(ts) => ts.as_slice(),
            _ => &[],
        })
    };
    let meshes = tensors().filter_map(|t| t.sharding.mesh.as_ref());
    let Some(devices) = meshes.map(|m| m.devices().max(1)).max() else { return Ok(types) };
    let mut example = Example {
        facts: &cx.facts,
        equal: equalities(cx),
        devices,
        graph: Graph::default(),
        sizes: BTreeMap::new(),
        owner: vec![],
    };
    let args: Option<Vec<Arg>> = syms.iter().enumerate().map(|(i, s)| example.arg(i, s)).collect();
    let unknown = || OpError::new(Code::E0406, format!("how the result of `{}` lies is not known", def.name));
    let args = args.ok_or_else(unknown)?;
    let ids = (def.expand)(&mut Expansion(&mut example.graph), &args, hints).map_err(|_| {
        unknown()
            .note("the operator's sizes are related in ways that are not known here")
            .help("give the sizes as numbers")
    })?;
    example.graph.outputs = ids.iter().map(|id| NodeId(id.0)).collect();
    let found = derive(&example.graph).map_err(|p| Box::new(example.error(def, syms, p)))?;
    // What is like an operand lies like it.
    let found = match (def.name.ends_with("_like"), example.graph.inputs.first()) {
        (true, Some(like)) => {
            let own = &like.ty.sharding;
            vec![Sharding { partial: own.positions(), ..own.clone() }; found.len()]
        }
        _ => found,
    };
    let with = |(t, sharding): (TensorType, Sharding)| TensorType { sharding, ..t };
    Ok(match types {
        OpTypes::One(t) => OpTypes::One(with((t, found.into_iter().next().unwrap_or_default()))),
        OpTypes::Many(ts) => OpTypes::Many(ts.into_iter().zip(found).map(with).collect()),
    })
}

/// What the checks at run time say of sizes that only data knows.
fn equalities(cx: &SizeCx) -> BTreeMap<SizeVar, Size> {
    let mut out: BTreeMap<SizeVar, Size> = BTreeMap::new();
    for check in &cx.checks {
        let known = |s: &Size| s.normal(&cx.facts).substitute(&mut |v| out.get(v).cloned());
        let (a, b) = (known(&check.left), known(&check.right));
        let (v, is) = match (a.as_var().cloned(), b.as_var().cloned()) {
            (Some(v), _) if !b.vars().contains(&v) => (v, b),
            (_, Some(v)) if !a.vars().contains(&v) => (v, a),
            _ => continue,
        };
        // Nothing that is known mentions what is replaced now.
        for e in out.values_mut() {
            *e = e.substitute(&mut |o| (*o == v).then(|| is.clone()));
        }
        out.insert(v, is);
    }
    out
}

/// The nodes of an operator.
struct Expansion<'a>(&'a mut Graph);

impl Build for Expansion<'_> {
    fn shape(&self, id: Id) -> Vec<u64> {
        self.0.ty(NodeId(id.0)).shape.clone()
    }

    fn dtype(&self, id: Id) -> DType {
        self.0.ty(NodeId(id.0)).dtype
    }

    fn push(&mut self, prim: Prim, operands: &[Id], shape: Vec<u64>, dtype: DType) -> Id {
        Id(self.0.push(node(prim, operands, NodeType::new(shape, dtype))).0)
    }
}

fn node(prim: Prim, operands: &[Id], ty: NodeType) -> Node {
    let operands = operands.iter().map(|id| NodeId(id.0)).collect();
    Node { prim, operands, ty, results: vec![], origin: Origin::default(), policy: Policy::default() }
}

/// The call at sizes that stand for all.
struct Example<'a> {
    facts: &'a Facts,
    /// Sizes that are other sizes wherever the program goes on.
    equal: BTreeMap<SizeVar, Size>,
    devices: u64,
    graph: Graph,
    sizes: BTreeMap<SizeVar, i64>,
    /// The parameter that each input of the graph belongs to.
    owner: Vec<usize>,
}

impl Example<'_> {
    /// A number for a size: what it is, or a multiple of the devices of its own.
    fn size(&mut self, s: &Size) -> Option<i64> {
        let s = s.normal(self.facts).substitute(&mut |v| self.equal.get(v).cloned());
        for v in s.vars() {
            let next = (self.sizes.len() as i64 + 2) * 8 * self.devices as i64;
            self.sizes.entry(v).or_insert(next);
        }
        s.eval(&|v| self.sizes.get(v).copied())
    }

    fn tensor(&mut self, param: usize, t: &TensorType) -> Option<Id> {
        let shape: Vec<u64> =
            t.shape.iter().map(|s| self.size(s).and_then(|n| u64::try_from(n).ok())).collect::<Option<_>>()?;
        let ty = NodeType { shape, dtype: t.dtype.unwrap_or(DType::F32), sharding: t.sharding.clone() };
        let n = self.graph.inputs.len() as u32;
        self.graph.inputs.push(Input { name: "x".into(), ty: ty.clone(), scalar: false });
        self.owner.push(param);
        let input = node(Prim::Input(n), &[], NodeType { sharding: Sharding::default(), ..ty });
        Some(Id(self.graph.push(input).0))
    }

    fn arg(&mut self, param: usize, s: &SymArg) -> Option<Arg> {
        Some(match s {
            SymArg::None => Arg::None,
            SymArg::Tensor(t) => Arg::Tensor(self.tensor(param, t)?),
            SymArg::Tensors(ts) => Arg::Tensors(ts.iter().map(|t| self.tensor(param, t)).collect::<Option<_>>()?),
            SymArg::Weak(Weak::Bool) => Arg::Bool(true),
            SymArg::Weak(Weak::Int) => Arg::Scalar(Scalar::I(3)),
            SymArg::Weak(Weak::Float) => Arg::Scalar(Scalar::F(0.75)),
            SymArg::Int(n) => Arg::Int(self.size(n)?),
            SymArg::Ints(ns) => Arg::Ints(ns.iter().map(|n| self.size(n)).collect::<Option<_>>()?),
            SymArg::Float(x) => Arg::Float(x.unwrap_or(0.5)),
            SymArg::Bool(b) => Arg::Bool(b.unwrap_or(false)),
            SymArg::DType(d) => Arg::DType(*d),
            SymArg::Str(s) => Arg::Str(s.clone()),
            SymArg::Nested { shape, dtype } => {
                let shape: Vec<u64> = shape.iter().map(|s| self.size(s).map(|n| n as u64)).collect::<Option<_>>()?;
                let values = vec![Scalar::I(0); shape.iter().product::<u64>() as usize];
                Arg::Nested { shape, dtype: *dtype, values }
            }
        })
    }

    fn error(&self, def: &OpDef, syms: &[SymArg], problem: Problem) -> OpError {
        let name = def.name;
        let blame = |e: OpError, input: Option<u32>, text: &str| match input.and_then(|n| self.owner.get(n as usize)) {
            Some(&param) => e.arg(param, text),
            None => e,
        };
        match problem {
            Problem::Conflict { axis } => {
                let e = OpError::new(
                    Code::E0404,
                    format!("the operands of `{name}` are split over `{axis}` in different ways"),
                )
                .note("along one axis of the mesh only one dim of the result can be split");
                self.ways_out(e, syms, &axis, None)
            }
            Problem::Apart { axis, .. } => self.apart(name, syms, &axis),
            Problem::Order { axis } => {
                let e =
                    OpError::new(Code::E0404, format!("the operands of `{name}` split one dim over different axes"))
                        .note("their blocks are not the same ones, so each device would need parts of others");
                self.ways_out(e, syms, &axis, None).help("or lay one out like the other: `dist.shard(x, spec)`")
            }
            Problem::Partial { axis, monoid: Monoid::Each(own), input } => {
                let lies = input.and_then(|n| self.graph.inputs.get(n as usize)).and_then(|i| i.ty.sharding.own(&axis));
                let param = input.and_then(|n| self.owner.get(n as usize)).copied();
                blame(own_part(name, &axis, own, lies, param), input, "")
            }
            Problem::Partial { axis, monoid, input } => {
                let sum = if monoid == Monoid::Sum { "the sum" } else { "the whole value" };
                let e =
                    OpError::new(Code::E0405, format!("`{name}` needs {sum}, and this is partial over `{axis}`")).note(
                        format!("of a `{}@{axis}` value each device of `{axis}` stands for a part only", monoid.name()),
                    );
                blame(self.completed(e, &axis, input), input, "")
            }
            Problem::Whole { axis, dim, input } => {
                let e = OpError::new(Code::E0406, format!("`{name}` needs a dim in full that is split over `{axis}`"))
                    .note("nothing is gathered without being asked for");
                let e = self.ways_out(e, syms, &axis, input);
                blame(e, input, &format!("dim {dim} is split"))
            }
            Problem::Divide { axis, parts, from, to, input } => {
                let e = OpError::new(
                    Code::E0406,
                    format!("the {parts} devices of `{axis}` do not divide the new dims evenly"),
                )
                .note(format!("a dim of {from} goes along with one of {to}, and both must be multiples of {parts}"));
                blame(self.ways_out(e, syms, &axis, input), input, "")
            }
            Problem::Meshes(a, b) => OpError::new(Code::E0404, format!("operands of `{name}` lie on different meshes"))
                .note(format!("one is {a}, the other {b}"))
                .help("take one off its mesh: `dist.gather(x)`"),
        }
    }

    /// Operands at different positions of an axis, or at one and split over it.
    fn apart(&self, name: &str, syms: &[SymArg], axis: &str) -> OpError {
        let mut e = OpError::new(Code::E0404, format!("the operands of `{name}` lie apart along `{axis}`"))
            .note("what lies at one position is computed there, with what lies there too or is everywhere in full");
        let lies = |sym: &SymArg| match sym {
            SymArg::Tensor(t) => Some(t.sharding.clone()),
            SymArg::Tensors(ts) => ts.first().map(|t| t.sharding.clone()),
            _ => None,
        };
        let all: Vec<(usize, Sharding)> = syms.iter().enumerate().filter_map(|(i, s)| Some((i, lies(s)?))).collect();
        let split = all.iter().any(|(_, s)| s.dim_of(axis).is_some());
        for (param, own) in all.iter().filter(|(_, s)| s.position(axis).is_some()) {
            let mut wrap = |what: &str, before: &str, after: String| {
                let title = format!("{what}: `{before}x{after}`");
                let before = before.to_owned();
                e.wraps.push(Wrap { title, param: *param, before, after });
            };
            if split {
                wrap("bring it to all", "dist.collective.broadcast(", format!(", axis=\"{axis}\")"));
                continue;
            }
            let mut others: Vec<u64> = all.iter().filter_map(|(_, s)| s.position(axis)).collect();
            others.sort_unstable();
            others.dedup();
            for index in others.into_iter().filter(|i| own.position(axis) != Some(*i)) {
                wrap(&format!("bring it to {index}"), "dist.at(", format!(", axis=\"{axis}\", index={index})"));
            }
        }
        e
    }

    /// The call that completes the operand to blame.
    fn completed(&self, mut e: OpError, axis: &str, blamed: Option<u32>) -> OpError {
        let of = blamed.and_then(|n| self.graph.inputs.get(n as usize)).map(|i| &i.ty.sharding.partial);
        let axes = of.map_or(1, |partial| partial.iter().filter(|p| p.0.position().is_none()).count());
        let (before, after) = match axes {
            0 | 1 => ("dist.collective.all_reduce(".to_owned(), format!(", axis=\"{axis}\")")),
            _ => ("dist.complete(".to_owned(), ")".to_owned()),
        };
        let title = format!("complete it first: `{before}x{after}`");
        match blamed.and_then(|n| self.owner.get(n as usize).copied()) {
            Some(param) => e.wraps.push(Wrap { title, param, before, after }),
            None => e.help.push(title),
        }
        e
    }

    /// What can be written around operands that an axis splits, one by one or around the one to
    /// blame, so that the operator takes them; where nothing alone does, what mends that one. The
    /// tensors of a list lie alike and go together.
    fn ways_out(&self, mut e: OpError, syms: &[SymArg], axis: &str, blamed: Option<u32>) -> OpError {
        let mut second = vec![];
        let blamed = blamed.and_then(|n| self.owner.get(n as usize));
        for (param, sym) in syms.iter().enumerate().filter(|(param, _)| blamed.is_none_or(|b| b == param)) {
            let first = match sym {
                SymArg::Tensor(t) => Some(t),
                SymArg::Tensors(ts) => ts.first(),
                _ => None,
            };
            let split = first.and_then(|t| t.sharding.dim_of(axis).map(|dim| (t, dim)));
            for way in split.map(|(t, dim)| ways(t, dim)).unwrap_or_default() {
                let mut graph = self.graph.clone();
                let own = graph.inputs.iter_mut().zip(&self.owner).filter(|(_, p)| **p == param);
                own.for_each(|(input, _)| input.ty.sharding = way.to.clone());
                let wrap = Wrap { title: way.title, param, before: way.before, after: way.after };
                match derive(&graph) {
                    Ok(_) => e.wraps.push(wrap),
                    Err(Problem::Whole { input: Some(i), .. } | Problem::Divide { input: Some(i), .. })
                        if self.owner.get(i as usize) == Some(&param) => {}
                    Err(_) => second.push(wrap),
                }
            }
        }
        if e.wraps.is_empty() {
            e.wraps = second;
        }
        e
    }
}
