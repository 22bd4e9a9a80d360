//! Core as text, in the form that every IR shares.
//!
//! An expression is an operation with one result, behind those of its operands; what runs only sometimes, or later, is a
//! region that ends in `core.yield`. Structures, meshes and sizes are defined before the program, and a variable is called
//! by its name and its number.

mod read_types;
mod types;
mod read;

pub use read::parse;

use crate::ir::*;
use tessera_base::{Size, Span};
use tessera_ir::graph::Policy;
use tessera_ir::prim::collective::attrs as collective_attrs;
use tessera_ir::text::{Attr, Op, print as print_ops};
use tessera_ops::surface::Hints;
use types::{Names, axes, grad, ints, out_axes, string, strings, word};

/// Whether a file holds Core as text: what it defines first is of this IR.
pub fn is_core(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    let first = lines.find(|l| !l.is_empty() && !l.starts_with("//")).unwrap_or_default();
    first.starts_with('%') && first.contains("= \"core.")
}

/// The text of a program; with `places`, each operation says where it stands.
pub fn print(program: &Program, places: bool) -> String {
    print_some(program, &|_| true, places)
}

/// The same, of these functions alone.
pub fn print_some(program: &Program, wanted: &dyn Fn(InstId) -> bool, places: bool) -> String {
    let mut names = Names::default();
    let mut globals = vec![];
    for (i, v) in program.globals.iter().enumerate() {
        let mut op = Op::new("core.global");
        op.results = vec![format!("{}.{i}", word(&v.name))];
        op.attrs.extend(v.compares.then(|| ("compares".into(), Attr::Bool(true))));
        op.types = vec![names.ty(&v.ty)];
        globals.push(op);
    }
    let functions: Vec<Op> = program
        .insts
        .iter()
        .enumerate()
        .filter(|(i, _)| wanted(InstId(*i as u32)))
        .map(|(i, f)| Writer::new(program, f, &mut names, places).function(i, program.entry == Some(InstId(i as u32))))
        .collect();
    let all: Vec<Op> = names.definitions().into_iter().chain(globals).chain(functions).collect();
    print_ops(&all, 0)
}

/// A place as `item:start:end`.
fn span_attr(span: Span) -> Attr {
    string(format!("{}:{}:{}", span.item.0, span.start, span.end))
}

/// The text of one function.
struct Writer<'p> {
    program: &'p Program,
    inst: &'p FnInst,
    names: &'p mut Names,
    places: bool,
    /// The number of the next value.
    next: u32,
    /// Operations of the region that is written.
    out: Vec<Op>,
}

impl<'p> Writer<'p> {
    fn new(program: &'p Program, inst: &'p FnInst, names: &'p mut Names, places: bool) -> Writer<'p> {
        Writer { program, inst, names, places, next: 0, out: vec![] }
    }

    fn function(&mut self, number: usize, entry: bool) -> Op {
        let f = self.inst;
        let mut op = Op::new("core.function");
        op.results = vec![function_name(self.program, InstId(number as u32))];
        let numbers = |locals: &[LocalId]| ints(locals.iter().map(|l| i64::from(l.0)));
        op.attrs = vec![("name".into(), string(&*f.name))];
        op.attrs.extend(entry.then(|| ("entry".into(), Attr::Bool(true))));
        op.attrs.extend((!f.captures.is_empty()).then(|| ("captures".into(), numbers(&f.captures))));
        op.attrs.extend((!f.params.is_empty()).then(|| ("params".into(), numbers(&f.params))));
        if let Effect::Host { why, span, by_data } = &f.effect {
            op.attrs.push(("host".into(), string(&**why)));
            op.attrs.extend(by_data.then(|| ("by_data".into(), Attr::Bool(true))));
            op.attrs.extend(self.places.then(|| ("host_at".into(), span_attr(*span))));
        }
        op.attrs.extend((f.policy != Policy::default()).then(|| ("policy".into(), string(f.policy.name()))));
        op.attrs.extend(f.hints.as_ref().map(|h| ("hints".into(), string(h.to_string()))));
        op.attrs.extend(f.budget.as_ref().map(|b| ("budget".into(), string(b.to_string()))));
        op.attrs.extend(f.kernel.then(|| ("kernel".into(), Attr::Bool(true))));
        op.attrs.extend(f.backward.map(|b| ("backward".into(), string(function_name(self.program, b)))));
        op.attrs.extend(self.places.then(|| ("at".into(), span_attr(f.span))));
        op.types = vec![self.names.ty(&f.ret)];
        let mut locals = vec![];
        for (i, v) in f.locals.iter().enumerate() {
            let mut local = Op::new("core.local");
            local.results = vec![self.local(LocalId(i as u32))];
            local.attrs.extend(v.compares.then(|| ("compares".into(), Attr::Bool(true))));
            local.attrs.extend(self.places.then(|| ("at".into(), span_attr(v.span))));
            local.types = vec![self.names.ty(&v.ty)];
            locals.push(local);
        }
        let mut body = self.region(|w| {
            w.out = locals;
            for (span, what) in &f.kept {
                let mut kept = Op::new("core.compares_at_run_time");
                kept.attrs = vec![("what".into(), string(&**what)), ("at".into(), span_attr(*span))];
                w.out.push(kept);
            }
            for bind in &f.size_binds {
                let value = w.expr(&bind.from);
                let size = w.names.size(&Size::var(bind.var.clone()));
                let var = w.local(bind.local);
                w.push("core.bind_size", vec![var, value], vec![("size".into(), string(size))]);
            }
        });
        let stmts = self.region(|w| w.stmts(&f.body));
        body.extend(stmts);
        op.regions = vec![body];
        if let Some(program) = &f.program {
            op.attrs.push(("outputs".into(), numbers(&program.outputs)));
            let grid = self.region(|w| {
                let values = program.grid.iter().map(|e| w.expr(e)).collect();
                w.push("core.yield", values, vec![]);
            });
            op.regions.push(grid);
        }
        op
    }

    /// What `write` writes.
    fn region(&mut self, write: impl FnOnce(&mut Self)) -> Vec<Op> {
        let before = std::mem::take(&mut self.out);
        write(self);
        std::mem::replace(&mut self.out, before)
    }

    /// A region that gives the value of an expression.
    fn value(&mut self, e: &TExpr) -> Vec<Op> {
        self.region(|w| {
            let value = w.expr(e);
            w.push("core.yield", vec![value], vec![]);
        })
    }

    fn local(&self, l: LocalId) -> String {
        let name = self.inst.locals.get(l.0 as usize).map_or_else(String::new, |v| word(&v.name));
        format!("{name}.{}", l.0)
    }

    fn global(&self, g: GlobalId) -> String {
        let name = self.program.globals.get(g.0 as usize).map_or_else(String::new, |v| word(&v.name));
        format!("{name}.{}", g.0)
    }

    fn push(&mut self, name: &str, operands: Vec<String>, attrs: Vec<(String, Attr)>) {
        self.out.push(Op { operands, attrs, ..Op::new(name) });
    }

    fn stmts(&mut self, stmts: &[TStmt]) {
        stmts.iter().for_each(|s| self.stmt(s));
    }

    fn at(&self, span: Span) -> Option<(String, Attr)> {
        self.places.then(|| ("at".into(), span_attr(span)))
    }

    fn stmt(&mut self, s: &TStmt) {
        let block = |w: &mut Self, body: &[TStmt]| w.region(|w| w.stmts(body));
        let mut op = match s {
            TStmt::Expr(e) => Op { operands: vec![self.expr(e)], ..Op::new("core.drop") },
            TStmt::Set(l, e) => Op { operands: vec![self.local(*l), self.expr(e)], ..Op::new("core.set") },
            TStmt::SetGlobal(g, e) => {
                Op { operands: vec![self.global(*g), self.expr(e)], ..Op::new("core.set_global") }
            }
            TStmt::Mutate { place, change, .. } => self.mutate(place, change),
            TStmt::If { test, then, otherwise } => {
                let test = self.expr(test);
                let regions = vec![block(self, then), block(self, otherwise)];
                Op { operands: vec![test], regions, ..Op::new("core.if") }
            }
            TStmt::While { test, body, .. } => {
                Op { regions: vec![self.value(test), block(self, body)], ..Op::new("core.while") }
            }
            TStmt::ForRange { var, start, stop, step, body, .. } => {
                let bounds: Vec<String> = [start, stop, step].into_iter().map(|e| self.expr(e)).collect();
                let operands = [vec![self.local(*var)], bounds].concat();
                Op { operands, regions: vec![block(self, body)], ..Op::new("core.for_range") }
            }
            TStmt::ForEach { var, iter, body, .. } => {
                let operands = vec![self.local(*var), self.expr(iter)];
                Op { operands, regions: vec![block(self, body)], ..Op::new("core.for_each") }
            }
            TStmt::Break => Op::new("core.break"),
            TStmt::Continue => Op::new("core.continue"),
            TStmt::Return(e) => Op { operands: e.iter().map(|e| self.expr(e)).collect(), ..Op::new("core.return") },
            TStmt::Assert { test, message, .. } => {
                let operands = vec![self.expr(test)];
                Op { operands, regions: message.iter().map(|m| self.value(m)).collect(), ..Op::new("core.assert") }
            }
            TStmt::WithPolicy { policy, body } => {
                let attrs = vec![("policy".into(), string(policy.name()))];
                Op { attrs, regions: vec![block(self, body)], ..Op::new("core.with_policy") }
            }
            TStmt::WithHints { hints, body } => {
                let attrs = vec![("hints".into(), string(hints.to_string()))];
                Op { attrs, regions: vec![block(self, body)], ..Op::new("core.with_hints") }
            }
        };
        let span = match s {
            TStmt::Mutate { span, .. }
            | TStmt::While { span, .. }
            | TStmt::ForRange { span, .. }
            | TStmt::ForEach { span, .. }
            | TStmt::Assert { span, .. } => Some(*span),
            _ => None,
        };
        op.attrs.extend(span.and_then(|s| self.at(s)));
        self.out.push(op);
    }

    /// A change of the slot that steps lead to; the operands of the steps come first.
    fn mutate(&mut self, place: &TLvalue, change: &TChange) -> Op {
        let mut operands = vec![match place.root {
            TRoot::Local(l) => self.local(l),
            TRoot::Global(g) => self.global(g),
        }];
        let mut steps = vec![];
        for step in &place.steps {
            steps.push(match step {
                TStep::Field(i) => Attr::Int(i64::from(*i)),
                TStep::Index(e) => {
                    operands.push(self.expr(e));
                    string("index")
                }
                TStep::Key(e) => {
                    operands.push(self.expr(e));
                    string("key")
                }
            });
        }
        let mut attrs = vec![("steps".to_owned(), Attr::List(steps))];
        attrs.extend(matches!(place.root, TRoot::Global(_)).then(|| ("global".into(), Attr::Bool(true))));
        let mut op = match change {
            TChange::Set(e) => {
                operands.push(self.expr(e));
                Op::new("core.change")
            }
            TChange::TensorSet { of, index, value } => {
                let parts = self.index(index, &mut operands);
                operands.push(self.expr(value));
                attrs.push(("index".into(), parts));
                Op { types: vec![self.names.ty(of)], ..Op::new("core.change_elements") }
            }
            TChange::Method { name, args } => {
                operands.extend(args.iter().map(|e| self.expr(e)).collect::<Vec<_>>());
                attrs.push(("method".into(), string(name.name())));
                Op::new("core.change_by")
            }
        };
        (op.operands, op.attrs) = (operands, attrs);
        op
    }

    /// The parts of an index; their operands go to `operands`.
    fn index(&mut self, parts: &[IndexPart], operands: &mut Vec<String>) -> Attr {
        let mut out = vec![];
        for part in parts {
            out.push(match part {
                IndexPart::Int(e) => {
                    operands.push(self.expr(e));
                    "at".to_owned()
                }
                IndexPart::Tensor(e) => {
                    operands.push(self.expr(e));
                    "gather".into()
                }
                IndexPart::Whole(n) => format!("whole {n}"),
                IndexPart::NewAxis => "new".into(),
                IndexPart::Slice { low, high, step } => {
                    let mut bound = |e: &Option<TExpr>| {
                        operands.extend(e.as_ref().map(|e| self.expr(e)));
                        if e.is_some() { "_" } else { "" }
                    };
                    let bounds = [bound(low), bound(high), bound(step)];
                    bounds.join(":")
                }
            });
        }
        strings(out)
    }

    /// Writes an expression; gives the name of its value.
    fn expr(&mut self, e: &TExpr) -> String {
        let mut op = self.form(&e.kind);
        let name = self.next.to_string();
        self.next += 1;
        op.name = format!("core.{}", op.name);
        op.results = vec![name.clone()];
        op.attrs.extend(self.at(e.span));
        op.types = vec![self.names.ty(&e.ty)];
        self.out.push(op);
        name
    }

    fn exprs<'a>(&mut self, es: impl IntoIterator<Item = &'a TExpr>) -> Vec<String> {
        es.into_iter().map(|e| self.expr(e)).collect()
    }

    /// The operation of an expression without its result; operands are written before.
    fn form(&mut self, kind: &TKind) -> Op {
        let leaf = |name: &str, value: Attr| Op { attrs: vec![("value".into(), value)], ..Op::new(name) };
        match kind {
            TKind::Int(n) => leaf("int", Attr::Int(*n)),
            TKind::Float(x) => leaf("float", Attr::Str(format!("{x:?}"))),
            TKind::Bool(b) => leaf("bool", Attr::Bool(*b)),
            TKind::Str(s) => leaf("str", string(&**s)),
            TKind::None => Op::new("none"),
            TKind::DType(d) => leaf("dtype", string(d.name())),
            TKind::Local(l) => Op { operands: vec![self.local(*l)], ..Op::new("get") },
            TKind::Global(g) => Op { operands: vec![self.global(*g)], ..Op::new("get_global") },
            TKind::Arith { op, left, right, int_operands } => {
                let mut out = leaf("arith", string(op.symbol()));
                out.operands = self.exprs([&**left, &**right]);
                out.attrs.extend(int_operands.then(|| ("of_ints".into(), Attr::Bool(true))));
                out
            }
            TKind::Compare { op, left, right } => {
                Op { operands: self.exprs([&**left, &**right]), ..leaf("compare", string(op.symbol())) }
            }
            TKind::Logic { and, left, right } => {
                let operands = self.exprs([&**left]);
                Op { operands, regions: vec![self.value(right)], ..Op::new(if *and { "and" } else { "or" }) }
            }
            TKind::Cond { test, then, otherwise } => {
                let operands = self.exprs([&**test]);
                Op { operands, regions: vec![self.value(then), self.value(otherwise)], ..Op::new("cond") }
            }
            TKind::Block { stmts, value } => {
                let region = self.region(|w| {
                    w.stmts(stmts);
                    let value = w.expr(value);
                    w.push("core.yield", vec![value], vec![]);
                });
                Op { regions: vec![region], ..Op::new("block") }
            }
            TKind::WithPolicy(policy, value) => {
                Op { regions: vec![self.value(value)], ..leaf("under", string(policy.name())) }
            }
            TKind::Field(x, i) => Op { operands: self.exprs([&**x]), ..leaf("field", Attr::Int(i64::from(*i))) },
            TKind::TensorDim(x, i) => Op { operands: self.exprs([&**x]), ..leaf("dim", Attr::Int(*i as i64)) },
            TKind::Convert { to, value } => {
                let to = match to {
                    Convert::Int => "int",
                    Convert::Float => "float",
                    Convert::Str => "str",
                    Convert::Repr => "repr",
                };
                Op { operands: self.exprs([&**value]), ..leaf("convert", string(to)) }
            }
            TKind::Dict(entries) => {
                Op { operands: self.exprs(entries.iter().flat_map(|(k, v)| [k, v])), ..Op::new("dict") }
            }
            TKind::Slice { base, low, high, step } => {
                let mut operands = self.exprs([&**base]);
                let bounds = [low, high, step].map(|e| {
                    operands.extend(e.as_ref().map(|e| self.expr(e)));
                    if e.is_some() { "_" } else { "" }
                });
                Op { operands, ..leaf("slice", string(bounds.join(":"))) }
            }
            TKind::Op { def, args, hints, checks } => self.operator(def.name, args, hints, checks),
            TKind::TensorIndex { base, index, checks } => {
                let mut operands = self.exprs([&**base]);
                let mut attrs = vec![("index".to_owned(), self.index(index, &mut operands))];
                attrs.extend(self.checks(checks));
                Op { operands, attrs, ..Op::new("index_tensor") }
            }
            TKind::Check { value, name, dims, annotation } => {
                let mut operands = self.exprs([&**value]);
                let known: Vec<String> = dims
                    .iter()
                    .map(|d| {
                        operands.extend(d.as_ref().map(|d| self.expr(d)));
                        if d.is_some() { "_" } else { "" }.to_owned()
                    })
                    .collect();
                let mut attrs = vec![("name".to_owned(), string(&**name)), ("dims".into(), strings(known))];
                attrs.extend(self.places.then(|| ("annotation".into(), span_attr(*annotation))));
                Op { operands, attrs, ..Op::new("check") }
            }
            TKind::Format(parts) => self.format(parts),
            TKind::Builtin { name, args } => Op { operands: self.exprs(args), ..leaf("host", string(name.name())) },
            _ => self.operands_only(kind),
        }
    }

    /// Forms that are a name and operands, and those that call functions.
    fn operands_only(&mut self, kind: &TKind) -> Op {
        let (name, operands): (&str, Vec<&TExpr>) = match kind {
            TKind::Concat(a, b) => ("concat", vec![a, b]),
            TKind::Repeat(a, b) => ("repeat", vec![a, b]),
            TKind::Index(a, b) => ("index", vec![a, b]),
            TKind::Neg(a) => ("neg", vec![a]),
            TKind::Invert(a) => ("invert", vec![a]),
            TKind::Not(a) => ("not", vec![a]),
            TKind::IntToFloat(a) => ("int_to_float", vec![a]),
            TKind::BoolToInt(a) => ("bool_to_int", vec![a]),
            TKind::Truth(a) => ("truth", vec![a]),
            TKind::TensorShape(a) => ("shape", vec![a]),
            TKind::TensorDType(a) => ("dtype_of", vec![a]),
            TKind::StopGradient(a) => ("stop_gradient", vec![a]),
            TKind::Layout(a) => ("layout", vec![a]),
            TKind::Tuple(es) => ("tuple", es.iter().collect()),
            TKind::List(es) => ("list", es.iter().collect()),
            TKind::Struct(es) => ("struct", es.iter().collect()),
            TKind::Closure { captures } => ("closure", captures.iter().collect()),
            other => return self.calls(other),
        };
        Op { operands: self.exprs(operands), ..Op::new(name) }
    }

    fn calls(&mut self, kind: &TKind) -> Op {
        let of = |w: &Self, inst: InstId| ("of".to_owned(), string(function_name(w.program, inst)));
        let closed = |callee: bool| callee.then(|| ("closed".to_owned(), Attr::Bool(true)));
        match kind {
            TKind::Call { inst, callee, args } => {
                let operands = self.exprs(callee.iter().map(|c| &**c).chain(args));
                let attrs = [Some(of(self, *inst)), closed(callee.is_some())].into_iter().flatten().collect();
                Op { operands, attrs, ..Op::new("call") }
            }
            TKind::CallValue { callee, args } => {
                Op { operands: self.exprs([&**callee].into_iter().chain(args)), ..Op::new("call_value") }
            }
            TKind::Erase { value, inst } => {
                Op { operands: self.exprs([&**value]), attrs: vec![of(self, *inst)], ..Op::new("erase") }
            }
            TKind::Scan { inst, callee, init, xs } => {
                let operands = self.exprs(callee.iter().map(|c| &**c).chain([&**init, &**xs]));
                let attrs = [Some(of(self, *inst)), closed(callee.is_some())].into_iter().flatten().collect();
                Op { operands, attrs, ..Op::new("scan") }
            }
            TKind::Fori { inst, callee, low, high, init } => {
                let operands = self.exprs(callee.iter().map(|c| &**c).chain([&**low, &**high, &**init]));
                let attrs = [Some(of(self, *inst)), closed(callee.is_some())].into_iter().flatten().collect();
                Op { operands, attrs, ..Op::new("fori") }
            }
            TKind::Flow { flow, functions, args } => {
                let operands = self.exprs(functions.iter().flat_map(|f| &f.callee).map(|c| &**c).chain(args));
                let name = |w: &Self, f: &Called| string(function_name(w.program, f.inst));
                let of = Attr::List(functions.iter().map(|f| name(self, f)).collect());
                let closed = Attr::List(functions.iter().map(|f| Attr::Int(f.callee.is_some().into())).collect());
                let attrs = vec![("of".to_owned(), of), ("closed".to_owned(), closed)];
                Op { operands, attrs, ..Op::new(flow.name()) }
            }
            TKind::Derive { f, args } => {
                let function = self.region(|w| w.made(f));
                let operands = self.exprs(args);
                Op { operands, regions: vec![function], ..Op::new("derive") }
            }
            TKind::Collective { what, x } => {
                let (name, attrs) = collective_attrs(what);
                let mut op = Op { operands: self.exprs(x.iter().map(|x| &**x)), ..Op::new("collective") };
                op.attrs.push(("value".to_owned(), string(name)));
                op.attrs.extend(attrs.into_iter().map(|(key, value)| (key.to_owned(), value)));
                op
            }
            other => tessera_base::bug!("a form of Core has no text: {other:?}"),
        }
    }

    /// A function and what is made of it, innermost first.
    fn made(&mut self, f: &TFunction) {
        let (mut attrs, values, name) = match f {
            TFunction::Direct { inst, callee } => (
                vec![("of".to_owned(), string(function_name(self.program, *inst)))],
                callee.iter().collect(),
                "core.direct",
            ),
            TFunction::Derived { step, of, bound } => {
                self.made(of);
                let name = match step {
                    Step::Grad(_) => "core.grad",
                    Step::Jvp => "core.jvp",
                    Step::Pullback(_) => "core.pullback",
                    Step::Checkpoint => "core.checkpoint",
                    Step::Vmap(..) => "core.vmap",
                    Step::Local(_) => "core.local_call",
                };
                (vec![], bound.iter().collect::<Vec<_>>(), name)
            }
        };
        let mut tys = vec![];
        if let TFunction::Derived { step, .. } = f {
            match step {
                Step::Grad(g) => attrs.extend(grad(g)),
                Step::Pullback(globals) => attrs.push(("globals".into(), ints(globals.iter().map(|g| i64::from(g.0))))),
                Step::Vmap(dims, out) => attrs.extend([("in_axes".into(), axes(dims)), out_axes(out)]),
                Step::Local(call) => {
                    let mesh = self.names.mesh(&call.mesh);
                    attrs.extend([("name".into(), string(&*call.name)), ("mesh".into(), string(mesh))]);
                    tys = call.args.iter().chain([&call.ret]).map(|t| self.names.ty(t)).collect();
                }
                Step::Jvp | Step::Checkpoint => {}
            }
        }
        let operands = self.exprs(values);
        self.out.push(Op { operands, attrs, types: tys, ..Op::new(name) });
    }

    fn checks(&mut self, checks: &[(Size, Size)]) -> Option<(String, Attr)> {
        let texts: Vec<String> =
            checks.iter().map(|(a, b)| format!("{} == {}", self.names.size(a), self.names.size(b))).collect();
        (!texts.is_empty()).then(|| ("checks".into(), strings(texts)))
    }

    fn operator(&mut self, name: &str, args: &[OpArg], hints: &Hints, checks: &[(Size, Size)]) -> Op {
        let given: Vec<bool> = args.iter().map(|a| matches!(a, OpArg::Value(_))).collect();
        let operands = args.iter().filter_map(|a| if let OpArg::Value(e) = a { Some(self.expr(e)) } else { None });
        let operands = operands.collect();
        let mut attrs = vec![("value".to_owned(), string(name))];
        // Which parameters are given, unless all are.
        let which: Vec<i64> = given.iter().enumerate().filter(|(_, g)| **g).map(|(i, _)| i as i64).collect();
        attrs.extend((which.len() < given.len()).then(|| ("given".into(), ints(which))));
        attrs.extend(hints.tile_shape.as_ref().map(|t| ("tile_shape".into(), ints(t.iter().copied()))));
        attrs.extend(hints.accum_dtype.map(|d| ("accum_dtype".into(), string(d.name()))));
        attrs.extend(hints.out_dtype.map(|d| ("out_dtype".into(), string(d.name()))));
        attrs.extend(
            (hints.precision != Default::default()).then(|| ("precision".into(), string(hints.precision.to_string()))),
        );
        attrs.extend(hints.reassociate.then(|| ("reassociate".into(), Attr::Bool(true))));
        attrs.extend(self.checks(checks));
        Op { operands, attrs, ..Op::new("op") }
    }

    fn format(&mut self, parts: &[FormatPart]) -> Op {
        let mut operands = vec![];
        let mut texts = vec![];
        for part in parts {
            match part {
                FormatPart::Text(text) => texts.push(Attr::List(vec![string(&**text)])),
                FormatPart::Value { value, repr, spec } => {
                    operands.push(self.expr(value));
                    operands.extend(spec.as_ref().map(|s| self.expr(s)));
                    let what = if *repr { "repr" } else { "str" };
                    texts.push(string(if spec.is_some() { format!("{what} with spec") } else { what.into() }));
                }
            }
        }
        Op { operands, attrs: vec![("parts".into(), Attr::List(texts))], ..Op::new("format") }
    }
}

fn function_name(program: &Program, inst: InstId) -> String {
    let name = program.insts.get(inst.0 as usize).map_or_else(String::new, |f| word(&f.name));
    format!("{name}.{}", inst.0)
}
