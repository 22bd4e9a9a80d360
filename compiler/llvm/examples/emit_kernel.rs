//! Prints the Tile IR and the assembly of a few kernels: `cargo run -p tessera-llvm --example emit_kernel NAME [ir]`
//! (`outer`, `mixed`, `exp`, or the size of a square product).

#[path = "../tests/support/mod.rs"]
mod support;

use support::{Build, compile};
use tessera_base::DType;
use tessera_ops::prim::Reduction;

fn main() {
    let mut b = Build::default();
    let root = match std::env::args().nth(1).as_deref() {
        Some("outer") => {
            let x = b.input(&[4096, 1024], DType::F32);
            b.reduce(Reduction::Sum, x, &[0])
        }
        Some("mixed") => {
            let x = b.input(&[64, 256, 2048], DType::F32);
            b.reduce(Reduction::Sum, x, &[0, 2])
        }
        Some("exp") => {
            let x = b.input(&[4096], DType::F32);
            b.map("exp", &[x])
        }
        size => {
            let n = size.and_then(|s| s.parse().ok()).unwrap_or(128);
            let (x, y) = (b.input(&[n, n], DType::F32), b.input(&[n, n], DType::F32));
            b.dot(x, y)
        }
    };
    let c = compile(&b, root);
    let ir = std::env::args().nth(2).as_deref() == Some("ir");
    let what = if ir { tessera_llvm::Emission::Optimized } else { tessera_llvm::Emission::Assembly };
    if !ir {
        println!("{}", tessera_ir::schedule::text::print(&c.schedule));
    }
    let target = tessera_llvm::HostTarget::host().unwrap_or_else(|e| panic!("{e}"));
    for s in &c.lowered.steps {
        if ir && s.kernel.name != c.schedule.name {
            continue;
        }
        if !ir {
            println!("{}", tessera_ir::tile::text::print(&s.kernel));
        }
        println!("{}", tessera_llvm::text(&s.kernel, &target, what).unwrap_or_else(|e| panic!("{e}")));
    }
}
