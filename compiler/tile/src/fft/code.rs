//! Writes straight lines and loops of a kernel over f32 vectors.

use super::DTYPE;
use std::collections::HashMap;
use tessera_base::bug;
use tessera_ir::index::{Index, Var};
use tessera_ir::tile::{Access, Buf, Def, FIRST_LOOP, For, Kernel, LANE, Op, POINT, Space, Val};
use tessera_ops::fft::codelet::Arith;
use tessera_ops::map::MapOp;
use tessera_ops::prim::Scalar;
use tessera_ops::scalar::Kind;

pub struct Code {
    pub kernel: Kernel,
    frames: Vec<Vec<Op>>,
    constants: HashMap<u32, Val>,
    pub lanes: u32,
}

impl Code {
    pub fn new(name: &str, lanes: u32) -> Code {
        let kernel = Kernel { name: name.to_string(), grid: 1, grain: 1, ..Kernel::default() };
        Code { kernel, frames: vec![vec![]], constants: HashMap::new(), lanes }
    }

    pub fn buffer(&mut self, name: &str, elems: u64, space: Space) -> u32 {
        self.kernel.bufs.push(Buf { name: name.to_string(), dtype: DTYPE, elems, space });
        self.kernel.bufs.len() as u32 - 1
    }

    /// Inclusive bounds of a variable.
    pub fn range(&self, v: Var) -> (i64, i64) {
        match v {
            POINT => (0, self.kernel.grid.saturating_sub(1) as i64),
            LANE => (0, i64::from(self.lanes) - 1),
            v => match self.kernel.vars.get((v.0 - FIRST_LOOP) as usize) {
                Some(last) => (0, *last),
                None => bug!("the variable {} is that of no loop", v.0),
            },
        }
    }

    fn push(&mut self, op: Op) {
        let last = self.frames.len() - 1;
        self.frames[last].push(op);
    }

    fn define(&mut self, def: Def, lanes: u32) -> Val {
        let out = self.kernel.push(Kind::F32, lanes);
        self.push(Op::Def { out, def });
        out
    }

    /// Opens a loop over `lo..hi`; `None` where there is at most one position.
    pub fn open(&mut self, lo: u64, hi: u64) -> Option<(Var, Index)> {
        if lo + 1 >= hi {
            return None;
        }
        self.kernel.vars.push(hi as i64 - 1);
        let var = Var(FIRST_LOOP + self.kernel.vars.len() as u32 - 1);
        self.frames.push(vec![]);
        Some((var, Index::var(var)))
    }

    /// Closes the innermost loop.
    pub fn close(&mut self, var: Var, lo: u64, hi: u64) {
        let Some(body) = self.frames.pop() else { bug!("a loop ends that was not begun") };
        let (lo, hi) = (vec![Index::constant(lo as i64)], vec![Index::constant(hi as i64)]);
        self.push(Op::For(For { var, lo, hi, step: 1, carried: vec![], body }));
    }

    /// One element for all lanes.
    pub fn load_one(&mut self, buf: u32, at: Index) -> Val {
        self.define(Def::Load(Access { buf, at, valid: 1, guards: vec![] }), 1)
    }

    /// A vector from `at`, which mentions the lane where there are several; zeros from `valid` on.
    pub fn load(&mut self, buf: u32, at: Index, valid: u32) -> Val {
        self.define(Def::Load(Access { buf, at, valid, guards: vec![] }), self.lanes)
    }

    pub fn store(&mut self, buf: u32, at: Index, value: Val, valid: u32) {
        let to = Access { buf, at, valid, guards: vec![] };
        self.push(Op::Store { to, by: vec![], value, lanes: self.lanes, stream: false });
    }

    /// Zeros in all lanes.
    pub fn zeros(&mut self) -> Val {
        let zero = Scalar::F(0.0);
        self.define(Def::Const(zero), self.lanes)
    }

    /// A square of lanes turned over.
    pub fn transpose(&mut self, from: Vec<Val>) -> Vec<Val> {
        let to: Vec<Val> = from.iter().map(|_| self.kernel.push(Kind::F32, self.lanes)).collect();
        self.push(Op::Transpose { from, to: to.clone() });
        to
    }

    pub fn finish(mut self) -> Kernel {
        self.kernel.body = self.frames.swap_remove(0);
        self.kernel
    }

    fn map(&mut self, op: MapOp, args: &[Val]) -> Val {
        let lanes = args.iter().map(|a| self.kernel.ty(*a).lanes).max().unwrap_or(1);
        self.define(Def::Map { op, dtype: DTYPE, args: args.to_vec() }, lanes)
    }
}

impl Arith for Code {
    type V = Val;

    /// Constants stand before all loops.
    fn constant(&mut self, x: f32) -> Val {
        if let Some(known) = self.constants.get(&x.to_bits()) {
            return *known;
        }
        let out = self.kernel.push(Kind::F32, 1);
        self.frames[0].push(Op::Def { out, def: Def::Const(Scalar::F(f64::from(x))) });
        self.constants.insert(x.to_bits(), out);
        out
    }

    fn neg(&mut self, a: Val) -> Val {
        self.map(MapOp::neg, &[a])
    }

    fn add(&mut self, a: Val, b: Val) -> Val {
        self.map(MapOp::add, &[a, b])
    }

    fn sub(&mut self, a: Val, b: Val) -> Val {
        self.map(MapOp::sub, &[a, b])
    }

    fn mul(&mut self, a: Val, b: Val) -> Val {
        self.map(MapOp::mul, &[a, b])
    }

    fn fma(&mut self, a: Val, b: Val, c: Val) -> Val {
        self.map(MapOp::fma, &[a, b, c])
    }
}
