use super::*;
use crate::db::Database;

fn big(n: usize) -> String {
    let mut text = String::new();
    for i in 0..n {
        text.push_str(&format!("def f{i}(x: Tensor[N, f32], k: int) -> Tensor[N, f32]:\n    y = x * 2.0\n    for i in range(k):\n        y = y + x * {i}.0\n    return y\n\n"));
    }
    text.push_str("x = op.ones((4,))\n");
    for i in 0..n {
        text.push_str(&format!("x = f{i}(x, {})\n", i % 7));
    }
    text
}

#[test]
fn an_edit_moves_only_what_it_touches() {
    let mut db = Database::default();
    let id = db.add_file("main.tsr");
    let text = big(20);
    db.set_text(id, &text);
    assert_eq!(found(&check_program(&db, id)), "");
    // A mistake in one function, in a longer line, moves the rest of the file.
    let edited = text.replace("y = y + x * 3.0", "y = y + x * 3.0 + \"a\"");
    db.set_text(id, &edited);
    let checked = check_program(&db, id);
    assert_eq!(found(&checked), "E0205@22");
    db.set_text(id, &format!("# a comment above\n{text}"));
    assert_eq!(found(&check_program(&db, id)), "");
    let wrong = text.replace("x = f19(x, 5)", "x = f19(x, \"5\")");
    db.set_text(id, &wrong);
    assert_eq!(found(&check_program(&db, id)).split('@').next(), Some("E0204"));
}

#[test]
fn a_new_result_type_reaches_the_callers() {
    let mut db = Database::default();
    let id = db.add_file("main.tsr");
    db.set_text(id, "def f():\n    return 1\nx = f() + 1\n");
    assert_eq!(found(&check_program(&db, id)), "");
    db.set_text(id, "def f():\n    return \"a\"\nx = f() + 1\n");
    assert_eq!(found(&check_program(&db, id)), "E0205@3");
    db.set_text(id, "def f():\n    return 2.5\nx = f() + 1\n");
    let checked = check_program(&db, id);
    assert!(global(checked.program.as_ref().unwrap_or(&Program::default()), "x").contains("float"));
}
