//! Loads, stores, atomics and conversions of addresses.

use super::{Builder, Decoded, Stmt};
use crate::decode::args::Arg;
use crate::inst::*;
use crate::ops::{int, pick_float, pick_int};
use crate::types::{Class, Ty};

pub fn decode<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    match s.name {
        "ld" | "ldu" | "st" => access(b, s),
        "cvta" => cvta(b, s),
        "isspacep" => {
            let (d, x) = (s.dst(0, Ty::PRED)?, s.src(b, 1, Ty::B64)?);
            b.emit(Op::IsSpace(space(s), d, x));
            Ok(())
        }
        "atom" | "red" => atomic(b, s),
        _ => {
            b.emit(Op::Nop);
            Ok(())
        }
    }
}

/// The space that the modifiers name. Constants lie in global memory here.
pub fn space(s: &Stmt<'_>) -> Space {
    for word in &s.mods {
        match word.split("::").next().unwrap_or_default() {
            "global" | "const" => return Space::Global,
            "shared" => return Space::Shared,
            "local" => return Space::Local,
            "param" => return Space::Param,
            _ => {}
        }
    }
    Space::Generic
}

fn access<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let ty = s.last_ty()?;
    let vector = ["v2", "v4", "v8"].iter().position(|v| s.has(v)).map_or(1, |at| 2 << at);
    let load = s.name != "st";
    let (value, address) = if load { (s.arg(0)?, s.arg(1)?) } else { (s.arg(1)?, s.arg(0)?) };
    // A cache policy may follow.
    s.count(2..=3)?;
    let parts = value.items();
    if parts.len() != vector || ty.class == Class::Pred || vector as u32 * ty.bytes() > 32 {
        return Err("the operands do not fit the vector".into());
    }
    let mut regs = Vec::new();
    let mut sign_to = 0;
    for part in parts {
        if !load {
            regs.push(part.source(b, ty)?);
        } else if let Some(r) = part.destination(ty.width() as u8)? {
            sign_to = if ty.class == Class::Signed && r.bits > ty.bits { r.bits } else { 0 };
            regs.push(r.reg);
        } else {
            regs.push(NONE);
        }
    }
    let (base, offset) = address.address(b)?;
    let space = space(s);
    if !load && space == Space::Param {
        return Err("parameters cannot be stored to".into());
    }
    let value = if vector == 1 { regs[0] } else { b.list(regs) };
    let access = Access {
        space,
        size: ty.bytes() as u8,
        count: vector as u8,
        sign_to,
        strong: ["relaxed", "acquire", "release", "volatile", "mmio"].iter().any(|m| s.has(m)),
        acquire: s.has("acquire"),
        value,
        base,
        offset,
    };
    b.emit(if load { Op::Load(access) } else { Op::Store(access) });
    Ok(())
}

fn cvta<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let ty = s.last_ty()?;
    let (d, space) = (s.dst(0, ty)?, space(s));
    // `cvta` also takes a symbol with an offset.
    let x = match s.arg(1)? {
        memory @ Arg::Memory(..) => memory.address(b)?.0,
        other => other.source(b, ty)?,
    };
    b.emit(match (space, s.has("to")) {
        (Space::Global, _) => Op::Move(d, x),
        (Space::Generic, _) => return Err("cvta without a space".into()),
        (space, true) => Op::FromGeneric(space, d, x),
        (space, false) => Op::ToGeneric(space, d, x),
    });
    Ok(())
}

fn atomic<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let ty = s.last_ty()?;
    // `red` has no result.
    let first = usize::from(s.name == "atom");
    let result = match first {
        1 => s.arg(0)?.destination(ty.width() as u8)?.map_or(NONE, |r| r.reg),
        _ => NONE,
    };
    let (base, offset) = s.arg(first)?.address(b)?;
    let a = s.src(b, first + 1, ty)?;
    let none = || format!("unknown atomic {}.{}", s.name, s.mods.join("."));
    if !matches!(ty.width(), 16 | 32 | 64) || ty.class == Class::Pred {
        return Err(none());
    }
    let kind = if s.has("cas") {
        AtomicKind::Swap(s.src(b, first + 2, ty)?)
    } else {
        AtomicKind::Apply(apply(s, ty).ok_or_else(none)?)
    };
    let acquire = s.has("acquire") || s.has("acq_rel");
    let size = ty.bytes() as u8;
    b.emit(Op::Atomic(Atomic { space: space(s), size, kind, acquire, result, base, offset, a }));
    Ok(())
}

fn apply(s: &Stmt<'_>, ty: Ty) -> Option<Binary> {
    let operation =
        s.mods.iter().find(|m| matches!(**m, "add" | "min" | "max" | "and" | "or" | "xor" | "exch" | "inc" | "dec"))?;
    match (*operation, ty.is_float()) {
        ("exch", _) => Some(int::second),
        ("and", false) => Some(int::and),
        ("or", false) => Some(int::or),
        ("xor", false) => Some(int::xor),
        ("add", true) => pick_float!(ty, false, add),
        ("min", true) => pick_float!(ty, false, min),
        ("max", true) => pick_float!(ty, false, max),
        ("add", false) => pick_int!(ty, add),
        ("min", false) => pick_int!(ty, min),
        ("max", false) => pick_int!(ty, max),
        ("inc", false) => pick_int!(ty, inc),
        ("dec", false) => pick_int!(ty, dec),
        _ => None,
    }
}

/// The function of `redux`.
pub fn reduction(s: &Stmt<'_>, ty: Ty) -> Option<Binary> {
    apply(s, ty)
}
