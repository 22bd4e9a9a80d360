//! Links of the documentation lead somewhere, in the folder and in the book.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use tessera_tests::golden;
use tessera_tests::program::root;

/// The lines of a page that are outside of programs, without what stands in backticks.
fn text(page: &str) -> String {
    let (mut inside, mut out) = (false, String::new());
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            out.extend(line.split('`').step_by(2));
            out.push('\n');
        }
    }
    out
}

/// Where the links of a page lead; not those to the web.
fn links(page: &str) -> Vec<String> {
    let page = text(page);
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|t| !t.contains("://") && !t.starts_with("mailto:")).map(str::to_owned).collect()
}

/// What a heading is called in a link: small letters, `-` for spaces, and nothing for other signs.
fn slug(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then(|| c.to_lowercase().next().unwrap_or(c)),
    };
    // Of a link its words stay.
    let words = heading.split("](").enumerate().map(|(i, part)| match i {
        0 => part,
        _ => part.split_once(')').map_or("", |(_, rest)| rest),
    });
    words.collect::<String>().trim().chars().filter_map(kept).collect()
}

/// Everything on a page that a link can name.
fn anchors(page: &str) -> BTreeSet<String> {
    let (mut out, mut inside) = (BTreeSet::new(), false);
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside && line.starts_with('#') {
            let name = slug(line.trim_start_matches('#'));
            let free = (0..).map(|n| if n == 0 { name.clone() } else { format!("{name}-{n}") });
            out.extend(free.into_iter().find(|n| !out.contains(n)));
        } else if let Some((id, _)) = line.strip_prefix("<a id=\"").and_then(|rest| rest.split_once('"')) {
            out.insert(id.to_owned());
        }
    }
    out
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// The pages whose links are read, by their paths.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut paths = golden::files(&root().join("docs"));
    paths.extend(["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "editors/README.md"].map(|name| root().join(name)));
    paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap_or_default())).collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let (pages, docs) = (pages(), root().join("docs"));
    let mut complaints = vec![];
    for (path, page) in &pages {
        for link in links(page) {
            let mut complain = |what: &str| complaints.push(format!("{}: `{link}`: {what}", path.display()));
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let folder = path.parent().unwrap_or(path);
            let target = if file.is_empty() { path.clone() } else { plain(&folder.join(file)) };
            if !target.exists() {
                complain("there is no such file");
            } else if path.starts_with(&docs) && !target.starts_with(&docs) && file.ends_with(".md") {
                // The book makes pages of its own files only.
                complain("the book has no such page; link the folder");
            } else if !anchor.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap_or_default();
                if !anchors(&text).contains(anchor) {
                    complain("the page has no such heading");
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_page_is_in_the_book() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap_or_default();
    let listed: BTreeSet<PathBuf> = links(&summary).iter().map(|link| docs.join(link)).collect();
    let all = golden::files(&docs).into_iter().filter(|path| !path.ends_with("SUMMARY.md"));
    let missing: Vec<PathBuf> = all.filter(|path| !listed.contains(path)).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not list {missing:?}");
}

#[test]
fn headings_are_named_as_in_the_book() {
    assert_eq!(slug(" 18. What is not there yet"), "18-what-is-not-there-yet");
    assert_eq!(slug(" E0201: A `size`, or [two](x.md)!"), "e0201-a-size-or-two");
    let found = anchors("# A b\n```\n# no\n```\n## A b\n<a id=\"E1\"></a>\n");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["E1", "a-b", "a-b-1"]);
    assert_eq!(links("[a](b.md#c) `[x](y)` [d](https://e)\n```\n[f](g)\n```\n"), ["b.md#c"]);
}
