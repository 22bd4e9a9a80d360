//! Calls of the rows of [`tessera_core::builtins`].

use super::args::{Slot, Value};
use super::cx::{Cx, boolean, builtin, error_at, int, string};
use tessera_base::{Code, DType, Diagnostic, Span, TensorType, bug};
use tessera_core::builtins::{Does, Fallback, Gives, Kind, Rule};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_types::unify::Role;

impl Cx<'_> {
    /// A call of a function of the host library.
    pub fn row_call(&mut self, row: Builtin, values: Vec<Value>, span: Span) -> TExpr {
        let Rule::Params(params, gives) = row.def().rule else { bug!("`{}` is called by its row", row.name()) };
        let slots: Vec<Slot> = params.iter().map(|p| Slot::plain(p.name, p.fallback != Fallback::Required)).collect();
        let Some(given) = self.match_params(row.name(), &slots, values, span, None) else { return error_at(span) };
        let mut args = vec![];
        let mut dtype = None;
        for (param, value) in params.iter().zip(given) {
            let value = match (value.filter(|v| v.ty != Ty::None), param.fallback) {
                (Some(value), _) => value,
                (None, Fallback::Int(n)) => int(n, span),
                (None, Fallback::Bool(b)) => boolean(b, span),
                (None, Fallback::Str(s)) => string(s, span),
                (None, Fallback::DType(d)) => TExpr { kind: TKind::DType(d), ty: Ty::DType(Some(d)), span },
                (None, Fallback::Required) => {
                    self.error(Code::E0104, span, format!("`{}` needs a value for `{}`", row.name(), param.name));
                    return error_at(span);
                }
            };
            let value = match row {
                Builtin::dist_show => value,
                _ => match self.on_one_device(row.name(), value) {
                    Ok(value) => value,
                    Err(d) => return self.fail(d),
                },
            };
            let Some(value) = self.row_arg(row, param.name, param.kind, value) else { return error_at(span) };
            if let Ty::DType(d) = value.ty {
                dtype = d;
            }
            args.push(value);
        }
        if row.def().does == Does::Acts {
            self.host(format!("calls `{}`", row.name()), span);
        }
        let ty = match gives {
            Gives::Int => Ty::int(),
            Gives::Float => Ty::Float,
            Gives::Bool => Ty::Bool,
            Gives::Str => Ty::Str,
            Gives::StrList => Ty::List(Box::new(Ty::Str)),
            Gives::IntList => Ty::List(Box::new(Ty::int())),
            Gives::None => Ty::None,
            Gives::AnyTensor => Ty::AnyTensor,
            Gives::Matrix => {
                let shape = ["rows", "columns"].map(|side| self.sizes.fresh_side(side)).to_vec();
                Ty::Tensor(TensorType { shape, dtype: Some(dtype.unwrap_or(DType::F32)), sharding: Default::default() })
            }
            Gives::Image => {
                let known = args.iter().find_map(|a| match &a.ty {
                    Ty::Int(Some(n)) => Some(n.clone()),
                    _ => None,
                });
                let channels = known.unwrap_or_else(|| self.sizes.fresh_side("channels"));
                let [height, width] = ["height", "width"].map(|side| self.sizes.fresh_side(side));
                Ty::Tensor(TensorType::new(vec![height, width, channels], DType::U8))
            }
            Gives::Sound => {
                let shape = ["channels", "samples"].map(|side| self.sizes.fresh_side(side)).to_vec();
                Ty::Tuple(vec![Ty::Tensor(TensorType::new(shape, DType::F32)), Ty::int()])
            }
            Gives::TensorDict => Ty::Dict(Box::new(Ty::Str), Box::new(Ty::AnyTensor)),
            Gives::StrDict => Ty::Dict(Box::new(Ty::Str), Box::new(Ty::Str)),
            Gives::Never => Ty::Never,
        };
        builtin(row, args, ty, span)
    }

    fn row_arg(&mut self, row: Builtin, param: &str, kind: Kind, value: TExpr) -> Option<TExpr> {
        let role = Role::Argument { function: row.name().to_owned(), param: param.to_owned() };
        let expected = match kind {
            Kind::Int => Ty::int(),
            Kind::Float => Ty::Float,
            Kind::Bool => Ty::Bool,
            Kind::Str => Ty::Str,
            Kind::StrList => Ty::List(Box::new(Ty::Str)),
            Kind::IntList => Ty::List(Box::new(Ty::int())),
            Kind::Tensor | Kind::Image | Kind::Sound => Ty::AnyTensor,
            Kind::TensorDict => Ty::Dict(Box::new(Ty::Str), Box::new(Ty::AnyTensor)),
            Kind::DType => return self.dtype_arg(value),
        };
        if value.ty.is_tensor() && kind == Kind::Float && row.name().starts_with("math.") {
            let op = row.name().trim_start_matches("math.");
            let d = Diagnostic::new(
                Code::E0204,
                value.span,
                format!("`{}` takes a float, and this is {}", row.name(), value.ty),
            );
            let known = tessera_ops::surface::find(op).is_some();
            let d = if known {
                d.help_about(&format!("on tensors it is `op.{op}({{x}})`"), &[("x", value.span)])
            } else {
                d
            };
            self.report(d);
            return None;
        }
        let written = match kind {
            Kind::Image => self.is_written_as(row.name(), &value, DType::U8, [2, 3]),
            Kind::Sound => self.is_written_as(row.name(), &value, DType::F32, [1, 2]),
            _ => true,
        };
        if !written {
            return None;
        }
        if matches!(kind, Kind::Tensor | Kind::Image | Kind::Sound) && value.ty.is_tensor() {
            return Some(value);
        }
        if kind == Kind::TensorDict
            && let Ty::Dict(k, v) = &value.ty
            && **k == Ty::Str
            && v.is_tensor()
        {
            return Some(value);
        }
        let value = self.expect(value, &expected, param, Span::NONE, role);
        (!value.ty.is_error()).then_some(value)
    }

    fn dtype_arg(&mut self, value: TExpr) -> Option<TExpr> {
        let span = value.span;
        match (&value.ty, &value.kind) {
            (Ty::DType(Some(_)), _) => Some(value),
            (Ty::Str, TKind::Str(text)) if DType::parse(text).is_some() => {
                let d = DType::parse(text)?;
                Some(TExpr { kind: TKind::DType(d), ty: Ty::DType(Some(d)), span })
            }
            (ty, _) => {
                let d =
                    Diagnostic::new(Code::E0214, span, format!("an element type is needed here, and this is `{ty}`"))
                        .help("for example `dtype=f32`");
                self.report(d);
                None
            }
        }
    }
}
