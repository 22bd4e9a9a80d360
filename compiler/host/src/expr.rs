//! Expressions. Every value that comes out is owned by whoever asked for it.

use crate::frame::{Gen, plain};
use cranelift::codegen::ir::types::I64;
use cranelift::codegen::ir::{InstBuilder, Value};
use tessera_abi::layout;
use tessera_abi::rt::RtFn;
use tessera_ir::host::{HExpr, HExprKind, LocalId, TypeId};

/// Elements of a list that are stored directly; `list_new` gives at least so much room.
const STORED: usize = 1 << 20;

impl Gen<'_, '_> {
    pub fn expr(&mut self, e: &HExpr) -> Value {
        match &e.kind {
            HExprKind::Int(value) => self.int(*value),
            HExprKind::Float(value) => self.b.ins().f64const(*value),
            HExprKind::Bool(value) => self.int(i64::from(*value)),
            HExprKind::None => self.int(0),
            HExprKind::DType(position) => self.int(i64::from(*position)),
            HExprKind::TypeOf(ty) => self.int(self.unit.link.types[ty.0 as usize].into()),
            HExprKind::Str(_) | HExprKind::Local(_) | HExprKind::Global(_) => self.copied(e),
            HExprKind::Take(id) => self.take(*id),
            HExprKind::Number(op, args) => self.number(*op, args, e.span),
            HExprKind::And(a, b) => self.short_circuit(a, b, true),
            HExprKind::Or(a, b) => self.short_circuit(a, b, false),
            HExprKind::Cond { test, then, otherwise } => self.choose(test, then, otherwise, e.ty),
            HExprKind::Record(fields) => self.record(fields, e.ty),
            HExprKind::Field(base, index) => self.field(base, *index, e.ty),
            HExprKind::List(items) => self.list(items, e.ty),
            HExprKind::Closure { func, captures } => self.closure(*func, captures),
            HExprKind::Call { func, args } => self.call(*func, args, e.span),
            HExprKind::CallClosure { func, args } => self.call_closure(func, args, e.span),
            HExprKind::Rt { func, args } => self.rt_expr(*func, args, e.ty, e.span),
            HExprKind::Region { region, args } => self.region_expr(*region, args, e.ty, e.span),
            HExprKind::Block { stmts, value } => {
                if !self.stmts(stmts) {
                    // What follows never runs, but it needs a place.
                    let dead = self.block();
                    self.enter(dead);
                }
                self.expr(value)
            }
        }
    }

    /// The value of a variable or constant, with one more owner.
    fn copied(&mut self, e: &HExpr) -> Value {
        let value = match &e.kind {
            HExprKind::Local(id) => self.load_local(*id),
            HExprKind::Global(id) => self.load_global(*id, e.span),
            HExprKind::Str(id) => self.int(self.unit.link.strings[id.0 as usize] as i64),
            // Only these come here.
            _ => self.int(0),
        };
        self.retain(value, e.ty);
        value
    }

    /// The value of a local, which is left empty.
    pub fn take(&mut self, id: LocalId) -> Value {
        let value = self.load_local(id);
        if self.unit.counted(self.local_type(id)) {
            let zero = self.int(0);
            self.store_local(id, zero);
        }
        value
    }

    fn record(&mut self, fields: &[HExpr], ty: TypeId) -> Value {
        let (number, count) = (self.int(self.unit.link.types[ty.0 as usize].into()), self.int(fields.len() as i64));
        let record = self.call_rt(RtFn::record_new, &[number, count]).unwrap_or(number);
        let before = self.held_count();
        self.hold(record);
        for (i, e) in fields.iter().enumerate() {
            let value = self.expr(e);
            self.b.ins().store(plain(), value, record, layout::record::WORDS + 8 * i as i32);
        }
        self.drop_held(before);
        record
    }

    fn field(&mut self, base: &HExpr, index: u32, ty: TypeId) -> Value {
        let (record, owned) = self.operand(base, &[], None);
        let machine = self.unit.machine_type(ty);
        let value = self.b.ins().load(machine, plain(), record, layout::record::WORDS + 8 * index as i32);
        self.retain(value, ty);
        if owned {
            self.call_rt(RtFn::release, &[record]);
        }
        value
    }

    fn list(&mut self, items: &[HExpr], ty: TypeId) -> Value {
        let elem = match self.unit.info(ty) {
            tessera_ir::host::HostType::List(elem) => *elem,
            // The type of a list is always a list's.
            _ => ty,
        };
        let (number, count) = (self.int(self.unit.link.types[elem.0 as usize].into()), self.int(items.len() as i64));
        let list = self.call_rt(RtFn::list_new, &[number, count]).unwrap_or(number);
        let before = self.held_count();
        self.hold(list);
        let data = self.b.ins().load(I64, plain(), list, layout::list::DATA);
        let (stored, pushed) = items.split_at(items.len().min(STORED));
        for (i, e) in stored.iter().enumerate() {
            let value = self.expr(e);
            self.b.ins().store(plain(), value, data, 8 * i as i32);
            if self.unit.counted(elem) {
                let len = self.int(i as i64 + 1);
                self.b.ins().store(plain(), len, list, layout::list::LEN);
            }
        }
        if !self.unit.counted(elem) {
            let len = self.int(stored.len() as i64);
            self.b.ins().store(plain(), len, list, layout::list::LEN);
        }
        for e in pushed {
            let (value, owned) = self.operand(e, &[], None);
            let word = self.word_of(value);
            // The list has one owner, so it stays where it is.
            let at = self.span(e.span);
            self.call_rt(RtFn::list_push, &[list, word, at]);
            if owned {
                self.call_rt(RtFn::release, &[value]);
            }
            self.check();
        }
        self.drop_held(before);
        list
    }
}
