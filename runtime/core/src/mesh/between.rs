//! The engine of devices in several processes: those of one process exchange as they do alone, what
//! goes to another process is packed and sent.
//!
//! A device first starts all that it sends and receives, and then waits: so no device waits for one
//! that waits for it.

use super::here::Hub;
use super::{At, Box, Engine, Moves, STOPPED, copy};
use crate::fault::Fault;
use crate::traffic;
use crate::world::mpi::Message;
use crate::world::parts::Way;
use crate::world::{ELSEWHERE, World};
use std::ops::Range;
use std::sync::Arc;

/// Between the devices of one call, of which this process has some.
pub struct Between {
    world: &'static World,
    here: Arc<Hub>,
    mine: Range<usize>,
    /// How many the mesh has.
    devices: usize,
}

/// Bytes before the boxes of a message: tag and turn of the exchange.
const HEAD: usize = 12;

fn head(moves: &Moves, at: At) -> Vec<u8> {
    [&moves.tag.to_le_bytes()[..], &at.turn.to_le_bytes()].concat()
}

/// The devices that are not here of those that boxes go to or come from, each once, with its boxes.
fn elsewhere<'a>(boxes: &'a [(usize, Box)], mine: &Range<usize>) -> Vec<(usize, Vec<&'a Box>)> {
    let mut out: Vec<(usize, Vec<&Box>)> = vec![];
    for (device, part) in boxes.iter().filter(|(d, _)| !mine.contains(d)) {
        match out.iter_mut().find(|o| o.0 == *device) {
            Some((_, parts)) => parts.push(part),
            None => out.push((*device, vec![part])),
        }
    }
    out
}

impl Between {
    pub fn new(world: &'static World, mine: Range<usize>, devices: usize) -> Arc<Between> {
        Arc::new(Between { world, here: Hub::new(mine.clone()), mine, devices })
    }

    fn way(&self, from: usize, to: usize) -> Way {
        Way { from, to, devices: self.devices }
    }

    /// Waits for a message.
    fn finish(&self, message: Message) -> Result<Vec<u8>, String> {
        let text = |fault: Fault| if fault.code == ELSEWHERE { STOPPED.to_owned() } else { fault.message };
        traffic::waiting(|| self.world.finish(message)).map_err(text)
    }

    /// Starts to send what other processes are to have.
    fn send(&self, at: At, moves: &Moves, from: &[u8]) -> Result<Vec<Message>, String> {
        let mut out = vec![];
        for (to, parts) in elsewhere(&moves.sends, &self.mine) {
            let len: usize = parts.iter().map(|b| b.elems() * moves.element).sum();
            let mut message = head(moves, at);
            message.resize(HEAD + len, 0);
            let mut place = HEAD;
            for part in parts {
                let whole = part.at_start();
                let into = &mut message[place..];
                copy(from, (&moves.from_shape, part), into, (&part.size, &whole), moves.element);
                place += part.elems() * moves.element;
            }
            traffic::gave(&moves.name, at.device, len);
            out.push(self.world.send(self.way(at.device, to), message).map_err(|f| f.message)?);
        }
        Ok(out)
    }

    /// Writes what came from another process where it belongs.
    fn unpack(&self, at: At, moves: &Moves, came: &[u8], parts: &[&Box], to: &mut [u8]) -> Result<(), String> {
        let Some(mut rest) = came.strip_prefix(head(moves, at).as_slice()) else {
            return Err(format!("`{}` got what another exchange sent", moves.name));
        };
        for part in parts {
            let whole = part.at_start();
            copy(rest, (&part.size, &whole), to, (&moves.to_shape, part), moves.element);
            rest = rest.get(part.elems() * moves.element..).unwrap_or(&[]);
        }
        Ok(())
    }
}

impl Engine for Between {
    fn exchange(&self, at: At, moves: &Moves, from: &[u8], to: &mut [u8]) -> Result<(), String> {
        let mut coming = vec![];
        for (sender, parts) in elsewhere(&moves.receives, &self.mine) {
            let len: usize = parts.iter().map(|b| b.elems() * moves.element).sum();
            let message = self.world.receive(self.way(sender, at.device), HEAD + len).map_err(|f| f.message)?;
            coming.push((message, parts));
        }
        let going = self.send(at, moves, from)?;
        self.here.exchange(at, moves, from, to)?;
        for (message, parts) in coming {
            let came = self.finish(message)?;
            self.unpack(at, moves, &came, &parts, to)?;
        }
        going.into_iter().try_for_each(|message| self.finish(message).map(|_| ()))
    }

    fn fail(&self) {
        self.here.fail();
        self.world.cry();
    }
}
