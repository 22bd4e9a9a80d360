//! Sizes of blocks in per-device code: there are as many blocks as devices, so a number that is made of the size of one is another
//! one on another mesh.

use super::cx::Cx;
use super::written_blocks::{own_with, whole_dims};
use tessera_base::{Code, Diagnostic, Own, Sharding, Size, TensorType};
use tessera_core::ir::*;
use tessera_core::layouts;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{BinOp, Expr};
use tessera_types::tensor::GivenIndex;

/// A size of a whole tensor that stands for all, small enough for products of many, and numbers of devices that divide it.
const WHOLE: i64 = 240;
const DEVICES: [i64; 3] = [2, 3, 4];

/// Operators whose results are the same at every position: along a dim as long as a block they are a block of the whole.
const CONSTANT: &[&str] = &["ones", "full", "zeros", "ones_like", "full_like", "zeros_like", "broadcast_to", "expand"];

impl Cx<'_> {
    /// Takes note of the sizes of blocks that parameters name.
    pub fn name_blocks(&mut self, params: &[Ty]) {
        let Some(local) = &mut self.local else { return };
        for t in params.iter().flat_map(layouts::tensors) {
            for (own, axis) in t.sharding.owns() {
                let Own::Block(dim) = own else { continue };
                let size = t.shape.get(dim).filter(|n| n.as_var().is_some() || n.as_const().is_some_and(|n| n > 0));
                let block = size.map(|n| (axis.clone(), n.clone()));
                local.blocks.extend(block.filter(|b| !local.blocks.contains(b)));
            }
        }
    }

    /// The axis and the block whose size a number is made of, so that it depends on how many devices there are.
    pub fn counts_block(&self, n: &Size) -> Option<(String, Size)> {
        let local = self.local.as_ref().filter(|local| local.mesh.is_unknown())?;
        let vars = n.vars();
        let named = |(_, block): &&(String, Size)| block.as_var().is_some_and(|v| vars.contains(v));
        let (axis, block) = local.blocks.iter().find(named)?;
        let devices = local.sizes.iter().find(|(a, _)| a == axis).map(|(_, size)| size);
        let at = |devices_now: i64| {
            n.eval(&|v| {
                let is = |size: &Size| size.as_var() == Some(v);
                Some(match () {
                    () if is(block) => WHOLE / devices_now,
                    () if devices.is_some_and(is) => devices_now,
                    () => WHOLE,
                })
            })
        };
        let all: Vec<Option<i64>> = DEVICES.iter().map(|n| at(*n)).collect();
        let same = all[0].is_some() && all.iter().all(|n| *n == all[0]);
        (!same).then(|| (axis.clone(), block.clone()))
    }

    /// E0413 for a number that becomes a float.
    pub fn block_number(&mut self, x: &TExpr) {
        let Some((axis, block)) = self.symbolic(x).and_then(|n| self.counts_block(&n)) else { return };
        let d = Diagnostic::new(Code::E0413, x.span, "this number depends on how many devices there are");
        self.report(of_the_whole(d, &axis, &block));
    }

    /// E0413 for a number beside a tensor, unless each device has its own of that. `by`: what is left of a divisor where the
    /// division itself makes another part of a part.
    pub fn block_factor(&mut self, op: BinOp, (l, r): (&TExpr, &TExpr), by: Option<Size>) -> Option<Diagnostic> {
        let (t, other, n) = match (&l.ty, &r.ty) {
            (Ty::Tensor(t), Ty::Int(_)) => (t, l, r),
            (Ty::Int(_), Ty::Tensor(t)) => (t, r, l),
            _ => return None,
        };
        let number = by.or_else(|| self.symbolic(n))?;
        if let Some(axis) = self.sum_by_devices(t, &number).filter(|_| op == BinOp::Div) {
            let text = format!("each device's part of a sum is divided by the number of devices of `{axis}`");
            let d = Diagnostic::new(Code::E0413, n.span, text).with_label(other.span, t.to_string());
            let each = format!("or take it as each device's own: `dist.each({{x}}, axis=\"{axis}\")`");
            return Some(
                d.note("only means of parts become summands so; a sum is smaller then, the more devices there are")
                    .help("a mean is divided by how many summands there are: `x.mean()`")
                    .help_about(&each, &[("x", other.span)]),
            );
        }
        let (axis, block) = self.counts_block(&number)?;
        if t.sharding.own(&axis).is_some_and(Own::is_alone) {
            return None;
        }
        let text = match op {
            BinOp::Div => "this is divided by a number that depends on how many devices there are",
            _ => "this number depends on how many devices there are",
        };
        let d = Diagnostic::new(Code::E0413, n.span, text).with_label(other.span, t.to_string());
        Some(of_the_whole(d, &axis, &block))
    }

    /// The axis along which a tensor is a part of a sum, and which a number counts the devices of.
    fn sum_by_devices(&self, t: &TensorType, n: &Size) -> Option<String> {
        let local = self.local.as_ref().filter(|local| local.mesh.is_unknown())?;
        let vars = n.vars();
        let counts = |size: &Size| size.as_var().is_some_and(|v| vars.contains(v));
        let axis = |(axis, size): &&(String, Size)| t.sharding.own(axis) == Some(Own::Sum) && counts(size);
        local.sizes.iter().find(axis).filter(|_| self.counts_block(n).is_none()).map(|(axis, _)| axis.clone())
    }

    /// What devices have of an operator's result with dims that are as long as blocks: constants have a block there. E0413 where
    /// what is a block along one dim is as long as one along another dim.
    pub fn as_long_as_blocks(&mut self, name: &str, x: TExpr) -> TExpr {
        let (Some(local), Ty::Tensor(t)) = (self.local.clone(), &x.ty) else { return x };
        let mut t = t.clone();
        for (axis, block) in &local.blocks {
            let counts = |d: &usize| self.counts_block(&t.shape[*d]).is_some_and(|b| b.0 == *axis);
            let dims: Vec<usize> = (0..t.rank()).filter(counts).collect();
            let own = match (t.sharding.own(axis), &dims[..]) {
                (_, []) => continue,
                (Some(Own::Block(dim)), _) => match dims.iter().find(|d| **d != dim) {
                    Some(other) => return self.blocks_crossed(x, axis, (dim, *other)),
                    None => continue,
                },
                (None, [dim]) if t.shape[*dim] == *block && CONSTANT.contains(&name) => Own::Block(*dim),
                (None, _) => Own::Any,
                _ => continue,
            };
            t.sharding = t.sharding.with_own(axis, Some(own), &local.mesh);
        }
        TExpr { ty: Ty::Tensor(t), ..x }
    }

    fn blocks_crossed(&mut self, x: TExpr, axis: &str, (dim, other): (usize, usize)) -> TExpr {
        let text =
            format!("dim {other} of this is as long as a block, which the devices of `{axis}` have along dim {dim}");
        let d = Diagnostic::new(Code::E0413, x.span, text)
            .here(x.ty.to_string())
            .note("how long it is depends on how many devices there are")
            .help(format!("have all rows first: `dist.collective.all_gather(x, axis=\"{axis}\", dim={dim})`"))
            .help(format!("or go on with what each device has: `dist.each(x, axis=\"{axis}\")`"));
        self.fail(d)
    }

    /// A tensor of per-device code of which a part is written over: what devices have of it with `value` in it.
    pub fn written_into(&mut self, base: &Expr, ty: &Ty, given: &[GivenIndex], value: &Ty) -> Ty {
        let (Some(local), Ty::Tensor(t)) = (self.local.clone(), ty) else { return ty.clone() };
        let whole = whole_dims(given, t.rank());
        let (with, skip) = match value {
            Ty::Tensor(v) => (v.sharding.clone(), t.rank().saturating_sub(v.rank())),
            _ => (Sharding::default(), 0),
        };
        let axes =
            local.mesh.axes.iter().map(|a| &a.0).chain(t.sharding.owns().chain(with.owns()).map(|(_, axis)| axis));
        let mut sharding = t.sharding.clone();
        for axis in axes {
            let now = own_with(t.sharding.own(axis), with.own(axis), skip, &whole);
            sharding = sharding.with_own(axis, now, &local.mesh);
        }
        let now = Ty::Tensor(TensorType { sharding, ..t.clone() });
        if now != *ty {
            self.retype_lvalue(base, now.clone());
        }
        now
    }
}

fn of_the_whole(d: Diagnostic, axis: &str, block: &Size) -> Diagnostic {
    d.note(format!("`{block}` is the size of a block, of which each device of `{axis}` has one"))
        .help(format!("that of the whole is `{block} * dist.size(\"{axis}\")`"))
        .help("means say it themselves: `x.mean()`, put together with `op=\"mean\"`")
}
