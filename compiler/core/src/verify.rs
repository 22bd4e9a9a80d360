//! Whether the typed program agrees with itself: every value has the form that its place has.
//!
//! Sizes and layouts are left to the checks of a run, which see the values; here it is what decides how a value lies in memory
//! (int or float, list or tuple, which struct), that what is named exists, and that each form has as many operands as it
//! takes. A program that breaks this would read a number as another kind of number, so `--checked` stops it before it runs.

mod host;

use crate::ir::*;
use crate::ty::{Ty, same_form};
use crate::walk::{each_child, each_part};
use tessera_base::{CmpOp, Code, Diagnostic, Span};

/// The first place where the program does not agree with itself.
///
/// # Errors
/// E0999 with both types.
pub fn verify(program: &Program) -> Result<(), Box<Diagnostic>> {
    let entry = program.entry.map(|e| program.insts.get(e.0 as usize));
    if entry.is_some_and(|e| e.is_none_or(|f| !f.params.is_empty() || !f.captures.is_empty())) {
        return wrong("the program begins with a function that does not exist, or takes something", Span::default());
    }
    for inst in &program.insts {
        let at = At { program, inst };
        at.signature()?;
        at.stmts(&inst.body, false)?;
        inst.size_binds.iter().try_for_each(|b| at.expr(&b.from))?;
        inst.program.iter().flat_map(|p| &p.grid).try_for_each(|e| at.expr(e))?;
    }
    Ok(())
}

struct At<'p> {
    program: &'p Program,
    inst: &'p FnInst,
}

type Agrees = Result<(), Box<Diagnostic>>;

fn is(what: &str, found: &Ty, wanted: &Ty, span: Span) -> Agrees {
    if same_form(found, wanted) {
        Ok(())
    } else {
        wrong(&format!("{what} is `{found}` where `{wanted}` is meant"), span)
    }
}

/// That a type is one of those that a form may have. What is never there may be any.
fn fits(what: &str, found: &Ty, holds: bool, span: Span) -> Agrees {
    if holds || matches!(found, Ty::Error | Ty::Never | Ty::Unknown) {
        return Ok(());
    }
    wrong(&format!("{what} is `{found}`, which the form cannot have"), span)
}

fn count(what: &str, found: usize, wanted: usize, span: Span) -> Agrees {
    if found == wanted { Ok(()) } else { wrong(&format!("there are {found} {what} where {wanted} are meant"), span) }
}

fn wrong(text: &str, span: Span) -> Agrees {
    let d = Diagnostic::new(Code::E0999, span, text.to_owned());
    Err(Box::new(d.note("the typed program does not agree with itself: this is a fault of the compiler")))
}

impl<'p> At<'p> {
    fn local(&self, l: LocalId, span: Span) -> Result<&'p Variable, Box<Diagnostic>> {
        self.inst.locals.get(l.0 as usize).map_or_else(|| Err(missing("variable", l.0, span)), Ok)
    }

    fn global(&self, g: GlobalId, span: Span) -> Result<&'p Variable, Box<Diagnostic>> {
        self.program.globals.get(g.0 as usize).map_or_else(|| Err(missing("variable of the file", g.0, span)), Ok)
    }

    fn function(&self, f: InstId, span: Span) -> Result<&'p FnInst, Box<Diagnostic>> {
        self.program.insts.get(f.0 as usize).map_or_else(|| Err(missing("function", f.0, span)), Ok)
    }

    fn signature(&self) -> Agrees {
        let f = self.inst;
        let outputs = f.program.iter().flat_map(|p| &p.outputs);
        f.captures.iter().chain(&f.params).chain(outputs).try_for_each(|l| self.local(*l, f.span).map(|_| ()))?;
        for bind in &f.size_binds {
            is("a size that is bound", &self.local(bind.local, f.span)?.ty, &Ty::int(), f.span)?;
            is("what a size is bound to", &bind.from.ty, &Ty::int(), bind.from.span)?;
        }
        f.backward.map_or(Ok(()), |b| self.function(b, f.span).map(|_| ()))
    }

    fn expr(&self, e: &TExpr) -> Agrees {
        self.parts(e)?;
        self.simple(e)?;
        if let TKind::Block { stmts, .. } = &e.kind {
            // A loop ends inside the block that is an operand of it.
            self.stmts(stmts, true)?;
        }
        let mut children = vec![];
        each_child(e, &mut |c| children.push(c));
        children.into_iter().try_for_each(|c| self.expr(c))
    }

    /// An expression beside its direct operands.
    fn parts(&self, e: &TExpr) -> Agrees {
        let each = |what: &str, items: &[TExpr], ty: &Ty| items.iter().try_for_each(|i| is(what, &i.ty, ty, i.span));
        let pairs = |what: &str, items: &[TExpr], types: &mut dyn Iterator<Item = &Ty>| {
            let types: Vec<&Ty> = types.collect();
            count("operands", items.len(), types.len(), e.span)?;
            items.iter().zip(types).try_for_each(|(i, t)| is(what, &i.ty, t, i.span))
        };
        match (&e.kind, &e.ty) {
            (TKind::Int(_), ty) => is("this number", &Ty::int(), ty, e.span),
            (TKind::Float(_) | TKind::IntToFloat(_), ty) => is("this number", &Ty::Float, ty, e.span),
            (TKind::Local(l), ty) => self.local(*l, e.span).and_then(|v| is(&v.name, ty, &v.ty, e.span)),
            (TKind::Global(g), ty) => self.global(*g, e.span).and_then(|v| is(&v.name, ty, &v.ty, e.span)),
            (TKind::Arith { left, right, .. }, ty) => {
                is("the left side", &left.ty, ty, left.span)?;
                is("the right side", &right.ty, ty, right.span)
            }
            (TKind::Neg(x) | TKind::StopGradient(x) | TKind::Layout(x) | TKind::WithPolicy(_, x), ty) => {
                is("this", &x.ty, ty, x.span)
            }
            (TKind::Logic { left, right, .. }, ty) => {
                is("the left side", &left.ty, ty, left.span)?;
                is("the right side", &right.ty, ty, right.span)
            }
            (TKind::Compare { op: CmpOp::In | CmpOp::NotIn, left, right }, _) => match &right.ty {
                Ty::List(t) | Ty::Dict(t, _) => is("what is looked for", &left.ty, t, left.span),
                _ => Ok(()),
            },
            (TKind::Compare { left, right, .. }, _) => is("the right side", &right.ty, &left.ty, right.span),
            (TKind::Cond { test, then, otherwise }, ty) => {
                is("the condition", &test.ty, &Ty::Bool, test.span)?;
                is("the value", &then.ty, ty, then.span)?;
                is("the other value", &otherwise.ty, ty, otherwise.span)
            }
            (TKind::Tuple(items), Ty::Tuple(ts)) => pairs("this element", items, &mut ts.iter()),
            (TKind::List(items), Ty::List(t)) => each("this element", items, t),
            (TKind::Dict(entries), Ty::Dict(k, v)) => entries.iter().try_for_each(|(key, value)| {
                is("this key", &key.ty, k, key.span)?;
                is("this value", &value.ty, v, value.span)
            }),
            (TKind::Struct(fields), Ty::Struct(s)) => pairs("this field", fields, &mut s.fields.iter().map(|f| &f.1)),
            (TKind::Closure { captures }, Ty::FnRef(r)) => {
                pairs("this capture", captures, &mut r.captures.iter().map(|c| &c.1))
            }
            (TKind::Field(base, i), ty) => match &base.ty {
                Ty::Struct(s) => match s.fields.get(*i as usize) {
                    Some(f) => is("this field", ty, &f.1, e.span),
                    None => wrong("there is no such field", e.span),
                },
                Ty::Tuple(ts) => match ts.get(*i as usize) {
                    Some(t) => is("this element", ty, t, e.span),
                    None => wrong("there is no such element", e.span),
                },
                Ty::FnRef(r) => match r.captures.get(*i as usize) {
                    Some(c) => is("this capture", ty, &c.1, e.span),
                    None => wrong("there is no such capture", e.span),
                },
                other => fits("what has fields", other, false, e.span),
            },
            (TKind::Index(base, key), ty) => match &base.ty {
                Ty::List(t) => is("this element", ty, t, e.span),
                Ty::Dict(k, v) => {
                    is("the key", &key.ty, k, key.span)?;
                    is("this entry", ty, v, e.span)
                }
                Ty::Str => is("a character", ty, &Ty::Str, e.span),
                other => fits("what has elements", other, false, e.span),
            },
            (TKind::Concat(a, b), ty) => {
                is("the left side", &a.ty, ty, a.span)?;
                is("the right side", &b.ty, ty, b.span)
            }
            (TKind::Repeat(a, _), ty) => is("this", &a.ty, ty, a.span),
            (TKind::Slice { base, .. }, ty) => is("this", &base.ty, ty, base.span),
            (TKind::Block { value, .. }, ty) => is("this", &value.ty, ty, value.span),
            (TKind::Call { inst, args, callee }, ty) => {
                let f = self.function(*inst, e.span)?;
                if callee.is_none() && !f.captures.is_empty() {
                    return wrong("a function is called without what it holds", e.span);
                }
                let params = f.params.iter().filter_map(|p| f.locals.get(p.0 as usize));
                pairs("this argument", args, &mut params.map(|v| &v.ty))?;
                is("the result", &f.ret, ty, e.span)
            }
            (TKind::CallValue { callee, args }, ty) => match &callee.ty {
                Ty::Fn(params, ret) => {
                    pairs("this argument", args, &mut params.iter())?;
                    is("the result", ret, ty, e.span)
                }
                other => fits("what is called", other, false, e.span),
            },
            (TKind::Tuple(_) | TKind::List(_) | TKind::Dict(_) | TKind::Struct(_) | TKind::Closure { .. }, other) => {
                fits("what is made", other, false, e.span)
            }
            _ => Ok(()),
        }
    }

    /// What forms have that always take and give the same kinds of values.
    fn simple(&self, e: &TExpr) -> Agrees {
        let takes = |x: &TExpr, ty: &Ty| is("the operand", &x.ty, ty, x.span);
        let tensor = |x: &TExpr| fits("the operand", &x.ty, x.ty.is_tensor(), x.span);
        let gives = |ty: &Ty| is("the value", &e.ty, ty, e.span);
        let int = Ty::int();
        match &e.kind {
            TKind::Bool(_) | TKind::Truth(_) | TKind::Compare { .. } => gives(&Ty::Bool),
            TKind::Not(x) => takes(x, &Ty::Bool).and_then(|()| gives(&Ty::Bool)),
            TKind::Str(_) => gives(&Ty::Str),
            // Meshes and layouts are known from types alone, and values of them hold nothing.
            TKind::None => {
                fits("the value", &e.ty, matches!(e.ty, Ty::None | Ty::Mesh(Some(_)) | Ty::ShardSpec(Some(_))), e.span)
            }
            TKind::DType(_) => gives(&Ty::DType(None)),
            TKind::IntToFloat(x) => takes(x, &int),
            TKind::BoolToInt(x) => takes(x, &Ty::Bool).and_then(|()| gives(&int)),
            TKind::Invert(x) => takes(x, &int).and_then(|()| gives(&int)),
            TKind::Arith { op, .. } => {
                fits("the value", &e.ty, matches!(e.ty, Ty::Int(_) | Ty::Float), e.span)?;
                match e.number_op() {
                    Some(_) => Ok(()),
                    None => wrong(&format!("`{}` has no meaning for `{}`", op.symbol(), e.ty), e.span),
                }
            }
            TKind::Neg(x) => fits("the operand", &x.ty, matches!(x.ty, Ty::Int(_) | Ty::Float), x.span),
            TKind::Convert { to, .. } => gives(match to {
                Convert::Int => &int,
                Convert::Float => &Ty::Float,
                Convert::Str | Convert::Repr => &Ty::Str,
            }),
            TKind::Format(parts) => {
                for part in parts {
                    if let FormatPart::Value { spec: Some(spec), .. } = part {
                        takes(spec, &Ty::Str)?;
                    }
                }
                gives(&Ty::Str)
            }
            TKind::Concat(..) | TKind::Repeat(..) | TKind::Slice { .. } => {
                if let TKind::Repeat(_, n) = &e.kind {
                    takes(n, &int)?;
                }
                if let TKind::Slice { low, high, step, .. } = &e.kind {
                    [low, high, step].into_iter().flatten().try_for_each(|b| takes(b, &int))?;
                }
                fits("the value", &e.ty, matches!(e.ty, Ty::Str | Ty::List(_)), e.span)
            }
            TKind::Index(base, i) if matches!(base.ty, Ty::List(_) | Ty::Str) => takes(i, &int),
            TKind::TensorDim(x, i) => {
                tensor(x)?;
                let rank = if let Ty::Tensor(t) = &x.ty { t.shape.len() } else { usize::MAX };
                if *i >= rank {
                    return wrong(&format!("there is no dim {i} of `{}`", x.ty), e.span);
                }
                gives(&int)
            }
            TKind::TensorShape(x) => tensor(x),
            TKind::TensorDType(x) => tensor(x).and_then(|()| gives(&Ty::DType(None))),
            TKind::Erase { value, inst } => {
                self.function(*inst, e.span)?;
                fits("the operand", &value.ty, matches!(value.ty, Ty::FnRef(_)), value.span)?;
                fits("the value", &e.ty, matches!(e.ty, Ty::Fn(..)), e.span)
            }
            TKind::Op { def, args, .. } => {
                count("arguments", args.len(), def.params.len(), e.span)?;
                for (param, arg) in def.params.iter().zip(args) {
                    if matches!(arg, OpArg::Default) && param.default.sym().is_none() {
                        return wrong(&format!("`{}` of `{}` is not given", param.name, def.name), e.span);
                    }
                }
                Ok(())
            }
            TKind::TensorIndex { base, index, .. } => {
                tensor(base)?;
                index.iter().try_for_each(|part| match part {
                    IndexPart::Int(i) => takes(i, &int),
                    IndexPart::Slice { low, high, step } => {
                        [low, high, step].into_iter().flatten().try_for_each(|b| takes(b, &int))
                    }
                    IndexPart::Tensor(t) => tensor(t),
                    IndexPart::Whole(_) | IndexPart::NewAxis => Ok(()),
                })
            }
            TKind::Scan { inst, .. } => self.function(*inst, e.span).map(|_| ()),
            TKind::Fori { inst, low, high, .. } => {
                self.function(*inst, e.span)?;
                takes(low, &int)?;
                takes(high, &int)
            }
            TKind::Flow { flow, functions, args } => {
                count("functions", functions.len(), flow.functions(), e.span)?;
                functions.iter().try_for_each(|f| self.function(f.inst, e.span).map(|_| ()))?;
                match (flow, args.get(1)) {
                    (Flow::While, Some(n)) | (Flow::Associative, Some(n)) => takes(n, &int),
                    _ => Ok(()),
                }
            }
            TKind::Derive { f, .. } => self.function(f.inst(), e.span).map(|_| ()),
            TKind::Builtin { name, args } => host::verify(*name, args, &e.ty, e.span),
            TKind::Check { dims, .. } => dims.iter().flatten().try_for_each(|d| takes(d, &int)),
            _ => Ok(()),
        }
    }

    /// Statements; whether they are those of a loop.
    fn stmts(&self, stmts: &[TStmt], looped: bool) -> Agrees {
        stmts.iter().try_for_each(|s| self.stmt(s, looped))
    }

    fn stmt(&self, s: &TStmt, looped: bool) -> Agrees {
        let test = |t: &TExpr| is("the condition", &t.ty, &Ty::Bool, t.span);
        match s {
            TStmt::Set(l, value) => {
                let v = self.local(*l, value.span)?;
                is(&format!("what `{}` gets", v.name), &value.ty, &v.ty, value.span)?;
            }
            TStmt::SetGlobal(g, value) => {
                let v = self.global(*g, value.span)?;
                is(&format!("what `{}` gets", v.name), &value.ty, &v.ty, value.span)?;
            }
            TStmt::Break | TStmt::Continue if !looped => {
                return wrong("a loop ends where there is none", self.inst.span);
            }
            TStmt::ForRange { var, start, stop, step, span, .. } => {
                is("what counts the turns", &self.local(*var, *span)?.ty, &Ty::int(), *span)?;
                [start, stop, step].into_iter().try_for_each(|b| is("the bound", &b.ty, &Ty::int(), b.span))?;
            }
            TStmt::Return(None) => is("the result", &Ty::None, &self.inst.ret, self.inst.span)?,
            TStmt::If { test: t, .. } | TStmt::While { test: t, .. } | TStmt::Assert { test: t, .. } => test(t)?,
            TStmt::ForEach { var, iter, .. } => {
                let given = match &iter.ty {
                    Ty::List(t) | Ty::Dict(t, _) => (**t).clone(),
                    other => other.clone(),
                };
                let v = self.local(*var, iter.span)?;
                is(&format!("what `{}` gets", v.name), &given, &v.ty, iter.span)?;
            }
            TStmt::Return(Some(value)) => is("the result", &value.ty, &self.inst.ret, value.span)?,
            TStmt::Mutate { place, change, .. } => self.change(place, change)?,
            _ => {}
        }
        let (mut exprs, mut blocks) = (vec![], vec![]);
        each_part(s, &mut |e| exprs.push(e), &mut |b| blocks.push(b));
        exprs.into_iter().try_for_each(|e| self.expr(e))?;
        let looped = looped || matches!(s, TStmt::While { .. } | TStmt::ForRange { .. } | TStmt::ForEach { .. });
        blocks.into_iter().try_for_each(|b| self.stmts(b, looped))
    }

    fn change(&self, place: &TLvalue, change: &TChange) -> Agrees {
        let root = match place.root {
            TRoot::Local(l) => self.local(l, self.inst.span)?,
            TRoot::Global(g) => self.global(g, self.inst.span)?,
        };
        let step = |ty: Ty, step: &TStep| match (step, ty) {
            (TStep::Field(i), Ty::Struct(s)) => s.fields.get(*i as usize).map(|f| f.1.clone()),
            (TStep::Index(_), Ty::List(t)) | (TStep::Key(_), Ty::Dict(_, t)) => Some(*t),
            _ => None,
        };
        let Some(slot) = place.steps.iter().try_fold(root.ty.clone(), step) else {
            return wrong(&format!("`{}` has no such part", root.name), self.inst.span);
        };
        match (change, &slot) {
            (TChange::Set(value), slot) => is("what is stored", &value.ty, slot, value.span),
            (TChange::Method { name, args }, slot) => host::verify_method(*name, args, slot, self.inst.span),
            (TChange::TensorSet { .. }, slot) => fits("what is written into", slot, slot.is_tensor(), self.inst.span),
        }
    }
}

fn missing(what: &str, number: u32, span: Span) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Code::E0999, span, format!("there is no {what} {number}")))
}
