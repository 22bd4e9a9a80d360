//! Where the time of a run goes, for `tessera profile`: the steps of plans, and the stages of the tool around them.
//!
//! Times are exclusive: what ends inside another step or stage of the same thread counts there and not around it. So all
//! times of a thread add up to the time of what is outermost.

use crate::counters::{self, Counts};
use crate::device::Taken;
use crate::memory;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tessera_abi::plan::{About, StepOrigin};

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
    /// What it computes: each form of it once, for it may have run with several shapes.
    pub about: Vec<Arc<About>>,
    /// Of a kernel on threads of this process.
    pub tiles: Option<Tiles>,
    /// What was counted while it ran, in all runs.
    pub counted: Option<Counts>,
}

impl Row {
    /// One that has not run.
    pub fn new(name: &str, kind: Kind, origin: StepOrigin) -> Row {
        let (times, elsewhere, about) = (vec![], Duration::ZERO, vec![]);
        Row { name: name.into(), kind, origin, times, elsewhere, taken: None, about, tiles: None, counted: None }
    }

    /// All its times together.
    pub fn time(&self) -> Duration {
        self.times.iter().sum()
    }
}

/// How the tiles of a kernel, the points of its grid, ran on threads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tiles {
    /// In one run, the last one.
    pub count: u64,
    /// In all runs.
    pub total: u64,
    /// Threads that there are for a run.
    pub threads: usize,
    /// What all threads took for all tiles of all runs.
    pub busy: Duration,
    /// The time of a tile in the range of tiles, run in a row, where it was the shortest.
    pub least: Duration,
    /// And where it was the longest.
    pub most: Duration,
}

impl Tiles {
    /// Together with those of another run.
    fn and(self, later: Tiles) -> Tiles {
        Tiles {
            total: self.total + later.total,
            busy: self.busy + later.busy,
            least: self.least.min(later.least),
            most: self.most.max(later.most),
            ..later
        }
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
    /// Bytes that were in use when it ended.
    pub in_use: u64,
}

/// Who holds memory where the most of it is in use at the end of a step.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Held {
    /// Bytes that the process uses.
    pub in_use: u64,
    /// Since the start of the profile.
    pub at: Duration,
    /// Inputs and results of the plan that runs then, and values between its kernels: whose, and bytes.
    pub values: Vec<(Holder, u64)>,
}

/// Whose memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    Inputs,
    Results,
    Constants,
    /// A value between kernels, by the place that computes it.
    Value(StepOrigin),
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
    /// Where that was asked for.
    pub fullest: Option<Held>,
}

/// What is kept of the whole run besides rows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Wanted {
    /// Every single run.
    pub all_events: bool,
    /// Who holds memory where the most of it is in use.
    pub memory: bool,
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
        noted(self.started, self.name, Kind::Stage, StepOrigin::default(), None, || None);
    }
}

struct Recorder {
    /// 0 of the whole run.
    id: u32,
    since: Instant,
    wanted: Wanted,
    profile: Profile,
    /// Rows by their place.
    at: HashMap<StepOrigin, Vec<usize>>,
    /// Rows that ran lately, by a number that their place and name give: most often that is the one.
    recent: [usize; RECENT],
}

const RECENT: usize = 256;

thread_local! {
    /// What the steps took that ended inside the step that this thread is at.
    static INSIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// What all steps of this thread took so far.
    static STEPS: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// This thread's number, and that of the profile it was given in.
    static THREAD: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    /// Of the kernel that this thread launched last.
    static TILES: Cell<Option<Tiles>> = const { Cell::new(None) };
    /// While that ran.
    static COUNTED: Cell<Option<Counts>> = const { Cell::new(None) };
}

static ON: AtomicBool = AtomicBool::new(false);
/// The profiles that were started.
static STARTED: AtomicU32 = AtomicU32::new(0);
/// Threads that the current one has met.
static THREADS: AtomicU32 = AtomicU32::new(0);
/// Somebody asks who holds memory.
static MEMORY: AtomicBool = AtomicBool::new(false);
/// Those who ask for kernels.
static KERNELS: AtomicU32 = AtomicU32::new(0);
/// Each notes what runs since it was started: that of the whole run, and those of functions inside it.
static RECORDERS: Mutex<Vec<Recorder>> = Mutex::new(vec![]);

fn recorders() -> MutexGuard<'static, Vec<Recorder>> {
    RECORDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on every step and stage is timed.
pub fn start(wanted: Wanted) {
    recorders().retain(|r| r.id != 0);
    push(0, wanted);
    MEMORY.store(wanted.memory, Ordering::Relaxed);
}

/// Times nothing more, and gives what was measured.
pub fn end() -> Profile {
    MEMORY.store(false, Ordering::Relaxed);
    taken_out(0)
}

/// What was measured so far.
pub fn taken() -> Profile {
    recorders().iter().find(|r| r.id == 0).map(|r| r.profile.clone()).unwrap_or_default()
}

fn push(id: u32, wanted: Wanted) {
    let mut all = recorders();
    if all.is_empty() {
        // Nothing that began before is timed.
        INSIDE.set(Duration::ZERO);
        STARTED.fetch_add(1, Ordering::Relaxed);
        THREADS.store(0, Ordering::Relaxed);
        thread();
    }
    all.push(Recorder {
        id,
        since: Instant::now(),
        wanted,
        profile: Profile::default(),
        at: HashMap::new(),
        recent: [0; RECENT],
    });
    ON.store(true, Ordering::Relaxed);
}

fn taken_out(id: u32) -> Profile {
    let mut all = recorders();
    let found = all.iter().position(|r| r.id == id).map(|at| all.remove(at).profile);
    ON.store(!all.is_empty(), Ordering::Relaxed);
    found.unwrap_or_default()
}

/// A profile of a part of the run, which ends with this.
#[must_use]
pub struct Recording(u32);

/// From here on every step and stage is timed, whether a profile of the whole run is made or not.
pub fn record() -> Recording {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    push(id, Wanted::default());
    Recording(id)
}

impl Recording {
    /// What was measured.
    pub fn end(self) -> Profile {
        taken_out(self.0)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        taken_out(self.0);
    }
}

/// While there is one, what is called is compiled: kernels are wanted, however small they are.
#[must_use]
pub struct Kernels(());

/// Asks for kernels.
pub fn kernels() -> Kernels {
    KERNELS.fetch_add(1, Ordering::Relaxed);
    Kernels(())
}

impl Drop for Kernels {
    fn drop(&mut self) {
        KERNELS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether somebody asks for kernels.
pub fn of_kernels() -> bool {
    KERNELS.load(Ordering::Relaxed) > 0
}

/// Whether steps are timed.
#[inline]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Notes how the kernel that this thread launched ran, for the step that it is.
pub fn launched(tiles: Tiles) {
    TILES.set(Some(tiles));
}

/// The same of one that ran in one piece: its time is that of the step.
pub fn launched_alone(count: u64, threads: usize) {
    let none = Duration::ZERO;
    TILES.set(Some(Tiles { count, total: count, threads, busy: none, least: none, most: none }));
}

/// Notes what was counted while it ran.
pub fn counted(counts: Option<Counts>) {
    COUNTED.set(counts);
}

/// Notes who holds memory, where that is wanted and there was never more in use.
#[inline]
pub fn holds(values: impl FnOnce() -> Vec<(Holder, u64)>) {
    if MEMORY.load(Ordering::Relaxed) {
        held(values);
    }
}

fn held(values: impl FnOnce() -> Vec<(Holder, u64)>) {
    let in_use = memory::in_use();
    if let Some(recorder) = recorders().iter_mut().find(|r| r.id == 0)
        && recorder.profile.fullest.as_ref().is_none_or(|held| held.in_use < in_use)
    {
        recorder.profile.fullest = Some(Held { in_use, at: recorder.since.elapsed(), values: values() });
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

/// The time before a step; `None` where nothing is timed: there it is no more than a look at a flag.
#[inline]
pub fn before() -> Option<Started> {
    if is_on() { Some(begun()) } else { None }
}

#[cold]
fn begun() -> Started {
    Started { before: INSIDE.take(), at: Instant::now() }
}

/// Notes the time of a step that started then.
#[inline]
pub fn after(
    started: Option<Started>,
    name: &str,
    origin: StepOrigin,
    about: Option<&Arc<About>>,
    taken: impl FnOnce() -> Option<Taken>,
) {
    if started.is_some() {
        noted(started, name, Kind::Step, origin, about, taken);
    }
}

/// What the steps that ended on this thread took so far, together.
pub fn in_steps() -> Duration {
    STEPS.get()
}

/// Times a stage of the tool until what is returned is dropped.
pub fn stage(name: &'static str) -> Stage {
    Stage { name, started: before() }
}

fn noted(
    started: Option<Started>,
    name: &str,
    kind: Kind,
    origin: StepOrigin,
    about: Option<&Arc<About>>,
    taken: impl FnOnce() -> Option<Taken>,
) {
    let Some(started) = started else { return };
    let whole = started.at.elapsed();
    let time = whole.saturating_sub(INSIDE.replace(started.before + whole));
    if kind == Kind::Step {
        STEPS.set(STEPS.get() + time);
    }
    let thread = thread();
    let (mut tiles, counted) = if kind == Kind::Step { (TILES.take(), COUNTED.take()) } else { (None, None) };
    if let Some(alone) = tiles.as_mut().filter(|t| t.busy.is_zero()) {
        let each = time / u32::try_from(alone.count.max(1)).unwrap_or(u32::MAX);
        (alone.busy, alone.least, alone.most) = (time, each, each);
    }
    let mut taken = Some(taken);
    for recorder in recorders().iter_mut().filter(|r| r.since <= started.at) {
        let (at, row) = recorder.row(name, kind, origin);
        row.times.push(time);
        if thread > 0 {
            row.elsewhere += time;
        }
        if let Some(taken) = taken.take_if(|_| row.times.len() == 1) {
            row.taken = taken();
        }
        if let Some(about) = about
            && row.about.iter().all(|a| a != about)
        {
            row.about.push(about.clone());
        }
        if let Some(tiles) = tiles {
            row.tiles = Some(row.tiles.map_or(tiles, |t| t.and(tiles)));
        }
        if let Some(counted) = counted {
            row.counted = Some(row.counted.map_or(counted, |c| counters::sum(c, counted)));
        }
        recorder.ran(at, kind, thread, started.at, whole);
    }
}

impl Recorder {
    /// The row of a step or a stage, and its number.
    fn row(&mut self, name: &str, kind: Kind, origin: StepOrigin) -> (usize, &mut Row) {
        let rows = &mut self.profile.rows;
        let is_it = |r: &Row| r.origin == origin && r.kind == kind && r.name == name;
        let mixed =
            origin.start.wrapping_mul(31).wrapping_add(origin.item).wrapping_mul(31).wrapping_add(name.len() as u32);
        let recent = &mut self.recent[mixed as usize % RECENT];
        if !rows.get(*recent).is_some_and(is_it) {
            let here = self.at.entry(origin).or_default();
            *recent = here.iter().copied().find(|&i| rows.get(i).is_some_and(is_it)).unwrap_or_else(|| {
                rows.push(Row::new(name, kind, origin));
                here.push(rows.len() - 1);
                rows.len() - 1
            });
        }
        (*recent, &mut rows[*recent])
    }

    /// One run of a row.
    fn ran(&mut self, row: usize, kind: Kind, thread: u32, start: Instant, whole: Duration) {
        let Profile { events, left_out, .. } = &mut self.profile;
        if self.wanted.all_events || (kind == Kind::Step && events.len() < EVENTS_FEW) {
            let (start, in_use) = (start.saturating_duration_since(self.since), memory::in_use());
            events.push(Event { row, thread, start, whole, in_use });
        } else if kind == Kind::Step {
            *left_out += 1;
        }
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
            after(started, "a step", origin, None, || None);
        };
        start(Wanted { all_events: true, ..Wanted::default() });
        let begin = Instant::now();
        let outer = before();
        for _ in 0..2 {
            let inner = before();
            step();
            after(inner, "an inner loop", origin, None, || None);
            step();
        }
        std::thread::sleep(STEP);
        after(outer, "an outer loop", origin, None, || None);
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
