//! Calls of operators: `op.softmax(x, axis=-1)`, `x.sum(0)`.

use super::args::{Converted, convert};
use super::matching::{Given, Matched, match_args, shown};
use super::result_sharding::lay_out;
use super::{broken, error_expr};
use crate::sizes::SizeCx;
use tessera_base::{Code, Diagnostic, Reach, Size, Span, TensorType};
use tessera_core::ir::{OpArg, TExpr, TKind};
use tessera_core::ty::Ty;
use tessera_ops::surface::{Hints, Mixed, OpDef, OpError, OpTypes, SymArg};

/// A typed call, or what is wrong with it. In a method call the receiver is the first of
/// `given`. `name_span` is where the operator's name stands.
pub fn op_call(
    cx: &mut SizeCx,
    def: &'static OpDef,
    given: Vec<Given>,
    span: Span,
    name_span: Span,
) -> Result<TExpr, Diagnostic> {
    call_as(cx, def, given, span, name_span, None)
}

/// As [`op_call`]; `symbol` is how the program writes the operator where it has no name (`@`).
pub fn call_as(
    cx: &mut SizeCx,
    def: &'static OpDef,
    given: Vec<Given>,
    span: Span,
    name_span: Span,
    symbol: Option<&str>,
) -> Result<TExpr, Diagnostic> {
    if let Some(reason) = def.unsupported {
        let text = format!("`{}` is not supported yet", shown(def));
        return Err(Diagnostic::new(Code::E0690, name_span, text).note(reason));
    }
    if given.iter().any(|g| broken(&g.value)) {
        return Ok(error_expr(span));
    }
    let Matched { slots, mut hints } = match_args(def, given, name_span)?;
    if def.mixed != Mixed::Nothing {
        hints.precision = cx.precision;
    }
    let mut syms = vec![];
    let mut values: Vec<Option<TExpr>> = vec![];
    let mut counted = None;
    for (i, (param, slot)) in def.params.iter().zip(slots).enumerate() {
        let Some(value) = slot else {
            syms.push(param.default.sym().unwrap_or(SymArg::None));
            values.push(None);
            continue;
        };
        let converted: Converted = convert(cx, def, param, value)?;
        if converted.counted {
            counted = Some(i);
        }
        syms.push(converted.sym);
        values.push(Some(converted.value));
    }
    let before = cx.checks.len();
    let types = infer(cx, def, &syms, &hints, counted, span)
        .and_then(|types| not_negative(cx, types, span))
        .and_then(|types| lay_out(cx, def, &syms, &hints, types))
        .map_err(|e| op_diagnostic(def, *e, &values, span, name_span, symbol))?;
    let ty = match types {
        OpTypes::One(t) => Ty::Tensor(t),
        OpTypes::Many(ts) => Ty::Tuple(ts.into_iter().map(Ty::Tensor).collect()),
    };
    if let Some((i, ints)) = def.settles.and_then(|f| f(&syms)) {
        let ints = ints.into_iter().map(|n| TExpr { kind: TKind::Int(n), ty: Ty::int_of(n), span }).collect::<Vec<_>>();
        let ty = Ty::Tuple(ints.iter().map(|e| e.ty.clone()).collect());
        syms[i] = SymArg::Ints(vec![]);
        values[i] = Some(TExpr { kind: TKind::Tuple(ints), ty, span });
    }
    let args = values
        .into_iter()
        .zip(&syms)
        .map(|(value, sym)| match value {
            Some(value) if *sym != SymArg::None => OpArg::Value(value),
            _ => OpArg::Default,
        })
        .collect();
    let checks = cx.checks_since(before);
    Ok(TExpr { kind: TKind::Op { def, args, hints, checks }, ty, span })
}

/// A size of the result that is negative for some values of a signature's sizes is an error; where an int decides, the
/// operator stops when it runs.
fn not_negative(cx: &mut SizeCx, types: OpTypes, span: Span) -> Result<OpTypes, Box<OpError>> {
    let all = match &types {
        OpTypes::One(t) => std::slice::from_ref(t),
        OpTypes::Many(ts) => ts,
    };
    let zero = Size::constant(0);
    for d in all.iter().flat_map(|t| &t.shape) {
        let text = || format!("a size cannot be negative, and this one is {d}");
        match d.reach_stated(&zero, &cx.facts) {
            Reach::Always => {}
            Reach::Depends(_) if d.vars().iter().any(|v| !v.rigid || !v.natural) => {
                cx.at_least_zero_at_run_time(d, span);
            }
            Reach::Never(w) => {
                let error = OpError::new(Code::E0711, text());
                return Err(Box::new(if w.is_known() { error.witness(w) } else { error }));
            }
            Reach::Depends(w) => {
                let error = OpError::new(Code::E0212, text());
                let error = if w.is_known() { error.witness(w) } else { error };
                return Err(Box::new(match cx.facts.advice_reach(d, &zero) {
                    Some(help) => error.help(help),
                    None => error,
                }));
            }
        }
    }
    Ok(types)
}

/// Runs the typing rule. For a list of unknown length it runs at one and at two elements:
/// what differs between the results depends on the length, which only a run knows.
fn infer(
    cx: &mut SizeCx,
    def: &'static OpDef,
    syms: &[SymArg],
    hints: &Hints,
    counted: Option<usize>,
    span: Span,
) -> Result<OpTypes, Box<OpError>> {
    for sym in syms {
        match sym {
            SymArg::Tensor(t) => cx.assume_dims(t),
            SymArg::Tensors(ts) => ts.iter().for_each(|t| cx.assume_dims(t)),
            _ => {}
        }
    }
    let one = cx.infer(span, |icx| (def.infer)(icx, syms, hints)).map_err(Box::new)?;
    let Some(i) = counted else { return Ok(one) };
    let mut longer = syms.to_vec();
    if let Some(SymArg::Tensors(ts)) = longer.get_mut(i) {
        ts.extend(ts.first().cloned());
    }
    let two = cx.infer(span, |icx| (def.infer)(icx, &longer, hints)).map_err(Box::new)?;
    let mut merge = |a: TensorType, b: &TensorType| TensorType {
        shape: a.shape.iter().zip(&b.shape).map(|(x, y)| cx.widen(x, y, "n")).collect(),
        ..a
    };
    Ok(match (one, two) {
        (OpTypes::One(a), OpTypes::One(b)) => OpTypes::One(merge(a, &b)),
        (OpTypes::Many(a), OpTypes::Many(b)) => {
            OpTypes::Many(a.into_iter().zip(&b).map(|(a, b)| merge(a, b)).collect())
        }
        (one, _) => one,
    })
}

/// The diagnostic for an operator's error: every tensor argument shows its full type.
fn op_diagnostic(
    def: &OpDef,
    error: OpError,
    values: &[Option<TExpr>],
    span: Span,
    name_span: Span,
    symbol: Option<&str>,
) -> Diagnostic {
    let OpError { code, message, args, witness, notes, help, wraps } = error;
    let rename = |text: String| match symbol {
        Some(symbol) => {
            let shown = format!("`{symbol}`");
            let text = text.replace(&format!("`{}`", def.name), &shown);
            if symbol == "@" { text.replace("the matrix product", &shown) } else { text }
        }
        None => text,
    };
    let primary = if name_span.is_none() { span } else { name_span };
    let mut d = Diagnostic::new(code, primary, rename(message));
    let at = |i: usize| values.get(i).and_then(Option::as_ref);
    for (i, text) in &args {
        match at(*i) {
            Some(value) => d = d.with_label(value.span, with_type(value, text)),
            // The argument is left out: its default is to blame.
            None => match def.params.get(*i) {
                Some(p) => d = d.note(format!("`{}`: {text}", p.name)),
                None => d = d.note(text.clone()),
            },
        }
    }
    for (i, value) in values.iter().enumerate() {
        if let Some(value) = value
            && matches!(value.ty, Ty::Tensor(_))
            && args.iter().all(|(j, _)| i != *j)
        {
            d = d.with_label(value.span, value.ty.to_string());
        }
    }
    d.witness = witness;
    d.notes.extend(notes.into_iter().map(rename));
    let named = def.params.iter().zip(values).filter_map(|(p, v)| Some((p.name, v.as_ref()?.span)));
    let named: Vec<(&str, Span)> = named.collect();
    for text in help {
        d = d.help_about(&rename(text), &named);
    }
    for w in wraps {
        let spans: Vec<Span> = match at(w.param).map(|value| (value, &value.kind)) {
            Some((_, TKind::List(items) | TKind::Tuple(items))) => items.iter().map(|i| i.span).collect(),
            Some((value, _)) if matches!(value.ty, Ty::Tensor(_)) => vec![value.span],
            _ => vec![],
        };
        d = d.around(w.title, &spans, &w.before, &w.after);
    }
    d
}

fn with_type(value: &TExpr, text: &str) -> String {
    let ty = value.ty.to_string();
    if !matches!(value.ty, Ty::Tensor(_)) || text.contains(&ty) {
        return text.to_owned();
    }
    if text.is_empty() { ty } else { format!("{ty}: {text}") }
}
