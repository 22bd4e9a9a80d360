//! Profiles of functions, which programs ask for.

use super::{rows, settle};
use crate::context::Context;
use crate::fault::Fault;
use crate::value::{TypeTable, new_list, new_str};
use crate::world;
use crate::{cuda, opencl};
use tessera_abi::rt::RtFn;

pub fn rows() -> Vec<(RtFn, *const u8)> {
    rows! {
        takes_2 measure_end;
        takes_3 measure_begin measure_turn;
    }
}

/// A function is to run so often before it is measured, and so often measured.
extern "C" fn measure_begin(cx: &mut Context, warmup: i64, runs: i64, span: i64) {
    let wrong = |what: &str, n: i64, least: i64| {
        Fault::new(711, format!("`{what}` of `graph.profile` is at least {least}, and here it is {n}"))
    };
    match (warmup, runs) {
        (..0, _) => cx.fail(wrong("warmup", warmup, 0), span as u32),
        (_, ..1) => cx.fail(wrong("runs", runs, 1), span as u32),
        _ => cx.measure(warmup),
    }
}

/// A run ended. Its value, which stands behind it, keeps it from being left out.
extern "C" fn measure_turn(cx: &mut Context, _value: u64, _ty: i64, _span: i64) {
    cuda::wait();
    opencl::wait();
    cx.measured_turn();
}

/// What was measured, a line for each row; of several processes by the first one.
extern "C" fn measure_end(cx: &mut Context, _ty: i64, span: i64) -> u64 {
    let lines = cx.measured().join("\n");
    let lines = match world::world() {
        None => Ok(lines),
        Some(w) => w.ask("a profile", || lines.into_bytes()).map(|b| String::from_utf8_lossy(&b).into_owned()),
    };
    let lines = settle(cx, span, lines);
    let words = lines.lines().map(new_str).collect();
    new_list(&cx.types, TypeTable::STR, words)
}
