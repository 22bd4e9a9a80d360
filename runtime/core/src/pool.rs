//! The thread pool that kernels run on: persistent workers, the caller works too.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A fixed number of threads. One thread means: everything on the caller.
pub struct Pool {
    threads: usize,
    workers: Option<rayon::ThreadPool>,
}

/// How many chunks each thread gets on average: enough to even out a slow core, few enough
/// that the counter costs nothing.
const CHUNKS_PER_THREAD: u64 = 4;

impl Pool {
    /// `threads` is at least 1; if the system refuses threads, the caller works alone.
    pub fn new(threads: usize) -> Pool {
        let threads = threads.clamp(1, 1024);
        let workers = (threads > 1)
            .then(|| {
                let name = |i| format!("tessera-{i}");
                rayon::ThreadPoolBuilder::new().num_threads(threads - 1).thread_name(name).build().ok()
            })
            .flatten();
        Pool { threads: if workers.is_some() { threads } else { 1 }, workers }
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work(lo, hi)` over disjoint ranges that cover `0..grid`. Ranges hold at least
    /// `grain` points where there are as many. Returns the first nonzero code by position.
    ///
    /// Which thread runs a range is not fixed; what a range computes may not depend on it.
    pub fn run(&self, grid: u64, grain: u64, work: &(dyn Fn(u64, u64) -> i64 + Sync)) -> i64 {
        let grain = grain.max(1);
        let Some(workers) = self.workers.as_ref().filter(|_| grid > grain) else {
            return if grid == 0 { 0 } else { work(0, grid) };
        };
        let chunk = grid.div_ceil(self.threads as u64 * CHUNKS_PER_THREAD).max(grain);
        let next = AtomicU64::new(0);
        // The failing position and its code; the lowest position wins.
        let failed_at = AtomicU64::new(u64::MAX);
        let code = AtomicI64::new(0);
        let drain = || {
            loop {
                let lo = next.fetch_add(chunk, Ordering::Relaxed);
                if lo >= grid {
                    return;
                }
                let result = work(lo, (lo + chunk).min(grid));
                if result != 0 && failed_at.fetch_min(lo, Ordering::AcqRel) > lo {
                    code.store(result, Ordering::Release);
                }
            }
        };
        let helpers = (grid.div_ceil(chunk) - 1).min(self.threads as u64 - 1);
        workers.in_place_scope(|scope| {
            for _ in 0..helpers {
                scope.spawn(|_| drain());
            }
            drain();
        });
        code.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_runs_once() {
        for threads in [1, 2, 5] {
            let pool = Pool::new(threads);
            let hits: Vec<AtomicU64> = (0..1000).map(|_| AtomicU64::new(0)).collect();
            let code = pool.run(1000, 7, &|lo, hi| {
                for i in lo..hi {
                    hits[i as usize].fetch_add(1, Ordering::Relaxed);
                }
                0
            });
            assert_eq!(code, 0);
            assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
        }
    }
}
