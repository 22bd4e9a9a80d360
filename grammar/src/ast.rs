//! Syntax trees. Built by the grammar, which checks nothing; every span is relative to the
//! item that holds it (see [`Span`]). Comments and layout live in the token buffer only.

use std::sync::Arc;
use tessera_base::Span;
pub use tessera_base::{BinOp, CmpOp};

/// An identifier where it stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Name {
    pub text: Arc<str>,
    pub span: Span,
}

/// A float literal by its bits, so that trees can be compared and hashed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FloatBits(pub u64);

impl FloatBits {
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum StmtKind {
    Def(Arc<FnDef>),
    Struct(Arc<StructDef>),
    /// `import a.b as c`
    Import {
        path: Vec<Name>,
        alias: Option<Name>,
    },
    /// `from a.b import x, y as z`
    FromImport {
        path: Vec<Name>,
        names: Vec<(Name, Option<Name>)>,
    },
    Expr(Expr),
    /// `target = value`; chained `a = b = e` gives several targets.
    Assign {
        targets: Vec<Expr>,
        value: Expr,
    },
    /// `target: ty = value`
    AnnAssign {
        target: Expr,
        ty: Expr,
        value: Option<Expr>,
    },
    /// `target op= value`
    AugAssign {
        op: BinOp,
        op_span: Span,
        target: Expr,
        value: Expr,
    },
    If {
        test: Expr,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    For {
        target: Expr,
        iter: Expr,
        body: Vec<Stmt>,
    },
    While {
        test: Expr,
        body: Vec<Stmt>,
    },
    Break,
    Continue,
    Pass,
    Return(Option<Expr>),
    Assert {
        test: Expr,
        message: Option<Expr>,
    },
    With {
        items: Vec<(Expr, Option<Expr>)>,
        body: Vec<Stmt>,
    },
    /// A statement that could not be read; its error is reported already.
    Error,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FnDef {
    pub name: Name,
    pub decorators: Vec<Expr>,
    pub params: Vec<Param>,
    pub ret: Option<Expr>,
    pub body: Vec<Stmt>,
    pub doc: Option<Arc<str>>,
    /// From `def` to the end of the signature line.
    pub head: Span,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Param {
    pub name: Name,
    pub ty: Option<Expr>,
    pub default: Option<Expr>,
    pub kind: ParamKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ParamKind {
    Plain,
    /// `*args`
    Rest,
    /// After a bare `*`.
    KeywordOnly,
}

/// `struct S[D, T]:` with typed fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StructDef {
    pub name: Name,
    pub decorators: Vec<Expr>,
    pub generics: Vec<Name>,
    pub fields: Vec<FieldDef>,
    pub doc: Option<Arc<str>>,
    pub head: Span,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FieldDef {
    pub name: Name,
    pub ty: Expr,
    pub default: Option<Expr>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ExprKind {
    Name(Arc<str>),
    /// Any size; the checker refuses what does not fit an `int`. Decimal digits without `_`.
    Int(Arc<str>),
    Float(FloatBits),
    Str(Arc<str>),
    FStr(Vec<FPart>),
    Bool(bool),
    None,
    Ellipsis,
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Unary {
        op: UnOp,
        operand: Box<Expr>,
    },
    /// `op_span` is the operator's own place.
    Binary {
        op: BinOp,
        op_span: Span,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// `and` / `or`
    Logic {
        and: bool,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// `a < b <= c`
    Compare {
        first: Box<Expr>,
        rest: Vec<(CmpOp, Expr)>,
    },
    /// `then if test else otherwise`
    Cond {
        test: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Lambda {
        params: Vec<Param>,
        body: Box<Expr>,
    },
    Call {
        func: Box<Expr>,
        args: Vec<Arg>,
    },
    /// `base[i, a:b, ..., None]`; also type application `Tensor[B, D, f32]` and `Mesh[dp=4]`.
    Index {
        base: Box<Expr>,
        index: Vec<Arg>,
    },
    /// Only inside an index.
    Slice {
        low: Option<Box<Expr>>,
        high: Option<Box<Expr>>,
        step: Option<Box<Expr>>,
    },
    Attr {
        base: Box<Expr>,
        name: Name,
    },
    /// `[element for target in iter if test …]`
    ListComp {
        element: Box<Expr>,
        clauses: Vec<CompClause>,
    },
    /// `(A, B) -> C` in a type.
    FnType {
        params: Vec<Expr>,
        ret: Box<Expr>,
    },
    /// An expression that could not be read; its error is reported already.
    Error,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CompClause {
    pub target: Expr,
    pub iter: Expr,
    pub tests: Vec<Expr>,
}

/// A call argument or an index part; `star` is `*xs`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Arg {
    pub name: Option<Name>,
    pub value: Expr,
    pub star: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FPart {
    Text(Arc<str>),
    /// `{value!r:spec}`; the spec may hold nested parts.
    Value {
        value: Expr,
        repr: bool,
        spec: Vec<FPart>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnOp {
    Neg,
    Pos,
    Not,
    /// `~`
    Invert,
}
