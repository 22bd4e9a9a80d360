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
use tessera_core::walk::{Var, each_expr};
use tessera_ir::graph::{NodeId, Policy};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{self, Prim};
use tessera_ops::surface::{Build, Id, expand};

/// The statements behind one, up to an end where control goes nowhere else.
pub enum Rest<'a> {
    /// The end of a function.
    Function,
    /// The end of a turn of a loop, and the variables that another one reads, where that is known.
    Turn(Option<&'a Live>),
    After(&'a [TStmt], &'a Rest<'a>),
    /// Behind a `with`, where policy and directives are those around it.
    Around(Policy, Option<u32>, &'a Rest<'a>),
}

impl Rest<'_> {
    fn is_of_function(&self) -> bool {
        match self {
            Rest::Function => true,
            Rest::Turn(_) => false,
            Rest::After(_, outer) | Rest::Around(.., outer) => outer.is_of_function(),
        }
    }

    /// The variables that are read there; unknown where nobody says what a further turn reads.
    fn live(&self) -> Option<Live> {
        match self {
            Rest::Function => Some(Live::new()),
            Rest::Turn(live) => live.cloned(),
            Rest::Around(.., outer) => outer.live(),
            Rest::After(stmts, outer) => before_each(stmts, &outer.live()?, &outer.targets()?).into_iter().next(),
        }
    }

    /// What is read where `break` and `continue` lead.
    fn targets(&self) -> Option<Targets> {
        match self {
            Rest::Function => Some(Targets::default()),
            Rest::Turn(live) => live.map(|live| Targets { at_break: live.clone(), at_continue: live.clone() }),
            Rest::After(_, outer) | Rest::Around(.., outer) => outer.targets(),
        }
    }

    /// The lists of statements, in their order.
    fn lists(&self) -> Vec<&[TStmt]> {
        match self {
            Rest::Function | Rest::Turn(_) => vec![],
            Rest::Around(.., outer) => outer.lists(),
            Rest::After(stmts, outer) => std::iter::once(*stmts).chain(outer.lists()).collect(),
        }
    }

    fn sets(&self) -> Live {
        match self {
            Rest::Function | Rest::Turn(_) => Live::new(),
            Rest::Around(.., outer) => outer.sets(),
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

/// The variables that are set on every way through lists of statements, one behind the other, to where it ends or leaves a turn.
fn surely_set(lists: &[&[TStmt]]) -> Live {
    let (mut here, mut left) = (Some(Live::new()), None);
    for list in lists {
        set_on_ways(list, &mut here, &mut left);
    }
    meet(here, left).unwrap_or_default()
}

/// Goes on from `here`, what is set so far on the ways that get here; what is set on ways that leave is added to `left`.
fn set_on_ways(stmts: &[TStmt], here: &mut Option<Live>, left: &mut Option<Live>) {
    for s in stmts {
        let Some(set) = here else { return };
        match s {
            TStmt::Set(l, _) => drop(set.insert(Var::Local(*l))),
            TStmt::SetGlobal(g, _) => drop(set.insert(Var::Global(*g))),
            TStmt::If { then, otherwise, .. } => {
                let mut other = here.clone();
                set_on_ways(then, here, left);
                set_on_ways(otherwise, &mut other, left);
                *here = meet(here.take(), other);
            }
            TStmt::WithPolicy { body, .. } | TStmt::WithHints { body, .. } => set_on_ways(body, here, left),
            TStmt::Break | TStmt::Continue => *left = meet(left.take(), here.take()),
            TStmt::Return(_) => *here = None,
            _ => {}
        }
    }
}

/// What two ways have in common, of those that there are.
fn meet(a: Option<Live>, b: Option<Live>) -> Option<Live> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.intersection(&b).copied().collect()),
        (a, b) => a.or(b),
    }
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
    /// The value of a condition that is computed, where tensor code branches on it. A loop that goes by its position is not kept a
    /// loop for that: written out, each turn knows it.
    pub(super) fn by_tensors(&self, truth: &Scalar, test: &TExpr) -> Option<Tensor> {
        let Scalar::Node(_, value) = truth else { return None };
        let mut of_tensors = false;
        each_expr(test, &mut |e| of_tensors |= e.ty.is_tensor());
        (of_tensors || self.rolling == 0).then_some(*value)
    }

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
        // What has no value here is kept if both sides give it one on all of their ways.
        let certain = sides.map(|side| {
            let lists: Vec<&[TStmt]> = std::iter::once(side).chain(rest.lists()).collect();
            surely_set(&lists)
        });
        let set: Live = sides.iter().flat_map(|s| set_in(s)).chain(rest.sets()).collect();
        let kept = |v: &Var| self.has(*v) || certain.iter().all(|c| c.contains(v));
        let variables: Vec<Var> = set.into_iter().filter(kept).collect();
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
        mut truth: Scalar,
        (whole, test, body): (&TStmt, &TExpr, &[TStmt]),
        rest: Option<&Rest>,
        span: Span,
    ) -> R<Flow> {
        // A variable that gets its first value in the loop has one behind it if there is a turn for sure: that is written out.
        let is_sure = matches!(&truth, Scalar::Known(known) if known.truth());
        if is_sure && self.gives_first(body, rest) {
            let goes_on = self.turn_on_data(body, None, span)?;
            truth = self.tested(goes_on, test, span)?;
        }
        let variables = self.kept(whole, body, rest);
        let init = self.get_all(&variables, span)?;
        let goes_on = self.one_bool(&Value::Scalar(truth), span)?;
        let (frame, globals) = (self.frame().clone(), self.globals.clone());
        let read: Live = variables.iter().copied().collect();
        let carry = self.looped_until(goes_on, init, UNBOUNDED, span, &mut |t, _, state| {
            (*t.frame(), t.globals) = (frame.clone(), globals.clone());
            t.set_all(&variables, &state);
            let goes_on = t.turn_on_data(body, Some(&read), span)?;
            let goes_on = t.tested(goes_on, test, span)?;
            Ok((t.one_bool(&Value::Scalar(goes_on), span)?, t.get_all(&variables, span)?))
        })?;
        (*self.frame(), self.globals) = (frame, globals);
        let state = self.carried(carry, span)?;
        self.set_all(&variables, &state);
        Ok(Flow::Next)
    }

    /// The condition of a loop, which is not looked at where the loop was left.
    fn tested(&mut self, goes_on: Scalar, test: &TExpr, span: Span) -> R<Scalar> {
        match goes_on {
            Scalar::Node(_, left) => match self.logic_on_data(left, true, test, span)? {
                Value::Scalar(more) => Ok(more),
                other => Err(self.broken(span, "a condition", &other)),
            },
            known if self.known_bool(&known, span)? => self.truth(test),
            known => Ok(known),
        }
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
        // As in `while_on_data`.
        let (mut goes_on, mut before) = (Scalar::Known(Known::Bool(true)), 0);
        if self.gives_first(body, rest) {
            let zero = expand::full(&mut self.adder("range", span), &[], DType::I64, prim::Scalar::I(0));
            let turn = NodeId(zero.0);
            let element = self.item_of(turns, turn, span);
            self.frame().insert(var, element);
            (goes_on, before) = (self.turn_on_data(body, None, span)?, 1);
        }
        let mut variables = self.kept(whole, body, rest);
        variables.retain(|v| *v != Var::Local(var));
        let init = self.get_all(&variables, span)?;
        let goes_on = self.one_bool(&Value::Scalar(goes_on), span)?;
        let (frame, globals) = (self.frame().clone(), self.globals.clone());
        let read: Live = variables.iter().copied().collect();
        let carry = self.looped_until(goes_on, init, count - before, span, &mut |t, turn, state| {
            (*t.frame(), t.globals) = (frame.clone(), globals.clone());
            t.set_all(&variables, &state);
            t.level().set_range(turn, Range::Int(0, (count - before) as i64 - 1));
            let turn = match before {
                0 => turn,
                _ => NodeId(expand::binary_const(&mut t.adder("range", span), MapOp::add, Id(turn.0), before as f64).0),
            };
            let element = t.item_of(turns, turn, span);
            t.frame().insert(var, element);
            let goes_on = t.turn_on_data(body, Some(&read), span)?;
            Ok((t.one_bool(&Value::Scalar(goes_on), span)?, t.get_all(&variables, span)?))
        })?;
        (*self.frame(), self.globals) = (frame, globals);
        let state = self.carried(carry, span)?;
        self.set_all(&variables, &state);
        Ok(Flow::Next)
    }

    /// Whether a loop gives variables their first value that are read behind it, or may be.
    fn gives_first(&self, body: &[TStmt], rest: Option<&Rest>) -> bool {
        let live = rest.and_then(Rest::live);
        set_in(body).into_iter().any(|v| !self.has(v) && live.as_ref().is_none_or(|live| live.contains(&v)))
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
        let (policy, kernel) = (self.policy, self.kernel);
        // What one side tells of sizes is not of the other.
        self.assert_loop();
        let value = self.joined(test, span, &mut |t, at| {
            (*t.frame(), t.globals) = (frame.clone(), globals.clone());
            (t.policy, t.kernel) = (policy, kernel);
            t.assert_turn();
            side(t, at)
        });
        (self.policy, self.kernel) = (policy, kernel);
        self.assert_loop_end();
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
            Rest::Turn(_) => Ok(Flow::Continue),
            Rest::After(stmts, outer) => self.all_of(stmts, outer),
            Rest::Around(policy, kernel, outer) => {
                (self.policy, self.kernel) = (*policy, *kernel);
                self.behind(outer)
            }
        }
    }

    /// A turn of a loop that ends by itself: whether it goes on.
    fn turn_on_data(&mut self, body: &[TStmt], read: Option<&Live>, span: Span) -> R<Scalar> {
        self.budget(span)?;
        self.assert_turn();
        let flow = self.exec_in(body, Some(&Rest::Turn(read)))?;
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
