//! A target takes one file, which is this one: programs have the bits of the processor on a device with memory of its own,
//! and what is on the device stays there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tessera::backend::{Backend, Options};
use tessera::cache::DiskCache;
use tessera::target::{Cpu, Target};
use tessera_abi::plan::{Code, Kernel, Step};
use tessera_base::Limits;
use tessera_ir::graph::Graph;
use tessera_ir::schedule::Machine;
use tessera_ir::tile::{self, Space};
use tessera_llvm::{Emission, LlvmError};
use tessera_runtime::device::Device;
use tessera_runtime::emulated::{Counts, EmulatedDevice, EmulatedKernel, Operand};
use tessera_runtime::execute::{Argument, Workspace, execute};
use tessera_runtime::pool::Pool;
use tessera_runtime::tensor::Tensor;
use tessera_tests::compare::{arguments, interpreted, outputs, same};
use tessera_tests::random_graph::{Scale, case};

/// A target whose kernels are kept in memory; its object code is their number.
#[derive(Default)]
struct Stub {
    kernels: Mutex<Vec<tile::Kernel>>,
}

impl Target for Stub {
    fn limits(&self) -> &'static Limits {
        &tessera_base::limits::CPU
    }

    fn machine(&self) -> Machine {
        tessera_schedule::reference()
    }

    fn fingerprint(&self) -> String {
        "stub".into()
    }

    fn compile(&self, kernel: &tile::Kernel) -> Result<Vec<u8>, LlvmError> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.push(kernel.clone());
        Ok((kernels.len() - 1).to_le_bytes().to_vec())
    }

    fn load(&self, object: &[u8], name: &str) -> Result<Kernel, LlvmError> {
        let number = usize::from_le_bytes(object.try_into().map_err(|_| LlvmError::internal("no number"))?);
        let kernel = self.kernels.lock().unwrap_or_else(PoisonError::into_inner)[number].clone();
        let operand =
            |b: &tile::Buf| Operand { bytes: b.elems * b.dtype.bytes() as u64, written: b.space != Space::In };
        let operands = kernel.bufs.iter().filter(|b| b.space != Space::Scratch).map(operand).collect();
        let run = move |tensors: &mut [Vec<u8>], words: &[u64]| {
            tessera_tile::interpret(&kernel, tensors, words).map_err(|fault| fault.message)
        };
        Ok(Kernel { name: name.into(), code: Code::Loaded(Arc::new(EmulatedKernel { operands, run: Box::new(run) })) })
    }

    fn text(&self, kernel: &tile::Kernel, what: Emission) -> Result<String, LlvmError> {
        Cpu.text(kernel, what)
    }

    fn again(&self, module: &str, assembly: bool) -> Result<String, LlvmError> {
        Cpu.again(module, assembly)
    }

    fn device(&self, pool: &Arc<Pool>) -> Arc<dyn Device> {
        Arc::new(EmulatedDevice::new(pool.clone()))
    }

    fn is_timed(&self) -> bool {
        false
    }
}

/// A backend for the stub, and a device of it that tells what it did.
fn stub() -> (Backend, EmulatedDevice) {
    let pool = Arc::new(Pool::new(1));
    let options = Options { quiet: true, always_compile: true, ..Options::default() };
    let backend = Backend::on(Arc::new(Stub::default()), options, DiskCache::new(None), pool.clone());
    (backend, EmulatedDevice::new(pool))
}

fn difference(before: Counts, after: Counts) -> Counts {
    Counts {
        launches: after.launches - before.launches,
        uploaded: after.uploaded - before.uploaded,
        downloaded: after.downloaded - before.downloaded,
        copied: after.copied - before.copied,
    }
}

#[test]
fn random_programs_have_the_bits_of_the_processor() {
    let (backend, device) = stub();
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..if cfg!(debug_assertions) { 20 } else { 400 } {
        let case = case(seed, Scale::Small);
        let graph = backend.optimise(&case.graph);
        let plan = backend.plan(&graph).unwrap_or_else(|e| panic!("seed {seed}: {e:?}"));
        for step in &plan.steps {
            let kind = match step {
                Step::Kernel { .. } => "kernel",
                Step::Host { .. } => "host",
                Step::Loop(_) => "loop",
                Step::Copy { .. } => "copy",
            };
            *kinds.entry(kind).or_default() += 1;
        }
        // The second time with memory that may be written over, on the device already for some of them.
        for offset in [0, 1] {
            let args = arguments(&graph, &case.inputs, offset).unwrap_or_else(|e| panic!("{}", e.what));
            let got = outputs(execute(&plan, args, &device, &mut Workspace::default()));
            let same = same("on the device", &graph, &interpreted(&graph, &case.inputs), &got);
            same.unwrap_or_else(|e| panic!("seed {seed}: {}\n{graph}", e.what));
        }
    }
    assert!(kinds.len() == 4, "{kinds:?}");
}

fn parsed(body: &str) -> Graph {
    let text = format!("\"tessera.graph\"() ({{\n{body}\n}})");
    tessera_ir::graph_text::parse(&text).unwrap_or_else(|e| panic!("{e:?}"))
}

fn floats(shape: &[u64]) -> Tensor {
    let n = shape.iter().product::<u64>();
    let bytes: Vec<u8> = (0..n).flat_map(|i| (i as f32 / 8.0).to_le_bytes()).collect();
    Tensor::from_bytes(tessera_base::DType::F32, shape, &bytes).unwrap_or_else(|e| panic!("{e:?}"))
}

#[test]
fn weights_go_to_the_device_once_and_results_stay_there() {
    let (backend, device) = stub();
    let graph = backend.optimise(&parsed(
        r#"%0 = "tessera.graph.input"() {index=0} : Tensor[4, 8, f32]
        %1 = "tessera.graph.input"() {index=1} : Tensor[8, 8, f32]
        %2 = "tessera.graph.dot"(%0, %1) {accum="f32"} : Tensor[4, 8, f32]
        %3 = "tessera.graph.tanh"(%2) : Tensor[4, 8, f32]
        "tessera.graph.return"(%3)"#,
    ));
    let plan = backend.plan(&graph).unwrap_or_else(|e| panic!("{e:?}"));
    let (mut x, w) = (floats(&[4, 8]), floats(&[8, 8]));
    let mut work = Workspace::default();
    for turn in 0..3 {
        let before = device.counts();
        let args = vec![Argument::Tensor(x), Argument::Tensor(w.clone())];
        let mut results = execute(&plan, args, &device, &mut work).unwrap_or_else(|e| panic!("{e:?}"));
        x = results.remove(0);
        let did = difference(before, device.counts());
        let uploaded = if turn == 0 { (4 * 8 + 8 * 8) * 4 } else { 0 };
        assert_eq!((did.uploaded, did.downloaded, did.copied), (uploaded, 0, 0), "turn {turn}");
    }
    let before = device.counts();
    let first = x.host().map(<[u8]>::to_vec);
    assert_eq!(x.host().map(<[u8]>::to_vec), first);
    assert_eq!(difference(before, device.counts()).downloaded, 4 * 8 * 4);
}

#[test]
fn turns_of_a_loop_transfer_nothing() {
    let (backend, device) = stub();
    let graph = backend.optimise(&parsed(
        r#"%0 = "tessera.graph.input"() {index=0} : Tensor[1, 8, f32]
        %1 = "tessera.graph.input"() {index=1} : Tensor[20, 8, 8, f32]
        %2 = "tessera.graph.scan"(%0, %1) {carry=1, sequences=1, trips=20} ({
            "tessera.graph"() {name="body"} ({
                %0 = "tessera.graph.input"() {index=0} : Tensor[1, 8, f32]
                %1 = "tessera.graph.input"() {index=1} : Tensor[8, 8, f32]
                %2 = "tessera.graph.dot"(%0, %1) {accum="f32"} : Tensor[1, 8, f32]
                %3 = "tessera.graph.tanh"(%2) : Tensor[1, 8, f32]
                "tessera.graph.return"(%3)
            })
        }) : Tensor[1, 8, f32]
        %3 = "tessera.graph.get"(%2) {index=0} : Tensor[1, 8, f32]
        "tessera.graph.return"(%3)"#,
    ));
    let plan = backend.plan(&graph).unwrap_or_else(|e| panic!("{e:?}"));
    let args = || vec![Argument::Tensor(floats(&[1, 8])), Argument::Tensor(floats(&[20, 8, 8]))];
    execute(&plan, args(), &device, &mut Workspace::default()).unwrap_or_else(|e| panic!("{e:?}"));
    let did = device.counts();
    assert_eq!((did.launches, did.uploaded, did.downloaded, did.copied), (20, (8 + 20 * 64) * 4, 0, 0));
}
