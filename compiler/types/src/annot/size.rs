//! Sizes in annotations: `4*D`, `H*W//2`, `N + 1`.

use super::{AnnotNames, NameMeaning, dotted};
use tessera_base::near::nearest;
use tessera_base::{Code, Diagnostic, Size, Span};
use tessera_grammar::ast::{BinOp, Expr, ExprKind, UnOp};

/// The size that an expression spells. E0215 where it is none.
pub fn resolve_size(expr: &Expr, names: &mut dyn AnnotNames) -> Result<Size, Diagnostic> {
    let wrong = |message: String| Diagnostic::new(Code::E0215, expr.span, message);
    match &expr.kind {
        ExprKind::Int(digits) => match digits.parse::<i64>() {
            Ok(n) => Ok(Size::constant(n)),
            Err(_) => Err(wrong(format!("{digits} is too large for a size"))),
        },
        ExprKind::Unary { op: UnOp::Neg, operand } => Ok(resolve_size(operand, names)?.neg()),
        ExprKind::Unary { op: UnOp::Pos, operand } => resolve_size(operand, names),
        ExprKind::Binary { op, op_span, left, right } => {
            if *op == BinOp::MatMul {
                return Err(axis_inside(*op_span));
            }
            let (a, b) = (resolve_size(left, names)?, resolve_size(right, names)?);
            arithmetic(*op, *op_span, &a, &b, right.span)
        }
        ExprKind::Call { func, args } => match (&func.kind, args.as_slice()) {
            (ExprKind::Name(f), [a, b]) if matches!(&**f, "min" | "max") && a.name.is_none() && b.name.is_none() => {
                let (a, b) = (resolve_size(&a.value, names)?, resolve_size(&b.value, names)?);
                Ok(if &**f == "min" { a.least(&b) } else { a.greatest(&b) })
            }
            _ => other(expr, names),
        },
        ExprKind::Name(name) => match names.name(name, expr.span) {
            NameMeaning::Size(n) => Ok(n),
            NameMeaning::Type(tessera_core::ty::Ty::Error) => {
                Err(wrong(format!("`{name}` may have no value here, and a size is needed")))
            }
            NameMeaning::Type(ty) => Err(wrong(format!("`{name}` is the type `{ty}`, and a size is needed here"))),
            NameMeaning::Struct { .. } => Err(wrong(format!("`{name}` is a struct, and a size is needed here"))),
            NameMeaning::DType(d) => Err(wrong(format!("the element type `{d}` stands where a size is needed"))
                .help("the element type comes last: `Tensor[B, D, f32]`")),
            NameMeaning::AnyDType => Err(wrong(format!("the element type `{name}` stands where a size is needed"))
                .help("the element type comes last: `Tensor[B, D, f32]`")),
            NameMeaning::Value(what) => Err(wrong(format!("`{name}` is {what}, and a size is needed here"))),
            NameMeaning::Unbound => match names.unbound_size(name, expr.span) {
                Some(n) => Ok(n),
                None => Err(unknown_size(name, expr.span, names)),
            },
        },
        ExprKind::Attr { .. } if dotted(expr).is_some() => {
            let name = dotted(expr).unwrap_or_default();
            match names.name(&name, expr.span) {
                NameMeaning::Size(n) => Ok(n),
                _ => other(expr, names),
            }
        }
        ExprKind::Float(v) => Err(wrong(format!("a size is a whole number, not {}", v.value()))),
        ExprKind::Ellipsis => {
            Err(wrong("`...` stands only for the leading dims".into()).help("write it first: `Tensor[..., D, f32]`"))
        }
        _ => other(expr, names),
    }
}

fn other(expr: &Expr, names: &mut dyn AnnotNames) -> Result<Size, Diagnostic> {
    names.other_size(expr).unwrap_or_else(|| {
        Err(Diagnostic::new(Code::E0215, expr.span, "this is not a size")
            .note("sizes are integers, size variables and their `+`, `-`, `*`, `//`, `%`, `min` and `max`"))
    })
}

fn arithmetic(op: BinOp, op_span: Span, a: &Size, b: &Size, right: Span) -> Result<Size, Diagnostic> {
    let zero = || Diagnostic::new(Code::E0215, right, "a size is divided by zero");
    match op {
        BinOp::Add => Ok(a.add(b)),
        BinOp::Sub => Ok(a.sub(b)),
        BinOp::Mul => Ok(a.mul(b)),
        BinOp::FloorDiv => a.floor_div(b).ok_or_else(zero),
        BinOp::Mod => a.floor_mod(b).ok_or_else(zero),
        BinOp::Pow => match b.as_const() {
            Some(n @ 0..=16) => Ok((0..n).fold(Size::constant(1), |p, _| p.mul(a))),
            _ => Err(Diagnostic::new(Code::E0215, right, "the exponent of a size must be a constant from 0 to 16")),
        },
        BinOp::Div => Err(Diagnostic::new(Code::E0215, op_span, "`/` gives a float, which is not a size").fix(
            "use floor division",
            op_span,
            "//",
        )),
        _ => Err(Diagnostic::new(Code::E0215, op_span, format!("`{}` does not apply to sizes", op.symbol()))
            .note("sizes are built with `+`, `-`, `*`, `//` and `%`")),
    }
}

/// `B + 1@dp` binds as `B + (1@dp)`.
fn axis_inside(op_span: Span) -> Diagnostic {
    Diagnostic::new(Code::E0401, op_span, "a mesh axis belongs to a whole dim, not to a part of its size")
        .help("put the size into parentheses: `(B + 1)@dp`")
}

fn unknown_size(name: &str, span: Span, names: &dyn AnnotNames) -> Diagnostic {
    let d = Diagnostic::new(Code::E0215, span, format!("`{name}` is not defined"));
    if let Some(near) = nearest(name, tessera_base::DType::ALL.iter().map(|t| t.name())) {
        return d.fix(format!("did you mean the element type `{near}`?"), span, near);
    }
    let mine = names.type_names();
    if let Some(near) = nearest(name, mine.iter().map(|n| &**n)) {
        return d.fix(format!("did you mean `{near}`?"), span, near);
    }
    let mut capital: String = name.chars().take(1).flat_map(char::to_uppercase).collect();
    capital.extend(name.chars().skip(1));
    d.note("a name that begins with a capital letter is a size variable of the function").fix(
        format!("name the size `{capital}`"),
        span,
        capital,
    )
}
