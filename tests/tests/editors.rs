//! The lists of names in the files for editors (`editors/`) are those of the compiler. With
//! `TESSERA_BLESS=1` they are written anew.

use std::collections::BTreeSet;
use std::path::PathBuf;
use tessera_base::DType;
use tessera_core::builtins::{FUNCTIONS, MODULES};
use tessera_grammar::token::{FOREIGN_KEYWORDS, KEYWORDS};
use tessera_ops::surface;
use tessera_tests::program::root;

/// Width that a line of words is broken at.
const WIDTH: usize = 110;

/// How a file marks its lists and writes them.
struct Editor {
    file: &'static str,
    /// Around the name of a list.
    open: (&'static str, &'static str),
    /// How the first line behind a list begins.
    close: &'static str,
    write: fn(list: &str, words: &[String]) -> Vec<String>,
}

const EDITORS: &[Editor] = &[
    Editor {
        file: "tree-sitter-tessera/grammar.js",
        open: ("// generated: ", ""),
        close: "// end",
        write: |_, words| wrapped("", words, |word| format!("'{word}',")),
    },
    Editor {
        file: "tree-sitter-tessera/queries/highlights.scm",
        open: ("; generated: ", ""),
        close: "; end",
        write: |_, words| wrapped("", words, quoted),
    },
    Editor {
        file: "vscode/syntaxes/tessera.tmLanguage.json",
        open: ("\"comment\": \"generated: ", "\","),
        close: "\"name\"",
        write: |list, words| vec![format!("\"match\": \"{}\",", expression(list).replace('$', &words.join("|")))],
    },
    Editor {
        file: "neovim/syntax/tessera.vim",
        open: ("\" generated: ", ""),
        close: "\" end",
        write: |list, words| {
            // Operators count behind `op.` only.
            let where_from = if list == "operators" { " contained" } else { "" };
            let head = format!("syntax keyword tessera{}{}{where_from}", list[..1].to_uppercase(), &list[1..]);
            wrapped(&head, words, str::to_owned)
        },
    },
    // Colours of the book.
    Editor {
        file: "../docs/theme/tessera.js",
        open: ("// generated: ", ""),
        close: "// end",
        write: |_, words| wrapped("", words, |word| format!("'{word}',")),
    },
    Editor {
        file: "emacs/tessera-mode.el",
        open: (";; generated: ", ""),
        close: ";; end",
        write: |_, words| wrapped("", words, quoted),
    },
];

fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

/// The expression that finds a name of a list, as JSON; `$` stands for the names.
fn expression(list: &str) -> &'static str {
    match list {
        "keywords" => r"\\b(?:$)\\b",
        "functions" => r"(?<![.\\w])(?:$)(?=\\s*\\()",
        "modules" => r"(?<![.\\w])(?:$)(?=\\s*\\.)",
        "operators" => r"(?<=\\bop\\.)(?:$)\\b",
        _ => r"(?<![.\\w])(?:$)\\b",
    }
}

/// Words in lines that begin with `head`.
fn wrapped(head: &str, words: &[String], write: fn(&str) -> String) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in words.iter().map(|word| write(word)) {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < WIDTH => *line = format!("{line} {word}"),
            _ => lines.push(format!("{head} {word}").trim_start().to_owned()),
        }
    }
    lines
}

/// The names of a list, sorted.
fn words(file: &str, list: &str) -> Vec<String> {
    let constant = |word: &&&str| word.starts_with(char::is_uppercase);
    let all: BTreeSet<String> = match list {
        // The grammar reserves all of them; elsewhere constants have a colour of their own.
        "keywords" if file.ends_with("grammar.js") => {
            KEYWORDS.iter().chain(FOREIGN_KEYWORDS).map(|word| word.to_string()).collect()
        }
        "keywords" => KEYWORDS.iter().filter(|word| !constant(word)).map(|word| word.to_string()).collect(),
        "constants" => KEYWORDS.iter().filter(constant).map(|word| word.to_string()).collect(),
        "functions" => FUNCTIONS.iter().map(|word| word.to_string()).collect(),
        "modules" => MODULES.iter().map(|word| word.to_string()).collect(),
        "dtypes" => DType::ALL.iter().map(|dtype| dtype.name().to_owned()).collect(),
        "operators" => surface::all().map(|operator| operator.name.to_owned()).collect(),
        other => panic!("{file}: there is no list `{other}`"),
    };
    all.into_iter().collect()
}

/// A text with its lists written anew.
fn renewed(editor: &Editor, text: &str) -> String {
    let mut out = String::new();
    let mut skipping = false;
    for line in text.lines() {
        let bare = line.trim_start();
        skipping &= !bare.starts_with(editor.close);
        if skipping {
            continue;
        }
        out.push_str(line);
        out.push('\n');
        let list = bare.strip_prefix(editor.open.0).and_then(|rest| rest.strip_suffix(editor.open.1));
        if let Some(list) = list {
            skipping = true;
            let indent = &line[..line.len() - bare.len()];
            for written in (editor.write)(list, &words(editor.file, list)) {
                out.push_str(&format!("{indent}{written}\n"));
            }
        }
    }
    assert!(!skipping, "{}: the last list does not end", editor.file);
    out
}

/// Compares a file with what it should hold, or writes it.
fn hold(file: &str, should: &str) {
    let path: PathBuf = root().join("editors").join(file);
    if std::env::var_os("TESSERA_BLESS").is_some() {
        return std::fs::write(&path, should).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    let is = read(file);
    let line = is.lines().zip(should.lines()).position(|(a, b)| a != b).unwrap_or(0) + 1;
    assert!(
        is == should,
        "editors/{file}:{line} differs from the compiler's lists; run this test with TESSERA_BLESS=1"
    );
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join("editors").join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn lists_are_those_of_the_compiler() {
    for editor in EDITORS {
        hold(editor.file, &renewed(editor, &read(editor.file)));
    }
}

#[test]
fn every_editor_has_every_list() {
    for editor in EDITORS {
        let text = read(editor.file);
        for list in ["keywords", "functions", "modules", "dtypes", "operators"] {
            let mark = format!("{}{list}{}", editor.open.0, editor.open.1);
            let found = text.lines().filter(|line| line.trim() == mark).count();
            let expected = usize::from(list == "keywords" || !editor.file.ends_with("grammar.js"));
            assert_eq!(found, expected, "{}: {list}", editor.file);
        }
    }
}

/// Zed wants its queries beside its other files.
#[test]
fn zed_has_the_same_colours() {
    let queries = renewed(&EDITORS[1], &read(EDITORS[1].file));
    hold("zed/languages/tessera/highlights.scm", &queries);
}

/// The clients of editors against the language server, the colours, the modes: as far as what they need is here.
#[test]
fn what_needs_other_programs_passes() {
    let ran = std::process::Command::new("sh")
        .arg(tessera_tests::program::root().join("editors/test.sh"))
        .env("TESSERA", tessera_tests::program::binary())
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&ran.stdout);
    eprintln!("{said}");
    assert!(ran.status.success(), "{said}");
}
