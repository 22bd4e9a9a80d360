//! Functions of rows: `op.map` and `op.associative_scan`.

use super::args::{Slot, Value};
use super::cx::{Cx, error_at};
use super::scans::stacked;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::*;
use tessera_core::layouts;
use tessera_core::ty::Ty;

impl Cx<'_> {
    /// `op.map(f, xs)` gives `f` of every row.
    pub fn map_rows(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        const NAME: &str = "op.map";
        let Some(given) = self.match_params(NAME, &Slot::built_in(NAME), values, span, None) else {
            return error_at(span);
        };
        let mut given = given.into_iter().flatten();
        let (Some(f), Some(xs)) = (given.next(), given.next()) else { return error_at(span) };
        let Some((row, n)) = self.leading(NAME, &xs, 0) else { return error_at(span) };
        // There may be no rows.
        let made = self.perhaps(|cx| cx.instantiate(&f, vec![TExpr { kind: TKind::None, ty: row, span }], span));
        let Some((inst, callee, ret)) = made else { return error_at(span) };
        if ret.holds_error() {
            return error_at(span);
        }
        let Some(ty) = stacked(&ret, &n) else {
            let text = format!("the results of `{NAME}` are tensors, and these are `{ret}`");
            return self.fail(Diagnostic::new(Code::E0204, f.span, text));
        };
        let functions = vec![Called::new(inst, callee)];
        TExpr { kind: TKind::Flow { flow: Flow::Map, functions, args: vec![xs] }, ty, span }
    }

    /// `op.associative_scan(f, xs, axis=0, reverse=False)` gives what `f` makes of all rows up to each.
    pub fn associative_scan(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        const NAME: &str = "op.associative_scan";
        let Some(given) = self.match_params(NAME, &Slot::built_in(NAME), values, span, None) else {
            return error_at(span);
        };
        let Ok([Some(f), Some(xs), axis, reverse]) = <[Option<TExpr>; 4]>::try_from(given) else {
            return error_at(span);
        };
        let axis = axis.unwrap_or(TExpr { kind: TKind::Int(0), ty: Ty::int_of(0), span });
        let reverse = reverse.unwrap_or(TExpr { kind: TKind::Bool(false), ty: Ty::Bool, span });
        if reverse.ty != Ty::Bool {
            let text = format!("`reverse` of `{NAME}` is a bool, and this is `{}`", reverse.ty);
            return self.fail(Diagnostic::new(Code::E0204, reverse.span, text));
        }
        if !matches!(axis.ty, Ty::Int(_)) {
            let text = format!("`axis` of `{NAME}` is an int, and this is `{}`", axis.ty);
            return self.fail(Diagnostic::new(Code::E0204, axis.span, text));
        }
        let Some(at) = axis.ty.const_int() else {
            let d = Diagnostic::new(Code::E0213, axis.span, format!("`axis` of `{NAME}` decides types"));
            return self.fail(d.note("it must be known before the program runs"));
        };
        let Some((row, _)) = self.leading(NAME, &xs, at) else { return error_at(span) };
        let arg = || TExpr { kind: TKind::None, ty: row.clone(), span };
        let made = self.perhaps(|cx| cx.instantiate(&f, vec![arg(), arg()], span));
        let Some((inst, callee, ret)) = made else { return error_at(span) };
        if ret.holds_error() || !self.gives_a_row(NAME, &row, &ret, f.span) {
            return error_at(span);
        }
        let (ty, functions) = (xs.ty.clone(), vec![Called::new(inst, callee)]);
        TExpr { kind: TKind::Flow { flow: Flow::Associative, functions, args: vec![xs, axis, reverse] }, ty, span }
    }

    /// Whether what a function of two rows gives is a row.
    fn gives_a_row(&mut self, name: &str, row: &Ty, ret: &Ty, at: Span) -> bool {
        let [a, b] = [row, ret].map(layouts::unsharded);
        let same = tessera_types::unify::assignable(&mut self.sizes, &a, &b, at);
        if !same.is_ok_and(|how| how == tessera_types::unify::Coerce::None || how.is_check()) {
            let text = format!("the function of `{name}` makes a row of two rows");
            let d = Diagnostic::new(Code::E0209, at, text).note(format!("a row is {row}, and it gives {ret}"));
            self.report(d);
            return false;
        }
        let layout = |ty: &Ty| layouts::tensors(ty).into_iter().map(|t| t.sharding).collect::<Vec<_>>();
        if layout(row) != layout(ret) {
            let text = format!("the function of `{name}` gives rows that lie differently");
            let d = Diagnostic::new(Code::E0404, at, text).note(format!("a row is {row}, and it gives {ret}"));
            self.report(d.help("lay what it gives out as a row lies: `dist.like(x, y)`"));
            return false;
        }
        true
    }
}
