//! The interactive session, through a pipe.

use tessera_tests::program::{Ran, run_in};

/// Runs a session on the inputs.
fn session(input: &str) -> Ran {
    let dir = tempfile::tempdir().expect("a directory for the session");
    std::fs::write(
        dir.path().join("shapes.tsr"),
        "print(\"shapes loaded\")\nside = 4\ndef square(n):\n    return n * n\n",
    )
    .expect("a module beside it");
    run_in(dir.path(), &["repl"], input).expect("the program starts")
}

/// What a session prints that has no errors.
fn printed(input: &str) -> String {
    let ran = session(input);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    ran.out
}

#[test]
fn values_are_shown_with_their_types() {
    assert_eq!(
        printed("1 + 2\n2.5\n\"a\\nb\"\n[1, 2]\nNone\nprint(1)\n(1, True)\n"),
        "int 3\nfloat 2.5\nstr 'a\\nb'\nlist[int] [1, 2]\n1\ntuple[int, bool] (1, True)\n"
    );
    assert_eq!(
        printed("op.zeros((2, 2))\nop.ones((2,))\n"),
        "Tensor[2, 2, f32]\n[[0. 0.]\n [0. 0.]]\nTensor[2, f32] [1. 1.]\n"
    );
    assert_eq!(printed("3 * 4\n_ + 1\n_\n"), "int 12\nint 13\nint 13\n");
}

#[test]
fn no_prompt_and_no_banner() {
    assert_eq!(printed(""), "");
    assert_eq!(printed("\n\n# nothing\n"), "");
}

#[test]
fn values_last_from_input_to_input() {
    let input = "x = op.arange(3)\ny = x + 1\nx = y * 2\nx\ny\nn = 5\nop.ones((n,)).sum()\n";
    assert_eq!(printed(input), "Tensor[3, i64] [2 4 6]\nTensor[3, i64] [1 2 3]\nTensor[f32] 5.0\n");
    assert_eq!(
        printed("xs = []\nxs.append(1.5)\nxs\nd = {}\nd[\"k\"] = op.ones((1,))\nd\n"),
        "list[float] [1.5]\ndict[str, Tensor[1, f32]] {'k': [1.]}\n"
    );
}

#[test]
fn blocks_end_where_a_line_is_not_indented() {
    let input = "def f(x):\n    y = x + 1\n\n    return y\n\nf(1)\nfor i in range(2):\n    print(i)\n\nif f(0) > 5:\n    print(\"large\")\n\nelse:\n    print(\"small\")\nf(2)\n";
    assert_eq!(printed(input), "int 2\n0\n1\nsmall\nint 3\n");
}

#[test]
fn a_function_value_reads_variables_as_they_are() {
    let input = "k = 3\nf: (int) -> int = lambda x: op.zeros((k,)).shape[0] + x\nf(1)\nk = 9\nf(1)\n";
    assert_eq!(printed(input), "int 4\nint 10\n");
    let ran = session("k = 3\nf: (int) -> int = lambda x: x + k\nk = \"a\"\nf(1)\n");
    assert!(ran.err.contains("E0204") && ran.err.contains("`k` becomes `str`"), "{}", ran.err);
    assert_eq!(ran.out, "int 4\n");
}

#[test]
fn a_later_definition_counts_everywhere() {
    let input = "def scale(x):\n    return x * 2\n\ndef model(x):\n    return scale(x) + 1\n\nmodel(10)\ndef scale(x):\n    return x * 100\n\nmodel(10)\n";
    assert_eq!(printed(input), "int 21\nint 1001\n");
    assert_eq!(
        printed("x = 1\nx = \"one\"\nx\ndef x(n):\n    return n\n\nx(2)\nx = 3\nx\n"),
        "str 'one'\nint 2\nint 3\n"
    );
    let structs = "struct P:\n    a: int\n\np = P(1)\nstruct P:\n    a: int\n    b: int\n\np\nP(1, 2)\n";
    assert_eq!(printed(structs), "P P(a=1)\nP P(a=1, b=2)\n");
}

#[test]
fn errors_show_the_input_and_the_session_goes_on() {
    let ran = session("x = 1\nx + \"a\"\ny = x // 0\nx = 2 // 0\nx\n");
    assert_eq!((ran.code, ran.out.as_str()), (1, "int 1\n"));
    for part in ["<input 2>", "x + \"a\"", "E0702", "<input 3>", "y = x // 0", "<input 4>"] {
        assert!(ran.err.contains(part), "{part} is not in\n{}", ran.err);
    }
    // Nothing is left of an assignment that failed.
    let ran = session("y = 1 // 0\ny\n");
    assert!(ran.err.contains("`y` is not defined"), "{}", ran.err);
    let ran = session("x = )\n1\n");
    assert_eq!((ran.code, ran.out.as_str()), (1, "int 1\n"));
}

#[test]
fn a_failing_loop_keeps_what_fits_the_known_types() {
    let ran = session(
        "w = op.zeros((3,))\nk = 0\nfor i in range(3):\n    w[i] = 1.0\n    k = i\n    1 // (1 - i)\n\nw\nk\nop.ones((k + 2,))\n",
    );
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (1, "Tensor[3, f32] [1. 1. 0.]\nint 0\nTensor[2, f32] [1. 1.]\n"),
        "{}",
        ran.err
    );
    let ran = session("w = op.zeros((3,))\nif True:\n    w = op.zeros((4,))\n    1 // (w.shape[0] - 4)\n\nw\n");
    assert_eq!(ran.out, "Tensor[3, f32] [0. 0. 0.]\n", "{}", ran.err);
}

#[test]
fn functions_pass_between_inputs() {
    let input = "fs: list[(Tensor[2, f32]) -> Tensor[2, f32]] = [lambda x: x * 2.0]\ndef twice(f: (Tensor[2, f32]) -> Tensor[2, f32], x: Tensor[2, f32]):\n    return f(f(x)) + 1.0\n\nhs: list[((Tensor[2, f32]) -> Tensor[2, f32], Tensor[2, f32]) -> Tensor[2, f32]] = [twice]\ngs: list[(Tensor[2, f32]) -> Tensor[2, f32]] = [lambda x: x * 5.0]\nhs[0](gs[0], op.ones((2,)))\nhs[0](fs[0], op.ones((2,)))\n";
    assert_eq!(printed(input), "Tensor[2, f32] [26. 26.]\nTensor[2, f32] [5. 5.]\n");
}

#[test]
fn modules_run_once() {
    assert_eq!(
        printed("import shapes\nimport shapes\nshapes.square(3)\nfrom shapes import side\nside\n"),
        "shapes loaded\nint 9\nint 4\n"
    );
    assert_eq!(session("import nowhere\nimport shapes\n").out, "shapes loaded\n");
}

#[test]
fn commands() {
    assert_eq!(
        printed("x = op.ones((2, 3))\n:type x @ x.T\n:type 1\ndef f(a: int) -> int:\n    return a\n\n:type f\n"),
        "Tensor[2, 2, f32]\nint\ndef f(a: int) -> int\n"
    );
    assert_eq!(
        printed("xs = [op.ones((2,)), op.ones((3,))]\n:type xs\nxs\n:type xs[0]\n:type [xs[0]]\n"),
        "list[Tensor[?, f32]]\nlist[Tensor[?, f32]] [[1. 1.], [1. 1. 1.]]\nTensor[xs_3, f32]\nlist[Tensor[xs_3, f32]]\n"
    );
    assert!(printed(":help\n").contains(":explain"));
    assert!(printed(":explain E0201\n").starts_with("# E0201"));
    let emitted = printed("x = op.ones((2,))\n:emit op.exp(x)\nx\n");
    assert!(emitted.contains("tessera.graph.exp") && emitted.ends_with("Tensor[2, f32] [1. 1.]\n"), "{emitted}");
    let ran = session("x = 1\n:reset\nx\n");
    assert!(ran.code == 1 && ran.err.contains("`x` is not defined"), "{}", ran.err);
    let ran = session(":typ 1\n");
    assert!(ran.code == 1 && ran.err.contains("did you mean `:type`?"), "{}", ran.err);
}

#[test]
fn questions_are_answered() {
    let define = "def f(n: int) -> int:\n    \"\"\"Adds one.\"\"\"\n    return n + 1\n\n";
    assert_eq!(printed(&format!("{define}?f\n")), "def f(n: int) -> int\n\nAdds one.\n");
    assert_eq!(printed(&format!("{define}f?\n")), printed(&format!("{define}:doc f\n")));
    let source = printed(&format!("{define}??f\nimport shapes\n??shapes.square\n"));
    assert_eq!(
        source,
        "# <input 1>:1\ndef f(n: int) -> int:\n    \"\"\"Adds one.\"\"\"\n    return n + 1\nshapes loaded\n# shapes.tsr:3\ndef square(n):\n    return n * n\n"
    );
    assert_eq!(printed("x = op.ones((int(\"2\"), 3))\nx?\n"), "x: Tensor[2, 3, f32]\n");
    for (name, part) in [
        ("op.softmax", "op.softmax(x, axis=-1)"),
        ("softmax", "axis=-1"),
        ("nn.linear", "def linear(m: "),
        ("str.split", "split"),
        ("E0201", "# E0201"),
    ] {
        let shown = printed(&format!("?{name}\n"));
        assert!(shown.contains(part), "?{name}: {shown}");
    }
    let ran = session("?softmx\n1\n");
    assert!(
        ran.err.contains("E0602") && ran.err.contains("did you mean `softmax`?") && ran.out == "int 1\n",
        "{}",
        ran.err
    );
}

#[test]
fn values_are_silenced_or_summed_up() {
    assert_eq!(printed("x = 3\nx;\nx + 1;  # why\n_\n"), "int 4\n");
    let large = printed("x = op.arange(2000.0)\nx\nop.arange(2000) > 3\nop.arange(1000)[:2]\n");
    assert!(
        large.contains("\nmin 0.0, max 1999.0, mean 999.5, 0 NaN\n") && large.contains("\n1996 of 2000 are True\n"),
        "{large}"
    );
    assert!(large.ends_with("Tensor[2, i64] [0 1]\n"), "{large}");
}

#[test]
fn a_file_is_loaded_and_modules_are_reloaded() {
    let write = |name: &str, text: &str| format!("io.write_text(\"{name}\", \"{text}\")\n");
    let load = write("p.tsr", "print(7)\\nimport shapes\\ndef g(n):\\n    return n + shapes.side\\n\\nq = g(4)\\nq\\n");
    assert_eq!(printed(&format!("{load}:load p.tsr\nq\ng(1)\n")), "7\nshapes loaded\nint 8\nint 5\n");
    let edit = write("shapes.tsr", "side = 5\\n");
    assert_eq!(printed(&format!("{load}:load p.tsr\n{edit}g(1)\n:reload\ng(1)\n")), "7\nshapes loaded\nint 5\nint 6\n");
    // What a load could not do leaves what there was.
    let wrong = write("w.tsr", "x = 2\\ny = 1 // 0\\n");
    let ran = session(&format!("x = 1\n{wrong}:load w.tsr\nx\n:load nowhere.tsr\n"));
    assert_eq!((codes(&ran), ran.out.as_str()), (vec!["E0702", "E0706"], "int 2\n"), "{}", ran.err);
    assert!(ran.err.contains("w.tsr:2:5"), "{}", ran.err);
    assert!(session(":reload\n").err.contains("nothing was imported"));
}

#[test]
fn runs_are_timed_and_profiled() {
    let ran = session("n = 0\n:timeit op.ones((4, 4)) @ op.ones((4, 4))\n:timeit 1 // n\nn\n");
    assert_eq!(codes(&ran), ["E0702"], "{}", ran.err);
    assert!(ran.out.contains(" median of ") && ran.out.ends_with(" the first\nint 0\n"), "{}", ran.out);
    let shown = printed("x = random.normal(random.key(0), (512, 512))\n:profile x @ x\n:profile x @ x\n");
    assert_eq!(shown.matches("  dot ").count(), 2, "{shown}");
    assert!(session(":timeit\n").err.contains(":timeit EXPR"));
}

#[test]
fn the_inputs_are_saved_as_a_program() {
    let dir = tempfile::tempdir().expect("a folder");
    let run = |input: &str| run_in(dir.path(), &["repl"], input).expect("the program starts");
    let ran = run(
        "x = 2\nx + 1\ny = _ * 2\ny\n1 // 0\ndef f(n):\n    return n\n\ndef f(n):\n    return n + y\n\nprint(f(1))\n:save out.tsr\n",
    );
    assert_eq!(codes(&ran), ["E0702"], "{}", ran.err);
    let program = run_in(dir.path(), &["run", "out.tsr"], "").expect("the program starts");
    assert_eq!((program.code, program.out.as_str()), (0, "7\n"), "{}", program.err);
    // What is no program as it stands is not written.
    let ran = run("x = 1\nx = \"a\"\nx.upper()\n:save other.tsr\n");
    assert_eq!(dir.path().join("other.tsr").exists(), ran.code == 0, "{}", ran.err);
    assert!(run("x = 1\n:save nowhere/out.tsr\n").err.contains("E0706"));
}

/// What a session shows at a terminal that types these keys one after the other; `None` where there is no `script`.
fn at_terminal(keys: &[&str]) -> Option<String> {
    use std::io::{Read, Write};
    let dir = tempfile::tempdir().expect("a folder");
    let started = std::process::Command::new("script")
        .args(["-qec", &format!("{} repl", tessera_tests::program::binary().display()), "/dev/null"])
        .current_dir(dir.path())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .env("TESSERA_CACHE", dir.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        eprintln!("not run: there is no `script` here");
        return None;
    };
    let (mut to, mut from) = (child.stdin.take().expect("its input"), child.stdout.take().expect("its output"));
    let read = std::thread::spawn(move || {
        let mut bytes = vec![];
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    for key in keys {
        std::thread::sleep(std::time::Duration::from_millis(700));
        to.write_all(key.as_bytes()).expect("it reads");
        to.flush().expect("it reads");
    }
    drop(to);
    child.wait().expect("it ends");
    Some(read.join().expect("its output"))
}

#[test]
fn a_terminal_indents_and_hints() {
    let keys = [
        "op.softmax(x, ",
        "\x03",
        "def f(n):\r",
        "    return n + 1\r",
        "\r",
        "f(2)\r",
        "for i in range(2):\r",
        "print(i)\r",
        "\r",
        "while True: pass\r\r",
        "\x03",
        "f(5)\r",
        "\x04",
    ];
    let Some(shown) = at_terminal(&keys) else { return };
    assert!(shown.contains("\x1b[2maxis=-1)"), "{shown}");
    // Blanks that are typed are those that are there, and what stopped lost nothing.
    for part in ["int\x1b[0m 3", "0\r\n1\r\n", "E0713", "int\x1b[0m 6"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}

#[test]
fn ways_out() {
    assert_eq!(session("print(1)\n:quit\nprint(2)\n").out, "1\n");
    let ran = session("print(1)\nsys.exit(3)\nprint(2)\n");
    assert_eq!((ran.code, ran.out.as_str()), (3, "1\n"));
    assert_eq!(session("1 // 0\nquit()\n").code, 1);
}

#[test]
fn an_error_shows_its_own_input() {
    let ran = session("x = 1\n:type nn.linear\n:type q + x\n:type x.y\n");
    for line in ["1 │ nn.linear", "1 │ q + x", "1 │ x.y"] {
        assert_eq!(ran.err.matches(line).count(), 1, "{line} is not in\n{}", ran.err);
    }
}

#[test]
fn an_edited_module_runs_again_where_it_is_imported() {
    let edit = |side: &str| {
        format!(
            "io.write_text(\"shapes.tsr\", \"print(\\\"again\\\")\\nside = {side}\\ndef square(n):\\n    return n * side\\n\")\n"
        )
    };
    let use_it = "import shapes\nshapes.side\nshapes.square(3)\n";
    let input = format!("{use_it}{}{use_it}import shapes\nfrom shapes import side\nside\n", edit("5"));
    assert_eq!(printed(&input), "shapes loaded\nint 4\nint 9\nagain\nint 5\nint 15\nint 5\n");
    // Its values may be of other types, and what failed runs again.
    let input = format!("{use_it}{}{use_it}{}{use_it}", edit("1 // 0"), edit("2.5"));
    let ran = session(&input);
    assert!(ran.err.contains("E0702") && ran.err.contains("imported here"), "{}", ran.err);
    assert!(ran.out.starts_with("shapes loaded\nint 4\nint 9\nagain\n"), "{}", ran.out);
    assert!(ran.out.ends_with("again\nfloat 2.5\nfloat 7.5\n"), "{}", ran.out);
}

#[test]
fn a_module_runs_again_when_one_that_it_imports_was_edited() {
    let write = |name: &str, text: &str| format!("io.write_text(\"{name}.tsr\", \"{text}\")\n");
    let input = [
        write("low", "x = 1\\n"),
        write("high", "import low\\ny = low.x * 10\\n"),
        "import high\nhigh.y\n".into(),
        write("low", "x = 2\\n"),
        "import high\nhigh.y\n".into(),
    ];
    assert_eq!(printed(&input.concat()), "int 10\nint 20\n");
}

/// The codes of a session's errors, in order.
fn codes(ran: &Ran) -> Vec<&str> {
    ran.err.lines().filter_map(|line| line.strip_prefix("error[")?.split(']').next()).collect()
}

#[test]
fn sizes_last_from_input_to_input() {
    // An int that data brings, and what has its size when it changes.
    let n = "n = int(\"3\")\n";
    let ran = session(&format!(
        "{n}y: Tensor[n, f32] = op.ones((int(\"1\"),))\nz: Tensor[n, f32] = op.ones((int(\"3\"),))\nz\n"
    ));
    assert_eq!((codes(&ran), ran.out.as_str()), (vec!["E0708"], "Tensor[3, f32] [1. 1. 1.]\n"), "{}", ran.err);
    let ran = session(&format!(
        "{n}x = op.ones((n,))\nn = int(\"4\")\ny: Tensor[len(x), f32] = op.ones((n,))\ny: Tensor[len(x), f32] = op.ones((int(\"3\"),))\ny\n"
    ));
    assert_eq!((codes(&ran), ran.out.as_str()), (vec!["E0708"], "Tensor[3, f32] [1. 1. 1.]\n"), "{}", ran.err);
    // A size that an annotation names: of a file, and after its name was bound anew.
    let files = "io.write_npy(\"q.npy\", op.ones((3,)))\nio.write_npy(\"r.npy\", op.ones((1,)))\nx: Tensor[N, f32] = io.read_npy(\"q.npy\")\n";
    let ran = session(&format!("{files}y: Tensor[N, f32] = io.read_npy(\"r.npy\")\nx + y\nN\n"));
    assert_eq!((codes(&ran), ran.out.as_str()), (vec!["E0707", "E0101"], "int 3\n"), "{}", ran.err);
    let ran = session(&format!(
        "{files}N = 7\ny: Tensor[x.shape[0], f32] = io.read_npy(\"r.npy\")\nx: Tensor[2, f32] = io.read_npy(\"q.npy\")\n"
    ));
    assert_eq!(codes(&ran), ["E0707", "E0707"], "{}", ran.err);
}

#[test]
fn declared_lists_and_dicts_stay_so() {
    let three = "op.zeros((int(\"3\"),))";
    let ran = session(&format!(
        "ys: list[Tensor[2, f32]] = []\nys.append({three})\nys.append(op.zeros((int(\"2\"),)))\nys\n"
    ));
    assert_eq!((codes(&ran), ran.out.as_str()), (vec!["E0708"], "list[Tensor[2, f32]] [[0. 0.]]\n"), "{}", ran.err);
    let ran = session(&format!("d: dict[str, Tensor[2, f32]] = {{}}\nd[\"b\"] = {three}\nd\n"));
    assert_eq!((codes(&ran), ran.out.as_str()), (vec!["E0708"], "dict[str, Tensor[2, f32]] {}\n"), "{}", ran.err);
    // One that is bound anew without a type takes what it is given.
    let ran = printed(&format!("ys: list[Tensor[2, f32]] = []\nys = [op.zeros((2,))]\nys.append({three})\nlen(ys)\n"));
    assert_eq!(ran, "int 2\n");
}

#[test]
fn two_sizes_of_a_session_have_two_names() {
    let ran = session("n = len(\"ab\")\na = op.ones(n)\nn = len(\"abc\")\nb = op.ones(n)\na + b\n");
    assert_eq!(codes(&ran), ["E0708"], "{}", ran.err);
    assert!(ran.err.contains("n is 2") && ran.err.contains("n_2 is 3"), "{}", ran.err);
}

#[test]
fn a_struct_that_is_defined_again_is_another_one() {
    let text = "struct S:\n    a: int\n\ns = S(1)\nstruct S:\n    a: int\n\ndef f(s: S) -> int:\n    return s.a\n\nf(s)\nf(S(2))\n";
    let ran = session(text);
    assert_eq!((codes(&ran), ran.out.as_str()), (vec!["E0204"], "int 2\n"), "{}", ran.err);
    for part in ["the `S` that is declared", "the `S` of the value", "<input 1>:1:8", "<input 3>:1:8"] {
        assert!(ran.err.contains(part), "{part}\n{}", ran.err);
    }
}

#[test]
fn a_constant_that_is_bound_again_leaves_signatures_alone() {
    let text = "C = 3\ndef f(x: Tensor[C, f32]) -> Tensor[C, f32]:\n    return x\n\nC = 4\nf(op.ones(3))\nf(op.ones(4))\ndef g(x: Tensor[C, f32]) -> int:\n    return 1\n\ng(op.ones(4))\n";
    let ran = session(text);
    assert_eq!((codes(&ran), ran.out.as_str()), (vec!["E0202"], "Tensor[3, f32] [1. 1. 1.]\nint 1\n"), "{}", ran.err);
}
