//! Barriers, fences, asynchronous copies and the end of a thread.

use super::{Builder, Decoded, Stmt};
use crate::decode::args::Arg;
use crate::inst::*;
use crate::types::Ty;

pub fn decode<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    match s.name {
        "ret" | "exit" => b.emit(Op::Exit),
        "trap" | "brkpt" => b.emit(Op::Trap),
        "membar" | "fence" => b.emit(Op::Fence),
        "bar" | "barrier" => return barrier(b, s),
        "cp" => return copy(b, s),
        "mbarrier" => return mbarrier(b, s),
        _ => b.emit(Op::Nop),
    }
    Ok(())
}

fn barrier<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let word = Ty::B32;
    if s.has("warp") {
        let mask = s.src(b, 0, word)?;
        b.emit(Op::Collective(Collective::WarpSync, mask));
        return Ok(());
    }
    if s.has("cluster") {
        // A cluster is one block here.
        if s.has("wait") {
            let id = b.constant(16)?;
            b.emit(Op::BarSync { id, count: NONE, aligned: false });
        } else {
            b.emit(Op::Fence);
        }
        return Ok(());
    }
    if s.has("red") {
        return barrier_reduction(b, s);
    }
    let id = s.src(b, 0, word)?;
    let count = if s.args.len() > 1 { s.src(b, 1, word)? } else { NONE };
    s.count(1..=2)?;
    match (s.has("sync"), s.has("arrive")) {
        (true, _) => b.emit(Op::BarSync { id, count, aligned: s.name == "bar" || s.has("aligned") }),
        (_, true) if count != NONE => b.emit(Op::BarArrive { id, count }),
        (_, true) => return Err("an arrival needs the number of threads".into()),
        _ => return Err("unknown barrier".into()),
    }
    Ok(())
}

fn barrier_reduction<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let reduction = match () {
        _ if s.has("popc") => Reduction::Popc,
        _ if s.has("and") => Reduction::And,
        _ if s.has("or") => Reduction::Or,
        _ => return Err("unknown reduction".into()),
    };
    s.count(3..=4)?;
    let result = s.dst(0, if reduction == Reduction::Popc { Ty::B32 } else { Ty::PRED })?;
    let id = s.src(b, 1, Ty::B32)?;
    let count = if s.args.len() == 4 { s.src(b, 2, Ty::B32)? } else { NONE };
    let (pred, negate) = s.arg(s.args.len() - 1)?.predicate(b)?;
    b.emit(Op::BarReduce { id, count, reduction, result, pred, negate });
    Ok(())
}

fn copy<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    if !s.has("async") {
        return Err("unknown copy".into());
    }
    match () {
        _ if s.has("bulk") => return bulk(b, s),
        _ if s.has("commit_group") => b.emit(Op::CopyCommit),
        _ if s.has("wait_all") => b.emit(Op::CopyWaitAll),
        _ if s.has("wait_group") => {
            let most = s.number(0)?.min(u64::from(u32::MAX)) as u32;
            b.emit(Op::CopyWait(most));
        }
        _ if s.has("mbarrier") => {
            let (base, offset) = s.arg(0)?.address(b)?;
            b.emit(Op::CopyArrive { base, offset, counted: !s.has("noinc") });
        }
        _ if s.has("ca") || s.has("cg") => {
            let (to, to_offset) = s.arg(0)?.address(b)?;
            let (from, from_offset) = s.arg(1)?.address(b)?;
            let bytes = s.number(2)?;
            if !matches!(bytes, 4 | 8 | 16) || s.has("cg") && bytes != 16 {
                return Err("a copy of so many bytes does not exist".into());
            }
            let source = if s.args.len() > 3 { s.src(b, 3, Ty::B32)? } else { NONE };
            b.emit(Op::CopyAsync { to, to_offset, from, from_offset, bytes: bytes as u8, source });
        }
        _ => return Err("unknown copy".into()),
    }
    Ok(())
}

/// Bulk copies: tiles of two dimensions into shared memory.
fn bulk<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let loads = s.has("tensor") && s.has("2d") && s.mods.iter().position(|m| m.starts_with("shared")).is_some();
    if !loads || s.mods.iter().position(|m| *m == "global") < s.mods.iter().position(|m| m.starts_with("shared")) {
        return Err("of the bulk copies only loads of two dimensions are supported".into());
    }
    let (to, 0) = s.arg(0)?.address(b)? else { return Err("an offset is not supported here".into()) };
    let Arg::Tensor(map, at) = s.arg(1)? else { return Err("a tensor map with coordinates is expected".into()) };
    let [x, y] = at.as_slice() else { return Err("two coordinates are expected".into()) };
    let (map, x, y) = (map.source(b, Ty::B64)?, x.source(b, Ty::B32)?, y.source(b, Ty::B32)?);
    let (bar, 0) = s.arg(2)?.address(b)? else { return Err("an offset is not supported here".into()) };
    b.emit(Op::TensorLoad { to, map, x, y, bar });
    Ok(())
}

fn mbarrier<'a>(b: &mut Builder<'a>, s: &Stmt<'a>) -> Decoded {
    let what = match s.mods.first().copied().unwrap_or_default() {
        "init" => Mbar::Init,
        "inval" => Mbar::Inval,
        "arrive" if s.has("expect_tx") => Mbar::ArriveExpectTx,
        "arrive" => Mbar::Arrive,
        "expect_tx" => Mbar::ExpectTx,
        "test_wait" | "try_wait" if s.has("parity") => Mbar::TestParity,
        "test_wait" | "try_wait" => Mbar::TestState,
        _ => return Err("unknown operation of an mbarrier".into()),
    };
    // The result comes first where there is one.
    let first = usize::from(!matches!(s.arg(0)?, Arg::Memory(..)));
    let result = match (first, what) {
        (0, _) => NONE,
        (_, Mbar::TestParity | Mbar::TestState) => s.dst(0, Ty::PRED)?,
        _ => s.arg(0)?.destination(64)?.map_or(NONE, |r| r.reg),
    };
    let (base, offset) = s.arg(first)?.address(b)?;
    let ty = if what == Mbar::TestState { Ty::B64 } else { Ty::B32 };
    let a = match s.args.get(first + 1) {
        Some(arg) => arg.source(b, ty)?,
        None if matches!(what, Mbar::Arrive) => b.constant(1)?,
        None if matches!(what, Mbar::Inval) => 0,
        None => return Err("an operand is missing".into()),
    };
    b.emit(Op::Mbarrier { what, base, offset, a, result });
    Ok(())
}
