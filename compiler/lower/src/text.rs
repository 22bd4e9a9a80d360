//! Printing and formatting.

use super::body::Body;
use tessera_abi::rt::RtFn;
use tessera_base::Span;
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_ir::host::{HExpr, HExprKind, HStmt};

impl Body<'_, '_> {
    /// `str(x)`.
    pub fn text(&mut self, e: &TExpr) -> HExpr {
        let value = self.expr(e);
        if matches!(e.ty, Ty::Str) {
            return value;
        }
        let (str, id) = (self.str_ty(), self.type_of(value.ty, e.span));
        self.rt(RtFn::to_str, vec![value, id], str, e.span)
    }

    pub(super) fn format(&mut self, parts: &[FormatPart], span: Span) -> HExpr {
        let str = self.str_ty();
        let mut whole: Option<HExpr> = None;
        for part in parts {
            let piece = match part {
                FormatPart::Text(text) => self.str(text, span),
                FormatPart::Value { value, repr, spec } => self.formatted(value, *repr, spec.as_ref()),
            };
            whole = Some(match whole {
                None => piece,
                Some(before) => self.rt(RtFn::str_concat, vec![before, piece], str, span),
            });
        }
        match whole {
            Some(text) => text,
            None => self.str("", span),
        }
    }

    fn formatted(&mut self, value: &TExpr, repr: bool, spec: Option<&TExpr>) -> HExpr {
        let (str, span) = (self.str_ty(), value.span);
        let mut v = self.expr(value);
        if repr {
            let id = self.type_of(v.ty, span);
            v = self.rt(RtFn::to_repr, vec![v, id], str, span);
        }
        let id = self.type_of(v.ty, span);
        match spec {
            Some(spec) => {
                let spec = self.expr(spec);
                self.rt(RtFn::format_value, vec![v, id, spec], str, span)
            }
            None if v.ty == str => v,
            None => self.rt(RtFn::to_str, vec![v, id], str, span),
        }
    }

    /// `print`: every value is evaluated before the first is printed, as Python does.
    pub(super) fn print(&mut self, args: &[TExpr], span: Span) -> HExpr {
        let none = self.none_ty();
        let (sep, end, values) = match args {
            [sep, end, values @ ..] => (Some(sep), Some(end), values),
            _ => (None, None, args),
        };
        let mut stmts = vec![];
        let sep = self.piece(sep, " ", span, &mut stmts);
        let end = self.piece(end, "\n", span, &mut stmts);
        let held: Vec<HExpr> = values
            .iter()
            .map(|e| {
                let value = self.expr(e);
                self.held(value, values.len() > 1, e.span, &mut stmts)
            })
            .collect();
        for (i, value) in held.into_iter().enumerate() {
            if i > 0 {
                let text = self.rt(RtFn::print_text, vec![sep.clone()], none, span);
                stmts.push(HStmt::Expr(text));
            }
            let id = self.type_of(value.ty, span);
            let print = self.rt(RtFn::print_value, vec![value, id], none, span);
            stmts.push(HStmt::Expr(print));
        }
        let last = self.rt(RtFn::print_text, vec![end], none, span);
        stmts.push(HStmt::Expr(last));
        let value = Box::new(self.make(HExprKind::None, none, span));
        self.make(HExprKind::Block { stmts, value }, none, span)
    }

    fn piece(&mut self, e: Option<&TExpr>, default: &str, span: Span, stmts: &mut Vec<HStmt>) -> HExpr {
        match e {
            Some(e) if !matches!(e.kind, TKind::None) => {
                let value = self.expr(e);
                let value = self.held(value, true, span, stmts);
                match value.kind {
                    // It is read several times.
                    HExprKind::Take(l) => HExpr { kind: HExprKind::Local(l), ..value },
                    _ => value,
                }
            }
            _ => self.str(default, span),
        }
    }

    /// The value in a local of its own, unless it is a constant or there is no need.
    fn held(&mut self, value: HExpr, needed: bool, span: Span, stmts: &mut Vec<HStmt>) -> HExpr {
        let constant = matches!(
            value.kind,
            HExprKind::Int(_) | HExprKind::Float(_) | HExprKind::Bool(_) | HExprKind::Str(_) | HExprKind::None
        );
        if constant || !needed {
            return value;
        }
        let tmp = self.temp("printed", value.ty);
        stmts.push(HStmt::SetLocal(tmp, value));
        let sid = self.cx.span(span);
        HExpr { kind: HExprKind::Take(tmp), ..self.local(tmp, sid) }
    }
}
