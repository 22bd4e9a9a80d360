//! Arithmetic on host values.

use super::cx::{Cx, error_at, int};
use super::symbolic::{arith, known};
use tessera_base::{Code, Diagnostic, Size, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{BinOp, CmpOp, UnOp};

/// Why a function runs on the host that asks whether a tensor is true.
const ON_DATA: &str = "decides on the data of a tensor";
/// The same of loops that may have any number of turns.
pub const WHILE: &str = "runs a `while` loop";

/// And of numbers.
pub const NUMBER: &str = "reads a number from a tensor";

/// Whether tensor code can do it as well, by choices and loops that elements of tensors decide.
pub fn is_by_data(why: &str) -> bool {
    [ON_DATA, WHILE, NUMBER].contains(&why)
}

impl Cx<'_> {
    pub fn binary(&mut self, op: BinOp, op_span: Span, l: TExpr, r: TExpr, span: Span) -> TExpr {
        if l.ty.is_error() || r.ty.is_error() {
            return error_at(span);
        }
        if l.ty.is_tensor() || r.ty.is_tensor() {
            let by = if op == BinOp::Div { self.devices_by(&r) } else { None };
            let (l, by) = match by {
                Some(by) => {
                    let (l, rest) = self.divided_by_devices(l, by);
                    (l, Some(rest))
                }
                None => (l, None),
            };
            if let Some(d) = self.block_factor(op, (&l, &r), by) {
                return self.fail(d);
            }
            let result = tessera_types::tensor::binary(&mut self.sizes, op, op_span, l, r, span);
            return self.take(result);
        }
        match (&l.ty, &r.ty) {
            (Ty::Bool, Ty::Bool) if matches!(op, BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor) => {
                bool_op(op, l, r, span)
            }
            _ if l.ty.is_scalar() && r.ty.is_scalar() => self.numbers(op, op_span, l, r, span),
            _ => self.containers(op, op_span, l, r, span),
        }
    }

    fn numbers(&mut self, op: BinOp, op_span: Span, l: TExpr, r: TExpr, span: Span) -> TExpr {
        let (l, r) = (as_int(l), as_int(r));
        let ints = matches!((&l.ty, &r.ty), (Ty::Int(_), Ty::Int(_)));
        let only_ints = matches!(op, BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::Shl | BinOp::Shr);
        if op == BinOp::MatMul || (only_ints && !ints) {
            return self.refuse(op, op_span, &l, &r);
        }
        if ints && op != BinOp::Div {
            let symbolic = match (&l.ty, &r.ty) {
                (Ty::Int(Some(a)), Ty::Int(Some(b))) => arith(op, a, b),
                _ => None,
            };
            let kind = TKind::Arith { op, left: Box::new(l), right: Box::new(r), int_operands: true };
            return TExpr { kind, ty: Ty::Int(symbolic), span };
        }
        [&l, &r].into_iter().for_each(|x| self.block_number(x));
        let kind = TKind::Arith { op, left: Box::new(as_float(l)), right: Box::new(as_float(r)), int_operands: ints };
        TExpr { kind, ty: Ty::Float, span }
    }

    fn containers(&mut self, op: BinOp, op_span: Span, l: TExpr, r: TExpr, span: Span) -> TExpr {
        match (op, &l.ty, &r.ty) {
            (BinOp::Add, Ty::Str, Ty::Str) => {
                TExpr { kind: TKind::Concat(Box::new(l), Box::new(r)), ty: Ty::Str, span }
            }
            (BinOp::Mul, Ty::Str | Ty::List(_), Ty::Int(_) | Ty::Bool) => {
                let ty = l.ty.clone();
                TExpr { kind: TKind::Repeat(Box::new(l), Box::new(as_int(r))), ty, span }
            }
            (BinOp::Mul, Ty::Int(_) | Ty::Bool, Ty::Str | Ty::List(_)) => {
                let ty = r.ty.clone();
                TExpr { kind: TKind::Repeat(Box::new(r), Box::new(as_int(l))), ty, span }
            }
            (BinOp::Add, Ty::List(a), Ty::List(b)) => {
                let (a, b) = ((**a).clone(), (**b).clone());
                let ty = super::exprs::join_elements(self, &a, &b).map(|ty| Ty::List(Box::new(ty)));
                let part = |e: &TExpr, ty: &Ty| Some(Box::new(TExpr { ty: ty.clone(), ..with_floats(e.clone(), ty)? }));
                let parts = ty.and_then(|ty| Some((part(&l, &ty)?, part(&r, &ty)?, ty)));
                match parts {
                    Some((l, r, ty)) => TExpr { kind: TKind::Concat(l, r), ty, span },
                    None => self.refuse(op, op_span, &l, &r),
                }
            }
            (BinOp::Add, Ty::Tuple(_), Ty::Tuple(_)) => self.tuple_of([l, r], 1, span),
            (BinOp::Mul, Ty::Tuple(_), Ty::Int(_)) | (BinOp::Mul, Ty::Int(_), Ty::Tuple(_)) => {
                self.repeated_tuple(l, r, span)
            }
            _ => self.refuse(op, op_span, &l, &r),
        }
    }

    /// The elements of some tuples, one behind the other, so many times.
    fn tuple_of<const N: usize>(&mut self, tuples: [TExpr; N], times: usize, span: Span) -> TExpr {
        self.scoped(|cx| {
            let mut items = vec![];
            for t in tuples.map(|t| cx.save("tuple", t)) {
                let Ty::Tuple(types) = t.ty.clone() else { continue };
                let field = |(i, ty)| TExpr { kind: TKind::Field(Box::new(t.clone()), i as u32), ty, span };
                items.extend(types.into_iter().enumerate().map(field));
            }
            let items = vec![items; times].concat();
            let ty = Ty::Tuple(items.iter().map(|i| i.ty.clone()).collect());
            TExpr { kind: TKind::Tuple(items), ty, span }
        })
    }

    /// `(x, y) * n` or `n * (x, y)`, whose type has `n` times as many elements.
    fn repeated_tuple(&mut self, l: TExpr, r: TExpr, span: Span) -> TExpr {
        const MOST: usize = 4096;
        self.scoped(|cx| {
            let (l, r) = (cx.save("left", l), cx.save("right", r));
            let (tuple, times) = if matches!(l.ty, Ty::Tuple(_)) { (l, r) } else { (r, l) };
            let have = if let Ty::Tuple(types) = &tuple.ty { types.len() } else { 0 };
            let why = match times.ty.const_int() {
                None => {
                    "the type of a tuple says how many elements it has, and this is known when the program runs".into()
                }
                Some(n) => match usize::try_from(n.max(0)).ok().filter(|n| have.saturating_mul(*n) <= MOST) {
                    Some(n) => return cx.tuple_of([tuple], n, span),
                    None => format!("a tuple that is repeated has at most {MOST} elements"),
                },
            };
            let d = Diagnostic::new(Code::E0213, times.span, why);
            cx.fail(d.help("`[x] * n` makes a list of any length"))
        })
    }

    fn refuse(&mut self, op: BinOp, op_span: Span, l: &TExpr, r: &TExpr) -> TExpr {
        let d = Diagnostic::new(
            Code::E0205,
            op_span,
            format!("`{}` does not apply to `{}` and `{}`", op.symbol(), l.ty, r.ty),
        )
        .with_label(l.span, l.ty.to_string())
        .with_label(r.span, r.ty.to_string());
        let d = match (op, &l.ty, &r.ty) {
            (BinOp::Add, Ty::Str, t) if t.is_scalar() => {
                let help = "put the number into the text: `f\"… {{x}}\"`, or convert it with `str({x})`";
                d.help_about(help, &[("x", r.span)])
            }
            (BinOp::Add, t, Ty::Str) if t.is_scalar() => {
                let help = "put the number into the text: `f\"{{x}} …\"`, or convert it with `str({x})`";
                d.help_about(help, &[("x", l.span)])
            }
            (BinOp::Mod, Ty::Str, _) => d.help("format with an f-string: `f\"{x:.2f}\"`"),
            (BinOp::MatMul, ..) => d.note("`@` is the product of tensors"),
            (BinOp::BitAnd | BinOp::BitOr, Ty::Bool, _) | (BinOp::BitAnd | BinOp::BitOr, _, Ty::Bool) => {
                d.help(format!("use `{}`", if op == BinOp::BitAnd { "and" } else { "or" }))
            }
            (_, Ty::None, _) | (_, _, Ty::None) => d.note("a function that ends without `return` gives None"),
            (BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div, Ty::List(_) | Ty::Tuple(_), _) => {
                let help = "`op.array({x})` makes a tensor of a list, on which arithmetic is element by element";
                d.help_about(help, &[("x", l.span)])
            }
            _ => d,
        };
        // The operator is where it fails, but the whole expression is where people look.
        self.report(d);
        error_at(l.span.to(r.span))
    }

    pub fn unary(&mut self, op: UnOp, x: TExpr, span: Span) -> TExpr {
        if x.ty.is_error() {
            return error_at(span);
        }
        if op == UnOp::Not {
            return self.not(x, span);
        }
        if x.ty.is_tensor() {
            let result = tessera_types::tensor::unary(&mut self.sizes, op, span, x, span);
            return self.take(result);
        }
        let x = as_int(x);
        match (op, &x.ty) {
            (UnOp::Neg, Ty::Int(n)) => {
                let ty = Ty::Int(n.as_ref().and_then(|n| known(n.neg())));
                // A literal of the least int is one number, not an overflow.
                TExpr { kind: TKind::Neg(Box::new(x)), ty, span }
            }
            (UnOp::Neg, Ty::Float) => match x.kind {
                TKind::Float(v) => TExpr { kind: TKind::Float(-v), ty: Ty::Float, span },
                _ => TExpr { ty: Ty::Float, kind: TKind::Neg(Box::new(x)), span },
            },
            (UnOp::Pos, Ty::Int(_) | Ty::Float) => TExpr { span, ..x },
            (UnOp::Invert, Ty::Int(n)) => {
                let ty = Ty::Int(n.as_ref().and_then(|n| known(n.neg().sub(&Size::constant(1)))));
                TExpr { kind: TKind::Invert(Box::new(x)), ty, span }
            }
            _ => {
                let symbol = match op {
                    UnOp::Neg => "-",
                    UnOp::Pos => "+",
                    _ => "~",
                };
                let d = Diagnostic::new(Code::E0205, span, format!("`{symbol}` does not apply to `{}`", x.ty));
                self.fail(d)
            }
        }
    }

    fn not(&mut self, x: TExpr, span: Span) -> TExpr {
        let test = self.truth(x);
        match test.kind {
            TKind::Bool(b) => TExpr { kind: TKind::Bool(!b), ty: Ty::Bool, span },
            TKind::Block { stmts, value } if value.known_bool().is_some() => {
                super::cx::wrap(stmts, self.not(*value, span))
            }
            _ if test.ty.is_error() => error_at(span),
            _ => TExpr { kind: TKind::Not(Box::new(test)), ty: Ty::Bool, span },
        }
    }

    /// A value as a condition.
    pub fn truth(&mut self, x: TExpr) -> TExpr {
        let span = x.span;
        match &x.ty {
            Ty::Bool | Ty::Error | Ty::Never => x,
            Ty::Tensor(_) | Ty::AnyTensor => {
                if let Some(d) = self.same_condition(&x) {
                    return self.fail(d);
                }
                self.host(ON_DATA, span);
                let result = tessera_types::tensor::truth(x);
                self.take(result)
            }
            Ty::None => super::cx::behind(vec![x], super::cx::boolean(false, span)),
            Ty::Int(_) | Ty::Float | Ty::Str | Ty::List(_) | Ty::Dict(..) => {
                TExpr { kind: TKind::Truth(Box::new(x)), ty: Ty::Bool, span }
            }
            ty => {
                let d = Diagnostic::new(Code::E0204, span, format!("`{ty}` is neither true nor false"));
                self.fail(match &x.ty {
                    Ty::FnRef(_) | Ty::Fn(..) => d.help("call it"),
                    Ty::Tuple(ts) if matches!(ts[..], [_, Ty::Str]) => {
                        d.help("`assert` has no parentheses: `assert condition, message`")
                    }
                    _ => d.help("compare it with something"),
                })
            }
        }
    }
}

/// A bool as an int; others as they are.
pub fn as_int(x: TExpr) -> TExpr {
    match (&x.ty, &x.kind) {
        (Ty::Bool, TKind::Bool(b)) => int(i64::from(*b), x.span),
        (Ty::Bool, _) => {
            let span = x.span;
            TExpr { kind: TKind::BoolToInt(Box::new(x)), ty: Ty::int(), span }
        }
        _ => x,
    }
}

/// A scalar as a float.
pub fn as_float(x: TExpr) -> TExpr {
    let x = as_int(x);
    match (&x.ty, &x.kind) {
        (Ty::Float, _) => x,
        (_, TKind::Int(n)) if n.unsigned_abs() < 1 << 53 => {
            TExpr { kind: TKind::Float(*n as f64), ty: Ty::Float, span: x.span }
        }
        _ => {
            let span = x.span;
            TExpr { kind: TKind::IntToFloat(Box::new(x)), ty: Ty::Float, span }
        }
    }
}

/// A value with its ints as floats where the type has floats; `None` where it holds such ints and is not written out here.
pub fn with_floats(e: TExpr, ty: &Ty) -> Option<TExpr> {
    if !has_ints_for_floats(&e.ty, ty) {
        return Some(e);
    }
    let certain = e.is_certain();
    let (span, whole) = (e.span, e.clone());
    let kind = match (e.kind, ty) {
        (_, Ty::Float) => return Some(as_float(whole)),
        (TKind::Block { stmts, value }, _) => {
            let value = Box::new(with_floats(*value, ty)?);
            return Some(TExpr { ty: value.ty.clone(), kind: TKind::Block { stmts, value }, span });
        }
        (TKind::Tuple(items), Ty::Tuple(ts)) => {
            TKind::Tuple(items.into_iter().zip(ts).map(|(i, t)| with_floats(i, t)).collect::<Option<_>>()?)
        }
        (TKind::List(items), Ty::List(t)) => {
            TKind::List(items.into_iter().map(|i| with_floats(i, t)).collect::<Option<_>>()?)
        }
        (TKind::Dict(pairs), Ty::Dict(_, t)) => {
            TKind::Dict(pairs.into_iter().map(|(k, v)| Some((k, with_floats(v, t)?))).collect::<Option<_>>()?)
        }
        (_, Ty::Tuple(ts)) if certain => {
            let Ty::Tuple(have) = &whole.ty else { return None };
            let part =
                |i: usize| TExpr { kind: TKind::Field(Box::new(whole.clone()), i as u32), ty: have[i].clone(), span };
            TKind::Tuple(ts.iter().enumerate().map(|(i, t)| with_floats(part(i), t)).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    let ty = match &kind {
        TKind::Tuple(items) => Ty::Tuple(items.iter().map(|i| i.ty.clone()).collect()),
        _ => floats_of(&whole.ty, ty),
    };
    Some(TExpr { kind, ty, span })
}

/// The type `have` with floats for ints where `want` has floats.
pub fn floats_of(have: &Ty, want: &Ty) -> Ty {
    match (have, want) {
        (Ty::Int(_) | Ty::Bool, Ty::Float) => Ty::Float,
        (Ty::List(a), Ty::List(b)) => Ty::List(Box::new(floats_of(a, b))),
        (Ty::Dict(k, a), Ty::Dict(_, b)) => Ty::Dict(k.clone(), Box::new(floats_of(a, b))),
        (Ty::Tuple(a), Ty::Tuple(b)) if a.len() == b.len() => {
            Ty::Tuple(a.iter().zip(b).map(|(a, b)| floats_of(a, b)).collect())
        }
        _ => have.clone(),
    }
}

/// Whether ints stand where the other type has floats.
fn has_ints_for_floats(have: &Ty, want: &Ty) -> bool {
    match (have, want) {
        (Ty::Int(_) | Ty::Bool, Ty::Float) => true,
        (Ty::List(a), Ty::List(b)) | (Ty::Dict(_, a), Ty::Dict(_, b)) => has_ints_for_floats(a, b),
        (Ty::Tuple(a), Ty::Tuple(b)) => a.iter().zip(b).any(|(a, b)| has_ints_for_floats(a, b)),
        _ => false,
    }
}

/// `&`, `|`, `^` of bools: both are computed.
fn bool_op(op: BinOp, l: TExpr, r: TExpr, span: Span) -> TExpr {
    let kind = TKind::Arith { op, left: Box::new(as_int(l)), right: Box::new(as_int(r)), int_operands: true };
    let bits = TExpr { kind, ty: Ty::int(), span };
    let kind = TKind::Compare { op: CmpOp::Ne, left: Box::new(bits), right: Box::new(int(0, span)) };
    TExpr { kind, ty: Ty::Bool, span }
}
