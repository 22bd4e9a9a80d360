//! The engine of devices in several processes: those of one process exchange as they do alone, what
//! goes to another process is packed and sent.
//!
//! A device first starts all that it sends and receives, and then waits: so no device waits for one
//! that waits for it. Messages of each exchange have a tag of their own, so that their order does not matter; while some
//! are under way and devices compute, a thread of the world moves them on.

use super::shared_memory::Hub;
use super::{At, Box, Engine, Moves, Piece, STOPPED, copy};
use crate::fault::Fault;
use crate::traffic;
use crate::world::mpi::Message;
use crate::world::parts::Way;
use crate::world::progress::Moving;
use crate::world::{ELSEWHERE, World};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Between the devices of one call, of which this process has some.
pub struct Between {
    world: &'static World,
    here: Arc<Hub>,
    mine: Range<usize>,
    /// How many the mesh has.
    devices: usize,
    open: Mutex<Vec<(At, u32, Open)>>,
}

/// Messages of an exchange that is not at its end.
#[derive(Default)]
struct Open {
    /// By sender.
    coming: Vec<Message>,
    going: Vec<Message>,
    /// Of large messages while nobody waits for them.
    moves_on: Option<Moving>,
}

/// Bytes of an exchange from which on its messages need calls to move on: smaller ones go at once, and wait where they
/// come to.
const LARGE: usize = 64 << 10;

/// Bytes before the boxes of a message: tag and turn of the exchange.
const HEAD: usize = 12;

fn head(moves: &Moves, at: At) -> Vec<u8> {
    [&moves.tag.to_le_bytes()[..], &at.turn.to_le_bytes()].concat()
}

/// Boxes with the piece that each is of.
type Boxes<'a> = Vec<(usize, &'a Box)>;

/// The devices that are not here of those that boxes go to or come from, each once, with its boxes.
fn elsewhere<'a>(
    moves: &'a Moves,
    boxes: fn(&Piece) -> &[(usize, Box)],
    mine: &Range<usize>,
) -> Vec<(usize, Boxes<'a>)> {
    let mut out: Vec<(usize, Boxes)> = vec![];
    for (i, piece) in moves.pieces.iter().enumerate() {
        for (device, part) in boxes(piece).iter().filter(|(d, _)| !mine.contains(d)) {
            match out.iter_mut().find(|o| o.0 == *device) {
                Some((_, parts)) => parts.push((i, part)),
                None => out.push((*device, vec![(i, part)])),
            }
        }
    }
    out
}

fn sends(piece: &Piece) -> &[(usize, Box)] {
    &piece.sends
}

fn receives(piece: &Piece) -> &[(usize, Box)] {
    &piece.receives
}

/// What boxes have together.
fn bytes(moves: &Moves, parts: &Boxes) -> usize {
    parts.iter().map(|(i, part)| moves.pieces[*i].bytes(part)).sum()
}

impl Between {
    pub fn new(world: &'static World, mine: Range<usize>, devices: usize) -> Arc<Between> {
        let here = Hub::new(mine.clone());
        Arc::new(Between { world, here, mine, devices, open: Mutex::default() })
    }

    fn way(&self, tag: u32, from: usize, to: usize) -> Way {
        Way { from, to, devices: self.devices, tag }
    }

    fn open(&self) -> MutexGuard<'_, Vec<(At, u32, Open)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a message.
    fn wait(&self, message: Message) -> Result<Vec<u8>, String> {
        let text = |fault: Fault| if fault.code == ELSEWHERE { STOPPED.to_owned() } else { fault.message };
        traffic::waiting(|| self.world.finish(message)).map_err(text)
    }

    /// Starts to send what other processes are to have.
    fn send(&self, at: At, moves: &Moves, from: &[&[u8]]) -> Result<Vec<Message>, String> {
        let mut out = vec![];
        for (to, parts) in elsewhere(moves, sends, &self.mine) {
            let len = bytes(moves, &parts);
            let mut message = head(moves, at);
            message.resize(HEAD + len, 0);
            let mut place = HEAD;
            for (i, part) in parts {
                let (piece, whole) = (&moves.pieces[i], part.at_start());
                let into = &mut message[place..];
                copy(from[i], (&piece.from_shape, part), into, (&part.size, &whole), piece.element);
                place += piece.bytes(part);
            }
            traffic::gave(&moves.name, at.device, len);
            out.push(self.world.send(self.way(moves.tag, at.device, to), message).map_err(|f| f.message)?);
        }
        Ok(out)
    }

    /// Writes what came from another process where it belongs.
    fn unpack(&self, at: At, moves: &Moves, came: &[u8], parts: &Boxes, to: &mut [&mut [u8]]) -> Result<(), String> {
        let Some(mut rest) = came.strip_prefix(head(moves, at).as_slice()) else {
            return Err(format!("`{}` got what another exchange sent", moves.name));
        };
        for &(i, part) in parts {
            let (piece, whole) = (&moves.pieces[i], part.at_start());
            copy(rest, (&part.size, &whole), to[i], (&piece.to_shape, part), piece.element);
            rest = rest.get(piece.bytes(part)..).unwrap_or(&[]);
        }
        Ok(())
    }

    /// Starts all messages of a device in an exchange.
    fn begin(&self, at: At, moves: &Moves, from: &[&[u8]]) -> Result<Open, String> {
        let mut open = Open::default();
        for (sender, parts) in elsewhere(moves, receives, &self.mine) {
            let len = bytes(moves, &parts);
            let way = self.way(moves.tag, sender, at.device);
            open.coming.push(self.world.receive(way, HEAD + len).map_err(|f| f.message)?);
        }
        open.going = self.send(at, moves, from)?;
        Ok(open)
    }

    /// Waits for the messages.
    fn end(&self, at: At, moves: &Moves, open: Open, to: &mut [&mut [u8]]) -> Result<(), String> {
        for ((_, parts), message) in elsewhere(moves, receives, &self.mine).into_iter().zip(open.coming) {
            let came = self.wait(message)?;
            self.unpack(at, moves, &came, &parts, to)?;
        }
        open.going.into_iter().try_for_each(|message| self.wait(message).map(|_| ()))
    }
}

impl Engine for Between {
    unsafe fn start(&self, at: At, moves: &Moves, from: &[&[u8]]) -> Result<(), String> {
        let mut open = self.begin(at, moves, from)?;
        let boxes = |p: &Piece| {
            let far = p.sends.iter().chain(&p.receives).filter(|b| !self.mine.contains(&b.0));
            far.map(|b| p.bytes(&b.1)).sum::<usize>()
        };
        let bytes: usize = moves.pieces.iter().map(boxes).sum();
        open.moves_on = (bytes >= LARGE).then(|| self.world.moving());
        self.open().push((at, moves.tag, open));
        // SAFETY: as the caller promises.
        unsafe { self.here.start(at, moves, from) }
    }

    fn finish(&self, at: At, moves: &Moves, from: &[&[u8]], to: &mut [&mut [u8]]) -> Result<(), String> {
        let taken = |all: &mut Vec<(At, u32, Open)>| {
            let place = all.iter().position(|o| (o.0, o.1) == (at, moves.tag))?;
            Some(all.swap_remove(place).2)
        };
        let mut open = taken(&mut self.open()).unwrap_or_default();
        // From here on the device itself asks after its messages.
        open.moves_on = None;
        self.here.finish(at, moves, from, to)?;
        self.end(at, moves, open, to)
    }

    fn exchange(&self, at: At, moves: &Moves, from: &[&[u8]], to: &mut [&mut [u8]]) -> Result<(), String> {
        let open = self.begin(at, moves, from)?;
        self.here.exchange(at, moves, from, to)?;
        self.end(at, moves, open, to)
    }

    fn starts_ahead(&self, tag: u32) -> bool {
        self.world.has_own_tag(tag, self.devices)
    }

    fn move_on(&self) {
        self.world.move_on();
    }

    fn withdraw(&self, device: usize) {
        self.open().retain(|o| o.0.device != device);
        self.here.withdraw(device);
    }

    fn fail(&self) {
        self.here.fail();
        self.world.cry();
    }
}
