//! Functions of the runtime.

use crate::machine::{Machine, R};
use crate::value::Value;
use tessera_abi::rt::RtFn;
use tessera_base::Span;
use tessera_core::ty::Ty;
use tessera_runtime::ffi::Given;
use tessera_runtime::host_value::HostValue;
use tessera_runtime::value::{TypeId, TypeInfo, TypeTable};
use tessera_trace::known::type_id;

impl Machine<'_> {
    /// The type as the runtime knows it: without sizes and element types.
    pub fn type_id(&mut self, ty: &Ty) -> TypeId {
        type_id(&mut self.context.types, ty)
    }

    pub fn given(&mut self, value: &Value, ty: &Ty) -> Given {
        let ty = self.type_id(ty);
        let from = self.closures.len();
        let passed = value.passed(&mut self.closures);
        for (at, (inst, _)) in self.closures.iter().enumerate().skip(from) {
            self.context.name_function(at, &self.program.insts[inst.0 as usize].name);
        }
        Given::Value(passed, ty)
    }

    pub fn given_type(&mut self, ty: &Ty) -> Given {
        Given::Number(i64::from(self.type_id(ty)))
    }

    /// Calls a function of the runtime at a place; its result is of a type.
    pub fn rt(&mut self, func: RtFn, args: Vec<Given>, ret: &Ty, span: Span) -> R<Value> {
        let ret = self.type_id(ret);
        let result = self.functions.call(&mut self.context, func, args, ret);
        let closures = std::mem::take(&mut self.closures);
        result.map(|value| Value::of(value, &closures)).map_err(|stop| self.ended(stop, span))
    }

    /// The same with ints.
    pub fn ints(&mut self, ns: Vec<i64>) -> Given {
        let ty = self.context.types.add(TypeInfo::List(TypeTable::INT));
        Given::Value(HostValue::List(ns.into_iter().map(HostValue::Int).collect()), ty)
    }

    pub fn text(&mut self, text: &str) -> Given {
        Given::Value(HostValue::Str(text.into()), TypeTable::STR)
    }
}
