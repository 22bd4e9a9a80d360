//! The state of a run, and calls.

use crate::value::{Closures, Value};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::{FnInst, GlobalId, InstId, LocalId, Program};
use tessera_ir::graph::Policy;
use tessera_ops::prim::Order;
use tessera_runtime::context::{Context, Stop, interrupted};
use tessera_runtime::fault::Fault;
use tessera_runtime::ffi::Functions;
use tessera_trace::scalar::diagnostic;

/// How a program ended before its last statement.
#[derive(Debug)]
pub enum End {
    Failed(Vec<Diagnostic>),
    Exit(i32),
}

pub type R<T> = Result<T, Box<End>>;

/// Where control goes after a statement.
pub enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
}

/// Calls inside calls; each takes some frames of the stack that a run has.
const DEPTH_MAX: usize = 20_000;
/// Bytes of stack of a run; memory is taken only as it is used.
const STACK_BYTES: usize = 8 << 30;
/// Calls that an error names.
const CALLS_TOLD: usize = 6;

/// Runs a program to its end; `order` is that of products of bf16, which depends on the machine; `context` gives the state of the run: where it prints to, its arguments, and
/// `started` gets the flag that interrupts it.
///
/// # Errors
/// What stopped it. E0690 by name for what the interpreter does not know: code of single devices.
pub fn run(
    program: &Program,
    policy: Policy,
    order: Order,
    context: &(dyn Fn() -> Box<Context> + Sync),
    started: &(dyn Fn(Arc<AtomicBool>) + Sync),
) -> Result<(), Box<End>> {
    tessera_base::stack::deep(STACK_BYTES, || {
        let context = context();
        started(context.interrupt_flag());
        let mut machine = Machine::new(program, policy, order, context);
        let result = match program.entry {
            Some(entry) => machine.call(entry, vec![], vec![], Span::NONE).map(|_| ()),
            None => Ok(()),
        };
        machine.context.flush();
        // A reader that went away ends the program as it ends a compiled one.
        match (result, machine.context.take_stop()) {
            (Ok(()), Some(stop)) => Err(machine.ended(stop, Span::NONE)),
            (result, _) => result,
        }
    })
}

pub struct Frame<'p> {
    pub of: &'p FnInst,
    pub locals: Vec<Option<Value>>,
}

pub struct Machine<'p> {
    pub program: &'p Program,
    pub context: Box<Context>,
    pub functions: Functions,
    /// Function values among the arguments of the call of a runtime function that is being made.
    pub closures: Closures,
    pub globals: Vec<Option<Value>>,
    pub frames: Vec<Frame<'p>>,
    pub policy: Policy,
    /// Of products of bf16.
    pub order: Order,
}

impl<'p> Machine<'p> {
    fn new(program: &'p Program, policy: Policy, order: Order, context: Box<Context>) -> Machine<'p> {
        Machine {
            program,
            context,
            functions: Functions::default(),
            closures: vec![],
            globals: vec![None; program.globals.len()],
            frames: vec![],
            policy,
            order,
        }
    }

    pub fn error<T>(&self, code: Code, span: Span, message: impl Into<String>) -> R<T> {
        Err(Box::new(End::Failed(vec![Diagnostic::new(code, span, message)])))
    }

    pub fn fault(&self, fault: Fault, span: Span) -> Box<End> {
        Box::new(End::Failed(vec![*diagnostic(fault, span)]))
    }

    /// A form that has a value of a kind that the checker does not let through.
    pub fn broken<T>(&self, span: Span, wanted: &str) -> R<T> {
        self.error(Code::E0999, span, format!("{wanted} is needed here"))
    }

    /// What the interpreter does not know.
    pub fn unknown<T>(&self, span: Span, what: &str) -> R<T> {
        let d = Diagnostic::new(Code::E0690, span, format!("the interpreter does not know {what} yet"));
        Err(Box::new(End::Failed(vec![d.help("run the program without `--interpret`")])))
    }

    /// What ended a function of the runtime.
    pub fn ended(&self, stop: Stop, span: Span) -> Box<End> {
        match stop {
            Stop::Exit(code) => Box::new(End::Exit(code)),
            Stop::Error(e) => self.fault(Fault { code: e.code, message: e.message, notes: e.notes, span: None }, span),
        }
    }

    pub fn frame(&mut self) -> &mut Frame<'p> {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    pub fn local(&self, l: LocalId, span: Span) -> R<Value> {
        let frame = &self.frames[self.frames.len() - 1];
        match frame.locals.get(l.0 as usize) {
            Some(Some(value)) => Ok(value.clone()),
            _ => {
                let name = frame.of.locals.get(l.0 as usize).map_or("?", |v| &v.name);
                self.unset(name, span)
            }
        }
    }

    pub fn set_local(&mut self, l: LocalId, value: Value) {
        let locals = &mut self.frame().locals;
        let at = l.0 as usize;
        if locals.len() <= at {
            locals.resize(at + 1, None);
        }
        locals[at] = Some(value);
    }

    pub fn global(&self, g: GlobalId, span: Span) -> R<Value> {
        match self.globals.get(g.0 as usize) {
            Some(Some(value)) => Ok(value.clone()),
            _ => self.unset(self.program.globals.get(g.0 as usize).map_or("?", |v| &v.name), span),
        }
    }

    pub fn set_global(&mut self, g: GlobalId, value: Value) {
        if let Some(slot) = self.globals.get_mut(g.0 as usize) {
            *slot = Some(value);
        }
    }

    fn unset<T>(&self, name: &str, span: Span) -> R<T> {
        self.error(Code::E0107, span, format!("`{name}` is used before it has a value"))
    }

    /// Fails where the user wants the program to stop.
    pub fn go_on(&self, span: Span) -> R<()> {
        if self.context.is_interrupted() { Err(self.fault(interrupted(), span)) } else { Ok(()) }
    }

    /// A call at a place: captured values, then arguments.
    pub fn call(&mut self, inst: InstId, captures: Vec<Value>, args: Vec<Value>, span: Span) -> R<Value> {
        let Some(f) = self.program.insts.get(inst.0 as usize) else {
            return self.broken(span, "a function that exists");
        };
        if self.frames.len() >= DEPTH_MAX {
            let fault = Fault::new(709, "the calls are nested too deeply");
            return Err(self.fault(fault.note("a recursion that does not end is the usual reason"), span));
        }
        self.go_on(span)?;
        if f.kernel || f.program.is_some() {
            return self.kernel(inst, captures, args, span);
        }
        let mut frame = Frame { of: f, locals: vec![None; f.locals.len()] };
        for (l, value) in f.captures.iter().chain(&f.params).zip(captures.into_iter().chain(args)) {
            frame.locals[l.0 as usize] = Some(value);
        }
        self.frames.push(frame);
        let outer = std::mem::replace(&mut self.policy, f.policy);
        let result = self.body(f);
        self.policy = outer;
        self.frames.pop();
        result.map_err(|end| called_from(end, span))
    }

    fn body(&mut self, f: &'p FnInst) -> R<Value> {
        for bind in &f.size_binds {
            let value = self.expr(&bind.from)?;
            self.set_local(bind.local, value);
        }
        match self.exec(&f.body)? {
            Flow::Return(value) => Ok(value),
            _ => Ok(Value::None),
        }
    }
}

/// Adds the place of a call to an error; of many only the innermost ones.
fn called_from(mut end: Box<End>, span: Span) -> Box<End> {
    if let End::Failed(diagnostics) = &mut *end
        && let Some(first) = diagnostics.first_mut()
        && !span.is_none()
        && first.span != span
        && first.labels.len() < CALLS_TOLD
        && first.labels.iter().all(|l| l.span != span)
    {
        *first = std::mem::replace(first, Diagnostic::new(Code::E0999, span, "")).with_label(span, "called here");
    }
    end
}
