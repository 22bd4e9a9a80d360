//! Diagnostics for people (ariadne) and for tools (JSON lines). The same value, two forms.

use ariadne::{CharSet, Color, Config, IndexType, Label, Report, ReportKind, Source};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use tessera_base::{Diagnostic, Severity, Span};

/// Where an item-relative span lies: file name, absolute bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub file: String,
    pub start: usize,
    pub end: usize,
}

/// What rendering asks of the owner of the source texts.
pub trait Sources {
    fn place(&self, span: Span) -> Option<Place>;
    fn text(&self, file: &str) -> Option<&str>;
}

/// How diagnostics are shown.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub color: bool,
    pub json: bool,
    pub quiet: bool,
}

/// Writes every diagnostic, errors and warnings in source order.
pub fn render(out: &mut dyn Write, diagnostics: &[Diagnostic], sources: &dyn Sources, style: Style) {
    let mut order: Vec<(usize, &Diagnostic)> = diagnostics.iter().enumerate().collect();
    order.sort_by_key(|(i, d)| {
        let place = sources.place(d.span);
        (place.map(|p| (p.file, p.start)), *i)
    });
    order.dedup_by(|(_, a), (_, b)| a == b);
    for (_, d) in order {
        if style.quiet && d.severity() != Severity::Error {
            continue;
        }
        let d = &in_words_of_a_model(d, sources);
        // A reader that closes the pipe early is not an error worth telling.
        let _ = if style.json { writeln!(out, "{}", to_json(d, sources)) } else { terminal(out, d, sources, style) };
    }
}

/// A diagnostic about the translated text of an ONNX file names the node that the line stands for: the remark on it.
fn in_words_of_a_model(d: &Diagnostic, sources: &dyn Sources) -> Diagnostic {
    let node = [d.span].into_iter().chain(d.labels.iter().map(|l| l.span)).find_map(|span| {
        let place = sources.place(span).filter(|p| p.file.ends_with(".onnx"))?;
        let text = sources.text(&place.file)?;
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

/// The span inside its text: in range, on character borders, never empty where there is text.
fn clamp(text: &str, start: usize, end: usize) -> std::ops::Range<usize> {
    let floor = |mut i: usize| {
        i = i.min(text.len());
        while !text.is_char_boundary(i) {
            i -= 1;
        }
        i
    };
    let start = floor(start);
    let end = floor(end.max(start));
    // At the end of a line or of the file there is nothing to underline: step back to the text.
    if start == end {
        if let Some(c) = text[start..].chars().next().filter(|c| *c != '\n') {
            return start..start + c.len_utf8();
        }
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        if let Some(c) = text[line_start..start].chars().next_back() {
            return start - c.len_utf8()..start;
        }
    }
    start..end
}

/// A clamped range of bytes as characters: ariadne counts bytes wrongly in the head of a second file.
fn characters(text: &str, start: usize, end: usize) -> std::ops::Range<usize> {
    let range = clamp(text, start, end);
    let before = text[..range.start].chars().count();
    before..before + text[range].chars().count()
}

fn terminal(out: &mut dyn Write, d: &Diagnostic, sources: &dyn Sources, style: Style) -> std::io::Result<()> {
    let kind_color = match d.severity() {
        Severity::Error => Color::Red,
        Severity::Warning => Color::Yellow,
        Severity::Note => Color::Blue,
    };
    let header = format!("{}[{}]", severity_name(d), d.code);
    let Some(place) = sources.place(d.span) else {
        writeln!(out, "{header}: {}", d.message)?;
        return trailer(out, d, "  ");
    };
    let mut texts: BTreeMap<String, Source<String>> = BTreeMap::new();
    let mut add = |file: &str| {
        if !texts.contains_key(file) {
            texts.insert(file.to_owned(), Source::from(sources.text(file).unwrap_or("").to_owned()));
        }
    };
    add(&place.file);
    let range = characters(sources.text(&place.file).unwrap_or(""), place.start, place.end);
    let header: &'static str = Box::leak(header.into_boxed_str());
    let config = Config::default()
        .with_color(style.color)
        .with_index_type(IndexType::Char)
        .with_char_set(CharSet::Unicode)
        .with_tab_width(4);
    let mut report = Report::build(ReportKind::Custom(header, kind_color), (place.file.clone(), range.clone()))
        .with_config(config)
        .with_message(&d.message);
    let mut label = Label::new((place.file.clone(), range)).with_color(kind_color).with_priority(10);
    // Without a text ariadne draws no underline.
    label = label.with_message(if d.label.is_empty() { "here" } else { &d.label });
    report = report.with_label(label);
    for (i, l) in d.labels.iter().enumerate() {
        let Some(p) = sources.place(l.span) else { continue };
        add(&p.file);
        let range = characters(sources.text(&p.file).unwrap_or(""), p.start, p.end);
        report = report.with_label(
            Label::new((p.file, range)).with_message(&l.text).with_color(Color::Blue).with_order(i as i32 + 1),
        );
    }
    let cache = ariadne::sources(texts.into_iter().map(|(f, s)| (f, s.text().to_owned())));
    let mut text = vec![];
    report.finish().write(cache, &mut text)?;
    out.write_all(&if style.color { text } else { without_escapes(&text) })?;
    trailer(out, d, "  ")
}

/// The text without terminal colors: the header of a custom report is colored regardless of
/// the configuration.
fn without_escapes(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(&b) = rest.next() {
        if b == 0x1b {
            rest.find(|b| b.is_ascii_alphabetic());
        } else {
            out.push(b);
        }
    }
    out
}

fn trailer(out: &mut dyn Write, d: &Diagnostic, indent: &str) -> std::io::Result<()> {
    if let Some(w) = &d.witness {
        writeln!(out, "{indent}= for example {w}")?;
    }
    for n in &d.notes {
        writeln!(out, "{indent}= note: {n}")?;
    }
    for f in &d.fixes {
        writeln!(out, "{indent}= help: {}", f.title)?;
    }
    Ok(())
}

/// Line and column from 1; columns count characters.
pub fn line_column(text: &str, at: usize) -> (usize, usize) {
    let at = clamp(text, at, at).start.min(text.len());
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn span_json(span: Span, sources: &dyn Sources) -> serde_json::Value {
    match sources.place(span) {
        None => serde_json::Value::Null,
        Some(p) => {
            let text = sources.text(&p.file).unwrap_or("");
            let (line, column) = line_column(text, p.start);
            let (end_line, end_column) = line_column(text, p.end);
            json!({"file": p.file, "line": line, "column": column, "end_line": end_line, "end_column": end_column, "start": p.start, "end": p.end})
        }
    }
}

/// One diagnostic as a JSON object.
pub fn to_json(d: &Diagnostic, sources: &dyn Sources) -> serde_json::Value {
    json!({
        "severity": severity_name(d),
        "code": d.code.name(),
        "message": d.message,
        "span": span_json(d.span, sources),
        "label": d.label,
        "labels": d.labels.iter().map(|l| json!({"span": span_json(l.span, sources), "text": l.text})).collect::<Vec<_>>(),
        "witness": d.witness,
        "notes": d.notes,
        "fixes": d.fixes.iter().map(|f| json!({
            "title": f.title,
            "edits": f.edits.iter().map(|e| json!({"span": span_json(e.span, sources), "text": e.text})).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}
