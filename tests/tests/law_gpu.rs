//! Programs have the bits of the processor on a GPU: its kernels run in the interpreter of PTX behind the stand-in for the
//! driver, which checks every access and finds lanes that do not wait for each other.
//!
//! `TESSERA_SEED=N` runs one random program, `TESSERA_PROGRAMS=N` so many.

use std::sync::Arc;
use tessera::target::{Cuda, Target};
use tessera_tests::{on_device, standin};

#[test]
fn random_programs_have_the_bits_of_the_processor() {
    standin::take();
    let target: Arc<dyn Target> = Arc::new(Cuda::first());
    let usual = if cfg!(debug_assertions) { 20 } else { 300 };
    // The order of this machine's instruction for bf16 is one that a GPU does not have.
    let failures = on_device::random_programs(&target, usual, |order| !order.is_paired());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n----\n"));
}

#[test]
fn programs_of_the_documents_print_the_same() {
    // More than 2^31 elements, one after the other: minutes in an interpreter. OpenCL and the processor run it.
    // So are the programs of the gallery, of thousands of steps; one of them stacks more tensors than a launch takes operands.
    let apart = [("run/positions.md", "2147483700"), ("docs/gallery.md", "")];
    let failures = on_device::programs_of_documents(|source| standin::run_on_gpu(source, &[]), &apart);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n----\n"));
}
