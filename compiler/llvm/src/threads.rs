//! How the threads of a group reach each other on each kind of GPU.
//!
//! NVIDIA's shuffle registers within a warp. Elsewhere what a group exchanges goes through memory that it shares, between two
//! barriers: right on every device, whatever the width at which it runs threads together, and a barrier of a group that is not
//! wider than that costs next to nothing.

use crate::dialect::{Dialect, Whose};
use crate::emit::Emitter;
use crate::group::WARP;
use crate::instr::{AddressSpace, Builder, IntPred, V};
use tessera_ops::scalar::Kind;

/// The thread's number in its block, the block's number, and how many blocks there are: i32 each.
pub fn place(dialect: Dialect, b: &Builder) -> [V; 3] {
    let (i32, zero) = (b.int(32), b.const_int(b.int(32), 0, 1));
    match dialect {
        Dialect::Nvptx => {
            ["tid", "ctaid", "nctaid"].map(|name| b.intrinsic(&format!("llvm.nvvm.read.ptx.sreg.{name}.x"), &[], &[]))
        }
        Dialect::Spirv { .. } => ["_Z12get_local_idj", "_Z12get_group_idj", "_Z14get_num_groupsj"]
            .map(|name| b.trunc(b.external(name, Some(b.int(64)), &[zero]), i32)),
        Dialect::Amdgpu => {
            // The first word behind the operands, by the fifth version of the object format.
            let hidden = b.intrinsic("llvm.amdgcn.implicitarg.ptr", &[], &[]);
            [
                b.intrinsic("llvm.amdgcn.workitem.id.x", &[], &[]),
                b.intrinsic("llvm.amdgcn.workgroup.id.x", &[], &[]),
                b.load(i32, hidden, 4),
            ]
        }
    }
}

/// All threads of the block come here, and what each has left in memory is there for all.
fn meet(dialect: Dialect, b: &Builder) {
    match dialect {
        Dialect::Nvptx => {
            let zero = b.const_int(b.int(32), 0, 1);
            b.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", &[], &[zero]);
        }
        Dialect::Spirv { .. } => {
            // The threads of a work group; acquires and releases its memory and that of the device.
            const WORKGROUP: i64 = 2;
            const SEMANTICS: i64 = 0x8 | 0x100 | 0x200;
            let args = [WORKGROUP, WORKGROUP, SEMANTICS].map(|n| b.const_int(b.int(32), n, 1));
            b.external("_Z22__spirv_ControlBarrierjjj", None, &args);
        }
        Dialect::Amdgpu => {
            b.fence_of_block(false);
            b.intrinsic("llvm.amdgcn.s.barrier", &[], &[]);
            b.fence_of_block(true);
        }
    }
}

impl Emitter<'_> {
    /// All threads of the block come here, and what each has left in memory is there for all.
    pub fn meet_all(&self) {
        meet(self.group().dialect, &self.b);
    }

    /// The same of the threads of a group.
    pub fn meet_group(&self) {
        let g = self.group();
        match g.dialect {
            _ if g.size == 1 => {}
            Dialect::Nvptx => {
                self.b.intrinsic("llvm.nvvm.bar.warp.sync", &[], &[g.members]);
            }
            // There a block is one group.
            _ => self.meet_all(),
        }
    }

    /// The value of another lane.
    pub fn of_lane(&self, v: V, kind: Kind, whose: Whose) -> V {
        match self.group().dialect {
            _ if self.group().size == 1 => v,
            Dialect::Nvptx => self.shuffled(v, kind, whose),
            _ => self.by_memory(v, kind, whose),
        }
    }

    fn word(&self, n: i64) -> V {
        self.b.const_int(self.b.int(32), n, 1)
    }

    /// A shuffle within the group of a value of any kind: words of 32 bits.
    fn shuffled(&self, v: V, kind: Kind, whose: Whose) -> V {
        let g = self.group();
        let (name, by) = match whose {
            Whose::After(n) => ("llvm.nvvm.shfl.sync.down.i32", n),
            Whose::Across(bits) => ("llvm.nvvm.shfl.sync.bfly.i32", bits),
            Whose::First => ("llvm.nvvm.shfl.sync.idx.i32", 0),
        };
        // Segments of as many threads as the group has; no bound inside of them.
        let within = self.word(i64::from((WARP - g.size) << 8 | 0x1f));
        let one = |word: V| self.b.intrinsic(name, &[], &[g.members, word, self.word(by.into()), within]);
        let (i32, i64) = (self.b.int(32), self.b.int(64));
        let ty = self.b.kind(kind, 1);
        match kind {
            Kind::F32 | Kind::I32 => self.b.bitcast(one(self.b.bitcast(v, i32)), ty),
            Kind::F64 | Kind::I64 => {
                let bits = self.b.bitcast(v, i64);
                let high = self.b.trunc(self.b.lshr(bits, self.b.i64(32)), i32);
                let [low, high] = [self.b.trunc(bits, i32), high].map(|w| self.b.zext(one(w), i64));
                self.b.bitcast(self.b.or(low, self.b.shl(high, self.b.i64(32))), ty)
            }
            Kind::I16 | Kind::I8 | Kind::U8 | Kind::Bool => self.b.trunc(one(self.b.zext(v, i32)), ty),
        }
    }

    /// Where lane `lane` leaves what it exchanges.
    fn slot_of_lane(&self, lane: V) -> V {
        self.b.offset(self.group().exchange, self.b.mul(lane, self.b.i64(8)))
    }

    fn by_memory(&self, v: V, kind: Kind, whose: Whose) -> V {
        let g = self.group();
        let ty = self.b.kind(kind, 1);
        let (stored, bytes) = match kind {
            Kind::Bool => (self.b.int(8), 1),
            Kind::I8 | Kind::U8 => (ty, 1),
            Kind::I16 => (ty, 2),
            Kind::F32 | Kind::I32 => (ty, 4),
            Kind::F64 | Kind::I64 => (ty, 8),
        };
        let last = self.b.i64(i64::from(g.size) - 1);
        let from = match whose {
            Whose::After(n) => self.b.and(self.b.add(g.lane, self.b.i64(n.into())), last),
            Whose::Across(bits) => self.b.xor(g.lane, self.b.i64(bits.into())),
            Whose::First => self.b.i64(0),
        };
        let put = if kind == Kind::Bool { self.b.zext(v, stored) } else { v };
        self.b.store(put, self.slot_of_lane(g.lane), bytes, false);
        self.meet_group();
        let got = self.b.load(stored, self.slot_of_lane(from), bytes);
        self.meet_group();
        if kind == Kind::Bool { self.b.trunc(got, ty) } else { got }
    }

    /// Whether any lane is `bad`, and whether this is the first that is.
    pub fn first_bad(&self, bad: V) -> (V, V) {
        let g = self.group();
        if g.size == 1 {
            return (bad, bad);
        }
        if g.dialect == Dialect::Nvptx {
            let votes = self.b.intrinsic("llvm.nvvm.vote.ballot.sync", &[], &[g.members, bad]);
            let any = self.b.icmp(IntPred::LLVMIntNE, votes, self.word(0));
            let never = self.b.const_int(self.b.int(1), 0, 1);
            let first = self.b.intrinsic("llvm.cttz", &[self.b.int(32)], &[votes, never]);
            return (any, self.b.icmp(IntPred::LLVMIntEQ, first, g.in_warp));
        }
        let none = self.word(g.size.into());
        let (clear, on, tell, join) = (self.b.block(), self.b.block(), self.b.block(), self.b.block());
        let leads = self.b.icmp(IntPred::LLVMIntEQ, g.lane, self.b.i64(0));
        self.b.branch(leads, clear, on);
        self.b.position(clear);
        self.b.store(none, g.exchange, 4, false);
        self.b.jump(on);
        self.b.position(on);
        self.meet_group();
        let own = self.b.trunc(g.lane, self.b.int(32));
        self.b.branch(bad, tell, join);
        self.b.position(tell);
        self.b.lower_in_block(g.exchange, own);
        self.b.jump(join);
        self.b.position(join);
        self.meet_group();
        let first = self.b.load(self.b.int(32), g.exchange, 4);
        self.meet_group();
        (self.b.icmp(IntPred::LLVMIntULT, first, none), self.b.icmp(IntPred::LLVMIntEQ, first, own))
    }

    /// Whether no later lane that takes part has the same number. Numbers are not negative.
    pub fn last_of_equals(&self, held: Option<V>, at: V) -> V {
        let g = self.group();
        let yes = self.b.const_int(self.b.int(1), 1, 1);
        // No element has this number.
        let key = held.map_or(at, |h| self.b.select(h, at, self.b.i64(-1)));
        if g.size == 1 {
            return yes;
        }
        if g.dialect == Dialect::Nvptx {
            let equal = self.b.intrinsic("llvm.nvvm.match.any.sync.i64", &[], &[g.members, key]);
            let later = self.b.lshr(self.b.lshr(equal, g.in_warp), self.word(1));
            return self.b.icmp(IntPred::LLVMIntEQ, later, self.word(0));
        }
        self.b.store(key, self.slot_of_lane(g.lane), 8, false);
        self.meet_group();
        let later = (1..i64::from(g.size)).fold(self.b.not(yes), |found, other| {
            let other = self.b.i64(other);
            let same = self.b.icmp(IntPred::LLVMIntEQ, self.b.load(self.b.int(64), self.slot_of_lane(other), 8), key);
            let behind = self.b.icmp(IntPred::LLVMIntULT, g.lane, other);
            self.b.or(found, self.b.and(same, behind))
        });
        self.meet_group();
        self.b.not(later)
    }
}

/// Memory in which a group exchanges, where it needs any.
pub fn exchange(b: &Builder, dialect: Dialect, size: u32) -> V {
    match dialect {
        Dialect::Nvptx => b.zero(b.ptr_in(AddressSpace::Shared)),
        _ => b.shared_bytes(8 * u64::from(size)),
    }
}
