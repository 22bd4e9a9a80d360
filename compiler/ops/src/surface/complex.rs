//! Complex numbers: parts, conjugates, and the arithmetic of c64 as arithmetic of its parts.
//!
//! Products contract with fused multiply-adds, quotients follow Smith (Algorithm 116, 1962) so
//! that squares neither overflow nor vanish. Moduli are `hypot`.

mod functions;

use super::expand;
use super::row::{Call, Lowered, Row, meet, req};
use super::rule::{self, Inferred, Operand};
use super::*;
use crate::map::MapOp;

const ONE: &[Param] = &[req("x", ParamKind::Operand)];

pub const REAL: Row = Row::new("real", ONE, |_, a, _| infer_part(a), |c| lower_part(c, false))
    .elementwise()
    .method()
    .doc("The real part of each element, as f32. A real tensor stays as it is.\n\n```tessera\nop.real(op.fft(x))\n```");

pub const IMAG: Row = Row::new("imag", ONE, |_, a, _| infer_part(a), |c| lower_part(c, true))
    .elementwise()
    .method()
    .doc("The imaginary part of each element, as f32; 0 for a real tensor.\n\n```tessera\nop.imag(op.fft(x))\n```");

pub const CONJ: Row = Row::new("conj", ONE, |_, a, _| infer_same(a), lower_conj)
    .elementwise()
    .method()
    .known_as(&["conjugate"])
    .doc("The complex conjugate. A real tensor stays as it is.\n\n```tessera\nz * op.conj(z)\n```");

pub const ANGLE: Row = Row::new("angle", ONE, |_, a, _| infer_angle(a), lower_angle)
    .elementwise()
    .method()
    .known_as(&["arg", "phase"])
    .doc(
        "The angle of each complex number in -π to π, as f32: `atan2(imag, real)`.\n\nReal numbers give 0 or π.\n\n\
     ```tessera\nop.angle(op.complex(x, y))\n```",
    );

pub const COMPLEX: Row = Row::new(
    "complex",
    &[req("real", ParamKind::Operand), req("imag", ParamKind::Operand)],
    |cx, a, _| infer_complex(cx, a),
    lower_complex,
)
.elementwise()
.known_as(&["as_complex", "view_as_complex", "polar"])
.doc(
    "Complex numbers (c64) of their real and imaginary parts.\n\nThe operands broadcast and are converted to f32; f64 is \
     refused, as its values would be rounded.\n\n```tessera\nop.complex(x, 0.0)\n```",
);

fn infer_same(args: &[SymArg]) -> Inferred {
    let (operands, dtype) = meet(args, &[0])?;
    rule::one(operands[0].1.shape().to_vec(), dtype)
}

fn infer_part(args: &[SymArg]) -> Inferred {
    let (operands, dtype) = meet(args, &[0])?;
    rule::one(operands[0].1.shape().to_vec(), dtype.map(|d| if d.is_complex() { DType::F32 } else { d }))
}

/// The operand with its own dtype.
fn operand(call: &mut Call) -> Result<Id, OpError> {
    let shape = call.result().0;
    let (_, dtype) = meet(&call.sym, &[0])?;
    call.operand(0, &shape, dtype.unwrap_or(DType::F32))
}

fn lower_part(call: &mut Call, imaginary: bool) -> Lowered {
    let x = operand(call)?;
    let b = &mut *call.b;
    Ok(vec![match (b.dtype(x).is_complex(), imaginary) {
        (true, false) => expand::real(b, x),
        (true, true) => expand::imag(b, x),
        (false, false) => x,
        (false, true) => {
            let (shape, dtype) = (b.shape(x), b.dtype(x));
            expand::full(b, &shape, dtype, Scalar::I(0))
        }
    }])
}

fn lower_conj(call: &mut Call) -> Lowered {
    let x = operand(call)?;
    if !call.b.dtype(x).is_complex() {
        return Ok(vec![x]);
    }
    let [re, im] = parts(call.b, x);
    let im = expand::unary(call.b, MapOp::neg, im);
    Ok(vec![expand::complex(call.b, re, im)])
}

fn infer_angle(args: &[SymArg]) -> Inferred {
    let (operands, dtype) = meet(args, &[0])?;
    let float = dtype.map(|d| if d.is_float() { d } else { DType::F32 });
    rule::one(operands[0].1.shape().to_vec(), float)
}

fn lower_angle(call: &mut Call) -> Lowered {
    let x = operand(call)?;
    let b = &mut *call.b;
    let [re, im] = match b.dtype(x) {
        DType::C64 => parts(b, x),
        d => {
            let x = expand::cast(b, x, if d.is_float() { d } else { DType::F32 });
            [x, expand::like(b, x, 0.0)]
        }
    };
    Ok(vec![expand::map(b, MapOp::atan2, &[im, re])])
}

fn infer_complex(cx: &mut InferCx, args: &[SymArg]) -> Inferred {
    let operands = [(0, rule::operand(args, 0)?), (1, rule::operand(args, 1)?)];
    for (i, o) in &operands {
        let Operand::Tensor(t) = o else { continue };
        match t.dtype {
            Some(DType::F64) => {
                return Err(OpError::new(Code::E0205, "the parts of c64 are f32, and these would be rounded")
                    .arg(*i, o.label())
                    .help("round them where that is meant: `.to(f32)`"));
            }
            Some(DType::C64) => {
                return Err(OpError::new(Code::E0205, "a part of a complex number is real").arg(*i, o.label()));
            }
            _ => {}
        }
    }
    rule::one(rule::broadcast_all(cx, &operands)?, Some(DType::C64))
}

fn lower_complex(call: &mut Call) -> Lowered {
    let shape = call.result().0;
    let (re, im) = (call.operand(0, &shape, DType::F32)?, call.operand(1, &shape, DType::F32)?);
    Ok(vec![expand::complex(call.b, re, im)])
}

/// The result type of an elementwise function on c64; `None` for those that have no meaning or no
/// expansion there.
pub fn result(op: MapOp) -> Option<DType> {
    use MapOp::*;
    match op {
        add | sub | mul | div | neg | reciprocal | square | sqrt | rsqrt | pow | sign | sigmoid => Some(DType::C64),
        exp | exp2 | expm1 | log | log2 | log10 | log1p => Some(DType::C64),
        sin | cos | tan | asin | acos | atan | sinh | cosh | tanh | asinh | acosh | atanh => Some(DType::C64),
        abs => Some(DType::F32),
        eq | ne | isnan | isinf | isfinite => Some(DType::Bool),
        _ => None,
    }
}

fn parts(b: &mut dyn Build, x: Id) -> [Id; 2] {
    [expand::real(b, x), expand::imag(b, x)]
}

/// An elementwise function on c64 operands of one shape, for which [`result`] knows a type.
pub fn map(b: &mut dyn Build, op: MapOp, operands: &[Id]) -> Id {
    let split: Vec<[Id; 2]> = operands.iter().map(|&x| parts(b, x)).collect();
    let Some(&x) = split.first() else { return Id(0) };
    let y = split.get(1).copied().unwrap_or(x);
    let each = |b: &mut dyn Build, op: MapOp| [expand::map(b, op, &[x[0], y[0]]), expand::map(b, op, &[x[1], y[1]])];
    let alone = |b: &mut dyn Build, op: MapOp| [expand::unary(b, op, x[0]), expand::unary(b, op, x[1])];
    let [re, im] = match op {
        MapOp::add | MapOp::sub => each(b, op),
        MapOp::neg => alone(b, op),
        MapOp::mul | MapOp::square => product(b, x, y),
        MapOp::div => quotient(b, x, y),
        MapOp::reciprocal => {
            let one = [expand::like(b, x[0], 1.0), expand::like(b, x[0], 0.0)];
            quotient(b, one, x)
        }
        MapOp::sqrt => root(b, x),
        MapOp::abs => return expand::map(b, MapOp::hypot, &x),
        op if op.def().gives == crate::map::Gives::Same => {
            let wide = [x, y].map(|z| z.map(|part| expand::cast(b, part, DType::F64)));
            let Some(parts) = functions::of(b, op, wide[0], wide[1]) else { return operands[0] };
            parts.map(|part| expand::cast(b, part, DType::F32))
        }
        _ => {
            let [re, im] = if op.def().arity == 2 { each(b, op) } else { alone(b, op) };
            let both = matches!(op, MapOp::eq | MapOp::isfinite);
            return expand::map(b, if both { MapOp::logical_and } else { MapOp::logical_or }, &[re, im]);
        }
    };
    expand::complex(b, re, im)
}

fn product(b: &mut dyn Build, x: [Id; 2], y: [Id; 2]) -> [Id; 2] {
    let cross = expand::map(b, MapOp::mul, &[x[1], y[1]]);
    let cross = expand::unary(b, MapOp::neg, cross);
    let re = expand::map(b, MapOp::fma, &[x[0], y[0], cross]);
    let cross = expand::map(b, MapOp::mul, &[x[1], y[0]]);
    [re, expand::map(b, MapOp::fma, &[x[0], y[1], cross])]
}

/// With `p` the larger part of the divisor, `q` the other and `r = q/p`: the numerators over
/// `p + q·r`.
fn quotient(b: &mut dyn Build, x: [Id; 2], y: [Id; 2]) -> [Id; 2] {
    let sizes = y.map(|v| expand::unary(b, MapOp::abs, v));
    let first = expand::map(b, MapOp::ge, &sizes);
    let (p, q) = (expand::select(b, first, y[0], y[1]), expand::select(b, first, y[1], y[0]));
    let (u, v) = (expand::select(b, first, x[0], x[1]), expand::select(b, first, x[1], x[0]));
    let zero = expand::like(b, q, 0.0);
    let ratio = expand::map(b, MapOp::div, &[q, p]);
    // 0/0 of a divisor that is 0 would hide the infinities.
    let none = expand::map(b, MapOp::eq, &[q, zero]);
    let r = expand::select(b, none, zero, ratio);
    let below = expand::map(b, MapOp::fma, &[q, r, p]);
    let re = expand::map(b, MapOp::fma, &[v, r, u]);
    let back = expand::unary(b, MapOp::neg, u);
    let im = expand::map(b, MapOp::fma, &[back, r, v]);
    let other = expand::unary(b, MapOp::neg, im);
    let im = expand::select(b, first, im, other);
    [expand::map(b, MapOp::div, &[re, below]), expand::map(b, MapOp::div, &[im, below])]
}

/// The principal root: `t = sqrt((|z| + |re|)/2)` is its larger part, `|im|/(2t)` the other.
fn root(b: &mut dyn Build, x: [Id; 2]) -> [Id; 2] {
    let size = expand::map(b, MapOp::hypot, &x);
    let real = expand::unary(b, MapOp::abs, x[0]);
    // Halves first: the sum may overflow.
    let (size, real) = (expand::binary_const(b, MapOp::mul, size, 0.5), expand::binary_const(b, MapOp::mul, real, 0.5));
    let sum = expand::map(b, MapOp::add, &[size, real]);
    let t = expand::unary(b, MapOp::sqrt, sum);
    let height = expand::unary(b, MapOp::abs, x[1]);
    let twice = expand::map(b, MapOp::add, &[t, t]);
    let quotient = expand::map(b, MapOp::div, &[height, twice]);
    let zero = expand::like(b, t, 0.0);
    let origin = expand::map(b, MapOp::eq, &[t, zero]);
    let small = expand::select(b, origin, zero, quotient);
    let right = expand::map(b, MapOp::ge, &[x[0], zero]);
    let (re, im) = (expand::select(b, right, t, small), expand::select(b, right, small, t));
    [re, expand::map(b, MapOp::copysign, &[im, x[1]])]
}
