//! The devices of a mesh in one process: what a tensor that lies on several is, and how their
//! parts get from one to another.
//!
//! A device that gives parts away shows its buffer, and those who take copy from there: each
//! element is copied once. It goes on when all have taken theirs.

use crate::tensor::{OutOfMemory, Parts, Tensor};
use crate::traffic;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

impl Tensor {
    /// A tensor of this shape that lies in parts.
    pub fn in_parts(like: &Tensor, shape: Vec<u64>, parts: Parts) -> Result<Tensor, OutOfMemory> {
        Ok(Tensor { shape, parts: Some(Arc::new(parts)), ..Tensor::new(like.dtype, &[0], false)? })
    }

    /// The tensor on one device.
    pub fn whole(&self) -> Result<Tensor, OutOfMemory> {
        let Some(parts) = &self.parts else { return Ok(self.clone()) };
        let mut out = Tensor::new(self.dtype, &self.shape, true)?;
        let (shape, element) = (self.shape.clone(), self.dtype.bytes());
        let to = out.bytes_mut()?;
        for (device, part) in parts.parts.iter().enumerate() {
            let held = parts.layout.block(&shape, device as u64);
            let into = Box { start: held.iter().map(|r| r.start).collect(), size: part.shape.clone() };
            let all = Box { start: vec![0; part.shape.len()], size: part.shape.clone() };
            copy(part.bytes(), (&part.shape, &all), to, (&shape, &into), element);
        }
        Ok(out)
    }
}

/// A box of elements of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Box {
    pub start: Vec<u64>,
    pub size: Vec<u64>,
}

/// Copies a box of one array into a box of the same size of another.
fn copy(from: &[u8], (from_shape, a): (&[u64], &Box), to: &mut [u8], (to_shape, b): (&[u64], &Box), element: usize) {
    if a.size.contains(&0) || a.size != b.size {
        return;
    }
    // Trailing dims that are whole on both sides belong to one row.
    let rank = a.size.len();
    let mut outer = rank;
    while outer > 0 && a.size[outer - 1] == from_shape[outer - 1] && a.size[outer - 1] == to_shape[outer - 1] {
        outer -= 1;
    }
    let outer = outer.saturating_sub(1);
    let run = a.size[outer..].iter().product::<u64>() as usize * element;
    let strides = |shape: &[u64]| -> Vec<u64> {
        (0..rank).map(|d| shape[d + 1..].iter().product::<u64>() * element as u64).collect()
    };
    let (sa, sb) = (strides(from_shape), strides(to_shape));
    let place = |strides: &[u64], start: &[u64]| strides.iter().zip(start).map(|(s, i)| s * i).sum::<u64>();
    let (first_a, first_b) = (place(&sa, &a.start), place(&sb, &b.start));
    let mut at = vec![0u64; outer];
    loop {
        let (x, y) = ((first_a + place(&sa, &at)) as usize, (first_b + place(&sb, &at)) as usize);
        if let (Some(x), Some(y)) = (from.get(x..x + run), to.get_mut(y..y + run)) {
            y.copy_from_slice(x);
        }
        let Some(d) = (0..outer).rev().find(|&d| at[d] + 1 < a.size[d]) else { return };
        at[d] += 1;
        at[d + 1..].fill(0);
    }
}

/// What one device does in an exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moves {
    pub name: Arc<str>,
    pub tag: u32,
    /// By receiver, of the operand.
    pub sends: Vec<(usize, Box)>,
    /// By sender, of the result.
    pub receives: Vec<(usize, Box)>,
    pub from_shape: Vec<u64>,
    pub to_shape: Vec<u64>,
    /// Bytes of an element.
    pub element: usize,
}

/// What a device shows: its operand of an exchange, and how far the others are with it.
struct Shown {
    tag: u32,
    /// Which exchange of the device this is: loops make those of one tag again and again.
    turn: u64,
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

/// Between the devices of one call.
pub struct Hub {
    desks: Vec<Desk>,
    failed: AtomicBool,
    /// Whether a device that waits may keep its core for a while.
    spin: bool,
}

/// How long a device that waits looks before it sleeps.
const LOOK: Duration = Duration::from_micros(100);

impl Hub {
    pub fn new(devices: usize) -> Arc<Hub> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let desks = (0..devices).map(|_| Desk::default()).collect();
        Arc::new(Hub { desks, failed: AtomicBool::new(false), spin: devices <= cores })
    }

    /// Ends the waiting of all devices: one of them stopped.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
        for desk in &self.desks {
            let _held = lock(&desk.shown);
            desk.changes.fetch_add(1, Ordering::SeqCst);
            desk.bell.notify_all();
        }
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

/// The message of a device that waited for one that failed; the other's message is the one to show.
pub const STOPPED: &str = "another device stopped";

thread_local! {
    /// The device that this thread is, during a call.
    static DEVICE: RefCell<Option<(Arc<Hub>, usize)>> = const { RefCell::new(None) };
    /// Exchanges of this device in this call.
    static TURNS: Cell<u64> = const { Cell::new(0) };
}

/// Runs `f` as a device of a mesh.
pub fn as_device<R>(hub: &Arc<Hub>, device: usize, f: impl FnOnce() -> R) -> R {
    DEVICE.set(Some((hub.clone(), device)));
    TURNS.set(0);
    let out = f();
    DEVICE.set(None);
    out
}

/// Shows what others are to have, takes what they show, and waits until all have taken theirs.
pub fn exchange(moves: &Moves, from: &[u8], to: &mut [u8]) -> Result<(), String> {
    let Some((hub, me)) = DEVICE.with_borrow(Clone::clone) else {
        return Err(format!("`{}` runs outside a mesh", moves.name));
    };
    let Some(own) = hub.desks.get(me) else { return Err("the device is not in the mesh".into()) };
    let turn = TURNS.get() + 1;
    TURNS.set(turn);
    traffic::add(&moves.name, me, 1, 0);
    let mut others: Vec<usize> = moves.sends.iter().map(|s| s.0).filter(|r| *r != me).collect();
    others.sort_unstable();
    others.dedup();
    if !others.is_empty() {
        let shown = Shown {
            tag: moves.tag,
            turn,
            address: from.as_ptr(),
            len: from.len(),
            shape: moves.from_shape.as_slice().into(),
            sends: moves.sends.as_slice().into(),
            readers: 0,
            wanted: others.len(),
        };
        own.change(|desk| *desk = Some(shown));
    }
    let taken = take(moves, &hub, (me, turn), from, to);
    if others.is_empty() {
        return taken;
    }
    // Nobody may read the buffer once this returns.
    let all = hub.wait(own, |desk| match desk {
        Some(s) if s.readers == 0 && (s.wanted == 0 || hub.has_failed()) => {
            Some(desk.take().is_some_and(|s| s.wanted == 0))
        }
        Some(_) => None,
        None => Some(false),
    });
    taken.and_then(|()| if all { Ok(()) } else { Err(STOPPED.into()) })
}

/// Fills the result: from the own part, and from what the others show.
fn take(moves: &Moves, hub: &Hub, (me, exchange): (usize, u64), from: &[u8], to: &mut [u8]) -> Result<(), String> {
    let mut senders: Vec<usize> = moves.receives.iter().map(|r| r.0).collect();
    senders.sort_unstable();
    senders.dedup();
    // What is at hand comes first, then the next devices in turn: not all from one at once.
    let turn = |s: &usize| (s + hub.desks.len() - me) % hub.desks.len();
    senders.sort_by_key(turn);
    for sender in senders {
        let into = moves.receives.iter().filter(|r| r.0 == sender);
        if sender == me {
            let out = moves.sends.iter().filter(|s| s.0 == me);
            for ((_, a), (_, b)) in out.zip(into) {
                copy(from, (&moves.from_shape, a), to, (&moves.to_shape, b), moves.element);
            }
            continue;
        }
        let Some(desk) = hub.desks.get(sender) else { return Err("a device is not in the mesh".into()) };
        let found = hub.wait(desk, |shown| match shown {
            Some(s) if (s.tag, s.turn) == (moves.tag, exchange) && !hub.has_failed() => {
                s.readers += 1;
                Some(Some((s.address as usize, s.len, s.shape.clone(), s.sends.clone())))
            }
            _ if hub.has_failed() => Some(None),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_copied() {
        let from: Vec<u8> = (0..24).collect();
        let part = |start: &[u64], size: &[u64]| Box { start: start.to_vec(), size: size.to_vec() };
        let mut to = vec![0u8; 12];
        copy(&from, (&[4, 6], &part(&[1, 2], &[2, 3])), &mut to, (&[3, 4], &part(&[0, 1], &[2, 3])), 1);
        assert_eq!(to, [0, 8, 9, 10, 0, 14, 15, 16, 0, 0, 0, 0]);
        let mut to = vec![0u8; 12];
        copy(&from, (&[4, 6], &part(&[2, 0], &[2, 6])), &mut to, (&[2, 6], &part(&[0, 0], &[2, 6])), 1);
        assert_eq!(to, (12..24).collect::<Vec<u8>>());
        let mut to = vec![0u8; 2];
        copy(&[7, 8], (&[], &part(&[], &[])), &mut to, (&[], &part(&[], &[])), 2);
        assert_eq!(to, [7, 8]);
    }

    #[test]
    fn devices_exchange_and_a_failure_ends_all() {
        let all = |start: u64| Box { start: vec![start], size: vec![1] };
        for fails in [false, true] {
            let hub = Hub::new(3);
            let results: Vec<_> = std::thread::scope(|scope| {
                let run = |me: usize| {
                    let hub = &hub;
                    move || {
                        if fails && me == 2 {
                            hub.fail();
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
                        (as_device(hub, me, || exchange(&moves, &[me as u8 + 1], &mut to)), to)
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
