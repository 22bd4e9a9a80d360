//! Whether the typed program agrees with itself: every value has the form that its place has.
//!
//! Sizes and layouts are left to the checks of a run, which see the values; here it is what decides how a value lies in memory
//! (int or float, list or tuple, which struct). A program that breaks this would read a number as another kind of
//! number, so `--checked` stops it before it runs.

use crate::ir::*;
use crate::ty::Ty;
use crate::walk::{each_child, each_part};
use tessera_base::{CmpOp, Code, Diagnostic, Span};

/// The first place where the program does not agree with itself.
///
/// # Errors
/// E0999 with both types.
pub fn verify(program: &Program) -> Result<(), Box<Diagnostic>> {
    for inst in &program.insts {
        let at = At { program, inst };
        at.stmts(&inst.body)?;
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

/// Whether values of two types have one form. What is not known, or never there, has any.
fn same(a: &Ty, b: &Ty) -> bool {
    match (a, b) {
        (Ty::Error | Ty::Never | Ty::Unknown, _) | (_, Ty::Error | Ty::Never | Ty::Unknown) => true,
        (Ty::List(a), Ty::List(b)) => same(a, b),
        (Ty::Dict(ka, a), Ty::Dict(kb, b)) => same(ka, kb) && same(a, b),
        (Ty::Tuple(a), Ty::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Ty::Struct(a), Ty::Struct(b)) => {
            a.item == b.item && a.fields.iter().zip(&b.fields).all(|((_, a), (_, b))| same(a, b))
        }
        (Ty::FnRef(a), Ty::FnRef(b)) => {
            a.same_function(b) && a.captures.iter().zip(&b.captures).all(|((_, a), (_, b))| same(a, b))
        }
        (Ty::Fn(pa, ra), Ty::Fn(pb, rb)) => {
            pa.len() == pb.len() && pa.iter().zip(pb).all(|(a, b)| same(a, b)) && same(ra, rb)
        }
        (a, b) if a.is_tensor() => b.is_tensor(),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

fn is(what: &str, found: &Ty, wanted: &Ty, span: Span) -> Agrees {
    if same(found, wanted) {
        return Ok(());
    }
    let text = format!("{what} is `{found}` where `{wanted}` is meant");
    let d = Diagnostic::new(Code::E0999, span, text);
    Err(Box::new(d.note("the typed program does not agree with itself: this is a fault of the compiler")))
}

impl At<'_> {
    fn expr(&self, e: &TExpr) -> Agrees {
        self.parts(e)?;
        if let TKind::Block { stmts, .. } = &e.kind {
            self.stmts(stmts)?;
        }
        let mut children = vec![];
        each_child(e, &mut |c| children.push(c));
        children.into_iter().try_for_each(|c| self.expr(c))
    }

    /// An expression beside its direct operands.
    fn parts(&self, e: &TExpr) -> Agrees {
        let each = |what: &str, items: &[TExpr], ty: &Ty| items.iter().try_for_each(|i| is(what, &i.ty, ty, i.span));
        let pairs = |what: &str, items: &[TExpr], types: &mut dyn Iterator<Item = &Ty>| {
            items.iter().zip(types).try_for_each(|(i, t)| is(what, &i.ty, t, i.span))
        };
        match (&e.kind, &e.ty) {
            (TKind::Int(_), ty) => is("this number", &Ty::int(), ty, e.span),
            (TKind::Float(_) | TKind::IntToFloat(_), ty) => is("this number", &Ty::Float, ty, e.span),
            (TKind::Local(l), ty) => {
                self.inst.locals.get(l.0 as usize).map_or(Ok(()), |v| is(&v.name, ty, &v.ty, e.span))
            }
            (TKind::Global(_), _) => Ok(()),
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
                Ty::Struct(s) => s.fields.get(*i as usize).map_or(Ok(()), |f| is("this field", ty, &f.1, e.span)),
                Ty::Tuple(ts) => ts.get(*i as usize).map_or(Ok(()), |t| is("this element", ty, t, e.span)),
                _ => Ok(()),
            },
            (TKind::Index(base, key), ty) => match &base.ty {
                Ty::List(t) => is("this element", ty, t, e.span),
                Ty::Dict(k, v) => {
                    is("the key", &key.ty, k, key.span)?;
                    is("this entry", ty, v, e.span)
                }
                _ => Ok(()),
            },
            (TKind::Concat(a, b), ty) => {
                is("the left side", &a.ty, ty, a.span)?;
                is("the right side", &b.ty, ty, b.span)
            }
            (TKind::Repeat(a, _), ty) => is("this", &a.ty, ty, a.span),
            (TKind::Slice { base, .. }, ty) => is("this", &base.ty, ty, base.span),
            (TKind::Block { value, .. }, ty) => is("this", &value.ty, ty, value.span),
            (TKind::Call { inst, args, .. }, ty) => {
                let Some(f) = self.program.insts.get(inst.0 as usize) else { return Ok(()) };
                let params = f.params.iter().filter_map(|p| f.locals.get(p.0 as usize));
                pairs("this argument", args, &mut params.map(|v| &v.ty))?;
                is("the result", &f.ret, ty, e.span)
            }
            (TKind::CallValue { callee, args }, ty) => match &callee.ty {
                Ty::Fn(params, ret) => {
                    pairs("this argument", args, &mut params.iter())?;
                    is("the result", ret, ty, e.span)
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn stmts(&self, stmts: &[TStmt]) -> Agrees {
        stmts.iter().try_for_each(|s| self.stmt(s))
    }

    fn stmt(&self, s: &TStmt) -> Agrees {
        let test = |t: &TExpr| is("the condition", &t.ty, &Ty::Bool, t.span);
        match s {
            TStmt::Set(l, value) => {
                let local = self.inst.locals.get(l.0 as usize);
                local.map_or(Ok(()), |v| is(&format!("what `{}` gets", v.name), &value.ty, &v.ty, value.span))?;
            }
            TStmt::SetGlobal(g, value) => {
                let global = self.program.globals.get(g.0 as usize);
                global.map_or(Ok(()), |v| is(&format!("what `{}` gets", v.name), &value.ty, &v.ty, value.span))?;
            }
            TStmt::If { test: t, .. } | TStmt::While { test: t, .. } | TStmt::Assert { test: t, .. } => test(t)?,
            TStmt::ForEach { var, iter, .. } => {
                let given = match &iter.ty {
                    Ty::List(t) | Ty::Dict(t, _) => (**t).clone(),
                    other => other.clone(),
                };
                let local = self.inst.locals.get(var.0 as usize);
                local.map_or(Ok(()), |v| is(&format!("what `{}` gets", v.name), &given, &v.ty, iter.span))?;
            }
            TStmt::Return(Some(value)) => is("the result", &value.ty, &self.inst.ret, value.span)?,
            TStmt::Mutate { place, change, .. } => self.change(place, change)?,
            _ => {}
        }
        let (mut exprs, mut blocks) = (vec![], vec![]);
        each_part(s, &mut |e| exprs.push(e), &mut |b| blocks.push(b));
        exprs.into_iter().try_for_each(|e| self.expr(e))?;
        blocks.into_iter().try_for_each(|b| self.stmts(b))
    }

    fn change(&self, place: &TPlace, change: &TChange) -> Agrees {
        let root = match place.root {
            TRoot::Local(l) => self.inst.locals.get(l.0 as usize),
            TRoot::Global(g) => self.program.globals.get(g.0 as usize),
        };
        let step = |ty: Ty, step: &TStep| match (step, ty) {
            (TStep::Field(i), Ty::Struct(s)) => s.fields.get(*i as usize).map(|f| f.1.clone()),
            (TStep::Index(_), Ty::List(t)) | (TStep::Key(_), Ty::Dict(_, t)) => Some(*t),
            _ => None,
        };
        let Some(slot) = root.and_then(|v| place.steps.iter().try_fold(v.ty.clone(), step)) else { return Ok(()) };
        match (change, &slot) {
            (TChange::Set(value), slot) => is("what is stored", &value.ty, slot, value.span),
            (TChange::Method { name: "list.append", args }, Ty::List(t)) => {
                args.iter().try_for_each(|a| is("what is appended", &a.ty, t, a.span))
            }
            (TChange::Method { name: "list.insert", args }, Ty::List(t)) => {
                args.iter().skip(1).try_for_each(|a| is("what is inserted", &a.ty, t, a.span))
            }
            (TChange::Method { name: "list.extend" | "dict.update", args }, slot) => {
                args.iter().try_for_each(|a| is("what is added", &a.ty, slot, a.span))
            }
            _ => Ok(()),
        }
    }
}
