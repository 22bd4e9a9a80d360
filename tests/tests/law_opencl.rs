//! Programs have the bits of the processor on a device of OpenCL: the one that `TESSERA_OPENCL` leads to, or the processor
//! itself behind what `./x fetch opencl` obtains; left out where there is neither.
//!
//! `TESSERA_SEED=N` runs one random program, `TESSERA_PROGRAMS=N` so many.

use std::sync::Arc;
use tessera::target::{OpenCl, Target};
use tessera_ops::prim::Order;
use tessera_tests::{on_device, opencl};

#[test]
fn random_programs_have_the_bits_of_the_processor() {
    if !opencl::take() {
        return;
    }
    let target: Arc<dyn Target> = Arc::new(OpenCl::first());
    let usual = if cfg!(debug_assertions) { 20 } else { 200 };
    let failures = on_device::random_programs(&target, usual, |order| order == Order::Chain);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n----\n"));
}

#[test]
fn programs_of_the_documents_print_the_same() {
    if !opencl::take() {
        return;
    }
    let failures = on_device::programs_of_documents(|source| opencl::run(source, &[]), &[]);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n----\n"));
}
