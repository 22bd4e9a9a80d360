//! Scalar programs as vector instructions: one instruction of a program is one IEEE 754 or
//! integer operation here, and nothing becomes a call of libm.

use crate::instr::{Builder, IntPred, RealPred, V};
use tessera_ops::scalar::{Cmp, FloatFn, FloatOp, Inst, IntOp, Kind, Program};

/// Emits `program` over `args` (all of `lanes` lanes) and returns its result.
pub fn emit(b: &Builder, program: &Program, args: &[V], lanes: u32) -> Option<V> {
    let mut values: Vec<V> = Vec::with_capacity(program.insts.len());
    let kind_of = |v: tessera_ops::scalar::Val| program.insts.get(v.0 as usize).map(|i| i.1);
    for (inst, kind) in &program.insts {
        let get = |v: tessera_ops::scalar::Val| values.get(v.0 as usize).copied();
        let value = match *inst {
            Inst::Arg(n) => *args.get(n as usize)?,
            Inst::ConstF(x) => b.const_float(*kind, x, lanes),
            Inst::ConstI(x) => b.const_int(b.kind(*kind, 1), x, lanes),
            Inst::Float(op, x, y) => float(b, op, *kind, get(x)?, get(y)?, lanes),
            Inst::FloatFn(op, x) => float_fn(b, op, *kind, get(x)?, lanes),
            Inst::Fma(x, y, z) => b.intrinsic("llvm.fma", &[b.kind(*kind, lanes)], &[get(x)?, get(y)?, get(z)?]),
            Inst::Int(op, x, y) => int(b, op, *kind, get(x)?, get(y)?, lanes),
            Inst::Cmp(op, x, y) => compare(b, op, kind_of(x)?, get(x)?, get(y)?),
            Inst::Select(c, x, y) => b.select(get(c)?, get(x)?, get(y)?),
            Inst::Not(x) => b.not(get(x)?),
            Inst::Bits(x) => b.bitcast(get(x)?, b.kind(*kind, lanes)),
            Inst::Convert(x) => convert(b, get(x)?, kind_of(x)?, *kind, lanes),
        };
        values.push(value);
    }
    values.get(program.result?.0 as usize).copied()
}

fn is_float(kind: Kind) -> bool {
    matches!(kind, Kind::F32 | Kind::F64)
}

pub fn unsigned(kind: Kind) -> bool {
    matches!(kind, Kind::U8 | Kind::Bool)
}

pub fn bits(kind: Kind) -> i64 {
    match kind {
        Kind::F64 | Kind::I64 => 64,
        Kind::F32 | Kind::I32 => 32,
        Kind::I16 => 16,
        Kind::I8 | Kind::U8 => 8,
        Kind::Bool => 1,
    }
}

fn float(b: &Builder, op: FloatOp, kind: Kind, x: V, y: V, lanes: u32) -> V {
    match op {
        FloatOp::Add => b.fadd(x, y),
        FloatOp::Sub => b.fsub(x, y),
        FloatOp::Mul => b.fmul(x, y),
        FloatOp::Div => b.divided(kind, x, y, lanes),
        FloatOp::Min => b.extreme(true, kind, x, y, lanes),
        FloatOp::Max => b.extreme(false, kind, x, y, lanes),
    }
}

fn float_fn(b: &Builder, op: FloatFn, kind: Kind, x: V, lanes: u32) -> V {
    let name = match op {
        FloatFn::Neg => return b.fneg(x),
        FloatFn::Abs => "llvm.fabs",
        FloatFn::Sqrt => return b.root(kind, x, lanes),
        FloatFn::Floor => "llvm.floor",
        FloatFn::Ceil => "llvm.ceil",
        FloatFn::Round => "llvm.roundeven",
        FloatFn::Trunc => "llvm.trunc",
    };
    b.intrinsic(name, &[b.kind(kind, lanes)], &[x])
}

/// Addition, minimum and so on of two accumulators, as a program instruction would do it.
pub fn int(b: &Builder, op: IntOp, kind: Kind, x: V, y: V, lanes: u32) -> V {
    let ty = b.kind(kind, 1);
    let zero = b.const_int(ty, 0, lanes);
    let pick = |p, q| if unsigned(kind) { p } else { q };
    match op {
        IntOp::Add => b.add(x, y),
        IntOp::Sub => b.sub(x, y),
        IntOp::Mul => b.mul(x, y),
        IntOp::And => b.and(x, y),
        IntOp::Or => b.or(x, y),
        IntOp::Xor => b.xor(x, y),
        IntOp::Min => b.select(b.icmp(pick(IntPred::LLVMIntULT, IntPred::LLVMIntSLT), x, y), x, y),
        IntOp::Max => b.select(b.icmp(pick(IntPred::LLVMIntUGT, IntPred::LLVMIntSGT), x, y), x, y),
        // LLVM 22 makes PTX's shift, which clamps, of what follows for 64 bits, and gives it the low 32 bits of the distance.
        IntOp::Shl | IntOp::Shr if b.group.is_some() => {
            let last = b.const_int(ty, bits(kind) - 1, lanes);
            let inside = b.icmp(IntPred::LLVMIntULT, y, b.const_int(ty, bits(kind), lanes));
            let by = b.intrinsic("llvm.umin", &[b.kind(kind, lanes)], &[y, last]);
            match (op, unsigned(kind)) {
                (IntOp::Shl, _) => b.select(inside, b.shl(x, by), zero),
                (_, true) => b.select(inside, b.lshr(x, by), zero),
                (_, false) => b.ashr(x, by),
            }
        }
        IntOp::Shl | IntOp::Shr => {
            let inside = b.icmp(IntPred::LLVMIntULT, y, b.const_int(ty, bits(kind), lanes));
            let last = b.const_int(ty, bits(kind) - 1, lanes);
            match (op, unsigned(kind)) {
                (IntOp::Shl, _) => b.select(inside, b.shl(x, b.select(inside, y, zero)), zero),
                (_, true) => b.select(inside, b.lshr(x, b.select(inside, y, zero)), zero),
                (_, false) => b.ashr(x, b.select(inside, y, last)),
            }
        }
        IntOp::FloorDiv | IntOp::FloorMod => divide(b, op, kind, x, y, lanes),
    }
}

fn divide(b: &Builder, op: IntOp, kind: Kind, x: V, y: V, lanes: u32) -> V {
    let ty = b.kind(kind, 1);
    let (zero, one) = (b.const_int(ty, 0, lanes), b.const_int(ty, 1, lanes));
    let by_zero = b.icmp(IntPred::LLVMIntEQ, y, zero);
    if unsigned(kind) {
        let safe = b.select(by_zero, one, y);
        let value = if op == IntOp::FloorDiv { b.udiv(x, safe) } else { b.urem(x, safe) };
        return b.select(by_zero, zero, value);
    }
    // The lowest value by -1 traps on x86; by 1 it gives what wrapping asks for.
    let lowest = b.const_int(ty, i64::MIN >> (64 - bits(kind)), lanes);
    let minus_one = b.const_int(ty, -1, lanes);
    let wraps = b.and(b.icmp(IntPred::LLVMIntEQ, x, lowest), b.icmp(IntPred::LLVMIntEQ, y, minus_one));
    let safe = b.select(b.or(by_zero, wraps), one, y);
    let q = b.sdiv(x, safe);
    let r = b.sub(x, b.mul(q, safe));
    let signs = b.icmp(IntPred::LLVMIntSLT, b.xor(r, safe), zero);
    let low = b.and(signs, b.icmp(IntPred::LLVMIntNE, r, zero));
    let value = match op {
        IntOp::FloorDiv => b.select(low, b.sub(q, one), q),
        _ => b.select(low, b.add(r, safe), r),
    };
    b.select(by_zero, zero, value)
}

fn compare(b: &Builder, op: Cmp, kind: Kind, x: V, y: V) -> V {
    use IntPred::*;
    use RealPred::*;
    if is_float(kind) {
        let p = match op {
            Cmp::Eq => LLVMRealOEQ,
            Cmp::Ne => LLVMRealUNE,
            Cmp::Lt => LLVMRealOLT,
            Cmp::Le => LLVMRealOLE,
            Cmp::Gt => LLVMRealOGT,
            Cmp::Ge => LLVMRealOGE,
        };
        return b.fcmp(p, x, y);
    }
    let p = match (op, unsigned(kind)) {
        (Cmp::Eq, _) => LLVMIntEQ,
        (Cmp::Ne, _) => LLVMIntNE,
        (Cmp::Lt, true) => LLVMIntULT,
        (Cmp::Le, true) => LLVMIntULE,
        (Cmp::Gt, true) => LLVMIntUGT,
        (Cmp::Ge, true) => LLVMIntUGE,
        (Cmp::Lt, false) => LLVMIntSLT,
        (Cmp::Le, false) => LLVMIntSLE,
        (Cmp::Gt, false) => LLVMIntSGT,
        (Cmp::Ge, false) => LLVMIntSGE,
    };
    b.icmp(p, x, y)
}

/// The value conversion between kinds.
pub fn convert(b: &Builder, x: V, from: Kind, to: Kind, lanes: u32) -> V {
    let ty = b.kind(to, lanes);
    match (from, to) {
        _ if from == to => x,
        (Kind::F32, Kind::F64) => b.fpext(x, ty),
        (Kind::F64, Kind::F32) => b.fptrunc(x, ty),
        (_, Kind::Bool) if is_float(from) => b.fcmp(RealPred::LLVMRealUNE, x, b.const_float(from, 0.0, lanes)),
        (_, Kind::Bool) => b.icmp(IntPred::LLVMIntNE, x, b.const_int(b.kind(from, 1), 0, lanes)),
        _ if is_float(from) => b.saturated(x, from, to, lanes),
        _ if is_float(to) && unsigned(from) => b.uitofp(x, ty),
        _ if is_float(to) => b.sitofp(x, ty),
        _ if bits(to) == bits(from) => x,
        _ if bits(to) < bits(from) => b.trunc(x, ty),
        _ if unsigned(from) => b.zext(x, ty),
        _ => b.sext(x, ty),
    }
}
