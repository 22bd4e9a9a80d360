//! The columns of tables: what is asked for, and what was read.

use crate::fault::{Fault, reserve, reserve_text, room, shown};
use crate::host_value::HostValue;
use crate::memory::count_here;
use crate::pool::Pool;
use crate::tensor::Tensor;
use crate::value::{TypeTable, new_list, new_str, new_tensor};
use crate::world;
use std::borrow::Cow;
use tessera_base::DType;
use tessera_base::near::nearest;

/// What a column is read as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A tensor of rank 1.
    Number(DType),
    Text,
}

/// A column that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
}

/// The columns of a description: `age f64` on a line, or `name str`.
pub fn described(text: &str) -> Vec<Column> {
    let column = |line: &str| {
        let (name, kind) = line.split_once(' ')?;
        let kind = DType::parse(kind).map_or(Kind::Text, Kind::Number);
        Some(Column { name: name.to_owned(), kind })
    };
    text.lines().filter_map(column).collect()
}

/// Texts one after the other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Texts {
    all: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Texts {
    pub fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len());
    }

    /// The same of a text that may be longer than its part of the file.
    ///
    /// # Errors
    /// E0710 where there is no room for it.
    pub fn push_if_room(&mut self, text: &str) -> Result<(), Fault> {
        reserve_text(&mut self.all, text.len())?;
        reserve(&mut self.ends, 1)?;
        self.push(text);
        Ok(())
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.all.get(start..*end).unwrap_or_default())
    }
}

/// What was read of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cells {
    Numbers(DType, Vec<u8>),
    Texts(Texts),
}

impl Cells {
    pub fn of(kind: Kind) -> Cells {
        match kind {
            Kind::Number(dtype) => Cells::Numbers(dtype, vec![]),
            Kind::Text => Cells::Texts(Texts::default()),
        }
    }

    /// About how many bytes they take as values.
    pub fn bytes(&self) -> u64 {
        match self {
            Cells::Numbers(_, data) => data.len() as u64,
            Cells::Texts(texts) => (texts.all.len() + texts.ends.len() * TEXT_BYTES) as u64,
        }
    }

    /// Room for so many cells more; the letters of texts have theirs when they come.
    ///
    /// # Errors
    /// E0710 where there is none.
    pub fn make_room(&mut self, cells: usize) -> Result<(), Fault> {
        match self {
            Cells::Numbers(dtype, data) => reserve(data, cells.saturating_mul(dtype.bytes())),
            Cells::Texts(texts) => reserve(&mut texts.ends, cells),
        }
    }

    /// The bytes that say what was read.
    fn content(&self) -> [Cow<'_, [u8]>; 2] {
        match self {
            Cells::Numbers(_, data) => [data.into(), vec![].into()],
            Cells::Texts(texts) => {
                let ends: Vec<u8> = texts.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
                [texts.all.as_bytes().into(), ends.into()]
            }
        }
    }
}

/// What a text of a list takes beside its bytes.
const TEXT_BYTES: usize = 64;

/// The columns of some rows that follow each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stretch {
    pub cells: Vec<Cells>,
    pub count: u64,
}

impl Stretch {
    /// Makes room for about so many rows, so that columns need not move while they grow.
    pub fn expect(&mut self, rows: usize) {
        for cells in &mut self.cells {
            match cells {
                Cells::Numbers(dtype, data) => data.reserve((rows + rows / 16) * dtype.bytes()),
                Cells::Texts(texts) => texts.ends.reserve(rows + rows / 16),
            }
        }
    }

    pub fn of(kinds: impl Iterator<Item = Kind>) -> Stretch {
        Stretch { cells: kinds.map(Cells::of).collect(), count: 0 }
    }
}

/// A table as it was read: some rows after the other. They are put together where the values of a program are made, so that
/// each byte is copied once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Columns {
    kinds: Vec<Kind>,
    parts: Vec<Stretch>,
    bytes: u64,
}

impl Columns {
    pub fn of(wanted: &[Column]) -> Columns {
        Columns { kinds: wanted.iter().map(|c| c.kind).collect(), parts: vec![], bytes: 0 }
    }

    /// One column.
    pub fn of_kind(kind: Kind) -> Columns {
        Columns { kinds: vec![kind], parts: vec![], bytes: 0 }
    }

    /// Adds rows at the end.
    pub fn push(&mut self, rows: Stretch) {
        self.bytes += rows.cells.iter().map(Cells::bytes).sum::<u64>();
        if rows.count > 0 {
            self.parts.push(rows);
        }
    }

    #[cfg(test)]
    pub fn parts(&self) -> &[Stretch] {
        &self.parts
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.parts.iter().map(|p| p.count).sum()
    }

    /// About how many bytes they take as values.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A number that says what was read, the same in all processes of a run.
    pub fn hash(&self) -> u64 {
        let parts: Vec<Cow<'_, [u8]>> =
            self.parts.iter().flat_map(|part| part.cells.iter().flat_map(Cells::content)).collect();
        world::hash(&parts.iter().map(|p| &**p).collect::<Vec<_>>())
    }

    /// The words of the columns: tensors, and lists of texts.
    ///
    /// # Errors
    /// E0710 where there is no room for them.
    pub fn words(self, types: &TypeTable, pool: &Pool) -> Result<Vec<u64>, Fault> {
        // Nothing is made before all of it can be.
        room(self.bytes)?;
        let tensors: Vec<Option<Tensor>> =
            (0..self.kinds.len()).map(|at| self.tensor(at, &[self.rows()], pool)).collect::<Result<_, _>>()?;
        let word = |(at, tensor)| match tensor {
            Some(t) => new_tensor(t),
            None => new_list(types, TypeTable::STR, self.texts(at, pool)),
        };
        Ok(tensors.into_iter().enumerate().map(word).collect())
    }

    /// The first column as a matrix, whose rows have so many numbers.
    ///
    /// # Errors
    /// E0710 where there is no room for it.
    pub fn matrix(&self, width: u64, pool: &Pool) -> Result<Tensor, Fault> {
        let shape = [self.rows(), width];
        match self.tensor(0, &shape, pool)? {
            Some(tensor) => Ok(tensor),
            None => Ok(Tensor::new(DType::F32, &shape, true)?),
        }
    }

    /// A column of numbers, put together on all threads.
    fn tensor(&self, at: usize, shape: &[u64], pool: &Pool) -> Result<Option<Tensor>, Fault> {
        let Kind::Number(dtype) = self.kinds[at] else { return Ok(None) };
        let mut tensor = Tensor::new(dtype, shape, false)?;
        let mut rest = tensor.host_mut()?;
        let mut copies = vec![];
        for part in &self.parts {
            let Some(Cells::Numbers(_, data)) = part.cells.get(at) else { continue };
            let (into, behind) = rest.split_at_mut(data.len().min(rest.len()));
            copies.push((into, &data[..]));
            rest = behind;
        }
        pool.each_chunk(&mut copies, 1, &|_, copies| {
            for (into, from) in copies {
                into.copy_from_slice(&from[..into.len()]);
            }
        });
        Ok(Some(tensor))
    }

    /// The words of a column of texts, which all threads make and this one takes over.
    fn texts(&self, at: usize, pool: &Pool) -> Vec<u64> {
        let made = pool.map(self.parts.len(), &|i| match self.parts[i].cells.get(at) {
            Some(Cells::Texts(texts)) => made_elsewhere(|| texts.iter().map(new_str).collect::<Vec<u64>>()),
            _ => (vec![], 0),
        });
        let mut words = Vec::with_capacity(self.rows() as usize);
        for (part, bytes) in made {
            count_here(bytes);
            words.extend(part);
        }
        words
    }
}

/// A column that is written.
pub enum Written<'a> {
    /// Of rank 1.
    Numbers(&'a Tensor),
    Texts(&'a [HostValue]),
}

impl Written<'_> {
    /// How many cells there are.
    pub fn len(&self) -> usize {
        match self {
            Written::Numbers(t) => t.elems(),
            Written::Texts(texts) => texts.len(),
        }
    }

    /// The text of a cell.
    pub fn text(&self, row: usize) -> &str {
        match self {
            Written::Texts(texts) => match texts.get(row) {
                Some(HostValue::Str(text)) => text,
                _ => "",
            },
            Written::Numbers(_) => "",
        }
    }
}

/// What `make` gives, and how many bytes in small pieces that takes. This thread does not count them: the one that gets it does.
fn made_elsewhere<T>(make: impl FnOnce() -> T) -> (T, i64) {
    let before = count_here(0);
    let made = make();
    let bytes = count_here(0) - before;
    count_here(-bytes);
    (made, bytes)
}

/// A name as a program can spell it: small letters, digits, and `_` for everything else.
pub fn spelled(name: &str) -> String {
    name.trim().chars().map(|c| if c.is_alphanumeric() { c.to_lowercase().collect() } else { "_".to_owned() }).collect()
}

/// Which of the names of a file is meant: the one of this name, or the one that would be spelled so.
///
/// # Errors
/// E0707 where none is, or more than one.
pub fn place(names: &[String], wanted: &str, file: &str) -> Result<usize, Fault> {
    let by = |fits: &dyn Fn(&String) -> bool| -> Vec<usize> { (0..names.len()).filter(|&i| fits(&names[i])).collect() };
    let mut found = by(&|have| have == wanted);
    if found.is_empty() {
        found = by(&|have| spelled(have) == spelled(wanted));
    }
    match found[..] {
        [one] => Ok(one),
        [] => Err(no_column(names, wanted, file)),
        [first, second, ..] => {
            let text =
                format!("`{file}` has more than one column `{wanted}`: the columns {} and {}", first + 1, second + 1);
            Err(Fault::new(707, text))
        }
    }
}

/// None of the names of a file is the one that is asked for.
pub fn no_column(names: &[String], wanted: &str, file: &str) -> Fault {
    let fault = Fault::new(707, format!("`{file}` has no column `{wanted}`"));
    let near = nearest(wanted, names.iter().map(String::as_str));
    let fault = near.into_iter().fold(fault, |f, near| f.note(format!("did you mean `{}`?", shown(near))));
    let all: Vec<String> = names.iter().take(30).map(|h| format!("`{}`", shown(h))).collect();
    let more = if names.len() > all.len() { format!(" and {} more", names.len() - all.len()) } else { String::new() };
    let has = if all.is_empty() { "no columns".to_owned() } else { all.join(", ") };
    fault.note(format!("it has {has}{more}"))
}

/// Appends one value; `None` if the text is no number of the type.
pub fn number(text: &str, dtype: DType, out: &mut Vec<u8>) -> Option<()> {
    match dtype {
        DType::F64 => out.extend_from_slice(&text.parse::<f64>().ok()?.to_le_bytes()),
        DType::F32 => out.extend_from_slice(&text.parse::<f32>().ok()?.to_le_bytes()),
        DType::I64 => out.extend_from_slice(&text.parse::<i64>().ok()?.to_le_bytes()),
        DType::I32 => out.extend_from_slice(&text.parse::<i32>().ok()?.to_le_bytes()),
        DType::I16 => out.extend_from_slice(&text.parse::<i16>().ok()?.to_le_bytes()),
        DType::I8 => out.extend_from_slice(&text.parse::<i8>().ok()?.to_le_bytes()),
        DType::U8 => out.push(text.parse::<u8>().ok()?),
        DType::Bool => out.push(match text {
            "0" | "False" | "false" => 0,
            "1" | "True" | "true" => 1,
            _ => return None,
        }),
        _ => return None,
    }
    Some(())
}

/// What stands for a number that is missing: NaN, or what the call names. `place` says where it is missing.
///
/// # Errors
/// E0707 where nothing does, E0711 where `missing` is no value of the type.
pub fn put_missing(
    dtype: DType,
    missing: Option<i64>,
    data: &mut Vec<u8>,
    place: impl Fn() -> String,
) -> Result<(), Fault> {
    match (dtype, missing) {
        (DType::F64, _) => data.extend(f64::NAN.to_le_bytes()),
        (DType::F32, _) => data.extend(f32::NAN.to_le_bytes()),
        (_, None) => {
            let text = format!("{} has no value, and {dtype} has none that says so", place());
            return Err(Fault::new(707, text)
                .note("read the column as `f64`, where a missing number is NaN, or name one for it: `missing=-1`"));
        }
        (_, Some(n)) => number(&n.to_string(), dtype, data).ok_or_else(|| {
            Fault::new(711, format!("{} has no value, and the `missing={n}` that stands for it is no {dtype}", place()))
        })?,
    }
    Ok(())
}

/// Appends an int as a number of a type; `false` where it is none of it.
pub fn put_int(n: i64, dtype: DType, data: &mut Vec<u8>) -> bool {
    match dtype {
        DType::F64 => data.extend((n as f64).to_le_bytes()),
        DType::F32 => data.extend((n as f32).to_le_bytes()),
        DType::I64 => data.extend(n.to_le_bytes()),
        DType::I32 => match i32::try_from(n) {
            Ok(n) => data.extend(n.to_le_bytes()),
            Err(_) => return false,
        },
        DType::I16 => match i16::try_from(n) {
            Ok(n) => data.extend(n.to_le_bytes()),
            Err(_) => return false,
        },
        DType::I8 => match i8::try_from(n) {
            Ok(n) => data.extend(n.to_le_bytes()),
            Err(_) => return false,
        },
        DType::U8 => match u8::try_from(n) {
            Ok(n) => data.push(n),
            Err(_) => return false,
        },
        DType::Bool => match n {
            0 | 1 => data.push(n as u8),
            _ => return false,
        },
        _ => return false,
    }
    true
}
