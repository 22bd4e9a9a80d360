//! JSON as values of types that the checker knows, and back.

use crate::fault::{Fault, shown};
use crate::host_value::{HostKey, HostValue};
use crate::value::{TypeId, TypeInfo, TypeTable};
use serde_json::{Map, Number, Value};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tessera_base::near::nearest;

/// The value of a type in the bytes of a file.
///
/// # Errors
/// E0707 where it is no JSON, with line and column, or where a part is of another type than asked for, with the steps that
/// lead there; without `extra` also where an object has more than the struct.
pub fn read(types: &TypeTable, path: &Path, bytes: &[u8], extra: bool, ty: TypeId) -> Result<HostValue, Fault> {
    let name = shown(path);
    let value: Value = serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
        .map_err(|e| Fault::new(707, format!("`{name}` is not readable JSON: {e}")))?;
    Reader { types, name: &name, extra }.value(value, ty, "")
}

struct Reader<'a> {
    types: &'a TypeTable,
    name: &'a str,
    extra: bool,
}

impl Reader<'_> {
    fn value(&self, value: Value, ty: TypeId, at: &str) -> Result<HostValue, Fault> {
        let step = |part: &str| if at.is_empty() { part.to_owned() } else { format!("{at}.{part}") };
        Ok(match (value, self.types.get(ty)) {
            (Value::Number(n), TypeInfo::Int) if n.as_i64().is_some() => HostValue::Int(n.as_i64().unwrap_or_default()),
            (Value::Number(n), TypeInfo::Float) => HostValue::Float(n.as_f64().unwrap_or(f64::NAN)),
            (Value::Bool(b), TypeInfo::Bool) => HostValue::Bool(b),
            (Value::String(s), TypeInfo::Str) => HostValue::Str(s.into()),
            (Value::Null, TypeInfo::None) => HostValue::None,
            (Value::Array(items), TypeInfo::List(element)) => {
                let item = |(i, v)| self.value(v, *element, &format!("{at}[{i}]"));
                HostValue::List(items.into_iter().enumerate().map(item).collect::<Result<_, _>>()?)
            }
            (Value::Array(items), TypeInfo::Tuple(tys)) if items.len() == tys.len() => {
                let item = |(i, (v, ty)): (usize, (Value, &TypeId))| self.value(v, *ty, &format!("{at}[{i}]"));
                HostValue::Record(items.into_iter().zip(tys).enumerate().map(item).collect::<Result<_, _>>()?)
            }
            (Value::Object(entries), TypeInfo::Dict(_, element)) => {
                let entry = |(key, v): (String, Value)| {
                    let value = self.value(v, *element, &step(&key))?;
                    Ok((HostKey::Str(key.into()), value))
                };
                HostValue::Dict(entries.into_iter().map(entry).collect::<Result<_, Fault>>()?)
            }
            (Value::Object(mut entries), TypeInfo::Struct { fields, .. }) => {
                self.names(&entries, fields.iter().map(|f| &*f.0), at)?;
                let field = |(name, ty): &(Arc<str>, TypeId)| {
                    self.value(entries.swap_remove(&**name).unwrap_or(Value::Null), *ty, &step(name))
                };
                HostValue::Record(fields.iter().map(field).collect::<Result<_, _>>()?)
            }
            (value, wanted) => {
                let at = if at.is_empty() { "the value".to_owned() } else { format!("`{}`", shown(at)) };
                let text =
                    format!("{at} in `{}` is {}, and {} is asked for", self.name, kind(&value), wanted_text(wanted));
                return Err(Fault::new(707, text));
            }
        })
    }

    /// Whether an object has all fields of a struct, and no other ones unless those are left aside.
    fn names<'f>(
        &self,
        entries: &Map<String, Value>,
        fields: impl Iterator<Item = &'f str>,
        at: &str,
    ) -> Result<(), Fault> {
        let fields: BTreeSet<&str> = fields.collect();
        let of = if at.is_empty() { format!("`{}`", self.name) } else { format!("`{}` in `{}`", shown(at), self.name) };
        let free = || entries.keys().map(String::as_str).filter(|k| !fields.contains(k));
        if let Some(missing) = fields.iter().find(|f| !entries.contains_key(**f)) {
            let fault = Fault::new(707, format!("{of} has no `{missing}`"));
            return Err(match nearest(missing, free()) {
                Some(near) => fault.note(format!("it has `{}`", shown(near))),
                None => fault,
            });
        }
        match free().next() {
            Some(more) if !self.extra => {
                Err(Fault::new(707, format!("{of} has `{}`, which the struct does not have", shown(more)))
                    .note("`extra=True` leaves aside what the file has more"))
            }
            _ => Ok(()),
        }
    }
}

fn kind(value: &Value) -> String {
    let short = |text: String| if text.chars().count() > 40 { "a long one".to_owned() } else { shown(text) };
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => format!("{b}"),
        Value::Number(n) => format!("the number {n}"),
        Value::String(_) => format!("the text {}", short(value.to_string())),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(entries) => format!("an object of {}", entries.len()),
    }
}

fn wanted_text(info: &TypeInfo) -> String {
    match info {
        TypeInfo::Int => "an int of 64 bits".into(),
        TypeInfo::Float => "a float".into(),
        TypeInfo::Bool => "a bool".into(),
        TypeInfo::Str => "a text".into(),
        TypeInfo::List(_) => "a list".into(),
        TypeInfo::Tuple(parts) => format!("a list of {}", parts.len()),
        TypeInfo::Dict(..) => "an object".into(),
        TypeInfo::Struct { name, .. } => format!("an object for `{name}`"),
        _ => "null".into(),
    }
}

/// A value as JSON: one line, and its end. Floats are written in the fewest digits that read back the same.
///
/// # Errors
/// E0707 where a float is NaN or infinite, which JSON has no text for.
pub fn text(types: &TypeTable, value: &HostValue, ty: TypeId) -> Result<String, Fault> {
    Ok(format!("{}\n", json(types, value, ty, "")?))
}

fn json(types: &TypeTable, value: &HostValue, ty: TypeId, at: &str) -> Result<Value, Fault> {
    let step = |part: &str| if at.is_empty() { part.to_owned() } else { format!("{at}.{part}") };
    Ok(match (value, types.get(ty)) {
        (HostValue::Int(n), _) => Value::from(*n),
        (HostValue::Bool(b), _) => Value::from(*b),
        (HostValue::Str(s), _) => Value::from(&**s),
        (HostValue::Float(x), _) => Value::Number(Number::from_f64(*x).ok_or_else(|| {
            let at = if at.is_empty() { "the value".to_owned() } else { format!("`{}`", shown(at)) };
            Fault::new(707, format!("{at} is {x}, which JSON has no text for"))
        })?),
        (HostValue::List(items), TypeInfo::List(element)) => {
            let item = |(i, v)| json(types, v, *element, &format!("{at}[{i}]"));
            Value::Array(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
        }
        (HostValue::Record(items), TypeInfo::Tuple(tys)) => {
            let item = |(i, (v, ty)): (usize, (&HostValue, &TypeId))| json(types, v, *ty, &format!("{at}[{i}]"));
            Value::Array(items.iter().zip(tys).enumerate().map(item).collect::<Result<_, _>>()?)
        }
        (HostValue::Record(items), TypeInfo::Struct { fields, .. }) => {
            let mut out = Map::new();
            for (item, (name, ty)) in items.iter().zip(fields) {
                let name = name.to_string();
                let value = json(types, item, *ty, &step(&name))?;
                out.insert(name, value);
            }
            Value::Object(out)
        }
        (HostValue::Dict(entries), TypeInfo::Dict(_, element)) => {
            let mut out = Map::new();
            for (key, item) in entries {
                let key = match key {
                    HostKey::Str(s) => s.to_string(),
                    HostKey::Int(i) => i.to_string(),
                    HostKey::Bool(b) => b.to_string(),
                };
                let value = json(types, item, *element, &step(&key))?;
                out.insert(key, value);
            }
            Value::Object(out)
        }
        _ => Value::Null,
    })
}
