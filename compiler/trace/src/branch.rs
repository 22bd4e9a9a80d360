//! `if`, `while`, `break` and `and` that elements of tensors decide.
//!
//! Host code that branches on tensors waits for them. Where it has to be tensor code, since a derivative or a batch of it is taken,
//! a choice computes one of its sides, and a loop becomes one that ends by itself. What a side sets comes out of the choice, if
//! both sides give it in one form. Where a side returns, or leaves the turn of a loop, what stands behind the choice belongs to the
//! other side.

use super::control::UNBOUNDED;
use super::ranges::Range;
use super::roll::Turns;
use super::scalar::{Kind, Known};
use super::stmt::Flow;
use super::turns::set_in;
use super::value::{Scalar, Tensor, Value};
use super::{R, Tracer};
use tessera_base::{Code, DType, Span};
use tessera_core::ir::*;
use tessera_core::live::{Live, Targets, before_each};
use tessera_core::walk::Var;
use tessera_ir::graph::NodeId;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{self, Prim};
use tessera_ops::surface::{Build, Id, expand};

/// The statements behind one, up to an end where control goes nowhere else.
pub enum Rest<'a> {
    /// The end of a function.
    Function,
    /// The end of a turn of a loop.
    Turn,
    After(&'a [TStmt], &'a Rest<'a>),
}

impl Rest<'_> {
    fn is_of_function(&self) -> bool {
        match self {
            Rest::Function => true,
            Rest::Turn => false,
            Rest::After(_, outer) => outer.is_of_function(),
        }
    }

    /// The variables that are read there; unknown where a further turn may read them.
    fn live(&self) -> Option<Live> {
        match self {
            Rest::Function => Some(Live::new()),
            Rest::Turn => None,
            Rest::After(stmts, outer) => before_each(stmts, &outer.live()?, &Targets::default()).into_iter().next(),
        }
    }

    fn sets(&self) -> Live {
        match self {
            Rest::Function | Rest::Turn => Live::new(),
            Rest::After(stmts, outer) => set_in(stmts).into_iter().chain(outer.sets()).collect(),
        }
    }
}

/// Whether control may go elsewhere than behind the statements.
fn leaves(stmts: &[TStmt]) -> bool {
    stmts.iter().any(|s| match s {
        TStmt::Return(_) | TStmt::Break | TStmt::Continue => true,
        TStmt::If { then, otherwise, .. } => leaves(then) || leaves(otherwise),
        TStmt::WithPolicy { body, .. } | TStmt::WithHints { body, .. } => leaves(body),
        TStmt::While { body, .. } | TStmt::ForRange { body, .. } | TStmt::ForEach { body, .. } => returns(body),
        _ => false,
    })
}

fn returns(stmts: &[TStmt]) -> bool {
    stmts.iter().any(|s| match s {
        TStmt::Return(_) => true,
        TStmt::If { then, otherwise, .. } => returns(then) || returns(otherwise),
        TStmt::WithPolicy { body, .. } | TStmt::WithHints { body, .. } => returns(body),
        TStmt::While { body, .. } | TStmt::ForRange { body, .. } | TStmt::ForEach { body, .. } => returns(body),
        _ => false,
    })
}

impl Tracer<'_> {
    /// `if` whose condition is computed.
    pub(super) fn branch(&mut self, test: Tensor, sides: [&[TStmt]; 2], rest: Option<&Rest>, span: Span) -> R<Flow> {
        let test = Id(self.node(test).0);
        if !sides.iter().any(|s| leaves(s)) {
            let [a, b] = sides.map(set_in);
            let live = rest.and_then(Rest::live);
            let wanted = |v: &&Var| {
                (self.has(**v) || a.contains(v) && b.contains(v)) && live.as_ref().is_none_or(|live| live.contains(v))
            };
            let variables: Vec<Var> = a.union(&b).filter(wanted).copied().collect();
            let values = self.sides(test, span, &mut |t, at| {
                t.exec_in(sides[at], None)?;
                t.get_all(&variables, span)
            })?;
            self.set_all(&variables, &values);
            return Ok(Flow::Next);
        }
        let Some(rest) = rest else {
            self.left_on_data = true;
            let message = "elements of a tensor decide whether a loop over a list, a text or a dict goes on";
            let d = self.error(Code::E0301, span, message);
            return Err(Box::new(d.help("go over the rows of a tensor, or over a `range`")));
        };
        if rest.is_of_function() {
            let value = self.sides(test, span, &mut |t, at| match t.all_of(sides[at], rest)? {
                Flow::Return(value) => Ok(value),
                _ => Ok(Value::None),
            })?;
            return Ok(Flow::Return(value));
        }
        let mut set: Live = sides.iter().flat_map(|s| set_in(s)).chain(rest.sets()).collect();
        set.retain(|v| self.has(*v));
        let variables: Vec<Var> = set.into_iter().collect();
        let all = self.sides(test, span, &mut |t, at| {
            let flow = t.all_of(sides[at], rest)?;
            let goes_on = t.goes_on(flow, span)?;
            Ok(Value::record(vec![Value::Scalar(goes_on), t.get_all(&variables, span)?]))
        })?;
        let (goes_on, values) = self.number_and(&all, span)?;
        self.set_all(&variables, &values);
        Ok(Flow::Ended(goes_on))
    }

    /// `while` whose condition is computed, or that is left where elements of tensors say so.
    pub(super) fn while_on_data(
        &mut self,
        truth: Scalar,
        (whole, test, body): (&TStmt, &TExpr, &[TStmt]),
        rest: Option<&Rest>,
        span: Span,
    ) -> R<Flow> {
        let variables = self.kept(whole, body, rest);
        let init = self.get_all(&variables, span)?;
        let goes_on = self.one_bool(&Value::Scalar(truth), span)?;
        let (frame, globals) = (self.frame().clone(), self.globals.clone());
        let carry = self.looped_until(goes_on, init, UNBOUNDED, span, &mut |t, state| {
            (*t.frame(), t.globals) = (frame.clone(), globals.clone());
            t.set_all(&variables, &state);
            // The condition is not looked at where the loop was left.
            let goes_on = match t.turn_on_data(body, span)? {
                Scalar::Node(_, left) => t.logic_on_data(left, true, test, span)?,
                known if t.known_bool(&known, span)? => Value::Scalar(t.truth(test)?),
                known => Value::Scalar(known),
            };
            Ok((t.one_bool(&goes_on, span)?, t.get_all(&variables, span)?))
        })?;
        (*self.frame(), self.globals) = (frame, globals);
        let state = self.carried(carry, span)?;
        self.set_all(&variables, &state);
        Ok(Flow::Next)
    }

    /// `for` that is left where elements of tensors say so.
    pub(super) fn for_on_data(
        &mut self,
        (whole, var, body): (&TStmt, LocalId, &[TStmt]),
        turns: &Turns,
        rest: Option<&Rest>,
        span: Span,
    ) -> R<Flow> {
        let count = turns.count();
        if count == 0 {
            return Ok(Flow::Next);
        }
        let mut variables = self.kept(whole, body, rest);
        variables.retain(|v| *v != Var::Local(var));
        let init = self.get_all(&variables, span)?;
        let init = Value::record(vec![Value::int(0), init]);
        let goes_on = self.one_bool(&Value::bool(true), span)?;
        let (frame, globals) = (self.frame().clone(), self.globals.clone());
        let carry = self.looped_until(goes_on, init, count, span, &mut |t, state| {
            (*t.frame(), t.globals) = (frame.clone(), globals.clone());
            let (turn, values) = t.number_and(&state, span)?;
            t.set_all(&variables, &values);
            let turn = t.leaf_of(&Value::Scalar(turn), span)?;
            t.level().set_range(turn, Range::Int(0, count as i64 - 1));
            let element = t.item_of(turns, turn, span);
            t.frame().insert(var, element);
            let goes_on = t.turn_on_data(body, span)?;
            let goes_on = t.one_bool(&Value::Scalar(goes_on), span)?;
            // It stays that of the last turn.
            let mut b = t.adder("range", span);
            let next = expand::binary_const(&mut b, MapOp::add, Id(turn.0), 1.0);
            let next = expand::select(&mut b, goes_on, next, Id(turn.0));
            let next = Value::Scalar(Scalar::Node(Kind::Int, t.tensor_id(next)));
            Ok((goes_on, Value::record(vec![next, t.get_all(&variables, span)?])))
        })?;
        (*self.frame(), self.globals) = (frame, globals);
        let state = self.carried(carry, span)?;
        let (turn, values) = self.number_and(&state, span)?;
        self.set_all(&variables, &values);
        // Behind the last turn it counts one too far, unless the loop was left.
        let turn = Id(self.leaf_of(&Value::Scalar(turn), span)?.0);
        let mut b = self.adder("range", span);
        let last = expand::full(&mut b, &[], DType::I64, prim::Scalar::I(count as i64 - 1));
        let turn = NodeId(expand::map(&mut b, MapOp::minimum, &[turn, last]).0);
        let element = self.item_of(turns, turn, span);
        self.frame().insert(var, element);
        Ok(Flow::Next)
    }

    /// What a loop takes in a turn.
    fn item_of(&mut self, turns: &Turns, turn: NodeId, span: Span) -> Value {
        let turn = Id(turn.0);
        match *turns {
            Turns::Range { start, step, count } => {
                let mut b = self.adder("range", span);
                let by = expand::full(&mut b, &[], DType::I64, prim::Scalar::I(step));
                let from = expand::full(&mut b, &[], DType::I64, prim::Scalar::I(start));
                let scaled = expand::map(&mut b, MapOp::mul, &[turn, by]);
                let at = NodeId(expand::map(&mut b, MapOp::add, &[scaled, from]).0);
                let last = turns.position(count - 1);
                self.level().set_range(at, Range::Int(start.min(last), start.max(last)));
                Value::Scalar(Scalar::Node(Kind::Int, self.tensor(at)))
            }
            Turns::Rows { of, .. } => {
                let of = self.id(of);
                let mut b = self.adder("rows", span);
                let (shape, dtype) = (b.shape(of)[1..].to_vec(), b.dtype(of));
                let row = b.push(Prim::Take { axis: 0 }, &[of, turn], shape, dtype);
                Value::Tensor(self.tensor_id(row))
            }
        }
    }

    /// `known`, a loop that is written out or stays one; or else `on_data`, where elements of tensors decide when it is left.
    pub(super) fn or_on_data(
        &mut self,
        known: impl FnOnce(&mut Self) -> R<Flow>,
        on_data: impl FnOnce(&mut Self) -> R<Flow>,
    ) -> R<Flow> {
        let before = self.before();
        let flow = known(self);
        if std::mem::take(&mut self.left_on_data) && flow.is_err() {
            self.restore(&before);
            return on_data(self);
        }
        flow
    }

    /// `a if test else b` whose condition is computed.
    pub(super) fn choice_on_data(&mut self, test: Tensor, sides: [&TExpr; 2], span: Span) -> R<Value> {
        let test = Id(self.node(test).0);
        self.sides(test, span, &mut |t, at| t.eval(sides[at]))
    }

    /// `a and b` and `a or b` whose first operand is computed.
    pub(super) fn logic_on_data(&mut self, left: Tensor, and: bool, right: &TExpr, span: Span) -> R<Value> {
        let left = Id(self.node(left).0);
        self.sides(left, span, &mut |t, at| match (at == 0) == and {
            true => Ok(Value::Scalar(t.truth(right)?)),
            false => Ok(Value::bool(!and)),
        })
    }

    /// The sides of a choice, the first (0) where the condition holds: each begins with the variables as they are.
    fn sides(&mut self, test: Id, span: Span, side: &mut dyn FnMut(&mut Self, usize) -> R<Value>) -> R<Value> {
        let (frame, globals) = (self.frame().clone(), self.globals.clone());
        let value = self.joined(test, span, &mut |t, at| {
            (*t.frame(), t.globals) = (frame.clone(), globals.clone());
            side(t, at)
        });
        (*self.frame(), self.globals) = (frame, globals);
        value
    }

    /// Statements, and those behind them.
    fn all_of(&mut self, stmts: &[TStmt], rest: &Rest) -> R<Flow> {
        match self.exec_in(stmts, Some(rest))? {
            Flow::Next => self.behind(rest),
            flow => Ok(flow),
        }
    }

    fn behind(&mut self, rest: &Rest) -> R<Flow> {
        match rest {
            Rest::Function => Ok(Flow::Return(Value::None)),
            Rest::Turn => Ok(Flow::Continue),
            Rest::After(stmts, outer) => self.all_of(stmts, outer),
        }
    }

    /// A turn of a loop that ends by itself: whether it goes on.
    fn turn_on_data(&mut self, body: &[TStmt], span: Span) -> R<Scalar> {
        self.budget(span)?;
        let flow = self.exec_in(body, Some(&Rest::Turn))?;
        self.goes_on(flow, span)
    }

    /// Whether a loop goes on behind a turn.
    fn goes_on(&self, flow: Flow, span: Span) -> R<Scalar> {
        match flow {
            Flow::Next | Flow::Continue => Ok(Scalar::Known(Known::Bool(true))),
            Flow::Break => Ok(Scalar::Known(Known::Bool(false))),
            Flow::Ended(goes_on) => Ok(goes_on),
            Flow::Return(_) => {
                let d =
                    self.error(Code::E0301, span, "tensor code returns out of a loop that elements of a tensor end");
                Err(Box::new(d.help("leave the loop with `break`, and return behind it")))
            }
        }
    }

    fn number_and(&self, state: &Value, span: Span) -> R<(Scalar, Value)> {
        match state {
            Value::Record(parts) if let [Value::Scalar(at), values] = &parts[..] => Ok((at.clone(), values.clone())),
            other => Err(self.broken(span, "what a loop carries", other)),
        }
    }

    /// The variables that a loop sets and that are read in it or behind it, of those that have a value.
    fn kept(&mut self, whole: &TStmt, body: &[TStmt], rest: Option<&Rest>) -> Vec<Var> {
        let behind = rest.and_then(Rest::live);
        let read = behind.map(|behind| {
            before_each(std::slice::from_ref(whole), &behind, &Targets::default())
                .into_iter()
                .flatten()
                .collect::<Live>()
        });
        let set = set_in(body);
        set.into_iter().filter(|v| self.has(*v) && read.as_ref().is_none_or(|r| r.contains(v))).collect()
    }

    fn has(&self, v: Var) -> bool {
        match v {
            Var::Local(l) => self.frames.last().is_some_and(|f| f.contains_key(&l)),
            Var::Global(g) => self.globals.contains_key(&g),
        }
    }
}
