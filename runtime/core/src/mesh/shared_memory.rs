//! The engine of the devices of one process, which see each other's memory.
//!
//! A device that gives parts away shows its buffer, and those who take copy from there: each
//! element is copied once. It goes on when all have taken theirs. A device that only gives goes on at once, and
//! leaves a copy to those who come later.

use super::{At, Box, Engine, Moves, STOPPED, copy};
use crate::tensor::Buffer;
use crate::traffic;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a device shows: its operand of an exchange, and how far the others are with it.
struct Shown {
    /// Which exchange: its tag and its turn.
    exchange: (u32, u64),
    /// What each receiver takes, in the order of the boxes that it fills.
    parts: Vec<Part>,
    /// Copies that the parts lie in, where the device went on without waiting.
    left: Vec<Buffer>,
    /// Receivers that copy now.
    readers: usize,
    /// Receivers that have still to come.
    wanted: usize,
}

/// A box of an array in memory, and who takes it.
#[derive(Clone)]
struct Part {
    to: usize,
    address: *const u8,
    len: usize,
    shape: Arc<[u64]>,
    part: Box,
    /// Bytes of an element.
    element: usize,
}

impl Part {
    fn bytes(&self) -> usize {
        self.part.elems() * self.element
    }
}

// SAFETY: the address is that of a buffer whose owner waits until nobody reads it any more, or of a copy that is
// dropped with the last reader.
unsafe impl Send for Part {}

/// One device's place in the hub.
#[derive(Default)]
struct Desk {
    shown: Mutex<Vec<Shown>>,
    bell: Condvar,
    /// Counts what happened at this desk.
    changes: AtomicU64,
    /// Receivers that wait for something to be shown.
    waiting: AtomicUsize,
    /// Bytes of the copies here.
    left: AtomicUsize,
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

/// Bytes that a device leaves as copies at most.
const LEFT_MAX: usize = 64 << 20;
/// How long a device that waits looks before it sleeps.
const LOOK: Duration = Duration::from_micros(100);

impl Hub {
    /// For these devices; what others send and receive is not its business.
    pub fn new(mine: Range<usize>) -> Arc<Hub> {
        let cores = tessera_abi::cores();
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
    fn wait<T>(&self, desk: &Desk, ready: impl FnMut(&mut Vec<Shown>) -> Option<T>) -> T {
        traffic::waiting(|| self.wait_until(desk, ready))
    }

    fn wait_until<T>(&self, desk: &Desk, mut ready: impl FnMut(&mut Vec<Shown>) -> Option<T>) -> T {
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

fn lock(m: &Mutex<Vec<Shown>>) -> MutexGuard<'_, Vec<Shown>> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    fn change<T>(&self, f: impl FnOnce(&mut Vec<Shown>) -> T) -> T {
        let mut held = lock(&self.shown);
        let out = f(&mut held);
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.bell.notify_all();
        out
    }

    /// Leaves a copy of what is shown of an exchange, so that its device can go on; `false` where somebody takes it
    /// anyway, or where there is no room.
    fn leave(&self, exchange: (u32, u64)) -> bool {
        self.change(|shown| {
            let Some(s) = shown.iter_mut().find(|s| s.exchange == exchange) else { return false };
            let bytes: usize = s.parts.iter().map(Part::bytes).sum();
            let busy = s.wanted == 0 || s.readers > 0 || self.waiting.load(Ordering::SeqCst) > 0;
            if busy || self.left.load(Ordering::SeqCst) + bytes > LEFT_MAX {
                return false;
            }
            let mut left = vec![];
            for p in &s.parts {
                let Ok(mut copied) = Buffer::new(p.bytes() as u64, false) else { return false };
                // SAFETY: the device that shows it is the one that calls this.
                let own = unsafe { std::slice::from_raw_parts(p.address, p.len) };
                copy(own, (&p.shape, &p.part), copied.bytes_mut(), (&p.part.size, &p.part.at_start()), p.element);
                left.push(copied);
            }
            for (p, copied) in s.parts.iter_mut().zip(&left) {
                let (shape, part) = (p.part.size.as_slice().into(), p.part.at_start());
                *p = Part { address: copied.as_ptr(), len: copied.len(), shape, part, ..*p };
            }
            s.left = left;
            self.left.fetch_add(bytes, Ordering::SeqCst);
            true
        })
    }

    /// A receiver has what it takes of an exchange. The last one drops a copy.
    fn taken(&self, exchange: (u32, u64)) {
        self.change(|shown| {
            let Some(at) = shown.iter().position(|s| s.exchange == exchange) else { return };
            let s = &mut shown[at];
            s.readers -= 1;
            s.wanted = s.wanted.saturating_sub(1);
            if s.wanted == 0 && !s.left.is_empty() {
                let gone = shown.swap_remove(at);
                let bytes: usize = gone.left.iter().map(Buffer::len).sum();
                self.left.fetch_sub(bytes, Ordering::SeqCst);
            }
        });
    }
}

impl Engine for Hub {
    /// Shows what others are to have.
    unsafe fn start(&self, At { device: me, turn }: At, moves: &Moves, from: &[&[u8]]) -> Result<(), String> {
        let Some(own) = self.desk(me) else { return Err("the device is not in the mesh".into()) };
        let mut parts = vec![];
        for (piece, from) in moves.pieces.iter().zip(from) {
            let shape: Arc<[u64]> = piece.from_shape.as_slice().into();
            let (address, len, element) = (from.as_ptr(), from.len(), piece.element);
            let part = |(to, part): &(usize, Box)| Part {
                to: *to,
                address,
                len,
                shape: shape.clone(),
                part: part.clone(),
                element,
            };
            parts.extend(self.theirs(me, &piece.sends).map(part));
        }
        let mut others: Vec<usize> = parts.iter().map(|p| p.to).collect();
        others.sort_unstable();
        others.dedup();
        let wanted = others.len();
        if wanted > 0 {
            let exchange = (moves.tag, turn);
            own.change(|shown| shown.push(Shown { exchange, parts, left: vec![], readers: 0, wanted }));
        }
        Ok(())
    }

    /// Takes what others show, and waits until all have taken theirs. Where there is nothing to take and nobody waits,
    /// it leaves a copy instead.
    fn finish(&self, at: At, moves: &Moves, from: &[&[u8]], to: &mut [&mut [u8]]) -> Result<(), String> {
        let At { device: me, turn } = at;
        let Some(own) = self.desk(me) else { return Err("the device is not in the mesh".into()) };
        let exchange = (moves.tag, turn);
        let taken = self.take(at, moves, from, to);
        let takes = moves.pieces.iter().any(|p| self.theirs(me, &p.receives).next().is_some());
        let gives = moves.pieces.iter().any(|p| self.theirs(me, &p.sends).next().is_some());
        if !gives || !takes && own.leave(exchange) {
            return taken;
        }
        // Nobody may read the buffer once this returns.
        let all = self.wait(own, |shown| {
            let Some(at) = shown.iter().position(|s| s.exchange == exchange) else { return Some(false) };
            let done = shown[at].readers == 0 && (shown[at].wanted == 0 || self.has_failed());
            done.then(|| shown.remove(at).wanted == 0)
        });
        taken.and_then(|()| if all { Ok(()) } else { Err(STOPPED.into()) })
    }

    fn withdraw(&self, device: usize) {
        let Some(own) = self.desk(device) else { return };
        self.wait(own, |shown| {
            shown.retain(|s| s.readers > 0);
            shown.is_empty().then_some(())
        });
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
    /// Of boxes those that go to or come from the other devices here.
    fn theirs<'a>(&'a self, me: usize, boxes: &'a [(usize, Box)]) -> impl Iterator<Item = &'a (usize, Box)> {
        boxes.iter().filter(move |b| b.0 != me && self.mine.contains(&b.0))
    }

    /// Fills the result: from the own part, and from what the others show.
    fn take(
        &self,
        At { device: me, turn }: At,
        moves: &Moves,
        from: &[&[u8]],
        to: &mut [&mut [u8]],
    ) -> Result<(), String> {
        let mut senders: Vec<usize> = moves.pieces.iter().flat_map(|p| &p.receives).map(|r| r.0).collect();
        senders.retain(|s| self.mine.contains(s));
        senders.sort_unstable();
        senders.dedup();
        // What is at hand comes first, then the next devices in turn: not all from one at once.
        let behind = |s: &usize| (s + self.desks.len() - me) % self.desks.len();
        senders.sort_by_key(behind);
        for sender in senders {
            if sender == me {
                for ((piece, from), to) in moves.pieces.iter().zip(from).zip(&mut *to) {
                    let out = piece.sends.iter().filter(|s| s.0 == me);
                    for ((_, a), (_, b)) in out.zip(piece.receives.iter().filter(|r| r.0 == me)) {
                        piece.copy((from, a), (to, b));
                    }
                }
                continue;
            }
            let Some(desk) = self.desk(sender) else { return Err("a device is not in the mesh".into()) };
            desk.waiting.fetch_add(1, Ordering::SeqCst);
            let found = self.wait(desk, |shown| match shown.iter_mut().find(|s| s.exchange == (moves.tag, turn)) {
                _ if self.has_failed() => Some(None),
                Some(s) => {
                    s.readers += 1;
                    Some(Some(s.parts.iter().filter(|p| p.to == me).cloned().collect::<Vec<_>>()))
                }
                None => None,
            });
            desk.waiting.fetch_sub(1, Ordering::SeqCst);
            let Some(parts) = found else { return Err(STOPPED.into()) };
            let (mut bytes, mut parts) = (0, parts.iter());
            for (piece, to) in moves.pieces.iter().zip(&mut *to) {
                let into = piece.receives.iter().filter(|r| r.0 == sender);
                for ((_, b), p) in into.zip(&mut parts) {
                    // SAFETY: what is shown is neither changed nor freed while there are readers.
                    let theirs = unsafe { std::slice::from_raw_parts(p.address, p.len) };
                    copy(theirs, (&p.shape, &p.part), to, (&piece.to_shape, b), p.element);
                    bytes += p.bytes();
                }
            }
            traffic::gave(&moves.name, sender, bytes);
            desk.taken((moves.tag, turn));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Piece, as_device, exchange};

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
                        let piece = |element| Piece {
                            sends: (0..3).map(|r| (r, all(0))).collect(),
                            receives: (0..3).map(|s| (s, all(s as u64))).collect(),
                            from_shape: vec![1],
                            to_shape: vec![3],
                            element,
                        };
                        let moves = Moves { name: "all_gather".into(), tag: 1, pieces: vec![piece(1), piece(2)] };
                        let (mut to, mut wide) = (vec![0; 3], vec![0; 6]);
                        let own = me as u8 + 1;
                        let done = as_device(engine, me, || {
                            exchange(&moves, &[&[own], &[own, own + 10]], &mut [&mut to, &mut wide])
                        });
                        (done, [to, wide].concat())
                    }
                };
                let threads: Vec<_> = (0..3).map(|me| scope.spawn(run(me))).collect();
                threads.into_iter().filter_map(|t| t.join().ok()).collect()
            });
            assert_eq!(results.len(), 3);
            for (result, got) in results {
                match fails {
                    false => assert_eq!((result, got), (Ok(()), vec![1, 2, 3, 1, 11, 2, 12, 3, 13])),
                    true => assert_eq!(result, Err(STOPPED.to_owned())),
                }
            }
        }
    }

    /// What one device of two does, which each give one byte to the other.
    fn swap(tag: u32, me: usize) -> Moves {
        let whole = Box { start: vec![0], size: vec![1] };
        let (name, other) = ("permute".into(), vec![(1 - me, whole)]);
        let (from_shape, to_shape) = (vec![1], vec![1]);
        let piece = Piece { sends: other.clone(), receives: other, from_shape, to_shape, element: 1 };
        Moves { name, tag, pieces: vec![piece] }
    }

    #[test]
    fn exchanges_start_in_any_order() {
        let hub = Hub::new(0..2);
        let run = |me: usize| {
            let hub = &hub;
            move || {
                let given: Vec<[u8; 1]> = (0..3).map(|tag| [10 * me as u8 + tag]).collect();
                let at = At { device: me, turn: 1 };
                for i in 0..3 {
                    let tag = if me == 0 { i } else { 2 - i };
                    // SAFETY: the bytes stay until all are finished.
                    let started = unsafe { hub.start(at, &swap(tag as u32, me), &[&given[tag]]) };
                    assert_eq!(started, Ok(()));
                }
                let end = |tag: usize| {
                    let mut to = [0];
                    (hub.finish(at, &swap(tag as u32, me), &[&given[tag]], &mut [&mut to]), to[0])
                };
                (0..3).map(end).collect::<Vec<_>>()
            }
        };
        let got = std::thread::scope(|scope| {
            let other = scope.spawn(run(1));
            [run(0)(), other.join().unwrap_or_default()]
        });
        assert_eq!(got, [[10, 11, 12], [0, 1, 2]].map(|all| all.map(|n| (Ok(()), n)).to_vec()));
    }

    #[test]
    fn what_is_withdrawn_nobody_takes() {
        let hub = Hub::new(0..2);
        let at = |device| At { device, turn: 1 };
        let given = vec![7];
        // SAFETY: the bytes stay until they are withdrawn.
        assert_eq!(unsafe { hub.start(at(0), &swap(1, 0), &[&given]) }, Ok(()));
        hub.withdraw(0);
        drop(given);
        hub.fail();
        assert_eq!(hub.exchange(at(1), &swap(1, 1), &[&[8]], &mut [&mut [0]]), Err(STOPPED.to_owned()));
    }
}
