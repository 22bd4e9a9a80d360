//! Comparisons and selections.

use super::{Builder, Decoded, Stmt};
use crate::decode::args::Arg;
use crate::inst::*;
use crate::ops::{int, pick_int, pick_scalar};
use crate::types::{Class, Ty};

pub fn decode<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    match s.name {
        "setp" => setp(b, s),
        "set" => set(b, s),
        "selp" => {
            let ty = s.last_ty()?;
            s.count(4..=4)?;
            let d = s.dst(0, ty)?;
            let (x, y) = (s.src(b, 1, ty)?, s.src(b, 2, ty)?);
            let (p, negated) = s.arg(3)?.predicate(b)?;
            b.emit(if negated { Op::Select(d, y, x, p) } else { Op::Select(d, x, y, p) });
            Ok(())
        }
        "slct" => {
            let (ty, by) = (s.ty(0)?, s.ty(1)?);
            s.count(4..=4)?;
            let d = s.dst(0, ty)?;
            let (x, y, c) = (s.src(b, 1, ty)?, s.src(b, 2, ty)?, s.src(b, 3, by)?);
            b.emit(Op::Tri(if by.is_float() { int::slct_f32 } else { int::slct_s32 }, d, x, y, c));
            Ok(())
        }
        _ => testp(b, s),
    }
}

fn testp<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let ty = s.last_ty()?;
    let none = || "unknown test".to_string();
    let f: Unary = match s.mods.first().copied().unwrap_or_default() {
        "finite" => pick_scalar!(ty, false, is_finite),
        "infinite" => pick_scalar!(ty, false, is_infinite),
        "number" => pick_scalar!(ty, false, is_number),
        "notanumber" => pick_scalar!(ty, false, is_nan),
        "normal" => pick_scalar!(ty, false, is_normal),
        "subnormal" => pick_scalar!(ty, false, is_subnormal),
        _ => None,
    }
    .ok_or_else(none)?;
    let (d, x) = (s.dst(0, Ty::PRED)?, s.src(b, 1, ty)?);
    b.emit(Op::Un(f, d, x));
    Ok(())
}

/// The function of a comparison.
fn comparison(name: &str, ty: Ty, ftz: bool) -> Option<Binary> {
    if ty.is_float() {
        return match name {
            "eq" => pick_scalar!(ty, ftz, eq),
            "ne" => pick_scalar!(ty, ftz, ne),
            "lt" => pick_scalar!(ty, ftz, lt),
            "le" => pick_scalar!(ty, ftz, le),
            "gt" => pick_scalar!(ty, ftz, gt),
            "ge" => pick_scalar!(ty, ftz, ge),
            "equ" => pick_scalar!(ty, ftz, equ),
            "neu" => pick_scalar!(ty, ftz, neu),
            "ltu" => pick_scalar!(ty, ftz, ltu),
            "leu" => pick_scalar!(ty, ftz, leu),
            "gtu" => pick_scalar!(ty, ftz, gtu),
            "geu" => pick_scalar!(ty, ftz, geu),
            "num" => pick_scalar!(ty, ftz, num),
            "nan" => pick_scalar!(ty, ftz, nan),
            _ => None,
        };
    }
    match name {
        "eq" => pick_int!(ty, eq),
        "ne" => pick_int!(ty, ne),
        "lt" | "lo" => pick_int!(ty, lt),
        "le" | "ls" => pick_int!(ty, le),
        "gt" | "hi" => pick_int!(ty, gt),
        "ge" | "hs" => pick_int!(ty, ge),
        _ => None,
    }
}

fn compare_of(s: &Stmt<'_>, ty: Ty) -> Decoded<Binary> {
    let name = s.mods.first().copied().unwrap_or_default();
    comparison(name, Ty { lanes: 1, ..ty }, s.has("ftz")).ok_or_else(|| format!("unknown comparison {name}"))
}

/// Joins a comparison's result with a predicate, as `.and`, `.or` and `.xor` say.
fn joined<'a>(b: &mut Builder<'a>, s: &Stmt<'a>, n: usize, result: Reg) -> Decoded {
    let join: Option<Binary> = match s.mods.get(1).copied() {
        Some("and") => Some(int::and),
        Some("or") => Some(int::or),
        Some("xor") => Some(int::xor),
        _ => None,
    };
    let Some(join) = join else { return s.count(n..=n) };
    s.count(n + 1..=n + 1)?;
    let (mut p, negated) = s.arg(n)?.predicate(b)?;
    if negated {
        let not = b.register(0)?;
        b.emit(Op::Un(int::not_pred, not, p));
        p = not;
    }
    b.emit(Op::Bin(join, result, result, p));
    Ok(())
}

fn setp<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let ty = s.last_ty()?;
    if ty.lanes == 2 {
        return setp_pair(b, s, ty);
    }
    let f = compare_of(s, ty)?;
    let (x, y) = (s.src(b, 1, ty)?, s.src(b, 2, ty)?);
    if s.args.len() == 3
        && let Arg::Register(_) = s.arg(0)?
    {
        let d = s.dst(0, Ty::PRED)?;
        b.emit(Op::Bin(f, d, x, y));
        return Ok(());
    }
    let (p, q) = match s.arg(0)? {
        Arg::Pair(p, q) => (&**p, Some(&**q)),
        p => (p, None),
    };
    // Into fresh registers, for the results may be among the operands.
    let (yes, no) = (b.register(0)?, b.register(0)?);
    b.emit(Op::Bin(f, yes, x, y));
    b.emit(Op::Un(int::not_pred, no, yes));
    joined(b, s, 3, yes)?;
    joined(b, s, 3, no)?;
    if let Some(p) = p.destination(1)? {
        b.emit(Op::Move(p.reg, yes));
    }
    if let Some(q) = q.map(|q| q.destination(1)).transpose()?.flatten() {
        b.emit(Op::Move(q.reg, no));
    }
    Ok(())
}

/// Two lanes give two predicates.
fn setp_pair<'a>(b: &mut Builder<'a>, s: &Stmt<'a>, ty: Ty) -> Decoded {
    let f = compare_of(s, ty)?;
    let Arg::Pair(p, q) = s.arg(0)? else { return Err("two predicates are expected".into()) };
    let (x, y) = (s.src(b, 1, ty)?, s.src(b, 2, ty)?);
    let results = [b.register(0)?, b.register(0)?];
    let parts: [Unary; 2] = [int::part16::<0>, int::part16::<1>];
    for (result, part) in results.into_iter().zip(parts) {
        let (u, v) = (b.register(0)?, b.register(0)?);
        b.emit(Op::Un(part, u, x));
        b.emit(Op::Un(part, v, y));
        b.emit(Op::Bin(f, result, u, v));
        joined(b, s, 3, result)?;
    }
    for (arg, result) in [p, q].into_iter().zip(results) {
        if let Some(d) = arg.destination(1)? {
            b.emit(Op::Move(d.reg, result));
        }
    }
    Ok(())
}

/// `set`: all ones or 1.0 where the comparison holds.
fn set<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let (to, from) = (s.ty(0)?, s.ty(1)?);
    if to.lanes != 1 || from.lanes != 1 {
        return Err("set of two lanes is not supported".into());
    }
    let f = compare_of(s, from)?;
    let d = s.dst(0, to)?;
    let (x, y) = (s.src(b, 1, from)?, s.src(b, 2, from)?);
    let holds = b.register(0)?;
    b.emit(Op::Bin(f, holds, x, y));
    joined(b, s, 3, holds)?;
    let yes = match (to.class, to.bits) {
        (Class::Float, 32) => 0x3F80_0000,
        (Class::Float, 16) => 0x3C00,
        (Class::Brain, 16) => 0x3F80,
        _ => crate::types::mask(to.width()),
    };
    let (yes, no) = (b.constant(yes)?, b.constant(0)?);
    b.emit(Op::Select(d, yes, no, holds));
    Ok(())
}
