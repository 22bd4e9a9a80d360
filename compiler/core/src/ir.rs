//! The typed program: what the checker yields and everything below starts from.
//!
//! Monomorphic: every function is an instance at concrete argument types (sizes may stay
//! symbolic). Names are resolved, defaults filled in, conversions explicit, comprehensions and
//! unpacking desugared. A rebinding that changes a variable's type makes a new local.

pub use crate::builtins::{Builtin, Method};
pub use crate::ty::GlobalId;

use crate::budget::Budget;
use crate::builtins::Does;
use crate::ty::Ty;
use std::sync::Arc;
use tessera_base::{BinOp, CmpOp, DType, Mesh, Size, SizeVar, Span};
use tessera_ir::graph::Policy;
use tessera_ir::hints::KernelHints;
use tessera_ops::numbers::NumberOp;
use tessera_ops::prim::Collective;
use tessera_ops::scalar::Kind;
use tessera_ops::surface::{Hints, OpDef};

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LocalId(pub u32);
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct InstId(pub u32);

#[derive(Clone, Debug, Default)]
pub struct Program {
    pub insts: Vec<FnInst>,
    /// Module-level variables (one entry per type that a name takes on).
    pub globals: Vec<Variable>,
    /// The module body.
    pub entry: Option<InstId>,
}

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: Arc<str>,
    pub ty: Ty,
    pub span: Span,
    /// It has what is needed to compare values with their types, and nothing else.
    pub compares: bool,
}

/// A function at one set of argument types.
#[derive(Clone, Debug)]
pub struct FnInst {
    pub name: Arc<str>,
    /// Captured variables first, then parameters; the caller passes both in this order.
    pub captures: Vec<LocalId>,
    pub params: Vec<LocalId>,
    pub locals: Vec<Variable>,
    /// Size variables of the signature that the body uses as ints: read from a parameter's
    /// shape at entry.
    pub size_binds: Vec<SizeBind>,
    pub ret: Ty,
    pub body: Vec<TStmt>,
    pub effect: Effect,
    pub policy: Policy,
    /// What a kernel, or a function that is tuned, asks of the scheduler.
    pub hints: Option<Arc<KernelHints>>,
    /// What a call may need at most (`@dist.budget`).
    pub budget: Option<Arc<Budget>>,
    /// Decorated with `@op.kernel`.
    pub kernel: bool,
    /// The body is what one program of a grid does.
    pub program: Option<TileProgram>,
    /// Gives the cotangents of the parameters from their values, the result, and its cotangent
    /// (`@autodiff.custom_vjp`).
    pub backward: Option<InstId>,
    /// What it compares when it runs, because only data knows it: where, and in words.
    pub kept: Vec<(Span, Arc<str>)>,
    pub span: Span,
}

/// The grid of an explicit tile program.
#[derive(Clone, Debug)]
pub struct TileProgram {
    /// Programs along each axis, in terms of the parameters.
    pub grid: Vec<TExpr>,
    /// Parameters that the programs write; the result of the function.
    pub outputs: Vec<LocalId>,
}

#[derive(Clone, Debug)]
pub struct SizeBind {
    pub local: LocalId,
    pub var: SizeVar,
    /// Where the value comes from: an expression over the parameters (a `TensorDim`).
    pub from: TExpr,
}

/// Graph functions compute tensors from tensors; a call of one becomes one graph program.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    Graph,
    /// Prints, reads files, loops on data, measures time. Which line makes it one.
    Host {
        why: Arc<str>,
        span: Span,
        /// Nothing else than deciding on the elements of tensors makes it one: tensor code can have it.
        by_data: bool,
    },
}

#[derive(Clone, Debug)]
pub struct TExpr {
    pub kind: TKind,
    pub ty: Ty,
    pub span: Span,
}

impl TExpr {
    /// Whether running an expression changes nothing and cannot fail: a value that is known may take its place.
    pub fn is_certain(&self) -> bool {
        match &self.kind {
            TKind::Int(_) | TKind::Float(_) | TKind::Bool(_) | TKind::Str(_) | TKind::None | TKind::DType(_) => true,
            TKind::Local(_) | TKind::Global(_) => true,
            TKind::Field(base, _) | TKind::TensorDim(base, _) => base.is_certain(),
            TKind::TensorShape(base) | TKind::TensorDType(base) => base.is_certain(),
            TKind::Tuple(es) | TKind::Struct(es) => es.iter().all(TExpr::is_certain),
            TKind::Builtin { name, args } => name.def().does == Does::Certain && args.iter().all(TExpr::is_certain),
            // Of numbers that only the run knows a divisor may be 0, and a step on the way too large: `m + 1 - m`.
            TKind::Arith { left, right, .. } => [left, right].iter().all(|e| e.is_certain() && e.is_known_int()),
            TKind::Neg(a) => a.is_certain() && a.is_known_int(),
            TKind::BoolToInt(a) => a.is_certain(),
            _ => false,
        }
    }

    /// The operation on numbers that the form is, of which its operands are the operands.
    pub fn number_op(&self) -> Option<NumberOp> {
        match &self.kind {
            TKind::Arith { op, left, right, int_operands } => {
                // An operand that is never there is of any type.
                let any = if *op == BinOp::Div { Kind::F64 } else { Kind::I64 };
                let of = left.ty.number().or(right.ty.number()).unwrap_or(any);
                NumberOp::arith(*op, of, *int_operands)
            }
            TKind::Neg(a) => match a.ty {
                Ty::Float => Some(NumberOp::float_neg),
                _ => Some(NumberOp::int_neg),
            },
            TKind::Invert(_) => Some(NumberOp::int_invert),
            TKind::IntToFloat(_) => Some(NumberOp::int_to_float),
            TKind::BoolToInt(_) => Some(NumberOp::bool_to_int),
            _ => None,
        }
    }

    fn is_known_int(&self) -> bool {
        matches!(&self.ty, Ty::Int(Some(size)) if size.as_const().is_some())
    }

    /// What a condition is that the types decide, whatever is computed before it.
    pub fn known_bool(&self) -> Option<bool> {
        match &self.kind {
            TKind::Bool(b) => Some(*b),
            TKind::Block { value, .. } => value.known_bool(),
            _ => None,
        }
    }

    /// Whether running an expression may do more than give its value.
    pub fn has_effect(&self) -> bool {
        match &self.kind {
            TKind::Call { .. } | TKind::CallValue { .. } | TKind::Builtin { .. } | TKind::Block { .. } => true,
            TKind::Arith { left, right, .. }
            | TKind::Concat(left, right)
            | TKind::Repeat(left, right)
            | TKind::Logic { left, right, .. }
            | TKind::Compare { left, right, .. } => left.has_effect() || right.has_effect(),
            TKind::Neg(x)
            | TKind::Invert(x)
            | TKind::Not(x)
            | TKind::IntToFloat(x)
            | TKind::BoolToInt(x)
            | TKind::Truth(x)
            | TKind::Convert { value: x, .. }
            | TKind::Field(x, _)
            | TKind::TensorDim(x, _)
            | TKind::TensorShape(x)
            | TKind::TensorDType(x)
            | TKind::Check { value: x, .. } => x.has_effect(),
            TKind::Tuple(xs) | TKind::List(xs) | TKind::Struct(xs) | TKind::Closure { captures: xs } => {
                xs.iter().any(TExpr::has_effect)
            }
            TKind::Op { args, .. } => args.iter().any(|a| matches!(a, OpArg::Value(e) if e.has_effect())),
            TKind::Index(a, b) => a.has_effect() || b.has_effect(),
            TKind::Int(_)
            | TKind::Float(_)
            | TKind::Bool(_)
            | TKind::Str(_)
            | TKind::None
            | TKind::DType(_)
            | TKind::Local(_)
            | TKind::Global(_) => false,
            _ => true,
        }
    }
}

/// What decides which functions run, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// `op.cond(pred, then, otherwise, *operands)`: functions `then`, `otherwise`; arguments `pred` and the operands.
    Cond,
    /// `op.while_loop(cond, body, init, max_steps)`: functions `cond`, `body`; arguments `init` and, where it is given, `max_steps`.
    While,
    /// `op.map(f, xs)`: function `f`; argument `xs`.
    Map,
    /// `op.associative_scan(f, xs, axis, reverse)`: function `f`; arguments `xs`, `axis`, `reverse`.
    Associative,
}

impl Flow {
    pub const ALL: [Flow; 4] = [Flow::Cond, Flow::While, Flow::Map, Flow::Associative];

    pub fn name(self) -> &'static str {
        match self {
            Flow::Cond => "choice",
            Flow::While => "while_loop",
            Flow::Map => "map",
            Flow::Associative => "associative_scan",
        }
    }

    /// How many functions it has.
    pub fn functions(self) -> usize {
        match self {
            Flow::Cond | Flow::While => 2,
            Flow::Map | Flow::Associative => 1,
        }
    }
}

/// A function at the types of its arguments, and what it captured.
#[derive(Clone, Debug)]
pub struct Called {
    pub inst: InstId,
    pub callee: Option<Box<TExpr>>,
}

impl Called {
    pub fn new(inst: InstId, callee: Option<Box<TExpr>>) -> Called {
        Called { inst, callee }
    }
}

#[derive(Clone, Debug)]
pub enum TKind {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(Arc<str>),
    None,
    DType(DType),
    Local(LocalId),
    Global(GlobalId),
    /// Both int or both float (conversions are explicit). `Div` is float only; of two ints the
    /// operands are `IntToFloat` and `int_operands` makes division by zero an error.
    Arith {
        op: BinOp,
        left: Box<TExpr>,
        right: Box<TExpr>,
        int_operands: bool,
    },
    /// `str + str`, `str * int`, `list + list`, `list * int`.
    Concat(Box<TExpr>, Box<TExpr>),
    Repeat(Box<TExpr>, Box<TExpr>),
    Neg(Box<TExpr>),
    Invert(Box<TExpr>),
    Not(Box<TExpr>),
    Logic {
        and: bool,
        left: Box<TExpr>,
        right: Box<TExpr>,
    },
    /// Of two values of one host type; `In`/`NotIn` take (element, container).
    Compare {
        op: CmpOp,
        left: Box<TExpr>,
        right: Box<TExpr>,
    },
    Cond {
        test: Box<TExpr>,
        then: Box<TExpr>,
        otherwise: Box<TExpr>,
    },
    IntToFloat(Box<TExpr>),
    BoolToInt(Box<TExpr>),
    /// `bool(x)` and conditions: of any host value, or a tensor of one element.
    Truth(Box<TExpr>),
    /// `int(x)`, `float(x)`, `str(x)`, `repr(x)` of any value; from `str` it may fail.
    Convert {
        to: Convert,
        value: Box<TExpr>,
    },
    Tuple(Vec<TExpr>),
    List(Vec<TExpr>),
    Dict(Vec<(TExpr, TExpr)>),
    /// Fields in declaration order.
    Struct(Vec<TExpr>),
    /// Field of a struct or element of a tuple, by position.
    Field(Box<TExpr>, u32),
    /// Element of a list, character of a string, entry of a dict.
    Index(Box<TExpr>, Box<TExpr>),
    /// Slice of a list or string.
    Slice {
        base: Box<TExpr>,
        low: Option<Box<TExpr>>,
        high: Option<Box<TExpr>>,
        step: Option<Box<TExpr>>,
    },
    /// A direct call. `captures` is the function value when the function has captures.
    Call {
        inst: InstId,
        callee: Option<Box<TExpr>>,
        args: Vec<TExpr>,
    },
    /// Of a value of type `Ty::Fn`.
    CallValue {
        callee: Box<TExpr>,
        args: Vec<TExpr>,
    },
    /// A function value of singleton type: the record of its captured values.
    Closure {
        captures: Vec<TExpr>,
    },
    /// A singleton function value as a `Ty::Fn`.
    Erase {
        value: Box<TExpr>,
        inst: InstId,
    },
    /// A tensor operator; `args[i]` belongs to `def.params[i]`. Its typing rule holds if the sizes in `checks`
    /// are equal, in terms of the sizes in the arguments' types, which only a run can tell.
    Op {
        def: &'static OpDef,
        args: Vec<OpArg>,
        hints: Hints,
        checks: Vec<(Size, Size)>,
    },
    /// `x[i, a:b, None, t]`; `checks` as of [`TKind::Op`].
    TensorIndex {
        base: Box<TExpr>,
        index: Vec<IndexPart>,
        checks: Vec<(Size, Size)>,
    },
    /// A size of a tensor as an int.
    TensorDim(Box<TExpr>, usize),
    TensorShape(Box<TExpr>),
    TensorDType(Box<TExpr>),
    /// `op.scan(f, init, xs)`: `inst` is f at the element types; gives (carry, ys).
    Scan {
        inst: InstId,
        callee: Option<Box<TExpr>>,
        init: Box<TExpr>,
        xs: Box<TExpr>,
    },
    /// `op.fori(lo, hi, f, init)`.
    Fori {
        inst: InstId,
        callee: Option<Box<TExpr>>,
        low: Box<TExpr>,
        high: Box<TExpr>,
        init: Box<TExpr>,
    },
    /// Control flow that values of tensors decide, by functions.
    Flow {
        flow: Flow,
        functions: Vec<Called>,
        args: Vec<TExpr>,
    },
    /// A function made of another, at arguments.
    Derive {
        f: Box<TFunction>,
        args: Vec<TExpr>,
    },
    /// What devices do together, in per-device code; of a value, or of none (the device's number).
    Collective {
        what: Arc<Collective>,
        x: Option<Box<TExpr>>,
    },
    /// The value with a derivative of zero.
    StopGradient(Box<TExpr>),
    /// The tensor in the layout that the expression's type states.
    Layout(Box<TExpr>),
    /// A function of the host library (print, io, time, list and string methods, …).
    Builtin {
        name: Builtin,
        args: Vec<TExpr>,
    },
    /// The value with its type checked at run time once (data of unknown sizes bound to an
    /// annotated type): rank and dtype of `ty` must hold, and each dim must equal the int in
    /// `dims` where there is one. The rules leave `dims` empty, the checker fills it.
    Check {
        value: Box<TExpr>,
        name: Arc<str>,
        annotation: Span,
        dims: Vec<Option<TExpr>>,
    },
    /// `f"…"`: text and formatted values; `spec` is a str.
    Format(Vec<FormatPart>),
    Block {
        stmts: Vec<TStmt>,
        value: Box<TExpr>,
    },
    /// `with numerics.policy(...)` around an expression's graph nodes.
    WithPolicy(Policy, Box<TExpr>),
}

/// A function of the program, or one made of it.
#[derive(Clone, Debug)]
pub enum TFunction {
    /// As in [`TKind::Call`].
    Direct {
        inst: InstId,
        callee: Option<TExpr>,
    },
    Derived {
        step: Step,
        of: Box<TFunction>,
        bound: Vec<TExpr>,
    },
}

/// What is made of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    Grad(crate::ty::Grad),
    /// Takes arguments and as many tangents; gives the value and its tangent.
    Jvp,
    /// The arguments are bound; takes the cotangent of the result and gives a tuple.
    /// Behind them the values of these module variables at the time.
    Pullback(Vec<GlobalId>),
    Checkpoint,
    /// Over the named dim of each argument that has one.
    Vmap(Vec<Option<i64>>, crate::ty::OutAxes),
    /// On every device of a mesh, with its blocks of the arguments.
    Local(Arc<LocalCall>),
}

/// A call of a function that says what one device does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalCall {
    pub name: Arc<str>,
    pub mesh: Arc<Mesh>,
    /// Whole arguments, as they are cut.
    pub args: Vec<Ty>,
    /// The whole result, as it is put together.
    pub ret: Ty,
}

impl TFunction {
    /// The function of the program.
    pub fn inst(&self) -> InstId {
        match self {
            TFunction::Direct { inst, .. } => *inst,
            TFunction::Derived { of, .. } => of.inst(),
        }
    }

    /// The values that it holds.
    pub fn values(&self) -> Vec<&TExpr> {
        match self {
            TFunction::Direct { callee, .. } => callee.iter().collect(),
            TFunction::Derived { of, bound, .. } => of.values().into_iter().chain(bound).collect(),
        }
    }

    pub fn values_mut(&mut self) -> Vec<&mut TExpr> {
        match self {
            TFunction::Direct { callee, .. } => callee.iter_mut().collect(),
            TFunction::Derived { of, bound, .. } => of.values_mut().into_iter().chain(bound).collect(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Convert {
    Int,
    Float,
    Str,
    Repr,
}

#[derive(Clone, Debug)]
pub enum FormatPart {
    Text(Arc<str>),
    Value { value: TExpr, repr: bool, spec: Option<TExpr> },
}

/// An argument of an operator: absent ones carry the parameter's default.
#[derive(Clone, Debug)]
pub enum OpArg {
    Default,
    /// Tensor, scalar, int, dtype, tuple of ints, list of tensors, nested list: as its type says.
    Value(TExpr),
}

#[derive(Clone, Debug)]
pub enum IndexPart {
    Int(TExpr),
    Slice {
        low: Option<TExpr>,
        high: Option<TExpr>,
        step: Option<TExpr>,
    },
    /// `...` written out: this many whole dims.
    Whole(usize),
    NewAxis,
    /// An integer (or bool) tensor.
    Tensor(TExpr),
}

#[derive(Clone, Debug)]
pub enum TStmt {
    Expr(TExpr),
    Set(LocalId, TExpr),
    SetGlobal(GlobalId, TExpr),
    Mutate {
        place: TLvalue,
        change: TChange,
        span: Span,
    },
    If {
        test: TExpr,
        then: Vec<TStmt>,
        otherwise: Vec<TStmt>,
    },
    While {
        test: TExpr,
        body: Vec<TStmt>,
        span: Span,
    },
    ForRange {
        var: LocalId,
        start: TExpr,
        stop: TExpr,
        step: TExpr,
        body: Vec<TStmt>,
        span: Span,
    },
    /// Over a list, the rows of a tensor, the characters of a string or the keys of a dict.
    ForEach {
        var: LocalId,
        iter: TExpr,
        body: Vec<TStmt>,
        span: Span,
    },
    Break,
    Continue,
    Return(Option<TExpr>),
    Assert {
        test: TExpr,
        message: Option<TExpr>,
        span: Span,
    },
    /// `numerics.policy` over the statements.
    WithPolicy {
        policy: Policy,
        body: Vec<TStmt>,
    },
    /// What directives ask of the statements, together with those around.
    WithHints {
        hints: Arc<KernelHints>,
        body: Vec<TStmt>,
    },
}

/// Along which dims a value repeats where it is written into a larger slot, as bits: those whose size is 1
/// whatever the run. A dim that happens to have size 1 does not repeat.
pub fn repeating(value: &Ty) -> u64 {
    match value {
        Ty::Tensor(t) => {
            t.shape.iter().take(64).enumerate().filter(|(_, s)| s.as_const() == Some(1)).map(|(i, _)| 1 << i).sum()
        }
        _ => u64::MAX,
    }
}

/// A variable and the path from it to the slot that changes.
#[derive(Clone, Debug)]
pub struct TLvalue {
    pub root: TRoot,
    pub steps: Vec<TStep>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TRoot {
    Local(LocalId),
    Global(GlobalId),
}

#[derive(Clone, Debug)]
pub enum TStep {
    Field(u32),
    Index(TExpr),
    Key(TExpr),
}

#[derive(Clone, Debug)]
pub enum TChange {
    Set(TExpr),
    /// `x[index] = value` of a tensor slot; the value broadcasts to the indexed shape and is
    /// converted to the slot's dtype when it is a Python scalar.
    TensorSet {
        /// The type of the tensor here; its variable may have had another one before.
        of: Ty,
        index: Vec<IndexPart>,
        value: TExpr,
    },
    /// A mutating method of a list or dict. The popped value is read before the change.
    Method {
        name: Method,
        args: Vec<TExpr>,
    },
}

/// A symbolic value for diagnostics and hovering.
pub type SymbolicInt = Option<Size>;

/// What [`Builtin::list_sum_of_none`] says.
pub const NO_SUM: &str = "`sum` of an empty list of tensors: `sum(xs, start)` has a value for none";
