//! Which instructions the text of a GPU's kernels has: what speed rests on, kernel by kernel.

use std::collections::BTreeMap;

/// What is counted, by how an instruction begins, and as what.
const KINDS: &[(&str, &str)] = &[
    ("mma.sync", "mma.sync"),
    ("ldmatrix", "ldmatrix"),
    ("cp.async.c", "cp.async"),
    ("fma.rn.f32", "fma.f32"),
    ("fma.rn.f64", "fma.f64"),
    ("ld.global", "ld.global"),
    ("st.global", "st.global"),
    ("ld.shared", "ld.shared"),
    ("st.shared", "st.shared"),
    ("ld.local", "ld.local"),
    ("st.local", "st.local"),
    ("shfl.sync", "shfl.sync"),
    ("bar.warp.sync", "bar.warp.sync"),
    ("barrier.sync", "barrier"),
    ("bar.sync", "barrier"),
    ("div.", "division"),
];

/// A paragraph for each kernel of an assembly text: how it is launched, then its instructions by kind, in the order above.
pub fn counts(ptx: &str) -> String {
    let mut out = String::new();
    for kernel in ptx.split("// tessera ").skip(1) {
        let header = kernel.lines().next().unwrap_or_default();
        let entry = kernel.lines().find_map(|l| l.split_once(".entry ")).map_or("", |(_, name)| name);
        let name = entry.trim_end_matches('(').trim();
        out.push_str(&format!("{name}: {header}\n"));
        let mut found: BTreeMap<usize, (usize, &str)> = BTreeMap::new();
        for line in kernel.lines() {
            let words = line.split_whitespace().skip_while(|w| w.starts_with('@'));
            let Some(op) = words.into_iter().next() else { continue };
            if let Some((at, (_, kind))) = KINDS.iter().enumerate().find(|(_, (begins, _))| op.starts_with(begins)) {
                let first = KINDS.iter().position(|(_, k)| k == kind).unwrap_or(at);
                found.entry(first).or_insert((0, kind)).0 += 1;
            }
        }
        let parts: Vec<String> = found.values().map(|(n, kind)| format!("{kind} {n}")).collect();
        out.push_str(&format!("  {}\n", parts.join(", ")));
    }
    out
}
