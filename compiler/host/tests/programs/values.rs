//! Strings, lists, dicts, records, closures: value semantics and who owns what.

use crate::build::*;
use tessera_abi::rt::RtFn;
use tessera_base::CmpOp as Cmp;
use tessera_ir::host::*;
use tessera_ops::numbers::NumberOp;
use tessera_runtime::context::{Context, Stop};

fn list(items: Vec<HExpr>, ty: TypeId) -> HExpr {
    expr(HExprKind::List(items), ty)
}

fn point(b: &mut Build) -> TypeId {
    let fields = vec![("x".into(), INT), ("name".into(), STR)];
    b.ty(HostType::Struct { name: "P".into(), fields })
}

#[test]
fn containers_print_as_python_prints_them() {
    let mut b = Build::new();
    let ints = b.list_of(INT);
    let one = b.ty(HostType::Tuple(vec![STR]));
    let four = b.ty(HostType::Tuple(vec![INT, FLOAT, BOOL, NONE]));
    let p = point(&mut b);
    let points = b.list_of(p);
    let dict = b.ty(HostType::Dict(STR, ints));
    let d = b.local("d", dict);
    let only = b.str("only");
    let only = expr(HExprKind::Record(vec![only]), one);
    let mixed = vec![int(1), float(2.5), expr(HExprKind::Bool(true), BOOL), expr(HExprKind::None, NONE)];
    let quoted = b.str("d'e");
    let points = list(vec![expr(HExprKind::Record(vec![int(1), quoted]), p)], points);
    let key = b.str("k");
    let new = rt(RtFn::dict_new, vec![expr(HExprKind::TypeOf(dict), INT)], dict);
    let set = mutate(b.lvalue(d, vec![Step::Key(key)]), Change::Set(list(vec![int(1)], ints)));
    let mut body = vec![b.set(d, new), set];
    let shown = b.get(d);
    for e in [only, expr(HExprKind::Record(mixed), four), points, shown] {
        body.extend(b.print(e));
    }
    b.entry(body);
    assert_eq!(output(&b), "('only',)\n(1, 2.5, True, None)\n[P(x=1, name=\"d'e\")]\n{'k': [1]}\n");
}

#[test]
fn a_copy_does_not_see_changes() {
    let mut b = Build::new();
    let ints = b.list_of(INT);
    let nested = b.list_of(ints);
    let (a, c) = (b.local("a", nested), b.local("c", nested));
    let inner = |x: i64| list(vec![int(x), int(x + 1)], ints);
    let first = list(vec![inner(1), inner(3)], nested);
    let steps = vec![Step::Index(int(0)), Step::Index(int(-1))];
    let mut body = vec![b.set(a, first), b.set(c, b.get(a)), mutate(b.lvalue(a, steps), Change::Set(int(9)))];
    let push = Change::Apply { func: RtFn::list_push, args: vec![int(7)] };
    body.push(mutate(b.lvalue(c, vec![Step::Index(int(1))]), push));
    for id in [a, c] {
        let e = b.get(id);
        body.extend(b.print(e));
    }
    b.entry(body);
    assert_eq!(output(&b), "[[1, 9], [3, 4]]\n[[1, 2], [3, 4, 7]]\n");
}

#[test]
fn a_list_can_be_extended_by_itself() {
    let mut b = Build::new();
    let strs = b.list_of(STR);
    let xs = b.local("xs", strs);
    let items = vec![b.str("a"), b.str("b")];
    let extend = Change::Apply { func: RtFn::list_extend, args: vec![b.get(xs)] };
    let first = rt(RtFn::list_get, vec![b.get(xs), int(0)], STR);
    let push = Change::Apply { func: RtFn::list_push, args: vec![first.clone()] };
    let remove = Change::Apply { func: RtFn::list_remove, args: vec![first] };
    let mut body = vec![b.set(xs, list(items, strs))];
    for change in [extend, push, remove] {
        body.push(mutate(b.lvalue(xs, vec![]), change));
    }
    let e = b.get(xs);
    body.extend(b.print(e));
    b.entry(body);
    assert_eq!(output(&b), "['b', 'a', 'b', 'a']\n");
}

#[test]
fn appending_in_a_loop_is_linear() {
    let mut b = Build::new();
    let ints = b.list_of(INT);
    let (xs, i, s) = (b.local("xs", ints), b.local("i", INT), b.local("s", STR));
    let push = mutate(b.lvalue(xs, vec![]), Change::Apply { func: RtFn::list_push, args: vec![b.get(i)] });
    let text = b.str("ab");
    let grow = b.set(s, rt(RtFn::str_concat, vec![b.get(s), text], STR));
    let empty = b.str("");
    let mut body = vec![
        b.set(xs, list(vec![], ints)),
        b.set(s, empty),
        for_range(i, int(0), int(300_000), int(1), vec![push, grow]),
    ];
    for e in [rt(RtFn::list_len, vec![b.get(xs)], INT), rt(RtFn::str_len, vec![b.get(s)], INT)] {
        body.extend(b.print(e));
    }
    b.entry(body);
    let start = std::time::Instant::now();
    assert_eq!(output(&b), "300000\n600000\n");
    assert!(start.elapsed().as_secs() < 5);
}

#[test]
fn strings_double_and_grow_without_touching_copies() {
    let mut b = Build::new();
    let (s, t) = (b.local("s", STR), b.local("t", STR));
    let start = b.str("ab");
    let tail = b.str("c");
    let doubled = rt(RtFn::str_concat, vec![b.get(s), b.get(s)], STR);
    let both = rt(RtFn::str_concat, vec![rt(RtFn::str_concat, vec![b.get(s), tail], STR), b.get(t)], STR);
    let mut body = vec![b.set(s, start), b.set(s, doubled), b.set(t, b.get(s)), b.set(s, both)];
    for id in [s, t] {
        let e = b.get(id);
        body.extend(b.print(e));
    }
    b.entry(body);
    assert_eq!(output(&b), "ababcabab\nabab\n");
}

#[test]
fn dicts() {
    let mut b = Build::new();
    let dict = b.ty(HostType::Dict(STR, INT));
    let strs = b.list_of(STR);
    let pair = b.ty(HostType::Tuple(vec![STR, INT]));
    let pairs = b.list_of(pair);
    let (d, e) = (b.local("d", dict), b.local("e", dict));
    let mut body = vec![b.set(d, rt(RtFn::dict_new, vec![expr(HExprKind::TypeOf(dict), INT)], dict))];
    for (key, value) in [("one", 1), ("two", 2), ("three", 3)] {
        let key = b.str(key);
        body.push(mutate(b.lvalue(d, vec![Step::Key(key)]), Change::Set(int(value))));
    }
    body.push(b.set(e, b.get(d)));
    let (key, other) = (b.str("two"), b.str("one"));
    body.push(mutate(b.lvalue(d, vec![]), Change::Apply { func: RtFn::dict_delete, args: vec![key.clone()] }));
    let old = rt(RtFn::dict_get, vec![b.get(d), other.clone()], INT);
    body.push(mutate(b.lvalue(d, vec![Step::Key(other)]), Change::Set(op(NumberOp::int_add, old, int(10)))));
    let shown = [
        b.get(d),
        b.get(e),
        rt(RtFn::dict_keys, vec![b.get(d)], strs),
        rt(RtFn::dict_items, vec![b.get(d), expr(HExprKind::TypeOf(pairs), INT)], pairs),
        rt(RtFn::dict_get_or, vec![b.get(d), key.clone(), int(-1)], INT),
        rt(RtFn::value_eq, vec![b.get(d), b.get(e), expr(HExprKind::TypeOf(dict), INT)], BOOL),
    ];
    for e in shown {
        body.extend(b.print(e));
    }
    let misspelt = b.str("thre");
    let missing = at(rt(RtFn::dict_get, vec![b.get(d), misspelt], INT), 33);
    body.extend(b.print(missing));
    b.entry(body);
    let (text, stop) = run(&b.program);
    assert_eq!(
        text,
        "{'one': 11, 'three': 3}\n{'one': 1, 'two': 2, 'three': 3}\n['one', 'three']\n[('one', 11), ('three', 3)]\n-1\nFalse\n"
    );
    let Some(Stop::Error(error)) = stop else { panic!("no failure") };
    assert_eq!((error.code, error.message.as_str(), error.span), (704, "the key 'thre' is not in the dict", 33));
    assert_eq!(error.notes, ["there is a key 'three'"]);
}

#[test]
fn closures_keep_what_they_captured() {
    let mut b = Build::new();
    let ints = b.list_of(INT);
    let ty = b.ty(HostType::Fn { params: vec![FLOAT, INT], ret: FLOAT });
    // lambda x, i: x * xs[i]
    let (xs, x, i) = (b.local("xs", ints), b.local("x", FLOAT), b.local("i", INT));
    let elem = rt(RtFn::list_get, vec![b.get(xs), b.get(i)], INT);
    let value = op(NumberOp::float_mul, b.get(x), number(NumberOp::int_to_float, vec![elem]));
    let code = b.function("lambda", &[x, i], &[xs], FLOAT, vec![HStmt::Return(Some(value))]);
    let (a, f) = (b.local("a", ints), b.local("f", ty));
    let make = expr(HExprKind::Closure { func: code, captures: vec![b.get(a)] }, ty);
    let mut body = vec![
        b.set(a, list(vec![int(2), int(3)], ints)),
        b.set(f, make),
        mutate(b.lvalue(a, vec![Step::Index(int(1))]), Change::Set(int(100))),
    ];
    for i in [1, -3] {
        let call = expr(HExprKind::CallClosure { func: b.get(f).into(), args: vec![float(1.5), int(i)] }, FLOAT);
        body.extend(b.print(call));
    }
    b.entry(body);
    let (text, stop) = run(&b.program);
    assert_eq!(text, "4.5\n");
    assert!(
        matches!(stop, Some(Stop::Error(e)) if e.code == 703 && e.message == "index -3 is out of range for a list of length 2")
    );
}

#[test]
fn sorting_is_stable_and_takes_nan() {
    let mut b = Build::new();
    let floats = b.list_of(FLOAT);
    let pair = b.ty(HostType::Tuple(vec![INT, STR]));
    let pairs = b.list_of(pair);
    let numbers = list([2.0, f64::NAN, -1.0, 0.5].map(float).to_vec(), floats);
    let mut items = vec![];
    for (n, s) in [(2, "b"), (1, "z"), (2, "a")] {
        let s = b.str(s);
        items.push(expr(HExprKind::Record(vec![int(n), s]), pair));
    }
    let keys = b.list_of(INT);
    let by = list(vec![int(1), int(0), int(1)], keys);
    let tuples = list(items, pairs);
    let shown = [
        rt(RtFn::list_sorted, vec![numbers.clone(), int(0)], floats),
        rt(RtFn::list_sorted, vec![numbers, int(1)], floats),
        rt(RtFn::list_sorted, vec![tuples.clone(), int(0)], pairs),
        rt(RtFn::list_sorted_by, vec![tuples, by, int(1)], pairs),
    ];
    let mut body = vec![];
    for e in shown {
        body.extend(b.print(e));
    }
    b.entry(body);
    assert_eq!(
        output(&b),
        "[-1.0, 0.5, 2.0, nan]\n[nan, 2.0, 0.5, -1.0]\n[(1, 'z'), (2, 'a'), (2, 'b')]\n[(2, 'b'), (2, 'a'), (1, 'z')]\n"
    );
}

#[test]
fn globals_keep_their_values_after_a_failure() {
    let mut b = Build::new();
    let ints = b.list_of(INT);
    let xs = b.global("xs", ints);
    let late = b.global("late", ints);
    b.entry(vec![HStmt::SetGlobal(xs, list(vec![int(1)], ints))]);
    let sink = Sink::default();
    let mut cx = Context::new(Box::new(sink.clone()), false);
    assert_eq!(run_in(&mut cx, &sink, &b.program), (String::new(), None));
    // A failing change leaves the list as it was.
    let mut second = b.clone();
    let place = HLvalue { root: Root::Global(xs), root_ty: ints, steps: vec![] };
    let remove = Change::Apply { func: RtFn::list_remove, args: vec![int(5)] };
    second.entry(vec![mutate(place.clone(), remove)]);
    let (_, stop) = run_in(&mut cx, &sink, &second.program);
    assert!(matches!(stop, Some(Stop::Error(e)) if e.code == 711 && e.message == "5 is not in the list"));
    let mut third = b.clone();
    let push = mutate(place, Change::Apply { func: RtFn::list_push, args: vec![int(2)] });
    let shown = third.get_global(xs);
    let mut body = vec![push];
    body.extend(third.print(shown));
    let unset = third.get_global(late);
    body.extend(third.print(unset));
    third.entry(body);
    let (text, stop) = run_in(&mut cx, &sink, &third.program);
    assert_eq!(text, "[1, 2]\n");
    assert!(matches!(stop, Some(Stop::Error(e)) if e.message == "`late` is used before it has a value"));
}

/// Counts of the words that a failure in the middle of an expression must release.
#[test]
fn failures_release_what_is_in_flight() {
    let mut b = Build::new();
    let ints = b.list_of(INT);
    let pair = b.ty(HostType::Tuple(vec![ints, INT]));
    let xs = b.global("xs", ints);
    let i = b.local("i", INT);
    // (xs, xs[5]) inside of a loop over xs: the loop, the record and the copy hold the list.
    let bad = rt(RtFn::list_get, vec![b.get_global(xs), int(5)], INT);
    let record = expr(HExprKind::Record(vec![b.get_global(xs), bad]), pair);
    let over = HStmt::ForList { var: i, list: b.get_global(xs), body: vec![HStmt::Expr(record)], span: span(4) };
    b.entry(vec![HStmt::SetGlobal(xs, list(vec![int(1)], ints)), over]);
    let sink = Sink::default();
    let mut cx = Context::new(Box::new(sink.clone()), false);
    let (_, stop) = run_in(&mut cx, &sink, &b.program);
    assert!(matches!(stop, Some(Stop::Error(e)) if e.code == 703));
    let word = cx.global(0).map_or(0, |g| g.2);
    // SAFETY: the global holds a live object.
    let owners = unsafe { (*(word as *const tessera_runtime::value::Header)).count.get() };
    assert_eq!(owners, 1);
}

#[test]
fn early_returns_release_what_is_in_flight() {
    let mut b = Build::new();
    let ints = b.list_of(INT);
    let xs = b.local("xs", ints);
    let i = b.local("i", INT);
    let test = rel(Cmp::Gt, b.get(i), int(1));
    let leave = HStmt::If { test, then: vec![HStmt::Return(Some(b.get(i)))], otherwise: vec![] };
    let over = HStmt::ForList { var: i, list: b.get(xs), body: vec![leave], span: span(4) };
    let f = b.function("f", &[xs], &[], INT, vec![over, HStmt::Return(Some(int(-1)))]);
    let g = b.global("g", ints);
    let call = expr(HExprKind::Call { func: f, args: vec![b.get_global(g)] }, INT);
    let mut body = vec![HStmt::SetGlobal(g, list(vec![int(1), int(2), int(3)], ints))];
    body.extend(b.print(call));
    b.entry(body);
    let sink = Sink::default();
    let mut cx = Context::new(Box::new(sink.clone()), false);
    assert_eq!(run_in(&mut cx, &sink, &b.program), ("2\n".into(), None));
    let word = cx.global(0).map_or(0, |g| g.2);
    // SAFETY: the global holds a live object.
    let owners = unsafe { (*(word as *const tessera_runtime::value::Header)).count.get() };
    assert_eq!(owners, 1);
}

#[test]
fn str_methods() {
    let mut b = Build::new();
    let strs = b.list_of(STR);
    let none = || expr(HExprKind::None, NONE);
    let s = |b: &mut Build, t: &str| b.str(t);
    let (text, comma, dash) = (s(&mut b, " a, b ,c "), s(&mut b, ","), s(&mut b, "-"));
    let (uni, e) = (s(&mut b, "héllo"), s(&mut b, "l"));
    let spec = s(&mut b, "*^9.2f");
    let ty = expr(HExprKind::TypeOf(FLOAT), INT);
    let absent = || int(i64::MIN);
    let shown = [
        rt(RtFn::str_split, vec![text.clone(), comma.clone()], strs),
        rt(RtFn::str_split, vec![text.clone(), none()], strs),
        rt(RtFn::str_split_max, vec![text.clone(), comma, int(1)], strs),
        rt(RtFn::str_join, vec![dash, rt(RtFn::str_split, vec![text.clone(), none()], strs)], STR),
        rt(RtFn::str_strip, vec![text, none()], STR),
        rt(RtFn::str_index, vec![uni.clone(), int(-1)], STR),
        rt(RtFn::str_slice, vec![uni.clone(), int(1), int(3), absent()], STR),
        rt(RtFn::str_slice, vec![uni.clone(), absent(), absent(), int(-1)], STR),
        rt(RtFn::str_find, vec![uni.clone(), e.clone()], INT),
        rt(RtFn::str_count, vec![uni.clone(), e], INT),
        rt(RtFn::str_case, vec![uni.clone(), int(3)], STR),
        rt(RtFn::str_len, vec![uni], INT),
        rt(RtFn::format_value, vec![float(3.24159), ty, spec], STR),
    ];
    let mut body = vec![];
    for e in shown {
        body.extend(b.print(e));
    }
    b.entry(body);
    let wanted = "[' a', ' b ', 'c ']\n['a,', 'b', ',c']\n[' a', ' b ,c ']\na,-b-,c\na, b ,c\no\nél\nolléh\n2\n2\nHéllo\n5\n**3.24***\n";
    assert_eq!(output(&b), wanted);
}

/// `[f(x) for x in xs]` as a block, where a value fails in the middle while a call's other
/// arguments are in flight.
#[test]
fn blocks_inside_of_calls_release_on_every_way_out() {
    for bad in [false, true] {
        let mut b = Build::new();
        let strs = b.list_of(STR);
        let ints = b.list_of(INT);
        let (p, q) = (b.local("p", strs), b.local("q", ints));
        let both =
            op(NumberOp::int_add, rt(RtFn::list_len, vec![b.get(p)], INT), rt(RtFn::list_len, vec![b.get(q)], INT));
        let f = b.function("f", &[p, q], &[], INT, vec![HStmt::Return(Some(both))]);
        let (out, x) = (b.local("out", ints), b.local("x", STR));
        let words: Vec<HExpr> = ["1", if bad { "z" } else { "2" }, "stop", "z"].map(|w| b.str(w)).to_vec();
        let joined = rt(RtFn::str_concat, vec![words[0].clone(), words[1].clone()], STR);
        let first = list(vec![joined], strs);
        let same = rt(RtFn::str_compare, vec![b.get(x), words[2].clone()], INT);
        let number = rt(RtFn::str_to_int, vec![b.get(x)], INT);
        let push = mutate(b.lvalue(out, vec![]), Change::Apply { func: RtFn::list_push, args: vec![number] });
        let body =
            vec![HStmt::If { test: rel(Cmp::Eq, same, int(0)), then: vec![HStmt::Break], otherwise: vec![] }, push];
        let stmts = vec![
            b.set(out, list(vec![], ints)),
            HStmt::ForList { var: x, list: list(words, strs), body, span: span(4) },
        ];
        let block = expr(HExprKind::Block { stmts, value: b.take(out).into() }, ints);
        let body = b.print(expr(HExprKind::Call { func: f, args: vec![first, block] }, INT));
        b.entry(body);
        if bad {
            assert_eq!(failure(&b), (712, "'z' is not an int".into(), 1));
        } else {
            assert_eq!(output(&b), "3\n");
        }
    }
}

#[test]
fn changes_reach_through_dicts_and_structs() {
    let mut b = Build::new();
    let ints = b.list_of(INT);
    let dict = b.ty(HostType::Dict(STR, ints));
    let outer = b.ty(HostType::Struct { name: "O".into(), fields: vec![("n".into(), FLOAT), ("d".into(), dict)] });
    let (o, c) = (b.local("o", outer), b.local("c", outer));
    let new = rt(RtFn::dict_new, vec![expr(HExprKind::TypeOf(dict), INT)], dict);
    let key = b.str("k");
    let entry = || vec![Step::Field(1), Step::Key(key.clone())];
    let push = Change::Apply { func: RtFn::list_push, args: vec![int(7)] };
    let index = vec![Step::Field(1), Step::Key(key.clone()), Step::Index(int(0))];
    let scalar = Change::Apply { func: RtFn::round_digits, args: vec![int(-1)] };
    let mut body = vec![
        b.set(o, expr(HExprKind::Record(vec![float(3.0), new]), outer)),
        mutate(b.lvalue(o, entry()), Change::Set(list(vec![int(1)], ints))),
        b.set(c, b.get(o)),
        mutate(b.lvalue(o, entry()), push),
        mutate(b.lvalue(o, index), Change::Set(int(5))),
        mutate(b.lvalue(o, vec![Step::Field(0)]), scalar),
    ];
    for id in [o, c] {
        let e = b.get(id);
        body.extend(b.print(e));
    }
    let missing = b.str("m");
    let push = Change::Apply { func: RtFn::list_push, args: vec![int(7)] };
    body.push(mutate(b.lvalue(c, vec![Step::Field(1), Step::Key(missing)]), push));
    b.entry(body);
    let (text, stop) = run(&b.program);
    assert_eq!(text, "O(n=0.0, d={'k': [5, 7]})\nO(n=3.0, d={'k': [1]})\n");
    assert!(matches!(stop, Some(Stop::Error(e)) if e.code == 704 && e.span == 7));
}
