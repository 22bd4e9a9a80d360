//! Arguments of calls, and the parameters that they belong to.

use super::container_literals::{Wanted, is_written_out};
use super::cx::{Cx, error_at};
use crate::known_elsewhere;
use crate::members::arguments;
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Span, bug};
use tessera_core::builtins::{CallText, call_text};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Arg, Name, Param, ParamKind};

/// A checked argument.
#[derive(Clone, Debug)]
pub struct Value {
    pub name: Option<Name>,
    pub value: TExpr,
}

/// A parameter, as far as matching needs it.
#[derive(Clone, Debug)]
pub struct Slot {
    pub name: Arc<str>,
    pub kind: ParamKind,
    pub optional: bool,
}

impl Slot {
    pub fn of(param: &Param) -> Slot {
        Slot { name: param.name.text.clone(), kind: param.kind, optional: param.default.is_some() }
    }

    pub fn plain(name: &str, optional: bool) -> Slot {
        Slot { name: name.into(), kind: ParamKind::Plain, optional }
    }

    /// The parameters of a function that is built in, as its row says.
    pub fn built_in(name: &str) -> Vec<Slot> {
        let Some(params) = call_text(name).and_then(CallText::params) else { bug!("`{name}` has a row") };
        params.iter().map(|p| Slot::plain(p.name, p.optional)).collect()
    }
}

impl Cx<'_> {
    /// Checks the arguments in the order in which they stand; `*xs` of a tuple is spread.
    pub fn args(&mut self, args: &[Arg]) -> Vec<Value> {
        self.args_as(args, &[])
    }

    /// As [`Cx::args`], of arguments that may be written out where functions are wanted: see
    /// [`Cx::expr_for`].
    pub fn args_for(&mut self, args: &[Arg], wanted: impl FnOnce() -> Vec<Wanted>) -> Vec<Value> {
        let wanted = if args.iter().any(|a| is_written_out(&a.value)) { wanted() } else { vec![] };
        self.args_as(args, &wanted)
    }

    fn args_as(&mut self, args: &[Arg], wanted: &[Wanted]) -> Vec<Value> {
        let mut out: Vec<Value> = vec![];
        // How many are spread is not known here: what stands behind them may belong to any parameter.
        let alone = args.iter().position(|a| a.star).unwrap_or(args.len());
        for (i, arg) in args.iter().enumerate() {
            let wanted = Wanted::find(wanted, arg, (i < alone).then_some(i));
            let left = out.iter_mut().map(|a| &mut a.value);
            let value = self.right_of(left, |cx| cx.arg(arg, wanted));
            match arg.star {
                true => self.spread(value, &mut out),
                false => out.push(Value { name: arg.name.clone(), value }),
            }
        }
        if args.iter().any(|a| a.name.is_some()) {
            self.keep_written(out.iter_mut().map(|a| &mut a.value));
        }
        out
    }

    fn arg(&mut self, arg: &Arg, wanted: Option<&Ty>) -> TExpr {
        let value = match wanted {
            Some(ty) => self.expr_for(&arg.value, ty),
            None => self.expr(&arg.value),
        };
        match value.ty {
            Ty::Tuple(_) if arg.star => self.save("args", value),
            // A dtype is known before the run; what it is the dtype of is computed all the same.
            Ty::DType(Some(dtype)) if !arg.star && !value.is_certain() => {
                let known = TExpr { kind: TKind::DType(dtype), ty: value.ty.clone(), span: value.span };
                self.out.push(TStmt::Expr(value));
                known
            }
            _ => value,
        }
    }

    fn spread(&mut self, value: TExpr, out: &mut Vec<Value>) {
        let span = value.span;
        match value.ty.clone() {
            Ty::Tuple(types) => {
                for (i, ty) in types.into_iter().enumerate() {
                    let kind = TKind::Field(Box::new(value.clone()), i as u32);
                    out.push(Value { name: None, value: TExpr { kind, ty, span } });
                }
            }
            Ty::Error | Ty::Never => out.push(Value { name: None, value: error_at(span) }),
            ty => {
                let d = Diagnostic::new(Code::E0204, span, format!("`*` spreads a tuple, and this is `{ty}`"))
                    .note("how many arguments a call has must be known before the program runs");
                let value = self.fail(d);
                out.push(Value { name: None, value });
            }
        }
    }

    /// Which argument belongs to which parameter; `None` after a report. Of a rest parameter
    /// the arguments come as one tuple.
    pub fn match_params(
        &mut self,
        function: &str,
        params: &[Slot],
        args: Vec<Value>,
        span: Span,
        declared: Option<Span>,
    ) -> Option<Vec<Option<TExpr>>> {
        let mut out: Vec<Option<TExpr>> = params.iter().map(|_| None).collect();
        let declare = |cx: &Self, d: Diagnostic| {
            let Some(at) = declared else { return d };
            let d = d.with_label(at, "declared here");
            if d.code != Code::E0104 {
                return d;
            }
            // `optim.adam(w)`, `nn.linear(key, 2, 3)`: the library has a function that makes what this one takes.
            match cx.of_same_file(at.item, format!("{function}_init")) {
                Some(init) => d.help(format!("`{init}(…)` makes one with its first values")),
                None => d,
            }
        };
        let positional: Vec<usize> = (0..params.len()).filter(|&i| params[i].kind == ParamKind::Plain).collect();
        let rest = params.iter().position(|p| p.kind == ParamKind::Rest);
        let (mut count, total) = (0, args.iter().filter(|a| a.name.is_none()).count());
        let mut extra: Vec<TExpr> = vec![];
        let mut broken = false;
        let named: Vec<Arc<str>> = args.iter().filter_map(|a| Some(a.name.as_ref()?.text.clone())).collect();
        for arg in args {
            let Some(name) = arg.name else {
                match positional.get(count) {
                    Some(i) => out[*i] = Some(arg.value),
                    None if rest.is_some() => extra.push(arg.value),
                    None => {
                        let takes = positional.len();
                        let d = Diagnostic::new(
                            Code::E0104,
                            arg.value.span,
                            format!(
                                "`{function}` takes {}, and {total} {} given",
                                arguments(takes),
                                if total == 1 { "is" } else { "are" }
                            ),
                        )
                        .here("too many");
                        let d = declare(self, d);
                        self.report(d);
                        return None;
                    }
                }
                count += 1;
                continue;
            };
            let found = params.iter().position(|p| p.name == name.text && p.kind != ParamKind::Rest);
            let d = match found {
                Some(i) if out[i].is_none() => {
                    out[i] = Some(arg.value);
                    continue;
                }
                Some(_) => Diagnostic::new(
                    Code::E0105,
                    name.span,
                    format!("the argument `{}` of `{function}` is given twice", name.text),
                ),
                None => {
                    let d = Diagnostic::new(
                        Code::E0105,
                        name.span,
                        format!("`{function}` has no parameter `{}`", name.text),
                    );
                    if let Some(help) = known_elsewhere::parameter(function, &name.text) {
                        self.report(d.help(help));
                        return None;
                    }
                    // A parameter that has an argument is not meant.
                    let open = |i: &usize| out[*i].is_none() && !named.contains(&params[*i].name);
                    let open = (0..params.len()).filter(open).map(|i| &*params[i].name);
                    let list: Vec<&str> = params.iter().map(|p| &*p.name).collect();
                    d.did_you_mean(name.span, &name.text, open, |d| match list.is_empty() {
                        true => d.note("it takes no arguments"),
                        false => d.note(format!("it takes {}", list.join(", "))),
                    })
                }
            };
            let d = declare(self, d);
            self.report(d);
            broken = true;
        }
        if let Some(i) = rest {
            let ty = Ty::Tuple(extra.iter().map(|e| e.ty.clone()).collect());
            out[i] = Some(TExpr { kind: TKind::Tuple(extra), ty, span });
        }
        if broken {
            return None;
        }
        let missing: Vec<String> = params
            .iter()
            .zip(&out)
            .filter(|(p, v)| v.is_none() && !p.optional)
            .map(|(p, _)| format!("`{}`", p.name))
            .collect();
        if !missing.is_empty() {
            let word = if missing.len() == 1 { "argument" } else { "arguments" };
            let d = Diagnostic::new(Code::E0104, span, format!("`{function}` lacks the {word} {}", missing.join(", ")));
            let d = declare(self, d);
            self.report(d);
            return None;
        }
        Some(out)
    }
}
