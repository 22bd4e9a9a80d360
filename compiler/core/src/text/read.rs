//! Reads Core as [`super::print`] writes it. Any text is safe.

use super::read_types::Defined;
use super::types::{DIM, EACH, INT};
use crate::budget::Budget;
use crate::ir::*;
use crate::ty::{Derived, FnRefTy, GlobalKey, Grad, Line, OutAxes, StructTy, Ty};
use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_base::{FileId, ItemId, Mesh, SizeVar, Span};
use tessera_ir::graph::Policy;
use tessera_ir::hints::KernelHints;
use tessera_ir::text::{Attr, Op, TextError, parse as parse_ops};

mod exprs;
mod stmts;

type Read<T> = Result<T, TextError>;

/// Reads a program.
///
/// # Errors
/// The place and what is wrong there. A program that is read may still break the rules of [`crate::verify`].
pub fn parse(text: &str) -> Read<Program> {
    let ops = parse_ops(text)?;
    let mut defined = Defined::default();
    let mut program = Program::default();
    let mut functions = BTreeMap::new();
    for op in ops.iter().filter(|op| op.name == "core.function") {
        let number = u32::try_from(functions.len()).unwrap_or(u32::MAX);
        if functions.insert(result(op)?.to_owned(), InstId(number)).is_some() {
            return Err(op.error("another function has this name"));
        }
    }
    for op in &ops {
        match op.name.as_str() {
            "core.size" => define_size(&mut defined, op)?,
            "core.mesh" => define_mesh(&mut defined, op)?,
            "core.struct" => define_struct(&mut defined, op)?,
            "core.closure_type" => define_function_type(&mut defined, op)?,
            "core.global" => program.globals.push(variable(&defined, op)?),
            "core.function" => {
                if flag(op, "entry") {
                    program.entry = Some(InstId(u32::try_from(program.insts.len()).unwrap_or(u32::MAX)));
                }
                let reader = Reader { defined: &defined, functions: &functions, values: BTreeMap::new(), taken: 0 };
                program.insts.push(reader.function(op)?);
            }
            _ => return Err(op.error("a program is made of definitions, variables and functions")),
        }
    }
    Ok(program)
}

/// Values within a value, deeper than programs that are checked have them.
const DEPTH_MAX: usize = 1000;

/// What one function is read with.
struct Reader<'d> {
    defined: &'d Defined,
    functions: &'d BTreeMap<String, InstId>,
    /// Values that nothing has taken yet, and how deep they are.
    values: BTreeMap<String, (TExpr, usize)>,
    /// The depth of the deepest value that the operation has taken so far.
    taken: usize,
}

fn result(op: &Op) -> Read<&str> {
    match &op.results[..] {
        [one] => Ok(one),
        _ => Err(op.error("it has one name before `=`")),
    }
}

/// The number behind the last point of a name.
fn number(op: &Op, name: &str) -> Read<u32> {
    let digits = name.rsplit_once('.').map_or(name, |(_, n)| n);
    digits.parse().map_err(|_| op.error(format!("`%{name}` ends in no number")))
}

fn flag(op: &Op, key: &str) -> bool {
    matches!(op.attr(key), Some(Attr::Bool(true)))
}

fn small(op: &Op, key: &str) -> Read<u32> {
    u32::try_from(op.int(key)?).map_err(|_| op.error(format!("`{key}` is negative or too large")))
}

fn smalls(op: &Op, key: &str) -> Read<Vec<u32>> {
    let one =
        |n| u32::try_from(n).map_err(|_| op.error(format!("`{key}` holds a number that is negative or too large")));
    if op.attr(key).is_none() { Ok(vec![]) } else { op.ints(key)?.into_iter().map(one).collect() }
}

fn texts<'o>(op: &'o Op, key: &str) -> Read<Vec<&'o str>> {
    let bad = || op.error(format!("the attribute `{key}` must be a list of strings"));
    match op.attr(key) {
        Some(Attr::List(items)) => {
            items.iter().map(|a| if let Attr::Str(s) = a { Ok(s.as_str()) } else { Err(bad()) }).collect()
        }
        _ => Err(bad()),
    }
}

/// `item:start:end`, nowhere without the attribute.
fn span(op: &Op, key: &str) -> Read<Span> {
    if op.attr(key).is_none() {
        return Ok(Span::NONE);
    }
    let numbers: Option<Vec<u32>> = op.str(key)?.split(':').map(|n| n.parse().ok()).collect();
    match numbers.as_deref() {
        Some([item, start, end]) => Ok(Span { item: ItemId(*item), start: *start, end: *end }),
        _ => Err(op.error(format!("`{key}` is no place of the form `item:start:end`"))),
    }
}

fn policy(op: &Op) -> Read<Policy> {
    Policy::parse(op.str("policy")?).ok_or_else(|| op.error("`policy` names none"))
}

fn budget(op: &Op) -> Read<Arc<Budget>> {
    let read = Budget::parse(op.str("budget")?).map(Arc::new);
    read.ok_or_else(|| op.error("`budget` is not of the form `name=number`"))
}

fn hints(op: &Op) -> Read<Arc<KernelHints>> {
    KernelHints::parse(op.str("hints")?)
        .map(Arc::new)
        .ok_or_else(|| op.error("`hints` are not of the form `name key=value`"))
}

fn types(defined: &Defined, op: &Op) -> Read<Vec<Ty>> {
    op.types.iter().map(|t| defined.ty(t).map_err(|why| op.error(why))).collect()
}

fn ty(defined: &Defined, op: &Op) -> Read<Ty> {
    match &op.types[..] {
        [one] => defined.ty(one).map_err(|why| op.error(why)),
        _ => Err(op.error("one type is expected behind `:`")),
    }
}

fn define_size(defined: &mut Defined, op: &Op) -> Read<()> {
    let name = result(op)?;
    let var = SizeVar {
        id: number(op, [DIM, INT, EACH].iter().fold(name, |name, end| name.strip_suffix(end).unwrap_or(name)))?,
        name: op.str("name")?.into(),
        rigid: flag(op, "rigid"),
        natural: flag(op, "natural"),
        each: flag(op, "each"),
    };
    defined.sizes.insert(name.to_owned(), var);
    Ok(())
}

fn define_mesh(defined: &mut Defined, op: &Op) -> Read<()> {
    let (names, sizes) = (texts(op, "axes")?, op.ints("sizes")?);
    if names.len() != sizes.len() || sizes.iter().any(|n| *n < 0) {
        return Err(op.error("each axis has a size that is not negative"));
    }
    let axes = names.into_iter().map(str::to_owned).zip(sizes.into_iter().map(|n| n as u64)).collect();
    defined.meshes.insert(result(op)?.to_owned(), Arc::new(Mesh { axes }));
    Ok(())
}

/// Names with the types behind `:`.
fn fields(defined: &Defined, op: &Op, key: &str) -> Read<Vec<(Arc<str>, Ty)>> {
    of_types(op, key, types(defined, op)?)
}

/// Names with their types.
fn of_types(op: &Op, key: &str, types: Vec<Ty>) -> Read<Vec<(Arc<str>, Ty)>> {
    let names = texts(op, key)?;
    if names.len() != types.len() {
        return Err(op.error(format!("`{key}` has {} names, and there are {} types", names.len(), types.len())));
    }
    Ok(names.into_iter().map(Arc::from).zip(types).collect())
}

fn define_struct(defined: &mut Defined, op: &Op) -> Read<()> {
    let fields = fields(defined, op, "fields")?;
    let ty = StructTy { name: op.str("name")?.into(), item: small(op, "item")?, fields };
    defined.define(result(op)?, &op.types, Ty::Struct(Arc::new(ty))).map_err(|why| op.error(why))
}

fn define_function_type(defined: &mut Defined, op: &Op) -> Read<()> {
    let mut types = types(defined, op)?;
    // Behind the types of the captures are those of the variables whose values a pullback keeps.
    let kept = types.split_off(texts(op, "captures")?.len().min(types.len()));
    let captures = of_types(op, "captures", types)?;
    let derived = if op.attr("made").is_some() { Some(derived(defined, op, kept)?) } else { None };
    let (name, item, start) = (op.str("name")?.into(), small(op, "item")?, small(op, "start")?);
    let ty = FnRefTy { name, item, start, captures, derived };
    defined.define(result(op)?, &op.types, Ty::FnRef(Arc::new(ty))).map_err(|why| op.error(why))
}

fn grad(op: &Op) -> Read<Grad> {
    Ok(Grad { wrt: smalls(op, "wrt")?, single: flag(op, "single"), value: flag(op, "value"), aux: flag(op, "aux") })
}

fn globals(op: &Op) -> Read<Vec<crate::ty::GlobalId>> {
    Ok(smalls(op, "globals")?.into_iter().map(crate::ty::GlobalId).collect())
}

fn in_axes(op: &Op) -> Read<Vec<Option<i64>>> {
    let bad = || op.error("`in_axes` is a list of dims and of \"none\"");
    let axis = |a: &Attr| match a {
        Attr::Int(n) => Ok(Some(*n)),
        Attr::Str(s) if s == "none" => Ok(None),
        _ => Err(bad()),
    };
    match op.attr("in_axes") {
        Some(Attr::List(items)) => items.iter().map(axis).collect(),
        _ => Err(bad()),
    }
}

fn out_axes(op: &Op) -> Read<OutAxes> {
    match op.attr("out_axes") {
        Some(Attr::Int(n)) => Ok(OutAxes::All(*n)),
        _ => Ok(OutAxes::Each(op.ints("out_axes")?)),
    }
}

/// The variables of modules in a type.
fn global_keys(op: &Op, types: Vec<Ty>) -> Read<Vec<GlobalKey>> {
    let (modules, named) = (smalls(op, "modules")?, of_types(op, "globals", types)?);
    if modules.len() != named.len() {
        return Err(op.error("`modules` has a file for each of `globals`"));
    }
    let key = |(module, (name, ty))| GlobalKey { module: FileId(module), name, ty };
    Ok(modules.into_iter().zip(named).map(key).collect())
}

fn derived(defined: &Defined, op: &Op, kept: Vec<Ty>) -> Read<Derived> {
    let made = op.str("made")?;
    if made != "pullback" && !kept.is_empty() {
        return Err(op.error("there are more types than captures"));
    }
    Ok(match made {
        "grad" => Derived::Grad(grad(op)?),
        "pullback" => Derived::Pullback(global_keys(op, kept)?),
        "checkpoint" => Derived::Checkpoint,
        "vmap" => {
            let dims = if op.attr("in_axes").is_some() { Some(in_axes(op)?) } else { None };
            Derived::Vmap(dims, out_axes(op)?)
        }
        "pipeline" => {
            let mesh = |text| defined.mesh(text).map_err(|why| op.error(why));
            Derived::Pipeline(Line {
                microbatches: op.index("microbatches")? as u64,
                axis: op.str("axis")?.to_owned(),
                mesh: if op.attr("mesh").is_some() { Some(mesh(op.str("mesh")?)?) } else { None },
                home: FileId(small(op, "home")?),
            })
        }
        other => return Err(op.error(format!("`{other}` is made of no function"))),
    })
}

fn variable(defined: &Defined, op: &Op) -> Read<Variable> {
    let name = result(op)?;
    let name = name.rsplit_once('.').map_or(name, |(name, _)| name).into();
    Ok(Variable { name, ty: ty(defined, op)?, span: span(op, "at")?, compares: flag(op, "compares") })
}

impl Reader<'_> {
    fn function(mut self, op: &Op) -> Read<FnInst> {
        let numbers = |key: &str| Ok(smalls(op, key)?.into_iter().map(LocalId).collect::<Vec<_>>());
        let (body, grid) = match &op.regions[..] {
            [body] => (body, None),
            [body, grid] => (body, Some(grid)),
            _ => return Err(op.error("a function has a body, and a tile program a grid")),
        };
        let mut f = FnInst {
            name: op.str("name")?.into(),
            captures: numbers("captures")?,
            params: numbers("params")?,
            locals: vec![],
            size_binds: vec![],
            ret: ty(self.defined, op)?,
            body: vec![],
            effect: Effect::Graph,
            policy: if op.attr("policy").is_some() { policy(op)? } else { Policy::default() },
            hints: if op.attr("hints").is_some() { Some(hints(op)?) } else { None },
            budget: if op.attr("budget").is_some() { Some(budget(op)?) } else { None },
            kernel: flag(op, "kernel"),
            program: None,
            backward: if op.attr("backward").is_some() { Some(self.inst(op, "backward")?) } else { None },
            kept: vec![],
            span: span(op, "at")?,
        };
        if op.attr("host").is_some() {
            f.effect =
                Effect::Host { why: op.str("host")?.into(), span: span(op, "host_at")?, by_data: flag(op, "by_data") };
        }
        for op in body {
            match op.name.as_str() {
                "core.local" => f.locals.push(variable(self.defined, op)?),
                "core.compares_at_run_time" => f.kept.push((span(op, "at")?, op.str("what")?.into())),
                "core.bind_size" => f.size_binds.push(self.size_bind(op)?),
                _ => f.body.extend(self.operation(op)?),
            }
        }
        if let Some(grid) = grid {
            let (_, grid) = self.region(op, grid)?;
            f.program = Some(TileProgram { grid, outputs: numbers("outputs")? });
        }
        match self.values.first_key_value() {
            Some((name, _)) => Err(op.error(format!("nothing takes the value `%{name}`"))),
            None => Ok(f),
        }
    }

    fn size_bind(&mut self, op: &Op) -> Read<SizeBind> {
        let [local, value] = &op.operands[..] else { return Err(op.error("a variable and a value are expected")) };
        let size = self.defined.size(op.str("size")?).map_err(|why| op.error(why))?;
        let var = size.as_var().cloned().ok_or_else(|| op.error("`size` is no variable"))?;
        Ok(SizeBind { local: LocalId(number(op, local)?), var, from: self.take(op, value)? })
    }

    fn inst(&self, op: &Op, key: &str) -> Read<InstId> {
        self.named(op, op.str(key)?)
    }

    fn named(&self, op: &Op, name: &str) -> Read<InstId> {
        self.functions.get(name).copied().ok_or_else(|| op.error(format!("there is no function `%{name}`")))
    }

    /// The value of this name; it is taken once.
    fn take(&mut self, op: &Op, name: &str) -> Read<TExpr> {
        let missing = || op.error(format!("there is no value `%{name}` here, or it is taken already"));
        let (value, depth) = self.values.remove(name).ok_or_else(missing)?;
        self.taken = self.taken.max(depth);
        Ok(value)
    }

    fn take_all(&mut self, op: &Op, names: &[String]) -> Read<Vec<TExpr>> {
        names.iter().map(|n| self.take(op, n)).collect()
    }

    /// The statements of a region, and what it yields. Values of the operations around it stay theirs.
    fn region(&mut self, op: &Op, region: &[Op]) -> Read<(Vec<TStmt>, Vec<TExpr>)> {
        let outer = std::mem::take(&mut self.values);
        let (mut stmts, mut yielded) = (vec![], vec![]);
        for (i, inner) in region.iter().enumerate() {
            if inner.name == "core.yield" && i + 1 == region.len() {
                yielded = self.take_all(inner, &inner.operands)?;
            } else {
                stmts.extend(self.operation(inner)?);
            }
        }
        match std::mem::replace(&mut self.values, outer).first_key_value() {
            Some((name, _)) => Err(op.error(format!("nothing takes the value `%{name}`"))),
            None => Ok((stmts, yielded)),
        }
    }

    /// A region that is only there for its value.
    fn value(&mut self, op: &Op, region: Option<&Vec<Op>>) -> Read<TExpr> {
        let region = region.ok_or_else(|| op.error("a region is missing"))?;
        let (stmts, mut values) = self.region(op, region)?;
        match (stmts.is_empty(), values.pop(), values.is_empty()) {
            (true, Some(value), true) => Ok(value),
            _ => Err(op.error("a region that gives a value has no statements and yields one")),
        }
    }

    /// A region that is only there for what it does.
    fn block(&mut self, op: &Op, region: Option<&Vec<Op>>) -> Read<Vec<TStmt>> {
        let region = region.ok_or_else(|| op.error("a region is missing"))?;
        let (stmts, values) = self.region(op, region)?;
        if values.is_empty() { Ok(stmts) } else { Err(op.error("a block yields nothing")) }
    }

    /// A statement, or a value that waits for the operation that takes it.
    fn operation(&mut self, op: &Op) -> Read<Option<TStmt>> {
        if op.results.is_empty() {
            return self.stmt(op).map(Some);
        }
        let name = result(op)?.to_owned();
        let around = std::mem::take(&mut self.taken);
        let expr = TExpr { kind: self.form(op)?, ty: ty(self.defined, op)?, span: span(op, "at")? };
        let depth = std::mem::replace(&mut self.taken, around) + 1;
        if depth > DEPTH_MAX {
            return Err(op.error("values are made of values too deeply"));
        }
        match self.values.insert(name, (expr, depth)) {
            None => Ok(None),
            Some(_) => Err(op.error("another value has this name")),
        }
    }
}
