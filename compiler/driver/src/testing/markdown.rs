//! The `>>>` examples of Markdown: each block is a case, and the blocks of a file are one session.

use super::cases::{Case, Statement, What, example};

/// Languages of fenced blocks whose examples count.
const LANGUAGES: &[&str] = &["", "tessera", "tsr"];

/// The examples of a Markdown file, in order.
pub fn of_document(text: &str) -> Vec<Case> {
    let mut out = vec![];
    let mut heading = String::new();
    // The fence that is open, whether its block counts, and the lines of the block with the number of its first one.
    let mut fence: Option<String> = None;
    let mut counts = true;
    let (mut block, mut first): (Vec<&str>, usize) = (vec![], 1);
    for (i, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        let marks = bare.chars().take_while(|c| *c == '`').count().max(bare.chars().take_while(|c| *c == '~').count());
        match &fence {
            None if marks >= 3 => {
                close(&mut block, first, &heading, counts, &mut out);
                let language = bare[marks..].split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
                counts = LANGUAGES.contains(&language);
                fence = Some(bare[..marks].to_owned());
                first = i + 2;
            }
            Some(opened)
                if bare.trim_end() == opened || bare.starts_with(opened.as_str()) && bare.trim_end().len() == marks =>
            {
                close(&mut block, first, &heading, counts, &mut out);
                (fence, counts, first) = (None, true, i + 2);
            }
            None if bare.starts_with('#') => {
                close(&mut block, first, &heading, counts, &mut out);
                heading = bare.trim_start_matches('#').trim().to_owned();
                first = i + 2;
            }
            // Outside of fences a paragraph is a block.
            None if bare.is_empty() => {
                close(&mut block, first, &heading, counts, &mut out);
                first = i + 2;
            }
            _ => block.push(line),
        }
    }
    close(&mut block, first, &heading, counts, &mut out);
    out
}

/// Ends a block, whose lines begin at line `first` of the file.
fn close(block: &mut Vec<&str>, first: usize, heading: &str, counts: bool, out: &mut Vec<Case>) {
    let lines = std::mem::take(block);
    if !counts || !lines.iter().any(|l| l.trim_start().starts_with(">>>")) {
        return;
    }
    let mut next = 0;
    let find = |wanted: &str| {
        let at = next + lines.get(next..)?.iter().position(|l| l.trim() == wanted)?;
        next = at + 1;
        Some((0, first + at))
    };
    let statements: Vec<Statement> = example(&lines.join("\n"), first, find);
    let Some(line) = statements.first().map(|s| s.line) else { return };
    let under = if heading.is_empty() { String::new() } else { format!(" under {heading}") };
    out.push(Case { name: format!("example at line {line}{under}"), line, what: What::Example(statements) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cases_with_their_lines() {
        let text = "# Sums\n\nText.\n\n```tessera\n>>> x = 1\n>>> x + 1\n2\n```\n\n```python\n>>> import os\n```\n\n>>> 3\n3\n\n~~~\n>>> def f(n):\n...     return n\n>>> f(1)\nint 1\n~~~\n";
        let found = of_document(text);
        let shown: Vec<(&str, usize)> = found.iter().map(|c| (c.name.as_str(), c.line)).collect();
        assert_eq!(
            shown,
            [
                ("example at line 6 under Sums", 6),
                ("example at line 15 under Sums", 15),
                ("example at line 19 under Sums", 19)
            ]
        );
        let What::Example(last) = &found[2].what else { panic!("no example") };
        assert_eq!(
            (last[0].text().as_str(), last[1].line, last[1].expected.as_str()),
            ("def f(n):\n    return n", 21, "int 1\n")
        );
        assert!(of_document("```\n").is_empty() && of_document("").is_empty());
    }
}
