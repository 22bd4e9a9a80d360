//! `op.map` and `op.associative_scan`: functions of rows.

use super::derive::Function;
use super::index::Along;
use super::scan::{Callee, Leaf, UNROLL_MAX};
use super::value::Value;
use super::{R, Tracer};
use std::sync::Arc;
use tessera_abi::slice::Slice;
use tessera_base::Span;
use tessera_core::ir::TExpr;
use tessera_core::ty::OutAxes;
use tessera_ops::surface::{Build, Id, expand};

impl Tracer<'_> {
    /// `op.map(f, xs)`: a loop that carries nothing.
    pub(super) fn map_rows(&mut self, f: &Callee, xs: &TExpr, span: Span) -> R<Value> {
        let rows = self.eval(xs)?;
        let trips = self.trips(&rows, xs.span)?;
        if (1..=UNROLL_MAX).contains(&trips) {
            let mut made = vec![];
            for i in 0..trips {
                let row = self.row_of_each(&rows, i, span);
                let value = self.turn_of(f, [row], span)?;
                made.push(self.as_tensors(&value, span));
            }
            return self.stack(&made, span);
        }
        let nothing = Value::record(vec![]);
        let looped = self.over_rows(nothing.clone(), &rows, trips, span, &mut |t, _, row| {
            let value = t.turn_of(f, [row], span)?;
            Ok((nothing.clone(), t.as_tensors(&value, span)))
        })?;
        Ok(looped.stacked)
    }

    /// `op.associative_scan(f, xs, axis, reverse)`.
    pub(super) fn associative_scan(
        &mut self,
        f: &Callee,
        xs: &TExpr,
        [axis, reverse]: [&TExpr; 2],
        span: Span,
    ) -> R<Value> {
        let axis = self.int(axis, "`axis`")?;
        let reverse = {
            let s = self.scalar(reverse)?;
            self.known_bool(&s, reverse.span)?
        };
        let xs_value = self.eval(xs)?;
        let rows = self.each_tensor(&xs_value, &mut |t, x| t.with_dim_first(x, axis, span));
        let n = self.trips(&rows, xs.span)?;
        let turned = |t: &mut Self, rows: Value| match reverse {
            true => t.some_rows(&rows, Slice { start: n.saturating_sub(1) as i64, step: -1, count: n }, span),
            false => rows,
        };
        let rows = turned(self, rows);
        let f = Function::Direct { inst: f.inst, captures: Arc::new(f.captures.clone()) };
        let made = self.combined(&f, rows, n, span)?;
        let made = turned(self, made);
        Ok(self.each_tensor(&made, &mut |t, x| {
            let id = t.node(x);
            t.with_first_dim_at(id, axis, span)
        }))
    }

    /// What `f` makes of all of the `n` rows up to each: neighbours are combined, then half as many, and those between them from both.
    fn combined(&mut self, f: &Function, rows: Value, n: u64, span: Span) -> R<Value> {
        if n < 2 {
            return Ok(rows);
        }
        let half = n / 2;
        let every = |start, step, count| Slice { start, step, count };
        let pair = [0, 1].map(|start| self.some_rows(&rows, every(start, 2, half), span));
        let pairs = self.of_rows(f, pair, span)?;
        let odd = self.combined(f, pairs, half, span)?;
        let first = self.some_rows(&rows, every(0, 1, 1), span);
        let between = (n - 1) / 2;
        if between == 0 {
            return self.in_turn(&[first], &odd, span);
        }
        let given =
            [self.some_rows(&odd, every(0, 1, between), span), self.some_rows(&rows, every(2, 2, between), span)];
        let even = self.of_rows(f, given, span)?;
        self.in_turn(&[first, even], &odd, span)
    }

    fn of_rows(&mut self, f: &Function, rows: [Value; 2], span: Span) -> R<Value> {
        self.budget(span)?;
        self.mapped(&[Some(0), Some(0)], &OutAxes::All(0), f, rows.to_vec(), span)
    }

    /// Rows of `even`, one part behind the other, and of `odd` in turn. There are as many of both, or one more even one.
    fn in_turn(&mut self, even: &[Value], odd: &Value, span: Span) -> R<Value> {
        let mut columns: Vec<Vec<Id>> = vec![];
        for value in even.iter().chain([odd]) {
            for (i, leaf) in self.leaves_of(value, span)?.into_iter().enumerate() {
                let id = Id(self.leaf_id(&leaf, span).0);
                match columns.get_mut(i) {
                    Some(column) => column.push(id),
                    None => columns.push(vec![id]),
                }
            }
        }
        let mut columns = columns.into_iter();
        Ok(self.rebuilt(odd, &mut |t, leaf| {
            let (Some(column), Leaf::Tensor(_)) = (columns.next(), &leaf) else { return leaf.value() };
            let [even @ .., odd] = column.as_slice() else { return leaf.value() };
            let mut b = t.adder("associative_scan", span);
            let even = expand::concat(&mut b, even, 0);
            let (evens, odds) = (b.shape(even)[0], b.shape(*odd)[0]);
            let paired = expand::slice(&mut b, even, 0, 0, odds);
            let both = [paired, *odd].map(|x| expand::unsqueeze(&mut b, x, &[1]));
            let both = expand::concat(&mut b, &both, 1);
            let mut shape = b.shape(even);
            shape[0] = 2 * odds;
            let mut all = expand::reshape(&mut b, both, &shape);
            if evens > odds {
                let last = expand::slice(&mut b, even, 0, odds, 1);
                all = expand::concat(&mut b, &[all, last], 0);
            }
            Value::Tensor(t.tensor_id(all))
        }))
    }

    /// Some rows of every tensor in a value.
    fn some_rows(&mut self, rows: &Value, of: Slice, span: Span) -> Value {
        self.each_tensor(rows, &mut |t, x| {
            let shape = t.ty(x).shape;
            let mut dims: Vec<Along> =
                shape.iter().map(|&count| Along::Slice(Slice { start: 0, step: 1, count })).collect();
            if let Some(first) = dims.first_mut() {
                *first = Along::Slice(of);
            }
            t.basic(x, &dims, span)
        })
    }

    fn each_tensor(
        &mut self,
        value: &Value,
        of: &mut dyn FnMut(&mut Self, super::value::Tensor) -> super::value::Tensor,
    ) -> Value {
        self.rebuilt(value, &mut |t, leaf| match leaf {
            Leaf::Tensor(x) => Value::Tensor(of(t, x)),
            Leaf::Scalar(_) => leaf.value(),
        })
    }
}
