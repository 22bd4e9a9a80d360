//! Calls of tensor regions: words in, words out, who owns them.

use crate::build::*;
use std::sync::Arc;
use tessera_abi::rt::RtFn;
use tessera_base::DType;
use tessera_ir::host::*;
use tessera_runtime::context::{Context, RegionExec, RunError, Stop};
use tessera_runtime::host_value::HostValue;
use tessera_runtime::tensor::Tensor;
use tessera_runtime::value::{Header, TypeInfo, tensor};

/// Region 0 makes an f64 scalar tensor of a float; region 1 adds one to a tensor and says whether
/// it could have done so in place; region 2 fails.
struct Exec;

fn scalar(x: f64) -> Tensor {
    Tensor::from_bytes(DType::F64, &[], &x.to_le_bytes()).unwrap_or_else(|_| panic!())
}

fn read(t: &Tensor) -> f64 {
    f64::from_le_bytes(t.bytes().try_into().unwrap_or([0; 8]))
}

impl RegionExec for Exec {
    fn call(&mut self, region: u32, args: Vec<HostValue>, span: u32) -> Result<Vec<HostValue>, RunError> {
        match (region, &args[..]) {
            (0, [HostValue::Float(x)]) => Ok(vec![HostValue::Tensor(scalar(*x))]),
            (1, [HostValue::Tensor(t)]) => {
                let alone = Arc::strong_count(&t.storage) == 1;
                Ok(vec![HostValue::Tensor(scalar(read(t) + 1.0)), HostValue::Bool(alone)])
            }
            _ => Err(RunError::new(708, "sizes differ", span)),
        }
    }
}

fn run_regions(b: &Build) -> (String, Option<Stop>, Box<Context>) {
    let sink = Sink::default();
    let mut cx = Context::new(Box::new(sink.clone()), false);
    let infos: Vec<TypeInfo> = b.program.types.iter().map(info).collect();
    let types = cx.add_types(&infos);
    let ids = |list: &[TypeId]| list.iter().map(|t| types[t.0 as usize]).collect();
    let sigs = b.program.regions.iter().map(|r| (ids(&r.params), ids(&r.results))).collect();
    cx.set_regions(Box::new(Exec), sigs);
    let (text, stop) = run_in(&mut cx, &sink, &b.program);
    (text, stop, cx)
}

fn program() -> (Build, [RegionId; 3]) {
    let mut b = Build::new();
    let sig = |params: &[TypeId], results: &[TypeId]| RegionSig {
        name: "r".into(),
        params: params.into(),
        results: results.into(),
        span: span(0),
    };
    b.program.regions = vec![sig(&[FLOAT], &[TENSOR]), sig(&[TENSOR], &[TENSOR, BOOL]), sig(&[TENSOR], &[TENSOR])];
    (b, [RegionId(0), RegionId(1), RegionId(2)])
}

#[test]
fn a_value_that_is_not_read_again_may_be_reused() {
    let (mut b, [make, add, _]) = program();
    let (x, reused) = (b.local("x", TENSOR), b.local("reused", BOOL));
    let first = expr(HExprKind::Region { region: make, args: vec![float(1.0)] }, TENSOR);
    let mut body = vec![b.set(x, first)];
    for arg in [b.get(x), b.take(x)] {
        let targets = vec![Root::Local(x), Root::Local(reused)];
        body.push(HStmt::Region { region: add, args: vec![arg], targets, span: span(6) });
        for id in [x, reused] {
            let e = b.get(id);
            body.extend(b.print(e));
        }
    }
    b.entry(body);
    let (text, stop, _) = run_regions(&b);
    assert_eq!((text.as_str(), stop), ("2.0\nFalse\n3.0\nTrue\n", None));
}

#[test]
fn several_results_make_a_record() {
    let (mut b, [make, add, _]) = program();
    let pair = b.ty(HostType::Tuple(vec![TENSOR, BOOL]));
    let first = expr(HExprKind::Region { region: make, args: vec![float(1.0)] }, TENSOR);
    let both = expr(HExprKind::Region { region: add, args: vec![first] }, pair);
    let body = b.print(both);
    b.entry(body);
    assert_eq!(run_regions(&b).0, "(2.0, True)\n");
}

#[test]
fn a_failing_region_leaves_the_place_as_it_was() {
    let (mut b, [make, _, fail]) = program();
    let g = b.global("g", TENSOR);
    let first = expr(HExprKind::Region { region: make, args: vec![float(1.0)] }, TENSOR);
    let place = HLvalue { root: Root::Global(g), root_ty: TENSOR, steps: vec![] };
    b.entry(vec![HStmt::SetGlobal(g, first), mutate(place, Change::Region { region: fail, args: vec![] })]);
    let (_, stop, cx) = run_regions(&b);
    assert!(matches!(stop, Some(Stop::Error(e)) if e.code == 708 && e.span == 7));
    let word = cx.global(0).map_or(0, |g| g.2);
    // SAFETY: the global holds a live tensor.
    let (owners, value) = unsafe { ((*(word as *const Header)).count.get(), read(tensor(word))) };
    assert_eq!((value, owners), (1.0, 1));
}

#[test]
fn scalar_tensors_format_as_scalars() {
    let (mut b, [make, ..]) = program();
    let t = expr(HExprKind::Region { region: make, args: vec![float(2.0 / 3.0)] }, TENSOR);
    let spec = b.str(".3f");
    let ty = expr(HExprKind::TypeOf(TENSOR), INT);
    let body = b.print(rt(RtFn::format_value, vec![t, ty, spec], STR));
    b.entry(body);
    assert_eq!(run_regions(&b).0, "0.667\n");
}
