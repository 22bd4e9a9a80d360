//! One block: its threads and who of them runs.

use super::barrier::Barrier;
use super::copies::{Copies, Mbarrier};
use super::spaces::Spaces;
use super::{Fault, Grid};
use crate::inst::*;
use crate::{Counts, Error, Kind};
use std::collections::BTreeMap;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    /// Spins; others go first.
    Yielded,
    /// Waits for the lanes of its member mask.
    Collect,
    /// Waits until no lane of the warp can go on: those at this place are the active ones.
    Active,
    Barrier(u8),
    Done,
}

#[derive(Clone, Copy, Debug)]
pub struct Thread {
    pub pc: u32,
    pub state: State,
    /// Member mask of the collective it waits in.
    pub mask: u32,
    /// Digest of its registers when it yielded last.
    pub digest: u64,
    /// It yielded twice in one and the same state.
    pub idle: bool,
}

const START: Thread = Thread { pc: 0, state: State::Ready, mask: 0, digest: 0, idle: false };

/// Named barriers, and one that the barrier of a cluster takes.
pub const BARRIERS: usize = 17;

/// Rounds of all threads spinning after which another block is no longer hoped for.
const PATIENCE: u32 = 200;

pub struct Block<'a> {
    pub grid: &'a Grid<'a>,
    pub ctaid: [u32; 3],
    /// Registers of one thread.
    pub width: usize,
    pub regs: Vec<u64>,
    pub threads: Vec<Thread>,
    pub mem: Spaces<'a>,
    pub barriers: [Barrier; BARRIERS],
    pub mbarriers: BTreeMap<u64, Mbarrier>,
    pub copies: Vec<Copies>,
    /// Threads that have not ended.
    pub live: u32,
    /// Counts what lets waiting threads go on.
    pub progress: u64,
    /// Instructions that were counted before this block.
    pub started: u64,
}

impl<'a> Block<'a> {
    pub fn new(grid: &'a Grid<'a>) -> Block<'a> {
        let (threads, width) = (grid.threads as usize, grid.kernel.template.len());
        Block {
            grid,
            ctaid: [0; 3],
            width,
            regs: vec![0; threads * width],
            threads: vec![START; threads],
            mem: Spaces::new(grid),
            barriers: [Barrier::default(); BARRIERS],
            mbarriers: BTreeMap::new(),
            copies: (0..threads).map(|_| Copies::default()).collect(),
            live: 0,
            progress: 0,
            started: 0,
        }
    }

    pub fn counts(&self) -> Counts {
        self.mem.counts
    }

    /// Runs the block with this number.
    pub fn run(&mut self, index: u64) -> Result<(), Error> {
        let [x, y, _] = self.grid.grid.map(u64::from);
        self.ctaid = [index % x, index / x % y, index / x / y].map(|n| n as u32);
        self.start();
        let mut idle_rounds = 0;
        let mut before = (0, 0);
        while self.live > 0 {
            let mut ran = false;
            for thread in &mut self.threads {
                if thread.state == State::Yielded {
                    thread.state = State::Ready;
                }
            }
            for at in 0..self.grid.warp_order.len() {
                ran |= self.run_warp(self.grid.warp_order[at])?;
            }
            if self.live > 0 && !ran {
                return Err(self.deadlock());
            }
            let now = (self.mem.changes, self.progress);
            let stuck = now == before
                && self.threads.iter().all(|t| t.idle || !matches!(t.state, State::Ready | State::Yielded));
            before = now;
            idle_rounds = if stuck && self.live > 0 { idle_rounds + 1 } else { 0 };
            self.wait_for_others(idle_rounds)?;
            if self.live > 0 && self.mem.counts.instructions - self.started > self.grid.limit {
                let thread = self.threads.iter().position(|t| t.state != State::Done).unwrap_or(0);
                return Err(self.error(thread, &Fault::new("the block does not end")));
            }
        }
        Ok(())
    }

    /// All threads spin on memory that this block no longer changes: another block may.
    fn wait_for_others(&self, idle_rounds: u32) -> Result<(), Error> {
        if idle_rounds < 2 {
            return Ok(());
        }
        let alone = self.grid.grid == [1; 3];
        if alone || idle_rounds > PATIENCE {
            return Err(self.deadlock());
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        Ok(())
    }

    fn start(&mut self) {
        self.mem.reset();
        self.started = self.mem.counts.instructions;
        self.mbarriers.clear();
        self.barriers = [Barrier::default(); BARRIERS];
        self.live = self.grid.threads;
        self.threads.fill(START);
        self.copies.iter_mut().for_each(Copies::clear);
        for thread in 0..self.grid.threads {
            let regs = &mut self.regs[thread as usize * self.width..][..self.width];
            regs.copy_from_slice(&self.grid.kernel.template);
            for (special, reg) in &self.grid.kernel.specials {
                regs[*reg as usize] = special_value(self.grid, self.ctaid, thread, *special).into();
            }
        }
    }

    /// Lets the lanes of a warp run as far as they can; returns whether any did.
    fn run_warp(&mut self, warp: u32) -> Result<bool, Error> {
        let mut ran = false;
        loop {
            let mut again = false;
            for at in 0..32 {
                let thread = (warp * 32 + self.grid.lane_order[at]) as usize;
                if thread < self.threads.len() && self.threads[thread].state == State::Ready {
                    self.step(thread).map_err(|fault| self.error(thread, &fault))?;
                    again = true;
                }
            }
            ran |= again;
            if !again && !self.settle_active(warp) {
                return Ok(ran);
            }
        }
    }

    /// `activemask`: when no lane of the warp can go on, those at one place are the active ones.
    fn settle_active(&mut self, warp: u32) -> bool {
        let base = warp as usize * 32;
        let end = (base + 32).min(self.threads.len());
        let waiting = |t: &Thread| t.state == State::Active;
        let Some(pc) = self.threads[base..end].iter().filter(|t| waiting(t)).map(|t| t.pc).min() else { return false };
        let Op::ActiveMask(result) = self.grid.kernel.code[pc as usize].op else { return false };
        let lanes: Vec<usize> =
            (base..end).filter(|t| waiting(&self.threads[*t]) && self.threads[*t].pc == pc).collect();
        let mask = lanes.iter().fold(0u64, |mask, t| mask | 1 << (t - base));
        for thread in lanes {
            self.set(thread, result, mask);
            self.resume(thread);
        }
        true
    }

    pub fn reg(&self, thread: usize, reg: Reg) -> u64 {
        self.regs[thread * self.width + reg as usize]
    }

    /// Sets a register, unless it is none.
    pub fn set(&mut self, thread: usize, reg: Reg, value: u64) {
        if reg != NONE {
            self.regs[thread * self.width + reg as usize] = value;
        }
    }

    /// The thread goes on behind what it waited in.
    pub fn resume(&mut self, thread: usize) {
        self.threads[thread].state = State::Ready;
        self.threads[thread].pc += 1;
        self.progress += 1;
    }

    pub fn op(&self, thread: usize) -> &Op {
        &self.grid.kernel.code[self.threads[thread].pc as usize].op
    }

    fn place_of(&self, thread: usize) -> String {
        let [x, y, _] = self.grid.block.map(|n| n as usize);
        format!("({},{},{})", thread % x, thread / x % y, thread / x / y)
    }

    /// The line and the statement of an instruction.
    fn site(&self, pc: u32) -> String {
        let kernel = self.grid.kernel;
        let site = kernel.site.get(pc as usize).and_then(|at| kernel.sites.get(*at as usize));
        site.map_or(String::new(), |s| format!("line {} `{}`", s.line, s.text))
    }

    pub fn error(&self, thread: usize, fault: &Fault) -> Error {
        let [x, y, z] = self.ctaid;
        let mut message = format!(
            "kernel {}, block ({x},{y},{z}), thread {}, {}: {}",
            self.grid.kernel.name,
            self.place_of(thread),
            self.site(self.threads[thread].pc),
            fault.what
        );
        if let Some((other, pc)) = fault.other {
            message += &format!(" (thread {}, {})", self.place_of(other as usize), self.site(pc));
        }
        Error { kind: fault.kind, message }
    }

    /// Nobody can go on: says why, for the first thread that waits.
    fn deadlock(&self) -> Error {
        let waits = |t: &Thread| t.state == State::Collect;
        let collect = self.threads.iter().position(waits);
        let Some(thread) = collect.or(self.threads.iter().position(|t| t.state != State::Done)) else {
            return Error { kind: Kind::Fault, message: "a deadlock without threads".into() };
        };
        let fault = match self.threads[thread].state {
            State::Collect => self.missing_lane(thread),
            State::Barrier(id) => {
                let barrier = &self.barriers[usize::from(id)];
                let (arrived, expected) = (barrier.arrived, self.expected(barrier));
                Fault::new(format!(
                    "a deadlock: {arrived} of {expected} threads are at the barrier, and no other comes"
                ))
            }
            _ => Fault::new("a deadlock: it spins on memory that nobody changes any more"),
        };
        self.error(thread, &fault)
    }

    /// Why a collective does not happen.
    fn missing_lane(&self, thread: usize) -> Fault {
        let base = thread / 32 * 32;
        let me = &self.threads[thread];
        let members = (0..32usize).filter(|lane| me.mask >> lane & 1 == 1);
        for lane in members {
            let Some(other) = self.threads.get(base + lane) else {
                return Fault::new(format!("its member mask names lane {lane}, which the block does not have"));
            };
            let other_place = Some(((base + lane) as u32, other.pc));
            let what = match other.state {
                State::Done => format!("its member mask names lane {lane}, which has exited"),
                _ if other.state != State::Collect => {
                    format!("a deadlock: it waits for lane {lane}, which waits elsewhere")
                }
                _ if other.pc != me.pc => format!("it waits for lane {lane}, which waits at another instruction"),
                _ if other.mask != me.mask => {
                    format!("its member mask {:#x} differs from that of lane {lane}, {:#x}", me.mask, other.mask)
                }
                _ => continue,
            };
            return Fault { other: other_place, ..Fault::new(what) };
        }
        Fault::new("a deadlock: it waits for the other warps of its group")
    }
}

fn special_value(grid: &Grid<'_>, ctaid: [u32; 3], thread: u32, special: Special) -> u32 {
    let [x, y, _] = grid.block;
    let tid = [thread % x, thread / x % y, thread / x / y];
    let lane = thread % 32;
    let below = (1u32 << lane) - 1;
    match special {
        Special::Tid(n) => tid[usize::from(n)],
        Special::Ntid(n) => grid.block[usize::from(n)],
        Special::Ctaid(n) => ctaid[usize::from(n)],
        Special::Nctaid(n) => grid.grid[usize::from(n)],
        Special::Lane => lane,
        Special::Warp => thread / 32,
        Special::Warps => grid.threads.div_ceil(32),
        Special::Sm => ctaid[0] % 4,
        Special::Sms => 4,
        Special::LaneMask(0) => 1 << lane,
        Special::LaneMask(1) => below,
        Special::LaneMask(2) => below | 1 << lane,
        Special::LaneMask(3) => !(below | 1 << lane),
        Special::LaneMask(_) => !below,
        Special::DynamicShared => grid.dynamic_shared,
        Special::TotalShared => grid.kernel.dynamic_shared + grid.dynamic_shared,
        Special::Zero => 0,
        Special::One => 1,
    }
}
