//! Between which bounds host numbers of a graph lie: arguments, nodes, and what loops carry.

use super::ranges::Range;
use super::scalar::{Known, ScalarExpr};
use super::value::{Scalar, Tensor};
use super::{R, Tracer};
use std::sync::Arc;
use tessera_base::{CmpOp, Span};
use tessera_ir::graph::NodeId;
use tessera_ops::map::MapOp;
use tessera_ops::numbers::NumberOp;
use tessera_ops::prim::{self, Prim};
use tessera_ops::scalar::Kind;

/// Scalar arguments of the region are taken to lie within this, as a condition for using the graph.
const ARGUMENT_MAX: i64 = 1 << 31;
/// How far back the growth of a carried number is followed.
const DEPTH_MAX: u32 = 64;

impl Tracer<'_> {
    /// Between which bounds a scalar lies.
    pub(super) fn bounds(&mut self, s: &Scalar, span: Span) -> R<Range> {
        Ok(match s {
            Scalar::Known(v) => Range::of(*v),
            Scalar::Late(e, Known::Int(n)) => {
                let bound = |op, limit: i64| {
                    let limit = Arc::new(ScalarExpr::Const(Known::Int(limit)));
                    let operands = vec![e.clone(), limit];
                    Arc::new(ScalarExpr::Apply {
                        op: NumberOp::compare(op, Kind::I64).into(),
                        operands,
                        kind: super::scalar::Kind::Bool,
                        span,
                    })
                };
                for (op, limit, within) in
                    [(CmpOp::Gt, -ARGUMENT_MAX, *n > -ARGUMENT_MAX), (CmpOp::Lt, ARGUMENT_MAX, *n < ARGUMENT_MAX)]
                {
                    self.known(&Scalar::Late(bound(op, limit), Known::Bool(within)), "a number", span)?;
                    if !within {
                        return Ok(Range::Unknown);
                    }
                }
                Range::Int(-ARGUMENT_MAX, ARGUMENT_MAX)
            }
            Scalar::Late(..) | Scalar::Node(_, Tensor::Leaf(_)) => Range::Unknown,
            Scalar::Node(_, Tensor::Node { level, id }) => self.range_of(*level as usize, *id),
        })
    }

    fn range_of(&self, level: usize, id: NodeId) -> Range {
        let Some(level) = self.levels.get(level) else { return Range::Unknown };
        match level.graph.node(id).prim {
            Prim::Full { value: prim::Scalar::I(n) } => Range::Int(n, n),
            Prim::Check(_) => level.graph.node(id).operands.first().map_or(Range::Unknown, |&x| level.range(x)),
            _ => level.range(id),
        }
    }

    /// Bounds for all turns of an int that a loop carries from `inside` to `after`, nodes of the innermost graph, if
    /// it starts within `first`.
    pub(super) fn carried_range(&self, inside: NodeId, after: NodeId, first: Range, trips: u64) -> Range {
        let level = self.levels.len() - 1;
        let Range::Int(low, high) = first else { return Range::Unknown };
        // What a turn adds to it.
        if let Some((least, most)) = self.growth(level, after, inside, DEPTH_MAX) {
            let turns = i128::from(trips);
            let bound = |start: i64, step: i128| {
                i64::try_from(i128::from(start).saturating_add(turns.saturating_mul(step))).ok()
            };
            return match (bound(low, least.min(0)), bound(high, most.max(0))) {
                (Some(a), Some(b)) => Range::Int(a, b),
                _ => Range::Unknown,
            };
        }
        // Or it does not depend on what it was.
        match self.range_of(level, after) {
            Range::Int(i64::MIN, _) | Range::Int(_, i64::MAX) => Range::Unknown,
            range => range.and(first),
        }
    }

    fn growth(&self, level: usize, id: NodeId, from: NodeId, depth: u32) -> Option<(i128, i128)> {
        if id == from {
            return Some((0, 0));
        }
        let depth = depth.checked_sub(1)?;
        let node = self.levels[level].graph.node(id);
        let operand = |i: usize| node.operands.get(i).copied();
        let grown = |i: usize| self.growth(level, operand(i)?, from, depth);
        let ints = |i: usize| match self.range_of(level, operand(i)?) {
            Range::Int(a, b) => Some((i128::from(a), i128::from(b))),
            _ => None,
        };
        let plus = |(a, b): (i128, i128), (c, d): (i128, i128)| (a + c, b + d);
        let both = |x: (i128, i128), y: (i128, i128)| (x.0.min(y.0), x.1.max(y.1));
        match node.prim {
            Prim::Check(_) => grown(0),
            Prim::Map(MapOp::add) => match grown(0) {
                Some(g) => Some(plus(g, ints(1)?)),
                None => Some(plus(grown(1)?, ints(0)?)),
            },
            Prim::Map(MapOp::sub) => {
                let (a, b) = ints(1)?;
                Some(plus(grown(0)?, (-b, -a)))
            }
            Prim::Map(MapOp::r#where) => Some(both(grown(1)?, grown(2)?)),
            _ => None,
        }
    }
}
