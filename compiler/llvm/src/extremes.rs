//! Running maxima and minima of floats, carried by a loop as integers in the same order.
//!
//! A maximum that keeps NaN and tells −0 from +0 takes six instructions on x86, most of which wait
//! for the one before. Between integers it is one. Their order is that of the floats once the bits
//! of negative numbers are turned round; a shift then takes the NaN of the sign that would lose
//! round to the side that wins.

use crate::emit::Emitter;
use crate::instr::{IntPred, RealPred, V};
use tessera_ir::tile::{Carry, Def, Kernel, Op, Val};
use tessera_ops::prim::Reduction;
use tessera_ops::scalar::Kind;

/// A running extreme: which, of what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extreme {
    kind: Reduction,
    of: Kind,
    lanes: u32,
}

/// How often each value is read.
pub fn uses(kernel: &Kernel) -> Vec<u32> {
    fn count(ops: &[Op], out: &mut [u32]) {
        for op in ops {
            op.each_read(&mut |v| out[v.0 as usize] += 1);
            if let Op::For(f) = op {
                count(&f.body, out);
            }
        }
    }
    let mut out = vec![0; kernel.values.len()];
    count(&kernel.body, &mut out);
    out
}

impl Emitter<'_> {
    /// What `c` carries, where it is an extreme that the loop only reads to fold another value in.
    pub fn extreme(&self, c: &Carry, body: &[Op]) -> Option<Extreme> {
        let ty = self.kernel.ty(c.inner);
        let once = |v: Val| self.uses.get(v.0 as usize) == Some(&1);
        let here = cfg!(target_arch = "x86_64") && self.b.group.is_none();
        if !here || !ty.kind.is_float() || !once(c.inner) || !once(c.next) {
            return None;
        }
        body.iter().find_map(|op| match op {
            Op::Def { out, def: Def::Fold { kind, acc, .. } } if *out == c.next && *acc == c.inner => {
                let extreme = Extreme { kind: *kind, of: ty.kind, lanes: ty.lanes };
                matches!(kind, Reduction::Max | Reduction::Min).then_some(extreme)
            }
            _ => None,
        })
    }

    /// The better of a carried extreme and a float.
    pub fn better(&self, x: Extreme, held: V, value: V) -> V {
        let value = self.ordered(x, value);
        let better = if x.kind == Reduction::Max { IntPred::LLVMIntSGT } else { IntPred::LLVMIntSLT };
        self.b.select(self.b.icmp(better, held, value), held, value)
    }

    /// A float as an integer: larger where it is larger, NaN beyond everything.
    pub fn ordered(&self, x: Extreme, v: V) -> V {
        let bits = self.b.bitcast(v, self.b.vec(self.b.int(x.of.bits()), x.lanes));
        let turned = self.turn(x, bits);
        let shift = self.int(x, x.nan());
        if x.kind == Reduction::Max { self.b.sub(turned, shift) } else { self.b.add(turned, shift) }
    }

    /// The float of such an integer; any NaN is the usual one.
    pub fn float_of(&self, x: Extreme, v: V) -> V {
        let shift = self.int(x, x.nan());
        let turned = if x.kind == Reduction::Max { self.b.add(v, shift) } else { self.b.sub(v, shift) };
        let float = self.b.bitcast(self.turn(x, turned), self.b.kind(x.of, x.lanes));
        let nan = self.b.const_float(x.of, f64::NAN, x.lanes);
        self.b.select(self.b.fcmp(RealPred::LLVMRealUNO, float, float), nan, float)
    }

    /// Turns the order of negative numbers round, or back.
    fn turn(&self, x: Extreme, bits: V) -> V {
        let width = i64::from(x.of.bits());
        let negative = self.b.ashr(bits, self.int(x, width - 1));
        self.b.xor(bits, self.b.and(negative, self.int(x, i64::MAX >> (64 - width))))
    }

    fn int(&self, x: Extreme, value: i64) -> V {
        let ty = self.b.int(x.of.bits());
        self.b.const_int(ty, value, x.lanes)
    }
}

impl Extreme {
    /// How many NaN there are of each sign.
    fn nan(self) -> i64 {
        let digits = if self.of == Kind::F64 { 52 } else { 23 };
        (1 << digits) - 1
    }
}
