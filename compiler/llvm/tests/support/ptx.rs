//! Kernels as PTX, run by the interpreter of PTX.

use super::{Bytes, Random};
use tessera_ir::schedule::Schedule;
use tessera_llvm::Header;
use tessera_llvm::nvptx::{self, GpuTarget};
use tessera_ptx::{Launch, Memory, Options};
use tessera_tile::Operand;

/// Runs all kernels of a schedule over `tensors` (inputs, then roots), with threads in some order.
pub fn run(schedule: &Schedule, tensors: &[&Bytes], random: &mut Random) {
    let lowered = tessera_tile::lower(schedule).unwrap_or_else(|e| panic!("{e}"));
    let temps: Vec<Bytes> = lowered.temps.iter().map(|n| Bytes::new(*n as usize)).collect();
    let (major, minor) = [(8, 0), (9, 0), (10, 0)][random.below(3) as usize];
    let target = GpuTarget::of_capability(major, minor);
    for step in &lowered.steps {
        let text = nvptx::compile(&step.kernel, &target).unwrap_or_else(|e| panic!("{e}"));
        let fused = |l: &&str| l.split_whitespace().next().is_some_and(is_loose);
        if let Some(line) = text.lines().find(fused) {
            panic!("`{line}` leaves its rounding open\n{text}");
        }
        let header: Header = text.parse().unwrap_or_else(|e| panic!("{e}"));
        let module = tessera_ptx::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let groups_of_block = u64::from(header.block / header.group);
        // Some launches have fewer groups than points.
        let blocks = step.kernel.grid.div_ceil(groups_of_block).clamp(1, 1 + random.below(5));
        let groups = blocks * groups_of_block;
        let scratch = Bytes::new((header.scratch * groups) as usize);
        let records = Bytes::new(32 * (groups as usize + 1));
        let operands = step.operands.iter().map(|o| match o {
            Operand::Tensor(n) => tensors[*n as usize],
            Operand::Temp(n) => &temps[*n as usize],
        });
        let all: Vec<&Bytes> = operands.chain([&scratch, &records]).collect();
        let mut memory = Memory::new();
        let mut words: Vec<[u8; 8]> = vec![];
        let mut known = vec![];
        for bytes in &all {
            let address = bytes.as_ptr() as u64;
            if bytes.len > 0 && !known.contains(&address) {
                known.push(address);
                // SAFETY: memory of the tests that outlives the launch, which alone uses it.
                unsafe { memory.register(address, bytes.len as u64) };
            }
            words.push(address.to_le_bytes());
        }
        words.extend([0, step.kernel.grid, 1].map(u64::to_le_bytes));
        let params: Vec<&[u8]> = words.iter().map(<[u8; 8]>::as_slice).collect();
        let launch = Launch {
            kernel: &step.kernel.name,
            grid: [blocks as u32, 1, 1],
            block: [header.block, 1, 1],
            shared_bytes: header.shared as u32,
            params: &params,
        };
        let options = Options { seed: random.below(4), races: true, workers: 1, limit: 0 };
        if let Err(e) = tessera_ptx::launch(&module, &memory, &launch, &options) {
            panic!("{e}\n{}\n{text}", tessera_ir::tile::text::print(&step.kernel));
        }
        assert!(records.slice().iter().all(|b| *b == 0));
    }
}

/// Whether an instruction may be contracted with another, or rounds otherwise than to nearest.
fn is_loose(op: &str) -> bool {
    let mut parts = op.split('.');
    let name = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let float = rest.iter().any(|p| ["f32", "f64", "f16", "bf16"].contains(p));
    let rounds = ["add", "sub", "mul", "mad", "fma", "div", "sqrt", "rcp"].contains(&name);
    float && rounds && (!rest.contains(&"rn") || rest.contains(&"ftz") || rest.contains(&"approx"))
}
