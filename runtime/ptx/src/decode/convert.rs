//! `cvt`.

use super::{Builder, Decoded, Stmt};
use crate::inst::*;
use crate::ops::cvt::{Spec, known};
use crate::ops::int;
use crate::ops::round::Round;
use crate::types::{Class, Ty};

/// Bits of a result are read as unsigned numbers.
fn plain(ty: Ty) -> Ty {
    if ty.class == Class::Bits { Ty { class: Class::Unsigned, ..ty } } else { ty }
}

pub fn decode<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let (to, from) = (plain(s.ty(0)?), plain(s.ty(1)?));
    let pair = to.lanes == 2 && from.lanes == 1;
    s.count(if pair { 3..=3 } else { 2..=2 })?;
    let rounds = [
        ("rn", Round::Nearest, false),
        ("rna", Round::NearestAway, false),
        ("rz", Round::Zero, false),
        ("rm", Round::Down, false),
        ("rp", Round::Up, false),
        ("rni", Round::Nearest, true),
        ("rzi", Round::Zero, true),
        ("rmi", Round::Down, true),
        ("rpi", Round::Up, true),
    ];
    let round = rounds.iter().find(|(name, ..)| s.has(name));
    let needs = from.is_float() && (!to.is_float() || to.bits < from.bits);
    let (round, integral) = match round {
        Some((_, round, integral)) => (*round, *integral),
        None if needs || !from.is_float() && to.is_float() => return Err("the conversion needs a rounding".into()),
        None => (Round::Nearest, false),
    };
    if needs && !to.is_float() && !integral {
        return Err("a conversion to an integer needs .rni, .rzi, .rmi or .rpi".into());
    }
    let register = match s.arg(0)?.destination(to.width() as u8)? {
        Some(r) => r,
        None => return Err("the result has no register".into()),
    };
    let spec = Spec {
        to,
        from,
        round,
        integral,
        saturate: s.has("sat"),
        finite: s.has("satfinite"),
        ftz: s.has("ftz"),
        relu: s.has("relu"),
        register: register.bits,
    };
    if !known(&spec) {
        return Err("unknown conversion".into());
    }
    let x = s.src(b, 1, from)?;
    let y = if pair { s.src(b, 2, from)? } else { x };
    b.emit(match quick(&spec) {
        Some(f) => Op::Un(f, register.reg, x),
        None => Op::Convert(spec, register.reg, x, y),
    });
    Ok(())
}

/// The function of a conversion that is common and simple.
fn quick(spec: &Spec) -> Option<Unary> {
    use Class::*;
    if spec.saturate || spec.finite || spec.ftz || spec.relu {
        return None;
    }
    let Spec { to, from, register, .. } = *spec;
    match (to.class, from.class) {
        (Signed | Unsigned, Unsigned) if to.bits >= from.bits => match from.bits {
            8 => Some(int::low8),
            16 => Some(int::low16),
            _ => Some(int::low32),
        },
        (Unsigned, Signed | Unsigned) if to.bits <= from.bits => match to.bits {
            8 => Some(int::low8),
            16 => Some(int::low16),
            32 => Some(int::low32),
            _ => None,
        },
        (Signed, Signed) if to.bits == 64 && from.bits == 32 => Some(int::sext::<32>),
        (Signed, Signed) if to.bits == 32 && register == 32 => match from.bits {
            8 => Some(int::sext32::<8>),
            16 => Some(int::sext32::<16>),
            _ => None,
        },
        (Float, Brain) if to.bits == 32 => Some(|a| (a & 0xFFFF) << 16),
        (Float, Signed) if to.bits == 32 && from.bits == 32 && spec.round == Round::Nearest => {
            Some(|a| u64::from((a as u32 as i32 as f32).to_bits()))
        }
        (Float, Unsigned) if to.bits == 32 && from.bits == 32 && spec.round == Round::Nearest => {
            Some(|a| u64::from((a as u32 as f32).to_bits()))
        }
        _ => None,
    }
}
