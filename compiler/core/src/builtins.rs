//! The host library: functions and methods that are neither operators nor written in Tessera.
//!
//! One row per function. The name is what [`crate::ir::TKind::Builtin`] carries; arguments
//! there are complete and in the order of `params`. Functions whose types depend on their
//! arguments (`print`, `len`, `list.append`, …) have their rules in the checker; their names
//! and arguments are listed in [`TYPED`].

use crate::ir::SUM_OF_NONE;
use tessera_base::DType;

/// What an argument must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Int,
    /// An int is converted.
    Float,
    Bool,
    Str,
    StrList,
    IntList,
    /// A tensor of any type.
    Tensor,
    /// `dict[str, Tensor]`.
    TensorDict,
    /// The value of a dtype, known statically.
    DType,
}

/// The value of an argument that is left out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fallback {
    Required,
    Int(i64),
    Bool(bool),
    Str(&'static str),
    DType(DType),
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Param {
    pub name: &'static str,
    pub kind: Kind,
    pub fallback: Fallback,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    Int,
    Float,
    Bool,
    Str,
    StrList,
    IntList,
    None,
    /// A tensor whose rank and dtype only the data knows.
    AnyTensor,
    /// A rank-2 tensor of the dtype argument, of sizes that only the data knows.
    Matrix,
    /// `dict[str, str]`.
    StrDict,
    /// `dict[str, Tensor]` of unknown types.
    TensorDict,
    /// Does not return.
    Never,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BuiltinDef {
    pub name: &'static str,
    pub params: &'static [Param],
    pub gives: Gives,
    /// Looks at or changes the world outside: makes its caller a host function.
    pub effect: bool,
    pub doc: &'static str,
}

macro_rules! params {
    ($($name:ident : $kind:ident $(= $fallback:expr)?),* $(,)?) => {
        &[$(Param { name: stringify!($name), kind: Kind::$kind, fallback: params!(@ $($fallback)?) }),*]
    };
    (@) => { Fallback::Required };
    (@ $fallback:expr) => { $fallback };
}

macro_rules! rows {
    ($($name:literal ($($params:tt)*) $gives:ident $effect:literal $doc:literal;)*) => {
        /// Functions of modules (`math.sqrt`) and methods of strings (`str.split`, whose first
        /// parameter is the string).
        pub const ROWS: &[BuiltinDef] = &[$(BuiltinDef {
            name: $name,
            params: params!($($params)*),
            gives: Gives::$gives,
            effect: $effect,
            doc: $doc,
        }),*];
    };
}

use Fallback::{Bool as B, DType as D, Int as I, Str as S};

rows! {
    "str.split" (text: Str, sep: Str = S(""), maxsplit: Int = I(-1)) StrList false "The parts between separators; white space where none is given.";
    "str.splitlines" (text: Str) StrList false "The lines, without their ends.";
    "str.join" (sep: Str, parts: StrList) Str false "The parts with the string between them.";
    "str.strip" (text: Str, chars: Str = S("")) Str false "Without white space (or `chars`) at both ends.";
    "str.lstrip" (text: Str, chars: Str = S("")) Str false "Without white space (or `chars`) at the start.";
    "str.rstrip" (text: Str, chars: Str = S("")) Str false "Without white space (or `chars`) at the end.";
    "str.replace" (text: Str, old: Str, new: Str, count: Int = I(-1)) Str false "With `old` replaced by `new`, at most `count` times.";
    "str.startswith" (text: Str, prefix: Str) Bool false "Whether it starts with the prefix.";
    "str.endswith" (text: Str, suffix: Str) Bool false "Whether it ends with the suffix.";
    "str.upper" (text: Str) Str false "In capitals.";
    "str.lower" (text: Str) Str false "In small letters.";
    "str.title" (text: Str) Str false "With a capital at each word.";
    "str.capitalize" (text: Str) Str false "With one capital at the start.";
    "str.find" (text: Str, sub: Str) Int false "Where `sub` occurs first, or -1.";
    "str.rfind" (text: Str, sub: Str) Int false "Where `sub` occurs last, or -1.";
    "str.index" (text: Str, sub: Str) Int false "Where `sub` occurs first. Fails where it does not.";
    "str.count" (text: Str, sub: Str) Int false "How often `sub` occurs without overlap.";
    "str.isdigit" (text: Str) Bool false "Whether all characters are digits, and there is one.";
    "str.isalpha" (text: Str) Bool false "Whether all characters are letters, and there is one.";
    "str.isalnum" (text: Str) Bool false "Whether all characters are letters or digits, and there is one.";
    "str.isspace" (text: Str) Bool false "Whether all characters are white space, and there is one.";
    "str.isupper" (text: Str) Bool false "Whether all letters are capitals, and there is one.";
    "str.islower" (text: Str) Bool false "Whether all letters are small, and there is one.";
    "str.ljust" (text: Str, width: Int, fill: Str = S(" ")) Str false "Filled up at the end.";
    "str.rjust" (text: Str, width: Int, fill: Str = S(" ")) Str false "Filled up at the start.";
    "str.center" (text: Str, width: Int, fill: Str = S(" ")) Str false "Filled up at both ends.";
    "str.zfill" (text: Str, width: Int) Str false "Filled up with zeros behind the sign.";

    "io.read_npy" (path: Str) AnyTensor true "The tensor in a `.npy` file.";
    "io.write_npy" (path: Str, x: Tensor) None true "Writes a `.npy` file, atomically.";
    "io.read_idx" (path: Str) AnyTensor true "The tensor in an IDX file, as MNIST has them; gzip is unpacked.";
    "io.read_bytes" (path: Str) AnyTensor true "The bytes of a file as a `u8` tensor of rank 1.";
    "io.read_npz" (path: Str) TensorDict true "The tensors in a `.npz` file by name.";
    "io.write_npz" (path: Str, tensors: TensorDict) None true "Writes a `.npz` file, atomically.";
    "io.read_safetensors" (path: Str) TensorDict true "The tensors in a safetensors file by name.";
    "io.write_safetensors" (path: Str, tensors: TensorDict) None true "Writes a safetensors file, atomically.";
    "io.read_gguf" (path: Str) TensorDict true "The tensors in a GGUF file by name; quantised ones as blocks of bytes for `op.dequantize`.";
    "io.read_gguf_meta" (path: Str) StrDict true "The metadata in a GGUF file by key, as texts; lists of texts are left out.";
    "io.read_onnx_tensors" (path: Str) TensorDict true "The constants in an ONNX file by name; what `io.read_onnx` reads weights with.";
    "io.read_csv" (path: Str, delimiter: Str = S(","), skip: Int = I(0), dtype: DType = D(DType::F32)) Matrix true "The numbers of a CSV file as a matrix; `skip` lines are left out at the top.";
    "io.write_csv" (path: Str, x: Tensor, delimiter: Str = S(","), header: Str = S("")) None true "Writes a matrix as CSV, atomically.";
    "io.read_text" (path: Str) Str true "The UTF-8 text of a file.";
    "io.write_text" (path: Str, text: Str) None true "Writes a text file, atomically.";
    "io.append_text" (path: Str, text: Str) None true "Appends to a text file.";
    "io.read_lines" (path: Str) StrList true "The lines of a text file, without their ends.";
    "io.read_tokenizer" (path: Str, lowercase: Bool = B(true)) Int true "The number of the tokeniser in a `tokenizer.json` or a GGUF file, or of the word pieces in a `vocab.txt`; `std.tokens` has it as a struct.";
    "io.encode" (tokenizer: Int, text: Str, special: Bool = B(true)) IntList true "The tokens of a text; with `special` also those that mark its ends.";
    "io.decode" (tokenizer: Int, ids: IntList, special: Bool = B(false)) Str true "The text of tokens; with `special` also those that stand for no text.";
    "io.token_id" (tokenizer: Int, token: Str) Int true "The number of a token as it stands in the vocabulary, or -1.";
    "io.token_count" (tokenizer: Int) Int true "How many tokens a tokeniser has.";
    "io.exists" (path: Str) Bool true "Whether a file or folder of this path exists.";

    "io.draw_lines" (series: TensorDict, labels: StrList, log: Bool, path: Str, width: Int, height: Int) Str true "Draws lines, as text or into a file; what `std.plot` is made of.";
    "dist.show" (x: Tensor) None true "Prints which device of the mesh holds what of a tensor.";
    "io.draw_heat" (cells: Tensor, labels: StrList, path: Str, width: Int, height: Int) Str true "Draws a matrix as colours, as text or into a file; what `std.plot` is made of.";

    "time.now" () Float true "Seconds since 1970.";
    "time.perf_counter" () Float true "Seconds of a clock that never goes back.";
    "time.sleep" (seconds: Float) None true "Waits.";
    "sys.exit" (code: Int = I(0)) Never true "Ends the program with an exit code.";
    "sys.env" (name: Str, default: Str = S("")) Str true "An environment variable.";
    "sys.progress" (current: Int, total: Int, text: Str = S("")) None true "Shows progress on a terminal; nothing elsewhere.";

    "math.sqrt" (x: Float) Float false "The square root; fails for negative numbers.";
    "math.exp" (x: Float) Float false "The exponential.";
    "math.expm1" (x: Float) Float false "exp(x) - 1, exact near 0.";
    "math.log" (x: Float) Float false "The natural logarithm; fails for numbers that are not positive.";
    "math.log1p" (x: Float) Float false "log(1 + x), exact near 0.";
    "math.log2" (x: Float) Float false "The logarithm to base 2.";
    "math.log10" (x: Float) Float false "The logarithm to base 10.";
    "math.sin" (x: Float) Float false "The sine.";
    "math.cos" (x: Float) Float false "The cosine.";
    "math.tan" (x: Float) Float false "The tangent.";
    "math.asin" (x: Float) Float false "The inverse sine.";
    "math.acos" (x: Float) Float false "The inverse cosine.";
    "math.atan" (x: Float) Float false "The inverse tangent.";
    "math.atan2" (y: Float, x: Float) Float false "The angle of a point.";
    "math.sinh" (x: Float) Float false "The hyperbolic sine.";
    "math.cosh" (x: Float) Float false "The hyperbolic cosine.";
    "math.tanh" (x: Float) Float false "The hyperbolic tangent.";
    "math.erf" (x: Float) Float false "The error function.";
    "math.pow" (x: Float, y: Float) Float false "x to the power y.";
    "math.hypot" (x: Float, y: Float) Float false "The length of a vector.";
    "math.floor" (x: Float) Int false "The greatest int that is not greater.";
    "math.ceil" (x: Float) Int false "The least int that is not less.";
    "math.trunc" (x: Float) Int false "Without the fraction.";
    "math.fabs" (x: Float) Float false "The absolute value.";
    "math.isnan" (x: Float) Bool false "Whether it is NaN.";
    "math.isinf" (x: Float) Bool false "Whether it is infinite.";
    "math.isfinite" (x: Float) Bool false "Whether it is neither NaN nor infinite.";
    "math.gcd" (a: Int, b: Int) Int false "The greatest common divisor.";

    "chr" (code: Int) Str false "The character of a code point.";
    "ord" (c: Str) Int false "The code point of one character.";
}

/// Values of modules.
pub const CONSTANTS: &[(&str, f64)] = &[
    ("math.pi", std::f64::consts::PI),
    ("math.e", std::f64::consts::E),
    ("math.tau", std::f64::consts::TAU),
    ("math.inf", f64::INFINITY),
    ("math.nan", f64::NAN),
];

/// Names of builtins with a rule of their own, with their arguments in the typed program.
/// Those marked `change` occur in [`crate::ir::TChange::Method`] only, without the receiver.
pub const TYPED: &[(&str, &str)] = &[
    ("print", "sep: str, end: str, then the values"),
    ("len", "x: str, list or dict -> int"),
    ("range", "start, stop, step: int -> list[int]"),
    ("int.abs", "int -> int"),
    ("float.abs", "float -> float"),
    ("float.round", "float -> int, half to even"),
    ("float.round_digits", "float, digits: int -> float"),
    ("min", "two or more ints, floats or strs of one type"),
    ("max", "two or more ints, floats or strs of one type"),
    ("list.min", "list of int, float or str; fails when empty"),
    ("list.max", "list of int, float or str; fails when empty"),
    ("list.sum", "list of int or float"),
    ("list.any", "list[bool]"),
    ("list.all", "list[bool]"),
    ("list.sorted", "list, reverse: bool -> list"),
    ("list.sorted_by", "list, keys: list of the same length, reverse: bool -> list"),
    ("list.reversed", "list -> list"),
    ("list.index", "list, element -> int; fails where it does not occur"),
    ("list.count", "list, element -> int"),
    ("list.append", "change: element"),
    ("list.extend", "change: list"),
    ("list.insert", "change: index, element"),
    ("list.pop", "change: index"),
    ("list.remove", "change: element"),
    ("list.sort", "change: reverse"),
    ("list.reverse", "change"),
    ("list.clear", "change"),
    ("dict.keys", "dict -> list"),
    ("dict.values", "dict -> list"),
    ("dict.items", "dict -> list of (key, value)"),
    ("dict.get", "dict, key, default -> value"),
    ("dict.pop", "change: key"),
    ("dict.update", "change: dict"),
    ("dict.clear", "change"),
    ("str.list", "str -> list[str], its characters"),
    ("tile.program_id", "axis: int -> int; in tile programs only"),
    (
        "tile.load",
        "tensor, tuple of ints (which tile), tuple of ints (its sizes), number (where it sticks out) -> tile",
    ),
    ("tile.store", "output, tuple of ints (which tile), tile"),
    ("io.save", "path: str, value"),
    ("io.load", "path: str, like: value, prefix: str, extra: bool -> the type of like"),
    ("sys.args", "no arguments -> list[str]"),
    ("sys.dir", "no arguments -> str"),
];

/// Names that no program spells: what the checker calls for it, with their arguments.
pub const INTERNAL: &[(&str, &str)] = &[
    ("sizes.differ", "text, values: list[int]; stops the program, the text with the values in its braces"),
    ("tensor.size", "tensor -> int, how many elements it has"),
    ("tensor.tolist", "tensor -> nested lists"),
    (SUM_OF_NONE, "stops the program: a sum of tensors has none to start with"),
];

/// The name of a builtin of any kind, as [`crate::ir::TKind::Builtin`] carries it.
pub fn interned(name: &str) -> Option<&'static str> {
    let rows = ROWS.iter().map(|row| row.name).chain(TYPED.iter().chain(INTERNAL).map(|(n, _)| *n));
    rows.into_iter().find(|n| *n == name)
}

/// The row of a builtin.
pub fn find(name: &str) -> Option<&'static BuiltinDef> {
    ROWS.iter().find(|row| row.name == name)
}

/// The interned name of a builtin with a rule of its own.
pub fn typed(name: &str) -> Option<&'static str> {
    TYPED.iter().map(|(n, _)| *n).find(|n| *n == name)
}

/// Whether a member of `dist` makes meshes, layouts, or tensors in them.
pub fn is_layout(name: &str) -> bool {
    matches!(
        name,
        "dist.Mesh"
            | "dist.ShardSpec"
            | "dist.tensor"
            | "dist.shard"
            | "dist.gather"
            | "dist.complete"
            | "dist.like"
            | "dist.at"
            | "dist.pipeline"
            | "dist.rank"
            | "dist.size"
    ) || name.starts_with("dist.collective.")
}

/// The built-in modules.
pub const MODULES: &[&str] = &[
    "op", "dist", "schedule", "tile", "numerics", "graph", "autodiff", "random", "io", "tree", "time", "sys", "math",
    "std",
];

/// Members of modules that are no operators, rows or constants. Those of `dist` and
/// `graph` are known so that they can be refused by name.
pub const MEMBERS: &[(&str, &[&str])] = &[
    (
        "dist",
        &[
            "Mesh",
            "ShardSpec",
            "tensor",
            "shard",
            "gather",
            "complete",
            "like",
            "at",
            "collective",
            "rank",
            "size",
            "pipeline",
            "local",
        ],
    ),
    (
        "dist.collective",
        &["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "permute", "send", "recv"],
    ),
    (
        "schedule",
        &[
            "tile",
            "vectorize",
            "use_shared_memory",
            "async_copy",
            "pipeline_stages",
            "unroll",
            "parallel",
            "warps",
            "swizzle",
        ],
    ),
    ("tile", &["program_id", "load", "store", "dot", "reduce", "range", "zeros", "full", "arange", "where"]),
    ("numerics", &["policy", "precision", "LossScale", "scaled", "unscaled", "updated"]),
    ("graph", &["profile", "trace", "explain"]),
    ("autodiff", &["grad", "value_and_grad", "vjp", "jvp", "custom_vjp", "checkpoint", "stop_gradient", "vmap"]),
    ("tree", &["map", "leaves", "zip"]),
    ("sys", &["args", "dir", "advise"]),
    ("io", &["save", "load", "read_onnx", "read_onnx_weights"]),
    ("op", &["kernel", "autotune", "scan", "fori", "array"]),
];

/// Members of built-in modules that a file of the standard library defines, with its name.
pub const FROM_STD: &[(&str, &str)] = &[
    ("numerics.LossScale", "std.scaling"),
    ("numerics.scaled", "std.scaling"),
    ("numerics.unscaled", "std.scaling"),
    ("numerics.updated", "std.scaling"),
];

/// The file of the standard library that defines a member of a built-in module.
pub fn from_std(dotted: &str) -> Option<&'static str> {
    FROM_STD.iter().find(|(member, _)| *member == dotted).map(|(_, file)| *file)
}

/// The functions in scope everywhere.
pub const FUNCTIONS: &[&str] = &[
    "print",
    "len",
    "range",
    "zip",
    "enumerate",
    "min",
    "max",
    "sum",
    "abs",
    "round",
    "sorted",
    "reversed",
    "any",
    "all",
    "int",
    "float",
    "str",
    "bool",
    "repr",
    "isinstance",
    "chr",
    "ord",
    "list",
    "tuple",
    "dict",
    "pow",
    "divmod",
    "map",
    "filter",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> =
            ROWS.iter().map(|r| r.name).chain(TYPED.iter().chain(INTERNAL).map(|(n, _)| *n)).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
