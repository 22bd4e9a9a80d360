//! What the processor and the system count while kernels run, for `tessera profile --counters`. Not every machine counts, and
//! not every system lets a program look.

use perf_event::events::{Event, Hardware, Raw, Software};
use perf_event::{Builder, Counter};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// What may be counted. Of products of floats the vector units are at work where nearly every instruction is one of vectors.
pub const NAMES: [&str; 6] =
    ["cycles", "instructions", "cache misses", "vector float instructions", "scalar float instructions", "page faults"];

/// One number for each of [`NAMES`]; `None` of what is not counted.
pub type Counts = [Option<u64>; NAMES.len()];

static ON: AtomicBool = AtomicBool::new(false);
static OPEN: Mutex<Vec<(usize, Counter)>> = Mutex::new(vec![]);

/// Counts for this thread and those that it starts from here on. Gives what is not counted, and why.
pub fn start() -> Vec<(&'static str, String)> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut missing = vec![];
    for (at, name) in NAMES.into_iter().enumerate() {
        match counter(at) {
            Ok(counter) => open.push((at, counter)),
            Err(e) => missing.push((name, why(&e))),
        }
    }
    ON.store(!open.is_empty(), Ordering::Relaxed);
    missing
}

fn counter(at: usize) -> io::Result<Counter> {
    match at {
        0 => opened(Hardware::CPU_CYCLES),
        1 => opened(Hardware::INSTRUCTIONS),
        2 => opened(Hardware::CACHE_MISSES),
        3 => opened(Raw::new(floats(true)?)),
        4 => opened(Raw::new(floats(false)?)),
        _ => opened(Software::PAGE_FAULTS),
    }
}

/// The event of Intel's processors that counts float instructions as they retire, of vectors or of single numbers.
/// Source: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 3B, FP_ARITH_INST_RETIRED.
fn floats(vectors: bool) -> io::Result<u64> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo")?;
    let known = cpu.lines().any(|l| l.starts_with("vendor_id") && l.ends_with("GenuineIntel"));
    match (known, vectors) {
        (true, true) => Ok(0xfcc7),
        (true, false) => Ok(0x03c7),
        (false, _) => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn opened(event: impl Event) -> io::Result<Counter> {
    let mut counter = Builder::new(event).inherit(true).build()?;
    counter.enable()?;
    Ok(counter)
}

/// In words for people.
fn why(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::PermissionDenied => {
            "the system does not let programs count: `kernel.perf_event_paranoid` and the rules of a container say who may".into()
        }
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => {
            "this machine has no such counter; virtual machines most often have none".into()
        }
        _ => e.to_string(),
    }
}

/// What was counted so far; `None` where nothing is.
#[inline]
pub fn read() -> Option<Counts> {
    if ON.load(Ordering::Relaxed) { Some(all()) } else { None }
}

fn all() -> Counts {
    let mut out = Counts::default();
    for (at, counter) in OPEN.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
        out[*at] = counter.read().ok();
    }
    out
}

/// What was counted since `before`.
pub fn since(before: Option<Counts>) -> Option<Counts> {
    let (before, after) = (before?, read()?);
    Some(std::array::from_fn(|i| Some(after[i]?.saturating_sub(before[i]?))))
}

/// Both together.
pub fn sum(a: Counts, b: Counts) -> Counts {
    std::array::from_fn(|i| Some(a[i]?.saturating_add(b[i]?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_has_a_reason() {
        let missing = start();
        assert!(missing.iter().all(|(_, why)| !why.is_empty()));
        let (before, pages) = (read(), std::hint::black_box(vec![1u8; 64 << 20]));
        let counted = since(before);
        assert_eq!(missing.len() == NAMES.len(), counted.is_none());
        if let Some([.., Some(faults)]) = counted {
            assert!(faults > 0, "{} bytes were written", pages.len());
        }
    }
}
