//! Calls: of runtime functions, functions, closures and tensor regions.

use crate::frame::{Cold, Gen, plain};
use cranelift::codegen::ir::condcodes::IntCC;
use cranelift::codegen::ir::types::{F64, I64};
use cranelift::codegen::ir::{BlockArg, InstBuilder, StackSlot, StackSlotData, StackSlotKind, Value};
use tessera_abi::layout;
use tessera_abi::rt::{RtFn, Word};
use tessera_ir::host::{FnId, HExpr, HostType, RegionId, Root, SpanId, TypeId};

impl Gen<'_, '_> {
    /// The operands of a call; those that are owned are held until [`Gen::release_operands`].
    pub fn operands(&mut self, args: &[HExpr], changing: Option<Root>) -> Vec<(Value, bool)> {
        let mut values = Vec::with_capacity(args.len());
        for (i, e) in args.iter().enumerate() {
            let (value, owned) = self.operand(e, &args[i + 1..], changing);
            if owned {
                self.hold(value);
            }
            values.push((value, owned));
        }
        values
    }

    /// Ends the life of operands, the last things that were held.
    pub fn release_operands(&mut self, operands: &[(Value, bool)]) {
        let owned = operands.iter().filter(|o| o.1).count();
        self.drop_held(self.held_count() - owned);
        for (value, owned) in operands {
            if *owned {
                self.call_rt(RtFn::release, &[*value]);
            }
        }
    }

    /// Words and the span as a runtime function takes them.
    pub fn rt_args(&mut self, func: RtFn, values: impl IntoIterator<Item = Value>, span: SpanId) -> Vec<Value> {
        let sig = func.sig();
        let mut args = Vec::with_capacity(sig.params.len() + 1);
        for (value, param) in values.into_iter().zip(sig.params) {
            let is_float = self.b.func.dfg.value_type(value) == F64;
            args.push(match param {
                Word::Float if !is_float => {
                    self.b.ins().bitcast(F64, cranelift::codegen::ir::MemFlagsData::new(), value)
                }
                Word::Float => value,
                _ => self.word_of(value),
            });
        }
        if sig.fails {
            args.push(self.span(span));
        }
        args
    }

    /// A call of a runtime function as an expression.
    pub fn rt_expr(&mut self, func: RtFn, args: &[HExpr], ty: TypeId, span: SpanId) -> Value {
        if let Some(value) = self.rt_inline(func, args, ty, span) {
            return value;
        }
        let sig = func.sig();
        let before = self.held_count();
        let mut first = None;
        if sig.consumes_first {
            let value = self.expr(&args[0]);
            self.hold(value);
            first = Some(value);
        }
        let operands = self.operands(&args[usize::from(sig.consumes_first)..], None);
        let values: Vec<Value> = first.into_iter().chain(operands.iter().map(|o| o.0)).collect();
        let words = self.rt_args(func, values, span);
        let result = self.call_rt(func, &words);
        self.release_operands(&operands);
        self.drop_held(before);
        let result = match result {
            Some(word) => self.value_of(word, ty),
            None => self.int(0),
        };
        if sig.fails {
            // What a consuming function could not change, it gives back.
            if sig.consumes_first {
                self.hold(result);
            }
            self.check();
            self.drop_held(before);
        }
        result
    }

    /// Functions that are a few instructions.
    fn rt_inline(&mut self, func: RtFn, args: &[HExpr], ty: TypeId, span: SpanId) -> Option<Value> {
        match func {
            RtFn::list_len => Some(self.length(&args[0], layout::list::LEN)),
            RtFn::str_len => Some(self.length(&args[0], layout::string::CHARS)),
            RtFn::list_get => Some(self.list_get(args, ty, span)),
            _ => None,
        }
    }

    fn length(&mut self, object: &HExpr, offset: i32) -> Value {
        let (value, owned) = self.operand(object, &[], None);
        let len = self.b.ins().load(I64, plain(), value, offset);
        if owned {
            self.call_rt(RtFn::release, &[value]);
        }
        len
    }

    fn list_get(&mut self, args: &[HExpr], ty: TypeId, span: SpanId) -> Value {
        let operands = self.operands(&args[..2], None);
        let address = self.element_address(operands[0].0, operands[1].0, RtFn::list_get, span);
        let machine = self.unit.machine_type(ty);
        let value = self.b.ins().load(machine, plain(), address, 0);
        self.retain(value, ty);
        self.release_operands(&operands);
        value
    }

    /// The address of a list's element. An index out of range fails through `func`, which takes
    /// the list and the index.
    pub fn element_address(&mut self, list: Value, index: Value, func: RtFn, span: SpanId) -> Value {
        let len = self.b.ins().load(I64, plain(), list, layout::list::LEN);
        let from_end = self.b.ins().iadd(index, len);
        let negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, index, 0);
        let at = self.b.ins().select(negative, from_end, index);
        let outside = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, at, len);
        self.fail_if(outside, Cold::Fail { func, args: vec![list, index], span });
        let data = self.b.ins().load(I64, plain(), list, layout::list::DATA);
        let offset = self.b.ins().ishl_imm_u(at, 3);
        self.b.ins().iadd(data, offset)
    }

    /// Owned values, held while the later ones are evaluated, then given away.
    fn owned(&mut self, args: &[HExpr]) -> Vec<Value> {
        let before = self.held_count();
        let mut values = Vec::with_capacity(args.len());
        for e in args {
            let value = self.expr(e);
            if self.unit.counted(e.ty) {
                self.hold(value);
            }
            values.push(value);
        }
        self.drop_held(before);
        values
    }

    pub fn call(&mut self, func: FnId, args: &[HExpr], span: SpanId) -> Value {
        let mut all = vec![self.cx, self.int(0)];
        all.extend(self.owned(args));
        let target = self.fn_ref(func);
        let call = self.b.ins().call(target, &all);
        let result = self.b.inst_results(call)[0];
        self.check_called(span);
        result
    }

    pub fn call_closure(&mut self, func: &HExpr, args: &[HExpr], span: SpanId) -> Value {
        let (params, ret) = match self.unit.info(func.ty) {
            HostType::Fn { params, ret } => (params.clone(), *ret),
            // The type of what is called is always a function's.
            _ => (vec![], func.ty),
        };
        let (closure, owned) = self.operand(func, args, None);
        let before = self.held_count();
        if owned {
            self.hold(closure);
        }
        let mut all = vec![self.cx, closure];
        all.extend(self.owned(args));
        let sig = self.unit.signature(self.module, params.into_iter(), ret);
        let sig = self.b.import_signature(sig);
        let code = self.b.ins().load(I64, plain(), closure, layout::closure::CODE);
        let call = self.b.ins().call_indirect(sig, code, &all);
        let result = self.b.inst_results(call)[0];
        self.drop_held(before);
        if owned {
            self.call_rt(RtFn::release, &[closure]);
        }
        self.check_called(span);
        result
    }

    pub fn closure(&mut self, func: FnId, captures: &[HExpr]) -> Value {
        let target = self.fn_ref(func);
        let code = self.b.ins().func_addr(I64, target);
        let count = self.int(captures.len() as i64);
        let closure = self.call_rt(RtFn::closure_new, &[code, count]).unwrap_or(count);
        let before = self.held_count();
        self.hold(closure);
        for (i, e) in captures.iter().enumerate() {
            let value = self.expr(e);
            let ty = self.int(self.unit.link.types[e.ty.0 as usize].into());
            let at = layout::closure::WORDS + 8 * i as i32;
            self.b.ins().store(plain(), value, closure, at);
            self.b.ins().store(plain(), ty, closure, at + 8 * captures.len() as i32);
        }
        self.drop_held(before);
        closure
    }

    /// A stack slot for so many words, shared by all calls of this function (0 arguments, 1 results).
    fn words(&mut self, which: usize, count: u32) -> StackSlot {
        if let Some((slot, size)) = self.words[which] {
            if count > size {
                self.b.func.sized_stack_slots[slot].size = 8 * count;
                self.words[which] = Some((slot, count));
            }
            return slot;
        }
        let size = count.max(1);
        let slot = self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8 * size, 3));
        self.words[which] = Some((slot, size));
        slot
    }

    /// Calls a region with owned words and releases them. Returns the owned results.
    pub fn region(&mut self, region: RegionId, args: &[HExpr], span: SpanId) -> Vec<Value> {
        let values = self.owned(args);
        let counted: Vec<Value> =
            values.iter().zip(args).filter(|(_, e)| self.unit.counted(e.ty)).map(|(v, _)| *v).collect();
        self.region_call(region, &values, span);
        for value in counted {
            self.call_rt(RtFn::release, &[value]);
        }
        self.check();
        self.region_results(region)
    }

    /// The call alone. The arguments stay with the caller.
    pub fn region_call(&mut self, region: RegionId, values: &[Value], span: SpanId) {
        let results = self.unit.program.regions[region.0 as usize].results.len();
        let (from, to) = (self.words(0, values.len() as u32), self.words(1, results as u32));
        for (i, value) in values.iter().enumerate() {
            self.b.ins().stack_store(I64, *value, from, 8 * i as i32);
        }
        let zero = self.int(0);
        for i in 0..results {
            self.b.ins().stack_store(I64, zero, to, 8 * i as i32);
        }
        let number = self.int(i64::from(self.unit.link.region_base) + i64::from(region.0));
        let (arg_count, result_count) = (self.int(values.len() as i64), self.int(results as i64));
        let from = self.b.ins().stack_addr(I64, from, 0);
        let to = self.b.ins().stack_addr(I64, to, 0);
        let at = self.span(span);
        self.call_rt(RtFn::region_call, &[number, from, arg_count, to, result_count, at]);
    }

    pub fn region_results(&mut self, region: RegionId) -> Vec<Value> {
        let types = self.unit.program.regions[region.0 as usize].results.clone();
        let from = self.words(1, types.len() as u32);
        let load = |(i, ty): (usize, TypeId)| {
            let machine = self.unit.machine_type(ty);
            self.b.ins().stack_load(I64, machine, from, 8 * i as i32)
        };
        types.into_iter().enumerate().map(load).collect()
    }

    /// A region as an expression: its one result, or a record of several.
    pub fn region_expr(&mut self, region: RegionId, args: &[HExpr], ty: TypeId, span: SpanId) -> Value {
        let results = self.region(region, args, span);
        if let [one] = results[..]
            && self.unit.program.regions[region.0 as usize].results == [ty]
        {
            return one;
        }
        let (number, count) = (self.int(self.unit.link.types[ty.0 as usize].into()), self.int(results.len() as i64));
        let record = self.call_rt(RtFn::record_new, &[number, count]).unwrap_or(number);
        for (i, value) in results.into_iter().enumerate() {
            self.b.ins().store(plain(), value, record, layout::record::WORDS + 8 * i as i32);
        }
        record
    }

    /// Chooses between two expressions.
    pub fn choose(&mut self, test: &HExpr, then: &HExpr, otherwise: &HExpr, ty: TypeId) -> Value {
        let (yes, no, end) = (self.block(), self.block(), self.block());
        let machine = self.unit.machine_type(ty);
        let result = self.b.append_block_param(end, machine);
        let test = self.condition(test);
        self.b.ins().brif(test, yes, &[], no, &[]);
        for (block, e) in [(yes, then), (no, otherwise)] {
            self.enter(block);
            let known = self.known.len();
            let value = self.expr(e);
            self.known.truncate(known);
            self.b.ins().jump(end, &[BlockArg::Value(value)]);
        }
        self.enter(end);
        result
    }
}
