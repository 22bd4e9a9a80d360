//! The devices of a mesh in one process: what a tensor that lies on several is, and how their
//! parts get from one to another.

use crate::tensor::{OutOfMemory, Parts, Tensor};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

impl Tensor {
    /// A tensor of this shape that lies in parts.
    pub fn in_parts(like: &Tensor, shape: Vec<u64>, parts: Parts) -> Result<Tensor, OutOfMemory> {
        Ok(Tensor { shape, parts: Some(Arc::new(parts)), ..Tensor::new(like.dtype, &[0], false)? })
    }

    /// The tensor on one device.
    pub fn whole(&self) -> Result<Tensor, OutOfMemory> {
        let Some(parts) = &self.parts else { return Ok(self.clone()) };
        let mut out = Tensor::new(self.dtype, &self.shape, true)?;
        let (shape, size) = (self.shape.clone(), self.dtype.bytes());
        let to = out.bytes_mut()?;
        for (device, part) in parts.parts.iter().enumerate() {
            let held = parts.layout.block(&shape, device as u64);
            let place = Box { start: held.iter().map(|r| r.start).collect(), size: part.shape.clone() };
            let mut bytes = part.bytes();
            place.rows(&shape, size, |row| {
                if let (Some(to), Some((from, rest))) = (to.get_mut(row.clone()), bytes.split_at_checked(row.len())) {
                    to.copy_from_slice(from);
                    bytes = rest;
                }
            });
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

impl Box {
    fn elems(&self) -> usize {
        self.size.iter().product::<u64>() as usize
    }

    /// Calls `f` with the bytes of each contiguous row of the box, in row-major order.
    fn rows(&self, shape: &[u64], element: usize, mut f: impl FnMut(Range<usize>)) {
        if self.elems() == 0 {
            return;
        }
        // Trailing dims that are taken whole belong to one row.
        let rank = shape.len();
        let mut whole = rank;
        while whole > 0 && self.size[whole - 1] == shape[whole - 1] {
            whole -= 1;
        }
        let outer = whole.saturating_sub(1);
        let run: usize = self.size[outer..].iter().product::<u64>() as usize * element;
        let mut at = vec![0u64; outer];
        let inner: u64 = shape[outer.min(rank)..].iter().product();
        let stride = |d: usize| shape[d + 1..outer].iter().product::<u64>() * inner;
        let first = if outer < rank { self.start[outer] * shape[outer + 1..].iter().product::<u64>() } else { 0 };
        loop {
            let place: u64 = (0..outer).map(|d| (self.start[d] + at[d]) * stride(d)).sum::<u64>() + first;
            let from = place as usize * element;
            f(from..from + run);
            let Some(d) = (0..outer).rev().find(|&d| at[d] + 1 < self.size[d]) else { return };
            at[d] += 1;
            at[d + 1..].fill(0);
        }
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

/// What is on its way to a device: bytes by sender and exchange.
type Arrivals = HashMap<(usize, u32), Vec<u8>>;

/// Between the devices of one call.
pub struct Hub {
    to: Vec<(Mutex<Arrivals>, Condvar)>,
    failed: AtomicBool,
}

impl Hub {
    pub fn new(devices: usize) -> Arc<Hub> {
        let to = (0..devices).map(|_| Default::default()).collect();
        Arc::new(Hub { to, failed: AtomicBool::new(false) })
    }

    /// Ends the waiting of all devices: one of them stopped.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
        for (arrivals, bell) in &self.to {
            let _held = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            bell.notify_all();
        }
    }

    fn send(&self, from: usize, to: usize, tag: u32, bytes: Vec<u8>) {
        let Some((arrivals, bell)) = self.to.get(to) else { return };
        arrivals.lock().unwrap_or_else(PoisonError::into_inner).insert((from, tag), bytes);
        bell.notify_all();
    }

    fn receive(&self, me: usize, from: usize, tag: u32) -> Result<Vec<u8>, String> {
        let Some((arrivals, bell)) = self.to.get(me) else { return Err("the device is not in the mesh".into()) };
        let mut held = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(bytes) = held.remove(&(from, tag)) {
                return Ok(bytes);
            }
            if self.failed.load(Ordering::SeqCst) {
                return Err(STOPPED.into());
            }
            held = bell.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The message of a device that waited for one that failed; the other's message is the one to show.
pub const STOPPED: &str = "another device stopped";

thread_local! {
    /// The device that this thread is, during a call.
    static DEVICE: RefCell<Option<(Arc<Hub>, usize)>> = const { RefCell::new(None) };
}

/// Runs `f` as a device of a mesh.
pub fn as_device<R>(hub: &Arc<Hub>, device: usize, f: impl FnOnce() -> R) -> R {
    DEVICE.set(Some((hub.clone(), device)));
    let out = f();
    DEVICE.set(None);
    out
}

/// Sends what others are to have and waits for what they send.
pub fn exchange(moves: &Moves, from: &[u8], to: &mut [u8]) -> Result<(), String> {
    let Some((hub, me)) = DEVICE.with_borrow(Clone::clone) else {
        return Err(format!("`{}` runs outside a mesh", moves.name));
    };
    let pack = |part: &Box| {
        let mut bytes = Vec::with_capacity(part.elems() * moves.element);
        part.rows(&moves.from_shape, moves.element, |row| bytes.extend_from_slice(from.get(row).unwrap_or(&[])));
        bytes
    };
    // Parts for one receiver travel together, in the order in which it takes them.
    let mut receivers: Vec<usize> = moves.sends.iter().map(|s| s.0).collect();
    receivers.sort_unstable();
    receivers.dedup();
    let mut own = vec![];
    for receiver in receivers {
        let parts = moves.sends.iter().filter(|s| s.0 == receiver);
        let bytes: Vec<u8> = parts.flat_map(|(_, part)| pack(part)).collect();
        match receiver == me {
            true => own = bytes,
            false => hub.send(me, receiver, moves.tag, bytes),
        }
    }
    let mut senders: Vec<usize> = moves.receives.iter().map(|r| r.0).collect();
    senders.sort_unstable();
    senders.dedup();
    for sender in senders {
        let bytes = if sender == me { std::mem::take(&mut own) } else { hub.receive(me, sender, moves.tag)? };
        let mut rest = bytes.as_slice();
        for (_, part) in moves.receives.iter().filter(|r| r.0 == sender) {
            part.rows(&moves.to_shape, moves.element, |row| {
                if let (Some(to), Some((now, after))) = (to.get_mut(row.clone()), rest.split_at_checked(row.len())) {
                    to.copy_from_slice(now);
                    rest = after;
                }
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_boxes() {
        let rows = |start: &[u64], size: &[u64], shape: &[u64]| {
            let mut out = vec![];
            Box { start: start.to_vec(), size: size.to_vec() }.rows(shape, 1, |r| out.push((r.start, r.end)));
            out
        };
        assert_eq!(rows(&[1, 0], &[2, 4], &[3, 4]), [(4, 12)]);
        assert_eq!(rows(&[0, 1], &[2, 2], &[3, 4]), [(1, 3), (5, 7)]);
        assert_eq!(rows(&[], &[], &[]), [(0, 1)]);
        assert_eq!(rows(&[1, 0, 1], &[1, 2, 1], &[2, 2, 3]), [(7, 8), (10, 11)]);
        assert!(rows(&[0, 0], &[0, 4], &[3, 4]).is_empty());
        assert_eq!(rows(&[1, 1, 0], &[1, 1, 3], &[2, 2, 3]), [(9, 12)]);
    }
}
