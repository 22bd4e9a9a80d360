//! Basic indexing and element assignment of tensors in memory, without a kernel.

use crate::dry_run;
use crate::fault::Fault;
use crate::math::refused;
use crate::slice::ABSENT;
use crate::tensor::Tensor;
use crate::tensor_print::{Element, element};
use half::{bf16, f16};
use tessera_abi::check::Check;
use tessera_abi::slice::Slice;
use tessera_base::{DType, Sharding};

/// One part of an index, as compiled code passes it. `None` bounds are absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Slice {
        start: Option<i64>,
        stop: Option<i64>,
        step: i64,
    },
    /// Drops the dim.
    At(i64),
    NewAxis,
}

/// Four words a part: start, stop, step, kind (0 slice, 1 int, 2 new axis).
pub fn decode(words: &[i64]) -> Vec<Part> {
    let bound = |n: i64| (n != ABSENT).then_some(n);
    words
        .chunks_exact(4)
        .map(|w| match w[3] {
            1 => Part::At(w[0]),
            2 => Part::NewAxis,
            _ => Part::Slice { start: bound(w[0]), stop: bound(w[1]), step: if w[2] == ABSENT { 1 } else { w[2] } },
        })
        .collect()
}

/// A strided view of a tensor's elements.
struct View {
    shape: Vec<u64>,
    /// In elements.
    strides: Vec<i64>,
    start: i64,
}

fn row_major(shape: &[u64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i] as i64;
    }
    strides
}

fn view(t: &Tensor, parts: &[Part]) -> Result<View, Fault> {
    let used = parts.iter().filter(|p| !matches!(p, Part::NewAxis)).count();
    if used > t.rank() {
        return Err(Fault::new(703, format!("{used} indices for a tensor of rank {}", t.rank())));
    }
    let strides = row_major(&t.shape);
    let mut v = View { shape: vec![], strides: vec![], start: 0 };
    let mut dim = 0;
    for part in parts {
        match *part {
            Part::NewAxis => {
                v.shape.push(1);
                v.strides.push(0);
                continue;
            }
            Part::At(i) => {
                let n = t.shape[dim] as i64;
                let at = if i < 0 { i.saturating_add(n) } else { i };
                if !(0..n).contains(&at) {
                    return Err(Fault::new(703, format!("index {i} is out of range for dim {dim} of size {n}")));
                }
                v.start += at * strides[dim];
            }
            Part::Slice { start, stop, step } => {
                let slice = Slice::of(t.shape[dim], start, stop, Some(step))
                    .ok_or_else(|| Fault::new(711, "the step of a slice is 0"))?;
                v.start += slice.start * strides[dim];
                v.shape.push(slice.count);
                v.strides.push(strides[dim].saturating_mul(slice.step));
            }
        }
        dim += 1;
    }
    v.shape.extend(&t.shape[dim..]);
    v.strides.extend(&strides[dim..]);
    Ok(v)
}

impl View {
    fn elems(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Whether the elements lie one after the other.
    fn is_contiguous(&self) -> bool {
        let dense = row_major(&self.shape);
        self.elems() == 0 || (0..self.shape.len()).all(|i| self.shape[i] == 1 || self.strides[i] == dense[i])
    }

    /// Calls `f(position, elements)` for runs along the last dim: the first element's position
    /// and, for a dense last dim, how many follow it.
    fn runs(&self, mut f: impl FnMut(i64, usize)) {
        if self.elems() == 0 {
            return;
        }
        let dense = self.strides.last().is_some_and(|&s| s == 1);
        let (outer, run) = match self.shape.split_last() {
            Some((&n, outer)) if dense => (outer, n as usize),
            _ => (&self.shape[..], 1),
        };
        let mut index = vec![0u64; outer.len()];
        let mut at = self.start;
        loop {
            f(at, run);
            let mut i = outer.len();
            loop {
                if i == 0 {
                    return;
                }
                i -= 1;
                index[i] += 1;
                at += self.strides[i];
                if index[i] < outer[i] {
                    break;
                }
                at -= self.strides[i] * outer[i] as i64;
                index[i] = 0;
            }
        }
    }
}

/// `t[parts]`. A contiguous result shares memory; others are copied.
pub fn index(t: &Tensor, parts: &[Part]) -> Result<Tensor, Fault> {
    let v = view(t, parts)?;
    let size = t.dtype.bytes();
    if t.has_no_elements() {
        return Ok(dry_run::tensor(t.dtype, &v.shape, Sharding::default())?);
    }
    if v.is_contiguous() {
        // A part without elements may start beyond the end.
        let offset = if v.shape.contains(&0) { t.offset } else { t.offset + v.start as usize * size };
        return Ok(Tensor { dtype: t.dtype, shape: v.shape, storage: t.storage.clone(), offset, parts: None });
    }
    let mut out = Tensor::new(t.dtype, &v.shape, false)?;
    let source = t.host()?;
    let target = out.host_mut()?;
    let mut filled = 0;
    v.runs(|at, n| {
        let from = at as usize * size;
        target[filled..filled + n * size].copy_from_slice(&source[from..from + n * size]);
        filled += n * size;
    });
    Ok(out)
}

/// `t[parts] = value`: the value broadcasts to the indexed shape. Values of another
/// element type are converted. Writes in place when `t`'s buffer
/// has no other owner.
pub fn assign(t: &mut Tensor, parts: &[Part], value: &Tensor, loose: u64) -> Result<(), Fault> {
    let v = view(t, parts)?;
    let size = t.dtype.bytes();
    let lead = v.shape.len().checked_sub(value.rank());
    let repeats = |i: usize| i >= 64 || loose >> i & 1 == 1;
    let fits = lead.is_some_and(|lead| {
        value.shape.iter().zip(&v.shape[lead..]).enumerate().all(|(i, (a, b))| a == b || *a == 1 && repeats(i))
    });
    let Some(lead) = lead.filter(|_| fits) else {
        return Err(Fault::new(
            708,
            format!("a value of shape {} does not broadcast to {}", shape_text(&value.shape), shape_text(&v.shape)),
        ));
    };
    if v.elems() == 0 {
        return Ok(());
    }
    if t.has_no_elements() || value.has_no_elements() {
        *t = dry_run::tensor(t.dtype, &t.shape, Sharding::default())?;
        return Ok(());
    }
    let scalar = match (value.dtype != t.dtype && value.elems() == 1).then(|| element(value, 0)) {
        Some(Element::Int(n)) => Some(convert(fitting(n, t.dtype)?, t.dtype)),
        other => other.map(|e| convert(e, t.dtype)),
    };
    // Strides of the value along the indexed dims; 0 repeats.
    let dense = row_major(&value.shape);
    let strides: Vec<i64> = (0..v.shape.len())
        .map(|i| i.checked_sub(lead).map_or(0, |j| if value.shape[j] == 1 { 0 } else { dense[j] }))
        .collect();
    let from = View { shape: v.shape.clone(), strides, start: 0 };
    // The value may share the target's memory (`x[1:] = x[:-1]`): read it before writing.
    let source: Vec<u8> = match &scalar {
        Some(bytes) => bytes.clone(),
        None if value.dtype != t.dtype => {
            (0..value.elems()).flat_map(|i| convert(element(value, i), t.dtype)).collect()
        }
        None => value.host()?.to_vec(),
    };
    let whole = from.is_contiguous() && v.is_contiguous() && scalar.is_none();
    let target = t.host_mut()?;
    if whole {
        let at = v.start as usize * size;
        target[at..at + source.len()].copy_from_slice(&source);
        return Ok(());
    }
    let mut positions = vec![];
    if scalar.is_none() {
        let every = View { shape: from.shape.clone(), strides: from.strides.clone(), start: 0 };
        single(&every, &mut |at| positions.push(at));
    }
    let mut next = 0;
    single(&v, &mut |at| {
        let s = positions.get(next).map_or(0, |&p| p as usize * size);
        target[at as usize * size..(at as usize + 1) * size].copy_from_slice(&source[s..s + size]);
        next += 1;
    });
    Ok(())
}

/// Every element's position, one by one.
fn single(v: &View, f: &mut dyn FnMut(i64)) {
    let step = v.strides.last().copied().unwrap_or(0);
    v.runs(|at, n| (0..n as i64).for_each(|i| f(at + i * if n > 1 { step } else { 0 })));
}

/// An int of host code as a value of an element type.
///
/// # Errors
/// E0711 where it is none.
pub fn fitting(n: i64, dtype: DType) -> Result<Element, Fault> {
    match dtype.narrow_most() {
        Some(most) if !Check::Value.holds(n as u64, most as u64) => Err(refused(Check::Value, [n as u64, most as u64])),
        _ => Ok(Element::Int(n)),
    }
}

/// The bytes of a scalar in an element type: floats round to nearest even, fp8 saturates,
/// integers wrap as Python ints do not fit them otherwise.
pub fn convert(value: Element, dtype: DType) -> Vec<u8> {
    let float = match value {
        Element::Float(x) => x,
        Element::Int(n) => n as f64,
        Element::Bool(b) => f64::from(u8::from(b)),
        Element::Complex(re, _) => re,
    };
    let int = match value {
        Element::Float(x) => x as i64,
        Element::Int(n) => n,
        Element::Bool(b) => i64::from(b),
        Element::Complex(re, _) => re as i64,
    };
    match dtype {
        DType::F64 => float.to_le_bytes().to_vec(),
        DType::F32 | DType::Tf32 => (float as f32).to_le_bytes().to_vec(),
        DType::Bf16 => bf16::from_f32(float as f32).to_le_bytes().to_vec(),
        DType::F16 => f16::from_f32(float as f32).to_le_bytes().to_vec(),
        DType::F8E4M3 => vec![to_fp8(float, 4, 3, 448.0)],
        DType::F8E5M2 => vec![to_fp8(float, 5, 2, 57344.0)],
        DType::I64 => int.to_le_bytes().to_vec(),
        DType::I32 => (int as i32).to_le_bytes().to_vec(),
        DType::I16 => (int as i16).to_le_bytes().to_vec(),
        DType::I8 => (int as i8).to_le_bytes().to_vec(),
        DType::U8 => (int as u8).to_le_bytes().to_vec(),
        DType::Bool => vec![u8::from(float != 0.0)],
        DType::C64 => [(float as f32).to_le_bytes(), 0f32.to_le_bytes()].concat(),
    }
}

/// Round to nearest even, saturating; NaN stays NaN.
fn to_fp8(x: f64, exponent_bits: i32, mantissa_bits: i32, max: f64) -> u8 {
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    if x.is_nan() {
        return sign | 0x7f;
    }
    let a = x.abs().min(max);
    let bias = (1 << (exponent_bits - 1)) - 1;
    if a == 0.0 {
        return sign;
    }
    let exponent = (((a.to_bits() >> 52) & 0x7ff) as i32 - 1023).max(1 - bias);
    let steps = (a / 2f64.powi(exponent - mantissa_bits)).round_ties_even() as i32;
    // A subnormal has fewer steps than one binade; a round up to the next binade carries over.
    let biased = exponent + bias - 1;
    sign | ((biased << mantissa_bits) + steps) as u8
}

/// `(2, 3)`.
pub fn shape_text(shape: &[u64]) -> String {
    let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
    if sizes.len() == 1 { format!("({},)", sizes[0]) } else { format!("({})", sizes.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor_print::{fp8_value, text};

    fn range(shape: &[u64]) -> Tensor {
        let n = shape.iter().product::<u64>() as i64;
        let bytes: Vec<u8> = (0..n).flat_map(i64::to_le_bytes).collect();
        Tensor::from_bytes(DType::I64, shape, &bytes).unwrap_or_else(|_| panic!("memory"))
    }
    const ALL: Part = Part::Slice { start: None, stop: None, step: 1 };

    #[test]
    fn indexing_follows_numpy() -> Result<(), Fault> {
        let x = range(&[2, 3, 4]);
        assert_eq!(text(&index(&x, &[Part::At(1), ALL, Part::At(2)])?), "[14 18 22]");
        let every_other = Part::Slice { start: None, stop: None, step: 2 };
        let from_one = Part::Slice { start: Some(1), stop: None, step: 1 };
        assert_eq!(text(&index(&x, &[Part::At(0), from_one, every_other])?), "[[ 4  6]\n [ 8 10]]");
        let back = Part::Slice { start: None, stop: None, step: -1 };
        assert_eq!(text(&index(&range(&[3]), &[back])?), "[2 1 0]");
        assert_eq!(index(&range(&[3]), &[Part::At(3)]).err().map(|e| e.code), Some(703));
        assert_eq!(index(&range(&[3]), &[ALL, Part::NewAxis])?.shape, [3, 1]);
        Ok(())
    }

    #[test]
    fn assignment_broadcasts_and_leaves_other_owners_alone() -> Result<(), Fault> {
        let x = range(&[2, 3]);
        let mut y = x.clone();
        assign(&mut y, &[ALL, Part::At(0)], &range(&[2]), u64::MAX)?;
        assert_eq!(text(&y), "[[0 1 2]\n [1 4 5]]");
        assert_eq!(text(&x), "[[0 1 2]\n [3 4 5]]");
        let tail = Part::Slice { start: Some(1), stop: None, step: 1 };
        let head = Part::Slice { start: None, stop: Some(-1), step: 1 };
        let mut z = range(&[4]);
        let shifted = index(&z, &[head])?;
        assign(&mut z, &[tail], &shifted, u64::MAX)?;
        assert_eq!(text(&z), "[0 0 1 2]");
        assert_eq!(assign(&mut z, &[], &range(&[3]), u64::MAX).err().map(|e| e.code), Some(708));
        let none = Part::Slice { start: None, stop: Some(0), step: 1 };
        assign(&mut z, &[none], &index(&range(&[3]), &[Part::At(2)])?, u64::MAX)?;
        assert_eq!(text(&z), "[0 0 1 2]");
        Ok(())
    }

    #[test]
    fn fp8_values_convert_to_themselves() {
        for bits in 0..=255u8 {
            for (e, m, max, dtype) in [(4, 3, 448.0, DType::F8E4M3), (5, 2, 57344.0, DType::F8E5M2)] {
                let x = fp8_value(bits, e, m);
                if x.is_finite() {
                    assert_eq!(convert(Element::Float(x), dtype), [to_fp8(x, e, m, max)]);
                    assert_eq!(to_fp8(x, e, m, max), bits);
                }
            }
        }
    }
}
