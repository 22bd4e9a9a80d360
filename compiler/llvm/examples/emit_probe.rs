#[path = "../tests/support/mod.rs"]
mod support;
use support::*;
use tessera_base::DType;
use tessera_ops::prim::Reduction;
fn main() {
    let mut b = Build::default();
    let x = b.input(&[64, 256, 2048], DType::F32);
    let r = b.reduce(Reduction::Sum, x, &[0, 2]);
    let c = compile(&b, r);
    println!("{:#?}", c.schedule.directives);
    let t = tessera_llvm::HostTarget::host().unwrap();
    for s in &c.lowered.steps {
        println!("{}", tessera_llvm::text(&s.kernel, &t, tessera_llvm::Emission::Assembly).unwrap());
    }
}
