//! `tessera run --checked`: kernels in the interpreter of Tile IR give the same results and stop
//! at what is wrong.

use tessera_tests::golden::blocks;
use tessera_tests::program::{root, run_source};

#[test]
fn checked_runs_print_the_same() {
    let mut complaints = vec![];
    for name in ["kernels.md", "tile-programs.md", "reductions.md", "linear-algebra.md"] {
        let text = std::fs::read_to_string(root().join("tests/golden/run").join(name)).unwrap_or_default();
        let mut source = None;
        for block in blocks(&text) {
            match (block.info.split(' ').next(), &source) {
                (Some("tessera"), _) => source = Some(block.text),
                (Some("output"), Some(program)) => match run_source(program, &["run", "--checked", "-q"]) {
                    Ok(r) if r.out.trim_end() == block.text.trim_end() => {}
                    Ok(r) => complaints.push(format!("{name}: {}\n{}{}", block.heading, r.out, r.err)),
                    Err(e) => complaints.push(format!("{name}: {e}")),
                },
                _ => {}
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
fn an_index_from_data_that_is_out_of_range_stops_at_its_line() -> std::io::Result<()> {
    let source = "x = op.arange(40.0)\ni = op.arange(50)\nprint(op.exp(x)[i].sum())\n";
    let r = run_source(source, &["run", "--checked"])?;
    assert!(r.code == 1 && r.err.contains("E0703") && r.err.contains("main.tsr:3:"), "{}{}", r.out, r.err);
    Ok(())
}

#[test]
fn sizes_that_differ_stop_at_their_comparison() -> std::io::Result<()> {
    let programs = [
        "def three(x: Tensor[3, f32]):\n    return x\nn = int(\"2\")\ny = three(op.ones((n,)))\n",
        "def f(x: Tensor[n, f32], n: int):\n    return x\nn = int(\"2\")\ny = f(op.ones((3,)), n)\n",
        "def f(xs: list[Tensor[N, f32]], x: Tensor[N, f32]):\n    return x\nn = int(\"2\")\n\
         y = f([op.ones((3,)), op.ones((n,))], op.ones((3,)))\n",
        "def f(p: tuple[Tensor[N, f32], Tensor[N, f32]]) -> Tensor[N, f32]:\n    return p[1]\n\
         p = (op.ones((int(\"1\"),)), op.ones((int(\"3\"),)))\ny = f(p)\n",
        "def f(p: tuple[float, Tensor[N, f32]], x: Tensor[N, f32]):\n    print(x)\n\
         x = op.ones((int(\"1\"),))\nf((1, op.ones((int(\"3\"),))), x)\n",
    ];
    for source in programs {
        let r = run_source(source, &["run", "--checked"])?;
        assert!(r.code == 1 && r.err.contains("E0708"), "{source}{}{}", r.out, r.err);
    }
    // A variable has the type of its value, whatever it held before.
    let source = "x = op.ones((1,))\nfor t in range(int(\"3\")):\n    x = op.concat([x, op.ones((1,))], axis=0)\n";
    let r = run_source(source, &["run", "--checked"])?;
    assert!(r.code == 0, "{}{}", r.out, r.err);
    Ok(())
}

#[test]
fn nothing_is_read_before_a_loop_of_no_turns() -> std::io::Result<()> {
    // What a loop reads at a place of its own is read before it; here there is no element at any place.
    let programs = [
        "print(op.ones((0,), dtype=bf16) @ op.cumsum(op.zeros((0, 3), dtype=bf16)))\n",
        "z = int(\"0\")\nprint(op.dot(op.ones((z,), dtype=i32), op.ones((z,), dtype=i32)) * 1.0)\n",
        "x = op.cast(op.arange(5), i32)\nn = int(\"5\")\nprint(op.dot(x[n:], x[5:]) * 1.0)\n",
    ];
    for source in programs {
        let r = run_source(source, &["run", "--checked"])?;
        assert!(r.code == 0 && r.out == "0.0\n", "{source}{}{}", r.out, r.err);
    }
    Ok(())
}
