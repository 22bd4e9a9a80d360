//! Walks over the typed program: children of expressions, and which variables code mentions.

use crate::ir::*;
use std::collections::BTreeSet;

/// A variable of a function or of the module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Var {
    Local(LocalId),
    Global(GlobalId),
}

impl From<TRoot> for Var {
    fn from(root: TRoot) -> Var {
        match root {
            TRoot::Local(l) => Var::Local(l),
            TRoot::Global(g) => Var::Global(g),
        }
    }
}

/// The variable that the expression is, if it is one.
pub fn as_var(e: &TExpr) -> Option<Var> {
    match e.kind {
        TKind::Local(l) => Some(Var::Local(l)),
        TKind::Global(g) => Some(Var::Global(g)),
        _ => None,
    }
}

fn index_parts<'a>(parts: &'a [IndexPart], f: &mut dyn FnMut(&'a TExpr)) {
    for part in parts {
        match part {
            IndexPart::Int(e) | IndexPart::Tensor(e) => f(e),
            IndexPart::Slice { low, high, step } => [low, high, step].into_iter().flatten().for_each(&mut *f),
            IndexPart::Whole(_) | IndexPart::NewAxis => {}
        }
    }
}

/// Calls `f` on the direct operands of an expression, in evaluation order. The statements of a
/// block are not operands; see [`each_stmt`].
pub fn each_child<'a>(e: &'a TExpr, f: &mut dyn FnMut(&'a TExpr)) {
    match &e.kind {
        TKind::Int(_) | TKind::Float(_) | TKind::Bool(_) | TKind::Str(_) | TKind::None | TKind::DType(_) => {}
        TKind::Local(_) | TKind::Global(_) => {}
        TKind::Arith { left, right, .. } | TKind::Logic { left, right, .. } | TKind::Compare { left, right, .. } => {
            f(left);
            f(right);
        }
        TKind::Concat(a, b) | TKind::Repeat(a, b) | TKind::Index(a, b) => {
            f(a);
            f(b);
        }
        TKind::Neg(a) | TKind::Invert(a) | TKind::Not(a) | TKind::IntToFloat(a) | TKind::BoolToInt(a) => f(a),
        TKind::Truth(a) | TKind::Field(a, _) | TKind::TensorDim(a, _) | TKind::TensorShape(a) => f(a),
        TKind::TensorDType(a) | TKind::WithPolicy(_, a) => f(a),
        TKind::Convert { value, .. } | TKind::Erase { value, .. } => f(value),
        TKind::Check { value, dims, .. } => {
            f(value);
            dims.iter().flatten().for_each(f);
        }
        TKind::Cond { test, then, otherwise } => [test, then, otherwise].into_iter().for_each(|e| f(e)),
        TKind::Tuple(es) | TKind::List(es) | TKind::Struct(es) => es.iter().for_each(f),
        TKind::Closure { captures } => captures.iter().for_each(f),
        TKind::Dict(entries) => entries.iter().for_each(|(k, v)| {
            f(k);
            f(v);
        }),
        TKind::Slice { base, low, high, step } => {
            f(base);
            [low, high, step].into_iter().flatten().for_each(|e| f(e));
        }
        TKind::Call { callee, args, .. } => {
            callee.iter().for_each(|e| f(e));
            args.iter().for_each(f);
        }
        TKind::CallValue { callee, args } => {
            f(callee);
            args.iter().for_each(f);
        }
        TKind::Op { args, .. } => args.iter().for_each(|a| {
            if let OpArg::Value(e) = a {
                f(e)
            }
        }),
        TKind::TensorIndex { base, index, .. } => {
            f(base);
            index_parts(index, f);
        }
        TKind::Scan { callee, init, xs, .. } => {
            callee.iter().for_each(|e| f(e));
            f(init);
            f(xs);
        }
        TKind::Fori { callee, low, high, init, .. } => {
            callee.iter().for_each(|e| f(e));
            [low, high, init].into_iter().for_each(|e| f(e));
        }
        TKind::Flow { functions, args, .. } => {
            functions.iter().flat_map(|c| &c.callee).for_each(|e| f(e));
            args.iter().for_each(f);
        }
        TKind::Derive { f: function, args } => function.values().into_iter().chain(args).for_each(f),
        TKind::Collective { x, .. } => x.iter().for_each(|x| f(x)),
        TKind::StopGradient(a) | TKind::Layout(a) => f(a),
        TKind::Builtin { args, .. } => args.iter().for_each(f),
        TKind::Format(parts) => parts.iter().for_each(|p| {
            if let FormatPart::Value { value, spec, .. } = p {
                f(value);
                spec.iter().for_each(&mut *f);
            }
        }),
        TKind::Block { value, .. } => f(value),
    }
}

/// The same expression with every direct operand replaced by `f` of it, in evaluation order.
/// The statements of a block stay as they are.
pub fn map_children(e: &TExpr, f: &mut dyn FnMut(&TExpr) -> TExpr) -> TExpr {
    let mut out = e.clone();
    each_child_mut(&mut out, &mut |child| *child = f(child));
    out
}

/// As [`each_child`], to change them.
pub fn each_child_mut(e: &mut TExpr, f: &mut dyn FnMut(&mut TExpr)) {
    match &mut e.kind {
        TKind::Int(_) | TKind::Float(_) | TKind::Bool(_) | TKind::Str(_) | TKind::None | TKind::DType(_) => {}
        TKind::Local(_) | TKind::Global(_) => {}
        TKind::Arith { left, right, .. } | TKind::Logic { left, right, .. } | TKind::Compare { left, right, .. } => {
            f(left);
            f(right);
        }
        TKind::Concat(a, b) | TKind::Repeat(a, b) | TKind::Index(a, b) => {
            f(a);
            f(b);
        }
        TKind::Neg(a) | TKind::Invert(a) | TKind::Not(a) | TKind::IntToFloat(a) | TKind::BoolToInt(a) => f(a),
        TKind::Truth(a) | TKind::Field(a, _) | TKind::TensorDim(a, _) | TKind::TensorShape(a) => f(a),
        TKind::TensorDType(a) | TKind::WithPolicy(_, a) => f(a),
        TKind::Convert { value, .. } | TKind::Erase { value, .. } => f(value),
        TKind::Check { value, dims, .. } => {
            f(value);
            dims.iter_mut().flatten().for_each(f);
        }
        TKind::Cond { test, then, otherwise } => [test, then, otherwise].into_iter().for_each(|e| f(e)),
        TKind::Tuple(es) | TKind::List(es) | TKind::Struct(es) => es.iter_mut().for_each(f),
        TKind::Closure { captures } => captures.iter_mut().for_each(f),
        TKind::Dict(entries) => entries.iter_mut().for_each(|(k, v)| {
            f(k);
            f(v);
        }),
        TKind::Slice { base, low, high, step } => {
            f(base);
            [low, high, step].into_iter().flatten().for_each(|e| f(e));
        }
        TKind::Call { callee, args, .. } => {
            callee.iter_mut().for_each(|e| f(e));
            args.iter_mut().for_each(f);
        }
        TKind::CallValue { callee, args } => {
            f(callee);
            args.iter_mut().for_each(f);
        }
        TKind::Op { args, .. } => args.iter_mut().for_each(|a| {
            if let OpArg::Value(e) = a {
                f(e)
            }
        }),
        TKind::TensorIndex { base, index, .. } => {
            f(base);
            for part in index {
                match part {
                    IndexPart::Int(e) | IndexPart::Tensor(e) => f(e),
                    IndexPart::Slice { low, high, step } => [low, high, step].into_iter().flatten().for_each(&mut *f),
                    IndexPart::Whole(_) | IndexPart::NewAxis => {}
                }
            }
        }
        TKind::Scan { callee, init, xs, .. } => {
            callee.iter_mut().for_each(|e| f(e));
            f(init);
            f(xs);
        }
        TKind::Fori { callee, low, high, init, .. } => {
            callee.iter_mut().for_each(|e| f(e));
            [low, high, init].into_iter().for_each(|e| f(e));
        }
        TKind::Flow { functions, args, .. } => {
            functions.iter_mut().flat_map(|c| &mut c.callee).for_each(|e| f(e));
            args.iter_mut().for_each(f);
        }
        TKind::Derive { f: function, args } => function.values_mut().into_iter().chain(args).for_each(f),
        TKind::Collective { x, .. } => x.iter_mut().for_each(|x| f(x)),
        TKind::StopGradient(a) | TKind::Layout(a) => f(a),
        TKind::Builtin { args, .. } => args.iter_mut().for_each(f),
        TKind::Format(parts) => parts.iter_mut().for_each(|p| {
            if let FormatPart::Value { value, spec, .. } = p {
                f(value);
                spec.iter_mut().for_each(&mut *f);
            }
        }),
        TKind::Block { value, .. } => f(value),
    }
}

/// Calls `f` on the expressions that a statement evaluates itself and `block` on the blocks in it.
pub fn each_part<'a>(s: &'a TStmt, f: &mut dyn FnMut(&'a TExpr), block: &mut dyn FnMut(&'a [TStmt])) {
    match s {
        TStmt::Expr(e) | TStmt::Set(_, e) | TStmt::SetGlobal(_, e) => f(e),
        TStmt::Mutate { place, change, .. } => {
            match change {
                TChange::Set(e) => f(e),
                TChange::TensorSet { index, value, .. } => {
                    f(value);
                    index_parts(index, f);
                }
                TChange::Method { args, .. } => args.iter().for_each(&mut *f),
            }
            for step in &place.steps {
                if let TStep::Index(e) | TStep::Key(e) = step {
                    f(e)
                }
            }
        }
        TStmt::If { test, then, otherwise } => {
            f(test);
            block(then);
            block(otherwise);
        }
        TStmt::While { test, body, .. } => {
            f(test);
            block(body);
        }
        TStmt::ForRange { start, stop, step, body, .. } => {
            [start, stop, step].into_iter().for_each(f);
            block(body);
        }
        TStmt::ForEach { iter, body, .. } => {
            f(iter);
            block(body);
        }
        TStmt::Break | TStmt::Continue => {}
        TStmt::Return(e) => e.iter().for_each(f),
        TStmt::Assert { test, message, .. } => {
            f(test);
            message.iter().for_each(f);
        }
        TStmt::WithPolicy { body, .. } | TStmt::WithHints { body, .. } => block(body),
    }
}

/// Calls `f` on every expression below `e`, `e` first, statements of blocks included.
pub fn each_expr<'a>(e: &'a TExpr, f: &mut dyn FnMut(&'a TExpr)) {
    f(e);
    if let TKind::Block { stmts, .. } = &e.kind {
        each_expr_in(stmts, f);
    }
    let mut children = vec![];
    each_child(e, &mut |c| children.push(c));
    for c in children {
        each_expr(c, f);
    }
}

/// Calls `f` on every expression in the statements.
pub fn each_expr_in<'a>(stmts: &'a [TStmt], f: &mut dyn FnMut(&'a TExpr)) {
    for s in stmts {
        let (mut exprs, mut blocks) = (vec![], vec![]);
        each_part(s, &mut |e| exprs.push(e), &mut |b| blocks.push(b));
        exprs.into_iter().for_each(|e| each_expr(e, f));
        blocks.into_iter().for_each(|b| each_expr_in(b, f));
    }
}

/// Calls `f` on every statement, outer ones first, also inside block expressions (there
/// perhaps more than once).
pub fn each_stmt<'a>(stmts: &'a [TStmt], f: &mut dyn FnMut(&'a TStmt)) {
    for s in stmts {
        f(s);
        let (mut exprs, mut blocks) = (vec![], vec![]);
        each_part(s, &mut |e| exprs.push(e), &mut |b| blocks.push(b));
        for e in exprs {
            each_expr(e, &mut |e| {
                if let TKind::Block { stmts, .. } = &e.kind {
                    each_stmt(stmts, f);
                }
            });
        }
        blocks.into_iter().for_each(|b| each_stmt(b, f));
    }
}

/// The functions that evaluating the node itself may call.
pub fn called(e: &TExpr) -> Vec<InstId> {
    match &e.kind {
        TKind::Call { inst, .. } | TKind::Erase { inst, .. } => vec![*inst],
        TKind::Scan { inst, .. } | TKind::Fori { inst, .. } => vec![*inst],
        TKind::Flow { functions, .. } => functions.iter().map(|f| f.inst).collect(),
        TKind::Derive { f, .. } => vec![f.inst()],
        _ => vec![],
    }
}

/// The variables that an expression mentions.
pub fn mentioned(e: &TExpr) -> BTreeSet<Var> {
    let mut vars = BTreeSet::new();
    each_expr(e, &mut |e| vars.extend(as_var(e)));
    vars
}

/// Whether an expression mentions one of the variables.
pub fn mentions(e: &TExpr, vars: &BTreeSet<Var>) -> bool {
    let mut found = false;
    if !vars.is_empty() {
        each_expr(e, &mut |e| found |= as_var(e).is_some_and(|v| vars.contains(&v)));
    }
    found
}
