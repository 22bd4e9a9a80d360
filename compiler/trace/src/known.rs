//! Functions of the host library whose values have to be known: they go through the function of the runtime.

use super::scalar::{Known, diagnostic};
use super::value::{Key, Scalar, Value};
use super::{R, Tracer};
use std::sync::Arc;
use tessera_base::{Code, Span, bug};
use tessera_core::builtins::How;
use tessera_core::ir::{Builtin, TExpr};
use tessera_core::ty::Ty;
use tessera_runtime::context::{Context, Stop};
use tessera_runtime::direct::{Functions, Given};
use tessera_runtime::fault::Fault;
use tessera_runtime::passed::{Passed, PassedKey};
use tessera_runtime::value::{TypeId, TypeInfo, TypeTable};

/// A type as the runtime knows it: without sizes and element types.
pub fn type_id(types: &mut TypeTable, ty: &Ty) -> TypeId {
    let mut of = |t: &Ty| type_id(types, t);
    let info = match ty {
        Ty::Int(_) => TypeInfo::Int,
        Ty::Float => TypeInfo::Float,
        Ty::Bool => TypeInfo::Bool,
        Ty::Str => TypeInfo::Str,
        Ty::None | Ty::Unknown | Ty::Never | Ty::Error => TypeInfo::None,
        Ty::Mesh(_) | Ty::ShardSpec(_) => TypeInfo::Known(ty.to_string().into()),
        Ty::DType(_) => TypeInfo::DType,
        Ty::Tensor(_) | Ty::TensorPattern(_) | Ty::AnyTensor => TypeInfo::Tensor,
        Ty::List(t) => TypeInfo::List(of(t)),
        Ty::Dict(k, v) => TypeInfo::Dict(of(k), of(v)),
        Ty::Tuple(ts) => TypeInfo::Tuple(ts.iter().map(of).collect()),
        Ty::Struct(s) => TypeInfo::Struct {
            name: s.name.clone(),
            fields: s.fields.iter().map(|(n, t)| (n.clone(), of(t))).collect(),
        },
        Ty::FnRef(r) => TypeInfo::Tuple(r.captures.iter().map(|(_, t)| of(t)).collect()),
        Ty::Fn(ps, r) => TypeInfo::Fn { params: ps.iter().map(&mut of).collect(), ret: of(r) },
    };
    types.add(info)
}

impl Tracer<'_> {
    /// A call whose arguments are known.
    pub(super) fn by_runtime(
        &mut self,
        function: Builtin,
        args: &[TExpr],
        values: &[Value],
        ty: &Ty,
        span: Span,
    ) -> R<Value> {
        let mut cx = Context::new(Box::new(std::io::sink()), false);
        let mut given = vec![];
        for (value, e) in values.iter().zip(args) {
            let ty = type_id(&mut cx.types, &e.ty);
            given.push(Given::Value(self.passed(function, value, span)?, ty));
        }
        let ret = type_id(&mut cx.types, ty);
        let func = match function.def().how {
            How::Direct(func) => func,
            How::Typed(func) => {
                given.push(Given::Number(i64::from(ret)));
                func
            }
            How::Numbered(func, number) => {
                given.push(Given::Number(number));
                func
            }
            how => bug!("`{}` is had as {how:?}, which is no function of the runtime", function.name()),
        };
        match Functions::default().call(&mut cx, func, given, ret) {
            Ok(value) => Ok(of(value)),
            Err(Stop::Error(e)) => {
                let fault = Fault { code: e.code, message: e.message, notes: e.notes };
                Err(Box::new(self.in_calls(*diagnostic(fault, span))))
            }
            Err(Stop::Exit(code)) => bug!("`{}` ends the program with {code}", function.name()),
        }
    }

    /// A value for the runtime.
    fn passed(&mut self, function: Builtin, value: &Value, span: Span) -> R<Passed> {
        let mut all =
            |items: &[Value]| items.iter().map(|v| self.passed(function, v, span)).collect::<R<Vec<Passed>>>();
        Ok(match value {
            Value::Scalar(s) => match self.known(s, &format!("an argument of `{}`", function.name()), span)? {
                Known::Int(n) => Passed::Int(n),
                Known::Float(x) => Passed::Float(x),
                Known::Bool(b) => Passed::Bool(b),
            },
            Value::Str(s) => Passed::Str(s.clone()),
            Value::None => Passed::None,
            Value::DType(d) => Passed::DType(*d),
            Value::List(items) => Passed::List(all(items)?),
            Value::Record(items) => Passed::Record(all(items)?),
            Value::Dict(entries) => {
                let mut pairs = vec![];
                for (key, v) in entries.iter() {
                    let key = match key {
                        Key::Int(n) => PassedKey::Int(*n),
                        Key::Str(s) => PassedKey::Str(s.clone()),
                    };
                    pairs.push((key, self.passed(function, v, span)?));
                }
                Passed::Dict(pairs)
            }
            Value::Tensor(_) | Value::Closure { .. } => {
                let what = value.describe();
                let message = format!("`{}` of {what} cannot be part of a graph function", function.name());
                return Err(self.error(Code::E0301, span, message));
            }
        })
    }
}

/// What a function of the runtime gave.
fn of(value: Passed) -> Value {
    let scalar = |known| Value::Scalar(Scalar::Known(known));
    match value {
        Passed::Int(n) => scalar(Known::Int(n)),
        Passed::Float(x) => scalar(Known::Float(x)),
        Passed::Bool(b) => scalar(Known::Bool(b)),
        Passed::Str(s) => Value::Str(s),
        Passed::None => Value::None,
        Passed::DType(d) => Value::DType(d),
        Passed::List(items) => Value::list(items.into_iter().map(of).collect()),
        Passed::Record(items) => Value::record(items.into_iter().map(of).collect()),
        Passed::Dict(entries) => {
            let key = |k| match k {
                PassedKey::Int(n) => Key::Int(n),
                PassedKey::Str(s) => Key::Str(s),
            };
            Value::Dict(Arc::new(entries.into_iter().map(|(k, v)| (key(k), of(v))).collect()))
        }
        Passed::Tensor(_) | Passed::Closure(..) => bug!("a function of known values gave a tensor or a function"),
    }
}
