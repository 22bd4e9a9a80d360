//! Scalar programs: the meaning of an elementwise function as straight-line code.
//!
//! One program, two readers: the interpreter runs it over arrays, the code generator emits it
//! as vector instructions. Every instruction is an IEEE 754 operation (round to nearest even)
//! or an integer operation, so both give the same bits on every machine. No libm anywhere.
//! The one freedom left is the sign and payload of a NaN, which IEEE 754 leaves to the machine;
//! conversions to narrow types make them canonical ([`crate::convert`]).

/// The type of a scalar value inside a program. Narrow floats compute in `F32`; bool is `Bool`;
/// i32, i16, i8 and u8 compute in their own width with wrap-around.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    F32,
    F64,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
}

/// A value of a program: the index of the instruction that makes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Val(pub u32);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FloatOp {
    Add,
    Sub,
    Mul,
    Div,
    /// IEEE 754-2019 `minimum`: NaN if either is NaN, and −0 is below +0, so that operands
    /// commute (`llvm.minimum`).
    Min,
    /// IEEE 754-2019 `maximum` (`llvm.maximum`).
    Max,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FloatFn {
    /// Flips the sign bit, of NaN too.
    Neg,
    /// Clears the sign bit, of NaN too.
    Abs,
    Sqrt,
    Floor,
    Ceil,
    /// To nearest, ties to even.
    Round,
    Trunc,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IntOp {
    Add,
    Sub,
    Mul,
    /// Floor division; by zero gives 0, as NumPy; the smallest number by −1 wraps to itself.
    FloorDiv,
    /// Floor remainder (the sign of the divisor); by zero and by −1 gives 0.
    FloorMod,
    Min,
    Max,
    And,
    Or,
    Xor,
    /// Shifts by the width or more, or by a negative amount, give 0.
    Shl,
    /// Arithmetic for signed kinds, logical for `U8`; shifts by the width or more, or by a
    /// negative amount, leave the sign alone: 0 or −1.
    Shr,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// One instruction. Operand kinds equal the result's kind unless said otherwise. Integers wrap
/// around. `U8` and `Bool` are unsigned in `Int` and `Cmp`; on `Bool` only `And`, `Or`, `Xor`,
/// `Min` and `Max` exist.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Inst {
    /// The `n`-th argument.
    Arg(u8),
    /// Rounded to the result's kind.
    ConstF(f64),
    ConstI(i64),
    Float(FloatOp, Val, Val),
    FloatFn(FloatFn, Val),
    /// Fused multiply-add `a * b + c`, one rounding.
    Fma(Val, Val, Val),
    Int(IntOp, Val, Val),
    /// Result Bool, operands of one kind. Ordered: NaN compares false, except `Ne`.
    Cmp(Cmp, Val, Val),
    /// Bool condition, then, otherwise.
    Select(Val, Val, Val),
    /// Bool.
    Not(Val),
    /// Same bits: F32 to I32, F64 to I64 and back; the result's kind says which.
    Bits(Val),
    /// Value conversion to the result's kind. Float to float and integer to float round to
    /// nearest even; float to integer truncates and saturates, NaN gives 0; integer to integer
    /// keeps the low bits (sign- or zero-extends); to Bool is `!= 0` (true for NaN); Bool is 0 or 1.
    Convert(Val),
}

/// A program in single-assignment form.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Program {
    pub insts: Vec<(Inst, Kind)>,
    pub result: Option<Val>,
}

impl Kind {
    pub const ALL: [Kind; 8] = [Kind::F32, Kind::F64, Kind::I64, Kind::I32, Kind::I16, Kind::I8, Kind::U8, Kind::Bool];

    pub fn is_float(self) -> bool {
        matches!(self, Kind::F32 | Kind::F64)
    }

    /// Width in bits; 1 for `Bool`.
    pub fn bits(self) -> u32 {
        match self {
            Kind::F64 | Kind::I64 => 64,
            Kind::F32 | Kind::I32 => 32,
            Kind::I16 => 16,
            Kind::I8 | Kind::U8 => 8,
            Kind::Bool => 1,
        }
    }

    /// The integer kind that holds the bits of a float kind; an integer kind is its own.
    pub fn of_bits(self) -> Kind {
        match self {
            Kind::F32 => Kind::I32,
            Kind::F64 => Kind::I64,
            other => other,
        }
    }
}

impl Inst {
    /// The values an instruction reads, in order.
    pub fn operands(self) -> impl Iterator<Item = Val> {
        let (n, vals) = match self {
            Inst::Arg(_) | Inst::ConstF(_) | Inst::ConstI(_) => (0, [Val(0); 3]),
            Inst::Float(_, a, b) | Inst::Int(_, a, b) | Inst::Cmp(_, a, b) => (2, [a, b, b]),
            Inst::FloatFn(_, a) | Inst::Not(a) | Inst::Bits(a) | Inst::Convert(a) => (1, [a; 3]),
            Inst::Fma(a, b, c) | Inst::Select(a, b, c) => (3, [a, b, c]),
        };
        vals.into_iter().take(n)
    }

    fn map(self, f: impl Fn(Val) -> Val) -> Inst {
        match self {
            Inst::Arg(_) | Inst::ConstF(_) | Inst::ConstI(_) => self,
            Inst::Float(op, a, b) => Inst::Float(op, f(a), f(b)),
            Inst::Int(op, a, b) => Inst::Int(op, f(a), f(b)),
            Inst::Cmp(op, a, b) => Inst::Cmp(op, f(a), f(b)),
            Inst::FloatFn(op, a) => Inst::FloatFn(op, f(a)),
            Inst::Not(a) => Inst::Not(f(a)),
            Inst::Bits(a) => Inst::Bits(f(a)),
            Inst::Convert(a) => Inst::Convert(f(a)),
            Inst::Fma(a, b, c) => Inst::Fma(f(a), f(b), f(c)),
            Inst::Select(a, b, c) => Inst::Select(f(a), f(b), f(c)),
        }
    }

    /// Equality that keeps −0 and +0 apart.
    fn same(self, other: Inst) -> bool {
        match (self, other) {
            (Inst::ConstF(a), Inst::ConstF(b)) => a.to_bits() == b.to_bits(),
            (a, b) => a == b,
        }
    }
}

impl Program {
    /// The kind of a value.
    pub fn kind(&self, v: Val) -> Kind {
        self.insts[v.0 as usize].1
    }

    /// Kind of the result; `Bool` for an empty program.
    pub fn result_kind(&self) -> Kind {
        self.result.map_or(Kind::Bool, |v| self.kind(v))
    }

    /// Checks that operands come first and have the kinds their instruction takes.
    pub fn verify(&self) -> Result<(), String> {
        for (at, &(inst, kind)) in self.insts.iter().enumerate() {
            if inst.operands().any(|v| v.0 as usize >= at) {
                return Err(format!("value {at} reads a later value"));
            }
            let same = |v: Val| self.kind(v) == kind;
            let ok = match inst {
                Inst::Arg(_) => true,
                Inst::ConstF(_) => kind.is_float(),
                Inst::ConstI(_) => !kind.is_float(),
                Inst::Float(_, a, b) => kind.is_float() && same(a) && same(b),
                Inst::FloatFn(_, a) => kind.is_float() && same(a),
                Inst::Fma(a, b, c) => kind.is_float() && same(a) && same(b) && same(c),
                Inst::Int(op, a, b) => {
                    let logic = matches!(op, IntOp::And | IntOp::Or | IntOp::Xor | IntOp::Min | IntOp::Max);
                    !kind.is_float() && (kind != Kind::Bool || logic) && same(a) && same(b)
                }
                Inst::Cmp(_, a, b) => kind == Kind::Bool && self.kind(a) == self.kind(b),
                Inst::Select(c, a, b) => self.kind(c) == Kind::Bool && same(a) && same(b),
                Inst::Not(a) => kind == Kind::Bool && same(a),
                Inst::Bits(a) => kind.bits() == self.kind(a).bits() && kind.is_float() != self.kind(a).is_float(),
                Inst::Convert(a) => !same(a),
            };
            if !ok {
                return Err(format!("value {at} has operands of the wrong kind: {inst:?} as {kind:?}"));
            }
        }
        match self.result {
            Some(v) if (v.0 as usize) < self.insts.len() => Ok(()),
            _ => Err("no result".into()),
        }
    }
}

/// Writes a program. Methods return the value they make; an instruction written twice is one
/// value, and what the result does not need is dropped by [`Writer::finish`].
#[derive(Default)]
pub struct Writer {
    program: Program,
}

impl Writer {
    pub fn push(&mut self, inst: Inst, kind: Kind) -> Val {
        let known = self.program.insts.iter().position(|&(i, k)| k == kind && i.same(inst));
        let at = known.unwrap_or_else(|| {
            self.program.insts.push((inst, kind));
            self.program.insts.len() - 1
        });
        Val(at as u32)
    }

    pub fn kind(&self, v: Val) -> Kind {
        self.program.kind(v)
    }

    pub fn is_float(&self, v: Val) -> bool {
        self.kind(v).is_float()
    }

    pub fn arg(&mut self, n: u8, kind: Kind) -> Val {
        self.push(Inst::Arg(n), kind)
    }

    /// A float constant of the kind of `like`.
    pub fn f(&mut self, value: f64, like: Val) -> Val {
        let kind = self.kind(like);
        self.push(Inst::ConstF(value), kind)
    }

    /// An integer (or bool) constant of the kind given.
    pub fn i(&mut self, value: i64, kind: Kind) -> Val {
        self.push(Inst::ConstI(value), kind)
    }

    /// The number `value` in the kind of `like`, float or integer.
    pub fn number(&mut self, value: i64, like: Val) -> Val {
        let kind = self.kind(like);
        if kind.is_float() { self.f(value as f64, like) } else { self.i(value, kind) }
    }

    pub fn float(&mut self, op: FloatOp, a: Val, b: Val) -> Val {
        let kind = self.kind(a);
        self.push(Inst::Float(op, a, b), kind)
    }

    pub fn add(&mut self, a: Val, b: Val) -> Val {
        self.float(FloatOp::Add, a, b)
    }

    pub fn sub(&mut self, a: Val, b: Val) -> Val {
        self.float(FloatOp::Sub, a, b)
    }

    pub fn mul(&mut self, a: Val, b: Val) -> Val {
        self.float(FloatOp::Mul, a, b)
    }

    pub fn div(&mut self, a: Val, b: Val) -> Val {
        self.float(FloatOp::Div, a, b)
    }

    pub fn float_fn(&mut self, op: FloatFn, a: Val) -> Val {
        let kind = self.kind(a);
        self.push(Inst::FloatFn(op, a), kind)
    }

    pub fn neg(&mut self, a: Val) -> Val {
        self.float_fn(FloatFn::Neg, a)
    }

    pub fn abs(&mut self, a: Val) -> Val {
        self.float_fn(FloatFn::Abs, a)
    }

    pub fn sqrt(&mut self, a: Val) -> Val {
        self.float_fn(FloatFn::Sqrt, a)
    }

    /// `a * b + c`, one rounding.
    pub fn fma(&mut self, a: Val, b: Val, c: Val) -> Val {
        let kind = self.kind(a);
        self.push(Inst::Fma(a, b, c), kind)
    }

    /// `a * b + c` with a constant factor.
    pub fn fma_c(&mut self, a: Val, b: f64, c: Val) -> Val {
        let b = self.f(b, a);
        self.fma(a, b, c)
    }

    pub fn mul_c(&mut self, a: Val, b: f64) -> Val {
        let b = self.f(b, a);
        self.mul(a, b)
    }

    pub fn add_c(&mut self, a: Val, b: f64) -> Val {
        let b = self.f(b, a);
        self.add(a, b)
    }

    /// `c[0] + c[1] x + c[2] x² + …` by Horner's rule with fused multiply-adds.
    pub fn horner(&mut self, x: Val, c: &[f64]) -> Val {
        let Some((&last, rest)) = c.split_last() else { return self.f(0.0, x) };
        let mut sum = self.f(last, x);
        for &c in rest.iter().rev() {
            let c = self.f(c, x);
            sum = self.fma(sum, x, c);
        }
        sum
    }

    pub fn int(&mut self, op: IntOp, a: Val, b: Val) -> Val {
        let kind = self.kind(a);
        self.push(Inst::Int(op, a, b), kind)
    }

    /// An integer operation with a constant second operand.
    pub fn int_c(&mut self, op: IntOp, a: Val, b: i64) -> Val {
        let b = self.i(b, self.kind(a));
        self.int(op, a, b)
    }

    pub fn cmp(&mut self, op: Cmp, a: Val, b: Val) -> Val {
        self.push(Inst::Cmp(op, a, b), Kind::Bool)
    }

    /// A comparison with the number `b`.
    pub fn cmp_c(&mut self, op: Cmp, a: Val, b: f64) -> Val {
        let b = if self.is_float(a) { self.f(b, a) } else { self.i(b as i64, self.kind(a)) };
        self.cmp(op, a, b)
    }

    pub fn is_nan(&mut self, a: Val) -> Val {
        self.cmp(Cmp::Ne, a, a)
    }

    pub fn select(&mut self, c: Val, a: Val, b: Val) -> Val {
        let kind = self.kind(a);
        self.push(Inst::Select(c, a, b), kind)
    }

    pub fn not(&mut self, a: Val) -> Val {
        self.push(Inst::Not(a), Kind::Bool)
    }

    pub fn both(&mut self, a: Val, b: Val) -> Val {
        self.int(IntOp::And, a, b)
    }

    pub fn either(&mut self, a: Val, b: Val) -> Val {
        self.int(IntOp::Or, a, b)
    }

    pub fn bits(&mut self, a: Val, to: Kind) -> Val {
        self.push(Inst::Bits(a), to)
    }

    /// The bits of a float as the integer of its width.
    pub fn to_bits(&mut self, a: Val) -> Val {
        let kind = self.kind(a).of_bits();
        self.bits(a, kind)
    }

    /// Value conversion; none where the kinds are equal.
    pub fn convert(&mut self, a: Val, to: Kind) -> Val {
        if self.kind(a) == to { a } else { self.push(Inst::Convert(a), to) }
    }

    /// The sign bit of a float, everything else 0, as an integer.
    pub fn sign_bit(&mut self, a: Val) -> Val {
        let bits = self.to_bits(a);
        let mask = if self.kind(bits) == Kind::I32 { i32::MIN as i64 } else { i64::MIN };
        self.int_c(IntOp::And, bits, mask)
    }

    /// `a` with its bits XORed by `mask`.
    pub fn xor_bits(&mut self, a: Val, mask: Val) -> Val {
        let kind = self.kind(a);
        let bits = self.to_bits(a);
        let bits = self.int(IntOp::Xor, bits, mask);
        self.bits(bits, kind)
    }

    /// `magnitude`, which is not negative, with the sign of `sign`.
    pub fn with_sign(&mut self, magnitude: Val, sign: Val) -> Val {
        let sign = self.sign_bit(sign);
        self.xor_bits(magnitude, sign)
    }

    /// The smaller of `a` and `c`; NaN stays. One instruction on most machines.
    pub fn at_most(&mut self, a: Val, c: f64) -> Val {
        let c = self.f(c, a);
        let above = self.cmp(Cmp::Lt, c, a);
        self.select(above, c, a)
    }

    /// The larger of `a` and `c`; NaN stays.
    pub fn at_least(&mut self, a: Val, c: f64) -> Val {
        let c = self.f(c, a);
        let below = self.cmp(Cmp::Gt, c, a);
        self.select(below, c, a)
    }

    /// `x` itself where it is so small that the function cannot differ from it, which keeps
    /// −0 and subnormal numbers; `y` elsewhere.
    pub fn keep_tiny(&mut self, x: Val, below: f64, y: Val) -> Val {
        let a = self.abs(x);
        let tiny = self.cmp_c(Cmp::Lt, a, below);
        self.select(tiny, x, y)
    }

    /// Ends the program and drops what `result` does not need.
    pub fn finish(self, result: Val) -> Program {
        let insts = self.program.insts;
        let mut live = vec![false; insts.len()];
        live[result.0 as usize] = true;
        for at in (0..insts.len()).rev() {
            if live[at] {
                insts[at].0.operands().for_each(|v| live[v.0 as usize] = true);
            }
        }
        let mut place = vec![Val(0); insts.len()];
        let mut kept = Vec::new();
        for (at, (inst, kind)) in insts.into_iter().enumerate() {
            if live[at] {
                place[at] = Val(kept.len() as u32);
                kept.push((inst.map(|v| place[v.0 as usize]), kind));
            }
        }
        Program { insts: kept, result: Some(place[result.0 as usize]) }
    }
}
