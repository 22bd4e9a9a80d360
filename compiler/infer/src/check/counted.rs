//! Results whose size data decides: `nonzero`, `argwhere`, `unique`, `where` of a condition alone, masks as indices. How much
//! there is is counted first, and that is a size like any other from then on.

use super::args::Value;
use super::cx::{Cx, error_at, int};
use super::iterate::int_test;
use super::size_checks::fault;
use super::symbolic::dim;
use std::sync::Arc;
use tessera_base::{CmpOp, Size, Span, TensorType, bug};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::Name;
use tessera_ops::surface::{OpDef, find};
use tessera_types::tensor::GivenIndex;

impl Cx<'_> {
    /// The row that a call means, and its arguments with the size that it does not say.
    pub fn with_counted_size(
        &mut self,
        def: &'static OpDef,
        mut args: Vec<Value>,
        span: Span,
    ) -> (&'static OpDef, Vec<Value>) {
        if def.name != "where" && counting(def.name).is_none() {
            return (def, args);
        }
        let name = |a: &Value| a.name.as_ref().map(|n| n.text.clone());
        let of_condition = args.iter().filter(|a| name(a).is_none_or(|n| &*n == "condition")).count() == 1;
        let others_fit =
            args.iter().all(|a| name(a).is_none_or(|n| matches!(&*n, "condition" | "size" | "fill_value")));
        let def = if def.name == "where" && of_condition && others_fit { find("nonzero").unwrap_or(def) } else { def };
        if counting(def.name).is_none() {
            return (def, args);
        }
        // The second one in order, or by its name; None says nothing.
        let second = args.get(1).is_some_and(|a| a.name.is_none()).then_some(1);
        let place = second.or_else(|| args.iter().position(|a| name(a).is_some_and(|n| &*n == "size")));
        if place.and_then(|i| args.get(i)).is_some_and(|a| a.value.ty != Ty::None) {
            return (def, args);
        }
        let Some(x) = args.iter_mut().find(|a| name(a).is_none_or(|n| matches!(&*n, "x" | "condition"))) else {
            return (def, args);
        };
        let ordered = |t: &TensorType| def.name != "unique" || t.dtype.is_none_or(|d| !d.is_complex());
        if !matches!(&x.value.ty, Ty::Tensor(t) if ordered(t)) {
            return (def, args);
        }
        if x.name.take().is_some() {
            x.name = Some(Name { text: Arc::from("x"), span });
        }
        x.value = self.save("x", x.value.clone());
        let x = x.value.clone();
        let size = if def.name == "unique" {
            let order = match args.iter().find(|a| a.name.as_ref().is_some_and(|n| &*n.text == "order")) {
                Some(order) => order.value.clone(),
                None => {
                    let order = self.order_of(&x, span);
                    args.push(keyword("order", order.clone(), span));
                    order
                }
            };
            let Some(count) = find("count_unique") else { return (def, args) };
            let given = vec![Value { name: None, value: x.clone() }, keyword("order", order, span)];
            let count = self.op_call(count, given, span, span);
            self.size_of_count(count, span)
        } else {
            self.count_of(&x, span)
        };
        match place.and_then(|i| args.get_mut(i)) {
            Some(arg) => arg.value = size,
            None => args.push(keyword("size", size, span)),
        }
        (def, args)
    }

    /// The positions of the elements in order, once.
    fn order_of(&mut self, x: &TExpr, span: Span) -> TExpr {
        let flat = match &x.ty {
            Ty::Tensor(t) if t.rank() == 1 => x.clone(),
            _ => self.op_named("reshape", vec![x.clone(), int(-1, span)], span),
        };
        let order = self.op_named("argsort", vec![flat], span);
        self.save("order", order)
    }

    /// How many elements are not 0, as a size.
    fn count_of(&mut self, x: &TExpr, span: Span) -> TExpr {
        let held = self.op_named("ne", vec![x.clone(), int(0, span)], span);
        let count = self.op_named("sum", vec![held], span);
        self.size_of_count(count, span)
    }

    fn size_of_count(&mut self, count: TExpr, span: Span) -> TExpr {
        if count.ty.is_error() {
            return error_at(span);
        }
        let count = self.int_of(count, span);
        let size = self.sizes.fresh("n");
        let size = self.kept_size(vec![], count, size);
        match self.size_value(&size, span) {
            Some(size) => size,
            None => bug!("a size that was counted has no value"),
        }
    }

    /// The positions at which a mask holds, one tensor for each of its dims.
    pub fn places_of(&mut self, mask: TExpr, ty: &TensorType) -> Vec<GivenIndex> {
        let span = mask.span;
        let mask = self.save("mask", mask);
        let places = self.op_named("nonzero", vec![mask.clone()], span);
        let Ty::Tuple(types) = places.ty.clone() else { return vec![GivenIndex::Value(places)] };
        let places = self.save("places", places);
        let one = |(i, ty): (usize, Ty)| {
            GivenIndex::Value(TExpr { kind: TKind::Field(Box::new(places.clone()), i as u32), ty, span })
        };
        let fits = [GivenIndex::OfMask(mask, ty.clone())];
        fits.into_iter().chain(types.into_iter().enumerate().map(one)).collect()
    }

    /// Compares the masks of an index with the dims of `base` that they stand for, where only a run tells both. What never
    /// fits is left to the rule of the index.
    pub fn hold_masks(&mut self, base: &mut TExpr, given: &[GivenIndex]) {
        let Ty::Tensor(t) = base.ty.clone() else { return };
        let taken = given.iter().filter(|g| g.takes_dim()).count();
        let mut dim = 0;
        for g in given {
            match g {
                GivenIndex::Ellipsis(_) => dim += t.rank().saturating_sub(taken),
                GivenIndex::OfMask(mask, ty) => self.hold_mask(base, &t, dim, (mask, ty)),
                g => dim += usize::from(g.takes_dim()),
            }
        }
    }

    fn hold_mask(&mut self, base: &mut TExpr, t: &TensorType, first: usize, (mask, ty): (&TExpr, &TensorType)) {
        let span = mask.span;
        for (i, (have, wanted)) in ty.shape.iter().zip(t.shape.iter().skip(first)).enumerate() {
            let before = self.sizes.checks.len();
            if self.sizes.require_equal(have, wanted, span).is_err() || self.sizes.checks.len() == before {
                continue;
            }
            *base = self.save("base", base.clone());
            let sizes = [dim(mask, i, have), dim(base, first + i, wanted)];
            let text = format!(
                "a mask has the sizes of the dims that it selects from, and has {{}} for the {{}} of dim {}",
                first + i
            );
            self.stop_unless_equal(sizes, text, span);
        }
    }

    /// Compares sizes now, for what is no operator and compares none itself. Sizes that only elements of lists tell have no value
    /// here, and are left to what is written.
    pub fn hold_equal(&mut self, checks: &[(Size, Size)], span: Span) {
        for (a, b) in checks {
            if let (Some(x), Some(y)) = (self.size_value(a, span), self.size_value(b, span)) {
                self.stop_unless_equal([x, y], "sizes that must be equal are {} and {}".into(), span);
            }
        }
    }

    fn stop_unless_equal(&mut self, [a, b]: [TExpr; 2], text: String, span: Span) {
        let test = int_test(CmpOp::Ne, a.clone(), b.clone(), span);
        let then = vec![TStmt::Expr(fault(text, vec![a, b], span))];
        self.out.push(TStmt::If { test, then, otherwise: vec![] });
    }
}

/// The row of an operator whose result has a size that data decides.
pub fn counting(name: &str) -> Option<&'static OpDef> {
    matches!(name, "nonzero" | "argwhere" | "unique").then(|| find(name)).flatten()
}

fn keyword(name: &str, value: TExpr, span: Span) -> Value {
    Value { name: Some(Name { text: Arc::from(name), span }), value }
}
