//! One diagnostic with the lines that it is about (ariadne). Of long lines only what is near a label is
//! shown.

use super::{SourceLocation, Sources, Style, severity_name};
use ariadne::{CharSet, Color, Config, IndexType, Label, Report, ReportKind};
use std::io::Write;
use std::ops::Range;
use tessera_base::{Diagnostic, Severity};

/// Characters of a line that is shown whole.
const LINE_MAX: usize = 160;
/// Characters that are shown before and behind each end of a label in longer ones.
const AROUND: usize = 40;

/// A label in its file.
struct Marked<'a> {
    place: SourceLocation<'a>,
    text: &'a str,
    color: Color,
    priority: i32,
}

impl Marked<'_> {
    /// The number of the line on which it ends.
    fn last_line(&self) -> usize {
        let range = clamp(self.place.text, self.place.start, self.place.end);
        let end = range.end.saturating_sub(1).max(range.start);
        self.place.text.as_bytes()[..end].iter().filter(|b| **b == b'\n').count()
    }
}

/// Writes a diagnostic without its notes.
pub fn show(out: &mut dyn Write, d: &Diagnostic, sources: &dyn Sources, style: Style) -> std::io::Result<()> {
    let kind_color = match d.severity() {
        Severity::Error => Color::Red,
        Severity::Warning => Color::Yellow,
        Severity::Note => Color::Blue,
    };
    let header = format!("{}[{}]", severity_name(d), d.code);
    let Some(place) = sources.locate(d.span) else { return writeln!(out, "{header}: {}", d.message) };
    // Without a text ariadne draws no underline.
    let text = if d.label.is_empty() { "here" } else { &d.label };
    let mut marks = vec![Marked { place, text, color: kind_color, priority: 10 }];
    for l in &d.labels {
        let Some(place) = sources.locate(l.span) else { continue };
        marks.push(Marked { place, text: &l.text, color: Color::Blue, priority: 0 });
    }
    let groups = groups(marks);
    let header: &'static str = Box::leak(header.into_boxed_str());
    let config = Config::default()
        .with_color(style.color)
        .with_index_type(IndexType::Char)
        .with_char_set(CharSet::Unicode)
        .with_tab_width(4);
    let (mut texts, mut labels) = (vec![], vec![]);
    for (i, group) in groups.iter().enumerate() {
        let text = group[0].place.text;
        let spans: Vec<_> = group.iter().map(|m| clamp(text, m.place.start, m.place.end)).collect();
        let (text, spans) = cut(text, &spans);
        for (mark, span) in group.iter().zip(spans) {
            let label = Label::new((name(i), span)).with_message(mark.text).with_color(mark.color);
            labels.push(label.with_priority(mark.priority).with_order(labels.len() as i32));
        }
        texts.push((name(i), text));
    }
    let report = Report::build(ReportKind::Custom(header, kind_color), (name(0), 0..0)).with_config(config);
    let mut written = vec![];
    report.with_message(&d.message).with_labels(labels).finish().write(ariadne::sources(texts), &mut written)?;
    let written = if style.color { written } else { without_escapes(&written) };
    out.write_all(placed(String::from_utf8_lossy(&written).into_owned(), &groups).as_bytes())
}

/// Each group is a source of its own under a name that no text has: ariadne begins all groups of a file
/// with the place of the first, and counts the columns of what it is given.
fn name(group: usize) -> String {
    format!("\u{1}{group}\u{1}")
}

/// Labels that are drawn together: of one file, and down its lines.
fn groups(marks: Vec<Marked<'_>>) -> Vec<Vec<Marked<'_>>> {
    let mut groups: Vec<Vec<Marked>> = vec![];
    for mark in marks {
        let follows = |last: &Marked| {
            let same = (last.place.file, last.place.text) == (mark.place.file, mark.place.text);
            same && last.last_line() <= mark.last_line()
        };
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(follows) => group.push(mark),
            _ => groups.push(vec![mark]),
        }
    }
    groups
}

/// The drawing with the places of the groups in place of their names.
fn placed(mut drawn: String, groups: &[Vec<Marked>]) -> String {
    for (i, group) in groups.iter().enumerate() {
        let Some((at, first)) = drawn.find(&format!("{}:", name(i))).zip(group.first()) else { continue };
        let end = drawn[at..].find(' ').map_or(drawn.len(), |n| at + n);
        let (line, column) = first.place.line_column();
        drawn.replace_range(at..end, &format!("{}:{line}:{column}", first.place.file));
    }
    drawn
}

/// The span inside its text: in range, on character borders, never empty where there is text.
pub(super) fn clamp(text: &str, start: usize, end: usize) -> std::ops::Range<usize> {
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

/// A text in which long lines with ends of spans are cut to what is around these, and the spans as
/// characters of it. Lines keep their numbers.
fn cut(text: &str, spans: &[Range<usize>]) -> (String, Vec<Range<usize>>) {
    let last = |r: &Range<usize>| r.start.max(text.floor_char_boundary(r.end.saturating_sub(1)));
    let ends: Vec<usize> = spans.iter().flat_map(|r| [r.start, last(r)]).collect();
    let mut out = String::new();
    // Pieces that were kept: their bytes, and the character at which each begins.
    let mut kept: Vec<(Range<usize>, usize)> = vec![];
    let (mut start, mut count) = (0, 0);
    for line in text.split_inclusive('\n') {
        let whole = start..start + line.len();
        let here: Vec<usize> = ends.iter().filter(|e| whole.contains(e)).map(|e| e - start).collect();
        let pieces = if here.is_empty() { whole_of(line) } else { pieces(line, here) };
        for (i, piece) in pieces.iter().enumerate() {
            if i > 0 || piece.start > 0 {
                out.push('…');
                count += 1;
            }
            let content = &line[piece.clone()];
            kept.push((start + piece.start..start + piece.end, count));
            out.push_str(content);
            count += content.chars().count();
        }
        start = whole.end;
    }
    let place = |byte: usize| {
        let piece = kept.iter().rfind(|(bytes, _)| bytes.start <= byte);
        piece.map_or(0, |(bytes, first)| first + text[bytes.start..byte.min(bytes.end)].chars().count())
    };
    let spans = spans.iter().map(|r| place(r.start)..if r.is_empty() { place(r.start) } else { place(last(r)) + 1 });
    let spans = spans.collect();
    (out, spans)
}

fn whole_of(line: &str) -> Vec<Range<usize>> {
    std::iter::once(0..line.len()).collect()
}

/// The parts of a line around these bytes; all of it where it is short.
fn pieces(line: &str, mut ends: Vec<usize>) -> Vec<Range<usize>> {
    let body = line.trim_end_matches(['\r', '\n']);
    if body.chars().count() <= LINE_MAX {
        return whole_of(line);
    }
    let back = |at: usize| line[..at].char_indices().rev().take(AROUND).last().map_or(at, |(i, _)| i);
    let on = |at: usize| line[at..].char_indices().nth(AROUND + 1).map_or(line.len(), |(i, _)| at + i);
    ends.sort_unstable();
    let mut out: Vec<Range<usize>> = vec![];
    for at in ends {
        let (from, to) = (back(at), on(at));
        match out.last_mut() {
            // A gap takes a character too.
            Some(before) if from <= before.end + 1 => before.end = to,
            _ => out.push(from..to),
        }
    }
    // The end of the line closes it.
    match out.last_mut() {
        Some(last) if last.end >= body.len() => last.end = line.len(),
        _ => out.push(body.len()..line.len()),
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What the spans are of a text, before and after it is cut.
    fn marked(text: &str, spans: &[Range<usize>]) -> (String, Vec<String>) {
        let (cut, found) = cut(text, spans);
        let part = |r: &Range<usize>| cut.chars().skip(r.start).take(r.len()).collect();
        let found = found.iter().map(part).collect();
        (cut, found)
    }

    #[test]
    fn short_lines_stay_and_long_ones_are_cut_around_labels() {
        let text = "ä = 1\nb = ü\n";
        assert_eq!(marked(text, &[0..2, 7..12]), (text.to_owned(), vec!["ä".to_owned(), "b = ü".to_owned()]));
        let long = format!("{}ä = here{}\nnext\n", "é".repeat(200), "z".repeat(300));
        let at = 400 + "ä = ".len();
        let next = long.len() - 5;
        let (cut, found) = marked(&long, &[at..at + 4, next..next + 4]);
        assert_eq!(found, ["here", "next"]);
        assert_eq!(cut, format!("…{}ä = here{}…\nnext\n", "é".repeat(36), "z".repeat(40)));
    }

    #[test]
    fn a_long_label_shows_its_ends() {
        let text = format!("f({})", "x, ".repeat(200));
        let (cut, found) = marked(&text, std::slice::from_ref(&(0..text.len())));
        assert_eq!(found, std::slice::from_ref(&cut));
        assert!(cut.starts_with("f(x, x") && cut.ends_with("x, )") && cut.contains('…'), "{cut}");
        assert!(cut.chars().count() < 100, "{cut}");
    }

    #[test]
    fn any_span_of_any_text_is_drawn() {
        let text = format!("{}\n\t\u{1}ß{}\r\n\nend", "αβ".repeat(120), "q".repeat(170));
        let borders: Vec<usize> = (0..=text.len()).filter(|&i| text.is_char_boundary(i)).step_by(7).collect();
        for &a in &borders {
            for &b in borders.iter().filter(|&&b| b >= a) {
                let range = clamp(&text, a, b);
                let (cut, found) = cut(&text, std::slice::from_ref(&range));
                assert_eq!(cut.matches('\n').count(), text.matches('\n').count());
                let part: String = cut.chars().skip(found[0].start).take(found[0].len()).collect();
                let whole = &text[range];
                assert!(part == whole || part.contains('…'), "{part:?} for {whole:?}");
            }
        }
    }
}
