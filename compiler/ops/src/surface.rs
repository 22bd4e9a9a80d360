//! The operators that programs call (`op.softmax`, `x.sum(axis=0)`): one row each.
//!
//! A row states its parameters, its typing rule over symbolic sizes, and its expansion into
//! primitives over concrete shapes. The rule is run twice: by the checker on symbolic sizes,
//! and when a graph is specialised, on constants, so that a size that only data knows fails
//! with the same diagnostic as a static error.

use crate::prim::{Prim, Scalar};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use tessera_base::{Code, DType, Facts, Reach, Size, TensorType, Verdict};

pub use precision::{Mixed, Precision};

/// What an argument may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamKind {
    Tensor,
    /// A tensor or a Python scalar, which is weak.
    Operand,
    /// A list or tuple of tensors; as the last parameter also several positional tensors
    /// (`op.einsum("ij,jk->ik", a, b)`).
    Tensors,
    /// One axis; negative counts from the end.
    Axis,
    /// An int, a tuple of ints, or None for all.
    Axes,
    /// A tuple of sizes, one size, or (in methods) several positional sizes.
    Shape,
    /// A size or any static int.
    Int,
    /// A static int or float that keeps its kind (`arange`): [`SymArg::Int`] or [`SymArg::Float`].
    Number,
    /// A size or any static int, or a tensor (`random.permutation`).
    IntOrTensor,
    /// An int or a tuple of ints.
    Ints,
    Float,
    Bool,
    DType,
    Str,
    /// Nested lists of numbers (`op.array`).
    Nested,
    /// A random key: an i64 tensor of shape [2].
    Key,
    /// Pads and such: an int, or nested tuples of ints, flattened by the caller ([`SymArg::Ints`]).
    Pairs,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Default {
    Required,
    None,
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(&'static str),
}

impl Default {
    /// What an absent argument stands for; `None` where the argument is required.
    pub fn sym(self) -> Option<SymArg> {
        Some(match self {
            Default::Required => return None,
            Default::None => SymArg::None,
            Default::Int(n) => SymArg::Int(Size::constant(n)),
            Default::Float(v) => SymArg::Float(Some(v)),
            Default::Bool(v) => SymArg::Bool(Some(v)),
            Default::Str(text) => SymArg::Str(text.into()),
        })
    }

    /// The same for an expansion.
    pub fn arg(self) -> Option<Arg> {
        Some(match self {
            Default::Required => return None,
            Default::None => Arg::None,
            Default::Int(n) => Arg::Int(n),
            Default::Float(v) => Arg::Float(v),
            Default::Bool(v) => Arg::Bool(v),
            Default::Str(text) => Arg::Str(text.into()),
        })
    }
}

impl std::fmt::Display for Default {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Default::Required => Ok(()),
            Default::None => f.write_str("None"),
            Default::Int(n) => write!(f, "{n}"),
            Default::Float(v) => write!(f, "{v:?}"),
            Default::Bool(v) => f.write_str(if *v { "True" } else { "False" }),
            Default::Str(text) => write!(f, "\"{text}\""),
        }
    }
}

/// A parameter. `dim=` is accepted for a parameter named `axis`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Param {
    pub name: &'static str,
    pub kind: ParamKind,
    pub default: Default,
    pub keyword_only: bool,
}

/// The kind of a Python scalar that meets a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weak {
    Bool,
    Int,
    Float,
}

/// An argument as the checker knows it.
#[derive(Clone, PartialEq, Debug)]
pub enum SymArg {
    /// `None`, or absent with default None.
    None,
    Tensor(TensorType),
    Tensors(Vec<TensorType>),
    Weak(Weak),
    /// A static int: an axis, a size. Axes must be constants.
    Int(Size),
    Ints(Vec<Size>),
    /// The value where it is a literal.
    Float(Option<f64>),
    Bool(Option<bool>),
    DType(DType),
    Str(Arc<str>),
    /// Shape and natural dtype (bool, i64 or f32) of nested lists.
    Nested {
        shape: Vec<Size>,
        dtype: DType,
    },
}

/// What is wrong with a call. `args` names the arguments to blame by parameter position, with
/// the text of their label.
#[derive(Clone, PartialEq, Debug)]
pub struct OpError {
    pub code: Code,
    pub message: String,
    pub args: Vec<(usize, String)>,
    pub witness: Option<String>,
    pub notes: Vec<String>,
    /// `{NAME}` stands for the argument of the parameter `NAME`.
    pub help: Vec<String>,
    /// Calls around an argument that would do.
    pub wraps: Vec<Wrap>,
}

/// A call around an argument, or around each tensor of one that is a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrap {
    pub title: String,
    pub param: usize,
    pub before: String,
    pub after: String,
}

impl OpError {
    pub fn new(code: Code, message: impl Into<String>) -> OpError {
        OpError {
            code,
            message: message.into(),
            args: vec![],
            witness: None,
            notes: vec![],
            help: vec![],
            wraps: vec![],
        }
    }

    /// Blames the argument of parameter `position`.
    pub fn arg(mut self, position: usize, text: impl Into<String>) -> Self {
        self.args.push((position, text.into()));
        self
    }

    pub fn witness(mut self, text: impl ToString) -> Self {
        self.witness = Some(text.to_string());
        self
    }

    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }
}

/// What a typing rule may ask and record.
pub struct InferCx<'a> {
    pub facts: &'a Facts,
    /// Makes a size that only data knows.
    pub fresh: &'a mut dyn FnMut(&str) -> Size,
    /// Equalities that are checked once at run time.
    pub checks: Vec<(Size, Size)>,
    /// Sizes, each at least the other, that the operator compares when it runs.
    pub reaches: Vec<(Size, Size)>,
    /// Notes for hovering and `explain` (for example "checked at run time").
    pub notes: Vec<String>,
}

impl InferCx<'_> {
    /// Accepts sizes that are equal, records a run-time check where only data decides, and
    /// returns the verdict where they differ, or may differ for a rigid variable.
    pub fn require_equal(&mut self, a: &Size, b: &Size) -> Result<(), Verdict> {
        match a.compare_stated(b, self.facts) {
            Verdict::Equal => Ok(()),
            Verdict::Depends(w) => {
                if a.vars().iter().chain(&b.vars()).any(|v| !v.rigid) {
                    self.checks.push((a.clone(), b.clone()));
                    Ok(())
                } else {
                    Err(if self.facts.differ_unless_empty(a, b) { Verdict::Differ(w) } else { Verdict::Depends(w) })
                }
            }
            differ => Err(differ),
        }
    }

    /// Whether the size is proved to be at least `bound`.
    pub fn at_least(&self, size: &Size, bound: i64) -> bool {
        self.facts.at_least(size, bound)
    }

    /// Accepts `whole >= part`, records a comparison at run time where only data decides, and returns the answer where
    /// it never holds, or may not for a rigid variable.
    pub fn require_reach(&mut self, whole: &Size, part: &Size) -> Result<(), Reach> {
        match whole.reach_stated(part, self.facts) {
            Reach::Always => Ok(()),
            Reach::Depends(_) if whole.vars().iter().chain(&part.vars()).any(|v| !v.rigid) => {
                self.reaches.push((whole.clone(), part.clone()));
                Ok(())
            }
            reach => Err(reach),
        }
    }
}

/// The result types of a call: one, or several (`split`, `topk`) which become a tuple.
#[derive(Clone, PartialEq, Debug)]
pub enum OpTypes {
    One(TensorType),
    Many(Vec<TensorType>),
}

/// A node handle during expansion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Id(pub u32);

/// An argument at expansion: everything static is a constant now.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    None,
    Tensor(Id),
    Tensors(Vec<Id>),
    /// A Python scalar known now.
    Scalar(Scalar),
    /// A Python scalar passed at run time: a rank-0 node of dtype f64, i64 or bool.
    Dynamic(Id),
    Int(i64),
    Ints(Vec<i64>),
    Float(f64),
    Bool(bool),
    DType(DType),
    Str(Arc<str>),
    /// Row-major values of nested lists.
    Nested {
        shape: Vec<u64>,
        dtype: DType,
        values: Vec<Scalar>,
    },
}

/// Where an expansion adds nodes.
pub trait Build {
    fn shape(&self, id: Id) -> Vec<u64>;
    fn dtype(&self, id: Id) -> DType;
    /// Adds a node; operands already have the shapes and dtypes that the primitive needs.
    fn push(&mut self, prim: Prim, operands: &[Id], shape: Vec<u64>, dtype: DType) -> Id;

    /// Says that a node counts as a constant where derivatives are taken: the result does not
    /// depend on it (the maximum that softmax subtracts).
    fn hold(&mut self, _x: Id) {}

    /// Nodes added from here on are computations of their own, which are not merged with equal
    /// ones, until this is called with `false`: for what a derivative computes a second time
    /// instead of keeping.
    fn again(&mut self, _on: bool) {}

    /// Adds a loop. `body` gets the carried values, a row of each sequence and the constants, and gives the next carried values
    /// and what the turn adds to each stack. Gives the last carried values and the stacks; `None` where there are no loops.
    fn scan(&mut self, _l: Loop, _body: Body) -> Option<Vec<Id>> {
        None
    }

    /// Gives the derivative of a part of the graph as a whole, where that is better than step by
    /// step.
    fn derive(&mut self, _d: Derivative) {}
}

/// What stands inside a loop.
pub type Body<'b> = &'b mut dyn FnMut(&mut dyn Build, &[Id]) -> Vec<Id>;

/// The operands of a [`Prim::Scan`] of `trips` turns.
pub struct Loop<'a> {
    pub trips: u64,
    /// What the first turn begins with; a turn leaves values of the same types.
    pub carry: &'a [Id],
    /// `[trips, …]`: a turn gets its row.
    pub sequences: &'a [Id],
    /// The same in every turn.
    pub constants: &'a [Id],
}

/// The derivative of a part of a graph, from `inputs` to `output`.
pub struct Derivative {
    pub inputs: Vec<Id>,
    pub output: Id,
    /// Other nodes that the derivative is written with.
    pub saved: Vec<Id>,
    pub pull: Pull,
}

/// Cotangents of the inputs, each of the shape and dtype of its input (`None`: zero).
pub type Pull = Arc<dyn Fn(&mut dyn Build, &Pulled) -> Vec<Option<Id>> + Send + Sync>;

/// What a derivative is computed from: the nodes of [`Derivative`] and the cotangent of the output.
pub struct Pulled {
    pub inputs: Vec<Id>,
    pub output: Id,
    pub saved: Vec<Id>,
    pub cotangent: Id,
}

/// Keyword arguments that every operator takes besides its own.
pub const HINTS: &[&str] = &["tile_shape", "accum_dtype", "out_dtype"];

/// Schedule hints and accumulation of one call.
#[derive(Clone, PartialEq, Debug, std::default::Default)]
pub struct Hints {
    pub tile_shape: Option<Vec<i64>>,
    pub accum_dtype: Option<DType>,
    pub out_dtype: Option<DType>,
    /// The mode of `numerics.precision` that the call stands in.
    pub precision: Precision,
    /// The policy lets sums be made in any order: an expansion may take another way to its result.
    pub reassociate: bool,
}

/// The ints that a default stands for at these types.
pub type SettleFn = fn(&[SymArg]) -> Option<(usize, Vec<i64>)>;

/// Everything the compiler knows about one operator.
pub struct OpDef {
    /// NumPy's word, or PyTorch's where NumPy has none.
    pub name: &'static str,
    /// Other spellings: accepted only in "did you mean".
    pub known_as: &'static [&'static str],
    /// Method name on tensors, if it is one (`x.sum(...)`): the tensor is the first parameter.
    pub method: bool,
    /// Markdown; first sentence ends with a full stop.
    pub doc: &'static str,
    /// Axis signature where it has one, e.g. `"b m k, b k n -> b m n"`; for documentation and
    /// sharding rules.
    pub signature: &'static str,
    pub params: &'static [Param],
    /// What `numerics.precision` does to it.
    pub mixed: Mixed,
    /// An element of the result depends on those of the operands at its place alone: the result may be written over one.
    pub elementwise: bool,
    /// `args[i]` belongs to `params[i]`.
    pub infer: fn(&mut InferCx, &[SymArg], &Hints) -> Result<OpTypes, OpError>,
    pub expand: fn(&mut dyn Build, &[Arg], &Hints) -> Result<Vec<Id>, OpError>,
    /// What a default means is decided by which sizes are known before the program runs, and not by their values in a
    /// run: the parameter, and the ints that it stands for.
    pub settles: Option<SettleFn>,
    /// The parameter with the shape of which one size may be -1: what the type of the result says.
    pub open_shape: Option<usize>,
    /// A diagnostic instead of a meaning: why the operator is not supported yet.
    pub unsupported: Option<&'static str>,
}

impl OpDef {
    /// Of an operator that becomes a matrix product: the parameters whose elements are multiplied and summed up. What is
    /// said of the tiles of products holds for it.
    pub fn factors(&self) -> Option<&'static [usize]> {
        match self.mixed {
            Mixed::Product(at) | Mixed::Matrices(at) => Some(at),
            Mixed::Nothing | Mixed::Sum(_) => None,
        }
    }
}

impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "op.{}", self.name)
    }
}

pub mod expand;
pub mod parts_of_rows;
pub mod precision;
pub mod row;
pub mod rule;
mod windows;

macro_rules! table {
    ($($file:ident: $($row:ident)*;)*) => {
        $(mod $file;)*

        /// The rows with a file of their own. Elementwise functions come from the map table.
        static ROWS: &[OpDef] = &[$($({
            const ROW: row::Row = $file::$row;
            ROW.def(|cx, args, hints| row::infer(&ROW, cx, args, hints), |b, args, hints| row::expand(&ROW, b, args, hints))
        }),*),*];
    };
}

table! {
    cast: CAST;
    reduce: SUM PROD MAX MIN ANY ALL;
    choose: WHERE CLIP;
    moments: MEAN VAR STD;
    argreduce: ARGMAX ARGMIN;
    cumulate: CUMSUM CUMPROD CUMMAX CUMMIN LOGCUMSUMEXP;
    softmax: SOFTMAX LOG_SOFTMAX LOGSUMEXP;
    reshape: RESHAPE FLATTEN;
    transpose: TRANSPOSE PERMUTE MOVEAXIS SWAPAXES;
    concat: CONCAT STACK;
    broadcast_to: EXPAND BROADCAST_TO;
    squeeze: SQUEEZE UNSQUEEZE EXPAND_DIMS;
    matmul: MATMUL DOT;
    attention: ATTENTION;
    create: ZEROS ONES EMPTY FULL ZEROS_LIKE ONES_LIKE EMPTY_LIKE FULL_LIKE;
    arange: ARANGE LINSPACE;
    split: SPLIT;
    slice: SLICE PAD;
    flip: FLIP ROLL;
    repeat: TILE REPEAT;
    norm: LAYER_NORM RMS_NORM BATCH_NORM;
    activate: GELU LEAKY_RELU ELU;
    diagonal: DIAG TRACE;
    einsum: EINSUM TENSORDOT OUTER;
    triangle: TRIL TRIU TRI EYE;
    embedding: EMBEDDING TAKE ONE_HOT;
    gather: GATHER TAKE_ALONG_AXIS SCATTER_ADD;
    sort: SORT ARGSORT TOPK;
    search: SEARCHSORTED;
    quantile: QUANTILE PERCENTILE MEDIAN;
    bincount: BINCOUNT;
    moe: MOE_DISPATCH MOE_COMBINE;
    linalg: CHOLESKY LU_FACTOR QR EIGH EIGVALSH SVD SVDVALS EIG EIGVALS;
    solve: SOLVE;
    solve_triangular: SOLVE_TRIANGULAR;
    loss: CROSS_ENTROPY MSE L1;
    rope: ROPE;
    array: ARRAY;
    random: KEY SPLIT FOLD_IN UNIFORM NORMAL RANDINT BERNOULLI PERMUTATION CHOICE
        EXPONENTIAL GUMBEL LAPLACE LOGISTIC CAUCHY RADEMACHER TRUNCATED_NORMAL
        GAMMA LOGGAMMA BETA DIRICHLET CHISQUARE T
        POISSON BINOMIAL GEOMETRIC CATEGORICAL;
    dropout: DROPOUT;
    conv: CONV1D CONV2D CONV3D;
    conv_transpose: CONV_TRANSPOSE2D;
    pool: MAX_POOL AVG_POOL;
    blocks: DEQUANTIZE;
    quantize: QUANTIZE FAKE_QUANTIZE;
    complex: REAL IMAG CONJ ANGLE COMPLEX;
    spectral: FFT IFFT RFFT IRFFT FFT2 IFFT2 RFFT2 IRFFT2 FFTSHIFT IFFTSHIFT FFTFREQ RFFTFREQ;
    spectral_conv: SPECTRAL_CONV;
    nonzero: NONZERO ARGWHERE;
    unique: UNIQUE COUNT_UNIQUE;
    segment: SEGMENT_SUM SEGMENT_MEAN SEGMENT_MAX SEGMENT_MIN;
    unsupported:
        ALL_REDUCE;
}

mod scaled;
mod elementwise;
mod manual;
#[cfg(test)]
mod testing;

pub use manual::docs_markdown;
pub use solve::solved;

/// Methods of tensors whose name is not the operator's.
const METHODS: &[(&str, &str)] = &[("to", "cast"), ("astype", "cast")];

static INDEX: LazyLock<BTreeMap<&'static str, &'static OpDef>> = LazyLock::new(|| {
    let maps: &'static [OpDef] = Vec::leak(elementwise::rows());
    // A row of its own goes before the generic one of the map table.
    maps.iter().chain(ROWS).map(|def| (def.name, def)).collect()
});

/// The operator of this name. Members of the module `random` are named `random.normal` and so on.
pub fn find(name: &str) -> Option<&'static OpDef> {
    INDEX.get(name).copied()
}

/// Every operator, sorted by name.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    INDEX.values().copied()
}

/// The operator that a method of tensors is: `x.sum(…)` is `sum` with `x` as first argument.
pub fn method(name: &str) -> Option<&'static OpDef> {
    match METHODS.iter().find(|(method, _)| *method == name) {
        Some((_, row)) => find(row),
        None => find(name).filter(|def| def.method),
    }
}

/// The names of all methods, sorted.
pub fn methods() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&'static str> = all().filter(|d| d.method).map(|d| d.name).collect();
    names.extend(METHODS.iter().map(|(method, _)| *method));
    names.sort_unstable();
    names.into_iter()
}

/// The operator meant by a name that is none: one known under that name elsewhere, or a near miss.
pub fn suggest(name: &str) -> Option<&'static str> {
    if let Some(def) = all().find(|d| d.known_as.contains(&name)) {
        return Some(def.name);
    }
    let names = all().flat_map(|d| std::iter::once(d.name).chain(d.known_as.iter().copied()));
    let near = tessera_base::near::nearest(name, names)?;
    all().find(|d| d.name == near || d.known_as.contains(&near)).map(|d| d.name)
}
