use super::*;
use crate::coerce::coerce;
use crate::sizes::SizeCx;
use tessera_base::{Code, DType, Diagnostic, ItemId, Size, TensorType};
use tessera_core::ir::{IndexPart, LocalId};
use tessera_grammar::ast::{BinOp, CmpOp, Name, UnOp};
use tessera_ops::surface;

fn at(n: usize) -> Span {
    Span::new(ItemId(0), n, n + 1)
}

/// A local of this type; `n` is its place.
fn local(ty: Ty, n: usize) -> TExpr {
    TExpr { kind: TKind::Local(LocalId(n as u32)), ty, span: at(n) }
}

fn t(shape: &[Size], dtype: DType, n: usize) -> TExpr {
    local(Ty::Tensor(TensorType::new(shape.to_vec(), dtype)), n)
}

fn c(n: i64) -> Size {
    Size::constant(n)
}

fn int(n: i64) -> TExpr {
    TExpr { kind: TKind::Int(n), ty: Ty::int_of(n), span: at(50) }
}

fn float(v: f64) -> TExpr {
    TExpr { kind: TKind::Float(v), ty: Ty::Float, span: at(51) }
}

fn text(s: &str) -> TExpr {
    TExpr { kind: TKind::Str(s.into()), ty: Ty::Str, span: at(52) }
}

fn seq(items: Vec<TExpr>) -> TExpr {
    let ty = Ty::Tuple(items.iter().map(|e| e.ty.clone()).collect());
    TExpr { kind: TKind::Tuple(items), ty, span: at(53) }
}

fn list(items: Vec<TExpr>) -> TExpr {
    let ty = Ty::List(Box::new(items.first().map_or(Ty::Unknown, |e| e.ty.clone())));
    TExpr { kind: TKind::List(items), ty, span: at(54) }
}

fn name(s: &str) -> Name {
    Name { text: s.into(), span: at(90) }
}

fn call(cx: &mut SizeCx, op: &str, given: Vec<(Option<&str>, TExpr)>) -> Result<TExpr, Diagnostic> {
    let Some(def) = surface::find(op) else { return Err(Diagnostic::new(Code::E0101, at(0), format!("no row {op}"))) };
    let given = given.into_iter().map(|(n, value)| Given { name: n.map(name), value }).collect();
    op_call(cx, def, given, at(60), at(61))
}

fn shown(result: Result<TExpr, Diagnostic>) -> String {
    match result {
        Ok(e) => e.ty.to_string(),
        Err(d) => format!("{}: {}", d.code, d.message),
    }
}

fn err(result: Result<TExpr, Diagnostic>) -> Result<Diagnostic, String> {
    result.err().ok_or_else(|| "accepted".into())
}

/// Every text of the diagnostic but its message.
fn texts(d: &Diagnostic) -> Vec<String> {
    let labels = d.labels.iter().map(|l| l.text.clone());
    [d.label.clone()]
        .into_iter()
        .chain(labels)
        .chain(d.notes.clone())
        .chain(d.fixes.iter().map(|f| f.title.clone()))
        .collect()
}

#[test]
fn contracted_sizes_show_both_full_types() -> Result<(), String> {
    let mut cx = SizeCx::new(0);
    let (b, h, d) = (cx.rigid("B"), cx.rigid("H"), cx.rigid("D"));
    let x = t(&[b, h.scale(4)], DType::F32, 1);
    let w = t(&[h.scale(3), d], DType::F32, 2);
    let e = err(binary(&mut cx, BinOp::MatMul, at(3), x, w, at(4)))?;
    assert_eq!(e.code, Code::E0201);
    assert_eq!(e.message, "the contracted sizes of `@` differ");
    assert_eq!(e.span, at(3));
    let labels: Vec<(&str, Span)> = e.labels.iter().map(|l| (l.text.as_str(), l.span)).collect();
    assert!(labels.iter().any(|(s, p)| s.contains("Tensor[B, 4*H, f32]") && *p == at(1)), "{labels:?}");
    assert!(labels.iter().any(|(s, p)| s.contains("Tensor[3*H, D, f32]") && *p == at(2)), "{labels:?}");
    assert_eq!(e.witness.as_deref(), Some("H=1 gives 4 and 3"));
    Ok(())
}

#[test]
fn dtypes_that_do_not_meet() -> Result<(), String> {
    let mut cx = SizeCx::new(0);
    let e = err(binary(&mut cx, BinOp::Mul, at(3), t(&[c(3)], DType::F16, 1), t(&[c(3)], DType::Bf16, 2), at(4)))?;
    assert_eq!(e.code, Code::E0206);
    let all = texts(&e);
    assert!(all.iter().any(|s| s.contains("Tensor[3, f16]")) && all.iter().any(|s| s.contains("Tensor[3, bf16]")));
    assert!(all.iter().any(|s| s.contains(".to(f32)")));
    Ok(())
}

#[test]
fn an_unknown_size_is_never_one() -> Result<(), String> {
    let mut cx = SizeCx::new(0);
    let (n, m) = (cx.rigid("N"), cx.rigid("M"));
    let e = err(binary(&mut cx, BinOp::Add, at(3), t(&[n], DType::F32, 1), t(&[m], DType::F32, 2), at(4)))?;
    assert_eq!(e.code, Code::E0203);
    assert_eq!(e.message, "sizes N and M do not broadcast (axis -1)");
    assert!(e.witness.is_some());
    let all = texts(&e);
    assert!(all.contains(&"Tensor[N, f32]".to_owned()) && all.contains(&"Tensor[M, f32]".to_owned()));
    Ok(())
}

#[test]
fn arithmetic_and_comparison() {
    let mut cx = SizeCx::new(0);
    let x = || t(&[c(2), c(3)], DType::Bf16, 1);
    let mut bin = |op, l, r| shown(binary(&mut cx, op, at(3), l, r, at(4)));
    assert_eq!(bin(BinOp::Mul, int(2), x()), "Tensor[2, 3, bf16]");
    assert_eq!(bin(BinOp::Add, x(), float(0.5)), "Tensor[2, 3, bf16]");
    assert_eq!(bin(BinOp::Add, x(), t(&[], DType::F32, 2)), "Tensor[2, 3, f32]");
    assert_eq!(bin(BinOp::Div, t(&[c(2)], DType::I64, 1), int(2)), "Tensor[2, f32]");
    assert_eq!(bin(BinOp::MatMul, x(), t(&[c(3), c(4)], DType::Bf16, 2)), "Tensor[2, 4, bf16]");
    assert_eq!(
        bin(BinOp::MatMul, x(), int(2)),
        "E0205: `@` multiplies two tensors, and these are Tensor[2, 3, bf16] and int"
    );
    assert_eq!(bin(BinOp::Add, x(), list(vec![int(1)])), "E0205: `+` does not take Tensor[2, 3, bf16] and list[int]");
    assert_eq!(bin(BinOp::Add, x(), local(Ty::AnyTensor, 2)), "E0213: the rank and dtype of this tensor are not known");
    let b = || t(&[c(3)], DType::Bool, 1);
    assert_eq!(bin(BinOp::BitAnd, b(), b()), "Tensor[3, bool]");
    assert_eq!(shown(compare(&mut cx, CmpOp::Lt, at(3), x(), int(1), at(4))), "Tensor[2, 3, bool]");
    assert_eq!(shown(compare(&mut cx, CmpOp::In, at(3), int(1), x(), at(4))), "E0205: `in` does not apply to tensors");
    assert_eq!(shown(unary(&mut cx, UnOp::Neg, at(3), x(), at(4))), "Tensor[2, 3, bf16]");
    assert_eq!(shown(unary(&mut cx, UnOp::Invert, at(3), b(), at(4))), "Tensor[3, bool]");
}

#[test]
fn every_operator_has_a_row() {
    use BinOp::*;
    let ops = [Add, Sub, Mul, Div, FloorDiv, Mod, Pow, MatMul, BitAnd, BitOr, BitXor, Shl, Shr];
    let cmps = [CmpOp::Eq, CmpOp::Ne, CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge];
    let names = ops.into_iter().flat_map(|op| [rows::binary(op, false), rows::binary(op, true)]);
    let names = names.chain(cmps.into_iter().filter_map(rows::comparison));
    let names =
        names.chain([rows::NEGATIVE, rows::invert(None), rows::invert(Some(DType::Bool)), "cast", "transpose", "full"]);
    let missing: Vec<&str> = names.filter(|n| surface::find(n).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn arguments_find_their_parameters() {
    let mut cx = SizeCx::new(0);
    let x = || t(&[c(2), c(6)], DType::F32, 1);
    assert_eq!(shown(call(&mut cx, "sum", vec![(None, x()), (Some("dim"), int(0))])), "Tensor[6, f32]");
    assert_eq!(
        shown(call(&mut cx, "sum", vec![(None, x()), (Some("axis"), seq(vec![int(0), int(1)]))])),
        "Tensor[f32]"
    );
    let bad = call(&mut cx, "sum", vec![(None, x()), (Some("axes"), int(0))]);
    assert_eq!(shown(bad.clone()), "E0105: `op.sum` has no parameter `axes`");
    let fix = bad.err().and_then(|d| d.fixes.first().map(|f| f.title.clone()));
    assert_eq!(fix.as_deref(), Some("did you mean `axis`?"));
    assert_eq!(shown(call(&mut cx, "matmul", vec![(None, x())])), "E0104: `op.matmul` needs the argument `y`");
    assert_eq!(
        shown(call(&mut cx, "softmax", vec![(None, float(1.0))])),
        "E0204: `x` of `op.softmax` must be a tensor, and this is `float`"
    );
    assert_eq!(
        shown(call(&mut cx, "sum", vec![(None, x()), (None, local(Ty::int(), 3))])),
        "E0213: `axis` of `op.sum` must be an axis that is known before the program runs"
    );
    assert_eq!(
        shown(call(&mut cx, "zeros", vec![(None, seq(vec![int(2), int(3)])), (Some("dtype"), text("bf16"))])),
        "Tensor[2, 3, bf16]"
    );
    assert_eq!(
        shown(call(&mut cx, "zeros", vec![(None, int(2)), (Some("dtype"), text("bf61"))])),
        "E0214: `bf61` is not a dtype"
    );
    let hints = vec![
        (None, x()),
        (None, t(&[c(6), c(2)], DType::F32, 2)),
        (Some("tile_shape"), seq(vec![int(128), int(128), int(64)])),
        (Some("accum_dtype"), text("fp32")),
    ];
    let e = call(&mut cx, "matmul", hints);
    assert!(matches!(&e, Ok(TExpr { kind: TKind::Op { hints, .. }, .. })
        if hints.tile_shape == Some(vec![128, 128, 64]) && hints.accum_dtype == Some(DType::F32)));
}

#[test]
fn methods_take_several_sizes_and_axes() {
    let mut cx = SizeCx::new(0);
    let x = || t(&[c(2), c(3), c(4)], DType::F32, 1);
    let mut go = |n: &str, given: Vec<TExpr>| {
        shown(method(&mut cx, x(), &name(n), given.into_iter().map(Given::positional).collect(), at(60)))
    };
    assert_eq!(go("reshape", vec![int(6), int(-1)]), "Tensor[6, 4, f32]");
    assert_eq!(go("transpose", vec![int(2), int(0), int(1)]), "Tensor[4, 2, 3, f32]");
    assert_eq!(go("to", vec![local(Ty::DType(Some(DType::Bf16)), 2)]), "Tensor[2, 3, 4, bf16]");
    assert_eq!(go("to", vec![text("f16")]), "Tensor[2, 3, 4, f16]");
    assert_eq!(go("tolist", vec![]), "list[list[list[float]]]");
    assert_eq!(go("item", vec![]), "E0204: `float` takes a tensor of one element");
    assert_eq!(go("reshpe", vec![]), "E0103: a tensor has no attribute `reshpe`");
    assert_eq!(go("reshape", vec![int(5), int(3)]).split(':').next(), Some("E0208"));
}

#[test]
fn a_reshape_keeps_the_elements() -> Result<(), String> {
    let mut cx = SizeCx::new(0);
    let x = t(&[c(2), c(6)], DType::F32, 1);
    let e = err(call(&mut cx, "reshape", vec![(None, x), (None, seq(vec![int(5), int(3)]))]))?;
    assert_eq!(e.code, Code::E0208);
    assert!(texts(&e).iter().any(|s| s.contains("Tensor[2, 6, f32]")));
    assert!(
        format!("{} {:?}", e.message, texts(&e)).contains("12")
            && format!("{} {:?}", e.message, texts(&e)).contains("15")
    );
    Ok(())
}

#[test]
fn lists_of_tensors_and_nested_numbers() {
    let mut cx = SizeCx::new(0);
    let x = || t(&[c(2)], DType::F32, 1);
    assert_eq!(shown(call(&mut cx, "stack", vec![(None, list(vec![x(), x(), x()]))])), "Tensor[3, 2, f32]");
    let many = local(Ty::List(Box::new(x().ty)), 5);
    assert_eq!(shown(call(&mut cx, "stack", vec![(None, many.clone())])), "Tensor[n, 2, f32]");
    assert_eq!(shown(call(&mut cx, "concat", vec![(None, many)])), "Tensor[n_2, f32]");
    let row = |a, b| list(vec![int(a), int(b)]);
    let mut array =
        |rows: Vec<TExpr>| shown(op_call(&mut cx, &ARRAY, vec![Given::positional(list(rows))], at(60), at(61)));
    assert_eq!(array(vec![row(1, 2), list(vec![int(3)])]), "E0204: this row has 1 element, and the first one has 2");
    assert_eq!(array(vec![row(1, 2), row(3, 4)]), "Tensor[2, 2, i64]");
    assert_eq!(array(vec![float(0.5), int(1)]), "Tensor[2, f32]");
    assert_eq!(array(vec![]), "Tensor[0, f32]");
}

/// Gives back what it is told.
static ARRAY: surface::OpDef = surface::OpDef {
    name: "array",
    known_as: &[],
    method: false,
    doc: "",
    signature: "",
    params: &[surface::Param {
        name: "values",
        kind: surface::ParamKind::Nested,
        default: surface::Default::Required,
        keyword_only: false,
    }],
    mixed: surface::Mixed::Nothing,
    elementwise: false,
    infer: |_, args, _| match args {
        [surface::SymArg::Nested { shape, dtype }] => Ok(surface::OpTypes::One(TensorType::new(shape.clone(), *dtype))),
        other => Err(surface::OpError::new(Code::E0204, format!("{other:?}"))),
    },
    expand: |_, _, _| Ok(vec![]),
    settles: None,
    open_shape: None,
    unsupported: None,
};

fn at_index(cx: &mut SizeCx, x: TExpr, given: Vec<GivenIndex>) -> String {
    shown(index(cx, x, given, at(60)))
}

fn v(e: TExpr) -> GivenIndex {
    GivenIndex::Value(e)
}

fn sl(low: Option<TExpr>, high: Option<TExpr>) -> GivenIndex {
    GivenIndex::Slice { low, high, step: None, span: at(70) }
}

#[test]
fn indices_give_the_shapes_that_numpy_gives() {
    let mut cx = SizeCx::new(0);
    let n = cx.rigid("N");
    let x = || t(&[c(2), c(3), c(4)], DType::F32, 1);
    let i = |shape: &[Size]| v(t(shape, DType::I64, 2));
    let cx = &mut cx;
    assert_eq!(at_index(cx, x(), vec![v(int(1)), sl(None, None), v(int(-1))]), "Tensor[3, f32]");
    assert_eq!(at_index(cx, x(), vec![v(int(0)), sl(Some(int(1)), None)]), "Tensor[2, 4, f32]");
    assert_eq!(
        at_index(cx, x(), vec![GivenIndex::Ellipsis(at(9)), GivenIndex::NewAxis(at(9)), v(int(0))]),
        "Tensor[2, 3, 1, f32]"
    );
    assert_eq!(at_index(cx, x(), vec![i(&[c(5)]), i(&[c(5)])]), "Tensor[5, 4, f32]");
    assert_eq!(at_index(cx, x(), vec![sl(None, None), i(&[c(5), c(1)]), i(&[c(7)])]), "Tensor[2, 5, 7, f32]");
    assert_eq!(at_index(cx, x(), vec![i(&[c(5)]), sl(None, None), i(&[c(5)])]), "Tensor[5, 3, f32]");
    assert_eq!(at_index(cx, x(), vec![v(int(0)), sl(None, None), i(&[c(5)])]), "Tensor[5, 3, f32]");
    let y = || t(&[n.clone(), c(4)], DType::F32, 1);
    assert_eq!(at_index(cx, y(), vec![sl(Some(int(1)), None)]), "Tensor[max(N - 1, 0), 4, f32]");
    assert_eq!(at_index(cx, y(), vec![sl(Some(local(Ty::int(), 3)), None)]), "Tensor[n, 4, f32]");
    let mask = v(t(&[], DType::Bool, 2));
    assert_eq!(at_index(cx, x(), vec![mask]), "E0690: indexing with a single bool is not supported");
    assert_eq!(at_index(cx, x(), vec![v(int(2))]), "E0211: index 2 is out of range for dim 0 of size 2");
}

#[test]
fn too_many_indices() -> Result<(), String> {
    let mut cx = SizeCx::new(0);
    let x = t(&[c(2), c(3)], DType::F32, 1);
    let e = err(index(&mut cx, x, vec![v(int(0)), v(int(1)), v(int(2))], at(60)))?;
    assert_eq!(e.code, Code::E0211);
    assert_eq!(e.message, "3 indices for a tensor of rank 2");
    assert!(texts(&e).contains(&"Tensor[2, 3, f32]".to_owned()));
    assert!(texts(&e).contains(&"this tensor takes at most 2 indices".to_owned()));
    Ok(())
}

#[test]
fn slots_take_what_broadcasts_and_fits() {
    let mut cx = SizeCx::new(0);
    let base = t(&[c(2), c(3)], DType::I32, 1).ty;
    let mut go = |given: Vec<GivenIndex>, value: TExpr| match assign_index(&mut cx, &base, at(1), given, &value, at(60))
    {
        Ok(written) => format!("{} parts", written.parts.len()),
        Err(d) => format!("{}: {}", d.code, d.message),
    };
    assert_eq!(go(vec![sl(None, None)], int(5)), "2 parts");
    assert_eq!(go(vec![v(int(0))], t(&[c(3)], DType::I8, 2)), "2 parts");
    assert_eq!(go(vec![v(int(0))], t(&[c(3)], DType::F32, 2)), "E0206: f32 values do not fit a tensor of i32 exactly");
    assert_eq!(go(vec![v(int(0))], float(0.5)), "E0206: a float does not fit a tensor of i32");
    assert_eq!(
        go(vec![v(int(0))], t(&[c(2)], DType::I32, 2)),
        "E0203: dim 0 of the value is 2, and the slot has 3 there"
    );
}

#[test]
fn whole_dims_are_written_out() -> Result<(), Diagnostic> {
    let mut cx = SizeCx::new(0);
    let e = index(&mut cx, t(&[c(2), c(3), c(4)], DType::F32, 1), vec![v(int(0))], at(60))?;
    let TKind::TensorIndex { index, .. } = e.kind else { return Ok(()) };
    assert!(matches!(index[..], [IndexPart::Int(_), IndexPart::Whole(2)]));
    Ok(())
}

#[test]
fn attributes() {
    let mut cx = SizeCx::new(0);
    let n = cx.rigid("N");
    let x = || t(&[n.clone(), c(3)], DType::F32, 1);
    let mut go = |s: &str| attr(&mut cx, x(), &name(s), at(60)).map(|e| e.ty);
    let sizes = vec![Ty::Int(Some(n.clone())), Ty::int_of(3)];
    assert_eq!(go("shape"), Ok(Ty::Tuple(sizes)));
    assert_eq!(go("ndim"), Ok(Ty::int_of(2)));
    assert_eq!(go("size"), Ok(Ty::Int(Some(n.scale(3)))));
    assert_eq!(go("dtype"), Ok(Ty::DType(Some(DType::F32))));
    assert_eq!(shown(attr(&mut cx, x(), &name("T"), at(60))), "Tensor[3, N, f32]");
    let d = attr(&mut cx, x(), &name("shap"), at(60)).err();
    assert_eq!(d.map(|d| d.fixes[0].title.clone()), Some("did you mean `shape`?".into()));
    let d = attr(&mut cx, x(), &name("detach"), at(60)).err();
    assert_eq!(d.map(|d| d.fixes[0].title.clone()), Some("`autodiff.stop_gradient(x)`".into()));
}

#[test]
fn one_element_is_a_condition() {
    assert_eq!(shown(truth(t(&[], DType::Bool, 1))), "bool");
    assert_eq!(shown(truth(t(&[c(1), c(1)], DType::F32, 1))), "bool");
    assert_eq!(shown(truth(t(&[c(2)], DType::Bool, 1))), "E0204: a condition takes a tensor of one element");
    assert_eq!(shown(to_float(t(&[], DType::F32, 1), at(2))), "float");
}

#[test]
fn literals_convert_to_declared_types() -> Result<(), String> {
    let mut cx = SizeCx::new(0);
    let floats = Ty::List(Box::new(Ty::Float));
    let e = coerce(&mut cx, list(vec![int(1), float(2.5)]), &floats, "x", at(9)).map_err(|m| format!("{m:?}"))?;
    assert_eq!(e.ty, floats);
    let zero = Ty::Tensor(TensorType::new(vec![], DType::F32));
    let e = coerce(&mut cx, int(1), &zero, "x", at(9)).map_err(|m| format!("{m:?}"))?;
    assert_eq!(e.ty, zero);
    let any = coerce(&mut cx, local(Ty::AnyTensor, 1), &zero, "x", at(9)).map_err(|m| format!("{m:?}"))?;
    assert!(matches!(any.kind, TKind::Check { .. }));
    let m = coerce(&mut cx, list(vec![text("a")]), &floats, "x", at(9)).err().ok_or("accepted")?;
    assert_eq!(m.path, ["element 0"]);
    Ok(())
}
