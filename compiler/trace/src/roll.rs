//! Long loops of graph functions stay loops.
//!
//! Also called: loop rolling.
//!
//! A `for` of many turns whose body does the same every time becomes a [`Prim::Scan`] over
//! what the body changes; the last turn is written out, so that every variable has its final
//! value afterwards. A body that asks for more (the number of the turn in a condition, a list
//! that grows) is unrolled instead.
//!
//! [`Prim::Scan`]: tessera_ops::prim::Prim::Scan

use super::graph::Mark;
use super::ranges::Range;
use super::scalar::Kind;
use super::scan::Leaf;
use super::stmt::Flow;
use super::turns::{Over, carried_variables};
use super::value::{Scalar, Tensor, Value};
use super::{R, Tracer};
use std::collections::BTreeMap;
use tessera_base::{Code, DType, Span};
use tessera_core::ir::*;
use tessera_core::walk::Var;
use tessera_ir::graph::NodeId;
use tessera_ops::map::MapOp;
use tessera_ops::prim;
use tessera_ops::surface::expand;

/// Loops of fewer turns are unrolled.
const TURNS_MIN: u64 = 16;
/// The same inside explicit tile programs.
const TILE_TURNS_MIN: u64 = 257;
/// Traces of one body until what it changes is known.
const ROUNDS_MAX: usize = 4;

/// What a loop runs over.
pub(super) enum Turns {
    Range { start: i64, step: i64, count: u64 },
    Rows { of: Tensor, count: u64 },
}

impl Turns {
    /// The position of a turn.
    pub(super) fn position(&self, turn: u64) -> i64 {
        match *self {
            Turns::Range { start, step, .. } => start.wrapping_add((turn as i64).wrapping_mul(step)),
            Turns::Rows { .. } => turn as i64,
        }
    }

    pub(super) fn count(&self) -> u64 {
        match self {
            Turns::Range { count, .. } | Turns::Rows { count, .. } => *count,
        }
    }
}

/// State to go back to when a loop cannot stay one.
pub(super) struct Before {
    marks: Vec<Mark>,
    guards: usize,
    frame: BTreeMap<LocalId, Value>,
    globals: BTreeMap<GlobalId, Value>,
    steps: usize,
    warnings: usize,
    /// Of the innermost level.
    checks: usize,
}

impl Tracer<'_> {
    /// A loop that stays one, or else is written out. `rest` writes out its last turn, or all turns (`false`).
    pub(super) fn rolled_or(
        &mut self,
        var: LocalId,
        turns: &Turns,
        body: &[TStmt],
        span: Span,
        rest: &mut dyn FnMut(&mut Self, bool) -> R<Flow>,
    ) -> R<Flow> {
        // Written out, every access of a tile program is checked before it runs.
        let written_out = if self.tiles.is_some() { TILE_TURNS_MIN } else { TURNS_MIN };
        if turns.count() < written_out {
            return rest(self, false);
        }
        let before = self.before();
        let mut changed = Changed::default();
        for _ in 0..ROUNDS_MAX {
            let outcome = self.roll_once(var, turns, body, &mut changed, span);
            match outcome {
                Ok(true) => {
                    let checks = self.level().checks.len() > before.checks;
                    return match rest(self, true) {
                        // An earlier turn may have failed before the last one: written out, the first tells.
                        Err(last) if checks => {
                            self.restore(&before);
                            rest(self, false).map_err(|first| if first.code == Code::E0901 { last } else { first })
                        }
                        result => result,
                    };
                }
                // More is known about what changes; once more from the start.
                Ok(false) => self.restore(&before),
                Err(_) => break,
            }
        }
        self.restore(&before);
        rest(self, false)
    }

    pub(super) fn before(&mut self) -> Before {
        Before {
            marks: self.levels.iter().map(super::graph::Level::mark).collect(),
            guards: self.guards.len(),
            frame: self.frame().clone(),
            globals: self.globals.clone(),
            steps: self.steps,
            warnings: self.warnings.len(),
            checks: self.level().checks.len(),
        }
    }

    pub(super) fn restore(&mut self, before: &Before) {
        self.levels.truncate(before.marks.len());
        for (level, mark) in self.levels.iter_mut().zip(&before.marks) {
            level.reset(mark);
        }
        self.guards.truncate(before.guards);
        *self.frame() = before.frame.clone();
        self.globals = before.globals.clone();
        self.steps = before.steps;
        self.warnings.truncate(before.warnings);
    }

    /// One attempt. `false`: `changed` was not yet right.
    fn roll_once(&mut self, var: LocalId, turns: &Turns, body: &[TStmt], changed: &mut Changed, span: Span) -> R<bool> {
        let variables = carried_variables(var, body);
        let mut values = vec![];
        for &v in &variables {
            let value = match v {
                Var::Local(l) => self.frame().get(&l).cloned(),
                Var::Global(g) => self.globals.get(&g).cloned(),
            };
            values.push(value.ok_or_else(|| self.error(Code::E0107, span, "a variable has no value"))?);
        }
        let all = Value::record(values);
        changed.grow(self.leaves_of(&all, span)?.iter().map(|l| matches!(l, Leaf::Tensor(_))));
        // What this attempt takes to change; the body corrects `changed` for the next.
        let taken = changed.leaves.clone();
        let init = self.chosen(&all, &taken);
        let (frame, globals) = (self.frame().clone(), self.globals.clone());
        let sequence = self.sequence(turns, span);
        let mut stable = true;
        let positions = match *turns {
            Turns::Range { start, step, .. } => Some((start, step)),
            Turns::Rows { .. } => None,
        };
        let over = Over { sequences: &[sequence], positions, trips: turns.count() - 1, until: false };
        self.rolling += 1;
        let looped = self.looped(init, over, span, &mut |t, inputs, carry| {
            let inside = t.merged(&all, &taken, &carry);
            t.set_all(&variables, &inside);
            let element = t.tensor(inputs[0]);
            let element = match turns {
                Turns::Range { .. } => Value::Scalar(Scalar::Node(Kind::Int, element)),
                Turns::Rows { .. } => Value::Tensor(element),
            };
            t.frame().insert(var, element);
            match t.exec(body)? {
                Flow::Next | Flow::Continue => {}
                _ => return Err(t.error(Code::E0690, span, "a loop that is left early")),
            }
            let after = t.get_all(&variables, span)?;
            stable = t.compare_leaves(&inside, &after, changed, span)?;
            Ok((t.chosen(&after, &taken), Value::record(vec![])))
        });
        self.rolling -= 1;
        let looped = looped?;
        if !stable {
            return Ok(false);
        }
        *self.frame() = frame;
        self.globals = globals;
        let merged = self.merged(&all, &taken, &looped.carry);
        self.set_all(&variables, &merged);
        Ok(true)
    }

    /// The positions or rows of all turns but the last.
    fn sequence(&mut self, turns: &Turns, span: Span) -> NodeId {
        let count = turns.count() - 1;
        match *turns {
            Turns::Range { start, step, .. } => {
                let last = start.saturating_add((count as i64).saturating_sub(1).saturating_mul(step));
                let mut b = self.adder("range", span);
                let number = expand::iota(&mut b, &[count], 0);
                let constant =
                    |b: &mut super::graph::Adder, n| expand::full(b, &[count], DType::I64, prim::Scalar::I(n));
                let (by, from) = (constant(&mut b, step), constant(&mut b, start));
                let scaled = expand::map(&mut b, MapOp::mul, &[number, by]);
                let id = NodeId(expand::map(&mut b, MapOp::add, &[scaled, from]).0);
                self.level().set_range(id, Range::Int(start.min(last), start.max(last)));
                id
            }
            Turns::Rows { of, .. } => {
                let id = self.id(of);
                let mut b = self.adder("rows", span);
                NodeId(expand::slice(&mut b, id, 0, 0, count).0)
            }
        }
    }

    pub(super) fn set_all(&mut self, variables: &[Var], values: &Value) {
        let Value::Record(values) = values else { return };
        for (v, value) in variables.iter().zip(values.iter()) {
            match v {
                Var::Local(l) => self.frame().insert(*l, value.clone()),
                Var::Global(g) => self.globals.insert(*g, value.clone()),
            };
        }
    }

    pub(super) fn get_all(&mut self, variables: &[Var], span: Span) -> R<Value> {
        let mut out = vec![];
        for v in variables {
            let value = match v {
                Var::Local(l) => self.frame().get(l).cloned(),
                Var::Global(g) => self.globals.get(g).cloned(),
            };
            out.push(value.ok_or_else(|| self.error(Code::E0107, span, "a variable has no value"))?);
        }
        Ok(Value::record(out))
    }

    /// The leaves that change, as one record.
    fn chosen(&mut self, all: &Value, changed: &[bool]) -> Value {
        let mut kept = vec![];
        let mut flags = changed.iter();
        self.rebuilt(all, &mut |_, leaf| {
            let value = match leaf {
                Leaf::Tensor(t) => Value::Tensor(t),
                Leaf::Scalar(s) => Value::Scalar(s),
            };
            if flags.next() == Some(&true) {
                kept.push(value.clone());
            }
            value
        });
        Value::record(kept)
    }

    /// The whole with the leaves that change replaced.
    fn merged(&mut self, all: &Value, changed: &[bool], carry: &Value) -> Value {
        let carry = match carry {
            Value::Record(items) => items.to_vec(),
            _ => vec![],
        };
        let (mut flags, mut carry) = (changed.iter(), carry.into_iter());
        self.rebuilt(all, &mut |_, leaf| {
            let old = match leaf {
                Leaf::Tensor(t) => Value::Tensor(t),
                Leaf::Scalar(s) => Value::Scalar(s),
            };
            if flags.next() == Some(&true) { carry.next().unwrap_or(old) } else { old }
        })
    }

    /// Whether the leaves that were thought to change did, and no others; corrects `changed`.
    fn compare_leaves(&mut self, inside: &Value, after: &Value, changed: &mut Changed, span: Span) -> R<bool> {
        if !same_structure(inside, after) {
            return Err(self.error(Code::E0690, span, "a loop that changes the structure of a value"));
        }
        let (old, new) = (self.leaves_of(inside, span)?, self.leaves_of(after, span)?);
        let mut stable = true;
        for (i, (a, b)) in old.iter().zip(&new).enumerate() {
            let differs = !same_leaf(a, b);
            if differs && !changed.leaves[i] {
                changed.leaves[i] = true;
                changed.settled[i] = true;
                stable = false;
            } else if !differs && changed.leaves[i] && !changed.settled[i] {
                changed.leaves[i] = false;
                changed.settled[i] = true;
                stable = false;
            }
        }
        Ok(stable)
    }
}

/// Which leaves of the carried variables a turn changes. Tensors are taken to change until a
/// turn shows otherwise, scalars not to change.
#[derive(Default)]
struct Changed {
    leaves: Vec<bool>,
    /// Corrected once already.
    settled: Vec<bool>,
}

impl Changed {
    fn grow(&mut self, first: impl Iterator<Item = bool>) {
        if self.leaves.is_empty() {
            self.leaves = first.collect();
            self.settled = vec![false; self.leaves.len()];
        }
    }
}

fn same_leaf(a: &Leaf, b: &Leaf) -> bool {
    match (a, b) {
        (Leaf::Tensor(a), Leaf::Tensor(b)) => a == b,
        (Leaf::Scalar(Scalar::Node(_, a)), Leaf::Scalar(Scalar::Node(_, b))) => a == b,
        (Leaf::Scalar(Scalar::Known(a)), Leaf::Scalar(Scalar::Known(b))) => a.same(*b),
        (Leaf::Scalar(Scalar::Late(a, _)), Leaf::Scalar(Scalar::Late(b, _))) => a == b,
        _ => false,
    }
}

/// The same containers with the same text; leaves may differ.
pub(super) fn same_structure(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Tensor(_), Value::Tensor(_)) => true,
        (Value::Scalar(a), Value::Scalar(b)) => a.kind() == b.kind(),
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::None, Value::None) => true,
        (Value::DType(a), Value::DType(b)) => a == b,
        (Value::Record(a), Value::Record(b)) | (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same_structure(a, b))
        }
        (Value::Dict(a), Value::Dict(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|((j, a), (k, b))| j == k && same_structure(a, b))
        }
        _ => false,
    }
}
