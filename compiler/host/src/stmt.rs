//! Statements.

use crate::borrow::may_change;
use crate::frame::Gen;
use cranelift::codegen::ir::{InstBuilder, Value};
use tessera_abi::rt::RtFn;
use tessera_base::Code;
use tessera_ir::host::{HExpr, HExprKind, HStmt, Root, SpanId};

impl Gen<'_, '_> {
    /// Writes statements; `false` if what follows them is never reached.
    pub fn stmts(&mut self, stmts: &[HStmt]) -> bool {
        stmts.iter().all(|s| self.stmt(s))
    }

    fn stmt(&mut self, stmt: &HStmt) -> bool {
        match stmt {
            HStmt::Expr(e) => {
                let value = self.expr(e);
                self.release(value, e.ty);
            }
            HStmt::SetLocal(id, e) => {
                let value = self.assigned_value(Root::Local(*id), e);
                self.set_local(*id, value);
            }
            HStmt::SetGlobal(id, e) => {
                let value = self.assigned_value(Root::Global(*id), e);
                self.set_global(*id, value);
            }
            HStmt::If { test, then, otherwise } => return self.branch(test, then, otherwise),
            HStmt::While { test, body, span } => return self.while_loop(test, body, *span),
            HStmt::ForRange { var, start, stop, step, body, span } => {
                self.for_range(*var, [start, stop, step], body, *span)
            }
            HStmt::ForList { var, list, body, span } => self.for_list(*var, list, body, *span),
            HStmt::Break => return self.leave_loop(|l| l.end),
            HStmt::Continue => return self.leave_loop(|l| l.next),
            HStmt::Return(value) => {
                let value = match value {
                    Some(e) => self.returned(e),
                    None => self.zero(self.f.ret),
                };
                self.release_held(0);
                self.jump_exit(value);
                return false;
            }
            HStmt::Mutate { place, change, span } => self.mutate(place, change, *span),
            HStmt::Region { region, args, targets, span } => {
                let results = self.region(*region, args, *span);
                for (target, value) in targets.iter().zip(results) {
                    self.set_root(*target, value);
                }
            }
            HStmt::Fail { code, message, span } => {
                self.fail(*code, message, *span);
                return false;
            }
        }
        true
    }

    /// A local that is returned needs no further owner: its slot is left empty.
    fn returned(&mut self, e: &HExpr) -> Value {
        match e.kind {
            HExprKind::Local(id) => self.take(id),
            _ => self.expr(e),
        }
    }

    fn branch(&mut self, test: &HExpr, then: &[HStmt], otherwise: &[HStmt]) -> bool {
        let (yes, no, end) = (self.block(), self.block(), self.block());
        let test = self.condition(test);
        self.b.ins().brif(test, yes, &[], no, &[]);
        let known = self.known.len();
        let mut reached = false;
        for (block, body) in [(yes, then), (no, otherwise)] {
            self.enter(block);
            if self.stmts(body) {
                self.b.ins().jump(end, &[]);
                reached = true;
            }
            self.known.truncate(known);
        }
        if reached {
            self.enter(end);
        }
        reached
    }

    fn fail(&mut self, code: Code, message: &HExpr, span: SpanId) {
        let (text, owned) = self.operand(message, &[], None);
        // A code's name is a letter and its number.
        let number = self.int(code.name()[1..].parse().unwrap_or(999));
        let at = self.span(span);
        self.call_rt(RtFn::fail, &[number, text, at]);
        if owned {
            self.call_rt(RtFn::release, &[text]);
        }
        self.jump_failure();
    }

    /// The new value of a variable. A string that grows at its end grows in place.
    fn assigned_value(&mut self, root: Root, e: &HExpr) -> Value {
        let Some(parts) = appended(root, e) else { return self.expr(e) };
        let mut tails = vec![];
        for part in parts {
            let tail = self.operand(part, &[], Some(root));
            if tail.1 {
                self.hold(tail.0);
            }
            tails.push(tail);
        }
        let mut text = match root {
            Root::Local(id) => self.take(id),
            Root::Global(id) => {
                let text = self.load_global(id, e.span);
                let zero = self.int(0);
                self.store_global(id, zero);
                text
            }
        };
        for (tail, _) in &tails {
            let at = self.span(e.span);
            text = self.call_rt(RtFn::str_append, &[text, *tail, at]).unwrap_or(text);
        }
        self.release_operands(&tails);
        // What could not grow is given up with the variable.
        let before = self.held_count();
        self.hold(text);
        self.check();
        self.drop_held(before);
        text
    }
}

/// The parts that `e` appends to a variable, if it is `variable + part + …`.
fn appended(root: Root, e: &HExpr) -> Option<Vec<&HExpr>> {
    let HExprKind::Rt { func: RtFn::str_concat, args } = &e.kind else { return None };
    let mut parts = match (&args[0].kind, root) {
        (HExprKind::Local(id) | HExprKind::Take(id), Root::Local(root)) if *id == root => vec![],
        (HExprKind::Global(id), Root::Global(root)) if *id == root => vec![],
        _ => appended(root, &args[0])?,
    };
    if may_change(&args[1], root) {
        return None;
    }
    parts.push(&args[1]);
    Some(parts)
}
