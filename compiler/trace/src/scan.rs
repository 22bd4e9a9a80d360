//! `op.scan` and `op.fori`: loops that stay loops in the graph.

use super::graph::Level;
use super::ranges::Range;
use super::scalar::Kind;
use super::turns::{Over, Turn};
use super::value::{Scalar, Tensor, Value};
use super::{R, Tracer};
use std::sync::Arc;
use tessera_base::{Code, DType, Span};
use tessera_core::ir::{InstId, TExpr};
use tessera_ir::graph::{Node, NodeId, NodeType};
use tessera_ops::map::MapOp;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Id, expand};

/// Loops of so few turns are written out.
pub(super) const UNROLL_MAX: u64 = 4;

/// The tensors and scalars in a value, in depth-first order.
pub(super) enum Leaf {
    Tensor(Tensor),
    Scalar(Scalar),
}

/// The function of a loop with what it captured.
pub(super) struct Callee {
    pub(super) inst: InstId,
    pub(super) captures: Vec<Value>,
}

impl Tracer<'_> {
    pub(super) fn callee(&mut self, inst: InstId, callee: Option<&TExpr>) -> R<Callee> {
        let captures = match callee {
            None => vec![],
            Some(e) => match self.eval(e)? {
                Value::Record(captures) => captures.to_vec(),
                other => return Err(self.broken(e.span, "a function", &other)),
            },
        };
        Ok(Callee { inst, captures })
    }

    pub(super) fn turn_of(&mut self, f: &Callee, args: impl IntoIterator<Item = Value>, span: Span) -> R<Value> {
        self.budget(span)?;
        let values = f.captures.iter().cloned().chain(args).collect();
        self.call(f.inst, values, span)
    }

    /// `op.scan(f, init, xs)` gives `(carry, ys)`.
    pub(super) fn scan(
        &mut self,
        inst: InstId,
        callee: Option<&TExpr>,
        init: &TExpr,
        xs: &TExpr,
        span: Span,
    ) -> R<Value> {
        let f = self.callee(inst, callee)?;
        let (init, sequences) = (self.eval(init)?, self.eval(xs)?);
        let trips = self.trips(&sequences, xs.span)?;
        if (1..=UNROLL_MAX).contains(&trips) {
            return self.scan_unrolled(&f, init, &sequences, trips, span);
        }
        let looped = self.over_rows(init, &sequences, trips, span, &mut |t, carry, x| t.pair(&f, [carry, x], span))?;
        Ok(Value::record(vec![looped.carry, looped.stacked]))
    }

    /// A loop over the rows of some tensors: a turn takes what is carried and a row, and gives what is carried on and what is
    /// stacked.
    pub(super) fn over_rows(
        &mut self,
        init: Value,
        sequences: &Value,
        trips: u64,
        span: Span,
        turn: &mut dyn FnMut(&mut Self, Value, Value) -> R<(Value, Value)>,
    ) -> R<Looped> {
        let mut operands = vec![];
        for leaf in self.leaves_of(sequences, span)? {
            match leaf {
                Leaf::Tensor(t) => operands.push(self.node(t)),
                Leaf::Scalar(_) => return Err(self.broken(span, "a tensor", sequences)),
            }
        }
        let over = Over { sequences: &operands, positions: None, trips, until: false };
        self.looped(init, over, span, &mut |t, inputs, carry| {
            let mut inputs = inputs.iter().copied();
            let x = t.rebuilt(sequences, &mut |t, _| match inputs.next() {
                Some(id) => Value::Tensor(t.tensor(id)),
                None => Value::None,
            });
            turn(t, carry, x)
        })
    }

    /// Row `i` of every tensor in a value.
    pub(super) fn row_of_each(&mut self, sequences: &Value, i: u64, span: Span) -> Value {
        self.rebuilt(sequences, &mut |t, leaf| match leaf {
            Leaf::Tensor(x) => Value::Tensor(t.row(x, i, span)),
            Leaf::Scalar(s) => Value::Scalar(s),
        })
    }

    /// `op.fori(low, high, f, init)`.
    pub(super) fn fori(
        &mut self,
        inst: InstId,
        callee: Option<&TExpr>,
        low: &TExpr,
        high: &TExpr,
        init: &TExpr,
        span: Span,
    ) -> R<Value> {
        let from = self.int(low, "the start of a loop")?;
        let to = self.int(high, "the end of a loop")?;
        let f = self.callee(inst, callee)?;
        let mut carry = self.eval(init)?;
        let trips = to.saturating_sub(from).max(0) as u64;
        if trips <= UNROLL_MAX {
            let types = self.carry_types(&carry, span)?;
            for i in from..to {
                carry = self.turn_of(&f, [Value::int(i), carry], span)?;
                self.keeps_types(&types, &carry, span)?;
            }
            return Ok(carry);
        }
        let mut b = self.adder("fori", span);
        let count = expand::iota(&mut b, &[trips], 0);
        let first = expand::full(&mut b, &[trips], DType::I64, tessera_ops::prim::Scalar::I(from));
        let positions = expand::map(&mut b, MapOp::add, &[count, first]);
        self.level().set_range(NodeId(positions.0), Range::Int(from, to - 1));
        let over = Over { sequences: &[NodeId(positions.0)], positions: Some((from, 1)), trips, until: false };
        let looped = self.looped(carry, over, span, &mut |t, inputs, carry| {
            let i = Value::Scalar(Scalar::Node(Kind::Int, t.tensor(inputs[0])));
            Ok((t.turn_of(&f, [i, carry], span)?, Value::record(vec![])))
        })?;
        Ok(looped.carry)
    }

    /// The number of turns: the leading size of every sequence.
    pub(super) fn trips(&mut self, sequences: &Value, span: Span) -> R<u64> {
        let mut trips = None;
        for leaf in self.leaves_of(sequences, span)? {
            let Leaf::Tensor(t) = leaf else { return Err(self.broken(span, "a tensor", sequences)) };
            let shape = self.ty(t).shape;
            match (shape.first(), trips) {
                (Some(&n), None) => trips = Some(n),
                (Some(&n), Some(m)) if n == m => {}
                (Some(n), Some(m)) => {
                    let message = format!("a scan goes over {m} elements of one sequence and over {n} of another");
                    return Err(self.error(Code::E0708, span, message));
                }
                (None, _) => return Err(self.broken(span, "a tensor with a dim to go over", sequences)),
            }
        }
        trips.ok_or_else(|| self.error(Code::E0204, span, "a scan needs a tensor to run over"))
    }

    fn scan_unrolled(&mut self, f: &Callee, init: Value, sequences: &Value, trips: u64, span: Span) -> R<Value> {
        let types = self.carry_types(&init, span)?;
        let mut carry = init;
        let mut rows = vec![];
        for i in 0..trips {
            let element = self.row_of_each(sequences, i, span);
            let (next, y) = self.pair(f, [carry, element], span)?;
            carry = next;
            self.keeps_types(&types, &carry, span)?;
            rows.push(y);
        }
        let stacked = self.stack(&rows, span)?;
        Ok(Value::record(vec![carry, stacked]))
    }

    fn pair(&mut self, f: &Callee, args: [Value; 2], span: Span) -> R<(Value, Value)> {
        match self.turn_of(f, args, span)? {
            Value::Record(both) if both.len() == 2 => Ok((both[0].clone(), self.as_tensors(&both[1], span))),
            other => Err(self.broken(span, "a pair (carry, y)", &other)),
        }
    }

    /// Values of one structure with their tensors stacked along a new leading dim.
    pub(super) fn stack(&mut self, rows: &[Value], span: Span) -> R<Value> {
        let Some(first) = rows.first() else { return Ok(Value::None) };
        let mut columns: Vec<Vec<Id>> = vec![];
        for row in rows {
            for (i, leaf) in self.leaves_of(row, span)?.into_iter().enumerate() {
                let id = Id(self.leaf_id(&leaf, span).0);
                let mut b = self.adder("stack", span);
                let id = expand::unsqueeze(&mut b, id, &[0]);
                match columns.get_mut(i) {
                    Some(column) => column.push(id),
                    None => columns.push(vec![id]),
                }
            }
        }
        let mut columns = columns.into_iter();
        Ok(self.rebuilt(first, &mut |t, _| {
            let parts = columns.next().unwrap_or_default();
            let mut b = t.adder("stack", span);
            let id = expand::concat(&mut b, &parts, 0);
            Value::Tensor(t.tensor_id(id))
        }))
    }

    /// Traces the body once and adds the loop. The body takes the inputs that hold elements of
    /// the sequences and the carry, and gives the next carry and what is stacked.
    pub(super) fn looped(
        &mut self,
        init: Value,
        over: Over,
        span: Span,
        body: &mut dyn FnMut(&mut Self, &[NodeId], Value) -> R<(Value, Value)>,
    ) -> R<Looped> {
        let mut operands = vec![];
        for leaf in self.leaves_of(&init, span)? {
            operands.push(self.leaf_id(&leaf, span));
        }
        let carried = operands.len();
        operands.extend(over.sequences);
        let trips = over.trips;
        let mut types: Vec<NodeType> = operands.iter().map(|&id| self.level().graph.ty(id).unsharded()).collect();
        // Nodes whose rows are elements, too.
        let mut rows: Vec<NodeId> = vec![];
        // Known of the carry and of an element of each sequence, in every turn.
        let mut ranges: Vec<Range> = vec![Range::Unknown; carried];
        ranges.extend(over.sequences.iter().map(|&id| self.level().range(id)));
        // Carries for what the checks of a turn give, where the loop ends by itself: it has no row for each turn.
        let mut checked: Vec<NodeType> = vec![];
        let (mut level, carry, y) = loop {
            self.levels.push(Level::default());
            let held = (carried, carried + checked.len());
            let traced = self.body_of(&init, (&types, &ranges), held, (&over, &rows), span, body);
            // A number that only grows by what is known may need no checks.
            let found = match &traced {
                Ok((outputs, ..)) if !self.level().checks.is_empty() => {
                    self.carried_ranges(&init, outputs, &ranges, trips, span)?
                }
                _ => ranges.clone(),
            };
            let level = self.levels.pop();
            let (outputs, carry, y) = traced?;
            let Some(mut level) = level else { return Err(self.error(Code::E0999, span, "a loop without a body")) };
            level.graph.outputs = outputs;
            if over.until {
                let have: Vec<NodeType> = level.checks.iter().map(|&c| level.graph.ty(c).unsharded()).collect();
                if have != checked {
                    let places = carried..carried + checked.len();
                    types.splice(places.clone(), have.iter().cloned());
                    ranges.splice(places.clone(), have.iter().map(|_| Range::Unknown));
                    let zeros: Vec<NodeId> = have.iter().map(|ty| self.zeros(ty, span)).collect();
                    operands.splice(places, zeros);
                    checked = have;
                    continue;
                }
                let checks = std::mem::take(&mut level.checks);
                level.graph.outputs.splice(carried..carried, checks);
            }
            let wanted = level.turn.take().map(|t| t.wanted).unwrap_or_default();
            if found == ranges && wanted.is_empty() {
                break (level, carry, y);
            }
            ranges = found;
            for row in wanted {
                let sequence = self.rows_over(row, &over, span);
                types.push(self.level().graph.ty(sequence).unsharded());
                ranges.push(Range::Unknown);
                operands.push(sequence);
                rows.push(row);
            }
        };
        // They are outputs so that nothing drops them.
        let made = level.graph.outputs.len();
        let held = carried + checked.len();
        level.graph.outputs.extend(std::mem::take(&mut level.checks));
        level.graph.name = "body".into();
        operands.extend(level.outer.iter().map(|(outer, _)| *outer));
        let results: Vec<NodeType> = level
            .graph
            .outputs
            .iter()
            .enumerate()
            .map(|(i, &o)| {
                let ty = level.graph.ty(o);
                if i < held { ty.unsharded() } else { ty.stacked(trips) }
            })
            .collect();
        let (policy, origin) = (self.policy, self.origin(span));
        let graph = &mut self.level().graph;
        graph.bodies.push(level.graph);
        let body = graph.bodies.len() as u32 - 1;
        let node = graph.push(Node {
            prim: Prim::Scan {
                body,
                carry: held,
                sequences: over.sequences.len() + rows.len(),
                trips,
                reversed: false,
                until: over.until,
            },
            operands,
            ty: results.first().cloned().unwrap_or(NodeType::new(vec![], DType::Bool)),
            results: results.clone(),
            origin,
            policy,
        });
        let mut gets = vec![];
        for (index, ty) in results.into_iter().enumerate() {
            let id = self.prim(Prim::Get { index }, &[Id(node.0)], ty.shape, ty.dtype, span);
            if let Some(&range) = ranges[..carried].get(index) {
                self.level().set_range(NodeId(id.0), range);
            }
            if index >= made || (carried..held).contains(&index) {
                self.level().checks.push(NodeId(id.0));
            } else {
                gets.push(self.tensor_id(id));
            }
        }
        let mut gets = gets.into_iter();
        let mut next = |_: &mut Self, leaf: Leaf| match (gets.next(), leaf) {
            (Some(t), Leaf::Scalar(s)) => Value::Scalar(Scalar::Node(s.kind(), t)),
            (Some(t), Leaf::Tensor(_)) => Value::Tensor(t),
            (None, _) => Value::None,
        };
        let carry = self.rebuilt(&carry, &mut next);
        // Stacked scalars are tensors.
        let stacked = self.rebuilt(&y, &mut |t, leaf| match next(t, leaf) {
            Value::Scalar(Scalar::Node(_, t)) => Value::Tensor(t),
            other => other,
        });
        Ok(Looped { carry, stacked })
    }

    fn zeros(&mut self, ty: &NodeType, span: Span) -> NodeId {
        let zero = tessera_ops::prim::Scalar::zero(ty.dtype);
        NodeId(expand::full(&mut self.adder("", span), &ty.shape, ty.dtype, zero).0)
    }

    /// What can be told of carried ints from a trace of the body; those known already stay.
    fn carried_ranges(
        &mut self,
        init: &Value,
        outputs: &[NodeId],
        known: &[Range],
        trips: u64,
        span: Span,
    ) -> R<Vec<Range>> {
        let mut out = known.to_vec();
        for (i, leaf) in self.leaves_of(init, span)?.iter().enumerate() {
            let Leaf::Scalar(s) = leaf else { continue };
            if s.kind() == Kind::Int && known[i] == Range::Unknown {
                let first = self.bounds(s, span)?;
                // Inputs are the first nodes of a body, in their order.
                out[i] = self.carried_range(NodeId(i as u32), outputs[i], first, trips);
            }
        }
        Ok(out)
    }

    /// What the tensors and scalars of a carry are.
    fn carry_types(&self, carry: &Value, span: Span) -> R<Vec<NodeType>> {
        let ty = |leaf: &Leaf| match leaf {
            Leaf::Tensor(t) => self.ty(*t).unsharded(),
            Leaf::Scalar(s) => NodeType::new(vec![], s.kind().dtype()),
        };
        Ok(self.leaves_of(carry, span)?.iter().map(ty).collect())
    }

    /// E0708 unless a turn gives back what came in.
    fn keeps_types(&self, types: &[NodeType], next: &Value, span: Span) -> R<()> {
        let have = self.carry_types(next, span)?;
        if have.len() != types.len() {
            return Err(self.error(Code::E0708, span, "the carry of a loop changes its structure"));
        }
        match types.iter().zip(&have).find(|(want, have)| want != have) {
            Some((want, have)) => {
                let message = format!("the carry of a loop changes its type from {want} to {have}");
                Err(self.error(Code::E0708, span, message))
            }
            None => Ok(()),
        }
    }

    /// Traces the body into the innermost graph: its outputs, the carry and the element of ys.
    fn body_of(
        &mut self,
        init: &Value,
        (types, ranges): (&[NodeType], &[Range]),
        (carried, held): (usize, usize),
        (over, rows): (&Over, &[NodeId]),
        span: Span,
        body: &mut dyn FnMut(&mut Self, &[NodeId], Value) -> R<(Value, Value)>,
    ) -> R<(Vec<NodeId>, Value, Value)> {
        let mut inputs = vec![];
        for (i, ty) in types.iter().enumerate() {
            let inside = match i < held {
                true => ty.clone(),
                false => NodeType { shape: ty.shape[1..].to_vec(), ..ty.clone() },
            };
            let name = if i < held { "carry" } else { "element" };
            let id = self.level().input(name, inside, false, span);
            self.level().set_range(id, ranges[i]);
            inputs.push(id);
        }
        self.level().turn = Turn::new(over, rows, &inputs[held..]);
        let mut carries = inputs[..carried].iter().copied();
        let carry = self.rebuilt(init, &mut |t, leaf| match (carries.next(), leaf) {
            (Some(id), Leaf::Scalar(s)) => Value::Scalar(Scalar::Node(s.kind(), t.tensor(id))),
            (Some(id), Leaf::Tensor(_)) => Value::Tensor(t.tensor(id)),
            (None, _) => Value::None,
        });
        let (next, y) = body(self, &inputs[held..held + over.sequences.len()], carry)?;
        self.keeps_types(&types[..carried], &next, span)?;
        let mut outputs = vec![];
        for leaf in self.leaves_of(&next, span)? {
            outputs.push(self.leaf_id(&leaf, span));
        }
        for leaf in self.leaves_of(&y, span)? {
            let id = self.leaf_id(&leaf, span);
            outputs.push(id);
        }
        Ok((outputs, next, y))
    }

    pub(super) fn leaf_id(&mut self, leaf: &Leaf, span: Span) -> NodeId {
        match leaf {
            Leaf::Tensor(t) => self.node(*t),
            Leaf::Scalar(s) => self.scalar_node(s, span),
        }
    }

    pub(super) fn leaves_of(&self, value: &Value, span: Span) -> R<Vec<Leaf>> {
        let mut out = vec![];
        self.collect(value, span, &mut out)?;
        Ok(out)
    }

    fn collect(&self, value: &Value, span: Span, out: &mut Vec<Leaf>) -> R<()> {
        match value {
            Value::Tensor(t) => out.push(Leaf::Tensor(*t)),
            Value::Scalar(s) => out.push(Leaf::Scalar(s.clone())),
            Value::Record(items) | Value::List(items) => items.iter().try_for_each(|v| self.collect(v, span, out))?,
            Value::Dict(entries) => entries.values().try_for_each(|v| self.collect(v, span, out))?,
            Value::Str(_) | Value::None | Value::DType(_) => {}
            Value::Closure { .. } => return Err(self.broken(span, "a tensor", value)),
        }
        Ok(())
    }

    /// The same structure with other leaves.
    pub(super) fn rebuilt(&mut self, value: &Value, f: &mut dyn FnMut(&mut Self, Leaf) -> Value) -> Value {
        let mut all =
            |t: &mut Self, items: &[Value]| Arc::new(items.iter().map(|v| t.rebuilt(v, f)).collect::<Vec<_>>());
        match value {
            Value::Record(items) => Value::Record(all(self, items)),
            Value::List(items) => Value::List(all(self, items)),
            Value::Dict(entries) => {
                Value::Dict(Arc::new(entries.iter().map(|(k, v)| (k.clone(), self.rebuilt(v, f))).collect()))
            }
            Value::Tensor(t) => f(self, Leaf::Tensor(*t)),
            Value::Scalar(s) => f(self, Leaf::Scalar(s.clone())),
            other => other.clone(),
        }
    }
}

/// What a loop gives.
pub(super) struct Looped {
    pub carry: Value,
    pub stacked: Value,
}
