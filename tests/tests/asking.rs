//! `emit`, `explain` and `plan` of a function without the program around it, and texts of IRs as files.

use tessera_tests::program::{Ran, run_in};

/// Runs the tool in a folder with these files.
fn with_files(files: &[(&str, &str)], args: &[&str]) -> Ran {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap_or_else(|e| panic!("{e}"));
    }
    run_in(dir.path(), args, "").unwrap_or_else(|e| panic!("{e}"))
}

/// Runs the tool on one program.
fn tool(source: &str, args: &[&str]) -> Ran {
    with_files(&[("main.tsr", source)], &[&[args[0], "main.tsr"], &args[1..]].concat())
}

fn refused(source: &str, args: &[&str], code: i32, parts: &[&str]) {
    let r = tool(source, args);
    assert_eq!(r.code, code, "{args:?}\n{}{}", r.out, r.err);
    assert!(r.out.is_empty(), "{args:?}\n{}", r.out);
    for part in parts {
        assert!(r.err.contains(part), "{args:?}: `{part}` is not in\n{}", r.err);
    }
}

/// A program that must not run: it writes a file, and stops.
const PROGRAM: &str = "\
import std.nn as nn

scale = 3
rate = 0.5
mask = op.ones((16,))
print(\"runs\")
io.write_text(\"ran.txt\", str(nn.count(mask)))
noise = io.read_text(\"data.txt\")
steps = len(noise)


struct Layer[D]:
    weight: Tensor[D, D, f32]
    bias: Tensor[D, f32]
    slope: float


def layer(x: Tensor[N, D, f32], w: Tensor[D, H, f32], b: Tensor[H, f32]) -> Tensor[N, H, f32]:
    return op.softmax(op.relu(x @ w + b), -1)


def heads(x: Tensor[N, D, f32], h: int = 4) -> Tensor[N, D, f32]:
    assert D % h == 0, \"heads divide the width\"
    assert h > 1
    y = x.reshape((N, h, D // h))
    return (y * 2.0).reshape((N, D))


def deep(layers: list[Layer[D]], x: Tensor[N, D, f32], train: bool, p: tuple[float, int]) -> Tensor[N, D, f32]:
    for l in layers:
        x = op.tanh(x @ l.weight + l.bias) * l.slope
    if train:
        x = x * p[0] + p[1]
    return x


def scaled(x: Tensor[N, 16, f32]) -> Tensor[N, 16, f32]:
    return x * scale * rate * mask


def template(x, n: int):
    return x * n


def greets(x: Tensor[N, f32]) -> Tensor[N, f32]:
    print(\"hello\")
    return x


def stepped(x: Tensor[N, f32]) -> Tensor[N, f32]:
    return x * steps


def kept(x: Tensor[N + 2, f32]) -> Tensor[N, f32]:
    return x[2:] * 2.0


def split(x: Tensor[B@dp, D, f32], w: Tensor[D, D, f32]) -> Tensor[B@dp, D, f32]:
    return x @ w


def made(n: int, dtype=f32, kind: str = \"ones\"):
    if kind == \"ones\":
        return op.ones((n, 3), dtype=dtype)
    return op.zeros((n, 3), dtype=dtype)
";

#[test]
fn a_function_is_shown_without_running_the_program() {
    for ir in ["graph", "kernels", "schedule", "tile", "llvm", "asm", "core", "host", "ast"] {
        let r = tool(PROGRAM, &["emit", "--function", "layer", "--ir", ir]);
        assert_eq!((r.code, &*r.err), (0, ""), "{ir}");
        assert!(!r.out.contains("runs"), "{ir}: {}", r.out);
        let mark = match ir {
            "llvm" => ";",
            "asm" => "#",
            _ => "//",
        };
        if !["core", "host", "ast"].contains(&ir) {
            let head = "layer(x: Tensor[N, D, f32], w: Tensor[D, H, f32], b: Tensor[H, f32]) -> Tensor[N, H, f32]";
            let start = format!("{mark} {head}\n{mark} N=8 D=16 H=24: chosen; --sizes says others\n");
            assert!(r.out.starts_with(&start), "{ir}: {}", r.out);
        }
    }
    let r = tool(PROGRAM, &["emit", "--function", "layer", "--sizes", "N=5,D=3"]);
    assert!(r.out.contains("N=5 D=3: given") && r.out.contains("Tensor[5, 3, f32]"), "{}{}", r.out, r.err);
    assert!(r.out.contains("\"tessera.graph\"() {name=\"layer\"}"), "{}", r.out);
    let r = tool(PROGRAM, &["emit", "--function", "layer", "--emit", "after:list"]);
    assert_eq!(r.code, 0, "{}", r.err);
}

#[test]
fn equal_questions_have_equal_answers_and_those_of_a_run() {
    let function = "def f(x: Tensor[N, D, f32], k: int) -> Tensor[N, D, f32]:\n    return op.softmax(x * k, -1)\n\n";
    let asked = |source: &str| tool(source, &["emit", "--function", "f", "--with", "k=3", "--sizes", "N=4,D=8"]).out;
    let called = tool(&format!("{function}x = op.ones((4, 8))\nfor i in range(2, 4):\n    f(x, i)\n"), &["emit"]).out;
    let answer = asked(function);
    assert_eq!(answer, asked(function));
    let body = |t: &str| t.lines().skip_while(|l| !l.contains("softmax") && !l.contains(".reduce")).count();
    assert!(body(&answer) > 3, "{answer}");
    // The call has the same operations, as a region of the module.
    let ops = |t: &str| {
        t.lines()
            .filter(|l| l.contains("tessera.graph."))
            .map(|l| l.split('"').nth(1).unwrap_or("").to_owned())
            .collect::<Vec<_>>()
    };
    let (of_run, of_function) = (ops(&called), ops(&answer));
    assert!(of_run.ends_with(&of_function), "{called}\n{answer}");
}

#[test]
fn sizes_keep_to_what_is_asserted() {
    let r = tool(PROGRAM, &["emit", "--function", "heads"]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(r.out.contains("h=4: chosen"), "{}", r.out);
    let r = tool(PROGRAM, &["emit", "--function", "heads", "--with", "h=6"]);
    assert!(r.code == 0 && r.out.contains("h=6: given"), "{}{}", r.out, r.err);
    refused(PROGRAM, &["emit", "--function", "heads", "--with", "h=6", "--sizes", "D=8"], 2, &["E0602", "D%h"]);
    let r = tool(PROGRAM, &["emit", "--function", "kept"]);
    assert!(r.code == 0 && r.out.contains("Tensor[10, f32]"), "{}{}", r.out, r.err);
}

#[test]
fn parameters_of_all_types_have_values() {
    let r = tool(PROGRAM, &["emit", "--function", "deep"]);
    assert_eq!(r.code, 0, "{}", r.err);
    for part in [
        "len(layers)=2: chosen",
        "train=False: chosen, and the graph is for no other value",
        "layers[].slope stays open",
    ] {
        assert!(r.out.contains(part), "{part}\n{}", r.out);
    }
    let r = tool(PROGRAM, &["emit", "--function", "deep", "--with", "layers=3,train=True,p.1=7"]);
    assert_eq!((r.code, r.out.matches("\"tessera.graph.dot\"").count()), (0, 3), "{}{}", r.out, r.err);
    let r = tool(PROGRAM, &["emit", "--function", "scaled"]);
    assert!(r.code == 0 && r.out.contains("name=\"mask\"") && r.out.contains("Tensor[16, f32]"), "{}{}", r.out, r.err);
    let r = tool(PROGRAM, &["emit", "--function", "split", "--sizes", "dp=4"]);
    assert!(r.code == 0 && r.out.contains("Mesh[dp=4]: given"), "{}{}", r.out, r.err);
    let r = tool(PROGRAM, &["emit", "--function", "made", "--with", "n=5,kind=\"none\""]);
    assert!(r.code == 0 && r.out.contains("Tensor[5, 3, f32]"), "{}{}", r.out, r.err);
    let r = tool(PROGRAM, &["emit", "--function", "nn.linear"]);
    assert!(r.code == 0 && r.out.contains("the element type of x is f32"), "{}{}", r.out, r.err);
    let r = tool(PROGRAM, &["emit", "--function", "std.nn.linear", "--ir", "kernels"]);
    assert!(r.code == 0 && r.out.contains("product"), "{}{}", r.out, r.err);
}

#[test]
fn what_has_no_graph_is_refused_by_name() {
    let of = |name| ["emit", "--function", name];
    refused(
        PROGRAM,
        &of("template"),
        1,
        &["E0213", "`template` is a template: its parameter `x` has no type", "annotate it"],
    );
    refused(PROGRAM, &of("greets"), 1, &["E0301", "`greets` is not a graph function", "print(\"hello\")"]);
    refused(PROGRAM, &of("stepped"), 1, &["E0718", "`stepped` reads `steps`", "make it a parameter"]);
    refused(PROGRAM, &of("layr"), 1, &["E0101", "`layr`", "did you mean `layer`?"]);
    refused(PROGRAM, &of("Layer"), 1, &["E0101", "`Layer` is a struct"]);
    refused(PROGRAM, &of("mask"), 1, &["E0101", "`mask` is a variable"]);
    refused(PROGRAM, &of("nn.linaer"), 1, &["E0101", "did you mean `linear`?"]);
    refused(PROGRAM, &of("op.softmax"), 1, &["E0101"]);
    refused(PROGRAM, &of("other.f"), 1, &["E0101", "no module `other`"]);
    refused("x = \n", &of("f"), 1, &["error[E"]);
    refused("f = 1\n", &of(""), 1, &["E0101"]);
}

#[test]
fn options_that_do_not_fit_are_told() {
    let layer = ["emit", "--function", "layer"];
    let with = |more: &[&'static str]| [&layer[..], more].concat();
    refused(PROGRAM, &with(&["--sizes", "width=4"]), 2, &["E0602", "`layer` has no size `width`", "N, D, H"]);
    refused(PROGRAM, &with(&["--sizes", "N=x"]), 2, &["no size from 0"]);
    refused(PROGRAM, &with(&["--sizes", "N=4,N=5"]), 2, &["given twice"]);
    refused(PROGRAM, &with(&["--with", "x=4"]), 2, &["E0602", "`x` is a Tensor[N, D, f32]"]);
    refused(PROGRAM, &with(&["--with", "q=4"]), 2, &["E0602", "no parameter `q`"]);
    refused(PROGRAM, &["emit", "--function", "deep", "--with", "train=3"], 2, &["E0602", "True or False"]);
    refused(PROGRAM, &["emit", "--function", "heads", "--sizes", "h=2"], 2, &["E0602", "--with h=2"]);
    refused(PROGRAM, &["emit", "--function", "heads", "--with", "h=two"], 2, &["E0602", "an int"]);
    refused(PROGRAM, &["emit", "--sizes", "N=4"], 2, &["E0602", "--function NAME"]);
    refused(PROGRAM, &["emit", "--with", "n=4"], 2, &["--function"]);
    refused(PROGRAM, &["plan", "--sizes", "N=4"], 2, &["E0602", "--function NAME"]);
    refused(PROGRAM, &with(&["--sizes", "N=4294967296,D=4294967296"]), 2, &["E0602", "more than any machine holds"]);
}

#[test]
fn explain_says_what_a_function_is() {
    let r = tool(PROGRAM, &["explain", "--function", "layer"]);
    assert_eq!((r.code, &*r.err), (0, ""));
    for part in [
        "layer(x: Tensor[N, D, f32], w: Tensor[D, H, f32], b: Tensor[H, f32]) -> Tensor[N, H, f32]",
        "graph function",
        "compares nothing when it runs",
        "what each kernel computes",
        "what keeps them apart",
        "memory: arguments",
    ] {
        assert!(r.out.contains(part), "{part}\n{}", r.out);
    }
    let r = tool(PROGRAM, &["explain", "--function", "greets"]);
    let line = PROGRAM.lines().position(|l| l.contains("hello")).unwrap_or(0) + 1;
    let place = format!("main.tsr:{line}:");
    assert!(r.code == 0 && r.out.contains("host function: it") && r.out.contains(&place), "{}{}", r.out, r.err);
    let r = tool(PROGRAM, &["explain", "--function", "deep"]);
    assert!(
        r.out.contains("Layer: weight: Tensor[D, D, f32], bias: Tensor[D, f32], slope: float"),
        "{}{}",
        r.out,
        r.err
    );
    let calls = "def f(x):\n    return x * 2\n\nf(op.ones((3,)))\nf(1)\n";
    let r = tool(calls, &["explain", "--function", "f"]);
    assert!(
        r.code == 0 && r.out.contains("f(x: Tensor[3, f32]) -> Tensor[3, f32]") && r.out.contains("f(x: int)"),
        "{}{}",
        r.out,
        r.err
    );
    refused("def f(x):\n    return x\n", &["explain", "--function", "f"], 1, &["E0213"]);
}

#[test]
fn explain_takes_a_place() {
    let explain = |place: &str| with_files(&[("main.tsr", PROGRAM)], &["explain", place]);
    let line = PROGRAM.lines().position(|l| l.contains("op.softmax")).unwrap_or(0) + 1;
    let r = explain(&format!("main.tsr:{line}"));
    assert!(r.code == 0 && r.out.starts_with("layer(x: Tensor[N, D, f32]"), "{}{}", r.out, r.err);
    let column = PROGRAM.lines().nth(line - 1).and_then(|l| l.find("x @ w")).unwrap_or(0) + 3;
    let r = explain(&format!("main.tsr:{line}:{column}"));
    assert!(r.code == 0 && r.out.starts_with("`x @ w`: Tensor[N, H, f32]\n"), "{}{}", r.out, r.err);
    let r = explain("main.tsr:3:9");
    assert!(r.code == 0 && r.out.contains("`3`: int"), "{}{}", r.out, r.err);
    let r = explain("main.tsr:4000");
    assert!(r.code == 2 && r.err.contains("no line 4000"), "{}{}", r.out, r.err);
    let r = explain("none.tsr:1");
    assert!(r.code == 1 && r.err.contains("E0706"), "{}{}", r.out, r.err);
}

/// Explains a place of a program, and looks for these parts in what is told.
fn told(source: &str, args: &[&str], parts: &[&str]) -> String {
    let r = with_files(&[("main.tsr", source)], &[&["explain"], args].concat());
    assert_eq!((r.code, &*r.err), (0, ""), "{args:?}");
    for part in parts {
        assert!(r.out.contains(part), "{args:?}: `{part}` is not in\n{}", r.out);
    }
    r.out
}

/// The line of a program that has a text, as `explain` takes it.
fn at_line(source: &str, text: &str) -> String {
    format!("main.tsr:{}", source.lines().position(|l| l.contains(text)).unwrap_or(0) + 1)
}

const CALLS: &str = "\
import std.nn as nn


def block(x: Tensor[N, D, f32], l: nn.Linear[D, D]) -> Tensor[N, D, f32]:
    y = nn.linear(l, x)
    return op.relu(y)


def model(x: Tensor[N, D, f32], l: nn.Linear[D, D]) -> Tensor[N, D, f32]:
    h = block(x, l)
    g = block(h, l)
    return g.sum(axis=1, keepdims=True) + g


def loop(x: Tensor[N, D, f32], l: nn.Linear[D, D]) -> Tensor[N, D, f32]:
    y, _ = op.scan(lambda c, _: (block(c, l), 0), x, op.arange(40))
    return y


def loss(x: Tensor[N, D, f32], l: nn.Linear[D, D]):
    return model(x, l).sum()


def gradient(x: Tensor[N, D, f32], l: nn.Linear[D, D]):
    return autodiff.grad(loss)(x, l)
";

/// The part of a page that is about the line.
fn of_line(page: &str) -> &str {
    let from = page.find("\nline ").unwrap_or_else(|| panic!("{page}"));
    page[from..].split("\n\n").next().unwrap_or_default()
}

#[test]
fn a_line_that_calls_functions_has_what_they_compute() {
    let product = "dot: Tensor[8, 16, f32], 512 B, 4096 flops, in std/nn.tsr:";
    told(CALLS, &[&at_line(CALLS, "nn.linear(")], &[product, "operations in block\n", "computed by\n    1 dot_fused"]);
    for line in ["h = block", "g = block"] {
        let page = told(
            CALLS,
            &[&at_line(CALLS, line)],
            &[product, "relu: Tensor[8, 16, f32], 512 B, 128 flops, in line 6\n"],
        );
        assert!(!of_line(&page).contains(", 2 times"), "{page}");
    }
    // What stands on a line itself is no one else's, and the line of `def` calls nothing.
    let page = told(CALLS, &[&at_line(CALLS, "g.sum")], &["(part of sum)\n", "add: Tensor[8, 16, f32]"]);
    assert!(!of_line(&page).contains("operations in model\n    dot"), "{page}");
    told(CALLS, &[&at_line(CALLS, "def model")], &["no operation of the graph comes from here"]);
    // Calls within calls, loops, and derivatives of what was called.
    told(CALLS, &[&at_line(CALLS, "model(x, l).sum")], &[&format!("{product}47, 2 times\n"), "in line 12\n"]);
    told(CALLS, &[&at_line(CALLS, "op.scan")], &["operations in loop\n", "operations in body\n", product]);
    told(CALLS, &[&at_line(CALLS, "autodiff.grad")], &["(part of a derivative), in std/nn.tsr:47", "in line 21"]);
    let r = with_files(&[("main.tsr", CALLS)], &["explain", &at_line(CALLS, "h = block"), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&r.out).unwrap_or_else(|e| panic!("{e}\n{}", r.out));
    let nodes = json["graph"]["nodes"].as_array().unwrap_or_else(|| panic!("{}", r.out));
    let dot = nodes.iter().find(|n| n["op"] == "dot").unwrap_or_else(|| panic!("{}", r.out));
    let lines: Vec<_> = dot["calls"].as_array().map_or(vec![], |c| c.iter().map(|p| p["line"].as_u64()).collect());
    assert_eq!((lines, &dot["place"]["file"]), (vec![Some(10), Some(5)], &"std/nn.tsr".into()));
    assert_eq!(json["line"]["parts"][0]["nodes"].as_array().map(|n| n.contains(&dot["id"])), Some(true));
}

#[test]
fn explain_tells_orders_of_sums_and_what_came_second() {
    let args = [&*at_line(CALLS, "nn.linear("), "--sizes", "N=64,D=600"];
    let product = [
        "summed in f32 over 600 positions: 3 leaves of 256, the last one of 88, in each a chain of fused multiply-adds in \
         ascending position; the leaves in a balanced tree of 2 levels\n",
        "the tile in registers: rows=",
        "%), by the part of the multiply-adds that loads leave time for\n",
    ];
    told(CALLS, &args, &product);
    let args = [&*at_line(CALLS, "g.sum"), "--sizes", "N=64,D=600"];
    told(
        CALLS,
        &args,
        &["summed in f32 over 600 positions: 2 leaves of 512, the last one of 88, in each 16 lanes side by side"],
    );
    let turned = "def f(x: Tensor[N, D, f32]) -> Tensor[D, N, f32]:\n    return op.exp(x.T)\n\n\ndef g(x: Tensor[N, D, i32]):\n    return x.sum()\n";
    let axes = ["the axis along the lanes: \"", "), by what the accesses of an element cost\n"];
    told(turned, &["main.tsr:2", "--sizes", "N=64,D=48"], &axes);
    // Sums of ints are the same in every order.
    let page = told(turned, &["main.tsr:6"], &["sum: Tensor["]);
    assert!(!page.contains("positions"), "{page}");
    let compensated = "@numerics.policy(\"kahan_sum\")\ndef f(x: Tensor[N, f32]):\n    return x.sum()\n";
    told(compensated, &["main.tsr:3"], &["and the lanes added by halves, all with what their additions round away"]);
}

#[test]
fn functions_with_named_axes_are_explained_without_a_call() {
    let text = "\
def f(x: Tensor[B, D, f32], w1: Tensor[D, H@tp, f32], w2: Tensor[H@tp, D, f32]) -> Tensor[B, D, f32]:
    h = op.relu(x @ w1)
    return dist.collective.all_reduce(h @ w2, axis=\"tp\")
";
    let parts = [
        "Mesh[tp=2]: chosen",
        "an exchange: device 0 sends",
        "the dim of dot that tp splits: dim ",
        "by bytes of operands that move",
    ];
    told(text, &["main.tsr:3"], &parts);
    told(text, &["main.tsr:3", "--sizes", "tp=4,H=4096,D=64,B=64"], &["Mesh[tp=4]: given", "sums move, "]);
    for ir in ["graph", "kernels"] {
        let r = tool(text, &["emit", "--ir", ir, "--function", "f"]);
        assert_eq!((r.code, &*r.err), (0, ""), "{ir}");
    }
    let r = tool(text, &["plan", "--function", "f"]);
    assert!(r.code == 0 && r.out.contains("on Mesh[tp=2]"), "{}{}", r.out, r.err);
    // Blocks of per-device code have no sizes without a call.
    let local = "\
@dist.local
def each(x: Tensor[N@tp, D, f32]) -> Tensor[N, D, f32]:
    return dist.collective.all_reduce(x, axis=\"tp\")


def g(x: Tensor[N@tp, D, f32]):
    return each(x)
";
    refused(local, &["emit", "--function", "g"], 1, &["E0213", "nothing says how many there are"]);
}

#[test]
fn sizes_that_are_chosen_leave_no_dim_empty() {
    let text = "def f(x: Tensor[H, D, D // H, f32]):\n    return x + 1.0\n";
    let page = told(text, &["main.tsr:2"], &["add: Tensor["]);
    assert!(!page.contains(", 0, f32]"), "{page}");
    told(text, &["main.tsr:2", "--sizes", "H=4,D=2"], &["add: Tensor[4, 2, 0, f32]"]);
}

#[test]
fn explain_says_what_a_line_became_and_why() {
    let parts = [
        ": return op.softmax(op.relu(x @ w + b), -1)\n  tensor code",
        "dot: Tensor[8, 24, f32], 768 B, 6144 flops\n",
        "(part of softmax)",
        "computed by\n    1 dot (product): reads",
        "schedule: registers",
        "what keeps them from others, by rule\n    1 dot and 2 mul_fused: ",
    ];
    told(PROGRAM, &[&at_line(PROGRAM, "op.softmax")], &parts);
    let again = "def f(x: Tensor[N, N, f32]) -> Tensor[N, N, f32]:\n    a = op.exp(x)\n    b = a @ x\n    c = b @ b\n    return c @ c @ a\n";
    let parts =
        ["exp is computed again, 1 operation in about", "as keeping it would hold 1.0 KiB where memory is fullest"];
    told(again, &["main.tsr:2", "--sizes", "N=16", "--memory", "4KiB"], &parts);
    let summed = "def g(x: Tensor[B@dp, D, f32], y: Tensor[B@dp, C, f32]):\n    return x.T @ y\n";
    let sums = [
        "all_to_all dp",
        "an exchange: device 0 sends 3.0 KiB",
        "sums move, 3072 numbers between all devices; operands would be",
    ];
    told(summed, &["main.tsr:2", "--sizes", "B=4096,D=64,C=16,dp=4"], &sums);
    let few = ["operands move, ", " numbers between all devices; sums would be "];
    told(summed, &["main.tsr:2", "--sizes", "B=1024,D=4096,C=4096,dp=4"], &few);
    let template = "def f(x):\n    y = op.exp(x)\n    return y + 1.0\n\nprint(f(op.ones((3,))).sum())\n";
    told(
        template,
        &["main.tsr:2"],
        &["is a template", "its first call is\nf(x: Tensor[3, f32])", "exp: Tensor[3, f32]"],
    );
    told(PROGRAM, &["main.tsr:3"], &["host code"]);
}

#[test]
fn a_call_is_planned() {
    let r = tool(PROGRAM, &["plan", "--function", "layer", "--sizes", "N=1024,D=512,H=2048", "--topology", "a100"]);
    assert_eq!((r.code, &*r.err), (0, ""));
    for part in ["// N=1024 D=512 H=2048: given", "layer, called once, on one device", "predicted for `a100`"] {
        assert!(r.out.contains(part), "{part}\n{}", r.out);
    }
    let r = tool(PROGRAM, &["plan", "--function", "layer", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&r.out).unwrap_or_else(|e| panic!("{e}\n{}", r.out));
    assert_eq!(json["regions"][0]["name"], "layer");
    assert_eq!(json["notes"][1], "N=8 D=16 H=24: chosen; --sizes says others");
    let r = tool(PROGRAM, &["plan", "--function", "split", "--sizes", "dp=4"]);
    assert!(r.code == 0 && r.out.contains("on Mesh[dp=4]"), "{}{}", r.out, r.err);
    refused(PROGRAM, &["plan", "--function", "greets"], 1, &["E0301"]);
}

#[test]
fn a_function_of_core_as_text_becomes_what_the_program_s_does() {
    let core = with_files(&[("main.tsr", PROGRAM)], &["emit", "--ir", "core", "main.tsr"]).out;
    for ir in ["graph", "tile"] {
        let of_text = with_files(&[("main.core", &core)], &["emit", "--ir", ir, "--function", "layer", "main.core"]);
        let of_program = tool(PROGRAM, &["emit", "--ir", ir, "--function", "layer"]);
        // Sizes of functions share their names in the text.
        let graph =
            |t: &str| t.lines().filter(|l| !l.starts_with("//")).map(|l| l.to_owned() + "\n").collect::<String>();
        assert_eq!((of_text.code, graph(&of_text.out)), (0, graph(&of_program.out)), "{}", of_text.err);
    }
    let r = with_files(&[("main.core", &core)], &["emit", "--function", "layr", "main.core"]);
    assert!(r.code == 1 && r.err.contains("did you mean `layer`?"), "{}", r.err);
    // Core of one function is a text again.
    let one = tool(PROGRAM, &["emit", "--ir", "core", "--function", "heads"]).out;
    let r = with_files(&[("one.core", &one)], &["emit", "--function", "heads", "--ir", "kernels", "one.core"]);
    assert_eq!(r.code, 0, "{one}\n{}", r.err);
}

const TILED: &str = "%0 = \"tessera.schedule.tile\"(%A, %B) {m=128, n=128, k=64, autotune=true}\n";
const MMA: &str = "%fragC = \"tessera.tile.mma_sync\"(%fragA, %fragB, %fragC) {m=16, n=16, k=16, dtype=\"bf16\"}\n";

fn block(text: &str, args: &[&str]) -> Ran {
    with_files(&[("block.mlir", text)], &[&["emit", "block.mlir"], args].concat())
}

#[test]
fn the_blocks_of_the_guide_are_read_as_written() {
    let r = block(TILED, &["--ir", "schedule"]);
    assert_eq!((r.code, &*r.err), (0, ""));
    assert!(r.out.starts_with("// of %A: Tensor[256, 128, f32], %B: Tensor[128, 256, f32]\n"), "{}", r.out);
    for part in ["M=256", "size=128", "tessera.schedule.dot"] {
        assert!(r.out.contains(part), "{part}\n{}", r.out);
    }
    // Blocks of steps are of whole leaves.
    let r = block(TILED, &["--ir", "schedule", "--sizes", "M=256,N=256,K=1024"]);
    assert!(r.out.contains("\"tessera.schedule.block\"() {axis=\"k\", size=256}"), "{}{}", r.out, r.err);
    let r = block(TILED, &["--ir", "tile", "--sizes", "M=100,N=30,K=20"]);
    assert!(
        r.code == 0 && r.out.contains("%A: Tensor[100, 20, f32]") && r.out.contains("tessera.tile.mma\""),
        "{}{}",
        r.out,
        r.err
    );
    for (text, word) in [(TILED, "vfmadd"), (MMA, "vfmadd")] {
        let r = block(text, &["--ir", "asm"]);
        assert!(r.code == 0 && r.out.contains(word), "{}{}", r.out, r.err);
    }
    let r = block(MMA, &["--ir", "tile"]);
    assert_eq!((r.code, &*r.err), (0, ""));
    let head = "// of %fragA: Tensor[16, 16, bf16], %fragB: Tensor[16, 16, bf16], %fragC: Tensor[16, 16, f32]\n";
    assert!(r.out.starts_with(head) && r.out.contains("tessera.tile.mma\""), "{}", r.out);
    // What it became is a text of the same level.
    let again = block(&r.out, &["--ir", "tile"]);
    assert_eq!((again.code, again.out), (0, r.out), "{}", again.err);
    let r = block(&(MMA.to_owned() + MMA), &["--ir", "tile"]);
    // The same product twice is computed once.
    assert_eq!((r.code, r.out.matches("\"tessera.tile.mma\"").count()), (0, 1), "{}{}", r.out, r.err);
}

#[test]
fn wrong_texts_are_told_with_their_place() {
    let wrong = |text: &str, args: &[&str], code: i32, part: &str| {
        let r = block(text, args);
        assert!(r.code == code && r.err.contains(part) && r.out.is_empty(), "{text}{args:?}\n{}{}", r.out, r.err);
        assert!(!r.err.contains("E0999"), "{}", r.err);
    };
    wrong(TILED, &["--ir", "graph"], 2, "a text of Schedule IR, and does not become graph");
    wrong(MMA, &["--ir", "schedule"], 2, "a text of Tile IR, and does not become schedule");
    wrong(MMA, &["--ir", "core"], 2, "it becomes tile, llvm, asm");
    wrong(MMA, &["--function", "f"], 2, "has no functions");
    wrong(MMA, &["--ir", "tile", "--sizes", "M=4"], 2, "leaves no size `M` open");
    wrong(TILED, &["--ir", "tile", "--emit", "after:simplify"], 2, "passes are of graphs");
    wrong(&TILED.replace("m=128", "m=0"), &["--ir", "tile"], 1, "E0012]: line 1, column 1: `tessera.schedule.tile`");
    wrong(&TILED.replace("(%A, ", "("), &["--ir", "tile"], 1, "two operands");
    wrong(&MMA.replace("bf16", "i99"), &["--ir", "tile"], 1, "`i99` is no element type");
    wrong(&format!("{MMA}%x = \"tessera.tile.store\"(%y)\n"), &["--ir", "tile"], 1, "line 2, column 1");
    wrong("\"tessera.tile.kernel\"() {name=\"f\"", &["--ir", "tile"], 1, "line 1, column 33");
    let schedule = block(TILED, &["--ir", "schedule"]).out;
    wrong(&schedule.replace("(%0, %1) {axis", "(%0, %9) {axis"), &["--ir", "tile"], 1, "`%9` is not defined");
    wrong(
        &schedule.replace("elems=32768, output=false", "elems=3, output=false"),
        &["--ir", "tile"],
        1,
        "%0: positions",
    );
    let graph = "\"tessera.graph\"() {name=\"f\"} ({\n  %0 = \"tessera.graph.input\"() {index=0, name=\"x\"} : Tensor[3, f32]\n  \
                 %1 = \"tessera.graph.exp\"(%0) : Tensor[4, f32]\n  \"tessera.graph.return\"(%1)\n})\n";
    wrong(graph, &["--ir", "tile"], 1, "line 1, column 1: `tessera.graph`: %1: ");
    wrong("; ModuleID = 'x'\nsource_filename = \"x\"\ndefine i32 @f( {\n", &["--ir", "asm"], 1, "E0012");
}

#[test]
fn llvm_ir_goes_on_to_assembly() {
    let llvm = block(MMA, &["--ir", "llvm"]).out;
    let asm = block(MMA, &["--ir", "asm"]).out;
    assert_eq!(block(&llvm, &["--ir", "llvm"]).out, llvm);
    assert_eq!(block(&llvm, &["--ir", "asm"]).out, asm);
}
