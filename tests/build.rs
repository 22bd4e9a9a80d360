//! Compiles the parser for editors, which `tests/tree_sitter.rs` compares with the compiler's.

fn main() {
    let src = "../editors/tree-sitter-tessera/src";
    let files = ["parser.c", "scanner.c"].map(|file| format!("{src}/{file}"));
    for file in &files {
        println!("cargo:rerun-if-changed={file}");
    }
    cc::Build::new().include(src).files(&files).warnings(false).compile("tree_sitter_tessera");
}
