//! One function under construction: its locals, what it holds, its ways out.

use crate::unit::Unit;
use cranelift::codegen::ir::condcodes::IntCC;
use cranelift::codegen::ir::types::{F64, I64};
use cranelift::codegen::ir::{
    Block, BlockArg, FuncRef, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value,
};
use cranelift::codegen::isa::TargetFrontendConfig;
use cranelift::frontend::{FunctionBuilder, Variable};
use cranelift::jit::JITModule;
use cranelift::module::Module;
use std::collections::BTreeMap;
use tessera_abi::layout;
use tessera_abi::rt::RtFn;
use tessera_ir::host::{FnId, GlobalId, HStmt, HostFn, LocalId, SpanId, TypeId};

/// Statements from which on scalars live in memory: in a very long function, keeping track of
/// each variable in each block would cost more than it gains.
const LONG: usize = 2000;

/// Jumps that one block on the way out takes at most. The register allocator looks a
/// predecessor up by walking over all of them.
const JUMPS: usize = 64;

#[derive(Clone, Copy)]
pub(crate) enum Store {
    Var(Variable),
    Slot(StackSlot),
}

/// A value in flight: what releases it when the function is left by a failure.
struct Held {
    value: Value,
    /// Where a failure goes, made when one can happen.
    way_out: Option<Block>,
}

/// A way out that is still to be written: release the value, then go on to the next.
struct WayOut {
    block: Block,
    value: Value,
    next: Block,
}

/// Code that runs at most once, written after everything else.
pub(crate) enum Cold {
    /// Calls a function that fails with these arguments and the span.
    Fail { func: RtFn, args: Vec<Value>, span: SpanId },
    /// Calls the interruption.
    Interrupted { span: SpanId },
}

struct ColdBlock {
    block: Block,
    what: Cold,
    target: Block,
}

/// A loop around the current position.
pub(crate) struct Loop {
    pub next: Block,
    pub end: Block,
    /// Values in flight outside of the loop.
    pub held: usize,
}

pub(crate) struct Gen<'u, 'f> {
    pub unit: &'u Unit<'u>,
    pub module: &'u mut JITModule,
    pub f: &'u HostFn,
    pub b: FunctionBuilder<'f>,
    pub cx: Value,
    pub locals: Vec<Store>,
    pub loops: Vec<Loop>,
    /// Globals that certainly have a value here.
    pub known: Vec<GlobalId>,
    /// Locals that may have a value here, by position.
    pub assigned: Vec<bool>,
    held: Vec<Held>,
    ways_out: Vec<WayOut>,
    colds: Vec<ColdBlock>,
    /// Takes the result.
    exit: Block,
    fail_exit: Block,
    fail_steps: Vec<Block>,
    /// Where failures go that have nothing to release: a step to `fail_exit`, and how many use it.
    fail_step: (Block, usize),
    rt_refs: BTreeMap<RtFn, FuncRef>,
    fn_refs: BTreeMap<FnId, FuncRef>,
    /// Arguments and results of region calls, as large as the largest.
    pub words: [Option<(StackSlot, u32)>; 2],
}

/// Accesses to objects, stack slots and the context never trap.
pub(crate) fn plain() -> MemFlagsData {
    MemFlagsData::trusted()
}

fn statements(body: &[HStmt], limit: usize) -> usize {
    let mut count = body.len();
    for s in body {
        if count >= limit {
            break;
        }
        count += match s {
            HStmt::If { then, otherwise, .. } => statements(then, limit) + statements(otherwise, limit),
            HStmt::While { body, .. } | HStmt::ForRange { body, .. } | HStmt::ForList { body, .. } => {
                statements(body, limit)
            }
            _ => 0,
        };
    }
    count
}

impl<'u, 'f> Gen<'u, 'f> {
    pub fn new(unit: &'u Unit<'u>, module: &'u mut JITModule, f: &'u HostFn, mut b: FunctionBuilder<'f>) -> Self {
        let start = b.create_block();
        b.append_block_params_for_function_params(start);
        b.switch_to_block(start);
        b.seal_block(start);
        let cx = b.block_params(start)[0];
        let (exit, fail_exit) = (b.create_block(), b.create_block());
        b.append_block_param(exit, unit.machine_type(f.ret));
        b.set_cold_block(fail_exit);
        let in_memory = statements(&f.body, LONG) >= LONG;
        let locals = f.locals.iter().map(|l| {
            if in_memory || unit.counted(l.ty) {
                Store::Slot(b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3)))
            } else {
                Store::Var(b.declare_var(unit.machine_type(l.ty)))
            }
        });
        let locals = locals.collect();
        Gen {
            unit,
            module,
            f,
            b,
            cx,
            locals,
            loops: vec![],
            known: vec![],
            assigned: vec![false; f.locals.len()],
            held: vec![],
            ways_out: vec![],
            colds: vec![],
            exit,
            fail_exit,
            fail_steps: vec![],
            fail_step: (fail_exit, JUMPS),
            rt_refs: BTreeMap::new(),
            fn_refs: BTreeMap::new(),
            words: [None, None],
        }
    }

    /// Writes the whole function.
    pub fn function(&mut self) {
        self.prologue();
        let f = self.f;
        if self.stmts(&f.body) {
            let zero = self.zero(f.ret);
            self.jump_exit(zero);
        }
        self.write_cold();
        self.write_exits();
    }

    pub fn finish(mut self, config: TargetFrontendConfig) {
        self.b.seal_all_blocks();
        self.b.finalize(config);
    }

    fn prologue(&mut self) {
        let f = self.f;
        let start = self.here();
        let args = self.b.block_params(start).to_vec();
        let (env, params) = (args[1], &args[2..]);
        let mut set = vec![false; f.locals.len()];
        for (p, &value) in f.params.iter().zip(params) {
            self.store_local(*p, value);
            set[p.0 as usize] = true;
        }
        for (i, c) in f.captures.iter().enumerate() {
            let ty = self.local_type(*c);
            let machine = self.unit.machine_type(ty);
            let value = self.b.ins().load(machine, plain(), env, layout::closure::WORDS + 8 * i as i32);
            self.retain(value, ty);
            self.store_local(*c, value);
            set[c.0 as usize] = true;
        }
        let zero = self.int(0);
        for (i, store) in self.locals.clone().iter().enumerate() {
            let id = LocalId(i as u32);
            match store {
                Store::Slot(slot) if !set[i] => _ = self.b.ins().stack_store(I64, zero, *slot, 0),
                Store::Var(v) if !set[i] => {
                    let zero = self.zero(self.local_type(id));
                    self.b.def_var(*v, zero);
                }
                _ => {}
            }
        }
        self.assigned = set;
        let sp = self.b.ins().get_stack_pointer(I64);
        let limit = self.b.ins().load(I64, plain(), self.cx, layout::context::STACK_LIMIT);
        let deep = self.b.ins().icmp(IntCC::UnsignedLessThan, sp, limit);
        self.fail_if(deep, Cold::Fail { func: RtFn::fail_stack, args: vec![], span: f.span });
    }

    /// Ways out of failures and other rare code.
    fn write_cold(&mut self) {
        let mut at = 0;
        while at < self.colds.len() {
            let cold = std::mem::replace(&mut self.colds[at].what, Cold::Interrupted { span: SpanId(0) });
            let (block, target) = (self.colds[at].block, self.colds[at].target);
            at += 1;
            self.b.switch_to_block(block);
            let (func, mut args, span) = match cold {
                Cold::Fail { func, args, span } => (func, args, span),
                Cold::Interrupted { span } => (RtFn::interrupted, vec![], span),
            };
            args.push(self.span(span));
            self.call_rt(func, &args);
            self.b.ins().jump(target, &[]);
        }
        for way in std::mem::take(&mut self.ways_out) {
            self.b.switch_to_block(way.block);
            self.call_rt(RtFn::release, &[way.value]);
            self.b.ins().jump(way.next, &[]);
        }
    }

    fn write_exits(&mut self) {
        let f = self.f;
        for block in std::mem::take(&mut self.fail_steps) {
            self.b.switch_to_block(block);
            self.b.ins().jump(self.fail_exit, &[]);
        }
        self.b.switch_to_block(self.fail_exit);
        let zero = self.zero(f.ret);
        let exit = self.exit;
        self.b.ins().jump(exit, &[BlockArg::Value(zero)]);
        self.b.switch_to_block(exit);
        for i in 0..f.locals.len() {
            let id = LocalId(i as u32);
            if self.unit.counted(self.local_type(id)) && self.assigned[i] {
                let word = self.load_local(id);
                self.call_rt(RtFn::release, &[word]);
            }
        }
        let result = self.b.block_params(exit)[0];
        self.b.ins().return_(&[result]);
    }

    // Constants and small pieces.

    pub fn int(&mut self, value: i64) -> Value {
        self.b.ins().iconst(I64, value)
    }

    pub fn span(&mut self, span: SpanId) -> Value {
        let base = self.unit.link.span_base;
        self.int(i64::from(base) + i64::from(span.0))
    }

    pub fn zero(&mut self, ty: TypeId) -> Value {
        if self.unit.machine_type(ty) == F64 { self.b.ins().f64const(0.0) } else { self.int(0) }
    }

    /// A new block with no values in it.
    pub fn block(&mut self) -> Block {
        self.b.create_block()
    }

    /// Goes on writing in a block whose predecessors are all known.
    pub fn enter(&mut self, block: Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
    }

    pub fn here(&self) -> Block {
        // A position always exists: `new` opens the first block.
        self.b.current_block().unwrap_or(self.exit)
    }

    /// A value of a type as a word.
    pub fn word_of(&mut self, value: Value) -> Value {
        if self.b.func.dfg.value_type(value) == F64 {
            self.b.ins().bitcast(I64, MemFlagsData::new(), value)
        } else {
            value
        }
    }

    /// A word as a value of a type.
    pub fn value_of(&mut self, word: Value, ty: TypeId) -> Value {
        if self.unit.machine_type(ty) == F64 && self.b.func.dfg.value_type(word) == I64 {
            self.b.ins().bitcast(F64, MemFlagsData::new(), word)
        } else {
            word
        }
    }

    // Counting.

    /// One more owner of a value that is not null.
    pub fn retain(&mut self, value: Value, ty: TypeId) {
        if self.unit.counted(ty) {
            let count = self.b.ins().load(I64, plain(), value, layout::object::COUNT);
            let count = self.b.ins().iadd_imm_s(count, 1);
            self.b.ins().store(plain(), count, value, layout::object::COUNT);
        }
    }

    pub fn release(&mut self, value: Value, ty: TypeId) {
        if self.unit.counted(ty) {
            self.call_rt(RtFn::release, &[value]);
        }
    }

    // Values in flight and the ways out.

    /// Keeps an owned value until [`Gen::drop_held`], so that a failure in between releases it.
    pub fn hold(&mut self, value: Value) {
        self.held.push(Held { value, way_out: None });
    }

    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    /// Forgets the values held since `count`; the caller owns them again.
    pub fn drop_held(&mut self, count: usize) {
        self.held.truncate(count);
    }

    /// Releases the values held since `count` without forgetting them: the path that is being
    /// written leaves their scope.
    pub fn release_held(&mut self, count: usize) {
        for i in (count..self.held.len()).rev() {
            let value = self.held[i].value;
            self.call_rt(RtFn::release, &[value]);
        }
    }

    /// The block that a failure goes to here.
    fn failure(&mut self) -> Block {
        if self.fail_step.1 >= JUMPS {
            let block = self.b.create_block();
            self.b.set_cold_block(block);
            self.fail_steps.push(block);
            self.fail_step = (block, 0);
        }
        self.fail_step.1 += 1;
        let mut next = self.fail_step.0;
        for i in 0..self.held.len() {
            next = match self.held[i].way_out {
                Some(block) => block,
                None => {
                    let block = self.b.create_block();
                    self.b.set_cold_block(block);
                    self.held[i].way_out = Some(block);
                    self.ways_out.push(WayOut { block, value: self.held[i].value, next });
                    block
                }
            };
        }
        next
    }

    /// Goes to the way out.
    pub fn jump_failure(&mut self) {
        let target = self.failure();
        self.b.ins().jump(target, &[]);
    }

    /// Leaves the function with an owned result.
    pub fn jump_exit(&mut self, result: Value) {
        let exit = self.exit;
        self.b.ins().jump(exit, &[BlockArg::Value(result)]);
    }

    /// Leaves if the last call failed.
    pub fn check(&mut self) {
        let status = self.b.ins().load(I64, plain(), self.cx, layout::context::STATUS);
        let (target, next) = (self.failure(), self.block());
        self.b.ins().brif(status, target, &[], next, &[]);
        self.enter(next);
    }

    /// Leaves if the function of the program that was called last failed, and adds the place of the call.
    pub fn check_called(&mut self, span: SpanId) {
        let status = self.b.ins().load(I64, plain(), self.cx, layout::context::STATUS);
        self.fail_if(status, Cold::Fail { func: RtFn::called_from, args: vec![], span });
    }

    /// Fails if a condition holds.
    pub fn fail_if(&mut self, condition: Value, what: Cold) {
        let next = self.block();
        let block = self.cold(what);
        self.b.ins().brif(condition, block, &[], next, &[]);
        self.enter(next);
    }

    /// A block with rare code that ends in the way out.
    pub fn cold(&mut self, what: Cold) -> Block {
        let target = self.failure();
        let block = self.b.create_block();
        self.b.set_cold_block(block);
        self.colds.push(ColdBlock { block, what, target });
        block
    }

    // Calls.

    /// Calls a runtime function with exactly these arguments after the context.
    pub fn call_rt(&mut self, func: RtFn, args: &[Value]) -> Option<Value> {
        let target = match self.rt_refs.get(&func) {
            Some(r) => *r,
            None => {
                let id = self.unit.imports[&func];
                let r = self.import(id);
                self.rt_refs.insert(func, r);
                r
            }
        };
        let mut all = Vec::with_capacity(args.len() + 1);
        all.push(self.cx);
        all.extend(args);
        let call = self.b.ins().call(target, &all);
        self.b.inst_results(call).first().copied()
    }

    pub fn fn_ref(&mut self, id: FnId) -> FuncRef {
        if let Some(r) = self.fn_refs.get(&id) {
            return *r;
        }
        let func = self.unit.fns[id.0 as usize];
        let r = self.import(func);
        self.fn_refs.insert(id, r);
        r
    }

    fn import(&mut self, id: cranelift::module::FuncId) -> FuncRef {
        let r = self.module.declare_func_in_func(id, self.b.func);
        // Code of one module may lie further apart than a near call reaches.
        self.b.func.dfg.ext_funcs[r].colocated = false;
        r
    }
}
