//! Control flow that values of tensors decide: `op.cond` and `op.while_loop`.

use super::args::{Slot, Value};
use super::cx::{Cx, error_at};
use super::scans::Looped;
use tessera_base::{Code, DType, Diagnostic, Sharding, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::layouts;
use tessera_core::ty::Ty;

impl Cx<'_> {
    /// `op.cond(pred, then, otherwise, *operands)` gives what one of two functions makes of the operands.
    pub fn cond(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        const NAME: &str = "op.cond";
        let slots = Slot::built_in(NAME);
        let (slots, of_slots) = (&slots[..3], |i: usize, v: &Value| v.name.is_some() || i < 3);
        let (first, operands): (Vec<_>, Vec<_>) = values.into_iter().enumerate().partition(|(i, v)| of_slots(*i, v));
        let first = first.into_iter().map(|(_, v)| v).collect();
        let operands: Vec<TExpr> = operands.into_iter().map(|(_, v)| v.value).collect();
        let Some(given) = self.match_params(NAME, slots, first, span, None) else { return error_at(span) };
        let mut given = given.into_iter().flatten();
        let (Some(pred), Some(then), Some(otherwise)) = (given.next(), given.next(), given.next()) else {
            return error_at(span);
        };
        if !self.decides(&pred.ty, pred.span, "the first argument of `op.cond`") {
            return error_at(span);
        }
        let args = || operands.iter().map(|x| TExpr { kind: TKind::None, ty: x.ty.clone(), span: x.span }).collect();
        // One of them does not run.
        let made = self.perhaps(|cx| [&then, &otherwise].map(|f| cx.instantiate(f, args(), span)));
        let [Some((a, a_callee, a_ty)), Some((b, b_callee, b_ty))] = made else { return error_at(span) };
        let Some(ty) = self.alike(&a_ty, &b_ty, [then.span, otherwise.span]) else { return error_at(span) };
        let functions = vec![Called::new(a, a_callee), Called::new(b, b_callee)];
        let args = std::iter::once(pred).chain(operands).collect();
        TExpr { kind: TKind::Flow { flow: Flow::Cond, functions, args }, ty, span }
    }

    /// `op.while_loop(cond, body, init, max_steps=None)` gives the first value, of `init` and what `body` makes of each, for which
    /// `cond` is false.
    pub fn while_loop(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        const NAME: &str = "op.while_loop";
        let slots = Slot::built_in(NAME);
        let Some(given) = self.match_params(NAME, &slots, values, span, None) else { return error_at(span) };
        let Ok([Some(cond), Some(body), Some(init), max_steps]) = <[Option<TExpr>; 4]>::try_from(given) else {
            return error_at(span);
        };
        if let Some(n) = max_steps.as_ref().filter(|n| !matches!(n.ty, Ty::Int(_) | Ty::None)) {
            let text = format!("`max_steps` of `op.while_loop` is an `int`, and this is `{}`", n.ty);
            return self.fail(Diagnostic::new(Code::E0204, n.span, text));
        }
        let max_steps = max_steps.filter(|n| n.ty != Ty::None);
        let mut init = self.carry(init);
        let value = |ty: &Ty| vec![TExpr { kind: TKind::None, ty: ty.clone(), span }];
        let next = |ret: &Ty| Some(ret.clone());
        let Some(Looped { inst, callee, carry, .. }) =
            self.turns(NAME, &body, &mut init, &|carry| value(carry), &next, span)
        else {
            return error_at(span);
        };
        let Some((test, test_callee, decides)) = self.instantiate(&cond, value(&carry), span) else {
            return error_at(span);
        };
        if !self.decides(&decides, cond.span, "what the first function of `op.while_loop` gives") {
            return error_at(span);
        }
        let functions = vec![Called::new(test, test_callee), Called::new(inst, callee)];
        let args = std::iter::once(init).chain(max_steps).collect();
        TExpr { kind: TKind::Flow { flow: Flow::While, functions, args }, ty: carry, span }
    }

    /// Whether a type is that of a condition: a bool, or a tensor of one.
    fn decides(&mut self, ty: &Ty, at: Span, what: &str) -> bool {
        let d = |text: String| Diagnostic::new(Code::E0204, at, text);
        let d = match ty {
            Ty::Bool => return true,
            Ty::Tensor(t) if t.rank() == 0 && matches!(t.dtype, Some(DType::Bool) | None) => return true,
            _ if ty.holds_error() => return false,
            Ty::Tensor(t) if t.rank() > 0 => d(format!("{what} is one bool, and this is `{ty}`"))
                .help("say what is meant of all elements: `op.any(x)` or `op.all(x)`")
                .help("choose element by element: `op.where(condition, x, y)`"),
            _ => d(format!("{what} is a bool, and this is `{ty}`")).help("compare it with something: `x > 0`"),
        };
        self.report(d);
        false
    }

    /// The one type of what two functions give, as tensors.
    fn alike(&mut self, then: &Ty, otherwise: &Ty, at: [Span; 2]) -> Option<Ty> {
        let mut tensors = vec![];
        for (ty, at) in [then, otherwise].into_iter().zip(at) {
            if ty.holds_error() {
                return None;
            }
            let Some(ty) = as_tensors(ty) else {
                let text = format!("the results of `op.cond` are tensors, and these are `{ty}`");
                self.report(Diagnostic::new(Code::E0204, at, text));
                return None;
            };
            tensors.push(ty);
        }
        let [a, b] = [&tensors[0], &tensors[1]];
        let differ =
            |d: Diagnostic| d.here(format!("this one gives `{b}`")).with_label(at[0], format!("and this one `{a}`"));
        let same =
            tessera_types::unify::assignable(&mut self.sizes, &layouts::unsharded(a), &layouts::unsharded(b), at[1]);
        if !same.is_ok_and(|how| how == tessera_types::unify::Coerce::None || how.is_check()) {
            let d =
                Diagnostic::new(Code::E0209, at[1], "the two functions of `op.cond` give values of different types");
            self.report(
                differ(d).note("which of them runs is known when the tensors are, and the type is known before"),
            );
            return None;
        }
        let layout = |ty: &Ty| layouts::tensors(ty).into_iter().map(|t| t.sharding).collect::<Vec<_>>();
        if layout(a) != layout(b) {
            let d =
                Diagnostic::new(Code::E0404, at[1], "the two functions of `op.cond` give values that lie differently");
            self.report(differ(d).help("lay one out as the other lies: `dist.like(x, y)`"));
            return None;
        }
        Some(tensors.swap_remove(0))
    }
}

/// A type with numbers as tensors of rank 0, as loops carry them.
fn as_tensors(ty: &Ty) -> Option<Ty> {
    let scalar =
        |dtype| Some(Ty::Tensor(TensorType { shape: vec![], dtype: Some(dtype), sharding: Sharding::default() }));
    match ty {
        Ty::Tensor(_) | Ty::None => Some(ty.clone()),
        Ty::Float => scalar(DType::F32),
        Ty::Int(_) => scalar(DType::I64),
        Ty::Bool => scalar(DType::Bool),
        Ty::Tuple(ts) => Some(Ty::Tuple(ts.iter().map(as_tensors).collect::<Option<_>>()?)),
        // Fields have the types that are declared.
        Ty::Struct(s) => s.fields.iter().all(|(_, t)| as_tensors(t).is_some_and(|u| u == *t)).then(|| ty.clone()),
        _ => None,
    }
}
