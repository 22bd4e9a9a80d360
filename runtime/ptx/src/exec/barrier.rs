//! Barriers of a block.

use super::Fault;
use super::block::{Block, State};
use crate::inst::*;

#[derive(Clone, Copy, Debug, Default)]
pub struct Barrier {
    pub arrived: u32,
    /// Threads it takes; 0 for all that have not ended.
    pub count: u32,
    /// How many gave a true predicate, and how many any.
    holds: u32,
    voted: u32,
}

impl Block<'_> {
    /// How many threads a barrier takes.
    pub fn expected(&self, barrier: &Barrier) -> u32 {
        if barrier.count == 0 { self.live } else { barrier.count }
    }

    /// The thread is at a barrier.
    pub fn arrive(&mut self, thread: usize) -> Result<(), Fault> {
        let (id, count, waits, vote) = match *self.op(thread) {
            Op::BarSync { id, count, .. } => (id, count, true, None),
            Op::BarArrive { id, count } => (id, count, false, None),
            Op::BarReduce { id, count, pred, negate, .. } => {
                (id, count, true, Some((self.reg(thread, pred) != 0) != negate))
            }
            _ => return Ok(()),
        };
        let id = self.reg(thread, id) as u32 as usize;
        if id >= self.barriers.len() {
            return Err(Fault::new(format!("there is no barrier {id}")));
        }
        let count = if count == NONE { 0 } else { self.reg(thread, count) as u32 };
        if count % 32 != 0 || count > self.grid.threads.next_multiple_of(32) {
            return Err(Fault::new(format!("a barrier of {count} threads")));
        }
        let barrier = &mut self.barriers[id];
        if barrier.arrived > 0 && barrier.count != count {
            let what = format!("a barrier of {count} threads where others wait for {} (0: all)", barrier.count);
            return Err(Fault::new(what));
        }
        barrier.count = count;
        barrier.arrived += 1;
        if let Some(holds) = vote {
            barrier.voted += 1;
            barrier.holds += u32::from(holds);
        }
        if waits {
            self.threads[thread].state = State::Barrier(id as u8);
        } else {
            self.resume(thread);
        }
        self.complete(id)
    }

    /// Lets everyone go when the last has come.
    pub fn complete(&mut self, id: usize) -> Result<(), Fault> {
        let barrier = self.barriers[id];
        if barrier.arrived == 0 || barrier.arrived < self.expected(&barrier) {
            return Ok(());
        }
        self.barriers[id] = Barrier::default();
        let waiting: Vec<usize> =
            (0..self.threads.len()).filter(|t| self.threads[*t].state == State::Barrier(id as u8)).collect();
        self.check_aligned(&waiting)?;
        if let Some(races) = &mut self.mem.races {
            races.barrier(waiting.iter().copied());
        }
        for thread in waiting {
            if let Op::BarReduce { reduction, result, .. } = *self.op(thread) {
                let value = match reduction {
                    Reduction::Popc => barrier.holds,
                    Reduction::And => u32::from(barrier.holds == barrier.voted),
                    Reduction::Or => u32::from(barrier.holds > 0),
                };
                self.set(thread, result, value.into());
            }
            self.resume(thread);
        }
        Ok(())
    }

    /// The lanes of a warp must be at one and the same aligned barrier.
    fn check_aligned(&self, waiting: &[usize]) -> Result<(), Fault> {
        for pair in waiting.windows(2) {
            let [a, b] = [pair[0], pair[1]];
            let (at, other) = (self.threads[a].pc, self.threads[b].pc);
            if a / 32 == b / 32 && at != other && matches!(self.op(a), Op::BarSync { aligned: true, .. }) {
                let what = "an aligned barrier, but lanes of one warp are at different ones";
                return Err(Fault { other: Some((a as u32, at)), ..Fault::new(what) });
            }
        }
        Ok(())
    }
}
