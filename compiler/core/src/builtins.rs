//! The host library: functions and methods that are neither operators nor written in Tessera.
//!
//! One row per function, in [`table`]; the row has everything that the compiler knows of it, and a row that lacks a
//! column is no row. Arguments in the typed program are complete and in the order of the row. Methods that change a list
//! or dict have a table of their own, in [`methods`].

pub mod calls;
pub mod rules;
pub mod methods;

pub use calls::{CALLS, CallText, call_text};
pub use methods::{Method, Takes};
pub use table::Builtin;

use crate::ty::Ty;
use tessera_abi::rt::RtFn;
use tessera_base::DType;
use tessera_ops::numbers::NumberOp;

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
    /// `u8` pixels of rank 2 or 3.
    Image,
    /// `f32` samples of rank 1 or 2.
    Sound,
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
    /// `u8` pixels, of heights and widths that only the data knows, and as many channels as the int argument says.
    Image,
    /// `f32` samples of sizes that only the data knows, and an int.
    Sound,
    /// `dict[str, str]`.
    StrDict,
    /// `dict[str, Tensor]` of unknown types.
    TensorDict,
    /// Does not return.
    Never,
}

/// What a call agrees with.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Programs call it with these parameters, and the checker knows it by its row.
    Params(&'static [Param], Gives),
    /// The checker makes the call itself; whether the types of arguments and result are such a call's.
    By(fn(&[&Ty], &Ty) -> bool),
}

/// What a call does beside giving its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Does {
    /// Nothing, whatever the arguments, and next to no work: it may be computed again, or not at all.
    Certain,
    /// Nothing, but it may stop the program, or is work.
    Pure,
    /// It looks at or changes the world outside: makes its caller a host function.
    Acts,
}

/// How a call is had when a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// By a function of the runtime of the same arguments.
    Direct(RtFn),
    /// With the type of the result behind the arguments.
    Typed(RtFn),
    /// With the type of an argument behind the arguments: of which.
    Valued(RtFn, usize),
    /// With a number behind the arguments.
    Numbered(RtFn, i64),
    /// An operation on numbers.
    Number(NumberOp),
    /// It takes more than a call: host code and the interpreter make it.
    Made(Made),
}

/// What host code and the interpreter make themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Made {
    Print,
    Len,
    /// Of numbers of one type or texts.
    Least,
    Greatest,
    /// Of a list.
    Sum,
    /// Of a dict, pairs.
    Items,
    /// Of a tensor.
    Size,
    NoSum,
    /// Only in tile programs, which are traced.
    Tile,
}

/// What becomes of a call in tensor code, which is traced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traced {
    /// The tracer has its meaning: of what is known it is evaluated, of what the graph computes it becomes nodes.
    As(Tracing),
    /// Its values have to be known; they go through the function of the runtime.
    Known,
    /// Tensor code cannot have it: why.
    Never(&'static str),
}

/// Meanings that the tracer has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tracing {
    /// The operation on numbers that it is when the program runs.
    Number,
    Least,
    Greatest,
    Len,
    Range,
    // Of lists.
    ListLeast,
    ListGreatest,
    Sum,
    Any,
    All,
    Sorted,
    SortedBy,
    Reversed,
    Index,
    Count,
    // Of dicts.
    Keys,
    Values,
    Items,
    Get,
    // Of tensors.
    Size,
    // What stops the program.
    Differ,
    NoSum,
    // In tile programs.
    ProgramId,
    Load,
    Store,
}

/// All that is known of a function.
#[derive(Clone, Copy, Debug)]
pub struct Def {
    /// The name in Core: what programs write where they call it by name.
    pub name: &'static str,
    pub rule: Rule,
    pub does: Does,
    pub how: How,
    pub traced: Traced,
    /// What it does; of those with a rule of their own, what they take and give.
    pub doc: &'static str,
}

macro_rules! params {
    ($($name:ident : $kind:ident $(= $fallback:expr)?),* $(,)?) => {
        &[$(Param { name: stringify!($name), kind: Kind::$kind, fallback: params!(@ $($fallback)?) }),*]
    };
    (@) => { Fallback::Required };
    (@ $fallback:expr) => { $fallback };
}

macro_rules! rule {
    (by ($args:pat, $ty:pat => $holds:expr)) => {
        Rule::By(|args, ty| match (args, ty) {
            ($args, $ty) => $holds,
            _ => false,
        })
    };
    (($($params:tt)*) $gives:ident) => {
        Rule::Params(params!($($params)*), Gives::$gives)
    };
}

/// Rows: variant, name in Core, parameters and result (or `by` a rule over types), [`Does`], [`How`], [`Traced`], text.
macro_rules! host_functions {
    ($($variant:ident $name:literal $(by $by:tt)? $(($($params:tt)*) $gives:ident)?, $does:ident, $how:expr, $traced:expr, $doc:literal;)*) => {
        /// A function of the host library.
        #[allow(non_camel_case_types, reason = "variants are the names in Core")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Builtin { $(#[doc = $doc] $variant),* }

        impl Builtin {
            pub const ALL: &[Builtin] = &[$(Builtin::$variant),*];

            /// Its row.
            pub fn def(self) -> &'static Def {
                &ROWS[self as usize]
            }
        }

        const ROWS: &[Def] = &[$(Def {
            name: $name,
            rule: rule!($(by $by)? $(($($params)*) $gives)?),
            does: Does::$does,
            how: $how,
            traced: $traced,
            doc: $doc,
        }),*];
    };
}

mod table;

impl Builtin {
    pub fn name(self) -> &'static str {
        self.def().name
    }

    /// By its name in Core.
    pub fn parse(name: &str) -> Option<Builtin> {
        Builtin::ALL.iter().copied().find(|b| b.name() == name)
    }

    /// Its parameters, if programs call it and the checker knows it by its row.
    pub fn params(self) -> Option<&'static [Param]> {
        match self.def().rule {
            Rule::Params(params, _) => Some(params),
            Rule::By(_) => None,
        }
    }

    /// Whether it belongs to tile programs.
    pub fn is_tile(self) -> bool {
        self.def().how == How::Made(Made::Tile)
    }
}

/// Functions of modules (`math.sqrt`) and methods of strings (`str.split`, whose first parameter is the string).
pub fn rows() -> impl Iterator<Item = Builtin> {
    Builtin::ALL.iter().copied().filter(|b| b.params().is_some())
}

/// The one of [`rows`] of this name.
pub fn find(name: &str) -> Option<Builtin> {
    rows().find(|b| b.name() == name)
}

/// Values of modules.
pub const CONSTANTS: &[(&str, f64)] = &[
    ("math.pi", std::f64::consts::PI),
    ("math.e", std::f64::consts::E),
    ("math.tau", std::f64::consts::TAU),
    ("math.inf", f64::INFINITY),
    ("math.nan", f64::NAN),
];

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
            | "dist.each"
            | "dist.pipeline"
            | "dist.rank"
            | "dist.size"
    ) || name.starts_with("dist.collective.")
}

/// The files of the standard library, `std.NAME`.
pub const LIBRARY: &[&str] = &[
    "nn",
    "optim",
    "parallel",
    "data",
    "metrics",
    "stats",
    "ragged",
    "init",
    "plot",
    "tokens",
    "scaling",
    "onnx",
    "onnx_recurrent",
    "onnx_images",
    "onnx_attention",
    "calls",
    "args",
    "linalg",
    "profile",
    "schedules",
    "recurrent",
    "losses",
    "sampling",
    "derivatives",
    "solve",
    "minimize",
    "vision",
    "transformer",
];

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
            "each",
            "collective",
            "rank",
            "size",
            "pipeline",
            "local",
            "budget",
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
    (
        "io",
        &[
            "draw",
            "show",
            "save",
            "load",
            "read_table",
            "write_table",
            "read_json",
            "write_json",
            "read_onnx",
            "read_onnx_weights",
        ],
    ),
    ("op", &["kernel", "autotune", "scan", "fori", "cond", "while_loop", "map", "associative_scan", "array"]),
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
        let mut names: Vec<&str> = Builtin::ALL.iter().map(|b| b.name()).collect();
        names.extend(Method::ALL.iter().map(|c| c.name()));
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(Builtin::ALL.iter().all(|b| Builtin::parse(b.name()) == Some(*b)));
        assert!(Method::ALL.iter().all(|c| Method::parse(c.name()) == Some(*c)));
    }

    #[test]
    fn a_function_of_the_runtime_takes_what_it_is_given() {
        for b in Builtin::ALL {
            let (func, more) = match b.def().how {
                How::Direct(func) => (func, 0),
                How::Typed(func) | How::Numbered(func, _) | How::Valued(func, _) => (func, 1),
                How::Number(op) => {
                    assert_eq!(
                        b.params().map_or(op.def().takes.len(), <[_]>::len),
                        op.def().takes.len(),
                        "`{}`",
                        b.name()
                    );
                    continue;
                }
                How::Made(_) => continue,
            };
            if let Some(params) = b.params() {
                assert_eq!(func.sig().params.len(), params.len() + more, "`{}`", b.name());
            }
        }
        for c in Method::ALL {
            let def = c.def();
            assert_eq!(def.func.sig().params.len(), def.takes.len() + 1, "`{}`", def.name);
            assert!(def.func.sig().consumes_first, "`{}`", def.name);
        }
    }

    #[test]
    fn what_is_certain_cannot_fail() {
        for b in Builtin::ALL.iter().filter(|b| b.def().does == Does::Certain) {
            match b.def().how {
                How::Direct(func) | How::Typed(func) | How::Numbered(func, _) | How::Valued(func, _) => {
                    assert!(!func.sig().fails, "`{}`", b.name());
                }
                How::Number(op) => assert!(op.def().check.is_none(), "`{}`", b.name()),
                How::Made(_) => {}
            }
        }
    }

    #[test]
    fn what_acts_is_no_tensor_code() {
        for b in Builtin::ALL.iter().filter(|b| b.def().does == Does::Acts && !b.is_tile()) {
            assert!(matches!(b.def().traced, Traced::Never(_)), "`{}`", b.name());
        }
    }
}
