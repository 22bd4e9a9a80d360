//! Arithmetic, comparison and logic where an operand is a tensor.

use super::args::any_tensor;
use super::call::call_as;
use super::matching::Given;
use super::{attr, broken, error_expr, rows};
use crate::sizes::SizeCx;
use tessera_base::{Code, DType, Diagnostic, Span};
use tessera_core::ir::{TExpr, TKind};
use tessera_core::ty::Ty;
use tessera_grammar::ast::{BinOp, CmpOp, UnOp};

/// `l op r`, of which at least one is a tensor. Python scalars are weak.
pub fn binary(cx: &mut SizeCx, op: BinOp, op_span: Span, l: TExpr, r: TExpr, span: Span) -> Result<TExpr, Diagnostic> {
    if broken(&l) || broken(&r) {
        return Ok(error_expr(span));
    }
    operands(op.symbol(), op_span, &l, &r)?;
    if op == BinOp::MatMul {
        both_tensors(op_span, &l, &r)?;
    }
    let def = rows::row(rows::binary(op, is_bool(&l) && is_bool(&r)), op_span)?;
    call_as(cx, def, vec![Given::positional(l), Given::positional(r)], span, op_span, Some(op.symbol()))
}

/// `l op r` element by element: a tensor of bools. `in` and `is` are no comparisons of tensors.
pub fn compare(cx: &mut SizeCx, op: CmpOp, op_span: Span, l: TExpr, r: TExpr, span: Span) -> Result<TExpr, Diagnostic> {
    if broken(&l) || broken(&r) {
        return Ok(error_expr(span));
    }
    let Some(name) = rows::comparison(op) else {
        let d = Diagnostic::new(Code::E0205, op_span, format!("`{}` does not apply to tensors", op.symbol()))
            .with_label(l.span, l.ty.to_string())
            .with_label(r.span, r.ty.to_string());
        return Err(match op {
            CmpOp::In | CmpOp::NotIn => d.help("compare the elements: `op.any(x == value)`"),
            _ => d.help("compare the elements: `op.all(x == y)`"),
        });
    };
    operands(op.symbol(), op_span, &l, &r)?;
    let def = rows::row(name, op_span)?;
    call_as(cx, def, vec![Given::positional(l), Given::positional(r)], span, op_span, Some(op.symbol()))
}

/// `-x`, `+x`, `~x`, `not x` of a tensor. `~` of a tensor of bools is logical.
pub fn unary(cx: &mut SizeCx, op: UnOp, op_span: Span, x: TExpr, span: Span) -> Result<TExpr, Diagnostic> {
    if broken(&x) {
        return Ok(error_expr(span));
    }
    if x.ty == Ty::AnyTensor {
        return Err(any_tensor(&x));
    }
    let (name, symbol) = match op {
        UnOp::Pos => return Ok(TExpr { span, ..x }),
        UnOp::Not => {
            let test = attr::truth(x)?;
            return Ok(TExpr { kind: TKind::Not(Box::new(test)), ty: Ty::Bool, span });
        }
        UnOp::Neg => (rows::NEGATIVE, "-"),
        UnOp::Invert => (rows::invert(dtype(&x)), "~"),
    };
    let def = rows::row(name, op_span)?;
    call_as(cx, def, vec![Given::positional(x)], span, op_span, Some(symbol))
}

fn dtype(e: &TExpr) -> Option<DType> {
    match &e.ty {
        Ty::Tensor(t) => t.dtype,
        _ => None,
    }
}

fn is_bool(e: &TExpr) -> bool {
    e.ty == Ty::Bool || dtype(e) == Some(DType::Bool)
}

/// Both are tensors or numbers.
fn operands(symbol: &str, op_span: Span, l: &TExpr, r: &TExpr) -> Result<(), Diagnostic> {
    for e in [l, r] {
        if e.ty == Ty::AnyTensor {
            return Err(any_tensor(e));
        }
    }
    let fits = |e: &TExpr| matches!(e.ty, Ty::Tensor(_) | Ty::Int(_) | Ty::Float | Ty::Bool);
    if fits(l) && fits(r) {
        return Ok(());
    }
    let text = format!("`{symbol}` does not take {} and {}", l.ty, r.ty);
    let d = Diagnostic::new(Code::E0205, op_span, text)
        .with_label(l.span, l.ty.to_string())
        .with_label(r.span, r.ty.to_string());
    let other = if fits(l) { r } else { l };
    Err(match &other.ty {
        Ty::List(_) | Ty::Tuple(_) => d.help("make a tensor of the numbers: `op.array(…)`"),
        Ty::None if matches!(symbol, "==" | "!=") => d.help("a tensor is never None, and `is None` asks for it"),
        Ty::None => d.help("a function that ends without `return` gives None"),
        Ty::FnRef(f) => d.help(format!("call the function: `{}(…)`", f.name)),
        Ty::Str => d.help("in text, write the tensor into an f-string: `f\"… {x}\"`"),
        _ => d,
    })
}

fn both_tensors(op_span: Span, l: &TExpr, r: &TExpr) -> Result<(), Diagnostic> {
    if matches!((&l.ty, &r.ty), (Ty::Tensor(_), Ty::Tensor(_))) {
        return Ok(());
    }
    Err(Diagnostic::new(
        Code::E0205,
        op_span,
        format!("`@` multiplies two tensors, and these are {} and {}", l.ty, r.ty),
    )
    .with_label(l.span, l.ty.to_string())
    .with_label(r.span, r.ty.to_string())
    .fix("a tensor is scaled by a number with `*`", op_span, "*"))
}
