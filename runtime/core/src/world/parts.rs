//! What goes between the devices of different processes.

use super::mpi::Message;
use super::nodes::Nodes;
use super::{TAG_DEVICES, TAG_FAILED, TAG_PARTS, TAG_PASSED, Waited, World, elsewhere};
use crate::fault::Fault;
use std::collections::BTreeSet;
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

/// How a block gets to all processes.
struct Bringing {
    /// The process that gives it to other nodes.
    owner: usize,
    /// The processes that have it.
    holders: BTreeSet<usize>,
}

impl Bringing {
    fn holds(&self, rank: usize) -> bool {
        self.holders.contains(&rank)
    }

    /// The process of a node that has the block and gives it to those beside it.
    fn source(&self, nodes: &Nodes, node: usize) -> Option<usize> {
        let owner = Some(self.owner).filter(|&r| nodes.of(r) == node);
        owner.or_else(|| nodes.processes(node).iter().copied().find(|&r| self.holds(r)))
    }

    /// The process of a node where nobody has block `i` that gets it and passes it on.
    fn relay(&self, nodes: &Nodes, node: usize, i: usize) -> Option<usize> {
        let all = nodes.processes(node);
        let none = self.source(nodes, node).is_none() && !all.is_empty();
        none.then(|| all[i % all.len()])
    }
}

impl World {
    /// Brings the blocks of a tensor to all processes. `holders` are, by block, the devices that hold
    /// it; `own` gives the bytes of a block that is here. Returns the bytes of each block that is not. A block goes to a node
    /// once, and is passed on inside.
    pub fn blocks<'a>(
        &self,
        devices: usize,
        blocks: &[(Vec<usize>, usize)],
        own: impl Fn(usize) -> &'a [u8],
    ) -> Result<Vec<Option<Vec<u8>>>, Fault> {
        let (rank, nodes) = (self.mpi.rank, self.nodes());
        let here = nodes.of(rank);
        let plans: Vec<Bringing> = blocks.iter().map(|(holders, _)| self.bringing(holders, devices)).collect();
        let mut coming = vec![];
        let mut going = vec![];
        // By source and tag, messages are sent and received in the order of the blocks.
        for (i, (plan, (_, len))) in plans.iter().zip(blocks).enumerate() {
            if plan.owner == rank {
                for to in (0..nodes.count()).filter_map(|node| plan.relay(nodes, node, i)) {
                    going.push(self.part_to(to, TAG_PARTS, own(i).to_vec())?);
                }
            }
            if plan.source(nodes, here) == Some(rank) {
                for &to in nodes.processes(here).iter().filter(|r| !plan.holds(**r)) {
                    going.push(self.part_to(to, TAG_PARTS, own(i).to_vec())?);
                }
            }
            let (from, tag) = match (plan.source(nodes, here), plan.relay(nodes, here, i)) {
                _ if plan.holds(rank) => {
                    coming.push(None);
                    continue;
                }
                (Some(source), _) => (source, TAG_PARTS),
                (None, Some(relay)) if relay != rank => (relay, TAG_PASSED),
                (None, _) => (plan.owner, TAG_PARTS),
            };
            coming.push(Some(self.message(self.mpi.receive(Some(from), tag, *len))?));
        }
        let mut came = vec![];
        for (i, (plan, message)) in plans.iter().zip(coming).enumerate() {
            let bytes = message.map(|m| self.taken(Ok(m))).transpose()?;
            if let (Some(bytes), Some(relay)) = (&bytes, plan.relay(nodes, here, i))
                && relay == rank
            {
                for &to in nodes.processes(here).iter().filter(|&&r| r != rank) {
                    going.push(self.part_to(to, TAG_PASSED, bytes.clone())?);
                }
            }
            came.push(bytes);
        }
        going.into_iter().try_for_each(|m| self.taken(Ok(m)).map(|_| ()))?;
        Ok(came)
    }

    fn bringing(&self, holders: &[usize], devices: usize) -> Bringing {
        let owner = holders.first().map_or(0, |&d| self.owner(d, devices));
        Bringing { owner, holders: holders.iter().map(|&d| self.owner(d, devices)).collect() }
    }

    fn part_to(&self, to: usize, tag: usize, bytes: Vec<u8>) -> Result<Message, Fault> {
        self.note_sent(to, bytes.len());
        self.message(self.mpi.send(to, tag, bytes))
    }

    /// Starts to send to a device of another process. The number of devices of the mesh says who has
    /// which.
    pub fn send(&self, way: Way, bytes: Vec<u8>) -> Result<Message, Fault> {
        let to = self.owner(way.to, way.devices);
        self.note_sent(to, bytes.len());
        self.message(self.mpi.send(to, self.tag(way), bytes))
    }

    /// Starts to receive so many bytes from a device of another process; of another node perhaps by way of a device of
    /// this one.
    pub fn receive(&self, way: Way, len: usize) -> Result<Message, Fault> {
        let from = Some(self.owner(way.from, way.devices)).filter(|_| !self.may_be_passed(way));
        self.message(self.mpi.receive(from, self.tag(way), len))
    }

    /// Whether what goes this way may be given to another device of the receiver's node, which passes it on. Exchanges that
    /// share a tag depend on the order in which one process sends.
    pub fn may_be_passed(&self, way: Way) -> bool {
        let node = |device| self.node_of(device, way.devices);
        self.nodes().count() > 1 && self.has_own_tag(way.tag, way.devices) && node(way.from) != node(way.to)
    }

    /// Each pair of devices has a tag among those of their processes for each exchange, so that what one sends the other
    /// for turns of a loop stays in order; where a message may come from another process than the sender's, among those of
    /// all processes. The last exchanges share one, where there are not enough.
    fn tag(&self, Way { from, to, devices, tag }: Way) -> usize {
        let first = |device| self.devices_of(self.owner(device, devices), devices).start;
        let slot = (tag as usize).min(self.slots(devices).saturating_sub(1));
        let from = if self.nodes().count() > 1 { from } else { from - first(from) };
        TAG_DEVICES + (slot * self.senders(devices) + from) * self.most_devices(devices) + (to - first(to))
    }

    /// How many exchanges can have tags of their own.
    fn slots(&self, devices: usize) -> usize {
        let pairs = self.senders(devices).saturating_mul(self.most_devices(devices));
        (self.mpi.tag_max - TAG_DEVICES) / pairs.max(1)
    }

    /// How many devices a message may be from that a process gets by one other.
    fn senders(&self, devices: usize) -> usize {
        if self.nodes().count() > 1 { devices } else { self.most_devices(devices) }
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

    /// Waits for one of several messages of devices; which one it is. Ends where another process failed.
    pub fn one_of(&self, messages: &mut [&mut Message]) -> Result<usize, Fault> {
        let mut found = 0;
        let waited = self.wait_until(true, || {
            for (i, message) in messages.iter_mut().enumerate() {
                if self.mpi.is_done(message)? {
                    found = i;
                    return Ok(true);
                }
            }
            Ok(false)
        });
        match waited {
            Ok(()) => Ok(found),
            Err(Waited::Failed) => Err(elsewhere()),
            Err(Waited::Lost(fault)) => Err(fault),
        }
    }

    /// Tells the others that a device stopped, so that theirs do not wait for it. Where it stopped because another process
    /// said so, that one has told all.
    pub fn cry(&self) {
        if self.mpi.has_come(TAG_FAILED) {
            return;
        }
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.is_empty() {
            let others = (0..self.mpi.size).filter(|&r| r != self.mpi.rank);
            // Where MPI itself fails, the others notice by themselves.
            left.extend(others.filter_map(|r| self.mpi.send(r, TAG_FAILED, vec![1]).ok()));
        }
    }
}
