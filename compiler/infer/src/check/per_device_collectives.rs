//! Collectives in per-device code: what the devices along an axis do with a block that each has.

use super::args::Value;
use super::cx::{Cx, error_at};
use super::per_device_parts::Reduces;
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, Monoid, Own, Sharding, Size, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::BinOp;
use tessera_ops::prim::{Collective, CollectiveKind};

/// A call of a collective: its name, with modules and without, what stands behind the axis, and where.
pub struct Over<'a> {
    pub name: &'a str,
    pub full: &'a str,
    pub rest: &'a [Option<TExpr>],
    pub span: Span,
    pub name_span: Span,
}

impl Cx<'_> {
    /// `dist.rank(axis)` and `dist.size(axis)`.
    pub fn device_number(&mut self, name: &str, values: Vec<Value>, span: Span, name_span: Span) -> TExpr {
        let Some(given) = self.dist_args(name, values, span) else { return error_at(span) };
        let Some(axis) = given.into_iter().flatten().next() else { return error_at(span) };
        let Some(local) = self.local.clone() else {
            return self.only_per_device(name.trim_start_matches("dist."), name_span);
        };
        let Some(text) = self.axis_text(&axis) else { return error_at(span) };
        let Some(size) = self.devices_along(&text, axis.span) else { return error_at(span) };
        if name == "dist.size" {
            return number_of(size, span);
        }
        let what = collective(&text, &size, CollectiveKind::Rank);
        let sharding = Sharding { dims: vec![], partial: vec![(Monoid::Each(Own::Any), text)], mesh: Some(local.mesh) };
        let ty = Ty::Tensor(TensorType { shape: vec![], dtype: Some(DType::I64), sharding });
        TExpr { kind: TKind::Collective { what, x: None }, ty, span }
    }

    /// E0407: what only devices can do, in ordinary code.
    pub fn only_per_device(&mut self, name: &str, span: Span) -> TExpr {
        let text = format!("`{name}` is about single devices, which exist in per-device code only");
        let d = Diagnostic::new(Code::E0407, span, text)
            .note("outside of it tensors are whole, and collectives say how they lie")
            .help("write what one device does as a function with `@dist.local` above it");
        self.fail(d)
    }

    /// The axis that an argument names.
    pub fn axis_text(&mut self, axis: &TExpr) -> Option<String> {
        let TKind::Str(text) = &axis.kind else {
            self.error(Code::E0403, axis.span, "the axis must be a name that is written out here");
            return None;
        };
        Some(text.to_string())
    }

    /// A collective of blocks.
    pub fn collective_of_blocks(&mut self, name: &str, values: Vec<Value>, span: Span, name_span: Span) -> TExpr {
        let full = format!("dist.collective.{name}");
        let Some(given) = self.dist_args(&full, values, span) else { return error_at(span) };
        let mut given = given.into_iter();
        let (Some(Some(x)), Some(Some(axis))) = (given.next(), given.next()) else { return error_at(span) };
        let rest: Vec<Option<TExpr>> = given.collect();
        let Some(axes) = self.axes_of(name, &axis) else { return error_at(span) };
        let mut value = x;
        for axis in axes {
            let over = Over { name, full: &full, rest: &rest, span, name_span };
            value = self.collective_along(&over, value, axis);
            if value.ty.is_error() {
                break;
            }
        }
        value
    }

    /// The axes of a collective, which is several for an `all_reduce` over a tuple of them.
    pub fn axes_of(&mut self, name: &str, axis: &TExpr) -> Option<Vec<(String, Span)>> {
        match name {
            "all_reduce" => self.axis_texts(axis),
            _ => Some(vec![(self.axis_text(axis)?, axis.span)]),
        }
    }

    /// A collective of blocks along one axis.
    fn collective_along(&mut self, over: &Over, x: TExpr, (text, axis_span): (String, Span)) -> TExpr {
        let Over { name, full, rest, span, name_span } = *over;
        let Some(local) = self.local.clone() else { return error_at(span) };
        let Some(t) = self.tensor_of(&x, full) else { return error_at(span) };
        if local.mesh.is_unknown() && local.mesh.size(&text).is_none() {
            // Whether there is such an axis, a call tells.
            return TExpr { span, ..x };
        }
        let Some(size) = self.devices_along(&text, axis_span) else { return error_at(span) };
        if !t.sharding.each().any(|a| *a == text) {
            return self.same_already(name, &x, &text, name_span);
        }
        let op = match name {
            "all_reduce" => self.reduces(rest.first().and_then(Option::as_ref)),
            _ => Some(Reduces::Sum),
        };
        let Some(op) = op else { return error_at(span) };
        let Some(kind) = self.kind_of((name, op), &t, &size, rest, span) else { return error_at(span) };
        let Some(shape) = self.shape_after(&kind, &t, &size, &text, x.span) else { return error_at(span) };
        let own = match self.own_after((name, &kind, op), (&x, &t), &text, name_span) {
            Ok(own) => own,
            Err(d) => return self.fail(*d),
        };
        let sharding = t.sharding.with_own(&text, own, &local.mesh);
        let what = collective(&text, &size, kind);
        let ty = Ty::Tensor(TensorType { shape, dtype: t.dtype, sharding });
        let all = TExpr { kind: TKind::Collective { what, x: Some(Box::new(x)) }, ty, span };
        if op != Reduces::Mean {
            return all;
        }
        let count = number_of(size, span);
        // Not as a division of the program's, which may be for another axis of as many devices.
        let mean = tessera_types::tensor::binary(&mut self.sizes, BinOp::Div, span, all, count, span);
        self.take(mean)
    }

    /// `dist.complete(x)`: parts put together as what they are; any other value as it is.
    pub fn complete_own(&mut self, values: Vec<Value>, span: Span, name_span: Span) -> TExpr {
        let given = self.dist_args("dist.complete", values, span);
        let Some(mut x) = given.and_then(|g| g.into_iter().flatten().next()) else { return error_at(span) };
        let Some(t) = self.tensor_of(&x, "dist.complete") else { return error_at(span) };
        // Rows that are mixed stay so.
        let parts: Vec<(Own, String)> = match self.of_rows() {
            true => vec![],
            false => t.sharding.owns().filter(|(own, _)| own.is_part()).map(|(own, a)| (own, a.clone())).collect(),
        };
        for (own, axis) in parts {
            if own == Own::Times {
                let Some(size) = self.devices_along(&axis, span) else { return error_at(span) };
                x = self.binary(BinOp::Div, span, x, number_of(size, span), span);
                continue;
            }
            let op = TExpr { kind: TKind::Str(own.name().into()), ty: Ty::Str, span };
            let over = Over { name: "all_reduce", full: "dist.complete", rest: &[Some(op)], span, name_span };
            x = self.collective_along(&over, x, (axis, span));
        }
        TExpr { span, ..x }
    }

    /// E0410: a collective of a value that all devices of the axis have.
    fn same_already(&mut self, name: &str, x: &TExpr, axis: &str, name_span: Span) -> TExpr {
        let text = format!("`{name}` of a value that is the same on all devices of `{axis}`");
        let why = match name {
            "all_reduce" | "reduce_scatter" => "each device would add the same block once more",
            _ => "the devices have nothing of their own to give",
        };
        let d = Diagnostic::new(Code::E0410, name_span, text)
            .with_label(x.span, format!("{} does not differ along `{axis}`", x.ty))
            .note(why)
            .help("remove the call")
            .help(format!("or annotate the parameter that it comes from as a block: `B@{axis}`"));
        self.fail(d)
    }

    fn kind_of(
        &mut self,
        (name, op): (&str, Reduces),
        t: &TensorType,
        size: &Size,
        rest: &[Option<TExpr>],
        span: Span,
    ) -> Option<CollectiveKind> {
        let first = rest.first().and_then(Option::as_ref);
        Some(match name {
            "all_reduce" => match op {
                Reduces::Sum | Reduces::Mean => CollectiveKind::Sum,
                Reduces::Max => CollectiveKind::Max,
                Reduces::Min => CollectiveKind::Min,
            },
            "all_gather" => CollectiveKind::Gather { dim: self.dim_or_first(t, first, span)? },
            "reduce_scatter" => CollectiveKind::Scatter { dim: self.dim_or_first(t, first, span)? },
            "all_to_all" => {
                let (from, to) = (self.dim(t, rest.first())?, self.dim(t, rest.get(1))?);
                if from == to {
                    self.error(Code::E0407, span, "`from_dim` and `to_dim` are the same dim");
                    return None;
                }
                CollectiveKind::Turn { from, to }
            }
            "broadcast" => {
                let source = match first {
                    Some(e) => self.device(e, size, "source")?,
                    None => 0,
                };
                CollectiveKind::Rows { from: vec![source; devices(size)] }
            }
            "send" | "recv" => {
                let (Some(Some(source)), Some(Some(to))) = (rest.first(), rest.get(1)) else { return None };
                let (source, to) = (self.device(source, size, "source")?, self.device(to, size, "to")?);
                let from = (0..devices(size) as u64).map(|i| if i == to { source } else { i });
                CollectiveKind::Rows { from: from.collect() }
            }
            _ => CollectiveKind::Rows { from: self.senders(size, first, rest.get(1).and_then(Option::as_ref))? },
        })
    }

    fn dim_or_first(&mut self, t: &TensorType, e: Option<&TExpr>, span: Span) -> Option<usize> {
        match e {
            Some(e) => self.dim(t, Some(&Some(e.clone()))),
            None if t.rank() > 0 => Some(0),
            None => {
                let d = Diagnostic::new(Code::E0407, span, "a block of rank 0 has no dim along which blocks lie")
                    .help("give it one: `x.reshape(1)`");
                self.report(d);
                None
            }
        }
    }

    /// A device's number that is known here.
    fn device(&mut self, e: &TExpr, size: &Size, what: &str) -> Option<u64> {
        let known = self.symbolic(e).and_then(|n| n.as_const());
        let fits = |n: &i64| *n >= 0 && size.as_const().is_none_or(|all| *n < all);
        let found = known.filter(fits).and_then(|n| u64::try_from(n).ok());
        if found.is_none() {
            let text = format!("`{what}` is the number of a device, from 0 to {} here", size.sub(&Size::constant(1)));
            self.error(Code::E0407, e.span, text);
        }
        found
    }

    /// By device, whose block it gets. E0407 where two devices send to one.
    fn senders(&mut self, size: &Size, shift: Option<&TExpr>, to: Option<&TExpr>) -> Option<Vec<u64>> {
        let n = devices(size);
        let Some(to) = to else {
            let known = match shift {
                None => Some(1),
                Some(e) => self.symbolic(e).and_then(|n| n.as_const()),
            };
            // At the definition neither the devices nor the int are known.
            if n == 0 {
                return Some(vec![]);
            }
            let Some(by) = known else {
                let at = shift.map_or(Span::NONE, |e| e.span);
                let d = Diagnostic::new(Code::E0407, at, "by how many devices blocks move must be known here")
                    .help("`shift=1` sends each block to the next device, and that of the last to the first");
                self.report(d);
                return None;
            };
            return Some((0..n as i64).map(|i| (i - by).rem_euclid(n as i64) as u64).collect());
        };
        if let Some(e) = shift {
            self.error(Code::E0104, e.span, "`permute` takes `shift` or `to`, not both");
            return None;
        }
        let (TKind::List(items) | TKind::Tuple(items)) = &to.kind else {
            let d = Diagnostic::new(Code::E0407, to.span, "`to` is a list that is written out here")
                .help("`to=[1, 0]`: device 0 sends to 1, and 1 to 0");
            self.report(d);
            return None;
        };
        let mut from = vec![None; n];
        for (sender, e) in items.iter().enumerate() {
            let receiver = self.device(e, size, "to")? as usize;
            let Some(slot) = from.get_mut(receiver) else { continue };
            if let Some(first) = slot.replace(sender as u64) {
                let text = format!("devices {first} and {sender} both send to {receiver}");
                self.report(Diagnostic::new(Code::E0407, e.span, text).note("each device gets one block"));
                return None;
            }
        }
        if n > 0 && items.len() != n {
            let text = format!("{} receivers for {n} devices", items.len());
            self.report(Diagnostic::new(Code::E0407, to.span, text).note("each device sends its block to one"));
            return None;
        }
        Some(from.into_iter().flatten().collect())
    }

    /// The shape of a block afterwards. E0408 where a dim cannot be cut into equal parts.
    fn shape_after(
        &mut self,
        kind: &CollectiveKind,
        t: &TensorType,
        size: &Size,
        axis: &str,
        at: Span,
    ) -> Option<Vec<Size>> {
        let mut shape = t.shape.clone();
        let (cut, grown) = match *kind {
            CollectiveKind::Gather { dim } => (None, Some(dim)),
            CollectiveKind::Scatter { dim } => (Some(dim), None),
            CollectiveKind::Turn { from, to } => (Some(to), Some(from)),
            _ => (None, None),
        };
        if let Some(dim) = cut {
            let whole = &t.shape[dim];
            shape[dim] = match whole.exact_div(size) {
                Some(part) => part,
                None if whole.as_const().is_some() && size.as_const().is_some() => {
                    let text = format!("the {size} devices of `{axis}` do not divide dim {dim} into equal parts");
                    let d = Diagnostic::new(Code::E0408, at, text).here(t.to_string());
                    self.report(d);
                    return None;
                }
                None => self.sizes.fresh("part"),
            };
        }
        if let Some(dim) = grown {
            shape[dim] = shape[dim].mul(size);
        }
        Some(shape)
    }

    /// E0409 for a condition that differs between devices.
    pub fn same_condition(&self, x: &TExpr) -> Option<Diagnostic> {
        self.local.as_ref()?;
        let Ty::Tensor(t) = &x.ty else { return None };
        let axis = t.sharding.each().next()?;
        let text = format!("this condition differs between the devices of `{axis}`");
        let d = Diagnostic::new(Code::E0409, x.span, text)
            .here(x.ty.to_string())
            .note("all devices run the same steps: one that did not would leave the others waiting in a collective");
        Some(d.help("choose between values instead: `op.where(condition, a, b)`"))
    }
}

/// How many devices there are. Where no call has said that yet, it is no literal: its conversions keep what it is.
fn number_of(size: Size, span: Span) -> TExpr {
    let literal = |n: i64| TExpr { kind: TKind::Int(n), ty: Ty::Int(Some(Size::constant(n))), span };
    let kind = match size.as_const() {
        Some(n) => TKind::Int(n),
        None => {
            let (left, right) = (Box::new(literal(0)), Box::new(literal(0)));
            TKind::Arith { op: BinOp::Add, left, right, int_operands: true }
        }
    };
    TExpr { kind, ty: Ty::Int(Some(size)), span }
}

fn devices(size: &Size) -> usize {
    size.as_const().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

fn collective(axis: &str, size: &Size, kind: CollectiveKind) -> Arc<Collective> {
    Arc::new(Collective { axis: axis.into(), devices: devices(size) as u64, kind })
}
