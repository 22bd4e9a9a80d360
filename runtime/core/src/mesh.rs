//! The devices of a mesh: what a tensor that lies on several is, and how their parts get from one
//! to another. How that is done is the business of an [`Engine`]: one for the devices of a process
//! ([`here`]), one for those of several ([`between`]).

pub mod here;
pub mod between;

use crate::fault::Fault;
use crate::tensor::{OutOfMemory, Parts, Tensor};
use crate::traffic;
use crate::world;
use crate::world::step::What;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use tessera_base::{DType, Sharding};

impl Tensor {
    /// A tensor of this shape that lies in parts.
    pub fn in_parts(dtype: DType, shape: Vec<u64>, parts: Parts) -> Result<Tensor, OutOfMemory> {
        Ok(Tensor { shape, parts: Some(Arc::new(parts)), ..Tensor::new(dtype, &[0], false)? })
    }

    /// The tensor on one device. In a run over several processes all look at it at once, and each gets
    /// all of it.
    pub fn whole(&self) -> Result<Tensor, Fault> {
        let Some(parts) = &self.parts else { return Ok(self.clone()) };
        let devices = parts.layout.mesh.as_ref().map_or(parts.parts.len(), |m| m.devices() as usize);
        let mine = world::mine(devices);
        let held = distinct(&parts.layout, &self.shape, devices);
        let here = |holders: &[usize]| {
            let device = holders.iter().find(|d| mine.contains(d))?;
            parts.parts.get(device - mine.start).map(Tensor::bytes)
        };
        let came = match world::world() {
            None => vec![],
            Some(w) => {
                let layout = parts.layout.describe(self.shape.len());
                let what = format!("{:?} {:?} {layout}", self.dtype, self.shape);
                w.agree(What::Whole, world::hash(&[what.as_bytes()]), false, 0)?;
                let blocks: Vec<_> =
                    held.iter().map(|(size, who)| (who.clone(), size.elems() * self.dtype.bytes())).collect();
                w.blocks(devices, &blocks, |i| here(&held[i].1).unwrap_or(&[]))?
            }
        };
        let mut out = Tensor::new(self.dtype, &self.shape, true)?;
        let (shape, element) = (self.shape.clone(), self.dtype.bytes());
        let to = out.bytes_mut()?;
        for (i, (into, holders)) in held.iter().enumerate() {
            let all = into.at_start();
            let from = here(holders).or(came.get(i).and_then(|c| c.as_deref())).unwrap_or(&[]);
            copy(from, (&into.size, &all), to, (&shape, into), element);
        }
        Ok(out)
    }
}

/// The different blocks of a tensor that are not empty, with the devices that hold them.
fn distinct(layout: &Sharding, shape: &[u64], devices: usize) -> Vec<(Box, Vec<usize>)> {
    let mut out: Vec<(Box, Vec<usize>)> = vec![];
    let mut known: HashMap<Vec<u64>, usize> = HashMap::new();
    for device in 0..devices {
        let held = layout.block(shape, device as u64);
        let size: Vec<u64> = held.iter().map(|r| r.end - r.start).collect();
        if size.contains(&0) {
            continue;
        }
        let start: Vec<u64> = held.iter().map(|r| r.start).collect();
        let at = *known.entry(start.clone()).or_insert(out.len());
        match out.get_mut(at) {
            Some((_, holders)) => holders.push(device),
            None => out.push((Box { start, size }, vec![device])),
        }
    }
    out
}

/// A box of elements of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Box {
    pub start: Vec<u64>,
    pub size: Vec<u64>,
}

impl Box {
    /// A box of the same size at the start of an array.
    fn at_start(&self) -> Box {
        Box { start: vec![0; self.size.len()], size: self.size.clone() }
    }

    fn elems(&self) -> usize {
        self.size.iter().product::<u64>() as usize
    }
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

/// How the devices of a call get what others hold. Each device is a thread, and all go through the
/// same exchanges in the same order.
pub trait Engine: Send + Sync {
    /// Gives the others their boxes of `from` and fills `to` with what they give. `from` may change
    /// once it returns. Fails where another device stopped.
    fn exchange(&self, at: At, moves: &Moves, from: &[u8], to: &mut [u8]) -> Result<(), String>;

    /// Ends the waiting of all devices: one of them stopped.
    fn fail(&self);
}

/// Who takes part in an exchange, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    pub device: usize,
    /// Which exchange of the device in this call it is: loops make those of one tag again and again.
    pub turn: u64,
}

/// The message of a device that waited for one that failed; the other's message is the one to show.
pub const STOPPED: &str = "another device stopped";

thread_local! {
    /// The device that this thread is, during a call.
    static DEVICE: RefCell<Option<(Arc<dyn Engine>, usize)>> = const { RefCell::new(None) };
    /// Exchanges of this device in this call.
    static TURNS: Cell<u64> = const { Cell::new(0) };
}

/// Runs `f` as a device of a mesh.
pub fn as_device<R>(engine: &Arc<dyn Engine>, device: usize, f: impl FnOnce() -> R) -> R {
    DEVICE.set(Some((engine.clone(), device)));
    TURNS.set(0);
    let out = f();
    DEVICE.set(None);
    out
}

/// Gives what others are to have, takes what they give, and waits until all have taken theirs.
pub fn exchange(moves: &Moves, from: &[u8], to: &mut [u8]) -> Result<(), String> {
    let Some((engine, device)) = DEVICE.with_borrow(Clone::clone) else {
        return Err(format!("`{}` runs outside a mesh", moves.name));
    };
    TURNS.set(TURNS.get() + 1);
    let at = At { device, turn: TURNS.get() };
    traffic::exchange(&moves.name, device, || engine.exchange(at, moves, from, to))
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
}
