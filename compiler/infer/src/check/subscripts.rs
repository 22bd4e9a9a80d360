//! `x[i]`, `x[a:b]` of host values; of tensors the typing rules know.

use super::cx::{Cx, error_at};
use tessera_abi::slice::Slice;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Arg, Expr, ExprKind};

impl Cx<'_> {
    pub fn index(&mut self, base: &Expr, index: &[Arg], span: Span) -> TExpr {
        let mut base = self.expr(base);
        if base.ty.is_error() {
            return error_at(span);
        }
        if base.ty.is_tensor() {
            let given = self.right_of([&mut base], |cx| cx.index_parts(index));
            self.hold_masks(&mut base, &given);
            let result = tessera_types::tensor::index(&mut self.sizes, base, given, span);
            return self.take(result);
        }
        let [part] = index else {
            let d = Diagnostic::new(
                Code::E0211,
                span,
                format!("`{}` takes one index, and {} are given", base.ty, index.len()),
            )
            .help_about("index in steps: `{x}[i][j]`", &[("x", base.span)]);
            return self.fail(d);
        };
        if part.name.is_some() || part.star {
            self.error(Code::E0211, part.value.span, "an index has no names or stars");
            return error_at(span);
        }
        if let ExprKind::Slice { low, high, step } = &part.value.kind {
            return self.slice(base, [low, high, step], span);
        }
        let key = self.right_of([&mut base], |cx| cx.key(&part.value));
        self.element_at(base, key, span)
    }

    /// `base[key]` of a host value.
    pub fn element_at(&mut self, base: TExpr, key: TExpr, span: Span) -> TExpr {
        if key.ty.is_error() || base.ty.is_error() {
            return error_at(span);
        }
        // Elsewhere a bool counts as an int.
        let bools = matches!(&base.ty, Ty::Dict(k, _) if **k == Ty::Bool);
        let key = if bools { key } else { super::scalars::as_int(key) };
        match base.ty.clone() {
            Ty::List(t) if matches!(key.ty, Ty::Int(_)) => {
                if *t == Ty::Unknown {
                    let d = Diagnostic::new(Code::E0216, span, "the element type of this list is not known")
                        .help("annotate the empty list: `xs: list[float] = []`");
                    return self.fail(d);
                }
                let ty = self.element(&t);
                TExpr { kind: TKind::Index(Box::new(base), Box::new(key)), ty, span }
            }
            Ty::Str if matches!(key.ty, Ty::Int(_)) => {
                TExpr { kind: TKind::Index(Box::new(base), Box::new(key)), ty: Ty::Str, span }
            }
            Ty::Tuple(ts) if matches!(key.ty, Ty::Int(_)) => self.tuple_element(base, &ts, key, span),
            Ty::Dict(k, v) => {
                let fits = super::types::same_slot(&super::types::erase(&k), &super::types::erase(&key.ty));
                if !fits {
                    let d = Diagnostic::new(
                        Code::E0204,
                        key.span,
                        format!("the keys of this dict are `{k}`, and this is `{}`", key.ty),
                    )
                    .with_label(base.span, base.ty.to_string());
                    return self.fail(d);
                }
                let ty = self.element(&v);
                TExpr { kind: TKind::Index(Box::new(base), Box::new(key)), ty, span }
            }
            ty @ (Ty::List(_) | Ty::Str | Ty::Tuple(_)) => {
                let d = Diagnostic::new(
                    Code::E0211,
                    key.span,
                    format!("the index of a `{ty}` is an `int`, and this is `{}`", key.ty),
                );
                let d = if key.ty == Ty::Float {
                    d.help_about("`//` divides whole numbers, `int({x})` drops the fraction", &[("x", key.span)])
                } else {
                    d
                };
                self.fail(d)
            }
            ty => {
                let d = Diagnostic::new(Code::E0211, span, format!("`{ty}` cannot be indexed"));
                let d = match &ty {
                    Ty::Struct(_) => d.help_about("fields are taken by name: `{x}.field`", &[("x", base.span)]),
                    Ty::FnRef(_) | Ty::Fn(..) => d.help("call it with parentheses"),
                    _ => d,
                };
                self.fail(d)
            }
        }
    }

    fn tuple_element(&mut self, base: TExpr, ts: &[Ty], key: TExpr, span: Span) -> TExpr {
        let n = ts.len() as i64;
        let d = match key.ty.const_int() {
            Some(i) if (-n..n).contains(&i) => {
                let i = if i < 0 { i + n } else { i } as usize;
                if !key.is_certain() {
                    return self.scoped(|cx| {
                        let base = cx.save("tuple", base);
                        cx.out.push(TStmt::Expr(key));
                        TExpr { kind: TKind::Field(Box::new(base), i as u32), ty: ts[i].clone(), span }
                    });
                }
                // The shape of a tensor: the size itself.
                if let TKind::TensorShape(x) = base.kind {
                    return TExpr { kind: TKind::TensorDim(x, i), ty: ts[i].clone(), span };
                }
                return TExpr { kind: TKind::Field(Box::new(base), i as u32), ty: ts[i].clone(), span };
            }
            Some(i) => Diagnostic::new(Code::E0211, key.span, format!("a tuple of {n} elements has no element {i}"))
                .with_label(base.span, base.ty.to_string()),
            None if !ts.is_empty()
                && ts.iter().all(|t| super::types::erase(t) == super::types::erase(&ts[0]) && !t.is_tensor()) =>
            {
                // All elements are of one type: any index will do.
                let list = self.tuple_to_list(base, Ty::List(Box::new(super::types::erase(&ts[0]))));
                return self.element_at(list, key, span);
            }
            None => Diagnostic::new(
                Code::E0211,
                key.span,
                "which element of a tuple is meant must be known before the program runs",
            )
            .note(format!("the elements have different types: {}", base.ty))
            .help("use a list for values of one type"),
        };
        self.fail(d)
    }

    fn slice(&mut self, mut base: TExpr, parts: [&Option<Box<Expr>>; 3], span: Span) -> TExpr {
        let mut bounds: Vec<Option<TExpr>> = vec![];
        for part in parts {
            let left = bounds.iter_mut().flatten().chain([&mut base]);
            let value = part.as_ref().map(|p| self.right_of(left, |cx| cx.expr(p)));
            let value = match value {
                Some(v) if v.ty == Ty::None => None,
                other => other.map(super::scalars::as_int),
            };
            if let Some(v) = &value
                && !matches!(v.ty, Ty::Int(_))
            {
                if !v.ty.is_error() {
                    let d = Diagnostic::new(
                        Code::E0211,
                        v.span,
                        format!("the bounds of a slice are `int`, and this is `{}`", v.ty),
                    );
                    self.report(d);
                }
                return error_at(span);
            }
            bounds.push(value);
        }
        if let Ty::Tuple(ts) = base.ty.clone() {
            return self.tuple_slice(base, &ts, bounds, span);
        }
        if !matches!(base.ty, Ty::List(_) | Ty::Str) {
            let d = Diagnostic::new(Code::E0211, span, format!("`{}` has no slices", base.ty));
            return self.fail(d);
        }
        let ty = base.ty.clone();
        let mut bounds = bounds.into_iter().map(|b| b.map(Box::new));
        let (low, high, step) = (bounds.next().flatten(), bounds.next().flatten(), bounds.next().flatten());
        TExpr { kind: TKind::Slice { base: Box::new(base), low, high, step }, ty, span }
    }

    fn tuple_slice(&mut self, base: TExpr, ts: &[Ty], bounds: Vec<Option<TExpr>>, span: Span) -> TExpr {
        let values: Option<Vec<Option<i64>>> =
            bounds.iter().map(|b| b.as_ref().map_or(Some(None), |v| v.ty.const_int().map(Some))).collect();
        let Some([low, high, step]) = values.and_then(|v| <[Option<i64>; 3]>::try_from(v).ok()) else {
            let d = Diagnostic::new(
                Code::E0211,
                span,
                "the bounds of a slice of a tuple must be known before the program runs",
            );
            return self.fail(d);
        };
        let Some(picked) = Slice::of(ts.len() as u64, low, high, step) else {
            let d = Diagnostic::new(Code::E0211, span, "the step of a slice cannot be 0");
            return self.fail(d);
        };
        self.scoped(|cx| {
            let base = cx.save("tuple", base);
            cx.out.extend(bounds.into_iter().flatten().filter(|b| !b.is_certain()).map(TStmt::Expr));
            let items: Vec<TExpr> = picked
                .positions()
                .map(|i| TExpr { kind: TKind::Field(Box::new(base.clone()), i as u32), ty: ts[i].clone(), span })
                .collect();
            let ty = Ty::Tuple(items.iter().map(|i| i.ty.clone()).collect());
            TExpr { kind: TKind::Tuple(items), ty, span }
        })
    }
}
