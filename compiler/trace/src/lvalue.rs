//! Changes of variables and of slots inside them: values are copied where they are shared.

use super::scalar::{Known, diagnostic};
use super::value::{Key, Value};
use super::{R, Tracer};
use indexmap::IndexMap;
use std::cmp::Ordering;
use std::sync::Arc;
use tessera_base::{Code, Span, bug};
use tessera_core::ir::*;
use tessera_runtime::slice::position;

/// A step to a slot with its index known.
enum At {
    Field(usize),
    Index(i64),
    Key(Key),
}

impl Tracer<'_> {
    pub(super) fn mutate(&mut self, place: &TLvalue, change: &TChange, span: Span) -> R<()> {
        let change = match change {
            TChange::Set(e) => Ready::Set(self.eval(e)?),
            TChange::TensorSet { index, value, .. } => Ready::TensorSet(index, self.eval(value)?, repeating(&value.ty)),
            TChange::Method { name, args } => Ready::Method(*name, self.evals(args)?),
        };
        let mut steps = vec![];
        for step in &place.steps {
            steps.push(match step {
                TStep::Field(n) => At::Field(*n as usize),
                TStep::Index(e) => At::Index(self.int(e, "the index of a list")?),
                TStep::Key(e) => {
                    let key = self.eval(e)?;
                    At::Key(self.key(&key, e.span)?)
                }
            });
        }
        let root = match place.root {
            TRoot::Local(l) => self.frame().get(&l).cloned(),
            TRoot::Global(g) => self.globals.get(&g).cloned(),
        };
        let root = match (root, steps.is_empty(), &change) {
            (Some(root), ..) => root,
            // A first assignment of the whole variable.
            (None, true, Ready::Set(_)) => Value::None,
            _ => return Err(self.error(Code::E0107, span, "this variable has no value yet")),
        };
        let value = self.update(root, &steps, change, span)?;
        match place.root {
            TRoot::Local(l) => self.frame().insert(l, value),
            TRoot::Global(g) => self.globals.insert(g, value),
        };
        Ok(())
    }

    fn update(&mut self, value: Value, steps: &[At], change: Ready, span: Span) -> R<Value> {
        let Some((first, rest)) = steps.split_first() else { return self.changed(value, change, span) };
        match (value, first) {
            (Value::Record(mut fields), At::Field(n)) if *n < fields.len() => {
                let old = fields[*n].clone();
                Arc::make_mut(&mut fields)[*n] = self.update(old, rest, change, span)?;
                Ok(Value::Record(fields))
            }
            (Value::List(mut items), At::Index(i)) => {
                let at = position(*i, items.len(), "list");
                let at = at.map_err(|f| Box::new(self.in_calls(*diagnostic(f, span))))?;
                let old = items[at].clone();
                Arc::make_mut(&mut items)[at] = self.update(old, rest, change, span)?;
                Ok(Value::List(items))
            }
            (Value::Dict(mut entries), At::Key(key)) => {
                let old = match (entries.get(key), rest.is_empty()) {
                    (Some(v), _) => v.clone(),
                    (None, true) => Value::None,
                    (None, false) => return Err(self.error(Code::E0704, span, "the dict has no such key")),
                };
                let new = self.update(old, rest, change, span)?;
                Arc::make_mut(&mut entries).insert(key.clone(), new);
                Ok(Value::Dict(entries))
            }
            (other, _) => Err(self.broken(span, "a value with such a slot", &other)),
        }
    }

    fn changed(&mut self, old: Value, change: Ready, span: Span) -> R<Value> {
        match (change, old) {
            (Ready::Set(value), _) => Ok(value),
            (Ready::TensorSet(index, value, loose), Value::Tensor(t)) => {
                Ok(Value::Tensor(self.assign(t, index, (&value, loose), span)?))
            }
            (Ready::Method(name, args), Value::List(mut items)) => {
                self.list_method(name, args, Arc::make_mut(&mut items), span)?;
                Ok(Value::List(items))
            }
            (Ready::Method(name, args), Value::Dict(mut entries)) => {
                self.dict_method(name, args, Arc::make_mut(&mut entries), span)?;
                Ok(Value::Dict(entries))
            }
            (_, other) => Err(self.broken(span, "a value that can be changed so", &other)),
        }
    }

    fn list_method(&mut self, method: Method, args: Vec<Value>, items: &mut Vec<Value>, span: Span) -> R<()> {
        match (method, &args[..]) {
            (Method::list_append, [x]) => items.push(x.clone()),
            (Method::list_extend, [Value::List(more)]) => items.extend(more.iter().cloned()),
            (Method::list_insert, [at, x]) => {
                let at = self.int_value(at, "the index of a list", span)?;
                let n = items.len() as i64;
                let at = if at < 0 { at.saturating_add(n).max(0) } else { at.min(n) };
                items.insert(at as usize, x.clone());
            }
            (Method::list_pop, [at]) => {
                let at = self.int_value(at, "the index of a list", span)?;
                let at =
                    position(at, items.len(), "list").map_err(|f| Box::new(self.in_calls(*diagnostic(f, span))))?;
                items.remove(at);
            }
            (Method::list_remove, [x]) => {
                let at = self.position_of(items, x, span)?;
                items.remove(at);
            }
            (Method::list_sort, [descending]) => {
                let keys = items.clone();
                *items = self.sorted(std::mem::take(items), &keys, descending, span)?;
            }
            (Method::list_reverse, []) => items.reverse(),
            (Method::list_clear, []) => items.clear(),
            _ => bug!("`{}` of a list with {} arguments", method.name(), args.len()),
        }
        Ok(())
    }

    /// In the order of the keys, by a stable insertion sort: comparisons may fail.
    pub(super) fn sorted(
        &mut self,
        items: Vec<Value>,
        keys: &[Value],
        descending: &Value,
        span: Span,
    ) -> R<Vec<Value>> {
        let Value::Scalar(descending) = descending else { return Err(self.broken(span, "a bool", descending)) };
        let descending = self.known(descending, "the order", span)? == Known::Bool(true);
        let moves = if descending { Ordering::Greater } else { Ordering::Less };
        let mut sorted: Vec<(Value, &Value)> = Vec::with_capacity(items.len());
        for (item, key) in items.into_iter().zip(keys) {
            let mut at = sorted.len();
            while at > 0 && self.order(key, sorted[at - 1].1, span)? == Some(moves) {
                at -= 1;
            }
            sorted.insert(at, (item, key));
        }
        Ok(sorted.into_iter().map(|(item, _)| item).collect())
    }

    fn dict_method(
        &mut self,
        method: Method,
        args: Vec<Value>,
        entries: &mut IndexMap<Key, Value>,
        span: Span,
    ) -> R<()> {
        match (method, &args[..]) {
            (Method::dict_pop, [key]) => {
                let key = self.key(key, span)?;
                if entries.shift_remove(&key).is_none() {
                    return Err(self.no_key(&key, span));
                }
            }
            (Method::dict_update, [Value::Dict(more)]) => {
                entries.extend(more.iter().map(|(k, v)| (k.clone(), v.clone())));
            }
            (Method::dict_clear, []) => entries.clear(),
            _ => bug!("`{}` of a dict with {} arguments", method.name(), args.len()),
        }
        Ok(())
    }
}

/// A change with its operands evaluated.
enum Ready<'a> {
    Set(Value),
    /// With the dims along which the value may be repeated.
    TensorSet(&'a [IndexPart], Value, u64),
    Method(Method, Vec<Value>),
}
