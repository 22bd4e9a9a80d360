//! What lowering asks of functions and expressions: where tensors are computed, and which
//! module variables a function reads.

use super::types::{has_closure, has_tensor, is_regional};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::Mesh;
use tessera_core::builtins::Does;
use tessera_core::ir::*;
use tessera_core::layouts;
use tessera_core::ty::Ty;
use tessera_core::walk::{Var, called, each_child, each_expr, each_expr_in, each_stmt, mentioned};

/// Meshes, in their order.
pub type Meshes = BTreeSet<Arc<Mesh>>;

/// Facts of one program.
pub struct Facts<'p> {
    pub program: &'p Program,
    reads: RefCell<BTreeMap<InstId, BTreeSet<GlobalId>>>,
    meshes: RefCell<BTreeMap<InstId, Meshes>>,
    /// Module variables that no function but the module body mentions.
    pub private: BTreeSet<GlobalId>,
}

impl<'p> Facts<'p> {
    pub fn new(program: &'p Program) -> Facts<'p> {
        let mut shared = BTreeSet::new();
        for (i, inst) in program.insts.iter().enumerate() {
            if program.entry != Some(InstId(i as u32)) {
                shared.extend(mentioned_globals(&inst.body));
            }
        }
        let all = (0..program.globals.len() as u32).map(GlobalId);
        let private = match program.entry {
            Some(_) => all.filter(|g| !shared.contains(g)).collect(),
            None => BTreeSet::new(),
        };
        Facts { program, reads: RefCell::default(), meshes: RefCell::default(), private }
    }

    pub fn inst(&self, id: InstId) -> &'p FnInst {
        &self.program.insts[id.0 as usize]
    }

    /// A call of the function can be part of a region.
    pub fn traceable(&self, id: InstId) -> bool {
        let inst = self.inst(id);
        let local = |l: &LocalId| is_regional(&inst.locals[l.0 as usize].ty);
        inst.effect == Effect::Graph
            && is_regional(&inst.ret)
            && !has_closure(&inst.ret)
            && inst.params.iter().chain(&inst.captures).all(local)
    }

    /// A call of the function computes tensors, and is therefore a region of its own or a part
    /// of one.
    pub fn graph_call(&self, id: InstId) -> bool {
        self.traceable(id) && has_tensor(&self.inst(id).ret)
    }

    /// The module variables that a call of the function reads, directly or not.
    pub fn globals_read(&self, id: InstId) -> BTreeSet<GlobalId> {
        if let Some(known) = self.reads.borrow().get(&id) {
            return known.clone();
        }
        let (mut seen, mut todo, mut out) = (BTreeSet::new(), vec![id], BTreeSet::new());
        while let Some(id) = todo.pop() {
            if seen.insert(id) {
                let body = &self.inst(id).body;
                todo.extend(self.inst(id).backward);
                out.extend(mentioned_globals(body));
                each_expr_in(body, &mut |e| todo.extend(called(e)));
            }
        }
        self.reads.borrow_mut().insert(id, out.clone());
        out
    }

    /// The meshes on which the expression has values, in functions that it calls too.
    pub fn meshes(&self, e: &TExpr) -> Meshes {
        let (mut out, mut todo) = (Meshes::new(), vec![]);
        each_expr(e, &mut |e| {
            named(e, &mut out);
            todo.extend(called(e));
        });
        todo.into_iter().for_each(|inst| out.extend(self.meshes_of(inst)));
        out
    }

    fn meshes_of(&self, id: InstId) -> Meshes {
        if let Some(known) = self.meshes.borrow().get(&id) {
            return known.clone();
        }
        let (mut seen, mut todo, mut out) = (BTreeSet::new(), vec![id], Meshes::new());
        while let Some(id) = todo.pop() {
            if seen.insert(id) {
                todo.extend(self.inst(id).backward);
                each_expr_in(&self.inst(id).body, &mut |e| {
                    named(e, &mut out);
                    todo.extend(called(e));
                });
            }
        }
        self.meshes.borrow_mut().insert(id, out.clone());
        out
    }

    /// Whether the expression's own value (not an argument of some host operation in it) is
    /// computed from tensors by graph operations.
    pub fn computes(&self, e: &TExpr) -> bool {
        match &e.kind {
            TKind::Op { def, args, .. } => !is_host_array(def.name, args),
            TKind::Scan { .. } | TKind::Fori { .. } | TKind::Flow { .. } | TKind::Derive { .. } => true,
            TKind::StopGradient(_) | TKind::Layout(_) | TKind::Collective { .. } => true,
            // Parts of a tensor on a mesh are found where they lie.
            TKind::TensorIndex { base, .. } if base.ty.on_a_mesh() => true,
            TKind::Call { inst, .. } => self.graph_call(*inst),
            TKind::TensorIndex { base, index, .. } => {
                index.iter().any(|p| matches!(p, IndexPart::Tensor(_))) || self.computes(base)
            }
            // Host code makes closure objects, and what holds them.
            _ if has_closure(&e.ty) => false,
            _ if self.absorbs(e) => {
                let mut any = false;
                each_child(e, &mut |c| any |= self.computes(c));
                any
            }
            _ => false,
        }
    }

    /// Operations that a region can contain when their operands are in it.
    pub fn absorbs(&self, e: &TExpr) -> bool {
        match &e.kind {
            TKind::Op { .. } | TKind::Scan { .. } | TKind::Fori { .. } | TKind::TensorIndex { .. } => true,
            TKind::Flow { .. } | TKind::Derive { .. } | TKind::StopGradient(_) | TKind::Layout(_) => true,
            TKind::Collective { .. } => true,
            TKind::Call { inst, .. } => self.traceable(*inst),
            TKind::Erase { .. } | TKind::Closure { .. } => is_regional(&e.ty),
            TKind::Tuple(_) | TKind::List(_) | TKind::Struct(_) | TKind::Dict(_) => is_regional(&e.ty),
            TKind::Field(..) | TKind::TensorDim(..) | TKind::TensorShape(_) | TKind::TensorDType(_) => true,
            TKind::Index(..) | TKind::Concat(..) | TKind::Repeat(..) => true,
            TKind::Arith { .. } | TKind::Neg(_) | TKind::IntToFloat(_) | TKind::BoolToInt(_) => true,
            TKind::WithPolicy(..) | TKind::Check { .. } => true,
            TKind::Builtin { name, .. } => *name == Builtin::tensor_size,
            _ => false,
        }
    }

    /// Whether evaluation may read the variable, in functions that it calls too.
    pub fn may_read(&self, e: &TExpr, v: Var) -> bool {
        if mentioned(e).contains(&v) {
            return true;
        }
        let Var::Global(g) = v else { return false };
        let mut found = false;
        each_expr(e, &mut |e| {
            found |= match &e.kind {
                // A function value may be any function.
                TKind::CallValue { .. } => !self.private.contains(&g),
                _ => called(e).into_iter().any(|inst| self.globals_read(inst).contains(&g)),
            }
        });
        found
    }

    /// The module variables that an expression reads, in functions that it calls too.
    pub fn globals_mentioned(&self, e: &TExpr) -> BTreeSet<GlobalId> {
        let mut out = BTreeSet::new();
        each_expr(e, &mut |e| {
            out.extend(if let TKind::Global(g) = e.kind { Some(g) } else { None });
            called(e).into_iter().for_each(|inst| out.extend(self.globals_read(inst)));
        });
        out
    }

    /// Evaluation changes nothing and runs no function of the program (it may still fail).
    pub fn is_pure(&self, e: &TExpr) -> bool {
        let own = match &e.kind {
            TKind::Call { inst, .. } => self.traceable(*inst),
            TKind::CallValue { .. } | TKind::Block { .. } | TKind::Scan { .. } | TKind::Fori { .. } => false,
            TKind::Flow { .. } | TKind::Derive { .. } => false,
            TKind::Builtin { name, .. } => name.def().does != Does::Acts,
            _ => true,
        };
        let mut all = own;
        each_child(e, &mut |c| all = all && self.is_pure(c));
        all
    }
}

/// `op.array` of a list that is not constant: host code makes the tensor.
pub fn is_host_array(op: &str, args: &[OpArg]) -> bool {
    match args.first() {
        Some(OpArg::Value(list)) => op == "array" && matches!(list.ty, Ty::List(_)) && !is_constant(list),
        _ => false,
    }
}

fn is_constant(e: &TExpr) -> bool {
    match &e.kind {
        TKind::Int(_) | TKind::Float(_) | TKind::Bool(_) => true,
        TKind::Neg(a) | TKind::IntToFloat(a) => is_constant(a),
        TKind::List(es) | TKind::Tuple(es) => es.iter().all(is_constant),
        _ => false,
    }
}

/// The meshes that the type of a value names.
fn named(e: &TExpr, out: &mut Meshes) {
    if e.ty.on_a_mesh() {
        out.extend(layouts::tensors(&e.ty).into_iter().filter_map(|t| t.sharding.mesh).filter(|m| !m.is_unknown()));
    }
}

fn mentioned_globals(body: &[TStmt]) -> BTreeSet<GlobalId> {
    let mut out = BTreeSet::new();
    each_expr_in(body, &mut |e| {
        if let TKind::Global(g) = e.kind {
            out.insert(g);
        }
    });
    each_stmt(body, &mut |s| {
        if let TStmt::SetGlobal(g, _) | TStmt::Mutate { place: TLvalue { root: TRoot::Global(g), .. }, .. } = s {
            out.insert(*g);
        }
    });
    out
}
