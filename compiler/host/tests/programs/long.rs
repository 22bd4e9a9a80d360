//! Long and hot programs.

use crate::build::*;
use std::time::Instant;
use tessera_abi::rt::RtFn;
use tessera_base::CmpOp as Cmp;
use tessera_ir::host::*;
use tessera_ops::numbers::NumberOp;
use tessera_runtime::context::Context;

/// A module body of so many statements of several kinds, over globals.
fn straight(statements: usize) -> Build {
    let mut b = Build::new();
    let ints = b.list_of(INT);
    let (xs, n) = (b.global("xs", ints), b.global("n", INT));
    let mut body = vec![HStmt::SetGlobal(xs, expr(HExprKind::List(vec![int(1)]), ints)), HStmt::SetGlobal(n, int(0))];
    for i in 0..statements as i64 {
        let place = HLvalue { root: Root::Global(xs), root_ty: ints, steps: vec![] };
        let get = rt(RtFn::list_get, vec![b.get_global(xs), int(-1)], INT);
        body.push(match i % 3 {
            0 => HStmt::SetGlobal(n, op(NumberOp::int_add, b.get_global(n), int(1))),
            1 => mutate(place, Change::Apply { func: RtFn::list_push, args: vec![op(NumberOp::int_mul, get, int(1))] }),
            _ => HStmt::If {
                test: rel(Cmp::Gt, b.get_global(n), int(i)),
                then: vec![HStmt::SetGlobal(n, int(0))],
                otherwise: vec![],
            },
        });
    }
    let len = rt(RtFn::list_len, vec![b.get_global(xs)], INT);
    body.extend(b.print(len));
    b.entry(body);
    b
}

/// Time grows with the length, not with its square.
#[test]
fn long_bodies_compile_in_linear_time() {
    let time = |n: usize| {
        let b = straight(n);
        let start = Instant::now();
        let text = output(&b);
        (start.elapsed().as_secs_f64(), text)
    };
    let (short, _) = time(1500);
    let (long, text) = time(6000);
    assert_eq!(text, "2001\n");
    assert!(long < 12.0 * short + 0.1, "{short} s for 1500 statements, {long} s for 6000");
}

/// Speed of hot loops; run with `--ignored --nocapture --release` to see numbers.
#[test]
#[ignore = "a measurement"]
fn speed() {
    for n in [5_000, 20_000] {
        let b = straight(n);
        let sink = Sink::default();
        let mut cx = Context::new(Box::new(sink), false);
        let start = Instant::now();
        drop(link(&mut cx, &b.program));
        println!("compile {n} statements: {:?}", start.elapsed());
    }
    for (name, b) in [
        ("int loop 1e8", int_loop()),
        ("list loop 1e8", list_loop()),
        ("calls fib(32)", fib()),
        ("nested lists 1e7", nested()),
    ] {
        let start = Instant::now();
        let text = output(&b);
        println!("{name}: {:?} {}", start.elapsed(), text.trim());
    }
}

fn int_loop() -> Build {
    let mut b = Build::new();
    let (i, s) = (b.local("i", INT), b.local("s", INT));
    let body = vec![b.set(s, op(NumberOp::int_add, b.get(s), op(NumberOp::int_mod, b.get(i), int(7))))];
    let shown = b.get(s);
    let mut all = vec![b.set(s, int(0)), for_range(i, int(0), int(100_000_000), int(1), body)];
    all.extend(b.print(shown));
    b.entry(all);
    b
}

fn list_loop() -> Build {
    let mut b = Build::new();
    let floats = b.list_of(FLOAT);
    let (xs, i, s) = (b.local("xs", floats), b.local("i", INT), b.local("s", FLOAT));
    let index = op(NumberOp::int_mod, b.get(i), int(8));
    let elem = rt(RtFn::list_get, vec![b.get(xs), index.clone()], FLOAT);
    let store = mutate(b.lvalue(xs, vec![Step::Index(index)]), Change::Set(b.get(s)));
    let body = vec![b.set(s, op(NumberOp::float_add, op(NumberOp::float_mul, b.get(s), float(0.5)), elem)), store];
    let shown = b.get(s);
    let mut all = vec![
        b.set(xs, expr(HExprKind::List((0..8).map(|i| float(i as f64)).collect()), floats)),
        b.set(s, float(0.0)),
        for_range(i, int(0), int(100_000_000), int(1), body),
    ];
    all.extend(b.print(shown));
    b.entry(all);
    b
}

fn fib() -> Build {
    let mut b = Build::new();
    let n = b.local("n", INT);
    let call =
        |by: i64, n: HExpr| expr(HExprKind::Call { func: FnId(0), args: vec![op(NumberOp::int_sub, n, int(by))] }, INT);
    let test = rel(Cmp::Lt, b.get(n), int(2));
    let sum = op(NumberOp::int_add, call(1, b.get(n)), call(2, b.get(n)));
    let body = vec![
        HStmt::If { test, then: vec![HStmt::Return(Some(b.get(n)))], otherwise: vec![] },
        HStmt::Return(Some(sum)),
    ];
    let f = b.function("fib", &[n], &[], INT, body);
    let body = b.print(expr(HExprKind::Call { func: f, args: vec![int(32)] }, INT));
    b.entry(body);
    b
}

fn nested() -> Build {
    let mut b = Build::new();
    let ints = b.list_of(INT);
    let lists = b.list_of(ints);
    let (xs, row, i, s) = (b.local("xs", lists), b.local("row", ints), b.local("i", INT), b.local("s", INT));
    let inner = |x: i64| expr(HExprKind::List(vec![int(x), int(x + 1)]), ints);
    let at = op(NumberOp::int_mod, b.get(i), int(2));
    let elem = rt(RtFn::list_get, vec![rt(RtFn::list_get, vec![b.get(xs), at.clone()], ints), int(1)], INT);
    let body = vec![
        b.set(s, op(NumberOp::int_add, b.get(s), elem)),
        b.set(row, rt(RtFn::list_get, vec![b.get(xs), at], ints)),
    ];
    let shown = b.get(s);
    let mut all = vec![
        b.set(xs, expr(HExprKind::List(vec![inner(0), inner(5)]), lists)),
        b.set(s, int(0)),
        for_range(i, int(0), int(10_000_000), int(1), body),
    ];
    all.extend(b.print(shown));
    b.entry(all);
    b
}
