use super::*;
use crate::show::shown;

#[track_caller]
fn expr(text: &str, tree: &str) {
    let (e, diagnostics) = parse_expr(text, ItemId(0));
    assert_eq!(diagnostics, [], "{text}");
    assert_eq!(shown(&e), tree, "{text}");
}

#[track_caller]
fn stmts(text: &str) -> Vec<StmtKind> {
    let parsed = parse_item(text, ItemId(0));
    assert_eq!(parsed.diagnostics, [], "{text}");
    parsed.stmts.into_iter().map(|s| s.kind).collect()
}

#[test]
fn precedence_is_that_of_python() {
    for (text, tree) in [
        ("a + b * c", "(+ a (* b c))"),
        ("a - b - c", "(- (- a b) c)"),
        ("a * b @ c / d // e % f", "(% (// (/ (@ (* a b) c) d) e) f)"),
        ("a ** b ** c", "(** a (** b c))"),
        ("-a ** b", "(- (** a b))"),
        ("a ** -b", "(** a (- b))"),
        ("a ** -b ** c * d", "(* (** a (- (** b c))) d)"),
        ("-a * b", "(* (- a) b)"),
        ("- - ~+a", "(- (- (~ (+ a))))"),
        ("a << b + c", "(<< a (+ b c))"),
        ("a | b ^ c & d << e", "(| a (^ b (& c (<< d e))))"),
        ("a < b <= c != d", "(cmp a < b <= c != d)"),
        ("a | b == c", "(cmp (| a b) == c)"),
        ("a in b not in c is d is not e", "(cmp a in b not in c is d is not e)"),
        ("not a == b", "(not (cmp a == b))"),
        ("not not a and b", "(and (not (not a)) b)"),
        ("a or b and c or d", "(or (or a (and b c)) d)"),
        ("a and not b or c", "(or (and a (not b)) c)"),
        ("a if b else c if d else e", "(if b a (if d c e))"),
        ("a or b if c < d else e", "(if (cmp c < d) (or a b) e)"),
        ("lambda x: x if x else y", "(lambda [x] (if x x y))"),
        ("lambda: 0", "(lambda [] 0)"),
        ("lambda x, y=1: x + y", "(lambda [x, y = 1] (+ x y))"),
        ("-x.y[0](1) ** 2", "(- (** (call (index (. x y) 0) 1) 2))"),
        ("(a + b) * c", "(* (+ a b) c)"),
        ("await_ + 1", "(+ await_ 1)"),
    ] {
        expr(text, tree);
    }
}

#[test]
fn collections_calls_and_indices() {
    for (text, tree) in [
        ("()", "(tuple )"),
        ("(a)", "a"),
        ("(a,)", "(tuple a)"),
        ("a, b,", "(tuple a b)"),
        ("[a, b,]", "[a b]"),
        ("{}", "{}"),
        ("{'a': 1, b: (2, 3),}", "{\"a\":1 b:(tuple 2 3)}"),
        ("[x for x, y in z if x if y for w in v]", "(comp x for (tuple x y) in z if x if y for w in v)"),
        ("f(x for x in y)", "(call f (comp x for x in y))"),
        ("f(a, *b, c=d, *e,)", "(call f a *b c=d *e)"),
        ("x[a:b, :, ::c, a::b, ..., None]", "(index x a:b:_ _:_:_ _:_:c a:_:b ... None)"),
        ("x[1, 2][3]", "(index (index x 1 2) 3)"),
        ("Tensor[B@dp, D@(tp,pp), f32, sum@tp]", "(index Tensor (@ B dp) (@ D (tuple tp pp)) f32 (@ sum tp))"),
        ("Tensor[..., 4*D, bf16]", "(index Tensor ... (* 4 D) bf16)"),
        ("Mesh[dp=4, tp=2]", "(index Mesh dp=4 tp=2)"),
        ("(A, B) -> C", "(fn [A B] C)"),
        ("(A) -> (B,) -> ()", "(fn [A] (fn [B] (tuple )))"),
        ("() -> list[(A) -> B]", "(fn [] (index list (fn [A] B)))"),
    ] {
        expr(text, tree);
    }
}

#[test]
fn strings_and_interpolation() {
    for (text, tree) in [
        (r#""a\n" 'b'"#, r#""a\nb""#),
        (r#"r"\d" "\x41""#, r#""\\dA""#),
        ("'''a\nb'''", "\"a\\nb\""),
        (r#"f"a{x}b{{c}}""#, r#"(f "a" <x> "b{c}")"#),
        (r#"f"{x!r:>{w}.2f}""#, r#"(f <x !r ">" <w> ".2f">)"#),
        (r#"f"{x!s}{y=}""#, r#"(f <x> "y=" <y !r>)"#),
        (r#"f"{d["k"]}""#, r#"(f <(index d "k")>)"#),
        (r#"f'{f"{a}"}' "b""#, r#"(f <(f <a>)> "b")"#),
        (r#"f"{a, b}""#, "(f <(tuple a b)>)"),
        (r#"rf"\d{x}""#, r#"(f "\\d" <x>)"#),
        ("f\"\"\"{\na\n}\"\"\"", "(f <a>)"),
        (r#"f"{x:{'>'}{10}}""#, r#"(f <x <">"> <10>>)"#),
        (r#"f"{(lambda x: x)(1):.3e}""#, r#"(f <(call (lambda [x] x) 1) ".3e">)"#),
    ] {
        expr(text, tree);
    }
}

#[test]
fn statements() {
    assert!(matches!(&stmts("a = b = 1, 2")[..], [StmtKind::Assign { targets, .. }] if targets.len() == 2));
    assert!(matches!(&stmts("a, (b, c[0]), d.e = f")[..], [StmtKind::Assign { targets, .. }] if targets.len() == 1));
    assert!(matches!(&stmts("x: Tensor[D] = y")[..], [StmtKind::AnnAssign { value: Some(_), .. }]));
    assert!(matches!(&stmts("x @= y")[..], [StmtKind::AugAssign { op: BinOp::MatMul, .. }]));
    assert!(matches!(&stmts("C[:] = e")[..], [StmtKind::Assign { .. }]));
    assert_eq!(stmts("a; b; c;").len(), 3);
    assert_eq!(stmts("import a, b.c as d").len(), 2);
    assert!(
        matches!(&stmts("from a.b import (c, d as e,)")[..], [StmtKind::FromImport { names, .. }] if names.len() == 2)
    );
    assert!(
        matches!(&stmts("if a: b; c\nelif d: e\nelse: f")[..], [StmtKind::If { then, otherwise, .. }] if then.len() == 2 && otherwise.len() == 1)
    );
    assert!(matches!(&stmts("for a, b in c, d:\n  pass")[..], [StmtKind::For { .. }]));
    assert!(matches!(&stmts("for i in x: y")[..], [StmtKind::For { .. }]));
    assert!(
        matches!(&stmts("with a, b() as c:\n  pass")[..], [StmtKind::With { items, .. }] if items.len() == 2 && items[1].1.is_some())
    );
    assert!(matches!(&stmts("assert a == b, f'{a}'")[..], [StmtKind::Assert { message: Some(_), .. }]));
    assert!(matches!(&stmts("while True:\n  if a:\n    break\n  continue")[..], [StmtKind::While { .. }]));
    assert!(stmts("\n# nothing\n").is_empty());
}

#[test]
fn definitions() {
    let text = "@op.kernel\n@op.autotune(cache=\"c\")\ndef f(a, b: int = 3, *rest, c, d=1) -> (A) -> B:\n    \"\"\"One.\n\n    Two.\"\"\"\n    return a, b\n";
    let parsed = parse_item(text, ItemId(3));
    assert_eq!(parsed.diagnostics, []);
    let StmtKind::Def(def) = &parsed.stmts[0].kind else { panic!() };
    assert_eq!(def.decorators.len(), 2);
    let kinds: Vec<_> = def.params.iter().map(|p| p.kind).collect();
    use ParamKind::*;
    assert_eq!(kinds, [Plain, Plain, Rest, KeywordOnly, KeywordOnly]);
    assert_eq!(def.doc.as_deref(), Some("One.\n\nTwo."));
    assert_eq!(def.body.len(), 1);
    assert_eq!(
        &text[def.head.start as usize..def.head.end as usize],
        "def f(a, b: int = 3, *rest, c, d=1) -> (A) -> B"
    );
    assert_eq!(&text[parsed.stmts[0].span.start as usize..parsed.stmts[0].span.end as usize], text.trim_end());
    assert_eq!(parsed.stmts[0].span.item, ItemId(3));

    let parsed = parse_item("struct Adam[P, D]:\n    \"\"\"State.\"\"\"\n    m: P\n    step: int = 0\n", ItemId(0));
    let StmtKind::Struct(def) = &parsed.stmts[0].kind else { panic!("{parsed:?}") };
    assert_eq!((def.generics.len(), def.fields.len(), def.doc.as_deref()), (2, 2, Some("State.")));
    assert_eq!(parsed.diagnostics, []);
    assert!(matches!(&stmts("struct Empty: pass")[..], [StmtKind::Struct(_)]));
    assert!(matches!(&stmts("def f(): return 1")[..], [StmtKind::Def(_)]));
}

#[test]
fn places_cover_what_they_name() {
    let text = "y = (a + b) * f(x)[0].T";
    let parsed = parse_item(text, ItemId(0));
    let StmtKind::Assign { value, .. } = &parsed.stmts[0].kind else { panic!() };
    let at = |s: Span| &text[s.start as usize..s.end as usize];
    assert_eq!(at(value.span), "(a + b) * f(x)[0].T");
    let ExprKind::Binary { left, right, op_span, .. } = &value.kind else { panic!() };
    assert_eq!((at(left.span), at(*op_span), at(right.span)), ("(a + b)", "*", "f(x)[0].T"));
}

#[test]
fn depth_is_bounded_before_trees_are_built() {
    let deep = [
        format!("x = {}1{}", "(".repeat(201), ")".repeat(201)),
        format!("x = {}1{}", "[".repeat(100_000), "]".repeat(100_000)),
        "(".repeat(100_000),
        format!("x = {}", vec!["1"; 100_000].join(" + ")),
        format!("x = {}", vec!["1"; 100_000].join(" ** ")),
        format!("x = {}1", "-".repeat(100_000)),
        format!("x = {}a", "not ".repeat(100_000)),
        format!("x{}", ".a".repeat(100_000)),
        format!("x{}", "(1)".repeat(100_000)),
        format!("x = {}1", "lambda: ".repeat(100_000)),
        format!("x = {}1", "a if b else ".repeat(100_000)),
        format!("x: {}A", "() -> ".repeat(100_000)),
        (0..300).map(|i| format!("{}if a:\n", " ".repeat(i))).collect::<String>() + &" ".repeat(300) + "b",
        format!("if a: b\n{}", "elif a: b\n".repeat(100_000)),
        format!("x = {}1{}", "f'{".repeat(300), "}'".repeat(300)),
    ];
    for text in &deep {
        let parsed = parse_item(text, ItemId(0));
        let codes: Vec<_> = parsed.diagnostics.iter().map(|d| d.code).collect();
        assert_eq!(codes, [Code::E0011], "{}", &text[..40.min(text.len())]);
    }
    for text in [
        format!("x = {}1{}", "(".repeat(150), ")".repeat(150)),
        format!("x = {}", vec!["1"; 400].join(" + ")),
        format!("x = [{}]", vec!["a + 1"; 10_000].join(", ")),
        "x = a + b\n".repeat(2000),
    ] {
        assert_eq!(parse_item(&text, ItemId(0)).diagnostics, []);
    }
    // As deep as it gets: walking, comparing and dropping such trees fits any stack.
    for text in [
        format!("x = {}1{}", "(-".repeat(198), ")".repeat(198)),
        format!("x = {}", vec!["1"; 495].join(" + ")),
        format!("x = {}", vec!["1"; 495].join(" ** ")),
        format!("x = {}1", "not ".repeat(198)),
        format!("x = {}1{}", "f(a + ".repeat(160), ")".repeat(160)),
        format!("x = {}1", "a if b else ".repeat(240)),
        format!("x = {}1", "lambda: ".repeat(150)),
        (0..190).map(|i| format!("{}if a:\n", " ".repeat(i))).collect::<String>() + &" ".repeat(190) + "b",
        format!("if a: b\n{}", "elif a: b\n".repeat(450)),
    ] {
        let parsed = parse_item(&text, ItemId(0));
        assert_eq!(parsed.diagnostics, [], "{}", &text[..40]);
        assert_eq!(parsed.clone(), parsed);
        assert!(crate::show::show(&parsed.stmts).len() > 100);
        assert!(crate::format(&text).is_ok());
    }
}
