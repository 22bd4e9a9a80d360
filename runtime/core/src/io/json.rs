//! JSON as values of types that the checker knows, and back.

use super::files::too_large;
use crate::fault::{Fault, shown};
use crate::host_value::{HostKey, HostValue};
use crate::memory::memory_limit;
use crate::value::{TypeId, TypeInfo, TypeTable};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tessera_base::near::nearest;

/// The value of a type in the bytes of a file.
///
/// # Errors
/// E0707 where it is no JSON, with line and column, or where a part is of another type than asked for or a key is there twice,
/// with the steps that lead there; without `extra` also where an object has more than the struct. E0710 where the values take
/// more memory than can be had.
pub fn read(types: &TypeTable, path: &Path, bytes: &[u8], extra: bool, ty: TypeId) -> Result<HostValue, Fault> {
    let taken = Cell::new(bytes.len() as u64);
    let reader = Reader { types, path, extra, taken, fault: RefCell::new(None) };
    let mut json = serde_json::Deserializer::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    let value = Wanted { reader: &reader, ty, at: &At::Top }.deserialize(&mut json);
    value.and_then(|value| json.end().map(|()| value)).map_err(|e| {
        let unreadable = || Fault::new(707, format!("`{}` is not readable JSON: {e}", shown(path)));
        reader.fault.take().unwrap_or_else(unreadable)
    })
}

/// The steps that lead to a value. They are put into words only where a fault is told.
enum At<'a> {
    Top,
    Item(&'a At<'a>, usize),
    Entry(&'a At<'a>, &'a str),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Top => Ok(()),
            At::Item(list, i) => write!(f, "{list}[{i}]"),
            At::Entry(At::Top, name) => f.write_str(name),
            At::Entry(object, name) => write!(f, "{object}.{name}"),
        }
    }
}

impl At<'_> {
    fn told(&self) -> String {
        if matches!(self, At::Top) { "the value".to_owned() } else { format!("`{}`", shown(self.to_string())) }
    }
}

struct Reader<'a> {
    types: &'a TypeTable,
    path: &'a Path,
    extra: bool,
    /// About how many bytes the text and its values take.
    taken: Cell<u64>,
    /// What is wrong with a value: the errors of the parser are texts.
    fault: RefCell<Option<Fault>>,
}

impl Reader<'_> {
    fn fail<E: Error>(&self, fault: Fault) -> E {
        self.fault.replace(Some(fault));
        E::custom("a value is wrong")
    }

    /// Counts what a value takes, before there is more of it than the memory has.
    fn take<E: Error>(&self, bytes: usize) -> Result<(), E> {
        self.taken.set(self.taken.get().saturating_add(bytes as u64));
        let limit = memory_limit();
        if self.taken.get() <= limit {
            return Ok(());
        }
        Err(self.fail(too_large(self.path, "holds values of more than", limit)))
    }
}

/// A value of a type that comes next in the text. It is made as it is read, so that nothing is kept beside it.
struct Wanted<'a> {
    reader: &'a Reader<'a>,
    ty: TypeId,
    at: &'a At<'a>,
}

impl<'de> DeserializeSeed<'de> for Wanted<'_> {
    type Value = HostValue;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<HostValue, D::Error> {
        self.reader.take(size_of::<HostValue>())?;
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Wanted<'_> {
    type Value = HostValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&wanted_text(self.info()))
    }

    fn visit_unit<E: Error>(self) -> Result<HostValue, E> {
        self.scalar(&Value::Null)
    }

    fn visit_bool<E: Error>(self, b: bool) -> Result<HostValue, E> {
        self.scalar(&b.into())
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<HostValue, E> {
        self.scalar(&n.into())
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<HostValue, E> {
        self.scalar(&n.into())
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<HostValue, E> {
        self.scalar(&x.into())
    }

    fn visit_str<E: Error>(self, s: &str) -> Result<HostValue, E> {
        if !matches!(self.info(), TypeInfo::Str) {
            return self.scalar(&s.into());
        }
        self.reader.take(s.len())?;
        Ok(HostValue::Str(s.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<HostValue, A::Error> {
        let mut items = vec![];
        let tys: &[TypeId] = match self.info() {
            TypeInfo::List(element) => {
                while let Some(item) = list.next_element_seed(self.part(*element, &At::Item(self.at, items.len())))? {
                    items.push(item);
                }
                return Ok(HostValue::List(items));
            }
            TypeInfo::Tuple(tys) => tys,
            _ => &[],
        };
        for (i, ty) in tys.iter().enumerate() {
            items.extend(list.next_element_seed(self.part(*ty, &At::Item(self.at, i)))?);
        }
        let mut count = items.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        match self.info() {
            TypeInfo::Tuple(tys) if tys.len() == count => Ok(HostValue::Record(items)),
            _ => Err(self.other(&format!("a list of {count}"))),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<HostValue, A::Error> {
        match self.info() {
            TypeInfo::Dict(_, element) => self.dict(object, *element),
            TypeInfo::Struct { fields, .. } => self.fields(object, fields),
            _ => {
                let mut count = 0;
                while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Err(self.other(&format!("an object of {count}")))
            }
        }
    }
}

impl<'a> Wanted<'a> {
    fn info(&self) -> &'a TypeInfo {
        self.reader.types.get(self.ty)
    }

    fn part<'b>(&self, ty: TypeId, at: &'b At<'b>) -> Wanted<'b>
    where
        'a: 'b,
    {
        Wanted { reader: self.reader, ty, at }
    }

    fn scalar<E: Error>(&self, value: &Value) -> Result<HostValue, E> {
        Ok(match (value, self.info()) {
            (Value::Number(n), TypeInfo::Int) if n.is_i64() => HostValue::Int(n.as_i64().unwrap_or_default()),
            (Value::Number(n), TypeInfo::Float) => HostValue::Float(n.as_f64().unwrap_or(f64::NAN)),
            (Value::Bool(b), TypeInfo::Bool) => HostValue::Bool(*b),
            (Value::Null, TypeInfo::None) => HostValue::None,
            (value, _) => return Err(self.other(&kind(value))),
        })
    }

    fn dict<'de, A: MapAccess<'de>>(&self, mut object: A, element: TypeId) -> Result<HostValue, A::Error> {
        let (mut out, mut seen) = (vec![], BTreeSet::new());
        while let Some(key) = object.next_key::<String>()? {
            let key: Arc<str> = key.into();
            self.reader.take(2 * size_of::<HostKey>() + key.len())?;
            if !seen.insert(key.clone()) {
                return Err(self.twice(&key));
            }
            let value = object.next_value_seed(self.part(element, &At::Entry(self.at, &key)))?;
            out.push((HostKey::Str(key), value));
        }
        Ok(HostValue::Dict(out))
    }

    /// The fields of a struct: all of them, and no other ones unless those are left aside.
    fn fields<'de, A: MapAccess<'de>>(
        &self,
        mut object: A,
        fields: &[(Arc<str>, TypeId)],
    ) -> Result<HostValue, A::Error> {
        let mut values = vec![None; fields.len()];
        let mut more: Vec<String> = vec![];
        while let Some(key) = object.next_key::<String>()? {
            match fields.iter().zip(&mut values).find(|((name, _), _)| **name == *key) {
                Some((_, Some(_))) => return Err(self.twice(&key)),
                Some(((_, ty), value)) => {
                    *value = Some(object.next_value_seed(self.part(*ty, &At::Entry(self.at, &key)))?);
                }
                None => {
                    object.next_value::<IgnoredAny>()?;
                    // They are told or compared with a name that is missing: some are enough.
                    if more.len() < 100 {
                        more.push(key);
                    }
                }
            }
        }
        if let Some(((missing, _), _)) = fields.iter().zip(&values).find(|(_, value)| value.is_none()) {
            let fault = Fault::new(707, format!("{} has no `{missing}`", self.of()));
            return Err(self.reader.fail(match nearest(missing, more.iter().map(String::as_str)) {
                Some(near) => fault.note(format!("it has `{}`", shown(near))),
                None => fault,
            }));
        }
        match more.first() {
            Some(more) if !self.reader.extra => {
                let text = format!("{} has `{}`, which the struct does not have", self.of(), shown(more));
                let fault = Fault::new(707, text).note("`extra=True` leaves aside what the file has more");
                Err(self.reader.fail(fault))
            }
            _ => Ok(HostValue::Record(values.into_iter().flatten().collect())),
        }
    }

    /// The object in the file.
    fn of(&self) -> String {
        let file = shown(self.reader.path);
        if matches!(self.at, At::Top) { format!("`{file}`") } else { format!("{} in `{file}`", self.at.told()) }
    }

    fn twice<E: Error>(&self, key: &str) -> E {
        let text = format!("{} has `{}` twice", self.of(), shown(key));
        self.reader.fail(Fault::new(707, text).note("which of the two values is meant, no one can tell"))
    }

    /// A value of another type.
    fn other<E: Error>(&self, found: &str) -> E {
        let (at, file) = (self.at.told(), shown(self.reader.path));
        let text = format!("{at} in `{file}` is {found}, and {} is asked for", wanted_text(self.info()));
        self.reader.fail(Fault::new(707, text))
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
    Ok(format!("{}\n", json(types, value, ty, &At::Top)?))
}

fn json(types: &TypeTable, value: &HostValue, ty: TypeId, at: &At<'_>) -> Result<Value, Fault> {
    Ok(match (value, types.get(ty)) {
        (HostValue::Int(n), _) => Value::from(*n),
        (HostValue::Bool(b), _) => Value::from(*b),
        (HostValue::Str(s), _) => Value::from(&**s),
        (HostValue::Float(x), _) => Value::Number(
            Number::from_f64(*x)
                .ok_or_else(|| Fault::new(707, format!("{} is {x}, which JSON has no text for", at.told())))?,
        ),
        (HostValue::List(items), TypeInfo::List(element)) => {
            let item = |(i, v)| json(types, v, *element, &At::Item(at, i));
            Value::Array(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
        }
        (HostValue::Record(items), TypeInfo::Tuple(tys)) => {
            let item = |(i, (v, ty)): (usize, (&HostValue, &TypeId))| json(types, v, *ty, &At::Item(at, i));
            Value::Array(items.iter().zip(tys).enumerate().map(item).collect::<Result<_, _>>()?)
        }
        (HostValue::Record(items), TypeInfo::Struct { fields, .. }) => {
            let mut out = Map::new();
            for (item, (name, ty)) in items.iter().zip(fields) {
                let name = name.to_string();
                let value = json(types, item, *ty, &At::Entry(at, &name))?;
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
                let value = json(types, item, *element, &At::Entry(at, &key))?;
                out.insert(key, value);
            }
            Value::Object(out)
        }
        _ => Value::Null,
    })
}
