//! The figures of the documentation: what its programs save.

use crate::golden::blocks;
use crate::program::{root, run_in};
use std::path::Path;

/// The pages whose figures are drawn by their programs. A picture `PAGE/NAME.svg` is what a program of the page saves as `NAME.svg`.
pub const PAGES: &[&str] = &["plots", "gallery"];

/// Where the figures of a page lie below `docs`, with their texts, in order.
///
/// # Errors
/// In words, where a program fails, or draws no figure that the page shows.
pub fn of_page(page: &str) -> std::io::Result<Vec<(String, String)>> {
    let text = std::fs::read_to_string(root().join("docs").join(format!("{page}.md")))?;
    let shown: Vec<&str> =
        text.split(&format!("]({page}/")).skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let mut out = vec![];
    for block in blocks(&text).iter().filter(|b| b.info == "tessera" && b.text.contains("plot.save(")) {
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("main.tsr"), &block.text)?;
        let ran = run_in(dir.path(), &["run", "main.tsr"], "")?;
        if ran.code != 0 {
            return Err(std::io::Error::other(format!("docs/{page}.md:{}: {}", block.line, ran.err)));
        }
        for name in shown.iter().filter(|name| dir.path().join(name).exists()) {
            out.push((format!("{page}/{name}"), std::fs::read_to_string(dir.path().join(name))?));
        }
    }
    match shown.iter().find(|name| !out.iter().any(|(path, _)| Path::new(path).ends_with(name))) {
        Some(name) => Err(std::io::Error::other(format!("docs/{page}.md: no program draws {name}"))),
        None => Ok(out),
    }
}
