//! Object code: what is in it, and what the loader does with damaged files.

mod support;

use support::{Build, Random, compile};
use tessera_base::DType;
use tessera_llvm::{Emission, HostTarget};
use tessera_ops::prim::Prim;

fn target() -> HostTarget {
    HostTarget::host().unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_damaged_object_is_an_error() {
    let mut b = Build::default();
    let x = b.input(&[100], DType::F32);
    let root = b.map("exp", &[x]);
    let c = compile(&b, root);
    let object = tessera_llvm::compile(&c.lowered.steps[0].kernel, &target()).unwrap_or_else(|e| panic!("{e}"));
    assert!(tessera_llvm::load(&object, "kernel").is_ok());
    assert!(tessera_llvm::load(&object, "another").is_err());
    for cut in (0..object.len() - 1).step_by(13) {
        let _ = tessera_llvm::load(&object[..cut], "kernel");
    }
    assert!(tessera_llvm::load(&object[..object.len() / 2], "kernel").is_err());
    let mut random = Random(1);
    for _ in 0..2000 {
        let mut bad = object.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bad.len() as u64) as usize;
            bad[at] = random.next() as u8;
        }
        let _ = tessera_llvm::load(&bad, "kernel");
    }
}

#[test]
fn the_same_kernel_gives_the_same_object() {
    let mut b = Build::default();
    let (x, y) = (b.input(&[64, 64], DType::F32), b.input(&[64, 64], DType::F32));
    let root = b.dot(x, y);
    let c = compile(&b, root);
    let make = || tessera_llvm::compile(&c.lowered.steps[0].kernel, &target()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(make(), make());
}

/// The accumulators of the register tile stay in registers.
#[test]
fn the_inner_loop_of_a_product_does_not_spill() {
    if !target().wide() {
        return;
    }
    let mut b = Build::default();
    let (x, y) = (b.input(&[280, 256], DType::F32), b.input(&[256, 320], DType::F32));
    let root = b.dot(x, y);
    let c = compile(&b, root);
    let kernel = &c.lowered.steps.last().expect("a kernel").kernel;
    let text = tessera_llvm::text(kernel, &target(), Emission::Assembly).unwrap_or_else(|e| panic!("{e}"));
    let blocks: Vec<&str> = text.split("\n.L").collect();
    let inner = blocks.iter().max_by_key(|b| b.matches("vfmadd").count()).expect("a block");
    assert_eq!(inner.matches("vfmadd").count(), 14 * 2 * 4, "{inner}");
    assert!(!inner.contains("rsp)"), "{inner}");
}

#[test]
fn nothing_is_contracted_or_reassociated() {
    let mut b = Build::default();
    let (x, y) = (b.input(&[64], DType::F32), b.input(&[64], DType::F32));
    let p = b.map("mul", &[x, y]);
    let root = b.map("add", &[p, x]);
    let c = compile(&b, root);
    let kernel = &c.lowered.steps[0].kernel;
    let ir = tessera_llvm::text(kernel, &target(), Emission::Optimized).unwrap_or_else(|e| panic!("{e}"));
    for flag in ["fast", "reassoc", "contract", "nnan", "ninf", "nsz", "arcp", "afn"] {
        assert!(!ir.contains(&format!("fadd {flag}")) && !ir.contains(&format!("fmul {flag}")), "{ir}");
    }
    let assembly = tessera_llvm::text(kernel, &target(), Emission::Assembly).unwrap_or_else(|e| panic!("{e}"));
    assert!(!assembly.contains("vfmadd"), "{assembly}");
}

/// A masked load of memory that is not there reads nothing, but takes a processor more than a hundred cycles to find out: a part
/// is not asked for where most of the whole lies beyond it.
#[test]
fn loads_stay_near_their_buffer() {
    let mut b = Build::default();
    let (x, y) = (b.input(&[100_000], DType::F32), b.input(&[100_000], DType::F32));
    let root = b.push(Prim::Concat { axis: 0 }, &[x, y], &[200_000], DType::F32);
    let c = compile(&b, root);
    let ir = tessera_llvm::text(&c.lowered.steps[0].kernel, &target(), Emission::Optimized);
    let ir = ir.unwrap_or_else(|e| panic!("{e}"));
    assert!(ir.contains("llvm.masked.load"), "{ir}");
    for bound in ["call i64 @llvm.smin.i64", "call i64 @llvm.smax.i64"] {
        assert!(ir.contains(bound), "{ir}");
    }
}
