//! JSON as values of types that the checker knows, and back.

use super::files::{too_large, write_fault};
use crate::fault::{Fault, shown};
use crate::host_value::{HostKey, HostValue};
use crate::memory::memory_limit;
use crate::value::{DictObj, Key, TypeId, TypeInfo, TypeTable, list_words, object, record_words, text};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Number, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;
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

/// The values of JSON lines, one a line; lines without anything are none.
///
/// # Errors
/// As of [`read`], with the line; E0707 where `ty` is no list.
pub fn read_lines(types: &TypeTable, path: &Path, bytes: &[u8], extra: bool, ty: TypeId) -> Result<HostValue, Fault> {
    let TypeInfo::List(element) = types.get(ty) else { return Err(no_list(path)) };
    let taken = Cell::new(bytes.len() as u64);
    let reader = Reader { types, path, extra, taken, fault: RefCell::new(None) };
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut items = vec![];
    for (line, text) in (1..).zip(text.split(|b| *b == b'\n')) {
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let mut json = serde_json::Deserializer::from_slice(text);
        let at = At::Line(line);
        let value = Wanted { reader: &reader, ty: *element, at: &at }.deserialize(&mut json);
        items.push(value.and_then(|value| json.end().map(|()| value)).map_err(|e| {
            // The parser's line is always the first one.
            let why = e.to_string().replace(" at line 1 column", " at column");
            let unreadable =
                || Fault::new(707, format!("line {line} of `{}` is not readable JSON: {why}", shown(path)));
            reader.fault.take().unwrap_or_else(unreadable)
        })?);
    }
    Ok(HostValue::List(items))
}

fn no_list(path: &Path) -> Fault {
    let text = format!("`{}` holds a value on each line, and what is asked for is no list", shown(path));
    Fault::new(707, text).note("JSON lines are a `list[T]`, of which each element is a line")
}

/// A number that is an int. The parser has `-0` as a float, since no int has the sign.
pub fn int_of(n: &Number) -> Option<i64> {
    let negative_zero = |x: &f64| *x == 0.0 && x.is_sign_negative();
    n.as_i64().or_else(|| n.as_f64().filter(negative_zero).map(|_| 0))
}

/// The steps that lead to a value. They are put into words only where a fault is told.
enum At<'a> {
    Top,
    /// The value on a line.
    Line(usize),
    Item(&'a At<'a>, usize),
    Entry(&'a At<'a>, &'a str),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Top | At::Line(_) => Ok(()),
            At::Item(list, i) => write!(f, "{list}[{i}]"),
            At::Entry(At::Top | At::Line(_), name) => f.write_str(name),
            At::Entry(object, name) => write!(f, "{object}.{name}"),
        }
    }
}

impl At<'_> {
    fn told(&self) -> String {
        let steps = self.to_string();
        let what = if steps.is_empty() { "the value".to_owned() } else { format!("`{}`", shown(steps)) };
        self.line().map_or(what.clone(), |line| format!("{what} on line {line}"))
    }

    /// The line of a file of lines.
    fn line(&self) -> Option<usize> {
        match self {
            At::Top => None,
            At::Line(line) => Some(*line),
            At::Item(of, _) | At::Entry(of, _) => of.line(),
        }
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
            (Value::Number(n), TypeInfo::Int) if int_of(n).is_some() => HostValue::Int(int_of(n).unwrap_or_default()),
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

/// Writes a value as JSON: one line, and its end; `by_line` each element of a list on a line of its own. Floats are written in the
/// fewest digits that read back the same. Nothing is made of the value beside what is written.
///
/// # Errors
/// E0706 where it cannot be written, E0707 where a float is NaN or infinite, which JSON has no text for, or where `by_line` is
/// asked of what is no list.
///
/// # Safety
/// `word` is a live value of type `ty`.
pub unsafe fn write(
    out: &mut dyn Write,
    path: &Path,
    types: &TypeTable,
    word: u64,
    ty: TypeId,
    by_line: bool,
) -> Result<(), Fault> {
    let fault = RefCell::new(None);
    let put = |out: &mut dyn Write, word, ty, at: &At<'_>| {
        let written = serde_json::to_writer(&mut *out, &Written { types, word, ty, at, fault: &fault });
        let written = written.map_err(std::io::Error::from).and_then(|()| out.write_all(b"\n"));
        written.map_err(|e| fault.take().unwrap_or_else(|| write_fault(path, &e)))
    };
    match types.get(ty) {
        TypeInfo::List(element) if by_line => {
            // SAFETY: the caller's promise: a live list, whose words are of its element type.
            let words = unsafe { list_words(word) };
            words.iter().zip(1..).try_for_each(|(word, line)| put(out, *word, *element, &At::Line(line)))
        }
        _ if by_line => Err(no_list(path)),
        _ => put(out, word, ty, &At::Top),
    }
}

/// A live value that is written. It is read where it is.
struct Written<'a> {
    types: &'a TypeTable,
    word: u64,
    ty: TypeId,
    at: &'a At<'a>,
    fault: &'a RefCell<Option<Fault>>,
}

impl Written<'_> {
    fn part<'b>(&'b self, word: u64, ty: TypeId, at: &'b At<'b>) -> Written<'b> {
        Written { types: self.types, word, ty, at, fault: self.fault }
    }

    fn sequence<S: Serializer>(
        &self,
        out: S,
        parts: impl ExactSizeIterator<Item = (u64, TypeId)>,
    ) -> Result<S::Ok, S::Error> {
        let mut list = out.serialize_seq(Some(parts.len()))?;
        for (i, (word, ty)) in parts.enumerate() {
            list.serialize_element(&self.part(word, ty, &At::Item(self.at, i)))?;
        }
        list.end()
    }
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let word = self.word;
        match self.types.get(self.ty) {
            TypeInfo::Int => out.serialize_i64(word as i64),
            TypeInfo::Bool => out.serialize_bool(word != 0),
            TypeInfo::Float => {
                let x = f64::from_bits(word);
                if x.is_finite() {
                    return out.serialize_f64(x);
                }
                let text = format!("{} is {x}, which JSON has no text for", self.at.told());
                self.fault.replace(Some(Fault::new(707, text)));
                Err(serde::ser::Error::custom("a value has no text"))
            }
            // SAFETY: a live string.
            TypeInfo::Str => out.serialize_str(unsafe { text(word) }),
            TypeInfo::List(element) => {
                // SAFETY: a live list, whose words are of its element type.
                self.sequence(out, unsafe { list_words(word) }.iter().map(|w| (*w, *element)))
            }
            TypeInfo::Tuple(tys) => {
                // SAFETY: a live record of these fields.
                let words = unsafe { record_words(word) };
                self.sequence(out, words.iter().zip(tys).map(|(w, ty)| (*w, *ty)))
            }
            TypeInfo::Struct { fields, .. } => {
                // SAFETY: a live record of these fields.
                let words = unsafe { record_words(word) };
                let mut object = out.serialize_map(Some(fields.len()))?;
                for (word, (name, ty)) in words.iter().zip(fields) {
                    object.serialize_entry(&**name, &self.part(*word, *ty, &At::Entry(self.at, name)))?;
                }
                object.end()
            }
            TypeInfo::Dict(_, value) => {
                // SAFETY: a live dict with values of this type.
                let dict: &DictObj = unsafe { object(word) };
                let mut object = out.serialize_map(Some(dict.map.len()))?;
                for (key, word) in &dict.map {
                    let key = match key {
                        Key::Str(s) => s.get().text().to_owned(),
                        Key::Int(i) => i.to_string(),
                        Key::Bool(b) => b.to_string(),
                    };
                    object.serialize_entry(&key, &self.part(*word, *value, &At::Entry(self.at, &key)))?;
                }
                object.end()
            }
            _ => out.serialize_unit(),
        }
    }
}
