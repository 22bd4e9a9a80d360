use super::*;
use crate::sizes::SizeCx;
use std::collections::BTreeSet;
use tessera_base::{Code, DType, Diagnostic, ItemId, Size, Span, TensorType};
use tessera_core::ty::Ty;

fn t(shape: &[&Size], dtype: DType) -> Ty {
    Ty::Tensor(TensorType::new(shape.iter().map(|s| (*s).clone()).collect(), dtype))
}

fn c(n: i64) -> Size {
    Size::constant(n)
}

fn vars(tys: &[Ty]) -> BTreeSet<tessera_base::SizeVar> {
    tys.iter().flat_map(tessera_core::sizes::vars_of).collect()
}

fn at(n: usize) -> Span {
    Span::new(ItemId(0), n, n + 1)
}

fn call(cx: &mut SizeCx, params: &[Ty], args: &[Ty]) -> Result<Bindings, Diagnostic> {
    let spans: Vec<Span> = (0..args.len()).map(at).collect();
    let names: Vec<(std::sync::Arc<str>, Span)> =
        (0..params.len()).map(|i| (["x", "y", "z"][i].into(), at(10 + i))).collect();
    bind_signature(cx, &vars(params), params, args, &spans)
        .map_err(|p| param_mismatch_diagnostic(&p, "f", &names, &spans))
}

#[test]
fn a_matrix_is_no_vector() -> Result<(), String> {
    let mut cx = SizeCx::new(0);
    let n = cx.rigid("N");
    let d = call(&mut cx, &[t(&[&n], DType::F32)], &[t(&[&c(2), &c(2)], DType::F32)]).err().ok_or("accepted")?;
    assert_eq!(d.code, Code::E0207);
    assert_eq!(d.message, "the argument `x` of `f` has rank 2 where rank 1 is declared");
    assert_eq!(d.label, "this is Tensor[2, 2, f32]");
    assert_eq!(d.labels[0].text, "declared Tensor[N, f32]");
    assert!(d.fixes[0].title.contains("Tensor[..., N, f32]"));
    assert_eq!(d.notes, Vec::<String>::new());
    Ok(())
}

#[test]
fn sizes_of_a_signature_are_solved_for() -> Result<(), Diagnostic> {
    let mut cx = SizeCx::new(0);
    let (b, d) = (cx.rigid("B"), cx.rigid("D"));
    let params = [t(&[&b, &d.scale(4)], DType::F32), t(&[&d.scale(4), &d], DType::F32)];
    let got = call(&mut cx, &params, &[t(&[&c(2), &c(12)], DType::F32), t(&[&c(12), &c(3)], DType::F32)])?;
    assert_eq!(got.apply(&mut cx, &t(&[&b, &d], DType::F32)).to_string(), "Tensor[2, 3, f32]");
    // Only composites: linear.
    let got = call(&mut cx, &params[..1], &[t(&[&c(2), &c(12)], DType::F32)])?;
    assert_eq!(got.apply(&mut cx, &t(&[&d], DType::F32)).to_string(), "Tensor[3, f32]");
    // A recursive call binds the callee's N to an expression over the caller's own N.
    let got = call(&mut cx, &[t(&[&b], DType::F32)], &[t(&[&b.sub(&c(1))], DType::F32)])?;
    assert_eq!(got.apply(&mut cx, &t(&[&b.scale(2)], DType::F32)).to_string(), "Tensor[2*B - 2, f32]");
    Ok(())
}

#[test]
fn the_argument_that_fixed_a_size_is_shown() -> Result<(), String> {
    let mut cx = SizeCx::new(0);
    let n = cx.rigid("N");
    let params = [t(&[&n], DType::F32), t(&[&n], DType::F32)];
    let d = call(&mut cx, &params, &[t(&[&c(2)], DType::F32), t(&[&c(3)], DType::F32)]).err().ok_or("accepted")?;
    assert_eq!(d.code, Code::E0202);
    assert_eq!(d.message, "dim 0 of the argument `y` of `f` is 3 where 2 is declared");
    assert!(d.labels.iter().any(|l| l.text == "N is 2, from `x`" && l.span == at(0)));
    let d = call(&mut cx, &[t(&[&n.scale(4)], DType::F32)], &[t(&[&c(10)], DType::F32)]).err().ok_or("accepted")?;
    assert_eq!(d.message, "no `N` makes 4*N equal 10 in the argument `x` of `f`");
    Ok(())
}

#[test]
fn data_sizes_become_checks() -> Result<(), Diagnostic> {
    let mut cx = SizeCx::new(0);
    let (n, rows) = (cx.rigid("N"), cx.fresh("rows"));
    let params = [t(&[&n], DType::F32), t(&[&n], DType::F32)];
    let got = call(&mut cx, &params, &[t(&[&c(4)], DType::F32), t(&[&rows], DType::F32)])?;
    assert_eq!(got.coerces, [Coerce::None, Coerce::Sizes]);
    assert_eq!(cx.checks.len(), 1);
    let any = call(&mut cx, &params[..1], &[Ty::AnyTensor])?;
    assert_eq!(any.coerces, [Coerce::Check]);
    Ok(())
}

#[test]
fn a_rigid_result_must_hold_for_all_sizes() -> Result<(), String> {
    let mut cx = SizeCx::new(0);
    let n = cx.rigid("N");
    let m =
        assignable(&mut cx, &t(&[&n], DType::F32), &t(&[&n.scale(2)], DType::F32), at(0)).err().ok_or("accepted")?;
    let d = mismatch_diagnostic(&m, &Role::Returned { function: "f".into() }, at(0), Some(at(5)));
    assert_eq!(d.code, Code::E0202);
    assert_eq!(d.message, "dim 0 of the value returned from `f` is 2*N where N is declared");
    assert_eq!(d.witness.as_deref(), Some("N=1 gives 1 and 2"));
    Ok(())
}

#[test]
fn scalars_and_containers() {
    let mut cx = SizeCx::new(0);
    let mut go = |e: &Ty, f: &Ty| assignable(&mut cx, e, f, Span::NONE).map_err(|m| m.code());
    assert_eq!(go(&Ty::Float, &Ty::int()), Ok(Coerce::IntToFloat));
    assert_eq!(go(&Ty::int(), &Ty::Float), Err(Code::E0204));
    assert_eq!(go(&t(&[], DType::F32), &Ty::Float), Ok(Coerce::ScalarToTensor(DType::F32)));
    assert_eq!(go(&t(&[], DType::I64), &Ty::Float), Err(Code::E0204));
    assert_eq!(go(&t(&[], DType::F16), &t(&[], DType::F32)), Err(Code::E0206));
    let list = |t: Ty| Ty::List(Box::new(t));
    assert_eq!(go(&list(Ty::Float), &list(Ty::Unknown)), Ok(Coerce::None));
    assert_eq!(go(&list(Ty::Float), &list(Ty::int())), Err(Code::E0204));
    let pair = |a, b| Ty::Tuple(vec![a, b]);
    assert_eq!(
        go(&pair(Ty::Float, Ty::Str), &pair(Ty::int(), Ty::Str)),
        Ok(Coerce::Tuple(vec![Coerce::IntToFloat, Coerce::None]))
    );
}

#[test]
fn joins() {
    let mut cx = SizeCx::new(0);
    let (two, three) = (t(&[&c(2)], DType::F32), t(&[&c(3)], DType::F32));
    let mut go = |a: &Ty, b: &Ty, kind| join(&mut cx, a, b, kind, "x").map(|t| t.to_string());
    assert_eq!(go(&two, &three, JoinKind::Control).as_deref(), Some("Tensor[x, f32]"));
    assert_eq!(go(&Ty::int(), &Ty::Float, JoinKind::Control), None);
    assert_eq!(go(&Ty::int(), &Ty::Float, JoinKind::Elements).as_deref(), Some("float"));
    assert_eq!(go(&Ty::None, &Ty::Float, JoinKind::Control), None);
    assert_eq!(
        go(&Ty::List(Box::new(Ty::Unknown)), &Ty::List(Box::new(Ty::Str)), JoinKind::Control).as_deref(),
        Some("list[str]")
    );
    let d = join_diagnostic("`x`", at(0), (&Ty::int(), at(1)), (&Ty::Str, at(2)));
    assert_eq!(d.message, "`x` would have two types: `int` and `str`");
}

#[test]
fn leading_dims_are_free() -> Result<(), Diagnostic> {
    use tessera_core::ty::TensorPattern;
    let mut cx = SizeCx::new(0);
    let d = cx.rigid("D");
    let pattern = Ty::TensorPattern(TensorPattern {
        tail: vec![d.clone()],
        dtype: Some(DType::F32),
        sharding: Default::default(),
    });
    assert!(is_open(&pattern));
    let arg = t(&[&c(2), &c(1), &c(3)], DType::F32);
    let got = call(&mut cx, std::slice::from_ref(&pattern), std::slice::from_ref(&arg))?;
    assert_eq!(got.apply(&mut cx, &t(&[&d], DType::F32)).to_string(), "Tensor[3, f32]");
    assert_eq!(refine(&pattern, &arg).to_string(), "Tensor[2, 1, D, f32]");
    let e = call(&mut cx, &[pattern], &[t(&[], DType::F32)]).err();
    assert_eq!(
        e.map(|e| e.message),
        Some("the argument `x` of `f` has rank 0 where at least rank 1 is declared".into())
    );
    Ok(())
}

#[test]
fn the_field_that_differs_is_named() -> Result<(), String> {
    use tessera_core::ty::StructTy;
    let mut cx = SizeCx::new(0);
    let layer = |n: i64| {
        let fields = vec![("w".into(), t(&[&c(n)], DType::F32))];
        Ty::List(Box::new(Ty::Struct(std::sync::Arc::new(StructTy { name: "Layer".into(), item: 7, fields }))))
    };
    let m = assignable(&mut cx, &layer(2), &layer(3), at(0)).err().ok_or("accepted")?;
    let d = mismatch_diagnostic(&m, &Role::Bound { name: "layers".into() }, at(0), None);
    assert_eq!(d.message, "dim 0 of field `w` of the element of the value of `layers` is 3 where 2 is declared");
    assert!(
        d.notes
            .contains(&"field `w` of the element: Tensor[2, f32] is declared and Tensor[3, f32] is found".to_owned())
    );
    Ok(())
}

#[test]
fn sizes_that_only_the_result_has_come_from_data() -> Result<(), Diagnostic> {
    let mut cx = SizeCx::new(0);
    let (n, k) = (cx.rigid("N"), cx.rigid("K"));
    let params = [t(&[&n], DType::F32)];
    let all = vars(&[t(&[&n, &k], DType::F32)]);
    let got = bind_signature(&mut cx, &all, &params, &[t(&[&c(2)], DType::F32)], &[at(0)])
        .map_err(|p| param_mismatch_diagnostic(&p, "f", &[], &[]))?;
    assert_eq!(got.apply(&mut cx, &t(&[&n, &k, &k], DType::F32)).to_string(), "Tensor[2, k, k, f32]");
    Ok(())
}
