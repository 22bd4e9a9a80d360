//! Arithmetic, and the failures that compiled code finds itself.

use super::{rows, settle};
use crate::context::{Context, interrupted as interruption};
use crate::fault::Fault;
use crate::value::StrObj;
use crate::{math as numbers, number};
use tessera_abi::rt::RtFn;

pub fn rows() -> Vec<(RtFn, *const u8)> {
    rows! {
        takes_1 fail_stack interrupted called_from;
        takes_2 float_pow round_int round_digits fail_to_int fail_unset;
        takes_3 math int_gcd int_pow float_mod float_floordiv fail;
        takes_4 fail_int math2;
    }
}

extern "C" fn int_pow(cx: &mut Context, base: i64, exponent: i64, span: i64) -> i64 {
    settle(cx, span, numbers::int_pow(base, exponent))
}

extern "C" fn float_pow(_: &mut Context, base: f64, exponent: f64) -> f64 {
    numbers::float_pow(base, exponent)
}

extern "C" fn float_mod(cx: &mut Context, a: f64, b: f64, span: i64) -> f64 {
    settle(cx, span, numbers::float_mod(a, b))
}

extern "C" fn float_floordiv(cx: &mut Context, a: f64, b: f64, span: i64) -> f64 {
    settle(cx, span, numbers::float_floordiv(a, b))
}

extern "C" fn round_int(cx: &mut Context, x: f64, span: i64) -> i64 {
    settle(cx, span, numbers::round_int(x))
}

extern "C" fn round_digits(_: &mut Context, x: f64, n: i64) -> f64 {
    number::round_digits(x, n)
}

extern "C" fn math(cx: &mut Context, number: i64, x: f64, span: i64) -> f64 {
    settle(cx, span, numbers::function(number, x))
}

extern "C" fn math2(cx: &mut Context, number: i64, x: f64, y: f64, span: i64) -> f64 {
    settle(cx, span, numbers::function2(number, x, y))
}

extern "C" fn int_gcd(cx: &mut Context, a: i64, b: i64, span: i64) -> i64 {
    settle(cx, span, numbers::gcd(a, b))
}

extern "C" fn fail(cx: &mut Context, code: i64, message: &StrObj, span: i64) {
    cx.fail(Fault::new(u16::try_from(code).unwrap_or(999), message.text()), span as u32);
}

extern "C" fn fail_int(cx: &mut Context, fault: i64, a: i64, b: i64, span: i64) {
    cx.fail(numbers::int_fault(fault, a, b), span as u32);
}

extern "C" fn fail_to_int(cx: &mut Context, x: f64, span: i64) {
    cx.fail(numbers::to_int_fault(x), span as u32);
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
