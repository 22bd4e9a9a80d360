//! `tessera doctor`: what this machine offers and what is missing.

use crate::cache::DiskCache;
use serde::Serialize;
use std::fmt::Write;
use tessera_llvm::HostTarget;
use tessera_ops::prim::Order;
use tessera_runtime::cuda::{self, Facts, Gpu};
use tessera_runtime::fault::human_bytes;
use tessera_runtime::opencl::{self, Accelerator};

/// A part of what programs may need.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Part {
    pub name: String,
    pub ok: bool,
    pub text: String,
}

/// The report for people.
pub fn text(parts: &[Part]) -> String {
    let mut out = String::new();
    for Part { name, ok, text } in parts {
        let _ = writeln!(out, "{} {name:<12} {text}", if *ok { "ok     " } else { "missing" });
    }
    out
}

/// The parts, and whether everything that running programs needs is there. `notebooks`: whether there is a kernel for them, in words.
pub fn doctor(cache: &DiskCache, notebooks: (bool, String)) -> (Vec<Part>, bool) {
    let mut out = vec![];
    let mut ok = true;
    let mut line = |name: &str, ok: bool, text: String| out.push(Part { name: name.into(), ok, text });
    line("tessera", true, env!("CARGO_PKG_VERSION").to_owned());
    let cores = tessera_abi::cores();
    line("cpu", true, format!("{cores} threads, {} of memory", human_bytes(tessera_runtime::tensor::memory_limit())));
    let m = tessera_schedule::host();
    line(
        "vectors",
        true,
        format!(
            "{} bits, {} registers; caches {} / {} / {}",
            m.vector_bytes * 8,
            m.vector_registers,
            human_bytes(m.l1_bytes),
            human_bytes(m.l2_bytes),
            human_bytes(m.l3_bytes)
        ),
    );
    let refused = tessera_abi::has_matrix_unit() && m.bf16 != Order::Units;
    let unit = if refused { "the system refuses the unit for matrices (AMX); " } else { "" };
    let products = match m.bf16 {
        Order::Units => "in units of 32 steps, by the unit for matrices (AMX)".to_owned(),
        Order::Pairs => format!("{unit}in pairs of steps"),
        Order::Chain | Order::Atoms => format!("{unit}step by step, in f32"),
    };
    line("products", true, format!("of bf16: {products}"));
    match HostTarget::host() {
        Ok(t) => line("llvm", true, format!("22.1, compiles for {} ({})", t.cpu, t.triple)),
        Err(e) => {
            ok = false;
            line(
                "llvm",
                false,
                format!("{}; install the package libllvm22 (without it, tensor code is interpreted)", e.message),
            );
        }
    }
    match cache.dir() {
        None => line(
            "cache",
            false,
            "no directory: set TESSERA_CACHE or HOME; kernels are compiled anew in each run".into(),
        ),
        Some(dir) => match probe(cache) {
            Ok((count, bytes)) => {
                let size = format!("{} of at most {}", human_bytes(bytes), human_bytes(cache.limit()));
                line("cache", true, format!("{}: {count} kernels, {size}", dir.display()))
            }
            Err(why) => {
                line("cache", false, format!("{}: {why}; kernels are compiled anew in each run", dir.display()))
            }
        },
    }
    match tessera_runtime::world::mpi::version() {
        Ok(version) => line("mpi", true, format!("{version}, for programs that `mpirun` starts")),
        Err(why) => line("mpi", false, format!("{why}; needed only under `mpirun` (package openmpi-bin or mpich)")),
    }
    line("jupyter", notebooks.0, notebooks.1);
    line("cpu target", true, "the default".into());
    match Gpu::first() {
        Ok(gpu) => line("cuda target", true, described(gpu.facts())),
        Err(e) => line("cuda target", false, format!("{}; needed only for `--target cuda` ({})", e.why, e.help)),
    }
    match Accelerator::first() {
        Ok(device) => line("opencl", true, accelerator(device.facts())),
        Err(e) => {
            line("opencl", false, format!("{}; needed only for `--target opencl` ({})", e.why, e.help));
        }
    }
    (out, ok)
}

/// A device of OpenCL, in words.
fn accelerator(device: &opencl::Facts) -> String {
    let memory = human_bytes(device.memory);
    let size = format!("{} units, {memory} of memory", device.units);
    format!("{} ({size}), OpenCL of {} ({})", device.name, device.platform, device.driver)
}

/// A GPU, in words.
fn described(gpu: &Facts) -> String {
    let (major, minor) = gpu.capability;
    let driver = cuda::version(gpu.driver);
    let memory = human_bytes(gpu.memory);
    let size = format!("{} multiprocessors, {memory} of memory", gpu.multiprocessors);
    format!("{} (compute capability {major}.{minor}, {size}), driver of CUDA {driver}", gpu.name)
}

/// Number and size of the entries, after a trial write.
fn probe(cache: &DiskCache) -> Result<(usize, u64), String> {
    if let Some(why) = cache.put("probe", b"probe") {
        return Err(why);
    }
    let entries = cache.list().map_err(|e| e.to_string())?;
    if let Some(dir) = cache.dir() {
        let _ = std::fs::remove_file(dir.join("kernels/probe.o"));
    }
    let entries: Vec<_> = entries.into_iter().filter(|e| e.name != "probe.o").collect();
    Ok((entries.len(), entries.iter().map(|e| e.bytes).sum()))
}
