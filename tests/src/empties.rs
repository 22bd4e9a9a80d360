//! Calls of operators in which dims have no elements, or one: as programs and as graphs.

use crate::arguments::Call;
use crate::operators::expand;
use crate::random::Fill;
use crate::random_graph::{Builder, Case, elems};
use tessera_base::DType;
use tessera_ops::prim::Scalar;
use tessera_ops::surface::{Arg, Default, Hints, Id, OpDef, Param, ParamKind};

/// Sizes of the calls that dims are then taken from; the first is not picked everywhere.
const SIZES: &[u64] = &[3, 2, 4, 5];
/// Calls that are tried for one row and type.
const TRIES: u64 = 10;

/// One argument, tensors without their elements.
#[derive(Clone, PartialEq, Debug)]
pub enum Given {
    Tensor(Vec<u64>, DType),
    Tensors(Vec<(Vec<u64>, DType)>),
    Other(Arg),
}

/// A call without the elements of its tensors.
#[derive(Clone, Debug)]
pub struct Sketch {
    pub def: &'static OpDef,
    /// The element type that the call is made for: other tensors hold positions.
    pub dtype: DType,
    pub given: Vec<Given>,
    /// What positions are.
    pub at: i64,
}

/// Accepted calls of a row in which all dims have elements, at most `count`.
pub fn sketches(def: &'static OpDef, dtype: DType, count: usize) -> Vec<Sketch> {
    let mut out: Vec<Sketch> = vec![];
    for seed in 0..TRIES {
        let mut b = Builder::plain(seed * 37 + 5);
        let size = SIZES[seed as usize % SIZES.len()];
        let args = Call::among(&mut b, dtype, size, SIZES).arguments(def);
        let ty = |id: &Id| {
            let ty = b.ty(tessera_ir::graph::NodeId(id.0));
            (ty.shape, ty.dtype)
        };
        let given = |arg: &Arg| match arg {
            Arg::Tensor(id) => {
                let (shape, dtype) = ty(id);
                Given::Tensor(shape, dtype)
            }
            Arg::Tensors(ids) => Given::Tensors(ids.iter().map(ty).collect()),
            other => Given::Other(other.clone()),
        };
        let sketch = Sketch { def, dtype, given: args.iter().map(given).collect(), at: 0 };
        // A call without sizes has none to change.
        let sized = sketch.given.iter().any(|g| !matches!(g, Given::Other(_))) || !sketch.with(0).is_empty();
        if sized && sketch.case().is_some() && out.iter().all(|s| s.given != sketch.given) {
            out.push(sketch);
        }
        if out.len() == count {
            break;
        }
    }
    out
}

impl Sketch {
    /// The call with dims of `n` elements: each dim of each tensor, each size wherever it stands, and all dims.
    pub fn with(&self, n: u64) -> Vec<Sketch> {
        let mut out: Vec<Sketch> = vec![];
        let mut add = |change: &mut dyn FnMut(usize, usize, u64) -> u64| {
            let mut s = self.clone();
            s.given
                .iter_mut()
                .enumerate()
                .for_each(|(i, g)| each_size(&self.def.params[i], g, &mut |d, n| change(i, d, n)));
            if s.given != self.given && out.iter().all(|o| o.given != s.given) {
                out.push(s);
            }
        };
        let mut sizes = vec![];
        let mut places = vec![];
        let mut all = self.clone();
        for (i, g) in all.given.iter_mut().enumerate() {
            each_size(&self.def.params[i], g, &mut |d, n| {
                places.push((i, d));
                sizes.push(n);
                n
            });
        }
        add(&mut |_, _, _| n);
        for size in &sizes {
            add(&mut |_, _, m| if m == *size { n } else { m });
        }
        for place in places {
            add(&mut |i, d, m| if (i, d) == place { n } else { m });
        }
        for (i, _) in self.given.iter().enumerate() {
            add(&mut |j, _, m| if i == j { n } else { m });
        }
        out
    }

    /// The same call with other positions; `None` where it has none.
    pub fn at(&self, at: i64) -> Option<Sketch> {
        let other = |d: DType| d != self.dtype && d == DType::I64;
        let positions =
            |(g, p): (&Given, &Param)| matches!(g, Given::Tensor(_, d) if other(*d) && p.kind != ParamKind::Key);
        self.given.iter().zip(self.def.params).any(positions).then(|| Sketch { at, ..self.clone() })
    }

    /// The call as a graph with random elements; `None` where the row refuses it.
    pub fn case(&self) -> Option<Case> {
        let mut b = Builder::plain(11);
        let args: Vec<Arg> = self.given.iter().enumerate().map(|(i, g)| self.argument(&mut b, i, g)).collect();
        b.graph.outputs = expand(&mut b, self.def, &args, &Hints::default()).ok()?;
        b.graph.name = self.text(false);
        Some(Case { graph: b.graph, inputs: b.data })
    }

    fn argument(&self, b: &mut Builder, i: usize, given: &Given) -> Arg {
        let mut tensor = |shape: &[u64], dtype: DType| {
            let (n, size) = (elems(shape), dtype.bytes());
            let known = self.def.params[i].kind == ParamKind::Key || dtype == self.dtype || dtype == DType::C64;
            let bytes = if known {
                b.random.elements(dtype, n, Fill::Ordinary)
            } else {
                self.at.to_le_bytes()[..size].repeat(n)
            };
            Id(b.input_of(shape, dtype, bytes, false).0)
        };
        match given {
            Given::Tensor(shape, dtype) => Arg::Tensor(tensor(shape, *dtype)),
            Given::Tensors(all) => Arg::Tensors(all.iter().map(|(shape, dtype)| tensor(shape, *dtype)).collect()),
            Given::Other(arg) => arg.clone(),
        }
    }

    /// The call as an expression, with sizes of no element and of one as they are or as the names `zero` and `one`.
    pub fn text(&self, named: bool) -> String {
        let values: Vec<String> = self.given.iter().enumerate().map(|(i, _)| self.value(i, &[], named)).collect();
        self.call(&values)
    }

    /// The same as a function of those arguments that are tensors of `dtype`, and its arguments, with dims before their own.
    pub fn function(&self, dtype: DType, before: &[u64], named: bool) -> Option<(String, Vec<String>)> {
        let (mut names, mut values, mut arguments) = (vec![], vec![], vec![]);
        for (i, g) in self.given.iter().enumerate() {
            let key = self.def.params[i].kind == ParamKind::Key;
            let plain = self.value(i, &[], named);
            values.push(match g {
                Given::Tensor(_, d) if *d == dtype && !key => {
                    names.push(format!("t{i}"));
                    arguments.push(self.value(i, before, named));
                    format!("t{i}")
                }
                _ => plain,
            });
        }
        if names.is_empty() {
            return None;
        }
        Some((format!("lambda {}: {}", names.join(", "), self.call(&values)), arguments))
    }

    fn call(&self, values: &[String]) -> String {
        let name = if self.def.name.contains('.') { self.def.name.to_owned() } else { format!("op.{}", self.def.name) };
        let argument = |(p, v): (&Param, &String)| match p.default {
            Default::Required => v.clone(),
            _ => format!("{}={v}", p.name),
        };
        let args: Vec<String> = self.def.params.iter().zip(values).map(argument).collect();
        format!("{name}({})", args.join(", "))
    }

    fn value(&self, i: usize, before: &[u64], named: bool) -> String {
        let tensor = |shape: &[u64], dtype: DType| {
            let shape = [before, shape].concat();
            let text = sizes(shape.iter().map(|&n| n as i64), named);
            let known = dtype == self.dtype || dtype == DType::C64;
            match known {
                // 0.75, 1.75, …: whatever the type, elements differ.
                true => {
                    let count = shape.iter().map(|n| n.to_string()).collect::<Vec<_>>();
                    let count = if count.is_empty() { "1".into() } else { count.join(" * ") };
                    format!("op.cast(op.arange({count}) + 0.75, {dtype}).reshape({text})")
                }
                false => format!("op.full({text}, {}, dtype={dtype})", self.at),
            }
        };
        match &self.given[i] {
            Given::Tensor(..) if self.def.params[i].kind == ParamKind::Key => "random.key(7)".into(),
            Given::Tensor(shape, dtype) => tensor(shape, *dtype),
            Given::Tensors(all) => {
                format!("[{}]", all.iter().map(|(s, d)| tensor(s, *d)).collect::<Vec<_>>().join(", "))
            }
            Given::Other(Arg::Ints(all)) if self.def.params[i].kind == ParamKind::Shape => {
                sizes(all.iter().copied(), named)
            }
            Given::Other(arg) => other(arg),
        }
    }
}

/// Calls `change` with every size of an argument and takes its answer for it.
fn each_size(p: &Param, given: &mut Given, change: &mut dyn FnMut(usize, u64) -> u64) {
    match given {
        _ if p.kind == ParamKind::Key => {}
        Given::Tensor(shape, _) => shape.iter_mut().enumerate().for_each(|(d, n)| *n = change(d, *n)),
        Given::Tensors(all) => {
            let dims = all.iter_mut().flat_map(|(shape, _)| shape.iter_mut());
            dims.enumerate().for_each(|(d, n)| *n = change(d, *n));
        }
        Given::Other(Arg::Ints(all)) if p.kind == ParamKind::Shape => {
            all.iter_mut().enumerate().for_each(|(d, n)| *n = change(d, *n as u64) as i64);
        }
        Given::Other(Arg::Int(n)) if matches!(p.kind, ParamKind::Int | ParamKind::Number | ParamKind::IntOrTensor) => {
            *n = change(0, *n as u64) as i64;
        }
        Given::Other(_) => {}
    }
}

/// A tuple of sizes.
fn sizes(all: impl Iterator<Item = i64>, named: bool) -> String {
    let one = |n: i64| match n {
        0 if named => "zero".into(),
        1 if named => "one".into(),
        n => n.to_string(),
    };
    tuple(all.map(one).collect())
}

fn tuple(all: Vec<String>) -> String {
    match all.as_slice() {
        [one] => format!("({one},)"),
        all => format!("({})", all.join(", ")),
    }
}

/// What is no tensor, as it is written.
fn other(arg: &Arg) -> String {
    let number = |s: &Scalar| match s {
        Scalar::I(n) => n.to_string(),
        Scalar::F(x) => format!("{x:?}"),
    };
    match arg {
        Arg::Scalar(s) => number(s),
        Arg::Int(n) => n.to_string(),
        Arg::Ints(all) => tuple(all.iter().map(|n| n.to_string()).collect()),
        Arg::Float(x) => format!("{x:?}"),
        Arg::Bool(true) => "True".into(),
        Arg::Bool(false) => "False".into(),
        Arg::DType(d) => d.to_string(),
        Arg::Str(text) => format!("\"{text}\""),
        Arg::Nested { values, .. } => format!("[{}]", values.iter().map(number).collect::<Vec<_>>().join(", ")),
        Arg::None | Arg::Tensor(_) | Arg::Tensors(_) | Arg::Dynamic(_) => "None".into(),
    }
}
