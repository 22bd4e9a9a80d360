//! What of a program is tensor code: computations that are traced when they run.

use crate::ir::{GlobalId, LocalId, TExpr, TStmt};
use crate::ty::Ty;
use crate::type_assertions;
use std::sync::Arc;
use tessera_base::Span;
use tessera_ir::graph::Policy;
use tessera_ir::hints::KernelHints;
use tessera_ir::host::RegionId;

/// A tensor computation to be traced when it runs: statements and result expressions over its
/// parameters. Calls in it are inlined by the tracer.
#[derive(Clone, Debug)]
pub struct Region {
    pub id: RegionId,
    pub name: Arc<str>,
    pub params: Vec<RegionParam>,
    pub body: Vec<TStmt>,
    pub results: Vec<TExpr>,
    pub policy: Policy,
    /// What the function around it asks of the scheduler.
    pub hints: Option<Arc<KernelHints>>,
    pub span: Span,
    /// What it does instead of computing, where types are held against values.
    pub assertions: Option<type_assertions::Step>,
}

#[derive(Clone, Debug)]
pub struct RegionParam {
    /// What the body calls it; ids are private to the region.
    pub local: LocalId,
    pub name: Arc<str>,
    pub ty: Ty,
    /// The module variable whose value this is, for functions that the body calls.
    pub global: Option<GlobalId>,
}
