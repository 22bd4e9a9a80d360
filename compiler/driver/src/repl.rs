//! The interactive session: inputs are checked, compiled and run one after the other, and the
//! value of an expression is shown with its type in front.
//!
//! At a terminal lines are edited, coloured and completed; what comes through a pipe is read
//! without prompts.

pub mod input;
pub mod interrupts;
pub mod output;
pub mod value;
pub mod look;
mod saved;
pub mod state;
pub mod directive;
pub mod complete;
pub mod edit;

use crate::program::Setup;
use edit::Line;
use state::{Outcome, State};
use std::io::IsTerminal;
use tessera_grammar::needs_more;

/// Runs the session; returns the exit code: 0, that of `sys.exit`, or through a pipe 1 if an
/// input failed.
pub fn repl(setup: &Setup) -> u8 {
    if std::io::stdin().is_terminal() { terminal(setup) } else { piped(setup) }
}

fn piped(setup: &Setup) -> u8 {
    let mut state = State::new(setup, true);
    let mut inputs = input::Inputs::new(std::io::stdin().lock());
    loop {
        match inputs.next() {
            None => return state.code(),
            Some(Ok(text)) => {
                if let Outcome::Exit(code) = state.take(&text) {
                    return code;
                }
            }
            Some(Err(e)) => {
                eprintln!("error[E0706]: standard input cannot be read: {e}");
                return 1;
            }
        }
    }
}

fn terminal(setup: &Setup) -> u8 {
    let mut editor = match edit::Editor::new(setup) {
        Ok(e) => e,
        Err(e) => {
            eprintln!("error[E0706]: the terminal cannot be used: {e}");
            return 1;
        }
    };
    let mut state = State::new(setup, false);
    editor.know(&state);
    if !setup.global.quiet {
        println!("Tessera {}. `:help` lists the commands, Ctrl-D leaves.", env!("CARGO_PKG_VERSION"));
    }
    loop {
        let text = match whole_input(&mut editor) {
            Line::Text(text) => text,
            Line::Cleared => continue,
            Line::End => return 0,
        };
        editor.remember(&text);
        for input in input::without_prompts(&text) {
            match state.take(&input) {
                Outcome::Done => {}
                Outcome::Failed => break,
                Outcome::Exit(code) => return code,
            }
        }
        editor.know(&state);
    }
}

/// Lines until the input is complete.
fn whole_input(editor: &mut edit::Editor) -> Line {
    let mut text = match editor.line("") {
        Line::Text(text) => text,
        other => return other,
    };
    let unfinished = |text: &str| input::without_prompts(text).last().is_some_and(|t| needs_more(t));
    while !text.starts_with([':', '?']) && unfinished(&text) {
        match editor.line(&text) {
            Line::Text(more) => {
                text.push('\n');
                // What was indented for the user and left so is a blank line.
                text.push_str(if more.trim().is_empty() { "" } else { &more });
            }
            Line::Cleared => return Line::Cleared,
            // Ctrl-D ends the block.
            Line::End => break,
        }
    }
    Line::Text(text)
}
