//! The pages of the diagnostics: an index, and one page for each class.

use std::fmt::Write;
use tessera_base::Code;

/// Classes: how their codes begin, the file under `docs/errors`, the title, and what is in it.
const CLASSES: &[(&str, &str, &str, &str)] = &[
    ("E00", "syntax", "Syntax", "The text is no program."),
    ("E01", "names", "Names and modules", "A name refers to nothing, or to what it should not."),
    ("E02", "types", "Types, sizes and dtypes", "A value is not what its place needs."),
    ("E03", "effects", "Effects and mutation", "Something acts or changes a value where that is not possible."),
    ("E04", "meshes", "Meshes and sharding", "A layout over devices that does not work out."),
    ("E05", "kernels", "Kernels and schedules", "A kernel, a directive or a policy that does not work out."),
    ("E06", "targets", "Targets and devices", "The machine or the cache does not do what the program needs."),
    ("E07", "run-time", "Run time", "The program was right as far as could be told, and stopped while it ran."),
    ("E08", "budgets", "Budgets", "A function needs more than it may, or nothing tells what it needs."),
    ("E09", "limits", "Limits", "The program is larger or deeper than the compiler takes, or the compiler is wrong."),
    ("W", "warnings", "Warnings", "The program runs, and something about it is odd."),
];

/// The codes of a class.
fn codes(class: &str) -> impl Iterator<Item = Code> {
    Code::ALL.iter().copied().filter(move |c| c.name().starts_with(class))
}

/// Every page with its path under `docs`. What the programs print and say is left open.
pub fn pages() -> Vec<(String, String)> {
    let mut out = vec![("errors.md".to_owned(), index())];
    for (class, file, title, about) in CLASSES {
        let mut page = format!("# {title}\n\n{about} The [index](../errors.md) has all codes.\n");
        for code in codes(class) {
            let _ = write!(page, "\n<a id=\"{code}\"></a>\n\n{}", section(code));
        }
        out.push((format!("errors/{file}.md"), page));
    }
    out
}

/// All codes with their titles, each a link.
fn index() -> String {
    let mut out = String::from(
        "# Diagnostics\n\nEvery message has a code, and every code a page, which `tessera explain E0201` prints too. The tests run the\n\
         programs of the pages. A program with an error (`E`) is not started, or stops (`E07`); a warning (`W`) changes nothing.\n",
    );
    for (class, file, title, about) in CLASSES {
        let _ = write!(out, "\n## {title}\n\n{about}\n\n| code | |\n|---|---|\n");
        for code in codes(class) {
            let _ = writeln!(out, "| [{code}](errors/{file}.md#{code}) | {} |", code.title());
        }
    }
    out
}

/// The page of a code as a section: headings one deeper, programs as the book has them, codes as links.
fn section(code: Code) -> String {
    // What only an option looks for.
    let said = if code == Code::E0716 { "error check-nan" } else { "error" };
    let (mut out, mut inside) = (String::new(), None::<&str>);
    for line in code.page().trim_end().lines() {
        match inside {
            Some(follows) if line == "```" => {
                out.push_str("```\n");
                if !follows.is_empty() {
                    let _ = write!(out, "\n```{follows}\n```\n");
                }
                inside = None;
            }
            Some(_) => {
                let _ = writeln!(out, "{line}");
            }
            None => match line {
                "```tessera error" | "```tessera warning" => {
                    out.push_str("```tessera\n");
                    inside = Some(said);
                }
                "```tessera" => {
                    out.push_str("```tessera\n");
                    inside = Some("output");
                }
                // What a command says, and the like.
                "```" => {
                    out.push_str("```text\n");
                    inside = Some("");
                }
                _ if line.starts_with('#') => {
                    let _ = writeln!(out, "#{line}");
                }
                _ => {
                    let _ = writeln!(out, "{}", linked(line, code));
                }
            },
        }
    }
    out
}

/// A line with the codes in it as links, but for `own`, and for what stands in backticks.
fn linked(line: &str, own: Code) -> String {
    let mut out = String::new();
    for (i, part) in line.split('`').enumerate() {
        if i > 0 {
            out.push('`');
        }
        if i % 2 == 1 {
            out.push_str(part);
            continue;
        }
        for word in part.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let name = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let code = Code::ALL.iter().copied().find(|c| c.name() == name && *c != own);
            let class = code.and_then(|code| CLASSES.iter().find(|c| code.name().starts_with(c.0)));
            match class {
                Some((_, file, ..)) => {
                    let _ = write!(out, "[{name}]({file}.md#{name}){}", &word[name.len()..]);
                }
                None => out.push_str(word),
            }
        }
    }
    out
}
