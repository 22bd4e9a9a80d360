//! Nodes of ONNX files with what a reference computes for them: `tests/data/onnx_cases.txt`.

use crate::onnx::{Attribute, constant, input, model, node};
use tessera_onnx::Schema;

/// Elements with their sizes, as the text has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub dtype: String,
    pub dims: Vec<i64>,
    pub elems: Vec<String>,
}

/// An argument of a node.
#[derive(Clone, Debug)]
pub enum Argument {
    Given(Array),
    /// A constant of the file.
    Constant(Array),
    None,
}

/// A node alone in a file, and its results.
#[derive(Clone, Debug)]
pub struct Case {
    pub line: usize,
    pub op: String,
    pub version: i64,
    pub attributes: Vec<(String, String)>,
    pub arguments: Vec<Argument>,
    pub results: Vec<Array>,
}

/// The numbers of element types in the format.
const KINDS: &[(&str, i64)] = &[
    ("f32", 1),
    ("u8", 2),
    ("i8", 3),
    ("i16", 5),
    ("i32", 6),
    ("i64", 7),
    ("bool", 9),
    ("f16", 10),
    ("f64", 11),
    ("bf16", 16),
    ("fp8_e4m3", 17),
    ("fp8_e5m2", 19),
];

/// The number of an element type in the format.
pub fn kind(dtype: &str) -> i64 {
    KINDS.iter().find(|(name, _)| *name == dtype).map_or(0, |(_, number)| *number)
}

/// Every case of the text.
///
/// # Errors
/// The line that cannot be read.
pub fn read(text: &str) -> Result<Vec<Case>, String> {
    let lines = text.lines().enumerate().filter(|(_, l)| !l.starts_with('#'));
    lines.map(|(i, l)| case(i + 1, l).ok_or_else(|| format!("line {}: {l}", i + 1))).collect()
}

fn case(line: usize, text: &str) -> Option<Case> {
    let mut parts = text.split('|').map(str::trim);
    let (op, version) = parts.next()?.split_once(' ')?;
    let settings = parts.next()?.split_whitespace().map(|s| s.split_once('='));
    let attributes = settings.map(|s| s.map(|(n, v)| (n.to_owned(), v.to_owned()))).collect::<Option<_>>()?;
    let list = |part: &str| -> Vec<String> {
        part.split(';').map(|a| a.trim().to_owned()).filter(|a| !a.is_empty()).collect()
    };
    let argument = |text: &String| match text.strip_prefix('=') {
        Some(rest) => array(rest).map(Argument::Constant),
        None if text == "-" => Some(Argument::None),
        None => array(text).map(Argument::Given),
    };
    Some(Case {
        line,
        op: op.to_owned(),
        version: version.parse().ok()?,
        attributes,
        arguments: list(parts.next()?).iter().map(argument).collect::<Option<_>>()?,
        results: list(parts.next()?).iter().map(|t| array(t)).collect::<Option<_>>()?,
    })
}

/// `f32[2,1]:0.5,1`.
fn array(text: &str) -> Option<Array> {
    let (head, elems) = text.split_once(':')?;
    let (dtype, dims) = head.strip_suffix(']')?.split_once('[')?;
    let list = |t: &str| t.split(',').filter(|e| !e.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let dims = list(dims).iter().map(|d| d.parse().ok()).collect::<Option<_>>()?;
    Some(Array { dtype: dtype.to_owned(), dims, elems: list(elems) })
}

impl Array {
    /// The elements as the bytes of a tensor in a file.
    pub fn bytes(&self) -> Vec<u8> {
        let int = |e: &String| e.parse::<i64>().unwrap_or(0);
        let float = |e: &String| e.parse::<f64>().unwrap_or(f64::NAN);
        let wide = |e: &String| match &*self.dtype {
            "f32" => (float(e) as f32).to_le_bytes().to_vec(),
            "f64" => float(e).to_le_bytes().to_vec(),
            "f16" => half::f16::from_f64(float(e)).to_le_bytes().to_vec(),
            "bf16" => half::bf16::from_f64(float(e)).to_le_bytes().to_vec(),
            dtype => {
                let width = match dtype {
                    "i64" => 8,
                    "i32" => 4,
                    "i16" => 2,
                    _ => 1,
                };
                int(e).to_le_bytes()[..width].to_vec()
            }
        };
        self.elems.iter().flat_map(wide).collect()
    }

    /// As an expression of a program.
    pub fn source(&self) -> String {
        let elem = |e: &String| match (&*self.dtype, &**e) {
            ("bool", "0") => "False".to_owned(),
            ("bool", _) => "True".to_owned(),
            ("i64", "-9223372036854775808") => "-9223372036854775807 - 1".to_owned(),
            (_, "inf") => "math.inf".to_owned(),
            (_, "-inf") => "-math.inf".to_owned(),
            (_, "nan") => "math.nan".to_owned(),
            (dtype, e) if dtype.starts_with('f') && !e.contains(['.', 'e']) => format!("{e}.0"),
            (_, e) => e.to_owned(),
        };
        let dims: Vec<String> = self.dims.iter().map(|d| format!("{d},")).collect();
        let elems: Vec<String> = self.elems.iter().map(elem).collect();
        match elems.is_empty() {
            true => format!("op.zeros(({}), dtype={})", dims.concat(), self.dtype),
            false => format!("op.array([{}], dtype={}).reshape(({}))", elems.join(", "), self.dtype, dims.concat()),
        }
    }
}

impl Case {
    /// The operator by name and version.
    pub fn name(&self) -> String {
        let attributes: Vec<String> = self.attributes.iter().map(|(n, v)| format!(" {n}={v}")).collect();
        format!("{}-{}{} (line {})", self.op, self.version, attributes.concat(), self.line)
    }

    /// The file with this node alone, named `the y0`.
    pub fn file(&self) -> Vec<u8> {
        let (mut inputs, mut constants, mut names) = (vec![], vec![], vec![]);
        for (i, argument) in self.arguments.iter().enumerate() {
            let name = format!("x{i}");
            match argument {
                Argument::None => {
                    names.push(String::new());
                    continue;
                }
                Argument::Given(a) => {
                    let dims: Vec<String> = a.dims.iter().map(i64::to_string).collect();
                    let dims: Vec<&str> = dims.iter().map(|d| &**d).collect();
                    inputs.push(input(&name, kind(&a.dtype), &dims));
                }
                Argument::Constant(a) => constants.push(constant(&name, kind(&a.dtype), &a.dims, a.bytes())),
            }
            names.push(name);
        }
        let outputs: Vec<String> = (0..self.results.len()).map(|i| format!("y{i}")).collect();
        let (names, outputs): (Vec<&str>, Vec<&str>) =
            (names.iter().map(|n| &**n).collect(), outputs.iter().map(|o| &**o).collect());
        let attributes: Vec<(&str, Attribute)> =
            self.attributes.iter().map(|(n, v)| (&**n, attribute(&self.op, self.version, n, v))).collect();
        model(self.version, &inputs, &constants, &[node(&self.op, &names, &outputs, &attributes)], &outputs)
    }

    /// The arguments that a call gives.
    pub fn given(&self) -> impl Iterator<Item = &Array> {
        self.arguments.iter().filter_map(|a| if let Argument::Given(a) = a { Some(a) } else { None })
    }
}

/// The operator as a version has it.
pub fn schema(op: &str, version: i64) -> Option<&'static Schema> {
    tessera_onnx::schemas().iter().rfind(|s| s.op == op && s.since <= version)
}

/// An attribute of the kind that the standard gives it.
pub fn attribute(op: &str, version: i64, name: &str, value: &str) -> Attribute {
    let kind = schema(op, version).and_then(|s| s.attribute(name)).map_or("int", |a| a.kind);
    let list = || value.split(',').filter(|e| !e.is_empty());
    match kind {
        "int" => Attribute::Int(value.parse().unwrap_or(0)),
        "ints" => Attribute::Ints(list().filter_map(|e| e.parse().ok()).collect()),
        "float" => Attribute::Float(value.parse().unwrap_or(0.0)),
        "floats" => Attribute::Floats(list().filter_map(|e| e.parse().ok()).collect()),
        "texts" => Attribute::Texts(list().map(str::to_owned).collect()),
        "tensor" => {
            let a = array(value).unwrap_or(Array { dtype: "f32".into(), dims: vec![0], elems: vec![] });
            Attribute::Tensor(constant("", self::kind(&a.dtype), &a.dims, a.bytes()))
        }
        _ => Attribute::Name(value.to_owned()),
    }
}
