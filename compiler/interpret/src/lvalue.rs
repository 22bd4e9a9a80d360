//! Changes of variables and of slots inside them.

use crate::machine::{Machine, R};
use crate::region::Making;
use crate::value::Value;
use std::rc::Rc;
use tessera_base::{Code, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_runtime::fault::reserve;
use tessera_runtime::host_value::HostKey;
use tessera_runtime::slice::position;

/// A step to a slot, evaluated.
enum At {
    Field(usize),
    Index(i64),
    Key(HostKey),
}

/// A change, its operands evaluated.
enum Ready<'a> {
    Set(Value),
    /// Of a tensor of this type: an index expression over parameters, the value, and whether they are in `making`.
    TensorSet {
        of: &'a Ty,
        index: Vec<IndexPart>,
        value: TExpr,
        making: Making,
    },
    Method {
        name: Method,
        args: Vec<(Value, Ty)>,
    },
}

impl Machine<'_> {
    pub fn mutate(&mut self, place: &TLvalue, change: &TChange, span: Span) -> R<()> {
        let slot = self.slot(place);
        let ready = match change {
            TChange::Set(e) => Ready::Set(self.expr(e)?),
            TChange::Method { name, args } => {
                let mut ready = vec![];
                for e in args {
                    ready.push((self.expr(e)?, e.ty.clone()));
                }
                Ready::Method { name: *name, args: ready }
            }
            TChange::TensorSet { of, index, value } => self.tensor_set(of, index, value)?,
        };
        let mut steps = vec![];
        for step in &place.steps {
            steps.push(match step {
                TStep::Field(n) => At::Field(*n as usize),
                TStep::Index(e) => At::Index(self.int(e)?),
                TStep::Key(e) => At::Key(self.key(e)?),
            });
        }
        // The variable gives its value up, so that what nobody else holds changes in place.
        let root = match place.root {
            TRoot::Local(l) => self.frame().locals.get_mut(l.0 as usize).and_then(Option::take),
            TRoot::Global(g) => self.globals.get_mut(g.0 as usize).and_then(Option::take),
        };
        let mut root = match (root, &ready) {
            (Some(root), _) => root,
            (None, Ready::Set(_)) if steps.is_empty() => Value::None,
            _ => return self.error(Code::E0107, span, "this variable has no value yet"),
        };
        let result = self.update(&mut root, &steps, ready, &slot, span);
        match place.root {
            TRoot::Local(l) => self.set_local(l, root),
            TRoot::Global(g) => self.set_global(g, root),
        }
        result
    }

    /// The type of the slot.
    fn slot(&self, place: &TLvalue) -> Ty {
        let root = match place.root {
            TRoot::Local(l) => self.frames.last().and_then(|f| f.of.locals.get(l.0 as usize)),
            TRoot::Global(g) => self.program.globals.get(g.0 as usize),
        };
        place.steps.iter().fold(root.map_or(Ty::Error, |v| v.ty.clone()), |ty, step| match (step, &ty) {
            (TStep::Field(n), Ty::Struct(s)) => s.fields.get(*n as usize).map_or(Ty::Error, |(_, t)| t.clone()),
            (TStep::Field(n), Ty::Tuple(ts)) => ts.get(*n as usize).cloned().unwrap_or(Ty::Error),
            (TStep::Index(_), Ty::List(t)) | (TStep::Key(_), Ty::Dict(_, t)) => (**t).clone(),
            _ => Ty::Error,
        })
    }

    fn tensor_set<'a>(&mut self, of: &'a Ty, index: &[IndexPart], value: &TExpr) -> R<Ready<'a>> {
        let mut making = Making::new();
        let value = self.operand(value, &mut making)?;
        // The parts of the index are the operands of an index expression.
        let base = Box::new(TExpr { kind: TKind::None, ty: of.clone(), span: value.span });
        let kind = TKind::TensorIndex { base, index: index.to_vec(), checks: vec![] };
        let whole = self.operands(TExpr { kind, ty: of.clone(), span: value.span }, &mut making)?;
        match whole.kind {
            TKind::TensorIndex { index, .. } => Ok(Ready::TensorSet { of, index, value, making }),
            _ => self.broken(value.span, "an index"),
        }
    }

    fn update(&mut self, value: &mut Value, steps: &[At], change: Ready, slot: &Ty, span: Span) -> R<()> {
        let Some((first, rest)) = steps.split_first() else { return self.changed(value, change, slot, span) };
        match (value, first) {
            (Value::Record(fields), At::Field(n)) if *n < fields.len() => {
                self.update(&mut Rc::make_mut(fields)[*n], rest, change, slot, span)
            }
            (Value::List(items), At::Index(i)) => {
                let at = position(*i, items.len(), "list").map_err(|fault| self.fault(fault, span))?;
                self.update(&mut Rc::make_mut(items)[at], rest, change, slot, span)
            }
            (Value::Dict(entries), At::Key(key)) => {
                let made = rest.is_empty() && matches!(change, Ready::Set(_));
                if !made && !entries.contains_key(key) {
                    return self.error(Code::E0704, span, "the dict has no such key");
                }
                let entry = Rc::make_mut(entries).entry(key.clone()).or_insert(Value::None);
                self.update(entry, rest, change, slot, span)
            }
            _ => self.broken(span, "a value with such a slot"),
        }
    }

    fn changed(&mut self, old: &mut Value, change: Ready, slot: &Ty, span: Span) -> R<()> {
        match change {
            Ready::Set(value) => *old = value,
            Ready::TensorSet { of, index, value, mut making } => {
                let base = making.param(old.clone(), of, span);
                let TKind::Local(local) = base.kind else { return self.broken(span, "a parameter") };
                let place = TLvalue { root: TRoot::Local(local), steps: vec![] };
                let change = TChange::TensorSet { of: of.clone(), index, value };
                *old = self.region(making, vec![TStmt::Mutate { place, change, span }], base, false)?;
            }
            Ready::Method { name, args } => self.method(old, name, args, slot, span)?,
        }
        Ok(())
    }

    fn method(&mut self, old: &mut Value, method: Method, args: Vec<(Value, Ty)>, slot: &Ty, span: Span) -> R<()> {
        match (&mut *old, method, &args[..]) {
            (Value::List(items), Method::list_append, [(x, _)]) => {
                Rc::make_mut(items).push(x.clone());
                return Ok(());
            }
            (Value::List(items), Method::list_extend, [(Value::List(more), _)]) => {
                let items = Rc::make_mut(items);
                reserve(items, more.len()).map_err(|fault| self.fault(fault, span))?;
                items.extend(more.iter().cloned());
                return Ok(());
            }
            _ => {}
        }
        let mut given = vec![self.given(old, slot)];
        given.extend(args.iter().map(|(v, ty)| self.given(v, ty)));
        *old = self.rt(method.def().func, given, slot, span)?;
        Ok(())
    }
}
