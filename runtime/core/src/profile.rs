//! Times of the steps of plans, for `tessera profile`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tessera_abi::plan::StepOrigin;

/// Every run of one step of one plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The kernel, or the function of the runtime.
    pub name: String,
    pub origin: StepOrigin,
    pub times: Vec<Duration>,
}

static ON: AtomicBool = AtomicBool::new(false);
static ROWS: Mutex<Vec<Row>> = Mutex::new(vec![]);

fn rows() -> MutexGuard<'static, Vec<Row>> {
    ROWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on every step is timed.
pub fn start() {
    ON.store(true, Ordering::Relaxed);
}

/// The rows so far, in the order in which their steps first ran.
pub fn taken() -> Vec<Row> {
    rows().clone()
}

/// The time before a step; `None` where nothing is timed.
pub fn before() -> Option<Instant> {
    ON.load(Ordering::Relaxed).then(Instant::now)
}

/// Notes the time of a step that started then.
pub fn after(started: Option<Instant>, name: &str, origin: StepOrigin) {
    let Some(started) = started else { return };
    let time = started.elapsed();
    let mut rows = rows();
    match rows.iter_mut().find(|r| r.origin == origin && r.name == name) {
        Some(row) => row.times.push(time),
        None => rows.push(Row { name: name.into(), origin, times: vec![time] }),
    }
}
