//! Kernels whose lanes are threads, as a launch of a GPU runs them.
//!
//! A kernel takes the addresses of its operands, scratch in global memory and where a group records what stopped it, then one
//! word for each host scalar, the first point and the one behind the last, and the number of the launch. Where memory has no
//! addresses that a host can count with, an operand is the piece that it lies in, and words in front of the others say how far
//! behind its start.

use crate::dialect::Dialect;
use crate::emit::Emitter;
use crate::group::{Group, WARP, exchanged, lanes};
use crate::instr::{Builder, V};
use crate::threads::{exchange, place as place_of};
use crate::{HostTarget, LlvmError};
use std::fmt;
use std::str::FromStr;
use tessera_base::bug;
use tessera_ir::tile::{Kernel, Op, Space};

/// Threads of a block, where it has several groups.
const BLOCK: u32 = 128;
/// Bytes that the threads of a block may share without asking for more.
const SHARED_MAX: u64 = 48 << 10;

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
    fn of(kernel: &Kernel, group: u32) -> Placed {
        let groups = u64::from(BLOCK / group.min(BLOCK));
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
    /// Of a kernel for a kind of GPU.
    ///
    /// # Errors
    /// A block of products is only for NVIDIA's.
    pub fn of(kernel: &Kernel, dialect: Dialect) -> Result<Header, LlvmError> {
        let operands = kernel.bufs.iter().filter(|b| b.space != Space::Scratch).count() as u32;
        if kernel.warps > 0 {
            let (placed, threads) = (Placed::of_block(kernel), WARP * kernel.warps);
            let (scratch, shared) = (placed.global_bytes, placed.shared_bytes);
            let words = kernel.scalars.len() as u32;
            if dialect != Dialect::Nvptx {
                return Err(LlvmError::internal("products on matrix units are for NVIDIA's GPUs"));
            }
            return Ok(Header { group: threads, block: threads, operands, words, scratch, shared });
        }
        let group = lanes(kernel).min(WARP);
        Ok(Header {
            group,
            // Barriers of memory are for a whole block.
            block: if dialect == Dialect::Nvptx { BLOCK } else { group },
            operands,
            shared: 0,
            words: kernel.scalars.len() as u32,
            scratch: Placed::of(kernel, group).global_bytes,
        })
    }

    /// As the first line of a text whose comments begin with `mark`.
    pub fn comment(&self, mark: &str) -> String {
        format!("{mark} {self}")
    }

    /// That a launch takes all parameters, in so many bytes.
    ///
    /// # Errors
    /// There are more.
    pub fn fits(&self, bytes: u32) -> Result<(), LlvmError> {
        match parameter_bytes(self.operands, self.words) > bytes {
            true => Err(LlvmError::internal(format!("{} operands are more than a launch takes", self.operands))),
            false => Ok(()),
        }
    }
}

const BEGINS: &str = "tessera";

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
        let first = text.lines().next().unwrap_or_default();
        let line = first.trim_start_matches(['/', ';', ' ']).strip_prefix(BEGINS).unwrap_or_default();
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
        let whole = header.group.is_power_of_two() && group && header.block.is_multiple_of(header.group);
        match whole && header.block <= 1024 {
            true => Ok(header),
            false => Err(LlvmError::internal("a kernel asks for blocks that there are not")),
        }
    }
}

/// Writes the kernel into a fresh module.
pub fn threads(kernel: &Kernel, target: &HostTarget, dialect: Dialect, header: Header) -> Result<Builder, LlvmError> {
    let (operands, words) = (header.operands as usize, header.words as usize);
    let offsets = if dialect.counts_from_pieces() { operands } else { 0 };
    // Words lie between the operands and what comes from the runtime; addresses are first, so that they are one run.
    let b = Builder::kernel(&kernel.name, dialect, operands + 2, offsets + words + 3);
    let mut e = Emitter::of(b, kernel, target);
    let entry = e.b.block();
    e.b.position(entry);
    e.exchanged = exchanged(kernel);
    let groups = place(&mut e, dialect, header);
    let param = |e: &Emitter, n: usize| e.b.param(n as u32);
    let (scratch, faults) = (param(&e, operands), param(&e, operands + 1));
    let starts: Vec<V> = (0..operands)
        .map(|n| match offsets {
            0 => param(&e, n),
            _ => e.b.offset(param(&e, n), param(&e, operands + 2 + n)),
        })
        .collect();
    bases(&mut e, header, &starts, scratch);
    let first_word = operands + 2 + offsets;
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
fn place(e: &mut Emitter, dialect: Dialect, header: Header) -> V {
    let b = &e.b;
    let int = |n: u32| b.const_int(b.int(32), i64::from(n), 1);
    let (i64, size) = (b.int(64), header.group.min(WARP));
    let [thread, block, blocks] = place_of(dialect, b);
    let of_block = i64::from(header.block / header.group);
    let lane = b.and(thread, int(size - 1));
    let in_warp = b.and(thread, int(WARP - 1));
    let all = int(u32::MAX >> (WARP - size));
    let members = b.shl(all, b.sub(in_warp, lane));
    let in_block = b.zext(b.udiv(thread, int(header.group)), i64);
    let number = b.add(b.mul(b.zext(block, i64), b.i64(of_block)), in_block);
    let groups = b.mul(b.zext(blocks, i64), b.i64(of_block));
    let (lane, warp, thread) = (b.zext(lane, i64), b.zext(b.udiv(thread, int(WARP)), i64), b.zext(thread, i64));
    let exchange = exchange(b, dialect, size);
    e.b.group = Some(Group { dialect, size, lane, in_warp, members, exchange, number, warp, thread });
    groups
}

/// Where every buffer begins. Scratch is a part for each group of what threads of a block share, or of what the launch brings.
fn bases(e: &mut Emitter, header: Header, starts: &[V], scratch: V) {
    let group = e.group();
    let groups = header.block / header.group;
    let block = e.kernel.warps > 0;
    let placed = if block { Placed::of_block(e.kernel) } else { Placed::of(e.kernel, header.group) };
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
    let mut starts = starts.iter();
    for (i, buf) in e.kernel.bufs.iter().enumerate() {
        let base = match (buf.space, placed.shared[i], own) {
            (Space::Scratch, Some(offset), Some(own)) => e.b.offset(own, e.b.i64(offset as i64)),
            (Space::Scratch, ..) => e.b.offset(far, e.b.i64(placed.global[i] as i64)),
            _ => match starts.next() {
                Some(start) => *start,
                None => bug!("a kernel has more operands than were counted"),
            },
        };
        e.bases.push(base);
    }
}

/// Bytes of the parameters of a launch with so many operands and words of host scalars.
pub fn parameter_bytes(operands: u32, words: u32) -> u32 {
    operands.saturating_add(words).saturating_add(5).saturating_mul(8)
}
