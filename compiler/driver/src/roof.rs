//! What this machine computes and moves in a second: the roof over the kernels of a profile. It is what Tessera's own kernels reach in a
//! large product and in a pass over memory, measured once for each machine, target and number of threads, and kept with the caches.

use crate::cache::DiskCache;
use crate::cli::Global;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tessera_llvm::HostTarget;
use tessera_runtime::io::replace::{Durability, replace};

/// A product that computes much and a pass that moves much, a few times each.
const PROGRAM: &str = "\
x = random.normal(random.key(0), (1024, 1024))
w = random.normal(random.key(1), (1024, 1024))
y = op.ones((33554432,))
for i in range(30):
    x = (x @ w) * 0.03125
    print(x[0, 0])
for i in range(15):
    y = y * 0.5 + 1.0
    print(y[0])
";

/// Where measurements are kept; `None` where nothing is.
fn place(options: &[String]) -> Option<PathBuf> {
    let cpu = HostTarget::host().map_or_else(|_| String::new(), |host| host.cpu);
    let what = format!("{cpu} {} {options:?} {} {PROGRAM}", tessera_abi::cores(), env!("CARGO_PKG_VERSION"));
    let name = blake3::hash(what.as_bytes()).to_hex()[..16].to_owned();
    DiskCache::default_dir().map(|dir| dir.join("roof").join(format!("{name}.json")))
}

/// What is reached.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Roof {
    /// Operations on f32 in a second.
    pub flops: f64,
    /// Bytes to and from memory in a second.
    pub bytes: f64,
}

impl Roof {
    /// Operations a second at most for a kernel that does so many and moves so many bytes.
    pub fn over(&self, flops: u64, bytes: u64) -> f64 {
        self.flops.min(self.bytes * flops as f64 / (bytes as f64).max(1.0))
    }
}

/// The options of the command line that say where and how a program runs.
pub fn options(global: &Global) -> Vec<String> {
    let target = clap::ValueEnum::to_possible_value(&global.target).map(|v| v.get_name().to_owned());
    let place = target.iter().flat_map(|t| ["--target".to_owned(), t.clone()]);
    place.chain(global.threads.iter().flat_map(|n| ["--threads".to_owned(), n.to_string()])).collect()
}

/// What was measured before with such options.
pub fn known(global: &Global) -> Option<Roof> {
    let place = place(&options(global)).filter(|_| !global.no_cache)?;
    serde_json::from_str(&std::fs::read_to_string(place).ok()?).ok()
}

/// The same, measured where it is not known; `None` where it cannot be had.
pub fn roof(tool: &Path, global: &Global) -> Option<Roof> {
    if let Some(roof) = known(global) {
        return Some(roof);
    }
    let options = options(global);
    let roof = measured(tool, &options)?;
    keep(&roof, &options, global);
    Some(roof)
}

/// Measures once more where a kernel was above the roof: the machine was busy when it was measured. The greater numbers stay.
pub fn again(tool: &Path, global: &Global) {
    let options = options(global);
    if let (Some(old), Some(new)) = (known(global), measured(tool, &options)) {
        keep(&Roof { flops: old.flops.max(new.flops), bytes: old.bytes.max(new.bytes) }, &options, global);
    }
}

fn keep(roof: &Roof, options: &[String], global: &Global) {
    if let Some(place) = place(options).filter(|_| !global.no_cache) {
        // What cannot be kept is measured again.
        let _ = place.parent().map_or(Ok(()), std::fs::create_dir_all);
        let text = serde_json::to_string(roof).expect("two numbers have a form");
        let _ = replace(&place, Durability::Cached, |e| e, |out| out.write_all(text.as_bytes()));
    }
}

fn measured(tool: &Path, options: &[String]) -> Option<Roof> {
    let mut command = Command::new(tool);
    // It is a program of its own, also where this process is one of several.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if ["OMPI_", "PMI_", "PMIX_", "TESSERA_WORKS_FOR"].iter().any(|begin| name.starts_with(begin)) {
            command.env_remove(&*name);
        }
    }
    let mut child = command
        .args(["--json", "--color", "never"])
        .args(options)
        .args(["profile", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(PROGRAM.as_bytes()).ok()?;
    let said = child.wait_with_output().ok()?;
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let profile =
        said.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()).find(|v| v["profile"].is_array())?;
    let steps: Vec<(usize, f64, f64)> = serde_json::from_value(profile["steps"].clone()).ok()?;
    // The fastest of all runs: what else the machine does makes it slower, and nothing makes it faster.
    let fastest = |row: usize| steps.iter().filter(|s| s.0 == row).map(|s| s.2).fold(f64::INFINITY, f64::min);
    let most = |what: &str| {
        let rows = profile["profile"].as_array().into_iter().flatten().enumerate();
        let speeds = rows.filter_map(|(at, row)| {
            // The packing of operands that belongs to a run of a product.
            let before = row["work"]["seconds"].as_f64()? - row["median"].as_f64()?;
            Some(row["work"][what].as_f64()? / (fastest(at) + before))
        });
        speeds.fold(0.0, f64::max)
    };
    let (flops, bytes) = (most("flops"), most("bytes"));
    (flops > 0.0 && bytes > 0.0).then_some(Roof { flops, bytes })
}
