//! f-strings and `str.format`.

use super::args::Value;
use super::cx::{Cx, error_at, string};
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::FPart;

impl Cx<'_> {
    pub fn format(&mut self, parts: &[FPart], span: Span) -> TExpr {
        let mut out: Vec<FormatPart> = vec![];
        let mut broken = false;
        for part in parts {
            match part {
                FPart::Text(text) => out.push(FormatPart::Text(text.clone())),
                FPart::Value { value, repr, spec } => {
                    let mut value = self.right_of(computed(&mut out), |cx| cx.expr(value));
                    let at = value.span;
                    let spec = match spec.as_slice() {
                        [] => None,
                        [FPart::Text(text)] => Some(string(text.clone(), at)),
                        parts => {
                            let left = computed(&mut out).chain([&mut value]);
                            Some(self.right_of(left, |cx| cx.format(parts, at)))
                        }
                    };
                    broken |= value.ty.is_error() || spec.as_ref().is_some_and(|s| s.ty.is_error());
                    let repr = *repr && !matches!(value.ty, Ty::FnRef(_));
                    let value = self.in_words(value);
                    let spec = self.format_spec(&value, repr, spec);
                    self.reads_data(&value);
                    out.push(FormatPart::Value { value, repr, spec });
                }
            }
        }
        if broken {
            return error_at(span);
        }
        TExpr { kind: TKind::Format(out), ty: Ty::Str, span }
    }

    /// Checks a literal spec against the type; what only a run can tell fails there.
    fn format_spec(&mut self, value: &TExpr, repr: bool, spec: Option<TExpr>) -> Option<TExpr> {
        let spec = spec?;
        let TKind::Str(text) = &spec.kind else { return Some(spec) };
        let numeric = text.chars().last().filter(|c| "bcdoxXeEfFgGn%".contains(*c));
        let fits = match (&value.ty, numeric) {
            (_, None) => true,
            (Ty::Str, Some(_)) => false,
            _ if repr => false,
            (Ty::Float, Some(c)) => !"bcdoxX".contains(c),
            (Ty::List(_) | Ty::Dict(..) | Ty::Tuple(_) | Ty::Struct(_) | Ty::None, Some(_)) => false,
            _ => true,
        };
        if !fits && !value.ty.is_error() {
            let d = Diagnostic::new(
                Code::E0204,
                value.span,
                format!("the format `{text}` does not apply to `{}`", value.ty),
            );
            self.report(d);
        }
        Some(spec)
    }

    /// Turning a tensor into text looks at its data.
    pub fn reads_data(&mut self, value: &TExpr) {
        if value.ty.is_tensor() {
            self.host("turns a tensor into text", value.span);
        }
    }

    /// `"{} {name:.2f}".format(a, name=b)` of a literal.
    pub fn format_method(&mut self, template: &str, args: Vec<Value>, span: Span) -> TExpr {
        let mut out = vec![];
        let mut text = String::new();
        let mut next = 0usize;
        let mut chars = template.chars().peekable();
        let wrong = |what: String| Diagnostic::new(Code::E0204, span, what).help("use an f-string: `f\"{x:.2f}\"`");
        while let Some(c) = chars.next() {
            match c {
                '{' if chars.peek() == Some(&'{') => {
                    chars.next();
                    text.push('{');
                }
                '}' if chars.peek() == Some(&'}') => {
                    chars.next();
                    text.push('}');
                }
                '}' => return self.fail(wrong("a `}` without its `{` in the format".into())),
                '{' => {
                    let inner: String = chars.by_ref().take_while(|c| *c != '}').collect();
                    let (field, spec) =
                        inner.split_once(':').map_or((inner.as_str(), None), |(f, s)| (f, Some(s.to_owned())));
                    let (field, repr) = field.strip_suffix("!r").map_or((field, false), |f| (f, true));
                    let found = match field.parse::<usize>() {
                        _ if field.is_empty() => {
                            next += 1;
                            args.iter().filter(|a| a.name.is_none()).nth(next - 1)
                        }
                        Ok(i) => args.iter().filter(|a| a.name.is_none()).nth(i),
                        Err(_) => args.iter().find(|a| a.name.as_ref().is_some_and(|n| *n.text == *field)),
                    };
                    let Some(found) = found else {
                        let d =
                            Diagnostic::new(Code::E0104, span, format!("the format has no argument for `{{{field}}}`"));
                        return self.fail(d);
                    };
                    if !text.is_empty() {
                        out.push(FormatPart::Text(std::mem::take(&mut text).into()));
                    }
                    let value = found.value.clone();
                    if value.ty.is_error() {
                        return error_at(span);
                    }
                    self.reads_data(&value);
                    let spec = spec.map(|s| string(s, span));
                    let repr = repr && !matches!(value.ty, Ty::FnRef(_));
                    let value = self.in_words(value);
                    let spec = self.format_spec(&value, repr, spec);
                    out.push(FormatPart::Value { value, repr, spec });
                }
                c => text.push(c),
            }
        }
        if !text.is_empty() {
            out.push(FormatPart::Text(text.into()));
        }
        TExpr { kind: TKind::Format(out), ty: Ty::Str, span }
    }
}

/// What the parts compute.
fn computed(parts: &mut [FormatPart]) -> impl Iterator<Item = &mut TExpr> {
    parts.iter_mut().flat_map(|part| match part {
        FormatPart::Text(_) => None.into_iter().chain(None),
        FormatPart::Value { value, spec, .. } => Some(value).into_iter().chain(spec.as_mut()),
    })
}
