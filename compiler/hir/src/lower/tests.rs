//! Lowering and tracing of small typed programs, written out.

use super::typed::*;
use super::*;
use crate::thir::*;
use crate::trace::{InputSource, RegionArg, Template, trace};
use tessera_base::{DType, Size, TensorType};
use tessera_grammar::ast::BinOp;
use tessera_ir::host::{HExprKind, HStmt};
use tessera_ops::prim::Prim;

/// `x = zeros; w = zeros; lr = 0.1; for …: h = x @ w; g = x + h; w = w - g * lr; lr = lr * 0.5; print(w)`
fn training() -> Program {
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

#[test]
fn a_training_step_is_one_region_with_one_result() {
    let lowered = lower(&training());
    // The two zeros are one region; the step is another, which gives the new w only.
    assert_eq!(lowered.regions.len(), 2, "{:#?}", lowered.host.fns);
    assert_eq!(lowered.host.regions[0].results.len(), 2);
    assert_eq!(lowered.host.regions[1].results.len(), 1);
    assert_eq!(lowered.regions[1].params.len(), 3);
    assert!(lowered.host.globals.is_empty());
    let body = &lowered.host.fns[0].body;
    let Some(HStmt::ForRange { body, .. }) = body.iter().find(|s| matches!(s, HStmt::ForRange { .. })) else {
        panic!("{body:#?}")
    };
    // lr changes before the region runs, which still takes the old value; w moves in.
    assert!(matches!(&body[..], [HStmt::SetLocal(..), HStmt::SetLocal(..), HStmt::SetLocal(_, call)]
        if matches!(&call.kind, HExprKind::Region { args, .. }
            if args.iter().filter(|a| matches!(a.kind, HExprKind::Take(_))).count() == 1)), "{body:#?}");
}

#[test]
fn the_step_traces_with_a_dynamic_rate() {
    let p = training();
    let lowered = lower(&p);
    let args = [f32s(&[3, 3]), f32s(&[3, 3]), RegionArg::Float(0.1)];
    let traced = trace(&p, &lowered.regions[1], &args).unwrap();
    assert!(traced.guards.is_empty());
    assert_eq!(traced.results, vec![Template::Output(0)]);
    assert_eq!(traced.inputs.len(), 3);
    assert!(matches!(traced.inputs[2], InputSource::Scalar(_)));
    assert!(traced.graph.nodes.iter().any(|n| matches!(n.prim, Prim::Dot { .. })));
    sound(&traced);
}

#[test]
fn sizes_that_only_data_knows_fail_when_traced() {
    let t = || tensor(&[-1, 3]);
    let p = program(
        vec![var("x", t()), var("y", t())],
        vec![],
        vec![print(vec![op("matmul", vec![global(0, t()), global(1, t())], t())])],
    );
    let lowered = lower(&p);
    let err = trace(&p, &lowered.regions[0], &[f32s(&[2, 3]), f32s(&[4, 3])]).unwrap_err();
    assert_eq!(err[0].code, tessera_base::Code::E0708, "{err:?}");
}

/// `def f(x, n): for i in range(n): x = x + x; return x if n > 2 else x[0:1]`
fn unrolled() -> Program {
    let t = || tensor(&[-1]);
    let n = || local(1, Ty::int());
    let body = vec![
        TStmt::ForRange {
            var: LocalId(2),
            start: e(TKind::Int(0), Ty::int()),
            stop: n(),
            step: e(TKind::Int(1), Ty::int()),
            body: vec![TStmt::Set(LocalId(0), op("add", vec![local(0, t()), local(0, t())], t()))],
            span: span(),
        },
        TStmt::Return(Some(op("mul", vec![local(0, t()), n()], t()))),
    ];
    let f = function("f", vec![var("x", t()), var("n", Ty::int())], vec![var("i", Ty::int())], t(), body);
    let call = e(
        TKind::Call { inst: InstId(0), callee: None, args: vec![global(0, t()), global(1, Ty::int())] },
        t(),
    );
    program(vec![var("x", t()), var("n", Ty::int())], vec![f], vec![print(vec![call])])
}

#[test]
fn a_call_is_inlined_and_guards_what_it_asked() {
    let p = unrolled();
    let lowered = lower(&p);
    // The graph function itself needs no host code.
    assert_eq!(lowered.host.fns.len(), 1);
    let traced = trace(&p, &lowered.regions[0], &[f32s(&[5]), RegionArg::Int(3)]).unwrap();
    let adds = traced.graph.nodes.iter().filter(|n| n.prim == Prim::Map(tessera_ops::map::MapOp::add)).count();
    assert_eq!(adds, 3);
    assert_eq!(traced.guards.len(), 1);
    sound(&traced);
}

#[test]
fn a_slice_of_a_host_variable_is_no_region() {
    let t = || tensor(&[4, 4]);
    let row = e(
        TKind::TensorIndex {
            base: Box::new(global(0, t())),
            index: vec![IndexPart::Int(e(TKind::Int(1), Ty::int())), IndexPart::Whole(1)],
        },
        tensor(&[4]),
    );
    let p = program(vec![var("x", t())], vec![], vec![print(vec![row])]);
    assert!(lower(&p).regions.is_empty());
}

fn traced_index(shape: &[i64], index: Vec<IndexPart>, args: &[RegionArg]) -> crate::trace::Traced {
    let t = tensor(shape);
    let base = op("add", vec![global(0, t.clone()), e(TKind::Float(1.0), Ty::Float)], t.clone());
    let read = e(TKind::TensorIndex { base: Box::new(base), index }, tensor(&[1]));
    let ints = || Ty::Tensor(TensorType::new(vec![Size::constant(3)], DType::I64));
    let globals = vec![var("x", t), var("t", ints()), var("n", Ty::int())];
    let p = program(globals, vec![], vec![print(vec![read])]);
    let lowered = lower(&p);
    let traced = trace(&p, &lowered.regions[0], args).unwrap();
    sound(&traced);
    traced
}

fn out_shape(t: &crate::trace::Traced) -> Vec<u64> {
    t.graph.ty(t.graph.outputs[0]).shape.clone()
}

#[test]
fn indices_give_numpys_shapes() {
    let x = f32s(&[4, 5, 6]);
    let positions = RegionArg::Tensor { dtype: DType::I64, shape: vec![3] };
    let t = || IndexPart::Tensor(global(1, Ty::Tensor(TensorType::new(vec![Size::constant(3)], DType::I64))));
    let n = || IndexPart::Int(global(2, Ty::int()));
    let int = |n| IndexPart::Int(e(TKind::Int(n), Ty::int()));
    let slice = |low, high| IndexPart::Slice {
        low: Some(e(TKind::Int(low), Ty::int())),
        high: Some(e(TKind::Int(high), Ty::int())),
        step: None,
    };
    let whole = IndexPart::Whole;
    let shape = [4, 5, 6];
    let dynamic = traced_index(&shape, vec![n(), whole(2)], &[x.clone(), RegionArg::Int(-1)]);
    assert_eq!(out_shape(&dynamic), [5, 6]);
    assert!(dynamic.guards.is_empty());
    let basic = traced_index(&shape, vec![int(-1), IndexPart::NewAxis, slice(1, 3), whole(1)], std::slice::from_ref(&x));
    assert_eq!(out_shape(&basic), [1, 2, 6]);
    let one = traced_index(&shape, vec![whole(1), t(), whole(1)], &[x.clone(), positions.clone()]);
    assert_eq!(out_shape(&one), [4, 3, 6]);
    let apart = traced_index(&shape, vec![int(0), whole(1), t()], &[x.clone(), positions.clone()]);
    assert_eq!(out_shape(&apart), [3, 5]);
    let two = traced_index(&shape, vec![whole(1), t(), t()], &[x.clone(), positions.clone()]);
    assert_eq!(out_shape(&two), [4, 3]);
    let first = traced_index(&shape, vec![t(), slice(0, 2), t()], &[x, positions]);
    assert_eq!(out_shape(&first), [3, 2]);
}
