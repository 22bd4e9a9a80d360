//! Scalars, branches and loops.

use crate::build::*;
use tessera_base::CmpOp as Cmp;
use tessera_ir::host::*;
use tessera_ops::numbers::NumberOp;

/// Prints one expression.
fn printed(make: impl FnOnce(&mut Build) -> HExpr) -> Build {
    let mut b = Build::new();
    let e = make(&mut b);
    let body = b.print(e);
    b.entry(body);
    b
}

/// An operand that the compiler cannot see through: a local of the entry.
fn binary(op: NumberOp, a: i64, c: i64, constant: bool) -> Build {
    let mut b = Build::new();
    let (x, y) = (b.local("x", INT), b.local("y", INT));
    let right = if constant { int(c) } else { b.get(y) };
    let e = at(crate::build::op(op, b.get(x), right), 42);
    let mut body = vec![b.set(x, int(a)), b.set(y, int(c))];
    body.extend(b.print(e));
    b.entry(body);
    b
}

#[test]
fn floor_division_and_remainder_of_all_signs() {
    let values = [i64::MIN, -9, -8, -7, -1, 0, 1, 7, 8, 9, i64::MAX];
    let divisors = [i64::MIN, -4, -3, -2, -1, 1, 2, 3, 4, 7, i64::MAX];
    let mut b = Build::new();
    let (x, y) = (b.local("x", INT), b.local("y", INT));
    let mut body = vec![];
    let mut wanted = String::new();
    for a in values {
        for d in divisors {
            if a == i64::MIN && d == -1 {
                continue;
            }
            body.extend([b.set(x, int(a)), b.set(y, int(d))]);
            for right in [b.get(y), int(d)] {
                for o in [NumberOp::int_floor_div, NumberOp::int_mod] {
                    let e = op(o, b.get(x), right.clone());
                    body.extend(b.print(e));
                }
                let q = (a as i128).div_euclid(d as i128) - i128::from(d < 0 && (a as i128).rem_euclid(d as i128) != 0);
                let q =
                    if d < 0 && (a as i128).rem_euclid(d as i128) != 0 { q } else { (a as i128).div_euclid(d as i128) };
                wanted += &format!("{q}\n{}\n", a as i128 - q * d as i128);
            }
        }
    }
    b.entry(body);
    assert_eq!(output(&b), wanted);
}

#[test]
fn overflow_and_zero_are_told_with_the_operands() {
    let cases = [
        (NumberOp::int_add, i64::MAX, 1, 701, "9223372036854775807 + 1 does not fit 64 bits"),
        (NumberOp::int_sub, i64::MIN, 1, 701, "-9223372036854775808 - 1 does not fit 64 bits"),
        (NumberOp::int_mul, 1 << 62, 2, 701, "4611686018427387904 * 2 does not fit 64 bits"),
        (NumberOp::int_floor_div, i64::MIN, -1, 701, "-9223372036854775808 // -1 does not fit 64 bits"),
        (NumberOp::int_floor_div, 10, 0, 702, "10 // 0 divides by zero"),
        (NumberOp::int_mod, 10, 0, 702, "10 % 0 divides by zero"),
        (NumberOp::int_shl, 1, 63, 701, "1 << 63 does not fit 64 bits"),
        (NumberOp::int_shl, 1, 64, 701, "1 << 64 does not fit 64 bits"),
        (NumberOp::int_shl, 1, -1, 711, "a shift by -1 bits: the number is negative"),
        (NumberOp::int_shr, 1, -1, 711, "a shift by -1 bits: the number is negative"),
        (NumberOp::int_pow, 2, -1, 711, "2 ** -1: the exponent of an int power is negative"),
        (NumberOp::int_pow, 10, 19, 701, "10 ** 19 does not fit 64 bits"),
    ];
    for (o, a, c, code, message) in cases {
        for constant in [false, true] {
            assert_eq!(failure(&binary(o, a, c, constant)), (code, message.into(), 42), "{o:?} {a} {c}");
        }
    }
}

#[test]
fn shifts_and_powers() {
    for (o, a, c, result) in [
        (NumberOp::int_shl, -1, 63, i64::MIN),
        (NumberOp::int_shl, 0, 100, 0),
        (NumberOp::int_shr, -8, 100, -1),
        (NumberOp::int_shr, -8, 1, -4),
        (NumberOp::int_pow, -3, 3, -27),
        (NumberOp::int_pow, 5, 2, 25),
        (NumberOp::int_xor, 6, 3, 5),
        (NumberOp::int_mod, i64::MIN, -1, 0),
    ] {
        assert_eq!(output(&binary(o, a, c, false)), format!("{result}\n"), "{o:?} {a} {c}");
    }
}

#[test]
fn floats() {
    let cases = [
        (op(NumberOp::float_div, float(1.0), float(0.0)), "inf"),
        (op(NumberOp::float_floor_div, float(-7.5), float(2.0)), "-4.0"),
        (op(NumberOp::float_mod, float(-7.5), float(2.0)), "0.5"),
        (op(NumberOp::float_pow, float(2.0), float(0.5)), "1.4142135623730951"),
        (op(NumberOp::float_mul, float(1e300), float(10.0)), "1e+301"),
        (number(NumberOp::float_neg, vec![float(0.0)]), "-0.0"),
        (number(NumberOp::float_to_int, vec![float(-3.9)]), "-3"),
        (number(NumberOp::int_to_float, vec![int(3)]), "3.0"),
        (rel(Cmp::Ne, float(f64::NAN), float(f64::NAN)), "True"),
        (rel(Cmp::Lt, float(1.0), float(f64::NAN)), "False"),
        (number(NumberOp::math_sqrt, vec![float(2.0)]), "1.4142135623730951"),
        (number(NumberOp::float_floor, vec![float(-1.5)]), "-2"),
        (number(NumberOp::float_round, vec![float(2.5)]), "2"),
    ];
    for (e, text) in cases {
        assert_eq!(output(&printed(|_| e)), format!("{text}\n"));
    }
    let e = number(NumberOp::float_to_int, vec![float(1e19)]);
    assert_eq!(failure(&printed(|_| e)).1, "1e+19 does not fit 64 bits");
    let zero = number(NumberOp::int_to_float, vec![int(0)]);
    let one = number(NumberOp::int_to_float, vec![int(1)]);
    let e = op(NumberOp::int_div, one, zero);
    assert_eq!(failure(&printed(|_| e)), (702, "1 / 0 divides by zero".into(), 1));
    let e = number(NumberOp::math_sqrt, vec![float(-1.0)]);
    assert_eq!(failure(&printed(|_| e)), (711, "`sqrt` has no value at -1.0".into(), 1));
}

/// Prints what a range runs over; a step of 1 is known to the compiler, others are not.
fn range(start: i64, stop: i64, by: i64) -> Build {
    let mut b = Build::new();
    let (i, s) = (b.local("i", INT), b.local("s", INT));
    let shown = b.get(i);
    let body = b.print(shown);
    let step = if by == 1 { int(1) } else { b.get(s) };
    let count = for_range(i, int(start), int(stop), step, body);
    b.entry(vec![b.set(s, int(by)), count]);
    b
}

#[test]
fn ranges_do_not_overflow() {
    assert_eq!(output(&range(i64::MAX - 2, i64::MAX, 1)), format!("{}\n{}\n", i64::MAX - 2, i64::MAX - 1));
    assert_eq!(output(&range(3, 3, 1)), "");
    assert_eq!(output(&range(i64::MIN, i64::MAX, i64::MAX)), format!("{}\n-1\n{}\n", i64::MIN, i64::MAX - 1));
    assert_eq!(output(&range(5, -1, -2)), "5\n3\n1\n");
    assert_eq!(output(&range(0, 7, 3)), "0\n3\n6\n");
    assert_eq!(output(&range(0, 7, -1)), "");
    assert_eq!(output(&range(i64::MAX, i64::MIN, i64::MIN)), format!("{}\n-1\n", i64::MAX));
    assert_eq!(failure(&range(0, 7, 0)), (711, "the step of `range` is 0".into(), 8));
}

#[test]
fn loops_break_and_continue() {
    // while True: i += 1; if i % 2 == 0: continue; if i > 7: break; print(i)
    let mut b = Build::new();
    let i = b.local("i", INT);
    let next = b.set(i, op(NumberOp::int_add, b.get(i), int(1)));
    let even = rel(Cmp::Eq, op(NumberOp::int_mod, b.get(i), int(2)), int(0));
    let large = rel(Cmp::Gt, b.get(i), int(7));
    let shown = b.get(i);
    let mut body = vec![
        next,
        HStmt::If { test: even, then: vec![HStmt::Continue], otherwise: vec![] },
        HStmt::If { test: large, then: vec![HStmt::Break], otherwise: vec![] },
    ];
    body.extend(b.print(shown));
    let test = expr(HExprKind::Bool(true), BOOL);
    b.entry(vec![b.set(i, int(0)), HStmt::While { test, body, span: span(3) }]);
    assert_eq!(output(&b), "1\n3\n5\n7\n");
}

#[test]
fn and_or_run_the_right_operand_only_when_needed() {
    let mut b = Build::new();
    let v = b.local("v", BOOL);
    let n = b.local("n", STR);
    let name = b.get(n);
    let mut body = b.print(name);
    body.push(HStmt::Return(Some(b.get(v))));
    let t = b.function("t", &[n, v], &[], BOOL, body);
    let call = |b: &mut Build, name: &str, v: bool| {
        let args = vec![b.str(name), expr(HExprKind::Bool(v), BOOL)];
        Box::new(expr(HExprKind::Call { func: t, args }, BOOL))
    };
    let mut body = vec![];
    for (is_and, left, right) in [(true, false, true), (true, true, false), (false, true, false), (false, false, true)]
    {
        let (l, r) = (call(&mut b, "left", left), call(&mut b, "right", right));
        let e = expr(if is_and { HExprKind::And(l, r) } else { HExprKind::Or(l, r) }, BOOL);
        body.extend(b.print(e));
    }
    b.entry(body);
    assert_eq!(output(&b), "left\nFalse\nleft\nright\nFalse\nleft\nTrue\nleft\nright\nTrue\n");
}

#[test]
fn recursion_ends_with_a_message() {
    let mut b = Build::new();
    let n = b.local("n", INT);
    let deeper = expr(HExprKind::Call { func: FnId(0), args: vec![op(NumberOp::int_add, b.get(n), int(1))] }, INT);
    let f = b.function("f", &[n], &[], INT, vec![HStmt::Return(Some(op(NumberOp::int_add, deeper, int(1))))]);
    let call = expr(HExprKind::Call { func: f, args: vec![int(0)] }, INT);
    b.entry(vec![HStmt::Expr(call)]);
    assert_eq!(failure(&b).0, 709);
}

#[test]
fn an_interrupt_ends_a_loop() {
    let mut b = Build::new();
    let test = expr(HExprKind::Bool(true), BOOL);
    b.entry(vec![HStmt::While { test, body: vec![], span: span(5) }]);
    let sink = Sink::default();
    let mut cx = tessera_runtime::context::Context::new(Box::new(sink.clone()), false);
    let flag = cx.interrupt_flag();
    let setter = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(30));
        flag.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let (_, stop) = run_in(&mut cx, &sink, &b.program);
    assert!(matches!(stop, Some(tessera_runtime::context::Stop::Error(e)) if e.code == 713 && e.span == 5));
    assert!(setter.join().is_ok());
}
