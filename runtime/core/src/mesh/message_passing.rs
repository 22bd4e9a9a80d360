//! The engine of devices in several processes: those of one process exchange as they do alone, what
//! goes to another process is packed and sent.
//!
//! A device first starts all that it sends and receives, and then waits: so no device waits for one
//! that waits for it. Messages of each exchange have a tag of their own, so that their order does not matter; while some
//! are under way and devices compute, a thread of the world moves them on.
//!
//! What several devices of another node are to have goes there once, to one of them, which passes it on when it comes to
//! the end of the exchange. A message says to whom it is to be passed, so receivers need not know: they take what comes from
//! anyone. All come to the ends of exchanges in one order and take messages as they come, so nobody waits in a circle.

use super::shared_memory::Hub;
use super::{At, Box, Engine, Moves, Piece, STOPPED, copy};
use crate::fault::Fault;
use crate::traffic;
use crate::world::mpi::Message;
use crate::world::parts::Way;
use crate::world::progress::Moving;
use crate::world::{ELSEWHERE, World};
use std::collections::HashMap;
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

/// What goes to one device, or by way of it to others of its node.
struct Parcel<'a> {
    node: usize,
    boxes: Boxes<'a>,
    /// At least one.
    to: Vec<usize>,
}

/// A message that a device waits for.
struct Coming<'a> {
    from: usize,
    boxes: Boxes<'a>,
    message: Message,
}

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
        traffic::waiting(|| self.world.finish(message)).map_err(told)
    }

    /// The devices of a node for which a message has marks: to whom it is to be passed. None where nothing is passed.
    fn marked(&self, way: Way) -> Range<usize> {
        match self.world.may_be_passed(way) {
            true => self.world.devices_on(self.world.node_of(way.to, self.devices), self.devices),
            false => 0..0,
        }
    }

    /// What a device gives to others, together where those of one node get the same.
    fn parcels<'a>(&self, at: At, moves: &'a Moves) -> Vec<Parcel<'a>> {
        let mut out: Vec<Parcel> = vec![];
        let mut known: HashMap<(usize, Boxes), usize> = HashMap::new();
        for (to, boxes) in elsewhere(moves, sends, &self.mine) {
            let node = self.world.node_of(to, self.devices);
            if self.world.may_be_passed(self.way(moves.tag, at.device, to)) {
                if let Some(parcel) = known.get(&(node, boxes.clone())).and_then(|&i| out.get_mut(i)) {
                    parcel.to.push(to);
                    continue;
                }
                known.insert((node, boxes.clone()), out.len());
            }
            out.push(Parcel { node, boxes, to: vec![to] });
        }
        out
    }

    /// Starts to send what other processes are to have.
    fn send(&self, at: At, moves: &Moves, from: &[&[u8]]) -> Result<Vec<Message>, String> {
        let mut out = vec![];
        for Parcel { node, boxes, to } in self.parcels(at, moves) {
            let len = bytes(moves, &boxes);
            // Not always the same one passes things on.
            let first = to[at.device % to.len()];
            let way = self.way(moves.tag, at.device, first);
            let mut message = head(moves, at);
            let marked = self.marked(way);
            let mut marks = vec![0; marked.len().div_ceil(8)];
            for other in to.iter().filter(|d| **d != first && node == self.world.node_of(**d, self.devices)) {
                let bit = other - marked.start;
                marks[bit / 8] |= 1u8 << (bit % 8);
            }
            message.append(&mut marks);
            let mut place = message.len();
            message.resize(place + len, 0);
            for (i, part) in boxes {
                let (piece, whole) = (&moves.pieces[i], part.at_start());
                let into = &mut message[place..];
                copy(from[i], (&piece.from_shape, part), into, (&part.size, &whole), piece.element);
                place += piece.bytes(part);
            }
            traffic::gave(&moves.name, at.device, len * to.len());
            out.push(self.world.send(way, message).map_err(|f| f.message)?);
        }
        Ok(out)
    }

    /// Passes a message on to whom it has marks for, without them.
    fn pass_on(&self, way: Way, came: &[u8]) -> Result<Vec<Message>, String> {
        let marked = self.marked(way);
        let (own, rest) = came.split_at_checked(HEAD).unwrap_or((came, &[]));
        let (marks, boxes) = rest.split_at_checked(marked.len().div_ceil(8)).unwrap_or((&[], rest));
        let is_set = |bit: &usize| marks.get(bit / 8).is_some_and(|m| m & (1 << (bit % 8)) != 0);
        let others = (0..marked.len()).filter(is_set).map(|bit| marked.start + bit);
        let message = || [own, &vec![0; marks.len()], boxes].concat();
        others.map(|to| self.world.send(Way { to, ..way }, message()).map_err(|f| f.message)).collect()
    }

    /// Writes what came from another process where it belongs.
    fn unpack(&self, at: At, moves: &Moves, came: &[u8], coming: &Boxes, to: &mut [&mut [u8]]) -> Result<(), String> {
        if !came.starts_with(&head(moves, at)) {
            return Err(format!("`{}` got what another exchange sent", moves.name));
        }
        let mut rest = &came[came.len().saturating_sub(bytes(moves, coming))..];
        for &(i, part) in coming {
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
            let way = self.way(moves.tag, sender, at.device);
            let len = HEAD + self.marked(way).len().div_ceil(8) + bytes(moves, &parts);
            open.coming.push(self.world.receive(way, len).map_err(|f| f.message)?);
        }
        open.going = self.send(at, moves, from)?;
        Ok(open)
    }

    /// Waits for the messages.
    fn end(&self, at: At, moves: &Moves, open: Open, to: &mut [&mut [u8]]) -> Result<(), String> {
        let mut going = open.going;
        let senders = elsewhere(moves, receives, &self.mine).into_iter().zip(open.coming);
        let mut coming: Vec<Coming> = senders.map(|((from, boxes), message)| Coming { from, boxes, message }).collect();
        while !coming.is_empty() {
            let next = self.next(&mut coming)?;
            let Coming { from, boxes, message } = coming.remove(next);
            let came = self.wait(message)?;
            going.extend(self.pass_on(self.way(moves.tag, from, at.device), &came)?);
            self.unpack(at, moves, &came, &boxes, to)?;
        }
        going.into_iter().try_for_each(|message| self.wait(message).map(|_| ()))
    }

    /// The message to look at next. Where some are passed on, one that has come: others wait for it.
    fn next(&self, coming: &mut [Coming]) -> Result<usize, String> {
        if self.world.nodes().count() == 1 {
            return Ok(0);
        }
        let mut messages: Vec<&mut Message> = coming.iter_mut().map(|c| &mut c.message).collect();
        traffic::waiting(|| self.world.one_of(&mut messages)).map_err(told)
    }
}

/// Why a device did not get what it waited for.
fn told(fault: Fault) -> String {
    if fault.code == ELSEWHERE { STOPPED.to_owned() } else { fault.message }
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
