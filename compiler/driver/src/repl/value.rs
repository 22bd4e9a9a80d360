//! Values at the prompt: how they are shown, and which survive a failure.

use tessera_base::{DType, Size, SizeVar};
use tessera_core::sizes::subst_ty;
use tessera_core::ty::Ty;
use tessera_runtime::host_value::HostValue;
use tessera_runtime::tensor::Tensor;
use tessera_runtime::tensor_print::{Element, SUMMARY_ABOVE, element};

/// The type as it is shown in front of a value. Sizes that the checker does not know are read
/// from the value.
pub fn type_text(ty: &Ty, value: Option<&HostValue>) -> String {
    let Some(HostValue::Tensor(tensor)) = value else { return of_each(ty).to_string() };
    let size = |n: &u64| Size::constant(i64::try_from(*n).unwrap_or(i64::MAX));
    let mut known = match ty {
        Ty::Tensor(t) => t.clone(),
        _ => tessera_base::TensorType::new(vec![], tensor.dtype),
    };
    known.shape = tensor.shape.iter().map(size).collect();
    known.dtype = Some(tensor.dtype);
    known.to_string()
}

/// Tensors of more elements are not read for the sake of a line.
const READ_MAX: usize = 1 << 26;

/// What a large tensor holds, of which only the ends are shown: its least and greatest element, their mean, and how many are
/// NaN.
pub fn facts(value: &HostValue) -> Option<String> {
    let HostValue::Tensor(t) = value else { return None };
    if t.elems() <= SUMMARY_ABOVE as usize { None } else { statistics(t) }
}

/// The least and greatest element of a tensor, their mean, and how many are NaN, where it is not too large to be read for that.
pub fn statistics(t: &Tensor) -> Option<String> {
    if t.elems() > READ_MAX || t.dtype.is_complex() {
        return None;
    }
    let (mut least, mut greatest, mut sum, mut nan) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0usize);
    for i in 0..t.elems() {
        let x = match element(t, i) {
            Element::Float(x) => x,
            Element::Int(n) => n as f64,
            Element::Bool(b) => f64::from(u8::from(b)),
            Element::Complex(..) => return None,
        };
        if x.is_nan() {
            nan += 1;
            continue;
        }
        (least, greatest, sum) = (least.min(x), greatest.max(x), sum + x);
    }
    let counted = t.elems() - nan;
    if t.dtype == DType::Bool {
        return Some(format!("{sum} of {counted} are True"));
    }
    if counted == 0 {
        return Some("all are NaN".into());
    }
    let shown = |x: f64| if t.dtype.is_float() { rounded(x) } else { format!("{x}") };
    let (least, greatest, mean) = (shown(least), shown(greatest), rounded(sum / counted as f64));
    Some(format!("min {least}, max {greatest}, mean {mean}, {nan} NaN"))
}

/// A number to six digits.
pub fn rounded(x: f64) -> String {
    let short: f64 = format!("{x:.5e}").parse().unwrap_or(x);
    format!("{short:?}")
}

/// The type with `?` for a size that is another one in each element of a list or dict.
pub fn of_each(ty: &Ty) -> Ty {
    subst_ty(ty, &mut |v| v.each.then(|| Size::var(SizeVar { name: "?".into(), ..v.clone() })))
}

/// Whether a variable may keep the value that a failed input gave it: what the checker knows of
/// its type (sizes, values of ints) must hold as it did for the old value.
pub fn stays(ty: &Ty, old: &HostValue, new: &HostValue) -> bool {
    match (ty, old, new) {
        (Ty::Int(None) | Ty::Float | Ty::Bool | Ty::Str | Ty::None, ..) => true,
        (Ty::Int(Some(_)), HostValue::Int(a), HostValue::Int(b)) => a == b,
        (Ty::DType(_), HostValue::DType(a), HostValue::DType(b)) => a == b,
        (Ty::Tensor(_), HostValue::Tensor(a), HostValue::Tensor(b)) => a.dtype == b.dtype && a.shape == b.shape,
        (Ty::AnyTensor, ..) => true,
        (Ty::List(elem), HostValue::List(a), HostValue::List(b)) => same_elements(elem, a.first(), b.iter()),
        (Ty::Dict(_, elem), HostValue::Dict(a), HostValue::Dict(b)) => {
            same_elements(elem, a.first().map(|(_, v)| v), b.iter().map(|(_, v)| v))
        }
        (Ty::Tuple(tys), HostValue::Record(a), HostValue::Record(b)) => {
            tys.len() == b.len() && tys.iter().zip(a.iter().zip(b)).all(|(t, (a, b))| stays(t, a, b))
        }
        (Ty::Struct(s), HostValue::Record(a), HostValue::Record(b)) => {
            s.fields.len() == b.len() && s.fields.iter().zip(a.iter().zip(b)).all(|((_, t), (a, b))| stays(t, a, b))
        }
        _ => false,
    }
}

fn same_elements<'a>(elem: &Ty, first: Option<&HostValue>, mut new: impl Iterator<Item = &'a HostValue>) -> bool {
    match first {
        Some(old) => new.all(|v| stays(elem, old, v)),
        None => matches!(elem, Ty::Int(None) | Ty::Float | Ty::Bool | Ty::Str) || new.next().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_base::TensorType;

    fn zeros(shape: &[u64]) -> HostValue {
        let bytes = vec![0; shape.iter().product::<u64>() as usize * 4];
        Tensor::from_bytes(DType::F32, shape, &bytes).map_or(HostValue::None, HostValue::Tensor)
    }

    #[test]
    fn values_stay_where_the_checker_would_not_notice() {
        let matrix = Ty::Tensor(TensorType::new(vec![Size::constant(2)], DType::F32));
        assert!(stays(&matrix, &zeros(&[2]), &zeros(&[2])));
        assert!(!stays(&matrix, &zeros(&[2]), &zeros(&[3])));
        assert!(!stays(&Ty::int_of(1), &HostValue::Int(1), &HostValue::Int(2)));
        let list = Ty::List(Box::new(Ty::Float));
        assert!(stays(&list, &HostValue::List(vec![]), &HostValue::List(vec![HostValue::Float(1.0)])));
        let list = Ty::List(Box::new(matrix));
        assert!(!stays(&list, &HostValue::List(vec![zeros(&[2])]), &HostValue::List(vec![zeros(&[2]), zeros(&[1])])));
    }

    #[test]
    fn large_tensors_are_summed_up() {
        let numbers = |n: u32| -> Vec<u8> { (0..n).flat_map(|i| (i as f32).to_le_bytes()).collect() };
        let tensor = |n: u32, bytes: &[u8]| Tensor::from_bytes(DType::F32, &[n.into()], bytes).map(HostValue::Tensor);
        assert_eq!(tensor(1000, &numbers(1000)).ok().as_ref().and_then(facts), None);
        let mut bytes = numbers(2001);
        bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        let found = tensor(2001, &bytes).ok().as_ref().and_then(facts);
        assert_eq!(found.as_deref(), Some("min 1.0, max 2000.0, mean 1000.5, 1 NaN"));
    }

    #[test]
    fn sizes_are_read_from_the_value() {
        assert_eq!(type_text(&Ty::AnyTensor, Some(&zeros(&[2, 3]))), "Tensor[2, 3, f32]");
        assert_eq!(type_text(&Ty::int_of(3), Some(&HostValue::Int(3))), "int");
    }
}
