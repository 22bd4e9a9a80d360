//! The verifier of typed programs finds a value of another form.

use crate::db::Database;
use tessera_base::{Code, Diagnostic};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_core::verify::verify;

/// A program with its float literals made ints, whatever is said of them.
fn broken(text: &str) -> Result<(), Box<Diagnostic>> {
    let mut db = Database::default();
    let id = db.add_file("main.tsr");
    db.set_text(id, text);
    let mut program = crate::session::check_program(&db, id).program.unwrap_or_default();
    verify(&program)?;
    let spoil = |e: &mut TExpr| {
        if let TKind::Float(x) = e.kind {
            (e.kind, e.ty) = (TKind::Int(x as i64), Ty::int());
        }
    };
    for inst in &mut program.insts {
        for s in &mut inst.body {
            match s {
                TStmt::SetGlobal(_, e) | TStmt::Expr(e) | TStmt::Return(Some(e)) => deepest(e, &spoil),
                TStmt::Mutate { change: TChange::Set(e), .. } => deepest(e, &spoil),
                TStmt::Mutate { change: TChange::Method { args, .. }, .. } => {
                    args.iter_mut().for_each(|e| deepest(e, &spoil))
                }
                _ => {}
            }
        }
    }
    verify(&program)
}

fn deepest(e: &mut TExpr, f: &impl Fn(&mut TExpr)) {
    tessera_core::walk::each_child_mut(e, &mut |c| deepest(c, f));
    f(e);
}

#[test]
fn a_number_of_another_kind_is_found() {
    for text in [
        "x = 1.5\n",
        "xs = [[1.5], [2.5]]\n",
        "t = (1, 1.5)\n",
        "d = {\"a\": (2.5, 1)}\n",
        "xs: list[float] = []\nxs.append(1.5)\n",
        "xs = [0.5]\nxs[0] = 1.5\n",
        "def f(x: float) -> float:\n    return x\nprint(f(1.5))\n",
        "def f() -> float:\n    return 1.5\nprint(f())\n",
        "print(1.5 if f\"{1}\" == \"1\" else 2.5 + float(\"1\"))\n",
    ] {
        let found = broken(text);
        assert!(found.is_err_and(|d| d.code == Code::E0999), "{text}");
    }
}
