use super::*;

#[test]
fn endless_templates_are_refused() {
    let checked = check("def f(x):\n    return f([x])\nprint(f(1))\n");
    assert!(found(&checked).contains("E0901@") || found(&checked).contains("E0216@"), "{}", found(&checked));
    let checked = check("def f(x):\n    return f(lambda: x)\nprint(f(1))\n");
    assert!(!checked.diagnostics.is_empty());
    let checked = check("def f(n):\n    return [f(n - 1)]\nprint(f(1))\n");
    assert!(!checked.diagnostics.is_empty());
}

#[test]
fn long_and_deep_texts() {
    let sum = vec!["1"; 400].join(" + ");
    ok(&format!("x = {sum}\n"));
    let deep = format!("x = {}1{}\n", "(".repeat(150), ")".repeat(150));
    ok(&deep);
    let mut text = String::new();
    for i in 0..18 {
        text.push_str(&format!("{}for i{i} in range(2):\n", "    ".repeat(i)));
    }
    text.push_str(&format!("{}x = x + op.ones((2,))\n", "    ".repeat(18)));
    ok(&format!("x = op.zeros((2,))\n{text}"));
    // A chain of calls whose result types are inferred.
    let mut text = String::from("def f0(x):\n    return x\n");
    for i in 1..150 {
        text.push_str(&format!("def f{i}(x):\n    return f{}(x)\n", i - 1));
    }
    ok(&format!("{text}print(f149(1))\n"));
}
