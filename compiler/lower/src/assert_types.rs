//! Values of host code, held against their types while the program runs (`--checked`): regions of the law stand
//! where a value comes up, and say so to whoever runs regions.

use super::body::Body;
use super::types::is_regional;
use tessera_base::Span;
use tessera_core::ty::Ty;
use tessera_core::type_assertions::{Step, speaks};
use tessera_core::walk::Var;
use tessera_ir::host::{HExpr, HExprKind, HStmt, Root, TypeId};

impl Body<'_, '_> {
    /// Begins a call of the function.
    pub fn assert_enter(&mut self, out: &mut Vec<HStmt>) {
        if self.cx.checked {
            let (int, span) = (self.int_ty(), self.inst.span);
            let call = self.temp("call", int);
            let number = self.assert_step(Step::Enter, vec![], span);
            out.push(HStmt::SetLocal(call, number));
            self.call = Some(call);
        }
    }

    fn assert_step(&mut self, step: Step, args: Vec<HExpr>, span: Span) -> HExpr {
        let int = self.int_ty();
        let params = args.iter().map(|a| a.ty).collect::<Vec<TypeId>>();
        let region = self.cx.add_assertion(step, params, int, span);
        self.make(HExprKind::Region { region, args }, int, span)
    }

    /// A step in this call, where values are held.
    fn assertion(&mut self, step: Step, value: Option<HExpr>, span: Span) -> Option<HStmt> {
        let call = self.call?;
        let sid = self.cx.span(span);
        let args = [Some(self.local(call, sid)), value].into_iter().flatten().collect();
        Some(HStmt::Expr(self.assert_step(step, args, span)))
    }

    /// The value, held against a type.
    pub fn assert_type(&mut self, value: HExpr, ty: &Ty, span: Span) -> HExpr {
        if self.call.is_none() || !speaks(ty) || !is_regional(ty) {
            return value;
        }
        let (id, sid) = (value.ty, value.span);
        let read = matches!(value.kind, HExprKind::Local(_) | HExprKind::Global(_));
        let mut stmts = vec![];
        let (seen, given) = match read {
            true => (value.clone(), value),
            false => {
                let tmp = self.temp("held", id);
                stmts.push(HStmt::SetLocal(tmp, value));
                (self.local(tmp, sid), HExpr { kind: HExprKind::Take(tmp), ty: id, span: sid })
            }
        };
        stmts.extend(self.assertion(Step::Hold(ty.clone()), Some(seen), span));
        HExpr { kind: HExprKind::Block { stmts, value: Box::new(given) }, ty: id, span: sid }
    }

    /// Holds what a variable has against a type.
    pub fn assert_var(&mut self, v: Var, ty: &Ty, span: Span) -> Option<HStmt> {
        if self.call.is_none() || !speaks(ty) || !is_regional(ty) {
            return None;
        }
        let kind = match self.root(v) {
            Root::Local(l) => HExprKind::Local(l),
            Root::Global(g) => HExprKind::Global(g),
        };
        let id = self.cx.erase(ty);
        let value = self.make(kind, id, span);
        self.assertion(Step::Hold(ty.clone()), Some(value), span)
    }

    /// Captured variables and parameters, which the function has compared with each other.
    pub fn assert_parameters(&mut self) -> Vec<HStmt> {
        let inst = self.inst;
        let variables = inst.captures.iter().chain(&inst.params);
        variables.filter_map(|l| inst.locals.get(l.0 as usize).map(|v| (l, v))).fold(vec![], |mut out, (l, v)| {
            out.extend(self.assert_var(Var::Local(*l), &v.ty, v.span));
            out
        })
    }

    /// A statement is over.
    pub fn assert_settle(&mut self, span: Span, out: &mut Vec<HStmt>) {
        out.extend(self.assertion(Step::Settle, None, span));
    }

    /// A loop begins; with what begins each of its turns and follows its end.
    pub fn assert_loop(&mut self, span: Span, out: &mut Vec<HStmt>) -> Option<HStmt> {
        let depth = self.loops;
        self.loops += 1;
        out.extend(self.assertion(Step::Loop(depth), None, span));
        self.assertion(Step::Turn(depth), None, span)
    }

    /// A loop is over.
    pub fn assert_loop_end(&mut self, turn: Option<HStmt>, out: &mut Vec<HStmt>) {
        self.loops -= 1;
        out.extend(turn);
    }
}
