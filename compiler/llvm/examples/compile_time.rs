//! What compiling costs: `cargo run --release -p tessera-llvm --example compile_time`.

#[path = "../tests/support/mod.rs"]
mod support;

use support::{Build, compile};
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::prim::Reduction;

fn cpu_ms() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 * 1e3 + t.tv_nsec as f64 * 1e-6
}

fn softmax(b: &mut Build, rows: u64, columns: u64) -> NodeId {
    let x = b.input(&[rows, columns], DType::F32);
    let m = b.reduce(Reduction::Max, x, &[1]);
    let m = b.broadcast(m, &[0], &[rows, columns]);
    let d = b.map("sub", &[x, m]);
    let e = b.map("exp", &[d]);
    let s = b.reduce(Reduction::Sum, e, &[1]);
    let s = b.broadcast(s, &[0], &[rows, columns]);
    b.map("div", &[e, s])
}

fn main() {
    let start = cpu_ms();
    let target = tessera_llvm::HostTarget::host().unwrap_or_else(|e| panic!("{e}"));
    println!("loading LLVM: {:.1} ms", cpu_ms() - start);
    type Make = fn(&mut Build) -> NodeId;
    let cases: [(&str, Make); 8] = [
        ("add", |b| {
            let x = b.input(&[1000], DType::F32);
            b.map("add", &[x, x])
        }),
        ("exp", |b| {
            let x = b.input(&[1000], DType::F32);
            b.map("exp", &[x])
        }),
        ("gelu bf16", |b| {
            let x = b.input(&[1000], DType::Bf16);
            b.map("gelu", &[x])
        }),
        ("sum rows", |b| {
            let x = b.input(&[100, 100], DType::F32);
            b.reduce(Reduction::Sum, x, &[1])
        }),
        ("sum columns", |b| {
            let x = b.input(&[100, 100], DType::F32);
            b.reduce(Reduction::Sum, x, &[0])
        }),
        ("softmax", |b| softmax(b, 100, 100)),
        ("matmul 128", |b| {
            let (x, y) = (b.input(&[128, 128], DType::F32), b.input(&[128, 128], DType::F32));
            b.dot(x, y)
        }),
        ("matmul 1000", |b| {
            let (x, y) = (b.input(&[1000, 1000], DType::F32), b.input(&[1000, 1000], DType::F32));
            b.dot(x, y)
        }),
    ];
    for (name, make) in cases {
        let mut b = Build::default();
        let root = make(&mut b);
        let c = compile(&b, root);
        for step in &c.lowered.steps {
            let mut least = f64::MAX;
            let mut object = vec![];
            for _ in 0..10 {
                let t = cpu_ms();
                object = tessera_llvm::compile(&step.kernel, &target).unwrap_or_else(|e| panic!("{e}"));
                least = least.min(cpu_ms() - t);
            }
            let t = cpu_ms();
            let kernel = tessera_llvm::load(&object, &step.kernel.name);
            let load = cpu_ms() - t;
            println!(
                "{name} ({}): {least:.2} ms, {} bytes, loads in {:.0} us {}",
                step.kernel.name,
                object.len(),
                load * 1e3,
                kernel.is_ok()
            );
        }
    }
}
