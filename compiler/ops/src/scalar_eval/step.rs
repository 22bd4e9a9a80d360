//! One instruction over a chunk.

use super::lane::{Lane, pair};
use crate::scalar::{Cmp, FloatFn, FloatOp, Inst, IntOp, Val};

/// Floats of either width.
trait Float: Copy + PartialOrd {
    const NAN: Self;
    fn max_of_equal(self, other: Self) -> Self;
    fn min_of_equal(self, other: Self) -> Self;
}

macro_rules! float {
    ($t:ty) => {
        impl Float for $t {
            const NAN: Self = <$t>::NAN;
            // Equal numbers differ at most in the sign of zero.
            fn max_of_equal(self, other: Self) -> Self {
                <$t>::from_bits(self.to_bits() & other.to_bits())
            }
            fn min_of_equal(self, other: Self) -> Self {
                <$t>::from_bits(self.to_bits() | other.to_bits())
            }
        }
    };
}

float!(f32);
float!(f64);

/// IEEE 754-2019 `maximum`.
#[inline]
fn maximum<T: Float>(a: T, b: T) -> T {
    if a > b {
        a
    } else if a < b {
        b
    } else if a == b {
        a.max_of_equal(b)
    } else {
        T::NAN
    }
}

/// IEEE 754-2019 `minimum`.
#[inline]
fn minimum<T: Float>(a: T, b: T) -> T {
    if a < b {
        a
    } else if a > b {
        b
    } else if a == b {
        a.min_of_equal(b)
    } else {
        T::NAN
    }
}

#[inline]
fn unary<A: Copy, T>(to: &mut [T], a: &[A], f: impl Fn(A) -> T) {
    for (t, &a) in to.iter_mut().zip(a) {
        *t = f(a);
    }
}

#[inline]
fn binary<A: Copy, T>(to: &mut [T], a: &[A], b: &[A], f: impl Fn(A, A) -> T) {
    for ((t, &a), &b) in to.iter_mut().zip(a).zip(b) {
        *t = f(a, b);
    }
}

macro_rules! float_op {
    ($op:expr, $to:expr, $a:expr, $b:expr) => {
        match $op {
            FloatOp::Add => binary($to, $a, $b, |a, b| a + b),
            FloatOp::Sub => binary($to, $a, $b, |a, b| a - b),
            FloatOp::Mul => binary($to, $a, $b, |a, b| a * b),
            FloatOp::Div => binary($to, $a, $b, |a, b| a / b),
            FloatOp::Min => binary($to, $a, $b, minimum),
            FloatOp::Max => binary($to, $a, $b, maximum),
        }
    };
}

macro_rules! float_fn {
    ($op:expr, $to:expr, $a:expr) => {
        match $op {
            FloatFn::Neg => unary($to, $a, |a| -a),
            FloatFn::Abs => unary($to, $a, |a| a.abs()),
            FloatFn::Sqrt => unary($to, $a, |a| a.sqrt()),
            FloatFn::Floor => unary($to, $a, |a| a.floor()),
            FloatFn::Ceil => unary($to, $a, |a| a.ceil()),
            FloatFn::Round => unary($to, $a, |a| a.round_ties_even()),
            FloatFn::Trunc => unary($to, $a, |a| a.trunc()),
        }
    };
}

macro_rules! int_op {
    ($op:expr, $to:expr, $a:expr, $b:expr, $t:ty, $wide:ty) => {
        match $op {
            IntOp::Add => binary($to, $a, $b, <$t>::wrapping_add),
            IntOp::Sub => binary($to, $a, $b, <$t>::wrapping_sub),
            IntOp::Mul => binary($to, $a, $b, <$t>::wrapping_mul),
            IntOp::FloorDiv => binary($to, $a, $b, |a, b| floor_div(a as i64, b as i64).0 as $t),
            IntOp::FloorMod => binary($to, $a, $b, |a, b| floor_div(a as i64, b as i64).1 as $t),
            IntOp::Min => binary($to, $a, $b, |a, b| a.min(b)),
            IntOp::Max => binary($to, $a, $b, |a, b| a.max(b)),
            IntOp::And => binary($to, $a, $b, |a, b| a & b),
            IntOp::Or => binary($to, $a, $b, |a, b| a | b),
            IntOp::Xor => binary($to, $a, $b, |a, b| a ^ b),
            IntOp::Shl => binary($to, $a, $b, |a, b| if (b as $wide) < <$t>::BITS as $wide { a << b } else { 0 }),
            IntOp::Shr => binary($to, $a, $b, |a, b| {
                let short = (b as $wide) < <$t>::BITS as $wide;
                // Two shifts, since one by the width itself is not one.
                if short { a >> b } else { a >> (<$t>::BITS - 1) >> 1 }
            }),
        }
    };
}

/// Quotient and remainder rounded down; by zero both are 0.
fn floor_div(a: i64, b: i64) -> (i64, i64) {
    if b == 0 {
        return (0, 0);
    }
    let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
    if r != 0 && (r < 0) != (b < 0) { (q.wrapping_sub(1), r + b) } else { (q, r) }
}

fn bool_op(op: IntOp, to: &mut [bool], a: &[bool], b: &[bool]) {
    match op {
        IntOp::And | IntOp::Min | IntOp::Mul => binary(to, a, b, |a, b| a & b),
        IntOp::Or | IntOp::Max | IntOp::Add => binary(to, a, b, |a, b| a | b),
        _ => binary(to, a, b, |a, b| a ^ b),
    }
}

macro_rules! convert_from {
    ($to:expr, $a:expr, $zero:expr) => {
        match $to {
            Lane::F32(to) => unary(to, $a, |a| a as f32),
            Lane::F64(to) => unary(to, $a, |a| a as f64),
            Lane::I64(to) => unary(to, $a, |a| a as i64),
            Lane::I32(to) => unary(to, $a, |a| a as i32),
            Lane::I16(to) => unary(to, $a, |a| a as i16),
            Lane::I8(to) => unary(to, $a, |a| a as i8),
            Lane::U8(to) => unary(to, $a, |a| a as u8),
            Lane::Bool(to) => unary(to, $a, |a| a != $zero),
        }
    };
}

/// Rust's `as` truncates and saturates from float to integer, rounds to nearest even from
/// integer to float, and keeps the low bits between integers, as [`Inst::Convert`] asks.
fn convert(to: &mut Lane, a: &Lane) {
    match a {
        Lane::F32(a) => convert_from!(to, a, 0.0),
        Lane::F64(a) => convert_from!(to, a, 0.0),
        Lane::I64(a) => convert_from!(to, a, 0),
        Lane::I32(a) => convert_from!(to, a, 0),
        Lane::I16(a) => convert_from!(to, a, 0),
        Lane::I8(a) => convert_from!(to, a, 0),
        Lane::U8(a) => convert_from!(to, a, 0),
        Lane::Bool(a) => match to {
            Lane::F32(to) => unary(to, a, |a| a as u8 as f32),
            Lane::F64(to) => unary(to, a, |a| a as u8 as f64),
            Lane::I64(to) => unary(to, a, |a| a as i64),
            Lane::I32(to) => unary(to, a, |a| a as i32),
            Lane::I16(to) => unary(to, a, |a| a as i16),
            Lane::I8(to) => unary(to, a, |a| a as i8),
            Lane::U8(to) => unary(to, a, |a| a as u8),
            Lane::Bool(to) => unary(to, a, |a| a),
        },
    }
}

fn compare<T: Copy + PartialOrd>(op: Cmp, to: &mut [bool], a: &[T], b: &[T]) {
    match op {
        Cmp::Eq => binary(to, a, b, |a, b| a == b),
        Cmp::Ne => binary(to, a, b, |a, b| a != b),
        Cmp::Lt => binary(to, a, b, |a, b| a < b),
        Cmp::Le => binary(to, a, b, |a, b| a <= b),
        Cmp::Gt => binary(to, a, b, |a, b| a > b),
        Cmp::Ge => binary(to, a, b, |a, b| a >= b),
    }
}

/// Writes the first `len` lanes of `to`. Operands of kinds that the instruction does not take
/// leave it alone; [`crate::scalar::Program::verify`] finds such programs.
pub(super) fn step<'a>(inst: Inst, get: &impl Fn(Val) -> &'a Lane, to: &mut Lane, len: usize) {
    match inst {
        Inst::Arg(_) | Inst::ConstF(_) | Inst::ConstI(_) => {}
        Inst::Float(op, a, b) => match (to, get(a), get(b)) {
            (Lane::F32(to), Lane::F32(a), Lane::F32(b)) => float_op!(op, &mut to[..len], a, b),
            (Lane::F64(to), Lane::F64(a), Lane::F64(b)) => float_op!(op, &mut to[..len], a, b),
            _ => {}
        },
        Inst::FloatFn(op, a) => match (to, get(a)) {
            (Lane::F32(to), Lane::F32(a)) => float_fn!(op, &mut to[..len], a),
            (Lane::F64(to), Lane::F64(a)) => float_fn!(op, &mut to[..len], a),
            _ => {}
        },
        Inst::Fma(a, b, c) => fma(get(a), get(b), get(c), to, len),
        Inst::Int(op, a, b) => match (to, get(a), get(b)) {
            (Lane::I64(to), Lane::I64(a), Lane::I64(b)) => int_op!(op, &mut to[..len], a, b, i64, u64),
            (Lane::I32(to), Lane::I32(a), Lane::I32(b)) => int_op!(op, &mut to[..len], a, b, i32, u32),
            (Lane::I16(to), Lane::I16(a), Lane::I16(b)) => int_op!(op, &mut to[..len], a, b, i16, u16),
            (Lane::I8(to), Lane::I8(a), Lane::I8(b)) => int_op!(op, &mut to[..len], a, b, i8, u8),
            (Lane::U8(to), Lane::U8(a), Lane::U8(b)) => int_op!(op, &mut to[..len], a, b, u8, u8),
            (Lane::Bool(to), Lane::Bool(a), Lane::Bool(b)) => bool_op(op, &mut to[..len], a, b),
            _ => {}
        },
        Inst::Cmp(op, a, b) => {
            if let Lane::Bool(to) = to {
                pair!(get(a), get(b), a, b => compare(op, &mut to[..len], a, b), ());
            }
        }
        Inst::Select(c, a, b) => {
            if let Lane::Bool(c) = get(c) {
                select(c, get(a), get(b), to, len);
            }
        }
        Inst::Not(a) => {
            if let (Lane::Bool(to), Lane::Bool(a)) = (to, get(a)) {
                unary(&mut to[..len], a, |a| !a);
            }
        }
        Inst::Bits(a) => match (to, get(a)) {
            (Lane::F32(to), Lane::I32(a)) => unary(&mut to[..len], a, |a| f32::from_bits(a as u32)),
            (Lane::I32(to), Lane::F32(a)) => unary(&mut to[..len], a, |a| a.to_bits() as i32),
            (Lane::F64(to), Lane::I64(a)) => unary(&mut to[..len], a, |a| f64::from_bits(a as u64)),
            (Lane::I64(to), Lane::F64(a)) => unary(&mut to[..len], a, |a| a.to_bits() as i64),
            _ => {}
        },
        Inst::Convert(a) => convert(to, get(a)),
    }
}

/// Fused on every machine: where there is no instruction the library function computes the
/// correctly rounded result.
fn fma(a: &Lane, b: &Lane, c: &Lane, to: &mut Lane, len: usize) {
    match (to, a, b, c) {
        (Lane::F32(to), Lane::F32(a), Lane::F32(b), Lane::F32(c)) => {
            for (((t, &a), &b), &c) in to[..len].iter_mut().zip(a).zip(b).zip(c) {
                *t = a.mul_add(b, c);
            }
        }
        (Lane::F64(to), Lane::F64(a), Lane::F64(b), Lane::F64(c)) => {
            for (((t, &a), &b), &c) in to[..len].iter_mut().zip(a).zip(b).zip(c) {
                *t = a.mul_add(b, c);
            }
        }
        _ => {}
    }
}

fn select(c: &[bool], a: &Lane, b: &Lane, to: &mut Lane, len: usize) {
    fn pick<T: Copy>(c: &[bool], a: &[T], b: &[T], to: &mut [T]) {
        for (((t, &c), &a), &b) in to.iter_mut().zip(c).zip(a).zip(b) {
            *t = if c { a } else { b };
        }
    }
    match (to, a, b) {
        (Lane::F32(to), Lane::F32(a), Lane::F32(b)) => pick(c, a, b, &mut to[..len]),
        (Lane::F64(to), Lane::F64(a), Lane::F64(b)) => pick(c, a, b, &mut to[..len]),
        (Lane::I64(to), Lane::I64(a), Lane::I64(b)) => pick(c, a, b, &mut to[..len]),
        (Lane::I32(to), Lane::I32(a), Lane::I32(b)) => pick(c, a, b, &mut to[..len]),
        (Lane::I16(to), Lane::I16(a), Lane::I16(b)) => pick(c, a, b, &mut to[..len]),
        (Lane::I8(to), Lane::I8(a), Lane::I8(b)) => pick(c, a, b, &mut to[..len]),
        (Lane::U8(to), Lane::U8(a), Lane::U8(b)) => pick(c, a, b, &mut to[..len]),
        (Lane::Bool(to), Lane::Bool(a), Lane::Bool(b)) => pick(c, a, b, &mut to[..len]),
        _ => {}
    }
}
