//! The devices of a mesh: what a tensor that lies on several is, and how their parts get from one
//! to another. How that is done is the business of an [`Engine`]: one for the devices of a process
//! ([`shared_memory`]), one for those of several ([`message_passing`]).

mod copy;
pub mod shared_memory;
pub mod message_passing;

use crate::fault::Fault;
use crate::native::{self, Operand};
use crate::tensor::{OutOfMemory, Parts, Tensor};
use crate::traffic;
use crate::world;
use crate::world::step::What;
use copy::copy;
pub use copy::copy as copy_box;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use tessera_abi::plan::{Step, StepOrigin};
use tessera_base::{DType, Sharding};

impl Tensor {
    /// A tensor of this shape that lies in parts.
    pub fn in_parts(dtype: DType, shape: Vec<u64>, parts: Parts) -> Result<Tensor, OutOfMemory> {
        Ok(Tensor { shape, parts: Some(Arc::new(parts)), ..Tensor::new(dtype, &[0], false)? })
    }

    /// How many devices the mesh has on which it lies.
    pub fn devices(&self) -> usize {
        self.parts.as_ref().map_or(1, |p| p.layout.mesh.as_ref().map_or(p.parts.len(), |m| m.devices() as usize))
    }

    /// The different blocks of a tensor in parts that are not empty, with the devices that hold them.
    pub fn blocks(&self) -> Vec<(Box, Vec<usize>)> {
        self.parts.as_ref().map_or(vec![], |p| distinct(&p.layout, &self.shape, self.devices()))
    }

    /// A block that a device of this process holds.
    pub fn block_here(&self, place: &Box) -> Option<Tensor> {
        let parts = self.parts.as_ref()?;
        let mine = world::mine(self.devices());
        let held = mine.zip(&parts.parts).find(|(device, _)| Box::of(&parts.layout, &self.shape, *device) == *place);
        held.map(|(_, t)| t.clone())
    }

    /// The tensor on one device. In a run over several processes all look at it at once, and each gets
    /// all of it.
    pub fn whole(&self) -> Result<Tensor, Fault> {
        let Some(parts) = &self.parts else { return Ok(self.clone()) };
        let devices = self.devices();
        let mine = world::mine(devices);
        let held = self.blocks();
        let parts_here: Vec<&[u8]> = parts.parts.iter().map(Tensor::host).collect::<Result<_, _>>()?;
        let here = |holders: &[usize]| {
            let device = holders.iter().find(|d| mine.contains(d))?;
            parts_here.get(device - mine.start).copied()
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
        let to = out.host_mut()?;
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
        let held = Box::of(layout, shape, device);
        if held.size.contains(&0) {
            continue;
        }
        let at = *known.entry(held.start.clone()).or_insert(out.len());
        match out.get_mut(at) {
            Some((_, holders)) => holders.push(device),
            None => out.push((held, vec![device])),
        }
    }
    out
}

/// A box of elements of an array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Box {
    pub start: Vec<u64>,
    pub size: Vec<u64>,
}

impl Box {
    /// All of an array.
    pub fn all(shape: &[u64]) -> Box {
        Box { start: vec![0; shape.len()], size: shape.to_vec() }
    }

    /// What a device holds of an array; an empty box where it holds nothing.
    pub fn of(layout: &Sharding, shape: &[u64], device: usize) -> Box {
        let held = layout.block(shape, device as u64);
        Box { start: held.iter().map(|r| r.start).collect(), size: held.iter().map(|r| r.end - r.start).collect() }
    }

    /// What two boxes of an array have in common, if anything.
    pub fn common(&self, other: &Box) -> Option<Box> {
        let end = |b: &Box, d: usize| b.start[d].saturating_add(b.size[d]);
        if self.size.len() != other.size.len() || self.start.len() != self.size.len() {
            return None;
        }
        let ranges: Vec<(u64, u64)> = (0..self.size.len())
            .map(|d| (self.start[d].max(other.start[d]), end(self, d).min(end(other, d))))
            .collect();
        let there = ranges.iter().all(|(a, b)| a < b);
        there.then(|| Box {
            start: ranges.iter().map(|r| r.0).collect(),
            size: ranges.iter().map(|(a, b)| b - a).collect(),
        })
    }

    /// The same box as one of the array that a box around it is.
    pub fn within(&self, around: &Box) -> Box {
        let start = self.start.iter().zip(&around.start).map(|(a, b)| a.saturating_sub(*b)).collect();
        Box { start, size: self.size.clone() }
    }

    /// A box of the same size at the start of an array.
    fn at_start(&self) -> Box {
        Box { start: vec![0; self.size.len()], size: self.size.clone() }
    }

    pub fn elems(&self) -> usize {
        self.size.iter().product::<u64>() as usize
    }
}

/// What one device does in an exchange of one or more tensors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moves {
    pub name: Arc<str>,
    pub tag: u32,
    /// In the same order on all devices.
    pub pieces: Vec<Piece>,
}

/// What one device does with one tensor of an exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// By receiver, of the operand.
    pub sends: Vec<(usize, Box)>,
    /// By sender, of the result.
    pub receives: Vec<(usize, Box)>,
    pub from_shape: Vec<u64>,
    pub to_shape: Vec<u64>,
    /// Bytes of an element.
    pub element: usize,
}

impl Piece {
    /// Copies a box of the operand into one of the result.
    fn copy(&self, (from, a): (&[u8], &Box), (to, b): (&mut [u8], &Box)) {
        copy(from, (&self.from_shape, a), to, (&self.to_shape, b), self.element);
    }

    fn bytes(&self, part: &Box) -> usize {
        part.elems() * self.element
    }
}

/// How the devices of a call get what others hold. Each device is a thread, and all come to the ends of
/// the same exchanges in the same order.
pub trait Engine: Send + Sync {
    /// Starts an exchange ahead of its end: gives the others their boxes of `from`, an operand for each piece, and waits for
    /// nobody.
    ///
    /// # Safety
    /// `from` stays as it is until [`Engine::finish`] or [`Engine::withdraw`] returns.
    unsafe fn start(&self, at: At, moves: &Moves, from: &[&[u8]]) -> Result<(), String>;

    /// Ends an exchange that was started: fills `to`, a result for each piece, with what the others give. `from` may change
    /// once it returns. Fails where another device stopped.
    fn finish(&self, at: At, moves: &Moves, from: &[&[u8]], to: &mut [&mut [u8]]) -> Result<(), String>;

    /// Starts an exchange and ends it.
    fn exchange(&self, at: At, moves: &Moves, from: &[&[u8]], to: &mut [&mut [u8]]) -> Result<(), String> {
        // SAFETY: `from` is borrowed until it is finished, and where the start fails nothing is given.
        unsafe { self.start(at, moves, from) }?;
        self.finish(at, moves, from, to)
    }

    /// Whether the exchanges of a tag may start ahead: those of others begin in the order of their ends.
    fn starts_ahead(&self, _tag: u32) -> bool {
        true
    }

    /// Moves on what is under way, where calls do that; takes about a microsecond and waits for nobody.
    fn move_on(&self) {}

    /// Takes back what a device started and does not finish: nobody reads it once this returns.
    fn withdraw(&self, device: usize);

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

/// What a device does in a call.
#[derive(Default)]
struct Course {
    /// How many exchanges of each tag were started.
    turns: Vec<u64>,
    /// Those that were started ahead and are not finished.
    begun: Vec<(u32, At)>,
}

impl Course {
    fn next(&mut self, device: usize, tag: u32) -> At {
        let tag = tag as usize;
        if self.turns.len() <= tag {
            self.turns.resize(tag + 1, 0);
        }
        self.turns[tag] += 1;
        At { device, turn: self.turns[tag] }
    }
}

thread_local! {
    /// The device that this thread is, during a call.
    static DEVICE: RefCell<Option<(Arc<dyn Engine>, usize)>> = const { RefCell::new(None) };
    static COURSE: RefCell<Course> = const { RefCell::new(Course { turns: vec![], begun: vec![] }) };
}

/// Runs `f` as a device of a mesh.
pub fn as_device<R>(engine: &Arc<dyn Engine>, device: usize, f: impl FnOnce() -> R) -> R {
    DEVICE.set(Some((engine.clone(), device)));
    COURSE.with_borrow_mut(|c| c.turns.fill(0));
    let out = f();
    DEVICE.set(None);
    out
}

/// Whether this thread is a device of a mesh now.
pub fn is_device() -> bool {
    DEVICE.with_borrow(Option::is_some)
}

fn device(moves: &Moves) -> Result<(Arc<dyn Engine>, usize), String> {
    DEVICE.with_borrow(Clone::clone).ok_or_else(|| format!("`{}` runs outside a mesh", moves.name))
}

/// The step that starts an exchange ahead. The plan leaves the operand as it is until the step that ends it.
pub fn start_step(moves: Moves, operands: &[Operand], origin: StepOrigin) -> Step {
    let name = format!("start {}", moves.name);
    let run = move |inputs: &[&[u8]], _: &mut [&mut [u8]], _: &[u64]| {
        let (engine, device) = device(&moves)?;
        if inputs.len() != moves.pieces.len() {
            return Err(format!("`{}` has not its operands", moves.name).into());
        }
        if !engine.starts_ahead(moves.tag) {
            return Ok(());
        }
        let at = COURSE.with_borrow_mut(|c| c.next(device, moves.tag));
        // SAFETY: plans keep what an exchange gives away to its end, and one that stops early drops an [`Unfinished`]
        // before it drops its memory.
        let started = traffic::began(&moves.name, device, || unsafe { engine.start(at, &moves, inputs) });
        COURSE.with_borrow_mut(|c| c.begun.push((moves.tag, at)));
        Ok(started?)
    };
    native::step(&name, operands, &[], vec![], origin, Arc::new(run))
}

/// Gives what others are to have, takes what they give, and waits until all have taken theirs; of an exchange that
/// was started ahead what is left of that.
pub fn exchange(moves: &Moves, from: &[&[u8]], to: &mut [&mut [u8]]) -> Result<(), String> {
    let (engine, device) = device(moves)?;
    if (from.len(), to.len()) != (moves.pieces.len(), moves.pieces.len()) {
        return Err(format!("`{}` has not its operands and results", moves.name));
    }
    let begun = COURSE.with_borrow_mut(|c| {
        let place = c.begun.iter().position(|b| b.0 == moves.tag)?;
        Some(c.begun.remove(place))
    });
    match begun {
        Some((_, at)) => traffic::exchange(&moves.name, device, true, || engine.finish(at, moves, from, to)),
        None => {
            let at = COURSE.with_borrow_mut(|c| c.next(device, moves.tag));
            traffic::exchange(&moves.name, device, false, || engine.exchange(at, moves, from, to))
        }
    }
}

/// To be called between steps: what this device has under way moves on.
pub fn move_on() {
    if COURSE.with_borrow(|c| c.begun.is_empty()) {
        return;
    }
    DEVICE.with_borrow(|device| device.iter().for_each(|(engine, _)| engine.move_on()));
}

/// Stands for the memory of a plan that runs: dropped where the plan stops early, it takes back what was started. To be
/// forgotten at the plan's end.
pub struct Unfinished;

impl Drop for Unfinished {
    fn drop(&mut self) {
        if COURSE.with_borrow_mut(|c| std::mem::take(&mut c.begun)).is_empty() {
            return;
        }
        if let Some((engine, device)) = DEVICE.with_borrow(Clone::clone) {
            engine.withdraw(device);
        }
    }
}
