//! Links the tool at a fixed address: nothing in it has to be moved when it starts, which takes a tenth of the time that a
//! small program takes.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
