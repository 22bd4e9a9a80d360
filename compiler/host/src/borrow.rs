//! Operands that need not be owned: a value that a variable keeps alive anyway is passed on
//! without counting, where nothing that runs in between can change the variable.

use crate::frame::{Gen, plain};
use cranelift::codegen::ir::{InstBuilder, Value};
use tessera_abi::layout;
use tessera_abi::rt::RtFn;
use tessera_ir::host::{HExpr, HExprKind, Root};

/// What keeps a borrowed value alive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeper {
    /// The program itself.
    Constant,
    Root(Root),
}

/// Whether evaluating an expression may change what variables of this function hold (`locals`)
/// or what globals hold.
fn changes(e: &HExpr, locals: bool) -> bool {
    use HExprKind::*;
    let all = |items: &[HExpr]| items.iter().any(|e| changes(e, locals));
    match &e.kind {
        Block { .. } | Take(_) => true,
        Call { args, .. } => !locals || all(args),
        CallClosure { func, args } => !locals || changes(func, locals) || all(args),
        And(a, b) | Or(a, b) => changes(a, locals) || changes(b, locals),
        Field(a, _) => changes(a, locals),
        Cond { test, then, otherwise } => changes(test, locals) || changes(then, locals) || changes(otherwise, locals),
        Number(_, items) | Record(items) | List(items) => all(items),
        Closure { captures, .. } => all(captures),
        Rt { args, .. } | Region { args, .. } => all(args),
        Int(_) | Float(_) | Bool(_) | Str(_) | None | DType(_) | Local(_) | Global(_) | TypeOf(_) => false,
    }
}

/// Whether evaluating an expression may change a variable.
pub(crate) fn may_change(e: &HExpr, root: Root) -> bool {
    changes(e, matches!(root, Root::Local(_)))
}

/// What keeps the value of an expression alive, if it can be had without owning it.
fn keeper(e: &HExpr) -> Option<Keeper> {
    match &e.kind {
        HExprKind::Str(_) => Some(Keeper::Constant),
        HExprKind::Local(id) => Some(Keeper::Root(Root::Local(*id))),
        HExprKind::Global(id) => Some(Keeper::Root(Root::Global(*id))),
        HExprKind::Field(base, _) => keeper(base),
        HExprKind::Rt { func: RtFn::list_get, args } => match keeper(&args[0])? {
            Keeper::Root(root) if may_change(&args[1], root) => None,
            keeper => Some(keeper),
        },
        _ => None,
    }
}

impl Gen<'_, '_> {
    /// The value of an expression, owned or borrowed (`false`), while `later` is evaluated and
    /// used with it. `changing` is a variable that the user of the value changes.
    pub fn operand(&mut self, e: &HExpr, later: &[HExpr], changing: Option<Root>) -> (Value, bool) {
        if !self.unit.counted(e.ty) {
            return (self.expr(e), false);
        }
        let borrowed = match keeper(e) {
            Some(Keeper::Constant) => true,
            Some(Keeper::Root(root)) => changing != Some(root) && !later.iter().any(|e| may_change(e, root)),
            None => false,
        };
        if borrowed { (self.borrowed(e), false) } else { (self.expr(e), true) }
    }

    /// The value of an expression that has a keeper, without owning it.
    fn borrowed(&mut self, e: &HExpr) -> Value {
        match &e.kind {
            HExprKind::Str(id) => {
                let address = self.unit.link.strings[id.0 as usize];
                self.int(address as i64)
            }
            HExprKind::Local(id) => self.load_local(*id),
            HExprKind::Global(id) => self.load_global(*id, e.span),
            HExprKind::Field(base, index) => {
                let record = self.borrowed(base);
                let machine = self.unit.machine_type(e.ty);
                self.b.ins().load(machine, plain(), record, layout::record::WORDS + 8 * *index as i32)
            }
            HExprKind::Rt { args, .. } => {
                let list = self.borrowed(&args[0]);
                let index = self.expr(&args[1]);
                let address = self.element_address(list, index, RtFn::list_get, e.span);
                self.b.ins().load(self.unit.machine_type(e.ty), plain(), address, 0)
            }
            // Expressions without a keeper do not come here.
            _ => self.expr(e),
        }
    }
}
