//! The examples of a Markdown file, as inputs of one session.

use super::cases::{Case, What};
use super::run::{Failure, differs};
use crate::program::Setup;
use crate::repl::output::Buffer;
use crate::repl::state::{Outcome, State};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A Markdown file whose examples run.
pub struct Document<'a> {
    path: &'a str,
    state: State<'a>,
    /// What a session shows, and the same with values without their types, as programs print them.
    shown: [Buffer; 2],
}

impl<'a> Document<'a> {
    pub fn new(path: &'a str, setup: &'a Setup, watch: &dyn Fn(Arc<AtomicBool>)) -> Document<'a> {
        let shown = [Buffer::default(), Buffer::default()];
        let mut state = State::held(setup, shown.clone());
        watch(state.interrupt_flag());
        Document { path, state, shown }
    }

    /// Runs a block. The first statement that is wrong ends it; what ran counts for the blocks after it.
    pub fn run(&mut self, case: &Case) -> Result<(), Failure> {
        let What::Example(statements) = &case.what else { return Ok(()) };
        for statement in statements {
            let outcome = self.state.take_from(self.path, statement.line, &statement.text());
            let [session, program] = [self.shown[0].take(), self.shown[1].take()];
            match outcome {
                Outcome::Done => {}
                Outcome::Failed => return Err(Failure::new(statement.line, "it failed")),
                Outcome::Exit(code) => {
                    return Err(Failure::new(statement.line, format!("ended with exit code {code}")));
                }
            }
            if let Some(outputs) = differs(statement, &[&session, &program]) {
                return Err(Failure { line: statement.line, why: String::new(), outputs: Some(outputs) });
            }
        }
        Ok(())
    }
}
