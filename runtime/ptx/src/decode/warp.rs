//! What the lanes of a warp do together.

use super::memory::{reduction, space};
use super::{Builder, Decoded, Stmt};
use crate::decode::args::Arg;
use crate::inst::*;
use crate::types::{Class, Ty};

pub fn decode<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    match s.name {
        "activemask" => {
            let d = s.dst(0, Ty::B32)?;
            b.emit(Op::ActiveMask(d));
            Ok(())
        }
        "shfl" => shuffle(b, s),
        "vote" => vote(b, s),
        "match" => matching(b, s),
        "redux" => {
            let ty = s.last_ty()?;
            let apply = reduction(s, ty).ok_or("unknown reduction")?;
            let (result, a, mask) = (s.dst(0, ty)?, s.src(b, 1, ty)?, s.src(b, 2, Ty::B32)?);
            b.emit(Op::Collective(Collective::Redux { apply, result, a }, mask));
            Ok(())
        }
        "elect" => {
            let (result, pred) = results(s, Ty::B32)?;
            let mask = s.src(b, 1, Ty::B32)?;
            b.emit(Op::Collective(Collective::Elect { result, pred }, mask));
            Ok(())
        }
        "ldmatrix" | "stmatrix" => matrix_move(b, s),
        "mma" => mma(b, s),
        _ => wgmma(b, s),
    }
}

/// A result and a predicate beside it.
fn results(s: &Stmt<'_>, ty: Ty) -> Decoded<(Reg, Reg)> {
    let reg = |arg: &Arg<'_>, ty: Ty| Ok::<_, String>(arg.destination(ty.width() as u8)?.map_or(NONE, |r| r.reg));
    match s.arg(0)? {
        Arg::Pair(d, p) => Ok((reg(d, ty)?, reg(p, Ty::PRED)?)),
        d => Ok((reg(d, ty)?, NONE)),
    }
}

fn shuffle<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    s.count(5..=5)?;
    let mode = match () {
        _ if s.has("up") => ShuffleMode::Up,
        _ if s.has("down") => ShuffleMode::Down,
        _ if s.has("bfly") => ShuffleMode::Butterfly,
        _ if s.has("idx") => ShuffleMode::Index,
        _ => return Err("unknown shuffle".into()),
    };
    let word = Ty::B32;
    let (result, pred) = results(s, word)?;
    let (a, lane, c, mask) = (s.src(b, 1, word)?, s.src(b, 2, word)?, s.src(b, 3, word)?, s.src(b, 4, word)?);
    b.emit(Op::Collective(Collective::Shuffle { mode, result, pred, a, b: lane, c }, mask));
    Ok(())
}

fn vote<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    s.count(3..=3)?;
    let mode = match () {
        _ if s.has("ballot") => VoteMode::Ballot,
        _ if s.has("any") => VoteMode::Any,
        _ if s.has("all") => VoteMode::All,
        _ if s.has("uni") => VoteMode::Uniform,
        _ => return Err("unknown vote".into()),
    };
    let result = s.dst(0, if mode == VoteMode::Ballot { Ty::B32 } else { Ty::PRED })?;
    let (pred, negate) = s.arg(1)?.predicate(b)?;
    let mask = s.src(b, 2, Ty::B32)?;
    b.emit(Op::Collective(Collective::Vote { mode, result, pred, negate }, mask));
    Ok(())
}

fn matching<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let ty = s.last_ty()?;
    let (result, pred) = results(s, Ty::B32)?;
    let (a, mask) = (s.src(b, 1, ty)?, s.src(b, 2, Ty::B32)?);
    let what = match s.has("any") {
        true => Collective::MatchAny { result, a, bits: ty.bits },
        false => Collective::MatchAll { result, pred, a, bits: ty.bits },
    };
    b.emit(Op::Collective(what, mask));
    Ok(())
}

/// All lanes take part.
fn whole(b: &mut Builder<'_>) -> Decoded<Reg> {
    b.constant(0xFFFF_FFFF)
}

fn matrix_move<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let count = ["x1", "x2", "x4"].iter().position(|x| s.has(x)).map(|at| 1u8 << at).ok_or("how many matrices?")?;
    if !s.has("m8n8") || !s.has("b16") {
        return Err("only 8 by 8 matrices of 16 bits are supported".into());
    }
    let load = s.name == "ldmatrix";
    let (value, address) = if load { (s.arg(0)?, s.arg(1)?) } else { (s.arg(1)?, s.arg(0)?) };
    let parts = value.items();
    if parts.len() != count.into() {
        return Err("the registers do not fit the matrices".into());
    }
    let regs = parts
        .iter()
        .map(|p| match load {
            true => Ok(p.destination(32)?.map_or(NONE, |r| r.reg)),
            false => p.source(b, Ty::B32),
        })
        .collect::<Decoded<Vec<_>>>()?;
    let list = b.list(regs);
    let (base, offset) = address.address(b)?;
    let transposed = s.has("trans");
    let space = space(s);
    let what = match load {
        true => Collective::LdMatrix { list, count, transposed, space, base, offset },
        false => Collective::StMatrix { list, count, transposed, space, base, offset },
    };
    let mask = whole(b)?;
    b.emit(Op::Collective(what, mask));
    Ok(())
}

/// The numbers of a shape such as `m16n8k16`.
fn shape(word: &str) -> Option<[u16; 3]> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

/// Registers that the fragments of a shape take: d, a, b, c.
pub fn fragment_registers(shape: &MmaShape) -> [usize; 4] {
    let of = |rows: u8, columns: u8, ty: Ty| {
        let bits = usize::from(rows) * usize::from(columns) * usize::from(ty.bits) / 32;
        bits.div_ceil(if ty.bits == 64 { 64 } else { 32 })
    };
    [
        of(shape.m, shape.n, shape.d),
        of(shape.m, shape.k, shape.a),
        of(shape.k, shape.n, shape.b),
        of(shape.m, shape.n, shape.c),
    ]
}

fn mma<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let [m, n, k] = s.mods.iter().find_map(|w| shape(w)).ok_or("no shape")?;
    let row_column = s.has("row") && s.has("col");
    let types = [s.ty(0)?, s.ty(1)?, s.ty(2)?, s.ty(3)?];
    let known = match (types[1].class, types[1].bits, types[0].bits) {
        (Class::Float | Class::Brain, 16, 16 | 32) => matches!([m, n, k], [16, 8, 8 | 16]),
        (Class::Tf32, 32, 32) => matches!([m, n, k], [16, 8, 4 | 8]),
        (Class::Float, 64, 64) => [m, n, k] == [8, 8, 4],
        (Class::Signed | Class::Unsigned, 8, 32) => matches!([m, n, k], [16, 8, 16 | 32]),
        (Class::E4m3 | Class::E5m2, 8, 32) => [m, n, k] == [16, 8, 32],
        _ => false,
    };
    if !known || !row_column || s.has("sp") {
        return Err("this matrix product is not supported".into());
    }
    let shape = MmaShape {
        m: m as u8,
        n: n as u8,
        k: k as u8,
        d: types[0],
        a: types[1],
        b: types[2],
        c: types[3],
        saturate: s.has("satfinite"),
    };
    s.count(4..=4)?;
    let wanted = fragment_registers(&shape);
    let mut regs = Vec::new();
    for (n, wanted) in wanted.into_iter().enumerate() {
        let parts = s.arg(n)?.items();
        if parts.len() != wanted {
            return Err(format!("operand {} takes {wanted} registers", n + 1));
        }
        let bits = if types[0].bits == 64 { 64 } else { 32 };
        for part in parts {
            regs.push(match n {
                0 => part.destination(bits)?.map_or(NONE, |r| r.reg),
                _ => part.source(b, Ty { bits, ..Ty::B32 })?,
            });
        }
    }
    let list = b.list(regs);
    b.kernel.shapes.push(shape);
    let shape = b.kernel.shapes.len() as u32 - 1;
    let mask = whole(b)?;
    b.emit(Op::Collective(Collective::Mma { list, shape }, mask));
    Ok(())
}

fn wgmma<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    if !s.has("mma_async") {
        // Products run where they stand, so nothing is left to wait for.
        b.emit(Op::Fence);
        return Ok(());
    }
    let [m, n, k] = s.mods.iter().find_map(|w| shape(w)).ok_or("no shape")?;
    let types = [s.ty(0)?, s.ty(1)?, s.ty(2)?];
    let brain = types[1].class == Class::Brain;
    if m != 64
        || k != 16
        || types[0] != Ty::F32
        || types[1].bits != 16
        || types[1] != types[2]
        || !(8..=256).contains(&n)
    {
        return Err("this matrix product is not supported".into());
    }
    let parts = s.arg(0)?.items();
    if parts.len() != usize::from(n) / 2 {
        return Err("the registers do not fit the shape".into());
    }
    for at in 4..s.args.len() {
        let wanted = u64::from(at < 6);
        if s.number(at)? != wanted {
            return Err("only plain, row by column products are supported".into());
        }
    }
    let regs = parts.iter().map(|p| p.destination(32)?.map(|r| r.reg).ok_or("a register is expected".into()));
    let regs = regs.collect::<Decoded<Vec<_>>>()?;
    let list = b.list(regs);
    let (x, y) = (s.src(b, 1, Ty::B64)?, s.src(b, 2, Ty::B64)?);
    let (scale, _) = s.arg(3)?.predicate(b)?;
    let mask = whole(b)?;
    b.emit(Op::Collective(Collective::Wgmma { list, n, a: x, b: y, scale, brain }, mask));
    Ok(())
}
