//! What devices of all kinds of GPU have in common: how a kernel is launched there, and what a group records that finds a
//! position out of range. What a kind of GPU does in its own way is [`Work`].

use crate::fault::Fault;
use std::sync::Arc;
use tessera_abi::plan::{Bounds, Code, Kernel, Launch, StepOrigin, Stop};
use tessera_base::bug;

/// The number of the code for a device that stopped: E0722.
pub const STOPPED: u16 = 722;

/// Launches with checks between two looks, at most.
const WATCHED_MAX: usize = 4096;

/// Bytes of the record of a group: the launch, the point, the check from 1 on, the position.
const RECORD: usize = 32;

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
    /// That a launch gives what the kernel takes.
    pub fn takes(&self, kernel: &Kernel, operands: usize, words: usize) {
        if (operands, words) != (self.operands as usize, self.words as usize) {
            bug!("`{}` takes other operands than it is given", kernel.name);
        }
    }

    /// Blocks of a launch: enough for all points, and no more than `most`, or than have so much scratch.
    pub fn blocks(&self, grid: u64, most: u64, scratch: u64) -> u64 {
        let groups = u64::from(self.block / self.group);
        let room = scratch.checked_div(self.scratch * groups).unwrap_or(most).max(1);
        grid.div_ceil(groups).clamp(1, most.min(room))
    }
}

/// The code of a kernel for one kind of device.
pub fn loaded<K: 'static>(kernel: &Kernel) -> &K {
    let code = match &kernel.code {
        Code::Loaded(code) => code.downcast_ref(),
        Code::Host { .. } => None,
    };
    match code {
        Some(code) => code,
        None => bug!("`{}` was loaded for another device", kernel.name),
    }
}

/// An order of work on a GPU, as far as launches need it.
pub trait Work {
    /// Memory of the GPU.
    type Piece;

    /// New memory.
    ///
    /// # Errors
    /// E0710, E0722.
    fn take(&self, bytes: u64) -> Result<Self::Piece, Fault>;

    fn bytes(piece: &Self::Piece) -> u64;

    /// Makes all of a piece zeros.
    ///
    /// # Errors
    /// E0722.
    fn empty(&self, piece: &Self::Piece) -> Result<(), Fault>;

    /// Brings the first bytes of a piece to the host, as what was started before leaves them.
    ///
    /// # Errors
    /// E0722.
    fn read(&self, piece: &Self::Piece, to: &mut [u8]) -> Result<(), Fault>;

    /// Everything that was started has ended.
    ///
    /// # Errors
    /// E0722.
    fn wait(&self) -> Result<(), Fault>;
}

/// A launch that may find a position out of range.
struct Watched {
    number: u64,
    checks: Arc<[Bounds]>,
    origin: StepOrigin,
}

/// What grows with what is launched.
pub struct Launches<P> {
    scratch: Option<P>,
    /// Records of groups; the first is a word that is set where there is one.
    records: Option<P>,
    count: u64,
    watched: Vec<Watched>,
}

impl<P> Default for Launches<P> {
    fn default() -> Launches<P> {
        Launches { scratch: None, records: None, count: 0, watched: vec![] }
    }
}

/// What a launch needs besides its operands.
pub struct Begun<'a, P> {
    /// Which of the device's launches it is, from 1 on.
    pub number: u64,
    pub scratch: Option<&'a P>,
    pub records: Option<&'a P>,
}

/// At least so many bytes, which nobody else uses. What is there is given back behind what uses it.
fn room<W: Work>(on: &W, place: &mut Option<W::Piece>, bytes: u64) -> Result<(), Fault> {
    if place.as_ref().is_none_or(|p| W::bytes(p) < bytes) {
        *place = None;
        *place = Some(on.take(bytes)?);
    }
    Ok(())
}

impl<P> Launches<P> {
    /// Room for a launch of so many groups.
    ///
    /// # Errors
    /// That there is none; of an earlier launch, whose records are looked at.
    pub fn begin<W: Work<Piece = P>>(
        &mut self,
        on: &W,
        shape: &LaunchShape,
        launch: &Launch,
        groups: u64,
        origin: StepOrigin,
    ) -> Result<Begun<'_, P>, Stop> {
        self.count += 1;
        let number = self.count;
        let (scratch, checked) = (shape.scratch > 0, !launch.checks.is_empty());
        if scratch {
            room(on, &mut self.scratch, shape.scratch * groups).map_err(|f| stopped_at(f, Some(origin)))?;
        }
        if checked {
            self.make_records(on, groups).map_err(|s| Stop { origin: s.origin.or(Some(origin)), ..s })?;
            // Launches that nobody has asked about yet: in a long loop they are looked at now and then.
            if self.watched.len() >= WATCHED_MAX {
                self.look(on)?;
            }
            self.watched.push(Watched { number, checks: launch.checks.clone(), origin });
        }
        Ok(Begun {
            number,
            scratch: self.scratch.as_ref().filter(|_| scratch),
            records: self.records.as_ref().filter(|_| checked),
        })
    }

    /// Where groups of a launch with checks leave their records, all of them empty the first time.
    fn make_records<W: Work<Piece = P>>(&mut self, on: &W, groups: u64) -> Result<(), Stop> {
        let bytes = (groups + 1) * RECORD as u64;
        if self.records.as_ref().is_some_and(|r| W::bytes(r) >= bytes) {
            return Ok(());
        }
        // What stands in the old ones is told first.
        self.look(on)?;
        let stop = |f: Fault| stopped_at(f, None);
        room(on, &mut self.records, bytes).map_err(stop)?;
        self.records.as_ref().map_or(Ok(()), |r| on.empty(r)).map_err(stop)
    }

    /// Waits, and says which launch was the first to find a position out of range.
    ///
    /// # Errors
    /// What it found; E0722.
    pub fn look<W: Work<Piece = P>>(&mut self, on: &W) -> Result<(), Stop> {
        let stop = |f: Fault| stopped_at(f, None);
        let watched = std::mem::take(&mut self.watched);
        let Some(records) = self.records.as_ref().filter(|_| !watched.is_empty()) else {
            return on.wait().map_err(stop);
        };
        let mut any = [0u8; 8];
        on.read(records, &mut any).map_err(stop)?;
        if any == [0; 8] {
            return Ok(());
        }
        let mut bytes = vec![0u8; W::bytes(records) as usize];
        on.read(records, &mut bytes).map_err(stop)?;
        // They are emptied for who runs on.
        on.empty(records).map_err(stop)?;
        Err(told(&bytes, &watched))
    }

    /// The same where something that was launched may have found one.
    ///
    /// # Errors
    /// As of [`Launches::look`].
    pub fn settle<W: Work<Piece = P>>(&mut self, on: &W) -> Result<(), Stop> {
        if self.watched.is_empty() { Ok(()) } else { self.look(on) }
    }
}

pub fn stopped_at(f: Fault, origin: Option<StepOrigin>) -> Stop {
    Stop { code: f.code, message: f.message, notes: f.notes, origin }
}

/// Which launch was the first to find a position out of range, by the records of groups; the first record only says that there
/// are others.
fn told(records: &[u8], watched: &[Watched]) -> Stop {
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
