//! Reads expressions.

use super::{Read, Reader, flag, globals, grad, in_axes, number, out_axes, small, span, texts, types};
use crate::ir::*;
use crate::ty::GlobalId;
use std::sync::Arc;
use tessera_base::{BinOp, CmpOp, DType, Size};
use tessera_ir::prim::collective::of_name as read_collective;
use tessera_ir::text::{Attr, Op};
use tessera_ops::surface::{self, Hints, Precision};

/// The value of an operand that is written `_`, of a bound that is not written at all.
fn bound(op: &Op, text: &str, values: &mut dyn Iterator<Item = TExpr>) -> Read<Option<TExpr>> {
    match text {
        "" => Ok(None),
        "_" => values.next().map(Some).ok_or_else(|| op.error("a value is missing")),
        other => Err(op.error(format!("`{other}` is neither `_` nor empty"))),
    }
}

/// `low:high:step`.
fn bounds(op: &Op, text: &str, values: &mut dyn Iterator<Item = TExpr>) -> Read<[Option<TExpr>; 3]> {
    let parts: Vec<&str> = text.split(':').collect();
    let [low, high, step] = parts[..] else { return Err(op.error(format!("`{text}` is no slice `low:high:step`"))) };
    Ok([bound(op, low, values)?, bound(op, high, values)?, bound(op, step, values)?])
}

/// The parts of an index, with the values that they take.
pub fn index(op: &Op, values: &mut dyn Iterator<Item = TExpr>) -> Read<Vec<IndexPart>> {
    let mut out = vec![];
    for part in texts(op, "index")? {
        let mut one = || values.next().ok_or_else(|| op.error("a value is missing"));
        out.push(match part {
            "at" => IndexPart::Int(one()?),
            "gather" => IndexPart::Tensor(one()?),
            "new" => IndexPart::NewAxis,
            whole if whole.starts_with("whole ") => {
                let n = whole.trim_start_matches("whole ").parse();
                IndexPart::Whole(n.map_err(|_| op.error(format!("`{whole}` has no number of dims")))?)
            }
            slice => {
                let [low, high, step] = bounds(op, slice, values)?;
                IndexPart::Slice { low, high, step }
            }
        });
    }
    Ok(out)
}

fn dtype(op: &Op, key: &str) -> Read<DType> {
    DType::parse(op.str(key)?).ok_or_else(|| op.error(format!("`{key}` is no element type")))
}

fn boxed([a, b]: [TExpr; 2]) -> (Box<TExpr>, Box<TExpr>) {
    (Box::new(a), Box::new(b))
}

impl Reader<'_> {
    /// What an operation with a result is.
    pub(super) fn form(&mut self, op: &Op) -> Read<TKind> {
        let name = op.name.strip_prefix("core.").unwrap_or_default();
        Ok(match name {
            "int" => TKind::Int(op.int("value")?),
            "float" => TKind::Float(op.str("value")?.parse().map_err(|_| op.error("`value` is no number"))?),
            "bool" => TKind::Bool(op.bool("value")?),
            "str" => TKind::Str(op.str("value")?.into()),
            "none" => TKind::None,
            "dtype" => TKind::DType(dtype(op, "value")?),
            "get" | "get_global" => {
                let [var] = &op.operands[..] else { return Err(op.error("one variable is read")) };
                match name {
                    "get" => TKind::Local(LocalId(number(op, var)?)),
                    _ => TKind::Global(GlobalId(number(op, var)?)),
                }
            }
            "arith" => {
                let sign = BinOp::parse(op.str("value")?).ok_or_else(|| op.error("`value` is no operator"))?;
                let (left, right) = boxed(self.exactly(op, &op.operands)?);
                TKind::Arith { op: sign, left, right, int_operands: flag(op, "of_ints") }
            }
            "compare" => {
                let sign = CmpOp::parse(op.str("value")?).ok_or_else(|| op.error("`value` is no comparison"))?;
                let (left, right) = boxed(self.exactly(op, &op.operands)?);
                TKind::Compare { op: sign, left, right }
            }
            "and" | "or" => {
                let left = Box::new(self.only(op)?);
                TKind::Logic { and: name == "and", left, right: Box::new(self.value(op, op.regions.first())?) }
            }
            "cond" => TKind::Cond {
                test: Box::new(self.only(op)?),
                then: Box::new(self.value(op, op.regions.first())?),
                otherwise: Box::new(self.value(op, op.regions.get(1))?),
            },
            "block" => {
                let region = op.regions.first().ok_or_else(|| op.error("a region is missing"))?;
                let (stmts, mut values) = self.region(op, region)?;
                let (Some(value), true) = (values.pop(), values.is_empty()) else {
                    return Err(op.error("it yields one value"));
                };
                TKind::Block { stmts, value: Box::new(value) }
            }
            "under" => {
                let policy = tessera_ir::graph::Policy::parse(op.str("value")?);
                let policy = policy.ok_or_else(|| op.error("`value` is no policy"))?;
                TKind::WithPolicy(policy, Box::new(self.value(op, op.regions.first())?))
            }
            "field" => TKind::Field(Box::new(self.only(op)?), small(op, "value")?),
            "dim" => TKind::TensorDim(Box::new(self.only(op)?), op.index("value")?),
            "convert" => TKind::Convert {
                to: match op.str("value")? {
                    "int" => Convert::Int,
                    "float" => Convert::Float,
                    "str" => Convert::Str,
                    "repr" => Convert::Repr,
                    other => return Err(op.error(format!("nothing is converted to `{other}`"))),
                },
                value: Box::new(self.only(op)?),
            },
            "host" => TKind::Builtin { name: builtin(op)?, args: self.take_all(op, &op.operands)? },
            "tuple" => TKind::Tuple(self.take_all(op, &op.operands)?),
            "list" => TKind::List(self.take_all(op, &op.operands)?),
            "struct" => TKind::Struct(self.take_all(op, &op.operands)?),
            "closure" => TKind::Closure { captures: self.take_all(op, &op.operands)? },
            "dict" => TKind::Dict(self.entries(op)?),
            "slice" | "index_tensor" | "check" | "format" => self.mixed(op, name)?,
            "op" => self.operator(op)?,
            "concat" | "repeat" | "index" => {
                let (a, b) = boxed(self.exactly(op, &op.operands)?);
                match name {
                    "concat" => TKind::Concat(a, b),
                    "repeat" => TKind::Repeat(a, b),
                    _ => TKind::Index(a, b),
                }
            }
            "neg" => TKind::Neg(Box::new(self.only(op)?)),
            "invert" => TKind::Invert(Box::new(self.only(op)?)),
            "not" => TKind::Not(Box::new(self.only(op)?)),
            "int_to_float" => TKind::IntToFloat(Box::new(self.only(op)?)),
            "bool_to_int" => TKind::BoolToInt(Box::new(self.only(op)?)),
            "truth" => TKind::Truth(Box::new(self.only(op)?)),
            "shape" => TKind::TensorShape(Box::new(self.only(op)?)),
            "dtype_of" => TKind::TensorDType(Box::new(self.only(op)?)),
            "stop_gradient" => TKind::StopGradient(Box::new(self.only(op)?)),
            "layout" => TKind::Layout(Box::new(self.only(op)?)),
            _ => self.calls(op, name)?,
        })
    }

    fn entries(&mut self, op: &Op) -> Read<Vec<(TExpr, TExpr)>> {
        let mut values = self.take_all(op, &op.operands)?.into_iter();
        let mut entries = vec![];
        while let Some(key) = values.next() {
            entries.push((key, values.next().ok_or_else(|| op.error("a key has no value"))?));
        }
        Ok(entries)
    }

    /// Forms whose attributes say what their operands are.
    fn mixed(&mut self, op: &Op, name: &str) -> Read<TKind> {
        let mut values = self.take_all(op, &op.operands)?.into_iter();
        let missing = || op.error("a value is missing");
        let kind = match name {
            "slice" => {
                let base = Box::new(values.next().ok_or_else(missing)?);
                let [low, high, step] = bounds(op, op.str("value")?, &mut values)?.map(|b| b.map(Box::new));
                TKind::Slice { base, low, high, step }
            }
            "index_tensor" => {
                let base = Box::new(values.next().ok_or_else(missing)?);
                TKind::TensorIndex { base, index: index(op, &mut values)?, checks: self.checks(op)? }
            }
            "check" => {
                let value = Box::new(values.next().ok_or_else(missing)?);
                let dims = texts(op, "dims")?.into_iter().map(|d| bound(op, d, &mut values)).collect::<Read<_>>()?;
                TKind::Check { value, name: op.str("name")?.into(), annotation: span(op, "annotation")?, dims }
            }
            _ => TKind::Format(format_parts(op, &mut values)?),
        };
        if values.next().is_some() { Err(op.error("there are more values than it takes")) } else { Ok(kind) }
    }

    fn checks(&self, op: &Op) -> Read<Vec<(Size, Size)>> {
        if op.attr("checks").is_none() {
            return Ok(vec![]);
        }
        let size = |text: &str| self.defined.size(text.trim()).map_err(|why| op.error(why));
        let pair = |text: &str| {
            let (a, b) = text.split_once("==").ok_or_else(|| op.error("a check is of the form `size == size`"))?;
            Ok((size(a)?, size(b)?))
        };
        texts(op, "checks")?.into_iter().map(pair).collect()
    }

    fn operator(&mut self, op: &Op) -> Read<TKind> {
        let name = op.str("value")?;
        let def = surface::find(name).ok_or_else(|| op.error(format!("there is no operator `{name}`")))?;
        let values = self.take_all(op, &op.operands)?;
        let given: Vec<usize> = match op.attr("given") {
            None => (0..def.params.len()).collect(),
            Some(_) => op.ints("given")?.into_iter().map(|n| usize::try_from(n).unwrap_or(usize::MAX)).collect(),
        };
        let mut args: Vec<OpArg> = def.params.iter().map(|_| OpArg::Default).collect();
        if given.len() != values.len() {
            return Err(op.error(format!(
                "{} parameters are given, and there are {} values",
                given.len(),
                values.len()
            )));
        }
        for (at, value) in given.into_iter().zip(values) {
            let slot =
                args.get_mut(at).ok_or_else(|| op.error("a parameter is given that the operator does not have"))?;
            *slot = OpArg::Value(value);
        }
        let has = |key: &str| op.attr(key).is_some();
        let precision = match has("precision") {
            true => Precision::parse(op.str("precision")?).ok_or_else(|| op.error("`precision` names no mode"))?,
            false => Precision::default(),
        };
        let hints = Hints {
            tile_shape: if has("tile_shape") { Some(op.ints("tile_shape")?) } else { None },
            accum_dtype: if has("accum_dtype") { Some(dtype(op, "accum_dtype")?) } else { None },
            out_dtype: if has("out_dtype") { Some(dtype(op, "out_dtype")?) } else { None },
            precision,
            reassociate: flag(op, "reassociate"),
        };
        Ok(TKind::Op { def, args, hints, checks: self.checks(op)? })
    }

    fn calls(&mut self, op: &Op, name: &str) -> Read<TKind> {
        let mut values = self.take_all(op, &op.operands)?.into_iter();
        let missing = || op.error("a value is missing");
        let closed = flag(op, "closed");
        let mut callee = || -> Read<Option<Box<TExpr>>> {
            if closed { Ok(Some(Box::new(values.next().ok_or_else(missing)?))) } else { Ok(None) }
        };
        let kind = match name {
            "call" => {
                let (inst, callee) = (self.inst(op, "of")?, callee()?);
                TKind::Call { inst, callee, args: values.by_ref().collect() }
            }
            "call_value" => {
                let callee = Box::new(values.next().ok_or_else(missing)?);
                TKind::CallValue { callee, args: values.by_ref().collect() }
            }
            "erase" => TKind::Erase { value: Box::new(values.next().ok_or_else(missing)?), inst: self.inst(op, "of")? },
            "scan" | "fori" => {
                let (inst, callee) = (self.inst(op, "of")?, callee()?);
                let mut next = || values.next().map(Box::new).ok_or_else(missing);
                match name {
                    "scan" => TKind::Scan { inst, callee, init: next()?, xs: next()? },
                    _ => TKind::Fori { inst, callee, low: next()?, high: next()?, init: next()? },
                }
            }
            "choice" | "while_loop" | "map" | "associative_scan" => {
                let Some(flow) = Flow::ALL.into_iter().find(|f| f.name() == name) else { return Err(missing()) };
                let (of, closed) = (texts(op, "of")?, op.ints("closed")?);
                let mut functions = vec![];
                for (name, closed) in of.into_iter().zip(closed) {
                    let callee = if closed != 0 { Some(Box::new(values.next().ok_or_else(missing)?)) } else { None };
                    functions.push(Called::new(self.named(op, name)?, callee));
                }
                TKind::Flow { flow, functions, args: values.by_ref().collect() }
            }
            "derive" => {
                let region = op.regions.first().ok_or_else(|| op.error("a region is missing"))?;
                TKind::Derive { f: Box::new(self.made(op, region)?), args: values.by_ref().collect() }
            }
            "collective" => {
                let what = Arc::new(read_collective(op.str("value")?, op)?);
                TKind::Collective { what, x: values.next().map(Box::new) }
            }
            _ => return Err(op.error("there is no such form")),
        };
        if values.next().is_some() { Err(op.error("there are more values than it takes")) } else { Ok(kind) }
    }

    /// A function and what is made of it, innermost first.
    fn made(&mut self, op: &Op, region: &[Op]) -> Read<TFunction> {
        let outer = std::mem::take(&mut self.values);
        let mut made: Option<TFunction> = None;
        for inner in region {
            if !inner.results.is_empty() {
                self.operation(inner)?;
                continue;
            }
            let bound = self.take_all(inner, &inner.operands)?;
            made = Some(match (inner.name.as_str(), made) {
                ("core.direct", None) => {
                    let mut bound = bound;
                    TFunction::Direct { inst: self.inst(inner, "of")?, callee: bound.pop() }
                }
                (_, Some(of)) => TFunction::Derived { step: self.step(inner)?, of: Box::new(of), bound },
                (_, None) => return Err(inner.error("there is no function that this could be made of")),
            });
        }
        let left = std::mem::replace(&mut self.values, outer);
        made.filter(|_| left.is_empty()).ok_or_else(|| op.error("the region gives one function, and takes each value"))
    }

    fn step(&self, op: &Op) -> Read<Step> {
        Ok(match op.name.as_str() {
            "core.grad" => Step::Grad(grad(op)?),
            "core.jvp" => Step::Jvp,
            "core.pullback" => Step::Pullback(globals(op)?),
            "core.checkpoint" => Step::Checkpoint,
            "core.vmap" => Step::Vmap(in_axes(op)?, out_axes(op)?),
            "core.local_call" => {
                let mut args = types(self.defined, op)?;
                let ret = args.pop().ok_or_else(|| op.error("the type of the result is missing"))?;
                let mesh = self.defined.mesh(op.str("mesh")?).map_err(|why| op.error(why))?;
                Step::Local(Arc::new(LocalCall { name: op.str("name")?.into(), mesh, args, ret }))
            }
            _ => return Err(op.error("nothing of the kind is made of functions")),
        })
    }
}

fn format_parts(op: &Op, values: &mut dyn Iterator<Item = TExpr>) -> Read<Vec<FormatPart>> {
    let bad = || op.error("`parts` are lists of a text, and \"str\" or \"repr\", perhaps \"with spec\"");
    let Some(Attr::List(items)) = op.attr("parts") else { return Err(bad()) };
    let mut next = || values.next().ok_or_else(|| op.error("a value is missing"));
    let mut parts = vec![];
    for item in items {
        parts.push(match item {
            Attr::List(text) => match &text[..] {
                [Attr::Str(text)] => FormatPart::Text(text.as_str().into()),
                _ => return Err(bad()),
            },
            Attr::Str(what) => {
                let value = next()?;
                let spec = if what.ends_with("with spec") { Some(next()?) } else { None };
                FormatPart::Value { value, repr: what.starts_with("repr"), spec }
            }
            _ => return Err(bad()),
        });
    }
    Ok(parts)
}

/// The host function that an operation names.
fn builtin(op: &Op) -> Read<Builtin> {
    let name = op.str("value")?;
    Builtin::parse(name).ok_or_else(|| op.error(format!("there is no host function `{name}`")))
}
