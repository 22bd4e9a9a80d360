//! The checker: names, types, sizes and effects of statements and expressions.
//!
//! A body (of a function at its argument types, or of a module) is checked by one [`cx::Cx`].
//! What the bodies know of each other goes through the queries of [`crate::db`] only.

pub mod size_checks;
pub mod annots;
pub mod args;
pub mod assign;
mod budgets;
pub mod bodies;
pub mod calls;
pub mod closures;
pub mod coerce;
mod collectives;
mod bits;
pub mod compare;
pub mod comps;
pub mod constants;
mod control;
mod counted;
pub mod cx;
pub mod derive;
mod directives;
mod dims;
mod element_sizes;
pub mod env;
pub mod exprs;
pub mod flow;
mod block_directives;
pub mod fns;
pub mod format;
pub mod generics;
pub mod host;
pub mod inst;
pub mod iterate;
pub mod global_mutation;
mod path_conditions;
pub mod consequences;
pub mod limits;
pub mod reached;
pub mod kernel_outputs;
mod resharding;
pub(crate) mod per_device;
pub mod loops;
pub mod meshes;
pub mod methods;
pub mod modules;
pub mod names;
pub mod lvalues;
mod size_names;
pub mod numerics;
pub mod order;
pub mod builtin_calls;
pub mod scalars;
pub mod scans;
pub mod rowwise;
mod pipeline_rows;
mod pipeline_stages;
pub mod stmts;
mod serialization;
mod profiled;
pub mod structs;
pub mod subscripts;
pub mod symbolic;
pub mod tensors;
pub mod tiles;
mod block_sizes;
mod misplaced;
mod mapped_rows;
mod written_blocks;
mod per_device_results;
mod per_device_collectives;
mod per_device_parts;
pub mod pytrees;
pub mod typed;
mod typed_files;
pub mod types;
pub mod unsupported;
mod late_sizes;
mod container_literals;
pub mod zonk;

pub use bodies::{check_inst, check_main, types_of_inst, types_of_main};

use self::numerics::Numerics;
use crate::db::{Db, InstRef};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Facts, ItemId, SizeVar, Span};
use tessera_core::ir::{FnInst, GlobalId, InstId, TExpr, Variable};
use tessera_core::ty::{GlobalKey, Ty};

/// A function at its argument types, with everything that its check depends on besides the
/// text. Size variables are numbered from 0 in order of appearance. Their names are part of it: messages of
/// an instance have them, and would else be those of whichever call was met first, in another program even.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InstData {
    pub item: ItemId,
    /// Which function of the item.
    pub start: u32,
    pub captures: Vec<(Arc<str>, Ty)>,
    /// Types of the arguments, or `None` for an annotated function: it is checked once, at its
    /// annotations.
    pub args: Option<Vec<Ty>>,
    /// The module-level variables that it may read, as they are when it is called.
    pub globals: Vec<GlobalRead>,
    pub facts: Facts,
    pub numerics: Numerics,
    /// Where it is run by one device of many.
    pub local: Option<per_device::PerDevice>,
    /// Where it is a value of a function type, the result that this says: whoever calls it knows no more, so that
    /// the function compares its parameters and its result with that type.
    pub erased: Option<Ty>,
    /// For each size variable in it its name, whether it is rigid, whether it is at least 0, and whether it is another size
    /// in each element of a list.
    pub kinds: Vec<(Arc<str>, bool, bool, bool)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GlobalRead {
    pub module: tessera_resolve::source::FileId,
    pub name: Arc<str>,
    /// The erased type that the variable has for good.
    pub slot: Ty,
    pub ty: Ty,
    /// Where it was bound: only for messages.
    pub span: NoHash,
}

impl GlobalRead {
    pub fn key(&self) -> GlobalKey {
        GlobalKey { module: self.module, name: self.name.clone(), ty: self.slot.clone() }
    }
}

/// A span that takes no part in equality.
#[derive(Clone, Copy, Debug)]
pub struct NoHash(pub Span);

impl PartialEq for NoHash {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for NoHash {}
impl std::hash::Hash for NoHash {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// What a body calls: the functions and the variables of modules, whose places here are their numbers in the body.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tables {
    pub callees: Vec<Called>,
    pub globals: Vec<GlobalKey>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Called {
    pub inst: InstRef,
    /// The body was checked after it, as it had to know what the callee gives.
    pub first: bool,
}

/// A call that needs an instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Its place in [`Tables::callees`].
    pub inst: InstId,
    pub span: Span,
    /// It must be a graph function: a loop of the graph runs it.
    pub graph: bool,
}

/// The result of checking a function instance.
#[derive(Clone, Debug)]
pub struct CheckedInst {
    pub inst: FnInst,
    pub ret: Ty,
    /// The size variables of the signature, in the order in which the annotations make them.
    pub sig_vars: Vec<SizeVar>,
    pub tables: Tables,
    pub requests: Vec<Request>,
    /// The module variables that its own body mentions, in its order.
    pub reads: Vec<(GlobalKey, Ty)>,
    pub size: limits::Extent,
    pub diagnostics: Vec<Diagnostic>,
    /// Its errors are reported at its calls.
    pub template: bool,
    /// Nothing is known of its result yet: every path ends in a recursive call. Stays so where
    /// the recursion has no end.
    pub open: bool,
    /// Files whose module bodies must have run.
    pub files: Vec<tessera_resolve::source::FileId>,
    /// An expression without a type. Without a diagnostic anywhere this is the checker's fault.
    pub untyped: Option<Span>,
}

/// Only what callers see is compared: a new body with the same result type leaves the callers
/// alone.
impl PartialEq for CheckedInst {
    fn eq(&self, other: &Self) -> bool {
        self.ret == other.ret
            && self.sig_vars == other.sig_vars
            && self.template == other.template
            && self.open == other.open
            // A pullback keeps what the function read, and what those read that it calls.
            && self.reads == other.reads
            && self.tables.callees == other.tables.callees
            && self.size == other.size
    }
}

impl CheckedInst {
    fn bare(data: &InstData, ret: Ty) -> CheckedInst {
        CheckedInst {
            inst: bodies::empty_inst("?".into(), Span::new(data.item, 0, 0)),
            ret,
            sig_vars: vec![],
            tables: Tables::default(),
            requests: vec![],
            reads: vec![],
            size: limits::Extent::OPEN,
            diagnostics: vec![],
            template: data.args.is_some(),
            open: false,
            files: vec![],
            untyped: None,
        }
    }

    /// Where the search for the result type of a recursive function starts.
    pub fn unknown(data: &InstData) -> CheckedInst {
        CheckedInst { open: true, ..CheckedInst::bare(data, Ty::Never) }
    }

    /// A recursive function whose result type has no end.
    pub fn endless(db: &dyn Db, data: &InstData) -> CheckedInst {
        let mut out = CheckedInst::bare(data, Ty::Error);
        out.diagnostics.extend(CheckedInst::no_end(db, data));
        out
    }

    /// E0216 for a recursive function whose result type cannot be inferred.
    pub fn no_end(db: &dyn Db, data: &InstData) -> Option<Diagnostic> {
        let f = fns::find(db, data.item, data.start)?;
        let text = format!("the result type of the recursive function `{}` cannot be inferred", f.sig.name);
        Some(
            Diagnostic::new(Code::E0216, f.sig.head, text)
                .note("no path ends without calling the function again, or each step gives a larger type")
                .help("annotate the parameters and the result"),
        )
    }
}

/// A module-level variable at the end of its module.
#[derive(Clone, PartialEq, Debug)]
pub struct ModuleVar {
    /// The erased type that the variable has for good.
    pub slot: Ty,
    pub ty: Ty,
    pub span: Span,
    pub bad: bool,
    /// Why it is not usable, where the next input of a prompt is to be told.
    pub why: Option<env::Bad>,
}

/// The result of checking a module body.
#[derive(Clone, Debug)]
pub struct CheckedMain {
    pub inst: FnInst,
    pub globals: Vec<(GlobalId, Variable)>,
    pub vars: BTreeMap<Arc<str>, ModuleVar>,
    pub facts: Facts,
    /// Where the value of each size is read at the end.
    pub size_sources: BTreeMap<SizeVar, TExpr>,
    /// Variables of which an annotation says the type.
    pub declared: BTreeSet<Arc<str>>,
    /// The first size variable that is free for whoever goes on after this module.
    pub next_size: u32,
    /// The names that sizes have, for inputs that go on after this one.
    pub size_names: BTreeMap<Arc<str>, u32>,
    pub numerics: Numerics,
    pub tables: Tables,
    pub requests: Vec<Request>,
    pub diagnostics: Vec<Diagnostic>,
    pub files: Vec<tessera_resolve::source::FileId>,
    pub untyped: Option<Span>,
    /// Type of the last statement, if it is an expression.
    pub last: Option<Ty>,
}

impl CheckedMain {
    /// For the next input of a prompt, which calls nothing of this one: keys of instances are good only in results of queries.
    pub fn without_calls(&self) -> CheckedMain {
        let tables = Tables { callees: vec![], globals: self.tables.globals.clone() };
        let inst = bodies::empty_inst(self.inst.name.clone(), self.inst.span);
        CheckedMain { inst, tables, requests: vec![], ..self.clone() }
    }
}

impl PartialEq for CheckedMain {
    fn eq(&self, other: &Self) -> bool {
        self.vars == other.vars
            && self.next_size == other.next_size
            && self.size_names == other.size_names
            && self.facts == other.facts
            && self.declared == other.declared
            && self.size_sources.keys().eq(other.size_sources.keys())
    }
}

#[cfg(test)]
mod tests;
