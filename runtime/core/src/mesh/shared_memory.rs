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
    /// What each receiver takes: by receiver, in the order of the boxes that it fills.
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
    /// Devices that sleep until something happens here; changed while `shown` is held.
    asleep: AtomicUsize,
    /// Whether the device takes back what it shows, as soon as nobody reads it.
    leaving: AtomicBool,
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
                desk.sleep(held);
                continue;
            }
            drop(held);
            let start = Instant::now();
            while desk.changes.load(Ordering::SeqCst) == seen && start.elapsed() < LOOK {
                std::hint::spin_loop();
            }
            let held = lock(&desk.shown);
            if desk.changes.load(Ordering::SeqCst) == seen {
                desk.sleep(held);
            }
        }
    }
}

fn lock(m: &Mutex<Vec<Shown>>) -> MutexGuard<'_, Vec<Shown>> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    fn sleep(&self, held: MutexGuard<Vec<Shown>>) {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let held = self.bell.wait(held).unwrap_or_else(PoisonError::into_inner);
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        drop(held);
    }

    /// Tells who waits here. To be called while `shown` is held.
    fn ring(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        // With a thousand devices most rings would be for nobody, and each is a call of the system.
        if self.asleep.load(Ordering::SeqCst) > 0 {
            self.bell.notify_all();
        }
    }

    /// Leaves a copy of what is shown of an exchange, so that its device can go on; `false` where somebody takes it
    /// anyway, or where there is no room.
    fn leave(&self, exchange: (u32, u64)) -> bool {
        let mut shown = lock(&self.shown);
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
    }

    /// A receiver has what it takes of an exchange. The last one drops a copy. The device is told when it is its turn:
    /// when all have theirs, or where it ends and nobody reads.
    fn taken(&self, exchange: (u32, u64), failed: &AtomicBool) {
        let mut shown = lock(&self.shown);
        let Some(at) = shown.iter().position(|s| s.exchange == exchange) else { return };
        let s = &mut shown[at];
        s.readers -= 1;
        s.wanted = s.wanted.saturating_sub(1);
        // Looked at while `shown` is held: who sets one of them looks there afterwards.
        let ends = failed.load(Ordering::SeqCst) || self.leaving.load(Ordering::SeqCst);
        if s.readers == 0 && (s.wanted == 0 || ends) {
            self.ring();
        }
        if s.wanted == 0 && !s.left.is_empty() {
            let gone = shown.swap_remove(at);
            let bytes: usize = gone.left.iter().map(Buffer::len).sum();
            self.left.fetch_sub(bytes, Ordering::SeqCst);
        }
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
        parts.sort_by_key(|p| p.to);
        let wanted = parts.chunk_by(|a, b| a.to == b.to).count();
        if wanted > 0 {
            let exchange = (moves.tag, turn);
            let mut shown = lock(&own.shown);
            shown.push(Shown { exchange, parts, left: vec![], readers: 0, wanted });
            own.ring();
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
        own.leaving.store(true, Ordering::SeqCst);
        self.wait(own, |shown| {
            shown.retain(|s| s.readers > 0);
            shown.is_empty().then_some(())
        });
    }

    fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
        for desk in &self.desks {
            let _held = lock(&desk.shown);
            desk.ring();
        }
    }
}

impl Hub {
    /// Of boxes those that go to or come from the other devices here.
    fn theirs<'a>(&'a self, me: usize, boxes: &'a [(usize, Box)]) -> impl Iterator<Item = &'a (usize, Box)> {
        boxes.iter().filter(move |b| b.0 != me && self.mine.contains(&b.0))
    }

    /// Fills the result: from the own part, and from what the others show.
    fn take(&self, at: At, moves: &Moves, from: &[&[u8]], to: &mut [&mut [u8]]) -> Result<(), String> {
        let me = at.device;
        let mut all: Vec<Wanted> = vec![];
        for (i, piece) in moves.pieces.iter().enumerate() {
            let own = piece.receives.iter().filter(|r| self.mine.contains(&r.0));
            all.extend(own.map(|(sender, into)| Wanted { sender: *sender, piece: i, into }));
        }
        all.sort_by_key(|w| w.sender);
        let (own, others): (Vec<&[Wanted]>, _) =
            all.chunk_by(|a, b| a.sender == b.sender).partition(|w| w[0].sender == me);
        if !own.is_empty() {
            for ((piece, from), to) in moves.pieces.iter().zip(from).zip(&mut *to) {
                let out = piece.sends.iter().filter(|s| s.0 == me);
                for ((_, a), (_, b)) in out.zip(piece.receives.iter().filter(|r| r.0 == me)) {
                    piece.copy((from, a), (to, b));
                }
            }
        }
        // The next devices in turn: not all from one at once.
        let mut others: Vec<&[Wanted]> = others;
        others.sort_by_key(|w| (w[0].sender + self.desks.len() - me) % self.desks.len());
        if self.spin {
            return others.into_iter().try_for_each(|w| self.take_from(at, moves, w, to, true).map(|_| ()));
        }
        // Each wait is for another thread to get a core: what is there comes first, and then what is likely to come last.
        loop {
            let mut rest = vec![];
            for wanted in others {
                if !self.take_from(at, moves, wanted, to, false)? {
                    rest.push(wanted);
                }
            }
            others = rest;
            let Some(last) = (0..others.len()).max_by_key(|&i| others[i][0].sender) else { return Ok(()) };
            self.take_from(at, moves, others.swap_remove(last), to, true)?;
        }
    }

    /// Takes what one device shows; whether it shows it. With `wait` it is waited for.
    fn take_from(
        &self,
        At { device: me, turn }: At,
        moves: &Moves,
        wanted: &[Wanted],
        to: &mut [&mut [u8]],
        wait: bool,
    ) -> Result<bool, String> {
        let sender = wanted.first().map_or(me, |w| w.sender);
        let Some(desk) = self.desk(sender) else { return Err("a device is not in the mesh".into()) };
        let exchange = (moves.tag, turn);
        let look = |shown: &mut Vec<Shown>| match shown.iter_mut().find(|s| s.exchange == exchange) {
            _ if self.has_failed() => Some(None),
            Some(s) => {
                s.readers += 1;
                let first = s.parts.partition_point(|p| p.to < me);
                Some(Some(s.parts[first..].iter().take_while(|p| p.to == me).cloned().collect::<Vec<_>>()))
            }
            None => None,
        };
        let found = if wait {
            desk.waiting.fetch_add(1, Ordering::SeqCst);
            let found = self.wait(desk, look);
            desk.waiting.fetch_sub(1, Ordering::SeqCst);
            found
        } else {
            let found = look(&mut lock(&desk.shown));
            let Some(found) = found else { return Ok(false) };
            found
        };
        let Some(parts) = found else { return Err(STOPPED.into()) };
        let mut bytes = 0;
        for (w, p) in wanted.iter().zip(&parts) {
            let (piece, to) = (&moves.pieces[w.piece], &mut to[w.piece]);
            // SAFETY: what is shown is neither changed nor freed while there are readers.
            let theirs = unsafe { std::slice::from_raw_parts(p.address, p.len) };
            copy(theirs, (&p.shape, &p.part), to, (&piece.to_shape, w.into), p.element);
            bytes += p.bytes();
        }
        traffic::gave(&moves.name, sender, bytes);
        desk.taken(exchange, &self.failed);
        Ok(true)
    }
}

/// A box of a result that another device gives.
struct Wanted<'a> {
    sender: usize,
    piece: usize,
    into: &'a Box,
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
