//! From the typed program to host code and tensor regions.
//!
//! Types lose their sizes; every function that the module body reaches becomes one host
//! function; maximal tensor computations are cut out as [`Region`]s, which stay typed trees
//! until they are called with concrete shapes and traced. Neighbouring statements
//! that only compute tensors become one region.

pub mod types;
pub mod facts;
mod outline;
mod body;
mod merge_regions;
mod assert_types;
mod expr;
mod scalar;
mod text;
mod tensor;
mod builtin;
mod lvalue;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod source_tests;

use facts::Facts;
use indexmap::IndexSet;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tessera_base::stack::deep;
use tessera_base::{Diagnostic, Span};
use tessera_core::ir::{FnInst, GlobalId, InstId, LocalId, Program, TExpr, TStmt};
use tessera_core::region::{Region, RegionParam};
use tessera_core::ty::Ty;
use tessera_core::type_assertions;
use tessera_ir::graph::Policy;
use tessera_ir::hints::KernelHints;
use tessera_ir::host::{self, FnId, Global, HostFn, HostProgram, RegionId, RegionSig, SpanId, StrId, TypeId};
use types::Types;

/// What lowering yields.
#[derive(Clone, Debug, Default)]
pub struct Lowered {
    pub host: HostProgram,
    /// Bodies of `host.regions`, by position.
    pub regions: Vec<Region>,
    /// The functions behind closures: what to trace when a region receives one.
    pub closures: BTreeMap<FnId, InstId>,
    /// Host functions of instances (an instance that is only traced has none).
    pub functions: BTreeMap<InstId, FnId>,
    pub diagnostics: Vec<Diagnostic>,
}

/// How a program is lowered.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// A session goes on after the module body: module variables that only this uses do not become its locals.
    pub keep_globals: bool,
    /// The values of host code are held against their types.
    pub checked: bool,
}

/// Lowers everything that the module body reaches.
pub fn lower(program: &Program, options: Options) -> Lowered {
    lower_roots(program, &program.entry.into_iter().collect::<Vec<_>>(), options)
}

/// Lowers everything that the functions given reach; the first is the entry. Module variables
/// that only the module body uses become its locals.
pub fn lower_roots(program: &Program, roots: &[InstId], options: Options) -> Lowered {
    deep(STACK_BYTES, || lower_here(program, roots, options))
}

/// Stack for the deepest expressions that the checker lets through.
const STACK_BYTES: usize = 1 << 30;

fn lower_here(program: &Program, roots: &[InstId], options: Options) -> Lowered {
    let mut cx = Lowering::new(program);
    cx.checked = options.checked;
    if options.checked || cfg!(debug_assertions) {
        cx.diagnostics.extend(tessera_core::verify::verify(program).err().map(|d| *d));
    }
    if options.keep_globals {
        cx.facts.private.clear();
    }
    cx.globals();
    let ids: Vec<FnId> = roots.iter().map(|&inst| cx.function(inst)).collect();
    while let Some((id, job)) = cx.todo.pop_front() {
        let f = match job {
            Job::Inst(inst) => body::function(&mut cx, inst),
            Job::Thunk(inst) => body::thunk(&mut cx, inst),
        };
        cx.fns[id.0 as usize] = Some(f);
    }
    let entry = ids.first().copied();
    cx.finish(entry)
}

enum Job {
    Inst(InstId),
    /// The closure form of an instance: captures come from the closure object.
    Thunk(InstId),
}

/// State of lowering one program.
pub(crate) struct Lowering<'p> {
    pub program: &'p Program,
    pub facts: Facts<'p>,
    pub types: Types,
    pub diagnostics: Vec<Diagnostic>,
    pub sigs: Vec<RegionSig>,
    pub regions: Vec<Region>,
    strings: IndexSet<Arc<str>>,
    spans: IndexSet<Span>,
    host_globals: Vec<Global>,
    global_ids: BTreeMap<GlobalId, host::GlobalId>,
    fns: Vec<Option<HostFn>>,
    functions: BTreeMap<InstId, FnId>,
    thunks: BTreeMap<InstId, FnId>,
    todo: VecDeque<(FnId, Job)>,
    /// Values of host code are held against their types.
    pub checked: bool,
    /// Numbers for variables that exist in regions only.
    next_region_local: u32,
}

/// Variables of regions are numbered from here, apart from those of functions.
const REGION_LOCALS: u32 = 1 << 30;

impl<'p> Lowering<'p> {
    fn new(program: &'p Program) -> Lowering<'p> {
        Lowering {
            program,
            facts: Facts::new(program),
            types: Types::default(),
            diagnostics: vec![],
            sigs: vec![],
            regions: vec![],
            strings: IndexSet::new(),
            spans: IndexSet::new(),
            host_globals: vec![],
            global_ids: BTreeMap::new(),
            fns: vec![],
            functions: BTreeMap::new(),
            thunks: BTreeMap::new(),
            todo: VecDeque::new(),
            checked: false,
            next_region_local: REGION_LOCALS,
        }
    }

    /// Declares the module variables that functions share; the others become locals of the entry.
    fn globals(&mut self) {
        for (i, var) in self.program.globals.iter().enumerate() {
            let id = GlobalId(i as u32);
            if !self.facts.private.contains(&id) {
                let ty = self.types.erase(&var.ty);
                self.global_ids.insert(id, host::GlobalId(self.host_globals.len() as u32));
                self.host_globals.push(Global { name: var.name.clone(), ty });
            }
        }
    }

    pub fn global(&self, id: GlobalId) -> Option<host::GlobalId> {
        self.global_ids.get(&id).copied()
    }

    pub fn inst(&self, id: InstId) -> &'p FnInst {
        &self.program.insts[id.0 as usize]
    }

    fn declare(&mut self, job: Job) -> FnId {
        let id = FnId(self.fns.len() as u32);
        self.fns.push(None);
        self.todo.push_back((id, job));
        id
    }

    /// The host function of an instance; it takes captures and parameters as parameters.
    pub fn function(&mut self, inst: InstId) -> FnId {
        if let Some(&id) = self.functions.get(&inst) {
            return id;
        }
        let id = self.declare(Job::Inst(inst));
        self.functions.insert(inst, id);
        id
    }

    /// The host function that a closure of the instance points to.
    pub fn thunk(&mut self, inst: InstId) -> FnId {
        if let Some(&id) = self.thunks.get(&inst) {
            return id;
        }
        let id = self.declare(Job::Thunk(inst));
        self.thunks.insert(inst, id);
        id
    }

    pub fn span(&mut self, span: Span) -> SpanId {
        SpanId(self.spans.insert_full(span).0 as u32)
    }

    pub fn string(&mut self, text: &str) -> StrId {
        StrId(self.strings.insert_full(text.into()).0 as u32)
    }

    pub fn region_local(&mut self) -> LocalId {
        self.next_region_local += 1;
        LocalId(self.next_region_local)
    }

    /// Adds a region with its signature.
    pub fn add_region(
        &mut self,
        name: Arc<str>,
        params: Vec<RegionParam>,
        body: Vec<TStmt>,
        results: Vec<TExpr>,
        policy: Policy,
        span: Span,
    ) -> RegionId {
        let id = RegionId(self.regions.len() as u32);
        let sig = RegionSig {
            name: name.clone(),
            params: params.iter().map(|p| self.types.erase(&p.ty)).collect(),
            results: results.iter().map(|r| self.types.erase(&r.ty)).collect(),
            span: self.span(span),
        };
        self.sigs.push(sig);
        self.regions.push(Region { id, name, params, body, results, policy, hints: None, span, assertions: None });
        id
    }

    /// Adds a region that holds values against their types; it gives an int.
    pub fn add_assertion(
        &mut self,
        step: type_assertions::Step,
        params: Vec<TypeId>,
        int: TypeId,
        span: Span,
    ) -> RegionId {
        let id = RegionId(self.regions.len() as u32);
        let name: Arc<str> = "law".into();
        let sid = self.span(span);
        self.sigs.push(RegionSig { name: name.clone(), params, results: vec![int], span: sid });
        let (params, body, results, policy) = (vec![], vec![], vec![], Policy::default());
        self.regions.push(Region {
            id,
            name,
            params,
            body,
            results,
            policy,
            hints: None,
            span,
            assertions: Some(step),
        });
        id
    }

    /// Gives a region the hints of the function around it.
    pub fn hint(&mut self, region: RegionId, hints: &Option<Arc<KernelHints>>) {
        if let Some(r) = self.regions.get_mut(region.0 as usize) {
            r.hints.clone_from(hints);
        }
    }

    pub fn erase(&mut self, ty: &Ty) -> TypeId {
        self.types.erase(ty)
    }

    fn finish(self, entry: Option<FnId>) -> Lowered {
        let host = HostProgram {
            types: self.types.into_table(),
            // Every declared function is filled by the work list.
            fns: self.fns.into_iter().flatten().collect(),
            globals: self.host_globals,
            strings: self.strings.into_iter().collect(),
            spans: self.spans.into_iter().collect(),
            regions: self.sigs,
            entry,
        };
        Lowered {
            host,
            regions: self.regions,
            closures: self.thunks.into_iter().map(|(inst, f)| (f, inst)).collect(),
            functions: self.functions,
            diagnostics: self.diagnostics,
        }
    }
}
