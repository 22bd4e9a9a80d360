//! What becomes of the functions that a client looks at: their operations, kernels, exchanges and memory. It is what
//! `tessera explain` tells, found on a thread of its own while nobody types, one function after the other, and kept: a request
//! only reads it. Sizes are those of the signature, or of a call of the program; where nothing says them small ones are chosen, as
//! `tessera explain` does.

use super::known::{Answer, Key, Known, find};
use super::world::{Ruler, World};
use crate::explain::line::Line;
use crate::program::Setup;
use crossbeam_channel::Sender;
use lsp_types::{InlayHint, Range};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tessera_base::{FileId, Span};
use tessera_ide::analysis::{Analysis, Place};
use tessera_ide::symbol::Symbol;
use tessera_infer::db::{Db, Item};

/// Functions that wait at most.
const WANTED_MAX: usize = 64;
/// Lines that a hover shows at most.
const LINES_MAX: usize = 24;
/// Programs are as deep as those that are run.
const STACK_BYTES: usize = 256 << 20;

/// Looks at a function on a thread of its own. `false`: it is not there any more.
pub fn start(world: &World, key: Key, setup: Setup, tell: Sender<Answer>) -> bool {
    let (root, id) = key;
    let cx = world.analysis(root);
    let (Some(item), Some((_, first, _))) = (cx.item(id), cx.sources.line_col(Span::new(id, 0, 0))) else {
        return false;
    };
    let mut known = Known {
        text: item.text(&world.db).clone(),
        state: world.state,
        path: cx.path(root).to_string(),
        first,
        found: Err(String::new()),
    };
    let db = world.db.clone();
    let thread = std::thread::Builder::new().name("kernels".into()).stack_size(STACK_BYTES);
    let spawned = thread.spawn(move || {
        let mut answer = Answer { key, known: None, fault: None };
        match catch_unwind(AssertUnwindSafe(|| find(db, key, &setup))) {
            Ok(found) => {
                known.found = found;
                answer.known = Some(known);
            }
            Err(payload) if payload.is::<salsa::Cancelled>() => {}
            Err(payload) => {
                known.found = Err("the compiler has a fault there".into());
                answer.known = Some(known);
                answer.fault = Some(payload);
            }
        }
        let _ = tell.send(answer);
    });
    if let Err(e) = &spawned {
        eprintln!("a thread cannot be had: {e}");
    }
    spawned.is_ok()
}

impl World {
    /// Wants to know of a function what is not known, or was found of other texts. What somebody points at comes first.
    fn want(&mut self, key: Key, first: bool) {
        if self.known.get(&key).is_some_and(|k| k.state == self.state) {
            return;
        }
        if first {
            self.wanted.retain(|k| *k != key);
            self.wanted.push_front(key);
            self.wanted.truncate(WANTED_MAX);
        } else if !self.wanted.contains(&key) && self.wanted.len() < WANTED_MAX {
            self.wanted.push_back(key);
        }
    }

    /// The next function that somebody wants to know of; what was found while it waited is known.
    pub fn next_wanted(&mut self) -> Option<Key> {
        let (known, state) = (&self.known, self.state);
        self.wanted.retain(|key| known.get(key).is_none_or(|k| k.state != state));
        self.wanted.pop_front()
    }

    /// Drops what is known and wanted of files that are not open, and of functions that are gone.
    pub fn forget(&mut self, open: &[FileId]) {
        let heads = |root: &FileId| self.db.file(*root).map(|file| file.heads(&self.db).clone());
        let there: BTreeSet<Key> = open
            .iter()
            .flat_map(|root| heads(root).into_iter().flat_map(|all| all.to_vec()).map(move |head| (*root, head.id)))
            .collect();
        self.known.retain(|key, _| there.contains(key));
        self.wanted.retain(|key| there.contains(key));
    }

    /// Takes what a thread found; says whether there is more to show between the words.
    pub fn take_known(&mut self, answer: Answer) -> bool {
        let Some(known) = answer.known else {
            self.want(answer.key, true);
            return false;
        };
        let shows = |k: &Known| k.found.as_ref().is_ok_and(|f| !f.facts.hints().is_empty());
        let shown = shows(&known) || self.known.get(&answer.key).is_some_and(shows);
        self.known.insert(answer.key, known);
        shown
    }

    /// What becomes of the line at a byte of a file, and of the function whose name stands there: in Markdown.
    pub fn kernels_at(&mut self, root: FileId, byte: usize) -> Option<String> {
        let cx = self.analysis(root);
        let named = cx.symbol_at(root, byte).and_then(|(_, symbol)| match symbol {
            Symbol::Def(id) if cx.file_of(id) == Some(root) => Some(id),
            _ => None,
        });
        let (item, _) = cx.item_at(root, byte)?;
        let here = item.id(&self.db);
        let function = named.unwrap_or(here);
        let item = cx.item(function)?;
        // Other items are host code.
        cx.defs(item).first()?;
        let line = cx.text(root)[..byte].matches('\n').count() + 1;
        let text = self.told(&cx, (root, function), item, named.is_none().then_some(line));
        self.want((root, function), true);
        text
    }

    fn told(&self, cx: &Analysis, key: Key, item: Item, line: Option<usize>) -> Option<String> {
        let known = self.known.get(&key).filter(|k| *k.text == **item.text(&self.db));
        let Some(known) = known else {
            return Some("\nWhat becomes of it is being found out.\n".into());
        };
        let found = match &known.found {
            Ok(found) => found,
            Err(why) => return Some(format!("\nKernels are not known: {why}.\n")),
        };
        let text = match line {
            None => found.facts.text(),
            Some(line) => {
                let line = line_then(known, cx, key, line)?;
                let of_line = found.facts.of_line(&line);
                if of_line.parts.is_empty() {
                    return None;
                }
                line.body(&found.facts.graph, &of_line)
            }
        };
        let whose = if line.is_some() { "This line becomes" } else { "It becomes" };
        let mut lines: Vec<&str> = text.lines().collect();
        if lines.len() > LINES_MAX {
            lines.truncate(LINES_MAX);
            lines.push("  …");
        }
        Some(format!("\n{whose}{}\n```text\n{}\n```\n", found.at, lines.join("\n")))
    }

    /// Exchanges and updates in place, at the ends of their lines, of a part of a file. Wants what is not known there.
    pub fn kernel_hints(&mut self, root: FileId, range: Range) -> Vec<InlayHint> {
        let cx = self.analysis(root);
        let text = cx.text(root);
        let part = self.bytes(&text, range);
        let ruler = Ruler::of(self.units, &text);
        let (mut out, mut shown) = (vec![], vec![]);
        for head in cx.heads(root).iter() {
            let Some(place) = cx.place(Span::new(head.id, 0, 0)) else { continue };
            let Some(item) = cx.item(head.id).filter(|item| !cx.defs(*item).is_empty()) else { continue };
            if place.start > part.end || place.start + item.text(&self.db).len() < part.start {
                continue;
            }
            let key = (root, head.id);
            shown.push(key);
            let Some(known) = self.known.get(&key).filter(|k| *k.text == **item.text(&self.db)) else { continue };
            let Ok(found) = &known.found else { continue };
            let first = first_line(&text, &place);
            // Other functions have their own.
            let own = known.first..known.first + known.text.lines().count();
            for (file, line, hint) in found.facts.hints().into_iter().filter(|h| own.contains(&h.1)) {
                if found.chosen && hint.sized {
                    continue;
                }
                let at = (line + first).checked_sub(known.first).and_then(|line| line_end(&text, line));
                let Some(at) = at.filter(|at| file == known.path && part.start <= *at && *at <= part.end) else {
                    continue;
                };
                out.push(InlayHint {
                    position: ruler.position(at),
                    label: hint.short.into(),
                    kind: None,
                    text_edits: None,
                    tooltip: Some(format!("{}{}", hint.whole, found.at).into()),
                    padding_left: Some(true),
                    padding_right: None,
                    data: None,
                });
            }
        }
        shown.into_iter().for_each(|key| self.want(key, false));
        out
    }
}

/// A line as it was numbered when this was found.
fn line_then(known: &Known, cx: &Analysis, (root, id): Key, line: usize) -> Option<Line> {
    let text = cx.text(root);
    let first = first_line(&text, &cx.place(Span::new(id, 0, 0))?);
    let number = (line + known.first).checked_sub(first)?;
    Some(Line { file: known.path.clone(), number, text: String::new() })
}

/// The number of the line that a place begins in.
fn first_line(text: &str, place: &Place) -> usize {
    text[..place.start].matches('\n').count() + 1
}

/// The byte where the text of a line ends.
fn line_end(text: &str, line: usize) -> Option<usize> {
    let start: usize = (1..line).try_fold(0, |at, _| Some(at + text[at..].find('\n')? + 1))?;
    Some(start + text[start..].lines().next()?.trim_end().len())
}
