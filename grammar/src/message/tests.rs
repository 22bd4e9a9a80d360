use crate::parse_item;
use tessera_base::{Diagnostic, ItemId};

fn errors(text: &str) -> Vec<Diagnostic> {
    parse_item(text, ItemId(0)).diagnostics
}

/// The text after the first fix that has edits.
fn fixed(text: &str, diagnostic: &Diagnostic) -> Option<String> {
    let fix = diagnostic.fixes.iter().find(|f| !f.edits.is_empty())?;
    let mut out = text.to_string();
    for edit in fix.edits.iter().rev() {
        out.replace_range(edit.span.start as usize..edit.span.end as usize, &edit.text);
    }
    Some(out)
}

/// Source, code and part of the message. Every source gives exactly one error.
const MESSAGES: &[(&str, &str, &str)] = &[
    ("class A:\n    x: int\n", "E0002", "there are no classes"),
    ("try:\n    x\nexcept E as e:\n    y\nelse:\n    z\nfinally:\n    w", "E0002", "`try` is not part of Tessera"),
    ("raise x", "E0002", "`raise` is not part"),
    ("async def f():\n    pass", "E0002", "`async` is not part"),
    ("x = await f()", "E0002", "`await` is not part"),
    ("def f():\n    yield 1", "E0002", "there are no generators"),
    ("def f():\n    global x", "E0002", "cannot rebind names outside"),
    ("def f():\n    nonlocal x", "E0002", "cannot rebind names outside"),
    ("del x", "E0002", "`del` is not part"),
    ("let x = 3", "E0002", "`let` does not begin a statement"),
    ("func f(x):\n    return x", "E0002", "`func` does not begin a statement"),
    ("switch x:\n    y", "E0002", "`switch` does not begin a statement"),
    ("match (x):\n    y", "E0002", "`match` does not begin a statement"),
    ("elseif x:\n    y", "E0002", "`elseif` does not begin a statement"),
    ("print x, 3", "E0002", "`print` is a function"),
    ("print \"a\"", "E0002", "`print` is a function"),
    ("if a:\n    b\nelse if c:\n    d", "E0002", "`else if` is one word"),
    ("else:\n    b", "E0002", "this `else` belongs to no `if`"),
    ("for i in x:\n    b\nelse:\n    c", "E0002", "this `else` belongs to no `if`"),
    ("@x\ny = 3", "E0002", "a decorator belongs to"),
    ("struct S:\n    def f(self):\n        pass", "E0002", "a struct holds fields only"),
    ("struct S:\n    x = 3", "E0002", "the field `x` needs a type"),
    ("struct S:\n    3", "E0002", "this is not a field"),
    ("struct S(A):\n    x: int", "E0002", "no base and no parameter list"),
    ("x := 3", "E0002", "`:=` is not part"),
    ("if (n := f()) > 3:\n    n", "E0002", "`:=` is not part"),
    ("f = x => x", "E0002", "`=>` is not an operator"),
    ("def f(x) => int:\n    return x", "E0002", "`=>` is not an operator"),
    ("if a =< 3:\n    b", "E0002", "`=<` is not an operator"),
    ("if a < = 3:\n    b", "E0002", "`< =` is not an operator"),
    ("x + = 1", "E0002", "`+=` is written without a space"),
    ("x++", "E0002", "`++` is not an operator"),
    ("x--", "E0002", "`--` is not an operator"),
    ("a && b", "E0002", "`&&` is not an operator"),
    ("a || b", "E0002", "`||` is not an operator"),
    ("x = !a", "E0002", "`!` is not an operator"),
    ("a <> b", "E0002", "`<>` is not an operator"),
    ("a === b", "E0002", "`===` is not an operator"),
    ("a == not b", "E0002", "`not` binds looser"),
    ("lambda = 3", "E0002", "`lambda` is a reserved word"),
    ("def in(x):\n    pass", "E0002", "`in` is a reserved word"),
    ("x.from", "E0002", "`from` is a reserved word"),
    ("f(lambda=3)", "E0002", "`lambda` is a reserved word"),
    ("x = {1, 2}", "E0002", "there are no sets"),
    ("x = {a: b for a in c}", "E0002", "comprehensions make lists only"),
    ("x = [*a, *b]", "E0002", "`*` spreads a list only"),
    ("a, *b = c", "E0002", "`*` spreads a list only"),
    ("f(**d)", "E0002", "`**` does not spread"),
    ("def f(**d):\n    pass", "E0002", "arbitrary keyword arguments"),
    ("x = (a for a in b)", "E0002", "there are no generators"),
    ("x[]", "E0002", "the index is missing"),
    ("f(a: 3)", "E0002", "a keyword argument is written with `=`"),
    ("f(a.b = 3)", "E0002", "a keyword argument begins with its name"),
    ("if x = 3:\n    y", "E0002", "`=` assigns"),
    ("while x = 3:\n    y", "E0002", "`=` assigns"),
    ("y = (x = 3)", "E0002", "`=` cannot stand inside brackets"),
    ("f = lambda x: y = x", "E0010", "a `lambda` cannot be assigned to"),
    ("for i = 0; i < n; i++:\n    x", "E0002", "takes its values from a list"),
    ("for i of x:\n    y", "E0002", "`in` is missing"),
    ("for x:\n    y", "E0002", "`in` is missing"),
    ("for in x:\n    y", "E0002", "name of the loop variable is missing"),
    ("def f:\n    pass", "E0002", "has no parameter list"),
    ("def (x):\n    pass", "E0002", "the name is missing after `def`"),
    ("def f[N](x):\n    pass", "E0002", "a function lists no sizes"),
    ("def f(int x):\n    pass", "E0002", "two names side by side"),
    ("def f(a, /, b):\n    pass", "E0002", "positional only"),
    ("def f(a=1, b):\n    pass", "E0002", "without a default follows"),
    ("def f(3):\n    pass", "E0002", "a parameter is a name"),
    ("def f((a, b)):\n    pass", "E0002", "a parameter is a single name"),
    ("def f(x) - > int:\n    pass", "E0002", "`- >` is not an operator"),
    ("f = lambda (x): x", "E0002", "have no parentheses"),
    ("f = lambda x x", "E0002", "`:` is missing in this `lambda`"),
    ("f = lambda x: return x", "E0002", "`return` begins a statement"),
    ("from . import x", "E0002", "not relative to this file"),
    ("from a import *", "E0002", "names are imported one by one"),
    ("import x from y", "E0002", "`from` comes first"),
    ("import \"x\"", "E0002", "named without quotes"),
    ("from a", "E0002", "`import` is missing"),
    ("import", "E0002", "name of what to import is missing"),
    ("x = a if b", "E0002", "has no `else`"),
    ("f(a if b, c)", "E0002", "has no `else`"),
    ("x = a +", "E0002", "`+` has no operand on its right"),
    ("x = a + * 2", "E0002", "`+` has no operand on its right"),
    ("x = (a *)", "E0002", "`*` has no operand on its right"),
    ("* x", "E0002", "`*` spreads a list only"),
    ("/ x", "E0002", "nothing before this `/`"),
    ("x =", "E0002", "a value is missing after `=`"),
    ("x: ", "E0002", "a type or value is missing after `:`"),
    ("x.", "E0002", "a name is missing after `.`"),
    ("if :\n    x", "E0002", "a condition is missing after `if`"),
    ("for x in:\n    y", "E0002", "an expression is missing after `in`"),
    ("def f() -> :\n    pass", "E0002", "a type is missing after `->`"),
    ("f(a,, b)", "E0002", "nothing between two commas"),
    ("f(, b)", "E0002", "nothing between `(` and `,`"),
    ("assert", "E0002", "an expression is missing after `assert`"),
    ("x = f\"{}\"", "E0002", "the braces of this f-string are empty"),
    ("x = f\"{a b}\"", "E0002", "nothing stands between `a` and `b`"),
    ("x = f\"{a!q}\"", "E0002", "`!q` is not a conversion"),
    ("x = f\"a}\"", "E0006", "a single `}`"),
    ("x = f\"{a\"", "E0006", "this brace is not closed"),
    ("x = b\"a\"", "E0002", "byte strings"),
    ("if x > 2\n    y", "E0008", "the `if` line opens a block, but has no `:`"),
    ("if x > 2\ny", "E0008", "the `if` line opens a block, but has no `:`"),
    ("if x > 2 y", "E0008", "the `if` line opens a block, but has no `:`"),
    ("while True\n    y", "E0008", "the `while` line"),
    ("def f(x)\n    return x", "E0008", "the `def` line"),
    ("def f(x) return x", "E0008", "the `def` line"),
    ("if a:\n    b\nelse\n    c", "E0008", "the `else` line"),
    ("if a: b\nelse c", "E0008", "the `else` line"),
    ("x = 3:", "E0002", "this line opens no block"),
    ("f(x):\n    y", "E0002", "this line opens no block"),
    ("x = return", "E0002", "`return` begins a statement"),
    ("f(a b)", "E0002", "nothing stands between `a` and `b`"),
    ("x = [1 2]", "E0002", "nothing stands between `1` and `2`"),
    ("a b", "E0002", "nothing stands between `a` and `b`"),
    ("x.0", "E0002", "taken by `[…]`"),
    ("x = (a\ny = 3", "E0003", "this `(` is never closed"),
    ("x = [1, (2, 3]", "E0003", "this `(` is never closed"),
    ("x = (1, 2]", "E0003", "`]` does not close `(`"),
    ("x = 1)", "E0003", "this `)` closes nothing"),
    ("if a:\nb", "E0004", "the block of this `if` is missing"),
    ("x = 1\n    y = 2", "E0004", "indented more than the one above"),
    ("def f():\n        x\n    y", "E0004", "matches no open block"),
    ("def f():\n\tx\n        y", "E0005", "tabs and spaces are mixed"),
    ("x = 'abc", "E0006", "this string does not end"),
    ("x = \"\"\"abc\n", "E0006", "this string does not end"),
    ("x = '\\q'", "E0006", "is not an escape"),
    ("x = 2y", "E0007", "neither a number nor a name"),
    ("x = 007", "E0007", "begins with a zero"),
    ("x = a ? b : c", "E0001", "`?` begins no token"),
    ("x = “a”", "E0001", "a typographic quotation mark"),
    ("break", "E0009", "`break` stands outside a loop"),
    ("while a:\n    def f():\n        continue", "E0009", "`continue` stands outside a loop"),
    ("break; continue", "E0009", "`break` stands outside a loop"),
    ("return 3", "E0009", "`return` stands outside a function"),
    ("3 = x", "E0010", "a literal cannot be assigned to"),
    ("f(x) = 3", "E0010", "the result of a call cannot be assigned to"),
    ("a + 1 = b", "E0010", "the result of an operator cannot be assigned to"),
    ("a == b = c", "E0010", "a comparison cannot be assigned to"),
    ("a, 3 = c", "E0010", "a literal cannot be assigned to"),
    ("a, b += c", "E0010", "updates one target"),
    ("a, b: int = c", "E0002", "this line opens no block"),
    ("x.y: int = 3", "E0010", "cannot be given a type here"),
    ("None = 3", "E0010", "a constant cannot be assigned to"),
    ("for f(x) in y:\n    pass", "E0010", "the result of a call"),
];

#[test]
fn every_mistake_gives_one_error_that_names_it() {
    let mut wrong = vec![];
    for (text, code, part) in MESSAGES {
        let found: Vec<_> = errors(text).iter().map(|d| format!("{} {}", d.code, d.message)).collect();
        if found.len() != 1 || !found[0].starts_with(code) || !found[0].contains(part) {
            wrong.push(format!("{text:?}\n  wanted {code} {part}\n  found  {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn messages_keep_the_house_style() {
    for (text, _, _) in MESSAGES {
        for d in errors(text) {
            let first = d.message.chars().next().unwrap_or(' ');
            assert!(!first.is_uppercase() && !d.message.ends_with('.'), "{}", d.message);
            assert!(d.span.start <= d.span.end && d.span.end as usize <= text.len(), "{text:?}: {:?}", d.span);
        }
    }
}

#[test]
fn fixes_mend_the_text() {
    for (text, mended) in [
        ("if x > 2\n    y", "if x > 2:\n    y"),
        ("def f(x) return x", "def f(x): return x"),
        ("if x = 3:\n    y", "if x == 3:\n    y"),
        ("if a:\n    b\nelse if c:\n    d", "if a:\n    b\nelif c:\n    d"),
        ("a&&b", "a and b"),
        ("x = !a", "x = not a"),
        ("x++", "x += 1"),
        ("print x, 3", "print(x, 3)"),
        ("let x = 3", "x = 3"),
        ("f(a b)", "f(a, b)"),
        ("x = (1, 2]", "x = (1, 2)"),
        ("x = (1, 2", "x = (1, 2)"),
        ("x = 1)", "x = 1"),
        ("x = [1, (2, 3]", "x = [1, (2, 3)]"),
        ("f(a: 3)", "f(a= 3)"),
        ("x = 2y", "x = 2 * y"),
        ("x = 007", "x = 7"),
        ("x = 'abc", "x = 'abc'"),
        ("x = '\\q'", "x = '\\\\q'"),
        ("x.0", "x[0]"),
        ("def f:\n    pass", "def f():\n    pass"),
        ("x = “a", "x = \"a"),
        ("for i of x:\n    y", "for i in x:\n    y"),
        ("def f(x) - > int:\n    pass", "def f(x) -> int:\n    pass"),
    ] {
        let found = errors(text);
        let out = fixed(text, &found[0]);
        assert_eq!(out.as_deref(), Some(mended), "{found:?}");
    }
}

#[test]
fn the_lines_around_an_error_are_still_read() {
    let text = "def f(x):\n    a = x +\n    b = (1, 2\n    if b = 3:\n        c = 1\n    else:\n        c = = 2\n    return a b\n";
    let found = errors(text);
    let lines: Vec<usize> = found.iter().map(|d| text[..d.span.start as usize].matches('\n').count() + 1).collect();
    assert_eq!(lines, [2, 3, 4, 7, 8], "{found:?}");
    let garbled = parse_item("x = f(a b(c), d=3)", ItemId(0));
    assert_eq!(crate::show::show(&garbled.stmts), "x = ! = !\n");
    let one = "def f(x):\n    a b = g(x, 1)\n    return a\n";
    assert_eq!(errors(one).len(), 1, "{:?}", errors(one));
    let parsed = parse_item("x = a + * 2", ItemId(0));
    assert!(matches!(parsed.stmts[0].kind, crate::ast::StmtKind::Assign { .. }), "the binding stays");
}
