//! The memory that a block sees: checked accesses to every space.

use super::race::Races;
use super::{Fault, Grid};
use crate::inst::Space;
use crate::{Counts, Kind};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Where generic addresses of the small spaces lie: far above the addresses of a process.
const SHARED_WINDOW: u64 = 1 << 56;
const LOCAL_WINDOW: u64 = 1 << 57;
const PARAM_WINDOW: u64 = 1 << 58;

/// The first generic address of a space.
pub fn window(space: Space) -> u64 {
    match space {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Param => PARAM_WINDOW,
        Space::Generic | Space::Global => 0,
    }
}

/// The space that a generic address belongs to.
pub fn space_of(address: u64) -> Space {
    match address >> 56 {
        1 => Space::Shared,
        2 => Space::Local,
        4 => Space::Param,
        _ => Space::Global,
    }
}

/// An address that was found to be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Global(u64),
    Shared(usize),
    Local(usize),
    Param(usize),
}

impl Place {
    pub fn plus(self, bytes: usize) -> Place {
        match self {
            Place::Global(at) => Place::Global(at + bytes as u64),
            Place::Shared(at) => Place::Shared(at + bytes),
            Place::Local(at) => Place::Local(at + bytes),
            Place::Param(at) => Place::Param(at + bytes),
        }
    }
}

/// Who accesses, and by which instruction.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    pub thread: u32,
    pub pc: u32,
    /// Strong accesses do not race with each other.
    pub strong: bool,
}

pub struct Spaces<'a> {
    grid: &'a Grid<'a>,
    /// The allocation that was accessed last.
    last: (u64, u64),
    pub shared: Vec<u8>,
    local: Vec<u8>,
    pub counts: Counts,
    /// Counts stores that changed something: whoever spins waits for one.
    pub changes: u64,
    pub races: Option<Races>,
}

impl<'a> Spaces<'a> {
    pub fn new(grid: &'a Grid<'a>) -> Spaces<'a> {
        let shared = (grid.kernel.dynamic_shared + grid.dynamic_shared) as usize;
        Spaces {
            grid,
            last: (0, 0),
            shared: vec![0xFF; shared],
            local: vec![0xFF; grid.kernel.local_bytes as usize * grid.threads as usize],
            counts: Counts::default(),
            changes: 0,
            races: grid.races.then(|| Races::new(grid.threads, shared)),
        }
    }

    /// Poisons what the next block starts with.
    pub fn reset(&mut self) {
        self.shared.fill(0xFF);
        self.local.fill(0xFF);
        if let Some(races) = &mut self.races {
            races.reset();
        }
    }

    /// Checks an access of `size` bytes.
    pub fn resolve(&mut self, space: Space, address: u64, size: u32, thread: u32) -> Result<Place, Fault> {
        self.resolve_part(space, address, (size, size), thread)
    }

    /// The first `size` bytes of an access that is aligned to `whole`.
    pub fn resolve_part(
        &mut self,
        space: Space,
        address: u64,
        (whole, size): (u32, u32),
        thread: u32,
    ) -> Result<Place, Fault> {
        if !address.is_multiple_of(u64::from(whole)) {
            let what = format!("the address {address:#x} is not a multiple of the {whole} bytes accessed");
            return Err(Fault::of(Kind::Misaligned, what));
        }
        let (space, address) = match space {
            Space::Generic => match space_of(address) {
                Space::Global => (Space::Global, address),
                space => (space, address - window(space)),
            },
            space => (space, address),
        };
        let end = address.checked_add(u64::from(size));
        let inside = |bytes: usize| end.is_some_and(|end| end <= bytes as u64);
        match space {
            Space::Shared if inside(self.shared.len()) => Ok(Place::Shared(address as usize)),
            Space::Local if inside(self.grid.kernel.local_bytes as usize) => {
                Ok(Place::Local(self.grid.kernel.local_bytes as usize * thread as usize + address as usize))
            }
            Space::Param if inside(self.grid.params.len()) => Ok(Place::Param(address as usize)),
            Space::Global if self.is_global(address, size) => Ok(Place::Global(address)),
            _ => {
                let what = format!("{size} bytes at the {space:?} address {address:#x} are outside of what there is");
                Err(Fault::of(Kind::Address, what))
            }
        }
    }

    fn is_global(&mut self, address: u64, size: u32) -> bool {
        let fits = |(start, bytes): (u64, u64)| {
            address >= start && address - start < bytes && bytes - (address - start) >= size.into()
        };
        if fits(self.last) {
            return true;
        }
        let at = self.grid.ranges.partition_point(|(start, _)| *start <= address);
        match at.checked_sub(1).map(|at| self.grid.ranges[at]) {
            Some(range) if fits(range) => {
                self.last = range;
                true
            }
            _ => false,
        }
    }

    /// Reads 1, 2, 4 or 8 bytes without looking for races.
    pub fn peek(&self, place: Place, size: u32) -> u64 {
        match place {
            Place::Global(address) => read_global(address, size),
            Place::Shared(at) => read_slice(&self.shared, at, size),
            Place::Local(at) => read_slice(&self.local, at, size),
            Place::Param(at) => read_slice(&self.grid.params, at, size),
        }
    }

    /// Writes 1, 2, 4 or 8 bytes without looking for races.
    pub fn poke(&mut self, place: Place, size: u32, value: u64) {
        let bytes = value.to_le_bytes();
        let bytes = &bytes[..size as usize];
        match place {
            Place::Global(address) => write_global(address, size, value),
            Place::Shared(at) => self.shared[at..at + bytes.len()].copy_from_slice(bytes),
            Place::Local(at) => self.local[at..at + bytes.len()].copy_from_slice(bytes),
            Place::Param(_) => {}
        }
    }

    /// Reads a value of a checked place.
    pub fn load(&mut self, place: Place, size: u32, who: Who) -> Result<u64, Fault> {
        match place {
            Place::Global(_) => self.counts.global_bytes_read += u64::from(size),
            Place::Shared(_) => self.counts.shared_bytes += u64::from(size),
            _ => return Ok(self.peek(place, size)),
        }
        if let Some(races) = &mut self.races {
            races.read(place, size, who)?;
        }
        Ok(self.peek(place, size))
    }

    /// Writes a value to a checked place.
    pub fn store(&mut self, place: Place, size: u32, value: u64, who: Who) -> Result<(), Fault> {
        match place {
            Place::Global(_) => self.counts.global_bytes_written += u64::from(size),
            Place::Shared(_) => self.counts.shared_bytes += u64::from(size),
            Place::Param(_) => return Err(Fault::of(Kind::Address, "parameters cannot be stored to")),
            Place::Local(_) => {}
        }
        // Writing what is there already hurts nobody.
        if self.peek(place, size) == value & crate::types::mask(8 * size) {
            return Ok(());
        }
        self.changes += 1;
        if let Some(races) = &mut self.races {
            races.write(place, size, who)?;
        }
        self.poke(place, size, value);
        Ok(())
    }
}

fn read_slice(bytes: &[u8], at: usize, size: u32) -> u64 {
    let mut value = [0; 8];
    value[..size as usize].copy_from_slice(&bytes[at..at + size as usize]);
    u64::from_le_bytes(value)
}

fn read_global(address: u64, size: u32) -> u64 {
    // SAFETY: `resolve` found the address inside of a registered allocation and aligned to the size; whoever
    // registered it promised that the memory is there and accessed by atomic operations only.
    unsafe {
        match size {
            1 => (*(address as *const AtomicU8)).load(Relaxed).into(),
            2 => (*(address as *const AtomicU16)).load(Relaxed).into(),
            4 => (*(address as *const AtomicU32)).load(Relaxed).into(),
            _ => (*(address as *const AtomicU64)).load(Relaxed),
        }
    }
}

fn write_global(address: u64, size: u32, value: u64) {
    // SAFETY: as for reading.
    unsafe {
        match size {
            1 => (*(address as *const AtomicU8)).store(value as u8, Relaxed),
            2 => (*(address as *const AtomicU16)).store(value as u16, Relaxed),
            4 => (*(address as *const AtomicU32)).store(value as u32, Relaxed),
            _ => (*(address as *const AtomicU64)).store(value, Relaxed),
        }
    }
}
