//! Read-modify-writes.

use super::Fault;
use super::spaces::{Place, Spaces, Who};
use crate::inst::{Atomic, AtomicKind};
use crate::types::mask;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

impl Spaces<'_> {
    /// Performs the operation; returns the old value.
    pub fn atomic(&mut self, op: &Atomic, regs: &[u64], mut who: Who) -> Result<u64, Fault> {
        let size = u32::from(op.size);
        let address = regs[op.base as usize].wrapping_add(op.offset as u64);
        let place = self.resolve(op.space, address, size, who.thread)?;
        who.strong = true;
        let a = regs[op.a as usize];
        let new = |old: u64| match op.kind {
            AtomicKind::Apply(f) => f(old, a) & mask(8 * size),
            AtomicKind::Swap(b) if old == a & mask(8 * size) => regs[b as usize] & mask(8 * size),
            AtomicKind::Swap(_) => old,
        };
        match place {
            Place::Global(_) => {
                self.counts.global_bytes_read += u64::from(size);
                self.counts.global_bytes_written += u64::from(size);
            }
            Place::Shared(_) => self.counts.shared_bytes += 2 * u64::from(size),
            _ => return Err(Fault::new("an atomic operation outside of global and shared memory")),
        }
        if let Some(races) = &mut self.races {
            races.write(place, size, who)?;
            if op.acquire {
                races.acquire(who.thread);
            }
        }
        let old = match place {
            Place::Global(address) => update_global(address, size, new),
            _ => {
                let old = self.peek(place, size);
                self.poke(place, size, new(old));
                old
            }
        };
        self.changes += u64::from(new(old) != old);
        Ok(old)
    }
}

/// Other blocks run at the same time, so that this must be a real atomic operation.
fn update_global(address: u64, size: u32, new: impl Fn(u64) -> u64) -> u64 {
    macro_rules! update {
        ($atomic:ty, $int:ty) => {{
            // SAFETY: the address was checked to be aligned and inside of a registered allocation.
            let cell = unsafe { &*(address as *const $atomic) };
            let step = |old: $int| Some(new(u64::from(old)) as $int);
            match cell.fetch_update(SeqCst, SeqCst, step) {
                Ok(old) | Err(old) => u64::from(old),
            }
        }};
    }
    match size {
        2 => update!(AtomicU16, u16),
        4 => update!(AtomicU32, u32),
        _ => update!(AtomicU64, u64),
    }
}
