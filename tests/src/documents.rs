//! The programs of the golden files and of the documents.

use crate::golden::{Block, blocks, files};
use crate::program::root;

/// The pages under `docs` that are written by hand and have programs with what becomes of them.
pub const PAGES: &[&str] = &[
    "language.md",
    "autodiff.md",
    "kernels.md",
    "meshes.md",
    "numerics.md",
    "plots.md",
    "gallery.md",
    "tutorial.md",
    "from-numpy.md",
    "from-pytorch.md",
    "from-jax.md",
    "performance.md",
    "advice.md",
    "internals.md",
];

/// A program as it is written in a document.
pub struct Written {
    /// File and line.
    pub place: String,
    pub source: String,
    /// The blocks behind it, up to the next program: what is expected of it.
    pub follow: Vec<Block>,
}

fn is_program(block: &Block) -> bool {
    block.info.split(' ').next() == Some("tessera")
}

/// All of them, in order of the files' names.
pub fn programs() -> Vec<Written> {
    let mut out = vec![];
    for path in ["tests/golden", "docs", "compiler/base/pages"].iter().flat_map(|dir| files(&root().join(dir))) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for block in blocks(&text) {
            match (is_program(&block), out.last_mut()) {
                (true, _) => {
                    let place = format!("{}:{}", path.display(), block.line);
                    out.push(Written { place, source: block.text, follow: vec![] });
                }
                (false, Some(program)) => program.follow.push(block),
                (false, None) => {}
            }
        }
    }
    assert!(out.len() > 1000, "{} programs only", out.len());
    out
}
