//! Arithmetic, logic and shifts.

use super::{Builder, Decoded, Stmt};
use crate::inst::*;
use crate::ops::{float, int, pick_float, pick_int, pick_scalar};
use crate::types::{Class, Ty};

/// The function that an instruction applies to its sources.
pub enum Function {
    Un(Unary),
    Bin(Binary),
    Tri(Ternary),
    Quad(Quaternary),
}

pub fn decode<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    match s.name {
        "bfe" | "bfi" | "popc" | "clz" | "brev" | "bfind" | "prmt" | "lop3" | "shf" | "szext" | "dp4a" | "bmsk" => {
            bits(b, s)
        }
        "addc" | "subc" | "madc" => carry(b, s),
        "add" | "sub" | "mad" if s.has("cc") => carry(b, s),
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" => logic(b, s),
        _ => number(b, s),
    }
}

/// Emits a function of the operands after the first, which takes the result.
pub fn emit<'a>(b: &mut Builder<'a>, s: &Stmt<'a>, f: Function, to: Ty, from: &[Ty]) -> Decoded {
    s.count(from.len() + 1..=from.len() + 1)?;
    let d = s.dst(0, to)?;
    let regs = from.iter().enumerate().map(|(n, ty)| s.src(b, n + 1, *ty)).collect::<Decoded<Vec<_>>>()?;
    b.emit(match (f, regs.as_slice()) {
        (Function::Un(f), &[x]) => Op::Un(f, d, x),
        (Function::Bin(f), &[x, y]) => Op::Bin(f, d, x, y),
        (Function::Tri(f), &[x, y, z]) => Op::Tri(f, d, x, y, z),
        (Function::Quad(f), &[x, y, z, w]) => Op::Quad(f, d, [x, y, z, w]),
        _ => return Err("wrong number of operands".into()),
    });
    Ok(())
}

fn unsupported(s: &Stmt<'_>) -> String {
    format!("unknown instruction {}.{}", s.name, s.mods.join("."))
}

fn logic<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let ty = s.last_ty()?;
    let none = || unsupported(s);
    match s.name {
        "and" => emit(b, s, Function::Bin(int::and), ty, &[ty, ty]),
        "or" => emit(b, s, Function::Bin(int::or), ty, &[ty, ty]),
        "xor" => emit(b, s, Function::Bin(int::xor), ty, &[ty, ty]),
        "not" if ty.class == Class::Pred => emit(b, s, Function::Un(int::not_pred), ty, &[ty]),
        "not" => emit(b, s, Function::Un(pick_int!(ty, not).ok_or_else(none)?), ty, &[ty]),
        "cnot" => emit(b, s, Function::Un(int::cnot), ty, &[ty]),
        "shl" => emit(b, s, Function::Bin(pick_int!(ty, shl).ok_or_else(none)?), ty, &[ty, Ty::B32]),
        _ => emit(b, s, Function::Bin(pick_int!(ty, shr).ok_or_else(none)?), ty, &[ty, Ty::B32]),
    }
}

fn bits<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    use Function::*;
    let ty = s.last_ty()?;
    let none = || unsupported(s);
    let word = Ty::B32;
    match s.name {
        "bfe" => emit(b, s, Tri(pick_int!(ty, bfe).ok_or_else(none)?), ty, &[ty, word, word]),
        "bfi" => emit(b, s, Quad(pick_int!(ty, bfi).ok_or_else(none)?), ty, &[ty, ty, word, word]),
        "popc" => emit(b, s, Un(pick_int!(ty, popc).ok_or_else(none)?), word, &[ty]),
        "clz" => emit(b, s, Un(pick_int!(ty, clz).ok_or_else(none)?), word, &[ty]),
        "brev" => emit(b, s, Un(pick_int!(ty, brev).ok_or_else(none)?), ty, &[ty]),
        "bfind" if s.has("shiftamt") => emit(b, s, Un(pick_int!(ty, bfind_shift).ok_or_else(none)?), word, &[ty]),
        "bfind" => emit(b, s, Un(pick_int!(ty, bfind).ok_or_else(none)?), word, &[ty]),
        "lop3" if !s.has("or") && !s.has("and") => emit(b, s, Quad(int::lop3), word, &[word; 4]),
        "shf" => {
            let f: Ternary = match (s.has("l"), s.has("wrap")) {
                (true, true) => int::shf_l_wrap,
                (true, false) => int::shf_l_clamp,
                (false, true) => int::shf_r_wrap,
                (false, false) => int::shf_r_clamp,
            };
            emit(b, s, Tri(f), word, &[word; 3])
        }
        "prmt" => {
            let modes: [(&str, Ternary); 6] = [
                ("f4e", int::prmt_f4e),
                ("b4e", int::prmt_b4e),
                ("rc8", int::prmt_rc8),
                ("rc16", int::prmt_rc16),
                ("ecl", int::prmt_ecl),
                ("ecr", int::prmt_ecr),
            ];
            let f = modes.iter().find(|(name, _)| s.has(name)).map_or(int::prmt as Ternary, |(_, f)| *f);
            emit(b, s, Tri(f), word, &[word; 3])
        }
        "dp4a" => {
            let signed = |n| s.ty(n).map(|t| t.class == Class::Signed);
            let f: Ternary = match (signed(0)?, signed(1)?) {
                (true, true) => int::dp4a::<true, true>,
                (true, false) => int::dp4a::<true, false>,
                (false, true) => int::dp4a::<false, true>,
                (false, false) => int::dp4a::<false, false>,
            };
            emit(b, s, Tri(f), word, &[word; 3])
        }
        _ => Err(unsupported(s)),
    }
}

/// Sums that set or use the carry.
fn carry<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let ty = s.last_ty()?;
    if !matches!(ty.bits, 32 | 64) || ty.is_float() {
        return Err(unsupported(s));
    }
    if b.kernel.carry == 0 {
        b.kernel.carry = b.register(0)?;
    }
    let mut flags = if s.has("cc") { CARRY_OUT } else { 0 };
    flags |= if ty.bits == 64 { CARRY_64 } else { 0 };
    flags |= if s.name.ends_with('c') { CARRY_IN } else { 0 };
    flags |= if s.name.starts_with("sub") { CARRY_SUB } else { 0 };
    let d = s.dst(0, ty)?;
    let (x, y) = (s.src(b, 1, ty)?, s.src(b, 2, ty)?);
    if s.name.starts_with("mad") {
        let product = if s.has("hi") { pick_int!(ty, mul_hi) } else { pick_int!(ty, mul_lo) };
        let part = b.register(0)?;
        b.emit(Op::Bin(product.ok_or_else(|| unsupported(s))?, part, x, y));
        let z = s.src(b, 3, ty)?;
        b.emit(Op::Carry(d, part, z, flags));
    } else {
        s.count(3..=3)?;
        b.emit(Op::Carry(d, x, y, flags));
    }
    Ok(())
}

fn number<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let ty = s.last_ty()?;
    if ty.is_float() { floating(b, s, ty) } else { integer(b, s, ty) }
}

fn integer<'a>(b: &mut Builder<'a>, s: &Stmt<'a>, ty: Ty) -> Decoded {
    use Function::*;
    let none = || unsupported(s);
    if ty.lanes == 2 {
        let signed = ty.class == Class::Signed;
        let f: fn(u64, u64) -> u64 = match s.name {
            "add" if !s.has("sat") => int::pairs::add,
            "min" if signed => int::pairs::min_signed,
            "min" => int::pairs::min,
            "max" if signed => int::pairs::max_signed,
            "max" => int::pairs::max,
            _ => return Err(none()),
        };
        return emit(b, s, Bin(f), ty, &[ty, ty]);
    }
    if ty.class == Class::Pred {
        return Err(none());
    }
    let wide = Ty { bits: ty.bits.saturating_mul(2), ..ty };
    let (two, three) = ([ty, ty], [ty, ty, ty]);
    if s.has("wide") && ty.bits > 32 {
        return Err(none());
    }
    match s.name {
        "add" if s.has("sat") => emit(b, s, Bin(pick_int!(ty, add_sat).ok_or_else(none)?), ty, &two),
        "sub" if s.has("sat") => emit(b, s, Bin(pick_int!(ty, sub_sat).ok_or_else(none)?), ty, &two),
        "add" => emit(b, s, Bin(pick_int!(ty, add).ok_or_else(none)?), ty, &two),
        "sub" => emit(b, s, Bin(pick_int!(ty, sub).ok_or_else(none)?), ty, &two),
        "mul" if s.has("wide") => emit(b, s, Bin(pick_int!(ty, mul_wide).ok_or_else(none)?), wide, &two),
        "mul" if s.has("hi") => emit(b, s, Bin(pick_int!(ty, mul_hi).ok_or_else(none)?), ty, &two),
        "mul" if s.has("lo") => emit(b, s, Bin(pick_int!(ty, mul_lo).ok_or_else(none)?), ty, &two),
        "mad" if s.has("wide") => emit(b, s, Tri(pick_int!(ty, mad_wide).ok_or_else(none)?), wide, &[ty, ty, wide]),
        "mad" if s.has("hi") => emit(b, s, Tri(pick_int!(ty, mad_hi).ok_or_else(none)?), ty, &three),
        "mad" if s.has("lo") => emit(b, s, Tri(pick_int!(ty, mad_lo).ok_or_else(none)?), ty, &three),
        "sad" => emit(b, s, Tri(pick_int!(ty, sad).ok_or_else(none)?), ty, &three),
        "div" => emit(b, s, Bin(pick_int!(ty, div).ok_or_else(none)?), ty, &two),
        "rem" => emit(b, s, Bin(pick_int!(ty, rem).ok_or_else(none)?), ty, &two),
        "neg" => emit(b, s, Un(pick_int!(ty, neg).ok_or_else(none)?), ty, &[ty]),
        "abs" => emit(b, s, Un(pick_int!(ty, abs).ok_or_else(none)?), ty, &[ty]),
        "min" => emit(b, s, Bin(pick_int!(ty, min).ok_or_else(none)?), ty, &two),
        "max" => emit(b, s, Bin(pick_int!(ty, max).ok_or_else(none)?), ty, &two),
        _ => Err(none()),
    }
}

/// A sum of f32 whose first term or factors are of 16 bits.
fn mixed<'a>(b: &mut Builder<'a>, s: &Stmt<'a>, ty: Ty, flushes: bool) -> Decoded {
    use float::mixed::{bf16, f16};
    let half = ty.class == Class::Float;
    let (two, three) = ([ty, Ty::F32], [ty, ty, Ty::F32]);
    match s.name {
        _ if flushes || s.has("sat") => Err(unsupported(s)),
        "add" => emit(b, s, Function::Bin(if half { f16::add } else { bf16::add }), Ty::F32, &two),
        "sub" => emit(b, s, Function::Bin(if half { f16::sub } else { bf16::sub }), Ty::F32, &two),
        "fma" => emit(b, s, Function::Tri(if half { f16::fma } else { bf16::fma }), Ty::F32, &three),
        _ => Err(unsupported(s)),
    }
}

fn floating<'a>(b: &mut Builder<'a>, s: &Stmt<'a>, ty: Ty) -> Decoded {
    use Function::*;
    let z = s.has("ftz");
    let none = || unsupported(s);
    if ["rz", "rm", "rp"].iter().any(|m| s.has(m)) {
        return Err("only rounding to nearest is supported here".into());
    }
    let nan = s.has("NaN");
    let xorsign = s.has("xorsign");
    if xorsign {
        return Err(none());
    }
    let (two, three) = ([ty, ty], [ty, ty, ty]);
    if ty.bits == 16 && ty.lanes == 1 && s.ty(0)? == Ty::F32 {
        return mixed(b, s, ty, z);
    }
    if matches!(s.name, "min" | "max") && s.args.len() == 4 {
        return least_of_three(b, s, ty);
    }
    match s.name {
        "add" => emit(b, s, Bin(pick_float!(ty, z, add).ok_or_else(none)?), ty, &two),
        "sub" => emit(b, s, Bin(pick_float!(ty, z, sub).ok_or_else(none)?), ty, &two),
        "mul" => emit(b, s, Bin(pick_float!(ty, z, mul).ok_or_else(none)?), ty, &two),
        "div" => emit(b, s, Bin(pick_scalar!(ty, z, div).ok_or_else(none)?), ty, &two),
        "fma" if s.has("relu") => emit(b, s, Tri(pick_float!(ty, z, fma_relu).ok_or_else(none)?), ty, &three),
        "fma" | "mad" => emit(b, s, Tri(pick_float!(ty, z, fma).ok_or_else(none)?), ty, &three),
        "min" if nan => emit(b, s, Bin(pick_float!(ty, z, min_nan).ok_or_else(none)?), ty, &two),
        "max" if nan => emit(b, s, Bin(pick_float!(ty, z, max_nan).ok_or_else(none)?), ty, &two),
        "min" => emit(b, s, Bin(pick_float!(ty, z, min).ok_or_else(none)?), ty, &two),
        "max" => emit(b, s, Bin(pick_float!(ty, z, max).ok_or_else(none)?), ty, &two),
        "copysign" => emit(b, s, Bin(pick_scalar!(ty, false, copysign).ok_or_else(none)?), ty, &two),
        "neg" => emit(b, s, Un(pick_float!(ty, z, neg).ok_or_else(none)?), ty, &[ty]),
        "abs" => emit(b, s, Un(pick_float!(ty, z, abs).ok_or_else(none)?), ty, &[ty]),
        "sqrt" => emit(b, s, Un(pick_scalar!(ty, z, sqrt).ok_or_else(none)?), ty, &[ty]),
        "rcp" => emit(b, s, Un(pick_scalar!(ty, z, rcp).ok_or_else(none)?), ty, &[ty]),
        "rsqrt" => emit(b, s, Un(pick_scalar!(ty, z, rsqrt).ok_or_else(none)?), ty, &[ty]),
        "ex2" => emit(b, s, Un(pick_float!(ty, z, ex2).ok_or_else(none)?), ty, &[ty]),
        "lg2" => emit(b, s, Un(pick_scalar!(ty, z, lg2).ok_or_else(none)?), ty, &[ty]),
        "sin" => emit(b, s, Un(pick_scalar!(ty, z, sin).ok_or_else(none)?), ty, &[ty]),
        "cos" => emit(b, s, Un(pick_scalar!(ty, z, cos).ok_or_else(none)?), ty, &[ty]),
        "tanh" => emit(b, s, Un(pick_float!(ty, z, tanh).ok_or_else(none)?), ty, &[ty]),
        _ => Err(none()),
    }?;
    if s.has("sat") {
        let d = s.dst(0, ty)?;
        let sat: Unary = match (ty.class, ty.bits) {
            (_, 16) if ty.lanes == 2 => pick_float!(ty, false, sat).ok_or_else(none)?,
            (Class::Float, 16) => float::f16::sat,
            _ => pick_scalar!(ty, false, sat).ok_or_else(none)?,
        };
        b.emit(Op::Un(sat, d, d));
    }
    Ok(())
}

/// `min` and `max` of three numbers.
fn least_of_three<'a>(b: &mut Builder<'a>, s: &Stmt<'a>, ty: Ty) -> Decoded {
    let f: Option<Binary> = match (s.name, s.has("NaN")) {
        ("min", true) => pick_scalar!(ty, s.has("ftz"), min_nan),
        ("min", false) => pick_scalar!(ty, s.has("ftz"), min),
        (_, true) => pick_scalar!(ty, s.has("ftz"), max_nan),
        (_, false) => pick_scalar!(ty, s.has("ftz"), max),
    };
    let f = f.ok_or_else(|| unsupported(s))?;
    let d = s.dst(0, ty)?;
    let (x, y, z) = (s.src(b, 1, ty)?, s.src(b, 2, ty)?, s.src(b, 3, ty)?);
    let first = b.register(0)?;
    b.emit(Op::Bin(f, first, x, y));
    b.emit(Op::Bin(f, d, first, z));
    Ok(())
}
