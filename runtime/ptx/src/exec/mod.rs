//! Execution of a kernel.

mod atomics;
mod barrier;
mod block;
mod collective;
mod copies;
mod matrix;
mod race;
mod spaces;
mod step;
pub mod tensor;

use crate::inst::{Atomic, Inst, Kernel, Op, Space};
use crate::{Counts, Error, Kind, Launch, Memory, Module, Options};
use block::Block;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What stops a thread.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: Kind,
    pub what: String,
    /// Another thread and its instruction that have to do with it.
    pub other: Option<(u32, u32)>,
}

impl Fault {
    pub fn new(what: impl Into<String>) -> Fault {
        Fault { kind: Kind::Fault, what: what.into(), other: None }
    }

    pub fn of(kind: Kind, what: impl Into<String>) -> Fault {
        Fault { kind, what: what.into(), other: None }
    }
}

/// What all blocks of a launch share.
pub struct Grid<'a> {
    pub kernel: &'a Kernel,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub threads: u32,
    pub dynamic_shared: u32,
    pub params: Vec<u8>,
    /// Allocations, ascending.
    pub ranges: Vec<(u64, u64)>,
    pub races: bool,
    pub limit: u64,
    /// Which warp and which lane of a warp goes first.
    pub warp_order: Vec<u32>,
    pub lane_order: Vec<u32>,
}

/// A launch of more threads than this is worth several cores.
const WORTH_CORES: u64 = 64;

/// Runs a kernel to its end.
pub fn launch(module: &Module, memory: &Memory, launch: &Launch<'_>, options: &Options) -> Result<Counts, Error> {
    let grid = prepare(module, memory, launch, options)?;
    let blocks = launch.grid.iter().map(|n| u64::from(*n)).product::<u64>();
    let next = AtomicU64::new(0);
    let outcome = Mutex::new((Counts::default(), None::<(u64, Error)>));
    let work = || {
        let mut block = Block::new(&grid);
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= blocks {
                break;
            }
            if let Err(error) = block.run(index) {
                // Blocks start in ascending order, so that all lower ones run to their ends and the lowest failure wins.
                next.store(blocks, Ordering::Relaxed);
                let mut outcome = outcome.lock().unwrap_or_else(|e| e.into_inner());
                if outcome.1.as_ref().is_none_or(|(lowest, _)| index < *lowest) {
                    outcome.1 = Some((index, error));
                }
                break;
            }
        }
        outcome.lock().unwrap_or_else(|e| e.into_inner()).0 += block.counts();
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let cores = if options.workers == 0 { cores } else { options.workers.min(cores) };
    // What atomic operations of several blocks leave depends on their order: such blocks run one after the other.
    let ordered = |i: &Inst| matches!(i.op, Op::Atomic(Atomic { space, .. }) if space != Space::Shared);
    let workers = if grid.kernel.code.iter().any(ordered) { 1 } else { (cores as u64).min(blocks) };
    if workers <= 1 || blocks.saturating_mul(grid.threads.into()) <= WORTH_CORES {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 1..workers {
                // A thread that cannot be started is one helper less.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
    }
    match outcome.into_inner().unwrap_or_else(|e| e.into_inner()) {
        (_, Some((_, error))) => Err(error),
        (counts, None) => Ok(counts),
    }
}

/// Most bytes of shared memory that a block may have.
pub const MOST_SHARED: u32 = 232_448;

fn prepare<'a>(module: &'a Module, memory: &Memory, launch: &Launch<'_>, options: &Options) -> Result<Grid<'a>, Error> {
    let wrong = |what: String| Error { kind: Kind::Launch, message: format!("kernel {}: {what}", launch.kernel) };
    let kernel = module.kernel(launch.kernel).ok_or_else(|| wrong("there is no such kernel".into()))?;
    let [x, y, z] = launch.block;
    let threads = u64::from(x) * u64::from(y) * u64::from(z);
    if threads == 0 || threads > 1024 {
        return Err(wrong(format!("a block of {threads} threads")));
    }
    let [gx, gy, gz] = launch.grid;
    if gx == 0 || gy == 0 || gz == 0 || gx > 0x7FFF_FFFF || gy > 65535 || gz > 65535 {
        return Err(wrong(format!("a grid of {gx} by {gy} by {gz} blocks")));
    }
    if kernel.required_threads.is_some_and(|required| required != launch.block) {
        return Err(wrong(format!("the block {:?} is not the required one", launch.block)));
    }
    let product = |n: [u32; 3]| n.iter().map(|n| u64::from(*n)).product::<u64>();
    if kernel.max_threads.is_some_and(|most| threads > product(most)) {
        return Err(wrong(format!("{threads} threads are more than the kernel allows")));
    }
    if u64::from(kernel.dynamic_shared) + u64::from(launch.shared_bytes) > MOST_SHARED.into() {
        return Err(wrong("too much shared memory".into()));
    }
    if launch.params.len() != kernel.params.len() {
        return Err(wrong(format!("{} parameters instead of {}", launch.params.len(), kernel.params.len())));
    }
    let mut params = vec![0; kernel.param_bytes as usize];
    for (param, bytes) in kernel.params.iter().zip(launch.params) {
        if bytes.len() != param.size as usize {
            return Err(wrong(format!("the parameter {} has {} bytes, not {}", param.name, param.size, bytes.len())));
        }
        params[param.offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    let mut ranges = memory.ranges().to_vec();
    ranges.extend(module.ranges());
    ranges.sort_unstable();
    let threads = threads as u32;
    Ok(Grid {
        kernel,
        grid: launch.grid,
        block: launch.block,
        threads,
        dynamic_shared: launch.shared_bytes,
        params,
        ranges,
        races: options.races,
        limit: if options.limit == 0 { u64::MAX } else { options.limit },
        warp_order: order(threads.div_ceil(32), options.seed),
        lane_order: order(32, options.seed),
    })
}

/// The numbers below `count`: ascending for seed 0, descending for 1, shuffled for others.
fn order(count: u32, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    match seed {
        0 => {}
        1 => order.reverse(),
        _ => {
            let mut state = seed | 1;
            for at in (1..order.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                order.swap(at, (state >> 33) as usize % (at + 1));
            }
        }
    }
    order
}
