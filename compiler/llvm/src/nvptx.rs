//! Kernels for NVIDIA's GPUs: PTX, which the driver or `ptxas` makes machine code of.
//!
//! A kernel takes the addresses of its operands, one word for each host scalar, the first point and the one behind the last,
//! scratch in global memory, where a group records what stopped it, and the number of the launch. What who launches it has to
//! know besides is the first line of the text ([`Header`]).

use crate::emit::Emitter;
use crate::group::{Group, WARP, exchanged, lanes};
use crate::instr::{Builder, V};
use crate::object;
use crate::{HostTarget, LlvmError, lazy};
use inkwell::targets::FileType;
use std::fmt;
use std::str::FromStr;
use tessera_ir::tile::{Kernel, Op, Space};

/// Threads of a block.
const BLOCK: u32 = 128;
/// Bytes that the threads of a block may share without asking for more.
const SHARED_MAX: u64 = 48 << 10;
/// Bytes of parameters that a kernel may have.
const PARAMS_MAX: usize = 4096;

/// A GPU, as LLVM and `ptxas` name its architecture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GpuTarget {
    target: HostTarget,
}

impl GpuTarget {
    /// Of compute capability `major.minor`: the newest architecture that LLVM knows and that it runs code of.
    pub fn of_capability(major: u32, minor: u32) -> GpuTarget {
        // With the version of PTX that each needs; drivers of the last years read all of them.
        const KNOWN: [(u32, &str, &str); 6] = [
            (80, "sm_80", "+ptx80"),
            (86, "sm_86", "+ptx80"),
            (89, "sm_89", "+ptx80"),
            (90, "sm_90", "+ptx80"),
            (100, "sm_100", "+ptx86"),
            (120, "sm_120", "+ptx87"),
        ];
        let known = KNOWN.iter().rev().find(|(n, ..)| *n <= 10 * major + minor).unwrap_or(&KNOWN[0]);
        let target = HostTarget { triple: "nvptx64-nvidia-cuda".into(), cpu: known.1.into(), features: known.2.into() };
        GpuTarget { target }
    }

    /// `sm_90`.
    pub fn arch(&self) -> &str {
        &self.target.cpu
    }

    /// The same for LLVM.
    pub fn llvm(&self) -> &HostTarget {
        &self.target
    }

    /// What besides a kernel decides its text.
    pub fn fingerprint(&self) -> String {
        format!("llvm22.1;nvptx;{};{}", self.target.cpu, self.target.features)
    }
}

/// What a launch of a kernel has to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Threads of a point.
    pub group: u32,
    /// Threads of a block.
    pub block: u32,
    /// Addresses of operands.
    pub operands: u32,
    /// Words of host scalars.
    pub words: u32,
    /// Bytes of global memory that each group of a launch needs.
    pub scratch: u64,
    /// Bytes that a launch adds to what threads of a block share.
    pub shared: u64,
}

/// Where the scratch of a group lies: by buffer the offset in shared memory, or else in global memory, and bytes of both.
struct Placed {
    shared: Vec<Option<u64>>,
    global: Vec<u64>,
    shared_bytes: u64,
    global_bytes: u64,
}

impl Placed {
    /// Of a point of several warps: the sums of its block, of which the launch says how many there are, and the rest.
    fn of_block(kernel: &Kernel) -> Placed {
        let (offsets, _) = kernel.scratch();
        let sums = kernel.body.iter().find_map(|op| if let Op::Block(b) = op { Some(b.c as usize) } else { None });
        let mut out = Placed { shared: vec![None; offsets.len()], global: offsets, shared_bytes: 0, global_bytes: 0 };
        for (i, buf) in kernel.bufs.iter().enumerate().filter(|(_, b)| b.space == Space::Scratch) {
            let bytes = (buf.elems * buf.dtype.bytes() as u64).next_multiple_of(64);
            let (total, place) = match Some(i) == sums {
                true => (&mut out.shared_bytes, out.shared[i].insert(0)),
                false => (&mut out.global_bytes, &mut out.global[i]),
            };
            *place = *total;
            *total += bytes;
        }
        out
    }

    /// The smallest buffers in shared memory, as many as there is room for in a block of so many groups.
    fn of(kernel: &Kernel, groups: u64) -> Placed {
        let (offsets, _) = kernel.scratch();
        let bytes = |i: usize| (kernel.bufs[i].elems * kernel.bufs[i].dtype.bytes() as u64).next_multiple_of(64);
        let mut order: Vec<usize> =
            (0..kernel.bufs.len()).filter(|i| kernel.bufs[*i].space == Space::Scratch).collect();
        order.sort_by_key(|i| (bytes(*i), *i));
        let mut out = Placed { shared: vec![None; offsets.len()], global: offsets, shared_bytes: 0, global_bytes: 0 };
        for i in order {
            if (out.shared_bytes + bytes(i)) * groups <= SHARED_MAX {
                out.shared[i] = Some(out.shared_bytes);
                out.shared_bytes += bytes(i);
            } else {
                out.global[i] = out.global_bytes;
                out.global_bytes += bytes(i);
            }
        }
        out
    }
}

impl Header {
    fn of(kernel: &Kernel) -> Header {
        let operands = kernel.bufs.iter().filter(|b| b.space != Space::Scratch).count() as u32;
        if kernel.warps > 0 {
            let (placed, threads) = (Placed::of_block(kernel), WARP * kernel.warps);
            let (scratch, shared) = (placed.global_bytes, placed.shared_bytes);
            let words = kernel.scalars.len() as u32;
            return Header { group: threads, block: threads, operands, words, scratch, shared };
        }
        let group = lanes(kernel).min(WARP);
        Header {
            group,
            block: BLOCK,
            operands,
            shared: 0,
            words: kernel.scalars.len() as u32,
            scratch: Placed::of(kernel, u64::from(BLOCK / group.min(BLOCK))).global_bytes,
        }
    }
}

const BEGINS: &str = "// tessera";

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Header { group, block, operands, words, scratch, shared } = self;
        write!(
            f,
            "{BEGINS} group={group} block={block} operands={operands} words={words} scratch={scratch} shared={shared}"
        )
    }
}

impl FromStr for Header {
    type Err = LlvmError;

    fn from_str(text: &str) -> Result<Header, LlvmError> {
        let line = text.lines().next().and_then(|l| l.strip_prefix(BEGINS)).unwrap_or_default();
        let field = |name: &str| {
            let value = line.split(' ').find_map(|w| w.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok());
            value.ok_or_else(|| LlvmError::internal(format!("the text of a kernel says no `{name}`")))
        };
        let small = |name: &str| {
            u32::try_from(field(name)?).map_err(|_| LlvmError::internal(format!("`{name}` of a kernel is too large")))
        };
        let header = Header {
            group: small("group")?,
            block: small("block")?,
            operands: small("operands")?,
            words: small("words")?,
            scratch: field("scratch")?,
            shared: field("shared")?,
        };
        let group = header.group <= WARP || header.group == header.block;
        let whole = header.group.is_power_of_two() && group && header.block.is_multiple_of(WARP);
        match whole && (WARP..=1024).contains(&header.block) {
            true => Ok(header),
            false => Err(LlvmError::internal("a kernel asks for blocks that there are not")),
        }
    }
}

/// The PTX of `kernel`, with `kernel.name` as its entry. Cost: as of [`crate::compile`].
///
/// # Errors
/// `E0601` without LLVM, `E0603` for code that LLVM refuses.
pub fn compile(kernel: &Kernel, target: &GpuTarget) -> Result<String, LlvmError> {
    let (header, b) = prepare(kernel, target)?;
    let machine = object::machine(&target.target)?;
    object::optimize(&b, &machine)?;
    let text = object::write(&b, &machine, FileType::Assembly)?;
    let text = String::from_utf8_lossy(&text);
    Ok(format!("{header}\n{}", text.trim_end_matches('\0')))
}

/// LLVM IR of `kernel`, as emitted or as the passes leave it. Errors: as of [`compile`].
pub fn ir(kernel: &Kernel, target: &GpuTarget, optimized: bool) -> Result<String, LlvmError> {
    let (_, b) = prepare(kernel, target)?;
    if optimized {
        object::optimize(&b, &object::machine(&target.target)?)?;
    }
    Ok(b.module().print_to_string().to_string())
}

fn prepare(kernel: &Kernel, target: &GpuTarget) -> Result<(Header, Builder), LlvmError> {
    lazy::load()?;
    let header = Header::of(kernel);
    if 8 * (header.operands + header.words + 5) as usize > PARAMS_MAX {
        return Err(LlvmError::internal(format!("{} operands are more than a launch takes", header.operands)));
    }
    let b = threads(kernel, target, header)?;
    for (key, value) in [
        ("target-cpu", target.target.cpu.as_str()),
        ("target-features", target.target.features.as_str()),
        ("denormal-fp-math", "ieee,ieee"),
        ("no-builtins", ""),
        ("nvvm.reqntid", &header.block.to_string()),
    ] {
        b.attribute(key, value);
    }
    b.flag("nounwind");
    Ok((header, b))
}

/// Writes the kernel into a fresh module.
fn threads(kernel: &Kernel, target: &GpuTarget, header: Header) -> Result<Builder, LlvmError> {
    let (operands, words) = (header.operands as usize, header.words as usize);
    // Words lie between the operands and what comes from the runtime; addresses are first, so that they are one run.
    let b = Builder::kernel(&kernel.name, operands + 2, words + 3);
    let mut e = Emitter::of(b, kernel, &target.target);
    let entry = e.b.block();
    e.b.position(entry);
    e.exchanged = exchanged(kernel);
    let groups = place(&mut e, header);
    let param = |e: &Emitter, n: usize| e.b.param(n as u32);
    let (scratch, faults) = (param(&e, operands), param(&e, operands + 1));
    bases(&mut e, header, scratch);
    let first_word = operands + 2;
    for (i, dtype) in kernel.scalars.iter().enumerate() {
        let word = param(&e, first_word + i);
        e.scalar(*dtype, word);
    }
    let behind = first_word + words;
    let (lo, hi) = (param(&e, behind), param(&e, behind + 1));
    e.faults = faults;
    e.launch = param(&e, behind + 2);
    e.points_of_group(lo, hi, groups)?;
    e.b.ret_void();
    Ok(e.b)
}

/// Which group a thread is in and which lane it is. Returns the number of groups of the launch.
fn place(e: &mut Emitter, header: Header) -> V {
    let b = &e.b;
    let read = |name: &str| b.intrinsic(&format!("llvm.nvvm.read.ptx.sreg.{name}"), &[], &[]);
    let int = |n: u32| b.const_int(b.int(32), i64::from(n), 1);
    let (i64, size) = (b.int(64), header.group.min(WARP));
    let (thread, block, blocks) = (read("tid.x"), read("ctaid.x"), read("nctaid.x"));
    let of_block = i64::from(header.block / header.group);
    let lane = b.and(thread, int(size - 1));
    let in_warp = b.and(thread, int(WARP - 1));
    let all = int(u32::MAX >> (WARP - size));
    let members = b.shl(all, b.sub(in_warp, lane));
    let in_block = b.zext(b.udiv(thread, int(header.group)), i64);
    let number = b.add(b.mul(b.zext(block, i64), b.i64(of_block)), in_block);
    let groups = b.mul(b.zext(blocks, i64), b.i64(of_block));
    let (lane, warp, thread) = (b.zext(lane, i64), b.zext(b.udiv(thread, int(WARP)), i64), b.zext(thread, i64));
    e.b.group = Some(Group { size, lane, in_warp, members, number, warp, thread });
    groups
}

/// Where every buffer begins. Scratch is a part for each group of what threads of a block share, or of what the launch brings.
fn bases(e: &mut Emitter, header: Header, scratch: V) {
    let group = e.group();
    let groups = header.block / header.group;
    let block = e.kernel.warps > 0;
    let placed = if block { Placed::of_block(e.kernel) } else { Placed::of(e.kernel, u64::from(groups)) };
    let own = (placed.shared_bytes > 0).then(|| {
        if block {
            return e.b.shared_bytes(0);
        }
        let all = e.b.shared_bytes(placed.shared_bytes * u64::from(groups));
        // Numbers of groups count on from block to block, each of which has as many.
        let in_block = e.b.urem(group.number, e.b.i64(i64::from(groups)));
        e.b.offset(all, e.b.mul(in_block, e.b.i64(placed.shared_bytes as i64)))
    });
    let far = e.b.offset(scratch, e.b.mul(group.number, e.b.i64(placed.global_bytes as i64)));
    let mut operand = 0;
    for (i, buf) in e.kernel.bufs.iter().enumerate() {
        let base = match (buf.space, placed.shared[i], own) {
            (Space::Scratch, Some(offset), Some(own)) => e.b.offset(own, e.b.i64(offset as i64)),
            (Space::Scratch, ..) => e.b.offset(far, e.b.i64(placed.global[i] as i64)),
            _ => {
                operand += 1;
                e.b.param(operand - 1)
            }
        };
        e.bases.push(base);
    }
}
