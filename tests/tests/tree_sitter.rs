//! The grammar for editors (`editors/tree-sitter-tessera`) accepts what the compiler's parser
//! accepts, and nothing else.

use std::collections::BTreeMap;
use std::path::Path;
use tessera_base::{Code, ItemId};
use tessera_grammar::token::lex;
use tessera_grammar::{parse_item, split};
use tessera_tests::documents::programs;
use tessera_tests::program::root;
use tessera_tests::random::Random;
use tree_sitter::{Language, Parser, ffi::TSLanguage};

const SEED: u64 = 20;
const MUTATIONS: usize = 2000;

/// What the compiler finds on the tree: the grammar for editors cannot know.
const ON_THE_TREE: &[Code] = &[Code::E0009, Code::E0011];

unsafe extern "C" {
    fn tree_sitter_tessera() -> *const TSLanguage;
}

fn editor() -> Parser {
    let mut parser = Parser::new();
    // SAFETY: the function belongs to the parser that the build script links in, and gives a table of its own that lives for ever.
    let language = unsafe { Language::from_raw(tree_sitter_tessera()) };
    parser.set_language(&language).expect("a parser of a version that the library reads");
    parser
}

fn editor_accepts(parser: &mut Parser, text: &str) -> bool {
    parser.parse(text, None).is_some_and(|tree| !tree.root_node().has_error())
}

/// What the compiler's parser says.
fn complaints(text: &str) -> Vec<Code> {
    let file = split(text);
    let mut codes: Vec<Code> = file.diagnostics.iter().map(|d| d.code).collect();
    for item in &file.items {
        let part = &text[item.range.start as usize..item.range.end as usize];
        codes.extend(parse_item(part, ItemId(0)).diagnostics.iter().map(|d| d.code));
    }
    codes
}

fn sources(dir: &Path, out: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "tsr") {
            out.insert(path.display().to_string(), std::fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

/// Every program of the repository, by its place.
fn texts() -> BTreeMap<String, String> {
    let mut out: BTreeMap<String, String> = programs().into_iter().map(|p| (p.place, p.source)).collect();
    for dir in ["examples", "std", "tests"] {
        sources(&root().join(dir), &mut out);
    }
    out
}

/// How the two disagree over a text, if they do.
fn disagreement(parser: &mut Parser, text: &str) -> Option<&'static str> {
    let found = complaints(text);
    match (found.is_empty(), editor_accepts(parser, text)) {
        (true, false) => Some("refused for the editor only"),
        (false, true) if !found.iter().all(|code| ON_THE_TREE.contains(code)) => Some("refused by the compiler only"),
        _ => None,
    }
}

/// Characters and words that few programs hold.
const RARE: &[&str] = &[
    "$", "!", "\\", "'", "\"", "\"\"\"", "f'", "f\"{", "{", "}", "(", ")", "[", "]", ":=", "!=", "**", "->", "...",
    ";", "0x", "1_", "2e5", ".5", "class", "yield", "not", "is", "in", "if", "else", "lambda", "return", "break", "*",
    "@", "\n", "\n    ", "\n\t", "  ", "\\\n", "# c", "é", "=", ",", ":", ".", "\r\n",
];

fn pick<'t>(random: &mut Random, text: &'t str) -> &'t str {
    let tokens = lex(text);
    if tokens.is_empty() { "" } else { tokens[random.below(tokens.len())].text(text) }
}

/// One change of a token, a character, the indentation of a line, or the length of the text.
fn mutated(random: &mut Random, text: &str, other: &str) -> String {
    let mut out = text.to_owned();
    let tokens = lex(text);
    if tokens.is_empty() {
        return pick(random, other).to_owned();
    }
    let place = random.below(tokens.len());
    let at = tokens[place].range();
    match random.below(12) {
        0 | 1 => out.replace_range(at, ""),
        2 => out.insert_str(at.start, tokens[place].text(text)),
        3 | 4 => {
            let with = tokens[(place + 1 + random.below(4)).min(tokens.len() - 1)].range();
            if at.start < with.start {
                let middle = &text[at.end..with.start];
                out.replace_range(at.start..with.end, &format!("{}{middle}{}", &text[with.clone()], &text[at.clone()]));
            }
        }
        5 | 6 => out.insert_str(at.start, pick(random, other)),
        7 => out.insert_str(at.start, RARE[random.below(RARE.len())]),
        8 => out.replace_range(at, pick(random, other)),
        9 => out.truncate(at.end),
        10 => {
            let mut end = random.below(text.len() + 1);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            match random.below(3) {
                0 => out.truncate(end),
                1 => out.insert_str(end, RARE[random.below(RARE.len())]),
                _ => drop(text[end..].chars().next().map(|c| out.replace_range(end..end + c.len_utf8(), ""))),
            }
        }
        _ => {
            let line = text[..at.start].rfind('\n').map_or(0, |n| n + 1);
            match random.below(3) {
                0 => out.insert_str(line, ["    ", " ", "\t"][random.below(3)]),
                1 if text[line..].starts_with("    ") => out.replace_range(line..line + 4, ""),
                _ if text[line..].starts_with(' ') => out.replace_range(line..line + 1, ""),
                _ => {}
            }
        }
    }
    out
}

/// Changes of random programs; each line says where the two disagree.
fn mutations(seed: u64, count: usize) -> Vec<(String, String)> {
    let texts: Vec<(String, String)> = texts().into_iter().filter(|(_, text)| text.len() < 6000).collect();
    let mut parser = editor();
    let mut random = Random::new(seed);
    let mut out = vec![];
    for _ in 0..count {
        let (place, text) = &texts[random.below(texts.len())];
        let other = &texts[random.below(texts.len())].1;
        let mut text = mutated(&mut random, text, other);
        if random.below(4) == 0 {
            text = mutated(&mut random, &text, other);
        }
        if let Some(how) = disagreement(&mut parser, &text) {
            out.push((format!("{how}, changed from {place}"), text));
        }
    }
    out
}

/// What a text of random pieces begins with, the pieces, and what it ends with.
const PIECES: &[(&str, &[&str], &str)] = &[
    ("x = ", &["0", "1", "9", "_", ".", "e", "E", "+", "-", "x", "b", "o", "a"], "\n"),
    (
        "f'",
        &["{", "}", "{{", "}}", "x", "'", "\"", "!r", "!", "=", ":", "\\", "n", "\n", "(", ")", ">", "f\"", "#"],
        "'\n",
    ),
    ("rf\"\"\"", &["{", "}", "}}", "x", "'", "\"", "!s", "!=", ":", "\\", "\n", "[", "]", "1", "f\""], "\"\"\"\n"),
    ("\"\"\"", &["\n", ">>> ", "... ", "x", "\\n", "\\", "\"", "  ", ">>>", "."], "\"\"\"\n"),
    (
        "",
        &["x", "\n", " ", "\t", "if a:", "if a:\n  ", "#c\n", "\\\n", "\\", "else:", "\r\n", ";", "(", ")", "pass"],
        "",
    ),
    (
        "",
        &[
            "a\n",
            "if a:\n",
            "else:\n",
            "  ",
            "  ",
            "    ",
            "\t",
            "# c\n",
            "\n",
            "\\\n",
            "struct S:\n",
            "x: int\n",
            "@d\n",
        ],
        "",
    ),
    ("def f(", &["a", ",", "b", "=1", ":int", "*", "*c", ", d", ", e=2", ",*", ", *g"], "): pass\n"),
    (
        "",
        &["a", "b.c", "d[0]", "(", ")", "[", "]", ",", " = ", "1", "f()", "+", " += ", ": int", " -> ", "{", "}"],
        "\n",
    ),
    (
        "x = ",
        &["a", " if ", " else ", " for b in ", "lambda: ", " not ", " is ", " in ", " < ", "-", "**", ":", "(", ")"],
        "\n",
    ),
];

#[test]
fn random_pieces_are_read_alike() {
    let mut parser = editor();
    let mut random = Random::new(SEED);
    let mut wrong = vec![];
    for (head, pieces, tail) in PIECES {
        for _ in 0..MUTATIONS {
            let middle: String = (0..1 + random.below(10)).map(|_| random.pick(pieces)).collect();
            let text = format!("{head}{middle}{tail}");
            wrong.extend(disagreement(&mut parser, &text).map(|how| format!("{how}: {text:?}")));
        }
    }
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_program_is_read_alike() {
    let mut parser = editor();
    let wrong: Vec<String> = texts()
        .iter()
        .filter_map(|(place, text)| Some(format!("{place}: {}", disagreement(&mut parser, text)?)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn changed_programs_are_read_alike() {
    let wrong: Vec<String> =
        mutations(SEED, MUTATIONS).into_iter().map(|(how, text)| format!("{how}:\n{text}")).collect();
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), wrong.join("\n----\n"));
}
