//! Host IR: control flow, scalars, strings, containers, closures, calls, and calls of tensor
//! regions. Typed, monomorphic, structured. Cranelift compiles it; nothing interprets it.
//!
//! Values. Every value fits one 64-bit word: `int` and `bool` as i64, `float` as f64, the rest
//! as a pointer to a counted heap object (`None` is 0). Every expression yields an owned value.
//! Runtime functions borrow their arguments and return owned values unless their row says
//! `consumes`. Containers have value semantics by copy-on-write: a mutation first makes every
//! object on its path unique.

use std::sync::Arc;
use tessera_abi::rt::RtFn;
use tessera_base::{Code, Span};
use tessera_ops::numbers::NumberOp;

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TypeId(pub u32);
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LocalId(pub u32);
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct GlobalId(pub u32);
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FnId(pub u32);
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RegionId(pub u32);
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StrId(pub u32);
/// Index into [`HostProgram::spans`]; what compiled code passes to the runtime with a failure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SpanId(pub u32);

/// The runtime's view of a type: sizes and element types of tensors are erased.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum HostType {
    Int,
    Float,
    Bool,
    Str,
    None,
    /// Has one value, of which all is known before the program runs: how it prints.
    Known(Arc<str>),
    DType,
    Tensor,
    List(TypeId),
    /// Keys are strings, ints or bools.
    Dict(TypeId, TypeId),
    Tuple(Vec<TypeId>),
    Struct {
        name: Arc<str>,
        fields: Vec<(Arc<str>, TypeId)>,
    },
    /// One particular function: how it prints, and the values that it captures, which lie as those of a tuple do.
    Function {
        shown: Arc<str>,
        captures: Vec<TypeId>,
    },
    Fn {
        params: Vec<TypeId>,
        ret: TypeId,
    },
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct HostProgram {
    pub types: Vec<HostType>,
    pub fns: Vec<HostFn>,
    pub globals: Vec<Global>,
    pub strings: Vec<Arc<str>>,
    pub spans: Vec<Span>,
    pub regions: Vec<RegionSig>,
    /// The module body.
    pub entry: Option<FnId>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Global {
    pub name: Arc<str>,
    pub ty: TypeId,
}

/// A function. Closures receive their captures as leading locals.
#[derive(Clone, PartialEq, Debug)]
pub struct HostFn {
    pub name: Arc<str>,
    pub params: Vec<LocalId>,
    /// Locals filled from the closure object, by position.
    pub captures: Vec<LocalId>,
    pub locals: Vec<Local>,
    pub ret: TypeId,
    pub body: Vec<HStmt>,
    pub span: SpanId,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Local {
    pub name: Arc<str>,
    pub ty: TypeId,
}

/// A tensor region: arguments of any type go in by value (the callee owns the words), results
/// of any type come back. Which scalars must be known to specialise it is decided when it is
/// traced.
#[derive(Clone, PartialEq, Debug)]
pub struct RegionSig {
    pub name: Arc<str>,
    pub params: Vec<TypeId>,
    pub results: Vec<TypeId>,
    pub span: SpanId,
}

#[derive(Clone, PartialEq, Debug)]
pub struct HExpr {
    pub kind: HExprKind,
    pub ty: TypeId,
    pub span: SpanId,
}

#[derive(Clone, PartialEq, Debug)]
pub enum HExprKind {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(StrId),
    None,
    /// A `HostType::DType` value by [`tessera_base::DType`] position.
    DType(u8),
    Local(LocalId),
    /// The value of a local that is not read again before it is set: ownership moves out and
    /// the local is left empty (0), so that the receiver may be the only owner.
    Take(LocalId),
    Global(GlobalId),
    /// An operation on numbers; fails at the span where its row says that it has no value.
    Number(NumberOp, Vec<HExpr>),
    And(Box<HExpr>, Box<HExpr>),
    Or(Box<HExpr>, Box<HExpr>),
    Cond {
        test: Box<HExpr>,
        then: Box<HExpr>,
        otherwise: Box<HExpr>,
    },
    /// Struct or tuple.
    Record(Vec<HExpr>),
    Field(Box<HExpr>, u32),
    List(Vec<HExpr>),
    /// Captures are evaluated now.
    Closure {
        func: FnId,
        captures: Vec<HExpr>,
    },
    Call {
        func: FnId,
        args: Vec<HExpr>,
    },
    CallClosure {
        func: Box<HExpr>,
        args: Vec<HExpr>,
    },
    Rt {
        func: RtFn,
        args: Vec<HExpr>,
    },
    /// A region with one result.
    Region {
        region: RegionId,
        args: Vec<HExpr>,
    },
    /// Statements, then a value (comprehensions, chained comparisons).
    Block {
        stmts: Vec<HStmt>,
        value: Box<HExpr>,
    },
    /// The type of a value as an argument of a runtime function: its `TypeId` as an int.
    TypeOf(TypeId),
}

#[derive(Clone, PartialEq, Debug)]
pub enum HStmt {
    Expr(HExpr),
    SetLocal(LocalId, HExpr),
    SetGlobal(GlobalId, HExpr),
    If {
        test: HExpr,
        then: Vec<HStmt>,
        otherwise: Vec<HStmt>,
    },
    While {
        test: HExpr,
        body: Vec<HStmt>,
        span: SpanId,
    },
    /// `var` runs over `start, start + step, …` before `stop`; the bounds are evaluated once.
    ForRange {
        var: LocalId,
        start: HExpr,
        stop: HExpr,
        step: HExpr,
        body: Vec<HStmt>,
        span: SpanId,
    },
    /// Over the elements of a list as it is when the loop starts.
    ForList {
        var: LocalId,
        list: HExpr,
        body: Vec<HStmt>,
        span: SpanId,
    },
    Break,
    Continue,
    Return(Option<HExpr>),
    Mutate {
        place: HLvalue,
        change: Change,
        span: SpanId,
    },
    /// Calls a tensor region with several results and stores result `i` in `targets[i]`.
    Region {
        region: RegionId,
        args: Vec<HExpr>,
        targets: Vec<Root>,
        span: SpanId,
    },
    /// Stops the program with this diagnostic; the message is a string value.
    Fail {
        code: Code,
        message: HExpr,
        span: SpanId,
    },
}

/// A path to a slot: a variable, then fields, list elements and dict entries.
#[derive(Clone, PartialEq, Debug)]
pub struct HLvalue {
    pub root: Root,
    pub root_ty: TypeId,
    pub steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Root {
    Local(LocalId),
    Global(GlobalId),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    Field(u32),
    /// Negative counts from the end; out of range fails.
    Index(HExpr),
    /// The entry must exist, except for the last step of a `Set`.
    Key(HExpr),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// The slot takes this value.
    Set(HExpr),
    /// `slot = func(slot, args…)`: the function consumes the slot's value and returns the new
    /// one; it may change the object in place when no one else holds it.
    Apply { func: RtFn, args: Vec<HExpr> },
    /// The same through a tensor region whose first argument is the slot.
    Region { region: RegionId, args: Vec<HExpr> },
}
