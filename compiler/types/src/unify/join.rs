//! The type that two paths, or the elements of a list, agree on.

use crate::sizes::SizeCx;
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Sharding, Size, Span, TensorType};
use tessera_core::sizes::of_any_size;
use tessera_core::ty::{FnRefTy, StructTy, Ty};

/// What is joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinKind {
    /// Two paths of a program: values stay as they are, so int and float disagree.
    Control,
    /// Elements that are written side by side: ints among floats become floats.
    Elements,
}

/// The common type, or `None` where the types disagree. Symbolic values and sizes that differ
/// become unknown; such sizes are called `hint`.
pub fn join(cx: &mut SizeCx, a: &Ty, b: &Ty, kind: JoinKind, hint: &str) -> Option<Ty> {
    Some(match (a, b) {
        (Ty::Error, _) | (_, Ty::Error) => Ty::Error,
        (Ty::Never | Ty::Unknown, t) | (t, Ty::Never | Ty::Unknown) => t.clone(),
        (Ty::Int(Some(x)), Ty::Int(Some(y))) if cx.equal(x, y) => a.clone(),
        (Ty::Int(_), Ty::Int(_)) => Ty::int(),
        (Ty::Int(_), Ty::Float) | (Ty::Float, Ty::Int(_)) if kind == JoinKind::Elements => Ty::Float,
        (Ty::DType(x), Ty::DType(y)) => Ty::DType(if x == y { *x } else { None }),
        (Ty::Tensor(x), Ty::Tensor(y)) => {
            if x.rank() != y.rank() || x.dtype != y.dtype {
                return None;
            }
            let sharding = x.sharding.join(&y.sharding)?;
            let shape = x.shape.iter().zip(&y.shape).map(|(x, y)| cx.widen(x, y, hint)).collect();
            Ty::Tensor(TensorType { shape, dtype: x.dtype, sharding })
        }
        (Ty::List(x), Ty::List(y)) => Ty::List(Box::new(join(cx, x, y, kind, hint)?)),
        (Ty::Dict(xk, xv), Ty::Dict(yk, yv)) => {
            Ty::Dict(Box::new(join(cx, xk, yk, kind, hint)?), Box::new(join(cx, xv, yv, kind, hint)?))
        }
        (Ty::Tuple(xs), Ty::Tuple(ys)) if xs.len() == ys.len() => {
            Ty::Tuple(xs.iter().zip(ys).map(|(x, y)| join(cx, x, y, kind, hint)).collect::<Option<_>>()?)
        }
        (Ty::Struct(x), Ty::Struct(y)) if x.item == y.item => {
            let fields = join_fields(cx, &x.fields, &y.fields)?;
            Ty::Struct(Arc::new(StructTy { fields, ..(**x).clone() }))
        }
        (Ty::FnRef(x), Ty::FnRef(y)) if x.same_function(y) => {
            let captures = join_fields(cx, &x.captures, &y.captures)?;
            Ty::FnRef(Arc::new(FnRefTy { captures, ..(**x).clone() }))
        }
        (Ty::Fn(xs, x), Ty::Fn(ys, y)) if xs.len() == ys.len() && a != b => {
            let params = xs.iter().zip(ys).map(|(x, y)| join(cx, x, y, JoinKind::Control, hint));
            let params: Vec<Ty> = params.collect::<Option<_>>()?;
            Ty::Fn(params, Box::new(join(cx, x, y, JoinKind::Control, hint)?))
        }
        _ if a == b => a.clone(),
        _ => return None,
    })
}

/// Fields keep their values: nothing converts them in place.
fn join_fields(cx: &mut SizeCx, xs: &[(Arc<str>, Ty)], ys: &[(Arc<str>, Ty)]) -> Option<Vec<(Arc<str>, Ty)>> {
    if xs.len() != ys.len() {
        return None;
    }
    xs.iter().zip(ys).map(|((n, x), (_, y))| Some((n.clone(), join(cx, x, y, JoinKind::Control, n)?))).collect()
}

/// What [`join_diagnostic`] is told of the elements of a list that is written out.
const LIST: &str = "the elements of the list";
const IN_A_TUPLE: &str = "an operator of several tensors takes them in a tuple too: `op.concat((x, y))`";

/// Two types in words, structs with their fields where their names are one.
fn told_apart(a: &Ty, b: &Ty) -> (String, String) {
    let fields = |ty: &Ty| match ty {
        Ty::Struct(s) => {
            let fields: Vec<String> = s.fields.iter().map(|(n, t)| format!("{n}: {t}")).collect();
            format!("{}({})", s.name, fields.join(", "))
        }
        other => other.to_string(),
    };
    match (a.to_string(), b.to_string()) {
        (one, other) if one == other => (fields(a), fields(b)),
        named => named,
    }
}

/// The form of a type: without sizes, values of ints and layouts.
fn without_mesh(ty: &Ty) -> Ty {
    let plain = |t: &TensorType| TensorType { sharding: Sharding::default(), ..t.clone() };
    match of_any_size(ty, &mut |_| Size::constant(0)) {
        Ty::Tensor(t) => Ty::Tensor(plain(&t)),
        Ty::List(t) => Ty::List(Box::new(without_mesh(&t))),
        Ty::Dict(k, t) => Ty::Dict(k, Box::new(without_mesh(&t))),
        Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(without_mesh).collect()),
        Ty::Struct(s) => {
            let fields = s.fields.iter().map(|(n, t)| (n.clone(), without_mesh(t))).collect();
            Ty::Struct(Arc::new(StructTy { fields, ..StructTy::clone(&s) }))
        }
        other => other,
    }
}

/// The diagnostic for types that disagree. `what` is the value in words: `` `x` ``, `the
/// conditional expression`, `the elements of the list`.
pub fn join_diagnostic(what: &str, at: Span, a: (&Ty, Span), b: (&Ty, Span)) -> Diagnostic {
    let (one, other) = told_apart(a.0, b.0);
    let d = Diagnostic::new(Code::E0209, at, format!("{what} would have two types: `{one}` and `{other}`"));
    // One place that is computed for several values is said once.
    let d = match a.1 == b.1 {
        true => d,
        false => d.with_label(a.1, format!("{one} here")).with_label(b.1, format!("{other} here")),
    };
    if a.0.on_a_mesh() != b.0.on_a_mesh() && without_mesh(a.0) == without_mesh(b.0) {
        let d = d.note("one lies over a mesh, and the other on one device");
        let d = match what {
            LIST => d.help(IN_A_TUPLE),
            _ => d,
        };
        return d.help(
            "`dist.shard(x, spec, mesh=mesh)` lays one out like the other, `dist.gather(x)` brings it to one device",
        );
    }
    match (a.0, b.0) {
        (Ty::Int(_), Ty::Float) | (Ty::Float, Ty::Int(_)) => d.help("make both floats: write `1.0`, or `float(x)`"),
        (Ty::None, t) | (t, Ty::None) => d
            .note("None is a type of its own: a value is not sometimes None")
            .help(format!("give it a value of type `{t}` on every path")),
        (Ty::Tensor(x), Ty::Tensor(y)) if x.rank() != y.rank() => d
            .note(format!("the ranks differ: {} and {}", x.rank(), y.rank()))
            .help("give both the same rank with `x[None]` or `x.reshape(…)`"),
        (Ty::Tensor(x), Ty::Tensor(y)) => match (x.dtype, y.dtype) {
            (Some(p), Some(q)) if p != q => {
                d.note(format!("the element types differ: {p} and {q}")).help(format!("convert one with `.to({p})`"))
            }
            _ => {
                let mut d = d.note("the layouts differ");
                if what == LIST {
                    d = d.help(IN_A_TUPLE);
                }
                let lies_at = |t: &TensorType| t.sharding.partial.iter().any(|p| p.0.position().is_some());
                d.help(match lies_at(x) || lies_at(y) {
                    true => "bring one to where the other lies: `dist.at(x, axis=…, index=…)`",
                    false => "change one layout with `dist.shard(x, spec)`",
                })
            }
        },
        (Ty::Tensor(_), Ty::Int(_) | Ty::Float) | (Ty::Int(_) | Ty::Float, Ty::Tensor(_)) => {
            d.help("make the number a tensor too: `op.full((), x)`")
        }
        (Ty::FnRef(_), Ty::FnRef(_)) => d.help(match what {
            LIST => "annotate the name with the type of the functions, for example `fs: list[(int) -> int] = […]`",
            "the values of the dict" => {
                "annotate the name with the type of the functions, for example `fs: dict[str, (int) -> int] = {…}`"
            }
            _ => "annotate the name with the type of the functions: `f: (A, B) -> C`",
        }),
        _ => d.help("use two names, or convert one value"),
    }
}
