//! What is computed of values that are known by functions of the runtime: texts, and functions of the host library.

use super::scalar::{Known, diagnostic};
use super::value::{Key, Scalar, Value};
use super::{R, Tracer};
use std::sync::Arc;
use tessera_abi::rt::RtFn;
use tessera_base::{Code, Span, bug};
use tessera_core::builtins::How;
use tessera_core::ir::{Builtin, TExpr};
use tessera_core::ty::Ty;
use tessera_runtime::context::{Context, Stop};
use tessera_runtime::fault::Fault;
use tessera_runtime::ffi::{Functions, Given};
use tessera_runtime::host_value::{HostKey, HostValue};
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
        Ty::FnRef(r) => {
            TypeInfo::Function { shown: r.printed().into(), captures: r.captures.iter().map(|(_, t)| of(t)).collect() }
        }
        Ty::Fn(ps, r) => TypeInfo::Fn { params: ps.iter().map(&mut of).collect(), ret: of(r) },
    };
    types.add(info)
}

/// An argument of a function of the runtime.
pub(super) enum Arg<'a> {
    /// A value of a type.
    Value(&'a Value, &'a Ty),
    /// A type as an argument.
    Type(&'a Ty),
    Number(i64),
}

/// What values are asked for, for messages.
#[derive(Clone, Copy)]
pub(super) enum For {
    Function(Builtin),
    /// The text of a value.
    Text,
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
        let mut given: Vec<Arg> = values.iter().zip(args).map(|(value, e)| Arg::Value(value, &e.ty)).collect();
        let func = match function.def().how {
            How::Direct(func) => func,
            How::Typed(func) => {
                given.push(Arg::Type(ty));
                func
            }
            How::Valued(func, which) => {
                given.push(Arg::Type(&args[which].ty));
                func
            }
            How::Numbered(func, number) => {
                given.push(Arg::Number(number));
                func
            }
            how => bug!("`{}` is had as {how:?}, which is no function of the runtime", function.name()),
        };
        self.runtime(For::Function(function), func, &given, ty, span)
    }

    /// A call of a function of the runtime that changes nothing, whose result is of a type.
    pub(super) fn runtime(&mut self, of: For, func: RtFn, args: &[Arg], ret: &Ty, span: Span) -> R<Value> {
        let mut cx = Context::new(Box::new(std::io::sink()), false);
        let mut given = vec![];
        for arg in args {
            given.push(match arg {
                Arg::Value(value, ty) => {
                    let ty = type_id(&mut cx.types, ty);
                    Given::Value(self.passed(of, value, span)?, ty)
                }
                Arg::Type(ty) => Given::Number(i64::from(type_id(&mut cx.types, ty))),
                Arg::Number(n) => Given::Number(*n),
            });
        }
        let ret = type_id(&mut cx.types, ret);
        match Functions::default().call(&mut cx, func, given, ret) {
            Ok(value) => Ok(value_of(value)),
            Err(Stop::Error(e)) => {
                let fault = Fault { code: e.code, message: e.message, notes: e.notes, span: None };
                Err(Box::new(self.in_calls(*diagnostic(fault, span))))
            }
            Err(Stop::Exit(code)) => bug!("`{}` ends the program with {code}", func.sig().name),
        }
    }

    /// A value for the runtime.
    fn passed(&mut self, of: For, value: &Value, span: Span) -> R<HostValue> {
        let mut all = |items: &[Value]| items.iter().map(|v| self.passed(of, v, span)).collect::<R<Vec<HostValue>>>();
        Ok(match value {
            Value::Scalar(s) => match self.known(s, &of.asked(), span)? {
                Known::Int(n) => HostValue::Int(n),
                Known::Float(x) => HostValue::Float(x),
                Known::Bool(b) => HostValue::Bool(b),
            },
            Value::Str(s) => HostValue::Str(s.clone()),
            Value::None => HostValue::None,
            Value::DType(d) => HostValue::DType(*d),
            Value::List(items) => HostValue::List(all(items)?),
            Value::Record(items) => HostValue::Record(all(items)?),
            Value::Dict(entries) => {
                let mut pairs = vec![];
                for (key, v) in entries.iter() {
                    let key = match key {
                        Key::Int(n) => HostKey::Int(*n),
                        Key::Bool(b) => HostKey::Bool(*b),
                        Key::Str(s) => HostKey::Str(s.clone()),
                    };
                    pairs.push((key, self.passed(of, v, span)?));
                }
                HostValue::Dict(pairs)
            }
            Value::Tensor(_) | Value::Closure { .. } => {
                let what = value.describe();
                let message = match of {
                    For::Function(f) => format!("`{}` of {what} cannot be part of a graph function", f.name()),
                    For::Text => format!("a graph function cannot make text of {what}"),
                };
                return Err(self.error(Code::E0301, span, message));
            }
        })
    }
}

impl For {
    fn asked(self) -> String {
        match self {
            For::Function(f) => format!("an argument of `{}`", f.name()),
            For::Text => "this text".into(),
        }
    }
}

/// What a function of the runtime gave.
fn value_of(value: HostValue) -> Value {
    let scalar = |known| Value::Scalar(Scalar::Known(known));
    match value {
        HostValue::Int(n) => scalar(Known::Int(n)),
        HostValue::Float(x) => scalar(Known::Float(x)),
        HostValue::Bool(b) => scalar(Known::Bool(b)),
        HostValue::Str(s) => Value::Str(s),
        HostValue::None => Value::None,
        HostValue::DType(d) => Value::DType(d),
        HostValue::List(items) => Value::list(items.into_iter().map(value_of).collect()),
        HostValue::Record(items) => Value::record(items.into_iter().map(value_of).collect()),
        HostValue::Dict(entries) => {
            let key = |k| match k {
                HostKey::Int(n) => Key::Int(n),
                HostKey::Bool(b) => Key::Bool(b),
                HostKey::Str(s) => Key::Str(s),
            };
            Value::Dict(Arc::new(entries.into_iter().map(|(k, v)| (key(k), value_of(v))).collect()))
        }
        HostValue::Tensor(_) | HostValue::Closure(..) => bug!("a function of known values gave a tensor or a function"),
    }
}
