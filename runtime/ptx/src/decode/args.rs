//! Operands.

use super::{Builder, Decoded};
use crate::inst::*;
use crate::types::{Class, Ty, mask};

/// A register as declared.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    pub reg: Reg,
    /// Bits; 1 for predicates.
    pub bits: u8,
}

/// An operand as written.
#[derive(Clone, Debug)]
pub enum Arg<'a> {
    Register(Register),
    Number(u64),
    /// A decimal fraction; its bits depend on the type.
    Fraction(f64),
    /// The bits of an f32 or f64, given in hexadecimal.
    FloatBits(u64, u8),
    /// A register that holds a symbol's address or a special register's value.
    Fixed(Reg),
    /// A special register that differs at every read.
    Clock,
    List(Vec<Arg<'a>>),
    Memory(Box<Arg<'a>>, i64),
    /// `[map, {x, y}]`.
    Tensor(Box<Arg<'a>>, Vec<Arg<'a>>),
    Name(&'a str),
    /// `a|b`.
    Pair(Box<Arg<'a>>, Box<Arg<'a>>),
    Not(Box<Arg<'a>>),
    Sink,
}

impl<'a> Arg<'a> {
    /// The register, for a result of so many bits.
    pub fn destination(&self, bits: u8) -> Decoded<Option<Register>> {
        match self {
            Arg::Sink => Ok(None),
            Arg::Register(r) if (r.bits == 1) == (bits == 1) && r.bits >= bits => Ok(Some(*r)),
            Arg::Register(r) => Err(format!("a register of {} bits takes a result of {bits}", r.bits)),
            _ => Err("a register is expected".into()),
        }
    }

    /// The register of a value of this type; constants get one.
    pub fn source(&self, b: &mut Builder<'a>, ty: Ty) -> Decoded<Reg> {
        let bits = ty.width() as u8;
        match self {
            Arg::Register(r) if (r.bits == 1) == (bits == 1) && r.bits >= bits => Ok(r.reg),
            Arg::Register(r) => Err(format!("a register of {} bits where {bits} are read", r.bits)),
            Arg::Fixed(reg) => Ok(*reg),
            Arg::Number(value) if ty.is_float() && ty.lanes == 1 && ty.bits >= 32 && *value < 1 << 24 => {
                let bits = fraction(*value as f64, ty)?;
                b.constant(bits)
            }
            Arg::Number(value) => b.constant(*value & mask(ty.width())),
            Arg::FloatBits(value, 32) if ty.class == Class::Float && ty.bits == 64 => {
                b.constant(f64::from(f32::from_bits(*value as u32)).to_bits())
            }
            Arg::FloatBits(value, 64) if ty.class == Class::Float && ty.bits == 32 => {
                b.constant(u64::from((f64::from_bits(*value) as f32).to_bits()))
            }
            Arg::FloatBits(value, _) => b.constant(*value),
            Arg::Fraction(value) => b.constant(fraction(*value, ty)?),
            Arg::Clock => {
                let to = b.register(0)?;
                b.emit(Op::Clock(to));
                Ok(to)
            }
            _ => Err("a register or a constant is expected".into()),
        }
    }

    /// Predicate and whether it is negated.
    pub fn predicate(&self, b: &mut Builder<'a>) -> Decoded<(Reg, bool)> {
        match self {
            Arg::Not(inner) => inner.source(b, Ty::PRED).map(|reg| (reg, true)),
            _ => self.source(b, Ty::PRED).map(|reg| (reg, false)),
        }
    }

    /// Base and offset of an address.
    pub fn address(&self, b: &mut Builder<'a>) -> Decoded<(Reg, i64)> {
        let Arg::Memory(base, offset) = self else { return Err("an address is expected".into()) };
        let reg = match &**base {
            Arg::Register(r) if r.bits < 32 => return Err("an address in a small register".into()),
            Arg::Register(r) => r.reg,
            Arg::Fixed(reg) => *reg,
            Arg::Number(value) => b.constant(*value)?,
            _ => return Err("an address is expected".into()),
        };
        Ok((reg, *offset))
    }

    /// The operands of `{…}`, or the operand alone.
    pub fn items(&self) -> &[Arg<'a>] {
        match self {
            Arg::List(items) => items,
            other => std::slice::from_ref(other),
        }
    }
}

fn fraction(value: f64, ty: Ty) -> Decoded<u64> {
    match (ty.class, ty.bits) {
        (Class::Float | Class::Bits, 32) => Ok(u64::from((value as f32).to_bits())),
        (Class::Float | Class::Bits, 64) => Ok(value.to_bits()),
        _ => Err("a fraction where none can be".into()),
    }
}
