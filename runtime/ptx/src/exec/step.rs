//! Running one thread until it waits.

use super::Fault;
use super::block::{Block, State};
use super::spaces::{Who, space_of, window};
use crate::inst::*;
use std::hash::Hasher;

/// Branches backwards after which a thread lets others go first: it may spin.
const SPINS: u32 = 10_000;

/// Why a thread stopped.
enum Stop {
    State(State),
    /// A collective: the register of its member mask.
    Collect(Reg),
    Barrier,
    Exit,
}

impl Block<'_> {
    /// Runs a thread until it waits, yields or ends.
    pub fn step(&mut self, thread: usize) -> Result<(), Fault> {
        // The registers are taken out for the while, so that they and the rest are borrowed apart.
        let mut regs = std::mem::take(&mut self.regs);
        let mut pc = self.threads[thread].pc as usize;
        let stop = self.run_thread(thread, &mut regs[thread * self.width..][..self.width], &mut pc);
        self.regs = regs;
        self.threads[thread].pc = pc as u32;
        match stop? {
            Stop::State(State::Yielded) => {
                self.yielded(thread);
                Ok(())
            }
            Stop::State(state) => {
                self.threads[thread].state = state;
                Ok(())
            }
            Stop::Collect(mask) => self.collect(thread, mask),
            Stop::Barrier => self.arrive(thread),
            Stop::Exit => self.exit(thread),
        }
    }

    /// A thread that yields twice with the same registers will do so forever, unless the memory changes.
    fn yielded(&mut self, thread: usize) {
        let mut hasher = std::hash::DefaultHasher::new();
        for value in &self.regs[thread * self.width..][..self.width] {
            hasher.write_u64(*value);
        }
        let me = &mut self.threads[thread];
        hasher.write_u32(me.pc);
        let digest = hasher.finish();
        me.idle = digest == me.digest;
        me.digest = digest;
        me.state = State::Yielded;
    }

    fn exit(&mut self, thread: usize) -> Result<(), Fault> {
        self.threads[thread].state = State::Done;
        self.live -= 1;
        self.progress += 1;
        self.copies[thread].clear();
        (0..self.barriers.len()).try_for_each(|id| self.complete(id))
    }

    fn run_thread(&mut self, thread: usize, regs: &mut [u64], at: &mut usize) -> Result<Stop, Fault> {
        let code = self.grid.kernel.code.as_slice();
        let mut pc = *at;
        let mut count = 0u64;
        let mut spins = 0;
        let result = loop {
            let Some(inst) = code.get(pc) else { break Ok(Stop::Exit) };
            count += 1;
            if inst.guard != NONE && (regs[(inst.guard >> 1) as usize] ^ u64::from(inst.guard)) & 1 == 0 {
                pc += match inst.op {
                    Op::Skip(n) => n as usize + 1,
                    _ => 1,
                };
                continue;
            }
            match inst.op {
                Op::Move(d, a) => regs[d as usize] = regs[a as usize],
                Op::Un(f, d, a) => regs[d as usize] = f(regs[a as usize]),
                Op::Bin(f, d, a, b) => regs[d as usize] = f(regs[a as usize], regs[b as usize]),
                Op::Tri(f, d, a, b, c) => regs[d as usize] = f(regs[a as usize], regs[b as usize], regs[c as usize]),
                Op::Quad(f, d, [a, b, c, e]) => {
                    regs[d as usize] = f(regs[a as usize], regs[b as usize], regs[c as usize], regs[e as usize]);
                }
                Op::Select(d, a, b, p) => regs[d as usize] = regs[if regs[p as usize] != 0 { a } else { b } as usize],
                Op::Convert(spec, d, a, b) => regs[d as usize] = spec.apply(regs[a as usize], regs[b as usize]),
                Op::Load(access) => {
                    let who = Who { thread: thread as u32, pc: pc as u32, strong: access.strong };
                    if let Err(fault) = self.load(&access, regs, who) {
                        break Err(fault);
                    }
                }
                Op::Store(access) => {
                    let who = Who { thread: thread as u32, pc: pc as u32, strong: access.strong };
                    if let Err(fault) = self.store(&access, regs, who) {
                        break Err(fault);
                    }
                }
                Op::Branch(target) => {
                    let target = target as usize;
                    if target <= pc {
                        spins += 1;
                        if spins >= SPINS {
                            pc = target;
                            break Ok(Stop::State(State::Yielded));
                        }
                    }
                    pc = target;
                    continue;
                }
                Op::Skip(_) | Op::Nop => {}
                Op::Exit => break Ok(Stop::Exit),
                Op::Collective(_, mask) => break Ok(Stop::Collect(mask)),
                Op::BarSync { .. } | Op::BarReduce { .. } | Op::BarArrive { .. } => break Ok(Stop::Barrier),
                Op::ActiveMask(_) => break Ok(Stop::State(State::Active)),
                _ => match self.rare(thread, regs, &mut pc, &inst.op, count) {
                    Ok(None) => {}
                    Ok(Some(stop)) => break Ok(stop),
                    Err(fault) => break Err(fault),
                },
            }
            pc += 1;
        };
        self.mem.counts.instructions += count;
        *at = pc;
        result
    }

    /// What is not worth a place in the loop.
    fn rare(
        &mut self,
        thread: usize,
        regs: &mut [u64],
        pc: &mut usize,
        op: &Op,
        count: u64,
    ) -> Result<Option<Stop>, Fault> {
        let who = Who { thread: thread as u32, pc: *pc as u32, strong: false };
        match *op {
            Op::Carry(d, a, b, flags) => {
                let carry = self.grid.kernel.carry as usize;
                let (sum, out) = add_with_carry(regs[a as usize], regs[b as usize], regs[carry], flags);
                regs[d as usize] = sum;
                if flags & CARRY_OUT != 0 {
                    regs[carry] = out;
                }
            }
            // A clock that advances with the instructions is as good as any, and the same in every run.
            Op::Clock(d) => regs[d as usize] = (self.mem.counts.instructions - self.started + count) & 0xFFFF_FFFF,
            Op::Atomic(op) => {
                let old = self.mem.atomic(&op, regs, who)?;
                if op.result != NONE {
                    regs[op.result as usize] = old;
                }
            }
            Op::ToGeneric(space, d, a) => regs[d as usize] = regs[a as usize].wrapping_add(window(space)),
            Op::FromGeneric(space, d, a) => regs[d as usize] = regs[a as usize].wrapping_sub(window(space)),
            Op::IsSpace(space, d, a) => regs[d as usize] = u64::from(space_of(regs[a as usize]) == space),
            Op::BranchTable(index, table) => {
                let index = regs[index as usize];
                let table = self.grid.kernel.tables.get(table as usize);
                let target = table.and_then(|t| t.get(usize::try_from(index).ok()?));
                let Some(target) = target else {
                    return Err(Fault::new(format!("the index {index} is outside of the branch table")));
                };
                // The loop goes on behind the instruction.
                *pc = (*target as usize).wrapping_sub(1);
            }
            Op::Trap => return Err(Fault::new("the kernel trapped")),
            Op::Fence => {
                if let Some(races) = &mut self.mem.races {
                    races.acquire(who.thread);
                }
            }
            _ => {
                let passed = self.asynchronous(thread, regs, op, who)?;
                if !passed {
                    *pc += 1;
                    return Ok(Some(Stop::State(State::Yielded)));
                }
            }
        }
        Ok(None)
    }

    fn load(&mut self, access: &Access, regs: &mut [u64], who: Who) -> Result<(), Fault> {
        let (size, count) = (u32::from(access.size), u32::from(access.count));
        let address = regs[access.base as usize].wrapping_add(access.offset as u64);
        let place = self.mem.resolve(access.space, address, size * count, who.thread)?;
        if access.acquire
            && let Some(races) = &mut self.mem.races
        {
            races.acquire(who.thread);
        }
        for at in 0..count {
            let mut value = self.mem.load(place.plus((at * size) as usize), size, who)?;
            if access.sign_to != 0 {
                let wide = crate::types::sign_extend(value, 8 * size);
                value = wide & crate::types::mask(access.sign_to.into());
            }
            let reg = match count {
                1 => access.value,
                _ => self.grid.kernel.pool[(access.value + at) as usize],
            };
            if reg != NONE {
                regs[reg as usize] = value;
            }
        }
        Ok(())
    }

    fn store(&mut self, access: &Access, regs: &[u64], who: Who) -> Result<(), Fault> {
        let (size, count) = (u32::from(access.size), u32::from(access.count));
        let address = regs[access.base as usize].wrapping_add(access.offset as u64);
        let place = self.mem.resolve(access.space, address, size * count, who.thread)?;
        for at in 0..count {
            let reg = match count {
                1 => access.value,
                _ => self.grid.kernel.pool[(access.value + at) as usize],
            };
            self.mem.store(place.plus((at * size) as usize), size, regs[reg as usize], who)?;
        }
        Ok(())
    }
}

/// The sum or difference and the carry out of it; of a difference the carry is the borrow.
fn add_with_carry(a: u64, b: u64, carry: u64, flags: u8) -> (u64, u64) {
    let bits = if flags & CARRY_64 != 0 { 64 } else { 32 };
    let mask = u128::from(crate::types::mask(bits));
    let (a, b) = (u128::from(a) & mask, u128::from(b) & mask);
    let carry = if flags & CARRY_IN != 0 { u128::from(carry & 1) } else { 0 };
    let result = if flags & CARRY_SUB != 0 { a.wrapping_sub(b).wrapping_sub(carry) } else { a + b + carry };
    ((result & mask) as u64, (result >> bits & 1) as u64)
}
