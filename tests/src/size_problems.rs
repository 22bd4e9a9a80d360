//! The problems about sizes in `tests/sizes`.

use crate::golden::blocks;
use crate::program::root;

/// One program and what is to be said of it: `accepted`, `refused E02` (the start of a code), or `checked`.
pub struct Problem {
    /// The file and the heading.
    pub place: String,
    pub heading: String,
    pub verdict: String,
    pub program: String,
}

/// All of them, in the order of the files.
pub fn problems() -> Vec<Problem> {
    let mut files: Vec<_> = std::fs::read_dir(root().join("tests/sizes"))
        .expect("the problems are there")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    files.sort();
    let mut out = vec![];
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file of problems can be read");
        for block in blocks(&text) {
            let Some(verdict) = block.info.strip_prefix("tessera ") else { continue };
            out.push(Problem {
                place: format!("{}: {}", file.display(), block.heading),
                heading: block.heading.clone(),
                verdict: verdict.to_owned(),
                program: block.text,
            });
        }
    }
    out
}
