//! ONNX files: a graph of operators with its weights.
//!
//! The messages are read as they lie in the file; nothing is believed before it is compared with
//! the bytes that are left. What operators mean is not known here.

mod calls;
mod held;
mod wire;
mod outside;

use super::files;
use crate::fault::{Fault, shown};
use crate::tensor::{Tensor as Data, bytes_of};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use tessera_base::DType;
use wire::{Field, Fields};

pub use held::Held;

/// Graphs in graphs (the branches of `If`), at most.
const NESTED_MAX: u32 = 8;
/// Nodes, tensors, attributes and the like in one file, at most: each takes more memory than bytes.
const PARTS_MAX: usize = 1 << 20;

/// A file that has been looked through.
#[derive(Clone, Debug, Default)]
pub struct Model<'a> {
    /// The version of the standard operators.
    pub opset: i64,
    pub graph: Graph<'a>,
    /// Operators that the file itself defines.
    pub functions: Vec<Function<'a>>,
}

/// An operator as nodes of others. Its nodes name attributes of the call by [`Attribute::Of`].
#[derive(Clone, Debug, Default)]
pub struct Function<'a> {
    pub domain: &'a str,
    pub name: &'a str,
    /// Tells functions of one name apart; empty for most.
    pub overload: &'a str,
    /// The version of the standard operators in it.
    pub opset: i64,
    pub inputs: Vec<&'a str>,
    pub outputs: Vec<&'a str>,
    /// Attributes that a call may leave out.
    pub defaults: Vec<(&'a str, Attribute<'a>)>,
    pub nodes: Vec<Node<'a>>,
}

#[derive(Clone, Debug, Default)]
pub struct Graph<'a> {
    pub name: &'a str,
    /// In an order in which they can be computed, by the standard; some files do not keep it.
    pub nodes: Vec<Node<'a>>,
    pub tensors: Vec<Tensor<'a>>,
    pub inputs: Vec<Input<'a>>,
    pub outputs: Vec<Input<'a>>,
    /// What the file says of other values.
    pub values: Vec<Input<'a>>,
}

#[derive(Clone, Debug, Default)]
pub struct Node<'a> {
    pub name: &'a str,
    pub op: &'a str,
    pub domain: &'a str,
    /// Names of values; an empty one stands for an argument that is left out.
    pub inputs: Vec<&'a str>,
    pub outputs: Vec<&'a str>,
    pub attributes: Vec<(&'a str, Attribute<'a>)>,
    pub overload: &'a str,
    /// What it stands for where the file defines its operator: the function with the attributes of this node.
    pub body: Option<Box<Function<'a>>>,
}

#[derive(Clone, Debug)]
pub enum Attribute<'a> {
    Int(i64),
    Float(f32),
    Text(&'a [u8]),
    Tensor(Tensor<'a>),
    Graph(Graph<'a>),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Texts(Vec<&'a str>),
    /// The attribute of this name of the node that calls a function.
    Of(&'a str),
    Other,
}

/// An argument or result: sizes are numbers, names, or unknown.
#[derive(Clone, Debug, Default)]
pub struct Input<'a> {
    pub name: &'a str,
    /// The number of its element type, 0 where it is no tensor.
    pub kind: i64,
    /// `None` where the rank is not told.
    pub shape: Option<Vec<Dim<'a>>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dim<'a> {
    Size(i64),
    Name(&'a str),
    Unknown,
}

/// A constant of the file. Its elements stand as raw bytes or in a list of their type.
#[derive(Clone, Debug, Default)]
pub struct Tensor<'a> {
    pub name: &'a str,
    /// Unique in the file: what [`read`] calls it.
    pub key: String,
    pub kind: i64,
    pub dims: Vec<i64>,
    raw: Option<&'a [u8]>,
    ints: Vec<i64>,
    floats: Vec<f32>,
    doubles: Vec<f64>,
    /// The elements lie in another file, at this place.
    outside: bool,
    place: outside::Place<'a>,
}

/// The dtype that elements of the type with this number in the format stand in, and what they are there.
pub fn storage(kind: i64) -> Result<(DType, Held), String> {
    let held = Held::of(kind);
    Ok((held.dtype().map_or_else(|| dtype(kind), Ok)?, held))
}

/// The element type with this number in the format.
pub fn dtype(kind: i64) -> Result<DType, String> {
    Ok(match kind {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::I8,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        9 => DType::Bool,
        10 => DType::F16,
        11 => DType::F64,
        14 => DType::C64,
        16 => DType::Bf16,
        17 => DType::F8E4M3,
        19 => DType::F8E5M2,
        _ => {
            let names = [
                (4, "uint16"),
                (8, "string"),
                (12, "uint32"),
                (13, "uint64"),
                (15, "complex128"),
                (18, "float8e4m3fnuz"),
                (20, "float8e5m2fnuz"),
                (21, "uint4"),
                (22, "int4"),
                (23, "float4e2m1"),
                (24, "float8e8m0"),
            ];
            let name = names.iter().find(|(n, _)| *n == kind).map_or(String::new(), |(_, name)| format!(" ({name})"));
            return Err(format!("elements of type {kind}{name} have no counterpart here"));
        }
    })
}

/// The element type with this name in the format, as version 1 of `Cast` has it.
pub fn dtype_named(name: &str) -> Result<DType, String> {
    let names = [
        (1, "FLOAT"),
        (2, "UINT8"),
        (3, "INT8"),
        (5, "INT16"),
        (6, "INT32"),
        (7, "INT64"),
        (9, "BOOL"),
        (10, "FLOAT16"),
        (11, "DOUBLE"),
    ];
    let number = names.iter().find(|(_, n)| *n == name).map(|(number, _)| *number);
    number.map_or_else(|| Err(format!("elements of type `{name}` have no counterpart here")), dtype)
}

/// Counts parts while a file is read.
struct Reader {
    parts: usize,
}

impl Reader {
    fn part(&mut self) -> Result<(), String> {
        self.charge(1)
    }

    /// As so many parts.
    fn charge(&mut self, parts: usize) -> Result<(), String> {
        self.parts = self.parts.saturating_add(parts);
        if self.parts > PARTS_MAX { Err(format!("it has more than {PARTS_MAX} nodes and tensors")) } else { Ok(()) }
    }

    fn model<'a>(&mut self, bytes: &'a [u8]) -> Result<Model<'a>, String> {
        let mut model = Model::default();
        let mut found = false;
        for field in Fields::of(bytes) {
            match field? {
                (7, f) => {
                    model.graph = self.graph(f.bytes()?, 0)?;
                    found = true;
                }
                (8, f) => {
                    let (domain, version) = opset(f.bytes()?)?;
                    if matches!(domain, "" | "ai.onnx") {
                        model.opset = version;
                    }
                }
                (25, f) => model.functions.push(self.function(f.bytes()?)?),
                _ => {}
            }
        }
        if !found {
            return Err("it holds no graph".into());
        }
        Ok(model)
    }

    fn function<'a>(&mut self, bytes: &'a [u8]) -> Result<Function<'a>, String> {
        self.part()?;
        let mut out = Function::default();
        for field in Fields::of(bytes) {
            match field? {
                (1, f) => out.name = f.text()?,
                (4, f) => out.inputs.push(f.text()?),
                (5, f) => out.outputs.push(f.text()?),
                (7, f) => {
                    self.part()?;
                    out.nodes.push(self.node(f.bytes()?, 0)?);
                }
                (9, f) => {
                    let (domain, version) = opset(f.bytes()?)?;
                    if matches!(domain, "" | "ai.onnx") {
                        out.opset = version;
                    }
                }
                (10, f) => out.domain = f.text()?,
                (11, f) => out.defaults.push(self.attribute(f.bytes()?, 0)?),
                (13, f) => out.overload = f.text()?,
                _ => {}
            }
        }
        Ok(out)
    }

    fn graph<'a>(&mut self, bytes: &'a [u8], depth: u32) -> Result<Graph<'a>, String> {
        if depth > NESTED_MAX {
            return Err(format!("graphs are nested more than {NESTED_MAX} deep"));
        }
        let mut graph = Graph::default();
        for field in Fields::of(bytes) {
            let (number, field) = field?;
            if matches!(number, 1 | 5 | 11..=13) {
                self.part()?;
            }
            match number {
                1 => graph.nodes.push(self.node(field.bytes()?, depth)?),
                2 => graph.name = field.text()?,
                5 => graph.tensors.push(self.tensor(field.bytes()?)?),
                11 => graph.inputs.push(input(field.bytes()?)?),
                12 => graph.outputs.push(input(field.bytes()?)?),
                13 => graph.values.push(input(field.bytes()?)?),
                15 => return Err("it has sparse weights".into()),
                _ => {}
            }
        }
        Ok(graph)
    }

    fn node<'a>(&mut self, bytes: &'a [u8], depth: u32) -> Result<Node<'a>, String> {
        let mut node = Node::default();
        for field in Fields::of(bytes) {
            let (number, field) = field?;
            if matches!(number, 1 | 2 | 5) {
                self.part()?;
            }
            match number {
                1 => node.inputs.push(field.text()?),
                2 => node.outputs.push(field.text()?),
                3 => node.name = field.text()?,
                4 => node.op = field.text()?,
                5 => node.attributes.push(self.attribute(field.bytes()?, depth)?),
                7 => node.domain = field.text()?,
                8 => node.overload = field.text()?,
                _ => {}
            }
        }
        Ok(node)
    }

    fn attribute<'a>(&mut self, bytes: &'a [u8], depth: u32) -> Result<(&'a str, Attribute<'a>), String> {
        let (mut name, mut kind, mut value, mut of) = ("", 0, None, "");
        let (mut ints, mut floats, mut texts) = (vec![], vec![], vec![]);
        for field in Fields::of(bytes) {
            match field? {
                (1, f) => name = f.text()?,
                (2, f) => value = Some(Attribute::Float(f.float()?)),
                (3, f) => value = Some(Attribute::Int(f.int()?)),
                (4, f) => value = Some(Attribute::Text(f.bytes()?)),
                (5, f) => value = Some(Attribute::Tensor(self.tensor(f.bytes()?)?)),
                (6, f) => value = Some(Attribute::Graph(self.graph(f.bytes()?, depth + 1)?)),
                (7, f) => f.floats(&mut floats)?,
                (8, f) => f.ints(&mut ints)?,
                (9, f) => texts.push(f.text()?),
                (20, f) => kind = f.int()?,
                (21, f) => of = f.text()?,
                _ => {}
            }
        }
        if !of.is_empty() {
            return Ok((name, Attribute::Of(of)));
        }
        // A value that is zero or an empty list may be left out of the file.
        let value = match (kind, value) {
            (6, _) => Attribute::Floats(floats),
            (7, _) => Attribute::Ints(ints),
            (8, _) => Attribute::Texts(texts),
            (1, None) => Attribute::Float(0.0),
            (2, None) => Attribute::Int(0),
            (3, None) => Attribute::Text(b""),
            (_, Some(value)) => value,
            (_, None) if !ints.is_empty() => Attribute::Ints(ints),
            (_, None) if !floats.is_empty() => Attribute::Floats(floats),
            _ => Attribute::Other,
        };
        Ok((name, value))
    }

    fn tensor<'a>(&mut self, bytes: &'a [u8]) -> Result<Tensor<'a>, String> {
        self.part()?;
        let mut t = Tensor::default();
        for field in Fields::of(bytes) {
            match field? {
                (1, f) => f.ints(&mut t.dims)?,
                (2, f) => t.kind = f.int()?,
                (4, f) => f.floats(&mut t.floats)?,
                (5 | 7 | 11, f) => f.ints(&mut t.ints)?,
                (8, f) => t.name = f.text()?,
                (9, f) => t.raw = Some(f.bytes()?),
                (10, f) => f.doubles(&mut t.doubles)?,
                (13, f) => t.place.set(f.bytes()?)?,
                (14, f) => t.outside = f.int()? == 1,
                _ => {}
            }
        }
        if t.dims.iter().any(|n| *n < 0) {
            return Err(format!("tensor `{}` has a negative size", t.name));
        }
        Ok(t)
    }
}

fn opset(bytes: &[u8]) -> Result<(&str, i64), String> {
    let (mut domain, mut version) = ("", 0);
    for field in Fields::of(bytes) {
        match field? {
            (1, f) => domain = f.text()?,
            (2, f) => version = f.int()?,
            _ => {}
        }
    }
    Ok((domain, version))
}

/// The last field of this number in a message.
fn inner(bytes: &[u8], number: u64) -> Result<Option<Field<'_>>, String> {
    let mut out = None;
    for field in Fields::of(bytes) {
        let (n, field) = field?;
        if n == number {
            out = Some(field);
        }
    }
    Ok(out)
}

fn input(bytes: &[u8]) -> Result<Input<'_>, String> {
    let mut out = Input::default();
    for field in Fields::of(bytes) {
        match field? {
            (1, f) => out.name = f.text()?,
            (2, f) => {
                let Some(tensor) = inner(f.bytes()?, 1)? else { continue };
                for field in Fields::of(tensor.bytes()?) {
                    match field? {
                        (1, f) => out.kind = f.int()?,
                        (2, f) => out.shape = Some(shape(f.bytes()?)?),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(out)
}

fn shape(bytes: &[u8]) -> Result<Vec<Dim<'_>>, String> {
    let mut dims = vec![];
    for field in Fields::of(bytes) {
        let (1, f) = field? else { continue };
        let mut dim = Dim::Unknown;
        for field in Fields::of(f.bytes()?) {
            match field? {
                (1, f) => dim = Dim::Size(f.int()?),
                (2, f) => dim = Dim::Name(f.text()?),
                _ => {}
            }
        }
        dims.push(dim);
    }
    Ok(dims)
}

/// Looks through a whole file.
///
/// # Errors
/// What does not fit, lower case, without a full stop.
pub fn parse(bytes: &[u8]) -> Result<Model<'_>, String> {
    let mut reader = Reader { parts: 0 };
    let mut model = reader.model(bytes)?;
    let mut taken = HashMap::new();
    name_tensors(&mut model.graph.tensors, &mut model.graph.nodes, &mut taken);
    for function in &mut model.functions {
        name_tensors(&mut [], &mut function.nodes, &mut taken);
        for (name, attribute) in &mut function.defaults {
            name_tensor(name, attribute, &mut taken);
            name_graph(attribute, &mut taken);
        }
    }
    if !model.functions.is_empty() {
        calls::written_out(&mut model.graph.nodes, &model.functions, &mut reader, 0)?;
    }
    Ok(model)
}

/// The name, or with a number behind it where it is taken. Taken ones stand with the number that is tried next,
/// so that many of one name take no longer than others.
fn unique(name: &str, taken: &mut HashMap<String, usize>) -> String {
    let mut key = name.to_owned();
    while taken.contains_key(&key) {
        let next = taken.entry(name.to_owned()).or_insert(2);
        key = format!("{name}#{next}");
        *next += 1;
    }
    taken.insert(key.clone(), 2);
    key
}

/// Gives every tensor a key of its own: branches may use one name twice.
fn name_tensors(tensors: &mut [Tensor], nodes: &mut [Node], taken: &mut HashMap<String, usize>) {
    for t in tensors {
        t.key = unique(t.name, taken);
    }
    for node in &mut *nodes {
        let name = node.outputs.first().copied().unwrap_or_default();
        node.attributes.iter_mut().for_each(|(_, a)| name_tensor(name, a, taken));
    }
    for node in nodes {
        node.attributes.iter_mut().for_each(|(_, a)| name_graph(a, taken));
    }
}

fn name_tensor(name: &str, attribute: &mut Attribute, taken: &mut HashMap<String, usize>) {
    if let Attribute::Tensor(t) = attribute {
        t.key = unique(name, taken);
    }
}

fn name_graph(attribute: &mut Attribute, taken: &mut HashMap<String, usize>) {
    if let Attribute::Graph(g) = attribute {
        name_tensors(&mut g.tensors, &mut g.nodes, taken);
    }
}

impl<'a> Model<'a> {
    /// Every constant of the file.
    pub fn all_tensors<'g>(&'g self, out: &mut Vec<&'g Tensor<'a>>) {
        self.graph.all_tensors(out);
        for f in &self.functions {
            tensors_of(&f.nodes, out);
            f.defaults.iter().for_each(|(_, a)| tensors_in(a, out));
        }
    }
}

impl<'a> Graph<'a> {
    /// Every constant of the graph and of the graphs in it.
    fn all_tensors<'g>(&'g self, out: &mut Vec<&'g Tensor<'a>>) {
        out.extend(&self.tensors);
        tensors_of(&self.nodes, out);
    }
}

fn tensors_of<'a, 'g>(nodes: &'g [Node<'a>], out: &mut Vec<&'g Tensor<'a>>) {
    nodes.iter().flat_map(|n| &n.attributes).for_each(|(_, a)| tensors_in(a, out));
}

fn tensors_in<'a, 'g>(attribute: &'g Attribute<'a>, out: &mut Vec<&'g Tensor<'a>>) {
    match attribute {
        Attribute::Tensor(t) => out.push(t),
        Attribute::Graph(g) => g.all_tensors(out),
        _ => {}
    }
}

impl Tensor<'_> {
    /// That its elements stand in here.
    pub fn dtype(&self) -> Result<DType, String> {
        storage(self.kind).map(|(dtype, _)| dtype).map_err(|e| format!("tensor `{}`: {e}", self.shown_key()))
    }

    /// What its elements are in the file.
    pub fn held(&self) -> Held {
        Held::of(self.kind)
    }

    fn shown_key(&self) -> String {
        shown(Path::new(&self.key))
    }

    /// How many elements the sizes make; `None` where that is no number.
    pub fn elems(&self) -> Option<u64> {
        self.dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d as u64))
    }

    /// The bytes of its elements, row-major and little-endian.
    pub fn data(&self) -> Result<Cow<'_, [u8]>, String> {
        let dtype = self.dtype()?;
        if self.outside {
            return Err(format!("the elements of tensor `{}` lie in another file", self.key));
        }
        let held = self.held();
        let bytes: Cow<[u8]> = match (self.raw, held) {
            (Some(raw), _) => raw.into(),
            (None, Held::Own) => self.listed(dtype).into(),
            (None, held) => held.listed(&self.ints).into(),
        };
        self.counted(bytes.len())?;
        match self.elems() {
            Some(n) if held != Held::Own => Ok(held.widened(&bytes, n).into()),
            _ => Ok(bytes),
        }
    }

    /// Compares a number of bytes with the sizes.
    fn counted(&self, count: usize) -> Result<(), String> {
        let (dtype, held) = (self.dtype()?, self.held());
        let (wanted, of) = if held == Held::Own {
            let dims: Vec<u64> = self.dims.iter().map(|n| *n as u64).collect();
            (bytes_of(dtype, &dims), dtype.to_string())
        } else {
            (self.elems().and_then(|n| held.stored(n)), held.name().to_owned())
        };
        if wanted == Some(count as u64) {
            return Ok(());
        }
        let sizes = self.dims.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        Err(format!("tensor `{}` has the sizes [{sizes}] and {count} bytes of {of}", self.shown_key()))
    }

    /// Elements that stand in a list of their own type, or of a wider one.
    fn listed(&self, dtype: DType) -> Vec<u8> {
        match dtype {
            DType::F32 | DType::C64 => self.floats.iter().flat_map(|x| x.to_le_bytes()).collect(),
            DType::F64 => self.doubles.iter().flat_map(|x| x.to_le_bytes()).collect(),
            // The low bytes are the number, or the bits of a narrow float.
            _ => self.ints.iter().flat_map(|n| n.to_le_bytes().into_iter().take(dtype.bytes())).collect(),
        }
    }

    /// The elements of a tensor of ints or bools.
    pub fn ints(&self) -> Result<Vec<i64>, String> {
        let (dtype, data) = (self.dtype()?, self.data()?);
        let width = dtype.bytes().max(1);
        let wide = |b: &[u8]| {
            let mut word = [0; 8];
            word.iter_mut().zip(b).for_each(|(w, b)| *w = *b);
            let word = i64::from_le_bytes(word);
            let unused = 64 - 8 * width as u32;
            if matches!(dtype, DType::U8 | DType::Bool) { word } else { word << unused >> unused }
        };
        Ok(data.chunks_exact(width).map(wide).collect())
    }

    /// The elements of a tensor of floats.
    pub fn floats(&self) -> Result<Vec<f64>, String> {
        let data = self.data()?;
        Ok(match self.dtype()? {
            DType::F32 => data.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect(),
            DType::F64 => data.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
            DType::F16 => data.as_chunks().0.iter().map(|b| half::f16::from_le_bytes(*b).to_f64()).collect(),
            DType::Bf16 => data.as_chunks().0.iter().map(|b| half::bf16::from_le_bytes(*b).to_f64()).collect(),
            _ => return Err(format!("the elements of tensor `{}` are no floats", self.key)),
        })
    }

    /// The first element of a tensor of floats.
    pub fn first_float(&self) -> Result<f64, String> {
        self.floats()?.first().copied().ok_or_else(|| format!("tensor `{}` is empty", self.key))
    }
}

/// Calls `use_it` with the file looked through. The file is memory-mapped meanwhile.
pub fn with_file<T>(path: &Path, use_it: impl FnOnce(Model) -> Result<T, Fault>) -> Result<T, Fault> {
    let bad = |why: String| Fault::new(707, format!("`{}` is not a readable ONNX file: {why}", shown(path)));
    if outside::is_stream(path) {
        return Err(bad("it is no file on a disk".into()));
    }
    let (reader, len) = files::open(path)?;
    if len == 0 {
        return Err(bad("it is empty".into()));
    }
    // SAFETY: the mapping lives in this call only; a file that shrinks meanwhile is the one
    // hazard of every memory mapping.
    let map = unsafe { memmap2::Mmap::map(reader.get_ref()) }.map_err(|e| files::read_fault(path, &e))?;
    let parsed = parse(&map).map_err(bad)?;
    let beside = outside::beside(&parsed, path)?;
    // Behind the files that it reads from.
    let mut model = parsed;
    outside::attach(&mut model, &beside).map_err(bad)?;
    use_it(model)
}

/// Every constant by its key, in the file's order.
pub fn read(path: &Path) -> Result<Vec<(String, Data)>, Fault> {
    let bad = |why: String| Fault::new(707, format!("`{}` is not a readable ONNX file: {why}", shown(path)));
    with_file(path, |model| {
        let mut all = vec![];
        model.all_tensors(&mut all);
        let mut out = vec![];
        // What has no counterpart is not used: it was refused when the program was checked.
        for t in all.into_iter().filter(|t| t.dtype().is_ok()) {
            let dims: Vec<u64> = t.dims.iter().map(|n| *n as u64).collect();
            let data = t.data().map_err(bad)?;
            out.push((t.key.clone(), Data::from_bytes(t.dtype().map_err(bad)?, &dims, &data)?));
        }
        Ok(out)
    })
}

#[cfg(test)]
mod tests;
