//! ONNX files whose sizes data decides, whose elements have no dtype here or lie in other files, and which draw numbers.

use std::path::Path;
use tessera_tests::onnx::{Attribute, constant, floats, input, ints, model, node, one_int, outside};
use tessera_tests::program::{Ran, run_in};

fn run_beside(files: &[(&str, &[u8])], source: &str) -> Ran {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    run_at(dir.path(), files, source)
}

fn run_at(dir: &Path, files: &[(&str, &[u8])], source: &str) -> Ran {
    for (name, content) in files {
        let path = dir.join(name);
        path.parent().map(std::fs::create_dir_all).transpose().unwrap_or_else(|e| panic!("{e}"));
        std::fs::write(path, content).unwrap_or_else(|e| panic!("{e}"));
    }
    let source = format!("net = io.read_onnx(\"m.onnx\")\n{source}");
    std::fs::write(dir.join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    run_in(dir, &["run", "main.tsr"], "").unwrap_or_else(|e| panic!("{e}"))
}

fn prints(file: &[u8], source: &str, wanted: &str) {
    let r = run_beside(&[("m.onnx", file)], source);
    assert_eq!((r.code, &*r.out), (0, wanted), "{}", r.err);
}

fn is_refused(r: &Ran, words: &[&str]) {
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    assert_eq!(r.err.matches("error[").count(), 1, "{}", r.err);
    for word in words {
        assert!(r.err.contains(word), "`{word}` is not in\n{}", r.err);
    }
}

fn refused(file: &[u8], source: &str, words: &[&str]) {
    is_refused(&run_beside(&[("m.onnx", file)], source), words);
}

/// The size that data decides goes on: rows are chosen, read, counted, and shapes are made of them.
#[test]
fn sizes_that_data_decides_are_sizes_from_then_on() {
    let nodes = [
        node("Greater", &["x", "zero"], &["c"], &[]),
        node("NonZero", &["c"], &["places"], &[]),
        node("Squeeze", &["places", "axes"], &["at"], &[]),
        node("Gather", &["x", "at"], &["chosen"], &[]),
        node("Shape", &["chosen"], &["count"], &[]),
        node("Concat", &["count", "two"], &["shape"], &[("axis", Attribute::Int(0))]),
        node("Unsqueeze", &["chosen", "one"], &["column"], &[]),
        node("Expand", &["column", "shape"], &["y"], &[]),
    ];
    let constants = [floats("zero", &[], &[0.0]), ints("axes", &[0]), ints("two", &[2]), ints("one", &[1])];
    let file = model(17, &[input("x", 1, &["n"])], &constants, &nodes, &["y", "count"]);
    let source = "for x in [op.array([1.0, -2.0, 3.0]), op.array([-1.0, -2.0, 5.0])]:\n    print(net(x))\n";
    prints(&file, source, "([[1. 1.]\n [3. 3.]], [2])\n([[5. 5.]], [1])\n");
    prints(&file, "print(net(op.array([-1.0]))[0].shape)\n", "(0, 2)\n");
}

/// `x[mask]` and `x[mask] = value` as exporters write them: the places of a mask, a row for each.
#[test]
fn masks_choose_and_replace_elements() {
    let by_mask = |mask: &[Vec<u8>], sizes: &[&str], last: Vec<Vec<u8>>| {
        let places = [
            node("NonZero", &["c"], &["p"], &[]),
            node("Transpose", &["p"], &["at"], &[("perm", Attribute::Ints(vec![1, 0]))]),
        ];
        let nodes: Vec<Vec<u8>> = mask.iter().cloned().chain(places).chain(last).collect();
        let constants = [floats("zero", &[], &[0.0]), one_int("column", 0), ints("front", &[0]), ints("end", &[1])];
        model(17, &[input("x", 1, sizes)], &constants, &nodes, &["y"])
    };
    let whole = [node("Greater", &["x", "zero"], &["c"], &[])];
    let rows = [
        node("Gather", &["x", "column"], &["first"], &[("axis", Attribute::Int(1))]),
        node("Greater", &["first", "zero"], &["c"], &[]),
    ];
    let chosen = || vec![node("GatherND", &["x", "at"], &["y"], &[])];
    let source = "print(net(op.array([[1.0, -2.0], [-3.0, 4.0], [5.0, 6.0]])))\n";
    for sizes in [["3", "2"], ["n", "k"]] {
        prints(&by_mask(&whole, &sizes, chosen()), source, "[1. 4. 5. 6.]\n");
        prints(&by_mask(&rows, &sizes, chosen()), source, "[[ 1. -2.]\n [ 5.  6.]]\n");
        let replaced = vec![
            node("GatherND", &["x", "at"], &["old"], &[]),
            node("Neg", &["old"], &["new"], &[]),
            node("ScatterND", &["x", "at", "new"], &["y"], &[]),
        ];
        prints(&by_mask(&whole, &sizes, replaced), source, "[[-1. -2.]\n [-3. -4.]\n [-5. -6.]]\n");
        // One value for all, in as many places as there are.
        let filled = vec![
            node("Shape", &["at"], &["shape"], &[]),
            node("Slice", &["shape", "front", "end"], &["count"], &[]),
            node("Expand", &["zero", "count"], &["new"], &[]),
            node("ScatterND", &["x", "at", "new"], &["y"], &[]),
        ];
        prints(&by_mask(&whole, &sizes, filled), source, "[[ 0. -2.]\n [-3.  0.]\n [ 0.  0.]]\n");
        let none = "print(net(op.array([[-1.0, -2.0]])).shape)\n";
        prints(&by_mask(&whole, &["n", "k"], chosen()), none, "(0,)\n");
    }
}

#[test]
fn the_last_of_several_values_for_one_place_stays() {
    let attributes = [("axis", Attribute::Int(0))];
    for (op, version, places, attributes) in [
        ("ScatterND", 16, "op.array([[1], [0], [1]])", &[][..]),
        ("ScatterElements", 16, "op.array([1, 0, -3])", &attributes[..]),
        ("Scatter", 9, "op.array([1, 0, 1])", &attributes[..]),
    ] {
        let rank: &[&str] = if op == "ScatterND" { &["m", "1"] } else { &["m"] };
        let inputs = [input("x", 1, &["n"]), input("at", 7, rank), input("v", 1, &["m"])];
        let nodes = [node(op, &["x", "at", "v"], &["y"], attributes)];
        let file = model(version, &inputs, &[], &nodes, &["y"]);
        let source = format!(
            "x, at, v = op.ones((4,)), {places}, op.array([5.0, 7.0, -0.0])\nprint(net(x, at, v))\n\
             weights = op.array([1.0, 2.0, 3.0, 4.0])\n\
             print(autodiff.grad(lambda x, v: (net(x, at, v) * weights).sum(), (0, 1))(x, v))\n"
        );
        prints(&file, &source, "[ 7. -0.  1.  1.]\n([0. 0. 3. 4.], [0. 1. 2.])\n");
    }
}

#[test]
fn the_largest_and_smallest_of_nothing_are_the_bounds_of_the_dtype() {
    let over = |op: &str, kind: i64, keep: i64| {
        let attributes = [("axes", Attribute::Ints(vec![1])), ("keepdims", Attribute::Int(keep))];
        model(13, &[input("x", kind, &["n", "k"])], &[], &[node(op, &["x"], &["y"], &attributes)], &["y"])
    };
    let some = |dtype: &str| format!("for n in [0, 2]:\n    print(net(op.ones((1, n), dtype={dtype})))\n");
    prints(&over("ReduceMax", 1, 1), &some("f32"), "[[-inf]]\n[[1.]]\n");
    prints(&over("ReduceMin", 1, 0), &some("f32"), "[inf]\n[1.]\n");
    prints(&over("ReduceLogSumExp", 11, 0), &some("f64"), "[-inf]\n[1.69314718]\n");
    prints(&over("ReduceMax", 7, 0), &some("i64"), "[-9223372036854775808]\n[1]\n");
    prints(&over("ReduceMin", 7, 0), &some("i64"), "[9223372036854775807]\n[1]\n");
    prints(&over("ReduceMin", 2, 0), &some("u8"), "[255]\n[1]\n");
    prints(&over("ReduceMax", 4, 0), &some("i32"), "[0]\n[1]\n");
    // Over all dims, and where data decides how many there are.
    let nodes = [
        node("Greater", &["x", "zero"], &["c"], &[]),
        node("Compress", &["x", "c"], &["some"], &[("axis", Attribute::Int(0))]),
        node("ReduceMin", &["some"], &["y"], &[("keepdims", Attribute::Int(0))]),
    ];
    let file = model(13, &[input("x", 1, &["n"])], &[floats("zero", &[], &[0.0])], &nodes, &["y"]);
    let source = "for x in [op.array([3.0, -1.0, 2.0]), op.array([-1.0, -2.0, -3.0])]:\n    print(net(x))\n";
    prints(&file, source, "2.0\ninf\n");
}

#[test]
fn bounds_that_data_tells_are_read() {
    let nodes = [
        node("ReduceMax", &["x"], &["most"], &[("keepdims", Attribute::Int(0))]),
        node("Range", &["zero", "most", "step"], &["y"], &[]),
        node("Tile", &["x", "reps"], &["z"], &[]),
    ];
    let file = model(
        17,
        &[input("x", 7, &["n"]), input("reps", 7, &["1"])],
        &[one_int("zero", 0), one_int("step", 2)],
        &nodes,
        &["y", "z"],
    );
    prints(&file, "print(net(op.array([1, 5, 2]), op.array([2])))\n", "([0 2 4], [1 5 2 1 5 2])\n");
    let r = run_beside(&[("m.onnx", &file)], "print(net(op.array([1, 5, 2]), op.array([-2])))\n");
    is_refused(&r, &["E0711", "cannot be negative"]);
    // How many numbers a shape has decides a rank, which must be known.
    let file = model(
        17,
        &[input("x", 1, &["n"]), input("to", 7, &["k"])],
        &[],
        &[node("Reshape", &["x", "to"], &["y"], &[])],
        &["y"],
    );
    refused(
        &file,
        "print(1)\n",
        &["E0690", "`Reshape`, node `the y`", "depends on data, and how many there are does, too"],
    );
}

/// A branch that elements decide holds one that a size decides, for sizes that another call has.
#[test]
fn a_branch_is_translated_for_the_sizes_that_it_has() {
    let one = |name: &'static str, x: &'static str| {
        let test = [
            node("Shape", &[x], &[["s1", "s2"][usize::from(name == "b")]], &[]),
            node(
                "Gather",
                &[["s1", "s2"][usize::from(name == "b")], "last"],
                &[["g1", "g2"][usize::from(name == "b")]],
                &[],
            ),
            node(
                "Equal",
                &[["g1", "g2"][usize::from(name == "b")], "one"],
                &[["e1", "e2"][usize::from(name == "b")]],
                &[],
            ),
        ];
        let dropped = Attribute::Graph(vec![node("Squeeze", &[x, "axes"], &["d"], &[])], "d");
        let kept = Attribute::Graph(vec![node("Identity", &[x], &["d"], &[])], "d");
        let own = [("then_branch", dropped), ("else_branch", kept)];
        let tail = [
            node("If", &[["e1", "e2"][usize::from(name == "b")]], &[["h1", "h2"][usize::from(name == "b")]], &own),
            node("ReduceSum", &[["h1", "h2"][usize::from(name == "b")]], &[name], &[("keepdims", Attribute::Int(0))]),
        ];
        Attribute::Graph(test.into_iter().chain(tail).collect(), name)
    };
    let nodes = [node("If", &["c"], &["y"], &[("then_branch", one("a", "x")), ("else_branch", one("b", "z"))])];
    let constants = [one_int("last", -1), one_int("one", 1), ints("axes", &[1])];
    let inputs = [input("x", 1, &["n", "k"]), input("z", 1, &["n", "m"]), input("c", 9, &["1"])];
    let file = model(17, &inputs, &constants, &nodes, &["y"]);
    prints(&file, "print(net(op.ones((2, 1)), op.ones((2, 3)), op.array([True])))\n", "2.0\n");
    let r = run_beside(&[("m.onnx", &file)], "print(net(op.ones((2, 1)), op.ones((2, 3)), op.array([False])))\n");
    is_refused(&r, &["E0705", "this model is translated for inputs of which"]);
}

/// `uint16` stands in i32, `uint32` and `uint64` in i64.
#[test]
fn unsigned_ints_stand_in_wider_ones() {
    let two = |op: &str, kind: i64| {
        let nodes = [node(op, &["x", "y"], &["z"], &[])];
        model(18, &[input("x", kind, &["n"]), input("y", kind, &["n"])], &[], &nodes, &["z"])
    };
    let source = |dtype: &str, a: &str, b: &str| {
        format!("print(net(op.array([{a}], dtype={dtype}), op.array([{b}], dtype={dtype})))\n")
    };
    prints(&two("Add", 4), &source("i32", "65535, 1", "2, 3"), "[1 4]\n");
    prints(&two("Sub", 12), &source("i64", "1, 7", "2, 3"), "[4294967295          4]\n");
    prints(&two("Mul", 12), &source("i64", "4294967295", "4294967295"), "[1]\n");
    prints(&two("Div", 4), &source("i32", "65535", "2"), "[32767]\n");
    prints(&two("BitwiseXor", 13), &source("i64", "-1", "1"), "[-2]\n");
    prints(&two("Greater", 12), &source("i64", "4294967295", "1"), "[ True]\n");
    refused(&two("Greater", 13), "print(1)\n", &["E0690", "its elements are uint64", "how large they are is not told"]);
    let file = model(18, &[input("x", 4, &["n"])], &[], &[node("BitwiseNot", &["x"], &["y"], &[])], &["y"]);
    prints(&file, "print(net(op.array([0, 65535], dtype=i32)))\n", "[65535     0]\n");
    let cast = |from: i64, to: i64| {
        let nodes = [node("Cast", &["x"], &["y"], &[("to", Attribute::Int(to))])];
        model(18, &[input("x", from, &["n"])], &[], &nodes, &["y"])
    };
    prints(&cast(1, 4), "print(net(op.array([3.9, 65537.0])))\n", "[3 1]\n");
    prints(&cast(7, 12), "print(net(op.array([-1])))\n", "[4294967295]\n");
    prints(&cast(4, 1), "print(net(op.array([65535], dtype=i32)))\n", "[65535.]\n");
    prints(&cast(7, 22), "print(net(op.array([7, 8, -9])))\n", "[ 7 -8  7]\n");
    refused(&cast(13, 1), "print(1)\n", &["E0690", "its elements are uint64"]);
    let file = model(18, &[input("x", 4, &["n"])], &[], &[node("ReduceProd", &["x"], &["y"], &[])], &["y"]);
    refused(&file, "print(1)\n", &["E0690", "its elements are uint16, which it is not supported for"]);
}

/// Weights of four bits, two in a byte, and of sixteen without a sign.
#[test]
fn narrow_weights_are_scaled() {
    let scaled = |kind: i64, dims: &[i64], raw: Vec<u8>| {
        let constants = [constant("w", kind, dims, raw), floats("s", &[], &[0.5])];
        let nodes = [node("DequantizeLinear", &["w", "s"], &["d"], &[]), node("Add", &["d", "x"], &["y"], &[])];
        model(21, &[input("x", 1, &["1"])], &constants, &nodes, &["y"])
    };
    let source = "print(net(op.zeros((1,))))\n";
    prints(&scaled(22, &[3], vec![0x8f, 0x07]), source, "[-0.5 -4.   3.5]\n");
    prints(&scaled(21, &[3], vec![0x8f, 0x07]), source, "[7.5 4.  3.5]\n");
    prints(&scaled(26, &[5], vec![0b11_10_01_00, 0b10]), source, "[ 0.   0.5 -1.  -0.5 -1. ]\n");
    prints(&scaled(25, &[4], vec![0b11_10_01_00]), source, "[0.  0.5 1.  1.5]\n");
    prints(&scaled(4, &[2], vec![0xff, 0xff, 1, 0]), source, "[3.27675e+04 5.00000e-01]\n");
    let r = run_beside(&[("m.onnx", &scaled(22, &[3], vec![0x8f]))], source);
    is_refused(&r, &["E0690", "has the sizes [3] and 1 bytes of int4"]);
    let quantized = |kind: i64, dims: &[i64], zero: Vec<u8>| {
        let constants = [floats("s", &[], &[0.5]), constant("z", kind, dims, zero)];
        let nodes = [
            node("QuantizeLinear", &["x", "s", "z"], &["q"], &[]),
            node("DequantizeLinear", &["q", "s", "z"], &["y"], &[]),
        ];
        model(21, &[input("x", 1, &["n"])], &constants, &nodes, &["q", "y"])
    };
    let source = "print(net(op.array([-9.0, 1.0, 90000.0])))\n";
    prints(&quantized(22, &[], vec![1]), source, "([-8  3  7], [-4.5  1.   3. ])\n");
    prints(&quantized(4, &[], vec![2, 0]), source, "([    0     4 65535], [-1.00000e+00  1.00000e+00  3.27665e+04])\n");
}

#[test]
fn random_numbers_are_the_same_in_every_call() {
    let normal = |name: &'static str, seed: Option<f32>| {
        let shape = ("shape", Attribute::Ints(vec![1000]));
        let all: Vec<(&str, Attribute)> =
            [shape].into_iter().chain(seed.map(|s| ("seed", Attribute::Float(s)))).collect();
        node("RandomNormal", &[], &[name], &all)
    };
    let nodes = [normal("a", Some(3.0)), normal("b", Some(3.0)), normal("c", None), normal("d", None)];
    let file = model(17, &[], &[], &nodes, &["a", "b", "c", "d"]);
    let source = "a, b, c, d = net()\nagain = net()\nprint(op.all(a == b), op.any(a == c), op.any(c == d), op.all(d == again[3]))\n\
                  print(abs(float(c.mean())) < 0.1, abs(float(op.std(c)) - 1.0) < 0.1)\n";
    prints(&file, source, "True False False True\nTrue True\n");
    let like = [("low", Attribute::Float(2.0)), ("high", Attribute::Float(3.0)), ("dtype", Attribute::Int(11))];
    let nodes = [
        node("RandomUniformLike", &["x"], &["u"], &like),
        node("RandomNormalLike", &["x"], &["n"], &[("mean", Attribute::Float(5.0)), ("scale", Attribute::Float(0.0))]),
        node("RandomUniform", &[], &["w"], &[("shape", Attribute::Ints(vec![2, 3]))]),
        node("Bernoulli", &["x"], &["b"], &[]),
        node("Multinomial", &["x"], &["m"], &[("sample_size", Attribute::Int(50))]),
    ];
    let file = model(17, &[input("x", 1, &["2", "2"])], &[], &nodes, &["u", "n", "w", "b", "m"]);
    let source = "u, n, w, b, m = net(op.array([[0.0, 1.0], [1.0, 0.0]]))\nprint(u.dtype, op.all(u >= 2.0), op.all(u < 3.0), n, w.shape)\n\
                  print(b, m.shape, m.dtype, op.unique(m))\n";
    prints(&file, source, "f64 True True [[5. 5.]\n [5. 5.]] (2, 3)\n[[0. 1.]\n [1. 0.]] (2, 50) i32 [0 1]\n");
    let body = Attribute::Body(
        vec!["i", "c", "s"],
        vec![
            node("RandomNormalLike", &["s"], &["r"], &[]),
            node("Add", &["s", "r"], &["t"], &[]),
            node("Identity", &["c"], &["go"], &[]),
        ],
        vec!["go", "t"],
    );
    let file = model(
        17,
        &[input("x", 1, &["2"])],
        &[one_int("n", 3)],
        &[node("Loop", &["n", "", "x"], &["y"], &[("body", body)])],
        &["y"],
    );
    refused(&file, "print(1)\n", &["E0690", "`RandomNormalLike`", "it draws in a loop"]);
}

#[test]
fn optional_values_are_followed() {
    let nodes = [
        node("Optional", &["x"], &["some"], &[]),
        node("Optional", &[], &["none"], &[]),
        node("OptionalHasElement", &["some"], &["a"], &[]),
        node("OptionalHasElement", &["none"], &["b"], &[]),
        node("OptionalGetElement", &["some"], &["v"], &[]),
    ];
    let file = model(18, &[input("x", 1, &["n"])], &[], &nodes, &["a", "b", "v"]);
    prints(&file, "print(net(op.array([2.0])))\n", "(True, False, [2.])\n");
    let nodes = [node("Optional", &[], &["none"], &[]), node("OptionalGetElement", &["none"], &["v"], &[])];
    let file = model(18, &[], &[], &nodes, &["v"]);
    refused(&file, "print(1)\n", &["E0690", "`OptionalGetElement`", "its argument holds nothing"]);
}

#[test]
fn a_graph_is_computed_for_each_element_of_a_sequence() {
    let body = Attribute::Body(vec!["e", "b"], vec![node("Add", &["e", "b"], &["f"], &[])], vec!["f"]);
    let nodes = [
        node("SequenceConstruct", &["x", "y"], &["s"], &[]),
        node("SequenceMap", &["s", "y"], &["t"], &[("body", body)]),
        node("ConcatFromSequence", &["t"], &["z"], &[("axis", Attribute::Int(0))]),
    ];
    let file = model(17, &[input("x", 1, &["1"]), input("y", 1, &["1"])], &[], &nodes, &["z"]);
    prints(&file, "print(net(op.array([1.0]), op.array([2.0])))\n", "[3. 4.]\n");
}

/// A model whose weight `w` lies in another file.
fn beside(entries: &[(&str, &str)]) -> Vec<u8> {
    let nodes = [node("Add", &["x", "w"], &["y"], &[])];
    model(17, &[input("x", 1, &["2"])], &[outside("w", 1, &[2], entries)], &nodes, &["y"])
}

#[test]
fn weights_may_lie_in_other_files() {
    let data: Vec<u8> = [9.0f32, 1.0, 2.0, 9.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let source = "print(net(op.zeros((2,))), io.read_onnx_weights(\"m.onnx\").w)\n";
    let own = beside(&[("location", "parts/w.bin"), ("offset", "4"), ("length", "8")]);
    let r = run_beside(&[("m.onnx", &own), ("parts/w.bin", &data)], source);
    assert_eq!((r.code, &*r.out), (0, "[1. 2.] [1. 2.]\n"), "{}", r.err);
    let r = run_beside(&[("m.onnx", &beside(&[("location", "w.bin")])), ("w.bin", &data[4..12])], source);
    assert_eq!((r.code, &*r.out), (0, "[1. 2.] [1. 2.]\n"), "{}", r.err);
    // A name may go up again where it stays in the folder.
    for location in ["./w.bin", "./parts/../w.bin", "parts/./w.bin"] {
        let file = beside(&[("location", location)]);
        let all = [("m.onnx", &*file), ("w.bin", &data[4..12]), ("parts/w.bin", &data[4..12])];
        let r = run_beside(&all, source);
        assert_eq!((r.code, &*r.out), (0, "[1. 2.] [1. 2.]\n"), "{}", r.err);
    }
    // Ints that shapes are made of may, too.
    let nodes = [node("Reshape", &["x", "s"], &["y"], &[])];
    let shape = outside("s", 7, &[2], &[("location", "s.bin")]);
    let file = model(17, &[input("x", 1, &["4"])], &[shape], &nodes, &["y"]);
    let two: Vec<u8> = [2i64, 2].iter().flat_map(|n| n.to_le_bytes()).collect();
    let r = run_beside(&[("m.onnx", &file), ("s.bin", &two)], "print(net(op.zeros((4,))).shape)\n");
    assert_eq!((r.code, &*r.out), (0, "(2, 2)\n"), "{}", r.err);
}

#[test]
fn names_of_other_files_do_not_lead_out_of_the_folder() {
    let data = 0f32.to_le_bytes().repeat(2);
    let source = "print(net(op.zeros((2,))))\n";
    for location in [
        "../w.bin",
        "/etc/passwd",
        "a/../../w.bin",
        "a/../../a/w.bin",
        "",
        ".",
        "..",
        "C:\\w.bin",
        "w.bin/..",
        "//w.bin",
    ] {
        let file = beside(&[("location", location)]);
        let r = run_beside(&[("m.onnx", &file), ("w.bin", &data)], source);
        is_refused(&r, &["E0707", "tensor `w` lies in", "no name of a file beside it"]);
    }
    let r = run_beside(&[("m.onnx", &beside(&[]))], source);
    is_refused(&r, &["E0707", "no name of a file beside it"]);
    let file = beside(&[("location", "w.bin")]);
    is_refused(&run_beside(&[("m.onnx", &file)], source), &["E0706", "w.bin"]);
    is_refused(&run_beside(&[("m.onnx", &file), ("w.bin", &[])], source), &["E0707", "empty or no file"]);
    for (offset, length) in
        [("4", "8"), ("0", "9"), ("18446744073709551615", "8"), ("8", "18446744073709551615"), ("9", "")]
    {
        let mut entries = vec![("location", "w.bin"), ("offset", offset)];
        entries.extend((!length.is_empty()).then_some(("length", length)));
        let r = run_beside(&[("m.onnx", &beside(&entries)), ("w.bin", &data)], source);
        is_refused(&r, &["E0707", "tensor `w` has ", "in `w.bin`, which has 8"]);
    }
    for number in ["-1", "x", "1e3", "99999999999999999999"] {
        let r =
            run_beside(&[("m.onnx", &beside(&[("location", "w.bin"), ("offset", number)])), ("w.bin", &data)], source);
        is_refused(&r, &["E0707", "offset"]);
    }
    let r = run_beside(&[("m.onnx", &beside(&[("location", "w.bin"), ("length", "4")])), ("w.bin", &data)], source);
    is_refused(&r, &["E0707", "has the sizes [2] and 4 bytes of f32"]);
    let r = run_beside(&[("m.onnx", &beside(&[("location", "w.bin")])), ("w.bin", &data[1..])], source);
    is_refused(&r, &["E0707", "tensor `w` has the sizes [2] and 7 bytes of f32"]);
}

/// A pipe has no end, and opening one waits for who writes to it.
#[cfg(unix)]
#[test]
fn pipes_are_no_files_of_weights() {
    let pipe = |path: &Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.is_ok_and(|s| s.success()), "no pipe at {}", path.display());
    };
    let source = "print(net(op.zeros((2,))))\n";
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    pipe(&dir.path().join("w.bin"));
    let r = run_at(dir.path(), &[("m.onnx", &beside(&[("location", "w.bin")]))], source);
    is_refused(&r, &["E0707", "empty or no file"]);
    std::fs::remove_file(dir.path().join("m.onnx")).unwrap_or_else(|e| panic!("{e}"));
    pipe(&dir.path().join("m.onnx"));
    is_refused(&run_at(dir.path(), &[], source), &["E0707", "no file on a disk"]);
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out_of_the_folder() {
    use std::os::unix::fs::symlink;
    let data = 1f32.to_le_bytes().repeat(2);
    let source = "print(net(op.zeros((2,))))\n";
    let (dir, elsewhere) = (tempfile::tempdir(), tempfile::tempdir());
    let (dir, elsewhere) = (dir.unwrap_or_else(|e| panic!("{e}")), elsewhere.unwrap_or_else(|e| panic!("{e}")));
    std::fs::write(elsewhere.path().join("secret"), &data).unwrap_or_else(|e| panic!("{e}"));
    symlink(elsewhere.path().join("secret"), dir.path().join("w.bin")).unwrap_or_else(|e| panic!("{e}"));
    let file = beside(&[("location", "w.bin")]);
    is_refused(&run_at(dir.path(), &[("m.onnx", &file)], source), &["E0707", "a link that leads out of the folder"]);
    // A store has links to all its files, which lie together.
    std::fs::write(elsewhere.path().join("model"), &file).unwrap_or_else(|e| panic!("{e}"));
    std::fs::remove_file(dir.path().join("m.onnx")).unwrap_or_else(|e| panic!("{e}"));
    symlink(elsewhere.path().join("model"), dir.path().join("m.onnx")).unwrap_or_else(|e| panic!("{e}"));
    let r = run_at(dir.path(), &[], source);
    assert_eq!((r.code, &*r.out), (0, "[1. 1.]\n"), "{}", r.err);
}
