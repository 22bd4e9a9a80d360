//! Scalar programs: the meaning of an elementwise function as straight-line code.
//!
//! One program, two readers: the interpreter runs it over arrays, the code generator emits it
//! as vector instructions. Every instruction is an IEEE 754 operation (round to nearest even)
//! or an integer operation, so both give the same bits on every machine. No libm anywhere.

/// The type of a scalar value inside a program. Narrow floats compute in `F32`; bool is `Bool`;
/// i32, i16, i8 and u8 compute in their own width with wrap-around.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    /// IEEE 754-2019 `minimumNumber`-free: NaN if either is NaN, like NumPy's `minimum`.
    Min,
    Max,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FloatFn {
    Neg,
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
    /// Floor division; by zero gives 0, as NumPy.
    FloorDiv,
    /// Floor remainder; by zero gives 0.
    FloorMod,
    Min,
    Max,
    And,
    Or,
    Xor,
    /// Shifts by the width or more give 0 (or the sign for `Shr`).
    Shl,
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

/// One instruction. Operand kinds equal the result's kind unless said otherwise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Inst {
    /// The `n`-th argument.
    Arg(u8),
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
    /// Value conversion to the result's kind; float to integer truncates and saturates, NaN gives 0.
    Convert(Val),
}

/// A program in single-assignment form.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Program {
    pub insts: Vec<(Inst, Kind)>,
    pub result: Option<Val>,
}

/// Writes a program. Methods return the value they make.
#[derive(Default)]
pub struct Writer {
    program: Program,
}

impl Writer {
    pub fn push(&mut self, inst: Inst, kind: Kind) -> Val {
        self.program.insts.push((inst, kind));
        Val(self.program.insts.len() as u32 - 1)
    }

    pub fn kind(&self, v: Val) -> Kind {
        self.program.insts[v.0 as usize].1
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

    pub fn fma(&mut self, a: Val, b: Val, c: Val) -> Val {
        let kind = self.kind(a);
        self.push(Inst::Fma(a, b, c), kind)
    }

    pub fn int(&mut self, op: IntOp, a: Val, b: Val) -> Val {
        let kind = self.kind(a);
        self.push(Inst::Int(op, a, b), kind)
    }

    pub fn cmp(&mut self, op: Cmp, a: Val, b: Val) -> Val {
        self.push(Inst::Cmp(op, a, b), Kind::Bool)
    }

    pub fn select(&mut self, c: Val, a: Val, b: Val) -> Val {
        let kind = self.kind(a);
        self.push(Inst::Select(c, a, b), kind)
    }

    pub fn not(&mut self, a: Val) -> Val {
        self.push(Inst::Not(a), Kind::Bool)
    }

    pub fn bits(&mut self, a: Val, to: Kind) -> Val {
        self.push(Inst::Bits(a), to)
    }

    pub fn convert(&mut self, a: Val, to: Kind) -> Val {
        self.push(Inst::Convert(a), to)
    }

    pub fn finish(mut self, result: Val) -> Program {
        self.program.result = Some(result);
        self.program
    }
}
