//! Sizes that the types need equal and that only the run knows: compared when shapes are concrete.

use super::scalar::{Known, diagnostic};
use super::value::{Scalar, Value};
use super::{R, Tracer};
use std::collections::BTreeMap;
use tessera_base::{Code, Diagnostic, Size, Span, TensorType};
use tessera_core::ir::IndexPart;
use tessera_core::ty::Ty;
use tessera_runtime::fault::Fault;

/// What sizes are in one operation: read off the values of its operands.
#[derive(Default)]
pub(super) struct Measured {
    values: BTreeMap<Size, i64>,
}

impl Measured {
    /// The value of a size, computed from those.
    pub(super) fn of(&self, size: &Size) -> Option<i64> {
        size.eval_known(&self.values)
    }

    /// Whether it is known what the size is made of.
    fn tells(&self, size: &Size) -> bool {
        size.eval_known(&self.values.keys().map(|part| (part.clone(), 1)).collect()).is_some()
    }

    fn note(&mut self, size: &Size, value: i64) {
        self.values.entry(size.clone()).or_insert(value);
    }
}

impl Tracer<'_> {
    /// Reads sizes off a value of a type.
    pub(super) fn measure(&self, ty: &Ty, value: &Value, out: &mut Measured) {
        match (ty, value) {
            (Ty::Int(Some(size)), Value::Scalar(Scalar::Known(Known::Int(n)) | Scalar::Late(_, Known::Int(n)))) => {
                out.note(size, *n)
            }
            (Ty::Tensor(t), Value::Tensor(x)) => {
                let shape = self.ty(*x).shape;
                t.shape.iter().zip(shape).for_each(|(size, n)| out.note(size, n as i64));
            }
            (Ty::Tuple(ts), Value::Record(items)) => {
                ts.iter().zip(items.iter()).for_each(|(t, v)| self.measure(t, v, out))
            }
            (Ty::Struct(s), Value::Record(items)) => {
                s.fields.iter().zip(items.iter()).for_each(|((_, t), v)| self.measure(t, v, out))
            }
            (Ty::List(t), Value::List(items)) => items.iter().for_each(|v| self.measure(t, v, out)),
            _ => {}
        }
    }

    /// Fails unless the sizes are equal, in terms of the sizes of operands.
    pub(super) fn hold(&mut self, checks: &[(Size, Size)], operands: &[(&Ty, Value)], span: Span) -> R<()> {
        if checks.is_empty() {
            return Ok(());
        }
        let mut measured = Measured::default();
        operands.iter().for_each(|(ty, value)| self.measure(ty, value, &mut measured));
        for (left, right) in checks {
            let (Some(a), Some(b)) = (measured.of(left), measured.of(right)) else {
                // What 64 bits do not count the operator refuses, whose rule runs again at these numbers.
                if measured.tells(left) && measured.tells(right) {
                    continue;
                }
                let text = format!("no operand tells {left} and {right}, which must be equal");
                return Err(self.error(Code::E0999, span, text));
            };
            if a == b {
                continue;
            }
            let mut d = Diagnostic::new(Code::E0708, span, format!("sizes that must be equal are {a} and {b}"));
            let stated = |size: &Size, n: i64| (size.as_const().is_none()).then(|| format!("{size} is {n}"));
            d.notes.extend(stated(left, a));
            d.notes.extend(stated(right, b));
            d.notes.extend(self.full_types(operands));
            d.notes.push("the sizes are known only at run time; a size of 1 that data brings is not repeated".into());
            return Err(Box::new(self.in_calls(d)));
        }
        Ok(())
    }

    /// The types of operands that are tensors, as they are declared and as they are.
    fn full_types(&self, operands: &[(&Ty, Value)]) -> Option<String> {
        let both = operands.iter().filter_map(|(ty, value)| match (ty, value) {
            (Ty::Tensor(t), Value::Tensor(x)) => {
                let shape = self.ty(*x).shape.iter().map(|n| Size::constant(*n as i64)).collect();
                let found = TensorType { shape, sharding: Default::default(), ..t.clone() };
                let declared = TensorType { sharding: Default::default(), ..t.clone() };
                Some(if found == declared { format!("{found}") } else { format!("{declared}, here {found}") })
            }
            _ => None,
        });
        let texts: Vec<String> = both.collect();
        (!texts.is_empty()).then(|| format!("the operands are {}", texts.join("; and ")))
    }

    /// Fails unless the sizes of positions that are taken together are equal.
    pub(super) fn hold_index(&mut self, index: &[IndexPart], checks: &[(Size, Size)], span: Span) -> R<()> {
        if checks.is_empty() {
            return Ok(());
        }
        let mut operands = vec![];
        for part in index {
            if let IndexPart::Tensor(e) = part {
                operands.push((&e.ty, self.eval(e)?));
            }
        }
        self.hold(checks, &operands, span)
    }

    /// The failure of a comparison that the checker wrote.
    pub(super) fn sizes_differ(&mut self, text: &str, sizes: &Value, span: Span) -> R<Box<Diagnostic>> {
        let mut known = vec![];
        if let Value::List(items) = sizes {
            for item in items.iter() {
                known.push(self.int_value(item, "a size", span)?);
            }
        }
        Ok(Box::new(self.in_calls(*diagnostic(Fault::sizes_differ(text, &known), span))))
    }
}
