//! The devices of a mesh: what a tensor that lies on several is, and how their parts get from one
//! to another. How that is done is the business of an [`Engine`]: one for the devices of a process
//! ([`here`]), one for those of several ([`between`]).

pub mod between;
mod copy;
pub mod here;

use crate::fault::Fault;
use crate::tensor::{OutOfMemory, Parts, Tensor};
use crate::traffic;
use crate::world;
use crate::world::step::What;
use copy::copy;
use std::cell::RefCell;
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
    /// Which exchange of its tag in this call it is: loops make those of one tag again and again.
    pub turn: u64,
}

/// The message of a device that waited for one that failed; the other's message is the one to show.
pub const STOPPED: &str = "another device stopped";

thread_local! {
    /// The device that this thread is, during a call.
    static DEVICE: RefCell<Option<(Arc<dyn Engine>, usize)>> = const { RefCell::new(None) };
    /// Exchanges of this device in this call, by tag.
    static TURNS: RefCell<HashMap<u32, u64>> = RefCell::default();
}

/// Runs `f` as a device of a mesh.
pub fn as_device<R>(engine: &Arc<dyn Engine>, device: usize, f: impl FnOnce() -> R) -> R {
    DEVICE.set(Some((engine.clone(), device)));
    TURNS.with_borrow_mut(HashMap::clear);
    let out = f();
    DEVICE.set(None);
    out
}

/// Gives what others are to have, takes what they give, and waits until all have taken theirs.
pub fn exchange(moves: &Moves, from: &[u8], to: &mut [u8]) -> Result<(), String> {
    let Some((engine, device)) = DEVICE.with_borrow(Clone::clone) else {
        return Err(format!("`{}` runs outside a mesh", moves.name));
    };
    let turn = TURNS.with_borrow_mut(|turns| {
        let turn = turns.entry(moves.tag).or_default();
        *turn += 1;
        *turn
    });
    let at = At { device, turn };
    traffic::exchange(&moves.name, device, || engine.exchange(at, moves, from, to))
}
