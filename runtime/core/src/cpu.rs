//! The processor of the host: a thread pool that takes ranges of a kernel's grid.

use crate::buffer::{Buffer, poison};
use crate::device::{Address, Device, DeviceId, Memory};
use crate::fault::Fault;
use crate::native;
use crate::pool::Pool;
use crate::profile::{self, Tiles};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tessera_abi::plan::{Code, Kernel, Launch, StepOrigin, Stop};
use tessera_base::bug;

thread_local! {
    /// Scratch of kernels on this thread, grown on demand.
    static SCRATCH: RefCell<Option<Buffer>> = const { RefCell::new(None) };
}

/// Base addresses that may cross threads: the plan keeps writers of one step disjoint.
struct Addresses<'a>(&'a [Address]);
// SAFETY: kernels of one step write disjoint ranges (grid points are independent).
unsafe impl Sync for Addresses<'_> {}

impl Addresses<'_> {
    fn first(&self) -> *const Address {
        self.0.as_ptr()
    }
}

impl Device for Pool {
    fn id(&self) -> DeviceId {
        DeviceId::HOST
    }

    fn alloc(&self, _: u64) -> Result<Arc<dyn Memory>, Fault> {
        bug!("memory of the host is asked of its processor")
    }

    unsafe fn upload(&self, _: &[u8], _: Address) -> Result<(), Fault> {
        bug!("the host sends itself bytes")
    }

    unsafe fn download(&self, _: Address, _: &mut [u8]) -> Result<(), Fault> {
        bug!("the host asks itself for bytes")
    }

    unsafe fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), Fault> {
        let n = bytes as usize;
        match (from as usize).abs_diff(to as usize) {
            0 => {}
            // SAFETY: the caller's promise, and the ends do not overlap.
            apart if apart >= n => unsafe { native::copy(self, from, to, n) },
            // SAFETY: the caller's promise; overlap is allowed here.
            _ => unsafe { std::ptr::copy(from, to, n) },
        }
        Ok(())
    }

    unsafe fn spoil(&self, at: Address, bytes: u64) {
        if bytes > 0 {
            // SAFETY: the caller's promise.
            poison::spoil(unsafe { std::slice::from_raw_parts_mut(at, bytes as usize) });
        }
    }

    unsafe fn launch(
        &self,
        kernel: &Kernel,
        launch: &Launch,
        bufs: &[Address],
        words: &[u64],
        origin: StepOrigin,
    ) -> Result<(), Stop> {
        let Code::Host { entry, .. } = &kernel.code else {
            bug!("`{}` is no function of this process", kernel.name);
        };
        let Launch { grid, grain, scratch_bytes, checks } = launch;
        let addresses = &Addresses(bufs);
        // The first grid point that fails is the one that is told about.
        let failed = Mutex::new((u64::MAX, None));
        let bytes = if checks.is_empty() { *scratch_bytes } else { (*scratch_bytes).max(8) };
        let alone = *grid <= (*grain).max(1) || self.threads() == 1;
        let watch = (!alone && profile::is_on()).then(Watch::default);
        let code = self.run(*grid, *grain, &|lo, hi| {
            let _watched = watch.as_ref().map(|watch| watch.range(hi - lo));
            with_scratch(bytes, |scratch| {
                // SAFETY: the caller gives every buffer the size its kernel was compiled for.
                let code = unsafe { entry(addresses.first(), words.as_ptr(), lo, hi, scratch) };
                let check = code.checked_sub(1).and_then(|i| usize::try_from(i).ok()).and_then(|i| checks.get(i));
                if let Some(bounds) = check {
                    // SAFETY: kernels with checks have a word of scratch, which holds the position.
                    let position = unsafe { scratch.cast::<i64>().read() };
                    let mut failed = failed.lock().unwrap_or_else(|e| e.into_inner());
                    if lo < failed.0 {
                        *failed = (lo, Some(bounds.message(position)));
                    }
                }
                code
            })
        });
        match watch {
            Some(watch) => profile::launched(watch.tiles(*grid, self.threads())),
            None if profile::is_on() => profile::launched_alone(*grid, self.threads()),
            None => {}
        }
        if code == 0 {
            return Ok(());
        }
        let message = match failed.into_inner().unwrap_or_else(|e| e.into_inner()).1 {
            Some(message) => message,
            None => format!("no memory for the scratch of `{}` ({scratch_bytes} bytes)", kernel.name),
        };
        Err(Stop { origin: Some(origin), ..message.into() })
    }

    fn sync(&self) -> Result<(), Stop> {
        Ok(())
    }

    fn is_interrupted(&self) -> bool {
        Pool::is_interrupted(self)
    }
}

/// The times of the ranges of a kernel's points, of which each thread runs some.
struct Watch {
    busy: AtomicU64,
    least: AtomicU64,
    most: AtomicU64,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { busy: AtomicU64::new(0), least: AtomicU64::new(u64::MAX), most: AtomicU64::new(0) }
    }
}

/// A range that runs.
struct Range<'w> {
    watch: &'w Watch,
    points: u64,
    started: Instant,
}

impl Watch {
    fn range(&self, points: u64) -> Range<'_> {
        Range { watch: self, points, started: Instant::now() }
    }

    fn tiles(&self, count: u64, threads: usize) -> Tiles {
        let [busy, least, most] =
            [&self.busy, &self.least, &self.most].map(|n| Duration::from_nanos(n.load(Ordering::Relaxed)));
        Tiles { count, total: count, threads, busy, least: least.min(most), most }
    }
}

impl Drop for Range<'_> {
    fn drop(&mut self) {
        let took = self.started.elapsed().as_nanos() as u64;
        self.watch.busy.fetch_add(took, Ordering::Relaxed);
        let each = took / self.points.max(1);
        self.watch.least.fetch_min(each, Ordering::Relaxed);
        self.watch.most.fetch_max(each, Ordering::Relaxed);
    }
}

fn with_scratch(bytes: u64, f: impl FnOnce(*mut u8) -> i64) -> i64 {
    if bytes == 0 {
        return f(std::ptr::null_mut());
    }
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.as_ref().is_none_or(|s| (s.len() as u64) < bytes) {
            *scratch = None;
            match Buffer::new(bytes, false) {
                Ok(b) => *scratch = Some(b),
                Err(_) => return i64::MIN,
            }
        } else if let Some(scratch) = scratch {
            poison::spoil(scratch.bytes_mut());
        }
        scratch.as_ref().map_or(i64::MIN, |s| f(s.as_ptr()))
    })
}
