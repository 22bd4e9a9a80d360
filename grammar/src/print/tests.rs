use super::format;
use crate::{parse_item, show, token::lex};
use tessera_base::ItemId;

/// A tree without its places.
fn tree(text: &str) -> String {
    show(&parse_item(text, ItemId(0)).stmts)
}

/// The comments of a text, without their spaces.
fn comments(text: &str) -> String {
    let tokens = lex(text);
    let found = tokens.iter().filter(|t| t.kind == crate::token::Tok::Comment);
    found.flat_map(|t| t.text(text).chars()).filter(|c| !c.is_whitespace()).collect()
}

#[track_caller]
fn check(text: &str) -> String {
    let once = format(text).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    assert_eq!(tree(text), tree(&once), "the tree changed:\n{text}\n---\n{once}");
    assert_eq!(comments(text), comments(&once), "comments changed:\n{text}\n---\n{once}");
    let twice = format(&once).unwrap_or_else(|e| panic!("{once}\n{e:?}"));
    assert_eq!(once, twice, "not stable");
    once
}

#[track_caller]
fn becomes(text: &str, formatted: &str) {
    assert_eq!(check(text), formatted);
}

#[test]
fn spaces() {
    for (text, formatted) in [
        ("x=1", "x = 1\n"),
        ("x  =  a+b*-c", "x = a + b * -c\n"),
        ("x=a**b@c//d", "x = a ** b @ c // d\n"),
        ("f( a,b = 1,*c )", "f(a, b=1, *c)\n"),
        ("x [ 1:2 , : , ::3 ]", "x[1:2, :, ::3]\n"),
        ("x[a+1:b]", "x[a + 1 : b]\n"),
        ("x[f(a):, 1]", "x[f(a) :, 1]\n"),
        ("x[-1:, ..., None]", "x[-1:, ..., None]\n"),
        ("d={'a':1,\"b\" :x [0]}", "d = {\"a\": 1, \"b\": x[0]}\n"),
        ("f=lambda x,y = 1:x+y", "f = lambda x, y=1: x + y\n"),
        ("f = lambda:0", "f = lambda: 0\n"),
        (
            "x:Tensor[B @ dp,4 * D,D@(tp,pp),N+1,f32,sum @ tp]=y",
            "x: Tensor[B@dp, 4*D, D@(tp, pp), N + 1, f32, sum@tp] = y\n",
        ),
        ("x = A[i*2] @ B", "x = A[i * 2] @ B\n"),
        ("f:(A,B)->C=g", "f: (A, B) -> C = g\n"),
        ("m = Mesh[dp = 4]", "m = Mesh[dp=4]\n"),
        ("def f(a,b:int=3,*,c=1)->int : return a", "def f(a, b: int = 3, *, c=1) -> int:\n    return a\n"),
        ("@ op.kernel\ndef f ( x ) :pass", "@op.kernel\ndef f(x):\n    pass\n"),
        ("struct S [D,T] :pass", "struct S[D, T]:\n    pass\n"),
        ("a=not  b", "a = not b\n"),
        ("a = b  not   in c is   not d", "a = b not in c is not d\n"),
        ("return_ = -x if not(y)else(z)", "return_ = -x if not (y) else (z)\n"),
        ("x+=1;y=2 ;", "x += 1\ny = 2\n"),
        ("if a:b;c\nelif d :e\nelse :f", "if a:\n    b\n    c\nelif d:\n    e\nelse:\n    f\n"),
        ("for i,j in a,b:pass", "for i, j in a, b:\n    pass\n"),
        ("with a ,b as c :pass", "with a, b as c:\n    pass\n"),
        ("import a ,b . c as d", "import a, b.c as d\n"),
        ("from a import(b,c)", "from a import (b, c)\n"),
        ("x = (a,)", "x = (a,)\n"),
        ("x = (a, b ,)[0]", "x = (\n    a,\n    b,\n)[0]\n"),
        ("x = ()", "x = ()\n"),
        ("x = a \\\n  + b", "x = a + b\n"),
        ("x = [a for a , b in c if a]", "x = [a for a, b in c if a]\n"),
        ("assert a , f\"{ b }\"", "assert a, f\"{ b }\"\n"),
        ("if x:\n\ty\n", "if x:\n    y\n"),
        ("a = b = c", "a = b = c\n"),
        ("", ""),
        ("\n\n# a\n\n\n\n#b\n", "# a\n\n\n# b\n"),
        ("x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
        ("f(x)(y)[z].w", "f(x)(y)[z].w\n"),
        ("print (x)", "print(x)\n"),
        ("x = -(a)", "x = -(a)\n"),
        ("x[lambda a: a]", "x[lambda a: a]\n"),
    ] {
        becomes(text, formatted);
    }
}

#[test]
fn spellings() {
    for (text, formatted) in [
        ("x = 'a'", "x = \"a\"\n"),
        ("x = 'a\"b'", "x = 'a\"b'\n"),
        ("x = 'it\\'s'", "x = \"it's\"\n"),
        ("x = r'\\''", "x = r'\\''\n"),
        ("x = U'a' R'b'", "x = \"a\" r\"b\"\n"),
        ("x = '''a\n b'''", "x = \"\"\"a\n b\"\"\"\n"),
        ("x = f'{a}'", "x = f\"{a}\"\n"),
        ("x = f'{a[\"b\"]}'", "x = f'{a[\"b\"]}'\n"),
        ("x = F'{a!r:>{w}}' 'b'", "x = f\"{a!r:>{w}}\" \"b\"\n"),
        ("x = 0XfF + 1E5 + 1_000", "x = 0xFF + 1e5 + 1_000\n"),
        ("#a\n#!b\n#\nx = 1  #c  ", "# a\n#!b\n#\nx = 1  # c\n"),
    ] {
        becomes(text, formatted);
    }
}

#[test]
fn blank_lines() {
    becomes(
        "import a\ndef f():\n\n\n    x = 1\n\n\n    y = 2\n    def g():\n        pass\n    return g\n# about h\n@x\n\ndef h():\n    pass\nz = 1\n\n\n\n\nw = 2\nstruct S:\n    x: int\n",
        "import a\n\n\ndef f():\n    x = 1\n\n    y = 2\n\n    def g():\n        pass\n\n    return g\n\n\n# about h\n@x\ndef h():\n    pass\n\n\nz = 1\n\n\nw = 2\n\n\nstruct S:\n    x: int\n",
    );
    becomes("if a:\n\n    b\n\nelse:\n    c\n", "if a:\n    b\nelse:\n    c\n");
    becomes("def f(): pass\ndef g(): pass\n", "def f():\n    pass\n\n\ndef g():\n    pass\n");
}

#[test]
fn comments_stay() {
    becomes(
        "def f():  # head\n    # first\n    x = 1 #one\n    # last of f\n# outside\ny = [ # open\n  1, # one\n  # own\n  2 # two\n  # end\n]  # after\n",
        "def f():  # head\n    # first\n    x = 1  # one\n    # last of f\n\n\n# outside\ny = [  # open\n    1,  # one\n    # own\n    2,  # two\n    # end\n]  # after\n",
    );
    becomes("x = (a +  # why\n  b)\n", "x = (\n    a +  # why\n    b\n)\n");
    becomes("f(  # nothing\n)\n", "f(  # nothing\n)\n");
    becomes(
        "if a:\n    b\n    # in\n  # odd\n# out\nelse:\n    c\n",
        "if a:\n    b\n    # in\n# odd\n# out\nelse:\n    c\n",
    );
    check("x = [\n  a # 1\n  , # 2\n  b\n  # 3\n  , c\n]\n");
    check("f(\n  # a\n  x = # b\n  1,\n  y # c\n)\n");
    check("if a: b # c\n# d\n");
    check("x = {\n  # a\n  'k': # b\n   1, # c\n}\n");
    check("x = f(a, # b\n  [c, # d\n  e])\n# end");
}

#[test]
fn long_lines_are_broken_at_brackets() {
    let long = |n: usize| (0..n).map(|i| format!("argument_{i}")).collect::<Vec<_>>().join(", ");
    let lines = |n: usize, indent: &str| (0..n).map(|i| format!("{indent}argument_{i},\n")).collect::<String>();
    becomes(&format!("x = f({})", long(10)), &format!("x = f(\n{})\n", lines(10, "    ")));
    becomes(
        &format!("def f({}) -> Tensor[B, D, f32]:\n  pass", long(8)),
        &format!("def f(\n{}) -> Tensor[B, D, f32]:\n    pass\n", lines(8, "    ")),
    );
    becomes(
        &format!("x = [{} for a in b if c]", long(1).repeat(9)),
        &format!("x = [\n    {}\n    for a in b\n    if c\n]\n", long(1).repeat(9)),
    );
    becomes(
        &format!(
            "x = (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb * {} + dddddddddddddddddddd)",
            "c".repeat(20)
        ),
        &format!(
            "x = (\n    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n    + bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb * {}\n    + dddddddddddddddddddd\n)\n",
            "c".repeat(20)
        ),
    );
    let numbers: Vec<String> = (0..60).map(|i| i.to_string()).collect();
    let table = check(&format!("x = [{}]", numbers.join(", ")));
    assert_eq!(table.lines().count(), 5, "{table}");
    check(&format!("x = op.array([{}])", numbers.join(", ")));
    check(&format!("x = a.b({}).c({})[{}]", long(5), long(7), long(9)));
    check(&format!("x = f({}, key=[{}], other={{'a': ({})}})", long(2), long(9), long(9)));
    check(&format!("if {} and ({}):\n    pass", long(1).repeat(6), long(1).repeat(6)));
    check(&format!("x: Tensor[{}] = y", long(12)));
    check(&format!("x = f(lambda a, b: {}, {})", long(1).repeat(6), long(6)));
    check(&format!("x = f({} if a else {})", long(1).repeat(6), long(1).repeat(6)));
    check(&format!("from a import ({})", long(12)));
    check(&format!("x = f(\"{}\" \"{}\")", "a".repeat(80), "b".repeat(40)));
    check(&format!("f: ({}) -> C = {}", long(12).replace("argument", "A"), long(1)));
    check(&format!("x = y[{}][{}:{}]", long(8), long(1).repeat(5), long(1).repeat(7)));
    check(&format!("x = sum({} for a in {})", long(1).repeat(6), long(1).repeat(6)));
    check(&format!("x = {}", vec!["a"; 200].join(" + ")));
    check(&format!("print(f\"{{a}} {}\", {})", "x".repeat(90), long(2)));
    check("x = f(\"\"\"a\nb\"\"\", c)\n");
    check(&format!("x = f(\"\"\"{}\nb\"\"\", {})\n", "a".repeat(90), long(3)));
}

#[test]
fn a_trailing_comma_keeps_a_bracket_broken() {
    becomes("f(a, b,)", "f(\n    a,\n    b,\n)\n");
    becomes("f([1, 2,], 3)", "f(\n    [\n        1,\n        2,\n    ],\n    3,\n)\n");
    becomes("x[a,]", "x[a,]\n");
}

#[test]
fn errors_change_nothing() {
    let errors = format("x = (1,\ny = 2\n").unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].span.start, 4);
}

#[test]
fn programs_keep_their_trees() {
    for text in [
        "\"\"\"A model.\n\n>>> f(1)\n2\n\"\"\"\nfrom tessera import op, dist\nimport std.nn as nn\n\nB=32;D=64\n@op.kernel\ndef matmul(A,B,C):\n    schedule.tile((128,128,32)) # tiles\n    C[:]=A@B+C\n    return C\n",
        "struct Adam[P]:\n  'doc'\n  m:P\n  v : P = None\n  step:int=0\ndef step(s:Adam[P],g:P)->(P,Adam[P]):\n  m=tree.map(lambda a,b:0.9*a+0.1*b,s.m,g)\n  return m,s\n",
        "for i in range(10):\n    if i%2==0:continue\n    elif i>5:break\n    while i<3:i+=1\nelse_=1\nassert D%H==0,f'{D} and {H:>{w}}'\n",
        "with numerics.policy('fast'):\n  x=[[1,2],[3,4]]\n  y={'a':[i for i in x if i[0]>1],}\nprint(f'{x!r} {y=}',end='')\n",
        "x = a if b else c if d else lambda *e, f=1: e\nx[1:2, ::3, a:b:c, ..., None] @= y\n",
    ] {
        check(text);
    }
}
