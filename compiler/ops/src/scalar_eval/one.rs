//! A scalar program for one f64: the numbers of host code. The bits are those of [`super::eval`].

use crate::scalar::{Cmp, FloatFn, FloatOp, Inst, IntOp, Kind, Program, Val};

/// Programs of so few instructions keep their words on the stack.
const SHORT: usize = 16;

/// The words of the instructions so far.
trait Words {
    fn get(&self, at: usize) -> u64;
    fn push(&mut self, word: u64);
}

impl Words for Vec<u64> {
    fn get(&self, at: usize) -> u64 {
        self[at]
    }

    fn push(&mut self, word: u64) {
        Vec::push(self, word);
    }
}

/// With how many there are.
struct OnStack([u64; SHORT], usize);

impl Words for OnStack {
    fn get(&self, at: usize) -> u64 {
        self.0[at]
    }

    fn push(&mut self, word: u64) {
        self.0[self.1] = word;
        self.1 += 1;
    }
}

/// Runs a program of f64, i64 and bool on words: i64, the bits of an f64, 0 or 1.
pub fn run_one(program: &Program, args: [u64; 2]) -> u64 {
    let count = program.insts.len();
    if count <= SHORT {
        run(program, args, &mut OnStack([0; SHORT], 0))
    } else {
        run(program, args, &mut Vec::with_capacity(count))
    }
}

fn run(program: &Program, args: [u64; 2], words: &mut impl Words) -> u64 {
    for &(inst, kind) in &program.insts {
        let word = |v: Val| words.get(v.0 as usize);
        let float = |v: Val| f64::from_bits(word(v));
        let of = |v: Val| program.insts[v.0 as usize].1;
        let made = match inst {
            Inst::Arg(n) => args[usize::from(n).min(1)],
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
    program.result.map_or(0, |r| words.get(r.0 as usize))
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
    use crate::numbers::NumberOp;
    use crate::scalar_eval::{Lane, eval};

    fn lane(kind: Kind, word: u64) -> Lane {
        match kind {
            Kind::F64 => Lane::F64(vec![f64::from_bits(word)]),
            Kind::I64 => Lane::I64(vec![word as i64]),
            _ => Lane::Bool(vec![word != 0]),
        }
    }

    #[test]
    fn one_number_is_as_many() {
        let special = [0.0, 1.0, 0.5, 2.0, 3.0, 1e-300, 5e-324, 1e300, f64::MAX, f64::INFINITY, f64::NAN, 1e17, 0.1];
        let mut values: Vec<f64> = special.iter().flat_map(|x| [*x, -x]).collect();
        let mut ints = vec![0, 1, -1, 2, 3, -7, 63, 64, i64::MAX, i64::MIN];
        let mut word = 0x9e37_79b9_7f4a_7c15u64;
        for i in 0..300 {
            word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let unit = (word >> 11) as f64 / (1u64 << 53) as f64;
            values.push(if i % 3 == 0 { f64::from_bits(word) } else { (unit - 0.5) * 10f64.powi(i % 7 - 2) });
            ints.push(word as i64 >> (i % 63));
        }
        let operand = |kind: Kind, at: usize| match kind {
            Kind::F64 => values[at % values.len()].to_bits(),
            Kind::I64 => ints[at % ints.len()] as u64,
            _ => at as u64 % 2,
        };
        for op in NumberOp::ALL {
            let (def, program) = (op.def(), op.program());
            for i in 0..values.len() {
                let words = [operand(def.takes[0], i), operand(*def.takes.last().unwrap_or(&Kind::F64), i * 7 + 3)];
                let lanes: Vec<Lane> = def.takes.iter().zip(words).map(|(kind, word)| lane(*kind, word)).collect();
                let many = match eval(program, &lanes, 1) {
                    Lane::F64(x) => x[0].to_bits(),
                    Lane::I64(x) => x[0] as u64,
                    Lane::Bool(x) => u64::from(x[0]),
                    _ => panic!("{}", def.name),
                };
                let single = run_one(program, words);
                let nan = |word| def.gives == Kind::F64 && f64::from_bits(word).is_nan();
                assert!(single == many || nan(single) && nan(many), "{} {words:?}", def.name);
            }
        }
    }
}
