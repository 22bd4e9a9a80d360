//! Accesses of different threads to one byte without a synchronisation between them.
//!
//! Clocks of all threads in all threads would be too slow. A block has one clock that every synchronisation advances,
//! and accesses are stamped with it. A thread knows for the whole block and for each lane of its warp up to which
//! stamp accesses lie before its own. For barriers of some threads, mbarriers and acquiring accesses that knowledge is
//! larger than the model grants, so that races may be missed there; none is reported that is none.

use super::Fault;
use super::spaces::{Place, Who};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// An access to a word: who, by which instruction, when, to which of its bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    stamp: u32,
    pc: u32,
    thread: u16,
    /// None: no access.
    bytes: u8,
    strong: bool,
}

/// The last writers and readers of a word; two of each, which finds all races of one pair of threads and nearly all
/// of more.
#[derive(Clone, Copy, Debug, Default)]
struct Shadow {
    writers: [Entry; 2],
    readers: [Entry; 2],
}

/// Words are few bits apart: a multiplication spreads them.
#[derive(Default)]
struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
}

pub struct Races {
    clock: u32,
    /// Per thread: accesses of all threads with a lower stamp lie before.
    block: Vec<u32>,
    /// Per thread and lane of its warp.
    lanes: Vec<[u32; 32]>,
    shared: Vec<Shadow>,
    global: HashMap<u64, Shadow, BuildHasherDefault<WordHasher>>,
}

struct View<'a> {
    block: u32,
    lanes: &'a [u32; 32],
    who: Who,
    clock: u32,
}

impl View<'_> {
    fn is_before(&self, entry: &Entry) -> bool {
        let thread = u32::from(entry.thread);
        thread == self.who.thread
            || entry.stamp < self.block
            || thread / 32 == self.who.thread / 32 && entry.stamp < self.lanes[thread as usize % 32]
    }

    /// Whether an earlier access is unordered with this one.
    fn conflicts(&self, entry: &Entry, bytes: u8) -> bool {
        entry.bytes & bytes != 0 && !(entry.strong && self.who.strong) && !self.is_before(entry)
    }

    fn entry(&self, bytes: u8) -> Entry {
        Entry { stamp: self.clock, pc: self.who.pc, thread: self.who.thread as u16, bytes, strong: self.who.strong }
    }

    /// Notes an access in the slot that says the least.
    fn note(&self, slots: &mut [Entry; 2], bytes: u8) {
        let new = self.entry(bytes);
        let redundant = |e: &Entry| e.bytes & !bytes == 0 && self.is_before(e);
        let at = slots.iter().position(|e| e.bytes == 0 || redundant(e)).unwrap_or(1);
        slots[at] = new;
    }
}

fn race(entry: &Entry, what: &str) -> Fault {
    Fault { other: Some((entry.thread.into(), entry.pc)), ..Fault::new(format!("{what} without a synchronisation")) }
}

impl Shadow {
    fn read(&mut self, view: &View<'_>, bytes: u8) -> Result<(), Fault> {
        if let Some(writer) = self.writers.iter().find(|e| view.conflicts(e, bytes)) {
            return Err(race(writer, "a race: it reads what another thread wrote"));
        }
        view.note(&mut self.readers, bytes);
        Ok(())
    }

    fn write(&mut self, view: &View<'_>, bytes: u8) -> Result<(), Fault> {
        if let Some(writer) = self.writers.iter().find(|e| view.conflicts(e, bytes)) {
            return Err(race(writer, "a race: it writes what another thread wrote"));
        }
        if let Some(reader) = self.readers.iter().find(|e| view.conflicts(e, bytes)) {
            return Err(race(reader, "a race: it writes what another thread read"));
        }
        view.note(&mut self.writers, bytes);
        for reader in &mut self.readers {
            reader.bytes &= !bytes;
        }
        Ok(())
    }
}

impl Races {
    pub fn new(threads: u32, shared: usize) -> Races {
        Races {
            clock: 1,
            block: vec![0; threads as usize],
            lanes: vec![[0; 32]; threads as usize],
            shared: vec![Shadow::default(); shared.div_ceil(4)],
            global: HashMap::default(),
        }
    }

    pub fn reset(&mut self) {
        self.clock = 1;
        self.block.fill(0);
        self.lanes.fill([0; 32]);
        self.shared.fill(Shadow::default());
        self.global.clear();
    }

    pub fn read(&mut self, place: Place, size: u32, who: Who) -> Result<(), Fault> {
        self.words(place, size, who, Shadow::read)
    }

    pub fn write(&mut self, place: Place, size: u32, who: Who) -> Result<(), Fault> {
        self.words(place, size, who, Shadow::write)
    }

    fn words(
        &mut self,
        place: Place,
        size: u32,
        who: Who,
        act: impl Fn(&mut Shadow, &View<'_>, u8) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let thread = who.thread as usize;
        let view = View { block: self.block[thread], lanes: &self.lanes[thread], who, clock: self.clock };
        let (first, start) = match place {
            Place::Global(at) => (at / 4, at % 4),
            Place::Shared(at) => (at as u64 / 4, at as u64 % 4),
            _ => return Ok(()),
        };
        // Accesses are aligned to their size: they lie in one word or fill whole ones.
        let bytes = if size >= 4 { 0xF } else { ((1u8 << size) - 1) << start };
        for word in first..first + u64::from(size.div_ceil(4)) {
            let shadow = match place {
                Place::Shared(_) => &mut self.shared[word as usize],
                _ => self.global.entry(word).or_default(),
            };
            act(shadow, &view, bytes)?;
        }
        Ok(())
    }

    fn tick(&mut self) -> u32 {
        self.clock += 1;
        self.clock
    }

    /// A barrier of these threads.
    pub fn barrier(&mut self, threads: impl Iterator<Item = usize>) {
        let now = self.tick();
        threads.for_each(|t| self.block[t] = now);
    }

    /// The thread sees what happened before.
    pub fn acquire(&mut self, thread: u32) {
        self.block[thread as usize] = self.tick();
    }

    /// The lanes of a warp meet: each knows now what any of them knew, and all they did.
    pub fn meet(&mut self, base: usize, mask: u32) {
        let now = self.tick();
        let members = || (0..32usize).filter(move |lane| mask >> lane & 1 == 1);
        let mut known = [0; 32];
        let mut block = 0;
        for lane in members() {
            block = block.max(self.block[base + lane]);
            if mask != u32::MAX {
                known.iter_mut().zip(&self.lanes[base + lane]).for_each(|(k, l)| *k = (*k).max(*l));
            }
        }
        members().for_each(|lane| known[lane] = now);
        for lane in members() {
            self.lanes[base + lane] = known;
            self.block[base + lane] = block;
        }
    }
}
