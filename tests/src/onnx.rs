//! Writes small ONNX files.

fn varint(mut n: u64) -> Vec<u8> {
    let mut out = vec![];
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

fn int(number: u64, value: i64) -> Vec<u8> {
    [varint(number << 3), varint(value as u64)].concat()
}

fn bytes(number: u64, value: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn float(number: u64, value: f32) -> Vec<u8> {
    [varint(number << 3 | 5), value.to_le_bytes().to_vec()].concat()
}

/// An attribute of a node.
pub enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Text(&'static str),
    /// A text that is made.
    Name(String),
    Float(f32),
    Floats(Vec<f32>),
    Texts(Vec<String>),
    /// What [`constant`] gives.
    Tensor(Vec<u8>),
    /// The nodes of a graph, and its result.
    Graph(Vec<Vec<u8>>, &'static str),
    /// The arguments of a graph, its nodes, and its results.
    Body(Vec<&'static str>, Vec<Vec<u8>>, Vec<&'static str>),
    /// The attribute of this name of the call of a function.
    Of(&'static str),
}

/// A node: operator, inputs, outputs, attributes. Its name is that of its first output.
pub fn node(op: &str, inputs: &[&str], outputs: &[&str], attributes: &[(&str, Attribute)]) -> Vec<u8> {
    let mut out = vec![];
    inputs.iter().for_each(|i| out.extend(bytes(1, i.as_bytes())));
    outputs.iter().for_each(|o| out.extend(bytes(2, o.as_bytes())));
    out.extend(bytes(3, format!("the {}", outputs.first().unwrap_or(&"")).as_bytes()));
    // A domain stands before the name.
    let (domain, op) = op.rsplit_once('.').unwrap_or(("", op));
    out.extend(bytes(4, op.as_bytes()));
    out.extend(bytes(7, domain.as_bytes()));
    attributes.iter().for_each(|(name, value)| out.extend(bytes(5, &attribute(name, value))));
    out
}

fn attribute(name: &str, value: &Attribute) -> Vec<u8> {
    let value = match value {
        Attribute::Int(n) => [int(3, *n), int(20, 2)].concat(),
        Attribute::Ints(v) => [v.iter().flat_map(|n| int(8, *n)).collect(), int(20, 7)].concat(),
        Attribute::Text(t) => [bytes(4, t.as_bytes()), int(20, 3)].concat(),
        Attribute::Name(t) => [bytes(4, t.as_bytes()), int(20, 3)].concat(),
        Attribute::Float(x) => [float(2, *x), int(20, 1)].concat(),
        Attribute::Floats(v) => [v.iter().flat_map(|x| float(7, *x)).collect(), int(20, 6)].concat(),
        Attribute::Texts(v) => [v.iter().flat_map(|t| bytes(9, t.as_bytes())).collect(), int(20, 8)].concat(),
        Attribute::Tensor(t) => [bytes(5, t), int(20, 4)].concat(),
        Attribute::Graph(nodes, result) => {
            let nodes = nodes.iter().flat_map(|n| bytes(1, n));
            let graph: Vec<u8> = nodes.chain(bytes(12, &bytes(1, result.as_bytes()))).collect();
            [bytes(6, &graph), int(20, 5)].concat()
        }
        Attribute::Body(inputs, nodes, outputs) => {
            let mut graph: Vec<u8> = nodes.iter().flat_map(|n| bytes(1, n)).collect();
            inputs.iter().for_each(|i| graph.extend(bytes(11, &bytes(1, i.as_bytes()))));
            outputs.iter().for_each(|o| graph.extend(bytes(12, &bytes(1, o.as_bytes()))));
            [bytes(6, &graph), int(20, 5)].concat()
        }
        Attribute::Of(name) => [bytes(21, name.as_bytes()), int(20, 1)].concat(),
    };
    [bytes(1, name.as_bytes()), value].concat()
}

/// A constant of f32.
pub fn floats(name: &str, dims: &[i64], values: &[f32]) -> Vec<u8> {
    tensor(name, dims, 1, values.iter().flat_map(|x| x.to_le_bytes()).collect())
}

/// A vector of i64.
pub fn ints(name: &str, values: &[i64]) -> Vec<u8> {
    tensor(name, &[values.len() as i64], 7, values.iter().flat_map(|x| x.to_le_bytes()).collect())
}

/// One i64 of rank 0.
pub fn one_int(name: &str, value: i64) -> Vec<u8> {
    tensor(name, &[], 7, value.to_le_bytes().to_vec())
}

/// A constant of the element type with this number in the format.
pub fn constant(name: &str, kind: i64, dims: &[i64], raw: Vec<u8>) -> Vec<u8> {
    tensor(name, dims, kind, raw)
}

/// A constant whose elements lie in another file, by keys with their values.
pub fn outside(name: &str, kind: i64, dims: &[i64], entries: &[(&str, &str)]) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|n| int(1, *n)).collect();
    let entry =
        |(key, value): &(&str, &str)| bytes(13, &[bytes(1, key.as_bytes()), bytes(2, value.as_bytes())].concat());
    let entries: Vec<u8> = entries.iter().flat_map(entry).collect();
    [dims, int(2, kind), bytes(8, name.as_bytes()), entries, int(14, 1)].concat()
}

fn tensor(name: &str, dims: &[i64], kind: i64, raw: Vec<u8>) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|n| int(1, *n)).collect();
    [dims, int(2, kind), bytes(8, name.as_bytes()), bytes(9, &raw)].concat()
}

/// An input: sizes are numbers or names.
pub fn input(name: &str, kind: i64, dims: &[&str]) -> Vec<u8> {
    let dim = |d: &&str| match d.parse::<i64>() {
        Ok(n) => bytes(1, &int(1, n)),
        Err(_) => bytes(1, &bytes(2, d.as_bytes())),
    };
    let shape: Vec<u8> = dims.iter().flat_map(dim).collect();
    [bytes(1, name.as_bytes()), bytes(2, &bytes(1, &[int(1, kind), bytes(2, &shape)].concat()))].concat()
}

/// The same file with functions: domain, name, arguments, results, attributes that a call has, nodes.
pub fn with_function(
    model: Vec<u8>,
    (domain, name): (&str, &str),
    inputs: &[&str],
    outputs: &[&str],
    attributes: &[&str],
    nodes: &[Vec<u8>],
) -> Vec<u8> {
    function_with(model, (domain, name), inputs, outputs, attributes, nodes, &[], 17)
}

/// The same with attributes that a call may leave out, and a version of the operators in the function.
#[expect(clippy::too_many_arguments, reason = "the fields of a function")]
pub fn function_with(
    mut model: Vec<u8>,
    (domain, name): (&str, &str),
    inputs: &[&str],
    outputs: &[&str],
    attributes: &[&str],
    nodes: &[Vec<u8>],
    defaults: &[(&str, Attribute)],
    opset: i64,
) -> Vec<u8> {
    let mut out = bytes(1, name.as_bytes());
    inputs.iter().for_each(|i| out.extend(bytes(4, i.as_bytes())));
    outputs.iter().for_each(|o| out.extend(bytes(5, o.as_bytes())));
    attributes.iter().for_each(|a| out.extend(bytes(6, a.as_bytes())));
    nodes.iter().for_each(|n| out.extend(bytes(7, n)));
    defaults.iter().for_each(|(name, value)| out.extend(bytes(11, &attribute(name, value))));
    out.extend([bytes(9, &int(2, opset)), bytes(10, domain.as_bytes())].concat());
    model.extend(bytes(25, &out));
    model
}

/// A file of nodes without weights whose file tells the sizes of some values.
pub fn told(opset: i64, inputs: &[Vec<u8>], values: &[Vec<u8>], nodes: &[Vec<u8>], outputs: &[&str]) -> Vec<u8> {
    let mut graph = vec![];
    nodes.iter().for_each(|n| graph.extend(bytes(1, n)));
    inputs.iter().for_each(|i| graph.extend(bytes(11, i)));
    values.iter().for_each(|v| graph.extend(bytes(13, v)));
    outputs.iter().for_each(|o| graph.extend(bytes(12, &bytes(1, o.as_bytes()))));
    [int(1, 8), bytes(7, &graph), bytes(8, &int(2, opset))].concat()
}

/// A whole file.
pub fn model(opset: i64, inputs: &[Vec<u8>], tensors: &[Vec<u8>], nodes: &[Vec<u8>], outputs: &[&str]) -> Vec<u8> {
    let mut graph = vec![];
    nodes.iter().for_each(|n| graph.extend(bytes(1, n)));
    tensors.iter().for_each(|t| graph.extend(bytes(5, t)));
    inputs.iter().for_each(|i| graph.extend(bytes(11, i)));
    outputs.iter().for_each(|o| graph.extend(bytes(12, &bytes(1, o.as_bytes()))));
    [int(1, 8), bytes(7, &graph), bytes(8, &int(2, opset))].concat()
}
