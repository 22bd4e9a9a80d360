//! Core written out by hand, for tests of what starts from it.

use crate::ir::*;
use crate::ty::Ty;
use tessera_base::BinOp;
use tessera_base::{DType, ItemId, Size, SizeVar, Span, TensorType};
use tessera_ir::graph::Policy;
use tessera_ops::surface::{self, Hints};

pub fn span() -> Span {
    Span::new(ItemId(0), 1, 2)
}

pub fn e(kind: TKind, ty: Ty) -> TExpr {
    TExpr { kind, ty, span: span() }
}

pub fn tensor(shape: &[i64]) -> Ty {
    let dim = |&n: &i64| match n {
        -1 => Size::var(SizeVar { id: 7, name: "N".into(), rigid: false, natural: true, each: false }),
        n => Size::constant(n),
    };
    Ty::Tensor(TensorType::new(shape.iter().map(dim).collect(), DType::F32))
}

pub fn op(name: &str, args: Vec<TExpr>, ty: Ty) -> TExpr {
    let def = surface::find(name).unwrap_or_else(|| panic!("there is no operator `{name}`"));
    let mut all: Vec<OpArg> = args.into_iter().map(OpArg::Value).collect();
    all.resize_with(def.params.len(), || OpArg::Default);
    e(TKind::Op { def, args: all, hints: Hints::default(), checks: vec![] }, ty)
}

pub fn local(n: u32, ty: Ty) -> TExpr {
    e(TKind::Local(LocalId(n)), ty)
}

pub fn global(n: u32, ty: Ty) -> TExpr {
    e(TKind::Global(GlobalId(n)), ty)
}

pub fn var(name: &str, ty: Ty) -> Variable {
    Variable { name: name.into(), ty, span: span(), compares: false }
}

pub fn set(g: u32, e: TExpr) -> TStmt {
    TStmt::SetGlobal(GlobalId(g), e)
}

pub fn print(values: Vec<TExpr>) -> TStmt {
    let text = |t: &str| e(TKind::Str(t.into()), Ty::Str);
    let args = [vec![text(" "), text("\n")], values].concat();
    TStmt::Expr(e(TKind::Builtin { name: Builtin::print, args }, Ty::None))
}

pub fn function(name: &str, params: Vec<Variable>, locals: Vec<Variable>, ret: Ty, body: Vec<TStmt>) -> FnInst {
    FnInst {
        kept: vec![],
        name: name.into(),
        captures: vec![],
        params: (0..params.len() as u32).map(LocalId).collect(),
        locals: [params, locals].concat(),
        size_binds: vec![],
        ret,
        body,
        effect: Effect::Graph,
        policy: Policy::default(),
        hints: None,
        budget: None,
        kernel: false,
        program: None,
        backward: None,
        span: span(),
    }
}

pub fn program(globals: Vec<Variable>, mut insts: Vec<FnInst>, body: Vec<TStmt>) -> Program {
    let mut main = function("main", vec![], vec![], Ty::None, body);
    main.effect = Effect::Host { why: "prints".into(), span: span(), by_data: false };
    insts.push(main);
    Program { entry: Some(InstId(insts.len() as u32 - 1)), insts, globals }
}

pub fn arith(op: BinOp, left: TExpr, right: TExpr) -> TExpr {
    let ty = left.ty.clone();
    e(TKind::Arith { op, left: Box::new(left), right: Box::new(right), int_operands: false }, ty)
}

/// `x = zeros; w = zeros; lr = 0.1; for …: h = x @ w; g = x + h; w = w - g * lr; lr = lr * 0.5; print(w)`
pub fn training() -> Program {
    let t = || tensor(&[3, 3]);
    let (x, w, h, g, lr) = (0, 1, 2, 3, 4);
    let globals = vec![var("x", t()), var("w", t()), var("h", t()), var("g", t()), var("lr", Ty::Float)];
    let step = vec![
        set(h, op("matmul", vec![global(x, t()), global(w, t())], t())),
        set(g, op("add", vec![global(x, t()), global(h, t())], t())),
        set(w, op("sub", vec![global(w, t()), op("mul", vec![global(g, t()), global(lr, Ty::Float)], t())], t())),
        set(lr, arith(BinOp::Mul, global(lr, Ty::Float), e(TKind::Float(0.5), Ty::Float))),
    ];
    let shape = || e(TKind::Tuple(vec![e(TKind::Int(3), Ty::int_of(3)), e(TKind::Int(3), Ty::int_of(3))]), Ty::None);
    let loops = TStmt::ForRange {
        var: LocalId(0),
        start: e(TKind::Int(0), Ty::int()),
        stop: e(TKind::Int(10), Ty::int()),
        step: e(TKind::Int(1), Ty::int()),
        body: step,
        span: span(),
    };
    let mut p = program(
        globals,
        vec![],
        vec![
            set(x, op("zeros", vec![shape()], t())),
            set(w, op("zeros", vec![shape()], t())),
            set(lr, e(TKind::Float(0.1), Ty::Float)),
            loops,
            print(vec![global(w, t())]),
        ],
    );
    p.insts[0].locals.push(var("i", Ty::int()));
    p
}
