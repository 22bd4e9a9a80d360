//! The engine of the devices of one process, which see each other's memory.
//!
//! A device that gives parts away shows its buffer, and those who take copy from there: each
//! element is copied once. It goes on when all have taken theirs.

use super::{At, Box, Engine, Moves, STOPPED, copy};
use crate::traffic;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a device shows: its operand of an exchange, and how far the others are with it.
struct Shown {
    /// Which exchange: its tag and its turn.
    exchange: (u32, u64),
    address: *const u8,
    len: usize,
    shape: Arc<[u64]>,
    /// What each receiver takes, in the order of the boxes that it fills.
    sends: Arc<[(usize, Box)]>,
    /// Receivers that copy now.
    readers: usize,
    /// Receivers that have still to come.
    wanted: usize,
}
// SAFETY: the address is that of a buffer whose owner waits until nobody reads it any more.
unsafe impl Send for Shown {}

/// One device's place in the hub.
#[derive(Default)]
struct Desk {
    shown: Mutex<Option<Shown>>,
    bell: Condvar,
    /// Counts what happened at this desk.
    changes: AtomicU64,
}

/// Between the devices of one call that are in this process.
pub struct Hub {
    /// The devices of this process, which have a desk each.
    mine: Range<usize>,
    desks: Vec<Desk>,
    failed: AtomicBool,
    /// Whether a device that waits may keep its core for a while.
    spin: bool,
}

/// How long a device that waits looks before it sleeps.
const LOOK: Duration = Duration::from_micros(100);

impl Hub {
    /// For these devices; what others send and receive is not its business.
    pub fn new(mine: Range<usize>) -> Arc<Hub> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let (desks, spin) = (mine.clone().map(|_| Desk::default()).collect(), mine.len() <= cores);
        Arc::new(Hub { mine, desks, failed: AtomicBool::new(false), spin })
    }

    fn desk(&self, device: usize) -> Option<&Desk> {
        self.desks.get(device.checked_sub(self.mine.start)?)
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Waits at a desk until `ready` gives something.
    fn wait<T>(&self, desk: &Desk, mut ready: impl FnMut(&mut Option<Shown>) -> Option<T>) -> T {
        loop {
            let seen = desk.changes.load(Ordering::SeqCst);
            let mut held = lock(&desk.shown);
            if let Some(out) = ready(&mut held) {
                return out;
            }
            if !self.spin {
                drop(desk.bell.wait(held).unwrap_or_else(PoisonError::into_inner));
                continue;
            }
            drop(held);
            let start = Instant::now();
            while desk.changes.load(Ordering::SeqCst) == seen && start.elapsed() < LOOK {
                std::hint::spin_loop();
            }
            let held = lock(&desk.shown);
            if desk.changes.load(Ordering::SeqCst) == seen {
                drop(desk.bell.wait(held).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}

fn lock(m: &Mutex<Option<Shown>>) -> MutexGuard<'_, Option<Shown>> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    fn change<T>(&self, f: impl FnOnce(&mut Option<Shown>) -> T) -> T {
        let mut held = lock(&self.shown);
        let out = f(&mut held);
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.bell.notify_all();
        out
    }
}

impl Engine for Hub {
    /// Shows what others are to have, takes what they show, and waits until all have taken theirs.
    fn exchange(&self, at: At, moves: &Moves, from: &[u8], to: &mut [u8]) -> Result<(), String> {
        let At { device: me, turn } = at;
        let Some(own) = self.desk(me) else { return Err("the device is not in the mesh".into()) };
        let mut others: Vec<usize> = moves.sends.iter().map(|s| s.0).collect();
        others.retain(|r| *r != me && self.mine.contains(r));
        others.sort_unstable();
        others.dedup();
        if !others.is_empty() {
            let shown = Shown {
                exchange: (moves.tag, turn),
                address: from.as_ptr(),
                len: from.len(),
                shape: moves.from_shape.as_slice().into(),
                sends: moves.sends.as_slice().into(),
                readers: 0,
                wanted: others.len(),
            };
            own.change(|desk| *desk = Some(shown));
        }
        let taken = self.take(at, moves, from, to);
        if others.is_empty() {
            return taken;
        }
        // Nobody may read the buffer once this returns.
        let all = self.wait(own, |desk| match desk {
            Some(s) if s.readers == 0 && (s.wanted == 0 || self.has_failed()) => {
                Some(desk.take().is_some_and(|s| s.wanted == 0))
            }
            Some(_) => None,
            None => Some(false),
        });
        taken.and_then(|()| if all { Ok(()) } else { Err(STOPPED.into()) })
    }

    fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
        for desk in &self.desks {
            let _held = lock(&desk.shown);
            desk.changes.fetch_add(1, Ordering::SeqCst);
            desk.bell.notify_all();
        }
    }
}

impl Hub {
    /// Fills the result: from the own part, and from what the others show.
    fn take(&self, At { device: me, turn }: At, moves: &Moves, from: &[u8], to: &mut [u8]) -> Result<(), String> {
        let mut senders: Vec<usize> = moves.receives.iter().map(|r| r.0).collect();
        senders.retain(|s| self.mine.contains(s));
        senders.sort_unstable();
        senders.dedup();
        // What is at hand comes first, then the next devices in turn: not all from one at once.
        let behind = |s: &usize| (s + self.desks.len() - me) % self.desks.len();
        senders.sort_by_key(behind);
        for sender in senders {
            let into = moves.receives.iter().filter(|r| r.0 == sender);
            if sender == me {
                let out = moves.sends.iter().filter(|s| s.0 == me);
                for ((_, a), (_, b)) in out.zip(into) {
                    copy(from, (&moves.from_shape, a), to, (&moves.to_shape, b), moves.element);
                }
                continue;
            }
            let Some(desk) = self.desk(sender) else { return Err("a device is not in the mesh".into()) };
            let found = self.wait(desk, |shown| match shown {
                Some(s) if s.exchange == (moves.tag, turn) && !self.has_failed() => {
                    s.readers += 1;
                    Some(Some((s.address as usize, s.len, s.shape.clone(), s.sends.clone())))
                }
                _ if self.has_failed() => Some(None),
                _ => None,
            });
            let Some((address, len, shape, sends)) = found else { return Err(STOPPED.into()) };
            // SAFETY: the device that shows the buffer neither changes nor frees it while there are readers.
            let theirs = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
            let mut bytes = 0;
            for ((_, a), (_, b)) in sends.iter().filter(|s| s.0 == me).zip(into) {
                copy(theirs, (&shape, a), to, (&moves.to_shape, b), moves.element);
                bytes += b.size.iter().product::<u64>() as usize * moves.element;
            }
            traffic::add(&moves.name, sender, 0, bytes);
            desk.change(|shown| {
                if let Some(s) = shown {
                    s.readers -= 1;
                    s.wanted = s.wanted.saturating_sub(1);
                }
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{as_device, exchange};

    #[test]
    fn devices_exchange_and_a_failure_ends_all() {
        let all = |start: u64| Box { start: vec![start], size: vec![1] };
        for fails in [false, true] {
            let hub = Hub::new(0..3);
            let engine: Arc<dyn Engine> = hub.clone();
            let results: Vec<_> = std::thread::scope(|scope| {
                let run = |me: usize| {
                    let engine = &engine;
                    move || {
                        if fails && me == 2 {
                            engine.fail();
                            return (Err(STOPPED.to_owned()), vec![]);
                        }
                        let moves = Moves {
                            name: "all_gather".into(),
                            tag: 1,
                            sends: (0..3).map(|r| (r, all(0))).collect(),
                            receives: (0..3).map(|s| (s, all(s as u64))).collect(),
                            from_shape: vec![1],
                            to_shape: vec![3],
                            element: 1,
                        };
                        let mut to = vec![0; 3];
                        (as_device(engine, me, || exchange(&moves, &[me as u8 + 1], &mut to)), to)
                    }
                };
                let threads: Vec<_> = (0..3).map(|me| scope.spawn(run(me))).collect();
                threads.into_iter().filter_map(|t| t.join().ok()).collect()
            });
            assert_eq!(results.len(), 3);
            for (result, got) in results {
                match fails {
                    false => assert_eq!((result, got), (Ok(()), vec![1, 2, 3])),
                    true => assert_eq!(result, Err(STOPPED.to_owned())),
                }
            }
        }
    }
}
