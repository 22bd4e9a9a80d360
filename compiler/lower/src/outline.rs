//! Building a region: which parts of an expression go in, and what is passed from outside.
//!
//! Also called: outlining.
//!
//! Outside stays whatever computes no tensor: variables, fields, elements of lists, scalar
//! arithmetic. It is evaluated by host code and passed, so that a scalar that changes at every
//! call does not make a new program. Constants, constructors and questions about shapes go in:
//! there they are static.

use super::Lowering;
use super::facts::Meshes;
use super::types::is_regional;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Mesh, Span};
use tessera_core::ir::*;
use tessera_core::layouts;
use tessera_core::region::RegionParam;
use tessera_core::ty::Ty;
use tessera_core::walk::{Var, as_var, called, each_child, map_children, mentioned, mentions};
use tessera_ir::graph::Policy;
use tessera_ir::host::{HExpr, HStmt};

/// What is passed for a parameter of a region.
#[derive(Clone)]
pub enum RegionInput {
    /// Evaluated where the region is called.
    Source(TExpr),
    /// Evaluated before, because its variables change in between.
    Done(HExpr),
}

impl RegionInput {
    /// The expression that is still to be evaluated.
    pub fn source(&self) -> Option<&TExpr> {
        match self {
            RegionInput::Source(e) => Some(e),
            RegionInput::Done(_) => None,
        }
    }
}

/// A region that is being collected.
pub struct Pending {
    pub params: Vec<RegionParam>,
    pub inputs: Vec<RegionInput>,
    /// Host statements that run before the region.
    pub prelude: Vec<HStmt>,
    pub body: Vec<TStmt>,
    /// Variables that the region sets, in order of their first assignment.
    pub defined: Vec<Var>,
    pub defined_set: BTreeSet<Var>,
    /// Module variables that called functions read.
    pub globals: BTreeSet<GlobalId>,
    /// Those of them that something which is evaluated for an input may have changed since.
    stale: BTreeSet<GlobalId>,
    pub policy: Policy,
    /// The one on which it has values.
    pub mesh: Option<Arc<Mesh>>,
    pub span: Span,
    paths: BTreeMap<(Var, Vec<u32>), LocalId>,
}

impl Pending {
    pub fn new(policy: Policy, span: Span) -> Pending {
        Pending {
            params: vec![],
            inputs: vec![],
            prelude: vec![],
            body: vec![],
            defined: vec![],
            defined_set: BTreeSet::new(),
            globals: BTreeSet::new(),
            stale: BTreeSet::new(),
            policy,
            mesh: None,
            span,
            paths: BTreeMap::new(),
        }
    }

    pub fn define(&mut self, v: Var) {
        if self.defined_set.insert(v) {
            self.defined.push(v);
        }
    }

    /// Goes on to the mesh of an expression, where there is none yet: that of its own value, or the first that it names.
    pub fn go_on(&mut self, e: &TExpr, meshes: &Meshes) {
        let own = layouts::tensors(&e.ty).into_iter().find_map(|t| t.sharding.mesh).filter(|m| meshes.contains(m));
        self.mesh = self.mesh.take().or(own).or_else(|| meshes.first().cloned());
    }

    /// Forgets which parameters hold values of a variable that is about to change outside.
    pub fn forget(&mut self, v: Var) {
        self.paths.retain(|(root, _), _| *root != v);
    }

    /// The same for all that a function may change.
    fn forget_globals(&mut self) {
        self.paths.retain(|(root, _), _| !matches!(root, Var::Global(_)));
        self.stale.clone_from(&self.globals);
    }
}

/// The variable and the fields that lead to the value, if the expression is such a path.
fn path(e: &TExpr) -> Option<(Var, Vec<u32>)> {
    if let Some(v) = as_var(e) {
        return Some((v, vec![]));
    }
    let TKind::Field(base, n) = &e.kind else { return None };
    let (v, mut fields) = path(base)?;
    fields.push(*n);
    Some((v, fields))
}

impl Lowering<'_> {
    /// Whether the expression can be part of a region in which the variables are defined.
    pub fn fits(&self, e: &TExpr, defined: &BTreeSet<Var>) -> bool {
        if !mentions(e, defined) || as_var(e).is_some() {
            return is_regional(&e.ty);
        }
        let mut all = self.facts.absorbs(e);
        each_child(e, &mut |c| all = all && self.fits(c, defined));
        all
    }

    /// The parts of the expression that host code evaluates are all free of effects.
    pub fn inputs_are_pure(&self, e: &TExpr, defined: &BTreeSet<Var>) -> bool {
        if !self.goes_in(e, defined) {
            return self.facts.is_pure(e);
        }
        let mut all = true;
        each_child(e, &mut |c| all = all && self.inputs_are_pure(c, defined));
        all
    }

    fn goes_in(&self, e: &TExpr, defined: &BTreeSet<Var>) -> bool {
        is_literal(e)
            || mentions(e, defined)
            || self.facts.computes(e)
            || is_static(e)
            || matches!(e.kind, TKind::Tuple(_) | TKind::List(_) | TKind::Struct(_) | TKind::Dict(_))
            || matches!(e.kind, TKind::Closure { .. } | TKind::Erase { .. })
    }

    /// The expression as the region's code, with parameters for what comes from outside.
    pub fn absorb(&mut self, e: &TExpr, p: &mut Pending) -> TExpr {
        // Whatever is computed on the way to a value that is known may fail.
        if e.is_certain()
            && let Some(kind) = known(&e.ty)
        {
            return TExpr { kind, ty: e.ty.clone(), span: e.span };
        }
        if let Some(v) = as_var(e)
            && p.defined_set.contains(&v)
        {
            return e.clone();
        }
        if is_literal(e) || !self.goes_in(e, &p.defined_set) {
            return if is_literal(e) { e.clone() } else { self.input(e, p) };
        }
        // What is taken off another mesh is computed before, there.
        if let (TKind::Layout(_), Some(mesh)) = (&e.kind, &p.mesh)
            && !e.ty.on_a_mesh()
            && !mentions(e, &p.defined_set)
            && self.facts.meshes(e).iter().any(|m| m != mesh)
        {
            return self.input(e, p);
        }
        let functions = called(e);
        if !functions.is_empty() {
            return self.absorb_call(e, &functions, p);
        }
        map_children(e, &mut |c| self.absorb(c, p))
    }

    /// A call reads variables of the file when its arguments are there.
    fn absorb_call(&mut self, e: &TExpr, functions: &[InstId], p: &mut Pending) -> TExpr {
        let read: BTreeSet<GlobalId> = functions.iter().flat_map(|&f| self.facts.globals_read(f)).collect();
        let mut acts = vec![];
        each_child(e, &mut |c| acts.push(!self.inputs_are_pure(c, &p.defined_set)));
        let late = acts.contains(&true);
        // It is computed for itself, when its turn comes.
        if read.iter().any(|g| p.stale.contains(g) || late && p.globals.contains(g)) {
            return self.input(e, p);
        }
        if !late {
            read.iter().for_each(|&g| self.global_input(g, p));
        }
        let mut at = 0;
        let absorbed = map_children(e, &mut |c| {
            at += 1;
            // So is an argument that reads what one behind it may change, and the call once more.
            let apart = acts[at..].contains(&true) && self.facts.globals_mentioned(c).iter().any(|g| read.contains(g));
            if apart && !is_literal(c) { self.input(c, p) } else { self.absorb(c, p) }
        });
        if late {
            read.iter().for_each(|&g| self.global_input(g, p));
        }
        absorbed
    }

    /// A parameter for a value from outside.
    fn input(&mut self, e: &TExpr, p: &mut Pending) -> TExpr {
        let path = path(e);
        let known = path.as_ref().and_then(|path| p.paths.get(path).copied());
        let local = known.unwrap_or_else(|| {
            let local = self.region_local();
            let name = match &path {
                Some((Var::Global(g), _)) => self.program.globals[g.0 as usize].name.clone(),
                _ => format!("arg{}", p.params.len()).into(),
            };
            p.params.push(RegionParam { local, name, ty: e.ty.clone(), global: None });
            p.inputs.push(RegionInput::Source(e.clone()));
            local
        });
        if let Some(path) = path {
            p.paths.insert(path, local);
        } else if !self.facts.is_pure(e) {
            p.forget_globals();
        }
        TExpr { kind: TKind::Local(local), ty: e.ty.clone(), span: e.span }
    }

    /// A parameter for a module variable that a called function reads.
    fn global_input(&mut self, g: GlobalId, p: &mut Pending) {
        let var = &self.program.globals[g.0 as usize];
        if p.globals.insert(g) && !p.defined_set.contains(&Var::Global(g)) && is_regional(&var.ty) {
            let local = self.region_local();
            let source = TExpr { kind: TKind::Global(g), ty: var.ty.clone(), span: var.span };
            p.params.push(RegionParam { local, name: var.name.clone(), ty: var.ty.clone(), global: Some(g) });
            p.inputs.push(RegionInput::Source(source));
        }
    }
}

fn is_literal(e: &TExpr) -> bool {
    matches!(e.kind, TKind::Int(_) | TKind::Float(_) | TKind::Bool(_) | TKind::Str(_) | TKind::None | TKind::DType(_))
}

/// The value of an int or an element type, where the type says it.
fn known(ty: &Ty) -> Option<TKind> {
    match ty {
        Ty::Int(Some(size)) => size.as_const().map(TKind::Int),
        Ty::DType(dtype) => dtype.map(TKind::DType),
        _ => None,
    }
}

/// Scalars that follow from constants and shapes alone.
fn is_static(e: &TExpr) -> bool {
    match &e.kind {
        TKind::TensorDim(base, _) | TKind::TensorShape(base) | TKind::TensorDType(base) => path(base).is_some(),
        TKind::Builtin { name, args } => *name == Builtin::tensor_size && args.iter().all(|a| path(a).is_some()),
        TKind::Arith { left, right, .. } => is_static_operand(left) && is_static_operand(right),
        TKind::Neg(a) | TKind::IntToFloat(a) => is_static_operand(a),
        _ => false,
    }
}

fn is_static_operand(e: &TExpr) -> bool {
    is_literal(e) || is_static(e)
}

/// The variables that a source expression reads.
pub fn input_vars(input: &RegionInput) -> BTreeSet<Var> {
    input.source().map(mentioned).unwrap_or_default()
}
