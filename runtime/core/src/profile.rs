//! Times of the steps of plans, for `tessera profile`.

use crate::device::Taken;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tessera_abi::plan::{Counts, StepOrigin};

/// Every run of one step of one plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The kernel, or the function of the runtime.
    pub name: String,
    pub origin: StepOrigin,
    /// Of a loop, without the steps of its body, which have rows of their own.
    pub times: Vec<Duration>,
    /// When each of them began, since the profile did.
    pub begins: Vec<Duration>,
    /// Of a kernel on a GPU, as it first ran.
    pub taken: Option<Taken>,
}

/// What the kernels of one group cost by counting, whatever the machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Work {
    pub origin: StepOrigin,
    /// The kernels, which run one after the other.
    pub names: Vec<Arc<str>>,
    pub counts: Counts,
}

/// A step that runs.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    at: Instant,
    /// What the steps took that ended before it, inside the same step around it.
    before: Duration,
}

thread_local! {
    /// What the steps took that ended inside the step that this thread is at.
    static INSIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

static ON: AtomicBool = AtomicBool::new(false);
static ROWS: Mutex<Vec<Row>> = Mutex::new(vec![]);
static WORK: Mutex<Vec<Work>> = Mutex::new(vec![]);
/// When the profile began.
static BEGIN: Mutex<Option<Instant>> = Mutex::new(None);

fn rows() -> MutexGuard<'static, Vec<Row>> {
    ROWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on every step is timed.
pub fn start() {
    *BEGIN.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    ON.store(true, Ordering::Relaxed);
}

/// Times steps no more, and gives the rows.
pub fn end() -> Vec<Row> {
    ON.store(false, Ordering::Relaxed);
    WORK.lock().unwrap_or_else(PoisonError::into_inner).clear();
    std::mem::take(&mut *rows())
}

/// Notes what a group costs, where steps are timed.
pub fn note(work: impl FnOnce() -> Work) {
    if ON.load(Ordering::Relaxed) {
        let (work, mut all) = (work(), WORK.lock().unwrap_or_else(PoisonError::into_inner));
        if !all.contains(&work) {
            all.push(work);
        }
    }
}

/// What was noted so far.
pub fn work() -> Vec<Work> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The rows so far, in the order in which their steps first ran.
pub fn taken() -> Vec<Row> {
    rows().clone()
}

/// The time before a step; `None` where nothing is timed.
pub fn before() -> Option<Started> {
    ON.load(Ordering::Relaxed).then(|| Started { before: INSIDE.take(), at: Instant::now() })
}

/// Notes the time of a step that started then.
pub fn after(started: Option<Started>, name: &str, origin: StepOrigin, taken: impl FnOnce() -> Option<Taken>) {
    let Some(started) = started else { return };
    let whole = started.at.elapsed();
    let time = whole.saturating_sub(INSIDE.replace(started.before + whole));
    let begin = *BEGIN.lock().unwrap_or_else(PoisonError::into_inner);
    let at = begin.map_or(Duration::ZERO, |begin| started.at.saturating_duration_since(begin));
    let mut rows = rows();
    match rows.iter_mut().find(|r| r.origin == origin && r.name == name) {
        Some(row) => {
            row.times.push(time);
            row.begins.push(at);
        }
        None => rows.push(Row { name: name.into(), origin, times: vec![time], begins: vec![at], taken: taken() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_counts_twice() {
        const STEP: Duration = Duration::from_millis(20);
        let origin = StepOrigin::default();
        let step = || {
            let started = before();
            std::thread::sleep(STEP);
            after(started, "a step", origin, || None);
        };
        start();
        let begin = Instant::now();
        let outer = before();
        for _ in 0..2 {
            let inner = before();
            step();
            after(inner, "an inner loop", origin, || None);
            step();
        }
        std::thread::sleep(STEP);
        after(outer, "an outer loop", origin, || None);
        step();
        let whole = begin.elapsed();
        let rows = taken();
        let time = |name: &str| {
            rows.iter().find(|r| r.name == name).map(|r| (r.times.len(), r.times.iter().sum::<Duration>()))
        };
        let [steps, inner, outer] = ["a step", "an inner loop", "an outer loop"].map(|n| time(n).unwrap_or_default());
        assert_eq!([steps.0, inner.0, outer.0], [5, 2, 1]);
        assert!(steps.1 >= 5 * STEP && outer.1 >= STEP && steps.1 + inner.1 + outer.1 <= whole, "{rows:?}");
    }
}
