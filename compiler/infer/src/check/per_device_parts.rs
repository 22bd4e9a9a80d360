//! Parts in per-device code: what a collective makes of what each device has, and what a division by the number of devices does.

use super::args::Value;
use super::cx::{Cx, error_at};
use tessera_base::{Code, Diagnostic, Own, Sharding, Size, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_ops::prim::CollectiveKind;
use tessera_types::tensor::{reduces, whole};

/// How a collective puts blocks together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduces {
    Sum,
    Mean,
    Max,
    Min,
}

impl Reduces {
    const ALL: [(&'static str, Reduces); 4] =
        [("sum", Reduces::Sum), ("mean", Reduces::Mean), ("max", Reduces::Max), ("min", Reduces::Min)];

    pub fn name(self) -> &'static str {
        Reduces::ALL.iter().find(|(_, r)| *r == self).map_or("sum", |(name, _)| name)
    }

    /// The parts that it puts together rightly.
    fn of(self) -> Own {
        match self {
            Reduces::Sum => Own::Sum,
            Reduces::Mean => Own::Mean,
            Reduces::Max => Own::Max,
            Reduces::Min => Own::Min,
        }
    }
}

impl Cx<'_> {
    /// What `op=` says, or a sum.
    pub fn reduces(&mut self, op: Option<&TExpr>) -> Option<Reduces> {
        let Some(e) = op else { return Some(Reduces::Sum) };
        let known = match &e.kind {
            TKind::Str(text) => Reduces::ALL.iter().find(|(name, _)| **name == **text).map(|(_, r)| *r),
            _ => None,
        };
        if known.is_none() {
            let text = "`op` is how blocks are put together: \"sum\", \"mean\", \"max\" or \"min\", written out here";
            self.error(Code::E0407, e.span, text);
        }
        known
    }

    /// The axes that an argument names: one, or a tuple of several.
    pub fn axis_texts(&mut self, axis: &TExpr) -> Option<Vec<(String, Span)>> {
        match &axis.kind {
            TKind::Tuple(items) | TKind::List(items) if !items.is_empty() => {
                items.iter().map(|e| Some((self.axis_text(e)?, e.span))).collect()
            }
            _ => Some(vec![(self.axis_text(axis)?, axis.span)]),
        }
    }

    /// What devices have behind a collective. E0405 and E0411 where it takes parts for what they are not.
    pub fn own_after(
        &mut self,
        (name, kind, op): (&str, &CollectiveKind, Reduces),
        (x, t): (&TExpr, &TensorType),
        axis: &str,
        span: Span,
    ) -> Result<Option<Own>, Box<Diagnostic>> {
        let own = t.sharding.own(axis).unwrap_or(Own::Any);
        let at = |text: String, code: Code| Diagnostic::new(code, span, text).with_label(x.span, t.to_string());
        match kind {
            CollectiveKind::Sum | CollectiveKind::Max | CollectiveKind::Min | CollectiveKind::Scatter { .. } => {
                let after = match *kind {
                    CollectiveKind::Scatter { dim } => Some(Own::Block(dim)),
                    _ => None,
                };
                match own {
                    _ if !own.is_part() || own == op.of() => Ok(after),
                    Own::Mean if op == Reduces::Sum && after.is_none() => Ok(Some(Own::Times)),
                    _ => Err(Box::new(self.other_parts(name, op, own, at, (x, axis)))),
                }
            }
            CollectiveKind::Rows { .. } if name == "broadcast" && own.is_part() => {
                let text = format!("`broadcast` takes the value of one device, and each has a part of {}", whole(own));
                let title = format!("put the parts together: `dist.collective.all_reduce({{x}}{}`", reduces(own, axis));
                let each = format!("or take one device's part all the same: `dist.each({{x}}, axis=\"{axis}\")`");
                let d = at(text, Code::E0405).help_about(&title, &[("x", x.span)]);
                Err(Box::new(d.help_about(&each, &[("x", x.span)])))
            }
            CollectiveKind::Gather { .. } => Ok(None),
            CollectiveKind::Rows { .. } if name == "broadcast" => Ok(None),
            CollectiveKind::Turn { from, to } if own == Own::Block(*from) => Ok(Some(Own::Block(*to))),
            // The block of another device.
            _ => Ok(Some(Own::Any)),
        }
    }

    /// E0411: parts of one kind, put together as those of another one.
    fn other_parts(
        &mut self,
        name: &str,
        op: Reduces,
        own: Own,
        at: impl Fn(String, Code) -> Diagnostic,
        (x, axis): (&TExpr, &str),
    ) -> Diagnostic {
        let about = |d: Diagnostic, text: String| d.help_about(&text, &[("x", x.span)]);
        let how = match op {
            Reduces::Sum => "adds what devices have",
            Reduces::Mean => "takes the mean of what devices have",
            Reduces::Max => "takes the largest of what devices have",
            Reduces::Min => "takes the smallest of what devices have",
        };
        let text = format!("`{name}` {how}, and each has its part of {}", whole(own));
        let d = at(text, Code::E0411);
        let d = match (own, op) {
            (Own::Mean, Reduces::Sum) => {
                let d = d.note(format!("the sum of the means is `dist.size(\"{axis}\")` times the mean"));
                about(d, format!("divide it first: `{{x}} / dist.size(\"{axis}\")`"))
            }
            (Own::Sum, Reduces::Mean) => d.note(format!(
                "the parts make the value as a sum; their mean is that divided by `dist.size(\"{axis}\")`"
            )),
            _ => d,
        };
        let d = about(
            d,
            format!("put them together as what they are: `dist.collective.all_reduce({{x}}{}`", reduces(own, axis)),
        );
        about(d, format!("or take them as each device's own: `dist.each({{x}}, axis=\"{axis}\")`"))
    }

    /// `dist.each(x, axis=)`: what each device has, as a value of its own and not as a part of one.
    pub fn each_own(&mut self, values: Vec<Value>, span: Span, name_span: Span) -> TExpr {
        let Some(given) = self.dist_args("dist.each", values, span) else { return error_at(span) };
        let mut given = given.into_iter();
        let (Some(Some(x)), Some(Some(axis))) = (given.next(), given.next()) else { return error_at(span) };
        let Some(local) = self.local.clone() else { return self.only_per_device("each", name_span) };
        let Some(mut t) = self.tensor_of(&x, "dist.each") else { return error_at(span) };
        let Some(axes) = self.axis_texts(&axis) else { return error_at(span) };
        for (axis, at) in axes {
            if local.mesh.is_unknown() && local.mesh.size(&axis).is_none() {
                continue;
            }
            if self.devices_along(&axis, at).is_none() {
                return error_at(span);
            }
            t.sharding = t.sharding.with_own(&axis, Some(Own::Any), &local.mesh);
        }
        TExpr { ty: Ty::Tensor(t), span, ..x }
    }

    /// Zeros in per-device code, which are summands of every sum.
    pub fn zeros_of_all(&self, x: TExpr) -> TExpr {
        let (Some(local), Ty::Tensor(t)) = (&self.local, &x.ty) else { return x };
        let with = |s: Sharding, axis: &(String, u64)| s.with_own(&axis.0, Some(Own::Zero), &local.mesh);
        let sharding = local.mesh.axes.iter().fold(t.sharding.clone(), with);
        TExpr { ty: Ty::Tensor(TensorType { sharding, ..t.clone() }), ..x }
    }

    /// How much a division divides by, where that is known to be a number of devices, or may be.
    pub fn devices_by(&self, by: &TExpr) -> Option<Size> {
        self.local.as_ref()?;
        match &by.kind {
            TKind::IntToFloat(x) => self.devices_by(x),
            // A number of devices that is known is a literal.
            TKind::Float(n) if n.fract() == 0.0 && *n > 0.0 && *n < 1e9 => Some(Size::constant(*n as i64)),
            _ => self.symbolic(by),
        }
    }

    /// What is divided by numbers of devices: parts of a mean become summands, and a sum of means the mean. A summand that is
    /// divided by the size of its block is a part of a mean. With the number without those.
    pub fn divided_by_devices(&mut self, x: TExpr, by: Size) -> (TExpr, Size) {
        let (Some(local), Ty::Tensor(t)) = (self.local.clone(), &x.ty) else { return (x, by) };
        let (mut t, mut rest) = (t.clone(), by);
        for (axis, block) in &local.blocks {
            if t.sharding.own(axis) == Some(Own::Sum)
                && let Some(less) = rest.exact_div(block)
            {
                rest = less;
                // Where the size is a number, another one may be meant: what it makes is told where the mesh is not known yet.
                let own = if block.as_var().is_some() { Own::Mean } else { Own::Any };
                t.sharding = t.sharding.with_own(axis, Some(own), &local.mesh);
            }
        }
        // What was added already is divided first.
        for wanted in [Own::Times, Own::Mean] {
            let owns: Vec<(Own, String)> = t.sharding.owns().map(|(own, axis)| (own, axis.clone())).collect();
            for (_, axis) in owns.into_iter().filter(|(own, _)| *own == wanted) {
                let Some(size) = self.devices_along(&axis, x.span) else { continue };
                let Some(less) = rest.exact_div(&size) else { continue };
                rest = less;
                let own = (wanted == Own::Mean).then_some(Own::Sum);
                t.sharding = t.sharding.with_own(&axis, own, &local.mesh);
            }
        }
        (TExpr { ty: Ty::Tensor(t), ..x }, rest)
    }
}
