//! What can be done at a place: the fixes of diagnostics, types that nobody wrote, and what can be run.

use super::world::{Found, Ruler, World};
use lsp_types::*;
use std::collections::HashMap;
use std::sync::Arc;
use tessera_base::{FileId, Fix, Span};
use tessera_ide::inlays;
use tessera_ide::outline::{Runnable, runnables};
use tessera_ide::proofs::{self, Goal, Proof};
use tessera_infer::check_only;
use tessera_resolve::source::SourceMap;

/// So many assertions are tried for a place at most.
const PROOFS_MAX: usize = 4;

impl World {
    /// The actions for a part of a text.
    pub fn actions(&mut self, id: FileId, range: Range) -> Vec<CodeActionResponse> {
        let mut out = vec![];
        let text = self.analysis(id).text(id);
        let wanted = self.bytes(&text, range);
        // What was found belongs to a text; of another one the fixes lie elsewhere, and nobody waits for the thread that looks.
        let stale = |f: &Arc<Found>| f.sources.file(id).is_none_or(|f| *f.text != *text);
        if self.found.get(&id).is_none_or(stale) {
            self.found.insert(id, Arc::new(Found::of(check_only(&self.db, id))));
        }
        if let Some(found) = self.found.get(&id).cloned() {
            for d in &found.diagnostics {
                let Some((file, place)) = found.sources.locate(d.span) else { continue };
                if file != id || place.start > wanted.end || wanted.start > place.end {
                    continue;
                }
                let shown = self.of_file(id).into_iter().find(|shown| {
                    shown.code == Some(Code::String(d.code.name().to_owned()))
                        && shown.range == self.range(&text, place.clone())
                });
                for fix in d.fixes.iter().filter(|f| !f.edits.is_empty()) {
                    if let Some(edit) = self.fixing(fix, &found.sources) {
                        out.push(
                            CodeAction {
                                title: fix.title.clone(),
                                kind: Some(CodeActionKind::QuickFix),
                                diagnostics: shown.clone().map(|d| vec![d]),
                                edit: Some(edit),
                                is_preferred: Some(true),
                                ..CodeAction::default()
                            }
                            .into(),
                        );
                    }
                }
            }
        }
        // Types are asked for before an assertion is tried: that changes the text, and they would be found anew.
        let types = self.written_types(id, wanted.clone());
        out.extend(self.proving(id, wanted));
        out.extend(types);
        out
    }

    /// "Add the assertion that proves this": what a diagnostic advises, and what the program compares when it runs.
    fn proving(&mut self, id: FileId, wanted: std::ops::Range<usize>) -> Vec<CodeActionResponse> {
        let Some(found) = self.found.get(&id).cloned() else { return vec![] };
        let cx = self.analysis(id);
        let text = cx.text(id);
        let Some(uri) = self.uri(&cx.path(id)) else { return vec![] };
        let lines = whole_lines(&text, &wanted);
        let proof = |span: Span, within: &std::ops::Range<usize>, assertion: &str| {
            let place = cx.place(span).filter(|p| p.file == id && p.start <= within.end && within.start <= p.end)?;
            proofs::proof(&cx, &place, assertion)
        };
        let mut all: Vec<(Proof, Goal, Option<Diagnostic>)> = vec![];
        for d in found.diagnostics.iter().filter(|d| d.is_error()) {
            for assertion in proofs::advised(d) {
                let goal = Goal::Error(d.code, d.message.clone());
                let shown = || self.diagnostic(d, &found.sources);
                all.extend(proof(d.span, &wanted, &assertion).map(|proof| (proof, goal, Some(shown()))));
            }
        }
        for (span, what) in &found.kept {
            let proof = proof(*span, &lines, &format!("assert {what}"));
            all.extend(proof.map(|proof| (proof, Goal::Comparison(what.clone()), None)));
        }
        let mut seen: Vec<Proof> = vec![];
        all.retain(|(proof, ..)| {
            !seen.contains(proof) && {
                seen.push(proof.clone());
                true
            }
        });
        all.truncate(PROOFS_MAX);
        self.touched |= !all.is_empty();
        let before = (&found.diagnostics[..], &found.kept[..]);
        all.retain(|(proof, goal, _)| proofs::proves(&mut self.db, id, proof, goal, before));
        let ruler = Ruler::of(self.units, &text);
        let one = |(proof, _, shown): (Proof, Goal, Option<Diagnostic>)| {
            let at = ruler.position(proof.at);
            let edit = TextEdit { range: Range { start: at, end: at }, new_text: proof.text };
            let changes = Some(HashMap::from([(uri.clone(), vec![edit])]));
            let kind = if shown.is_some() { CodeActionKind::QuickFix } else { CodeActionKind::RefactorRewrite };
            CodeAction {
                title: format!("add `{}`, which proves this", proof.assertion),
                kind: Some(kind),
                diagnostics: shown.map(|d| vec![d]),
                edit: Some(WorkspaceEdit { changes, ..WorkspaceEdit::default() }),
                ..CodeAction::default()
            }
            .into()
        };
        all.into_iter().map(one).collect()
    }

    fn fixing(&self, fix: &Fix, sources: &SourceMap) -> Option<WorkspaceEdit> {
        let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
        for edit in &fix.edits {
            let (file, range) = sources.locate(edit.span)?;
            let file = sources.file(file).filter(|f| !f.library)?;
            let range = Ruler::of(self.units, &file.text).range(range);
            changes.entry(self.uri(&file.path)?).or_default().push(TextEdit { range, new_text: edit.text.clone() });
        }
        Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
    }

    /// "Write the type": what a program makes of a name, written behind it.
    fn written_types(&self, id: FileId, wanted: std::ops::Range<usize>) -> Vec<CodeActionResponse> {
        let cx = self.analysis(id);
        let text = cx.text(id);
        let Some(uri) = self.uri(&cx.path(id)) else { return vec![] };
        let lines = whole_lines(&text, &wanted);
        let found = inlays::inlays(&cx, id, lines, &[]).into_iter().filter(|i| i.writable);
        let ruler = Ruler::of(self.units, &text);
        let one = |i: inlays::Inlay| {
            let at = ruler.position(i.at);
            let edit = TextEdit { range: Range { start: at, end: at }, new_text: i.whole.clone() };
            let changes = Some(HashMap::from([(uri.clone(), vec![edit])]));
            CodeAction {
                title: format!("write the type `{}`", i.whole.trim_start_matches([':', ' '])),
                kind: Some(CodeActionKind::RefactorRewrite),
                edit: Some(WorkspaceEdit { changes, ..WorkspaceEdit::default() }),
                ..CodeAction::default()
            }
            .into()
        };
        found.map(one).collect()
    }

    pub fn lenses(&mut self, id: FileId) -> Vec<CodeLens> {
        let cx = self.analysis(id);
        let text = cx.text(id);
        let ruler = Ruler::of(self.units, &text);
        let Some(uri) = self.uri(&cx.path(id)) else { return vec![] };
        let one = |(place, what): (tessera_ide::analysis::Place, Runnable)| {
            let (title, command, name) = match what {
                Runnable::Program => ("▶ run", super::commands::RUN, None),
                Runnable::Test(name) => ("▶ test", super::commands::TEST, Some(name)),
                Runnable::Examples(name) => ("▶ examples", super::commands::TEST, Some(name)),
            };
            let arguments = [Some(uri.to_string().into()), name.map(|n| n.to_string().into())];
            CodeLens {
                range: ruler.range(place.range()),
                command: Some(Command {
                    title: title.into(),
                    command: command.into(),
                    arguments: Some(arguments.into_iter().flatten().collect()),
                    ..Command::default()
                }),
                data: None,
            }
        };
        runnables(&cx, id).into_iter().map(one).collect()
    }
}

/// The lines that a part of a text is in.
fn whole_lines(text: &str, part: &std::ops::Range<usize>) -> std::ops::Range<usize> {
    let start = text[..part.start].rfind('\n').map_or(0, |i| i + 1);
    start..part.end + text[part.end..].find('\n').unwrap_or(text.len() - part.end)
}
