//! Prints the Tile IR and the assembly of a few kernels: `cargo run -p tessera-llvm --example emit_kernel NAME`.

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
        _ => {
            let (x, y) = (b.input(&[128, 128], DType::F32), b.input(&[128, 128], DType::F32));
            b.dot(x, y)
        }
    };
    let c = compile(&b, root);
    println!("{}", tessera_ir::schedule::text::print(&c.schedule));
    let target = tessera_llvm::HostTarget::host().unwrap_or_else(|e| panic!("{e}"));
    for s in &c.lowered.steps {
        println!("{}", tessera_ir::tile::text::print(&s.kernel));
        println!("{}", tessera_llvm::text(&s.kernel, &target, tessera_llvm::Emission::Assembly).unwrap_or_else(|e| panic!("{e}")));
    }
}
