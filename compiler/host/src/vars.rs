//! Locals and globals.

use crate::frame::{Cold, Gen, Store, plain};
use cranelift::codegen::ir::condcodes::IntCC;
use cranelift::codegen::ir::types::I64;
use cranelift::codegen::ir::{InstBuilder, Value};
use tessera_abi::layout;
use tessera_abi::rt::RtFn;
use tessera_ir::host::{GlobalId, LocalId, Root, SpanId, TypeId};

impl Gen<'_, '_> {
    pub fn local_type(&self, id: LocalId) -> TypeId {
        self.f.locals[id.0 as usize].ty
    }

    pub fn load_local(&mut self, id: LocalId) -> Value {
        match self.locals[id.0 as usize] {
            Store::Var(v) => self.b.use_var(v),
            Store::Slot(slot) => {
                let machine = self.unit.machine_type(self.local_type(id));
                self.b.ins().stack_load(I64, machine, slot, 0)
            }
        }
    }

    /// Overwrites without releasing.
    pub fn store_local(&mut self, id: LocalId, value: Value) {
        match self.locals[id.0 as usize] {
            Store::Var(v) => self.b.def_var(v, value),
            Store::Slot(slot) => _ = self.b.ins().stack_store(I64, value, slot, 0),
        }
    }

    /// The local takes over a value; the old one is released.
    pub fn set_local(&mut self, id: LocalId, value: Value) {
        let counted = self.unit.counted(self.local_type(id));
        let fresh = self.loops.is_empty() && !self.assigned[id.0 as usize];
        self.assigned[id.0 as usize] = true;
        if !counted || fresh {
            return self.store_local(id, value);
        }
        let old = self.load_local(id);
        self.store_local(id, value);
        self.call_rt(RtFn::release, &[old]);
    }

    /// Says that a local may hold a value from here on.
    pub fn note_assigned(&mut self, id: LocalId) {
        self.assigned[id.0 as usize] = true;
    }

    fn globals(&mut self) -> Value {
        self.b.ins().load(I64, plain(), self.cx, layout::context::GLOBALS)
    }

    pub fn global_type(&self, id: GlobalId) -> TypeId {
        self.unit.program.globals[id.0 as usize].ty
    }

    pub fn load_global(&mut self, id: GlobalId, span: SpanId) -> Value {
        let ty = self.global_type(id);
        let base = self.globals();
        let value = self.b.ins().load(self.unit.machine_type(ty), plain(), base, 8 * id.0 as i32);
        if self.unit.counted(ty) && !self.known.contains(&id) {
            self.known.push(id);
            let unset = self.b.ins().icmp_imm_s(IntCC::Equal, value, 0);
            let number = self.int(id.0.into());
            self.fail_if(unset, Cold::Fail { func: RtFn::fail_unset, args: vec![number], span });
        }
        value
    }

    /// Overwrites without releasing.
    pub fn store_global(&mut self, id: GlobalId, value: Value) {
        let base = self.globals();
        self.b.ins().store(plain(), value, base, 8 * id.0 as i32);
    }

    /// The global takes over a value; the old one is released.
    pub fn set_global(&mut self, id: GlobalId, value: Value) {
        if !self.unit.counted(self.global_type(id)) {
            return self.store_global(id, value);
        }
        let base = self.globals();
        let old = self.b.ins().load(I64, plain(), base, 8 * id.0 as i32);
        self.b.ins().store(plain(), value, base, 8 * id.0 as i32);
        self.call_rt(RtFn::release, &[old]);
        if !self.known.contains(&id) {
            self.known.push(id);
        }
    }

    pub fn set_root(&mut self, root: Root, value: Value) {
        match root {
            Root::Local(id) => self.set_local(id, value),
            Root::Global(id) => self.set_global(id, value),
        }
    }

    /// The address of a variable's word. Only counted locals and globals have one.
    pub fn root_address(&mut self, root: Root, span: SpanId) -> Option<Value> {
        match root {
            Root::Local(id) => match self.locals[id.0 as usize] {
                Store::Slot(slot) => Some(self.b.ins().stack_addr(I64, slot, 0)),
                Store::Var(_) => None,
            },
            Root::Global(id) => {
                if self.unit.counted(self.global_type(id)) {
                    self.load_global(id, span);
                }
                let base = self.globals();
                Some(self.b.ins().iadd_imm_s(base, 8 * i64::from(id.0)))
            }
        }
    }
}
