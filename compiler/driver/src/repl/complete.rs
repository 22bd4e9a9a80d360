//! What is offered while an input is written: what an editor offers in the program that the inputs so far make, and the commands
//! of the session.

use super::directive::DIRECTIVES;
use super::saved;
use super::state::State;
use crate::files::Disk;
use std::cell::RefCell;
use std::collections::BTreeSet;
use tessera_base::FileId;
use tessera_ide::analysis::Analysis;
use tessera_ide::{call, complete};
use tessera_infer::db::Database;
use tessera_ops::surface;

/// The program that the inputs make, to be continued.
#[derive(Default)]
pub struct Known {
    program: String,
    /// Made when something is asked for first; a question gives its file another text.
    asked: RefCell<Option<(Database, FileId)>>,
}

impl Known {
    pub fn of(state: &State) -> Known {
        let mut known = Known::default();
        known.know(state);
        known
    }

    /// Takes the inputs as they are now.
    pub fn know(&mut self, state: &State) {
        self.program = saved::program(&state.accepted);
        if !self.program.is_empty() {
            self.program.push('\n');
        }
    }

    /// What `ask` finds out at the end of the program with `written` behind it; and how long the program alone is.
    fn at_end<T>(&self, written: &str, ask: impl FnOnce(&mut Database, FileId, usize) -> T) -> (T, usize) {
        let mut asked = self.asked.borrow_mut();
        let (db, file) = asked.get_or_insert_with(|| {
            let mut db = Database::default();
            let file = db.add_file("<session>");
            (db, file)
        });
        let text = format!("{}{written}", self.program);
        db.set_text(*file, &text);
        db.load_imports(*file, &Disk);
        (ask(db, *file, text.len()), self.program.len())
    }

    /// Where the word at the end of `line` begins, and what it can become, sorted. `before` are the lines of the input before it.
    pub fn complete(&self, before: &str, line: &str) -> (usize, Vec<String>) {
        if let Some(topic) = line.strip_prefix(":explain ") {
            let codes = tessera_base::Code::ALL.iter().map(|c| c.name().to_owned());
            let all = codes.chain(surface::all().map(|d| d.name.to_owned()));
            return (":explain ".len(), starting(all, topic));
        }
        if line.starts_with(':') && !line.contains(' ') {
            return (0, starting(DIRECTIVES.iter().map(|(n, ..)| format!(":{n}")), line));
        }
        let (found, program) = self.at_end(&format!("{before}{line}"), complete::complete);
        let Some(found) = found else { return (line.len(), vec![]) };
        // No name goes over the end of a line.
        let start = found.replaces.start.saturating_sub(program + before.len()).min(line.len());
        (start, starting(found.all.into_iter().map(|c| c.label), &line[start..]))
    }

    /// What is still to be written of the innermost call that is open at the end of an input: `axis=-1)`.
    pub fn rest(&self, text: &str) -> Option<String> {
        let ask = |db: &mut Database, file, byte| call::rest(&Analysis::new(db, file), file, byte);
        let call::Rest { left, begun } = self.at_end(text, ask).0?;
        let space = if text.ends_with(',') { " " } else { "" };
        Some(match (left.is_empty(), begun) {
            (true, _) => ")".to_owned(),
            (false, true) => format!(", {})", left.join(", ")),
            (false, false) => format!("{space}{})", left.join(", ")),
        })
    }
}

fn starting(all: impl Iterator<Item = String>, word: &str) -> Vec<String> {
    // Names that begin with an underscore only where asked for.
    let fits = |n: &String| n.starts_with(word) && (!n.starts_with('_') || word.starts_with('_'));
    let found: BTreeSet<String> = all.filter(fits).collect();
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(program: &str) -> Known {
        Known { program: program.into(), asked: RefCell::default() }
    }

    #[test]
    fn completions() {
        let known = known("import std.nn as nn\nweights = op.ones((2, 2))\nname = \"a\"\n");
        let of = |line: &str| known.complete("", line);
        assert_eq!(of("x = wei"), (4, vec!["weights".to_owned()]));
        assert_eq!(of("op.softm").1, ["softmax"]);
        assert_eq!(of("f(weights.resh"), (10, vec!["reshape".to_owned()]));
        assert!(of("op.relu(weights).su").1.contains(&"sum".to_owned()));
        assert!(of("name.spl").1.contains(&"split".to_owned()));
        assert_eq!(of("nn.linear_in").1, ["linear_init"]);
        assert_eq!(known.complete("def f(scale: int):\n", "    return sca"), (11, vec!["scale".to_owned()]));
        assert_eq!(of(":ex"), (0, vec![":explain".to_owned()]));
        assert_eq!(of(":explain E070").1.first().map(String::as_str), Some("E0701"));
        assert_eq!(of("über.x").1, [""; 0]);
    }

    #[test]
    fn the_rest_of_a_call() {
        let known = known("def twice(x: int, *, by: int = 2) -> int:\n    return x * by\n");
        let of = |text: &str| known.rest(text).unwrap_or_default();
        assert_eq!(of("op.softmax("), "x, axis=-1)");
        assert_eq!(of("y = op.softmax(f(1, 2)"), ", axis=-1)");
        assert_eq!(of("op.softmax(x,"), " axis=-1)");
        assert_eq!(of("op.softmax(x, axis=2"), ")");
        assert_eq!(of("twice(3"), ", by: int = 2)");
        for text in [
            "",
            "op.softmax",
            "op.softmax(x)",
            "def f(",
            "op.softmax(\"a(",
            "g(",
            "(",
            "[op.softmax(x)",
            "# op.softmax(",
        ] {
            assert_eq!(of(text), "", "{text}");
        }
    }
}
