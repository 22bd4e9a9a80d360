//! Editing lines at a terminal: colours, completion, history.

use super::complete::Known;
use super::input::{INDENT, indent_after};
use super::state::State;
use crate::cache::DiskCache;
use crate::cli::Color;
use crate::program::Setup;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter, HistoryHinter};
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Context, Event, EventContext, EventHandler,
    Helper, KeyCode, KeyEvent, Modifiers, Movement, RepeatCount,
};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tessera_grammar::{TokenClass, highlight};

/// Entries that the history keeps.
const HISTORY_MAX: usize = 5_000;

/// What reading a line gave.
pub enum Line {
    Text(String),
    /// Ctrl-C: what was typed is dropped.
    Cleared,
    /// Ctrl-D.
    End,
}

pub struct Editor {
    lines: rustyline::Editor<Assistant, FileHistory>,
    history: Option<PathBuf>,
    color: bool,
    /// Blanks of the line that nobody typed.
    indent: Arc<AtomicUsize>,
}

impl Editor {
    pub fn new(setup: &Setup) -> rustyline::Result<Editor> {
        let color = match setup.global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => std::env::var_os("NO_COLOR").is_none(),
        };
        let config = Config::builder()
            .history_ignore_space(true)
            .history_ignore_dups(true)?
            .max_history_size(HISTORY_MAX)?
            .completion_type(CompletionType::List)
            .color_mode(if color { ColorMode::Enabled } else { ColorMode::Disabled })
            .indent_size(4)
            .build();
        let mut lines: rustyline::Editor<Assistant, FileHistory> = rustyline::Editor::with_config(config)?;
        lines.set_helper(Some(Assistant {
            known: Known::default(),
            hints: HistoryHinter::new(),
            before: String::new(),
            color,
        }));
        lines.bind_sequence(KeyEvent(KeyCode::Tab, Modifiers::NONE), EventHandler::Conditional(Box::new(IndentKey)));
        let indent = Arc::new(AtomicUsize::new(0));
        lines.bind_sequence(
            KeyEvent(KeyCode::Char(' '), Modifiers::NONE),
            EventHandler::Conditional(Box::new(TypedIndent(indent.clone()))),
        );
        lines.bind_sequence(
            KeyEvent(KeyCode::Backspace, Modifiers::NONE),
            EventHandler::Conditional(Box::new(UnindentKey)),
        );
        let history = DiskCache::default_dir().map(|d| d.join("history"));
        if let Some(path) = &history {
            // There is none at first.
            let _ = lines.load_history(path);
        }
        Ok(Editor { lines, history, color, indent })
    }

    /// Reads the line after those before it.
    pub fn line(&mut self, before: &str) -> Line {
        let prompt = if before.is_empty() { ">>> " } else { "... " };
        let styled = if self.color { format!("\x1b[1;32m{prompt}\x1b[0m") } else { prompt.to_owned() };
        if let Some(helper) = self.lines.helper_mut() {
            helper.before = before.to_owned();
        }
        let indent = indent_after(before);
        self.indent.store(indent.len(), Ordering::Relaxed);
        match self.lines.readline_with_initial(&(prompt, styled), (&indent, "")) {
            Ok(text) => Line::Text(text),
            Err(ReadlineError::Interrupted) => Line::Cleared,
            Err(ReadlineError::Eof) => Line::End,
            Err(e) => {
                eprintln!("error[E0706]: the terminal cannot be read: {e}");
                Line::End
            }
        }
    }

    /// Adds an input to the history. That the file cannot be written is no error.
    pub fn remember(&mut self, text: &str) {
        let text = text.trim_end();
        if text.is_empty() || !self.lines.add_history_entry(text).unwrap_or(false) {
            return;
        }
        if let Some(path) = &self.history {
            if let Some(dir) = path.parent() {
                let _ = std::fs::create_dir_all(dir);
            }
            let _ = self.lines.append_history(path);
        }
    }

    /// What can be completed from now on.
    pub fn know(&mut self, state: &State) {
        if let Some(helper) = self.lines.helper_mut() {
            helper.known.know(state);
        }
    }
}

/// Tab before the first word of a line indents; elsewhere it completes.
struct IndentKey;

impl ConditionalEventHandler for IndentKey {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        let before = context.line().get(..context.pos())?;
        let line = before.rsplit('\n').next().unwrap_or("");
        line.trim().is_empty().then(|| Cmd::Insert(1, " ".repeat(4 - line.len() % 4)))
    }
}

/// Blanks at the start of a line that is indented already: whoever types them, or pastes them from elsewhere, means those that
/// are there.
struct TypedIndent(Arc<AtomicUsize>);

impl ConditionalEventHandler for TypedIndent {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        let left = self.0.load(Ordering::Relaxed);
        if left == 0 || !context.line().trim().is_empty() {
            return None;
        }
        self.0.store(left - 1, Ordering::Relaxed);
        Some(Cmd::Noop)
    }
}

/// Backspace before the first word of a line takes an indentation away.
struct UnindentKey;

impl ConditionalEventHandler for UnindentKey {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        let before = context.line().get(..context.pos())?;
        let line = before.rsplit('\n').next().unwrap_or("");
        let blanks = before.len() == line.len() && !line.is_empty() && line.bytes().all(|b| b == b' ');
        // A count of characters would be taken for that of the key.
        blanks.then(|| Cmd::Replace(Movement::BeginningOfLine, Some(" ".repeat((line.len() - 1) / INDENT * INDENT))))
    }
}

/// What is shown behind the cursor.
struct Shown {
    text: String,
    /// Whether it can be taken over.
    takes: bool,
}

impl Hint for Shown {
    fn display(&self) -> &str {
        &self.text
    }

    fn completion(&self) -> Option<&str> {
        self.takes.then_some(&self.text)
    }
}

struct Assistant {
    known: Known,
    hints: HistoryHinter,
    /// The lines of the input before this one.
    before: String,
    color: bool,
}

impl Assistant {
    /// The lines of the input before this one, each with its end.
    fn lines_before(&self) -> String {
        if self.before.is_empty() { String::new() } else { format!("{}\n", self.before) }
    }
}

impl Helper for Assistant {}
impl Validator for Assistant {}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = self.known.complete(&self.lines_before(), line.get(..pos).unwrap_or(line));
        Ok((start, found.into_iter().map(|w| Pair { display: w.clone(), replacement: w }).collect()))
    }
}

impl Hinter for Assistant {
    type Hint = Shown;

    fn hint(&self, line: &str, pos: usize, context: &Context<'_>) -> Option<Shown> {
        // Without colours a hint would look like what was typed.
        if !self.color || pos < line.len() || line.starts_with([':', '?']) && !self.before.is_empty() {
            return None;
        }
        if let Some(text) = self.known.rest(&format!("{}{line}", self.lines_before())) {
            return Some(Shown { text, takes: false });
        }
        let hint = if self.before.is_empty() { self.hints.hint(line, pos, context)? } else { return None };
        Some(Shown { text: hint.lines().next()?.to_owned(), takes: true })
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if !self.color || line.starts_with(':') {
            return Cow::Borrowed(line);
        }
        // A line in the middle of a string is coloured as one.
        let before = self.lines_before();
        let whole = format!("{before}{line}");
        let mut out = String::with_capacity(line.len() * 2);
        let mut at = before.len();
        for (range, class) in highlight(&whole) {
            let (start, end) = (range.start.max(at), range.end);
            if start >= end {
                continue;
            }
            out.push_str(&whole[at..start]);
            match paint(class) {
                Some(code) => out.push_str(&format!("\x1b[{code}m{}\x1b[0m", &whole[start..end])),
                None => out.push_str(&whole[start..end]),
            }
            at = end;
        }
        out.push_str(&whole[at..]);
        Cow::Owned(out)
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        self.color
    }
}

/// The colour of a class, as the number of a terminal's code.
fn paint(class: TokenClass) -> Option<&'static str> {
    use TokenClass::*;
    Some(match class {
        Keyword => "35",
        Constant | Number => "33",
        String => "32",
        Comment => "2",
        Definition => "1;34",
        Call => "34",
        Capital => "36",
        Decorator => "35",
        Error => "31",
        Attribute | Name | Operator | Bracket => return None,
    })
}
