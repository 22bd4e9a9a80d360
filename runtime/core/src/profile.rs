//! Where the time of a run goes, for `tessera profile`: the steps of plans, and the stages of the tool around them.
//!
//! Times are exclusive: what ends inside another step or stage of the same thread counts there and not around it. So all
//! times of a thread add up to the time of what is outermost.

use crate::device::Taken;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tessera_abi::plan::{Counts, StepOrigin};

/// The stage in which the first thread waits for those of devices, whose steps have rows of their own.
pub const DEVICES: &str = "waiting for devices";

/// What a row is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A step of a plan: a kernel, or a function of the runtime.
    Step,
    /// What the tool does around steps: checks, traces, compiles, runs host code.
    Stage,
}

/// Every run of one step of one plan, or of one stage.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The kernel, the function of the runtime, or the stage.
    pub name: String,
    pub kind: Kind,
    pub origin: StepOrigin,
    /// Of a loop, without the steps of its body, which have rows of their own.
    pub times: Vec<Duration>,
    /// What of them was not spent on the thread that started the profile.
    pub elsewhere: Duration,
    /// Of a kernel on a GPU, as it first ran.
    pub taken: Option<Taken>,
}

impl Row {
    /// All its times together.
    pub fn time(&self) -> Duration {
        self.times.iter().sum()
    }
}

/// One run of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    /// Its position among the rows.
    pub row: usize,
    /// 0 for the thread that started the profile, others by the order in which they were met.
    pub thread: u32,
    /// Since the start of the profile.
    pub start: Duration,
    /// With everything that ended inside it.
    pub whole: Duration,
}

/// What the kernels of one group cost by counting, whatever the machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Work {
    pub origin: StepOrigin,
    /// The kernels, which run one after the other.
    pub names: Vec<Arc<str>>,
    pub counts: Counts,
}

/// What was measured so far.
#[derive(Clone, Default, Debug)]
pub struct Profile {
    /// In the order in which they first ran.
    pub rows: Vec<Row>,
    /// In the order in which they ended: all of them where they were asked for, otherwise the first runs of steps.
    pub events: Vec<Event>,
    /// Runs of steps that are not among the events.
    pub left_out: usize,
    /// Of the groups whose plans were made meanwhile.
    pub work: Vec<Work>,
}

/// Runs of steps that are kept where nobody asks for all events.
pub const EVENTS_FEW: usize = 4000;

/// A step that runs.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    at: Instant,
    /// What the steps took that ended before it, inside the same step around it.
    before: Duration,
}

/// A stage, which ends when this is dropped.
#[must_use]
pub struct Stage {
    name: &'static str,
    started: Option<Started>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        noted(self.started, self.name, Kind::Stage, StepOrigin::default(), || None);
    }
}

struct Recorder {
    since: Instant,
    /// Every event is kept.
    all_events: bool,
    profile: Profile,
    /// Rows by their place.
    at: HashMap<StepOrigin, Vec<usize>>,
}

thread_local! {
    /// What the steps took that ended inside the step that this thread is at.
    static INSIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// What all steps of this thread took so far.
    static STEPS: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// This thread's number, and that of the profile it was given in.
    static THREAD: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

static ON: AtomicBool = AtomicBool::new(false);
/// The profiles that were started.
static STARTED: AtomicU32 = AtomicU32::new(0);
/// Threads that the current one has met.
static THREADS: AtomicU32 = AtomicU32::new(0);
static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

fn recorder() -> MutexGuard<'static, Option<Recorder>> {
    RECORDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on every step and stage is timed; every single run is kept where all events are wanted.
pub fn start(all_events: bool) {
    *recorder() = Some(Recorder { since: Instant::now(), all_events, profile: Profile::default(), at: HashMap::new() });
    STARTED.fetch_add(1, Ordering::Relaxed);
    THREADS.store(0, Ordering::Relaxed);
    thread();
    ON.store(true, Ordering::Relaxed);
}

/// Times nothing more, and gives what was measured.
pub fn end() -> Profile {
    ON.store(false, Ordering::Relaxed);
    recorder().take().map(|r| r.profile).unwrap_or_default()
}

/// What was measured so far.
pub fn taken() -> Profile {
    recorder().as_ref().map(|r| r.profile.clone()).unwrap_or_default()
}

/// Notes what a group costs, where steps are timed.
pub fn note(work: impl FnOnce() -> Work) {
    if !ON.load(Ordering::Relaxed) {
        return;
    }
    let work = work();
    if let Some(Recorder { profile, .. }) = recorder().as_mut()
        && !profile.work.contains(&work)
    {
        profile.work.push(work);
    }
}

/// The number of this thread in the current profile.
fn thread() -> u32 {
    let now = STARTED.load(Ordering::Relaxed);
    let (number, of) = THREAD.get();
    if of == now {
        return number;
    }
    let number = THREADS.fetch_add(1, Ordering::Relaxed);
    THREAD.set((number, now));
    number
}

/// The time before a step; `None` where nothing is timed.
pub fn before() -> Option<Started> {
    ON.load(Ordering::Relaxed).then(|| Started { before: INSIDE.take(), at: Instant::now() })
}

/// Notes the time of a step that started then.
pub fn after(started: Option<Started>, name: &str, origin: StepOrigin, taken: impl FnOnce() -> Option<Taken>) {
    noted(started, name, Kind::Step, origin, taken);
}

/// What the steps that ended on this thread took so far, together.
pub fn in_steps() -> Duration {
    STEPS.get()
}

/// Times a stage of the tool until what is returned is dropped.
pub fn stage(name: &'static str) -> Stage {
    Stage { name, started: before() }
}

fn noted(started: Option<Started>, name: &str, kind: Kind, origin: StepOrigin, taken: impl FnOnce() -> Option<Taken>) {
    let Some(started) = started else { return };
    let whole = started.at.elapsed();
    let time = whole.saturating_sub(INSIDE.replace(started.before + whole));
    if kind == Kind::Step {
        STEPS.set(STEPS.get() + time);
    }
    let thread = thread();
    let mut recorder = recorder();
    let Some(Recorder { since, all_events, profile, at }) = recorder.as_mut() else { return };
    let Profile { rows, events, left_out, .. } = profile;
    let here = at.entry(origin).or_default();
    let known = here.iter().copied().find(|&i| rows.get(i).is_some_and(|r| r.name == name && r.kind == kind));
    let row = known.unwrap_or_else(|| {
        rows.push(Row { name: name.into(), kind, origin, times: vec![], elsewhere: Duration::ZERO, taken: taken() });
        here.push(rows.len() - 1);
        rows.len() - 1
    });
    rows[row].times.push(time);
    if thread > 0 {
        rows[row].elsewhere += time;
    }
    if *all_events || (kind == Kind::Step && events.len() < EVENTS_FEW) {
        events.push(Event { row, thread, start: started.at.saturating_duration_since(*since), whole });
    } else if kind == Kind::Step {
        *left_out += 1;
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
        start(true);
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
        let Profile { rows, events, .. } = end();
        let time = |name: &str| {
            rows.iter().find(|r| r.name == name).map(|r| (r.times.len(), r.times.iter().sum::<Duration>()))
        };
        let [steps, inner, outer] = ["a step", "an inner loop", "an outer loop"].map(|n| time(n).unwrap_or_default());
        assert_eq!([steps.0, inner.0, outer.0], [5, 2, 1]);
        assert!(events.len() == 8 && events.iter().all(|e| e.thread == 0), "{events:?}");
        assert!(steps.1 >= 5 * STEP && outer.1 >= STEP && steps.1 + inner.1 + outer.1 <= whole, "{rows:?}");
    }
}
