use super::*;
use tessera_base::ItemId;

fn of(text: &str) -> Names {
    let parsed = tessera_grammar::parse_item(text, ItemId(0));
    assert_eq!(parsed.diagnostics, vec![], "{text}");
    names(&parsed.stmts)
}

/// Each name that is read, with what binds it: the kind and the line of its first place.
fn told(text: &str) -> Vec<String> {
    let names = of(text);
    let line = |at: u32| text[..at as usize].matches('\n').count() + 1;
    let tell = |u: &Use| match u.to {
        Reference::Outside => format!("{} outside", u.name),
        Reference::Local(id) => {
            let b = names.binding(id);
            format!("{} {:?} {}", u.name, b.kind, line(b.places[0].start))
        }
    };
    names.uses.iter().map(tell).collect()
}

#[test]
fn variables_hide_what_is_around_them() {
    let text = "def f(x, n):\n    y = x + k\n    def g(x):\n        return x + y + n\n    return g(y)";
    let told = told(text);
    assert_eq!(
        told,
        [
            "x Parameter 1",
            "k outside",
            "x Parameter 3",
            "y Variable 2",
            "n Parameter 1",
            "g Function 3",
            "y Variable 2"
        ]
    );
}

#[test]
fn comprehensions_and_lambdas_have_names_of_their_own() {
    let text = "def f(xs):\n    x = 1\n    ys = [x * v for x in xs for v in [x] if v > x]\n    return x, (lambda x: x + v)(ys)";
    assert_eq!(
        told(text),
        [
            "x Target 3",
            "v Target 3",
            "xs Parameter 1",
            "x Target 3",
            "v Target 3",
            "x Target 3",
            "x Variable 2",
            "x Parameter 4",
            "v outside",
            "ys Variable 3"
        ]
    );
}

#[test]
fn sizes_belong_to_the_signature_that_writes_them() {
    let text = "def f(x: Tensor[N, 2*M, f32], M: int) -> Tensor[N, f32]:\n    def g(y: Tensor[N, K, f32]) -> int:\n        return K\n    return N";
    let told = told(text);
    let of = |name: &str| told.iter().filter(|t| t.starts_with(&format!("{name} "))).cloned().collect::<Vec<_>>();
    assert_eq!(of("N"), ["N Size 1"; 4]);
    assert_eq!(of("M"), ["M Parameter 1"]);
    assert_eq!(of("K"), ["K Size 2"; 2]);
    assert_eq!(of("Tensor"), ["Tensor outside"; 3]);
}

#[test]
fn what_a_body_assigns_is_not_in_its_signature() {
    let text = "def f(x: Tensor[N, f32]):\n    N = 3\n    return N";
    assert_eq!(told(text), ["Tensor outside", "N Size 1", "f32 outside", "N Variable 2"]);
}

#[test]
fn defaults_and_decorators_are_outside() {
    let text = "@d(x)\ndef f(x, y=x):\n    return x";
    assert_eq!(told(text), ["d outside", "x outside", "x outside", "x Parameter 2"]);
}

#[test]
fn what_is_bound_and_read_is_one_list_of_places() {
    let text = "def f():\n    total = 0\n    for i in range(3):\n        total += i\n    total, j = total + 1, 2\n    return total";
    let names = of(text);
    let id = names.bound_around(text.find("total").unwrap() as u32).unwrap();
    let places: Vec<usize> = names.places_of(id).iter().map(|s| s.start as usize).collect();
    assert_eq!(places, text.match_indices("total").map(|m| m.0).collect::<Vec<_>>());
    let unused: Vec<&str> = names.unused().into_iter().map(|id| &*names.binding(id).name).collect();
    assert_eq!(unused, ["j"]);
}

#[test]
fn what_is_visible_somewhere() {
    let text = "def f(x: Tensor[N, f32]):\n    y = [a for a in x]\n    return y";
    let names = of(text);
    let seen = |at: &str| -> Vec<String> {
        names.visible(text.find(at).unwrap() as u32).iter().map(|b| b.name.to_string()).collect()
    };
    assert_eq!(seen("a for"), ["a", "x", "y", "N", "f"]);
    assert_eq!(seen("return"), ["x", "y", "N", "f"]);
}

#[test]
fn members_have_their_paths() {
    let names = of("y = std.nn.linear(x).weight.T");
    let paths: Vec<String> = names.members.iter().map(|m| m.path.join(".")).collect();
    assert_eq!(paths, ["std.nn", "std.nn.linear"]);
}
