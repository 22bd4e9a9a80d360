//! Diagnostics for people and for tools (JSON lines). The same value, two forms.

mod snippet;

use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use tessera_base::{Diagnostic, Severity, Span, quote};

/// Where an item-relative span lies: absolute bytes of a file's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceLocation<'a> {
    pub file: &'a str,
    pub text: &'a str,
    pub start: usize,
    pub end: usize,
}

impl SourceLocation<'_> {
    /// Line and column of the start, from 1.
    fn line_column(&self) -> (usize, usize) {
        line_column(self.text, self.start)
    }
}

/// Where the lines of texts begin, found once for each text.
#[derive(Default)]
struct Lines {
    /// By where a text lies in memory.
    starts: BTreeMap<(usize, usize), Vec<usize>>,
}

impl Lines {
    /// What [`line_column`] gives.
    fn line_column(&mut self, text: &str, at: usize) -> (usize, usize) {
        let at = snippet::clamp(text, at, at).start.min(text.len());
        let starts = self
            .starts
            .entry((text.as_ptr() as usize, text.len()))
            .or_insert_with(|| std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect());
        let line = starts.partition_point(|start| *start <= at);
        (line, text[starts[line - 1]..at].chars().count() + 1)
    }
}

/// What rendering asks of the owner of the source texts.
pub trait Sources {
    fn locate(&self, span: Span) -> Option<SourceLocation<'_>>;
}

/// Diagnostics of one line that are shown with it; of more, only what they say.
const IN_FULL: usize = 5;
/// Of those, so many are named.
const NAMED: usize = 10;
/// Diagnostics of one severity that are shown with their lines at all: nobody reads thousands of drawings.
const DRAWN: usize = 100;

/// How diagnostics are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    pub color: bool,
    pub json: bool,
    pub quiet: bool,
}

/// Writes every diagnostic, errors and warnings in source order.
pub fn render(out: &mut dyn Write, diagnostics: &[Diagnostic], sources: &dyn Sources, style: Style) {
    let mut order: Vec<(usize, &Diagnostic)> = diagnostics.iter().enumerate().collect();
    order.sort_by_key(|(i, d)| {
        let place = sources.locate(d.span);
        (place.map(|p| (p.file, p.start)), *i)
    });
    order.dedup_by(|(_, a), (_, b)| a == b);
    order.retain(|(_, d)| !style.quiet || d.severity() == Severity::Error);
    let in_words: Vec<Diagnostic> = order.into_iter().map(|(_, d)| in_words_of_a_model(d, sources)).collect();
    let all: Vec<&Diagnostic> = in_words.iter().collect();
    // A reader that closes the pipe early is not an error worth telling.
    let _ = if style.json {
        let mut lines = Lines::default();
        all.iter().try_for_each(|d| writeln!(out, "{}", in_json(d, sources, &mut lines)))
    } else {
        by_line(out, &all, sources, style)
    };
}

/// Shows sorted diagnostics. Where a line has many, the last ones come without it.
fn by_line(
    out: &mut dyn Write,
    diagnostics: &[&Diagnostic],
    sources: &dyn Sources,
    style: Style,
) -> std::io::Result<()> {
    let mut lines = Lines::default();
    let mut place = |d: &Diagnostic| {
        let p = sources.locate(d.span)?;
        Some((p.file, lines.line_column(p.text, p.start)))
    };
    let mut drawn = [0; 3];
    let all: Vec<_> = diagnostics.iter().map(|d| (place(d), *d)).collect();
    for here in all.chunk_by(|(a, _), (b, _)| a.zip(*b).is_some_and(|(a, b)| (a.0, a.1.0) == (b.0, b.1.0))) {
        for (kind, severity) in [Severity::Error, Severity::Warning, Severity::Note].into_iter().enumerate() {
            let of_kind: Vec<_> = here.iter().filter(|(_, d)| d.severity() == severity).collect();
            let (full, rest) = of_kind.split_at(of_kind.len().min(IN_FULL));
            for (place, d) in full {
                match place {
                    Some((file, (line, column))) if drawn[kind] >= DRAWN => {
                        writeln!(out, "{}[{}]: {file}:{line}:{column}: {}", severity_name(d), d.code, d.message)?;
                    }
                    _ => {
                        drawn[kind] += 1;
                        snippet::show(out, d, sources, style)?;
                        trailer(out, d, sources)?;
                    }
                }
            }
            if let Some((Some((file, (line, _))), first)) = rest.first() {
                let (name, plural) = (severity_name(first), if rest.len() == 1 { "" } else { "s" });
                writeln!(out, "{name}: {} more {name}{plural} in line {line} of {file}", rest.len())?;
            }
            for (place, d) in rest.iter().take(NAMED) {
                let column = place.map_or(0, |(_, (_, column))| column);
                writeln!(out, "  = column {column}: [{}] {}", d.code, d.message)?;
            }
            if rest.len() > NAMED {
                writeln!(out, "  = and {} more", rest.len() - NAMED)?;
            }
        }
    }
    Ok(())
}

/// A diagnostic about the translated text of an ONNX file names the node that the line stands for: the remark on it.
fn in_words_of_a_model(d: &Diagnostic, sources: &dyn Sources) -> Diagnostic {
    let node = [d.span].into_iter().chain(d.labels.iter().map(|l| l.span)).find_map(|span| {
        let place = sources.locate(span).filter(|p| p.file.ends_with(".onnx"))?;
        let text = place.text;
        let before = text.get(..place.start)?.rfind('\n').map_or(0, |i| i + 1);
        let line = text.get(before..)?.lines().next()?;
        Some((line.rsplit_once("  # ")?.1.to_owned(), place.file))
    });
    match node {
        Some((node, file)) => d.clone().note(format!("the line stands for {node}, in the file `{file}`")),
        None => d.clone(),
    }
}

fn severity_name(d: &Diagnostic) -> &'static str {
    match d.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// A message with the expressions that it names.
fn spelled<'a>(text: &'a str, sources: &dyn Sources) -> Cow<'a, str> {
    quote::spelled(text, |span| sources.locate(span).and_then(|p| p.text.get(p.start..p.end)))
}

fn trailer(out: &mut dyn Write, d: &Diagnostic, sources: &dyn Sources) -> std::io::Result<()> {
    if let Some(w) = &d.witness {
        writeln!(out, "  = for example {w}")?;
    }
    for n in &d.notes {
        writeln!(out, "  = note: {}", spelled(n, sources))?;
    }
    for f in &d.fixes {
        writeln!(out, "  = help: {}", spelled(&f.title, sources))?;
    }
    Ok(())
}

/// Line and column from 1; columns count characters.
pub fn line_column(text: &str, at: usize) -> (usize, usize) {
    let at = snippet::clamp(text, at, at).start.min(text.len());
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn span_json(span: Span, sources: &dyn Sources, lines: &mut Lines) -> serde_json::Value {
    match sources.locate(span) {
        None => serde_json::Value::Null,
        Some(p) => {
            let (line, column) = lines.line_column(p.text, p.start);
            let (end_line, end_column) = lines.line_column(p.text, p.end);
            json!({"file": p.file, "line": line, "column": column, "end_line": end_line, "end_column": end_column, "start": p.start, "end": p.end})
        }
    }
}

/// One diagnostic as a JSON object.
pub fn to_json(d: &Diagnostic, sources: &dyn Sources) -> serde_json::Value {
    in_json(d, sources, &mut Lines::default())
}

fn in_json(d: &Diagnostic, sources: &dyn Sources, lines: &mut Lines) -> serde_json::Value {
    let mut span = |span| span_json(span, sources, lines);
    json!({
        "severity": severity_name(d),
        "code": d.code.name(),
        "message": d.message,
        "span": span(d.span),
        "label": d.label,
        "labels": d.labels.iter().map(|l| json!({"span": span(l.span), "text": l.text})).collect::<Vec<_>>(),
        "witness": d.witness,
        "notes": d.notes.iter().map(|n| spelled(n, sources)).collect::<Vec<_>>(),
        "fixes": d.fixes.iter().map(|f| json!({
            "title": spelled(&f.title, sources),
            "edits": f.edits.iter().map(|e| json!({"span": span(e.span), "text": e.text})).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}
