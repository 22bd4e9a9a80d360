//! Numbers of a program instead of those of a body.
//!
//! A body is checked by itself, and calls functions and variables of modules by their places in tables of its own, so that
//! what it looks like depends on nothing but its text. Where a program is put together, the places become the program's numbers.

use crate::ir::*;
use crate::walk::each_child_mut;

/// The program's numbers by those of the body.
#[derive(Clone, Copy)]
pub struct Numbers<'a> {
    pub insts: &'a [InstId],
    pub globals: &'a [GlobalId],
}

/// Gives a function that was checked by itself the numbers of its program.
pub fn renumber(f: &mut FnInst, numbers: Numbers) {
    numbers.stmts(&mut f.body);
    f.size_binds.iter_mut().for_each(|bind| numbers.expr(&mut bind.from));
    f.backward.iter_mut().for_each(|id| numbers.inst(id));
    f.program.iter_mut().flat_map(|p| &mut p.grid).for_each(|e| numbers.expr(e));
}

impl Numbers<'_> {
    fn inst(self, id: &mut InstId) {
        match self.insts.get(id.0 as usize) {
            Some(number) => *id = *number,
            None => tessera_base::bug!("a body calls its function {}, of {}", id.0, self.insts.len()),
        }
    }

    fn global(self, id: &mut GlobalId) {
        match self.globals.get(id.0 as usize) {
            Some(number) => *id = *number,
            None => tessera_base::bug!("a body has the module variable {}, of {}", id.0, self.globals.len()),
        }
    }

    fn stmts(self, stmts: &mut [TStmt]) {
        stmts.iter_mut().for_each(|s| self.stmt(s));
    }

    fn stmt(self, stmt: &mut TStmt) {
        match stmt {
            TStmt::Expr(e) | TStmt::Set(_, e) => self.expr(e),
            TStmt::SetGlobal(id, e) => {
                self.global(id);
                self.expr(e);
            }
            TStmt::Mutate { place, change, .. } => {
                if let TRoot::Global(id) = &mut place.root {
                    self.global(id);
                }
                for step in &mut place.steps {
                    match step {
                        TStep::Index(e) | TStep::Key(e) => self.expr(e),
                        TStep::Field(_) => {}
                    }
                }
                match change {
                    TChange::Set(e) => self.expr(e),
                    TChange::TensorSet { index, value, .. } => {
                        for part in index {
                            match part {
                                IndexPart::Int(e) | IndexPart::Tensor(e) => self.expr(e),
                                IndexPart::Slice { low, high, step } => {
                                    [low, high, step].into_iter().flatten().for_each(|e| self.expr(e));
                                }
                                IndexPart::Whole(_) | IndexPart::NewAxis => {}
                            }
                        }
                        self.expr(value);
                    }
                    TChange::Method { args, .. } => args.iter_mut().for_each(|e| self.expr(e)),
                }
            }
            TStmt::If { test, then, otherwise } => {
                self.expr(test);
                self.stmts(then);
                self.stmts(otherwise);
            }
            TStmt::While { test, body, .. } => {
                self.expr(test);
                self.stmts(body);
            }
            TStmt::ForRange { start, stop, step, body, .. } => {
                [start, stop, step].into_iter().for_each(|e| self.expr(e));
                self.stmts(body);
            }
            TStmt::ForEach { iter, body, .. } => {
                self.expr(iter);
                self.stmts(body);
            }
            TStmt::Break | TStmt::Continue => {}
            TStmt::Return(e) => e.iter_mut().for_each(|e| self.expr(e)),
            TStmt::Assert { test, message, .. } => {
                self.expr(test);
                message.iter_mut().for_each(|e| self.expr(e));
            }
            TStmt::WithPolicy { body, .. } | TStmt::WithHints { body, .. } => self.stmts(body),
        }
    }

    fn expr(self, e: &mut TExpr) {
        match &mut e.kind {
            TKind::Global(id) => self.global(id),
            TKind::Call { inst, .. } | TKind::Erase { inst, .. } => self.inst(inst),
            TKind::Scan { inst, .. } | TKind::Fori { inst, .. } => self.inst(inst),
            TKind::Flow { functions, .. } => functions.iter_mut().for_each(|f| self.inst(&mut f.inst)),
            TKind::Derive { f, .. } => self.function(f),
            TKind::Block { stmts, .. } => self.stmts(stmts),
            _ => {}
        }
        each_child_mut(e, &mut |child| self.expr(child));
    }

    /// The values in it are operands of the expression.
    fn function(self, f: &mut TFunction) {
        match f {
            TFunction::Direct { inst, .. } => self.inst(inst),
            TFunction::Derived { step, of, .. } => {
                if let Step::Pullback(globals) = step {
                    globals.iter_mut().for_each(|id| self.global(id));
                }
                self.function(of);
            }
        }
    }
}
