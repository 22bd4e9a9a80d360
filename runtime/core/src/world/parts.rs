//! What goes between the devices of different processes.

use super::mpi::Message;
use super::{TAG_DEVICES, TAG_FAILED, TAG_PARTS, Waited, World, elsewhere};
use crate::fault::Fault;
use std::sync::PoisonError;

/// From one device of a mesh to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    pub from: usize,
    pub to: usize,
    /// How many the mesh has.
    pub devices: usize,
    /// Of the exchange.
    pub tag: u32,
}

impl World {
    /// Brings the blocks of a tensor to all processes. `holders` are, by block, the devices that hold
    /// it; `own` gives the bytes of a block that is here. Returns the bytes of each block that is not.
    pub fn blocks<'a>(
        &self,
        devices: usize,
        blocks: &[(Vec<usize>, usize)],
        own: impl Fn(usize) -> &'a [u8],
    ) -> Result<Vec<Option<Vec<u8>>>, Fault> {
        let mut coming = vec![];
        let mut going = vec![];
        for (i, (holders, len)) in blocks.iter().enumerate() {
            let has = |rank: usize| holders.iter().any(|d| self.devices_of(rank, devices).contains(d));
            let owner = holders.first().map_or(0, |&d| self.owner(d, devices));
            if owner == self.mpi.rank {
                for to in (0..self.mpi.size).filter(|&r| !has(r)) {
                    going.push(self.message(self.mpi.send(to, TAG_PARTS, own(i).to_vec()))?);
                }
            }
            coming.push(match has(self.mpi.rank) {
                true => None,
                false => Some(self.message(self.mpi.receive(owner, TAG_PARTS, *len))?),
            });
        }
        let sent: Result<(), Fault> = going.into_iter().try_for_each(|m| self.taken(Ok(m)).map(|_| ()));
        sent?;
        coming.into_iter().map(|m| m.map(|m| self.taken(Ok(m))).transpose()).collect()
    }

    /// Starts to send to a device of another process. The number of devices of the mesh says who has
    /// which.
    pub fn send(&self, way: Way, bytes: Vec<u8>) -> Result<Message, Fault> {
        let to = self.owner(way.to, way.devices);
        self.message(self.mpi.send(to, self.tag(way), bytes))
    }

    /// Starts to receive so many bytes from a device of another process.
    pub fn receive(&self, way: Way, len: usize) -> Result<Message, Fault> {
        let from = self.owner(way.from, way.devices);
        self.message(self.mpi.receive(from, self.tag(way), len))
    }

    /// Each pair of devices has a tag among those of their processes for each exchange, so that what one sends the other
    /// for turns of a loop stays in order. The last exchanges share one, where there are not enough.
    fn tag(&self, Way { from, to, devices, tag }: Way) -> usize {
        let first = |device| self.devices_of(self.owner(device, devices), devices).start;
        let each = self.most_devices(devices);
        let slot = (tag as usize).min(self.slots(devices).saturating_sub(1));
        TAG_DEVICES + (slot * each + from - first(from)) * each + (to - first(to))
    }

    /// How many exchanges can have tags of their own.
    fn slots(&self, devices: usize) -> usize {
        let each = self.most_devices(devices);
        (self.mpi.tag_max - TAG_DEVICES) / each.saturating_mul(each).max(1)
    }

    /// Whether the messages of an exchange are in no other's way.
    pub fn has_own_tag(&self, tag: u32, devices: usize) -> bool {
        (tag as usize) + 1 < self.slots(devices)
    }

    /// The most devices that a process has.
    fn most_devices(&self, devices: usize) -> usize {
        devices.div_ceil(self.mpi.size)
    }

    /// Whether there are tags for the devices of a mesh.
    pub fn has_tags(&self, devices: usize) -> bool {
        self.slots(devices) > 0
    }

    /// Waits for a message of a device; the bytes that came. Ends where another process failed.
    pub fn finish(&self, mut message: Message) -> Result<Vec<u8>, Fault> {
        match self.wait(&mut message, true) {
            Ok(()) => Ok(message.into_received()),
            Err(Waited::Failed) => Err(elsewhere()),
            Err(Waited::Lost(fault)) => Err(fault),
        }
    }

    /// Tells the others that a device stopped, so that theirs do not wait for it.
    pub fn cry(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.is_empty() {
            let others = (0..self.mpi.size).filter(|&r| r != self.mpi.rank);
            // Where MPI itself fails, the others notice by themselves.
            left.extend(others.filter_map(|r| self.mpi.send(r, TAG_FAILED, vec![1]).ok()));
        }
    }
}
