//! What belongs to one input: lines from a pipe, statements of an input, pasted sessions.

use std::io::BufRead;
use std::ops::Range;
use tessera_grammar::token::{Tok, lex};
use tessera_grammar::{RawKind, needs_more, parse_item, split};

/// Inputs from a pipe. An input is a statement; a block ends before the next line that is not
/// indented (`else` and the like go on with it) or at two blank lines.
pub struct Inputs<R> {
    reader: R,
    /// A line that was read too far.
    ahead: Option<String>,
}

impl<R: BufRead> Inputs<R> {
    pub fn new(reader: R) -> Inputs<R> {
        Inputs { reader, ahead: None }
    }

    fn line(&mut self) -> Option<std::io::Result<String>> {
        if let Some(line) = self.ahead.take() {
            return Some(Ok(line));
        }
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => {
                let end = line.trim_end_matches(['\n', '\r']).len();
                line.truncate(end);
                Some(Ok(line))
            }
            Err(e) => Some(Err(e)),
        }
    }

    /// Whether the next line belongs to a block that a blank line seems to have ended. That
    /// line is kept.
    fn goes_on(&mut self) -> std::io::Result<bool> {
        let Some(next) = self.line().transpose()? else { return Ok(false) };
        let word: String = next.chars().take_while(|c| c.is_alphabetic()).collect();
        let goes_on =
            !next.trim().is_empty() && (next.starts_with([' ', '\t']) || matches!(word.as_str(), "else" | "elif"));
        self.ahead = Some(next);
        Ok(goes_on)
    }

    fn rest(&mut self, text: &mut String) -> std::io::Result<()> {
        loop {
            while needs_more(text) {
                let Some(line) = self.line().transpose()? else { return Ok(()) };
                if ends_block(text, &line) {
                    self.ahead = Some(line);
                    return Ok(());
                }
                text.push('\n');
                text.push_str(&line);
            }
            let block_ended = text.rsplit_once('\n').is_some_and(|(_, last)| last.trim().is_empty());
            if !block_ended || !self.goes_on()? {
                return Ok(());
            }
            if let Some(line) = self.ahead.take() {
                text.push('\n');
                text.push_str(&line);
            }
        }
    }
}

/// Whether a line stands behind the block that a text is: it is an input of its own. Definitions that stand together are
/// one input, because they may use each other.
fn ends_block(text: &str, line: &str) -> bool {
    let word = |line: &str| line.chars().take_while(|c| c.is_alphabetic() || *c == '@').collect::<String>();
    let defines = |line: &str| matches!(word(line).as_str(), "def" | "struct") || line.starts_with('@');
    if line.trim().is_empty() || line.starts_with([' ', '\t', '#']) || matches!(word(line).as_str(), "else" | "elif") {
        return false;
    }
    if text.trim_start().starts_with('@') || defines(text) && defines(line) {
        return false;
    }
    !needs_more(&format!("{text}\n\n"))
}

impl<R: BufRead> Iterator for Inputs<R> {
    type Item = std::io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut text = loop {
            match self.line()? {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => break line,
                Err(e) => return Some(Err(e)),
            }
        };
        if !text.starts_with([':', '?'])
            && let Err(e) = self.rest(&mut text)
        {
            return Some(Err(e));
        }
        Some(Ok(text))
    }
}

/// The parts of an input that are checked and run one after the other: every statement, and
/// definitions that stand together (they may use each other). With an error of syntax, the
/// whole input.
pub fn parts(text: &str) -> Vec<Range<usize>> {
    let pieces = split(text);
    let all = 0..text.len();
    let range = |r: &Range<u32>| r.start as usize..r.end as usize;
    let broken = |r: Range<usize>| {
        parse_item(text.get(r).unwrap_or(""), tessera_base::ItemId(0)).diagnostics.iter().any(|d| d.is_error())
    };
    if !pieces.diagnostics.is_empty() || pieces.items.iter().any(|i| broken(range(&i.range))) {
        return vec![all];
    }
    let mut out: Vec<(Range<usize>, bool)> = vec![];
    for item in &pieces.items {
        let (here, definition) = (range(&item.range), item.kind != RawKind::Stmt);
        let same_line = |last: &Range<usize>| !text.get(last.start..here.start).unwrap_or("").contains('\n');
        match out.last_mut() {
            Some((last, defs)) if *defs && definition || same_line(last) => {
                last.end = here.end;
                *defs &= definition;
            }
            _ => out.push((here, definition)),
        }
    }
    out.into_iter().map(|(r, _)| r).collect()
}

/// Whether an input ends with a semicolon: its value is not shown.
pub fn is_silent(text: &str) -> bool {
    lex(text).iter().rev().find(|t| !t.kind.is_trivia()).is_some_and(|t| t.kind == Tok::Semi)
}

/// The inputs of pasted text: that of a session loses its prompts and what was printed.
pub fn without_prompts(text: &str) -> Vec<String> {
    let prompt = |line: &str, p: &str| {
        Some(line.trim_start().strip_prefix(p)?).map(|l| l.strip_prefix(' ').unwrap_or(l).to_owned())
    };
    if prompt(text, ">>>").is_none() {
        return vec![text.to_owned()];
    }
    let mut out: Vec<String> = vec![];
    for line in text.lines() {
        if let Some(first) = prompt(line, ">>>") {
            out.push(first);
        } else if let (Some(more), Some(last)) = (prompt(line, "..."), out.last_mut()) {
            last.push('\n');
            last.push_str(&more);
        }
    }
    out.retain(|i| !i.trim().is_empty());
    out
}

/// Blanks of an indentation.
pub const INDENT: usize = 4;

/// What the line after some lines begins with: the blanks of the line before, more after a colon, less after what ends a block.
pub fn indent_after(before: &str) -> String {
    let Some(last) = before.lines().rfind(|l| !l.trim().is_empty()) else { return String::new() };
    // A string or a bracket that is open has an order of its own.
    let tokens = lex(before);
    let depth =
        tokens.iter().fold(0i64, |d, t| d + i64::from(t.kind.closer().is_some()) - i64::from(t.kind.is_closer()));
    if depth != 0 || tokens.iter().any(|t| matches!(t.kind, Tok::OpenStr | Tok::FBroken)) {
        return String::new();
    }
    let own = last.len() - last.trim_start_matches(' ').len();
    let code = tokens.iter().rev().find(|t| !t.kind.is_trivia());
    let word = last.trim().split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    let width = match code.map(|t| t.kind) {
        Some(Tok::Colon) => own + INDENT,
        _ if matches!(word, "return" | "break" | "continue" | "pass") => own.saturating_sub(INDENT),
        _ => own,
    };
    " ".repeat(width)
}

/// Whether a text is an input as it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completeness {
    Complete,
    /// Lines are missing.
    More,
    /// More lines would not help.
    Wrong,
}

/// Whether a text is an input as it stands, by the parser.
pub fn completeness(text: &str) -> Completeness {
    if text.starts_with([':', '?']) || asked(text).is_some() {
        return Completeness::Complete;
    }
    if needs_more(text) {
        return Completeness::More;
    }
    let pieces = split(text);
    let wrong = |r: &Range<u32>| {
        let text = text.get(r.start as usize..r.end as usize).unwrap_or("");
        parse_item(text, tessera_base::ItemId(0)).diagnostics.iter().any(|d| d.is_error())
    };
    match pieces.diagnostics.is_empty() && !pieces.items.iter().any(|i| wrong(&i.range)) {
        true => Completeness::Complete,
        false => Completeness::Wrong,
    }
}

/// What an input asks about: `?x`, `x?`, `??x` and `x??`; with two marks, how it is written.
pub fn asked(text: &str) -> Option<(&str, bool)> {
    let text = text.trim();
    let (path, source) = match (text.strip_prefix("??").or_else(|| text.strip_suffix("??")), text.strip_prefix('?')) {
        (Some(path), _) => (path, true),
        (None, Some(path)) => (path, false),
        (None, None) => (text.strip_suffix('?')?, false),
    };
    is_path(path.trim()).then(|| (path.trim(), source))
}

/// Whether a text is `a.b.c`.
pub fn is_path(text: &str) -> bool {
    let name = |n: &str| {
        n.starts_with(|c: char| c.is_alphabetic() || c == '_') && n.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    text.split('.').all(name)
}

/// The path around a place of a text, or that of the call which is open there: what `?` is asked of in an editor.
pub fn path_at(text: &str, byte: usize) -> Option<&str> {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let (before, after) = (text.get(..byte)?, text.get(byte..)?);
    let name = |until: usize, text: &str| {
        let start = text.get(..until)?.trim_end_matches(part).len();
        Some(start)
    };
    let start = name(before.len(), before)?;
    let end = byte + after.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(after.len());
    let here = text.get(start..end).map(|p| p.trim_matches('.')).filter(|p| is_path(p));
    here.or_else(|| {
        let mut depth = 0usize;
        let open = before.char_indices().rev().find(|(_, c)| match c {
            ')' | ']' | '}' => {
                depth += 1;
                false
            }
            '(' | '[' | '{' if depth > 0 => {
                depth -= 1;
                false
            }
            c => *c == '(',
        })?;
        let start = name(open.0, before)?;
        text.get(start..open.0).filter(|p| is_path(p))
    })
}

/// The inputs of a cell of a notebook: a command of the session or a question that has a line of its own stands alone. Each
/// begins with as many line breaks as lines stand before it.
pub fn of_cell(text: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    let (mut open, mut before) = (String::new(), String::new());
    for line in text.lines() {
        let alone = line.starts_with([':', '?']) || asked(line).is_some() && !line.starts_with([' ', '\t']);
        if alone && (open.trim().is_empty() || !needs_more(&format!("{open}\n"))) {
            out.push(std::mem::take(&mut open));
            out.push(line.to_owned());
            before.push('\n');
            open.clone_from(&before);
            continue;
        }
        open.push_str(line);
        open.push('\n');
        before.push('\n');
    }
    if !text.ends_with('\n') {
        open.truncate(open.trim_end_matches('\n').len());
    }
    out.push(open);
    out.retain(|input| !input.trim().is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(text: &str) -> Vec<String> {
        Inputs::new(text.as_bytes()).map(|r| r.unwrap_or_default()).collect()
    }

    #[test]
    fn inputs_end_where_their_statements_do() {
        assert_eq!(inputs("x = 1\n\ny = 2\n"), ["x = 1", "y = 2"]);
        assert_eq!(inputs("x = f(1,\n\n  2)\n3"), ["x = f(1,\n\n  2)", "3"]);
        let block = "def f(x):\n    a = x\n\n    return a\n";
        assert_eq!(inputs(&format!("{block}\nf(1)")), [block, "f(1)"]);
        assert_eq!(
            inputs("if x:\n    a = 1\nelse:\n    a = 2\nprint(a)\nb = (1,\n2)"),
            ["if x:\n    a = 1\nelse:\n    a = 2", "print(a)", "b = (1,\n2)"]
        );
        assert_eq!(inputs("def f(x):\n    return g(x)\ndef g(x):\n    return x\nf(1)").len(), 2);
        assert_eq!(inputs("if a:\n    b\n\nelse:\n    c\n\nd"), ["if a:\n    b\n\nelse:\n    c\n", "d"]);
        assert_eq!(inputs("def f():\n    1\nf()"), ["def f():\n    1", "f()"]);
        assert_eq!(inputs(":type (\n1"), [":type (", "1"]);
    }

    #[test]
    fn parts_are_statements_and_groups_of_definitions() {
        let text = "def f(x):\n    return g(x)\ndef g(x):\n    return x\ny = f(1)\ny\n";
        let shown: Vec<&str> = parts(text).into_iter().map(|r| text[r].trim_end()).collect();
        assert_eq!(shown, ["def f(x):\n    return g(x)\ndef g(x):\n    return x", "y = f(1)", "y"]);
        assert_eq!(parts("x = 1\ny = )").as_slice(), std::slice::from_ref(&(0..11)));
    }

    #[test]
    fn a_semicolon_at_the_end_silences() {
        assert!(is_silent("x;") && is_silent("f(1) ;  # why\n"));
        assert!(!is_silent("x") && !is_silent("\"a;\"") && !is_silent("x  # a;") && !is_silent("x; y"));
    }

    #[test]
    fn pasted_sessions_lose_prompts_and_output() {
        assert_eq!(
            without_prompts(">>> def f(x):\n...     return x\n...\n>>> f(1)\nint 1"),
            ["def f(x):\n    return x\n", "f(1)"]
        );
        assert_eq!(without_prompts("x >>> 1"), ["x >>> 1"]);
    }

    #[test]
    fn lines_are_indented_for_whoever_types() {
        let width = |before: &str| indent_after(before).len();
        assert_eq!([width(""), width("x = 1"), width("def f(x):"), width("if x:  # why")], [0, 0, 4, 4]);
        assert_eq!(width("def f(x):\n    if x:"), 8);
        assert_eq!(width("def f(x):\n    if x:\n        return 1"), 4);
        assert_eq!([width("x = f(1,"), width("x = \"\"\"a:")], [0, 0]);
    }

    #[test]
    fn a_cell_is_inputs_and_commands() {
        let text = "x = 1\n:type x\nx?\ny = 2\nprint(y)";
        assert_eq!(of_cell(text), ["x = 1\n", ":type x", "x?", "\n\n\ny = 2\nprint(y)"]);
        assert_eq!(of_cell("s = \"\"\"\n:type\n\"\"\""), ["s = \"\"\"\n:type\n\"\"\""]);
        assert_eq!(of_cell("\n  \n"), [""; 0]);
    }

    #[test]
    fn inputs_are_complete_or_not() {
        use Completeness::{Complete, More, Wrong};
        let all =
            ["x = 1", "def f(x):", "f(1,", ":type x", "x?", "x = )", "def f(x):\n    return x\n"].map(completeness);
        assert_eq!(all, [Complete, More, More, Complete, Complete, Wrong, Complete]);
    }

    #[test]
    fn the_path_at_a_place() {
        let text = "y = op.softmax(x, axis=g(1))";
        assert_eq!(path_at(text, 9), Some("op.softmax"));
        assert_eq!(path_at(text, 5), Some("op"));
        assert_eq!(path_at(text, 16), Some("x"));
        assert_eq!(path_at(text, text.len() - 1), Some("op.softmax"));
        assert_eq!([path_at("1 + 2", 2), path_at("", 0), path_at("é", 1)], [None; 3]);
    }

    #[test]
    fn questions_are_told_from_inputs() {
        assert_eq!(asked("?x"), Some(("x", false)));
        assert_eq!(asked(" nn.linear? "), Some(("nn.linear", false)));
        assert_eq!(asked("?? f"), Some(("f", true)));
        assert_eq!(asked("f??"), Some(("f", true)));
        for text in ["?", "??", "print(\"x?\")", "# why?", "?1", "x", "? a b"] {
            assert_eq!(asked(text), None, "{text}");
        }
    }
}
