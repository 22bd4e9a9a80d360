//! The runtime functions of tensors and regions, by their rows in `abi::rt`.

use crate::context::Context;
use crate::dry_run;
use crate::fault::Fault;
use crate::nested;
use crate::rt::{rows, settle};
use crate::slice::ABSENT;
use crate::tensor::Tensor;
use crate::tensor_index::{self, Part, decode, shape_text};
use crate::tensor_print::{Element, element};
use crate::value::{ListObj, Own, RecordObj, StrObj, TensorObj, TypeId, into_word, new_record, new_tensor};
use crate::{rt_data, rt_files};
use tessera_abi::rt::RtFn;
use tessera_base::DType;

/// The functions of this part of the table with their addresses.
pub fn symbols() -> Vec<(RtFn, *const u8)> {
    let mut all = rows! {
        takes_1 tensor_rank tensor_dtype tensor_from_float tensor_from_int tensor_from_bool;
        takes_2 tensor_show tensor_shape tensor_to_float tensor_to_int tensor_to_bool tensor_eq_all;
        takes_3 tensor_dim tensor_index tensor_to_list tensor_row sizes_differ;
        takes_4 tensor_from_list;
        takes_5 tensor_assign;
        takes_6 tensor_check region_call;
    };
    all.extend(rt_files::symbols());
    all.extend(rt_data::symbols());
    all
}

extern "C" fn region_call(
    cx: &mut Context,
    region: i64,
    args: *const u64,
    arg_count: i64,
    results: *mut u64,
    result_count: i64,
    span: i64,
) {
    // SAFETY: compiled code passes the addresses of so many words on its stack.
    let (args, results) = unsafe { (words(args, arg_count), words_mut(results, result_count)) };
    // SAFETY: compiled code passes words of the region's parameter types.
    unsafe { cx.call_region(region as u32, args, results, span as u32) }
}

/// # Safety
/// `count` words are readable at `address`; no address is needed for none.
unsafe fn words<'a>(address: *const u64, count: i64) -> &'a [u64] {
    if count <= 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(address, count as usize) }
}

/// # Safety
/// `count` words are writable at `address`, and nothing else refers to them.
unsafe fn words_mut<'a>(address: *mut u64, count: i64) -> &'a mut [u64] {
    if count <= 0 {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(address, count as usize) }
}

/// The position of a dtype in [`DType::ALL`].
pub fn dtype_position(dtype: DType) -> i64 {
    DType::ALL.iter().position(|d| *d == dtype).unwrap_or(0) as i64
}

/// The word of a tensor that was made, or 0 after the failure was noted.
fn give(cx: &mut Context, span: i64, outcome: Result<Tensor, Fault>) -> u64 {
    let word = outcome.map(new_tensor);
    settle(cx, span, word)
}

extern "C" fn tensor_rank(_: &mut Context, t: &TensorObj) -> i64 {
    t.tensor.rank() as i64
}

extern "C" fn tensor_dim(cx: &mut Context, t: &TensorObj, dim: i64, span: i64) -> i64 {
    let shape = &t.tensor.shape;
    let at = if dim < 0 { dim.saturating_add(shape.len() as i64) } else { dim };
    let size = usize::try_from(at).ok().and_then(|i| shape.get(i)).map(|&n| n as i64);
    settle(
        cx,
        span,
        size.ok_or_else(|| {
            Fault::new(703, format!("dim {dim} of a tensor of shape {} does not exist", shape_text(shape)))
        }),
    )
}

extern "C" fn tensor_shape(_: &mut Context, t: &TensorObj, ty: i64) -> u64 {
    let record = new_record(ty as TypeId, t.tensor.rank());
    // SAFETY: just made, with one field a dim.
    unsafe { RecordObj::fill(record, &t.tensor.shape) };
    record
}

/// A line for each device, or one for all that hold the same.
extern "C" fn tensor_show(cx: &mut Context, t: &TensorObj, span: i64) {
    let t = &t.tensor;
    let Some(parts) = &t.parts else {
        cx.print("one device holds all of it\n", span as u32);
        return;
    };
    let mut lines: Vec<(String, Vec<usize>)> = vec![];
    let devices = parts.layout.mesh.as_ref().map_or(parts.parts.len(), |m| m.devices() as usize);
    for device in 0..devices {
        let held = parts.layout.block(&t.shape, device as u64);
        let dims: Vec<String> = held.iter().map(|r| format!("{}:{}", r.start, r.end)).collect();
        let text = match held.iter().any(std::ops::Range::is_empty) {
            true => "nothing".to_owned(),
            false => format!("[{}]", dims.join(", ")),
        };
        match lines.iter_mut().find(|l| l.0 == text) {
            Some((_, devices)) => devices.push(device),
            None => lines.push((text, vec![device])),
        }
    }
    for (text, devices) in lines {
        let named: Vec<String> = devices.iter().map(usize::to_string).collect();
        let plural = if named.len() == 1 { "device " } else { "devices" };
        cx.print(&format!("{plural} {}: {text}\n", named.join(", ")), span as u32);
    }
}

extern "C" fn tensor_dtype(_: &mut Context, t: &TensorObj) -> i64 {
    dtype_position(t.tensor.dtype)
}

/// The tensor on one device.
fn whole(t: &Tensor) -> Result<Tensor, Fault> {
    if t.has_no_elements() {
        return Err(dry_run::fault());
    }
    t.whole()
}

/// The tensor on one device, or its outline.
fn positioned(t: &Tensor) -> Result<Tensor, Fault> {
    if t.has_no_elements() { Ok(t.clone()) } else { whole(t) }
}

/// The one element of a tensor.
fn only(t: &Tensor, wanted: &str) -> Result<Element, Fault> {
    if t.elems() != 1 {
        return Err(Fault::new(
            708,
            format!("{wanted} needs a tensor of one element, this one has shape {}", shape_text(&t.shape)),
        ));
    }
    Ok(element(&whole(t)?, 0))
}

extern "C" fn tensor_to_float(cx: &mut Context, t: &TensorObj, span: i64) -> f64 {
    let value = only(&t.tensor, "float()").and_then(|e| match e {
        Element::Float(x) => Ok(x),
        Element::Int(n) => Ok(n as f64),
        Element::Bool(b) => Ok(f64::from(u8::from(b))),
        Element::Complex(..) => Err(Fault::new(711, "a complex number is no float")),
    });
    settle(cx, span, value)
}

extern "C" fn tensor_to_int(cx: &mut Context, t: &TensorObj, span: i64) -> i64 {
    let value = only(&t.tensor, "int()").and_then(|e| match e {
        // i64 covers -2^63 up to below 2^63.
        Element::Float(x) if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x) => Ok(x as i64),
        Element::Float(x) => Err(Fault::new(711, format!("{x} has no int"))),
        Element::Int(n) => Ok(n),
        Element::Bool(b) => Ok(i64::from(b)),
        Element::Complex(..) => Err(Fault::new(711, "a complex number is no int")),
    });
    settle(cx, span, value)
}

extern "C" fn tensor_to_bool(cx: &mut Context, t: &TensorObj, span: i64) -> i64 {
    let value = only(&t.tensor, "a condition").map(|e| match e {
        Element::Float(x) => i64::from(x != 0.0),
        Element::Int(n) => i64::from(n != 0),
        Element::Bool(b) => i64::from(b),
        Element::Complex(re, im) => i64::from(re != 0.0 || im != 0.0),
    });
    settle(cx, span, value)
}

/// A tensor of one element; memory for 8 bytes is always there.
fn scalar(dtype: DType, bytes: &[u8]) -> u64 {
    Tensor::from_bytes(dtype, &[], bytes).map_or(0, new_tensor)
}

extern "C" fn tensor_from_float(_: &mut Context, x: f64) -> u64 {
    scalar(DType::F64, &x.to_le_bytes())
}

extern "C" fn tensor_from_int(_: &mut Context, n: i64) -> u64 {
    scalar(DType::I64, &n.to_le_bytes())
}

extern "C" fn tensor_from_bool(_: &mut Context, b: i64) -> u64 {
    scalar(DType::Bool, &[u8::from(b != 0)])
}

fn parts(index: &ListObj) -> Vec<Part> {
    let words: Vec<i64> = index.words().iter().map(|&w| w as i64).collect();
    decode(&words)
}

extern "C" fn tensor_index(cx: &mut Context, t: &TensorObj, index: &ListObj, span: i64) -> u64 {
    give(cx, span, positioned(&t.tensor).and_then(|t| tensor_index::index(&t, &parts(index))))
}

extern "C" fn tensor_assign(
    cx: &mut Context,
    t: Own<TensorObj>,
    index: &ListObj,
    value: &TensorObj,
    loose: i64,
    span: i64,
) -> u64 {
    // The value may be the very tensor that changes: its buffer is then shared and copied.
    let value = positioned(&value.tensor);
    let mut target = t.unbox();
    let done = value.and_then(|value| {
        target.tensor = positioned(&target.tensor)?;
        tensor_index::assign(&mut target.tensor, &parts(index), &value, loose as u64)
    });
    settle(cx, span, done);
    into_word(target)
}

extern "C" fn tensor_row(cx: &mut Context, t: &TensorObj, at: i64, span: i64) -> u64 {
    give(cx, span, positioned(&t.tensor).and_then(|t| tensor_index::index(&t, &[Part::At(at)])))
}

extern "C" fn tensor_from_list(cx: &mut Context, list: u64, ty: i64, dtype: i64, span: i64) -> u64 {
    let dtype = usize::try_from(dtype).ok().and_then(|i| DType::ALL.get(i)).copied();
    // SAFETY: compiled code passes a live list of the type given.
    let made = unsafe { nested::to_tensor(&cx.types, list, ty as TypeId, dtype) };
    give(cx, span, made)
}

extern "C" fn tensor_to_list(cx: &mut Context, t: &TensorObj, ty: i64, span: i64) -> u64 {
    let made = whole(&t.tensor).and_then(|t| nested::from_tensor(&cx.types, &t, ty as TypeId));
    settle(cx, span, made)
}

extern "C" fn tensor_eq_all(cx: &mut Context, a: &TensorObj, b: &TensorObj) -> i64 {
    if a.tensor.has_no_elements() || b.tensor.has_no_elements() {
        return settle(cx, 0, Err(dry_run::fault()));
    }
    let (Ok(a), Ok(b)) = (whole(&a.tensor), whole(&b.tensor)) else { return 0 };
    let (a, b) = (&a, &b);
    let same = |i| match (element(a, i), element(b, i)) {
        (Element::Int(x), Element::Int(y)) => x == y,
        (Element::Float(x), Element::Float(y)) => x == y,
        (x, y) => x == y,
    };
    i64::from(a.dtype == b.dtype && a.shape == b.shape && (0..a.elems()).all(same))
}

/// Marks "any leading dims" in the sizes of [`tensor_check`].
const LEADING: i64 = ABSENT + 1;

extern "C" fn tensor_check(
    cx: &mut Context,
    t: &TensorObj,
    dtype: i64,
    sizes: &ListObj,
    name: &StrObj,
    declared: &StrObj,
    span: i64,
) {
    let t = &t.tensor;
    let wanted: Vec<i64> = sizes.words().iter().map(|&w| w as i64).collect();
    let found = format!(
        "Tensor[{}]",
        t.shape.iter().map(u64::to_string).chain([t.dtype.to_string()]).collect::<Vec<_>>().join(", ")
    );
    let fault = |code: u16, what: String| {
        Err(Fault::new(code, format!("`{}` is annotated otherwise: {what}", name.text())).note(match declared.text() {
            "" => format!("the data is {found}"),
            declared => format!("the annotation is {declared}, the data is {found}"),
        }))
    };
    let outcome = (|| {
        if let Some(d) = usize::try_from(dtype).ok().and_then(|i| DType::ALL.get(i)).filter(|d| **d != t.dtype) {
            return fault(707, format!("the data has elements of type {}, the annotation says {d}", t.dtype));
        }
        let (leading, wanted) = match wanted.split_first() {
            Some((&LEADING, rest)) => (true, rest),
            _ => (false, &wanted[..]),
        };
        if t.rank() < wanted.len() || (!leading && t.rank() != wanted.len()) {
            return fault(707, format!("the data has rank {}, the annotation {}", t.rank(), wanted.len()));
        }
        let offset = t.rank() - wanted.len();
        for (i, &w) in wanted.iter().enumerate() {
            let size = t.shape[offset + i];
            if w != ABSENT && w as u64 != size {
                let code = if declared.text().is_empty() { 708 } else { 707 };
                return fault(code, format!("dim {} has size {size}, the annotation says {w}", offset + i));
            }
        }
        Ok(())
    })();
    settle(cx, span, outcome.map_err(|f: Fault| f.note("what an annotation means: `tessera explain E0202`")));
}

extern "C" fn sizes_differ(cx: &mut Context, text: &StrObj, sizes: &ListObj, span: i64) {
    let sizes: Vec<i64> = sizes.words().iter().map(|&w| w as i64).collect();
    settle(cx, span, Err::<(), _>(Fault::sizes_differ(text.text(), &sizes)));
}
