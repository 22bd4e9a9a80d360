//! Results whose size data decides: `nonzero`, `argwhere`, `unique`, `where` of a condition alone, masks as indices. How much
//! there is is counted first, and that is a size like any other from then on.

use super::args::Value;
use super::cx::{Cx, int};
use std::sync::Arc;
use tessera_base::{Span, TensorType};
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
        let def = match (def.name, args.len()) {
            ("where", 1) => find("nonzero").unwrap_or(def),
            _ => def,
        };
        let named = |args: &[Value], name: &str| args.iter().any(|a| a.name.as_ref().is_some_and(|n| *n.text == *name));
        let said = named(&args, "size") || args.get(1).is_some_and(|a| a.name.is_none());
        if said || counting(def.name).is_none() {
            return (def, args);
        }
        let Some(x) = args.iter_mut().find(|a| a.name.as_ref().is_none_or(|n| matches!(&*n.text, "x" | "condition")))
        else {
            return (def, args);
        };
        if !matches!(&x.value.ty, Ty::Tensor(t) if t.dtype.is_none_or(|d| !d.is_complex())) {
            return (def, args);
        }
        x.name = None;
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
        if let Some(size) = size {
            args.push(keyword("size", size, span));
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
    fn count_of(&mut self, x: &TExpr, span: Span) -> Option<TExpr> {
        let held = self.op_named("ne", vec![x.clone(), int(0, span)], span);
        let count = self.op_named("sum", vec![held], span);
        self.size_of_count(count, span)
    }

    fn size_of_count(&mut self, count: TExpr, span: Span) -> Option<TExpr> {
        if count.ty.is_error() {
            return None;
        }
        let count = self.int_of(count, span);
        let size = self.sizes.fresh("n");
        let size = self.kept_size(vec![], count, size);
        self.size_value(&size, span)
    }

    /// The positions at which a mask holds, one tensor for each of its dims.
    pub fn places_of(&mut self, mask: TExpr, ty: &TensorType) -> Vec<GivenIndex> {
        let span = mask.span;
        let mask = self.save("mask", mask);
        let places = self.op_named("nonzero", vec![mask], span);
        let Ty::Tuple(types) = places.ty.clone() else { return vec![GivenIndex::Value(places)] };
        let places = self.save("places", places);
        let one = |(i, ty): (usize, Ty)| {
            GivenIndex::Value(TExpr { kind: TKind::Field(Box::new(places.clone()), i as u32), ty, span })
        };
        std::iter::once(GivenIndex::OfMask(ty.clone(), span)).chain(types.into_iter().enumerate().map(one)).collect()
    }
}

/// The row of an operator whose result has a size that data decides.
pub fn counting(name: &str) -> Option<&'static OpDef> {
    find(name).filter(|def| matches!(def.name, "nonzero" | "argwhere" | "unique"))
}

fn keyword(name: &str, value: TExpr, span: Span) -> Value {
    Value { name: Some(Name { text: Arc::from(name), span }), value }
}
