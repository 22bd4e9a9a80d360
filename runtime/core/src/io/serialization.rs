//! Whole values in safetensors files: `io.save` and `io.load`.
//!
//! Every tensor of a struct, tuple, list or dict is stored under its path (`layers.0.w`). Numbers
//! are tensors of rank 0 (f64, i64, bool), lists of numbers tensors of rank 1, texts and lists of
//! texts entries beside the tensors; so every bit comes back.

use super::checkpoint::{Checkpoint, is_own_text};
use super::safetensors::{Content, TEXTS_NAME};
use crate::fault::{Fault, shown};
use crate::host_value::{HostKey, HostValue};
use crate::show::bool_text;
use crate::tensor::Tensor;
use crate::value::{TypeId, TypeInfo, TypeTable};
use std::collections::BTreeSet;
use std::path::Path;
use tessera_base::DType;
use tessera_base::near::nearest;

/// The name of a value that is no container.
const WHOLE: &str = "value";

/// Differences that one message lists.
const LISTED_MAX: usize = 100;

/// A part of a value that the file holds under one name.
enum Leaf<'a> {
    Tensor(&'a mut Tensor),
    /// A number or a list of numbers of an element type, as [`HostValue`].
    Numbers(&'a mut HostValue, DType),
    /// A text, or a list of texts.
    Text(&'a mut HostValue),
}

fn dtype_of(info: &TypeInfo) -> Option<DType> {
    Some(match info {
        TypeInfo::Int => DType::I64,
        TypeInfo::Float => DType::F64,
        TypeInfo::Bool => DType::Bool,
        _ => return None,
    })
}

/// The leaves of a value with their names, in order.
fn leaves<'a>(types: &TypeTable, value: &'a mut HostValue, ty: TypeId, name: &str, out: &mut Vec<(String, Leaf<'a>)>) {
    let step = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
    let own = || if name.is_empty() { WHOLE.to_owned() } else { name.to_owned() };
    let info = types.get(ty);
    let element = match info {
        TypeInfo::List(element) => Some(types.get(*element)),
        _ => None,
    };
    if let Some(dtype) = dtype_of(element.unwrap_or(info)) {
        return out.push((own(), Leaf::Numbers(value, dtype)));
    }
    if matches!(element.unwrap_or(info), TypeInfo::Str) {
        return out.push((own(), Leaf::Text(value)));
    }
    match (value, info) {
        (HostValue::Tensor(t), _) => out.push((own(), Leaf::Tensor(t))),
        (HostValue::List(items), TypeInfo::List(element)) => {
            for (i, item) in items.iter_mut().enumerate() {
                leaves(types, item, *element, &step(&i.to_string()), out);
            }
        }
        (HostValue::Record(items), TypeInfo::Tuple(tys)) => {
            for (i, (item, ty)) in items.iter_mut().zip(tys).enumerate() {
                leaves(types, item, *ty, &step(&i.to_string()), out);
            }
        }
        (HostValue::Record(items), TypeInfo::Struct { fields, .. }) => {
            for (item, (field, ty)) in items.iter_mut().zip(fields) {
                leaves(types, item, *ty, &step(field), out);
            }
        }
        (HostValue::Dict(entries), TypeInfo::Dict(_, element)) => {
            for (key, item) in entries {
                let key = match key {
                    HostKey::Int(i) => i.to_string(),
                    HostKey::Bool(b) => bool_text(*b).into(),
                    HostKey::Str(s) => s.to_string(),
                };
                leaves(types, item, *element, &step(&key), out);
            }
        }
        // None has no content; functions and element types are refused when the program is checked.
        _ => {}
    }
}

/// What a file holds of a value of a type. Two parts of one name (a dict key that looks like a path) are E0707, as is the
/// name of something that the file holds anyway.
pub fn content(types: &TypeTable, mut value: HostValue, ty: TypeId) -> Result<Content, Fault> {
    let mut parts = vec![];
    leaves(types, &mut value, ty, "", &mut parts);
    let mut content = Content::default();
    let from_keys = "keys of dicts become parts of names, which are joined by points";
    for (name, leaf) in parts {
        let taken = match leaf {
            Leaf::Text(_) => is_own_text(&name),
            _ => name == TEXTS_NAME,
        };
        if taken {
            let text =
                format!("a part of the value would be called `{name}` in the file, which keeps that name for itself");
            return Err(Fault::new(707, text).note(from_keys).note("under another key it can be saved"));
        }
        let twice = match leaf {
            Leaf::Tensor(t) => content.tensors.insert(name.clone(), t.clone()).is_some(),
            Leaf::Numbers(value, dtype) => content.tensors.insert(name.clone(), packed(value, dtype)?).is_some(),
            Leaf::Text(value) => content.texts.insert(name.clone(), text_of(value)).is_some(),
        };
        if twice {
            let text = format!("two parts of the value would be called `{}` in the file", shown(&name));
            return Err(Fault::new(707, text).note(from_keys));
        }
    }
    Ok(content)
}

fn packed(value: &HostValue, dtype: DType) -> Result<Tensor, Fault> {
    let mut bytes = vec![];
    let mut put = |v: &HostValue| match v {
        HostValue::Int(n) => bytes.extend(n.to_le_bytes()),
        HostValue::Float(x) => bytes.extend(x.to_le_bytes()),
        HostValue::Bool(b) => bytes.push(u8::from(*b)),
        _ => {}
    };
    let shape = match value {
        HostValue::List(items) => {
            items.iter().for_each(put);
            vec![items.len() as u64]
        }
        one => {
            put(one);
            vec![]
        }
    };
    Ok(Tensor::from_bytes(dtype, &shape, &bytes)?)
}

/// The numbers of a tensor as [`packed`] wrote them.
fn unpacked(t: &Tensor) -> HostValue {
    let word = |b: &[u8]| b.first_chunk().copied().unwrap_or_default();
    let one = |b: &[u8]| match t.dtype {
        DType::I64 => HostValue::Int(i64::from_le_bytes(word(b))),
        DType::F64 => HostValue::Float(f64::from_le_bytes(word(b))),
        _ => HostValue::Bool(b.first().is_some_and(|&x| x != 0)),
    };
    match t.rank() {
        0 => one(t.bytes()),
        _ => HostValue::List(t.bytes().chunks_exact(t.dtype.bytes()).map(one).collect()),
    }
}

fn text_of(value: &HostValue) -> String {
    match value {
        HostValue::Str(s) => s.to_string(),
        HostValue::List(items) => serde_json::Value::from(items.iter().map(text_of).collect::<Vec<_>>()).to_string(),
        _ => String::new(),
    }
}

/// Reads a file into a value of the form of `like`. Names in the file begin with `prefix`, behind
/// which the value's own begin; without `extra` everything under the prefix has to be used.
///
/// Tensors lie as those of `like`, and only what this process has of them is read. Every difference is told in one E0715:
/// what is missing with the nearest name, what has another shape or element type, what is in the file only.
pub fn load(
    types: &TypeTable,
    like: HostValue,
    ty: TypeId,
    path: &Path,
    prefix: &str,
    extra: bool,
) -> Result<HostValue, Fault> {
    Checkpoint::read(path, |file| loaded(types, like.clone(), ty, file, path, prefix, extra))
}

fn loaded(
    types: &TypeTable,
    mut like: HostValue,
    ty: TypeId,
    file: Checkpoint,
    path: &Path,
    prefix: &str,
    extra: bool,
) -> Result<HostValue, Fault> {
    let mut parts = vec![];
    leaves(types, &mut like, ty, "", &mut parts);
    let mut found = Found { file, wanted: BTreeSet::new(), missing: vec![], differ: vec![] };
    for (name, leaf) in &mut parts {
        *name = format!("{prefix}{name}");
        found.wanted.insert(name.clone());
        found.compare(name, leaf);
    }
    let unused = if extra { vec![] } else { found.unused(prefix) };
    let count = found.missing.len() + found.differ.len() + unused.len();
    if count == 0 {
        parts.into_iter().try_for_each(|(name, leaf)| found.fill(&name, leaf))?;
        return Ok(like);
    }
    let mut fault = Fault::new(
        715,
        format!(
            "`{}` does not hold what is asked for: {} missing, {} otherwise, {} too many",
            shown(path),
            found.missing.len(),
            found.differ.len(),
            unused.len()
        ),
    );
    let lines: Vec<String> = found.missing.into_iter().chain(found.differ).chain(unused.iter().cloned()).collect();
    fault.notes.extend(lines.iter().take(LISTED_MAX).map(shown));
    if lines.len() > LISTED_MAX {
        fault.notes.push(format!("and {} more", lines.len() - LISTED_MAX));
    }
    if !unused.is_empty() {
        fault.notes.push("`extra=True` leaves aside what the file has more".into());
    }
    Err(fault)
}

struct Found {
    file: Checkpoint,
    wanted: BTreeSet<String>,
    missing: Vec<String>,
    differ: Vec<String>,
}

impl Found {
    /// Notes in what the file differs from what a leaf asks for.
    fn compare(&mut self, name: &str, leaf: &Leaf) {
        match leaf {
            Leaf::Text(value) => match (self.file.texts().get(name), &**value) {
                (None, _) => self.miss(name, "a text"),
                (Some(text), HostValue::List(_)) if serde_json::from_str::<Vec<String>>(text).is_err() => {
                    self.differ.push(format!("`{name}` is one text in the file, a list of texts is asked for"));
                }
                _ => {}
            },
            Leaf::Tensor(like) => {
                let asked = type_text(like.dtype, &like.shape);
                let Some((dtype, shape)) = self.file.form(name) else { return self.miss(name, &asked) };
                let same = dtype == like.dtype || (like.dtype, dtype) == (DType::Tf32, DType::F32);
                if !same || *shape != like.shape {
                    let line = format!("`{name}` is {} in the file, {asked} is asked for", type_text(dtype, shape));
                    self.differ.push(line);
                }
            }
            Leaf::Numbers(value, of) => {
                let rank = usize::from(matches!(value, HostValue::List(_)));
                let asked = if rank == 1 { format!("Tensor[any number, {of}]") } else { format!("Tensor[{of}]") };
                let Some((dtype, shape)) = self.file.form(name) else { return self.miss(name, &asked) };
                if (dtype, shape.len()) != (*of, rank) {
                    let line = format!("`{name}` is {} in the file, {asked} is asked for", type_text(dtype, shape));
                    self.differ.push(line);
                }
            }
        }
    }

    /// Gives a leaf its value from the file, which has one of its form.
    fn fill(&mut self, name: &str, leaf: Leaf) -> Result<(), Fault> {
        match leaf {
            Leaf::Text(value) => {
                let text = self.file.texts().get(name).map_or("", String::as_str);
                *value = match value {
                    HostValue::List(_) => {
                        let texts: Vec<String> = serde_json::from_str(text).unwrap_or_default();
                        HostValue::List(texts.iter().map(|t| HostValue::Str(t.as_str().into())).collect())
                    }
                    _ => HostValue::Str(text.into()),
                };
            }
            // A plan knows shapes alone.
            Leaf::Tensor(like) if like.has_no_elements() => {}
            Leaf::Tensor(like) => {
                let t = self.file.tensor(name, like.parts.as_deref())?;
                *like = Tensor { dtype: like.dtype, ..t };
            }
            Leaf::Numbers(value, _) => *value = unpacked(&self.file.tensor(name, None)?),
        }
        Ok(())
    }

    fn miss(&mut self, name: &str, form: &str) {
        let free = self.file.names().chain(self.file.texts().keys()).map(String::as_str);
        let near = nearest(name, free.filter(|n| !self.wanted.contains(*n)));
        let near = near.map_or_else(String::new, |n| format!("; the file has `{n}`"));
        self.missing.push(format!("`{name}` is missing ({form}){near}"));
    }

    /// What the file has under the prefix and no one asked for. Texts that other programs leave
    /// (`format`) are no content.
    fn unused(&self, prefix: &str) -> Vec<String> {
        let own = self.file.names().filter(|n| n.starts_with(prefix) && !self.wanted.contains(*n));
        let form = |n: &String| self.file.form(n).map_or_else(String::new, |(d, shape)| type_text(d, shape));
        own.map(|n| format!("`{n}` ({}) is in the file only", form(n))).collect()
    }
}

fn type_text(dtype: DType, shape: &[u64]) -> String {
    let parts: Vec<String> = shape.iter().map(u64::to_string).chain([dtype.to_string()]).collect();
    format!("Tensor[{}]", parts.join(", "))
}
