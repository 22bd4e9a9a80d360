//! ONNX files whose graphs are more than nodes in a row: branches, loops, functions, sequences, sizes that go through floats.

use tessera_tests::onnx::{
    Attribute, constant, floats, function_with, input, ints, model, node, one_int, told, with_function,
};
use tessera_tests::program::{Ran, run_in};

fn run(file: &[u8], source: &str) -> Ran {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(dir.path().join("m.onnx"), file).unwrap_or_else(|e| panic!("{e}"));
    let source = format!("net = io.read_onnx(\"m.onnx\")\n{source}");
    std::fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    run_in(dir.path(), &["run", "main.tsr"], "").unwrap_or_else(|e| panic!("{e}"))
}

fn prints(file: &[u8], source: &str, wanted: &str) {
    let r = run(file, source);
    assert_eq!((r.code, &*r.out), (0, wanted), "{}", r.err);
}

fn refused(file: &[u8], source: &str, words: &[&str]) {
    let r = run(file, source);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    for word in words {
        assert!(r.err.contains(word), "`{word}` is not in\n{}", r.err);
    }
}

#[test]
fn nodes_stand_in_any_order() {
    let nodes = [node("Neg", &["b"], &["y"], &[]), node("Exp", &["a"], &["b"], &[]), node("Relu", &["x"], &["a"], &[])];
    let file = model(17, &[input("x", 1, &["n"])], &[], &nodes, &["y"]);
    prints(&file, "print(net(op.array([-1.0, 0.0])))\n", "[-1. -1.]\n");
    let circle = [node("Add", &["x", "b"], &["a"], &[]), node("Neg", &["a"], &["b"], &[])];
    let file = model(17, &[input("x", 1, &["n"])], &[], &circle, &["b"]);
    refused(&file, "print(1)\n", &["E0690", "nothing before it computes `"]);
}

#[test]
fn an_operator_that_the_file_defines_is_written_out() {
    let body = [
        node("LeakyRelu", &["a"], &["h"], &[("alpha", Attribute::Of("slope"))]),
        node("Add", &["h", "b"], &["c"], &[]),
    ];
    let call = |slope: f32, x: &'static str, y: &'static str| {
        node("own.Leak", &[x, "w"], &[y], &[("slope", Attribute::Float(slope))])
    };
    let weights = [floats("w", &[2], &[10.0, 20.0])];
    let file = model(17, &[input("x", 1, &["2"])], &weights, &[call(0.5, "x", "h"), call(0.25, "h", "y")], &["y"]);
    let file = with_function(file, ("own", "Leak"), &["a", "b"], &["c"], &["slope"], &body);
    prints(&file, "print(net(op.array([-4.0, -80.0])))\n", "[18. 15.]\n");
    let endless = [node("own.Leak", &["a", "b"], &["c"], &[])];
    let file = model(17, &[input("x", 1, &["2"])], &weights, &[call(0.5, "x", "y")], &["y"]);
    let file = with_function(file, ("own", "Leak"), &["a", "b"], &["c"], &["slope"], &endless);
    refused(&file, "print(1)\n", &["E0707", "functions deep"]);
}

#[test]
fn a_branch_by_data_is_the_one_that_is_computed() {
    let then = Attribute::Graph(vec![node("Neg", &["x"], &["t"], &[])], "t");
    let otherwise = Attribute::Graph(vec![node("Concat", &["x", "x"], &["e"], &[("axis", Attribute::Int(0))])], "e");
    let branches = [("then_branch", then), ("else_branch", otherwise)];
    let inputs = [input("x", 1, &["n"]), input("c", 9, &["1"])];
    let nodes = [node("If", &["c"], &["h"], &branches), node("Exp", &["h"], &["y"], &[])];
    let file = model(17, &inputs, &[], &nodes, &["y"]);
    let source = "x = op.zeros((2,))\nprint(net(x, op.array([True])), net(x, op.array([False])))\n";
    prints(&file, source, "[1. 1.] [1. 1. 1. 1.]\n");
    // A derivative has both, of one type.
    let then = Attribute::Graph(vec![node("Neg", &["x"], &["t"], &[])], "t");
    let otherwise = Attribute::Graph(vec![node("Sin", &["x"], &["e"], &[])], "e");
    let nodes = [node("If", &["c"], &["y"], &[("then_branch", then), ("else_branch", otherwise)])];
    let file = model(17, &inputs, &[], &nodes, &["y"]);
    let source =
        "for c in [True, False]:\n    print(autodiff.grad(lambda x: net(x, op.array([c])).sum())(op.zeros((2,))))\n";
    prints(&file, source, "[-1. -1.]\n[1. 1.]\n");
    // Sizes that a branch gives make shapes behind it.
    let size = |value: i64, name: &'static str| {
        let t = constant("", 7, &[2], [value, -1].iter().flat_map(|n| n.to_le_bytes()).collect());
        Attribute::Graph(vec![node("Constant", &[], &[name], &[("value", Attribute::Tensor(t))])], name)
    };
    let branches = [("then_branch", size(2, "t")), ("else_branch", size(4, "e"))];
    let nodes = [node("If", &["c"], &["s"], &branches), node("Reshape", &["x", "s"], &["y"], &[])];
    let file = model(17, &inputs, &[], &nodes, &["y"]);
    let source = "c = op.array([True])\nprint(net(op.arange(4.0), c).shape)\n";
    let r = run(&file, source);
    assert!(r.code == 0 && r.out == "(2, 2)\n" || r.err.contains("error[E02"), "{}{}", r.out, r.err);
}

#[test]
fn a_branch_without_a_name_is_told_without_one() {
    let test = [
        node("Shape", &["x"], &["s"], &[]),
        node("Gather", &["s", "last"], &["g"], &[]),
        node("Equal", &["g", "one"], &["c"], &[]),
    ];
    let dropped = Attribute::Graph(vec![node("Squeeze", &["x", "axes"], &["t"], &[])], "t");
    let kept = Attribute::Graph(vec![node("Identity", &["x"], &["e"], &[])], "e");
    let mut chosen = node("If", &["c"], &["y"], &[("then_branch", dropped), ("else_branch", kept)]);
    // The field of the name once more, empty.
    chosen.extend([0x1a, 0]);
    let nodes: Vec<Vec<u8>> = test.into_iter().chain([chosen]).collect();
    let constants = [one_int("last", -1), one_int("one", 1), ints("axes", &[1])];
    let file = model(17, &[input("x", 1, &["n", "k"])], &constants, &nodes, &["y"]);
    prints(&file, "print(net(op.ones((2, 1))))\n", "[1. 1.]\n");
    let r = run(&file, "print(net(op.ones((2, 3))))\n");
    assert!(r.code == 1 && r.err.contains("holds") && !r.err.contains("holds ("), "{}", r.err);
}

#[test]
fn loops_run_by_number_and_by_condition() {
    let body = || {
        Attribute::Body(
            vec!["i", "go", "v"],
            vec![
                node("Cast", &["i"], &["f"], &[("to", Attribute::Int(1))]),
                node("Add", &["v", "f"], &["next"], &[]),
                node("ReduceSum", &["next"], &["sum"], &[("keepdims", Attribute::Int(0))]),
                node("Less", &["sum", "bound"], &["goes"], &[]),
                node("Identity", &["next"], &["row"], &[]),
            ],
            vec!["goes", "next", "row"],
        )
    };
    let inputs = [input("x", 1, &["n"]), input("bound", 1, &[]), input("turns", 7, &[])];
    let counted = [node("Loop", &["turns", "", "x"], &["y", "rows"], &[("body", body())])];
    let file = model(17, &inputs, &[], &counted, &["y", "rows"]);
    let source = "x = op.zeros((2,))\nfor bound in [100.0, 3.0]:\n    y, rows = net(x, op.array(bound), op.array(4))\n    \
                  print(y, rows[:, 0])\n";
    prints(&file, source, "[6. 6.] [0. 1. 3. 6.]\n[3. 3.] [0. 1. 3.]\n");
    let yes = constant("yes", 9, &[], vec![1]);
    let tested = [node("Loop", &["", "yes", "x"], &["y", "rows"], &[("body", body())])];
    let file = model(17, &inputs[..2], &[yes], &tested, &["y", "rows"]);
    prints(&file, "print(net(op.zeros((2,)), op.array(7.0))[0])\n", "[6. 6.]\n");
    let grows = Attribute::Body(
        vec!["i", "go", "v"],
        vec![
            node("Concat", &["v", "x"], &["next"], &[("axis", Attribute::Int(0))]),
            node("Identity", &["go"], &["goes"], &[]),
        ],
        vec!["goes", "next"],
    );
    let file = model(
        17,
        &inputs[..1],
        &[one_int("three", 3)],
        &[node("Loop", &["three", "", "x"], &["y"], &[("body", grows)])],
        &["y"],
    );
    prints(&file, "print(net(op.ones((2,))).shape)\n", "(8,)\n");
}

#[test]
fn a_scan_carries_and_stacks() {
    let body = Attribute::Body(
        vec!["state", "row"],
        vec![node("Add", &["state", "row"], &["next"], &[]), node("Neg", &["next"], &["out"], &[])],
        vec!["next", "out"],
    );
    let attributes = [
        ("body", body),
        ("num_scan_inputs", Attribute::Int(1)),
        ("scan_input_axes", Attribute::Ints(vec![1])),
        ("scan_input_directions", Attribute::Ints(vec![1])),
        ("scan_output_axes", Attribute::Ints(vec![-1])),
    ];
    let inputs = [input("s", 1, &["2"]), input("x", 1, &["2", "n"])];
    let file = model(17, &inputs, &[], &[node("Scan", &["s", "x"], &["last", "all"], &attributes)], &["last", "all"]);
    let source = "last, all = net(op.zeros((2,)), op.array([[1.0, 2.0, 4.0], [0.0, 0.0, 1.0]]))\nprint(last, all[0])\n\
                  print(autodiff.grad(lambda x: net(op.zeros((2,)), x)[1].sum())(op.ones((2, 2)))[0])\n";
    prints(&file, source, "[7. 1.] [-4. -6. -7.]\n[-1. -2.]\n");
}

#[test]
fn sizes_go_through_floats() {
    let half = floats("half", &[], &[0.5]);
    let nodes = [
        node("Shape", &["x"], &["s"], &[]),
        node("Slice", &["s", "two", "four"], &["sides"], &[]),
        node("Cast", &["sides"], &["f"], &[("to", Attribute::Int(1))]),
        node("Mul", &["f", "half"], &["g"], &[]),
        node("Floor", &["g"], &["h"], &[]),
        node("Cast", &["h"], &["sizes"], &[("to", Attribute::Int(7))]),
        node("Concat", &["ones", "sizes"], &["all"], &[("axis", Attribute::Int(0))]),
        node("Resize", &["x", "", "", "all"], &["y"], &[]),
    ];
    let constants = [half, ints("two", &[2]), ints("four", &[4]), ints("ones", &[1, 1])];
    let file = model(17, &[input("x", 1, &["1", "1", "h", "w"])], &constants, &nodes, &["y"]);
    prints(
        &file,
        "print(net(op.ones((1, 1, 5, 4))).shape, net(op.ones((1, 1, 6, 2))).shape)\n",
        "(1, 1, 2, 2) (1, 1, 3, 1)\n",
    );
    // Scales that are made of sizes: what makes the picture 6 high.
    let nodes = [
        node("Shape", &["x"], &["s"], &[]),
        node("Slice", &["s", "two", "three"], &["high"], &[]),
        node("Cast", &["high"], &["f"], &[("to", Attribute::Int(1))]),
        node("Div", &["six", "f"], &["scale"], &[]),
        node("Concat", &["ones", "scale", "one"], &["scales"], &[("axis", Attribute::Int(0))]),
        node("Resize", &["x", "", "scales"], &["y"], &[]),
    ];
    let constants = [
        floats("six", &[1], &[6.0]),
        floats("ones", &[2], &[1.0, 1.0]),
        floats("one", &[1], &[1.0]),
        ints("two", &[2]),
        ints("three", &[3]),
    ];
    let file = model(17, &[input("x", 1, &["1", "1", "h", "w"])], &constants, &nodes, &["y"]);
    prints(
        &file,
        "print(net(op.ones((1, 1, 3, 4))).shape, net(op.ones((1, 1, 4, 2))).shape)\n",
        "(1, 1, 6, 4) (1, 1, 6, 2)\n",
    );
    // A constant of another float dtype is one still.
    let nodes = [
        node("Cast", &["low"], &["l"], &[("to", Attribute::Int(10))]),
        node("Mul", &["l", "l"], &["square"], &[]),
        node("Add", &["x", "square"], &["y"], &[]),
    ];
    let file = model(17, &[input("x", 10, &["n"])], &[floats("low", &[], &[0.5])], &nodes, &["y"]);
    prints(&file, "print(net(op.zeros((2,), dtype=f16)))\n", "[0.25 0.25]\n");
}

#[test]
fn ranks_follow_from_sizes() {
    // By the sizes that follow from the input.
    let nodes = [node("Transpose", &["x"], &["t"], &[]), node("Squeeze", &["t"], &["y"], &[])];
    let file = model(13, &[input("x", 1, &["1", "3", "1", "2"])], &[], &nodes, &["y"]);
    prints(&file, "print(net(op.ones((1, 3, 1, 2))).shape)\n", "(2, 3)\n");
    // By those that the file tells, which are compared with what is there.
    let nodes = [node("Softmax", &["x"], &["t"], &[]), node("Squeeze", &["t"], &["y"], &[])];
    let file = told(13, &[input("x", 1, &["a", "b", "c"])], &[input("t", 1, &["a", "1", "c"])], &nodes, &["y"]);
    prints(&file, "print(net(op.ones((2, 1, 3))).shape)\n", "(2, 3)\n");
    refused(&file, "print(net(op.ones((2, 2, 3))).shape)\n", &["Squeeze, node the y"]);
    let file = told(13, &[input("x", 1, &["a", "b", "c"])], &[], &nodes, &["y"]);
    refused(&file, "print(1)\n", &["E0690", "the file does not tell the sizes that decide its rank"]);
    // As exporters write `x[i]`.
    let nodes = [node("Unsqueeze", &["i", "last"], &["at"], &[]), node("GatherND", &["x", "at"], &["y"], &[])];
    let inputs = [input("x", 1, &["n", "2"]), input("i", 7, &["k"])];
    let file = model(13, &inputs, &[ints("last", &[-1])], &nodes, &["y"]);
    prints(
        &file,
        "print(net(op.arange(6.0).reshape(3, 2), op.array([2, 0])).tolist())\n",
        "[[4.0, 5.0], [0.0, 1.0]]\n",
    );
}

#[test]
fn calls_of_a_file_without_weights_are_checked_one_by_one() {
    let nodes = [node("Reshape", &["x", "to"], &["y"], &[])];
    let file = model(13, &[input("x", 1, &["n", "k"])], &[ints("to", &[2, -1, 3])], &nodes, &["y"]);
    prints(&file, "print(net(op.ones((4, 3))).shape, net(op.ones((6, 1))).shape)\n", "(2, 2, 3) (2, 1, 3)\n");
    refused(&file, "print(net(op.ones((5, 1))).shape)\n", &["E0208", "Reshape, node the y"]);
}

#[test]
fn one_scale_of_a_quantised_file_is_a_vector_or_a_number() {
    let bytes = constant("zero", 2, &[1], vec![3]);
    let nodes = [
        node("QuantizeLinear", &["x", "scale", "zero"], &["q"], &[]),
        node("DequantizeLinear", &["q", "scale", "zero"], &["y"], &[]),
    ];
    let file = model(13, &[input("x", 1, &["n", "3"])], &[floats("scale", &[1], &[0.5]), bytes], &nodes, &["q", "y"]);
    prints(&file, "q, y = net(op.array([[1.1, -9.0, 2.0]]))\nprint(q, y)\n", "[[5 0 7]] [[ 1.  -1.5  2. ]]\n");
}

#[test]
fn sequences_have_a_known_length() {
    let nodes = [
        node("SplitToSequence", &["x"], &["rows"], &[("keepdims", Attribute::Int(0))]),
        node("SequenceAt", &["rows", "last"], &["z"], &[]),
        node("SequenceErase", &["rows", "zero"], &["fewer"], &[]),
        node("SequenceInsert", &["fewer", "z"], &["more"], &[]),
        node("SequenceLength", &["more"], &["count"], &[]),
        node("ConcatFromSequence", &["more"], &["y"], &[("axis", Attribute::Int(0)), ("new_axis", Attribute::Int(1))]),
        node("SequenceEmpty", &[], &["none"], &[]),
        node("SequenceInsert", &["none", "z", "zero"], &["single"], &[]),
        node("SequenceConstruct", &["z", "z"], &["pair"], &[]),
        node("ConcatFromSequence", &["pair"], &["w"], &[("axis", Attribute::Int(0))]),
        node("ConcatFromSequence", &["single"], &["v"], &[("axis", Attribute::Int(0))]),
    ];
    let constants = [one_int("last", -1), one_int("zero", 0)];
    let file = model(13, &[input("x", 1, &["3", "2"])], &constants, &nodes, &["y", "count", "w", "v"]);
    let source = "y, count, w, v = net(op.arange(6.0).reshape(3, 2))\nprint(y.tolist(), count, w, v)\n";
    prints(&file, source, "[[2.0, 3.0], [4.0, 5.0], [4.0, 5.0]] 3 [4. 5. 4. 5.] [4. 5.]\n");
    let nodes = [node("SplitToSequence", &["x"], &["rows"], &[]), node("SequenceAt", &["rows", "i"], &["y"], &[])];
    let inputs = [input("x", 1, &["3", "2"]), input("i", 7, &[])];
    refused(&model(13, &inputs, &[], &nodes, &["y"]), "print(1)\n", &["E0690", "`SequenceAt`", "depends on data"]);
}

#[test]
fn sequences_hold_tensors() {
    let nodes =
        [node("SequenceConstruct", &["x", "x"], &["s"], &[]), node("SequenceConstruct", &["s", "s"], &["t"], &[])];
    let file = model(17, &[input("x", 1, &["n"])], &[], &nodes, &["x"]);
    refused(&file, "print(1)\n", &["E0690", "`SequenceConstruct`, node `the t`", "its argument 0 is no tensor"]);
}

#[test]
fn many_calls_of_a_large_function_are_refused_before_they_are_written_out() {
    let large = node("Constant", &[], &["k"], &[("value_ints", Attribute::Ints(vec![1; 1_000_000]))]);
    let body = [large, node("Identity", &["a"], &["b"], &[])];
    let names: Vec<String> = (0..901).map(|i| format!("h{i}")).collect();
    let calls: Vec<Vec<u8>> = names.windows(2).map(|w| node("own.F", &[&w[0]], &[&w[1]], &[])).collect();
    let file = model(17, &[input("h0", 1, &["n"])], &[], &calls, &["h900"]);
    let file = with_function(file, ("own", "F"), &["a"], &["b"], &[], &body);
    refused(&file, "print(1)\n", &["E0707", "it has more than 1048576 nodes and tensors"]);
}

#[test]
fn many_tensors_of_one_name_take_no_longer_than_others() {
    let weights: Vec<Vec<u8>> = (0..20_000).map(|i| floats("w", &[], &[i as f32])).collect();
    let file = model(17, &[input("x", 1, &["n"])], &weights, &[node("Add", &["x", "w"], &["y"], &[])], &["y"]);
    let start = std::time::Instant::now();
    prints(&file, "print(net(op.zeros((1,))))\n", "[19999.]\n");
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[test]
fn ints_to_negative_powers_are_ones_or_zero() {
    let file = model(
        17,
        &[input("x", 7, &["n"]), input("p", 6, &["n"])],
        &[],
        &[node("Pow", &["x", "p"], &["y"], &[])],
        &["y"],
    );
    let source = "print(net(op.array([1, -1, -1, 2, -3, 3]), op.array([-3, -3, -2, -1, 0, 4], dtype=i32)))\n";
    prints(&file, source, "[ 1 -1  1  0  1 81]\n");
}

#[test]
fn a_product_over_no_axes_is_its_argument() {
    let attributes = [("noop_with_empty_axes", Attribute::Int(1))];
    let nodes = [node("Shape", &["x"], &["s"], &[]), node("ReduceProd", &["s", "none"], &["y"], &attributes)];
    let file = model(18, &[input("x", 1, &["n", "k"])], &[ints("none", &[])], &nodes, &["y"]);
    prints(&file, "print(net(op.ones((5, 2))))\n", "[5 2]\n");
}

#[test]
fn inputs_may_have_names_of_functions_of_the_language() {
    let body = Attribute::Body(
        vec!["i", "go", "v"],
        vec![node("Add", &["v", "range"], &["next"], &[]), node("Identity", &["go"], &["goes"], &[])],
        vec!["goes", "next"],
    );
    let nodes = [
        node("Loop", &["int", "", "range"], &["y"], &[("body", body)]),
        node("Shape", &["round"], &["s"], &[]),
        node("Cast", &["s"], &["f"], &[("to", Attribute::Int(1))]),
        node("Mul", &["f", "half"], &["g"], &[]),
        node("Round", &["g"], &["h"], &[]),
        node("Cast", &["h"], &["size"], &[("to", Attribute::Int(7))]),
        node("Expand", &["abs", "size"], &["z"], &[]),
    ];
    let inputs = [input("range", 1, &["n"]), input("int", 7, &[]), input("round", 1, &["n"]), input("abs", 1, &[])];
    let file = model(17, &inputs, &[floats("half", &[1], &[0.5])], &nodes, &["y", "z"]);
    let source = "y, z = net(op.ones((4,)), op.array(3), op.ones((4,)), op.array(7.0))\nprint(y, z)\n";
    prints(&file, source, "[4. 4. 4. 4.] [7. 7.]\n");
}

#[test]
fn a_name_is_computed_once() {
    let twice = [node("Neg", &["x"], &["a"], &[]), node("Exp", &["x"], &["a"], &[])];
    refused(
        &model(17, &[input("x", 1, &["n"])], &[], &twice, &["a"]),
        "print(1)\n",
        &["E0690", "`a` is computed twice"],
    );
    let over = [node("Neg", &["x"], &["x"], &[])];
    refused(
        &model(17, &[input("x", 1, &["n"])], &[], &over, &["x"]),
        "print(1)\n",
        &["E0690", "`x` is computed twice"],
    );
    let inputs = [input("x", 1, &["n"]), input("x", 1, &["n"])];
    refused(
        &model(17, &inputs, &[], &[node("Neg", &["x"], &["y"], &[])], &["y"]),
        "print(1)\n",
        &["E0690", "two inputs have its name"],
    );
}

#[test]
fn names_of_an_inner_graph_are_not_those_around_it() {
    // `t` of the branches is not the `t` that the result of the `If` makes.
    let branch = |op: &str, name: &'static str| {
        Attribute::Graph(vec![node(op, &["x"], &["t"], &[]), node("Neg", &["t"], &[name], &[])], name)
    };
    let branches = [("then_branch", branch("Exp", "p")), ("else_branch", branch("Relu", "q"))];
    let nodes = [node("If", &["c"], &["h"], &branches), node("Neg", &["h"], &["t"], &[])];
    let file = model(17, &[input("x", 1, &["n"]), input("c", 9, &[])], &[], &nodes, &["t"]);
    prints(&file, "print(net(op.zeros((2,)), op.array(True)))\n", "[1. 1.]\n");
}

#[test]
fn a_loop_without_turns_stacks_no_rows() {
    let looped = |sizes: &[&str]| {
        let body = Attribute::Body(
            vec!["i", "go", "v"],
            vec![
                node("Identity", &["go"], &["goes"], &[]),
                node("Exp", &["v"], &["next"], &[]),
                node("Identity", &["next"], &["row"], &[]),
            ],
            vec!["goes", "next", "row"],
        );
        let nodes = [node("Loop", &["turns", "", "x"], &["y", "rows"], &[("body", body)])];
        told(17, &[input("x", 1, &["2"]), input("turns", 7, &[])], &[input("row", 1, sizes)], &nodes, &["rows"])
    };
    let source = "for turns in [0, 3]:\n    print(net(op.zeros((2,)), op.array(turns)).shape)\n";
    prints(&looped(&["2"]), source, "(0, 2)\n(3, 2)\n");
    refused(&looped(&["n"]), source, &["this Loop took no turn", "`row`"]);
}

#[test]
fn floats_of_sizes_are_rounded_as_their_dtype_is() {
    // Products that reach a whole number when they are rounded to f32, and others that do not.
    let nodes = |to: i64| {
        [
            node("Shape", &["x"], &["s"], &[]),
            node("Cast", &["s"], &["f"], &[("to", Attribute::Int(to))]),
            node("Mul", &["f", "part"], &["g"], &[]),
            node("Floor", &["g"], &["h"], &[]),
            node("Cast", &["h"], &["size"], &[("to", Attribute::Int(7))]),
            node("Expand", &["one", "size"], &["y"], &[]),
        ]
    };
    for n in [11usize, 47, 93, 121, 999] {
        let part = 1.0 / n as f32;
        let constants = [floats("part", &[1], &[part]), floats("one", &[], &[1.0])];
        let file = model(17, &[input("x", 1, &["n"])], &constants, &nodes(1), &["y"]);
        let source = format!("print(net(op.ones(({n},))).shape[0], net(op.ones(({},))).shape[0])\n", 7 * n);
        let wanted = format!("{} {}\n", (n as f32 * part).floor(), ((7 * n) as f32 * part).floor());
        prints(&file, &source, &wanted);
    }
    // In f16 2049 is 2048.
    let half = constant("part", 10, &[1], vec![0x00, 0x3c]);
    let file = model(17, &[input("x", 1, &["n"])], &[half, floats("one", &[], &[1.0])], &nodes(10), &["y"]);
    prints(
        &file,
        "print(net(op.ones((2049,))).shape, autodiff.grad(lambda x: net(x).sum() + x.sum())(op.ones((2049,)))[0])\n",
        "(2048,) 1.0\n",
    );
}

#[test]
fn a_call_may_leave_out_arguments_of_a_function() {
    let body = [node("Clip", &["a", "low", "high"], &["c"], &[])];
    let calls = [node("own.Cut", &["x", "", "one"], &["h"], &[]), node("own.Cut", &["h", "zero"], &["y"], &[])];
    let weights = [floats("one", &[], &[1.0]), floats("zero", &[], &[0.0])];
    let file = model(17, &[input("x", 1, &["n"])], &weights, &calls, &["h", "y"]);
    let file = with_function(file, ("own", "Cut"), &["a", "low", "high"], &["c"], &[], &body);
    prints(&file, "h, y = net(op.array([-2.0, 0.5, 3.0]))\nprint(h, y)\n", "[-2.   0.5  1. ] [0.  0.5 1. ]\n");
    let needs = [node("Add", &["a", "low"], &["c"], &[])];
    let file = model(17, &[input("x", 1, &["n"])], &[], &[node("own.Cut", &["x"], &["y"], &[])], &["y"]);
    let file = with_function(file, ("own", "Cut"), &["a", "low"], &["c"], &[], &needs);
    refused(&file, "print(1)\n", &["E0690", "it lacks argument 1"]);
}

#[test]
fn tensors_that_stand_for_attributes_of_a_call_are_read() {
    let body =
        [node("Constant", &[], &["k"], &[("value", Attribute::Of("value"))]), node("Add", &["a", "k"], &["b"], &[])];
    let many: Vec<u8> = (0..20).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let defaults = [("value", Attribute::Tensor(constant("", 1, &[20], many)))];
    let file = |opset| {
        let file = model(17, &[input("x", 1, &["20"])], &[], &[node("own.F", &["x"], &["y"], &[])], &["y"]);
        function_with(file, ("own", "F"), &["a"], &["b"], &[], &body, &defaults, opset)
    };
    prints(&file(17), "print(net(op.ones((20,)))[18:])\n", "[19. 20.]\n");
    refused(&file(999), "print(1)\n", &["E0690", "its function `F` has version 999 of the operators"]);
}

#[test]
fn a_transposed_convolution_reaches_sizes_that_are_asked_for() {
    for (shape, mode) in [(Some(9), "NOTSET"), (None, "SAME_UPPER")] {
        let mut attributes = vec![("strides", Attribute::Ints(vec![4]))];
        match shape {
            Some(size) => attributes.push(("output_shape", Attribute::Ints(vec![size]))),
            None => attributes.push(("auto_pad", Attribute::Text(mode))),
        }
        let nodes = [node("ConvTranspose", &["x", "w"], &["y"], &attributes)];
        let file = model(17, &[input("x", 1, &["1", "1", "n"]), input("w", 1, &["1", "1", "k"])], &[], &nodes, &["y"]);
        let source = "y = net(op.ones((1, 1, 2)), op.ones((1, 1, 2)))\nprint(y.reshape(-1))\n";
        prints(
            &file,
            source,
            if shape.is_some() { "[1. 1. 0. 0. 1. 1. 0. 0. 0.]\n" } else { "[1. 1. 0. 0. 1. 1. 0. 0.]\n" },
        );
    }
}

#[test]
fn corners_are_aligned_where_a_scale_gives_a_fraction() {
    let attributes =
        [("mode", Attribute::Text("linear")), ("coordinate_transformation_mode", Attribute::Text("align_corners"))];
    let nodes = [node("Resize", &["x", "", "scales"], &["y"], &attributes)];
    let file = model(17, &[input("x", 1, &["4"])], &[floats("scales", &[1], &[0.8])], &nodes, &["y"]);
    prints(&file, "print(net(op.array([0.0, 1.0, 2.0, 3.0])))\n", "[0.  1.5 3. ]\n");
}
