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

/// Functions each of which calls the one before it, and a call of the last.
fn chain(n: usize) -> String {
    let mut text = String::from("def f0(x):\n    return x\n");
    for i in 1..n {
        text.push_str(&format!("def f{i}(x):\n    return f{}(x)\n", i - 1));
    }
    text + &format!("print(f{}(1))\n", n - 1)
}

/// Whether a program is refused does not depend on what was checked before it.
#[test]
fn limits_are_those_of_the_program() {
    let told = |db: &mut Database, text: &str| {
        let checked = crate::session::check_text(db, "main.tsr", text, &Memory::default());
        let all: Vec<String> = checked.diagnostics.iter().map(|d| d.message.clone()).collect();
        format!("{} {}", found(&checked), all.join(" "))
    };
    let wide = |n: usize| {
        let mut text = String::from("def f0(x):\n    return 1\n");
        for i in 1..n {
            text.push_str(&format!("def f{i}(x):\n    return f{0}([x]) + f{0}((x,))\n", i - 1));
        }
        text + &format!("print(f{}(1))\n", n - 1)
    };
    let refused = [chain(250), wide(18), chain(199).replace("print", "y = f100(1)\nprint") + &chain(1)];
    for text in &refused[..2] {
        let fresh = told(&mut Database::default(), text);
        assert!(fresh.starts_with("E0901@"), "{fresh}");
        let mut db = Database::default();
        for before in [chain(150), wide(6), refused[2].clone(), chain(190), wide(10)] {
            told(&mut db, &before);
        }
        assert_eq!(told(&mut db, text), fresh);
        assert_eq!(told(&mut db, text), fresh);
        // What calls a part of it is not refused for the rest.
        assert!(!told(&mut db, &chain(150)).contains("E0901"));
    }
}
