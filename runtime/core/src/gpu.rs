//! What devices of all kinds of GPU have in common: how a kernel is launched there, and what a group records that finds a
//! position out of range.

use crate::fault::Fault;
use std::sync::Arc;
use tessera_abi::plan::{Bounds, StepOrigin, Stop};
use tessera_base::bug;

/// The number of the code for a device that stopped: E0722.
pub const STOPPED: u16 = 722;

/// Launches with checks between two looks, at most.
pub const WATCHED_MAX: usize = 4096;

/// Bytes of the record of a group: the launch, the point, the check from 1 on, the position.
pub const RECORD: usize = 32;

/// Why no GPU can be used, in words: what is missing, and what would help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unusable {
    pub why: String,
    pub help: String,
}

impl Unusable {
    pub fn new(why: impl Into<String>, help: impl Into<String>) -> Unusable {
        Unusable { why: why.into(), help: help.into() }
    }
}

/// What a launch has to know of a kernel besides its grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchShape {
    /// Threads of a point, and of a block.
    pub group: u32,
    pub block: u32,
    pub operands: u32,
    pub words: u32,
    /// Bytes of global memory for each group.
    pub scratch: u64,
    /// Bytes that the threads of a block share, besides those that the kernel states itself.
    pub shared: u64,
}

impl LaunchShape {
    /// Blocks of a launch: enough for all points, and no more than `most`, or than have so much scratch.
    pub fn blocks(&self, grid: u64, most: u64, scratch: u64) -> u64 {
        let groups = u64::from(self.block / self.group);
        let room = scratch.checked_div(self.scratch * groups).unwrap_or(most).max(1);
        grid.div_ceil(groups).clamp(1, most.min(room))
    }
}

/// A launch that may find a position out of range.
pub struct Watched {
    pub number: u64,
    pub checks: Arc<[Bounds]>,
    pub origin: StepOrigin,
}

pub fn stopped_at(f: Fault, origin: Option<StepOrigin>) -> Stop {
    Stop { code: f.code, message: f.message, notes: f.notes, origin }
}

/// Which launch was the first to find a position out of range, by the records of groups; the first record only says that there
/// are others.
pub fn told(records: &[u8], watched: &[Watched]) -> Stop {
    let word =
        |r: &[u8], n: usize| r.get(8 * n..8 * n + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap_or([0; 8])));
    let first = records
        .chunks_exact(RECORD)
        .skip(1)
        .map(|r| (word(r, 0), word(r, 1), word(r, 2), word(r, 3) as i64))
        .filter(|r| r.0 > 0)
        .min();
    let Some((number, _, check, position)) = first else { bug!("a GPU says that it stopped, and no group of it does") };
    let Some(launch) = watched.iter().find(|w| w.number == number) else { bug!("launch {number} was not watched") };
    let Some(bounds) = launch.checks.get(check as usize - 1) else { bug!("a kernel has no check {check}") };
    Stop { origin: Some(launch.origin), ..bounds.message(position).into() }
}
