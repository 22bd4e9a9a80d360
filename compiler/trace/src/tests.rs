//! Traced graphs, interpreted.

use super::{InputSource, RegionArg, Template, Traced, trace};
use std::sync::Arc;
use tessera_base::BinOp;
use tessera_base::{Code, DType, Size, TensorType};
use tessera_core::build::*;
use tessera_core::ir::*;
use tessera_core::ty::{StructTy, Ty};
use tessera_lower::{Options, lower};
use tessera_ops::prim::Prim;

fn f32s(shape: &[u64]) -> RegionArg {
    RegionArg::Tensor { dtype: DType::F32, shape: shape.to_vec(), layout: Default::default() }
}

/// The graph is well formed.
fn sound(t: &Traced) {
    assert_eq!(tessera_ir::verify::verify(&t.graph), Vec::<String>::new());
}

fn ints(n: i64) -> Ty {
    Ty::Tensor(TensorType::new(vec![Size::constant(n)], DType::I64))
}

fn int(n: i64) -> TExpr {
    e(TKind::Int(n), Ty::int())
}

/// The value of the printed expression: shape and elements as f64.
fn run(
    globals: Vec<Variable>,
    insts: Vec<FnInst>,
    value: TExpr,
    args: &[(RegionArg, Vec<f64>)],
) -> (Vec<u64>, Vec<f64>) {
    let p = program(globals, insts, vec![print(vec![value])]);
    let lowered = lower(&p, Options::default());
    assert_eq!(lowered.regions.len(), 1);
    let concrete: Vec<RegionArg> = args.iter().map(|a| a.0.clone()).collect();
    let traced = trace(&p, &lowered.regions[0], &concrete).unwrap_or_else(|d| panic!("{d:#?}"));
    sound(&traced);
    let inputs: Vec<Vec<u8>> = traced
        .inputs
        .iter()
        .map(|source| match source {
            InputSource::Tensor(leaf) => {
                let (arg, values) = &args[*leaf as usize];
                let RegionArg::Tensor { dtype, .. } = arg else { panic!("{arg:?}") };
                values.iter().flat_map(|&v| bytes(v, *dtype)).collect()
            }
            InputSource::Scalar(e) => {
                let value = e.eval(&|leaf| args[leaf as usize].0.scalar().unwrap()).unwrap();
                value.bits().to_le_bytes()[..value.kind().dtype().bytes()].to_vec()
            }
        })
        .collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let outputs = tessera_ir::interpret::run(&traced.graph, &inputs).unwrap_or_else(|s| panic!("{}", s.error.message));
    let Template::Output(n) = traced.results[0] else { panic!("{:?}", traced.results) };
    let ty = traced.graph.ty(traced.graph.outputs[n as usize]);
    (ty.shape.clone(), outputs[n as usize].chunks(ty.dtype.bytes()).map(|b| number(b, ty.dtype)).collect())
}

fn bytes(v: f64, dtype: DType) -> Vec<u8> {
    match dtype {
        DType::F32 => (v as f32).to_le_bytes().to_vec(),
        _ => (v as i64).to_le_bytes().to_vec(),
    }
}

fn number(b: &[u8], dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::from_le_bytes(b.try_into().unwrap())),
        DType::I64 => i64::from_le_bytes(b.try_into().unwrap()) as f64,
        other => panic!("{other}"),
    }
}

fn iota(shape: &[u64]) -> (RegionArg, Vec<f64>) {
    let n: u64 = shape.iter().product();
    (f32s(shape), (0..n).map(|i| i as f64).collect())
}

/// `def f(x, t, n): x[index] = value; return x`, on x = iota(shape), t = [2, 0], n = -1.
fn assigned(shape: &[i64], index: Vec<IndexPart>, value: TExpr) -> Vec<f64> {
    let t = tensor(shape);
    let place = TLvalue { root: TRoot::Local(LocalId(0)), steps: vec![] };
    let body = vec![
        TStmt::Mutate { place, change: TChange::TensorSet { of: t.clone(), index, value }, span: span() },
        TStmt::Return(Some(local(0, t.clone()))),
    ];
    let params = vec![var("x", t.clone()), var("t", ints(2)), var("n", Ty::int())];
    let f = function("f", params, vec![], t.clone(), body);
    let globals = vec![var("x", t.clone()), var("t", ints(2)), var("n", Ty::int())];
    let args = vec![global(0, t.clone()), global(1, ints(2)), global(2, Ty::int())];
    let call = e(TKind::Call { inst: InstId(0), callee: None, args }, t);
    let sizes: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
    let positions =
        (RegionArg::Tensor { dtype: DType::I64, shape: vec![2], layout: Default::default() }, vec![2.0, 0.0]);
    run(globals, vec![f], call, &[iota(&sizes), positions, (RegionArg::Int(-1), vec![])]).1
}

#[test]
fn parts_of_tensors_are_written() {
    let n = || IndexPart::Int(local(2, Ty::int()));
    let t = || IndexPart::Tensor(local(1, ints(2)));
    let nine = || e(TKind::Float(9.0), Ty::Float);
    let every = |step| IndexPart::Slice { low: None, high: None, step: Some(int(step)) };
    assert_eq!(assigned(&[3, 2], vec![IndexPart::Int(int(-2)), IndexPart::Whole(1)], nine()), [0., 1., 9., 9., 4., 5.]);
    assert_eq!(assigned(&[3, 2], vec![every(2), IndexPart::Int(int(1))], nine()), [0., 9., 2., 3., 4., 9.]);
    assert_eq!(assigned(&[3, 2], vec![n(), IndexPart::Whole(1)], nine()), [0., 1., 2., 3., 9., 9.]);
    assert_eq!(assigned(&[4, 2], vec![every(-3), n()], nine()), [0., 9., 2., 3., 4., 5., 6., 9.]);
    assert_eq!(assigned(&[3, 2], vec![t(), IndexPart::Whole(1)], nine()), [9., 9., 2., 3., 9., 9.]);
    assert_eq!(assigned(&[2, 3], vec![IndexPart::Int(int(1)), t()], nine()), [0., 1., 2., 9., 4., 9.]);
    assert_eq!(assigned(&[3, 3], vec![t(), t()], nine()), [9., 1., 2., 3., 4., 5., 6., 7., 9.]);
    assert_eq!(assigned(&[2, 3], vec![IndexPart::Whole(1), t()], nine()), [9., 1., 9., 9., 4., 9.]);
    // The value is a row that broadcasts, in the order of the positions.
    let row =
        op("cast", vec![local(1, ints(2)), e(TKind::DType(DType::F32), Ty::DType(Some(DType::F32)))], tensor(&[2]));
    assert_eq!(assigned(&[2, 3], vec![IndexPart::Whole(1), t()], row), [0., 1., 2., 0., 4., 2.]);
}

/// `def step(c, x): return c + x, c * x`, `op.scan(step, zeros(2), x)` with x of `n` rows.
fn scanned(n: i64, field: u32) -> (Vec<u64>, Vec<f64>) {
    let row = || tensor(&[2]);
    let pair = Ty::Tuple(vec![row(), row()]);
    let both = vec![
        op("add", vec![local(0, row()), local(1, row())], row()),
        op("mul", vec![local(0, row()), local(1, row())], row()),
    ];
    let body = vec![TStmt::Return(Some(e(TKind::Tuple(both), pair.clone())))];
    let f = function("step", vec![var("c", row()), var("x", row())], vec![], pair, body);
    let x = tensor(&[n, 2]);
    let shape = e(TKind::Tuple(vec![int(2)]), Ty::None);
    let init = op("ones", vec![shape], row());
    let result = Ty::Tuple(vec![row(), x.clone()]);
    let scan = e(
        TKind::Scan { inst: InstId(0), callee: None, init: Box::new(init), xs: Box::new(global(0, x.clone())) },
        result,
    );
    let value = e(TKind::Field(Box::new(scan), field), x.clone());
    run(vec![var("x", x)], vec![f], value, &[iota(&[n as u64, 2])])
}

#[test]
fn a_scan_is_a_loop_or_written_out_with_the_same_result() {
    let expected = |n: usize| {
        let (mut c, mut ys) = ([1.0, 1.0], vec![]);
        for i in 0..n {
            let x = [2.0 * i as f64, 2.0 * i as f64 + 1.0];
            ys.extend([c[0] * x[0], c[1] * x[1]]);
            c = [c[0] + x[0], c[1] + x[1]];
        }
        (c.to_vec(), ys)
    };
    for n in [3, 7] {
        let (carry, ys) = expected(n);
        assert_eq!(scanned(n as i64, 0), (vec![2], carry));
        assert_eq!(scanned(n as i64, 1), (vec![n as u64, 2], ys));
    }
}

/// `def body(i, c): return c + x[i] * i`, `op.fori(lo, hi, body, c)` with x captured.
#[test]
fn a_counted_loop_indexes_with_its_counter() {
    let (x, row) = (|| tensor(&[9, 2]), || tensor(&[2]));
    let index = vec![IndexPart::Int(local(1, Ty::int())), IndexPart::Whole(1)];
    let read = e(TKind::TensorIndex { base: Box::new(local(0, x())), index, checks: vec![] }, row());
    let term = op("mul", vec![read, local(1, Ty::int())], row());
    let body = vec![TStmt::Return(Some(op("add", vec![local(2, row()), term], row())))];
    let mut f = function("body", vec![var("x", x()), var("i", Ty::int()), var("c", row())], vec![], row(), body);
    f.captures = vec![LocalId(0)];
    f.params = vec![LocalId(1), LocalId(2)];
    for (low, high) in [(1, 4), (1, 9)] {
        let init = op("zeros", vec![e(TKind::Tuple(vec![int(2)]), Ty::None)], row());
        let callee = e(TKind::Closure { captures: vec![global(0, x())] }, Ty::Tuple(vec![x()]));
        let fori = e(
            TKind::Fori {
                inst: InstId(0),
                callee: Some(Box::new(callee)),
                low: Box::new(int(low)),
                high: Box::new(int(high)),
                init: Box::new(init),
            },
            row(),
        );
        let got = run(vec![var("x", x())], vec![f.clone()], fori, &[iota(&[9, 2])]);
        let want = |k: i64| (low..high).map(|i| ((2 * i + k) * i) as f64).sum::<f64>();
        assert_eq!(got, (vec![2], vec![want(0), want(1)]));
    }
}

#[test]
fn structs_come_back_with_scalars_that_need_no_new_graph() {
    let t = || tensor(&[2]);
    let fields = vec![("w".into(), t()), ("step".into(), Ty::int()), ("rate".into(), Ty::Float)];
    let state = Ty::Struct(Arc::new(StructTy { name: "State".into(), item: 0, fields }));
    let field = |n, ty| e(TKind::Field(Box::new(local(0, state.clone())), n), ty);
    let next = vec![
        op("mul", vec![field(0, t()), field(2, Ty::Float)], t()),
        arith(BinOp::Add, field(1, Ty::int()), int(1)),
        arith(BinOp::Mul, field(2, Ty::Float), e(TKind::Float(0.5), Ty::Float)),
    ];
    let body = vec![TStmt::Return(Some(e(TKind::Struct(next), state.clone())))];
    let f = function("update", vec![var("s", state.clone())], vec![], state.clone(), body);
    let call = e(TKind::Call { inst: InstId(0), callee: None, args: vec![global(0, state.clone())] }, state.clone());
    let p = program(vec![var("s", state.clone())], vec![f], vec![set(0, call), print(vec![global(0, state)])]);
    let lowered = lower(&p, Options::default());
    let arg = RegionArg::Record(vec![f32s(&[2]), RegionArg::Int(41), RegionArg::Float(0.5)]);
    let traced = trace(&p, &lowered.regions[0], &[arg]).unwrap();
    sound(&traced);
    assert!(traced.guards.is_empty());
    let Template::Record(parts) = &traced.results[0] else { panic!("{:?}", traced.results) };
    let leaf = |n: u32| match n {
        1 => super::scalar::Known::Int(99),
        _ => super::scalar::Known::Float(0.5),
    };
    let Template::Scalar(step) = &parts[1] else { panic!("{parts:?}") };
    assert_eq!(step.eval(&leaf).ok(), Some(super::scalar::Known::Int(100)));
    assert_eq!(parts[0], Template::Output(0));
}

#[test]
fn lists_and_loops_over_them_are_unrolled() {
    let t = || tensor(&[2]);
    let list = Ty::List(Box::new(t()));
    let add = TStmt::Set(LocalId(1), op("add", vec![local(1, t()), local(2, t())], t()));
    let body = vec![
        TStmt::Set(LocalId(1), e(TKind::Index(Box::new(local(0, list.clone())), Box::new(int(0))), t())),
        TStmt::ForEach { var: LocalId(2), iter: local(0, list.clone()), body: vec![add], span: span() },
        TStmt::Return(Some(local(1, t()))),
    ];
    let f = function("total", vec![var("xs", list.clone())], vec![var("s", t()), var("x", t())], t(), body);
    let call = e(TKind::Call { inst: InstId(0), callee: None, args: vec![global(0, list.clone())] }, t());
    let p = program(vec![var("xs", list)], vec![f], vec![print(vec![call])]);
    let lowered = lower(&p, Options::default());
    let traced = trace(&p, &lowered.regions[0], &[RegionArg::List(vec![f32s(&[2]), f32s(&[2]), f32s(&[2])])]).unwrap();
    sound(&traced);
    assert_eq!(traced.inputs.len(), 3);
    let none = trace(&p, &lowered.regions[0], &[RegionArg::List(vec![])]).unwrap_err();
    assert_eq!(none[0].code, Code::E0703);
}

#[test]
fn endless_unrolling_is_refused() {
    let t = || tensor(&[2]);
    let call = e(TKind::Call { inst: InstId(0), callee: None, args: vec![local(0, t())] }, t());
    let f = function("f", vec![var("x", t())], vec![], t(), vec![TStmt::Return(Some(call))]);
    let outer = e(TKind::Call { inst: InstId(0), callee: None, args: vec![global(0, t())] }, t());
    let p = program(vec![var("x", t())], vec![f], vec![print(vec![outer])]);
    let lowered = lower(&p, Options::default());
    assert_eq!(trace(&p, &lowered.regions[0], &[f32s(&[2])]).unwrap_err()[0].code, Code::E0901);
}

#[test]
fn the_step_traces_with_a_dynamic_rate() {
    let p = training();
    let lowered = lower(&p, Options::default());
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
    let lowered = lower(&p, Options::default());
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
    let call = e(TKind::Call { inst: InstId(0), callee: None, args: vec![global(0, t()), global(1, Ty::int())] }, t());
    program(vec![var("x", t()), var("n", Ty::int())], vec![f], vec![print(vec![call])])
}

#[test]
fn a_call_is_inlined_and_guards_what_it_asked() {
    let p = unrolled();
    let lowered = lower(&p, Options::default());
    // The graph function itself needs no host code.
    assert_eq!(lowered.host.fns.len(), 1);
    let traced = trace(&p, &lowered.regions[0], &[f32s(&[5]), RegionArg::Int(3)]).unwrap();
    let adds = traced.graph.nodes.iter().filter(|n| n.prim == Prim::Map(tessera_ops::map::MapOp::add)).count();
    assert_eq!(adds, 3);
    assert_eq!(traced.guards.len(), 1);
    sound(&traced);
}

fn traced_index(shape: &[i64], index: Vec<IndexPart>, args: &[RegionArg]) -> Traced {
    let t = tensor(shape);
    let base = op("add", vec![global(0, t.clone()), e(TKind::Float(1.0), Ty::Float)], t.clone());
    let read = e(TKind::TensorIndex { base: Box::new(base), index, checks: vec![] }, tensor(&[1]));
    let ints = || Ty::Tensor(TensorType::new(vec![Size::constant(3)], DType::I64));
    let globals = vec![var("x", t), var("t", ints()), var("n", Ty::int())];
    let p = program(globals, vec![], vec![print(vec![read])]);
    let lowered = lower(&p, Options::default());
    let traced = trace(&p, &lowered.regions[0], args).unwrap();
    sound(&traced);
    traced
}

fn out_shape(t: &Traced) -> Vec<u64> {
    t.graph.ty(t.graph.outputs[0]).shape.clone()
}

#[test]
fn indices_give_numpys_shapes() {
    let x = f32s(&[4, 5, 6]);
    let positions = RegionArg::Tensor { dtype: DType::I64, shape: vec![3], layout: Default::default() };
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
    let basic =
        traced_index(&shape, vec![int(-1), IndexPart::NewAxis, slice(1, 3), whole(1)], std::slice::from_ref(&x));
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

/// Traces the only region of a program as text and interprets it on iota inputs.
fn region_of(text: &str, args: &[RegionArg]) -> Traced {
    let checked = tessera_infer::check_program(
        &mut tessera_infer::db::Database::default(),
        "t.tsr",
        text,
        &tessera_resolve::source::NoFiles,
    );
    let p = checked.program.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics));
    let lowered = lower(&p, Options::default());
    let last = lowered.regions.last().unwrap();
    let traced = trace(&p, last, args).unwrap_or_else(|d| panic!("{d:#?}"));
    sound(&traced);
    traced
}

fn loops(t: &Traced) -> usize {
    t.graph.nodes.iter().filter(|n| matches!(n.prim, Prim::Scan { .. })).count()
}

#[test]
fn long_loops_stay_loops() {
    let text = |body: &str| {
        format!(
            "def f(x):\n    k = 0\n    s = 1.0\n    for i in range(100):\n        {body}\n    return x * s + k\nprint(f(op.arange(3.0)))\n"
        )
    };
    let x = |body: &str| region_of(&text(body), &[]);
    let one = |t: &Traced| {
        let out = tessera_ir::interpret::run(&t.graph, &[]).unwrap_or_else(|s| panic!("{}", s.error.message));
        out[0].chunks(4).map(|b| number(b, DType::F32)).collect::<Vec<_>>()
    };
    let plain = x("x = x + 1.0");
    assert_eq!((loops(&plain), one(&plain)), (1, vec![100., 101., 102.]));
    // Scalars that the body changes are computed by the graph.
    let counted = x("x = x + i; k += 2; s = s * 1.0".replace("; ", "\n        ").as_str());
    assert_eq!((loops(&counted), one(&counted)), (1, vec![5150., 5151., 5152.]));
    // The number of the turn decides: unrolled.
    let decided = x("x = x + 1.0 if i % 2 == 0 else x");
    assert_eq!((loops(&decided), one(&decided)), (0, vec![50., 51., 52.]));
    let indexed = x("x[i % 3] = x[i % 3] + 1.0");
    assert_eq!((loops(&indexed), one(&indexed)), (1, vec![34., 34., 35.]));
}

#[test]
fn rows_of_a_long_tensor_are_a_loop() {
    let text = "def f(x):\n    s = op.zeros((2,))\n    for row in x:\n        s = s * 0.5 + row\n    return s\nprint(f(op.ones((64, 2))))\n";
    let t = region_of(text, &[]);
    assert_eq!(loops(&t), 1);
    let out = tessera_ir::interpret::run(&t.graph, &[]).unwrap_or_else(|s| panic!("{}", s.error.message));
    assert_eq!(number(&out[0][..4], DType::F32), 2.0);
}
