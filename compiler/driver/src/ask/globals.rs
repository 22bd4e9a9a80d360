//! What variables of the file hold, as far as its text says it: constants, what is computed from them, and tensors of which
//! the type says every size. Nothing runs: a value is what tracing its one assignment gives.

use std::collections::{BTreeMap, BTreeSet};
use tessera_base::{DType, Span};
use tessera_core::ir::{GlobalId, LocalId, Program, TExpr, TKind, TLvalue, TRoot, TStmt};
use tessera_core::region::{Region, RegionParam};
use tessera_core::ty::Ty;
use tessera_core::walk::{each_expr, each_stmt};
use tessera_ir::graph::Policy;
use tessera_ir::host::RegionId;
use tessera_lower::facts::Facts;
use tessera_trace::{RegionArg, Template, Traced, leaves, trace};

/// Parameters of regions are numbered from here, apart from variables of functions.
const PARAMS: u32 = 1 << 30;

/// A region that is made here.
pub fn region(name: &str, params: Vec<RegionParam>, results: Vec<TExpr>, span: Span) -> Region {
    let (name, body, policy) = (name.into(), vec![], Policy::default());
    Region { id: RegionId(0), name, params, body, results, policy, hints: None, span, assertions: None }
}

/// The variable behind parameter `i`.
pub fn param_local(i: usize) -> LocalId {
    LocalId(PARAMS + i as u32)
}

/// The values of module variables.
pub struct Globals<'p> {
    program: &'p Program,
    facts: &'p Facts<'p>,
    known: BTreeMap<GlobalId, Option<RegionArg>>,
}

impl<'p> Globals<'p> {
    pub fn new(program: &'p Program, facts: &'p Facts<'p>) -> Globals<'p> {
        Globals { program, facts, known: BTreeMap::new() }
    }

    /// Parameters and arguments for variables.
    ///
    /// # Errors
    /// The first variable that only running gives a value.
    pub fn passed(&mut self, of: &BTreeSet<GlobalId>, first: usize) -> Result<Vec<(RegionParam, RegionArg)>, GlobalId> {
        let mut out = vec![];
        for &g in of {
            let var = &self.program.globals[g.0 as usize];
            // All there is to know of them is their type.
            if matches!(var.ty, Ty::Mesh(_) | Ty::ShardSpec(_)) {
                continue;
            }
            let value = self.value(g).ok_or(g)?;
            let local = param_local(first + out.len());
            out.push((RegionParam { local, name: var.name.clone(), ty: var.ty.clone(), global: Some(g) }, value));
        }
        Ok(out)
    }

    fn value(&mut self, g: GlobalId) -> Option<RegionArg> {
        if let Some(known) = self.known.get(&g) {
            return known.clone();
        }
        // A variable that needs itself has no value.
        self.known.insert(g, None);
        let ty = &self.program.globals[g.0 as usize].ty;
        let value = self.computed(g).or_else(|| by_type(ty));
        self.known.insert(g, value.clone());
        value
    }

    /// What its one assignment gives.
    fn computed(&mut self, g: GlobalId) -> Option<RegionArg> {
        let e = self.assigned(g)?;
        let mut local = false;
        each_expr(e, &mut |e| local |= matches!(e.kind, TKind::Local(_)));
        let reads = self.facts.globals_mentioned(e);
        if local || reads.contains(&g) {
            return None;
        }
        let (params, args): (Vec<RegionParam>, Vec<RegionArg>) = self.passed(&reads, 0).ok()?.into_iter().unzip();
        let traced = trace(self.program, &region("value", params, vec![e.clone()], e.span), &args).ok()?;
        argument(traced.results.first()?, &traced, &args)
    }

    /// The value of the one statement that assigns it, at the top level of a module, where nothing changes it in place.
    fn assigned(&self, g: GlobalId) -> Option<&'p TExpr> {
        let (mut found, mut times) = (None, 0);
        for f in &self.program.insts {
            each_stmt(&f.body, &mut |s| match s {
                TStmt::SetGlobal(id, _) if *id == g => times += 1,
                TStmt::Mutate { place: TLvalue { root: TRoot::Global(id), .. }, .. } if *id == g => times += 2,
                _ => {}
            });
            let set = |s: &'p TStmt| if let TStmt::SetGlobal(id, e) = s { (*id == g).then_some(e) } else { None };
            found = found.or(f.body.iter().find_map(set));
        }
        found.filter(|_| times == 1)
    }
}

/// A result as an argument of another region.
fn argument(t: &Template, traced: &Traced, args: &[RegionArg]) -> Option<RegionArg> {
    let all = |items: &[Template]| items.iter().map(|t| argument(t, traced, args)).collect::<Option<Vec<_>>>();
    let known = |leaf: u32| {
        let scalar = leaves(args).get(leaf as usize).and_then(|a| a.scalar());
        scalar.unwrap_or(tessera_trace::scalar::Known::Int(0))
    };
    Some(match t {
        Template::Output(i) => {
            let ty = traced.graph.ty(*traced.graph.outputs.get(*i as usize)?);
            RegionArg::Tensor { dtype: ty.dtype, shape: ty.shape.clone(), layout: ty.sharding.clone() }
        }
        Template::Argument(n) => (*leaves(args).get(*n as usize)?).clone(),
        Template::Scalar(e) => match e.eval(&known).ok()? {
            tessera_trace::scalar::Known::Int(n) => RegionArg::Int(n),
            tessera_trace::scalar::Known::Float(x) => RegionArg::Float(x),
            tessera_trace::scalar::Known::Bool(b) => RegionArg::Bool(b),
        },
        // Only the graph computes it.
        Template::Element(..) => return None,
        Template::Str(text) => RegionArg::Str(text.clone()),
        Template::None => RegionArg::None,
        Template::DType(d) => RegionArg::DType(*d),
        Template::Record(items) => RegionArg::Record(all(items)?),
        Template::List(items) => RegionArg::List(all(items)?),
        Template::Dict(entries) => {
            let entry = |(k, t): &(_, Template)| Some((Clone::clone(k), argument(t, traced, args)?));
            RegionArg::Dict(entries.iter().map(entry).collect::<Option<_>>()?)
        }
        Template::Closure { inst, captures } => RegionArg::Closure { inst: *inst, captures: all(captures)? },
    })
}

/// A value of which the type says all that a graph depends on.
fn by_type(ty: &Ty) -> Option<RegionArg> {
    Some(match ty {
        Ty::Int(Some(size)) => RegionArg::Int(size.as_const()?),
        Ty::DType(Some(d)) => RegionArg::DType(*d),
        Ty::None => RegionArg::None,
        Ty::Tensor(t) => {
            let dim = |size: &tessera_base::Size| size.as_const().and_then(|n| u64::try_from(n).ok());
            let dtype: DType = t.dtype?;
            RegionArg::Tensor {
                dtype,
                shape: t.shape.iter().map(dim).collect::<Option<_>>()?,
                layout: t.sharding.clone(),
            }
        }
        Ty::Tuple(parts) => RegionArg::Record(parts.iter().map(by_type).collect::<Option<_>>()?),
        Ty::Struct(s) => RegionArg::Record(s.fields.iter().map(|f| by_type(&f.1)).collect::<Option<_>>()?),
        _ => return None,
    })
}
