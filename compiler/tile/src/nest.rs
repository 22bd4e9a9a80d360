//! Writes a kernel: nested loops, with every value placed in the outermost loop that has all
//! it depends on.

use crate::{LowerError, Operand, Step};
use std::collections::HashMap;
use tessera_abi::plan::Bounds;
use tessera_base::{DType, bug};
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::{Guard, Schedule, Store, ValueId, ValueOp};
use tessera_ir::tile::{Access, Buf, Carry, Def, FIRST_LOOP, For, Kernel, LANE, Op, POINT, Space, Val};
use tessera_ops::map::kind_of;
use tessera_ops::prim::{Reduction, Scalar};
use tessera_ops::scalar::Kind;

/// A value with the places of the axes it depends on and its valid lanes.
type Key = (ValueId, Vec<Index>, u32);

/// A loop that is being written.
#[derive(Default)]
struct Frame {
    var: Option<Var>,
    ops: Vec<Op>,
    known: HashMap<Key, Val>,
}

/// One kernel under construction.
pub struct Nest<'s> {
    pub s: &'s Schedule,
    pub kernel: Kernel,
    pub operands: Vec<Operand>,
    domains: Vec<Vec<Var>>,
    frames: Vec<Frame>,
    /// Where each axis stands, in loop variables and [`LANE`].
    places: Vec<Index>,
    /// The loop depth at which each value is defined.
    depths: Vec<usize>,
    constants: HashMap<u32, Val>,
    /// Lanes of vector values.
    pub lanes: u32,
    /// Lanes that are inside the tensor.
    pub valid: u32,
}

impl<'s> Nest<'s> {
    pub fn new(s: &'s Schedule, name: String, lanes: u32) -> Nest<'s> {
        let kernel = Kernel { name, scalars: s.scalars.clone(), grid: 1, grain: 1, ..Kernel::default() };
        let domains = s.domains();
        let places = vec![Index::default(); s.axes.len()];
        Nest {
            s,
            kernel,
            operands: vec![],
            domains,
            frames: vec![Frame::default()],
            places,
            depths: vec![],
            constants: HashMap::new(),
            lanes,
            valid: lanes,
        }
    }

    /// The buffer of tensor operand `n`, where the kernel has one.
    pub fn declared(&self, n: u32) -> Option<u32> {
        self.operands.iter().position(|o| *o == Operand::Tensor(n)).map(|i| i as u32)
    }

    /// The buffer of tensor operand `n`, added at first use.
    pub fn tensor(&mut self, n: u32) -> u32 {
        if let Some(i) = self.declared(n) {
            return i;
        }
        let o = &self.s.operands[n as usize];
        let space = if o.output { Space::Out } else { Space::In };
        self.operand(Operand::Tensor(n), Buf { name: o.name.clone(), dtype: o.dtype, elems: o.elems, space })
    }

    pub fn temp(&mut self, n: u32, dtype: DType, elems: u64) -> u32 {
        self.operand(Operand::Temp(n), Buf { name: format!("temp{n}"), dtype, elems, space: Space::Temp })
    }

    /// Operands precede scratch buffers, so all of them are declared before the first one.
    fn operand(&mut self, operand: Operand, buf: Buf) -> u32 {
        debug_assert_eq!(self.operands.len(), self.kernel.bufs.len(), "operands come before scratch");
        self.operands.push(operand);
        self.kernel.bufs.push(buf);
        self.kernel.bufs.len() as u32 - 1
    }

    pub fn scratch(&mut self, name: &str, dtype: DType, elems: u64) -> u32 {
        self.kernel.bufs.push(Buf { name: name.to_string(), dtype, elems, space: Space::Scratch });
        self.kernel.bufs.len() as u32 - 1
    }

    /// Declares every tensor that the values under `roots` and the stores touch.
    pub fn declare(&mut self, roots: &[ValueId], stores: bool) {
        let mut seen = vec![false; self.s.values.len()];
        let mut todo: Vec<ValueId> = roots.to_vec();
        if stores {
            todo.extend(self.s.stores.iter().flat_map(|st| &st.by).map(|(v, _)| *v));
        }
        let mut used = vec![];
        while let Some(v) = todo.pop() {
            if std::mem::replace(&mut seen[v.0 as usize], true) {
                continue;
            }
            if let ValueOp::Load { operand, .. }
            | ValueOp::Gather { operand, .. }
            | ValueOp::Transform { table: operand, .. } = &self.s.value(v).op
            {
                used.push(*operand);
            }
            todo.extend(self.s.args(v));
        }
        used.sort();
        used.dedup();
        for n in used {
            self.tensor(n);
        }
        if stores {
            for st in &self.s.stores {
                self.tensor(st.operand);
            }
        }
    }

    // --- variables and places

    /// A loop variable with values `0..=last`.
    pub fn var(&mut self, last: i64) -> Var {
        self.kernel.vars.push(last.max(0));
        Var(FIRST_LOOP + self.kernel.vars.len() as u32 - 1)
    }

    pub fn range(&self, v: Var) -> (i64, i64) {
        match v {
            POINT => (0, self.kernel.grid.saturating_sub(1) as i64),
            // Other lanes are never seen.
            LANE => (0, self.valid.min(self.lanes) as i64 - 1),
            v => match self.kernel.vars.get((v.0 - FIRST_LOOP) as usize) {
                Some(last) => (0, *last),
                None => bug!("the variable {} is that of no loop", v.0),
            },
        }
    }

    pub fn bind_axis(&mut self, axis: Var, at: Index) -> Index {
        std::mem::replace(&mut self.places[axis.0 as usize], at)
    }

    pub fn axis_index(&self, axis: Var) -> &Index {
        &self.places[axis.0 as usize]
    }

    /// An index over axes as one over loop variables.
    pub fn resolve(&self, e: &Index) -> Index {
        e.substitute(&|v| self.places.get(v.0 as usize).cloned(), &|v| self.range(v))
    }

    fn resolve_guards(&self, guards: &[Guard]) -> Vec<Guard> {
        let resolved = guards.iter().map(|g| Guard { index: self.resolve(&g.index), lo: g.lo, hi: g.hi });
        // One that holds everywhere costs a mask for nothing.
        let open = |g: &Guard| {
            let (lo, hi) = g.index.range(&|v| self.range(v));
            lo < g.lo || hi >= g.hi
        };
        resolved.filter(open).collect()
    }

    // --- operations

    /// Depth of the loop that `e` needs: the innermost whose variable it mentions.
    fn depth(&self, e: &Index) -> usize {
        let mut depth = 0;
        e.each_var(&mut |v| depth = depth.max(self.frames.iter().position(|f| f.var == Some(v)).unwrap_or(0)));
        depth
    }

    pub fn define_at(&mut self, depth: usize, def: Def, kind: Kind, lanes: u32) -> Val {
        let out = self.new_value(kind, lanes, depth);
        self.frames[depth].ops.push(Op::Def { out, def });
        out
    }

    /// Defines a value in the innermost loop.
    pub fn define(&mut self, def: Def, kind: Kind, lanes: u32) -> Val {
        self.define_at(self.frames.len() - 1, def, kind, lanes)
    }

    /// Turns a square of lanes over.
    pub fn transpose(&mut self, from: Vec<Val>, kind: Kind) -> Vec<Val> {
        let n = from.len() as u32;
        let depth = self.frames.len() - 1;
        let to: Vec<Val> = (0..n).map(|_| self.new_value(kind, n, depth)).collect();
        self.push(Op::Transpose { from, to: to.clone() });
        to
    }

    pub fn push(&mut self, op: Op) {
        let last = self.frames.len() - 1;
        self.frames[last].ops.push(op);
    }

    /// The last frame's operations, when all loops are closed.
    pub fn finish(mut self, scalars: Vec<u32>) -> Step {
        self.kernel.body = std::mem::take(&mut self.frames[0].ops);
        Step { kernel: self.kernel, operands: self.operands, scalars }
    }

    /// `for var in max(lo)..min(hi) step step`, with one value carried per element of `init`;
    /// `body` returns what they become. Returns their last values.
    pub fn carry_loop(
        &mut self,
        var: Var,
        lo: Vec<Index>,
        hi: Vec<Index>,
        init: &[Val],
        body: impl FnOnce(&mut Self, &[Val]) -> Result<Vec<Val>, LowerError>,
    ) -> Result<Vec<Val>, LowerError> {
        self.frames.push(Frame { var: Some(var), ..Frame::default() });
        let inner: Vec<Val> = init.iter().map(|v| self.same_type(*v)).collect();
        let next = body(self, &inner)?;
        let Some(frame) = self.frames.pop() else { bug!("a loop ends that was not begun") };
        let out: Vec<Val> = init.iter().map(|v| self.same_type(*v)).collect();
        let carried =
            (0..init.len()).map(|i| Carry { inner: inner[i], init: init[i], next: next[i], out: out[i] }).collect();
        self.push(Op::For(For { var, lo, hi, step: 1, dealt: false, carried, body: frame.ops }));
        Ok(out)
    }

    /// `body` for each position in `lo..hi`; a single one needs no loop.
    pub fn each(
        &mut self,
        lo: u64,
        hi: u64,
        body: &mut dyn FnMut(&mut Self, &Index) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        match hi.saturating_sub(lo) {
            0 => Ok(()),
            1 => body(self, &Index::constant(lo as i64)),
            _ => {
                let var = self.var(hi as i64 - 1);
                let (lo, hi) = (vec![Index::constant(lo as i64)], vec![Index::constant(hi as i64)]);
                self.plain_loop(var, lo, hi, |n| body(n, &Index::var(var)))
            }
        }
    }

    /// An f32 constant, which stands before all loops.
    pub fn constant(&mut self, x: f32) -> Val {
        if let Some(known) = self.constants.get(&x.to_bits()) {
            return *known;
        }
        let out = self.define_at(0, Def::Const(Scalar::F(f64::from(x))), Kind::F32, 1);
        self.constants.insert(x.to_bits(), out);
        out
    }

    pub fn plain_loop(
        &mut self,
        var: Var,
        lo: Vec<Index>,
        hi: Vec<Index>,
        body: impl FnOnce(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        self.carry_loop(var, lo, hi, &[], |n, _| body(n).map(|()| vec![]))?;
        Ok(())
    }

    /// A loop whose turns are dealt to the warps of a point.
    pub fn dealt_loop(
        &mut self,
        var: Var,
        lo: Vec<Index>,
        hi: Vec<Index>,
        body: impl FnOnce(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        self.plain_loop(var, lo, hi, body)?;
        match self.frames.last_mut().and_then(|f| f.ops.last_mut()) {
            Some(Op::For(f)) => f.dealt = true,
            _ => bug!("a loop that was just written is not the last operation"),
        }
        Ok(())
    }

    fn same_type(&mut self, v: Val) -> Val {
        let ty = self.kernel.ty(v);
        self.new_value(ty.kind, ty.lanes, self.frames.len() - 1)
    }

    fn new_value(&mut self, kind: Kind, lanes: u32, depth: usize) -> Val {
        self.depths.push(depth);
        self.kernel.push(kind, lanes)
    }

    // --- values

    fn key(&self, v: ValueId) -> Key {
        let places: Vec<Index> = self.domains[v.0 as usize].iter().map(|a| self.axis_index(*a).clone()).collect();
        let valid = if places.iter().any(|p| p.uses(LANE)) { self.valid } else { self.lanes };
        (v, places, valid)
    }

    fn known(&self, key: &Key) -> Option<Val> {
        self.frames.iter().rev().find_map(|f| f.known.get(key).copied())
    }

    /// States that `v` at the present places is `value`, for as long as the present loop is open.
    pub fn bind(&mut self, v: ValueId, value: Val) {
        let key = self.key(v);
        let last = self.frames.len() - 1;
        self.frames[last].known.insert(key, value);
    }

    /// The value at the present places, computed where it is not yet known.
    pub fn eval(&mut self, v: ValueId) -> Result<Val, LowerError> {
        let key = self.key(v);
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let s = self.s;
        let value = s.value(v);
        let kind = kind_of(value.dtype).ok_or_else(|| LowerError(format!("{} in a kernel", value.dtype)))?;
        let wide = |n: &Self, args: &[Val]| args.iter().map(|a| n.kernel.ty(*a).lanes).max().unwrap_or(1);
        let (def, lanes) = match &value.op {
            // Loads and checks may move out of loops of no turns, where there is nothing to read and nothing is wrong.
            ValueOp::Load { .. } | ValueOp::Gather { .. } | ValueOp::Position { .. } if self.only_in_no_turns(v) => {
                (nothing(kind), 1)
            }
            ValueOp::Load { operand, .. } if s.operands[*operand as usize].elems == 0 => (nothing(kind), 1),
            // No position is right, which is told where the position is computed.
            ValueOp::Gather { operand, by, .. } if s.operands[*operand as usize].elems == 0 => {
                by.iter().try_for_each(|(p, _)| self.eval(*p).map(|_| ()))?;
                (nothing(kind), 1)
            }
            ValueOp::Load { operand, at, guards } => {
                let (at, guards) = (self.resolve(at), self.resolve_guards(guards));
                let vector = at.uses(LANE) || guards.iter().any(|g| g.index.uses(LANE));
                let lanes = if vector { self.lanes } else { 1 };
                let buf = self.tensor(*operand);
                (Def::Load(Access { buf, at, valid: if vector { self.valid } else { 1 }, guards }), lanes)
            }
            ValueOp::Gather { operand, at, by, guards } => {
                let (at, guards) = (self.resolve(at), self.resolve_guards(guards));
                let by = by
                    .iter()
                    .map(|(p, stride)| Ok((self.eval(*p)?, *stride)))
                    .collect::<Result<Vec<_>, LowerError>>()?;
                let vector = at.uses(LANE)
                    || guards.iter().any(|g| g.index.uses(LANE))
                    || by.iter().any(|(p, _)| self.kernel.ty(*p).lanes > 1);
                let lanes = if vector { self.lanes } else { 1 };
                let buf = self.tensor(*operand);
                let from = Access { buf, at, valid: if vector { self.valid } else { 1 }, guards };
                (Def::Gather { from, by }, lanes)
            }
            ValueOp::Position { arg, bounds } => {
                let arg = self.eval(*arg)?;
                let lanes = self.kernel.ty(arg).lanes;
                let check = self.check(*bounds);
                (Def::Position { arg, check, valid: if lanes > 1 { self.valid } else { 1 } }, lanes)
            }
            ValueOp::Scalar(n) => (Def::Scalar(*n), 1),
            ValueOp::Const(c) => (Def::Const(*c), 1),
            ValueOp::Index(e) => {
                let e = self.resolve(e);
                let lanes = if e.uses(LANE) { self.lanes } else { 1 };
                (Def::Index(e), lanes)
            }
            ValueOp::Within(guards) => {
                let guards = self.resolve_guards(guards);
                let lanes = if guards.iter().any(|g| g.index.uses(LANE)) { self.lanes } else { 1 };
                (Def::Within(guards), lanes)
            }
            ValueOp::HalfBits(arg) => {
                let arg = self.eval(*arg)?;
                (Def::HalfBits(arg), self.kernel.ty(arg).lanes)
            }
            ValueOp::Half { low, high } => {
                let (low, high) = (self.eval(*low)?, self.eval(*high)?);
                (Def::Half { low, high }, wide(self, &[low, high]))
            }
            ValueOp::Random { key, at } => {
                let (key, at) = ([self.eval(key[0])?, self.eval(key[1])?], self.resolve(at));
                let lanes = if at.uses(LANE) { self.lanes } else { wide(self, &key) };
                (Def::Random { key, at }, lanes)
            }
            ValueOp::Map { op, args } => {
                let dtype = args.last().map_or(value.dtype, |a| s.value(*a).dtype);
                let args = args.iter().map(|a| self.eval(*a)).collect::<Result<Vec<_>, _>>()?;
                let lanes = wide(self, &args);
                (Def::Map { op: *op, dtype, args }, lanes)
            }
            ValueOp::Cast(arg) => {
                let from = s.value(*arg).dtype;
                let arg = self.eval(*arg)?;
                (Def::Cast { from, to: value.dtype, arg }, self.kernel.ty(arg).lanes)
            }
            ValueOp::RoundTf32(arg) => {
                let arg = self.eval(*arg)?;
                (Def::RoundTf32(arg), self.kernel.ty(arg).lanes)
            }
            ValueOp::Reduce { .. }
            | ValueOp::ArgReduce { .. }
            | ValueOp::Cumulate { .. }
            | ValueOp::Transform { .. }
            | ValueOp::Dot { .. } => {
                return Err(LowerError("a reduction is read where it is not computed".into()));
            }
        };
        let args: &[Val] = match &def {
            Def::Map { args, .. } => args,
            Def::Random { key, .. } => key,
            Def::Half { low, high } => &[*low, *high],
            Def::HalfBits(arg) | Def::Cast { arg, .. } | Def::Position { arg, .. } | Def::RoundTf32(arg) => {
                std::slice::from_ref(arg)
            }
            Def::Gather { by, .. } => &by.iter().map(|(p, _)| *p).collect::<Vec<_>>(),
            _ => &[],
        };
        // A bound value may live deeper than the axes it depends on say.
        let places = key.1.iter().map(|p| self.depth(p));
        let depth = places.chain(args.iter().map(|a| self.depths[a.0 as usize])).max().unwrap_or(0);
        let out = self.define_at(depth, def, kind, lanes);
        self.frames[depth].known.insert(key, out);
        Ok(out)
    }

    /// Whether a value belongs to loops of which one has no turns: nothing needs it.
    fn only_in_no_turns(&self, v: ValueId) -> bool {
        self.domains[v.0 as usize].iter().any(|a| self.s.axes[a.0 as usize].extent == 0)
    }

    /// The number of a check.
    fn check(&mut self, bounds: Bounds) -> u32 {
        let checks = &mut self.kernel.checks;
        let at = checks.iter().position(|b| *b == bounds).unwrap_or_else(|| {
            checks.push(bounds);
            checks.len() - 1
        });
        at as u32
    }

    /// Stores `value`, of the type that the buffer holds.
    pub fn store(&mut self, buf: u32, at: Index, value: Val, stream: bool) {
        let lanes = if at.uses(LANE) { self.lanes } else { 1 };
        let valid = if lanes > 1 { self.valid } else { 1 };
        self.push(Op::Store { to: Access { buf, at, valid, guards: vec![] }, by: vec![], value, lanes, stream });
    }

    /// Stores a result at the present places.
    pub fn store_result(&mut self, st: &Store, value: Val, stream: bool) -> Result<(), LowerError> {
        let (buf, at) = (self.tensor(st.operand), self.resolve(&st.at));
        if st.by.is_empty() {
            self.store(buf, at, value, stream);
            return Ok(());
        }
        let by =
            st.by.iter().map(|(p, stride)| Ok((self.eval(*p)?, *stride))).collect::<Result<Vec<_>, LowerError>>()?;
        // Lanes that all go to one element count too: the last one stays.
        let wide = [value].into_iter().chain(by.iter().map(|p| p.0)).any(|v| self.kernel.ty(v).lanes > 1);
        let lanes = if wide || at.uses(LANE) { self.lanes } else { 1 };
        let valid = if lanes > 1 { self.valid } else { 1 };
        self.push(Op::Store { to: Access { buf, at, valid, guards: vec![] }, by, value, lanes, stream: false });
        Ok(())
    }
}

/// What stands for an element that nothing needs.
fn nothing(kind: Kind) -> Def {
    Def::Const(if kind.is_float() { Scalar::F(0.0) } else { Scalar::I(0) })
}

/// The neutral element of a reduction.
pub fn identity(kind: Reduction, of: Kind) -> Scalar {
    let float = of.is_float();
    let lowest = |bits: u32| i64::MIN >> (64 - bits);
    match kind {
        // What f16 rounds at every step has no kernel.
        Reduction::HalfSum => Scalar::F(0.0),
        Reduction::HalfProd => Scalar::F(1.0),
        Reduction::Sum if float => Scalar::F(0.0),
        Reduction::Prod if float => Scalar::F(1.0),
        Reduction::Max if float => Scalar::F(f64::NEG_INFINITY),
        Reduction::Min if float => Scalar::F(f64::INFINITY),
        Reduction::Sum | Reduction::Any => Scalar::I(0),
        Reduction::Prod | Reduction::All => Scalar::I(1),
        Reduction::Max if matches!(of, Kind::U8 | Kind::Bool) => Scalar::I(0),
        Reduction::Max => Scalar::I(lowest(of.bits())),
        Reduction::Min if of == Kind::Bool => Scalar::I(1),
        Reduction::Min if of == Kind::U8 => Scalar::I(255),
        Reduction::Min => Scalar::I(!lowest(of.bits())),
    }
}
