//! What this machine computes and moves in a second: the roof over the kernels of a profile. It is what Tessera's own kernels reach in a
//! large product and in a pass over memory, measured once for each machine, target and number of threads, and kept with the caches.

use crate::cache::DiskCache;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tessera_llvm::HostTarget;
use tessera_runtime::io::files::write_atomically;

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

/// Operations and bytes a second, of f32; null where they cannot be had. `options` are those of the command line that say where and how
/// a program runs.
pub fn roof(tool: &Path, options: &[String], kept: bool) -> Value {
    let place = place(options).filter(|_| kept);
    let known = place.as_ref().and_then(|p| std::fs::read_to_string(p).ok());
    if let Some(roof) = known.and_then(|text| serde_json::from_str::<Value>(&text).ok()) {
        return roof;
    }
    let roof = measured(tool, options).unwrap_or(Value::Null);
    if let Some(place) = place.filter(|_| !roof.is_null()) {
        // What cannot be kept is measured again.
        let _ = place.parent().map_or(Ok(()), std::fs::create_dir_all);
        let _ = write_atomically(&place, |out| {
            out.write_all(roof.to_string().as_bytes()).map_err(|e| tessera_runtime::io::files::write_fault(&place, &e))
        });
    }
    roof
}

fn measured(tool: &Path, options: &[String]) -> Option<Value> {
    let mut child = Command::new(tool)
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
    (flops > 0.0 && bytes > 0.0).then(|| json!({"flops": flops, "bytes": bytes}))
}
