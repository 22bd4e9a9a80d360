//! Expressions that mean something else in other libraries, and are right here by chance: pairs that are rows of one tensor
//! (W0111), axes that exchange nothing (W0112); comparisons of what is computed with a float that no computation gives (W0113), and
//! f-strings without a value (W0114).

use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::{TExpr, TKind};
use tessera_core::ty::Ty;
use tessera_grammar::ast::*;
use tessera_grammar::token::{Tok, lex};
use tessera_resolve::syntax::each_expr;

/// W0113 and W0114 in an item, whose text is given.
pub fn mistaken(stmts: &[Stmt], text: &str) -> Vec<Diagnostic> {
    let mut out = vec![];
    each_expr(stmts, &mut |e| {
        out.extend(compares_a_float(e));
        out.extend(has_no_value(e, text));
    });
    out
}

/// W0114: an f-string with nothing in braces.
fn has_no_value(e: &Expr, text: &str) -> Option<Diagnostic> {
    let ExprKind::FStr(parts) = &e.kind else { return None };
    if parts.iter().any(|p| matches!(p, FPart::Value { .. })) {
        return None;
    }
    let d = Diagnostic::new(Code::W0114, e.span, "this f-string has no value in it");
    let written = text.get(e.span.start as usize..e.span.end as usize)?;
    let letter = written.find(['f', 'F'])?;
    let prefix = written.find(['"', '\''])?;
    // Of several strings side by side, and where braces are doubled, more than a letter would change.
    let alone = lex(written).iter().filter(|t| matches!(t.kind, Tok::FStart | Tok::Str)).count() == 1;
    if letter > prefix || !alone || written.contains(['{', '}']) {
        return Some(d.help("write values as `{x}`, or leave the `f` out"));
    }
    let start = e.span.start + letter as u32;
    Some(d.fix("leave the `f` out", Span { start, end: start + 1, ..e.span }, ""))
}

/// W0112: `x.transpose(0, 1)` of a tensor, which lists the axes in the order that they have.
pub fn exchanges_nothing(name: &Name, args: &[Arg], value: &TExpr) -> Option<Diagnostic> {
    let TKind::Op { def, .. } = &value.kind else { return None };
    let axes: Option<Vec<i64>> = args.iter().map(|a| whole(&a.value)).collect();
    let in_order = matches!(axes.as_deref(), Some([0, 1] | [-2, -1] | [0, -1] | [-2, 1]));
    let named = args.iter().any(|a| a.name.is_some() || a.star);
    if def.name != "transpose" || &*name.text != "transpose" || !in_order || named {
        return None;
    }
    let message = "these are the axes in the order that they have: nothing is exchanged";
    let d = Diagnostic::new(Code::W0112, value.span, message);
    let d = d.note("`transpose` takes all axes in their new order; `swapaxes` takes the two that are exchanged");
    Some(d.fix("exchange the two axes", name.span, "swapaxes"))
}

/// An int that is written out.
fn whole(e: &Expr) -> Option<i64> {
    match &e.kind {
        ExprKind::Int(digits) => digits.parse().ok(),
        ExprKind::Unary { op: UnOp::Neg, operand } => whole(operand)?.checked_neg(),
        _ => None,
    }
}

/// W0113: a sum, product or the like is compared with a number that binary fractions only come near.
fn compares_a_float(e: &Expr) -> Option<Diagnostic> {
    let ExprKind::Compare { first, rest } = &e.kind else { return None };
    let [(CmpOp::Eq | CmpOp::Ne, second)] = &rest[..] else { return None };
    let (number, other) = match (&first.kind, &second.kind) {
        (_, ExprKind::Float(f)) => (f.value(), &**first),
        (ExprKind::Float(f), _) => (f.value(), second),
        _ => return None,
    };
    // What calls give may be the number itself.
    let computed = matches!(other.kind, ExprKind::Binary { .. });
    // Between these a number that is no multiple of a small power of two is none of a large one that somebody writes out.
    let usual = (1e-3..1e6).contains(&number);
    let exact = (number * 1_048_576.0).fract() == 0.0;
    (computed && usual && !exact).then(|| {
        let message = format!("computed floats are seldom equal to {number} to the last bit");
        let d = Diagnostic::new(Code::W0113, e.span, message);
        d.note(format!("{number} is no binary fraction, so that each step rounds"))
            .help_about("compare the distance: `abs({a} - {b}) < 1e-6`", &[("a", first.span), ("b", second.span)])
    })
}

/// What PyTorch gives as a pair, values and positions, and what gives the positions here.
const PAIRS: [(&str, &str); 3] = [("max", "argmax"), ("min", "argmin"), ("sort", "argsort")];

/// What the second of two names is called that is to hold positions.
const POSITIONS: [&str; 5] = ["idx", "ind", "pos", "arg", "where"];

/// Whether a name says that it holds positions, or that nobody reads it.
fn names_positions(e: &Expr) -> bool {
    let ExprKind::Name(name) = &e.kind else { return false };
    &**name == "_" || name.rsplit('_').any(|part| part == "i" || POSITIONS.iter().any(|p| part.starts_with(p)))
}

/// W0111: two names for the rows of the one tensor that `max`, `min` or `sort` along an axis gives; E0204 where it has not
/// two rows.
pub fn no_pair(targets: &[Expr], e: &Expr, value: &TExpr) -> Option<Diagnostic> {
    let [Expr { kind: ExprKind::Tuple(names), span: at }] = targets else { return None };
    let TKind::Op { def, .. } = &value.kind else { return None };
    let (_, positions) = PAIRS.iter().find(|(name, _)| *name == def.name)?;
    let (Ty::Tensor(t), 2, ExprKind::Call { func, .. }) = (&value.ty, names.len(), &e.kind) else { return None };
    let ExprKind::Attr { name, .. } = &func.kind else { return None };
    let rows = t.shape.first()?;
    let fits = rows.as_const().is_none_or(|rows| rows == 2);
    // `low, high = points.min(axis=0)` is right where there are two columns.
    if fits && !names.get(1).is_some_and(names_positions) {
        return None;
    }
    let (code, message) = match fits {
        true => (Code::W0111, format!("the two names are rows of one tensor: `{}` gives values alone", name.text)),
        false => (Code::E0204, format!("2 names for {rows} rows")),
    };
    let d = Diagnostic::new(code, *at, message).with_label(e.span, value.ty.to_string());
    let d = if fits { d } else { d.note(format!("`{}` gives values alone, and one tensor of them", name.text)) };
    Some(
        d.help(format!("the positions are what `{positions}` gives, with the same arguments: bind the two one by one")),
    )
}
