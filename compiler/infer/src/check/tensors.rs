//! Tensors in expressions: what the typing rules need, from syntax.

use super::args::Value;
use super::cx::{Cx, error_at};
use tessera_base::{DType, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Arg, ExprKind, Name};
use tessera_ops::surface::OpDef;
use tessera_types::tensor::tile::{self, Asked};
use tessera_types::tensor::{self, Given, GivenIndex};

impl Cx<'_> {
    /// The parts of an index, checked.
    pub fn index_parts(&mut self, index: &[Arg]) -> Vec<GivenIndex> {
        let mut out: Vec<GivenIndex> = vec![];
        for part in index {
            let span = part.value.span;
            match &part.value.kind {
                ExprKind::Ellipsis => out.push(GivenIndex::Ellipsis(span)),
                ExprKind::None => out.push(GivenIndex::NewAxis(span)),
                ExprKind::Slice { low, high, step } => {
                    let mut bounds: Vec<Option<TExpr>> = vec![];
                    for bound in [low, high, step] {
                        let left = computed_of(&mut out).chain(bounds.iter_mut().flatten());
                        let bound = bound.as_ref().map(|e| self.right_of(left, |cx| cx.expr(e)));
                        bounds.push(bound.filter(|v| v.ty != Ty::None));
                    }
                    let mut bounds = bounds.into_iter();
                    let mut next = || bounds.next().flatten();
                    let (low, high, step) = (next(), next(), next());
                    out.push(GivenIndex::Slice { low, high, step, span });
                }
                _ => {
                    let value = self.right_of(computed_of(&mut out), |cx| {
                        let value = cx.expr(&part.value);
                        if matches!(value.ty, Ty::Tuple(_)) { cx.save("index", value) } else { value }
                    });
                    match value.ty.clone() {
                        // `x[t]` with a tuple is `x[t[0], t[1]]`.
                        Ty::Tuple(types) => {
                            for (i, ty) in types.into_iter().enumerate() {
                                let kind = TKind::Field(Box::new(value.clone()), i as u32);
                                self.index_part(TExpr { kind, ty, span }, &mut out);
                            }
                        }
                        _ => self.index_part(value, &mut out),
                    }
                }
            }
        }
        out
    }

    /// A part of an index: a mask is the positions at which it holds.
    fn index_part(&mut self, value: TExpr, out: &mut Vec<GivenIndex>) {
        match value.ty.clone() {
            Ty::Tensor(mask) if mask.dtype == Some(DType::Bool) && mask.rank() > 0 => {
                let places = self.right_of(computed_of(out), |cx| cx.places_of(value, &mask));
                out.extend(places);
            }
            _ => out.push(GivenIndex::Value(value)),
        }
    }

    /// A call of an operator.
    pub fn op_call(&mut self, def: &'static OpDef, args: Vec<Value>, span: Span, name_span: Span) -> TExpr {
        let (def, args) = self.with_counted_size(def, args, span);
        let given = self.givens(args);
        let at = tile_of(&given);
        let zeros = of_zeros(def.name, &given);
        let result = tensor::op_call(&mut self.sizes, def, given, span, name_span);
        let value = self.take(result);
        self.tile_suits(&value, at);
        if zeros {
            return self.zeros_of_all(value);
        }
        self.as_long_as_blocks(def.name, value)
    }

    /// E0506 and W0502 for the `tile_shape=` of a product.
    fn tile_suits(&mut self, e: &TExpr, at: Option<Span>) {
        let TKind::Op { def, hints, .. } = &e.kind else { return };
        let (Some(at), Some(sizes), Some(_)) = (at, &hints.tile_shape, def.factors()) else { return };
        let sizes: Vec<u64> = sizes.iter().map(|n| n.unsigned_abs()).collect();
        if let Some(d) = tile::misfit(self.db.limits(), &sizes, tile::element_bytes(e), Asked::of(def), at) {
            self.report(d);
        }
    }

    /// `base.name(args)` of a tensor.
    pub fn tensor_method(&mut self, base: TExpr, name: &Name, args: Vec<Value>, span: Span) -> TExpr {
        if let Some(def) = super::counted::counting(&name.text).filter(|_| matches!(base.ty, Ty::Tensor(_))) {
            let args = std::iter::once(Value { name: None, value: base }).chain(args).collect();
            return self.op_call(def, args, span, name.span);
        }
        let host = matches!(&*name.text, "item" | "tolist");
        let given = self.givens(args);
        let at = tile_of(&given);
        let result = tensor::method(&mut self.sizes, base, name, given, span);
        let value = self.take(result);
        let value = self.as_long_as_blocks(&name.text, value);
        self.tile_suits(&value, at);
        if host && !value.ty.is_error() {
            self.host(format!("reads the data of a tensor with `{}`", name.text), span);
        }
        value
    }

    fn givens(&mut self, args: Vec<Value>) -> Vec<Given> {
        args.into_iter()
            .map(|a| {
                let mut value = a.value;
                if value.ty == Ty::Never {
                    value = error_at(value.span);
                }
                Given { name: a.name, value }
            })
            .collect()
    }

    /// A reduction or other one-argument operator by name, for what the language writes shorter.
    pub fn op_named(&mut self, name: &'static str, args: Vec<TExpr>, span: Span) -> TExpr {
        match tessera_ops::surface::find(name) {
            Some(def) => {
                let args = args.into_iter().map(|value| Value { name: None, value }).collect();
                self.op_call(def, args, span, span)
            }
            None => {
                let d = tessera_base::Diagnostic::new(
                    tessera_base::Code::E0690,
                    span,
                    format!("`op.{name}` is not supported yet"),
                );
                self.fail(d)
            }
        }
    }
}

/// Where the tile of a call stands.
fn tile_of(given: &[Given]) -> Option<Span> {
    given.iter().find(|g| g.name.as_ref().is_some_and(|n| &*n.text == "tile_shape")).map(|g| g.value.span)
}

/// What the parts of an index compute.
pub fn computed_of(parts: &mut [GivenIndex]) -> impl Iterator<Item = &mut TExpr> {
    parts.iter_mut().flat_map(|part| {
        let [a, b, c] = match part {
            GivenIndex::Value(e) => [Some(e), None, None],
            GivenIndex::Slice { low, high, step, .. } => [low.as_mut(), high.as_mut(), step.as_mut()],
            GivenIndex::Ellipsis(_) | GivenIndex::NewAxis(_) | GivenIndex::OfMask(..) => [None, None, None],
        };
        [a, b, c].into_iter().flatten()
    })
}

/// Whether an operator gives nothing but zeros, whatever else it is given.
fn of_zeros(name: &str, given: &[Given]) -> bool {
    let is_zero = |e: &TExpr| match e.kind {
        TKind::Float(x) => x == 0.0,
        TKind::Int(n) => n == 0,
        _ => false,
    };
    let at = |i: usize, param: &str| {
        let named = given.iter().find(|g| g.name.as_ref().is_some_and(|n| *n.text == *param));
        named.or(given.get(i).filter(|g| g.name.is_none())).is_some_and(|g| is_zero(&g.value))
    };
    match name {
        "zeros" | "zeros_like" => true,
        "array" => at(0, "values"),
        "full" | "full_like" => at(1, "value"),
        _ => false,
    }
}
