//! Values as text: `str`, `repr` and `format`.

use crate::context::Context;
use crate::fault::Fault;
use crate::format::Spec;
use crate::number::{float_repr, str_repr};
use crate::tensor_print::{self, Element};
use crate::value::{ClosureObj, DictObj, Key, TypeId, TypeInfo, list_words, object, record_words, tensor, text};
use std::fmt::Write;
use tessera_base::DType;

/// `str(x)`: strings as they are, everything else as [`repr`].
pub fn str(cx: &Context, word: u64, ty: TypeId, out: &mut String) {
    match cx.types.get(ty) {
        // SAFETY: a word of type str.
        TypeInfo::Str => out.push_str(unsafe { text(word) }),
        _ => repr(cx, word, ty, out),
    }
}

/// `repr(x)`: as Python writes it; a struct as `Name(field=…)`.
///
/// The depth of the recursion is the depth of the type.
pub fn repr(cx: &Context, word: u64, ty: TypeId, out: &mut String) {
    match cx.types.get(ty) {
        TypeInfo::Int => _ = write!(out, "{}", word as i64),
        TypeInfo::Float => out.push_str(&float_repr(f64::from_bits(word))),
        TypeInfo::Bool => out.push_str(bool_text(word != 0)),
        TypeInfo::None => out.push_str("None"),
        TypeInfo::Known(text) => out.push_str(text),
        TypeInfo::DType => out.push_str(DType::ALL.get(word as usize).map_or("?", |d| d.name())),
        // SAFETY: words of these types are live objects of their kinds.
        TypeInfo::Str => str_repr(unsafe { text(word) }, out),
        // SAFETY: as above.
        TypeInfo::Tensor => out.push_str(&tensor_print::text(unsafe { tensor(word) })),
        TypeInfo::Function { shown, .. } => out.push_str(shown),
        // SAFETY: as above.
        TypeInfo::Fn { .. } => match cx.function_at(unsafe { object::<ClosureObj>(word) }.code) {
            Some(name) => _ = write!(out, "function `{name}`"),
            None => out.push_str("a function"),
        },
        TypeInfo::List(elem) => {
            // SAFETY: as above.
            let words = unsafe { list_words(word) };
            sequence(cx, words.iter().map(|&w| (w, *elem)), "[", "]", out);
        }
        TypeInfo::Tuple(items) => {
            // SAFETY: as above.
            let words = unsafe { record_words(word) };
            let close = if items.len() == 1 { ",)" } else { ")" };
            sequence(cx, words.iter().copied().zip(items.iter().copied()), "(", close, out);
        }
        TypeInfo::Struct { name, fields } => {
            // SAFETY: as above.
            let words = unsafe { record_words(word) };
            out.push_str(name);
            out.push('(');
            for (i, (&w, (field, ty))) in words.iter().zip(fields).enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                out.push_str(field);
                out.push('=');
                repr(cx, w, *ty, out);
            }
            out.push(')');
        }
        // SAFETY: as above.
        TypeInfo::Dict(..) => dict(cx, unsafe { object(word) }, out),
    }
}

/// A bool as Python writes it.
pub fn bool_text(b: bool) -> &'static str {
    if b { "True" } else { "False" }
}

fn sequence(cx: &Context, items: impl Iterator<Item = (u64, TypeId)>, open: &str, close: &str, out: &mut String) {
    out.push_str(open);
    for (i, (word, ty)) in items.enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        repr(cx, word, ty, out);
    }
    out.push_str(close);
}

fn dict(cx: &Context, dict: &DictObj, out: &mut String) {
    out.push('{');
    for (i, (key, &value)) in dict.map.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        key_repr(key, out);
        out.push_str(": ");
        repr(cx, value, dict.value, out);
    }
    out.push('}');
}

pub fn key_repr(key: &Key, out: &mut String) {
    match key {
        Key::Int(i) => _ = write!(out, "{i}"),
        Key::Bool(b) => out.push_str(bool_text(*b)),
        Key::Str(s) => str_repr(s.get().text(), out),
    }
}

/// `format(x, spec)`. Rank-0 tensors format as their scalars.
pub fn format(cx: &Context, word: u64, ty: TypeId, spec: &str) -> Result<String, Fault> {
    let info = cx.types.get(ty);
    if spec.is_empty() {
        let mut out = String::new();
        str(cx, word, ty, &mut out);
        return Ok(out);
    }
    let parsed = Spec::parse(spec)?;
    match info {
        TypeInfo::Int => parsed.int(word as i64),
        TypeInfo::Float => parsed.float(f64::from_bits(word)),
        TypeInfo::Bool => parsed.bool(word != 0),
        // SAFETY: a word of type str.
        TypeInfo::Str => parsed.str(unsafe { text(word) }),
        TypeInfo::DType => parsed.str(DType::ALL.get(word as usize).map_or("?", |d| d.name())),
        TypeInfo::Tensor => {
            // SAFETY: a word of type tensor.
            let t = unsafe { tensor(word) };
            if t.rank() != 0 {
                let mut fault = no_format("a tensor that is not a scalar", spec);
                fault.notes.push(
                    "format its elements one by one, as in `{x[0]:.3f}`; without one it shows up to eight digits"
                        .into(),
                );
                return Err(fault);
            }
            match tensor_print::element(t, 0) {
                Element::Int(x) => parsed.int(x),
                Element::Float(x) => parsed.float(x),
                Element::Bool(x) => parsed.bool(x),
                Element::Complex(..) => Err(no_format("a complex number", spec)),
            }
        }
        TypeInfo::None => Err(no_format("None", spec)),
        TypeInfo::Known(text) => parsed.str(text),
        TypeInfo::List(_) => Err(no_format("a list", spec)),
        TypeInfo::Dict(..) => Err(no_format("a dict", spec)),
        TypeInfo::Tuple(_) => Err(no_format("a tuple", spec)),
        TypeInfo::Struct { name, .. } => Err(no_format(&format!("`{name}`"), spec)),
        TypeInfo::Function { .. } | TypeInfo::Fn { .. } => Err(no_format("a function", spec)),
    }
}

fn no_format(what: &str, spec: &str) -> Fault {
    Fault::new(711, format!("{what} takes no format specification, and `{spec}` is one"))
}
