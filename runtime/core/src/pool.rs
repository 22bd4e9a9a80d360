//! The thread pool that kernels run on: persistent workers, the caller works too.
//!
//! Kernels are short and follow one another, so handing one out takes no lock and no memory:
//! the job stands on the caller's stack, and a word tells the workers that it is there. A
//! worker that has nothing to do looks at the word for a while before it sleeps.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tessera_abi::linalg::workers::Workers;

/// The part of what is left of a share that its thread, or one that has ended its own, takes at
/// once: large pieces first, single points at the end, so that all threads end together.
const PART: u64 = 3;
/// How long an idle worker looks for work before it sleeps: a few kernels' time. Waking a
/// sleeper takes tens of microseconds.
const LOOK: Duration = Duration::from_micros(200);
/// Stack of a worker: kernels need little, compiling one as much as on the thread of the program.
const STACK_BYTES: usize = 8 << 20;

/// The next point of a thread's share. A line of the cache for each: threads do not wait for each
/// other while every one works on its own.
#[repr(align(64))]
struct Share(AtomicU64);

/// One kernel call. Its points are divided into one share for each thread, the same one in every
/// call with so many points: what a thread has written lies in its core's cache the next time.
struct Job<'a> {
    work: &'a (dyn Fn(u64, u64) -> i64 + Sync),
    grid: u64,
    /// Points of a range, at least.
    grain: u64,
    shares: &'a [Share],
    /// The lowest position that failed, and its code. Locked by failures only.
    failed: Mutex<Option<(u64, i64)>>,
    panicked: AtomicBool,
}

impl Job<'_> {
    /// Where share `n` starts; where the one before ends.
    fn start(&self, n: usize) -> u64 {
        (self.grid as u128 * n as u128 / self.shares.len() as u128) as u64
    }

    /// The next range of share `n`, if one is left.
    fn take(&self, n: usize) -> Option<(u64, u64)> {
        let (next, end) = (&self.shares[n].0, self.start(n + 1));
        let mut lo = next.load(Ordering::Relaxed);
        while lo < end {
            let hi = lo + ((end - lo) / PART).max(self.grain).min(end - lo);
            match next.compare_exchange_weak(lo, hi, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some((lo, hi)),
                Err(now) => lo = now,
            }
        }
        None
    }

    /// The work of thread `me`: its own share, then what is left of the others.
    fn drain(&self, me: usize) {
        let count = self.shares.len();
        let mut n = 0;
        while n < count {
            let Some((lo, hi)) = self.take((me + n) % count) else {
                n += 1;
                continue;
            };
            let result = (self.work)(lo, hi);
            if result != 0 {
                let mut failed = self.failed.lock().unwrap_or_else(|e| e.into_inner());
                if failed.is_none_or(|(at, _)| lo < at) {
                    *failed = Some((lo, result));
                }
            }
        }
    }
}

/// State word: how many jobs there were (upper half), whether one may be entered ([`OPEN`]),
/// how many workers are inside (lower bits).
const OPEN: u64 = 1 << 31;
const INSIDE: u64 = OPEN - 1;
const JOB: u64 = 1 << 32;

struct Shared {
    state: AtomicU64,
    /// The open job, or one that is over: only followed by a worker that is inside.
    job: AtomicPtr<Job<'static>>,
    over: AtomicBool,
    asleep: Box<[AtomicBool]>,
    /// Whether waiting workers look at the word at all: not where they would take a core from
    /// one that works.
    look: bool,
}

impl Shared {
    /// The life of worker `me`.
    fn serve(&self, me: usize) {
        let mut seen = 0;
        loop {
            let state = self.wait(me, seen);
            if self.over.load(Ordering::Acquire) {
                return;
            }
            seen = state / JOB;
            if self.enter(state) {
                // SAFETY: the caller does not leave `run` while a worker is inside.
                let job = unsafe { &*self.job.load(Ordering::Acquire) };
                if catch_unwind(AssertUnwindSafe(|| job.drain(me + 1))).is_err() {
                    job.panicked.store(true, Ordering::Release);
                }
                self.state.fetch_sub(1, Ordering::Release);
            }
        }
    }

    /// Returns when the number of jobs is no longer `seen`.
    fn wait(&self, me: usize, seen: u64) -> u64 {
        let new = || Some(self.state.load(Ordering::SeqCst)).filter(|s| s / JOB != seen);
        let start = Instant::now();
        loop {
            for _ in 0..64 {
                if let Some(state) = new() {
                    return state;
                }
                std::hint::spin_loop();
            }
            if !self.look || start.elapsed() > LOOK || self.over.load(Ordering::Relaxed) {
                break;
            }
        }
        loop {
            self.asleep[me].store(true, Ordering::SeqCst);
            if let Some(state) = new().or_else(|| self.over.load(Ordering::SeqCst).then_some(0)) {
                self.asleep[me].store(false, Ordering::Relaxed);
                return state;
            }
            std::thread::park();
        }
    }

    /// Goes inside while the job is open.
    fn enter(&self, mut state: u64) -> bool {
        while state & OPEN != 0 {
            match self.state.compare_exchange_weak(state, state + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) if now / JOB == state / JOB => state = now,
                Err(_) => return false,
            }
        }
        false
    }
}

/// A fixed number of threads. One thread means: everything on the caller.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Thread>,
    /// Of the job that runs.
    shares: Box<[Share]>,
    /// Somebody's job runs: a second one runs on its caller alone.
    busy: AtomicBool,
    /// Set by an interrupt: what runs on the pool is to end.
    interrupt: OnceLock<Arc<AtomicBool>>,
}

impl Pool {
    /// `threads` is at least 1; where the system refuses threads, there are fewer.
    pub fn new(threads: usize) -> Pool {
        let wanted = threads.clamp(1, 1024) - 1;
        let cores = tessera_abi::cores();
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            job: AtomicPtr::new(std::ptr::null_mut()),
            over: AtomicBool::new(false),
            asleep: (0..wanted).map(|_| AtomicBool::new(false)).collect(),
            look: wanted < cores,
        });
        let mut workers = Vec::with_capacity(wanted);
        for me in 0..wanted {
            let shared = shared.clone();
            let thread = std::thread::Builder::new().name(format!("tessera-{}", me + 1)).stack_size(STACK_BYTES);
            match thread.spawn(move || shared.serve(me)) {
                Ok(handle) => workers.push(handle.thread().clone()),
                Err(_) => break,
            }
        }
        let shares = (0..=workers.len()).map(|_| Share(AtomicU64::new(0))).collect();
        Pool { shared, workers, shares, busy: AtomicBool::new(false), interrupt: OnceLock::new() }
    }

    /// Another pool that an interrupt of this one ends too.
    pub fn another(&self, threads: usize) -> Pool {
        let pool = Pool::new(threads);
        if let Some(flag) = self.interrupt.get() {
            pool.watch(flag.clone());
        }
        pool
    }

    /// Whose flag ends what runs here; the first one counts.
    pub fn watch(&self, flag: Arc<AtomicBool>) {
        let _ = self.interrupt.set(flag);
    }

    pub fn is_interrupted(&self) -> bool {
        self.interrupt.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `work(lo, hi)` over disjoint ranges that cover `0..grid`. Ranges hold at least
    /// `grain` points where there are as many. Returns the code of the lowest range that gave
    /// a nonzero one.
    ///
    /// Which thread runs a range is not fixed; what a range computes may not depend on it.
    pub fn run(&self, grid: u64, grain: u64, work: &(dyn Fn(u64, u64) -> i64 + Sync)) -> i64 {
        let grain = grain.max(1);
        if grid == 0 {
            return 0;
        }
        if grid <= grain || self.workers.is_empty() || self.busy.swap(true, Ordering::Acquire) {
            return work(0, grid);
        }
        self.share(grid, grain, work)
    }

    /// Runs a job on all threads. The caller has set `busy`.
    fn share(&self, grid: u64, grain: u64, work: &(dyn Fn(u64, u64) -> i64 + Sync)) -> i64 {
        let threads = (self.threads() as u64).min(grid.div_ceil(grain)) as usize;
        let shares = &self.shares[..threads];
        let job = Job { work, grid, grain, shares, failed: Mutex::new(None), panicked: AtomicBool::new(false) };
        // Nobody is inside: the job that was before has ended.
        shares.iter().enumerate().for_each(|(n, share)| share.0.store(job.start(n), Ordering::Relaxed));
        let close = Close { pool: self };
        self.open(&job);
        job.drain(0);
        drop(close);
        // The hook has told what happened on the worker's thread.
        assert!(!job.panicked.into_inner(), "a kernel stopped on a worker's thread");
        job.failed.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(0, |(_, code)| code)
    }

    /// Calls `work` for every chunk of `size` elements (the last may be shorter) with its number.
    pub fn each_chunk<T: Send>(&self, items: &mut [T], size: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
        let chunks: Vec<Mutex<&mut [T]>> = items.chunks_mut(size.max(1)).map(Mutex::new).collect();
        self.run(chunks.len() as u64, 1, &|lo, hi| {
            for (i, chunk) in chunks.iter().enumerate().take(hi as usize).skip(lo as usize) {
                // Each chunk is taken once: the lock is always free.
                work(i, &mut chunk.lock().unwrap_or_else(|e| e.into_inner()));
            }
            0
        });
    }

    /// `work` of every number below `count`, in order of number. Numbers are handed out one at a time
    /// in ascending order, so that what takes longest is best put first.
    pub fn map<T: Send + Sync>(&self, count: usize, work: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
        let made: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        self.run(self.threads().min(count) as u64, 1, &|_, _| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(slot) = made.get(number) else { return 0 };
                slot.get_or_init(|| work(number));
            }
        });
        made.into_iter().filter_map(OnceLock::into_inner).collect()
    }

    /// Calls `work` for every number below `count`, all at the same time, so that they may wait for one another; `false`,
    /// and nothing is called, where there are fewer threads or they have something to do.
    pub fn at_once(&self, count: usize, work: &(dyn Fn(usize) + Sync)) -> bool {
        if count == 0 || count > self.threads() || self.busy.swap(true, Ordering::Acquire) {
            return false;
        }
        // As many shares as numbers: each is taken by a thread that has no other.
        self.share(count as u64, 1, &|lo, hi| {
            (lo..hi).for_each(|i| work(i as usize));
            0
        });
        true
    }

    /// Shows the job and wakes as many sleepers as it has shares for.
    fn open(&self, job: &Job) {
        let s = &*self.shared;
        s.job.store(std::ptr::from_ref(job).cast_mut().cast(), Ordering::Release);
        let jobs = s.state.load(Ordering::Relaxed) / JOB;
        s.state.store((jobs + 1) % JOB * JOB + OPEN, Ordering::SeqCst);
        for (worker, asleep) in self.workers.iter().zip(&s.asleep).take(job.shares.len() - 1) {
            if asleep.load(Ordering::SeqCst) && asleep.swap(false, Ordering::SeqCst) {
                worker.unpark();
            }
        }
    }
}

/// Ends the job of [`Pool::run`], also when `work` panics on the caller's thread.
struct Close<'p> {
    pool: &'p Pool,
}

impl Drop for Close<'_> {
    fn drop(&mut self) {
        let s = &*self.pool.shared;
        s.state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut rounds = 0u32;
        while s.state.load(Ordering::Acquire) & INSIDE != 0 {
            rounds += 1;
            // Where a worker has lost its core, this one may be what it waits for.
            if rounds.is_multiple_of(1024) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        self.pool.busy.store(false, Ordering::Release);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.workers.iter().for_each(Thread::unpark);
    }
}

impl Workers for Pool {
    fn threads(&self) -> usize {
        Pool::threads(self)
    }

    fn each_chunk<T: Send>(&self, items: &mut [T], size: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
        Pool::each_chunk(self, items, size, work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_runs_once() {
        for threads in [1, 2, 5] {
            let pool = Pool::new(threads);
            for round in 0..200 {
                let hits: Vec<AtomicU64> = (0..1000).map(|_| AtomicU64::new(0)).collect();
                let code = pool.run(1000, 7, &|lo, hi| {
                    for i in lo..hi {
                        hits[i as usize].fetch_add(1, Ordering::Relaxed);
                    }
                    0
                });
                assert_eq!(code, 0);
                assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1), "round {round}");
            }
        }
    }

    #[test]
    fn a_job_inside_a_job_runs_on_its_caller() {
        let pool = Pool::new(3);
        let sum = AtomicU64::new(0);
        pool.run(10, 1, &|lo, hi| {
            pool.run(hi - lo, 1, &|a, b| {
                sum.fetch_add(b - a, Ordering::Relaxed);
                0
            })
        });
        assert_eq!(sum.into_inner(), 10);
    }

    #[test]
    fn the_lowest_failure_is_told() {
        let pool = Pool::new(4);
        for _ in 0..100 {
            assert_eq!(pool.run(64, 1, &|lo, hi| if hi > 9 { 100 + lo as i64 } else { 0 }), 100 + 8);
        }
    }

    #[test]
    fn results_come_in_order() {
        for threads in [1, 3] {
            let made = Pool::new(threads).map(100, &|n| n * n);
            assert_eq!(made, (0..100).map(|n| n * n).collect::<Vec<_>>());
        }
        assert!(Pool::new(2).map(0, &|n| n).is_empty());
    }

    #[test]
    fn sleepers_wake() {
        let pool = Pool::new(2);
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(3));
            let hits = AtomicU64::new(0);
            pool.run(8, 1, &|lo, hi| {
                hits.fetch_add(hi - lo, Ordering::Relaxed);
                0
            });
            assert_eq!(hits.into_inner(), 8);
        }
    }
}
