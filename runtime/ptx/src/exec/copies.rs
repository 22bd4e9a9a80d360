//! Asynchronous copies and the barriers that wait for them. A copy takes effect when it is waited for, the latest
//! moment it may: whoever reads too early reads what was there before.

use super::Fault;
use super::block::Block;
use super::spaces::{Place, Who};
use super::tensor::{TensorMap, swizzled};
use crate::inst::*;
use std::collections::VecDeque;

/// One copy.
#[derive(Clone, Copy, Debug)]
struct Pending {
    to: Place,
    from: Place,
    bytes: u32,
    /// The rest is zeros.
    source: u32,
    who: Who,
}

/// The copies of a thread that did not happen yet.
#[derive(Debug, Default)]
pub struct Copies {
    groups: VecDeque<Vec<Pending>>,
    open: Vec<Pending>,
}

impl Copies {
    pub fn clear(&mut self) {
        self.groups.clear();
        self.open.clear();
    }
}

/// A barrier in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Mbarrier {
    count: u32,
    pending: i64,
    /// Bytes that are still to come.
    bytes: i64,
    phase: u64,
}

impl Mbarrier {
    /// Ends the phase if everything is there.
    fn settle(&mut self) -> Result<(), Fault> {
        if self.pending < 0 {
            return Err(Fault::new("more arrivals than the mbarrier counts"));
        }
        if self.pending == 0 && self.bytes == 0 {
            self.phase += 1;
            self.pending = self.count.into();
        }
        Ok(())
    }
}

impl Block<'_> {
    /// Copies and mbarriers; false where a thread that asked in vain should let others go first.
    pub fn asynchronous(&mut self, thread: usize, regs: &mut [u64], op: &Op, who: Who) -> Result<bool, Fault> {
        match *op {
            Op::CopyAsync { to, to_offset, from, from_offset, bytes, source } => {
                let size = u32::from(bytes);
                let address = |base: Reg, offset: i64| regs[base as usize].wrapping_add(offset as u64);
                let to = self.mem.resolve(Space::Shared, address(to, to_offset), size, who.thread)?;
                let source = if source == NONE { size } else { regs[source as usize] as u32 };
                if source > size {
                    return Err(Fault::new("the source is larger than the copy"));
                }
                // Nothing is read of an empty source, wherever it may lie.
                let from = match source {
                    0 => to,
                    // Only what is copied has to be there, at a multiple of the whole.
                    _ => {
                        let at = address(from, from_offset);
                        self.mem.resolve_part(Space::Global, at, (size, source), who.thread)?
                    }
                };
                self.copies[thread].open.push(Pending { to, from, bytes: size, source, who });
            }
            Op::CopyCommit => {
                let open = std::mem::take(&mut self.copies[thread].open);
                self.copies[thread].groups.push_back(open);
            }
            Op::CopyWait(most) => self.finish_groups(thread, most as usize)?,
            Op::CopyWaitAll => self.finish_all(thread)?,
            Op::CopyArrive { base, offset, counted } => {
                self.finish_all(thread)?;
                let at = regs[base as usize].wrapping_add(offset as u64);
                let barrier = self.mbarrier(at, who)?;
                // Without `.noinc` the arrival is one more than the barrier was told to expect.
                barrier.pending -= i64::from(!counted);
                barrier.settle()?;
                self.progress += 1;
            }
            Op::Mbarrier { what, base, offset, a, result } => {
                let at = regs[base as usize].wrapping_add(offset as u64);
                return self.mbarrier_step(what, at, regs, a, result, who);
            }
            Op::TensorLoad { to, map, x, y, bar } => {
                let value = |reg: Reg| regs[reg as usize];
                self.tensor_load(value(to), value(map), [value(x), value(y)], value(bar), who)?;
            }
            _ => return Err(Fault::new("the instruction is not supported")),
        }
        Ok(true)
    }

    fn finish_all(&mut self, thread: usize) -> Result<(), Fault> {
        let open = std::mem::take(&mut self.copies[thread].open);
        self.copies[thread].groups.push_back(open);
        self.finish_groups(thread, 0)
    }

    fn finish_groups(&mut self, thread: usize, most: usize) -> Result<(), Fault> {
        while self.copies[thread].groups.len() > most {
            for copy in self.copies[thread].groups.pop_front().unwrap_or_default() {
                self.copy(&copy)?;
            }
        }
        Ok(())
    }

    fn copy(&mut self, copy: &Pending) -> Result<(), Fault> {
        for at in (0..copy.bytes).step_by(4) {
            let mut word = 0;
            if at + 4 <= copy.source {
                word = self.mem.load(copy.from.plus(at as usize), 4, copy.who)?;
            } else {
                for byte in 0..copy.source.saturating_sub(at) {
                    word |= self.mem.load(copy.from.plus((at + byte) as usize), 1, copy.who)? << (8 * byte);
                }
            }
            self.mem.store(copy.to.plus(at as usize), 4, word, copy.who)?;
        }
        Ok(())
    }

    fn mbarrier(&mut self, at: u64, who: Who) -> Result<&mut Mbarrier, Fault> {
        let place = self.mem.resolve(Space::Generic, shared(at), 8, who.thread)?;
        let Place::Shared(at) = place else { return Err(Fault::new("an mbarrier outside of shared memory")) };
        self.mbarriers.get_mut(&(at as u64)).ok_or_else(|| Fault::new("the mbarrier is not initialised"))
    }

    fn mbarrier_step(
        &mut self,
        what: Mbar,
        at: u64,
        regs: &mut [u64],
        a: Reg,
        result: Reg,
        who: Who,
    ) -> Result<bool, Fault> {
        let a = regs[a as usize];
        if what == Mbar::Init {
            let place = self.mem.resolve(Space::Generic, shared(at), 8, who.thread)?;
            let Place::Shared(at) = place else { return Err(Fault::new("an mbarrier outside of shared memory")) };
            let count = a as u32;
            self.mbarriers.insert(at as u64, Mbarrier { count, pending: count.into(), bytes: 0, phase: 0 });
            return Ok(true);
        }
        let barrier = self.mbarrier(at, who)?;
        let phase = barrier.phase;
        let (mut passed, mut value) = (true, phase);
        match what {
            Mbar::TestParity | Mbar::TestState => {
                passed = if what == Mbar::TestParity { phase & 1 != a & 1 } else { phase != a };
                value = u64::from(passed);
            }
            Mbar::ExpectTx => barrier.bytes += i64::from(a as u32),
            Mbar::Inval => barrier.pending = 0,
            Mbar::Arrive => {
                barrier.pending -= i64::from(a as u32);
                barrier.settle()?;
            }
            _ => {
                barrier.bytes += i64::from(a as u32);
                barrier.pending -= 1;
                barrier.settle()?;
            }
        }
        match what {
            Mbar::Inval => drop(self.mbarriers.remove(&at)),
            Mbar::TestParity | Mbar::TestState => {
                if let (true, Some(races)) = (passed, &mut self.mem.races) {
                    races.acquire(who.thread);
                }
            }
            _ => self.progress += 1,
        }
        if result != NONE {
            regs[result as usize] = value;
        }
        Ok(passed)
    }

    /// Copies a tile; elements outside of the tensor are zeros.
    fn tensor_load(&mut self, to: u64, map: u64, [x, y]: [u64; 2], bar: u64, who: Who) -> Result<(), Fault> {
        let mut words = [0; TensorMap::BYTES / 8];
        for (at, word) in words.iter_mut().enumerate() {
            let place = self.mem.resolve(Space::Generic, map.wrapping_add(8 * at as u64), 8, who.thread)?;
            *word = self.mem.peek(place, 8);
        }
        let map = TensorMap::decode(&words).ok_or_else(|| Fault::new("the address is that of no tensor map"))?;
        let (x, y) = (i64::from(x as u32 as i32), i64::from(y as u32 as i32));
        let element = map.element;
        for row in 0..map.tile[1] {
            for column in 0..map.tile[0] {
                let mut at = to.wrapping_add(u64::from((row * map.tile[0] + column) * element));
                if map.swizzle {
                    at = swizzled(at);
                }
                let (gx, gy) = (x + i64::from(column), y + i64::from(row));
                let inside = gx >= 0 && gy >= 0 && gx < map.dims[0].into() && gy < map.dims[1].into();
                let mut value = 0;
                if inside {
                    let row = map.base.wrapping_add((gy as u64).wrapping_mul(map.stride));
                    let from = row.wrapping_add(gx as u64 * u64::from(element));
                    let from = self.mem.resolve(Space::Global, from, element, who.thread)?;
                    value = self.mem.load(from, element, who)?;
                }
                let place = self.mem.resolve(Space::Shared, at, element, who.thread)?;
                self.mem.store(place, element, value, who)?;
            }
        }
        let barrier = self.mbarrier(bar, who)?;
        barrier.bytes -= i64::from(map.tile[0] * map.tile[1] * element);
        barrier.settle()?;
        self.progress += 1;
        Ok(())
    }
}

/// Mbarriers are addressed in shared memory, or by generic addresses of it.
fn shared(at: u64) -> u64 {
    let base = super::spaces::window(Space::Shared);
    if at < base { at + base } else { at }
}
