//! What goes between the devices of meshes: bytes by device and exchange, counted where they are
//! copied, and the time it takes, for `tessera profile` and the tests of predictions.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What one device sent in exchanges of one name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// How often it took part.
    pub runs: u64,
    pub bytes: u64,
    /// Of its part in them, from start to end.
    pub time: Duration,
    /// Of that, how long it waited for other devices.
    pub waited: Duration,
    /// How long at least one was on its way while the device went on: between its start and where it came to its end.
    pub hidden: Duration,
}

/// What is known of one device and exchanges of one name.
#[derive(Default)]
struct Row {
    sent: Sent,
    /// How many have started and are not at their end, and since when there are some.
    under_way: u64,
    since: Option<Instant>,
}

static ON: AtomicBool = AtomicBool::new(false);
static SENT: Mutex<BTreeMap<(Arc<str>, usize), Row>> = Mutex::new(BTreeMap::new());

fn sent() -> MutexGuard<'static, BTreeMap<(Arc<str>, usize), Row>> {
    SENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on every exchange is counted.
pub fn start() {
    ON.store(true, Ordering::Relaxed);
}

/// The counts so far, by name and device.
pub fn taken() -> Vec<((Arc<str>, usize), Sent)> {
    sent().iter().map(|(k, v)| (k.clone(), v.sent)).collect()
}

thread_local! {
    /// How long this thread waited since its exchange began.
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn add(name: &Arc<str>, device: usize, f: impl FnOnce(&mut Row)) {
    f(sent().entry((name.clone(), device)).or_default());
}

/// Runs a device's part in an exchange, and notes it; all of it, or the end of one that started before.
pub fn exchange<R>(name: &Arc<str>, device: usize, began: bool, f: impl FnOnce() -> R) -> R {
    if !ON.load(Ordering::Relaxed) {
        return f();
    }
    WAITED.set(Duration::ZERO);
    let start = Instant::now();
    let out = f();
    let time = start.elapsed();
    add(name, device, |row| {
        row.sent.runs += 1;
        row.sent.time += time;
        row.sent.waited += WAITED.get();
        row.under_way = row.under_way.saturating_sub(u64::from(began));
        if began && row.under_way == 0 {
            row.sent.hidden += row.since.take().map_or(Duration::ZERO, |since| start.saturating_duration_since(since));
        }
    });
    out
}

/// Runs the start of an exchange, and notes it.
pub fn began<R>(name: &Arc<str>, device: usize, f: impl FnOnce() -> R) -> R {
    if !ON.load(Ordering::Relaxed) {
        return f();
    }
    let start = Instant::now();
    let out = f();
    let end = Instant::now();
    add(name, device, |row| {
        row.sent.time += end - start;
        row.under_way += 1;
        row.since.get_or_insert(end);
    });
    out
}

/// Runs what waits for other devices.
pub fn waiting<R>(f: impl FnOnce() -> R) -> R {
    if !ON.load(Ordering::Relaxed) {
        return f();
    }
    let start = Instant::now();
    let out = f();
    WAITED.set(WAITED.get() + start.elapsed());
    out
}

/// Notes what others got from a device.
pub fn gave(name: &Arc<str>, device: usize, bytes: usize) {
    if ON.load(Ordering::Relaxed) {
        add(name, device, |row| row.sent.bytes += bytes as u64);
    }
}
