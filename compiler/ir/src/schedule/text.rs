//! Schedule IR as text: operands, axes and values in one region, directives in a second.

use super::{Axis, Directive, Guard, Operand, Schedule, Store, Value, ValueId, ValueOp};
use crate::index::{Index, Var};
use crate::text::{Attr, Op, TextError, parse as parse_ops, print as print_ops};
use std::collections::BTreeMap;
use tessera_abi::plan::Bounds;
use tessera_base::DType;
use tessera_ops::map::MapOp;
use tessera_ops::prim::fold::DOT_LEAF;
use tessera_ops::prim::{FftKind, Order, Reduction, Scalar};

/// The text of a schedule; [`parse`] reads it back.
pub fn print(s: &Schedule) -> String {
    print_ops(&[to_op(s)], 0)
}

/// Reads one schedule. Errors: the place and what is wrong there; any text is safe.
pub fn parse(text: &str) -> Result<Schedule, TextError> {
    match &parse_ops(text)?[..] {
        [op] => read(op),
        ops => Err(TextError {
            at: ops.first().map_or(0, |o| o.at),
            message: "one `tessera.schedule.kernel` is expected".into(),
        }),
    }
}

/// Reads a schedule from its operation. Errors: as [`parse`].
pub fn read(op: &Op) -> Result<Schedule, TextError> {
    match op.name == "tessera.schedule.kernel" {
        true => Reader::default().kernel(op),
        false => Err(TextError { at: op.at, message: "a `tessera.schedule.kernel` is expected".into() }),
    }
}

pub(crate) fn strings(items: impl IntoIterator<Item = String>) -> Attr {
    Attr::List(items.into_iter().map(Attr::Str).collect())
}

pub(crate) fn strides_attr(strides: impl IntoIterator<Item = i64>) -> Attr {
    Attr::List(strides.into_iter().map(Attr::Int).collect())
}

/// Positions with their strides.
pub(crate) fn parse_by<V>(op: &Op, by: Vec<V>) -> Result<Vec<(V, i64)>, TextError> {
    let strides = op.ints("strides")?;
    if strides.len() != by.len() {
        return Err(op.error("as many strides as positions are expected"));
    }
    Ok(by.into_iter().zip(strides).collect())
}

/// `lo <= index < hi`.
pub(crate) fn guard_text(g: &Guard, name: &dyn Fn(Var) -> String) -> String {
    format!("{} <= {} < {}", g.lo, g.index.print(name), g.hi)
}

pub(crate) fn parse_guard(op: &Op, text: &str, var: &dyn Fn(&str) -> Option<Var>) -> Result<Guard, TextError> {
    let bad = || op.error(format!("`{text}` is no guard of the form `lo <= index < hi`"));
    let (lo, rest) = text.split_once("<=").ok_or_else(bad)?;
    let (index, hi) = rest.rsplit_once('<').ok_or_else(bad)?;
    Ok(Guard {
        lo: lo.trim().parse().map_err(|_| bad())?,
        hi: hi.trim().parse().map_err(|_| bad())?,
        index: Index::parse(index.trim(), var).map_err(|e| op.error(e))?,
    })
}

pub(crate) fn string_list(op: &Op, key: &str) -> Result<Vec<String>, TextError> {
    let bad = || op.error(format!("the attribute `{key}` must be a list of strings"));
    match op.attr(key) {
        None => Ok(vec![]),
        Some(Attr::List(items)) => {
            items.iter().map(|a| if let Attr::Str(s) = a { Ok(s.clone()) } else { Err(bad()) }).collect()
        }
        _ => Err(bad()),
    }
}

pub(crate) fn dtype_of(op: &Op, text: &str) -> Result<DType, TextError> {
    DType::parse(text).ok_or_else(|| op.error(format!("`{text}` is no element type")))
}

pub(crate) fn scalar_attr(c: Scalar) -> Attr {
    match c {
        Scalar::F(x) => Attr::Float(x),
        Scalar::I(i) => Attr::Int(i),
    }
}

pub(crate) fn parse_scalar(op: &Op) -> Result<Scalar, TextError> {
    match op.attr("value") {
        Some(Attr::Float(x)) => Ok(Scalar::F(*x)),
        Some(Attr::Int(i)) => Ok(Scalar::I(*i)),
        _ => Err(op.error("the attribute `value` must be a number")),
    }
}

pub(crate) fn bounds_attrs(b: &Bounds) -> Vec<(String, Attr)> {
    let mut attrs = vec![("axis".to_string(), Attr::Int(b.axis.into())), ("size".into(), Attr::Int(b.size as i64))];
    attrs.extend(b.block.map(|n| ("block".to_string(), Attr::Int(n as i64))));
    attrs
}

pub(crate) fn parse_bounds(op: &Op) -> Result<Bounds, TextError> {
    let block = op.attr("block").map(|_| u64_attr(op, "block")).transpose()?;
    Ok(Bounds { axis: u32_attr(op, "axis")?, size: u64_attr(op, "size")?, block })
}

pub(crate) fn u64_attr(op: &Op, key: &str) -> Result<u64, TextError> {
    op.index(key).map(|n| n as u64)
}

pub(crate) fn u32_attr(op: &Op, key: &str) -> Result<u32, TextError> {
    u32::try_from(op.index(key)?).map_err(|_| op.error(format!("the attribute `{key}` is too large")))
}

fn to_op(s: &Schedule) -> Op {
    let name = |v: Var| s.axes.get(v.0 as usize).map_or_else(|| format!("axis{}", v.0), |a| a.name.clone());
    let mut body = vec![];
    for o in &s.operands {
        let mut op = Op::new("tessera.schedule.operand");
        op.results = vec![o.name.clone()];
        op.attrs = vec![("elems".into(), Attr::Int(o.elems as i64)), ("output".into(), Attr::Bool(o.output))];
        op.types = vec![o.dtype.to_string()];
        body.push(op);
    }
    for a in &s.axes {
        let mut op = Op::new("tessera.schedule.axis");
        op.results = vec![a.name.clone()];
        op.attrs = vec![("extent".into(), Attr::Int(a.extent as i64)), ("reduced".into(), Attr::Bool(a.reduced))];
        body.push(op);
    }
    for (i, v) in s.values.iter().enumerate() {
        body.push(value_op(s, i, v, &name));
    }
    for st in &s.stores {
        let mut op = Op::new("tessera.schedule.store");
        op.operands = vec![s.operands[st.operand as usize].name.clone(), st.value.0.to_string()];
        op.attrs = vec![("at".into(), Attr::Str(st.at.print(&name)))];
        if !st.by.is_empty() {
            op.operands.extend(st.by.iter().map(|(v, _)| v.0.to_string()));
            op.attrs.push(("strides".into(), strides_attr(st.by.iter().map(|(_, n)| *n))));
        }
        body.push(op);
    }
    let mut op = Op::new("tessera.schedule.kernel");
    op.attrs = vec![
        ("name".into(), Attr::Str(s.name.clone())),
        ("scalars".into(), strings(s.scalars.iter().map(|d| d.to_string()))),
    ];
    op.attrs.extend(s.compensated.then(|| ("compensated".to_string(), Attr::Bool(true))));
    op.regions = vec![body, s.directives.iter().map(|d| directive_op(d, &name)).collect()];
    op
}

fn value_op(s: &Schedule, i: usize, v: &Value, name: &dyn Fn(Var) -> String) -> Op {
    let guards = |g: &[Guard]| ("guards".to_string(), strings(g.iter().map(|g| guard_text(g, name))));
    let ids = |vs: &[ValueId]| vs.iter().map(|v| v.0.to_string()).collect::<Vec<_>>();
    let (word, operands, attrs) = match &v.op {
        ValueOp::Load { operand, at, guards: g } => {
            let mut attrs = vec![("at".to_string(), Attr::Str(at.print(name)))];
            attrs.extend((!g.is_empty()).then(|| guards(g)));
            ("load", vec![s.operands[*operand as usize].name.clone()], attrs)
        }
        ValueOp::Gather { operand, at, by, guards: g } => {
            let mut operands = vec![s.operands[*operand as usize].name.clone()];
            operands.extend(by.iter().map(|(v, _)| v.0.to_string()));
            let strides = strides_attr(by.iter().map(|(_, n)| *n));
            let mut attrs = vec![("at".to_string(), Attr::Str(at.print(name))), ("strides".into(), strides)];
            attrs.extend((!g.is_empty()).then(|| guards(g)));
            ("gather", operands, attrs)
        }
        ValueOp::Position { arg, bounds } => ("position", ids(&[*arg]), bounds_attrs(bounds)),
        ValueOp::ArgReduce { largest, arg, axis } => (
            "argreduce",
            ids(&[*arg]),
            vec![("largest".into(), Attr::Bool(*largest)), ("axis".into(), Attr::Str(name(*axis)))],
        ),
        ValueOp::Cumulate { kind, start, arg, axis } => (
            "cumulate",
            ids(&[*arg]),
            vec![
                ("kind".into(), Attr::Str(kind.name().into())),
                ("value".into(), scalar_attr(*start)),
                ("axis".into(), Attr::Str(name(*axis))),
            ],
        ),
        ValueOp::Transform { kind, points, args, axis, to, table, imag } => {
            let operands = [s.operands[*table as usize].name.clone()].into_iter().chain(ids(args)).collect();
            let mut attrs = vec![
                ("kind".into(), Attr::Str(kind.name().into())),
                ("points".into(), Attr::Int(*points as i64)),
                ("axis".into(), Attr::Str(name(*axis))),
                ("to".into(), Attr::Str(name(*to))),
            ];
            attrs.extend(imag.then(|| ("imag".to_string(), Attr::Bool(true))));
            ("transform", operands, attrs)
        }
        ValueOp::Scalar(n) => ("scalar", vec![], vec![("n".into(), Attr::Int(*n as i64))]),
        ValueOp::Const(c) => ("const", vec![], vec![("value".into(), scalar_attr(*c))]),
        ValueOp::Index(e) => ("index", vec![], vec![("at".into(), Attr::Str(e.print(name)))]),
        ValueOp::Within(g) => ("within", vec![], vec![guards(g)]),
        ValueOp::HalfBits(a) => ("half_bits", ids(&[*a]), vec![]),
        ValueOp::Half { low, high } => ("half", ids(&[*low, *high]), vec![]),
        ValueOp::Random { key, at } => ("random", ids(key), vec![("at".into(), Attr::Str(at.print(name)))]),
        ValueOp::Map { op, args } => ("map", ids(args), vec![("op".into(), Attr::Str(op.name().into()))]),
        ValueOp::Cast(a) => ("cast", ids(&[*a]), vec![]),
        ValueOp::RoundTf32(a) => ("round_tf32", ids(&[*a]), vec![]),
        ValueOp::Reduce { kind, arg, axis } => (
            "reduce",
            ids(&[*arg]),
            vec![("kind".into(), Attr::Str(kind.name().into())), ("axis".into(), Attr::Str(name(*axis)))],
        ),
        ValueOp::Dot { a, b, axis, within, beyond, order, leaf } => {
            let mut attrs = vec![("axis".into(), Attr::Str(name(*axis)))];
            for (word, bound) in [("within", within), ("beyond", beyond)] {
                attrs.extend(bound.as_ref().map(|e| (word.to_string(), Attr::Str(e.print(name)))));
            }
            if *order != Order::Chain {
                attrs.push(("order".into(), Attr::Str(order.name().into())));
            }
            if *leaf != DOT_LEAF {
                attrs.push(("leaf".into(), Attr::Int(*leaf as i64)));
            }
            ("dot", ids(&[*a, *b]), attrs)
        }
    };
    let mut op = Op::new(format!("tessera.schedule.{word}"));
    (op.results, op.operands, op.attrs, op.types) = (vec![i.to_string()], operands, attrs, vec![v.dtype.to_string()]);
    op
}

fn directive_op(d: &Directive, name: &dyn Fn(Var) -> String) -> Op {
    let axis = |v: &Var| ("axis".to_string(), Attr::Str(name(*v)));
    let int = |key: &str, n: u64| (key.to_string(), Attr::Int(n as i64));
    let (word, attrs) = match d {
        Directive::Order(axes) => ("order", vec![("axes".into(), strings(axes.iter().map(|v| name(*v))))]),
        Directive::Tile { axis: a, size } => ("tile", vec![axis(a), int("size", *size)]),
        Directive::Vectorize { axis: a, lanes } => ("vectorize", vec![axis(a), int("lanes", *lanes as u64)]),
        Directive::Registers { rows, vectors } => {
            ("registers", vec![int("rows", *rows as u64), int("vectors", *vectors as u64)])
        }
        Directive::Steps { unroll, distance } => {
            ("steps", vec![int("unroll", *unroll as u64), int("distance", *distance as u64)])
        }
        Directive::Block { axis: a, size } => ("block", vec![axis(a), int("size", *size)]),
        Directive::Pack { operand } => ("pack", vec![int("operand", *operand as u64)]),
        Directive::SplitReduction => ("split_reduction", vec![]),
        Directive::Prefetch => ("prefetch", vec![]),
        Directive::MatrixUnit => ("matrix_unit", vec![]),
        Directive::Warps { rows, cols } => {
            ("warps", vec![int("rows", u64::from(*rows)), int("cols", u64::from(*cols))])
        }
        Directive::Stages(n) => ("stages", vec![int("count", u64::from(*n))]),
        Directive::Stream => ("stream", vec![]),
        Directive::Overlap => ("overlap", vec![]),
        Directive::Swap => ("swap", vec![]),
        Directive::Windows => ("windows", vec![]),
        Directive::Grain(n) => ("grain", vec![int("points", *n)]),
        Directive::Unroll(n) => ("unroll", vec![int("factor", *n as u64)]),
    };
    Op { attrs, ..Op::new(format!("tessera.schedule.{word}")) }
}

#[derive(Default)]
struct Reader {
    s: Schedule,
    operands: BTreeMap<String, u32>,
    axes: BTreeMap<String, Var>,
}

impl Reader {
    fn kernel(mut self, op: &Op) -> Result<Schedule, TextError> {
        self.s.name = op.str("name")?.to_string();
        self.s.scalars = string_list(op, "scalars")?.iter().map(|t| dtype_of(op, t)).collect::<Result<_, _>>()?;
        self.s.compensated = op.attr("compensated").is_some() && op.bool("compensated")?;
        let [body, directives] = &op.regions[..] else {
            return Err(op.error("two regions are expected: the body and the directives"));
        };
        for inner in body {
            self.line(inner)?;
        }
        for d in directives {
            let d = self.directive(d)?;
            self.s.directives.push(d);
        }
        Ok(self.s)
    }

    fn line(&mut self, op: &Op) -> Result<(), TextError> {
        let result = || op.results.first().cloned().ok_or_else(|| op.error("a result is expected"));
        match op.name.as_str() {
            "tessera.schedule.operand" => {
                let o = Operand {
                    name: result()?,
                    dtype: self.dtype(op)?,
                    elems: u64_attr(op, "elems")?,
                    output: op.bool("output")?,
                };
                if self.operands.insert(o.name.clone(), self.s.operands.len() as u32).is_some() {
                    return Err(op.error(format!("`%{}` is defined twice", o.name)));
                }
                self.s.operands.push(o);
            }
            "tessera.schedule.axis" => {
                let a = Axis { name: result()?, extent: u64_attr(op, "extent")?, reduced: op.bool("reduced")? };
                if self.axes.insert(a.name.clone(), Var(self.s.axes.len() as u32)).is_some() {
                    return Err(op.error(format!("axis `{}` is defined twice", a.name)));
                }
                self.s.axes.push(a);
            }
            "tessera.schedule.store" => {
                let [operand, value, by @ ..] = &op.operands[..] else {
                    return Err(op.error("an operand and a value are expected"));
                };
                let by = by.iter().map(|o| self.value_id(op, o)).collect::<Result<Vec<_>, _>>()?;
                let by = if by.is_empty() { vec![] } else { parse_by(op, by)? };
                let (operand, value) = (self.operand(op, operand)?, self.value_id(op, value)?);
                let st = Store { operand, at: self.at(op)?, by, value };
                self.s.stores.push(st);
            }
            _ => {
                if result()? != self.s.values.len().to_string() {
                    return Err(
                        op.error(format!("values are numbered in order, this one is `%{}`", self.s.values.len()))
                    );
                }
                let v = Value { op: self.value(op)?, dtype: self.dtype(op)? };
                self.s.values.push(v);
            }
        }
        Ok(())
    }

    fn value(&self, op: &Op) -> Result<ValueOp, TextError> {
        let args = || op.operands.iter().map(|o| self.value_id(op, o)).collect::<Result<Vec<_>, _>>();
        let one = || args()?.first().copied().ok_or_else(|| op.error("an operand is expected"));
        Ok(match op.name.strip_prefix("tessera.schedule.").unwrap_or("") {
            "load" => {
                let name = op.operands.first().ok_or_else(|| op.error("an operand is expected"))?;
                ValueOp::Load { operand: self.operand(op, name)?, at: self.at(op)?, guards: self.guards(op)? }
            }
            "gather" => {
                let (name, by) = op.operands.split_first().ok_or_else(|| op.error("an operand is expected"))?;
                let by = by.iter().map(|o| self.value_id(op, o)).collect::<Result<Vec<_>, _>>()?;
                let (operand, by) = (self.operand(op, name)?, parse_by(op, by)?);
                ValueOp::Gather { operand, at: self.at(op)?, by, guards: self.guards(op)? }
            }
            "position" => ValueOp::Position { arg: one()?, bounds: parse_bounds(op)? },
            "argreduce" => {
                ValueOp::ArgReduce { largest: op.bool("largest")?, arg: one()?, axis: self.axis(op, op.str("axis")?)? }
            }
            "cumulate" => {
                let word = op.str("kind")?;
                let kind = Reduction::parse(word).ok_or_else(|| op.error(format!("`{word}` is no reduction")))?;
                let axis = self.axis(op, op.str("axis")?)?;
                ValueOp::Cumulate { kind, start: parse_scalar(op)?, arg: one()?, axis }
            }
            "transform" => {
                let (table, args) = op.operands.split_first().ok_or_else(|| op.error("a table is expected"))?;
                let args = args.iter().map(|o| self.value_id(op, o)).collect::<Result<Vec<_>, _>>()?;
                let word = op.str("kind")?;
                let kind = FftKind::parse(word).ok_or_else(|| op.error(format!("`{word}` is no transform")))?;
                let (axis, to) = (self.axis(op, op.str("axis")?)?, self.axis(op, op.str("to")?)?);
                let imag = op.attr("imag").is_some() && op.bool("imag")?;
                let (points, table) = (u64_attr(op, "points")?, self.operand(op, table)?);
                ValueOp::Transform { kind, points, args, axis, to, table, imag }
            }
            "scalar" => ValueOp::Scalar(u32_attr(op, "n")?),
            "const" => ValueOp::Const(parse_scalar(op)?),
            "index" => ValueOp::Index(self.at(op)?),
            "within" => ValueOp::Within(self.guards(op)?),
            "half_bits" => ValueOp::HalfBits(one()?),
            "half" => match args()?[..] {
                [low, high] => ValueOp::Half { low, high },
                _ => return Err(op.error("two bytes are expected")),
            },
            "random" => match args()?[..] {
                [low, high] => ValueOp::Random { key: [low, high], at: self.at(op)? },
                _ => return Err(op.error("the two words of a key are expected")),
            },
            "map" => {
                let word = op.str("op")?;
                let map = MapOp::parse(word).ok_or_else(|| op.error(format!("`{word}` is no elementwise function")))?;
                ValueOp::Map { op: map, args: args()? }
            }
            "cast" => ValueOp::Cast(one()?),
            "round_tf32" => ValueOp::RoundTf32(one()?),
            "reduce" => {
                let word = op.str("kind")?;
                let kind = Reduction::parse(word).ok_or_else(|| op.error(format!("`{word}` is no reduction")))?;
                ValueOp::Reduce { kind, arg: one()?, axis: self.axis(op, op.str("axis")?)? }
            }
            "dot" => match args()?[..] {
                [a, b] => {
                    let bound = |word: &str| op.attr(word).map(|_| self.index(op, word)).transpose();
                    let (within, beyond) = (bound("within")?, bound("beyond")?);
                    let axis = self.axis(op, op.str("axis")?)?;
                    ValueOp::Dot { a, b, axis, within, beyond, order: op.order()?, leaf: op.leaf()? }
                }
                _ => return Err(op.error("two operands are expected")),
            },
            _ => return Err(op.error("no such operation in Schedule IR")),
        })
    }

    fn directive(&self, op: &Op) -> Result<Directive, TextError> {
        let axis = || self.axis(op, op.str("axis")?);
        Ok(match op.name.strip_prefix("tessera.schedule.").unwrap_or("") {
            "order" => {
                Directive::Order(string_list(op, "axes")?.iter().map(|a| self.axis(op, a)).collect::<Result<_, _>>()?)
            }
            "tile" => Directive::Tile { axis: axis()?, size: u64_attr(op, "size")? },
            "vectorize" => Directive::Vectorize { axis: axis()?, lanes: u32_attr(op, "lanes")? },
            "registers" => Directive::Registers { rows: u32_attr(op, "rows")?, vectors: u32_attr(op, "vectors")? },
            "steps" => Directive::Steps { unroll: u32_attr(op, "unroll")?, distance: u32_attr(op, "distance")? },
            "block" => Directive::Block { axis: axis()?, size: u64_attr(op, "size")? },
            "pack" => Directive::Pack { operand: u32_attr(op, "operand")? },
            "split_reduction" => Directive::SplitReduction,
            "prefetch" => Directive::Prefetch,
            "matrix_unit" => Directive::MatrixUnit,
            "warps" => Directive::Warps { rows: u32_attr(op, "rows")?, cols: u32_attr(op, "cols")? },
            "stages" => Directive::Stages(u32_attr(op, "count")?),
            "stream" => Directive::Stream,
            "overlap" => Directive::Overlap,
            "swap" => Directive::Swap,
            "windows" => Directive::Windows,
            "grain" => Directive::Grain(u64_attr(op, "points")?),
            "unroll" => Directive::Unroll(u32_attr(op, "factor")?),
            _ => return Err(op.error("no such directive")),
        })
    }

    fn dtype(&self, op: &Op) -> Result<DType, TextError> {
        match &op.types[..] {
            [t] => dtype_of(op, t),
            _ => Err(op.error("an element type is expected")),
        }
    }

    fn operand(&self, op: &Op, name: &str) -> Result<u32, TextError> {
        self.operands.get(name).copied().ok_or_else(|| op.error(format!("`%{name}` is no operand")))
    }

    fn axis(&self, op: &Op, name: &str) -> Result<Var, TextError> {
        self.axes.get(name).copied().ok_or_else(|| op.error(format!("`{name}` is no axis")))
    }

    fn value_id(&self, op: &Op, name: &str) -> Result<ValueId, TextError> {
        name.parse()
            .ok()
            .filter(|n| (*n as usize) < self.s.values.len())
            .map(ValueId)
            .ok_or_else(|| op.error(format!("`%{name}` is not defined")))
    }

    fn at(&self, op: &Op) -> Result<Index, TextError> {
        self.index(op, "at")
    }

    fn index(&self, op: &Op, key: &str) -> Result<Index, TextError> {
        Index::parse(op.str(key)?, &|n| self.axes.get(n).copied()).map_err(|e| op.error(e))
    }

    fn guards(&self, op: &Op) -> Result<Vec<Guard>, TextError> {
        string_list(op, "guards")?.iter().map(|t| parse_guard(op, t, &|n| self.axes.get(n).copied())).collect()
    }
}
