//! `x[index] = value`: what may be written into a slot of a tensor.

use super::broken;
use super::index::{GivenIndex, Indexed, Use, resolve};
use crate::sizes::SizeCx;
use tessera_base::{Code, DType, Diagnostic, Fix, Size, Span, TensorType, Verdict};
use tessera_core::ir::{IndexPart, TExpr};
use tessera_core::ty::Ty;

/// An index that is written to, and the sizes of its positions that must be equal, which only a run can tell. Whether what is written fits
/// is compared where it is written.
pub struct Written {
    pub parts: Vec<IndexPart>,
    pub checks: Vec<(Size, Size)>,
}

/// The index with whole dims written out, if `value` may be stored there: it broadcasts to the
/// indexed shape, and its dtype widens exactly into the slot's (or it is a Python scalar that
/// fits). `base` is the place that changes, `base_span` where it stands.
pub fn assign_index(
    cx: &mut SizeCx,
    base: &Ty,
    base_span: Span,
    given: Vec<GivenIndex>,
    value: &TExpr,
    span: Span,
) -> Result<Written, Diagnostic> {
    let Ty::Tensor(t) = base else {
        return Err(Diagnostic::new(Code::E0213, base_span, "the rank and dtype of this tensor are not known")
            .help("bind it to an annotated name: `x: Tensor[N, D, f32] = …`"));
    };
    let before = cx.checks.len();
    let Indexed { parts, shape, sharding, .. } =
        resolve(cx, t, base_span, given, Use::Write, span).map_err(|d| match d.code {
            // What is assigned to is no value that a call could take.
            Code::E0406 => Diagnostic {
                fixes: d
                    .fixes
                    .into_iter()
                    .map(|f| Fix { title: format!("before: {}", f.title), edits: vec![] })
                    .collect(),
                ..d
            },
            _ => d,
        })?;
    let checks = cx.checks_since(before);
    if broken(value) {
        return Ok(Written { parts, checks });
    }
    let slot = TensorType { shape, dtype: t.dtype, sharding };
    match &value.ty {
        Ty::Int(_) | Ty::Float | Ty::Bool => scalar_fits(t, value, base_span)?,
        Ty::Tensor(v) => {
            dtype_fits(t, v, value.span, base_span)?;
            broadcasts(cx, t, &slot, v, value.span, base_span)?;
            lies_alike(t, &slot, v, value.span, base_span)?;
        }
        Ty::AnyTensor => return Err(super::args::any_tensor(value)),
        other => {
            let d = Diagnostic::new(
                Code::E0204,
                value.span,
                format!("a tensor or a number is needed here, and this is `{other}`"),
            )
            .with_label(base_span, t.to_string());
            return Err(match other {
                Ty::List(_) | Ty::Tuple(_) => d.help("make a tensor of it: `op.array(…)`"),
                _ => d,
            });
        }
    }
    Ok(Written { parts, checks })
}

/// What is written lies as the slot does, or in full on every device, which costs nothing to split.
fn lies_alike(
    t: &TensorType,
    slot: &TensorType,
    v: &TensorType,
    span: Span,
    base_span: Span,
) -> Result<(), Diagnostic> {
    let Some(mesh) = &v.sharding.mesh else { return Ok(()) };
    let skip = slot.rank().saturating_sub(v.rank());
    let alike =
        (0..v.rank()).all(|i| v.sharding.axes(i).is_empty() || v.sharding.axes(i) == slot.sharding.axes(skip + i));
    if alike && v.sharding.partial == slot.sharding.partial && slot.sharding.mesh.as_ref() == Some(mesh) {
        return Ok(());
    }
    // In per-device code nothing moves: the place holds what differs as much.
    if v.sharding.owns().next().is_some() && slot.sharding.takes_own(&v.sharding) {
        return Ok(());
    }
    Err(Diagnostic::new(Code::E0404, span, "this lies over the mesh in another way than what it is written into")
        .here(format!("this is {v}"))
        .with_label(base_span, t.to_string())
        .help_about(
            "lay it out in the same way: `dist.shard({x}, spec)`; or take it off the mesh: `dist.gather({x})`",
            &[("x", span)],
        ))
}

fn scalar_fits(t: &TensorType, value: &TExpr, base_span: Span) -> Result<(), Diagnostic> {
    let Some(dtype) = t.dtype else { return Ok(()) };
    let fits = match value.ty {
        Ty::Bool => true,
        Ty::Int(_) => dtype != DType::Bool,
        _ => dtype.is_float() || dtype.is_complex(),
    };
    if fits {
        return Ok(());
    }
    let d = Diagnostic::new(Code::E0206, value.span, format!("a {} does not fit a tensor of {dtype}", value.ty))
        .with_label(base_span, t.to_string());
    Err(match value.ty {
        Ty::Float => {
            let help = "make the tensor one of floats (`{t}.to(f32)`), or drop the fraction: `int({x})`";
            d.help_about(help, &[("t", base_span), ("x", value.span)])
        }
        _ => d.help_about("write `True` or `False`, or compare: `{x} != 0`", &[("x", value.span)]),
    })
}

fn dtype_fits(t: &TensorType, v: &TensorType, span: Span, base_span: Span) -> Result<(), Diagnostic> {
    let (Some(slot), Some(dtype)) = (t.dtype, v.dtype) else { return Ok(()) };
    if dtype.widens_to(slot) {
        return Ok(());
    }
    Err(Diagnostic::new(Code::E0206, span, format!("{dtype} values do not fit a tensor of {slot} exactly"))
        .here(format!("this is {v}"))
        .with_label(base_span, t.to_string())
        .help(format!("convert them: `.to({slot})`")))
}

fn broadcasts(
    cx: &mut SizeCx,
    t: &TensorType,
    slot: &TensorType,
    v: &TensorType,
    span: Span,
    base_span: Span,
) -> Result<(), Diagnostic> {
    let wrong = |what: String| {
        Diagnostic::new(Code::E0203, span, what)
            .here(format!("this is {v}"))
            .with_label(base_span, t.to_string())
            .note(format!("the slot is {slot}"))
    };
    if v.rank() > slot.rank() {
        return Err(wrong(format!("a tensor of rank {} does not fit a slot of rank {}", v.rank(), slot.rank())));
    }
    let skip = slot.rank() - v.rank();
    for (i, (want, have)) in slot.shape[skip..].iter().zip(&v.shape).enumerate() {
        if have.as_const() == Some(1) {
            continue;
        }
        let Err(verdict) = cx.require_equal(want, have, span) else { continue };
        let d = wrong(format!("dim {i} of the value is {have}, and the slot has {want} there"));
        return Err(match verdict {
            Verdict::Differ(w) | Verdict::Depends(w) if !w.values.is_empty() => d.witness(w.to_string()),
            _ => d,
        });
    }
    Ok(())
}
