//! A scalar program for one f64: the numbers of host code. The bits are those of [`super::eval`].

use crate::map::MapOp;
use crate::scalar::{Cmp, FloatFn, FloatOp, Inst, IntOp, Kind, Program, Val};
use std::sync::OnceLock;
use tessera_abi::check::Function;

/// The value of a function of host code, as the operator of its name has it.
pub fn value(function: Function, x: f64, y: f64) -> f64 {
    static PROGRAMS: OnceLock<Vec<&'static Program>> = OnceLock::new();
    let programs = PROGRAMS.get_or_init(|| {
        let program = |f: Function| operator(f).program(&vec![Kind::F64; operator(f).def().arity]);
        Function::ALL.iter().map(|f| program(*f)).collect()
    });
    programs.get(function as usize).map_or(f64::NAN, |p| one(p, [x, y]))
}

/// The operator that a function of host code is.
pub fn operator(function: Function) -> MapOp {
    match function {
        Function::Sqrt => MapOp::sqrt,
        Function::Exp => MapOp::exp,
        Function::Log => MapOp::log,
        Function::Sin => MapOp::sin,
        Function::Cos => MapOp::cos,
        Function::Tan => MapOp::tan,
        Function::Floor => MapOp::floor,
        Function::Ceil => MapOp::ceil,
        Function::Tanh => MapOp::tanh,
        Function::Log2 => MapOp::log2,
        Function::Log10 => MapOp::log10,
        Function::Trunc => MapOp::trunc,
        Function::Expm1 => MapOp::expm1,
        Function::Log1p => MapOp::log1p,
        Function::Asin => MapOp::asin,
        Function::Acos => MapOp::acos,
        Function::Atan => MapOp::atan,
        Function::Sinh => MapOp::sinh,
        Function::Cosh => MapOp::cosh,
        Function::Erf => MapOp::erf,
        Function::Atan2 => MapOp::atan2,
        Function::Pow => MapOp::pow,
        Function::Hypot => MapOp::hypot,
        Function::FloorDiv => MapOp::floor_div,
        Function::Mod => MapOp::r#mod,
    }
}

/// Runs a program of f64, i64 and bool.
fn one(program: &Program, args: [f64; 2]) -> f64 {
    // Every word is an i64, the bits of an f64, or 0 or 1.
    let mut words: Vec<u64> = Vec::with_capacity(program.insts.len());
    for &(inst, kind) in &program.insts {
        let word = |v: Val| words[v.0 as usize];
        let float = |v: Val| f64::from_bits(word(v));
        let of = |v: Val| program.insts[v.0 as usize].1;
        let made = match inst {
            Inst::Arg(n) => args[usize::from(n).min(1)].to_bits(),
            Inst::ConstF(x) => x.to_bits(),
            Inst::ConstI(n) => n as u64,
            Inst::Float(op, a, b) => float_op(op, float(a), float(b)).to_bits(),
            Inst::FloatFn(f, a) => float_fn(f, float(a)).to_bits(),
            Inst::Fma(a, b, c) => float(a).mul_add(float(b), float(c)).to_bits(),
            Inst::Int(op, a, b) => int_op(op, word(a) as i64, word(b) as i64) as u64,
            Inst::Cmp(cmp, a, b) => match of(a) {
                Kind::F64 => compared(cmp, &float(a), &float(b)),
                _ => compared(cmp, &(word(a) as i64), &(word(b) as i64)),
            },
            Inst::Select(test, a, b) => word(if word(test) != 0 { a } else { b }),
            Inst::Not(a) => u64::from(word(a) == 0),
            Inst::Bits(a) => word(a),
            Inst::Convert(a) => match (of(a), kind) {
                (Kind::F64, Kind::Bool) => u64::from(float(a) != 0.0),
                (Kind::F64, Kind::I64) => float(a) as i64 as u64,
                (Kind::F64, _) => word(a),
                (_, Kind::F64) => (word(a) as i64 as f64).to_bits(),
                (_, Kind::Bool) => u64::from(word(a) != 0),
                _ => word(a),
            },
        };
        words.push(made);
    }
    program.result.map_or(f64::NAN, |r| f64::from_bits(words[r.0 as usize]))
}

fn float_op(op: FloatOp, a: f64, b: f64) -> f64 {
    match op {
        FloatOp::Add => a + b,
        FloatOp::Sub => a - b,
        FloatOp::Mul => a * b,
        FloatOp::Div => a / b,
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        // Zeros that differ in their sign are equal.
        FloatOp::Min if a == b => f64::from_bits(a.to_bits() | b.to_bits()),
        FloatOp::Max if a == b => f64::from_bits(a.to_bits() & b.to_bits()),
        FloatOp::Min => a.min(b),
        FloatOp::Max => a.max(b),
    }
}

fn float_fn(f: FloatFn, x: f64) -> f64 {
    match f {
        FloatFn::Neg => -x,
        FloatFn::Abs => x.abs(),
        FloatFn::Sqrt => x.sqrt(),
        FloatFn::Floor => x.floor(),
        FloatFn::Ceil => x.ceil(),
        FloatFn::Round => x.round_ties_even(),
        FloatFn::Trunc => x.trunc(),
    }
}

fn int_op(op: IntOp, a: i64, b: i64) -> i64 {
    match op {
        IntOp::Add => a.wrapping_add(b),
        IntOp::Sub => a.wrapping_sub(b),
        IntOp::Mul => a.wrapping_mul(b),
        IntOp::FloorDiv if b == 0 => 0,
        IntOp::FloorDiv => {
            let rest = a.wrapping_rem(b);
            a.wrapping_div(b) - i64::from(rest != 0 && (rest < 0) != (b < 0))
        }
        IntOp::FloorMod if b == 0 => 0,
        IntOp::FloorMod => {
            let rest = a.wrapping_rem(b);
            if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
        }
        IntOp::Min => a.min(b),
        IntOp::Max => a.max(b),
        IntOp::And => a & b,
        IntOp::Or => a | b,
        IntOp::Xor => a ^ b,
        IntOp::Shl if (0..64).contains(&b) => a << b,
        IntOp::Shl => 0,
        IntOp::Shr => a >> if (0..64).contains(&b) { b } else { 63 },
    }
}

fn compared<T: PartialOrd>(cmp: Cmp, a: &T, b: &T) -> u64 {
    u64::from(match cmp {
        Cmp::Eq => a == b,
        Cmp::Ne => a != b,
        Cmp::Lt => a < b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        Cmp::Ge => a >= b,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar_eval::{Lane, eval};

    #[test]
    fn one_number_is_as_many() {
        let special = [0.0, 1.0, 0.5, 2.0, 3.0, 1e-300, 5e-324, 1e300, f64::MAX, f64::INFINITY, f64::NAN, 1e17, 0.1];
        let mut values: Vec<f64> = special.iter().flat_map(|x| [*x, -x]).collect();
        let mut word = 0x9e37_79b9_7f4a_7c15u64;
        for i in 0..300 {
            word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let unit = (word >> 11) as f64 / (1u64 << 53) as f64;
            values.push(if i % 3 == 0 { f64::from_bits(word) } else { (unit - 0.5) * 10f64.powi(i % 7 - 2) });
        }
        for &f in Function::ALL {
            let program = operator(f).program(&vec![Kind::F64; operator(f).def().arity]);
            assert!(program.insts.iter().all(|(_, k)| matches!(k, Kind::F64 | Kind::I64 | Kind::Bool)), "{f:?}");
            for (i, &x) in values.iter().enumerate() {
                let y = values[(i * 7 + 3) % values.len()];
                let Lane::F64(many) = eval(program, &[Lane::F64(vec![x]), Lane::F64(vec![y])], 1) else { panic!() };
                let single = value(f, x, y);
                assert!(single.to_bits() == many[0].to_bits() || single.is_nan() && many[0].is_nan(), "{f:?} {x} {y}");
            }
        }
    }
}
