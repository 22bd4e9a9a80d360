//! GGUF files (versions 2 and 3): metadata by key and tensors by name.
//!
//! Nothing in a file is believed before it is compared with the bytes that are left: counts,
//! lengths, sizes and offsets. What is refused is told with its place.

use super::files;
use crate::fault::{Fault, shown};
use crate::storage::Storage;
use crate::tensor::{ALIGN, Buffer, Tensor, bytes_of};
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tessera_base::{Blocks, DType};

/// A metadata value. Lists stay bytes of the file; they have been walked through once.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    List(List<'a>),
}

/// A list: the number of its elements' type, how many they are, their bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct List<'a> {
    kind: u32,
    count: u64,
    bytes: &'a [u8],
}

/// What the elements of a tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    Plain(DType),
    Blocks(Blocks),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Info<'a> {
    pub name: &'a str,
    pub elements: Elements,
    /// Row-major; blocks are two dims: their number and their bytes.
    pub shape: Vec<u64>,
    /// Its bytes in the file.
    pub at: Range<usize>,
}

/// A file that has been looked through.
#[derive(Clone, Debug, Default)]
pub struct File<'a> {
    pub meta: Vec<(&'a str, Value<'a>)>,
    pub tensors: Vec<Info<'a>>,
}

const TEXT: u32 = 8;
const LIST: u32 = 9;
/// Lists in lists, at most.
const NESTED_MAX: u32 = 2;
/// Bytes of the shortest entries: key length, type, value; name length, rank, type, offset.
const META_MIN: u64 = 13;
const INFO_MIN: u64 = 24;

/// Bytes of a number or bool of this type.
fn width(kind: u32) -> Option<usize> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// What may stand for the elements of a tensor by its number in the file.
fn elements(kind: u32) -> Result<Elements, String> {
    use Elements::{Blocks as B, Plain};
    Ok(match kind {
        0 => Plain(DType::F32),
        1 => Plain(DType::F16),
        2 => B(Blocks::Q4_0),
        3 => B(Blocks::Q4_1),
        6 => B(Blocks::Q5_0),
        7 => B(Blocks::Q5_1),
        8 => B(Blocks::Q8_0),
        12 => B(Blocks::Q4K),
        13 => B(Blocks::Q5K),
        14 => B(Blocks::Q6K),
        24 => Plain(DType::I8),
        25 => Plain(DType::I16),
        26 => Plain(DType::I32),
        27 => Plain(DType::I64),
        28 => Plain(DType::F64),
        30 => Plain(DType::Bf16),
        _ => {
            let known = [(9, "Q8_1"), (10, "Q2_K"), (11, "Q3_K"), (15, "Q8_K"), (20, "IQ4_NL"), (23, "IQ4_XS")];
            let name = known.iter().find(|(n, _)| *n == kind).map_or(String::new(), |(_, name)| format!(" ({name})"));
            return Err(format!("elements of type {kind}{name} have no counterpart here"));
        }
    })
}

/// The bytes that are left, with the position for messages.
struct Reader<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn left(&self) -> u64 {
        (self.all.len() - self.at) as u64
    }

    fn take(&mut self, n: u64, what: &str) -> Result<&'a [u8], String> {
        if n > self.left() {
            return Err(format!(
                "it ends inside {what}: {n} bytes are needed at {} and {} are left",
                self.at,
                self.left()
            ));
        }
        let start = self.at;
        self.at += n as usize;
        Ok(&self.all[start..self.at])
    }

    fn word<const N: usize>(&mut self, what: &str) -> Result<[u8; N], String> {
        let bytes = self.take(N as u64, what)?;
        Ok(bytes.first_chunk::<N>().copied().unwrap_or([0; N]))
    }

    fn u32(&mut self, what: &str) -> Result<u32, String> {
        self.word(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64, String> {
        self.word(what).map(u64::from_le_bytes)
    }

    fn text(&mut self, what: &str) -> Result<&'a str, String> {
        let n = self.u64(what)?;
        let at = self.at;
        std::str::from_utf8(self.take(n, what)?).map_err(|_| format!("{what} at {at} is not UTF-8 text"))
    }

    fn value(&mut self, kind: u32, what: &str) -> Result<Value<'a>, String> {
        Ok(match kind {
            0 => Value::Unsigned(self.word::<1>(what)?[0].into()),
            1 => Value::Int((self.word::<1>(what)?[0] as i8).into()),
            2 => Value::Unsigned(u16::from_le_bytes(self.word(what)?).into()),
            3 => Value::Int(i16::from_le_bytes(self.word(what)?).into()),
            4 => Value::Unsigned(self.u32(what)?.into()),
            5 => Value::Int(i32::from_le_bytes(self.word(what)?).into()),
            6 => Value::Float(f32::from_le_bytes(self.word(what)?).into()),
            7 => Value::Bool(self.word::<1>(what)?[0] != 0),
            TEXT => Value::Text(self.text(what)?),
            LIST => Value::List(self.list(what, 1)?),
            10 => Value::Unsigned(self.u64(what)?),
            11 => Value::Int(i64::from_le_bytes(self.word(what)?)),
            12 => Value::Float(f64::from_le_bytes(self.word(what)?)),
            _ => return Err(format!("{what} has the type {kind}, which does not exist")),
        })
    }

    fn list(&mut self, what: &str, depth: u32) -> Result<List<'a>, String> {
        let kind = self.u32(what)?;
        let count = self.u64(what)?;
        let start = self.at;
        if let Some(width) = width(kind) {
            let bytes = count.saturating_mul(width as u64);
            self.take(bytes, what)?;
        } else if kind == TEXT && count <= self.left() / 8 {
            for _ in 0..count {
                self.text(what)?;
            }
        } else if kind == LIST && depth < NESTED_MAX && count <= self.left() / 12 {
            for _ in 0..count {
                self.list(what, depth + 1)?;
            }
        } else {
            return Err(format!("{what} is a list of {count} elements of type {kind}, which cannot be"));
        }
        Ok(List { kind, count, bytes: &self.all[start..self.at] })
    }

    fn info(&mut self, i: u64) -> Result<(&'a str, Elements, Vec<u64>, u64), String> {
        let name = self.text(&format!("the name of tensor {i}"))?;
        let what = format!("the description of tensor `{name}`");
        let rank = self.u32(&what)?;
        if rank > 4 {
            return Err(format!("tensor `{name}` has {rank} dims, and there are at most 4"));
        }
        let mut shape = (0..rank).map(|_| self.u64(&what)).collect::<Result<Vec<u64>, _>>()?;
        shape.reverse();
        let elements = elements(self.u32(&what)?).map_err(|e| format!("tensor `{name}`: {e}"))?;
        if let Elements::Blocks(b) = elements {
            let (elems, bytes) = (b.elems() as u64, b.bytes() as u64);
            let Some(last) = shape.last_mut().filter(|n| n.is_multiple_of(elems)) else {
                return Err(format!("the rows of tensor `{name}` are no whole blocks of {elems} numbers"));
            };
            *last /= elems;
            shape.push(bytes);
        }
        Ok((name, elements, shape, self.u64(&what)?))
    }
}

impl Elements {
    fn dtype(self) -> DType {
        match self {
            Elements::Plain(d) => d,
            Elements::Blocks(_) => DType::U8,
        }
    }
}

/// Looks through a whole file.
///
/// # Errors
/// What does not fit, lower case, without a full stop.
pub fn parse(all: &[u8]) -> Result<File<'_>, String> {
    let mut r = Reader { all, at: 0 };
    if r.take(4, "its first word")? != b"GGUF" {
        return Err("it does not begin with `GGUF`".into());
    }
    match r.u32("its version")? {
        2 | 3 => {}
        v if v.swap_bytes() <= 3 => return Err("its numbers are big-endian".into()),
        v => return Err(format!("it has version {v}, and 2 and 3 are known")),
    }
    let (tensors, keys) = (r.u64("its header")?, r.u64("its header")?);
    if tensors > r.left() / INFO_MIN || keys > r.left() / META_MIN {
        return Err(format!("it says that it has {tensors} tensors and {keys} keys, for which it is too short"));
    }
    let mut file = File::default();
    for i in 0..keys {
        let key = r.text(&format!("key {i}"))?;
        let what = format!("the value of `{key}`");
        let kind = r.u32(&what)?;
        file.meta.push((key, r.value(kind, &what)?));
    }
    let infos = (0..tensors).map(|i| r.info(i)).collect::<Result<Vec<_>, _>>()?;
    let align = match file.get("general.alignment") {
        None => 32,
        Some(Value::Unsigned(n)) if n.is_power_of_two() && *n <= 1 << 20 => *n,
        Some(_) => return Err("`general.alignment` is no power of two".into()),
    };
    let start = (r.at as u64).next_multiple_of(align);
    for (name, elements, shape, offset) in infos {
        let bytes = bytes_of(elements.dtype(), &shape);
        let from = start.checked_add(offset).filter(|_| offset.is_multiple_of(align));
        let to = from.zip(bytes).and_then(|(from, n)| from.checked_add(n)).filter(|to| *to <= all.len() as u64);
        let Some((from, to)) = from.zip(to) else {
            let size = bytes.map_or("2^64 or more".into(), |n| n.to_string());
            return Err(format!(
                "tensor `{name}` has {size} bytes at {offset} behind {start}, and the file has {}",
                all.len()
            ));
        };
        file.tensors.push(Info { name, elements, shape, at: from as usize..to as usize });
    }
    file.check_tensors()?;
    Ok(file)
}

impl<'a> File<'a> {
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.meta.iter().find(|(k, _)| *k == key).map(|(_, v)| v)
    }

    /// No two tensors have one name or share bytes.
    fn check_tensors(&self) -> Result<(), String> {
        let mut names = HashSet::new();
        if let Some(twice) = self.tensors.iter().find(|t| !names.insert(t.name)) {
            return Err(format!("two tensors are named `{}`", twice.name));
        }
        let mut places: Vec<&Info> = self.tensors.iter().filter(|t| !t.at.is_empty()).collect();
        places.sort_by_key(|t| t.at.start);
        match places.windows(2).find(|w| w[0].at.end > w[1].at.start) {
            Some(w) => Err(format!("tensors `{}` and `{}` share bytes", w[0].name, w[1].name)),
            None => Ok(()),
        }
    }
}

impl<'a> List<'a> {
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The texts of a list of texts, else nothing.
    pub fn texts(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut r = Reader { all: self.bytes, at: 0 };
        let count = if self.kind == TEXT { self.count } else { 0 };
        (0..count).map_while(move |_| r.text("").ok())
    }

    /// The numbers of a list of numbers, else nothing.
    pub fn numbers(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let mut r = Reader { all: self.bytes, at: 0 };
        let (kind, count) = (self.kind, if width(self.kind).is_some() { self.count } else { 0 });
        (0..count).map_while(move |_| r.value(kind, "").ok())
    }
}

impl Value<'_> {
    /// As programs see it: numbers and bools as they are written in the language, texts as they
    /// are, lists in brackets; `None` for lists of texts or lists, which have no such form.
    pub fn shown(&self) -> Option<String> {
        Some(match self {
            Value::Int(n) => n.to_string(),
            Value::Unsigned(n) => n.to_string(),
            Value::Float(x) => crate::number::float_repr(*x),
            Value::Bool(b) => (if *b { "True" } else { "False" }).into(),
            Value::Text(t) => (*t).to_owned(),
            Value::List(l) if width(l.kind).is_some() => {
                let parts: Vec<String> = l.numbers().filter_map(|v| v.shown()).collect();
                format!("[{}]", parts.join(", "))
            }
            Value::List(_) => return None,
        })
    }
}

/// Calls `use_it` with the file looked through. The file is memory-mapped meanwhile.
pub fn with_file<T>(path: &Path, use_it: impl FnOnce(&[u8], File) -> Result<T, Fault>) -> Result<T, Fault> {
    let bad = |why: String| Fault::new(707, format!("`{}` is not a readable GGUF file: {why}", shown(path)));
    let (reader, len) = files::open(path)?;
    if len == 0 {
        return Err(bad("it is empty".into()));
    }
    // SAFETY: the mapping lives in this call only; a file that shrinks meanwhile is the one
    // hazard of every memory mapping.
    let map = unsafe { memmap2::Mmap::map(reader.get_ref()) }.map_err(|e| files::read_fault(path, &e))?;
    let file = parse(&map).map_err(bad)?;
    use_it(&map, file)
}

/// Every tensor by name, in the file's order; blocks as bytes.
///
/// All lie in one piece of memory, which lives as long as one of them: large pieces get large
/// pages, and a model is read from end to end for every token.
pub fn read(path: &Path) -> Result<Vec<(String, Tensor)>, Fault> {
    with_file(path, |bytes, file| {
        // The file holds them side by side, so that their room does not overflow.
        let room = |t: &Info| t.at.len().next_multiple_of(ALIGN);
        let mut buffer = Buffer::new(file.tensors.iter().map(|t| room(t) as u64).sum(), false)?;
        let mut offset = 0;
        for t in &file.tensors {
            buffer.bytes_mut()[offset..offset + t.at.len()].copy_from_slice(&bytes[t.at.clone()]);
            offset += room(t);
        }
        let (storage, mut offset) = (Arc::new(Storage::from(buffer)), 0);
        let tensor = |t: &Info| {
            let (dtype, shape, at) = (t.elements.dtype(), t.shape.clone(), offset);
            offset += room(t);
            (t.name.to_owned(), Tensor { dtype, shape, storage: storage.clone(), offset: at, parts: None })
        };
        Ok(file.tensors.iter().map(tensor).collect())
    })
}

/// The metadata by key, as texts; lists of texts are left out.
pub fn read_meta(path: &Path) -> Result<Vec<(String, String)>, Fault> {
    with_file(path, |_, file| Ok(file.meta.iter().filter_map(|(k, v)| Some(((*k).to_owned(), v.shown()?))).collect()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A file as it is written: keys with type and bytes, tensors with dims, type and bytes.
    pub fn file(keys: &[(&str, u32, Vec<u8>)], tensors: &[(&str, &[u64], u32, Vec<u8>)]) -> Vec<u8> {
        let mut out = b"GGUF\x03\0\0\0".to_vec();
        let text = |out: &mut Vec<u8>, t: &str| {
            out.extend((t.len() as u64).to_le_bytes());
            out.extend(t.as_bytes());
        };
        out.extend((tensors.len() as u64).to_le_bytes());
        out.extend((keys.len() as u64).to_le_bytes());
        for (key, kind, value) in keys {
            text(&mut out, key);
            out.extend(kind.to_le_bytes());
            out.extend(value);
        }
        let mut offset = 0u64;
        for (name, dims, kind, data) in tensors {
            text(&mut out, name);
            out.extend((dims.len() as u32).to_le_bytes());
            dims.iter().for_each(|d| out.extend(d.to_le_bytes()));
            out.extend(kind.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset = (offset + data.len() as u64).next_multiple_of(32);
        }
        for (.., data) in tensors {
            out.resize(out.len().next_multiple_of(32), 0);
            out.extend(data);
        }
        out
    }

    fn sample() -> Vec<u8> {
        let words =
            [8u32.to_le_bytes().to_vec(), 2u64.to_le_bytes().to_vec(), b"\x01\0\0\0\0\0\0\0a".to_vec(), vec![0; 8]];
        let numbers = [5u32.to_le_bytes().to_vec(), 2u64.to_le_bytes().to_vec(), vec![1, 0, 0, 0], vec![0xff; 4]];
        let nested = [
            9u32.to_le_bytes().to_vec(),
            1u64.to_le_bytes().to_vec(),
            vec![7, 0, 0, 0],
            1u64.to_le_bytes().to_vec(),
            vec![1],
        ];
        file(
            &[
                ("n", 4, vec![7, 0, 0, 0]),
                ("eps", 6, 1e-5f32.to_le_bytes().to_vec()),
                ("yes", 7, vec![1]),
                ("name", 8, b"\x02\0\0\0\0\0\0\0ab".to_vec()),
                ("words", 9, words.concat()),
                ("numbers", 9, numbers.concat()),
                ("nested", 9, nested.concat()),
            ],
            &[("w", &[32, 2], 3, (0..40).collect()), ("b", &[2], 0, 1f32.to_le_bytes().repeat(2))],
        )
    }

    #[test]
    fn a_file_is_read() -> Result<(), String> {
        let bytes = sample();
        let f = parse(&bytes)?;
        let shown: Vec<_> = f.meta.iter().map(|(k, v)| (*k, v.shown())).collect();
        let want = |t: &str| Some(t.to_owned());
        let texts =
            [("n", want("7")), ("eps", want("9.999999747378752e-06")), ("yes", want("True")), ("name", want("ab"))];
        assert_eq!(shown[..4], texts);
        assert_eq!(shown[4..], [("words", None), ("numbers", want("[1, -1]")), ("nested", None)]);
        let Some(Value::List(words)) = f.get("words") else { return Err("no list".into()) };
        assert_eq!((words.count(), words.texts().collect::<Vec<_>>()), (2, vec!["a", ""]));
        assert_eq!(
            (f.tensors[0].shape.as_slice(), f.tensors[0].elements),
            (&[2, 1, 20][..], Elements::Blocks(Blocks::Q4_1))
        );
        assert_eq!(bytes[f.tensors[0].at.clone()], (0..40).collect::<Vec<u8>>());
        assert_eq!(
            (f.tensors[1].shape.as_slice(), &bytes[f.tensors[1].at.clone()]),
            (&[2][..], &[0, 0, 128, 63, 0, 0, 128, 63][..])
        );
        Ok(())
    }

    fn refused(bytes: &[u8]) -> String {
        parse(bytes).err().unwrap_or_default()
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let one = |dims: &[u64], kind, len| file(&[], &[("w", dims, kind, vec![0; len])]);
        assert_eq!(refused(b"GGML"), "it does not begin with `GGUF`");
        assert_eq!(refused(b"GGUF\0\0\0\x03"), "its numbers are big-endian");
        assert_eq!(refused(b"GGUF\x01\0\0\0"), "it has version 1, and 2 and 3 are known");
        assert!(refused(&one(&[31], 8, 34)).contains("no whole blocks of 32"));
        assert!(refused(&one(&[], 8, 34)).contains("no whole blocks of 32"));
        assert!(refused(&one(&[32], 8, 33)).contains("has 34 bytes at 0"));
        assert!(refused(&one(&[1; 5], 0, 4)).contains("has 5 dims"));
        assert!(refused(&one(&[256], 10, 84)).contains("type 10 (Q2_K)"));
        assert!(refused(&one(&[u64::MAX, 2], 24, 4)).contains("has 2^64 or more bytes"));
        let twice = file(&[], &[("w", &[1], 24, vec![0]), ("w", &[1], 24, vec![0])]);
        assert_eq!(refused(&twice), "two tensors are named `w`");
        let mut over = file(&[], &[("v", &[33], 24, vec![0; 33]), ("w", &[1], 24, vec![0])]);
        let at = over.windows(8).rposition(|w| w == 64u64.to_le_bytes()).unwrap_or(0);
        over[at] = 32;
        assert_eq!(refused(&over), "tensors `v` and `w` share bytes");
        let odd = file(&[("general.alignment", 4, vec![3, 0, 0, 0])], &[]);
        assert_eq!(refused(&odd), "`general.alignment` is no power of two");
        let mut many = sample();
        many[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(refused(&many).contains("for which it is too short"));
    }

    /// Whatever the bytes are, there is an answer, and lists can be walked through.
    fn survives(bytes: &[u8]) {
        if let Ok(f) = parse(bytes) {
            for (_, v) in &f.meta {
                v.shown();
                if let Value::List(l) = v {
                    assert!(l.texts().count() as u64 <= l.count() && l.numbers().count() as u64 <= l.count());
                }
            }
            assert!(f.tensors.iter().all(|t| t.at.end <= bytes.len()));
        }
    }

    #[test]
    fn cut_and_changed_files_are_no_danger() {
        let whole = sample();
        for n in 0..whole.len() {
            survives(&whole[..n]);
        }
        let mut state = 1u64;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        const ODD: [u8; 8] = [0, 1, 7, 8, 9, 0x7f, 0x80, 0xff];
        for round in 0..60_000 {
            let mut bytes = whole.clone();
            for _ in 0..=next(4) {
                let at = next(bytes.len());
                bytes[at] = if round % 2 == 0 { ODD[next(8)] } else { next(256) as u8 };
            }
            survives(&bytes);
            let start = 8 * (round % 2);
            let noise: Vec<u8> = (0..next(200)).map(|_| ODD[next(8)]).collect();
            survives(&[&whole[..start * 2 + 8], &noise].concat());
        }
    }
}
