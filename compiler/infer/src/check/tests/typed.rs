use super::*;
use tessera_core::ir::{Effect, TKind, TStmt};

fn host(program: &Program, name: &str) -> bool {
    matches!(insts(program, name)[0].effect, Effect::Host { .. })
}

#[test]
fn effects() {
    let p = ok(
        "def g(x):\n    return x * 2.0\ndef p(x):\n    print(x)\ndef q(x):\n    p(x)\ndef w(x: int):\n    while x > 0:\n        x -= 1\n    return x\nlog = []\nlog.append(1)\ndef m():\n    log.append(2)\ng(op.ones((2,)))\nq(op.ones((2,)))\nw(3)\nm()\n",
    );
    assert_eq!(["g", "p", "q", "w", "m"].map(|n| host(&p, n)), [false, true, true, true, true]);
    let p = ok(
        "def f(x: Tensor[N, f32]):\n    if N > 2:\n        return x\n    return x * 2.0\ndef h(x: Tensor[N, f32]):\n    if x.sum() > 0.0:\n        return x\n    return -x\n",
    );
    assert_eq!([host(&p, "f"), host(&p, "h")], [false, true]);
}

#[test]
fn policies() {
    use tessera_ir::graph::Policy;
    let p = ok(
        "@numerics.policy(\"fast\")\ndef f(x: Tensor[N, f32]):\n    return x.sum()\ndef g(x):\n    return x.sum()\nx = op.ones((3,))\nprint(f(x))\nwith numerics.policy(\"kahan_sum\"):\n    print(g(x))\n",
    );
    assert_eq!(insts(&p, "f")[0].policy, Policy::Fast);
    assert_eq!(insts(&p, "g")[0].policy, Policy::KahanSum);
}

#[test]
fn a_new_type_is_a_new_slot() {
    let p = ok("x = 1\nprint(x)\nx = \"a\"\nprint(x)\nx = 2\nprint(x)\n");
    assert_eq!(p.globals.iter().filter(|g| &*g.name == "x").count(), 2);
}

#[test]
fn empty_lists_get_their_type() {
    let p = ok("def f():\n    xs = []\n    xs.append(1.5)\n    return xs\nprint(f())\n");
    let f = insts(&p, "f")[0];
    let TStmt::Set(_, value) = &f.body[0] else { panic!("{:?}", f.body) };
    assert!(matches!(value.kind, TKind::List(_)));
    assert_eq!(value.ty.to_string(), "list[float]");
    assert_eq!(f.ret.to_string(), "list[float]");
}

#[test]
fn literals_convert_where_declared() {
    let p = ok("xs: list[float] = [1, 2]\nt: tuple[float, str] = (1, \"a\")\nf: float = 3\n");
    assert_eq!(
        (global(&p, "xs"), global(&p, "t"), global(&p, "f")),
        ("list[float]".into(), "tuple[float, str]".into(), "float".into())
    );
}

/// The type of what stands at the first place of a text, in a program that may be wrong.
fn types_at(text: &str, place: &str) -> String {
    let mut db = Database::default();
    let id = db.add_file("main.tsr");
    db.set_text(id, text);
    db.load_imports(id, &Memory::default());
    let Some((item, at)) = db.source_map().item_at(id, text.find(place).unwrap_or(usize::MAX)) else {
        return "?".into();
    };
    let types = crate::asked::types_at(&db, id, item, at).map_or_else(Vec::new, |(_, types)| types);
    types.iter().map(|ty| ty.to_string()).collect::<Vec<_>>().join(" | ")
}

#[test]
fn what_stands_somewhere_has_a_type() {
    let text = "\
def f(x: Tensor[N, f32], k: int) -> Tensor[N, f32]:
    y = x @ x
    if k > 2:
        y = y + 1.0
    return x * y

def g(v):
    return (v, v)

xs = []
xs.append(1.5)
pair = g(2)
other = g(\"a\")
bad = xs + 1
";
    let at = |place: &str| types_at(text, place);
    assert_eq!(
        [at("x: T"), at("y = x"), at("x @"), at("@ x")].join(", "),
        "Tensor[N, f32], Tensor[f32], Tensor[N, f32], Tensor[f32]"
    );
    assert_eq!([at("(v, v)"), at("v, v"), at("v):")], ["tuple[int, int] | tuple[str, str]", "int | str", "int | str"]);
    assert_eq!([at("xs = "), at("pair"), at("2)\n"), at("def g")], ["list[float]", "tuple[int, int]", "int", ""]);
    assert_eq!(found(&check(text)), "E0205@14");
}
