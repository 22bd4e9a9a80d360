//! One node while it is translated: its arguments, its attributes, and where its results go.

use crate::names::Names;
use crate::standard::Schema;
use crate::value::{Int, Ints, Tensor, Value, literal, shown};
use std::collections::{BTreeSet, HashMap};
use tessera_base::DType;
use tessera_runtime::io::onnx::{self, Attribute, Dim};

/// Why a node cannot be translated: lower case, without a full stop.
pub type No = String;

/// An int expression that is longer gets a name of its own.
const TEXT_MAX: usize = 60;
/// Ints that are kept as such, at most.
const INTS_MAX: usize = 4096;
/// Elements of all sequences together, at most.
const HELD_MAX: usize = 1 << 20;
/// Sizes that are read from one tensor, at most.
const READ_MAX: i64 = 16;
/// Lines of a function, at most: graphs in graphs are written out for every use.
const LINES_MAX: usize = 1 << 20;

/// What has been translated.
#[derive(Default)]
pub struct Body<'m> {
    pub opset: i64,
    /// Values by name, inner graphs last.
    pub scopes: Vec<HashMap<&'m str, Value<'m>>>,
    /// What the file says of the sizes of values: a hint, which the program is compared with where it is followed.
    pub told: HashMap<&'m str, &'m [Dim<'m>]>,
    pub lines: Vec<String>,
    /// The node that lines are for, in the words of the file.
    pub remark: String,
    /// Weights that are used, with the names of their fields.
    pub weights: Vec<(String, &'m onnx::Tensor<'m>)>,
    fields: HashMap<&'m str, usize>,
    names: Names,
    count: usize,
    /// Elements of sequences.
    held: usize,
    /// Modules of the library whose functions it uses.
    pub libraries: BTreeSet<&'static str>,
    /// Draws of random numbers so far.
    pub draws: i64,
    /// Tests of sizes that hold where the graph that is translated is computed.
    pub assumed: Vec<String>,
    /// Loops around what is translated.
    pub loops: usize,
}

impl<'m> Body<'m> {
    pub fn new(opset: i64) -> Self {
        Body { opset, ..Body::default() }
    }

    pub fn value(&self, name: &str) -> Option<&Value<'m>> {
        self.scopes.iter().rev().find_map(|s| s.get(name))
    }

    pub fn set(&mut self, name: &'m str, value: Value<'m>) {
        if let (false, Some(scope)) = (name.is_empty(), self.scopes.last_mut()) {
            scope.insert(name, value);
        }
    }

    /// Notes what the file says of the values of a graph.
    pub fn tell(&mut self, graph: &'m onnx::Graph<'m>) {
        let all = graph.values.iter().chain(&graph.outputs);
        self.told.extend(all.filter_map(|v| Some((v.name, v.shape.as_deref()?))));
    }

    /// Counts elements of sequences: each is held on its own, so what all hold together is bounded.
    pub fn hold(&mut self, count: usize) -> Result<(), No> {
        self.held = self.held.saturating_add(count);
        if self.held > HELD_MAX { Err("the sequences of the model are too long".into()) } else { Ok(()) }
    }

    pub fn fresh(&mut self) -> String {
        self.count += 1;
        format!("v{}", self.count)
    }

    /// A new name with this value; the line says which node it is for.
    pub fn line(&mut self, value: &str) -> Result<String, No> {
        if self.lines.len() >= LINES_MAX {
            return Err("the model is too large".into());
        }
        let name = self.fresh();
        let remark = if self.remark.is_empty() { String::new() } else { format!("  # {}", self.remark) };
        self.lines.push(format!("{name} = {value}{remark}"));
        Ok(name)
    }

    /// A float of the host, rounded as a dtype with so many bits behind the first one does. It stays a number that
    /// shapes may be made of, which an element of a tensor is not.
    fn rounded(&mut self, text: &str, bits: u32) -> Result<String, No> {
        let x = self.line(text)?;
        // The unit in the first place, exactly (Rump, Accurate Floating-Point Summation); beside so many of it a
        // sum has no smaller places than the dtype, and is rounded to them.
        let wide = self.line(&format!("{x} * 4503599627370497.0"))?;
        let units = 1.5 * f64::from(52 - bits).exp2();
        let large = self.line(&format!("abs({wide} - {wide} * 0.9999999999999999) * {units:?}"))?;
        Ok(format!("({x} + {large}) - {large}"))
    }

    /// The field of a weight.
    fn weight(&mut self, t: &'m onnx::Tensor<'m>) -> Result<Tensor, No> {
        let dtype = t.dtype()?;
        t.data()?;
        let next = self.weights.len();
        let at = *self.fields.entry(&t.key).or_insert(next);
        if at == next {
            let field = self.names.fresh(&t.key, "w");
            self.weights.push((field, t));
        }
        let text = format!("weights.{}", self.weights[at].0);
        Ok(Tensor { known: t.dims.clone(), held: t.held(), ..Tensor::new(text, t.dims.len(), dtype) })
    }

    pub fn as_tensor(&mut self, value: &Value<'m>) -> Result<Tensor, No> {
        if let Some((x, rank, dtype)) = value.number()
            && rank == 0
        {
            return Ok(Tensor::new(format!("op.full((), {}, dtype={dtype})", literal(x, dtype)), rank, dtype));
        }
        match value {
            Value::Tensor(t) => Ok(t.clone()),
            Value::Ints(ints) => Ok(ints.tensor()),
            Value::Matrix(ints, columns) => {
                Ok(Tensor::new(format!("{}.reshape(-1, {columns})", ints.tensor().text), 2, ints.dtype))
            }
            Value::Constant(t) => match value.ints() {
                Some(ints) if ints.elems.len() <= 16 => Ok(ints.tensor()),
                _ => self.weight(t),
            },
            Value::List(_) => Err("a sequence stands where a tensor is needed".into()),
            Value::Nothing => Err("an optional value that holds nothing stands where a tensor is needed".into()),
            Value::Broken => Err(String::new()),
        }
    }
}

/// A node and what it is translated into.
pub struct Node<'b, 'm> {
    pub body: &'b mut Body<'m>,
    pub node: &'m onnx::Node<'m>,
    /// The operator in the version of the file.
    pub schema: &'static Schema,
}

/// An operand of elementwise work: a literal takes the dtype of what it meets.
#[derive(Clone, Debug)]
pub struct Operand {
    pub text: String,
    pub rank: usize,
    pub dtype: DType,
    /// A literal, or a size: not a tensor.
    pub weak: bool,
}

impl<'m> Node<'_, 'm> {
    /// Whether an argument is given.
    pub fn has(&self, i: usize) -> bool {
        self.node.inputs.get(i).is_some_and(|n| !n.is_empty())
    }

    pub fn value(&self, i: usize) -> Result<Value<'m>, No> {
        let Some(name) = self.node.inputs.get(i).filter(|n| !n.is_empty()) else {
            return Err(format!("it lacks argument {i}"));
        };
        match self.body.value(name) {
            Some(Value::Broken) => Err(String::new()),
            Some(v) => Ok(v.clone()),
            None => Err(format!("nothing before it computes `{name}`")),
        }
    }

    /// An argument as a tensor by its name.
    pub fn tensor(&mut self, i: usize) -> Result<Tensor, No> {
        let value = self.value(i)?;
        let t = self.body.as_tensor(&value)?;
        if t.text.contains('(') {
            let text = self.body.line(&t.text)?;
            return Ok(Tensor { text, ..t });
        }
        Ok(t)
    }

    /// Tensors that broadcast: constants of one element are literals where another is none.
    pub fn operands(&mut self) -> Result<Vec<Operand>, No> {
        let values = (0..self.node.inputs.len()).map(|i| self.value(i)).collect::<Result<Vec<_>, No>>()?;
        let alone = |v: &Value| match v.ints() {
            Some(ints) => (ints.elems.len() == 1).then(|| (ints.elems[0].text(), ints.scalar, ints.dtype)),
            None => v.number().map(|(x, rank, d)| (literal(x, d), rank == 0, d)),
        };
        let most = values.iter().filter(|v| alone(v).is_none()).map(|v| v.rank().unwrap_or(0)).max();
        let mut out = vec![];
        for (i, v) in values.iter().enumerate() {
            let literal = alone(v).filter(|(.., d)| *d != DType::Bool);
            let rank = v.rank().unwrap_or(0);
            match (literal, most) {
                (Some((text, _, dtype)), Some(most)) if rank <= most => {
                    out.push(Operand { text, rank, dtype, weak: true })
                }
                _ => {
                    let Tensor { text, rank, dtype, .. } = self.tensor(i)?;
                    out.push(Operand { text, rank, dtype, weak: false });
                }
            }
        }
        Ok(out)
    }

    pub fn optional(&mut self, i: usize) -> Result<Option<Tensor>, No> {
        if self.has(i) { self.tensor(i).map(Some) } else { Ok(None) }
    }

    /// An argument that shapes are made of.
    pub fn ints(&self, i: usize) -> Result<Vec<Int>, No> {
        match self.value(i)?.numbers() {
            Some(ints) => Ok(ints.elems.iter().map(Int::truncated).collect()),
            None => Err(format!("its argument {i} (`{}`) depends on data", self.node.inputs[i])),
        }
    }

    /// The same, read from a tensor of a known number of elements where it depends on data: such sizes are told when
    /// the model runs.
    pub fn sizes(&mut self, i: usize) -> Result<Vec<Int>, No> {
        let (Err(why), value) = (self.ints(i), self.value(i)?) else { return self.ints(i) };
        let Value::Tensor(t) = value else { return Err(why) };
        let places = match (t.rank, t.known.first()) {
            (0, _) => vec![String::new()],
            (1, Some(count @ 0..=READ_MAX)) => (0..*count).map(|k| format!("[{k}]")).collect(),
            _ => return Err(format!("{why}, and how many there are does, too")),
        };
        let mut out = vec![];
        for place in places {
            out.push(Int::Other(self.body.line(&format!("int({}{place}.item())", t.text))?));
        }
        Ok(out)
    }

    /// The first of [`Node::sizes`].
    pub fn size(&mut self, i: usize) -> Result<Int, No> {
        self.sizes(i)?.into_iter().next().ok_or_else(|| format!("its argument {i} is empty"))
    }

    /// An argument whose value may not depend on the inputs, not even on their sizes.
    pub fn known(&self, i: usize) -> Result<Vec<i64>, No> {
        let known = self.ints(i)?.iter().map(Int::known).collect::<Option<Vec<_>>>();
        known.ok_or_else(|| format!("its argument {i} (`{}`) depends on sizes of inputs", self.node.inputs[i]))
    }

    pub fn one(&self, i: usize) -> Result<Int, No> {
        let ints = self.ints(i)?;
        ints.first().cloned().ok_or_else(|| format!("its argument {i} is empty"))
    }

    /// One int or float as a value of the host, which is read from a tensor where it depends on data.
    pub fn read(&mut self, i: usize) -> Result<String, No> {
        if let Some(numbers) = self.value(i)?.numbers()
            && let Some(one) = numbers.elems.first()
        {
            return Ok(one.text());
        }
        let t = self.tensor(i)?;
        Ok(if t.rank == 0 { format!("{}.item()", t.text) } else { format!("{}.reshape(()).item()", t.text) })
    }

    /// A number that is known: a float or an int.
    pub fn number(&self, i: usize) -> Result<Option<f64>, No> {
        if !self.has(i) {
            return Ok(None);
        }
        let value = self.value(i)?;
        let folded = || value.numbers()?.elems.first()?.real();
        match value.number().map(|(x, ..)| x).or(value.whole().map(|n| n as f64)).or_else(folded) {
            Some(x) => Ok(Some(x)),
            None => Err(format!("its argument {i} (`{}`) is not a known number", self.node.inputs[i])),
        }
    }

    pub fn attribute(&self, name: &str) -> Option<&'m Attribute<'m>> {
        self.node.attributes.iter().find(|(n, _)| *n == name).map(|(_, a)| a)
    }

    /// What the standard has for an attribute that a node does not name.
    fn default(&self, name: &str) -> Option<&'static str> {
        self.schema.attribute(name)?.default
    }

    /// An attribute, else what the standard has for it, else (in versions without it) this.
    pub fn int(&self, name: &str, otherwise: i64) -> i64 {
        match self.attribute(name) {
            Some(Attribute::Int(n)) => *n,
            _ => self.default(name).and_then(|d| d.parse().ok()).unwrap_or(otherwise),
        }
    }

    /// As [`Node::int`].
    pub fn float(&self, name: &str, otherwise: f32) -> f64 {
        f64::from(match self.attribute(name) {
            Some(Attribute::Float(x)) => *x,
            _ => self.default(name).and_then(|d| d.parse().ok()).unwrap_or(otherwise),
        })
    }

    /// As [`Node::int`].
    pub fn text(&self, name: &str, otherwise: &str) -> String {
        match self.attribute(name) {
            Some(Attribute::Text(t)) => String::from_utf8_lossy(t).into_owned(),
            _ => self.default(name).unwrap_or(otherwise).to_owned(),
        }
    }

    /// The texts of a list; none where it is left out.
    pub fn texts(&self, name: &str) -> Vec<String> {
        match self.attribute(name) {
            Some(Attribute::Texts(all)) => all.iter().map(|t| (*t).to_owned()).collect(),
            _ => vec![],
        }
    }

    /// The floats of a list; none where it is left out.
    pub fn floats(&self, name: &str) -> Vec<f32> {
        match self.attribute(name) {
            Some(Attribute::Floats(all)) => all.clone(),
            _ => vec![],
        }
    }

    /// A number that is an attribute, as a literal of this dtype: the standard rounds it to f32 and converts it.
    pub fn literal(&self, name: &str, otherwise: f32, dtype: DType) -> String {
        literal(self.float(name, otherwise), dtype)
    }

    pub fn list(&self, name: &str) -> Option<Vec<i64>> {
        match self.attribute(name) {
            Some(Attribute::Ints(v)) => Some(v.clone()),
            _ => None,
        }
    }

    /// Ints that are an attribute in older files and an argument in newer ones.
    pub fn list_or(&self, name: &str, i: usize) -> Result<Option<Vec<i64>>, No> {
        match self.list(name) {
            Some(list) => Ok(Some(list)),
            None if self.has(i) => self.known(i).map(Some),
            None => Ok(None),
        }
    }

    /// Refuses a node for the value of an attribute.
    pub fn refuses<T>(&self, name: &str, why: &str) -> Result<T, No> {
        let value = match self.attribute(name) {
            Some(value) => shown(value),
            None => self.default(name).map_or("left out".into(), |d| format!("`{d}`")),
        };
        Err(format!("its attribute `{name}` is {value}: {why}"))
    }

    /// Whether a result is used by name.
    pub fn wants(&self, i: usize) -> bool {
        self.node.outputs.get(i).is_some_and(|n| !n.is_empty())
    }

    /// A result that only the first place of a node may have.
    pub fn only_one_result(&self) -> Result<(), No> {
        if (1..self.node.outputs.len()).any(|i| self.wants(i)) {
            return Err("its further results are not supported".into());
        }
        Ok(())
    }

    /// A tensor by an expression, under a name of its own.
    pub fn bound(&mut self, text: &str, rank: usize, dtype: DType) -> Result<Tensor, No> {
        let text = self.body.line(text)?;
        Ok(Tensor::new(text, rank, dtype))
    }

    /// The first result is this expression.
    pub fn give(&mut self, text: &str, rank: usize, dtype: DType) -> Result<(), No> {
        let t = self.bound(text, rank, dtype)?;
        self.result(0, Value::Tensor(t));
        Ok(())
    }

    pub fn result(&mut self, i: usize, value: Value<'m>) {
        if let Some(name) = self.node.outputs.get(i).copied() {
            self.body.set(name, value);
        }
    }

    pub fn give_ints(&mut self, mut ints: Ints) -> Result<(), No> {
        if ints.elems.len() > INTS_MAX {
            return Err(format!("it computes {} sizes", ints.elems.len()));
        }
        for e in &mut ints.elems {
            let mut text = e.text();
            let float = matches!(e, Int::Float(_));
            // A float of sizes is one of the host, which is rounded as its dtype holds it; names are already.
            let rounds = float && text.contains(|c: char| !c.is_ascii_alphanumeric());
            if let (true, Some(bits)) = (rounds, fraction_bits(ints.dtype)) {
                text = self.body.rounded(&text, bits)?;
            } else if text.len() <= TEXT_MAX {
                continue;
            }
            let name = self.body.line(&text)?;
            *e = match e {
                Int::Size(_) => Int::Size(name),
                Int::Float(_) => Int::Float(name),
                _ => Int::Other(name),
            };
        }
        self.result(0, Value::Ints(ints));
        Ok(())
    }

    /// A function of the library for ONNX files.
    pub fn library(&mut self, call: &str) -> String {
        let module = home(call.split('(').next().unwrap_or(call));
        self.body.libraries.insert(module);
        format!("{module}.{call}")
    }
}

/// The module in `std` that has a function.
fn home(function: &str) -> &'static str {
    match function {
        "gru" | "lstm" | "rnn" => "onnx_recurrent",
        "attention" | "grouped_attention" | "linear_attention" | "rotary" | "unpacked" => "onnx_attention",
        "affine_grid"
        | "deform_conv"
        | "grid_sample"
        | "lrn"
        | "non_max_suppression"
        | "resize"
        | "resize_linear"
        | "resize_smooth"
        | "roi_align" => "onnx_images",
        _ => "onnx",
    }
}

/// The bits of a number behind the first one, where they are fewer than those of f64.
fn fraction_bits(dtype: DType) -> Option<u32> {
    match dtype {
        DType::F32 => Some(23),
        DType::F16 => Some(10),
        DType::Bf16 => Some(7),
        _ => None,
    }
}

impl Tensor {
    /// The size of a dim.
    pub fn dim(&self, axis: usize) -> Int {
        match self.known.get(axis) {
            Some(n @ 0..) => Int::Known(*n),
            _ => Int::Size(format!("{}.shape[{axis}]", self.text)),
        }
    }

    /// The sizes of all dims.
    pub fn dims(&self) -> Vec<Int> {
        (0..self.rank).map(|i| self.dim(i)).collect()
    }

    /// A dim counted from the front.
    pub fn axis(&self, axis: i64) -> Result<usize, No> {
        axis_in(axis, self.rank)
    }
}

/// A dim counted from the front, of so many.
pub fn axis_in(axis: i64, rank: usize) -> Result<usize, No> {
    let n = rank as i64;
    let at = if axis < 0 { axis.saturating_add(n) } else { axis };
    if (0..n).contains(&at) { Ok(at as usize) } else { Err(format!("its axis {axis} is none of {rank} dims")) }
}

/// A list of axes as an argument.
pub fn axes_text(axes: &[usize]) -> String {
    match axes {
        [one] => one.to_string(),
        many => format!("({})", many.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
