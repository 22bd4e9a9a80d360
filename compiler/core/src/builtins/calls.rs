//! How functions are called that the checker knows by a rule of its own, and what is said of them.
//!
//! One row per function that programs can name and that neither is an operator nor has its parameters in
//! [`super::table`]: names in scope everywhere, members of modules, methods of lists and dicts, attributes of tensors. The
//! checker takes the names of parameters from here where it matches arguments, so what an editor shows is what a call takes.

/// How a function is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallText {
    /// As programs write it: `autodiff.grad`; of a method `list.append`, of an attribute `Tensor.shape`.
    pub name: &'static str,
    /// `None`: it is a value, or written without parentheses.
    params: Option<&'static str>,
    /// The type of what it gives, in words; empty where that is any.
    pub gives: &'static str,
    pub doc: &'static str,
}

/// A parameter as it is written in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    pub name: &'static str,
    /// With its default: `has_aux=False`.
    pub text: &'static str,
    pub optional: bool,
    /// Any number of arguments: `*values`.
    pub rest: bool,
    /// Only by its name.
    pub keyword_only: bool,
}

impl CallText {
    /// Its parameters in order; `None` of what is no call.
    pub fn params(&self) -> Option<Vec<Written>> {
        let mut keyword_only = false;
        let mut out = vec![];
        for text in parts(self.params?) {
            if text == "*" {
                keyword_only = true;
                continue;
            }
            let (name, optional) = match text.split_once('=') {
                Some((name, _)) => (name, true),
                None => (text, false),
            };
            let rest = name.starts_with('*');
            out.push(Written { name: name.trim_start_matches('*'), text, optional, rest, keyword_only });
            keyword_only |= rest;
        }
        Some(out)
    }
}

/// What stands between commas that are in no bracket and no text.
fn parts(text: &'static str) -> Vec<&'static str> {
    let (mut out, mut depth, mut start, mut quoted) = (vec![], 0usize, 0usize, false);
    for (i, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(text[start..].trim());
    out.retain(|p| !p.is_empty());
    out
}

/// The row of a function.
pub fn call_text(name: &str) -> Option<&'static CallText> {
    CALLS.iter().find(|c| c.name == name)
}

macro_rules! calls {
    ($($name:literal $(($params:literal))? $(-> $gives:literal)?: $doc:literal;)*) => {
        /// All rows.
        pub const CALLS: &[CallText] = &[$(CallText {
            name: $name,
            params: calls!(@params $($params)?),
            gives: calls!(@gives $($gives)?),
            doc: $doc,
        }),*];
    };
    (@params) => { None };
    (@params $params:literal) => { Some($params) };
    (@gives) => { "" };
    (@gives $gives:literal) => { $gives };
}

calls! {
    "print" ("*values, sep=\" \", end=\"\\n\"") -> "None": "Prints values with `sep` between them and `end` behind them; tensors as NumPy shows them.";
    "len" ("x") -> "int": "How many elements a list, dict or tuple has, how many characters a string, how many rows a tensor.";
    "range" ("start, stop, step=1") -> "list[int]": "The ints from `start` on, `stop` not among them. `range(n)` counts from 0.";
    "zip" ("*lists") -> "list[tuple]": "Tuples of the first elements, of the second ones, and so on, for as long as the shortest list goes.";
    "enumerate" ("xs, start=0") -> "list[tuple[int, T]]": "Pairs of the number of each element and the element.";
    "min" ("*values"): "The least of several values, of a list, or of all elements of a tensor.";
    "max" ("*values"): "The greatest of several values, of a list, or of all elements of a tensor.";
    "sum" ("x, start=0"): "The sum of a list of numbers or tensors, or of all elements of a tensor.";
    "abs" ("x"): "The absolute value of a number, or of every element of a tensor.";
    "round" ("x, ndigits=None"): "The nearest int, of two equally near ones the even one; with `ndigits` the nearest float of so many decimals. Of a tensor each element.";
    "sorted" ("xs, key=None, reverse=False") -> "list": "A list in order; with `key` in the order of what that function gives of each element. Equal ones keep their order.";
    "reversed" ("xs") -> "list": "A list from its end to its start.";
    "any" ("xs") -> "bool": "Whether one element is true.";
    "all" ("xs") -> "bool": "Whether all elements are true.";
    "int" ("x=0") -> "int": "The int in a string, a float without its fraction, or the number in a tensor of one element.";
    "float" ("x=0.0") -> "float": "The float in a string, of an int, or the number in a tensor of one element.";
    "str" ("x=\"\"") -> "str": "A value as `print` shows it.";
    "bool" ("x=False") -> "bool": "Whether a value counts as true: a number that is not 0, a text or list that is not empty.";
    "repr" ("x") -> "str": "A value as it stands inside of a list: of a string with its quotes.";
    "isinstance" ("x, type") -> "bool": "Whether a value is of a type, or of one of a tuple of types; known before the program runs.";
    "list" ("xs=[]") -> "list": "The elements of a range, a dict (its keys), a string (its characters) or a tuple as a list.";
    "tuple" ("xs=()") -> "tuple": "A tuple as it is; how many elements a list has is not known before the program runs.";
    "dict" ("xs={}") -> "dict": "A dict as it is.";
    "pow" ("a, b"): "`a ** b`.";
    "divmod" ("a, b") -> "tuple": "`(a // b, a % b)`.";
    "map" ("f, xs"): "Not supported: write `[f(x) for x in xs]`.";
    "filter" ("f, xs"): "Not supported: write `[x for x in xs if f(x)]`.";

    "list.append" ("element") -> "None": "Adds an element at the end.";
    "list.extend" ("list") -> "None": "Adds the elements of another list at the end.";
    "list.insert" ("index, element") -> "None": "Puts an element before the one at a position.";
    "list.pop" ("index=-1"): "Takes an element out and gives it; the last one if nothing is said.";
    "list.remove" ("element") -> "None": "Takes the first equal element out; fails where there is none.";
    "list.sort" ("key=None, reverse=False") -> "None": "Sorts the list in place; see `sorted`.";
    "list.reverse" ("") -> "None": "Turns the list round in place.";
    "list.clear" ("") -> "None": "Takes all elements out.";
    "list.copy" ("") -> "list": "The list; what is changed later in one of the two is not seen in the other.";
    "list.index" ("element") -> "int": "The position of the first equal element; fails where there is none.";
    "list.count" ("element") -> "int": "How many elements are equal to it.";
    "dict.keys" ("") -> "list": "The keys, in the order in which they came in.";
    "dict.values" ("") -> "list": "The values, in the order of their keys.";
    "dict.items" ("") -> "list[tuple]": "Pairs of a key and its value.";
    "dict.get" ("key, default"): "The value of a key, or `default` where the dict has none.";
    "dict.pop" ("key, default=None"): "Takes a key out and gives its value; fails where the dict has none and no `default` is given.";
    "dict.update" ("dict") -> "None": "Takes over all keys and values of another dict.";
    "dict.clear" ("") -> "None": "Takes all keys out.";
    "dict.copy" ("") -> "dict": "The dict; what is changed later in one of the two is not seen in the other.";
    "str.format" ("*values") -> "str": "The text with values in the places of its `{}`, as in an f-string.";

    "Tensor.shape" -> "tuple": "The sizes of its dims, as a tuple of ints.";
    "Tensor.dtype" -> "dtype": "The type of its elements.";
    "Tensor.T" -> "Tensor": "The tensor with its dims in reverse order.";
    "Tensor.ndim" -> "int": "How many dims it has.";
    "Tensor.size" -> "int": "How many elements it has.";
    "Tensor.sharding" -> "str": "How it lies on its mesh, in words.";
    "Tensor.item" (""): "The number in a tensor of one element.";
    "Tensor.tolist" (""): "Its elements in lists, one inside of the other for each dim.";
    "Tensor.copy" ("") -> "Tensor": "The tensor; values never change under another name.";

    "autodiff.grad" ("f, wrt=0, has_aux=False"): "The function that gives the derivative of `f`, whose result is one float number, with respect to its first argument, or to those that `wrt` names by position or name (one, or a tuple). A gradient has the form of its argument. With `has_aux` `f` gives a pair `(value, aux)`, and the derivative `(gradient, aux)`.";
    "autodiff.value_and_grad" ("f, wrt=0, has_aux=False"): "The function that gives the value of `f` and its derivative: `(value, gradient)`; with `has_aux` `((value, aux), gradient)`. See `autodiff.grad`.";
    "autodiff.vjp" ("f, *primals") -> "tuple": "The value of `f` at `primals`, and the pullback: a function from the cotangent of the value to the tuple of those of the arguments.";
    "autodiff.jvp" ("f, primals, tangents") -> "tuple": "The value of `f` at a tuple of arguments, and its derivative along a tuple of tangents.";
    "autodiff.vmap" ("f, in_axes=0, out_axes=0"): "The function that does `f` for every row of its arguments, as one computation. `in_axes` is a dim, or a tuple of dims and `None` (an argument that all rows share); `out_axes` says where the rows lie in the results.";
    "autodiff.checkpoint" ("f"): "`f`, whose inner values are computed again for its derivative instead of being kept: less memory, more time, the same bits.";
    "autodiff.stop_gradient" ("x"): "`x` with a derivative of zero.";
    "autodiff.custom_vjp" ("backward"): "As a decorator: gives a function a derivative of its own. `backward` takes the arguments, the result and the cotangent of the result, and gives the cotangents of the arguments.";

    "op.scan" ("f, init, xs") -> "tuple": "A loop inside of tensor code: `f(carry, x)` gives the next carry and a row, for every row of `xs`. Gives the last carry and all rows.";
    "op.fori" ("lower, upper, f, init"): "A loop inside of tensor code: the last of the states that `f(i, state)` gives for every int from `lower` to `upper`, which is not among them.";
    "op.cond" ("pred, then, otherwise, *operands"): "A choice inside of tensor code, by a bool that may be a tensor's: `then(*operands)` or `otherwise(*operands)`, of which one is computed. Both give values of one type. With `autodiff.vmap` both are computed and chosen from.";
    "op.while_loop" ("cond, body, init, max_steps=None"): "A loop inside of tensor code that goes on while `cond(state)` is true: the first of the states, `init` and what `body` makes of each, for which it is not. With `max_steps` it is an error to need more turns than that, and the loop has a derivative.";
    "op.map" ("f, xs"): "`f` of every row of `xs`, one after the other, inside of tensor code: all rows of what it gives. `xs` is a tensor, or a tuple or struct of them. What `f` needs for a row is needed once; `autodiff.vmap(f)` computes all rows at once.";
    "op.associative_scan" ("f, xs, axis=0, reverse=False"): "What `f` makes of all rows up to each one: `x0, f(x0, x1), f(f(x0, x1), x2), …`, for an associative `f` of two rows, in about 2 log2(n) steps over many rows instead of n over one. `xs` is a tensor, or a tuple or struct of them, whose rows lie along `axis`. With `reverse` from the last one to the first: `f` has what lies behind as its first argument. In which order rows are combined depends on their number only (Blelloch, 1990).";
    "op.kernel": "As a decorator: the function is one kernel, on whole tensors or, with `tile.…`, written for one program of a grid.";
    "op.autotune" ("*, cache, objective=\"latency\", samples=50"): "As a decorator: measures how the kernels of a function run best, by \"latency\", \"throughput\", \"memory\", \"compile\" or \"energy\", and keeps the result under a name.";

    "tree.map" ("f, *trees"): "`f` of every leaf of a struct, list, tuple or dict; of several of one form, of their leaves together.";
    "tree.leaves" ("tree") -> "list": "The leaves of a struct, list, tuple or dict.";
    "tree.zip" ("*trees"): "The first of some values of one form, with tuples of the leaves of all at its leaves.";

    "dist.Mesh" ("axes, devices, shape=None") -> "Mesh": "Devices in a grid: the names of its axes, how many devices there are (`range(8)`), and how many lie along each axis.";
    "dist.ShardSpec" ("partition=None, mesh_axes=None") -> "ShardSpec": "Which dims of a tensor are split over which axes of a mesh: dims by number, `\"row\"` or `\"col\"`.";
    "dist.shard" ("x, spec, mesh=None") -> "Tensor": "`x` in a layout. `mesh` may be left out where `x` lies on a mesh already.";
    "dist.tensor" ("shape, dtype=f32, layout=None, mesh=None, init=0.0") -> "Tensor": "A tensor of one number, zeros if nothing is said, in a layout.";
    "dist.gather" ("x") -> "Tensor": "`x` on one device.";
    "dist.complete" ("x") -> "Tensor": "`x` with its sums completed; any other tensor as it is.";
    "dist.like" ("x, y") -> "Tensor": "`x` as `y` lies.";
    "dist.at" ("x, axis, index, mesh=None") -> "Tensor": "`x` on the devices at one position of an axis alone; along other axes as it lies.";
    "dist.each" ("x, axis") -> "Tensor": "In per-device code: `x` as a value of each device, and not as a part of a sum.";
    "dist.rank" ("axis") -> "Tensor[i64]": "In per-device code: the number of the device along an axis.";
    "dist.size" ("axis") -> "int": "In per-device code: how many devices there are along an axis.";
    "dist.pipeline" ("stages, microbatches, axis=\"pp\", mesh=None"): "One function of several stages, each at its position of an axis: the rows of its argument go through in parts.";
    "dist.local": "As a decorator: the function says what one device does with its own blocks; its annotations say how they lie.";
    "dist.budget" ("*, memory=None, step=None, over=None"): "As a decorator: what a call of the function may need at most, on one device or on each of a mesh: `memory=\"2GiB\"`, `step=\"15ms\"`, and by the name of an axis the bytes that a device exchanges over it, `tp=\"64MiB\"`, or `over={\"memory\": \"64MiB\"}` where the name means something else. What needs more is refused before anything runs.";
    "dist.collective": "Exchanges that are written out.";
    "dist.collective.all_reduce" ("x, axis, op=\"sum\"") -> "Tensor": "The sum over the devices of an axis, or with `op` their mean, max or min.";
    "dist.collective.all_gather" ("x, axis, dim=0") -> "Tensor": "The blocks of all devices of an axis, one after the other along a dim. `dim` is for per-device code; elsewhere the layout says it.";
    "dist.collective.reduce_scatter" ("x, axis, dim=0") -> "Tensor": "Of the sum over the devices of an axis the block of each, along a dim.";
    "dist.collective.all_to_all" ("x, axis, from_dim, to_dim") -> "Tensor": "Splits `to_dim` where `from_dim` was split: each device sends every other one a part of its block.";
    "dist.collective.broadcast" ("x, axis, source=0") -> "Tensor": "What one device of an axis has, on all of them. `source` is for per-device code.";
    "dist.collective.permute" ("x, axis, shift=1, to=None") -> "Tensor": "In per-device code: the block of the device `shift` before; or by the list `to`, which says where each device sends.";
    "dist.collective.send" ("x, axis, source, to") -> "Tensor": "In per-device code: on device `to` the block of `source`, on the others their own.";
    "dist.collective.recv" ("x, axis, source, to") -> "Tensor": "Another name of `dist.collective.send`: all devices say both at once.";

    "schedule.tile" ("shape"): "The block that one grid point of a kernel computes; of a product with the depth that is packed at a time. See the guide to kernels for all directives.";
    "schedule.vectorize" ("lanes"): "Elements per vector: a power of two.";
    "schedule.use_shared_memory" ("enabled=True, padding=0"): "Operands of products are copied into panels first; with `False` only where they must be.";
    "schedule.async_copy" ("enabled=True"): "Copies into shared memory while it computes, on targets that can.";
    "schedule.pipeline_stages" ("stages"): "How many tiles are on their way at a time, on targets that copy in the background.";
    "schedule.unroll" ("factor"): "How often the bodies of innermost loops are written.";
    "schedule.parallel" ("axis"): "The grid divides this dim of the result only; may be given for several.";
    "schedule.warps" ("count"): "Warps of a block, on GPUs.";
    "schedule.swizzle" ("bytes=128"): "How tiles lie in shared memory, on GPUs.";

    "tile.program_id" ("axis, count=None") -> "int": "In a tile program: its number along axis 0, 1 or 2 of the grid.";
    "tile.load" ("x, index, shape, pad=0.0"): "In a tile program: a tile of a tensor. `index` counts tiles, `shape` are its sizes; what sticks out is `pad`.";
    "tile.store" ("x, index, value") -> "None": "In a tile program: writes a tile of an output.";
    "tile.dot" ("a, b, acc=None"): "In a tile program: the product of two tiles, added to `acc` where it is given; of 16-bit and 8-bit floats in f32.";
    "tile.reduce" ("x, kind, axis=None, keepdims=False"): "In a tile program: `\"sum\"`, `\"max\"`, `\"min\"`, `\"prod\"` or `\"mean\"` of a tile.";
    "tile.range" ("start, stop, step=1"): "In a tile program: what `range` is.";

    "numerics.policy" ("name"): "A statement for the rest of its scope, behind `with`, or a decorator: how sums are made, `\"deterministic\"`, `\"fast\"` or `\"kahan_sum\"`.";
    "numerics.precision" ("mode, dtype=bf16"): "A statement for the rest of its scope, behind `with`, or a decorator: which element types products take, `\"safe\"`, `\"standard\"`, `\"aggressive\"` or `\"deterministic\"`.";

    "graph.profile" ("f, *args, runs=10, warmup=3, show=True") -> "Profile": "Runs `f` with the arguments, `warmup` times and then `runs` times measured, and prints a row for each of its kernels and exchanges. The value has them as numbers: see `std.profile`. Arguments are computed before.";
    "graph.trace": "Not supported yet: use `tessera profile --trace FILE.json`.";
    "graph.explain": "Not supported yet: use `tessera explain`.";

    "io.save" ("path, value") -> "None": "Writes a value, or a struct, list or dict of them, as a safetensors file, atomically.";
    "io.draw" ("figure, path, width, height") -> "str": "Draws a figure of `std.plot` as text or, where `path` is not empty, into a file; what `plot.text` and `plot.save` are made of.";
    "io.show" ("figure, width, height") -> "None": "Prints a figure of `std.plot`, or shows it as a picture in a notebook; what `plot.show` is made of.";
    "io.load" ("path, like, prefix=\"\", extra=False"): "A value of the form and type of `like` from a safetensors file. `prefix` stands before all names; with `extra` the file may have more.";
    "io.read_table" ("path, columns, delimiter=\",\", missing=None, first=0, rows=None"): "The columns of a table by their names: of comma-separated text with a line of names, of JSON lines (`.jsonl`), or of a Parquet file. Gives a value of the struct `columns`, whose fields are `Tensor[N, f64]` or of another dtype, or `list[str]`. A missing float is NaN, a missing int or bool is `missing`, and an error where none is given. `first` and `rows` say which rows are read: all, where nothing is said.";
    "io.write_table" ("path, table, delimiter=\",\"") -> "None": "Writes a struct of columns, `Tensor[N, f64]` or of another dtype and `list[str]`, atomically: as Parquet (`.parquet`), JSON lines (`.jsonl`), or comma-separated text with a line of names. `.csv.gz` and `.jsonl.gz` are packed.";
    "io.read_json" ("path, type, extra=False"): "The value of a type in a JSON file: a struct, `list[float]`, `dict[str, Row]`, `str`. Of a file of JSON lines (`.jsonl`) a list, of which each element is a line. With `extra` objects may have more than the struct.";
    "io.write_json" ("path, value") -> "None": "Writes numbers and strings, in structs, tuples, lists and dicts, as JSON, atomically; to a file of JSON lines (`.jsonl`) each element of a list on a line.";
    "io.read_onnx" ("path"): "The function that an ONNX model computes. The file is read while the program is checked.";
    "io.read_onnx_weights" ("path"): "The weights of an ONNX model, as a struct.";
    "sys.args" ("") -> "list[str]": "The arguments of the program.";
    "sys.dir" ("") -> "str": "The folder of the program.";
    "sys.advise" ("holds, message") -> "None": "Warns before the program runs where what is known here makes `holds` false; does nothing when it runs.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::{FUNCTIONS, MEMBERS, Method, find, from_std};

    #[test]
    fn everything_that_can_be_named_says_how_it_is_called() {
        // What tile programs have under the name of an operator is that operator.
        let operators = ["op.array", "tile.zeros", "tile.full", "tile.arange", "tile.where"];
        let members = MEMBERS.iter().flat_map(|(m, names)| names.iter().map(move |n| format!("{m}.{n}")));
        let known = |name: &str| call_text(name).is_some() || find(name).is_some();
        for name in members.chain(FUNCTIONS.iter().map(|f| f.to_string())) {
            if from_std(&name).is_none() && !operators.contains(&&*name) {
                assert!(known(&name), "`{name}` has no row");
            }
        }
        for m in Method::ALL {
            assert!(known(m.name()), "`{}` has no row", m.name());
        }
        // What has a row of the host library with parameters has no second one.
        assert!(CALLS.iter().all(|c| find(c.name).is_none()));
        let mut names: Vec<&str> = CALLS.iter().map(|c| c.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|w| w[0] != w[1]), "a name has two rows");
    }

    #[test]
    fn parameters_are_parts_of_a_row() {
        let of = |name: &str| call_text(name).and_then(CallText::params).unwrap_or_default();
        let grad = of("autodiff.grad");
        assert_eq!(grad.iter().map(|p| p.name).collect::<Vec<_>>(), ["f", "wrt", "has_aux"]);
        assert!(grad[2].optional && grad[2].text == "has_aux=False");
        let print = of("print");
        assert!(print[0].rest && !print[0].keyword_only && print[1].keyword_only);
        assert!(of("op.autotune")[0].keyword_only);
        assert!(of("sys.args").is_empty() && call_text("op.kernel").is_some_and(|c| c.params().is_none()));
    }
}
