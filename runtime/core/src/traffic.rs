//! What goes between the devices of meshes: bytes by device and exchange, counted where they are
//! copied, for `tessera profile` and the tests of predictions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one device sent in exchanges of one name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// How often it took part.
    pub runs: u64,
    pub bytes: u64,
}

static ON: AtomicBool = AtomicBool::new(false);
static SENT: Mutex<BTreeMap<(Arc<str>, usize), Sent>> = Mutex::new(BTreeMap::new());

fn sent() -> MutexGuard<'static, BTreeMap<(Arc<str>, usize), Sent>> {
    SENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on every exchange is counted.
pub fn start() {
    ON.store(true, Ordering::Relaxed);
}

/// The counts so far, by name and device.
pub fn taken() -> Vec<((Arc<str>, usize), Sent)> {
    sent().iter().map(|(k, v)| (k.clone(), *v)).collect()
}

/// Notes how often a device took part in an exchange, or what others took from it.
pub fn add(name: &Arc<str>, device: usize, runs: u64, bytes: usize) {
    if ON.load(Ordering::Relaxed) {
        let mut sent = sent();
        let row = sent.entry((name.clone(), device)).or_default();
        row.runs += runs;
        row.bytes += bytes as u64;
    }
}
