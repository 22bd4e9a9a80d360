//! Tensor operations: each is traced by itself and run by the reference kernels.

use crate::machine::{End, Machine, R};
use crate::value::{Leaf, Value};
use std::rc::Rc;
use tessera_abi::check::Check;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::*;
use tessera_core::region::{Region, RegionParam};
use tessera_core::ty::Ty;
use tessera_core::walk::each_child_mut;
use tessera_ir::graph::{Graph, Policy};
use tessera_ir::host::RegionId;
use tessera_ir::interpret::Stopped;
use tessera_ops::prim::Prim;
use tessera_runtime::fault::Fault;
use tessera_runtime::host_value::HostKey;
use tessera_runtime::math::refused;
use tessera_runtime::tensor::{OutOfMemory, Tensor, memory_limit};
use tessera_trace::scalar::{Kind, Known};
use tessera_trace::value::Key;
use tessera_trace::{InputSource, RegionArg, Template, Traced, trace};

/// Parameters of a region in the making, with their values.
pub struct Making {
    params: Vec<RegionParam>,
    values: Vec<Value>,
}

/// Variables of regions are numbered from here, apart from those of functions.
const FIRST_LOCAL: u32 = 1 << 30;

impl Making {
    pub fn new() -> Making {
        Making { params: vec![], values: vec![] }
    }

    /// A new parameter as an expression.
    pub fn param(&mut self, value: Value, ty: &Ty, span: Span) -> TExpr {
        let local = LocalId(FIRST_LOCAL + self.params.len() as u32);
        self.params.push(RegionParam { local, name: "operand".into(), ty: ty.clone(), global: None });
        self.values.push(value);
        TExpr { kind: TKind::Local(local), ty: ty.clone(), span }
    }
}

impl Machine<'_> {
    /// An operation on the values of its operands. With `calls` it calls functions of the program, which read module
    /// variables.
    pub fn operation(&mut self, e: &TExpr, calls: bool) -> R<Value> {
        let mut making = Making::new();
        let whole = self.operands(e.clone(), &mut making)?;
        self.region(making, vec![], whole, calls)
    }

    /// An expression with parameters for its operands.
    pub fn operands(&mut self, mut e: TExpr, making: &mut Making) -> R<TExpr> {
        let mut failed = None;
        each_child_mut(&mut e, &mut |child| {
            if failed.is_none() {
                match self.operand(child, making) {
                    Ok(param) => *child = param,
                    Err(end) => failed = Some(end),
                }
            }
        });
        failed.map_or(Ok(e), Err)
    }

    /// An operand as a parameter. What a literal says the operation knows.
    pub fn operand(&mut self, e: &TExpr, making: &mut Making) -> R<TExpr> {
        let literal = matches!(
            e.kind,
            TKind::Int(_) | TKind::Float(_) | TKind::Bool(_) | TKind::Str(_) | TKind::None | TKind::DType(_)
        );
        if literal {
            return Ok(e.clone());
        }
        // What each element is typed as tells sizes.
        if let TKind::List(_) | TKind::Tuple(_) = e.kind {
            return self.operands(e.clone(), making);
        }
        let value = self.expr(e)?;
        Ok(making.param(value, &e.ty, e.span))
    }

    /// A kernel, or a tile program: what it means it means as a whole.
    pub fn kernel(&mut self, inst: InstId, captures: Vec<Value>, args: Vec<Value>, span: Span) -> R<Value> {
        let program = self.program;
        let f = &program.insts[inst.0 as usize];
        let ty = |l: &LocalId| f.locals[l.0 as usize].ty.clone();
        let mut making = Making::new();
        let callee = (!captures.is_empty()).then(|| {
            let tys = Ty::Tuple(f.captures.iter().map(ty).collect());
            Box::new(making.param(Value::record(captures), &tys, span))
        });
        let args = f.params.iter().zip(args).map(|(l, value)| making.param(value, &ty(l), span)).collect();
        let call = TExpr { kind: TKind::Call { inst, callee, args }, ty: f.ret.clone(), span };
        self.region(making, vec![], call, true)
    }

    /// Statements and a result over parameters.
    pub fn region(&mut self, mut making: Making, body: Vec<TStmt>, result: TExpr, calls: bool) -> R<Value> {
        if calls {
            for (g, value) in self.globals.iter().enumerate() {
                let Some(value) = value else { continue };
                let variable = &self.program.globals[g];
                let span = variable.span;
                making.param(value.clone(), &variable.ty, span);
                if let Some(param) = making.params.last_mut() {
                    param.global = Some(GlobalId(g as u32));
                }
            }
        }
        let (span, policy) = (result.span, self.policy);
        let region = Region {
            id: RegionId(0),
            name: "operation".into(),
            params: making.params,
            body,
            results: vec![result],
            policy,
            hints: None,
            span,
            assertions: None,
        };
        let args: Vec<RegionArg> = making.values.iter().map(Value::region_arg).collect();
        let mut leaves = vec![];
        making.values.iter().for_each(|v| v.leaves(&mut leaves));
        let traced = trace(self.program, &region, &args).map_err(|d| Box::new(End::Failed(d)))?;
        if let Some(at) = device_code(&traced.graph) {
            return self.unknown(at, "what devices of a mesh do by themselves");
        }
        let outputs = self.computed(&traced, &leaves, span)?;
        let results = Results { outputs: &outputs, graph: &traced.graph, leaves: &leaves };
        match traced.results.first() {
            Some(template) => results.value(template).map_err(|d| Box::new(End::Failed(vec![*d]))),
            None => self.broken(span, "a result"),
        }
    }

    /// The outputs of a graph.
    fn computed(&self, traced: &Traced, leaves: &[Leaf], span: Span) -> R<Vec<Vec<u8>>> {
        let graph = &traced.graph;
        let needed: u64 = graph.nodes.iter().map(|n| n.ty.bytes().unwrap_or(u64::MAX)).max().unwrap_or(0);
        if needed > memory_limit() {
            return Err(self.fault(OutOfMemory { bytes: needed }.into(), span));
        }
        let scalars = traced.inputs.iter().map(|source| match source {
            InputSource::Tensor(_) => Ok(vec![]),
            InputSource::Scalar(expr) => expr.eval(&|leaf| scalar(leaves, leaf)).map(bytes),
        });
        let scalars: Vec<Vec<u8>> = scalars.collect::<Result<_, _>>().map_err(|d| Box::new(End::Failed(vec![*d])))?;
        let mut inputs: Vec<&[u8]> = vec![];
        for (source, words) in traced.inputs.iter().zip(&scalars) {
            inputs.push(match source {
                InputSource::Tensor(leaf) => match leaves.get(*leaf as usize) {
                    Some(Leaf::Tensor(t)) => t.host().map_err(|fault| self.fault(fault, span))?,
                    _ => return self.broken(span, "a tensor"),
                },
                InputSource::Scalar(_) => words,
            });
        }
        let graph = tessera_graph::product_order::run(graph.clone(), self.order);
        tessera_ir::interpret::run(&graph, &inputs).map_err(|s| self.stopped(s, span))
    }

    fn stopped(&self, s: Stopped, span: Span) -> Box<End> {
        let at = if s.span.is_none() { span } else { s.span };
        match s.error.refused {
            Some(r) => {
                let mut fault = refused(r.check, r.operands);
                if r.check == Check::Holds
                    && let Some(said) = self.program.said_by_assertion(at)
                {
                    fault.message = said;
                }
                self.fault(fault, at)
            }
            None => self.fault(Fault::new(s.error.code, s.error.message), at),
        }
    }

    /// Under another policy.
    pub fn with_policy<T>(&mut self, policy: Policy, f: impl FnOnce(&mut Self) -> R<T>) -> R<T> {
        let outer = std::mem::replace(&mut self.policy, policy);
        let result = f(self);
        self.policy = outer;
        result
    }
}

fn scalar(leaves: &[Leaf], leaf: u32) -> Known {
    match leaves.get(leaf as usize) {
        Some(Leaf::Scalar(k)) => *k,
        // Tracing numbers the same leaves.
        _ => Known::Int(0),
    }
}

fn bytes(known: Known) -> Vec<u8> {
    match known {
        Known::Bool(b) => vec![u8::from(b)],
        other => other.bits().to_le_bytes().to_vec(),
    }
}

/// Where a graph, or a loop in it, has code of single devices.
fn device_code(graph: &Graph) -> Option<Span> {
    let own = graph.nodes.iter().find(|n| matches!(n.prim, Prim::Collective(_)));
    own.map(|n| n.origin.span).or_else(|| graph.bodies.iter().find_map(device_code))
}

/// What a traced region gives.
struct Results<'a> {
    outputs: &'a [Vec<u8>],
    graph: &'a Graph,
    leaves: &'a [Leaf],
}

impl Results<'_> {
    fn value(&self, template: &Template) -> Result<Value, Box<Diagnostic>> {
        let all = |items: &[Template]| items.iter().map(|t| self.value(t)).collect::<Result<Vec<_>, _>>();
        Ok(match template {
            Template::Output(n) => {
                let ty = self.graph.ty(self.graph.outputs[*n as usize]);
                let tensor = Tensor::from_bytes(ty.dtype, &ty.shape, &self.outputs[*n as usize]);
                Value::Tensor(tensor.map_err(|e| {
                    let fault = Fault::from(e);
                    tessera_trace::scalar::diagnostic(fault, Span::NONE)
                })?)
            }
            Template::Element(n, kind) => element(*kind, &self.outputs[*n as usize]).into(),
            Template::Argument(leaf) => match self.leaves.get(*leaf as usize) {
                Some(Leaf::Tensor(t)) => Value::Tensor(t.clone()),
                _ => return Err(Box::new(Diagnostic::new(Code::E0999, Span::NONE, "a tensor argument is missing"))),
            },
            Template::Scalar(expr) => expr.eval(&|leaf| scalar(self.leaves, leaf))?.into(),
            Template::Str(s) => Value::Str(s.clone()),
            Template::None => Value::None,
            Template::DType(d) => Value::DType(*d),
            Template::Record(items) => Value::record(all(items)?),
            Template::List(items) => Value::list(all(items)?),
            Template::Dict(entries) => {
                let entry = |(k, t): &(Key, Template)| {
                    let key = match k {
                        Key::Int(n) => HostKey::Int(*n),
                        Key::Bool(b) => HostKey::Bool(*b),
                        Key::Str(s) => HostKey::Str(s.clone()),
                    };
                    Ok((key, self.value(t)?))
                };
                Value::Dict(Rc::new(entries.iter().map(entry).collect::<Result<_, Box<Diagnostic>>>()?))
            }
            Template::Closure { inst, captures } => Value::Closure(*inst, Rc::new(all(captures)?)),
        })
    }
}

fn element(kind: Kind, bytes: &[u8]) -> Known {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    kind.read(u64::from_le_bytes(word))
}
