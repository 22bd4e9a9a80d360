//! Arithmetic, and the failures that compiled code finds itself.

use super::{rows, settle};
use crate::context::{Context, interrupted as interruption};
use crate::fault::Fault;
use crate::math as numbers;
use crate::value::StrObj;
use tessera_abi::rt::RtFn;

pub fn rows() -> Vec<(RtFn, *const u8)> {
    rows! {
        takes_1 fail_stack fail_step interrupted called_from;
        takes_2 round_digits fail_unset;
        takes_3 int_gcd fail;
        takes_4 number;
    }
}

extern "C" fn number(cx: &mut Context, number: i64, a: u64, b: u64, span: i64) -> u64 {
    settle(cx, span, numbers::apply(number, a, b))
}

extern "C" fn round_digits(_: &mut Context, x: f64, n: i64) -> f64 {
    crate::number::round_digits(x, n)
}

extern "C" fn int_gcd(cx: &mut Context, a: i64, b: i64, span: i64) -> i64 {
    settle(cx, span, numbers::gcd(a, b))
}

extern "C" fn fail(cx: &mut Context, code: i64, message: &StrObj, span: i64) {
    cx.fail(Fault::new(u16::try_from(code).unwrap_or(999), message.text()), span as u32);
}

extern "C" fn fail_step(cx: &mut Context, span: i64) {
    cx.fail(numbers::step_zero(), span as u32);
}

extern "C" fn called_from(cx: &mut Context, span: i64) {
    cx.called_from(span as u32);
}

extern "C" fn fail_stack(cx: &mut Context, span: i64) {
    let fault =
        Fault::new(709, "the calls are nested too deeply").note("a recursion that does not end is the usual reason");
    cx.fail(fault, span as u32);
}

extern "C" fn fail_unset(cx: &mut Context, global: i64, span: i64) {
    let name = cx.global(global as u32).map_or(String::new(), |g| g.0.to_string());
    cx.fail(Fault::new(107, format!("`{name}` is used before it has a value")), span as u32);
}

extern "C" fn interrupted(cx: &mut Context, span: i64) {
    cx.fail(interruption(), span as u32);
}
