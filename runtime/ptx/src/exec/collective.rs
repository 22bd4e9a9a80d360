//! What the lanes of a warp do together: all that the member mask names meet at one instruction.

use super::Fault;
use super::block::{Block, State};
use crate::inst::*;

/// The lanes of a mask.
fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

impl Block<'_> {
    /// The thread waits in a collective; if it was the last, the collective happens.
    pub fn collect(&mut self, thread: usize, mask: Reg) -> Result<(), Fault> {
        let base = thread / 32 * 32;
        let mask = self.reg(thread, mask) as u32;
        if mask >> (thread - base) & 1 == 0 {
            return Err(Fault::new(format!("the member mask {mask:#x} does not name the lane itself")));
        }
        let me = &mut self.threads[thread];
        (me.state, me.mask) = (State::Collect, mask);
        let pc = me.pc;
        let Op::Collective(what, _) = *self.op(thread) else { return Ok(()) };
        let here = |b: &Self, t: usize| {
            b.threads.get(t).is_some_and(|o| o.state == State::Collect && o.pc == pc && o.mask == mask)
        };
        if let Collective::Wgmma { .. } = what {
            let first = thread / 128 * 128;
            if (first..first + 128).all(|t| here(self, t)) {
                self.wgmma(first, &what)?;
                (first..first + 128).for_each(|t| self.resume(t));
            }
            return Ok(());
        }
        if !lanes(mask).all(|lane| here(self, base + lane)) {
            return Ok(());
        }
        self.perform(base, mask, &what)?;
        lanes(mask).for_each(|lane| self.resume(base + lane));
        Ok(())
    }

    fn perform(&mut self, base: usize, mask: u32, what: &Collective) -> Result<(), Fault> {
        match *what {
            Collective::Shuffle { mode, result, pred, a, b, c } => {
                self.shuffle(base, mask, mode, [result, pred, a, b, c])?;
            }
            Collective::Vote { mode, result, pred, negate } => {
                let holds = |lane: usize| (self.reg(base + lane, pred) & 1 == 1) != negate;
                let ballot = lanes(mask).filter(|lane| holds(*lane)).fold(0u32, |all, lane| all | 1 << lane);
                let value = match mode {
                    VoteMode::Ballot => ballot,
                    VoteMode::Any => u32::from(ballot != 0),
                    VoteMode::All => u32::from(ballot == mask),
                    VoteMode::Uniform => u32::from(ballot == mask || ballot == 0),
                };
                lanes(mask).for_each(|lane| self.set(base + lane, result, value.into()));
            }
            Collective::MatchAny { result, a, bits } => {
                let values = self.gather(base, a, mask).map(|v| v & crate::types::mask(bits.into()));
                for lane in lanes(mask) {
                    let same = lanes(mask).filter(|o| values[*o] == values[lane]).fold(0, |all, o| all | 1u64 << o);
                    self.set(base + lane, result, same);
                }
            }
            Collective::MatchAll { result, pred, a, bits } => {
                let values = self.gather(base, a, mask).map(|v| v & crate::types::mask(bits.into()));
                let first = values[mask.trailing_zeros() as usize];
                let same = lanes(mask).all(|lane| values[lane] == first);
                for lane in lanes(mask) {
                    self.set(base + lane, result, if same { mask.into() } else { 0 });
                    self.set(base + lane, pred, same.into());
                }
            }
            Collective::Redux { apply, result, a } => {
                let values = self.gather(base, a, mask);
                let value = lanes(mask).map(|lane| values[lane]).reduce(apply).unwrap_or(0);
                lanes(mask).for_each(|lane| self.set(base + lane, result, value));
            }
            Collective::Elect { result, pred } => {
                // Any lane may be the leader; it is the lowest.
                let leader = mask.trailing_zeros() as usize;
                for lane in lanes(mask) {
                    self.set(base + lane, result, leader as u64);
                    self.set(base + lane, pred, u64::from(lane == leader));
                }
            }
            Collective::WarpSync => {
                if let Some(races) = &mut self.mem.races {
                    races.meet(base, mask);
                }
            }
            Collective::LdMatrix { list, count, transposed, space, base: address, offset } => {
                self.load_matrix(base, (list, count, transposed), space, address, offset)?;
            }
            Collective::StMatrix { list, count, transposed, space, base: address, offset } => {
                self.store_matrix(base, (list, count, transposed), space, address, offset)?;
            }
            Collective::Mma { list, shape } => self.mma(base, list, shape),
            Collective::Wgmma { .. } => {}
        }
        Ok(())
    }

    /// The values of a register in all lanes of a mask.
    fn gather(&self, base: usize, reg: Reg, mask: u32) -> [u64; 32] {
        let mut values = [0; 32];
        lanes(mask).for_each(|lane| values[lane] = self.reg(base + lane, reg));
        values
    }

    /// As the manual's pseudocode says; a source lane outside of the member mask is an error here, not an
    /// undefined value.
    fn shuffle(
        &mut self,
        base: usize,
        mask: u32,
        mode: ShuffleMode,
        [result, pred, a, b, c]: [Reg; 5],
    ) -> Result<(), Fault> {
        let values = self.gather(base, a, mask);
        for lane in lanes(mask) {
            let (bval, cval) = (self.reg(base + lane, b) as usize & 31, self.reg(base + lane, c) as usize);
            let (segment, clamp) = (cval >> 8 & 31, cval & 31);
            let max_lane = lane & segment | clamp & !segment;
            let min_lane = lane & segment;
            let (source, inside) = match mode {
                ShuffleMode::Up => (lane.wrapping_sub(bval), lane as isize - bval as isize >= max_lane as isize),
                ShuffleMode::Down => (lane + bval, lane + bval <= max_lane),
                ShuffleMode::Butterfly => (lane ^ bval, lane ^ bval <= max_lane),
                ShuffleMode::Index => {
                    let source = min_lane | bval & !segment;
                    (source, source <= max_lane)
                }
            };
            let source = if inside { source } else { lane };
            if source > 31 || mask >> source & 1 == 0 {
                let what = format!("lane {lane} reads lane {source}, which the member mask {mask:#x} does not name");
                return Err(Fault::new(what));
            }
            self.set(base + lane, result, values[source]);
            self.set(base + lane, pred, inside.into());
        }
        Ok(())
    }
}
