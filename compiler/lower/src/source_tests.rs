//! Lowering of programs as text.

use super::*;
use tessera_infer::check_program;
use tessera_infer::db::Database;
use tessera_ir::host::{HExprKind, HStmt};
use tessera_resolve::source::NoFiles;

fn lowered(text: &str) -> Lowered {
    let checked = check_program(&mut Database::default(), "t.tsr", text, &NoFiles);
    let program = checked.program.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics));
    let lowered = lower(&program, Options::default());
    assert_eq!(lowered.diagnostics, vec![]);
    lowered
}

/// Number of regions and the numbers of their results.
fn results(text: &str) -> Vec<usize> {
    lowered(text).host.regions.iter().map(|r| r.results.len()).collect()
}

#[test]
fn an_update_of_four_weights_is_one_region() {
    let text = "
x = op.ones((8, 4))
y = op.ones((8, 2))
w1 = op.ones((4, 3))
b1 = op.zeros((3,))
w2 = op.ones((3, 2))
b2 = op.zeros((2,))
lr = 0.1
for step in range(10):
    h = x @ w1 + b1
    p = h @ w2 + b2
    e = (p - y) / 8.0
    gw2 = h.T @ e
    gh = e @ w2.T
    w1 = w1 - lr * (x.T @ gh)
    b1 = b1 - lr * gh.sum(axis=0)
    w2 = w2 - lr * gw2
    b2 = b2 - lr * e.sum(axis=0)
    lr = lr * 0.9
print(w1, b1, w2, b2)
";
    // The six first values, and one step that gives four.
    assert_eq!(results(text), [6, 4]);
    let l = lowered(text);
    let Some(HStmt::ForRange { body, .. }) = l.host.fns[0].body.iter().find(|s| matches!(s, HStmt::ForRange { .. }))
    else {
        panic!("{:#?}", l.host.fns[0])
    };
    let regions = body.iter().filter(|s| matches!(s, HStmt::Region { .. })).count();
    assert_eq!(regions, 1);
    let Some(HStmt::Region { args, .. }) = body.iter().find(|s| matches!(s, HStmt::Region { .. })) else { panic!() };
    let moved = args.iter().filter(|a| matches!(a.kind, HExprKind::Take(_))).count();
    assert_eq!(moved, 4, "{args:#?}");
}

#[test]
fn reading_a_number_ends_a_region() {
    let text = "
x = op.ones((4,))
for i in range(3):
    x = x * 2.0
    total = float(x.sum())
    x = x - total
print(x)
";
    assert_eq!(results(text), [1, 1, 1, 1]);
}

#[test]
fn functions_without_tensors_stay_host_code() {
    let l = lowered("def f(n: int) -> int:\n    return n * 2\nprint(f(3))\n");
    assert_eq!((l.host.fns.len(), l.regions.len()), (2, 0));
}

#[test]
fn a_graph_function_with_structs_is_one_call() {
    let text = "
struct P:
    w: Tensor[4, 4, f32]
    n: int
def step(p: P, x: Tensor[B, 4, f32]) -> P:
    y = x @ p.w
    return P(p.w - (x.T @ y) * 0.1, p.n + 1)
p = P(op.eye(4), 0)
for i in range(3):
    p = step(p, op.ones((2, 4)))
print(p.n)
";
    let l = lowered(text);
    assert_eq!(l.host.fns.len(), 1);
    assert_eq!(l.host.regions.last().map(|r| r.results.len()), Some(1));
}

#[test]
fn closures_are_thunks() {
    let text = "
def adder(n: int):
    return lambda x: x + n
fs = [adder(1), adder(2)]
print(fs[1](3))
";
    let l = lowered(text);
    assert!(!l.closures.is_empty() || l.host.fns.len() > 1, "{:#?}", l.host);
}
